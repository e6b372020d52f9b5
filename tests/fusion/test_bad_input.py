"""What SimilarityFusionNMF refuses, and what it says: the parameter, and what is wrong with it."""

import numpy as np
import pandas as pd
import pytest
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
from sklearn.model_selection import GridSearchCV, cross_val_predict

from nmfcluster import SimilarityFusionNMF, SimilarityStack

rng = np.random.RandomState(0)
X = np.concatenate([rng.normal(0, 1, (12, 4)), rng.normal(9, 1, (8, 4))])
A, B = rbf_kernel(X, gamma=0.02), rbf_kernel(X[:, :2], gamma=0.02)
BOTH = np.stack([A, B], axis=-1)


def model(**parameters):
    return SimilarityFusionNMF(
        **{"n_clusters": 2, "n_init": 1, "random_state": 0} | parameters
    )


def sources(name, says, similarities, error=ValueError, X=None, **parameters):
    return Case(name, says, X, {"similarities": similarities}, parameters, error)


def similarity(name, says, X=BOTH, error=ValueError, **parameters):
    return Case(name, says, X, {}, parameters, error)


def features(name, says, X=X, error=ValueError, **parameters):
    return Case(name, says, X, {}, {"affinity": "rbf"} | parameters, error)


FIRST = np.arange(20) < 10
LAST = ~FIRST
FIRST, LAST = (half[:, None] | half for half in (FIRST, LAST))


def constant(value):
    return lambda X, Y: np.full((len(X), len(Y)), value)


SECOND = "'source1'"
SQUARE = "(n, n, L)"

