"""The one loop: a solver runs until its loss has stopped falling, or another start has all but won.

A solver is a generator: it yields ``(factors, loss)`` for a batch of starts, whose axis comes
first, and updates them when it is resumed. It is resumed with None, or with a boolean mask of the
starts to go on with. It knows nothing of `max_iter`, `tol`, seeds, printing or warnings.

Solutions that are kept on disk, so that a fit that was stopped goes on where it was.

Several starts of a solver: in batches, in threads or on a cluster, racing with each other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import chain
from threading import Event
from typing import Any, Protocol

import joblib
import numpy as np
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_memory

from nmfcluster._utils.array_api import beside, namespace, of_starts, to_numpy
from nmfcluster._utils.linalg import handling_of_errors
from nmfcluster._utils.parallel import on_cluster, one_blas_thread, shared_out
from nmfcluster._utils.progress import stage
from nmfcluster._utils.sparse_products import content
from nmfcluster._utils.validation import counted, shown, warn

Factors = tuple[np.ndarray, ...]
Steps = Generator[tuple[Factors, np.ndarray], np.ndarray | None, None]
Ends = Callable[[], bool]  # tells that nobody waits for a run any more

WINDOW = 10  # updates over which the loss must have fallen by tol
_NEAR = (
    1e-3  # of the loss of zero factors: starts that are so near can change places late
)
_TIE = 1e-9  # of the best figure: where memory lies decides the rounding, and must not choose
_FLOOR = (
    1e-10  # of the loss of zero factors: a loss that is next to 0 need not fall further
)


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

    def settled(
        self, history: Sequence[float], scale: float, resolution: float
    ) -> bool:
        """Tell whether a run with these losses has converged.

        Parameters
        ----------
        history : sequence of float
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
        wanted = self.tol * (history[-1] if self.of_loss else scale)
        return recent_decrease(history) <= max(wanted, least)


def recent_decrease(history: Sequence[float]) -> float:
    """Return by how much the loss fell over the last ten updates."""
    return history[-1 - min(WINDOW, len(history) - 1)] - history[-1]


@dataclass
class Solution:
    """How far one start has come, and in the end where it ended.

    Attributes
    ----------
    factors : tuple of ndarray
        The best factors seen, without the axis of starts.
    loss : float
        Their loss.
    history : list of float, in the end ndarray of shape (n_iter + 1,)
        Loss at the start and after every update.
    converged : bool
        Whether the loss had stopped falling when the loop ended.
    given_up : bool, default=False
        Whether the run ended because another had all but won.
    """

    factors: Factors
    loss: float
    history: Any
    converged: bool
    given_up: bool = False

    @property
    def n_iter(self) -> int:
        """Number of updates made."""
        return len(self.history) - 1


def iterate(
    steps: Steps,
    stop: StopRule,
    scale: float,
    ends: Ends | None = None,
    race: Race | None = None,
) -> list[Solution]:
    """Run a solver until every start has converged, is given up, or had its updates.

    A start that has converged, or is given up, leaves the batch.

    Parameters
    ----------
    steps : generator
        The solver's.
    stop : StopRule
    scale : float
        Loss of the zero factors, which decreases are relative to.
    ends : callable, default=None
        Asked after every update; a true answer ends the loop.
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
    factors, losses = next(steps)
    resolution = float(namespace(factors[0]).finfo(factors[0].dtype).eps)
    solutions = [Solution((), np.inf, [], False) for _ in losses]
    running = solutions
    for iteration in range(stop.max_iter + 1):
        if not np.isfinite(losses).all():
            raise FloatingPointError(
                f"the loss is {losses.max()} after {iteration} updates."
            )
        # note the losses, and the factors where they are the best of their start
        still = np.ones(len(running), dtype=bool)
        for row, start in enumerate(running):
            loss = float(losses[row])
            start.history.append(loss)
            if loss < start.loss:
                start.loss, start.factors = loss, tuple([F[row, ...] for F in factors])
            start.converged = stop.settled(start.history, scale, resolution)
            still[row] = not start.converged
        # give up those that will hardly win
        if race is not None:
            for row in np.flatnonzero(still & ~race.going_on(running)).tolist():
                running[row].given_up, still[row] = True, False
        if not still.all():
            running = [
                start for start, stays in zip(running, still, strict=True) if stays
            ]
        if iteration == stop.max_iter or not running or (ends is not None and ends()):
            break
        factors, losses = steps.send(None if still.all() else still)
    steps.close()
    for start in solutions:
        start.history = np.array(start.history)
        start.factors = tuple(map(to_numpy, start.factors))
    return solutions


def kept(keep: np.ndarray | None, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the arrays restricted to the starts that go on."""
    return arrays if keep is None else tuple(of_starts(array, keep) for array in arrays)


