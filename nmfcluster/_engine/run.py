"""How a solver is run: the loop, the restarts.

A solver is a generator: it yields ``(factors, loss)`` for a batch of starts, whose axis comes
first, and updates them when it is resumed. It is resumed with None, or with a boolean mask of the
starts to go on with. It knows nothing of `max_iter`, `tol`, seeds, printing or warnings: these
are here.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Any, Protocol

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from nmfcluster._arrays.arguments import counted
from nmfcluster._arrays.blocks import summed
from nmfcluster._arrays.jobs import on_cluster, shared_out
from nmfcluster._arrays.threads import one_blas_thread
from nmfcluster._engine.memory import Recall
from nmfcluster._engine.stopping import (
    WINDOW,
    Factors,
    Heat,
    LossRace,
    Race,
    Solution,
    StopRule,
    best_first,
    loss_of,
)

Steps = Generator[tuple[Factors, np.ndarray], np.ndarray | None, None]
Start = Callable[[], np.ndarray]

_HEAT = 3 * WINDOW  # updates that a random start needs until its figure can be compared
_BATCH = 8  # starts side by side: a wider product gains little more
_SHARED_OUT = 5  # the same where all run to their end: 20 runs are as much work for 2 or 4 threads
_BATCH_BYTES = 2**28  # of the starts of a batch, 256 MiB: memory grows with it, speed does not


def iterate(
    solve: Callable[[], Steps],
    stop: StopRule,
    scale: float,
    callback: Callable[[int, np.ndarray], bool | None] | None = None,
    race: Race | None = None,
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
    race : Race, default=None
        Tells which starts are given up; none by default.

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
    given_up: set[int] = set()

    def reached(start: int) -> Solution:
        history = np.array(histories[start])
        loss, at = best[start]
        return Solution(at, loss, history, start in converged, start in given_up)

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
        if race is not None:
            going_on = race.going_on([reached(s) for s in running.tolist()])
            given_up.update(running[still & ~going_on])
            still &= going_on
        running = running[still]
        if ended or iteration == stop.max_iter or not len(running):
            break
        factors, losses = steps.send(None if still.all() else still)
    steps.close()
    return [reached(start) for start in range(len(histories))]


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


class PerStart(ABC):
    """An objective of which every start sees data of its own; starts run one by one."""

    wide = False  # starts that see different data share no product

    @abstractmethod
    def seen_by(self, starts: Sequence[Start]) -> Any:
        """Return what the solver is given with these starts: here, one."""


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
        Number of threads that batches of starts are shared out to, unless a cluster is.
    say : callable
        Takes a line that reports progress.
    begin : callable
        Takes the name of a stage and its number of batches, and returns what is called at the end
        of each.
    memory : joblib.Memory, default=None
        Where solutions are kept, if they are.
    """

    n_clusters: int
    solver: Callable[[Any, np.ndarray], Steps]
    n_init: int
    stop: StopRule
    n_jobs: int | None
    say: Callable[[str], None]
    begin: Callable[[str, int], Callable[[], None]] = lambda task, n_batches: _nothing
    memory: Any = None

    def stopping(self, **changes: Any) -> Plan:
        """Return the plan with another stop rule."""
        return replace(self, stop=replace(self.stop, **changes))

    def run(
        self,
        objective: Objective,
        starts: Sequence[Start],
        task: str,
        rank: Callable[[Solution], float] = loss_of,
        lead: float | None = None,
    ) -> list[Solution]:
        """Run the solver from all starts and return the solutions, the best first.

        Starts are run in batches whose composition does not depend on `n_jobs`, so that the result
        is the same for any number of jobs. A start that will hardly be the best is given up: it
        races with the others of its batch and with the first batch, which runs before the rest.
        With a `lead` it is given up where it is not below that when the race begins. A negative
        `tol` asks for all updates.

        Parameters
        ----------
        objective : Objective
        starts : sequence of callable
            Each makes one starting factor; its randomness is drawn before.
        task : str
            What is run, for the lines that announce and report it.
        rank : callable
            The figure by which solutions are compared: the smallest is best, the earliest of
            those that only rounding tells apart.
        lead : float, default=None
            What earlier starts have reached, and these must beat.

        Returns
        -------
        list of Solution
        """
        self.say(f"{task}, {counted(len(starts), 'start')} ...")
        began, size = time.perf_counter(), 1
        if objective.wide and len(starts) > 1:
            first = starts[0]()  # made here for its size: it need not be made again
            starts = [partial(np.asarray, first), *starts[1:]]
            most = _SHARED_OUT if self.stop.race_from is None else _BATCH
            size = int(np.clip(_BATCH_BYTES // max(first.nbytes, 1), 1, most))
        batches = [starts[i : i + size] for i in range(0, len(starts), size)]
        race = self._race(objective, rank, lead) if len(starts) > 1 or lead is not None else None
        # batches that run before the rest, and are what it must beat
        ahead = 1 if race and lead is None else 0
        done = self.begin(task, len(batches))
        runs = [
            *self._share_out(objective, batches[:ahead], race, done),
            *self._share_out(objective, batches[ahead:], race, done),
        ]
        ended = [solution for run in runs for solution in run]
        solutions = best_first([s for s in ended if not s.given_up], rank)
        solutions += [s for s in ended if s.given_up]
        best = solutions[0]
        self.say(
            f"{task}, {counted(len(solutions), 'start')}: best loss {best.loss:.6g} after "
            f"{counted(best.n_iter, 'update')}, {time.perf_counter() - began:.2f} s"
        )
        return solutions

    def _race(
        self, objective: Objective, rank: Callable[[Solution], float], lead: float | None
    ) -> Race | None:
        """Return the race of the starts, if there is one."""
        if self.stop.race_from is None or self.stop.tol < 0:
            return None
        if lead is not None:
            return Heat(begins=self.stop.race_from, figure=rank, lead=lead)
        if rank is loss_of:
            return LossRace(begins=self.stop.race_from, scale=objective.constant)
        return Heat(begins=max(self.stop.race_from, _HEAT), figure=rank)

    def _share_out(
        self,
        objective: Objective,
        batches: list[Sequence[Start]],
        race: Race | None,
        done: Callable[[], None],
    ) -> list[list[Solution]]:
        """Run the solver on batches of starts, several at a time; one alone in blocks of rows."""
        if not batches:
            return []
        recall = None
        if self.memory is not None and race is None:  # what a race leaves depends on all others
            recall = Recall(self.memory, objective, self.solver, self.stop)
        lot = Lot(self.solver, objective, batches, self.stop, race, recall)
        if len(batches) == 1:  # in this thread, which has others to share its blocks with
            runs = [lot.solutions(0, race)]
            done()
            return runs
        handling: dict[str, Any] = {"call": np.geterrcall(), **np.geterr()}
        numbers = range(len(batches))
        if on_cluster():
            calls = [(number,) for number in numbers]
            runs = shared_out(_ended, (lot, handling), lambda: calls, self.n_jobs)
            for _ in numbers:
                done()
            return runs
        interrupted = Event()

        @np.errstate(**handling)  # as in the caller: threads do not know of it
        def run(number: int) -> list[Solution]:
            solutions = lot.solutions(number, copy(race), interrupted)
            done()
            return solutions

        try:  # threads: processes would be sent the data with every batch
            return Parallel(n_jobs=self.n_jobs, require="sharedmem")(
                delayed(run)(number) for number in numbers
            )
        except BaseException:
            interrupted.set()  # the threads that still run end with their next update
            raise


def _nothing() -> None:
    """Do nothing: the end of a batch that nobody waits for."""


@dataclass(frozen=True)
class Lot:
    """Batches of starts with all that running them takes: what a cluster is sent, once.

    Attributes
    ----------
    solver : callable
    objective : Objective
    batches : list of sequence of callable
    stop : StopRule
    race : Race or None
        As it stands before they run.
    recall : Recall or None
        Knows solutions of other fits.
    """

    solver: Callable[[Any, np.ndarray], Steps]
    objective: Objective
    batches: list[Sequence[Start]]
    stop: StopRule
    race: Race | None
    recall: Recall | None

    def solutions(
        self, number: int, race: Race | None, interrupted: Event | None = None
    ) -> list[Solution]:
        """Run the solver on a batch, until all starts have ended or an event is set."""
        batch = self.batches[number]
        ends = None if interrupted is None else lambda *_: interrupted.is_set()

        def compute() -> list[Solution]:
            solve = partial(_steps, self.solver, self.objective, batch)
            found = iterate(solve, self.stop, self.objective.constant, ends, race)
            if interrupted is not None and interrupted.is_set():
                raise InterruptedError("another batch of starts failed")  # not to be kept
            return found

        return compute() if self.recall is None else self.recall(batch, compute)


def _ended(lot: Lot, handling: dict[str, Any], number: int) -> list[Solution]:
    """Run the solver on a batch, on a machine of a cluster, with numbers handled as in a fit."""
    with one_blas_thread(), np.errstate(**handling):
        return lot.solutions(number, copy(lot.race))


def _steps(
    solver: Callable[[Any, np.ndarray], Steps], objective: Objective, starts: Sequence[Start]
) -> Steps:
    if isinstance(objective, PerStart):
        objective = objective.seen_by(starts)
    if len(starts) == 1:  # no copy of a large factor
        return solver(objective, starts[0]()[None])
    return solver(objective, np.stack([start() for start in starts]))


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
