"""The loop and the restarts, once for every solver.

A solver is a generator: it yields ``(factors, loss)`` for a batch of starts, whose axis comes
first, and updates them when it is resumed. It is resumed with None, or with a boolean mask of the
starts to go on with. It knows nothing of `max_iter`, `tol`, seeds, printing or warnings: these
are here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

Factors = tuple[np.ndarray, ...]
Steps = Generator[tuple[Factors, np.ndarray], np.ndarray | None, None]

_WINDOW = 10  # iterations over which the loss must have fallen by tol
_NOTHING = 1e-10  # of the scale: a loss that is next to 0 need not fall further
_BATCH = 8  # starts side by side: a wider product gains little more
_BATCH_BYTES = 2**28


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
        Whether the loss had stopped falling when the loop ended.
    """

    factors: Factors
    loss: float
    history: np.ndarray
    converged: bool

    @property
    def n_iter(self) -> int:
        """Number of updates made."""
        return len(self.history) - 1


def iterate(
    steps: Steps,
    *,
    max_iter: int,
    tol: float,
    scale: float,
    of_loss: bool = False,
    min_iter: int = 2 * _WINDOW,
    callback: Callable[[int, np.ndarray], bool | None] | None = None,
) -> list[Solution]:
    """Run a solver until every start has converged or `max_iter` updates were made.

    A start has converged when its loss fell by less than ``tol * scale``, or ``tol`` times itself,
    over the last ten updates; it then leaves the batch. It never stops before `min_iter` updates,
    because a symmetric start can sit on a plateau at first.

    Parameters
    ----------
    steps : generator
        A solver.
    max_iter : int
        Largest number of updates.
    tol : float
        Smallest relative decrease over ten updates that counts as progress; raised to the
        resolution of the factors' dtype, for `scale`. A negative `tol` runs all updates.
    scale : float
        What the decrease is relative to: the loss of the zero factor.
    of_loss : bool, default=False
        Whether it is relative to the loss itself instead, which may end near 0.
    min_iter : int, default=20
        Smallest number of updates.
    callback : callable, default=None
        Called with the number of updates made and the losses of the starts still running;
        a true answer ends the loop.

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
    least = max(float(np.finfo(factors[0].dtype).eps), _NOTHING if of_loss else 0) * scale

    def threshold(loss: float) -> float:
        return max(tol * (loss if of_loss else scale), least) if tol >= 0 else -np.inf

    running = np.arange(len(losses))
    histories: list[list[float]] = [[] for _ in running]
    best: list[tuple[float, Factors]] = [(np.inf, ())] * len(running)
    for iteration in range(max_iter + 1):
        if not np.isfinite(losses).all():
            raise FloatingPointError(f"the loss is {losses.max()} after {iteration} updates.")
        for row, (start, loss) in enumerate(zip(running, losses, strict=True)):
            histories[start].append(float(loss))
            if loss < best[start][0]:
                best[start] = (float(loss), tuple(factor[row] for factor in factors))
        stopped = callback is not None and callback(iteration, losses)
        still = np.array([not _settled(histories[s], threshold, min_iter) for s in running])
        running = running[still]
        if stopped or iteration == max_iter or not len(running):
            break
        factors, losses = steps.send(None if still.all() else still)
    steps.close()
    return [
        Solution(best[s][1], best[s][0], np.array(histories[s]), s not in running)
        for s in range(len(histories))
    ]


def _settled(history: list[float], threshold: Callable[[float], float], min_iter: int) -> bool:
    n_iter = len(history) - 1
    if n_iter < max(min_iter, 1):
        return False
    return history[-1 - min(_WINDOW, n_iter)] - history[-1] <= threshold(history[-1])


def kept(keep: np.ndarray | None, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the arrays restricted to the starts that go on."""
    return arrays if keep is None else tuple(array[keep] for array in arrays)


def restart(
    solve: Callable[[np.ndarray], Steps],
    starts: Sequence[Callable[[], np.ndarray]],
    *,
    rank: Callable[[Solution], float],
    max_iter: int,
    tol: float,
    scale: float,
    of_loss: bool = False,
    wide: bool = False,
    n_jobs: int | None = None,
    min_iter: int = 2 * _WINDOW,
) -> list[Solution]:
    """Run a solver from several starts and return the solutions, the best first.

    Starts are run in batches whose composition does not depend on `n_jobs`, on one BLAS thread
    each, so that the result is the same for any number of jobs and threads.

    Parameters
    ----------
    solve : callable
        Makes the solver's generator from factors of shape (n_starts, n, k).
    starts : sequence of callable
        Each makes one starting factor of shape (n, k), all of its randomness drawn before.
    rank : callable
        The figure by which solutions are compared: the smallest is best, the earliest of equals.
    max_iter : int
        As in `iterate`.
    tol : float
        As in `iterate`.
    scale : float
        As in `iterate`.
    of_loss : bool, default=False
        As in `iterate`.
    wide : bool, default=False
        Whether several starts in one product are faster than one after the other.
    n_jobs : int, default=None
        Number of threads that run batches.
    min_iter : int, default=20
        As in `iterate`.

    Returns
    -------
    list of Solution
    """

    def run(batch: Sequence[Callable[[], np.ndarray]]) -> list[Solution]:
        H = batch[0]()[None] if len(batch) == 1 else np.stack([start() for start in batch])
        return iterate(
            solve(H),
            max_iter=max_iter,
            tol=tol,
            scale=scale,
            of_loss=of_loss,
            min_iter=min_iter,
        )

    # the limit is process-wide: around the workers, never inside one
    with threadpool_limits(limits=1, user_api="blas"):
        size = 1
        if wide and len(starts) > 1:
            first = starts[0]()  # made here for its size: it need not be made again
            starts = [lambda: first, *starts[1:]]
            size = int(np.clip(_BATCH_BYTES // max(first.nbytes, 1), 1, _BATCH))
        batches = [starts[i : i + size] for i in range(0, len(starts), size)]
        solutions = Parallel(n_jobs=n_jobs, prefer="threads")(delayed(run)(b) for b in batches)
        return sorted((s for batch in solutions for s in batch), key=rank)


def warn_if_not_converged(
    solution: Solution, name: str, max_iter: int, scale: float, stacklevel: int
) -> None:
    """Warn, once and with the figures, that the run which was kept ran out of updates."""
    if solution.converged:
        return
    back = solution.history[-1 - min(_WINDOW, solution.n_iter)] - solution.history[-1]
    warnings.warn(
        f"{name} did not converge within max_iter={max_iter} updates: the loss still fell by "
        f"{back / scale if scale else back:.1e} of its scale over the last {_WINDOW}. "
        "Increase max_iter or tol.",
        ConvergenceWarning,
        stacklevel=stacklevel,
    )
