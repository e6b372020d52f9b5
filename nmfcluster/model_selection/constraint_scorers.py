"""Scorers by the constraints that a clusterer satisfies without having been fitted to them."""

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config

from nmfcluster._compat import Interval
from nmfcluster._utils.validation import last_step, reorder_samples, row_names
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import split_pairs
from nmfcluster.model_selection.refits import (
    Samples,
    accepts_fit_param,
    refit,
    training_labels,
)
from nmfcluster.model_selection.search import (
    REFIT_PARAMETERS,
    RefitScorer,
    RoutedScorer,
)

_NAME = "constraints"  # the argument of `fit`
_HOW_TO_PASS = (
    "needs constraints: give a PairwiseConstraints as y too, search.fit(X, pairs, "
    "constraints=pairs), or enable metadata routing"
)


class ConstraintScorer(RoutedScorer):
    """Score a clusterer by the constraints among samples that it was not fitted to.

    For ``scoring=`` of scikit-learn's searches. `predict` is called on the test part of a split.
    The score is the share of satisfied constraints among those with both samples in that part. It
    is the mean of the shares of must-links and of cannot-links, as with many clusters most
    cannot-links are satisfied by chance. It selects `alpha`, `beta` and `n_clusters` without true
    labels.

    The scorer needs the constraints of the test part. With metadata routing enabled they are passed
    as ``constraints=``. Without, pass them a second time as `y`:
    ``search.fit(X, pairs, constraints=pairs)``. Estimators of this package ignore `y`.

    See Also
    --------
    HeldOutPairsScorer : Holds out pairs instead of samples: for few pairs.
    nmfcluster.constraints.PairwiseConstraints : The constraints, split with the samples.

    Notes
    -----
    K-fold splits keep only 1/k^2 of the pairs inside a test part. ``ShuffleSplit(test_size=0.5)``
    keeps a quarter; `GroupKFold` with ``groups=pairs.components()`` keeps every must-link whole.

    If the constraints do not allow an `n_clusters`, the fit fails and the score is NaN. With
    ``contradictions="ignore"`` in the estimator it is scored like others. A search also turns any
    other error into NaN. Use ``error_score="raise"`` if no candidate should fail.

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
    ...     scoring=ConstraintScorer(),
    ...     cv=ShuffleSplit(5, test_size=0.5, random_state=0),
    ... )
    >>> search.fit(X, pairs, constraints=pairs).best_params_
    {'n_clusters': 3}
    """

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        constraints: PairwiseConstraints | None = None,
    ) -> float:
        """Return the share of satisfied constraints, as the mean over both kinds.

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
        pairs = y if constraints is None else constraints
        if not isinstance(pairs, PairwiseConstraints):
            raise TypeError(
                f"ConstraintScorer {_HOW_TO_PASS}; got {type(pairs).__name__}."
            )
        satisfied = pairs.satisfied(estimator.predict(X))
        shares = [kind.mean() for kind in satisfied if len(kind)]
        if not shares:
            raise ValueError(
                f"no constraint has both of its samples among these {len(pairs)}: take "
                "fewer, larger test parts, for example cv=ShuffleSplit(test_size=0.5)."
            )
        return float(np.mean(shares))


class HeldOutPairsScorer(RefitScorer):
    r"""Score a clusterer by the constraints that are held out from its fit.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. The pairs are split
    into folds. For each fold a clone of the estimator is fitted to all samples under the pairs of
    the other folds, and its clusters are tested on the pairs of this fold. The score is

    .. math:: \tfrac12 \left( \frac{\sum_{p \in M} w_p s_p}{\sum_{p \in M} w_p}
        + \frac{\sum_{p \in C} w_p s_p}{\sum_{p \in C} w_p} \right) ,

    with the must-links M, the cannot-links C, their weights w, and s the share of the folds that
    hold a pair out in which it is satisfied. Both kinds have equal weight, as with many clusters
    most cannot-links are satisfied by chance. It selects `alpha`, `beta`, `n_neighbors` or an
    affinity without true labels, by fits to all samples.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, 2 at least: a fit keeps a share of 1 - 1 / `n_splits` of the pairs, and
        fewer of those of a group that must-links join, as the notes say. With more folds the score
        depends less on chance.
    details : bool, default=False
        Whether to return a dict of the score and its details, for searches with
        ``refit="satisfaction"``.
    fit_params : dict, default=None
        Arguments of `fit` besides `X` and `y`, with one entry for each sample. Not for arguments
        that metadata routing passes.
    n_jobs : int, default=None
        Number of parallel fits. Use this or `n_jobs` of the search, not both.
    random_state : int, default=0
        Determines the folds. It has to be an integer, so that all candidates of a search are scored
        on the same folds.

    See Also
    --------
    FullSampleSplit : The split for it.
    ConstraintScorer : Holds out samples, and so scores predictions for new ones.
    nmfcluster.constraints.PairwiseConstraints : The constraints.

    Notes
    -----
    The scorer needs the constraints. With metadata routing enabled they are passed as
    ``constraints=``. Without, pass them a second time as `y`,
    ``search.fit(X, pairs, constraints=pairs)``, or as ``fit_params={"constraints": pairs}``. Such a
    `y` is not passed to `fit`, and is not used if constraints are also passed by name.

    A pair that the kept pairs imply would always be satisfied if must-links are hard, and would not
    be informative. Pairs are therefore held out together with all pairs that imply them. For a
    group that must-links connect, a fold cuts some links of a random spanning tree, keeps no
    must-link between two pieces, and tests whether the pieces are in one cluster again.

    Constraints whose samples have names are put into the order of `X`, as by `fit`.

    With `details` the score is a dict of "satisfaction", the score, and "satisfaction_se", its
    standard error as if pairs were drawn one by one; of the shares "must_link" and "cannot_link" of
    satisfied pairs, NaN if there are none; and of "n_pairs", the number of pairs that were held
    out. If there are pairs of one kind only, the score is their share.

    A candidate costs `n_splits` fits, and that of the search itself. If `random_state` of the
    estimator is None, every clone gets a seed of its own. A fit uses one thread, so that the score
    does not depend on `n_jobs`. If a clone cannot be fitted, the score and every detail are NaN,
    and a warning says why.

    Among equal scores a search selects the first: put your default first in the grid.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster import PairwiseConstraints, SSNMFClusterer
    >>> from nmfcluster.model_selection import FullSampleSplit, HeldOutPairsScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = PairwiseConstraints.from_labels(y, n_pairs=100, random_state=0)
    >>> search = GridSearchCV(
    ...     SSNMFClusterer(n_clusters=3, random_state=0),
    ...     {"affinity": ["nearest_neighbors", "rbf"]},
    ...     scoring=HeldOutPairsScorer(),
    ...     cv=FullSampleSplit(),
    ... )
    >>> search.fit(X, pairs, constraints=pairs).best_params_
    {'affinity': 'nearest_neighbors'}
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_splits": [Interval(Integral, 2, None, closed="left")],
        **REFIT_PARAMETERS,
    }
    _details = (
        "satisfaction",
        "satisfaction_se",
        "must_link",
        "cannot_link",
        "n_pairs",
    )

    def __init__(
        self,
        n_splits: int = 5,
        *,
        details: bool = False,
        fit_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_splits = n_splits
        self.details = details
        self.fit_params = fit_params
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _score(self, estimator, samples: Samples) -> list[float]:
        name, pairs, samples = _without_constraints(estimator, samples)
        if not pairs.n_pairs:
            raise ValueError("constraints must hold at least one pair, got none.")
        pairs = reorder_samples(row_names(samples.X), pairs, _NAME)
        rng = np.random.default_rng(int(self.random_state))
        folds = list(split_pairs(pairs, int(self.n_splits), rng))
        satisfied = self._run_refits(
            _satisfied_by_refit,
            common=(estimator, samples, name, pairs),
            calls=[(kept,) for kept, _ in folds],
            noun="fold",
        )

        # the shares of must-links and of cannot-links have equal weight
        weights = (pairs.must_link_weights, pairs.cannot_link_weights)
        figures = [
            _satisfied_share(
                held_out=np.stack([held_out[kind] for _, held_out in folds]),
                satisfied=np.stack([by_fold[kind] for by_fold in satisfied]),
                weights=weights[kind],
            )
            for kind in range(2)
        ]
        shares, variances, n_pairs = np.array(figures).T
        is_known = n_pairs > 0
        return [
            float(shares[is_known].mean()),
            float(np.sqrt(variances.sum())) / is_known.sum(),
            *shares.tolist(),
            float(n_pairs.sum()),
        ]


def _satisfied_share(held_out, satisfied, weights) -> tuple[float, float, int]:
    """Return the share of held-out pairs of one kind that are satisfied.

    Parameters
    ----------
    held_out, satisfied : ndarray of shape (n_folds, n_pairs), bool
    weights : ndarray of shape (n_pairs,)

    Returns
    -------
    share : float
        Share of the weight; NaN without pairs.
    variance : float
        Of the share, as if pairs were drawn one by one.
    n_pairs : int
    """
    times = held_out.sum(axis=0)
    is_known = times > 0  # other pairs may imply a pair in every fold
    if not is_known.any():
        return np.nan, 0.0, 0
    rate = (held_out & satisfied).sum(axis=0)[is_known] / times[is_known]
    weights = weights[is_known]
    share = float(np.average(rate, weights=weights))
    variance = float(weights**2 @ (rate - share) ** 2 / weights.sum() ** 2)
    return share, variance, len(rate)


def _satisfied_by_refit(
    estimator,
    samples: Samples,
    name: str,
    pairs: PairwiseConstraints,
    kept: PairwiseConstraints,
    rng: np.random.Generator,
):
    """Return which of all pairs a clone satisfies that is fitted under the kept pairs."""
    fit_params = {**samples.fit_params, name: kept}
    model = refit(estimator, samples.X, samples.y, fit_params, rng)
    return pairs.satisfied(training_labels(model, samples.X))


def _without_constraints(
    estimator, samples: Samples
) -> tuple[str, PairwiseConstraints, Samples]:
    """Return the name that `fit` takes constraints by, these, and samples without them."""
    y = samples.y
    fit_params = dict(samples.fit_params)
    constraints = {
        name: value
        for name, value in fit_params.items()
        if isinstance(value, PairwiseConstraints)
    }
    for name in constraints:
        del fit_params[name]
    if isinstance(y, PairwiseConstraints):
        constraints = constraints or {_NAME: y}
        y = None
    if len(constraints) != 1:
        names = " and ".join(sorted(constraints))
        got = f"those of {names}" if constraints else "none"
        raise TypeError(f"HeldOutPairsScorer {_HOW_TO_PASS}, once; got {got}.")
    [(name, pairs)] = constraints.items()
    if isinstance(samples.y, PairwiseConstraints) and samples.y != pairs:
        raise ValueError(
            f"y and {name} must be the same constraints where both are given, got "
            f"{samples.y} and {pairs}: give one of them alone."
        )
    prefix, step = last_step(estimator)
    if name == _NAME and not get_config()["enable_metadata_routing"]:
        name = prefix + _NAME  # as a pipeline takes it
    if name in (_NAME, prefix + _NAME) and not accepts_fit_param(step, _NAME):
        raise TypeError(
            "estimator must have a method fit that takes constraints; that of "
            f"{type(step).__name__} does not."
        )
    return name, pairs, samples._replace(y=y, fit_params=fit_params)
