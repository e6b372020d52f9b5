"""Sums over blocks: the rows that fit best, and exact sums of them, whatever the blocks are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from partitions.cases import complete_or_not, in_both_forms
from scipy.optimize import nnls

from nmfcluster.datasets import make_partitions
from nmfcluster.partitions import blocks, sums
from nmfcluster.partitions.blocks import BlockedTable, TableSummary
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.partitions.problem import EnsembleProblem
from nmfcluster.partitions.sums import (
    Fitted,
    Footing,
    added,
    all_added,
    counts_of_block,
    first_fitted,
    sums_of_block,
)

EPS = 2.0**-16


def planted(missing, n_partitions=5, sizes=(30, 20, 15), seed=0, least=0.3):
    """Return a label table with all rows seen, and unequal weights."""
    codes, _ = make_partitions(
        sizes, n_partitions=n_partitions, noise=0.25, missing=missing, random_state=seed
    )
    weights = np.linspace(least, 1, n_partitions)
    return codes, weights / weights.sum()


def footing_of(codes, weights, normalize):
    whole = TableSummary.of_block(codes, 0, weights > 0, 10**6)
    return Footing(BlockedTable(whole.known, whole.sizes, weights, len(codes)), normalize)


def fitted_to(codes, footing, seed=0, k=3):
    """Return what rows are fitted to: a factor of a part of the samples."""
    rng = np.random.default_rng(seed)
    some = np.sort(rng.permutation(len(codes))[: len(codes) // 2])
    rows, counts = np.unique(footing.table.codes(codes[some]), axis=0, return_counts=True)
    H = rng.uniform(size=(len(rows), k)) * np.sqrt(counts)[:, None]
    return first_fitted(footing.table.ensemble(rows, counts), H, footing)


def clusters(codes):
    """Return every base cluster: its partition, and which samples are in it."""
    for t, column in enumerate(codes.T):
        for label in np.unique(column[column >= 0]):
            yield t, column == label


def similarity(codes, weights):
    """Sum w_t / size over the pairs in one cluster, over the roots of the weight that saw both."""
    N = np.zeros((len(codes), len(codes)))
    for t, members in clusters(codes):
        N[np.ix_(members, members)] += weights[t] / members.sum()
    root = np.sqrt((codes >= 0) @ weights)
    return N / root[:, None] / root


def projector(codes, t):
    """Return 1 over the size of the cluster for two samples that partition t has together."""
    column = codes[:, t]
    together = (column[:, None] == column) & (column[:, None] >= 0)
    return together / np.maximum(together.sum(axis=0), 1)


def literal_rows(codes, weights, factor, normalize):
    """Return the rows that fit to a factor of all samples, by pairs, one sample at a time."""
    if normalize:
        return np.array([nnls(factor, row)[0] for row in similarity(codes, weights)])
    fitted = np.empty(factor.shape)
    for i, row in enumerate(codes):
        lines, targets = [], []
        for t, w in enumerate(weights):
            for j in range(len(codes)):
                if row[t] >= 0 and codes[j, t] >= 0:
                    lines.append(np.sqrt(w) * factor[j])
                    targets.append(np.sqrt(w) * (row[t] == codes[j, t]))
        fitted[i] = nnls(np.array(lines), np.array(targets))[0]
    return fitted


def links_and_grams(codes, weights, factor, normalize):
    """Return the sums over the members of every base cluster, and H'H, that of a partition's."""
    scaled = factor
    if normalize:
        scaled = factor / np.sqrt((codes >= 0) @ weights)[:, None]
    links = np.array([scaled[members].sum(axis=0) for _, members in clusters(codes)])
    if normalize or codes.min() >= 0:
        return links, factor.T @ factor
    return links, np.array([factor[c >= 0].T @ factor[c >= 0] for c in codes.T])


def all_rows(codes, footing):
    return footing.table.ensemble(footing.table.codes(codes), np.ones(len(codes), dtype=int))


# --- rows -----------------------------------------------------------------------------------------


@in_both_forms
@complete_or_not
def test_rows_are_the_least_squares_fit(missing, normalize, monkeypatch):
    monkeypatch.setattr(sums, "_SWEEPS", 100)  # to the end
    codes, weights = planted(missing, sizes=(14, 10, 8))
    footing = footing_of(codes, weights, normalize)
    factor = np.random.default_rng(1).uniform(size=(len(codes), 3))
    factor[np.arange(len(codes)), codes.max(axis=1)] += 1
    fitted = Fitted(*links_and_grams(codes, weights, factor, normalize))
    assert footing.by_partition == (fitted.grams.ndim == 3)
    found = fitted.rows(all_rows(codes, footing), footing)
    assert_allclose(found, literal_rows(codes, weights, factor, normalize), atol=2e-4)


@in_both_forms
@complete_or_not
def test_rows_do_not_depend_on_those_beside_them(missing, normalize, monkeypatch):
    codes, weights = planted(missing)
    footing = footing_of(codes, weights, normalize)
    fitted = fitted_to(codes, footing)
    whole = fitted.rows(all_rows(codes, footing), footing)
    monkeypatch.setattr(sums, "_PRODUCTS", 9 * 4)
    assert_array_equal(fitted.rows(all_rows(codes, footing), footing), whole)
    for i in (0, 7, 40):
        alone = footing.table.ensemble(footing.table.codes(codes[i : i + 1]), np.ones(1, int))
        assert_array_equal(fitted.rows(alone, footing)[0], whole[i])


def test_a_column_of_zeros_stays_so():
    codes, weights = planted(0.0)
    footing = footing_of(codes, weights, True)
    fitted = fitted_to(codes, footing)
    links, grams = fitted.links.copy(), fitted.grams.copy()
    links[:, 1] = grams[1] = grams[:, 1] = 0
    without = Fitted(links, grams)
    assert_array_equal(without.rows(all_rows(codes, footing), footing)[:, 1], 0)
    found = sums_of_block(codes, footing, without, without.grid(footing))
    assert_array_equal(found["links"][:, 1], 0)


@in_both_forms
@complete_or_not
def test_the_factor_of_a_sample_stands_for_all(missing, normalize):
    """With each row so many times, the sums are those of the whole table, literally."""
    codes, weights = planted(missing, sizes=(10, 8, 6))
    twice = np.concatenate([codes, codes])
    footing = footing_of(twice, weights, normalize)
    rows, groups, counts = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
    H = np.random.default_rng(0).uniform(size=(len(rows), 3)) * np.sqrt(counts)[:, None]
    found = first_fitted(footing.table.ensemble(footing.table.codes(rows), counts), H, footing)
    alone = (H / np.sqrt(counts)[:, None])[groups.ravel()]
    factor = np.concatenate([alone, alone]) / (np.sqrt(2) if normalize else 1)
    links, grams = links_and_grams(twice, weights, factor, normalize)
    assert_allclose(found.links, links, rtol=1e-10)
    assert_allclose(found.grams, grams, rtol=1e-10)


# --- sums -----------------------------------------------------------------------------------------


@in_both_forms
@complete_or_not
@pytest.mark.parametrize("least", [0.3, 1e-7])
def test_sums_are_those_of_the_samples(missing, normalize, least):
    codes, weights = planted(missing, least=least)
    footing = footing_of(codes, weights, normalize)
    fitted = fitted_to(codes, footing)
    grid = fitted.grid(footing)
    found = sums_of_block(codes, footing, fitted, grid)
    H = fitted.rows(all_rows(codes, footing), footing)
    assert (H / grid).max() <= 2**16  # every entry can be counted
    assert all(values.dtype == np.int64 for values in found.values())
    rounded = np.rint(H / grid) * grid
    links, grams = links_and_grams(codes, weights, rounded, normalize)
    scale = footing.step * grid * len(codes)  # a step of every sample, at most
    assert (abs(found["links"] * grid * footing.step - links) <= scale).all()
    assert_allclose(found["grams"] * np.outer(grid, grid), grams, rtol=1e-12)
    shares = H / H.sum(axis=1, keepdims=True)
    labels = np.eye(3)[H.argmax(axis=1)]
    assert_allclose(found["mass"] / 2**20, shares.sum(axis=0), rtol=1e-5)
    assert_array_equal(found["members"], labels.sum(axis=0))
    for c, (_, members) in enumerate(clusters(codes)):
        assert_allclose(found["contingency"][c] / 2**20, shares[members].sum(axis=0), atol=1e-4)
        assert_array_equal(found["labels"][c], labels[members].sum(axis=0))


@in_both_forms
@complete_or_not
def test_sums_are_the_same_bits_however_they_are_added(missing, normalize, monkeypatch):
    codes, weights = planted(missing, sizes=(60, 50, 40))
    footing = footing_of(codes, weights, normalize)
    fitted = fitted_to(codes, footing)
    grid = fitted.grid(footing)
    profiles = np.random.default_rng(0).uniform(size=(2, len(footing.sizes), 3))
    wanted = sums_of_block(codes, footing, fitted, grid)
    counted = counts_of_block(codes, footing, profiles)
    rng = np.random.default_rng(0)
    for held in (blocks.ROWS, 16):
        monkeypatch.setattr(blocks, "ROWS", held)
        ends = np.sort(rng.choice(np.arange(1, len(codes)), size=5, replace=False))
        parts = np.split(codes, ends)
        several = [sums_of_block(part, footing, fitted, grid) for part in parts]
        counts = [counts_of_block(part, footing, profiles) for part in parts]
        order = rng.permutation(6)
        for whole, own in ((wanted, several), (counted, counts)):
            ordered = [own[i] for i in order]
            nested = added(all_added(ordered[:2]), added({}, all_added(ordered[2:])))
            for total in (all_added(ordered), nested):
                assert total.keys() == whole.keys()
                for name, values in whole.items():
                    assert_array_equal(total[name], values)


def test_labels_by_a_profile_are_counted():
    codes, weights = planted(0.3)
    footing = footing_of(codes, weights, True)
    profiles = np.random.default_rng(0).uniform(size=(2, len(footing.sizes), 3))
    found = counts_of_block(codes, footing, profiles)
    Z = np.array([members for _, members in clusters(codes)]).T.astype(float)
    for r, profile in enumerate(profiles):
        E = np.eye(3)[(Z @ profile).argmax(axis=1)]
        assert_array_equal(found["labels"][r], Z.T @ E)
        assert_array_equal(found["members"][r], E.sum(axis=0))


@pytest.mark.parametrize("least", [1.0, 1e-9])
def test_sums_over_a_billion_samples_are_whole_numbers(least):
    """What a sample adds at most, times as many, is below 2^63; times a block's rows below 2^53."""
    codes, weights = planted(0.3, least=least)
    footing = footing_of(codes, weights, True)
    fitted = fitted_to(codes, footing)
    H = fitted.rows(all_rows(codes, footing), footing)
    entry = 2**16  # steps of an entry, see the test above
    scale = 1 / np.sqrt(weights.min()) / footing.step  # of a sample that one partition saw
    assert 0 < (H / fitted.grid(footing)).max() <= entry
    assert scale <= 2**16
    for most in (entry * scale, entry**2, scale**2, 2.0**32 / 2, 2.0**20):
        assert most * 10**9 < 2**63
        assert most * blocks.ROWS < 2**53


