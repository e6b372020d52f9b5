"""What models read: similarities of objects to each other and of others to them, checked."""

import pickle
import weakref

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, clone
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from stack.shared import (
    NAN,
    SQUARE,
    STORAGES,
    NearestSample,
    blobs,
    features,
    marked,
    matrices,
    nan_in,
    without,
)

import nmfcluster.stack.reading
from nmfcluster import KernelStack, SimilarityStack
from nmfcluster.affinity import make_affinity
from nmfcluster.stack import cross_sources, square_sources
from nmfcluster.stack.features import FeatureReader, stack_reader, with_tags_of
from nmfcluster.stack.reading import SimilarityReader


@pytest.mark.parametrize(
    ("S", "message"),
    [
        (np.ones((3, 4)), r"X must hold .* shape \(n, n, L\).* got shape \(3, 4, 2\)"),
        (np.ones((0, 0)), r"got shape \(0, 0, 2\)"),
        (-SQUARE, r"source 1 \('b'\) of X must not be negative; its smallest entry is -1"),
        (sp.csr_array(-SQUARE), r"source 1 \('b'\) of X must not be negative"),
        (np.array([[1.0, np.inf], [np.inf, 1]]), r"source 1 \('b'\) of X must be finite"),
        (np.array([[1.0, 0.5], [0.4, 1]]), r"source 1 \('b'\) of X must be symmetric"),
        (sp.csr_array([[1.0, 0.5], [0, 1]]), r"source 1 \('b'\) of X must be symmetric"),
        (np.zeros((3, 3)), r"source 1 \('b'\) of X must hold a similarity above 0"),
        (sp.csr_array((3, 3)), r"source 1 \('b'\) of X must hold a similarity above 0"),
        (SQUARE * NAN, r"source 1 \('b'\) of X must have seen a sample"),
        (sp.csr_array(SQUARE * NAN), r"source 1 \('b'\) of X must have seen a sample"),
        (nan_in(SQUARE, 1), r"source 1 \('b'\) of X .* sample 1 is NaN in its row"),
        (nan_in(SQUARE, (slice(None), 2)), r"source 1 .* sample 2 is NaN in its column"),
        (sp.csr_array(nan_in(SQUARE, 1)), r"source 1 .* sample 1 is NaN in its row"),
        (without(np.zeros((3, 3)), 1), "source 1 .* must hold a similarity above 0"),
    ],
)
def test_what_cannot_be_fitted(S, message):
    first = np.ones(S.shape)
    with pytest.raises(ValueError, match=message):
        square_sources(SimilarityStack([first, S], names=["a", "b"]))
    with pytest.raises(
        ValueError, match=message.replace(" X ", " similarities ").replace("X", "s")
    ):
        square_sources(SimilarityStack([first, S], names=["a", "b"]), "similarities")


@pytest.mark.parametrize(
    ("S", "message"),
    [
        (np.ones((2, 3)), r"X .* to the 4 samples of fit, by 2 sources, .* got shape \(2, 3, 2\)"),
        (np.full((2, 4), -1e-3), r"source 1 \('b'\) of X must not be negative"),
        (np.full((2, 4), np.inf), r"source 1 \('b'\) of X must be finite"),
        (nan_in(np.ones((2, 4)), (slice(None), 2)), r"source 1 \('b'\) of X .* NaN in column 2"),
    ],
)
def test_what_cannot_be_predicted(S, message):
    known = np.ones((4, 2), dtype=bool)
    with pytest.raises(ValueError, match=message):
        cross_sources(SimilarityStack([np.ones(S.shape), S], names=["a", "b"]), 4, known)


def test_the_number_of_sources_is_that_of_fit():
    with pytest.raises(ValueError, match=r"by 1 sources, .* got shape \(2, 4, 2\)"):
        cross_sources(SimilarityStack(np.ones((2, 4, 2))), 4, np.ones((4, 1), dtype=bool))


