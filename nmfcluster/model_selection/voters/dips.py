"""Hartigan's dip: how far numbers are from every distribution with one mode."""

from __future__ import annotations

import numpy as np

# Of so many uniform numbers, the root of their number times the dip that 5 % of samples exceed,
# simulated: 4,000 samples of each size, 2,000 from 1,000 numbers on. The test takes the uniform
# distribution for the unimodal one of the largest dips, as its authors do.
_SIZES = (4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 50, 100, 200, 500, 1000, 2000)
_EXCEEDED = (
    0.4133, 0.4168, 0.4046, 0.4217, 0.4362, 0.4421, 0.4530, 0.4629,
    0.4663, 0.4803, 0.4991, 0.5086, 0.5211, 0.5315, 0.5358, 0.5360,
)  # fmt: skip


def dip(values: np.ndarray) -> float:
    r"""Return the largest distance of a distribution function from the nearest unimodal one.

    The nearest one is convex up to its mode and concave from there on. Between the ends of an
    interval that holds the mode, the greatest convex function below and the least concave one
    above are as far apart as twice the dip; the interval shrinks to where they touch last [1]_. At
    the mode itself the distribution may jump.

    Parameters
    ----------
    values : ndarray of shape (n,)
        In any order, with n >= 1.

    Returns
    -------
    float
        From 1 / (2 n), for equally spaced numbers, to 1/4, for two values.

    References
    ----------
    .. [1] J. A. Hartigan, P. M. Hartigan. The dip test of unimodality. Annals of Statistics 13,
       1985.

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.model_selection.voters.dips import dip
    >>> dip(np.arange(10)), dip(np.repeat([0, 1], 5))
    (0.05, 0.25)
    """
    x, counts = np.unique(np.asarray(values, dtype=np.float64), return_counts=True)
    above = np.cumsum(counts).astype(np.float64)
    below = above - counts
    first, last, largest = 0, len(x) - 1, 1.0  # in samples, as the steps of the function
    while last > first:
        part = slice(first, last + 1)
        own, low, high = x[part], below[part], above[part]
        convex, concave = _corners(own, low), _corners(own, -high)
        under = np.interp(own, own[convex], low[convex])
        over = np.interp(own, own[concave], high[concave])
        at = np.union1d(convex, concave)
        apart = (over - under)[at]
        if apart.max() <= largest:
            break
        widest = at[apart.argmax()]
        left, right = convex[convex <= widest].max(), concave[concave >= widest].min()
        before, behind = (high - under)[:left], (over - low)[right + 1 :]
        largest = max(largest, float(before.max(initial=0)), float(behind.max(initial=0)))
        if left == 0 and right == len(own) - 1:
            break
        first, last = first + left, first + right
    return largest / (2 * len(values))


def _corners(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which points are corners of the greatest convex function below all points."""
    kept: list[tuple[int, float, float]] = []
    for i, (a, b) in enumerate(zip(x.tolist(), y.tolist(), strict=True)):
        while len(kept) > 1:
            (_, xa, ya), (_, xb, yb) = kept[-2:]
            if (yb - ya) * (a - xb) < (b - yb) * (xb - xa):
                break
            kept.pop()
        kept.append((i, a, b))
    return np.array([corner[0] for corner in kept])


def has_two_modes(values: np.ndarray) -> bool:
    """Return whether numbers have a larger dip than 95 % of uniform samples as large."""
    n = len(values)
    exceeded = np.interp(np.log(n), np.log(_SIZES), _EXCEEDED)
    return n >= _SIZES[0] and dip(values) > exceeded / np.sqrt(n)
