"""Must-link and cannot-link pairs of a fit: read, checked, spread, put into its similarity."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from nmfcluster._arrays.arguments import counted, warn
from nmfcluster._arrays.storage import filled_with, stored_entries
from nmfcluster._arrays.tables import in_order_of
from nmfcluster._base import membership
from nmfcluster._engine.report import stage
from nmfcluster._engine.symmetric import SimilarityProblem
from nmfcluster.affinity import Affinity, make_affinity, normalized
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.similarity import Explicit, Similarity, inner
from nmfcluster.similarity.balance import warn_of_split
from nmfcluster.similarity.operators import SAMPLED, unit_blocks
from nmfcluster.similarity.spreading import raised

_LANDMARKS = 2_000  # of them, as make_affinity makes; more clusters need more
_SIGN_ROUNDING = 1e-9  # of the largest entry: what is less below 0 counts as 0
_WIDTH = 0.7  # of spread: best mean of 31 sets of 600 to 2,500 rows; .65 to .75 hardly change it
_SHARE = 0.02  # of the samples are in pairs at least: fewer change next to nothing, for its time
MADE = ("nearest_neighbors", "landmarks")  # similarities of features that are nowhere negative


def read_constraints(
    names: Any, X: Any, y: Any, constraints: Any, must_link: Any, cannot_link: Any
) -> PairwiseConstraints:
    """Return the constraints that `fit` was given, which must be of its samples.

    `names` is the index of the samples, or None; constraints of data with an index have theirs.
    """
    n_samples = X.shape[0]
    if constraints is None:
        labels = np.asarray(y) if hasattr(y, "dtype") else np.empty(0)
        # labels of which some are -1, not known, as scikit-learn marks them
        partial = labels.ndim == 1 and labels.dtype.kind in "if" and -1 in labels
        ignored = (partial and labels.max() >= 0) or isinstance(y, PairwiseConstraints)
        if ignored and must_link is None and cannot_link is None:
            warn(
                "fit ignores y, which says what is known of some samples: give it as fit(X, "
                "constraints=...), labels as constraints=PairwiseConstraints.from_labels(y)."
            )
        return PairwiseConstraints(n_samples, must_link, cannot_link)
    if must_link is not None or cannot_link is not None:
        raise ValueError("give either constraints, or must_link and cannot_link, not both.")
    if not isinstance(constraints, PairwiseConstraints):
        raise TypeError(
            f"constraints must be a PairwiseConstraints, got {type(constraints).__name__}; "
            "plain pairs are given as must_link and cannot_link."
        )
    if len(constraints) != n_samples:
        raise ValueError(
            f"constraints must be about the samples of X: they are about {len(constraints)} "
            f"samples, X has {n_samples}."
        )
    ordered: PairwiseConstraints = in_order_of(names, constraints, "constraints")
    return ordered


def affinity_of(estimator: Any, X: Any, rng: np.random.RandomState) -> Affinity:
    """Return the similarity that an estimator's parameters ask for."""
    with stage(f"similarities of {counted(X.shape[0], 'sample')}"):
        names = ("affinity", "gamma", "n_neighbors", "normalize", "n_clusters", "n_jobs")
        options = {name: getattr(estimator, name) for name in names}
        n_landmarks = max(_LANDMARKS, estimator.n_clusters)
        return make_affinity(X, **options, n_landmarks=n_landmarks, random_state=rng)


def check_constraints(pairs: PairwiseConstraints, n_clusters: int, contradictions: str) -> bool:
    """Raise, or warn, if no clustering satisfies all pairs; tell whether one is known to do so."""
    if contradictions == "ignore":
        return False
    try:
        return pairs.check(n_clusters) == "feasible"
    except ValueError as error:
        if contradictions == "raise":
            cure = "Correct the pairs, or give contradictions='ignore', which looks for wrong ones."
            raise ValueError(f"{error} {cure}") from error
        warn(f"Not all constraints can be satisfied: {error}")
        return False


def warn_of_violations(estimator: Any, feasible: bool) -> None:
    """Warn if a fit violates pairs, all of which could be satisfied."""
    must, cannot = estimator.violated_must_link_, estimator.violated_cannot_link_
    if not (feasible and len(must) + len(cannot)):
        return
    where, cures = [], []
    if len(must):
        where, cures = ["violated_must_link_"], ["hard_must_link=True"]
    if len(cannot):
        where.append("violated_cannot_link_")
        replaced, beta = estimator.constraint_mode == "replace", max(10, 3 * estimator.beta)
        cures.append("constraint_mode='add'" if replaced else f"beta={beta:g}")
    n_pairs = counted(estimator.constraints_.n_pairs, "pair")
    warn(
        f"Labels violate {len(must) + len(cannot)} of {n_pairs}, though all can be satisfied: see "
        f"{' and '.join(where)}. Give {' and '.join(cures)}, by which pairs count for more, or "
        "contradictions='ignore' if some may be wrong."
    )


