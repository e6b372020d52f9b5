"""News stories with several texts each: of three newspapers, or two segments of one story."""

from __future__ import annotations

import scipy.sparse as sp
from sklearn.preprocessing import normalize

from benchmarks.datasets import read
from benchmarks.datasets.text import weighted
from benchmarks.datasets.views import Views, of_features

NAMES = {
    "3sources": "tf-idf of word counts, rows of unit length",
    "bbcsport": "the words as weighted at the source, rows of unit length",
}
KERNELS = ("cosine", "rbf")


def load(name: str) -> Views:
    data = read(name)
    names = data["view_names"]
    counted = [sp.csr_array(data[f"V{i}"].astype(float)) for i in range(len(names))]
    texts = [weighted(V, "tfidf") if name == "3sources" else normalize(V) for V in counted]
    views = [sp.csr_array(text) for text in texts]
    return of_features(name, views, names, data["y"], NAMES[name], KERNELS)
