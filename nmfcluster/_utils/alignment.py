"""Several tables of the same samples, matched by the names in their index."""

from typing import Any

import numpy as np

import nmfcluster._utils.validation as by_index
from nmfcluster._utils.validation import shown, warn


def in_one_order(
    tables: list[Any], names: list[str]
) -> tuple[list[Any], list[Any], Any, Any]:
    """Return similarities with rows and columns in the order of the first named data frame.

    The columns of one that is square by its names come in the order of its rows. If all are, and
    differ in their names, they are of some of the samples each.

    Parameters
    ----------
    tables : list of object
        What is no data frame stays as it is.
    names : list of str
        What a message calls them.

    Returns
    -------
    tables : list of object
    held : list of {ndarray of bool, None}
        Which of all samples a table is of; None: it has a row for each.
    index, columns : pandas Index or None
        The names of rows and of columns, if any of them has some.
    """
    own = list(map(by_index.sample_names, tables))
    ordered = list(tables)
    held: list[Any] = [None for _ in tables]
    if all(map(_is_square, own, tables)) and len(set(map(frozenset, own))) > 1:
        union = union_of(own, names)
        held = [union.isin(index) for index in own]
        for i, table in enumerate(map(by_index.in_own_order, tables, names)):
            order = own[i].get_indexer(union[held[i]])
            ordered[i] = (
                table.iloc[order, order] if (np.diff(order) < 0).any() else table
            )
        return ordered, held, union, union
    rows = [by_index.row_names(T) if hasattr(T, "columns") else None for T in tables]
    frames = [i for i, index in enumerate(rows) if index is not None]
    if not frames:
        return ordered, held, None, None
    frames.sort(key=lambda i: own[i] is None)  # what has no names is taken by position
    owner = names[frames[0]]
    first = ordered[frames[0]] = by_index.in_own_order(tables[frames[0]], owner)
    for i in frames[1:]:
        if (
            own[i] is None
            and own[frames[0]] is not None
            and first.index.dtype.kind in "iu"
        ):
            told = f"{names[i]} has the index 0, 1, 2, ..., and is taken by position"
            beside = f"beside the numbers that name the samples of {owner}"
            warn(f"{told} {beside}: text, S.index.astype(str), is a name.")
        order = by_index.order_of(first.index, rows[i], names[i], owner)
        table = tables[i] if order is None else tables[i].iloc[order]
        ordered[i] = by_index.columns_in_order_of(first.columns, table, names[i], owner)
    return ordered, held, own[frames[0]], first.columns


def _is_square(own: Any, table: Any) -> bool:
    """Return whether columns have the names of the rows; numbers in a file can be text in one."""
    columns = getattr(table, "columns", None)
    if own is None or columns is None:
        return False
    return set(own) == set(columns) or list(map(str, own)) == list(map(str, columns))


def with_all_samples(tables: list[Any], names: list[str]) -> tuple[list[Any], Any]:
    """Return tables with a row for every sample that one of them has.

    Parameters
    ----------
    tables : list of {ndarray, csr_array, data frame}
    names : list of str
        What a message calls them.

    Returns
    -------
    tables : list of {ndarray, csr_array, data frame}
        With rows of NaN for samples that a data frame does not have.
    index : Index or None
        Names of the samples, in the order in which they occur; None if no table has any.

    Raises
    ------
    ValueError
        If it is not known which rows belong together.
    """
    named = {
        i: own
        for i, T in enumerate(tables)
        if (own := by_index.sample_names(T)) is not None
    }
    index = union_of(list(named.values()), [names[i] for i in named]) if named else None
    n = tables[0].shape[0] if index is None else len(index)
    same = all(own.equals(index) for own in named.values())
    for i, (table, name) in enumerate(zip(tables, names, strict=True)):
        if i not in named and not (same and table.shape[0] == n):
            raise ValueError(
                f"{name} has {table.shape[0]} rows without names of samples, which must be the {n} "
                "of all others, in one order, NaN where it lacks one: only data frames whose index "
                "names the samples may leave some out, or have them in another order."
            )
    return [T.reindex(index) if i in named else T for i, T in enumerate(tables)], index


def union_of(indices: list[Any], names: list[str], noun: str = "sample") -> Any:
    """Return all names in several indices, each of which must share some with the others."""
    for i, (index, name) in enumerate(zip(indices, names, strict=True)):
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            raise ValueError(f"{name} has the {noun} {twice!r} twice in its index.")
        others = [other for j, other in enumerate(indices) if j != i]
        if others and all(set(index).isdisjoint(other) for other in others):
            got = f"{shown(list(index[:3]))} in it, {shown(list(others[0][:3]))} in another"
            told = (
                f"{name} has no {noun} in common with the others, by their index: {got}"
            )
            cure = (
                f"different names of {noun}s belong together by those that they share"
            )
            raise ValueError(f"{told}. Tables with {cure}.")
    union = indices[0]
    for index in indices[1:]:
        union = union.append(index[~index.isin(union)])
    return union
