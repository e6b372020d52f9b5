"""Clustering by several similarities, using what they agree in (Lange and Buhmann, 2005)."""

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
    """A source beside the result.

    Attributes
    ----------
    name : str
    agreement : float
        Normalised mutual information of `labels_` with the clusters of the source alone, over the
        objects that it saw; 1: the same.
    weight : float
    loss : float
        As in `source_losses_`.
    """

    name: str
    agreement: float
    weight: float
    loss: float


class SimilarityFusionNMF(NMFClusterer):
    r"""Clustering by several similarities of the same objects, using what they agree in.

    Each of L sources holds similarities of the objects: an array, a sparse graph, or a kernel of
    the features or of some of them. Each source is first corrected for chance, as an object that
    is similar to many others is similar to some by chance alone. What is left is its residual
    :math:`R_l = N_l - u_l u_l'`: :math:`N_l = D^{-1/2} S_l D^{-1/2}` without its diagonal, minus
    the similarity that is expected of independent objects that are as frequent as in it, with
    :math:`u_{li} \sum_{j \ne i} u_{lj}` the sum of row i of :math:`N_l`. D has the sums of rows
    plus their mean [2]_: outliers, which are similar to few, do not have the largest entries.

    A source counts if it agrees with another one: if the correlation of their residuals, over all
    pairs of objects that both saw, is larger than that of independent sources, or that with the
    clusters of the others. Residuals of the sources that count are added before neighbours are
    looked for,

    .. math:: R_{ij} = \sum_l \alpha_l R^l_{ij} / s_l , \quad
              s_l \text{ the root mean square of } R_l :

    so that pairs that are dissimilar in one source cancel chance neighbours in another. The largest
    entries make the graph P, which is scaled to sum to 1 and explained by the model of [1]_:
    cluster :math:`\nu` has probability :math:`q_\nu`, and draws two objects independently, each by
    :math:`h_\nu`,

    .. math:: \min_{H, q} D(P \,\|\, H \,\mathrm{diag}(q)\, H') , \quad 1'H = 1', \quad 1'q = 1 .

    With a finite `eta`, sources that this model explains better get larger weights; the model and
    the weights are found in turn: :math:`\alpha_l \propto p_l e^{-x_l / \eta}`, with
    :math:`p_l` the weights before, and :math:`x_l` the share of the source's own graph
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
        How sources are weighed: "agreement" does what is described above. The others are those of
        [1]_, which fits one model to the sources as they are,
        :math:`\min_{\alpha, H, q} \sum_l \alpha_l c_l - \eta H(\alpha)`, with the loss
        :math:`c_l` of a source: its Kullback-Leibler divergence from the model, "kl", or its
        cross-entropy, which is larger by the entropy of the source. They have no defence against
        noise.
    eta : float, default=numpy.inf
        Larger values make the weights more even: sources whose losses differ by `eta` have weights
        that differ by the factor e. With infinity all sources that count have equal weights, with 0
        the best of them has all weight. With "agreement" losses are shares, and values from 0.03 to
        1 are sensible; with the other criteria they are in nats. To choose it see
        `nmfcluster.model_selection.StabilityScorer`.
    weights : array-like of shape (n_sources,) or dict, default=None
        Your own weights of the sources, or of some of them by name; the others have weight 0. With
        weights, no source has to agree with another. With a finite `eta` they are :math:`p_l`.
    symmetric : bool, default=True
        Whether the model is symmetric, as above. False fits :math:`P \approx W H'` with two
        factors, as [1]_ does; similarities can then be those of n objects to p others, the same
        in all sources, of shape (n, p), and `max_samples` makes such ones.
    affinity : str, callable or list, default="precomputed"
        With "precomputed" `X` holds the similarities; for views it stands for Gaussian kernels,
        "rbf", or for graphs of nearest neighbours if there are more than 3,000 objects. Otherwise
        similarities are made of the features in `X`, as by `nmfcluster.stack.KernelStack`: a
        kernel, or a list of kernels or of triples (name, kernel, columns), a kernel being a name
        that `nmfcluster.affinity.make_affinity` knows or a function of two sets of samples. For
        views: a kernel, or a list with one kernel for each view. All but "nearest_neighbors" are
        dense, n × n: see `max_samples`. Parameters of kernels are those of a `KernelStack` in a
        pipeline, or of a function.
    normalize : bool or "auto", default="auto"
        Whether kernels of features are replaced by :math:`D^{-1/2} W D^{-1/2}`, D their row sums.
        "auto": those by "nearest_neighbors" only.
    max_samples : int or float, default=None
        Number, or share, of the objects that the model is fitted to, drawn at random; the
        others are predicted. With ``symmetric=False`` they are landmarks: all objects are fitted
        to their similarities to these, in time linear in their number. None: all.
    n_init : int or "auto", default="auto"
        Largest number of starts; the solution with the smallest loss is kept. The first is
        computed from leading eigenvectors, of the fused graph or the mean source, the second from
        clusters of k-means on these; where all sources that count are graphs, of at most 50,000
        objects, the others from single ones. "auto" has all of these, and there are no more. All
        but the first are abandoned after 3 updates, 20 with another `criterion`, unless they are
        below it by what `tol` counts as progress.
    max_iter : int, default=500
        Largest number of updates of a start: three EM steps, one of them extrapolated.
    tol : float, default=1e-4
        A start has converged when ten updates lower its loss by less than `tol`; in nats, by less
        than `tol` times the mean divergence of the sources from independent objects. A negative
        value runs all updates of all starts. It hardly ever has to be set: a larger value ends a
        long fit earlier.
    random_state : int, RandomState, Generator or None, default=None
        Determines the objects of `max_samples`; nothing else is random. The result does not depend
        on `n_jobs`, the number of threads, or the order of the objects or of the sources.
    n_jobs : int, default=None
        Number of starts that run at a time, and of jobs that look for neighbours.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Cluster of every object, numbered by decreasing size; -1 if the sources that count did not
        see the object, or it is similar to no other in them.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Probability of the clusters given the object, :math:`h_{i\nu} q_\nu` scaled to sum to 1.
    weights_ : ndarray of shape (n_sources,), float
        :math:`\alpha`, which sum to 1.
    counted_ : ndarray of shape (n_sources,), bool
        Which sources count, with ``criterion="agreement"``.
    agreement_ : tuple of ndarray of shape (n_sources, n_sources)
        With ``criterion="agreement"``: ``agreement_.correlations`` of the residuals, and
        ``agreement_.scores``, these times the root of the number of pairs, which have mean 0 and
        variance 1 for independent sources. From 5 on two sources agree; a source can also agree
        with the clusters of several.
    source_losses_ : ndarray of shape (n_sources,), float
        :math:`x_l`, between 0 and 1: a source of 1 is not explained. For dense sources it is
        computed from 500 objects in a random order. With another `criterion` :math:`c_l`, in nats.
    source_names_ : tuple of str
        Names of the sources.
    core_ : ndarray of shape (n_clusters, n_clusters)
        :math:`\mathrm{diag}(q)`: the probability of every cluster.
    loss_ : float
        Loss of the kept model: its divergence from the fused graph, as a share of that of
        independent objects. With another `criterion` its divergence from the mixture of the
        sources, in nats. It is not the smallest of `loss_curves_` where clusters of eigenvectors
        are kept, see Notes.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        Loss before the first and after every update of the kept run.
    loss_curves_ : list of ndarray
        The same for all starts, the kept one first; short for those that were abandoned.
    n_iter_ : int
        Number of updates of the kept run.
    sample_indices_ : ndarray of shape (n_fitted,), int
        The objects that the model was fitted to: all, unless there is `max_samples`.
    sample_names_ : ndarray of shape (n_samples,)
        Names of the objects, in the order of `labels_`, if views or similarities are data frames
        that have them.
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
    The largest entries of every row of R are kept: as many as the root of the number of objects, or
    as three quarters of a mean cluster if these are fewer. If all sources that count are graphs,
    all pairs of any of them are kept. A source is a graph, dense or sparse, if it has at most
    :math:`2 \sqrt n` entries a row on average, or few different ones for at most half of the
    pairs. A pair is in P if one of its objects keeps the other; its entry is divided by the roots
    of both degrees.

    The divergence can be smaller if a large cluster is split than if a small one is found. Clusters
    that k-means finds in the leading eigenvectors of P are kept where their normalised cut is below
    0.9 times that of the model minus 0.1, and each has more than five objects. Memberships are then
    the shares of similarity to these clusters, of new objects, too; there is a loss curve of length
    1.

    If several groups of sources agree, the largest counts, with sources that agree with the
    clusters of its leading eigenvectors; sources that are nearly equal have one vote together. If
    no two sources agree, those count that agree with the clusters of all others. If none does,
    or two groups are as large, the candidates are each of them alone, and all together: those count
    whose graph has the widest gap behind its k-th eigenvalue, so that its clusters stand out most,
    among those whose clusters all have more than five objects; if there are none, all together.
    A warning says so, as two sources cannot outvote each other.

    Negative similarities count as 0 with "agreement", and the other criteria refuse them;
    those of a network are warned of. Distances are refused. An object
    that a source did not see has NaN in its row and column there, see `SimilarityStack`, or has no
    similarity above 0. The source is not used for it.

    A new object o gets :math:`z_{o\nu} \propto \sum_i \hat p_{oi} z_{i\nu} / q_\nu` from the
    memberships z of the objects that the model was fitted to, :math:`\hat p` being its row of the
    fused graph, or of the mixture of the sources with another `criterion`. Eq. 8 of [1]_ has
    neither :math:`q_\nu`, without which flat kernels send all objects to the largest cluster, nor
    the sums of the sources, by which the weights were learned. The objects of `fit` are extended
    like any others, so that `predict` can differ from `labels_`.

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
    >>> telling = [y[:, None] + 0.3 * rng.normal(size=(60, 2)) for _ in range(2)]
    >>> noise = rng.normal(size=(60, 2))
    >>> sources = [rbf_kernel(view) for view in (*telling, noise)]
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
            (n_samples, n_samples, n_sources), or one matrix of shape (n_samples, n_samples); else
            features, of shape (n_samples, n_features). A dict, a list of data frames that are not
            square, or a :class:`~nmfcluster.stack.ViewStack` holds views: see `views`.
        y : None
            Ignored.
        similarities : list of {array-like, sparse matrix}, or SimilarityStack, default=None
            The sources, each of shape (n_samples, n_samples), instead of `X`. Cross-validation
            cannot split a list: give it a `SimilarityStack` as `X`.
        views : dict or list of {array-like, sparse matrix}, or ViewStack, default=None
            Tables of features, of different widths, one a source; instead of `X`.
            Rows of data frames are matched by their index, see
            :class:`~nmfcluster.stack.ViewStack`, which is also what cross-validation can split.

        Returns
        -------
        SimilarityFusionNMF
            The fitted estimator.

        Raises
        ------
        ValueError
            If the similarities, the views or a parameter are not as described.
        TypeError
            If the similarities or the views are of another type.
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
            # what predictions and reports need
            self._sources_ = sources
            self._profile_ = profile[:, clusters]
            self._order_ = clusters  # the clusters, as the factors number them
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, similarities: Any = None, views: Any = None
    ) -> np.ndarray:
        """Cluster the objects, and return their memberships as `transform` finds them.

        Parameters
        ----------
        X : as for `fit`
            Similarities, features or views; None, which has to be said, with one of the others.
        y : None
            Ignored.
        similarities, views : as for `fit`, default=None
            What to read instead of `X`.

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
        """Return the memberships of objects, from their similarities to those of the fit.

        Parameters
        ----------
        X : as for `fit`
            Similarities to all objects of the fit, features or views; of one object or more.

        Returns
        -------
        ndarray of shape (n_new, n_clusters)
            Rows sum to 1; that of an object that is similar to no other is uniform. They are in the
            order of `X`, and where data frames in it have names, in that in which these occur:
            ``ViewStack(X).index``. With ``set_output(transform="pandas")`` names are the index.

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
        r"""Return the similarity that all sources make together, which the clusters explain.

        It is the fused graph, or the mixture of the sources with another `criterion`: for heat
        maps, or for methods that take a graph. Its rows sum to 1 on average.

        Parameters
        ----------
        rows, columns : slice, array-like of int, or mask, default=None
            Which objects to return, of those that the model was fitted to; None: all. Columns
            are landmarks where ``symmetric=False`` made some.

        Returns
        -------
        {ndarray, csr_array} of shape (n_rows, n_columns)
            Sparse, but with another `criterion` if a source is not.

        Raises
        ------
        NotFittedError
            If `fit` has not been called.
        TypeError, ValueError
            If `rows` or `columns` name no objects.

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

        That objects occur together more often than independent ones would is what a cluster
        explains:

        .. math:: e_{\nu l} = \sum_{ij} p^l_{ij}\, \tau_{ij\nu}
            \log \frac{m_{ij}}{m_{i\cdot}\, m_{\cdot j}} , \quad
            \tau_{ij\nu} = \frac{h_{i\nu} q_\nu h_{j\nu}}{m_{ij}}

        with :math:`M = H \mathrm{diag}(q) H'`, and :math:`p^l_{ij}` what the source adds to
        :math:`P_{ij}`: of these the sum is P. A contribution is the share of a source in that,
        :math:`e_{\nu l} / \sum_{l'} e_{\nu l'}`, or 0 if it is below.

        Returns
        -------
        ndarray of shape (n_clusters, n_sources)
            Rows sum to 1. A row is `weights_` where nothing is explained.

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
        """Return the sources in the order of their agreement with the result.

        Every source is clustered alone, from its spectral start, with the parameters of the
        estimator; that takes as long as a fit.

        Returns
        -------
        list of RankedSource
            Tuples of name, agreement, weight and loss, the largest agreement first; what
            ``pandas.DataFrame`` makes a table of.

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
