"""Mixtures of sources, dense, sparse and both, against their formulas in dense arrays."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster._arrays.storage import as_dense
from nmfcluster.fusion.mixture import DenseMixture, SparseMixture, make_mixture

seeds = st.integers(0, 10**6)


def drawn(rng, n, n_sources):
    """Draw symmetric sources of several patterns and scales, some with rows of 0."""
    sources = []
    for number in range(n_sources):
        A = rng.uniform(size=(n, n)) * 10.0 ** rng.integers(-3, 4)
        A = A + A.T
        if number % 2:
            A *= (pattern := rng.uniform(size=(n, n)) < 0.3) | pattern.T
        if number % 3 == 1 and n > 2:
            lost = rng.integers(n)
            A[lost], A[:, lost] = 0, 0
        A[n // 2, n // 2] = 1.0  # no source is 0 throughout
        sources.append(A)
    return sources


def strided(A):
    wide = np.full((2 * len(A), 3 * len(A)), np.nan)
    wide[::2, ::3] = A
    return wide[::2, ::3]


STORAGES = {
    "dense": lambda arrays: arrays,
    "sparse": lambda arrays: [sp.csr_array(A) for A in arrays],
    "sparse first": lambda arrays: [A if i % 2 else sp.csr_array(A) for i, A in enumerate(arrays)],
    "dense first": lambda arrays: [sp.csr_array(A) if i % 2 else A for i, A in enumerate(arrays)],
    "Fortran": lambda arrays: [np.asfortranarray(A) for A in arrays],
    "strided": lambda arrays: [strided(A) for A in arrays],
}


each_storage = pytest.mark.parametrize("storage", STORAGES)


def mixture_of(arrays, storage="dense"):
    return make_mixture(STORAGES[storage](arrays), np.ones((len(arrays[0]), len(arrays)), bool))


def weights_of(rng, n_sources):
    weights = rng.uniform(size=n_sources)
    return weights / weights.sum()


def factors_of(rng, n, k):
    """Draw W and H without symmetry, and a W whose product with its H is symmetric."""
    W, H = rng.uniform(0.1, 1, size=(2, n, k))
    return W, H, H * rng.uniform(0.1, 1, size=k)


def plain_mixture(arrays, weights):
    return sum(w * A / A.sum() for w, A in zip(weights, arrays, strict=True))


def plain_entropies(arrays, W=None, H=None):
    """Return the cross-entropies with ``W H'``, or the entropies, pair by pair."""
    entropies = []
    for A in arrays:
        size, entropy = math.fsum(A.ravel().tolist()), []
        for (i, j), value in np.ndenumerate(A):
            if value / size > 0:
                model = value / size if W is None else sum(W[i] * H[j])
                entropy.append(-value / size * math.log(model))
        entropies.append(math.fsum(entropy))
    return entropies


@each_storage
def test_mixture_agrees_with_dense_formulas(storage):
    rng = np.random.default_rng(0)
    for n, n_sources, k in [(1, 1, 1), (2, 4, 5), (9, 3, 2), (64, 2, 3), (65, 2, 2), (150, 4, 2)]:
        arrays, weights = drawn(rng, n, n_sources), weights_of(rng, n_sources)
        mixture = mixture_of(arrays, storage)
        assert mixture.shape == (n, n)
        assert_allclose(mixture.totals, [A.sum() for A in arrays])
        P, dense = mixture.mixed(weights), plain_mixture(arrays, weights)
        assert_allclose(as_dense(mixture.matrix(weights)), dense, rtol=1e-12)
        assert_allclose(mixture.margin(P), dense.sum(axis=1), rtol=1e-12)
        W, H, symmetric = factors_of(rng, n, k)
        ratio = dense / (W @ H.T)
        forth, back = mixture.ratio_products(P, W, H)
        assert_allclose(forth, ratio @ H, rtol=1e-11)
        assert_allclose(back, ratio.T @ W, rtol=1e-11)
        ratio = dense / (symmetric @ H.T)
        assert_allclose(mixture.ratio_product(P, symmetric, H), ratio @ symmetric, rtol=1e-11)


@each_storage
def test_entropies_agree_with_sums_over_pairs(storage):
    rng = np.random.default_rng(1)
    for n, n_sources in [(1, 1), (6, 4), (66, 2)]:
        arrays = drawn(rng, n, n_sources)
        mixture, (W, H, _) = mixture_of(arrays, storage), factors_of(rng, n, 3)
        assert_allclose(mixture.entropies(), plain_entropies(arrays), rtol=1e-11)
        assert_allclose(mixture.cross_entropies(W, H), plain_entropies(arrays, W, H), rtol=1e-11)


