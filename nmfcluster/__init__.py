"""Clustering by nonnegative matrix factorization, in scikit-learn's style."""

from nmfcluster._compat import show_versions as show_versions
from nmfcluster.consensus import NMFConsensus as NMFConsensus
from nmfcluster.constraints import PairwiseConstraints as PairwiseConstraints
from nmfcluster.fusion import SimilarityFusionNMF as SimilarityFusionNMF
from nmfcluster.meta import NMFMetaCluster as NMFMetaCluster
from nmfcluster.ssnmf import SSNMFClusterer as SSNMFClusterer
from nmfcluster.stack import KernelStack as KernelStack
from nmfcluster.stack import SimilarityStack as SimilarityStack

__version__ = "0.1.0"
__all__ = [*sorted(name for name in dir() if name[0].isupper()), "__version__", "show_versions"]
