"""Symmetric HALS (Zhu et al., NeurIPS 2018), as a solver in the package's protocol."""

from __future__ import annotations

import numpy as np

from nmfcluster._engine.run import Steps, kept
from nmfcluster._engine.symmetric import SymmetricObjective, per_start


def symmetric_hals(objective: SymmetricObjective, H: np.ndarray) -> Steps:
    r"""Minimise ``|A - X H'|^2 + lambda |X - H|^2`` column by column, X and H in turn.

    lambda never falls below half of the largest eigenvalue of H'H. An update sweeps over the
    columns of both, which become equal; H and its loss are yielded, whose product is used again.
    """
    H, loss, P, _ = objective.rescaled(H)
    X, weight = H, np.zeros(len(H))
    while True:
        keep = yield (H,), loss
        X, H, P, weight = kept(keep, X, H, P, weight)
        largest = np.linalg.norm(H.mT @ H, ord=2, axis=(1, 2))
        weight = np.maximum(weight, largest / 2)
        X = _sweep(P, X, H, weight)
        H = _sweep(objective.A @ X, H, X, weight)
        loss, P, _ = objective.evaluate(H)


def _sweep(P: np.ndarray, X: np.ndarray, H: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Update each column of X for a fixed H, P = AH."""
    X, G = X.copy(), H.mT @ H
    P = P + per_start(weight, H) * H
    for c in range(X.shape[-1]):
        own = G[:, c, c, None]
        rest = np.einsum("snk,sk->sn", X, G[:, :, c]) - X[:, :, c] * own
        X[:, :, c] = np.maximum(P[:, :, c] - rest, 0) / (own + weight[:, None])
    return X
