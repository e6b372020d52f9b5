"""How a solver is run: the loop, the restarts.

A solver is a generator: it yields ``(factors, loss)`` for a batch of starts, whose axis comes
first, and updates them when it is resumed. It is resumed with None, or with a boolean mask of the
starts to go on with. It knows nothing of `max_iter`, `tol`, seeds, printing or warnings: these
are here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any, Protocol

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from nmfcluster._arrays.blocks import summed

Factors = tuple[np.ndarray, ...]
Steps = Generator[tuple[Factors, np.ndarray], np.ndarray | None, None]
Start = Callable[[], np.ndarray]

WINDOW = 10  # updates over which the loss must have fallen by tol
_NEAR = 1e-3  # of the loss of zero factors: starts that are so near can change places late
_FLOOR = 1e-10  # of the loss of zero factors: a loss that is next to 0 need not fall further
_BATCH = 8  # starts side by side: a wider product gains little more
_BATCH_BYTES = 2**28  # of the starts of a batch, 256 MiB: memory grows with it, speed does not


@dataclass(frozen=True)
class StopRule:
    """When a run ends.

    A run has converged when its loss fell by less than ``tol * scale``, or `tol` times itself,
    over the last ten updates.

    Attributes
    ----------
    max_iter : int
        Largest number of updates.
    tol : float
        Smallest relative decrease over ten updates that counts as progress. A negative `tol` runs
        all updates.
    of_loss : bool, default=False
        Whether `tol` is relative to the loss itself, which may end near 0, and not to the scale.
    min_iter : int, default=20
        Smallest number of updates: a symmetric start can sit on a plateau at first.
    race_from : int or None, default=20
        Number of updates after which a start can be given up because another has all but won;
        None where all runs are wanted, and not the best alone.
    """

    max_iter: int
    tol: float
    of_loss: bool = False
    min_iter: int = 2 * WINDOW
    race_from: int | None = 2 * WINDOW

    def settled(self, history: list[float], scale: float, resolution: float) -> bool:
        """Tell whether a run with these losses has converged.

        Parameters
        ----------
        history : list of float
            Its losses so far.
        scale : float
            Loss of the zero factors.
        resolution : float
            Of the factors' dtype: a relative decrease below it is rounding.

        Returns
        -------
        bool
        """
        n_iter = len(history) - 1
        if self.tol < 0 or n_iter < max(self.min_iter, 1):
            return False
        least = max(resolution, _FLOOR if self.of_loss else 0) * scale
        decrease = history[-1 - min(WINDOW, n_iter)] - history[-1]
        return decrease <= max(self.tol * (history[-1] if self.of_loss else scale), least)

    @property
    def races(self) -> bool:
        """Whether starts that will hardly win are given up."""
        return self.race_from is not None and self.tol >= 0

    def beaten(self, history: list[float], lead: float, scale: float) -> bool:
        """Tell whether a run with these losses is given up.

        So it is if its loss is not near that of the leader, and would stay above it after all the
        decrease that is still to be expected: that of a geometric sequence through the decreases
        over the last ten updates and the ten before.

        Parameters
        ----------
        history : list of float
            Its losses so far.
        lead : float
            The lowest loss that another start has reached.
        scale : float
            Loss of the zero factors.

        Returns
        -------
        bool
        """
        if self.race_from is None or len(history) - 1 < max(self.race_from, 2 * WINDOW):
            return False
        start, middle, end = history[-1 - 2 * WINDOW], history[-1 - WINDOW], history[-1]
        decrease = middle - end
        slows_by = (start - middle) - decrease
        if slows_by <= 0 or end - lead <= _NEAR * scale:  # a plateau comes to its end
            return False
        return min(history) - decrease * (decrease / slows_by) > lead


@dataclass(frozen=True)
class Solution:
    """Where one start ended.

    Attributes
    ----------
    factors : tuple of ndarray
        The best factors seen, without the axis of starts.
    loss : float
        Their loss.
    history : ndarray of shape (n_iter + 1,)
        Loss at the start and after every update.
    converged : bool
        Whether the loss had stopped falling when the loop ended; not so if it was given up.
    """

    factors: Factors
    loss: float
    history: np.ndarray
    converged: bool

    @property
    def n_iter(self) -> int:
        """Number of updates made."""
        return len(self.history) - 1

    @property
    def last_decrease(self) -> float:
        """By how much the loss fell over the last ten updates."""
        return float(self.history[-1 - min(WINDOW, self.n_iter)] - self.history[-1])


def loss_of(solution: Solution) -> float:
    """Return the figure that runs are mostly ranked by."""
    return solution.loss


def iterate(
    solve: Callable[[], Steps],
    stop: StopRule,
    scale: float,
    callback: Callable[[int, np.ndarray], bool | None] | None = None,
    lead: float | None = None,
) -> list[Solution]:
    """Run a solver until every start has converged, is given up, or had its updates.

    A start that has converged, or is given up, leaves the batch.

    Parameters
    ----------
    solve : callable
        Makes the solver's generator.
    stop : StopRule
    scale : float
        Loss of the zero factors, which decreases are relative to.
    callback : callable, default=None
        Called with the number of updates made and the losses of the starts still running;
        a true answer ends the loop.
    lead : float, default=None
        Lowest loss of the starts that ran before, or infinity: starts are given up that will hardly
        get below it and the lowest of their batch. None: no start is given up.

    Returns
    -------
    list of Solution
        One a start, in the order of the batch.

    Raises
    ------
    FloatingPointError
        If a loss is not finite.
    """
    steps = solve()
    factors, losses = next(steps)
    resolution = float(np.finfo(factors[0].dtype).eps)
    running = np.arange(len(losses))
    histories: list[list[float]] = [[] for _ in running]
    best: list[tuple[float, Factors]] = [(np.inf, ())] * len(running)
    converged: set[int] = set()
    for iteration in range(stop.max_iter + 1):
        if not np.isfinite(losses).all():
            raise FloatingPointError(f"the loss is {losses.max()} after {iteration} updates.")
        for row, (start, loss) in enumerate(zip(running, losses, strict=True)):
            histories[start].append(float(loss))
            if loss < best[start][0]:
                best[start] = (float(loss), tuple(factor[row] for factor in factors))
        ended = callback is not None and callback(iteration, losses)
        settled = np.array([stop.settled(histories[s], scale, resolution) for s in running])
        converged.update(running[settled])
        still = ~settled
        if lead is not None:
            lead = min(lead, *(loss for loss, _ in best))
            still &= [not stop.beaten(histories[s], lead, scale) for s in running]
        running = running[still]
        if ended or iteration == stop.max_iter or not len(running):
            break
        factors, losses = steps.send(None if still.all() else still)
    steps.close()
    return [
        Solution(best[s][1], best[s][0], np.array(history), s in converged)
        for s, history in enumerate(histories)
    ]


def kept(keep: np.ndarray | None, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the arrays restricted to the starts that go on."""
    return arrays if keep is None else tuple(array[keep] for array in arrays)


