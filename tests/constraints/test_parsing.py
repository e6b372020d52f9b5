"""Pairs, ids and labels that a user hands in: the forms they come in, and what is refused."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from constraints.shared import assert_in_form, assert_plain, weighted
from numpy.testing import assert_array_equal
from refusals import raises_naming

from nmfcluster.constraints import PairwiseConstraints

# pairs

PAIRS = [(4, 1), (0, 3), (1, 4), (2, 0)]
IN_FORM = [[0, 2], [0, 3], [1, 4]]


def test_pairs_come_in_many_forms():
    for value in (
        PAIRS,
        tuple(PAIRS),
        [list(pair) for pair in PAIRS],
        np.array(PAIRS),
        np.array(PAIRS, dtype=np.uint8),
        np.array(PAIRS, dtype=np.float32),
        np.array(PAIRS, dtype=object),
        np.array(PAIRS, order="F")[::-1],
        [(*pair, 1) for pair in PAIRS],
        [np.array(pair) for pair in PAIRS],
        set(PAIRS),
        dict.fromkeys(PAIRS).keys(),
    ):
        constraints = PairwiseConstraints(np.int64(5), value, value)
        assert_in_form(constraints)
        assert_array_equal(constraints.must_link, IN_FORM)
        assert_array_equal(constraints.cannot_link, IN_FORM)
        assert_array_equal(constraints.must_link_weights, np.ones(3))
        assert constraints.n_pairs == 6


@pytest.mark.parametrize(
    "form",
    [
        iter,
        lambda pairs: zip(*np.transpose(pairs), strict=True),
        lambda pairs: (list(pair) for pair in pairs),
    ],
    ids=["iterator", "zip", "generator"],
)
def test_pairs_come_one_by_one(form):
    assert_array_equal(PairwiseConstraints(5, form(PAIRS)).must_link, IN_FORM)
    assert PairwiseConstraints(5, iter([]), form(PAIRS)).n_pairs == 3
    ids = [f"s{i}" for i in range(5)]
    pairs = form([(f"s{i}", f"s{j}") for i, j in PAIRS])
    assert_array_equal(PairwiseConstraints.from_ids(ids, pairs).must_link, IN_FORM)


def test_of_a_pair_given_twice_the_larger_weight_counts():
    weights = [(1, 0, 2.0), (0, 1, 3.0), (0, 1, 0.5), (2, 1, 0.25), (0, 2, 0)]
    for pairs in (weights, weights[::-1]):
        constraints = PairwiseConstraints(3, pairs, pairs)
        assert weighted(constraints) == [{(0, 1): 3.0, (1, 2): 0.25}] * 2
        assert_in_form(constraints)


def test_a_sample_is_linked_with_itself_anyway():
    constraints = PairwiseConstraints(3, [(1, 1), (2, 1)], [(0, 0, 0.0), (2, 0, 1)])
    assert weighted(constraints) == [{(1, 2): 1}, {(0, 2): 1}]


def test_nothing_is_allowed():
    for nothing in (None, [], (), np.empty((0, 2)), np.empty((0, 3)), [()][:0]):
        constraints = PairwiseConstraints(4, nothing, cannot_link=nothing)
        assert_in_form(constraints)
        assert constraints.n_pairs == 0
        assert PairwiseConstraints(0, nothing).shape == (0,)


@pytest.mark.parametrize(
    "make", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix]
)
def test_sparse_matrices_hold_weights(make):
    for dtype in (bool, np.int32, np.float32, np.float64):
        dense = np.zeros((5, 5), dtype=dtype)
        dense[1, 3], dense[3, 1], dense[2, 0], dense[4, 4] = 2, 3, 5, 7
        matrix = make(dense)
        before = matrix.copy()
        constraints = PairwiseConstraints(5, must_link=matrix)
        assert weighted(constraints)[0] == {
            (0, 2): float(dense[2, 0]),
            (1, 3): float(dense[3, 1]),
        }
        assert_array_equal(matrix.toarray(), before.toarray())
        with raises_naming(ValueError, "cannot_link", "(4, 4)"):
            PairwiseConstraints(5, cannot_link=matrix)


def test_stored_zeros_are_no_pairs_and_the_matrix_is_left_alone():
    entries = np.array([0.0, 1.0, 2.0])
    matrix = sp.coo_array((entries, ([0, 1, 1], [1, 2, 2])), shape=(3, 3))
    by_rows = sp.csr_array((entries, [1, 2, 2], [0, 1, 3, 3]), shape=(3, 3))
    constraints = PairwiseConstraints(3, matrix, by_rows)
    # entries of one place add up in SciPy
    assert weighted(constraints) == [{(1, 2): 3.0}] * 2
    assert matrix.nnz == by_rows.nnz == 3


class Bad:
    def __repr__(self):
        return "<bad>"


BAD_PAIRS = {
    "an index past the end": (
        [(0, 1), (7, 2)],
        ValueError,
        ("7", "n_samples=5", "constraints="),
    ),
    "an index at the end": ([(5, 0)], ValueError, ("5", "n_samples=5")),
    "a huge index": (
        np.array([[2**64 - 1, 0]], dtype=np.uint64),
        ValueError,
        f"{2**64 - 1}",
    ),
    "a huge Python index": ([(10**400, 0)], ValueError, "too large"),
    "a negative index": ([(0, -1)], ValueError, "-1"),
    "half an index": ([(0, 1.5)], ValueError, "1.5"),
    "no number for an index": (
        [(0, np.nan)],
        ValueError,
        "nan",
    ),
    "an infinite index": ([(0, np.inf)], ValueError, "inf"),
    "a negative weight": ([(0, 1, -2)], ValueError, ("weights", "-2.0", "(0, 1)")),
    "no number for a weight": (
        [(0, 1, np.nan)],
        ValueError,
        ("weights", "nan", "(0, 1)"),
    ),
    "one pair, not in a list": (
        (0, 1),
        ValueError,
        ("(a, b)", "0"),
    ),
    "one column": ([[0], [1]], ValueError, ("(a, b)", "[0]")),
    "four columns": (
        [[0, 1, 2, 3]],
        ValueError,
        ("(a, b, weight)", "[0, 1, 2, 3]"),
    ),
    "three dimensions": (np.zeros((2, 2, 2)), ValueError, ("vectors", "(2, 2, 2)")),
    "a dense matrix": (
        np.eye(5),
        ValueError,
        ("sparse", "(5, 5)"),
    ),
    "a number": (3, TypeError, ("(a, b)", "3")),
    "a word": ("01", TypeError, "'01'"),
    "a dictionary": ({0: 1}, TypeError, ("(a, b)", "{0: 1}")),
    "one pair that is a set": ({0, 1}, ValueError, ("(a, b)", "0")),
    "a pair that is a set": ([{0, 1}], ValueError, "{0, 1}"),
    "samples one by one": (range(4), ValueError, ("(a, b)", "0")),
    "any object": (Bad(), TypeError, "<bad>"),
    "words": ([("a", "b")], TypeError, ("'a'", "PairwiseConstraints.from_table")),
    "truths": ([(True, False)], TypeError, ("numbers", "True")),
    "a truth among objects": (
        np.array([[0, True]], dtype=object),
        TypeError,
        "True",
    ),
    "nothing among numbers": ([(0, None)], TypeError, ("numbers", "None")),
    "objects": ([(Bad(), 1)], TypeError, ("numbers", "<bad>")),
    "complex numbers": ([(0, 1j)], TypeError, ("numbers", "1j")),
    "dates": (
        np.array([[0, 1]], dtype="M8[s]"),
        TypeError,
        ("numbers", "datetime64"),
    ),
    "constraints": (PairwiseConstraints(5), TypeError, "PairwiseConstraints"),
    "a matrix of another size": (
        sp.eye_array(4),
        ValueError,
        ("(5, 5)", "(4, 4)", "PairwiseConstraints"),
    ),
    "a matrix that is not square": (sp.csr_array((5, 4)), ValueError, "(5, 4)"),
    "complex entries": (
        sp.eye_array(5, dtype=complex),
        TypeError,
        ("numbers", "complex128"),
    ),
    "a negative entry": (
        sp.csr_array(-np.eye(5)),
        ValueError,
        ("weights", "-1.0", "(0, 0)"),
    ),
    "an entry that is none": (
        sp.csr_array(np.eye(5) * np.nan),
        ValueError,
        ("weights", "nan"),
    ),
}


@pytest.mark.parametrize(("value", "error", "says"), BAD_PAIRS.values(), ids=BAD_PAIRS)
def test_bad_pairs(value, error, says):
    for kind in ("must_link", "cannot_link"):
        with raises_naming(error, kind, says) as caught:
            PairwiseConstraints(5, **{kind: value})
        assert_plain(caught)


def test_an_index_past_the_end_points_to_cross_validation():
    said = "must_link", "9", "n_samples=9", "cross-validation", "constraints="
    with raises_naming(ValueError, said):
        PairwiseConstraints(9, [(0, 9)])


# labels


def test_labels_tell_which_pairs_are_alike():
    for labels in (
        [1, -1, 0, 1, -7, 0],
        np.array([1.0, np.nan, 0.0, 1.0, -1.0, 0.0]),
        ["b", None, "a", "b", None, "a"],
        np.array(["b", None, "a", "b", np.nan, "a"], dtype=object),
        [1, None, 0, 1, None, 0],
        np.array([1, -1, 0, 1, -1, 0], dtype=np.int8),
    ):
        constraints = PairwiseConstraints.from_labels(labels)
        assert_in_form(constraints)
        assert len(constraints) == 6
        assert constraints.must_link.tolist() == [[0, 3], [2, 5]]
        assert constraints.cannot_link.tolist() == [[0, 2], [0, 5], [2, 3], [3, 5]]
        # 0 and 3 are alike, 2 and 5 too
        assert constraints.satisfaction(np.arange(6) % 3) == 1


def test_labels_may_tell_nothing():
    for labels in ([-1, -1], [None], [3], np.empty(0, dtype=int), []):
        constraints = PairwiseConstraints.from_labels(labels)
        assert (len(constraints), constraints.n_pairs) == (len(labels), 0)
        assert PairwiseConstraints.from_labels(labels, n_pairs=0) == constraints


def test_labels_may_have_any_name():
    constraints = PairwiseConstraints(4, [(0, 1), (1, 2)], [(0, 3)])
    assert constraints.satisfaction(["x", "x", "y", "y"]) == pytest.approx(2 / 3)
    assert constraints.satisfaction(["x", "x", None, None]) == pytest.approx(1 / 3)


BAD_LABELS = {
    "labels in a table": (
        lambda: PairwiseConstraints.from_labels([[0, 1]]),
        ValueError,
        ("labels", "(n_samples,)", "(1, 2)"),
    ),
    "ragged labels": (
        lambda: PairwiseConstraints.from_labels([[0], [1, 2]]),
        ValueError,
        ("labels", "(n_samples,)", "[[0], [1, 2]]"),
    ),
    "one label": (
        lambda: PairwiseConstraints.from_labels(3),
        ValueError,
        ("labels", "3"),
    ),
    "sparse labels": (
        lambda: PairwiseConstraints.from_labels(sp.csr_array([[0, 1]])),
        ValueError,
        ("labels", "csr_array"),
    ),
    "fractions": (
        lambda: PairwiseConstraints.from_labels([0, 1, 1.5, 0]),
        ValueError,
        ("labels", "1.5"),
    ),
    "numbers and words": (
        lambda: PairwiseConstraints.from_labels(np.array([0, "a"], dtype=object)),
        TypeError,
        ("labels", "int", "str"),
    ),
}


@pytest.mark.parametrize(("call", "error", "says"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_bad_labels(call, error, says):
    with raises_naming(error, says) as caught:
        call()
    assert_plain(caught)


# ids


def test_ids_stand_for_samples():
    expected = PairwiseConstraints(4, [(0, 2, 1), (1, 3, 0.5)], [(0, 3, 2)])
    for ids in (
        list("wxyz"),
        tuple("wxyz"),
        np.array(list("wxyz")),
        dict.fromkeys("wxyz"),
    ):
        constraints = PairwiseConstraints.from_ids(
            ids, [("y", "w"), ["x", "z", 0.5], ("x", "x")], {("z", "w", 2)}
        )
        assert constraints == expected
    assert PairwiseConstraints.from_ids(
        [7, "a", (1, 2)], [((1, 2), 7)]
    ) == PairwiseConstraints(3, [(0, 2)])
    numbers = np.array([30, 10, 20])
    constraints = PairwiseConstraints.from_ids(
        numbers, np.array([[20, 30]]), [[10, 20]]
    )
    assert constraints == PairwiseConstraints(3, [(0, 2)], [(1, 2)])
    table = np.array([["w", "z", 2.5]], dtype=object)
    constraints = PairwiseConstraints.from_ids(["w", "z"], table)
    assert weighted(constraints)[0] == {(0, 1): 2.5}
    assert PairwiseConstraints.from_ids([]) == PairwiseConstraints(0)


BAD_IDS = {
    "an id twice": (
        lambda: PairwiseConstraints.from_ids(["a", "b", "a"]),
        ValueError,
        ("ids", "0", "2", "'a'"),
    ),
    "ids that are tables": (
        lambda: PairwiseConstraints.from_ids([["a"], ["b"]]),
        TypeError,
        ("ids", "hashable", "[['a'], ['b']]"),
    ),
    "an id for a sequence": (
        lambda: PairwiseConstraints.from_ids("ab"),
        TypeError,
        ("ids", "'ab'"),
    ),
    "a number of ids": (
        lambda: PairwiseConstraints.from_ids(3),
        TypeError,
        ("ids", "3"),
    ),
    "an unknown id": (
        lambda: PairwiseConstraints.from_ids("a b".split(), [("a", "c")]),
        ValueError,
        ("must_link", "'c'", "2", "ids"),
    ),
    "a set of ids and a weight": (
        lambda: PairwiseConstraints.from_ids("a b".split(), None, [{"a", "b", 2.5}]),
        ValueError,
        ("cannot_link", "(a, b, weight)", "set"),
    ),
    "an id linked with itself": (
        lambda: PairwiseConstraints.from_ids("a b".split(), None, [("b", "b")]),
        ValueError,
        ("cannot_link", "('b', 'b')"),
    ),
    "a word for a pair of ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), ["ab"]),
        ValueError,
        ("must_link", "(a, b, weight)", "'ab'"),
    ),
    "three ids and a weight": (
        lambda: PairwiseConstraints.from_ids("a b".split(), [("a", "b", "a", 1)]),
        ValueError,
        ("must_link", "('a', 'b', 'a', 1)"),
    ),
    "a word for a weight": (
        lambda: PairwiseConstraints.from_ids("a b".split(), [("a", "b", "a")]),
        TypeError,
        ("must_link", "'a'"),
    ),
    "a negative weight of ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), None, [("b", "a", -1)]),
        ValueError,
        ("cannot_link", "-1.0", "('b', 'a')"),
    ),
    "no weight of ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), [("b", "a", np.nan)]),
        ValueError,
        ("must_link", "nan", "('b', 'a')"),
    ),
    "lists for ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), [(["a"], "b")]),
        TypeError,
        ("must_link", "hashable", "ids", "['a']"),
    ),
    "a number for pairs of ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), 3),
        TypeError,
        ("must_link", "3"),
    ),
    "a matrix of other samples than ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), sp.eye_array(3)),
        ValueError,
        ("must_link", "sparse", "shape", "(2, 2)", "(3, 3)"),
    ),
}


@pytest.mark.parametrize(("call", "error", "says"), BAD_IDS.values(), ids=BAD_IDS)
def test_bad_ids(call, error, says):
    with raises_naming(error, says) as caught:
        call()
    assert_plain(caught)


@pytest.mark.parametrize(
    "kind", [list, tuple, np.array, lambda ids: dict.fromkeys(ids)]
)
def test_contradictions_are_told_by_ids(kind):
    ids = [f"P-{i}" for i in range(6)]
    known = PairwiseConstraints.from_ids(
        kind(ids), [("P-1", "P-3"), ("P-3", "P-4")], [("P-1", "P-4")]
    )
    for one in (known, known[::-1], pickle.loads(pickle.dumps(known))):
        with raises_naming(ValueError, "P-1", "P-3", "P-4"):
            one.check()
    apart = [(ids[i], ids[j]) for i in range(4) for j in range(i)]
    for k, says in (
        (2, ("P-1, P-0, P-2", "cycle")),
        (3, "P-0, P-1, P-2, P-3"),
    ):
        with raises_naming(ValueError, f"n_clusters={k}", says):
            PairwiseConstraints.from_ids(kind(ids), None, apart).check(k)
