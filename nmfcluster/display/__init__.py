"""Displays that draw clusterings, in scikit-learn's style. Drawing requires matplotlib."""

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
