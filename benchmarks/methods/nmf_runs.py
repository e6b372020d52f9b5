"""The best of many runs of scikit-learn's NMF from random starts."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import nnls
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning

from benchmarks.methods import FEATURES, Method, timed

N_RUNS = 20
PATIENT = {"max_iter": 1000}  # the default of 200 ends many runs early


@dataclass(frozen=True)
class NMFRun:
    """One run: ``X ~ WH``."""

    W: np.ndarray
    H: np.ndarray
    error: float

    @property
    def labels(self) -> np.ndarray:
        """The part with the largest weight in every row, for parts of length 1."""
        return strongest(self.W, self.H)


def strongest(W: np.ndarray, H: np.ndarray) -> np.ndarray:
    return (W * np.linalg.norm(H, axis=1)).argmax(axis=1)


def run(X: Any, k: int, seed: int, **options: Any) -> NMFRun:
    model = NMF(k, init="random", random_state=seed, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        W = model.fit_transform(X)
    return NMFRun(W, model.components_, float(model.reconstruction_err_))


def run_many(
    X: Any, k: int, n_runs: int, seed: int, n_jobs: int | None = None, **options: Any
) -> list[NMFRun]:
    """Make runs in `n_jobs` threads and return them, the best first."""
    seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=n_runs)
    tasks = (delayed(run)(X, k, int(own), **options) for own in seeds)
    runs = Parallel(n_jobs=n_jobs, prefer="threads")(tasks)
    return sorted(runs, key=lambda one: one.error)


def from_start(
    X: np.ndarray, W: np.ndarray, H: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return W and H of a run from these."""
    model = NMF(len(H), init="custom", **PATIENT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        W = model.fit_transform(X, W=W.astype(X.dtype), H=H.astype(X.dtype))
    return W, model.components_


def fitted_rows(X: np.ndarray, H: np.ndarray) -> np.ndarray:
    """Return the nonnegative least squares fit W to X with H fixed."""
    return np.stack([nnls(H.T, row)[0] for row in X])


def cluster(X: Any, extra: Any, k: int, seed: int) -> np.ndarray:
    return run_many(X, k, N_RUNS, seed, **PATIENT)[0].labels


METHODS = [Method(f"NMF, best of {N_RUNS}", timed(cluster), wants=FEATURES)]
