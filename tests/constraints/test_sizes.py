"""Labels within bounds on sizes: against all labellings, and against an assignment to seats."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
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
