"""An ensemble as a problem to factorize: starts, losses, ranks and memberships."""

from itertools import product
from unittest.mock import patch

import numpy as np
from comparing import same_partition
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import Solution, multiplicative_trinmf, spectral_start
from numpy.testing import assert_allclose, assert_array_equal
from optim.recorded import Recorder, plan
from partitions.cases import (
    factorize_ensemble,
    float64,
    hard_loss,
    in_two_ways,
    loss_of_samples,
    table,
)

from nmfcluster._optim.symmetric import symmetric_factor
from nmfcluster.partitions.ensemble import (
    Ensemble,
    EnsembleProblem,
    normalised_loss,
    projector_weights,
)


def projectors(codes):
    """Return 1 over the size of the cluster for two samples that are together, (T, n, n)."""
    found = []
    for column in codes.T:
        together = (column[:, None] == column) & (column[:, None] >= 0)
        found.append(together / np.maximum(together.sum(axis=0), 1))
    return np.array(found)


def mean_projector(codes, weights):
    """Return N = sum_t w_t D^-1/2 P^t D^-1/2, and D: the weight that saw each sample."""
    mass = (codes >= 0) @ weights
    N = np.tensordot(weights, projectors(codes), axes=1) / np.sqrt(mass[:, None] * mass)
    return N, mass


def normalized_loss_of_samples(codes, weights, H):
    """Sum w_t ||D^-1/2 P^t D^-1/2 - H H'||^2, D the weight of the partitions that saw a sample."""
    root = np.sqrt((codes >= 0) @ weights)
    total = 0.0
    for P, w in zip(projectors(codes), weights, strict=True):
        total += w * ((P / root[:, None] / root - H @ H.T) ** 2).sum()
    return total


def normalized_hard_loss(codes, weights, labels):
    """Return the smallest loss of the columns of a partition, each times what fits best."""
    N, mass = mean_projector(codes, weights)
    H = []
    for c in np.unique(labels):
        u = np.sqrt(mass) * (labels == c)
        u /= np.linalg.norm(u)
        H.append(np.sqrt(u @ N @ u) * u)
    return normalized_loss_of_samples(codes, weights, np.array(H).T)


def projector_distance(codes, weights, labels, k):
    """Return k - sum_c u_c' N u_c: half the squared distance to N, up to a constant."""
    N, mass = mean_projector(codes, weights)
    U = np.sqrt(mass)[:, None] * np.eye(k)[labels]
    U /= np.maximum(np.linalg.norm(U, axis=0), 1e-300)
    return k - np.trace(U.T @ N @ U)


def nearest_memberships(codes, weights, E):
    """Return what compares samples with clusters, for the reading that is chosen.

    Readings are mean co-associations, means of projectors, and the first relative to those within
    clusters. The last needs clusters that are much nearer.
    """
    together = [
        (column[:, None] == column) & (column[:, None] >= 0) for column in codes.T
    ]
    sizes = np.maximum(E.sum(axis=0), 1)
    means = np.tensordot(weights, np.array(together, dtype=float), axes=1) @ E / sizes
    by_size = np.tensordot(weights, projectors(codes), axes=1) @ E / sizes
    within = (means * E).sum(axis=0) / sizes
    relative = means / np.where(within > 0, within, 1)
    first, second, third = (
        values.argmax(axis=1) for values in (means, by_size, relative)
    )
    losses = [normalized_hard_loss(codes, weights, own) for own in (first, second)]
    best = int(np.argmin(np.round(losses, 9)))
    k = E.shape[1]
    distance = projector_distance(codes, weights, (first, second)[best], k)
    if projector_distance(codes, weights, third, k) < 0.9 * distance:
        return relative
    return (means, by_size)[best]


# --- starts ---------------------------------------------------------------------------------------


def test_start_of_an_ensemble_recovers_partitions_without_noise():
    labels = np.random.default_rng(4).integers(0, 4, size=50)
    codes = np.stack(
        [np.random.default_rng(t).permutation(4)[labels] for t in range(5)], axis=1
    )
    ensemble, groups = Ensemble.from_table(codes, np.full(5, 0.2))
    plain = ensemble.cluster_weights, np.ones(len(ensemble))
    H = spectral_start(ensemble.similarity(np.float64, *plain), 4)
    assert same_partition(H.argmax(axis=1)[groups], labels)


def test_factor_and_core_of_a_trifactorization():
    Q, S = np.array([[1.0, 0.0], [2.0, 3.0]]), np.diag([4.0, 9.0])
    solution = Solution((Q, S), 0.0, np.zeros(1), True)
    H = symmetric_factor(solution)
    assert_allclose(H @ H.T, Q @ S @ Q.T)
    codes, weights, _ = table()
    made = plan(solver=multiplicative_trinmf)
    ensemble, _ = Ensemble.from_table(codes, weights)
    rng = np.random.RandomState(0)
    found = factorize_ensemble(ensemble, made, rng, normalize=False)
    Q, S = found.best.factors
    assert_array_equal(found.core, S)
    assert_allclose(found.H, Q @ np.sqrt(S))


# --- an ensemble -------------------------------------------------------------------------------


@in_two_ways
def test_the_loss_of_an_ensemble_is_that_of_all_samples(missing, normalize):
    codes, weights, _ = table(missing=missing)
    ensemble, groups = Ensemble.from_table(codes, weights)
    found = factorize_ensemble(ensemble, plan(), np.random.RandomState(0), normalize)
    literal = normalized_loss_of_samples if normalize else loss_of_samples
    H = (found.H / np.sqrt(ensemble.counts)[:, None])[groups]
    assert_allclose(found.best.loss, literal(codes, weights, H), rtol=1e-9)
    assert_allclose(found.scale, literal(codes, weights, 0 * H))


