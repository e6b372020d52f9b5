"""Seconds that each solver takes for many runs of NMF to reach the loss of scikit-learn's runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from nmfcluster._engine.stopping import Solution
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks import datasets, report
from benchmarks.datasets import expression
from benchmarks.methods import metacluster
from benchmarks.methods.plain_hals import plain_hals
from benchmarks.runner import Progress, interleaved
from nmfcluster.datasets import make_biclusters
from nmfcluster.meta.solvers import hals, multiplicative
from nmfcluster.meta.squares import MatrixObjective

N_JOBS = 2
OURS, SKLEARN = "ours", "scikit-learn, cd"
SOLVERS: dict[str, Callable[..., Any]] = {
    OURS: hals,
    "HALS, one sweep, no extrapolation": plain_hals,
    "mu": multiplicative,
}
OWN_STOP = "ours, to its own stop"
OWN_END = 1_000, 1e-4  # max_iter and tol of the estimator
TARGET, STRETCH = 1.7, 2.5  # times faster than scikit-learn
LONGEST = 300  # updates after which a solver counts as not reaching the loss
NOISE = 0.25  # of planted data: with it, runs end in several optima

Task = Callable[[int], tuple[float, np.ndarray]]

SUMMARIES: dict[str, Callable[..., Any]] = {"median": np.median, "mean": np.mean}


@dataclass(frozen=True)
class Case:
    """A table, and the starts of the runs on it."""

    name: str
    X: np.ndarray
    k: int
    starts: np.ndarray  # (n_runs, k, n + p)

    @property
    def objective(self) -> MatrixObjective:
        return MatrixObjective(self.X)


def make_case(name: str, X: np.ndarray, k: int, n_runs: int) -> Case:
    """Draw starts as the estimator does."""
    height = 2 * np.sqrt(X.mean(dtype=np.float64) / k)
    starts = np.random.default_rng(0).uniform(high=height, size=(n_runs, k, sum(X.shape)))
    return Case(name, X, k, starts.astype(X.dtype))


def cases(
    shapes: list[tuple[int, int]], k: int, n_runs: int, real: bool
) -> tuple[list[Case], dict[str, str]]:
    """Return planted and real tables in both dtypes, and the reasons why some are missing."""
    tables = {}
    for shape in shapes:
        X = make_biclusters(shape, k, noise=NOISE, random_state=0)[0]
        tables[f"planted, {shape[0]:,} x {shape[1]:,}"] = X
    names = [name for name in expression.PAPERS if "," not in name and real]
    available, skipped = datasets.available(names)
    tables |= {name: data.X for name, data in available.items()}
    made = [
        make_case(name, X.astype(dtype), k, n_runs)
        for name, X in tables.items()
        for dtype in (np.float64, np.float32)
    ]
    return made, skipped


def solve(case: Case, solver: Callable[..., Any], max_iter: int, tol: float) -> list[Solution]:
    """Run the solver from all starts, as the estimator does."""
    plan = metacluster.plan(case.k, solver, max_iter=max_iter, tol=tol, n_jobs=N_JOBS)
    plan = plan.stopping(race_from=None)  # each is a member of the ensemble
    starts = [partial(np.asarray, start) for start in case.starts]
    with threadpool_limits(limits=1, user_api="blas"):
        return plan.run(case.objective, starts, case.name)


def sklearn_run(X: np.ndarray, start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Run scikit-learn's NMF with its defaults from a start."""
    W, H = np.ascontiguousarray(start[:, : len(X)].T), start[:, len(X) :].copy()
    model = NMF(len(start), solver="cd", init="custom")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit_transform(X, W=W, H=H), model.components_


