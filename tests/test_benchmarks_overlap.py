"""The match of overlapping clusters of the benchmarks against a literal one, of sets."""

from __future__ import annotations

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.importorskip("benchmarks.overlap", reason="benchmarks are not installed")

from benchmarks.overlap import biclusters_match, overlap_match


def match_by_the_paper(a, b):
    """Section 6 of Badea (2005), with lists of sets."""

    def best_including(cluster, others):
        common = [len(cluster & other) for other in others]
        if max(common) == 0:
            return None
        ties = [d for d in range(len(others)) if common[d] == max(common)]
        return min(ties, key=lambda d: len(others[d]))  # the first of the smallest

    def matches(clusters, others):
        choice = [best_including(other, clusters) for other in others]
        for c, cluster in enumerate(clusters):
            included = [
                other
                for other, chosen in zip(others, choice, strict=True)
                if chosen == c
            ]
            union = frozenset().union(*included)
            yield len(cluster & union) / len(cluster | union) if included else 0.0

    return np.mean([*matches(a, b), *matches(b, a)])


def sets_of(memberships, threshold):
    """The objects whose membership is at least that share of the largest one."""
    return [
        frozenset(j for j, m in enumerate(row) if m > 0 and m >= threshold * max(row))
        for row in memberships.tolist()
    ]


def cell_sets_of(rows, columns, threshold):
    pairs = zip(sets_of(rows, threshold), sets_of(columns, threshold), strict=True)
    return [frozenset(product(*pair)) for pair in pairs]


def clusters_at_random(rng, n_clusters, n_objects):
    """Memberships, many of them 0, some of them equal, and now and then a cluster without any."""
    M = rng.uniform(size=(n_clusters, n_objects))
    M *= rng.uniform(size=M.shape) < 0.6
    if rng.uniform() < 0.5:
        M = np.round(4 * M)
    if rng.uniform() < 0.2:
        M[rng.integers(n_clusters)] = 0
    return M


seeds = st.integers(0, 10**6)
cluster_counts = st.integers(1, 5)
thresholds = st.sampled_from([0.1, 0.2, 0.5, 1.0])


@given(
    seeds,
    cluster_counts,
    cluster_counts,
    st.integers(1, 5),
    st.integers(1, 9),
    thresholds,
)
def test_match_is_that_of_the_paper(seed, n_a, n_b, n_rows, n_columns, threshold):
    rng = np.random.default_rng(seed)
    a, b = (
        (clusters_at_random(rng, n, n_rows), clusters_at_random(rng, n, n_columns))
        for n in (n_a, n_b)
    )
    expected = match_by_the_paper(sets_of(a[1], threshold), sets_of(b[1], threshold))
    assert_allclose(
        overlap_match(a[1], b[1], threshold=threshold), expected, rtol=1e-12
    )
    expected = match_by_the_paper(
        cell_sets_of(*a, threshold), cell_sets_of(*b, threshold)
    )
    assert_allclose(biclusters_match(a, b, threshold=threshold), expected, rtol=1e-12)


@given(seeds, cluster_counts, st.integers(2, 8), thresholds)
def test_match_with_the_same_clusters_in_another_order_is_1(
    seed, n, n_objects, threshold
):
    rng = np.random.default_rng(seed)
    a = clusters_at_random(rng, n, n_objects)
    assume(len(set(sets_of(a, threshold))) == n and a.any(axis=1).all())
    scaled = a[rng.permutation(n)] * rng.lognormal(sigma=9, size=(n, 1))
    assert overlap_match(a, scaled, threshold=threshold) == 1


def test_match_by_hand():
    a = np.array([[1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]])
    # the halves of a[0] are both best included in it, and it in the first of them
    b = np.array([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]])
    assert_allclose(overlap_match(a, b, threshold=0.2), (1 + 1 + 2 / 4 + 0 + 1) / 5)
    # moved by one: 3 of 5 are common, and 1 of 3
    c = np.array([[0, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1]])
    assert_allclose(
        overlap_match(a, c, threshold=0.2), (3 / 5 + 1 / 2 + 3 / 5 + 1 / 2) / 4
    )
    one = np.array([[1, 1, 0, 0]]), np.array([[1, 1, 1, 0]])  # 6 cells
    two = np.array([[0, 1, 1, 0]]), np.array([[0, 1, 1, 1]])  # 6 cells, 2 in common
    assert biclusters_match(one, two, threshold=0.2) == 2 / 10
    # a cluster within another one includes itself best
    small, large = ([0, 1, 1, 0], [1, 1, 1, 1])
    within = np.array([large, small])
    assert overlap_match(within, within[::-1], threshold=0.2) == 1


def test_clusters_without_members_and_without_common_objects_match_nothing():
    empty, one, other = (
        np.array([[0, 0, 0, 0]]),
        np.array([[1, 1, 0, 0]]),
        np.array([[0, 0, 1, 1]]),
    )
    for a, b, expected in (
        (empty, empty, 0),
        (np.vstack([empty, one]), one, 2 / 3),
        (one, other, 0),
        (np.vstack([one, other]), one, 2 / 3),
        (np.vstack([other, one]), one, 2 / 3),
    ):
        assert overlap_match(a, b, threshold=0.2) == expected
