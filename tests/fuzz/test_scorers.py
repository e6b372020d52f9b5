"""Scorers of clusterers, given any table and any parameters."""

import contextlib
import warnings

import numpy as np
from fuzz import tables
from fuzz.parameters import parameters
from fuzz.strategies import FEATURES, FORMS, SIMILARITIES, mostly, usually
from fuzz.verdict import REFUSED, fuzz, judged, names_of
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.mixture import GaussianMixture

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.model_selection import (
    ConsensusScorer,
    GapScorer,
    HeldOutPairsScorer,
    NullScorer,
    PredictionStrengthScorer,
    SilhouetteScorer,
    StadionScorer,
    TransferScorer,
)

ESTIMATORS = [
    KMeans(2, n_init=1, random_state=0),
    GaussianMixture(2),
    AgglomerativeClustering(3),
    DBSCAN(min_samples=2),
    SSNMFClusterer(2, n_init=1, max_iter=3, affinity="linear"),
    SSNMFClusterer(2, n_init=1, max_iter=3, affinity="precomputed"),
]
SEEDS = mostly(0, None, np.int64(1), "x", -1, 0.5, np.timedelta64(1, "s"), 2**40, True, weight=8)
QUICK = {
    PredictionStrengthScorer: {"n_splits": 2},
    TransferScorer: {"n_splits": 2},
    StadionScorer: {"n_levels": 2, "n_perturbations": 1, "omega": (2,)},
    ConsensusScorer: {"n_subsamples": 4},
    SilhouetteScorer: {},
    GapScorer: {"n_references": 2},
    NullScorer: {"n_references": 2, "scorer": SilhouetteScorer()},
}
BOUNDS = {
    PredictionStrengthScorer: (0, 1),
    TransferScorer: (-np.inf, 1),
    StadionScorer: (-1.5, 1.5),  # differences of adjusted Rand indices, -.5 at least
    ConsensusScorer: (-1, 1),
    SilhouetteScorer: (-1, 1),
}


@fuzz(
    st.sampled_from(sorted(QUICK, key=str)),
    st.sampled_from(ESTIMATORS),
    usually(FEATURES, SIMILARITIES),
    st.data(),
    SEEDS,
    FORMS,
)
def test_scores(cls, estimator, table, data, seed, form):
    fixed = ("scorer",) if cls is NullScorer else ()
    given = data.draw(parameters(cls, QUICK[cls], fixed=fixed))
    table = table.but(form="C") if form in tables.SPARSE else table
    X = table.build()
    scorer = cls(**given | {"random_state": seed})
    names = [*names_of(cls), *names_of(type(estimator)), "estimator"]
    with warnings.catch_warnings(), contextlib.suppress(ValueError, TypeError):
        warnings.simplefilter("ignore")
        estimator = clone(estimator).fit(X)  # or it is scored as it is
    try:
        found = judged(scorer.__call__, estimator, X, also=names, foreign=True)
    except NotFittedError:
        return
    if found is REFUSED:
        return
    score = found[scorer._score_name()] if isinstance(found, dict) else found
    assert np.isnan(score) or np.isfinite(score)
    if cls in BOUNDS and not np.isnan(score) and score != scorer.error_score:
        low, high = BOUNDS[cls]
        assert low - 1e-9 <= score <= high + 1e-9


@fuzz(
    st.sampled_from(ESTIMATORS),
    usually(FEATURES, SIMILARITIES),
    st.data(),
    SEEDS,
    mostly(0, 1, -1, weight=8),
)
def test_scores_of_held_out_pairs(estimator, table, data, seed, off):
    scorer = HeldOutPairsScorer(
        **data.draw(parameters(HeldOutPairsScorer, {"n_splits": 2})) | {"random_state": seed}
    )
    X = table.build()
    with contextlib.suppress(ValueError, TypeError, IndexError):
        pairs = PairwiseConstraints(np.shape(X)[0] + off, [(0, 1)], [(0, 2)])
        names = [*names_of(type(scorer)), *names_of(type(estimator)), "estimator", "constraints"]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = judged(scorer.__call__, clone(estimator), X, pairs, also=names, foreign=True)
        if found is not REFUSED:
            score = found["satisfaction"] if isinstance(found, dict) else found
            assert np.isnan(score) or 0 <= score <= 1 or score == scorer.error_score
