"""Choosing parameters without the truth."""

from nmfcluster.model_selection.constraints import ConstraintScorer
from nmfcluster.model_selection.search import FullSampleSplit, one_standard_error
from nmfcluster.model_selection.stability import StabilityScorer

__all__ = ["ConstraintScorer", "FullSampleSplit", "StabilityScorer", "one_standard_error"]
