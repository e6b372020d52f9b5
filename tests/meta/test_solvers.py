"""What all solvers of NMF, sparse NMF and the tensor of runs promise, penalties included."""

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from meta.cases import begin, ends, runs_of, solved, table
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming

from nmfcluster.meta.runs import RunsObjective, tensor_hals
from nmfcluster.meta.squares import PENALTIES, MatrixObjective, hals, sparse_hals

seeds = st.integers(0, 10**6)
sizes = st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4))
KINDS = ["hals", *PENALTIES, "tensor"]
DIFFERENT = ["hals", "l1_columns", "tensor"]  # other penalties are swept as the first


def steps_of(kind, X, F, sparsity=0.3):
    """Return a solver at work on X, for tensors on biclusters cut out of X."""
    if kind == "tensor":
        return tensor_hals(RunsObjective(*runs_of(X)), F)
    if kind in PENALTIES:
        return sparse_hals(MatrixObjective(X, sparsity=sparsity, penalty=kind), F)
    return hals(MatrixObjective(X), F)


def dense(factors):
    """Return the table, or the tensor, that the factors of one start stand for."""
    if len(factors) == 2:
        return factors[0] @ factors[1]
    alpha, beta, gamma = factors
    pairs = zip(alpha.T, beta.T, gamma, strict=True)
    return sum(np.multiply.outer(np.outer(a, b), c) for a, b, c in pairs)


def penalty_of(H, kind):
    k, p = H.shape
    return {
        "l2": lambda: sum(H[c, g] ** 2 for c in range(k) for g in range(p)),
        "l1": lambda: sum(H[c, g] for c in range(k) for g in range(p)),
        "l1_columns": lambda: sum(
            sum(H[c, g] for c in range(k)) ** 2 for g in range(p)
        ),
    }[kind]()


def written_out(kind, X, factors, sparsity=0.3):
    """Return the loss of one start."""
    if kind == "tensor":
        W, H = runs_of(X)
        X = np.array([np.outer(w, h) for w, h in zip(W, H, strict=True)])
    fit = ((X - dense(factors)) ** 2).sum() / 2
    return fit + (sparsity * penalty_of(factors[1], kind) if kind in PENALTIES else 0)


def of_start(factors, s):
    return [factor[s] for factor in factors]


# --- what all of them do -----------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=7)
@given(seeds, sizes)
def test_loss_is_the_objective_and_never_rises(kind, seed, size):
    """While starts leave the batch, and with masks that no start leaves by."""
    rng = np.random.default_rng(seed)
    n, p, k = size
    X = table(rng, n, p)
    steps, last = steps_of(kind, X, begin(rng, 4, k, n, p)), np.full(4, np.inf)
    scale = written_out(
        kind, X, [0 * f[0] for f in next(steps_of(kind, X, begin(rng, 1, k, n, p)))[0]]
    )
    factors, loss = next(steps)
    for update in range(8):
        for s in range(len(loss)):
            assert min(factor[s].min() for factor in factors) >= 0
            assert_allclose(
                loss[s], written_out(kind, X, of_start(factors, s)), atol=1e-12 * scale
            )
        assert loss.min() >= 0
        assert (loss <= last + (0 if kind == "hals" else 1e-13 * scale)).all()
        keep = (
            None
            if update % 3 == 0 or len(loss) == 1
            else rng.uniform(size=len(loss)) < 0.8
        )
        if keep is not None and not keep.any():
            break
        last = loss if keep is None else loss[keep]
        factors, loss = steps.send(keep)


@pytest.mark.parametrize("kind", DIFFERENT)
def test_a_start_is_the_same_alone_and_in_a_batch_that_others_leave(kind):
    rng = np.random.default_rng(7)
    X, F = table(rng, 9, 14), begin(rng, 4, 3, 9, 14)
    steps = steps_of(kind, X, F)
    running, path = np.arange(4), {s: [] for s in range(4)}
    factors, losses = next(steps)
    for iteration in range(20):
        for row, s in enumerate(running):
            path[s].append((losses[row], of_start(factors, row)))
        leaving = {3: 1, 6: 0, 14: 3}.get(iteration)
        keep = None if leaving is None else running != leaving
        running = running if keep is None else running[keep]
        factors, losses = steps.send(keep)
    for s in range(4):
        alone = steps_of(kind, X, F[s : s + 1])
        for loss, kept in path[s]:
            single, loss_single = next(alone)
            assert_allclose(loss, loss_single[0], rtol=1e-9)
            for one, other in zip(kept, of_start(single, 0), strict=True):
                assert_allclose(one, other, rtol=1e-7, atol=1e-9)
    assert [len(path[s]) for s in range(4)] == [7, 4, 20, 15]


