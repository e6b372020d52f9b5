"""One result, to the bit, for any order of the rows: a law over all estimators."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import get_tags

from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SimilarityStack,
    SSNMFClusterer,
)
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions import GraphSpectral, LandmarkSpectral

# what is not clustered well, or not to the end, has one result, too
pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:.* hardly count:UserWarning"),
    pytest.mark.filterwarnings("ignore:Nothing .* the cluster:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* uniform memberships:UserWarning"),
    pytest.mark.filterwarnings("ignore:No two sources agree:UserWarning"),
    pytest.mark.filterwarnings(
        "ignore:The graph of similarities and must-links falls into"
    ),
]

N = 60
BLOBS, CLASSES = make_blobs(N, n_features=6, centers=3, cluster_std=4, random_state=0)
RNG = np.random.default_rng(0)
ANSWERS = RNG.integers(3, size=(N, 3)) + (CLASSES[:, None] == 0)
#: measured, and with many ties and copies
TABLES = {
    "measured": BLOBS,
    "rounded": np.round(BLOBS[:, :2] / 4),
    "answers": (ANSWERS[:, :, None] == np.arange(4)).reshape(N, -1).astype(float),
}
FORMS = {
    "float32": np.float32(TABLES["answers"]),
    "sparse": sp.csr_array(TABLES["answers"]),
    "frame": pd.DataFrame(
        TABLES["answers"], columns=[f"question {i}" for i in range(12)]
    ),
}


def taken(X, rows):
    return X.iloc[rows].reset_index(drop=True) if hasattr(X, "iloc") else X[rows]


def made(kind, seed, **options):
    shared = {"n_estimators": 4, "max_iter": 10, "random_state": seed}
    own = kind(3).get_params()
    return kind(
        3, **{name: value for name, value in shared.items() if name in own} | options
    )


def of_features(kind, X, **options):
    """Return a function from an order of the rows, and a seed, to a model."""
    return lambda rows, seed: made(kind, seed, **options).fit(taken(X, rows))


def of_similarity(kind, S, **options):
    options = {"affinity": "precomputed"} | options
    return lambda rows, seed: made(kind, seed, **options).fit(S[rows][:, rows])


def of_pairs(X, known, **options):
    options = {"contradictions": "ignore"} | options
    model = SSNMFClusterer
    return lambda rows, seed: made(model, seed, **options).fit(
        X[rows], constraints=known[rows]
    )


def of_sources(stack, **options):
    model = SimilarityFusionNMF
    return lambda rows, seed: made(model, seed, **options).fit(
        stack[np.ix_(rows, rows)]
    )


OF_FEATURES = {
    "consensus": (NMFConsensus, {}),
    "consensus of parts": (NMFConsensus, {"max_samples": 0.6, "n_estimators": 12}),
    "landmark spectral": (LandmarkSpectral, {"n_landmarks": 20}),
    "graph spectral": (GraphSpectral, {}),
    "meta": (NMFMetaCluster, {}),
    "fusion": (SimilarityFusionNMF, {"affinity": ["rbf", "nearest_neighbors"]}),
    "linear": (SSNMFClusterer, {"affinity": "linear"}),
    "cosine": (SSNMFClusterer, {"affinity": "cosine", "factorization": "tri"}),
    "rbf": (SSNMFClusterer, {"affinity": "rbf"}),
    "callable": (SSNMFClusterer, {"affinity": rbf_kernel}),
    "nearest_neighbors": (SSNMFClusterer, {"affinity": "nearest_neighbors"}),
    "landmarks": (SSNMFClusterer, {"affinity": "landmarks"}),
}
CASES = {
    f"{name}, {table}": of_features(
        kind, abs(X) if kind is NMFMetaCluster else X, **options
    )
    for name, (kind, options) in OF_FEATURES.items()
    for table, X in TABLES.items()
} | {
    f"{name}, {form}": of_features(kind, X, **options)
    for name in ("consensus of parts", "graph spectral", "meta", "fusion", "rbf")
    for kind, options in [OF_FEATURES[name]]
    for form, X in FORMS.items()
}


# --- and what is no table of features, or comes beside it ---------------------------------------

LABELS, _ = make_partitions(
    (30, 20, 10), n_partitions=7, noise=0.3, missing=0.1, random_state=0
)
KERNELS = {name: rbf_kernel(X, gamma=0.1) for name, X in TABLES.items()}
PAIRS = PairwiseConstraints.from_labels(CLASSES, n_pairs=40, random_state=0)
WRONG = PairwiseConstraints.from_labels(
    RNG.permutation(CLASSES), n_pairs=40, random_state=0
)
HOLEY = np.where(RNG.uniform(size=BLOBS.shape) < 0.1, np.nan, abs(BLOBS))
WEIGHTS = RNG.integers(3, size=N)
VIEWS = {
    "one": np.where(np.arange(N)[:, None] % 9, BLOBS, np.nan),
    "two": FORMS["sparse"],
}
PART = np.flatnonzero(np.arange(N) % 7)
LACKING = np.full((N, N), np.nan)
LACKING[np.ix_(PART, PART)] = KERNELS["answers"][np.ix_(PART, PART)]
STACK = SimilarityStack(
    [KERNELS["rounded"], LACKING, sp.csr_array(KERNELS["measured"].round(2))]
)

CASES |= {
    "partitions": of_features(NMFConsensus, LABELS, affinity="partitions"),
    "partitions beside features": lambda rows, seed: made(NMFConsensus, seed).fit(
        BLOBS[rows], partitions=LABELS[rows]
    ),
    # clusterers of this package that the user gives
    "given": of_features(
        NMFConsensus,
        TABLES["rounded"],
        estimator=[GraphSpectral(), LandmarkSpectral(), SSNMFClusterer(2)],
        max_samples=0.8,
        predict_unseen=True,
        n_estimators=6,
    ),
    "similarity": of_similarity(NMFConsensus, KERNELS["measured"]),
    "similarity, copies": of_similarity(NMFConsensus, sp.csr_array(KERNELS["answers"])),
    "W": of_similarity(SSNMFClusterer, KERNELS["answers"]),
    "W, sparse": of_similarity(
        SSNMFClusterer, sp.csr_array(KERNELS["rounded"]), normalize=True
    ),
    "pairs": of_pairs(BLOBS, PAIRS),
    "pairs, rbf": of_pairs(BLOBS, PAIRS, affinity="rbf", hard_must_link=True),
    "pairs, W": of_pairs(BLOBS @ BLOBS.T, PAIRS, affinity=lambda X, Y: X @ Y.T),
    "pairs, copies": of_pairs(TABLES["rounded"], PAIRS, affinity="linear"),
    "pairs, soft": of_pairs(BLOBS, WRONG, affinity="rbf"),
    "meta, missing": of_features(NMFMetaCluster, HOLEY),
    "meta, weighted": lambda rows, seed: made(
        NMFMetaCluster, seed, loss="kullback-leibler", resample="bootstrap"
    ).fit(abs(TABLES["rounded"])[rows], sample_weight=WEIGHTS[rows]),
    "views": lambda rows, seed: made(SimilarityFusionNMF, seed).fit(
        {name: view[rows] for name, view in VIEWS.items()}
    ),
    "sources": of_sources(STACK),
    "sources, a part": of_sources(STACK, max_samples=0.7, eta=0.3),
    "sources, as given": of_sources(
        SimilarityStack([KERNELS["rounded"], KERNELS["measured"]]),
        max_samples=0.7,
        criterion="kl",
    ),
    "sources, by landmarks": of_sources(
        SimilarityStack([KERNELS["answers"], KERNELS["rounded"]]),
        max_samples=0.7,
        symmetric=False,
    ),
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("seed", "name"), [(i % 5, name) for i, name in enumerate(CASES)]
)
def test_order_of_rows_does_not_matter(seed, name):
    moved = np.random.default_rng(seed).permutation(N)
    expected, found = (CASES[name](rows, seed) for rows in (np.arange(N), moved))
    assert len(np.unique(expected.labels_)) > 1
    assert_array_equal(found.labels_, expected.labels_[moved])
    for attribute in ("membership_", "confidence_", "partitions_", "factor_"):
        if getattr(expected, attribute, None) is not None:
            of_rows = getattr(expected, attribute)[moved]
            assert_array_equal(getattr(found, attribute), of_rows, attribute)
    if hasattr(expected, "loss_"):
        assert found.loss_ == expected.loss_
    if hasattr(expected, "must_link_groups_"):  # numbered as they come
        groups, others = expected.must_link_groups_[moved], found.must_link_groups_
        assert_array_equal(others[:, None] == others, groups[:, None] == groups)


@pytest.mark.sampled(4)
def test_a_new_estimator_heeds_no_order_either(public_estimator, make_input):
    X, _ = make_input(public_estimator)
    moved = np.random.default_rng(0).permutation(len(X))
    other = X[moved]
    if get_tags(public_estimator).input_tags.pairwise:
        other = other[:, moved]
    model = clone(public_estimator).set_params(random_state=0).fit(X)
    found = clone(public_estimator).set_params(random_state=0).fit(other)
    assert_array_equal(found.labels_, model.labels_[moved])
    assert_array_equal(found.membership_, model.membership_[moved])


def test_what_is_known_of_pairs_comes_back_in_their_order():
    """Pairs, and which are violated."""
    moved = np.random.default_rng(1).permutation(N)
    expected, found = (CASES["pairs, soft"](rows, 0) for rows in (np.arange(N), moved))
    n_violated = 0
    for kind in ("must_link", "cannot_link"):
        pairs, others = (getattr(m.constraints_, kind) for m in (expected, found))
        assert {*map(frozenset, pairs.tolist())} == {
            *map(frozenset, moved[others].tolist())
        }
        violated, moved_ones = (
            getattr(m, f"violated_{kind}_") for m in (expected, found)
        )
        n_violated += len(violated)
        assert {*map(frozenset, violated.tolist())} == {
            *map(frozenset, moved[moved_ones].tolist())
        }


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["similarity", "sources, a part", "sources, as given"])
def test_what_is_asked_of_a_fit_has_the_numbers_of_the_user(name):
    moved, some = np.random.default_rng(1).permutation(N), np.array([5, 2, 40])
    expected, found = (CASES[name](rows, 0) for rows in (np.arange(N), moved))
    if name == "similarity":
        S = KERNELS["measured"][np.ix_(moved, moved)]
        assert_array_equal(found.consensus_matrix(some), S[np.ix_(some, some)])
        assert_array_equal(
            found.transform(S), expected.transform(KERNELS["measured"])[moved]
        )
        return
    assert {*moved[found.sample_indices_]} == {*expected.sample_indices_}
    place = {number: place for place, number in enumerate(expected.sample_indices_)}
    places = [place[number] for number in moved[found.sample_indices_]]
    fused, other = (
        sp.csr_array(model.fused_similarity()).toarray() for model in (expected, found)
    )
    fused = fused[np.ix_(places, places)]
    assert_array_equal(other, fused)
    part = sp.csr_array(found.fused_similarity(some[:2], slice(9))).toarray()
    assert_array_equal(part, fused[some[:2], :9])
    assert_array_equal(found.source_contributions(), expected.source_contributions())
    assert found.rank_sources() == expected.rank_sources()