def warn_of_sizes(estimator: Any, affinity: Affinity) -> None:
    """Warn if a fit is likely to have split a large cluster for want of normalisation."""
    if not is_even(estimator, affinity):
        warn_of_split(affinity.similarity, estimator.labels_, estimator.n_clusters)


def width_of(estimator: Any, affinity: Affinity, pairs: PairwiseConstraints) -> float | None:
    """Return how far pairs spread to samples near theirs, None: not at all, as `propagation` says.

    Cannot-links alone make nobody more similar, and neither do must-links of weight 0.
    """
    width, together = estimator.propagation, estimator.doubt_.hard or estimator.alpha > 0
    if width is None or not together or not len(pairs.must_link):
        return None
    if width != "auto":
        return float(width)
    linked = np.union1d(pairs.must_link, pairs.cannot_link).size
    fits = affinity.name in MADE and estimator.constraint_mode == "add"
    return _WIDTH if fits and linked >= _SHARE * len(pairs) else None


def is_even(estimator: Any, affinity: Affinity) -> bool:
    """Tell whether all rows of a similarity weigh the same; those of landmarks always do."""
    made_so = affinity.name in MADE and estimator.normalize == "auto"
    return made_so or estimator.normalize is True


def spread(
    estimator: Any,
    affinity: Affinity,
    pairs: PairwiseConstraints,
    width: float | None,
    rng: np.random.RandomState,
) -> Similarity:
    """Return the similarity with what pairs raise, normalised again unless that is unwanted."""
    if width is None:
        return affinity.similarity
    must_link, cannot_link = pairs.as_matrices(affinity.similarity.dtype)
    links = must_link - cannot_link if estimator.beta > 0 else must_link
    with stage(f"spread of {counted(pairs.n_pairs, 'pair')} to samples near theirs"):
        W = raised(affinity.similarity, links, width, rng, affinity.name == "landmarks")
        return W if estimator.normalize is False else normalized(W)[0]


def problem_of(
    estimator: Any, affinity: Affinity, W: Similarity, pairs: PairwiseConstraints, **more: Any
) -> ConstrainedProblem:
    """Return the problem that an estimator's parameters make of a similarity; see `constrain`."""
    return constrain(
        W,
        pairs,
        alpha=estimator.alpha,
        beta=estimator.beta,
        replace=estimator.constraint_mode == "replace",
        hard=estimator.doubt_.hard,
        sure_start=affinity.name == "landmarks",
        **more,
    )


def part_of(
    estimator: Any,
    affinity: Affinity,
    pairs: PairwiseConstraints,
    rng: np.random.RandomState,
    samples: np.ndarray,
) -> ConstrainedProblem:
    """Return the problem of some samples, a mask, as if there were no others.

    Where all rows weighed the same they do again: or else those that were similar to samples that
    are gone would be worth less than others, and the cut would go through their clusters.
    """
    pairs, W = pairs[samples], affinity.similarity.take(np.flatnonzero(samples))
    width = width_of(estimator, affinity, pairs)
    spreads_as_it_is = affinity.name == "landmarks" and width is not None
    # what fails is left as it is: nothing is similar, or what is negative outweighs the rest
    if is_even(estimator, affinity) and not spreads_as_it_is:
        with suppress(ValueError):
            W = normalized(W)[0]
    with suppress(ValueError):
        W = spread(estimator, replace(affinity, similarity=W), pairs, width, rng)
    return problem_of(estimator, affinity, W, pairs, may_be_empty=True)


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

    def __init__(self, A: Similarity, groups: np.ndarray, unit: float, **options: Any) -> None:
        self.A, self.groups, self.unit = A, groups, unit
        super().__init__(A, mass=np.bincount(groups), **options)

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
        n_alone = int((~F.any(axis=1) & (P == P[:, :1]).all(axis=1)).sum())
        if n_alone:
            warn(
                f"Nothing tells the cluster of {counted(n_alone, 'sample')}, or as many groups "
                "that must be linked: memberships there are uniform, labels mean nothing."
            )

    def drawn(self, F: np.ndarray, M: np.ndarray) -> np.ndarray:
        """Return ``A F M``, what draws rows to clusters."""
        return self.A @ (F @ M)


