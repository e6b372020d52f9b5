"""Sweeps over numbers of clusters: what is fitted, scored, chosen, shared and refused."""

from collections import Counter
from contextlib import nullcontext
from dataclasses import FrozenInstanceError

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from internals import thin_counts
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_biclusters, make_programs, make_signatures
from nmfcluster.metrics import cophenetic_correlation
from nmfcluster.model_selection import sweep as sweep_module
from nmfcluster.model_selection import sweep_n_clusters
from nmfcluster.model_selection.results import ClusterSweep
from nmfcluster.model_selection.sweep import held_out_loss, one_standard_error_rule

pytestmark = pytest.mark.filterwarnings("error::UserWarning")

COUNTS = make_signatures(60, 4, 40, random_state=0)[0]
LOSSES = ("frobenius", "kullback-leibler")


def model(loss="kullback-leibler", **parameters):
    quick = {"n_estimators": 4, "n_init": 1, "tol": 1e-2, "random_state": 0}
    return NMFMetaCluster(2, loss=loss, **quick | parameters)


def swept(estimator=None, X=COUNTS, candidates=(3, 4, 5), **options):
    estimator = model() if estimator is None else estimator
    return sweep_n_clusters(
        estimator, X, candidates, **{"n_folds": 3, "random_state": 0} | options
    )


@pytest.fixture(scope="module")
def sweep():
    return swept()


def test_the_planted_number_is_found(sweep):
    assert isinstance(sweep, ClusterSweep)
    assert sweep.method == "held-out"
    assert sweep.n_clusters_ == 4
    assert sweep.best_estimator_ is sweep.estimators[1]
    assert sweep.best_estimator_.n_clusters == 4
    assert sweep.as_good.tolist() == [False, True, False]
    assert repr(sweep) == "ClusterSweep(4 of 3 to 5, by held-out)"


@pytest.mark.slow
@pytest.mark.parametrize("dispersion", [0, 0.1])
def test_programs_are_counted_whether_counts_are_dispersed_or_not(dispersion):
    X, _, _ = make_programs(
        200, 300, 6, depth=1000, dispersion=dispersion, random_state=1
    )
    found = swept(X=X, candidates=range(3, 10), n_folds=5)
    assert found.n_clusters_ == 6
    assert_allclose(found.dispersion, dispersion, rtol=0.25, atol=0.005)


@pytest.mark.slow
def test_dispersion_that_is_not_known_of_is_taken_for_clusters():
    X, _, _ = make_programs(200, 300, 5, depth=2000, dispersion=0.3, random_state=1)
    with warns_naming(UserWarning, "candidates"):
        assert swept(X=X, candidates=range(3, 9), dispersion=0).n_clusters_ == 8
    assert swept(X=X, candidates=range(3, 9)).n_clusters_ == 5


def test_figures_are_those_of_the_fits(sweep):
    for i, k in enumerate([3, 4, 5]):
        alone = model().set_params(n_clusters=k).fit(COUNTS)
        assert_array_equal(sweep.estimators[i].components_, alone.components_)
        assert sweep.recurrence[i] == alone.recurrence_.mean()
        assert sweep.smallest_recurrence[i] == alone.recurrence_.min()
        assert sweep.reconstruction_err[i] == alone.reconstruction_err_
        clear = cophenetic_correlation(alone.consensus_matrix())
        assert_allclose(sweep.cophenetic[i], clear)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("given", "method", "runs"),
    [("auto", "held-out", 5), ("auto", "recurrence", 10), (2, "auto", 2)],
)
def test_candidates_can_have_fewer_runs_than_the_one_that_is_chosen(
    given, method, runs
):
    long = model(n_estimators=runs + 1, max_iter=30)
    found = swept(long, candidates=[4, 5], method=method, n_estimators=given, n_folds=2)
    assert found.n_clusters_ == 4
    assert [fit.n_estimators for fit in found.estimators] == [runs + 1, runs]
    short = model(n_estimators=runs, max_iter=30).set_params(n_clusters=4).fit(COUNTS)
    assert found.recurrence[0] == short.recurrence_.mean()
    whole = clone(long).set_params(n_clusters=4).fit(COUNTS)
    assert_array_equal(found.best_estimator_.components_, whole.components_)


