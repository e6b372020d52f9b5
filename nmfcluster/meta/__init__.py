"""Stable, overlapping biclusters from many NMF runs, by metaclustering (Badea, 2005)."""

from nmfcluster.meta.assignment import Assignment, assign
from nmfcluster.meta.estimator import NMFMetaCluster
from nmfcluster.meta.groups import metacluster

__all__ = ["Assignment", "NMFMetaCluster", "assign", "metacluster"]
