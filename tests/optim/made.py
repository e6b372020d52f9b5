"""A solver of made-up loss sequences, and runs of it."""

import numpy as np
from internals import SolverConfig, iterate, loss_of, run_starts


class Made:
    """A solver that yields the given losses; its factor holds (start, number of updates)."""

    def __init__(self, *losses, dtype=np.float64):
        self.losses, self.dtype, self.masks, self.closed = losses, dtype, [], False

    def steps(self):
        running = np.arange(len(self.losses))
        iteration = 0
        try:
            while True:
                factor = np.array([[[s, iteration]] for s in running], dtype=self.dtype)
                keep = yield (
                    (factor,),
                    np.array([self.losses[s][iteration] for s in running]),
                )
                self.masks.append(keep)
                if keep is not None:
                    running = running[keep]
                iteration += 1
        finally:
            self.closed = True


def run(made, scale=1.0, is_cancelled=bool, **options):
    options = {"max_iter": 100, "tol": 0.1, "min_iter": 0} | options
    return iterate(made.steps(), config(None, **options), scale, is_cancelled)


def run_all(objective, starts, solver, n_jobs=None, rank=loss_of, **options):
    """Run a solver from starts, with options of its configuration."""
    return run_starts(
        objective, starts, config(solver, n_jobs, **options), "toys", rank=rank
    )


def config(solver, n_jobs=None, **options):
    options = {"max_iter": 3, "tol": -1.0} | options
    return SolverConfig(n_clusters=1, solver=solver, n_init=1, n_jobs=n_jobs, **options)
