"""How a solver is run: where it starts, the loop, the restarts.

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
import scipy.linalg
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from nmfcluster.similarity import Similarity

Factors = tuple[np.ndarray, ...]
Steps = Generator[tuple[Factors, np.ndarray], np.ndarray | None, None]
Start = Callable[[], np.ndarray]

WINDOW = 10  # updates over which the loss must have fallen by tol
_FLOOR = 1e-10  # of the loss of zero factors: a loss that is next to 0 need not fall further
_BATCH = 8  # starts side by side: a wider product gains little more
_BATCH_BYTES = 2**28  # of the starts of a batch, 256 MiB: memory grows with it, speed does not
_DENSE = 300  # rows of an eigenproblem up to which a dense solver is faster
_EIGENVALUE_TOL = 1e-4  # relative: a start need not be more exact


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
    """

    max_iter: int
    tol: float
    of_loss: bool = False
    min_iter: int = 2 * WINDOW

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
) -> list[Solution]:
    """Run a solver until every start has converged or had its updates.

    A start that has converged leaves the batch.

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
    for iteration in range(stop.max_iter + 1):
        if not np.isfinite(losses).all():
            raise FloatingPointError(f"the loss is {losses.max()} after {iteration} updates.")
        for row, (start, loss) in enumerate(zip(running, losses, strict=True)):
            histories[start].append(float(loss))
            if loss < best[start][0]:
                best[start] = (float(loss), tuple(factor[row] for factor in factors))
        ended = callback is not None and callback(iteration, losses)
        still = np.array([not stop.settled(histories[s], scale, resolution) for s in running])
        running = running[still]
        if ended or iteration == stop.max_iter or not len(running):
            break
        factors, losses = steps.send(None if still.all() else still)
    steps.close()
    return [
        Solution(best[s][1], best[s][0], np.array(histories[s]), s not in running)
        for s in range(len(histories))
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
        is the same for any number of jobs.

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
        solves = (partial(self._steps, objective, batch) for batch in batches)
        interrupted = Event()
        handling: dict[str, Any] = {"call": np.geterrcall(), **np.geterr()}
        run = np.errstate(**handling)(iterate)  # as in the caller: threads do not know of it
        with_flag = (self.stop, objective.constant, lambda *_: interrupted.is_set())
        try:  # threads: processes and clusters would be sent the data with every batch
            runs = Parallel(n_jobs=self.n_jobs, require="sharedmem")(
                delayed(run)(solve, *with_flag) for solve in solves
            )
        except BaseException:
            interrupted.set()  # the threads that still run end with their next update
            raise
        solutions = sorted((solution for run in runs for solution in run), key=rank)
        best = solutions[0]
        self.say(
            f"{task}, {len(solutions)} start(s): best loss {best.loss:.6g} after {best.n_iter} "
            f"updates, {time.perf_counter() - began:.2f} s"
        )
        return solutions

    def _steps(self, objective: Objective, starts: Sequence[Start]) -> Steps:
        if len(starts) == 1:  # no copy of a large factor
            return self.solver(objective, starts[0]()[None])
        return self.solver(objective, np.stack([start() for start in starts]))


def draw_seeds(rng: np.random.RandomState, size: int) -> list[int]:
    """Draw the seeds of starts before any of them runs."""
    return [int(seed) for seed in rng.randint(np.iinfo(np.int32).max, size=size)]


def dots(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return <X_s, Y_s> for every start s, accumulated in float64."""
    pairs = zip(X, Y, strict=True)
    if X.dtype == np.float64:
        return np.array([np.vdot(x, y) for x, y in pairs])
    return np.array([np.einsum("ij,ij->", x, y, dtype=np.float64) for x, y in pairs])


def per_start(values: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Return one value a start so that it multiplies (n_starts, n, k) without promoting it."""
    return values.astype(like.dtype)[:, None, None]


def random_start(mass: np.ndarray, n_clusters: int, seed: Any, dtype: np.dtype) -> np.ndarray:
    """Draw a factor uniformly from (0, 1).

    Parameters
    ----------
    mass : ndarray of shape (n,)
        Number of samples a row stands for: the rows of a collapsed problem are longer by its root.
    n_clusters : int
    seed : int or RandomState
    dtype : dtype

    Returns
    -------
    ndarray of shape (n, n_clusters)
    """
    H = check_random_state(seed).uniform(size=(len(mass), n_clusters)) * np.sqrt(mass)[:, None]
    return H.astype(dtype)


def leading_eigenpairs(A: Similarity, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest eigenvalues of A, in decreasing order, and their eigenvectors.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    n_components : int
        At most n.

    Returns
    -------
    values : ndarray of shape (n_components,)
    vectors : ndarray of shape (n, n_components)
    """
    n = A.shape[0]
    if n <= max(_DENSE, 3 * n_components):
        # all of them: LAPACK's driver for a subset fails where many eigenvalues are equal
        values, vectors = scipy.linalg.eigh(A.toarray(), driver="evd")
        values, vectors = values[-n_components:], vectors[:, -n_components:]
    else:
        start = np.random.default_rng(0).uniform(0.5, 1.0, n)  # ARPACK's own is not reproducible
        options = {"k": n_components, "which": "LA", "tol": _EIGENVALUE_TOL, "v0": start}
        values, vectors = eigsh(_linear_operator(A), **options)
    order = np.argsort(-values, kind="stable")
    return values[order], vectors[:, order]


def _linear_operator(A: Similarity) -> LinearOperator:
    def product(v: np.ndarray) -> np.ndarray:
        return (A @ v.reshape(-1, 1).astype(A.dtype)).ravel().astype(np.float64)

    return LinearOperator(A.shape, matvec=product, dtype=np.float64)


def spectral_start(A: Similarity, n_clusters: int) -> np.ndarray:
    """Return the nonnegative part of the leading eigenvectors, turned towards the axes.

    ``V diag(values)^1/2 R`` reproduces the best rank-k part of A for every rotation R. The one
    taken here makes k rows of the product, chosen by a pivoted QR decomposition [1]_, as close as
    it can to multiples of unit vectors: for a block diagonal A that is the solution. Nothing
    is random, and it does not matter which basis of an eigenspace the eigensolver returns.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    n_clusters : int

    Returns
    -------
    ndarray of shape (n, n_clusters)

    References
    ----------
    .. [1] A. Damle, V. Minden, L. Ying. Simple, direct and efficient multi-way spectral
       clustering. Information and Inference 8, 2019.
    """
    n_components = min(n_clusters, A.shape[0])
    values, vectors = leading_eigenpairs(A, n_components)
    _, _, pivots = scipy.linalg.qr(vectors.T, mode="economic", pivoting=True)
    U, _, Vt = np.linalg.svd(vectors[pivots[:n_components]].T)
    H = np.maximum((vectors * np.sqrt(np.maximum(values, 0))) @ (U @ Vt), 0)
    H += 1e-2 * H.mean()  # a positive entry everywhere, for the multiplicative rules
    missing = n_clusters - n_components
    H = np.pad(H, ((0, 0), (0, missing)), constant_values=1e-2 * float(H.mean()))
    return H.astype(A.dtype)
