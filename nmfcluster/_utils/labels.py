"""Label vectors and what is made of them: codes, indicators, memberships, distinct rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._utils.array_api import to_numpy
from nmfcluster._utils.storage import csr_of_equal_rows, index_dtype, row_blocks
from nmfcluster._utils.validation import check_container, format_count

MIN_SEEN_WEIGHT = (
    1e-12  # weight of the partitions that saw a pair, or others: less is rounding
)
_DECODE_ERRORS = "backslashreplace"  # what becomes of bytes that are not UTF-8
LABEL_BLOCK_ROWS = (
    16_384  # handled at a time, so that a block of a wide table stays in cache
)


def partition_columns(table, name: str) -> list[np.ndarray]:
    """Return the partitions in `table`, one 1-d array each.

    Parameters
    ----------
    table : ndarray of shape (n_samples, n_partitions), DataFrame, or sequence of label vectors
        An array or a data frame holds one partition a column; a list or a tuple
        holds one label vector an element.
    name : str
        What to call `table` in an error message.

    Returns
    -------
    list of ndarray of shape (n_samples,)
    """
    check_container(table, name, "one table of labels")
    if hasattr(table, "iloc"):  # by position: names may repeat
        columns = [np.asarray(table.iloc[:, t]) for t in range(table.shape[1])]
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):
        columns = [np.asarray(table[column]) for column in table.columns]
    elif isinstance(table, Sequence) and not isinstance(table, str | bytes):
        columns = [as_label_vector(vector) for vector in table]
        if wrong := [column.shape for column in columns if column.ndim != 1]:
            wanted = "one label vector per partition, each of shape (n_samples,)"
            got = f"got one of shape {wrong[0]}"
            raise ValueError(f"{name} given as a list must hold {wanted}, {got}.")
    else:
        if sp.issparse(table):
            raise TypeError(
                f"{name} must be a dense table of labels, got a sparse matrix."
            )
        array = np.asarray(table)
        if array.ndim != 2:
            wanted = "shape (n_samples, n_partitions)"
            raise ValueError(f"{name} must have {wanted}, got shape {array.shape}.")
        columns = list(array.T)
    lengths = set(map(len, columns))
    if len(lengths) != 1 or lengths == {0}:
        wanted = "at least one partition, all of one length above 0"
        got = f"{format_count(len(columns), 'partition')} of lengths {sorted(lengths)}"
        raise ValueError(f"{name} must hold {wanted}, got {got}.")
    return columns


def as_label_vector(vector) -> np.ndarray:
    """Return labels as an array; strings beside numbers or NaN stay what they are."""
    array = np.asarray(to_numpy(vector))
    if array.dtype.kind in "US" and not hasattr(vector, "dtype"):
        return np.array(vector, dtype=object)  # numpy would make strings of all
    return array


def encode_labels(
    table, name: str, categories: list[np.ndarray] | None = None
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the labels of every partition as numbers from 0; -1 stands for "not seen".

    A negative number, NaN and None mean that the partition did not see the sample.

    Parameters
    ----------
    table : array-like of shape (n_samples, n_partitions), DataFrame or list of label vectors
        Integers, booleans, strings, or floats that are whole numbers.
    name : str
        What to call `table` in an error message.
    categories : list of ndarray, default=None
        The labels of every partition, as an earlier call returned them; a label that is not
        among them counts as not seen. By default they are found in `table`.

    Returns
    -------
    codes : ndarray of shape (n_samples, n_partitions), int32
    categories : list of ndarray
        ``categories[t][c]`` is the label that code c of partition t stands for.
    """
    columns = partition_columns(table, name)
    if categories is not None and len(categories) != len(columns):
        given = format_count(len(columns), "partition")
        raise ValueError(f"{name} has {given}, in fit it had {len(categories)}.")
    codes = np.full((len(columns), len(columns[0])), -1, dtype=np.int32)
    all_known = []
    for t, column in enumerate(columns):
        values, seen = clean_labels(np.ascontiguousarray(column), f"{name}[:, {t}]")
        if categories is None:
            known, codes[t, slice(None) if seen.all() else seen] = _number_labels(
                values
            )
        else:
            known = categories[t]
            if (
                len(known)
                and len(values)
                and (values.dtype == object) != (known.dtype == object)
            ):
                raise TypeError(
                    f"{name}[:, {t}] holds labels of another kind than those of fit."
                )
            codes[t, seen] = label_positions(values, known)
        all_known.append(known)
    return np.ascontiguousarray(codes.T), all_known


