"""HALS and tensor updates against literal loops, and what they find."""

import warnings
from itertools import islice

import numpy as np
import pytest
from meta.cases import begin, ends, multiplicative, planted, runs_of, solved, table
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from nmfcluster.meta.runs import RunsObjective, tensor_hals
from nmfcluster.meta.squares import MatrixObjective, extrapolate, hals

SWEEPS = 3  # of coordinate descent in an update
TENSOR_SWEEPS, FIRST_SWEEPS = 1, 20  # the latter for a factor that starts at 0


# --- HALS --------------------------------------------------------------------------------------


def cycled(F, X, A, sweeps=SWEEPS):
    """Improve the rows of F for X ~ AF by sweeps over them, each the best with all others fixed."""
    F = F.copy()
    for _ in range(sweeps):
        for c in range(len(F)):
            if not A[:, c].any():
                continue  # any row is as good
            rest = X - sum(np.outer(A[:, d], F[d]) for d in range(len(F)) if d != c)
            F[c] = [
                max(0, A[:, c] @ rest[:, g]) / (A[:, c] @ A[:, c])
                for g in range(F.shape[1])
            ]
    return F


def further(F, before, pace):
    """Push rows on along their last step, but not to 0."""
    pushed = np.maximum(F + pace * (F - before), 0)
    return np.array([row if row.any() else F[c] for c, row in enumerate(pushed)])


def extrapolated(X, W, H, n_updates):
    """Yield W, H, the pace and whether a step was taken, as Ang and Gillis describe it."""
    ahead, before, careful = W, H, True
    pace, last, limit = 0.5, 0.5, 1.0
    loss = ((X - W @ H) ** 2).sum()
    yield W, H, 0, True
    for _ in range(n_updates):
        swept = cycled(H, X, ahead)
        pushed = swept if careful else further(swept, before, pace)
        new = cycled(ahead.T, X.T, pushed.T).T
        risen = ((X - new @ pushed) ** 2).sum()
        careful = risen > loss
        if careful:
            limit, pace = last, pace / 1.5
            ahead, before = W, H
        else:
            limit, last = min(1, 1.01 * limit), pace
            ahead, before = further(new.T, W.T, pace).T, swept
            pace = min(limit, 1.05 * pace)
            W, H, loss = new, pushed, risen
        yield W, H, pace, not careful


def test_hals_is_extrapolated_coordinate_descent():
    taken, paces = [], []
    for seed, k, size in [(0, 3, 1), (1, 3, 1), (2, 3, 1), (3, 3, 30), (1, 4, 1)]:
        rng = np.random.default_rng(seed)
        X, F = table(rng, 9, 12, noise=0.3), begin(rng, 1, k, 9, 12)
        F[0, :, 9:] *= size  # 30: far off, so that the first steps are long
        if k == 4:  # and one that gets slow, so that the pace comes to its end
            rng = np.random.default_rng(seed)
            X = 1 + rng.uniform(size=(9, k)) @ rng.uniform(size=(k, 12))
            F = begin(rng, 1, k, 9, 12)
        expected = extrapolated(X, F[0, :, :9].T, F[0, :, 9:], 60 if k == 4 else 40)
        for ((W, H), _), (W_expected, H_expected, pace, step) in zip(
            hals(MatrixObjective(X), F), expected, strict=False
        ):
            assert_allclose(W[0], W_expected, rtol=1e-6, atol=1e-8)
            assert_allclose(H[0], H_expected, rtol=1e-6, atol=1e-8)
            taken.append(step)
            paces.append(pace)
    assert 0 < np.mean(taken) < 1  # some were too long
    assert max(paces) == 1


def test_a_push_keeps_what_is_above_0_and_every_cluster():
    before = np.array([[[4.0, 4.0], [1.0, 9.0]], [[4.0, 4.0], [1.0, 9.0]]])
    F = np.array([[[1.0, 1.0], [2.0, 5.0]], [[1.0, 1.0], [2.0, 5.0]]])
    pushed = extrapolate(F, before, np.array([0.5, 0.0]))
    assert_array_equal(pushed[0], [[1, 1], [2.5, 3]])  # the first would be (-0.5, -0.5)
    assert_array_equal(pushed[1], F[1])


