"""Run by the interpreter that has `genieclust`, see `peer_worker`."""

import genieclust
from peer_worker import serve


def cluster(arrays, n_clusters, name, seed):
    """Cluster with the defaults; nothing is drawn."""
    return getattr(genieclust, name)(n_clusters=n_clusters).fit_predict(arrays["X"])


if __name__ == "__main__":
    serve(cluster)
