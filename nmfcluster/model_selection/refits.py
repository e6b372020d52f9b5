"""Refits of a clusterer to parts of the samples, and the labels that they predict."""

from inspect import signature
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from nmfcluster._compat import take_samples
from nmfcluster._utils.labels import NOISE, encode_labels
from nmfcluster._utils.parallel import one_thread, run_calls, try_on_one_thread
from nmfcluster._utils.storage import require_symmetric
from nmfcluster._utils.validation import (
    canonical_csr,
    check_readable,
    columns_in_row_order,
    format_count,
    format_value,
    last_step,
    pairwise_input,
    read_matrix,
    require_instance,
    type_name,
)
from nmfcluster.partitions.base_runs import labels_of_pairs
from nmfcluster.partitions.inputs import is_soft

SEEDS = 2**31 - 1  # seeds are below it, as RandomState requires on every platform
# types of the arguments of `fit` that have no entry for each sample
_SCALAR = str | Real | None


class Samples(NamedTuple):
    """All samples, and the arguments of `fit` for them."""

    X: Any
    y: Any  # None: `fit` is called without a target
    fit_params: dict  # arguments of `fit` besides X and y
    # "similarities" or "distances" if X holds those of all pairs; None for features
    pairwise: str | None

    def compared_with(self, rows, targets):
        """Return the input of `predict` for the samples `targets`, after a fit to `rows`.

        If X is pairwise, only the columns `rows` are kept.
        """
        if self.pairwise is None:
            is_all = len(targets) == count_entries(self.X)
            return self.X if is_all else take_samples(self.X, targets)
        if hasattr(self.X, "iloc"):
            return self.X.iloc[targets, rows]  # a data frame keeps its names
        return self.X[np.ix_(targets, rows)]


# --- input ---------------------------------------------------------------------------


def read_samples(estimator, X, y, metadata, fit_params, advice):
    """Return all samples and the arguments of `fit`, after checks that both can be split.

    Parameters
    ----------
    estimator : estimator
        With metadata routing enabled, its request decides which `metadata` its `fit` takes.
    X, y : object
    metadata : dict
        Arguments that a search passed to the scorer. Those that are None are left out.
    fit_params : dict
        Arguments of `fit` that the user passed, by name.
    advice : str
        The end of error messages: which function or scorer needs all samples, and how to
        pass them.
    """
    n_samples = get_n_samples(X)
    require_instance(estimator)
    if not all(hasattr(type(estimator), name) for name in ("fit", "get_params")):
        raise TypeError(
            "estimator must have fit and get_params, as scikit-learn's estimators do, got "
            f"{type_name(estimator)}."
        )
    pairwise = pairwise_input(estimator, X)
    if is_soft(X) and takes_labels(estimator):
        raise ValueError(
            "X is a list of memberships, which cannot be cut by samples. Use "
            "choose_n_clusters(method='auto'), which does not cut it."
        )
    X = _as_indexable(X, pairwise)
    shape = tuple(getattr(X, "shape", ()))
    if pairwise and (len(shape) < 2 or shape[0] != shape[1]):
        raise ValueError(
            "X must hold the similarities, or distances, of all pairs of samples, got "
            f"{type(X).__name__} of shape {shape}. {advice}."
        )
    labels = getattr(last_step(estimator)[1], "labels_", None)
    if labels is not None and len(labels) != n_samples:
        raise ValueError(
            f"X has {format_count(n_samples, 'sample')}, but the estimator was fitted on "
            f"{len(labels)}. {advice}. For other samples, give the scorer an "
            "estimator that is not fitted."
        )
    if y is not None:
        _require_entries(y, n_samples, "y")

    # with metadata routing, the estimator is passed what it requests
    metadata = {name: value for name, value in metadata.items() if value is not None}
    if get_config()["enable_metadata_routing"]:
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=advice.partition(" ")[0])
        router.add(estimator=estimator, method_mapping=mapping)
        routed = router.route_params(caller="fit", params=metadata)
        metadata = routed["estimator"]["fit"]
    if twice := sorted(metadata.keys() & fit_params):
        raise TypeError(
            f"{twice[0]!r} is both in fit_params and passed to the scorer. Pass it once."
        )
    fit_params = {**metadata, **fit_params}
    for name, value in fit_params.items():
        if isinstance(value, _SCALAR):
            continue
        last = name.rpartition("__")[2]
        cure = (
            " Pass constraints=PairwiseConstraints(n_samples, must_link, cannot_link)."
        )
        # pairs name samples by position, and positions differ in parts of the samples
        if last in ("must_link", "cannot_link"):
            raise ValueError(f"{name} in fit_params cannot be cut like samples.{cure}")
        cure = cure if last == "constraints" else ""
        _require_entries(value, n_samples, f"{name} in fit_params", cure)
    return Samples(X, y, fit_params, pairwise)


