"""NMFMetaCluster: what must not matter, what is warned of, and data of patients."""

import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_biclusters
from nmfcluster.metrics import clustering_accuracy, cophenetic_correlation

PLANTED = make_biclusters(random_state=0)[0]
# cut, so that no two clusters are of one size, of which either could come first
EASY = make_biclusters(
    (40, 30), 3, twins=False, overlap=0.1, noise=0.1, random_state=1
)[0][:-4]


def model(n_clusters=3, **parameters):
    return NMFMetaCluster(
        n_clusters, **{"n_estimators": 4, "random_state": 0} | parameters
    )


def assert_near(fitted, expected, scale=1):
    """Check that clusters are the same, row by row, of a table that was multiplied by `scale`."""
    W = scale * expected.factor_
    assert_array_equal(fitted.labels_, expected.labels_)
    assert_allclose(fitted.components_, expected.components_, atol=1e-6)
    assert_allclose(fitted.factor_, W, atol=1e-6 * W.max())
    assert_allclose(fitted.recurrence_, expected.recurrence_)


# --- what must not matter ------------------------------------------------------------------------

COMBINATIONS = [
    {},
    {"meta": "nmf"},
    {"sparsity": 0.05, "penalty": "l1_columns"},
    {"sparsity": 0.05, "penalty": "l1_columns", "meta": "nmf"},
    {"sparsity": 0.05, "penalty": "l2"},
    {"sparsity": 0.01, "penalty": "l1"},
]


each_combination = pytest.mark.parametrize("number", range(len(COMBINATIONS)))


