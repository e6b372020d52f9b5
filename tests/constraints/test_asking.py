"""Pairs to ask about."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import SSNMFClusterer
from nmfcluster.constraints import PairwiseConstraints, next_pairs

X, y = load_iris(return_X_y=True)


def fitted(data, pairs, **options):
    return SSNMFClusterer(3, random_state=0, n_init=1, **options).fit(data, constraints=pairs)


@pytest.mark.parametrize("n_known", [0, 5, 60, 500])
@pytest.mark.parametrize("kind", ["dense", "sparse", "precomputed"])
def test_no_pair_is_implied(n_known, kind):
    known = PairwiseConstraints.from_labels(y, n_pairs=n_known, random_state=n_known)
    data = {"dense": X, "sparse": sp.csr_array(X), "precomputed": rbf_kernel(X)}[kind]
    options = {"affinity": "precomputed"} if kind == "precomputed" else {}
    pairs = next_pairs(fitted(data, known, **options), data, 20)
    group = known.components()
    apart = {frozenset(pair) for pair in group[known.cannot_link].tolist()}
    asked = [frozenset(pair) for pair in group[pairs].tolist()]
    assert 0 < len(asked) == len(set(asked)) <= 20
    assert all(len(pair) == 2 and pair not in apart for pair in asked)


def test_all_known_leaves_nothing_to_ask():
    known = PairwiseConstraints.from_labels(y)
    assert next_pairs(fitted(X, known), X, 5).shape == (0, 2)


def test_few_samples_have_few_pairs():
    model = SSNMFClusterer(2, affinity="linear", random_state=0).fit([[0.0, 1], [1, 0], [1, 1]])
    assert 1 <= len(next_pairs(model, np.array([[0.0, 1], [1, 0], [1, 1]]), 10)) <= 2
