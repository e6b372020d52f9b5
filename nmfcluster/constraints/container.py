"""The container of constraints: pairs of samples that belong together, and pairs that do not.

The container is made from lists of pairs, labels, ids, a table of both kinds of pairs, or groups.
The functions below the class read and check these inputs.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import suppress
from itertools import chain, zip_longest
from numbers import Real
from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse as sp

from nmfcluster._utils.labels import as_label_vector, clean_labels
from nmfcluster._utils.validation import (
    axis_positions,
    check_count,
    check_sparse_indices,
    format_count,
    format_value,
    row_names,
)
from nmfcluster.constraints.graph import (
    NO_LINKS,
    Links,
    check_pairs,
    components,
    copy_links,
    link_all_members,
    make_adjacency,
    make_links,
    make_links_of_groups,
    make_links_of_labels,
)

_HINT_OF_NAMES = (
    " For names of samples, use PairwiseConstraints.from_table or from_ids with "
    "ids=X.index."
)
_BOOLS = {bool, np.bool_}
_NO_ROWS = str | bytes | Mapping | Set  # iterables that are not pairs

# positions of samples: a range if users name samples by position, a dict if by id
Samples = range | dict[Any, int]

#: signs of the words for the two kinds of pairs
_SIGNS = dict.fromkeys(("must", "must-link", "must_link", "ml"), 1)
_SIGNS |= dict.fromkeys(("cannot", "cannot-link", "cannot_link", "cl"), -1)

# Weight of infinite cannot-links, relative to the largest finite weight: fits of four data sets
# violate 28 of 2,485 at 1, and none at 3 and 10. Larger weights separate samples from their
# clusters.
_INFINITE_CANNOT_LINK = 3.0


class PairwiseConstraints:
    """Pairs of samples that must be in one cluster, and pairs that cannot be in one cluster.

    The container can be indexed by samples like an array. The result holds the pairs whose two
    samples are both selected, with new positions. Cross-validation in scikit-learn therefore splits
    the pairs together with the samples. A plain list of pairs would be passed to all folds
    unchanged, and its positions would refer to other samples.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    must_link, cannot_link : array-like, iterable of pairs, sparse matrix or None, default=None
        Pairs (i, j) of samples of the same cluster, and of different clusters, in any order. An
        array has shape (n_pairs, 2), or (n_pairs, 3) with weights. A weight is the cost of
        violating the pair, 1 by default. You can also pass an iterable of pairs, such as
        ``zip(i, j)`` or a set, or a sparse matrix of weights of shape (n_samples, n_samples).

        Pairs of weight 1 or more are *hard*, and others are *soft*. If some weights of a list are
        infinite, only its pairs of infinite weight are hard. If a pair occurs more than once, its
        largest weight is used. Pairs of weight 0 and must-links of a sample with itself are
        dropped.

    Attributes
    ----------
    n_samples : int
        Number of samples.
    must_link, cannot_link : ndarray of shape (n_must_link, 2) and (n_cannot_link, 2), int
        Pairs (i, j) of the same cluster, and of different clusters. They are sorted and distinct,
        and i < j.
    must_link_weights, cannot_link_weights : ndarray of float64
        Costs of violating these pairs, above 0.
    must_link_hard, cannot_link_hard : ndarray of bool
        Which of these pairs are hard.
    index : pandas Index, ndarray or None
        Names of the samples.

    Raises
    ------
    TypeError
        If `n_samples` is not an integer, or if pairs are a dict or contain anything but numbers.
    ValueError
        If a position is negative, not whole, or not below `n_samples`. If a weight is negative or
        NaN. If `cannot_link` pairs a sample with itself. If a shape is not as described.

    Notes
    -----
    Use hard pairs for what is certain, and soft pairs, with weights below 1, for what is uncertain.
    `SSNMFClusterer` joins the samples of hard must-links, and raises an error if hard pairs
    contradict each other. It weighs soft must-links and all cannot-links against the similarities.
    A must-link of infinite weight gets the largest finite weight of the must-links, but at least 1.
    A cannot-link of infinite weight gets three times the largest finite weight of the cannot-links,
    but at least 3.

    Two samples can be linked by a chain of must-links. If a split leaves out a sample between them,
    they are no longer linked. To keep such links, split the `closure`. On average, the training
    part of a split into k folds contains a share of (1 - 1/k)^2 of the pairs. To keep every hard
    must-link, use `GroupKFold` with `components()` as the groups.

    Examples
    --------
    >>> from nmfcluster.constraints import PairwiseConstraints
    >>> known = PairwiseConstraints(6, must_link=[(0, 1), (4, 1)], cannot_link=[(5, 0)])
    >>> known
    PairwiseConstraints(n_samples=6, must_link: 2 pairs, cannot_link: 1 pair)
    >>> known[[1, 3, 4, 5]].must_link
    array([[0, 2]])
    """

    n_samples: int
    must_link: np.ndarray
    cannot_link: np.ndarray
    must_link_weights: np.ndarray
    cannot_link_weights: np.ndarray
    must_link_hard: np.ndarray
    cannot_link_hard: np.ndarray
    index: Any = None
    _links: Sequence[Links]  # must-links and cannot-links, which hold the arrays above

    def __init__(
        self, n_samples: int, must_link: Any = None, cannot_link: Any = None
    ) -> None:
        samples = range(check_count(n_samples, "n_samples", 0))
        must = read_pairs(must_link, "must_link", samples)
        cannot = read_pairs(cannot_link, "cannot_link", samples)
        self.__setstate__({"n_samples": len(samples), "_links": (must, cannot)})

    @classmethod
    def _of_links(cls, n_samples, links, names=None):
        """Return constraints that hold two checked `Links`."""
        new = cls.__new__(cls)
        new.__setstate__({"n_samples": n_samples, "_links": links, "index": names})
        return new

    def _with_hard_must_links(self, hard):
        """Return the same pairs with other hard must-links.

        `hard` is a bool for all must-links, or an array of one bool for each.
        """
        must, cannot = self._links
        must = must._replace(hard=np.full(len(must.pairs), hard))
        return self._of_links(len(self), (must, cannot), self.index)

    def __setstate__(self, state: dict[str, Any]) -> None:
        must, cannot = state["_links"]
        vars(self).update(
            state,
            must_link=must.pairs,
            must_link_weights=must.weights,
            must_link_hard=must.hard,
            cannot_link=cannot.pairs,
            cannot_link_weights=cannot.weights,
            cannot_link_hard=cannot.hard,
        )
        for part in must + cannot:
            part.flags.writeable = False  # pickles do not store this flag

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"{name} of PairwiseConstraints cannot be set: make new constraints."
        )

    @classmethod
    def from_labels(
        cls, labels: Any, n_pairs: int | None = None, random_state: Any = None
    ) -> Self:
        """Make must-links within classes, and cannot-links between classes, from labels.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Classes, integers or strings. Negative numbers, None and NaN mark unlabelled samples.
        n_pairs : int, default=None
            Number of pairs to draw at random from all pairs of labelled samples. None takes all
            pairs, whose number grows with the square of the number of samples.
        random_state : int, RandomState, Generator or None, default=None
            Determines which pairs are drawn. Pass an int for reproducible results.

        Returns
        -------
        PairwiseConstraints

        Raises
        ------
        TypeError
            If the labels are of several kinds, or `n_pairs` is not an integer.
        ValueError
            If the labels are not one-dimensional or are fractions, or `n_pairs` is too large.

        Examples
        --------
        >>> from nmfcluster import PairwiseConstraints
        >>> known = PairwiseConstraints.from_labels(["a", None, "b", "a"])
        >>> known.must_link, known.cannot_link
        (array([[0, 3]]), array([[0, 2], [2, 3]]))
        """
        codes = read_labels(labels)
        links = make_links_of_labels(codes, n_pairs, random_state)
        return cls._of_links(len(codes), links, row_names(labels))

    @classmethod
    def from_ids(cls, ids: Any, must_link: Any = None, cannot_link: Any = None) -> Self:
        """Make constraints from pairs of ids of samples.

        Parameters
        ----------
        ids : sequence of hashable, pandas Index or pandas DataFrame
            The distinct ids of the samples, in the order of the samples. For a data frame, its
            index is used.
        must_link, cannot_link : array-like, DataFrame, iterable or None, default=None
            Pairs of ids of samples in the same cluster, and in different clusters. A pair is (a, b)
            or (a, b, weight). An array has shape (n_pairs, 2) or (n_pairs, 3), and an iterable can
            contain both forms.

        Returns
        -------
        PairwiseConstraints

        Raises
        ------
        TypeError
            If `ids` is not a sequence of hashable ids, or a weight is not a number.
        ValueError
            If an id occurs twice in `ids`, or a pair holds an id that is not in `ids`.

        Examples
        --------
        >>> from nmfcluster import PairwiseConstraints
        >>> ids = ["ann", "bob", "eve"]
        >>> known = PairwiseConstraints.from_ids(ids, [("eve", "bob")], [("bob", "ann", 0.5)])
        >>> known.must_link, known.cannot_link, known.cannot_link_weights
        (array([[1, 2]]), array([[0, 1]]), array([0.5]))
        """
        samples, names = read_ids(None, ids)
        must = read_pairs(must_link, "must_link", samples)
        cannot = read_pairs(cannot_link, "cannot_link", samples)
        return cls._of_links(len(samples), (must, cannot), names)

    @classmethod
    def from_table(
        cls,
        pairs: Any,
        kinds: Any = None,
        *,
        n_samples: int | None = None,
        ids: Any = None,
        names: Any = None,
        hard: Any = None,
    ) -> Self:
        """Make constraints from one table that holds both must-links and cannot-links.

        Parameters
        ----------
        pairs : array-like, DataFrame, iterable of rows, or sparse matrix
            Rows (a, b, kind). The kind is a word or a signed weight. The words are "must",
            "must-link" and "ML" for a weight of 1, and "cannot", "cannot-link" and "CL" for -1. A
            positive weight is a must-link, and a negative weight is a cannot-link. A fourth column
            can contain weights above 0, which multiply the kinds, or bools that mark hard pairs.
            You can also pass a sparse matrix of signed weights, of shape (n_samples, n_samples).
        kinds : array-like of shape (n_pairs,), default=None
            The kinds of the pairs, such as 1 and -1, if the rows of `pairs` are (a, b). Some other
            packages use this form.
        n_samples : int, default=None
            Number of samples, if pairs contain positions from 0. For a sparse matrix, the default
            is its number of rows.
        ids : sequence of hashable, pandas Index or pandas DataFrame, default=None
            The distinct ids of the samples, in the order of the samples, if pairs contain ids. For
            a data frame, its index is used. Pass either `ids` or `n_samples`.
        names : sequence of hashable, pandas Index or pandas DataFrame, default=None
            Another name of `ids`.
        hard : bool or array-like of shape (n_pairs,), bool, default=None
            Whether pairs are hard, as one bool for all pairs or one for each. Pairs of infinite
            weight are always hard. By default, other pairs are soft if some weights are infinite.
            If no weight is infinite, pairs of weight 1 or more are hard by default.

        Returns
        -------
        PairwiseConstraints

        Raises
        ------
        TypeError
            If `pairs` is not a table, a position or a weight is not a number, or an id is not
            hashable. If both or neither of `n_samples` and `ids` are passed.
        ValueError
            If a sample or a kind is unknown, a weight of the fourth column is not above 0, or a row
            does not have three or four entries. If `hard` is neither a bool nor one bool for each
            row.

        Examples
        --------
        Read pairs in the format of COP-KMeans, and then two uncertain pairs and a certain pair:

        >>> from nmfcluster import PairwiseConstraints
        >>> PairwiseConstraints.from_table([(0, 3, 1), (2, 0, -1)], n_samples=4)
        PairwiseConstraints(n_samples=4, must_link: 1 pair, cannot_link: 1 pair)
        >>> rows = [("ann", "eve", 0.7), ("bob", "eve", -0.2), ("bob", "ann", float("inf"))]
        >>> known = PairwiseConstraints.from_table(rows, ids=["ann", "bob", "eve"])
        >>> known.must_link, known.must_link_weights, known.must_link_hard
        (array([[0, 1], [0, 2]]), array([1. , 0.7]), array([ True, False]))
        """
        if n_samples is None and ids is None and sp.issparse(pairs):
            n_samples = pairs.shape[0]
        samples, names = read_ids(n_samples, ids, names)
        if kinds is not None:
            pairs = _join_columns(pairs, kinds)
        links = read_signed_pairs(pairs, samples, hard)
        return cls._of_links(len(samples), links, names)

    @classmethod
    def from_groups(
        cls,
        groups: Any,
        *,
        n_samples: int | None = None,
        ids: Any = None,
        names: Any = None,
        apart: bool = False,
    ) -> Self:
        """Make pairs from groups of samples that belong together, also called chunklets.

        Parameters
        ----------
        groups : sequence of sequences, or mapping to them
            The samples of each group: their positions or, with `ids`, their ids. A sample can be in
            at most one group. If you pass a mapping, such as ``frame.groupby("visit").groups``, its
            values are used.
        n_samples : int, default=None
            Number of samples, if groups contain positions.
        ids : sequence of hashable, pandas Index or pandas DataFrame, default=None
            The distinct ids of the samples, in the order of the samples. For a data frame, its
            index is used. Pass either `ids` or `n_samples`.
        names : sequence of hashable, pandas Index or pandas DataFrame, default=None
            Another name of `ids`.
        apart : bool, default=False
            Whether samples of different groups must be in different clusters. If False, several
            groups can share a cluster.

        Returns
        -------
        PairwiseConstraints
            Must-links for all pairs of samples within groups. With ``apart=True``, also
            cannot-links for all pairs of samples in different groups, as `from_labels` makes them
            if the groups are classes.

        Raises
        ------
        TypeError
            If `groups` or one of the groups is not a sequence, or `apart` is not a bool. If both
            or neither of `n_samples` and `ids` are passed.
        ValueError
            If a group holds an unknown sample, or a sample is in two groups.

        Examples
        --------
        >>> from nmfcluster import PairwiseConstraints
        >>> known = PairwiseConstraints.from_groups([[0, 2, 3], [1, 5]], n_samples=6)
        >>> known.must_link.tolist()
        [[0, 2], [0, 3], [1, 5], [2, 3]]
        >>> days = {"Monday": ["ann", "eve"], "Tuesday": ["bob"]}
        >>> known = PairwiseConstraints.from_groups(days, ids=["ann", "bob", "eve"], apart=True)
        >>> known.must_link.tolist(), known.cannot_link.tolist()
        ([[0, 2]], [[0, 1], [1, 2]])
        """
        samples, names = read_ids(n_samples, ids, names)
        codes = read_groups(groups, samples, apart)
        if apart:
            links = make_links_of_labels(codes)
        else:
            links = make_links_of_groups(codes), NO_LINKS
        return cls._of_links(len(codes), links, names)

    @property
    def n_pairs(self) -> int:
        """Number of pairs, that is, of must-links and cannot-links together."""
        return len(self.must_link) + len(self.cannot_link)

    @property
    def shape(self) -> tuple[int]:
        """Shape ``(n_samples,)``, which scikit-learn needs to split constraints with samples."""
        return (self.n_samples,)

    @property
    def iloc(self) -> Self:
        """The constraints themselves, because they are always indexed by position."""
        return self

    loc = iloc  # samples are selected only by position

    def __len__(self) -> int:
        return self.n_samples

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "PairwiseConstraints cannot be iterated: use its must_link and cannot_link."
        )

    def __getitem__(self, key: Any) -> Self:
        samples = axis_positions(key, len(self), "sample", "PairwiseConstraints")
        links = [copy_links(links, samples) for links in self._links]
        names = None if self.index is None else self.index[samples]
        return self._of_links(len(samples), links, names)

    def take(self, indices: Any, axis: int = 0) -> Self:
        """Return the constraints between selected samples, like ``constraints[indices]``.

        Parameters
        ----------
        indices : array-like of shape (n_taken,), int, or bool of shape (n_samples,)
            Positions of the samples in their new order, or a mask. A sample that occurs n times
            becomes n samples.
        axis : {0}, default=0
            The axis of the samples, which is the only one.

        Returns
        -------
        PairwiseConstraints

        Raises
        ------
        TypeError
            If `indices` is a single number or holds anything but integers or booleans.
        ValueError
            If an index is out of range, a mask has the wrong length, or `axis` is not 0.

        Examples
        --------
        >>> PairwiseConstraints(4, must_link=[(0, 3)]).take([3, 2, 0, 0]).must_link
        array([[0, 2], [0, 3]])
        """
        if axis != 0:
            raise ValueError(f"axis must be 0, the axis of samples, got {axis!r}.")
        return self[indices]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairwiseConstraints):
            return NotImplemented
        own = chain.from_iterable(self._links)
        others = chain.from_iterable(other._links)
        return len(self) == len(other) and all(map(np.array_equal, own, others))

    __hash__ = None  # type: ignore[assignment]  # as for arrays

    def __repr__(self) -> str:
        must = format_count(len(self.must_link), "pair")
        cannot = format_count(len(self.cannot_link), "pair")
        return (
            f"{type(self).__name__}(n_samples={len(self)}, must_link: {must}, "
            f"cannot_link: {cannot})"
        )

    def components(self) -> np.ndarray:
        """Return the groups of samples that hard must-links join, directly or by a chain.

        Returns
        -------
        ndarray of shape (n_samples,), int
            Number of the group of each sample. Groups are numbered in order of appearance.

        Examples
        --------
        >>> PairwiseConstraints(5, must_link=[(0, 4), (4, 2)]).components()
        array([0, 1, 0, 2, 0])
        """
        return components(self.n_samples, self.must_link[self.must_link_hard])

    def closure(self) -> Self:
        """Return these pairs and all pairs that follow from them.

        All samples that hard must-links join, directly or by a chain, form a group. The result
        contains all must-links within groups. If a pair links samples of two groups, the result
        contains this pair for all samples of both groups. The number of pairs grows with the square
        of the group sizes. The total weight stays the same: the weights of the original pairs
        within a group, or between two groups, are shared evenly by all pairs there.

        Returns
        -------
        PairwiseConstraints

        Raises
        ------
        ValueError
            If hard pairs contradict each other.

        Examples
        --------
        >>> closed = PairwiseConstraints(4, [(0, 1), (1, 2)], [(2, 3)]).closure()
        >>> closed.cannot_link_weights
        array([0.33333333, 0.33333333, 0.33333333])
        """
        self.check()
        must, cannot = self._links
        group = self.components()
        one, other = group[cannot.pairs].T
        # a soft cannot-link inside a group cannot be satisfied
        between = cannot.where(one != other)
        links = link_all_members(must, group), link_all_members(between, group)
        return self._of_links(len(self), links, self.index)

    def check(self, n_clusters: int | None = None) -> str:
        """Raise an error if it is easy to prove that no clustering can satisfy all hard pairs.

        The check always finds must-links that contradict a cannot-link. It also finds whether one
        or two clusters are enough. Whether k > 2 clusters are enough is hard to decide. A greedy
        search then looks for k + 1 samples of which any two must be in different clusters.

        Parameters
        ----------
        n_clusters : int, default=None
            Largest number of clusters allowed. None allows any number.

        Returns
        -------
        {"feasible", "undecided"}
            "feasible" if some clustering is known to satisfy all hard pairs, and "undecided"
            otherwise. For k > 2 clusters, the check removes groups of linked samples that have
            cannot-links with fewer than k other groups, one after another. If no group is left, the
            pairs are feasible.

        Raises
        ------
        ValueError
            If hard must-links join the two samples of a hard cannot-link, or if `n_clusters` is
            below 1 or too small for the cannot-links. The message names the samples.

        Examples
        --------
        >>> PairwiseConstraints(10, [(3, 5), (5, 9)], [(0, 9)]).check(n_clusters=2)
        'feasible'
        >>> PairwiseConstraints(10, [(3, 5), (5, 9)], [(3, 9)]).check()
        Traceback (most recent call last):
            ...
        ValueError: samples 3 and 9 cannot be linked, but must-link pairs join them: 3-5-9.
        """
        if n_clusters is not None:
            n_clusters = check_count(n_clusters, "n_clusters", 1)
        return check_pairs(self, n_clusters)

    def satisfied(self, labels: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return which pairs a clustering satisfies.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Cluster of every sample. A negative label, None or NaN marks a sample in no cluster; all
            its pairs count as violated.

        Returns
        -------
        must_ok, cannot_ok : ndarray of shape (n_must_link,) and (n_cannot_link,), bool
            Whether the samples of each must-link are in one cluster, and whether the samples of
            each cannot-link are in different clusters.

        Raises
        ------
        TypeError
            If the labels are neither integers nor strings, or of several kinds.
        ValueError
            If the labels are not an array of shape (n_samples,), or are fractions.

        Examples
        --------
        >>> PairwiseConstraints(4, [(0, 1), (1, 2)], [(2, 3)]).satisfied([0, 0, 1, 2])
        (array([ True, False]), array([ True]))
        """
        codes = read_labels(labels)
        if len(codes) != len(self):
            raise ValueError(
                f"labels must have n_samples={len(self)} entries, one for each sample, got "
                f"{len(codes)}."
            )
        a, b = codes[self.must_link].T
        c, d = codes[self.cannot_link].T
        must_ok = (a == b) & (a >= 0)
        cannot_ok = (c != d) & (c >= 0) & (d >= 0)
        return must_ok, cannot_ok

    def satisfaction(self, labels: Any) -> float:
        """Return the share of pairs that a clustering satisfies, without regard to weights.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Cluster of every sample. Errors are raised as by `satisfied`.

        Returns
        -------
        float
            A number in [0, 1]; NaN without pairs.

        Examples
        --------
        >>> PairwiseConstraints(4, [(0, 1), (1, 2)], [(1, 3), (2, 3)]).satisfaction([0, 0, 1, 2])
        0.75
        """
        satisfied = np.concatenate(self.satisfied(labels))
        return float(satisfied.mean()) if len(satisfied) else float("nan")

    def as_matrices(self, dtype: Any = np.float64) -> tuple[sp.csr_array, sp.csr_array]:
        """Return the weights of the pairs as two matrices.

        Parameters
        ----------
        dtype : float dtype, default=float64
            Type of the entries.

        Returns
        -------
        A, B : sparse array of shape (n_samples, n_samples)
            The weights of must-links, and of cannot-links. The weight of a pair (i, j) is the entry
            at (i, j) and at (j, i).

        Raises
        ------
        TypeError
            If `dtype` is not a float dtype.

        Examples
        --------
        >>> A, B = PairwiseConstraints(2, must_link=[(0, 1, 0.5)]).as_matrices()
        >>> A.toarray().tolist()
        [[0.0, 0.5], [0.5, 0.0]]
        """
        if np.dtype(dtype).kind != "f":
            raise TypeError(
                f"dtype must be a float dtype, such as np.float64, got {dtype!r}."
            )
        # fits refuse weights that become infinite when they are added to similarities
        with np.errstate(over="ignore"):
            A, B = (
                make_adjacency(len(self), links.pairs, links.weights.astype(dtype))
                for links in self._links
            )
        return A, B


