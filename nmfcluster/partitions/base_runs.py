"""What base clusterers are handed: floats, pairs of samples, or what only they can read.

A clusterer that was given is asked itself what it makes of NaN, of text, and of columns by name.

Base partitions: many clusterings of one data set, made to differ.
"""

from dataclasses import dataclass
from inspect import signature
from itertools import cycle
from numbers import Integral
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import FitFailedWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.random import sample_without_replacement

from nmfcluster import _compat
from nmfcluster._compat import take_samples
from nmfcluster._utils import storage, validation
from nmfcluster._utils.labels import narrow
from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.parallel import Each, attempted, shared_out
from nmfcluster._utils.validation import (
    Seed,
    generator_of,
    last_step,
    pairwise_input,
    warn,
)
from nmfcluster.partitions.spectral import GraphSpectral, LandmarkSpectral

Chosen = np.ndarray | None  # positions that were drawn; None: all

_ENTRIES = 2**20  # of pairs that are searched at a time: 8 MiB


def is_known(base: Any) -> bool:
    """Return whether a clusterer takes finite floats alone, and leaves them as they are."""
    plain = type(base) in (KMeans, MiniBatchKMeans, GraphSpectral, LandmarkSpectral)
    return plain and getattr(base, "copy_x", True)


def pairs_of(bases: list[Any], X: Any) -> str | None:
    """Return whether X holds "distances" or "similarities" of all pairs for clusterers, or neither.

    Raises
    ------
    ValueError
        If it is not the same for all of them, or X is not square.
    """
    kinds = {pairwise_input(base, X): base for base in bases}
    if len(kinds) > 1:
        got = " and ".join(sorted(kind or "features" for kind in kinds))
        raise ValueError(
            f"estimator must hold clusterers of one kind of X, got some of {got}."
        )
    [(kind, base)] = kinds.items()
    shape = np.shape(X)
    if kind is not None and (len(shape) != 2 or shape[0] != shape[1]):
        wanted = f"be square, of the {kind} of all samples, for estimator {base!r}"
        raise ValueError(f"X must {wanted}, got shape {shape}.")
    return kind


def checks_for(
    bases: list[Any], X: Any
) -> tuple[dict[str, Any] | None, Any, str | None]:
    """Return how X is checked, see `checks_of`, X, and of what pairs it is, see `pairs_of`.

    A data frame of pairs gets its columns in the order of its rows.
    """
    known = all(map(is_known, bases))
    pairs = None if known else pairs_of(bases, X)
    X = validation.in_own_order(X, "X") if pairs else X
    handed_on = not known and pairs is None and _is_handed_on(X)
    return checks_of(bases, pairs, handed_on), X, pairs


def checks_of(
    bases: list[Any], pairs: str | None, handed_on: bool
) -> dict[str, Any] | None:
    """Return options of scikit-learn's checks of X as floats; None: it is handed on as it is."""
    strict = pairs is not None or all(map(is_known, bases))
    return None if handed_on else {"ensure_all_finite": True if strict else "allow-nan"}


def _is_handed_on(X: Any) -> bool:
    """Return whether X is what only a clusterer can read: a data frame, or text."""
    if hasattr(X, "columns") or hasattr(X, "__dask_graph__"):
        return not hasattr(X, "__dask_graph__")
    try:
        array = np.asarray(X)
    except ValueError:  # rows of several lengths, which is said elsewhere
        return False
    text = array.dtype == object and any(
        isinstance(entry, str | dict) for entry in array.flat
    )
    return text or array.dtype.kind in "UST"


def as_it_is(X: Any, wanted: str = "one table", name: str = "X", **options: Any) -> Any:
    """Return a data frame, or an array of anything; `options` are further ones of `check_array`."""
    validation.check_opened(X, name, wanted)
    if hasattr(X, "columns"):
        validation.check_columns_differ(X, name)
        return X
    return check_array(
        X, dtype=None, ensure_all_finite=False, input_name=name, **options
    )


