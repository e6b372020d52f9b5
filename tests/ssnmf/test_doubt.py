"""Pairs that may be wrong, beside the formulas written out, and what a fit makes of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.affinity import make_affinity
from nmfcluster.similarity import spreading
from nmfcluster.ssnmf import doubt
from nmfcluster.ssnmf.doubt import doubt_of, fitted

X, y = load_iris(return_X_y=True)
ASKED = SSNMFClusterer(3, contradictions="ignore")


def pairs_with_wrong(share, n_pairs=200, seed=0):
    """Return pairs, of which a share is turned into its opposite, and which are right."""
    drawn = PairwiseConstraints.from_labels(y, n_pairs=n_pairs, random_state=seed)
    rng = np.random.default_rng(seed)
    must, cannot = drawn.must_link, drawn.cannot_link
    m, c = rng.random(len(must)) < share, rng.random(len(cannot)) < share
    pairs = PairwiseConstraints(
        len(y), np.concatenate([must[~m], cannot[c]]), np.concatenate([cannot[~c], must[m]])
    )
    links = np.concatenate([pairs.must_link, pairs.cannot_link])
    said = np.arange(len(links)) < len(pairs.must_link)
    return pairs, (y[links[:, 0]] == y[links[:, 1]]) == said


def fixed():
    return np.random.RandomState(0)


def literal(W, B, pairs):
    """Follow the docstring of doubt_of pair by pair, in dense arrays."""
    D = np.diag(W.sum(axis=1) ** -0.5)
    K = 0.35 * np.linalg.inv(np.eye(len(W)) - 0.65 * D @ W @ D)
    walks, among = B @ K, B @ K @ B.T
    together, apart = ((Z.toarray() != 0).astype(float) for Z in pairs.as_matrices())
    c = len(pairs.cannot_link) / len(pairs.must_link)
    m = np.median([(among[i, i] + among[j, j]) / 2 for i, j in both(pairs)])
    rows = []
    for number, (i, j) in enumerate(both(pairs)):
        own = among[i, i] * among[j, j] + among[i, j] ** 2
        is_must = number < len(pairs.must_link)
        plus = c * (walks[i] @ B.T @ together @ B @ walks[j] - own * is_must)
        minus = walks[i] @ B.T @ apart @ B @ walks[j] - own * (not is_must)
        cosine = walks[i] @ walks[j] / np.linalg.norm(walks[i]) / np.linalg.norm(walks[j])
        rows.append([np.log(0.01 + cosine), (plus - minus) / (plus + minus + 0.001 * m**2)])
    rows = np.array(rows)
    return (rows - rows.mean(axis=0)) / rows.std(axis=0)


def both(pairs):
    return np.concatenate([pairs.must_link, pairs.cannot_link]).tolist()


@pytest.fixture
def seen(monkeypatch):
    """What the model of pairs was fitted to."""
    given = []

    def spy(evidence, must):
        given.append(evidence)
        return fitted(evidence, must)

    monkeypatch.setattr(doubt, "fitted", spy)
    return given


@pytest.mark.parametrize("block", [7, 2_000])
def test_evidence_is_that_of_the_formula(block, seen, monkeypatch):
    monkeypatch.setattr(doubt, "_BLOCK", block)
    affinity, (pairs, _) = make_affinity(X), pairs_with_wrong(0.1)
    doubt_of(ASKED, affinity, pairs, fixed())
    W = affinity.similarity.toarray()
    np.fill_diagonal(W, 0)
    assert_allclose(seen[0], literal(W, np.eye(150), pairs), atol=1e-8)


@pytest.mark.parametrize("name", ["nearest_neighbors", "landmarks"])
def test_evidence_between_points(name, seen, few_points):
    few_points(100, 60)
    affinity, (pairs, _) = make_affinity(X, name, n_landmarks=60), pairs_with_wrong(0.1)
    doubt_of(ASKED, affinity, pairs, fixed())
    links = sum(Z.astype(bool).astype(float) for Z in pairs.as_matrices())
    V, B = spreading.points_of(affinity.similarity, links, fixed(), name == "landmarks")
    assert V.shape == (60, 60)
    assert_allclose(seen[0], literal(V, B.toarray(), pairs), atol=1e-8)


def test_the_model_is_where_its_equations_hold():
    """Neither step of expectation maximisation changes what was found."""
    rng = np.random.default_rng(0)
    together = rng.random(400) < 0.4
    evidence = rng.normal(np.where(together, 1, -1)[:, None], 1.2, (400, 2))
    must = together ^ (rng.random(400) < 0.15)
    right, share = fitted(evidence, must)
    assert_allclose(share, ((1 - right).sum() + 1) / 411)
    assert 0.05 < share < 0.2  # the estimate is low: noise explains some of it
    design = np.column_stack([np.ones(400), evidence])
    belongs, ridge = np.where(must, right, 1 - right), np.diag([1e-3, 1, 1])
    slopes = np.zeros(3)
    for _ in range(50):
        p = expit(design @ slopes)
        slopes += np.linalg.solve(
            (design.T * (p * (1 - p))) @ design + ridge, design.T @ (belongs - p) - ridge @ slopes
        )
    p = expit(design @ slopes)
    odds = np.where(must, p / (1 - p), (1 - p) / p) * (1 - share) / share
    assert_allclose(right, odds / (1 + odds), atol=1e-3)


def test_samples_have_no_order():
    pairs, _ = pairs_with_wrong(0.1)
    order = np.random.default_rng(1).permutation(150)
    W = make_affinity(X).similarity.toarray()  # a graph of its own would settle ties by order
    found = doubt_of(ASKED, make_affinity(W, "precomputed"), pairs, fixed())
    permuted = make_affinity(W[np.ix_(order, order)], "precomputed")
    other = doubt_of(ASKED, permuted, pairs[order], fixed())
    trust = {tuple(pair): p for pair, p in zip(pairs.must_link, found.must_link, strict=True)}
    for pair, p in zip(pairs[order].must_link, other.must_link, strict=True):
        assert_allclose(p, trust[tuple(np.sort(order[pair]))], atol=1e-6)
    assert_allclose(found.share, other.share, atol=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_wrong_pairs_are_told_from_right_ones(seed):
    pairs, right = pairs_with_wrong(0.1, seed=seed)
    model = SSNMFClusterer(3, contradictions="ignore", random_state=0).fit(X, constraints=pairs)
    trust = np.concatenate([model.doubt_.must_link, model.doubt_.cannot_link])
    assert roc_auc_score(right, trust) > 0.85
    assert not model.doubt_.hard
    assert 0.02 < model.doubt_.share < 0.2
    hard = SSNMFClusterer(3, hard_must_link=True, contradictions="ignore", random_state=0)
    scores = [
        adjusted_rand_score(y, fit.labels_)
        for fit in (model, hard.fit(X, constraints=pairs), SSNMFClusterer(3, random_state=0).fit(X))
    ]
    assert scores[0] > max(scores[1:]) + 0.02


@pytest.mark.parametrize("seed", range(3))
def test_right_pairs_are_taken_at_their_word(seed):
    pairs, _ = pairs_with_wrong(0, seed=seed)
    doubting = SSNMFClusterer(3, contradictions="warn", random_state=0)
    doubting.fit(X, constraints=pairs)
    sure = SSNMFClusterer(3, random_state=0).fit(X, constraints=pairs)
    assert doubting.doubt_.hard
    assert doubting.doubt_.share < 0.04
    assert_array_equal(doubting.membership_, sure.membership_)
    assert sure.doubt_.hard
    assert np.isnan(sure.doubt_.share)
    assert sure.doubt_.must_link is sure.doubt_.cannot_link is None


@pytest.mark.parametrize(("n_pairs", "most"), [(50, 0.08), (200, 0.05)])
def test_pairs_are_doubted_from_a_share_of_wrong_ones_on(n_pairs, most, monkeypatch):
    """Above .04 + 2 / n_pairs, and not at it."""
    pairs = PairwiseConstraints.from_labels(y, n_pairs=n_pairs, random_state=0)
    for share, hard in [(most - 0.001, True), (most, True), (most + 0.001, False)]:
        monkeypatch.setattr(doubt, "fitted", lambda *_, share=share: (np.ones(n_pairs), share))
        found = doubt_of(ASKED, make_affinity(X), pairs, fixed())
        assert (found.hard, found.share) == (hard, share)


def test_weights_are_multiplied_by_trust():
    pairs = PairwiseConstraints(6, [(0, 1, 2.0), (2, 3, 1.0)], [(0, 2, 0.5), (1, 4, 1.0)])
    found = doubt.Doubt(False, 0.2, np.array([0.9, 0.4]), np.array([1.0, 0.75])).weighed(pairs)
    assert_array_equal(found.must_link, [[0, 1]])
    assert_allclose(found.must_link_weights, [1.6])
    assert_allclose(found.cannot_link_weights, [0.5, 0.5])
    assert doubt.Doubt(True, 0.2, *2 * (np.zeros(2),)).weighed(pairs) is pairs


@pytest.mark.parametrize("affinity", ["linear", "rbf", "nearest_neighbors"])
def test_a_contradiction_is_a_proof(affinity):
    pairs = {"must_link": [(0, 1), (1, 2)], "cannot_link": [(0, 2)]}
    model = SSNMFClusterer(2, affinity=affinity, contradictions="ignore", random_state=0, n_init=1)
    centred = X - X.mean(axis=0)  # products are of both signs: no walks
    assert not model.fit(centred, **pairs).doubt_.hard
    assert np.isnan(model.doubt_.share) == (affinity == "linear")
    assert model.set_params(hard_must_link=True).fit(X, **pairs).doubt_.hard
    assert not model.set_params(hard_must_link=False).fit(X, **pairs).doubt_.hard


@pytest.mark.parametrize("kind", ["must_link", "cannot_link", "none"])
def test_one_kind_of_pairs_is_not_doubted(kind):
    pairs = {} if kind == "none" else {kind: [(0, 60), (1, 61)]}
    model = SSNMFClusterer(3, contradictions="ignore", random_state=0).fit(X, **pairs)
    assert model.doubt_.hard
    assert np.isnan(model.doubt_.share)
