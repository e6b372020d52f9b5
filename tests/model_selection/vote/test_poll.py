"""The vote: the axes that criteria look along, and what most of them decide."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from nmfcluster.model_selection.vote.poll import as_good_as, main_axes, poll_of, tally

X, Y = make_blobs(240, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
NAMES = ("mixture", "modes", "silhouette", "separation", "prediction strength", "density")


# --- axes --------------------------------------------------------------------------------------


def noise(n, p):
    return np.random.default_rng(0).normal(size=(n, p))


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


# --- the vote ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "certain", "candidates", "expected"),
    [
        ((3, 3, 3, 2, 3, 1), 3, range(1, 9), (3, 4)),
        ((2, 3, 3, 1, 2, 1), 3, range(1, 9), (2, 2)),  # the first of the tied
        ((2, 3, 3, 2, 4, 1), 3, range(1, 9), (3, 2)),  # separation does not say how many
        ((1, 2, 19, 2, 3, 7), 2, range(1, 21), (3, 1)),  # nor agree with another one
        ((20, 41, 6, 9, 8, 10), 9, range(1, 21), (9, 1)),  # the median, the lower of two
        ((2, 1, 2, 1, 2, 1), 1, range(1, 9), (2, 3)),  # a tie with one is not decided by it
        ((2, 1, 2, 1, 1, 2), 1, range(1, 9), (1, 3)),  # but where it is predicted
        ((2, 1, 3, 1, 2, 1), 1, range(1, 9), (2, 2)),  # one vote more is not enough for one
        ((2, 1, 3, 1, 4, 1), 1, range(1, 9), (1, 3)),  # two are
        ((1, 1, 2, 1, 2, 1), 1, range(1, 9), (1, 4)),
        ((10, 11, 12, 14, 1, 1), 9, range(1, 16), (11, 1)),  # two are not enough for one
        ((5, 3, 3, 4, 1, 1), 1, range(1, 9), (1, 2)),  # the strict ones
        ((5, 3, 3, 4, 1, 1), 1, range(2, 9), (3, 2)),
        ((5, 3, 3, 4, 1, 1), 2, range(1, 9), (3, 2)),
        ((10, 1, 12, 14, 1, 3), 2, range(1, 16), (10, 1)),
        ((10, 1, 13, 14, 1, 13), 2, [1, 2, 20], (20, 0)),  # the nearest to 13
        ((30, 40, 30, 30, 30, 30), 9, range(1, 16), (15, 0)),
        ((1, 1, 1, 1, 1, 1), 1, range(4, 9), (4, 0)),
        ((1, 1, 1, 1, 1, 1), 1, [1], (1, 6)),
        ((4, 4, 4, 4, 4, 4), 4, [1], (1, 0)),
    ],
)
def test_most_criteria_decide(answers, certain, candidates, expected):
    answers = dict(zip(NAMES, answers, strict=True))
    assert tally(answers, certain, list(candidates)) == expected


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
    answers, candidates = dict(zip(NAMES, answers, strict=True)), np.arange(1, 10)
    found = as_good_as(*tally(answers, 9, candidates.tolist()), answers, candidates)
    assert_array_equal(candidates[found], expected)


def test_all_criteria_find_clusters_that_are_there():
    answers, certain_modes = poll_of(X, 5, np.random.default_rng(0))
    assert tuple(answers) == NAMES
    assert set(answers.values()) == {3}
    assert certain_modes == 3
    assert poll_of(X, 5, np.random.default_rng(0)) == (answers, certain_modes)


@pytest.mark.parametrize(
    "table",
    [
        np.ones((30, 3)),
        np.repeat(np.eye(3), 4, axis=0),
        noise(8, 4),
        noise(12, 100),
        np.random.default_rng(0).integers(2, size=(60, 2)).astype(float),
        1e-30 * X[:60],
        1e30 * X[:60],
    ],
)
def test_strange_tables_have_answers_without_a_warning(table, recwarn):
    answers, _ = poll_of(table, 5, np.random.default_rng(0))
    assert all(1 <= k <= 8 for k in answers.values())
    assert not recwarn.list
