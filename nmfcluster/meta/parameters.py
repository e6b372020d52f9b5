"""What the parameters of an estimator ask for, and what comes with its table."""

from __future__ import annotations

from numbers import Number
from typing import Any

import numpy as np
from sklearn.utils import check_array

from nmfcluster._arrays.tables import check_readable, columns_in_order_of, in_order_of
from nmfcluster.meta.divergence import Divergence
from nmfcluster.meta.squares import MatrixObjective

Objective = MatrixObjective | Divergence  # what X is fitted by

LOSSES = ("frobenius", "kullback-leibler")


def objective_of_table(model: Any, X: Any, fixed: np.ndarray | None = None) -> Objective:
    """Return the objective of a table, in which NaN stands for what is not observed.

    Parameters
    ----------
    model : NMFMetaCluster
    X : ndarray or csr_array of shape (n, p)
    fixed : ndarray of shape (n_fixed, p), default=None
        The first rows of H, if they stay as they are.
    """
    sparsity = model.sparsity
    if sparsity and model.loss != "frobenius":
        raise ValueError(f"sparsity={sparsity} needs loss='frobenius', got {model.loss!r}.")
    objective: Objective
    if model.loss == "frobenius":
        objective = MatrixObjective.of(X, sparsity=sparsity, penalty=model.penalty)
    else:
        objective = Divergence.of(X)
    if sparsity and objective.missing is not None:
        raise ValueError(
            f"X must not hold NaN with sparsity={sparsity}: entries that are not observed need "
            "sparsity=0."
        )
    if fixed is None:
        return objective
    if sparsity:
        raise ValueError(f"fixed_components need sparsity=0, got sparsity={sparsity}.")
    return objective.holding(fixed)


def read_weights(
    sample_weight: Any, rows: Any, n_samples: int, n_clusters: int
) -> np.ndarray | None:
    """Return how much every sample counts, (n_samples,); None if all count alike.

    `rows` are the names of the samples, if X is a data frame.
    """
    if sample_weight is None:
        return None
    name = "sample_weight"
    check_readable(sample_weight, name)
    values = [sample_weight] if isinstance(sample_weight, Number) else sample_weight
    values = values if rows is None else in_order_of(rows, values, name)
    weights = check_array(values, ensure_2d=False, dtype=np.float64, input_name=name)
    if weights.shape != (n_samples,):
        raise ValueError(
            f"sample_weight must hold a number for each of {n_samples} samples, got shape "
            f"{weights.shape}."
        )
    if weights.min() < 0:
        raise ValueError(f"sample_weight must be at least 0, got {weights.min():.3g}.")
    if (counting := np.count_nonzero(weights)) < n_clusters:
        raise ValueError(
            f"sample_weight must be above zero for at least n_clusters={n_clusters} samples, it is "
            f"for {counting}."
        )
    return np.asarray(weights)


def read_fixed(model: Any, columns: Any, dtype: Any) -> np.ndarray | None:
    """Return the components that are fixed, (n_fixed, n_features); None if there are none.

    `columns` are the names of the columns of X, if it is a data frame.
    """
    if model.fixed_components is None:
        return None
    name, width = "fixed_components", model.n_features_in_
    check_readable(model.fixed_components, name)
    components = columns_in_order_of(columns, model.fixed_components, name, "X")
    fixed = check_array(components, dtype=dtype, order="C", input_name=name)
    if fixed.shape[1] != width:
        raise ValueError(
            f"{name} must have a column for each of {width} features, got shape {fixed.shape}."
        )
    if len(fixed) > model.n_clusters:
        raise ValueError(
            f"{name} must be at most n_clusters={model.n_clusters}, got {len(fixed)}: those that "
            "are found beside them count, too."
        )
    if fixed.min() < 0:
        raise ValueError(f"{name} must be at least 0, got an entry of {fixed.min():.3g}.")
    if (empty := np.flatnonzero(~fixed.any(axis=1))).size:
        raise ValueError(f"{name} must each hold an entry above 0; row {empty[0]} is 0.")
    return np.asarray(fixed)
