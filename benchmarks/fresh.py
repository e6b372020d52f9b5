"""One run in a process of its own: its time, and its memory over what was there before it.

`call` starts ``python -m benchmarks.fresh MODULE:FUNCTION ARGUMENTS`` and reads the line it prints.
"""

from __future__ import annotations

import importlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from benchmarks import methods
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.metrics import clustering_accuracy

ROOT = Path(__file__).parents[1]


def call(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """Call a function of a module with strings in a new process, and return what it returns."""
    where = f"{function.__module__}:{function.__qualname__}"
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.fresh", where]
    done = subprocess.run(
        [*command, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{where} failed on {arguments}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(method: str, file: Path, seed: int) -> dict[str, Any]:
    """Run a method on what `save` wrote.

    Returns
    -------
    dict
        "seconds", "cpu" (seconds of all cores), "mebibytes" (largest resident memory less
        that after imports and reading), "ari" and "accuracy" with y.
    """
    return call(cluster, method, file, seed)


def save(
    file: Path,
    X: Any,
    y: np.ndarray,
    table: np.ndarray | None = None,
    pairs: PairwiseConstraints | None = None,
) -> None:
    """Write features, dense or sparse, classes, base partitions and constraints."""
    arrays = {"y": y}
    if sp.issparse(X):
        arrays |= {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
    else:
        arrays["X"] = X
    if table is not None:
        arrays["table"] = table
    if pairs is not None:
        arrays |= {"must": pairs.must_link, "cannot": pairs.cannot_link}
    np.savez(file, **arrays)


def read(file: str | Path) -> tuple[Any, np.ndarray, dict[str, Any]]:
    """Return X, y and what is given besides, by the name that methods want it by."""
    with np.load(file) as stored:
        arrays = dict(stored)
    if "X" in arrays:
        X = arrays["X"]
    else:
        parts = tuple(arrays[part] for part in ("data", "indices", "indptr"))
        X = sp.csr_array(parts, shape=tuple(arrays["shape"]))
    given = {methods.FEATURES: None, methods.PARTITIONS: arrays.get("table")}
    if "must" in arrays:
        links = arrays["must"], arrays["cannot"]
        given[methods.CONSTRAINTS] = PairwiseConstraints(X.shape[0], *links)
    return X, arrays["y"], given


def cluster(name: str, file: str, seed: str) -> dict[str, Any]:
    X, y, given = read(file)
    method = methods.load(name)
    k = len(np.unique(y))
    before = memory("VmRSS")
    began = time.process_time()
    labels, seconds = method.run(X, given[method.wants], k, int(seed))
    cpu = time.process_time() - began
    return {
        "seconds": seconds,
        "cpu": cpu,
        "mebibytes": (memory("VmHWM") - before) / 1024,
        "ari": adjusted_rand_score(y, labels),
        "accuracy": clustering_accuracy(y, labels),
    }


def main(where: str, *arguments: str) -> None:
    module, name = where.split(":")
    print(json.dumps(getattr(importlib.import_module(module), name)(*arguments)))


def memory(field: str) -> int:
    """Return the resident memory, or its peak, in KiB.

    Linux hands `ru_maxrss` on to a child, so the kernel's own table is read where there is one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines[field].split()[0])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak


if __name__ == "__main__":
    main(*sys.argv[1:])