def _number_labels(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct labels, in order, and the place of each label among them."""
    if values.dtype == object or values.max(initial=0) > 4 * len(values):
        return np.unique(values, return_inverse=True)
    present = (
        np.bincount(values) > 0
    )  # small numbers are counted, which is sooner than to sort
    return np.flatnonzero(present), (np.cumsum(present) - 1)[values]


def clean_labels(column: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels that are there, comparable with each other, and where they are."""
    if column.dtype.kind == "S":
        column = np.char.decode(column, errors=_DECODE_ERRORS)
    elif column.dtype.kind == "T":  # NumPy's strings of any length
        column = column.astype(object)
    if column.dtype.kind == "O":
        seen = np.array([not is_missing(value) for value in column])
        values = [v.item() if isinstance(v, np.generic) else v for v in column[seen]]
        kinds = {str if isinstance(v, str) else type(v) for v in values}
        if kinds <= {bool, int, float}:
            column = np.where(seen, column, np.nan).astype(float)
        elif kinds in ({str}, {bytes}):
            texts = [
                v.decode(errors=_DECODE_ERRORS) if isinstance(v, bytes) else str(v)
                for v in values
            ]
            return np.array(texts, dtype=object), seen
        else:
            got = sorted(kind.__name__ for kind in kinds)
            raise TypeError(
                f"{name} must hold labels of one kind, integers or strings; got {got}."
            )
    if column.dtype.kind == "U":
        return column.astype(object), np.ones(len(column), dtype=bool)
    if column.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold integer or string labels, got dtype {column.dtype}."
        )
    if column.dtype.kind == "f":
        column = column.astype(
            np.float64, copy=False
        )  # float16 could not hold what follows
        seen = ~np.isnan(column)
        if (
            not np.array_equal(column[seen], np.floor(column[seen]))
            or np.isinf(column).any()
        ):
            bad = column[seen][column[seen] != np.floor(column[seen])]
            raise ValueError(
                f"{name} must hold labels (integers or strings), got the number "
                f"{bad[0] if len(bad) else np.inf!s}; NaN or -1 marks a sample that was not seen."
            )
        seen &= np.where(seen, column, -1) >= 0
    else:
        seen = column >= 0
    largest = (
        2**53 if column.dtype.kind == "f" else 2**63 - 1
    )  # floats then leave out numbers
    if len(column[seen]) and column[seen].max() > largest:
        raise ValueError(
            f"{name} must hold labels up to {largest}, got {column[seen].max()}."
        )
    return column[seen].astype(np.int64), seen


def is_missing(value) -> bool:
    """Tell None, NaN and pandas.NA, the last of which refuses to be compared, from all else."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True
    except ValueError:  # an array
        return False


def label_positions(values: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return where labels are among those that are known, in increasing order; -1: nowhere."""
    if not len(known):
        return np.full(len(values), -1)
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[places] == values, places, -1)


def to_smallest_int(labels: np.ndarray) -> np.ndarray:
    """Return labels in the smallest signed type that holds them, and -1."""
    lowest = min(int(labels.min(initial=0)), -int(labels.max(initial=0)) - 1)
    return labels.astype(np.min_scalar_type(lowest), copy=False)


def cluster_counts(codes: np.ndarray) -> np.ndarray:
    """Return the number of clusters of every partition of an encoded table, (n_partitions,)."""
    return codes.max(axis=0, initial=-1) + 1


