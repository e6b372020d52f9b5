"""Pictures of a clustering, in scikit-learn's style; matplotlib is imported when one is drawn."""

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
