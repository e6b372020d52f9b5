"""Kernels of features that fill a stack."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from sklearn import set_config
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import cosine_similarity, laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_checks
from stack.shared import (
    NAN,
    NearestSample,
    blobs,
    cross_sources,
    dense,
    features,
    nan_in,
    square_sources,
)
from threadpoolctl import threadpool_limits

from nmfcluster import KernelStack, SimilarityStack
from nmfcluster.affinity import make_affinity

KERNELS = ["linear", "cosine", "rbf", "nearest_neighbors", laplacian_kernel, RBF(0.5)]


@pytest.mark.parametrize(
    ("form", "normalize"), [(np.asarray, True), (sp.csr_array, False)]
)
def test_a_source_is_the_affinity_of_its_view(form, normalize):
    X, new = features(), features(6, seed=1)
    columns = [None, [0, 2], slice(1, 3), np.array([True, False, False, True])]
    kernels = KERNELS[:4] if form is not np.asarray else KERNELS
    triples = [
        (f"{i}", kernel, c)
        for i, kernel in enumerate(kernels)
        for c in columns[i % 4 : i % 4 + 1]
    ]
    options = {"gamma": 0.7, "n_neighbors": 3, "normalize": normalize}
    views = KernelStack(triples, **options)
    train = views.fit_transform(form(X))
    cross = views.transform(form(new))
    assert (
        train.names
        == cross.names
        == views.names_
        == tuple(name for name, _, _ in triples)
    )
    assert train.shape == (20, 20, len(triples))
    assert cross.shape == (6, 20, len(triples))
    for i, (_, kernel, chosen) in enumerate(triples):
        taken = slice(None) if chosen is None else chosen
        affinity = make_affinity(X[:, taken], kernel, **options)
        assert_allclose(
            dense(train)[i], affinity.similarity.toarray(), rtol=1e-9, atol=1e-12
        )
        expected = affinity.cross(new[:, taken], np.eye(20))
        assert_allclose(dense(cross)[i], expected, rtol=1e-9, atol=1e-12)
        assert sp.issparse(train.sources[i]) == sp.issparse(cross.sources[i])
        assert sp.issparse(train.sources[i]) == (kernel == "nearest_neighbors")
    square_sources(train)
    cross_sources(cross, train.seen())
    assert_array_equal(dense(views.fit(form(X)).transform(form(new))), dense(cross))


def test_graphs_alone_are_normalized_by_auto():
    X, kernels = features(), ["rbf", "nearest_neighbors", RBF(0.5)]
    plain, every, auto = (
        KernelStack(kernels, normalize=normalize).fit(X)
        for normalize in (False, True, "auto")
    )
    for i, expected in enumerate((plain, every, plain)):
        one, other = (views.fit_transform(X) for views in (auto, expected))
        assert_array_equal(dense(one)[i], dense(other)[i])
        assert_array_equal(dense(auto.transform(X))[i], dense(expected.transform(X))[i])
    assert (dense(plain.transform(X))[1] != dense(every.transform(X))[1]).any()


def test_kernels_by_their_formulas():
    X, new = features(), features(6, seed=1)
    views = KernelStack(
        [partial(rbf_kernel, gamma=2), cosine_similarity, RBF(0.5), "rbf"]
    )
    train, cross = dense(views.fit_transform(X)), dense(views.transform(new))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    away = ((new[:, None] - X) ** 2).sum(axis=2)
    lengths = np.linalg.norm(X, axis=1)
    width = 1 / np.median(squares[np.triu_indices(20, 1)])
    for i, gamma in ((0, 2), (2, 2), (3, width)):
        assert_allclose(train[i], np.exp(-gamma * squares), rtol=1e-9)
        assert_allclose(cross[i], np.exp(-gamma * away), rtol=1e-9)
    assert_allclose(train[1], X @ X.T / np.outer(lengths, lengths), rtol=1e-9)
    assert views.names_ == ("rbf_kernel", "cosine_similarity", "RBF", "rbf")


def test_names_of_kernels_that_occur_several_times():
    kernels = [
        "rbf",
        ("one", "linear", [0]),
        "rbf",
        "linear",
        lambda X, Y: np.ones((len(X), 20)),
    ]
    views = KernelStack(kernels).fit(features())
    assert views.names_ == ("rbf-1", "one", "rbf-2", "linear", "<lambda>")


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_views_are_columns_of_a_data_frame(library, require_names):
    X, new = features(), features(6, seed=1)
    names = ["a", "b", "c", "d"]

    def frame(X):
        return library(dict(zip(names, X.T, strict=True)))

    require_names(frame(X))
    by_name = KernelStack(
        [("one", "rbf", ["d", "a"]), ("two", "rbf", "b"), ("all", "rbf", None)]
    )
    by_place = KernelStack(
        [("one", "rbf", [3, 0]), ("two", "rbf", [1]), ("all", "rbf", None)]
    )
    assert_array_equal(
        dense(by_name.fit_transform(frame(X))), dense(by_place.fit_transform(X))
    )
    assert_array_equal(
        dense(by_name.transform(frame(new))), dense(by_place.transform(new))
    )
    assert by_name.feature_names_in_.tolist() == names
    index = pd.Index(["d", "a"])
    by_index = KernelStack([("one", "rbf", index)]).fit_transform(frame(X))
    assert_array_equal(by_index.sources[0], by_place.fit_transform(X).sources[0])
    with raises_naming(ValueError, "feature names"):
        by_name.transform(frame(new)[names[::-1]])


@pytest.mark.parametrize(
    ("form", "normalize"), [(np.asarray, True), (sp.csr_array, False)]
)
def test_samples_that_are_missing_from_a_view(form, normalize):
    X, new = features(), features(6, seed=1)
    lost, gone = [2, 7, 19], [0, 4]
    X[np.ix_(lost, [1, 3])] = NAN
    new[np.ix_(gone, [1, 3])] = NAN
    triples = [("rest", "rbf", [0, 2])]
    triples += [
        (kernel, kernel, [1, 3]) for kernel in ("nearest_neighbors", "rbf", "linear")
    ]
    options = {"gamma": 2.0, "n_neighbors": 3, "normalize": normalize}
    views = KernelStack(triples, **options)
    train = views.fit_transform(form(X))
    cross = views.transform(form(new))
    kept, known = np.delete(np.arange(20), lost), np.delete(np.arange(6), gone)
    sources, seen = square_sources(train)
    new_sources, new_seen = cross_sources(cross, seen)
    assert seen[:, 0].all()
    assert new_seen[:, 0].all()
    assert [sp.issparse(source) for source in train.sources] == [
        False,
        True,
        False,
        False,
    ]
    for i, (_, kernel, columns) in enumerate(triples[1:], start=1):
        assert_array_equal(np.flatnonzero(seen[:, i]), kept)
        assert_array_equal(np.flatnonzero(new_seen[:, i]), known)
        affinity = make_affinity(X[np.ix_(kept, columns)], kernel, **options)
        expected = np.full((20, 20), NAN)
        expected[np.ix_(kept, kept)] = affinity.similarity.toarray()
        assert_allclose(dense(train)[i], expected, rtol=1e-9, atol=1e-12)
        expected = np.full((6, 20), NAN)
        expected[np.ix_(known, kept)] = affinity.cross(
            new[np.ix_(known, columns)], np.eye(17)
        )
        assert_allclose(dense(cross)[i], expected, rtol=1e-9, atol=1e-12)
    assert sources[1].nnz == np.count_nonzero(sources[1].toarray())
    assert np.isnan(train.sources[1].diagonal()[lost]).all()
    assert sp.issparse(new_sources[1])
    nobody = views.transform(form(new[gone]))
    assert_array_equal(nobody.seen(), [[True, False, False, False]] * 2)
    assert [sp.issparse(source) for source in nobody.sources] == [
        False,
        True,
        False,
        False,
    ]


def test_float32_stays_float32():
    X = features().astype(np.float32)
    views = KernelStack(["rbf", "nearest_neighbors", "linear"])
    assert views.fit_transform(X).dtype == np.float32
    assert views.transform(X[:3]).dtype == np.float32
    assert KernelStack(["rbf", RBF(0.5)]).fit_transform(X).dtype == np.float64


@pytest.mark.parametrize(
    ("kernel", "dtype"), [("linear", np.float64), ("cosine", np.float32)]
)
def test_rounding_of_a_diagonal_is_no_negative_similarity(kernel, dtype):
    """``normalize=True`` takes the diagonal away, which leaves +-1e-17 of it."""
    X = features(60, 30).astype(dtype)
    block = make_affinity(X, kernel, normalize=True).block()
    assert -1e-6 < block.min() < 0
    (source,), _ = square_sources(KernelStack(kernel, normalize=True).fit_transform(X))
    assert_array_equal(source, block.clip(0))


def test_negative_similarities_are_kept_as_they_are():
    X = features() - 0.5
    views = KernelStack(["cosine", lambda A, B: sp.csr_array(A @ B.T)])
    cosines, products = dense(views.fit_transform(X))
    assert_allclose(products, X @ X.T, rtol=1e-12)
    assert_allclose(
        cosines, products / np.sqrt(np.outer(*[products.diagonal()] * 2)), rtol=1e-9
    )
    assert_allclose(dense(views.transform(X[:3]))[1], products[:3], rtol=1e-12)


@pytest.mark.parametrize("kernel", ["rbf", "nearest_neighbors"])
def test_neither_threads_nor_jobs_change_a_similarity(kernel):
    X = np.random.default_rng(0).normal(size=(300, 20))
    results = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            views = KernelStack(kernel, n_jobs=threads)
            results.append(
                (dense(views.fit_transform(X)), dense(views.transform(X[:50])))
            )
    for one, two in zip(*results, strict=True):
        assert_array_equal(one, two)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "cosine", "nearest_neighbors", rbf_kernel])
def test_cells_that_are_missing_have_the_mean_of_the_samples_of_fit(kernel, dtype):
    X = nan_in(nan_in(features(), (0, 1)), (3, 2)).astype(dtype)
    X[:, 3], X[7] = X[5, 3], NAN  # a row that is missing counts in no mean
    X[4, 3] = NAN
    means = np.nanmean(X, axis=0)
    filled = np.where(np.isnan(X) & (np.arange(20) != 7)[:, None], means, X)
    views, expected = KernelStack(kernel).fit(X), KernelStack(kernel).fit(filled)
    for table, full in ((X, filled), (X[:5], filled[:5]), (X[:1], filled[:1])):
        assert_allclose(
            dense(views.transform(table)), dense(expected.transform(full)), rtol=1e-4
        )
    sparse = np.where(np.arange(20)[:, None] == 7, [0, 0, 0, NAN], X)
    if kernel is not rbf_kernel:
        found = KernelStack(kernel).fit_transform(sp.csr_array(sparse))
        full = KernelStack(kernel).fit_transform(X)
        assert_allclose(dense(found), dense(full), rtol=1e-4, atol=1e-6)
    # a feature that no sample has tells nothing
    X[:, 2] = NAN
    assert np.isfinite(dense(KernelStack(kernel).fit_transform(X[:7]))).all()


def test_fitted_kernels_can_be_stored():
    X, new = features(), features(5, seed=1)
    views = KernelStack(
        ["nearest_neighbors", RBF(0.3), partial(rbf_kernel, gamma=3)]
    ).fit(X)
    again = pickle.loads(pickle.dumps(views))
    assert_array_equal(dense(again.transform(new)), dense(views.transform(new)))
    assert_array_equal(
        dense(clone(views).fit(X).transform(new)), dense(views.transform(new))
    )


def test_a_parameter_of_the_kernels_can_be_searched_for():
    X, y = blobs(40)
    pipeline = Pipeline(
        [("views", KernelStack(["rbf", "linear"])), ("model", NearestSample())]
    )
    grid = {"views__gamma": [0.1, None], "views__kernels": ["rbf", ["rbf", RBF(2.0)]]}
    search = GridSearchCV(pipeline, grid, cv=4).fit(abs(X), y)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_score_ > 0.8


def test_a_stack_is_no_table_whatever_the_output_is_set_to():
    views = KernelStack("rbf")
    assert not hasattr(views, "set_output")
    assert not hasattr(views, "get_feature_names_out")
    set_config(transform_output="pandas")
    try:
        assert isinstance(views.fit_transform(features()), SimilarityStack)
    finally:
        set_config(transform_output="default")


def test_a_fit_that_fails_leaves_the_earlier_one():
    X, new = features(), features(5, seed=1)
    views = KernelStack([("a", "rbf", [0, 3])]).fit(X)
    before = views.transform(new).toarray()
    with raises_naming(ValueError, "column 3", "'a'"):
        views.fit(X[:, :2])
    assert_array_equal(views.transform(new).toarray(), before)


@pytest.mark.parametrize(
    "name",
    [
        "check_dataframe_column_names_consistency",
        "check_inplace_ensure_writeable",
        "check_param_validation",
    ],
)
def test_checks_that_scikit_learn_keeps_for_itself(name):
    getattr(estimator_checks, name)("KernelStack", KernelStack("rbf"))


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ("precomputed", ValueError, ("'kernels'", "'nearest_neighbors'")),
        (("a", "rbf", [0]), ValueError, "'kernels'"),
        ([], ValueError, ("kernels", "affinity")),
        (["gaussian"], ValueError, ("kernels", "'rbf'", "'gaussian'")),
        ([3], ValueError, ("kernels", "3")),
        ([("a", "rbf")], TypeError, ("triples", "('a', 'rbf')")),
        ([(1, "rbf", [0])], TypeError, "triples"),
        (
            [("a", "rbf", [0]), ("a", "rbf", [1])],
            ValueError,
            ("kernels", "names", "['a', 'a']"),
        ),
        (
            [("a", "rbf", [0, 4])],
            ValueError,
            ("column 4", "'a'"),
        ),
        (["rbf", ("a", "rbf", [-5])], ValueError, ("column -5", "'a'")),
        ([("a", "rbf", [])], ValueError, ("'a'", "one column")),
        (
            [("a", "rbf", [True])],
            ValueError,
            ("mask", "'a'", "4"),
        ),
        (
            [("a", "rbf", 2)],
            TypeError,
            ("'a'", "[2]"),
        ),
        ([("a", "rbf", len)], TypeError, ("'a'", "integers")),
        ([("a", "rbf", "b")], ValueError, ("'b'", "names")),
        (
            [lambda X, Y: np.ones(3)],
            ValueError,
            ("'<lambda>'", "X", "affinity", "(3,)"),
        ),
        ([lambda X, Y: NAN * X @ Y.T], ValueError, ("'<lambda>'", "NaN")),
        (
            [lambda X, Y: X[:, :1] + 0 * Y[:, 0]],
            ValueError,
            ("'<lambda>'", "symmetric"),
        ),
    ],
)
def test_kernels_that_are_refused(kernels, error, message):
    with raises_naming(error, message):
        KernelStack(kernels).fit(features())


def test_columns_that_a_data_frame_does_not_have():
    X = pd.DataFrame(features(), columns=list("abcd"))
    with raises_naming(ValueError, "'v'", "'e'", "'a', 'b'"):
        KernelStack([("v", "rbf", ["a", "e"])]).fit(X)
    X.columns = list("abca")
    with raises_naming(ValueError, "'a'", "once"):
        KernelStack([("v", "rbf", "a")]).fit(X)


def test_parameters_out_of_range():
    wrong = [
        ("gamma", 0.0),
        ("gamma", "scale"),
        ("n_neighbors", 0),
        ("n_neighbors", 2.5),
    ]
    for parameter, value in [*wrong, ("normalize", "all"), ("n_jobs", 1.5)]:
        with raises_naming(ValueError, f"'{parameter}'"):
            KernelStack("rbf", **{parameter: value}).fit(features())
