"""What SimilarityFusionNMF refuses, and what it says: the parameter, and what is wrong with it."""

import re

import numpy as np
import pandas as pd
import pytest
from refusals import Case, assert_in_our_words, assert_refused, changed, parametrize
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


SECOND = "source 'source1'"
SQUARE = r"\(n, n, L\) with the L sources in the last axis, got shape"

CASES = [
    # sources
    sources("one entry is NaN", rf"{SECOND} .*NaN in row 3, column 2",
            [A, changed(B, (3, 2), np.nan)]),
    sources("all is NaN", rf"{SECOND} .*must have seen a sample; all of it is NaN",
            [A, np.full((20, 20), np.nan)]),
    sources("a row is NaN, its column is not", r"symmetric: sample 3 is NaN in its row",
            [changed(A, 3, np.nan)]),
    sources("infinity", rf"{SECOND} .*must be finite; it holds infinity",
            [A, changed(B, (3, 2), np.inf)]),
    sources("negative", rf"{SECOND} .*must not be negative; its smallest entry is -1",
            [A, changed(changed(B, (3, 2), -1), (2, 3), -1)], criterion="kl"),
    sources("negated distances", rf"{SECOND} .*above 0; .*negated distances -D need a kernel",
            [A, B - 1]),
    sources("not symmetric", rf"{SECOND} .*must be symmetric", [A, changed(B, (3, 2), 5)]),
    sources("not square", rf"similarities, .*{SQUARE} \(20, 5, 2\)", [A[:, :5], B[:, :5]]),
    similarity("features", rf"^X, or .*{SQUARE} \(20, 2, 1\).*another affinity", X=A[:, :2]),
    sources("all are 0", rf"{SECOND} .*must hold a similarity above 0", [A, 0 * B]),
    sources("of several sizes", rf"one shape: {SECOND} .*\(5, 5\).*\(20, 20\)", [A, B[:5, :5]]),
    sources("beside X", "stand for each other: two of them must be None", [A, B], X=X),
    sources("one sample", "n_samples=1: at least 2", [A[:1, :1]], n_clusters=1),
    sources("too large to be summed", rf"{SECOND} .*sum .*float64.*; scale it", [A, B * 1e307]),
    sources("too large for float32", r"'source0' .*sum .*float32.*; scale it",
            [(A * 1e37).astype(np.float32)], criterion="kl"),
    sources("weights of two sources for one", r"weights must be one number for each .*got \[1, 2\]",
            [A], weights=[1, 2]),
    sources("weights that are no numbers", r"'weights' .*Got 'all'", [A, B], weights="all"),
    sources("objects that no source joins", r"10 objects in \['source[01]'\] and 10 objects in",
            [changed(A, FIRST, np.nan), changed(B, LAST, np.nan)]),
    sources("a criterion that was", r"'criterion' .*Got 'relative'", [A, B], criterion="relative"),
    # similarities as X
    similarity("nothing", "X must be one table of numbers, got None", None),
    similarity("no source in an array", "at least one similarity matrix", BOTH[:, :, :0],
               TypeError),
    similarity("no object in an array", rf"{SQUARE} \(0, 20, 2\)", BOTH[:0]),
    similarity("infinity in X", "X contains infinity", changed(A, (3, 2), np.inf)),
    similarity("negative X", "Negative values in data passed to X", -A, criterion="kl"),
    similarity("negative X throughout", "above 0; its smallest entry is -1: negated distances", -A),
    similarity("four axes", r"array of shape \(n, m, L\).*got shape \(20, 20, 2, 1\)",
               BOTH[..., None], TypeError),
    similarity("a vector as X", "Expected 2D array", A[0]),
    similarity("X not square", rf"^X, or .*{SQUARE} \(20, 5, 1\)", A[:, :5]),
    similarity("wide X, of which a part is square", rf"^X, or .*{SQUARE} \(20, 40, 1\)",
               np.hstack([A, A]), max_samples=10),
    # parameters
    similarity("eta below 0", "'eta' .*Got -1", eta=-1),
    similarity("unknown criterion", "'criterion' .*Got 'l2'", criterion="l2"),
    similarity("symmetric in words", "'symmetric' .*Got 'no'", symmetric="no"),
    similarity("no share of the objects", "'max_samples' .*Got 0.0", max_samples=0.0),
    similarity("more objects than there are", "max_samples=21 .*at most all 20",
               max_samples=21),
    similarity("fewer objects than clusters", "max_samples=2 .*n_clusters=3",
               max_samples=2, n_clusters=3),
    similarity("a share below the clusters", "max_samples=0.1 .*n_clusters=3.*got 2",
               max_samples=0.1, n_clusters=3),
    similarity("more clusters than objects", "n_clusters=21 .*n_samples=20", n_clusters=21),
    # features
    features("no features", "X must be one table of numbers, got None", None),
    features("a stack of similarities as features", "dim 3.*SimilarityFusionNMF", BOTH),
    features("NaN in part of a view", r"'rbf'.*NaN in some features of sample 3",
             changed(X, (3, 2), np.nan)),
    features("unknown kernel", "'affinity' .*Got 'polynomial'", affinity="polynomial"),
    features("precomputed among kernels", "got 'precomputed'", affinity=["precomputed", "rbf"]),
    features("no kernel", "at least one kernel", affinity=[]),
    features("a pair for a triple", r"triples.*\('a', 'rbf'\)", affinity=[("a", "rbf")],
             error=TypeError),
    features("a column that is not there", "column 9 .*'a' .*has 4",
             affinity=[("a", "rbf", [9])]),
    features("a name that the data frame has not", "'v' .*'z'; .*'a', 'b'",
             pd.DataFrame(X, columns=list("abcd")), affinity=[("v", "rbf", ["a", "z"])]),
    features("negative kernel", "must not be negative; its smallest entry is -1",
             affinity=constant(-1.0), criterion="kl"),
    features("negative kernel, where it can be", "must hold a similarity above 0; its smallest",
             affinity=constant(-1.0)),
    features("products of features around 0", "'linear'.*must not be negative",
             X - 5, affinity="linear", criterion="kl"),
    features("kernel of 0", "must hold a similarity above 0", affinity=constant(0.0)),
    features("kernel that is not symmetric", "must be symmetric",
             affinity=lambda X, Y: np.ones((len(X), 1)) * np.arange(1, len(Y) + 1)),
    features("normalise in words", "'normalize' .*Got 'yes'", normalize="yes"),
]  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    return model().fit([A, B])


