"""The vote: the axes that criteria look along, and what most of them decide."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from nmfcluster.model_selection.vote import (
    FAR_APART,
    close_candidates,
    collect_votes,
    decide,
    disagreement_message,
    project_above_noise,
)

X, Y = make_blobs(240, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
NAMES = ("mixture", "modes", "density", "prediction strength")


# --- axes --------------------------------------------------------------------------------------


def noise(n, p):
    return np.random.default_rng(0).normal(size=(n, p))


def distances(A):
    return np.linalg.norm(A[:, None] - A, axis=2)


def test_axes_that_are_noise_are_left_out():
    E = noise(600, 30)
    assert project_above_noise(E).shape == (600, 2)
    centres = 6 * np.eye(4, 30)
    Z = project_above_noise(E + centres[np.arange(600) % 4])
    assert Z.shape == (600, 3)
    assert_allclose(Z.std(), 1)


@pytest.mark.parametrize(
    ("n", "p", "m"), [(600, 5, 5), (600, 2, 2), (70, 5, 2), (600, 1, 1)]
)
def test_few_features_are_kept(n, p, m):
    E = noise(n, p)
    Z = project_above_noise(E)
    assert Z.shape == (n, m)
    if m == p:
        ratio = (
            distances(Z[:20])[np.triu_indices(20, 1)]
            / distances(E[:20])[np.triu_indices(20, 1)]
        )
        assert_allclose(ratio, ratio[0])


@pytest.mark.parametrize("shape", [(60, 8), (40, 200)])
def test_axes_are_those_of_a_dense_table(shape):
    rng = np.random.default_rng(0)
    A = rng.normal(size=shape) * (rng.uniform(size=shape) < 0.3) + 3
    A[: shape[0] // 2, :4] = 9
    Z = project_above_noise(A)
    U, s, _ = np.linalg.svd(A - A.mean(axis=0), full_matrices=False)
    expected = (U * s)[:, : Z.shape[1]]
    assert_allclose(abs(Z), abs(expected) / expected.std(), atol=1e-8)
    assert_allclose(abs(project_above_noise(sp.csr_array(A))), abs(Z), atol=1e-8)


def test_axes_do_not_depend_on_where_samples_are():
    E = noise(60, 8)
    assert_allclose(
        abs(project_above_noise(E + 1e8)), abs(project_above_noise(E)), atol=1e-6
    )


def test_samples_at_one_place_have_axes():
    assert_array_equal(project_above_noise(np.ones((9, 3))), 0)


# --- the vote ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "certain", "candidates", "expected"),
    [
        ((3, 3, 1, 2), 3, range(1, 9), (3, 3)),
        ((2, 3, 3, 2), 3, range(1, 9), (2, 2)),  # the first of the tied
        ((2, 1, 1, 2), 1, range(1, 9), (2, 2)),  # two win over one
        ((2, 1, 1, 1), 1, range(1, 9), (1, 1)),
        ((1, 1, 1, 1), 1, range(1, 9), (1, 1)),
        ((5, 3, 1, 1), 1, range(1, 9), (1, 1)),  # modes are not certain
        ((5, 3, 1, 2), 1, range(1, 9), (1, None)),
        ((5, 3, 1, 1), 2, range(1, 9), (3, None)),  # the median, the lower of two
        ((5, 3, 4, 2), 1, range(1, 9), (3, None)),
        ((20, 41, 6, 9), 9, range(1, 21), (9, None)),
        ((10, 15, 13, 14), 2, [1, 2, 20], (20, None)),  # the nearest to 13
        ((2, 3, 1, 4), 2, [1, 9], (9, None)),  # one is not near anything
        # what is no candidate
        ((3, 3, 3, 3), 3, range(5, 9), (5, 3)),
        ((3, 3, 4, 4), 3, [2, 4], (4, 4)),  # of the tied one that is
        ((30, 40, 30, 30), 9, range(1, 16), (15, 30)),
        ((1, 1, 1, 1), 1, range(4, 9), (4, 1)),
        ((5, 6, 1, 1), 1, range(2, 9), (5, 1)),
        ((1, 1, 1, 1), 1, [1], (1, 1)),
        ((1, 4, 4, 1), 4, [1], (1, 4)),
        # no modes: all must agree
        ((3, None, 3, 3), 0, range(1, 9), (3, 3)),
        ((3, None, 1, 3), 0, range(1, 9), (3, None)),
        ((2, None, 1, 1), 0, range(1, 9), (1, None)),
        ((1, None, 1, 1), 0, range(1, 9), (1, 1)),
    ],
)
def test_most_criteria_decide(answers, certain, candidates, expected):
    answers = {name: k for name, k in zip(NAMES, answers, strict=True) if k}
    assert decide(answers, certain, list(candidates)) == expected


@pytest.mark.parametrize(
    ("answer", "certain", "expected"),
    [(3, 3, (3, 3)), (3, 1, (3, None)), (1, 1, (1, None))],
)
def test_clusters_far_apart_need_no_second_criterion(answer, certain, expected):
    assert decide({FAR_APART: answer}, certain, [1, 2, 3]) == expected


@pytest.mark.parametrize(
    ("answers", "agreed", "candidates", "says"),
    [
        (
            (3, 3, 3, 2),
            3,
            [5, 6],
            "3 of 4 criteria vote for 3, .* candidates 5 to 6: give smaller",
        ),
        (
            (8, 1, 8, 8),
            8,
            [5, 7],
            "3 of 4 criteria vote for 8, .* candidates 5, 7: give larger",
        ),
        (
            (6, 6, 2, 1),
            6,
            [5, 7],
            "2 of 4 criteria vote for 6, .* candidates 5, 7: give more",
        ),
        (
            (6, 5, 2, 1),
            None,
            [5, 6],
            r"Too few criteria agree .* \(mixture 6, modes 5, .*: 5 is",
        ),
    ],
)
def test_what_is_not_agreed_on_is_said(answers, agreed, candidates, says):
    answers = dict(zip(NAMES, answers, strict=True))
    assert re.match(
        says, disagreement_message(answers, agreed, 5, np.array(candidates))
    )


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ((3, 3, 3, 2), [3]),
        ((3, 3, 4, 2), [2, 3, 4]),
        ((3, 3, 20, 1), [1, 3]),
        ((7, 4, 9, 20), [4, 5, 6, 7, 8, 9]),  # no two agree
        ((7, 4, 1, 5), [1, 4, 5, 6, 7]),
        ((30, 40, 50, 60), [9]),
    ],
)
def test_numbers_that_the_winner_can_hardly_be_told_from(answers, expected):
    answers, candidates = dict(zip(NAMES, answers, strict=True)), np.arange(1, 10)
    k, agreed = decide(answers, 9, candidates.tolist())
    found = close_candidates(k, agreed == k, answers, candidates)
    assert_array_equal(candidates[found], expected)


def test_all_criteria_find_clusters_that_are_there():
    answers, certain = collect_votes(X, 5, np.random.default_rng(0))
    assert tuple(answers) == NAMES
    assert set(answers.values()) == {certain} == {3}
    assert collect_votes(X, 5, np.random.default_rng(0)) == (answers, certain)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("n", "names"),
    [
        (15, (FAR_APART,)),
        (16, ("mixture", "density", "prediction strength")),
        (33, NAMES),
    ],
)
def test_criteria_that_cannot_tell_do_not_vote(n, names):
    assert tuple(collect_votes(noise(n, 3), 5, np.random.default_rng(0))[0]) == names


def test_clusters_too_small_for_the_others_are_far_apart_or_none():
    small = np.repeat(100 * np.eye(6), 7, axis=0) + noise(42, 6)
    assert collect_votes(small, 15, np.random.default_rng(0)) == ({FAR_APART: 6}, 6)
    assert FAR_APART not in collect_votes(small, 5, np.random.default_rng(0))[0]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "table",
    [
        np.ones((30, 3)),
        np.repeat(np.eye(3), 4, axis=0),
        np.repeat(np.eye(3), 20, axis=0),
        noise(8, 4),
        noise(18, 100),
        sp.csr_array(noise(8, 4)),
        np.random.default_rng(0).integers(2, size=(60, 2)).astype(float),
        1e-30 * X[:60],
        1e30 * X[:60],
    ],
)
def test_strange_tables_have_answers_without_a_warning(table, recwarn):
    answers, _ = collect_votes(table, 5, np.random.default_rng(0))
    assert all(1 <= k <= 8 for k in answers.values())
    assert not recwarn.list
