"""A scorer that asks how many pairs a clusterer satisfies that were kept from its fit."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn import get_config

from nmfcluster._arrays.arguments import last_step
from nmfcluster._arrays.jobs import shared_out
from nmfcluster._arrays.tables import in_order_of, row_names
from nmfcluster._arrays.threads import one_thread
from nmfcluster._compat import Interval
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import Fold, folds_of_pairs
from nmfcluster.model_selection.checks import n_entries
from nmfcluster.model_selection.copies import Samples, fitted_copy, labels_of_fit, numbered
from nmfcluster.model_selection.scorer import OF_COPIES, ClusterScorer, MisusedError, Score

__all__ = ["HeldOutPairsScorer"]

_NAME = "constraints"  # the argument of fit


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
    _must_predict = False
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

    def _scored(self, estimator: Any, samples: Samples, table: Any) -> dict[str, float]:
        name, pairs = _constraints_of(estimator, samples)
        if not pairs.n_pairs:
            raise MisusedError(ValueError("constraints must hold at least one pair, got none."))
        try:  # their numbers must be those of the labels
            pairs = in_order_of(row_names(samples.X), pairs, _NAME)
        except ValueError as error:
            raise MisusedError(error) from error
        samples = _without_pairs(samples)
        folds = list(self._folds(pairs))
        found = shared_out(
            _satisfied_by_copy,
            (estimator, samples, name, pairs),
            lambda: (
                (fold.kept, np.random.default_rng((int(self.random_state), b)))
                for b, fold in enumerate(folds)
            ),
            self.n_jobs,
        )
        self._require_success(found, "fold")
        kinds = (pairs.must_link_weights, pairs.cannot_link_weights)
        must, cannot = (
            _asked(np.stack([fold.asked[kind] for fold in folds]), np.stack(own), weights)
            for kind, (own, weights) in enumerate(zip(zip(*found, strict=True), kinds, strict=True))
        )
        return self._details(must, cannot)

    def _folds(self, pairs: PairwiseConstraints) -> Iterator[Fold]:
        rng = np.random.default_rng(int(self.random_state))
        for _ in range(self.n_repeats):
            yield from folds_of_pairs(pairs, int(self.n_splits), rng)

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
    """What copies made of the pairs of one kind that were held out from them."""

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
        raise MisusedError(
            TypeError(
                "HeldOutPairsScorer needs constraints, once: give a PairwiseConstraints as y too, "
                "search.fit(X, pairs, constraints=pairs), or as fit_params={'constraints': pairs}, "
                f"or enable metadata routing; got {named}."
            )
        )
    [(name, pairs)] = given.items()
    if isinstance(samples.y, PairwiseConstraints) and samples.y != pairs:
        raise MisusedError(
            ValueError(
                f"y and {name} must be the same constraints where both are given, got "
                f"{samples.y} and {pairs}: give one of them alone."
            )
        )
    prefix, step = last_step(estimator)
    if name == _NAME and not get_config()["enable_metadata_routing"]:
        name = prefix + _NAME  # as a pipeline takes it
    if name in (_NAME, prefix + _NAME) and not _takes(step):
        raise MisusedError(
            TypeError(
                f"estimator must have a method fit that takes constraints; that of "
                f"{type(step).__name__} does not."
            )
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
