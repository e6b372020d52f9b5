"""How the question of recurrence scores and judges."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1]))
datasets = pytest.importorskip(
    "benchmarks.datasets", reason="benchmarks are not installed"
)

from benchmarks import scores  # noqa: E402
from benchmarks.datasets import counted  # noqa: E402
from benchmarks.questions import _recurrence_halves as halves  # noqa: E402
from benchmarks.questions import _recurrence_planted as planted  # noqa: E402
from benchmarks.questions import recurrence as question  # noqa: E402
from nmfcluster.datasets import make_programs  # noqa: E402

pytestmark = pytest.mark.slow  # together


@pytest.fixture
def stored(monkeypatch, tmp_path):
    """Store a table of genes and one of words."""
    y = np.array([0, 0, 1])
    X = np.array([[0, 3], [1, 7], [7, 0]])
    np.savez(tmp_path / "expr_golub-1999-v2.npz", X=X, y=y)
    words = sp.csr_array(X)
    parts = {
        part: getattr(words, part) for part in ("data", "indices", "indptr", "shape")
    }
    np.savez(tmp_path / "tr12.npz", y=y, **parts)
    monkeypatch.setenv(datasets.FOLDER, str(tmp_path))
    return X


@pytest.mark.parametrize("name", ["golub", "tr12"])
def test_counts_and_their_logarithms(name, stored):
    raw, log = (datasets.load(f"{name}, {how}") for how in (counted.RAW, counted.LOG))
    assert sp.issparse(raw.X) == sp.issparse(log.X) == (name == "tr12")
    X, logs = (data.X.toarray() if name == "tr12" else data.X for data in (raw, log))
    np.testing.assert_array_equal(X, stored)
    np.testing.assert_allclose(np.exp2(logs / np.log(2)), stored + 1)


def test_matched_cosines():
    A = np.array([[1.0, 0, 0], [3, 4, 0], [0, 0, 0]])
    B = np.array([[0.0, 2, 0], [5, 0, 0]])
    np.testing.assert_allclose(scores.cosines(A, B), [[0, 1], [0.8, 0.6], [0, 0]])
    np.testing.assert_allclose(scores.matched_cosines(A, B), [1, 0.8, 0])


def test_programs_that_share():
    setting = planted.programs(3000, 500, 0.6, n_features=20, n_programs=3)
    X, H = setting.draw(0)
    _, W, alone = make_programs(3000, 20, 3, depth=500, random_state=0)
    np.testing.assert_allclose(H[[0, 2]], alone[[0, 2]])
    np.testing.assert_allclose(H[1], 0.6 * alone[0] + 0.4 * alone[1])
    M = W @ H
    spread = np.sqrt((M + 0.1 * M**2).sum(axis=0))  # of a sum of gamma-Poisson counts
    assert (np.abs((X - M).sum(axis=0)) < 4 * spread).all()


def test_auc_of_recurrence():
    there = np.array([True, True, False, True])
    assert planted.auc(there, np.array([0.9, 0.4, 0.5, 0.8])) == pytest.approx(2 / 3)
    assert np.isnan(planted.auc(np.zeros(4, dtype=bool), np.arange(4.0)))
    assert planted.mean([{"AUC": 1.0}, {"AUC": np.nan}], "AUC") == 1
    assert np.isnan(planted.mean([{"AUC": np.nan}], "AUC"))


def test_correlation_of_recurrence_and_return():
    rising = np.arange(5.0)
    assert halves.correlation(np.stack([rising, rising**2])) == pytest.approx(1)
    assert halves.correlation(np.stack([np.ones(5), rising])) == 0


def test_clusters_that_return():
    rng = np.random.default_rng(0)
    X = rng.poisson(20 * np.kron(np.eye(3), np.ones((20, 8))) + 1).astype(float)
    data = datasets.Dataset("toy", X, np.repeat([0, 1, 2], 20))
    told = halves.returns(data, "kullback-leibler", "poisson", 0)
    k = 3 + planted.MORE
    assert told.shape == (2, 2 * k)
    assert 0 <= told.min() <= told.max() <= 1 + 1e-9
    first, second = told[1, :k], told[1, k:]
    assert first.max() == second.max() > 0.9  # the same pair, from either side


def _means(**ways):
    """Return figures of three tables by AUC, correlation, share found, and seconds of each way."""
    figures = (question.AUC, question.SPEARMAN, question.AT_K, question.SECONDS)
    return {
        (figure, "KL", None if way == "none" else way): dict.fromkeys(
            "abc", float(value)
        )
        for way, values in ways.items()
        for figure, value in zip(figures, values, strict=True)
    }


def test_rule_for_the_default():
    means = _means(
        none=(0.8, 0.3, 0.9, 1), poisson=(0.9, 0.5, 0.9, 2), bootstrap=(1, 1, 0.8, 1)
    )
    assert question.chosen(means, "KL") == "poisson"  # bootstrap finds fewer programs
    assert question.chosen(means, "KL", without="a") == "poisson"
    near = _means(none=(0.9, 0.49, 0.9, 1), poisson=(0.9, 0.5, 0.9, 2))
    assert question.chosen(near, "KL") is None  # as good, and faster
    rows = question.left_out(means)
    assert [row["chosen"] for row in rows] == ["poisson 3"] * 3
    assert [row["of the chosen"] for row in rows] == ["0.900", "0.900", "0.500"]
