"""What is installed: to be copied into a report of an error."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from threadpoolctl import threadpool_info

_LIBRARIES = (
    *("nmfcluster", "numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl"),
    *("matplotlib", "pandas", "polars", "pyarrow", "dask"),  # optional
)


def show_versions() -> None:
    """Print the versions of Python, of the libraries, and the threads that these may use.

    Examples
    --------
    >>> import nmfcluster
    >>> nmfcluster.show_versions()  # doctest: +ELLIPSIS
    python: ...
    """
    print(f"python: {sys.version}")
    print(f"machine: {platform.platform()}")
    for library in _LIBRARIES:
        print(f"{library}: {_version(library)}")
    for pool in threadpool_info():
        name = f"{pool['internal_api']} {pool['version'] or ''}".strip()
        print(f"{pool['user_api']}: {name}, {pool['num_threads']} threads")


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
