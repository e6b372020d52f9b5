"""Sums over blocks: the rows that fit best, and exact sums of them, whatever the blocks are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from partitions.cases import complete_or_not
from scipy.optimize import nnls

from nmfcluster.datasets import make_partitions
from nmfcluster.partitions.ensemble import Ensemble, EnsembleProblem

pytest.importorskip("nmfcluster.dask")

from nmfcluster.dask import blocks
from nmfcluster.dask.blocks import (
    BlockedTable,
    TableSummary,
    Target,
    add_sums,
    counts_of_block,
    first_target,
    sums_of_block,
    zero_loss,
)


def planted(missing, n_partitions=5, sizes=(30, 20, 15), seed=0, least=0.3):
    """Return a label table with all rows seen, and unequal weights."""
    codes, _ = make_partitions(
        sizes, n_partitions=n_partitions, noise=0.25, missing=missing, random_state=seed
    )
    if missing:  # one row is that of the partition of the smallest weight alone
        codes[codes[:, 0].argmax(), 1:] = -2
    weights = np.linspace(least, 1, n_partitions)
    return codes, weights / weights.sum()


def problem_of(codes, weights):
    whole = TableSummary.of_block(codes, 0, weights, 10**6)
    return BlockedTable(whole.clusters, weights, len(codes), whole.least)


def target_of(codes, problem, seed=0, k=3):
    """Return what rows are fitted to: a factor of a part of the samples."""
    rng = np.random.default_rng(seed)
    some = np.sort(rng.permutation(len(codes))[: len(codes) // 2])
    rows, counts = np.unique(problem.codes(codes[some]), axis=0, return_counts=True)
    H = rng.uniform(size=(len(rows), k)) * np.sqrt(counts)[:, None]
    return first_target(problem.ensemble(rows, counts), H, problem)


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


def literal_rows(codes, weights, factor):
    """Return the rows that fit to a factor of all samples, by pairs, one sample at a time."""
    return np.array([nnls(factor, row)[0] for row in similarity(codes, weights)])


def links_and_gram(codes, weights, factor):
    """Return the sums over the members of every base cluster, and H'H, over all samples."""
    scaled = factor / np.sqrt((codes >= 0) @ weights)[:, None]
    links = np.array([scaled[members].sum(axis=0) for _, members in clusters(codes)])
    return links, factor.T @ factor


def all_rows(codes, problem):
    return problem.ensemble(problem.codes(codes), np.ones(len(codes), dtype=int))


# --- rows -----------------------------------------------------------------------------------------


@complete_or_not
def test_rows_are_the_least_squares_fit(missing, monkeypatch):
    monkeypatch.setattr(blocks, "_SWEEPS", 100)  # to the end
    codes, weights = planted(missing, sizes=(14, 10, 8))
    problem = problem_of(codes, weights)
    factor = np.random.default_rng(1).uniform(size=(len(codes), 3))
    factor[np.arange(len(codes)), codes.max(axis=1)] += 1
    target = Target(*links_and_gram(codes, weights, factor))
    found = target.rows(all_rows(codes, problem), problem)
    assert_allclose(found, literal_rows(codes, weights, factor), atol=2e-4)


@complete_or_not
def test_rows_do_not_depend_on_those_beside_them(missing):
    codes, weights = planted(missing)
    problem = problem_of(codes, weights)
    target = target_of(codes, problem)
    whole = target.rows(all_rows(codes, problem), problem)
    for part in (slice(0, 1), slice(7, 8), slice(3, 20)):
        assert_array_equal(
            target.rows(all_rows(codes[part], problem), problem), whole[part]
        )


def test_a_column_of_zeros_stays_so():
    codes, weights = planted(0.0)
    problem = problem_of(codes, weights)
    target = target_of(codes, problem)
    links, gram = target.links.copy(), target.gram.copy()
    links[:, 1] = gram[1] = gram[:, 1] = 0
    without = Target(links, gram)
    assert_array_equal(without.rows(all_rows(codes, problem), problem)[:, 1], 0)
    found = sums_of_block(codes, problem, without, without.grid(problem))
    assert_array_equal(found["links"][:, 1], 0)


@complete_or_not
def test_the_factor_of_a_sample_stands_for_all(missing):
    """With each row so many times, the sums are those of the whole table, literally."""
    codes, weights = planted(missing, sizes=(10, 8, 6))
    twice = np.concatenate([codes, codes])
    problem = problem_of(twice, weights)
    rows, groups, counts = np.unique(
        codes, axis=0, return_inverse=True, return_counts=True
    )
    H = np.random.default_rng(0).uniform(size=(len(rows), 3)) * np.sqrt(counts)[:, None]
    found = first_target(problem.ensemble(problem.codes(rows), counts), H, problem)
    alone = (H / np.sqrt(counts)[:, None])[groups.ravel()]
    factor = np.concatenate([alone, alone]) / np.sqrt(2)
    links, gram = links_and_gram(twice, weights, factor)
    assert_allclose(found.links, links, rtol=1e-10)
    assert_allclose(found.gram, gram, rtol=1e-10)


