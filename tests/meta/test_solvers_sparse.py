"""Sparse NMF: its columns of length 1, where it ends, and what the penalties do to zeros."""

from itertools import islice

import numpy as np
import pytest
from meta.cases import solved
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.meta.squares import PENALTIES, MatrixObjective, hals, sparse_hals


def noisy_biclusters(rng, n=21, p=35, k=4, noise=0.75):
    """Draw a table of overlapping biclusters with noise, as in section 4.1 of Badea (2005)."""
    W, H = (
        abs(rng.normal(size=s)) * (rng.uniform(size=s) < 0.5) for s in ((n, k), (k, p))
    )
    X = W @ H
    return np.maximum(X + noise * X.std(axis=0) * rng.normal(size=X.shape), 0)


@pytest.mark.parametrize(
    ("penalty", "dtype"),
    [(name, np.float64) for name in PENALTIES] + [("l1_columns", np.float32)],
)
def test_columns_have_length_1_and_the_start_keeps_its_product(penalty, dtype):
    rng = np.random.default_rng(1)
    X, F = (
        noisy_biclusters(rng).astype(dtype),
        rng.uniform(size=(3, 4, 56)).astype(dtype),
    )
    F[0, 1, :21] = 0
    steps = sparse_hals(MatrixObjective(X, sparsity=0.1, penalty=penalty), F)
    room = 1e-12 if dtype is np.float64 else 1e-5
    for update, ((W, H), _) in enumerate(islice(steps, 20)):
        assert_allclose(np.linalg.norm(W, axis=1), 1, rtol=room)
        assert W.dtype == H.dtype == dtype
        if update == 0:
            assert_allclose(
                W @ H, F[..., :21].mT @ F[..., 21:], rtol=100 * room, atol=room
            )
            assert_allclose(W[0][:, 1], 21**-0.5)


# --- whole runs --------------------------------------------------------------------------------


def test_without_weight_it_ends_where_hals_does():
    rng = np.random.default_rng(2)
    X, F = noisy_biclusters(rng, noise=0.1), rng.uniform(0.1, 1, size=(2, 4, 56))
    plain = min(end.loss for end in solved(hals(MatrixObjective(X), F), 400, 1e-13))
    steps = sparse_hals(MatrixObjective(X, sparsity=0, penalty="l1_columns"), F)
    assert_allclose(
        min(end.loss for end in solved(steps, 400, 1e-13)), plain, rtol=1e-4
    )


def share_of_zeros(X, sparsity, penalty, F):
    [end] = solved(
        sparse_hals(MatrixObjective(X, sparsity=sparsity, penalty=penalty), F),
        60,
        1e-13,
    )
    return np.mean(end.factors[1] == 0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_penalties_make_zeros_but_the_squared_norm_does_not(penalty):
    """Badea (2005) says that eq. 12 leads to sparser factors; it leads to smaller ones."""
    weights = {"l1": [0, 0.5, 5]}.get(penalty, [0, 0.02, 0.75])
    shares = np.zeros((2, len(weights)))
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X, F = noisy_biclusters(rng), rng.uniform(0.1, 1, size=(1, 4, 56))
        shares[seed] = [share_of_zeros(X, weight, penalty, F) for weight in weights]
    means = shares.mean(axis=0)
    if penalty == "l2":
        assert means[-1] < means[0]
    else:
        assert (np.diff(means) > 0).all()
        assert means[-1] > means[0] + 0.2


def test_a_weight_that_leaves_nothing_leaves_zeros():
    rng = np.random.default_rng(3)
    X, F = noisy_biclusters(rng), rng.uniform(size=(1, 4, 56))
    for (W, H), loss in islice(
        sparse_hals(MatrixObjective(X, sparsity=1e4, penalty="l1"), F), 1, 5
    ):
        assert_array_equal(H, 0)
        assert_allclose(np.linalg.norm(W, axis=1), 1)
        assert_allclose(loss, (X**2).sum() / 2)
    for (_, H), loss in islice(
        sparse_hals(MatrixObjective(X, sparsity=1e4, penalty="l2"), F), 1, 5
    ):
        assert 0 < H.max() < 1e-2
        assert loss < (X**2).sum() / 2


def printed(X, A, S, sparsity, weight, n_updates, projected):
    """Run the box of section 4 of Badea (2005), and return the values of eq. 12 and the last A.

    `weight` is what stands before S in the denominator; mu, which is not given there, is the
    largest step that cannot raise the fit.
    """
    values = []
    A = A / np.linalg.norm(A, axis=0)
    for _ in range(n_updates):
        S = S * (A.T @ X) / (A.T @ A @ S + weight * S)
        A = A + (X - A @ S) @ S.T / np.linalg.norm(S @ S.T, 2)
        A = np.maximum(A, 0) if projected else A
        A = A / np.linalg.norm(A, axis=0)
        values.append(((X - A @ S) ** 2).sum() / 2 + sparsity * (S**2).sum())
    return np.array(values), A


def test_the_rule_as_published_raises_its_objective_and_leaves_the_nonnegative():
    """The derivative of lambda ||S||^2 is 2 lambda S, and A needs a projection."""
    rises, negative, weight = {"lambda": 0, "2 lambda": 0}, 0, 0.5
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, F = noisy_biclusters(rng) + 0.01, rng.uniform(0.1, 1, size=(1, 4, 56))
        A, S = F[0, :, :21].T, F[0, :, 21:]
        _, A_end = printed(X, A, S, weight, weight, 10, projected=False)
        negative += A_end.min() < -0.01
        for name, factor in [("lambda", 1), ("2 lambda", 2)]:
            values, _ = printed(X, A, S, weight, factor * weight, 300, projected=True)
            rises[name] += (np.diff(values) > 1e-6 * values[0]).any()
    assert negative > 0
    assert rises["lambda"] > 0
    assert rises["2 lambda"] == 0
