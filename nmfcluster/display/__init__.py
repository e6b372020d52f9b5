"""Pictures of a clustering, in scikit-learn's style; matplotlib is imported when one is drawn."""

from nmfcluster.display.bicluster import BiclusterDisplay
from nmfcluster.display.choices import NumberDisplay, StabilityDisplay
from nmfcluster.display.consensus import ConsensusMatrixDisplay
from nmfcluster.display.weights import SourceWeightsDisplay

__all__ = [
    "BiclusterDisplay",
    "ConsensusMatrixDisplay",
    "NumberDisplay",
    "SourceWeightsDisplay",
    "StabilityDisplay",
]
