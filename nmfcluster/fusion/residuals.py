"""What sources say beyond independence, and how far they agree in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nmfcluster._utils import storage

_LEAST = 1e-12  # of the largest entry: less is no similarity
_ALONE = 2  # objects: a sparse source says nothing of those in a part as small, a pair at most
AGREE = 5.0  # z-score from which on sources agree: of 23,562 independent ones .05 % are above
_MANY = (
    2  # times the root of n, on average: a source with more neighbours is no graph yet
)
_STEPS = 50  # to the margins without a diagonal: of a few objects; many need three
_COPIES = 0.95  # correlation, of all pairs and of those alike, from which on two sources are one
_ENTRIES = 2**22  # of rows by which copies are told
_ROUNDED = 1e-6  # of the largest entry: less is what float32 leaves of 0
_CONSTANT = (
    1e-5  # of the size of a source: less is what float32 leaves where all are alike
)


@dataclass(frozen=True)
class Residual:
    r"""A source over what independent objects, as frequent as in it, would be alike.

    With :math:`N = D_r^{-1/2} S D_c^{-1/2}`, D the sums of rows and of columns,

    .. math:: R = N - u v', \quad R 1 = 0, \; R' 1 = 0 :

    of :math:`r = N 1` and :math:`s = N' 1`, :math:`u v' = r s' / 1'r`. Of objects with each other N
    is symmetric, and nothing is said of its diagonal, where both are 0; u = v then solves
    :math:`u_i \sum_{j \ne i} u_j = r_i`.

    Attributes
    ----------
    stored : {ndarray, csr_array} of shape (n, p)
        R in float32 if the source is dense, and N if it is sparse: then R is never formed.
    rows : ndarray of shape (n,)
        u; 0 of objects that the source did not see, whose rows are 0.
    columns : ndarray of shape (p,)
        v.
    degrees : ndarray of shape (p,)
        The sums of the columns of S.
    size : float
        The root mean square of R over the pairs that the source saw; 0 if it says nothing.
    square : bool
        Whether the objects are compared with each other.
    """

    stored: Any
    rows: np.ndarray
    columns: np.ndarray
    degrees: np.ndarray
    size: float
    square: bool

    @property
    def seen(self) -> np.ndarray:
        """Which objects the source saw, in its rows, (n,), bool."""
        return self.rows > 0

    @property
    def is_graph(self) -> bool:
        """Whether the source is sparse, with few enough entries in a row to be a graph."""
        N = self.stored
        return sp.issparse(N) and N.nnz <= _MANY * isqrt(N.shape[1]) * N.shape[0]

    def among(self, objects: np.ndarray) -> Residual:
        """Return what the source says beyond independence of some objects, places, alone."""
        N = self.stored[objects][:, objects] if self.square else self.stored[objects]
        if not sp.issparse(N):
            columns = self.columns[objects] if self.square else self.columns
            N = N + np.outer(self.rows[objects], columns)
            N[N < _ROUNDED * N.max(initial=0)] = 0  # what was 0 before float32
            if self.square:
                np.fill_diagonal(N, 0)
        return _beyond(N, self.degrees, self.square)

    def of_new(self, source: Any) -> Residual:
        """Return the residual of the similarities of other objects, (m, n), to these."""
        source = sp.csr_array(source) if sp.issparse(self.stored) else source
        source = _cleaned(source, square=False)
        N = _over_roots(source, storage.row_sums(source), self.degrees)
        u = sums_of(N, axis=1) / (self.columns.sum() or 1.0)
        return _explicit(replace(self, stored=N, rows=u, square=False))

    def block(self, rows: slice) -> np.ndarray:
        """Return some rows of R as an array, in float32, with what stands on its diagonal."""
        if not sp.issparse(self.stored):
            return np.asarray(self.stored[rows])
        block = storage.as_dense(storage.rows_of(self.stored, rows)).astype(np.float32)
        block -= np.outer(self.rows[rows].astype(np.float32), self.columns)
        return block

    def entries(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Return entries of R, off its diagonal, in float64."""
        stored = np.asarray(self.stored[rows, columns], dtype=np.float64).ravel()
        if not sp.issparse(self.stored):
            return stored
        return stored - self.rows[rows] * self.columns[columns]


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
        S = storage.scaled_columns(
            S, inside
        )  # parts are symmetric: their rows go with it
        S.eliminate_zeros()
    degrees = sums_of(S, axis=0)
    of_rows = degrees if square else sums_of(S, axis=1)
    return _beyond(_over_roots(S, of_rows, degrees), degrees, square)


