"""Do runs that start with a few updates of least squares end as differently as others do?"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from threadpoolctl import threadpool_limits

from benchmarks import report
from benchmarks.methods import metacluster, nmf_runs
from benchmarks.methods.programs import KL, N_JOBS, PATIENT_KL
from benchmarks.questions._programs_data import FOUND, Setting, cosines, kullback
from nmfcluster.meta.divergence import Divergence, em
from nmfcluster.meta.runs import run_many

Factors = tuple[np.ndarray, np.ndarray]  # W and H

OURS, SKLEARN = "ours, warm starts", "scikit-learn, random starts"


def compare(setting: Setting, n_runs: int, progress: Any) -> list[report.Row]:
    """Return a row for our runs, and one for scikit-learn's, on the first table of a setting."""
    X, rows = setting.draw(0).X, []
    for name, make in ((OURS, ours), (SKLEARN, sklearn)):
        runs = make(X, setting.k, n_runs)
        rows.append({"table": setting.name, "runs by": name, "runs": n_runs} | told(X, runs))
        progress.step(f"{setting.name}, runs of {name}")
    return rows


def ours(X: np.ndarray, k: int, n_runs: int) -> list[Factors]:
    """Return the runs of a fit with the loss of counts."""
    plan = metacluster.plan(k, em, n_jobs=N_JOBS, loss=KL)
    sizes, rng = np.full(n_runs, k), np.random.RandomState(0)
    with threadpool_limits(limits=1, user_api="blas"):
        found = run_many(Divergence(X).for_runs(), plan, sizes, rng)
    return [(found.W[own].T, found.H[own]) for own in found.slices()]


def sklearn(X: np.ndarray, k: int, n_runs: int) -> list[Factors]:
    with threadpool_limits(limits=1, user_api="blas"):
        runs = nmf_runs.run_many(X, k, n_runs, 0, N_JOBS, **PATIENT_KL)
    return [(run.W, run.H) for run in runs]


def told(X: np.ndarray, runs: list[Factors]) -> dict[str, Any]:
    """Return how alike the components of two runs are, and how far losses are apart."""
    losses = np.array([kullback(X, W, H) for W, H in runs])
    alike = np.concatenate([joint(a, b) for a, b in combinations(runs, 2)])
    return {
        "joint cosine, mean over pairs": f"{alike.mean():.4f}",
        f"components below {FOUND:g}": f"{(alike < FOUND).mean():.3f}",
        "best loss": f"{losses.min():.1f}",
        "worst, % above": float(100 * (losses.max() / losses.min() - 1)),
        "median, % above": float(100 * (np.median(losses) / losses.min() - 1)),
    }


def joint(a: Factors, b: Factors) -> np.ndarray:
    """Return the cosines of the components of two runs, rows and columns at once, matched."""
    cosine = cosines(a[0].T, b[0].T) * cosines(a[1], b[1])
    return cosine[linear_sum_assignment(-cosine)]
