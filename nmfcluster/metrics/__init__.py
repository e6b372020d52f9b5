"""Scores of clusterings and of consensus matrices."""

from nmfcluster.metrics.matching import match_components
from nmfcluster.metrics.members import cluster_consensus, item_consensus
from nmfcluster.metrics.overlap import overlap_match
from nmfcluster.metrics.pairs import pac_score, pair_consensus
from nmfcluster.metrics.scores import (
    clustering_accuracy,
    cophenetic_correlation,
    disagreement,
    dispersion,
)

__all__ = [
    "cluster_consensus",
    "clustering_accuracy",
    "cophenetic_correlation",
    "disagreement",
    "dispersion",
    "item_consensus",
    "match_components",
    "overlap_match",
    "pac_score",
    "pair_consensus",
]
