"""Run by the interpreter that has `tensorly`, see `peer_worker`."""

import time

import numpy as np
from peer_worker import serve
from tensorly import decomposition
from tensorly.cp_tensor import CPTensor


def factorize(given, n_updates, name, seed):
    """Return seconds an update, then the relative error after each."""
    tensor = given["W"][:, :, None] * given["H"][:, None, :]
    start = CPTensor((None, [np.array(given[part]) for part in "ABC"]))
    options = {"tol": -1.0, "cvg_criterion": "rec_error", "return_errors": True}  # never stops
    solve = getattr(decomposition, name)
    began = time.perf_counter()
    _, errors = solve(tensor, start.rank, n_iter_max=n_updates, init=start, **options)
    return np.array([(time.perf_counter() - began) / n_updates, *map(float, errors)])


if __name__ == "__main__":
    serve(factorize)
