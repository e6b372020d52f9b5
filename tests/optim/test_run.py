"""The loop and the restarts, on made-up loss sequences."""

import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from internals import Solution, SolverConfig, SymmetricObjective, bregman_nmf, iterate
from numpy.testing import assert_allclose, assert_array_equal
from optim.made import Made, run, run_all
from refusals import raises_naming, warns_naming
from sklearn.exceptions import ConvergenceWarning

from nmfcluster import NMFConsensus
from nmfcluster._optim import run as running
from nmfcluster._optim.symmetric import Factorization
from nmfcluster.similarity import Explicit, inner


def updates_until_settled(losses, threshold, min_iter, max_iter):
    """Count updates as the text has it: until ten lower the loss by no more than that."""
    for i in range(max_iter):
        if i >= max(min_iter, 1) and losses[max(i - 10, 0)] - losses[i] <= threshold:
            return i, True
    last = losses[max(max_iter - 10, 0)] - losses[max_iter]
    return max_iter, bool(max_iter >= max(min_iter, 1) and last <= threshold)


@given(
    st.lists(st.floats(0, 1), min_size=61, max_size=61),
    st.floats(1e-3, 3),
    st.sampled_from([1.0, 8.0]),
    st.sampled_from([0, 1, 5, 20]),
    st.integers(0, 60),
)
def test_it_stops_when_ten_updates_gain_too_little(
    falls, tol, scale, min_iter, max_iter
):
    losses = 100 - np.cumsum(falls)
    (found,) = run(
        Made(losses), tol=tol, scale=scale, min_iter=min_iter, max_iter=max_iter
    )
    n_iter, converged = updates_until_settled(losses, tol * scale, min_iter, max_iter)
    assert (found.n_iter, found.converged) == (n_iter, converged)
    assert_array_equal(found.history, losses[: n_iter + 1])


def test_the_decrease_can_be_of_the_loss_itself():
    """It then stops late where the loss ends near 0, but not at a resolution that nobody needs."""
    for end in [0.0, 1e-6, 1.0]:
        losses = end + 0.5 ** np.arange(101)
        (found,) = run(Made(losses), tol=1e-3, relative_to_loss=True)
        expected = next(
            i
            for i in range(10, 101)
            if losses[i - 10] - losses[i] <= max(1e-3 * losses[i], 1e-10)
        )
        assert (found.n_iter, found.converged) == (expected, True)
        (sooner,) = run(Made(losses), tol=1e-3)
        assert sooner.n_iter <= found.n_iter
        (all_of_them,) = run(Made(losses), tol=-1, relative_to_loss=True)
        assert all_of_them.n_iter == 100


def test_a_plateau_at_the_start_is_passed():
    losses = np.r_[np.full(18, 9.0), np.linspace(8, 1, 30), np.full(60, 1.0)]
    (found,) = iterate(
        Made(losses).steps(), SolverConfig(1, None, 1, 100, 1e-3, None), scale=1.0
    )
    assert found.loss == 1
    assert found.n_iter == 57  # ten updates after the last that lowered the loss


def test_a_loss_that_no_longer_changes_has_converged_whatever_its_scale():
    (found,) = run(Made(np.zeros(31)), scale=0.0, min_iter=12, max_iter=30)
    assert (found.n_iter, found.converged) == (12, True)


def test_a_negative_tol_runs_all_updates():
    (found,) = run(Made(np.ones(31)), tol=-1.0, max_iter=30)
    assert (found.n_iter, found.converged, len(found.history)) == (30, False, 31)


def test_tol_is_raised_to_the_resolution_of_the_factors():
    for dtype in [np.float32, np.float64]:
        resolution = float(np.finfo(dtype).eps)
        # of the resolution, an update
        for share, stops in [(0.09, True), (0.11, False)]:
            losses = -np.arange(51) * share * resolution
            (found,) = run(Made(losses, dtype=dtype), tol=0.0, max_iter=50, min_iter=10)
            assert found.converged == stops
            assert found.n_iter == (10 if stops else 50)


def test_the_best_factors_are_kept_where_the_loss_rises_again():
    losses = [9, 4, 6, 2, 2, 3, 7, 5]
    made = Made(losses, losses[::-1])
    first, second = run(made, tol=-1.0, max_iter=7)
    assert (first.loss, second.loss) == (2, 2)
    assert_array_equal(first.factors[0], [[0, 3]])  # the earliest of equals
    assert_array_equal(second.factors[0], [[1, 3]])
    assert_array_equal(first.history, losses)


