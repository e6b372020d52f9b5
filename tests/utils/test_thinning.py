"""Counts that are shared out: their sums and moments; and how much counts vary."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import thin_counts
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster._utils.sampling import _leverage, overdispersion

COUNTS = np.random.default_rng(0).poisson(3.0, size=(8, 5)).astype(float)
COUNTS[2] = 0


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("dtype", "dispersed"),
    [
        (np.float64, 0.1),
        (np.float32, 0),
        (np.int64, 30.0),
        (np.uint16, 1e6),
        (np.float64, 1e-9),
    ],
)
def test_parts_sum_to_the_table_and_keep_its_type(dtype, dispersed):
    X = COUNTS.astype(dtype)
    if dtype is np.float32:
        # the first two: no odd number near them
        X[0, :3] = (2**40 + 2**20, 2**24 + 2, 2**24 - 1)
    parts = thin_counts(X, 4, rng(), dispersed)
    assert len(parts) == 4
    for part in parts:
        assert part.dtype == dtype
        assert part.min() >= 0
        assert_array_equal(part, np.rint(part))
    for order in ([0, 1, 2, 3], [3, 1, 0, 2]):
        assert_array_equal(sum((parts[i] for i in order[1:]), parts[order[0]]), X)


@pytest.mark.parametrize("dispersed", [0, 0.5])
def test_sparse_tables_have_the_parts_of_dense_ones(dispersed):
    dense = thin_counts(COUNTS, 3, rng(), dispersed)
    padded = sp.csr_array(COUNTS + 1)
    padded.data -= 1  # zeros are stored
    for stored in (sp.csr_array(COUNTS), padded):
        for part, expected in zip(
            thin_counts(stored, 3, rng(), dispersed), dense, strict=True
        ):
            assert_array_equal(part.toarray(), expected)
            assert part.data.all()
    assert padded.nnz == COUNTS.size


def test_large_tables_are_shared_out_in_blocks(monkeypatch):
    monkeypatch.setattr("nmfcluster._utils.sampling._DRAWN_ENTRIES", 7)
    assert_array_equal(sum(thin_counts(COUNTS, 3, rng())), COUNTS)


def moments(dispersed, n=20_000, count=12):
    """Return the means and the variances of five parts of many equal counts."""
    parts = np.array(thin_counts(np.full((n, 1), count), 5, rng(), dispersed))[:, :, 0]
    return parts.mean(axis=1), parts.var(axis=1)


def test_parts_are_binomial():
    means, variances = moments(0)
    assert_allclose(means, 12 / 5, rtol=0.02)
    assert_allclose(variances, 12 * 0.2 * 0.8, rtol=0.05)


def test_parts_of_dispersed_counts_are_beta_binomial():
    means, variances = moments(0.25)
    assert_allclose(means, 12 / 5, rtol=0.03)
    # 4 = 1 / 0.25
    assert_allclose(variances, 12 * 0.2 * 0.8 * (4 + 12) / (4 + 1), rtol=0.05)


@pytest.mark.parametrize("dispersed", [0, 0.5])
def test_parts_are_independent(dispersed):
    drawn = rng(1)
    means = drawn.gamma(1 / dispersed, 4 * dispersed, size=40_000) if dispersed else 4.0
    X = drawn.poisson(means, size=40_000)[:, None]
    parts = np.array(thin_counts(X, 2, drawn, dispersed))[:, :, 0]
    assert abs(np.corrcoef(parts)[0, 1]) < 0.02
    assert_allclose(parts.var(axis=1), 2 + 2 * dispersed * 4, rtol=0.05)
    if dispersed:  # parts of Poisson numbers would not be
        assert np.corrcoef(np.array(thin_counts(X, 2, drawn))[:, :, 0])[0, 1] > 0.3


def dispersed_table(phi, n=120, p=90, k=3):
    drawn = rng(2)
    W, H = drawn.gamma(0.5, size=(n, k)) + 0.05, 20 * drawn.gamma(0.5, size=(k, p))
    means = W @ H
    if phi:
        means = means * drawn.gamma(1 / phi, phi, size=means.shape)
    return drawn.poisson(means).astype(float), W, H


@pytest.mark.parametrize("phi", [0.02, 0.5])
def test_dispersion_is_found_from_the_true_means(phi):
    X, W, H = dispersed_table(phi)
    # what is not fitted has no leverage, which the estimate takes off: 3 (120 + 90) of 10,800
    found = overdispersion(X, W, H, rng())
    assert_allclose(found, phi, rtol=0.2, atol=0.006)
    assert_allclose(overdispersion(sp.csr_array(X), W, H, rng()), found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("phi", [0, 0.1])
def test_dispersion_is_found_from_a_fit(phi):
    from nmfcluster import NMFMetaCluster

    X, _, _ = dispersed_table(phi)
    model = NMFMetaCluster(
        3, loss="kullback-leibler", n_estimators=2, random_state=0
    ).fit(X)
    found = overdispersion(X, model.factor_, model.components_, rng())
    assert_allclose(found, phi, rtol=0.15, atol=0.003)


def test_counts_that_vary_less_have_no_dispersion():
    _, W, H = dispersed_table(0)
    assert overdispersion(np.rint(W @ H), W, H, rng()) == 0
    empty = np.zeros((4, 3))
    assert overdispersion(empty, np.zeros((4, 2)), np.zeros((2, 3)), rng()) == 0


def test_of_a_large_table_a_part_is_looked_at(monkeypatch):
    X, W, H = dispersed_table(0.5)
    whole = overdispersion(X, W, H, rng())
    monkeypatch.setattr("nmfcluster._utils.sampling._MAX_SIDE", 60)
    part = overdispersion(X, W, H, rng())
    assert part != whole
    assert_allclose(part, whole, rtol=0.3)


def test_leverage_is_that_of_weighted_least_squares():
    _, W, H = dispersed_table(0, n=6, p=9)
    means = W @ H
    leverage = _leverage(means, H.T, 1.0)
    for i in range(6):
        A = H.T / np.sqrt(means[i])[:, None]
        hat = A @ np.linalg.pinv(A)
        assert_allclose(leverage[i], np.diag(hat), rtol=1e-6)
    assert_allclose(leverage.sum(axis=1), 3)
