"""Seconds until runs with the loss of counts are where scikit-learn's runs end."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks import report
from benchmarks.methods import metacluster
from benchmarks.methods.programs import KL
from benchmarks.questions._programs_data import kullback
from benchmarks.runner import Progress, interleaved
from nmfcluster.meta.divergence import Divergence, em

OURS, OWN_STOP = "ours", "ours, to its own stop"
OWN_END = 1_000, 1e-4  # max_iter and tol of the estimator
DTYPES = (np.float64, np.float32)
TARGETS = {("dense", "float64"): 15.0, ("dense", "float32"): 5.0}
TARGETS |= {("sparse", dtype.__name__): 50.0 for dtype in DTYPES}  # times as fast
FAR = 100  # updates after which ours counts as not reaching a loss
SHAPE = 0.3, 0.2  # of the gamma distributions of factors, dense and sparse: most are small

Factors = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A table of counts, dense or CSR, and the number of programs of a run."""

    name: str
    X: Any
    k: int
    n_updates: int  # of scikit-learn

    @property
    def kind(self) -> str:
        return "sparse" if sp.issparse(self.X) else "dense"

    def start(self, seed: int) -> np.ndarray:
        """Return W transposed and H side by side, drawn as the estimator does."""
        high = 2 * np.sqrt(self.X.mean() / self.k)
        return np.random.RandomState(seed).uniform(high=high, size=(self.k, sum(self.X.shape)))


def dense(shape: tuple[int, int], k: int, n_updates: int) -> Case:
    """Return counts of mean 2."""
    rng = np.random.default_rng(0)
    W, H = (rng.gamma(SHAPE[0], size=size) for size in ((shape[0], k), (k, shape[1])))
    means = W @ H
    X = rng.poisson(means * (2 / means.mean())).astype(float)
    return Case(f"dense, {shape[0]:,} x {shape[1]:,}, k = {k}", X, k, n_updates)


def sparse(shape: tuple[int, int], k: int, share: float, n_updates: int) -> Case:
    X = sparse_counts(shape, k, share)
    name = f"sparse, {shape[0]:,} x {shape[1]:,}, {share:.0%} above 0, k = {k}"
    return Case(name, X, k, n_updates)


def sparse_counts(shape: tuple[int, int], k: int, share: float, block: int = 2_000) -> Any:
    """Return a CSR table of counts, of which about this share are above 0; drawn by rows."""
    rng = np.random.default_rng(0)
    W, H = (rng.gamma(SHAPE[1], size=size) for size in ((shape[0], k), (k, shape[1])))
    level = _level(W[:block] @ H, share)
    parts = [
        sp.csr_array(rng.poisson(level * (W[first : first + block] @ H)).astype(float))
        for first in range(0, shape[0], block)
    ]
    X = sp.csr_array(sp.vstack(parts))
    X.indices, X.indptr = (part.astype(np.int32) for part in (X.indices, X.indptr))
    return X


def _level(means: np.ndarray, share: float) -> float:
    """Return what means are multiplied by so that a share of Poisson counts is above 0."""
    low, high = 1e-6 / means.mean(), 10 / means.mean()
    for _ in range(40):
        middle = np.sqrt(low * high)
        if (1 - np.exp(-middle * means)).mean() > share:
            high = middle
        else:
            low = middle
    return float(low)


def sklearn_run(case: Case, dtype: Any, seed: int) -> tuple[float, float]:
    """Return seconds and loss of multiplicative updates."""
    F, X, n = case.start(seed).astype(dtype), case.X.astype(dtype), case.X.shape[0]
    W, H = np.ascontiguousarray(F[:, :n].T), F[:, n:].copy()
    options = {"init": "custom", "solver": "mu", "beta_loss": KL, "tol": 0}
    model = NMF(case.k, max_iter=case.n_updates, **options)
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)
        began = perf_counter()
        W = model.fit_transform(X, W=W, H=H)
        seconds = perf_counter() - began
    return seconds, kullback(case.X, W, model.components_)


