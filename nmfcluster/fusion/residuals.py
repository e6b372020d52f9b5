"""What sources say beyond independence, and how far they agree in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nmfcluster._arrays import storage

_LEAST = 1e-12  # of the largest entry: less is no similarity
_ALONE = 2  # objects of a part of a sparse source that says nothing of them: they are a pair at most
_CONSTANT = 1e-5  # of the size of a source: less is what float32 leaves where all are alike


@dataclass(frozen=True)
class Residual:
    r"""A source over what independent objects, as frequent as in it, would be alike.

    With :math:`N = D_r^{-1/2} S D_c^{-1/2}`, D the sums of rows and of columns, and the margins
    :math:`r = N 1`, :math:`s = N' 1`,

    .. math:: R = N - c\, r s', \quad c = \frac{1}{1'r} .

    Of objects with each other N is symmetric, and nothing is said of its diagonal, which is 0:
    there :math:`c = 1'r / ((1'r)^2 - \sum_i r_i^2)`. R sums to 0, and is never formed.

    Attributes
    ----------
    N : {ndarray, csr_array} of shape (n, p)
        Rows and columns of objects that the source did not see are 0.
    degrees : ndarray of shape (p,)
        The sums of the columns of S.
    columns : ndarray of shape (p,)
        The margins s.
    share : float
        c.
    size : float
        The root mean square of R over the pairs that the source saw; 0 if it says nothing.
    square : bool
        Whether the objects are compared with each other.
    """

    N: Any
    degrees: np.ndarray
    columns: np.ndarray
    share: float
    size: float
    square: bool

    @cached_property
    def margins(self) -> np.ndarray:
        """The sums r of the rows, (n,), in float64."""
        return _sums(self.N, axis=1)

    @cached_property
    def seen(self) -> np.ndarray:
        """Which objects the source saw, in its rows, (n,), bool."""
        return np.asarray(self.margins > 0)

    def among(self, objects: np.ndarray) -> Residual:
        """Return the residual of some objects, a mask of rows, alone."""
        if objects.all():
            return self
        there = np.flatnonzero(objects)
        N = self.N[there][:, there] if self.square else self.N[there]
        return _residual(N, self.degrees, self.square)

    def of_new(self, source: Any) -> Residual:
        """Return the residual of the similarities of other objects, (m, n), to these."""
        source = _cleaned(sp.csr_array(source) if sp.issparse(self.N) else source, square=False)
        N = storage.scaled_columns(source, storage.inverse(np.sqrt(self.degrees)))
        N = storage.scaled_rows(N, storage.inverse(np.sqrt(storage.row_sums(source))))
        return replace(self, N=N, square=False)

    def rows(self, rows: slice) -> np.ndarray:
        """Return some rows of R as an array, with what stands on its diagonal."""
        block = storage.as_dense(storage.rows_of(self.N, rows))
        return block - np.outer(self.share * self.margins[rows], self.columns).astype(block.dtype)

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return entries of R, off its diagonal, in float64."""
        stored = np.asarray(self.N[rows, columns], dtype=np.float64).ravel()
        return stored - self.share * self.margins[rows] * self.columns[columns]


class Agreement(NamedTuple):
    """How far sources say the same beyond independence.

    Attributes
    ----------
    correlations : ndarray of shape (n_sources, n_sources)
        Of what they say beyond independence, over the pairs of objects that both saw; 1 of a
        source with itself.
    scores : ndarray of shape (n_sources, n_sources)
        These times the root of the number of pairs: z-scores, of mean 0 and variance 1 where two
        sources are independent. 0 of a source with itself.
    """

    correlations: np.ndarray
    scores: np.ndarray


def residual(source: Any, square: bool) -> Residual:
    """Return what a source says beyond independence.

    Parameters
    ----------
    source : {ndarray, csr_array} of shape (n, p)
        What is negative in it says nothing. An object that is similar to none of those that it is
        compared with was not seen, nor was one in a part of a sparse source of two objects at most.
    square : bool
        Whether the source is symmetric: it compares the objects with each other.

    Returns
    -------
    Residual
    """
    S = _cleaned(source, square)
    if square and sp.issparse(S):
        _, part = connected_components(S, directed=False)
        inside = (np.bincount(part)[part] > _ALONE).astype(S.dtype)
        S = storage.scaled_columns(S, inside)  # parts are symmetric: their rows go with it
        S.eliminate_zeros()
    degrees = _sums(S, axis=0)
    of_rows = degrees if square else _sums(S, axis=1)
    S = storage.scaled_rows(S, storage.inverse(np.sqrt(of_rows)))
    return _residual(
        storage.scaled_columns(S, storage.inverse(np.sqrt(degrees))), degrees, square
    )


def _residual(N: Any, degrees: np.ndarray, square: bool) -> Residual:
    """Return the residual of a source that was scaled."""
    columns = _sums(N, axis=0)
    told = float(columns.sum())
    of_self = float((columns**2).sum()) if square else 0.0
    share = told / max(told**2 - of_self, np.finfo(float).tiny)
    whole = Residual(N, degrees, columns, share, 1.0, square)
    n_seen, n_columns = int(whole.seen.sum()), int((columns > 0).sum())
    n_pairs = n_seen * (n_columns - 1 if square else n_columns)
    size, least = inner(whole, whole), _CONSTANT**2 * storage.sum_of_squares(N)
    return replace(whole, size=float(np.sqrt(size / n_pairs)) if size > least else 0.0)


def _cleaned(source: Any, square: bool) -> Any:
    """Return a source without what is negative or next to 0; of a square one, its diagonal."""
    least = _LEAST * max(float(source.max()), 0) if 0 not in source.shape else 0.0
    if sp.issparse(source):
        source = storage.filled_with(source, np.where(source.data < least, 0, source.data))
        return storage.without_diagonal(source) if square else source
    cleaned = np.where(source < least, 0, source)
    if square:
        np.fill_diagonal(cleaned, 0)
    return cleaned


def _sums(array: Any, axis: int) -> np.ndarray:
    return np.asarray(array.sum(axis=axis, dtype=np.float64)).ravel()


def inner(one: Residual, other: Residual) -> float:
    """Return the sum of the products of equal entries of two residuals, off the diagonal."""
    r, s, u, v = one.margins, one.columns, other.margins, other.columns
    expected = other.share * float(u @ (one.N @ v)) + one.share * float(r @ (other.N @ s))
    of_both = float(r @ u) * float(s @ v)
    if one.square:
        of_both -= float((r * s) @ (u * v))
    return storage.dot(one.N, other.N) - expected + one.share * other.share * of_both


def agreement(residuals: list[Residual]) -> Agreement:
    """Return how far sources say the same beyond independence.

    Parameters
    ----------
    residuals : list of Residual

    Returns
    -------
    Agreement
    """
    L = len(residuals)
    correlations, scores = np.eye(L), np.zeros((L, L))
    for i in range(L):
        for j in range(i):
            both = residuals[i].seen & residuals[j].seen
            one, other = (R.among(both) for R in (residuals[i], residuals[j]))
            if one.size and other.size:
                n_columns = int(((one.columns > 0) & (other.columns > 0)).sum())
                n_pairs = int(both.sum()) * (n_columns - 1 if one.square else n_columns)
                told = inner(one, other) / (one.size * other.size * n_pairs)
                n_told = n_pairs / 2 if one.square else n_pairs
                correlations[i, j] = correlations[j, i] = told
                scores[i, j] = scores[j, i] = told * np.sqrt(n_told)
    return Agreement(correlations, scores)
