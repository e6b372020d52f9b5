"""Copies of a clusterer, each fitted to a part of what was handed in, and their clusters."""

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
from nmfcluster._utils.labels import encode
from nmfcluster._utils.storage import require_symmetric
from nmfcluster._utils.validation import (
    canonical,
    check_readable,
    counted,
    in_own_order,
    kind_of,
    last_step,
    pairwise_input,
    read_table,
    shown,
)
from nmfcluster.partitions.base_runs import labels_of_pairs
from nmfcluster.partitions.inputs import is_soft

SEEDS = 2**31 - 1  # seeds are below it, as RandomState of every platform takes them


Training = tuple[
    tuple[Any, ...], dict[str, Any]
]  # what `fit` is given: by position, and by name


class Samples(NamedTuple):
    """All samples, and what goes with them into `fit`."""

    X: Any
    y: Any  # None: fit is not given a target
    arguments: dict[str, Any]  # of fit besides X and y
    pairs: (
        str | None
    )  # what X, which is cut on both axes then, holds of all pairs of samples

    def training(self, rows: np.ndarray) -> Training:
        """Return what `fit` is given for some samples: by position, and by name."""
        target = () if self.y is None else (take_samples(self.y, rows),)
        cut = {
            k: v if _is_scalar(v) else take_samples(v, rows)
            for k, v in self.arguments.items()
        }
        return (self.compared_with(rows, rows), *target), cut

    def compared_with(self, rows: np.ndarray, asked: np.ndarray | None) -> Any:
        """Return what `predict` is given for some samples, or all, after a fit on `rows`."""
        if self.pairs is None:
            return self.X if asked is None else take_samples(self.X, asked)
        asked = np.arange(n_entries(self.X)) if asked is None else asked
        # a data frame keeps its names
        return (
            self.X.iloc[asked, rows]
            if hasattr(self.X, "iloc")
            else self.X[np.ix_(asked, rows)]
        )


# --- what is handed in -------------------------------------------------------------------------


def read_samples(
    estimator: Any,
    X: Any,
    y: Any,
    handed: dict[str, Any],
    fit_params: dict[str, Any],
    advice: str,
) -> Samples:
    """Return all samples with what goes with them, each with an entry for every sample.

    Parameters
    ----------
    estimator : estimator
        With metadata routing enabled, its request decides what of `handed` its `fit` is given.
    X, y : object
    handed : dict
        What a search handed to the scorer; None: not handed over.
    fit_params : dict
        What the user gave for `fit`, by name.
    advice : str
        Who needs all samples, and how they are given.
    """
    n_samples = n_samples_of(X)
    if not all(hasattr(type(estimator), name) for name in ("fit", "get_params")):
        wanted = "fit and get_params, as scikit-learn's do"
        raise TypeError(f"estimator must have {wanted}, got {kind_of(estimator)}.")
    pairs = pairwise_input(estimator, X)
    if is_soft(X) and holds_labels(estimator):
        whole = "choose_n_clusters(method='auto') takes it whole"
        raise ValueError(
            f"X is a list of memberships, which cannot be cut by samples: {whole}."
        )
    X = _cut_by_positions(X, pairs)
    _require_all_samples(estimator, X, pairs, advice)
    if y is not None:
        _require_entries(y, n_samples, "y")
    handed = {name: value for name, value in handed.items() if value is not None}
    if get_config()["enable_metadata_routing"]:
        of_fit = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=advice.partition(" ")[0])
        router.add(estimator=estimator, method_mapping=of_fit)
        handed = router.route_params(caller="fit", params=handed)["estimator"]["fit"]
    if twice := sorted(handed.keys() & fit_params):
        raise TypeError(f"{twice[0]!r} is given both in fit_params and to the scorer.")
    arguments = {**handed, **fit_params}
    for name, value in arguments.items():
        last, cure = name.rpartition("__")[2], ""
        if last in ("constraints", "must_link", "cannot_link"):
            cure = " Pairs are constraints=PairwiseConstraints(n_samples, must_link, cannot_link)."
        # pairs name samples by position: there may be as many of them as samples, by chance
        entries = None if last in ("must_link", "cannot_link") else value
        if not _is_scalar(value):
            _require_entries(entries, n_samples, f"{name} in fit_params", cure)
    return Samples(X, y, arguments, pairs)


