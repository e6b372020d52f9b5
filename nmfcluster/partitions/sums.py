r"""Sums over the samples of a blocked table: what rows of a factor are fitted to, and add up to.

They are sums of whole numbers, so that they are exact: neither the blocks nor their order matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from nmfcluster._arrays.labels import one_hot
from nmfcluster._arrays.least_squares import descend
from nmfcluster._arrays.storage import row_blocks
from nmfcluster._base import membership
from nmfcluster.partitions.blocks import BlockedTable
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.partitions.problem import normalised_loss, seen_grams

Sums = dict[str, np.ndarray]  # of whole numbers: those of blocks are added

_SWEEPS = 8  # of coordinate descent, the same for every row: 60 lower no loss by more than 1e-6
_SHARE_BITS = 20  # of a share
# Of an entry of the factor, and of a scale: products of two over 10^9 samples are below 2^63, and
# over the rows that are added as floats, 16,384, below 2^53.
_FACTOR_BITS = _SCALE_BITS = 16
_REST_BITS = 32  # of what is left of a number that was rounded to a whole one
_PRODUCTS = 2**19  # of two entries of a row that are held at a time: 4 MiB


@dataclass(frozen=True)
class Footing:
    """What the partitions of a blocked table count for, see `EnsembleProblem`.

    Attributes
    ----------
    table : BlockedTable
    normalize : bool
        Whether clusters count, and not pairs.
    """

    table: BlockedTable
    normalize: bool

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of samples of every base cluster, (C,)."""
        return np.concatenate(self.table.sizes_of)

    @cached_property
    def shares(self) -> np.ndarray:
        """By what the weight of its partition is multiplied in the votes of a cluster, (C,)."""
        return 1 / np.maximum(self.sizes, 1) if self.normalize else np.ones(len(self.sizes))

    @cached_property
    def weights(self) -> np.ndarray:
        """Weight of its partition for every base cluster, (C,)."""
        return np.repeat(self.table.weights, self.table.n_clusters)

    @property
    def by_partition(self) -> bool:
        """Whether every partition has an H'H of its own: pairs count, and some were not seen."""
        return not self.normalize and not self.table.is_complete

    @cached_property
    def step(self) -> float:
        """A power of two in which the scales of samples are counted, see `scale`."""
        highest = 1.0
        if self.normalize and not self.table.is_complete:
            least = self.table.least or self.table.weights[self.table.weights > 0].min()
            highest = 1 / np.sqrt(least)
        return float(np.exp2(np.ceil(np.log2(highest)) - _SCALE_BITS))

    def scale(self, rows: Ensemble) -> np.ndarray:
        """Return by what the rows of a similarity are multiplied, (m,)."""
        if not self.normalize or self.table.is_complete:
            return np.ones(len(rows))
        return 1 / np.sqrt(rows.coverage)

    def constant(self, sums: Sums) -> float:
        """Return the loss of the zero factor."""
        held: np.ndarray = self.sizes
        if self.normalize:
            held = (sums["inverse"] + sums["rest"] * 2.0**-_REST_BITS) * self.step**2
        return float(self.weights @ (held * (self.shares if self.normalize else 1)) ** 2)

    def hard_loss(self, contingency: np.ndarray, constant: float) -> float:
        """Return the hard loss of a partition, normalised, see `EnsembleProblem.hard_loss`."""
        N = contingency.astype(np.float64)
        volumes = self.weights @ N  # every sample counts as the weight that saw it
        return normalised_loss(constant, self.weights * self.shares, N, volumes)