def test_starts_leave_the_batch_when_they_have_converged():
    slow, quick = np.linspace(9, 0, 41), np.r_[5, 1, np.ones(60)]
    never = -np.arange(61.0)
    made = Made(slow, quick, never)
    found = run(made, tol=1e-9, min_iter=12, max_iter=20)
    assert [solution.n_iter for solution in found] == [20, 12, 20]
    assert [solution.converged for solution in found] == [False, True, False]
    assert_array_equal(found[1].factors[0], [[1, 1]])
    assert_array_equal(found[2].factors[0], [[2, 20]])
    masks = [None if mask is None else mask.tolist() for mask in made.masks]
    assert masks == [None] * 12 + [[True, False, True]] + [None] * 7
    assert made.closed


@given(
    st.lists(
        st.lists(st.floats(0, 1), min_size=31, max_size=31), min_size=2, max_size=4
    )
)
def test_a_start_ends_the_same_alone_and_in_a_batch(falls):
    curves = [50 - np.cumsum(np.square(fall)) for fall in falls]
    together = run(Made(*curves), tol=2.0, max_iter=30)
    for curve, solution in zip(curves, together, strict=True):
        (alone,) = run(Made(curve), tol=2.0, max_iter=30)
        assert_array_equal(alone.history, solution.history)
        assert (alone.loss, alone.converged) == (solution.loss, solution.converged)
        assert_array_equal(alone.factors[0][:, 1], solution.factors[0][:, 1])


def test_a_start_of_a_real_solver_ends_the_same_alone_and_in_a_batch():
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(12, 3))
    A = Explicit(X @ X.T)
    objective = SymmetricObjective(A, inner(A, A))
    H = np.stack([X, rng.uniform(size=(12, 3)), rng.uniform(size=(12, 3)) ** 9])

    def solved(H):
        config = SolverConfig(3, None, 1, 300, 1e-5, None)
        return iterate(bregman_nmf(objective, H), config, objective.constant)

    together = solved(H)
    assert len({solution.n_iter for solution in together}) > 1
    for start, solution in zip(H, together, strict=True):
        (alone,) = solved(start[None])
        assert alone.n_iter == solution.n_iter
        assert_allclose(alone.history, solution.history, rtol=1e-7, atol=1e-9)
        assert_allclose(alone.factors[0], solution.factors[0], rtol=1e-6, atol=1e-7)


def test_a_loss_that_is_not_finite_is_an_error():
    for bad in [np.nan, np.inf]:
        with raises_naming(FloatingPointError, str(bad), "7"):
            run(Made([*range(20, 0, -1)], [9, 8, 7, 6, 5, 4, 3, bad]), tol=1e-9)


def test_the_loop_can_be_ended_after_any_update():
    made = Made([9, 7, 5, 4, 3, 2], [8, 6, 4, 3, 2, 1])
    found = run(made, is_cancelled=iter([False, False, False, True]).__next__)
    assert [solution.history.tolist() for solution in found] == [
        [9, 7, 5, 4],
        [8, 6, 4, 3],
    ]
    assert not any(solution.converged for solution in found)
    assert made.closed


def test_no_update_at_all():
    (found,) = run(Made([4.0]), max_iter=0)
    assert (found.n_iter, found.loss, found.converged) == (0, 4, False)


# --- all starts --------------------------------------------------------------------------------


def solution(loss, n=1):
    return Solution((np.zeros((n, 1)),), loss, np.array([loss]), True)


def test_rounding_does_not_choose_among_solutions():
    for losses, order in [
        ([3, 2, 1], [2, 1, 0]),
        ([1 + 2e-15, 1, 1 - 2e-15, 0.9999], [3, 2, 1, 0]),
        # the earliest of those that are alike comes first
        ([2, 1 + 4e-15, 1, 1 - 2e-15], [1, 2, 3, 0]),
        ([np.inf, 5, np.inf], [1, 0, 2]),
        ([np.inf, np.inf], [0, 1]),
        ([0, 0], [0, 1]),
    ]:
        solutions = [solution(loss) for loss in losses]
        found = running.best_first(solutions)
        assert [
            next(i for i, s in enumerate(solutions) if s is one) for one in found
        ] == order