def n_entries(value: Any) -> int:
    """Return the number of samples that a value has entries for; -1 if it has no length."""
    if hasattr(value, "shape"):
        known = len(value.shape) > 0 and isinstance(
            value.shape[0], Integral
        )  # not in Dask
        return int(value.shape[0]) if known else -1
    return (
        len(value) if hasattr(value, "__len__") and not isinstance(value, dict) else -1
    )


def n_samples_of(X: Any) -> int:
    """Return the number of samples in what a search or a choice is given; raise if it has none."""
    if not isinstance(X, str | bytes | set | type) and (number := n_entries(X)) >= 0:
        return number
    cure = "Views are a ViewStack, and similarities a SimilarityStack"
    raise ValueError(f"X must have an entry for every sample, got {shown(X)}. {cure}.")


def takes(estimator: Any, name: str) -> bool:
    """Return whether fit of an estimator takes an argument of a name."""
    taken = signature(estimator.fit).parameters if hasattr(estimator, "fit") else {}
    return name in taken or any(one.kind is one.VAR_KEYWORD for one in taken.values())


def check_fit_params(estimator: Any, given: dict[str, Any]) -> None:
    """Raise where fit of an estimator does not take what it is given by name."""
    if unknown := [name for name in given if name == "X" or not takes(estimator, name)]:
        wanted = f"what fit of {type(estimator).__name__} takes besides X"
        raise TypeError(f"fit_params must hold {wanted}, got {shown(unknown[0])}.")


def holds_features(estimator: Any, X: Any) -> bool:
    """Return whether an estimator finds clusters in one table of features, by what it takes.

    Neither pairs of samples are, nor labels of partitions, nor several sources.
    """
    step = last_step(estimator)[1]
    if holds_labels(step) or pairwise_input(estimator, X) or pairwise_input(step):
        return False
    encoded = isinstance(estimator, Pipeline) and len(estimator) > 1  # from texts, say
    return encoded or isinstance(X, list | tuple) or len(getattr(X, "shape", ())) == 2


def holds_labels(estimator: Any) -> bool:
    """Return whether what an estimator is given are labels, by scikit-learn's tag."""
    return bool(get_tags(estimator).input_tags.categorical)


def _cut_by_positions(X: Any, pairs: str | None) -> Any:
    """Return samples in a container of which rows are taken, or of pairs also columns."""
    if hasattr(X, "tocsr"):
        return canonical(check_readable(X).tocsr())
    table = (
        hasattr(X, "columns")
        or hasattr(X, "__dask_graph__")
        or isinstance(X, list | tuple)
    )
    if pairs and table:
        check_readable(X)
        X = in_own_order(X, "X")
    return X if hasattr(X, "iloc") or not (pairs and table) else np.asarray(X)


def _is_scalar(value: Any) -> bool:
    """Return whether a value is the same for all samples, so that it is not cut."""
    return value is None or isinstance(value, str | bool | Real)


def _require_entries(value: Any, n_samples: int, name: str, cure: str = "") -> None:
    """Raise unless a value has one entry for each sample; `cure` says what would have."""
    if (count := n_entries(value)) != n_samples:
        entries = "" if count < 0 else f" with {counted(count, 'entry')}"
        wanted = f"one entry for each of the {n_samples} samples, to be cut like them"
        raise ValueError(
            f"{name} must have {wanted}; got {type(value).__name__}{entries}.{cure}"
        )


def _require_all_samples(
    estimator: Any, X: Any, pairs: str | None, advice: str
) -> None:
    """Raise where X is seen to be a part of the samples that the estimator was fitted on."""
    if pairs:
        shape = tuple(getattr(X, "shape", ()))
        if len(shape) < 2 or shape[0] != shape[1]:
            wanted = "the similarities, or distances, of all pairs of samples"
            got = f"{type(X).__name__} of shape {shape}"
            raise ValueError(f"X must hold {wanted}, got {got}. {advice}.")
    labels = getattr(last_step(estimator)[1], "labels_", None)
    if labels is not None and len(labels) != n_entries(X):
        told = f"{counted(n_entries(X), 'sample')}, but the estimator was fitted on {len(labels)}"
        cure = "for other samples, give the scorer an estimator that is not fitted"
        raise ValueError(f"X has {told}. {advice}; or, {cure}.")