def per_start(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return one value a start so that it multiplies (n_starts, n, k) without promoting it."""
    return beside(values[:, None, None], like, like.dtype)


Rank = Callable[
    [Solution], float
]  # by which solutions are compared: the smallest is best


def loss_of(solution: Solution) -> float:
    """Return the figure that runs are mostly ranked by."""
    return solution.loss


def best_first(solutions: Sequence[Solution], rank: Rank = loss_of) -> list[Solution]:
    """Return solutions in order; the earliest is the best of those that only rounding tells apart.

    Factors can differ where losses do not, as those of three factors do, which rotate.

    Parameters
    ----------
    solutions : sequence of Solution
    rank : callable
        The figure by which solutions are compared: the smallest is best.

    Returns
    -------
    list of Solution
    """
    if not solutions:
        return []
    figures = list(map(rank, solutions))
    order = np.argsort(figures, kind="stable").tolist()
    resolution = float(np.finfo(solutions[0].factors[0].dtype).eps)
    lowest, first = figures[order[0]], 0
    while figures[first] - lowest > max(_TIE, resolution) * abs(lowest):
        first += 1
    order.remove(first)
    return [solutions[i] for i in (first, *order)]


@dataclass(kw_only=True)
class Race(ABC):
    """A race of starts: those of the first batch with each other, the others with these, too.

    Attributes
    ----------
    begins : int
        Number of updates after which a start can be given up.
    lead : float
        What there is to beat, infinity before the first batch.
    """

    begins: int
    lead: float = np.inf

    @abstractmethod
    def going_on(self, running: Sequence[Solution]) -> np.ndarray:
        """Tell which starts go on; asked after every update of a batch.

        Parameters
        ----------
        running : sequence of Solution
            How far each has come, in the order of the batch.

        Returns
        -------
        ndarray of shape (n_running,), bool
        """


@dataclass(kw_only=True)
class LossRace(Race):
    """Gives a start up whose loss is not near the lowest, and will hardly get below it.

    It would stay above after all the decrease that is still to be expected: that of a geometric
    sequence through the decreases over the last ten updates and the ten before.

    Attributes
    ----------
    scale : float
        Loss of the zero factors.
    """

    scale: float

    def going_on(self, running: Sequence[Solution]) -> np.ndarray:
        """Tell which starts go on."""
        self.lead = min(self.lead, *(solution.loss for solution in running))
        return np.array([not self.beaten(solution.history) for solution in running])

    def beaten(self, history: np.ndarray) -> bool:
        """Tell whether a run with these losses is given up."""
        if len(history) - 1 < max(self.begins, 2 * WINDOW):
            return False
        start, middle, end = history[-1 - 2 * WINDOW], history[-1 - WINDOW], history[-1]
        decrease = middle - end
        slows_by = (start - middle) - decrease
        if (
            slows_by <= 0 or end - self.lead <= _NEAR * self.scale
        ):  # a plateau comes to its end
            return False
        return bool(np.min(history) - decrease * (decrease / slows_by) > self.lead)


@dataclass(kw_only=True)
class Heat(Race):
    """Compares starts once, by a figure, with a lead that is given, or with the very first start.

    The figure of the first is that after as many updates, or fewer where it converged before.

    Attributes
    ----------
    figure : callable
        The smallest is best.
    """

    figure: Rank

    def going_on(self, running: Sequence[Solution]) -> np.ndarray:
        """Tell which starts go on."""
        of_first = self.lead == np.inf
        now = running[0].n_iter == self.begins
        if of_first and (now or running[0].converged):
            self.lead = self.figure(running[0])
        if not now:
            return np.ones(len(running), dtype=bool)
        rest = (
            running[1:] if of_first else running
        )  # the first goes on, whatever others reach
        better = np.array(list(map(self.figure, rest))) < self.lead
        return np.append(True, better) if of_first else better


def memory_of(memory: Any) -> Any:
    """Return a `joblib.Memory` for a folder, or as it is; None for None."""
    try:
        if memory == "":
            raise ValueError("'.' is the folder of now, and None keeps nothing")
        return None if memory is None else check_memory(memory)
    except (OSError, ValueError) as error:
        wanted = "a folder that can be written to"
        raise ValueError(
            f"memory must be {wanted}, got {shown(memory)}: {error}."
        ) from None


class Recall:
    """Computes what was not computed before from the same data, and keeps it.

    Parameters
    ----------
    memory : joblib.Memory
    *given : object
        All that results depend on, apart from what they are asked for by: objectives, solvers,
        stop rules. It is hashed once.
    """

    def __init__(self, memory: Any, *given: Any) -> None:
        self._given = joblib.hash(
            (version("nmfcluster"), *(_parts(value) for value in given))
        )
        self._kept = memory.cache(_computed, ignore=["compute"])

    def __call__(self, asked: Sequence[Any], compute: Callable[[], Any]) -> Any:
        """Return the solutions that were computed for `asked`, or compute them."""
        key = joblib.hash((self._given, asked))
        shelved = self._kept.call_and_shelve(key, compute)
        with suppress(Exception):  # whatever it is that reading a damaged file raises
            found = shelved.get()
            if isinstance(found, list) and [type(one) for one in found] == [
                Solution
            ] * len(asked):
                return found
        warn(
            "The folder of memory holds what is no run: it is made again, and kept instead."
        )
        shelved.clear()
        return self._kept(key, compute)


def _computed(key: str, compute: Callable[[], Any]) -> Any:
    return compute()


def _parts(value: Any) -> Any:
    """Return what a value is made of, without what it has cached of itself."""
    if is_dataclass(value):
        return type(value).__name__, [
            _parts(getattr(value, f.name)) for f in fields(value)
        ]
    if isinstance(value, partial):
        return _parts(value.func), [_parts(part) for part in value.args]
    if callable(value):
        return value.__module__, value.__qualname__
    return content(value)


Start = Callable[[], np.ndarray]

_HEAT = 3 * WINDOW  # updates that a random start needs until its figure can be compared
_BATCH = 8  # starts side by side: a wider product gains little more
_SHARED_OUT = 5  # the same where all run to their end: 20 runs are as much work for 2 or 4 threads
_BATCH_BYTES = (
    2**28
)  # of the starts of a batch, 256 MiB: memory grows with it, speed does not


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
    def of_all(self, start: Any, factors: Factors) -> Factors:
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
    solver: Callable[[Any, np.ndarray], Steps]
    n_init: int
    stop: StopRule
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
        rank: Rank = loss_of,
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
        # batches: side by side where one product serves several starts
        size, apart = 1, isinstance(objective, PerStart)
        if (
            objective.wide and len(starts) > 1 and not (apart and self.memory)
        ):  # kept run by run
            first = starts[0]()  # made here for its size: it need not be made again
            starts = starts if apart else [partial(np.asarray, first), *starts[1:]]
            most = _SHARED_OUT if self.stop.race_from is None else _BATCH
            size = int(np.clip(_BATCH_BYTES // max(first.nbytes, 1), 1, most))
        batches = [starts[i : i + size] for i in range(0, len(starts), size)]
        # without a lead the first batch runs before the rest, and is what these must beat
        race = (
            self._race(objective, rank, lead)
            if len(starts) > 1 or lead is not None
            else None
        )
        ahead = 1 if race and lead is None else 0
        with stage(f"{task}, {counted(len(starts), 'start')}", len(batches)) as told:
            executor = Executor(self, objective, race, told.one_more)
            ended = executor.run(batches[:ahead]) + executor.run(batches[ahead:])
            solutions = best_first([s for s in ended if not s.given_up], rank)
            solutions += [s for s in ended if s.given_up]
            best = solutions[0]
            told.outcome = (
                f"best loss {best.loss:.6g} after {counted(best.n_iter, 'update')}"
            )
        return solutions

    def _race(
        self, objective: Objective, rank: Rank, lead: float | None
    ) -> Race | None:
        """Return the race of the starts, if there is one."""
        if self.stop.race_from is None or self.stop.tol < 0:
            return None
        if lead is not None:
            return Heat(begins=self.stop.race_from, figure=rank, lead=lead)
        if rank is loss_of:
            return LossRace(begins=self.stop.race_from, scale=objective.constant)
        return Heat(begins=max(self.stop.race_from, _HEAT), figure=rank)


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
        self,
        plan: Plan,
        objective: Objective,
        race: Race | None,
        done: Callable[[], None],
    ) -> None:
        self.plan, self.objective, self.race, self.done = plan, objective, race, done
        self.interrupted: Event | None = None  # set where another batch has failed
        self.recall = None
        if (
            plan.memory is not None and race is None
        ):  # what a race leaves depends on all others
            self.recall = Recall(plan.memory, objective, plan.solver, plan.stop)

    def run(self, batches: list[Sequence[Start]]) -> list[Solution]:
        """Run the solver on batches of starts, several at a time; one alone in blocks of rows."""
        if (
            len(batches) <= 1
        ):  # in this thread, which has others to share its blocks with
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

    def solutions(self, batch: Sequence[Start], race: Race | None) -> list[Solution]:
        """Run the solver on a batch, or recall its solutions, and tell that it is done."""
        compute = partial(self._computed, batch, race)
        solutions = compute() if self.recall is None else self.recall(batch, compute)
        self.done()
        return solutions

    def _computed(self, batch: Sequence[Start], race: Race | None) -> list[Solution]:
        """Run the solver until all starts of a batch have ended, or another batch has failed."""
        objective = self.objective
        if isinstance(objective, PerStart):
            objective = objective.seen_by(batch)
        # one start alone is not copied: a factor can be large
        H = (
            batch[0]()[None]
            if len(batch) == 1
            else np.stack([start() for start in batch])
        )
        steps = self.plan.solver(objective, H)
        ends = None if self.interrupted is None else self.interrupted.is_set
        solutions = iterate(steps, self.plan.stop, self.objective.constant, ends, race)
        if isinstance(self.objective, PerStart):
            for start, solution in zip(batch, solutions, strict=True):
                solution.factors = self.objective.of_all(start, solution.factors)
        if ends is not None and ends():
            raise InterruptedError("another batch of starts failed")  # not to be kept
        return solutions


def _nothing() -> None:
    """Do nothing."""


def _ended(
    executor: Executor,
    batches: list[Sequence[Start]],
    handling: dict[str, Any],
    number: int,
) -> list[Solution]:
    """Run the solver on a batch, on a machine of a cluster, with numbers handled as in a fit."""
    with one_blas_thread(), np.errstate(**handling):
        return executor.solutions(batches[number], copy(executor.race))
