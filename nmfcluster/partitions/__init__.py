"""Base partitions: many clusterings of one data set, made to differ."""

from nmfcluster.partitions.making import BasePartitions as BasePartitions
from nmfcluster.partitions.making import base_partitions
from nmfcluster.partitions.spectral import LandmarkSpectral

__all__ = ["LandmarkSpectral", "base_partitions"]