def test_the_table_makes_a_frame(sweep):
    frame = pd.DataFrame(sweep.table).set_index("n_clusters")
    assert frame.loc[4, "chosen"]
    assert frame["chosen"].sum() == 1
    assert_array_equal(frame["held_out_loss"], sweep.held_out_losses.mean(axis=1))
    assert frame.loc[4, "held_out_se"] == 0
    assert frame.shape == (3, 8)
    with pytest.raises(FrozenInstanceError):
        sweep.n_clusters_ = 3


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_held_out_loss_is_that_of_the_formula(loss, kind):
    X = COUNTS.astype(float)
    parts = [kind(part) for part in thin_counts(X, 4, np.random.default_rng(0))]
    found = held_out_loss(model(loss), kind(X), parts, 3, 1, 7)
    held = np.asarray(sp.csr_array(parts[1]).todense())
    seen = X - held
    alone = {
        "n_estimators": 1,
        "resample": None,
        "n_init": 1,
        "random_state": 7,
        "tol": 1e-2,
    }
    # the clusters of one run are that run: ways to find them differ by rounding alone
    fit = NMFMetaCluster(3, meta="nmf", loss=loss, **alone).fit(kind(seen))
    shares = (seen.sum(axis=0) + 0.5) / (seen.sum() + 0.5 * X.shape[1])
    of_clusters = fit.factor_ @ fit.components_
    means = (0.9 * of_clusters + 0.1 * np.outer(seen.sum(axis=1), shares)) / 3
    if loss == "frobenius":
        expected = ((held - means) ** 2).sum() / 2
    else:
        logs = np.log(np.where(held > 0, held / means, 1))
        expected = (held * logs - held + means).sum()
    assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_sparse_tables_are_scored_as_dense_ones(loss):
    X = np.where(COUNTS > 3, COUNTS, 0)
    dense = swept(model(loss, n_estimators=2), X)
    sparse = swept(model(loss, n_estimators=2), sp.csr_array(X))
    assert_allclose(sparse.held_out_losses, dense.held_out_losses, rtol=0.02)
    assert sparse.n_clusters_ == dense.n_clusters_
    assert all(
        sp.issparse(part)
        for part in thin_counts(sp.csr_array(X), 2, np.random.default_rng(0))
    )


@pytest.mark.slow
def test_the_result_does_not_depend_on_n_jobs(sweep):
    with joblib.parallel_config("threading"):
        again = swept(n_jobs=2)
    for name, values in sweep.table.items():
        assert_array_equal(again.table[name], values)
    assert_array_equal(again.held_out_losses, sweep.held_out_losses)


@pytest.mark.slow
def test_seeds_determine_the_result():
    unseeded = model(random_state=None)
    first, second = (swept(unseeded, random_state=3) for _ in range(2))
    assert_array_equal(first.held_out_losses, second.held_out_losses)
    assert_array_equal(first.reconstruction_err, second.reconstruction_err)
    other = swept(unseeded, random_state=4)
    assert (first.held_out_losses != other.held_out_losses).all()
    assert unseeded.random_state is None
    assert not hasattr(unseeded, "components_")


def test_nothing_is_fitted_twice(monkeypatch):
    fits = Counter()
    fit = NMFMetaCluster.fit

    def counted(self, X, *others):
        fits[self.n_clusters, self.n_estimators, X.tobytes()] += 1
        return fit(self, X, *others)

    monkeypatch.setattr(NMFMetaCluster, "fit", counted)
    with warns_naming(UserWarning, "largest"):
        swept(candidates=[2, 3])
    # of each number one fit to all counts, three to parts
    assert sorted(fits.values()) == [1] * 8
    assert Counter(n for _, n, _ in fits) == {4: 2, 1: 6}
    assert len({table for _, _, table in fits}) == 4


def test_candidates_are_put_in_order(sweep):
    shuffled = swept(candidates=iter([5, np.int64(3), 4]), method="recurrence")
    assert_array_equal(shuffled.candidates, [3, 4, 5])
    assert_array_equal(shuffled.smallest_recurrence, sweep.smallest_recurrence)
    assert swept(candidates=[4], n_folds=2).n_clusters_ == 4


def test_the_largest_candidate_is_an_answer_to_doubt():
    with warns_naming(UserWarning, "candidates", "2"):
        found = swept(candidates=[1, 2])
    assert found.candidates.tolist() == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES)