def our_run(case: Case, seed: int, max_iter: int, tol: float) -> tuple[float, Factors, np.ndarray]:
    """Return seconds, factors and losses by update of a run of the estimator, in float32."""
    plan = metacluster.plan(case.k, em, loss=KL, max_iter=max_iter, tol=tol, n_jobs=1)
    start = case.start(seed).astype(np.float32)
    objective = Divergence(case.X.astype(np.float32))
    with threadpool_limits(limits=1):
        began = perf_counter()
        [end] = plan.run(objective, [partial(np.asarray, start)], case.name)
        seconds = perf_counter() - began
    return seconds, end.factors, end.history


def updates_to(case: Case, seed: int, loss: float) -> int | None:
    """Return the updates that bring a run to a loss, as float64 has it."""
    history = our_run(case, seed, FAR, -1)[2]
    for n_updates in np.flatnonzero(history <= loss).tolist():
        if kullback(case.X, *our_run(case, seed, n_updates, -1)[1]) <= loss:
            return n_updates
    return None


def measure(case: Case, repeats: int, progress: Progress) -> list[report.Row]:
    """Return a row for each dtype of scikit-learn; every repeat has another start."""
    losses: dict[tuple[str, int], float] = {}

    def theirs(dtype: Any, seed: int) -> float:
        seconds, losses[dtype.__name__, seed] = sklearn_run(case, dtype, seed)
        return seconds

    def to(dtype: Any, seed: int) -> tuple[float, int] | None:
        needed = updates_to(case, seed, losses[dtype.__name__, seed])
        return None if needed is None else (our_run(case, seed, needed, -1)[0], needed)

    tasks: dict[Any, Any] = {("theirs", d.__name__): partial(theirs, d) for d in DTYPES}
    tasks |= {("ours", d.__name__): partial(to, d) for d in DTYPES}
    tasks[OWN_STOP, ""] = partial(_to_own_stop, case)
    runs = interleaved(tasks, repeats, progress)
    rows = [_row(case, d.__name__, runs, losses) for d in DTYPES]
    seconds, ends = zip(*runs[OWN_STOP, ""], strict=True)
    at_best = [losses["float64", seed] for seed in range(repeats)]
    below = [1 - end / loss for end, loss in zip(ends, at_best, strict=True)]
    row = {"table": case.name, "beside": OWN_STOP}
    return [*rows, row | {"s, ours": float(np.median(seconds)), "% below": 100 * np.median(below)}]


def n_steps(repeats: int) -> int:
    return repeats * (2 * len(DTYPES) + 1)


def _to_own_stop(case: Case, seed: int) -> tuple[float, float]:
    seconds, end, _ = our_run(case, seed, *OWN_END)
    return seconds, kullback(case.X, *end)


def _row(
    case: Case, dtype: str, runs: dict[Any, Any], losses: dict[tuple[str, int], float]
) -> report.Row:
    pairs = list(zip(runs["theirs", dtype], runs["ours", dtype], strict=True))
    there = [(seconds, own) for seconds, own in pairs if own is not None]
    row: report.Row = {"table": case.name, "beside": dtype}
    row |= {"starts": len(pairs), "reached by": len(there)}
    if there:
        ratios = [seconds / own[0] for seconds, own in there]
        row |= {
            "times faster": float(np.median(ratios)),
            "range": f"{report.cell(min(ratios))} to {report.cell(max(ratios))}",
            "s, scikit-learn": float(np.median([seconds for seconds, _ in there])),
            "s, ours": float(np.median([own[0] for _, own in there])),
            "updates": float(np.median([own[1] for _, own in there])),
            "target": TARGETS[case.kind, dtype],
        }
    own = [loss for (name, _), loss in losses.items() if name == dtype]
    return row | {"loss": f"{np.median(own):.1f}"}


def verdicts(rows: list[report.Row]) -> list[str]:
    told = []
    for row in rows:
        if row["beside"] == OWN_STOP:
            continue
        about = f"{row['table']}, to where scikit-learn's {row['beside']} ends"
        if row["reached by"] < row["starts"]:
            told.append(f"{about}: reached from {row['reached by']} of {row['starts']}: missed.")
            continue
        met = "met" if row["times faster"] >= row["target"] else "missed"
        told.append(
            f"{about}: {report.cell(row['times faster'])} times as fast (target: "
            f"{row['target']:g}): {met}."
        )
    return told
