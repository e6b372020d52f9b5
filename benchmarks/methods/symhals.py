"""Symmetric HALS (Zhu et al., NeurIPS 2018), as a solver in the package's protocol."""

from __future__ import annotations

import numpy as np
from nmfcluster._engine.run import Steps, kept, per_start

from nmfcluster._engine.symmetric import SymmetricObjective


def symmetric_hals(objective: SymmetricObjective, H: np.ndarray) -> Steps:
    r"""Minimise ``|A - X H'|^2 + lambda |X - H|^2`` column by column, X and H in turn.

    lambda never falls below half of the largest eigenvalue of H'H. An update sweeps over the
    columns of X, then of H; in the end they are equal. H and its loss are yielded.
    """
    now = objective.rescaled(objective.evaluate(H))
    X, weight = now.H, np.zeros(len(H))
    while True:
        keep = yield (now.H,), now.loss
        now = now.kept(keep)
        X, weight = kept(keep, X, weight)
        largest = np.linalg.norm(now.H.mT @ now.H, ord=2, axis=(1, 2))
        weight = np.maximum(weight, largest / 2)
        X = _sweep(now.AH, X, now.H, weight)
        now = objective.evaluate(_sweep(objective.A @ X, now.H, X, weight))


def _sweep(P: np.ndarray, X: np.ndarray, H: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return X with each column updated in turn, for a fixed H and P = AH."""
    X, G = X.copy(), H.mT @ H
    P = P + per_start(weight, H) * H
    for c in range(X.shape[-1]):
        own = G[:, c, c, None]
        rest = np.einsum("snk,sk->sn", X, G[:, :, c]) - X[:, :, c] * own
        X[:, :, c] = np.maximum(P[:, :, c] - rest, 0) / (own + weight[:, None])
    return X