def read_pairs(value, name, samples):
    """Return pairs of one kind as checked `Links`.

    Parameters
    ----------
    value : array-like, data frame, sparse matrix, iterable of pairs or None
    name : {"must_link", "cannot_link"}
        Kind of the pairs, and name of `value` in error messages.
    samples : range, or dict of positions by id
        A range if pairs contain positions of samples, and a dict if they contain ids.

    Returns
    -------
    Links
    """
    if value is None:
        return NO_LINKS
    pairs, *columns = _read_columns(value, name, samples)
    weights = _as_numbers(columns[0], name) if columns else np.ones(len(pairs))
    return _normalize_links(Links(pairs, weights, _find_hard(weights)), name, samples)


def read_signed_pairs(value, samples, hard):
    """Return the must-links and the cannot-links of one table as checked `Links`.

    Parameters
    ----------
    value : array-like, data frame, sparse matrix or iterable of rows
        The columns are two samples, a kind or a signed weight, and optionally a weight, or a bool
        that marks hard pairs. The entries of a sparse matrix are signed weights.
    samples : range, or dict of positions by id
    hard : bool, array-like of shape (n_pairs,), bool, or None
        Which pairs are hard in addition to pairs of infinite weight. If None, the weights decide.

    Returns
    -------
    must, cannot : Links
    """
    pairs, kinds, *columns = _read_columns(value, "pairs", samples)
    signed = _read_signed_weights(kinds)
    # read a fourth column of weights, or of bools that mark hard pairs
    if columns and hard is None and set(map(type, columns[0])) <= _BOOLS:
        hard = columns[0]
    elif columns:
        weights = _as_numbers(columns[0], "pairs")
        if not (weights > 0).all():
            raise ValueError(
                "the fourth column of pairs must hold weights above 0, or bools, got "
                f"{weights.min()}: put the sign into the third column."
            )
        signed = signed * weights
    if hard is not None:
        flags = np.asarray(hard, dtype=object)
        fits = flags.shape in ((), signed.shape)
        if not fits or not set(map(type, flags.flat)) <= _BOOLS:
            form = (
                f"None, a bool, or one for each of {format_count(len(signed), 'pair')}"
            )
            raise ValueError(f"hard must be {form}; got {format_value(hard)}.")
        hard = flags.astype(bool)
    weights = np.abs(signed)
    links = Links(pairs, weights, _find_hard(weights, hard))
    must = _normalize_links(links.where(signed > 0), "must_link", samples)
    cannot = _normalize_links(links.where(signed < 0), "cannot_link", samples)
    return must, cannot


