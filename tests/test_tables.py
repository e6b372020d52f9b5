"""What a table may hold: ties, copies, few rows, small clusters, rows of zeros, far rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from refusals import warns_naming
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from nmfcluster import PairwiseConstraints, SimilarityFusionNMF, SSNMFClusterer

FORMS = {
    "array": np.asarray,
    "float32": np.float32,
    "sparse": sp.csr_array,
    "frame": pd.DataFrame,
}


def labels_of(X, k, **options):
    return SSNMFClusterer(k, random_state=0, **options).fit_predict(X)


def score(y, X, **options):
    return adjusted_rand_score(y, labels_of(X, len(np.unique(y)), **options))


# --- copies and ties ------------------------------------------------------------------------------


def answers(n, n_questions, seed):
    """Draw the answers of people of three groups to questions with three answers, one-hot."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    given = [
        np.where(rng.random(n) < 0.8, y, rng.integers(3, size=n))
        for _ in range(n_questions)
    ]
    return np.concatenate([np.eye(3)[column] for column in given], axis=1), y


def rounded(n, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    return np.round(rng.normal(size=(n, 2)) + np.array([[0, 0], [5, 0], [0, 5]])[y]), y


def opinions(n, seed):
    """Draw answers from 1 to 5 to six questions."""
    rng = np.random.default_rng(seed)
    y, means = rng.integers(3, size=n), rng.uniform(1.5, 4.5, size=(3, 6))
    return np.clip(np.round(means[y] + rng.normal(scale=0.6, size=(n, 6))), 1, 5), y


TIED = {
    "8 questions": lambda seed: answers(500, 8, seed),
    "4 questions": lambda seed: answers(500, 4, seed),
    "rounded": lambda seed: rounded(500, seed),
    "opinions": lambda seed: opinions(400, seed),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("seed", "name"), [(i % 2, name) for i, name in enumerate(TIED)]
)
def test_tables_of_ties_and_copies_are_clustered_as_k_means_does(name, seed):
    X, y = TIED[name](seed)
    assert len(np.unique(X, axis=0)) < len(X)
    simple = KMeans(3, n_init=10, random_state=0).fit_predict(X)
    least = adjusted_rand_score(y, simple) - 0.05
    assert score(y, X) > least
    pairs = PairwiseConstraints.from_labels(y, n_pairs=50, random_state=0)
    known = SSNMFClusterer(3, random_state=0).fit(X, constraints=pairs)
    assert adjusted_rand_score(y, known.labels_) > least


@pytest.mark.sampled(5)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("affinity", ["nearest_neighbors", "landmarks", "rbf"])
def test_every_row_many_times_is_one_result_to_the_bit(affinity, form):
    X = np.random.default_rng(0).integers(6, size=(60, 3)) * 0.1
    X[40:] += 1
    options = {"affinity": affinity, "random_state": 0}
    once = SSNMFClusterer(3, **options).fit(FORMS[form](X))
    many = SSNMFClusterer(3, **options).fit(FORMS[form](np.repeat(X, 3, axis=0)))
    assert_array_equal(many.labels_, once.labels_.repeat(3))
    assert_array_equal(many.membership_, once.membership_.repeat(3, axis=0))
    assert_array_equal(many.predict(FORMS[form](X)), once.predict(FORMS[form](X)))


def test_rows_with_other_numbers_of_copies_weigh_as_many_as_they_are():
    """The mean of a cluster's row of H moves towards what has copies: as without collapsing."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    rows = np.repeat(np.arange(40), np.random.default_rng(1).integers(1, 5, size=40))
    W = np.exp(-np.square(X[:, None] - X).sum(axis=2))
    given = {
        "affinity": "precomputed",
        "normalize": False,
        "n_init": 1,
        "random_state": 0,
    }
    model = SSNMFClusterer(3, **given, tol=1e-12, max_iter=3000).fit(
        W[np.ix_(rows, rows)]
    )
    options = {"affinity": "rbf", "gamma": 1.0} | {
        name: given[name] for name in list(given)[1:]
    }
    once = SSNMFClusterer(3, **options, tol=1e-12, max_iter=3000).fit(X[rows])
    assert once.loss_ == pytest.approx(model.loss_, rel=1e-5)
    np.testing.assert_allclose(once.membership_, model.membership_, atol=1e-2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("m", [2, 10])
def test_fusion_of_every_row_many_times(m):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [90, 30, 20])
    X = 20 * np.eye(5)[y] + rng.normal(size=(140, 5))
    views = {
        "all": np.repeat(X, m, axis=0),
        "some": np.repeat(np.round(X[:, :3]), m, axis=0),
    }
    assert (
        adjusted_rand_score(y.repeat(m), SimilarityFusionNMF(3).fit_predict(views)) == 1
    )


# --- few rows, and clusters of one or two --------------------------------------------------------


def clumps(sizes, width, seed):
    """Draw samples around the points of a grid, 10 standard deviations apart."""
    k = len(sizes)
    side = np.arange(int(np.ceil(k ** (1 / width))))
    centres = (
        10.0 * np.stack(np.meshgrid(*[side] * width), axis=-1).reshape(-1, width)[:k]
    )
    y = np.repeat(np.arange(k), sizes)
    return centres[y] + np.random.default_rng(seed).normal(size=(len(y), width)), y


@pytest.mark.sampled(10)
@pytest.mark.parametrize("width", [1, 5])
@pytest.mark.parametrize("n", [4, 5, 7, 12, 20, 40])
def test_few_rows_in_clumps(n, width):
    for k in sorted({2, 3, n // 4, n // 3, n // 2} & set(range(2, n // 2 + 1))):
        sizes = np.bincount(np.arange(n) % k)
        X, y = clumps(sizes, width, seed=n)
        assert score(y, X) == 1, (n, k)


@pytest.mark.slow
def test_six_points_of_other_packages():
    for X in ([[1, 2], [1, 4], [1, 0], [4, 2], [4, 4], [4, 0]],
              [[1, 1], [2, 1], [1, 0], [4, 7], [3, 5], [3, 6]]):  # fmt: skip
        for options in ({}, {"n_neighbors": 2}, {"affinity": "rbf"}):
            assert score([0, 0, 0, 1, 1, 1], np.array(X, float), **options) == 1
            model = SSNMFClusterer(2, random_state=0, **options)
            model.fit(X, must_link=[(0, 1)], cannot_link=[(0, 3)])
            assert adjusted_rand_score([0, 0, 0, 1, 1, 1], model.labels_) == 1
    assert_array_equal(np.sort(labels_of(np.eye(2), 2)), [0, 1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", [2, 3, 5, 12])
def test_as_many_clusters_as_rows(n):
    X = np.random.default_rng(n).normal(size=(n, 3))
    assert_array_equal(np.sort(labels_of(X, n)), np.arange(n))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("options", [{}, {"n_neighbors": 2}])
@pytest.mark.parametrize("seed", [0, 1])
def test_records_of_whom_most_occur_once_or_twice(seed, options):
    rng = np.random.default_rng(seed)
    y = np.r_[np.arange(15), np.arange(5, 20)]  # two lists of 15, 10 people in both
    X = rng.normal(size=(20, 8))[y] + 0.05 * rng.normal(size=(30, 8))
    i, j = np.triu_indices(15, 1)
    apart = np.r_[np.c_[i, j], np.c_[i, j] + 15]  # nobody is twice in a list
    assert score(y, X, **options) >= 0.95
    model = SSNMFClusterer(20, random_state=0, **options)
    for must in ([], [(5 + i, 15 + i) for i in range(3)]):
        model.fit(X, must_link=must, cannot_link=apart)
        assert adjusted_rand_score(y, model.labels_) >= 0.95
        assert not len(model.violated_cannot_link_)


# --- what else a table holds ---------------------------------------------------------------------


def test_rows_of_zeros_and_of_one_number():
    """Texts: three topics with words of their own, texts without words, and of one word."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    X = np.kron(np.eye(3), np.ones((40, 8))) * rng.poisson(2.0, size=(120, 24))
    X[[0, 40, 80]] = 0
    X[[1, 41, 81]] = np.eye(24)[[0, 8, 16]]
    told = X.any(axis=1)
    for form in (np.asarray, sp.csr_array):
        for affinity in ("auto", "cosine"):
            labels = labels_of(form(X), 3, affinity=affinity)
            assert adjusted_rand_score(y[told], labels[told]) > 0.9
            assert len(set(labels[~told])) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "change",
    [
        lambda X: X[:, :1],
        lambda X: X[:, :2],
        lambda X: np.column_stack([X, np.full(len(X), 7.0), np.zeros(len(X))]),
        lambda X: np.column_stack([X, X, -2 * X[:, 0] + X[:, 1]]),
    ],
    ids=["one feature", "two features", "constant columns", "collinear columns"],
)
def test_columns_that_say_little(change):
    X, y = clumps([30, 20, 10], 2, seed=0)
    X[:, 0] += 40 * (y == 2)  # so that one feature tells all
    X[:, 0] += 10 * (y == 1)
    assert score(y, change(X)) == 1


def test_one_row_alone_in_many_copies():
    assert set(labels_of(np.ones((20, 3)), 1)) == {0}
    with warns_naming(ConvergenceWarning, "1 cluster", "n_neighbors"):
        assert set(labels_of(np.ones((20, 3)), 2)) == {0}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", [{"affinity": "rbf"}, {"affinity": "precomputed"}])
@pytest.mark.parametrize("pairs", [0, 50])
def test_unequal_sizes_under_dense_kernels(options, pairs):
    y = np.repeat([0, 1, 2], [300, 30, 12])
    X = 20 * np.eye(5)[y] + np.random.default_rng(0).normal(size=(342, 5))
    if options["affinity"] == "precomputed":
        X = np.exp(-0.02 * np.square(X[:, None] - X).sum(axis=2))
    known = PairwiseConstraints.from_labels(y, n_pairs=pairs, random_state=0)
    model = SSNMFClusterer(3, random_state=0, **options).fit(X, constraints=known)
    assert adjusted_rand_score(y, model.labels_) == 1
