"""What is known of pairs of samples: those of one cluster, and those of different ones."""

from typing import Any, NoReturn, Self

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.arguments import check_count, counted, positions
from nmfcluster.constraints.graph import check_pairs, components, weight_matrix
from nmfcluster.constraints.links import Both, Links, closed_links, links_among
from nmfcluster.constraints.makers import Makers
from nmfcluster.constraints.reading import read_labels, read_pairs


class PairwiseConstraints(Makers):
    """Pairs of samples that must be in one cluster, and pairs that cannot be.

    The container is split as its samples are: indexed by samples, it keeps the pairs with both ends
    among them, and renumbers these. So whatever splits samples in scikit-learn hands every fold its
    own pairs; a plain list of pairs would go to all folds, and name other samples there.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    must_link, cannot_link : array-like, iterable of pairs, sparse matrix or None, default=None
        Pairs (i, j) of samples of the same cluster, and of different clusters, in any order: of
        shape (n_pairs, 2), or (n_pairs, 3) with weights, what it costs to violate a pair, 1 by
        default; one by one, as those of ``zip(i, j)`` or of a set; or a sparse matrix of weights,
        of shape (n_samples, n_samples). Of equal pairs the largest weight counts; pairs of weight 0
        and must-links of a sample with itself are dropped. Pairs of weight 1 or more are *hard*,
        and others *soft*; of a list with infinite weights these alone are hard.

    Raises
    ------
    TypeError
        If `n_samples` is not an integer, or the pairs are not numbers, or a dict.
    ValueError
        If an index is negative, not whole, or not below `n_samples`; if a weight is negative or
        NaN; if `cannot_link` holds a sample with itself; if a shape is another.

    Notes
    -----
    Hard pairs are what is known, soft ones what is believed: their weights are confidences below 1,
    or `from_table` says which are soft. `SSNMFClusterer` joins the samples of hard must-links and
    refuses hard pairs that contradict each other; soft ones are weighed. An infinite weight counts
    as the largest of the others, but at least 1, and three times as much for cannot-links.

    A split that leaves out a sample forgets that all samples linked to it must be in one cluster;
    take the `closure` before. Of the pairs, k folds keep a share of (1 - 1/k)^2 for training;
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
        must = read_pairs(must_link, "must_link", range(int(n_samples)))
        cannot = read_pairs(cannot_link, "cannot_link", range(int(n_samples)))
        self.__setstate__({"_n_samples": int(n_samples), "_links": (must, cannot)})

    @classmethod
    def _of_links(cls, n_samples: int, must: Links, cannot: Links, names: Any = None) -> Self:
        new = cls.__new__(cls)
        new.__setstate__({"_n_samples": n_samples, "_links": (must, cannot), "index": names})
        return new

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._n_samples: int = state["_n_samples"]
        self._links: Both = state["_links"]
        self.index: Any = state.get("index")  # names of the samples, an Index, an array or None
        for links in self._links:
            for part in links:
                part.flags.writeable = False  # a pickle forgets

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self._n_samples

    @property
    def must_link(self) -> np.ndarray:
        """Pairs (i, j) of one cluster, (n_must_link, 2) int: i < j, sorted, each once."""
        return self._links[0].pairs

    @property
    def cannot_link(self) -> np.ndarray:
        """Pairs (i, j) of two clusters, (n_cannot_link, 2) int: i < j, sorted, each once."""
        return self._links[1].pairs

    @property
    def must_link_weights(self) -> np.ndarray:
        """What it costs to violate each of `must_link`, (n_must_link,) float64, positive."""
        return self._links[0].weights

    @property
    def cannot_link_weights(self) -> np.ndarray:
        """What it costs to violate each of `cannot_link`, (n_cannot_link,) float64, positive."""
        return self._links[1].weights

    @property
    def must_link_hard(self) -> np.ndarray:
        """Which of `must_link` are hard, (n_must_link,) bool."""
        return self._links[0].hard

    @property
    def cannot_link_hard(self) -> np.ndarray:
        """Which of `cannot_link` are hard, (n_cannot_link,) bool."""
        return self._links[1].hard

    @property
    def n_pairs(self) -> int:
        """Number of pairs, must-link and cannot-link."""
        return len(self.must_link) + len(self.cannot_link)

    @property
    def shape(self) -> tuple[int]:
        """``(n_samples,)``, which tells scikit-learn to split the constraints as the samples."""
        return (self.n_samples,)

    @property
    def iloc(self) -> Self:
        """The constraints themselves: they are indexed by position."""
        return self

    loc = iloc  # the position of a sample is its only name

    def __len__(self) -> int:
        return self.n_samples

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "PairwiseConstraints cannot be iterated: its pairs are in must_link and cannot_link."
        )

    def __getitem__(self, key: Any) -> Self:
        samples = positions(key, self.n_samples, "sample", "PairwiseConstraints")
        must, cannot = (links_among(samples, links) for links in self._links)
        names = None if self.index is None else self.index[samples]
        return self._of_links(len(samples), must, cannot, names)

    def take(self, indices: Any, axis: int = 0) -> Self:
        """Return the constraints among some samples, as ``constraints[indices]`` does.

        Parameters
        ----------
        indices : array-like of shape (n_taken,), int, or bool of shape (n_samples,)
            The samples, in their new order; one that occurs several times becomes as many samples.
        axis : {0}, default=0
            The samples are the only axis.

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
        >>> PairwiseConstraints(4, must_link=[(0, 3)]).take([3, 2, 0, 0]).must_link
        array([[0, 2], [0, 3]])
        """
        if axis != 0:
            raise ValueError(f"axis must be 0, the samples, got {axis!r}.")
        return self[indices]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PairwiseConstraints):
            return NotImplemented
        arrays = zip(sum(self._links, ()), sum(other._links, ()), strict=True)
        return len(self) == len(other) and all(np.array_equal(*both) for both in arrays)

    __hash__ = None  # type: ignore[assignment]  # as for arrays

    def __repr__(self) -> str:
        must, cannot = (counted(len(links.pairs), "pair") for links in self._links)
        name = type(self).__name__
        return f"{name}(n_samples={len(self)}, must_link: {must}, cannot_link: {cannot})"

    def components(self) -> np.ndarray:
        """Return the groups of samples that hard must-link pairs join.

        Returns
        -------
        ndarray of shape (n_samples,), int
            Number of the group of each sample, in order of first appearance.

        Examples
        --------
        >>> PairwiseConstraints(5, must_link=[(0, 4), (4, 2)]).components()
        array([0, 1, 0, 2, 0])
        """
        return components(self.n_samples, self.must_link[self.must_link_hard])

    def closure(self) -> Self:
        """Return all pairs that follow from these.

        All samples of a group that hard must-link pairs join must be linked, and another pair
        between two groups holds for all their samples. The number of pairs grows with the square of
        the sizes of the groups; the total weight stays, shared evenly within and between groups.

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
        links = closed_links(*self._links, self.components())
        return self._of_links(self.n_samples, *links, self.index)

    def check(self, n_clusters: int | None = None) -> str:
        """Raise if no clustering can satisfy all hard pairs, as far as that is easily proved.

        That must-links contradict a cannot-link is always found, and so is whether one or two
        clusters are enough. More are too few if so many samples and one exclude each other, or
        samples that must be with them: a greedy search looks for these.

        Parameters
        ----------
        n_clusters : int, default=None
            Largest number of clusters allowed; None: any number.

        Returns
        -------
        {"feasible", "undecided"}
            "feasible" if a clustering satisfies all hard pairs: shown for three clusters and more
            where groups that exclude fewer others than there are clusters can be taken away, one
            after another, until none is left. "undecided" if neither is shown.

        Raises
        ------
        ValueError
            If hard must-links join two samples that cannot be linked, or `n_clusters` is below 1 or
            too small for the cannot-link pairs; the message names the samples.

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
            check_count(n_clusters, "n_clusters", 1)
        if not self.cannot_link_hard.any():
            return "feasible"
        return check_pairs(self, n_clusters)

    def satisfied(self, labels: Any) -> tuple[np.ndarray, np.ndarray]:
        """Tell which pairs a clustering satisfies.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Clusters. Pairs with a sample whose label is negative, None or NaN are not satisfied.

        Returns
        -------
        must_ok, cannot_ok : ndarray of shape (n_must_link,) and (n_cannot_link,), bool
            Whether the samples of each pair are in the same cluster, and in different clusters.

        Raises
        ------
        TypeError
            If the labels are neither integers nor strings, or of several kinds.
        ValueError
            If there are not `n_samples` labels in one dimension, or they are fractions.

        Examples
        --------
        >>> PairwiseConstraints(4, [(0, 1), (1, 2)], [(2, 3)]).satisfied([0, 0, 1, 2])
        (array([ True, False]), array([ True]))
        """
        codes = read_labels(labels)
        if len(codes) != len(self):
            raise ValueError(f"labels must have n_samples={len(self)} entries, got {len(codes)}.")
        (a, b), (c, d) = codes[self.must_link].T, codes[self.cannot_link].T
        return (a == b) & (a >= 0), (c != d) & (c >= 0) & (d >= 0)

    def satisfaction(self, labels: Any) -> float:
        """Return the share of pairs that a clustering satisfies, whatever their weights.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Clusters, as for `satisfied`, which names the errors too.

        Returns
        -------
        float
            In [0, 1]; NaN without pairs.

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
            The weights of must-link and of cannot-link pairs, at (i, j) and at (j, i).

        Raises
        ------
        TypeError
            If `dtype` is not a type of floats.

        Examples
        --------
        >>> A, B = PairwiseConstraints(2, must_link=[(0, 1, 0.5)]).as_matrices()
        >>> A.toarray().tolist()
        [[0.0, 0.5], [0.5, 0.0]]
        """
        must, cannot = (weight_matrix(self.n_samples, *links[:2], dtype) for links in self._links)
        return must, cannot
