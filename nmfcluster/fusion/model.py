"""Kullback-Leibler factorization of a mixture of sources whose weights are found with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from nmfcluster._arrays import storage
from nmfcluster._arrays.arguments import counted
from nmfcluster._base import membership
from nmfcluster._engine.executor import Plan, Start
from nmfcluster._engine.loop import Solution, Steps, best_first, is_below, kept
from nmfcluster._engine.starts import draw_seeds, spectral_start
from nmfcluster._engine.symmetric import Factorization
from nmfcluster.fusion.mixture import Mixture
from nmfcluster.fusion.objective import SMALLEST, FusionObjective, factors_of
from nmfcluster.similarity import Explicit

_MIN_ITER = 10  # updates, of two or three EM steps each: the first ones can gain little
_RACE_FROM = 3  # updates: a start that can win is below the end of the others by then
_RACE_FROM_NATS = 20  # the same of losses in nats, which flat kernels hardly change
_WARM_UP = 5  # EM steps on equal weights: losses of a raw start say nothing of the sources
_TOLD = 1 / 3  # of what can be explained of a source: of noise it was at most 0.28, mostly 0


def _positive(Z: np.ndarray) -> np.ndarray:
    """Return the factors with entries above 0 that sum to 1."""
    Z = np.maximum(Z, SMALLEST[Z.dtype.itemsize])
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
    W, H = factors_of(Z)
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
    ahead = Z + 2 * pace * first + pace**2 * change
    ahead = np.maximum(ahead, 0.5 * twice)  # from an entry next to 0 few come back
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
    weights = np.stack([best for best, _ in weighed])
    loss = np.array([smallest for _, smallest in weighed])
    while True:
        keep = yield (Z, weights), loss
        if keep is not None:
            mixed = [pair for pair, stays in zip(mixed, keep, strict=True) if stays]
        Z, weights, loss = (array.copy() for array in kept(keep, Z, weights, loss))
        for s in range(len(Z)):
            # EM steps on the mixture with the weights so far
            mixed[s] = _remixed(mixture, objective.shares(weights[s]), *mixed[s])
            step = partial(em_step, objective, *mixed[s])
            # where they lead, with the weights that are best there, if that does not raise F
            for candidate in _extrapolated_and_plain(step, Z[s]):
                best, smallest = objective.weigh(objective.source_losses(candidate))
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
    if abs(weights - before).max() <= 1e-12:  # too little to change a mixture
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
    def core(self) -> np.ndarray:
        """``diag(q)``: the probability of every cluster, (k, k)."""
        return np.diag(self.best.factors[0][-1].sum(axis=0))

    def posterior(self, dtype: np.dtype) -> np.ndarray:
        """Return the probability of the clusters given the object, (n, k).

        The row of an object that is in no source with a weight is 0: nothing is known of it, and
        it tells nothing of others.
        """
        mixture, (Z, weights) = self.objective.mixture, self.best.factors
        margin = mixture.margin(mixture.mixed(self.objective.shares(weights)))
        known = margin > 1e-12 * margin.mean()  # of less an object's start is not moved
        return membership(Z[-1].astype(dtype)) * known[:, None]


def number_of_starts(n_init: int | str, n_sources: int) -> int:
    """Return the number of starts: "auto" is all that there are, a number the first of them.

    They are those on the mean source, on the sources by what they are worth, and on each alone.
    """
    most = 2 + n_sources if n_sources > 1 else 1
    return most if isinstance(n_init, str) else min(int(n_init), most)


def fuse(
    objective: FusionObjective, plan: Plan, rng: np.random.RandomState, symmetric: bool
) -> Fusion:
    """Fit the factors, one or two, and the weights; the run with the smallest loss is kept.

    The first start is spectral, on the mean source. It tells what the sources are worth: the
    second is spectral on the mixture with its weights, and others are on single sources. All but
    the first must soon be below it by `tol`.
    """
    mixture = objective.mixture
    task = f"{mixture.shape[0]} objects, {counted(len(mixture.totals), 'source')}"
    race_from = _RACE_FROM_NATS if objective.scales is None else _RACE_FROM
    plan = plan.stopping(min_iter=_MIN_ITER, race_from=race_from)
    seeds = draw_seeds(rng, plan.n_init)

    def start(weights: np.ndarray, seed: int) -> Start:
        return partial(spectral_factors, mixture, plan.n_clusters, symmetric, weights, seed)

    # the first start, which says what the sources are worth
    solutions = plan.run(objective, [start(mixture.equal, seeds[0])], task)
    # the others, by the weights that it found, and by one source each
    shares = objective.shares(solutions[0].factors[1])
    weights = [shares, *np.eye(len(shares))]
    others = [start(one, seed) for one, seed in zip(weights, seeds[1:], strict=False)]
    if others:
        lead = solutions[0].loss - max(plan.stop.tol, 0) * objective.constant
        solutions += plan.run(objective, others, task, lead=lead)
    best = _best_of(objective, solutions)
    solutions.sort(key=lambda one: (one is not best, one.given_up, one.loss))
    curves = [solution.history for solution in solutions]
    return Fusion(best, curves, objective.constant, objective)


def spectral_factors(
    mixture: Mixture, n_clusters: int, symmetric: bool, weights: np.ndarray, seed: int
) -> np.ndarray:
    """Return the factors where a run starts: from leading eigenvectors of a mixture.

    Parameters
    ----------
    mixture : Mixture
    n_clusters : int
    symmetric : bool
        Whether the two factors are one.
    weights : ndarray of shape (L,)
        Of the sources in the mixture.
    seed : int
        Of the other factor.

    Returns
    -------
    ndarray of shape (1 or 2, n, k)
        W, or W and V; their scale is of no importance.
    """
    A = Explicit(mixture.matrix(weights)).without_diagonal()
    degrees = (A @ np.ones((A.shape[0], 1), dtype=A.dtype))[:, 0]
    if degrees.any():
        roots = np.sqrt(degrees)
        H = spectral_start(A.scaled(storage.inverse(roots)), n_clusters) * roots[:, None]
        H += 1e-3 * H.mean()  # an entry that begins at 0 stays there
        W = H * H.sum(axis=0)
    else:  # a similarity of 0 has no eigenvectors: all clusters are alike
        W = np.ones((A.shape[0], n_clusters), dtype=A.dtype)
    if symmetric:
        return W[None]
    noise = np.random.RandomState(seed).uniform(0.5, 1.5, size=W.shape).astype(W.dtype)
    return np.stack([W, W * noise])


def _best_of(objective: FusionObjective, solutions: list[Solution]) -> Solution:
    """Return the solution with the smallest loss that tells of no fewer sources than the first.

    Clusters that fit one source closely, and no other, can have a smaller loss than those that
    all sources share. A solution tells of a source if it explains a part of what the best
    solution for that source does.
    """
    if objective.scales is None:
        return best_first([one for one in solutions if not one.given_up])[0]
    losses = np.array([objective.source_losses(one.factors[0]) for one in solutions])
    explained = np.maximum(1 - losses, 0)
    told = (explained > _TOLD * explained.max(axis=0)).sum(axis=1)
    best = 0
    for i, one in enumerate(solutions):
        better = is_below(one.loss, solutions[best].loss, solutions[best])
        if not one.given_up and better and told[i] >= told[best]:
            best = i
    return solutions[best]
