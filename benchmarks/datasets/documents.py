"""Word counts as in Chen et al. (2007): the tenth of the words that say most about the class."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import Dataset, read
from benchmarks.datasets.text import counts

N_DRAWS = 5
OWN = ("graft_phos", "england_heart")
NAMES = {
    **dict.fromkeys(OWN, ""),
    "interest_trade": "219 of 319 trade documents drawn, others than the paper's",
    **{f"fbis{k}": f"{k} classes drawn, others than the paper's" for k in range(2, 6)},
}


def load(name: str) -> Dataset:
    data = read("fbis" if name.startswith("fbis") else name)
    if name.startswith("fbis"):
        draws = tuple(data[f"{name}_seed{i}"] for i in range(N_DRAWS))
    else:
        draws = tuple(data["subsample"]) if "subsample" in data else ()
    return Dataset(
        name,
        counts(data),
        data["y"],
        name in OWN,
        NAMES[name],
        draws,
        prepare=informative_words,
    )


def informative_words(
    X: sp.csr_array, y: np.ndarray, share: float = 0.1
) -> sp.csr_array:
    """Keep this share of the words that occur: those whose presence says most of the class."""
    X = X[:, np.flatnonzero(X.sum(axis=0))]
    kept = np.argsort(-information(X, y), kind="stable")[: round(share * X.shape[1])]
    return X[:, np.sort(kept)]


def information(X: sp.csr_array, y: np.ndarray) -> np.ndarray:
    """Return the mutual information, in nats, between the class and the presence of each word."""
    classes = (y == np.unique(y)[:, None]).astype(float)
    present = classes @ (X > 0).astype(float) / len(y)
    prior = classes.mean(axis=1, keepdims=True)
    total = np.zeros(X.shape[1])
    for joint in (present, prior - present):
        expected = prior * joint.sum(axis=0)
        ratio = np.divide(joint, expected, out=np.ones_like(joint), where=joint > 0)
        total += (joint * np.log(ratio)).sum(axis=0)
    return total
