"""Scorers that ask how many constraints a clusterer satisfies that it has not seen."""

from __future__ import annotations

import inspect
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.metadata_routing import MetadataRequest

from nmfcluster._arrays.arguments import last_step, shown
from nmfcluster._arrays.jobs import one_thread
from nmfcluster._arrays.tables import in_order_of, row_names
from nmfcluster._compat import Documented, Interval
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import folds_of_pairs
from nmfcluster.model_selection.checks import n_entries
from nmfcluster.model_selection.copies import Samples, fitted_copy, labels_of_fit, numbered
from nmfcluster.model_selection.scorer import OF_COPIES, ClusterScorer, Score, score_request

__all__ = ["ConstraintScorer", "HeldOutPairsScorer"]

_NAME = "constraints"  # the argument of fit


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
    ``contradictions="ignore"`` in the estimator it is scored like others. A search makes NaN of
    any other error, too: give it ``error_score="raise"`` where no candidate should fail.

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
            raise TypeError(
                "ConstraintScorer needs constraints: give a PairwiseConstraints as y too, "
                "search.fit(X, pairs, constraints=pairs), or enable metadata routing; got "
                f"{type(pairs).__name__}."
            )
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
        return score_request(self, {"constraints": True})


class HeldOutPairsScorer(ClusterScorer[Score]):
    r"""Score a clusterer by the constraints that it was not told.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. The pairs are dealt
    out to folds. For each fold a copy of the estimator is fitted to all samples under the pairs of
    the other folds, and asked whether its clusters satisfy those of this one. The score is

    .. math:: \tfrac12 \left( \frac{\sum_{p \in M} w_p s_p}{\sum_{p \in M} w_p}
        + \frac{\sum_{p \in C} w_p s_p}{\sum_{p \in C} w_p} \right) ,

    with the must-links M, the cannot-links C, their weights w, and s the share of the times it was
    asked that a pair was satisfied. So `alpha`, `beta`, `n_neighbors` or an affinity is chosen
    without labels, by fits to all samples.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds, 2 at least: a fit keeps a share of 1 - 1 / `n_splits` of the pairs, and
        fewer of those of a group that must-links join, as the notes say.
    n_repeats : int, default=1
        How often pairs are dealt out anew. More repeats make the score depend less on chance, and
        cost as many times the fits.
    balanced : bool, default=True
        Whether must-links and cannot-links count equally. False: all pairs count by their weight
        alone. With many clusters most cannot-links are satisfied by chance.
    details : bool, default=False
        Whether to return the score in a dict, with what it is made of, for searches with
        ``refit="satisfaction"``.
    fit_params : dict, default=None
        What `fit` takes besides `X` and `y`: one entry for each sample. Not for what metadata
        routing hands over.
    error_score : "raise" or float, default=np.nan
        The score, and every detail, where a copy cannot be fitted; a warning says why. "raise": the
        error is raised.
    n_jobs : int, default=None
        Number of copies that are fitted at a time. Use this or `n_jobs` of the search.
    random_state : int, default=0
        Determines the folds. It has to be an integer, so that all candidates of a search are asked
        the same.

    See Also
    --------
    FullSampleSplit : The split for it.
    ConstraintScorer : Holds out samples, and so asks of predictions for new ones.
    nmfcluster.constraints.PairwiseConstraints : The constraints.

    Notes
    -----
    The scorer needs the constraints. With metadata routing enabled they come as ``constraints=``;
    without, give them a second time as `y`: ``search.fit(X, pairs, constraints=pairs)``, or as
    ``fit_params={"constraints": pairs}``. Such a `y` is not handed to copies.

    A pair that follows from those that are kept would always be satisfied where must-links are
    hard, and tell nothing. Pairs are therefore held out together with all that imply them: of a
    group that must-links join, a fold cuts some links of a random spanning tree, and asks whether
    the pieces come together again: no must-link between two pieces is kept.

    Constraints whose samples have names are put into the order of `X`, as by `fit`.

    With `details` the score is a dict of "satisfaction", the score, and "satisfaction_se", its
    standard error as if pairs were drawn one by one; of the shares "must_link" and "cannot_link" of
    satisfied pairs, NaN where there are none; and of "n_pairs", the number of pairs that were
    asked. Where there are pairs of one kind only, the score is their share.

    A candidate costs ``n_splits * n_repeats`` fits, and that of the search itself. Where
    `random_state` of the estimator is None, every copy is given a seed of its own. A fit uses one
    thread, so that the score does not depend on `n_jobs`.

    Among equal scores a search takes the first: put what you would take without a search first in
    the grid.

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
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "balanced": ["boolean"],
        **OF_COPIES,
    }
    _names = ("satisfaction", "satisfaction_se", "must_link", "cannot_link", "n_pairs")
    _drawn = "folds"
    _asks_pairs = True

    def __init__(
        self,
        n_splits: int = 5,
        *,
        n_repeats: int = 1,
        balanced: bool = True,
        details: bool = False,
        fit_params: dict[str, Any] | None = None,
        error_score: str | float = np.nan,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_splits = n_splits
        self.n_repeats = n_repeats
        self.balanced = balanced
        self.details = details
        self.fit_params = fit_params
        self.error_score = error_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _scored(self, estimator: Any, samples: Samples) -> dict[str, float]:
        name, pairs = _constraints_of(estimator, samples)
        if not pairs.n_pairs:
            raise ValueError("constraints must hold at least one pair, got none.")
        pairs = in_order_of(row_names(samples.X), pairs, _NAME)  # whose numbers are those of labels
        samples = _without_pairs(samples)
        rng, n_splits = self._generator(), int(self.n_splits)
        repeats = (folds_of_pairs(pairs, n_splits, rng) for _ in range(self.n_repeats))
        folds = [fold for repeat in repeats for fold in repeat]
        calls = [(fold.kept,) for fold in folds]
        found = self._of_copies(
            _satisfied_by_copy, (estimator, samples, name, pairs), calls, "fold"
        )
        asked_must, asked_cannot = map(np.stack, zip(*(fold.asked for fold in folds), strict=True))
        must, cannot = map(np.stack, zip(*found, strict=True))
        return self._details(
            _asked(asked_must, must, pairs.must_link_weights),
            _asked(asked_cannot, cannot, pairs.cannot_link_weights),
        )

    def _details(self, must: Asked, cannot: Asked) -> dict[str, float]:
        """Return the score and what it is made of."""
        asked = [kind for kind in (must, cannot) if kind.n_pairs]
        counts = np.array([1.0 if self.balanced else kind.weight for kind in asked])
        counts /= counts.sum()
        score = float(counts @ [kind.share for kind in asked])
        error = float(np.sqrt(counts**2 @ [kind.variance for kind in asked]))
        values = (score, error, must.share, cannot.share, float(must.n_pairs + cannot.n_pairs))
        return dict(zip(self._names, values, strict=True))


class Asked(NamedTuple):
    """How far copies satisfy the pairs of one kind that they were not told."""

    share: float  # of the weight that is satisfied; NaN without pairs
    variance: float  # of the share, as if pairs were drawn one by one
    weight: float
    n_pairs: int


def _asked(held_out: np.ndarray, satisfied: np.ndarray, weights: np.ndarray) -> Asked:
    """Return how many pairs of one kind are satisfied where they are held out.

    Parameters
    ----------
    held_out, satisfied : ndarray of shape (n_folds, n_pairs), bool
    weights : ndarray of shape (n_pairs,)
    """
    times = held_out.sum(axis=0)
    known = times > 0  # a pair that others imply in every fold is not
    if not known.any():
        return Asked(np.nan, 0.0, 0.0, 0)
    rate = (held_out & satisfied).sum(axis=0)[known] / times[known]
    weights = weights[known]
    share = float(np.average(rate, weights=weights))
    variance = float(weights**2 @ (rate - share) ** 2 / weights.sum() ** 2)
    return Asked(share, variance, float(weights.sum()), len(rate))


def _satisfied_by_copy(
    estimator: Any,
    samples: Samples,
    name: str,
    pairs: PairwiseConstraints,
    kept: PairwiseConstraints,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray] | Exception:
    """Return which of all pairs a copy satisfies that is fitted under those that are kept."""
    arguments = {**samples.arguments, name: kept}
    target = () if samples.y is None else (samples.y,)
    try:
        with one_thread():
            model = fitted_copy(estimator, ((samples.X, *target), arguments), rng)
            labels = numbered(labels_of_fit(model, samples.X), n_entries(samples.X))
    except Exception as error:
        return error
    return pairs.satisfied(labels)


def _constraints_of(estimator: Any, samples: Samples) -> tuple[str, PairwiseConstraints]:
    """Return the constraints, and by which name `fit` of the estimator takes them."""
    given = {
        name: value
        for name, value in samples.arguments.items()
        if isinstance(value, PairwiseConstraints)
    }
    if not given and isinstance(samples.y, PairwiseConstraints):
        given = {_NAME: samples.y}
    if len(given) != 1:
        named = f"those of {' and '.join(sorted(given))}" if given else "none"
        raise TypeError(
            "HeldOutPairsScorer needs constraints, once: give a PairwiseConstraints as y too, "
            "search.fit(X, pairs, constraints=pairs), or as fit_params={'constraints': pairs}, "
            f"or enable metadata routing; got {named}."
        )
    [(name, pairs)] = given.items()
    if isinstance(samples.y, PairwiseConstraints) and samples.y != pairs:
        raise ValueError(
            f"y and {name} must be the same constraints where both are given, got "
            f"{samples.y} and {pairs}: give one of them alone."
        )
    prefix, step = last_step(estimator)
    if name == _NAME and not get_config()["enable_metadata_routing"]:
        name = prefix + _NAME  # as a pipeline takes it
    if name in (_NAME, prefix + _NAME) and not _takes(step):
        raise TypeError(
            f"estimator must have a method fit that takes constraints; that of "
            f"{type(step).__name__} does not."
        )
    return name, pairs


def _without_pairs(samples: Samples) -> Samples:
    """Return what goes into `fit` without the constraints, which hold what is held out."""
    others = {
        name: value
        for name, value in samples.arguments.items()
        if not isinstance(value, PairwiseConstraints)
    }
    y = None if isinstance(samples.y, PairwiseConstraints) else samples.y
    return samples._replace(y=y, arguments=others)


def _takes(step: Any) -> bool:
    """Return whether `fit` takes constraints, or anything."""
    if not hasattr(step, "fit"):  # a pipeline may end in "passthrough"
        return False
    taken = inspect.signature(step.fit).parameters
    return _NAME in taken or any(each.kind is each.VAR_KEYWORD for each in taken.values())
