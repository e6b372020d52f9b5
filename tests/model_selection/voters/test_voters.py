"""The other criteria: axes, separation, prediction strength, and the vote."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import cut_tree, ward
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score, silhouette_score

from nmfcluster.model_selection.voters.axes import main_axes
from nmfcluster.model_selection.voters.separation import are_apart, cut, most_apart
from nmfcluster.model_selection.voters.silhouettes import largest_silhouette, mean_silhouette
from nmfcluster.model_selection.voters.strength import Split, most_predicted, prediction_strength
from nmfcluster.model_selection.voters.voting import Poll, Tally, as_good_as, poll_of, tally

X, Y = make_blobs(240, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
NAMES = ("mixture", "modes", "silhouette", "separation", "prediction strength", "density")


# --- axes --------------------------------------------------------------------------------------


def noise(n, p, seed=0):
    return np.random.default_rng(seed).normal(size=(n, p))


def distances(A):
    return np.linalg.norm(A[:, None] - A, axis=2)


def test_axes_that_are_noise_are_left_out():
    E = noise(600, 30)
    assert main_axes(E).shape == (600, 2)
    centres = 6 * np.eye(4, 30)
    Z = main_axes(E + centres[np.arange(600) % 4])
    assert Z.shape == (600, 3)
    assert_allclose(Z.std(), 1)


@pytest.mark.parametrize(("n", "p", "m"), [(600, 5, 5), (600, 2, 2), (70, 5, 2), (600, 1, 1)])
def test_few_features_are_kept(n, p, m):
    E = noise(n, p)
    Z = main_axes(E)
    assert Z.shape == (n, m)
    if m == p:
        ratio = (
            distances(Z[:20])[np.triu_indices(20, 1)] / distances(E[:20])[np.triu_indices(20, 1)]
        )
        assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize("shape", [(60, 8), (40, 200)])
def test_axes_are_those_of_a_dense_table(shape):
    rng = np.random.default_rng(0)
    A = rng.normal(size=shape) * (rng.uniform(size=shape) < 0.3) + 3
    A[: shape[0] // 2, :4] = 9
    Z = main_axes(A)
    U, s, _ = np.linalg.svd(A - A.mean(axis=0), full_matrices=False)
    expected = (U * s)[:, : Z.shape[1]]
    assert_allclose(abs(Z), abs(expected) / expected.std(), atol=1e-8)
    assert_allclose(abs(main_axes(sp.csr_array(A))), abs(Z), atol=1e-8)


def test_axes_do_not_depend_on_where_samples_are():
    E = noise(60, 8)
    assert_allclose(abs(main_axes(E + 1e8)), abs(main_axes(E)), atol=1e-6)


def test_samples_at_one_place_have_axes():
    assert_array_equal(main_axes(np.ones((9, 3))), 0)


# --- separation --------------------------------------------------------------------------------


def test_clusters_that_are_apart_are_counted():
    assert most_apart(X, range(2, 9)) == 3
    assert most_apart(X, [2]) == 2
    assert most_apart(X, [1]) == most_apart(X[:5], range(6, 9)) == most_apart(X, []) == 1
    assert most_apart(noise(400, 2), range(2, 9)) == 1


def test_one_gaussian_is_not_two_clusters():
    E = noise(400, 2)
    assert not are_apart(E, (E[:, 0] > 0).astype(int))
    assert are_apart(np.concatenate([E, E + 6]), np.repeat([4, 7], 400))
    assert not are_apart(np.concatenate([E, E[:3] + 6]), np.repeat([0, 1], [400, 3]))


@pytest.mark.parametrize("k", [1, 2, 7, 60])
def test_a_tree_is_cut_as_by_scipy(k):
    tree = ward(noise(60, 2))
    assert adjusted_rand_score(cut(tree, k), cut_tree(tree, k)[:, 0]) == 1
    assert len(np.unique(cut(tree, k))) == k


# --- silhouette --------------------------------------------------------------------------------


def test_the_largest_silhouette_is_found():
    labellings = {k: KMeans(k, n_init=1, random_state=0).fit(X).labels_ for k in range(1, 7)}
    assert largest_silhouette(X, labellings) == 3
    assert largest_silhouette(X[:4], {4: np.arange(4), 1: np.ones(4)}) == 1
    assert largest_silhouette(X, {}) == 1


def test_silhouettes_are_those_of_the_definition():
    E, labels = noise(30, 2), np.append(np.arange(29) % 3, 3)  # one is alone
    D, values = distances(E), []
    for i in range(30):
        fellows = (labels == labels[i]) & (np.arange(30) != i)
        b = min(D[i, labels == c].mean() for c in range(4) if c != labels[i])
        a = D[i, fellows].mean() if fellows.any() else b  # alone: 0
        values.append((b - a) / max(a, b))
    sums = np.column_stack([D[:, labels == c].sum(axis=1) for c in range(4)])
    assert_allclose(mean_silhouette(sums, labels), np.mean(values))
    assert_allclose(mean_silhouette(sums, labels), silhouette_score(E, labels))


# --- prediction strength -----------------------------------------------------------------------


def literal_strength(labels, predicted):
    shares = []
    for c in np.unique(labels):
        pairs = list(combinations(np.flatnonzero(labels == c), 2))
        shares.append(np.mean([predicted[i] == predicted[j] for i, j in pairs]) if pairs else 1)
    return min(shares)


@pytest.mark.parametrize("seed", range(5))
def test_prediction_strength_is_the_share_of_pairs_kept(seed):
    rng = np.random.default_rng(seed)
    labels, predicted = np.append(rng.integers(4, size=30), 4), rng.integers(3, size=31)
    assert prediction_strength(labels, predicted) == pytest.approx(
        literal_strength(labels, predicted)
    )


def test_clusters_that_are_there_are_found_again():
    assert most_predicted(X, range(2, 7), np.random.default_rng(0)) == 3
    assert most_predicted(noise(200, 2), range(2, 7), np.random.default_rng(0)) == 1
    assert most_predicted(X[:6], range(2, 7), np.random.default_rng(0)) == 1


def test_splits_have_halves_and_the_better_of_two_starts():
    split = Split(X, 6, np.random.default_rng(0))
    first, second = split._halves
    assert_array_equal(np.sort(np.concatenate([first, second])[:, 0]), np.sort(X[:, 0]))
    for k in (2, 3, 6):
        fits = [
            [KMeans(k, init=start[:k], n_init=1).fit(half) for start in starts]
            for half, starts in zip((first, second), split._starts, strict=True)
        ]
        best = [min(own, key=lambda fit: fit.inertia_) for own in fits]
        expected = literal_strength(best[1].labels_, best[0].predict(second))
        assert split.strength(k) == pytest.approx(expected)


# --- the vote ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "certain", "candidates", "expected"),
    [
        ((3, 3, 3, 2, 3, 1), 3, range(1, 9), Tally(3, 4)),
        ((2, 3, 3, 1, 2, 1), 3, range(1, 9), Tally(2, 2)),  # the first of the tied
        ((2, 3, 3, 2, 4, 1), 3, range(1, 9), Tally(3, 2)),  # separation does not say how many
        ((1, 2, 19, 2, 3, 7), 2, range(1, 21), Tally(3, 1)),  # nor agree with another one
        ((20, 41, 6, 9, 8, 10), 9, range(1, 21), Tally(9, 1)),  # the median, the lower of two
        ((2, 1, 2, 1, 2, 1), 1, range(1, 9), Tally(2, 3)),  # a tie with one is not decided by it
        ((2, 1, 2, 1, 1, 2), 1, range(1, 9), Tally(1, 3)),  # but where it is predicted
        ((2, 1, 3, 1, 2, 1), 1, range(1, 9), Tally(2, 2)),  # one vote more is not enough for one
        ((2, 1, 3, 1, 4, 1), 1, range(1, 9), Tally(1, 3)),  # two are
        ((1, 1, 2, 1, 2, 1), 1, range(1, 9), Tally(1, 4)),
        ((10, 11, 12, 14, 1, 1), 9, range(1, 16), Tally(11, 1)),  # two are not enough for one
        ((5, 3, 3, 4, 1, 1), 1, range(1, 9), Tally(1, 2)),  # the strict ones
        ((5, 3, 3, 4, 1, 1), 1, range(2, 9), Tally(3, 2)),
        ((5, 3, 3, 4, 1, 1), 2, range(1, 9), Tally(3, 2)),
        ((10, 1, 12, 14, 1, 3), 2, range(1, 16), Tally(10, 1)),
        ((10, 1, 13, 14, 1, 13), 2, [1, 2, 20], Tally(20, 0)),  # the nearest to 13
        ((30, 40, 30, 30, 30, 30), 9, range(1, 16), Tally(15, 0)),
        ((1, 1, 1, 1, 1, 1), 1, range(4, 9), Tally(4, 0)),
        ((1, 1, 1, 1, 1, 1), 1, [1], Tally(1, 6)),
        ((4, 4, 4, 4, 4, 4), 4, [1], Tally(1, 0)),
    ],
)
def test_most_criteria_decide(answers, certain, candidates, expected):
    poll = Poll(dict(zip(NAMES, answers, strict=True)), certain)
    assert tally(poll, list(candidates)) == expected


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((3, 3, 3, 3, 2, 2), [3]),
        ((3, 3, 3, 4, 2, 2), [2, 3]),
        ((3, 3, 2, 2, 4, 1), [1, 2, 3, 4]),
        ((3, 3, 2, 4, 20, 1), [1, 2, 3, 4]),
        ((7, 4, 5, 9, 1, 20), [1, 4, 5, 6, 7, 8, 9]),  # no two agree
        ((30, 40, 50, 60, 70, 80), [9]),
    ],
)
def test_numbers_that_the_winner_can_hardly_be_told_from(answers, expected):
    poll, candidates = Poll(dict(zip(NAMES, answers, strict=True)), 9), range(1, 10)
    found = as_good_as(tally(poll, candidates), poll, candidates)
    assert_array_equal(np.array(candidates)[found], expected)


def test_all_criteria_find_clusters_that_are_there():
    poll = poll_of(X, 8, np.random.default_rng(0))
    assert tuple(poll.answers) == NAMES
    assert set(poll.answers.values()) == {3}
    assert poll.certain_modes == 3
    assert poll_of(X, 8, np.random.default_rng(0)) == poll


@pytest.mark.parametrize(
    "table",
    [
        np.ones((30, 3)),
        np.repeat(np.eye(3), 4, axis=0),
        noise(8, 4),
        noise(12, 100),
        np.random.default_rng(0).integers(2, size=(60, 2)).astype(float),
        1e-30 * X,
        1e30 * X,
    ],
)
def test_strange_tables_have_answers_without_a_warning(table, recwarn):
    poll = poll_of(table, 8, np.random.default_rng(0))
    assert all(1 <= k <= 8 for k in poll.answers.values())
    assert not recwarn.list
