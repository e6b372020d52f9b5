"""Clustering by the structure that several similarities share (Lange and Buhmann, 2005)."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils.validation import check_is_fitted

from nmfcluster._base import (
    NMFClusterer,
    fitting,
    hard_labels,
    membership,
    number_by_size,
)
from nmfcluster._compat import (
    COUNT,
    Interval,
    RealNotInt,
    StrOptions,
    at_least,
    fit_context,
)
from nmfcluster._utils.parallel import one_blas_thread
from nmfcluster._utils.progress import stage
from nmfcluster._utils.storage import submatrix, total
from nmfcluster._utils.validation import axis_positions, format_count
from nmfcluster.affinity import AFFINITIES, AFFINITY_PARAMETERS
from nmfcluster.fusion.agreement_graph import AgreementGraph, read_source_weights
from nmfcluster.fusion.kl_loss import explained_by_clusters
from nmfcluster.fusion.model import (
    CrossEntropyFusion,
    KLFusion,
    draw_sample,
    fusion_nmf,
)
from nmfcluster.fusion.residuals import Agreement
from nmfcluster.stack.readers import read_objects

_CRITERIA: dict[str, type[AgreementGraph | KLFusion]] = {
    "agreement": AgreementGraph,
    "kl": KLFusion,
    "cross_entropy": CrossEntropyFusion,
}


class RankedSource(NamedTuple):
    """A source, and how well it agrees with the result.

    Attributes
    ----------
    name : str
    agreement : float
        Normalised mutual information of `labels_` with the clusters of the source alone, over the
        objects that the source covers. It is 1 if they are the same.
    weight : float
        Weight of the source, as in `weights_`.
    loss : float
        Loss of the source, as in `source_losses_`.
    """

    name: str
    agreement: float
    weight: float
    loss: float


class SimilarityFusionNMF(NMFClusterer):
    r"""Clustering by several similarities of the same objects, using the structure they share.

    A source is a similarity of the objects, which are the samples: an array, a sparse graph, or a
    kernel of some or all features. The estimator finds the sources that agree, adds them, and
    clusters the objects by the sum.

    Each source is first corrected for chance, because an object that is similar to many others is
    similar to some by chance alone. The corrected similarity of source l is the residual
    :math:`R_l = N_l - u_l u_l'`. Here :math:`N_l = D^{-1/2} S_l D^{-1/2}` is the similarity
    :math:`S_l`, normalised by D and without its diagonal. D holds the row sums of :math:`S_l` plus
    the mean row sum [2]_. Without this mean, outliers, which are similar to few objects, would have
    the largest entries. The product :math:`u_l u_l'` is the similarity that is expected of
    independent objects with the same row sums. The vector :math:`u_l` is computed such that
    :math:`u_{li} \sum_{j \ne i} u_{lj}` equals the sum of row i of :math:`N_l`.

    A source is used if it agrees with another source, or with the clusters of the others. Two
    sources agree if their residuals correlate more than those of independent sources. The
    correlation is over all pairs of objects that both sources cover. The residuals of the sources
    that are used are added, with weights :math:`\alpha_l`,

    .. math:: R_{ij} = \sum_l \alpha_l R^l_{ij} / s_l , \quad
              s_l \text{ the root mean square of } R_l ,

    before the neighbour graph is built. Objects that are neighbours by chance in one source are
    therefore not joined if they are dissimilar in another. The largest entries form the graph P,
    which is scaled to sum to 1.

    The model of [1]_ is fitted to P. In this model, cluster :math:`\nu` has probability
    :math:`q_\nu`, and the two objects of a pair are drawn independently from the distribution
    :math:`h_\nu` of the cluster,

    .. math:: \min_{H, q} D(P \,\|\, H \,\mathrm{diag}(q)\, H') , \quad 1'H = 1', \quad 1'q = 1 .

    With a finite `eta`, sources that this model explains better get larger weights. The estimator
    alternates between the model and the weights :math:`\alpha_l \propto p_l e^{-x_l / \eta}`, where
    :math:`p_l` are the initial weights. The loss :math:`x_l` is the share of the graph :math:`P_l`
    of source l alone that the model leaves unexplained. With the row sums :math:`m_l` of
    :math:`P_l`, it is

    .. math:: x_l = \min_{0 \le \lambda \le 1}
        \frac{D\bigl(P_l \,\|\, \lambda H \mathrm{diag}(q) H' + (1 - \lambda) m_l m_l'\bigr)}
             {D(P_l \,\|\, m_l m_l')} .

    Read more in the :ref:`User Guide <fusion>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    criterion : {"agreement", "kl", "cross_entropy"}, default="agreement"
        How sources are selected and weighted. "agreement" is described above. "kl" and
        "cross_entropy" are the criteria of [1]_. They fit one model to the uncorrected sources,
        :math:`\min_{\alpha, H, q} \sum_l \alpha_l c_l - \eta H(\alpha)`, where :math:`H(\alpha)` is
        the entropy of the weights. With "kl", the loss :math:`c_l` of a source is its
        Kullback-Leibler divergence from the model. With "cross_entropy", the entropy of the source
        is added to it. Neither criterion protects against noisy sources.
    eta : float, default=numpy.inf
        Larger values make the weights more even. With infinity, all sources that are used have
        equal weights. With 0, the source with the smallest loss has all the weight. Sensible values
        are 0.03 to 1 with "agreement", whose losses are between 0 and 1. The losses of the other
        criteria are in nats. If the losses of two sources differ by `eta`, their weights differ by
        the factor e. To choose a value, see `nmfcluster.model_selection.StabilityScorer`.
    weights : array-like of shape (n_sources,) or dict, default=None
        Weights of the sources, used instead of the selection of sources that agree. A dict maps the
        names of sources to weights, and sources that it does not contain have weight 0. With a
        finite `eta`, these are the initial weights :math:`p_l`.
    symmetric : bool, default=True
        Whether the model has a single factor, as above. False fits :math:`P \approx W H'` with two
        factors, as in [1]_. Similarities can then have the shape (n, p), for n objects and p
        columns that are the same in all sources. If `max_samples` is set, the columns are landmarks
        drawn from the objects.
    affinity : str, callable or list, default="precomputed"
        How similarities are computed. With "precomputed", `X` holds similarities. If views are
        passed instead, each gets a Gaussian kernel ("rbf"), or a graph of nearest neighbours if
        there are more than 3,000 objects.

        With any other value, similarities are computed from the features in `X` by one kernel, or
        by a list of kernels or of triples (name, kernel, columns), as in
        `nmfcluster.stack.KernelStack`. For views, pass one kernel, or a list with one kernel for
        each view. A kernel is a name that `nmfcluster.affinity.make_affinity` accepts, or a
        function of two sets of samples. To set the parameters of kernels, use a `KernelStack` in a
        pipeline, or a function. All kernels but "nearest_neighbors" are dense n × n arrays, unless
        `max_samples` is set.
    normalize : bool or "auto", default="auto"
        Whether kernels W of features are normalised to :math:`D^{-1/2} W D^{-1/2}`, where D holds
        the row sums of W. "auto" normalises only "nearest_neighbors".
    max_samples : int or float, default=None
        Number or share of the objects that the model is fitted to. Smaller values take less time
        and memory. The objects are drawn at random, and the others are predicted. With
        ``symmetric=False``, the drawn objects are landmarks, and the model is fitted to the
        similarities of all objects to them, in time linear in the number of objects. None fits the
        model to all objects.
    n_init : int or "auto", default="auto"
        Largest number of starts. The solution with the smallest loss is kept. "auto" runs all
        starts that are available, and larger numbers add none. The first start is computed from the
        leading eigenvectors of the fused graph, or of the mixture of the sources with "kl" and
        "cross_entropy". The second one is computed from the clusters of k-means on these
        eigenvectors. If all sources that are used are graphs, and there are at most 50,000 objects,
        each source adds one start.

        All starts but the first are abandoned after 3 updates (20 with "kl" and "cross_entropy"),
        unless their loss is then below that of the first by the tolerance `tol`.
    max_iter : int, default=500
        Largest number of updates of a start. An update consists of three steps of
        expectation-maximisation (EM), one of them extrapolated.
    tol : float, default=1e-4
        Larger values end a long fit earlier. The default seldom has to be changed. A start has
        converged when ten updates lower its loss by less than `tol`. With "kl" and "cross_entropy",
        the limit is `tol` times the divergence of the mixture of the sources from independent
        objects. A negative value runs all updates of all starts.
    random_state : int, RandomState, Generator or None, default=None
        Determines which objects `max_samples` draws; nothing else is random. The result does not
        depend on `n_jobs`, the number of threads, or the order of the objects or of the sources.
    n_jobs : int, default=None
        Number of parallel jobs, for the starts and for the search for neighbours.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Cluster of every object, numbered by decreasing size. An object has label -1 if none of the
        sources that are used covers it, or if it is similar to no other object in these sources.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Probability of every cluster given the object. A row holds :math:`h_{i\nu} q_\nu`, scaled to
        sum to 1.
    weights_ : ndarray of shape (n_sources,), float
        The weights :math:`\alpha_l` of the sources, which sum to 1.
    counted_ : ndarray of shape (n_sources,), bool
        Which sources are used. Only with ``criterion="agreement"``.
    agreement_ : tuple of ndarray of shape (n_sources, n_sources)
        How well any two sources agree. Only with ``criterion="agreement"``.
        ``agreement_.correlations`` holds the correlations of the residuals, and
        ``agreement_.scores`` holds the correlations times the square root of the number of pairs of
        objects. For independent sources, scores have mean 0 and variance 1. Two sources agree if
        their score is above 5. A source with low scores is also used if it agrees with the clusters
        of several others.
    source_losses_ : ndarray of shape (n_sources,), float
        The losses :math:`x_l`, between 0 and 1, where 1 means that the model explains nothing of
        the source. The losses of dense sources are computed from 500 objects. With "kl" and
        "cross_entropy", these are the losses :math:`c_l`, in nats.
    source_names_ : tuple of str
        Names of the sources.
    core_ : ndarray of shape (n_clusters, n_clusters)
        :math:`\mathrm{diag}(q)`, which holds the probability of every cluster.
    loss_ : float
        Loss of the kept model. It is the divergence of the fused graph from the model, divided by
        the divergence of the graph from independent objects. With "kl" and "cross_entropy", it is
        the divergence of the mixture of the sources from the model, in nats. If clusters of
        eigenvectors are kept (see Notes), it need not be the smallest loss in `loss_curves_`.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        Loss before the first and after every update of the kept run.
    loss_curves_ : list of ndarray
        Loss curves of all starts, the kept one first. Abandoned starts have short curves.
    n_iter_ : int
        Number of updates of the kept run.
    sample_indices_ : ndarray of shape (n_fitted,), int
        The objects that the model was fitted to. These are all objects, unless `max_samples` is
        set.
    sample_names_ : ndarray of shape (n_samples,)
        Names of the objects, in the order of `labels_`, if views or similarities are data frames
        with named rows.
    n_features_in_ : int
        Number of columns of `X`, or of all views.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of `X`, if they are all strings.

    See Also
    --------
    nmfcluster.stack.SimilarityStack : Similarities that cross-validation can split.
    nmfcluster.stack.ViewStack : Views that cross-validation can split.
    nmfcluster.stack.KernelStack : Similarities of features, in pipelines.
    nmfcluster.model_selection.StabilityScorer : Chooses `eta` and `n_clusters`.

    Notes
    -----
    *The graph.* Every row of R keeps its K largest entries, where K is the square root of the
    number of objects, or three quarters of the mean size of a cluster if that is smaller. A pair is
    in P if one of its objects keeps the other. Its entry is divided by the square roots of both
    degrees. If all sources that are used are graphs, all pairs of these graphs are kept instead. A
    source, dense or sparse, is a graph if it has at most :math:`2 \sqrt n` entries a row on
    average. It is also a graph if at most half of its entries are above 0, and these have few
    distinct values.

    *Clusters of eigenvectors.* Splitting a large cluster can lower the divergence more than finding
    a small one. The estimator therefore also runs k-means on the leading eigenvectors of P. These
    clusters replace those of the model if their normalised cut is below 0.9 times that of the model
    minus 0.1, and each of them has more than five objects. The memberships of all objects, new ones
    included, are then their shares of similarity to these clusters, and the loss curve has length
    1.

    *Selection of sources.* Sources that are nearly equal count as one source, and share its weight.

    1. If some sources agree, the largest group of them is used. The sources that agree with the
       clusters in the leading eigenvectors of this group are added to it.
    2. If no two sources agree, every source is used that agrees with the clusters of all others.
    3. If there are no such sources, each source alone and all of them together are candidates. If
       several groups are equally large, each group alone and all of them together are candidates.
       The estimator uses the candidate whose graph has the widest gap after its k-th eigenvalue,
       because its clusters are the most distinct. Graphs that have a cluster of at most five
       objects are skipped. If no graph is left, all sources are used. A warning reports the choice,
       because two sources cannot outvote each other.

    *Values.* With "agreement", negative similarities count as 0, and a warning is issued if the
    source is a network. With the other criteria, negative similarities raise an error. Distances
    always raise an error. A source does not cover an object whose row and column are NaN (see
    `SimilarityStack`), or that has no similarity above 0. The source is then not used for this
    object.

    *New objects.* The memberships of a new object o are :math:`z_{o\nu} \propto \sum_i \hat p_{oi}
    z_{i\nu} / q_\nu`. Here :math:`z_{i\nu}` are the memberships of the objects that the model was
    fitted to, and :math:`\hat p_{oi}` is the row of the object in the fused graph, or in the
    mixture of the sources with "kl" and "cross_entropy". Eq. 8 of [1]_ does not divide by
    :math:`q_\nu`. Flat kernels would then assign all objects to the largest cluster. It also does
    not divide each source by its sum, as was done when the weights were learned. `predict` treats
    the objects of `fit` as new objects, so that its result can differ from `labels_`.

    References
    ----------
    .. [1] T. Lange, J. M. Buhmann. Fusion of similarity data in clustering. NIPS 2005.
    .. [2] T. Qin, K. Rohe. Regularized spectral clustering under the degree-corrected stochastic
       blockmodel. NIPS 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.metrics.pairwise import rbf_kernel
    >>> from nmfcluster import SimilarityFusionNMF
    >>> rng = np.random.RandomState(0)
    >>> y = np.repeat([0, 1], [40, 20])
    >>> informative = [y[:, None] + 0.3 * rng.normal(size=(60, 2)) for _ in range(2)]
    >>> noise = rng.normal(size=(60, 2))
    >>> sources = [rbf_kernel(view) for view in (*informative, noise)]
    >>> model = SimilarityFusionNMF(n_clusters=2).fit(similarities=sources)
    >>> bool((model.labels_ == y).all())
    True
    >>> model.weights_
    array([0.5, 0.5, 0. ])
    """

    _display = "SourceWeightsDisplay"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NMFClusterer._parameter_constraints,
        "eta": [Interval(Real, 0, None, closed="both")],
        "weights": ["array-like", dict, None],
        "n_init": [COUNT, StrOptions({"auto"})],
        "criterion": [StrOptions(set(_CRITERIA))],
        "symmetric": ["boolean"],
        "affinity": [StrOptions(set(AFFINITIES) - {"auto"}), callable, list],
        "normalize": AFFINITY_PARAMETERS["normalize"],
        "max_samples": [
            at_least(2),
            Interval(RealNotInt, 0, 1, closed="right"),
            None,
        ],
    }

    _sources_: AgreementGraph | KLFusion

    source_names_: tuple[str, ...]
    weights_: np.ndarray
    source_losses_: np.ndarray
    counted_: np.ndarray
    agreement_: Agreement

    def __init__(
        self,
        n_clusters: int,
        *,
        criterion: str = "agreement",
        eta: float = np.inf,
        weights: Any = None,
        symmetric: bool = True,
        affinity: str | Callable[[Any, Any], Any] | list[Any] = "precomputed",
        normalize: bool | str = "auto",
        max_samples: float | None = None,
        n_init: int | str = "auto",
        max_iter: int = 500,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_clusters, n_init, max_iter, tol, random_state, n_jobs)
        self.criterion = criterion
        self.eta = eta
        self.weights = weights
        self.symmetric = symmetric
        self.affinity = affinity
        self.normalize = normalize
        self.max_samples = max_samples

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        similarities: Any = None,
        views: Any = None,
    ) -> SimilarityFusionNMF:
        """Cluster the objects.

        Parameters
        ----------
        X : SimilarityStack, {array-like, sparse matrix}, ViewStack, or dict or list of tables, \
                default=None
            With ``affinity="precomputed"``, the similarities. They are a stack, an array of shape
            (n_samples, n_samples, n_sources), or one matrix of shape (n_samples, n_samples). With
            another `affinity`, the features, of shape (n_samples, n_features). A dict, a list of
            data frames that are not square, or a :class:`~nmfcluster.stack.ViewStack` is read as
            views. See `views`.
        y : None
            Ignored.
        similarities : list of {array-like, sparse matrix}, or SimilarityStack, default=None
            The sources, each of shape (n_samples, n_samples), passed instead of `X`.
            Cross-validation cannot split a list. Pass a `SimilarityStack` as `X` there.
        views : dict or list of {array-like, sparse matrix}, or ViewStack, default=None
            Matrices of features, passed instead of `X`. Each matrix is a source, and can have any
            number of features. Rows of data frames are matched by their index. For
            cross-validation, which cannot split a dict or a list, pass a
            :class:`~nmfcluster.stack.ViewStack` as `X`.

        Returns
        -------
        SimilarityFusionNMF
            The fitted estimator.

        Raises
        ------
        ValueError
            If the similarities, the views or a parameter are not as described.
        TypeError
            If the similarities or the views are not of these types.
        """
        with fitting(self) as rng:
            # Read the similarities, or the features that they are made of.
            reader, objects = read_objects(self, X, similarities, views)
            n_samples = len(objects)
            self.n_features_in_ = reader.n_features
            if objects.index is not None:
                self.sample_names_ = np.asarray(objects.index)
            self._check_not_alone(n_samples)
            self._check_n_clusters(n_samples)
            # Draw the objects that the model is fitted to, and compare the sources.
            with stage(f"similarities of {format_count(n_samples, 'object')}"):
                order = reader.order_of(objects)
                sample = draw_sample(
                    objects.shape,
                    order,
                    int(self.n_clusters),
                    self.max_samples,
                    self.symmetric,
                    rng,
                )
                sources = _CRITERIA[self.criterion](reader, objects, sample)
            # Find the weights of the sources and the model.
            names = reader.names
            weights = read_source_weights(self.weights, names)
            n_init = 2 + len(names) if self.n_init == "auto" else self.n_init
            config = self._solver_config(fusion_nmf, n_init=n_init)
            sources.fit(config, float(self.eta), weights)
            fusion = sources.fusion
            # Extend the memberships of the fitted objects to the others.
            sizes = fusion.best.factors[0].sum(axis=0).astype(reader.dtype)
            profile = fusion.profile(reader.dtype)[-sources.n_compared :]
            rows = sources.extend_to_all(objects, order, profile)
            # Number the clusters by their size.
            memberships, labels, clusters = number_by_size(
                membership(rows), hard_labels(rows)
            )
            self._warn_unless_converged(fusion, int(labels.max()) + 1)
            self.labels_ = labels
            self.membership_ = memberships
            self.weights_ = sources.weights
            self.source_names_ = names
            self.source_losses_ = sources.losses
            if isinstance(sources, AgreementGraph):
                self.agreement_ = sources.agreement
                self.counted_ = sources.counted
            self.core_ = np.diag(sizes[clusters])
            self.loss_ = fusion.loss
            self.loss_curves_ = fusion.loss_curves
            self.loss_curve_ = self.loss_curves_[0]
            self.n_iter_ = fusion.best.n_iter
            self.sample_indices_ = np.sort(sample.fitted)
            # kept for `predict`, `transform` and the reports
            self._sources_ = sources
            self._profile_ = profile[:, clusters]
            self._order_ = clusters  # the clusters, as the factors number them
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, similarities: Any = None, views: Any = None
    ) -> np.ndarray:
        """Cluster the objects, and return their memberships as `transform` computes them.

        Parameters
        ----------
        X : as for `fit`
            Similarities, features or views. Pass None explicitly with `similarities` or `views`.
        y : None
            Ignored.
        similarities, views : as for `fit`, default=None
            Sources to use instead of `X`.

        Returns
        -------
        ndarray of shape (n_samples, n_clusters)
            Memberships, whose rows sum to 1. They can differ from `membership_`, which holds the
            memberships of the model itself.
        """
        self.fit(X, y, similarities=similarities, views=views)
        if X is None:
            X = views if similarities is None else similarities
        return self.transform(X)

    def transform(self, X: Any) -> np.ndarray:
        """Return the memberships of objects, computed from their similarities to those of `fit`.

        Parameters
        ----------
        X : as for `fit`
            Features or views of one or more objects, or their similarities to all objects of `fit`.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            Memberships, whose rows sum to 1. The row of an object that is similar to no other is
            uniform. Rows are in the order of `X`. If data frames in `X` have row names, rows are in
            the order in which the names first occur, which is ``ViewStack(X).index``. With
            ``set_output(transform="pandas")``, the names are the index of the result.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` is not the kind of data that was passed to `fit`, or has a different number of
            features.
        """
        memberships: Any = super().transform(X)
        is_frame = hasattr(memberships, "set_axis")  # of pandas
        names = self._sources_.reader.read_new(self, X).index if is_frame else None
        return memberships if names is None else memberships.set_axis(names)

    def _extend(self, X):
        objects = self._sources_.reader.read_new(self, X)
        return self._sources_.extend(objects, np.arange(len(objects)), self._profile_)

    def fused_similarity(self, rows: Any = None, columns: Any = None) -> Any:
        r"""Return the combined similarity of all sources, to which the model was fitted.

        It is the fused graph, or the mixture of the sources with "kl" and "cross_entropy". Use it
        for heat maps, or as input of methods that need a graph. Its rows sum to 1 on average.

        Parameters
        ----------
        rows, columns : slice, array-like of int, or mask, default=None
            Objects to return, among those that the model was fitted to. None returns all of them.
            With ``symmetric=False`` and `max_samples`, columns are landmarks.

        Returns
        -------
        {ndarray, csr_array} of shape (n_rows, n_columns)
            Sparse with ``criterion="agreement"``, or if all sources with a weight are sparse.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        TypeError, ValueError
            If `rows` or `columns` do not select objects.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import SimilarityFusionNMF
        >>> X = np.random.RandomState(0).normal(size=(30, 2)) + 4 * (np.arange(30) < 15)[:, None]
        >>> model = SimilarityFusionNMF(n_clusters=2).fit({"height": X[:, :1], "width": X[:, 1:]})
        >>> similarity = model.fused_similarity()
        >>> round(float(similarity.sum()), 3)
        30.0
        >>> model.fused_similarity(rows=[0, 1], columns=slice(5)).shape
        (2, 5)
        """
        check_is_fitted(self)
        matrix = self._sources_.mixed.A
        row_positions = np.argsort(self._sources_.fitted)
        column_positions = row_positions
        if not self._sources_.symmetric:
            column_positions = np.arange(matrix.shape[1])
        n = len(row_positions)
        m = len(column_positions)
        i = row_positions[axis_positions(rows, n, "row", "fused_similarity")]
        j = column_positions[axis_positions(columns, m, "column", "fused_similarity")]
        return submatrix(matrix, i, j) * (n / (total(matrix) or 1.0))

    def source_contributions(self) -> np.ndarray:
        r"""Return how much every source contributes to every cluster.

        A cluster explains why pairs of objects are more frequent in P than they would be if objects
        were independent. The part of source l in what cluster :math:`\nu` explains is

        .. math:: e_{\nu l} = \sum_{ij} p^l_{ij}\, \tau_{ij\nu}
            \log \frac{m_{ij}}{m_{i\cdot}\, m_{\cdot j}} , \quad
            \tau_{ij\nu} = \frac{h_{i\nu} q_\nu h_{j\nu}}{m_{ij}} .

        Here :math:`M = H \mathrm{diag}(q) H'`, and :math:`p^l_{ij}` is the part of :math:`P_{ij}`
        that comes from source l. The contribution of the source is
        :math:`e_{\nu l} / \sum_{l'} e_{\nu l'}`. Negative :math:`e_{\nu l}` count as 0.

        Returns
        -------
        ndarray of shape (n_clusters, n_sources)
            Contributions, whose rows sum to 1. A cluster that explains nothing has the row
            `weights_`.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import SimilarityFusionNMF
        >>> rng = np.random.RandomState(0)
        >>> y = np.repeat([0, 1], 30)
        >>> names = ("height", "weight", "noise")
        >>> views = {name: rng.normal(size=(60, 3)) for name in names}
        >>> for name in names[:2]:
        ...     views[name] += 4 * y[:, None]
        >>> model = SimilarityFusionNMF(n_clusters=2).fit(views)
        >>> model.source_contributions().round(1)
        array([[0.5, 0.5, 0. ],
               [0.5, 0.5, 0. ]])
        """
        check_is_fitted(self)
        W, H = self._sources_.row_column_factors()
        explained = np.zeros((len(self.weights_), self.n_clusters))
        with one_blas_thread():
            for number, part in self._sources_.contributions().items():
                explained[number] = explained_by_clusters(part, W, H)
        explained = np.maximum(explained.T[self._order_], 0)
        sums = explained.sum(axis=1, keepdims=True)
        shares = explained / np.where(sums > 0, sums, 1)
        return np.where(sums > 0, shares, self.weights_)

    def rank_sources(self) -> list[RankedSource]:
        """Return the sources by decreasing agreement with the result.

        Every source is clustered alone, with the parameters of the estimator and a single start
        from eigenvectors. This takes about as long as `fit`.

        Returns
        -------
        list of RankedSource
            Tuples of name, agreement, weight and loss, the largest agreement first.
            ``pandas.DataFrame`` turns the list into a table.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.

        Examples
        --------
        >>> import numpy as np
        >>> from nmfcluster import SimilarityFusionNMF
        >>> rng = np.random.RandomState(0)
        >>> y = np.repeat([0, 1, 2], 20)
        >>> views = {
        ...     "noise": rng.normal(size=(60, 2)),
        ...     "half": (y == 0)[:, None] + 0.1 * rng.normal(size=(60, 2)),
        ...     "all": y[:, None] + 0.1 * rng.normal(size=(60, 2)),
        ... }
        >>> model = SimilarityFusionNMF(n_clusters=3).fit(views)
        >>> [source.name for source in model.rank_sources()]
        ['all', 'half', 'noise']
        """
        check_is_fitted(self)
        sources = self._sources_
        config = self._solver_config(fusion_nmf, n_init=1)
        ranked = []
        for number, name in enumerate(self.source_names_):
            with one_blas_thread(), np.errstate(under="ignore"):
                alone = sources.labels_of_source(number, config)
            labels = self.labels_[sources.evaluated_rows[: len(alone)]]
            seen = alone >= 0
            source = RankedSource(
                name=name,
                agreement=float(
                    normalized_mutual_info_score(labels[seen], alone[seen])
                ),
                weight=float(self.weights_[number]),
                loss=float(self.source_losses_[number]),
            )
            ranked.append(source)
        return sorted(ranked, key=lambda source: -source.agreement)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, which depend on `affinity` and `criterion`."""
        tags = super().__sklearn_tags__()
        is_pairwise = self.affinity == "precomputed"
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_pairwise
        tags.input_tags.allow_nan = not is_pairwise  # cells of features
        tags.input_tags.positive_only = is_pairwise and self.criterion != "agreement"
        return tags
