"""The objective of fusion: the losses of the sources, and the weights that are best for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.storage import row_blocks, stored_entries, total
from nmfcluster.fusion.mixture import PAIRS, Mixture, entries, entropy_of

# entry of factors that sum to 1, by bytes a number: 0 would be final; products of two are above 0
SMALLEST = {4: 1e-18, 8: 1e-20}
_LEAST = 1e-6  # nats a source must hold about pairs: less is rounding of float32


def factors_of(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return W, whose entries sum to 1, and H, whose columns do."""
    return Z[0], Z[-1] / Z[-1].sum(axis=0)


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
        The p_l, which sum to 1. One of 0 leaves a source out.

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
    if np.isinf(eta):
        return prior
    losses = np.where(prior > 0, losses, np.inf)
    if eta == 0:
        return np.eye(len(losses))[losses.argmin()]
    with np.errstate(over="ignore"):  # a quotient that overflows is a weight of 0
        shares = prior * np.exp(-(losses - losses.min()) / eta)
    return np.asarray(shares / shares.sum())


def smallest_objective(losses: np.ndarray, eta: float, prior: np.ndarray) -> float:
    """Return the smallest ``a'x + eta D(a || p)``: ``-eta log sum_l p_l exp(-x_l / eta)``.

    It lies between the smallest loss, for eta 0, and the mean loss, for infinity.
    """
    used = prior > 0
    losses, prior = losses[used], prior[used]
    if np.isinf(eta):
        return float(prior @ losses)
    best = float(losses.min())
    if eta == 0:
        return best
    with np.errstate(over="ignore"):  # the exponential of a quotient that overflows is 0
        rest = prior @ np.expm1(-(losses - best) / eta)
    return best - eta * float(np.log1p(rest))


