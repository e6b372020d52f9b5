"""What models read: similarities of objects to each other and of others to them, checked."""

import pickle
import weakref

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from sklearn.base import BaseEstimator, clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from stack.shared import (
    NAN,
    NearestSample,
    blobs,
    features,
    marked,
    matrices,
    without,
)

import nmfcluster.stack.readers
from nmfcluster import KernelStack, SimilarityStack
from nmfcluster.affinity import make_affinity
from nmfcluster.stack.readers import read_objects

# --- in scikit-learn -----------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cross_validation_cuts_both_axes(n_jobs):
    X, y = blobs(40)
    S = rbf_kernel(X)
    graph = make_affinity(X, n_neighbors=5).similarity.toarray()
    stack = SimilarityStack([S, marked(graph, 3, 11), without(rbf_kernel(X[:, 2:]), 0)])
    search = GridSearchCV(NearestSample(), {"first": [0.5, 1.0]}, cv=4, n_jobs=n_jobs)
    # processes would take seconds to start
    with joblib.parallel_config(backend="threading"):
        search.fit(pickle.loads(pickle.dumps(stack)), y)  # as they would be given it
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_score_ > 0.8
    assert search.best_estimator_.sparse_ == [False, True, False]
    predicted = cross_val_predict(NearestSample(), stack, y, cv=4)
    assert (predicted == y).mean() > 0.8


def test_a_pipeline_splits_features():
    X, y = blobs(40)
    X[3, 2:] = NAN
    views = KernelStack([("all", "rbf", [0, 1]), ("part", "nearest_neighbors", [2, 3])])
    pipeline = make_pipeline(StandardScaler(), views, NearestSample())
    predicted = cross_val_predict(pipeline, X, y, cv=4)
    assert (predicted == y).mean() > 0.8
    model = clone(pipeline).fit(X[:30], y[:30])
    assert model[-1].sparse_ == [False, True]
    assert_array_equal(np.flatnonzero(~model[-1].seen_[:, 1]), [3])


# --- as an estimator reads them -------------------------------------------------------------------


class OtherPaper(BaseEstimator):
    """An estimator of several similarities."""

    symmetric, n_jobs, criterion = True, None, "kl"

    def __init__(self, affinity="precomputed", normalize=False):
        self.affinity = affinity
        self.normalize = normalize


def as_array(sources):
    """Return matrices as one array, whose last axis they are."""
    dense = [source.toarray() if sp.issparse(source) else source for source in sources]
    return np.stack(dense, axis=-1)


def as_it_is(source):
    return source


def extend(reader, objects, numbers, profile, mix):
    """Return the similarity of objects to clusters, of some at a time."""
    blocks = reader.compare_in_blocks(objects, numbers)
    return np.concatenate([mix(sources) @ profile for sources in blocks])


def mixed(weights):
    """Return a function that makes one matrix of several."""
    return lambda sources: sum(w * S for w, S in zip(weights, sources, strict=True))


def literal_extension(cross, weights, profile):
    """Return ``sum_l w_l S_l profile`` by loops, 0 for NaN."""
    rows = np.zeros((cross.shape[0], profile.shape[1]))
    for o, i, source in np.ndindex(*cross.shape):
        if not np.isnan(cross[o, i, source]):
            rows[o] += weights[source] * cross[o, i, source] * profile[i]
    return rows


FORMS = {
    "stack": lambda S: (SimilarityStack(S), None),
    "list": lambda S: (S, None),
    "array": lambda S: (np.stack(S, axis=-1), None),
    "sparse": lambda S: ([sp.csc_array(s) for s in S], None),
    "beside": lambda S: (None, S),
}


@pytest.mark.parametrize("form", FORMS)
def test_similarities_are_read_in_every_form(form):
    chosen = np.arange(7) if form == "stack" else np.array([0, 2, 3, 6])
    S, estimator = matrices(7), OtherPaper()
    whole = np.stack(S, axis=-1)
    reader, objects = read_objects(estimator, *FORMS[form](S), None)
    assert reader.n_features == objects.shape[0] == 7
    square = reader.compare_fitted(objects, chosen, as_it_is)
    seen = reader.seen
    assert reader.names == ("source0", "source1", "source2")
    assert_array_equal(as_array(square), whole[np.ix_(chosen, chosen)])
    assert seen.all()
    rng = np.random.default_rng(0)
    weights, profile = rng.uniform(size=3), rng.uniform(size=(len(chosen), 2))
    numbers = np.array([5, 1, 1])
    cross = reader.compare(objects, numbers)
    assert_array_equal(cross.toarray(), whole[np.ix_(numbers, chosen)])
    expected = literal_extension(whole[np.ix_(numbers, chosen)], weights, profile)
    assert_allclose(
        extend(reader, objects, numbers, profile, mixed(weights)), expected, rtol=1e-12
    )
    new = reader.read_new(estimator, np.stack(matrices(4, 7, seed=1), axis=-1))
    expected = literal_extension(new.toarray()[:, chosen], weights, profile)
    rows = extend(reader, new, np.arange(4), profile, mixed(weights))
    assert_allclose(rows, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "chosen", [np.arange(20), np.arange(1, 20, 3)], ids=["all", "a part"]
)
def test_features_are_read_as_kernels(chosen):
    X, new = features(), features(5, seed=1)
    X[chosen[1], 0] = NAN
    estimator = OtherPaper([("left", "rbf", [0]), ("right", "linear", [1, 2])])
    reader, objects = read_objects(estimator, X, None, None)
    assert reader.n_features == 4
    square = reader.compare_fitted(objects, chosen, as_it_is)
    seen = reader.seen
    kernels = KernelStack(estimator.affinity)
    expected = kernels.fit_transform(X[chosen])
    assert_array_equal(as_array(square), np.nan_to_num(expected.toarray()))
    assert_array_equal(seen, expected.seen())
    assert reader.names == ("left", "right")
    rng = np.random.default_rng(0)
    weights, profile = rng.uniform(size=2), rng.uniform(size=(len(chosen), 3))
    numbers = np.array([5, 1, 1])
    expected = literal_extension(
        kernels.transform(X[numbers]).toarray(), weights, profile
    )
    assert_allclose(
        extend(reader, objects, numbers, profile, mixed(weights)), expected, rtol=1e-12
    )
    others = reader.read_new(estimator, new)
    expected = literal_extension(kernels.transform(new).toarray(), weights, profile)
    assert_allclose(
        extend(reader, others, np.arange(5), profile, mixed(weights)),
        expected,
        rtol=1e-12,
    )


