"""Other packages, each run by the interpreter of an environment that has it.

They cannot share one environment: some need old versions of NumPy and SciPy, or pin theirs.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

PYTHON = "NMFCLUSTER_PEER_PYTHON"
VIEWS_PYTHON = "NMFCLUSTER_VIEWS_PYTHON"
HDBSCAN_PYTHON = "NMFCLUSTER_HDBSCAN_PYTHON"
DASK_PYTHON = "NMFCLUSTER_DASK_PYTHON"
CNMF_PYTHON = "NMFCLUSTER_CNMF_PYTHON"
SIGPROFILER_PYTHON = "NMFCLUSTER_SIGPROFILER_PYTHON"
SC3S_PYTHON = "NMFCLUSTER_SC3S_PYTHON"
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
LONGEST = 600  # seconds until a peer is stopped
RECIPES = {
    PYTHON: (
        "`python3.11 -m venv peers`, `peers/bin/pip install numpy==1.26.4 scipy==1.10.1 "
        "scikit-learn==1.3.2 active-semi-supervised-clustering==0.0.1 snfpy==0.2.2`"
    ),
    VIEWS_PYTHON: (
        "`python3.11 -m venv views`, `views/bin/pip install imml==0.6.0 polyview==0.1.0 "
        "matplotlib seaborn` and `views/bin/pip install --no-deps mvlearn==0.5.0`"
    ),
    HDBSCAN_PYTHON: (
        "`python3.11 -m venv hdbscan` and `hdbscan/bin/pip install fast-hdbscan==0.3.4`"
    ),
    DASK_PYTHON: "`python3.11 -m venv dask_ml` and `dask_ml/bin/pip install dask-ml`",
    CNMF_PYTHON: (
        "`python3.11 -m venv cnmf` and `cnmf/bin/pip install cnmf==1.7.1 cvanmf==0.4.0 "
        "'statsmodels<0.15'`"
    ),
    SIGPROFILER_PYTHON: (
        "`python3.11 -m venv sigprofiler` and `sigprofiler/bin/pip install "
        "SigProfilerExtractor==1.4.1`"
    ),
    SC3S_PYTHON: "`python3.11 -m venv sc3s` and `sc3s/bin/pip install sc3s==0.1.1`",
}
PACKAGES = {  # the interpreter that has each of them
    "active-semi-supervised-clustering": PYTHON,
    "snfpy": PYTHON,
    "imml": VIEWS_PYTHON,
    "mvlearn": VIEWS_PYTHON,
    "polyview": VIEWS_PYTHON,
    "fast-hdbscan": HDBSCAN_PYTHON,
    "dask-ml": DASK_PYTHON,
    "cnmf": CNMF_PYTHON,
    "cvanmf": CNMF_PYTHON,
    "SigProfilerExtractor": SIGPROFILER_PYTHON,
    "sc3s": SC3S_PYTHON,
}


class NoClusteringError(Exception):
    """A peer ran without an error and made no clustering, or took too long."""


class TooLongError(NoClusteringError):
    """A peer was stopped, because it took too long."""


def reason(python: str = PYTHON) -> str:
    if os.environ.get(python):
        return ""
    return (
        f"set {python} to the interpreter of an environment made with {RECIPES[python]}"
    )


def pinned(package: str) -> str:
    """Return the name of a package and the version that its recipe installs, if it has one."""
    found = re.search(rf"{re.escape(package)}==([\w.]+)", RECIPES[PACKAGES[package]])
    return f"{package} {found[1]}" if found else package


@cache
def version(package: str) -> str:
    """Return the name of a package and the version that its environment has."""
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    command = [os.environ[PACKAGES[package]], "-c", code]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return f"{package} {told.stdout.strip()}"


def ask(*arguments: Any, **options: Any) -> tuple[np.ndarray, float]:
    """Return the labels that a worker saves, and the seconds of the clustering alone.

    The arguments and errors are those of `ask_costs`.
    """
    labels, costs = ask_costs(*arguments, **options)
    return labels, costs["seconds"]


def ask_costs(
    worker: Path,
    arrays: dict[str, np.ndarray],
    n_clusters: int,
    name: str,
    seed: int,
    python: str = PYTHON,
    longest: float = LONGEST,
    environment: dict[str, str] | None = None,
) -> tuple[np.ndarray, dict[str, float]]:
    """Return the labels that a worker saves, and the costs that it prints.

    `environment` holds variables that the worker gets beside those of this process. The costs are
    "seconds" and "mebibytes" of the clustering alone, without imports.

    Raises
    ------
    NoClusteringError
    RuntimeError
        If the worker fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        file, labels = Path(folder, "arrays.npz"), Path(folder, "labels.npy")
        np.savez(file, **arrays)
        parts = (
            os.environ[python],
            "-W",
            "ignore",
            worker,
            file,
            labels,
            n_clusters,
            name,
            seed,
        )
        command = [str(part) for part in parts]
        try:
            done = _run(command, folder, longest, os.environ | (environment or {}))
        except subprocess.TimeoutExpired:
            raise TooLongError(f"{name} took longer than {longest:g} s.") from None
        if done.returncode:
            raise RuntimeError(f"{name} failed:\n{done.stderr[-2000:]}")
        if not labels.exists():
            raise NoClusteringError(f"{name} found no clustering.")
        return np.load(labels), json.loads(done.stdout.splitlines()[-1])


def _run(
    command: list[str], folder: str, longest: float, environment: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run a worker; if it takes too long, stop it and the processes that it has started."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
        start_new_session=True,
    ) as worker:
        try:
            out, err = worker.communicate(timeout=longest)
        except BaseException:
            os.killpg(worker.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(command, worker.returncode, out, err)


def factors(*arguments: Any, **options: Any) -> tuple[np.ndarray, np.ndarray, float]:
    """Return W and H as `factors_and_costs` does, and the seconds of the worker."""
    W, H, costs = factors_and_costs(*arguments, **options)
    return W, H, costs["seconds"]


def factors_and_costs(
    worker: Path,
    n_runs: int,
    name: str,
    python: str,
    X: np.ndarray,
    ks: Sequence[int],
    seed: int,
    longest: float,
) -> tuple[np.ndarray, np.ndarray, dict[str, float]]:
    """Return W and H of a worker that saves them as one array, H transposed below W, and costs.

    It gets the numbers of programs to choose from, or one, as "candidates", and one thread for
    each of its processes. The costs are those of `ask_costs`.

    Raises
    ------
    NoClusteringError
    RuntimeError
        If the worker fails.
    """
    arrays = {"X": X, "candidates": np.array(ks)}
    both, costs = ask_costs(
        worker, arrays, n_runs, name, seed, python, longest, ONE_THREAD
    )
    return both[: len(X)], both[len(X) :].T, costs


def numbered(parts: Iterable[Any]) -> dict[str, np.ndarray]:
    """Return sources or views as the arrays "part0", "part1", ... that workers read."""
    dense = [
        part.toarray() if sp.issparse(part) else np.asarray(part) for part in parts
    ]
    return {f"part{i}": part for i, part in enumerate(dense)}
