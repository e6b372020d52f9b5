"""What the questions about many samples, and about many data sets, do beside running."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1]))
datasets = pytest.importorskip("benchmarks.datasets", reason="benchmarks are not installed")

from benchmarks import methods  # noqa: E402
from benchmarks.datasets import every  # noqa: E402
from benchmarks.methods import peer  # noqa: E402

pytestmark = pytest.mark.slow  # together


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """Return an empty folder that data sets are looked for in."""
    monkeypatch.setenv(datasets.FOLDER, str(tmp_path))
    return tmp_path


def test_sets_are_standardised_or_weighted(folder):
    rng = np.random.default_rng(0)
    n = every.MOST + 200
    y = rng.integers(3, size=n)
    X = rng.integers(50, size=(n, 4)).astype(np.uint8)
    X[:, 3] = 7  # never changes
    np.savez(folder / "glass.npz", X=X, y=y)
    C = sp.csr_array(rng.poisson(0.3, size=(n, 30)).astype(np.uint8))
    parts = {"data": C.data, "indices": C.indices, "indptr": C.indptr, "shape": C.shape}
    np.savez(folder / "k1b.npz", y=y, **parts)

    dense, text = datasets.load("glass, standardised"), datasets.load("k1b, tf-idf")
    for data in (dense, text):
        drawn, classes = data.draw(0)
        assert drawn.shape[0] == len(classes) == every.MOST
        assert data.note == f"{every.MOST:,} of {n:,} rows"
        np.testing.assert_array_equal(data.draw(1)[1], classes)  # always the same rows
    np.testing.assert_array_equal(dense.draws[0], text.draws[0])
    Z = dense.draw(0)[0]
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), [1, 1, 1, 0], atol=1e-12)
    W, rows = text.draw(0)[0], text.draws[0]
    assert W.format == "csr"
    lengths = np.sqrt((W**2).sum(axis=1))
    np.testing.assert_allclose(lengths, C.toarray()[rows].any(axis=1))


def test_every_file_of_the_data_folder_is_taken_or_left_out():
    where = os.environ.get(datasets.FOLDER)
    if not where:
        pytest.skip(f"{datasets.FOLDER} is not set")
    bundled = {name.split(",")[0] for name in every.BUNDLED}
    known = {*every.DENSE, *every.TEXT, *every.LEFT_OUT, *bundled}
    assert {path.stem for path in Path(where).glob("*.npz")} <= known
    assert len(known) == sum(map(len, (every.DENSE, every.TEXT, every.LEFT_OUT, bundled)))
    assert set(every.ALL) <= set(datasets.names())


def test_genieclust_has_an_environment_of_its_own(monkeypatch):
    monkeypatch.delenv(peer.LARGE_PYTHON, raising=False)
    assert "pip install genieclust" in methods.load("genieclust").reason()
