"""Gene expression of tumours: leukemias as in Brunet et al. (2004), and lung tumours.

Badea (2005) had 12,600 genes of the lung tumours, of which a filter left 1,543 here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.preprocessing import normalize

from benchmarks.datasets import Dataset, read

NAMES = ("all_aml", "all_aml, two classes", "lung_bhattacharjee")
NOTES = {
    "all_aml": "the table of Brunet et al. (2004)",
    "lung_bhattacharjee": "1,543 of 12,600 genes",
}


@dataclass(frozen=True)
class Expression(Dataset):
    """Samples by genes, with the names of samples and of classes."""

    samples: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()


def load(name: str) -> Expression:
    source = name.split(",")[0]
    data = read(source)
    y, classes = data["y"].astype(int), tuple(map(str, data["target_names"]))
    if name != source:  # ALL-B and ALL-T are one class
        y, classes = np.maximum(y - 1, 0), ("ALL", "AML")
    samples = tuple(map(str, data["sample_names"]))
    X = data["X"].astype(float)
    return Expression(name, X, y, note=NOTES[source], samples=samples, classes=classes)


def as_given(X: np.ndarray) -> np.ndarray:
    """Return the intensities as they are."""
    return X


def logged(X: np.ndarray) -> np.ndarray:
    """Return logarithms, 0 at the smallest intensity, to which small ones were raised."""
    return np.log2(X / X.min())


def scaled(X: np.ndarray) -> np.ndarray:
    """Return the intensities over the mean of their gene, samples then scaled to length 1."""
    return normalize(X / X.mean(axis=0))


PREPARATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "raw": as_given,
    "log2": logged,
    "scaled": scaled,
}