def _beyond(N: Any, degrees: np.ndarray, square: bool) -> Residual:
    """Return the residual of a source that was scaled."""
    r, s = sums_of(N, axis=1), sums_of(N, axis=0)
    if square:
        u = v = _off_diagonal(r)
    else:
        u, v = (sums / np.sqrt(r.sum() or 1.0) for sums in (r, s))
    R = _explicit(Residual(N, u, v, degrees, 1.0, square))
    size, least = inner(R, R), _CONSTANT**2 * storage.sum_of_squares(N)
    return replace(
        R, size=float(np.sqrt(size / n_pairs(R, R))) if size > least else 0.0
    )


def _off_diagonal(r: np.ndarray) -> np.ndarray:
    """Return the u of which every ``u_i sum_{j != i} u_j`` is r_i, as near as some steps lead."""
    u = r / np.sqrt(r.sum() or 1.0)
    for _ in range(_STEPS):
        u = np.sqrt(u * r / np.maximum(u.sum() - u, np.finfo(float).tiny))
    return u


def _explicit(R: Residual) -> Residual:
    """Return what holds a dense N with R in its place, in float32 and without a diagonal."""
    if sp.issparse(R.stored):
        return R
    out = np.empty(R.stored.shape, dtype=np.float32)
    for rows in storage.row_blocks(len(out)):
        out[rows] = R.stored[rows] - np.outer(R.rows[rows], R.columns)
    if R.square:
        np.fill_diagonal(out, 0)
    return replace(R, stored=out)


def n_pairs(one: Residual, other: Residual) -> int:
    """Return the number of pairs, both ways, of whose objects both sources saw both."""
    seen = int((one.seen & other.seen).sum())
    return seen * (
        seen - 1 if one.square else int(((one.columns > 0) & (other.columns > 0)).sum())
    )


def _cleaned(source: Any, square: bool) -> Any:
    """Return a source without what is negative or next to 0; of a square one, its diagonal."""
    least = _LEAST * max(float(source.max()), 0) if 0 not in source.shape else 0.0
    if sp.issparse(source):
        values = source.data.astype(
            np.float64
        )  # sums over R are differences of sums over N
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


def sums_of(array: Any, axis: int) -> np.ndarray:
    """Return the sums of a matrix along an axis, in float64."""
    return np.asarray(array.sum(axis=axis, dtype=np.float64)).ravel()


def inner(one: Residual, other: Residual) -> float:
    """Return the sum of the products of equal entries of two residuals, off the diagonal."""
    (u, v), (w, z) = ((R.rows, R.columns) for R in (one, other))
    left = [
        sp.issparse(R.stored) for R in (one, other)
    ]  # u v' is to be subtracted from those
    told = storage.dot(one.stored, other.stored)
    expected = _form(w, one.stored, z) if left[1] else 0.0
    expected += _form(u, other.stored, v) if left[0] else 0.0
    if all(left):
        told += float(u @ w) * float(v @ z) - (
            float((u * v) @ (w * z)) if one.square else 0
        )
    return told - expected


def _form(u: np.ndarray, stored: Any, v: np.ndarray) -> float:
    return float(u @ (stored @ v.astype(stored.dtype)))


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
    for i, j in zip(*np.tril_indices(L, -1), strict=True):
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


def copies(residuals: list[Residual], found: Agreement) -> np.ndarray:
    """Return which sources are next to equal, (L, L), bool.

    Their residuals correlate, and those of the pairs that both call alike, by themselves, too: two
    sources that see the same clear clusters differ inside of these.
    """
    same = np.eye(len(residuals), dtype=bool)
    for i, j in np.argwhere(
        np.triu((found.correlations > _COPIES) & (found.scores > AGREE), 1)
    ):
        same[i, j] = same[j, i] = _alike_inside(residuals[i], residuals[j])
    return same


def _alike_inside(one: Residual, other: Residual) -> bool:
    rows = slice(0, min(len(one.rows), max(1, _ENTRIES // len(one.columns))))
    R, Q = one.block(rows), other.block(rows)
    both = (R > 0) & (Q > 0)
    n = np.maximum(both.sum(axis=1), 1)
    means = (
        np.where(both, values, 0).sum(axis=1, dtype=np.float64) / n for values in (R, Q)
    )
    a, b = (
        (values - mean[:, None])[both]
        for values, mean in zip((R, Q), means, strict=True)
    )
    least = _CONSTANT**2 * len(
        a
    )  # what rounding leaves of a source that is constant inside
    varied = a @ a > least * one.size**2, b @ b > least * other.size**2
    return not any(varied) or bool(
        all(varied) and a @ b > _COPIES * np.sqrt((a @ a) * (b @ b))
    )
