"""Clustering by nonnegative matrix factorization, in scikit-learn's style."""

from nmfcluster.consensus import NMFConsensus
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.fusion import SimilarityFusionNMF
from nmfcluster.meta import NMFMetaCluster
from nmfcluster.ssnmf import SSNMFClusterer
from nmfcluster.stack import KernelStack, SimilarityStack

__all__ = [
    "KernelStack",
    "NMFConsensus",
    "NMFMetaCluster",
    "PairwiseConstraints",
    "SSNMFClusterer",
    "SimilarityFusionNMF",
    "SimilarityStack",
    "__version__",
]

__version__ = "0.1.0.dev0"
