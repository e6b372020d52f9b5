"""MinMax (Mallapragada, Jin, Jain, ICPR 2008): the pairs that farthest-first queries ask about."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances


def farthest_pairs(
    X: Any, codes: np.ndarray, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Return pairs in the order in which they are asked, given the classes that answer.

    Explore: the sample farthest from all known ones is asked with each neighbourhood, the nearest
    first, until there is one for each class. Consolidate: the sample whose largest kernel with
    the known ones is smallest is asked so.
    """
    D, n, n_classes = euclidean_distances(X), len(codes), len(np.unique(codes))
    first = int(rng.integers(n))
    hoods, pairs = [[first]], []
    known = np.zeros(n, dtype=bool)
    known[first] = True
    while len(pairs) < count and not known.all():
        gaps = np.where(known, -1, D[:, known].min(axis=1))
        sample = int(gaps.argmax())
        near = sorted(hoods, key=lambda hood: D[sample, hood].min())
        for place, hood in enumerate(near):
            # it follows from the others
            if place == n_classes - 1 == len(near) - 1 and place:
                break
            pairs.append((sample, hood[0]))
            if codes[sample] == codes[hood[0]]:
                break
        home = next((hood for hood in hoods if codes[hood[0]] == codes[sample]), None)
        if home is None:
            hoods.append([sample])
        else:
            home.append(sample)
        known[sample] = True
    return np.array(pairs[:count], dtype=int).reshape(-1, 2)
