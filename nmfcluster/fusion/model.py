"""Kullback-Leibler factorization of a matrix of pairs, alternating with weights of the sources.

A source S of n objects and p landmarks is treated as the bipartite graph ``[[0, S], [S', 0]]``. Its
factor stacks W of the objects on H of the landmarks. An EM step equals that of ``P = W H'``, and
gives both parts the same probability. The loss of a model and the largest loss are both larger by
log 2 than for ``P``, because the graph also encodes which end of a pair is an object.
"""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import log
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._base import hard_labels, membership
from nmfcluster._optim.initialization import (
    cluster_eigenvectors,
    leading_eigenpairs,
    rotate_to_axes,
)
from nmfcluster._optim.run import Solution, Start, Steps, run_starts
from nmfcluster._optim.symmetric import Factorization
from nmfcluster._utils import storage
from nmfcluster._utils.labels import one_hot
from nmfcluster._utils.progress import stage
from nmfcluster._utils.validation import format_count, warn
from nmfcluster.fusion.kl_loss import (
    FusionObjective,
    cross_entropy,
    entropy_of,
    gibbs_weights,
)
from nmfcluster.fusion.residuals import FusedGraph
from nmfcluster.similarity import Explicit

# smallest entry of a factor that sums to 1, by bytes of its dtype: an entry of 0 would stay 0, and
# the product of two entries must be above 0
_SMALLEST = {4: 1e-18, 8: 1e-20}
# updates, of two or three EM steps each, before a run can converge: the first ones can gain little
_MIN_ITER = 10
# updates after which a start is abandoned unless its loss is below the final loss of the first one;
# losses in nats need more updates, because they change little with flat kernels
_PRUNE_FROM = 3
_PRUNE_FROM_NATS = 20
_WARM_UP = 5  # EM steps of a start: eigenvectors alone may fit nothing at first
# a normalised cut is clearly smaller if it is below _SMALLER_CUT times the other one minus
# _SHARE_OF_CLUSTER: no tested set of views or graphs then lost more than 0.01 of the adjusted Rand
# index; with a factor alone (0.88) some lost up to 0.38
_SMALLER_CUT = 0.9
_SHARE_OF_CLUSTER = 0.1
# fewest objects of a cluster of eigenvectors: smaller ones are outliers, or a few objects that are
# neighbours of each other only, and do not show which source is informative
FEWEST = 6
_WEIGHTS_TOL = 1e-3  # weights have converged below this change, which moves no object
# factor between the sum of a source and overflow, because products have larger sums
_ROOM = 1e3


def _make_positive(W):
    """Return a factor with entries above 0 that sum to 1."""
    W = np.maximum(W, _SMALLEST[W.dtype.itemsize])
    return W / W.sum()


def em_step(objective, W):
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
    return _make_positive(H * objective.pairs.ratio_product(W, H))


def extrapolate_steps(step, W):
    """Return the factor after an extrapolated step of SQUAREM [1]_, and after two plain steps.

    SQUAREM takes two steps, and computes from them how fast the steps shrink. It then jumps to
    about the point that many steps would reach, and a third step restores the constraints. If the
    jump would not go beyond the two steps, only the result of the second step is returned.

    References
    ----------
    .. [1] R. Varadhan, C. Roland. Simple and globally convergent methods for accelerating the
       convergence of any EM algorithm. Scandinavian Journal of Statistics 35, 2008.
    """
    once = step(W)
    twice = step(once)
    first = once - W
    change = twice - 2 * once + W
    size = float(np.linalg.norm(change))
    pace = float(np.linalg.norm(first)) / size if size else 1.0
    if pace <= 1:
        return [twice]
    extrapolated = W + 2 * pace * first + pace**2 * change
    # entries may at most halve, because one near 0 seldom grows again
    extrapolated = np.maximum(extrapolated, 0.5 * twice)
    return [step(_make_positive(extrapolated)), twice]


