"""Pairs of samples as a graph: its matrix, its groups, contradictions, folds that hold none."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, dijkstra, minimum_spanning_tree

from nmfcluster._utils.storage import index_dtype

_N_SHOWN = 20  # samples that a message names before it leaves some out


def weight_matrix(
    n_nodes: int, pairs: np.ndarray, weights: np.ndarray, dtype: Any
) -> sp.csr_array:
    """Return the symmetric matrix of the weights of pairs, at (i, j) and at (j, i).

    Parameters
    ----------
    n_nodes : int
        Number of samples, or of groups of them.
    pairs : ndarray of shape (n_pairs, 2), int
    weights : ndarray of shape (n_pairs,), float64
    dtype : dtype
        Type of the entries; an error is raised unless it is one of floats.

    Returns
    -------
    sparse array of shape (n_nodes, n_nodes)
    """
    if np.dtype(dtype).kind != "f":
        raise TypeError(
            f"dtype must be a float dtype, such as np.float64, got {dtype!r}."
        )
    with np.errstate(
        over="ignore"
    ):  # what is infinite then is refused with the similarities
        return _adjacency(n_nodes, pairs, weights.astype(dtype))


def _adjacency(n_samples: int, pairs: np.ndarray, entries: Any = True) -> sp.csr_array:
    rows, columns = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int32).T
    entries = np.tile(np.broadcast_to(entries, len(pairs)), 2)
    return sp.csr_array((entries, (rows, columns)), shape=(n_samples, n_samples))


def components(n_samples: int, pairs: np.ndarray) -> np.ndarray:
    """Return the groups of samples that pairs join, numbered by first appearance.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    pairs : ndarray of shape (n_pairs, 2), int

    Returns
    -------
    ndarray of shape (n_samples,), int
        Sample 0 is in group 0; each new number is one more than the largest before it.
    """
    _, labels = connected_components(_adjacency(n_samples, pairs), directed=False)
    return np.asarray(
        labels, dtype=np.intp
    )  # SciPy numbers parts as it meets them, from node 0


def check_pairs(pairs: Any, n_clusters: int | None) -> str:
    """Raise if it turns out that no clustering can satisfy all hard pairs.

    Parameters
    ----------
    pairs : PairwiseConstraints
        Samples are called by their names, where they have some.
    n_clusters : int or None
        Largest number of clusters allowed, 1 at least; None: any number.

    Returns
    -------
    {"feasible", "undecided"}
        "feasible" if there is a clustering that satisfies all hard pairs.
    """
    n_samples = len(pairs)
    must_link, cannot_link = (links.pairs[links.hard] for links in pairs._links)
    names = range(n_samples) if pairs.index is None else pairs.index
    group = components(n_samples, must_link)
    first = np.unique(group, return_index=True)[1]
    apart = group[cannot_link]
    if len(joined := cannot_link[apart[:, 0] == apart[:, 1]]):
        chain = [names[i] for i in _path(n_samples, must_link, *joined[0].tolist())]
        told = f"samples {chain[0]} and {chain[-1]} cannot be linked, but must-link pairs join them"
        between = "-" if pairs.index is None else " - "
        raise ValueError(f"{told}: {_enumerated(chain, between)}.")
    if n_clusters is None or n_clusters >= len(first):
        return "feasible"
    if n_clusters == 2:
        if cycle := _odd_cycle(len(first), apart):
            told = f"samples {_enumerated(names[i] for i in first[cycle])} are a cycle"
            why = "each, or a sample that must be with it, cannot be linked to the next"
            raise ValueError(
                f"n_clusters=2 is too small: {told} of odd length, in which {why}."
            )
        return "feasible"
    # a group with fewer than n_clusters others apart from it can be placed after all of them
    apart = np.column_stack(
        sp.triu(_adjacency(len(first), apart)).nonzero()
    )  # each once
    while not (
        kept := (np.bincount(apart.ravel()) >= n_clusters)[apart].all(axis=1)
    ).all():
        apart = apart[kept]
    if clique := _clique(apart, n_clusters + 1):
        told = f"samples {_enumerated(names[i] for i in first[clique])} need a cluster each"
        why = "no two of them, or samples that must be with them, can be linked"
        raise ValueError(f"n_clusters={n_clusters} is too small: {told}, as {why}.")
    return "undecided" if len(apart) else "feasible"


def _path(n_samples: int, pairs: np.ndarray, start: int, end: int) -> list[int]:
    """Return the samples along a shortest path of pairs, which there must be."""
    _, before = _searched(n_samples, pairs, np.array([start]))
    path = [end]
    while path[-1] != start:
        path.append(int(before[path[-1]]))
    return path[::-1]


def _odd_cycle(n_nodes: int, edges: np.ndarray) -> list[int]:
    """Return the nodes of a cycle of odd length, in its order; none where two colours are enough.

    Every other step away from a root then has the other colour.
    """
    roots = np.unique(components(n_nodes, edges), return_index=True)[1]
    depth, before = _searched(n_nodes, edges, roots)
    level = edges[depth[edges[:, 0]] == depth[edges[:, 1]]]
    if not len(level):
        return []
    # the paths from both ends of such an edge up to where they meet, and the edge
    one, other = ([node] for node in level[0].tolist())
    while one[-1] != other[-1]:
        one.append(int(before[one[-1]]))
        other.append(int(before[other[-1]]))
    return one + other[-2::-1]


def _searched(
    n_nodes: int, edges: np.ndarray, roots: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Search a graph in breadth, from roots: the depth of every node, and the node before it."""
    how = {"unweighted": True, "min_only": True, "return_predecessors": True}
    depth, before, _ = dijkstra(_adjacency(n_nodes, edges), indices=roots, **how)
    return depth, before


