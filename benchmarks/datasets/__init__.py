"""Data sets by name: `load(name)` returns one, or raises `UnavailableError` with the reason."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import numpy as np

FOLDER = "NMFCLUSTER_DATA"


class UnavailableError(Exception):
    """A data set or method is missing here; the message says why."""


@dataclass(frozen=True)
class Dataset:
    """Samples with their classes.

    `draws` holds the row numbers of random subsets; a score is averaged over them, and `prepare`
    changes the X of each. `own` says whether these are the data of the paper that a question is
    about, and `note` how they differ from them.
    """

    name: str
    X: Any
    y: np.ndarray
    own: bool = False
    note: str = ""
    draws: tuple[np.ndarray, ...] = ()
    prepare: Callable[[Any, np.ndarray], Any] | None = None

    @property
    def n_clusters(self) -> int:
        return len(np.unique(self.y[self.draws[0]] if self.draws else self.y))

    def draw(self, i: int) -> tuple[Any, np.ndarray]:
        """Return X and y of draw i modulo the number of draws; of all rows without draws."""
        X, y = self.X, self.y
        if self.draws:
            rows = self.draws[i % len(self.draws)]
            X, y = X[rows], y[rows]
        return (X if self.prepare is None else self.prepare(X, y)), y


def read(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of NAME.npz in the data folder."""
    folder = os.environ.get(FOLDER)
    if not folder:
        raise UnavailableError(
            f"{name}: set {FOLDER} to the folder that holds {name}.npz"
        )
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        raise UnavailableError(
            f"{name}: there is no {path.name} in the folder {FOLDER}"
        )
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def names() -> list[str]:
    """Return the names of all data sets that are loaded by name alone."""
    return list(_loaders())


def load(name: str) -> Dataset:
    return _loaders()[name](name)


def available(names: Iterable[str]) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Return the data sets that are here, and why the others are missing."""
    loaded, skipped = {}, {}
    for name in names:
        try:
            loaded[name] = load(name)
        except UnavailableError as why:
            skipped[name] = str(why)
    return loaded, skipped


def _loaders() -> dict[str, Any]:
    modules = [
        import_module(f"{__name__}.{own.name}") for own in iter_modules(__path__)
    ]
    return {
        name: each.load
        for each in modules
        for name in sorted(getattr(each, "NAMES", ()))
    }
