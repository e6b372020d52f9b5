"""What is known of pairs of samples: those of one cluster, and those of different ones."""

from __future__ import annotations

from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_random_state

from nmfcluster._arrays.arguments import check_count, shown
from nmfcluster._arrays.labels import as_vector, clean_labels
from nmfcluster.constraints.graph import colouring, components, shortest_chain
from nmfcluster.constraints.reading import (
    Links,
    checked_links,
    copied_pairs,
    distinct_pairs,
    draw_numbers,
    pair_numbered,
    positions_of,
    read_ids,
    read_pairs,
    samples_at,
)

__all__ = ["PairwiseConstraints"]

_N_SHOWN = 20  # samples that an error message names before it leaves some out


class PairwiseConstraints:
    """Pairs of samples that must be in one cluster, and pairs that cannot be.

    It stands for the samples that it constrains, and is split as they are: indexed by samples, it
    keeps the pairs that have both ends among them, and renumbers these. So cross-validation,
    grid search, pipelines, `train_test_split`, `shuffle` and `resample` of scikit-learn hand every
    fold the pairs that belong to it. A plain list of pairs would go to all folds as it is,
    and there name other samples. Whether the pairs contradict each other is not
    looked at here, see `check`.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    must_link : array-like, sparse matrix or None, default=None
        Pairs of samples (i, j) of the same cluster, of shape (n_pairs, 2), or (n_pairs, 3) with
        weights in the third column: what it costs to violate a pair, 1 by default. A sparse
        matrix of shape (n_samples, n_samples) has the weights as its entries. The order of the
        two samples does not matter; of a pair that is given several times the largest weight
        counts; a pair of weight 0 is left out, and so is a sample with itself.
    cannot_link : array-like, sparse matrix or None, default=None
        Pairs of samples of different clusters, in the same form.

    Raises
    ------
    TypeError
        If `n_samples` is no integer, or the pairs are no numbers.
    ValueError
        If an index is negative, not whole, or not below `n_samples`; if a weight is negative or
        not finite; if `cannot_link` holds a sample with itself; if a shape is none of the above.

    Notes
    -----
    Two samples that must be linked to a third one must be linked too. Splitting forgets that when
    the third one is left out; `closure` makes such pairs explicit, and belongs before a split.
    Splitting into k folds keeps a share of (1 - 1/k)^2 of the pairs for training.
    `GroupKFold` with `components` as the groups keeps every must-link pair.

    Examples
    --------
    >>> from nmfcluster.constraints import PairwiseConstraints
    >>> known = PairwiseConstraints(6, must_link=[(0, 1), (4, 1)], cannot_link=[(5, 0)])
    >>> known
    PairwiseConstraints(n_samples=6, must_link: 2 pairs, cannot_link: 1 pair)
    >>> known[[1, 3, 4, 5]].must_link
    array([[0, 2]])
    """

    def __init__(self, n_samples: int, must_link: Any = None, cannot_link: Any = None) -> None:
        check_count(n_samples, "n_samples", 0)
        n_samples = int(n_samples)
        must = checked_links(*read_pairs(must_link, "must_link", n_samples), "must_link")
        cannot = checked_links(*read_pairs(cannot_link, "cannot_link", n_samples), "cannot_link")
        self.__setstate__({"_n_samples": n_samples, "_must": must, "_cannot": cannot})

    @classmethod
    def _made(cls, n_samples: int, must: Links, cannot: Links) -> Self:
        """Return constraints made of pairs that need no checks."""
        new = cls.__new__(cls)
        new.__setstate__({"_n_samples": n_samples, "_must": must, "_cannot": cannot})
        return new

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._n_samples: int = state["_n_samples"]
        self._must: Links = state["_must"]
        self._cannot: Links = state["_cannot"]
        for array in (*self._must, *self._cannot):
            array.flags.writeable = False  # not kept by pickle, hence here

    @classmethod
    def from_labels(
        cls,
        labels: Any,
        n_pairs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> Self:
        """Make pairs of samples whose class is known: equal classes must link, others cannot.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Classes, integers or strings. -1 or another negative number, None and NaN mean that
            the class of the sample is not known.
        n_pairs : int, default=None
            Number of pairs, drawn without replacement from all pairs of samples of known class,
            each with the same chance. None takes all of these pairs, whose number grows with the
            square of the number of samples.
        random_state : int, RandomState instance or None, default=None
            Where the draws come from; an int makes them repeatable.

        Returns
        -------
        PairwiseConstraints

        Raises
        ------
        TypeError
            If the labels are of several kinds, or `n_pairs` is no integer.
        ValueError
            If the labels are not in one dimension, are fractions, or if there are fewer than
            `n_pairs` pairs.

        Examples
        --------
        >>> from nmfcluster.constraints import PairwiseConstraints
        >>> known = PairwiseConstraints.from_labels(["a", None, "b", "a"])
        >>> known.must_link, known.cannot_link
        (array([[0, 3]]), array([[0, 2], [2, 3]]))
        >>> PairwiseConstraints.from_labels([0, 0, 1, 1] * 20, n_pairs=40, random_state=0).n_pairs
        40
        """
        codes = _encode(labels)
        known = np.flatnonzero(codes >= 0)
        total = len(known) * (len(known) - 1) // 2
        if n_pairs is None:
            drawn = np.arange(total)
        else:
            drawn = draw_numbers(check_random_state(random_state), total, n_pairs, len(known))
        pairs = known[pair_numbered(drawn)]
        same = codes[pairs[:, 0]] == codes[pairs[:, 1]]
        ones = np.ones(len(pairs))
        must, cannot = ((pairs[part], ones[part]) for part in (same, ~same))
        return cls._made(len(codes), distinct_pairs(*must), distinct_pairs(*cannot))

    @classmethod
    def from_ids(cls, ids: Any, must_link: Any = None, cannot_link: Any = None) -> Self:
        """Make constraints of pairs that name samples by their ids.

        Parameters
        ----------
        ids : sequence of hashable, pandas Index or pandas DataFrame
            The id of every sample, in the order of the samples, none twice. Of a data frame its
            index counts.
        must_link : array-like, DataFrame, sequence or None, default=None
            Pairs of ids of samples of the same cluster, of shape (n_pairs, 2), or (n_pairs, 3)
            with weights in the third column. In a sequence, (a, b) and (a, b, weight) may stand
            side by side.
        cannot_link : array-like, DataFrame, sequence or None, default=None
            Pairs of ids of samples of different clusters, in the same form.

        Returns
        -------
        PairwiseConstraints

        Raises
        ------
        TypeError
            If `ids` is no sequence of hashable ids, or a weight is no number.
        ValueError
            If an id occurs twice in `ids`, or a pair names an id that is not there.

        Examples
        --------
        >>> from nmfcluster.constraints import PairwiseConstraints
        >>> known = PairwiseConstraints.from_ids(
        ...     ["ann", "bob", "eve"], must_link=[("eve", "bob")], cannot_link=[("bob", "ann", 0.5)]
        ... )
        >>> known.must_link, known.cannot_link, known.cannot_link_weights
        (array([[1, 2]]), array([[0, 1]]), array([0.5]))
        """
        position = positions_of(ids)
        must = read_ids(must_link, "must_link", position)
        cannot = read_ids(cannot_link, "cannot_link", position)
        return cls._made(
            len(position),
            checked_links(*must, "must_link"),
            checked_links(*cannot, "cannot_link", list(position).__getitem__),
        )

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self._n_samples

    @property
    def must_link(self) -> np.ndarray:
        """Pairs (i, j) of one cluster, (n_must_link, 2) int: i < j, sorted, each once."""
        return self._must.pairs

    @property
    def cannot_link(self) -> np.ndarray:
        """Pairs (i, j) of two clusters, (n_cannot_link, 2) int: i < j, sorted, each once."""
        return self._cannot.pairs

    @property
    def must_link_weights(self) -> np.ndarray:
        """What it costs to violate each of `must_link`, (n_must_link,) float64, positive."""
        return self._must.weights

    @property
    def cannot_link_weights(self) -> np.ndarray:
        """What it costs to violate each of `cannot_link`, (n_cannot_link,) float64, positive."""
        return self._cannot.weights

    @property
    def n_pairs(self) -> int:
        """Number of pairs, must-link and cannot-link."""
        return len(self.must_link) + len(self.cannot_link)

    @property
    def shape(self) -> tuple[int]:
        """``(n_samples,)``: by it scikit-learn takes this for one entry a sample."""
        return (self.n_samples,)

    @property
    def iloc(self) -> Self:
        """The constraints themselves: they are indexed by position."""
        return self

    @property
    def loc(self) -> Self:
        """The constraints themselves: a sample has no name but its position."""
        return self

    def __len__(self) -> int:
        return self.n_samples

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "PairwiseConstraints cannot be walked through sample by sample; its pairs are in "
            "must_link and cannot_link."
        )

    def __getitem__(self, key: Any) -> Self:
        samples = samples_at(key, self.n_samples)
        kept = (
            (copied_pairs(links.pairs, samples), links.weights)
            for links in (self._must, self._cannot)
        )
        must, cannot = (distinct_pairs(pairs, weights[source]) for (pairs, source), weights in kept)
        return self._made(len(samples), must, cannot)

    def take(self, indices: Any, axis: int = 0) -> Self:
        """Return the constraints among some samples, as ``constraints[indices]`` does.

        Parameters
        ----------
        indices : array-like of shape (n_taken,), int, or bool of shape (n_samples,)
            The samples, in their new order. A sample that occurs several times becomes as many
            samples, each with its pairs.
        axis : {0}, default=0
            There is but one.

        Returns
        -------
        PairwiseConstraints

        Raises
        ------
        TypeError
            If `indices` is a single number or holds anything but integers or booleans.
        ValueError
            If an index is not among the samples, or `axis` is not 0.

        Examples
        --------
        >>> from nmfcluster.constraints import PairwiseConstraints
        >>> known = PairwiseConstraints(4, must_link=[(0, 3)])
        >>> known.take([3, 2, 0, 0]).must_link
        array([[0, 2], [0, 3]])
        """
        if axis != 0:
            raise ValueError(f"axis must be 0, the samples, got {axis!r}.")
        return self[indices]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairwiseConstraints):
            return NotImplemented
        mine, theirs = (*self._must, *self._cannot), (*other._must, *other._cannot)
        same = (np.array_equal(one, two) for one, two in zip(mine, theirs, strict=True))
        return self.n_samples == other.n_samples and all(same)

    __hash__ = None  # type: ignore[assignment]  # as for arrays

    def __repr__(self) -> str:
        must, cannot = (
            f"{len(pairs)} pair{'s' * (len(pairs) != 1)}"
            for pairs in (self.must_link, self.cannot_link)
        )
        name = type(self).__name__
        return f"{name}(n_samples={self.n_samples}, must_link: {must}, cannot_link: {cannot})"

    def components(self) -> np.ndarray:
        """Return the groups of samples that must-link pairs join.

        As `groups` of `GroupKFold` they keep the samples of every must-link pair together.

        Returns
        -------
        ndarray of shape (n_samples,), int
            Number of the group of each sample, in order of first appearance; a sample without
            must-link pair is a group of its own.

        Examples
        --------
        >>> from nmfcluster.constraints import PairwiseConstraints
        >>> PairwiseConstraints(5, must_link=[(0, 4), (4, 2)]).components()
        array([0, 1, 0, 2, 0])
        """
        return components(self.n_samples, self.must_link)

    def closure(self) -> Self:
        """Return all pairs that follow from these.

        Samples that a chain of must-link pairs joins must be linked. If two samples cannot be
        linked, neither can those that must be with the one and those that must be with the other.
        The number of pairs grows with the square of the size of such groups. Their total weight
        does not grow: the must-link weights within a group are shared evenly by all pairs of the
        group, and the cannot-link weights between two groups by all pairs between these.

        Returns
        -------
        PairwiseConstraints

        Raises
        ------
        ValueError
            If the pairs contradict each other.

        Examples
        --------
        >>> from nmfcluster.constraints import PairwiseConstraints
        >>> known = PairwiseConstraints(4, must_link=[(0, 1), (1, 2)], cannot_link=[(2, 3)])
        >>> known.closure()
        PairwiseConstraints(n_samples=4, must_link: 3 pairs, cannot_link: 3 pairs)
        >>> known.closure().cannot_link_weights
        array([0.33333333, 0.33333333, 0.33333333])
        """
        self.check()
        group = self.components()
        sizes = np.bincount(group)
        large = np.flatnonzero(sizes > 1)
        weights = np.bincount(
            group[self.must_link[:, 0]], weights=self.must_link_weights, minlength=len(sizes)
        )[large] / (sizes[large] * (sizes[large] - 1) / 2)
        pairs, source = copied_pairs(np.column_stack([large, large]), group)
        once = pairs[:, 0] < pairs[:, 1]
        must = distinct_pairs(pairs[once], weights[source[once]])
        links, inverse = np.unique(
            np.sort(group[self.cannot_link], axis=1), axis=0, return_inverse=True
        )
        weights = np.bincount(
            inverse.ravel(), weights=self.cannot_link_weights, minlength=len(links)
        ) / sizes[links].prod(axis=1)
        pairs, source = copied_pairs(links, group)
        cannot = distinct_pairs(pairs, weights[source])
        return self._made(self.n_samples, must, cannot)

    def check(self, n_clusters: int | None = None) -> str:
        """Raise if no clustering can satisfy all pairs, as far as that can be told.

        Parameters
        ----------
        n_clusters : int, default=None
            Number of clusters that there may be at most; None: any number.

        Returns
        -------
        {"feasible", "undecided"}
            "feasible" if some clustering satisfies all pairs. "undecided" if neither that nor
            the opposite was found; with one or two clusters, or with None, this does not happen.

        Raises
        ------
        TypeError
            If `n_clusters` is no integer.
        ValueError
            If must-link pairs join two samples that cannot be linked, or `n_clusters` is too small
            for the cannot-link pairs; the message names the samples. If `n_clusters` is below 1.

        Examples
        --------
        >>> from nmfcluster.constraints import PairwiseConstraints
        >>> known = PairwiseConstraints(10, must_link=[(3, 5), (5, 9)], cannot_link=[(0, 9)])
        >>> known.check(n_clusters=2)
        'feasible'
        >>> PairwiseConstraints(10, must_link=[(3, 5), (5, 9)], cannot_link=[(3, 9)]).check()
        Traceback (most recent call last):
            ...
        ValueError: samples 3 and 9 cannot be linked, but must-link pairs join them: 3-5-9.
        """
        if n_clusters is not None:
            check_count(n_clusters, "n_clusters", 1)
        chain = shortest_chain(self.n_samples, self.must_link, self.cannot_link)
        if chain is not None:
            raise ValueError(
                f"samples {chain[0]} and {chain[-1]} cannot be linked, but must-link pairs join "
                f"them: {_enumerated(chain, '-')}."
            )
        if n_clusters is None:
            return "feasible"
        group = self.components()
        first = np.unique(group, return_index=True)[1]
        verdict, witness = colouring(len(first), group[self.cannot_link], n_clusters)
        if verdict == "infeasible":
            _raise_too_few(n_clusters, first[witness].tolist())
        return verdict

    def satisfied(self, labels: Any) -> tuple[np.ndarray, np.ndarray]:
        """Tell which pairs a clustering satisfies.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Clusters. A sample with a negative label, None or NaN is in no cluster: no pair
            that holds it is satisfied.

        Returns
        -------
        must_ok : ndarray of shape (n_must_link,), bool
            Whether the samples of each of `must_link` are in the same cluster.
        cannot_ok : ndarray of shape (n_cannot_link,), bool
            Whether the samples of each of `cannot_link` are in different clusters.

        Raises
        ------
        TypeError
            If the labels are no labels, or of several kinds.
        ValueError
            If there are not `n_samples` labels in one dimension, or they are fractions.

        Examples
        --------
        >>> from nmfcluster.constraints import PairwiseConstraints
        >>> known = PairwiseConstraints(4, must_link=[(0, 1), (1, 2)], cannot_link=[(2, 3)])
        >>> known.satisfied([0, 0, 1, 2])
        (array([ True, False]), array([ True]))
        """
        codes = _encode(labels)
        if len(codes) != self.n_samples:
            raise ValueError(
                f"labels must have one entry a sample, n_samples={self.n_samples}, "
                f"got {len(codes)}."
            )
        must, cannot = codes[self.must_link], codes[self.cannot_link]
        return (
            (must[:, 0] == must[:, 1]) & (must >= 0).all(axis=1),
            (cannot[:, 0] != cannot[:, 1]) & (cannot >= 0).all(axis=1),
        )

    def satisfaction(self, labels: Any) -> float:
        """Return the share of pairs that a clustering satisfies, whatever their weights.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Clusters, as for `satisfied`, which also says what is raised.

        Returns
        -------
        float
            In [0, 1]; NaN if there is no pair.

        Examples
        --------
        >>> from nmfcluster.constraints import PairwiseConstraints
        >>> known = PairwiseConstraints(4, must_link=[(0, 1), (1, 2)], cannot_link=[(1, 3), (2, 3)])
        >>> known.satisfaction([0, 0, 1, 2])
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
        A : sparse array of shape (n_samples, n_samples)
            Symmetric: the weights of must-link pairs (i, j), also at (j, i); zero elsewhere.
        B : sparse array of shape (n_samples, n_samples)
            The same for cannot-link pairs.

        Raises
        ------
        TypeError
            If `dtype` is no type of floats.

        Examples
        --------
        >>> from nmfcluster.constraints import PairwiseConstraints
        >>> known = PairwiseConstraints(3, must_link=[(0, 1, 0.5)], cannot_link=[(1, 2)])
        >>> A, B = known.as_matrices()
        >>> A.toarray()
        array([[0. , 0.5, 0. ],
               [0.5, 0. , 0. ],
               [0. , 0. , 0. ]])
        """
        try:
            kind = np.dtype(dtype).kind
        except TypeError:
            kind = "?"
        if kind != "f":
            raise TypeError(f"dtype must be a float dtype, such as np.float64, got {dtype!r}.")
        must, cannot = (
            _matrix(links, self.n_samples, dtype) for links in (self._must, self._cannot)
        )
        return must, cannot


