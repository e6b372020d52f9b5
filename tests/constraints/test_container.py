"""The container of constraints: split, compared, copied, asked about a clustering."""

import copy
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from constraints.shared import (
    MANY,
    assert_in_form,
    assert_plain,
    drawn_constraints,
    some_constraints,
    split,
    weighted,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from refusals import raises_naming
from sklearn import clone

from nmfcluster.constraints import PairwiseConstraints

KNOWN = PairwiseConstraints(4, [(1, 2)], [(0, 1)])


# splits


@st.composite
def keyed(draw):
    """Draw constraints, a key to index them by, and the samples that it names."""
    constraints = draw(drawn_constraints())
    n = len(constraints)
    form = draw(st.sampled_from(["integers", "mask", "slice"]))
    if form == "slice":
        key = draw(st.slices(n))
        return constraints, key, list(range(n))[key]
    if form == "mask":
        mask = draw(st.lists(st.booleans(), min_size=n, max_size=n))
        key = draw(st.sampled_from([mask, np.array(mask, dtype=bool)]))
        return constraints, key, [i for i in range(n) if mask[i]]
    listed = draw(st.lists(st.integers(-n, n - 1), max_size=12)) if n else []
    make = draw(
        st.sampled_from([list, np.array, lambda it: np.array(it, dtype=np.int8)])
    )
    return constraints, make(listed), [i % n for i in listed]


@settings(max_examples=50)
@given(keyed())
def test_a_split_keeps_the_pairs_with_both_ends_inside(case):
    constraints, key, samples = case
    part = constraints[key]
    assert_in_form(part)
    assert len(part) == len(samples)
    assert weighted(part) == split(constraints, samples)


@MANY
@given(keyed())
def test_every_door_leads_to_the_same_split(case):
    constraints, key, samples = case
    part = constraints[samples]
    for other in (
        constraints.take(samples),
        constraints.take(np.array(samples, dtype=int), axis=0),
        constraints.iloc[key],
        constraints.loc[key],
        constraints[key],
    ):
        assert other == part


@MANY
@given(keyed(), st.data())
def test_two_splits_are_one(case, data):
    constraints, key, samples = case
    again = (
        data.draw(st.lists(st.integers(0, len(samples) - 1), max_size=9))
        if samples
        else []
    )
    assert constraints[key][again] == constraints[[samples[i] for i in again]]


# the object


def test_the_callers_arrays_are_neither_kept_nor_changed():
    pairs = np.array([[2, 1], [0, 1]])
    constraints = PairwiseConstraints(3, pairs)
    assert_array_equal(pairs, [[2, 1], [0, 1]])
    pairs[:] = 0
    assert_array_equal(constraints.must_link, [[0, 1], [1, 2]])
    with pytest.raises(ValueError, match="read-only"):
        constraints.must_link[0, 0] = 2
    for name in ("must_link", "cannot_link", "must_link_weights", "n_samples", "shape"):
        with pytest.raises(AttributeError):
            setattr(constraints, name, None)


def test_the_repr_counts_the_pairs():
    assert repr(PairwiseConstraints(150, [(0, 1)], [(2, 3), (5, 3)])) == (
        "PairwiseConstraints(n_samples=150, must_link: 1 pair, cannot_link: 2 pairs)"
    )


def test_equality_looks_at_everything():
    one = PairwiseConstraints(3, [(0, 1)], [(1, 2)])
    assert one == PairwiseConstraints(
        3, [(1, 0, 1.0)], sp.csr_array(one.as_matrices()[1])
    )
    for other in (
        PairwiseConstraints(4, [(0, 1)], [(1, 2)]),
        PairwiseConstraints(3, [(0, 2)], [(1, 2)]),
        PairwiseConstraints(3, [(0, 1)], [(0, 2)]),
        PairwiseConstraints(3, [(0, 1, 2)], [(1, 2)]),
        PairwiseConstraints(3, [(0, 1)], [(1, 2, 2)]),
        PairwiseConstraints(3, [(0, 1)]),
        "constraints",
        None,
    ):
        assert one != other
    with pytest.raises(TypeError):
        hash(one)


def by_joblib(constraints, folder):
    joblib.dump(constraints, folder / "constraints.joblib")
    return joblib.load(folder / "constraints.joblib")


def by_memory_map(constraints, folder):
    joblib.dump(constraints, folder / "constraints.joblib")
    return joblib.load(folder / "constraints.joblib", mmap_mode="r")


def by_cloudpickle(constraints, folder):
    cloudpickle = pytest.importorskip("cloudpickle")
    return cloudpickle.loads(cloudpickle.dumps(constraints))


@pytest.mark.parametrize(
    "duplicate",
    [
        *(
            lambda it, _, p=p: pickle.loads(pickle.dumps(it, p))
            for p in (2, pickle.HIGHEST_PROTOCOL)
        ),
        lambda it, _: copy.copy(it),
        lambda it, _: copy.deepcopy(it),
        lambda it, _: clone(it, safe=False),
        by_joblib,
        by_memory_map,
        by_cloudpickle,
    ],
)
def test_copies_are_equal_and_read_only(duplicate, tmp_path):
    for constraints in (
        PairwiseConstraints(0),
        PairwiseConstraints(3),
        some_constraints(),
    ):
        other = duplicate(constraints, tmp_path)
        assert other == constraints
        assert other is not constraints
        assert_in_form(other)
        assert other[:2] == constraints[:2]


def test_a_subclass_stays_one():
    class Mine(PairwiseConstraints):
        pass

    constraints = Mine.from_labels([0, 0, 1])
    for other in (
        constraints[[0, 1]],
        constraints.closure(),
        Mine.from_ids("ab"[:0].split()),
    ):
        assert type(other) is Mine
    assert repr(constraints).startswith("Mine(")


def test_numpy_does_not_take_it_apart():
    with pytest.raises(TypeError):
        np.asarray(KNOWN)


# clusterings and matrices


@MANY
@given(drawn_constraints(largest=6), st.data())
def test_satisfied_pairs_are_those_that_the_labels_keep(constraints, data):
    n = len(constraints)
    labels = data.draw(st.lists(st.integers(-2, 3), min_size=n, max_size=n))
    must, cannot = constraints.satisfied(labels)
    for ok, (i, j) in zip(must, constraints.must_link, strict=True):
        assert ok == (labels[i] == labels[j] and labels[i] >= 0)
    for ok, (i, j) in zip(cannot, constraints.cannot_link, strict=True):
        assert ok == (labels[i] != labels[j] and min(labels[i], labels[j]) >= 0)
    assert must.dtype == cannot.dtype == bool
    for of_array, of_list in zip(
        constraints.satisfied(np.array(labels)), (must, cannot), strict=True
    ):
        assert_array_equal(of_array, of_list)
    share = constraints.satisfaction(np.array(labels, dtype=float))
    assert type(share) is float
    if constraints.n_pairs:
        assert share == np.mean([*must, *cannot])
    else:
        assert np.isnan(share)


@pytest.mark.parametrize("n", [0, 1, 60])
def test_matrices_hold_the_weights(n):
    constraints = some_constraints() if n == 60 else PairwiseConstraints(n)
    assert PairwiseConstraints(n, *constraints.as_matrices(float)) == constraints
    for dtype in (np.float32, np.float64, "f4", float):
        assert_matrices_hold_the_weights(constraints, dtype)


def assert_matrices_hold_the_weights(constraints, dtype):
    n = len(constraints)
    for matrix, kind in zip(
        constraints.as_matrices(dtype), weighted(constraints), strict=True
    ):
        dense = np.zeros((n, n))
        for (i, j), weight in kind.items():
            dense[i, j] = dense[j, i] = weight
        assert isinstance(matrix, sp.csr_array)
        assert matrix.dtype == dtype
        assert matrix.nnz == 2 * len(kind)
        assert matrix.has_sorted_indices
        assert matrix.indices.dtype == np.int32
        assert_array_equal(matrix.toarray(), dense.astype(dtype))


# bad calls, besides those in tests/refusals.txt


BAD_CALLS = {
    "no number of samples": (
        lambda: PairwiseConstraints([(0, 1)]),
        TypeError,
        ("n_samples", "list"),
    ),
    "half a sample": (
        lambda: PairwiseConstraints(2.0),
        TypeError,
        ("n_samples", "2.0"),
    ),
    "fractions": (
        lambda: KNOWN.satisfied([0, 1, 1.5, 0]),
        ValueError,
        ("labels", "1.5"),
    ),
    "labels of others": (
        lambda: KNOWN.satisfied([0, 1, 2]),
        ValueError,
        ("labels", "n_samples=4", "3"),
    ),
    "labels of others still": (
        lambda: KNOWN.satisfaction([0] * 5),
        ValueError,
        ("labels", "n_samples=4", "5"),
    ),
    "one sample": (lambda: KNOWN[2], TypeError, ("2", "[2]")),
    "one numpy sample": (
        lambda: KNOWN[np.int32(2)],
        TypeError,
        ("list", "int32"),
    ),
    "two axes": (lambda: KNOWN[[0, 1], [0, 1]], TypeError, "list"),
    "all of a second axis": (lambda: KNOWN[[0, 1], :], TypeError, "list"),
    "a table of samples": (lambda: KNOWN[[[0, 1]]], TypeError, "list"),
    "ragged samples": (lambda: KNOWN[[[0], [0, 1]]], TypeError, "list"),
    "a word for samples": (
        lambda: KNOWN["must_link"],
        TypeError,
        ("list", "'must_link'"),
    ),
    "a sample past the end": (
        lambda: KNOWN[[0, 4]],
        ValueError,
        ("sample 4", "4 samples"),
    ),
    "a sample before the first": (
        lambda: KNOWN[[0, -5]],
        ValueError,
        ("sample -5", "4 samples"),
    ),
    "a short mask": (lambda: KNOWN[[True] * 3], ValueError, ("mask", "4", "3", "True")),
    "a slice of words": (lambda: KNOWN["a":], ValueError, ("slice", "'a'")),
    "a slice without steps": (lambda: KNOWN[::0], ValueError, ("slice", "0")),
    "one sample taken": (lambda: KNOWN.take(3), TypeError, "[3]"),
    "half a cluster": (
        lambda: KNOWN.check(2.5),
        TypeError,
        ("n_clusters", "2.5"),
    ),
    "clusters in truth": (lambda: KNOWN.check(True), TypeError, ("n_clusters", "True")),
    "whole numbers for weights": (
        lambda: KNOWN.as_matrices(int),
        TypeError,
        ("dtype", "int"),
    ),
}


@pytest.mark.parametrize(("call", "error", "says"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_bad_calls(call, error, says):
    with raises_naming(error, says) as caught:
        call()
    assert_plain(caught)
