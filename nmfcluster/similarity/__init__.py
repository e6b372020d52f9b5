"""Similarities as operators: symmetric (n, n) matrices that need not exist as arrays.

Solvers use only their block products, inner products, splits into nonnegative parts and
restrictions, whatever the storage.
"""

from nmfcluster.similarity.neighbors import NeighborGraph
from nmfcluster.similarity.operators import Explicit, Factored, Similarity, WeightedSum
from nmfcluster.similarity.operators import inner as inner

__all__ = ["Explicit", "Factored", "NeighborGraph", "Similarity", "WeightedSum"]
