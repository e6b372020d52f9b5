"""Copies of a clusterer, each fitted on a subsample, and the clusters that they predict."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.neighbors import KNeighborsClassifier

from nmfcluster._arrays.arguments import last_step
from nmfcluster._arrays.jobs import one_thread
from nmfcluster._arrays.labels import encode
from nmfcluster._compat import take_samples
from nmfcluster.model_selection.checks import is_scalar, n_entries

SEEDS = 2**31 - 1  # seeds are below it, as RandomState of every platform takes them


class Samples(NamedTuple):
    """All samples, and what goes with them into `fit`."""

    X: Any
    y: Any  # None: fit is not given a target
    arguments: dict[str, Any]  # of fit besides X and y
    pairwise: bool  # X is cut on both axes

    def training(self, rows: np.ndarray) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what `fit` is given for some samples: by position, and by name."""
        X = self.X[np.ix_(rows, rows)] if self.pairwise else take_samples(self.X, rows)
        target = () if self.y is None else (take_samples(self.y, rows),)
        return (X, *target), {
            name: value if is_scalar(value) else take_samples(value, rows)
            for name, value in self.arguments.items()
        }

    def compared_with(self, rows: np.ndarray, asked: np.ndarray | None = None) -> Any:
        """Return what `predict` is given for some samples, or all, after a fit on `rows`."""
        if self.pairwise:
            asked = np.arange(n_entries(self.X)) if asked is None else asked
            return self.X[np.ix_(asked, rows)]
        return self.X if asked is None else take_samples(self.X, asked)


def labels_by_copy(
    estimator: Any,
    samples: Samples,
    size: int,
    rng: np.random.Generator,
    asked: np.ndarray | None = None,
) -> np.ndarray | Exception:
    """Return the clusters of some samples, or all, by a copy fitted on some; or why there are none.

    Parameters
    ----------
    estimator : estimator
    samples : Samples
    size : int
        Samples that it is fitted on.
    rng : Generator
    asked : ndarray of int, default=None
        Samples whose clusters are returned; all by default.

    Returns
    -------
    ndarray or Exception
    """
    n_samples = n_entries(samples.X)
    rows = np.sort(rng.choice(n_samples, size, replace=False, shuffle=False))
    training = samples.training(rows)
    try:
        with one_thread():
            model = fitted_copy(estimator, training, rng)
            labels = np.asarray(predicted_labels(model, samples, rows, asked))
    except Exception as error:
        return error
    expected = (n_samples if asked is None else len(asked),)
    if labels.shape != expected:
        return ValueError(f"predict must return {expected[0]} labels, got shape {labels.shape}.")
    return labels


def labels_by_halves(
    estimator: Any, samples: Samples, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray] | Exception:
    """Return the clusters of one half of the samples: its own, and by the fit to the other half.

    Clusters are numbered from 0; -1: in none. Of an odd number of samples one is left out.
    """
    order = rng.permutation(n_entries(samples.X))
    half = len(order) // 2
    first, second = np.sort(order[:half]), np.sort(order[half : 2 * half])
    try:
        with one_thread():
            teacher = fitted_copy(estimator, samples.training(first), rng)
            told = predicted_labels(teacher, samples, first, second)
            model = fitted_copy(estimator, samples.training(second), rng)
            own = labels_of_fit(model, samples.compared_with(second, second))
        return numbered(own, half), numbered(told, half)
    except Exception as error:
        return error


def fitted_copy(
    estimator: Any, training: tuple[tuple[Any, ...], dict[str, Any]], rng: np.random.Generator
) -> Any:
    """Return a copy of an estimator, with seeds of its own where it has none, fitted."""
    positional, named = training
    return seeded(clone(estimator), rng).fit(*positional, **named)


def labels_of_fit(model: Any, X: Any) -> Any:
    """Return the clusters of the samples that an estimator was fitted on."""
    labels = getattr(last_step(model)[1], "labels_", None)
    return model.predict(X) if labels is None else labels


def numbered(labels: Any, n_samples: int) -> np.ndarray:
    """Return clusters numbered from 0; -1: in none."""
    if np.shape(labels) != (n_samples,):
        raise ValueError(
            f"an estimator must give each of {n_samples} samples a label, got labels of shape "
            f"{np.shape(labels)}."
        )
    return encode([labels], "labels")[0][:, 0]


def predicted_labels(
    model: Any, samples: Samples, rows: np.ndarray, asked: np.ndarray | None = None
) -> Any:
    """Return the clusters of some samples, or all: by `predict`, or that of the nearest fitted."""
    unseen = samples.compared_with(rows, asked)
    if hasattr(model, "predict"):
        return model.predict(unseen)
    seen = take_samples(samples.X, rows)
    return KNeighborsClassifier(1).fit(seen, last_step(model)[1].labels_).predict(unseen)


def seeded(estimator: Any, rng: np.random.Generator) -> Any:
    """Set every `random_state` of an estimator that is None; return the estimator."""
    unset = [
        name
        for name, value in sorted(estimator.get_params().items(), key=lambda item: item[0])
        if name.split("__")[-1] == "random_state" and value is None
    ]
    return estimator.set_params(**{name: int(rng.integers(SEEDS)) for name in unset})
