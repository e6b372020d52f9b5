"""Starts, runs and what is kept of them; coarse to fine."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import factorize as factorize_problem
from numpy.testing import assert_allclose, assert_array_equal
from optim.recorded import Recorder, noting_sizes, plan
from scipy.optimize import nnls

from nmfcluster._optim.symmetric import Problem
from nmfcluster.similarity import Explicit, Factored


def factorize(A, plan, rng, coarse_size=None, **options):
    return factorize_problem(Problem(A, **options), plan, rng, coarse_size=coarse_size)


# --- a similarity ------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [Explicit, lambda A: Explicit(sp.csr_array(A))])
def test_a_planted_factor_is_recovered_and_its_loss_reported(storage):
    rng = np.random.default_rng(0)
    planted = rng.uniform(0.5, 1, size=(24, 3)) * np.eye(3)[np.arange(24) % 3]
    A = planted @ planted.T + 1e-3
    made = plan(n_init=2, max_iter=2000, tol=1e-9)
    found = factorize(storage(A), made, np.random.RandomState(0))
    assert_allclose(found.H @ found.H.T, A, atol=2e-2)
    assert_allclose(found.best.loss, ((A - found.H @ found.H.T) ** 2).sum(), rtol=1e-6)
    assert_allclose(found.scale, (A**2).sum())
    assert_allclose(found.core, np.diag((found.H**2).sum(axis=0)))


def test_the_run_with_the_smallest_loss_is_kept():
    recorder = Recorder(loss=[3, 1, 2, 0.5, 4].__getitem__)
    made = plan(solver=recorder, n_init=5)
    found = factorize(Factored(np.eye(5)[:, :3]), made, np.random.RandomState(0))
    assert found.best.loss == 0.5
    assert_array_equal(found.H, recorder.starts[3])
    assert [curve[0] for curve in found.curves] == [0.5, 1, 2, 3, 4]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_starts_are_the_spectral_one_and_random_ones(n_jobs):
    recorder = Recorder()
    made = plan(2, recorder, n_init=3, n_jobs=n_jobs)
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
        made = plan(n_init=4, max_iter=15, n_jobs=n_jobs)
        found = factorize(A, made, np.random.RandomState(seed))
        return np.concatenate(found.curves)

    assert_array_equal(curves(0, 1), curves(0, 2))
    assert not np.array_equal(curves(0, 1), curves(1, 1))


# --- a similarity, coarse to fine ----------------------------------------------------------------


def blocks(n=300, k=3, seed=0):
    """Return features of k groups, the similarity X X' of which is all but block diagonal."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % k)
    return np.eye(k)[y] + 0.1 * rng.uniform(size=(n, k)), y


def test_coarse_starts_lead_to_the_minimum_of_all_rows():
    X, _ = blocks()
    sizes = []
    made = plan(solver=noting_sizes(sizes), n_init=2)
    A = Factored(X)
    whole = factorize(A, made, np.random.RandomState(0))
    coarse = factorize(A, made, np.random.RandomState(0), coarse_size=40)
    assert sizes == [300, 300, 40, 40, 300]
    assert coarse.best.loss <= whole.best.loss + 1e-4 * whole.scale
    assert_array_equal(
        coarse.H.argmax(axis=1)[:, None] == coarse.H.argmax(axis=1), blocks_of(X)
    )
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
    made = plan(solver=recorder)
    rows = np.sort(np.random.RandomState(0).permutation(60)[:20])
    factorize(Factored(X), made, np.random.RandomState(0), coarse_size=20)
    part, start = recorder.starts[0], recorder.starts[-1]
    assert (len(part), len(start)) == (20, 60)
    fitted = np.array([nnls(part, w)[0] for w in (X @ X[rows].T)])
    assert_allclose(
        start - start.min(), fitted - fitted.min(), atol=2e-2 * fitted.max()
    )


def test_up_to_half_of_a_part_are_wanted_rows():
    seen = []

    class Spied(Factored):
        def take(self, indices):
            seen.append(indices)
            return super().take(indices)

    X, _ = blocks(100)
    made = plan()
    wanted, half = np.arange(100) < 90, np.arange(100) < 50
    for mask in (wanted, half, ~wanted):
        factorize(Spied(X), made, np.random.RandomState(1), wanted=mask, coarse_size=30)
    many, some, few = seen[0], seen[len(seen) // 2], seen[-1]
    assert 15 <= half[some].sum() < 30  # the rest is drawn from all
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
        sizes = []
        made = plan(solver=noting_sizes(sizes))
        factorize(A, made, np.random.RandomState(0), coarse_size=10)
        assert sizes == [80]
    factorize(Explicit(X @ X.T), made, np.random.RandomState(0), coarse_size=10)
    assert sizes == [80, 10, 80]
