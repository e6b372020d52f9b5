"""Several tables of features of the same samples, aligned by the names that data frames have."""

from __future__ import annotations

from typing import Any, NoReturn, Self

import numpy as np
from sklearn.utils import check_array

from nmfcluster._arrays.arguments import counted, positions, shown
from nmfcluster._arrays.storage import FLOATS
from nmfcluster._arrays.tables import check_readable, with_all_samples
from nmfcluster._compat import take_samples
from nmfcluster.stack.container import read_axes, read_names


class ViewStack:
    """Views of the same samples: several tables of features, of different widths.

    It stands for the samples, and is split as they are: ``views[rows]``. For an estimator with
    ``affinity="precomputed"`` scikit-learn cuts ``views[np.ix_(rows, columns)]``, which are the
    rows: their similarities to others are made of features only when a model is fitted.

    Parameters
    ----------
    views : dict or list of {array-like, sparse matrix} of shape (n, p_l), or ViewStack
        Each table has a row for every sample; NaN throughout where the view lacks it. The keys of
        a dict are names. Rows of data frames are matched by their index, if it is not 0, 1, ...:
        the samples are those of all of them, in the order in which they occur, and one that a
        frame does not have is missing from this view. Rows of other tables are taken by position.
    names : sequence of str, default=None
        One name for each view, no two the same; the keys of a dict, or "view0", "view1", ...

    Attributes
    ----------
    views : tuple of {ndarray, csr_array, DataFrame} of shape (n, p_l)
        The tables, with a row for every sample.
    names : tuple of str
        The names of the views.
    index : Index or None
        Names of the samples, if a data frame has some.

    Raises
    ------
    TypeError
        If `views` is none of the above.
    ValueError
        If there is no view, a table does not hold numbers, or it is not known which rows of the
        tables belong together.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from nmfcluster.stack import ViewStack
    >>> words = pd.DataFrame({"goal": [3, 0, 4]}, index=["a", "b", "c"])
    >>> links = pd.DataFrame({"in": [1.0, 2.0], "out": [0.0, 1.0]}, index=["b", "d"])
    >>> views = ViewStack({"words": words, "links": links})
    >>> views
    ViewStack(4 samples, words: 1 feature, links: 2 features)
    >>> list(views.index)
    ['a', 'b', 'c', 'd']
    >>> views[[1, 2]].views[1].to_numpy()
    array([[ 1.,  0.],
           [nan, nan]])
    """

    def __init__(self, views: Any, *, names: Any = None) -> None:
        self._set(*_read_views(views, names, "views"))

    @classmethod
    def _of(cls, views: Any, where: str) -> Self:
        """Return views that error messages call by the parameter that they came in."""
        return cls._made(*_read_views(views, None, where))

    @classmethod
    def _made(cls, views: tuple[Any, ...], names: tuple[str, ...], index: Any) -> Self:
        """Return a stack of tables that need no checks."""
        new = cls.__new__(cls)
        new._set(views, names, index)
        return new

    def _set(self, views: tuple[Any, ...], names: tuple[str, ...], index: Any) -> None:
        self.views, self.names, self.index = tuple(views), names, index

    @property
    def shape(self) -> tuple[int, int, int]:
        """``(n, n, L)``, as that of the similarities of n samples by L views."""
        n = self.views[0].shape[0]
        return n, n, len(self.views)

    @property
    def ndim(self) -> int:
        """3, the length of `shape`."""
        return 3

    @property
    def n_features(self) -> tuple[int, ...]:
        """The number of features of every view."""
        return tuple(int(view.shape[1]) for view in self.views)

    def __len__(self) -> int:
        return self.shape[0]

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a ViewStack cannot be walked through sample by sample; its tables are in stack.views."
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        raise TypeError(
            "a ViewStack holds several tables, and is no array: SimilarityFusionNMF clusters by "
            "all of them; one alone is stack.views[0]."
        )

    def __getitem__(self, key: Any) -> Self:
        rows, _ = read_axes(key, "a ViewStack", "tables are in stack.views")
        if rows is None:
            raise TypeError(
                "rows of a ViewStack must be named by a list or an array of integers, a mask or a "
                f"slice, got {shown(rows)}."
            )
        rows = positions(rows, len(self), "row", "a ViewStack")
        index = None if self.index is None else self.index[rows]
        return self._made(tuple(take_samples(view, rows) for view in self.views), self.names, index)

    def with_views(self, numbers: Any) -> Self:
        """Return a stack of some of the views, by their positions.

        Parameters
        ----------
        numbers : sequence of int

        Returns
        -------
        ViewStack

        Examples
        --------
        >>> from nmfcluster.stack import ViewStack
        >>> ViewStack({"a": [[1], [2]], "b": [[3], [4]]}).with_views([1]).names
        ('b',)
        """
        views = tuple(self.views[i] for i in numbers)
        return self._made(views, tuple(self.names[i] for i in numbers), self.index)

    def __repr__(self) -> str:
        widths = zip(self.names, self.n_features, strict=True)
        parts = [f"{name}: {counted(p, 'feature')}" for name, p in widths]
        return f"{type(self).__name__}({counted(len(self), 'sample')}, {', '.join(parts)})"


def _read_views(views: Any, names: Any, where: str) -> tuple[tuple[Any, ...], tuple[str, ...], Any]:
    """Return tables with the same samples, their names, and those of the samples."""
    if isinstance(views, ViewStack):
        own = views.names if names is None else read_names(names, len(views.views), "view")
        return views.views, own, views.index
    listed, keys = _listed(views, where)
    names = read_names(keys if names is None else names, len(listed), "view")
    labels = [f"view {i} ({name!r}) of {where}" for i, name in enumerate(names)]
    tables = [_read_table(view, label) for view, label in zip(listed, labels, strict=True)]
    tables, index = with_all_samples(tables, labels)
    return tuple(tables), names, index


def _listed(views: Any, where: str) -> tuple[list[Any], list[Any]]:
    """Return the tables of a collection, and the names that it has for them."""
    if isinstance(views, dict):
        listed, keys = list(views.values()), list(views)
    elif isinstance(views, list | tuple):
        listed, keys = list(views), [f"view{i}" for i in range(len(views))]
    else:
        raise TypeError(
            f"{where} must be a dict or a list of tables, or a ViewStack, got "
            f"{shown(views)}; a single table X is given as [X]."
        )
    if not listed:
        raise ValueError(
            f"{where} must hold at least one table, got an empty {type(views).__name__}."
        )
    return listed, keys


def _read_table(view: Any, label: str) -> Any:
    """Return a table of numbers: data frames as they are, else an array or a CSR matrix."""
    check_readable(view, label)
    if hasattr(view, "columns"):
        return view
    if isinstance(view, str) or np.ndim(view) == 1:
        raise TypeError(f"{label} must be a table with a row for every sample, got {shown(view)}.")
    checks: dict[str, Any] = {"dtype": FLOATS, "ensure_all_finite": "allow-nan"}
    try:
        return check_array(view, accept_sparse="csr", input_name=label, **checks)
    except ValueError as error:
        message = str(error)
        raise ValueError(message if label in message else f"{label}: {message}") from None
