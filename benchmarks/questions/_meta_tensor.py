"""Positive tensor factorization: its time beside the dense one's, and its starts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from time import perf_counter
from typing import Any

import numpy as np
from nmfcluster._engine.run import iterate
from nmfcluster._engine.stopping import Solution, StopRule
from threadpoolctl import threadpool_limits

from benchmarks import report
from benchmarks.methods import metacluster, peer_tensorly
from benchmarks.runner import Progress, interleaved
from nmfcluster.datasets import make_biclusters
from nmfcluster.meta.metaclusters import Metaclusters, lifted_start, refine
from nmfcluster.meta.runs import Runs, run_many
from nmfcluster.meta.solvers import RunsObjective, tensor_hals
from nmfcluster.meta.squares import MatrixObjective
from nmfcluster.metrics import overlap_match

OURS = "ours"
TARGET = 200.0  # times faster than tensorly
NOISE = 0.25  # of planted data, as for the runs
NEAR = 1.001  # times an error or loss: what is below counts as equal
STARTS = ("from a run", "random")
N_INIT = 5  # of the estimator


@dataclass(frozen=True)
class End:
    """The loss at which a start ends, and match and relative error after the final NMF."""

    loss: float
    match: float
    error: float


def make_runs(shape: tuple[int, int], k: int, n_runs: int, dtype: Any) -> Runs:
    """Return runs on planted data, whose clusters are to be clustered."""
    X = make_biclusters(shape, k, noise=NOISE, random_state=0)[0].astype(dtype)
    plan = metacluster.plan(k, max_iter=100)
    with threadpool_limits(limits=1, user_api="blas"):
        return run_many(MatrixObjective(X), plan, np.full(n_runs, k), np.random.RandomState(0))


def first_start(runs: Runs, k: int, run: int = 0) -> np.ndarray:
    """Return the start that the estimator makes from a run."""
    chosen = runs.start(run, k)
    return lifted_start(runs.W[chosen], runs.H[chosen])


def random_start(runs: Runs, k: int, rng: np.random.RandomState) -> np.ndarray:
    """Return a random start with entries of the size of the biclusters."""
    height = 2 * RunsObjective(runs.W, runs.H).constant ** (1 / 6)
    size = (k, runs.W.shape[1] + runs.H.shape[1])
    return rng.uniform(high=height, size=size).astype(runs.H.dtype)


def ours(runs: Runs, start: np.ndarray, max_iter: int, tol: float) -> tuple[float, Solution]:
    """Return the seconds and the solution of our factorization from one start."""
    objective = RunsObjective(runs.W, runs.H)
    with threadpool_limits(limits=1, user_api="blas"):
        began = perf_counter()
        stop = StopRule(max_iter, tol, of_loss=True)
        [end] = iterate(partial(tensor_hals, objective, start[None]), stop, objective.constant)
        return perf_counter() - began, end


def compare(
    shape: tuple[int, int],
    k: int,
    n_runs: int,
    n_updates: int,
    repeats: int,
    dtype: Any,
    progress: Progress,
) -> list[report.Row]:
    """Return the time of an update, and to a relative error, of ours and tensorly's solvers."""
    runs = make_runs(shape, k, n_runs, dtype)
    objective = RunsObjective(runs.W, runs.H)
    start = random_start(
        runs, k, np.random.RandomState(0)
    )  # a start from a run would reach the error at once
    factors = next(tensor_hals(objective, start[None]))[0]
    A, B, C = (np.ascontiguousarray(F) for F in (factors[0][0], factors[1][0], factors[2][0].T))

    def error(loss: float) -> float:
        return float(np.sqrt(max(loss, 0) / objective.constant))

    def of_ours(repeat: int) -> tuple[float, np.ndarray]:
        seconds, end = ours(runs, start, n_updates, -1)
        return seconds / n_updates, np.array([error(loss) for loss in end.history[1:]])

    tasks: dict[str, Any] = {OURS: of_ours}
    if not peer_tensorly.reason():
        for name in peer_tensorly.SOLVERS:
            tasks[name] = lambda repeat, name=name: peer_tensorly.factorize(
                runs, (A, B, C), name, n_updates
            )
    results = interleaved(tasks, repeats, progress)
    whole = [ours(runs, start, 1_000, 1e-4) for _ in range(repeats)]
    end = whole[0][1]
    goal = NEAR * error(end.loss)
    about = {"biclusters": len(runs.H), "table": f"{shape[0]:,} x {shape[1]:,}", "k": k}
    about["dtype"] = np.dtype(dtype).name
    base = float(np.median([one[0] for one in results[OURS]]))
    rows = []
    for name, own in results.items():
        each = float(np.median([one[0] for one in own]))
        reached = np.flatnonzero(own[0][1] <= goal)
        updates = int(reached[0]) + 1 if len(reached) else None
        to_goal = {"updates to the error": f"more than {n_updates}"}
        if updates:
            to_goal = {"updates to the error": f"{updates}", "s to the error": each * updates}
        rows.append(
            about
            | {"factorization": name, "times slower, an update": each / base, "ms": 1e3 * each}
            | {f"error after {n_updates}": f"{own[0][1][-1]:.6f}"}
            | to_goal
        )
    rows[0]["updates to the end"] = end.n_iter
    rows[0]["s to the end"] = float(np.median([seconds for seconds, _ in whole]))
    rows[0]["error at the end"] = f"{error(end.loss):.6f}"
    return rows


