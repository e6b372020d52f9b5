"""What NMFConsensus refuses, and what it says: the parameter, its value, what is allowed."""

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import (
    Case,
    assert_all_refused,
    assert_in_our_words,
    changed,
    raises_naming,
)
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import DBSCAN, KMeans
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from nmfcluster import NMFConsensus

rng = np.random.RandomState(0)
X = np.concatenate([rng.normal(0, 1, (12, 4)), rng.normal(9, 1, (8, 4))])
TABLE = np.column_stack([np.repeat([0, 1], [12, 8])] * 3)
A = np.exp(-0.02 * ((X[:, None] - X) ** 2).sum(axis=2))


class Clusterer(ClusterMixin, BaseEstimator):
    """Returns labels that are no good."""

    def __init__(self, labels):
        self.labels = labels

    def fit_predict(self, X, y=None):
        return self.labels


class NotAnEstimator:
    def fit_predict(self, X):
        return np.zeros(len(X))


def features(name, says, X=X, error=ValueError, **parameters):
    return Case(name, says, X, {}, parameters, error)


def given(name, says, partitions, error=ValueError, **parameters):
    return Case(name, says, X, {"partitions": partitions}, parameters, error)


def table(name, says, X=TABLE, error=ValueError, partitions=None, **parameters):
    parameters |= {"affinity": "partitions"}
    return Case(name, says, X, {"partitions": partitions}, parameters, error)


def similarity(name, says, X=A, error=ValueError, partitions=None, **parameters):
    parameters |= {"affinity": "precomputed"}
    return Case(name, says, X, {"partitions": partitions}, parameters, error)


HALF_SEEN = changed(TABLE, (3, 0), -1)
PAIRS = {"normalize": False}
TEXT = TABLE.astype(object)

