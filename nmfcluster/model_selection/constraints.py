"""A scorer that asks how many constraints a clusterer satisfies that it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRequest

from nmfcluster._arrays.arguments import shown
from nmfcluster._compat import Documented
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.model_selection.checks import raised
from nmfcluster.model_selection.routing import score_request

__all__ = ["ConstraintScorer"]


class ConstraintScorer(Documented, BaseEstimator):
    """Score a clusterer by the constraints among samples that it was not fitted on.

    For ``scoring=`` of scikit-learn's searches: `predict` is called on the test part of a split,
    and the share of the constraints with both samples in that part which the predicted labels
    satisfy is returned. So `alpha`, `beta` and `n_clusters` can be chosen without labels.

    The scorer needs the constraints that go with the test part. With metadata routing enabled
    they come as ``constraints=``; without, give them a second time as `y`:
    ``search.fit(X, pairs, constraints=pairs)``. Estimators of this package ignore `y`.

    Parameters
    ----------
    balanced : bool, default=False
        Whether must-links and cannot-links count equally: the mean of the two shares instead
        of the share of all. With many clusters most cannot-links are satisfied by chance.

    See Also
    --------
    HeldOutPairsScorer : Holds out pairs instead of samples: for few pairs.
    nmfcluster.constraints.PairwiseConstraints : The constraints, split with the samples.

    Notes
    -----
    K-fold splits keep only 1/k^2 of the pairs inside a test part. ``ShuffleSplit(test_size=0.5)``
    keeps a quarter; `GroupKFold` with ``groups=pairs.components()`` keeps every must-link whole.

    An `n_clusters` that the constraints do not allow makes a fit fail, and its score NaN; with
    ``contradictions="ignore"`` in the estimator it is scored like others.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV, ShuffleSplit
    >>> from nmfcluster import PairwiseConstraints, SSNMFClusterer
    >>> from nmfcluster.model_selection import ConstraintScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = PairwiseConstraints.from_labels(y, n_pairs=300, random_state=0)
    >>> search = GridSearchCV(
    ...     SSNMFClusterer(n_clusters=3, random_state=0),
    ...     {"n_clusters": [3, 4, 5]},
    ...     scoring=ConstraintScorer(balanced=True),
    ...     cv=ShuffleSplit(5, test_size=0.5, random_state=0),
    ... )
    >>> search.fit(X, pairs, constraints=pairs).best_params_
    {'n_clusters': 3}
    """

    def __init__(self, *, balanced: bool = False) -> None:
        self.balanced = balanced

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        constraints: PairwiseConstraints | None = None,
    ) -> float:
        """Return the share of satisfied constraints.

        Parameters
        ----------
        estimator : fitted estimator with `predict`
        X : array-like of shape (n_samples, n_features)
            Samples to predict.
        y : PairwiseConstraints or None, default=None
            The constraints among these samples, where `constraints` is not given.
        constraints : PairwiseConstraints, default=None
            The constraints among these samples.

        Returns
        -------
        float
            In [0, 1].

        Raises
        ------
        TypeError
            If no constraints are given.
        ValueError
            If there is no constraint among the samples.
        """
        if not isinstance(self.balanced, bool | np.bool_):
            raise TypeError(f"balanced must be a bool, got {shown(self.balanced)}.")
        pairs = y if constraints is None else constraints
        if not isinstance(pairs, PairwiseConstraints):
            error = TypeError(
                "ConstraintScorer needs constraints: give a PairwiseConstraints as y too, "
                "search.fit(X, pairs, constraints=pairs), or enable metadata routing; got "
                f"{type(pairs).__name__}."
            )
            return raised(error)
        must, cannot = pairs.satisfied(estimator.predict(X))
        parts = [part for part in (must, cannot) if len(part)]
        if not parts:
            raise ValueError(
                f"no constraint has both of its samples among these {len(pairs)}: take fewer, "
                "larger test parts, for example cv=ShuffleSplit(test_size=0.5)."
            )
        if self.balanced:
            return float(np.mean([part.mean() for part in parts]))
        return float(np.concatenate(parts).mean())

    def get_metadata_routing(self) -> MetadataRequest:
        """Return what the scorer asks of scikit-learn's metadata routing: the constraints.

        Returns
        -------
        MetadataRequest
        """
        return score_request(type(self).__name__, {"constraints": True})
