"""Similarities as operators: symmetric (n, n) matrices that need not exist as arrays.

Solvers ask a similarity for block products, inner products, a split into nonnegative parts and
restrictions, and never how it is stored.
"""

from nmfcluster.similarity.neighbors import NeighborGraph
from nmfcluster.similarity.operators import Explicit, Factored, Similarity, WeightedSum
from nmfcluster.similarity.operators import inner as inner

__all__ = ["Explicit", "Factored", "NeighborGraph", "Similarity", "WeightedSum"]
