"""A label table by blocks of rows that need never be in one place: what a block tells of it.

Whoever holds the blocks asks for the summary of each, merges these in any order, and looks label
rows up among the distinct ones. Nothing here knows where blocks are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from nmfcluster._utils.labels import ROWS, distinct_rows, narrow, places_of, row_keys
from nmfcluster._utils.storage import row_blocks
from nmfcluster._utils.validation import shown
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.partitions.inputs import LabelTable, labelled_rows

_TUPLES = (
    5_000  # of a group of partitions: the same for all blocks, see `Ensemble.most`
)


def clean_block(block: Any, first: int = 0) -> np.ndarray:
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
        got = f"dtype {block.dtype} in the block of row {first}"
        cure = "give every string a number first, as pandas.factorize does"
        raise TypeError(f"X must hold integers as labels, got {got}: {cure}.")
    wrong = np.zeros(block.shape, dtype=bool)
    if kind == "f":
        block = block.astype(
            np.float64, copy=False
        )  # float16 could not hold what follows
        block = np.where(np.isnan(block), -1, block)
        wrong = (block != np.floor(block)) | (np.abs(block) > 2**53)
    elif block.dtype == np.uint64:
        wrong = block > np.uint64(2**63 - 1)
    if wrong.any():
        row, t = (int(i) for i in np.argwhere(wrong)[0])
        got = f"{shown(block[row, t].item())} in row {first + row}, partition {t}"
        must = (
            "X must hold integers as labels, NaN or -1 where not seen, up to 2**63 - 1"
        )
        raise ValueError(f"{must}, got {got}.")
    if kind in "if" and block.min(initial=0) < -1:
        block = np.maximum(block, -1)
    kept = {"bool": np.int8, "uint64": np.int64, "float64": np.int64}
    return block.astype(kept.get(block.dtype.name, block.dtype), copy=False)


class Counted(NamedTuple):
    """Distinct labels, or label rows, and the number of samples with each."""

    values: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class TableSummary:
    """What blocks of a label table tell of it; summaries of all blocks merge into that of all.

    Attributes
    ----------
    clusters : list of Counted
        The labels of every partition, in increasing order.
    distinct : Counted or None
        The distinct label rows; None where they are more than was allowed.
    n_lost : int
        Samples that no partition saw.
    first_lost : int
        The row of the first of them, -1 if there is none.
    least : float
        The smallest weight of the partitions that saw a sample.
    """

    clusters: list[Counted]
    distinct: Counted | None
    n_lost: int
    first_lost: int
    least: float

    @classmethod
    def of_block(
        cls, block: Any, first: int, weights: np.ndarray, most: int
    ) -> TableSummary:
        """Return the summary of a block.

        Parameters
        ----------
        block : array-like of shape (n_rows, n_partitions)
        first : int
            Number of its first row in the whole table.
        weights : ndarray of shape (n_partitions,)
            Weights of the partitions.
        most : int
            Number of distinct rows that are kept at most.
        """
        block = clean_block(block, first)
        pieces = row_blocks(len(block), ROWS)
        parts = [
            cls._of_part(block[rows], first + rows.start, weights) for rows in pieces
        ]
        return cls.merged(parts, most)

    @classmethod
    def _of_part(
        cls, part: np.ndarray, first: int, weights: np.ndarray
    ) -> TableSummary:
        where, _, counts = distinct_rows(part)
        rows = narrow(part[where])
        clusters = [_counted(labels, counts) for labels in rows.T]
        coverage = np.where(rows >= 0, weights, 0.0).sum(axis=1)
        lost = coverage <= 0
        least = float(coverage.min(where=~lost, initial=np.inf))
        first_lost = first + int(where[lost].min()) if lost.any() else -1
        return cls(
            clusters, Counted(rows, counts), int(counts[lost].sum()), first_lost, least
        )

    @classmethod
    def merged(cls, parts: Sequence[TableSummary], most: int) -> TableSummary:
        """Return the summary of the rows of several."""
        clusters = [
            _added(several)
            for several in zip(*(p.clusters for p in parts), strict=True)
        ]
        distinct = _together([part.distinct for part in parts], most)
        lost = [part.first_lost for part in parts if part.first_lost >= 0]
        n_lost, least = sum(p.n_lost for p in parts), min(p.least for p in parts)
        return cls(clusters, distinct, n_lost, min(lost, default=-1), least)


def _together(parts: Sequence[Counted | None], most: int) -> Counted | None:
    """Return the distinct rows of several; None if these are more than `most`."""
    held = [part for part in parts if part is not None and len(part.values) <= most]
    if len(held) < len(parts):
        return None
    merged = held[0]
    for part in held[1:]:  # one by one: it ends as soon as they are too many
        every = np.concatenate([merged.values, part.values])
        where, groups, _ = distinct_rows(every)
        if len(where) > most:
            return None
        counts = _sums(groups, np.concatenate([merged.counts, part.counts]), len(where))
        merged = Counted(every[where], counts)
    return merged


def _sums(groups: np.ndarray, numbers: np.ndarray, n_groups: int) -> np.ndarray:
    return np.bincount(groups, weights=numbers, minlength=n_groups).astype(
        np.int64
    )  # < 2^53


def _counted(labels: np.ndarray, counts: np.ndarray) -> Counted:
    """Return the labels of a partition that occur, those of so many samples each."""
    known, sizes = _added([Counted(labels, counts)])
    return Counted(known[known >= 0].astype(np.int64), sizes[known >= 0])


def _added(several: Sequence[Counted]) -> Counted:
    values, counts = map(np.concatenate, zip(*several, strict=True))
    labels, groups = np.unique(values, return_inverse=True)
    return Counted(labels, _sums(groups, counts, len(labels)))


@dataclass(frozen=True)
class BlockedTable:
    """What is known of a label table of which there are only blocks.

    Attributes
    ----------
    clusters : list of Counted
        The labels of every partition, in increasing order: a code is a position among them.
    weights : ndarray of shape (n_partitions,)
        Weights of the partitions, which sum to 1.
    n_samples : int
    least : float
        The smallest weight of the partitions that saw a sample.
    """

    clusters: list[Counted]
    weights: np.ndarray
    n_samples: int
    least: float

    @cached_property
    def known(self) -> list[np.ndarray]:
        """The labels of every partition, in increasing order."""
        return [labels for labels, _ in self.clusters]

    @cached_property
    def n_clusters(self) -> np.ndarray:
        """Number of clusters of every partition, (n_partitions,)."""
        return np.array([len(labels) for labels in self.known])

    @cached_property
    def is_complete(self) -> bool:
        """Whether every partition saw all samples."""
        return all(sizes.sum() == self.n_samples for _, sizes in self.clusters)

    def codes(self, block: Any, first: int = 0) -> np.ndarray:
        """Return the labels of a block as positions among those of their partitions; -1: not seen.

        Raises
        ------
        RuntimeError
            If a label is new: the table is not what it was when it was read before.
        """
        block = clean_block(block, first)
        if all(labels.max(initial=-1) == len(labels) - 1 for labels in self.known):
            codes, new = block.astype(np.int32), block >= self.n_clusters
        else:  # numbers are left out
            pairs = zip(block.T, self.known, strict=True)
            codes = np.stack([places_of(*pair) for pair in pairs], axis=1).astype(
                np.int32
            )
            new = (codes < 0) & (block >= 0)
        if new.any():
            raise changed("a label is new")
        return codes

    def distinct(self, block: Any) -> Iterator[tuple[Ensemble, np.ndarray]]:
        """Yield the distinct rows of a block, some rows at a time, and the one of every row."""
        for rows in row_blocks(len(block), ROWS):
            codes = self.codes(block[rows])
            where, groups, counts = distinct_rows(codes)
            yield self.ensemble(codes[where], counts), groups

    def ensemble(self, codes: np.ndarray, counts: np.ndarray) -> Ensemble:
        """Return distinct rows as an ensemble, in which no row depends on those beside it."""
        return Ensemble(codes, counts, self.weights, self.n_clusters, most=_TUPLES)


def changed(why: str) -> RuntimeError:
    """Return the error of a table that is read twice and does not hold the same."""
    told = f"X must hold the same labels whenever it is read, but {why}"
    cure = "Write it to a file, or persist it, and fit that"
    return RuntimeError(f"{told}: something in what makes it is random. {cure}.")


class KnownRows:
    """What was found of every distinct label row, to be told of the rows of any block.

    Parameters
    ----------
    table : BlockedTable
    codes : ndarray of shape (n_distinct, n_partitions), int
        The distinct rows, which are found by their keys; they are not kept.
    values : dict of ndarray of shape (n_distinct, ...)
        By what they are called.
    """

    def __init__(
        self, table: BlockedTable, codes: np.ndarray, values: dict[str, np.ndarray]
    ) -> None:
        for seed in count():  # until no two rows have one key, which is at once
            keys, order = np.unique(row_keys(codes, seed), return_index=True)
            if len(keys) == len(codes):
                break
        self._table, self._values = table, values
        self._seed, self._keys, self._order = seed, keys, order.astype(np.int32)

    def positions(self, codes: np.ndarray) -> np.ndarray:
        """Return where rows are among the distinct ones, (n_rows,), int.

        Raises
        ------
        RuntimeError
            If one is not among them: the table is not what it was when it was read before.
        """
        places = places_of(row_keys(codes, self._seed), self._keys)
        if (places < 0).any():
            raise changed("a label row is new")
        return self._order[places]

    def of_block(self, block: Any, what: str) -> np.ndarray:
        """Return the values of the rows of a block."""
        block, values = np.asarray(block), self._values[what]
        parts = (
            self._table.codes(block[rows]) for rows in row_blocks(len(block), ROWS)
        )
        return np.concatenate([values[self.positions(codes)] for codes in parts])


class CountedRows(LabelTable):
    """The distinct rows of a label table that is elsewhere, with how many samples have each.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_partitions), int
        Codes of the labels in `table`; rows may repeat.
    counts : ndarray of shape (n_rows,), int
        How many samples a row stands for.
    table : BlockedTable
        What is known of the whole table.
    """

    def __init__(
        self, codes: np.ndarray, counts: np.ndarray, table: BlockedTable
    ) -> None:
        first, groups, _ = distinct_rows(codes)
        self.codes, self.counts = (
            codes[first],
            np.bincount(groups, counts).astype(np.int64),
        )
        self.categories, self.n_clusters = table.known, table.n_clusters
        self.name, self.dtype = "X", np.dtype(np.float64)

    def __len__(self) -> int:
        return int(self.counts.sum())

    def _ensemble(self, weights: np.ndarray) -> tuple[Ensemble, np.ndarray]:
        ensemble = Ensemble(self.codes, self.counts, weights, self.n_clusters)
        return labelled_rows(ensemble, np.arange(len(ensemble)))