CASES = [
    # sources
    sources("one entry is NaN", (SECOND, "NaN", "row 3", "column 2"),
            [A, changed(B, (3, 2), np.nan)]),
    sources("all is NaN", (SECOND, "NaN", "sample"),
            [A, np.full((20, 20), np.nan)]),
    sources("a row is NaN, its column is not", ("symmetric", "sample 3", "NaN"),
            [changed(A, 3, np.nan)]),
    sources("infinity", (SECOND, "infinity"),
            [A, changed(B, (3, 2), np.inf)]),
    sources("negative", (SECOND, "negative", "-1"),
            [A, changed(changed(B, (3, 2), -1), (2, 3), -1)], criterion="kl"),
    sources("negated distances", (SECOND, "above 0", "distances"),
            [A, B - 1]),
    sources("not symmetric", (SECOND, "symmetric"), [A, changed(B, (3, 2), 5)]),
    sources("not square", ("similarities", SQUARE, "(20, 5, 2)"), [A[:, :5], B[:, :5]]),
    similarity("features", ("X", SQUARE, "(20, 2, 1)", "affinity"), X=A[:, :2]),
    sources("all are 0", (SECOND, "above 0"), [A, 0 * B]),
    sources("of several sizes", (SECOND, "(5, 5)", "(20, 20)"), [A, B[:5, :5]]),
    sources("beside X", ("X", "similarities", "None"), [A, B], X=X),
    sources("one sample", "n_samples=1", [A[:1, :1]], n_clusters=1),
    sources("too large to be summed", (SECOND, "float64"), [A, B * 1e307]),
    sources("too large for float32", ("'source0'", "float32", "scale"),
            [(A * 1e37).astype(np.float32)], criterion="kl"),
    sources("weights of two sources for one", ("weights", "[1, 2]"),
            [A], weights=[1, 2]),
    sources("weights that are no numbers", ("'weights'", "'all'"), [A, B], weights="all"),
    sources("objects that no source joins", ("10 objects", "['source0']", "['source1']"),
            [changed(A, FIRST, np.nan), changed(B, LAST, np.nan)]),
    sources("a criterion that was", ("'criterion'", "'relative'"), [A, B], criterion="relative"),
    # similarities as X
    similarity("nothing", ("X", "None"), None),
    similarity("no source in an array", ("sources", "similarity matrix"), BOTH[:, :, :0],
               TypeError),
    similarity("no object in an array", (SQUARE, "(0, 20, 2)"), BOTH[:0]),
    similarity("infinity in X", ("X", "infinity"), changed(A, (3, 2), np.inf)),
    similarity("negative X", ("Negative", "X"), -A, criterion="kl"),
    similarity("negative X throughout", ("0", "-1", "distances"), -A),
    similarity("four axes", ("shape", "(n, m, L)", "(20, 20, 2, 1)"),
               BOTH[..., None], TypeError),
    similarity("a vector as X", "2D array", A[0]),
    similarity("X not square", ("X", SQUARE, "(20, 5, 1)"), A[:, :5]),
    similarity("wide X, of which a part is square", ("X", SQUARE, "(20, 40, 1)"),
               np.hstack([A, A]), max_samples=10),
    # parameters
    similarity("eta below 0", ("'eta'", "-1"), eta=-1),
    similarity("unknown criterion", ("'criterion'", "'l2'"), criterion="l2"),
    similarity("symmetric in words", ("'symmetric'", "'no'"), symmetric="no"),
    similarity("no share of the objects", ("'max_samples'", "0.0"), max_samples=0.0),
    similarity("more objects than there are", ("max_samples=21", "20"),
               max_samples=21),
    similarity("fewer objects than clusters", ("max_samples=2", "n_clusters=3"),
               max_samples=2, n_clusters=3),
    similarity("a share below the clusters", ("max_samples=0.1", "n_clusters=3", "2"),
               max_samples=0.1, n_clusters=3),
    similarity("more clusters than objects", ("n_clusters=21", "n_samples=20"), n_clusters=21),
    # features
    features("no features", ("X", "None"), None),
    features("a stack of similarities as features", ("dim 3", "SimilarityFusionNMF"), BOTH),
    features("unknown kernel", ("'affinity'", "'polynomial'"), affinity="polynomial"),
    features("precomputed among kernels", "'precomputed'", affinity=["precomputed", "rbf"]),
    features("no kernel", "kernels", affinity=[]),
    features("a pair for a triple", ("triples", "('a', 'rbf')"), affinity=[("a", "rbf")],
             error=TypeError),
    features("a column that is not there", ("9", "'a'", "4"),
             affinity=[("a", "rbf", [9])]),
    features("a name that the data frame has not", ("'v'", "'z'", "'a'", "'b'"),
             pd.DataFrame(X, columns=list("abcd")), affinity=[("v", "rbf", ["a", "z"])]),
    features("negative kernel", ("negative", "-1"),
             affinity=constant(-1.0), criterion="kl"),
    features("negative kernel, where it can be", ("above 0", "smallest"),
             affinity=constant(-1.0)),
    features("products of features around 0", ("'linear'", "negative"),
             X - 5, affinity="linear", criterion="kl"),
    features("kernel of 0", "above 0", affinity=constant(0.0)),
    features("kernel that is not symmetric", "symmetric",
             affinity=lambda X, Y: np.ones((len(X), 1)) * np.arange(1, len(Y) + 1)),
    features("normalise in words", ("'normalize'", "'yes'"), normalize="yes"),
]  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    return model().fit([A, B])


@pytest.mark.sampled(2)
@parametrize(CASES)
def test_bad_input_is_named_and_changes_nothing(case, fitted):
    assert_refused(case, fitted)


# --- new objects ---------------------------------------------------------------------------------

