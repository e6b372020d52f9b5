"""Consensus clustering: one partition out of many (Li, Ding and Jordan, 2007)."""

from __future__ import annotations

import warnings
from numbers import Integral
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from nmfcluster._arrays.arguments import positions
from nmfcluster._arrays.labels import encode, indicator, membership, one_hot
from nmfcluster._base import NMFClusterer, numbered
from nmfcluster._compat import HasMethods, Interval, RealNotInt, StrOptions, fit_context
from nmfcluster._engine.factorize import factorize, factorize_ensemble
from nmfcluster._engine.symmetric import bregman_nmf, multiplicative_nmf, multiplicative_trinmf
from nmfcluster.consensus.refine import refine_by_moves
from nmfcluster.partitions import BasePartitions, base_partitions
from nmfcluster.partitions.ensemble import Ensemble, consensus_matrix
from nmfcluster.partitions.making import (
    check_coverage,
    nearest,
    normalised_weights,
    range_of_clusters,
)
from nmfcluster.similarity import Explicit

__all__ = ["NMFConsensus"]


class NMFConsensus(NMFClusterer):
    r"""Consensus clustering by symmetric nonnegative matrix factorization.

    Many partitions of the same samples are summarised by their co-association
    :math:`\tilde M`, the share of partitions in which two samples are together, and one
    partition is read off the factor that minimises

    .. math:: J(H) = \|\tilde M - HH'\|_F^2, \quad H \ge 0 ,

    the relaxation of eq. 12 of [1]_. :math:`\tilde M` is never formed, and samples with the same
    labels in all partitions are fitted as one, so that a million samples are no obstacle.

    Read more in the :ref:`User Guide <consensus>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters of the consensus.
    affinity : {"coassociation", "partitions", "precomputed"}, default="coassociation"
        What `X` is:

        - "coassociation": features; base partitions are made with `estimator`, or are the
          `partitions` given to `fit`;
        - "partitions": a table of labels, (n_samples, n_partitions): integers or strings;
          a negative number, NaN or None means that the partition did not see the sample;
        - "precomputed": a symmetric nonnegative similarity (n_samples, n_samples), dense or
          sparse, a co-association for example.
    estimator : estimator with `fit_predict`, default=None
        Clusterer that makes the base partitions; ``KMeans(n_init=1)`` by default. Its
        `n_clusters` and `random_state`, where it has them, are set for every run.
    n_estimators : int, default=50
        Number of base partitions.
    base_n_clusters : int or tuple (low, high), default=None
        Number of clusters of a base partition, or the range that it is drawn from;
        `n_clusters` by default. More of them can tell more about clusters of equal size, and
        tear large clusters apart where sizes are unequal.
    max_samples : int or float, default=1.0
        Number (int) or share (float) of samples drawn, without replacement, for each base
        partition. The others count as not seen by it.
    max_features : int or float, default=1.0
        Number or share of features drawn for each base partition.
    weights : array-like of shape (n_partitions,), default=None
        Nonnegative weights of the partitions; equal by default.
    objective : {"symnmf", "tri"}, default="symnmf"
        "tri" is the tri-factorization :math:`\|\tilde M - QSQ'\|^2`, Q'Q = I, by eq. 20-21 of [1]_
        as printed: for comparison only. It does not descend, keeps Q'Q = I only nearly, and loses
        small clusters.
    solver : {"bpg", "mu"}, default="bpg"
        For ``objective="symnmf"``: Bregman proximal gradient, which never raises the loss, or the
        multiplicative rule, eq. 28 of [1]_, with a safeguard.
    refine : {None, "moves"}, default=None
        "moves" lets single samples change clusters while that brings the consensus
        closer to the partitions (eq. 12 of [1]_). It changes `labels_` only, and harms small
        clusters when the partitions are noisy.
    coarse_size : int or None, default=10_000
        With more distinct label rows than this, the starts are run on a random subset of this many
        samples; the best is extended to all samples and improved on all. None: never.
    n_init : int, default=3
        Number of starts. The first is computed from leading eigenvectors; the others are in turn
        random and the base partitions that agree best with all. More starts never worsen the
        criterion by which they are ranked: the mean distance to the partitions (eq. 12 of [1]_),
        or the loss for a precomputed similarity.
    max_iter : int, default=500
        Largest number of updates of a start.
    tol : float, default=1e-6
        A start has converged when ten updates lower its loss by less than `tol` times the loss of
        H = 0. A negative value runs all updates.
    random_state : int, RandomState instance or None, default=None
        Determines the base partitions and the random starts. The result depends on it alone, not
        on `n_jobs` nor on the number of threads.
    n_jobs : int, default=None
        Number of base clusterings, and of starts, run at a time.
    verbose : int, default=0
        1 prints a line for each stage.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Cluster of every sample. Clusters are numbered by decreasing size.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Rows of H, scaled to sum to 1.
    core_ : ndarray of shape (n_clusters, n_clusters)
        S in :math:`QSQ'`, where Q has unit columns: the weight of every cluster in the
        co-association; diagonal.
    weights_ : ndarray of shape (n_partitions,)
        Weights of the partitions, scaled to sum to 1. None with ``affinity="precomputed"``.
    partitions_ : ndarray of shape (n_samples, n_partitions), int
        Base partitions, clusters numbered from 0, -1 where not seen. None with
        ``affinity="precomputed"``.
    confidence_ : ndarray of shape (n_samples,)
        Mean co-association of a sample with the other samples of its cluster, over the pairs that
        were seen; 1 in a cluster of one sample.
    agreement_ : ndarray of shape (n_partitions,)
        Adjusted Rand index of every base partition with the consensus, over the samples that
        it saw. None with ``affinity="precomputed"``.
    loss_ : float
        Loss of the kept factor. For partitions it is
        :math:`\sum_t w_t \|M^t - HH'\|^2` over the pairs that each saw: J of [1]_, above eq. 3,
        which differs from :math:`\|\tilde M - HH'\|^2` by a constant. For a precomputed similarity
        A it is :math:`\|A - HH'\|^2`.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        Loss before the first and after every update of the kept run.
    loss_curves_ : list of ndarray
        Loss curves of all starts, the kept one first; those of starts on a
        subset of the samples are scaled to all of them.
    n_iter_ : int
        Number of updates of the kept run.
    estimators_ : list of estimator
        Fitted base clusterers, if `fit` made them.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of `X`, if they are all strings.

    See Also
    --------
    nmfcluster.partitions.base_partitions : Makes base partitions.
    nmfcluster.display.ConsensusMatrixDisplay : Shows the co-association by clusters.
    nmfcluster.metrics.cophenetic_correlation : Helps to choose the number of clusters.

    Notes
    -----
    `transform` and `predict` compare samples with every cluster by their mean similarity to it: the
    extension of Lange and Buhmann (2005), eq. 8, divided by the mass of the cluster. Without
    that division a large cluster draws every uncertain sample.

    With partitions that did not see all samples the objective counts the pairs that they saw. An
    update costs O(m T k + m k^2) for m distinct label rows and T partitions, O(m T k^2) with
    missing labels.

    References
    ----------
    .. [1] T. Li, C. Ding, M. I. Jordan. Solving consensus and semi-supervised clustering
       problems using nonnegative matrix factorization. ICDM 2007.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import NMFConsensus
    >>> X = load_iris().data
    >>> model = NMFConsensus(n_clusters=3, random_state=0).fit(X)
    >>> model.membership_.shape
    (150, 3)

    One partition out of three that were given:

    >>> table = [["a", "a", "b", "b"], [0, 0, 1, 1], [1, 1, 1, 0]]
    >>> NMFConsensus(n_clusters=2).fit(X[:4], partitions=table).labels_
    array([0, 0, 1, 1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NMFClusterer._parameter_constraints,
        "affinity": [StrOptions({"coassociation", "partitions", "precomputed"})],
        "estimator": [HasMethods(["fit_predict"]), None],
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "base_n_clusters": [Interval(Integral, 1, None, closed="left"), tuple, list, None],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "max_features": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
        ],
        "weights": ["array-like", None],
        "objective": [StrOptions({"symnmf", "tri"})],
        "solver": [StrOptions({"bpg", "mu"})],
        "refine": [StrOptions({"moves"}), None],
        "coarse_size": [Interval(Integral, 2, None, closed="left"), None],
    }

    partitions_: Any
    agreement_: Any
    weights_: Any

    def __init__(
        self,
        n_clusters: int,
        *,
        affinity: str = "coassociation",
        estimator: Any = None,
        n_estimators: int = 50,
        base_n_clusters: int | tuple[int, int] | None = None,
        max_samples: int | float = 1.0,
        max_features: int | float = 1.0,
        weights: Any = None,
        objective: str = "symnmf",
        solver: str = "bpg",
        refine: str | None = None,
        coarse_size: int | None = 10_000,
        n_init: int = 3,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.base_n_clusters = base_n_clusters
        self.max_samples = max_samples
        self.max_features = max_features
        self.weights = weights
        self.objective = objective
        self.solver = solver
        self.refine = refine
        self.coarse_size = coarse_size
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @fit_context(prefer_skip_nested_validation=False)
    def fit(self, X: Any, y: Any = None, *, partitions: Any = None) -> NMFConsensus:
        """Find the consensus.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            What `affinity` says: features, a label table, or a similarity.
        y : None
            Ignored; here for the conventions of scikit-learn.
        partitions : array-like of shape (n_samples, n_partitions) or list of label vectors, \
                default=None
            Base partitions, with ``affinity="coassociation"``, instead of those that `estimator`
            would make. An array or a data frame holds one a column, a list one an
            element. Labels are integers or strings; a negative number, NaN or None: not seen.

        Returns
        -------
        NMFConsensus
            The fitted estimator.

        Raises
        ------
        ValueError
            If `X`, `partitions` or a parameter is not as described.
        TypeError
            If labels are neither integers nor strings.
        """
        # one thread from the first sum to the last: the result does not depend on their number
        with self._all_or_nothing(), threadpool_limits(limits=1, user_api="blas"):
            rng = check_random_state(self.random_state)
            if self.affinity == "precomputed":
                if partitions is not None:
                    raise ValueError("partitions cannot be given with affinity='precomputed'.")
                self._fit_similarity(self._check_similarity(X), rng)
            else:
                self._fit_partitions(*self._read_partitions(X, partitions, rng), rng)
        return self

    def _read_partitions(
        self, X: Any, partitions: Any, rng: np.random.RandomState
    ) -> tuple[np.ndarray, np.dtype]:
        """Return the encoded label table and the type to compute in."""
        self._base_ = self._X_fit_ = None
        if self.affinity == "partitions":
            if partitions is not None:
                raise ValueError("partitions cannot be given with affinity='partitions': X is.")
            codes, self._categories_ = encode(self._label_table(X, reset=True), "X")
            return codes, np.dtype(np.float64)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32])
        if partitions is None:
            self._check_n_clusters(X.shape[0])
            self._base_ = self._make_partitions(X, rng)
            self.estimators_ = self._base_.estimators
            codes, self._categories_ = encode(self._base_.labels, "estimator's labels")
        else:
            codes, self._categories_ = encode(partitions, "partitions")
        if len(codes) != X.shape[0]:
            raise ValueError(
                f"partitions must label every sample: they have {len(codes)} rows, X has "
                f"{X.shape[0]}. A list holds one label vector an element, an array one a column."
            )
        if self._base_ is None or self._base_.needs_training_data:
            self._X_fit_ = X
        return codes, X.dtype

    def _label_table(self, X: Any, reset: bool) -> Any:
        """Return X with its columns checked and its labels untouched."""
        if not hasattr(X, "columns"):
            X = check_array(X, dtype=None, ensure_all_finite=False, estimator=self)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _make_partitions(self, X: Any, rng: np.random.RandomState) -> BasePartitions:
        self._check_not_alone(X.shape[0])
        low, high = range_of_clusters(self.base_n_clusters, self.n_clusters)
        clusters, began = low if low == high else f"{low} to {high}", perf_counter()
        found = base_partitions(
            X,
            self.estimator,
            n_estimators=self.n_estimators,
            n_clusters=(low, high),
            max_samples=self.max_samples,
            max_features=self.max_features,
            random_state=rng,
            n_jobs=self.n_jobs,
        )
        self._say(
            f"{self.n_estimators} base partitions of {clusters} clusters "
            f"in {perf_counter() - began:.2f} s"
        )
        return found

    def _fit_partitions(
        self, codes: np.ndarray, dtype: np.dtype, rng: np.random.RandomState
    ) -> None:
        self._check_n_clusters(len(codes))
        self._check_coarse_size()
        self.weights_ = normalised_weights(self.weights, codes.shape[1])
        counted = codes if self.weights_.all() else codes[:, self.weights_ > 0]
        check_coverage(counted, "X" if self.affinity == "partitions" else "partitions")
        ensemble, groups = Ensemble.from_table(codes, self.weights_)
        self._say(f"{len(ensemble)} distinct label rows of {len(codes)} samples")
        if self.objective == "tri" and ensemble.observed is not None:
            raise ValueError("objective='tri' needs partitions that saw all samples.")
        found = factorize_ensemble(
            ensemble, self._plan(self._solver()), rng, dtype, self.coarse_size
        )
        P = membership(found.H)  # collapsed rows are longer than a sample's; their shares agree
        labels = P.argmax(axis=1)
        if self.refine == "moves":
            labels, n_moves = refine_by_moves(ensemble, labels, self.n_clusters)
            self._say(f"{n_moves} label rows moved")
        P, labels, order = numbered(P, labels, ensemble.counts)
        contingency = ensemble.contingency(one_hot(labels, self.n_clusters))
        self.partitions_ = codes
        self.agreement_ = ensemble.agreement(contingency)
        self.confidence_ = ensemble.item_consensus(contingency, labels)[groups]
        self._profile_ = ensemble.cluster_profile(P)
        self._n_base_clusters_ = ensemble.n_clusters
        self._keep(found, P[groups], labels[groups], order, depth=1)

    def _fit_similarity(self, X: Any, rng: np.random.RandomState) -> None:
        for name in ("refine", "weights"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} needs partitions; it must be None with "
                    "affinity='precomputed'."
                )
        self._check_n_clusters(X.shape[0])
        A, diagonal = Explicit(X), X.diagonal()
        alone = np.flatnonzero((A @ np.ones((X.shape[0], 1)))[:, 0] <= diagonal)
        if len(alone) and X.shape[0] > 1:
            warnings.warn(
                f"{len(alone)} of the samples in X have no similarity to any other, the first is "
                f"sample {alone[0]}: their clusters mean nothing.",
                stacklevel=4,
            )
        found = factorize(A, self._plan(self._solver()), rng)
        P = membership(found.H)
        P, labels, order = numbered(P, P.argmax(axis=1))
        self.partitions_, self.agreement_, self.weights_ = None, None, None
        self.confidence_ = _mean_similarity(A, diagonal, labels, self.n_clusters)
        self._profile_ = P / np.maximum(P.sum(axis=0), np.finfo(P.dtype).tiny)
        self._similarity_ = A
        self._keep(found, P, labels, order, depth=1)

    def _solver(self) -> Any:
        if self.objective == "tri":
            return multiplicative_trinmf
        return bregman_nmf if self.solver == "bpg" else multiplicative_nmf

    def _extend(self, X: Any) -> np.ndarray:
        if self.affinity == "partitions":
            codes, _ = encode(self._label_table(X, reset=False), "X", self._categories_)
            return indicator(codes, self._n_base_clusters_) @ self._profile_
        X = validate_data(
            self,
            X,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_non_negative=self.affinity == "precomputed",
            reset=False,
        )
        if self.affinity == "precomputed":
            return X @ self._profile_
        if self._base_ is None:
            codes = self.partitions_[nearest(self._X_fit_, X)]
        else:
            found = self._base_.predict(X, self._X_fit_)
            codes, _ = encode(found, "estimator's labels", self._categories_)
        return (indicator(codes, self._n_base_clusters_) @ self._profile_).astype(X.dtype)

    def consensus_matrix(self, indices: Any = None) -> np.ndarray:
        """Return the co-association of the training samples as a dense array.

        Parameters
        ----------
        indices : array-like of int, default=None
            Samples to return it for; all by default, which takes n_samples^2 numbers.

        Returns
        -------
        ndarray of shape (n_indices, n_indices)
            Weighted share of the partitions that hold two samples together, among those that saw
            both; NaN for a pair that none saw. The similarity itself if that was given.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `indices` are not integers in the range of the samples.
        """
        check_is_fitted(self)
        every = slice(None) if indices is None else indices
        chosen = positions(every, len(self.labels_), "sample", "the model")
        if self.partitions_ is None:
            return self._similarity_.take(chosen).toarray()
        return consensus_matrix(self.partitions_[chosen], self.weights_)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, which depend on `affinity`."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.affinity != "partitions"
        tags.input_tags.pairwise = self.affinity == "precomputed"
        tags.input_tags.positive_only = self.affinity == "precomputed"
        tags.input_tags.allow_nan = self.affinity == "partitions"
        tags.input_tags.string = self.affinity == "partitions"
        tags.input_tags.categorical = self.affinity == "partitions"
        return tags


def _mean_similarity(
    A: Explicit, diagonal: np.ndarray, labels: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Return every sample's mean similarity to the others of its cluster; 1 if it is alone."""
    E = one_hot(labels, n_clusters, A.dtype)
    own = (A @ E)[np.arange(len(labels)), labels] - diagonal
    others = E.sum(axis=0)[labels] - 1
    return np.where(others > 0, own / np.maximum(others, 1), 1.0)
