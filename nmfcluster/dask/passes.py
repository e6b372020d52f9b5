r"""A consensus of more label rows than are held: passes over blocks, each of which improves it.

A row h of the factor that fits to a factor H of all samples minimises :math:`\|a - Hh'\|^2`, a the
row of the similarity. It needs of H only :math:`Z'H`, one row a base cluster, and :math:`H'H`:
sums over samples. One pass makes the rows of every block and their sums, which are what the next
pass fits to. They are sums of whole numbers, so that they are exact: neither the blocks nor their
order matter.

Whoever holds the blocks gives one function, that which sums over all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from nmfcluster._base import membership
from nmfcluster._utils.labels import one_hot
from nmfcluster._utils.linalg import descend, exact_rows
from nmfcluster._utils.progress import stage
from nmfcluster.dask.blocks import BlockedTable, changed
from nmfcluster.partitions.ensemble import POWERS, Ensemble, normalised_loss

Sums = dict[str, np.ndarray]  # of whole numbers: those of blocks are added

_SWEEPS = 8  # of coordinate descent, the same for every row: 60 lower no loss by more than 1e-6
# Of an entry of the factor, and of a scale: products of two over 10^9 samples are below 2^63, and
# over the rows that are added as floats, 16,384, below 2^53. The same holds for the other two.
_BITS = 16
_SHARE_BITS = 20  # of a share
_REST_BITS = 32  # of what is left of a number that was rounded to a whole one


class BlockedProblem(BlockedTable):
    """What `EnsembleProblem` says of an ensemble, of a table of which there are only blocks."""

    @cached_property
    def sizes(self) -> np.ndarray:
        """Number of samples of every base cluster, (C,)."""
        return np.concatenate([sizes for _, sizes in self.clusters])

    @cached_property
    def shares(self) -> np.ndarray:
        """By what the weight of its partition is multiplied in the votes of a cluster, (C,)."""
        return 1 / np.maximum(self.sizes, 1)

    @cached_property
    def cluster_weights(self) -> np.ndarray:
        """Weight of its partition for every base cluster, (C,)."""
        return np.repeat(self.weights, self.n_clusters)

    @cached_property
    def votes(self) -> np.ndarray:
        """What each base cluster adds to every pair that it holds, (C,)."""
        return self.cluster_weights * self.shares

    @cached_property
    def step(self) -> float:
        """A power of two in which the scales of samples are counted, see `scale`."""
        highest = 1.0 if self.is_complete else 1 / np.sqrt(self.least)
        return float(np.exp2(np.ceil(np.log2(highest)) - _BITS))

    def scale(self, rows: Ensemble) -> np.ndarray:
        """Return by what the rows of a similarity are multiplied, (m,)."""
        if self.is_complete:
            return np.ones(len(rows))
        return 1 / np.sqrt(np.where(rows.coverage > 0, rows.coverage, 1))

    def constant(self, sums: Sums) -> float:
        """Return the loss of the zero factor."""
        held = (sums["inverse"] + sums["rest"] * 2.0**-_REST_BITS) * self.step**2
        return float(self.cluster_weights @ (held * self.shares) ** 2)


@dataclass(frozen=True)
class Target:
    """What rows are fitted to: sums over a factor of all samples.

    Attributes
    ----------
    links : ndarray of shape (C, k)
        N: the sum over the members of every base cluster, rows scaled as the similarity's.
    gram : ndarray of shape (k, k)
        G.
    """

    links: np.ndarray
    gram: np.ndarray

    def grid(self, problem: BlockedProblem) -> np.ndarray:
        """Return steps, powers of two, by which all entries of a column can be counted, (k,)."""
        links, told = (
            self.links * problem.shares[:, None],
            problem.cluster_weights[:, None] > 0,
        )
        lengths = np.diagonal(self.gram)  # an entry is at most b / g
        ratios = np.divide(
            links, lengths, out=np.zeros(links.shape), where=told & (lengths > 0)
        )
        highest = np.maximum(ratios.max(axis=0), np.finfo(float).tiny)
        return np.exp2(np.ceil(np.log2(highest)) - _BITS)

    def rows(self, rows: Ensemble, problem: BlockedProblem) -> np.ndarray:
        """Return the rows of the factor that fit best, (m, k)."""
        B = (
            rows.spread(problem.votes[:, None] * self.links)
            * problem.scale(rows)[:, None]
        )
        return np.ascontiguousarray(_nonnegative(B.T, self.gram).T)


def _nonnegative(N: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Return the columns f >= 0 that minimise ``f'Gf - 2 n'f``, each whatever is beside it."""
    alone = N.shape[1] == 1
    N = (
        np.repeat(N, 2, axis=1) if alone else N
    )  # numpy sums a column by itself in another order
    diagonal = np.diagonal(G)[:, None]
    F = np.divide(
        np.maximum(N, 0), diagonal, out=np.zeros(N.shape), where=diagonal > 0
    ) / len(N)
    descend(F[None], N[None], G[None], _SWEEPS, column_by_column=True)
    return F[:, :1] if alone else F


