"""Samples that must be apart from others: where they end, and what is said of violated pairs."""

import warnings
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from internals import canonical_order
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from ssnmf.cases import KNOWN, SOLVERS, X, clusterer

from nmfcluster import PairwiseConstraints, SSNMFClusterer

CENTERS = [[0, 0], [9, 0], [4, 8]]


def apart_from_all(n, *groups):
    """Return pairs by which each of some groups is together, and apart from everybody else."""
    must = [(group[0], i) for group in groups for i in group[1:]]
    cannot = [
        (i, j) for group in groups for i in group for j in range(n) if j not in group
    ]
    return PairwiseConstraints(n, must, cannot)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({}, (1,)),
        ({}, (20,)),
        ({}, (9, 1, 4)),
        ({"hard_must_link": False}, (5,)),
        ({"hard_must_link": False}, (9, 1, 4)),
        ({"affinity": "landmarks"}, (1, 1)),
        ({"affinity": "landmarks"}, (20,)),
        ({"affinity": "rbf"}, (1,)),
        ({"affinity": "precomputed"}, (20,)),
        ({"factorization": "tri"}, (5,)),
    ],
    ids=str,
)
def test_groups_that_must_be_apart_from_everybody_have_clusters_of_their_own(
    options, sizes
):
    points, y = make_blobs(150, centers=CENTERS, random_state=len(sizes))
    at = np.cumsum((0, *sizes))
    groups = [np.flatnonzero(y == 0)[a:b].tolist() for a, b in pairwise(at)]
    pairs, expected = apart_from_all(150, *groups), y.copy()
    for number, group in enumerate(groups):
        expected[group] = 3 + number
    table = (
        rbf_kernel(points, gamma=0.1)
        if options.get("affinity") == "precomputed"
        else points
    )
    model = SSNMFClusterer(3 + len(groups), random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(table, constraints=pairs)
        predicted = model.predict(table)
    assert model.satisfaction_ == 1
    assert adjusted_rand_score(expected, model.labels_) > 0.97
    assert_array_equal(model.membership_.argmax(axis=1), model.labels_)
    # no new sample is put into a cluster that pairs alone make
    assert adjusted_rand_score(y, predicted) > 0.97


def least_cost(pairs, n_clusters):
    """Try all labels."""
    costs = []
    for labels in product(range(n_clusters), repeat=len(pairs)):
        satisfied = pairs.satisfied(np.array(labels))
        costs.append(sum((~ok).sum() for ok in satisfied))
    return min(costs)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(5))
def test_no_labels_violate_fewer_pairs_where_lone_samples_are_apart_from_all(seed):
    rng = np.random.default_rng(seed)
    n, k = 6, int(rng.integers(2, 5))
    alone = rng.choice(n, size=rng.integers(1, 4), replace=False)
    pairs = apart_from_all(n, *([i] for i in alone))
    model = SSNMFClusterer(
        k,
        contradictions="warn",
        random_state=0,
        **list(SOLVERS.values())[seed % len(SOLVERS)],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more clusters may be needed than there are
        model.fit(rng.normal(size=(n, 2)), constraints=pairs)
    assert len(model.violated_cannot_link_) == least_cost(pairs, k)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("solver", ["bpg", "tri"])
def test_what_is_kept_of_a_fit_agrees_with_clusters_of_their_own(solver, kept):
    points, y = make_blobs(60, centers=CENTERS, random_state=0)
    pairs = apart_from_all(60, np.flatnonzero(y == 0)[:4].tolist())
    W = rbf_kernel(points, gamma=0.1)
    model = SSNMFClusterer(
        4, affinity="precomputed", beta=2.0, random_state=0, **SOLVERS[solver]
    )
    model.set_params(hard_must_link=False, alpha=0.5, normalize=False)
    model.fit(W, constraints=pairs)
    A, B = pairs.as_matrices()
    order = canonical_order(
        similarities=[W], links=[A, B]
    ).samples  # in which factors are
    F, M = np.zeros((60, 3)), kept[-1].parts[1]
    F[model.labels_[order] < 3] = kept[-1].parts[0]
    wanted = W + model.weight_unit_ * (0.5 * A - 2.0 * B)
    literal = wanted[np.ix_(order, order)] - F @ M @ F.T
    assert_allclose(model.loss_, (literal**2).sum(), rtol=1e-8)
    assert_allclose(model.loss_curve_[-1], model.loss_)
    assert np.diagonal(model.core_)[3] == 0  # the smallest
    assert_array_equal(np.bincount(model.labels_), [20, 20, 16, 4])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("n_between", "is_alone"), [(13, True), (14, False)])