def indicator(codes: np.ndarray, n_clusters: np.ndarray) -> sp.csr_array:
    """Return Z, (n_samples, sum(n_clusters)): 1 where a sample is in a cluster of a partition.

    Parameters
    ----------
    codes : ndarray of shape (n_samples, n_partitions), int
        Encoded labels; -1 leaves its row empty for that partition.
    n_clusters : ndarray of shape (n_partitions,), int
        Number of columns to give each partition.
    """
    offsets = np.concatenate([[0], np.cumsum(n_clusters)]).astype(np.int32)
    columns, seen = codes + offsets[:-1], codes >= 0
    if seen.all():
        return csr_of_equal_rows(np.ones(columns.shape), columns, int(offsets[-1]))
    columns, ends = columns[seen], np.concatenate([[0], np.cumsum(seen.sum(axis=1))])
    ends = ends.astype(index_dtype(len(columns)))
    shape = (len(codes), int(offsets[-1]))
    return sp.csr_array((np.ones(len(columns)), columns, ends), shape=shape)


def tuple_indicator(
    codes: np.ndarray, n_clusters: np.ndarray, rows: np.ndarray | None, most: int | None
) -> tuple[sp.csr_array, sp.csr_array]:
    """Factor the indicator of all clusters through the label tuples that occur.

    A few partitions at a time are taken as one whose clusters are the tuples of labels found in
    it, "not seen" included. Z = J A with J the indicator of these, which has an entry a row
    and group of partitions instead of one a row and partition, and A the clusters of every
    tuple, which is small: products with Z cost about a third, and so does its memory.

    Parameters
    ----------
    codes : ndarray of shape (n_samples, n_partitions), int
        Encoded labels; -1: not seen.
    n_clusters : ndarray of shape (n_partitions,), int
        Number of clusters of every partition.
    rows : ndarray of shape (n_rows,), int, or None
        Rows of `codes` to make it for; None: all.
    most : int or None
        Largest number of tuples of a group; None: more for more rows. The partitions of a
        group, and so the last bits of products, depend on it.

    Returns
    -------
    J : sparse matrix of shape (n_samples, n_tuples)
    A : sparse matrix of shape (n_tuples, sum(n_clusters))
    """
    # cut the partitions into groups of no more tuples than allowed: labels are digits of numbers
    n_rows = len(codes) if rows is None else len(rows)
    symbols = np.asarray(n_clusters, dtype=np.int64) + 1
    most = int(np.clip(50 * n_rows, 500, 200_000)) if most is None else most
    cuts, product = [], 1
    for t, size in enumerate(symbols.tolist()):
        product *= size
        if product > most and t:
            cuts.append(t)
            product = size
    groups = np.split(np.arange(len(symbols)), cuts)
    radix, bases = (
        np.zeros((codes.shape[1], len(groups))),
        np.zeros(len(groups) + 1, dtype=np.intp),
    )
    for g, members in enumerate(groups):
        radix[members, g] = np.cumprod(np.r_[1, symbols[members][:-1]])
        bases[g + 1] = bases[g] + np.prod(symbols[members])
    # number the tuples that occur
    occurs = np.zeros(bases[-1], dtype=bool)
    number_type = index_dtype(int(bases[-1]))
    tuples = np.empty((n_rows, len(groups)), dtype=number_type)
    for block in row_blocks(
        n_rows, LABEL_BLOCK_ROWS
    ):  # exact: the numbers are far below 2^53
        tuples[block] = (
            codes[block if rows is None else rows[block]] + 1.0
        ) @ radix + bases[:-1]
        occurs[tuples[block]] = True
    number = np.cumsum(occurs, dtype=number_type) - 1
    for block in row_blocks(n_rows, LABEL_BLOCK_ROWS):
        tuples[block] = number[tuples[block]]
    J = csr_of_equal_rows(np.ones(tuples.shape), tuples, int(occurs.sum()))
    # say of each which clusters it stands for
    kept, offsets = np.flatnonzero(occurs), np.concatenate([[0], np.cumsum(n_clusters)])
    members_of, columns = [], []
    for g, members in enumerate(groups):
        row = np.arange(*np.searchsorted(kept, bases[g : g + 2]))
        for t in members:
            code = (kept[row] - bases[g]) // int(radix[t, g]) % symbols[t] - 1
            members_of.append(row[code >= 0])
            columns.append(code[code >= 0] + offsets[t])
    row = np.concatenate(members_of).astype(number_type)
    column = np.concatenate(columns).astype(number_type)
    return J, sp.csr_array(
        (np.ones(len(row)), (row, column)), shape=(J.shape[1], int(offsets[-1]))
    )


