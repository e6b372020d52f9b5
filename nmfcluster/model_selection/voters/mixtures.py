"""Gaussian mixtures: how many bumps of density their components make together."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import combinations

import numpy as np
from sklearn.mixture import GaussianMixture

_ONE_BUMP = 0.98  # of the lower of two peaks, which a density between them need not fall below
_POINTS = 41  # on the ridge line between two components
_MAX_ITER = 1000  # enough for EM to end by its tolerance
_TOL = 1e-3  # of the mean log likelihood, that an iteration of EM must gain
_OF_COST = 0.01  # of what BIC takes for a component, that it must gain if that is more


def fitted_mixtures(
    X: np.ndarray, candidates: Iterable[int], seed: int
) -> dict[int, GaussianMixture]:
    """Return mixtures of full covariances by their number of components, where there are any.

    EM ends where an iteration gains too little to matter to BIC, which takes half the logarithm of
    n for each of the (p + 1) (p + 2) / 2 parameters of a component.
    """
    n, p = X.shape
    cost = (p + 1) * (p + 2) / 2 * np.log(n) / 2
    tol = max(_TOL, _OF_COST * cost / n)
    found = {}
    for k in candidates:
        with suppress(ValueError):  # a covariance that is singular in spite of what is added to it
            mixture = GaussianMixture(k, tol=tol, max_iter=_MAX_ITER, random_state=seed)
            found[k] = mixture.fit(X)
    return found


def n_bumps(mixture: GaussianMixture) -> int:
    """Return the number of components, those counted as one that make one bump.

    The density of two components has all its modes on the ridge line between their means [1]_.
    They make one bump if the mixture falls nowhere on it below 98 % of the lower of two peaks.
    What makes one bump with a third makes one with it, too.

    Parameters
    ----------
    mixture : GaussianMixture
        Fitted, with full covariances.

    Returns
    -------
    int

    References
    ----------
    .. [1] S. Ray, B. G. Lindsay. The topography of multivariate normal mixtures. Annals of
       Statistics 33, 2005.
    """
    k = mixture.n_components
    bump = np.arange(k)
    for i, j in combinations(range(k), 2):
        if bump[i] != bump[j] and lowest_between(mixture, i, j) > _ONE_BUMP:
            bump[bump == bump[j]] = bump[i]
    return len(np.unique(bump))


def lowest_between(mixture: GaussianMixture, i: int, j: int) -> float:
    """Return how low the density falls on the ridge line of two components, over the lower peak.

    1 if it only rises, only falls, or rises and then falls.
    """
    share = np.linspace(0, 1, _POINTS)[:, None, None]
    A, B = (mixture.precisions_[c] for c in (i, j))
    a, b = (mixture.precisions_[c] @ mixture.means_[c] for c in (i, j))
    both = (1 - share) * A + share * B
    line = np.linalg.solve(both, ((1 - share[..., 0]) * a + share[..., 0] * b)[..., None])[..., 0]
    density = mixture.score_samples(line)  # its logarithm
    before = np.maximum.accumulate(density)
    after = np.maximum.accumulate(density[::-1])[::-1]
    return float(np.exp((density - np.minimum(before, after)).min()))
