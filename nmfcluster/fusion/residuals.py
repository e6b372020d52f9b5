"""What sources say beyond independence, and how far they agree in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nmfcluster._arrays import storage

_LEAST = 1e-12  # of the largest entry: less is no similarity
_ALONE = (
    2  # objects of a part of a sparse source that says nothing of them: they are a pair at most
)
_CONSTANT = 1e-5  # of the size of a source: less is what float32 leaves where all are alike


@dataclass(frozen=True)
class Residual:
    r"""A source over what independent objects, as frequent as in it, would be alike.

    With :math:`N = D_r^{-1/2} S D_c^{-1/2}`, D the sums of rows and of columns, and the margins
    :math:`r = N 1`, :math:`s = N' 1`,

    .. math:: R = N - c\, r s', \quad c = \frac{1}{1'r} .

    Of objects with each other N is symmetric, and nothing is said of its diagonal, which is 0:
    there :math:`c = 1'r / ((1'r)^2 - \sum_i r_i^2)`. R sums to 0.

    Attributes
    ----------
    stored : {ndarray, csr_array} of shape (n, p)
        R in float32 if the source is dense, and N if it is sparse: then R is never formed.
    margins : ndarray of shape (n,)
        r; 0 of objects that the source did not see, whose rows are 0.
    columns : ndarray of shape (p,)
        s.
    degrees : ndarray of shape (p,)
        The sums of the columns of S.
    share : float
        c.
    size : float
        The root mean square of R over the pairs that the source saw; 0 if it says nothing.
    square : bool
        Whether the objects are compared with each other.
    """

    stored: Any
    margins: np.ndarray
    columns: np.ndarray
    degrees: np.ndarray
    share: float
    size: float
    square: bool

    @property
    def seen(self) -> np.ndarray:
        """Which objects the source saw, in its rows, (n,), bool."""
        return self.margins > 0

    @property
    def left(self) -> float:
        """What of ``r s'`` is to be subtracted from what is stored, to have R."""
        return self.share if sp.issparse(self.stored) else 0.0

    def among(self, objects: np.ndarray) -> Residual:
        """Return what the source says beyond independence of some objects, places, alone."""
        N = self.stored[objects][:, objects] if self.square else self.stored[objects]
        if not sp.issparse(N):
            columns = self.columns[objects] if self.square else self.columns
            N = N + np.outer(self.share * self.margins[objects], columns)
            if self.square:
                np.fill_diagonal(N, 0)
        return _beyond(N, self.degrees, self.square)

    def of_new(self, source: Any) -> Residual:
        """Return the residual of the similarities of other objects, (m, n), to these."""
        source = _cleaned(
            sp.csr_array(source) if sp.issparse(self.stored) else source, square=False
        )
        N = _over_roots(source, storage.row_sums(source), self.degrees)
        margins = _sums(N, axis=1)
        new = replace(self, stored=N, margins=margins, square=False)
        return new if sp.issparse(N) else replace(new, stored=_explicit(new))

    def rows(self, rows: slice) -> np.ndarray:
        """Return some rows of R as an array, in float32, with what stands on its diagonal."""
        if not sp.issparse(self.stored):
            return np.asarray(self.stored[rows])
        block = storage.as_dense(storage.rows_of(self.stored, rows)).astype(np.float32)
        block -= np.outer((self.share * self.margins[rows]).astype(np.float32), self.columns)
        return block

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return entries of R, off its diagonal, in float64."""
        stored = np.asarray(self.stored[rows, columns], dtype=np.float64).ravel()
        return stored - self.left * self.margins[rows] * self.columns[columns]


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
    return _beyond(_over_roots(S, of_rows, degrees), degrees, square)


def _beyond(N: Any, degrees: np.ndarray, square: bool) -> Residual:
    """Return the residual of a source that was scaled."""
    r, s = _sums(N, axis=1), _sums(N, axis=0)
    told = float(r.sum())
    c = told / max(told**2 - (float(r @ s) if square else 0.0), np.finfo(float).tiny)
    R = Residual(N, r, s, degrees, c, 1.0, square)
    if not sp.issparse(N):
        R = replace(R, stored=_explicit(R))
    size, least = inner(R, R), _CONSTANT**2 * storage.sum_of_squares(N)
    return replace(R, size=float(np.sqrt(size / n_pairs(R, R))) if size > least else 0.0)


def _explicit(R: Residual) -> np.ndarray:
    """Return, in float32, the residual of which a dense N is stored, without a diagonal."""
    out = np.empty(R.stored.shape, dtype=np.float32)
    for rows in storage.row_blocks(len(out)):
        out[rows] = R.stored[rows] - np.outer(R.share * R.margins[rows], R.columns)
    if R.square:
        np.fill_diagonal(out, 0)
    return out


def n_pairs(one: Residual, other: Residual) -> int:
    """Return the number of pairs, both ways, of whose objects both sources saw both."""
    seen = int((one.seen & other.seen).sum())
    return seen * (seen - 1 if one.square else int(((one.columns > 0) & (other.columns > 0)).sum()))


def _cleaned(source: Any, square: bool) -> Any:
    """Return a source without what is negative or next to 0; of a square one, its diagonal."""
    least = _LEAST * max(float(source.max()), 0) if 0 not in source.shape else 0.0
    if sp.issparse(source):
        values = source.data.astype(np.float64)  # sums over R are differences of sums over N
        source = storage.filled_with(source, np.where(values < least, 0, values))
        return storage.without_diagonal(source) if square else source
    cleaned = np.where(source < least, 0, source)
    if square:
        np.fill_diagonal(cleaned, 0)
    return cleaned


def _over_roots(S: Any, rows: np.ndarray, columns: np.ndarray) -> Any:
    """Return a source over the roots of its sums; an array in its place."""
    of_rows, of_columns = (storage.inverse(np.sqrt(sums)) for sums in (rows, columns))
    if sp.issparse(S):
        return storage.scaled_columns(storage.scaled_rows(S, of_rows), of_columns)
    S *= of_rows[:, None]
    S *= of_columns
    return S


def _sums(array: Any, axis: int) -> np.ndarray:
    return np.asarray(array.sum(axis=axis, dtype=np.float64)).ravel()


def inner(one: Residual, other: Residual) -> float:
    """Return the sum of the products of equal entries of two residuals, off the diagonal."""
    r, s, u, v = one.margins, one.columns, other.margins, other.columns
    expected = _form(other.left, u, one.stored, v) + _form(one.left, r, other.stored, s)
    of_both = float(r @ u) * float(s @ v)
    if one.square:
        of_both -= float((r * s) @ (u * v))
    return storage.dot(one.stored, other.stored) - expected + one.left * other.left * of_both


def _form(left: float, r: np.ndarray, stored: Any, s: np.ndarray) -> float:
    return left * float(r @ (stored @ s.astype(stored.dtype))) if left else 0.0


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
            one, other = residuals[i], residuals[j]
            if not (one.seen.all() and other.seen.all()):
                both = np.flatnonzero(one.seen & other.seen)
                one, other = one.among(both), other.among(both)
            if one.size and other.size:
                n = n_pairs(one, other)
                told = inner(one, other) / (one.size * other.size * n)
                correlations[i, j] = correlations[j, i] = told
                scores[i, j] = scores[j, i] = told * np.sqrt(n / 2 if one.square else n)
    return Agreement(correlations, scores)
