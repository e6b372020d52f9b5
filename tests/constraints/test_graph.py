"""Pairs as a graph: groups, and what is said of pairs that contradict each other, against loops."""

import re
import time
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from constraints.shared import MANY, assert_plain, drawn_constraints, weighted
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from refusals import raises_naming

from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import components

CYCLE = [(i, (i + 1) % 5) for i in range(5)]
WHEEL = [*CYCLE, *((5, i) for i in range(5))]


def hard(constraints):
    """Return the pairs of both kinds that have a weight of 1 or more, as lists."""
    return [
        [pair for pair, weight in kind.items() if weight >= 1]
        for kind in weighted(constraints)
    ]


def distances(constraints):
    """Lengths of shortest paths of hard must-links, by relaxing all until nothing changes."""
    n = len(constraints)
    length = [[0 if i == j else np.inf for j in range(n)] for i in range(n)]
    for _ in range(n):
        for i, j in hard(constraints)[0]:
            for source in range(n):
                for one, other in ((i, j), (j, i)):
                    length[source][other] = min(
                        length[source][other], length[source][one] + 1
                    )
    return length


def satisfying(constraints, n_clusters):
    """Try all labels; return whether some satisfy every hard pair."""
    must, cannot = hard(constraints)
    return any(
        all(labels[i] == labels[j] for i, j in must)
        and all(labels[i] != labels[j] for i, j in cannot)
        for labels in product(range(n_clusters), repeat=len(constraints))
    )


def verdict_of(constraints, n_clusters=None):
    """Return the verdict, and the samples that an error names."""
    try:
        return constraints.check(n_clusters), []
    except ValueError as error:
        named = re.search(
            r"join them: ([0-9-]+)\.|too small: samples ([0-9, ]+) ", str(error)
        )
        return "impossible", [int(i) for i in re.split("-|, ", named[1] or named[2])]


@MANY
@given(drawn_constraints())
def test_components_are_the_samples_that_paths_join_by_first_appearance(constraints):
    n, length, group = (
        len(constraints),
        distances(constraints),
        constraints.components(),
    )
    assert group.shape == (n,)
    assert group.dtype.kind == "i"
    for i, j in product(range(n), repeat=2):
        assert (group[i] == group[j]) == (length[i][j] < np.inf)
    for i, number in enumerate(group.tolist()):
        assert number <= max(group[:i], default=-1) + 1


def test_components_of_known_graphs():
    assert_array_equal(components(5, np.array([(4, 0), (2, 4)])), [0, 1, 0, 2, 0])
    assert_array_equal(components(3, np.empty((0, 2), int)), [0, 1, 2])


@MANY
@given(drawn_constraints())
@example(PairwiseConstraints(3, [(0, 1), (1, 2)], [(0, 2)]))
@example(PairwiseConstraints(2, [(0, 1)], [(1, 0)]))
@example(PairwiseConstraints(3, [(0, 1), (1, 2, 0.9)], [(0, 2), (0, 1, 0.5)]))
def test_a_contradiction_is_a_shortest_path_of_must_links(constraints):
    length = distances(constraints)
    joined = [(i, j) for i, j in hard(constraints)[1] if length[i][j] < np.inf]
    verdict, path = verdict_of(constraints)
    if not joined:
        assert verdict == "feasible"
        return
    assert verdict == "impossible"
    assert (path[0], path[-1]) == joined[0]
    assert len(path) == length[path[0]][path[-1]] + 1
    assert all(tuple(sorted(link)) in hard(constraints)[0] for link in pairwise(path))
    with raises_naming(ValueError, "must-link"):
        constraints.closure()


@MANY
@given(drawn_constraints(largest=6), st.integers(1, 4))
@example(PairwiseConstraints(5, None, CYCLE), 2)
@example(PairwiseConstraints(4, None, list(combinations(range(4), 2))), 3)
@example(PairwiseConstraints(6, None, WHEEL), 3)
def test_what_is_said_of_a_number_of_clusters_is_true(constraints, n_clusters):
    verdict, named = verdict_of(constraints, n_clusters)
    possible = satisfying(constraints, n_clusters)
    assert verdict in {"feasible" if possible else "impossible", "undecided"}
    assert verdict != "undecided" or n_clusters > 2
    if verdict_of(constraints)[0] == "feasible" and verdict == "impossible":
        group = constraints.components()
        apart = {frozenset(group[[i, j]].tolist()) for i, j in hard(constraints)[1]}
        if n_clusters == 2:  # a cycle of odd length, of groups
            linked = pairwise([*named, named[0]])
            assert len(named) % 2 == 1
        else:
            linked = combinations(named, 2)
            assert len(named) == n_clusters + 1
        assert all(frozenset(group[list(pair)].tolist()) in apart for pair in linked)