def starts(
    n_data: int, n_starts: int, noises: tuple[float, ...], progress: Progress
) -> list[report.Row]:
    """Return how many starts reach the best loss, and how good the chosen one is."""
    rows = []
    for noise in noises:
        for k, shape in ((4, (21, 35)), (8, (42, 70))):
            with threadpool_limits(limits=1, user_api="blas"):  # as in a fit of the estimator
                results = [_ends(shape, k, noise, n_starts, seed) for seed in range(n_data)]
            row: report.Row = {"table": f"{shape[0]} x {shape[1]}", "k": k, "noise": noise}
            best = np.array([min(end.loss for own in f.values() for end in own) for f in results])
            for kind in STARTS:
                losses = np.array([[end.loss for end in f[kind]] for f in results])
                hits = losses <= NEAR * best[:, None] + 1e-9
                row[f"reach the best, {kind}"] = f"{hits.mean():.1%}"
                row[f"one of {N_INIT} does, {kind}"] = f"{hits[:, :N_INIT].any(axis=1).mean():.0%}"
            for by in ("loss", "error"):
                chosen = [min(f[STARTS[0]][:N_INIT], key=attrgetter(by)) for f in results]
                for figure in ("match", "error"):
                    row[f"{figure} if chosen by {by}"] = float(
                        np.mean([getattr(end, figure) for end in chosen])
                    )
            rows.append(row)
            progress.step(f"starts, k = {k}, noise {noise:g}")
    return rows


def _ends(
    shape: tuple[int, int], k: int, noise: float, n_starts: int, seed: int
) -> dict[str, list[End]]:
    """Return the ends of the starts of both kinds, each with the final NMF from there."""
    X, _, planted = make_biclusters(shape, k, noise=noise, random_state=seed)
    objective, plan = MatrixObjective(X), metacluster.plan(k)
    rng = np.random.RandomState(seed)
    runs = run_many(objective, plan, np.full(max(10, n_starts), k), rng)
    scale = RunsObjective(runs.W, runs.H).constant

    def end(start: np.ndarray) -> End:
        reached = ours(runs, start, 2_000, 1e-8)[1]
        candidates = [Metaclusters(reached.factors[0], reached.factors[2])]
        W, H = refine(objective, plan, candidates, True)[1].best.factors
        error = objective.error(W, H) / np.linalg.norm(X)
        return End(reached.loss / scale, overlap_match(H, planted), float(error))

    return {
        "from a run": [end(first_start(runs, k, run)) for run in range(n_starts)],
        "random": [end(random_start(runs, k, rng)) for _ in range(n_starts)],
    }


def verdicts(rows: list[report.Row]) -> list[str]:
    told = []
    for row in rows:
        if row["factorization"] == OURS:
            continue
        slower = row["times slower, an update"]
        met = "met" if slower >= TARGET else "missed"
        told.append(
            f"PTF of {row['biclusters']} biclusters, {row['table']}: an update of "
            f"{row['factorization']} takes {slower:,.0f} times as long as ours "
            f"(target: {TARGET:g}): {met}."
        )
    return told


def draw(rows: list[report.Row], ax: Any) -> None:
    labels = [f"{row['factorization']}\n{row['table']}, {row['biclusters']}" for row in rows]
    ax.barh(labels, [row["ms"] for row in rows])
    ax.set(xscale="log", xlabel="ms an update of the tensor factorization")


def verdict_of_starts(rows: list[report.Row]) -> str:
    shares = {
        kind: np.mean([float(str(row[f"reach the best, {kind}"]).rstrip("%")) for row in rows])
        for kind in STARTS
    }
    told = " and ".join(f"{share:.0f} % {kind}" for kind, share in shares.items())
    return f"Starts of the tensor factorization that reach the best loss: {told}, on average."
