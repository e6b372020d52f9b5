"""What is handed to a scorer, checked: the estimator, all samples, and what goes with them."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping

from nmfcluster._arrays.arguments import counted, last_step, warn
from nmfcluster._arrays.storage import require_symmetric
from nmfcluster.constraints import PairwiseConstraints


def n_entries(value: Any) -> int:
    """Return the number of samples that a value has entries for; -1 if it has no length."""
    if hasattr(value, "shape"):
        return int(value.shape[0]) if len(value.shape) else -1
    return len(value) if hasattr(value, "__len__") and not isinstance(value, dict) else -1


def is_scalar(value: Any) -> bool:
    """Return whether a value is the same for all samples, so that it is not cut."""
    return value is None or isinstance(value, str | bool | Real)


def require_entries(value: Any, n_samples: int, name: str, cure: str = "") -> None:
    """Raise unless a value has one entry for each sample; `cure` says what would have."""
    count = n_entries(value)
    if count != n_samples:
        entries = "" if count < 0 else f" with {counted(count, 'entry')}"
        raise ValueError(
            f"{name} must have one entry for each of the {n_samples} samples, to be cut like "
            f"them; got {type(value).__name__}{entries}.{cure}"
        )


def is_pairwise(estimator: Any, must_predict: bool = True) -> bool:
    """Return whether the input of an estimator is pairwise.

    Raises
    ------
    TypeError
        If it does not predict, and must, as it must for similarities.
    """
    if not hasattr(estimator, "fit") or not hasattr(estimator, "get_params"):
        raise TypeError(
            "estimator must have fit and get_params, as scikit-learn's do, got "
            f"{type(estimator).__name__}."
        )
    pairwise = bool(get_tags(estimator).input_tags.pairwise)
    if (must_predict or pairwise) and not hasattr(estimator, "predict"):
        raise TypeError(
            f"estimator must have a method predict, to assign samples that it was not fitted on "
            f"to clusters; {type(estimator).__name__} has none."
        )
    return pairwise


def require_all_samples(estimator: Any, X: Any, pairwise: bool, advice: str) -> None:
    """Raise where X is seen to be a part of the samples that the estimator was fitted on.

    `advice` says how all of them are given.
    """
    if pairwise:
        _require_all_pairs(X, advice)
    labels = getattr(last_step(estimator)[1], "labels_", None)
    if labels is not None and len(labels) != n_entries(X):
        raise ValueError(
            f"X has {counted(n_entries(X), 'sample')}, but the estimator was fitted on "
            f"{len(labels)}. {advice}; or, for other samples, give the scorer an estimator that is "
            "not fitted."
        )


def _require_all_pairs(X: Any, advice: str) -> None:
    """Raise unless X can hold the similarities of all pairs of samples."""
    if hasattr(X, "columns"):
        raise TypeError(
            f"X of a pairwise estimator must be an array, a sparse matrix or a container that "
            f"X[np.ix_(rows, columns)] cuts, got {type(X).__name__}."
        )
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) < 2 or shape[0] != shape[1]:
        raise ValueError(
            f"X must hold the similarities of all pairs of samples, of shape (n_samples, "
            f"n_samples) or with more axes, got shape {tuple(shape)}. {advice}."
        )
    if getattr(getattr(X, "dtype", None), "kind", "f") == "c":
        raise ValueError(f"X must hold real numbers, got dtype {X.dtype}.")
    for layer in _layers(X):
        require_symmetric(layer, f"X ({advice})")


def _layers(X: Any) -> Any:
    """Return the matrices that an array holds; none for a container, which checks its own."""
    if isinstance(X, np.ndarray):
        return np.asarray(X).reshape(*X.shape[:2], -1).transpose(2, 0, 1)
    return [X] if hasattr(X, "tocsr") else []


def arguments_of_fit(
    estimator: Any, handed: dict[str, Any], fit_params: dict[str, Any], n_samples: int, caller: str
) -> dict[str, Any]:
    """Return what `fit` takes besides X and y, with entries for all samples.

    Parameters
    ----------
    estimator : estimator
        With metadata routing enabled, its request decides what `fit` is given.
    handed : dict
        What a search handed to the scorer; None: not handed over.
    fit_params : dict
        What the user gave for `fit`, by name.
    n_samples : int
    caller : str
        What the user called, or the scorer.
    """
    handed = {name: value for name, value in handed.items() if value is not None}
    if get_config()["enable_metadata_routing"]:
        router = MetadataRouter(owner=caller).add(
            estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )
        handed = router.route_params(caller="fit", params=handed)["estimator"]["fit"]
    twice = sorted(handed.keys() & fit_params)
    if twice:
        raise TypeError(f"{twice[0]!r} is given both in fit_params and to the scorer.")
    arguments = {**handed, **fit_params}
    for name, value in arguments.items():
        prefix, _, last = name.rpartition("__")
        if last in ("must_link", "cannot_link") and value is not None:
            place = f"{prefix}__constraints" if prefix else "constraints"
            raise ValueError(
                f"{name} in fit_params names samples by their positions, and is not cut like "
                f"them: give fit_params={{{place!r}: PairwiseConstraints({n_samples}, must_link, "
                "cannot_link)}."
            )
        if not is_scalar(value):
            pairs = "Pairs are a PairwiseConstraints(n_samples, must_link, cannot_link)."
            cure = f" {pairs}" if last == "constraints" else ""
            require_entries(value, n_samples, f"{name} in fit_params", cure)
    return arguments


def warn_of_lost_constraints(estimator: Any, arguments: dict[str, Any], scorer: str) -> None:
    """Warn where the estimator was fitted under constraints that its copies are not given."""
    pairs = getattr(last_step(estimator)[1], "constraints_", None)
    if "constraints" in arguments or not isinstance(pairs, PairwiseConstraints):
        return
    if len(pairs.must_link) or len(pairs.cannot_link):
        warn(
            f"{scorer} scores copies without the constraints that the estimator was fitted under: "
            "give them as fit_params={'constraints': pairs}, or enable metadata routing."
        )
