"""Pairs in folds: none that is asked follows from those that are kept."""

import numpy as np
import pandas as pd
import pytest
from constraints.shared import MANY, drawn_constraints, weighted
from hypothesis import given
from hypothesis import strategies as st

from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import split_pairs


def folds(pairs, n_splits=3, seed=0):
    return list(split_pairs(pairs, n_splits, np.random.default_rng(seed)))


def follows(kept):
    """Return all pairs that follow from some, by loops, as sets of sets."""
    group = {i: {i} for i in range(len(kept))}
    for i, j in kept.must_link.tolist():
        joined = group[i] | group[j]
        group.update(dict.fromkeys(joined, joined))
    together = {frozenset((i, j)) for i in group for j in group[i] if i != j}
    apart = {
        frozenset((a, b))
        for i, j in kept.cannot_link.tolist()
        for a in group[i]
        for b in group[j]
        if a != b
    }
    return together, apart


@MANY
@given(drawn_constraints(), st.integers(2, 5), st.integers(0, 3))
def test_what_is_asked_does_not_follow_from_what_is_kept(pairs, n_splits, seed):
    times = np.zeros(len(pairs.must_link), dtype=int)
    for part, (must, cannot) in folds(pairs, n_splits, seed):
        together, apart = follows(part)
        times += must
        assert must.any() or cannot.any()
        for (i, j), asked in zip(pairs.must_link.tolist(), must, strict=True):
            assert asked == (frozenset((i, j)) not in together)
        for (i, j), asked in zip(pairs.cannot_link.tolist(), cannot, strict=True):
            assert not asked or frozenset((i, j)) not in together | apart
        for kept, every in zip(weighted(part), weighted(pairs), strict=True):
            assert kept.items() <= every.items()
    assert (times >= 1).all()


def test_pairs_without_chains_are_asked_once_in_folds_of_one_size():
    pairs = PairwiseConstraints(
        60,
        [(i, i + 1) for i in range(0, 40, 2)],
        [(i, i + 1) for i in range(40, 60, 2)],
    )
    found = folds(pairs, 5)
    assert len(found) == 5
    for kind, size in ((0, 4), (1, 2)):
        asked = np.array([asked[kind] for _, asked in found])
        np.testing.assert_array_equal(asked.sum(axis=0), 1)
        np.testing.assert_array_equal(asked.sum(axis=1), size)


def test_groups_are_asked_about_too():
    pairs = PairwiseConstraints.from_groups(
        [range(8), range(8, 16)], n_samples=20, apart=True
    )
    asked = [
        np.array(kind)
        for kind in zip(*(asked for _, asked in folds(pairs)), strict=True)
    ]
    assert asked[0].any(axis=0).all()
    assert asked[1].any()
    # something of the groups is kept in every fold
    assert not asked[0].all(axis=1).any()


def test_pairs_that_contradict_each_other_are_not_asked():
    pairs = PairwiseConstraints(6, [(0, 1), (1, 2), (4, 5)], [(0, 2), (3, 4)])
    for kept, asked in folds(pairs, 3):
        piece = kept.components()
        assert not asked[1][0] or piece[0] != piece[2]


@pytest.mark.parametrize("kind", ["must_link", "cannot_link"])
def test_a_single_pair_is_one_fold(kind):
    [(kept, of_kinds)] = folds(PairwiseConstraints(3, **{kind: [(0, 2)]}), 4)
    assert kept == PairwiseConstraints(3)
    assert [asked.tolist() for asked in of_kinds] == (
        [[True], []] if kind[0] == "m" else [[], [True]]
    )


def test_a_fold_keeps_the_names_of_samples():
    ids = ["a", "b", "c", "d"]
    pairs = PairwiseConstraints.from_ids(pd.Index(ids), [("a", "b"), ("c", "d")])
    assert [list(kept.index) for kept, _ in folds(pairs, 2)] == [ids, ids]


def test_no_pairs_are_no_folds():
    assert folds(PairwiseConstraints(3)) == []


def test_folds_depend_on_the_seed_alone():
    pairs = PairwiseConstraints.from_labels(
        np.arange(30) % 3, n_pairs=40, random_state=0
    )
    assert folds(pairs)[0][0] == folds(pairs)[0][0]
    assert folds(pairs, seed=1)[0][0] != folds(pairs)[0][0]
