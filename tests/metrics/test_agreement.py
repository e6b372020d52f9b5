"""Standard errors against leaving out labellings one by one."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score

from nmfcluster.metrics import (
    clustering_accuracy,
    contingency_table,
    differing_share,
    jackknife,
    mean_of_pairs,
    rand_index,
    table_of_pairs,
)

pairs_of_labels = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(-1, 3)), min_size=1, max_size=14
).map(lambda pairs: np.array(pairs).T)


@given(pairs_of_labels)
def test_the_share_that_differs_is_that_of_the_best_permutation(pair):
    a, b = pair
    least = min(
        sum(y < 0 or z < 0 or y != p[z] for y, z in zip(a, b, strict=True))
        for p in permutations(range(4))
    )
    assert_allclose(
        [differing_share(a, b), differing_share(b, a)], least / len(a), atol=1e-12
    )
    assert differing_share(a, a) == np.mean(a < 0)
    if pair.min() >= 0:
        assert_allclose(
            differing_share(a, b), 1 - clustering_accuracy(a, b), atol=1e-12
        )


@given(st.integers(0, 10**6))
def test_the_share_that_differs_is_a_distance(seed):
    a, b, c = np.random.default_rng(seed).integers(3, size=(3, 12))
    assert (
        differing_share(a, c) <= differing_share(a, b) + differing_share(b, c) + 1e-12
    )


def test_standard_errors_are_those_of_leaving_out_a_labelling():
    rng = np.random.default_rng(0)
    B = 6
    codes = np.stack([rng.permutation(np.arange(40) % 3) for _ in range(B)])
    left_out = []
    for i in range(B):
        others = [codes[j] for j in range(B) if j != i]
        left_out.append(
            np.mean([differing_share(a, b) for a, b in combinations(others, 2)])
        )
    value, error = jackknife(mean_of_pairs, table_of_pairs(differing_share, codes))
    assert value == pytest.approx(
        np.mean([differing_share(a, b) for a, b in combinations(codes, 2)])
    )
    assert error == pytest.approx(np.sqrt((B - 1) * np.var(left_out)))


def test_rand_indices_count_pairs_of_samples():
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(-1, 3, size=12) for _ in range(9)])
    codes = np.concatenate(
        [codes, codes[:1, ::-1], np.zeros((1, 12), int), [np.arange(12)]]
    )
    found = table_of_pairs(rand_index, codes)
    pairs = list(combinations(range(12), 2))
    for i, j in combinations(range(len(codes)), 2):
        a, b = (
            np.array([labels[s] == labels[t] for s, t in pairs])
            for labels in codes[[i, j]]
        )
        chance = a.mean() * b.sum()
        expected = ((a & b).sum() - chance) / ((a.sum() + b.sum()) / 2 - chance)
        assert found[i, j] == found[j, i] == pytest.approx(expected)
        assert found[i, j] == pytest.approx(adjusted_rand_score(codes[i], codes[j]))
    assert (np.diagonal(found) == 0).all()


def test_labellings_that_are_the_same_agree():
    for labels in (np.zeros(5, int), np.arange(5), np.zeros(1, int)):
        assert rand_index(labels, labels) == 1


def test_the_contingency_table_counts_samples_of_every_two_clusters():
    rng = np.random.default_rng(0)
    a, b = rng.integers(3, size=40), rng.integers(4, size=40)
    expected = [[np.sum((a == i) & (b == j)) for j in range(4)] for i in range(3)]
    assert contingency_table(a, b).tolist() == expected
