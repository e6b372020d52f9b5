"""Choosing parameters without the truth."""

from nmfcluster.model_selection.stability import (
    ConstraintScorer,
    FullSampleSplit,
    StabilityScorer,
    one_standard_error,
)

__all__ = ["ConstraintScorer", "FullSampleSplit", "StabilityScorer", "one_standard_error"]