@in_two_ways
def test_fitting_distinct_rows_is_fitting_all_samples(missing, normalize):
    codes, weights, _ = table(missing=missing, sizes=(30, 20, 10), n_partitions=4)
    small, groups = Ensemble.from_table(codes, weights)
    large = Ensemble(codes, np.ones(len(codes), dtype=int), weights, small.n_clusters)
    assert len(small) < len(large)
    made = plan(max_iter=3000, tol=1e-13)
    few, all_ = (
        factorize_ensemble(ensemble, made, np.random.RandomState(0), normalize)
        for ensemble in (small, large)
    )
    assert_allclose(few.best.loss, all_.best.loss, rtol=1e-6)
    H = (few.H / np.sqrt(small.counts)[:, None])[groups]
    assert_allclose(H @ H.T, all_.H @ all_.H.T, atol=1e-3)


@in_two_ways
def test_planted_clusters_are_recovered(missing, normalize):
    codes, weights, y = table(missing=missing, noise=0.2, n_partitions=12)
    ensemble, groups = Ensemble.from_table(codes, weights)
    for dtype in (np.float32, np.float64):
        found = factorize_ensemble(
            ensemble, plan(), np.random.RandomState(0), normalize, dtype=np.dtype(dtype)
        )
        assert found.H.dtype == dtype
        labels = found.H.argmax(axis=1)[groups]
        right = max(
            (labels == np.array(p)[y]).mean() for p in product(range(3), repeat=3)
        )
        assert right > 0.95


def test_the_start_with_the_smallest_hard_loss_is_kept():
    codes, weights, _ = table()
    ensemble, groups = Ensemble.from_table(codes, weights)
    recorder = Recorder(loss=float)  # the smaller loss does not win
    made = plan(solver=recorder, n_init=7)
    factorize = factorize_ensemble(
        ensemble, made, np.random.RandomState(0), normalize=False
    )
    hard = [
        hard_loss(codes, weights, H.argmax(axis=1)[groups]) for H in recorder.starts
    ]
    assert_array_equal(factorize.H, recorder.starts[int(np.argmin(hard))])
    assert [curve[0] for curve in factorize.curves] == np.argsort(
        hard, kind="stable"
    ).tolist()


def test_the_start_whose_best_reading_has_the_smallest_hard_loss_is_kept():
    codes, weights, _ = table(missing=0.3)
    ensemble, groups = Ensemble.from_table(codes, weights)
    recorder = Recorder(loss=float)  # the smaller loss does not win
    made = plan(solver=recorder, n_init=7)
    found = factorize_ensemble(ensemble, made, np.random.RandomState(0), normalize=True)
    hard = []
    for H in recorder.starts:
        E = np.eye(3)[H.argmax(axis=1)][groups]
        labels = nearest_memberships(codes, weights, E).argmax(axis=1)
        hard.append(normalized_hard_loss(codes, weights, labels))
    assert_array_equal(found.H, recorder.starts[int(np.argmin(np.round(hard, 9)))])
    assert found.curves[0][0] == np.argmin(np.round(hard, 9))


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.4]))
def test_the_hard_loss_is_that_of_the_columns_of_a_partition(seed, missing):
    codes, weights, _ = table(seed, missing=missing, sizes=(8, 6), n_partitions=4)
    ensemble, groups = Ensemble.from_table(codes, weights)
    labels = np.random.default_rng(seed).integers(3, size=len(ensemble))
    problem = EnsembleProblem(ensemble, float64, normalize=True)
    expected = normalized_hard_loss(codes, weights, labels[groups])
    E = np.eye(3)[labels]
    contingency = ensemble.contingency(E)
    parts = projector_weights(problem._votes, contingency, problem.mass @ E)
    found = normalised_loss(problem.objective.constant, parts)
    assert_allclose(found, expected, rtol=1e-9)


def test_results_of_an_ensemble_depend_on_the_seed_alone():
    codes, weights, _ = table()
    ensemble, _ = Ensemble.from_table(codes, weights)

    def curves(seed, n_jobs):
        made = plan(n_init=5, max_iter=9, n_jobs=n_jobs)
        rng = np.random.RandomState(seed)
        found = factorize_ensemble(ensemble, made, rng, True, coarse_size=50)
        return np.concatenate(found.curves)

    assert_array_equal(curves(0, 1), curves(0, 2))
    assert not np.array_equal(curves(0, 1), curves(1, 1))


# --- memberships -------------------------------------------------------------------------------


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.4]))
def test_memberships_are_mean_coassociations_with_every_cluster(seed, missing):
    codes, weights, _ = table(seed, missing=missing, sizes=(8, 6), n_partitions=4)
    ensemble, groups = Ensemble.from_table(codes, weights)
    shares = np.random.default_rng(seed).dirichlet([1, 1, 1], size=len(ensemble))
    E = np.eye(3)[shares.argmax(axis=1)][groups]
    expected = nearest_memberships(codes, weights, E)
    expected = expected / expected.sum(axis=1, keepdims=True)
    problem = EnsembleProblem(ensemble, float64, True)
    with patch.object(problem, "_other_clusters", return_value=[]):
        found = problem.memberships(shares)[0][groups]
    assert_allclose(found, expected, rtol=1e-9)
    plain = EnsembleProblem(ensemble, float64, False)
    assert_array_equal(plain.memberships(shares)[0], shares)
