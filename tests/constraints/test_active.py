"""Pairs to ask about."""

from copy import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from refusals import raises_naming, warns_naming
from sklearn.datasets import load_iris
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import SSNMFClusterer
from nmfcluster.constraints import PairwiseConstraints, active, next_pairs

X, y = load_iris(return_X_y=True)


def fitted(data, pairs=None, k=3, **options):
    return SSNMFClusterer(k, random_state=0, n_init=1, **options).fit(
        data, constraints=pairs
    )


def answered(pairs, known=None, classes=y):
    """Return what is known after the true classes have answered."""
    same = classes[pairs[:, 0]] == classes[pairs[:, 1]]
    must, cannot = pairs[same], pairs[~same]
    if known is not None:
        must, cannot = (
            np.vstack([known.must_link, must]),
            np.vstack([known.cannot_link, cannot]),
        )
    return PairwiseConstraints(len(classes), must, cannot)


def assert_none_is_implied(pairs, known):
    closed = known.closure()
    implied = {
        tuple(pair)
        for pair in np.vstack([closed.must_link, closed.cannot_link]).tolist()
    }
    group = known.components()
    asked = [frozenset(pair) for pair in group[pairs].tolist()]
    assert not implied & {tuple(sorted(pair)) for pair in pairs.tolist()}
    assert len(asked) == len(set(asked))
    assert all(len(pair) == 2 for pair in asked)


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:SSNMFClusterer found")
@pytest.mark.parametrize(
    ("kind", "n_known"),
    [("dense", 5), ("dense", 500), ("sparse", 5), ("precomputed", 500), ("linear", 500),
     ("landmarks", 5)],
)  # fmt: skip
def test_no_pair_is_implied(n_known, kind):
    known = PairwiseConstraints.from_labels(y, n_pairs=n_known, random_state=n_known)
    data = {"sparse": sp.csr_array(X), "precomputed": rbf_kernel(X)}.get(kind, X)
    options = (
        {"affinity": kind} if kind in ("precomputed", "linear", "landmarks") else {}
    )
    pairs = next_pairs(fitted(data, known, **options), data, 20)
    assert 0 < len(pairs) <= 20
    assert_none_is_implied(pairs, known)


def test_a_cannot_link_of_one_member_holds_for_its_group():
    known = PairwiseConstraints(150, [(0, 1), (1, 2), (60, 61)], [(2, 60)])
    assert_none_is_implied(next_pairs(fitted(X, known), X, 150), known)


@pytest.mark.filterwarnings("ignore:SSNMFClusterer found")
def test_answers_come_to_know_all_pairs():
    rows = np.r_[0:5, 50:55, 100:105]
    data, classes = X[rows], y[rows]
    known = PairwiseConstraints(15)
    for _ in range(12):
        pairs = next_pairs(fitted(data, known), data, 5)
        if not len(pairs):
            break
        known = answered(pairs, known, classes)
    assert known.closure().n_pairs == 15 * 14 // 2
    assert pairs.shape == (0, 2)


@pytest.mark.filterwarnings("ignore:SSNMFClusterer found")
def test_what_nobody_can_tell_is_not_asked_again():
    """One in three answers is missing; the others come to know what can be known."""
    rows = np.r_[0:5, 50:55, 100:105]
    data, classes, known = X[rows], y[rows], PairwiseConstraints(15)
    untold = np.empty((0, 2), int)
    for _ in range(40):
        pairs = next_pairs(fitted(data, known), data, 3, exclude=untold)
        if not len(pairs):
            break
        group = known.components()
        refused = {frozenset(pair) for pair in group[untold].tolist()}
        assert not refused & {frozenset(pair) for pair in group[pairs].tolist()}
        assert_none_is_implied(pairs, known)
        tells = pairs.sum(axis=1) % 3 > 0
        untold = np.vstack([untold, pairs[~tells]])
        known = answered(pairs[tells], known, classes)
    assert pairs.shape == (0, 2)
    assert len(untold) == len(np.unique(np.sort(untold, axis=1), axis=0)) > 5
    assert len(np.unique(known.components())) < 10


