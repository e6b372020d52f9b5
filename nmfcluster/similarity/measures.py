"""Figures that describe all entries of a similarity, estimated where there are too many of them.

The estimates use a generator of their own: they are the same in every call, whatever
`random_state` is.
"""

from __future__ import annotations

import numpy as np

from nmfcluster._arrays.storage import sum_of_squares
from nmfcluster.similarity import Factored, Similarity, WeightedSum, inner
from nmfcluster.similarity.operators import unit_blocks

_FEW = 2_000  # samples up to which all entries of an operator may be looked at
_PAIRS = 100_000  # entries drawn where there are more
_SKETCH, _PROBES = 24, 32  # random vectors of the estimated norm


def squared_norm(A: Similarity) -> float:
    """Return the sum of the squared entries, ``||A||^2``.

    It is estimated for a factored operator of more than 2,000 samples and columns, a kernel of
    documents for instance, where it would take longer than a fit: to a few per cent [1]_.

    Parameters
    ----------
    A : Similarity of shape (n, n)

    Returns
    -------
    float

    References
    ----------
    .. [1] R. A. Meyer, C. Musco, C. Musco, D. P. Woodruff. Hutch++: optimal stochastic trace
       estimation. SOSA 2021.
    """
    terms = A.terms if isinstance(A, WeightedSum) else [(A, 1.0)]
    total = 0.0
    for i, (term, weight) in enumerate(terms):
        wide = isinstance(term, Factored) and min(term.rank, term.shape[0]) > _FEW
        total += weight**2 * (_estimated_norm(term) if wide else inner(term, term))
        total += sum(2 * weight * w * inner(term, other) for other, w in terms[i + 1 :])
    return total


def _estimated_norm(A: Similarity) -> float:
    """Estimate tr(A'A): exactly on the range of a sketch, by random probes on the rest."""
    rng = np.random.default_rng(0)
    sketch, probes = (
        rng.choice([-1.0, 1.0], size=(A.shape[0], width)).astype(A.dtype)
        for width in (_SKETCH, _PROBES)
    )
    Q, _ = np.linalg.qr(A @ sketch)
    rest = A @ (probes - Q @ (Q.T @ probes))
    return sum_of_squares(A @ Q) + sum_of_squares(rest) / _PROBES


def large_entry(A: Similarity, share: float = 0.999) -> float:
    """Return a quantile of the absolute values of the entries that are not 0, off the diagonal.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    share : float, default=0.999
        Which quantile.

    Returns
    -------
    float
        1 if all entries off the diagonal are 0.
    """
    values = np.abs(_entries_off_diagonal(A))
    values = values[values > 0]
    return float(np.quantile(values, share)) if len(values) else 1.0


def _entries_off_diagonal(A: Similarity) -> np.ndarray:
    """Return the entries above the diagonal; a random sample of them where they are many."""
    n = A.shape[0]
    stored = A.stored_off_diagonal()
    if stored is not None:
        return stored
    if n * (n - 1) // 2 <= _PAIRS:
        return A.entries(*np.triu_indices(n, 1))
    rng = np.random.default_rng(0)
    rows = rng.integers(n, size=_PAIRS)
    return A.entries(rows, (rows + rng.integers(1, n, size=_PAIRS)) % n)


def extremes(A: Similarity) -> tuple[float, float]:
    """Return the smallest and the largest entry, the diagonal included; in blocks of columns."""
    bounds = [(columns.min(), columns.max()) for columns in (A @ E for E in unit_blocks(A))]
    return float(min(low for low, _ in bounds)), float(max(high for _, high in bounds))


def is_zero(A: Similarity) -> bool:
    """Tell whether all entries are 0: a random vector is then taken to 0, and else never."""
    probe = np.random.default_rng(0).uniform(1, 2, size=(A.shape[0], 1)).astype(A.dtype)
    return not (A @ probe).any()
