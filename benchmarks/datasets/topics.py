"""Random documents about topics, of any number and length."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import Dataset


def topics(
    n: int,
    n_words: int,
    n_topics: int,
    length: int = 100,
    own: float = 0.2,
    seed: int = 0,
) -> Dataset:
    """Draw word counts: a share `own` of a document's words comes from the words of its topic.

    The frequency of a word is proportional to one over its rank, among all words and among those
    of a topic. Each topic has equally many words, drawn from all.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(n_topics, size=n)
    lengths = 1 + rng.poisson(length, size=n)
    documents = np.repeat(np.arange(n, dtype=np.int32), lengths)
    words = _by_rank(rng, n_words, len(documents))
    vocabularies = np.stack([rng.permutation(n_words) for _ in range(n_topics)])
    vocabularies = vocabularies[:, : max(n_words // n_topics, 1)]
    topical = np.flatnonzero(rng.random(len(documents)) < own)
    ranks = _by_rank(rng, vocabularies.shape[1], len(topical))
    words[topical] = vocabularies[y[documents[topical]], ranks]
    X = sp.csr_array((np.ones(len(words)), (documents, words)), shape=(n, n_words))
    X.sum_duplicates()
    return Dataset(f"{n_topics} topics", X, y, note="drawn")


def _by_rank(rng: np.random.Generator, n_words: int, size: int) -> np.ndarray:
    chance = np.cumsum(1 / np.arange(1, n_words + 1))
    return np.searchsorted(chance, rng.random(size) * chance[-1]).astype(np.int32)
