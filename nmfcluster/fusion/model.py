"""Kullback-Leibler factorization of a mixture of sources whose weights are found with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from nmfcluster._base import membership
from nmfcluster._engine.run import Plan, Steps, kept
from nmfcluster._engine.symmetric import Factorization
from nmfcluster.fusion.mixture import Mixture, draw_starts

_MIN_ITER = 10  # updates, of two or three EM steps each: the first ones can gain little
_RACE_FROM = 50  # updates: EM finds ways down from where it seemed to have settled
_WARM_UP = 5  # EM steps on equal weights: losses of a raw start say nothing of the sources
# entry of factors that sum to 1, by bytes a number: 0 would be final; products of two are above 0
_SMALLEST = {4: 1e-18, 8: 1e-20}
_LEFT = 0.5  # share of an entry that an extrapolation leaves: from next to 0 few come back
_SAME = 1e-12  # difference of weights, or relative one of eta, that changes no mixture
_HALVINGS = 100  # of the interval of eta: it ends at 1e-30 of the losses' range, next to 0
_LEAST_SHARE = 1e-12  # of an object's mean share of the sources: less does not move its start


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
    >>> from nmfcluster.fusion.model import gibbs_weights
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


def entropy(weights: np.ndarray) -> float:
    """Return ``-sum_l a_l log a_l``, in nats."""
    positive = weights[weights > 0]
    return -float(positive @ np.log(positive))


def eta_of_perplexity(losses: np.ndarray, perplexity: float) -> float:
    """Return the eta whose weights have the perplexity ``exp(H(a))``, by bisection.

    The entropy never falls as eta grows: its derivative is the variance of the losses over eta^3.

    Parameters
    ----------
    losses : ndarray of shape (L,)
    perplexity : float
        From 1 to L.

    Returns
    -------
    float
        Next to 0 if more than `perplexity` sources have the smallest loss, since they share the
        weight. Infinity if all losses are equal: the weights are equal then, whatever eta is.
    """
    spread = float(np.ptp(losses))
    if perplexity >= len(losses) or not spread:
        return np.inf
    low, high = 0.0, spread
    while high < np.inf and np.exp(entropy(gibbs_weights(losses, high))) < perplexity:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        if high - low <= _SAME * high:
            break
        middle = (low + high) / 2
        if np.exp(entropy(gibbs_weights(losses, middle))) < perplexity:
            low = middle
        else:
            high = middle
    return high


@dataclass(frozen=True)
class FusionObjective:
    r"""The objective of Lange and Buhmann, eqs. 4 and 6, after its minimisation over the weights.

    .. math:: F = \min_a \sum_l a_l c_l + \eta\, (\log L - H(a))
                = -\eta \log \frac1L \sum_l e^{-c_l / \eta}, \quad
              c_l = b_l - \sum_{ij} p^l_{ij} \log (W H')_{ij}

    The constant :math:`\log L`, which is not in eq. 6, makes F the mean loss as eta grows.

    With a `perplexity` instead of eta, it is the smallest :math:`\sum_l a_l c_l` of weights whose
    entropy is at least its logarithm.

    Where a source did not see all objects, it says how those it saw occur together: the model
    is conditioned on them, :math:`c_l = b_l - \sum p^l_{ij} \log ((W H')_{ij} / M_l)` with
    :math:`M_l` the mass of the model on the pairs that were seen.

    Attributes
    ----------
    mixture : Mixture
    offsets : ndarray of shape (L,)
        The b_l, which do not depend on the model.
    eta : float
    perplexity : float, default=None
    """

    mixture: Mixture
    offsets: np.ndarray
    eta: float
    perplexity: float | None = None

    wide = False  # starts side by side are not faster: a quotient is as large as the similarity

    @cached_property
    def margin(self) -> np.ndarray:
        """Share of every object in the mean source, (n,)."""
        return self.mixture.margin(self.mixture.mixed(self.mixture.equal))

    @cached_property
    def constant(self) -> float:
        """Scale of a change of the loss: how far the mean source is from independent objects."""
        r = np.maximum(self.margin, _SMALLEST[self.mixture.dtype.itemsize])[:, None]
        apart = self.mixture.cross_entropies(r, r) - self.mixture.entropies()
        return max(float(apart.mean()), 0.0)  # below 0 by rounding alone

    def source_losses(self, Z: np.ndarray) -> np.ndarray:
        """Return c_l for the factors Z, as `fusion_nmf` has them."""
        W, H = _factors(Z)
        return self.offsets + self.mixture.cross_entropies(W, H) + np.log(self.seen_mass(W, H))

    def seen_mass(self, W: np.ndarray, H: np.ndarray) -> np.ndarray:
        """Return the mass of ``W H'`` on the pairs that each source saw, (L,)."""
        if self.mixture.complete.all():
            return np.ones(len(self.mixture.totals))
        seen = self.mixture.seen.T.astype(np.float64)
        return np.where(self.mixture.complete, 1.0, ((seen @ W) * (seen @ H)).sum(axis=1))

    def weigh(self, losses: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return the best weights for losses of the sources, the objective F, and their eta."""
        if self.perplexity is not None:
            eta = eta_of_perplexity(losses, self.perplexity)
            weights = gibbs_weights(losses, eta)
            return weights, float(weights @ losses), eta
        return gibbs_weights(losses, self.eta), smallest_objective(losses, self.eta), self.eta


def _factors(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return W, whose entries sum to 1, and H, whose columns do."""
    return Z[0], Z[-1] / Z[-1].sum(axis=0)


def _positive(Z: np.ndarray) -> np.ndarray:
    """Return the factors with entries above 0 that sum to 1."""
    Z = np.maximum(Z, _SMALLEST[Z.dtype.itemsize])
    return Z / Z.sum(axis=(1, 2), keepdims=True)


def em_step(
    objective: FusionObjective, P: object, weights: np.ndarray, Z: np.ndarray
) -> np.ndarray:
    r"""Return the factors after one step of expectation and maximisation.

    With :math:`R = P / (W H')`, entry by entry,

    .. math:: W^+ = W \circ (R H), \quad V^+ = H \circ (R' W), \quad
              H^+ = V^+ \mathrm{diag}(1'V^+)^{-1}

    which are eqs. 3 and 5 of [1]_ without ever forming :math:`\tau`. Z has one factor, V = W, in
    the symmetric form :math:`P \approx H \mathrm{diag}(q) H'`, which the step keeps, and else two.

    Pairs that a source did not see are filled in with what the model expects there, which makes
    the step one of the EM algorithm for the conditioned model, too.

    Parameters
    ----------
    objective : FusionObjective
    P : object
        The mixture of the sources with these weights.
    weights : ndarray of shape (L,)
    Z : ndarray of shape (1 or 2, n, k)

    Returns
    -------
    ndarray of shape (1 or 2, n, k)

    References
    ----------
    .. [1] T. Lange, J. M. Buhmann. Fusion of similarity data in clustering. NIPS 2005.
    """
    W, H = _factors(Z)
    if len(Z) == 1:
        new = (H * objective.mixture.ratio_product(P, W, H))[None]
    else:
        forth, back = objective.mixture.ratio_products(P, W, H)
        new = np.stack([W * forth, H * back])
    return _positive(new + _expected_unseen(objective, weights, W, H)[: len(Z)])


def _expected_unseen(
    objective: FusionObjective, weights: np.ndarray, W: np.ndarray, H: np.ndarray
) -> np.ndarray:
    """Return what the model adds to W, and to H diag(q), for pairs that sources did not see."""
    mixture, q = objective.mixture, W.sum(axis=0)
    added = np.zeros((2, *W.shape), dtype=W.dtype)
    shares = (weights / objective.seen_mass(W, H)).astype(W.dtype)
    for source in np.flatnonzero(~mixture.complete & (weights > 0)):
        seen = mixture.seen[:, source]
        for new, own, others in zip(added, (W, H * q), (H, W / q), strict=True):
            unseen = np.clip(1 - others[seen].sum(axis=0), 0, 1)
            new += shares[source] * own * np.where(seen[:, None], unseen, 1)
    return added


def _extrapolated_and_plain(
    step: Callable[[np.ndarray], np.ndarray], Z: np.ndarray
) -> list[np.ndarray]:
    """Return where three steps lead that run ahead, and where two lead that do not.

    SQUAREM [1]_: the second step shows how fast the first shrinks; extrapolated, the two jump to
    where many would lead, and a third step restores the constraints after the jump. Where there is
    nothing to extrapolate, the two plain steps are returned alone.

    References
    ----------
    .. [1] R. Varadhan, C. Roland. Simple and globally convergent methods for accelerating the
       convergence of any EM algorithm. Scandinavian Journal of Statistics 35, 2008.
    """
    once = step(Z)
    twice = step(once)
    first, change = once - Z, twice - 2 * once + Z
    size = float(np.linalg.norm(change))
    pace = float(np.linalg.norm(first)) / size if size else 1.0
    if pace <= 1:
        return [twice]
    ahead = np.maximum(Z + 2 * pace * first + pace**2 * change, _LEFT * twice)
    return [step(_positive(ahead)), twice]


def fusion_nmf(objective: FusionObjective, Z: np.ndarray) -> Steps:
    r"""Minimise F over weights and factors of the mixture, both in turn.

    The nested alternation of [1]_, section 3: the weights that are best for the losses of the
    sources, then EM steps on the mixture with these weights, extrapolated. Where that would
    raise F, plain EM steps are taken, which cannot: F never rises.

    Parameters
    ----------
    objective : FusionObjective
    Z : ndarray of shape (n_starts, 1 or 2, n, k)
        W, and V = H diag(q) where it is not the same. Positive.

    Yields
    ------
    factors : tuple of ndarray
        Z, whose factors sum to 1, and the weights, of shape (n_starts, L).
    loss : ndarray of shape (n_starts,)

    References
    ----------
    .. [1] T. Lange, J. M. Buhmann. Fusion of similarity data in clustering. NIPS 2005.
    """
    mixture = objective.mixture
    mixed = [(mixture.mixed(mixture.equal), mixture.equal) for _ in Z]
    Z = np.stack([_warmed_up(objective, *mixed[0], start) for start in Z])
    weighed = [objective.weigh(objective.source_losses(start)) for start in Z]
    weights = np.stack([best for best, _, _ in weighed])
    loss = np.array([smallest for _, smallest, _ in weighed])
    while True:
        keep = yield (Z, weights), loss
        if keep is not None:
            mixed = [pair for pair, stays in zip(mixed, keep, strict=True) if stays]
        Z, weights, loss = (array.copy() for array in kept(keep, Z, weights, loss))
        for s in range(len(Z)):
            mixed[s] = _remixed(mixture, weights[s], *mixed[s])
            step = partial(em_step, objective, *mixed[s])
            for candidate in _extrapolated_and_plain(step, Z[s]):
                best, smallest, _ = objective.weigh(objective.source_losses(candidate))
                if smallest <= loss[s]:
                    Z[s], weights[s], loss[s] = candidate, best, smallest
                    break


def _warmed_up(
    objective: FusionObjective, P: object, weights: np.ndarray, Z: np.ndarray
) -> np.ndarray:
    Z = _positive(Z)
    for _ in range(_WARM_UP):
        Z = em_step(objective, P, weights, Z)
    return Z


def _remixed(
    mixture: Mixture, weights: np.ndarray, P: object, before: np.ndarray
) -> tuple[object, np.ndarray]:
    """Return the mixture with new weights, in the place of that with the weights before."""
    if abs(weights - before).max() <= _SAME:
        return P, before
    return mixture.mixed(weights, out=P), weights.copy()  # the caller's are changed in place


@dataclass(frozen=True)
class Fusion(Factorization):
    """The factors that were kept, and the weights of the sources.

    Attributes
    ----------
    objective : FusionObjective
    """

    objective: FusionObjective

    @property
    def joint(self) -> np.ndarray:
        """``H diag(q)``: the model's probability of an object with a cluster, (n, k)."""
        return self.best.factors[0][-1]

    @property
    def core(self) -> np.ndarray:
        """``diag(q)``: the probability of every cluster, (k, k)."""
        return np.diag(self.joint.sum(axis=0))

    @property
    def source_losses(self) -> np.ndarray:
        """The loss of every source, in nats, (L,)."""
        return self.objective.source_losses(self.best.factors[0])

    def posterior(self) -> np.ndarray:
        """Return the probability of the clusters given the object, (n, k).

        The row of an object that is in no source with a weight is 0: nothing is known of it, and
        it tells nothing of others.
        """
        mixture, weights = self.objective.mixture, self.best.factors[1]
        margin = mixture.margin(mixture.mixed(weights))
        known = margin > _LEAST_SHARE * margin.mean()
        return membership(self.joint) * known[:, None]


def objective_of(
    mixture: Mixture, criterion: str, eta: float, perplexity: float | None
) -> FusionObjective:
    """Return the objective of a criterion.

    The loss of a source is its divergence from the model in "kl", and the cross-entropy in
    "cross_entropy"; there, a source that did not see all objects counts as if it knew nothing of
    the others.
    """
    if criterion == "kl":
        offsets = -mixture.entropies()
    else:
        offsets = -2 * np.log(mixture.seen.mean(axis=0))
    return FusionObjective(mixture, offsets, eta, perplexity)


def fuse(
    objective: FusionObjective, plan: Plan, rng: np.random.RandomState, symmetric: bool
) -> Fusion:
    """Fit the factors, one or two, and the weights; the run with the smallest loss is kept."""
    mixture = objective.mixture
    starts = draw_starts(mixture, plan, rng, symmetric)
    task = f"{mixture.shape[0]} objects, {len(mixture.totals)} source(s)"
    plan = plan.stopping(min_iter=_MIN_ITER, race_from=_RACE_FROM)
    solutions = plan.run(objective, starts, task)
    curves = [solution.history for solution in solutions]
    return Fusion(solutions[0], curves, objective.constant, objective)
