"""Label vectors, and their codes, indicators, votes and distinct rows."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import scipy.sparse as sp

from nmfcluster._utils.array_api import to_numpy
from nmfcluster._utils.storage import (
    as_float64,
    csr_of_equal_rows,
    index_dtype,
    row_blocks,
    safe_ratio,
)
from nmfcluster._utils.validation import check_container, format_count

# Sum of weights of partitions below which a pair counts as not included: rounding.
MIN_SEEN_WEIGHT = 1e-12
# codes, and labels in a table, of samples that a partition calls noise, as DBSCAN does, and
# of samples that it did not see
NOISE = -1
NOT_SEEN = -2
LABEL_BLOCK_ROWS = 16_384  # rows of a block, which fits the cache even for a wide table


def partition_columns(table, name):
    """Return the partitions in `table`, one 1-d array each.

    Parameters
    ----------
    table : ndarray of shape (n_samples, n_partitions), DataFrame, or sequence of label vectors
        An array or a data frame holds one partition per column; a list or a tuple
        holds one label vector per element.
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
    elif isinstance(table, Sequence):
        columns = [as_label_vector(vector) for vector in table]
        for column in columns:
            if column.ndim != 1:
                raise ValueError(
                    f"{name} given as a list must hold one label vector per partition, each of "
                    f"shape (n_samples,), got one of shape {column.shape}."
                )
    elif sp.issparse(table):
        raise TypeError(f"{name} must be a dense table of labels, got a sparse matrix.")
    else:
        array = np.asarray(table)
        if array.ndim != 2:
            raise ValueError(
                f"{name} must have shape (n_samples, n_partitions), got shape {array.shape}."
            )
        columns = list(array.T)
    lengths = set(map(len, columns))
    if len(lengths) != 1 or lengths == {0}:
        raise ValueError(
            f"{name} must hold at least one partition, all of the same length above 0, "
            f"got {format_count(len(columns), 'partition')} of lengths {sorted(lengths)}."
        )
    return columns


def as_label_vector(vector):
    """Return labels as an array; strings mixed with numbers or NaN keep their types."""
    array = np.asarray(to_numpy(vector))
    if array.dtype.kind in "US" and not hasattr(vector, "dtype"):
        return np.array(vector, dtype=object)  # numpy would convert all to strings
    return array


def encode_labels(table, name, categories=None):
    """Return the labels of every partition as numbers from 0, `NOISE` or `NOT_SEEN`.

    -1 is noise; another negative number, NaN and None mean that the partition does not
    include the sample.

    Parameters
    ----------
    table : array-like of shape (n_samples, n_partitions), DataFrame or list of label vectors
        Integers, booleans, strings, or floats that are whole numbers.
    name : str
        What to call `table` in an error message.
    categories : list of ndarray, default=None
        The labels of every partition, as an earlier call returned them; a label that is not
        among them counts as not included. By default they are found in `table`.

    Returns
    -------
    codes : ndarray of shape (n_samples, n_partitions), int32
    categories : list of ndarray
        ``categories[t][c]`` is the label that code c of partition t stands for.
    """
    columns = partition_columns(table, name)
    if categories is not None and len(categories) != len(columns):
        raise ValueError(
            f"{name} has {format_count(len(columns), 'partition')}, "
            f"but had {len(categories)} in fit."
        )
    codes = np.empty((len(columns), len(columns[0])), dtype=np.int32)
    all_known = []
    for t, column in enumerate(columns):
        title = f"{name}[:, {t}]"
        labels, codes[t] = clean_labels(np.ascontiguousarray(column), title)
        seen = codes[t] >= 0
        if categories is None:
            if labels.dtype == object or labels.max(initial=0) > 4 * len(labels):
                known, codes[t, seen] = np.unique(labels, return_inverse=True)
            else:  # faster than sorting, for small numbers
                is_present = np.bincount(labels) > 0
                known = np.flatnonzero(is_present)
                codes[t, seen] = (np.cumsum(is_present) - 1)[labels]
        else:
            known = categories[t]
            kinds = {labels.dtype == object, known.dtype == object}
            if len(known) and len(labels) and len(kinds) > 1:
                raise TypeError(f"{title} must hold labels of the same kind as in fit.")
            positions = label_positions(labels, known)
            codes[t, seen] = np.where(positions < 0, NOT_SEEN, positions)
        all_known.append(known)
    return np.ascontiguousarray(codes.T), all_known