def first_target(rows: Ensemble, H: np.ndarray, problem: BlockedProblem) -> Target:
    """Return what rows are fitted to at first, from the factor of a sample of them.

    Parameters
    ----------
    rows : Ensemble
        The distinct rows of the sample.
    H : ndarray of shape (m, k)
        Their factor, rows as long as the root of how many samples they stand for.
    problem : BlockedProblem
    """
    times = problem.n_samples / rows.counts.sum()
    # votes are 1 / size: rows of more samples are shorter
    alone = H / np.sqrt(rows.counts)[:, None] / np.sqrt(times)
    links = rows.collect(alone * (problem.scale(rows) * rows.counts)[:, None]) * times
    return Target(links, alone.T @ (alone * rows.counts[:, None]) * times)


# --- sums over blocks -----------------------------------------------------------------------------


def sums_of_block(
    block: Any, problem: BlockedProblem, target: Target, grid: np.ndarray
) -> Sums:
    """Return the sums of a block over the rows that fit best.

    Parameters
    ----------
    block : array-like of shape (n_rows, n_partitions)
    problem : BlockedProblem
    target : Target
    grid : ndarray of shape (k,)
        Steps in which entries are counted.

    Returns
    -------
    dict
        links, gram : of `Target`, in steps of the grid; links of scaled rows in these times
        `BlockedProblem.step`. contingency (C, k), mass (k,) : of the shares of the rows. sizes
        (C,) : the number of the samples. inverse (C,) : of squared scales, in squares of
        `BlockedProblem.step`, and rest (C,) : what these leave, in 2^-32 of them. All int64.
    """
    several = []
    for rows, _ in problem.distinct(np.asarray(block)):
        H, counts = target.rows(rows, problem), rows.counts[:, None]
        # entries, scales and shares become whole numbers of their steps
        steps = np.minimum(np.rint(H / grid), 2.0**_BITS)
        scale = problem.scale(rows) / problem.step
        shares = np.rint(membership(H) * 2.0**_SHARE_BITS)
        inverse = scale**2
        rest = (inverse - np.rint(inverse)) * 2.0**_REST_BITS
        # each is added up over the samples, or over those of every base cluster
        sums = {
            "links": rows.collect(np.rint(steps * scale[:, None]) * counts),
            "gram": steps.T @ (steps * counts),
            "contingency": rows.collect(shares * counts),
            "mass": (rows.counts * (rows.coverage > 0)) @ shares,
            "sizes": rows.collect(rows.counts),
            "inverse": rows.collect(rows.counts * np.rint(inverse)),
            "rest": rows.collect(rows.counts * np.rint(rest)),
        }
        several.append({name: values.astype(np.int64) for name, values in sums.items()})
    return all_added(several)


def counts_of_block(block: Any, problem: BlockedProblem, profiles: np.ndarray) -> Sums:
    """Return the labels (n_readings, C, k) and members (n_readings, k) that profiles lead to."""
    several = []
    for rows, _ in problem.distinct(np.asarray(block)):
        indicators = [
            one_hot(rows.spread(p).argmax(axis=1), p.shape[1]) for p in profiles
        ]
        labels = np.stack([rows.contingency(E) for E in indicators])
        members = np.stack(
            [(rows.counts * (rows.coverage > 0)) @ E for E in indicators]
        )
        several.append(
            {"labels": labels.astype(np.int64), "members": members.astype(np.int64)}
        )
    return all_added(several)


