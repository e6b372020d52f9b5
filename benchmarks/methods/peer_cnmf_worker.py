"""Run by the interpreter that has `cnmf`, see `peer_worker`."""

import sys

import anndata
import numpy as np
import pandas as pd
from peer_worker import serve

sys.path.pop(0)  # this folder, whose own module `cnmf` would be taken for the package
from cnmf import cNMF, load_df_from_npz

DENSITY = (
    0.5  # its default: mean distance to neighbours from which spectra are left out
)
ALL = 2.0  # the same, so that none is
WORKERS = 2
MILLION = 1e6  # counts of a cell in its unit


def factorize(arrays, n_runs, name, seed):
    """Return W above H transposed, in the unit of the counts."""
    X, ks = arrays["X"].astype(float), arrays["candidates"].tolist()
    used = np.flatnonzero(X.any(axis=0))
    cells, genes = (
        pd.DataFrame(index=[f"{i}" for i in own]) for own in (range(len(X)), used)
    )
    anndata.AnnData(X[:, used], cells, genes).write_h5ad("counts.h5ad")
    model = cNMF(output_dir=".", name=name)
    model.prepare(
        "counts.h5ad",
        components=ks,
        n_iter=n_runs,
        seed=seed,
        num_highvar_genes=len(used),
    )
    model.factorize_multi_process(total_workers=WORKERS)
    model.combine()
    k = ks[0] if len(ks) == 1 else most_stable(model)
    usage, spectra = consensus(model, k)
    H = np.zeros((k, X.shape[1]))
    H[:, used] = spectra.T
    W = usage * (X.sum(axis=1, keepdims=True) / MILLION)
    return np.concatenate([W, H.T])


def most_stable(model):
    model.k_selection_plot(close_fig=True)
    stats = load_df_from_npz(model.paths["k_selection_stats"])
    return int(stats.k[stats.silhouette.idxmax()])


def consensus(model, k):
    """Return usages, (n, k), and spectra, (p, k), of a million counts a cell."""
    try:
        density = DENSITY
        model.consensus(k, density_threshold=density, show_clustering=False)
    except (RuntimeError, ValueError):  # fewer spectra than programs are left
        density = ALL
        model.consensus(k, density_threshold=density, show_clustering=False)
    usage, _, spectra, _ = model.load_results(k, density, norm_usage=False)
    return usage.to_numpy(), spectra.to_numpy()


if __name__ == "__main__":
    serve(factorize)