def test_tables_without_counts_are_chosen_for_by_recurrence(loss):
    X, _, _ = make_biclusters((40, 60), 4, noise=0.2, random_state=0)
    asked = model(loss, resample=0.8, n_estimators=8, tol=1e-4)
    of_counts = loss == "kullback-leibler"  # these may have been meant to be counts
    with warns_naming(UserWarning, "X", "whole") if of_counts else nullcontext():
        found = swept(asked, X, range(2, 7))
    assert found.method == "recurrence"
    assert found.held_out_losses is found.held_out_se is found.dispersion is None
    assert "held_out_loss" not in found.table
    assert found.n_clusters_ == 4
    again = swept(asked, X, range(2, 7), method="recurrence")
    assert_array_equal(again.smallest_recurrence, found.smallest_recurrence)


def test_counts_can_be_chosen_for_by_recurrence():
    found = swept(method="recurrence")
    assert (found.method, found.n_clusters_) == ("recurrence", 4)
    least = found.smallest_recurrence
    assert_array_equal(found.as_good, least >= least.max() - 0.15)
    assert found.candidates[found.as_good][-1] == 4


def test_names_of_columns_reach_the_fits():
    frame = pd.DataFrame(COUNTS, columns=[f"c{i}" for i in range(40)])
    named, plain = (
        swept(X=table, candidates=[4], n_folds=2) for table in (frame, COUNTS)
    )
    assert named.best_estimator_.feature_names_in_[0] == "c0"
    assert_array_equal(named.held_out_losses, plain.held_out_losses)


@pytest.mark.slow
def test_known_programs_are_kept_in_all_fits():
    names = [f"c{i}" for i in range(40)]
    frame = pd.DataFrame(COUNTS, columns=names)
    known = pd.DataFrame(
        make_signatures(60, 4, 40, random_state=0)[2][:2], columns=names
    )
    with warns_naming(UserWarning, "fixed_components", "columns"):
        found = swept(
            model(fixed_components=known.iloc[:, ::-1]), frame, [4, 5], n_folds=2
        )
    assert found.n_clusters_ == 4
    array = swept(model(fixed_components=known.to_numpy()), COUNTS, [4, 5], n_folds=2)
    assert_allclose(found.held_out_losses, array.held_out_losses)


def test_a_candidate_that_fails_is_a_row_of_the_table():
    known = make_signatures(60, 4, 40, random_state=0)[2][:3]
    with warns_naming(FitFailedWarning, "n_clusters=2"):
        found = swept(model(fixed_components=known), candidates=[2, 4, 5], n_folds=2)
    assert found.n_clusters_ == 4
    assert found.estimators[0] is None
    for name in ("held_out_loss", "recurrence", "reconstruction_err", "cophenetic"):
        assert np.isnan(found.table[name]).tolist() == [True, False, False]
    assert not found.as_good[0]
    with warns_naming(FitFailedWarning, "n_clusters=2"):
        found = swept(
            model(fixed_components=known), candidates=[2, 4, 5], method="recurrence"
        )
    assert found.as_good.tolist() == [False, True, False]


def test_it_raises_where_all_candidates_fail():
    with raises_naming(ValueError, "sparsity") as caught:
        swept(model(sparsity=0.1))
    assert "all 3 candidates failed" in caught.value.__notes__[0]


def test_it_raises_where_no_part_can_be_fitted(monkeypatch):
    monkeypatch.setitem(sweep_module.SINGLE_RUN, "n_estimators", 0)
    with raises_naming(ValueError, "n_estimators"):
        swept(candidates=[3], n_folds=2)


@pytest.mark.slow
def test_a_part_that_fails_leaves_its_number_out(monkeypatch):
    def failing(estimator, X, parts, k, part, seed):
        failed = k == 4 and part == 1
        return (
            ValueError("by chance")
            if failed
            else held_out_loss(estimator, X, parts, k, part, 0)
        )

    monkeypatch.setattr(sweep_module, "held_out_loss", failing)
    with warns_naming(FitFailedWarning, "n_clusters=4", "by chance"):
        found = swept(candidates=[3, 4, 5, 6, 7])
    assert found.n_clusters_ == 5
    assert np.flatnonzero(np.isnan(found.table["held_out_loss"])).tolist() == [1]
    assert found.estimators[1] is not None


