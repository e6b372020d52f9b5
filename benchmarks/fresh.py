"""Runs in processes of their own, whose time and memory nothing else changes.

`call` starts ``python -m benchmarks.fresh MODULE:FUNCTION ARGUMENTS`` and reads the line it prints.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from benchmarks import methods
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.metrics import clustering_accuracy

ROOT = Path(__file__).parents[1]


def call(
    function: Callable[..., dict[str, Any]], *arguments: Any, **environment: str
) -> dict[str, Any]:
    """Call a function with strings as arguments in a new process, and return its result.

    Keywords are set in the environment of the process, before it imports anything.
    """
    where = f"{function.__module__}:{function.__qualname__}"
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.fresh", where]
    done = subprocess.run(
        [*command, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{where} failed on {arguments}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(method: str, file: Path, seed: int) -> dict[str, Any]:
    """Run a method in a new process on a file that `save` wrote.

    Returns
    -------
    dict
        "seconds"; "cpu", the seconds of all cores together; "mebibytes", by which the largest
        resident memory exceeds that after imports and reading; "ari" and "accuracy" with y.
    """
    return call(cluster, method, file, seed)


def save(
    file: Path,
    X: Any,
    y: np.ndarray,
    table: np.ndarray | None = None,
    pairs: PairwiseConstraints | None = None,
) -> None:
    """Write dense or sparse features, classes, base partitions and constraints."""
    arrays = {"y": y}
    if sp.issparse(X):
        arrays |= {
            "data": X.data,
            "indices": X.indices,
            "indptr": X.indptr,
            "shape": X.shape,
        }
    else:
        arrays["X"] = X
    if table is not None:
        arrays["table"] = table
    if pairs is not None:
        arrays |= {"must": pairs.must_link, "cannot": pairs.cannot_link}
    np.savez(file, **arrays)


def read(file: str | Path) -> tuple[Any, np.ndarray, dict[str, Any]]:
    """Return X, y and the other inputs, by the names in `Method.wants`."""
    with np.load(file) as stored:
        arrays = dict(stored)
    if "X" in arrays:
        X = arrays["X"]
    else:
        parts = tuple(arrays[part] for part in ("data", "indices", "indptr"))
        X = sp.csr_array(parts, shape=tuple(arrays["shape"]))
    extras = {methods.FEATURES: None, methods.PARTITIONS: arrays.get("table")}
    if "must" in arrays:
        links = arrays["must"], arrays["cannot"]
        extras[methods.CONSTRAINTS] = PairwiseConstraints(X.shape[0], *links)
    return X, arrays["y"], extras


def cluster(name: str, file: str, seed: str) -> dict[str, Any]:
    X, y, extras = read(file)
    method = methods.load(name)
    k = len(np.unique(y))
    (labels, seconds), costs = cost(
        partial(method.run, X, extras[method.wants], k, int(seed))
    )
    return {
        **costs,
        "seconds": seconds,
        "ari": adjusted_rand_score(y, labels),
        "accuracy": clustering_accuracy(y, labels),
    }


def cost(task: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return what a task returns, and its "seconds", "cpu" and "mebibytes" as of `measure`."""
    before = memory("VmRSS")
    began, cpu = time.perf_counter(), time.process_time()
    result = task()
    return result, {
        "seconds": time.perf_counter() - began,
        "cpu": time.process_time() - cpu,
        "mebibytes": (memory("VmHWM") - before) / 1024,
    }


def main(where: str, *arguments: str) -> None:
    module, name = where.split(":")
    print(json.dumps(getattr(importlib.import_module(module), name)(*arguments)))


def memory(field: str) -> int:
    """Return the resident memory, or its peak, in KiB.

    On Linux a child inherits `ru_maxrss`; there the kernel's own table is read instead.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines[field].split()[0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak


if __name__ == "__main__":
    main(*sys.argv[1:])