@dataclass(frozen=True)
class FusionObjective:
    r"""The objective of fusion, after its minimisation over the weights of the sources.

    .. math:: F = \min_a \sum_l a_l x_l + \eta\, D(a \,\|\, p)
                = -\eta \log \sum_l p_l e^{-x_l / \eta}

    Lange and Buhmann, eqs. 4 and 6, have equal :math:`p_l`, and :math:`x_l = c_l`, the loss of a
    source,

    .. math:: c_l = b_l - \sum_{ij} p^l_{ij} \log (W H')_{ij} .

    The constant :math:`\log L`, which is not in eq. 6, makes F the mean loss as eta grows. F is
    concave in the losses and does not fall as one grows, so that EM steps on the mixture with
    weights :math:`a_l` never raise it.

    Where a source did not see all objects, it says how those it saw occur together: the model
    is conditioned on them, :math:`c_l = b_l - \sum p^l_{ij} \log ((W H')_{ij} / M_l)` with
    :math:`M_l` the mass of the model on the pairs that were seen.

    Attributes
    ----------
    mixture : Mixture
    offsets : ndarray of shape (L,)
        The b_l, which do not depend on the model.
    eta : float
    prior : ndarray of shape (L,)
        The p_l, which sum to 1.
    scales : ndarray of shape (L,), default=None
        What there is to explain of every source, :math:`d_l`, of which its loss is a share,
        :math:`x_l = c_l / d_l`; None: losses are in nats.
    """

    mixture: Mixture
    offsets: np.ndarray
    eta: float
    prior: np.ndarray
    scales: np.ndarray | None = None

    wide = False  # starts side by side are not faster: a quotient is as large as the similarity

    @cached_property
    def constant(self) -> float:
        """Scale of a change of F: how far the mean source is from independent objects."""
        if self.scales is not None:
            return 1.0
        mixture = self.mixture
        margin = mixture.margin(mixture.mixed(mixture.equal))  # shares of objects in that source
        r = np.maximum(margin, SMALLEST[mixture.dtype.itemsize])[:, None]
        apart = mixture.cross_entropies(r, r, symmetric=True) - mixture.entropies()
        return max(float(apart.mean()), 0.0)  # below 0 by rounding alone

    def source_losses(self, Z: np.ndarray) -> np.ndarray:
        """Return x_l for the factors Z, as `fusion_nmf` has them.

        Infinity is that of a source that says nothing, of which d_l is 0.
        """
        W, H = factors_of(Z)
        entropies = self.mixture.cross_entropies(W, H, symmetric=len(Z) == 1)
        losses = self.offsets + entropies + np.log(self.seen_mass(W, H))
        if self.scales is None:
            return losses
        told = self.scales > _LEAST
        return np.divide(losses, self.scales, out=np.full_like(losses, np.inf), where=told)

    def seen_mass(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return the mass of ``W H'`` on the pairs that each source saw, (L,)."""
        if self.mixture.complete.all():
            return np.ones(len(self.mixture.totals))
        seen = self.mixture.seen.T.astype(np.float64)
        return np.where(self.mixture.complete, 1.0, ((seen @ W) * (seen @ H)).sum(axis=1))

    def weigh(self, losses: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the best weights for losses of the sources, and the objective F."""
        weights = gibbs_weights(losses, self.eta, self.prior)
        return weights, smallest_objective(losses, self.eta, self.prior)


def in_nats(
    mixture: Mixture, criterion: str, eta: float, prior: np.ndarray, shift: float = 0.0
) -> FusionObjective:
    """Return the objective of a criterion of the paper.

    The loss of a source is its divergence from the model in "kl", and the cross-entropy in
    "cross_entropy"; there, a source that did not see all objects counts as if it knew nothing of
    the others. `shift` is what the losses are too large by.
    """
    if criterion == "cross_entropy":
        offsets = -2 * np.log(mixture.seen.mean(axis=0)) - shift
    else:
        offsets = -mixture.entropies() - shift
    return FusionObjective(mixture, offsets, eta, prior)


def relative(mixture: Mixture, shift: float = 0.0) -> FusionObjective:
    """Return the objective whose losses are shares of what there is to explain of every source.

    `shift` is what the losses, and what there is to explain, are too large by.
    """
    entropies = mixture.entropies()
    scales = mutual_information(mixture, entropies) - shift
    return FusionObjective(mixture, -entropies - shift, np.inf, mixture.equal, scales)


def mutual_information(mixture: Mixture, entropies: np.ndarray) -> np.ndarray:
    """Return ``D(P_l || r_l r_l')`` of every source and its margins r_l, (L,), in nats.

    Its divergence from independent objects is what a model can explain of it.
    """
    margins = (mixture.margin(mixture.mixed(one)) for one in np.eye(len(entropies)))
    return np.array([2 * entropy_of(r) for r in margins]) - entropies


def unexplained(A: sp.csr_array, W: np.ndarray, H: np.ndarray) -> float:
    r"""Return the share of what there is to explain of a graph that a model leaves unexplained.

    .. math:: \frac{D(P \,\|\, W H' / M)}{D(P \,\|\, r s')} , \quad P = A / 1'A1 ,

    r and s the margins of P, and M the mass of the model on the rows and columns that have entries.

    Parameters
    ----------
    A : csr_array of shape (n, p)
    W, H : ndarray of shape (n, k) and (p, k)

    Returns
    -------
    float
        Infinity where there is nothing to explain.
    """
    i, j, values = stored_entries(A)
    if not len(values):
        return np.inf
    p = values.astype(np.float64) / total(A)
    r, s = np.bincount(i, p, A.shape[0]), np.bincount(j, p, A.shape[1])
    there = entropy_of(r) + entropy_of(s) - entropy_of(p)
    mass = float(W[r > 0].sum(axis=0, dtype=np.float64) @ H[s > 0].sum(axis=0, dtype=np.float64))
    left = np.log(mass) - entropy_of(p)
    for block in row_blocks(len(p), PAIRS):
        left -= float(p[block] @ np.log(entries(W, H, i[block], j[block])))
    return left / there if there > _LEAST else np.inf
