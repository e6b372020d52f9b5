"""Run by the interpreter that has `ensembleclustering`, see `peer_worker`."""

import ensembleclustering
from peer_worker import serve


def cluster(arrays, n_clusters, solver, seed):
    table = arrays["table"].T.astype(float)  # a partition a row; NaN would be "not seen"
    return ensembleclustering.cluster_ensembles(
        table, nclass=n_clusters, solver=solver, random_state=seed
    )


if __name__ == "__main__":
    serve(cluster)
