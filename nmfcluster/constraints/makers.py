"""The ways to make constraints of what is known: labels, pairs of ids, groups."""

from collections.abc import Callable
from typing import Any, ClassVar, Self

import scipy.sparse as sp

import nmfcluster.constraints.reading as reading
from nmfcluster._arrays.tables import row_names
from nmfcluster.constraints.links import links_of_groups, links_of_labels


class Makers:
    """The class methods by which constraints are made of what is known."""

    _of_links: ClassVar[Callable[..., Any]]  # makes constraints of pairs in their form

    @classmethod
    def from_labels(cls, labels: Any, n_pairs: int | None = None, random_state: Any = None) -> Self:
        """Make pairs of samples whose class is known: equal classes must link, others cannot.

        Parameters
        ----------
        labels : array-like of shape (n_samples,)
            Classes, integers or strings. Negative numbers, None and NaN: class not known.
        n_pairs : int, default=None
            Number of pairs to draw from all pairs of samples of known class, all with the same
            chance. None takes all pairs, whose number grows with the square of `n_samples`.
        random_state : int, RandomState, Generator or None, default=None
            Source of the draws; an int makes them repeatable.

        Returns
        -------
        PairwiseConstraints

        Raises
        ------
        TypeError
            If the labels are of several kinds, or `n_pairs` is not an integer.
        ValueError
            If the labels are not in one dimension, are fractions, or have fewer pairs.

        Examples
        --------
        >>> from nmfcluster import PairwiseConstraints
        >>> known = PairwiseConstraints.from_labels(["a", None, "b", "a"])
        >>> known.must_link, known.cannot_link
        (array([[0, 3]]), array([[0, 2], [2, 3]]))
        """
        codes = reading.read_labels(labels)
        links = links_of_labels(codes, n_pairs, random_state)
        return cls._of_links(len(codes), *links, row_names(labels))

    @classmethod
    def from_ids(cls, ids: Any, must_link: Any = None, cannot_link: Any = None) -> Self:
        """Make constraints of pairs that name samples by their ids.

        Parameters
        ----------
        ids : sequence of hashable, pandas Index or pandas DataFrame
            The ids of the samples in their order, all different; the index of a data frame.
        must_link, cannot_link : array-like, DataFrame, iterable or None, default=None
            Pairs of ids of the same cluster, and of different clusters: (a, b), or (a, b, weight),
            of shape (n_pairs, 2) or (n_pairs, 3), or both, one by one.

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
        samples, names = reading.read_samples(None, ids)
        must = reading.read_pairs(must_link, "must_link", samples)
        cannot = reading.read_pairs(cannot_link, "cannot_link", samples)
        return cls._of_links(len(samples), must, cannot, names)

    @classmethod
    def from_table(
        cls, pairs: Any, *, n_samples: int | None = None, ids: Any = None, hard: Any = None
    ) -> Self:
        """Make constraints of one table of pairs of both kinds.

        Parameters
        ----------
        pairs : array-like, DataFrame, iterable of rows, or sparse matrix
            Rows (a, b, kind): a kind is a weight, positive for samples of one cluster and negative
            for those of different ones, or a word, "must" or "cannot", "must-link" or
            "cannot-link", "ML" or "CL", for 1 or -1. In a fourth column, weights above 0, by which
            kinds are multiplied, or bools, as for `hard`. The entries of a sparse matrix, of shape
            (n_samples, n_samples), are signed weights.
        n_samples : int, default=None
            Number of samples, where these are called by their position, from 0. A sparse matrix
            says it, too.
        ids : sequence of hashable, pandas Index or pandas DataFrame, default=None
            The ids of the samples in their order, all different, where these are called by them;
            the index of a data frame. Give either this or `n_samples`.
        hard : bool or array-like of shape (n_pairs,), bool, default=None
            Which pairs are hard, all, none or one by one, besides those of infinite weight: see
            `PairwiseConstraints`. None: pairs of infinite weight, or where there are none, those
            of weight 1 and more.

        Returns
        -------
        PairwiseConstraints

        Raises
        ------
        TypeError
            If `pairs` is no table, an index or a weight is no number, or an id not hashable; if
            both or none of `n_samples` and `ids` are given.
        ValueError
            If a sample is unknown, a kind is another, a weight is not above 0, or the rows are not
            of three or four entries; if `hard` is another, or not of one entry a row.

        Examples
        --------
        A file of COP-KMeans, what a matcher believes, and what somebody knows besides:

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
        samples, names = reading.read_samples(n_samples, ids)
        return cls._of_links(len(samples), *reading.read_table(pairs, samples, hard), names)

    @classmethod
    def from_groups(
        cls, groups: Any, *, n_samples: int | None = None, ids: Any = None, apart: bool = False
    ) -> Self:
        """Make pairs of groups of samples that belong together, also called chunklets.

        Parameters
        ----------
        groups : sequence of sequences, or mapping to them
            The samples of each group: their indices, or with `ids` their ids. No sample is in two
            groups. Of a mapping, such as ``frame.groupby("visit").groups``, the values count.
        n_samples : int, default=None
            Number of samples, where groups hold indices.
        ids : sequence of hashable, pandas Index or pandas DataFrame, default=None
            The ids of the samples in their order, all different; the index of a data frame. Give
            either this or `n_samples`.
        apart : bool, default=False
            Whether samples of different groups cannot be in one cluster. False: two groups may
            belong together.

        Returns
        -------
        PairwiseConstraints
            All pairs of a group must link; with `apart`, all pairs between groups cannot. That is
            what `from_labels` makes of groups that are classes.

        Raises
        ------
        TypeError
            If `groups`, or one of them, is no sequence, or `apart` is no bool; if both or none of
            `n_samples` and `ids` are given.
        ValueError
            If a group holds what is no sample, or a sample is in two groups.

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
        samples, names = reading.read_samples(n_samples, ids)
        codes = reading.read_groups(groups, samples, apart)
        return cls._of_links(len(codes), *links_of_groups(codes, bool(apart)), names)
