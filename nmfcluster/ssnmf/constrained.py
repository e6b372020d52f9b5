"""Must-link and cannot-link pairs of a fit: spread, and put into its similarity."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from nmfcluster._base import membership
from nmfcluster._optim.symmetric import SimilarityProblem
from nmfcluster._utils.progress import stage
from nmfcluster._utils.storage import filled_with, stored_entries
from nmfcluster._utils.validation import counted, warn
from nmfcluster.affinity import Affinity, normalized
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import components
from nmfcluster.similarity import Explicit, Similarity, inner
from nmfcluster.similarity.neighbors import are_few
from nmfcluster.similarity.operators import SAMPLED
from nmfcluster.similarity.spreading import raised

_WIDTH = 0.7  # of spread: best mean of 31 sets of 600 to 2,500 rows; .65 to .75 hardly change it
_MADE = (
    "nearest_neighbors",
    "landmarks",
)  # similarities of features that are nowhere negative


def width_of(
    estimator: Any, affinity: Affinity, pairs: PairwiseConstraints
) -> float | None:
    """Return how far pairs spread to samples near theirs, None: not at all, as `propagation` says.

    Cannot-links alone make nobody more similar, and neither do must-links of weight 0.
    """
    width = estimator.propagation
    together = len(kept_links(estimator, pairs)) or estimator.alpha > 0
    if width is None or not together or not len(pairs.must_link):
        return None
    if width != "auto":
        return float(width)
    # fewer draw together the clusters that they are in, and others are merged
    enough = len(pairs.must_link) >= estimator.n_clusters
    return _WIDTH if enough and affinity.name in _MADE else None


def spread(
    estimator: Any,
    affinity: Affinity,
    pairs: PairwiseConstraints,
    rng: np.random.RandomState,
) -> Affinity:
    """Return the affinity with what pairs raise, normalised again unless that is unwanted."""
    W, width = affinity.similarity, estimator.propagation_
    if width is None:
        return affinity
    must_link, cannot_link = pairs.as_matrices(W.dtype)
    links = must_link - cannot_link if estimator.beta > 0 else must_link
    with stage(f"spread of {counted(pairs.n_pairs, 'pair')} to samples near theirs"):
        W = raised(W, links, width, rng, affinity.name == "landmarks")
        few = are_few(
            len(pairs), estimator.n_clusters
        )  # or what pairs raise counts for more
        W = (
            W
            if estimator.normalize is False
            else normalized(W, affinity.counts, few)[0]
        )
    return replace(affinity, similarity=W)


def part_of(
    estimator: Any, affinity: Affinity, pairs: PairwiseConstraints, samples: np.ndarray
) -> ConstrainedProblem:
    """Return the problem of some samples, a mask, as if there were no others.

    Where all rows weighed the same they do again: or else those that were similar to samples that
    are gone would be worth less than others, and the cut would go through their clusters.
    """
    pairs, counts = (
        pairs[samples],
        None if affinity.counts is None else affinity.counts[samples],
    )
    W = affinity.similarity.take(np.flatnonzero(samples))
    if affinity.is_even:
        # what fails is left as it is: nothing is similar, or what is negative outweighs the rest
        with suppress(ValueError):
            W = normalized(W, counts, affinity.to_itself)[0]
    affinity = replace(affinity, similarity=W, counts=counts)
    return constrain(estimator, affinity, pairs, may_be_empty=True)


class ConstrainedProblem(SimilarityProblem):
    """A similarity with its constraints, to be factorized.

    Parameters
    ----------
    A : Similarity of shape (n_groups, n_groups)
        What is to be factorized; groups are single samples unless must-links are hard.
    groups : ndarray of shape (n_samples,), int
        Group of every sample.
    unit : float
        What `alpha` and `beta` were multiplied by.
    **options
        Of `SimilarityProblem`.
    """

    def __init__(
        self, A: Similarity, groups: np.ndarray, unit: float, **options: Any
    ) -> None:
        self.A, self.groups, self.unit = A, groups, unit
        super().__init__(A, **options)

    def expand(self, h: np.ndarray) -> np.ndarray:
        """Return the factor of all samples, (n_samples, k), from that of the groups."""
        root = np.sqrt(self.mass).astype(h.dtype)
        return (h / root[:, None])[self.groups]

    def memberships(self, F: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Return the rows of ``F M^1/2``, scaled to sum to 1.

        Penalties can outweigh all similarities of a row, so that no cluster holds it. Such a
        row of zeros is replaced by ``A F M``: it goes where the penalties are smallest.
        """
        P, lost = membership(F * np.sqrt(np.diagonal(M))), ~F.any(axis=1)
        if lost.any():
            drawn = self.drawn(F, M)[lost]
            P[lost] = membership(drawn - drawn.min(axis=1, keepdims=True))
        return P

    def warn_of_alone(self, F: np.ndarray, P: np.ndarray) -> None:
        """Warn where nothing tells the cluster of rows of zeros: their memberships are uniform."""
        if n_alone := int((~F.any(axis=1) & (P == P[:, :1]).all(axis=1)).sum()):
            alone = (
                f"{counted(n_alone, 'sample')}, or as many groups that must be linked"
            )
            told = "memberships there are uniform, labels mean nothing"
            warn(f"Nothing tells the cluster of {alone}: {told}.")

    def drawn(self, F: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Return ``A F M``, what draws rows to clusters."""
        return self.A @ (F @ M)


def constrain(
    estimator: Any,
    affinity: Affinity,
    pairs: PairwiseConstraints,
    may_be_empty: bool = False,
) -> ConstrainedProblem:
    r"""Reward must-link pairs and penalise cannot-link pairs in a similarity.

    :math:`\tilde A = W + \alpha u A - \beta u B` with W the similarity of the affinity, and the
    weights of the pairs in A and B: eq. 24 of Li et al. (2007), and eq. 3 of Chen et al. (2007)
    with the signs of a similarity. u is the 0.999-quantile of the entries of W off its diagonal, so
    that the same weights mean the same for all data. Samples that must-links join share their row
    of the factor where these are hard: eq. 34 of Li et al.

    Parameters
    ----------
    estimator : SSNMFClusterer
    affinity : Affinity
        Its `counts` say how many equal samples, all of them in no pair, each row stands for. By
        landmarks one start, from eigenvectors, will do for many samples.
    pairs : PairwiseConstraints
    may_be_empty : bool, default=False
        Whether all similarities may be 0, which is an error otherwise.

    Returns
    -------
    ConstrainedProblem
    """
    W, counts = affinity.similarity, affinity.counts
    groups = components(len(pairs), kept_links(estimator, pairs))
    # inside a group nothing is left to be had
    must_link, cannot_link = (
        between(links, groups) for links in pairs.as_matrices(W.dtype)
    )
    unit = large_entry(W)
    if (
        counts is not None
    ):  # equal samples share a row, which is longer by the root of their number
        W = W.scaled(np.sqrt(counts))
    init_similarity = _sum(W, _change(W, must_link, estimator.alpha * unit))
    penalty = _change(init_similarity, cannot_link, -estimator.beta * unit)
    constant = init_similarity.squared_norm()
    if constant == 0 and not may_be_empty:
        raise ValueError(
            "the similarities are all 0: samples of X must be similar to each other."
        )
    if penalty is not None:
        constant += 2 * inner(init_similarity, penalty) + inner(penalty, penalty)
    if not np.isfinite(constant):
        these = (
            "the similarities, or the weights of the constraints times alpha or beta,"
        )
        cure = "scale X or the weights"
        raise ValueError(f"{these} are too large to be squared in {W.dtype}; {cure}.")
    sizes = np.bincount(groups)
    if len(sizes) < len(groups):
        init_similarity = init_similarity.collapse(groups)
        penalty = None if penalty is None else penalty.collapse(groups)
    linked = np.bincount(
        groups, weights=np.diff(must_link.indptr) + np.diff(cannot_link.indptr)
    )
    return ConstrainedProblem(
        _sum(init_similarity, penalty),
        groups,
        unit,
        mass=np.bincount(groups, counts).astype(int),
        constant=constant,  # of all samples, as that of the groups is smaller
        # without the penalties, spikes that would draw eigenvectors to single samples
        init_similarity=init_similarity,
        wanted=(linked > 0) | (sizes > 1),
        has_reliable_start=affinity.name == "landmarks",
    )


def kept_links(estimator: Any, pairs: PairwiseConstraints) -> np.ndarray:
    """Return the must-links that a fit keeps, whose samples share a row of the factor."""
    hard = estimator.hard_must_link
    if hard == "auto":
        hard = pairs.must_link_hard if estimator.contradictions == "raise" else False
    return pairs.must_link[np.broadcast_to(hard, len(pairs.must_link))]


def warn_of_alpha(estimator: Any, pairs: PairwiseConstraints) -> None:
    """Warn of an `alpha` that somebody chose where it weighs nothing: all must-links are hard."""
    chosen = estimator.alpha != type(estimator)(n_clusters=1).alpha
    if chosen and 0 < len(pairs.must_link) == len(kept_links(estimator, pairs)):
        told = f"alpha={estimator.alpha:g} changes nothing: it weighs soft must-links, all are hard"
        warn(f"{told}. Give hard_must_link=False, or weights below 1, to weigh them.")


def between(links: Any, groups: np.ndarray) -> Any:
    """Return the matrix of pairs without those that are inside a group."""
    rows, columns, weights = stored_entries(links)
    return filled_with(links, np.where(groups[rows] == groups[columns], 0, weights))


def _sum(A: Similarity, change: Similarity | None) -> Similarity:
    return A if change is None else A + change


def _change(W: Similarity, pairs: Any, amount: float) -> Similarity | None:
    """Return what is added to W at the pairs, `amount` of their weights; None where nothing is."""
    pairs = (pairs * amount).astype(W.dtype)
    return Explicit(pairs) if amount and pairs.nnz else None


def large_entry(A: Similarity, share: float = 0.999) -> float:
    """Return a quantile of the absolute values of the entries that are not 0, off the diagonal.

    Parameters
    ----------
    A : Similarity of shape (n, n)
    share : float, default=0.999
        Which quantile.

    Returns
    -------
    float
        1 if all entries off the diagonal are 0.
    """
    n, values = A.shape[0], A.stored_off_diagonal()
    if values is None and n * (n - 1) // 2 <= SAMPLED:
        values = A.entries(*np.triu_indices(n, 1))
    elif values is None:  # a random sample of them
        rng = np.random.default_rng(0)
        rows = rng.integers(n, size=SAMPLED)
        values = A.entries(rows, (rows + rng.integers(1, n, size=SAMPLED)) % n)
    sizes = np.abs(values[values != 0])
    return float(np.quantile(sizes, share)) if len(sizes) else 1.0


def warn_of_parts(problem: ConstrainedProblem, n_clusters: int) -> None:
    """Warn if the graph of similarities and must-links has more parts than clusters."""
    parts = problem.init_similarity.parts
    n_parts = 1 if parts is None else int(parts.max()) + 1
    if n_parts > n_clusters:
        parted = (
            f"{n_parts} parts that nothing connects, more than n_clusters={n_clusters}"
        )
        told = "which of them share a cluster is arbitrary. Connect them"
        warn(f"The graph of similarities and must-links falls into {parted}: {told}.")
