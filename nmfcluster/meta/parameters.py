"""What the parameters of an estimator ask for, and what comes with its table."""

import reprlib
from dataclasses import replace
from typing import Any

import numpy as np

from nmfcluster._utils.order import CanonicalOrder, canonical_order
from nmfcluster._utils.sparse_products import split_missing
from nmfcluster._utils.storage import row_sums, scaled_columns, total
from nmfcluster._utils.validation import columns_in_order_of, counted, read_table, warn
from nmfcluster.meta.device import current_device
from nmfcluster.meta.divergence import Divergence
from nmfcluster.meta.squares import MatrixObjective

Objective = MatrixObjective | Divergence  # what X is fitted by

LOSSES = ("frobenius", "kullback-leibler")


def objective_of_table(
    model: Any, X: Any, fixed: np.ndarray | None = None
) -> Objective:
    """Return the objective of a table, in which NaN stands for what is not observed.

    Parameters
    ----------
    model : NMFMetaCluster
    X : ndarray or csr_array of shape (n, p)
    fixed : ndarray of shape (n_fixed, p), default=None
        The first rows of H, if they stay as they are.
    """
    (X, missing), sparsity = split_missing(X), model.sparsity
    objective: Objective = Divergence(X, missing)
    if model.loss == "frobenius":
        objective = MatrixObjective(
            X, missing, sparsity=sparsity, penalty=model.penalty
        )
    known = fixed is not None and len(fixed) == model.n_clusters
    if (
        not sparsity and not known
    ):  # with a penalty runs are numpy's, and usages alone are, too
        objective = replace(objective, device=current_device.get())
    # a penalty is known for squares of all entries, and of components that are all free
    if sparsity and model.loss != "frobenius":
        raise ValueError(
            f"sparsity={sparsity} needs loss='frobenius', got {model.loss!r}."
        )
    if sparsity and missing is not None:
        raise ValueError(f"X must not hold NaN with sparsity={sparsity}.")
    if sparsity and fixed is not None:
        raise ValueError(f"fixed_components need sparsity=0, got sparsity={sparsity}.")
    if fixed is None:
        return objective
    objective = replace(objective, fixed=objective.scaled_columns(fixed))
    return explained(model, objective, fixed) if known else objective


def explained(model: Any, objective: Objective, H: np.ndarray) -> Objective:
    """Return the objective without counts in columns that no component has; warn of these."""
    lost = ~H.any(axis=0) & (row_sums(objective.X.T) > 0)
    if model.loss == "frobenius" or not lost.any():
        return objective
    names = getattr(model, "feature_names_in_", np.arange(len(lost)))[lost].tolist()
    kept = scaled_columns(objective.X, ~lost)
    left_out = f"{total(objective.X) - total(kept):g} of {total(objective.X):g} counts are left out"
    where = f"{counted(len(names), 'column')} of X, {reprlib.repr(names)}"
    warn(
        f"All components are 0 in {where}: {left_out}, as no component can explain them."
    )
    return replace(objective, X=kept)


def order_of(objective: Objective, weights: np.ndarray | None = None) -> CanonicalOrder:
    """Return the order in which samples are fitted."""
    missing = () if objective.missing is None else (objective.missing,)
    return canonical_order(objective.X, *missing, weights=weights)


def strengths(objective: Objective, H: np.ndarray) -> np.ndarray:
    """Return the best W for H, to the last bit the same for rows in any order."""
    order = order_of(objective)
    return objective.taken(order.samples).rows(H)[order.back]


def read_fixed(model: Any, columns: Any, dtype: Any) -> np.ndarray | None:
    """Return the components that are fixed, (n_fixed, n_features); None if there are none.

    `columns` are the names of the columns of X, if it is a data frame.
    """
    if model.fixed_components is None:
        return None
    name, width = "fixed_components", model.n_features_in_
    fixed = read_components(model.fixed_components, name, columns, dtype)
    if fixed.shape[1] != width or len(fixed) > model.n_clusters:
        needed = f"{width} columns, and at most n_clusters={model.n_clusters} rows"
        raise ValueError(f"{name} must have {needed}, got shape {fixed.shape}.")
    return fixed


def read_components(components: Any, name: str, columns: Any, dtype: Any) -> np.ndarray:
    """Return known components, none of them 0, with their columns in the order of X's names."""
    components = columns_in_order_of(columns, components, name, "X")
    wanted = {"dtype": dtype, "order": "C", "accept_sparse": False}
    read = read_table(components, name, ensure_non_negative=True, **wanted)
    if not read.any(axis=1).all():
        raise ValueError(f"{name} must each hold an entry above 0.")
    return np.asarray(read)
