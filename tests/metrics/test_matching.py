"""Components matched one to one, and what belongs to a soft cluster."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming

from nmfcluster.metrics import find_members, match_components


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4))
def test_no_other_pairs_have_a_larger_sum_of_cosines(seed, n_a, n_b):
    rng = np.random.default_rng(seed)
    a, b = (rng.gamma(0.5, size=(n, 5)) + 1e-6 for n in (n_a, n_b))
    found, cosines = match_components(a * rng.uniform(1, 1e5, (n_a, 1)), b)
    of_pairs = [[x @ y / np.sqrt((x @ x) * (y @ y)) for y in b] for x in a]
    best = max(
        sum(of_pairs[i][j] if j < n_b else 0 for i, j in enumerate(order[:n_a]))
        for order in permutations(range(max(n_a, n_b)))
    )
    assert_allclose(cosines.sum(), best)
    assert (found == -1).sum() == max(n_a - n_b, 0)
    for i, j in enumerate(found):
        assert_allclose(cosines[i], of_pairs[i][j] if j >= 0 else 0)


def test_components_without_a_common_feature_have_no_counterpart():
    found, cosines = match_components(np.eye(3)[:2] * 1e-300, np.eye(3)[1:])
    assert_array_equal(found, [-1, 0])
    assert_array_equal(cosines, [0, 1])


def test_columns_of_data_frames_are_matched_by_name():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    a = pd.DataFrame(rng.uniform(size=(3, 4)), columns=list("pqrs"))
    with warns_naming(UserWarning, "components_b", "columns"):
        found, cosines = match_components(a, a.iloc[[2, 0, 1], ::-1])
    assert_array_equal(found, [1, 2, 0])
    assert_allclose(cosines, 1)


def test_members_reach_a_share_of_the_largest_entry():
    F = np.array([[5.0, 1.0, 0.99, 0.0], [0.0, 0.0, 0.0, 0.0], [2.0, 4.0, 8.0, 1.0]])
    expected = [[True, True, False, False], [False] * 4, [True, True, True, False]]
    assert_array_equal(find_members(F, 0.2), expected)


def test_an_entry_at_the_threshold_is_in_the_cluster():
    # 0.2 exactly, in 0.1s
    F = np.array([[10.0, 2.0, 1.0], [0.1, 1.0, 0.2], [1.0, 0.1, 0.2]])
    expected = F >= [[2], [0.2], [0.2]]
    for scale in (1, 0.1, 3, 0.7):
        single = (scale * F).astype(np.float32)
        assert_array_equal(
            find_members(single, 0.2), find_members(single.astype(np.float64), 0.2)
        )
        assert_array_equal(find_members(scale * F, 0.2), expected)
    assert_array_equal(
        find_members(np.array([[1, 0.2 - 1e-9, 0]]), 0.2), [[True, False, False]]
    )
