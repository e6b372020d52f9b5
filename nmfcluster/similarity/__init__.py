"""Similarities as symmetric (n, n) operators, which need not be stored as arrays.

Solvers only need products with blocks of vectors, inner products, splits into nonnegative parts,
and restrictions to some of the samples. They therefore work with every kind of storage.
"""

from nmfcluster.similarity.neighbors import NeighborGraph
from nmfcluster.similarity.operators import Explicit, Factored, Similarity, WeightedSum
from nmfcluster.similarity.operators import inner as inner

__all__ = ["Explicit", "Factored", "NeighborGraph", "Similarity", "WeightedSum"]
