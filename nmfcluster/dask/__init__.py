"""Cluster data larger than memory with Dask: ``pip install "nmfcluster[distributed]"``."""

try:
    import dask.array as _array
    import distributed as _distributed
except ImportError as error:
    cure = 'pip install "nmfcluster[distributed]"'
    raise ModuleNotFoundError(f"nmfcluster.dask needs Dask: {cure}.") from error

from nmfcluster.dask.base_runs import base_partitions
from nmfcluster.dask.consensus import NMFConsensus
from nmfcluster.dask.tables import predict, transform

del _array, _distributed
__all__ = ["NMFConsensus", "base_partitions", "predict", "transform"]
