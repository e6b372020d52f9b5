"""Figures for clusterings and consensus matrices."""

from nmfcluster.metrics.scores import (
    clustering_accuracy,
    cophenetic_correlation,
    disagreement,
    dispersion,
    overlap_match,
)

__all__ = [
    "clustering_accuracy",
    "cophenetic_correlation",
    "disagreement",
    "dispersion",
    "overlap_match",
]
