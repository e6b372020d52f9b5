"""Parts of an ensemble that are factorized first, and the extension of these to all samples."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from optim.recorded import Recorder, plan
from partitions.cases import factorize_ensemble, float64, hard_loss, in_two_ways, table
from scipy.optimize import nnls

from nmfcluster.partitions.ensemble import Ensemble, EnsembleProblem


def extended(coarse, H, ensemble, normalize):
    part, whole = (
        EnsembleProblem(one, float64, normalize) for one in (coarse, ensemble)
    )
    return whole.extended(part, H)


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 3))
def test_an_extended_row_is_the_least_squares_fit_to_the_part(seed, k):
    """Minimise the sum of w_t (M^t_ij - h_i h_j)^2 over j of the part, and t."""
    rng = np.random.default_rng(seed)
    codes, weights, _ = table(seed, sizes=(8, 6), n_partitions=4)
    ensemble, _ = Ensemble.from_table(codes, weights)
    coarse = ensemble.sample(9, np.random.RandomState(seed % 1000))
    h = 0.3 * rng.uniform(size=(len(coarse), k)) + np.eye(k)[np.arange(len(coarse)) % k]
    found = extended(
        coarse, h * np.sqrt(coarse.counts)[:, None], ensemble, normalize=False
    )
    found = found / np.sqrt(ensemble.counts)[:, None]
    assert found.min() > 0
    # a thousandth of their mean was added
    fitted = found - found.mean() * 1e-3 / (1 + 1e-3)
    excesses = []
    for own, row in zip(fitted, ensemble.codes, strict=True):
        lines, targets = np.zeros((0, k)), []
        for j, t in product(range(len(coarse)), range(4)):
            root = np.sqrt(weights[t] * coarse.counts[j])
            lines = np.vstack([lines, root * h[j]])
            targets.append(root * (row[t] == coarse.codes[j, t]))
        _, length = nnls(lines, np.array(targets))
        excess = ((lines @ own - targets) ** 2).sum() - length**2
        excesses.append(excess / np.square(lines).sum())
    # sweeps may end early where lines are alike, and entries are then far from their ends
    assert max(excesses) <= 0.005
    assert np.median(excesses) <= 1e-5


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.integers(1, 3), st.sampled_from([0.0, 0.4]))
def test_an_extended_row_is_the_least_squares_fit_to_the_normalised_part(
    seed, k, missing
):
    """Minimise the sum of (N_ij - h_i h_j)^2 over j of the part, by sizes of clusters of all."""
    rng = np.random.default_rng(seed)
    codes, weights, _ = table(seed, missing=missing, sizes=(8, 6), n_partitions=4)
    ensemble, _ = Ensemble.from_table(codes, weights)
    coarse = ensemble.sample(9, np.random.RandomState(seed % 1000))
    h = 0.3 * rng.uniform(size=(len(coarse), k)) + np.eye(k)[np.arange(len(coarse)) % k]
    everyone = np.repeat(np.arange(len(coarse)), coarse.counts)
    part = coarse.codes[everyone]
    of_part = (part >= 0) @ weights
    expected = np.zeros((len(ensemble), k))
    for i, row in enumerate(ensemble.codes):
        own = weights[row >= 0].sum()
        sizes = np.maximum((codes == row).sum(axis=0), 1)
        together = ((part == row) & (row >= 0)) @ (weights / sizes)
        expected[i] = nnls(h[everyone], together / np.sqrt(own * of_part))[0]
    expected += 1e-3 * expected.mean()
    found = extended(
        coarse, h * np.sqrt(coarse.counts)[:, None], ensemble, normalize=True
    )
    found = found / np.sqrt(ensemble.counts)[:, None]
    assert found.min() > 0
    assert_allclose(found, expected, atol=1e-3)


def test_extending_to_all_keeps_the_dtype():
    codes, weights, _ = table()
    ensemble, _ = Ensemble.from_table(codes, weights)
    H = np.random.default_rng(0).uniform(size=(len(ensemble), 3)).astype(np.float32)
    for normalize in (True, False):
        assert extended(ensemble, H, ensemble, normalize).dtype == np.float32


@pytest.mark.sampled(2)
@in_two_ways
def test_coarse_to_fine_ends_near_the_full_fit(missing, normalize, caplog):
    codes, weights, _ = table(missing=missing, sizes=(300, 150, 60), n_partitions=8)
    ensemble, groups = Ensemble.from_table(codes, weights)
    made = plan(n_init=3)
    full = factorize_ensemble(ensemble, made, np.random.RandomState(0), normalize)
    caplog.set_level("INFO", "nmfcluster")
    rng = np.random.RandomState(0)
    found = factorize_ensemble(ensemble, made, rng, normalize, coarse_size=100)
    assert all(
        f"{len(ensemble)} label rows, 1 start" in line for line in caplog.messages[-2:]
    )
    assert found.H.shape == (len(ensemble), 3)
    assert found.best.loss <= 1.01 * full.best.loss
    labels, of_full = found.H.argmax(axis=1)[groups], full.H.argmax(axis=1)[groups]
    agree = max(
        (labels == np.array(p)[of_full]).mean() for p in product(range(3), repeat=3)
    )
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
        made = plan(solver=recorder)
        rng = np.random.RandomState(0)
        factorize_ensemble(ensemble, made, rng, True, coarse_size=coarse_size)
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
    made = plan(solver=recorder, n_init=6)
    rng = np.random.RandomState(0)
    factorize_ensemble(ensemble, made, rng, normalize=False, coarse_size=30)
    everyone = np.repeat(np.arange(len(coarse)), coarse.counts)
    hard = [
        hard_loss(coarse.codes[everyone], weights, H.argmax(axis=1)[everyone])
        for H in recorder.starts[:6]
    ]
    assert len(set(hard)) > 1
    expected = extended(
        coarse, recorder.starts[int(np.argmin(hard))], ensemble, normalize=False
    )
    assert_array_equal(recorder.starts[6], expected)


def test_a_negative_tol_runs_all_updates_also_after_coarse():
    codes, weights, _ = table()
    ensemble, _ = Ensemble.from_table(codes, weights)
    made = plan(max_iter=30, tol=-1.0)
    rng = np.random.RandomState(0)
    found = factorize_ensemble(ensemble, made, rng, True, coarse_size=40)
    assert [len(curve) for curve in found.curves] == [31, 31]
