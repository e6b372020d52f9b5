"""What must not matter to `NMFConsensus`: orders, names, forms of a table, storage."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from comparing import same_partition
from consensus.cases import factor_of, of_partitions, together_and_seen
from internals import SymmetricObjective, bregman_nmf, spectral_start
from partitions.cases import in_all_forms, in_both_forms
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus
from nmfcluster.consensus import estimator
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions.ensemble import Ensemble
from nmfcluster.similarity import Explicit


@pytest.mark.sampled(3)
@pytest.mark.parametrize("coarse_size", [30, 10_000])
@in_all_forms
def test_order_of_samples_does_not_matter(
    name, coarse_size, normalize, request, monkeypatch
):
    monkeypatch.setattr(estimator, "COARSE", coarse_size)
    table = request.getfixturevalue(name)
    order = np.random.RandomState(1).permutation(len(table))
    first = of_partitions(3, table, normalize=normalize)
    second = of_partitions(3, table[order], normalize=normalize)
    np.testing.assert_array_equal(second.labels_, first.labels_[order])
    np.testing.assert_array_equal(second.membership_, first.membership_[order])
    np.testing.assert_array_equal(second.confidence_, first.confidence_[order])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["noisy", "holey"])
def test_names_of_labels_do_not_matter(name, request):
    table = request.getfixturevalue(name)
    first = of_partitions(3, table)
    for other in (
        table * 10**12 + 3,
        np.array(["not seen", "crab", "eel", "ray"])[table + 1],
        table.astype(float),
        table.astype(np.int8),
    ):
        renamed = other.astype(object)
        renamed[table < 0] = None
        second = of_partitions(3, renamed)
        np.testing.assert_array_equal(second.partitions_, first.partitions_)
        np.testing.assert_array_equal(second.membership_, first.membership_)


@pytest.mark.sampled(2)
@in_both_forms
def test_order_of_the_names_does_not_matter(noisy, normalize):
    options = {"normalize": normalize, "n_init": 1, "tol": 1e-12, "max_iter": 5000}
    first = of_partitions(3, noisy, **options)
    second = of_partitions(3, noisy.max() - noisy, **options)
    np.testing.assert_allclose(second.membership_, first.membership_, atol=1e-3)


@pytest.mark.sampled(2)
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
        np.array(["b", "c", "d", None], dtype=object)[np.maximum(column, -1)]
        if t % 2
        else list(column)
        for t, column in enumerate(table.T)
    ]


def as_strings_with_none(table):
    return np.array(["x", "y", "z", None], dtype=object)[np.maximum(table, -1)]


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
        {
            f"p{t}": list(column)
            for t, column in enumerate(as_strings_with_none(table).T)
        }
    )


FORMS = [
    as_floats_with_nan,
    as_strings_with_none,
    as_pandas,
    as_pandas_nullable,
    as_pandas_categories,
    as_polars,
    as_polars_strings,
    as_list_of_vectors,
    as_list_of_mixed_kinds,
]


@pytest.fixture(scope="module")
def plain():
    """Return a table with gaps, and the fit of it as an array."""
    table = make_partitions(
        (50, 30, 20), n_partitions=12, noise=0.2, missing=0.3, random_state=0
    )[0]
    return table, of_partitions(3, table)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_label_table_agree(form, plain):
    holey, plain = plain
    X = np.random.RandomState(0).normal(size=(len(holey), 2))
    given = NMFConsensus(3, random_state=0).fit(X, partitions=form(holey))
    np.testing.assert_array_equal(given.partitions_, plain.partitions_)
    np.testing.assert_array_equal(given.labels_, plain.labels_)
    if form in (as_list_of_vectors, as_list_of_mixed_kinds):  # X is no list
        return
    other = of_partitions(3, form(holey))
    np.testing.assert_array_equal(other.partitions_, plain.partitions_)
    np.testing.assert_array_equal(other.labels_, plain.labels_)
    np.testing.assert_array_equal(other.predict(form(holey)), plain.predict(holey))


def test_booleans_are_labels():
    y = np.repeat([True, False], [20, 9])
    model = of_partitions(2, np.column_stack([y, ~y, y]))
    np.testing.assert_array_equal(model.labels_, ~y)


@pytest.mark.sampled(2)
@in_all_forms
def test_a_partition_of_weight_0_is_left_out(name, normalize, request):
    table = request.getfixturevalue(name)
    options = {"normalize": normalize, "n_init": 1, "tol": 1e-12, "max_iter": 5000}
    without = of_partitions(3, table[:, 1:], **options)
    weighted = of_partitions(3, table, weights=[0] + [2] * 11, **options)
    np.testing.assert_allclose(weighted.membership_, without.membership_, atol=1e-3)
    np.testing.assert_allclose(weighted.confidence_, without.confidence_, atol=1e-12)
    np.testing.assert_allclose(weighted.loss_, without.loss_, rtol=1e-6)
    np.testing.assert_allclose(weighted.weights_, [0] + [1 / 11] * 11)


@pytest.mark.sampled(2)
@in_all_forms
def test_a_partition_of_weight_2_counts_twice(name, normalize, request):
    table = request.getfixturevalue(name)
    options = {"normalize": normalize, "n_init": 1, "tol": 1e-12, "max_iter": 5000}
    repeated = of_partitions(3, np.column_stack([table[:, 0], table]), **options)
    weighted = of_partitions(3, table, weights=[2] + [1] * 11, **options)
    np.testing.assert_allclose(weighted.membership_, repeated.membership_, atol=1e-3)
    np.testing.assert_allclose(weighted.confidence_, repeated.confidence_, atol=1e-12)
    np.testing.assert_allclose(weighted.loss_, repeated.loss_, rtol=1e-6)


@pytest.mark.filterwarnings(
    "ignore:.* did not converge:sklearn.exceptions.ConvergenceWarning"
)
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
    start = spectral_start(ensemble.similarity(float, votes, np.ones(len(ensemble))), 3)
    start = start / np.sqrt(ensemble.counts)[:, None]
    A = Explicit(together.sum(axis=0))
    steps = bregman_nmf(SymmetricObjective(A, constant), start[groups][None])
    whole = [next(steps) for _ in range(31)]
    np.testing.assert_allclose(
        model.loss_curve_, [loss[0] for _, loss in whole], rtol=1e-9
    )
    H = whole[-1][0][0][0]
    found = factor_of(model, kept)
    order = abs(H[:, :, None] - found[:, None, :]).sum(axis=0).argmin(axis=0)
    np.testing.assert_allclose(found, H[:, order], atol=1e-9)


@pytest.mark.sampled(2)
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


@pytest.mark.sampled(4)
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
