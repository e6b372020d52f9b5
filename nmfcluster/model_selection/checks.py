"""What a search hands to a scorer, checked: the estimator, all samples, their number."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_array, get_tags
from sklearn.utils.validation import check_is_fitted

from nmfcluster._arrays.arguments import counted, last_step, shown
from nmfcluster._arrays.storage import require_symmetric
from nmfcluster._arrays.tables import check_readable
from nmfcluster._compat import RaisedLater, hides_errors

_NAMES = ("n_clusters", "n_components")  # of the parameter that is the number of clusters
_ADVICE = "{} needs all samples: give the search cv=FullSampleSplit()"


def raised(error: Exception) -> Any:
    """Raise what is wrong with the way a scorer is used, so that it reaches the user.

    Returns what a scorer has to return where a search would make NaN of its errors: with NaN for
    every candidate the search would take the first.
    """
    if hides_errors(depth=2):
        return RaisedLater(error)
    raise error


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


def require_all_samples(
    estimator: Any, X: Any, pairwise: bool, scorer: str = "StabilityScorer"
) -> None:
    """Raise where X is seen to be a part of the samples that the estimator was fitted on."""
    advice = _ADVICE.format(scorer)
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


def name_of_number(estimator: Any) -> str:
    """Return the name of the parameter that is the number of clusters; raise if there is none."""
    prefix, step = last_step(estimator)
    known = step.get_params(deep=False) if hasattr(step, "get_params") else {}
    for name in _NAMES:
        if name in known and hasattr(step, "fit"):
            return prefix + name
    raise TypeError(
        "estimator must have a parameter n_clusters, or n_components as mixtures have, got "
        f"{shown(estimator)}."
    )


def require_clusters(estimator: Any) -> None:
    """Raise unless an estimator is fitted, and says to which clusters its samples belong."""
    check_is_fitted(estimator)
    if not hasattr(last_step(estimator)[1], "labels_") and not hasattr(estimator, "predict"):
        raise TypeError(
            f"estimator must have labels_ or predict, for its clusters to be scored; "
            f"{type(estimator).__name__} has neither."
        )


def read_features(X: Any, pairwise: bool, scorer: str, sparse: str = "") -> Any:
    """Return features as an array, or as CSR.

    Parameters
    ----------
    X : object
    pairwise : bool
        Whether they are no features.
    scorer : str
        Its name.
    sparse : str, default=""
        What to do instead of giving it a sparse matrix; "": nothing, it takes them.
    """
    if pairwise:
        raise ValueError(
            f"X must hold features for {scorer}, but that of a pairwise estimator holds "
            "similarities."
        )
    check_readable(X)
    table = check_array(X, accept_sparse="csr", dtype="numeric", input_name="X")
    if sparse and hasattr(table, "toarray"):
        if not hasattr(X, "toarray"):  # a data frame of sparse columns
            sparse = sparse.replace("X.toarray()", "X.sparse.to_dense()")
        raise ValueError(f"X must be dense for {scorer}, got {type(X).__name__}: {sparse}.")
    return table
