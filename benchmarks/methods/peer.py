"""Other packages, run by an interpreter that has them.

Their releases want old versions of NumPy and SciPy, hence an environment of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

PYTHON = "NMFCLUSTER_PEER_PYTHON"
LONGEST = 600  # seconds that a peer gets


class NoClusteringError(Exception):
    """A peer that ran as it should and found no clustering, or took too long."""


def reason() -> str:
    if os.environ.get(PYTHON):
        return ""
    return (
        f"set {PYTHON} to the interpreter of an environment made with "
        "`python3.11 -m venv peers`, `peers/bin/pip install numpy==1.26.4 scipy==1.10.1 "
        "scikit-learn==1.3.2 kahypar pymetis active-semi-supervised-clustering` and "
        "`peers/bin/pip install --no-deps ensembleclustering`"
    )


def ask(
    worker: Path, given: dict[str, np.ndarray], n_clusters: int, name: str, seed: int
) -> tuple[np.ndarray, float]:
    """Return the labels that a worker finds, and the seconds of the clustering alone.

    Raises
    ------
    NoClusteringError
    RuntimeError
        If the worker fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        file, found = Path(folder, "given.npz"), Path(folder, "labels.npy")
        np.savez(file, **given)
        parts = (os.environ[PYTHON], "-W", "ignore", worker, file, found, n_clusters, name, seed)
        command = [str(part) for part in parts]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, cwd=folder, timeout=LONGEST
            )
        except subprocess.TimeoutExpired:
            raise NoClusteringError(f"{name} took longer than {LONGEST} s.") from None
        if done.returncode:
            raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
        if not found.exists():
            raise NoClusteringError(f"{name} found no clustering.")
        return np.load(found), json.loads(done.stdout.splitlines()[-1])["seconds"]
