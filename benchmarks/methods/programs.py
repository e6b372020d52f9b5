"""Methods that find programs in counts: NMFMetaCluster, and scikit-learn's best of many runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks.methods import metacluster, nmf_runs, no_reason
from nmfcluster import NMFMetaCluster
from nmfcluster.model_selection import sweep_n_clusters

Find = Callable[[np.ndarray, Sequence[int], int], tuple[np.ndarray, np.ndarray, float]]

PROGRAMS, SIGNATURES = "programs", "signatures"  # kinds of tables
N_JOBS = 2  # cores that every method may use
KL = "kullback-leibler"
OURS = "ours, KL"
RUNS = nmf_runs.N_RUNS
PATIENT_KL = {"solver": "mu", "beta_loss": KL, "max_iter": 500}


@dataclass(frozen=True)
class Finder:
    """A method that writes counts as W H, the rows of H being programs.

    ``at_k(X, [k], seed)`` and ``by_choice(X, ks, seed)`` return W, H and the seconds that they
    took; the latter is None where a method makes no choice of the number. `rows_at_k` and
    `rows_by_choice` are the most rows that a call still ends with in minutes. `slow` ones take
    minutes whatever the size. ``reason()`` is empty where the method can run. `package` is that of
    another project, see `peer.PACKAGES`.
    """

    name: str
    at_k: Find
    by_choice: Find | None = None
    reason: Callable[[], str] = no_reason
    kinds: tuple[str, ...] = (PROGRAMS, SIGNATURES)
    rows_at_k: float = np.inf
    rows_by_choice: float = np.inf
    slow: bool = False
    package: str = ""


def _ours(
    X: np.ndarray, ks: Sequence[int], seed: int, **options: Any
) -> tuple[np.ndarray, np.ndarray, float]:
    began, [k] = perf_counter(), ks
    model = metacluster.fit(X, k, seed, n_jobs=N_JOBS, **options)
    return model.factor_, model.components_, perf_counter() - began


def by_our_choice(
    X: np.ndarray, ks: Sequence[int], seed: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the factorization whose number of programs `sweep_n_clusters` chooses."""
    began = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "The largest of the candidates")
        model = NMFMetaCluster(ks[0], loss=KL, random_state=seed)
        sweep = sweep_n_clusters(model, X, ks, n_jobs=N_JOBS, random_state=seed)
    best = sweep.best_estimator_
    return best.factor_, best.components_, perf_counter() - began


def _sklearn(
    X: np.ndarray, ks: Sequence[int], seed: int, **options: Any
) -> tuple[np.ndarray, np.ndarray, float]:
    began, [k] = perf_counter(), ks
    # one core for a job, as in our fit
    with threadpool_limits(limits=1, user_api="blas"):
        best = nmf_runs.run_many(X, k, RUNS, seed, N_JOBS, **options)[0]
    return best.W, best.H, perf_counter() - began


FINDERS = [
    Finder(OURS, partial(_ours, loss=KL), by_our_choice),
    Finder("ours, KL, runs see X", partial(_ours, loss=KL, resample=None)),
    Finder("ours, KL, poisson", partial(_ours, loss=KL, resample="poisson")),
    Finder("ours, Frobenius", _ours),
    Finder(f"sklearn, best of {RUNS}", partial(_sklearn, **nmf_runs.PATIENT)),
    Finder(f"sklearn KL, best of {RUNS}", partial(_sklearn, **PATIENT_KL)),
]
OWN = tuple(finder.name for finder in FINDERS if finder.name.startswith("ours"))
