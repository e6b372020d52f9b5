"""What the question about pairs on all data sets does beside running."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
datasets = pytest.importorskip(
    "benchmarks.datasets", reason="benchmarks are not installed"
)

from benchmarks import methods, scores  # noqa: E402
from benchmarks.methods import constraint_propagation, peer  # noqa: E402
from benchmarks.methods.farthest import farthest_pairs  # noqa: E402
from benchmarks.methods.peer import NoClusteringError, TooLongError  # noqa: E402
from benchmarks.questions import _pairs_runs, asked_pairs, pairs_everywhere, wrong_pairs  # noqa: E402
from nmfcluster import PairwiseConstraints  # noqa: E402

pytestmark = pytest.mark.slow  # together


@pytest.fixture
def toy():
    y = np.repeat([0, 1], 30)
    X = np.random.default_rng(0).normal(size=(60, 2)) + 6 * y[:, None]
    return datasets.Dataset("toy, standardised", X, y)


def test_propagated_constraints_are_as_printed():
    rng = np.random.default_rng(0)
    W = rng.uniform(size=(5, 5))
    W = (W + W.T) / 2
    pairs = PairwiseConstraints(5, must_link=[(0, 2)], cannot_link=[(1, 4)])
    Z = constraint_propagation.signs(pairs)
    assert (Z[0, 2], Z[2, 0], Z[1, 4], Z[4, 1], np.abs(Z).sum()) == (1, 1, -1, -1, 4)
    # one direction and then the other, by the iteration F <- a L F + (1 - a) Z of the paper
    L = W / np.sqrt(np.outer(W.sum(axis=1), W.sum(axis=1)))
    F, G = Z.copy(), Z.copy()
    for _ in range(500):
        F = 0.8 * L @ F + 0.2 * Z
    for _ in range(500):
        G = 0.8 * G @ L + 0.2 * F
    actual = constraint_propagation.propagated(W, Z)
    np.testing.assert_allclose(actual, G, atol=1e-12)
    made = constraint_propagation.adjusted(W, actual)
    assert made[0, 2] == pytest.approx(1 - (1 - G[0, 2]) * (1 - W[0, 2]))
    assert made[1, 4] == pytest.approx((1 + G[1, 4]) * W[1, 4])
    assert (made[0, 2] > W[0, 2], made[1, 4] < W[1, 4]) == (True, True)


def test_methods_get_pairs_or_the_classes_behind_them(toy):
    got = {}

    def cluster(X, extra, k, seed):
        got[k, seed] = extra
        return toy.y, 1.0

    runs, failed = {}, _pairs_runs.Failed()
    for wants in (methods.CONSTRAINTS, methods.LABELS):
        taker = methods.Method(wants, cluster, wants=wants)
        _pairs_runs.measure(runs, failed, toy, 5, 3, {wants: taker})
        if wants == methods.CONSTRAINTS:
            free = scores.samples_in_no_pair(got[2, 3])
            assert got[2, 3].n_pairs == 5
    np.testing.assert_array_equal(got[2, 3], np.where(free, -1, toy.y))
    assert runs[toy.name, 5, methods.LABELS] == [{"ARI": 1, "free": 1, "s": 1}]
    got.clear()
    _pairs_runs.measure(runs, failed, toy, 0, 0, {methods.LABELS: taker})
    assert not got  # without pairs no classes are known
    assert np.isnan(runs[toy.name, 0, methods.LABELS][0]["ARI"])


def test_a_score_of_few_samples_in_no_pair_is_none(toy):
    taker = methods.Method("toy", lambda *_: (toy.y, 1.0), wants=methods.CONSTRAINTS)
    runs = {}
    _pairs_runs.measure(runs, _pairs_runs.Failed(), toy, 300, 0, {"toy": taker})
    [run] = runs[toy.name, 300, "toy"]
    assert run["ARI"] == 1
    assert np.isnan(run["free"])


def test_a_peer_that_takes_too_long_is_not_asked_again(toy):
    asked = []

    def fail(why, *arguments):
        asked.append(why)
        raise why

    runs, failed = {}, _pairs_runs.Failed()
    whys = {
        "slow": TooLongError(),
        "broken": RuntimeError(),
        "unlucky": NoClusteringError(),
    }
    for draw in range(2):
        for name, why in whys.items():
            taker = methods.Method(
                name, lambda *_, why=why: fail(why), wants=methods.CONSTRAINTS
            )
            _pairs_runs.measure(runs, failed, toy, 5, draw, {name: taker})
    assert [asked.count(why) for why in whys.values()] == [1, 1, 2]
    assert all(np.isnan(_pairs_runs.mean(own, "ARI")) for own in runs.values())
    [note] = pairs_everywhere._failures(runs, failed, (5,))
    assert "slow took too long on 1 sets (toy, standardised)" in note
    assert "broken failed on 1 sets" in note
    assert "unlucky found no clustering on 1 sets with 5 pairs" in note


def test_means_are_over_the_sets_that_all_methods_have():
    nan = np.nan
    values = {
        "ours": np.array([0.1, 0.2, 0.3, 0.4, nan]),
        "other": np.array([0.5, 0.6, nan, 0.7, 0.8]),
        "seldom": np.array([0.9, nan, nan, 0.9, 0.9]),
    }
    n_sets, means = _pairs_runs.shared_means(values)
    assert n_sets == 3
    assert means == pytest.approx({"ours": 0.7 / 3, "other": 0.6})
    assert _pairs_runs.shared_means({"ours": np.array([nan])}) == (0, {})


def test_sets_that_pairs_harm_are_named(toy):
    runs = {}
    for count, ari in ((0, 0.8), (20, 0.7), (50, 0.79)):
        runs[toy.name, count, pairs_everywhere.OURS] = [
            {"ARI": ari, "free": ari, "s": 1.0}
        ] * 2
    row = pairs_everywhere._row(toy, runs, (0, 20, 50))
    assert row["worse than without with"] == "20"
    first, second = pairs_everywhere._worse([row], (0, 20, 50))
    assert (
        "worse by more than 0.02 on 1 of 1 sets (toy, standardised by 0.100)" in first
    )
    assert "on 0 of 1 sets (none)" in second


def test_peers_get_less_time_and_fewer_draws():
    got = []

    def cluster(X, extra, k, seed, longest=None):
        got.append(longest)

    takers = {name: methods.Method(name, cluster) for name in ("SSNMF", "PCKMeans")}
    asked = pairs_everywhere._asked(takers, 0)
    for method in asked.values():
        method.run(None, None, 2, 0)
    assert got == [None, pairs_everywhere.LONGEST]
    assert list(pairs_everywhere._asked(takers, pairs_everywhere.PEER_DRAWS)) == [
        "SSNMF"
    ]


def test_fast_hdbscan_has_an_environment_of_its_own(monkeypatch):
    monkeypatch.delenv(peer.HDBSCAN_PYTHON, raising=False)
    assert "pip install fast-hdbscan" in methods.load("fast-hdbscan").reason()


def test_some_pairs_are_turned_into_their_opposite(toy):
    pairs = PairwiseConstraints.from_labels(toy.y, 200, random_state=0)
    turned = wrong_pairs.turned(pairs, 0.2, 0)
    share = 1 - turned.satisfaction(toy.y)
    assert 0.1 < share < 0.3
    assert turned.n_pairs == 200
    assert wrong_pairs.turned(pairs, 0.0, 0) == pairs


def test_farthest_first_asks_no_pair_that_follows(toy):
    codes = np.repeat([0, 1, 2], 20)
    pairs = farthest_pairs(toy.X, codes, 80, np.random.default_rng(0))
    known = asked_pairs.answered(codes, pairs)
    assert known.n_pairs == len(pairs)  # none twice
    assert known.check(3) == "feasible"
    first, second = pairs[0]
    gaps = np.linalg.norm(toy.X - toy.X[second], axis=1)
    assert gaps[first] == gaps.max()
    for place in range(len(pairs)):  # what was asked did not follow from what was known
        before, (i, j) = asked_pairs.answered(codes, pairs[:place]), pairs[place]
        closed = before.closure()
        told = {
            tuple(sorted(p))
            for p in [*closed.must_link.tolist(), *closed.cannot_link.tolist()]
        }
        assert (min(i, j), max(i, j)) not in told
