"""Gene expression of tumours: the leukemias of Brunet et al. (2004), lung tumours, and others.

Badea (2005) used 12,600 genes of the lung tumours; a filter has left 1,543 of them here. The others
are as in the compendium of de Souto et al. (2008).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.preprocessing import normalize

from benchmarks.datasets import Dataset, read

# of Brunet and of Badea
PAPERS = ("all_aml", "all_aml, two classes", "lung_bhattacharjee")
NAMES = (*PAPERS, "expr_golub-1999-v2", "expr_nutt-2003-v1")
NOTES = {
    "all_aml": "the table of Brunet et al. (2004)",
    "lung_bhattacharjee": "1,543 of 12,600 genes",
    "expr_golub-1999-v2": "1,868 genes that a filter has left",
    "expr_nutt-2003-v1": "1,377 genes that a filter has left",
}


def load(name: str) -> Dataset:
    source = name.split(",")[0]
    data = read(source)
    y = data["y"].astype(int)
    if name != source:  # ALL-B and ALL-T become one class
        y = np.maximum(y - 1, 0)
    return Dataset(name, data["X"].astype(float), y, note=NOTES[source])


def as_given(X: np.ndarray) -> np.ndarray:
    """Return the intensities unchanged."""
    return X


def logged(X: np.ndarray) -> np.ndarray:
    """Return logarithms of the intensities over the smallest one."""
    return np.log2(X / X.min())


def scaled(X: np.ndarray) -> np.ndarray:
    """Divide each gene by its mean, then scale each sample to length 1."""
    return normalize(X / X.mean(axis=0))


PREPARATIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "raw": as_given,
    "log2": logged,
    "scaled": scaled,
}
