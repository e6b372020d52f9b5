"""Several tables of the same samples, matched by the names in their index."""

from nmfcluster._utils.validation import (
    columns_in_row_order,
    format_value,
    reorder_columns,
    row_names,
    row_order,
    sample_names,
    warn,
)


def align_similarities(tables, names):
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
    masks : list of {ndarray of bool, None}
        Which of all samples a table is of; None: it has a row for each.
    index, columns : pandas Index or None
        The names of rows and of columns, if any of them has some.
    """
    own = [sample_names(table) for table in tables]
    ordered = list(tables)
    masks = [None] * len(tables)
    # tables of some of the samples each
    are_square = all(map(_is_square, own, tables))
    if are_square and any(set(index) != set(own[0]) for index in own):
        union = union_of_names(own, names)
        for i, name in enumerate(names):
            masks[i] = union.isin(own[i])
            table = columns_in_row_order(tables[i], name)
            order = own[i].get_indexer(union[masks[i]])
            if (order[1:] < order[:-1]).any():
                table = table.iloc[order, order]
            ordered[i] = table
        return ordered, masks, union, union
    # tables of all samples: those without names are taken by position
    rows = [row_names(T) if hasattr(T, "columns") else None for T in tables]
    frames = [i for i, index in enumerate(rows) if index is not None]
    if not frames:
        return ordered, masks, None, None
    frames.sort(key=lambda i: own[i] is None)
    leading = frames[0]
    owner = names[leading]
    first = columns_in_row_order(tables[leading], owner)
    ordered[leading] = first
    is_numbered = own[leading] is not None and first.index.dtype.kind in "iu"
    for i in frames[1:]:
        if own[i] is None and is_numbered:
            warn(
                f"{names[i]} has the index 0, 1, 2, ..., and is taken by position beside the "
                f"numbers that name the samples of {owner}: text, S.index.astype(str), is a name."
            )
        table = tables[i]
        order = row_order(first.index, rows[i], names[i], owner)
        if order is not None:
            table = table.iloc[order]
        ordered[i] = reorder_columns(first.columns, table, names[i], owner)
    return ordered, masks, own[leading], first.columns


def _is_square(own, table):
    """Return whether columns have the names of the rows; numbers in a file can be text in one."""
    columns = getattr(table, "columns", None)
    if own is None or columns is None:
        return False
    return set(own) == set(columns) or list(map(str, own)) == list(map(str, columns))


def align_samples(tables, names):
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
    own = [sample_names(table) for table in tables]
    named = [i for i, index in enumerate(own) if index is not None]
    union = None
    n = tables[0].shape[0]
    if named:
        union = union_of_names([own[i] for i in named], [names[i] for i in named])
        n = len(union)
    same = all(own[i].equals(union) for i in named)
    aligned = []
    for index, table, name in zip(own, tables, names, strict=True):
        if index is not None:
            table = table.reindex(union)
        elif not same or table.shape[0] != n:
            raise ValueError(
                f"{name} has {table.shape[0]} rows without names of samples, which must be the {n} "
                "of all others, in one order, NaN where it lacks one: only data frames whose index "
                "names the samples may leave some out, or have them in another order."
            )
        aligned.append(table)
    return aligned, union


def union_of_names(indices, names, noun="sample"):
    """Return all names in several indices, each of which must share some with the others."""
    for i, (index, name) in enumerate(zip(indices, names, strict=True)):
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            raise ValueError(f"{name} has the {noun} {twice!r} twice in its index.")
        others = [other for j, other in enumerate(indices) if j != i]
        if others and all(set(index).isdisjoint(other) for other in others):
            own_names = format_value(list(index[:3]))
            other_names = format_value(list(others[0][:3]))
            raise ValueError(
                f"{name} has no {noun} in common with the others, by their index: "
                f"{own_names} in it, {other_names} in another. Tables "
                f"with different names of {noun}s belong together by those that they share."
            )
    union = indices[0]
    for index in indices[1:]:
        union = union.append(index[~index.isin(union)])
    return union
