"""Kullback-Leibler factorization of a mixture of sources whose weights are found with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from nmfcluster._arrays import storage
from nmfcluster._arrays.arguments import counted
from nmfcluster._arrays.jobs import one_thread
from nmfcluster._base import membership
from nmfcluster._engine.executor import Plan, Start
from nmfcluster._engine.loop import Steps, kept
from nmfcluster._engine.starts import draw_seeds, leading_eigenpairs, turned
from nmfcluster._engine.symmetric import Factorization
from nmfcluster.fusion.mixture import Mixture
from nmfcluster.fusion.objective import SMALLEST, FusionObjective, factors_of
from nmfcluster.similarity import Explicit, Similarity

_MIN_ITER = 10  # updates, of two or three EM steps each: the first ones can gain little
_RACE_FROM = 3  # updates: a start that can win is below the end of the first by then
_RACE_FROM_NATS = 20  # the same of losses in nats, which flat kernels hardly change
_WARM_UP = 5  # EM steps on what a start is made of: losses of a raw one say nothing of sources
_KMEANS = 5  # runs of k-means on eigenvectors, which are few: one is not always the best


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
    mixture, Z = objective.mixture, np.stack(list(map(_positive, Z)))
    mixed = [(mixture.mixed(mixture.equal), mixture.equal) for _ in Z]
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
            mixed[s] = _remixed(mixture, weights[s], *mixed[s])
            step = partial(em_step, objective, *mixed[s])
            # where they lead, with the weights that are best there, if that does not raise F
            for candidate in _extrapolated_and_plain(step, Z[s]):
                best, smallest = objective.weigh(objective.source_losses(candidate))
                if smallest <= loss[s]:
                    Z[s], weights[s], loss[s] = candidate, best, smallest
                    break


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
        margin = mixture.margin(mixture.mixed(weights))
        known = margin > 1e-12 * margin.mean()  # of less an object's start is not moved
        return membership(Z[-1].astype(dtype)) * known[:, None]


@dataclass(frozen=True)
class Origin:
    """What starts are made of: a matrix, and the weights of its sources in the objective.

    Attributes
    ----------
    matrix : callable
        Returns the {ndarray, csr_array} of shape (n, n), which need not exist before.
    weights : ndarray of shape (L,)
    n_clusters : int
    """

    matrix: Callable[[], Any]
    weights: np.ndarray
    n_clusters: int

    @cached_property
    def degrees(self) -> np.ndarray:
        """The sums of its rows, without its diagonal."""
        A = self._compared
        return (A @ np.ones((A.shape[0], 1), dtype=A.dtype))[:, 0]

    @cached_property
    def _compared(self) -> Similarity:
        return Explicit(self.matrix()).without_diagonal()

    @cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Leading eigenvalues, and their vectors, of the matrix over the roots of degrees."""
        A = self._compared.scaled(storage.inverse(np.sqrt(self.degrees)))
        return leading_eigenpairs(A, min(self.n_clusters, A.shape[0]))

    def spectral(self) -> np.ndarray:
        """Return W from eigenvectors turned towards the axes, (n, k); its scale is of no use."""
        H = turned(*self.spectrum, self.n_clusters) * np.sqrt(self.degrees)[:, None]
        H += 1e-3 * H.mean()  # an entry that begins at 0 stays there
        return np.asarray(H * H.sum(axis=0), dtype=self.degrees.dtype)

    def clustered(self) -> np.ndarray:
        """Return W of clusters that k-means finds in the rows of the eigenvectors, (n, k)."""
        _, vectors = self.spectrum
        kmeans = KMeans(vectors.shape[1], n_init=_KMEANS, random_state=0)
        with one_thread():
            labels = kmeans.fit_predict(normalize(vectors))
        clusters = np.eye(self.n_clusters, dtype=self.degrees.dtype)[labels]
        return np.asarray((clusters + 0.1 / self.n_clusters) * self.degrees[:, None])


def start_from(
    objective: FusionObjective, origin: Origin, by_kmeans: bool, symmetric: bool, seed: int
) -> np.ndarray:
    """Return the factors where a run starts, after some EM steps on what they are made of.

    Parameters
    ----------
    objective : FusionObjective
    origin : Origin
    by_kmeans : bool
        Whether it is made of clusters, and not of eigenvectors.
    symmetric : bool
        Whether the two factors are one.
    seed : int
        Of the other factor.

    Returns
    -------
    ndarray of shape (1 or 2, n, k)
        W, or W and V.
    """
    degrees, k = origin.degrees, origin.n_clusters
    if not degrees.any():  # a similarity of 0 has no clusters: all are alike
        Z = np.ones((1 if symmetric else 2, len(degrees), k), dtype=degrees.dtype)
    else:
        Z = (origin.clustered() if by_kmeans else origin.spectral())[None]
        if not symmetric:
            noise = np.random.RandomState(seed).uniform(0.5, 1.5, size=Z.shape).astype(Z.dtype)
            Z = np.concatenate([Z, Z * noise])
    Z, P = _positive(Z), objective.mixture.mixed(origin.weights)
    for _ in range(_WARM_UP):
        Z = em_step(objective, P, origin.weights, Z)
    return Z


def fuse(
    objective: FusionObjective,
    plan: Plan,
    rng: np.random.RandomState,
    symmetric: bool,
    alone: Sequence[Callable[[], Any]] = (),
) -> Fusion:
    """Fit the factors, one or two, and the weights; the run with the smallest loss is kept.

    The first start is spectral, on all sources as they are weighed before anything is known of the
    model; the second has the clusters of k-means on the same eigenvectors. The others are
    spectral, on matrices that are given: those of single sources, for which the objective has
    weights if there are several in it. All but the first must soon be below it by `tol`.
    """
    mixture, k = objective.mixture, plan.n_clusters
    task = f"{mixture.shape[0]} objects, {counted(len(mixture.totals), 'source')}"
    whole = Origin(partial(mixture.matrix, objective.prior), objective.prior, k)
    own = np.eye(len(alone)) if len(mixture.totals) == len(alone) else np.ones((len(alone), 1))
    origins = [whole, whole, *(Origin(*pair, k) for pair in zip(alone, own, strict=True))]
    seeds = draw_seeds(rng, len(origins))
    starts: list[Start] = [
        partial(start_from, objective, origin, number == 1, symmetric, seed)
        for number, (origin, seed) in enumerate(zip(origins, seeds, strict=True))
    ]
    race_from = _RACE_FROM_NATS if objective.scales is None else _RACE_FROM
    plan = plan.stopping(min_iter=_MIN_ITER, race_from=race_from)
    solutions = plan.run(objective, starts[:1], task)
    if others := starts[1 : plan.n_init]:
        lead = solutions[0].loss - max(plan.stop.tol, 0) * objective.constant
        solutions += plan.run(objective, others, task, lead=lead)
        solutions.sort(key=lambda one: (one.given_up, one.loss))
    curves = [solution.history for solution in solutions]
    return Fusion(solutions[0], curves, objective.constant, objective)