def test_the_smallest_number_within_one_error_is_taken():
    losses = np.array(
        [[5.0, 5.0, 5.0], [2.0, 4.0, 3.1], [3.0, 3.0, 3.0], [4.0, 4.1, 4.2]]
    )
    as_good, errors = one_standard_error_rule(losses)
    assert_allclose(errors[1], np.std([-1, 1, 0.1], ddof=1) / np.sqrt(3))
    assert as_good.tolist() == [False, True, True, False]
    losses[1] = np.nan
    assert one_standard_error_rule(losses)[0].tolist() == [False, False, True, False]


def test_a_sweep_can_be_drawn(sweep):
    pytest.importorskip("matplotlib").use("Agg")
    display = sweep.plot()
    assert_array_equal(display.lines_["recurrence"].get_ydata(), sweep.recurrence)
    pytest.importorskip("matplotlib.pyplot").close("all")


def test_default_candidates_end_at_the_number_of_samples():
    quick = model(n_estimators=2, max_iter=20)
    found = sweep_n_clusters(quick, COUNTS[:6], n_folds=2, random_state=0)
    assert found.candidates.tolist() == [2, 3, 4, 5, 6]
    with raises_naming(ValueError, "candidates", "6"):
        swept(X=COUNTS[:6], candidates=range(2, 15))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", LOSSES)
def test_entries_that_are_missing_are_left_out_of_every_rule(loss):
    X = COUNTS.astype(float)
    X[np.random.default_rng(0).uniform(size=X.shape) < 0.15] = np.nan
    found = swept(model(loss), X)
    assert found.n_clusters_ == 4
    assert found.method == "held-out"
    sparse = swept(model(loss), sp.csr_array(X), [4])
    # to the tolerance of the fits
    assert_allclose(sparse.held_out_losses[0], found.held_out_losses[1], rtol=0.01)
    parts = thin_counts(X, 3, np.random.default_rng(0), 0.1)
    assert_array_equal(np.isnan(parts[0]), np.isnan(X))
    assert_array_equal(sum(parts), X)


def test_values_that_are_no_counts_and_miss_some_are_judged_by_recurrence():
    X = COUNTS.astype(float)
    X[np.random.default_rng(0).uniform(size=X.shape) < 0.15] = np.nan
    shares = X / np.nansum(X, axis=1, keepdims=True)
    by_runs = swept(model("frobenius"), shares)
    assert by_runs.method == "recurrence"
    assert np.isfinite(by_runs.recurrence).all()


def test_stages_are_told_before_they_start(caplog):
    caplog.set_level("INFO", "nmfcluster")
    swept(n_estimators=1, n_folds=3)
    own = "sweep_n_clusters: "
    assert [
        line.removeprefix(own) for line in caplog.messages if line.startswith(own)
    ] == [
        "fitting 3 numbers of clusters, 1 run of each",
        "fitting 3 numbers of clusters to 3 parts of the counts",
        "fitting n_clusters=4, 4 runs",
    ]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "storage"),  # with seeds whose twins do not recur in all runs
    [
        ({"random_state": 3, "noise": 1e-5}, sp.csr_array),
        ({"random_state": 5, "n_clusters": 5, "shape": (40, 60)}, np.float32),
    ],
)
def test_a_table_that_is_the_product_of_factors_has_as_many_clusters(kind, storage):
    X, W, _ = make_biclusters(**kind)
    numbers, k = np.arange(W.shape[1] - 1, W.shape[1] + 2), W.shape[1]
    found = swept(
        NMFMetaCluster(2, n_estimators=8, random_state=0), storage(X), numbers
    )
    assert (found.method, found.n_clusters_) == ("exact", k)
    assert_array_equal(found.as_good, numbers == k)


def test_recurrence_is_asked_by_name_and_where_fits_leave_something_or_follow_all():
    X = make_biclusters(random_state=0)[0]
    assert (
        swept(model("frobenius"), X, (3, 5), method="recurrence").method == "recurrence"
    )
    # of which 4 clusters leave nothing
    noise = np.random.default_rng(0).exponential(size=(30, 4))
    with warns_naming(UserWarning, "candidates"):
        assert swept(model("frobenius"), noise, (2, 4)).method == "recurrence"
