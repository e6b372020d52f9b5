"""Starts, runs and what is kept of them; coarse to fine."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls

from nmfcluster._engine.factorize import (
    Plan,
    extend_factor,
    factor_of,
    factorize,
    factorize_ensemble,
)
from nmfcluster._engine.run import Solution
from nmfcluster._engine.symmetric import bregman_nmf, multiplicative_nmf, multiplicative_trinmf
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.similarity import Explicit, Factored

law = settings(max_examples=25, deadline=None, derandomize=True)
float64 = np.dtype(np.float64)


def plan(n_clusters=3, solver=bregman_nmf, *, n_init=1, max_iter=500, tol=1e-6, n_jobs=None):
    said = []
    made = Plan(n_clusters, solver, n_init, max_iter, tol, n_jobs, said.append)
    return made, said


def table(seed=0, missing=0.0, noise=0.3, sizes=(60, 30, 20), n_partitions=6):
    codes, y = make_partitions(
        sizes, n_partitions=n_partitions, noise=noise, missing=missing, random_state=seed
    )
    weights = np.random.default_rng(seed).uniform(0.5, 1, size=n_partitions)
    return codes, weights / weights.sum(), y


def loss_of_samples(codes, weights, H):
    """Sum w_t (M^t_ij - h_i h_j)^2 over the pairs that partition t saw, for all samples."""
    total = 0.0
    for column, w in zip(codes.T, weights, strict=True):
        seen = column >= 0
        M = (column[:, None] == column).astype(float)
        total += w * ((M - H @ H.T)[np.ix_(seen, seen)] ** 2).sum()
    return total


def hard_loss(codes, weights, labels):
    return loss_of_samples(codes, weights, (labels[:, None] == np.unique(labels)).astype(float))


class Recorder:
    """A solver that goes nowhere and notes its starts."""

    def __init__(self, loss=lambda start: 0.0):
        self.starts, self.loss = [], loss

    def __call__(self, objective, H):
        numbers = range(len(self.starts), len(self.starts) + len(H))
        self.starts.extend(H)
        losses = np.array([float(self.loss(number)) for number in numbers])
        while True:
            keep = yield (H,), losses
            H, losses = (H, losses) if keep is None else (H[keep], losses[keep])


# --- a similarity ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [bregman_nmf, multiplicative_nmf])
@pytest.mark.parametrize("storage", [Explicit, lambda A: Explicit(sp.csr_array(A))])
def test_a_planted_factor_is_recovered_and_its_loss_reported(solver, storage):
    rng = np.random.default_rng(0)
    planted = rng.uniform(0.5, 1, size=(24, 3)) * np.eye(3)[np.arange(24) % 3]
    A = planted @ planted.T + 1e-3
    made, _ = plan(solver=solver, n_init=2, max_iter=2000, tol=1e-9)
    found = factorize(storage(A), made, np.random.RandomState(0))
    assert_allclose(found.H @ found.H.T, A, atol=2e-2)
    assert_allclose(found.best.loss, ((A - found.H @ found.H.T) ** 2).sum(), rtol=1e-6)
    assert_allclose(found.scale, (A**2).sum())
    assert_allclose(found.core, np.diag((found.H**2).sum(axis=0)))


def test_the_run_with_the_smallest_loss_is_kept():
    recorder = Recorder(loss=[3, 1, 2, 0.5, 4].__getitem__)
    made, said = plan(solver=recorder, n_init=5)
    found = factorize(Factored(np.eye(5)[:, :3]), made, np.random.RandomState(0))
    assert found.best.loss == 0.5
    assert_array_equal(found.H, recorder.starts[3])
    assert [curve[0] for curve in found.curves] == [0.5, 1, 2, 3, 4]
    (line,) = said
    assert line.startswith("5 rows, 5 start(s): best loss 0.5 after 20 updates")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_starts_are_the_spectral_one_and_random_ones(n_jobs):
    recorder = Recorder()
    made, _ = plan(2, recorder, n_init=3, n_jobs=n_jobs)
    A = Explicit(np.kron(np.eye(2), np.ones((3, 3))))
    factorize(A, made, np.random.RandomState(0))
    assert len(recorder.starts) == 3
    residual = [((A.toarray() - H @ H.T) ** 2).sum() for H in recorder.starts]
    assert residual[0] < 0.1 < min(residual[1:])
    assert not np.array_equal(recorder.starts[1], recorder.starts[2])


def test_results_depend_on_the_seed_alone():
    rng = np.random.default_rng(1)
    A = Explicit(abs(rng.normal(size=(30, 2)) @ rng.normal(size=(2, 30))))
    A = A + Explicit(A.toarray().T)

    def curves(seed, n_jobs):
        made, _ = plan(n_init=4, max_iter=15, n_jobs=n_jobs)
        found = factorize(A, made, np.random.RandomState(seed))
        return np.concatenate(found.curves)

    assert_array_equal(curves(0, 1), curves(0, 2))
    assert not np.array_equal(curves(0, 1), curves(1, 1))


def test_factor_and_core_of_a_trifactorization():
    Q, S = np.array([[1.0, 0.0], [2.0, 3.0]]), np.diag([4.0, 9.0])
    solution = Solution((Q, S), 0.0, np.zeros(1), True)
    H = factor_of(solution)
    assert_allclose(H @ H.T, Q @ S @ Q.T)
    codes, weights, _ = table()
    made, _ = plan(solver=multiplicative_trinmf)
    ensemble, _ = Ensemble.from_table(codes, weights)
    found = factorize_ensemble(ensemble, made, np.random.RandomState(0), float64)
    Q, S = found.best.factors
    assert_array_equal(found.core, S)
    assert_allclose(found.H, Q @ np.sqrt(S))


# --- an ensemble -------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_loss_of_an_ensemble_is_that_of_all_samples(missing):
    codes, weights, _ = table(missing=missing)
    ensemble, groups = Ensemble.from_table(codes, weights)
    found = factorize_ensemble(ensemble, plan()[0], np.random.RandomState(0), float64)
    H = (found.H / np.sqrt(ensemble.counts)[:, None])[groups]
    assert_allclose(found.best.loss, loss_of_samples(codes, weights, H), rtol=1e-9)
    assert_allclose(found.scale, loss_of_samples(codes, weights, 0 * H))


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_fitting_distinct_rows_is_fitting_all_samples(missing):
    codes, weights, _ = table(missing=missing, sizes=(30, 20, 10), n_partitions=4)
    small, groups = Ensemble.from_table(codes, weights)
    large = Ensemble(codes, np.ones(len(codes), dtype=int), weights, small.n_clusters)
    assert len(small) < len(large)
    made, _ = plan(max_iter=3000, tol=1e-13)
    few, all_ = (
        factorize_ensemble(ensemble, made, np.random.RandomState(0), float64)
        for ensemble in (small, large)
    )
    assert_allclose(few.best.loss, all_.best.loss, rtol=1e-6)
    H = (few.H / np.sqrt(small.counts)[:, None])[groups]
    assert_allclose(H @ H.T, all_.H @ all_.H.T, atol=1e-3)


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_planted_clusters_are_recovered(missing):
    codes, weights, y = table(missing=missing, noise=0.2, n_partitions=12)
    ensemble, groups = Ensemble.from_table(codes, weights)
    for dtype in (np.float32, np.float64):
        found = factorize_ensemble(ensemble, plan()[0], np.random.RandomState(0), np.dtype(dtype))
        assert found.H.dtype == dtype
        labels = found.H.argmax(axis=1)[groups]
        right = max((labels == np.array(p)[y]).mean() for p in product(range(3), repeat=3))
        assert right > 0.95


def test_the_start_with_the_smallest_hard_loss_is_kept():
    codes, weights, _ = table()
    ensemble, groups = Ensemble.from_table(codes, weights)
    recorder = Recorder(loss=float)  # the smaller loss does not win
    factorize = factorize_ensemble(
        ensemble, plan(solver=recorder, n_init=7)[0], np.random.RandomState(0), float64
    )
    hard = [hard_loss(codes, weights, H.argmax(axis=1)[groups]) for H in recorder.starts]
    assert_array_equal(factorize.H, recorder.starts[int(np.argmin(hard))])
    assert [curve[0] for curve in factorize.curves] == np.argsort(hard, kind="stable").tolist()


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_starts_are_in_turn_random_and_the_best_partitions(missing):
    codes, weights, _ = table(seed=3, missing=missing, noise=0.4, n_partitions=3)
    ensemble, _ = Ensemble.from_table(codes, weights)
    recorder = Recorder()
    made = plan(solver=recorder, n_init=10)[0]
    factorize_ensemble(ensemble, made, np.random.RandomState(0), float64)
    unit = [H / np.sqrt(ensemble.counts)[:, None] for H in recorder.starts]
    indicators = [
        ((column[:, None] == np.unique(column[column >= 0])).astype(float)) for column in codes.T
    ]
    ranking = np.argsort([loss_of_samples(codes, weights, E) for E in indicators])
    for place, t in enumerate(ranking):
        column = ensemble.codes[:, t]
        H = unit[2 + 2 * place]
        assert_array_equal(H.max(axis=1) > 1, column >= 0)
        labels = H.argmax(axis=1)
        assert len(set(zip(column[column >= 0], labels[column >= 0], strict=True))) == 3
    for number in (1, 3, 5, 7, 8, 9):  # there are three partitions
        assert unit[number].max() < 1


def test_results_of_an_ensemble_depend_on_the_seed_alone():
    codes, weights, _ = table()
    ensemble, _ = Ensemble.from_table(codes, weights)

    def curves(seed, n_jobs):
        made, _ = plan(n_init=5, max_iter=9, n_jobs=n_jobs)
        rng = np.random.RandomState(seed)
        return np.concatenate(factorize_ensemble(ensemble, made, rng, float64, 50).curves)

    assert_array_equal(curves(0, 1), curves(0, 2))
    assert not np.array_equal(curves(0, 1), curves(1, 1))


# --- coarse to fine ----------------------------------------------------------------------------


@law
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.0, 0.4]))
def test_an_extended_row_is_the_least_squares_fit_to_the_part(seed, k, missing):
    """Minimise the sum of w_t (M^t_ij - h_i h_j)^2 over j of the part, and t that saw both."""
    rng = np.random.default_rng(seed)
    codes, weights, _ = table(seed, missing=missing, sizes=(8, 6), n_partitions=4)
    ensemble, _ = Ensemble.from_table(codes, weights)
    coarse = ensemble.sample(9, np.random.RandomState(seed % 1000))
    h = 0.3 * rng.uniform(size=(len(coarse), k)) + np.eye(k)[np.arange(len(coarse)) % k]
    expected = np.zeros((len(ensemble), k))
    for i, row in enumerate(ensemble.codes):
        lines, targets = [], []
        for j, t in product(range(len(coarse)), range(4)):
            if row[t] >= 0 and coarse.codes[j, t] >= 0:
                root = np.sqrt(weights[t] * coarse.counts[j])
                lines.append(root * h[j])
                targets.append(root * (row[t] == coarse.codes[j, t]))
        if lines:
            expected[i] = nnls(np.array(lines), np.array(targets))[0]
    expected += 1e-3 * expected.mean()
    found = extend_factor(coarse, h * np.sqrt(coarse.counts)[:, None], ensemble)
    found = found / np.sqrt(ensemble.counts)[:, None]
    assert found.min() > 0
    assert_allclose(found, expected, atol=1e-3)


def test_extending_to_all_keeps_the_dtype():
    codes, weights, _ = table()
    ensemble, _ = Ensemble.from_table(codes, weights)
    H = np.random.default_rng(0).uniform(size=(len(ensemble), 3)).astype(np.float32)
    assert extend_factor(ensemble, H, ensemble).dtype == np.float32


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_coarse_to_fine_ends_near_the_full_fit(missing):
    codes, weights, _ = table(missing=missing, sizes=(300, 150, 60), n_partitions=8)
    ensemble, groups = Ensemble.from_table(codes, weights)
    made, said = plan(n_init=3)
    full = factorize_ensemble(ensemble, made, np.random.RandomState(0), float64)
    del said[:]
    found = factorize_ensemble(ensemble, made, np.random.RandomState(0), float64, 100)
    assert len(said) == 2
    assert f"{len(ensemble)} label rows, 1 start(s)" in said[1]
    assert found.H.shape == (len(ensemble), 3)
    assert found.best.loss <= 1.01 * full.best.loss
    labels, of_full = found.H.argmax(axis=1)[groups], full.H.argmax(axis=1)[groups]
    agree = max((labels == np.array(p)[of_full]).mean() for p in product(range(3), repeat=3))
    assert agree > 0.97
    assert len(found.curves) == 4
    assert_array_equal(found.curves[0], found.best.history)
    for curve in found.curves[1:]:  # scaled to all samples
        assert 0.5 * full.best.loss < curve[-1] < 2 * full.best.loss


def test_the_part_is_drawn_only_from_a_larger_ensemble():
    codes, weights, _ = table()
    ensemble, _ = Ensemble.from_table(codes, weights)
    size, sizes = len(ensemble), []
    for coarse_size in (None, size, size - 1, 20):
        recorder = Recorder()
        made = plan(solver=recorder)[0]
        factorize_ensemble(ensemble, made, np.random.RandomState(0), float64, coarse_size)
        sizes.append([len(H) for H in recorder.starts])
    assert sizes[:2] == [[size], [size]]
    assert [row[-1] for row in sizes[2:]] == [size, size]
    assert sizes[2][0] < size
    assert sizes[3][0] <= 20


def test_the_best_start_on_the_part_is_the_one_extended():
    codes, weights, _ = table()
    ensemble, _ = Ensemble.from_table(codes, weights)
    coarse = ensemble.sample(30, np.random.RandomState(0))
    recorder = Recorder()
    made = plan(solver=recorder, n_init=6)[0]
    factorize_ensemble(ensemble, made, np.random.RandomState(0), float64, 30)
    everyone = np.repeat(np.arange(len(coarse)), coarse.counts)
    hard = [
        hard_loss(coarse.codes[everyone], weights, H.argmax(axis=1)[everyone])
        for H in recorder.starts[:6]
    ]
    assert len(set(hard)) > 1
    expected = extend_factor(coarse, recorder.starts[int(np.argmin(hard))], ensemble)
    assert_array_equal(recorder.starts[6], expected)


def test_a_negative_tol_runs_all_updates_also_after_coarse():
    codes, weights, _ = table()
    ensemble, _ = Ensemble.from_table(codes, weights)
    made, _ = plan(max_iter=30, tol=-1.0)
    found = factorize_ensemble(ensemble, made, np.random.RandomState(0), float64, 40)
    assert [len(curve) for curve in found.curves] == [31, 31]


# --- a similarity, coarse to fine ----------------------------------------------------------------


def blocks(n=300, k=3, seed=0):
    """Return features of k groups, the similarity X X' of which is all but block diagonal."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % k)
    return np.eye(k)[y] + 0.1 * rng.uniform(size=(n, k)), y


