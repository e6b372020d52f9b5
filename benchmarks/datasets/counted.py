"""Counts of words and intensities of genes, as they are and as logarithms of 1 more."""

from __future__ import annotations

import numpy as np

from benchmarks.datasets import Dataset, expression, read
from benchmarks.datasets.text import counts

RAW, LOG = "raw", "log1p"
GENES = {
    "all_aml": "all_aml",
    "golub": "expr_golub-1999-v2",
    "nutt": "expr_nutt-2003-v1",
    "lung": "lung_bhattacharjee",
}
WORDS = ("tr12", "cstr", "graft_phos")
NAMES = {
    f"{name}, {how}": (name, how) for name in (*GENES, *WORDS) for how in (RAW, LOG)
}


def load(name: str) -> Dataset:
    table, how = NAMES[name]
    if table in GENES:
        data = expression.load(GENES[table])
        X, y, note = data.X, data.y, data.note
    else:
        stored = read(table)
        X, y, note = counts(stored), stored["y"], "counts of words"
    return Dataset(name, X if how == RAW else np.log1p(X), y, note=note)