def count_entries(value):
    """Return the number of entries of a value, one a sample; -1 if it has no length."""
    shape = getattr(value, "shape", None)
    if shape is None:
        has_length = hasattr(value, "__len__") and not isinstance(value, dict)
        return len(value) if has_length else -1
    # the number is NaN if Dask has not computed it
    return int(shape[0]) if shape and isinstance(shape[0], Integral) else -1


def get_n_samples(X):
    """Return the number of samples in X; raise if it has none."""
    n_samples = -1 if isinstance(X, str | bytes | set | type) else count_entries(X)
    if n_samples < 0:
        raise ValueError(
            f"X must have an entry for every sample, got {format_value(X)}. "
            "Pass views as a ViewStack, and similarities as a SimilarityStack."
        )
    return n_samples


def accepts_fit_param(estimator, name):
    """Return whether `fit` of an estimator takes an argument with this name."""
    if not hasattr(estimator, "fit"):
        return False
    parameters = signature(estimator.fit).parameters
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters.values())
    return takes_any or name in parameters


def check_fit_params(estimator, fit_params):
    """Raise unless `fit` of an estimator takes all arguments."""
    for name in fit_params:
        if name == "X" or not accepts_fit_param(estimator, name):
            raise TypeError(
                f"fit_params must hold arguments that fit of {type(estimator).__name__} "
                f"takes besides X, got {format_value(name)}."
            )


def takes_features(estimator, X):
    """Return whether an estimator reads X as one matrix of features.

    Pairs of samples, labels of partitions, and several sources are no such matrix.
    """
    step = last_step(estimator)[1]
    if takes_labels(step) or pairwise_input(estimator, X) or pairwise_input(step):
        return False
    if isinstance(estimator, Pipeline) and len(estimator) > 1:
        return True  # its first steps may compute features, for example of texts
    return isinstance(X, list | tuple) or len(getattr(X, "shape", ())) == 2


def takes_labels(estimator):
    """Return whether an estimator takes labels, by scikit-learn's tag."""
    return bool(get_tags(estimator).input_tags.categorical)


def check_symmetric(X, pairwise, name):
    """Raise if X is not symmetric, as it may then hold pairs between the halves of a split."""
    is_array = isinstance(X, np.ndarray) or hasattr(X, "iloc")
    if is_array:  # a frame with sparse columns becomes a sparse matrix
        X = read_matrix(X, allow_nd=True, ensure_all_finite=False)
    if hasattr(X, "tocsr"):
        if pairwise == "similarities":  # sparse distances are directed
            require_symmetric(X, name)
    elif is_array:  # containers of similarities check them on their own
        for layer in np.moveaxis(X.reshape(*X.shape[:2], -1), 2, 0):
            require_symmetric(layer, name)


def _as_indexable(X, pairwise):
    """Return X in a container with indexable rows, and for pairs also columns."""
    if hasattr(X, "tocsr"):
        return canonical_csr(check_readable(X).tocsr())
    is_table = hasattr(X, "columns") or hasattr(X, "__dask_graph__")
    if not pairwise or not (is_table or isinstance(X, list | tuple)):
        return X
    X = columns_in_row_order(check_readable(X), "X")
    return X if hasattr(X, "iloc") else np.asarray(X)


def _require_entries(value, n_samples, name, cure=""):
    """Raise unless a value has one entry for each sample; `cure` ends the message."""
    count = count_entries(value)
    if count != n_samples:
        entries = "" if count < 0 else f" with {format_count(count, 'entry')}"
        raise ValueError(
            f"{name} must have one entry for each of the {n_samples} samples, so that it "
            f"can be cut like them, got {type(value).__name__}{entries}.{cure}"
        )