class Recorder:
    """A solver whose loss is the first entry of a start, and which notes its batches."""

    constant = 1.0

    def __init__(self, wide):
        self.batches, self.wide = [], wide

    def steps(self, H):
        self.batches.append(H[:, 0, 0].tolist())
        return Made(*[[h] * 4 for h in H[:, 0, 0]]).steps()


def restarted(values, size=1, wide=False, rank=lambda s: s.loss, **options):
    recorder = Recorder(wide)
    starts = [lambda value=value: np.full((size, 1), float(value)) for value in values]

    def solver(objective, H):
        return objective.steps(H)

    return recorder, run_all(recorder, starts, solver, rank=rank, **options)


def test_solutions_come_best_first():
    _, found = restarted([3, 1, 2])
    assert [s.loss for s in found] == [1, 2, 3]
    _, found = restarted([3, 1, 2], rank=lambda s: -s.loss)
    assert [s.loss for s in found] == [3, 2, 1]


def test_the_earliest_of_equals_comes_first():
    for n_jobs, wide in product([1, 2], [False, True]):
        _, found = restarted(
            range(12), rank=lambda s: s.loss % 3, n_jobs=n_jobs, wide=wide
        )
        assert [s.loss for s in found] == [0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11]


def test_starts_run_one_by_one_where_a_wide_product_gains_nothing():
    recorder, _ = restarted(range(5))
    assert recorder.batches == [[0], [1], [2], [3], [4]]


def test_starts_run_side_by_side_where_it_gains():
    recorder, _ = restarted(range(11), wide=True)
    assert recorder.batches == [list(range(8)), [8, 9, 10]]
    recorder, _ = restarted([7], wide=True)
    assert recorder.batches == [[7]]


@pytest.mark.parametrize(("memory", "sizes"), [(10 * 8 * 2, [2, 2, 1]), (1, [1] * 5)])
def test_batches_fit_into_memory(monkeypatch, memory, sizes):
    monkeypatch.setattr(running, "_BATCH_BYTES", memory)
    recorder, _ = restarted(range(5), size=10, wide=True)
    assert [len(batch) for batch in recorder.batches] == sizes


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wide", [False, True])
def test_results_do_not_depend_on_n_jobs(wide):
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(40, 4))
    A = Explicit(X @ X.T)
    objective = SymmetricObjective(A, inner(A, A))
    A.wide = wide
    starts = [
        lambda s=s: np.random.default_rng(s).uniform(size=(40, 4)) for s in range(9)
    ]
    found = [
        run_all(objective, starts, bregman_nmf, n_jobs, max_iter=40, tol=1e-6)
        for n_jobs in (None, 2)
    ]
    for one, two in zip(*found, strict=True):
        assert_array_equal(one.factors[0], two.factors[0])
        assert_array_equal(one.history, two.history)


def test_the_smallest_number_of_updates_is_passed_on():
    _, found = restarted([1.0], tol=0.5, min_iter=1)
    assert found[0].n_iter == 1
    assert found[0].converged


def test_the_log_says_what_ran(caplog):
    caplog.set_level("INFO", "nmfcluster")
    restarted([1, 2])
    before, *batches, after = [line.partition(": ")[2] for line in caplog.messages]
    assert before == "toys, 2 starts ..."
    assert batches == ["toys, 2 starts: 1 of 2", "toys, 2 starts: 2 of 2"]
    assert after.startswith("toys, 2 starts: best loss 1 after 3 updates, ")


# --- the warning -------------------------------------------------------------------------------


def keep(solution, max_iter, scale):
    """Warn of a solution as the fit of an estimator does."""
    kept = Factorization(solution, [solution.history], scale)
    NMFConsensus(1, max_iter=max_iter)._warn_unless_converged(kept, n_found=1)


def test_the_warning_has_the_figures_in_it():
    history = np.linspace(10, 5, 21)
    stopped = Solution((), 5.0, history, False)
    names = "NMFConsensus", "max_iter=20"
    with warns_naming(ConvergenceWarning, names) as w:
        keep(stopped, 20, scale=100.0)
    assert len(w) == 1
    assert w[0].filename == __file__
    assert "2.5e-02" in str(w[0].message)  # (7.5 - 5) / 100
    short = Solution((), 5.0, np.array([7.0, 5.0]), False)
    with warns_naming(ConvergenceWarning, "2.0e+00"):
        keep(short, 1, scale=0.0)


def test_what_has_converged_is_not_warned_about():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        keep(solution(1.0), 20, scale=1.0)