def fusion_nmf(objective, W) -> Steps:
    """Minimise the divergence of pairs from the model by extrapolated EM steps.

    If an extrapolated step would raise the divergence, plain EM steps are taken, which never raise
    it.

    Parameters
    ----------
    objective : FusionObjective
    W : ndarray of shape (1, n, k)
        The factor ``H diag(q)``, positive, of one start.

    Yields
    ------
    factors : tuple of ndarray
        W, which sums to 1.
    loss : ndarray of shape (1,)
    """
    factor = _make_positive(W[0])
    loss = objective.loss(factor)
    step = partial(em_step, objective)
    while True:
        yield (factor[None],), np.array([loss])
        for candidate in extrapolate_steps(step, factor):
            candidate_loss = objective.loss(candidate)
            if candidate_loss <= loss:
                factor = candidate
                loss = candidate_loss
                break


@dataclass(frozen=True)
class Fusion(Factorization):
    """The model of the start that was kept.

    Attributes
    ----------
    objective : FusionObjective
    partition : ndarray of shape (n, k) or None
        Indicator of the clusters of eigenvectors, if these replace the model. The factor then holds
        the similarity to each of these clusters.
    """

    objective: FusionObjective
    partition: np.ndarray | None

    def posterior(self, dtype):
        """Return the probability of the clusters given the object, (n, k).

        The row of an object that is in no pair is 0. Such an object has no cluster, and does not
        influence new objects. If no object is in a pair, all rows are uniform.
        """
        margin = self.objective.pairs.margin
        # objects with a smaller margin have not moved from their start
        is_known = margin >= 1e-12 * margin.mean()
        return membership(self.best.factors[0].astype(dtype)) * is_known[:, None]

    def profile(self, dtype):
        """Return the weight of every object in the score of every cluster, (n, k)."""
        if self.partition is not None:
            return self.partition.astype(dtype)
        sizes = self.best.factors[0].sum(axis=0).astype(dtype)
        return self.posterior(dtype) / sizes


@dataclass
class SpectralStarts:
    """Starting factors from the leading eigenvectors of a matrix.

    Attributes
    ----------
    matrix : {ndarray, csr_array} of shape (n, n)
    n_clusters : int
    """

    matrix: Any
    n_clusters: int

    @cached_property
    def labels(self):
        """Clusters of k-means on the leading eigenvectors, (n,), int."""
        degrees, _, vectors = self._spectrum
        if not degrees.any():
            return np.zeros(len(degrees), dtype=int)
        return cluster_eigenvectors(vectors, degrees)

    @cached_property
    def _spectrum(self):
        """Degrees, and leading eigenvalues and eigenvectors of the normalised matrix.

        Degrees are the sums of rows without the diagonal. Entries are divided by the square roots
        of both degrees. If all degrees are 0, no eigenvalues are computed.
        """
        A = storage.without_diagonal(self.matrix)
        n = A.shape[0]
        degrees = (Explicit(A) @ np.ones((n, 1), dtype=A.dtype))[:, 0]
        if not degrees.any():
            return degrees, np.empty(0), np.empty((n, 0))
        scaled = storage.scaled_both(A, storage.safe_inverse(np.sqrt(degrees)))
        values, vectors = leading_eigenpairs(Explicit(scaled), min(self.n_clusters, n))
        return degrees, values, vectors

    def start(self, objective, by_kmeans):
        """Return the starting factor of a run, after some EM steps, (n, k).

        The steps start from the clusters of k-means on the eigenvectors if `by_kmeans`, else from
        the eigenvectors rotated towards the axes.
        """
        degrees, values, vectors = self._spectrum
        k = self.n_clusters
        if not degrees.any():  # a similarity of 0 has no clusters
            W = np.ones((len(degrees), k))
        elif by_kmeans:
            W = (one_hot(self.labels, k) + 0.1 / k) * degrees[:, None]
        else:
            H = rotate_to_axes(values, vectors, k) * np.sqrt(degrees)[:, None]
            H += 1e-3 * H.mean()  # an entry that starts at 0 would stay 0
            W = H * H.sum(axis=0)
        W = _make_positive(W.astype(objective.pairs.margin.dtype))
        for _ in range(_WARM_UP):
            W = em_step(objective, W)
        return W


