"""Base partitions: many clusterings of one data set, made to differ."""

from nmfcluster.partitions.making import BasePartitions, base_partitions
from nmfcluster.partitions.spectral import LandmarkSpectral

__all__ = ["BasePartitions", "LandmarkSpectral", "base_partitions"]