@pytest.mark.parametrize("storage", STORAGES.values())
def test_new_samples_and_samples_that_were_missing_in_fit(storage):
    known = np.array([[True], [False], [True]])
    new = np.array([[0.5, NAN, 0.2], [NAN, NAN, NAN], [0.0, NAN, 1.0]])
    (source,), seen = cross_sources(SimilarityStack([storage(new)]), 3, known)
    assert_array_equal(seen[:, 0], [True, False, True])
    source = source.toarray() if sp.issparse(source) else source
    assert_array_equal(source, np.nan_to_num(new))
    nobody = SimilarityStack([storage(new)])[[]]
    assert cross_sources(nobody, 3, known)[1].shape == (0, 1)


# --- in scikit-learn -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cross_validation_cuts_both_axes(n_jobs):
    X, y = blobs(40)
    S = rbf_kernel(X)
    graph = make_affinity(X, n_neighbors=5).similarity.toarray()
    stack = SimilarityStack([S, marked(graph, 3, 11), without(rbf_kernel(X[:, 2:]), 0)])
    search = GridSearchCV(NearestSample(), {"first": [0.5, 1.0]}, cv=4, n_jobs=n_jobs)
    with joblib.parallel_config(backend="threading"):  # processes would take seconds to start
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
    """An estimator of several similarities that has few parameters for kernels."""

    def __init__(self, affinity="precomputed", gamma=None):
        self.affinity = affinity
        self.gamma = gamma

    def __sklearn_tags__(self):
        return with_tags_of(self.affinity, super().__sklearn_tags__())


