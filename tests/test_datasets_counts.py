"""Made-up counts: what their docstrings promise."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.datasets import make_programs, make_signatures

makers = pytest.mark.parametrize("make", [make_programs, make_signatures])


@makers
def test_counts_are_whole_and_factors_are_shares(make):
    X, W, H = make(50, random_state=0)
    assert X.dtype.kind == "i"
    assert X.min() >= 0
    assert_allclose(H.sum(axis=1), 1)
    assert min(W.min(), H.min()) >= 0
    assert X.shape == (W @ H).shape == (50, H.shape[1])
    assert_array_equal(make(50, random_state=0)[0], X)
    assert (make(50, random_state=1)[0] != X).any()


def test_means_of_programs_are_the_product_and_variances_those_of_gamma_poisson_numbers():
    X, W, H = make_programs(3000, 20, 2, depth=1000, dispersion=0.5, random_state=0)
    means = W @ H
    variances = (means + 0.5 * means**2).sum(axis=0)
    assert (abs(X.sum(axis=0) - means.sum(axis=0)) < 5 * np.sqrt(variances)).all()
    off = (X - means) ** 2
    assert_allclose(off.sum(axis=0), variances, rtol=0.3)
    X, W, H = make_programs(3000, 20, 2, depth=1000, dispersion=0, random_state=0)
    assert_allclose(((X - W @ H) ** 2).sum(axis=0), (W @ H).sum(axis=0), rtol=0.2)


def test_depth_housekeeping_and_doublets_are_as_asked():
    X, W, _ = make_programs(2000, 100, 4, depth=500, random_state=0)
    assert_allclose(np.median(W.sum(axis=1)), 500, rtol=0.05)
    assert_allclose(np.median(X.sum(axis=1)), 500, rtol=0.05)
    double = make_programs(2000, 100, 4, depth=500, doublets=0.5, random_state=0)[1]
    ratio = double.sum(axis=1) / W.sum(axis=1)
    assert_allclose(np.mean(ratio > 1.5), 0.5, atol=0.05)
    for share in (0, 0.6):
        H = make_programs(10, 500, 6, housekeeping=share, random_state=0)[2]
        low = H.min(axis=0).sum()  # what all have
        assert low >= share
        assert low < share + 0.2 * (1 - share)


def test_signatures_go_from_peaked_to_flat_and_samples_have_few():
    X, W, H = make_signatures(400, 12, burden=3000, random_state=0)
    entropy = -(H * np.log(np.maximum(H, 1e-300))).sum(axis=1)
    assert entropy[:3].mean() + 1.5 < entropy[-3:].mean() < np.log(96)
    assert 3 < (W > 0).sum(axis=1).mean() < 5
    assert (W > 0).any(axis=1).all()
    amounts = np.log(W[W > 0])  # of four signatures on average
    assert_allclose(np.median(amounts), np.log(3000 / 4), atol=0.1)
    assert_allclose(amounts.std(), 0.8, rtol=0.1)
    assert_allclose(X.sum(axis=1), W.sum(axis=1), rtol=0.25)


def test_noise_changes_counts_by_its_share():
    clean, W, H = make_signatures(200, random_state=0)
    noisy, W_noisy, H_noisy = make_signatures(200, noise=0.1, random_state=0)
    assert_array_equal(W, W_noisy)
    assert_array_equal(H, H_noisy)
    large = clean > 200
    off = (noisy - clean)[large] / clean[large]
    assert_allclose(off.std(), 0.1, rtol=0.2)
    assert noisy.min() >= 0
