"""Pictures of a clustering, in scikit-learn's style; matplotlib is imported when one is drawn."""

from nmfcluster._display_bicluster import BiclusterDisplay
from nmfcluster._display_consensus import ConsensusMatrixDisplay
from nmfcluster._display_constraints import ConstraintDisplay
from nmfcluster._display_loss import LossCurveDisplay
from nmfcluster._display_stability import StabilityDisplay
from nmfcluster._display_weights import SourceWeightsDisplay

__all__ = [
    "BiclusterDisplay",
    "ConsensusMatrixDisplay",
    "ConstraintDisplay",
    "LossCurveDisplay",
    "SourceWeightsDisplay",
    "StabilityDisplay",
]
