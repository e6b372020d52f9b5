"""The solvers of `ensembleclustering` 1.0.2, run by an interpreter that has it.

Its releases want old versions of NumPy and SciPy, hence an environment of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.methods import Method

PYTHON = "NMFCLUSTER_PEER_PYTHON"
WORKER = Path(__file__).with_name("peer_ensembleclustering_worker.py")
SOLVERS = ("nmf", "hbgf", "mcla", "cspa", "hgpa")


def reason() -> str:
    if os.environ.get(PYTHON):
        return ""
    return (
        f"set {PYTHON} to the interpreter of an environment made with "
        "`python3.11 -m venv peers`, `peers/bin/pip install numpy==1.26.4 scipy==1.10.1 "
        "scikit-learn==1.3.2 kahypar pymetis` and "
        "`peers/bin/pip install --no-deps ensembleclustering`"
    )


def run(
    X: Any, table: np.ndarray, k: int, seed: int, solver: str = "nmf"
) -> tuple[np.ndarray, float]:
    with tempfile.TemporaryDirectory() as folder:
        given, found = Path(folder, "table.npy"), Path(folder, "labels.npy")
        np.save(given, table)
        command = [os.environ[PYTHON], str(WORKER), str(given), str(found), str(k), solver]
        done = subprocess.run(
            [*command, str(seed)], capture_output=True, text=True, check=False, cwd=folder
        )
        if done.returncode:
            raise RuntimeError(f"ensembleclustering {solver} failed:\n{done.stderr[-2000:]}")
        return np.load(found), json.loads(done.stdout.splitlines()[-1])["seconds"]


METHODS = [
    Method(f"ensembleclustering {solver}", partial(run, solver=solver), reason)
    for solver in SOLVERS
]
