"""What is known of pairs of samples: those of one cluster, and those of different ones."""

from nmfcluster.constraints.container import PairwiseConstraints

__all__ = ["PairwiseConstraints"]
