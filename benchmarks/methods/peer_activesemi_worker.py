"""Run by the interpreter that has `active-semi-supervised-clustering`, see `peer_worker`."""

import numpy as np
from active_semi_clustering.exceptions import (
    ClusteringNotFoundException,
    EmptyClustersException,
)
from active_semi_clustering.semi_supervised import pairwise_constraints
from peer_worker import serve

ATTEMPTS = 5  # runs until a method has failed


def cluster(arrays, n_clusters, name, seed):
    """Try several times: a run fails if a cluster becomes empty or an assignment is impossible."""
    np.random.seed(seed)  # noqa: NPY002, there is no other way in
    must, cannot = (
        [tuple(pair) for pair in arrays[side].tolist()] for side in ("must", "cannot")
    )
    for _ in range(ATTEMPTS):
        model = getattr(pairwise_constraints, name)(n_clusters=n_clusters)
        try:
            return model.fit(arrays["X"].astype(float), ml=must, cl=cannot).labels_
        except (EmptyClustersException, ClusteringNotFoundException):
            continue
    return None


if __name__ == "__main__":
    serve(cluster)
