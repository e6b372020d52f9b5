"""Run a solver from several starts: in batches, with early stopping, in threads or on a cluster.

A solver is a generator. It yields ``(factors, loss)`` for a batch of starts, with the starts along
the first axis, and updates them when it is resumed. It is resumed with None, or with a boolean mask
of the starts that continue. It does not handle `max_iter`, `tol`, seeds, printing or warnings.
"""

from collections.abc import Callable, Generator
from contextlib import nullcontext, suppress
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from importlib.metadata import version
from itertools import chain, compress, repeat
from threading import Event
from typing import Any

import joblib
import numpy as np
from sklearn.utils.validation import check_memory

from nmfcluster._utils.array_api import asarray_like, namespace, take_starts, to_numpy
from nmfcluster._utils.linalg import error_state
from nmfcluster._utils.parallel import one_blas_thread, run_calls, uses_cluster
from nmfcluster._utils.progress import stage
from nmfcluster._utils.sparse_products import csr_arrays
from nmfcluster._utils.validation import format_count, format_value, warn

Factors = tuple[np.ndarray, ...]
Steps = Generator[tuple[Factors, np.ndarray], np.ndarray | None, None]
Start = Callable[[], np.ndarray]  # makes a starting factor

# Number of updates over which the decrease of the loss is compared with tol.
WINDOW = 10
# Largest difference from the best loss, relative to the loss of zero factors, at which a start is
# never abandoned: such a close start can still overtake the best.
_CLOSE = 1e-3
# Largest relative difference of two figures that counts as a tie: rounding depends on where arrays
# lie in memory, and must not decide which start is the best.
_TIE = 1e-9
# Loss, relative to that of zero factors, below which its decrease counts as rounding.
_FLOOR = 1e-10
# Smallest number of updates before starts are compared by another figure than the loss.
_COMPARED_AFTER = 3 * WINDOW
# Largest number of starts in one batch: wider products are hardly faster.
_BATCH = 8
# The same if all starts run to the end: 2 or 4 threads then share 20 runs evenly.
_BATCH_WITHOUT_PRUNING = 5
# Largest size in bytes of the starting factors of a batch (256 MiB): larger batches take more
# memory and are not faster.
_BATCH_BYTES = 2**28


@dataclass(frozen=True)
class SolverConfig:
    """How an estimator runs its solver, and when a run ends.

    A run has converged when the last ten updates lowered its loss by less than ``tol * scale``, or
    by less than `tol` times the loss. The scale is the loss of zero factors.

    Attributes
    ----------
    n_clusters : int
    solver : callable
        Takes an objective and starts, and returns the generator of a solver.
    n_init : int
        Number of starts.
    max_iter : int
        Largest number of updates.
    tol : float
        Smallest relative decrease over ten updates at which a run continues. A negative `tol` runs
        all updates.
    n_jobs : int or None
        Number of threads that run batches of starts, unless a cluster runs them.
    relative_to_loss : bool, default=False
        Whether `tol` is relative to the loss itself, which may end near 0, instead of the scale.
    min_iter : int, default=20
        Smallest number of updates, as a symmetric start can be on a plateau at first.
    prune_from : int or None, default=20
        Number of updates after which starts that are unlikely to beat the best are abandoned. None
        runs all starts to the end.
    """

    n_clusters: int
    solver: Any
    n_init: int
    max_iter: int
    tol: float
    n_jobs: int | None
    relative_to_loss: bool = False
    min_iter: int = 2 * WINDOW
    prune_from: int | None = 2 * WINDOW


def recent_decrease(history):
    """Return the decrease of the loss over the last ten updates."""
    return history[-1 - min(WINDOW, len(history) - 1)] - history[-1]


@dataclass
class Solution:
    """The state of one start while it runs, and then its result.

    Attributes
    ----------
    factors : tuple of ndarray
        The best factors so far, without the axis of starts.
    loss : float
        Loss of these factors.
    history : list of float, after the run ndarray of shape (n_iter + 1,)
        Loss at the start and after every update.
    converged : bool
        Whether the loss had stopped falling when the loop ended.
    pruned : bool, default=False
        Whether the run was abandoned because it was unlikely to beat the best.
    """

    factors: Factors
    loss: float
    history: Any
    converged: bool
    pruned: bool = False

    @property
    def n_iter(self):
        """Number of updates made."""
        return len(self.history) - 1


def loss_of(solution):
    """Return the loss of a solution, which is the default figure to rank solutions."""
    return solution.loss


