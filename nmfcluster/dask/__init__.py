"""Tables that no machine holds, by Dask: ``pip install "nmfcluster[distributed]"``."""

try:
    import dask.array as _array
    import distributed as _distributed
except ImportError as error:
    raise ModuleNotFoundError(
        'nmfcluster.dask needs Dask: pip install "nmfcluster[distributed]".'
    ) from error

from nmfcluster.dask.consensus import NMFConsensus
from nmfcluster.dask.making import base_partitions
from nmfcluster.dask.models import predict, transform

del _array, _distributed
__all__ = ["NMFConsensus", "base_partitions", "predict", "transform"]