@pytest.mark.parametrize("kind", DIFFERENT)
def test_what_was_yielded_is_not_written_to(kind):
    rng = np.random.default_rng(0)
    X, F = table(rng, 9, 14), begin(rng, 2, 3, 9, 14)
    X.flags.writeable = F.flags.writeable = False
    seen = []
    for factors, _ in islice(steps_of(kind, X, F), 12):
        seen.append((factors, [factor.copy() for factor in factors]))
    for factors, copies in seen:
        for factor, copy in zip(factors, copies, strict=True):
            assert_array_equal(factor, copy)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [(kind, np.float64) for kind in DIFFERENT[:-1]] + [("hals", np.float32)],
)
def test_sparse_tables_give_what_dense_ones_do(kind, dtype):
    rng = np.random.default_rng(1)
    X = (table(rng, 12, 20) * (rng.uniform(size=(12, 20)) < 0.4)).astype(dtype)
    F = begin(rng, 2, 3, 12, 20).astype(dtype)
    n_updates, room = (15, 1e-8) if dtype is np.float64 else (3, 1e-4)
    (W, H), loss = ends(steps_of(kind, X, F), n_updates)
    factors, sparse_loss = ends(steps_of(kind, sp.csr_array(X), F), n_updates)
    for factor, expected in zip(factors, (W, H), strict=True):
        assert factor.dtype == expected.dtype == dtype
        assert_allclose(factor, expected, atol=room)
    assert_allclose(sparse_loss, loss, rtol=room)


def test_error_is_the_norm_of_the_difference_dense_and_sparse():
    rng = np.random.default_rng(2)
    for n in (5, 2500):  # more rows than are formed at once
        X, F = table(rng, n, 8), begin(rng, 1, 3, n, 8)
        W, H = (f[0] for f in next(hals(MatrixObjective(X), F))[0])
        expected = np.sqrt(((X - W @ H) ** 2).sum())
        assert_allclose(MatrixObjective(X).error(W, H), expected, rtol=1e-12)
        assert_allclose(
            MatrixObjective(sp.csr_array(X)).error(W, H), expected, rtol=1e-9
        )
        exact = MatrixObjective(sp.csr_array(W @ H)).error(W, H)
        assert 0 <= exact <= 1e-6 * np.sqrt(((W @ H) ** 2).sum())


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_squares_must_stay_a_thousandfold_within_the_range_of_their_dtype(dtype):
    limits = np.finfo(dtype)
    for edge, inwards in [
        (float(limits.max) / 1e3, 0.99),
        (float(limits.tiny) * 1e3, 1.01),
    ]:
        for square, is_refused in [(edge * inwards, False), (edge / inwards, True)]:
            X = np.full((2, 2), np.sqrt(square / 4)).astype(dtype)
            objective = MatrixObjective(X)
            if is_refused:
                with raises_naming(ValueError, "squares", np.dtype(dtype).name):
                    objective.check_range()
            else:
                objective.check_range()


@pytest.mark.parametrize("kind", DIFFERENT)
def test_float32_stays_and_comes_close(kind):
    rng = np.random.default_rng(3)
    X, F = table(rng, 12, 20), begin(rng, 2, 3, 12, 20)
    factors, loss = ends(steps_of(kind, X.astype(np.float32), F.astype(np.float32)), 30)
    assert {factor.dtype for factor in factors} == {np.dtype(np.float32)}
    assert loss.dtype == np.float64
    _, expected = ends(steps_of(kind, X, F), 30)
    scale = written_out(kind, X, [0 * f[0] for f in factors])
    assert_allclose(loss, expected, atol=1e-4 * scale)
    for s in range(2):
        assert_allclose(
            loss[s], written_out(kind, X, of_start(factors, s)), atol=1e-5 * scale
        )


