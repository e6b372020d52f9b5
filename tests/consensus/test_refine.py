"""Single moves against the hard loss of all samples, recomputed for every move."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from nmfcluster.consensus.refine import refine_by_moves
from nmfcluster.partitions.ensemble import Ensemble


@st.composite
def cases(draw):
    """Draw an ensemble, labels of its rows with no cluster empty, and k."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    m, T, k = draw(st.integers(3, 9)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    codes = rng.integers(0, 3, size=(m, T))
    if draw(st.booleans()):
        codes[rng.uniform(size=(m, T)) < 0.3] = -1
        codes[np.arange(m), rng.integers(T, size=m)] = 0
    codes[0] = 2
    counts = rng.integers(1, 5, size=m)
    weights = rng.uniform(0.1, 1, size=T)
    ensemble = Ensemble(codes, counts, weights / weights.sum(), np.full(T, 3))
    labels = np.concatenate([np.arange(k), rng.integers(0, k, size=m - k)])
    return ensemble, rng.permutation(labels), k


def hard_loss(ensemble, labels):
    """Weigh every ordered pair on which the labels and a partition that saw both disagree."""
    total = 0.0
    for t, (i, j) in product(range(len(ensemble.weights)), np.ndindex(len(labels), len(labels))):
        a, b = ensemble.codes[i, t], ensemble.codes[j, t]
        if a >= 0 and b >= 0 and (a == b) != (labels[i] == labels[j]):
            total += ensemble.weights[t] * ensemble.counts[i] * ensemble.counts[j]
    return total


def single_moves(labels, k):
    """Yield the labellings that one move leads to, and that leave no cluster empty."""
    for i, b in product(range(len(labels)), range(k)):
        moved = labels.copy()
        moved[i] = b
        if b != labels[i] and labels[i] in moved:
            yield moved


@given(cases())
def test_no_single_move_lowers_the_hard_loss_at_the_end(case):
    ensemble, labels, k = case
    refined, n_moves = refine_by_moves(ensemble, labels, k)
    end = hard_loss(ensemble, refined)
    assert end <= hard_loss(ensemble, labels) + 1e-9
    assert all(hard_loss(ensemble, moved) >= end - 1e-7 for moved in single_moves(refined, k))
    assert (n_moves == 0) == np.array_equal(refined, labels)


@pytest.mark.parametrize("seed", range(6))
def test_no_single_move_lowers_the_hard_loss_of_a_larger_ensemble(seed):
    """With clusters of very different size."""
    rng = np.random.default_rng(seed)
    codes, counts = rng.integers(0, 4, size=(40, 6)), rng.integers(1, 4, size=40)
    if seed % 2:
        codes[rng.uniform(size=codes.shape) < 0.3] = -1
    ensemble = Ensemble(codes, counts, np.full(6, 1 / 6), np.full(6, 4))
    pairs = np.zeros((40, 40))  # what it costs to put a pair together rather than apart
    for column in codes.T:
        seen = column >= 0
        same = np.equal.outer(column, column)
        pairs += np.outer(seen, seen) * np.where(same, -1, 1) / 6 * np.outer(counts, counts)
    start = rng.choice(4, size=40, p=[0.85, 0.05, 0.05, 0.05])
    start[:4] = range(4)
    labels, _ = refine_by_moves(ensemble, start, 4)
    end = (pairs * np.equal.outer(labels, labels)).sum()
    for moved in single_moves(labels, 4):
        assert (pairs * np.equal.outer(moved, moved)).sum() >= end - 1e-9


@given(cases())
def test_no_cluster_is_emptied_and_nothing_is_written_to(case):
    ensemble, labels, k = case
    before = labels.copy()
    labels.flags.writeable = ensemble.codes.flags.writeable = ensemble.counts.flags.writeable = (
        False
    )
    refined, _ = refine_by_moves(ensemble, labels, k)
    assert_array_equal(labels, before)
    assert set(refined) == set(range(k))


@given(cases())
def test_a_move_goes_to_the_best_cluster_and_only_where_it_gains(case):
    """The gain is the difference of two hard losses, in one sweep over the rows."""
    ensemble, labels, k = case
    refined, n_moves = refine_by_moves(ensemble, labels, k, max_sweeps=1)
    gains = {
        i: min(hard_loss(ensemble, m) for m in single_moves(labels, k) if m[i] != labels[i])
        for i in range(len(labels))
        if any(m[i] != labels[i] for m in single_moves(labels, k))
    }
    now = hard_loss(ensemble, labels)
    gaining = [i for i, loss in gains.items() if loss < now - 1e-7]
    if not gaining:
        assert n_moves == 0
    else:  # the first row that gains moves to where it gains most, before all others
        i = gaining[0]
        best = [m for m in single_moves(labels, k) if m[i] != labels[i]]
        best = [m for m in best if hard_loss(ensemble, m) <= gains[i] + 1e-9]
        assert n_moves > 0
        assert refined[i] in {m[i] for m in best}


def test_each_sweep_lowers_the_loss_until_none_moves():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(40, 5))
    ensemble = Ensemble(codes, np.ones(40, dtype=int), np.full(5, 0.2), np.full(5, 3))
    labels, total = rng.integers(0, 3, size=40), 0
    losses = [hard_loss(ensemble, labels)]
    whole, n_whole = refine_by_moves(ensemble, labels, 3)
    for _ in range(100):
        labels, n_moves = refine_by_moves(ensemble, labels, 3, max_sweeps=1)
        total += n_moves
        if not n_moves:
            break
        losses.append(hard_loss(ensemble, labels))
    assert (np.diff(losses) < 0).all()
    assert len(losses) > 2
    assert_array_equal(labels, whole)
    assert total == n_whole


@pytest.mark.parametrize("start", [[0, 1, 1, 0], [1, 0, 1, 0], [0, 0, 0, 1]])
def test_the_common_partition_is_found(start):
    codes = np.array([[0, 0, 1], [0, 0, 1], [1, 1, 0], [1, 1, 0]])
    ensemble = Ensemble(codes, np.array([3, 1, 1, 2]), np.full(3, 1 / 3), np.full(3, 2))
    labels, _ = refine_by_moves(ensemble, np.array(start), 2)
    assert labels[0] == labels[1] != labels[2] == labels[3]
    assert hard_loss(ensemble, labels) == 0


def test_a_row_leaves_a_small_cluster_for_a_much_larger_one():
    codes = np.array([[0, 0, 0, 0, 0], [0, 0, 0, 1, 1], [2, 2, 2, 2, 2]])
    ensemble = Ensemble(codes, np.array([10, 1, 1]), np.full(5, 0.2), np.full(5, 3))
    labels, n_moves = refine_by_moves(ensemble, np.array([0, 1, 1]), 2)
    assert_array_equal(labels, [0, 0, 1])
    assert n_moves == 1
