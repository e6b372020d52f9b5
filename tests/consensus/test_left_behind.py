"""What a fit of `NMFConsensus` logs, warns of, and leaves behind."""

import re

import numpy as np
import pytest
from consensus.cases import of_partitions
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from nmfcluster import NMFConsensus
from nmfcluster.consensus import estimator
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions.ensemble import Ensemble


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("parameters", "stages"),
    [
        ({}, ["base partitions", "distinct label rows", r"3 starts"]),
        ({"affinity": "partitions"}, ["distinct label rows", r"3 starts"]),
        ({"affinity": "precomputed"}, [r"3 starts: best loss"]),
    ],
    ids=str,
)
def test_the_log_has_a_line_before_and_after_a_stage(parameters, stages, noisy, caplog):
    X = np.asarray(of_partitions(3, noisy).consensus_matrix())
    X = noisy if parameters.get("affinity") == "partitions" else X
    model = NMFConsensus(3, n_estimators=5, random_state=0, **parameters)
    model.fit(X)
    assert not caplog.messages
    caplog.set_level("INFO", "nmfcluster")
    model.fit(X)
    lines = [
        line
        for line in caplog.messages
        if not re.search(r" \.\.\.$|: \d+ of \d+$", line)
    ]
    assert len(lines) == len(stages)
    for line, stage in zip(lines, stages, strict=True):
        assert line.startswith("NMFConsensus: ")
        assert re.search(stage, line)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("affinity", ["coassociation", "partitions", "precomputed"])
def test_running_out_of_updates_is_warned_of_once_with_the_figures(affinity):
    table, _ = make_partitions((40, 30, 20), n_partitions=10, noise=0.5, random_state=0)
    X = np.asarray(of_partitions(3, table).consensus_matrix())
    X = table if affinity == "partitions" else X
    model = NMFConsensus(
        3, affinity=affinity, max_iter=2, n_init=4, n_estimators=5, random_state=0
    )
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    message = str(caught[0].message)
    assert re.search(r"NMFConsensus .*max_iter=2 .*\d\.\de[-+]\d\d", message)
    assert model.n_iter_ == 2


@pytest.mark.filterwarnings(
    "ignore:.* did not converge:sklearn.exceptions.ConvergenceWarning"
)
def test_running_all_updates_can_be_asked_for():
    model = of_partitions(
        3, make_partitions(90, random_state=0)[0], tol=-1, max_iter=37
    )
    assert {len(curve) for curve in model.loss_curves_} == {38}


class Interrupted(KMeans):
    """Is interrupted by the user."""

    def fit(self, X, y=None, sample_weight=None):
        raise KeyboardInterrupt


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


def state_of(model):
    return {name: id(value) for name, value in vars(model).items()}


@pytest.mark.sampled(2)
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
        monkeypatch.setattr(Ensemble, "confidence", interrupt)
    for model in (fresh, fitted):
        before = state_of(model)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X)
        assert state_of(model) == before
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert len(fitted.predict(X)) == 150


MODES = ["coassociation", "given", "partitions", "precomputed"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("second", MODES)
def test_fitting_again_in_another_way_leaves_nothing_behind(second):
    y = np.repeat([0, 1], 10)
    table = np.column_stack([y, y])

    def fit(model, mode):
        affinity = "coassociation" if mode == "given" else mode
        model.set_params(affinity=affinity, random_state=0, n_estimators=2, n_init=1)
        X = (y[:, None] == y).astype(float) if mode != "partitions" else table
        return model.fit(X, partitions=table if mode == "given" else None)

    once = fit(NMFConsensus(2), second)
    for first in MODES:
        again = fit(fit(NMFConsensus(2), first), second)
        assert vars(again).keys() == vars(once).keys(), (
            f"left over from affinity={first!r}"
        )
        np.testing.assert_array_equal(again.membership_, once.membership_)


def test_inputs_are_not_written_to(noisy):
    X = np.asarray(of_partitions(3, noisy).consensus_matrix())
    for affinity, data in [
        ("partitions", noisy),
        ("precomputed", X),
        ("coassociation", X),
    ]:
        data = data.copy()
        data.setflags(write=False)
        before = data.copy()
        model = NMFConsensus(3, affinity=affinity, n_estimators=3).fit(data)
        model.predict(data)
        np.testing.assert_array_equal(data, before)
