"""Choosing parameters without the truth."""

from nmfcluster.model_selection.choose import choose_n_clusters
from nmfcluster.model_selection.chosen import NumberOfClusters
from nmfcluster.model_selection.constraints import ConstraintScorer
from nmfcluster.model_selection.scores.consensus import ConsensusScorer
from nmfcluster.model_selection.scores.gap import GapScorer
from nmfcluster.model_selection.scores.halves import PredictionStrengthScorer, TransferScorer
from nmfcluster.model_selection.scores.held_out import HeldOutPairsScorer
from nmfcluster.model_selection.scores.null import NullScorer
from nmfcluster.model_selection.scores.recurrence import RecurrenceScorer
from nmfcluster.model_selection.scores.silhouette import SilhouetteScorer
from nmfcluster.model_selection.scores.stadion import StadionScorer
from nmfcluster.model_selection.search import FullSampleSplit, first_gap, one_standard_error
from nmfcluster.model_selection.stability import StabilityScorer
from nmfcluster.model_selection.sweep import sweep_n_clusters
from nmfcluster.model_selection.swept import ClusterSweep

__all__ = [
    "ClusterSweep",
    "ConsensusScorer",
    "ConstraintScorer",
    "FullSampleSplit",
    "GapScorer",
    "HeldOutPairsScorer",
    "NullScorer",
    "NumberOfClusters",
    "PredictionStrengthScorer",
    "RecurrenceScorer",
    "SilhouetteScorer",
    "StabilityScorer",
    "StadionScorer",
    "TransferScorer",
    "choose_n_clusters",
    "first_gap",
    "one_standard_error",
    "sweep_n_clusters",
]