CASES = [
    # features
    features("no samples", "0 sample", X[:0]),
    features("no features", "0 feature", X[:, :0]),
    features("one sample", "n_samples=1", X[:1], n_clusters=1),
    features("a vector", "2D array", X[:, 0]),
    features("three dimensions", ("dim 3", "NMFConsensus"), X[None]),
    features("not a number", ("X", "NaN"), changed(X, (3, 2), np.nan)),
    features("infinity", ("X", "infinity"), changed(X, (3, 2), np.inf)),
    features("complex numbers", "Complex data", X.astype(complex)),
    features(
        "fewer samples than clusters", ("n_clusters=21", "n_samples=20"), n_clusters=21
    ),
    given(
        "partitions alone",
        ("X", "None", "affinity='partitions'"),
        TABLE,
    )._replace(X=None),
    # parameters
    features("zero clusters", ("'n_clusters'", "0"), n_clusters=0),
    features("half a cluster", ("'n_clusters'", "2.5"), n_clusters=2.5),
    features("clusters in words", ("'n_clusters'", "'two'"), n_clusters="two"),
    features("no number of clusters", ("'n_clusters'", "None"), n_clusters=None),
    features(
        "unknown affinity", ("'affinity'", "'precomputed'", "'rbf'"), affinity="rbf"
    ),
    features(
        "unknown factorization",
        ("'factorization'", "'tri'", "'kl'"),
        factorization="kl",
    ),
    features("normalised in words", ("'normalize'", "'yes'"), normalize="yes"),
    features("normalised as a number", ("'normalize'", "1"), normalize=1),
    features("normalised or not", ("'normalize'", "None"), normalize=None),
    features("no starts", ("'n_init'", "0"), n_init=0),
    features("no updates", ("'max_iter'", "0"), max_iter=0),
    features("no tolerance", ("'tol'", "nan"), tol=np.nan),
    features("a word for a seed", ("'random_state'", "'x'"), random_state="x"),
    features("half a job", ("'n_jobs'", "0.5"), n_jobs=0.5),
    features("no partitions to make", ("'n_estimators'", "0"), n_estimators=0),
    features(
        "base clusters reversed", ("base_n_clusters", "(5, 2)"), base_n_clusters=(5, 2)
    ),
    features(
        "base clusters in threes",
        ("base_n_clusters", "(2, 3, 4)"),
        base_n_clusters=(2, 3, 4),
    ),
    features("no base clusters", ("base_n_clusters", "0"), base_n_clusters=0),
    features(
        "no base clusters at times",
        ("base_n_clusters", "(0, 2)"),
        base_n_clusters=(0, 2),
    ),
    features("half a base cluster", ("base_n_clusters", "2.5"), base_n_clusters=2.5),
    features(
        "base clusters as floats",
        ("base_n_clusters", "2.0"),
        base_n_clusters=(2.0, 3.0),
    ),
    features(
        "base clusters in words", ("base_n_clusters", "'few'"), base_n_clusters="few"
    ),
    features("no samples drawn", ("'max_samples'", "0"), max_samples=0),
    features(
        "a negative share of samples", ("'max_samples'", "-0.5"), max_samples=-0.5
    ),
    features("a share of samples above one", ("'max_samples'", "1.5"), max_samples=1.5),
    features(
        "more samples than there are", ("max_samples", "20", "21"), max_samples=21
    ),
    features("no features drawn", ("'max_features'", "0"), max_features=0),
    features(
        "more features than there are", ("max_features", "4", "5"), max_features=5
    ),
    features(
        "samples never drawn",
        ("16", "0", "1", "predict_unseen=True", "n_estimators", "max_samples"),
        n_estimators=2,
        max_samples=3,
        base_n_clusters=2,
    ),
    features(
        "noise to all",
        ("estimator", "DBSCAN", "noise"),
        estimator=DBSCAN(eps=1e-3),
    ),
    # the base clusterer
    features(
        "no clusterer",
        ("'estimator'", "fit_predict", "StandardScaler"),
        estimator=StandardScaler(),
    ),
    features(
        "a class",
        ("estimator", "instance", "KMeans"),
        estimator=KMeans,
        error=TypeError,
    ),
    features("a name", ("'estimator'", "'kmeans'"), estimator="kmeans"),
    features(
        "not cloneable", "get_params", estimator=NotAnEstimator(), error=TypeError
    ),
    features(
        "labels of another length",
        ("estimator", "(19,)", "20"),
        estimator=Clusterer([0] * 19),
    ),
    features(
        "labels in a column",
        ("estimator", "(20, 1)", "20"),
        estimator=Clusterer([[0]] * 20),
    ),
    features(
        "fractions from the clusterer",
        ("estimator", "0.5"),
        estimator=Clusterer([0.5] * 20),
    ),
    features(
        "words from the clusterer",
        "estimator",
        estimator=Clusterer(["a"] * 20),
        error=(ValueError, TypeError),
    ),
    # weights
    features("a weight too few", ("weights", "5", "(3,)"), weights=[1, 1, 1]),
    given("a weight too many", ("weights", "3", "(4,)"), TABLE, weights=[1, 1, 1, 1]),
    given(
        "weights in a column",
        ("weights", "3", "(3, 1)"),
        TABLE,
        weights=[[1], [1], [1]],
    ),
    given("a negative weight", ("weights", "-1"), TABLE, weights=[1, -1, 1]),
    given("only weights of zero", ("weights", "0"), TABLE, weights=[0, 0, 0]),
    given(
        "a weight that is no number",
        ("weights", "3", "finite", "nan"),
        TABLE,
        weights=[1, np.nan, 1],
    ),
    given(
        "an infinite weight",
        ("weights", "3", "finite", "inf"),
        TABLE,
        weights=[1, np.inf, 1],
    ),
    given("a word for weights", ("'weights'", "'equal'"), TABLE, weights="equal"),
    similarity("weights without partitions", "weights=", weights=[1, 2, 3]),
    # partitions
    given(
        "partitions too long",
        ("partitions", "24", "rows", "X", "20"),
        np.tile(TABLE, (2, 1))[:24],
    ),
    given("partitions transposed", ("partitions", "3", "rows", "X", "20"), TABLE.T),
    given(
        "partitions in a list, samples first",
        ("partitions", "3", "rows", "X", "20"),
        TABLE.tolist(),
    ),
    given("ragged partitions", ("partitions", "19"), [[0] * 20, [0] * 19]),
    given("one vector", ("partitions", "(20,)"), TABLE[:, 0]),
    given("one list", ("partitions", "()"), TABLE[:, 0].tolist()),
    given("three dimensions of labels", ("partitions", "(1, 20, 3)"), TABLE[None]),
    given("a number for partitions", ("partitions", "()"), 5),
    given(
        "sparse partitions", ("partitions", "sparse"), sp.csr_array(TABLE), TypeError
    ),
    given(
        "no partition",
        ("partitions", "0 partitions"),
        TABLE[:, :0],
    ),
    given(
        "an empty list",
        ("partitions", "0 partitions"),
        [],
    ),
    given(
        "a partition without labels",
        ("partitions", "1"),
        changed(TABLE, (slice(None), 1), -1),
    ),
    given(
        "fractions as labels",
        ("partitions[:, 2]", "0.5"),
        changed(TABLE * 1.0, (4, 2), 0.5),
    ),
    given(
        "infinity as a label",
        ("partitions[:, 2]", "inf"),
        changed(TABLE * 1.0, (4, 2), np.inf),
    ),
    given(
        "numbers and words",
        ("partitions[:, 1]", "int", "str"),
        changed(TEXT, (4, 1), "a"),
        TypeError,
    ),
    given("complex labels", ("partitions", "complex128"), TABLE * 1j, TypeError),
    given(
        "dates as labels",
        ("partitions", "datetime64[D]"),
        TABLE.astype("M8[D]"),
        TypeError,
    ),
    given(
        "lists as labels",
        ("partitions", "list"),
        changed(TEXT, 0, [[[1]] * 3]),
        TypeError,
    ),
    given(
        "tri with missing labels",
        "factorization='tri'",
        HALF_SEEN,
        factorization="tri",
    ),
    given(
        "pairs with missing labels",
        ("normalize=False", "normalize=True"),
        HALF_SEEN,
        **PAIRS,
    ),
    table(
        "partitions twice", ("partitions", "affinity='partitions'"), partitions=TABLE
    ),
    similarity(
        "partitions of a similarity",
        ("partitions", "affinity='precomputed'"),
        partitions=TABLE,
    ),
    # X as a table of labels
    table("a table of no samples", "0 sample", TABLE[:0]),
    table("a table of no partitions", "0 feature", TABLE[:, :0]),
    table("a table of fractions", ("X[:, 0]", "0.5"), TABLE + 0.5),
    table("a sparse table", ("X", "dense"), sp.csr_array(TABLE), TypeError),
    table("a vector for a table", "2D array", TABLE[:, 0]),
    table(
        "a column without labels",
        ("X", "1"),
        changed(TABLE, (slice(None), 1), -1),
    ),
    table("a table of few samples", ("n_clusters=2", "n_samples=1", "X.T"), TABLE[:1]),
    table(
        "a mixed table",
        ("X[:, 1]", "int", "str"),
        changed(TEXT, (4, 1), "a"),
        TypeError,
    ),
    table(
        "pairs with a missing label",
        ("normalize=False", "normalize=True"),
        HALF_SEEN,
        **PAIRS,
    ),
    features(
        "pairs that runs see some of",
        "normalize=False",
        max_samples=17,
        **PAIRS,
    ),
    table(
        "tri with a missing label",
        "factorization='tri'",
        HALF_SEEN,
        factorization="tri",
    ),
    # X as a similarity
    similarity("not square", ("X", "square", "(20, 19)"), A[:, :19]),
    similarity(
        "not symmetric", ("X", "symmetric", "5"), changed(A, (2, 3), A[2, 3] + 5)
    ),
    similarity("not symmetric, sparse", ("X", "symmetric"), sp.csr_array(np.triu(A))),
    similarity(
        "negative",
        ("Negative", "X"),
        changed(A, ([2, 3], [3, 2]), -1),
    ),
    similarity("negative, sparse", ("Negative", "X"), sp.csr_array(-A)),
    similarity("nothing similar", ("X", "above 0"), np.zeros((20, 20))),
    similarity("nothing similar, sparse", ("X", "above 0"), sp.csr_array((20, 20))),
    similarity("not a number, similar", ("X", "NaN"), changed(A, (2, 2), np.nan)),
    similarity(
        "pairs that were never seen",
        ("NaN", "3 entries", "n_estimators", "max_samples", "affinity='partitions'"),
        changed(A, ([2, 3, 5], [3, 2, 7]), np.nan),
    ),
    similarity(
        "a pair not seen, sparse",
        ("NaN", "1 entry"),
        sp.csr_array(changed(A, (2, 3), np.nan)),
    ),
    similarity(
        "few similar samples", ("n_clusters=3", "n_samples=2"), A[:2, :2], n_clusters=3
    ),
]


