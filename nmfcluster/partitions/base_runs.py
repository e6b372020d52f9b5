"""Base partitions: many different clusterings of one data set.

Each run draws samples, features and a number of clusters for a base clusterer. Clusterers that
users pass are fitted to data that they can read: floats, distances or similarities of all pairs of
samples, data frames, text or NaN.
"""

from dataclasses import dataclass
from inspect import signature
from itertools import compress, cycle
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import FitFailedWarning
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array
from sklearn.utils.random import sample_without_replacement
from sklearn.utils.validation import validate_data

from nmfcluster import _compat
from nmfcluster._base import read_features
from nmfcluster._utils import storage, validation
from nmfcluster._utils.labels import NOISE, NOT_SEEN, to_smallest_int
from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.parallel import run_calls, try_on_one_thread
from nmfcluster.partitions.graph_runs import (
    GraphFactorization,
    predict_runs,
    run_graphs,
)
from nmfcluster.partitions.spectral import GraphSpectral, LandmarkSpectral

Drawn = np.ndarray | None  # positions that were drawn; None: all

# pairs of samples that are searched at a time: 8 MiB of float64
_PAIRS_PER_BLOCK = 2**20

#: clusterers that need finite floats, and do not write to them unless copy_x=False
_BUILTIN = (
    KMeans,
    MiniBatchKMeans,
    GraphSpectral,
    LandmarkSpectral,
    GraphFactorization,
)

_SHARE = [_compat.COUNT, _compat.Interval(_compat.RealNotInt, 0, 1, closed="right")]
#: parameters of estimators that make base partitions, and their constraints
BASE_PARAMETERS: dict = {
    "base_n_clusters": [_compat.COUNT, tuple, list, None],
    "estimator": [_compat.HasMethods(["fit_predict"]), list, tuple, None],
    "n_estimators": [_compat.COUNT],
    "max_samples": _SHARE,
    "max_features": _SHARE,
    "predict_unseen": ["boolean"],
}
_ALLOWED = BASE_PARAMETERS | {
    "n_jobs": _compat.N_JOBS,
    "random_state": _compat.RANDOM_STATE,
}

# --- what base clusterers are fitted to ------------------------------------------------


def base_clusterers(estimator):
    """Return the base clusterers that take turns; an empty list for the default runs."""
    if estimator is None:
        return []
    bases = list(estimator) if isinstance(estimator, list | tuple) else [estimator]
    for base in bases or [bases]:  # an empty list is refused
        validation.require_instance(base)
        if not hasattr(base, "fit_predict"):
            raise TypeError(
                "estimator must be a clusterer with `fit_predict`, or a list of these, got "
                f"{base!r}."
            )
    return bases


def is_builtin(base):
    """Return whether a clusterer needs finite floats, and does not write to them."""
    return type(base) in _BUILTIN and getattr(base, "copy_x", True)


def pairwise_kind(bases, X):
    """Return "distances" or "similarities" if clusterers need them for all pairs, else None.

    Raises
    ------
    ValueError
        If clusterers need different kinds of X, or X is not square.
    """
    kinds = {validation.pairwise_input(base, X): base for base in bases}
    if len(kinds) > 1:
        got = " and ".join(sorted(kind or "features" for kind in kinds))
        raise ValueError(
            f"estimator must hold clusterers for the same kind of X, got some for {got}. Pass "
            "only clusterers of one kind."
        )
    [(kind, base)] = kinds.items()
    shape = np.shape(X)
    if kind is not None and (len(shape) != 2 or shape[0] != shape[1]):
        raise ValueError(
            f"X must be a square matrix, the {kind} of all pairs of samples, for estimator "
            f"{base!r}, got shape {shape}."
        )
    return kind


def check_bases_accept_parts(estimator, X, rule):
    """Raise if base clusterers cannot be fitted to a part of the samples."""
    for base in base_clusterers(estimator):
        validation.check_accepts_parts(base, X, f"{rule} for this estimator")


