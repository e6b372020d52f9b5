"""NMF by hierarchical alternating least squares as published: one sweep, no extrapolation."""

from __future__ import annotations

import numpy as np
from nmfcluster._engine.run import Steps, kept

from nmfcluster._arrays.least_squares import descend
from nmfcluster.meta.squares import MatrixObjective


def plain_hals(objective: MatrixObjective, F: np.ndarray) -> Steps:
    """Minimise as `nmfcluster.meta.solvers.hals` does, without extrapolation and in one sweep."""
    W, H = objective.split(F)
    loss = objective.loss(objective.of_rows(W), H, W @ W.mT)
    while True:
        keep = yield (W.mT, H), loss
        W, H = kept(keep, W, H)
        W, H = W.copy(), H.copy()
        for problem in zip(H, objective.of_rows(W), W @ W.mT, strict=True):
            descend(*problem, 1)
        N, G = objective.of_columns(H), H @ H.mT
        for problem in zip(W, N, G, strict=True):
            descend(*problem, 1)
        loss = objective.loss(N, W, G)
