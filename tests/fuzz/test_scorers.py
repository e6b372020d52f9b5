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
from sklearn.mixture import GaussianMixture

from nmfcluster import NMFMetaCluster, PairwiseConstraints, SSNMFClusterer
from nmfcluster.model_selection import HeldOutPairsScorer, StabilityScorer

ESTIMATORS = [
    KMeans(2, n_init=1, random_state=0),
    GaussianMixture(2),
    AgglomerativeClustering(3),
    DBSCAN(min_samples=2),
    SSNMFClusterer(2, n_init=1, max_iter=3, affinity="linear"),
    SSNMFClusterer(2, n_init=1, max_iter=3, affinity="precomputed"),
    NMFMetaCluster(2, n_estimators=2, n_init=1, max_iter=3),
]
SEEDS = mostly(
    0, None, np.int64(1), "x", -1, 0.5, np.timedelta64(1, "s"), 2**40, True, weight=8
)


@fuzz(
    st.sampled_from(ESTIMATORS),
    usually(FEATURES, SIMILARITIES),
    st.data(),
    SEEDS,
    FORMS,
)
def test_stability(estimator, table, data, seed, form):
    given = data.draw(
        parameters(StabilityScorer, {"n_subsamples": 3, "subsample_size": 0.5})
    )
    table = table.but(form="C") if form in tables.SPARSE else table
    X = table.build()
    scorer = judged(StabilityScorer, **given | {"random_state": seed})
    if scorer is REFUSED:
        return
    names = [*names_of(StabilityScorer), *names_of(type(estimator)), "estimator"]
    with warnings.catch_warnings(), contextlib.suppress(ValueError, TypeError):
        warnings.simplefilter("ignore")
        estimator = clone(estimator).fit(X)  # or it is scored as it is
    found = judged(scorer.__call__, estimator, X, also=names, foreign=True)
    if found is REFUSED:
        return
    score = found["stability"] if isinstance(found, dict) else found
    assert np.isnan(score) or -np.inf < score <= 1 + 1e-9


@fuzz(
    st.sampled_from(ESTIMATORS),
    usually(FEATURES, SIMILARITIES),
    st.data(),
    SEEDS,
    mostly(0, 1, -1, weight=8),
)
def test_scores_of_held_out_pairs(estimator, table, data, seed, off):
    given = data.draw(parameters(HeldOutPairsScorer, {"n_splits": 2}))
    scorer = judged(HeldOutPairsScorer, **given | {"random_state": seed})
    if scorer is REFUSED:
        return
    X = table.build()
    with contextlib.suppress(ValueError, TypeError, IndexError):
        pairs = PairwiseConstraints(np.shape(X)[0] + off, [(0, 1)], [(0, 2)])
        names = [
            *names_of(type(scorer)),
            *names_of(type(estimator)),
            "estimator",
            "constraints",
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = judged(
                scorer.__call__, clone(estimator), X, pairs, also=names, foreign=True
            )
        if found is not REFUSED:
            score = found["satisfaction"] if isinstance(found, dict) else found
            assert np.isnan(score) or 0 <= score <= 1
