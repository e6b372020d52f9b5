"""Runs that are kept on disk: a fit that was stopped goes on where it was."""

import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.base import clone

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_programs
from nmfcluster.meta.objective import make_objective
from nmfcluster.meta.runs import Resampled, run_many
from nmfcluster.meta.squares import from_standardised


@pytest.fixture
def counted(monkeypatch):
    """Count the batches of runs, each of which sees a table of its own, and fail at one."""
    made = {"batches": 0, "fails": None}
    original = Resampled.seen_by

    def seen_by(self, start):
        made["batches"] += 1
        if made["batches"] == made["fails"]:
            raise RuntimeError("stopped")
        return original(self, start)

    monkeypatch.setattr(Resampled, "seen_by", seen_by)
    return made


def model(folder, **parameters):
    chosen = {
        "n_estimators": 6,
        "loss": "kullback-leibler",
        "resample": "poisson",
        "tol": 1e-2,
    } | parameters
    return NMFMetaCluster(3, memory=folder, random_state=0, **chosen)


X = make_programs(40, 30, 3, random_state=0)[0].astype(float)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_second_fit_makes_no_run_again(tmp_path, counted, kind):
    first = model(str(tmp_path)).fit(kind(X))
    before = counted["batches"]
    again = model(str(tmp_path), n_jobs=2).fit(kind(X))
    assert counted["batches"] == before == 6
    plain = model(None).fit(kind(X))
    for other in (again, plain):
        assert_array_equal(first.components_, other.components_)
        assert_array_equal(first.run_losses_, other.run_losses_)


def test_a_fit_that_was_stopped_goes_on(tmp_path, counted):
    counted["fails"] = 4
    with pytest.raises(RuntimeError, match="stopped"):
        model(joblib.Memory(str(tmp_path), verbose=0)).fit(X)
    counted["fails"], counted["batches"] = None, 0
    model(str(tmp_path)).fit(X)
    assert counted["batches"] == 3


def test_more_runs_make_the_new_ones_alone(tmp_path, counted):
    model(str(tmp_path)).fit(X)
    counted["batches"] = 0
    model(str(tmp_path), n_estimators=8).fit(X)
    assert counted["batches"] == 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_runs_on_the_table_itself_are_kept_in_batches(tmp_path, loss):
    parameters = {"loss": loss, "resample": None}
    expected = model(str(tmp_path), **parameters).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = model(str(tmp_path), **parameters).fit(X)
    assert_array_equal(again.components_, expected.components_)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_runs_of_other_fits_are_not_taken(tmp_path):
    first = model(str(tmp_path), n_estimators=3).fit(X)
    for changed in (
        {"loss": "frobenius"},
        {"resample": "bootstrap"},
        {"tol": 1e-3},
        {"max_iter": 10},
        {"random_state": 1},
        {"n_clusters": 2},
        {"fixed_components": X[:1] + 1},
    ):
        other = clone(first).set_params(**changed)
        expected = clone(other).set_params(memory=None).fit(X).components_
        assert_array_equal(other.fit(X).components_, expected, err_msg=str(changed))


@pytest.mark.slow
def test_runs_on_other_data_or_weights_are_not_taken(tmp_path):
    model(str(tmp_path)).fit(X)
    table, weights = X.copy(), np.arange(len(X)) % 3
    table[0, 0] = np.nan
    for data, counts in ((X + 1, None), (table, None), (X, weights)):
        found = model(str(tmp_path)).fit(data, sample_weight=counts)
        expected = model(None).fit(data, sample_weight=counts)
        assert_array_equal(found.components_, expected.components_)


def test_first_runs_are_the_same_however_many_there_are():
    losses = [run_many(*_given(n)).losses for n in (3, 5)]
    assert set(losses[0]) <= set(losses[1])


def _given(n_runs):
    estimator = model(None, n_estimators=n_runs)
    objective = make_objective(X, estimator.loss)
    plan = estimator._solver_config(from_standardised, relative_to_loss=True)
    return objective, plan, np.full(n_runs, 3), np.random.RandomState(0), "poisson"


def test_what_is_no_folder_is_refused_by_name(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for wrong in ("", "a\0b", str(file), str(file / "below")):
        with raises_naming(ValueError, "memory"):
            model(wrong).fit(X)


@pytest.mark.slow
def test_what_is_kept_and_no_run_is_made_again_with_a_warning(tmp_path, caplog, capfd):
    expected = model(str(tmp_path)).fit(X).components_
    kept = sorted(tmp_path.rglob("output.pkl"))
    short = joblib.load(kept[0])
    short[0].factors = (short[0].factors[0][1:], short[0].factors[1])
    for number, wrong in enumerate((42, [], ["run"], short, None, b"damaged", b"")):
        if isinstance(wrong, bytes):
            kept[number % len(kept)].write_bytes(wrong)
        else:
            joblib.dump(wrong, kept[number % len(kept)])
        with warns_naming(UserWarning, "run") as caught:
            assert_array_equal(model(str(tmp_path)).fit(X).components_, expected)
        assert {warning.filename for warning in caught} == {__file__}
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # it was kept instead
            assert_array_equal(model(str(tmp_path)).fit(X).components_, expected)
    assert not caplog.records  # joblib would log a traceback
    assert capfd.readouterr() == ("", "")