def clean_labels(column, name):
    """Return the labels that exist, in one comparable type, and the state of every sample.

    The state is 0 for a sample with a label, and otherwise `NOISE` or `NOT_SEEN`.
    """
    if column.dtype.kind == "U":
        return column.astype(object), np.zeros(len(column), dtype=np.int32)
    if column.dtype.kind in "ST":  # bytes, and NumPy's strings of any length
        column = column.astype(object)
    # arrays of objects hold texts, or numbers with missing values
    if column.dtype.kind == "O":
        seen = np.array([not is_missing(value) for value in column], dtype=bool)
        values = [v.item() if isinstance(v, np.generic) else v for v in column[seen]]
        kinds = {str if isinstance(v, str) else type(v) for v in values}
        if kinds == {bytes}:
            values = [v.decode(errors="backslashreplace") for v in values]  # not UTF-8
        is_interval = {kind.__name__ for kind in kinds} == {"Interval"}  # of pandas.cut
        if kinds in ({str}, {bytes}) or is_interval:
            texts = [str(v) for v in values]
            return np.array(texts, dtype=object), np.where(seen, 0, NOT_SEEN)
        if not kinds <= {bool, int, float}:
            raise TypeError(
                f"{name} must hold labels of one kind, integers or strings; "
                f"got {sorted(kind.__name__ for kind in kinds)}."
            )
        column = np.where(seen, column, np.nan).astype(float)
    if column.dtype.kind not in "biuf":
        raise TypeError(
            f"{name} must hold integer or string labels, got dtype {column.dtype}."
        )
    largest = 2**63 - 1
    if column.dtype.kind == "f":
        column = as_float64(column)  # float16 holds few integers
        largest = 2**53  # above it, floats skip integers
        is_whole = np.isfinite(column) & (column == np.floor(column))
        wrong = column[~is_whole & ~np.isnan(column)]
        if len(wrong):
            raise ValueError(
                f"{name} must hold labels (integers or strings), got the number {wrong[0]}; -1 "
                "marks noise, NaN a sample that is not included."
            )
    seen = column >= 0  # False for NaN
    labels = column[seen]
    if len(labels) and labels.max() > largest:
        raise ValueError(
            f"{name} must hold labels up to {largest}, got {labels.max()}."
        )
    unlabelled = np.where(column == NOISE, NOISE, NOT_SEEN)
    return labels.astype(np.int64), np.where(seen, 0, unlabelled)


