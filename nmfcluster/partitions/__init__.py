"""Base partitions: many different clusterings of one data set."""

from nmfcluster.partitions.base_runs import BasePartitions as BasePartitions
from nmfcluster.partitions.base_runs import base_partitions
from nmfcluster.partitions.spectral import GraphSpectral, LandmarkSpectral

__all__ = ["GraphSpectral", "LandmarkSpectral", "base_partitions"]
