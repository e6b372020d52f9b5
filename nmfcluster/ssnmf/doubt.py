"""Pairs that may be wrong: how far each is to be trusted, by the similarity and all others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from nmfcluster._arrays import storage
from nmfcluster._arrays.arguments import counted
from nmfcluster._engine.report import stage
from nmfcluster.affinity import Affinity
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.similarity.spreading import MOST, points_of, walks
from nmfcluster.ssnmf.constrained import MADE

_WIDTH = 0.65  # of walks; .9 tells wrong pairs as well, .99 worse
_PRIOR = 1.0, 10.0  # wrong and right pairs that count as seen before
_WRONG, _FEW = 0.04, 2.0  # share of wrong pairs, and pairs more, from which on pairs are doubted
_BLOCK = 2_000  # pairs whose rows of all points are in memory at a time


class Doubt(NamedTuple):
    """What is thought of pairs.

    Attributes
    ----------
    hard : bool
        Whether must-links can be taken at their word.
    share : float, default=NaN
        Estimated share of wrong pairs; NaN where there is no estimate.
    must_link, cannot_link : ndarray of shape (n_pairs,), default=None
        Probabilities that pairs are right.
    """

    hard: bool
    share: float = np.nan
    must_link: np.ndarray | None = None
    cannot_link: np.ndarray | None = None

    def weighed(self, pairs: PairwiseConstraints) -> PairwiseConstraints:
        """Return the pairs with weights times ``max(0, 2 right - 1)``, unless they are trusted."""
        if self.hard or self.must_link is None or self.cannot_link is None:
            return pairs
        must = pairs.must_link_weights * np.maximum(0, 2 * self.must_link - 1)
        cannot = pairs.cannot_link_weights * np.maximum(0, 2 * self.cannot_link - 1)
        together = np.column_stack([pairs.must_link, must])
        apart = np.column_stack([pairs.cannot_link, cannot])
        return PairwiseConstraints(len(pairs), together, apart)

    def of_pairs(self, pairs: PairwiseConstraints, places: np.ndarray) -> Doubt:
        """Return the same of pairs of samples that had been taken to other places."""
        if self.must_link is None or self.cannot_link is None:
            return self
        kinds = ((self.must_link, pairs.must_link), (self.cannot_link, pairs.cannot_link))
        placed = ((right, np.sort(places[links], axis=1)) for right, links in kinds)
        must, cannot = (right[np.argsort(np.lexsort(ends.T[::-1]))] for right, ends in placed)
        return self._replace(must_link=must, cannot_link=cannot)


def doubt_of(
    estimator: Any, affinity: Affinity, pairs: PairwiseConstraints, rng: np.random.RandomState
) -> Doubt:
    r"""Return how far each pair is to be trusted, where an estimator's parameters allow for doubt.

    With :math:`K = (1 - a)(I - aS)^{-1}`, S the normalised similarity, two things speak of a pair
    (i, j): :math:`x_1 = \log(.01 + \cos(K_i, K_j))`, how alike walks from i and j are, and
    :math:`x_2 = (c E^+ - E^-) / (c E^+ + E^- + .001 m^2)`, what the other pairs say.
    :math:`E^\pm` is :math:`(K Z^\pm K)_{ij}`, with the must-links or the cannot-links in Z, less
    what the pair itself adds, :math:`K_{ii} K_{jj} + K_{ij}^2`; c is the number of cannot-links
    over that of must-links, so that both kinds have the same say, and m the median of
    :math:`K_{ii}`. Samples belong together with the probability of a logistic model in x, of mean 0
    and variance 1, and a pair is wrong with another; both are fitted by expectation maximisation.

    Must-links are not hard where the share of wrong pairs is above .04 + 2 / n_pairs, or where
    they join samples that a cannot-link parts; by the latter alone where W is negative, or large
    and not of nearness.

    Parameters
    ----------
    estimator : SSNMFClusterer
    affinity : Affinity
    pairs : PairwiseConstraints
    rng : RandomState
        Draws points where samples are many, as for pairs that spread.

    Returns
    -------
    Doubt
    """
    if estimator.hard_must_link != "auto" or estimator.contradictions == "raise":
        return Doubt(bool(estimator.hard_must_link))
    links, n_must = np.concatenate([pairs.must_link, pairs.cannot_link]), len(pairs.must_link)
    must = np.arange(len(links)) < n_must
    if must.all() or not must.any():  # one kind alone cannot be told from the other
        return Doubt(True)
    joined = not pairs.satisfied(pairs.components())[1].all()
    W = affinity.similarity
    can_walk = affinity.name in MADE or (W.shape[0] <= MOST and float(W.toarray().min()) >= 0)
    if not can_walk:
        return Doubt(not joined)
    with stage(f"doubts about {counted(len(links), 'pair')}"):
        kinds = [(Z != 0).astype(np.float64) for Z in pairs.as_matrices()]
        V, B = points_of(W, kinds[0] + kinds[1], rng, affinity.name == "landmarks")
        near = np.unique(B[np.unique(links)].indices)  # points that ends of pairs are near
        K = walks(V.astype(np.float64, copy=False), near, _WIDTH).T
        right, share = fitted(_evidence(K, near, B, kinds, links, must), must)
    hard = not joined and share <= _WRONG + _FEW / len(links)
    return Doubt(hard, share, right[:n_must], right[n_must:])


def _evidence(
    K: np.ndarray, near: np.ndarray, B: Any, kinds: list[Any], links: np.ndarray, must: np.ndarray
) -> np.ndarray:
    """Return x of every pair, (n_pairs, 2), by the rows of K that are of points near their ends."""
    spread = [B.T @ Z @ B for Z in kinds]
    blocks = storage.row_blocks(len(links), _BLOCK)
    found = [_of_pairs(K, near, B, spread, links[block], must[block]) for block in blocks]
    alike, together, apart, reach = np.concatenate(found, axis=1)
    together *= (~must).sum() / must.sum()
    faint = 1e-3 * np.median(reach) ** 2  # of a sample's own walk, squared: less says little
    X = np.column_stack([np.log(alike + 0.01), (together - apart) / (together + apart + faint)])
    return (X - X.mean(axis=0)) / (X.std(axis=0) + np.finfo(float).tiny)


def _of_pairs(
    K: np.ndarray, near: np.ndarray, B: Any, spread: list[Any], links: np.ndarray, must: np.ndarray
) -> np.ndarray:
    """Return of some pairs the cosine of walks, both kinds of E, and the mean of K at the ends."""
    ends = B[links[:, 0]], B[links[:, 1]]
    walk, other = (storage.as_dense(end[:, near] @ K) for end in ends)
    reach = storage.row_dots(walk, ends[0]), storage.row_dots(other, ends[1])
    own = reach[0] * reach[1] + storage.row_dots(walk, ends[1]) ** 2
    norms = np.linalg.norm(walk, axis=1) * np.linalg.norm(other, axis=1)
    alike = storage.row_dots(walk, other) * storage.inverse(norms)
    together, apart = (storage.row_dots(walk @ Z, other) for Z in spread)
    together, apart = together - np.where(must, own, 0), apart - np.where(must, 0, own)
    return np.array([alike, np.maximum(together, 0), np.maximum(apart, 0), sum(reach) / 2])


def fitted(X: np.ndarray, must: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the probability that each pair is right, and the share of wrong ones.

    Parameters
    ----------
    X : ndarray of shape (n_pairs, n_features)
        What speaks for a pair's being together.
    must : ndarray of shape (n_pairs,), bool
        Whether it is said to be.

    Returns
    -------
    tuple of ndarray of shape (n_pairs,) and float
    """
    X = np.column_stack([np.ones(len(X)), X])
    slopes, share = np.zeros(X.shape[1]), 0.1
    ridge = np.diag([1e-3, 1.0, 1.0])  # of features of variance 1; hardly on the constant
    together = np.where(must, 1 - share, share)
    for _ in range(60):  # rounds of expectation maximisation
        for _ in range(3):  # Newton steps
            p = expit(X @ slopes)
            hessian = (X * (p * (1 - p))[:, None]).T @ X + ridge
            slopes += np.linalg.solve(hessian, X.T @ (together - p) - ridge @ slopes)
        p = expit(X @ slopes)
        yes = np.where(must, 1 - share, share) * p
        no = np.where(must, share, 1 - share) * (1 - p)
        together = yes / (yes + no)
        right = np.where(must, together, 1 - together)
        share = float(((1 - right).sum() + _PRIOR[0]) / (len(X) + sum(_PRIOR)))
    return right, share
