"""Races of starts, on made-up loss sequences."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import SymmetricObjective, bregman_nmf, loss_of
from numpy.testing import assert_allclose, assert_array_equal
from optim.made import Made, run, run_all

from nmfcluster.similarity import Explicit, inner


def falling(end, pace=0.9, start=100.0, n=101):
    return end + (start - end) * pace ** np.arange(n)


def raced(curves, n_jobs=None, wide=False, rank=loss_of, size=1, **options):
    """Return the solutions of starts with these losses, in the order of the starts."""

    class Curves:
        constant = 1.0

    Curves.wide = wide
    starts = [lambda s=s: np.full((size, 1), float(s)) for s in range(len(curves))]

    def solver(objective, H):
        return Made(*[curves[int(s)] for s in H[:, 0, 0]]).steps()

    options = {"max_iter": 100, "tol": 1e-6, "min_iter": 0} | options
    return run_all(Curves, starts, solver, n_jobs, rank, **options)


CURVES = [
    falling(5, 0.8),
    falling(9, 0.8),
    falling(4.9, 0.85),
    falling(30),
    falling(4, 0.88),
]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_start_that_cannot_win_is_given_up(n_jobs):
    found = raced(CURVES, n_jobs, tol=1e-3)
    assert [s.n_iter for s in found[3:]] == [20, 20]
    assert [round(s.history[0]) for s in found] == [100] * 5
    # the first was long behind
    assert [round(s.loss, 1) for s in found[:3]] == [4.0, 4.9, 5.0]
    assert [s.converged for s in found] == [True, True, True, False, False]
    for s in found:  # what is shown of a start are its losses
        assert any(np.array_equal(s.history, c[: len(s.history)]) for c in CURVES)


def test_a_race_does_not_depend_on_n_jobs():
    for wide in (False, True):
        alone, two, four = (raced(CURVES * 3, n_jobs, wide) for n_jobs in (1, 2, 4))
        for a, b, c in zip(alone, two, four, strict=True):
            assert_array_equal(a.history, b.history)
            assert_array_equal(a.history, c.history)


@pytest.mark.parametrize(
    "options",
    [{"tol": -1.0}, {"prune_from": None}, {"prune_from": 100}],
    ids=["all updates", "all wanted", "late"],
)
def test_who_does_not_race_makes_all_updates(options):
    found = raced(CURVES, **options)
    by_themselves = [
        run(Made(c), tol=options.get("tol", 1e-6), max_iter=100)[0].n_iter
        for c in CURVES
    ]
    assert sorted(s.n_iter for s in found) == sorted(by_themselves)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_starts_are_compared_with_the_first_once_by_another_figure(wide, n_jobs):
    curves = [falling(9, 0.95), falling(2, 0.95), falling(30, 0.9), falling(40, 0.93)]
    # of the starts; the first and the last go on
    rank = {0: 1.0, 1: 2.0, 2: 1.0, 3: 0.5}

    def figure(solution):
        [start] = [s for s, c in enumerate(curves) if c[1] == solution.history[1]]
        return rank[start]

    best, first, *given_up = raced(curves, n_jobs, wide, figure)
    assert [best.history[-1] > 40, first.history[-1] > 9] == [True, True]
    assert min(best.n_iter, first.n_iter) > 90
    assert [s.n_iter for s in given_up] == [30, 30]
    assert [s.pruned for s in (best, first, *given_up)] == [False, False, True, True]


def test_a_start_that_was_given_up_is_not_kept_for_its_figure():
    """The first one's figure rises after the comparison, above that of the others then."""
    curves = [falling(9, 0.95), falling(2, 0.9)]
    best, other = raced(curves, rank=lambda s: s.n_iter if s.history[1] > 50 else 35.0)
    assert (best.n_iter > 90, other.n_iter) == (True, 30)


def test_starts_of_a_batch_race_with_each_other():
    alone, together = raced(CURVES, tol=1e-3), raced(CURVES, wide=True, tol=1e-3)
    assert together[0].loss == alone[0].loss
    assert sum(s.n_iter for s in together) < sum(s.n_iter for s in alone)


def test_a_start_on_a_plateau_is_not_given_up():
    late = np.r_[np.full(40, 50.0), falling(1, 0.8, 50.0, 61)]
    about_to = 50 - 1e-3 * 1.3 ** np.arange(101)
    found = raced([falling(5), late[-71:].repeat(2)[:101], np.maximum(about_to, 2)])
    assert found[0].loss == 2


def test_a_start_that_is_close_to_the_best_is_not_given_up():
    """Its decreases point to an end above the best, but by less than a thousandth."""
    close = 5.0004 + 3e-4 * 0.9 ** np.arange(41)
    found = raced([falling(5, 0.8), np.r_[close, falling(4, 0.8, close[-1], 60)]])
    assert found[0].loss == pytest.approx(4, abs=1e-3)


@given(
    st.lists(
        st.tuples(st.floats(0, 10), st.floats(0.5, 0.95), st.floats(20, 200)),
        min_size=2,
        max_size=8,
    ),
    st.booleans(),
)
def test_geometric_starts_that_would_win_do(parts, wide):
    """The figures are those of the text: the best of all runs is the best of the race."""
    curves = [falling(*part) for part in parts]
    best = min(run(Made(c), tol=1e-6, max_iter=100)[0].loss for c in curves)
    # of starts that end alike, to a billionth, the earliest is kept
    assert raced(curves, wide=wide)[0].loss == pytest.approx(best, rel=1e-9)


@pytest.mark.slow
def test_races_of_small_problems_keep_the_best(monkeypatch):
    """Against all starts run to the end: nothing is lost, in fewer updates."""
    lost, updates = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(30, 5)) ** 3
        A = Explicit(X @ X.T + np.diag(rng.uniform(size=30)))
        objective = SymmetricObjective(A, inner(A, A))
        starts = [
            lambda s=s: np.random.default_rng(s).uniform(size=(30, 5)) for s in range(6)
        ]
        A.wide = bool(seed % 2)
        ends = [
            run_all(
                objective,
                starts,
                bregman_nmf,
                max_iter=400,
                tol=1e-6,
                min_iter=20,
                prune_from=prune_from,
            )
            for prune_from in (20, None)
        ]
        lost.append(ends[0][0].loss / ends[1][0].loss - 1)
        updates.append([sum(s.n_iter for s in end) for end in ends])
        whole = {round(s.history[0], 6): s.history for s in ends[1]}
        for s in ends[0]:
            assert_allclose(
                s.history, whole[round(s.history[0], 6)][: s.n_iter + 1], rtol=1e-6
            )
    assert np.mean(lost) < 1e-3
    saved = np.sum(updates, axis=0)
    assert saved[0] < 0.75 * saved[1]