@pytest.fixture(scope="module")
def earlier():
    return NMFConsensus(2, n_estimators=5, random_state=0).fit(X)


def kind_of(case):
    affinity = case.parameters.get("affinity")
    return affinity if affinity in ("partitions", "precomputed") else "features"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["features", "partitions", "precomputed"])
def test_bad_input_is_named_and_changes_nothing(kind, earlier):
    assert_all_refused([case for case in CASES if kind_of(case) == kind], earlier)


@pytest.mark.parametrize("affinity", ["coassociation", "partitions", "precomputed"])
def test_nothing_can_be_asked_before_fit(affinity):
    model = NMFConsensus(2, affinity=affinity)
    for use in (
        lambda: model.predict(X),
        lambda: model.transform(X),
        model.consensus_matrix,
        model.get_feature_names_out,
    ):
        with raises_naming(NotFittedError, "NMFConsensus"):
            use()


INPUTS = {"coassociation": X, "partitions": TABLE, "precomputed": A}


@pytest.fixture(scope="module", params=INPUTS)
def fitted(request):
    model = NMFConsensus(2, affinity=request.param, n_estimators=5, random_state=0)
    return model.fit(INPUTS[request.param]), INPUTS[request.param]


@pytest.mark.parametrize("method", ["predict", "transform"])
def test_new_samples_must_be_like_the_training_samples(fitted, method):
    model, data = fitted
    n = data.shape[1]
    for new, says in (
        (data[:, :-1], ("X", str(n - 1), str(n))),
        (
            np.column_stack([data, data[:, 0]]),
            ("X", str(n + 1), str(n)),
        ),
        (data[:0], "0 sample"),
        (data[0], "2D array"),
    ):
        with raises_naming(ValueError, says) as caught:
            getattr(model, method)(new)
        assert_in_our_words(caught)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("affinity", "new", "says", "error"),
    [
        ("coassociation", changed(X, 0, np.nan), ("X", "NaN"), ValueError),
        ("precomputed", -A, ("Negative", "X"), ValueError),
        ("precomputed", A * np.nan, ("X", "NaN"), ValueError),
        ("partitions", TABLE + 0.5, ("X[:, 0]", "0.5"), ValueError),
        ("partitions", np.full((2, 3), "a"), "X[:, 0]", TypeError),
        ("partitions", sp.csr_array(TABLE), ("X", "dense"), TypeError),
    ],
)
def test_new_samples_must_be_of_the_kind_of_the_affinity(affinity, new, says, error):
    model = NMFConsensus(2, affinity=affinity, n_estimators=5).fit(INPUTS[affinity])
    with raises_naming(error, says):
        model.predict(new)


def test_columns_of_a_frame_must_keep_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE, columns=["a", "b", "c"])
    model = NMFConsensus(2, affinity="partitions").fit(frame)
    with raises_naming(ValueError, "feature names"):
        model.predict(frame.rename(columns={"a": "z"}))


def test_indices_of_the_consensus_matrix_must_be_samples(fitted):
    model, _ = fitted
    for indices, says in (
        ([0, 20], "sample 20"),
        ([-21], "sample -21"),
        ([0.5], ("list", "[0.5]")),
        ([[0, 1]], "[[0, 1]]"),
        (["a"], "['a']"),
        (3, ("3", "[3]")),
        (np.ones(19, dtype=bool), ("mask", "20")),
    ):
        with raises_naming((ValueError, TypeError), says) as caught:
            model.consensus_matrix(indices)
        assert_in_our_words(caught)