def _join_columns(pairs, kinds):
    """Return rows (a, b, kind)."""
    table = np.array(pairs, dtype=object)
    column = np.array(kinds, dtype=object)
    if table.ndim != 2 or table.shape[1] != 2 or column.shape != (len(table),):
        raise ValueError(
            "with kinds, pairs must have shape (n_pairs, 2), and kinds shape (n_pairs,); got "
            f"shapes {table.shape} and {column.shape}."
        )
    return np.column_stack([table, column])


def _read_columns(value, name, samples):
    """Return the positions of the samples of pairs, (n_pairs, 2), and further columns.

    Lists are read as objects: NumPy would convert a row of strings and numbers to strings.
    """
    if sp.issparse(value):
        n = len(samples)
        samples = range(n)  # rows are positions of samples, even if samples have ids
        if value.shape != (n, n):
            raise ValueError(
                f"{name} given as a sparse matrix must have shape ({n}, {n}), got {value.shape}. "
                "In cross-validation, which does not split a matrix, pass PairwiseConstraints."
            )
        check_sparse_indices(value, name)
        columns = list(sp.find(value * 1))  # converts bools to numbers
    else:
        columns = _split_columns(value, name)
    ends = [_read_positions(column, name, samples) for column in columns[:2]]
    return [np.column_stack(ends), *columns[2:]]


