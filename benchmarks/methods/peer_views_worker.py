"""Run by the interpreter that has `imml`, `mvlearn` and `polyview`, see `peer_worker`."""

import numpy as np
import polyview
from imml import cluster as imml
from mvlearn.cluster import MultiviewCoRegSpectralClustering
from peer_worker import serve


def itself(K, Y=None):
    """Return K: imml asks for a function that makes a kernel, and K is one already."""
    return K


def cluster(arrays, n_clusters, name, seed):
    """Cluster with the defaults of each method; NMF gets views shifted to be nonnegative."""
    views = [arrays[f"part{i}"].astype(float) for i in range(len(arrays))]
    if name == "CoReg":
        model = MultiviewCoRegSpectralClustering(
            n_clusters=n_clusters, affinity="nearest_neighbors", random_state=seed
        )
        return model.fit_predict(views)
    if name == "MultiViewNMF":
        views = [view - np.minimum(view.min(axis=0), 0) for view in views]
        model = polyview.MultiViewNMF(
            n_components=n_clusters, learn_weights=True, random_state=seed
        )
        return model.fit_predict(polyview.MultiViewDataset(views))
    if name == "MultiViewKMeans":
        model = polyview.MultiViewKMeans(n_clusters=n_clusters, random_state=seed)
        return model.fit_predict(polyview.MultiViewDataset(views))
    options = {}
    if name in ("EEIMVC", "LFIMVC"):
        # normalised similarities have eigenvalues from -1 to 1, kernels from 0
        views, options = (
            [view + np.eye(len(view)) for view in views],
            {"kernel": itself},
        )
    model = getattr(imml, name)(n_clusters=n_clusters, random_state=seed, **options)
    return model.fit_predict(views)


if __name__ == "__main__":
    serve(cluster)
