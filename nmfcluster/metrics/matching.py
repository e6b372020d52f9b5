"""Which component of one factorization is which of another."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.utils import check_array

from nmfcluster._arrays.tables import check_readable, columns_in_order_of, row_names

__all__ = ["match_components"]


def match_components(components_a: Any, components_b: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return which component of b is the counterpart of every component of a.

    Pairs are one to one, such that their cosines have the largest sum. So programs keep their
    names from one fit to the next, and planted ones are counted as found, with a cosine of .9 at
    least, say.

    Parameters
    ----------
    components_a : array-like of shape (n_components_a, n_features)
        Nonnegative, as `components_` of an NMF, such as those of an earlier fit.
    components_b : array-like of shape (n_components_b, n_features)
        Others of the same features. Of two data frames, the columns are matched by their names.

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
    overlap_match : Compares sets of features, which may be in several clusters.

    Examples
    --------
    >>> from nmfcluster.metrics import match_components
    >>> counterparts, cosines = match_components([[3, 4, 0], [0, 0, 1]], [[0, 0, 2], [1, 0, 0]])
    >>> counterparts, cosines
    (array([1, 0]), array([0.6, 1. ]))
    """
    own = row_names(getattr(components_a, "columns", None))
    components_b = columns_in_order_of(own, components_b, "components_b", "components_a")
    a, b = _read(components_a, "components_a"), _read(components_b, "components_b")
    if a.shape[1] != b.shape[1]:
        raise ValueError(
            f"components_a and components_b must have the same features, got {a.shape[1]} and "
            f"{b.shape[1]}."
        )
    cosines = np.minimum(a @ b.T, 1)  # it may be more by rounding
    rows, columns = linear_sum_assignment(cosines, maximize=True)
    counterparts, found = np.full(len(a), -1), np.zeros(len(a))
    similar = cosines[rows, columns] > 0
    counterparts[rows[similar]] = columns[similar]
    found[rows] = cosines[rows, columns]
    return counterparts, found


def _read(components: Any, name: str) -> np.ndarray:
    """Return components with rows of length 1; a row of zeros stays as it is."""
    check_readable(components, name)
    rows = check_array(components, dtype=np.float64, input_name=name)
    if rows.min() < 0:
        raise ValueError(f"{name} must have no entry below 0, got {rows.min():.3g}.")
    rows = rows / np.maximum(rows.max(axis=1, keepdims=True), np.finfo(float).tiny)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1))