def _split_columns(value, name):
    """Return the columns of a table of pairs that is not a sparse matrix."""
    of_both_kinds = name == "pairs"
    lengths = (3, 4) if of_both_kinds else (2, 3)
    kind = ", kind" if of_both_kinds else ""
    form = f"{name} must hold pairs (a, b{kind}), or (a, b{kind}, weight), or be a sparse matrix"
    if hasattr(value, "columns"):  # a data frame, of pandas or polars
        value = np.array(value, dtype=object)
    if isinstance(value, np.ndarray) and value.ndim == 2 and value.shape[1] in lengths:
        return list(value.T)
    if isinstance(value, np.ndarray) and value.ndim > 2:
        raise ValueError(
            f"{form}, got shape {value.shape}. Instead of pairs of vectors of features, pass the "
            "positions of their samples."
        )
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{form}, got {format_value(value)}.")
    rows = list(value)
    for row in rows:
        # a set has no order, so it is unknown which of three entries is the weight
        is_sequence = hasattr(row, "__len__") and not isinstance(row, _NO_ROWS)
        if not is_sequence or len(row) not in lengths:
            got = (
                f"shape {value.shape}" if hasattr(value, "shape") else format_value(row)
            )
            raise ValueError(f"{form}, got {got}.")
    if not rows:
        return [np.empty(0, dtype=object)] * lengths[0]
    columns = zip_longest(*rows, fillvalue=1.0)  # pairs without a weight get 1
    return [np.fromiter(column, dtype=object, count=len(rows)) for column in columns]


