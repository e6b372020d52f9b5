"""Passes over blocks: their loss is that of the factor, they fall, and end where memory does."""

from functools import partial
from operator import itemgetter

import numpy as np
import pytest
from internals import SolverConfig, bregman_nmf, factorize
from numpy.testing import assert_allclose, assert_array_equal
from partitions.cases import complete_or_not
from refusals import raises_naming
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions.ensemble import EnsembleProblem

pytest.importorskip("nmfcluster.dask")

from nmfcluster.dask import blocks
from nmfcluster.dask.blocks import (
    BlockedTable,
    TableSummary,
    add_sums,
    first_target,
    improve,
    next_target,
    sums_of_block,
    zero_loss,
)


def planted(missing, sizes=(60, 40, 30), n_partitions=8, noise=0.3, least=0.5):
    codes, y = make_partitions(
        sizes, n_partitions=n_partitions, noise=noise, missing=missing, random_state=1
    )
    if missing:  # one row is that of the partition of the smallest weight alone
        codes[codes[:, 0].argmax(), 1:] = -2
    weights = np.linspace(least, 1, n_partitions)
    return codes, weights / weights.sum(), y


def loss_of_samples(codes, weights, H):
    """Sum w_t (P^t_ij - h_i h_j)^2 over all pairs."""
    root, total = np.sqrt((codes >= 0) @ weights), 0.0
    for column, w in zip(codes.T, weights, strict=True):
        seen = column >= 0
        M = ((column[:, None] == column) & np.outer(seen, seen)).astype(float)
        P = M / np.maximum(M.sum(axis=0), 1) / root[:, None] / root
        total += w * ((P - H @ H.T) ** 2).sum()
    return total


class Blocks:
    """A table in blocks: what all of them sum to."""

    def __init__(self, codes, weights, n_blocks=3):
        whole = TableSummary.of_block(codes, 0, weights, 10**6)
        self.problem = BlockedTable(whole.clusters, weights, len(codes), whole.least)
        self.codes = codes
        self.parts = np.array_split(codes, n_blocks)
        self.calls = []

    def everywhere(self, function):
        self.calls.append(function)
        return add_sums([function(part) for part in self.parts])

    def sample(self, size, seed=0, k=3):
        """Return some rows, and a factor that has little to do with them."""
        rng = np.random.default_rng(seed)
        codes = self.codes[rng.permutation(len(self.codes))[:size]]
        codes, counts = np.unique(codes, axis=0, return_counts=True)
        rows = self.problem.ensemble(self.problem.codes(codes), counts)
        return rows, rng.uniform(0.5, 1, size=(len(rows), k)) * np.sqrt(counts)[:, None]

    def factor(self, target):
        codes = self.problem.codes(self.codes)
        rows = self.problem.ensemble(codes, np.ones(len(codes), dtype=int))
        return target.rows(rows, self.problem)

    def passed(self, target):
        """Return the sums of a pass, the next target, the loss, and the factor as it is counted."""
        grid = target.grid(self.problem)
        sums = self.everywhere(
            partial(sums_of_block, problem=self.problem, target=target, grid=grid)
        )
        rounded = np.rint(self.factor(target) / grid) * grid
        return sums, *next_target(sums, self.problem, grid), rounded


# --- a pass ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("missing", "least"), [(0.0, 0.5), (0.3, 1e-7)])
def test_the_loss_of_a_pass_is_that_of_all_samples(missing, least):
    codes, weights, _ = planted(
        missing, sizes=(25, 20, 10), n_partitions=5, least=least
    )
    held = Blocks(codes, weights)
    target = first_target(*held.sample(20), held.problem)
    for _ in range(2):
        sums, target, loss, H = held.passed(target)
        # as columns were
        scaled = H * np.sqrt(np.diagonal(target.gram) / (H**2).sum(axis=0))
        assert_allclose(loss, loss_of_samples(codes, weights, scaled), rtol=1e-5)
        zero = loss_of_samples(codes, weights, 0 * H)
        assert_allclose(zero_loss(held.problem, sums), zero, rtol=1e-7)
        assert target.links.min() >= 0


@complete_or_not
def test_scaling_columns_never_raises_the_loss(missing):
    codes, weights, _ = planted(missing, sizes=(25, 20, 10), n_partitions=5)
    held = Blocks(codes, weights)
    rng = np.random.default_rng(0)
    for seed in range(3):
        target = first_target(*held.sample(20, seed), held.problem)
        _, _, loss, H = held.passed(target)
        for _ in range(10):
            other = H * rng.uniform(0.5, 1.5, size=3)
            assert loss <= loss_of_samples(codes, weights, other) * (1 + 1e-6)
        assert loss <= loss_of_samples(codes, weights, H) * (1 + 1e-6)


def mean_profile(held, weights, target):
    """Return the mean co-association of members of base clusters with the clusters of a pass."""
    H, profile = held.factor(target), []
    shares = np.eye(H.shape[1])[H.argmax(axis=1)]
    for column, w in zip(held.codes.T, weights, strict=True):
        for label in np.unique(column[column >= 0]):
            profile.append(w * shares[column == label].sum(axis=0) / shares.sum(axis=0))
    return np.array(profile)


