"""Tables that no machine holds, by Dask: ``pip install "nmfcluster[distributed]"``."""

from nmfcluster.dask.consensus import NMFConsensus
from nmfcluster.dask.making import BlockPartitions, base_partitions
from nmfcluster.dask.models import predict, transform
from nmfcluster.dask.tables import read_npy

__all__ = [
    "BlockPartitions",
    "NMFConsensus",
    "base_partitions",
    "predict",
    "read_npy",
    "transform",
]
