"""Tables of counts whose programs are known, from easy to hard, and how well they are found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from scipy.special import xlogy

from benchmarks import report
from benchmarks.methods.programs import PROGRAMS, SIGNATURES
from nmfcluster.datasets import make_programs, make_signatures

FOUND = 0.9  # cosine from which a planted program counts as found
NEAR = 3  # candidates are up to so far from the number of planted programs
LEAST = 1.2e-7  # of a mean under a count, as in scikit-learn: one of 0 has a loss all the same
ROWS = 1024  # of the model that are formed at a time

FIGURES = {
    "found": "Programs found",
    "F1": "F1",
    "own found": "Programs found by their own part",
    "own F1": "F1 by their own part",
    "usage": "Correlation of usages",
    "KL": "Kullback-Leibler loss, over that of rank 1",
    "squares": "Squared error, over the sum of squares",
    "seconds": "Seconds",
}


@dataclass(frozen=True)
class Planted:
    """Counts, and the factors that they were drawn from."""

    X: np.ndarray  # (n, p), float64
    W: np.ndarray
    H: np.ndarray


@dataclass(frozen=True)
class Setting:
    """How a table is made; seeds draw it anew."""

    name: str
    kind: str
    n_samples: int
    k: int
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def candidates(self) -> range:
        return range(max(2, self.k - NEAR), self.k + NEAR + 1)

    def draw(self, seed: int) -> Planted:
        make = make_programs if self.kind == PROGRAMS else make_signatures
        sizes = {"n_programs" if self.kind == PROGRAMS else "n_signatures": self.k}
        X, W, H = make(self.n_samples, **sizes, **self.options, random_state=seed)
        return Planted(X.astype(float), W, H)


def _cells(
    n: int, p: int, k: int, depth: float, common: float, phi: float, two: float
) -> Setting:
    options = {"n_features": p, "depth": depth, "housekeeping": common}
    options |= {"dispersion": phi, "doublets": two}
    name = f"{k} programs, depth {depth:,g}, {common:g} common"
    return Setting(name, PROGRAMS, n, k, options)


def _genomes(n: int, k: int, noise: float, burden: float) -> Setting:
    name = f"{k} signatures, {n} samples, noise {noise:g}"
    return Setting(name, SIGNATURES, n, k, {"noise": noise, "burden": burden})


SETTINGS = (
    _cells(300, 1_000, 5, 5_000, 0.3, 0.1, 0),
    _cells(400, 1_000, 8, 350, 0.3, 0.1, 0),
    _cells(400, 1_000, 8, 1_000, 0.6, 0.2, 0.1),
    _cells(1_000, 2_000, 10, 1_000, 0.6, 0.1, 0),
    _cells(600, 1_000, 12, 350, 0.6, 0.1, 0.1),
    _cells(500, 1_000, 10, 2_000, 0.8, 0.1, 0),
    _cells(800, 1_500, 15, 500, 0.6, 0.5, 0.1),
    _cells(1_000, 2_000, 20, 200, 0.6, 0.2, 0.1),
    _genomes(100, 5, 0, 2_000),
    _genomes(100, 10, 0, 2_000),
    _genomes(200, 10, 0.05, 2_000),
    _genomes(50, 8, 0, 2_000),
    _genomes(200, 15, 0, 2_000),
    _genomes(100, 12, 0.1, 500),
    _genomes(300, 20, 0.05, 2_000),
    _genomes(500, 25, 0.1, 2_000),
)
TOY = (_cells(40, 60, 3, 500, 0.3, 0.1, 0), _genomes(30, 3, 0, 2_000))


def about(setting: Setting, planted: Planted) -> report.Row:
    like = cosines(planted.H, planted.H)[np.triu_indices(setting.k, 1)]
    told = setting.options
    return {
        "table": setting.name,
        "rows": len(planted.X),
        "columns": planted.X.shape[1],
        "counts a row, median": float(np.median(planted.X.sum(axis=1))),
        "entries above 0": float((planted.X > 0).mean()),
        "dispersion": told.get("dispersion"),
        "doublets": told.get("doublets"),
        "cosine of planted, mean": float(like.mean()),
        "largest": float(like.max()),
    }


def cosines(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Return the cosines of rows of A with rows of B, 0 for a row of zeros."""
    a, b = (np.linalg.norm(F, axis=1) for F in (A, B))
    scale = a[:, None] * b
    return np.divide(A @ B.T, scale, out=np.zeros_like(scale), where=scale > 0)


def scores(planted: Planted, W: np.ndarray, H: np.ndarray) -> dict[str, float]:
    """Return the figures of a factorization, W of shape (n, k) and H of (k, p).

    "own" figures compare what programs differ by: of planted and found ones, which sum to 1, the
    mean of the planted ones is taken away before.
    """
    W, H = W.astype(float), H.astype(float)
    shares = H / np.maximum(H.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    mean = planted.H.mean(axis=0)
    of_programs, own = (
        cosines(planted.H, shares),
        cosines(planted.H - mean, shares - mean),
    )
    rows, columns = linear_sum_assignment(-of_programs)
    usage = np.zeros(len(planted.H))
    for planted_row, found in zip(rows, columns, strict=True):
        usage[planted_row] = correlation(planted.W[:, planted_row], W[:, found])
    X = planted.X
    rank_one = kullback(X, X.sum(axis=1, keepdims=True), X.sum(axis=0)[None] / X.sum())
    return {
        "k": len(H),
        **_found(of_programs, ""),
        **_found(own, "own "),
        "usage": float(usage.mean()),
        "KL": kullback(X, W, H) / rank_one,
        "squares": float(((X - W @ H) ** 2).sum() / (X**2).sum()),
    }


def _found(cosine: np.ndarray, of: str) -> dict[str, float]:
    """Return the number of planted programs that are found, and F1, of a matching one to one."""
    found = int((cosine[linear_sum_assignment(-cosine)] >= FOUND).sum())
    return {f"{of}found": found, f"{of}F1": 2 * found / sum(cosine.shape)}


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Return Pearson's correlation, 0 for a column that does not vary."""
    a, b = a - a.mean(), b - b.mean()
    scale = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / scale) if scale > 0 else 0.0


def kullback(X: Any, W: np.ndarray, H: np.ndarray) -> float:
    """Return the generalised Kullback-Leibler divergence of X, dense or CSR, from W H."""
    W, H = W.astype(float), H.astype(float)
    loss = float(W.sum(axis=0) @ H.sum(axis=1) - X.sum())
    for first in range(0, X.shape[0], ROWS):
        x = X[first : first + ROWS]
        x = (x.toarray() if sp.issparse(x) else x).astype(float)
        loss += float(
            xlogy(x, x / np.maximum(W[first : first + ROWS] @ H, LEAST)).sum()
        )
    return loss