def all_added(several: list[Sums]) -> Sums:
    """Return the sums over the samples of all."""
    return {
        name: np.sum([sums[name] for sums in several], axis=0) for name in several[0]
    }


# --- passes ---------------------------------------------------------------------------------------


def next_target(
    sums: Sums, problem: BlockedProblem, grid: np.ndarray
) -> tuple[Target, float]:
    """Return what the next pass fits to, and the loss of this one, its columns scaled as is best.

    Raises
    ------
    RuntimeError
        If the blocks have changed.
    """
    if not np.array_equal(sums["sizes"], problem.sizes):
        raise changed("labels are more, or fewer, than before")
    # the loss is quadratic in the squares d of what columns are multiplied by
    links = sums["links"] * (grid * problem.step)
    gram = sums["gram"] * np.outer(grid, grid)
    gain, squares = problem.votes @ links**2, gram**2
    d = exact_rows(gain[None], squares)[0]
    loss = problem.constant(sums) - 2 * float(gain @ d) + float(d @ squares @ d)
    root = np.sqrt(d)
    return Target(links * root, gram * np.outer(root, root)), loss


@dataclass(frozen=True)
class BlockedConsensus:
    """The clusters that were found, to be told of the rows of any block.

    Attributes
    ----------
    table : BlockedTable
    order : ndarray of shape (k,), int
        The clusters in decreasing order of size; what follows has them in this order.
    contingency : ndarray of shape (C, k)
        What every base cluster holds of each.
    profile : ndarray of shape (C, k)
        What the labels and the memberships of samples, of new ones too, are read by.
    """

    table: BlockedTable
    order: np.ndarray
    contingency: np.ndarray
    profile: np.ndarray

    def of_rows(self, rows: Ensemble, what: str) -> np.ndarray:
        """Return the "labels", "membership" or "confidence" of label rows."""
        P, seen = membership(rows.spread(self.profile)), rows.coverage > 0
        if what == "membership":
            return P
        labels = P.argmax(axis=1)
        if what == "labels":
            return np.where(seen, labels, -1)
        return np.where(seen, rows.item_consensus(self.contingency, labels), 0)

    def of_block(self, block: Any, what: str) -> np.ndarray:
        """Return the "labels", "membership" or "confidence" of the rows of a block."""
        parts = self.table.distinct(np.asarray(block))
        return np.concatenate(
            [self.of_rows(rows, what)[groups] for rows, groups in parts]
        )


def improved(
    everywhere: Callable[..., Sums],
    problem: BlockedProblem,
    target: Target,
    n_passes: int,
) -> tuple[BlockedConsensus, np.ndarray]:
    """Return the consensus after the best of some passes, and the losses of all.

    Parameters
    ----------
    everywhere : callable
        ``everywhere(function, *args)`` returns the sum of ``function(block, problem, *args)`` over
        all blocks: who holds the blocks gives it.
    problem : BlockedProblem
    target : Target
        Of the first pass, see `first_target`.
    n_passes : int
    """
    every, losses = [], np.empty(n_passes)
    for number in range(n_passes):
        with stage(f"pass {number + 1} over {problem.n_samples} rows") as told:
            grid = target.grid(problem)
            every.append(everywhere(sums_of_block, target, grid))
            target, losses[number] = next_target(every[-1], problem, grid)
            told.outcome = f"loss {losses[number]:.6g}"
    # the best pass is kept, the first of equal ones: losses were never seen to rise
    best = every[int(np.argmin(losses))]
    # the mean co-association of a member of every base cluster with every cluster
    profile = (
        problem.cluster_weights[:, None]
        * best["contingency"]
        / np.maximum(best["mass"], 1)
    )
    # labels are those of the reading with the smallest hard loss
    sizes = np.maximum(problem.sizes, 1)[:, None]
    profiles = np.stack([profile / sizes**power for power in POWERS])
    sums, constant = everywhere(counts_of_block, profiles), problem.constant(best)
    held = sums["labels"].astype(np.float64)
    hard = [
        normalised_loss(constant, problem.votes, N, problem.cluster_weights @ N)
        for N in held
    ]
    reading = int(np.argmin(hard))
    order = np.argsort(-sums["members"][reading], kind="stable")
    contingency, profile = held[reading][:, order], profiles[reading][:, order]
    return BlockedConsensus(problem, order, contingency, profile), losses
