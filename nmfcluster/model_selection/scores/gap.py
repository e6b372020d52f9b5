"""How much tighter clusters are than those of tables without clusters."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np

import nmfcluster.model_selection.checks as checks
from nmfcluster._arrays.jobs import shared_out
from nmfcluster._arrays.threads import one_thread
from nmfcluster._compat import Interval, StrOptions
from nmfcluster.model_selection.copies import Samples, fitted_copy, labels_of_fit, numbered
from nmfcluster.model_selection.scorer import OF_COPIES, ClusterScorer, CopyFailedError
from nmfcluster.model_selection.scores.references import Reference, reference_of

__all__ = ["GapScorer"]


class GapScorer(ClusterScorer[Any]):
    r"""Score a clusterer by how much tighter its clusters are than those of uniform tables.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. The score is the
    gap statistic [1]_

    .. math:: \mathrm{Gap}(k) = \frac{1}{B} \sum_b \log W^*_{kb} - \log W_k , \quad
       W_k = \sum_r \frac{1}{2 n_r} \sum_{i, i' \in C_r} \lVert x_i - x_{i'} \rVert^2 ,

    where :math:`W^*_{kb}` is that of the clusters of a table drawn without clusters, to which a
    copy of the estimator is fitted. It can speak for one cluster.

    Parameters
    ----------
    n_references : int, default=10
        B, the number of tables that are drawn, 2 at least.
    reference : {"box", "pca"}, default="box"
        "box": every column is uniform in the range of that of the data. "pca": every principal
        axis is, so that the tables have the shape of the data.
    details : bool, default=False
        Whether to return a dict of "gap", the score, and "gap_se", the standard deviation of
        :math:`\log W^*_{kb}` times :math:`\sqrt{1 + 1/B}`, for searches with ``refit=first_gap``.
    fit_params : dict, default=None
        What `fit` takes besides `X` and `y`: one entry for each sample.
    error_score : "raise" or float, default=np.nan
        The score, and every detail, where a copy cannot be fitted; a warning says why. "raise":
        the error is raised.
    n_jobs : int, default=None
        Number of copies that are fitted at a time.
    random_state : int, default=0
        Determines the tables; an int, so that all candidates are compared with the same.

    See Also
    --------
    first_gap : Chooses the number of clusters by the rule of the paper.
    NullScorer : Compares any score with that of tables without clusters.

    Notes
    -----
    The estimator has to be fitted, as that of a search is. `X` has to be dense. Distances are those
    of `X` as it was handed over. Where a pipeline scales features, scale them before the search.

    The largest gap is often that of too many clusters. The paper takes the smallest k with
    :math:`\mathrm{Gap}(k) \geq \mathrm{Gap}(k+1) - s_{k+1}`, as `first_gap` does.

    Estimators of nonnegative tables can be fitted to those of "box" alone. Samples in no cluster
    add nothing to W.

    References
    ----------
    .. [1] R. Tibshirani, G. Walther, T. Hastie. Estimating the number of clusters in a data set via
       the gap statistic. Journal of the Royal Statistical Society B 63, 2001.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster.model_selection import FullSampleSplit, GapScorer, first_gap
    >>> X, _ = make_blobs(200, centers=4, random_state=3)
    >>> search = GridSearchCV(
    ...     KMeans(n_init=3, random_state=0),
    ...     {"n_clusters": [1, 2, 3, 4, 5, 6]},
    ...     scoring=GapScorer(details=True),
    ...     cv=FullSampleSplit(),
    ...     refit=first_gap,
    ... )
    >>> search.fit(X).best_params_
    {'n_clusters': 4}
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_references": [Interval(Integral, 2, None, closed="left")],
        "reference": [StrOptions({"box", "pca"})],
        **OF_COPIES,
    }
    _names = ("gap", "gap_se")
    _drawn = "references"
    _must_predict = False

    def __init__(
        self,
        n_references: int = 10,
        *,
        reference: str = "box",
        details: bool = False,
        fit_params: dict[str, Any] | None = None,
        error_score: str | float = np.nan,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_references = n_references
        self.reference = reference
        self.details = details
        self.fit_params = fit_params
        self.error_score = error_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _read(self, estimator: Any, X: Any, pairwise: bool) -> Any:
        checks.require_clusters(estimator)
        table = checks.read_features(X, pairwise, type(self).__name__, "give it X.toarray()")
        return table.astype(np.float64, copy=False)

    def _scored(self, estimator: Any, samples: Samples, table: Any) -> dict[str, float]:
        seed = int(self.random_state)
        labels = numbered(labels_of_fit(estimator, samples.X), len(table))
        try:
            own = log_dispersion(table, labels)
        except ValueError as error:
            raise CopyFailedError(error, "log W of X") from error
        found = shared_out(
            _log_dispersion_of_reference,
            (estimator, samples, reference_of(table, self.reference)),
            lambda: ((np.random.default_rng((seed, b)),) for b in range(self.n_references)),
            self.n_jobs,
        )
        self._require_success(found, "reference", " (n_references)")
        return dict(zip(self._names, gap_and_error(own, np.array(found)), strict=True))


def _log_dispersion_of_reference(
    estimator: Any, samples: Samples, reference: Reference, rng: np.random.Generator
) -> float | Exception:
    try:
        with one_thread():
            table = reference.drawn(rng)
            training = samples._replace(X=table).training(np.arange(len(table)))
            model = fitted_copy(estimator, training, rng)
            return log_dispersion(table, numbered(labels_of_fit(model, table), len(table)))
    except Exception as error:
        return error


def log_dispersion(table: np.ndarray, labels: np.ndarray) -> float:
    """Return log W: that of the sum of squared distances to the means of the clusters.

    Raises
    ------
    ValueError
        If W is 0, whose logarithm no gap can be taken of, or not finite.
    """
    parts = [table[labels == c] for c in range(labels.max() + 1)]
    total = sum(float(np.sum((part - part.mean(axis=0)) ** 2)) for part in parts)
    if not 0 < total < np.inf:
        raise ValueError(
            f"X has the dispersion W={total:.3g}: it is 0 where no cluster holds two samples that "
            "differ, so fit fewer clusters; or scale X."
        )
    return float(np.log(total))


def gap_and_error(own: float, references: np.ndarray) -> tuple[float, float]:
    """Return Gap(k) and s(k), from log W of the data, and of the references."""
    error = references.std() * np.sqrt(1 + 1 / len(references))
    return float(references.mean() - own), float(error)
