"""The objective of fusion: the losses of the sources, and the weights that are best for them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nmfcluster.fusion.mixture import Mixture, entropy_of

# entry of factors that sum to 1, by bytes a number: 0 would be final; products of two are above 0
SMALLEST = {4: 1e-18, 8: 1e-20}
_LEAST = 1e-6  # nats a source must hold about pairs: less is rounding of float32
_NOTHING = 1e6  # loss of a source that holds nothing: far above all others, and finite
SHARP = 0.3  # eta, of relative losses, that asks for nearly all weight on the best source


def factors_of(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return W, whose entries sum to 1, and H, whose columns do."""
    return Z[0], Z[-1] / Z[-1].sum(axis=0)


def gibbs_weights(losses: np.ndarray, eta: float) -> np.ndarray:
    """Return the weights ``a_l ~ exp(-c_l / eta)`` that minimise ``a'c - eta H(a)`` (eq. 7).

    Parameters
    ----------
    losses : ndarray of shape (L,)
        The c_l, in nats.
    eta : float
        In nats; 0 gives all weight to the first of the sources with the smallest loss, infinity
        the same weight to all.

    Returns
    -------
    ndarray of shape (L,)

    Examples
    --------
    >>> import numpy as np
    >>> from nmfcluster.fusion.objective import gibbs_weights
    >>> gibbs_weights(np.array([1.0, 1.0, 1.0 + np.log(2)]), eta=1.0)
    array([0.4, 0.4, 0.2])
    """
    if np.isinf(eta):
        return np.full(len(losses), 1 / len(losses))
    if eta == 0:
        return np.eye(len(losses))[losses.argmin()]
    with np.errstate(over="ignore"):  # a quotient that overflows is a weight of 0
        shares = np.exp(-(losses - losses.min()) / eta)
    return shares / shares.sum()


def smallest_objective(losses: np.ndarray, eta: float) -> float:
    """Return the smallest ``a'c + eta (log L - H(a))``: ``-eta log mean exp(-c / eta)``.

    It lies between the smallest loss, for eta 0, and the mean loss, for infinity.
    """
    if np.isinf(eta):
        return float(losses.mean())
    best = float(losses.min())
    if eta == 0:
        return best
    with np.errstate(over="ignore"):  # the exponential of a quotient that overflows is 0
        rest = np.expm1(-(losses - best) / eta).mean()
    return best - eta * float(np.log1p(rest))


@dataclass(frozen=True)
class FusionObjective:
    r"""The objective of fusion, after its minimisation over the weights of the sources.

    .. math:: F = \min_a \sum_l a_l x_l + \eta\, (\log L - H(a))
                = -\eta \log \frac1L \sum_l e^{-x_l / \eta}

    Lange and Buhmann, eqs. 4 and 6, have :math:`x_l = c_l`, the loss of a source,

    .. math:: c_l = b_l - \sum_{ij} p^l_{ij} \log (W H')_{ij} .

    The constant :math:`\log L`, which is not in eq. 6, makes F the mean loss as eta grows. With
    `scales` :math:`d_l` a loss is relative to what there is to explain, and is 1 at most,

    .. math:: x_l = \min(c_l / d_l, 1), \quad a_l = 0 \text{ where } c_l \ge d_l :

    a source counts as far as the model explains it better than independent objects do. F is
    concave in the losses and does not fall as one grows, so that EM steps on the mixture with
    weights proportional to :math:`a_l / d_l` never raise it.

    Where a source did not see all objects, it says how those it saw occur together: the model
    is conditioned on them, :math:`c_l = b_l - \sum p^l_{ij} \log ((W H')_{ij} / M_l)` with
    :math:`M_l` the mass of the model on the pairs that were seen.

    Attributes
    ----------
    mixture : Mixture
    offsets : ndarray of shape (L,)
        The b_l, which do not depend on the model.
    eta : float
    scales : ndarray of shape (L,), default=None
        The d_l; None: losses count as they are.
    """

    mixture: Mixture
    offsets: np.ndarray
    eta: float
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
        """Return c_l, or c_l / d_l, for the factors Z, as `fusion_nmf` has them.

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
        """Return the best weights for losses of the sources, and the objective F.

        Where no source is explained better than by independence, losses relative to it count as
        they are, and `eta` is small, to tell apart the best of a bad lot: F is then above 1.
        """
        if self.scales is None:
            return gibbs_weights(losses, self.eta), smallest_objective(losses, self.eta)
        if losses.min() >= 1:
            losses, eta = np.minimum(losses, _NOTHING), min(self.eta, SHARP)
            return gibbs_weights(losses, eta), smallest_objective(losses, eta)
        at_most_1 = np.minimum(losses, 1)
        weights = np.where(losses < 1, gibbs_weights(at_most_1, self.eta), 0)
        return weights / weights.sum(), smallest_objective(at_most_1, self.eta)

    def shares(self, weights: np.ndarray) -> np.ndarray:
        """Return the weights of the sources in the mixture that the model is fitted to, (L,)."""
        if self.scales is None:
            return weights
        shares = weights / np.maximum(self.scales, _LEAST)
        return shares / shares.sum()


def objective_of(
    mixture: Mixture, criterion: str, eta: float, shift: float = 0.0
) -> FusionObjective:
    """Return the objective of a criterion.

    `shift` is what the losses, and what there is to explain, are too large by.

    The loss of a source is its divergence from the model in "kl" and in "relative", where it is
    divided by that from independent objects; and the cross-entropy in "cross_entropy"; there, a
    source that did not see all objects counts as if it knew nothing of the others.
    """
    if criterion == "cross_entropy":
        offsets = -2 * np.log(mixture.seen.mean(axis=0)) - shift
        return FusionObjective(mixture, offsets, eta)
    entropies = mixture.entropies()
    scales = mutual_information(mixture, entropies) - shift if criterion == "relative" else None
    return FusionObjective(mixture, -entropies - shift, eta, scales)


def mutual_information(mixture: Mixture, entropies: np.ndarray) -> np.ndarray:
    """Return ``D(P_l || r_l r_l')`` of every source and its margins r_l, (L,), in nats.

    Its divergence from independent objects is what a model can explain of it.
    """
    margins = (mixture.margin(mixture.mixed(one)) for one in np.eye(len(entropies)))
    return np.array([2 * entropy_of(r) for r in margins]) - entropies
