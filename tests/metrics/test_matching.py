"""Components and clusters matched one to one, and what belongs to a soft cluster."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming

from nmfcluster.metrics import find_members, match_components, match_labels


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


LABELS = st.lists(st.integers(-1, 3), min_size=6, max_size=6)


@given(LABELS, LABELS, st.permutations(range(4)), st.permutations(range(6)))
def test_labels_agree_with_a_reference_on_as_many_samples_as_they_can(
    labels, reference, names, order
):
    labels, reference = np.array(labels), np.array(reference)
    matched = match_labels(labels, reference)
    both = (labels >= 0) & (reference >= 0)
    best = max(
        np.sum(np.append(p, -1)[labels][both] == reference[both])
        for p in permutations(range(4))
    )
    assert np.sum((matched == reference)[both]) == best
    pairs = set(zip(labels, matched, strict=True))
    assert len(pairs) == len(set(labels)) == len(set(matched))  # one to one
    assert_array_equal(matched == -1, labels == -1)
    # new clusters have numbers after those of the reference, the largest cluster first
    new = matched[~np.isin(matched, reference) & (matched >= 0)]
    assert set(new) == set(reference.max() + 1 + np.arange(len(set(new))))
    assert (np.diff(np.bincount(new)[reference.max() + 1 :]) <= 0).all()
    # ties: not by the labels of clusters; once matched, they stay
    renamed = np.append(names, -1)[labels]
    assert_array_equal(match_labels(renamed, reference), matched)
    assert_array_equal(match_labels(matched, reference), matched)
    again = match_labels(labels[order], reference[order])
    assert sum(again == reference[order]) == sum(matched == reference)


def test_labels_of_series_and_frames_are_matched_by_index():
    pd = pytest.importorskip("pandas")
    reference = pd.Series([4, 4, 7, 7, -1], index=list("abcde"))
    labels = pd.Series([0, 1, 2, 2, 1], index=list("xdbac"), name="run", dtype="Int64")
    expected = pd.Series([8, 7, 4, 4, 7], index=labels.index, name="run")
    pd.testing.assert_series_equal(match_labels(labels, reference), expected)
    frame = labels.to_frame().assign(flipped=["p", None, "q", "p", "r"])
    found = match_labels(frame, reference.to_frame())
    assert found["run"].equals(expected)
    assert found["flipped"].tolist() == [4, -1, 8, 4, 7]
    # more rows under 0, 1, 2, ...; names beside no names are taken by position
    more = match_labels(pd.Series([1, 0, 0, 2]), pd.Series([5, 3]))
    assert more.tolist() == [5, 3, 3, 6]
    assert match_labels(reference, pd.Series([1, 1, 0, 0, 0])).tolist()[:4] == [
        1,
        1,
        0,
        0,
    ]
    # clusters get the names of classes
    named = pd.Series(["T", "T", "B", "9"], dtype="category")
    assert match_labels([3, 3, 1, 0], named).tolist() == ["T", "T", "B", "9"]
    told = match_labels([3, 3, np.nan, 1], ["T", "T", "9", None]).tolist()
    assert told == ["T", "T", None, "10"]
