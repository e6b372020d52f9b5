"""Small data sets of the UCI repository, with raw features as in Li, Ding and Jordan (2007)."""

from __future__ import annotations

from sklearn.datasets import load_iris, load_wine

from benchmarks.datasets import Dataset, UnavailableError, read

OWN = ("glass", "ionosphere", "iris", "soybean", "wine", "zoo")
DRAWN = ("digits389", "letterIJL")
NAMES = OWN + DRAWN
BUNDLED = {"iris": load_iris, "wine": load_wine}


def load(name: str) -> Dataset:
    try:
        data = read(name)
    except UnavailableError:
        if name not in BUNDLED:
            raise
        X, y = BUNDLED[name](return_X_y=True)
        return Dataset(name, X, y, own=True, note="scikit-learn's copy")
    X, y = data["X"].astype(float), data["y"]
    if name in OWN:
        return Dataset(name, X, y, own=True)
    draws = tuple(data["subsample"])
    return Dataset(name, X, y, note="same population, other 10 % draws", draws=draws)
