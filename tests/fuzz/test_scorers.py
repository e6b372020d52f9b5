"""The scorer by constraints, given any table and any parameters."""

import contextlib
import warnings

import numpy as np
from fuzz.parameters import parameters
from fuzz.strategies import FEATURES, SIMILARITIES, mostly, usually
from fuzz.verdict import REFUSED, fuzz, judged, names_of
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.mixture import GaussianMixture

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.model_selection import HeldOutPairsScorer

ESTIMATORS = [
    KMeans(2, n_init=1, random_state=0),
    GaussianMixture(2),
    AgglomerativeClustering(3),
    DBSCAN(min_samples=2),
    SSNMFClusterer(2, n_init=1, max_iter=3, affinity="linear"),
    SSNMFClusterer(2, n_init=1, max_iter=3, affinity="precomputed"),
]
SEEDS = mostly(0, None, np.int64(1), "x", -1, 0.5, np.timedelta64(1, "s"), 2**40, True, weight=8)


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
