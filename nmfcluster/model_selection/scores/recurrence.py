"""How surely the clusters of a fit come back in its runs."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from nmfcluster._arrays.arguments import last_step, shown
from nmfcluster._compat import StrOptions
from nmfcluster.meta import NMFMetaCluster
from nmfcluster.model_selection.copies import Samples
from nmfcluster.model_selection.scorer import DETAILS, ClusterScorer

__all__ = ["RecurrenceScorer"]


class RecurrenceScorer(ClusterScorer[Any]):
    r"""Score an `NMFMetaCluster` by how surely its clusters come back in its runs.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. The recurrence of a
    cluster is the mean over the runs of its similarity with its counterpart in the run,

    .. math:: \rho_k = \frac{1}{R} \sum_r \cos(c_k, c^r_{\pi_r(k)}) ,

    0 for a run without one: `recurrence_` of the fit. The score is that of the cluster that comes
    back least surely, or the mean. Nothing is fitted.

    Parameters
    ----------
    statistic : {"min", "mean"}, default="min"
        The score: the recurrence of the least certain cluster, or the mean of all.
    details : bool, default=False
        Whether to return a dict of "smallest_recurrence", "recurrence", the mean, and
        "neg_reconstruction_err", so that of this, too, the largest is best.

    See Also
    --------
    sweep_n_clusters : Chooses the number of clusters by recurrence, or by held-out counts.
    nmfcluster.NMFMetaCluster : Its `resample` says what the runs see.

    Notes
    -----
    The estimator is a fitted `NMFMetaCluster`, or a pipeline that ends in one. One cluster comes
    back in any table, so the score cannot speak for it; few clusters recur more surely than many.
    Give a search the largest number first, or take the largest that recurs about as surely as any,
    as `sweep_n_clusters` does.

    Examples
    --------
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster import NMFMetaCluster
    >>> from nmfcluster.datasets import make_signatures
    >>> from nmfcluster.model_selection import FullSampleSplit, RecurrenceScorer
    >>> X, _, _ = make_signatures(n_signatures=4, random_state=0)
    >>> search = GridSearchCV(
    ...     NMFMetaCluster(4, loss="kullback-leibler", n_estimators=5, random_state=0),
    ...     {"n_clusters": [6, 5, 4]},
    ...     scoring=RecurrenceScorer(),
    ...     cv=FullSampleSplit(),
    ... )
    >>> search.fit(X).best_params_
    {'n_clusters': 4}
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "statistic": [StrOptions({"min", "mean"})],
        **DETAILS,
    }
    _names = ("smallest_recurrence", "recurrence", "neg_reconstruction_err")
    _must_predict = False

    def __init__(self, statistic: str = "min", *, details: bool = False) -> None:
        self.statistic = statistic
        self.details = details

    def _score_name(self) -> str:
        return self._names[0] if self.statistic == "min" else self._names[1]

    def _read(self, estimator: Any, X: Any, pairwise: bool) -> Any:
        model = last_step(estimator)[1]
        if not isinstance(model, NMFMetaCluster):
            raise TypeError(
                "estimator must be an NMFMetaCluster, or a pipeline that ends in one, got "
                f"{shown(estimator)}."
            )
        check_is_fitted(model)
        return model

    def _arguments(self, estimator: Any, handed: dict[str, Any], n_samples: int) -> dict[str, Any]:
        return {}  # no copy is fitted

    def _scored(self, estimator: Any, samples: Samples, table: Any) -> dict[str, float]:
        recurrence = np.asarray(table.recurrence_)
        found = (recurrence.min(), recurrence.mean(), -table.reconstruction_err_)
        return dict(zip(self._names, map(float, found), strict=True))
