"""New samples in `SSNMFClusterer`, and what a fitted model keeps for them."""

import pickle
import warnings

import numpy as np
import pytest
from comparing import same_partition
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming
from scipy.optimize import nnls
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale
from ssnmf.cases import (
    AFFINITIES,
    CONSTRAINED,
    SOLVERS,
    X,
    clusterer,
    factors_of_samples,
    fitted,
    unconverged,
)

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.affinity import make_affinity
from nmfcluster.metrics import clustering_accuracy

pytestmark = unconverged


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("affinity", "way"), list(zip(AFFINITIES, ["hard", "soft"] * 2, strict=True))
)
def test_new_samples_are_least_squares_fits_to_the_factor(affinity, way, kept):
    model = fitted(affinity=affinity, **CONSTRAINED[way])
    new, _ = make_blobs(40, centers=3 * np.eye(3), random_state=7)
    new = new - new.min()
    made = make_affinity(X, affinity, normalize="auto", n_clusters=3)
    S = made.cross(new, np.eye(60))
    H, _ = factors_of_samples(model, kept[-1])
    order = [
        abs(H / H.sum(axis=1, keepdims=True) - column[:, None]).sum(axis=0).argmin()
        for column in model.membership_.T
    ]
    expected = np.array([nnls(H[:, order], row)[0] for row in S])
    memberships = expected / expected.sum(axis=1, keepdims=True)
    assert_allclose(model.transform(new), memberships, atol=1e-3)
    clear = (
        np.sort(memberships, axis=1)[:, -1] - np.sort(memberships, axis=1)[:, -2] > 0.01
    )
    assert clear.sum() > 30
    assert_array_equal(model.predict(new)[clear], expected.argmax(axis=1)[clear])


@pytest.mark.sampled(5)
@pytest.mark.parametrize("affinity", [*AFFINITIES, "landmarks", "precomputed"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("data", "normalize"),
    [("wine", True), ("wine", "auto"), ("cancer", False), ("standardized", "auto")],
)
def test_fitted_samples_are_predicted_where_they_are(data, affinity, normalize, solver):
    samples = load_breast_cancer().data[::4] if data == "cancer" else load_wine().data
    k = 8 if data == "cancer" else 3
    if data == "standardized":
        samples = scale(samples)
    if affinity == "precomputed":
        samples = rbf_kernel(samples, gamma=1 / samples.var() / samples.shape[1])
    options = {"affinity": affinity, "normalize": normalize, **SOLVERS[solver]}
    model = SSNMFClusterer(k, n_init=1, max_iter=100, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(samples)
    assert (model.predict(samples) == model.labels_).mean() > 0.99
    assert_allclose(model.transform(samples), model.membership_, atol=1e-6)


def test_products_of_parallel_rows_are_not_normalised():
    """The first eigenvector of what is normalised would be all that counts."""
    flowers = load_iris().data
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(200, 0.05), size=6)
    texts = np.array([rng.multinomial(30, topic) for topic in np.repeat(topics, 20, 0)])
    for affinity in ("linear", "cosine"):
        for samples, k, expected in ((flowers, 3, False), (texts, 6, True)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                found, same = (
                    clusterer(k, affinity=affinity, normalize=normalize).fit(samples)
                    for normalize in ("auto", expected)
                )
            assert_array_equal(found.membership_, same.membership_)
    with warns_naming(ConvergenceWarning, "1 cluster", "StandardScaler"):
        SSNMFClusterer(3, affinity="linear", random_state=0).fit(load_wine().data)


def test_a_document_without_known_words_is_in_no_cluster():
    model = fitted(affinity="cosine")
    assert_array_equal(model.predict(np.zeros((2, 3))), [-1, -1])
    assert_allclose(model.transform(np.zeros((2, 3))), np.full((2, 3), 1 / 3))


TEXTS = {
    "sport": "match goal team coach season player league score",
    "money": "bank market share profit price growth trade tax",
    "health": "patient doctor hospital drug disease trial nurse care",
}


def corpus(n=20, seed=0):
    rng = np.random.RandomState(seed)
    words = [text.split() for text in TEXTS.values()]
    y = np.arange(3 * n) % 3
    shared = ["year", "people", "new", "report"]
    texts = [" ".join([*rng.choice(words[c], 4), *rng.choice(shared, 3)]) for c in y]
    return texts, y


def test_documents_in_a_pipeline():
    texts, y = corpus()
    known = PairwiseConstraints.from_labels(y, n_pairs=40, random_state=0)
    model = make_pipeline(TfidfVectorizer(), clusterer(affinity="cosine"))
    model.fit(texts, ssnmfclusterer__constraints=known)
    assert clustering_accuracy(y, model[-1].labels_) > 0.95
    assert model[-1].satisfaction_ > 0.95
    unseen = model.predict([*TEXTS.values(), "unknown words"])
    assert sorted(unseen[:3]) == [0, 1, 2]
    assert unseen[3] == -1


def test_new_samples_of_clusters_that_are_linked_to_each_other():
    """Two clusters, similar to each other and not within: all of A is off the diagonal of S."""
    W = np.kron([[0.1, 1], [1, 0.1]], np.ones((10, 10)))
    model = clusterer(2, affinity="precomputed", factorization="tri", n_init=3).fit(W)
    assert same_partition(model.labels_, np.repeat([0, 1], 10))
    assert_array_equal(model.predict(W), model.labels_)
    GS = model._products_(np.eye(20)[:, model._columns_])
    fitted_rows = np.array([nnls(GS, w)[0] for w in W]) * model._roots_
    expected = fitted_rows / fitted_rows.sum(axis=1, keepdims=True)
    assert_allclose(model.transform(W), expected, atol=1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("affinity", ["linear", "cosine", "landmarks"])
def test_a_fitted_model_keeps_what_new_samples_need(affinity, few_landmarks):
    """Memberships and labels of the samples of the fit, and nothing else that grows with them."""
    few_landmarks(50)
    sizes = []
    for n in (400, 800):
        X, _ = make_blobs(n, centers=3, n_features=40, random_state=0)
        model = clusterer(affinity=affinity).fit(X)
        sizes.append(len(pickle.dumps(model)))
    # labels, groups, memberships; X has 40 columns
    assert sizes[1] - sizes[0] < 400 * 8 * (3 + 3)


def test_a_fitted_model_does_not_keep_the_similarity():
    X, _ = make_blobs(400, centers=3, random_state=0)
    model = clusterer(affinity="rbf").fit(X)
    assert len(pickle.dumps(model)) < 400 * 400 * 8 / 4


def test_no_sample_is_predicted_into_an_empty_cluster():
    """Two directions make two clusters of three; their opposites are dissimilar to one each."""
    X = np.repeat([[1.0, 0.0, 0.1], [0.0, 1.0, 0.1]], 20, axis=0)
    model = SSNMFClusterer(3, affinity="linear", normalize=False, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # only two clusters are found
        model.fit(X)
    assert_array_equal(model.predict(-X), 1 - model.labels_)
