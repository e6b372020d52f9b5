"""The objective of a data matrix, the best rows of W, and known components."""

import reprlib
from dataclasses import replace

import numpy as np

from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.sparse_products import split_missing
from nmfcluster._utils.storage import row_sums, scaled_columns, total
from nmfcluster._utils.validation import (
    format_count,
    read_matrix,
    reorder_columns,
    warn,
)
from nmfcluster.meta.device import current_device
from nmfcluster.meta.divergence import Divergence
from nmfcluster.meta.squares import MatrixObjective

Objective = MatrixObjective | Divergence

LOSSES: dict[str, type[Objective]] = {
    "frobenius": MatrixObjective,
    "kullback-leibler": Divergence,
}


def make_objective(
    X,
    loss,
    sparsity=0.0,
    penalty="l2",
    fixed=(),
):
    """Return the objective of X, where NaN marks entries that were not observed.

    Parameters
    ----------
    X : ndarray or csr_array of shape (n, p)
    loss : str
        One of `LOSSES`.
    sparsity : float, default=0
    penalty : str, default="l2"
    fixed : ndarray of shape (n_fixed, p), default=()
        The first rows of H, which stay as they are.
    """
    X, missing = split_missing(X)
    # a penalty needs squares, all entries observed, and no fixed components
    if sparsity and loss != "frobenius":
        raise ValueError(f"sparsity={sparsity} needs loss='frobenius', got {loss!r}.")
    if sparsity and missing is not None:
        raise ValueError(f"X must not hold NaN with sparsity={sparsity}: impute it.")
    if sparsity and len(fixed):
        raise ValueError(f"fixed_components need sparsity=0, got sparsity={sparsity}.")
    device = None if sparsity else current_device.get()  # numpy computes penalised runs
    objective = LOSSES[loss](
        X, missing, device=device, sparsity=sparsity, penalty=penalty
    )
    if len(fixed):
        objective = replace(objective, fixed=objective.scale_components(fixed))
    return objective


def drop_unexplained(objective, H, names=None):
    """Return the objective without counts in columns where all components are 0, and warn.

    Least-squares objectives keep these columns. `names` are the names of the columns.
    """
    X = objective.X
    unexplained = ~H.any(axis=0) & (row_sums(X.T) > 0)
    if isinstance(objective, MatrixObjective) or not unexplained.any():
        return objective
    if names is None:
        names = np.arange(H.shape[1])
    columns = names[unexplained].tolist()
    kept = scaled_columns(X, ~unexplained)
    warn(
        f"All components are 0 in {format_count(len(columns), 'column')} of X, "
        f"{reprlib.repr(columns)}: {total(X) - total(kept):g} of {total(X):g} counts "
        "are left out. Add a component that can explain them, or drop the columns."
    )
    return replace(objective, X=kept)


def order_of_samples(objective, weights=None):
    """Return the canonical order in which samples are fitted."""
    tables = [objective.X]
    if objective.missing is not None:
        tables.append(objective.missing)
    return canonical_order(*tables, weights=weights)


def fit_rows(objective, H):
    """Return the best W for H, identical to the last bit for every order of the rows."""
    order = order_of_samples(objective)
    if (np.diff(order.samples) < 0).any():
        objective = objective.take_rows(order.samples)
    return objective.fit_rows(H)[order.first_ranks]


def read_fixed_components(components, columns, dtype, n_clusters, n_features):
    """Return the fixed components, (n_fixed, n_features), or None if there are none.

    `columns` are the names of the columns of X, if it is a data frame.
    """
    if components is None:
        return None
    fixed = read_components(components, "fixed_components", columns, dtype)
    if fixed.shape[1] != n_features or len(fixed) > n_clusters:
        raise ValueError(
            f"fixed_components must have {n_features} columns, and at most "
            f"n_clusters={n_clusters} rows, got shape {fixed.shape}."
        )
    return fixed


def read_components(components, name, columns, dtype):
    """Return known components, none of them 0, with columns in the order of the names of X."""
    components = reorder_columns(columns, components, name, "X")
    read = read_matrix(
        components,
        name,
        dtype=dtype,
        order="C",
        accept_sparse=False,
        ensure_non_negative=True,
    )
    if not read.any(axis=1).all():
        raise ValueError(
            f"{name} must hold an entry above 0 in each row: drop rows of zeros."
        )
    return read
