"""Tables without clusters, drawn so that they resemble a given one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from nmfcluster._arrays.draws import permuted_columns


class Reference(NamedTuple):
    """What tables without clusters are drawn from."""

    way: str
    table: Any  # (n, p)
    axes: Any  # (q, p), orthonormal rows; None: those of the columns
    low: np.ndarray  # (q,), least coordinate on every axis
    high: np.ndarray  # (q,), the largest; of Gaussian ones the standard deviation

    def drawn(self, rng: np.random.Generator) -> Any:
        """Return a table, (n, p)."""
        if self.way == "permuted":
            return permuted_columns(self.table, rng)
        shape = len(self.table), len(self.low)
        if self.way == "gaussian":
            coordinates = rng.standard_normal(shape) * self.high
        else:
            coordinates = rng.uniform(self.low, self.high, shape)
        if self.axes is None:
            return coordinates
        return coordinates @ self.axes + self.table.mean(axis=0)


def reference_of(table: Any, way: str) -> Reference:
    """Return what tables are drawn from that resemble one.

    Parameters
    ----------
    table : ndarray of shape (n, p), or csr_array where columns are permuted
    way : {"box", "pca", "gaussian", "permuted"}
        Uniform in the ranges of the columns; uniform in those of the principal axes; Gaussian with
        the variances of the principal axes; with every column permuted on its own.
    """
    none = np.empty(0)
    if way == "permuted":
        return Reference(way, table, None, none, none)
    if way == "box":
        return Reference(way, table, None, table.min(axis=0), table.max(axis=0))
    centred = table - table.mean(axis=0)
    _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
    if way == "gaussian":
        deviations = lengths / np.sqrt(max(len(table) - 1, 1))
        return Reference(way, table, axes, np.zeros_like(deviations), deviations)
    coordinates = centred @ axes.T
    return Reference(way, table, axes, coordinates.min(axis=0), coordinates.max(axis=0))