def is_missing(value):
    """Return whether a value is None, NaN or pandas.NA, which cannot be compared."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except TypeError:
        return True
    except ValueError:  # an array
        return False


def label_positions(labels, known):
    """Return the positions of labels among known ones, which increase; -1 for others."""
    if not len(known):
        return np.full(len(labels), -1)
    positions = np.minimum(np.searchsorted(known, labels), len(known) - 1)
    return np.where(known[positions] == labels, positions, -1)


def to_smallest_int(labels):
    """Return labels in the smallest signed type that holds them and -1."""
    lowest = min(int(labels.min(initial=0)), -int(labels.max(initial=0)) - 1)
    return labels.astype(np.min_scalar_type(lowest), copy=False)


def noise_weights(codes, weights):
    """Return the weight of the partitions that call each sample noise, (n_samples,)."""
    noise = np.zeros(len(codes))
    for rows in row_blocks(len(codes), LABEL_BLOCK_ROWS):
        is_noise = codes[rows] == NOISE
        if is_noise.any():
            noise[rows] = np.where(is_noise, weights, 0.0).sum(axis=1)
    return noise


def set_noise_apart(codes, weights):
    """Return codes in which samples that are noise count as included in no partition.

    A sample is noise if most of the partitions that include it, by weight, call it noise.
    """
    noise = noise_weights(codes, weights)
    suspects = np.flatnonzero(noise)
    clustered = np.where(codes[suspects] >= 0, weights, 0.0).sum(axis=1)
    is_noise = noise[suspects] > clustered + MIN_SEEN_WEIGHT
    if is_noise.any():
        codes = codes.copy()
        codes[suspects[is_noise]] = NOT_SEEN
    return codes


# share of a consensus cluster at which the vote of a base cluster begins to level off; with 0.01
# to 0.1, confidence finds misplaced samples equally well
_SMALL_SHARE = 0.03


def cluster_votes(contingency, n_clusters, weights):
    r"""Return the votes of base clusters, (C, k), which `confidence_of_votes` sums.

    A base cluster of partition t votes :math:`w_t \log(1 + v / 0.03)` for a consensus cluster.
    Here, v is the share of the samples of the consensus cluster that the base cluster contains,
    among those that t includes.

    Parameters
    ----------
    contingency : ndarray of shape (C, k)
        Number of samples that every base cluster shares with each consensus cluster.
    n_clusters : ndarray of shape (n_partitions,), int
    weights : ndarray of shape (n_partitions,)
    """
    partition = np.repeat(np.arange(len(n_clusters)), n_clusters)
    sizes = np.zeros((len(n_clusters), contingency.shape[1]))
    np.add.at(sizes, partition, contingency)
    shares = safe_ratio(contingency, sizes[partition])
    return weights[partition, None] * np.log1p(shares / _SMALL_SHARE)


def confidence_of_votes(votes, coverage, noise, labels):
    """Return the confidence of samples in their clusters, see `NMFConsensus`.

    Parameters
    ----------
    votes : ndarray of shape (n, k)
        Sums of `cluster_votes` over the base clusters of every sample.
    coverage, noise : ndarray of shape (n,)
        Total weights of the partitions that put each sample into a cluster, and that call it noise.
    labels : ndarray of shape (n,), int
        Negative for samples in no cluster.
    """
    evidence = np.expm1(votes / np.maximum(coverage, MIN_SEEN_WEIGHT)[:, None])
    own = evidence[np.arange(len(labels)), np.maximum(labels, 0)]
    total = evidence.sum(axis=1)
    shares = safe_ratio(own, total)
    shares *= coverage / np.maximum(coverage + noise, MIN_SEEN_WEIGHT)
    return np.where(labels < 0, 0, shares)


def cluster_counts(codes):
    """Return the number of clusters of every partition of an encoded table, (n_partitions,)."""
    return codes.max(axis=0, initial=NOISE) + 1


def indicator(codes, n_clusters):
    """Return Z, (n_samples, sum(n_clusters)): 1 where a sample is in a cluster of a partition.

    Parameters
    ----------
    codes : ndarray of shape (n_samples, n_partitions), int
        Encoded labels; a negative one leaves its row empty for that partition.
    n_clusters : ndarray of shape (n_partitions,), int
        Number of columns of each partition.
    """
    offsets = group_bounds(n_clusters).astype(np.int32)
    columns = codes + offsets[:-1]
    seen = codes >= 0
    columns = columns[seen]
    ends = group_bounds(seen.sum(axis=1)).astype(index_dtype(len(columns)))
    shape = (len(codes), int(offsets[-1]))
    return sp.csr_array((np.ones(len(columns)), columns, ends), shape=shape)


def group_bounds(sizes):
    """Return where groups of the given sizes begin in a sequence, and where the last ends."""
    return np.concatenate([[0], np.cumsum(sizes)])


def tuple_indicator(codes, n_clusters, most):
    """Factor the indicator of all clusters through the label tuples that occur, Z = J A.

    Partitions are grouped. A group is treated as one partition whose clusters are the tuples of
    labels in it, among them "not included". J is the indicator of the tuples. It has one entry per
    row and group, not one per row and partition. A is small, and holds the clusters of every tuple.
    In this form, products take about a third of the time, and Z takes about a third of the memory.

    Parameters
    ----------
    codes : ndarray of shape (n_samples, n_partitions), int
        Encoded labels. Negative ones, noise and not included, are one symbol here.
    n_clusters : ndarray of shape (n_partitions,), int
        Number of clusters of every partition.
    most : int or None
        Largest number of tuples per group; None: it grows with the number of rows. The groups,
        and so the last bits of products, depend on it.

    Returns
    -------
    J : sparse matrix of shape (n_samples, n_tuples)
    A : sparse matrix of shape (n_tuples, sum(n_clusters))
    """
    n_rows = len(codes)
    n_symbols = np.asarray(n_clusters, dtype=np.int64) + 1  # with "not included"
    if most is None:
        most = int(np.clip(50 * n_rows, 500, 200_000))
    # Group the partitions so that no group has more tuples than allowed.
    radix = np.zeros((len(n_symbols), len(n_symbols)))  # one column per group
    groups: list = []
    n_tuples = most + 1
    for t, size in enumerate(n_symbols.tolist()):
        if n_tuples * size > most:
            groups.append([])
            n_tuples = 1
        # The labels of a tuple are the digits of its number.
        radix[t, len(groups) - 1] = n_tuples
        groups[-1].append(t)
        n_tuples *= size
    # Number the tuples.
    kind = index_dtype(most * len(groups))
    tuples = np.empty((n_rows, len(groups)), dtype=kind)
    for block in row_blocks(n_rows, LABEL_BLOCK_ROWS):
        digits = np.maximum(codes[block], -1) + 1.0
        tuples[block] = digits @ radix[:, : len(groups)]  # exact: far below 2^53
    # Renumber the tuples that occur, and find the clusters that they stand for.
    blocks = []
    n_found = 0
    for g, members in enumerate(groups):
        sizes = n_symbols[members]
        occurs = np.zeros(np.prod(sizes), dtype=bool)
        occurs[tuples[:, g]] = True
        found = np.flatnonzero(occurs)
        number = np.cumsum(occurs, dtype=kind) + (n_found - 1)
        tuples[:, g] = number[tuples[:, g]]
        n_found += len(found)
        symbols = np.unravel_index(found, sizes, order="F")
        blocks.append(indicator(np.transpose(symbols).astype(np.int32) - 1, sizes - 1))
    J = csr_of_equal_rows(np.ones(tuples.shape), tuples, n_found)
    return J, sp.block_diag(blocks, format="csr")


def share_of_seen(together, seen, never=MIN_SEEN_WEIGHT):
    """Return the shares ``together / seen``; NaN where `seen` is at most `never`."""
    shares = np.full(together.shape, np.nan)
    return np.divide(together, seen, out=shares, where=seen > never)


def adjusted_rand(both, one, other, everything):
    r"""Return the adjusted Rand index of two labellings, or of many.

    The labellings put :math:`T_a` and :math:`T_b` of N pairs of samples together, and both put T
    together. By chance, both would put :math:`E = T_a T_b / N` together. The index is
    :math:`(T - E) / ((T_a + T_b) / 2 - E)` [1]_, and 1 if both labellings put all samples
    together, or none.

    Parameters
    ----------
    both, one, other : int, or ndarray of shape (n,)
        Number of pairs that both labellings put together, and that each of them does.
    everything : int, or ndarray of shape (n,)
        Number of all pairs, at least 1.

    References
    ----------
    .. [1] L. Hubert, P. Arabie. Comparing partitions. Journal of Classification 2, 1985.
    """
    chance = one * other / everything
    most = (one + other) / 2 - chance
    return np.where(most == 0, 1.0, (both - chance) / np.where(most == 0, 1, most))


def one_hot(labels, n_clusters, dtype=np.float64):
    """Return E, dense (n_samples, n_clusters), with E[i, labels[i]] = 1."""
    return np.eye(n_clusters, dtype=dtype)[labels]


def distinct_rows(codes):
    """Find the distinct rows of a table of integers, without sorting rows.

    Rows are compared by a 64-bit key, and every row is then checked against the first of its group,
    so a collision of keys costs time but does not change the result. The order of the groups does
    not depend on the order of the rows.

    Returns
    -------
    first : ndarray of shape (n_distinct,), int
        A row of each group: ``codes[first]`` are the distinct rows.
    groups : ndarray of shape (n_samples,), int
        ``codes[first][groups]`` equals `codes`.
    counts : ndarray of shape (n_distinct,), int
        Size of every group.
    """
    unique = partial(
        np.unique, return_index=True, return_inverse=True, return_counts=True
    )
    _, first, groups, counts = unique(hash_label_rows(codes))
    for rows in row_blocks(len(codes), LABEL_BLOCK_ROWS):
        if not np.array_equal(codes[rows], codes[first[groups[rows]]]):
            _, first, groups, counts = unique(codes, axis=0)
            break
    return first, groups.ravel(), counts


def hash_label_rows(codes, seed=0):
    """Return a hash of every row of a table of integers, (n_samples,), uint64."""
    # random odd multipliers: two different rows share a key with a chance of about 2^-63
    rng = np.random.default_rng(seed)
    factors = rng.integers(2**63, size=codes.shape[1], dtype=np.uint64)
    factors = 2 * factors + np.uint64(1)
    keys = np.empty(len(codes), dtype=np.uint64)
    for block in row_blocks(len(codes), LABEL_BLOCK_ROWS):
        keys[block] = codes[block].astype(np.uint64) @ factors
    return keys
