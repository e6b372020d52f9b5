"""Clustering by several similarities at once, with learned weights (Lange and Buhmann, 2005)."""

from nmfcluster.fusion.estimator import SimilarityFusionNMF

__all__ = ["SimilarityFusionNMF"]