def _read_positions(names, name, samples):
    """Return the positions of samples that are named by position or by id."""
    n = len(samples)
    if isinstance(samples, dict):
        positions = []
        for one in names:
            try:
                positions.append(samples[one])
            except KeyError:
                raise ValueError(
                    f"{name} must hold ids of samples, but {one!r} is not among the "
                    f"{format_count(n, 'id')}: leave out its pairs, or add it to ids."
                ) from None
            except TypeError:
                raise TypeError(
                    f"{name} must hold hashable ids, got {format_value(one)}."
                ) from None
        return np.array(positions, dtype=np.intp)
    numbers = _as_numbers(names, name, _HINT_OF_NAMES)
    is_whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
    bad = ~(is_whole & (numbers >= 0))
    if bad.any():
        raise ValueError(
            f"{name} must hold positions of samples, whole numbers from 0, got {numbers[bad][0]}."
        )
    too_large = numbers[numbers >= n]
    if len(too_large):
        raise ValueError(
            f"{name} must hold positions below n_samples={n}, got {int(too_large[0])}. "
            "In cross-validation, pass PairwiseConstraints as constraints=: a plain list of pairs "
            "is not split with the samples."
        )
    return numbers.astype(np.intp)


def _as_numbers(column, name, hint=""):
    """Return a column as numbers; raise an error, with `hint` if the column holds text."""
    if column.dtype.kind in "iuf":
        return column
    types = set(map(type, column))
    odd = {kind for kind in types if kind in _BOOLS or not issubclass(kind, Real)}
    for value in column:
        if type(value) in odd:
            hint = hint if isinstance(value, str) else ""
            raise TypeError(
                f"{name} must hold numbers, got {format_value(value)}.{hint}"
            )
    try:
        return column.astype(np.float64)
    except OverflowError:
        huge = format_value(max(column, key=abs))
        raise ValueError(
            f"{name} must hold numbers that fit into a float, but {huge} is too large."
        ) from None