def float_type(X: Any) -> np.dtype | None:
    """Return the type of a table of floats; None for anything that is handed on as it is."""
    dtype = getattr(X, "dtype", None)
    return dtype if dtype in storage.FLOATS else None


def numbers_of(X: Any) -> Any:
    """Return a table of numbers that differ where samples do: by them these are put in order."""
    if float_type(X) is not None:
        return X
    array = np.asarray(X)
    if array.dtype.kind in "biuf":
        return array.astype(float)
    rows = [str(np.ravel(row).tolist()) for row in array.astype(object)]
    return np.unique(rows, return_inverse=True)[1].reshape(-1, 1).astype(float)


def seeded(estimator: Any, n_clusters: int, seed: int) -> dict[str, int]:
    """Return the parameters of a clusterer, or a pipeline, that differ between runs."""
    values = {"n_clusters": n_clusters, "random_state": seed}
    names = list(estimator.get_params(deep=True))
    own = {
        name: values[last]
        for name in names
        if (last := name.rpartition("__")[2]) in values
    }
    if not any(name.endswith("n_clusters") for name in own):
        prefix, clusterer = last_step(
            estimator
        )  # a step before may have components of its own
        if "n_components" in clusterer.get_params(deep=False):
            own[f"{prefix}n_components"] = n_clusters
    return own


def part_of(
    X: Any, samples: Chosen, features: Chosen, pairs: str | None, for_whom: Any
) -> Any:
    """Return some samples and features of X, of pairs these of the samples; None: all.

    A clusterer that may write to it gets a copy.
    """
    if samples is None and features is None and not is_known(for_whom):
        samples = np.arange(X.shape[0])
    X = X if samples is None else take_samples(X, samples)
    features = samples if pairs else features
    return X if features is None else take_samples(X, features, axis=1)


def labels_of(
    estimator: Any,
    X: Any,
    X_train: Any,
    pairs: str | None,
    features: Chosen,
    labels: np.ndarray,
) -> np.ndarray:
    """Return the labels of new samples: as predicted, or of the nearest that the run saw."""
    if pairs is not None:
        return labels_of_pairs(X, pairs, labels)
    part = part_of(X, None, features, None, estimator)
    if hasattr(estimator, "predict"):
        return np.asarray(estimator.predict(part))
    seen = np.flatnonzero(labels >= 0)
    train = part_of(X_train, seen, features, None, estimator)
    if isinstance(estimator, Pipeline) and not (is_finite(part) and is_finite(train)):
        train, part = map(estimator[:-1].transform, (train, part))  # into numbers
    train, part = (
        validation.read_table(T, ensure_all_finite="allow-nan") for T in (train, part)
    )
    return labels[seen[nearest_samples(train, part)]]