def fit_fusion(
    matrix,
    config,
    *,
    relative,
    symmetric=True,
    single_matrices=(),
    previous=None,
):
    """Fit the factor to the pairs of a matrix, and keep the run with the smallest loss.

    The first start is spectral. The second uses the clusters of k-means on the same eigenvectors.
    The others are spectral, from matrices of single sources. All but the first are abandoned unless
    their loss soon falls below that of the first by `tol`.

    Splitting a large cluster can lower a relative loss more than finding a small one. The clusters
    of k-means on the leading eigenvectors therefore replace the model if their normalised cut is
    clearly smaller.

    Parameters
    ----------
    matrix : {ndarray, csr_array} of shape (n, n) or (n, p)
    config : SolverConfig
    relative : bool
        Whether the loss is a share. Otherwise it is in nats. See `FusionObjective`.
    symmetric : bool, default=True
        Whether the matrix compares objects with each other. Otherwise it compares them with
        landmarks, and the bipartite graph of objects and landmarks is fitted.
    single_matrices : sequence of {ndarray, csr_array}, default=()
        Matrices of the same shape.
    previous : ndarray of shape (n, k) or (n + p, k), default=None
        A factor from which the first run starts.
    """
    shift = 0.0
    if not symmetric:
        matrix = storage.bipartite_graph(matrix)
        single_matrices = [storage.bipartite_graph(one) for one in single_matrices]
        shift = log(2)
    objective = FusionObjective(matrix, relative, shift)
    # the starts are computed when they are run
    k = config.n_clusters
    whole = SpectralStarts(matrix, k)
    starts: list[Start] = [
        partial(whole.start, objective, False),
        partial(whole.start, objective, True),
    ]
    if previous is not None:
        starts.insert(0, partial(np.asarray, previous))
    for single in single_matrices:
        starts.append(partial(SpectralStarts(single, k).start, objective, False))
    # run the first start, then the others, which must beat it
    config = replace(
        config,
        min_iter=_MIN_ITER,
        prune_from=_PRUNE_FROM if relative else _PRUNE_FROM_NATS,
    )
    task = f"{matrix.shape[0]} objects"
    solutions = run_starts(objective, starts[:1], config, task)
    others = starts[1 : config.n_init]
    if others:
        to_beat = solutions[0].loss - max(config.tol, 0) * objective.constant
        solutions += run_starts(objective, others, config, task, to_beat=to_beat)
        solutions.sort(key=lambda one: (one.pruned, one.loss))
    partition = None
    if relative:
        # assign each object to the cluster of eigenvectors to which it is most similar
        indicator = one_hot(whole.labels, k)
        shares = matrix @ indicator
        found = one_hot(shares.argmax(axis=1), k)
        fitted = one_hot(solutions[0].factors[0].argmax(axis=1), k)
        to_beat = _SMALLER_CUT * normalised_cut(matrix, fitted) - _SHARE_OF_CLUSTER
        has_few = found.sum(axis=0).min() < FEWEST
        if not has_few and normalised_cut(matrix, found) < to_beat:
            partition = indicator
            factor = _make_positive(shares.astype(matrix.dtype))
            loss = objective.loss(factor)
            solutions.insert(0, Solution((factor,), loss, np.array([loss]), True))
    curves = [solution.history for solution in solutions]
    return Fusion(solutions[0], curves, objective.constant, objective, partition)


