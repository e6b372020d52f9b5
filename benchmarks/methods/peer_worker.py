"""The main function of all workers: it reads ARRAYS LABELS N_CLUSTERS NAME SEED.

The workers are scripts that another interpreter runs; this module needs only NumPy.
"""

import json
import resource
import sys
import time

import numpy as np


def serve(cluster):
    """Call ``cluster(arrays, n_clusters, name, seed)``, save its labels and print its costs.

    These are its seconds, and the MiB by which the largest resident memory of this process, or of
    one that it has started, exceeds the memory before the call.
    """
    file, labels_file, n_clusters, name, seed = sys.argv[1:]
    with np.load(file) as arrays:
        arrays = dict(arrays)
    before = memory("VmRSS")
    began = time.perf_counter()
    labels = cluster(arrays, int(n_clusters), name, int(seed))
    seconds = time.perf_counter() - began
    if labels is not None:
        np.save(labels_file, np.asarray(labels))
    most = max(memory("VmHWM"), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    print(json.dumps({"seconds": seconds, "mebibytes": (most - before) / 1024}))


def memory(field):
    """Return the resident memory, or its peak, in KiB: on Linux alone, 0 elsewhere."""
    try:
        with open("/proc/self/status") as status:
            lines = dict(line.split(":", 1) for line in status)
    except OSError:
        return 0
    return int(lines[field].split()[0])
