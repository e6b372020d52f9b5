"""Pairs of samples with weights, as lists and as a graph.

Functions for lists sort and copy pairs, add the pairs that follow from them, and make pairs from
labels and groups. Functions for the graph return its matrix and its connected groups, find
contradictions, and split the pairs into folds.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra, minimum_spanning_tree

from nmfcluster._utils.validation import check_count, make_rng

_MOST_NAMED = 20  # largest number of samples in a message, to keep it readable

# Smallest number of pairs that follow from others, and largest share of these that is contradicted,
# at which must-links stay hard if pairs may be wrong. On 31 data sets, draws of 20 to 600 pairs,
# 5 % of them wrong, hardly ever meet both bounds, and half of the draws of 600 right pairs do.
_MIN_CHECKS = 20
_MAX_CONTRADICTED = 0.03


class Links(NamedTuple):
    """Pairs of samples of one kind, with the cost of violating each."""

    pairs: np.ndarray  # (n_pairs, 2) int, i < j, sorted, distinct
    weights: np.ndarray  # (n_pairs,) float64, positive, finite
    hard: np.ndarray  # (n_pairs,) bool, whether the pair must not be violated

    def where(self, mask):
        """Return the pairs in a mask or at some positions."""
        return Links._make([part[mask] for part in self])


NO_LINKS = Links(np.empty((0, 2), dtype=np.intp), np.empty(0), np.empty(0, dtype=bool))


def make_links(pairs, weights=1.0, hard=True):
    """Return sorted, distinct pairs (i, j) with i <= j.

    Among equal pairs, a hard pair is kept. If several are hard, or all are soft, the one with the
    largest weight is kept.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2), int
    weights : ndarray of shape (n_pairs,), float64, or float
    hard : ndarray of shape (n_pairs,), bool, or bool

    Returns
    -------
    Links
    """
    pairs = np.sort(pairs, axis=1)
    weights = np.broadcast_to(weights, len(pairs))
    hard = np.broadcast_to(hard, len(pairs))
    # keep the last of equal pairs: a hard one, or else the one with the largest weight
    order = np.lexsort((weights, hard, pairs[:, 1], pairs[:, 0]))
    is_last = np.diff(pairs[order], axis=0, append=-1).any(axis=1)
    return Links(pairs, weights, hard).where(order[is_last])


def copy_links(links, origin):
    """Return the links of copies of samples, which are all (a, b), a < b, with linked originals.

    Parameters
    ----------
    links : Links
    origin : ndarray of shape (n_copies,), int
        The original of every copy; a sample may have any number of copies.

    Returns
    -------
    Links
        Copies of a link have its weight, and are hard if it is hard.
    """
    # write the numbers of pairs, from 1, into a matrix, and copy its rows and columns
    pairs = links.pairs
    n_samples = max(pairs.max(initial=-1), origin.max(initial=-1)) + 1
    parts = np.arange(1, len(pairs) + 1), tuple(pairs.T)
    numbers = sp.csr_array(parts, shape=(n_samples, n_samples))
    numbers = numbers.maximum(numbers.T)
    copied = sp.triu(numbers[origin][:, origin], k=1, format="coo")
    copies = np.column_stack(copied.coords).astype(np.intp)
    source = copied.data - 1
    return make_links(copies, links.weights[source], links.hard[source])


def link_all_members(links, group):
    """Extend links to all samples of their groups, and return all pairs of these.

    A link between two groups, or inside a group, holds for all pairs of samples there. These pairs
    share the weights of the links evenly, and are hard if one of the links is hard.

    Parameters
    ----------
    links : Links
    group : ndarray of shape (n_samples,), int
        Number of the group of every sample, from 0.
    """
    sizes = np.bincount(group)
    ends = np.sort(group[links.pairs], axis=1)
    ends, number = np.unique(ends, axis=0, return_inverse=True)
    number = number.ravel()  # NumPy 2.0 returns a column
    one, other = ends.T
    inside = one == other
    n_pairs = sizes[one] * np.where(inside, (sizes[one] - 1) / 2, sizes[other])
    # links between two groups hold for all pairs of their samples
    shares = np.bincount(number, links.weights) / n_pairs
    hard = np.bincount(number, links.hard) > 0
    return copy_links(Links(ends, shares, hard), group)


def make_links_of_labels(codes, n_pairs=None, random_state=None):
    """Return must-links and cannot-links of labelled samples, of weight 1.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,), int
        Classes, numbered from 0; -1 marks unlabelled samples.
    n_pairs : int or None
        Number of pairs to draw. All sets of pairs are equally likely. None takes all pairs.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    must : Links
    cannot : Links
    """
    known = np.flatnonzero(codes >= 0)
    total = len(known) * (len(known) - 1) // 2
    if n_pairs is None:
        numbers = np.arange(total)
    else:
        rng = make_rng(random_state)
        n_pairs = check_count(n_pairs, "n_pairs", 0)
        if n_pairs > total:
            raise ValueError(
                f"n_pairs must be at most {total}, the number of pairs of the {len(known)} "
                f"labelled samples, got {n_pairs}: pass None for all pairs."
            )
        numbers = _draw_distinct_numbers(rng, total, n_pairs)
    pairs = known[decode_pairs(numbers)]
    same = codes[pairs[:, 0]] == codes[pairs[:, 1]]
    return make_links(pairs[same]), make_links(pairs[~same])


def make_links_of_groups(codes):
    """Return all pairs within groups, of weight 1.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,), int
        Group of every sample, numbered from 0; -1 marks samples in no group.
    """
    members = np.flatnonzero(codes >= 0)
    numbers = np.unique(codes[members])
    inside = make_links(np.column_stack([numbers, numbers]))
    copies = copy_links(inside, codes[members])
    return make_links(members[copies.pairs])


def _draw_distinct_numbers(rng, total, n_drawn):
    """Draw distinct numbers below `total`; all sets of numbers are equally likely."""
    # permute all numbers if a third or more are drawn: single draws would often repeat others
    if 3 * n_drawn > total:
        return rng.permutation(total)[:n_drawn]
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < n_drawn:
        more = rng.randint(total, size=2 * (n_drawn - len(drawn)), dtype=np.int64)
        drawn = np.concatenate([drawn, more])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:n_drawn]


def decode_pairs(numbers):
    """Return pairs (a, b), a < b, by their number in the order (0, 1), (0, 2), (1, 2), (0, 3)."""
    b = ((1 + np.sqrt(1 + 8.0 * numbers)) / 2).astype(np.int64)
    # rounding may raise the root to the next whole number, but never lowers it below one
    b -= b * (b - 1) // 2 > numbers
    return np.column_stack([numbers - b * (b - 1) // 2, b])


def make_adjacency(n_nodes, pairs, weights=True):
    """Return the symmetric matrix of the weights of pairs, at (i, j) and at (j, i).

    Parameters
    ----------
    n_nodes : int
        Number of samples, or of groups of them.
    pairs : ndarray of shape (n_pairs, 2), int
    weights : ndarray of shape (n_pairs,), default=True
        The matrix has their dtype.

    Returns
    -------
    sparse array of shape (n_nodes, n_nodes)
    """
    ends = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int32)
    entries = np.tile(np.broadcast_to(weights, len(pairs)), 2)
    return sp.csr_array((entries, tuple(ends.T)), shape=(n_nodes, n_nodes))


def components(n_samples, pairs):
    """Return the groups of samples that pairs join, numbered by first appearance.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    pairs : ndarray of shape (n_pairs, 2), int

    Returns
    -------
    ndarray of shape (n_samples,), int
        Sample 0 is in group 0. Each new number is one more than the largest before it.
    """
    _, labels = connected_components(make_adjacency(n_samples, pairs), directed=False)
    # SciPy numbers components as it meets them, from node 0
    return np.asarray(labels, dtype=np.intp)


def find_confirmed_must_links(pairs):
    """Return which must-links stay hard if pairs may be wrong.

    All become soft unless enough pairs follow from other pairs and almost none of these pairs is
    contradicted. Even then, must-links of a group that holds a cannot-link become soft.

    Parameters
    ----------
    pairs : PairwiseConstraints

    Returns
    -------
    ndarray of shape (n_must_link,), bool
    """
    group = components(len(pairs), pairs.must_link)
    ends = np.sort(group[pairs.cannot_link], axis=1)
    is_contradicted = ends[:, 0] == ends[:, 1]
    # count must-links that close a cycle, and repeated cannot-links between the same two groups
    n_joining = len(pairs) - 1 - group.max(initial=-1)
    n_repeated = len(ends) - len(np.unique(ends, axis=0))
    n_checks = len(pairs.must_link) - n_joining + n_repeated
    n_contradicted = int(is_contradicted.sum())
    if n_checks < _MIN_CHECKS or n_contradicted > _MAX_CONTRADICTED * n_checks:
        return np.zeros(len(pairs.must_link), dtype=bool)
    in_contradicted = np.isin(group[pairs.must_link[:, 0]], ends[is_contradicted])
    return pairs.must_link_hard & ~in_contradicted


def check_pairs(pairs, n_clusters):
    """Raise an error if it is easy to prove that no clustering can satisfy all hard pairs.

    Parameters
    ----------
    pairs : PairwiseConstraints
    n_clusters : int or None
        Largest number of clusters allowed, at least 1; None allows any number.

    Returns
    -------
    {"feasible", "undecided"}
        "feasible" if a clustering is known to satisfy all hard pairs.
    """
    n_samples = len(pairs)
    shown = range(n_samples) if pairs.index is None else pairs.index
    cannot_link = pairs.cannot_link[pairs.cannot_link_hard]
    group = pairs.components()
    first = np.unique(group, return_index=True)[1]
    apart = group[cannot_link]
    joined = cannot_link[apart[:, 0] == apart[:, 1]]
    if len(joined):
        start, end = joined[0]
        must_link = pairs.must_link[pairs.must_link_hard]
        _, before = _search_breadth_first(n_samples, must_link, [start])
        chain = [shown[i] for i in reversed(_trace_to_root(before, end))]
        between = "-" if pairs.index is None else " - "
        raise ValueError(
            f"samples {chain[0]} and {chain[-1]} cannot be linked, but must-link pairs join them: "
            f"{_enumerate_names(chain, between)}."
        )
    if n_clusters is None or n_clusters >= len(first):
        return "feasible"
    if n_clusters == 2:
        cycle = _find_odd_cycle(len(first), apart)
        if cycle:
            samples = _enumerate_names(shown[i] for i in first[cycle])
            raise ValueError(
                f"n_clusters=2 is too small: samples {samples} form a cycle of odd length, in "
                "which no sample can be in one cluster with the next. Increase n_clusters."
            )
        return "feasible"
    # remove groups that exclude fewer than n_clusters others: they can be placed after all others
    apart = np.unique(np.sort(apart, axis=1), axis=0)
    n_left = None
    while n_left != len(apart):
        n_left = len(apart)
        has_many = np.bincount(apart.ravel()) >= n_clusters
        apart = apart[has_many[apart].all(axis=1)]
    clique = _find_clique(apart, n_clusters + 1)
    if clique:
        samples = _enumerate_names(shown[i] for i in first[clique])
        raise ValueError(
            f"n_clusters={n_clusters} is too small: samples {samples} need a cluster each, as no "
            "two of them can be in one cluster. Increase n_clusters."
        )
    return "undecided" if len(apart) else "feasible"


def _search_breadth_first(n_nodes, edges, roots):
    """Search a graph from its roots; return the depth of every node, and the node before it."""
    found = dijkstra(
        make_adjacency(n_nodes, edges),
        indices=roots,
        unweighted=True,
        min_only=True,
        return_predecessors=True,
    )
    return found[:2]


def _trace_to_root(before, node):
    """Return the nodes from `node` back to the root of a search."""
    path = []
    while node >= 0:  # SciPy marks the predecessor of a root by a negative number
        path.append(int(node))
        node = before[node]
    return path


def _find_odd_cycle(n_nodes, edges):
    """Return the nodes of a cycle of odd length, in order; none if two colours are enough.

    Two colours are enough if no edge joins two nodes of the same depth. Nodes of even depth then
    have one colour, and nodes of odd depth the other.
    """
    roots = np.unique(components(n_nodes, edges), return_index=True)[1]
    depth, before = _search_breadth_first(n_nodes, edges, roots)
    level = edges[depth[edges[:, 0]] == depth[edges[:, 1]]]
    if not len(level):
        return []
    # the cycle is the edge and the paths from both of its ends up to where they meet
    one, other = (_trace_to_root(before, node) for node in level[0])
    n_apart = int(np.not_equal(one, other).sum())
    return one[: n_apart + 1] + other[:n_apart][::-1]


def _find_clique(edges, size):
    """Return a clique of `size` nodes; none if a greedy search finds none.

    The search starts from every node, and adds nodes that are neighbours of all members. Nodes with
    the most neighbours come first.
    """
    # number the nodes by decreasing number of neighbours
    nodes = np.argsort(-np.bincount(edges.ravel()), kind="stable")
    neighbors: list[set[int]] = [set() for _ in nodes]
    for one, other in np.argsort(nodes)[edges].tolist():
        neighbors[one].add(other)
        neighbors[other].add(one)
    for start, others in enumerate(neighbors):
        clique = [start]
        for other in sorted(others):
            if neighbors[other].issuperset(clique):
                clique.append(other)
        if len(clique) >= size:
            return sorted(nodes[clique[:size]].tolist())
    return []


def _enumerate_names(samples, between=", "):
    names = [str(sample) for sample in samples]
    if len(names) > _MOST_NAMED:
        names[_MOST_NAMED:] = [f"... ({len(names) - _MOST_NAMED} more)"]
    return between.join(names)


def split_pairs(pairs, n_splits, rng):
    """Split pairs into folds; yield each fold that holds out at least one pair.

    Pairs that are held out must not follow from pairs that are kept. The split has three steps:

    1. The links of a random spanning forest of the must-links are distributed over the folds. Each
       fold removes its links from the forest. Samples that are still joined form a piece.
    2. Must-links between two pieces are held out.
    3. Cannot-links between the same two pieces are kept or held out together.

    Without chains of pairs, each pair is held out in one fold. In a group of many must-links, a
    fold holds out more than its share of pairs, because all links between pieces are held out.

    Parameters
    ----------
    pairs : PairwiseConstraints
    n_splits : int
        Number of folds, at least 2.
    rng : Generator

    Yields
    ------
    kept : PairwiseConstraints
        The pairs that are kept.
    held_out : tuple of ndarray, bool
        Masks of the must-links, and of the cannot-links, that are held out and can be scored.
    """
    must, cannot = pairs._links
    n_samples = len(pairs)
    # draw must-links without a cycle that join the same samples as all must-links
    order = rng.permutation(len(must.pairs)) + 1.0
    graph = make_adjacency(n_samples, must.pairs, order)
    forest = np.column_stack(sp.coo_array(minimum_spanning_tree(graph)).coords)
    # numbers of links in two folds differ by at most one
    fold_of_forest = rng.permutation(len(forest)) % n_splits
    fold_of_cannot = rng.permutation(len(cannot.pairs)) % n_splits
    for fold in range(n_splits):
        piece = components(n_samples, forest[fold_of_forest != fold])
        must_ends = piece[must.pairs]
        cannot_ends = piece[cannot.pairs]
        open_must = must_ends[:, 0] != must_ends[:, 1]
        # cannot-links between the same two pieces are in the fold of the first one
        _, first, number = np.unique(
            np.sort(cannot_ends, axis=1),
            axis=0,
            return_index=True,
            return_inverse=True,
        )
        open_cannot = (fold_of_cannot == fold)[first[number.ravel()]]
        kept = must.where(~open_must), cannot.where(~open_cannot)
        # kept pairs contradict a cannot-link within a piece, so it is not scored
        open_cannot &= cannot_ends[:, 0] != cannot_ends[:, 1]
        if open_must.any() or open_cannot.any():
            # keep the names of samples, by which fit reorders the pairs
            yield (
                pairs._of_links(n_samples, kept, pairs.index),
                (open_must, open_cannot),
            )