def _matrix(links: Links, n_samples: int, dtype: Any) -> sp.csr_array:
    rows, columns = np.concatenate([links.pairs, links.pairs[:, ::-1]]).astype(np.int32).T
    weights = np.concatenate([links.weights, links.weights]).astype(dtype)
    return sp.csr_array((weights, (rows, columns)), shape=(n_samples, n_samples))


def _enumerated(samples: list[int], between: str) -> str:
    names = [str(sample) for sample in samples]
    if len(names) > _N_SHOWN:
        half = _N_SHOWN // 2
        names = [*names[:half], f"... ({len(names) - 2 * half} more) ...", *names[-half:]]
    return between.join(names)


def _raise_too_few(n_clusters: int, samples: list[int]) -> NoReturn:
    named = _enumerated(samples, ", ")
    if n_clusters == 2:
        raise ValueError(
            f"n_clusters=2 is too small: samples {named} are a cycle of odd length, in which each, "
            "or a sample that must be with it, cannot be linked to the next."
        )
    raise ValueError(
        f"n_clusters={n_clusters} is too small: samples {named} need a cluster each, as no two of "
        "them, or samples that must be with them, can be linked."
    )


def _encode(labels: Any) -> np.ndarray:
    """Return labels as numbers from 0; -1 stands for a label that is not known."""
    try:
        column = np.asarray(None) if sp.issparse(labels) else as_vector(labels)
    except (TypeError, ValueError):
        raise ValueError(f"labels must have shape (n_samples,), got {shown(labels)}.") from None
    if column.ndim != 1:
        got = f"shape {column.shape}" if column.ndim else shown(labels)
        raise ValueError(f"labels must have shape (n_samples,), got {got}.")
    values, seen = clean_labels(column, "labels")
    codes = np.full(len(column), -1, dtype=np.intp)
    codes[seen] = np.unique(values, return_inverse=True)[1]
    return codes
