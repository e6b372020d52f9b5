"""Programs of an AnnData object: counts in, usages and programs out."""

import numpy as np

from nmfcluster import NMFMetaCluster


def add_programs(adata, n_programs, *, layer=None, **parameters):
    """Find programs in the counts of `adata`, and put them where others look for them."""
    counts = adata.X if layer is None else adata.layers[layer]
    model = NMFMetaCluster(
        n_programs, loss="kullback-leibler", resample="poisson", **parameters
    ).fit(counts)
    adata.obsm["X_programs"] = model.membership_  # shares of the programs in every cell
    adata.obs["program"] = model.labels_.astype(str)
    adata.varm["programs"] = model.components_.T
    markers = model.top_features(10, model.feature_scores(counts))[0]
    adata.uns["programs"] = {
        "recurrence": model.recurrence_,
        "markers": np.asarray(adata.var_names)[markers],
    }
    return model
