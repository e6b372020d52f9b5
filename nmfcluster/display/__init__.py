"""Pictures of a clustering, in scikit-learn's style; matplotlib is imported when one is drawn."""

from nmfcluster.display.bicluster import BiclusterDisplay as BiclusterDisplay
from nmfcluster.display.choices import NumberDisplay as NumberDisplay
from nmfcluster.display.choices import StabilityDisplay as StabilityDisplay
from nmfcluster.display.consensus import (
    ConsensusMatrixDisplay as ConsensusMatrixDisplay,
)
from nmfcluster.display.weights import SourceWeightsDisplay as SourceWeightsDisplay

__all__ = [name for name in dir() if name.endswith("Display")]
