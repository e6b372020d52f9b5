"""Run a solver from several starts: in batches, with early stopping, in threads or on a cluster.

A solver is a generator: it yields ``(factors, loss)`` for a batch of starts, whose axis comes
first, and updates them when it is resumed. It is resumed with None, or with a boolean mask of the
starts to go on with. It knows nothing of `max_iter`, `tol`, seeds, printing or warnings.
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

# Number of updates over which the loss must have fallen by tol.
WINDOW = 10
# Difference of two losses, relative to the loss of zero factors, below which a start is not
# abandoned: starts that are so close can still change places.
_CLOSE = 1e-3
# Relative difference of two figures that is a tie: rounding depends on where arrays lie in memory,
# and must not choose the best start.
_TIE = 1e-9
# Loss, relative to that of zero factors, below which it need not fall further.
_FLOOR = 1e-10
# Number of updates before a random start can be compared with others by another figure than its
# loss.
_COMPARED_AFTER = 3 * WINDOW
# Largest number of starts in one batch: a wider product gains little more.
_BATCH = 8
# The same where all starts run to their end: 20 runs are then as much work for 2 or 4 threads.
_BATCH_WITHOUT_PRUNING = 5
# Largest size of the starting factors of a batch in bytes (256 MiB): memory grows with it, speed
# does not.
_BATCH_BYTES = 2**28


@dataclass(frozen=True)
class SolverConfig:
    """How an estimator runs its solver, and when a run ends.

    A run has converged when its loss fell by less than ``tol * scale``, or `tol` times itself,
    over the last ten updates; the scale is the loss of the zero factors.

    Attributes
    ----------
    n_clusters : int
    solver : callable
        Makes a solver's generator from an objective and starts.
    n_init : int
        Number of starts.
    max_iter : int
        Largest number of updates.
    tol : float
        Smallest relative decrease over ten updates that counts as progress. A negative `tol` runs
        all updates.
    n_jobs : int or None
        Number of threads that run batches of starts, unless a cluster does.
    relative_to_loss : bool, default=False
        Whether `tol` is relative to the loss itself, which may end near 0, and not to the scale.
    min_iter : int, default=20
        Smallest number of updates: a symmetric start can sit on a plateau at first.
    prune_from : int or None, default=20
        Number of updates after which a start can be abandoned because it is unlikely to beat the
        best; None where all runs are wanted, not only the best.
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
    """Return by how much the loss fell over the last ten updates."""
    return history[-1 - min(WINDOW, len(history) - 1)] - history[-1]


