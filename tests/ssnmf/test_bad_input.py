"""What SSNMFClusterer refuses, and what it says: the parameter or pair, and what is allowed."""

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import (
    Case,
    assert_in_our_words,
    assert_refused,
    changed,
    parametrize,
    raises_naming,
)
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import PairwiseConstraints, SSNMFClusterer

rng = np.random.RandomState(0)
X = np.concatenate([rng.normal(2, 0.3, (12, 4)), rng.normal(9, 0.3, (8, 4))])
A = rbf_kernel(X, gamma=0.05)
PAIRS = PairwiseConstraints(20, [(0, 1)], [(0, 19)])


def pairs(name, says, must=None, cannot=None, error=ValueError, **parameters):
    return Case(
        name, says, X, {"must_link": must, "cannot_link": cannot}, parameters, error
    )


def container(name, says, constraints, error=ValueError, **arguments):
    return Case(name, says, X, {"constraints": constraints} | arguments, {}, error)


def parameter(name, says, **parameters):
    return Case(name, says, X, {"constraints": PAIRS}, parameters)


def features(name, says, X, **parameters):
    return Case(name, says, X, {}, parameters)


def computed(name, says, affinity):
    return Case(name, says, X, {}, {"affinity": affinity})


square = sp.csr_array(([1.0, 1.0], ([0, 1], [1, 0])), shape=(20, 20))

CASES = [
    # pairs, whose reading is tested with the container
    pairs(
        "past the samples",
        ("must_link", "20", "n_samples=20", "constraints="),
        [(0, 20)],
    ),
    pairs(
        "a matrix of other samples",
        ("must_link", "(20, 20)", "(19, 19)"),
        square[:19, :19],
    ),
    pairs("a negative entry", ("cannot_link", "weights", "-1.0"), None, -square),
    pairs("apart from itself", ("cannot_link", "(4, 4)"), None, [(4, 4)]),
    pairs(
        "the container as pairs",
        ("PairwiseConstraints", "must_link"),
        PAIRS,
        error=TypeError,
    ),
    # the container
    container(
        "of other samples",
        ("constraints", "19", "X", "20"),
        PairwiseConstraints(19),
    ),
    container(
        "a list",
        ("constraints", "PairwiseConstraints", "list", "must_link"),
        [(0, 1)],
        TypeError,
    ),
    container(
        "labels",
        ("constraints", "PairwiseConstraints", "ndarray"),
        np.zeros(20),
        TypeError,
    ),
    container("a pair of lists", ("constraints", "tuple"), ([(0, 1)], []), TypeError),
    container(
        "with must-links besides",
        ("constraints", "must_link"),
        PAIRS,
        must_link=[(0, 1)],
    ),
    container(
        "with cannot-links besides",
        ("constraints", "cannot_link"),
        PAIRS,
        cannot_link=[(0, 19)],
    ),
    # contradictions
    pairs(
        "a pair of both kinds",
        ("0", "1", "0-1"),
        [(0, 1)],
        [(1, 0)],
    ),
    pairs("a chain", ("2", "7", "2-5-7"), [(5, 2), (7, 5)], [(2, 7)]),
    pairs(
        "an odd cycle",
        ("n_clusters=2", "cycle"),
        None,
        [(0, 1), (1, 2), (2, 0)],
    ),
    pairs(
        "too many apart",
        ("n_clusters=3", "0", "1", "2", "3"),
        None,
        [(i, j) for i in range(4) for j in range(i)],
        n_clusters=3,
    ),
    pairs("apart in one cluster", "n_clusters=1", None, [(0, 1)], n_clusters=1),
    # parameters
    parameter("no cluster", ("'n_clusters'", "0"), n_clusters=0),
    parameter(
        "more clusters than samples", ("n_clusters=21", "n_samples=20"), n_clusters=21
    ),
    parameter("a reward below zero", ("'alpha'", "-1"), alpha=-1),
    parameter("pairs that spread to everybody", ("'propagation'", "1"), propagation=1),
    parameter("pairs that spread to nobody", ("'propagation'", "0.0"), propagation=0.0),
    parameter("no number for how far", ("'propagation'", "nan"), propagation=np.nan),
    parameter("a word for how far", ("'propagation'", "'wide'"), propagation="wide"),
    parameter("an infinite penalty", ("'beta'", "inf"), beta=np.inf),
    parameter("a word for hard", ("'hard_must_link'", "'yes'"), hard_must_link="yes"),
    parameter(
        "unknown contradictions", ("'contradictions'", "'fix'"), contradictions="fix"
    ),
    parameter(
        "an unknown affinity", ("'affinity'", "'cosine'", "'knn'"), affinity="knn"
    ),
    parameter("no affinity", ("'affinity'", "None"), affinity=None),
    parameter("no width", ("'gamma'", "0"), gamma=0),
    parameter("no neighbours", ("'n_neighbors'", "0"), n_neighbors=0),
    parameter("a word for normalised", ("'normalize'", "'yes'"), normalize="yes"),
    parameter(
        "an unknown factorization", ("'factorization'", "'semi'"), factorization="semi"
    ),
    parameter("no starts", ("'n_init'", "0"), n_init=0),
    parameter("no updates", ("'max_iter'", "0"), max_iter=0),
    parameter("a word for a seed", ("'random_state'", "'x'"), random_state="x"),
    # features and similarities
    features("no samples", "0 sample", X[:0]),
    features("one sample", "n_samples=1", X[:1], n_clusters=1),
    features("a vector", "2D array", X[:, 0]),
    features("not a number", ("X", "NaN"), changed(X, (3, 2), np.nan)),
    features(
        "infinity, sparse",
        ("X", "infinity"),
        sp.csr_array(changed(X, (3, 2), np.inf)),
    ),
    features("complex numbers", "Complex data", X.astype(complex)),
    features(
        "not square", ("X", "square", "(20, 19)"), A[:, :19], affinity="precomputed"
    ),
    features("not symmetric", ("X", "symmetric"), np.triu(A), affinity="precomputed"),
    features(
        "nothing similar",
        ("X", "0"),
        np.zeros((20, 20)),
        affinity="precomputed",
    ),
    features(
        "dissimilar in sum",
        ("normalize=True", "row"),
        -A,
        affinity="precomputed",
        normalize=True,
    ),
    features(
        "only zeros, linear", "similarities", np.zeros((20, 4)), affinity="linear"
    ),
    features(
        "only zeros, cosine", "similarities", np.zeros((20, 4)), affinity="cosine"
    ),
    features("only zeros, many", "similarities", np.zeros((400, 4)), affinity="linear"),
    features(
        "alike only to themselves",
        "similarities",
        np.eye(20),
        affinity="precomputed",
        normalize=True,
    ),
    # what a callable returns
    computed(
        "a narrow result",
        ("affinity", "(20, 20)", "(20, 19)"),
        lambda X, Y: A[:, :19],
    ),
    computed(
        "a list as the result",
        ("affinity", "(20, 20)", "list"),
        lambda X, Y: A.tolist(),
    ),
    computed("nothing as the result", ("affinity", "NoneType"), lambda X, Y: None),
    computed("a result of NaN", "affinity", lambda X, Y: changed(A, (0, 0), np.nan)),
    computed("an infinite result", "affinity", lambda X, Y: changed(A, (0, 0), np.inf)),
    computed(
        "a result that is not symmetric",
        ("affinity", "symmetric"),
        lambda X, Y: np.triu(A),
    ),
    computed("a complex result", "affinity", lambda X, Y: A * 1j),
    computed("zeros as the result", "similarities", lambda X, Y: 0 * A),
]


