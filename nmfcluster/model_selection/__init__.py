"""Choose the parameters of clusterers without true labels."""

from nmfcluster.model_selection.choose import choose_n_clusters
from nmfcluster.model_selection.scorers import (
    ConstraintScorer,
    FullSampleSplit,
    HeldOutPairsScorer,
    StabilityScorer,
)
from nmfcluster.model_selection.sweep import sweep_n_clusters

__all__ = [
    "ConstraintScorer",
    "FullSampleSplit",
    "HeldOutPairsScorer",
    "StabilityScorer",
    "choose_n_clusters",
    "sweep_n_clusters",
]