def check_whole(samples: Samples, name: str) -> None:
    """Raise where pairs of samples are seen to be those between two halves of a split."""
    X = samples.X
    graph = (
        hasattr(X, "tocsr") and samples.pairs == "similarities"
    )  # distances are directed
    layers: Any = [X] if graph else []  # a container checks its own
    if isinstance(X, np.ndarray) or hasattr(X, "iloc"):
        numbers = read_table(X, allow_nd=True, ensure_all_finite=False)
        layers = np.moveaxis(numbers.reshape(*X.shape[:2], -1), 2, 0)
    for layer in layers:
        require_symmetric(layer, name)


# --- what copies say of it ---------------------------------------------------------------------


def labels_by_copy(
    samples: Samples,
    size: int,
    asked: np.ndarray | None,
    estimator: Any,
    rng: np.random.Generator,
) -> tuple[np.ndarray, int]:
    """Return the clusters of some samples, or all, by a copy fitted to some, drawn at random.

    Parameters
    ----------
    samples : Samples
    size : int
        Samples that it is fitted on.
    asked : ndarray of int or None
        Samples whose clusters are returned; None: all.
    estimator : estimator
    rng : Generator

    Returns
    -------
    labels : ndarray of int
        Numbered from 0; -1: in none.
    n_found : int
        Clusters that have any of the samples that the copy was fitted on.
    """
    rows = np.sort(rng.choice(n_entries(samples.X), size, replace=False, shuffle=False))
    model = fitted_copy(estimator, samples.training(rows), rng)
    n_found = number_found(model, samples.compared_with(rows, rows))
    return _predicted(model, rows, samples, asked), n_found


def fitted_copy(estimator: Any, training: Training, rng: np.random.Generator) -> Any:
    """Return a copy of an estimator, with seeds of its own where it has none, fitted."""
    positional, named = training
    return seeded(clone(estimator), rng).fit(*positional, **named)


def number_found(model: Any, X: Any) -> int:
    """Return how many clusters have any of the samples that an estimator was fitted on."""
    return int(labels_of_fit(model, X).max(initial=-1)) + 1


def labels_of_fit(model: Any, X: Any) -> np.ndarray:
    """Return the clusters of the samples that an estimator was fitted on, numbered from 0."""
    labels = getattr(last_step(model)[1], "labels_", None)
    return _numbered(model.predict(X) if labels is None else labels, n_entries(X))


def _predicted(
    model: Any, rows: np.ndarray, samples: Samples, asked: np.ndarray | None
) -> np.ndarray:
    """Return the clusters of some samples, or all: by `predict`, or that of the nearest fitted."""
    unseen, step = samples.compared_with(rows, asked), last_step(model)[1]
    made = samples.pairs is None and pairwise_input(
        step
    )  # of samples in one table, by a pipeline
    if hasattr(model, "predict") and not made:
        return _numbered(model.predict(unseen), n_entries(unseen))
    seen, labels = take_samples(samples.X, rows), _numbered(step.labels_, len(rows))
    if samples.pairs is not None:
        unseen = np.asarray(unseen) if hasattr(unseen, "iloc") else unseen
        told = labels_of_pairs(unseen, samples.pairs, labels)
    else:
        if isinstance(model, Pipeline) and len(model) > 1 and not made:
            seen, unseen = (model[:-1].transform(some) for some in (seen, unseen))
        told = KNeighborsClassifier(1).fit(seen, labels).predict(unseen)
    asked = np.arange(len(told)) if asked is None else asked
    fitted = np.isin(
        asked, rows
    )  # whatever the diagonal of similarities holds, and equal rows
    told[fitted] = labels[np.searchsorted(rows, asked[fitted])]
    return _numbered(told, len(told))


def _numbered(labels: Any, n_samples: int) -> np.ndarray:
    """Return clusters numbered from 0; -1: in none."""
    if np.shape(labels) != (n_samples,):
        wanted = f"give each of {n_samples} samples a label"
        raise ValueError(
            f"an estimator must {wanted}, got labels of shape {np.shape(labels)}."
        )
    return encode([labels], "labels")[0][:, 0]


def seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """Set every `random_state` of an estimator that is None; return the estimator."""
    given = estimator.get_params()
    names = [name for name in sorted(given) if name.split("__")[-1] == "random_state"]
    unset = [name for name in names if given[name] is None]
    return estimator.set_params(**{name: int(rng.integers(SEEDS)) for name in unset})
