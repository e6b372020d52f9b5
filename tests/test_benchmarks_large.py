"""What the questions about many samples, and about many data sets, do beside running."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[1]))
datasets = pytest.importorskip(
    "benchmarks.datasets", reason="benchmarks are not installed"
)

from benchmarks import fresh, methods  # noqa: E402
from benchmarks.datasets import every  # noqa: E402
from benchmarks.questions import _scale_features  # noqa: E402

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
    assert len(known) == sum(
        map(len, (every.DENSE, every.TEXT, every.LEFT_OUT, bundled))
    )
    assert set(every.ALL) <= set(datasets.names())


def test_number_of_samples(monkeypatch):
    monkeypatch.delenv(_scale_features.LARGEST, raising=False)
    assert _scale_features.sizes(False) == (10_000, 100_000, 1_000_000)
    assert list(_scale_features.skipped(False)) == ["10,000,000 samples"]
    monkeypatch.setenv(_scale_features.LARGEST, "10000000")
    assert _scale_features.sizes(False)[-1] == 10_000_000
    assert _scale_features.skipped(False) == {}
    assert [_scale_features.repeats(n, 3) for n in (10**6, 10**7)] == [3, 1]


def test_fits_of_many_samples_in_one_job_and_two(tmp_path):
    file = tmp_path / "features.npz"
    _scale_features.make(file, "2500", "100")  # more than are landmarks themselves
    X, _, extras = fresh.read(file)
    assert X.dtype == np.float32
    assert X.shape == (2500, _scale_features.N_FEATURES)
    assert extras[methods.CONSTRAINTS].n_pairs == 100
    digests = set()
    for used in _scale_features.PARTS:
        runs = {j: [_scale_features.fit(file, used, j, "default", "0")] for j in (1, 2)}
        assert _scale_features.same_bits(runs)
        row = _scale_features._row(2500, 100, runs)
        assert row["same bits"] == "yes"
        assert row["s"] / row["s, two jobs"] == row["one job / two"]
        assert 0.2 < row["ARI"] < 0.9  # the clusters overlap
        digests.add(runs[1][0]["bits"])
    assert len(digests) == 2  # constraints are used, or not
    runs[2][0]["bits"] = "other"
    assert _scale_features._row(2500, 100, runs)["same bits"] == "no"


def test_targets_of_many_samples():
    def row(n, n_pairs, seconds, same="yes"):
        row = {
            "samples": n,
            "constraints": n_pairs,
            "s": 1.5 * seconds,
            "s, two jobs": seconds,
        }
        return row | {
            "one job / two": 1.5,
            "same bits": same,
            "MiB, two jobs": n / 1000,
        }

    rows = [
        row(n, n_pairs, n / 40_000) for n in (10**5, 10**6) for n_pairs in (0, 10_000)
    ]
    growth = _scale_features.slopes(rows)
    assert [r["exponent of n"] for r in growth] == pytest.approx([1, 1])
    told = _scale_features.verdicts(rows, [row(10**6, 0, 20, "no")], growth)
    # 25 s, 20 and 30 are asked
    assert [line.count("met") for line in told] == [1, 2, 1, 1, 0]
    assert [line.count("missed") for line in told] == [1, 0, 0, 0, 2]


def test_many_rows_are_thinned_always_the_same():
    X = np.arange(1200.0)[:, None]
    taken, classes = every.at_most(X, X[:, 0], 600)
    assert len(classes) == 600
    np.testing.assert_array_equal(taken[:, 0], every.at_most(X, X[:, 0], 600)[1])
    assert len(every.at_most(X[:5], X[:5, 0], 600)[1]) == 5
