"""Passes over blocks: their loss is that of the factor, they fall, and end where memory does."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from partitions.cases import in_both_forms, in_two_ways
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus
from nmfcluster._engine.executor import Plan
from nmfcluster._engine.loop import StopRule
from nmfcluster._engine.symmetric import Factorization, bregman_nmf, factorize
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions.problem import EnsembleProblem

pytest.importorskip("nmfcluster.dask")

from nmfcluster.dask import blocks, passes
from nmfcluster.dask.blocks import BlockedTable, TableSummary
from nmfcluster.dask.passes import (
    BlockedProblem,
    Pass,
    all_added,
    first_target,
    improved,
    sums_of_block,
)


def planted(missing, sizes=(60, 40, 30), n_partitions=8, noise=0.3, least=0.5):
    codes, y = make_partitions(
        sizes, n_partitions=n_partitions, noise=noise, missing=missing, random_state=1
    )
    weights = np.linspace(least, 1, n_partitions)
    return codes, weights / weights.sum(), y


def loss_of_samples(codes, weights, H, normalize):
    """Sum w_t (M^t_ij - h_i h_j)^2 over all pairs, or of projectors."""
    root, total = np.sqrt((codes >= 0) @ weights), 0.0
    for column, w in zip(codes.T, weights, strict=True):
        seen = column >= 0
        M = ((column[:, None] == column) & np.outer(seen, seen)).astype(float)
        if normalize:
            M = M / np.maximum(M.sum(axis=0), 1) / root[:, None] / root
        total += w * ((M - H @ H.T) ** 2).sum()
    return total


class Blocks:
    """A table in blocks: what all of them sum to."""

    def __init__(self, codes, weights, normalize, n_blocks=3):
        whole = TableSummary.of_block(codes, 0, weights > 0, 10**6)
        table = BlockedTable(whole.clusters, weights, len(codes))
        self.problem, self.codes = BlockedProblem(table, normalize), codes
        self.parts = np.array_split(codes, n_blocks)
        self.calls = []

    def everywhere(self, function, *args):
        self.calls.append(function)
        return all_added([function(part, self.problem, *args) for part in self.parts])

    def sample(self, size, seed=0, k=3):
        """Return some rows, and a factor that has little to do with them."""
        rng = np.random.default_rng(seed)
        codes = self.codes[rng.permutation(len(self.codes))[:size]]
        codes, counts = np.unique(codes, axis=0, return_counts=True)
        rows = self.problem.table.ensemble(self.problem.table.codes(codes), counts)
        return rows, rng.uniform(0.5, 1, size=(len(rows), k)) * np.sqrt(counts)[:, None]

    def rounded(self, target, grid):
        codes = self.problem.table.codes(self.codes)
        rows = self.problem.table.ensemble(codes, np.ones(len(codes), dtype=int))
        return np.rint(target.rows(rows, self.problem) / grid) * grid

    def passed(self, target):
        grid = target.grid(self.problem)
        sums = self.everywhere(sums_of_block, target, grid)
        return Pass.of_sums(sums, self.problem, grid), self.rounded(target, grid)


# --- a pass ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("normalize", "missing", "least"),
    [(True, 0.0, 0.5), (True, 0.3, 1e-7), (False, 0.0, 0.5)],
)
def test_the_loss_of_a_pass_is_that_of_all_samples(missing, normalize, least):
    codes, weights, _ = planted(missing, sizes=(25, 20, 10), n_partitions=5, least=least)
    held = Blocks(codes, weights, normalize)
    target = first_target(*held.sample(20), held.problem)
    for _ in range(2):
        found, H = held.passed(target)
        links, squares = found.target.links, (H**2).sum(axis=0)
        scaled = H * np.sqrt(np.diagonal(found.target.gram) / squares)  # as columns were scaled
        assert_allclose(found.loss, loss_of_samples(codes, weights, scaled, normalize), rtol=1e-5)
        zero = loss_of_samples(codes, weights, 0 * H, normalize)
        assert_allclose(found.constant, zero, rtol=1e-7)
        assert links.min() >= 0
        target = found.target


@in_two_ways
def test_scaling_columns_never_raises_the_loss(missing, normalize):
    codes, weights, _ = planted(missing, sizes=(25, 20, 10), n_partitions=5)
    held = Blocks(codes, weights, normalize)
    rng = np.random.default_rng(0)
    for seed in range(3):
        target = first_target(*held.sample(20, seed), held.problem)
        found, H = held.passed(target)
        for _ in range(10):
            other = H * rng.uniform(0.5, 1.5, size=3)
            assert found.loss <= loss_of_samples(codes, weights, other, normalize) * (1 + 1e-6)
        assert found.loss <= loss_of_samples(codes, weights, H, normalize) * (1 + 1e-6)


def test_the_profile_of_a_pass_is_the_mean_co_association_with_the_clusters():
    codes, weights, _ = planted(0.3)
    held = Blocks(codes, weights, True)
    target = first_target(*held.sample(40), held.problem)
    found, _ = held.passed(target)
    whole = held.problem.table.codes(codes)
    rows = held.problem.table.ensemble(whole, np.ones(len(codes), dtype=int))
    H = target.rows(rows, held.problem)
    shares = H / H.sum(axis=1, keepdims=True)
    start = 0
    for t, w in enumerate(weights):
        for label in np.unique(codes[:, t][codes[:, t] >= 0]):
            mean = w * shares[codes[:, t] == label].sum(axis=0) / shares.sum(axis=0)
            assert_allclose(found.profile[start], mean, rtol=1e-4)
            start += 1


# --- several --------------------------------------------------------------------------------------


@in_two_ways
def test_passes_fall_and_end_where_memory_does(missing, normalize):
    codes, weights, y = planted(missing, sizes=(120, 80, 60))
    held = Blocks(codes, weights, normalize)
    rows, _ = held.sample(60)
    model = NMFConsensus(3, affinity="partitions", normalize=normalize, random_state=0)
    part = EnsembleProblem(rows, None, np.dtype(float), normalize)
    plan = Plan(3, bregman_nmf, 2, StopRule(500, 1e-6), None, lambda line: None)
    start = factorize(part, plan, np.random.RandomState(0), Factorization, None).H
    found, losses = improved(
        held.everywhere, held.problem, first_target(rows, start, held.problem), 6
    )
    assert len(losses) == 6
    assert (np.diff(losses) <= 1e-9 * losses[0]).all()
    model.set_params(weights=weights, tol=1e-9, max_iter=3000).fit(codes)
    assert losses[-1] <= model.loss_ * (1 + 1e-3)
    assert losses[-1] >= model.loss_ * (1 - 1e-3)
    labels = found.of_block(codes, "labels")
    assert (labels == model.labels_).mean() > 0.97
    assert adjusted_rand_score(y, labels) > 0.8


def told_by_turns(losses, normalize):
    """Return passes of these losses, and the problem of a small table."""
    codes, weights, _ = planted(0.0, sizes=(20, 10), n_partitions=3)
    held = Blocks(codes, weights, normalize)
    turns = iter(losses)
    really = Pass.of_sums

    def of_sums(sums, problem, grid):
        found = really(sums, problem, grid)
        return Pass(
            *(found.target, next(turns), found.constant),
            *(found.profile, found.labels, found.members),
        )

    return held, of_sums


@in_both_forms
def test_the_best_pass_is_kept(normalize, monkeypatch):
    for losses in ([3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [2.0, 1.0, 1.0]):
        held, of_sums = told_by_turns(losses, normalize)
        rows, H = held.sample(15, k=2)
        target, fits = first_target(rows, H, held.problem), []
        for _ in losses:
            fits.append(target)
            target = held.passed(target)[0].target
        with monkeypatch.context() as patch:
            patch.setattr(passes.Pass, "of_sums", staticmethod(of_sums))
            held.calls = []
            found, told = improved(
                held.everywhere, held.problem, first_target(rows, H, held.problem), 3
            )
        assert_array_equal(told, losses)
        assert_array_equal(found.target.links, fits[int(np.argmin(losses))].links)
        assert len(held.calls) == (4 if normalize else 3)  # the reading is counted once


def test_the_reading_with_the_smallest_hard_loss_is_kept():
    codes, weights, _ = planted(0.3, sizes=(80, 12, 8), noise=0.4)
    held = Blocks(codes, weights, True)
    rows, H = held.sample(50)
    found, _ = improved(held.everywhere, held.problem, first_target(rows, H, held.problem), 3)
    target = first_target(rows, H, held.problem)
    ends = []
    for _ in range(3):
        end, _ = held.passed(target)
        ends.append(end)
        target = end.target
    best = min(ends, key=lambda end: end.loss)
    Z = np.array(
        [column == label for column in codes.T for label in np.unique(column[column >= 0])]
    ).T.astype(float)
    mass, hard, labels = (codes >= 0) @ weights, [], []
    for power in (0, 0.5, 1):
        labels.append((Z @ (best.profile / Z.sum(axis=0)[:, None] ** power)).argmax(axis=1))
        columns = []
        for c in range(3):
            u = np.sqrt(mass) * (labels[-1] == c)
            u /= max(np.linalg.norm(u), 1e-300)
            N = sum_of_projectors(codes, weights) / np.sqrt(np.outer(mass, mass))
            columns.append(np.sqrt(u @ N @ u) * u)
        hard.append(loss_of_samples(codes, weights, np.array(columns).T, True))
    wanted = labels[int(np.argmin(hard))]
    assert adjusted_rand_score(wanted, found.of_block(codes, "labels")) == 1
    assert (np.diff(np.bincount(found.of_block(codes, "labels"))) <= 0).all()


def sum_of_projectors(codes, weights):
    N = np.zeros((len(codes), len(codes)))
    for column, w in zip(codes.T, weights, strict=True):
        together = (column[:, None] == column) & (column[:, None] >= 0)
        N += w * together / np.maximum(together.sum(axis=0), 1)
    return N


# --- what is told of a block ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("normalize", "missing", "k"), [(True, 0.3, 3), (False, 0.0, 3), (False, 0.0, 11)]
)
def test_what_is_told_of_a_row_does_not_depend_on_its_block(normalize, missing, k, monkeypatch):
    codes, weights, _ = planted(missing)
    held = Blocks(codes, weights, normalize)
    found, _ = improved(
        held.everywhere, held.problem, first_target(*held.sample(50, k=k), held.problem), 2
    )
    whole = {what: found.of_block(codes, what) for what in ("labels", "membership", "confidence")}
    assert_allclose(whole["membership"].sum(axis=1), 1)
    assert_array_equal(whole["labels"], whole["membership"].argmax(axis=1))
    for first, last in ((0, 1), (17, 18), (40, 57), (100, 130)):
        for what, values in whole.items():
            assert_array_equal(found.of_block(codes[first:last], what), values[first:last])
    monkeypatch.setattr(blocks, "ROWS", 11)
    for what, values in whole.items():
        assert_array_equal(found.of_block(codes, what), values)


def test_confidence_is_the_mean_co_association_with_the_rest_of_the_cluster():
    codes, weights, _ = planted(0.3)
    held = Blocks(codes, weights, True)
    found, _ = improved(
        held.everywhere, held.problem, first_target(*held.sample(50), held.problem), 2
    )
    labels, confidence = (found.of_block(codes, what) for what in ("labels", "confidence"))
    for i in range(0, len(codes), 13):
        others = np.flatnonzero((labels == labels[i]) & (np.arange(len(codes)) != i))
        both = (codes[others] >= 0) & (codes[i] >= 0)
        together = (codes[others] == codes[i]) & both
        assert_allclose(confidence[i], (together @ weights).sum() / (both @ weights).sum())
