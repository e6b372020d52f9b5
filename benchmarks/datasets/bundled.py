"""Data sets of scikit-learn: handwritten digits, and wine with features of equal spread."""

from __future__ import annotations

from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import scale

from benchmarks.datasets import Dataset

NAMES = ("digits", "wine, standardised")


def load(name: str) -> Dataset:
    if name.startswith("wine"):
        X, y = load_wine(return_X_y=True)
        return Dataset(name, scale(X), y, note="scikit-learn's copy")
    X, y = load_digits(return_X_y=True)
    return Dataset(name, X, y, note="scikit-learn's copy")
