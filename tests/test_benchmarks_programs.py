"""How programs found in counts are scored and timed, and what is asked of other packages."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import raises_naming
from sklearn.decomposition import NMF

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.importorskip("benchmarks.datasets", reason="benchmarks are not installed")

from benchmarks.kept import Kept
from benchmarks.methods import peer, programs
from benchmarks.methods.peer import NoClusteringError
from benchmarks.questions import _programs_data as data
from benchmarks.questions import _programs_runs as program_runs
from benchmarks.questions import counts_scale
from benchmarks.questions import programs as question
from benchmarks.questions._programs_runs import AT_K, BY_CHOICE, Results
from benchmarks.runner import Progress

pytestmark = pytest.mark.slow  # together

WORKER = """
import numpy as np
from peer_worker import serve
def factorize(arrays, n_runs, name, seed):
    X, k = arrays["X"], int(arrays["candidates"][0])
    return np.concatenate([X[:, :k], np.arange(X.shape[1] * k).reshape(-1, k) + n_runs + seed])
serve(factorize)
"""
SLEEPER = """
import pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path(r"{told}").write_text(str(child.pid))
time.sleep(60)
"""


@pytest.fixture(scope="module")
def planted():
    return data.TOY[0].draw(0)


def test_planted_factors_are_found_whole(planted):
    order, scale = [2, 0, 1], np.array([[3.0], [0.1], [50.0]])
    told = data.scores(planted, planted.W[:, order] / scale.T, planted.H[order] * scale)
    whole = {"k": 3, "found": 3, "F1": 1, "own found": 3, "own F1": 1, "usage": 1}
    assert {key: told[key] for key in whole} == pytest.approx(whole)
    assert 0 < told["KL"] < 1
    rest = planted.X - planted.W @ planted.H
    assert told["squares"] == pytest.approx((rest**2).sum() / (planted.X**2).sum())


def test_components_that_are_missing_or_spurious_count(planted):
    fewer = data.scores(planted, planted.W[:, :2], planted.H[:2])
    assert (fewer["found"], fewer["F1"]) == (2, pytest.approx(4 / 5))
    assert fewer["usage"] == pytest.approx(2 / 3)
    H = np.concatenate([planted.H, np.zeros((1, planted.H.shape[1]))])
    W = np.concatenate([planted.W, np.zeros((len(planted.W), 1))], axis=1)
    more = data.scores(planted, W, H)
    assert (more["found"], more["F1"]) == (3, pytest.approx(6 / 7))


def test_what_all_programs_have_finds_none_of_them():
    rng = np.random.default_rng(0)
    H = 0.9 * rng.dirichlet(np.full(50, 0.3)) + 0.1 * rng.dirichlet(
        np.full(50, 0.3), size=3
    )
    W = rng.uniform(size=(20, 3))
    planted = data.Planted(100 * W @ H, W, H)
    told = data.scores(planted, W, np.repeat(H.mean(axis=0)[None], 3, axis=0))
    assert told["found"] == 3  # cosines are all large
    assert told["own found"] == 0
    assert data.scores(planted, W, H)["own found"] == 3


def test_divergence_is_that_of_scikit_learn():
    X = np.random.default_rng(0).poisson(0.7, size=(1_100, 9)).astype(float)
    model = NMF(
        3, init="random", solver="mu", beta_loss="kullback-leibler", random_state=0
    )
    W = model.fit_transform(X)
    for table in (X, sp.csr_array(X)):
        loss = data.kullback(table, W, model.components_)
        assert np.sqrt(2 * loss) == pytest.approx(model.reconstruction_err_)
    sums = X.sum(axis=1, keepdims=True), X.sum(axis=0)[None] / X.sum()
    one = data.scores(data.Planted(X, *sums), *sums)
    assert one["KL"] == pytest.approx(1)


def test_settings():
    names = [setting.name for setting in data.SETTINGS]
    assert len(set(names)) == len(names) == 16
    for setting in data.SETTINGS:
        assert setting.k in setting.candidates
        assert setting.candidates[0] >= 2
        planted = setting.draw(0)
        assert (
            planted.W.shape
            == (setting.n_samples, setting.k)
            == (len(planted.X), len(planted.H))
        )
        assert planted.X.sum(axis=1).min() > 0
        if setting.kind == programs.SIGNATURES:
            assert planted.X.shape[1] == 96
    row = data.about(setting, planted)
    assert 0 < row["cosine of planted, mean"] < row["largest"] < 1


@pytest.mark.parametrize("name", program_runs.FINDERS)
def test_finder(name, monkeypatch):
    monkeypatch.setattr(data, "NEAR", 1)
    finder = program_runs.FINDERS[name]
    if finder.reason():
        assert "pip install" in finder.reason()
        pytest.skip(finder.reason())
    if finder.slow:
        pytest.skip("it takes minutes")
    setting = data.TOY[1]
    planted = setting.draw(0)
    asked = program_runs.tasks(finder, setting)
    assert asked
    for mode, (find, ks) in asked.items():
        W, H, seconds = find(planted.X, ks, 0)
        assert (len(W), H.shape[1]) == planted.X.shape
        assert W.shape[1] == len(H)
        assert len(H) == 3 or mode == BY_CHOICE
        assert seconds > 0
        told = data.scores(planted, W, H)
        assert told["usage"] > 0.9 or mode == BY_CHOICE
        assert told["squares"] < 0.1  # W H is in the unit of the counts


def test_methods_are_asked_for_what_they_can_do():
    sigprofiler, cnmf, cvanmf = (
        program_runs.FINDERS[n] for n in ("SigProfilerExtractor", "cNMF", "cvanmf")
    )
    modes = [set(program_runs.tasks(sigprofiler, setting)) for setting in data.SETTINGS]
    assert modes[:8] == [set()] * 8
    assert modes[11] == {AT_K, BY_CHOICE}
    assert modes[9] == modes[10] == {AT_K}
    assert modes[15] == set()
    assert program_runs.tasks(cvanmf, data.SETTINGS[3]) == {}
    told = program_runs.restricted([sigprofiler, cnmf])
    assert ["at most 200 rows" in told[0], "at most 50 rows" in told[1]] == [True, True]
    assert len(told) == 2


def test_worker_returns_factors(monkeypatch, tmp_path):
    monkeypatch.setenv(peer.CNMF_PYTHON, sys.executable)
    monkeypatch.setenv("PYTHONPATH", str(Path(peer.__file__).parent))  # has peer_worker
    file = tmp_path / "worker.py"
    file.write_text(WORKER)
    X = np.arange(12.0).reshape(4, 3)
    W, H, seconds = peer.factors(file, 10, "toy", peer.CNMF_PYTHON, X, [2], 5, 60)
    np.testing.assert_array_equal(W, X[:, :2])
    np.testing.assert_array_equal(H, np.arange(6).reshape(3, 2).T + 15)
    assert seconds > 0


def test_processes_of_a_stopped_worker_are_stopped(monkeypatch, tmp_path):
    monkeypatch.setenv(peer.CNMF_PYTHON, sys.executable)
    file, told = tmp_path / "worker.py", tmp_path / "child"
    file.write_text(SLEEPER.format(told=told))
    with raises_naming(NoClusteringError, "toy", "3 s"):
        peer.factors(file, 1, "toy", peer.CNMF_PYTHON, np.eye(3), [2], 0, 3)
    stat = Path("/proc", told.read_text(), "stat")
    for _ in range(50):
        if not stat.exists() or stat.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    pytest.fail(f"process {told.read_text()} still runs")


def test_failed_methods_are_not_done(planted):
    def fail(X, ks, seed):
        raise NoClusteringError("it took too long.")

    finders = [programs.Finder("peer", fail), program_runs.FINDERS["ours, Frobenius"]]
    results, first = program_runs.measure(finders, data.TOY[:1], range(2))
    table = data.TOY[0].name
    np.testing.assert_array_equal(first[table].X, planted.X)
    assert results.failed == {f"peer on {table}, {AT_K}": "it took too long."}
    assert [key[2] for key in results.runs] == ["ours, Frobenius"]
    assert len(results.runs[AT_K, table, "ours, Frobenius"]) == 2
    assert results.mean(AT_K, table, "peer", "F1") is None


def _results(values, mode=AT_K):
    """Return results on both toy tables: F1 and seconds of every method."""
    results = Results()
    for method, of_tables in values.items():
        for setting, told in zip(data.TOY, of_tables, strict=True):
            if told is not None:
                f1, seconds = told
                run = dict.fromkeys(data.FIGURES, f1) | {"seconds": seconds, "k": 3}
                results.runs[mode, setting.name, method] = [run]
    return results


def test_verdicts():
    ours, poisson = "ours, KL", "ours, KL, poisson"
    results = _results(
        {
            ours: [(0.8, 1), (1.0, 2)],
            poisson: [(1.0, 1), (1.0, 1)],  # is no rival
            "cNMF": [(0.7, 6), (1.0, 8)],
            "cvanmf": [(0.9, 30), None],
        }
    )
    f1, own, mean, seconds = question.verdicts(results, AT_K, data.TOY)
    assert "on 1 of 2 tables (target: 80%): missed" in f1
    assert "0.800 against 0.900 of cvanmf" in f1
    assert own.startswith("F1 by their own part")
    assert "missed. Above: cvanmf, 0.900 against 0.800." in mean
    assert "5.0 times" in seconds
    assert "4.0 to 6.0 (target: 5): met on 1 of 2 tables" in seconds
    assert question.verdicts(results, BY_CHOICE, data.TOY) == []
    rows = {row["beside"]: row for row in question.beside(results, AT_K, data.TOY)}
    assert set(rows) == {"cNMF", "cvanmf"}
    assert rows["cNMF"]["F1, ours at or above"] == 2
    assert (rows["cvanmf"]["tables"], rows["cvanmf"]["F1, ours"]) == (1, "0.800")
    table = question.by_table(results, AT_K, data.TOY, "F1")
    assert [row["cvanmf"] for row in table] == ["0.900", "not done", "0.900", None]
    assert question.by_table(results, BY_CHOICE, data.TOY, "F1") == []


def test_seconds_of_kept_runs_are_not_compared():
    results = _results({"ours, KL": [(0.8, 1), (1.0, 2)], "cNMF": [(0.7, 6), (1.0, 8)]})
    easy, hard = (setting.name for setting in data.TOY)
    results.earlier = {(AT_K, easy, "cNMF")}
    [row] = question.beside(results, AT_K, data.TOY)
    assert (row["tables"], row["its seconds over ours, median"]) == (2, 4.0)
    results.earlier.add((AT_K, hard, "cNMF"))
    [row] = question.beside(results, AT_K, data.TOY)
    assert row["F1, ours at or above"] == 2
    assert "its seconds over ours, median" not in row
    assert not any(
        "Seconds" in line for line in question.verdicts(results, AT_K, data.TOY)
    )


def test_kept_runs_are_among_the_results():
    table = data.TOY[0].name
    at, elsewhere = (AT_K, table, "cNMF"), f"cNMF on other, {AT_K}"
    others = Kept(failed={f"cNMF on {table}, {BY_CHOICE}": "too long.", elsewhere: "?"})
    others.runs[at] = [{"F1s": 1.0, "seconds": 2.0}]  # F1s: as names once were
    results, _ = program_runs.measure([], data.TOY, range(1), others)
    assert results.runs == {at: [{"F1": 1.0, "seconds": 2.0}]}
    assert results.failed == {f"cNMF on {table}, {BY_CHOICE}": "too long."}
    assert results.timed(AT_K, [table], "cNMF") == []


def test_means_of_some_tables_say_so():
    results = _results({"ours, KL": [(0.8, 1), (1.0, 2)], "cNMF": [(0.7, 6), None]})
    both = [data.TOY[0], data.Setting("other", programs.PROGRAMS, 40, 3)]
    assert question.by_table(results, AT_K, both, "F1")[-1]["cNMF"] == "0.700 (of 1)"


def test_drawn_counts():
    case = counts_scale.sparse((300, 200), 4, 0.1, 20)
    assert case.kind == "sparse"
    assert 0.07 < case.X.nnz / (300 * 200) < 0.13
    several = counts_scale.sparse_counts((300, 200), 4, 0.1, block=100)
    assert several.shape == (300, 200)
    assert counts_scale.dense((50, 80), 4, 20).X.mean() == pytest.approx(2, rel=0.05)


def test_runs_of_counts_beside_scikit_learns():
    case = counts_scale.sparse((60, 40), 3, 0.3, 300)
    rows = counts_scale.measure(case, 2, Progress("toy", 6))
    assert [row["beside"] for row in rows] == ["float64", "float32"]
    seconds, ours = zip(
        *(counts_scale.our_run(case, seed) for seed in range(2)), strict=True
    )
    theirs = [counts_scale.sklearn_run(case, np.float64, seed)[1] for seed in range(2)]
    assert min(seconds) > 0
    below = np.median(
        [100 * (1 - own / other) for own, other in zip(ours, theirs, strict=True)]
    )
    assert rows[0]["% below"] == pytest.approx(below)
    assert rows[0]["loss"] == f"{np.median(theirs):.1f}"
    assert abs(below) < 50


def test_verdicts_of_time():
    row = {"table": "toy", "beside": "float64", "target": 15}
    told = counts_scale.verdicts(
        [row | {"times faster": 20.0}, row | {"times faster": 9.0}]
    )
    assert "20 times as fast (target: 15): met" in told[0]
    assert told[1].endswith("missed.")
    whole = [
        {"table": "toy", "s a run": 6, "over the table": times} for times in (2, 1.5)
    ]
    told = counts_scale.verdicts_of_fits(whole)
    assert "10.0 minutes in two threads (target: 6): missed" in told[0]
    assert (
        "2.00 times the memory of the table on top of it (target: 2.5): met" in told[1]
    )
    assert "in one thread 1.50 times" in told[1]


def test_costs_of_sparse_rows(monkeypatch):
    monkeypatch.setattr(
        counts_scale.fresh, "call", lambda f, *given: f(*map(str, given))
    )
    rows = counts_scale.whole_fits((40, 30), 3, 0.3, 2, Progress("toy", 3))
    assert [row["threads"] for row in rows] == [2, 1]
    assert all(row["s"] > 0 and row["MiB on top"] >= 0 for row in rows)


def test_whole_analyses(monkeypatch):
    monkeypatch.setattr(
        counts_scale.fresh, "call", lambda f, *given: f(*map(str, given))
    )
    cells, none = data.TOY[0], Kept()
    runs, failed = counts_scale.whole_analyses(cells, False, none, Progress("toy", 2))
    assert failed == {}
    rows = counts_scale.rows_of_analyses(runs)
    assert [row["method"] for row in rows] == ["ours, 20 runs", "ours, 100 runs"]
    assert all(row["s"] > 0 and row["F1"] == "1.000" for row in rows)
    assert counts_scale.verdicts_of_analyses(runs, none) == []
    [ours] = runs[cells.name, "ours, 20 runs"]
    key = (cells.name, "cNMF")
    runs[key] = [{"seconds": 3 * ours["seconds"], "mebibytes": 1.0, "F1": 1.0}]
    told = counts_scale.verdicts_of_analyses(runs, none)
    assert "cNMF takes 3.0 times the seconds" in told[0]
    earlier = Kept(commits={key: "1"})
    assert counts_scale.verdicts_of_analyses(runs, earlier) == []
