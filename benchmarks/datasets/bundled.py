"""Data sets of scikit-learn: handwritten digits, and wine with features of equal spread."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import scale

from benchmarks.datasets import Dataset

NAMES = ("digits", "digits 3/8/9", "wine, standardised")


def load(name: str) -> Dataset:
    if name.startswith("wine"):
        X, y = load_wine(return_X_y=True)
        return Dataset(name, scale(X), y, note="scikit-learn's copy")
    X, y = load_digits(return_X_y=True)
    rows = np.isin(y, (3, 8, 9)) if name == "digits 3/8/9" else slice(None)
    return Dataset(name, X[rows], y[rows], note="scikit-learn's copy")
