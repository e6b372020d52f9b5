"""Run by the interpreter that has `SigProfilerExtractor`, see `peer_worker`."""

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.random import SeedSequence
from peer_worker import serve
from SigProfilerExtractor import sigpro

PROCESSES = 2
CHANGES = ("C>A", "C>G", "C>T", "T>A", "T>C", "T>G")
CHANNELS = [f"{a}[{change}]{b}" for change, a, b in product(CHANGES, "ACGT", "ACGT")]
OUT = Path("out")


def factorize(arrays, n_runs, name, seed):
    """Return W above H transposed: activities and signatures of the solution that it suggests."""
    X, ks = arrays["X"], arrays["candidates"].tolist()
    samples = [f"s{i}" for i in range(len(X))]
    table = pd.DataFrame(X.T.astype(int), index=CHANNELS, columns=samples)
    table.to_csv("table.txt", sep="\t", index_label="Mutation Types")
    # its own way to give a seed, a file, ends in a TypeError with NumPy 2.4
    sigpro.SeedSequence = lambda entropy=seed: SeedSequence(entropy)
    sigpro.sigProfilerExtractor(
        "matrix",
        str(OUT),
        str(Path("table.txt").resolve()),
        minimum_signatures=min(ks),
        maximum_signatures=max(ks),
        nmf_replicates=n_runs,
        cpu=PROCESSES,
        stop_after_extraction=True,
    )
    folder = OUT / "SBS96"
    tried = pd.read_csv(folder / "All_solutions_stat.csv", dtype=str)["Signatures"]
    [k] = ks if len(ks) == 1 else [int(k.strip("*")) for k in tried if "*" in k]
    solution = folder / "All_Solutions" / f"SBS96_{k}_Signatures"
    H = pd.read_csv(
        solution / f"Signatures/SBS96_S{k}_Signatures.txt", sep="\t", index_col=0
    )
    W = pd.read_csv(
        solution / f"Activities/SBS96_S{k}_NMF_Activities.txt", sep="\t", index_col=0
    )
    return np.concatenate([W.loc[samples].to_numpy(), H.loc[CHANNELS].to_numpy()])


if __name__ == "__main__":
    serve(factorize)
