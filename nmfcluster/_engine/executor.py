"""Several starts of a solver: in batches, in threads or on a cluster, racing with each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from threading import Event
from typing import Any, Protocol

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from nmfcluster._arrays.arguments import counted
from nmfcluster._arrays.blocks import handling_of_errors
from nmfcluster._arrays.jobs import on_cluster, one_blas_thread, shared_out
from nmfcluster._engine import loop
from nmfcluster._engine.memory import Recall
from nmfcluster._engine.report import stage

Start = Callable[[], np.ndarray]

_HEAT = 3 * loop.WINDOW  # updates that a random start needs until its figure can be compared
_BATCH = 8  # starts side by side: a wider product gains little more
_SHARED_OUT = 5  # the same where all run to their end: 20 runs are as much work for 2 or 4 threads
_BATCH_BYTES = 2**28  # of the starts of a batch, 256 MiB: memory grows with it, speed does not


class Objective(Protocol):
    """What a run must know of an objective; the solver knows the rest."""

    @property
    def constant(self) -> float:
        """Loss of the zero factors, by which a decrease is measured."""

    @property
    def wide(self) -> bool:
        """Whether several starts side by side are faster than one after the other."""


class PerStart(ABC):
    """An objective of which every start sees data of its own."""

    @abstractmethod
    def seen_by(self, starts: Sequence[Any]) -> Any:
        """Return what the solver is given with a batch of starts."""

    @abstractmethod
    def of_all(self, start: Any, factors: loop.Factors) -> loop.Factors:
        """Return the factors of a start for all the data, of which it may see a part."""


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
    memory : joblib.Memory, default=None
        Where solutions are kept, if they are.
    """

    n_clusters: int
    solver: Callable[[Any, np.ndarray], loop.Steps]
    n_init: int
    stop: loop.StopRule
    n_jobs: int | None
    memory: Any = None

    def stopping(self, **changes: Any) -> Plan:
        """Return the plan with another stop rule."""
        return replace(self, stop=replace(self.stop, **changes))

    def run(
        self,
        objective: Objective,
        starts: Sequence[Start],
        task: str,
        rank: loop.Rank = loop.loss_of,
        lead: float | None = None,
    ) -> list[loop.Solution]:
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
        # batches: side by side where one product serves several starts
        size, apart = 1, isinstance(objective, PerStart)
        if objective.wide and len(starts) > 1 and not (apart and self.memory):  # kept run by run
            first = starts[0]()  # made here for its size: it need not be made again
            starts = starts if apart else [partial(np.asarray, first), *starts[1:]]
            most = _SHARED_OUT if self.stop.race_from is None else _BATCH
            size = int(np.clip(_BATCH_BYTES // max(first.nbytes, 1), 1, most))
        batches = [starts[i : i + size] for i in range(0, len(starts), size)]
        # without a lead the first batch runs before the rest, and is what these must beat
        race = self._race(objective, rank, lead) if len(starts) > 1 or lead is not None else None
        ahead = 1 if race and lead is None else 0
        with stage(f"{task}, {counted(len(starts), 'start')}", len(batches)) as told:
            executor = Executor(self, objective, race, told.one_more)
            ended = executor.run(batches[:ahead]) + executor.run(batches[ahead:])
            solutions = loop.best_first([s for s in ended if not s.given_up], rank)
            solutions += [s for s in ended if s.given_up]
            best = solutions[0]
            told.outcome = f"best loss {best.loss:.6g} after {counted(best.n_iter, 'update')}"
        return solutions

    def _race(self, objective: Objective, rank: loop.Rank, lead: float | None) -> loop.Race | None:
        """Return the race of the starts, if there is one."""
        if self.stop.race_from is None or self.stop.tol < 0:
            return None
        if lead is not None:
            return loop.Heat(begins=self.stop.race_from, figure=rank, lead=lead)
        if rank is loop.loss_of:
            return loop.LossRace(begins=self.stop.race_from, scale=objective.constant)
        return loop.Heat(begins=max(self.stop.race_from, _HEAT), figure=rank)


class Executor:
    """Runs batches of starts: in this thread, in several, or on a cluster, which it is sent to.

    Parameters
    ----------
    plan : Plan
    objective : Objective
    race : Race or None
    done : callable
        Called at the end of each batch.
    """

    def __init__(
        self, plan: Plan, objective: Objective, race: loop.Race | None, done: Callable[[], None]
    ) -> None:
        self.plan, self.objective, self.race, self.done = plan, objective, race, done
        self.interrupted: Event | None = None  # set where another batch has failed
        self.recall = None
        if plan.memory is not None and race is None:  # what a race leaves depends on all others
            self.recall = Recall(plan.memory, objective, plan.solver, plan.stop)

    def run(self, batches: list[Sequence[Start]]) -> list[loop.Solution]:
        """Run the solver on batches of starts, several at a time; one alone in blocks of rows."""
        if len(batches) <= 1:  # in this thread, which has others to share its blocks with
            runs = [self.solutions(batches[0], self.race)] if batches else []
        elif on_cluster():
            sent = copy(self)
            sent.done = _nothing  # nobody listens there
            numbers = [(number,) for number in range(len(batches))]
            # batches are sent with the objective, once: starts hold its similarity
            common = sent, batches, handling_of_errors()
            runs = shared_out(_ended, common, numbers, self.plan.n_jobs, self.done)
        else:  # in threads: processes would be sent the data with every batch
            self.interrupted = Event()
            work = np.errstate(**handling_of_errors())(self.solutions)
            calls = (delayed(work)(batch, copy(self.race)) for batch in batches)
            try:
                runs = Parallel(n_jobs=self.plan.n_jobs, require="sharedmem")(calls)
            except BaseException:
                self.interrupted.set()  # the threads that still run end with their next update
                raise
        return list(chain.from_iterable(runs))

    def solutions(self, batch: Sequence[Start], race: loop.Race | None) -> list[loop.Solution]:
        """Run the solver on a batch, or recall its solutions, and tell that it is done."""
        compute = partial(self._computed, batch, race)
        solutions = compute() if self.recall is None else self.recall(batch, compute)
        self.done()
        return solutions

    def _computed(self, batch: Sequence[Start], race: loop.Race | None) -> list[loop.Solution]:
        """Run the solver until all starts of a batch have ended, or another batch has failed."""
        objective = self.objective
        if isinstance(objective, PerStart):
            objective = objective.seen_by(batch)
        # one start alone is not copied: a factor can be large
        H = batch[0]()[None] if len(batch) == 1 else np.stack([start() for start in batch])
        steps = self.plan.solver(objective, H)
        ends = None if self.interrupted is None else self.interrupted.is_set
        solutions = loop.iterate(steps, self.plan.stop, self.objective.constant, ends, race)
        if isinstance(self.objective, PerStart):
            for start, solution in zip(batch, solutions, strict=True):
                solution.factors = self.objective.of_all(start, solution.factors)
        if ends is not None and ends():
            raise InterruptedError("another batch of starts failed")  # not to be kept
        return solutions


def _nothing() -> None:
    """Do nothing."""


def _ended(
    executor: Executor, batches: list[Sequence[Start]], handling: dict[str, Any], number: int
) -> list[loop.Solution]:
    """Run the solver on a batch, on a machine of a cluster, with numbers handled as in a fit."""
    with one_blas_thread(), np.errstate(**handling):
        return executor.solutions(batches[number], copy(executor.race))
