"""Run by the interpreter that has `sc3s`, see `peer_worker`."""

import anndata
import numpy as np
import sc3s
import scanpy
from peer_worker import serve

COMPONENTS = 50  # Scanpy's default


def cluster(arrays, n_clusters, name, seed):
    """Cluster principal components, with the defaults."""
    cells = anndata.AnnData(arrays["X"].astype(float))
    n_samples, n_features = cells.shape
    # Scanpy's default leaves out the last component, and sc3s needs two
    n_components = min(COMPONENTS, n_samples - 1, n_features)
    scanpy.pp.pca(cells, n_components, svd_solver="full", random_state=seed)
    sc3s.tl.consensus(cells, n_clusters=n_clusters, random_state=seed)
    return np.asarray(cells.obs[f"sc3s_{n_clusters}"]).astype(int)


if __name__ == "__main__":
    serve(cluster)
