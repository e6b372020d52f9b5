"""Every set of features in the data folder: dense ones standardised, counts of words as tf-idf.

They are for means over many sets. Of a larger set `MOST` rows are drawn, always the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import scale

from benchmarks.datasets import Dataset, read
from benchmarks.datasets.text import counts, weighted

MOST = 1_000  # rows, for speed
DENSE = (
    "all_aml",
    "digits389",
    "ecoli",
    "expr_golub-1999-v2",
    "expr_nutt-2003-v1",
    "glass",
    "ionosphere",
    "iris",
    "letterIJL",
    "lung_bhattacharjee",
    "optdigits389",
    "soybean",
    "thyroid",
    "usenc_letters",
    "usenc_pendigits",
    "usenc_usps",
    "zoo",
)
TEXT = (
    "cstr",
    "england_heart",
    "fbis",
    "graft_phos",
    "interest_trade",
    "k1b",
    "oh0",
    "oh5",
    "re0",
    "reuters10",
    "tr12",
    "webace",
    "webkb4",
)
STANDARDISED, TFIDF = "standardised", "tf-idf"
# made the same way of scikit-learn's copy, in `bundled`
BUNDLED = ("wine, standardised",)
NAMES = {f"{name}, {STANDARDISED}": name for name in DENSE}
NAMES |= {f"{name}, {TFIDF}": name for name in TEXT}
ALL = tuple(
    sorted((*NAMES, *BUNDLED), key=lambda name: (name.endswith(TFIDF), name.lower()))
)

_VIEWS = "several views of the same samples, which are one question: fusion"
LEFT_OUT = {
    **dict.fromkeys(("100leaves", "3sources", "bbc4view", "bbcsport", "mfeat"), _VIEWS),
    **dict.fromkeys(("msrc_v1", "ngs"), _VIEWS),
    "k_selection": "drawn shapes whose number of clusters is the question",
    "protein213": "dissimilarities, no features",
    "yeast_mips3": "six similarities, no features",
}


def load(name: str) -> Dataset:
    data = read(NAMES[name])
    words = name.endswith(TFIDF)
    X = counts(data) if words else data["X"].astype(float)
    n, note = X.shape[0], "all rows"
    draws: tuple[np.ndarray, ...] = ()
    if n > MOST:
        note = f"{MOST:,} of {n:,} rows"
        draws = (some_rows(n, MOST),)
    prepare = tfidf if words else standardised
    return Dataset(name, X, data["y"], note=note, draws=draws, prepare=prepare)


def some_rows(n: int, most: int) -> np.ndarray:
    """Return which of n rows are drawn, always the same."""
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def at_most(X: Any, y: np.ndarray, most: int) -> tuple[Any, np.ndarray]:
    """Return at most so many rows of a set, always the same."""
    if len(y) <= most:
        return X, y
    rows = some_rows(len(y), most)
    return X[rows], y[rows]


def left_out() -> dict[str, str]:
    """Return the sets that are left out and why, as a report lists what was not run."""
    return {f"{name} (left out)": reason for name, reason in LEFT_OUT.items()}


def standardised(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Give every feature mean 0 and variance 1; one that never changes is 0."""
    return scale(X)


def tfidf(X: sp.csr_array, y: np.ndarray) -> Any:
    """Weight counts by how few documents hold the word; rows have length 1."""
    return sp.csr_array(weighted(X, "tfidf"))
