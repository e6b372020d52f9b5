r"""A consensus of more label rows than are held: passes over blocks, each of which improves it.

A row h of the factor that fits to a factor H of all samples minimises :math:`\|a - Hh'\|^2`, a the
row of the similarity. It needs of H only :math:`Z'H`, one row a base cluster, and :math:`H'H`:
sums over samples. One pass makes the rows of every block and their sums, see
`nmfcluster.partitions.sums`, which are what the next pass fits to.

Whoever holds the blocks gives one function, that which sums over all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nmfcluster._arrays.least_squares import exact_rows
from nmfcluster._base import membership
from nmfcluster._engine.report import stage
from nmfcluster.partitions.blocks import changed
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.partitions.problem import POWERS
from nmfcluster.partitions.sums import (
    Fitted,
    Footing,
    Sums,
    counts_of_block,
    first_fitted,
    sums_of_block,
)


@dataclass(frozen=True)
class Pass:
    """What a pass over all blocks has found.

    Attributes
    ----------
    fitted : Fitted
        What the next pass fits to.
    loss, constant : float
        Of the factor of this one, its columns scaled as is best, and of the zero factor.
    profile : ndarray of shape (C, k)
        The mean co-association of a member of every base cluster with every cluster, see
        `Ensemble.cluster_profile`.
    labels, members : ndarray of shape (C, k) and (k,), int64
        What every base cluster holds of the largest entries of rows, and how many there are.
    """

    fitted: Fitted
    loss: float
    constant: float
    profile: np.ndarray
    labels: np.ndarray
    members: np.ndarray

    @classmethod
    def of_sums(cls, sums: Sums, footing: Footing, grid: np.ndarray) -> Pass:
        """Return what the sums of all blocks say; a RuntimeError if the blocks have changed."""
        if not np.array_equal(sums["labels"].sum(axis=1), footing.sizes):
            raise changed("labels are more, or fewer, than before")
        constant = footing.constant(sums)
        links = sums["links"] * (grid * footing.step)
        grams = sums["grams"] * np.multiply.outer(grid, grid)
        votes = footing.weights * footing.shares
        gain = votes @ links**2
        of_grams = footing.table.weights if footing.by_partition else np.ones(1)
        squares = np.tensordot(of_grams, np.reshape(grams, (-1, *grams.shape[-2:])) ** 2, 1)
        d = exact_rows(gain[None], squares)[0]  # squares of what columns are multiplied by
        loss = constant - 2 * float(gain @ d) + float(d @ squares @ d)
        root = np.sqrt(d)
        fitted = Fitted(links * root, grams * np.multiply.outer(root, root))
        mass = np.maximum(sums["mass"], 1)
        profile = footing.weights[:, None] * sums["contingency"] / mass
        return cls(fitted, loss, constant, profile, sums["labels"], sums["members"])


def readings(profile: np.ndarray, footing: Footing) -> np.ndarray:
    """Return the profiles that labels could be read by, (n_readings, C, k)."""
    sizes = np.maximum(footing.sizes, 1)[:, None]
    return np.stack([profile / sizes**power for power in POWERS])


@dataclass(frozen=True)
class Consensus:
    """The clusters that were found, to be told of the rows of any block.

    Attributes
    ----------
    footing : Footing
    order : ndarray of shape (k,), int
        The clusters in decreasing order of size; what follows has them in this order.
    contingency : ndarray of shape (C, k)
        What every base cluster holds of each.
    profile : ndarray of shape (C, k)
        What the labels of new samples are read by, and, normalised, those of all.
    fitted : Fitted
        What the rows of the factor fit to; its clusters are in their old order.
    """

    footing: Footing
    order: np.ndarray
    contingency: np.ndarray
    profile: np.ndarray
    fitted: Fitted

    @classmethod
    def ordered(
        cls,
        footing: Footing,
        labels: np.ndarray,
        members: np.ndarray,
        profile: np.ndarray,
        fitted: Fitted,
    ) -> Consensus:
        """Put clusters into decreasing order of size; ties keep their order."""
        order = np.argsort(-members, kind="stable")
        contingency = labels[:, order].astype(np.float64)
        return cls(footing, order, contingency, profile[:, order], fitted)

    def memberships(self, rows: Ensemble) -> np.ndarray:
        """Return the memberships of label rows, (m, k)."""
        if self.footing.normalize:
            return membership(rows.spread(self.profile))
        return membership(self.fitted.rows(rows, self.footing))[:, self.order]

    def of_rows(self, rows: Ensemble, what: str) -> np.ndarray:
        """Return the "labels", "membership" or "confidence" of label rows."""
        P = self.memberships(rows)
        if what == "membership":
            return P
        labels = P.argmax(axis=1)
        if what == "labels":
            return labels
        return rows.item_consensus(self.contingency, labels)

    def of_block(self, block: Any, what: str) -> np.ndarray:
        """Return the "labels", "membership" or "confidence" of the rows of a block."""
        found = self.footing.table.distinct(np.asarray(block))
        return np.concatenate([self.of_rows(rows, what)[groups] for rows, groups in found])


def improved(
    everywhere: Callable[..., Sums],
    footing: Footing,
    rows: Ensemble,
    H: np.ndarray,
    n_passes: int,
) -> tuple[Consensus, np.ndarray]:
    """Return the consensus after the best of some passes, and the losses of all.

    Parameters
    ----------
    everywhere : callable
        ``everywhere(function, *args)`` returns the sum of ``function(block, footing, *args)`` over
        all blocks: who holds the blocks gives it.
    footing : Footing
    rows : Ensemble
        The distinct rows of a sample.
    H : ndarray of shape (m, k)
        Their factor.
    n_passes : int
    """
    fitted, losses = first_fitted(rows, H, footing), []
    best: tuple[Pass, Fitted] | None = None
    for number in range(n_passes):
        with stage(f"pass {number + 1} over {footing.table.n_samples} rows") as told:
            grid = fitted.grid(footing)
            found = Pass.of_sums(everywhere(sums_of_block, fitted, grid), footing, grid)
            told.outcome = f"loss {found.loss:.6g}"
        losses.append(found.loss)
        if best is None or found.loss < best[0].loss:  # they were never seen to rise
            best = found, fitted
        fitted = found.fitted
    assert best is not None
    end, fitted_to = best
    if not footing.normalize:
        clusters = Consensus.ordered(footing, end.labels, end.members, end.profile, fitted_to)
        return clusters, np.array(losses)
    profiles = readings(end.profile, footing)
    sums = everywhere(counts_of_block, profiles)
    hard = [footing.hard_loss(labels, end.constant) for labels in sums["labels"]]
    i = int(np.argmin(hard))
    clusters = Consensus.ordered(
        footing, sums["labels"][i], sums["members"][i], profiles[i], fitted_to
    )
    return clusters, np.array(losses)