def constrain(
    W: Similarity,
    pairs: PairwiseConstraints,
    *,
    alpha: float,
    beta: float,
    replace: bool = False,
    hard: bool = False,
    sure_start: bool = False,
    may_be_empty: bool = False,
) -> ConstrainedProblem:
    r"""Reward must-link pairs and penalise cannot-link pairs in a similarity.

    :math:`\tilde A = W + \alpha u A - \beta u B` with the weights of the pairs in A and B: eq.
    24 of Li et al. (2007), and eq. 3 of Chen et al. (2007) with the signs of a similarity. u is the
    0.999-quantile of the entries of W off its diagonal, so that the same weights mean the same for
    all data.

    Parameters
    ----------
    W : Similarity of shape (n, n)
    pairs : PairwiseConstraints
    alpha, beta : float
    replace : bool, default=False
        Put the largest entry of W in the place of those of must-link pairs and the smallest in that
        of cannot-link pairs, as in section 4.3 of Chen et al.; alpha, beta and weights are not
        used.
    hard : bool, default=False
        Whether samples that must-links join share their row of the factor: eq. 34 of Li et al.
    sure_start : bool, default=False
        Whether one start, from eigenvectors, will do for many samples.
    may_be_empty : bool, default=False
        Whether all similarities may be 0, which is an error otherwise.

    Returns
    -------
    ConstrainedProblem
    """
    must_link, cannot_link = pairs.as_matrices(W.dtype)
    hard = hard and must_link.nnz > 0  # or each sample is a group of its own, and nothing collapses
    groups = pairs.components() if hard else np.arange(W.shape[0])
    unit = 1.0 if replace else large_entry(W)
    smallest, largest = extremes(W) if replace else (None, None)
    friendly = W
    if hard:
        rows, columns, weights = stored_entries(cannot_link)  # inside a group they cannot be had
        between = np.where(groups[rows] == groups[columns], 0, weights)
        cannot_link = filled_with(cannot_link, between)
    else:
        friendly = _sum(W, _change(W, must_link, alpha * unit, largest))
    penalty = _change(friendly, cannot_link, -beta * unit, smallest)
    constant = friendly.squared_norm()
    if constant == 0 and not may_be_empty:
        raise ValueError("the similarities are all 0: samples of X must be similar to each other.")
    if penalty is not None:
        constant += 2 * inner(friendly, penalty) + inner(penalty, penalty)
    if not np.isfinite(constant):
        raise ValueError(
            "the similarities, or the weights of the constraints times alpha or beta, are too "
            f"large to be squared in {W.dtype}; scale X or the weights."
        )
    if hard:
        friendly = friendly.collapse(groups)
        penalty = None if penalty is None else penalty.collapse(groups)
    linked = np.bincount(groups, weights=np.diff(must_link.indptr) + np.diff(cannot_link.indptr))
    return ConstrainedProblem(
        _sum(friendly, penalty),
        groups,
        unit,
        constant=constant,  # of all samples, as that of the groups is smaller
        friendly=friendly,  # penalties are spikes that would draw eigenvectors to single samples
        wanted=linked > 0,
        sure_start=sure_start,
    )


def _sum(A: Similarity, change: Similarity | None) -> Similarity:
    return A if change is None else A + change


def _change(W: Similarity, pairs: Any, amount: float, value: float | None) -> Similarity | None:
    """Return what is added to W at the pairs: `amount` of their weights, or what leads to `value`.

    None where nothing is.
    """
    if value is not None:
        rows, columns, _ = stored_entries(pairs)
        pairs = filled_with(pairs, value - W.entries(rows, columns))
    elif amount == 0:
        return None
    else:
        pairs = pairs * amount
    return Explicit(pairs.astype(W.dtype)) if pairs.nnz else None


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
    values = np.abs(_entries_off_diagonal(A))
    values = values[values > 0]
    return float(np.quantile(values, share)) if len(values) else 1.0


def _entries_off_diagonal(A: Similarity) -> np.ndarray:
    """Return the entries above the diagonal; a random sample of them where they are many."""
    n = A.shape[0]
    stored = A.stored_off_diagonal()
    if stored is not None:
        return stored
    if n * (n - 1) // 2 <= SAMPLED:
        return A.entries(*np.triu_indices(n, 1))
    rng = np.random.default_rng(0)
    rows = rng.integers(n, size=SAMPLED)
    return A.entries(rows, (rows + rng.integers(1, n, size=SAMPLED)) % n)


def extremes(A: Similarity) -> tuple[float, float]:
    """Return the smallest and the largest entry, the diagonal included; in blocks of columns."""
    bounds = [(columns.min(), columns.max()) for columns in (A @ E for E in unit_blocks(A))]
    return float(min(low for low, _ in bounds)), float(max(high for _, high in bounds))


def warn_of_parts(problem: ConstrainedProblem, n_clusters: int) -> None:
    """Warn if the graph of similarities and must-links has more parts than clusters."""
    parts = problem.friendly.parts
    n_parts = 1 if parts is None else int(parts.max()) + 1
    if n_parts > n_clusters:
        warn(
            f"The graph of similarities and must-links falls into {n_parts} parts that nothing "
            f"connects, more than n_clusters={n_clusters}: which of them share a cluster "
            "is arbitrary. Connect them."
        )


def check_signs(A: Similarity) -> None:
    """Raise if the printed rules of Chen et al. would meet a negative entry."""
    smallest, largest = extremes(A)
    if smallest < -_SIGN_ROUNDING * abs(largest):
        raise ValueError(
            "solver='printed' with a tri-factorization needs similarities that are nowhere "
            "negative, with the constraints in them; take beta=0, constraint_mode='replace' or "
            "another solver."
        )
