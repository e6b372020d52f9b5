"""Laws of `NMFConsensus`: what it must return, whatever makes it fast."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus
from nmfcluster._engine.starts import spectral_start
from nmfcluster._engine.symmetric import SymmetricObjective, bregman_nmf
from nmfcluster.consensus import estimator
from nmfcluster.datasets import make_partitions
from nmfcluster.metrics import clustering_accuracy
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.similarity import Explicit

UNBALANCED = [(900, 60, 40), (80, 15, 5)]
SIZES = [*UNBALANCED, (60, 60, 60), (12, 9, 7, 5, 3)]

in_both_forms = pytest.mark.parametrize("normalize", [True, False], ids=["normalized", "paper"])


def of_partitions(n_clusters, table, **parameters):
    parameters = {"random_state": 0} | parameters
    return NMFConsensus(n_clusters, affinity="partitions", **parameters).fit(table)


def same_partition(a, b):
    """Tell whether two label vectors differ in the names of the clusters alone."""
    return len({*zip(a, b, strict=True)}) == len({*a}) == len({*b})


def together_and_seen(table, weights=None):
    """Return the weights of the partitions that hold a pair together, and that saw it.

    Shapes (T, n, n): the literal definition, with -1 for "not seen".
    """
    n, n_partitions = table.shape
    weights = np.full(n_partitions, 1 / n_partitions) if weights is None else weights
    together, seen = np.zeros((2, n_partitions, n, n))
    for t in range(n_partitions):
        for i in range(n):
            if table[i, t] >= 0:
                seen[t, i] = weights[t] * (table[:, t] >= 0)
                together[t, i] = weights[t] * (table[:, t] == table[i, t])
    return together, seen


def hard_loss(table, labels, weights=None):
    """Return eq. 12 of Li et al. up to a constant: pairs on which partitions disagree."""
    together, seen = together_and_seen(table, weights)
    same = labels[:, None] == labels
    return (seen * same - 2 * together * same + together).sum()


def factor_of(model, kept):
    """Return H of the last fit, samples and clusters in the order of `membership_`."""
    H, A = kept[-1][1], model.consensus_matrix()
    if isinstance(H, dict):
        H = np.array([H[tuple(row)] for row in model.partitions_])
        A = together_and_seen(model.partitions_, model.weights_)[0].sum(axis=0)
    shares = H / H.sum(axis=1, keepdims=True)
    if model.normalize:
        shares = A @ (shares / shares.sum(axis=0))
        shares /= shares.sum(axis=1, keepdims=True)
    distances = abs(shares[:, None, :] - model.membership_[:, :, None]).sum(axis=0)
    order = distances.argmin(axis=1)
    assert sorted(order) == list(range(H.shape[1]))
    if not model.normalize:  # else that is one of three readings
        assert distances.min(axis=1).max() < 1e-6 * len(H)
    return H[:, order]


# --- the right answer comes back ---------------------------------------------------------------


class Known(ClusterMixin, BaseEstimator):
    """Knows the answer: it is written in the features."""

    def fit(self, X, y=None):
        self.labels_ = X[:, 0].astype(int)
        return self


def through_features(y, model):
    return model.set_params(estimator=Known(), n_estimators=5).fit(y[:, None])


def through_given_partitions(y, model):
    return model.fit(y[:, None], partitions=np.column_stack([y, y.max() - y, y]))


def through_a_table(y, model):
    return model.set_params(affinity="partitions").fit(np.column_stack([y, y.max() - y, y]))


def through_a_dense_similarity(y, model):
    return model.set_params(affinity="precomputed").fit((y[:, None] == y).astype(float))


def through_a_sparse_similarity(y, model):
    return model.set_params(affinity="precomputed").fit(sp.csr_array(y[:, None] == y, dtype=float))


ROUTES = [
    through_features,
    through_given_partitions,
    through_a_table,
    through_a_dense_similarity,
    through_a_sparse_similarity,
]


@in_both_forms
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("route", ROUTES)
def test_unanimous_partitions_come_back_for_every_seed(route, sizes, normalize):
    y = np.repeat(np.arange(len(sizes)), sizes)
    shuffled = np.random.RandomState(0).permutation(y)
    for seed in range(1 if len(y) > 500 else 3):
        model = route(shuffled, NMFConsensus(len(sizes), normalize=normalize, random_state=seed))
        np.testing.assert_array_equal(np.bincount(model.labels_), sizes)
        assert same_partition(model.labels_, shuffled)
        np.testing.assert_allclose(model.membership_.max(axis=1), 1, atol=0.01)
        np.testing.assert_allclose(model.confidence_, 1)
        assert model.loss_ < 1e-4 * (len(sizes) if normalize else len(y) ** 2)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(
    "parameters",
    [
        {"solver": "mu"},
        {"solver": "mu", "normalize": False},
        {"factorization": "tri"},
        {"factorization": "tri", "normalize": False},
        {"refine": "moves", "normalize": False},
        {"n_init": 1},
        {"tol": 0.1},
    ],
    ids=str,
)
def test_unanimous_partitions_come_back_from_every_variant(parameters, sizes):
    y = np.repeat(np.arange(len(sizes)), sizes)
    for seed in range(2):
        model = through_a_table(y, NMFConsensus(len(sizes), random_state=seed, **parameters))
        assert same_partition(model.labels_, y)


@pytest.mark.parametrize(
    ("sizes", "n_partitions", "least", "usual"),
    [
        # measured over 30 seeds, least and median: .946, .981; .922, 1; .860, .963; .958, 1;
        # .983, 1; 1, 1. The tri-factorization: .377, .474; .776, .875; .622, .808; .798, 1
        pytest.param((900, 60, 40), 20, 0.88, 0.95, marks=pytest.mark.slow),
        pytest.param((900, 60, 40), 40, 0.88, 0.98, marks=pytest.mark.slow),
        ((80, 15, 5), 20, 0.75, 0.92),
        ((80, 15, 5), 40, 0.90, 0.98),
        ((60, 60, 60), 20, 0.95, 1),
        ((60, 60, 60), 40, 0.95, 1),
    ],
    ids=str,
)
def test_the_form_of_the_paper_sees_through_40_percent_wrong_labels(
    sizes, n_partitions, least, usual
):
    found = []
    for seed in range(4):
        table, y = make_partitions(sizes, n_partitions=n_partitions, noise=0.4, random_state=seed)
        model = of_partitions(3, table, normalize=False, random_state=seed)
        found.append(adjusted_rand_score(y, model.labels_))
    assert min(found) >= least
    assert np.median(found) >= usual


def test_one_partition_is_its_own_consensus():
    table, _ = make_partitions((20, 9, 4), n_partitions=1, noise=0.3, random_state=0)
    model = of_partitions(3, table)
    assert same_partition(model.labels_, table[:, 0])
    np.testing.assert_allclose(model.agreement_, [1])


@in_both_forms
@pytest.mark.parametrize("n_partitions", [20, 40])
def test_60_percent_missing_labels_are_no_obstacle(n_partitions, normalize):
    for seed in range(5):
        table, y = make_partitions(
            (80, 60, 40), n_partitions=n_partitions, noise=0.1, missing=0.6, random_state=seed
        )
        model = of_partitions(3, table, normalize=normalize, random_state=seed)
        assert adjusted_rand_score(y, model.labels_) > 0.95


def test_counting_seen_pairs_beats_taking_missing_for_different():
    gain = []
    for seed in range(4):
        table, y = make_partitions(
            (60, 40, 20), n_partitions=10, noise=0.2, missing=0.8, random_state=seed
        )
        different = table.copy()  # a label of its own for everyone that was not seen
        different[table < 0] = 10 + np.arange((table < 0).sum())
        seen, unseen = (
            of_partitions(3, t, normalize=False, random_state=seed).labels_
            for t in (table, different)
        )
        gain.append(clustering_accuracy(y, seen) - clustering_accuracy(y, unseen))
    assert np.mean(gain) > 0.05


def test_a_single_cluster():
    table, _ = make_partitions(30, n_partitions=5, random_state=0)
    model = of_partitions(1, table)
    np.testing.assert_array_equal(model.labels_, 0)
    np.testing.assert_array_equal(model.membership_, 1)
    assert model.core_.shape == (1, 1)


@pytest.mark.parametrize("route", ROUTES)
def test_more_clusters_than_there_are_gives_those_and_a_warning(route):
    y = np.repeat([0, 1, 2], [20, 9, 4])
    with pytest.warns(ConvergenceWarning, match="found 3 clusters, fewer than n_clusters=5"):
        model = route(y, NMFConsensus(5, random_state=0))
    np.testing.assert_array_equal(np.unique(model.labels_), [0, 1, 2])
    assert model.membership_.shape == (33, 5)


@in_both_forms
@pytest.mark.parametrize("solver", ["bpg", "mu"])
def test_solvers_agree_on_easy_data(solver, normalize):
    table, y = make_partitions((60, 40, 20), n_partitions=20, noise=0.3, random_state=1)
    model = of_partitions(3, table, solver=solver, normalize=normalize)
    assert same_partition(model.labels_, y)


# --- what must not matter ----------------------------------------------------------------------


@pytest.fixture
def noisy():
    return make_partitions((50, 30, 20), n_partitions=12, noise=0.3, random_state=0)[0]


@pytest.fixture
def holey():
    return make_partitions((50, 30, 20), n_partitions=12, noise=0.2, missing=0.3, random_state=0)[0]


@pytest.mark.parametrize("name", ["noisy", "holey"])
@pytest.mark.parametrize("coarse_size", [30, None])
@in_both_forms
def test_order_of_samples_does_not_matter(name, coarse_size, normalize, request):
    table = request.getfixturevalue(name)
    order = np.random.RandomState(1).permutation(len(table))
    options = {"coarse_size": coarse_size, "normalize": normalize}
    first = of_partitions(3, table, **options)
    second = of_partitions(3, table[order], **options)
    np.testing.assert_array_equal(second.labels_, first.labels_[order])
    np.testing.assert_array_equal(second.membership_, first.membership_[order])
    np.testing.assert_array_equal(second.confidence_, first.confidence_[order])


@pytest.mark.parametrize("name", ["noisy", "holey"])
@pytest.mark.parametrize(
    "rename",
    [
        lambda labels: labels * 7 + 3,
        lambda labels: labels * 10**12,
        lambda labels: np.array(["not seen", "crab", "eel", "ray"])[labels + 1],
        lambda labels: labels.astype(float),
        lambda labels: labels.astype(np.int8),
    ],
    ids=["other integers", "huge integers", "strings", "floats", "small integers"],
)
def test_names_of_labels_do_not_matter(name, rename, request):
    table = request.getfixturevalue(name)
    renamed = rename(table).astype(object)
    renamed[table < 0] = None
    first, second = of_partitions(3, table), of_partitions(3, renamed)
    np.testing.assert_array_equal(second.partitions_, first.partitions_)
    np.testing.assert_array_equal(second.membership_, first.membership_)


@in_both_forms
def test_order_of_the_names_does_not_matter(noisy, normalize):
    options = {"normalize": normalize, "n_init": 1, "tol": 1e-12, "max_iter": 5000}
    first = of_partitions(3, noisy, **options)
    second = of_partitions(3, noisy.max() - noisy, **options)
    np.testing.assert_allclose(second.membership_, first.membership_, atol=1e-3)


@in_both_forms
def test_order_of_the_partitions_does_not_matter(noisy, normalize):
    options = {"normalize": normalize, "n_init": 1, "tol": 1e-12, "max_iter": 5000}
    first = of_partitions(3, noisy, **options)
    second = of_partitions(3, noisy[:, ::-1], **options)
    np.testing.assert_allclose(second.membership_, first.membership_, atol=1e-3)
    np.testing.assert_allclose(second.agreement_, first.agreement_[::-1])


def as_floats_with_nan(table):
    return np.where(table < 0, np.nan, table)


def as_list_of_vectors(table):
    return [list(column) for column in table.T]


def as_list_of_mixed_kinds(table):
    return [
        np.array(["b", "c", "d", None], dtype=object)[column] if t % 2 else list(column)
        for t, column in enumerate(table.T)
    ]


def as_strings_with_none(table):
    return np.array(["x", "y", "z", None], dtype=object)[table]


def as_pandas(table):
    return pd.DataFrame(table, columns=[f"p{t}" for t in range(table.shape[1])])


def as_pandas_nullable(table):
    return as_pandas(table).astype("Int64").mask(table < 0)


def as_pandas_categories(table):
    return pd.DataFrame(as_strings_with_none(table)).astype("category")


def as_polars(table):
    polars = pytest.importorskip("polars")
    return polars.DataFrame(table, schema=[f"p{t}" for t in range(table.shape[1])])


def as_polars_strings(table):
    polars = pytest.importorskip("polars")
    return polars.DataFrame(
        {f"p{t}": list(column) for t, column in enumerate(as_strings_with_none(table).T)}
    )


FORMS = [
    as_floats_with_nan,
    as_strings_with_none,
    as_pandas,
    as_pandas_nullable,
    as_pandas_categories,
    as_polars,
    as_polars_strings,
]


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_label_table_agree(form, holey):
    plain, other = of_partitions(3, holey), of_partitions(3, form(holey))
    np.testing.assert_array_equal(other.partitions_, plain.partitions_)
    np.testing.assert_array_equal(other.labels_, plain.labels_)
    np.testing.assert_array_equal(other.predict(form(holey)), plain.predict(holey))


@pytest.mark.parametrize("form", [*FORMS, as_list_of_vectors, as_list_of_mixed_kinds])
def test_all_forms_of_given_partitions_agree(form, holey):
    X = np.random.RandomState(0).normal(size=(len(holey), 2))
    plain = of_partitions(3, holey)
    other = NMFConsensus(3, random_state=0).fit(X, partitions=form(holey))
    np.testing.assert_array_equal(other.partitions_, plain.partitions_)
    np.testing.assert_array_equal(other.labels_, plain.labels_)


def test_booleans_are_labels():
    y = np.repeat([True, False], [20, 9])
    model = of_partitions(2, np.column_stack([y, ~y, y]))
    np.testing.assert_array_equal(model.labels_, ~y)


@pytest.mark.parametrize("name", ["noisy", "holey"])
@in_both_forms
def test_a_partition_of_weight_0_is_left_out(name, normalize, request):
    table = request.getfixturevalue(name)
    options = {"normalize": normalize, "n_init": 1, "tol": 1e-12, "max_iter": 5000}
    without = of_partitions(3, table[:, 1:], **options)
    weighted = of_partitions(3, table, weights=[0] + [2] * 11, **options)
    np.testing.assert_allclose(weighted.membership_, without.membership_, atol=1e-3)
    np.testing.assert_allclose(weighted.confidence_, without.confidence_, atol=1e-12)
    np.testing.assert_allclose(weighted.loss_, without.loss_, rtol=1e-6)
    np.testing.assert_allclose(weighted.weights_, [0] + [1 / 11] * 11)


@pytest.mark.parametrize("name", ["noisy", "holey"])
@in_both_forms
def test_a_partition_of_weight_2_counts_twice(name, normalize, request):
    table = request.getfixturevalue(name)
    options = {"normalize": normalize, "n_init": 1, "tol": 1e-12, "max_iter": 5000}
    repeated = of_partitions(3, np.column_stack([table[:, 0], table]), **options)
    weighted = of_partitions(3, table, weights=[2] + [1] * 11, **options)
    np.testing.assert_allclose(weighted.membership_, repeated.membership_, atol=1e-3)
    np.testing.assert_allclose(weighted.confidence_, repeated.confidence_, atol=1e-12)
    np.testing.assert_allclose(weighted.loss_, repeated.loss_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:.* did not converge:sklearn.exceptions.ConvergenceWarning")
@in_both_forms
def test_equal_rows_are_fitted_as_one_without_changing_the_result(kept, normalize):
    """Every update of the collapsed problem is that of the whole problem."""
    table, _ = make_partitions((50, 30, 20), n_partitions=4, noise=0.3, random_state=0)
    model = of_partitions(3, table, normalize=normalize, n_init=1, max_iter=30, tol=-1)
    ensemble, groups = Ensemble.from_table(table, model.weights_)
    assert len(ensemble) < len(table)
    together = together_and_seen(table)[0]
    votes = ensemble.cluster_weights
    if normalize:
        together, votes = (
            together / (4 * together.sum(axis=1, keepdims=True)),
            votes / ensemble.sizes,
        )
    constant = 4 * (together**2).sum()  # the weights are squared
    start = spectral_start(ensemble.similarity(float, votes), 3)
    start = start / np.sqrt(ensemble.counts)[:, None]
    A = Explicit(together.sum(axis=0))
    steps = bregman_nmf(SymmetricObjective(A, constant), start[groups][None])
    whole = [next(steps) for _ in range(31)]
    np.testing.assert_allclose(model.loss_curve_, [loss[0] for _, loss in whole], rtol=1e-9)
    H = whole[-1][0][0][0]
    found = factor_of(model, kept)
    order = abs(H[:, :, None] - found[:, None, :]).sum(axis=0).argmin(axis=0)
    np.testing.assert_allclose(found, H[:, order], atol=1e-9)


@in_both_forms
@pytest.mark.parametrize("sizes", [(50, 30, 20), (40, 40, 40)], ids=str)
def test_label_tables_give_what_their_explicit_similarity_gives(sizes, normalize):
    table, _ = make_partitions(sizes, n_partitions=6, noise=0.25, random_state=0)
    options = {"normalize": normalize, "n_init": 1, "tol": 1e-12, "max_iter": 5000}
    M = together_and_seen(table)[0]
    if normalize:
        M = M / (6 * M.sum(axis=1, keepdims=True))
    implicit = of_partitions(3, table, **options)
    explicit = NMFConsensus(3, affinity="precomputed", **options).fit(M.sum(axis=0))
    if not normalize:  # else the votes of clusters are counted in three ways
        assert same_partition(explicit.labels_, implicit.labels_)
        np.testing.assert_allclose(implicit.confidence_, explicit.confidence_, atol=1e-12)
    # J above eq. 3 of Li et al. and its form with the mean differ by a constant
    constant = len(M) * (M**2).sum() - (M.sum(axis=0) ** 2).sum()
    np.testing.assert_allclose(implicit.loss_ - constant, explicit.loss_, rtol=1e-6)
    cores = (np.sort(np.diag(model.core_)) for model in (implicit, explicit))
    np.testing.assert_allclose(*cores, rtol=1e-3)


def test_sparse_and_dense_similarities_agree(noisy):
    A = together_and_seen(noisy)[0].sum(axis=0)
    dense, sparse = (
        NMFConsensus(3, affinity="precomputed", random_state=0).fit(form(A))
        for form in (np.asarray, sp.coo_array)
    )
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    np.testing.assert_allclose(sparse.membership_, dense.membership_, atol=1e-6)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(A)), dense.predict(A))


def test_sparse_and_dense_features_agree():
    X, y = make_blobs(90, centers=np.eye(4)[:3] * 9, random_state=0)
    X = np.where(abs(X) < 1, 0, X)
    for data in (X, sp.csr_array(X), sp.csc_matrix(X)):
        model = NMFConsensus(3, n_estimators=10, random_state=0).fit(data)
        assert adjusted_rand_score(y, model.labels_) == 1
        assert adjusted_rand_score(y, model.predict(data)) == 1


@in_both_forms
@pytest.mark.parametrize("affinity", ["coassociation", "precomputed"])
def test_results_keep_the_floating_type_of_the_data(affinity, normalize):
    X, y = make_blobs(60, centers=np.eye(3) * 9, random_state=0)
    if affinity == "precomputed":
        X = np.exp(-0.05 * ((X[:, None] - X) ** 2).sum(axis=2))
    for dtype in (np.float32, np.float64):
        options = {"affinity": affinity, "normalize": normalize, "n_estimators": 10}
        model = NMFConsensus(3, **options, random_state=0).fit(X.astype(dtype))
        assert model.membership_.dtype == dtype
        assert model.transform(X.astype(dtype)).dtype == dtype
        assert isinstance(model.loss_, float)
        assert adjusted_rand_score(y, model.labels_) == 1


# --- what the attributes say -------------------------------------------------------------------


tables = st.tuples(st.integers(1, 12), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-1, 3))
)


@given(
    tables,
    st.integers(1, 4),
    st.sampled_from([{}, {"normalize": False}, {"normalize": False, "refine": "moves"}]),
)
def test_every_table_that_is_accepted_gives_a_sound_result(table, n_clusters, form):
    seen = table >= 0
    usable = seen.any(axis=1).all() and seen.any(axis=0).all() and n_clusters <= len(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        if not usable:
            with pytest.raises(ValueError, match=r"X|n_clusters"):
                of_partitions(n_clusters, table, **form)
            return
        model = of_partitions(n_clusters, table, **form)
    sizes = np.bincount(model.labels_)
    assert sizes.all()
    assert (np.diff(sizes) <= 0).all()
    assert np.isfinite(model.loss_)
    assert (model.membership_ >= 0).all()
    np.testing.assert_allclose(model.membership_.sum(axis=1), 1)
    if "refine" not in form:
        np.testing.assert_array_equal(model.labels_, model.membership_.argmax(axis=1))
    assert ((model.confidence_ >= -1e-12) & (model.confidence_ <= 1 + 1e-12)).all()
    assert (model.agreement_ <= 1 + 1e-12).all()
    assert np.isin(model.predict(table), np.arange(n_clusters)).all()


@pytest.mark.parametrize("name", ["noisy", "holey"])
@pytest.mark.parametrize("weights", [None, np.arange(1, 13)], ids=["equal", "unequal"])
def test_loss_is_the_sum_over_the_pairs_that_partitions_saw(name, weights, request, kept):
    table = request.getfixturevalue(name)
    model = of_partitions(3, table, normalize=False, weights=weights)
    H = factor_of(model, kept)
    _, seen = together_and_seen(table, np.ones(12))
    M = [table[:, t, None] == table[:, t] for t in range(12)]
    loss = sum(w * (seen[t] * (M[t] - H @ H.T) ** 2).sum() for t, w in enumerate(model.weights_))
    np.testing.assert_allclose(model.loss_, loss, rtol=1e-9)


@in_both_forms
def test_loss_of_a_similarity_is_the_squared_distance(kept, normalize):
    A = np.random.RandomState(0).uniform(size=(30, 30))
    A = A + A.T
    model = NMFConsensus(4, affinity="precomputed", normalize=normalize, random_state=0).fit(A)
    H = factor_of(model, kept)
    if normalize:
        A = A / np.sqrt(A.sum(axis=0)) / np.sqrt(A.sum(axis=1))[:, None]
    np.testing.assert_allclose(model.loss_, ((A - H @ H.T) ** 2).sum(), rtol=1e-9)


@in_both_forms
@pytest.mark.parametrize("factorization", ["bi", "tri"])
def test_core_and_unit_columns_reproduce_the_factor(factorization, normalize, noisy, kept):
    model = of_partitions(3, noisy, factorization=factorization, normalize=normalize)
    H = factor_of(model, kept)
    Q = H / np.linalg.norm(H, axis=0)
    if factorization == "bi":
        np.testing.assert_allclose(Q @ model.core_ @ Q.T, H @ H.T, atol=1e-9)
    np.testing.assert_array_equal(model.core_, np.diag(np.diag(model.core_)))
    assert np.diag(model.core_).min() > 0


@pytest.mark.parametrize("name", ["noisy", "holey"])
@pytest.mark.parametrize("solver", ["bpg", "mu"])
@in_both_forms
def test_loss_never_rises(name, solver, normalize, request):
    table = request.getfixturevalue(name)
    model = of_partitions(3, table, solver=solver, normalize=normalize, n_init=5)
    assert len(model.loss_curves_) == 5
    assert len(model.loss_curve_) == model.n_iter_ + 1
    assert model.loss_ == model.loss_curve_.min()
    for curve in model.loss_curves_:
        assert np.diff(curve).max() <= 1e-10 * curve[0]


def test_more_starts_never_worsen_the_hard_loss():
    for seed in range(3):
        table, _ = make_partitions((30, 20, 10), n_partitions=6, noise=0.5, random_state=seed)
        options = {"normalize": False, "random_state": seed}
        losses = [
            hard_loss(table, of_partitions(3, table, n_init=n, **options).labels_)
            for n in (1, 2, 6)
        ]
        assert (np.diff(losses) <= 1e-9).all()


@pytest.mark.parametrize("name", ["noisy", "holey"])
@pytest.mark.parametrize("weights", [None, np.arange(1, 13)], ids=["equal", "unequal"])
def test_confidence_is_the_mean_coassociation_within_the_cluster(name, weights, request):
    table = request.getfixturevalue(name)
    model = of_partitions(3, table, weights=weights)
    together, seen = (pairs.sum(axis=0) for pairs in together_and_seen(table, model.weights_))
    for i, label in enumerate(model.labels_):
        others = np.flatnonzero((model.labels_ == label) & (np.arange(len(table)) != i))
        expected = together[i, others].sum() / seen[i, others].sum()
        np.testing.assert_allclose(model.confidence_[i], expected, rtol=1e-9)


def test_confidence_of_a_similarity_is_its_mean_within_the_cluster():
    A = np.kron(np.eye(2), np.ones((4, 4))) + np.random.RandomState(0).uniform(size=(8, 8)) / 9
    A = A + A.T
    model = NMFConsensus(2, affinity="precomputed").fit(A)
    for i, label in enumerate(model.labels_):
        others = np.flatnonzero((model.labels_ == label) & (np.arange(8) != i))
        np.testing.assert_allclose(model.confidence_[i], A[i, others].mean())


@pytest.mark.filterwarnings("ignore:X has 1 samples without any similarity")
def test_confidence_of_a_sample_alone_is_1():
    y = np.array([0] * 5 + [1])
    assert of_partitions(2, np.column_stack([y, y])).confidence_[-1] == 1
    A = (y[:, None] == y) * 0.5
    assert NMFConsensus(2, affinity="precomputed").fit(A).confidence_[-1] == 1


@pytest.mark.parametrize("name", ["noisy", "holey"])
def test_agreement_is_the_rand_index_over_the_samples_that_were_seen(name, request):
    table = request.getfixturevalue(name)
    model = of_partitions(3, table)
    for column, agreement in zip(table.T, model.agreement_, strict=True):
        seen = column >= 0
        expected = adjusted_rand_score(column[seen], model.labels_[seen])
        np.testing.assert_allclose(agreement, expected, atol=1e-12)


@pytest.mark.parametrize("name", ["noisy", "holey"])
@pytest.mark.parametrize("weights", [None, np.arange(1, 13)], ids=["equal", "unequal"])
@pytest.mark.parametrize("indices", [None, [3, 1, 99, 50, 50], np.arange(0, 100, 7)])
def test_consensus_matrix_is_the_share_of_partitions(name, weights, indices, request):
    table = request.getfixturevalue(name)
    model = of_partitions(3, table, weights=weights)
    together, seen = (pairs.sum(axis=0) for pairs in together_and_seen(table, model.weights_))
    chosen = slice(None) if indices is None else np.asarray(indices)
    expected = (together / np.where(seen > 0, seen, np.nan))[chosen][:, chosen]
    np.testing.assert_allclose(model.consensus_matrix(indices), expected, atol=1e-12)


def test_consensus_matrix_is_nan_where_no_partition_saw_a_pair():
    table = np.array([[0, 0], [0, 1], [0, -1], [-1, 1]])
    M = of_partitions(2, table).consensus_matrix()
    np.testing.assert_array_equal(np.argwhere(np.isnan(M)), [[2, 3], [3, 2]])
    np.testing.assert_array_equal(M[0], [1, 0.5, 1, 0])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_consensus_matrix_of_a_similarity_is_the_similarity(form):
    A = np.eye(6) + np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)
    model = NMFConsensus(2, affinity="precomputed").fit(form(A))
    np.testing.assert_array_equal(model.consensus_matrix(), A)
    np.testing.assert_array_equal(model.consensus_matrix([5, 4]), A[[5, 4]][:, [5, 4]])


def test_what_does_not_exist_for_a_similarity_is_none():
    model = NMFConsensus(2, affinity="precomputed").fit(np.eye(4) + 0.1)
    assert model.partitions_ is None
    assert model.weights_ is None
    assert model.agreement_ is None


# --- making partitions -------------------------------------------------------------------------


def test_base_partitions_have_the_numbers_of_clusters_asked_for():
    X, _ = load_iris(return_X_y=True)

    def numbers(n_clusters=3, **parameters):
        model = NMFConsensus(n_clusters, n_estimators=20, random_state=0, **parameters).fit(X)
        return {len(np.unique(column)) for column in model.partitions_.T}

    assert numbers(base_n_clusters=4) == {4}
    assert numbers(base_n_clusters=(2, 5)) == {2, 3, 4, 5}
    assert {3, 12} <= numbers() <= set(range(3, 13))  # 12 is the root of 150
    assert {2, 12} <= numbers(1) <= set(range(2, 13))
    assert numbers(20) == {20}


@pytest.mark.slow
def test_base_partitions_have_at_most_60_clusters_unless_more_are_wanted():
    X = np.random.default_rng(0).normal(size=(4000, 1)).astype(np.float32)
    options = {"estimator": KMeans(n_init=1, max_iter=1), "n_estimators": 40, "random_state": 0}
    for n_clusters, most in ((50, 60), (62, 62)):
        table = NMFConsensus(n_clusters, **options).fit(X).partitions_
        assert table.max() + 1 == most


@pytest.mark.parametrize(("max_samples", "n_drawn"), [(0.5, 75), (60, 60), (1.0, 150)])
def test_base_partitions_see_the_share_of_samples_asked_for(max_samples, n_drawn):
    X, _ = load_iris(return_X_y=True)
    model = NMFConsensus(3, n_estimators=20, max_samples=max_samples, random_state=0).fit(X)
    np.testing.assert_array_equal((model.partitions_ >= 0).sum(axis=0), n_drawn)


@pytest.mark.parametrize(("max_features", "n_drawn"), [(0.5, 2), (3, 3), (1.0, 4), (1, 1)])
def test_base_partitions_see_the_features_asked_for(max_features, n_drawn):
    X, _ = load_iris(return_X_y=True)
    model = NMFConsensus(3, n_estimators=8, max_features=max_features, random_state=0).fit(X)
    assert {base.n_features_in_ for base in model.estimators_} == {n_drawn}
    assert (model.predict(X) == model.labels_).mean() > 0.9


class Unsure(KMeans):
    """Calls the five samples farthest from their centres noise."""

    def fit_predict(self, X, y=None):
        labels = super().fit_predict(X)
        labels[np.argsort(self.transform(X).min(axis=1))[-5:]] = -1
        return labels


def test_noise_of_a_base_clusterer_counts_as_not_seen():
    X = load_iris().data
    model = NMFConsensus(
        3, estimator=Unsure(n_init=1), base_n_clusters=(3, 10), n_estimators=20, random_state=0
    ).fit(X)
    np.testing.assert_array_equal((model.partitions_ < 0).sum(axis=0), 5)
    assert np.isfinite(model.membership_).all()


def test_the_base_clusterer_that_was_passed_is_not_touched():
    base = KMeans(8, n_init=1)
    NMFConsensus(3, estimator=base, n_estimators=3).fit(load_iris().data)
    assert base.n_clusters == 8
    assert base.random_state is None
    assert not hasattr(base, "labels_")


# --- new samples -------------------------------------------------------------------------------


BASES = [
    None,
    AgglomerativeClustering(),
    DBSCAN(eps=2),
    SpectralClustering(affinity="nearest_neighbors", n_neighbors=8),
]


@pytest.mark.parametrize("base", BASES, ids=str)
@pytest.mark.parametrize("max_samples", [1.0, 0.7])
@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_training_samples_are_predicted_as_they_were_clustered(base, max_samples):
    X, y = make_blobs((60, 40, 20), centers=np.eye(3) * 5, cluster_std=0.5, random_state=0)
    model = NMFConsensus(
        3,
        estimator=base,
        n_estimators=8,
        base_n_clusters=3,
        max_samples=max_samples,
        random_state=0,
    ).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert (model.predict(X) == model.labels_).mean() >= 0.98
    np.testing.assert_array_equal(model.predict(X + 1e-9), model.predict(X))


@pytest.mark.parametrize("affinity", ["partitions", "precomputed", "given"])
@pytest.mark.parametrize("name", ["noisy", "holey"])
def test_training_rows_are_predicted_as_they_were_clustered(affinity, name, request):
    table = request.getfixturevalue(name)
    X, partitions, parameters = table, None, {"affinity": affinity}
    if affinity == "precomputed":
        X = np.nan_to_num(of_partitions(3, table).consensus_matrix())
    if affinity == "given":
        X, partitions, parameters = np.arange(100.0)[:, None], table, {}
    model = NMFConsensus(3, random_state=0, **parameters).fit(X, partitions=partitions)
    assert (model.predict(X) == model.labels_).mean() >= 0.95


def test_given_partitions_label_a_new_sample_like_the_nearest_one():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [12.0]])
    y = np.array([0, 0, 1, 1, 1])
    model = NMFConsensus(2).fit(X, partitions=[y, y])
    np.testing.assert_array_equal(model.predict([[30.0], [2.0], [9.0], [-5.0]]), [0, 1, 0, 1])


def test_unknown_labels_are_as_good_as_none(holey):
    names = np.array(["a", "b", "c", None], dtype=object)
    model = of_partitions(3, names[holey])
    rows = names[holey[:20]]
    unknown = np.where(np.equal(rows, None), "never seen", rows)
    np.testing.assert_array_equal(model.transform(unknown), model.transform(rows))


@pytest.mark.parametrize("nothing", [-1, 99, np.nan, None])
def test_a_sample_of_which_nothing_is_known_belongs_nowhere(nothing, noisy):
    model = of_partitions(3, noisy)
    rows = np.array([noisy[0], np.full(12, nothing)])
    np.testing.assert_array_equal(model.predict(rows), [model.labels_[0], -1])
    np.testing.assert_allclose(model.transform(rows)[1], 1 / 3)


def test_a_sample_without_similarity_belongs_nowhere():
    model = NMFConsensus(2, affinity="precomputed").fit(np.kron(np.eye(2), np.ones((3, 3))))
    new = np.array([[0.0] * 6, [0, 0, 0, 1, 1, 1]])
    assert model.predict(new)[0] == -1
    assert model.predict(new)[1] == model.labels_[5]
    np.testing.assert_allclose(model.transform(new)[0], 0.5)


def test_samples_without_any_similarity_to_others_are_warned_of():
    A = np.kron(np.eye(2), np.ones((4, 4)))
    A[3, :3] = A[:3, 3] = 0
    told = "1 of the samples in X have no similarity.* sample 3"
    with pytest.warns(UserWarning, match=told) as caught:
        NMFConsensus(2, affinity="precomputed").fit(A)
    assert caught[0].filename == __file__


def test_one_known_label_is_enough():
    y = np.repeat([0, 1, 2], [50, 30, 20])
    model = of_partitions(3, np.column_stack([y] * 4))
    row = [[-1, -1, 1, -1]]
    np.testing.assert_array_equal(model.predict(row), [1])
    np.testing.assert_allclose(model.transform(row), [[0, 1, 0]], atol=0.02)


@pytest.mark.parametrize("affinity", ["coassociation", "partitions", "precomputed"])
def test_prediction_is_the_largest_column_of_the_transform(affinity, noisy):
    X = np.asarray(of_partitions(3, noisy).consensus_matrix())
    X = noisy if affinity == "partitions" else X
    model = NMFConsensus(3, affinity=affinity, n_estimators=10, random_state=0).fit(X)
    P = model.transform(X[:30])
    assert P.shape == (30, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X[:30]), P.argmax(axis=1))


# --- variants ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_tri_factorization_of_the_paper_loses_small_clusters():
    gain = []
    for seed in range(2):
        table, y = make_partitions((900, 60, 40), n_partitions=20, noise=0.4, random_state=seed)
        ours, theirs = (
            of_partitions(
                3, table, factorization=factorization, normalize=False, random_state=seed
            ).labels_
            for factorization in ("bi", "tri")
        )
        gain.append(adjusted_rand_score(y, ours) - adjusted_rand_score(y, theirs))
    assert min(gain) > 0.2


def test_the_tri_factorization_of_the_paper_is_no_descent_and_not_orthogonal(kept):
    rises, defects = [], []
    for seed in range(5):
        table, _ = make_partitions((70, 15, 10, 5), noise=0.4, random_state=seed)
        options = {"factorization": "tri", "normalize": False, "n_init": 5}
        model = of_partitions(4, table, **options, random_state=seed)
        rises += [np.diff(curve).max() / curve[0] for curve in model.loss_curves_]
        Q = kept[-1][0].best.factors[0]
        defects.append(np.linalg.norm(Q.T @ Q - np.eye(4)) / 2)
    assert np.mean(np.array(rises) > 1e-6) > 0.5
    assert np.median(defects) > 0.02


@pytest.mark.parametrize("missing", [0.0, 0.4])
def test_moves_never_raise_the_hard_loss_and_change_labels_only(missing):
    fell = False
    for seed in range(3):
        table, _ = make_partitions(
            (30, 15, 5), n_partitions=8, noise=0.5, missing=missing, random_state=seed
        )
        options = {"normalize": False, "random_state": seed}
        plain = of_partitions(3, table, **options)
        moved = of_partitions(3, table, refine="moves", **options)
        before, after = (hard_loss(table, model.labels_) for model in (plain, moved))
        assert after <= before + 1e-9
        fell |= after < before
        assert len(np.unique(moved.labels_)) == len(np.unique(plain.labels_))
        np.testing.assert_allclose(
            np.sort(moved.membership_, axis=1), np.sort(plain.membership_, axis=1)
        )
        assert moved.loss_ == plain.loss_
    assert fell


@pytest.mark.filterwarnings("ignore:.* did not converge:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("solver", ["bpg", "mu"])
@in_both_forms
def test_starting_on_a_part_of_the_samples_costs_nearly_nothing(missing, solver, normalize):
    for seed in range(2):
        table, _ = make_partitions(
            (300, 150, 50), n_partitions=15, noise=0.3, missing=missing, random_state=seed
        )
        assert len(np.unique(table, axis=0)) > 300
        options = {"solver": solver, "normalize": normalize, "random_state": seed}
        full, coarse = (of_partitions(3, table, coarse_size=size, **options) for size in (None, 80))
        assert adjusted_rand_score(full.labels_, coarse.labels_) > 0.93
        assert coarse.loss_ < 1.002 * full.loss_
        assert len(coarse.loss_curves_) == 4  # the polish and three starts
        scale = coarse.loss_curves_[1].min() / coarse.loss_  # starts are reported for all samples
        assert 0.8 < scale < 1.2


def test_a_table_of_few_distinct_rows_is_never_sampled():
    y = np.repeat([0, 1, 2], [400, 200, 100])
    model = of_partitions(3, np.column_stack([y, y]), coarse_size=3)
    assert len(model.loss_curves_) == 3


# --- what is printed, warned of, and left behind -----------------------------------------------


def lines_of(capsys):
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("parameters", "stages"),
    [
        ({}, ["base partitions", "distinct label rows", r"3 starts"]),
        ({"affinity": "partitions"}, ["distinct label rows", r"3 starts"]),
        ({"affinity": "precomputed"}, [r"3 starts: best loss"]),
        (
            {"affinity": "partitions", "normalize": False, "refine": "moves"},
            ["distinct label rows", r"3 starts", r"moves of \d+ label rows: \d", "moved"],
        ),
        (
            {"affinity": "partitions", "coarse_size": 40},
            ["distinct label rows", r"3 starts", r"1 start:"],
        ),
    ],
    ids=str,
)
def test_verbose_prints_a_line_before_and_after_a_stage(parameters, stages, noisy, capsys):
    X = np.asarray(of_partitions(3, noisy).consensus_matrix())
    X = noisy if parameters.get("affinity") == "partitions" else X
    model = NMFConsensus(3, n_estimators=5, random_state=0, **parameters)
    assert lines_of(capsys) == []
    model.fit(X)
    assert lines_of(capsys) == []
    model.set_params(verbose=1).fit(X)
    printed = [line for line in lines_of(capsys) if not line.endswith(" batches")]
    lines = [line for line in printed if not line.endswith(" ...")]
    assert len(lines) == len(stages)
    for line, stage in zip(lines, stages, strict=True):
        assert line.startswith("[NMFConsensus] ")
        assert re.search(stage, line)


@pytest.mark.parametrize("affinity", ["coassociation", "partitions", "precomputed"])
def test_running_out_of_updates_is_warned_of_once_with_the_figures(affinity):
    table, _ = make_partitions((40, 30, 20), n_partitions=10, noise=0.5, random_state=0)
    X = np.asarray(of_partitions(3, table).consensus_matrix())
    X = table if affinity == "partitions" else X
    model = NMFConsensus(3, affinity=affinity, max_iter=2, n_init=4, n_estimators=5, random_state=0)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert re.search(r"NMFConsensus .*max_iter=2 .*\d\.\de[-+]\d\d", message)
    assert model.n_iter_ == 2


@pytest.mark.filterwarnings("ignore:.* did not converge:sklearn.exceptions.ConvergenceWarning")
def test_running_all_updates_can_be_asked_for():
    model = of_partitions(3, make_partitions(90, random_state=0)[0], tol=-1, max_iter=37)
    assert {len(curve) for curve in model.loss_curves_} == {38}


class Interrupted(KMeans):
    """Is interrupted by the user."""

    def fit(self, X, y=None, sample_weight=None):
        raise KeyboardInterrupt


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


def state_of(model):
    return {name: id(value) for name, value in vars(model).items()}


@pytest.mark.parametrize("stage", ["base clusterer", "solver", "attributes"])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(stage, monkeypatch):
    X = load_iris().data
    fresh = NMFConsensus(3, n_estimators=5)
    fitted = NMFConsensus(3, n_estimators=5).fit(X)
    if stage == "base clusterer":
        for model in (fresh, fitted):
            model.set_params(estimator=Interrupted())
    elif stage == "solver":
        monkeypatch.setattr(estimator, "bregman_nmf", interrupt)
    else:
        monkeypatch.setattr(Ensemble, "item_consensus", interrupt)
    for model in (fresh, fitted):
        before = state_of(model)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
        assert state_of(model) == before
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert len(fitted.predict(X)) == 150


MODES = ["coassociation", "given", "partitions", "precomputed"]


@pytest.mark.parametrize("second", MODES)
@pytest.mark.parametrize("first", MODES)
def test_fitting_again_in_another_way_leaves_nothing_behind(first, second):
    y = np.repeat([0, 1], 10)
    table = np.column_stack([y, y])

    def fit(model, mode):
        affinity = "coassociation" if mode == "given" else mode
        model.set_params(affinity=affinity, random_state=0, n_estimators=4)
        X = (y[:, None] == y).astype(float) if mode != "partitions" else table
        return model.fit(X, partitions=table if mode == "given" else None)

    again, once = fit(fit(NMFConsensus(2), first), second), fit(NMFConsensus(2), second)
    assert {n for n in vars(again) if n.endswith("_")} == {n for n in vars(once) if n.endswith("_")}
    for name, value in vars(again).items():
        if value is not None and name not in vars(once):
            raise AssertionError(f"{name} is left over from affinity={first!r}")
    np.testing.assert_array_equal(again.membership_, once.membership_)


def test_inputs_are_not_written_to(noisy):
    X = np.asarray(of_partitions(3, noisy).consensus_matrix())
    for affinity, data in [("partitions", noisy), ("precomputed", X), ("coassociation", X)]:
        data = data.copy()
        data.setflags(write=False)
        before = data.copy()
        model = NMFConsensus(3, affinity=affinity, n_estimators=3).fit(data)
        model.predict(data)
        np.testing.assert_array_equal(data, before)