# --- refits and their labels -----------------------------------------------------------


def try_calls(task, common, calls, n_jobs):
    """Return the results of a task for all calls, or the errors that it raises.

    `run_calls` describes `common`, `calls` and `n_jobs`.
    """
    # limit threads once for all calls, as each change takes longer than some fits
    with one_thread():
        return run_calls(try_on_one_thread, (task, *common), calls, n_jobs)


def first_error(outcomes):
    """Return the first error among outcomes."""
    return next((each for each in outcomes if isinstance(each, Exception)), None)


def labels_by_refit(samples, size, targets, estimator, rng):
    """Return the labels that a clone predicts after a fit to samples drawn at random.

    Parameters
    ----------
    samples : Samples
    size : int
        Number of samples to which the clone is fitted.
    targets : ndarray of int
        Samples whose labels are returned, in increasing order.
    estimator : estimator
    rng : Generator

    Returns
    -------
    labels : ndarray of int
        Clusters numbered from 0; -1 for samples in no cluster.
    n_found : int
        Number of clusters among the samples to which the clone was fitted.
    """
    n_samples = count_entries(samples.X)
    rows = np.sort(rng.choice(n_samples, size, replace=False, shuffle=False))
    X = samples.compared_with(rows, rows)
    y = None if samples.y is None else take_samples(samples.y, rows)
    fit_params = {
        name: value if isinstance(value, _SCALAR) else take_samples(value, rows)
        for name, value in samples.fit_params.items()
    }
    model = refit(estimator, X, y, fit_params, rng)
    unseen = samples.compared_with(rows, targets)
    step = last_step(model)[1]
    # whether a pipeline computes pairs from features
    computes_pairs = samples.pairwise is None and pairwise_input(step)
    predicted = None
    if hasattr(model, "predict") and not computes_pairs:
        # some clusterers predict from features alone
        try:
            predicted = model.predict(unseen)
        except Exception:
            if samples.pairwise is None:
                raise
    if predicted is None:
        # labels of the nearest samples that the clone was fitted to
        labels = _encode(step.labels_, size)
        if samples.pairwise is not None:
            unseen = np.asarray(unseen) if hasattr(unseen, "iloc") else unseen
            predicted = labels_of_pairs(unseen, samples.pairwise, labels)
        else:
            seen = X
            if isinstance(model, Pipeline) and len(model) > 1 and not computes_pairs:
                seen = model[:-1].transform(X)
                unseen = model[:-1].transform(unseen)
            predicted = KNeighborsClassifier(1).fit(seen, labels).predict(unseen)
        # fitted samples keep their labels, whatever the diagonal or equal rows predict
        is_fitted = np.isin(targets, rows)
        predicted[is_fitted] = labels[np.searchsorted(rows, targets[is_fitted])]
    return _encode(predicted, len(targets)), count_clusters(model, X)


def refit(estimator, X, y, fit_params, rng):
    """Return a fitted clone of an estimator; every `random_state` of None gets a seed."""
    model = set_seeds(clone(estimator), rng)
    if y is None:
        return model.fit(X, **fit_params)
    return model.fit(X, y, **fit_params)


def set_seeds(estimator, rng):
    """Set every `random_state` of an estimator that is None; return the estimator."""
    seeds = {
        name: int(rng.integers(SEEDS))
        for name, value in sorted(estimator.get_params().items())
        if value is None and name.split("__")[-1] == "random_state"
    }
    return estimator.set_params(**seeds)


def count_clusters(model, X):
    """Return the number of clusters among the samples to which a model was fitted."""
    return int(training_labels(model, X).max(initial=-1)) + 1


def training_labels(model, X):
    """Return the labels, numbered from 0, of the samples to which a model was fitted."""
    labels = getattr(last_step(model)[1], "labels_", None)
    return _encode(model.predict(X) if labels is None else labels, count_entries(X))


def _encode(labels, n_samples):
    """Return labels numbered from 0; -1 for samples in no cluster."""
    if np.shape(labels) != (n_samples,):
        raise ValueError(
            f"estimator must assign one label to each of {n_samples} samples, got labels "
            f"of shape {np.shape(labels)}."
        )
    return np.maximum(encode_labels([labels], "labels")[0][:, 0], NOISE)
