"""Containers for several similarity matrices of the same samples, and kernels that compute them."""

from nmfcluster.stack.container import SimilarityStack, ViewStack
from nmfcluster.stack.readers import KernelStack

__all__ = ["KernelStack", "SimilarityStack", "ViewStack"]