def labels_of_pairs(X: Any, pairs: str, labels: np.ndarray) -> np.ndarray:
    """Return the labels of new samples by their pairs with all that were partitioned, X.

    Each has that of the nearest, or most similar, sample that the run saw; of several such the
    largest. It is -1 where a sparse X stores no pair of it.
    """
    seen, sign = np.flatnonzero(labels >= 0), -1.0 if pairs == "distances" else 1.0
    found = np.empty(X.shape[0], dtype=np.int64)
    for rows in storage.row_blocks(len(found), max(1, _ENTRIES // max(len(seen), 1))):
        part = storage.rows_of(X, rows)[:, seen]
        near = sign * storage.dense_with(part, -sign * np.inf)
        best = near.max(axis=1, keepdims=True)
        found[rows] = np.where((near == best) & (best > -np.inf), labels[seen], -1).max(
            axis=1
        )
    return found


def nearest_samples(X_train: Any, X: Any) -> np.ndarray:
    """Return the index of the nearest row of `X_train` for every row of `X`."""
    exponent, samples = (
        storage.exponent_beyond(X_train, 2),
        canonical_order(X_train).samples,
    )
    metric = "minkowski" if is_finite(X_train) and is_finite(X) else "nan_euclidean"
    search = NearestNeighbors(n_neighbors=1, metric=metric)
    search.fit(storage.divided(X_train[samples], exponent))
    X = storage.stored_like(
        storage.divided(X, exponent), X_train
    )  # its trees want dense arrays
    return samples[
        search.kneighbors(X, return_distance=False)[:, 0]
    ]  # the same one of ties


def is_finite(X: Any) -> bool:
    """Return whether X is a table of floats without NaN."""
    return float_type(X) is not None and not np.isnan(float(X.max()))


_LANDMARKS = (
    250  # of the clusterers that take turns by default: time of k-means allows no more
)
_MANY = 10_000  # samples, of more of which these are fitted to as many, and label the others

_SHARE = [_compat.COUNT, _compat.Interval(_compat.RealNotInt, 0, 1, closed="right")]
#: what most of the parameters may be
OPTIONS: dict[str, list[Any]] = {
    "estimator": [_compat.HasMethods(["fit_predict"]), list, tuple, None],
    "n_estimators": [_compat.COUNT],
    "max_samples": _SHARE,
    "max_features": _SHARE,
    "predict_unseen": ["boolean"],
}
ALLOWED = {**OPTIONS, "n_jobs": _compat.N_JOBS, "random_state": _compat.RANDOM_STATE}


@dataclass(frozen=True)
class BasePartitions:
    """Base partitions and what made them.

    Attributes
    ----------
    labels : ndarray of shape (n_samples, n_partitions), int
        -1: the sample was not drawn for that partition, and not predicted, or is noise. Runs that
        failed, and those that found only noise, are left out.
    estimators : list of estimator
        The fitted clusterers.
    samples : list of ndarray or None
        Samples that each clusterer was fitted on; None: all.
    features : list of ndarray or None
        Features that each clusterer was fitted on; None: all.
    kept : ndarray of shape (n_estimators,), bool
        Which of the runs that were asked for these are.
    exponent : int
        The clusterers know the features divided by 2 to this power: 0, unless their squares could
        not be held.
    dtype : dtype or None
        float32 or float64, the type of these features; None: they were handed on as they are.
    n_features : int
        How many there are.
    pairs : {"distances", "similarities"} or None
        What X held of all pairs of samples; None: it held features.
    """

    labels: np.ndarray
    estimators: list[Any]
    samples: list[Chosen]
    features: list[Chosen]
    kept: np.ndarray
    exponent: int
    dtype: np.dtype | None
    n_features: int
    pairs: str | None

    @property
    def needs_training_data(self) -> bool:
        """Whether some clusterer cannot predict, so that new samples need their neighbours."""
        predicting = all(hasattr(estimator, "predict") for estimator in self.estimators)
        return not predicting and self.pairs is None

    @property
    def checks(self) -> dict[str, Any] | None:
        """What `checks_of` says of X."""
        return checks_of(self.estimators, self.pairs, handed_on=self.dtype is None)

    def predict(self, X: Any, X_train: Any = None) -> np.ndarray:
        """Label new samples by every partition.

        A clusterer that can predict does; for the others a new sample takes the label of the
        nearest sample that its partition saw.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            Of pairs: those of new samples with all that were partitioned.
        X_train : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            All that were partitioned; needed if `needs_training_data`.

        Returns
        -------
        ndarray of shape (n_new, n_partitions), int

        Raises
        ------
        ValueError
            If one holds infinity, or has other columns, or `X_train` other rows, than in the fit.
        """
        X = self._read(X, "X")
        if self.needs_training_data:
            X_train = self._read(X_train, "X_train", len(self.labels))
            X_train = storage.divided(X_train, self.exponent)
        if self.dtype is not None:
            # k-means wants the type that it was fitted on, and arrays that it could write to
            X = X.astype(self.dtype, copy=False)
            X = storage.writable(storage.divided(X, self.exponent))
        labels = np.empty((X.shape[0], len(self.estimators)), dtype=np.int64)
        for t, estimator in enumerate(self.estimators):
            of_run = self.pairs, self.features[t], self.labels[:, t]
            labels[:, t] = labels_of(estimator, X, X_train, *of_run)
        return labels

    def _read(self, X: Any, name: str, n_rows: int | None = None) -> Any:
        X = _read_for(self.checks, X, name)
        validation.require_size(X, name, self.n_features, n_rows)
        return X


def base_partitions(
    X: Any,
    estimator: Any = None,
    *,
    n_estimators: int = 50,
    n_clusters: int | tuple[int, int] = 8,
    max_samples: int | float = 1.0,
    max_features: int | float = 1.0,
    predict_unseen: bool = False,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> BasePartitions:
    """Cluster the data many times, on random samples and features, with random numbers of clusters.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Numbers, or what an `estimator` that is given can read: pipelines and most others get data
        frames, NaN and text. Distances or similarities of all pairs for ``metric="precomputed"``.
    estimator : estimator with `fit_predict`, or list of such, default=None
        Clusterers that take turns; by default ``KMeans(n_init=1)``, ``GraphSpectral()`` and
        ``LandmarkSpectral(n_landmarks=250)``, which are fitted to 10,000 of more samples, and label
        the others. They are cloned. `n_clusters`, or where there is none `n_components` of a
        mixture, and `random_state` are set for every run, also inside a pipeline.
    n_estimators : int, default=50
        Number of partitions.
    n_clusters : int or tuple (low, high), default=8
        Number of clusters of every run, or the range (both ends included) that it is drawn from.
    max_samples : int or float, default=1.0
        Number, or share, of the samples drawn without replacement for a run.
    max_features : int or float, default=1.0
        Number, or share, of the features drawn without replacement for a run; not of pairs.
    predict_unseen : bool, default=False
        Whether a run labels the samples that were not drawn for it, too: its clusterer predicts, or
        where it cannot, a sample takes the label of the nearest one that the run saw. A million
        samples are then partitioned at the price of clustering `max_samples` of them.
    random_state : int, RandomState, Generator or None, default=None
        All runs are seeded before the first begins: the result does not depend on `n_jobs`.
    n_jobs : int, default=None
        Number of runs at a time.

    Returns
    -------
    BasePartitions
        Without the runs that failed, or found only noise.

    Raises
    ------
    ValueError
        If all runs found only noise, or those of an `estimator` that was given a single cluster
        each; if a parameter is not as described.
    Exception
        Of the first run, if all failed.

    Warns
    -----
    UserWarning
        If some runs found only noise.
    FitFailedWarning
        If some runs failed.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster.partitions import base_partitions
    >>> X = load_iris().data
    >>> found = base_partitions(X, n_estimators=10, n_clusters=(3, 6), random_state=0)
    >>> found.labels.shape
    (150, 10)
    """
    given = {name: value for name, value in locals().items() if name in ALLOWED}
    _compat.validate_parameter_constraints(
        ALLOWED, given, caller_name="base_partitions"
    )
    asked, rng = SimpleNamespace(**given), generator_of(random_state)
    checks, X, pairs = checks_for(clusterers(estimator), X)
    X = _read_for(checks, X)
    sizes = range_of_clusters(n_clusters, "n_clusters")
    return run_plans(X, asked, draw_plans(rng, X.shape, sizes, asked), pairs)


def _read_for(checks: dict[str, Any] | None, X: Any, name: str = "X") -> Any:
    """Return X as floats, or as it is, see `checks_for`."""
    if checks is None:
        return as_it_is(X, name=name, ensure_2d=False)
    return validation.read_table(X, name, **checks)


class RunPlan(NamedTuple):
    """What a base clusterer is run with, all of its randomness drawn."""

    n_clusters: int
    samples: Chosen
    features: Chosen
    seed: int
    unseen: bool  # whether samples that are not drawn are labelled, too
    weights: np.ndarray | None = None  # of all samples, for clusterers that take them


def draw_plans(
    rng: np.random.RandomState,
    shape: tuple[int, ...],
    n_clusters: tuple[int, int],
    asked: Any,
) -> list[RunPlan]:
    """Draw what every run of a base clusterer differs by.

    `asked` has the parameters of `base_partitions` as attributes, as estimators do.
    """
    n_samples, n_features = (*shape, 1)[:2]  # texts by themselves are one feature
    size, unseen = asked.max_samples, asked.predict_unseen
    everything = isinstance(size, float) and size == 1
    if asked.estimator is None and everything and n_samples > _MANY:
        size, unseen = _MANY, True
    n_drawn = _how_many(size, n_samples, "max_samples", least=min(2, n_samples))
    n_columns = _how_many(asked.max_features, n_features, "max_features", least=1)
    fewest, most = n_clusters
    plans = []
    for _ in range(asked.n_estimators):
        k = int(min(rng.randint(fewest, most + 1), n_drawn))
        samples, features = (
            _draw(rng, n_samples, n_drawn),
            _draw(rng, n_features, n_columns),
        )
        seed = int(rng.randint(np.iinfo(np.int32).max))
        plans.append(RunPlan(k, samples, features, seed, unseen))
    return plans


def run_plans(
    X: Any,
    asked: Any,
    plans: list[RunPlan],
    pairs: str | None,
    each: Each | None = None,
) -> BasePartitions:
    """Run base clusterers as planned, on X as `checks_for` has it, see `draw_plans`.

    `each` is called as often as there are runs, see `shared_out`.
    """
    estimator, bases = asked.estimator, clusterers(asked.estimator)
    if pairs is not None and any(plan.features is not None for plan in plans):
        cure = "these have no features to draw from: leave it at 1.0, and lower max_samples"
        raise ValueError(
            f"max_features must be 1.0, or all, where X holds {pairs}: {cure}."
        )
    exponent = storage.exponent_beyond(X, 2) if is_finite(X) else 0
    if exponent and estimator is not None:  # what has parameters in the unit of X
        got = f"some up to {storage.largest(X):.3g}: scale it"
        raise ValueError(
            f"X must hold values whose squares {X.dtype} can sum, got {got}."
        )
    X = storage.divided(X, exponent)
    calls = [
        (clone(base), plan) for base, plan in zip(cycle(bases), plans, strict=False)
    ]
    results = shared_out(attempted, (_run, X, pairs), calls, asked.n_jobs, each)
    kept = _kept_runs(bases, results)
    runs = [(*results[t], *plans[t]) for t in np.flatnonzero(kept)]
    estimators, labels, _, samples, features, *_ = map(list, zip(*runs, strict=True))
    table, n_features = np.column_stack(labels).astype(np.int64), (*X.shape, 1)[1]
    if estimator is not None and table.max() == 0:
        found = "a single cluster in all of its runs, which say nothing then"
        cure = "give it parameters with which it finds several"
        raise ValueError(f"estimator {estimator!r} found {found}: {cure}.")
    of_input = exponent, float_type(X), n_features, pairs
    return BasePartitions(table, estimators, samples, features, kept, *of_input)


def _kept_runs(bases: list[Any], results: list[Any]) -> np.ndarray:
    """Return whether each run found clusters; warn of the others, raise where these are all."""
    total = f"{len(results)} base runs"
    failed = {t: run for t, run in enumerate(results) if isinstance(run, Exception)}
    kept = np.array(
        [t not in failed and run[1].max() >= 0 for t, run in enumerate(results)]
    )
    n_noise = len(results) - len(failed) - int(kept.sum())
    if not kept.any():
        clusterer = ", ".join(map(repr, bases))
        reason = f"estimator {clusterer} found only noise in all {len(results)} runs."
        error: Exception = ValueError(reason)
        for error in list(failed.values())[:1]:
            error.add_note(
                f"{len(failed)} of {total} failed, this was the first; none is left."
            )
        raise error
    if failed:
        why = {bases[t % len(bases)]: error for t, error in reversed(failed.items())}
        told = "; ".join(
            f"{base!r}: {type(e).__name__}: {e}" for base, e in why.items()
        )
        warn(
            f"{len(failed)} of {total} failed, and are left out. {told}",
            FitFailedWarning,
        )
    if n_noise:
        warn(f"{n_noise} of {total} found only noise, and are left out.")
    return kept


def clusterers(estimator: Any) -> list[Any]:
    """Return the base clusterers that take turns."""
    several = list(estimator) if isinstance(estimator, list | tuple) else [estimator]
    if estimator is None:
        several = [
            KMeans(n_init=1),
            LandmarkSpectral(n_landmarks=_LANDMARKS),
            GraphSpectral(),
        ]
    for base in several or [several]:
        if not hasattr(base, "fit_predict") or isinstance(base, type):
            wanted = "a clusterer with `fit_predict`, or a list of such"
            raise TypeError(f"estimator must be {wanted}, got {base!r}.")
    return several


def range_of_clusters(value: Any, name: str) -> tuple[int, int]:
    """Return the smallest and the largest number of clusters that a base partition may have.

    Parameters
    ----------
    value : int or pair of int
    name : str
        What to call it in an error message.
    """
    several = isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1
    bounds: list[Any] = list(value) if several else [value, value]
    other = (
        bool | np.bool_ | np.timedelta64
    )  # which Python, or numpy, counts among the integers
    whole = all(isinstance(b, Integral) and not isinstance(b, other) for b in bounds)
    if len(bounds) != 2 or not whole or not 1 <= bounds[0] <= bounds[1] <= _compat.MOST:
        wanted = "an int, or a pair of ints (low, high) with 1 <= low <= high"
        raise ValueError(
            f"{name} must be {wanted}, got {value!r}; {_compat.MOST} is the largest."
        )
    return int(bounds[0]), int(bounds[1])


def _how_many(value: int | float, total: int, name: str, least: int) -> int:
    if not isinstance(value, Integral):
        value = value * total
    elif value > total:
        raise ValueError(f"{name} must be at most {total}, got {value}.")
    return max(int(value), least)


def _draw(rng: np.random.RandomState, total: int, size: int) -> Chosen:
    if size == total:
        return None
    # unlike a permutation it takes no time for those that are not drawn
    return np.sort(sample_without_replacement(total, size, random_state=rng))


def _run(
    X: Any, pairs: str | None, estimator: Any, plan: RunPlan
) -> tuple[Any, np.ndarray]:
    """Return the fitted clusterer and its labels, -1 for samples that it did not see."""
    samples, features = plan.samples, plan.features
    part = part_of(X, samples, features, pairs, estimator)
    estimator.set_params(**seeded(estimator, plan.n_clusters, plan.seed))
    given = {}
    if (
        plan.weights is not None
        and "sample_weight" in signature(estimator.fit_predict).parameters
    ):
        given["sample_weight"] = (
            plan.weights if samples is None else plan.weights[samples]
        )
    of_part = np.asarray(estimator.fit_predict(part, **given))
    if of_part.shape != (part.shape[0],) or of_part.dtype.kind not in "iu":
        got = f"{of_part.dtype} of shape {of_part.shape} for {part.shape[0]} samples"
        must = f"estimator {estimator!r} must return one integer label a sample"
        raise ValueError(f"{must}, got {got}.")
    labels = np.full(X.shape[0], -1, dtype=np.int64)
    labels[slice(None) if samples is None else samples] = of_part
    if plan.unseen and samples is not None and of_part.max() >= 0:
        unseen = np.setdiff1d(np.arange(len(labels)), samples, assume_unique=True)
        new = _compat.take_samples(X, unseen)
        labels[unseen] = labels_of(estimator, new, X, pairs, features, labels)
    return estimator, narrow(labels)
