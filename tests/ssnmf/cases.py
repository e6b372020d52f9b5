"""Samples with known pairs, modes and solvers, and fits that are stopped early."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import canonical_order
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from nmfcluster import PairwiseConstraints, SSNMFClusterer

# many of these fits are stopped before they have converged
unconverged = pytest.mark.filterwarnings(
    "ignore:.* did not converge:sklearn.exceptions.ConvergenceWarning"
)

X, Y = make_blobs(60, centers=3 * np.eye(3), cluster_std=1.0, random_state=0)
X = X - X.min() + 0.1  # nonnegative, so that every solver can be run on every affinity
IN_ORDER = canonical_order(X).samples
X, Y = X[IN_ORDER], Y[IN_ORDER]  # in which rows of factors are
PLACES = np.argsort(IN_ORDER)  # of the samples as they were drawn
KNOWN = PairwiseConstraints.from_labels(Y, n_pairs=30, random_state=0)

SOLVERS = {
    "bpg": {},
    "tri": {"factorization": "tri"},
}
AFFINITIES = ["nearest_neighbors", "linear", "cosine", "rbf"]
CONSTRAINED = {
    "hard": {},
    "soft": {"hard_must_link": False},
}
every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_affinity = pytest.mark.parametrize("affinity", AFFINITIES)


def paired(one, other):
    """Pair each of one list with some of the other, and each of the other with some of the one."""
    n = max(len(one), len(other))
    return [
        (one[i % len(one)], other[(i + j) % len(other)])
        for j in (0, 1)
        for i in range(n)
    ]


one_of_each = pytest.mark.parametrize(
    ("solver", "affinity"), paired(list(SOLVERS), AFFINITIES)[: len(SOLVERS)]
)
# of all combinations those in which each value meets two of the other list, or each of it
solver_by_affinity = pytest.mark.parametrize(
    ("solver", "affinity"), paired(list(SOLVERS), AFFINITIES)
)
way_by_affinity = pytest.mark.parametrize(
    ("way", "affinity"), paired(list(CONSTRAINED), AFFINITIES)
)
all_of_all = pytest.mark.parametrize(
    ("solver", "affinity", "way"),
    [
        (solver, affinity, list(CONSTRAINED)[(i + j) % 2])
        for i, solver in enumerate(SOLVERS)
        for j, affinity in enumerate(AFFINITIES)
    ],
)


def clusterer(n_clusters=3, **parameters):
    return SSNMFClusterer(
        **{"n_clusters": n_clusters, "random_state": 0, "n_init": 1, "max_iter": 100}
        | parameters
    )


def fitted(X=X, *, n_clusters=3, constraints=KNOWN, **parameters):
    return clusterer(n_clusters, **parameters).fit(X, constraints=constraints)


def assert_same_fit(one, other, rtol=1e-7):
    assert_array_equal(one.labels_, other.labels_)
    assert_allclose(one.loss_, other.loss_, rtol=rtol, atol=1e-9 * one.loss_curve_[0])
    assert_allclose(one.membership_, other.membership_, atol=1e-4)


def matrix(pairs):
    return sp.coo_array((np.ones(len(pairs)), pairs.T), shape=(60, 60))


def factors_of_samples(model, found):
    """Return G and S of all samples; H = G S^1/2 where S is diagonal."""
    groups = (
        model.must_link_groups_
        if model.hard_must_link
        else np.arange(len(model.labels_))
    )
    rows = found.best.factors[0] / np.sqrt(np.bincount(groups))[:, None]
    if len(found.best.factors) == 1:
        return rows[groups], np.eye(rows.shape[1])
    return rows[groups], found.best.factors[1]