def correlation(A, B):
    return np.corrcoef(A, B)[: len(A), len(A) :]


@pytest.mark.parametrize("form", ["X", "beside", "kernel"])
def test_the_criterion_says_whether_similarities_can_be_negative(form):
    X = features(9) - 0.5
    S = np.corrcoef(X)
    given = {"X": (S, None), "beside": (None, [S]), "kernel": (X, None)}[form]
    label = {
        "X": ("Negative", "X", "OtherPaper"),
        "beside": ("'source0'", "X", "negative"),
        "kernel": ("kernel", "'correlation'", "X", "negative"),
    }[form]
    estimator = OtherPaper([correlation] if form == "kernel" else "precomputed")

    def read(criterion):
        estimator.criterion = criterion
        reader, objects = read_objects(estimator, *given, None)
        return reader, reader.compare_fitted(objects, np.arange(9), as_it_is)

    with raises_naming(ValueError, label, "criterion='agreement'", "numpy.maximum"):
        read("kl")
    reader, (square,) = read("agreement")
    assert reader.signed
    assert_allclose(square, S, atol=1e-12)
    new = reader.read_new(estimator, X[:3] if form == "kernel" else S[:3])
    (cross,) = reader.compare(new, np.arange(3)).filled()
    assert_allclose(cross, S[:3], atol=1e-12)
    reader.signed = False
    with raises_naming(ValueError, "negative"):
        reader.compare(new, np.arange(3))


def test_views_are_read_one_after_the_other():
    """What is kept of each is made before the next one is: all together can be large."""
    alive = []

    def count(source):
        alive.append(weakref.ref(source))
        return sum(one() is not None for one in alive)

    given = {name: features(9) for name in "abc"}
    reader, objects = read_objects(OtherPaper("rbf"), given, None, None)
    counts = reader.compare_fitted(objects, np.arange(9), count)
    assert len(counts) == 3
    assert max(counts) <= 2  # the last one is let go when the next one is there


def test_similarities_are_made_for_some_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(nmfcluster.stack.readers, "_BLOCK", 6)
    asked = []

    def kernel(A, B):
        asked.append((len(A), len(B)))
        return rbf_kernel(A, B)

    reader, objects = read_objects(OtherPaper(kernel), features(), None, None)
    reader.compare_fitted(objects, np.arange(4), as_it_is)
    rows = extend(reader, objects, np.arange(13), np.ones((4, 1)), mixed([1]))
    assert asked == [(4, 4), (6, 4), (6, 4), (1, 4)]
    assert_allclose(rows[:, 0], rbf_kernel(features()[:13], features()[:4]).sum(axis=1))


class Array(np.ndarray):
    """An array that can be watched."""


@pytest.mark.parametrize("affinity", ["precomputed", "rbf"])
def test_a_reader_does_not_keep_the_objects(affinity):
    X = (
        SimilarityStack(matrices(9))
        if affinity == "precomputed"
        else features(9).view(Array)
    )
    reader, objects = read_objects(OtherPaper(affinity), X, None, None)
    gone = weakref.ref(X)
    sources = reader.compare_fitted(objects, np.arange(3), as_it_is)
    extend(reader, objects, np.arange(9), np.eye(3), mixed(np.ones(len(sources))))
    del X, objects, sources
    assert gone() is None


def test_names_and_widths_of_new_similarities_are_those_of_the_fit():
    S, estimator = matrices(7), OtherPaper()
    reader, objects = read_objects(
        estimator, SimilarityStack(S, names=["a", "b", "c"]), None, None
    )
    reader.compare_fitted(objects, np.arange(7), as_it_is)
    unnamed = reader.read_new(estimator, SimilarityStack([s[:2] for s in S]))
    assert_array_equal(unnamed.toarray(), objects.toarray()[:2])
    for sources, names, says in [
        (S[:2], None, ("sources", "('source0', 'source1')")),
        (
            S,
            ["c", "b", "a"],
            ("sources", "('a', 'b', 'c')", "('c', 'b', 'a')"),
        ),
        (
            [s[:, :5] for s in S],
            None,
            ("X", "5", "columns", "OtherPaper", "7"),
        ),
        ([s[:0] for s in S], None, ("X", "0 sample")),
    ]:
        with raises_naming(ValueError, says):
            reader.read_new(estimator, SimilarityStack(sources, names=names))
