"""Pairs of samples as a graph: its matrix, its components, contradictions, colourings."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from nmfcluster._arrays.labels import indicator
from nmfcluster.constraints.contradictions import joined_apart, too_few_clusters

_BLOCK = 2048  # pairs searched at a time, so that the samples reached from them fit in memory
_CLIQUE_BUDGET = 3_000_000  # elements of sets compared in search of a clique, about a second


def weight_matrix(
    n_samples: int, pairs: np.ndarray, weights: np.ndarray, dtype: Any
) -> sp.csr_array:
    """Return the symmetric matrix of the weights of pairs, at (i, j) and at (j, i).

    Parameters
    ----------
    n_samples : int
    pairs : ndarray of shape (n_pairs, 2), int
    weights : ndarray of shape (n_pairs,), float64
    dtype : dtype
        Type of the entries; an error is raised unless it is one of floats.

    Returns
    -------
    sparse array of shape (n_samples, n_samples)
    """
    try:
        kind = np.dtype(dtype).kind
    except TypeError:
        kind = "?"
    if kind != "f":
        raise TypeError(f"dtype must be a float dtype, such as np.float64, got {dtype!r}.")
    with np.errstate(over="ignore"):  # what is infinite then is refused with the similarities
        return _adjacency(n_samples, pairs, weights.astype(dtype))


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
    if n_samples == 0:
        return np.empty(0, dtype=np.intp)
    _, labels = connected_components(_adjacency(n_samples, pairs), directed=False)
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.intp)
    number[np.argsort(first)] = np.arange(len(first))
    return number[group]


def shortest_chain(
    n_samples: int, must_link: np.ndarray, cannot_link: np.ndarray
) -> list[int] | None:
    """Find must-link pairs that join two samples that cannot be linked.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    must_link : ndarray of shape (n_must_link, 2), int
    cannot_link : ndarray of shape (n_cannot_link, 2), int

    Returns
    -------
    list of int or None
        The samples along the shortest path of must-link pairs between the ends of a cannot-link
        pair, of the first pair if several are as near. None if must-links join no cannot-link pair.
    """
    group = components(n_samples, must_link)
    joined = cannot_link[group[cannot_link[:, 0]] == group[cannot_link[:, 1]]]
    if not len(joined):
        return None
    graph = _adjacency(n_samples, must_link)
    start, end = joined[_nearest_pair(graph, joined)]
    _, before = breadth_first_order(graph, start, directed=True)  # the graph is symmetric
    chain = [int(end)]
    while chain[-1] != start:
        chain.append(int(before[chain[-1]]))
    return chain[::-1]


def _nearest_pair(graph: sp.csr_array, pairs: np.ndarray) -> int:
    """Return the number of the pair whose ends are nearest; each must be joined by a path.

    The two ends of every pair take turns to reach the samples one step further, until they meet:
    this costs far less than a search of the whole graph from every end.
    """
    nearest, shortest, width = 0, np.inf, np.array([graph.shape[0]])
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        fronts = [indicator(end[:, None], width, bool) for end in block.T]
        behind = [sp.csr_array(fronts[0].shape, dtype=bool)] * 2
        distance = 0
        while distance < shortest:
            met = np.flatnonzero(np.diff(fronts[0].multiply(fronts[1]).tocsr().indptr))
            if len(met):
                nearest, shortest = start + int(met[0]), distance
                break
            side = distance % 2
            reached = (fronts[side] @ graph) > (fronts[side] + behind[side])
            behind[side], fronts[side] = fronts[side], reached
            distance += 1
    return nearest


def check_pairs(
    n_samples: int, must_link: np.ndarray, cannot_link: np.ndarray, n_clusters: int | None
) -> str:
    """Raise if it turns out that no clustering can satisfy all pairs.

    Parameters
    ----------
    n_samples : int
    must_link : ndarray of shape (n_must_link, 2), int
    cannot_link : ndarray of shape (n_cannot_link, 2), int
    n_clusters : int or None
        Largest number of clusters allowed, 1 at least; None: any number.

    Returns
    -------
    {"feasible", "undecided"}
    """
    chain = shortest_chain(n_samples, must_link, cannot_link)
    if chain is not None:
        raise ValueError(joined_apart(chain))
    if n_clusters is None:
        return "feasible"
    group = components(n_samples, must_link)
    first = np.unique(group, return_index=True)[1]
    verdict, witness = colouring(len(first), group[cannot_link], n_clusters)
    if verdict == "infeasible":
        raise ValueError(too_few_clusters(n_clusters, first[witness].tolist()))
    return verdict


def colouring(
    n_nodes: int, edges: np.ndarray, n_colours: int
) -> tuple[str, np.ndarray | list[int] | None]:
    """Tell if the nodes of a graph can be coloured so that no edge joins two of one colour.

    The answer is exact for one and for two colours. For more colours a clique proves that they do
    not suffice, a colouring that they do, and the search may fail to find either.

    Parameters
    ----------
    n_nodes : int
        Number of nodes.
    edges : ndarray of shape (n_edges, 2), int
        The two ends of an edge differ; an edge may be given several times.
    n_colours : int
        Number of colours, 1 at least.

    Returns
    -------
    verdict : {"feasible", "infeasible", "undecided"}
    witness : ndarray of shape (n_nodes,), list of int, or None
        If feasible, a colouring; if infeasible, the nodes of an odd cycle in their order
        (two colours) or of a clique (otherwise); if undecided, None.
    """
    if n_colours >= n_nodes:
        return "feasible", np.arange(n_nodes)
    neighbours = _neighbours(n_nodes, edges)
    if n_colours == 2:
        return _two_colouring(neighbours)
    peeled, core = _peel(neighbours, n_colours)
    clique = _clique(neighbours, core, n_colours + 1)
    if clique is not None:
        return "infeasible", clique
    colours = _dsatur(neighbours, core, n_colours)
    if colours is None:
        return "undecided", None
    for node in reversed(peeled):  # each has at most n_colours - 1 neighbours after it
        colours[node] = _lowest({int(colours[other]) for other in neighbours[node]})
    return "feasible", colours


def _neighbours(n_nodes: int, edges: np.ndarray) -> list[list[int]]:
    graph = _adjacency(n_nodes, edges)
    ends, starts = graph.indices.tolist(), graph.indptr.tolist()
    return [ends[starts[node] : starts[node + 1]] for node in range(n_nodes)]


def _lowest(taken: set[int]) -> int:
    return next(colour for colour in count() if colour not in taken)


def _two_colouring(neighbours: list[list[int]]) -> tuple[str, np.ndarray | list[int]]:
    depth, before = [-1] * len(neighbours), [-1] * len(neighbours)
    for root in range(len(neighbours)):
        if depth[root] >= 0:
            continue
        depth[root], queue = 0, deque([root])
        while queue:
            node = queue.popleft()
            for other in neighbours[node]:
                if depth[other] < 0:
                    depth[other], before[other] = depth[node] + 1, node
                    queue.append(other)
                elif depth[other] == depth[node]:  # an odd cycle has two such neighbours
                    return "infeasible", _cycle(node, other, before)
    return "feasible", np.array(depth) % 2


def _cycle(one: int, other: int, before: list[int]) -> list[int]:
    """Return the cycle that two nodes of the same depth of a search tree close."""
    up, down = [one], [other]
    while up[-1] != down[-1]:
        up.append(before[up[-1]])
        down.append(before[down[-1]])
    return up + down[-2::-1]


def _peel(neighbours: list[list[int]], n_colours: int) -> tuple[list[int], list[int]]:
    """Take away, one after another, the nodes with fewer neighbours left than colours.

    They can be coloured last, in reverse order, whatever the colours of the other nodes.

    Returns
    -------
    peeled : list of int
        The nodes taken away, in this order.
    core : list of int
        The nodes left.
    """
    degree = [len(others) for others in neighbours]
    peeled = [node for node, others in enumerate(degree) if others < n_colours]
    gone = [others < n_colours for others in degree]
    for node in peeled:  # the list grows meanwhile
        for other in neighbours[node]:
            degree[other] -= 1
            if degree[other] < n_colours and not gone[other]:
                gone[other] = True
                peeled.append(other)
    return peeled, [node for node in range(len(neighbours)) if not gone[node]]


def _clique(neighbours: list[list[int]], core: list[int], size: int) -> list[int] | None:
    """Return `size` nodes that are all neighbours, or None if the search finds no such nodes."""
    if size == 2:
        return next(([node, neighbours[node][0]] for node in core), None)
    sets = _within(neighbours, core)
    budget = _CLIQUE_BUDGET
    for node, later in _degeneracy_order(sets):
        clique, candidates = [node], later
        while len(clique) < size and len(clique) + len(candidates) >= size:
            budget -= len(candidates) ** 2
            if budget < 0:
                return None
            inside = {other: len(sets[other] & candidates) for other in candidates}
            best = min(candidates, key=lambda other: (-inside[other], other))
            clique.append(best)
            candidates = candidates & sets[best]
        if len(clique) == size:
            return sorted(clique)
    return None


def _within(neighbours: list[list[int]], core: list[int]) -> dict[int, set[int]]:
    members = set(core)
    return {node: members.intersection(neighbours[node]) for node in core}


def _degeneracy_order(sets: dict[int, set[int]]) -> Iterable[tuple[int, set[int]]]:
    """Yield every node with its neighbours left, each time a node with the fewest left."""
    degree = {node: len(others) for node, others in sets.items()}
    heap = [(others, node) for node, others in degree.items()]
    heapify(heap)
    while heap:
        others, node = heappop(heap)
        if degree.get(node) != others:
            continue  # an entry from before a neighbour was taken
        del degree[node]
        later = {other for other in sets[node] if other in degree}
        for other in later:
            degree[other] -= 1
            heappush(heap, (degree[other], other))
        yield node, later


def _dsatur(neighbours: list[list[int]], core: list[int], n_colours: int) -> np.ndarray | None:
    """Colour the nodes of `core`, the one with the most colours around it first.

    Other nodes get the colour -1. None if this takes more than `n_colours`.
    """
    colours = np.full(len(neighbours), -1)
    sets = _within(neighbours, core)
    around: dict[int, set[int]] = {node: set() for node in core}
    heap = [(0, -len(sets[node]), node) for node in core]
    heapify(heap)
    while heap:
        node = heappop(heap)[-1]
        if colours[node] >= 0:
            continue  # an entry from before a neighbour was coloured; the later one came first
        colour = _lowest(around[node])
        if colour >= n_colours:
            return None
        colours[node] = colour
        for other in sets[node]:
            if colours[other] < 0 and colour not in around[other]:
                around[other].add(colour)
                heappush(heap, (-len(around[other]), -len(sets[other]), other))
    return colours