@pytest.mark.parametrize("kind", DIFFERENT)
def test_order_of_rows_columns_and_clusters_does_not_matter(kind):
    rng = np.random.default_rng(4)
    n, p, k = 10, 13, 3
    X, F = table(rng, n, p), begin(rng, 1, k, n, p)
    rows, columns = rng.permutation(n), rng.permutation(p)
    moved = np.concatenate([F[..., :n][..., rows], F[..., n:][..., columns]], axis=2)
    if kind == "tensor":
        W, H = runs_of(X)
        jumbled = tensor_hals(
            RunsObjective(W[::-1][:, rows], H[::-1][:, columns]), moved
        )
    else:
        jumbled = steps_of(kind, X[rows][:, columns], moved)
    *alpha, W, H = ends(steps_of(kind, X, F), 20)[0]
    *alpha_moved, W_moved, H_moved = ends(jumbled, 20)[0]
    assert_allclose(W_moved, W[:, rows], rtol=1e-7, atol=1e-9)
    assert_allclose(H_moved, H[..., columns], rtol=1e-7, atol=1e-9)
    for one, other in zip(alpha, alpha_moved, strict=True):
        assert_allclose(other, one[:, ::-1], rtol=1e-7, atol=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "scale"),
    [*((kind, 1000.0) for kind in KINDS), ("hals", 2.0**-30), ("l2", 2.0**-30)],
)
def test_scale_goes_to_h_but_for_the_penalty_that_has_one(kind, scale):
    rng = np.random.default_rng(5)
    n, p, k = 10, 13, 3
    X, F = table(rng, n, p), begin(rng, 1, k, n, p)
    steps, larger = F.copy(), F.copy()
    larger[..., n:] *= scale
    if kind == "tensor":
        W, H = runs_of(X)
        first, second = RunsObjective(W, H), RunsObjective(W, H * scale)
        *alpha, W, H = ends(tensor_hals(first, steps), 40)[0]
        *same, W_scaled, H_scaled = ends(tensor_hals(second, larger), 40)[0]
        assert_allclose(alpha, same, rtol=1e-7, atol=1e-9)
    else:
        W, H = ends(steps_of(kind, X, steps), 40)[0]
        W_scaled, H_scaled = ends(steps_of(kind, X * scale, larger), 40)[0]
    if kind == "l1":
        assert abs(W_scaled - W).max() > 1e-3
    elif scale == 1000:
        assert_allclose(W_scaled, W, rtol=1e-7, atol=1e-9)
        assert_allclose(H_scaled / scale, H, rtol=1e-7, atol=1e-9)
    else:
        assert_array_equal(W_scaled, W)  # to the last bit
        assert_array_equal(H_scaled / scale, H)


def kkt_residual(kind, X, factors, sparsity):
    """Return how far each factor is from the conditions of its optimum, relative to scale."""
    if kind == "tensor":
        alpha, beta, gamma = factors
        W, H = runs_of(X)
        rest = dense(factors) - np.array(
            [np.outer(w, h) for w, h in zip(W, H, strict=True)]
        )
        slopes = {
            "alpha": (np.einsum("jsg,sk,kg->jk", rest, beta, gamma), alpha),
            "beta": (np.einsum("jsg,jk,kg->sk", rest, alpha, gamma), beta),
            "gamma": (np.einsum("jsg,jk,sk->kg", rest, alpha, beta), gamma),
        }
    else:
        W, H = factors
        rest = W @ H - X
        slope_W, slope_H = rest @ H.T, W.T @ rest
        if kind in PENALTIES:
            slope_H = (
                slope_H
                + sparsity
                * {
                    "l2": 2 * H,
                    "l1": np.ones_like(H),
                    "l1_columns": 2 * H.sum(axis=0) * np.ones_like(H),
                }[kind]
            )
            slope_W = slope_W - W * (W * slope_W).sum(axis=0)  # along the sphere
        slopes = {"W": (slope_W, W), "H": (slope_H, H)}
    size = np.sqrt((X**2).sum())
    return max(
        abs(np.minimum(F / F.max(), slope / size)).max() for slope, F in slopes.values()
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", KINDS)
def test_long_runs_end_at_stationary_points(kind):
    # an update of tensors: a third of the sweeps
    n_updates = {"tensor": 1500, "l1": 1500}.get(kind, 300)
    rng = np.random.default_rng(0)
    X = table(rng, 10, 14, noise=0.3)
    [end] = solved(steps_of(kind, X, begin(rng, 1, 3, 10, 14), 0.05), n_updates)
    assert kkt_residual(kind, X, end.factors, 0.05) < 1e-5