@pytest.fixture(scope="module")
def earlier():
    return SSNMFClusterer(2, random_state=0).fit(X, constraints=PAIRS)


@pytest.mark.sampled(2)
@parametrize(CASES)
def test_bad_input_is_named_and_changes_nothing(case, earlier):
    assert_refused(case, earlier)


@pytest.mark.parametrize(
    "use",
    [
        lambda model: model.predict(X),
        lambda model: model.transform(X),
        lambda model: model.get_feature_names_out(),
    ],
    ids=["predict", "transform", "get_feature_names_out"],
)
def test_nothing_can_be_asked_before_fit(use):
    with raises_naming(NotFittedError, "SSNMFClusterer"):
        use(SSNMFClusterer(2))


AFFINITIES = ["nearest_neighbors", "precomputed"]


@pytest.fixture(scope="module", params=AFFINITIES)
def fitted(request):
    data = A if request.param == "precomputed" else X
    return SSNMFClusterer(2, affinity=request.param, random_state=0).fit(data), data


@pytest.mark.filterwarnings(
    "ignore:.*found 1 cluster:sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.parametrize(
    ("new", "says"),
    [
        (
            lambda X: X[:, :-1],
            ("X", "{fewer}", "{n}"),
        ),
        (
            lambda X: np.column_stack([X, X[:, 0]]),
            ("X", "{more}", "{n}"),
        ),
        (lambda X: X[:0], ["0 sample"]),
        (lambda X: X[0], ["2D array"]),
        (lambda X: changed(X, (0, 0), np.nan), ("X", "NaN")),
        (lambda X: sp.csr_array(changed(X, (0, 0), np.inf)), ("X", "infinity")),
    ],
    ids=["narrower", "wider", "no samples", "a vector", "NaN", "infinity, sparse"],
)
def test_new_samples_must_be_like_the_training_samples(fitted, new, says):
    model, data = fitted
    n = data.shape[1]
    for method in (model.predict, model.transform):
        numbers = {"fewer": n - 1, "n": n, "more": n + 1}
        names = [name.format(**numbers) for name in says]
        with raises_naming(ValueError, *names) as caught:
            method(new(data))
        assert_in_our_words(caught)


def test_a_callable_must_return_as_many_columns_as_training_samples():
    model = SSNMFClusterer(
        2, affinity=lambda X, Y: rbf_kernel(X, X), random_state=0
    ).fit(X)
    with raises_naming(ValueError, "affinity", "(3, 20)", "(3, 3)") as caught:
        model.predict(X[:3])
    assert_in_our_words(caught)