@cache
def of_easy(number=None):
    """Fit the easy table, which nothing is said of; without a number, with all defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model(**{} if number is None else COMBINATIONS[number]).fit(EASY)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("options", "storages"),
    [
        ({}, [sp.csc_array, sp.csr_matrix]),
        *((o, [sp.csr_array]) for o in COMBINATIONS[1:4]),
    ],
    ids=str,
)
def test_sparse_is_never_made_dense_and_gives_the_same(options, storages, monkeypatch):
    table = np.where(EASY > 0.3, EASY, 0)

    def refuse(self, *arguments, **options):
        raise AssertionError("a sparse table was made an array")

    expected = model(**options).fit(table)
    X = sp.csr_array(table)
    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.coo_array):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, refuse)
    for kept in (storage(X) for storage in storages):
        fitted = model(**options).fit(kept)
        assert_near(fitted, expected)
        assert_array_equal(fitted.transform(kept), fitted.factor_)
        assert_allclose(
            fitted.reconstruction_err_, expected.reconstruction_err_, rtol=1e-6
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("number", "storage"),
    [*((number, np.asarray) for number in (0, 1, 3, 5)), (0, sp.csr_array)],
)
def test_float32_stays_float32(number, storage):
    fitted = model(**COMBINATIONS[number]).fit(storage(EASY.astype(np.float32)))
    for name in ("factor_", "components_", "membership_"):
        assert getattr(fitted, name).dtype == np.float32
    assert fitted.transform(EASY.astype(np.float32)).dtype == np.float32
    assert_array_equal(
        fitted.transform(storage(EASY.astype(np.float32))), fitted.factor_
    )
    expected = of_easy(number)
    assert np.mean(fitted.labels_ == expected.labels_) >= 0.95
    assert_allclose(fitted.components_, expected.components_, atol=0.02)


@pytest.mark.sampled(2)
@each_combination
def test_scale_does_not_matter(number):
    expected, options = of_easy(number), COMBINATIONS[number]
    # lambda has the unit of the table: both are scaled
    if options.get("penalty") == "l1":
        options = options | {"sparsity": 1000 * options["sparsity"]}
    assert_near(model(**options).fit(1000 * EASY), expected, scale=1000)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", [{}, {"sparsity": 0.05, "meta": "nmf"}], ids=str)
def test_a_power_of_two_changes_no_bit(options):
    expected, fitted = (model(**options).fit(scale * EASY) for scale in (1, 2.0**20))
    assert_array_equal(fitted.components_, expected.components_)
    assert_array_equal(fitted.factor_, expected.factor_ * 2.0**20)
    assert_array_equal(fitted.partitions_, expected.partitions_)


def test_order_of_samples_and_columns_does_not_matter():
    table, rng = PLANTED, np.random.RandomState(0)
    rows, columns = (rng.permutation(n) for n in table.shape)
    options = {"n_clusters": 4, "n_estimators": 6, "tol": 1e-8, "max_iter": 3000}
    expected = model(**options).fit(table)
    fitted = model(**options).fit(table[rows][:, columns])
    order = (expected.components_[:, columns] @ fitted.components_.T).argmax(axis=0)
    assert sorted(order) == list(range(len(order)))  # of clusters of one size
    assert_array_equal(order[fitted.labels_], expected.labels_[rows])
    assert_allclose(
        fitted.components_, expected.components_[order][:, columns], atol=1e-3
    )
    assert_allclose(
        fitted.factor_, expected.factor_[rows][:, order], atol=2e-3 * table.max()
    )


def test_how_the_table_is_kept_does_not_matter():
    expected = of_easy()
    locked = EASY.copy()
    locked.flags.writeable = False
    kinds = [
        locked,
        np.asfortranarray(EASY),
        pd.DataFrame(EASY),
        EASY.tolist(),
        EASY[::-1][::-1],
    ]
    for table in kinds:
        before = np.array(table)
        fitted = model().fit(table)
        assert_near(fitted, expected)  # sums may run in another order
        assert_array_equal(np.asarray(table), before)
    narrow = sp.csr_array(EASY)
    narrow.data.flags.writeable = False
    assert_near(model().fit(narrow), expected)


def test_duplicates_are_treated_alike():
    fitted = model().fit(np.repeat(EASY, 3, axis=0))
    assert_array_equal(fitted.labels_, np.repeat(fitted.labels_[::3], 3))
    assert_allclose(fitted.factor_, np.repeat(fitted.factor_[::3], 3, axis=0))
    assert adjusted_rand_score(fitted.labels_[::3], of_easy().labels_) == 1


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "options",
    [
        {"n_estimators": 1},
        {"n_clusters": 1, "n_estimators": 1},
        {"n_clusters": 1, "meta": "nmf"},
        {"base_n_clusters": 1},
        {"base_n_clusters": (1, 7)},
        {"base_n_clusters": (1, 7), "meta": "nmf"},
        {"n_clusters": 6, "base_n_clusters": 2, "n_init": 20},
        {"max_iter": 1},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_any_numbers_of_runs_and_clusters(options):
    fitted = model(**{"max_iter": 100} | options).fit(EASY)
    k, total = fitted.n_clusters, len(fitted.base_runs_)
    assert fitted.components_.shape == (k, EASY.shape[1])
    assert fitted.correspondence_.shape == (total, k)
    assert len(np.unique(fitted.base_runs_)) == fitted.n_estimators
    assert np.isfinite(fitted.factor_).all()
    assert set(fitted.labels_) <= set(range(k))
    assert_array_equal(fitted.predict(EASY), fitted.labels_)
    sizes = np.bincount(fitted.labels_, minlength=k)
    assert (np.diff(sizes) <= 0).all()


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("meta", "width"), [("ptf", 2), ("nmf", 1)])
def test_more_clusters_than_columns(meta, width):
    fitted = model(4, meta=meta, max_iter=200).fit(EASY[:, :width] + 0.01)
    assert fitted.components_.shape == (4, width)
    assert_allclose(
        fitted.inverse_transform(fitted.factor_), EASY[:, :width] + 0.01, atol=0.05
    )


def test_no_state_is_shared_between_fits():
    state = np.random.RandomState(0)
    first, second = (model(random_state=state).fit(EASY) for _ in range(2))
    assert_array_equal(first.components_, of_easy().components_)
    assert not np.array_equal(first.run_losses_, second.run_losses_)


# --- what is warned of ---------------------------------------------------------------------------


def test_nothing_is_said_where_all_is_well():
    for number in range(len(COMBINATIONS)):
        of_easy(number)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(n_clusters=1).fit(EASY)


def test_runs_and_the_last_factorization_that_do_not_converge_are_counted():
    with pytest.warns(ConvergenceWarning) as caught:
        model(max_iter=15, tol=1e-9).fit(EASY)
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == 2
    assert (
        "NMFMetaCluster did not converge within max_iter=15 updates: the loss still"
        in texts[0]
    )
    assert texts[1].startswith(
        "4 of the 4 runs did not converge within max_iter=15 updates."
    )
    assert all(text.endswith("Increase max_iter or tol.") for text in texts)
    assert {warning.filename for warning in caught} == {__file__}


def test_a_loss_that_ends_near_zero_can_have_fallen_by_any_part_of_itself():
    X = np.full((23, 3), 32767)
    with pytest.warns(ConvergenceWarning) as caught:
        model(n_clusters=2, max_iter=3, sparsity=5e-324).fit(X)
    texts = [str(warning.message) for warning in caught]
    assert any("by inf of its scale over the last 3." in text for text in texts)
    assert {warning.category for warning in caught} == {ConvergenceWarning}


def test_fewer_clusters_than_asked_for_are_counted():
    with warns_naming(ConvergenceWarning, "1 cluster", "n_clusters=3") as w:
        model().fit(np.arange(1.0, 20)[:, None])  # of one column all clusters are alike
    assert {warning.filename for warning in w} == {__file__}


def test_stages_are_logged(caplog):
    caplog.set_level("INFO", "nmfcluster")
    model(n_estimators=6, base_n_clusters=(2, 3)).fit(EASY)
    assert all(line.startswith("NMFMetaCluster: ") for line in caplog.messages)
    for stage in (
        "runs of 2 clusters",
        "runs of 3 clusters",
        "tensor_hals",
        "last factorization",
    ):
        assert (
            sum(stage in line and "best loss" in line for line in caplog.messages) == 1
        )


# --- data of patients ----------------------------------------------------------------------------

SEEDS = range(3)


@pytest.fixture
def leukaemia(load_data):
    X, y = load_data("all_aml")  # 19 ALL of B cells, 8 of T cells, 11 AML
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("meta", "resample", "least"),
    [("ptf", None, 0.999), ("ptf", 0.8, 0.85), ("nmf", None, 0.999)],
)
def test_kinds_of_leukaemia(leukaemia, meta, resample, least):
    """All but AML_13 are placed as they were diagnosed; it comes to lie with ALL of B cells."""
    (X, y), recurrences = leukaemia, []
    for seed in SEEDS:
        fitted = NMFMetaCluster(3, meta=meta, resample=resample, random_state=seed).fit(
            X
        )
        kinds = np.array([0, 2, 1])  # by size
        assert_array_equal(np.flatnonzero(kinds[fitted.labels_] != y), [28])
        recurrences.append(fitted.recurrence_.min())
    # with a share of the samples .88 over 16 seeds, .8 to .98
    assert np.mean(recurrences) > least


def test_acute_leukaemia_is_of_two_kinds(leukaemia):
    """AML_13 and AML_5 are the only ones that lie with ALL."""
    X, y = leukaemia
    fitted = NMFMetaCluster(2, n_estimators=10, random_state=0).fit(X)
    assert_array_equal(np.flatnonzero(fitted.labels_ != (y == 2)), [28, 35])


@pytest.mark.slow
def test_the_cophenetic_curve_of_leukaemia(leukaemia):
    """It is 1 for two to four kinds, and less for six."""
    X, _ = leukaemia
    curve = [
        cophenetic_correlation(
            NMFMetaCluster(k, n_estimators=25, resample=None, random_state=0)
            .fit(X)
            .consensus_matrix()
        )
        for k in (2, 3, 4, 6)
    ]
    assert_allclose(curve[:3], 1, atol=1e-9)
    assert 0.99 < curve[3] < 1 - 1e-4


@pytest.fixture
def lung(load_data):
    """Return lung samples of length 1, their genes divided by the mean before."""
    X, y = load_data("lung_bhattacharjee")
    X = X / X.mean(axis=0)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


@pytest.mark.slow
@pytest.mark.parametrize(
    ("resample", "least", "correlation"), [(None, 0.999, 0.9999), (0.8, 0.98, 0.99)]
)
def test_kinds_of_lung_tumours(lung, resample, least, correlation):
    """Adenocarcinomas, carcinoids, squamous cell carcinomas and normal tissue are fitted.

    The six small cell carcinomas have no cluster: four are with the carcinoids, neuroendocrine
    tumours like them.
    """
    X, y = lung
    for seed in SEEDS:
        fitted = NMFMetaCluster(4, resample=resample, random_state=seed).fit(X)
        assert clustering_accuracy(y, fitted.labels_) > 0.905
        assert adjusted_rand_score(y, fitted.labels_) > 0.78
        table = np.array(
            [np.bincount(fitted.labels_[y == c], minlength=4) for c in range(5)]
        )
        assert_array_equal(table.argmax(axis=1), [0, 3, 1, 2, 1])
        shares = table.max(axis=1) / table.sum(axis=1)
        assert (shares[[0, 1, 3, 4]] > 0.9).all()
        assert fitted.recurrence_.min() > least
        assert cophenetic_correlation(fitted.consensus_matrix()) > correlation


@pytest.mark.slow
@pytest.mark.parametrize(("resample", "least"), [(None, 0.999), (0.8, 0.92)])
def test_five_clusters_of_lung_samples_are_stable_and_split_adenocarcinomas(
    lung, resample, least
):
    (X, y), recurrences = lung, []
    for seed in SEEDS:
        fitted = NMFMetaCluster(5, resample=resample, random_state=seed).fit(X)
        table = np.array(
            [np.bincount(fitted.labels_[y == c], minlength=5) for c in range(5)]
        )
        # a second cluster of them
        assert_array_equal(table.argmax(axis=0), [0, 0, 1, 4, 3])
        assert table.max(axis=0).sum() > 0.9 * len(y)  # purity
        recurrences.append(fitted.recurrence_.min())
    # with a share of the samples .95 over 16 seeds, .87 to .98
    assert np.mean(recurrences) > least
