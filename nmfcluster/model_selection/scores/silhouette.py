"""How much nearer samples are to their own cluster than to the next."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import silhouette_samples

import nmfcluster.model_selection.checks as checks
from nmfcluster._arrays.draws import some_positions
from nmfcluster._compat import Interval, StrOptions
from nmfcluster.model_selection.copies import Samples, labels_of_fit, numbered
from nmfcluster.model_selection.scorer import DETAILS, ClusterScorer

__all__ = ["SilhouetteScorer"]

_METRICS = {"cityblock", "cosine", "euclidean", "l1", "l2", "manhattan"}  # for sparse X, too


class SilhouetteScorer(ClusterScorer[Any]):
    r"""Score a clusterer by how much nearer samples are to their own cluster than to the next.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. The score is the
    mean silhouette [1]_

    .. math:: s_i = \frac{b_i - a_i}{\max(a_i, b_i)} ,

    where :math:`a_i` is the mean distance of sample i to the others of its cluster, and
    :math:`b_i` that to the samples of the nearest other cluster.

    Parameters
    ----------
    metric : str or callable, default="euclidean"
        The distance: "cityblock", "cosine", "euclidean", "l1", "l2", "manhattan", or a function of
        two samples.
    max_samples : int, default=2000
        Number of samples, 2 at least, that are compared with each other: so many are drawn where
        there are more.
    details : bool, default=False
        Whether to return a dict of "silhouette", the score, "smallest_silhouette", the mean of the
        cluster where it is least, and "n_clusters", those that hold samples.
    random_state : int, default=0
        Determines the samples; an int, so that all candidates are scored on the same.

    See Also
    --------
    GapScorer : Can speak for one cluster.
    NullScorer : Compares the score with that of tables without clusters.

    Notes
    -----
    The estimator has to be fitted, as that of a search is; nothing is fitted. The clusters are its
    `labels_`, or what it predicts for `X`.

    One cluster has no nearest other one. Its samples have the silhouette 0, as [1]_ gives to one
    that is alone in its cluster: no candidate with a positive score loses to it. So do samples in
    no cluster.

    Distances are those of `X` as it was handed over. Where a pipeline scales features, scale them
    before the search.

    References
    ----------
    .. [1] P. J. Rousseeuw. Silhouettes: a graphical aid to the interpretation and validation of
       cluster analysis. Journal of Computational and Applied Mathematics 20, 1987.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster.model_selection import FullSampleSplit, SilhouetteScorer
    >>> X, _ = make_blobs(200, centers=4, random_state=3)
    >>> search = GridSearchCV(
    ...     KMeans(n_init=3, random_state=0),
    ...     {"n_clusters": [1, 2, 3, 4, 5, 6]},
    ...     scoring=SilhouetteScorer(),
    ...     cv=FullSampleSplit(),
    ... )
    >>> search.fit(X).best_params_
    {'n_clusters': 4}
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "metric": [StrOptions(_METRICS), callable],
        "max_samples": [Interval(Integral, 2, None, closed="left")],
        **DETAILS,
    }
    _names = ("silhouette", "smallest_silhouette", "n_clusters")
    _must_predict = False

    def __init__(
        self,
        metric: Any = "euclidean",
        *,
        max_samples: int = 2000,
        details: bool = False,
        random_state: int = 0,
    ) -> None:
        self.metric = metric
        self.max_samples = max_samples
        self.details = details
        self.random_state = random_state

    def _read(self, estimator: Any, X: Any, pairwise: bool) -> Any:
        checks.require_clusters(estimator)
        return checks.read_features(X, pairwise, type(self).__name__)

    def _arguments(self, estimator: Any, handed: dict[str, Any], n_samples: int) -> dict[str, Any]:
        return {}  # no copy is fitted

    def _scored(self, estimator: Any, samples: Samples, table: Any) -> dict[str, float]:
        n_samples = table.shape[0]
        labels = numbered(labels_of_fit(estimator, samples.X), n_samples)
        rng = np.random.default_rng(int(self.random_state))
        drawn = some_positions(n_samples, self.max_samples, rng)
        values = silhouettes(table[drawn], labels[drawn], self.metric)
        present = np.unique(labels[drawn][labels[drawn] >= 0])
        means = [values[labels[drawn] == c].mean() for c in present]
        found = (float(values.mean()), float(min(means, default=0.0)), float(labels.max() + 1))
        return dict(zip(self._names, found, strict=True))


def silhouettes(X: Any, labels: np.ndarray, metric: Any) -> np.ndarray:
    """Return the silhouette of every sample.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
    labels : ndarray of shape (n,), int
        Clusters from 0; -1: in none.
    metric : str or callable

    Returns
    -------
    ndarray of shape (n,)
        0 for those in no cluster; for all, where there is one cluster, or one for each sample.
    """
    values = np.zeros(len(labels))
    placed = np.flatnonzero(labels >= 0)
    if 1 < len(np.unique(labels[placed])) < len(placed):
        values[placed] = silhouette_samples(X[placed], labels[placed], metric=metric)
    return values
