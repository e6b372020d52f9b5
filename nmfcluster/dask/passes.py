r"""A consensus of more label rows than fit in memory: passes over blocks that improve it.

A row h of the factor that fits a factor H of all samples minimises :math:`\|a - Hh'\|^2`, a the
row of the similarity. It needs of H only :math:`Z'H`, one row a base cluster, and :math:`H'H`:
sums over samples. One pass makes the rows of every block and their sums, to which the next pass
fits its rows. They are sums of whole numbers, so that they are exact: neither the blocks nor
their order matter.

The caller passes one function, which sums over all blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from nmfcluster._base import membership
from nmfcluster._utils.labels import one_hot
from nmfcluster._utils.linalg import coordinate_descent, nnls_rows
from nmfcluster._utils.progress import stage
from nmfcluster.dask.blocks import SCALE_BITS, BlockedTable, changed
from nmfcluster.partitions.ensemble import POWERS, Ensemble, normalised_loss

Sums = dict[str, np.ndarray]  # of whole numbers: those of blocks are added

_SWEEPS = 8  # of coordinate descent, the same for every row: 60 lower no loss by more than 1e-6
# bits of numbers that are rounded to whole ones, beside `SCALE_BITS` of entries of the factor
_SHARE_BITS = 20  # of a share
_REST_BITS = 32  # of the rest of a number that was rounded to a whole one


def zero_loss(problem: BlockedTable, sums: Sums) -> float:
    """Return the loss of the zero factor."""
    inverse = sums["inverse"] + sums["rest"] * 2.0**-_REST_BITS
    inverse = inverse * problem.scale_unit**2
    return float(problem.cluster_weights @ (inverse * problem.shares) ** 2)


@dataclass(frozen=True)
class Target:
    """Sums over a factor of all samples, to which rows are fitted.

    Attributes
    ----------
    links : ndarray of shape (C, k)
        N: the sum over the members of every base cluster, rows scaled as the similarity's.
    gram : ndarray of shape (k, k)
        G.
    """

    links: np.ndarray
    gram: np.ndarray

    def grid(self, problem: BlockedTable):
        """Return units of the entries of every column, powers of two, (k,)."""
        links = self.links * problem.shares[:, None]
        lengths = np.diagonal(self.gram)
        # an entry is at most the largest ratio of a link and a length
        defined = (problem.cluster_weights[:, None] > 0) & (lengths > 0)
        ratios = np.zeros(links.shape)
        np.divide(links, lengths, out=ratios, where=defined)
        highest = np.maximum(ratios.max(axis=0), np.finfo(float).tiny)
        return np.exp2(np.ceil(np.log2(highest)) - SCALE_BITS)

    def rows(self, rows: Ensemble, problem: BlockedTable):
        """Return the rows of the factor that fit best, (m, k)."""
        B = rows.row_sums(problem.votes[:, None] * self.links)
        B = B * problem.scale(rows)[:, None]
        return np.ascontiguousarray(_solve_columns(B.T, self.gram).T)


def _solve_columns(N, G):
    """Return the columns f >= 0 that minimise ``f'Gf - 2 n'f``, each solved independently."""
    is_single = N.shape[1] == 1
    if is_single:  # numpy sums a column by itself in another order
        N = np.repeat(N, 2, axis=1)
    diagonal = np.diagonal(G)[:, None]
    start = np.zeros(N.shape)
    np.divide(np.maximum(N, 0), diagonal, out=start, where=diagonal > 0)
    F = start / len(N)
    coordinate_descent(F[None], N[None], G[None], _SWEEPS, column_by_column=True)
    return F[:, :1] if is_single else F


def first_target(rows: Ensemble, H, problem: BlockedTable) -> Target:
    """Return the target of the first pass, from the factor of a sample of the rows.

    Parameters
    ----------
    rows : Ensemble
        The distinct rows of the sample.
    H : ndarray of shape (m, k)
        Their factor, rows multiplied by the root of their number of samples.
    problem : BlockedTable
    """
    ratio = problem.n_samples / rows.counts.sum()
    # votes are 1 / size: rows of more samples are shorter
    H = H / np.sqrt(rows.counts)[:, None] / np.sqrt(ratio)
    weights = problem.scale(rows) * rows.counts
    links = rows.cluster_sums(H * weights[:, None]) * ratio
    return Target(links, H.T @ (H * rows.counts[:, None]) * ratio)


# --- sums over blocks -----------------------------------------------------------------------------


def sums_of_block(block, problem: BlockedTable, target: Target, grid) -> Sums:
    """Return the sums of a block over the rows that fit best.

    Parameters
    ----------
    block : array-like of shape (n_rows, n_partitions)
    problem : BlockedTable
    target : Target
    grid : ndarray of shape (k,)
        Steps in which entries are counted.

    Returns
    -------
    dict
        links, gram : of `Target`, in steps of the grid; links of scaled rows in these times
        `BlockedTable.scale_unit`. contingency (C, k), mass (k,) : of the shares of the rows. sizes
        (C,) : the number of the samples. inverse (C,) : of squared scales, in squares of
        `BlockedTable.scale_unit`, and rest (C,) : what these leave, in 2^-32 of them. All int64.
    """
    parts = []
    for codes, counts, _ in problem.distinct(block):
        rows = problem.ensemble(codes, counts)
        H = target.rows(rows, problem)
        counts = counts[:, None]
        # entries, scales and shares become whole numbers of their steps
        steps = np.minimum(np.rint(H / grid), 2.0**SCALE_BITS)
        scale = problem.scale(rows) / problem.scale_unit
        shares = np.rint(membership(H) * 2.0**_SHARE_BITS)
        inverse = scale**2
        rest = (inverse - np.rint(inverse)) * 2.0**_REST_BITS
        # each is added up over the samples, or over those of every base cluster
        sums = {
            "links": rows.cluster_sums(np.rint(steps * scale[:, None]) * counts),
            "gram": steps.T @ (steps * counts),
            "contingency": rows.cluster_sums(shares * counts),
            "mass": (rows.counts * (rows.coverage > 0)) @ shares,
            "sizes": rows.sizes,
            "inverse": rows.cluster_sums(rows.counts * np.rint(inverse)),
            "rest": rows.cluster_sums(rows.counts * np.rint(rest)),
        }
        parts.append(sums)
    return add_sums(parts)


def counts_of_block(block, problem: BlockedTable, profiles) -> Sums:
    """Return the counts in base clusters (n_profiles, C, k), and sizes (n_profiles, k).

    They are those of the clusters of the rows of a block by each profile.
    """
    parts = []
    for codes, counts, _ in problem.distinct(block):
        rows = problem.ensemble(codes, counts)
        labelled = counts * (rows.coverage > 0)
        indicators = []
        for profile in profiles:
            labels = rows.row_sums(profile).argmax(axis=1)
            indicators.append(one_hot(labels, profile.shape[1]))
        parts.append(
            {
                "labels": np.stack([rows.contingency(E) for E in indicators]),
                "members": np.stack([labelled @ E for E in indicators]),
            }
        )
    return add_sums(parts)


def add_sums(parts: list[Sums]) -> Sums:
    """Return the sums over the samples of all parts, which are whole numbers."""
    total = {}
    for name in parts[0]:
        total[name] = np.sum([sums[name].astype(np.int64) for sums in parts], axis=0)
    return total


# --- passes ---------------------------------------------------------------------------------------


def next_target(sums: Sums, problem: BlockedTable, grid) -> tuple[Target, float]:
    """Return the target of the next pass, and the loss of this one, its columns scaled best.

    Raises
    ------
    RuntimeError
        If the blocks have changed.
    """
    if not np.array_equal(sums["sizes"], problem.sizes):
        raise changed("labels are more, or fewer, than before")
    # the loss is quadratic in the squares d of what columns are multiplied by
    links = sums["links"] * (grid * problem.scale_unit)
    gram = sums["gram"] * np.outer(grid, grid)
    gain = problem.votes @ links**2
    squares = gram**2
    d = nnls_rows(gain[None], squares)[0]
    loss = zero_loss(problem, sums) - 2 * float(gain @ d) + float(d @ squares @ d)
    root = np.sqrt(d)
    return Target(links * root, gram * np.outer(root, root)), loss


@dataclass(frozen=True)
class BlockedConsensus:
    """The clusters of a fit, by which any label rows are labelled.

    Attributes
    ----------
    table : BlockedTable
    order : ndarray of shape (k,), int
        The clusters in decreasing order of size, the order of the columns of the next two.
    contingency : ndarray of shape (C, k)
        Number of samples that every base cluster shares with each.
    profile : ndarray of shape (C, k)
        Gives labels and memberships of samples, see `Ensemble.cluster_profile`.
    """

    table: BlockedTable
    order: np.ndarray
    contingency: np.ndarray
    profile: np.ndarray

    def of_rows(self, codes, name: str):
        """Return the "labels", "membership" or "confidence" of label rows."""
        rows = self.table.ensemble(codes, np.ones(len(codes)))
        P = membership(rows.row_sums(self.profile))
        if name == "membership":
            return P
        seen = rows.coverage > 0
        labels = P.argmax(axis=1)
        if name == "labels":
            return np.where(seen, labels, -1)
        return np.where(seen, rows.item_consensus(self.contingency, labels), 0)


def improve(
    sum_blocks: Callable[..., Sums],
    problem: BlockedTable,
    target: Target,
    n_passes: int,
) -> tuple[BlockedConsensus, np.ndarray]:
    """Return the consensus after the best of some passes, and the losses of all.

    Parameters
    ----------
    sum_blocks : callable
        ``sum_blocks(function)`` returns the sum of ``function(block)`` over all blocks.
    problem : BlockedTable
    target : Target
        Of the first pass, see `first_target`.
    n_passes : int
    """
    passes = []
    losses = np.empty(n_passes)
    for number in range(n_passes):
        with stage(f"pass {number + 1} over {problem.n_samples} rows") as progress:
            grid = target.grid(problem)
            sum_rows = partial(sums_of_block, problem=problem, target=target, grid=grid)
            passes.append(sum_blocks(sum_rows))
            target, losses[number] = next_target(passes[-1], problem, grid)
            progress.outcome = f"loss {losses[number]:.6g}"
    # the best pass is kept, the first of equal ones: losses were never seen to rise
    best = passes[int(np.argmin(losses))]
    # the mean co-association of a member of every base cluster with every cluster
    mass = np.maximum(best["mass"], 1)
    profile = problem.cluster_weights[:, None] * best["contingency"] / mass
    # votes are divided by the power of the sizes with the smallest hard loss
    sizes = np.maximum(problem.sizes, 1)[:, None]
    profiles = np.stack([profile / sizes**power for power in POWERS])
    sums = sum_blocks(partial(counts_of_block, problem=problem, profiles=profiles))
    contingencies = sums["labels"].astype(np.float64)
    constant = zero_loss(problem, best)
    hard_losses = []
    for N in contingencies:
        volumes = problem.cluster_weights @ N
        hard_losses.append(normalised_loss(constant, problem.votes, N, volumes))
    chosen = int(np.argmin(hard_losses))
    order = np.argsort(-sums["members"][chosen], kind="stable")
    found = BlockedConsensus(
        problem,
        order,
        contingency=contingencies[chosen][:, order],
        profile=profiles[chosen][:, order],
    )
    return found, losses
