"""One run in a process of its own: its time, and its memory over what was there before it.

`measure` starts ``python -m benchmarks.fresh METHOD FILE SEED`` and reads the line it prints.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks import methods

ROOT = Path(__file__).parents[1]


def measure(method: str, file: Path, seed: int) -> dict[str, Any]:
    """Run a method on the arrays X, table and y of a .npz file.

    Returns
    -------
    dict
        "seconds", "cpu" (seconds of all cores), "mebibytes" (largest resident memory less
        that after imports and reading), "ari" with y.
    """
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.fresh"]
    done = subprocess.run(
        [*command, method, str(file), str(seed)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{method} failed on {file.name}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main(method: str, file: str, seed: str) -> None:
    with np.load(file) as arrays:
        X, table, y = (arrays[name] for name in ("X", "table", "y"))
    before = _memory("VmRSS")
    k = len(np.unique(y))
    began = time.process_time()
    labels, seconds = methods.load(method).run(X, table, k, int(seed))
    cpu = time.process_time() - began
    mebibytes = (_memory("VmHWM") - before) / 1024
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu": cpu,
                "mebibytes": mebibytes,
                "ari": adjusted_rand_score(y, labels),
            }
        )
    )


def _memory(field: str) -> int:
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
