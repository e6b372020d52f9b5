"""Scores of clusterings and of consensus matrices."""

from nmfcluster.metrics.overlap import overlap_match
from nmfcluster.metrics.pairs import pac_score, pair_consensus
from nmfcluster.metrics.scores import (
    clustering_accuracy,
    cophenetic_correlation,
    disagreement,
    dispersion,
)

__all__ = [
    "clustering_accuracy",
    "cophenetic_correlation",
    "disagreement",
    "dispersion",
    "overlap_match",
    "pac_score",
    "pair_consensus",
]
