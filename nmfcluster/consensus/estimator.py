"""Consensus clustering: one partition out of many (Li, Ding and Jordan, 2007)."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nmfcluster._base import (
    NMFClusterer,
    fitting,
    membership,
    number_by_size,
    read_features,
    read_similarity,
)
from nmfcluster._compat import StrOptions, fit_context
from nmfcluster._optim.multiplicative import multiplicative_trinmf
from nmfcluster._optim.symmetric import bregman_nmf, factorize
from nmfcluster._utils.storage import require_symmetric
from nmfcluster._utils.validation import (
    axis_positions,
    pairwise_input,
    read_weights,
    reorder_samples,
    row_names,
    warn,
)
from nmfcluster.affinity import warn_of_split
from nmfcluster.metrics import mean_agreement
from nmfcluster.partitions.base_runs import (
    BASE_PARAMETERS,
    base_clusterers,
    read_base_input,
    read_unconverted,
)
from nmfcluster.partitions.ensemble import warn_of_seeds, warn_of_singletons
from nmfcluster.partitions.inputs import (
    LabelTable,
    Memberships,
    PrecomputedSimilarity,
    is_soft,
    make_partitions,
)

COARSE = 10_000  # distinct rows: of more, as many are fitted first


class NMFConsensus(NMFClusterer):
    r"""Consensus clustering by symmetric nonnegative matrix factorization.

    Partition t is represented by the projector :math:`P^t` onto the indicators of its clusters,
    which is 1 / s for two samples that share a cluster of s samples, else 0. The consensus is the
    partition of the factor H whose product is nearest to all projectors,

    .. math:: J(H) = \sum_t w_t \|P^t - HH'\|_F^2, \quad H \ge 0 .

    Every cluster has equal weight, whatever its size. ``normalize=False`` counts pairs, which
    is the relaxation of eq. 12 of [1]_: the co-association :math:`\tilde M`, the share of
    partitions in which two samples are together, replaces the mean projector. Neither
    matrix is ever formed, and samples with the same labels in all partitions are fitted as one, so
    that a million samples are possible.

    Read more in the :ref:`User Guide <consensus>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters of the consensus.
    affinity : {"coassociation", "partitions", "precomputed"}, default="coassociation"
        What `X` is:

        - "coassociation": features, or whatever `estimator` can read; it makes base partitions of
          them, unless `fit` gets `partitions`;
        - "partitions": a table of labels, (n_samples, n_partitions): integers or strings;
          -1 is noise; another negative number, NaN or None means that the partition did not see the
          sample. Columns of categories are such a table. Or a list with tables of memberships, see
          `partitions` of `fit`;
        - "precomputed": a symmetric nonnegative similarity (n_samples, n_samples), dense or
          sparse, a co-association for example.
    estimator : estimator with `fit_predict`, or list of such, default=None
        Clusterer that makes the base partitions. By default, every run factorizes one of a few
        graphs in which samples are joined to their nearest neighbours; see the notes. The
        parameters `n_clusters` and `random_state` of a clusterer that you pass, where it has them,
        are set for every run. The clusterers of a list take turns. A clusterer gets distances or
        similarities of all pairs of samples if it has ``metric="precomputed"`` or the like; it gets
        data frames, text and NaN unconverted. It gets the rows of `X` in their order, so that it
        may hold something for each row, such as ``connectivity=``.
    n_estimators : int, default=50
        Number of base partitions. The consensus of more depends less on the seed, and takes longer;
        50 are mostly enough.
    base_n_clusters : int or tuple (low, high), default=None
        Number of clusters of a base partition, or the range that it is drawn from. Larger numbers
        can resolve smaller clusters. By default the range is from `n_clusters` to one and a half
        times `n_clusters`; if you pass an `estimator`, it is from `n_clusters` to the square root
        of the number of samples. Its upper end is at most 60 by default, but not less than
        `n_clusters`. Without `estimator`, the numbers are spread evenly over the range.
    max_samples : int or float, default=1.0
        Number (int) or share (float) of samples drawn, without replacement, for each base
        partition. The others, except copies of these, count as not seen by it, unless
        `predict_unseen`. It must be 1.0 for a clusterer that holds something for each row. The
        default graphs hold all samples, drawn or not; a run factorizes one on drawn samples.
    max_features : int or float, default=1.0
        Number or share of features drawn for each base partition. Fewer features make partitions
        differ more and take less time. Keep 1.0 unless there are many features that are largely
        redundant, such as thousands of genes.
    predict_unseen : bool, default=False
        Whether a base clusterer labels the samples that were not drawn for it, too, by its
        `predict`, or as the nearest sample that it saw. It matters only if `max_samples` leaves
        samples out. Use it with clusterers that are slow for many samples, if some samples suffice
        to find the clusters.
    weights : array-like of shape (n_partitions,), default=None
        Nonnegative weights of the partitions; equal by default. Weights of base runs that are left
        out, because they failed or found only noise, do not count.
    normalize : bool, default=True
        Whether every cluster of a partition has equal weight. Otherwise every pair of samples has,
        as in [1]_, which needs partitions that saw all samples: large clusters are then split where
        partitions are finer than the consensus. A precomputed similarity is divided by the roots of
        its row sums.
    factorization : {"bi", "tri"}, default="bi"
        "bi" is HH', by Bregman proximal gradient, which never raises the loss; "tri" the
        tri-factorization :math:`\|\tilde M - QSQ'\|^2`, Q'Q = I, by eq. 20-21 of [1]_ as printed:
        for comparison only. It does not descend, keeps Q'Q = I only nearly, and loses small
        clusters.
    n_init : int, default=3
        Number of starts. The first is computed from leading eigenvectors; the others are random.
        More starts never worsen the criterion by which they are ranked: the hard loss of their
        partition (eq. 12 of [1]_ with ``normalize=False``), or the loss for a similarity or
        memberships. Starts that are unlikely to become the best are abandoned.
    max_iter : int, default=500
        Largest number of updates of a start.
    tol : float, default=1e-6
        A start has converged when ten updates lower its loss by less than `tol` times the loss of
        H = 0. A negative value runs all updates. It hardly ever has to be set: a larger value, such
        as 1e-4, ends a long fit earlier.
    random_state : int, RandomState, Generator or None, default=None
        Determines the base partitions and the random starts. The result depends on it alone, not
        on `n_jobs`, the number of threads or, unless it does for a clusterer that you pass, the
        order of the samples.
    n_jobs : int, default=None
        Number of base clusterings, and of starts, run at a time. The default base clusterings run
        in threads, which share the graphs.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Cluster of every sample; -1 for noise, a sample that most of the partitions which saw it
        call noise (by their weights), and where no partition has a label. Clusters are numbered by
        decreasing size.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Mean co-association with every cluster, scaled to sum to 1, as `transform` returns it for
        new samples; the rows of H, scaled, with ``normalize=False``. Uniform where the label is -1.
    core_ : ndarray of shape (n_clusters, n_clusters)
        S in :math:`QSQ'`, where Q has unit columns: the weight of every cluster; diagonal.
    weights_ : ndarray of shape (n_partitions,)
        Weights of the partitions, scaled to sum to 1. None with ``affinity="precomputed"``.
    partitions_ : ndarray of shape (n_samples, n_partitions), int
        Base partitions, clusters numbered from 0; -1: noise; -2: not seen. None with
        ``affinity="precomputed"`` or memberships.
    confidence_ : ndarray of shape (n_samples,)
        How clearly the partitions vote for the cluster of a sample and against the others: 1 is
        certain, about 1 / n_clusters is chance, 0.5 is between two clusters, and 0 is in none.
        See the notes.
    agreement_ : ndarray of shape (n_partitions,)
        Adjusted Rand index of every base partition with the consensus, over the samples that
        it saw. None with ``affinity="precomputed"`` or memberships.
    loss_ : float
        Loss of the kept factor. For partitions it is :math:`\sum_t w_t \|P^t - HH'\|^2`, rows and
        columns divided by the root of the weight of the partitions that saw a sample. With
        ``normalize=False`` it is :math:`\sum_t w_t \|M^t - HH'\|^2`, J of [1]_, above eq. 3. For a
        precomputed similarity A, or the co-association A of memberships, it is
        :math:`\|A - HH'\|^2`, A normalised.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        Loss before the first and after every update of the kept run.
    loss_curves_ : list of ndarray
        Loss curves of all starts, the kept one first. Those of abandoned starts are short; those
        of starts on a subset of the samples are scaled to all samples.
    n_iter_ : int
        Number of updates of the kept run.
    estimators_ : list
        What made each of the base partitions, if `fit` did: the fitted clusterers that you passed,
        whose samples are in the order of `X`; by default objects with a method `predict`, for the
        features of the run of new samples, and an attribute `n_clusters`.
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
    Without `estimator`, the base partitions are factorizations of shared graphs of the distinct
    samples. If `X` is sparse, or has at most 3,000 distinct samples, there are five graphs, with
    0.6 to 4 times as many neighbours as the graph of :class:`~nmfcluster.SSNMFClusterer` has by
    default. Otherwise there are three, in which samples are joined to the nearest five of 500,
    1,000 or 2,000 landmarks. With `max_features` below 1.0, each run has a graph of its own.
    A run draws 60 % of the samples of its graph, at most 3,000, and factorizes their similarities.
    Every other sample takes the cluster to which its neighbours are most similar in total. The
    graphs hold at most 10,000 samples, drawn at random; the others, and new samples, take the
    cluster for which their neighbours vote. Copies of a sample count once in the graphs, but each
    of them counts where partitions are combined.

    `transform` and `predict` compare samples with every cluster by their mean similarity to it: the
    extension of Lange and Buhmann (2005), eq. 8, divided by the mass of the cluster. Without
    that division a large cluster draws every uncertain sample. `labels_` are read in the same way.
    In this mean, the vote of a base cluster is divided by its size, by the root of its size, or
    not at all, whichever gives the smallest hard loss.

    `confidence_` compares clusters of any size. With :math:`v_{tc}` the share of cluster c that is
    in the sample's base cluster of partition t, the votes for c are the geometric mean over the
    partitions that put the sample into a cluster,

    .. math:: e_c = \prod_t (1 + v_{tc} / 0.03)^{w_t} - 1,

    and the confidence is :math:`e_c / \sum_{c'} e_{c'}` for its own cluster, times the share of the
    partitions which saw the sample that do not call it noise. With a similarity, or memberships,
    :math:`e_c` is the mean similarity to cluster c. The factor 0.03 makes small votes count, so
    that few partitions do not decide; misplaced samples are found equally well with 0.01 to 0.1.

    With ``normalize=True``, up to 10,000 distinct label rows are also clustered by k-means on the
    leading eigenvectors of the mean projector, because a factor can split a large cluster where it
    should find a small one. The partition that is nearer to the mean projector is kept.

    Above 10,000 distinct label rows, the starts are run on 10,000 samples drawn at
    random; the best is extended to all samples and improved on all. An update costs
    O(m T k + m k^2) for m distinct label rows and T partitions.

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

    One partition out of three existing ones:

    >>> table = [["a", "a", "b", "b"], [0, 0, 1, 1], [1, 1, 1, 0]]
    >>> NMFConsensus(n_clusters=2).fit(X[:4], partitions=table).labels_
    array([0, 0, 1, 1])
    """

    _parameter_constraints = {
        **NMFClusterer._parameter_constraints,
        "affinity": [StrOptions({"coassociation", "partitions", "precomputed"})],
        **BASE_PARAMETERS,
        "weights": ["array-like", None],
        "normalize": ["boolean"],
        "factorization": [StrOptions({"bi", "tri"})],
    }

    partitions_: np.ndarray | None
    weights_: np.ndarray | None
    confidence_: np.ndarray
    agreement_: np.ndarray | None
    estimators_: list[Any]

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
        predict_unseen: bool = False,
        weights: Any = None,
        normalize: bool = True,
        factorization: str = "bi",
        n_init: int = 3,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_clusters, n_init, max_iter, tol, random_state, n_jobs)
        self.affinity = affinity
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.base_n_clusters = base_n_clusters
        self.max_samples = max_samples
        self.max_features = max_features
        self.predict_unseen = predict_unseen
        self.weights = weights
        self.normalize = normalize
        self.factorization = factorization

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        partitions: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Find the consensus.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features, a label table, or a similarity, according to `affinity`.
        y : None
            Ignored; here for the conventions of scikit-learn.
        partitions : array-like of shape (n_samples, n_partitions) or list of label vectors, \
                default=None
            Base partitions, with ``affinity="coassociation"``, instead of those that `estimator`
            would make. An array or a data frame holds one a column, a list one an
            element. Labels are integers or strings; -1: noise, as DBSCAN and HDBSCAN return it;
            another negative number, NaN or None: not seen.
            An element of a list can also be a table of memberships, (n_samples, n_clusters_t), as
            `predict_proba` of a mixture returns: nonnegative, and scaled to sum to 1 by rows; a
            row of NaN or of zeros: not seen.
        sample_weight : array-like of shape (n_samples,), default=None
            How many samples each counts as, 1 by default: 2 counts as two equal samples. Fractions
            are allowed; a sample of weight 0 has no influence, and is labelled as a new one. Base
            clusterers whose `fit_predict` takes `sample_weight`, as that of k-means does, get the
            weights. The default base partitions, and other clusterers, give all samples with a
            weight above 0 the same weight; weights then enter where partitions are combined. Not
            for memberships and similarities.

        Returns
        -------
        NMFConsensus
            The fitted estimator.

        Raises
        ------
        ValueError
            If `X`, `partitions`, `sample_weight` or a parameter is not as described.
        TypeError
            If labels are neither integers nor strings.
        Exception
            Of the first base run, if all failed.

        Warns
        -----
        UserWarning
            Of samples in no cluster, and of base runs that found only noise. If four quarters of
            20 or more base runs find other clusters than all: another `random_state` then probably
            gives other clusters, too.
        FitFailedWarning
            If some base runs failed.
        """
        with fitting(self) as rng:
            soft = is_soft(X if self.affinity == "partitions" else partitions)
            self._check_arguments(X, partitions, sample_weight, soft)
            names = row_names(X)
            source: Any
            # read X, and partitions beside it, by the affinity
            if self.affinity == "precomputed":
                X = read_similarity(self, X)
                require_symmetric(X, "X with affinity='precomputed'")
                source = PrecomputedSimilarity(X)
            elif self.affinity == "partitions" and soft:
                source = Memberships(X, "X")
            elif self.affinity == "partitions":
                X = read_unconverted(X, estimator=self, are_labels=True)
                source = LabelTable(X, "X", names)
                self._check_orientation(source.codes)
            elif partitions is not None:
                partitions = reorder_samples(names, partitions, "partitions")
                X = read_features(self, X)
                if soft:
                    source = Memberships(partitions, "partitions", X)
                else:
                    source = LabelTable(partitions, "partitions", names, X)
            else:  # run base clusterers
                X, pairs = read_base_input(X, base_clusterers(self.estimator), self)
                n_samples = X.shape[0]
                weights = read_weights(sample_weight, names, self.n_clusters, n_samples)
                if weights is not None:
                    n_samples = int(np.count_nonzero(weights))
                self._check_not_alone(n_samples)
                self._check_n_clusters(n_samples)
                options = {name: getattr(self, name) for name in BASE_PARAMETERS}
                options |= {"n_clusters": self.n_clusters, "n_jobs": self.n_jobs}
                found = make_partitions(X, pairs, rng, weights, **options)
                source = LabelTable(found, "partitions", names, X)
                source.sample_weight = weights
            if isinstance(source, LabelTable) and source.estimators is None:
                source.warn_of_single()
                source.sample_weight = read_weights(
                    sample_weight, names, self.n_clusters, len(source)
                )
            self._check_n_clusters(len(source))
            self._fit_source(source, rng)
        return self

    def _check_arguments(self, X, partitions, sample_weight, soft):
        """Raise if arguments of `fit` do not go together; `soft`: they hold memberships."""
        if X is None:
            cure = ""
            if partitions is not None:
                cure = (
                    " Without features, give partitions as X, one a column, with "
                    "affinity='partitions'."
                )
            raise ValueError(f"X must be a table, got None.{cure}")
        if self.affinity != "coassociation" and partitions is not None:
            reason = ": X is." if self.affinity == "partitions" else "."
            raise ValueError(
                f"partitions cannot be given with affinity={self.affinity!r}{reason}"
            )
        if sample_weight is not None and (soft or self.affinity == "precomputed"):
            raise ValueError(
                "sample_weight needs features or labels: repeat rows, drop those of zero."
            )
        if self.affinity == "precomputed" and self.weights is not None:
            raise ValueError(
                f"weights={self.weights!r} needs partitions; it must be None with "
                "affinity='precomputed'."
            )

    def _check_orientation(self, codes):
        """Warn of a label table whose rows look like partitions; raise if rows are too few."""
        n_samples, n_partitions = codes.shape
        if n_samples >= n_partitions:
            return
        # Partitions agree with each other, whatever their clusters are called; samples of different
        # clusters do not. With two clusters nothing tells them apart but the shape.
        margin = 0.8 if n_partitions <= 10 * n_samples else 1.25
        if mean_agreement(codes.T) > margin * mean_agreement(codes):
            return
        hint = (
            f"X holds {n_partitions} partitions of {n_samples} samples: a row is a sample. "
            "If a row is a partition, give X.T."
        )
        if self.n_clusters > n_samples:
            raise ValueError(
                f"n_clusters={self.n_clusters} must be at most n_samples={n_samples}. {hint}"
            )
        warn(hint)

    def _fit_source(self, source, rng):
        """Factorize the co-association, or a similarity, and set the fitted attributes."""
        problem, groups = source.problem(self.weights, self.normalize)
        if not np.allclose(problem.coverage, 1):
            reason = "needs partitions that saw all samples: take"
            if not self.normalize:
                raise ValueError(
                    f"normalize={self.normalize!r} {reason} normalize=True, the default."
                )
            if self.factorization == "tri":
                raise ValueError(
                    f"factorization='tri' {reason} factorization='bi', the default."
                )
        solver = multiplicative_trinmf if self.factorization == "tri" else bregman_nmf
        best = factorize(problem, self._solver_config(solver), rng, COARSE)

        # read the clusters of the distinct rows off the factor, whose rows differ in length
        P, profile = problem.memberships(membership(best.H))
        P, labels, order = number_by_size(P, P.argmax(axis=1), problem.counts)
        profile = profile[:, order]
        confidence, agreement = problem.evaluate(labels, self.n_clusters)
        has_singletons = isinstance(source, LabelTable) and warn_of_singletons(
            problem, groups, labels, self.n_clusters, source.names
        )
        # where outliers are clusters, runs differ by these: one warning is enough
        if source.estimators is not None and not has_singletons:
            warn_of_seeds(problem, labels, self.n_clusters)
        if self.affinity == "precomputed" and not self.normalize:
            warn_of_split(problem.objective.A, labels, self.n_clusters)

        # samples have the clusters of their rows; those in no row are in no cluster, unless
        # they count 0 times: then they are labelled as new ones
        unlabelled = np.flatnonzero(groups < 0)
        found = (1 / self.n_clusters, -1, 0)
        if source.sample_weight is not None and len(unlabelled):
            codes = source.codes[unlabelled]
            found = problem.predict_unlabelled(codes, labels, profile)
        self.labels_ = labels[groups]
        self.membership_ = P[groups]
        self.confidence_ = confidence[groups]
        self.membership_[unlabelled] = found[0]
        self.labels_[unlabelled] = found[1]
        self.confidence_[unlabelled] = found[2]
        self.agreement_ = agreement
        self.core_ = best.core[np.ix_(order, order)]
        self.loss_: float = best.loss
        self.n_iter_: int = best.best.n_iter
        self._keep_source(source, problem.weights, profile, best.loss_curves)
        self._warn_unless_converged(best, int(self.labels_.max()) + 1)

    def _keep_source(self, source, weights, profile, loss_curves):
        """Set what does not depend on the order of the samples, and what new samples need."""
        self.weights_ = weights
        self.loss_curves_ = loss_curves
        self.loss_curve_ = loss_curves[0]
        self.partitions_ = source.codes
        if source.estimators is not None:
            self.estimators_ = source.estimators
        self._profile_ = profile
        self._source_ = source

    def _extend(self, X):
        return self._source_.extended(self, X, self._profile_)

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
            both; NaN for a pair that none saw. With ``affinity="precomputed"``, the similarity.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `indices` are not integers in the range of the samples.
        """
        check_is_fitted(self)
        chosen = axis_positions(indices, len(self.labels_), "sample", "the model")
        return self._source_.matrix(chosen, self.weights_)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, which depend on `affinity`."""
        tags = super().__sklearn_tags__()
        inputs = tags.input_tags
        labels = self.affinity == "partitions"
        inputs.sparse = not labels
        inputs.pairwise = self.affinity == "precomputed"
        inputs.positive_only = inputs.pairwise
        if self.affinity == "coassociation":  # the input is that of the base clusterers
            several = isinstance(self.estimator, list | tuple)
            bases = self.estimator if several else [self.estimator]
            inputs.pairwise = any(map(pairwise_input, bases))
        inputs.allow_nan = inputs.string = inputs.categorical = labels
        return tags
