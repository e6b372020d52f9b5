"""The solvers of `ensembleclustering` 1.0.2."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.methods import Method, peer

WORKER = Path(__file__).with_name("peer_ensembleclustering_worker.py")
SOLVERS = ("nmf", "hbgf", "mcla", "cspa", "hgpa")


def run(
    X: Any, table: np.ndarray, k: int, seed: int, solver: str = "nmf"
) -> tuple[np.ndarray, float]:
    return peer.ask(WORKER, {"table": table}, k, solver, seed)


METHODS = [
    Method(f"ensembleclustering {solver}", partial(run, solver=solver), peer.reason)
    for solver in SOLVERS
]