def _read_signed_weights(kinds):
    """Return signed weights, positive for must-links and negative for cannot-links."""
    signed = np.zeros(len(kinds))
    if all(issubclass(kind, Real) for kind in set(map(type, kinds))):
        signed = _as_numbers(kinds, "pairs").astype(float)
    for i in np.flatnonzero(signed == 0):
        with suppress(TypeError, ValueError, OverflowError):
            signed[i] = float(_SIGNS.get(str(kinds[i]).strip().lower(), kinds[i]))
    bad = ~(np.abs(signed) > 0)
    if bad.any():
        form = "must or cannot, 1 or -1, ML or CL, or a signed weight other than 0"
        raise ValueError(
            f"the kinds of pairs must be {form}, got {format_value(kinds[bad][0])}."
        )
    return signed


def _find_hard(weights, hard=None):
    """Return which pairs are hard: those of infinite weight, and those that `hard` marks.

    Without `hard`, and if no weight is infinite, pairs of weight 1 or more are hard.
    """
    infinite = np.isinf(weights)
    if hard is not None:
        return infinite | hard
    return infinite if infinite.any() else weights >= 1


def _normalize_links(links, name, samples):
    """Return sorted, distinct links with checked finite weights."""
    pairs, weights, hard = links
    bad = ~(weights >= 0)
    if bad.any():
        raise ValueError(
            f"{name} must have weights of at least 0, got {weights[bad][0]} for the pair "
            f"{_names_at(pairs[bad][0], samples)}."
        )
    infinite = np.isinf(weights)
    largest = weights[~infinite].max(initial=1)
    if name == "cannot_link":
        largest = largest * _INFINITE_CANNOT_LINK
    weights = np.where(infinite, largest, weights)
    used = weights > 0
    is_loop = pairs[:, 0] == pairs[:, 1]
    if name == "must_link":
        used &= ~is_loop
    elif (used & is_loop).any():
        pair = _names_at(pairs[used & is_loop][0], samples)
        raise ValueError(
            f"{name} must hold pairs of two different samples, got {pair}: leave it out."
        )
    return make_links(pairs[used], weights[used].astype(np.float64), hard[used])


