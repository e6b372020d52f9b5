"""A label table in blocks of rows that are never in one place: its summary and its rows.

Each block is summarised, summaries merge in any order, and label rows are looked up among the
distinct ones. Nothing here depends on where the blocks are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from nmfcluster._utils.labels import (
    LABEL_BLOCK_ROWS,
    distinct_rows,
    hash_label_rows,
    label_positions,
    to_smallest_int,
)
from nmfcluster._utils.storage import row_blocks
from nmfcluster._utils.validation import format_value, normalize_weights
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.partitions.inputs import LabelTable

# label tuples of a group of partitions: the same for all blocks, see `Ensemble.max_tuples`
_MAX_TUPLES = 5_000
# bits of a scale: products of two over 10^9 samples are below 2^63, and over the rows that are
# added as floats, 16,384, below 2^53
SCALE_BITS = 16


def clean_block(block, first: int = 0):
    """Return the labels of a block as integers, -1 where a sample was not seen.

    Parameters
    ----------
    block : array-like of shape (n_rows, n_partitions)
        Integers, truth values, or floats that are whole numbers; a negative number or NaN: not
        seen.
    first : int, default=0
        Number of its first row in the whole table, for an error message.

    Raises
    ------
    TypeError
        If it holds strings, or anything else that is no number.
    ValueError
        If a number is no label.
    """
    block = np.asarray(block)
    kind = block.dtype.kind
    if kind not in "biuf":
        raise TypeError(
            f"X must hold integers as labels, got dtype {block.dtype} in the block of row {first}: "
            "give every string a number first, as pandas.factorize does."
        )
    wrong = np.zeros(block.shape, dtype=bool)
    if kind == "f":
        block = block.astype(np.float64, copy=False)  # float16 cannot hold 2**53
        block = np.where(np.isnan(block), -1, block)
        wrong = (block != np.floor(block)) | (np.abs(block) > 2**53)
    elif block.dtype == np.uint64:
        wrong = block > np.uint64(2**63 - 1)
    if wrong.any():
        row, t = np.argwhere(wrong)[0].tolist()
        raise ValueError(
            "X must hold integers as labels, NaN or -1 where not seen, up to 2**63 - 1, got "
            f"{format_value(block[row, t].item())} in row {first + row}, partition {t}."
        )
    if kind in "if" and block.min(initial=0) < -1:
        block = np.maximum(block, -1)
    integers = {"bool": np.int8, "uint64": np.int64, "float64": np.int64}
    return block.astype(integers.get(block.dtype.name, block.dtype), copy=False)


class Counted(NamedTuple):
    """Distinct labels, or label rows, and the number of samples with each."""

    values: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class TableSummary:
    """A summary of blocks of a label table; those of all blocks merge into that of the table.

    Attributes
    ----------
    clusters : list of Counted
        The labels of every partition, in increasing order.
    distinct : Counted or None
        The distinct label rows; None where there are more than the largest allowed number.
    n_unlabelled : int
        Number of samples that no partition saw.
    first_unlabelled : int
        The row of the first of them, -1 if there is none.
    least : float
        The smallest weight of the partitions that saw a sample.
    """

    clusters: list[Counted]
    distinct: Counted | None
    n_unlabelled: int
    first_unlabelled: int
    least: float

    @classmethod
    def of_block(cls, block, first: int, weights, most: int) -> TableSummary:
        """Return the summary of a block.

        Parameters
        ----------
        block : array-like of shape (n_rows, n_partitions)
        first : int
            Number of its first row in the whole table.
        weights : ndarray of shape (n_partitions,)
            Weights of the partitions.
        most : int
            Largest number of distinct rows that are kept.
        """
        block = clean_block(block, first)
        parts = []
        for rows in row_blocks(len(block), LABEL_BLOCK_ROWS):
            parts.append(cls._of_part(block[rows], first + rows.start, weights))
        return cls.merged(parts, most)

    @classmethod
    def _of_part(cls, part, first: int, weights) -> TableSummary:
        positions, _, counts = distinct_rows(part)
        rows = to_smallest_int(part[positions])
        clusters = []
        for column in rows.T:
            labels = _merge_labels([Counted(column, counts)])
            seen = labels.values >= 0
            values = labels.values[seen].astype(np.int64)
            clusters.append(Counted(values, labels.counts[seen]))
        coverage = np.where(rows >= 0, weights, 0.0).sum(axis=1)
        unlabelled = coverage <= 0
        first_unlabelled = -1
        if unlabelled.any():
            first_unlabelled = first + int(positions[unlabelled].min())
        return cls(
            clusters=clusters,
            distinct=Counted(rows, counts),
            n_unlabelled=int(counts[unlabelled].sum()),
            first_unlabelled=first_unlabelled,
            least=float(coverage.min(where=~unlabelled, initial=np.inf)),
        )

    @classmethod
    def merged(cls, parts: Sequence[TableSummary], most: int) -> TableSummary:
        """Return the summary of the rows of several."""
        partitions = zip(*[part.clusters for part in parts], strict=True)
        unlabelled = [p.first_unlabelled for p in parts if p.first_unlabelled >= 0]
        return cls(
            clusters=[_merge_labels(labels) for labels in partitions],
            distinct=_merge_rows([part.distinct for part in parts], most),
            n_unlabelled=sum(part.n_unlabelled for part in parts),
            first_unlabelled=min(unlabelled, default=-1),
            least=min(part.least for part in parts),
        )


def _merge_rows(parts, most: int) -> Counted | None:
    """Return the distinct rows of several; None if these are more than `most`."""
    if any(part is None or len(part.values) > most for part in parts):
        return None
    merged = parts[0]
    for part in parts[1:]:  # one by one: it ends as soon as they are too many
        rows = np.concatenate([merged.values, part.values])
        counts = np.concatenate([merged.counts, part.counts])
        positions, groups, _ = distinct_rows(rows)
        if len(positions) > most:
            return None
        merged = Counted(rows[positions], _count_groups(groups, counts, len(positions)))
    return merged


def _merge_labels(parts) -> Counted:
    """Return the labels of a partition in several parts, in increasing order."""
    values = np.concatenate([part.values for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    labels, groups = np.unique(values, return_inverse=True)
    return Counted(labels, _count_groups(groups, counts, len(labels)))


def _count_groups(groups, counts, n_groups: int):
    """Return the number of samples of every group; floats hold numbers below 2^53."""
    return np.bincount(groups, counts, n_groups).astype(np.int64)


class BlockedTable:
    """A label table of which there are only blocks: its labels, weights and sizes.

    Parameters
    ----------
    clusters : list of Counted
        The labels of every partition, in increasing order: a code is a position among them.
    weights : ndarray of shape (n_partitions,)
        Weights of the partitions, which sum to 1.
    n_samples : int
    least : float
        The smallest weight of the partitions that saw a sample.

    Attributes
    ----------
    known : tuple of ndarray
        The labels of every partition, in increasing order.
    n_clusters : ndarray of shape (n_partitions,), int
        Number of clusters of every partition.
    is_complete : bool
        Whether every partition saw all samples.
    sizes : ndarray of shape (C,), int
        Number of samples of every cluster of every partition.
    cluster_weights : ndarray of shape (C,)
        Weight of its partition for every cluster.
    shares : ndarray of shape (C,)
        Factor of this weight in the votes of a cluster.
    votes : ndarray of shape (C,)
        What each cluster adds to every pair that it holds.
    """

    def __init__(self, clusters: list[Counted], weights, n_samples: int, least: float):
        self.weights = weights
        self.n_samples = n_samples
        self.least = least
        self.known, sizes = zip(*clusters, strict=True)
        self.n_clusters = np.array([len(labels) for labels in self.known])
        self.is_complete = all(counts.sum() == n_samples for counts in sizes)
        self.sizes = np.concatenate(sizes)
        self.cluster_weights = np.repeat(weights, self.n_clusters)
        self.shares = 1 / np.maximum(self.sizes, 1)
        self.votes = self.cluster_weights * self.shares

    @property
    def scale_unit(self) -> float:
        """A power of two, in which the scales of samples are counted."""
        highest = 1.0 if self.is_complete else 1 / np.sqrt(self.least)
        return float(np.exp2(np.ceil(np.log2(highest)) - SCALE_BITS))

    def scale(self, rows: Ensemble):
        """Return the factors of the rows of a similarity, (m,)."""
        if self.is_complete:
            return np.ones(len(rows))
        return 1 / np.sqrt(np.where(rows.coverage > 0, rows.coverage, 1))

    def codes(self, block, first: int = 0):
        """Return the labels of a block as positions among those of their partitions; -1: not seen.

        Raises
        ------
        RuntimeError
            If a label is new: the table is not what it was when it was read before.
        """
        block = clean_block(block, first)
        if all(labels.max(initial=-1) == len(labels) - 1 for labels in self.known):
            # labels are 0, 1, 2, ... in every partition
            codes = block.astype(np.int32)
            new = block >= self.n_clusters
        else:
            columns = list(map(label_positions, block.T, self.known))
            codes = np.stack(columns, axis=1).astype(np.int32)
            new = (codes < 0) & (block >= 0)
        if new.any():
            raise changed("a label is new")
        return codes

    def distinct(self, block):
        """Yield the distinct rows of a block, their numbers, and the one of every row.

        They are those of some rows of the block at a time.
        """
        block = np.asarray(block)
        for rows in row_blocks(len(block), LABEL_BLOCK_ROWS):
            codes = self.codes(block[rows])
            positions, groups, counts = distinct_rows(codes)
            yield codes[positions], counts, groups

    def ensemble(self, codes, counts) -> Ensemble:
        """Return distinct rows as an ensemble, in which no row depends on the others."""
        return Ensemble(
            codes, counts, self.weights, self.n_clusters, max_tuples=_MAX_TUPLES
        )

    def map_rows(self, block, function: Callable[..., Any], **options):
        """Return a function of the codes of distinct rows for every row of a block."""
        parts = []
        for codes, _, groups in self.distinct(block):
            parts.append(function(codes, **options)[groups])
        return np.concatenate(parts)


def changed(reason: str) -> RuntimeError:
    """Return the error of a table that is read twice and does not hold the same."""
    return RuntimeError(
        f"X must hold the same labels whenever it is read, but {reason}: something in what makes "
        "it is random. Write it to a file, or persist it, and fit that."
    )


class KnownRows:
    """Results of every distinct label row, which are looked up for any rows.

    Parameters
    ----------
    codes : ndarray of shape (n_distinct, n_partitions), int
        The distinct rows, which are found by their keys; they are not kept.
    values : dict of ndarray of shape (n_distinct, ...)
        The results by their names.
    """

    def __init__(self, codes, values):
        for seed in count():  # until no two rows have one key: mostly at once
            keys, order = np.unique(hash_label_rows(codes, seed), return_index=True)
            if len(keys) == len(codes):
                break
        self._values = values
        self._seed = seed
        self._keys = keys
        self._order = order.astype(np.int32)

    def positions(self, codes):
        """Return where rows are among the distinct ones, (n_rows,), int.

        Raises
        ------
        RuntimeError
            If one is not among them: the table is not what it was when it was read before.
        """
        places = label_positions(hash_label_rows(codes, self._seed), self._keys)
        if (places < 0).any():
            raise changed("a label row is new")
        return self._order[places]

    def of_rows(self, codes, name: str):
        """Return the values of label rows."""
        return self._values[name][self.positions(codes)]


class CountedRows(LabelTable):
    """The distinct rows of a label table that is elsewhere, with their numbers of samples.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_partitions), int
        Codes of the labels in `table`; rows may repeat.
    counts : ndarray of shape (n_rows,), int
        How many samples a row stands for.
    table : BlockedTable
        The whole table.
    """

    def __init__(self, codes, counts, table: BlockedTable):
        first, groups, _ = distinct_rows(codes)
        self.codes = codes[first]
        self.counts = _count_groups(groups, counts, len(first))
        self.categories = table.known
        self.n_clusters = table.n_clusters
        self.name = "X"

    def __len__(self) -> int:
        return int(self.counts.sum())

    def problem(self, weights, normalize: bool):
        """Return the factorization of the rows that have a label, and which rows have."""
        weights = normalize_weights(weights, len(self.n_clusters))
        ensemble = Ensemble(self.codes, self.counts, weights, self.n_clusters)
        return self._problem_of(ensemble, np.arange(len(ensemble)), normalize)
