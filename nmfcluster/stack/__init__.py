"""Several similarities of the same samples: containers, and kernels that fill them."""

from nmfcluster.stack.container import SimilarityStack, ViewStack
from nmfcluster.stack.readers import KernelStack

__all__ = ["KernelStack", "SimilarityStack", "ViewStack"]
