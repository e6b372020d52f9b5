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

# distinct label rows above which the starts are run on as many samples, drawn at random
COARSE = 10_000


class NMFConsensus(NMFClusterer):
    r"""Consensus clustering by symmetric nonnegative matrix factorization.

    The estimator combines many base partitions of the same samples into one partition. Partition t
    is represented by a matrix :math:`P^t`, the projector onto the indicators of its clusters. The
    entry of two samples is 1 / s if they share a cluster of s samples, and 0 otherwise. `fit`
    minimizes the loss

    .. math:: J(H) = \sum_t w_t \|P^t - HH'\|_F^2, \quad H \ge 0 ,

    where :math:`w_t` is the weight of partition t. The factor H has a row for each sample and a
    column for each cluster, and gives the consensus.

    Every base cluster has equal weight, whatever its size. With ``normalize=False``, every pair of
    samples has equal weight, as in the relaxation of eq. 12 of [1]_. The mean of the projectors is
    then replaced by the co-association :math:`\tilde M`, the share of partitions in which two
    samples are together. Neither matrix is ever formed. Samples with the same labels in all
    partitions are fitted as one, so that a million samples are possible.

    Read more in the :ref:`User Guide <consensus>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters of the consensus.
    affinity : {"coassociation", "partitions", "precomputed"}, default="coassociation"
        What `X` contains:

        - "coassociation": features, or whatever `estimator` can read. Base partitions are made from
          these unless you pass `partitions` to `fit`.
        - "partitions": labels of shape (n_samples, n_partitions), integers or strings. Categorical
          features can also be used as labels. -1 is noise. Other negative numbers, NaN and None
          mean that the partition does not include the sample. `X` can also be a list that holds
          memberships, see the parameter `partitions` of `fit`.
        - "precomputed": a symmetric nonnegative similarity of shape (n_samples, n_samples), dense
          or sparse, such as a co-association.
    estimator : estimator with `fit_predict`, or list of such, default=None
        Clusterer that makes the base partitions. The clusterers of a list take turns. By default,
        every run factorizes one of a few graphs in which samples are joined to their nearest
        neighbours; see the notes.

        If your clusterer has parameters `n_clusters` and `random_state`, they are set for every
        run. A clusterer with ``metric="precomputed"`` or a similar setting receives distances or
        similarities of all pairs of samples. Data frames, text and NaN are passed on unconverted.
        Rows are passed on in the order of `X`. A parameter of the clusterer may therefore have a
        value for each row, such as ``connectivity=``.
    n_estimators : int, default=50
        Number of base partitions. With more partitions, the consensus depends less on the seed, and
        takes longer. Values from 20 to 200 are sensible, and 50 are usually enough.
    base_n_clusters : int or tuple (low, high), default=None
        Number of clusters of a base partition, or the range that it is drawn from. With larger
        numbers, smaller clusters can be found. With very large numbers, few partitions join any two
        samples. Raise the upper end if a large group is split or a small one is missing.

        The default range starts at `n_clusters`. Its end is 15 or the square root of the number of
        distinct samples, whichever is smaller, but at least 1.5 times `n_clusters`. If you pass an
        `estimator`, the end is the square root of the number of samples, but at most 60 and at
        least `n_clusters`. Without `estimator`, the numbers are spread evenly over the range.
    max_samples : int or float, default=1.0
        Number (int) or share (float) of samples drawn, without replacement, for each base
        partition. With fewer samples, partitions differ more, and a slow clusterer takes less time.
        A partition labels only the drawn samples and their copies, unless `predict_unseen` is True.
        Keep 1.0 for a clusterer with a parameter that has a value for each row. The default graphs
        hold all samples, but each run factorizes its graph on drawn samples only.
    max_features : int or float, default=1.0
        Number (int) or share (float) of features drawn for each base partition. With fewer
        features, partitions differ more and take less time. Keep 1.0 unless there are many features
        that are largely redundant, such as thousands of genes.
    predict_unseen : bool, default=False
        Whether a base partition also labels samples that were not drawn for it. They are labelled
        by `predict` of its clusterer. If it has no `predict`, they take the label of the nearest
        drawn sample. This matters only if `max_samples` leaves samples out. Use it with clusterers
        that are slow for many samples, if some samples suffice to find the clusters.
    weights : array-like of shape (n_partitions,), default=None
        Nonnegative weights of the partitions; equal by default. A partition with a larger weight
        has more influence on the consensus. If base runs fail or find only noise, they are left
        out, and so are their weights.
    normalize : bool, default=True
        Whether every cluster of a partition has equal weight. If False, every pair of samples has
        equal weight, as in [1]_. Partitions must then have seen all samples, and large clusters can
        be split if partitions have more clusters than the consensus. For a precomputed similarity,
        True divides rows and columns by the square roots of the row sums.
    factorization : {"bi", "tri"}, default="bi"
        Use "bi", which fits HH' by Bregman proximal gradient steps and never raises the loss. "tri"
        is for comparison only. It fits the tri-factorization :math:`\|\tilde M - QSQ'\|^2` with
        Q'Q = I, by eq. 20-21 of [1]_ as printed. Its loss can rise, Q'Q = I holds only
        approximately, and small clusters are lost.
    n_init : int, default=3
        Number of starts. More starts can improve the result, and take more time. The best start is
        that with the smallest hard loss, which is the loss of its partition instead of its factor
        (eq. 12 of [1]_ with ``normalize=False``). For a similarity or memberships, it is the start
        with the smallest loss. The first start is computed from leading eigenvectors; the others
        are random. Starts that are unlikely to become the best are abandoned.
    max_iter : int, default=500
        Largest number of updates of a start.
    tol : float, default=1e-6
        A larger value, such as 1e-4, ends a long fit earlier; the default rarely has to be changed.
        A start has converged when ten updates lower its loss by less than `tol` times the loss of
        H = 0. With a negative value, all updates are run.
    random_state : int, RandomState, Generator or None, default=None
        Determines the base partitions and the random starts. The result does not depend on `n_jobs`
        or the number of threads. It depends on the order of the samples only if you pass a
        clusterer whose partitions depend on it.
    n_jobs : int, default=None
        Number of base runs, and of starts, that run in parallel. The default base runs use threads,
        which share the graphs.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Cluster of every sample. Clusters are numbered by decreasing size. A sample has label -1 if
        no partition labels it. It also has label -1 if it is noise in most of the partitions that
        include it, by their weights.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Mean co-association of each sample with every cluster, or a similar measure (see Notes),
        scaled to sum to 1. `transform` returns the same for new samples. With
        ``normalize=False``, rows of H, scaled to sum to 1. Rows of samples with label -1 are
        uniform.
    core_ : ndarray of shape (n_clusters, n_clusters)
        S in :math:`QSQ'`, where the columns of Q have unit length. The diagonal holds the weights
        of the clusters. With ``factorization="bi"``, the other entries are 0.
    weights_ : ndarray of shape (n_partitions,)
        Weights of the partitions, scaled to sum to 1. None with ``affinity="precomputed"``.
    partitions_ : ndarray of shape (n_samples, n_partitions), int
        Base partitions, with clusters numbered from 0. -1 is noise, and -2 marks a sample that the
        partition does not include. None with ``affinity="precomputed"`` or memberships.
    confidence_ : ndarray of shape (n_samples,)
        How clearly the partitions vote for the cluster of a sample and against other clusters. It
        is 1 if the cluster is certain, 0.5 if the sample lies between two clusters, about
        1 / n_clusters at chance, and 0 for a sample in no cluster. The notes have the formula.
    agreement_ : ndarray of shape (n_partitions,)
        Adjusted Rand index of every base partition with the consensus. It is computed over the
        samples that the partition includes. None with ``affinity="precomputed"`` or memberships.
    loss_ : float
        Loss of the kept run. For partitions, it is :math:`\sum_t w_t \|P^t - HH'\|^2`. If some
        partitions do not include a sample, its rows and columns are divided by the square root of
        the weight of those that do. With ``normalize=False``, the loss is
        :math:`\sum_t w_t \|M^t - HH'\|^2`, where :math:`M^t` is 1 for samples that share a cluster
        and 0 otherwise (J of [1]_, above eq. 3). For a precomputed similarity A, or the
        co-association A of memberships, it is :math:`\|A - HH'\|^2`. A is normalised if
        `normalize` is True.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        Loss before the first and after every update of the kept run.
    loss_curves_ : list of ndarray
        Loss curves of all starts, the kept one first. Curves of abandoned starts are short. Curves
        of starts on a part of the samples are scaled to all samples.
    n_iter_ : int
        Number of updates of the kept run.
    estimators_ : list
        The fitted clusterer of each base partition, if `fit` made the partitions. By default, these
        are objects with an attribute `n_clusters` and a method `predict`. The method takes new
        samples with the features of the run. If you pass an `estimator`, these are its fitted
        clones, whose samples are in the order of `X`.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of `X`, if they are all strings.

    See Also
    --------
    nmfcluster.partitions.base_partitions : Makes base partitions.
    nmfcluster.display.ConsensusMatrixDisplay : Plots the co-association, ordered by cluster.
    nmfcluster.metrics.cophenetic_correlation : Helps to choose the number of clusters.

    Notes
    -----
    **Default base partitions.** Without `estimator`, every run factorizes a graph of distinct
    samples, and the runs share a few graphs. If `X` is sparse, or has at most 3,000 distinct
    samples, there are five graphs of nearest neighbours. They have 0.6 to 4 times as many
    neighbours as the default graph of :class:`~nmfcluster.SSNMFClusterer`. Otherwise, there are
    three graphs, with 500, 1,000 and 2,000 landmarks, and each sample is joined to its five nearest
    landmarks. With `max_features` below 1.0, each run has a graph of its own.

    A run draws 60 % of the samples of its graph, at most 3,000, and factorizes their similarities.
    Every other sample of the graph takes the cluster for which the sum of its similarities to the
    samples of the cluster is largest. A graph holds at most 10,000 samples, drawn at random. Other
    samples, and new ones, take the cluster for which their neighbours in the graph vote. Copies of
    a sample count once in the graphs, but each of them counts when partitions are combined.

    **New samples.** `transform` and `predict` use the mean similarity of a sample to every cluster.
    This is the extension of Lange and Buhmann (2005), eq. 8, divided by the size of the cluster.
    Without the division, a large cluster would attract every uncertain sample. `labels_` are
    derived in the same way. For partitions with ``normalize=True``, one of two other measures
    replaces the mean co-association if it gives clusters that fit the partitions better. In one,
    the votes of base clusters are divided by their sizes. In the other, the mean co-association
    with a cluster is divided by the mean co-association of the samples within it.

    **Confidence.** `confidence_` compares clusters of any size. Let :math:`v_{tc}` be the share of
    cluster c that lies in the same base cluster of partition t as the sample. The total vote for c
    is a geometric mean minus 1, over the partitions that put the sample into a cluster,

    .. math:: e_c = \prod_t (1 + v_{tc} / 0.03)^{w_t} - 1.

    The confidence is :math:`e_c / \sum_{c'} e_{c'}` for the sample's own cluster. It is multiplied
    by the share of partitions that do not call the sample noise, among those that include it. With
    memberships, every base cluster adds a factor to the product. The exponent of this factor is
    :math:`w_t` times the membership. With a similarity, :math:`e_c` is the mean similarity to
    cluster c. The constant 0.03 is small, so that small votes count, too, and a few partitions with
    large votes do not decide alone. Constants from 0.01 to 0.1 find misplaced samples equally well.

    **Other clusters.** The factorization can split a large cluster and miss a small one. With
    ``normalize=True``, distinct rows of labels are therefore also clustered by two other methods:
    average linkage and, up to 10,000 rows, k-means on the leading eigenvectors of the mean
    projector. Linkage uses at most 2,000 rows, drawn at random, and other rows are assigned to the
    cluster with the largest mean similarity. One of these partitions is kept if its projector is
    much nearer to the mean projector than that of the factorization. Memberships and similarities
    are clustered by k-means only, and the partitions are compared by the normalised cut.

    **Time.** Above 10,000 distinct rows of labels, the starts are run on 10,000 samples drawn at
    random. The best factor is extended to all samples, and updated there. An update costs
    O(m T k + m k^2) for m distinct rows of labels, T partitions and k clusters.

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

    Combine three existing partitions into one:

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
        """Combine base partitions into one partition.

        Base partitions are made from `X` by `estimator` unless you pass existing ones.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features, labels, or a similarity, according to `affinity`.
        y : None
            Not used, present for API consistency.
        partitions : array-like of shape (n_samples, n_partitions) or list of label vectors, \
                default=None
            Existing base partitions, used instead of those that `estimator` would make. They
            require ``affinity="coassociation"``. An array or a data frame has one partition per
            column, and a list has one per element. Labels are integers or strings. -1 is noise, as
            in the labels of DBSCAN and HDBSCAN. Other negative numbers, NaN and None mean that the
            partition does not include the sample.

            An element of a list can also be an array of memberships, of shape (n_samples,
            n_clusters_t), such as `predict_proba` of a mixture returns. Memberships are
            nonnegative, and their rows are scaled to sum to 1. A row of NaN or zeros means that the
            partition does not include the sample.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples, 1 by default. A sample of weight 2 counts as two equal samples;
            fractions are allowed. A sample of weight 0 has no influence, and is labelled like a new
            sample. Weights are not allowed for memberships and similarities.

            Weights are passed to base clusterers whose `fit_predict` takes `sample_weight`, such as
            k-means. Other clusterers, and the default base runs, give the same weight to all
            samples with a weight above 0. Weights then count only when partitions are combined.

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
            The error of the first base run, if all base runs failed.

        Warns
        -----
        UserWarning
            If samples are in no cluster, or if base runs found only noise. Also if another
            `random_state` would probably give other clusters. To test this, at least 20 base runs
            are divided into quarters, and the clusters of each quarter are compared with the
            consensus.
        FitFailedWarning
            If some base runs failed.
        """
        with fitting(self) as rng:
            soft = is_soft(X if self.affinity == "partitions" else partitions)
            self._check_arguments(X, partitions, sample_weight, soft)
            names = row_names(X)
            source: Any
            # read X and partitions as `affinity` requires
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
        """Raise if arguments of `fit` do not go together; `soft` is True for memberships."""
        if X is None:
            cure = ""
            if partitions is not None:
                cure = (
                    " Without features, pass the partitions as X, one per column, with "
                    "affinity='partitions'."
                )
            raise ValueError(f"X must be an array or a data frame, got None.{cure}")
        if self.affinity != "coassociation" and partitions is not None:
            cure = ": pass them as X." if self.affinity == "partitions" else "."
            raise ValueError(
                f"partitions must be None with affinity={self.affinity!r}{cure}"
            )
        if sample_weight is not None and (soft or self.affinity == "precomputed"):
            raise ValueError(
                "sample_weight must be None for memberships and similarities: repeat rows, and "
                "drop rows of weight zero, instead."
            )
        if self.affinity == "precomputed" and self.weights is not None:
            raise ValueError(
                f"weights={self.weights!r} needs partitions. It must be None with "
                "affinity='precomputed'."
            )

    def _check_orientation(self, codes):
        """Warn if rows of X look like partitions; raise if X also has fewer rows than clusters."""
        n_samples, n_partitions = codes.shape
        if n_samples >= n_partitions:
            return
        # Partitions agree with each other, whatever their clusters are called, but samples of
        # different clusters do not. With two clusters, only the shape is a hint.
        margin = 0.8 if n_partitions <= 10 * n_samples else 1.25
        if mean_agreement(codes.T) > margin * mean_agreement(codes):
            return
        hint = (
            f"X holds {n_partitions} partitions of {n_samples} samples, as every row is a sample. "
            "If rows are partitions, pass X.T."
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
            reason = "needs partitions that include all samples: use"
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

        # memberships and labels of the distinct rows, from rows of the factor scaled to sum to 1
        P, profile = problem.memberships(membership(best.H))
        P, labels, order = number_by_size(P, P.argmax(axis=1), problem.counts)
        profile = profile[:, order]
        confidence, agreement = problem.evaluate(labels, self.n_clusters)
        has_singletons = isinstance(source, LabelTable) and warn_of_singletons(
            problem, groups, labels, self.n_clusters, source.names
        )
        # outliers that are clusters also make runs differ: one warning is enough
        if source.estimators is not None and not has_singletons:
            warn_of_seeds(problem, labels, self.n_clusters)
        if self.affinity == "precomputed" and not self.normalize:
            warn_of_split(problem.objective.A, labels, self.n_clusters)

        # every sample takes the cluster of its distinct row; samples without such a row are in no
        # cluster, unless there are sample weights: then they are labelled like new ones
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
        """Set the attributes of partitions and starts, and keep what new samples need."""
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
            Samples whose rows and columns are returned. By default, these are all samples, and the
            array has n_samples^2 entries.

        Returns
        -------
        ndarray of shape (n_indices, n_indices)
            Weighted share of the partitions in which two samples are together, among the partitions
            that include both. It is NaN if none does. With ``affinity="precomputed"``, the
            similarity.

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