def read_base_input(
    X,
    bases,
    estimator=None,
    name="X",
    known=None,
):
    """Return X in the form that base clusterers are fitted to, and its `pairwise_kind`.

    Data frames and text stay unconverted if clusterers that users pass have to read them. If a data
    frame holds distances or similarities of all pairs, its columns are put into the order of its
    rows.

    Parameters
    ----------
    X : object
    bases : list of estimator
    estimator : estimator, default=None
        The estimator that is being fitted, if there is one.
    name : str, default="X"
        Name of X in error messages.
    known : tuple, default=None
        For new samples, the `pairwise_kind` of the training samples, and whether the training
        samples stayed unconverted.
    """
    builtin = all(map(is_builtin, bases))
    pairs, unconverted = known or (None, False)
    if known is None and not builtin:
        pairs = pairwise_kind(bases, X)
        if pairs:
            X = validation.columns_in_row_order(X, "X")
        else:
            unconverted = _only_clusterers_can_read(X, name)
    reset = known is None
    finite = True if pairs or builtin else "allow-nan"
    if unconverted:
        X = read_unconverted(X, name, estimator, reset)
    elif estimator is None:
        X = validation.read_matrix(X, name, ensure_all_finite=finite)
    else:
        X = read_features(estimator, X, reset, ensure_all_finite=finite)
    return X, pairs


def read_unconverted(X, name="X", estimator=None, reset=True, are_labels=False):
    """Check the columns of a data frame, or of an array of any type, and return it."""
    wanted = "one table of labels" if are_labels else "one table"
    validation.check_container(X, name, wanted)
    if hasattr(X, "columns"):
        validation.check_columns_differ(X, name)
        if reset:
            validation.warn_of_ids(X, name)
    else:
        X = check_array(
            validation.as_array(X, name),
            dtype=None,
            ensure_all_finite=False,
            ensure_2d=are_labels,
            input_name=name,
            estimator=estimator,
        )
    if estimator is not None:
        validate_data(estimator, X, reset=reset, skip_check_array=True)
    return X


def _only_clusterers_can_read(X, name):
    """Return whether X is a data frame, or holds text."""
    if hasattr(X, "__dask_graph__"):
        return False
    if hasattr(X, "columns"):
        return True
    array = np.asarray(validation.as_array(X, name))
    if array.dtype == object:
        return any(isinstance(entry, str | dict) for entry in array.flat)
    return array.dtype.kind in "UST"


def float_type(X):
    """Return the dtype of a matrix of floats; None for data that are passed on unconverted."""
    dtype = getattr(X, "dtype", None)
    return dtype if dtype in storage.FLOATS else None


def n_features_of(X):
    """Return the number of features; a vector of texts has one."""
    return X.shape[1] if len(X.shape) > 1 else 1


def is_finite(X):
    """Return whether X is a matrix of floats without NaN."""
    return float_type(X) is not None and not np.isnan(float(X.max()))


def sortable_numbers(X):
    """Return rows of numbers to sort samples by; different samples have different rows."""
    if float_type(X) is not None:
        return X
    array = np.asarray(X)
    if array.dtype.kind in "biuf":
        return array.astype(float)
    rows = [str(np.ravel(row).tolist()) for row in array.astype(object)]
    _, numbers = np.unique(rows, return_inverse=True)
    return numbers.reshape(-1, 1).astype(float)


def take_part(X, samples, features, pairs, clusterer):
    """Return some samples and features of X, where None stands for all.

    If X holds distances or similarities of all pairs, those between the samples are returned. The
    result is a copy if the clusterer may write to it.
    """
    if samples is None and features is None and not is_builtin(clusterer):
        samples = np.arange(X.shape[0])
    if samples is not None:
        X = _compat.take_samples(X, samples)
    if pairs:
        features = samples
    return X if features is None else _compat.take_samples(X, features, axis=1)


# --- labels of new samples -------------------------------------------------------------


def predict_labels(
    estimator,
    X,
    X_train,
    pairs,
    features,
    labels,
):
    """Return the labels of new samples, by `predict` or of the nearest sample that a run saw."""
    if pairs is not None:
        return labels_of_pairs(X, pairs, labels)
    new = take_part(X, None, features, None, estimator)
    if hasattr(estimator, "predict"):
        return np.asarray(estimator.predict(new))
    seen = np.flatnonzero(labels >= NOISE)
    train = take_part(X_train, seen, features, None, estimator)
    if isinstance(estimator, Pipeline) and not (is_finite(new) and is_finite(train)):
        # the steps before the clusterer convert samples to numbers
        train = estimator[:-1].transform(train)
        new = estimator[:-1].transform(new)
    train = validation.read_matrix(train, ensure_all_finite="allow-nan")
    new = validation.read_matrix(new, ensure_all_finite="allow-nan")
    return labels[seen[nearest_samples(train, new)]]


