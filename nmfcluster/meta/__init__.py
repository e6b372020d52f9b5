"""Stable, overlapping biclusters out of many NMF runs: metaclustering (Badea, 2005)."""

from nmfcluster.meta.across import metacluster
from nmfcluster.meta.assigning import Assignment, assign
from nmfcluster.meta.estimator import NMFMetaCluster

__all__ = ["Assignment", "NMFMetaCluster", "assign", "metacluster"]