# --- sums -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("missing", "least"), [(0.0, 0.3), (0.3, 1e-7)])
def test_sums_are_those_of_the_samples(missing, least):
    codes, weights = planted(missing, least=least)
    problem = problem_of(codes, weights)
    target = target_of(codes, problem)
    grid = target.grid(problem)
    found = sums_of_block(codes, problem, target, grid)
    H = target.rows(all_rows(codes, problem), problem)
    assert (H / grid).max() <= 2**16  # every entry can be counted
    assert all(values.dtype == np.int64 for values in found.values())
    rounded = np.rint(H / grid) * grid
    links, gram = links_and_gram(codes, weights, rounded)
    scale = problem.scale_unit * grid * len(codes)  # a step of every sample, at most
    assert (abs(found["links"] * grid * problem.scale_unit - links) <= scale).all()
    assert_allclose(found["gram"] * np.outer(grid, grid), gram, rtol=1e-12)
    E = np.eye(3)[H.argmax(axis=1)]
    assert_array_equal(found["members"], E.sum(axis=0))
    for c, (_, members) in enumerate(clusters(codes)):
        assert_array_equal(found["contingency"][c], E[members].sum(axis=0))
        assert found["sizes"][c] == members.sum()
    assert_allclose(zero_loss(problem, found), loss_of_zero(codes, weights), rtol=1e-8)


def loss_of_zero(codes, weights):
    """Return the weighted sum of the squared norms of the partitions, pair by pair."""
    root, expected = np.sqrt((codes >= 0) @ weights), 0.0
    for t, members in clusters(codes):
        M = np.outer(members, members).astype(float)
        P = M / members.sum() / root[:, None] / root
        expected += weights[t] * (P**2).sum()
    ensemble, _ = Ensemble.from_table(codes, weights)
    in_memory = EnsembleProblem(ensemble, np.dtype(float), True)
    assert_allclose(in_memory.objective.constant, expected, rtol=1e-8)
    return expected


@pytest.mark.sampled(2)
@complete_or_not
def test_sums_are_the_same_bits_however_they_are_added(missing, monkeypatch):
    codes, weights = planted(missing, sizes=(60, 50, 40))
    problem = problem_of(codes, weights)
    target = target_of(codes, problem)
    grid = target.grid(problem)
    profiles = np.random.default_rng(0).uniform(size=(2, len(problem.sizes), 3))
    wanted = sums_of_block(codes, problem, target, grid)
    counted = counts_of_block(codes, problem, profiles)
    rng = np.random.default_rng(0)
    for held in (blocks.LABEL_BLOCK_ROWS, 16):
        monkeypatch.setattr(blocks, "LABEL_BLOCK_ROWS", held)
        ends = np.sort(rng.choice(np.arange(1, len(codes)), size=5, replace=False))
        parts = np.split(codes, ends)
        several = [sums_of_block(part, problem, target, grid) for part in parts]
        counts = [counts_of_block(part, problem, profiles) for part in parts]
        order = rng.permutation(6)
        for whole, own in ((wanted, several), (counted, counts)):
            ordered = [own[i] for i in order]
            nested = add_sums([add_sums(ordered[:2]), add_sums(ordered[2:])])
            for total in (add_sums(ordered), nested):
                assert total.keys() == whole.keys()
                for name, values in whole.items():
                    assert_array_equal(total[name], values)


def test_labels_by_a_profile_are_counted():
    codes, weights = planted(0.3)
    problem = problem_of(codes, weights)
    profiles = np.random.default_rng(0).uniform(size=(2, len(problem.sizes), 3))
    found = counts_of_block(codes, problem, profiles)
    Z = np.array([members for _, members in clusters(codes)]).T.astype(float)
    for r, profile in enumerate(profiles):
        E = np.eye(3)[(Z @ profile).argmax(axis=1)]
        assert_array_equal(found["labels"][r], Z.T @ E)
        assert_array_equal(found["members"][r], E.sum(axis=0))


@pytest.mark.parametrize("least", [1.0, 1e-9])
def test_sums_over_a_billion_samples_are_whole_numbers(least):
    """What a sample adds at most, times as many, is below 2^63; times a block's rows below 2^53."""
    codes, weights = planted(0.3, least=least)
    problem = problem_of(codes, weights)
    target = target_of(codes, problem)
    H = target.rows(all_rows(codes, problem), problem)
    entry = 2**16  # steps of an entry, see the test above
    # of a sample that one partition saw
    scale = 1 / np.sqrt(weights.min()) / problem.scale_unit
    assert 0 < (H / target.grid(problem)).max() <= entry
    assert scale <= 2**16
    for most in (entry * scale, entry**2, scale**2, 2.0**32 / 2, 2.0**20):
        assert most * 10**9 < 2**63
        assert most * blocks.LABEL_BLOCK_ROWS < 2**53