def read(estimator, X, similarities=None):
    reader = stack_reader(estimator, None, None, None)
    return reader, reader.read(estimator, X, similarities)


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
    "beside features": lambda S: (np.zeros((7, 2)), SimilarityStack(S)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("chosen", [np.arange(7), np.array([0, 2, 3, 6])], ids=["all", "a part"])
def test_similarities_are_read_in_every_form(form, chosen):
    S, estimator = matrices(7), OtherPaper()
    whole = np.stack(S, axis=-1)
    reader, objects = read(estimator, *FORMS[form](S))
    assert isinstance(reader, SimilarityReader)
    assert reader.parameter == ("similarities" if form.startswith("beside") else "X")
    assert estimator.n_features_in_ == objects.shape[0] == 7
    stack = reader.fitted(objects, chosen)
    assert stack.names == reader.names == ("source0", "source1", "source2")
    assert_array_equal(stack.toarray(), whole[np.ix_(chosen, chosen)])
    rng = np.random.default_rng(0)
    weights, profile = rng.uniform(size=3), rng.uniform(size=(len(chosen), 2))
    numbers = np.array([5, 1, 1])
    cross = [np.asarray(source.todense() if sp.issparse(source) else source)
             for source in reader.cross(objects, numbers)]  # fmt: skip
    assert_array_equal(np.stack(cross, axis=-1), whole[np.ix_(numbers, chosen)])
    expected = literal_extension(whole[np.ix_(numbers, chosen)], weights, profile)
    assert_allclose(reader.extended(objects, numbers, weights, profile, list), expected, rtol=1e-12)
    new = reader.read_new(estimator, np.stack(matrices(4, 7, seed=1), axis=-1))
    expected = literal_extension(new.toarray()[:, chosen], weights, profile)
    rows = reader.extended(new, np.arange(4), weights, profile, list)
    assert_allclose(rows, expected, rtol=1e-12)


@pytest.mark.parametrize("chosen", [np.arange(20), np.arange(1, 20, 3)], ids=["all", "a part"])
def test_features_are_read_as_kernels(chosen):
    X, new, estimator = features(), features(5, seed=1), OtherPaper(["rbf", "linear"], gamma=0.7)
    X[chosen[1], 0] = NAN
    estimator.affinity = [("left", "rbf", [0]), ("right", "linear", [1, 2])]
    reader, objects = read(estimator, X)
    assert isinstance(reader, FeatureReader)
    assert reader.parameter == "affinity"
    assert estimator.n_features_in_ == 4
    stack = reader.fitted(objects, chosen)
    kernels = KernelStack(estimator.affinity, gamma=0.7)
    assert_array_equal(stack.toarray(), kernels.fit_transform(X[chosen]).toarray())
    assert stack.names == reader.names == ("left", "right")
    rng = np.random.default_rng(0)
    weights, profile = rng.uniform(size=2), rng.uniform(size=(len(chosen), 3))
    numbers = np.array([5, 1, 1])
    expected = literal_extension(kernels.transform(X[numbers]).toarray(), weights, profile)
    assert_allclose(reader.extended(objects, numbers, weights, profile, list), expected, rtol=1e-12)
    others = reader.read_new(estimator, new)
    expected = literal_extension(kernels.transform(new).toarray(), weights, profile)
    assert_allclose(
        reader.extended(others, np.arange(5), weights, profile, list), expected, rtol=1e-12
    )


def test_similarities_are_made_for_some_rows_at_a_time(monkeypatch):
    monkeypatch.setattr(nmfcluster.stack.reading, "_ROWS", 6)
    asked = []

    def kernel(A, B):
        asked.append((len(A), len(B)))
        return rbf_kernel(A, B)

    reader, objects = read(OtherPaper(kernel), features())
    reader.fitted(objects, np.arange(4))
    rows = reader.extended(objects, np.arange(13), np.ones(1), np.ones((4, 1)), list)
    assert asked == [(4, 4), (6, 4), (6, 4), (1, 4)]
    assert_allclose(rows[:, 0], rbf_kernel(features()[:13], features()[:4]).sum(axis=1))


class Array(np.ndarray):
    """An array that can be watched."""


@pytest.mark.parametrize("affinity", ["precomputed", "rbf"])
def test_a_reader_does_not_keep_the_objects(affinity):
    reader = stack_reader(OtherPaper(affinity), None, None, None)
    X = SimilarityStack(matrices(9)) if affinity == "precomputed" else features(9).view(Array)
    objects, gone = reader.read(OtherPaper(affinity), X, None), weakref.ref(X)
    n_sources = reader.fitted(objects, np.arange(3)).shape[2]
    reader.extended(objects, np.arange(9), np.ones(n_sources), np.eye(3), list)
    del X, objects
    assert gone() is None


def test_names_and_widths_of_new_similarities_are_those_of_the_fit():
    S, estimator = matrices(7), OtherPaper()
    reader, objects = read(estimator, SimilarityStack(S, names=["a", "b", "c"]))
    reader.fitted(objects, np.arange(7))
    unnamed = reader.read_new(estimator, SimilarityStack([s[:2] for s in S]))
    assert_array_equal(unnamed.toarray(), objects.toarray()[:2])
    for sources, names, says in [
        (S, ["c", "b", "a"], r"sources of fit, in their order, \('a', 'b', 'c'\); got \('c',"),
        ([s[:, :5] for s in S], None, "X has 5 columns, but OtherPaper was fitted to 7 objects"),
        ([s[:0] for s in S], None, r"X has 0 sample\(s\) .* required by OtherPaper"),
    ]:
        with pytest.raises(ValueError, match=says):
            reader.read_new(estimator, SimilarityStack(sources, names=names))


def test_kernels_that_are_refused_are_called_affinity():
    for affinity, says in [
        (["x"], r"affinity must be of \['nearest_neighbors'"),
        ([("a", "rbf", [9])], r"column 9 .* source 0 \('a'\) of affinity"),
    ]:
        reader, objects = read(OtherPaper(affinity), features())
        with pytest.raises(ValueError, match=says):
            reader.fitted(objects, np.arange(20))


@pytest.mark.parametrize("affinity", ["precomputed", "rbf", ["rbf"], rbf_kernel])
def test_tags_say_what_is_read(affinity):
    tags = get_tags(OtherPaper(affinity)).input_tags
    assert tags.sparse
    assert tags.pairwise == tags.positive_only == (affinity == "precomputed")
