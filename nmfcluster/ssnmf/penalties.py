"""Must-link and cannot-link pairs in the matrix that is factorized."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nmfcluster._arrays.storage import filled_with, stored_entries
from nmfcluster.similarity import Explicit, Similarity, inner
from nmfcluster.similarity.measures import extremes, large_entry, squared_norm


@dataclass(frozen=True)
class Constrained:
    """A similarity with its constraints.

    Attributes
    ----------
    A : Similarity of shape (n_groups, n_groups)
        What is to be factorized; groups are single samples unless must-links are hard.
    friendly : Similarity of shape (n_groups, n_groups)
        The same without the cannot-links, whose eigenvectors make the better start: the penalties
        are spikes that would draw eigenvectors to single samples.
    constant : float
        Squared norm of the constrained similarity of all samples.
    groups : ndarray of shape (n_samples,), int
        Group of every sample.
    constrained : ndarray of shape (n_groups,), bool
        Whether a sample of the group is in a constraint.
    unit : float
        What `alpha` and `beta` were multiplied by.
    """

    A: Similarity
    friendly: Similarity
    constant: float
    groups: np.ndarray
    constrained: np.ndarray
    unit: float

    @property
    def sizes(self) -> np.ndarray:
        """Number of samples in every group, (n_groups,)."""
        return np.bincount(self.groups)

    def expand(self, h: np.ndarray) -> np.ndarray:
        """Return the factor of all samples, (n_samples, k), from that of the groups."""
        root = np.sqrt(self.sizes).astype(h.dtype)
        return (h / root[:, None])[self.groups]


def constrain(
    W: Similarity,
    must_link: Any,
    cannot_link: Any,
    *,
    alpha: float,
    beta: float,
    raw_unit: bool = False,
    replace: bool = False,
    groups: np.ndarray | None = None,
) -> Constrained:
    r"""Reward must-link pairs and penalise cannot-link pairs in a similarity.

    :math:`\tilde A = W + \alpha u A - \beta u B` with the weights of the pairs in A and B: eq.
    24 of Li et al. (2007), and eq. 3 of Chen et al. (2007) with the signs of a similarity. u is the
    0.999-quantile of the entries of W off its diagonal, so that the same weights mean the same for
    all data.

    Parameters
    ----------
    W : Similarity of shape (n, n)
    must_link, cannot_link : sparse matrix of shape (n, n)
        A and B: symmetric, nonnegative, with empty diagonals.
    alpha, beta : float
    raw_unit : bool, default=False
        u = 1.
    replace : bool, default=False
        Put the largest entry of W in the place of those of must-link pairs and the smallest in that
        of cannot-link pairs, as in section 4.3 of Chen et al.; alpha, beta and weights are not
        used.
    groups : ndarray of shape (n,), int, default=None
        Samples that share their row of the factor: hard must-links, eq. 34 of Li et al. The
        must-link matrix is then not used.

    Returns
    -------
    Constrained
    """
    unit = 1.0 if raw_unit or replace else large_entry(W)
    smallest, largest = extremes(W) if replace else (None, None)
    friendly = W
    if groups is None:
        friendly = _sum(W, _change(W, must_link, alpha * unit, largest))
    else:
        cannot_link = _between(cannot_link, groups)
    penalty = _change(friendly, cannot_link, -beta * unit, smallest)
    constant = squared_norm(friendly)
    if penalty is not None:
        constant += 2 * inner(friendly, penalty) + inner(penalty, penalty)
    if not np.isfinite(constant):
        raise ValueError(
            "the similarities, or the weights of the constraints times alpha or beta, are too "
            f"large to be squared in {W.dtype}; scale X or the weights."
        )
    if groups is None:
        groups = np.arange(W.shape[0])
    else:
        friendly = friendly.collapse(groups)
        penalty = None if penalty is None else penalty.collapse(groups)
    linked = np.bincount(groups, weights=np.diff(must_link.indptr) + np.diff(cannot_link.indptr))
    return Constrained(_sum(friendly, penalty), friendly, constant, groups, linked > 0, unit)


def _sum(A: Similarity, change: Similarity | None) -> Similarity:
    return A if change is None else A + change


def _between(pairs: Any, groups: np.ndarray) -> Any:
    """Return the pairs that join two groups: those inside one cannot be had."""
    rows, columns, weights = stored_entries(pairs)
    return filled_with(pairs, np.where(groups[rows] == groups[columns], 0, weights))


def _change(W: Similarity, pairs: Any, amount: float, value: float | None) -> Similarity | None:
    """Return what is added to W at the pairs: `amount` of their weights, or what leads to `value`.

    None where nothing is.
    """
    if value is not None:
        rows, columns, _ = stored_entries(pairs)
        pairs = filled_with(pairs, value - W.entries(rows, columns))
    elif amount == 0:
        return None
    else:
        pairs = pairs * amount
    return Explicit(pairs.astype(W.dtype)) if pairs.nnz else None
