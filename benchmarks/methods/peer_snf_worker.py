"""Run by the interpreter that has `snfpy`, see `peer_worker`."""

import numpy as np
import snf
from peer_worker import serve
from sklearn.cluster import spectral_clustering


def cluster(arrays, n_clusters, name, seed):
    """Fuse as in the guide of the package, with its default number of neighbours."""
    parts = [arrays[f"part{i}"].astype(float) for i in range(len(arrays))]
    n_neighbors = min(20, len(parts[0]) - 1)
    if name != "similarities":
        parts = snf.make_affinity(
            parts, K=n_neighbors, normalize=name == "standardised"
        )
    for (
        part
    ) in parts:  # a row of zeros has no neighbours, and would be divided by its sum
        lonely = np.flatnonzero(part.sum(axis=1) == 0)
        part[lonely, lonely] = 1
    fused = parts[0] if len(parts) == 1 else snf.snf(parts, K=n_neighbors)
    return spectral_clustering(fused, n_clusters=n_clusters, random_state=seed)


if __name__ == "__main__":
    serve(cluster)
