"""Run by the interpreter that has `tensorly`, see `peer_worker`."""

import time

import numpy as np
from peer_worker import serve
from tensorly import decomposition
from tensorly.cp_tensor import CPTensor


def factorize(arrays, n_updates, name, seed):
    """Return the seconds of one update, then the relative error after each."""
    tensor = arrays["W"][:, :, None] * arrays["H"][:, None, :]
    start = CPTensor((None, [np.array(arrays[part]) for part in "ABC"]))
    options = {"tol": -1.0, "cvg_criterion": "rec_error", "return_errors": True}  # never stops
    solve = getattr(decomposition, name)
    began = time.perf_counter()
    _, errors = solve(tensor, start.rank, n_iter_max=n_updates, init=start, **options)
    return np.array([(time.perf_counter() - began) / n_updates, *map(float, errors)])


if __name__ == "__main__":
    serve(factorize)