@dataclass(frozen=True)
class Fitted:
    """What rows are fitted to: sums over a factor of all samples.

    Attributes
    ----------
    links : ndarray of shape (C, k)
        N: the sum over the members of every base cluster, rows scaled as the similarity's.
    grams : ndarray of shape (k, k) or (T, k, k)
        G, or that of the samples that each partition saw.
    """

    links: np.ndarray
    grams: np.ndarray

    def grid(self, footing: Footing) -> np.ndarray:
        """Return steps, powers of two, by which all entries of a column can be counted, (k,)."""
        T, k = len(footing.table.n_clusters), self.links.shape[1]
        owner = np.repeat(np.arange(T), footing.table.n_clusters)
        squares = np.einsum("...cc->...c", self.grams)
        lengths = np.broadcast_to(squares, (T, k))[owner]  # an entry is at most b / g
        ratios = np.divide(
            self.links * footing.shares[:, None],
            lengths,
            out=np.zeros((len(owner), k)),
            where=(lengths > 0) & (footing.weights > 0)[:, None],
        )
        highest = np.maximum(ratios.max(axis=0), np.finfo(float).tiny)
        return np.exp2(np.ceil(np.log2(highest)) - _FACTOR_BITS)

    def rows(self, rows: Ensemble, footing: Footing) -> np.ndarray:
        """Return the rows of the factor that fit best, (m, k)."""
        votes = (footing.weights * footing.shares)[:, None] * self.links
        B = rows.spread(votes) * footing.scale(rows)[:, None]
        H, k = np.empty_like(B), B.shape[1]
        for block in row_blocks(len(B), max(1, _PRODUCTS // k**2)):
            H[block] = _nonnegative(B[block].T, self._grams_of(rows, block, footing)).T
        return H

    def _grams_of(self, rows: Ensemble, block: slice, footing: Footing) -> np.ndarray:
        """Return G of some rows, (k, k, n_rows) or (k, k, 1) where it is the same for all."""
        if not footing.by_partition:
            return self.grams[:, :, None]
        k = self.grams.shape[-1]
        weighted = footing.table.weights[:, None] * self.grams.reshape(-1, k * k)
        part = footing.table.ensemble(rows.codes[block], rows.counts[block])
        grams = part.over_seen(weighted).reshape(-1, k, k)
        return np.ascontiguousarray(np.moveaxis(grams, 0, -1))


def _nonnegative(N: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return the columns f >= 0 that minimise ``f'Gf - 2 n'f``, each whatever is beside it."""
    alone = N.shape[1] == 1
    N = np.repeat(N, 2, axis=1) if alone else N  # numpy sums a column by itself in another order
    diagonal = np.einsum("cc...->c...", G)
    F = np.divide(np.maximum(N, 0), diagonal, out=np.zeros(N.shape), where=diagonal > 0) / len(N)
    descend(F, N, G, _SWEEPS)
    return F[:, :1] if alone else F


def sums_of_block(block: Any, footing: Footing, fitted: Fitted, grid: np.ndarray) -> Sums:
    """Return the sums of a block over the rows that fit best.

    Parameters
    ----------
    block : array-like of shape (n_rows, n_partitions)
    footing : Footing
    fitted : Fitted
    grid : ndarray of shape (k,)
        Steps in which entries are counted.

    Returns
    -------
    dict
        links, grams : of `Fitted`, in steps of the grid; links of scaled rows in these times
        `Footing.step`. contingency (C, k), mass (k,) : of the shares of the rows.
        labels (C, k), members (k,) : of their largest entries. inverse (C,) : of squared scales, in
        squares of `Footing.step`, and rest (C,) : what these leave, in 2^-32 of them. All int64.
    """
    found: Sums = {}
    for rows, _ in footing.table.distinct(np.asarray(block)):
        H = fitted.rows(rows, footing)
        found = added(found, _sums(rows, H, footing, grid))
    return found


def _sums(rows: Ensemble, H: np.ndarray, footing: Footing, grid: np.ndarray) -> Sums:
    counts, scale = rows.counts[:, None], footing.scale(rows)
    steps = np.minimum(np.rint(H / grid), 2.0**_FACTOR_BITS)
    E = one_hot(H.argmax(axis=1), H.shape[1])
    inverse = (scale / footing.step) ** 2
    scaled = np.rint(steps * (scale / footing.step)[:, None])
    shares = np.rint(membership(H) * 2.0**_SHARE_BITS)
    if footing.by_partition:
        grams = seen_grams(rows.codes >= 0, steps, steps * counts)
    else:
        grams = steps.T @ (steps * counts)
    found = {
        "links": rows.collect(scaled * counts),
        "grams": grams,
        "contingency": rows.collect(shares * counts),
        "mass": rows.counts @ shares,
        **_counted(rows, E),
        "inverse": rows.collect(rows.counts * np.rint(inverse)),
        "rest": rows.collect(rows.counts * np.rint((inverse - np.rint(inverse)) * 2.0**_REST_BITS)),
    }
    return {name: values.astype(np.int64) for name, values in found.items()}


def _counted(rows: Ensemble, E: np.ndarray) -> Sums:
    """Return the samples of every cluster: in each base cluster (C, k), and at all (k,)."""
    return {"labels": rows.contingency(E), "members": rows.counts @ E}


def all_added(several: list[Sums]) -> Sums:
    """Return the sums over the samples of all."""
    return reduce(added, several)


def added(one: Sums, other: Sums) -> Sums:
    """Return the sums over the samples of both; no sums are those of no samples."""
    return {name: one[name] + other[name] for name in one} if one and other else one or other


def first_fitted(rows: Ensemble, H: np.ndarray, footing: Footing) -> Fitted:
    """Return what rows are fitted to at first, from the factor of a sample of them.

    Parameters
    ----------
    rows : Ensemble
        The distinct rows of the sample.
    H : ndarray of shape (m, k)
        Their factor, rows as long as the root of how many samples they stand for.
    footing : Footing
    """
    times = footing.table.n_samples / rows.counts.sum()
    alone = H / np.sqrt(rows.counts)[:, None]
    if footing.normalize:  # votes are 1 / size: rows of more samples are shorter
        alone = alone / np.sqrt(times)
    links = rows.collect(alone * (footing.scale(rows) * rows.counts)[:, None]) * times
    if footing.by_partition:
        grams = seen_grams(rows.codes >= 0, alone, alone * rows.counts[:, None])
    else:
        grams = alone.T @ (alone * rows.counts[:, None])
    return Fitted(links, grams * times)


def counts_of_block(block: Any, footing: Footing, profiles: np.ndarray) -> Sums:
    """Return the labels (n_readings, C, k) and members (n_readings, k) that profiles lead to."""
    found: Sums = {}
    for rows, _ in footing.table.distinct(np.asarray(block)):
        labels = [rows.spread(profile).argmax(axis=1) for profile in profiles]
        of_each = [_counted(rows, one_hot(own, profiles.shape[2])) for own in labels]
        both = {name: np.stack([own[name] for own in of_each]) for name in of_each[0]}
        found = added(found, {name: values.astype(np.int64) for name, values in both.items()})
    return found
