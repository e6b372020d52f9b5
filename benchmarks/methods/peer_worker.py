"""What workers share: reads GIVEN LABELS N_CLUSTERS NAME SEED, prints the seconds of the call.

Imported by scripts beside it that another interpreter runs; it needs nothing but NumPy.
"""

import json
import sys
import time

import numpy as np


def serve(cluster):
    """Call ``cluster(given, n_clusters, name, seed)`` and save the labels, unless it finds none."""
    given, found, n_clusters, name, seed = sys.argv[1:]
    with np.load(given) as arrays:
        arrays = dict(arrays)
    began = time.perf_counter()
    labels = cluster(arrays, int(n_clusters), name, int(seed))
    seconds = time.perf_counter() - began
    if labels is not None:
        np.save(found, np.asarray(labels))
    print(json.dumps({"seconds": seconds}))
