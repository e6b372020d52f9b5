"""Containers of several sources of the same samples: of similarities, and of features."""

from typing import Any, ClassVar, Self

import numpy as np

from nmfcluster._compat import take_samples
from nmfcluster._utils.storage import is_sparse, submatrix
from nmfcluster._utils.validation import axis_positions, format_count, format_value
from nmfcluster.stack.parsing import (
    Source,
    read_names,
    read_sources,
    read_views,
    with_nan,
)


class _Stack:
    """Base of the containers: samples in several sources, which are split together.

    Attributes
    ----------
    names : tuple of str
        The names of the sources.
    index : Index or None
        The names of the samples.
    shape : tuple of int
        ``(n, m, L)``: samples, samples that they are similar to, sources.
    """

    shape: tuple[int, int, int]
    _as_array: ClassVar[str]  # what an error of numpy.asarray says to take instead

    @classmethod
    def _unchecked(cls, held, names, index=None, columns=None) -> Self:
        """Return a stack of sources that are checked."""
        new = cls.__new__(cls)
        new._set(held, names, index, columns)
        return new

    def _set(self, held, names, index, columns=None) -> None:
        self._held = tuple(held)  # what is kept of every source
        self.names = names
        self.index = index
        self._columns = columns  # names of the samples that these are similar to

    def _cut(self, held, rows, columns):
        """Return some samples of one source; None: all columns."""
        raise NotImplementedError

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise TypeError(f"a {type(self).__name__} is no array: {self._as_array}.")

    def __getitem__(self, key: Any) -> Self:
        owner = f"a {type(self).__name__}"
        rows, columns = _read_axes(key, owner)
        i = axis_positions(rows, self.shape[0], "row", owner)
        index = None if self.index is None else self.index[i]
        j = None
        column_names = self._columns
        if columns is not None:
            j = axis_positions(columns, self.shape[1], "column", owner)
            if column_names is not None:
                column_names = column_names[j]
        held = [self._cut(one, i, j) for one in self._held]
        return self._unchecked(held, self.names, index, column_names)


