"""Every method of the benchmarks finds clear groups; what some compute, and how failures count."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import raises_naming

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.importorskip("benchmarks.datasets", reason="benchmarks are not installed")

from benchmarks import fresh, methods, trials
from benchmarks.datasets import views
from benchmarks.methods import fcm, fusion, mean_similarity
from benchmarks.methods.peer import NoClusteringError
from benchmarks.methods.ss_ncut import edited
from benchmarks.questions import fusion as fusion_question
from nmfcluster import PairwiseConstraints, SimilarityStack
from nmfcluster.affinity import make_affinity
from nmfcluster.metrics import clustering_accuracy

pytestmark = pytest.mark.slow  # together


@pytest.fixture(scope="module")
def blocks():
    """Return features of three clear groups, the other inputs of methods, and the classes."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 15)
    X = np.abs(10 * np.eye(3)[y] + rng.normal(size=(45, 3)))
    table = np.stack([rng.permutation(3)[y] for _ in range(6)], axis=1)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=60, random_state=0)
    views = [X, np.abs(10 * np.eye(3)[y] + rng.normal(size=(45, 3)))]
    graphs = [make_affinity(V, normalize=True).block() for V in views]
    extras = {
        methods.FEATURES: None,
        methods.PARTITIONS: table,
        methods.CONSTRAINTS: pairs,
        methods.SIMILARITIES: SimilarityStack(graphs),
        methods.VIEWS: views,
        methods.LABELS: np.where(np.arange(45) % 3, -1, y),
    }
    return X, extras, y


@pytest.mark.parametrize("name", methods.load_all())
def test_method(name, blocks, monkeypatch):
    monkeypatch.setattr(fusion, "ETAS", (0.3, np.inf))
    monkeypatch.setattr(fusion, "N_SUBSAMPLES", 3)
    method = methods.load(name)
    if method.reason():
        assert "pip install" in method.reason()
        pytest.skip(method.reason())
    X, extras, y = blocks
    labels, seconds = method.run(X, extras[method.wants], 3, 0)
    assert seconds > 0
    # a single start may be a bad one, and HDBSCAN calls samples at the border noise
    if name not in ("k-means", "fast-hdbscan"):
        assert clustering_accuracy(y, labels) == 1


@pytest.mark.parametrize("name", ["SSNMF", "SS-KK", "SS-SNC"])
def test_constraints_change_the_clusters(name):
    # The features make two groups, and the constraints cut across them.
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(40, 2)) + 6 * np.eye(2)[np.arange(40) % 2])
    y = np.repeat([0, 1], 20)
    pairs = PairwiseConstraints.from_labels(y)
    labels, _ = methods.load(name).run(X, pairs, 2, 0)
    assert clustering_accuracy(y, labels) == 1


def test_edited_similarities():
    pairs = PairwiseConstraints(3, must_link=[(0, 2)], cannot_link=[(0, 1)])
    W = np.array([[1.0, 5.0, 0.5], [5.0, 9.0, 2.0], [0.5, 2.0, 4.0]])
    expected = [[1.0, 0.5, 9.0], [0.5, 9.0, 2.0], [9.0, 2.0, 4.0]]
    np.testing.assert_array_equal(edited(W, pairs), expected)


def test_stored_data(blocks, tmp_path):
    X, extras, y = blocks
    table, pairs = extras[methods.PARTITIONS], extras[methods.CONSTRAINTS]
    for form in (X, sp.csr_array(X)):
        fresh.save(tmp_path / "data.npz", form, y, table, pairs)
        stored, classes, extras = fresh.read(tmp_path / "data.npz")
        assert sp.issparse(stored) == sp.issparse(form)
        np.testing.assert_array_equal(
            stored.toarray() if sp.issparse(stored) else stored, X
        )
        np.testing.assert_array_equal(classes, y)
        np.testing.assert_array_equal(extras[methods.PARTITIONS], table)
        np.testing.assert_array_equal(
            extras[methods.CONSTRAINTS].must_link, pairs.must_link
        )
        np.testing.assert_array_equal(
            extras[methods.CONSTRAINTS].cannot_link, pairs.cannot_link
        )


