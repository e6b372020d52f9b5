"""Pairwise constraints: pairs of samples of one cluster, and pairs of different clusters."""

from nmfcluster.constraints.active import next_pairs
from nmfcluster.constraints.container import PairwiseConstraints
from nmfcluster.constraints.sizes import labels_of_sizes

__all__ = ["PairwiseConstraints", "labels_of_sizes", "next_pairs"]
