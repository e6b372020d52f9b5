"""Run by the interpreter that has `fast-hdbscan`, see `peer_worker`."""

from fast_hdbscan import HDBSCAN
from peer_worker import serve


def cluster(arrays, n_clusters, name, seed):
    """Cluster with the defaults; nothing is drawn."""
    return HDBSCAN(semi_supervised=True).fit(arrays["X"], arrays["known"]).labels_


if __name__ == "__main__":
    serve(cluster)
