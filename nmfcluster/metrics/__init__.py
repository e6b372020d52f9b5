"""Scores of clusterings and of consensus matrices."""

from nmfcluster.metrics.co_occurrence import cluster_consensus, item_consensus
from nmfcluster.metrics.matching import match_components
from nmfcluster.metrics.scores import clustering_accuracy, cophenetic_correlation

__all__ = [
    "cluster_consensus",
    "clustering_accuracy",
    "cophenetic_correlation",
    "item_consensus",
    "match_components",
]
