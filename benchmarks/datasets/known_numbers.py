"""Samples whose number of clusters is known: a collection of point sets, none, and two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.datasets import read

COLLECTION = "k_selection"
MOST_CLUSTERS, MOST_SAMPLES = 18, 3_100  # of the sets of the collection that are taken
NONE = ("Gaussian", "heavy-tailed", "uniform box", "ring", "correlated")
SAMPLES, FEATURES = (100, 2_000), (2, 50)  # of drawn sets, uniform in their logarithms
SPREAD = 0.15  # of a ring around its radius
LEAST_FREEDOM = 3  # degrees of freedom of heavy tails, from this to twice as many
APART = (3.0, 3.5, 4.0)  # standard deviations between the means of two clusters
SHARES = (0.5, 0.35)  # of the samples in the first of two


class Points(NamedTuple):
    """Samples, and how many clusters they have."""

    name: str
    X: np.ndarray
    k: int


def collection() -> Iterator[Points]:
    """Yield the point sets of the collection that are not too large, nor their number."""
    arrays = read(COLLECTION)
    for name in sorted({key.split("/")[0] for key in arrays}):
        X, k = arrays[f"{name}/X"].astype(float), len(np.unique(arrays[f"{name}/y"]))
        if k <= MOST_CLUSTERS and len(X) <= MOST_SAMPLES:
            yield Points(name, X, k)


def unimodal(i: int) -> Points:
    """Draw samples without clusters, of all kinds in turn."""
    rng = np.random.default_rng((1, i))
    kind, (n, p) = NONE[i % len(NONE)], _shape(rng)
    E = rng.normal(size=(n, p))
    if kind == "heavy-tailed":
        freedom = rng.uniform(LEAST_FREEDOM, 2 * LEAST_FREEDOM)
        E /= np.sqrt(rng.chisquare(freedom, size=(n, 1)) / freedom)
    elif kind == "uniform box":
        E = rng.uniform(size=(n, p))
    elif kind == "ring":
        angle = rng.uniform(0, 2 * np.pi, size=n)
        E *= SPREAD
        E[:, :2] += np.column_stack([np.cos(angle), np.sin(angle)])
    elif kind == "correlated":
        E = E @ (rng.normal(size=(p, p)) * rng.uniform(0.2, 3, size=p))
    return Points(kind, E, 1)


def two(i: int) -> Points:
    """Draw two Gaussian clusters that overlap moderately."""
    rng = np.random.default_rng((2, i))
    apart, (n, p) = APART[i % len(APART)], _shape(rng)
    X = rng.normal(size=(n, p))
    X[:, 0] += apart * (rng.uniform(size=n) < SHARES[i % len(SHARES)])
    turned = X @ np.linalg.qr(rng.normal(size=(p, p)))[0]
    return Points(f"two, {apart:g} standard deviations apart", turned, 2)


def _shape(rng: np.random.Generator) -> tuple[int, int]:
    n, p = (np.exp(rng.uniform(*np.log(limits))) for limits in (SAMPLES, FEATURES))
    return round(n), round(p)
