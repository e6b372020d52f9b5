"""Clustering under pairwise constraints (Li, Ding and Jordan, 2007; Chen et al., 2007)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import adjusted_rand_score

from nmfcluster._base import (
    NMFClusterer,
    fitting,
    membership,
    number_by_size,
    read_features,
    read_similarity,
)
from nmfcluster._compat import FRACTION, Interval, StrOptions, fit_context
from nmfcluster._optim.multiplicative import multiplicative_gsg
from nmfcluster._optim.symmetric import Factorization, bregman_nmf, factorize
from nmfcluster._utils.linalg import nnls_rows
from nmfcluster._utils.progress import stage
from nmfcluster._utils.storage import submatrix
from nmfcluster._utils.validation import format_count, row_names, warn
from nmfcluster.affinity import (
    AFFINITIES,
    AFFINITY_PARAMETERS,
    Affinity,
    make_affinity,
    normalize_similarity,
)
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import find_confirmed_must_links
from nmfcluster.similarity.neighbors import has_small_clusters
from nmfcluster.similarity.propagation import propagate_constraints
from nmfcluster.ssnmf.constrained import (
    ConstrainedProblem,
    assign_unplaced,
    check_constraints,
    covers_clusters,
    find_rows,
    measure_violated,
    read_constraints,
    warn_of_sizes,
    warn_of_uniform,
    warn_of_violations,
)

#: largest number of samples on which all starts run, unless the similarity is a sparse graph;
#: above it they run on a subsample of this size
_COARSE = 3_000

#: smallest number of landmarks, the default of `make_affinity`; each cluster needs at least one
_LANDMARKS = 2_000

#: default of `alpha`; a fit warns if another value has no effect
_ALPHA = 0.25

#: value of `propagation` that "auto" uses: it has the best mean index on 31 data sets of 600 to
#: 2,500 rows, and the mean hardly changes from 0.65 to 0.75
_WIDTH = 0.7

#: largest increase of the share of violated pairs, by weight, at which pairs spread: larger values,
#: and 0, lower the adjusted Rand index on 31 data sets
_MORE_VIOLATED = 0.02

#: affinities without negative entries, on which pairs spread by default
_NONNEGATIVE = ("nearest_neighbors", "landmarks")

#: what to do if a fit finds fewer than `n_clusters` clusters, by affinity
_PARALLEL = (
    " Rows of nonnegative features can be nearly parallel: subtract the mean of each feature, as "
    "StandardScaler does."
)
_CURES = {
    "nearest_neighbors": " Reduce n_neighbors, which keeps small clusters apart.",
    "linear": _PARALLEL,
    "cosine": _PARALLEL,
}


class SSNMFClusterer(NMFClusterer):
    r"""Clustering under must-link and cannot-link constraints by symmetric NMF.

    `fit` raises the similarity W of samples that must be together, and lowers the similarity of
    samples that must be apart,

    .. math:: \tilde A = W + \alpha u A - \beta u B .

    A and B hold the weights of must-links and cannot-links, and u is a unit (see `alpha`). By
    default, the matrix is then factorized by :math:`\min_{H \ge 0} \|\tilde A - HH'\|_F^2`, eq. 27
    of [1]_. With ``factorization="tri"``, the problem is
    :math:`\min_{G, S \ge 0} \|\tilde A - GSG'\|_F^2`, eq. 3 of [2]_ with the signs of a similarity.

    By default, must-links of weight 1 or more are *hard*. Samples that they join share one row of
    the factor (eq. 34 of [1]_), so that no fit can violate them. The fit weighs other must-links
    and all cannot-links against the similarities, and can violate them.

    Read more in the :ref:`User Guide <ssnmf>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    alpha : float, default=0.25
        Weight of soft must-links. A larger value satisfies more of them, and values from 0.05 to
        0.5 are sensible; with 1 or more, the factors may fit the must-links instead of the data.
        It has no effect on hard must-links. The unit u of this weight is the
        0.999-quantile of the nonzero off-diagonal entries of W. If W is not sparse and has more
        than 100,000 entries, the quantile is that of 100,000 random entries.
    beta : float, default=3.0
        Weight of cannot-links, in the unit u. A larger value satisfies more of them, and values
        from 1 to 30 are sensible. Increase it if the fit violates pairs that are certain.
    hard_must_link : bool or "auto", default="auto"
        Which must-links cannot be violated. True makes all must-links hard, and False makes none
        hard. If hard must-links join samples, directly or by a chain, these are fitted as one.

        With "auto", must-links of weight 1 or more are hard or, if some weights are infinite, only
        those of infinite weight (see `PairwiseConstraints`). If `contradictions` is "warn" or
        "ignore", pairs may be wrong, and "auto" makes must-links soft. The must-links that the fit
        violates are then suspicious. Hard must-links stay hard only if at least 20 pairs follow
        from other pairs, and the number of contradictions is at most 3 % of the number of these
        pairs. Even then, must-links become soft in a group with both samples of a cannot-link.
    propagation : "auto", float or None, default="auto"
        How far the effect of a pair spreads to nearby samples. A larger value spreads it farther,
        and values from 0.5 to 0.9 are sensible; it must be below 1. With None, a pair affects only
        its own samples. Without must-links, nothing spreads.

        The exhaustive constraint propagation of [3]_ raises W between samples near must-links,
        unless they are near cannot-links. W is then normalised unless `normalize` is False. W must
        be nonnegative and, above 3,000 samples, a sparse graph or made by landmarks.

        "auto" is 0.7 if all of these conditions hold, and None otherwise:

        - The affinity is "nearest_neighbors" or "landmarks".
        - Must-links form at least as many groups as there are clusters, or one large group that is
          nearly a tree.
        - In a fit without spreading, the clusters that contain must-links are large enough. They
          have at least 80 % of the samples that are expected if the same number of must-links is
          drawn at random.
        - If all must-links are hard, the pairs change enough labels of a fit without pairs. One
          minus the adjusted Rand index of fits with and without pairs is larger than the share of
          pairs that the fit without pairs violates.
        - If all must-links are hard, the share of violated pairs is at most 0.02 larger in a fit
          with spreading than in a fit without.
    contradictions : {"raise", "warn", "ignore"}, default="raise"
        What to do if no clustering satisfies all constraints. Either must-links join the samples of
        a cannot-link, or the cannot-links need more than `n_clusters` clusters. Choose "warn" or
        "ignore" if some pairs may be wrong: must-links are then usually soft (see
        `hard_must_link`). With ``hard_must_link=True``, all must-links are satisfied, and
        cannot-links that contradict them are violated.
    affinity : str or callable, default="auto"
        How W is computed from `X`, see `nmfcluster.affinity.make_affinity`:

        - "auto": "nearest_neighbors" for up to 3,000 dense or 10,000 sparse distinct rows, and
          "landmarks" for more.
        - "nearest_neighbors": a sparse graph of nearest neighbours.
        - "landmarks": samples are similar if they are near the same landmarks, which are up to
          2,000 points. Time is linear in the number of samples, and W is never formed.
        - "linear" and "cosine": W is never formed.
        - "rbf": W is a dense array.
        - "precomputed": `X` is W, a symmetric matrix, dense or sparse, of any sign.
        - A callable takes two sets of samples and returns their similarities. The similarity of two
          samples must not depend on the other samples or on their order.
    gamma : float, default=None
        Parameter of the "rbf" affinity. With a larger value, similarities decrease faster with
        distance. The default is 1 over the median squared distance of two samples.
    n_neighbors : int, default=None
        Number of neighbours of each sample with the "nearest_neighbors" affinity. Fewer neighbours
        keep small clusters apart. The default is 10. With fewer than 14 distinct rows per cluster,
        it is three quarters of the rows per cluster, but at least 3. With the "landmarks" affinity,
        this is the number of landmarks of each sample, 5 by default.
    normalize : bool or "auto", default="auto"
        Whether W is replaced by :math:`D^{-1/2} W D^{-1/2}`, where D holds the row sums of W. The
        objective is then that of normalised cut. Without normalisation, it is that of kernel
        k-means, which tends to split large clusters and to merge small ones. "auto" normalises:

        - always for "nearest_neighbors";
        - for "linear" and "cosine", if W is nonnegative, clusters have at least 14 rows on average
          and the mean cosine of two rows is at most 0.2, as is typical of texts;
        - for other nonnegative W, if clusters have at least 14 rows on average.

        Rows of "landmarks" always sum to 1.
    factorization : {"bi", "tri"}, default="bi"
        "bi" fits HH' by Bregman proximal gradient steps. "tri" fits GSG', where any S >= 0 is
        allowed, by the update rules of [2]_ with a correction. It takes more time. Neither method
        ever raises the loss. If S were diagonal, "tri" would have the same solutions as "bi".
    n_init : int, default=5
        Number of starts. More starts can lower the loss, and take more time. The solution with the
        smallest loss is kept. The first start is computed from leading eigenvectors. The others are
        random, and abandoned early if they are unlikely to beat the best so far.

        Above 3,000 samples, "landmarks" runs only the first start. Other affinities that are not
        sparse graphs run all starts on 3,000 random samples, of which at most half are in pairs.
        The best solution is extended to all samples. It is then updated until ten updates lower its
        loss by less than 1e-5 times the loss of H = 0.
    max_iter : int, default=500
        Largest number of updates of a start.
    tol : float, default=1e-6
        A larger value, such as 1e-4, ends a long fit earlier; the default rarely has to be changed.
        A start has converged when ten updates lower its loss by less than `tol` times the loss of
        H = 0. With a negative value, all updates are run.
    random_state : int, RandomState, Generator or None, default=None
        Determines the random starts. The result does not depend on `n_jobs`, the number of
        threads or the order of the samples.
    n_jobs : int, default=None
        Number of parallel jobs of the neighbour search and of the starts. If a start runs alone, on
        more than 32,768 rows, this is also the number of threads that share its rows.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Cluster of every sample. Clusters are numbered by decreasing size.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Rows of H, or of :math:`G \,\mathrm{diag}(S)^{1/2}`, scaled to sum to 1. Without pairs, the
        memberships are those that `transform` returns for the fitted samples. If cannot-links
        outweigh all similarities of a sample, its row of H is zero. Its memberships are then
        computed from :math:`\tilde A H`, so that it is in the cluster with the smallest penalty. If
        it violates pairs there, it is assigned to the cluster where it violates the fewest. This
        can be a new cluster of its own, whose column of H is zero. The other samples are then
        fitted without this sample.
    core_ : ndarray of shape (n_clusters, n_clusters)
        S, where the columns of G have unit length. The diagonal holds the weights of the clusters.
        With ``factorization="tri"``, the other entries are the similarities of the clusters.
    constraints_ : PairwiseConstraints
        The constraints that the fit used.
    satisfaction_ : float
        Share of the constraints that `labels_` satisfy; NaN without constraints.
    violated_must_link_ : ndarray of shape (n_violated, 2), int
        Must-link pairs whose samples are in different clusters.
    violated_cannot_link_ : ndarray of shape (n_violated, 2), int
        Cannot-link pairs whose samples are in one cluster.
    must_link_groups_ : ndarray of shape (n_samples,), int
        Group of every sample. The samples of a group are joined by hard must-links, directly or by
        a chain.
    affinity_ : str
        The affinity that was used; "callable" if `affinity` is a callable.
    propagation_ : float or None
        The value of `propagation` that was used; None if pairs did not spread.
    weight_unit_ : float
        The unit u of `alpha` and `beta`.
    loss_ : float
        Loss :math:`\|\tilde A - HH'\|^2`, or :math:`\|\tilde A - GSG'\|^2`, of the kept run. For
        "linear" and "cosine" with more than 2,000 samples and features, its constant term
        :math:`\|\tilde A\|^2` is estimated, with an error of a few per cent.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        Loss before the first and after every update of the kept run.
    loss_curves_ : list of ndarray
        Loss curves of all starts, the kept one first. Curves of abandoned starts are short. Curves
        of starts on a subset of the samples are scaled to all samples.
    n_iter_ : int
        Number of updates of the kept run.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of `X`, if they are all strings.

    See Also
    --------
    nmfcluster.constraints.PairwiseConstraints : Constraints that cross-validation can split.
    nmfcluster.model_selection.ConstraintScorer : Scores models by constraints held out.

    Notes
    -----
    `transform` and `predict` compute a row h >= 0 for each sample. They solve
    :math:`\min_h \|w - Hh\|`, where w holds the similarities of the sample to the training samples,
    and H is fixed. With ``factorization="tri"``, GS replaces H. Constraints do not apply to new
    samples, and training samples are treated like new ones. Without pairs, ``predict(X)`` of the
    training samples therefore equals `labels_`; with pairs, it can differ. If a sample has nonzero
    similarities, but none of the clusters attracts it, it is assigned to the least dissimilar
    cluster.

    An update costs O(nnz k + n k^2) for n samples and k clusters. nnz is the number of nonzero
    entries of `X` for the "linear" and "cosine" affinities, and of W otherwise.

    References
    ----------
    .. [1] T. Li, C. Ding, M. I. Jordan. Solving consensus and semi-supervised clustering
       problems using nonnegative matrix factorization. ICDM 2007.
    .. [2] Y. Chen, M. Rege, M. Dong, J. Hua. Incorporating user provided constraints into
       document clustering. ICDM 2007.
    .. [3] Z. Lu, H. H. S. Ip. Constrained spectral clustering via exhaustive and efficient
       constraint propagation. ECCV 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import PairwiseConstraints, SSNMFClusterer
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = PairwiseConstraints.from_labels(y, n_pairs=100, random_state=0)
    >>> model = SSNMFClusterer(n_clusters=3, random_state=0).fit(X, constraints=pairs)
    >>> model.satisfaction_, model.violated_cannot_link_.tolist()
    (1.0, [])

    Pass two pairs of samples without a container:

    >>> model.fit(X, must_link=[(70, 133)], cannot_link=[(0, 50)]).labels_[[70, 133]]
    array([0, 0])
    """

    # scikit-learn's searches split constraints with the samples and pass them to fit
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"constraints": True}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NMFClusterer._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "hard_must_link": ["boolean", StrOptions({"auto"})],
        "propagation": [StrOptions({"auto"}), FRACTION, None],
        "contradictions": [StrOptions({"raise", "warn", "ignore"})],
        "affinity": [StrOptions(set(AFFINITIES)), callable],
        **{
            name: AFFINITY_PARAMETERS[name]
            for name in ("gamma", "n_neighbors", "normalize")
        },
        "factorization": [StrOptions({"bi", "tri"})],
    }

    def __init__(
        self,
        n_clusters: int,
        *,
        alpha: float = _ALPHA,
        beta: float = 3.0,
        hard_must_link: bool | str = "auto",
        propagation: str | float | None = "auto",
        contradictions: str = "raise",
        affinity: str | Callable[[Any, Any], Any] = "auto",
        gamma: float | None = None,
        n_neighbors: int | None = None,
        normalize: bool | str = "auto",
        factorization: str = "bi",
        n_init: int = 5,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_clusters, n_init, max_iter, tol, random_state, n_jobs)
        self.alpha = alpha
        self.beta = beta
        self.hard_must_link = hard_must_link
        self.propagation = propagation
        self.contradictions = contradictions
        self.affinity = affinity
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.normalize = normalize
        self.factorization = factorization

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        constraints: PairwiseConstraints | None = None,
        must_link: Any = None,
        cannot_link: Any = None,
    ) -> SSNMFClusterer:
        """Cluster the samples under constraints.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features, or the similarity with ``affinity="precomputed"``.
        y : None
            Always ignored, so that true classes cannot leak into the fit.
        constraints : PairwiseConstraints, default=None
            The constraints. Cross-validation splits this container together with the samples.
        must_link : array-like of shape (n_pairs, 2) or (n_pairs, 3), iterable of pairs, or sparse \
                matrix of shape (n_samples, n_samples), default=None
            Pairs of samples that belong together, used instead of `constraints`. A third column, or
            the entries of the matrix, are weights. A weight is the cost of violating the pair. Use
            weights below 1 for uncertain pairs.
        cannot_link : as must_link, default=None
            Pairs of samples that do not belong together.

        Returns
        -------
        SSNMFClusterer
            The fitted estimator.

        Raises
        ------
        ValueError
            If `X`, the constraints or a parameter is not as described. Also if constraints
            contradict each other and `contradictions` is "raise".
        TypeError
            If `constraints` is not a `PairwiseConstraints`.
        """
        with fitting(self) as rng:
            names = row_names(X)
            if self.affinity == "precomputed":
                X = read_similarity(self, X, signed=True)
            else:
                X = read_features(self, X)
                self._check_not_alone(X.shape[0])
            self._check_n_clusters(X.shape[0])
            pairs = read_constraints(
                names, X.shape[0], y, constraints, must_link, cannot_link
            )
            feasible = check_constraints(pairs, self.n_clusters, self.contradictions)
            # factorize the similarity of distinct rows, in canonical order
            is_similarity = self.affinity == "precomputed"
            samples, row, counts = find_rows(X, pairs, is_similarity)
            columns = samples if is_similarity else None
            affinity = self._make_affinity(X, samples, columns, counts, rng)
            problem, found, P, width = self._factorize(affinity, pairs[samples], rng)
            self._columns_ = columns
            P = P[row]
            P, labels, order = number_by_size(P, P.argmax(axis=1))
            n_used = int(labels.max()) + 1
            self._prepare_extension(affinity, problem, found, order[:n_used])
            if not problem.is_constrained:
                # without pairs, assign samples as `predict` assigns equal new ones
                P, labels, again = self._place_fitted(submatrix(X, samples), P, row)
                order = order[again]
                self._prepare_extension(affinity, problem, found, order[:n_used])
            self.labels_ = labels
            self.membership_ = P
            self.core_ = found.core[np.ix_(order, order)]
            self.affinity_ = affinity.name
            self.propagation_ = width
            self.weight_unit_ = problem.unit
            # the losses
            self.loss_ = found.loss
            self.loss_curves_ = found.loss_curves
            self.loss_curve_ = self.loss_curves_[0]
            self.n_iter_ = found.best.n_iter
            self._report_pairs(pairs, feasible)
            cure = _CURES.get(affinity.name, "")
            self._warn_unless_converged(found, int(labels.max()) + 1, cure)
            warn_of_sizes(affinity, labels[samples], self.n_clusters)
        return self

    def _report_pairs(self, pairs: PairwiseConstraints, feasible: bool) -> None:
        """Store which pairs the labels satisfy; warn if they violate pairs that are feasible."""
        must_ok, cannot_ok = pairs.satisfied(self.labels_)
        self.constraints_ = pairs
        self.must_link_groups_ = pairs.components()
        self.satisfaction_ = pairs.satisfaction(self.labels_)
        self.violated_must_link_ = pairs.must_link[~must_ok]
        self.violated_cannot_link_ = pairs.cannot_link[~cannot_ok]
        if feasible:
            warn_of_violations(pairs, must_ok, cannot_ok, self.beta)

    def _make_affinity(self, X, samples, columns, counts, rng) -> Affinity:
        """Return the affinity of the rows that are fitted."""
        with stage(f"similarities of {format_count(X.shape[0], 'sample')}"):
            return make_affinity(
                submatrix(X, samples, columns),  # a copy without other references
                self.affinity,
                gamma=self.gamma,
                n_neighbors=self.n_neighbors,
                n_landmarks=max(_LANDMARKS, self.n_clusters),
                normalize=self.normalize,
                n_clusters=self.n_clusters,
                random_state=rng,
                n_jobs=self.n_jobs,
                counts=counts,
            )

    def _factorize(self, affinity: Affinity, pairs: PairwiseConstraints, rng):
        """Factorize a similarity under constraints.

        Returns the problem, its factorization, the memberships of the samples, and how far pairs
        spread.
        """
        if self.hard_must_link != "auto":
            pairs = pairs._with_hard_must_links(bool(self.hard_must_link))
        elif self.contradictions != "raise":  # pairs may be wrong
            pairs = pairs._with_hard_must_links(find_confirmed_must_links(pairs))
        if self.alpha != _ALPHA and len(pairs.must_link) and pairs.must_link_hard.all():
            warn(
                f"alpha={self.alpha:g} has no effect, because it is the weight of soft must-links "
                "and all are hard. Pass hard_must_link=False, or weights below 1, to use it."
            )
        have_weight = self.alpha > 0 or pairs.must_link_hard.any()
        can_spread = len(pairs.must_link) > 0 and have_weight
        width = self.propagation if can_spread else None
        if width == "auto":
            found, width = self._choose_spreading(affinity, pairs, rng)
        else:
            found = self._fit_pairs(affinity, pairs, rng, width)
        problem, factors, P = found
        parts = problem.init_similarity.parts
        n_parts = 1 if parts is None else int(parts.max()) + 1
        if n_parts > self.n_clusters:
            warn(
                f"The graph of similarities and must-links falls into {n_parts} parts that "
                f"nothing connects, more than n_clusters={self.n_clusters}. Which parts share a "
                "cluster is arbitrary. Add must-links, or increase n_neighbors or n_clusters."
            )
        warn_of_uniform(factors.H[problem.groups], P)
        return problem, factors, P, width

    def _choose_spreading(self, affinity: Affinity, pairs: PairwiseConstraints, rng):
        """Return the result of `_fit_pairs` and how far pairs spread; None for no spreading."""
        # copies of the generator: the result equals that of a fit with this value of `propagation`
        rng_of_spread = deepcopy(rng)
        rng_without_pairs = deepcopy(rng)
        found = self._fit_pairs(affinity, pairs, rng)
        labels = found[2].argmax(axis=1)
        if affinity.name not in _NONNEGATIVE:
            return found, None
        if not covers_clusters(pairs, labels, self.n_clusters):
            return found, None
        # violated pairs are compared only for hard must-links: soft ones can be wrong, and a fit
        # that satisfies them violates others
        is_certain = pairs.must_link_hard.all()
        if is_certain:
            # pairs are hardly informative about other samples if they change fewer labels than
            # they contradict
            no_pairs = PairwiseConstraints(len(pairs))
            _, _, P = self._fit_pairs(affinity, no_pairs, rng_without_pairs)
            labels_without = P.argmax(axis=1)
            changed = 1 - adjusted_rand_score(labels_without, labels)
            if changed <= measure_violated(pairs, labels_without):
                return found, None
        found_by_spread = self._fit_pairs(affinity, pairs, rng_of_spread, _WIDTH)
        if is_certain:
            violated = measure_violated(pairs, found_by_spread[2].argmax(axis=1))
            if violated > measure_violated(pairs, labels) + _MORE_VIOLATED:
                return found, None
        return found_by_spread, _WIDTH

    def _fit_pairs(
        self, affinity: Affinity, pairs: PairwiseConstraints, rng, width=None
    ):
        """Return the problem of a similarity and pairs, its factorization, and memberships.

        Pairs spread by `width`, or not at all if it is None.
        """
        if width is not None:
            affinity = self._propagate(affinity, pairs, width, rng)
        with stage(f"similarities under {format_count(pairs.n_pairs, 'constraint')}"):
            problem = ConstrainedProblem(affinity, pairs, self.alpha, self.beta)
        # factorize, then assign rows that no cluster attracts by the pairs that they violate
        solver = multiplicative_gsg if self.factorization == "tri" else bregman_nmf
        config = self._solver_config(solver)
        coarse_size = max(_COARSE, self.n_clusters)

        def refit(samples, n_clusters: int) -> Factorization:
            """Factorize the problem of the samples in a mask, as if there were no others."""
            counts = None if affinity.counts is None else affinity.counts[samples]
            W = affinity.similarity.take(np.flatnonzero(samples))
            # If W was normalized, normalize it again. Otherwise rows that were similar to removed
            # samples would weigh less than others, and their clusters would be split. W stays as
            # it is if that fails because all similarities are 0, or row sums are negative.
            if affinity.is_normalized:
                with suppress(ValueError):
                    W, _ = normalize_similarity(W, counts, affinity.keeps_diagonal)
            part = replace(affinity, similarity=W, counts=counts)
            part_problem = ConstrainedProblem(
                part, pairs[samples], self.alpha, self.beta, may_be_empty=True
            )
            fewer = replace(config, n_clusters=n_clusters)
            return factorize(part_problem, fewer, rng, coarse_size)

        found = factorize(problem, config, rng, coarse_size)
        found, P = assign_unplaced(problem, pairs, found, refit)
        return problem, found, P[problem.groups]

    def _propagate(
        self, affinity: Affinity, pairs: PairwiseConstraints, width: Any, rng
    ):
        """Return an affinity whose pairs spread to nearby samples by a width in (0, 1)."""
        W = affinity.similarity
        links, cannot_link = pairs.as_matrices(W.dtype)
        if self.beta > 0:
            links = links - cannot_link
        with stage(
            f"spread of {format_count(pairs.n_pairs, 'pair')} to samples near theirs"
        ):
            W = propagate_constraints(
                W, links, float(width), rng, affinity.name == "landmarks"
            )
            if self.normalize is not False:
                # with small clusters, keep the diagonal, or entries near pairs weigh too much
                few = has_small_clusters(len(pairs), self.n_clusters)
                W, _ = normalize_similarity(W, affinity.counts, few)
        return replace(affinity, similarity=W)

    def _prepare_extension(self, affinity: Affinity, problem, found, order) -> None:
        """Store what memberships of new samples are computed from, for the clusters in `order`.

        Empty clusters get no new samples. Their columns of the factor can be so small that large
        multiples of them would fit the rest of a similarity.
        """
        F, M = found.parts
        FM = problem.expand(F)[:, order] @ M[np.ix_(order, order)]
        summed = FM if affinity.counts is None else FM * affinity.counts[:, None]
        # a function that returns the similarities of new samples to the clusters, the products of
        # the clusters with each other, and the scale of each column of the factor
        self._products_ = affinity.onto(summed)
        self._gram_ = FM.T @ summed
        self._roots_ = np.sqrt(np.diagonal(M)[order])

    def _place_fitted(self, X, P, row):
        """Return memberships as for new samples, labels, and the order of clusters by size.

        X holds the rows that were fitted, and `row` the row of each sample. P are the memberships
        of the samples in the factor. They are kept for rows that are similar to no other row.
        """
        H = self._extend_rows(X)[row]
        is_placed = H.any(axis=1)
        P = np.where(is_placed[:, None], membership(H).astype(P.dtype), P)
        return number_by_size(P, P.argmax(axis=1))

    def _extend(self, X):
        return self._extend_rows(read_features(self, X, reset=False))

    def _extend_rows(self, X):
        if self._columns_ is not None:
            X = X[:, self._columns_]  # similarities, in the order of the fit
        similarities = self._products_(X)
        H = nnls_rows(similarities, self._gram_) * self._roots_
        # assign samples that are similar to no cluster to the least dissimilar one
        unplaced = ~H.any(axis=1)
        lowest = similarities.min(axis=1, keepdims=True)
        H[unplaced] = (similarities - lowest)[unplaced]
        return np.pad(H, ((0, 0), (0, self.n_clusters - H.shape[1])))

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, which depend on `affinity`."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.affinity == "precomputed"
        return tags