def test_what_nobody_can_tell_holds_for_groups_and_in_any_form():
    known = PairwiseConstraints(150, [(0, 1), (50, 51)], [(0, 50), (0, 100), (50, 120)])
    model = fitted(X, known)
    first = next_pairs(model, X, 1)[0].tolist()
    second = next_pairs(model, X, 1, exclude=[first])[0].tolist()
    assert first[0] == second[0]  # it is asked about with another cluster
    group = known.components()
    assert group[first[1]] != group[second[1]]
    third = next_pairs(model, X, 1, exclude=[first, second])[0].tolist()
    others = [[i, j] for i in np.flatnonzero(group == group[first[0]])
              for j in np.flatnonzero(group == group[first[1]])]  # fmt: skip
    for pair in others:
        for exclude in (np.array([pair[::-1], second]), {tuple(pair), tuple(second)},
                        pd.DataFrame([pair, second])):  # fmt: skip
            assert next_pairs(model, X, 1, exclude=exclude)[0].tolist() == third


def test_few_samples_have_few_pairs():
    data = np.array([[0.0, 1], [1, 0], [1, 1]])
    assert 1 <= len(next_pairs(fitted(data, k=2, affinity="linear"), data, 10)) <= 2


def test_a_sample_apart_from_one_group_is_asked_about_first():
    known = PairwiseConstraints(150, [(0, 1), (50, 51)], [(0, 50), (0, 100)])
    assert next_pairs(fitted(X, known), X, 1)[0, 0] == 100


def literal(W, weights, known, groups, count):
    """Return the samples that make the weighted variance smallest, inverting each time anew."""
    n = len(W)
    A = W - np.diag(np.diag(W))
    d = A.sum(axis=1)
    precision = np.eye(n) - 0.95 * A / np.sqrt(np.outer(d, d))
    known, chosen = list(known), []
    for _ in range(count):
        left = {}
        for x in set(range(n)) - set(known) - {g for c in chosen for g in groups[c]}:
            # given values of a field leave the inverse of the other rows of its precision
            rest = np.setdiff1d(np.arange(n), [*known, x])
            left[x] = (
                weights[rest] @ np.linalg.inv(precision[np.ix_(rest, rest)]).diagonal()
            )
        chosen.append(min(left, key=left.get))
        known.append(chosen[-1])
    return chosen


@pytest.mark.parametrize("known", [[], [3], [0, 7, 19]])
def test_the_literal_rule(known):
    rng = np.random.default_rng(len(known))
    W = rbf_kernel(rng.normal(size=(25, 3)), gamma=0.5)
    weights = rng.uniform(0.05, 1, size=25)
    fresh = ~np.isin(np.arange(25), known)
    C = active.condition_covariance(active.compute_covariance(W), np.array(known, int))
    found = active.choose_most_informative(C, weights, np.arange(25), fresh, 6)
    assert found == literal(W, weights, known, [[i] for i in range(25)], 6)


def test_the_literal_pairs():
    """The whole rule, sample by sample, where no group waits for a second answer."""
    data = X[::5]
    known = PairwiseConstraints(30, [(0, 1), (12, 13)], [(0, 12)])
    model = fitted(data, known, affinity="rbf")
    P, labels = model.membership_, model.labels_
    anchors = [[0, 1], [12, 13]]
    met = {int(P[anchor].sum(axis=0).argmax()) for anchor in anchors}
    (cluster,) = {0, 1, 2} - met
    W = rbf_kernel(data, gamma=model_gamma(data))
    A = W - np.diag(np.diag(W))
    field = np.linalg.inv(np.eye(30) - 0.95 * A / np.sqrt(np.outer(A.sum(0), A.sum(0))))
    mass = [field[i, labels == cluster].sum() * P[i, cluster] for i in range(30)]
    middle = max(np.flatnonzero(labels == cluster), key=lambda i: mass[i])
    anchors.append([int(middle)])
    weights, against = np.zeros(30), {}
    for i in set(range(30)) - {0, 1, 12, 13}:
        p = np.array([P[i] @ P[a].mean(axis=0) + 1e-9 for a in anchors])
        if i == middle:
            p[2] = 0
        p /= p.sum()
        entropy = -sum(q * np.log(q) for q in p if q) / np.log(3)
        weights[i], against[i] = 0.05 + entropy, anchors[p.argmax()][0]
    chosen = literal(W, weights, [0, 1, 12, 13], [[i] for i in range(30)], 5)
    assert next_pairs(model, data, 5).tolist() == [[i, against[i]] for i in chosen]