def labels_of_pairs(X, pairs, labels):
    """Return the labels of new samples from their distances or similarities to training samples.

    A new sample takes the label of the nearest, or most similar, sample that the run saw. Ties go
    to the largest label. If a sparse X stores no entry of the new sample, its label is -2, not
    seen.
    """
    seen = np.flatnonzero(labels >= NOISE)
    sign = -1.0 if pairs == "distances" else 1.0
    predicted = np.empty(X.shape[0], dtype=np.int64)
    n_rows = max(1, _PAIRS_PER_BLOCK // max(len(seen), 1))
    for rows in storage.row_blocks(len(predicted), n_rows):
        part = storage.rows_of(X, rows)[:, seen]
        closeness = sign * storage.fill_unstored(part, -sign * np.inf)
        best = closeness.max(axis=1, keepdims=True)
        is_best = (closeness == best) & (best > -np.inf)
        predicted[rows] = np.where(is_best, labels[seen], NOT_SEEN).max(axis=1)
    return predicted


def nearest_samples(X_train, X):
    """Return the index of the nearest row of `X_train` for every row of `X`."""
    exponent = storage.scaling_exponent(X_train, 2)
    # in the canonical order, ties do not depend on the order of the rows
    samples = canonical_order(X_train).samples
    metric = "minkowski" if is_finite(X_train) and is_finite(X) else "nan_euclidean"
    search = NearestNeighbors(n_neighbors=1, metric=metric)
    search.fit(storage.divide_by_power(X_train[samples], exponent))
    # a search tree of dense samples requires dense arrays
    X = storage.match_storage(storage.divide_by_power(X, exponent), X_train)
    nearest = search.kneighbors(X, return_distance=False)
    return samples[nearest[:, 0]]


# --- base partitions -------------------------------------------------------------------


@dataclass(frozen=True)
class BasePartitions:
    """Base partitions and the clusterers that found them.

    Attributes
    ----------
    labels : ndarray of shape (n_samples, n_partitions), int
        Labels of every partition. -1 is noise. -2 marks a sample that was neither drawn for the
        partition nor labelled later. Runs that failed or found only noise are left out.
    estimators : list
        The fitted clusterers. By default, these are objects with a method `predict`.
    samples : list of ndarray or None
        Positions of the samples that each clusterer was fitted on; None stands for all samples.
    features : list of ndarray or None
        Positions of the features that each clusterer was fitted on; None stands for all features.
    kept : ndarray of shape (n_estimators,), bool
        Which of the `n_estimators` runs found these partitions. It is False for runs that were left
        out.
    exponent : int
        The features were divided by 2 to the power of this number before the fits. It is 0 unless
        the squares of the features are too large or too small for floats.
    dtype : dtype or None
        Type of the features, float32 or float64; None if they were passed on unconverted.
    n_features : int
        Number of columns of X.
    pairs : {"distances", "similarities"} or None
        What X contained for all pairs of samples; None if it contained features.
    """

    labels: np.ndarray
    estimators: list[Any]
    samples: list[Drawn]
    features: list[Drawn]
    kept: np.ndarray
    exponent: int
    dtype: np.dtype | None
    n_features: int
    pairs: str | None

    @property
    def needs_training_data(self) -> bool:
        """Whether `predict` needs the training samples, because a clusterer has no `predict`."""
        predicting = all(hasattr(estimator, "predict") for estimator in self.estimators)
        return not predicting and self.pairs is None

    def predict(self, X: Any, X_train: Any = None) -> np.ndarray:
        """Label new samples by every partition.

        A clusterer with `predict` labels new samples itself. Otherwise a new sample takes the label
        of the nearest sample that the partition saw.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_new, n_features)
            New samples. If the partitions were made from distances or similarities of all pairs,
            those between the new samples and all training samples.
        X_train : {array-like, sparse matrix} of shape (n_samples, n_features), default=None
            All training samples. Required if `needs_training_data` is True.

        Returns
        -------
        ndarray of shape (n_new, n_partitions), int
            Labels by every partition.

        Raises
        ------
        ValueError
            If `X` or `X_train` contains infinity, or does not have the number of columns of the
            training samples. If `X_train` does not have the number of training samples.
        """
        return self.predict_with_type(X, X_train)[0]

    def predict_with_type(self, X, X_train, estimator=None):
        """Return the labels of `predict`, and the `float_type` of X.

        If you pass a fitted `estimator`, X must have its features.
        """
        known = (self.pairs, self.dtype is None)
        X, _ = read_base_input(X, self.estimators, estimator, known=known)
        validation.check_shape(X, "X", self.n_features)
        dtype = float_type(X)
        if self.needs_training_data:
            X_train, _ = read_base_input(
                X_train, self.estimators, name="X_train", known=known
            )
            n_samples = len(self.labels)
            validation.check_shape(X_train, "X_train", self.n_features, n_samples)
            X_train = storage.divide_by_power(X_train, self.exponent)
        if self.dtype is not None:
            # k-means requires the dtype that it was fitted on, and writable arrays
            X = X.astype(self.dtype, copy=False)
            X = storage.as_writable(storage.divide_by_power(X, self.exponent))
        if isinstance(self.estimators[0], GraphFactorization):
            return predict_runs(self.estimators, X), dtype
        labels = np.empty((X.shape[0], len(self.estimators)), dtype=np.int64)
        for t, clusterer in enumerate(self.estimators):
            labels[:, t] = predict_labels(
                clusterer, X, X_train, self.pairs, self.features[t], self.labels[:, t]
            )
        return labels, dtype


def base_partitions(
    X: Any,
    estimator: Any = None,
    *,
    n_estimators: int = 50,
    n_clusters: int | tuple[int, int] = 8,
    max_samples: int | float = 1.0,
    max_features: int | float = 1.0,
    predict_unseen: bool = False,
    random_state: validation.Seed = None,
    n_jobs: int | None = None,
) -> BasePartitions:
    """Cluster the data many times, on random samples and features, with random numbers of clusters.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Data matrix, or whatever the `estimator` that you pass can read. Pipelines and most other
        clusterers receive data frames, NaN and text unconverted. With ``metric="precomputed"``, `X`
        holds distances or similarities of all pairs of samples.
    estimator : estimator with `fit_predict`, or list of such, default=None
        Clusterer that makes the partitions. The clusterers of a list take turns. They are cloned,
        and `random_state` and `n_clusters` are set for every run, also inside a pipeline. For a
        mixture, `n_components` is set. By default, every run factorizes one of a few graphs in
        which samples are joined to their nearest neighbours; see the notes of
        :class:`~nmfcluster.NMFConsensus`.
    n_estimators : int, default=50
        Number of partitions. With more partitions, a consensus depends less on the seed, and all
        runs take longer. Values from 20 to 200 are sensible.
    n_clusters : int or tuple (low, high), default=8
        Number of clusters of every run, or the range (both ends included) that it is drawn from.
        With larger numbers, smaller clusters can be found. Without `estimator`, the numbers are
        spread evenly over the range.
    max_samples : int or float, default=1.0
        Number (int) or share (float) of samples drawn, without replacement, for each run. With
        fewer samples, partitions differ more. Keep 1.0 for a clusterer with a parameter that has a
        value for each row, such as ``connectivity=``. The default graphs hold all samples, but each
        run factorizes its graph on drawn samples only.
    max_features : int or float, default=1.0
        Number (int) or share (float) of features drawn, without replacement, for each run. With
        fewer features, partitions differ more and take less time. Keep 1.0 unless there are many
        features that are largely redundant, such as thousands of genes. It must be 1.0 if `X` holds
        distances or similarities of all pairs.
    predict_unseen : bool, default=False
        Whether a run also labels samples that were not drawn for it. They are labelled by `predict`
        of its clusterer. If it has no `predict`, they take the label of the nearest drawn sample.
        If you pass an `estimator`, even a million samples then take little more time than the
        clustering of `max_samples` of them.
    random_state : int, RandomState, Generator or None, default=None
        Determines the samples, features and numbers of clusters that are drawn, and the seeds of
        the runs. The result does not depend on `n_jobs`.
    n_jobs : int, default=None
        Number of runs in parallel. The default runs use threads, which share the graphs.

    Returns
    -------
    BasePartitions
        The partitions, without runs that failed or found only noise.

    Raises
    ------
    ValueError
        If a parameter is not as described, if all runs found only noise, or if every run of an
        `estimator` that you pass found a single cluster.
    Exception
        The error of the first run, if all runs failed.

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
    check_parameters(locals())
    rng = validation.make_rng(random_state)
    X, pairs = read_base_input(X, base_clusterers(estimator))
    runs = draw_base_runs(
        rng,
        X,
        estimator,
        range_of_clusters(n_clusters, "n_clusters"),
        n_estimators=n_estimators,
        max_samples=max_samples,
        max_features=max_features,
        predict_unseen=predict_unseen,
    )
    return run_base_clusterers(X, estimator, runs, pairs, n_jobs)


def check_parameters(arguments):
    """Raise if an argument of `base_partitions` is not as described; X is checked elsewhere."""
    parameters = {name: value for name, value in arguments.items() if name in _ALLOWED}
    _compat.validate_parameter_constraints(_ALLOWED, parameters, "base_partitions")


class BaseRun(NamedTuple):
    """The settings of a run of a base clusterer, including all random draws."""

    n_clusters: int
    samples: Drawn
    features: Drawn
    seed: int
    predict_unseen: bool  # whether to label samples that are not drawn


def draw_base_runs(
    rng,
    X,
    estimator,
    n_clusters,
    *,
    n_estimators,
    max_samples,
    max_features,
    predict_unseen=False,
):
    """Draw the settings of all runs of base clusterers, see `base_partitions`."""
    n_samples = X.shape[0]
    n_features = n_features_of(X)
    n_drawn = max(_how_many(max_samples, n_samples, "max_samples"), min(2, n_samples))
    n_columns = _how_many(max_features, n_features, "max_features")
    if n_drawn < n_samples:
        check_bases_accept_parts(estimator, X, "max_samples must be 1.0")
    fewest, most = n_clusters
    runs = []
    for _ in range(n_estimators):
        k = int(min(rng.randint(fewest, most + 1), n_drawn))
        samples = _draw(rng, n_samples, n_drawn)
        features = _draw(rng, n_features, n_columns)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        runs.append(BaseRun(k, samples, features, seed, predict_unseen))
    if estimator is None:
        # all numbers in the range are equally frequent: results then depend less on the seed
        numbers = np.linspace(fewest, min(most, n_drawn), n_estimators).round()
        for t, k in enumerate(rng.permutation(numbers.astype(int)).tolist()):
            runs[t] = runs[t]._replace(n_clusters=min(k, n_drawn))
    return runs


def _how_many(value, total, name):
    """Return a number, or a share, of `total` as a count of at least 1."""
    if not isinstance(value, Integral):
        value = value * total
    elif value > total:
        raise ValueError(f"{name} must be at most {total}, got {value}.")
    return max(int(value), 1)


def _draw(rng, total, size):
    if size == total:
        return None
    # faster than a permutation, which takes time for those that are not drawn, too
    return np.sort(sample_without_replacement(total, size, random_state=rng))


def run_base_clusterers(
    X,
    estimator,
    runs,
    pairs,
    n_jobs,
    sample_weight=None,
    after_each=None,
):
    """Return the base partitions that clusterers find in X, as `read_base_input` returns it.

    `sample_weight` is passed to clusterers that accept it. `after_each` is called after each run,
    see `run_calls`.
    """
    first = runs[0]  # all runs draw the same number of samples, and of features
    if pairs is not None and first.features is not None:
        raise ValueError(
            f"max_features must be 1.0 if X holds {pairs}, which have no features to draw from. "
            "Leave it at 1.0, and lower max_samples instead."
        )
    is_default = estimator is None
    # scale X so that squares can be summed, but not if users chose parameters for its scale
    exponent = storage.scaling_exponent(X, 2) if is_finite(X) else 0
    if exponent and not is_default:
        raise ValueError(
            f"X must hold values whose squares can be summed in {X.dtype}, got values up to "
            f"{storage.max_abs(X):.3g}: scale X."
        )
    X = storage.divide_by_power(X, exponent)
    if is_default:
        found, labels = run_graphs(X, runs, n_jobs, after_each)
        for t, run in enumerate(runs):
            if run.samples is not None and not run.predict_unseen:
                labels[np.setdiff1d(np.arange(len(labels)), run.samples), t] = NOT_SEEN
        kept = np.ones(len(runs), dtype=bool)
    else:
        # clusterers that users pass take turns
        bases = base_clusterers(estimator)
        calls = list(zip(runs, map(clone, cycle(bases)), strict=False))
        common = (_run, X, pairs, sample_weight)
        results = run_calls(try_on_one_thread, common, calls, n_jobs, after_each)
        n_fitted = X.shape[0] if first.samples is None else len(first.samples)
        kept = _kept_runs(bases, results, f"{n_fitted} of {X.shape[0]} samples")
        found, columns = zip(*compress(results, kept), strict=True)
        labels = np.column_stack(columns).astype(np.int64)
        if labels.max() == 0:
            raise ValueError(
                f"estimator {estimator!r} must find several clusters, but found a single cluster "
                "in all of its runs: change its parameters."
            )
        runs = list(compress(runs, kept))
    return BasePartitions(
        labels=labels,
        estimators=list(found),
        samples=[run.samples for run in runs],
        features=[run.features for run in runs],
        kept=kept,
        exponent=exponent,
        dtype=float_type(X),
        n_features=n_features_of(X),
        pairs=pairs,
    )


def _run(X, pairs, sample_weight, run, estimator):
    """Fit a clusterer; return it, and its labels, -2 for samples that it did not see."""
    # fit the clusterer to its part of the data
    samples = run.samples
    part = take_part(X, samples, run.features, pairs, estimator)
    estimator.set_params(**_run_parameters(estimator, run.n_clusters, run.seed))
    options = {}
    takes = signature(estimator.fit_predict).parameters
    if sample_weight is not None and "sample_weight" in takes:
        drawn = slice(None) if samples is None else samples
        options["sample_weight"] = sample_weight[drawn]
    part_labels = np.asarray(estimator.fit_predict(part, **options))
    if part_labels.shape != (part.shape[0],) or part_labels.dtype.kind not in "iu":
        raise ValueError(
            f"estimator {estimator!r} must return one integer label per sample, got "
            f"{part_labels.dtype} of shape {part_labels.shape} for {part.shape[0]} samples."
        )
    if samples is None:
        return estimator, to_smallest_int(part_labels.astype(np.int64))
    # label the other samples if requested, unless all drawn samples are noise
    labels = np.full(X.shape[0], NOT_SEEN, dtype=np.int64)
    labels[samples] = part_labels
    if run.predict_unseen and part_labels.max() >= 0:
        unseen = np.setdiff1d(np.arange(len(labels)), samples, assume_unique=True)
        new = _compat.take_samples(X, unseen)
        labels[unseen] = predict_labels(estimator, new, X, pairs, run.features, labels)
    return estimator, to_smallest_int(labels)


def _run_parameters(estimator, n_clusters, seed):
    """Return the parameters of a clusterer, or a pipeline, that differ between runs."""
    parameters = {}
    has_n_clusters = False
    for name in estimator.get_params(deep=True):
        last = name.rpartition("__")[2]
        if last == "n_clusters":
            parameters[name] = n_clusters
            has_n_clusters = True
        elif last == "random_state":
            parameters[name] = seed
    if not has_n_clusters:
        # a mixture; earlier steps of a pipeline may have n_components of their own
        prefix, clusterer = validation.last_step(estimator)
        if "n_components" in clusterer.get_params(deep=False):
            parameters[f"{prefix}n_components"] = n_clusters
    return parameters


def _kept_runs(bases, results, fitted):
    """Return whether each run found clusters; warn of the others, raise if no run did.

    `fitted` is a text on how many samples each run was fitted to.
    """
    total = f"{len(results)} base runs"
    failed = {t: r for t, r in enumerate(results) if isinstance(r, Exception)}
    found = (t not in failed and r[1].max() >= 0 for t, r in enumerate(results))
    kept = np.fromiter(found, dtype=bool)
    if not kept.any():
        for error in failed.values():
            error.add_note(
                f"{len(failed)} of {total} failed, each with {fitted}; this was the first."
            )
            raise error
        clusterer = ", ".join(map(repr, bases))
        raise ValueError(
            f"estimator {clusterer} found only noise in all {len(results)} runs: change its "
            "parameters."
        )
    if failed:
        # name the first error of every clusterer
        errors = {bases[t % len(bases)]: error for t, error in reversed(failed.items())}
        reasons = "; ".join(
            f"{base!r}: {type(error).__name__}: {error}"
            for base, error in errors.items()
        )
        validation.warn(
            f"{len(failed)} of {total} failed and were left out. {reasons}",
            FitFailedWarning,
        )
    n_noise = len(results) - len(failed) - int(kept.sum())
    if n_noise:
        validation.warn(f"{n_noise} of {total} found only noise and were left out.")
    return kept


def range_of_clusters(value, name):
    """Return the smallest and the largest number of clusters that a base partition may have.

    Parameters
    ----------
    value : int or pair of int
    name : str
        Name of the parameter in error messages.
    """
    bounds: Any = [value, value]
    if isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1:
        bounds = value
    are_counts = len(bounds) == 2 and all(map(_compat.COUNT.is_satisfied_by, bounds))
    if not are_counts or bounds[0] > bounds[1]:
        raise ValueError(
            f"{name} must be an int, or a pair of ints (low, high) with 1 <= low <= high <= "
            f"{_compat.MAX_COUNT}, got {value!r}."
        )
    return int(bounds[0]), int(bounds[1])
