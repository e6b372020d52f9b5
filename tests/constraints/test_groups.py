"""Constraints made of groups of samples that belong together."""

from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
from constraints.shared import MANY, assert_in_form, assert_plain, weighted
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_naming

from nmfcluster.constraints import PairwiseConstraints

# the group of every sample; -1: none
GROUPED = st.lists(st.integers(-1, 4), max_size=14)
IDS = ["ann", "bob", "eve", "joe"]


@MANY
@given(GROUPED, st.booleans(), st.randoms(use_true_random=False))
def test_groups_are_classes_of_which_some_are_known(codes, apart, random):
    groups = [
        [i for i, code in enumerate(codes) if code == group] for group in range(5)
    ]
    for members in groups:
        random.shuffle(members)
    random.shuffle(groups)
    made = PairwiseConstraints.from_groups(groups, n_samples=len(codes), apart=apart)
    classes = PairwiseConstraints.from_labels(codes)
    assert_in_form(made)
    together, different = weighted(classes)
    assert weighted(made) == [together, different if apart else {}]


@MANY
@given(GROUPED, st.booleans())
def test_groups_are_the_closure_of_chains(codes, apart):
    groups = [
        [i for i, code in enumerate(codes) if code == group] for group in range(5)
    ]
    groups = [members for members in groups if members]
    chains = [pair for members in groups for pair in pairwise(members)]
    first = [members[0] for members in groups]
    between = (
        [(a, b) for i, a in enumerate(first) for b in first[:i]] if apart else None
    )
    closed = PairwiseConstraints(len(codes), chains, between).closure()
    made = PairwiseConstraints.from_groups(groups, n_samples=len(codes), apart=apart)
    np.testing.assert_array_equal(made.must_link, closed.must_link)
    np.testing.assert_array_equal(made.cannot_link, closed.cannot_link)


@pytest.mark.parametrize(
    "groups",
    [
        [["eve", "ann"], ["joe"]],
        (("eve", "ann", "ann"), ("joe",)),
        [{"eve", "ann"}, {"joe"}],
        {"red": ["eve", "ann"], "blue": ["joe"]},
        pd.DataFrame({"team": [1, 1, 2]}, index=["eve", "ann", "joe"])
        .groupby("team")
        .groups,
        [np.array(["eve", "ann"]), pd.Index(["joe"]), []],
    ],
    ids=["lists", "tuples", "sets", "dict", "groupby", "arrays"],
)
def test_groups_of_ids(groups):
    made = PairwiseConstraints.from_groups(groups, ids=IDS, apart=True)
    assert weighted(made) == [{(0, 2): 1}, {(0, 3): 1, (2, 3): 1}]


def test_groups_of_indices():
    small = [np.array([2, 0], dtype=np.uint8)]
    for groups in ([[2, 0], [3]], np.array([[2, 0]]), [{0, 2}], small):
        made = PairwiseConstraints.from_groups(groups, n_samples=np.int64(4))
        assert weighted(made) == [{(0, 2): 1}, {}]
        assert made.n_samples == 4


def test_names_of_rows_are_kept():
    frame = pd.DataFrame({"x": range(4)}, index=IDS)
    made = PairwiseConstraints.from_groups([["ann", "joe"]], ids=frame)
    assert made.index.equals(frame.index)
    assert PairwiseConstraints.from_groups([], n_samples=4).index is None


def test_no_groups():
    for groups, apart in product(([], {}, [[]], [[1]]), (False, True)):
        made = PairwiseConstraints.from_groups(groups, n_samples=3, apart=apart)
        assert made == PairwiseConstraints(3)


BAD = {  # besides those in tests/refusals.txt
    "a word": (("abc",), {}, TypeError, ("groups", "sequence", "'abc'")),
    "words": ((["ab"],), {}, TypeError, ("groups", "'ab'")),
    "an array of no dimension": (
        ([np.array(3)],),
        {},
        TypeError,
        ("groups", "array(3)"),
    ),
    "fractions": (
        ([[0.5, 1]],),
        {},
        ValueError,
        ("groups", "0.5"),
    ),
    "a mask": (
        ([np.array([True])],),
        {},
        TypeError,
        ("groups", "array([ True])"),
    ),
    "ragged": (
        ([[0, [1]]],),
        {},
        TypeError,
        ("groups", "[1]"),
    ),
    "size": (
        ([[0]],),
        {"n_samples": -1},
        ValueError,
        ("n_samples", "0", "-1"),
    ),
    "apart": (
        ([[0]],),
        {"apart": 1},
        TypeError,
        ("apart", "1"),
    ),
}
BAD_IDS = {
    "not hashable": (
        [[["ann"]]],
        TypeError,
        ("groups", "hashable", "ids", "['ann']"),
    ),
    "shared": ([["ann"], ["bob", "ann"]], ValueError, ("'ann'", "groups", "0", "1")),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_group_is_refused(case):
    arguments, options, error, says = BAD[case]
    with raises_naming(error, says) as caught:
        PairwiseConstraints.from_groups(*arguments, **{"n_samples": 4} | options)
    assert_plain(caught)


@pytest.mark.parametrize("case", BAD_IDS)
def test_what_is_no_group_of_ids_is_refused(case):
    groups, error, says = BAD_IDS[case]
    with raises_naming(error, says) as caught:
        PairwiseConstraints.from_groups(groups, ids=IDS)
    assert_plain(caught)
