"""Whether, and how far, the pairs of a fit spread to samples near theirs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from nmfcluster._arrays.arguments import counted
from nmfcluster._engine.report import stage
from nmfcluster.affinity import Affinity
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.similarity import Similarity
from nmfcluster.similarity.spreading import raised

_WIDTH = 0.7  # the best mean over 31 sets of 600 to 2,500 rows; from .65 to .75 it hardly changes
_SHARE = 0.02  # of the samples are in pairs at least: fewer change next to nothing, for its time
MADE = ("nearest_neighbors", "landmarks")  # similarities of features that are nowhere negative


def width_of(estimator: Any, affinity: Affinity, pairs: PairwiseConstraints) -> float | None:
    """Return how far pairs spread, or None: what `propagation` asks for, resolved.

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
        if estimator.normalize is False:
            return W
        return replace(affinity, similarity=W).normalized().similarity
