"""Every file of the benchmarks runs, on toy sizes."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.metrics import mutual_info_score

sys.path.insert(0, str(Path(__file__).parents[1]))
datasets = pytest.importorskip("benchmarks.datasets", reason="benchmarks are not installed")

from benchmarks import fresh, methods, questions, report, runner, scores, trials  # noqa: E402
from benchmarks.__main__ import RESULTS, main  # noqa: E402
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
from benchmarks.methods import (  # noqa: E402
    cnmf,
    fcm,
    fusion,
    literal_fusion,
    mean_similarity,
    metacluster,
    nmf_runs,
    peer,
    peer_tensorly,
)
from benchmarks.methods.nndsvd import nndsvd_start  # noqa: E402
from benchmarks.methods.peer import NoClusteringError  # noqa: E402
from benchmarks.methods.plain_hals import plain_hals  # noqa: E402
from benchmarks.methods.ss_ncut import edited  # noqa: E402
from benchmarks.methods.symhals import symmetric_hals  # noqa: E402
from benchmarks.questions import (  # noqa: E402
    _how_many_shares,
    _meta_planted,
    _meta_runs,
    _meta_tensor,
    _meta_tumours,
    constraint_scale,
    eta_by_stability,
    fusion_scale,
    how_many_clusters,
    how_many_programs,
    meta_scale,
    papers,
)
from benchmarks.questions import fusion as fusion_question  # noqa: E402
from nmfcluster import PairwiseConstraints, SimilarityStack  # noqa: E402
from nmfcluster._engine.run import iterate  # noqa: E402
from nmfcluster._engine.stopping import StopRule  # noqa: E402
from nmfcluster._engine.symmetric import SymmetricObjective  # noqa: E402
from nmfcluster.affinity import make_affinity  # noqa: E402
from nmfcluster.datasets import make_biclusters  # noqa: E402
from nmfcluster.fusion.model import em_step  # noqa: E402
from nmfcluster.fusion.objective import objective_of  # noqa: E402
from nmfcluster.fusion.sources import make_mixture  # noqa: E402
from nmfcluster.meta.solvers import hals  # noqa: E402
from nmfcluster.meta.squares import MatrixObjective  # noqa: E402
from nmfcluster.metrics import clustering_accuracy  # noqa: E402
from nmfcluster.similarity import Explicit, inner  # noqa: E402

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
    if name not in ("k-means", "HDBSCAN", "fast-hdbscan"):
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


def test_symmetric_hals_and_nndsvd_start(blocks):
    _, _, y = blocks
    E = np.eye(3)[y]
    A = Explicit(E @ E.T + 0.1)
    objective = SymmetricObjective(A, inner(A, A))
    solve = partial(symmetric_hals, objective, nndsvd_start(A, 3)[None])
    [end] = iterate(solve, StopRule(300, tol=-1), scale=1)
    (H,) = end.factors
    assert end.loss == pytest.approx(((A.toarray() - H @ H.T) ** 2).sum(), abs=1e-6)
    assert clustering_accuracy(y, H.argmax(axis=1)) == 1


def test_stored_data(blocks, tmp_path):
    X, extras, y = blocks
    table, pairs = extras[methods.PARTITIONS], extras[methods.CONSTRAINTS]
    for form in (X, sp.csr_array(X)):
        fresh.save(tmp_path / "data.npz", form, y, table, pairs)
        stored, classes, extras = fresh.read(tmp_path / "data.npz")
        assert sp.issparse(stored) == sp.issparse(form)
        np.testing.assert_array_equal(stored.toarray() if sp.issparse(stored) else stored, X)
        np.testing.assert_array_equal(classes, y)
        np.testing.assert_array_equal(extras[methods.PARTITIONS], table)
        np.testing.assert_array_equal(extras[methods.CONSTRAINTS].must_link, pairs.must_link)
        np.testing.assert_array_equal(extras[methods.CONSTRAINTS].cannot_link, pairs.cannot_link)


def test_fresh_process(blocks, tmp_path):
    X, extras, y = blocks
    links = extras[methods.CONSTRAINTS]
    fresh.save(tmp_path / "data.npz", sp.csr_array(X), y, pairs=links)
    measured = fresh.measure("SSNMF, cosine", tmp_path / "data.npz", 0)
    assert measured["ari"] == measured["accuracy"] == 1
    assert measured["seconds"] > 0
    assert measured["mebibytes"] >= 0
    with pytest.raises(RuntimeError, match="no-such-method"):
        fresh.measure("no-such-method", tmp_path / "data.npz", 0)


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


def test_scores():
    y = np.array([0, 0, 0, 1, 1, 2])
    labels = np.array([1, 1, 0, 0, 0, 2])
    table, order = scores.confusion(y, labels)
    np.testing.assert_array_equal(table, [[2, 0, 0], [1, 2, 0], [0, 0, 1]])
    np.testing.assert_array_equal(order, [1, 0, 2])
    pairs = PairwiseConstraints(6, must_link=[(0, 2)], cannot_link=[(0, 4), (0, 3)])
    actual = scores.score(y, labels, pairs)
    expected = {"accuracy": 5 / 6, "free": 1, "free samples": 2, "violated": 1 / 3}
    assert actual == pytest.approx(expected)
    # One cluster of all samples is matched to the largest class.
    np.testing.assert_array_equal(scores.matched(y, np.zeros(6, int)), y == 0)


def test_means_over_trials():
    runs = [
        {"accuracy": 1.0, "free": 1.0, "free samples": 1},
        {"accuracy": 0.5, "free": 0.4, "free samples": 5},
        {"accuracy": np.nan, "free": np.nan, "free samples": np.nan},
    ]
    assert trials.mean(runs, "accuracy") == 0.75
    assert trials.mean(runs, "free") == pytest.approx(3 / 6)  # of all samples, not of trials
    assert trials.spread(runs) == 0.25
    assert trials.failures(runs) == 1
    assert np.isnan(trials.mean(runs[2:], "accuracy"))


def test_a_peer_without_a_clustering_is_counted(blocks):
    X, extras, y = blocks

    def fail(*arguments):
        raise NoClusteringError

    run = trials.of_method(methods.Method("peer", fail), X, y, extras[methods.CONSTRAINTS], 0)
    assert trials.failures([run]) == 1


def test_formed_similarities_are_the_same(tmp_path):
    constraint_scale._make(tmp_path / "documents.npz", 60, 100, 3, 50)
    losses = [
        constraint_scale.time_updates(tmp_path / "documents.npz", form, 0)["loss"]
        for form in constraint_scale.FORMS
    ]
    np.testing.assert_allclose(losses, losses[0], rtol=1e-9)


def test_views_of_pictures():
    pictures = np.arange(2 * 64, dtype=float).reshape(2, 64)
    data = handwritten.halves("toy", pictures, np.array([0, 1]))
    left, right = data.views
    np.testing.assert_array_equal(left[0], [8 * row + c for row in range(8) for c in range(4)])
    np.testing.assert_array_equal(right, left + 4)


def test_graph_of_distances_is_that_of_features():
    X = np.random.default_rng(0).normal(size=(40, 2))
    D = np.linalg.norm(X[:, None] - X, axis=2)
    expected = make_affinity(X, n_neighbors=5).similarity.toarray()
    np.testing.assert_allclose(proteins.neighbours(D, 5).toarray(), expected, atol=1e-12)


def test_mean_of_similarities():
    stack = SimilarityStack([sp.csr_array([[0, 3.0], [3, 0]]), np.ones((2, 2))])
    plain = np.array([[1.0, 4], [4, 1]])  # the sum, of mean 5 / 2
    np.testing.assert_allclose(mean_similarity.mean(stack, scaled=False), plain / 2.5)
    scaled = np.array([[0.25, 0.75], [0.75, 0.25]])
    np.testing.assert_allclose(mean_similarity.mean(stack, scaled=True), scaled / 0.5)


def test_updates_of_fusion_are_the_same():
    rng = np.random.default_rng(0)
    raw = [M + M.T for M in rng.uniform(size=(2, 12, 12))]
    weights, Z = np.array([0.3, 0.7]), rng.uniform(size=(1, 12, 3))
    Z /= Z.sum()
    sources = [S / S.sum() for S in raw]
    W, H = literal_fusion.literal(sources, weights, Z[0], Z[0] / Z[0].sum(axis=0))
    for actual in (
        literal_fusion.per_source(sources, weights, Z[0], Z[0] / Z[0].sum(axis=0)),
        (W, W / W.sum(axis=0)),  # the symmetric form stays symmetric
    ):
        np.testing.assert_allclose(actual[0], W, rtol=1e-12)
        np.testing.assert_allclose(actual[1], H, rtol=1e-12)
    objective = objective_of(make_mixture(raw, np.ones((12, 2), dtype=bool)), "kl", 1.0, None)
    [ours] = em_step(objective, objective.mixture.mixed(weights), weights, Z)
    np.testing.assert_allclose(ours, W, rtol=1e-12)


def test_stored_graphs(tmp_path):
    fusion_scale.save_graphs(tmp_path / "graphs.npz", 120)
    for name in (fusion_scale.OURS, fusion_scale.SPECTRAL):
        actual = fusion_scale.cluster_graphs(tmp_path / "graphs.npz", name)
        assert actual["s"] > 0
        assert actual["MiB on top"] >= 0
        assert 0.3 < actual["ARI"] <= 1


def test_failed_peers_are_reported(blocks):
    def fail(*arguments):
        raise NoClusteringError("it took too long.")

    X, extras, y = blocks
    data = views.Views("toy", X, y, columns=(slice(0, 3),))
    failed: dict[str, str] = {}
    method = methods.Method("peer", fail, wants=methods.VIEWS)
    assert fusion_question._runs(method, data, extras[methods.SIMILARITIES], range(2), failed) == []
    assert failed == {"peer": "it took too long."}


def test_verdict_counts_single_sources(blocks):
    X, _, y = blocks
    data = views.Views("toy", X, y, kernels={"graph": lambda: None, "rbf": lambda: None})

    def runs(*accuracies):
        return [{"accuracy": a, "seconds": 1.0} for a in accuracies]

    own = fusion_question.Results(data, {("graph", "fusion"): runs(0.8, 0.9)})
    own.runs["rbf", "spectral, mean"] = runs(0.85)
    assert "on 1 of 1 sets" in fusion_question._verdict({"toy": own}, "accuracy")
    own.alone["a", "fusion"], own.alone["b", "fusion"] = runs(0.1), runs(0.86)
    told = fusion_question._verdict({"toy": own}, "accuracy")
    assert "on 0 of 1 sets" in told
    assert "toy, 0.850 against 0.860 of fusion on b alone" in told


def test_fuzzy_c_means_is_at_its_own_fixed_point():
    X = np.random.default_rng(0).normal(size=(30, 3)) + 5 * np.eye(3)[np.arange(30) % 3]
    U, centres, loss = fcm.fuzzy_c_means(X, 3, np.random.RandomState(0), tol=1e-12)
    np.testing.assert_allclose(U.sum(axis=1), 1)
    np.testing.assert_allclose(centres, (U**2).T @ X / (U**2).sum(axis=0)[:, None], atol=1e-9)
    squares = ((X[:, None] - centres) ** 2).sum(axis=2)
    closeness = squares**-1.0  # to the power of 1 / (m - 1), m = 2
    np.testing.assert_allclose(U, closeness / closeness.sum(axis=1, keepdims=True), atol=1e-9)
    assert loss == pytest.approx((U**2 * squares).sum())


def test_fuzzy_c_means_of_rows_that_are_centres():
    X = np.repeat([[0.0, 0.0], [1.0, 0.0]], 4, axis=0)
    U, centres, loss = fcm.fuzzy_c_means(X, 2, np.random.RandomState(0))
    np.testing.assert_allclose(np.sort(U, axis=1), np.tile([0.0, 1.0], (8, 1)), atol=1e-6)
    np.testing.assert_allclose(np.sort(centres[:, 0]), [0, 1], atol=1e-6)
    assert loss == pytest.approx(0, abs=1e-9)


def test_consensus_of_parts_leaves_outliers_out():
    rng = np.random.default_rng(0)
    parts = np.array([[1.0, 1, 0, 0], [0, 0, 3, 4]])
    W = rng.uniform(size=(6, 2))
    runs = [nmf_runs.NMFRun(W, parts[rng.permutation(2)] * (1 + i), 0.0) for i in range(9)]
    # The parts of this run are unlike all others: they have no neighbours.
    runs.append(nmf_runs.NMFRun(W, np.array([[0.0, 1, 1, 0], [1.0, 0, 0, 0]]), 1.0))
    actual, H = cnmf.consensus(W @ parts, runs, 2, 0)
    order = H[:, 0].argsort()[::-1]
    lengths = np.linalg.norm(parts, axis=1)
    np.testing.assert_allclose(H[order], parts / lengths[:, None], atol=1e-12)
    np.testing.assert_allclose(actual[:, order], W * lengths, atol=1e-9)


def test_plain_hals_descends():
    X, _, _ = make_biclusters(random_state=0)
    F = np.random.default_rng(0).uniform(size=(3, 4, sum(X.shape)))
    objective = MatrixObjective(X)
    for end in iterate(partial(plain_hals, objective, F), StopRule(50, tol=-1), scale=1):
        W, H = end.factors
        assert end.loss == pytest.approx(((X - W @ H) ** 2).sum() / 2, abs=1e-9)
        assert (np.diff(end.history) <= 1e-12 * objective.constant).all()
        assert end.loss < end.history[0] / 2


def test_clusters_of_columns_as_factors():
    X, W, H = make_biclusters(random_state=0)
    runs = _meta_planted.object_runs("k-means", X, 4, 3, np.random.RandomState(0))
    np.testing.assert_allclose(np.linalg.norm(runs.H, axis=1), 1)
    assert (np.diff(runs.losses) >= 0).all()
    for own, loss in zip(runs.slices(), runs.losses, strict=True):
        model = runs.W[own].T @ runs.H[own]  # each column is the mean of its cluster
        labels = runs.H[own].argmax(axis=0)
        means = np.stack([X[:, labels == c].mean(axis=1) for c in range(4)], axis=1)
        np.testing.assert_allclose(model, means[:, labels], atol=1e-9)
        assert loss == pytest.approx(((X - model) ** 2).sum() / 2)
    told = _meta_planted.Planted(X, W, H).scores(W[:, ::-1], H[::-1])
    assert told == pytest.approx({"match": 1, "match of biclusters": 1, "error": 0})


def test_expression_in_two_classes(monkeypatch, tmp_path):
    stored = {"X": np.array([[20, 40], [20, 80], [160, 20]]), "y": np.array([0, 1, 2])}
    names = {"target_names": ["ALL-B", "ALL-T", "AML"], "sample_names": ["a", "b", "c"]}
    np.savez(tmp_path / "all_aml.npz", **stored, **names)
    monkeypatch.setenv(datasets.FOLDER, str(tmp_path))
    data = datasets.load("all_aml, two classes")
    assert data.y.tolist() == [0, 0, 1]
    assert data.classes == ("ALL", "AML")
    np.testing.assert_allclose(expression.logged(data.X), [[0, 1], [0, 2], [3, 0]])


def test_misplaced_samples_are_named():
    y = np.array([0, 0, 0, 1, 1, 1])
    data = expression.Expression("toy", y, y, samples=tuple("abcdef"), classes=("x", "y"))
    runs = [_meta_tumours._told(y, np.array([1, 1, 0, 0, 0, i])) for i in (0, 0, 1)]
    own = dict.fromkeys((*_meta_tumours.TAKERS, _meta_tumours.BEST), runs)
    row = _meta_tumours.misplaced({("toy", "raw"): own}, {"toy": data})[0]
    assert (row["samples"], row["which"]) == (1, "c")  # f is misplaced in one run of three only


def test_updates_that_reach_a_loss():
    X = make_biclusters(noise=0.25, random_state=0)[0]
    case = _meta_runs.make_case("toy", X, 4, 3)
    ends = [s.factors for s in _meta_runs.solve(case, hals, 30, -1)]
    direct = np.array([((X - W @ H) ** 2).sum() for W, H in ends]) / (X**2).sum()
    assert _meta_runs.losses(case, ends) == pytest.approx(direct)
    targets = {"mean": 1.05 * direct.mean(), "median": 1.05 * np.median(direct)}
    for which, n in _meta_runs.updates_to(case, hals, targets).items():
        at, before = (_meta_runs.time_ours(case, hals, m, -1, 0)[1] for m in (n, n - 1))
        summary = getattr(np, which)
        assert summary(at) <= targets[which] < summary(before)
    assert _meta_runs.updates_to(case, plain_hals, {"mean": 0.0}) == {"mean": None}


def test_timed_runs_all_go_on_to_their_own_stop():
    X = make_biclusters((20, 40), 4, noise=_meta_runs.NOISE, random_state=0)[0]
    case = _meta_runs.make_case("toy", X, 4, 12)
    ends = _meta_runs.solve(case, hals, *_meta_runs.OWN_END)
    assert all(end.converged and not end.given_up for end in ends)


def _literal_update(T, factors):
    """Return the factors after each was updated in turn by eq. 15 of Badea (2005)."""
    factors = list(factors)
    for mode in range(3):
        others = [F for i, F in enumerate(factors) if i != mode]
        unfolded = np.moveaxis(T, mode, 0)
        up = np.einsum("iab,ak,bk->ik", unfolded, *others)
        gram = (others[0].T @ others[0]) * (others[1].T @ others[1])
        factors[mode] = factors[mode] * up / (factors[mode] @ gram)
    return factors


def test_tensor_factorization_beside_the_dense_tensor():
    runs = _meta_tensor.make_runs((12, 15), 3, 3, np.float64)
    T = runs.W[:, :, None] * runs.H[:, None, :]
    start = _meta_tensor.random_start(runs, 3, np.random.RandomState(0))
    _, end = _meta_tensor.ours(runs, start, 40, -1)
    model = np.einsum("jk,sk,kg->jsg", *end.factors)
    assert end.loss == pytest.approx(((T - model) ** 2).sum() / 2)
    if peer_tensorly.reason():
        pytest.skip(peer_tensorly.reason())
    rng = np.random.default_rng(0)
    factors = tuple(rng.uniform(0.5, 1, size=(n, 3)) for n in T.shape)
    seconds, errors = peer_tensorly.factorize(runs, factors, "tensorly, mu", 2)
    expected = []
    for _ in range(2):
        factors = _literal_update(T, factors)
        rest = T - np.einsum("jk,sk,gk->jsg", *factors)
        expected.append(np.linalg.norm(rest) / np.linalg.norm(T))
    np.testing.assert_allclose(errors, expected, rtol=1e-6)
    assert seconds > 0


def test_whole_fits(tmp_path):
    for name in ("planted, 20 x 30", "documents, 30 x 60"):
        shape = (20, 30) if name.startswith("planted") else (30, 60)
        stored = meta_scale.save_table(tmp_path / "table.npz", name, shape, 3)
        assert stored > 0
        arguments = (str(tmp_path / "table.npz"), "3", "4", "0")
        actual = meta_scale.fit_ours(*arguments) | meta_scale.fit_sklearn(*arguments)
        assert set(actual) == {meta_scale.OURS, meta_scale.SKLEARN, meta_scale.CNMF}
        X = fresh.read(tmp_path / "table.npz")[0]
        model = metacluster.fit(X, 3, 0, n_estimators=4, n_jobs=2)
        size = np.sqrt((X.multiply(X) if sp.issparse(X) else X**2).sum())
        expected = model.reconstruction_err_ / size
        assert actual[meta_scale.OURS]["relative error"] == pytest.approx(expected)
        assert all(told["relative error"] < 1 and told["s"] > 0 for told in actual.values())


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


def test_row_of_a_table_is_a_line_of_the_json():
    rows = [{"a": "±", "b": np.array([1, 2])}, {"a": None, "b": {"c": np.float64(0.1)}}]
    content = {"caption": "toy", "tables": {"one": rows, "none": []}, "notes": ["x"], "skipped": {}}
    assert report.as_json(content).splitlines() == [
        "{",
        ' "caption": "toy",',
        ' "tables": {',
        '  "one": [',
        '   {"a": "±", "b": [1, 2]},',
        '   {"a": null, "b": {"c": 0.1}}',
        "  ],",
        '  "none": []',
        " },",
        ' "notes": [',
        '  "x"',
        " ],",
        ' "skipped": {}',
        "}",
    ]


def test_kept_results_have_the_form_of_new_ones():
    files = sorted(RESULTS.glob("*.json"))
    assert files
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert text == report.as_json(json.loads(text)), file.name


@pytest.fixture
def asked(monkeypatch):
    """Replace a question by one that only appends its arguments to this list."""
    calls = []
    monkeypatch.setattr(papers, "run", lambda *arguments: calls.append(arguments))
    return calls


def test_quick_run_writes_to_a_new_folder(asked, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for _ in range(2):
        main(["papers", "--quick"])
    folders = [out for _, out in asked]
    assert [quick for quick, _ in asked] == [True, True]
    assert folders[0] != folders[1]
    assert sorted(folders) == sorted(tmp_path.iterdir())
    assert capsys.readouterr().out.splitlines() == [f"Results are in {out}" for out in folders]


def test_whole_run_writes_the_kept_results(asked, tmp_path):
    main(["papers"])
    main(["papers", "--out", str(tmp_path)])
    assert asked == [(False, RESULTS), (False, tmp_path)]


@pytest.mark.parametrize("out", [str(RESULTS), "results", "questions/../results/"])
def test_quick_run_does_not_write_over_kept_results(out, asked, monkeypatch, capsys):
    monkeypatch.chdir(RESULTS.parent)
    with pytest.raises(SystemExit):
        main(["papers", "--quick", "--out", out])
    assert "give --out another folder" in capsys.readouterr().err
    assert asked == []


def test_every_question_is_known():
    folder = Path(questions.__file__).parent
    assert {path.stem for path in folder.glob("[a-z]*.py")} == set(questions.NAMES)


def in_this_process(function, *arguments):
    """Return the same as `fresh.call`, but without a new process, which imports for seconds."""
    return json.loads(json.dumps(function(*map(str, arguments))))


# What takes most of the time of a quick run, and shows nothing more by being larger.
SMALLER = {
    (eta_by_stability, "ETAS"): (1.0, np.inf),
    (eta_by_stability, "SUBSAMPLES"): 2,
    (how_many_clusters, "TOY"): 1,
    (how_many_programs, "AROUND"): 1,
    (how_many_programs, "N_FOLDS"): 2,
    (_how_many_shares, "AROUND"): 1,
}


@pytest.mark.parametrize("name", questions.NAMES)
def test_question(name, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    # A new process takes seconds to start; the tests above start one of each kind.
    monkeypatch.setattr(fresh, "call", in_this_process)
    if name == "distributed":
        own = importlib.import_module("benchmarks.questions._distributed_runs")
        threads = partial(own.LocalCluster, processes=False)
        monkeypatch.setattr(own, "LocalCluster", threads)
    for (module, constant), value in SMALLER.items():
        monkeypatch.setattr(module, constant, value)
    for python in peer.RECIPES:
        monkeypatch.delenv(python, raising=False)
    with parallel_config("sequential"):
        main([name, "--quick", "--out", str(tmp_path)])
    assert sorted(os.listdir(tmp_path)) == [f"{name}.{kind}" for kind in ("json", "md", "png")]
    content = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert all(len(rows) for rows in content["tables"].values())
    text = (tmp_path / f"{name}.md").read_text(encoding="utf-8")
    assert content["caption"] in text
    assert importlib.import_module(f"benchmarks.questions.{name}").__doc__
