"""Matching of components of two factorizations, and members of soft clusters."""

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from nmfcluster._utils.validation import (
    column_names,
    read_matrix,
    reorder_columns,
    sample_names,
    warn,
)

# relative difference up to which sums in float64 are equal
_ROUNDING = 1e-12


def match_components(
    components_a: Any, components_b: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the counterpart among the components of b for every component of a.

    Components are matched one to one, such that the sum of their cosines is largest. Use it to
    keep the names of programs from one fit to the next, or to count how many planted components a
    fit has found, say with a cosine of at least 0.9.

    Parameters
    ----------
    components_a : array-like of shape (n_components_a, n_features)
        Nonnegative, as `components_` of an NMF, such as those of an earlier fit.
    components_b : array-like of shape (n_components_b, n_features)
        Others of the same features. The columns of two data frames are matched by their names;
        if one of the two has no names, they are matched by position, with a warning.

    Returns
    -------
    counterparts : ndarray of shape (n_components_a,), int
        Row of `components_b`; -1 where there is none, as b has fewer or shares no feature.
    cosines : ndarray of shape (n_components_a,)
        In [0, 1]; 0 where there is none.

    Raises
    ------
    ValueError
        If an entry is negative, NaN or infinite, or the numbers of features differ.

    See Also
    --------
    sklearn.metrics.consensus_score : Compares biclusters, sets of samples and of features.

    Examples
    --------
    >>> from nmfcluster.metrics import match_components
    >>> counterparts, cosines = match_components([[3, 4, 0], [0, 0, 1]], [[0, 0, 2], [1, 0, 0]])
    >>> counterparts, cosines
    (array([1, 0]), array([0.6, 1. ]))
    """
    own = column_names(components_a)
    other = column_names(components_b)
    if (sample_names(own) is None) != (sample_names(other) is None):
        warn(
            "One of components_a and components_b has no names: features are taken by position."
        )
    components_b = reorder_columns(own, components_b, "components_b", "components_a")
    a = _read_components(components_a, "components_a")
    b = _read_components(components_b, "components_b")
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            "components_a and components_b must have the same features, got "
            f"{a.shape[1]} and {b.shape[1]}."
        )
    all_cosines = np.minimum(a @ b.T, 1)  # above 1 by rounding
    rows, columns = linear_sum_assignment(all_cosines, maximize=True)
    cosines = np.zeros(len(a))
    cosines[rows] = all_cosines[rows, columns]
    counterparts = np.full(len(a), -1)
    counterparts[rows] = np.where(cosines[rows] > 0, columns, -1)
    return counterparts, cosines


def _read_components(components, name: str):
    """Return components with rows of length 1; a row of zeros stays as it is."""
    rows = read_matrix(components, name, dtype=np.float64, accept_sparse=False)
    if rows.min() < 0:
        raise ValueError(f"{name} must have no entry below 0, got {rows.min():.3g}.")
    rows = rows / np.maximum(rows.max(axis=1, keepdims=True), np.finfo(float).tiny)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1))


def find_members(memberships, threshold: float):
    """Return which memberships are above 0 and at least a share of the cluster's largest one."""
    memberships = memberships.astype(np.float64, copy=False)
    largest = memberships.max(axis=1, keepdims=True)
    zeros = np.zeros_like(memberships)
    shares = np.divide(memberships, largest, out=zeros, where=largest > 0)
    return (shares >= threshold * (1 - _ROUNDING)) & (shares > 0)