def _names_at(positions, samples):
    """Return the names of some samples for a message: their ids, or their positions."""
    names = list(samples)
    return tuple(names[i] for i in positions)


def read_ids(n_samples, ids, names=None):
    """Return a map from names of samples to positions, and the index to store.

    Parameters
    ----------
    n_samples : int or None
    ids : sequence of hashable, pandas Index, pandas DataFrame or None
        Either this or `n_samples` must be passed.
    names : as ids, default=None
        Another name of `ids`.

    Returns
    -------
    samples : range, or dict of positions by id
    names : pandas Index, ndarray or None
    """
    if names is not None:
        if ids is not None:
            raise TypeError(
                "names and ids are the same parameter: pass only one of them."
            )
        ids = names
    if (n_samples is None) == (ids is None):
        raise TypeError("pass either n_samples or ids, not both or neither.")
    if ids is None:
        return range(check_count(n_samples, "n_samples", 0)), None
    names = None if isinstance(ids, str | bytes) else ids
    if hasattr(ids, "columns"):
        names = getattr(ids, "index", None)  # polars data frames have no index
    position: dict[Any, int] = {}
    try:
        for number, name in enumerate(names):
            first = position.setdefault(name, number)
            if first != number:
                raise ValueError(
                    f"ids must be distinct, but samples {first} and {number} are both {name!r}: "
                    "rename one of them."
                )
    except TypeError:
        form = (
            "a sequence of hashable ids, one a sample, or a pandas Index or DataFrame"
        )
        raise TypeError(f"ids must be {form}; got {format_value(ids)}.") from None
    index = row_names(ids)
    return position, np.fromiter(position, dtype=object) if index is None else index


