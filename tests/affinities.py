"""Every affinity by its definition, written out sample by sample, and samples to try it on."""

from itertools import combinations

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel

NAMED = ["linear", "cosine", "rbf", "nearest_neighbors", "landmarks"]
AFFINITIES = [*NAMED, "precomputed", laplacian_kernel]
FORMS = {"dense": np.asarray, "sparse": sp.csr_array, "sparse matrix": sp.csr_matrix}


def samples(seed=0, n=25, width=4, negative=False):
    """Draw samples with zeros, most of them nonnegative, no two at one distance."""
    rng = np.random.default_rng(seed)
    X = (
        rng.normal(size=(n, width))
        if negative
        else rng.uniform(0.1, 1, size=(n, width))
    )
    return X * (rng.uniform(size=(n, width)) < 0.8) + 1e-3 * rng.uniform(
        size=(n, width)
    )


# --- the definitions ---------------------------------------------------------------------------


def square(x, y):
    return ((x - y) ** 2).sum()


def median_gamma(X):
    squares = [square(X[i], X[j]) for i in range(len(X)) for j in range(i)]
    return 1 / np.median([s for s in squares if s > 0])


def nearest(distances, k):
    return sorted(range(len(distances)), key=lambda j: distances[j])[:k]


def differing(X):
    """Return the rows that differ, and which of them each row is."""
    rows = sorted({tuple(row) for row in X})
    return np.array(rows), [rows.index(tuple(row)) for row in X]


def steps(D):
    """Return the steps of Kruskal's tree, the longest first."""
    part, found = list(range(len(D))), []
    for one, other in sorted(combinations(range(len(D)), 2), key=lambda pair: D[pair]):
        if part[one] != part[other]:
            part = [part[one] if p == part[other] else p for p in part]
            found.append(D[one, other])
    return found[::-1]


def local_scales(X, k, longest=np.inf):
    """Return distances of rows that differ, neighbours of each, its scale, and the least scale."""
    n = len(X)
    D = np.sqrt([[square(x, y) for y in X] for x in X])
    far = np.array([sorted(np.delete(D[i], i))[min(k, n - 1) - 1] for i in range(n)])
    near = [
        [j for j in range(n) if j != i and D[i, j] <= far[i] * (1 + 1e-6)]
        for i in range(n)
    ]
    scales = np.minimum(far, longest)
    return D, near, np.maximum(scales, 0.3 * scales.mean()), 0.3 * scales.mean()


def literal_graph(X, k, longest=np.inf):
    """Return the similarities of samples; equal ones have 1, and a sample to itself."""
    rows, which = differing(X)
    D, neighbours, s, _ = local_scales(rows, k, longest)
    W = np.eye(len(rows))
    for i in range(len(rows)):
        for j in range(len(rows)):
            if j in neighbours[i] or i in neighbours[j]:
                W[i, j] = np.exp(-(D[i, j] ** 2) / (s[i] * s[j]))
    return W[np.ix_(which, which)]


def literal_graph_of_new(X, new, k):
    rows, which = differing(X)
    _, _, s, least = local_scales(rows, k)
    W = np.zeros((len(new), len(rows)))
    for i, x in enumerate(new):
        d = np.sqrt([square(x, y) for y in rows])
        found = nearest(d, min(k, len(rows) - 1))
        own = max(d[found[-1]], least)
        for j in found:
            W[i, j] = np.exp(-(d[j] ** 2) / (own * s[j]))
    return W[:, which]


def literal_landmarks(X, rows, k):
    """Return the similarities of rows to X where all of X are landmarks."""

    def weights(samples):
        B = np.zeros((len(samples), len(X)))
        for b, x in zip(B, samples, strict=True):
            d = np.sqrt([square(x, y) for y in X])
            found = nearest(d, min(k, len(X)))
            b[found] = np.exp(-((d[found] / d[found[-1]]) ** 2))
            b /= b.sum()
        return B

    B = weights(X)
    return weights(rows) @ np.diag(1 / B.sum(axis=0)) @ B.T


def cosine(x, y):
    return x @ y / np.sqrt((x @ x) * (y @ y)) if x.any() and y.any() else 0.0


def literal(affinity, X, new=None, k=10, gamma=None):
    """Return W of X, or the similarities of new samples to those of X."""
    rows = X if new is None else new
    if affinity == "nearest_neighbors":
        return literal_graph(X, k) if new is None else literal_graph_of_new(X, new, k)
    if affinity == "landmarks":
        return literal_landmarks(X, rows, 5)
    if affinity == "rbf":
        gamma = median_gamma(X) if gamma is None else gamma
    pair = {
        "linear": lambda x, y: x @ y,
        "cosine": cosine,
        "rbf": lambda x, y: np.exp(-gamma * square(x, y)),
        laplacian_kernel: lambda x, y: np.exp(-abs(x - y).sum() / len(x)),
    }[affinity]
    return np.array([[pair(x, y) for y in X] for x in rows])


def literal_normalized(W, cross=None, to_itself=False):
    """Return D^-1/2 W D^-1/2, or new similarities divided by the roots of both degrees."""
    W = W if to_itself else W - np.diag(np.diag(W))
    d = W.sum(axis=1)
    root = np.array([1 / np.sqrt(x) if x > 0 else 0 for x in d])
    if cross is None:
        return root[:, None] * W * root
    own = np.array([1 / np.sqrt(x) if x > 0 else 0 for x in cross.sum(axis=1)])
    return own[:, None] * cross * root


def given(affinity, X, new=None):
    """Return what is handed to `make_affinity` and to `cross`, and the definitions' W and cross."""
    new = samples(9, 6, X.shape[1]) if new is None else new
    if affinity == "precomputed":
        S = literal("rbf", X, gamma=1.0)
        C = literal("rbf", X, new, gamma=1.0)
        return S, C, S, C
    return X, new, literal(affinity, X), literal(affinity, X, new)
