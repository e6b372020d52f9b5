"""Base partitions: many clusterings of one data set, made to differ."""

from nmfcluster.partitions.making import BasePartitions, base_partitions

__all__ = ["BasePartitions", "base_partitions"]
