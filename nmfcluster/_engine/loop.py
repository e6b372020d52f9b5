"""The one loop: a solver runs until its loss has stopped falling, or another start has all but won.

A solver is a generator: it yields ``(factors, loss)`` for a batch of starts, whose axis comes
first, and updates them when it is resumed. It is resumed with None, or with a boolean mask of the
starts to go on with. It knows nothing of `max_iter`, `tol`, seeds, printing or warnings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmfcluster._arrays.device import beside, namespace, of_starts, to_numpy

Factors = tuple[np.ndarray, ...]
Steps = Generator[tuple[Factors, np.ndarray], np.ndarray | None, None]
Ends = Callable[[], bool]  # tells that nobody waits for a run any more

WINDOW = 10  # updates over which the loss must have fallen by tol
_NEAR = 1e-3  # of the loss of zero factors: starts that are so near can change places late
_TIE = 1e-9  # of the best figure: where memory lies decides the rounding, and must not choose
_FLOOR = 1e-10  # of the loss of zero factors: a loss that is next to 0 need not fall further


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

    def settled(self, history: Sequence[float], scale: float, resolution: float) -> bool:
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
    steps: Steps, stop: StopRule, scale: float, ends: Ends | None = None, race: Race | None = None
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
            raise FloatingPointError(f"the loss is {losses.max()} after {iteration} updates.")
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
            running = [start for start, stays in zip(running, still, strict=True) if stays]
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


Rank = Callable[[Solution], float]  # by which solutions are compared: the smallest is best


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
        if slows_by <= 0 or end - self.lead <= _NEAR * self.scale:  # a plateau comes to its end
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
        rest = running[1:] if of_first else running  # the first goes on, whatever others reach
        better = np.array(list(map(self.figure, rest))) < self.lead
        return np.append(True, better) if of_first else better
