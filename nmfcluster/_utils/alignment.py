"""Several tables of the same samples, matched by the names in their index."""

from nmfcluster._utils.validation import (
    columns_in_row_order,
    cure_of_types,
    format_value,
    reorder_columns,
    row_names,
    row_order,
    sample_names,
    warn,
)


def align_similarities(tables, names):
    """Return similarities with rows and columns in the order of the first named data frame.

    If rows and columns of a table have the same names, its columns are put in the order of its
    rows. If this holds for all tables but their names differ, each table covers some of the
    samples, and the entries of other samples are filled with NaN.

    Parameters
    ----------
    tables : list of object
        Only data frames are reordered.
    names : list of str
        Their names in messages.

    Returns
    -------
    tables : list of object
    index, columns : pandas Index or None
        The names of rows and of columns, if any table has names.
    """
    own = [sample_names(table) for table in tables]
    ordered = list(tables)
    # each table covers some of the samples
    are_square = all(map(_is_square, own, tables))
    if are_square and any(set(index) != set(own[0]) for index in own):
        union = union_of_names(own, names)
        for i, name in enumerate(names):
            table = columns_in_row_order(tables[i], name).set_axis(own[i], axis=1)
            ordered[i] = table.reindex(index=union, columns=union)
        return ordered, union, union
    # each table covers all samples: those without names are matched by position
    rows = [row_names(T) if hasattr(T, "columns") else None for T in tables]
    frames = [i for i, index in enumerate(rows) if index is not None]
    if not frames:
        return ordered, None, None
    frames.sort(key=lambda i: own[i] is None)
    leading = frames[0]
    owner = names[leading]
    first = columns_in_row_order(tables[leading], owner)
    ordered[leading] = first
    unnamed = [name for index, name in zip(own, names, strict=True) if index is None]
    for i in frames[1:]:
        table = tables[i]
        order = row_order(first.index, rows[i], names[i], owner)
        if order is not None:
            table = table.iloc[order]
            unnamed = [name for name in unnamed if name != names[i]]
        ordered[i] = reorder_columns(first.columns, table, names[i], owner)
    if own[leading] is not None:
        if all(getattr(table, "shape", first.shape) == first.shape for table in tables):
            _warn_of_positions(unnamed, owner)
    return ordered, own[leading], first.columns


def _warn_of_positions(unnamed, owner):
    """Warn of tables without names if another table, the owner, has names."""
    if unnamed:
        warn(
            f"{unnamed[0]} has no index that names its samples, and is matched by position: its "
            f"rows must be in the order of {owner}, whose index has names. To match it by names, "
            "pass a data frame with the same index; to avoid this warning, pass only arrays."
        )


def _is_square(own, table):
    """Return whether columns have the names of the rows, perhaps as text after file input."""
    columns = getattr(table, "columns", None)
    if own is None or columns is None:
        return False
    return set(own) == set(columns) or list(map(str, own)) == list(map(str, columns))


def align_samples(tables, names):
    """Return tables with one row for every sample that occurs in any of them.

    Parameters
    ----------
    tables : list of {ndarray, csr_array, data frame}
    names : list of str
        Their names in messages.

    Returns
    -------
    tables : list of {ndarray, csr_array, data frame}
        With rows of NaN for samples that a data frame does not have.
    index : Index or None
        Names of the samples, in the order in which they occur; None if no table has any.

    Raises
    ------
    ValueError
        If rows cannot be matched, by name or by position.
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
    unnamed = []
    for index, table, name in zip(own, tables, names, strict=True):
        order = None
        if index is None and named:
            order = row_order(union, row_names(table), name, names[named[0]])
        if index is not None:
            table = table.reindex(union)
        elif order is not None:  # an index of numbers, which may also be positions
            table = table.iloc[order]
        elif not same or table.shape[0] != n:
            raise ValueError(
                f"{name} has {table.shape[0]} rows without names of samples, but must have all {n} "
                "samples in the order of the others. Fill missing samples with NaN, or pass a "
                "data frame whose index names the samples."
            )
        else:
            unnamed.append(name)
        aligned.append(table)
    if named:
        _warn_of_positions(unnamed, names[named[0]])
    return aligned, union


def union_of_names(indices, names, noun="sample"):
    """Return the union of the names in several indices; each must share a name with the others."""
    for i, (index, name) in enumerate(zip(indices, names, strict=True)):
        if not index.is_unique:
            twice = index[index.duplicated()][0]
            raise ValueError(
                f"{name} must not have the {noun} {twice!r} twice in its index."
            )
        others = [other for j, other in enumerate(indices) if j != i]
        if others and all(set(index).isdisjoint(other) for other in others):
            other = indices[i == 0]
            other_name = names[i == 0]
            raise ValueError(
                f"{name} has no {noun} in common with the others, by their index: "
                f"{format_value(list(index[:3]))} in it, {format_value(list(other[:3]))} in "
                f"{other_name}. Tables with different names of {noun}s must share some of "
                f"them.{cure_of_types(index, name, other, other_name)}"
            )
    union = indices[0]
    for index in indices[1:]:
        union = union.append(index[~index.isin(union)])
    return union
