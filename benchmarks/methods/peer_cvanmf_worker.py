"""Run by the interpreter that has `cvanmf`, see `peer_worker`."""

import itertools

import numpy as np
import pandas as pd
from cvanmf import denovo
from peer_worker import serve

SHUFFLES = 10  # of its bi-cross-validation: the default of 100 takes ten times as long


def batched(items, n):
    """Yield n items at a time: cvanmf needs it of Python 3.12."""
    items = iter(items)
    while batch := tuple(itertools.islice(items, n)):
        yield batch


def factorize(arrays, n_runs, name, seed):
    """Return W above H transposed; the package takes features as rows."""
    X, ks = arrays["X"].astype(float), arrays["candidates"].tolist()
    used = np.flatnonzero(X.any(axis=0))
    table = pd.DataFrame(X[:, used].T)
    table.index, table.columns = table.index.map(str), table.columns.map(str)
    k = ks[0] if len(ks) == 1 else elbow(table, ks, seed)
    if k is None:
        return None
    options = {"random_starts": n_runs, "seed": seed, "progress_bar": False}
    best = denovo.decompositions(table, [k], **options)[k][0]
    H = np.zeros((k, X.shape[1]))
    H[:, used] = best.w.to_numpy().T
    return np.concatenate([best.h.to_numpy().T, H.T])


def elbow(table, ks, seed):
    """Return the number of programs that it suggests, None if there is no elbow."""
    if not hasattr(itertools, "batched"):
        itertools.batched = batched
    validated = denovo.rank_selection(
        table, ks, shuffles=SHUFFLES, seed=seed, progress_bar=False
    )
    k = denovo.suggest_rank(validated)["cosine_similarity"]
    return None if k is None or np.isnan(k) else int(k)


if __name__ == "__main__":
    serve(factorize)