@dataclass
class Pruning:
    """Rule that abandons starts that are unlikely to beat the best one.

    If starts are ranked by loss, a start is abandoned when its expected final loss is above the
    lowest loss. The expected decreases continue those over the last ten updates and the ten before
    as a geometric sequence. If starts are ranked by another figure, they are compared once, after
    `begins` updates, with the best known figure. By default, this is the figure of the first start
    after as many updates, or at its end if it converged earlier.

    Attributes
    ----------
    begins : int
        Number of updates after which a start can be abandoned.
    scale : float
        Loss of the zero factors.
    rank : callable or None
        Returns the figure of a solution; None ranks by loss.
    best : float
        The best figure so far; infinity before the first batch.
    """

    begins: int
    scale: float
    rank: Any
    best: float = np.inf

    def still_promising(self, running):
        """Return which starts continue; called after every update of a batch.

        Parameters
        ----------
        running : sequence of Solution
            The state of each start, in the order of the batch.

        Returns
        -------
        list of bool, one for each start
        """
        if self.rank is None:
            self.best = min(self.best, min(map(loss_of, running)))
            return list(map(self._can_win, running))
        is_first_batch = self.best == np.inf
        is_due = running[0].n_iter == self.begins
        if is_first_batch and (is_due or running[0].converged):
            self.best = self.rank(running[0])
        promising = [True] * len(running)
        if is_due:
            for i in range(int(is_first_batch), len(running)):
                promising[i] = self.rank(running[i]) < self.best
        return promising

    def _can_win(self, solution):
        """Return whether a run may still reach a loss below the lowest one."""
        history = solution.history
        if len(history) - 1 < max(self.begins, 2 * WINDOW):
            return True
        start, middle, end = history[-1 - 2 * WINDOW :: WINDOW]  # ten updates apart
        decrease = middle - end
        slowdown = (start - middle) - decrease
        # A run on a plateau, or close to the best, continues.
        if slowdown <= 0 or end - self.best <= _CLOSE * self.scale:
            return True
        expected = np.min(history) - decrease * (decrease / slowdown)
        return not expected > self.best


def run_starts(
    objective,
    starts,
    config,
    task,
    *,
    rank=loss_of,
    to_beat=None,
    memory=None,
):
    """Run a solver from all starts and return the solutions, the best first.

    Starts are run in batches that do not depend on `n_jobs`, so that the result is the same for any
    number of jobs. The first batch runs before the others. A start that is unlikely to beat it, or
    the others of its own batch, is abandoned, unless `tol` is negative.

    Parameters
    ----------
    objective : object
        The objective of the solver. `constant` is the loss of zero factors, relative to which
        decreases are measured. `wide` is True if one product for several starts is faster than one
        for each. If it has `seen_by`, every start has data of its own: the solver gets
        ``seen_by(batch)``, and ``of_all(start, factors)`` returns the factors for all data.
    starts : sequence of callable
        Each returns one starting factor; its random numbers are drawn before.
    config : SolverConfig
    task : str
        Name of the task in the log.
    rank : callable
        Returns the figure by which solutions are ranked. The smallest is the best, and the earliest
        among figures that differ only by rounding.
    to_beat : float, default=None
        The best figure of earlier starts. A start that is not below it when starts are compared
        is abandoned.
    memory : joblib.Memory, default=None
        Stores solutions on disk, unless starts can be abandoned.

    Returns
    -------
    list of Solution
    """
    batches = _batches(objective, starts, config, is_remembered=memory is not None)
    # Abandon starts if only the best is wanted and there are others to compare with.
    pruning = None
    has_rivals = len(starts) > 1 or to_beat is not None
    if has_rivals and config.prune_from is not None and config.tol >= 0:
        pruning = Pruning(config.prune_from, objective.constant, rank)
        if to_beat is not None:
            pruning.best = to_beat
        elif rank is loss_of:
            pruning.rank = None
        else:
            pruning.begins = max(config.prune_from, _COMPARED_AFTER)
    run = partial(_run_batch, objective, config)
    if memory is not None and pruning is None:  # a pruned run depends on other runs
        # Solutions depend on these contents, which are hashed once, and on the starts.
        rules = replace(config, n_clusters=0, n_init=0, n_jobs=None)
        contents = (version("nmfcluster"), _content_of(objective), _content_of(rules))
        cached = memory.cache(_call, ignore=["compute"])
        run = partial(_recall, cached, joblib.hash(contents), run)
    with stage(
        f"{task}, {format_count(len(starts), 'start')}", len(batches)
    ) as progress:
        solutions: list = []
        # The first batch runs before the rest, which must beat it. A single batch runs in this
        # thread, which can share its blocks of rows with other threads.
        n_alone = int(pruning is not None and to_beat is None)
        if len(batches) == n_alone + 1:
            n_alone += 1
        for batch in batches[:n_alone]:
            solutions += run(pruning, never_cancelled, batch)
            progress.batch_done()
        # The rest run on a cluster or in threads, as processes would receive the data with every
        # batch. When one thread has failed, the others end with their next update.
        rest = batches[n_alone:]
        if rest:
            failed = Event()
            on_cluster = uses_cluster()
            is_cancelled = never_cancelled if on_cluster else failed.is_set
            try:
                found = run_calls(
                    _run_apart,
                    (run, pruning, is_cancelled, on_cluster, rest, error_state()),
                    [(number,) for number in range(len(rest))],
                    config.n_jobs,
                    progress.batch_done,
                    require=None if on_cluster else "sharedmem",
                )
            except BaseException:
                failed.set()
                raise
            solutions += chain.from_iterable(found)
        ordered = best_first(solutions, rank)
        n_updates = format_count(ordered[0].n_iter, "update")
        progress.outcome = f"best loss {ordered[0].loss:.6g} after {n_updates}"
    return ordered


