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
    """A source, and how far it agrees with the result.

    Attributes
    ----------
    name : str
    agreement : float
        Normalised mutual information of `labels_` with the clusters of the source alone, over the
        objects that the source covers. It is 1 if they are the same.
    weight : float
    loss : float
        As in `source_losses_`.
    """

    name: str
    agreement: float
    weight: float
    loss: float


class SimilarityFusionNMF(NMFClusterer):
    r"""Clustering by several similarities of the same objects, using the structure they share.

    Each of L sources holds similarities of the objects: an array, a sparse graph, or a kernel of
    all or some of the features. Each source is first corrected for chance, because an object that
    is similar to many others is similar to some by chance alone. The corrected similarity is the
    residual :math:`R_l = N_l - u_l u_l'`. Here :math:`N_l = D^{-1/2} S_l D^{-1/2}`, without its
    diagonal, and :math:`u_l u_l'` is the similarity that is expected of independent objects with
    the same row sums: :math:`u_{li} \sum_{j \ne i} u_{lj}` is the sum of row i of :math:`N_l`. D
    holds the sums of rows plus their mean [2]_. Without this mean, outliers, which are similar to
    few objects, would have the largest entries.

    A source counts if it agrees with another one, or with the clusters of the others. Two sources
    agree if their residuals, over all pairs of objects that both cover, correlate more than those
    of independent sources. The residuals of the sources that are used are added,

    .. math:: R_{ij} = \sum_l \alpha_l R^l_{ij} / s_l , \quad
              s_l \text{ the root mean square of } R_l ,

    before the neighbour graph is built, so that pairs that are dissimilar in one source cancel
    chance neighbours in another. The largest entries make the graph P, which is scaled to sum to 1.
    The model of [1]_ explains it: cluster :math:`\nu` has probability :math:`q_\nu`, and draws two
    objects independently, each from :math:`h_\nu`,

    .. math:: \min_{H, q} D(P \,\|\, H \,\mathrm{diag}(q)\, H') , \quad 1'H = 1', \quad 1'q = 1 .

    With a finite `eta`, sources that this model explains better get larger weights. The estimator
    alternates between the model and the weights :math:`\alpha_l \propto p_l e^{-x_l / \eta}`, where
    :math:`p_l` are the initial weights. :math:`x_l` is the share of the source's own graph
    :math:`P_l`, with margins :math:`m_l`, that the model leaves unexplained,

    .. math:: x_l = \min_{0 \le \lambda \le 1}
        \frac{D\bigl(P_l \,\|\, \lambda H \mathrm{diag}(q) H' + (1 - \lambda) m_l m_l'\bigr)}
             {D(P_l \,\|\, m_l m_l')} .

    Read more in the :ref:`User Guide <fusion>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    criterion : {"agreement", "kl", "cross_entropy"}, default="agreement"
        How sources are weighted. "agreement" is described above. The others are those of [1]_,
        which fits one model to the sources as they are,
        :math:`\min_{\alpha, H, q} \sum_l \alpha_l c_l - \eta H(\alpha)`. The loss :math:`c_l` of a
        source is its Kullback-Leibler divergence from the model with "kl". With "cross_entropy" it
        is larger by the entropy of the source. Neither protects against noisy sources.
    eta : float, default=numpy.inf
        Larger values make the weights more even. With infinity all sources that are used have equal
        weights, with 0 the best one has all the weight. Sensible values are 0.03 to 1 with
        "agreement", where losses are shares; with the other criteria losses are in nats. Two
        sources whose losses differ by `eta` have weights that differ by the factor e. To choose a
        value, see `nmfcluster.model_selection.StabilityScorer`.
    weights : array-like of shape (n_sources,) or dict, default=None
        Your own weights of the sources, or of some of them by name; the others have weight 0. With
        weights, no source has to agree with another. With a finite `eta` they are :math:`p_l`.
    symmetric : bool, default=True
        Whether the model is symmetric, as above. False fits :math:`P \approx W H'` with two
        factors, as [1]_ does. Similarities can then have the shape (n, p), for n objects and p
        columns that are the same in all sources; `max_samples` makes such similarities.
    affinity : str, callable or list, default="precomputed"
        How similarities are computed. With "precomputed" `X` holds them; views get Gaussian
        kernels, "rbf", or graphs of nearest neighbours if there are more than 3,000 objects.
        Otherwise `affinity` is a kernel of the features in `X`, or a list of kernels or of triples
        (name, kernel, columns), as for `nmfcluster.stack.KernelStack`; for views it is a kernel, or
        a list with one kernel for each view. A kernel is a name that
        `nmfcluster.affinity.make_affinity` accepts, or a function of two sets of samples. All
        kernels but "nearest_neighbors" are dense, n × n; see `max_samples`. To set parameters of
        kernels, use a `KernelStack` in a pipeline, or a function.
    normalize : bool or "auto", default="auto"
        Whether kernels of features are replaced by :math:`D^{-1/2} W D^{-1/2}`, D their row sums.
        "auto" does so for "nearest_neighbors" only.
    max_samples : int or float, default=None
        Number, or share, of the objects that the model is fitted to, drawn at random; the
        others are predicted. With ``symmetric=False`` they are landmarks: all objects are fitted
        to their similarities to the landmarks, in time linear in the number of objects. None fits
        the model to all objects.
    n_init : int or "auto", default="auto"
        Largest number of starts; the solution with the smallest loss is kept. The first start is
        computed from leading eigenvectors of the fused graph, or of the mean source. The second
        comes from the clusters of k-means on these. If all sources that are used are graphs, of at
        most 50,000 objects, each source gives one more. "auto" runs all of these; larger numbers
        add none. All but the first are abandoned after 3 updates, or 20 with another `criterion`,
        unless their loss is then below that of the first by the tolerance `tol`.
    max_iter : int, default=500
        Largest number of updates of a start. An update is three EM steps, one of them extrapolated.
    tol : float, default=1e-4
        Larger values end a long fit earlier; it hardly ever has to be set. A start has converged
        when ten updates lower its loss by less than `tol`; if the loss is in nats, by less than
        `tol` times the mean divergence of the sources from independent objects. A negative value
        runs all updates of all starts.
    random_state : int, RandomState, Generator or None, default=None
        Determines which objects `max_samples` draws; nothing else is random. The result does not
        depend on `n_jobs`, the number of threads, or the order of the objects or of the sources.
    n_jobs : int, default=None
        Number of starts that run at a time, and of jobs that search for neighbours.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Cluster of every object, numbered by decreasing size. -1 if the sources that are used do not
        cover the object, or if it is similar to no other in them.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Probability of the clusters given the object, :math:`h_{i\nu} q_\nu` scaled to sum to 1.
    weights_ : ndarray of shape (n_sources,), float
        :math:`\alpha`, which sum to 1.
    counted_ : ndarray of shape (n_sources,), bool
        Which sources count, with ``criterion="agreement"``.
    agreement_ : tuple of ndarray of shape (n_sources, n_sources)
        With ``criterion="agreement"``: ``agreement_.correlations`` of the residuals, and
        ``agreement_.scores``, the correlations times the root of the number of pairs. Scores have
        mean 0 and variance 1 for independent sources; two sources agree above 5. A source can also
        agree with the clusters of several others.
    source_losses_ : ndarray of shape (n_sources,), float
        :math:`x_l`, between 0 and 1, where 1 means that the model explains nothing of the source.
        Those of dense sources are computed from 500 objects. With another `criterion`
        :math:`c_l`, in nats.
    source_names_ : tuple of str
        Names of the sources.
    core_ : ndarray of shape (n_clusters, n_clusters)
        :math:`\mathrm{diag}(q)`, which holds the probability of every cluster.
    loss_ : float
        Loss of the kept model: its divergence from the fused graph, as a share of that of
        independent objects. With another `criterion` it is the divergence from the mixture of the
        sources, in nats. If clusters of eigenvectors are kept, it need not be the smallest of
        `loss_curves_`, see Notes.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        Loss before the first and after every update of the kept run.
    loss_curves_ : list of ndarray
        The same for all starts, the kept one first. Those of abandoned starts are short.
    n_iter_ : int
        Number of updates of the kept run.
    sample_indices_ : ndarray of shape (n_fitted,), int
        The objects that the model was fitted to: all, unless `max_samples` is set.
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
    *The graph.* Every row of R keeps its largest entries: as many as the root of the number of
    objects, or as three quarters of a mean cluster if these are fewer. If all sources that are used
    are graphs, the pairs of all of them are kept. A source, dense or sparse, is a graph if it has
    at most :math:`2 \sqrt n` entries a row on average, or if at most half of its entries are above
    0 and have few distinct values. A pair is in P if one of its objects keeps the other. Its entry
    is divided by the roots of both degrees.

    *Clusters of eigenvectors.* The divergence can be smaller if a large cluster is split than if a
    small one is found. Clusters that k-means finds in the leading eigenvectors of P therefore
    replace those of the model if their normalised cut is below 0.9 times that of the model minus
    0.1, and each has more than five objects. Memberships, of new objects too, are then the shares
    of similarity to these clusters, and the loss curve has length 1.

    *Sources that count.* Sources that are nearly equal share one vote.

    1. If sources agree, the largest group that does counts, with the sources that agree with the
       clusters of its leading eigenvectors.
    2. If no two sources agree, those are used that agree with the clusters of all others.
    3. If there are none, or two groups are equally large, each of them alone and all together are
       candidates. The graph with the widest gap after its k-th eigenvalue is chosen, because its
       clusters are the most distinct, among graphs whose clusters all have more than five objects.
       If there are no such graphs, all sources are used. A warning reports the choice, because two
       sources cannot outvote each other.

    *Values.* Negative similarities count as 0 with "agreement", with a warning if the source is a
    network; the other criteria refuse them. Distances are refused. A source does not cover an
    object that has NaN in its row and column, see `SimilarityStack`, or no similarity above 0. The
    source is not used for this object.

    *New objects.* A new object o gets
    :math:`z_{o\nu} \propto \sum_i \hat p_{oi} z_{i\nu} / q_\nu`. Here z are the memberships of the
    objects that the model was fitted to, and :math:`\hat p` is the object's row of the fused graph,
    or of the mixture of the sources with another `criterion`. Eq. 8 of [1]_ has no :math:`q_\nu`,
    without which flat kernels send all objects to the largest cluster. It also lacks the sums of
    the sources, by which the weights were learned. The objects of `fit` are extended like any
    others, so that `predict` can differ from `labels_`.

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
            With ``affinity="precomputed"`` the similarities: a stack, an array of shape
            (n_samples, n_samples, n_sources), or one matrix of shape (n_samples, n_samples).
            Otherwise features, of shape (n_samples, n_features). A dict, a list of data frames that
            are not square, or a :class:`~nmfcluster.stack.ViewStack` holds views; see `views`.
        y : None
            Ignored.
        similarities : list of {array-like, sparse matrix}, or SimilarityStack, default=None
            The sources, each of shape (n_samples, n_samples), instead of `X`. Cross-validation
            cannot split a list; pass it a `SimilarityStack` as `X`.
        views : dict or list of {array-like, sparse matrix}, or ViewStack, default=None
            Matrices of features, instead of `X`. Each is a source, of any width. Rows of data
            frames are matched by their index, see :class:`~nmfcluster.stack.ViewStack`, which
            cross-validation can split.

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
            Rows sum to 1. `membership_` holds those of the model itself.
        """
        self.fit(X, y, similarities=similarities, views=views)
        if X is None:
            X = views if similarities is None else similarities
        return self.transform(X)

    def transform(self, X: Any) -> np.ndarray:
        """Return the memberships of objects, from their similarities to the objects of the fit.

        Parameters
        ----------
        X : as for `fit`
            Similarities to all objects of the fit, features or views, of one object or more.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            Rows sum to 1. The row of an object that is similar to no other is uniform. Rows are in
            the order of `X`. If data frames in it have row names, rows are in the order in which
            names first occur, ``ViewStack(X).index``, and ``set_output(transform="pandas")`` makes
            the names the index.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        ValueError
            If `X` is not of the kind or width of the data that `fit` was called with.
        """
        memberships: Any = super().transform(X)
        is_frame = hasattr(memberships, "set_axis")  # of pandas
        names = self._sources_.reader.read_new(self, X).index if is_frame else None
        return memberships if names is None else memberships.set_axis(names)

    def _extend(self, X):
        objects = self._sources_.reader.read_new(self, X)
        return self._sources_.extend(objects, np.arange(len(objects)), self._profile_)

    def fused_similarity(self, rows: Any = None, columns: Any = None) -> Any:
        r"""Return the combined similarity of all sources, which the clusters explain.

        It is the fused graph, or the mixture of the sources with another `criterion`. Use it for
        heat maps, or for methods that take a graph. Its rows sum to 1 on average.

        Parameters
        ----------
        rows, columns : slice, array-like of int, or mask, default=None
            Objects to return, among those that the model was fitted to; None returns all. With
            ``symmetric=False`` and `max_samples`, columns are landmarks.

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

        A cluster explains why objects occur together more often than independent ones would. The
        part of source l in this is

        .. math:: e_{\nu l} = \sum_{ij} p^l_{ij}\, \tau_{ij\nu}
            \log \frac{m_{ij}}{m_{i\cdot}\, m_{\cdot j}} , \quad
            \tau_{ij\nu} = \frac{h_{i\nu} q_\nu h_{j\nu}}{m_{ij}} .

        Here :math:`M = H \mathrm{diag}(q) H'`, and the source adds :math:`p^l_{ij}` to
        :math:`P_{ij}`. Its contribution is :math:`e_{\nu l} / \sum_{l'} e_{\nu l'}`, where negative
        :math:`e_{\nu l}` count as 0.

        Returns
        -------
        ndarray of shape (n_clusters, n_sources)
            Rows sum to 1. The row of a cluster that explains nothing is `weights_`.

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

        Every source is clustered alone, from its spectral start, with the parameters of the
        estimator. This takes as long as a fit.

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
