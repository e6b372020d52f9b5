"""How much answers about some samples tell about others: variances along walks of a graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg

from nmfcluster.similarity.spreading import normalized

_WIDTH = 0.95  # of a walk: the chance of a further step
_LEAST = 1e-12  # of a variance, where rounding would leave none


def covariance(W: np.ndarray) -> np.ndarray:
    r"""Return what is uncertain of each sample, and shared by two, where none is known.

    Parameters
    ----------
    W : ndarray of shape (n, n)
        Similarities, symmetric and nowhere negative.

    Returns
    -------
    ndarray of shape (n, n)
        :math:`(I - 0.95 D^{-1/2} W D^{-1/2})^{-1}`, D the row sums of W without its diagonal.
    """
    S = W.copy()
    np.fill_diagonal(S, 0)
    S = normalized(S) * -_WIDTH
    S[np.diag_indices(len(S))] = 1
    return scipy.linalg.inv(S, overwrite_a=True)


def given(C: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return the covariance of a Gaussian field, given its values at some samples.

    Parameters
    ----------
    C : ndarray of shape (n, n)
        Its covariance, positive definite.
    known : ndarray of int
        These samples; their rows and columns become 0.

    Returns
    -------
    ndarray of shape (n, n)
    """
    left = C - C[:, known] @ scipy.linalg.solve(C[np.ix_(known, known)], C[known], assume_a="pos")
    left[known] = left[:, known] = 0
    return left


def most_telling(
    C: np.ndarray, weights: np.ndarray, open_: np.ndarray, count: int, taken: Callable[[int], None]
) -> None:
    r"""Find the samples whose answers lower uncertainty most, one after another.

    A sample x that becomes known lowers :math:`\sum_i w_i C_{ii}` by
    :math:`\sum_i w_i C_{ix}^2 / C_{xx}`; then C is that of what is left.

    Parameters
    ----------
    C : ndarray of shape (n, n)
        The covariance; it is changed.
    weights : ndarray of shape (n,)
        w.
    open_ : ndarray of shape (n,), bool
        Samples that may be taken.
    count : int
        Largest number of samples.
    taken : callable
        Is told each sample, and may close others in `open_`.
    """
    for _ in range(count):
        if not open_.any():
            return
        falls = (C**2 @ weights) / np.maximum(C.diagonal(), _LEAST)
        x = int(np.where(open_, falls, -1).argmax())
        open_[x] = False
        taken(x)
        column = C[:, x] / np.sqrt(max(C[x, x], _LEAST))
        C -= column[:, None] * column