NEW = [
    ("nothing", None, "None"),
    ("a source is missing", SimilarityStack([A]), ("('source0', 'source1')", "('source0',)")),
    ("a source too many", [A, B, B], "('source0', 'source1', 'source2')"),
    ("too few columns", [A[:, :5], B[:, :5]], ("X", "5", "columns", "20")),
    ("too many columns", SimilarityStack([np.hstack([A, A])] * 2), ("X", "40", "columns", "20")),
    ("sources in the first axis", np.moveaxis(BOTH, 2, 0), "sources"),
    ("of several lengths", [A, B[:3]], ("'source1'", "shape")),
    ("infinite", [A, changed(B, (0, 1), np.inf)], ("'source1'", "X", "finite")),
    ("NaN in part", [A, changed(B, (0, 1), np.nan)], ("source1", "NaN", "0", "1")),
    ("NaN in a column that fit had seen", [A, changed(B, (slice(None), 1), np.nan)],
     ("'source1'", "X", "NaN", "1")),
    ("no objects in a stack", SimilarityStack([A[:0], B[:0]]), "0 sample"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("new", "says"), [case[1:] for case in NEW], ids=[c[0] for c in NEW]
)
def test_new_similarities_must_be_those_to_the_objects_of_fit(fitted, new, says):
    for method in (fitted.predict, fitted.transform):
        with raises_naming(ValueError, says) as caught:
            method(new)
        assert_in_our_words(caught)


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (None, "None"),
        (X[:, :2], ("X", "2", "features", "SimilarityFusionNMF", "4")),
        (BOTH, "dim 3"),
    ],
    ids=["nothing", "narrower", "a stack"],
)
def test_new_features_must_be_like_those_of_fit(new, says):
    with raises_naming(ValueError, says) as caught:
        model(affinity="rbf").fit(X).predict(new)
    assert_in_our_words(caught)


def test_new_similarities_can_be_negative_where_those_of_fit_can(fitted):
    assert (fitted.predict([A, -B]) == fitted.predict([A, 0 * B])).all()
    with raises_naming(ValueError, "'source1'", "X", "negative"):
        model(criterion="kl").fit([A, B]).predict([A, -B])


def test_a_part_needs_the_columns_of_all_objects():
    part = model(max_samples=10).fit([A, B])
    chosen = part.sample_indices_
    assert part.predict([A[:3], B[:3]]).shape == (3,)
    with raises_naming(ValueError, "X", "10", "20"):
        part.predict([A[:, chosen], B[:, chosen]])


@pytest.mark.parametrize("method", ["predict", "transform"])
def test_nothing_can_be_asked_before_fit(method):
    for affinity in ("precomputed", "rbf"):
        with raises_naming(NotFittedError, "SimilarityFusionNMF"):
            getattr(model(affinity=affinity), method)(A)


def test_a_kernel_that_is_negative_between_new_samples_and_old():
    def kernel(X, Y):
        return (
            np.ones((len(X), len(Y)))
            if len(X) == len(Y)
            else -np.ones((len(X), len(Y)))
        )

    model_of_ones = model(n_clusters=1, affinity=kernel, criterion="kl").fit(X)
    with raises_naming(ValueError, "'kernel'", "negative", "-1"):
        model_of_ones.predict(X[:3])


# --- cross-validation ----------------------------------------------------------------------------


def score(estimator, X, y=None):
    return float(len(estimator.predict(X)))


@pytest.mark.parametrize(
    ("X", "given", "says"),
    [
        ([A, B], {}, "arrays"),
        (X, {"similarities": [A, B]}, ("X", "square")),
        (
            A,
            {"similarities": [A, B]},
            ("X", "SimilarityStack"),
        ),
    ],
    ids=["a list as X", "a list besides features", "a list besides a similarity"],
)
def test_cross_validation_cannot_split_lists(X, given, says):
    search = GridSearchCV(
        model(), {"eta": [0.1, 1]}, scoring=score, cv=2, error_score="raise"
    )
    with raises_naming(ValueError, says):
        search.fit(X, **given)


def test_cross_validation_splits_a_stack():
    labels = cross_val_predict(model(), SimilarityStack([A, B]), cv=2)
    assert labels.shape == (20,)
    search = GridSearchCV(
        model(), {"eta": [0.1, 1]}, scoring=score, cv=2, error_score="raise"
    )
    assert search.fit(BOTH).best_score_ == 10
