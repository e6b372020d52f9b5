"""How often partitions hold two samples together, over pairs that are drawn."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from nmfcluster._arrays.arguments import normalised_weights
from nmfcluster._arrays.labels import encode, over_seen
from nmfcluster._arrays.storage import row_blocks
from nmfcluster._compat import RANDOM_STATE, Interval, validate_parameter_constraints

__all__ = ["pac_score", "pair_consensus"]

_BLOCK = 65_536  # pairs compared at a time, so that their labels stay in cache
_ROUNDING = 1e-9  # by which a share may miss a bound that it is equal to
_SHARE = [Interval(Real, 0, 1, closed="both")]
_ALLOWED: dict[str, list[Any]] = {
    "n_pairs": [Interval(Integral, 1, None, closed="left")],
    "random_state": RANDOM_STATE,
}


def pair_consensus(
    partitions: Any,
    *,
    weights: Any = None,
    n_pairs: int = 100_000,
    random_state: int | np.random.RandomState | None = 0,
) -> np.ndarray:
    """Return the co-association of pairs of samples, in increasing order.

    The co-association is the share of the partitions that hold two samples together, among those
    that saw both. No matrix of all pairs is formed: of many samples some pairs are drawn.

    Parameters
    ----------
    partitions : array-like of shape (n_samples, n_partitions) or list of label vectors
        As `NMFConsensus.fit` takes them; a negative number, NaN or None: not seen.
    weights : array-like of shape (n_partitions,), default=None
        Nonnegative weights of the partitions; equal by default.
    n_pairs : int, default=100_000
        Largest number of pairs. All pairs of different samples are taken if they are not more;
        else as many are drawn, with replacement. A share p of all pairs is then known with a
        standard error of sqrt(p (1 - p) / n_pairs): at most .0016 by default.
    random_state : int, RandomState instance or None, default=0
        Determines the pairs.

    Returns
    -------
    ndarray of shape (n,)
        In [0, 1]. Pairs that no partition saw are left out.

    Raises
    ------
    ValueError
        If there is a single sample, no partition saw any of the pairs, or a parameter is not as
        described.
    TypeError
        If labels are neither integers nor strings.

    See Also
    --------
    pac_score : The share of pairs that partitions do not agree on.
    nmfcluster.display.ConsensusCDFDisplay : Shows the distribution for several numbers of clusters.

    Examples
    --------
    >>> from nmfcluster.metrics import pair_consensus
    >>> pair_consensus([[0, 0, 1], [0, 1, 1]])
    array([0. , 0.5, 0.5])
    """
    given = {"n_pairs": n_pairs, "random_state": random_state}
    validate_parameter_constraints(_ALLOWED, given, caller_name="pair_consensus")
    codes, _ = encode(partitions, "partitions")
    shares = normalised_weights(weights, codes.shape[1])
    if len(codes) < 2:
        raise ValueError("partitions must label at least 2 samples, got 1: there is no pair.")
    first, second = _pairs(len(codes), int(n_pairs), check_random_state(random_state))
    values = np.concatenate(
        [_shares(codes[first[b]], codes[second[b]], shares) for b in row_blocks(len(first), _BLOCK)]
    )
    values = np.sort(values[~np.isnan(values)])
    if not len(values):
        raise ValueError("partitions must see some samples together: none saw two of them.")
    return values


def pac_score(
    partitions: Any,
    *,
    lower: float = 0.1,
    upper: float = 0.9,
    weights: Any = None,
    n_pairs: int = 100_000,
    random_state: int | np.random.RandomState | None = 0,
) -> float:
    """Return the proportion of ambiguous clustering: of pairs that partitions do not agree on.

    A pair is ambiguous if more than the share `lower` of the partitions hold it together, and at
    most the share `upper` [1]_. Where partitions into the same number of clusters are made from
    samples of the data, the number with the smallest proportion is the most stable one.

    Parameters
    ----------
    partitions : array-like of shape (n_samples, n_partitions) or list of label vectors
        As `NMFConsensus.fit` takes them; a negative number, NaN or None: not seen.
    lower, upper : float, default=0.1 and 0.9
        In [0, 1], `lower` below `upper`.
    weights : array-like of shape (n_partitions,), default=None
        Nonnegative weights of the partitions; equal by default.
    n_pairs : int, default=100_000
        Largest number of pairs, see `pair_consensus`, which also tells the error of drawing some.
    random_state : int, RandomState instance or None, default=0
        Determines the pairs.

    Returns
    -------
    float
        In [0, 1]; 0 for partitions that all agree.

    Raises
    ------
    ValueError
        As `pair_consensus` does, and if `lower` is not below `upper`.
    TypeError
        If labels are neither integers nor strings.

    References
    ----------
    .. [1] Y. Senbabaoglu, G. Michailidis, J. Z. Li. Critical limitations of consensus clustering
       in class discovery. Scientific Reports 4, 6207, 2014.

    Examples
    --------
    >>> from nmfcluster.datasets import make_partitions
    >>> from nmfcluster.metrics import pac_score
    >>> agreeing, _ = make_partitions(90, noise=0.0, random_state=0)
    >>> pac_score(agreeing)
    0.0
    """
    given = {"lower": lower, "upper": upper}
    allowed = {"lower": _SHARE, "upper": _SHARE}
    validate_parameter_constraints(allowed, given, caller_name="pac_score")
    if lower >= upper:
        raise ValueError(f"lower must be below upper, got lower={lower} and upper={upper}.")
    values = pair_consensus(partitions, weights=weights, n_pairs=n_pairs, random_state=random_state)
    return share_between(values, lower, upper)


def share_between(values: np.ndarray, lower: float, upper: float) -> float:
    """Return the share of values above the one bound, and not above the other."""
    above = values > lower + _ROUNDING
    return float(np.mean(above & (values <= upper + _ROUNDING)))


def _pairs(n: int, n_pairs: int, rng: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    """Return all pairs of different samples, or as many as are asked for, drawn."""
    if n * (n - 1) // 2 <= n_pairs:
        first, second = np.triu_indices(n, 1)
        return first, second
    first = rng.randint(n, size=n_pairs)
    step = rng.randint(1, n, size=n_pairs)  # never to the sample itself
    return first, (first + step) % n


def _shares(a: np.ndarray, b: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the weighted share of the columns in which rows agree; NaN where none saw both."""
    both = (a >= 0) & (b >= 0)
    seen = both @ weights
    together = (both & (a == b)) @ weights
    return over_seen(together, seen)