def test_sparse_mixture_of_many_entries_agrees_with_the_dense_one():
    """With more entries than are worked on at a time."""
    rng = np.random.default_rng(2)
    arrays, weights = drawn(rng, 270, 2), weights_of(rng, 2)
    dense, sparse = mixture_of(arrays), mixture_of(arrays, "sparse")
    W, H, symmetric = factors_of(rng, 270, 3)
    D, S = dense.mixed(weights), sparse.mixed(weights)
    assert len(S) > 4 * 2**13
    for one, other in [
        (sparse.ratio_products(S, W, H), dense.ratio_products(D, W, H)),
        (sparse.ratio_product(S, symmetric, H), dense.ratio_product(D, symmetric, H)),
        (sparse.cross_entropies(W, H), dense.cross_entropies(W, H)),
        (sparse.entropies(), dense.entropies()),
        (sparse.margin(S), dense.margin(D)),
    ]:
        assert_allclose(one, other, rtol=1e-11)


def test_mixture_is_sparse_if_all_sources_are():
    arrays = drawn(np.random.default_rng(3), 8, 3)
    assert isinstance(mixture_of(arrays, "sparse"), SparseMixture)
    for storage in ("dense", "sparse first", "dense first"):
        assert isinstance(mixture_of(arrays, storage), DenseMixture)


@pytest.mark.parametrize("storage", ["dense", "sparse", "sparse first"])
def test_mixture_takes_the_place_of_an_earlier_one(storage):
    rng = np.random.default_rng(4)
    arrays = drawn(rng, 70, 4)
    mixture = mixture_of(arrays, storage)
    before = mixture.mixed(np.full(4, 0.25))
    before[...] = np.nan  # nothing of it is read
    weights = weights_of(rng, 4)
    after = mixture.mixed(weights, out=before)
    assert_array_equal(after, mixture.mixed(weights))
    assert isinstance(mixture, SparseMixture) or after is before


@pytest.mark.parametrize("storage", ["dense", "sparse", "sparse first"])
def test_weights_of_zero_leave_a_source_out(storage):
    arrays = drawn(np.random.default_rng(5), 20, 3)
    mixture = mixture_of(arrays, storage)
    for number, A in enumerate(arrays):
        only = as_dense(mixture.matrix(np.eye(3)[number]))
        assert_allclose(only, A / A.sum(), rtol=1e-13)


def figures(mixture, weights, W, H):
    P = mixture.mixed(weights)
    return {
        "mixture": as_dense(mixture.matrix(weights)),
        "margin": mixture.margin(P),
        "products": np.stack(mixture.ratio_products(P, W, H)),
        "product": mixture.ratio_product(P, H, H),
        "losses": mixture.cross_entropies(W, H),
        "entropies": mixture.entropies(),
    }


@pytest.mark.parametrize("storage", ["dense", "sparse", "sparse first"])
@settings(max_examples=10)
@given(seeds)
def test_scale_and_order_of_sources_and_order_of_objects_do_not_matter(storage, seed):
    rng = np.random.default_rng(seed)
    n, n_sources = int(rng.integers(2, 80)), int(rng.integers(1, 5))
    arrays, weights = drawn(rng, n, n_sources), weights_of(rng, n_sources)
    W, H, _ = factors_of(rng, n, 2)
    want = figures(mixture_of(arrays, storage), weights, W, H)

    scaled = [1000.0 ** rng.integers(-20, 20) * A for A in arrays]
    for name, value in figures(mixture_of(scaled, storage), weights, W, H).items():
        assert_allclose(value, want[name], rtol=1e-10, err_msg=name)

    order = rng.permutation(n_sources)
    moved = mixture_of([arrays[source] for source in order], storage)
    for name, value in figures(moved, weights[order], W, H).items():
        expected = want[name][order] if name in ("losses", "entropies") else want[name]
        assert_allclose(value, expected, rtol=1e-10, err_msg=name)

    order = rng.permutation(n)
    moved = mixture_of([A[np.ix_(order, order)] for A in arrays], storage)
    results = figures(moved, weights, W[order], H[order])
    assert_allclose(results["mixture"], want["mixture"][np.ix_(order, order)], rtol=1e-12)
    assert_allclose(results["products"], want["products"][:, order], rtol=1e-10)
    assert_allclose(results["product"], want["product"][order], rtol=1e-10)
    assert_allclose(results["margin"], want["margin"][order], rtol=1e-12)
    assert_allclose(results["losses"], want["losses"], rtol=1e-10)


@pytest.mark.parametrize("storage", ["dense", "sparse", "sparse first"])
def test_float32_stays_float32(storage):
    rng = np.random.default_rng(6)
    arrays, weights = drawn(rng, 150, 3), weights_of(rng, 3)
    W, H, _ = factors_of(rng, 150, 4)
    want = figures(mixture_of(arrays, storage), weights, W, H)
    single = mixture_of([A.astype(np.float32) for A in arrays], storage)
    assert single.dtype == np.float32
    assert single.mixed(weights).dtype == np.float32
    results = figures(single, weights, W.astype(np.float32), H.astype(np.float32))
    for name, value in results.items():
        summed = name in ("losses", "entropies")
        assert value.dtype == (np.float64 if summed else np.float32)
        assert_allclose(value, want[name], rtol=1e-6 if summed else 5e-6, err_msg=name)


