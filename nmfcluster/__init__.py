"""Clustering by nonnegative matrix factorization, in scikit-learn's style."""

from nmfcluster.consensus import NMFConsensus

__all__ = ["NMFConsensus", "__version__"]

__version__ = "0.1.0.dev0"