def _clique(edges: np.ndarray, size: int) -> list[int]:
    """Return so many nodes that are all neighbours; none where a greedy search finds none.

    From every node a clique grows by those of its neighbours that fit, the ones with the most
    neighbours first.
    """
    neighbours: dict[int, set[int]] = defaultdict(set)
    for one, other in np.concatenate([edges, edges[:, ::-1]]).tolist():
        neighbours[one].add(other)
    place = {node: (-len(others), node) for node, others in neighbours.items()}
    for start in sorted(neighbours, key=place.__getitem__):
        clique = [start]
        for other in sorted(neighbours[start], key=place.__getitem__):
            if neighbours[other].issuperset(clique):
                clique.append(other)
        if len(clique) >= size:
            return sorted(clique[:size])
    return []


def _enumerated(samples: Any, between: str = ", ") -> str:
    names = [str(sample) for sample in samples]
    if len(names) > _N_SHOWN:
        names[_N_SHOWN:] = [f"... ({len(names) - _N_SHOWN} more)"]
    return between.join(names)


def folds_of_pairs(
    pairs: Any, n_splits: int, rng: np.random.Generator
) -> Iterator[Any]:
    """Yield the folds of pairs in which any are asked.

    Must-links that join what others join too are held out with them: the links of a random
    spanning forest are dealt out, and a fold cuts its own. Samples that are then still joined are
    a piece; must-links between two pieces are asked. Cannot-links between the same two pieces are
    kept or held out together. Without chains of pairs each pair is asked in one fold; of a group
    of many must-links a fold keeps fewer than its share, as all links between pieces go.

    Parameters
    ----------
    pairs : PairwiseConstraints
    n_splits : int
        Number of folds, 2 at least.
    rng : Generator

    Yields
    ------
    kept : PairwiseConstraints
        The part of the pairs that is kept.
    asked : tuple of ndarray, bool
        Which of all must-links, and which of all cannot-links, are asked about.
    """
    n_samples, must, cannot = len(pairs), pairs.must_link, pairs.cannot_link
    forest = _spanning_forest(n_samples, must, rng)
    # every fold gets as many links as any other, or one more
    cut_in, asked_in = (
        rng.permutation(len(links)) % n_splits for links in (forest, cannot)
    )
    for fold in range(n_splits):
        piece = components(n_samples, forest[cut_in != fold])
        open_must = piece[must[:, 0]] != piece[must[:, 1]]
        open_cannot = (asked_in == fold)[_first_alike(piece, cannot)]
        open_pairs = zip(pairs._links, (open_must, open_cannot), strict=True)
        # with the names of samples, or fit could not put them into the order of its own
        kept = pairs._of_links(
            n_samples, *(a.where(~b) for a, b in open_pairs), pairs.index
        )
        # a cannot-link within a piece is contradicted by pairs that are kept
        open_cannot &= piece[cannot[:, 0]] != piece[cannot[:, 1]]
        if open_must.any() or open_cannot.any():
            yield kept, (open_must, open_cannot)


def _spanning_forest(
    n_samples: int, links: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Return some of the links that join what all of them join, with no cycle among them."""
    order = rng.permutation(len(links)) + 1.0
    ends = links.T.astype(index_dtype(n_samples))  # SciPy 1.13 makes trees of no others
    forest = minimum_spanning_tree(
        sp.csr_array((order, tuple(ends)), shape=(n_samples, n_samples))
    )
    return np.column_stack(sp.coo_array(forest).coords)


def _first_alike(piece: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Return for every link the first one that is between the same two pieces."""
    low, high = np.sort(piece[links], axis=1).T
    code = (
        low * len(piece) + high
    )  # one number for two pieces, which are sorted sooner than rows
    _, first, number = np.unique(code, return_index=True, return_inverse=True)
    return first[number]
