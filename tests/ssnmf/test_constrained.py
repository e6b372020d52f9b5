"""Constraints in a similarity, against the formulas of both papers in dense arrays."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import components
from nmfcluster.similarity import Explicit, Factored
from nmfcluster.ssnmf.constrained import ConstrainedProblem

seeds = st.integers(0, 10**6)
exactly = {"rtol": 1e-10, "atol": 1e-10}
STORAGES = ["dense", "sparse", "factored"]


def problem(seed, n, storage):
    """Draw a signed similarity, its operator, and constraints with weights."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(n, 3)) * (rng.uniform(size=(n, 3)) < 0.7)
    U[0, 0] = 1  # not all 0
    W = U @ U.T
    operator = {
        "dense": lambda: Explicit(W),
        "sparse": lambda: Explicit(sp.csr_array(W)),
        "factored": lambda: Factored(sp.csr_array(U)),
    }[storage]()
    must, cannot = (draw_pairs(rng, n, int(rng.integers(0, n))) for _ in range(2))
    return W, operator, PairwiseConstraints(n, must, cannot)


def draw_pairs(rng, n, size):
    pairs = rng.integers(0, n, size=(size, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return np.column_stack([pairs, rng.uniform(0.2, 3, size=len(pairs))])


def dense_weights(n, pairs, weights):
    """Return the matrix with the weight of every pair in both of its places."""
    M = np.zeros((n, n))
    for (i, j), w in zip(pairs, weights, strict=True):
        M[i, j] = M[j, i] = w
    return M


def rewards_and_penalties(known):
    A = dense_weights(known.n_samples, known.must_link, known.must_link_weights)
    B = dense_weights(known.n_samples, known.cannot_link, known.cannot_link_weights)
    return A, B


def unit_of(W):
    off = W[np.triu_indices(len(W), 1)]
    return np.quantile(abs(off[off != 0]), 0.999) if off.any() else 1.0


def indicator(groups):
    """Return C of shape (n, g) with C_ic = 1 for the samples i of group c."""
    return (np.asarray(groups)[:, None] == np.arange(max(groups) + 1)).astype(float)


def inside(groups, B):
    return np.where(groups[:, None] == groups, 0, B)


def of(operator, known, *, hard=False, alpha=2.0, beta=1.0):
    affinity = SimpleNamespace(name="linear", counts=None, similarity=operator)
    if hard != "auto":
        known = known._with_hard_must_links(hard)
    return ConstrainedProblem(affinity, known, alpha, beta)


anything = given(
    seeds,
    st.integers(2, 11),
    st.sampled_from(STORAGES),
    st.sampled_from([0.0, 0.5, 2.0]),
)


# --- soft --------------------------------------------------------------------------------------


@anything
def test_soft_constraints_are_added_in_units_of_the_large_entry(
    seed, n, storage, alpha
):
    W, operator, known = problem(seed, n, storage)
    A, B = rewards_and_penalties(known)
    u = unit_of(W)
    for beta in (0.0, 1.5):
        found = of(operator, known, alpha=alpha, beta=beta)
        expected = W + alpha * u * A - beta * u * B
        assert_allclose(found.unit, u, rtol=1e-9)
        assert_allclose(found.A.toarray(), expected, **exactly)
        assert_allclose(found.init_similarity.toarray(), W + alpha * u * A, **exactly)
        assert_allclose(found.objective.constant, (expected**2).sum(), **exactly)
        assert_array_equal(found.groups, np.arange(n))
        assert_array_equal(found.mass, np.ones(n))
        H = np.random.default_rng(seed).uniform(size=(n, 2))
        assert_array_equal(found.expand(H), H)


def test_the_four_by_four_case_by_hand():
    X = np.array([[1.0], [2.0], [0.0], [1.0]])
    u = np.quantile([2, 1, 2], 0.999)  # the entries above the diagonal that are not 0
    known = PairwiseConstraints(
        4, must_link=[(0, 1, 0.5)], cannot_link=[(2, 1, 1), (0, 3, 3)]
    )
    expected = [
        [1, 2 + 1, 0, 1 - 3],
        [2 + 1, 4, 0 - 1, 2],
        [0, 0 - 1, 0, 0],
        [1 - 3, 2, 0, 1],
    ]
    for W in (Explicit(X @ X.T), Explicit(sp.csr_array(X @ X.T)), Factored(X)):
        found = of(W, known, alpha=2 / u, beta=1 / u)
        assert_allclose(found.A.toarray(), expected, atol=1e-12)


def test_constraints_that_count_nothing_leave_the_similarity():
    W, operator, known = problem(3, 9, "dense")
    assert known.n_pairs
    for pairs, options in [
        (known, {"alpha": 0.0, "beta": 0.0}),
        (PairwiseConstraints(9), {}),
    ]:
        found = of(operator, pairs, **options)
        assert_allclose(found.A.toarray(), W, **exactly)
        assert_allclose(found.objective.constant, (W**2).sum())


def test_a_factored_similarity_is_never_formed():
    """Of 20,000 samples: W would have 3.2 GB."""
    n = 20_000
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(n, 500, density=0.01, random_state=rng))
    known = PairwiseConstraints.from_labels(
        rng.integers(0, 4, n), n_pairs=4000, random_state=0
    )
    for hard in (False, True):
        found = of(Factored(X), known, hard=hard)
        i, j = known.cannot_link[0]
        if not hard:
            entry = (X[[i]] @ X[[j]].T).toarray()[0, 0]
            penalised = found.A.entries(np.array([i]), np.array([j]))
            assert_allclose(penalised, entry - found.unit)
        h = np.ones((found.A.shape[0], 1))
        assert (found.A @ h).shape == h.shape
        assert found.expand(h).shape == (n, 1)


# --- hard --------------------------------------------------------------------------------------


@anything
def test_hard_must_links_contract_the_similarity(seed, n, storage, beta):
    """W_c = N^-1/2 C'(W + a u A - b u B)C N^-1/2, N the sizes: pairs inside a group are dropped."""
    W, operator, known = problem(seed, n, storage)
    groups = known.components()
    A, B = rewards_and_penalties(known)
    C = indicator(groups)
    scale = np.diag(1 / np.sqrt(C.sum(axis=0)))
    u = unit_of(W)
    found = of(operator, known, hard="auto", alpha=7.0, beta=beta)
    rewarded = W + 7 * u * inside(groups, A)
    penalised = rewarded - beta * u * inside(groups, B)
    assert_allclose(found.A.toarray(), scale @ C.T @ penalised @ C @ scale, **exactly)
    assert_allclose(
        found.init_similarity.toarray(), scale @ C.T @ rewarded @ C @ scale, **exactly
    )
    assert_allclose(found.objective.constant, (penalised**2).sum(), **exactly)
    assert_array_equal(found.groups, groups)
    assert_array_equal(found.mass, C.sum(axis=0))


@anything
def test_the_loss_of_the_contraction_is_that_of_all_samples(seed, n, storage, beta):
    """||A~ - HH'||^2 = constant - 2 <h, A_c h> + ||h'h||^2 with H the expanded h."""
    W, operator, known = problem(seed, n, storage)
    groups = components(n, known.must_link)  # hard=True joins the soft ones, too
    A = W - beta * unit_of(W) * inside(groups, rewards_and_penalties(known)[1])
    found = of(operator, known, hard=True, beta=beta)
    h = np.random.default_rng(seed).uniform(size=(len(found.mass), 3))
    H = found.expand(h)
    for i, j in known.must_link:
        assert_array_equal(H[i], H[j])
    small = (
        found.objective.constant
        - 2 * (h * (found.A @ h)).sum()
        + ((h.T @ h) ** 2).sum()
    )
    assert_allclose(small, ((A - H @ H.T) ** 2).sum(), **exactly)
    assert_allclose(H.T @ H, h.T @ h, **exactly)


def test_the_contraction_by_hand():
    W = np.arange(16.0).reshape(4, 4)
    W = W + W.T
    known = PairwiseConstraints(
        4, must_link=[(0, 2)], cannot_link=[(0, 1, 1), (1, 2, 2), (0, 2, 9)]
    )
    found = of(Explicit(W), known, hard=True, beta=1 / unit_of(W))
    # groups {0, 2}, {1}, {3}: sums over the blocks, divided by the roots of both sizes
    together = (W[0, 0] + W[2, 2] + 2 * W[0, 2]) / 2
    with_1 = (W[0, 1] - 1 + W[2, 1] - 2) / np.sqrt(2)
    with_3 = (W[0, 3] + W[2, 3]) / np.sqrt(2)
    expected = [
        [together, with_1, with_3],
        [with_1, W[1, 1], W[1, 3]],
        [with_3, W[1, 3], W[3, 3]],
    ]
    assert_allclose(found.A.toarray(), expected)
    root = np.sqrt(2)
    assert_allclose(found.expand(np.eye(3)), np.array([[1, 0, 0], [0, root, 0], [1, 0, 0],
                                                       [0, 0, root]]) / root)  # fmt: skip


# --- types -------------------------------------------------------------------------------------


@pytest.mark.parametrize("hard", [False, True])
def test_float32_stays_float32(hard):
    for storage in STORAGES:
        assert_float32_stays_float32(storage, hard)


def assert_float32_stays_float32(storage, hard):
    rng = np.random.default_rng(4)
    U = rng.uniform(size=(9, 3)).astype(np.float32)
    W = {"dense": Explicit(U @ U.T), "sparse": Explicit(sp.csr_array(U @ U.T))}
    operator = W.get(storage, Factored(U))
    known = PairwiseConstraints(9, [(0, 1, 0.5), (1, 2, 1)], [(3, 4, 1), (0, 8, 2)])
    found = of(operator, known, hard=hard)
    for part in (found.A, found.init_similarity):
        assert part.dtype == np.float32
        assert (part @ np.ones((part.shape[0], 1), np.float32)).dtype == np.float32
    assert found.expand(np.ones((len(found.mass), 2), np.float32)).dtype == np.float32
    full = of(Explicit(U.astype(float) @ U.T.astype(float)), known, hard=hard)
    assert_allclose(found.A.toarray(), full.A.toarray(), rtol=1e-4, atol=1e-5)
    assert isinstance(found.objective.constant, float)
    assert isinstance(found.unit, float)


@pytest.mark.parametrize("hard", [False, True])
def test_nothing_that_was_handed_in_is_written_to(hard):
    W, _, known = problem(5, 9, "dense")
    arrays = [W, known.must_link, known.must_link_weights, known.cannot_link]
    before = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    of(Explicit(W), known, hard=hard)
    for array, copy in zip(arrays, before, strict=True):
        assert_array_equal(array, copy)