class SimilarityStack(_Stack):
    """Similarities of the same samples by several sources: matrices, dense and sparse mixed.

    Its length is the number of samples, and it is split like them. Cross-validation and grid search
    of an estimator that takes similarities cut ``stack[np.ix_(rows, columns)]``, both axes of all
    sources; ``stack[rows]`` cuts the first axis alone. Sparse sources stay sparse.

    NaN stands for a sample that a source has not seen: its row is NaN throughout and, if the
    columns stand for the same samples, its column too. In a sparse source only stored NaN count,
    and a single one, say on the diagonal, marks a row that stores nothing else.

    Parameters
    ----------
    sources : list or dict of {array-like, sparse matrix} of shape (n, m), ndarray of shape \
            (n, m, L) or SimilarityStack
        Similarities of n samples to m samples: to each other, n = m, or to the samples that a
        model was fitted on. Rows and columns of data frames are matched by their names, if these
        are not 0, 1, ...; those of other matrices are taken by position. If all sources are data
        frames that have the same names in rows and columns, each can have some of the samples:
        these are then those of all of them, in the order in which they occur, and a source has
        not seen those that its frame does not have. float32 stays float32 if all sources are,
        everything else becomes float64. Not copied where that can be avoided, and never written to.
    names : sequence of str, default=None
        One name for each source, no two the same; the keys of a dict, or "source0", "source1",
        ... by default.

    Attributes
    ----------
    names : tuple of str
        The names of the sources.
    index : Index or None
        Names of the samples, if a data frame has some.
    shape : tuple of int
        ``(n, m, L)``: samples, samples that they are similar to, sources.

    Raises
    ------
    TypeError
        If `sources` is none of the above, or empty, or a source does not hold numbers.
    ValueError
        If sources differ in shape, a row and a column are both NaN in part, `names` do not fit, or
        it is not known which rows of the data frames belong together.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from nmfcluster import SimilarityStack
    >>> stack = SimilarityStack([np.ones((4, 4)), sp.eye_array(4)], names=["all", "self"])
    >>> stack
    SimilarityStack(shape=(4, 4, 2), dtype=float64, names=('all', 'self'))
    >>> stack[np.ix_([0, 2], [1, 2, 3])].toarray()[:, :, 1]
    array([[0., 0., 0.],
           [0., 1., 0.]])
    >>> import pandas as pd
    >>> frames = [pd.DataFrame(np.ones((2, 2)), [*names], [*names]) for names in ("ab", "bc")]
    >>> partial = SimilarityStack(frames)
    >>> list(partial.index), partial.seen()[:, 0]
    (['a', 'b', 'c'], array([ True,  True, False]))
    """

    _as_array = (
        "its matrices are in stack.sources, and stack.toarray() makes one of them"
    )

    def __init__(self, sources: Any, *, names: Any = None) -> None:
        if isinstance(sources, SimilarityStack):
            n = len(sources.names)
            names = sources.names if names is None else read_names(names, n, "source")
            self._set(sources._held, names, sources.index, sources._columns)
        else:
            held, names, index, columns = read_sources(sources, names)
            self._set(held, names, index, columns)

    def _set(self, held, names, index, columns=None) -> None:
        dtype = np.result_type(*(source.values.dtype for source in held))
        cast = [
            one._replace(values=one.values.astype(dtype, copy=False)) for one in held
        ]
        super()._set(cast, names, index, columns)
        self.shape = (*self._held[0].values.shape, len(held))

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64, that of all sources."""
        return np.dtype(self._held[0].values.dtype)

    @property
    def sources(self) -> tuple[Any, ...]:
        """The matrices, (n, m) arrays and CSR arrays, with NaN for what was not seen."""
        return tuple(with_nan(source, mark=True) for source in self._held)

    def filled(self) -> tuple[Any, ...]:
        """Return the sources with 0 for NaN; sparse ones store none of either.

        Returns
        -------
        tuple of {ndarray, csr_array} of shape (n, m)
            Not copied, and not to be written to.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import SimilarityStack
        >>> SimilarityStack([[[1, np.nan], [np.nan, np.nan]]]).filled()
        (array([[1., 0.],
               [0., 0.]]),)
        """
        return tuple(source.values for source in self._held)

    def seen(self) -> np.ndarray:
        """Return which samples each source has seen: those whose row is not NaN.

        Returns
        -------
        ndarray of shape (n, L), bool

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import SimilarityStack
        >>> SimilarityStack([np.ones((2, 2)), [[1, np.nan], [np.nan, np.nan]]]).seen()
        array([[ True,  True],
               [ True, False]])
        """
        return np.column_stack([source.rows for source in self._held])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False or any(is_sparse(source.values) for source in self._held):
            return super().__array__()  # which refuses it
        return self.toarray().astype(self.dtype if dtype is None else dtype, copy=False)

    def toarray(self) -> np.ndarray:
        """Return all sources as one dense array; the last axis is the sources.

        Returns
        -------
        ndarray of shape (n, m, L)
            With NaN in the rows, and the columns, of samples that a source has not seen.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import SimilarityStack
        >>> SimilarityStack([np.eye(2), np.ones((2, 2))]).toarray()[0]
        array([[1., 1.],
               [0., 1.]])
        """
        return np.stack([with_nan(source) for source in self._held], axis=-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, names={self.names})"

    def _cut(self, held: Source, rows, columns) -> Source:
        seen_columns = held.columns if columns is None else held.columns[columns]
        return Source(
            submatrix(held.values, rows, columns), held.rows[rows], seen_columns
        )


class ViewStack(_Stack):
    """Views of the same samples: several tables of features, of different widths.

    Its length is the number of samples, and it is split like them: ``views[rows]``. For an
    estimator with ``affinity="precomputed"`` scikit-learn cuts ``views[np.ix_(rows, columns)]``,
    which returns the rows, as similarities are made of features only when a model is fitted.

    Parameters
    ----------
    views : dict or list of {array-like, sparse matrix} of shape (n, p_l), or ViewStack
        Each table has a row for every sample; NaN throughout where the view lacks it. The keys of
        a dict are names. Rows of data frames are matched by their index, if it is not 0, 1, ...:
        the samples are those of all of them, in the order in which they occur, and one that a
        frame does not have is missing from this view. Rows of other tables are taken by position.

    Attributes
    ----------
    names : tuple of str
        The names of the views: the keys of a dict, else "view0", "view1", ...
    index : Index or None
        Names of the samples, if a data frame has some.
    shape : tuple of int
        ``(n, n, L)``, as that of the similarities of n samples by L views.

    Raises
    ------
    TypeError
        If `views` is none of the above, or empty.
    ValueError
        If a table does not hold numbers, or it is not known which rows of the
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

    _as_array = (
        "SimilarityFusionNMF clusters by all of its tables; one alone is stack.views[0]"
    )

    def __init__(self, views: Any) -> None:
        if isinstance(views, ViewStack):
            self._set(views._held, views.names, views.index)
        else:
            tables, names, index = read_views(views)
            self._set(tables, names, index)

    def _set(self, held, names, index, columns=None) -> None:
        super()._set(held, names, index)
        n = held[0].shape[0]
        # as that of the similarities of n samples by L views
        self.shape = (n, n, len(held))

    @property
    def views(self) -> tuple[Any, ...]:
        """The tables, arrays, CSR arrays or data frames of shape (n, p_l)."""
        return self._held

    @property
    def n_features(self) -> dict[str, int]:
        """The number of features of every view, by its name."""
        views = zip(self.names, self._held, strict=True)
        return {name: int(view.shape[1]) for name, view in views}

    def __repr__(self) -> str:
        parts = [format_count(len(self), "sample")]
        for name, width in self.n_features.items():
            parts.append(f"{name}: {format_count(width, 'feature')}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _cut(self, held, rows, columns):
        return take_samples(held, rows)


def _read_axes(key, owner: str):
    """Return the parts of a key for rows and for columns; None for all columns."""
    parts = key if isinstance(key, tuple) else (key,)
    if len(parts) > 1 and parts[-1] is Ellipsis:  # scikit-learn asks for [rows, ...]
        parts = parts[:-1]
    if len(parts) == 1:
        return parts[0], None
    if len(parts) == 2:
        rows, columns = parts
        open_mesh = [(np.size(rows), 1), (1, np.size(columns))]
        if [np.shape(rows), np.shape(columns)] == open_mesh:  # of numpy.ix_
            return np.ravel(rows), np.ravel(columns)
        if isinstance(rows, slice) or isinstance(columns, slice):
            return rows, columns
    raise ValueError(
        f"{owner} is indexed by rows, stack[rows], or by rows and columns, "
        f"stack[np.ix_(rows, columns)], got {format_value(key)}."
    )
