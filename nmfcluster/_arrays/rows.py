"""Names of samples: the index of a data frame, by which two tables of the same samples are matched.

Positions count where a side has no index, or that of pandas for tables without one, 0, 1, 2, ...
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nmfcluster._arrays.arguments import warn


def row_names(table: Any) -> Any:
    """Return the index of a pandas data frame or series, or itself; None for anything else."""
    index = table if hasattr(table, "get_indexer") else getattr(table, "index", None)
    return index if hasattr(index, "get_indexer") else None


def order_of(own: Any, other: Any, name: str, owner: str = "X") -> np.ndarray | None:
    """Return the rows of another table in the order of a table's rows, or None if they are.

    Parameters
    ----------
    own, other : pandas Index or None
        Names of the rows of both.
    name : str
        What a message calls the other table.
    owner : str, default="X"
        What a message calls the table.

    Raises
    ------
    ValueError
        If both have an index, and do not have the same names.
    """
    if own is None or other is None or len(own) != len(other) or own.equals(other):
        return None
    if own.is_unique and other.is_unique:
        order = np.asarray(other.get_indexer(own))
        if (order >= 0).all():
            warn(
                f"{name} has the samples of {owner} in another order, by the index: its rows are "
                f"put into the order of {owner}. Without an index they are taken by position."
            )
            return order
    if _is_default(own) or _is_default(other):
        return None
    raise ValueError(
        f"{name} and {owner} have different names of samples in their index, or names that occur "
        "twice, so that it is not known which rows belong together: give both the same index, or "
        "arrays, whose rows are taken by position."
    )


def _is_default(index: Any) -> bool:
    """Return whether an index holds the positions, as that of a table that was given none."""
    numbers = np.asarray(index)
    return numbers.dtype.kind in "iu" and np.array_equal(numbers, np.arange(len(numbers)))
