"""SimilarityFusionNMF with its defaults, other eta, the paper's losses, or the stablest eta."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning, FitFailedWarning
from sklearn.model_selection import GridSearchCV

from benchmarks.methods import SIMILARITIES, Method, timed
from nmfcluster import SimilarityFusionNMF, SimilarityStack
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

VARIANTS: dict[str, dict[str, Any]] = {
    "fusion": {},
    "fusion, eta 0.3": {"eta": 0.3},
    "fusion, eta 0.1": {"eta": 0.1},
    "fusion, kl": {"criterion": "kl", "eta": 1.0},
    "fusion, cross-entropy": {"criterion": "cross_entropy", "eta": 1.0},
}
ETAS = (0.03, 0.1, 0.3, 1.0, np.inf)
N_SUBSAMPLES = 10  # random subsamples whose clusterings are compared
SUBSAMPLE = (
    0.8  # share of the samples: graphs of ten neighbours fall apart on much less
)


def fit(
    stack: SimilarityStack, k: int, seed: int, **options: Any
) -> SimilarityFusionNMF:
    model = SimilarityFusionNMF(k, random_state=seed, **options)
    return quietly(model, stack)


def cluster(
    X: Any, stack: SimilarityStack, k: int, seed: int, **options: Any
) -> np.ndarray:
    return fit(stack, k, seed, **options).labels_


def most_stable(X: Any, stack: SimilarityStack, k: int, seed: int) -> np.ndarray:
    """Choose the eta whose clusterings are most stable, without looking at the classes."""
    scorer = StabilityScorer(
        N_SUBSAMPLES, subsample_size=SUBSAMPLE, adjust="ratio", random_state=seed
    )
    search = GridSearchCV(
        SimilarityFusionNMF(k, random_state=seed),
        {"eta": list(ETAS)},
        scoring=scorer,
        cv=FullSampleSplit(),
        error_score="raise",
    )
    return quietly(search, stack).best_estimator_.labels_


def quietly(model: Any, stack: SimilarityStack) -> Any:
    with warnings.catch_warnings():
        # an object may be similar to no other
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        # it would pass for a bad score
        warnings.simplefilter("error", FitFailedWarning)
        return model.fit(stack)


METHODS = [
    Method(name, timed(partial(cluster, **options)), wants=SIMILARITIES)
    for name, options in VARIANTS.items()
]
METHODS.append(Method("fusion, stable eta", timed(most_stable), wants=SIMILARITIES))
