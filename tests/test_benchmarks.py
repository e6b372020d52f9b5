"""Every file of the benchmarks runs, on toy sizes."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
datasets = pytest.importorskip("benchmarks.datasets", reason="benchmarks are not installed")

from benchmarks import fresh, methods, questions, report, runner  # noqa: E402
from benchmarks.__main__ import main  # noqa: E402
from benchmarks.datasets import gaussians, tables, text  # noqa: E402
from benchmarks.methods.nndsvd import nndsvd_start  # noqa: E402
from benchmarks.methods.symhals import symmetric_hals  # noqa: E402
from nmfcluster._iterate import iterate  # noqa: E402
from nmfcluster._solvers import SymmetricObjective  # noqa: E402
from nmfcluster.metrics import clustering_accuracy  # noqa: E402
from nmfcluster.similarity import Explicit, inner  # noqa: E402


@pytest.fixture(scope="module")
def blocks():
    """Features, label table and classes of three groups that anything should find."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 15)
    X = 10 * np.eye(3)[y] + rng.normal(size=(45, 3))
    table = np.stack([rng.permutation(3)[y] for _ in range(6)], axis=1)
    return X, table, y


@pytest.mark.parametrize("name", datasets.names())
def test_data_set(name):
    try:
        data = datasets.load(name)
    except datasets.UnavailableError as error:
        reason = str(error)
        pytest.skip(reason)
    X, y = data.draw(0)
    assert X.shape[0] == len(y) > data.n_clusters > 1
    assert data.own or data.note
    if name in text.NAMES:
        assert X.shape[1] <= text.N_WORDS
        assert all(text.weighted(X, scheme).shape == X.shape for scheme in ("unit", "tfidf"))


def test_data_that_are_not_there(monkeypatch):
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    with pytest.raises(datasets.UnavailableError, match=datasets.FOLDER):
        datasets.load("zoo")
    assert datasets.load("wine").X.shape == (178, 13)  # comes with scikit-learn


def test_generated_data():
    data = gaussians.gaussians(200, "overlapping", shares=[0.7, 0.3])
    table = gaussians.ensemble(data.X, 4, (2, 5))
    assert table.shape == (200, 4)
    assert 1 < len(np.unique(table)) <= 5
    assert tables.random_labels(50, 3, 6).shape == (50, 6)
    table, y = tables.unanimous((5, 3, 2), 4)
    assert all(clustering_accuracy(y, labels) == 1 for labels in table.T)


@pytest.mark.parametrize("name", methods.load_all())
def test_method(name, blocks):
    method = methods.load(name)
    if method.reason():
        assert "pip install" in method.reason()
        pytest.skip(method.reason())
    X, table, y = blocks
    labels, seconds = method.run(X, table, 3, 0)
    assert seconds > 0
    if name != "k-means":  # one start can end anywhere
        assert clustering_accuracy(y, labels) == 1


def test_symmetric_hals_and_nndsvd_start(blocks):
    _, _, y = blocks
    E = np.eye(3)[y]
    A = Explicit(E @ E.T + 0.1)
    objective = SymmetricObjective(A, inner(A, A))
    [end] = iterate(
        symmetric_hals(objective, nndsvd_start(A, 3)[None]), max_iter=300, tol=-1, scale=1
    )
    (H,) = end.factors
    assert end.loss == pytest.approx(((A.toarray() - H @ H.T) ** 2).sum(), abs=1e-6)
    assert clustering_accuracy(y, H.argmax(axis=1)) == 1


def test_fresh_process(blocks, tmp_path):
    X, table, y = blocks
    np.savez(tmp_path / "data.npz", X=X, table=table, y=y)
    found = fresh.measure("NMFC", tmp_path / "data.npz", 0)
    assert found["ari"] == 1
    assert found["seconds"] > 0
    assert found["mebibytes"] >= 0
    with pytest.raises(RuntimeError, match="no-such-method"):
        fresh.measure("no-such-method", tmp_path / "data.npz", 0)


def test_runner_interleaves(capsys):
    order = []
    tasks = {name: lambda repeat, name=name: order.append((name, repeat)) for name in "AB"}
    runner.interleaved(tasks, 2, runner.Progress("toy", 4))
    assert order == [("A", 0), ("B", 0), ("A", 1), ("B", 1)]
    assert "[toy 4/4] B" in capsys.readouterr().err
    assert runner.exponent([10, 100, 1000], [2, 20, 200]) == pytest.approx(1)


def test_markdown():
    rows = [{"a": 1234, "b": 0.12345}, {"a": "x", "c": None}]
    assert report.markdown(rows).splitlines() == [
        "| a | b | c |",
        "| --- | --- | --- |",
        "| 1,234 | 0.123 |  |",
        "| x |  |  |",
    ]


def test_every_question_is_known():
    folder = Path(questions.__file__).parent
    assert {path.stem for path in folder.glob("[a-z]*.py")} == set(questions.NAMES)


@pytest.mark.parametrize("name", questions.NAMES)
def test_question(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    # the peers' workers start slowly, and are tested above
    monkeypatch.delenv("NMFCLUSTER_PEER_PYTHON", raising=False)
    main([name, "--quick", "--out", str(tmp_path)])
    assert sorted(os.listdir(tmp_path)) == [f"{name}.{kind}" for kind in ("json", "md", "png")]
    content = json.loads((tmp_path / f"{name}.json").read_text())
    assert all(len(rows) for rows in content["tables"].values())
    text = (tmp_path / f"{name}.md").read_text()
    assert content["caption"] in text
    assert importlib.import_module(f"benchmarks.questions.{name}").__doc__
