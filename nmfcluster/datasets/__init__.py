"""Made-up data whose right answer is known."""

from nmfcluster.datasets.clusters import make_biclusters as make_biclusters
from nmfcluster.datasets.clusters import make_nested_rings as make_nested_rings
from nmfcluster.datasets.clusters import make_partitions as make_partitions
from nmfcluster.datasets.counts import make_programs as make_programs
from nmfcluster.datasets.counts import make_signatures as make_signatures

__all__ = [name for name in dir() if name.startswith("make_")]
