"""What a fit is made of: rows that stand for equal samples, with the pairs of these, checked."""

from typing import Any, NamedTuple

import numpy as np

from nmfcluster._utils.order import CanonicalOrder, canonical_order
from nmfcluster._utils.progress import stage
from nmfcluster._utils.validation import counted, in_order_of, sample_names, warn
from nmfcluster.affinity import Affinity, make_affinity
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.similarity.balance import warn_of_split

#: what to do where a similarity leads to fewer clusters than are wanted
CURES = {
    "nearest_neighbors": " Give fewer n_neighbors, which keep small clusters apart."
}
_LANDMARKS = 2_000  # of them, as make_affinity makes; more clusters need more


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
            told = "fit ignores y, which says what is known of some samples"
            cure = "labels as constraints=PairwiseConstraints.from_labels(y)"
            warn(f"{told}: give it as fit(X, constraints=...), {cure}.")
        pairs, index = (
            PairwiseConstraints(n_samples, must_link, cannot_link),
            sample_names(names),
        )
        if pairs.n_pairs and index is not None and index.dtype.kind in "iu":
            told = "must_link and cannot_link count the rows of X from 0"
            cure = "PairwiseConstraints.from_ids(X.index, must_link, cannot_link)"
            cure += ", given as constraints=, takes pairs of these"
            warn(f"{told}, and its index holds other integers. {cure}.")
        return pairs
    if must_link is not None or cannot_link is not None:
        raise ValueError(
            "give either constraints, or must_link and cannot_link, not both."
        )
    if not isinstance(constraints, PairwiseConstraints):
        told = f"constraints must be a PairwiseConstraints, got {type(constraints).__name__}"
        raise TypeError(f"{told}; plain pairs are given as must_link and cannot_link.")
    if len(constraints) != n_samples:
        got = f"they are about {len(constraints)} samples, X has {n_samples}"
        raise ValueError(f"constraints must be about the samples of X: {got}.")
    return in_order_of(names, constraints, "constraints")


def check_constraints(
    pairs: PairwiseConstraints, n_clusters: int, contradictions: str
) -> bool:
    """Raise, or warn, if no clustering satisfies all pairs; tell whether one is known to do so."""
    if contradictions == "ignore":
        return False
    try:
        return pairs.check(n_clusters) == "feasible"
    except ValueError as error:
        if contradictions == "raise":
            cure = "Correct the pairs, or give contradictions='ignore': must-links are then soft."
            raise ValueError(f"{error} {cure}") from error
        warn(f"Not all constraints can be satisfied: {error}")
        return False


class Fitted(NamedTuple):
    """What is fitted: rows in canonical order, which may stand for several equal samples.

    A sample in a pair has a row of its own. So has every sample where similarities are given: what
    copies are to themselves and to each other is up to the user.

    Attributes
    ----------
    order : CanonicalOrder
    pairs : PairwiseConstraints
    samples : ndarray of shape (n_rows,), int
        A sample of every row.
    counts : ndarray of shape (n_rows,), int, or None
        How many samples a row stands for; None: one.
    row : ndarray of shape (n_samples,), int
        Row of every sample.
    """

    order: CanonicalOrder
    pairs: PairwiseConstraints
    samples: np.ndarray
    counts: np.ndarray | None
    row: np.ndarray


def rows_to_fit(estimator: Any, X: Any, pairs: PairwiseConstraints) -> Fitted:
    """Return what is fitted of samples and pairs of them."""
    links = pairs.as_matrices()
    if estimator.affinity == "precomputed":
        order = canonical_order(similarities=[X], links=links)
        return Fitted(order, pairs[order.samples], order.samples, None, order.back)
    order = canonical_order(X, links=links)
    counts = None if len(order.distinct) == X.shape[0] else order.counts
    return Fitted(
        order, pairs[order.distinct], order.distinct, counts, order.among_distinct
    )


def affinity_of(
    estimator: Any, X: Any, rows: Fitted, rng: np.random.RandomState
) -> Affinity:
    """Return the similarity of the rows that an estimator's parameters ask for."""
    with stage(f"similarities of {counted(X.shape[0], 'sample')}"):
        names = (
            "affinity",
            "gamma",
            "n_neighbors",
            "normalize",
            "n_clusters",
            "n_jobs",
        )
        options = {name: getattr(estimator, name) for name in names}
        options["n_landmarks"] = max(_LANDMARKS, estimator.n_clusters)
        options |= {"random_state": rng, "counts": rows.counts}
        if estimator.affinity == "precomputed":
            return make_affinity(rows.order.of_both(X), **options)
        return make_affinity(
            X[rows.samples], **options
        )  # which it alone holds, and can let go


def keep_pairs(estimator: Any, pairs: PairwiseConstraints, feasible: bool) -> None:
    """Set the fitted attributes that say what has become of pairs.

    Warns where hard ones are violated, all of which could be satisfied.
    """
    violated = [~ok for ok in pairs.satisfied(estimator.labels_)]
    estimator.constraints_, estimator.must_link_groups_ = pairs, pairs.components()
    estimator.satisfaction_ = pairs.satisfaction(estimator.labels_)
    estimator.violated_must_link_ = pairs.must_link[violated[0]]
    estimator.violated_cannot_link_ = pairs.cannot_link[violated[1]]
    hard = zip((pairs.must_link_hard, pairs.cannot_link_hard), violated, strict=True)
    must, cannot = (int((its & lost).sum()) for its, lost in hard)
    if not (feasible and must + cannot):
        return
    cures = ["hard_must_link=True"] if must else []
    if cannot:
        cures.append(f"beta={max(10, 3 * estimator.beta):g}")
    told = f"Labels violate {must + cannot} of {counted(pairs.n_pairs, 'pair')}"
    where = "see violated_must_link_, violated_cannot_link_"
    cure = f"Give {' and '.join(cures)}, by which pairs count for more"
    other = "contradictions='ignore' if some may be wrong"
    warn(f"{told}, though all can be satisfied: {where}. {cure}, or {other}.")


def warn_of_sizes(estimator: Any, affinity: Affinity, rows: Fitted) -> None:
    """Warn if a fit is likely to have split a large cluster for want of normalisation."""
    if affinity.is_even:
        return
    W, labels = affinity.similarity, estimator.labels_[rows.samples]
    if affinity.counts is not None:
        W = W.scaled(np.sqrt(affinity.counts))
    warn_of_split(W, labels, estimator.n_clusters)