def test_coarse_starts_lead_to_the_minimum_of_all_rows():
    X, _ = blocks()
    made, said = plan(n_init=2)
    A = Factored(X)
    whole = factorize(A, made, np.random.RandomState(0))
    coarse = factorize(A, made, np.random.RandomState(0), coarse_size=40)
    assert [line.split(",")[0] for line in said] == ["300 rows", "40 rows", "300 rows"]
    assert coarse.best.loss <= whole.best.loss + 1e-4 * whole.scale
    assert_array_equal(coarse.H.argmax(axis=1)[:, None] == coarse.H.argmax(axis=1), blocks_of(X))
    assert len(coarse.curves) == 3
    assert coarse.scale == whole.scale == pytest.approx(((X @ X.T) ** 2).sum())
    # starts on the part are reported on the scale of all rows
    assert_allclose(coarse.curves[1][-1] / coarse.scale, 0, atol=0.05)


def blocks_of(X):
    own = X.argmax(axis=1)
    return own[:, None] == own


def test_the_extension_is_the_nonnegative_fit_to_the_part():
    X, _ = blocks(60)
    recorder = Recorder()
    made, _ = plan(solver=recorder)
    rows = np.sort(np.random.RandomState(0).permutation(60)[:20])
    factorize(Factored(X), made, np.random.RandomState(0), coarse_size=20)
    part, start = recorder.starts[0], recorder.starts[-1]
    assert (len(part), len(start)) == (20, 60)
    fitted = np.array([nnls(part, w)[0] for w in (X @ X[rows].T)])
    assert_allclose(start - start.min(), fitted - fitted.min(), atol=2e-2 * fitted.max())


def test_up_to_half_of_a_part_are_wanted_rows():
    seen = []

    class Spied(Factored):
        def take(self, indices):
            seen.append(indices)
            return super().take(indices)

    X, _ = blocks(100)
    made, _ = plan()
    wanted = np.arange(100) < 90
    for mask in (wanted, ~wanted):
        factorize(Spied(X), made, np.random.RandomState(1), wanted=mask, coarse_size=30)
    many, few = seen[0], seen[-1]
    assert len(many) == len(few) == 30
    assert wanted[many].sum() >= 15
    assert (~wanted[few]).sum() == 10  # all there are
    assert all((np.diff(rows) > 0).all() for rows in seen)


def test_a_sparse_graph_is_not_thinned():
    X, _ = blocks(80)
    for A in (
        Explicit(sp.csr_array(X @ X.T)),
        Explicit(sp.csr_array(X @ X.T)) - 0.0 * Explicit(sp.eye_array(80)),
    ):
        made, said = plan()
        factorize(A, made, np.random.RandomState(0), coarse_size=10)
        assert len(said) == 1
    made, said = plan()
    factorize(Explicit(X @ X.T), made, np.random.RandomState(0), coarse_size=10)
    assert len(said) == 2
