"""Pictures of a clustering, as scikit-learn's displays; drawing imports matplotlib."""

from nmfcluster.display.curves import (
    NumberDisplay,
    SourceWeightsDisplay,
    StabilityDisplay,
)
from nmfcluster.display.matrices import BiclusterDisplay, ConsensusMatrixDisplay

__all__ = [
    "BiclusterDisplay",
    "ConsensusMatrixDisplay",
    "NumberDisplay",
    "SourceWeightsDisplay",
    "StabilityDisplay",
]
