"""Base partitions: many clusterings of one data set, made to differ."""

from nmfcluster.partitions.base_runs import BasePartitions as BasePartitions
from nmfcluster.partitions.base_runs import base_partitions
from nmfcluster.partitions.spectral import GraphSpectral, LandmarkSpectral

__all__ = ["GraphSpectral", "LandmarkSpectral", "base_partitions"]