@parametrize(CASES)
def test_bad_input_is_named_and_changes_nothing(case, fitted):
    assert_refused(case, fitted)


# --- new objects ---------------------------------------------------------------------------------

NEW = [
    ("nothing", None, "got None"),
    ("a source is missing", SimilarityStack([A]), r"of fit, .*'source1'\); got \('source0',\)"),
    ("a source too many", [A, B, B], r"of fit, .*'source1'\); got .*'source2'\)"),
    ("too few columns", [A[:, :5], B[:, :5]], "X has 5 columns.*fitted to 20 objects"),
    ("too many columns", SimilarityStack([np.hstack([A, A])] * 2), "X has 40 columns.*20 objects"),
    ("sources in the first axis", np.moveaxis(BOTH, 2, 0), "sources of fit"),
    ("of several lengths", [A, B[:3]], "one shape.*source1"),
    ("infinite", [A, changed(B, (0, 1), np.inf)], "'source1' of X must be finite"),
    ("NaN in part", [A, changed(B, (0, 1), np.nan)], "source1.*NaN in row 0, column 1"),
    ("NaN in a column that fit had seen", [A, changed(B, (slice(None), 1), np.nan)],
     "'source1' of X holds NaN in column 1"),
    ("no objects in a stack", SimilarityStack([A[:0], B[:0]]), r"0 sample\(s\)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("new", "says"), [case[1:] for case in NEW], ids=[c[0] for c in NEW]
)
def test_new_similarities_must_be_those_to_the_objects_of_fit(fitted, new, says):
    for method in (fitted.predict, fitted.transform):
        with pytest.raises(ValueError, match=re.compile(says, re.S)) as caught:
            method(new)
        assert_in_our_words(caught)


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (None, "got None"),
        (X[:, :2], "X has 2 features, but SimilarityFusionNMF is expecting 4"),
        (BOTH, "dim 3"),
        (changed(X, (3, 2), np.nan), "NaN in some features of sample 3"),
    ],
    ids=["nothing", "narrower", "a stack", "NaN"],
)
def test_new_features_must_be_like_those_of_fit(new, says):
    with pytest.raises(ValueError, match=says) as caught:
        model(affinity="rbf").fit(X).predict(new)
    assert_in_our_words(caught)


def test_new_similarities_can_be_negative_where_those_of_fit_can(fitted):
    assert (fitted.predict([A, -B]) == fitted.predict([A, 0 * B])).all()
    with pytest.raises(ValueError, match="source 'source1' of X must not be negative"):
        model(criterion="kl").fit([A, B]).predict([A, -B])


def test_a_part_needs_the_columns_of_all_objects():
    part = model(max_samples=10).fit([A, B])
    chosen = part.sample_indices_
    assert part.predict([A[:3], B[:3]]).shape == (3,)
    with pytest.raises(ValueError, match=r"X has 10 columns.*fitted to 20 objects"):
        part.predict([A[:, chosen], B[:, chosen]])


@pytest.mark.parametrize("method", ["predict", "transform"])
def test_nothing_can_be_asked_before_fit(method):
    for affinity in ("precomputed", "rbf"):
        with pytest.raises(
            NotFittedError, match="SimilarityFusionNMF instance is not fitted"
        ):
            getattr(model(affinity=affinity), method)(A)


def test_a_kernel_that_is_negative_between_new_samples_and_old():
    def kernel(X, Y):
        return (
            np.ones((len(X), len(Y)))
            if len(X) == len(Y)
            else -np.ones((len(X), len(Y)))
        )

    model_of_ones = model(n_clusters=1, affinity=kernel, criterion="kl").fit(X)
    with pytest.raises(
        ValueError, match=r"'kernel'.*must not be negative; its smallest entry is -1"
    ):
        model_of_ones.predict(X[:3])


# --- cross-validation ----------------------------------------------------------------------------


def score(estimator, X, y=None):
    return float(len(estimator.predict(X)))


@pytest.mark.parametrize(
    ("X", "given", "says"),
    [
        ([A, B], {}, "have to be passed as arrays"),
        (X, {"similarities": [A, B]}, "X should be a square kernel matrix"),
        (
            A,
            {"similarities": [A, B]},
            "Cross-validation splits X alone: .*SimilarityStack",
        ),
    ],
    ids=["a list as X", "a list besides features", "a list besides a similarity"],
)
def test_cross_validation_cannot_split_lists(X, given, says):
    search = GridSearchCV(
        model(), {"eta": [0.1, 1]}, scoring=score, cv=2, error_score="raise"
    )
    with pytest.raises(ValueError, match=says):
        search.fit(X, **given)


def test_cross_validation_splits_a_stack():
    labels = cross_val_predict(model(), SimilarityStack([A, B]), cv=2)
    assert labels.shape == (20,)
    search = GridSearchCV(
        model(), {"eta": [0.1, 1]}, scoring=score, cv=2, error_score="raise"
    )
    assert search.fit(BOTH).best_score_ == 10
