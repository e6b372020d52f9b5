"""The main function of all workers: it reads ARRAYS LABELS N_CLUSTERS NAME SEED.

The workers are scripts that another interpreter runs; this module needs only NumPy.
"""

import json
import sys
import time

import numpy as np


def serve(cluster):
    """Call ``cluster(arrays, n_clusters, name, seed)``, save its labels and print its seconds."""
    file, labels_file, n_clusters, name, seed = sys.argv[1:]
    with np.load(file) as arrays:
        arrays = dict(arrays)
    began = time.perf_counter()
    labels = cluster(arrays, int(n_clusters), name, int(seed))
    seconds = time.perf_counter() - began
    if labels is not None:
        np.save(labels_file, np.asarray(labels))
    print(json.dumps({"seconds": seconds}))
