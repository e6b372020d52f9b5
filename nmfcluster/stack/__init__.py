"""Several similarities of the same samples: the container, its checks, and kernels that fill it."""

from nmfcluster.stack.container import SimilarityStack
from nmfcluster.stack.kernels import KernelStack
from nmfcluster.stack.reading import cross_sources, square_sources
from nmfcluster.stack.views import ViewStack

__all__ = ["KernelStack", "SimilarityStack", "ViewStack", "cross_sources", "square_sources"]
