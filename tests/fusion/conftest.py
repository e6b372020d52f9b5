"""What tests of `SimilarityFusionNMF` share."""

import numpy as np
import pytest

import nmfcluster.fusion.model
from nmfcluster._utils.order import CanonicalOrder
from nmfcluster.stack.readers import StackReader


@pytest.fixture
def as_given(monkeypatch):
    """Let objects be fitted in the order in which they are given, in which then factors are.

    In another one sums round otherwise: fits to features are those to their kernels to all digits
    where neither are in an order of their own.
    """

    def order_of(self, objects):
        samples = np.arange(len(objects))
        return CanonicalOrder(samples, samples)

    monkeypatch.setattr(StackReader, "order_of", order_of)


@pytest.fixture
def fusions(monkeypatch):
    """Return the list of what `fit_fusion` will return."""
    kept = []

    def spy(*arguments, inner=nmfcluster.fusion.model.fit_fusion, **options):
        kept.append(inner(*arguments, **options))
        return kept[-1]

    monkeypatch.setattr(nmfcluster.fusion.model, "fit_fusion", spy)
    return kept
