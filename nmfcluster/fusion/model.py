"""Kullback-Leibler factorization of a matrix of pairs: the model of all fusions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from nmfcluster._base import membership
from nmfcluster._optim.initialization import leading_eigenpairs, rotate_to_axes
from nmfcluster._optim.run import SolverConfig, Start, Steps, keep_starts, run_starts
from nmfcluster._optim.symmetric import Factorization
from nmfcluster._utils import storage
from nmfcluster._utils.parallel import one_thread
from nmfcluster.fusion.kl_loss import FusionObjective
from nmfcluster.similarity import Explicit, Similarity

# entry of a factor that sums to 1, by bytes a number: 0 would be final; products of two are above 0
_SMALLEST = {4: 1e-18, 8: 1e-20}
_MIN_ITER = 10  # updates, of two or three EM steps each: the first ones can gain little
_RACE_FROM = 3  # updates: a start that can win is below the end of the first by then
_RACE_FROM_NATS = 20  # the same of losses in nats, which flat kernels hardly change
_WARM_UP = 5  # EM steps of a start: a raw one may fit nothing at first
_KMEANS = (
    5  # runs of k-means on eigenvectors, which are few: one is not always the best
)


def _positive(W: np.ndarray) -> np.ndarray:
    """Return a factor with entries above 0 that sum to 1."""
    W = np.maximum(W, _SMALLEST[W.dtype.itemsize])
    return np.asarray(W / W.sum())


def em_step(objective: FusionObjective, W: np.ndarray) -> np.ndarray:
    r"""Return the factor after one step of expectation and maximisation.

    With :math:`R = P / (W H')`, entry by entry, and :math:`W = H \mathrm{diag}(q)`,

    .. math:: W^+ = H \circ (R W) , \quad H^+ = W^+ \mathrm{diag}(1'W^+)^{-1}

    which are eqs. 3 and 5 of [1]_ for a symmetric P, without ever forming :math:`\tau`.

    Parameters
    ----------
    objective : FusionObjective
    W : ndarray of shape (n, k)

    Returns
    -------
    ndarray of shape (n, k)

    References
    ----------
    .. [1] T. Lange, J. M. Buhmann. Fusion of similarity data in clustering. NIPS 2005.
    """
    H = W / W.sum(axis=0)
    return _positive(H * objective.pairs.ratio_product(W, H))


def _extrapolated_and_plain(
    step: Callable[[np.ndarray], np.ndarray], W: np.ndarray
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
    once = step(W)
    twice = step(once)
    first, change = once - W, twice - 2 * once + W
    size = float(np.linalg.norm(change))
    pace = float(np.linalg.norm(first)) / size if size else 1.0
    if pace <= 1:
        return [twice]
    ahead = W + 2 * pace * first + pace**2 * change
    ahead = np.maximum(ahead, 0.5 * twice)  # from an entry next to 0 few come back
    return [step(_positive(ahead)), twice]


def fusion_nmf(objective: FusionObjective, W: np.ndarray) -> Steps:
    """Minimise the divergence of pairs from the model, by EM steps that are extrapolated.

    Where that would raise it, plain EM steps are taken, which cannot: the loss never rises.

    Parameters
    ----------
    objective : FusionObjective
    W : ndarray of shape (n_starts, n, k)
        Factors ``H diag(q)``, positive.

    Yields
    ------
    factors : tuple of ndarray
        W, each of which sums to 1.
    loss : ndarray of shape (n_starts,)
    """
    W = np.stack(list(map(_positive, W)))
    loss, step = np.array(list(map(objective.loss, W))), partial(em_step, objective)
    while True:
        keep = yield (W,), loss
        W, loss = (array.copy() for array in keep_starts(keep, W, loss))
        for s in range(len(W)):
            for candidate in _extrapolated_and_plain(step, W[s]):
                reached = objective.loss(candidate)
                if reached <= loss[s]:
                    W[s], loss[s] = candidate, reached
                    break


@dataclass(frozen=True)
class Fusion(Factorization):
    """The factor that was kept.

    Attributes
    ----------
    objective : FusionObjective
    """

    objective: FusionObjective

    @property
    def core(self) -> np.ndarray:
        """``diag(q)``: the probability of every cluster, (k, k)."""
        return np.diag(self.best.factors[0].sum(axis=0))

    def posterior(self, dtype: np.dtype) -> np.ndarray:
        """Return the probability of the clusters given the object, (n, k).

        The row of an object that is in no pair is 0: nothing is known of it, and it tells nothing
        of others; unless nothing is known of any.
        """
        margin = self.objective.pairs.margin
        known = (
            margin >= 1e-12 * margin.mean()
        )  # of less an object's start is not moved
        return membership(self.best.factors[0].astype(dtype)) * known[:, None]


@dataclass(frozen=True)
class Origin:
    """What starts are made of.

    Attributes
    ----------
    matrix : {ndarray, csr_array} of shape (n, n)
    n_clusters : int
    """

    matrix: Any
    n_clusters: int

    @cached_property
    def _compared(self) -> Similarity:
        return Explicit(self.matrix).without_diagonal()

    @cached_property
    def degrees(self) -> np.ndarray:
        """The sums of its rows, without its diagonal."""
        return (
            self._compared @ np.ones((self.matrix.shape[0], 1), dtype=self.matrix.dtype)
        )[:, 0]

    @cached_property
    def spectrum(self) -> tuple[np.ndarray, np.ndarray]:
        """Leading eigenvalues, and their vectors, of the matrix over the roots of degrees."""
        A = self._compared.scaled(storage.inverse(np.sqrt(self.degrees)))
        return leading_eigenpairs(A, min(self.n_clusters, A.shape[0]))

    def spectral(self) -> np.ndarray:
        """Return W from eigenvectors rotated towards the axes, (n, k); its scale is of no use."""
        H = (
            rotate_to_axes(*self.spectrum, self.n_clusters)
            * np.sqrt(self.degrees)[:, None]
        )
        H += 1e-3 * H.mean()  # an entry that begins at 0 stays there
        return np.asarray(H * H.sum(axis=0))

    def clustered(self) -> np.ndarray:
        """Return W of clusters that k-means finds in the rows of the eigenvectors, (n, k)."""
        _, vectors = self.spectrum
        kmeans = KMeans(vectors.shape[1], n_init=_KMEANS, random_state=0)
        with one_thread():
            labels = kmeans.fit_predict(normalize(vectors))
        return (np.eye(self.n_clusters)[labels] + 0.1 / self.n_clusters) * self.degrees[
            :, None
        ]

    def start(self, objective: FusionObjective, by_kmeans: bool) -> np.ndarray:
        """Return the factor where a run starts, after some EM steps, (n, k)."""
        if self.degrees.any():
            W = self.clustered() if by_kmeans else self.spectral()
        else:  # a similarity of 0 has no clusters: all are alike
            W = np.ones((self.matrix.shape[0], self.n_clusters))
        W = _positive(W.astype(objective.pairs.dtype))
        for _ in range(_WARM_UP):
            W = em_step(objective, W)
        return W


def fuse(
    objective: FusionObjective,
    matrix: Any,
    config: SolverConfig,
    alone: Sequence[Any] = (),
    before: np.ndarray | None = None,
) -> Fusion:
    """Fit the factor to pairs; the run with the smallest loss is kept.

    The first start is spectral; the second has the clusters of k-means on the same eigenvectors.
    The others are spectral, on matrices of single sources. All but the first must soon be below it
    by `tol`.

    Parameters
    ----------
    objective : FusionObjective
    matrix : {ndarray, csr_array} of shape (n, n)
        That the pairs are of.
    config : SolverConfig
    alone : sequence of {ndarray, csr_array} of shape (n, n), default=()
    before : ndarray of shape (n, k), default=None
        A factor to start from, before all others.
    """
    whole, k = Origin(matrix, config.n_clusters), config.n_clusters
    starts: list[Start] = [] if before is None else [partial(np.asarray, before)]
    starts += [
        partial(whole.start, objective, by_kmeans) for by_kmeans in (False, True)
    ]
    starts += [partial(Origin(one, k).start, objective, False) for one in alone]
    prune_from = _RACE_FROM if objective.relative else _RACE_FROM_NATS
    config = config.with_stop(min_iter=_MIN_ITER, prune_from=prune_from)
    solutions = run_starts(
        objective, starts[:1], config, task := f"{matrix.shape[0]} objects"
    )
    if others := starts[1 : config.n_init]:
        to_beat = solutions[0].loss - max(config.stop.tol, 0) * objective.constant
        solutions += run_starts(objective, others, config, task, to_beat=to_beat)
        solutions.sort(key=lambda one: (one.pruned, one.loss))
    curves = [solution.history for solution in solutions]
    return Fusion(solutions[0], curves, objective.constant, objective)