# --- what the partitions count for ----------------------------------------------------------------


@in_both_forms
@complete_or_not
@pytest.mark.parametrize("least", [0.3, 1e-7])
def test_the_loss_of_the_zero_factor(missing, normalize, least):
    codes, weights = planted(missing, least=least)
    footing = footing_of(codes, weights, normalize)
    fitted = fitted_to(codes, footing)
    found = sums_of_block(codes, footing, fitted, fitted.grid(footing))
    root = np.sqrt((codes >= 0) @ weights)
    expected = 0.0
    for t, members in clusters(codes):
        M = np.outer(members, members).astype(float)
        if normalize:
            M = M / members.sum() / root[:, None] / root
        expected += weights[t] * (M**2).sum()
    assert_allclose(footing.constant(found), expected, rtol=1e-8)
    ensemble, groups = Ensemble.from_table(codes, weights)
    problem = EnsembleProblem(ensemble, groups, np.dtype(float), normalize)
    assert_allclose(footing.constant(found), problem.objective.constant, rtol=1e-8)


@complete_or_not
def test_the_hard_loss_is_that_of_the_columns_of_a_partition(missing):
    codes, weights = planted(missing)
    footing = footing_of(codes, weights, normalize=True)
    labels = np.random.default_rng(0).integers(3, size=len(codes))
    mass = (codes >= 0) @ weights
    root = np.sqrt(mass)
    N = similarity(codes, weights)
    H = np.zeros((len(codes), 3))
    for c in range(3):
        u = root * (labels == c)
        u /= np.linalg.norm(u)
        H[:, c] = np.sqrt(u @ N @ u) * u
    expected = constant = 0.0
    for t, w in enumerate(weights):
        P = projector(codes, t) / root[:, None] / root
        expected += w * ((P - H @ H.T) ** 2).sum()
        constant += w * (P**2).sum()
    contingency = np.array(
        [np.eye(3)[labels][members].sum(axis=0) for _, members in clusters(codes)]
    )
    found = footing.hard_loss(contingency.astype(np.int64), constant)
    assert_allclose(found, expected, rtol=1e-10)
