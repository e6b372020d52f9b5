"""From a mixture of sources to its factors and weights: the objective, the starts, the runs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from nmfcluster._engine.run import Plan, Start, draw_seeds, spectral_start
from nmfcluster._engine.symmetric import Factorization
from nmfcluster.fusion.mixture import Mixture
from nmfcluster.fusion.model import FusionObjective
from nmfcluster.similarity import Similarity

_MIN_ITER = 10  # updates, of three steps each
_STEPS = 3  # of a random walk: far enough to meet neighbours of neighbours
_BACKGROUND = 0.1  # of a cluster that begins spread over all samples
_NOTHING = 1e-12  # of the mean share of an object: less does not move its start
_SPREAD = 0.5  # by which the two factors of the unsymmetric form differ at the start


@dataclass(frozen=True)
class Fusion(Factorization):
    """The factors that were kept, and the weights of the sources.

    Attributes
    ----------
    objective : FusionObjective
    """

    objective: FusionObjective

    @property
    def joint(self) -> np.ndarray:
        """``H diag(q)``: the model's probability of an object with a cluster, (n, k)."""
        return self.best.factors[0][-1]

    @property
    def core(self) -> np.ndarray:
        """``diag(q)``: the probability of every cluster, (k, k)."""
        return np.diag(self.joint.sum(axis=0))

    def known(self) -> np.ndarray:
        """Return which objects are in a source that has a weight, (n,), bool."""
        mixture, weights = self.objective.mixture, self.best.factors[1]
        margin = mixture.margin(mixture.mixed(weights))
        return margin > _NOTHING * margin.mean()

    @property
    def source_losses(self) -> np.ndarray:
        """The loss of every source, in nats, (L,)."""
        return self.objective.source_losses(self.best.factors[0])


def objective_of(
    mixture: Mixture, criterion: str, eta: float, perplexity: float | None
) -> FusionObjective:
    """Return the objective of a criterion.

    Parameters
    ----------
    mixture : Mixture
    criterion : {"kl", "cross_entropy"}
        What a source loses: its divergence from the model, or the cross-entropy. In the latter, a
        source that did not see all objects counts as if it knew nothing of the others.
    eta : float
    perplexity : float or None

    Returns
    -------
    FusionObjective
    """
    if criterion == "kl":
        offsets = -mixture.entropies()
    else:
        offsets = -2 * np.log(mixture.seen.mean(axis=0))
    return FusionObjective(mixture, offsets, eta, perplexity)


def fuse(
    objective: FusionObjective, plan: Plan, rng: np.random.RandomState, symmetric: bool
) -> Fusion:
    """Fit the factors and the weights; the run with the smallest loss is kept.

    Parameters
    ----------
    objective : FusionObjective
    plan : Plan
    rng : RandomState
    symmetric : bool
        Whether the two factors are one.

    Returns
    -------
    Fusion
    """
    n_sources = len(objective.mixture.totals)
    A = objective.mixture.similarity(np.full(n_sources, 1 / n_sources)).without_diagonal()
    degrees = (A @ np.ones((A.shape[0], 1), dtype=A.dtype))[:, 0]
    seeds = draw_seeds(rng, plan.n_init)
    starts: list[Start] = [
        partial(_start, A, degrees, plan.n_clusters, seed, number == 0, symmetric)
        for number, seed in enumerate(seeds)
    ]
    what = f"{A.shape[0]} objects, {n_sources} source(s)"
    solutions = plan.stopping(min_iter=_MIN_ITER).run(objective, starts, what)
    curves = [solution.history for solution in solutions]
    return Fusion(solutions[0], curves, objective.constant, objective)


def _start(
    A: Similarity, degrees: np.ndarray, n_clusters: int, seed: int, first: bool, symmetric: bool
) -> np.ndarray:
    """Return W alone, or W and V, of which nothing but a common scale is fixed."""
    rng = np.random.RandomState(seed)
    if first and degrees.any():  # without it there is no eigenvector, and no walk, either
        roots = np.sqrt(degrees)
        scaled = A.scaled(np.divide(1, roots, out=np.zeros_like(roots), where=roots > 0))
        H = spectral_start(scaled, n_clusters) * roots[:, None]
        H += 1e-3 * H.mean()  # what begins at 0 stays there
        W = H * H.sum(axis=0)
    else:
        W = walk_start(A, degrees, n_clusters, rng)
    if symmetric:
        return W[None]
    noise = rng.uniform(1 - _SPREAD, 1 + _SPREAD, size=W.shape).astype(W.dtype)
    return np.stack([W, W * noise])


def walk_start(
    A: Similarity, degrees: np.ndarray, n_clusters: int, rng: np.random.RandomState
) -> np.ndarray:
    """Return where a few steps of a random walk lead from samples that are drawn, one a cluster.

    Samples are drawn in proportion to their degrees. On sparse graphs such starts are as diverse
    as random factors, but do not have to find first which samples belong together.

    Parameters
    ----------
    A : Similarity of shape (n, n)
        Nonnegative.
    degrees : ndarray of shape (n,)
        Its row sums.
    n_clusters : int
        At most n.
    rng : RandomState

    Returns
    -------
    ndarray of shape (n, n_clusters)
        Every entry is above 0. Columns sum to the same, but those of samples that are similar to
        no other, which are drawn only if there are too few others: their walks end nowhere.
    """
    n = A.shape[0]
    known = degrees >= np.finfo(degrees.dtype).tiny  # below it a quotient can overflow
    chances = np.where(known, degrees, 0) / degrees.sum(dtype=np.float64) if known.any() else known
    enough = np.count_nonzero(chances) >= n_clusters
    drawn = rng.choice(n, n_clusters, replace=False, p=chances if enough else None)
    W = np.zeros((n, n_clusters), dtype=A.dtype)
    W[drawn, np.arange(n_clusters)] = 1
    shares = np.divide(1, degrees, out=np.zeros_like(degrees), where=known)[:, None]
    for _ in range(_STEPS):
        W = A @ (shares * W)
    return W / np.maximum(W.sum(axis=0), np.finfo(A.dtype).tiny) + _BACKGROUND / n