# --- several --------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@complete_or_not
def test_passes_fall_and_end_where_memory_does(missing):
    codes, weights, y = planted(missing, sizes=(120, 80, 60))
    held = Blocks(codes, weights)
    rows, _ = held.sample(60)
    model = NMFConsensus(3, affinity="partitions", random_state=0)
    part = EnsembleProblem(rows, np.dtype(float), True)
    plan = SolverConfig(3, bregman_nmf, 2, 500, 1e-6, None)
    start = factorize(part, plan, np.random.RandomState(0)).H
    found, losses = improve(
        held.everywhere, held.problem, first_target(rows, start, held.problem), 6
    )
    assert len(losses) == 6
    assert (np.diff(losses) <= 1e-9 * losses[0]).all()
    model.set_params(weights=weights, tol=1e-9, max_iter=3000).fit(codes)
    assert losses[-1] <= model.loss_ * (1 + 1e-3)
    assert losses[-1] >= model.loss_ * (1 - 1e-3)
    labels = held.problem.map_rows(codes, found.of_rows, name="labels")
    assert (labels == model.labels_).mean() > 0.97
    assert adjusted_rand_score(y, labels) > 0.8


def told_by_turns(losses):
    """Return `next_target` that tells these losses."""
    turns = iter(losses)
    return lambda *args: (next_target(*args)[0], next(turns))


def test_the_best_pass_is_kept(monkeypatch):
    codes, weights, _ = planted(0.3, sizes=(60, 50), n_partitions=6, noise=0.6)
    held = Blocks(codes, weights)
    first = target = first_target(*held.sample(15, k=2), held.problem)
    profiles = []
    for _ in range(3):
        sums, target, *_ = held.passed(target)
        votes = held.problem.cluster_weights[:, None] * sums["contingency"]
        profiles.append(votes / votes.sum(axis=0))
    assert len({profile.tobytes() for profile in profiles}) == 3
    for losses in ([3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [2.0, 1.0, 1.0]):
        held.calls = []
        monkeypatch.setattr(blocks, "next_target", told_by_turns(losses))
        found, told = improve(held.everywhere, held.problem, first, 3)
        assert_array_equal(told, losses)
        assert_allclose(
            found.profile / found.profile.sum(axis=0),
            profiles[int(np.argmin(losses))][:, found.order],
            rtol=1e-12,
        )
        assert len(held.calls) == 4  # profiles are compared once


def test_the_profile_with_the_smallest_hard_loss_is_kept():
    codes, weights, _ = planted(0.3, sizes=(80, 12, 8), noise=0.4)
    held = Blocks(codes, weights)
    rows, H = held.sample(50)
    found, _ = improve(
        held.everywhere, held.problem, first_target(rows, H, held.problem), 3
    )
    target = first_target(rows, H, held.problem)
    ends = []
    for _ in range(3):
        fit = target
        _, target, loss, _ = held.passed(fit)
        ends.append((loss, fit))
    profile = mean_profile(held, weights, min(ends, key=itemgetter(0))[1])
    Z = np.array(
        [
            column == label
            for column in codes.T
            for label in np.unique(column[column >= 0])
        ]
    ).T.astype(float)
    E = np.eye(3)[held.factor(min(ends, key=itemgetter(0))[1]).argmax(axis=1)]
    within = (Z @ profile * E).sum(axis=0) / E.sum(axis=0)
    mass, hard, labels = (codes >= 0) @ weights, [], []
    for of_clusters in (profile, profile / within):
        labels.append((Z @ of_clusters).argmax(axis=1))
        columns = []
        for c in range(3):
            u = np.sqrt(mass) * (labels[-1] == c)
            u /= max(np.linalg.norm(u), 1e-300)
            N = sum_of_projectors(codes, weights) / np.sqrt(np.outer(mass, mass))
            columns.append(np.sqrt(u @ N @ u) * u)
        hard.append(loss_of_samples(codes, weights, np.array(columns).T))
    wanted = labels[int(np.argmin(hard))]
    assert (
        adjusted_rand_score(
            wanted, held.problem.map_rows(codes, found.of_rows, name="labels")
        )
        == 1
    )
    assert (
        np.diff(np.bincount(held.problem.map_rows(codes, found.of_rows, name="labels")))
        <= 0
    ).all()


def sum_of_projectors(codes, weights):
    N = np.zeros((len(codes), len(codes)))
    for column, w in zip(codes.T, weights, strict=True):
        together = (column[:, None] == column) & (column[:, None] >= 0)
        N += w * together / np.maximum(together.sum(axis=0), 1)
    return N


def test_labels_that_are_more_or_fewer_than_before_are_noticed():
    codes, weights, _ = planted(0.3)
    held = Blocks(codes, weights)
    target = first_target(*held.sample(50), held.problem)
    held.parts[0] = held.parts[1]
    with raises_naming(RuntimeError, "labels"):
        improve(held.everywhere, held.problem, target, 1)


# --- what is told of a block ----------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("missing", "k"), [(0.3, 3), (0.0, 3), (0.0, 11)])
def test_what_is_told_of_a_row_does_not_depend_on_its_block(missing, k, monkeypatch):
    codes, weights, _ = planted(missing)
    held = Blocks(codes, weights)
    found, _ = improve(
        held.everywhere,
        held.problem,
        first_target(*held.sample(50, k=k), held.problem),
        2,
    )
    whole = {
        what: held.problem.map_rows(codes, found.of_rows, name=what)
        for what in ("labels", "membership", "confidence")
    }
    assert_allclose(whole["membership"].sum(axis=1), 1)
    assert_array_equal(whole["labels"], whole["membership"].argmax(axis=1))
    for first, last in ((0, 1), (17, 18), (40, 57), (100, 130)):
        for what, values in whole.items():
            assert_array_equal(
                held.problem.map_rows(codes[first:last], found.of_rows, name=what),
                values[first:last],
            )
    monkeypatch.setattr(blocks, "LABEL_BLOCK_ROWS", 11)
    for what, values in whole.items():
        assert_array_equal(
            held.problem.map_rows(codes, found.of_rows, name=what), values
        )