def test_a_cluster_that_starts_without_rows_comes_to_life():
    rng = np.random.default_rng(0)
    X, F = table(rng, 15, 20, noise=0), begin(rng, 1, 3, 15, 20)
    F[0, 1, :15] = 0
    (W, _), loss = ends(hals(MatrixObjective(X), F), 300)
    assert loss[0] < 1e-3 * (X**2).sum()
    assert W[0][:, 1].max() > 0.01
    gone = np.zeros_like(F)
    _, loss = ends(hals(MatrixObjective(X), gone), 5)  # and nothing comes of nothing
    assert_allclose(loss, (X**2).sum() / 2)


def test_one_cluster_is_the_leading_singular_pair():
    rng = np.random.default_rng(1)
    X = table(rng, 12, 9, noise=0.5)
    (W, H), loss = ends(hals(MatrixObjective(X), begin(rng, 1, 1, 12, 9)), 100)
    U, S, V = np.linalg.svd(X)
    assert_allclose(W[0] @ H[0], S[0] * np.outer(abs(U[:, 0]), abs(V[0])), atol=1e-8)
    assert_allclose(loss, (S[1:] ** 2).sum() / 2)


def assert_same_clusters(H, expected, room):
    cosines = (
        H @ expected.T / np.outer(*(np.linalg.norm(F, axis=1) for F in (H, expected)))
    )
    assert sorted(cosines.argmax(axis=1)) == list(range(len(expected)))
    assert_allclose(cosines.max(axis=0), 1, atol=room)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("k", [1, 4])
