"""The graph of links: its components, what follows from them, contradictions, colourings."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

_BLOCK = 2048  # pairs searched at a time, so that what they have reached stays small
_CLIQUE_BUDGET = 3_000_000  # set elements looked at in the search for a clique, about a second


def _adjacency(n_samples: int, pairs: np.ndarray, dtype: Any = np.float64) -> sp.csr_array:
    ends = np.concatenate([pairs, pairs[:, ::-1]]).astype(np.int32)  # csgraph knows no other
    graph = sp.csr_array(
        (np.ones(len(ends), dtype=dtype), (ends[:, 0], ends[:, 1])), shape=(n_samples, n_samples)
    )
    graph.sum_duplicates()
    return graph


def components(n_samples: int, pairs: np.ndarray) -> np.ndarray:
    """Return the connected components of a graph, numbered by first appearance.

    Parameters
    ----------
    n_samples : int
        Number of vertices.
    pairs : ndarray of shape (n_pairs, 2), int
        Edges.

    Returns
    -------
    ndarray of shape (n_samples,), int
        Sample 0 is in component 0; each new number is one more than the largest before it.
    """
    if n_samples == 0:
        return np.empty(0, dtype=np.intp)
    _, found = connected_components(_adjacency(n_samples, pairs), directed=False)
    _, first, found = np.unique(found, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.intp)
    number[np.argsort(first)] = np.arange(len(first))
    return number[found]


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
        The samples along the shortest path of must-link pairs between the ends of some cannot-link
        pair, of the first such pair if several are as near. None if there is none.
    """
    group = components(n_samples, must_link)
    joined = cannot_link[group[cannot_link[:, 0]] == group[cannot_link[:, 1]]]
    if not len(joined):
        return None
    start, end = joined[_nearest_pair(_adjacency(n_samples, must_link, bool), joined)]
    graph = _adjacency(n_samples, must_link)
    _, before = breadth_first_order(graph, start, directed=True)  # symmetric as it is
    chain = [int(end)]
    while chain[-1] != start:
        chain.append(int(before[chain[-1]]))
    return chain[::-1]


def _nearest_pair(graph: sp.csr_array, pairs: np.ndarray) -> int:
    """Return the number of the pair whose ends are nearest; each must be joined by a path.

    From both ends of every pair the samples one step further are taken in turn, until the two
    meet: this costs far less than a search of the whole graph from every end.
    """
    nearest, shortest = 0, np.inf
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        fronts = [_rows_at(block[:, end], graph.shape[0]) for end in (0, 1)]
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


def _rows_at(columns: np.ndarray, width: int) -> sp.csr_array:
    true = np.ones(len(columns), dtype=bool)
    return sp.csr_array(
        (true, columns.astype(np.int32), np.arange(len(columns) + 1, dtype=np.int32)),
        shape=(len(columns), width),
    )


def colouring(
    n_nodes: int, edges: np.ndarray, n_colours: int
) -> tuple[str, np.ndarray | list[int] | None]:
    """Tell if the vertices of a graph can be coloured so that no edge joins two of one colour.

    The answer is exact for one and for two colours. For more a clique proves that it cannot be
    done, a colouring that it can, and neither may be found.

    Parameters
    ----------
    n_nodes : int
        Number of vertices.
    edges : ndarray of shape (n_edges, 2), int
        The two ends of an edge differ; an edge may be given several times.
    n_colours : int
        Number of colours, 1 at least.

    Returns
    -------
    verdict : {"feasible", "infeasible", "undecided"}
    witness : ndarray of shape (n_nodes,), list of int, or None
        If feasible, a colouring; if infeasible, the vertices of an odd cycle in their order
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
    graph = _adjacency(n_nodes, edges, bool)
    ends, starts = graph.indices.tolist(), graph.indptr.tolist()
    return [ends[starts[node] : starts[node + 1]] for node in range(n_nodes)]


def _lowest(taken: set[int]) -> int:
    colour = 0
    while colour in taken:
        colour += 1
    return colour


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
    """Return the cycle that two vertices of the same depth of a search tree close."""
    up, down = [one], [other]
    while up[-1] != down[-1]:
        up.append(before[up[-1]])
        down.append(before[down[-1]])
    return up + down[-2::-1]


def _peel(neighbours: list[list[int]], n_colours: int) -> tuple[list[int], list[int]]:
    """Take away, one after another, the vertices with fewer neighbours left than colours.

    They can be coloured last, in reverse order, whatever the colours of the others are.
    """
    degree = [len(others) for others in neighbours]
    peeled = [node for node, others in enumerate(degree) if others < n_colours]
    gone = [others < n_colours for others in degree]
    for node in peeled:  # it grows
        for other in neighbours[node]:
            degree[other] -= 1
            if degree[other] < n_colours and not gone[other]:
                gone[other] = True
                peeled.append(other)
    return peeled, [node for node in range(len(neighbours)) if not gone[node]]


def _clique(neighbours: list[list[int]], core: list[int], size: int) -> list[int] | None:
    """Look for `size` vertices that are all neighbours; None means that none was found."""
    if size == 2:
        return next(([node, neighbours[node][0]] for node in core), None)
    sets = dict(zip(core, _within(neighbours, core), strict=True))
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


def _within(neighbours: list[list[int]], core: list[int]) -> list[set[int]]:
    members = set(core)
    return [members.intersection(neighbours[node]) for node in core]


def _degeneracy_order(sets: dict[int, set[int]]) -> Iterable[tuple[int, set[int]]]:
    """Yield the vertices, each time one with the fewest neighbours left, with these neighbours."""
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
    """Colour the vertices of `core`, the one with the most colours around it first.

    None if more than `n_colours` would be needed; the colour of other vertices is -1.
    """
    colours = np.full(len(neighbours), -1)
    sets = dict(zip(core, _within(neighbours, core), strict=True))
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