def never_cancelled():
    """Return False, for runs that no other run can cancel."""
    return False


def _batches(objective, starts, config, is_remembered):
    """Return the starts in batches, of several starts if one product for all is faster."""
    sees_own_data = hasattr(objective, "seen_by")
    size = 1
    # Solutions of starts with data of their own are stored one by one.
    if objective.wide and len(starts) > 1 and not (sees_own_data and is_remembered):
        first = starts[0]()  # its size determines the size of batches
        if not (sees_own_data or is_remembered):
            starts = [partial(np.asarray, first), *starts[1:]]
        largest = _BATCH_WITHOUT_PRUNING if config.prune_from is None else _BATCH
        size = int(np.clip(_BATCH_BYTES // max(first.nbytes, 1), 1, largest))
    return [starts[i : i + size] for i in range(0, len(starts), size)]


def _run_apart(
    run,
    pruning,
    is_cancelled,
    on_cluster,
    batches,
    handling,
    number,
):
    """Run a batch in a thread or on a cluster, with the handling of numerical errors in a fit."""
    # The fit has limited the threads of BLAS in its own process, and lifts this limit when it is
    # interrupted. A thread that still runs must not set it again.
    limit = one_blas_thread() if on_cluster else nullcontext()
    with limit, np.errstate(**handling):
        return run(copy(pruning), is_cancelled, batches[number])


def _run_batch(
    objective,
    config,
    pruning,
    is_cancelled,
    batch,
):
    """Run the solver on one batch of starts."""
    sees_own_data = hasattr(objective, "seen_by")
    seen = objective.seen_by(batch) if sees_own_data else objective
    if len(batch) == 1:
        H = batch[0]()[None]  # without a copy, as a factor can be large
    else:
        H = np.stack([start() for start in batch])
    steps = config.solver(seen, H)
    solutions = iterate(steps, config, objective.constant, is_cancelled, pruning)
    if sees_own_data:
        for start, solution in zip(batch, solutions, strict=True):
            solution.factors = objective.of_all(start, solution.factors)
    if is_cancelled():
        raise InterruptedError("another batch of starts failed")  # not to be stored
    return solutions


def iterate(
    steps,
    config,
    scale,
    is_cancelled=never_cancelled,
    pruning=None,
):
    """Run a solver until every start has converged, is abandoned, or has reached `max_iter`.

    Starts that have converged or are abandoned leave the batch.

    Parameters
    ----------
    steps : generator
        The generator of the solver.
    config : SolverConfig
    scale : float
        Loss of zero factors, relative to which decreases are measured.
    is_cancelled : callable, default=never_cancelled
        Called after every update; the loop ends when it returns True.
    pruning : Pruning, default=None
        Decides which starts are abandoned. None abandons no start.

    Returns
    -------
    list of Solution
        One for each start, in the order of the batch.

    Raises
    ------
    FloatingPointError
        If a loss is not finite.
    """
    factors, losses = next(steps)
    resolution = float(namespace(factors[0]).finfo(factors[0].dtype).eps)
    if config.relative_to_loss:
        resolution = max(resolution, _FLOOR)
    solutions = [Solution((), np.inf, [], False) for _ in losses]
    running = solutions
    for iteration in range(config.max_iter + 1):
        if not np.isfinite(losses).all():
            raise FloatingPointError(
                f"the loss is {losses.max()} after {iteration} updates."
            )
        # Record the losses, and factors that are the best of their start so far.
        can_converge = config.tol >= 0 and iteration >= max(config.min_iter, 1)
        for row, start in enumerate(running):
            loss = float(losses[row])
            start.history.append(loss)
            if loss < start.loss:
                start.loss = loss
                start.factors = tuple([F[row, ...] for F in factors])
            if can_converge:
                reference = loss if config.relative_to_loss else scale
                # A decrease below the resolution of the factors is rounding.
                smallest = max(config.tol * reference, resolution * scale)
                start.converged = recent_decrease(start.history) <= smallest
        # Abandon starts that are unlikely to beat the best.
        if pruning is not None:
            promising = pruning.still_promising(running)
            for row, start in enumerate(running):
                start.pruned = not (promising[row] or start.converged)
        goes_on = np.array([not (one.converged or one.pruned) for one in running])
        running = list(compress(running, goes_on))
        if iteration == config.max_iter or not running or is_cancelled():
            break
        factors, losses = steps.send(None if goes_on.all() else goes_on)
    steps.close()
    for start in solutions:
        start.history = np.array(start.history)
        start.factors = tuple(map(to_numpy, start.factors))
    return solutions


def keep_starts(keep, *arrays):
    """Return the arrays restricted to the starts that continue."""
    if keep is None:
        return arrays
    return tuple(map(take_starts, arrays, repeat(keep)))


def per_start(values, like):
    """Return one value per start that multiplies (n_starts, n, k) without changing its dtype."""
    return asarray_like(values[:, None, None], like, like.dtype)


def best_first(solutions, rank=loss_of):
    """Return solutions in order of their figures; if figures tie, the earliest comes first.

    Figures that differ only by rounding tie. Their factors can differ, as those of a factorization
    into three factors, which can rotate. Abandoned solutions come last.

    Parameters
    ----------
    solutions : sequence of Solution
    rank : callable
        Returns the figure by which solutions are ranked; the smallest is the best.

    Returns
    -------
    list of Solution
    """
    figures = np.array([np.inf if one.pruned else rank(one) for one in solutions])
    lowest = figures.min()
    resolution = np.finfo(solutions[0].factors[0].dtype).eps
    highest_tie = lowest + max(_TIE, resolution) * abs(lowest)
    figures[figures <= highest_tie] = lowest
    return [solutions[i] for i in np.argsort(figures, kind="stable")]


def memory_of(memory):
    """Return a `joblib.Memory`, made from a path if necessary; None for None."""
    try:
        if memory == "":
            raise ValueError("pass '.' for the current folder, None to store nothing")
        return None if memory is None else check_memory(memory)
    except (OSError, ValueError) as error:
        wanted = "None or a folder that can be written to"
        raise ValueError(
            f"memory must be {wanted}, got {format_value(memory)}: {error}."
        ) from None


def _recall(cached, context, run, pruning, is_cancelled, batch):
    """Return the solutions of a batch from the disk, or compute and store them.

    So a fit that was interrupted continues where it stopped.
    """
    key = joblib.hash((context, batch))
    compute = partial(run, pruning, is_cancelled, batch)
    shelved = cached.call_and_shelve(key, compute)
    with suppress(Exception):  # reading a damaged file can raise any error
        found = shelved.get()
        shapes = [[array.shape for array in one.factors] for one in found]
        expected = [
            [(start.shape[0], start.size), (start.size, start.shape[1])]
            for start in batch
        ]
        if shapes == expected and all(isinstance(one, Solution) for one in found):
            return found
    warn(
        "The folder of memory holds a damaged run, which is computed again and replaced. Clear the "
        "folder if this recurs."
    )
    shelved.clear()
    return cached(key, compute)


def _call(key, compute):
    return compute()


def _content_of(value):
    """Return the contents of a value that determine a run, without its cached attributes."""
    if is_dataclass(value):
        contents = [_content_of(getattr(value, field.name)) for field in fields(value)]
        return type(value).__name__, contents
    if isinstance(value, partial):
        return _content_of(value.func), [_content_of(part) for part in value.args]
    if callable(value):
        return value.__module__, value.__qualname__
    return csr_arrays(value)
