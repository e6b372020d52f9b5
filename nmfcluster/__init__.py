"""Clustering by nonnegative matrix factorization, in scikit-learn's style."""

from nmfcluster.consensus import NMFConsensus
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.ssnmf import SSNMFClusterer

__all__ = ["NMFConsensus", "PairwiseConstraints", "SSNMFClusterer", "__version__"]

__version__ = "0.1.0.dev0"