def test_all_graphs_of_four_samples_are_told():
    """Three clusters are too few for four samples only if all exclude each other."""
    everything = list(combinations(range(4), 2))
    for chosen in product([False, True], repeat=len(everything)):
        edges = [edge for edge, there in zip(everything, chosen, strict=True) if there]
        constraints = PairwiseConstraints(4, None, edges)
        for k in (1, 2, 3, 4):
            verdict, _ = verdict_of(constraints, k)
            assert verdict == (
                "feasible" if satisfying(constraints, k) else "impossible"
            )


CHECKS = {
    "a chain": (
        PairwiseConstraints(10, [(3, 5), (5, 9), (0, 1)], [(9, 3), (0, 2)]),
        None,
        ("3", "9", "3-5-9"),
    ),
    "a long chain": (
        PairwiseConstraints(99, [(i, i + 1) for i in range(98)], [(0, 98)]),
        None,
        ("0", "98", "-".join(map(str, range(20))), "79 more"),
    ),
    "one cluster": (
        PairwiseConstraints(5, [(0, 3)], [(4, 3)]),
        1,
        ("n_clusters=1", "samples 0, 4"),
    ),
    "an odd cycle": (
        PairwiseConstraints(9, [(0, 8)], [(8, 5), (5, 2), (0, 2)]),
        2,
        ("n_clusters=2", "samples 2, 0, 5", "cycle"),
    ),
    "a clique": (
        PairwiseConstraints(
            9, [(4, 5)], [(0, 4), (5, 2), (2, 0), (7, 0), (7, 2), (7, 5)]
        ),
        3,
        ("n_clusters=3", "samples 0, 2, 4, 7"),
    ),
}


@pytest.mark.parametrize(
    ("constraints", "n_clusters", "says"), CHECKS.values(), ids=CHECKS
)
def test_what_cannot_be_is_named(constraints, n_clusters, says):
    with raises_naming(ValueError, says) as caught:
        constraints.check(n_clusters)
    assert_plain(caught)


def test_an_odd_wheel_is_left_undecided():
    """It needs four clusters, and no four of its samples exclude each other."""
    constraints = PairwiseConstraints(6, None, WHEEL)
    assert [constraints.check(k) for k in (3, 4)] == ["undecided", "feasible"]


@pytest.mark.parametrize("length", [3, 19])
def test_an_odd_cycle_among_even_ones_is_found(length):
    even = [(i, i + 1) for i in range(500)] + [(500, 501), (501, 0)]
    odd = [(600 + i, 600 + (i + 1) % length) for i in range(length)]
    verdict, cycle = verdict_of(
        PairwiseConstraints(1000, None, [*even, (10, 600), *odd]), 2
    )
    assert verdict == "impossible"
    assert set(cycle) == set(range(600, 600 + length))
    without = PairwiseConstraints(1000, None, [*even, (10, 600), *odd[:-1]])
    assert without.check(2) == "feasible"


def test_a_clique_is_found_among_many_pairs():
    rng = np.random.RandomState(0)
    group = rng.randint(3, size=400)
    edges = rng.randint(400, size=(1500, 2))
    edges = edges[group[edges[:, 0]] != group[edges[:, 1]]]
    among = [17, 40, 90, 222]
    planted = [*combinations(among, 2), *product(among, range(300, 310))]
    constraints = PairwiseConstraints(400, None, np.concatenate([edges, planted]))
    assert verdict_of(constraints, 3) == ("impossible", among)


def test_contradictions_are_allowed_until_they_are_asked_for():
    assert PairwiseConstraints(2, [(0, 1)], [(0, 1)]).n_pairs == 2


@pytest.mark.slow
def test_large_graphs_take_seconds():
    rng = np.random.RandomState(0)
    n, started = 20_000, time.process_time()
    edges = rng.randint(n, size=(100_000, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    group = rng.randint(6, size=n)
    inside = group[edges[:, 0]] == group[edges[:, 1]]
    apart = PairwiseConstraints(n, None, edges[~inside])
    assert [verdict_of(apart, k)[0] for k in (2, 3, 6)] == [
        "impossible",
        "undecided",
        "feasible",
    ]
    assert PairwiseConstraints(n, edges[inside], edges[~inside]).check() == "feasible"
    # many pairs contradict it
    wrong = np.concatenate([edges[inside], edges[~inside][:1]])
    assert (
        verdict_of(PairwiseConstraints(n, wrong, edges[~inside][1:]))[0] == "impossible"
    )
    assert time.process_time() - started < 20
