"""What the tests of stacks share: matrices, samples that are missing, a classifier."""

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin

from nmfcluster import SimilarityStack
from nmfcluster.stack.container import check_cross, check_square

STORAGES = {"dense": np.asarray, "sparse": sp.csr_array}
NAN = np.nan
SQUARE = np.ones((3, 3))


def matrices(n=7, m=None, n_sources=3, seed=0):
    """Draw nonnegative matrices with zeros; symmetric if m is not given."""
    rng = np.random.default_rng(seed)
    shape = (n_sources, n, n if m is None else m)
    drawn = rng.uniform(0.1, 1, size=shape) * (rng.uniform(size=shape) < 0.6)
    return list(
        drawn if m is not None else drawn + drawn.transpose(0, 2, 1) + np.eye(n)
    )


def mixed(n=7, m=None, seed=0):
    """Return a stack of a dense, a sparse and a dense matrix, and the array that it stands for."""
    drawn = matrices(n, m, seed=seed)
    return SimilarityStack([drawn[0], sp.csr_array(drawn[1]), drawn[2]]), np.stack(
        drawn, axis=-1
    )


def without(S, *lost):
    """Return a similarity with NaN for the samples that were lost."""
    S = S.copy()
    for sample in lost:
        S[sample] = S[:, sample] = NAN
    return S


def marked(S, *lost):
    """Return a sparse similarity with one NaN, on the diagonal, for each sample that was lost."""
    S = np.nan_to_num(without(S, *lost))
    S[list(lost), list(lost)] = NAN
    return sp.csr_array(S)


def whole_nan(S, *lost):
    return sp.csr_array(without(S, *lost))


def nan_in(S, *positions):
    S = S.copy()
    for position in positions:
        S[position] = NAN
    return S


def blobs(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 4)) + 4 * y[:, None] * np.array([1, 0, 1, 0]), y


def features(n=20, width=4, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 1, size=(n, width))


def dense(stack):
    return np.moveaxis(stack.toarray(), 2, 0)


def square_sources(stack):
    """Return the matrices of a stack, which can be fitted, and what they saw."""
    for i, source in enumerate(stack._held):
        check_square(source, f"source {i}", np.arange(len(stack)))
    return list(stack.filled()), stack.seen()


def cross_sources(stack, seen):
    """Return the matrices of a stack of new samples, which can be placed, and what they saw."""
    for i, source in enumerate(stack._held):
        check_cross(source, seen[:, i], f"source {i}", np.arange(len(seen)))
    return list(stack.filled()), stack.seen()


class NearestSample(ClassifierMixin, BaseEstimator):
    """A classifier by the label of the most similar sample, by a weighted sum of sources."""

    def __init__(self, first=1.0):
        self.first = first

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit(self, X, y):
        sources, self.seen_ = square_sources(X)
        assert all(source.shape == (len(y), len(y)) for source in sources)
        self.classes_, self.labels_ = np.unique(y), np.asarray(y)
        self.sparse_ = [sp.issparse(source) for source in sources]
        return self

    def predict(self, X):
        sources, _ = cross_sources(X, self.seen_)
        assert [sp.issparse(source) for source in sources] == self.sparse_
        total = sum(
            source.toarray() if sp.issparse(source) else source
            for source in sources[1:]
        )
        first = sources[0].toarray() if sp.issparse(sources[0]) else sources[0]
        return self.labels_[(self.first * first + total).argmax(axis=1)]
