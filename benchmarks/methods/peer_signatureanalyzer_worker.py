"""Run by the interpreter that has `signatureanalyzer`, see `peer_worker`."""

from collections import Counter

import numpy as np
import pandas as pd
from peer_worker import serve
from signatureanalyzer.bnmf import ardnmf

CHANNELS = 96  # features up to which a run starts with a program for each, its default
MOST = 50  # programs that it starts with beyond


def factorize(arrays, n_runs, name, seed):
    """Return W above H transposed; the package takes features as rows."""
    X = arrays["X"].astype(float)
    table = pd.DataFrame(X.T)
    start = None if X.shape[1] <= CHANNELS else MOST
    np.random.seed(seed)  # noqa: NPY002, there is no other way in
    runs = [ardnmf(table, K0=start, verbose=False) for _ in range(n_runs)]
    sizes = sorted(run["Wraw"].shape[1] for run in runs)
    usual = Counter(sizes).most_common(1)[0][0]  # the smallest of equals
    alike = [run for run in runs if run["Wraw"].shape[1] == usual]
    best = min(alike, key=lambda run: run["objective"])
    H = best["Wraw"].reindex(table.index).fillna(0)
    return np.concatenate([best["Hraw"].to_numpy().T, H.to_numpy()])


if __name__ == "__main__":
    serve(factorize)
