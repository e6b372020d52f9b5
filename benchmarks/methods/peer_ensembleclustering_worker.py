"""Run by the interpreter that has `ensembleclustering`: TABLE LABELS N_CLUSTERS SOLVER SEED.

Prints the seconds of the call alone, without the imports and files around it.
"""

import json
import sys
import time

import ensembleclustering
import numpy as np


def main(given, found, n_clusters, solver, seed):
    table = np.load(given).T.astype(float)  # a partition a row; NaN would be "not seen"
    began = time.perf_counter()
    labels = ensembleclustering.cluster_ensembles(
        table, nclass=int(n_clusters), solver=solver, random_state=int(seed)
    )
    seconds = time.perf_counter() - began
    np.save(found, np.asarray(labels))
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