class Objective(Protocol):
    """What a run must know of an objective; the solver knows the rest."""

    @property
    def constant(self) -> float:
        """Loss of the zero factors, by which a decrease is measured."""

    @property
    def wide(self) -> bool:
        """Whether several starts side by side are faster than one after the other."""


@dataclass(frozen=True)
class Plan:
    """How an estimator wants its solver run.

    Attributes
    ----------
    n_clusters : int
    solver : callable
        Makes a solver's generator from an objective and starts.
    n_init : int
        Number of starts.
    stop : StopRule
    n_jobs : int or None
        Number of threads that batches of starts are shared out to.
    say : callable
        Takes a line that reports progress.
    """

    n_clusters: int
    solver: Callable[[Any, np.ndarray], Steps]
    n_init: int
    stop: StopRule
    n_jobs: int | None
    say: Callable[[str], None]

    def stopping(self, **changes: Any) -> Plan:
        """Return the plan with another stop rule."""
        return replace(self, stop=replace(self.stop, **changes))

    def run(
        self,
        objective: Objective,
        starts: Sequence[Start],
        task: str,
        rank: Callable[[Solution], float] = loss_of,
    ) -> list[Solution]:
        """Run the solver from all starts and return the solutions, the best first.

        Starts are run in batches whose composition does not depend on `n_jobs`, so that the result
        is the same for any number of jobs. Where the best is the one with the smallest loss, a
        start that will hardly be it is given up: it races with the others of its batch and with
        the first batch, which runs before the rest. A negative `tol` asks for all updates.

        Parameters
        ----------
        objective : Objective
        starts : sequence of callable
            Each makes one starting factor; its randomness is drawn before.
        task : str
            What is run, for the line that reports it.
        rank : callable
            The figure by which solutions are compared: the smallest is best, the earliest of
            equals.

        Returns
        -------
        list of Solution
        """
        began, size = time.perf_counter(), 1
        if objective.wide and len(starts) > 1:
            first = starts[0]()  # made here for its size: it need not be made again
            starts = [lambda: first, *starts[1:]]
            size = int(np.clip(_BATCH_BYTES // max(first.nbytes, 1), 1, _BATCH))
        batches = [starts[i : i + size] for i in range(0, len(starts), size)]
        if self.stop.races and rank is loss_of:
            runs = self._share_out(objective, batches[:1], np.inf)
            lead = min(solution.loss for solution in runs[0])
            runs += self._share_out(objective, batches[1:], lead)
        else:
            runs = self._share_out(objective, batches, None)
        solutions = sorted((solution for run in runs for solution in run), key=rank)
        best = solutions[0]
        self.say(
            f"{task}, {len(solutions)} start(s): best loss {best.loss:.6g} after {best.n_iter} "
            f"updates, {time.perf_counter() - began:.2f} s"
        )
        return solutions

    def _share_out(
        self, objective: Objective, batches: list[Sequence[Start]], lead: float | None
    ) -> list[list[Solution]]:
        """Run the solver on batches of starts, several at a time; one alone in blocks of rows."""
        if len(batches) == 1:  # in this thread, which has others to share its blocks with
            solve = partial(self._steps, objective, batches[0])
            return [iterate(solve, self.stop, objective.constant, None, lead)]
        solves = (partial(self._steps, objective, batch) for batch in batches)
        interrupted = Event()
        handling: dict[str, Any] = {"call": np.geterrcall(), **np.geterr()}
        run = np.errstate(**handling)(iterate)  # as in the caller: threads do not know of it
        rest = (self.stop, objective.constant, lambda *_: interrupted.is_set(), lead)
        try:  # threads: processes and clusters would be sent the data with every batch
            return Parallel(n_jobs=self.n_jobs, require="sharedmem")(
                delayed(run)(solve, *rest) for solve in solves
            )
        except BaseException:
            interrupted.set()  # the threads that still run end with their next update
            raise

    def _steps(self, objective: Objective, starts: Sequence[Start]) -> Steps:
        if len(starts) == 1:  # no copy of a large factor
            return self.solver(objective, starts[0]()[None])
        return self.solver(objective, np.stack([start() for start in starts]))


def dots(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return <X_s, Y_s> for every start s, accumulated in float64."""
    return summed(lambda rows: _dots(X[:, rows], Y[:, rows]), X.shape[1])


def _dots(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    pairs = zip(X, Y, strict=True)
    if X.dtype == np.float64:
        return np.array([np.vdot(x, y) for x, y in pairs])
    return np.array([np.einsum("ij,ij->", x, y, dtype=np.float64) for x, y in pairs])


def per_start(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return one value a start so that it multiplies (n_starts, n, k) without promoting it."""
    return values.astype(like.dtype)[:, None, None]