def share_of_seen(
    together: np.ndarray, seen: np.ndarray, never: float = MIN_SEEN_WEIGHT
) -> np.ndarray:
    """Return the shares ``together / seen``; NaN where the weight that was seen is `never`."""
    return np.divide(
        together, seen, out=np.full(together.shape, np.nan), where=seen > never
    )


def adjusted_rand(both, one, other, everything) -> np.ndarray:
    r"""Return the adjusted Rand index of two labellings, or of many.

    With T the pairs of samples that both hold together, of :math:`T_a` and :math:`T_b` that one
    does, and N pairs, :math:`E = T_a T_b / N` of these are in common by chance, and the index is
    :math:`(T - E) / ((T_a + T_b) / 2 - E)` [1]_; 1 of two labellings that hold all samples
    together, or none.

    Parameters
    ----------
    both, one, other : int, or ndarray of shape (n,)
        Pairs that both labellings hold together, and each of them.
    everything : int, or ndarray of shape (n,)
        Number of pairs, 1 at least.

    References
    ----------
    .. [1] L. Hubert, P. Arabie. Comparing partitions. Journal of Classification 2, 1985.
    """
    chance = one * other / everything
    most = (one + other) / 2 - chance
    return np.where(most == 0, 1.0, (both - chance) / np.where(most == 0, 1, most))


def one_hot(labels: np.ndarray, n_clusters: int, dtype=np.float64) -> np.ndarray:
    """Return E, dense (n_samples, n_clusters), with E[i, labels[i]] = 1."""
    return np.eye(n_clusters, dtype=dtype)[labels]


def distinct_rows(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the distinct rows of a table of integers, without sorting rows.

    Rows are compared by a 64-bit key, and every row is then checked against the first of its
    group, so a collision of keys costs time and never correctness. The order of the groups
    does not depend on the order of the rows.

    Returns
    -------
    first : ndarray of shape (n_distinct,), int
        A row of each group: ``codes[first]`` are the distinct rows.
    groups : ndarray of shape (n_samples,), int
        ``codes[first][groups]`` equals `codes`.
    counts : ndarray of shape (n_distinct,), int
        Size of every group.
    """
    keys = hash_label_rows(codes)
    wanted: dict[str, Any] = {
        "return_index": True,
        "return_inverse": True,
        "return_counts": True,
    }
    _, first, groups, counts = np.unique(keys, **wanted)
    for rows in row_blocks(len(codes), LABEL_BLOCK_ROWS):
        if not np.array_equal(codes[rows], codes[first[groups[rows]]]):
            _, first, groups, counts = np.unique(codes, axis=0, **wanted)
            break
    return first, groups.ravel(), counts


def hash_label_rows(codes: np.ndarray, seed: int = 0) -> np.ndarray:
    """Return a number for every row of a table of integers, (n_samples,), uint64."""
    # random odd multipliers: two different rows share a key with a chance of about 2^-63
    factors = np.random.default_rng(seed).integers(
        2**63, size=codes.shape[1], dtype=np.uint64
    )
    factors = 2 * factors + np.uint64(1)
    keys = np.empty(len(codes), dtype=np.uint64)
    for block in row_blocks(len(codes), LABEL_BLOCK_ROWS):
        keys[block] = codes[block].astype(np.uint64) @ factors
    return keys
