"""Plans, and a solver that notes its starts."""

import numpy as np
from internals import SolverConfig, bregman_nmf


def plan(
    n_clusters=3, solver=bregman_nmf, *, n_init=1, max_iter=500, tol=1e-6, n_jobs=None
):
    return SolverConfig(n_clusters, solver, n_init, max_iter, tol, n_jobs)


def noting_sizes(sizes):
    """Return a solver that notes of how many rows its factors are."""

    def solver(objective, H):
        sizes.append(H.shape[1])
        return bregman_nmf(objective, H)

    return solver


class Recorder:
    """A solver that goes nowhere and notes its starts."""

    def __init__(self, loss=lambda start: 0.0):
        self.starts, self.loss = [], loss

    def __call__(self, objective, H):
        numbers = range(len(self.starts), len(self.starts) + len(H))
        self.starts.extend(H)
        losses = np.array([float(self.loss(number)) for number in numbers])
        while True:
            keep = yield (H,), losses
            H, losses = (H, losses) if keep is None else (H[keep], losses[keep])