def test_a_sample_gets_a_cluster_if_that_saves_a_third_of_the_violated_pairs(
    n_between, is_alone
):
    """In a blob it violates 20 pairs; by itself, two blobs are merged and violate `n_between`."""
    points, y = make_blobs(61, centers=CENTERS, random_state=0)
    blobs = [np.flatnonzero(y == c) for c in range(3)]
    sample = blobs[0][0]
    blobs[0] = blobs[0][1:]
    others = np.concatenate(blobs)
    cannot = [(sample, i) for i in others]
    for one, other in combinations(blobs, 2):
        cannot += zip(one[:n_between], other[:n_between], strict=True)
    pairs = PairwiseConstraints(61, cannot_link=cannot)
    model = SSNMFClusterer(3, contradictions="ignore", random_state=0)
    labels = model.fit(points, constraints=pairs).labels_
    assert len(model.violated_cannot_link_) == (n_between if is_alone else 20)
    assert (labels == labels[sample]).sum() == (1 if is_alone else 21)
    assert (adjusted_rand_score(y[others], labels[others]) == 1) != is_alone


def test_rows_and_pairs_in_another_order_are_the_same_clusters():
    points, y = make_blobs(90, centers=CENTERS, random_state=0)
    pairs = apart_from_all(90, *(np.flatnonzero(y == c)[:3].tolist() for c in (0, 1)))
    labels = SSNMFClusterer(5, random_state=0).fit(points, constraints=pairs).labels_
    order = np.random.default_rng(0).permutation(90)
    turned = PairwiseConstraints(
        90, pairs.must_link[::-1, ::-1], pairs.cannot_link[::-1, ::-1]
    )
    again = SSNMFClusterer(5, random_state=0).fit(
        points[order], constraints=turned[order]
    )
    assert adjusted_rand_score(labels[order], again.labels_) == 1


def test_others_are_fitted_again_only_for_lost_rows_that_violate_pairs(kept):
    clusterer(propagation=0.7).fit(X, constraints=KNOWN)
    assert len(kept) == 1
    with warns_naming(UserWarning, "violate"):
        clusterer(propagation=0.7, beta=0.01).fit(X, constraints=KNOWN)
    assert len(kept) == 2


def test_feasible_pairs_that_are_violated_are_said_to_be():
    model = clusterer(beta=0.01)
    with warns_naming(UserWarning, "violate") as told:
        model.fit(X, constraints=KNOWN)
    [message] = [str(warning.message) for warning in told]
    n_violated = len(model.violated_cannot_link_)
    assert f"violate {n_violated} of 30 pairs" in message
    assert "violated_cannot_link_" in message
    assert "beta=10" in message
    wide, y = make_blobs(60, centers=CENTERS, cluster_std=4.0, random_state=0)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=30, random_state=0)
    soft = clusterer(beta=0.0, hard_must_link=False, alpha=0.0)
    with warns_naming(UserWarning, "violated_must_link_", "hard_must_link=True"):
        soft.fit(wide, constraints=pairs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clusterer(beta=10).fit(X, constraints=KNOWN)  # what is said to help
        model.set_params(contradictions="ignore").fit(X, constraints=KNOWN)
