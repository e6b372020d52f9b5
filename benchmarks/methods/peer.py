"""Other packages, each run by the interpreter of an environment that has it.

They cannot share one environment: some need old versions of NumPy and SciPy, or pin theirs.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

PYTHON = "NMFCLUSTER_PEER_PYTHON"
VIEWS_PYTHON = "NMFCLUSTER_VIEWS_PYTHON"
META_PYTHON = "NMFCLUSTER_META_PYTHON"
LARGE_PYTHON = "NMFCLUSTER_LARGE_PYTHON"
DASK_PYTHON = "NMFCLUSTER_DASK_PYTHON"
LONGEST = 600  # seconds until a peer is stopped
RECIPES = {
    PYTHON: (
        "`python3.11 -m venv peers`, `peers/bin/pip install numpy==1.26.4 scipy==1.10.1 "
        "scikit-learn==1.3.2 kahypar pymetis active-semi-supervised-clustering snfpy` and "
        "`peers/bin/pip install --no-deps ensembleclustering`"
    ),
    VIEWS_PYTHON: (
        "`python3.11 -m venv views`, `views/bin/pip install imml polyview matplotlib seaborn` and "
        "`views/bin/pip install --no-deps mvlearn`"
    ),
    META_PYTHON: "`python3.11 -m venv meta` and `meta/bin/pip install tensorly`",
    LARGE_PYTHON: "`python3.11 -m venv large` and `large/bin/pip install genieclust==1.3.0`",
    DASK_PYTHON: "`python3.11 -m venv dask_ml` and `dask_ml/bin/pip install dask-ml`",
}


class NoClusteringError(Exception):
    """A peer ran without an error and made no clustering, or took too long."""


def reason(python: str = PYTHON) -> str:
    if os.environ.get(python):
        return ""
    return f"set {python} to the interpreter of an environment made with {RECIPES[python]}"


def ask(
    worker: Path,
    arrays: dict[str, np.ndarray],
    n_clusters: int,
    name: str,
    seed: int,
    python: str = PYTHON,
    longest: int = LONGEST,
) -> tuple[np.ndarray, float]:
    """Return the labels that a worker saves, and the seconds of the clustering alone.

    Raises
    ------
    NoClusteringError
    RuntimeError
        If the worker fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        file, labels = Path(folder, "arrays.npz"), Path(folder, "labels.npy")
        np.savez(file, **arrays)
        parts = (os.environ[python], "-W", "ignore", worker, file, labels, n_clusters, name, seed)
        command = [str(part) for part in parts]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, cwd=folder, timeout=longest
            )
        except subprocess.TimeoutExpired:
            raise NoClusteringError(f"{name} took longer than {longest} s.") from None
        if done.returncode:
            raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
        if not labels.exists():
            raise NoClusteringError(f"{name} found no clustering.")
        return np.load(labels), json.loads(done.stdout.splitlines()[-1])["seconds"]


def numbered(parts: Iterable[Any]) -> dict[str, np.ndarray]:
    """Return sources or views as the arrays "part0", "part1", ... that workers read."""
    dense = [part.toarray() if sp.issparse(part) else np.asarray(part) for part in parts]
    return {f"part{i}": part for i, part in enumerate(dense)}