def model_gamma(data):
    squares = ((data[:, None] - data) ** 2).sum(axis=2)[np.triu_indices(len(data), 1)]
    return 1 / np.median(squares)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_known", [0, 60])
def test_another_order_of_the_samples_asks_the_same(n_known):
    rng = np.random.default_rng(0)
    data = X + rng.normal(scale=0.01, size=X.shape)  # no two samples are alike
    known = PairwiseConstraints.from_labels(y, n_pairs=n_known, random_state=1)
    model, order = fitted(data, known), rng.permutation(150)
    other = copy(model)
    other.constraints_ = known[order]
    other.membership_, other.labels_ = model.membership_[order], model.labels_[order]
    group = known.components()
    one = group[next_pairs(model, data, 20)]
    assert {tuple(pair) for pair in one.tolist()} == {
        tuple(pair)
        for pair in group[order[next_pairs(other, data[order], 20)]].tolist()
    }


def test_nothing_is_drawn_and_nothing_changed_where_samples_are_few():
    model = fitted(X)
    before = {name: copy(value) for name, value in vars(model).items()}
    one = next_pairs(model, X, 10)
    np.testing.assert_array_equal(one, next_pairs(model, X, 10, random_state=7))
    assert vars(model).keys() == before.keys()
    assert all(
        np.all(vars(model)[name] == before[name]) for name in ("labels_", "membership_")
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["nearest_neighbors", "precomputed", "landmarks"])
def test_of_many_samples_some_are_drawn(monkeypatch, kind):
    monkeypatch.setattr(active, "MAX_DENSE_SAMPLES", 20)
    data = rbf_kernel(X) if kind == "precomputed" else X
    known = PairwiseConstraints.from_labels(y, n_pairs=10, random_state=0)
    model = fitted(data, known, affinity=kind)
    one = next_pairs(model, data, 10, random_state=3)
    np.testing.assert_array_equal(one, next_pairs(model, data, 10, random_state=3))
    pairs = next_pairs(model, data, 500, random_state=0)
    assert 10 < len(pairs) < 60
    assert_none_is_implied(pairs, known)


def test_named_samples():
    names = np.array([f"flower {i}" for i in range(150)])[::-1]
    table = pd.DataFrame(X, index=names)
    known = PairwiseConstraints.from_ids(
        table, [(names[0], names[1])], [(names[0], names[60])]
    )
    model = fitted(table, known)
    pairs = next_pairs(model, table, 5)
    np.testing.assert_array_equal(pairs, next_pairs(fitted(X, known), X, 5))
    must = np.vstack([known.must_link, pairs[:2]])
    cannot = np.vstack([known.cannot_link, pairs[2:]])
    named = table.index.to_numpy()
    answers = PairwiseConstraints.from_ids(table, named[must], named[cannot])
    assert answers == PairwiseConstraints(150, must, cannot)
    with warns_naming(UserWarning, "order"):
        model.fit(table.sample(frac=1, random_state=0), constraints=answers)
    with raises_naming(ValueError, "X.loc[model.constraints_.index]"):
        next_pairs(model, table, 5)
    again = next_pairs(model, table.loc[model.constraints_.index], 5)
    assert_none_is_implied(again, model.constraints_)


@pytest.mark.slow
def test_asked_pairs_tell_more_than_random_ones():
    known = PairwiseConstraints(150)
    for _ in range(4):
        known = answered(next_pairs(fitted(X, known), X, 5), known)
    asked = adjusted_rand_score(y, fitted(X, known).labels_)
    some = [
        PairwiseConstraints.from_labels(y, n_pairs=20, random_state=i) for i in range(5)
    ]
    assert asked > np.mean(
        [adjusted_rand_score(y, fitted(X, pairs).labels_) for pairs in some]
    )
