"""Word counts as in Li, Ding and Jordan (2007): the 1000 words that most documents hold."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import normalize

from benchmarks.datasets import Dataset, read

NAMES = {
    "cstr": "475 of 476 documents, other preprocessing",
    "reuters10": "other draw, other preprocessing",
    "webace": "other preprocessing",
    "webkb4": "other preprocessing",
}
N_WORDS = 1000


def load(name: str) -> Dataset:
    data = read(name)
    X = counts(data)
    documents = np.diff(X.tocsc().indptr)  # number of documents that hold each word
    X = X[:, np.sort(np.argsort(-documents, kind="stable")[:N_WORDS])]
    draws = tuple(data["subsample"]) if "subsample" in data else ()
    return Dataset(name, X, data["y"], note=NAMES[name], draws=draws)


def counts(data: dict[str, np.ndarray]) -> sp.csr_array:
    """Return the word counts of documents from the parts of a sparse matrix."""
    parts = (data["data"].astype(float), data["indices"], data["indptr"])
    return sp.csr_array(parts, shape=tuple(data["shape"]))


def weighted(X: sp.csr_array, scheme: str) -> sp.csr_array:
    """Weight counts: "counts", rows of "unit" length, or "tfidf" rows of unit length."""
    if scheme == "counts":
        return X
    return normalize(X) if scheme == "unit" else TfidfTransformer().fit_transform(X)
