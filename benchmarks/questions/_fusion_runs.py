"""What the questions of fusion share: the sets, and the scores of a run."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks.datasets import handwritten
from benchmarks.datasets.views import Views
from benchmarks.kept import Run
from nmfcluster.metrics import clustering_accuracy

SETS = (
    "mfeat",
    "3sources",
    "bbcsport",
    "protein213",
    "yeast_mips3",
    "msrc_v1",
    "ngs",
    "100leaves",
    "bbc4view",
)
LONG = 60.0  # seconds after which a method gets no further seed on a data set


def scores(y: np.ndarray, labels: np.ndarray) -> Run:
    """Return how well a clustering finds the classes."""
    return {
        "accuracy": clustering_accuracy(y, labels),
        "nmi": float(normalized_mutual_info_score(y, labels)),
        "ari": float(adjusted_rand_score(y, labels)),
    }


def mean(runs: list[Run], figure: str) -> float:
    """Return the mean of a figure over runs, NaN without any."""
    return float(np.mean([run[figure] for run in runs])) if runs else float("nan")


def toy() -> Views:
    pictures, y = load_digits(n_class=3, return_X_y=True)
    return handwritten.halves("toy", pictures[:45], y[:45])