def normalised_cut(A, E):
    """Return the sum over clusters of the share of their similarity to other clusters.

    Parameters
    ----------
    A : csr_array of shape (n, n)
    E : ndarray of shape (n, k)
        Indicator of the clusters.
    """
    between = E.T @ (A @ E)
    volumes = between.sum(axis=1)
    return len(between) - float(
        (between.diagonal() * storage.safe_inverse(volumes)).sum()
    )


@dataclass(frozen=True)
class Sample:
    """The objects that a model is fitted to.

    Attributes
    ----------
    fitted : ndarray of int
        The objects, in the order in which they are fitted.
    compared : ndarray of int
        The objects that they are compared with, or columns of their similarities.
    symmetric : bool
        Whether `fitted` and `compared` are the same. Otherwise `compared` are landmarks.
    distinct : ndarray of int or slice
        Positions in `compared` of the first of each set of equal objects.
    """

    fitted: np.ndarray
    compared: np.ndarray
    symmetric: bool
    distinct: Any


def draw_sample(
    shape,
    order,
    n_clusters,
    max_samples,
    symmetric,
    rng,
):
    """Return the objects that a model is fitted to, in their canonical order.

    If `symmetric` is False, all objects are fitted to their similarities to the drawn objects.
    """
    n_objects, n_columns = shape[:2]
    size: Any = n_columns if max_samples is None else max_samples
    if not isinstance(size, Integral):
        size = max(round(size * n_columns), 2)
    if not n_clusters <= size <= n_columns:
        raise ValueError(
            f"max_samples={max_samples} must select at least n_clusters={n_clusters} and at most "
            f"all {n_columns} objects, or columns of similarities, but it selects {size}."
        )
    chosen = np.arange(n_columns)
    if size < n_columns:  # else no random number is drawn, as without max_samples
        chosen = np.sort(rng.permutation(n_columns)[: int(size)])
    distinct: Any = slice(None)
    if n_columns == n_objects:  # columns that are not the objects keep their order
        firsts = np.unique(order.first[chosen], return_index=True)[1]
        if len(firsts) < len(chosen):
            distinct = firsts
        chosen = order.samples[chosen]
    fitted = chosen if symmetric else order.samples
    return Sample(fitted, chosen, bool(symmetric), distinct)


