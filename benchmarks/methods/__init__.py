"""Methods by name: `load(name)` returns one, `Method.reason()` says why it cannot run here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pkgutil import iter_modules
from time import perf_counter
from typing import Any

import numpy as np

Run = Callable[[Any, Any, int, int], tuple[np.ndarray, float]]

FEATURES, PARTITIONS, CONSTRAINTS = "features", "partitions", "constraints"
SIMILARITIES, VIEWS, LABELS = "similarities", "views", "labels"


def no_reason() -> str:
    return ""


@dataclass(frozen=True)
class Method:
    """A clustering method.

    ``run(X, extra, n_clusters, seed)`` returns labels and the seconds that they took. `wants`
    names the kind of `extra`: base partitions, (n, T); a `PairwiseConstraints`; a
    `SimilarityStack`; a list of the features of each view; or classes, -1 if not known. A method
    that wants features reads X and ignores `extra`. ``reason()`` is empty where the method can
    run. `package` is that of another project, see `peer.PACKAGES`.
    """

    name: str
    run: Run
    reason: Callable[[], str] = no_reason
    wants: str = PARTITIONS
    package: str = ""


def timed(cluster: Callable[[Any, Any, int, int], np.ndarray]) -> Run:
    """Return a function that calls `cluster` and also returns its seconds."""

    def run(X: Any, extra: Any, k: int, seed: int) -> tuple[np.ndarray, float]:
        began = perf_counter()
        labels = cluster(X, extra, k, seed)
        return labels, perf_counter() - began

    return run


def load_all() -> dict[str, Method]:
    """Return the methods that modules here list; those of peers' own processes are not read."""
    found = [
        own.name for own in iter_modules(__path__) if not own.name.endswith("_worker")
    ]
    modules = [import_module(f"{__name__}.{name}") for name in found]
    return {
        method.name: method
        for module in modules
        for method in getattr(module, "METHODS", ())
    }


def load(name: str) -> Method:
    return load_all()[name]


def available(names: Iterable[str]) -> tuple[dict[str, Method], dict[str, str]]:
    """Return the methods that can run here, and why the others cannot."""
    known = load_all()
    skipped = {name: why for name in names if (why := known[name].reason())}
    return {name: known[name] for name in names if name not in skipped}, skipped


def packages(names: Iterable[str]) -> dict[str, str]:
    """Return the packages of those methods that come from another project."""
    known = load_all()
    return {name: known[name].package for name in names if known[name].package}
