"""The objective of fusion: the losses of the sources, and the weights that are best for them."""

from dataclasses import dataclass
from functools import cached_property
from math import fsum

import numpy as np

from nmfcluster.fusion.pairs import LEAST, Pairs, entropy_of


@dataclass(frozen=True)
class FusionObjective:
    """How far pairs are from a model: ``D(P || W H')``, ``W = H diag(q)``.

    Attributes
    ----------
    pairs : Pairs
    relative : bool
        Whether it is a share of what there is to explain, ``D(P || r r')`` with the margins r of
        P; else it is in nats.
    shift : float
        What a graph of objects and landmarks adds to both, in nats.
    """

    pairs: Pairs
    relative: bool
    shift: float

    wide = False  # starts side by side are not faster: a quotient is as large as the similarity

    @cached_property
    def there(self) -> float:
        """What there is to explain, in nats."""
        return max(2 * entropy_of(self.pairs.margin) - self.pairs.entropy - self.shift, LEAST)

    @property
    def constant(self) -> float:
        """Scale of a change of the loss."""
        return 1.0 if self.relative else self.there

    def loss(self, W: np.ndarray) -> float:
        """Return the loss of a factor W, (n, k), that sums to 1."""
        left = self.pairs.cross_entropy(W, W / W.sum(axis=0)) - self.pairs.entropy - self.shift
        return left / self.there if self.relative else left


def gibbs_weights(losses: np.ndarray, eta: float, prior: np.ndarray) -> np.ndarray:
    """Return the weights ``a_l ~ p_l exp(-x_l / eta)`` that are best for losses (eq. 7).

    They minimise ``a'x + eta D(a || p)``; with equal p that is ``a'x - eta H(a)``, but for a
    constant.

    Parameters
    ----------
    losses : ndarray of shape (L,)
        The x_l.
    eta : float
        In the unit of the losses; 0 gives all weight to the first of the sources with the smallest
        loss, infinity gives every source its p.
    prior : ndarray of shape (L,)
        The p_l, which sum to 1. One of 0 leaves a source out; all can be.

    Returns
    -------
    ndarray of shape (L,)

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.fusion.objective import gibbs_weights
    >>> gibbs_weights(np.array([1.0, 1.0, 1.0 + np.log(2)]), 1.0, np.full(3, 1 / 3))
    array([0.4, 0.4, 0.2])
    """
    if np.isinf(eta) or not prior.any():
        return prior
    losses = np.where(prior > 0, losses, np.inf)
    if eta == 0:
        return np.eye(len(losses))[losses.argmin()]
    with np.errstate(over="ignore"):  # a quotient that overflows is a weight of 0
        shares = prior * np.exp(-(losses - losses.min()) / eta)
    return np.asarray(shares / fsum(shares))  # the same in any order of the sources


def smallest_objective(losses: np.ndarray, eta: float, prior: np.ndarray) -> float:
    """Return the smallest ``a'x + eta D(a || p)``: ``-eta log sum_l p_l exp(-x_l / eta)``.

    It lies between the smallest loss, for eta 0, and the mean loss, for infinity.
    """
    losses, prior = losses[prior > 0], prior[prior > 0]
    if np.isinf(eta) or not len(prior):
        return fsum(prior * losses)
    best = float(losses.min())
    if eta == 0:
        return best
    with np.errstate(over="ignore"):  # the exponential of a quotient that overflows is 0
        rest = fsum(prior * np.expm1(-(losses - best) / eta))
    return best - eta * float(np.log1p(rest))
