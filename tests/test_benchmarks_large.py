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

from benchmarks import fresh, methods  # noqa: E402
from benchmarks.datasets import every  # noqa: E402
from benchmarks.datasets import large as large_sets  # noqa: E402
from benchmarks.methods import peer  # noqa: E402
from benchmarks.methods.peer import NoClusteringError  # noqa: E402
from benchmarks.questions import (  # noqa: E402
    _scale_features,
    affinities,
    choosing_by_pairs,
    constraint_scale,
    fusion_scale,
    large,
)

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


def test_large_sets_that_are_not_there(folder, tmp_path):
    with pytest.raises(datasets.UnavailableError, match="usenc_usps"):
        large.run(False, tmp_path)
    assert set(large.PRINTED) == set(large_sets.NAMES)


def test_noise_is_no_cluster_and_a_peer_may_fail():
    y = np.repeat([0, 1], 4)
    data = datasets.Dataset("toy", np.zeros((8, 2)), y)
    found = np.array([0, 0, 0, -1, 1, 1, 1, 1])
    told = large._trial(methods.Method("toy", lambda *_: (found, 2.0)), data, 0)
    assert (told["clusters"], told["s"]) == (2, 2.0)
    # I = H(y) = log 2, as the clusters tell the class; H of 3, 1 and 4 of 8 samples
    H = -sum(p * np.log(p) for p in (3 / 8, 1 / 8, 4 / 8))
    assert told["NMI"] == pytest.approx(np.sqrt(np.log(2) / H))

    def fail(*arguments):
        raise NoClusteringError

    run = large._trial(methods.Method("toy", fail), data, 0)
    runs = {"toy": {large.OURS: [told], large.OLD: [told], "genieclust": [run], "Birch": [told]}}
    assert large._failures(runs) == ["Found no clustering in the time given: genieclust on toy."]
    ari = large._verdicts(runs)[0]
    assert "(target: not below it): met" in ari
    assert "the best of the others is Birch" in ari
    assert [row["time / ours"] for row in large._rows(data, runs["toy"])][:2] == [1, 1]


def test_genieclust_has_an_environment_of_its_own(monkeypatch):
    monkeypatch.delenv(peer.LARGE_PYTHON, raising=False)
    assert "pip install genieclust" in methods.load("genieclust").reason()


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
        row = {"samples": n, "constraints": n_pairs, "s": 1.5 * seconds, "s, two jobs": seconds}
        return row | {"one job / two": 1.5, "same bits": same, "MiB, two jobs": n / 1000}

    rows = [row(n, n_pairs, n / 40_000) for n in (10**5, 10**6) for n_pairs in (0, 10_000)]
    growth = _scale_features.slopes(rows)
    assert [r["exponent of n"] for r in growth] == pytest.approx([1, 1])
    told = _scale_features.verdicts(rows, [row(10**6, 0, 20, "no")], growth)
    assert [line.count("met") for line in told] == [1, 2, 1, 1, 0]  # 25 s, 20 and 30 are asked
    assert [line.count("missed") for line in told] == [1, 0, 0, 0, 2]


def test_affinities_are_compared_on_every_set():
    runs = {}
    for name, ours, old in (("a, tf-idf", 0.5, 0.7), ("b, standardised", 0.9, 0.4)):
        scores = {affinities.OURS: ours, affinities.OLD: old, "landmarks": ours}
        for title, ari in scores.items():
            runs[name, 0, title] = [{"ARI": ari, "s": 2.0}] * 2
    sets = [datasets.Dataset(name, np.eye(4), np.repeat([0, 1], 2)) for name, *_ in list(runs)[::3]]
    rows = [affinities._row(data, runs, (0,)) for data in sets]
    text = affinities._means("text", rows, (0,))
    assert (text["sets"], text["0: defaults"]) == (1, "0.500")
    assert affinities._means("all", rows, (0,))["0: nearest_neighbors"] == "0.550"
    assert affinities._seconds(runs, (0,))[0][affinities.OURS] == 4
    old, landmarks = affinities._verdicts(rows, (0,))
    assert "less that of nearest_neighbors is +0.150" in old
    assert "on 1 of 2 sets and worse on 1 (a, tf-idf by 0.200)" in old
    assert "worse on 0 (none)" in landmarks


def test_choices_are_held_beside_the_best_single_candidate():
    grid = "affinity"
    first, second = (choosing_by_pairs._named(each) for each in choosing_by_pairs.GRIDS[grid])
    said = {choosing_by_pairs.PAIRS: (0.9, 0.5), choosing_by_pairs.SAMPLES: (0.5, 0.9)}
    runs = {}
    for draw, truth in enumerate([(0.8, 0.4), (0.6, 0.7)]):
        by_way = said | {choosing_by_pairs.ORACLE: truth}
        runs["a", 100, draw] = {
            name: {way: scores[i] for way, scores in by_way.items()}
            for i, name in enumerate((first, second))
        }
    row = choosing_by_pairs._row(grid, 100, runs)
    assert (row["best single"], row["its ARI"]) == ("defaults", "0.700")
    told = [row[way] for way in choosing_by_pairs.WAYS]
    assert told == ["+0.000", "+0.000", "-0.150", "+0.050"]
    notes = choosing_by_pairs._notes([row])
    assert notes[1].startswith("held-out pairs: within 0.03")
    assert notes[2].startswith("held-out samples: not within 0.03")
    assert "-0.150, of affinity with 100 pairs" in notes[2]


def test_many_rows_are_thinned_always_the_same():
    X = np.arange(2.0 * choosing_by_pairs.MOST)[:, None]
    taken, classes = every.at_most(X, X[:, 0], choosing_by_pairs.MOST)
    assert len(classes) == choosing_by_pairs.MOST
    np.testing.assert_array_equal(taken[:, 0], every.at_most(X, X[:, 0], choosing_by_pairs.MOST)[1])
    assert len(every.at_most(X[:5], X[:5, 0], choosing_by_pairs.MOST)[1]) == 5


def test_formed_similarities_are_the_same(tmp_path):
    constraint_scale._make(tmp_path / "documents.npz", 60, 100, 3, 50)
    losses = [
        constraint_scale.time_updates(tmp_path / "documents.npz", form, 0)["loss"]
        for form in constraint_scale.FORMS
    ]
    np.testing.assert_allclose(losses, losses[0], rtol=1e-9)


def test_stored_graphs(tmp_path):
    fusion_scale.save_graphs(tmp_path / "graphs.npz", 120)
    for name in (fusion_scale.OURS, fusion_scale.SPECTRAL):
        actual = fusion_scale.cluster_graphs(tmp_path / "graphs.npz", name)
        assert actual["s"] > 0
        assert actual["MiB on top"] >= 0
        assert 0.3 < actual["ARI"] <= 1
