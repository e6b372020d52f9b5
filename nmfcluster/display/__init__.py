"""Pictures of a clustering, in scikit-learn's style; matplotlib is imported when one is drawn."""

from nmfcluster.display.bicluster import BiclusterDisplay
from nmfcluster.display.choices import NumberDisplay, StabilityDisplay
from nmfcluster.display.consensus import ConsensusMatrixDisplay
from nmfcluster.display.constraints import ConstraintDisplay
from nmfcluster.display.fits import LossCurveDisplay, SourceWeightsDisplay
from nmfcluster.display.samples import ClusterTrackingDisplay, MembershipDisplay

__all__ = [
    "BiclusterDisplay",
    "ClusterTrackingDisplay",
    "ConsensusMatrixDisplay",
    "ConstraintDisplay",
    "LossCurveDisplay",
    "MembershipDisplay",
    "NumberDisplay",
    "SourceWeightsDisplay",
    "StabilityDisplay",
]
