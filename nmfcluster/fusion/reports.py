"""What a fusion tells beside its clusters: the fused similarity, and what each source gave."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import normalized_mutual_info_score
from sklearn.utils.validation import check_is_fitted

from nmfcluster._base import NMFClusterer
from nmfcluster._utils.parallel import one_blas_thread
from nmfcluster._utils.storage import cut, total
from nmfcluster._utils.validation import positions
from nmfcluster.fusion.kl_loss import told_of_clusters
from nmfcluster.fusion.model import fusion_nmf
from nmfcluster.fusion.sources import FittedSources


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


class FusionReports(NMFClusterer):
    """Methods of a fitted `SimilarityFusionNMF` that tell what the sources gave."""

    weights_: np.ndarray
    source_names_: tuple[str, ...]
    source_losses_: np.ndarray
    sample_indices_: np.ndarray

    _sources_: FittedSources
    _fitted_: np.ndarray  # the objects, in the order in which the model has them
    _order_: np.ndarray  # what the clusters were called in the factors

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
        n = len(self.sample_indices_)
        matrix, places = self._sources_.mixed.A, np.argsort(self._fitted_)
        own = places if self._sources_.symmetric else np.arange(matrix.shape[1])
        i = places[positions(rows, len(places), "row", "fused_similarity")]
        j = own[positions(columns, len(own), "column", "fused_similarity")]
        return cut(matrix, i, j) * (n / (total(matrix) or 1.0))

    def source_contributions(self) -> np.ndarray:
        r"""Return how much of every cluster is told by every source.

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
        W, H = self._sources_.halves()
        told = np.zeros((len(self.weights_), self.n_clusters))
        with one_blas_thread():
            for row, part in zip(told, self._sources_.parts(), strict=True):
                row[:] = 0 if part is None else told_of_clusters(part, W, H)
        told = np.maximum(told.T[self._order_], 0)
        sums = told.sum(axis=1, keepdims=True)
        return np.where(sums > 0, told / np.where(sums > 0, sums, 1), self.weights_)

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
        sources, config, ranked = (
            self._sources_,
            self._solver_config(fusion_nmf, n_init=1),
            [],
        )
        for i, name in enumerate(self.source_names_):
            with one_blas_thread(), np.errstate(under="ignore"):
                alone = sources.labels_alone(i, config)
            labels, seen = self.labels_[sources.judged[: len(alone)]], alone >= 0
            agreement = float(normalized_mutual_info_score(labels[seen], alone[seen]))
            loss = float(self.source_losses_[i])
            ranked.append(RankedSource(name, agreement, float(self.weights_[i]), loss))
        return sorted(ranked, key=lambda source: -source.agreement)