def test_fresh_process(blocks, tmp_path):
    X, extras, y = blocks
    links = extras[methods.CONSTRAINTS]
    fresh.save(tmp_path / "data.npz", sp.csr_array(X), y, pairs=links)
    measured = fresh.measure("SSNMF, cosine", tmp_path / "data.npz", 0)
    assert measured["ari"] == measured["accuracy"] == 1
    assert measured["seconds"] > 0
    assert measured["mebibytes"] >= 0
    with raises_naming(RuntimeError, "no-such-method"):
        fresh.measure("no-such-method", tmp_path / "data.npz", 0)


def test_a_peer_without_a_clustering_is_counted(blocks):
    X, extras, y = blocks

    def fail(*arguments):
        raise NoClusteringError

    run = trials.of_method(
        methods.Method("peer", fail), X, y, extras[methods.CONSTRAINTS], 0
    )
    assert np.isnan(run["accuracy"])


def test_mean_of_similarities():
    stack = SimilarityStack([sp.csr_array([[0, 3.0], [3, 0]]), np.ones((2, 2))])
    plain = np.array([[1.0, 4], [4, 1]])  # the sum, of mean 5 / 2
    np.testing.assert_allclose(mean_similarity.mean(stack, scaled=False), plain / 2.5)
    scaled = np.array([[0.25, 0.75], [0.75, 0.25]])
    np.testing.assert_allclose(mean_similarity.mean(stack, scaled=True), scaled / 0.5)


def test_failed_peers_are_reported(blocks):
    def fail(*arguments):
        raise NoClusteringError("it took too long.")

    X, extras, y = blocks
    data = views.Views("toy", X, y, columns=(slice(0, 3),))
    failed: dict[str, str] = {}
    method = methods.Method("peer", fail, wants=methods.VIEWS)
    assert (
        fusion_question._runs(
            method, data, extras[methods.SIMILARITIES], range(2), failed
        )
        == []
    )
    assert failed == {"peer": "it took too long."}


def test_verdict_counts_single_sources(blocks):
    X, _, y = blocks
    data = views.Views(
        "toy", X, y, kernels={"graph": lambda: None, "rbf": lambda: None}
    )

    def runs(*accuracies):
        return [{"accuracy": a, "seconds": 1.0} for a in accuracies]

    own = fusion_question.Results(data, {("graph", "fusion"): runs(0.8, 0.9)})
    own.runs["rbf", "spectral, mean"] = runs(0.85)
    assert "on 1 of 1 sets" in fusion_question._verdict({"toy": own}, "accuracy")
    own.runs["a alone", "fusion"], own.runs["b alone", "fusion"] = runs(0.1), runs(0.86)
    told = fusion_question._verdict({"toy": own}, "accuracy")
    assert "on 0 of 1 sets" in told
    assert "toy, 0.850 against 0.860 of fusion (b alone)" in told


def test_fuzzy_c_means_is_at_its_own_fixed_point():
    X = np.random.default_rng(0).normal(size=(30, 3)) + 5 * np.eye(3)[np.arange(30) % 3]
    U, centres, loss = fcm.fuzzy_c_means(X, 3, np.random.RandomState(0), tol=1e-12)
    np.testing.assert_allclose(U.sum(axis=1), 1)
    np.testing.assert_allclose(
        centres, (U**2).T @ X / (U**2).sum(axis=0)[:, None], atol=1e-9
    )
    squares = ((X[:, None] - centres) ** 2).sum(axis=2)
    closeness = squares**-1.0  # to the power of 1 / (m - 1), m = 2
    np.testing.assert_allclose(
        U, closeness / closeness.sum(axis=1, keepdims=True), atol=1e-9
    )
    assert loss == pytest.approx((U**2 * squares).sum())


def test_fuzzy_c_means_of_rows_that_are_centres():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0]], 4, axis=0)
    U, centres, loss = fcm.fuzzy_c_means(X, 2, np.random.RandomState(0))
    np.testing.assert_allclose(
        np.sort(U, axis=1), np.tile([0.0, 1.0], (8, 1)), atol=1e-6
    )
    np.testing.assert_allclose(np.sort(centres[:, 0]), [0, 1], atol=1e-6)
    assert loss == pytest.approx(0, abs=1e-9)