def test_planted_clusters_are_recovered(k):
    rng = np.random.default_rng(k)
    W, H = planted(rng, k, 25, 40)
    X = W @ H
    steps = hals(MatrixObjective(X), begin(rng, 4, k, 25, 40))
    best = min(solved(steps, 300), key=lambda end: end.loss)
    assert best.loss < 1e-10 * (X**2).sum()
    assert_same_clusters(best.factors[1], H, 1e-6)
    assert_same_clusters(best.factors[0].T, W.T, 1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("case", ["noise", "planted", "counts", "wide"])
def test_losses_are_not_above_those_of_scikit_learn(case):
    """From the same starts, after 200 updates of either."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        n, p, k = (20, 200, 5) if case == "wide" else (40, 30, 4)
        X = table(rng, n, p, k, noise={"noise": 0.5, "wide": 0.1}.get(case, 0))
        if case == "counts":
            X = rng.poisson(3 * X).astype(float)
        F = begin(rng, 1, k, n, p)
        _, loss = ends(hals(MatrixObjective(X), F), 200)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = NMF(k, init="custom", max_iter=200, tol=0)
            W = model.fit_transform(X, W=F[0, :, :n].T.copy(), H=F[0, :, n:].copy())
        assert model.n_iter_ == 200
        assert loss[0] <= ((X - W @ model.components_) ** 2).sum() / 2 * (1 + 1e-4)


def test_zeros_stop_multiplicative_updates_for_good_and_hals_not():
    """From the exact zeros that a least squares fit leaves (an erratum of Badea, 2005)."""
    rng = np.random.default_rng(3)
    W, H = planted(rng, 4, 25, 40)
    X = W @ H
    F = np.concatenate([W.T, H], axis=1) * rng.uniform(0.5, 1.5, size=(4, 65))
    F[rng.uniform(size=F.shape) < 0.3] = 0
    W_stuck, H_stuck, stuck = ends(multiplicative(X, F), 2000)
    assert np.isfinite(stuck)
    assert (W_stuck.T[F[:, :25] == 0] == 0).all()
    assert (H_stuck[F[:, 25:] == 0] == 0).all()
    _, [free] = ends(hals(MatrixObjective(X), F[None]), 400)
    assert stuck > 0.01 * (X**2).sum() > 1e4 * free


# --- the tensor of runs ------------------------------------------------------------------------


def products_of_columns(A, B):
    """Return what the rows of an unfolded tensor are made of, (rows of A times rows of B, k)."""
    return np.stack(
        [np.outer(a, b).ravel() for a, b in zip(A.T, B.T, strict=True)], axis=1
    )


def test_tensor_updates_are_those_of_the_dense_tensor():
    """Each factor in turn, for the unfolded tensor: beta, gamma, alpha."""
    rng = np.random.default_rng(5)
    X, F = table(rng, 6, 8), begin(rng, 2, 3, 6, 8)
    W, H = runs_of(X)
    T = np.array([np.outer(w, h) for w, h in zip(W, H, strict=True)])
    by_alpha, by_beta, by_gamma = (
        np.moveaxis(T, axis, 0).reshape(T.shape[axis], -1).T for axis in range(3)
    )
    for s in range(2):
        B, C = F[s, :, :6].T, F[s, :, 6:].T
        A = cycled(
            np.zeros((3, len(W))), by_alpha, products_of_columns(B, C), FIRST_SWEEPS
        ).T
        for (alpha, beta, gamma), loss in islice(
            tensor_hals(RunsObjective(W, H), F), 8
        ):
            assert_allclose(alpha[s], A, rtol=1e-7, atol=1e-9)
            assert_allclose(beta[s], B, rtol=1e-7, atol=1e-9)
            assert_allclose(gamma[s].T, C, rtol=1e-7, atol=1e-9)
            assert_allclose(
                loss[s], ((by_alpha - products_of_columns(B, C) @ A.T) ** 2).sum() / 2
            )
            B = cycled(B.T, by_beta, products_of_columns(A, C), TENSOR_SWEEPS).T
            C = cycled(C.T, by_gamma, products_of_columns(A, B), TENSOR_SWEEPS).T
            A = cycled(A.T, by_alpha, products_of_columns(B, C), TENSOR_SWEEPS).T


@pytest.mark.sampled(2)
@pytest.mark.parametrize("k", [1, 4])
def test_planted_tensors_are_recovered(k):
    rng = np.random.default_rng(k)
    W, H = planted(rng, k, 12, 18)
    which, sizes = np.tile(np.arange(k), 5), rng.uniform(0.5, 2, size=5 * k)
    runs = RunsObjective(W.T[which] * sizes[:, None], H[which])
    start = np.concatenate([W.T, H], axis=1) + 0.3 * rng.uniform(size=(1, k, 30))
    [end] = solved(tensor_hals(runs, start), 500)
    alpha, beta, gamma = end.factors
    assert end.loss < 1e-12 * runs.constant
    assert_same_clusters(gamma, H, 1e-8)
    assert_same_clusters(beta.T, W.T, 1e-8)
    alpha *= np.linalg.norm(beta, axis=0) * np.linalg.norm(gamma, axis=1)
    lengths = np.linalg.norm(runs.W, axis=1) * np.linalg.norm(runs.H, axis=1)
    assert_allclose(alpha, lengths[:, None] * np.eye(k)[which], atol=1e-5)


def test_a_prototype_of_zeros_stays_one_and_the_others_go_on():
    rng = np.random.default_rng(6)
    X, F = table(rng, 6, 8), begin(rng, 1, 3, 6, 8)
    F[0, 1] = 0
    runs = RunsObjective(*runs_of(X))
    (alpha, beta, gamma), loss = ends(tensor_hals(runs, F), 50)
    _, expected = ends(tensor_hals(runs, F[:, [0, 2]]), 50)
    assert_allclose(loss, expected, rtol=1e-9)
    assert_array_equal(np.concatenate([beta[0][:, 1], gamma[0][1]]), 0)
    F[0, 1, 6:] = 1.0  # columns of its own are enough
    (alpha, beta, gamma), loss = ends(tensor_hals(runs, F), 50)
    assert np.isfinite(alpha).all()
    assert loss[0] <= expected[0] * (1 + 1e-9)
