"""Run by the interpreter that has `dask-ml`: k-means of the features in a .npy file.

Arguments: TABLE CLASSES N_CLUSTERS ROWS MEMORY. It needs only what dask-ml needs.
"""

import json
import sys
import time

import dask
import dask.array as da
import numpy as np
from dask.distributed import Client, LocalCluster
from dask_ml.cluster import KMeans
from scipy.optimize import linear_sum_assignment


def read(path, first, last, offset, dtype, width):
    where = offset + first * width * dtype.itemsize
    return np.fromfile(path, dtype, (last - first) * width, offset=where).reshape(
        -1, width
    )


def blocks_of(path, rows):
    mapped = np.load(path, mmap_mode="r")
    (n, width), dtype, offset = mapped.shape, mapped.dtype, mapped.offset
    parts = []
    for first in range(0, n, rows):
        last = min(first + rows, n)
        block = dask.delayed(read)(path, first, last, offset, dtype, width)
        parts.append(da.from_delayed(block, (last - first, width), dtype))
    return da.concatenate(parts)


def peak():
    with open("/proc/self/status") as status:
        lines = dict(line.split(":", 1) for line in status)
    return int(lines["VmHWM"].split()[0]) / 1024


def main(table, classes, n_clusters, rows, memory):
    k = int(n_clusters)
    kept = {
        "distributed.worker.memory.spill": False,
        "distributed.worker.memory.target": False,
    }
    with (
        dask.config.set(kept),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=memory,
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        X, y = blocks_of(table, int(rows)), blocks_of(classes, int(rows))[:, 0]
        began = time.perf_counter()
        labels = KMeans(n_clusters=k, random_state=0).fit(X).labels_
        pairs = labels.astype(np.int64) * k + y
        counts = da.bincount(pairs, minlength=k * k).compute().reshape(k, k)
        seconds = time.perf_counter() - began
        found = {
            "seconds": seconds,
            "accuracy": float(
                counts[linear_sum_assignment(-counts)].sum() / counts.sum()
            ),
            "worker": max(client.run(peak).values()),
            "client": peak(),
            "cpu": sum(client.run(time.process_time).values()),
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
