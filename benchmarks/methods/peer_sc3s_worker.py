"""Run by the interpreter that has `sc3s`, see `peer_worker`."""

import anndata
import numpy as np
import sc3s
from peer_worker import serve
from sklearn.decomposition import PCA

COMPONENTS = 50  # as Scanpy computes by default


def cluster(arrays, n_clusters, name, seed):
    """Cluster principal components, with the defaults."""
    X = arrays["X"].astype(float)
    # all components of narrow data: sc3s needs two, and Scanpy leaves out the last one
    n_components = min(COMPONENTS, X.shape[0] - 1, X.shape[1])
    cells = anndata.AnnData(X)
    cells.obsm["X_pca"] = PCA(n_components, svd_solver="full").fit_transform(X)
    sc3s.tl.consensus(cells, n_clusters=n_clusters, random_state=seed)
    return np.asarray(cells.obs[f"sc3s_{n_clusters}"]).astype(int)


if __name__ == "__main__":
    serve(cluster)
