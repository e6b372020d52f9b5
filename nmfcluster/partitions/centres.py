"""Labels of new samples by many runs of k-means at once."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans

from nmfcluster._arrays.storage import row_blocks

_PRODUCTS = 2**19  # of a sample and a centre that are held at a time: 4 MiB


@dataclass(frozen=True)
class Centres:
    """The centres of several runs of k-means, of which one product finds the nearest for each.

    Attributes
    ----------
    columns : ndarray of shape (n_features, n_centres)
        Less the origin; 0 at features that a run did not see.
    halves : ndarray of shape (n_centres,)
        Half of their squared lengths.
    ends : ndarray of shape (n_estimators + 1,), int
        Where the centres of each begin, and the last ones end.
    origin : ndarray of shape (n_features,)
        What centres are counted from: far from 0 the squares of their lengths would cancel.
    """

    columns: np.ndarray
    halves: np.ndarray
    ends: np.ndarray
    origin: np.ndarray

    @classmethod
    def of(cls, estimators: list[Any], features: list[np.ndarray | None]) -> Centres | None:
        """Return the centres of estimators; None if one of them is no k-means.

        Parameters
        ----------
        estimators : list of estimator
        features : list of ndarray or None
            Features that each was fitted on; None: all.
        """
        if any(type(estimator) not in (KMeans, MiniBatchKMeans) for estimator in estimators):
            return None
        pairs = list(zip(estimators, features, strict=True))
        n_features = max(e.n_features_in_ if f is None else int(f.max()) + 1 for e, f in pairs)
        centres = []
        for estimator, chosen in pairs:
            fitted = estimator.cluster_centers_
            padded = np.full((len(fitted), n_features), np.nan, dtype=fitted.dtype)
            padded[:, slice(None) if chosen is None else chosen] = fitted
            centres.append(padded)
        every = np.concatenate(centres)
        origin = np.nansum(every, axis=0) / np.maximum((~np.isnan(every)).sum(axis=0), 1)
        origin = origin.astype(every.dtype)
        every = np.nan_to_num(every - origin)
        halves = (every**2).sum(axis=1) / 2
        return cls(every.T.copy(), halves, np.cumsum([0, *map(len, centres)]), origin)

    def nearest(self, X: np.ndarray) -> np.ndarray:
        """Return the nearest centre of every run, (n_samples, n_estimators), int."""
        labels = np.empty((len(X), len(self.ends) - 1), dtype=np.int64)
        for rows in row_blocks(len(X), max(1, _PRODUCTS // len(self.halves))):
            near = (X[rows, : len(self.origin)] - self.origin) @ self.columns - self.halves
            for t, (first, last) in enumerate(pairwise(self.ends)):
                labels[rows, t] = near[:, first:last].argmax(axis=1)
        return labels