def read_groups(groups, samples, apart):
    """Return the group of every sample, numbered from 0; -1 marks samples in no group.

    Parameters
    ----------
    groups : sequence of sequences, or mapping to them
    samples : range, or dict of positions by id
    apart : bool
        The function only checks its type.

    Returns
    -------
    ndarray of shape (n_samples,), int
    """
    if type(apart) not in _BOOLS:
        raise TypeError(f"apart must be a bool, got {format_value(apart)}.")
    codes = np.full(len(samples), -1, dtype=np.intp)
    if isinstance(groups, Mapping):
        groups = groups.values()
    if isinstance(groups, str | bytes) or not isinstance(groups, Iterable):
        raise TypeError(
            f"groups must be a sequence of groups, such as [[0, 1], [4, 5]], got "
            f"{format_value(groups)}."
        )
    for number, members in enumerate(groups):
        try:
            names = np.fromiter(members, dtype=object)
            # refuse strings, whose letters are not ids, and masks, whose True would count as 1
            if isinstance(members, str | bytes) or _BOOLS & set(map(type, names)):
                raise TypeError
        except TypeError:
            form = "groups must hold sequences of positions or ids of samples"
            raise TypeError(f"{form}, got {format_value(members)}.") from None
        own = _read_positions(names, "groups", samples)
        taken = own[codes[own] >= 0]
        if len(taken):
            sample = _names_at(taken, samples)[0]
            raise ValueError(
                f"groups must not share samples, but {sample!r} is in groups {codes[taken[0]]} "
                f"and {number}: merge these groups."
            )
        codes[own] = number
    return codes


def read_labels(labels):
    """Return labels as numbers from 0, with -1 for unlabelled samples."""
    column = np.asarray(None)
    with suppress(TypeError, ValueError):
        column = as_label_vector(labels)
    if column.ndim != 1:
        got = f"shape {column.shape}" if column.ndim else format_value(labels)
        raise ValueError(f"labels must have shape (n_samples,), got {got}.")
    values, marks = clean_labels(column, "labels")
    codes = np.full(len(column), -1, dtype=np.intp)
    codes[marks >= 0] = np.unique(values, return_inverse=True)[1]
    return codes
