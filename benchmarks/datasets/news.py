"""Texts in several views: stories of three newspapers, segments of one, or one prepared anew."""

from __future__ import annotations

import scipy.sparse as sp
from sklearn.preprocessing import normalize

from benchmarks.datasets import read
from benchmarks.datasets.text import weighted
from benchmarks.datasets.views import Views, of_features

TFIDF = "tf-idf of word counts, rows of unit length"
NAMES = {
    "3sources": TFIDF,
    "bbcsport": "the words as weighted at the source, rows of unit length",
    "bbc4view": TFIDF,
    "ngs": f"{TFIDF}; the words of a post prepared in three ways",
}
KERNELS = ("cosine", "rbf")


def load(name: str) -> Views:
    data = read(name)
    names = data["view_names"]
    counted = [sp.csr_array(data[f"V{i}"].astype(float)) for i in range(len(names))]
    texts = [
        normalize(V) if name == "bbcsport" else weighted(V, "tfidf") for V in counted
    ]
    views = [sp.csr_array(text) for text in texts]
    return of_features(name, views, names, data["y"], NAMES[name], KERNELS)
