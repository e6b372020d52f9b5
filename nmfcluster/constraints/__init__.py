"""Pairwise constraints: must-link and cannot-link pairs of samples."""

from nmfcluster.constraints.active import next_pairs
from nmfcluster.constraints.container import PairwiseConstraints
from nmfcluster.constraints.sizes import labels_of_sizes

__all__ = ["PairwiseConstraints", "labels_of_sizes", "next_pairs"]