def losses(case: Case, factors: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return ``|X - WH|^2 / |X|^2`` of the runs, in float64."""
    X = case.X.astype(np.float64)
    size, squares = float(np.vdot(X, X)), []
    for W, H in factors:
        W, H = W.astype(np.float64), H.astype(np.float64)
        squares.append(size - 2 * np.vdot(X @ H.T, W) + np.vdot(W.T @ W, H @ H.T))
    return np.array(squares) / size


def time_sklearn(case: Case, prefer: str, repeat: int) -> tuple[float, np.ndarray]:
    """Return seconds and losses of scikit-learn's runs, in as many jobs as ours."""
    with threadpool_limits(limits=1, user_api="blas"):
        began = perf_counter()
        factors = Parallel(n_jobs=N_JOBS, prefer=prefer)(
            delayed(sklearn_run)(case.X, start) for start in case.starts
        )
        return perf_counter() - began, losses(case, factors)


def time_ours(
    case: Case, solver: Callable[..., Any], max_iter: int, tol: float, repeat: int
) -> tuple[float, np.ndarray]:
    """Return seconds and losses of our runs."""
    began = perf_counter()
    solutions = solve(case, solver, max_iter, tol)
    return perf_counter() - began, losses(case, [s.factors for s in solutions])


def updates_to(
    case: Case,
    solver: Callable[..., Any],
    targets: dict[str, float],
    longest: int = LONGEST,
) -> dict[str, int | None]:
    """Return the number of updates until the median, or mean, loss of the runs is at a target."""
    n_updates = 64
    while True:
        solutions = solve(case, solver, n_updates, -1)
        lowest = [np.minimum.accumulate(s.history) for s in solutions]
        needed: dict[str, int | None] = {}
        for name, target in targets.items():
            curve = SUMMARIES[name](lowest, axis=0) / case.objective.constant
            reached = np.flatnonzero(curve <= target)
            needed[name] = int(reached[0]) if len(reached) else None
        if None not in needed.values() or n_updates >= longest:
            return needed
        n_updates = min(4 * n_updates, longest)


def measure(
    case: Case, repeats: int, progress: Progress, longest: int = LONGEST
) -> list[report.Row]:
    """Return a row for every solver; "times faster" is scikit-learn's time over its own."""
    prefer = {SKLEARN: "processes", f"{SKLEARN}, in threads": "threads"}
    # this also starts the processes of joblib, before any time is taken
    theirs = time_sklearn(case, "processes", 0)[1]
    targets = {name: float(summary(theirs)) for name, summary in SUMMARIES.items()}
    tasks: dict[Any, Task] = {
        (name, None): partial(time_sklearn, case, how) for name, how in prefer.items()
    }
    needed: dict[Any, int | None] = {}
    for name, solver in SOLVERS.items():
        for which, updates in updates_to(case, solver, targets, longest).items():
            needed[name, which] = updates
            if updates is None:
                progress.done += repeats  # steps that it skips
            else:
                tasks[name, which] = partial(time_ours, case, solver, updates, -1)
    tasks[OWN_STOP, None] = partial(time_ours, case, hals, *OWN_END)
    runs = interleaved(tasks, repeats, progress)
    seconds = {key: float(np.median([one[0] for one in own])) for key, own in runs.items()}
    shortest = min(seconds[name, None] for name in prefer)
    about = {"table": case.name, "dtype": case.X.dtype.name}
    rows = []
    for name, which in (*tasks, *(key for key, updates in needed.items() if updates is None)):
        row: report.Row = about | {"runs by": name, "to their": which}
        row["updates"] = needed.get((name, which))
        if (name, which) in runs:
            own = runs[name, which]
            spread = [one[0] for one in own]
            row |= {
                "times faster": shortest / seconds[name, which],
                "than processes": seconds[SKLEARN, None] / seconds[name, which],
                "s": seconds[name, which],
                "s, range": f"{report.cell(min(spread))} to {report.cell(max(spread))}",
            }
            row |= {f"{s} loss": f"{f(own[0][1]):.6f}" for s, f in SUMMARIES.items()}
        rows.append(row)
    return rows


def n_steps(repeats: int) -> int:
    return repeats * (3 + len(SUMMARIES) * len(SOLVERS))


def optima(case: Case) -> report.Row:
    """Return the best and worst loss of our runs, and how many come near the best."""
    losses = np.array([s.loss for s in solve(case, hals, *OWN_END)]) / case.objective.constant
    best = losses.min()
    return {
        "table": case.name,
        "dtype": case.X.dtype.name,
        "runs": len(losses),
        "best loss": f"{best:.6f}",
        "worst": f"{losses.max():.6f}",
        "within 1e-3 of the best": int((losses <= best * 1.001 + 1e-9).sum()),
    }


def verdicts(rows: list[report.Row]) -> list[str]:
    told = []
    for row in rows:
        if row["runs by"] != OURS:
            continue
        about = f"{row['table']}, {row['dtype']}: the {row['to their']} loss of scikit-learn's runs"
        if "times faster" not in row:
            told.append(f"{about} is not reached by ours: missed.")
            continue
        faster = row["times faster"]
        met = "met" if faster >= TARGET else "missed"
        met += ", the stretch too" if faster >= STRETCH else ""
        told.append(
            f"{about} is reached by ours {faster:.2f} times as fast (target: {TARGET:g}, stretch: "
            f"{STRETCH:g}): {met}."
        )
    return told


def draw(rows: list[report.Row], ax: Any) -> None:
    names = list(dict.fromkeys((row["table"], row["dtype"]) for row in rows))[::-1]
    for colour, solver in enumerate(SOLVERS):
        own = {
            (r["table"], r["dtype"]): r.get("times faster")
            for r in rows
            if (r["runs by"], r["to their"]) == (solver, "median")
        }
        places = np.arange(len(names)) + 0.25 * (1 - colour)
        ax.barh(places, [own[n] or 0 for n in names], height=0.25, label=solver)
    labels = [f"{table}\n{dtype}" for table, dtype in names]
    ax.set(yticks=range(len(names)), yticklabels=labels, xlabel="times faster, to the median loss")
    ax.axvline(TARGET, color="k", ls=":", lw=0.8)
    ax.axvline(1, color="k", lw=0.8)
    ax.legend(fontsize="small")