class FittedSources:
    """Sources, their weights, and the model that explains them.

    A subclass sets the attributes from `relative` to `own`, and has these methods:

    - ``prepare(config, weights)`` returns the initial weights, and matrices of single sources,
      (n, p), from which runs start. `weights` are the user's, or None.
    - ``mix(weights)`` returns the mixture of the sources with these weights.
    - ``losses_of(W)`` returns the loss of every source under a model, (L,).
    - ``mix_new(sources)`` returns the mixture of the similarities of new objects, (m, p).
    - ``contributions()`` returns a dict from the number of each source to the matrix, (n, p), that
      it adds to the explained one. Sources that add nothing may be missing.

    Parameters
    ----------
    reader : StackReader
    sample : Sample

    Attributes
    ----------
    reader : StackReader
    fitted : ndarray of int
        The objects, in the order of the rows of the factor.
    symmetric : bool
    n_compared : int
        Number of the objects, or columns, that objects are compared with.
    relative : bool
        Whether losses are shares; else they are in nats.
    max_rounds : int
        Largest number of rounds of weights and models.
    evaluated_rows : ndarray of int
        The objects of the rows of `own`, which can be limited to the first objects.
    own : list of {ndarray, csr_array}
        The matrix of each source alone, of all objects or the first ones.
    weights : ndarray of shape (L,)
    losses : ndarray of shape (L,)
    fusion : Fusion
        The model.
    mixed : FusedGraph
        The mixture of the sources, whose `A` is the matrix that is explained.
    """

    relative: bool
    max_rounds: int
    own: list[Any]
    prepare: Any
    mix: Any
    losses_of: Any
    mix_new: Any

    def __init__(self, reader, sample):
        self.reader = reader
        self.fitted = sample.fitted
        self.symmetric = sample.symmetric
        self.n_compared = len(sample.compared)

    def release(self):
        """Free memory that is only needed during a fit."""

    def fit(self, config, eta, user_weights):
        """Alternate between the model and the weights, as in section 3 of Lange and Buhmann.

        Parameters
        ----------
        config : SolverConfig
        eta : float
        user_weights : ndarray of shape (L,) or None
            Weights that the user passed.
        """
        prior, single_matrices = self.prepare(config, user_weights)
        weights = prior
        lowest = np.inf
        factor = None
        for number in range(self.max_rounds):
            # fit the model to the sources with these weights
            mixed = self.mix(weights)
            fusion = fit_fusion(
                mixed.A,
                config,
                relative=self.relative,
                symmetric=self.symmetric,
                single_matrices=single_matrices,
                previous=factor,
            )
            factor = fusion.best.factors[0]
            # compute the weights that are best for the losses of the sources
            losses = self.losses_of(factor)
            best_weights, reached = gibbs_weights(losses, eta, prior)
            converged = abs(best_weights - weights).max() < _WEIGHTS_TOL
            # Keep the best round. The second always replaces the first, whose weights do not
            # depend on eta. A converged round is kept even if it is slightly worse than an earlier
            # one, which can happen because neighbours change with the weights.
            if reached < lowest or number == 1 or converged:
                lowest = reached
                self.weights = weights
                self.losses = losses
                self.fusion = fusion
                self.mixed = mixed
            if converged:
                break
            weights = best_weights
        if not prior.any():  # without informative sources report initial weights
            equal_weights = np.full(len(prior), 1 / len(prior))
            self.weights = equal_weights if user_weights is None else user_weights
        self.release()

    def extend_to_all(
        self,
        objects,
        order,
        profile,
    ):
        """Return the similarity of all objects to every cluster, (n_samples, n_clusters).

        The first rows of the posterior are those of the fitted objects. Equal objects get equal
        rows. A warning reports objects that are similar to no other.
        """
        samples = order.samples
        posterior = self.fusion.posterior(self.reader.dtype)
        rows = np.empty((len(samples), posterior.shape[1]), dtype=posterior.dtype)
        rows[self.fitted] = posterior[: len(self.fitted)]
        others = samples[~np.isin(samples, self.fitted)]
        if len(others):
            with stage(f"memberships of {format_count(len(others), 'other object')}"):
                rows[others] = self.extend(objects, others, profile)
        # equal objects have the row of the first of them
        rows = rows[samples[order.first_ranks]]
        n_lost = int((hard_labels(rows) < 0).sum())
        if n_lost:
            warn(
                f"{format_count(n_lost, 'object')} got label -1 and uniform memberships, because "
                "their fused similarity to all others is 0. Leave them out, or use a wider kernel."
            )
        return rows

    def extend(self, objects, numbers, profile):
        """Return the similarity of some objects to every cluster, (n_numbers, n_clusters).

        It is ``S @ profile``, where S is the mixture of the similarities to the fitted objects,
        computed in blocks of rows. `Fusion.profile` returns the profile.
        """
        blocks = []
        for sources in self.reader.compare_in_blocks(objects, numbers):
            with np.errstate(over="ignore", invalid="ignore"):
                block = np.asarray(self.mix_new(sources) @ profile)
            if not np.isfinite(block).all():
                raise ValueError(
                    "X must not hold similarities so large that their sums overflow "
                    f"{sources[0].dtype}; the largest is {max(map(storage.max_abs, sources)):.3g}. "
                    "Scale X down."
                )
            blocks.append(block)
        return np.concatenate(blocks)

    def row_column_factors(self, W=None):
        """Return the factors W and H of ``W H'``, for the objects and the compared ones.

        `W` is the factor of a run, by default that of the model.
        """
        if W is None:
            W = self.fusion.best.factors[0]
        H = W / W.sum(axis=0)
        if self.symmetric:
            return W, H
        return W[: -self.n_compared], H[-self.n_compared :]

    def labels_of_source(self, number, config):
        """Return the clusters of the objects in `own` by one source; -1 for those not covered."""
        matrix = self.own[number]
        fusion = fit_fusion(
            matrix, config, relative=self.relative, symmetric=self.symmetric
        )
        labels = hard_labels(fusion.posterior(self.reader.dtype)[: matrix.shape[0]])
        return np.where(storage.row_sums(matrix) > 0, labels, -1)


