"""Every data set of the benchmarks is there, and what is made of some."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from refusals import raises_naming
from sklearn.metrics import mutual_info_score

sys.path.insert(0, str(Path(__file__).parents[1]))
datasets = pytest.importorskip(
    "benchmarks.datasets", reason="benchmarks are not installed"
)

from benchmarks.datasets import (  # noqa: E402
    documents,
    expression,
    gaussians,
    handwritten,
    proteins,
    tables,
    text,
    topics,
    views,
)
from nmfcluster.affinity import make_affinity  # noqa: E402

pytestmark = pytest.mark.slow  # together


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
    if isinstance(data, views.Views):
        stacks = [make() for make in data.kernels.values()] if len(y) < 1000 else []
        assert all(stack.shape[:2] == (len(y), len(y)) for stack in stacks)
        assert all(view.shape[0] == len(y) for view in data.views)
        assert sum(view.shape[1] for view in data.views) in (0, X.shape[1])
    if name in text.NAMES:
        assert X.shape[1] <= text.N_WORDS
        assert all(
            text.weighted(X, scheme).shape == X.shape for scheme in ("unit", "tfidf")
        )


def test_data_that_are_not_there(monkeypatch):
    monkeypatch.delenv(datasets.FOLDER, raising=False)
    with raises_naming(datasets.UnavailableError, datasets.FOLDER):
        datasets.load("zoo")
    assert datasets.load("wine").X.shape == (178, 13)  # comes with scikit-learn


def test_generated_data():
    data = gaussians.gaussians(200, "overlapping", shares=[0.7, 0.3])
    table = gaussians.ensemble(data.X, 4, (2, 5))
    assert table.shape == (200, 4)
    assert 1 < len(np.unique(table)) <= 5
    assert gaussians.random_labels(50, 3, 6).shape == (50, 6)


@pytest.mark.parametrize("name", tables.MADE)
def test_made_table(name):
    (X, y), (again, _) = (tables.MADE[name](np.random.default_rng(0)) for _ in range(2))
    np.testing.assert_array_equal(X, again)
    classes, counts = np.unique(y[y >= 0], return_counts=True)
    assert (len(X), classes.tolist()) == (len(y), list(range(len(classes))))
    _, copies = np.unique(X, axis=0, return_counts=True)
    if name.endswith("times"):
        assert set(copies) == {int(name.split()[-2])}
    if "far" in name:
        assert (np.linalg.norm(X[y < 0], axis=1) > 10 * abs(X[y >= 0]).max()).all()
    if name == "oversampled":
        assert counts.max() / counts.min() < 1.2
    if "questions" in name or name == "rounded":
        assert copies.max() > 10  # more than neighbours


def test_drawn_documents():
    data = topics.topics(90, 150, 3, length=60)
    assert data.X.shape == (90, 150)
    assert data.X.sum() > 45 * 90
    assert data.n_clusters == 3
    kept = documents.informative_words(data.X, data.y)
    present = data.X.toarray() > 0
    told = [mutual_info_score(data.y, word) for word in present.T]
    np.testing.assert_allclose(documents.information(data.X, data.y), told, atol=1e-12)
    best = np.sort(told)[-kept.shape[1] :]
    actual = [mutual_info_score(data.y, word) for word in (kept.toarray() > 0).T]
    np.testing.assert_allclose(np.sort(actual), best)


def test_views_of_pictures():
    pictures = np.arange(2 * 64, dtype=float).reshape(2, 64)
    data = handwritten.halves("toy", pictures, np.array([0, 1]))
    left, right = data.views
    np.testing.assert_array_equal(
        left[0], [8 * row + c for row in range(8) for c in range(4)]
    )
    np.testing.assert_array_equal(right, left + 4)


def test_graph_of_distances_is_that_of_features():
    X = np.random.default_rng(0).normal(size=(40, 2))
    D = np.linalg.norm(X[:, None] - X, axis=2)
    expected = make_affinity(X, n_neighbors=5).similarity.toarray() - np.eye(40)
    np.testing.assert_allclose(
        proteins.neighbours(D, 5).toarray(), expected, atol=1e-12
    )


def test_expression_in_two_classes(monkeypatch, tmp_path):
    stored = {"X": np.array([[20, 40], [20, 80], [160, 20]]), "y": np.array([0, 1, 2])}
    np.savez(tmp_path / "all_aml.npz", **stored)
    monkeypatch.setenv(datasets.FOLDER, str(tmp_path))
    data = datasets.load("all_aml, two classes")
    assert data.y.tolist() == [0, 0, 1]
    np.testing.assert_allclose(expression.logged(data.X), [[0, 1], [0, 2], [3, 0]])
