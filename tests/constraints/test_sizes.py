"""Labels within bounds on sizes: against all labellings, and against an assignment to seats."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components
from sklearn.datasets import load_iris

from nmfcluster import SSNMFClusterer
from nmfcluster.constraints import labels_of_sizes


def total(P, labels):
    return P[np.arange(len(P)), labels].sum()


@pytest.mark.parametrize("seed", range(8))
def test_no_labels_within_the_bounds_are_better(seed):
    rng = np.random.default_rng(seed)
    n, k = int(rng.integers(3, 8)), int(rng.integers(2, 4))
    P = rng.dirichlet(np.linspace(0.2, 3, k), n)
    P = P.round(1) if seed % 2 else P  # with ties
    least, most = int(rng.integers(0, n // k + 1)), int(rng.integers(-(-n // k), n + 1))
    best = -np.inf
    for labels in product(range(k), repeat=n):
        sizes = np.bincount(labels, minlength=k)
        if sizes.min() >= least and sizes.max() <= most:
            best = max(best, total(P, np.array(labels)))
    found = labels_of_sizes(P, least, most)
    sizes = np.bincount(found, minlength=k)
    assert sizes.min() >= least
    assert sizes.max() <= most
    assert_allclose(total(P, found), best, rtol=1e-12)


@pytest.mark.parametrize("digits", [15, 1])
def test_clusters_of_one_size_are_an_assignment_to_seats(digits):
    P = np.random.default_rng(0).dirichlet(np.linspace(0.2, 3, 6), 300).round(digits)
    seats = np.repeat(P, 50, axis=1)
    found = labels_of_sizes(P, 50, 50)
    assert_array_equal(np.bincount(found), np.full(6, 50))
    assert_allclose(
        total(P, found), seats[linear_sum_assignment(seats, maximize=True)].sum()
    )


def test_labels_of_a_fit_stay_where_they_can():
    model = SSNMFClusterer(3, random_state=0, n_init=1).fit(load_iris().data)
    smallest, largest = np.sort(np.bincount(model.labels_))[[0, -1]]
    for bounds in ({}, {"min_size": smallest, "max_size": largest}):
        assert_array_equal(labels_of_sizes(model, **bounds), model.labels_)
    bounded = labels_of_sizes(model, max_size=largest - 5)
    assert 5 <= (bounded != model.labels_).sum() <= 10
    assert np.bincount(bounded).max() == largest - 5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint64])
def test_bounds_are_integers_of_any_kind(kind):
    P = np.random.default_rng(1).dirichlet(np.full(5, 0.5), 172)
    for bounds in ({"min_size": 34}, {"max_size": 35}):
        [(name, bound)] = bounds.items()
        found = labels_of_sizes(P, **{name: kind(bound)})
        assert_array_equal(found, labels_of_sizes(P, **bounds))


class Fitted:
    """A fit whose samples are joined by must-links, in the cluster of the largest membership."""

    def __init__(self, P, groups):
        sums = np.array([P[groups == group].sum(axis=0) for group in groups])
        self.membership_ = P
        self.must_link_groups_ = groups
        self.labels_ = sums.argmax(axis=1)


@pytest.mark.parametrize("seed", range(6))
def test_samples_of_must_links_stay_together(seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet([0.5, 1, 2], 7)
    groups = np.unique(rng.integers(0, 5, 7), return_inverse=True)[1]
    least, most = 1, 4
    best = -np.inf
    for of_groups in product(range(3), repeat=groups.max() + 1):
        labels = np.array(of_groups)[groups]
        sizes = np.bincount(labels, minlength=3)
        if sizes.min() >= least and sizes.max() <= most:
            best = max(best, total(P, labels))
    model = Fitted(P, groups)
    if best == -np.inf:
        with raises_naming(ValueError, "max_size=4", "Must-links join"):
            labels_of_sizes(model, least, most)
        return
    found = labels_of_sizes(model, least, most)
    assert all(len(set(found[groups == group])) == 1 for group in groups)
    assert_allclose(total(P, found), best, rtol=1e-3)


def test_bounds_that_groups_of_must_links_cannot_keep_are_refused():
    P = np.full((6, 2), 0.5)
    model = Fitted(P, np.array([0, 0, 1, 1, 2, 2]))
    with raises_naming(ValueError, "min_size=3", "Must-links join"):
        labels_of_sizes(model, 3, 3)
    with raises_naming(ValueError, "max_size=3", "up to 4"):
        labels_of_sizes(Fitted(P, np.array([0, 0, 0, 0, 1, 2])), 3, 3)
    assert_array_equal(np.bincount(labels_of_sizes(P, 3, 3)), [3, 3])


def is_connected(neighbors, labels, cluster):
    members = np.flatnonzero(labels == cluster)
    return connected_components(neighbors[members][:, members])[0] <= 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_no_connected_labels_within_the_bounds_are_better(seed):
    """Areas on a ring, some of which must stay together, with populations."""
    rng = np.random.default_rng(seed)
    n = 8
    ring = sp.csr_array(np.eye(n, k=1) + np.eye(n, k=-1) + np.eye(n, k=n - 1))
    P = rng.dirichlet(np.ones(2), n)
    people = rng.integers(1, 4, n)
    least, most = int(people.sum() // 2 - 3), int(people.sum() // 2 + 3)
    best = -np.inf
    for labels in map(np.array, product(range(2), repeat=n)):
        sizes = np.bincount(labels, people, minlength=2)
        whole = ring + ring.T
        connected = all(is_connected(whole, labels, c) for c in range(2))
        if connected and sizes.min() >= least and sizes.max() <= most:
            best = max(best, total(P, labels))
    found = labels_of_sizes(P, least, most, connectivity=ring, sample_weight=people)
    sizes = np.bincount(found, people, minlength=2)
    assert least <= sizes.min() <= sizes.max() <= most
    assert all(is_connected(ring + ring.T, found, c) for c in range(2))
    assert_allclose(total(P, found), best, rtol=1e-3)


def test_clusters_of_a_map_are_connected_or_refused():
    side, k = 8, 4
    places = np.stack(np.meshgrid(range(side), range(side)), -1).reshape(-1, 2)
    steps = np.abs(places[:, None] - places).sum(axis=2)
    borders = sp.csr_array((steps == 1).astype(float))
    noise = np.random.default_rng(0).normal(size=(64, 2))
    model = SSNMFClusterer(k, random_state=0).fit(np.hstack([places / 3, noise / 2]))
    found = labels_of_sizes(model, 14, 18, connectivity=borders)
    assert all(is_connected(borders, found, c) for c in range(k))
    assert 14 <= np.bincount(found).min() <= np.bincount(found).max() <= 18
    with raises_naming(ValueError, "connected"):
        labels_of_sizes(model, connectivity=np.eye(64))
    with raises_naming(ValueError, "connectivity"):
        labels_of_sizes(model, connectivity=borders[:5])
    with raises_naming(ValueError, "sample_weight"):
        labels_of_sizes(model, sample_weight=[1, 2])
