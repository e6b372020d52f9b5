"""Pictures of a clustering, in scikit-learn's style; matplotlib is imported when one is drawn."""

from nmfcluster.display.bicluster import BiclusterDisplay
from nmfcluster.display.consensus import ConsensusMatrixDisplay
from nmfcluster.display.constraints import ConstraintDisplay
from nmfcluster.display.distribution import ConsensusCDFDisplay
from nmfcluster.display.loss import LossCurveDisplay
from nmfcluster.display.membership import MembershipDisplay
from nmfcluster.display.number import NumberDisplay
from nmfcluster.display.stability import StabilityDisplay
from nmfcluster.display.sweep import ClusterSweepDisplay
from nmfcluster.display.tracking import ClusterTrackingDisplay
from nmfcluster.display.weights import SourceWeightsDisplay

__all__ = [
    "BiclusterDisplay",
    "ClusterSweepDisplay",
    "ClusterTrackingDisplay",
    "ConsensusCDFDisplay",
    "ConsensusMatrixDisplay",
    "ConstraintDisplay",
    "LossCurveDisplay",
    "MembershipDisplay",
    "NumberDisplay",
    "SourceWeightsDisplay",
    "StabilityDisplay",
]