class KLFusion(FittedSources):
    """Sources without correction, each scaled to sum to 1: ``P_l = S_l / 1'S_l1``.

    The loss of a source is its divergence from the model.

    Parameters
    ----------
    reader : StackReader
    objects : SimilarityStack or ViewStack
    sample : Sample
    """

    relative = False
    max_rounds = 100
    subtracts_entropy = True

    def __init__(self, reader, objects, sample):
        super().__init__(reader, sample)
        self.evaluated_rows = sample.fitted
        if sample.symmetric:
            sources = reader.compare_fitted(objects, sample.compared, storage.as_float)
            seen = reader.seen
        else:
            stack = reader.compare_with_columns(objects, sample.fitted, sample.compared)
            sources = stack.filled()
            seen = stack.seen()
        if not seen.all():
            label = reader.labels[int(seen.all(axis=0).argmin())]
            raise ValueError(
                f"{label} must cover all samples, but some are missing; use "
                'criterion="agreement", which allows missing samples.'
            )
        self.own = [source.astype(reader.dtype, copy=False) for source in sources]
        # compute the sums of the sources, which must not overflow, and their entropies
        sizes = []
        entropies = []
        most = float(np.finfo(reader.dtype).max) / _ROOM
        for source, label in zip(self.own, reader.labels, strict=True):
            with np.errstate(over="ignore"):
                size = storage.total(source)
            if not 1 / most < size < most:
                raise ValueError(
                    f"{label} must have a sum between {1 / most:.0e} and {most:.0e} in "
                    f"{reader.dtype}, got {size:.3g}; scale it."
                )
            values = storage.stored_values(source)
            sizes.append(size)
            entropies.append(entropy_of(values, size))
        self._sizes = np.array(sizes)
        self._entropies = np.array(entropies)
        # sort sources before they are summed, so that rounding does not depend on their order
        self._order = np.lexsort((self._sizes, self._entropies))

    def prepare(self, config, weights):
        equal_weights = np.full(len(self.own), 1 / len(self.own))
        return equal_weights if weights is None else weights, []

    def mix(self, weights):
        return FusedGraph(self._weighted_sum(self.own, weights))

    def losses_of(self, W):
        rows, columns = self.row_column_factors(W)
        mass = np.log(float(rows.sum(axis=0) @ columns.sum(axis=0)))
        losses = np.array([cross_entropy(S, rows, columns) + mass for S in self.own])
        return losses - self._entropies if self.subtracts_entropy else losses

    def mix_new(self, sources):
        return self._weighted_sum(sources, self.weights)

    def contributions(self):
        scales = self.weights / self._sizes
        return {i: scales[i] * sp.csr_array(S) for i, S in enumerate(self.own)}

    def _weighted_sum(self, sources, weights):
        """Return the mixture of sources; sparse if all sources with a weight are."""
        scales = (weights / self._sizes).astype(self.reader.dtype)
        terms = [(scales[i], sources[i]) for i in self._order if scales[i] > 0]
        terms.sort(key=lambda term: sp.issparse(term[1]))  # arrays come first
        are_sparse = sp.issparse(terms[0][1])
        mixed: Any = 0
        for scale, S in terms:
            mixed += scale * (S if are_sparse else storage.as_dense(S))
        return mixed


class CrossEntropyFusion(KLFusion):
    """`KLFusion` with the cross-entropy as loss, which is larger by the entropy of the source."""

    subtracts_entropy = False
