"""The cells of a matrix of pairs of samples: samples put in order, and means over pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

import nmfcluster.display.style as look
from nmfcluster._arrays.arguments import normalised_weights
from nmfcluster._arrays.labels import over_seen
from nmfcluster._arrays.storage import as_dense, group_indicator, require_symmetric, split_unknown
from nmfcluster._arrays.tables import check_readable
from nmfcluster.partitions.ensemble import consensus_matrix

SHARE = "co-association"  # whose colours run from 0 to 1


class Pairs:
    """Values of pairs of samples that were handed in, some of them unknown.

    Parameters
    ----------
    matrix : {array-like, sparse matrix} of shape (n, n)
        Symmetric, nonnegative; NaN in an array: not known.
    """

    def __init__(self, matrix: Any) -> None:
        check_readable(matrix, "matrix")
        options: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
        A = check_array(matrix, ensure_all_finite="allow-nan", input_name="matrix", **options)
        if A.shape[0] != A.shape[1]:
            raise ValueError(f"matrix must be square, got shape {A.shape}.")
        self._A, self._known = split_unknown(A, "matrix")
        if self._A.min() < 0:
            raise ValueError(f"matrix must hold no negative value, got {self._A.min():.3g}.")
        require_symmetric(self._A, "matrix")

    @property
    def largest(self) -> float:
        """The largest value."""
        return float(self._A.max())

    def __len__(self) -> int:
        return int(self._A.shape[0])

    def of_cells(self, groups: np.ndarray) -> np.ndarray:
        """Return the mean over all pairs of samples of two cells; NaN where none is known."""
        E = group_indicator(groups)  # scaled, as are sums and counts then
        roots = np.sqrt(np.bincount(groups))
        counts = np.outer(roots, roots) if self._known is None else E.T @ (self._known @ E)
        return over_seen(as_dense(E.T @ (self._A @ E)), np.asarray(counts))

    def confidence(self, clusters: np.ndarray) -> np.ndarray:
        """Return a sample's mean over its pairs with the others of its cluster; 0 if unknown."""
        E, sizes = group_indicator(clusters), np.bincount(clusters)
        own, root = (np.arange(len(clusters)), clusters), np.sqrt(sizes)[clusters]
        together = as_dense(self._A @ E)[own] * root - self._A.diagonal()
        if self._known is None:
            counts = sizes[clusters] - 1.0
        else:
            counts = np.rint(as_dense(self._known @ E)[own] * root) - self._known.diagonal()
        return np.nan_to_num(over_seen(together, counts))


def cells_of(
    labels: np.ndarray, confidences: np.ndarray, max_cells: int
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Return the order of samples, the cell of each in it, and what a display keeps of them."""
    order, groups, clusters = look.divide_into_cells(labels, confidences, max_cells)
    cells = {"cell_sizes": np.bincount(groups), "cell_labels": clusters, "order": order}
    return order, groups, cells


def in_own_order(order: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Return the cell of every sample, in the samples' own order."""
    found = np.empty_like(groups)
    found[order] = groups
    return found


def of_estimator(estimator: Any, max_cells: int) -> dict[str, Any]:
    """Return what a display is made of: what a fitted estimator says of pairs of samples."""
    labels, names = _name_unassigned(estimator.labels_)
    confidences = getattr(estimator, "confidence_", None)
    if confidences is None:
        confidences = estimator.membership_.max(axis=1)
    order, groups, cells = cells_of(labels, confidences, max_cells)
    sizes = cells["cell_sizes"]
    if not hasattr(estimator, "partitions_"):
        means = group_indicator(groups).T @ estimator.membership_[order] / np.sqrt(sizes)[:, None]
        matrix, value_name = means @ means.T, "co-membership"
    elif estimator.partitions_ is None:
        collapsed = estimator._source_.similarity.collapse(in_own_order(order, groups)).toarray()
        matrix, value_name = collapsed / np.sqrt(np.outer(sizes, sizes)), "similarity"
    else:
        codes = estimator.partitions_[order]
        weights = getattr(estimator, "weights_", None)  # an NMFMetaCluster has none
        weights = normalised_weights(weights, codes.shape[1])
        matrix, value_name = consensus_matrix(codes, weights, groups), SHARE
    return {"matrix": matrix, "names": names, "value_name": value_name, **cells}


def _name_unassigned(labels: np.ndarray) -> tuple[np.ndarray, list[str] | None]:
    """Make a last cluster of the samples that are in none, and name all; None if all are in one."""
    if labels.min() >= 0:
        return labels, None
    last = int(labels.max()) + 1
    return np.where(labels < 0, last, labels), [*map(str, range(last)), "none"]
