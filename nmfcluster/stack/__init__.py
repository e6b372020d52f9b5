"""Containers of several similarities of the same samples, and kernels that compute these."""

from nmfcluster.stack.container import SimilarityStack, ViewStack
from nmfcluster.stack.readers import KernelStack

__all__ = ["KernelStack", "SimilarityStack", "ViewStack"]
