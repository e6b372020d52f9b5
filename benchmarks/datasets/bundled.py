"""The handwritten digits that come with scikit-learn."""

from __future__ import annotations

from sklearn.datasets import load_digits

from benchmarks.datasets import Dataset

NAMES = ("digits",)


def load(name: str) -> Dataset:
    return Dataset(name, *load_digits(return_X_y=True), note="scikit-learn's copy")
