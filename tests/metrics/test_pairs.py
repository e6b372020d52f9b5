"""The co-association of pairs against the matrix of all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.datasets import make_partitions
from nmfcluster.metrics import pac_score, pair_consensus


def matrix_of(table, weights):
    """Return the weighted share of the partitions that hold a pair, among those that saw it."""
    together, seen = np.zeros((2, len(table), len(table)))
    for column, w in zip(table.T, weights, strict=True):
        both = np.outer(column >= 0, column >= 0)
        seen += w * both
        together += w * (both & (column[:, None] == column))
    with np.errstate(invalid="ignore"):
        return together / seen


def all_pairs(table, weights):
    values = matrix_of(table, weights)[np.triu_indices(len(table), 1)]
    return np.sort(values[~np.isnan(values)])


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.4]), st.booleans())
def test_all_pairs_of_few_samples(seed, missing, weighted):
    table, _ = make_partitions((8, 5), n_partitions=4, missing=missing, random_state=seed)
    weights = np.random.default_rng(seed).uniform(0.1, 1, size=4) if weighted else np.ones(4)
    expected = all_pairs(table, weights)
    assert_allclose(pair_consensus(table, weights=weights), expected, atol=1e-12)
    for lower, upper in ((0.1, 0.9), (0.25, 0.5), (0, 1)):
        share = np.mean((expected > lower + 1e-9) & (expected <= upper + 1e-9))
        options = {"lower": lower, "upper": upper, "weights": weights}
        assert pac_score(table, **options) == pytest.approx(share)


def test_drawn_pairs_show_the_distribution_of_all():
    table, _ = make_partitions((300, 200, 100), noise=0.3, n_partitions=10, random_state=0)
    exact = all_pairs(table, np.ones(10))
    drawn = pair_consensus(table, n_pairs=20_000, random_state=1)
    assert len(drawn) == 20_000
    for share in np.arange(0.05, 1, 0.1):
        p = np.mean(exact <= share)
        error = np.sqrt(p * (1 - p) / 20_000)
        assert abs(np.mean(drawn <= share) - p) < 4 * error + 1e-12
    assert abs(pac_score(table, n_pairs=20_000) - pac_score(table, n_pairs=10**6)) < 0.015


def test_the_seed_alone_decides_which_pairs_are_drawn():
    table, _ = make_partitions(200, noise=0.4, random_state=0)
    first, again, other = (
        pair_consensus(table, n_pairs=500, random_state=seed) for seed in (0, 0, 1)
    )
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_no_sample_is_a_pair_with_itself():
    table = np.column_stack([np.arange(40), np.arange(40)])  # no two samples are together
    assert_array_equal(pair_consensus(table, n_pairs=700), np.zeros(700))


def test_a_million_samples_take_no_more_than_the_pairs():
    table = np.random.default_rng(0).integers(0, 3, size=(10**6, 4)).astype(np.int8)
    assert abs(pair_consensus(table, n_pairs=10_000).mean() - 1 / 3) < 0.02


def test_pac_is_0_for_agreement_and_1_for_none():
    y = np.repeat([0, 1, 2], 20)
    assert pac_score(np.column_stack([y, 2 - y])) == 0
    half = np.column_stack([np.zeros(60, int), np.arange(60)])  # all pairs together in one of two
    assert pac_score(half) == 1
