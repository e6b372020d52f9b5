"""Clustering under pairwise constraints (Li, Ding and Jordan, 2007; Chen et al., 2007)."""

from nmfcluster.ssnmf.estimator import SSNMFClusterer

__all__ = ["SSNMFClusterer"]