@dataclass
class Solution:
    """The state of one start while it runs, and its result in the end.

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
    """Return the loss of a solution; by default the one with the smallest is the best."""
    return solution.loss


@dataclass
class Pruning:
    """Abandons starts that are unlikely to beat the best one.

    By loss, a start is abandoned when it would stay above the lowest loss even after all the
    decrease that is still to be expected: that of a geometric sequence through the decreases over
    the last ten updates and the ten before. By another figure, starts are compared once with the
    best known figure, which by default is that of the very first start after as many updates, or
    fewer if it converged before.

    Attributes
    ----------
    begins : int
        Number of updates after which a start can be abandoned.
    scale : float
        Loss of the zero factors.
    rank : callable or None
        The figure; None for the loss.
    best : float
        The best figure so far, infinity before the first batch.
    """

    begins: int
    scale: float
    rank: Any
    best: float = np.inf

    def still_promising(self, running):
        """Return which starts go on; called after every update of a batch.

        Parameters
        ----------
        running : sequence of Solution
            The state of each start, in the order of the batch.

        Returns
        -------
        list of bool, one for each
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
        """Return whether a run may still get below the lowest loss."""
        history = solution.history
        if len(history) - 1 < max(self.begins, 2 * WINDOW):
            return True
        start, middle, end = history[-1 - 2 * WINDOW :: WINDOW]  # ten updates apart
        decrease = middle - end
        slowdown = (start - middle) - decrease
        # A run on a plateau, or close to the best, goes on.
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

    Starts are run in batches whose composition does not depend on `n_jobs`, so that the result is
    the same for any number of jobs. A start that is unlikely to be the best is abandoned: it is
    compared with the others of its batch and with the first batch, which runs before the rest.
    A negative `tol` asks for all updates.

    Parameters
    ----------
    objective : object
        Besides what the solver needs it has `constant`, the loss of the zero factors, by which a
        decrease is measured, and `wide`, whether several starts side by side are faster than one
        after the other. If it has `seen_by`, every start sees data of its own:
        ``seen_by(batch)`` is what the solver is given, and ``of_all(start, factors)`` are the
        factors of a start for all the data.
    starts : sequence of callable
        Each makes one starting factor; its randomness is drawn before.
    config : SolverConfig
    task : str
        What is run, for the log.
    rank : callable
        The figure by which solutions are compared: the smallest is best, the earliest of
        those that only rounding tells apart.
    to_beat : float, default=None
        The best figure of earlier starts. A start that is not below it when starts are compared
        is abandoned.
    memory : joblib.Memory, default=None
        Where solutions are kept, unless starts are abandoned.

    Returns
    -------
    list of Solution
    """
    batches = _batches(objective, starts, config, is_remembered=memory is not None)
    # Abandon starts where only the best is wanted and there is something to compare with.
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
    if memory is not None and pruning is None:  # a pruned run depends on all others
        # Solutions depend on these and on the starts; the former are hashed once.
        rules = replace(config, n_clusters=0, n_init=0, n_jobs=None)
        contents = (version("nmfcluster"), _content_of(objective), _content_of(rules))
        cached = memory.cache(_call, ignore=["compute"])
        run = partial(_recall, cached, joblib.hash(contents), run)
    with stage(
        f"{task}, {format_count(len(starts), 'start')}", len(batches)
    ) as progress:
        solutions: list = []
        # The first batch runs before the rest, which must beat it. A batch that runs alone runs
        # in this thread, which has others to share its blocks of rows with.
        n_alone = int(pruning is not None and to_beat is None)
        if len(batches) == n_alone + 1:
            n_alone += 1
        for batch in batches[:n_alone]:
            solutions += run(pruning, never_cancelled, batch)
            progress.batch_done()
        # The rest run on a cluster, or in threads: processes would be sent the data with every
        # batch. Threads that still run when one has failed end with their next update.
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
    """Return False: a run that no other one can end."""
    return False


def _batches(objective, starts, config, is_remembered):
    """Return the starts in batches: several where one product serves them all."""
    sees_own_data = hasattr(objective, "seen_by")
    size = 1
    # Solutions of starts with data of their own are remembered one by one.
    if objective.wide and len(starts) > 1 and not (sees_own_data and is_remembered):
        first = starts[0]()  # made here for its size
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
    """Run a batch in a thread, or on a machine of a cluster, with numbers handled as in a fit."""
    # The fit has limited the threads of BLAS in its own process, and lifts that limit when it is
    # interrupted: a thread that still runs must not set it again.
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
        H = batch[0]()[None]  # a factor can be large: one alone is not copied
    else:
        H = np.stack([start() for start in batch])
    steps = config.solver(seen, H)
    solutions = iterate(steps, config, objective.constant, is_cancelled, pruning)
    if sees_own_data:
        for start, solution in zip(batch, solutions, strict=True):
            solution.factors = objective.of_all(start, solution.factors)
    if is_cancelled():
        raise InterruptedError("another batch of starts failed")  # not to be kept
    return solutions


def iterate(
    steps,
    config,
    scale,
    is_cancelled=never_cancelled,
    pruning=None,
):
    """Run a solver until every start has converged, is abandoned, or has had its updates.

    A start that has converged, or is abandoned, leaves the batch.

    Parameters
    ----------
    steps : generator
        The solver's.
    config : SolverConfig
    scale : float
        Loss of the zero factors, which decreases are relative to.
    is_cancelled : callable, default=never_cancelled
        Called after every update; the loop ends when it returns True. By default it never does.
    pruning : Pruning, default=None
        Decides which starts are abandoned; none by default.

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
    if config.relative_to_loss:
        resolution = max(resolution, _FLOOR)
    solutions = [Solution((), np.inf, [], False) for _ in losses]
    running = solutions
    for iteration in range(config.max_iter + 1):
        if not np.isfinite(losses).all():
            raise FloatingPointError(
                f"the loss is {losses.max()} after {iteration} updates."
            )
        # Record the losses, and the factors where they are the best of their start.
        can_converge = config.tol >= 0 and iteration >= max(config.min_iter, 1)
        for row, start in enumerate(running):
            loss = float(losses[row])
            start.history.append(loss)
            if loss < start.loss:
                start.loss = loss
                start.factors = tuple([F[row, ...] for F in factors])
            if can_converge:
                reference = loss if config.relative_to_loss else scale
                # A smaller decrease than the resolution of the factors is rounding.
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
    """Return the arrays restricted to the starts that go on."""
    if keep is None:
        return arrays
    return tuple(map(take_starts, arrays, repeat(keep)))


def per_start(values, like):
    """Return one value a start so that it multiplies (n_starts, n, k) without promoting it."""
    return asarray_like(values[:, None, None], like, like.dtype)


def best_first(solutions, rank=loss_of):
    """Return solutions in order; the earliest is the best of those that only rounding tells apart.

    Abandoned ones come last. Factors can differ where losses do not, as those of three factors do,
    which rotate.

    Parameters
    ----------
    solutions : sequence of Solution
    rank : callable
        The figure by which solutions are compared: the smallest is best.

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
    """Return a `joblib.Memory` for a folder, or as it is; None for None."""
    try:
        if memory == "":
            raise ValueError("'.' is the folder of now, and None keeps nothing")
        return None if memory is None else check_memory(memory)
    except (OSError, ValueError) as error:
        wanted = "a folder that can be written to"
        raise ValueError(
            f"memory must be {wanted}, got {format_value(memory)}: {error}."
        ) from None


def _recall(cached, context, run, pruning, is_cancelled, batch):
    """Return the solutions of a batch that are kept on disk, or compute and keep them.

    A fit that was stopped then goes on where it was.
    """
    key = joblib.hash((context, batch))
    compute = partial(run, pruning, is_cancelled, batch)
    shelved = cached.call_and_shelve(key, compute)
    with suppress(Exception):  # whatever reading a damaged file raises
        found = shelved.get()
        shapes = [[array.shape for array in one.factors] for one in found]
        expected = [
            [(start.shape[0], start.size), (start.size, start.shape[1])]
            for start in batch
        ]
        if shapes == expected and all(isinstance(one, Solution) for one in found):
            return found
    warn(
        "The folder of memory holds what is no run: it is made again, and kept instead."
    )
    shelved.clear()
    return cached(key, compute)


def _call(key, compute):
    return compute()


def _content_of(value):
    """Return what a value is made of, without what it has cached of itself."""
    if is_dataclass(value):
        contents = [_content_of(getattr(value, field.name)) for field in fields(value)]
        return type(value).__name__, contents
    if isinstance(value, partial):
        return _content_of(value.func), [_content_of(part) for part in value.args]
    if callable(value):
        return value.__module__, value.__qualname__
    return csr_arrays(value)
