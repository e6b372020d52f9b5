"""What SimpleMKKM computes, which sources are added to fusion, and how that question judges."""

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

from benchmarks import methods  # noqa: E402
from benchmarks.datasets import views  # noqa: E402
from benchmarks.methods import simple_mkkm  # noqa: E402
from benchmarks.methods.peer import NoClusteringError  # noqa: E402
from benchmarks.questions import fusion_noise as question  # noqa: E402
from nmfcluster import SimilarityStack  # noqa: E402
from nmfcluster.affinity import make_affinity  # noqa: E402
from nmfcluster.metrics import clustering_accuracy  # noqa: E402

pytestmark = pytest.mark.slow  # together

ONE, MANY = list(question.REGIMES)[1:]
SIZES = {  # samples, classes and sources
    "msrc_v1": (210, 7, 5),
    "ngs": (500, 5, 3),
    "100leaves": (1600, 100, 3),
    "bbc4view": (685, 5, 4),
}


@pytest.fixture(scope="module")
def planted():
    """Return two kernels with three blocks, one of them sharper, and the classes."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 15)
    views = [10 * np.eye(3)[y] + spread * rng.normal(size=(45, 3)) for spread in (1, 3)]
    return SimilarityStack([make_affinity(V, "rbf").block() for V in views]), y


@pytest.mark.parametrize("name", SIZES)
def test_sets_of_several_views(name):
    try:
        data = datasets.load(name)
    except datasets.UnavailableError as error:
        pytest.skip(str(error))
    n, _, n_sources = SIZES[name]
    assert (len(data.y), data.n_clusters, len(data.views)) == SIZES[name]
    for kind in question.KINDS:
        stack = question.sources(data, kind)
        assert stack.shape == (n, n, n_sources)
        assert all(sp.issparse(S) == (kind == question.GRAPHS) for S in stack.sources)


@pytest.mark.parametrize("name", SIZES)
def test_how_views_are_made(name, monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    stored = {f"V{i}": rng.integers(0, 9, size=(30, 4)) for i in range(2)}
    np.savez(
        tmp_path / f"{name}.npz", **stored, y=np.arange(30) % 3, view_names=["a", "b"]
    )
    monkeypatch.setenv(datasets.FOLDER, str(tmp_path))
    data = datasets.load(name)
    kinds = {name: question.sources(data, name) for name in question.KINDS}
    assert [stack.names for stack in kinds.values()] == [("a", "b")] * 2
    for V, S in zip(data.views, kinds[question.DENSE].sources, strict=True):
        if sp.issparse(V):
            np.testing.assert_allclose((V.multiply(V)).sum(axis=1), 1)
            np.testing.assert_allclose(S, (V @ V.T).toarray(), atol=1e-12)
        else:
            np.testing.assert_allclose(V.mean(axis=0), 0, atol=1e-12)
            np.testing.assert_allclose(V.std(axis=0), 1)
            np.testing.assert_allclose(S, make_affinity(V, "rbf").block())


def test_kernels_are_centred_and_of_diagonal_1(planted):
    graph = make_affinity(
        np.random.default_rng(0).normal(size=(40, 2)), normalize=True
    ).block()
    for S in (planted[0].sources[0], graph):
        K = simple_mkkm.kernel(S)
        np.testing.assert_allclose(K.diagonal(), 1)
        assert np.linalg.eigvalsh(K)[0] > -1e-3
        # centred, before it was scaled
        assert abs(K @ np.ones(len(K))).max() < 0.2 * len(K)


def test_simple_mkkm_is_at_its_minimum(planted):
    stack, y = planted
    kernels = [simple_mkkm.kernel(S) for S in stack.sources]
    H, gamma, values = simple_mkkm.descend(kernels, 3)
    assert (np.diff(values) < 0).all()
    assert gamma.sum() == pytest.approx(1)
    np.testing.assert_allclose(H.T @ H, np.eye(3), atol=1e-9)
    mixed = sum(g**2 * K for g, K in zip(gamma, kernels, strict=True))
    assert values[-1] == pytest.approx(np.linalg.eigvalsh(mixed)[-3:].sum())
    slopes = [
        2 * g * np.trace(K @ H @ H.T) for g, K in zip(gamma, kernels, strict=True)
    ]
    # nothing is gained by other weights
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-3)
    tried = [
        simple_mkkm.best_partition(kernels, [g, 1 - g], 3)[1]
        for g in np.linspace(0, 1, 41)
    ]
    assert values[-1] <= min(tried) + 1e-9
    assert clustering_accuracy(y, simple_mkkm.cluster(None, stack, 3, 0)) == 1


def test_added_sources(planted):
    stack, _ = planted
    assert question.with_noise(stack, (question.DENSE, question.CLEAN), 0) is stack
    dense = question.with_noise(stack, (question.DENSE, MANY), 0)
    assert dense.shape[2] == 2 + 4 + 2
    assert dense.names[2:] == (
        *(f"noise {i}" for i in range(4)),
        "constant 0",
        "constant 1",
    )
    for S in dense.sources[2:]:
        np.testing.assert_allclose(S, S.T, rtol=1e-12)
    for S in dense.sources[6:]:
        assert 1 <= S.min() < 1.01 < 1.04 < S.max() <= 1.05
    again, other = (
        question.with_noise(stack, (question.DENSE, MANY), seed) for seed in (0, 1)
    )
    np.testing.assert_array_equal(again.sources[2], dense.sources[2])
    assert not np.allclose(other.sources[2], dense.sources[2])
    graphs = question.with_noise(stack, (question.GRAPHS, ONE), 0)
    assert graphs.shape[2] == 2 + 1 + 1
    for S in graphs.sources[2:]:
        assert 10 <= S.nnz / 45 <= 20
        np.testing.assert_array_equal(S.diagonal(), 0)


def test_graph_of_noise_is_that_of_its_features():
    n = 60
    features = np.random.default_rng(0).normal(size=(n, question.FEATURES))
    actual = question.graph(question.noise(n, np.random.default_rng(0)))
    expected = make_affinity(features, "nearest_neighbors", normalize=True).block()
    np.testing.assert_allclose(actual.toarray(), expected.toarray(), atol=1e-9)


def test_weight_of_added_sources_and_failures(planted):
    stack, y = planted
    data = views.Views("toy", stack, y)

    def fail(*arguments):
        raise NoClusteringError("it took too long.")

    def found(mixed, k, seed):
        return y, np.full(mixed.shape[2], 1 / mixed.shape[2]), question.LONG

    failed: dict[str, str] = {}
    case, takers = (question.DENSE, ONE), {"peer": fail, "slow": found}
    runs = question._measure(data, stack, case, takers, range(5), failed)
    assert runs["peer"] == []
    assert failed == {f"peer on toy, {question.DENSE}, {ONE}": "it took too long."}
    assert len(runs["slow"]) == 2  # no more after `LONG` seconds
    right = {"ari": 1, "nmi": 1, "accuracy": 1}
    assert runs["slow"][0] == right | {"seconds": 60, "weight": 0.5, "least": 0.25}


def _runs(values):
    """Return runs in every case of two sets, by method: the ARI of both sets."""
    return {
        (name, *case, method): []
        if ari is None
        else [{"ari": ari, "weight": 0.1 * i, "least": 1}]
        for case in question.CASES
        for method, of_sets in values.items()
        for i, (name, ari) in enumerate(zip("ab", of_sets, strict=True))
    }


def test_summaries_over_sets():
    values = {"fusion": (0.9, 0.5), "SNF": (0.8, None), "spectral, mean": (0.7, 0.54)}
    runs = _runs(values | {"SimpleMKKM": (0.9, 0.1), "best single source": (1.0, 1.0)})
    means = question.mean_figures(runs, "ari")
    case = question.CASES[0]
    rows = {row["method"]: row for row in question.by_method(means)}
    assert rows["fusion"]["dense, clean"] == "0.700"
    assert rows["SNF"]["dense, clean"] == "0.800"  # of the one set that it clustered
    assert question.behind(case, means)["which"] == "b by 0.040"
    *told, last = question.verdicts(means)
    assert "0.700 of the default against 0.800 of SNF" in told[0]
    assert "missed" in told[0]
    assert "costs" not in told[0]
    assert "costs the default 0.000" in told[1]
    assert "in 6 of 12 cases of a set (target: none): missed" in last
    assert (
        "in 6 of 12 fits, and none to a source of the set in 0"
        in question.told_weights(runs)
    )
    shown = question.weights(runs)[0]
    assert shown == {"method": "fusion"} | {
        f"{kind}, {regime}": "0.050, 0.100"
        for kind in question.KINDS
        for regime in (ONE, MANY)
    }


def test_oracle_is_the_best_source(planted):
    stack, y = planted
    data = views.Views("toy", stack, y)
    flat = np.ones((45, 45)) + np.diag(np.arange(45.0))
    mixed = SimilarityStack([flat, stack.sources[0]])
    assert question._alone(data, mixed, range(1))[0]["ari"] == 1


def test_new_methods_are_known():
    takers, skipped = question._takers()
    assert {*takers, *skipped} == set(question.METHODS)
    assert methods.load(question.MKKM).wants == methods.SIMILARITIES
