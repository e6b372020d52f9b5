"""What is known of pairs of samples: those of one cluster, and those of different ones."""

from nmfcluster.constraints.asking import next_pairs
from nmfcluster.constraints.container import PairwiseConstraints

__all__ = ["PairwiseConstraints", "next_pairs"]