def test_repeated_and_zero_entries_of_a_sparse_source_count_as_their_sum():
    #   [[1, 2, 0], [2, 0, 0], [0, 0, 4]], the twos in two parts
    data = np.array([1.0, 0.5, 1.5, 2.0, 0.0, 4.0, 0.0])
    stored = sp.csr_array((data, np.array([0, 1, 1, 0, 2, 2, 1]), np.array([0, 3, 5, 7])))
    plain = np.array([[1.0, 2, 0], [2, 0, 0], [0, 0, 4]])
    assert_array_equal(stored.toarray(), plain)
    rng = np.random.default_rng(7)
    other = drawn(rng, 3, 1)[0]
    W, H, _ = factors_of(rng, 3, 2)
    for partner in (other, sp.csr_array(other)):
        seen = np.ones((3, 2), dtype=bool)
        results = figures(make_mixture([stored, partner], seen), np.array([0.7, 0.3]), W, H)
        want = figures(make_mixture([plain, other], seen), np.array([0.7, 0.3]), W, H)
        for name, value in results.items():
            assert_allclose(value, want[name], rtol=1e-12, err_msg=name)
    assert len(stored.data) == 7  # the caller's matrix is as it was


@pytest.mark.parametrize("storage", ["dense", "sparse", "sparse first"])
def test_sources_are_not_written_to(storage):
    rng = np.random.default_rng(8)
    stored = STORAGES[storage](drawn(rng, 20, 3))
    parts = [A.data if sp.issparse(A) else A for A in stored]
    for part in parts:
        part.flags.writeable = False
    mixture = make_mixture(stored, np.ones((20, 3), bool))
    W, H, _ = factors_of(rng, 20, 2)
    figures(mixture, weights_of(rng, 3), W, H)


def test_what_was_seen_is_kept():
    arrays = drawn(np.random.default_rng(9), 5, 3)
    seen = np.ones((5, 3), dtype=bool)
    seen[2, 1] = False
    for storage in ("dense", "sparse"):
        mixture = make_mixture(STORAGES[storage](arrays), seen)
        assert_array_equal(mixture.seen, seen)
        assert_array_equal(mixture.complete, [True, False, True])


@pytest.mark.parametrize("storage", ["dense", "sparse", "sparse first"])
def test_entropies_of_entries_at_the_end_of_the_range(storage):
    """A share can be too small for a float where the entry is not: it adds nothing."""
    for size in (1e-300, 1.0, 1e290):
        A = np.diag([4.0, 3.0, 2.0, 1.0]) * size
        B = A.copy()
        B[0, 1] = B[1, 0] = 5e-324
        B[2, 3] = B[3, 2] = 1e-310
        share = np.arange(1, 5) / 10
        entropy = -float(share @ np.log(share))
        mixture = mixture_of([A, B], storage)
        assert_allclose(mixture.entropies(), [entropy] * 2, rtol=1e-7)
        W = np.full((4, 1), 0.25)
        assert_allclose(mixture.cross_entropies(W, W), [np.log(16)] * 2, rtol=1e-7)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_entropies_of_a_kernel_that_is_far_too_narrow(dtype):
    X = np.random.default_rng(10).normal(size=(120, 2))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    for gamma in (1e1, 1e3, 1e5):
        kernel = np.exp(-gamma * squares).astype(dtype)
        for storage in ("dense", "sparse"):
            entropies = mixture_of([kernel], storage).entropies()
            rtol = 1e-10 if dtype == np.float64 else 1e-7
            assert_allclose(entropies, plain_entropies([kernel.astype(float)]), rtol=rtol)


def test_sparse_sources_of_many_objects_need_no_more_than_their_entries():
    n = 50_000  # a matrix of all pairs would take 20 GB
    ring = sp.diags_array([np.ones(n - 1)] * 2, offsets=[-1, 1], format="csr")
    mixture = make_mixture(
        [sp.csr_array(ring), sp.csr_array(sp.eye_array(n))], np.ones((n, 2), bool)
    )
    P = mixture.mixed(np.array([0.5, 0.5]))
    assert P.shape == (2 * n - 1,)  # of i, j and j, i one
    W = np.full((n, 2), 0.5 / n)
    H = np.full((n, 2), 1 / n)
    model = 1 / n**2
    assert_allclose(mixture.cross_entropies(W, H), [-np.log(model)] * 2)
    assert_allclose(mixture.entropies(), [np.log(2 * n - 2), np.log(n)])
    product = mixture.ratio_product(P, W, H)
    share = 0.5 / (2 * n - 2) + 0.5 / (2 * n - 2) + 0.5 / n
    assert_allclose(product[1], share / model * 0.5 / n)
    assert_allclose(mixture.margin(P).sum(), 1)
