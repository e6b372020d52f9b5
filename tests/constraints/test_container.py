"""Pairwise constraints: how they are read, split as samples are, and what follows from them."""

import copy
import pickle
import re
import time
import tracemalloc
from collections import Counter
from itertools import combinations, product

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import clone, config_context
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import resample, shuffle

from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.reading import pair_numbered

MANY = settings(deadline=None, max_examples=150)

# what numpy and Python say when nobody has looked before them
RAW = re.compile(
    "broadcast|ufunc|truth value|out of bounds|zero-size|operands|invalid literal|ambiguous|"
    "inhomogeneous|not subscriptable|unhashable|has no attribute|not iterable|unexpected keyword|"
    "mismatch in its core dimension|cannot reshape|'<' not supported|NoneType|Traceback|"
    "not understood|boolean index|slice indices|setting an array"
)


def weighted(constraints):
    """Return the pairs of both kinds as dictionaries from (i, j) to the weight."""
    kinds = (
        (constraints.must_link, constraints.must_link_weights),
        (constraints.cannot_link, constraints.cannot_link_weights),
    )
    return [
        dict(zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True))
        for pairs, weights in kinds
    ]


def links(found):
    """Return pairs with weights in the form that the constructor takes."""
    return [(i, j, weight) for (i, j), weight in found.items()]


def assert_in_form(constraints):
    assert constraints.shape == (len(constraints),) == (constraints.n_samples,)
    assert type(constraints.n_samples) is int
    kinds = (
        (constraints.must_link, constraints.must_link_weights),
        (constraints.cannot_link, constraints.cannot_link_weights),
    )
    for pairs, weights in kinds:
        assert pairs.shape == (len(weights), 2)
        assert (pairs.dtype, weights.dtype) == (np.intp, np.float64)
        assert not pairs.flags.writeable
        assert not weights.flags.writeable
        assert ((pairs >= 0) & (pairs < len(constraints))).all()
        assert (pairs[:, 0] < pairs[:, 1]).all()
        assert (weights > 0).all()
        listed = list(map(tuple, pairs.tolist()))
        assert listed == sorted(set(listed))


@st.composite
def drawn_constraints(draw, largest=8):
    """Draw constraints with weights, contradictions allowed."""
    n = draw(st.integers(0, largest))
    everything = list(combinations(range(n), 2))
    kinds = []
    for _ in range(2):
        chosen = draw(st.lists(st.sampled_from(everything), max_size=9)) if everything else []
        kinds.append([(*pair, draw(st.sampled_from([0.5, 1, 2, 3]))) for pair in chosen])
    return PairwiseConstraints(n, *kinds)


def some_constraints(n=60, seed=0):
    rng = np.random.RandomState(seed)
    kinds = [np.column_stack([rng.randint(n, size=(90, 2)), rng.rand(90) + 0.1]) for _ in range(2)]
    return PairwiseConstraints(n, *(kind[kind[:, 0] != kind[:, 1]] for kind in kinds))


# reading


PAIRS = [(4, 1), (0, 3), (1, 4), (2, 0)]
IN_FORM = [[0, 2], [0, 3], [1, 4]]


@pytest.mark.parametrize(
    "given",
    [
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
    ],
)
def test_pairs_come_in_many_forms(given):
    constraints = PairwiseConstraints(np.int64(5), given, given)
    assert_in_form(constraints)
    assert_array_equal(constraints.must_link, IN_FORM)
    assert_array_equal(constraints.cannot_link, IN_FORM)
    assert_array_equal(constraints.must_link_weights, np.ones(3))
    assert constraints.n_pairs == 6


def test_of_a_pair_given_twice_the_larger_weight_counts():
    given = [(1, 0, 2.0), (0, 1, 3.0), (0, 1, 0.5), (2, 1, 0.25), (0, 2, 0)]
    for pairs in (given, given[::-1]):
        constraints = PairwiseConstraints(3, pairs, pairs)
        assert weighted(constraints) == [{(0, 1): 3.0, (1, 2): 0.25}] * 2
        assert_in_form(constraints)


def test_a_sample_is_linked_with_itself_anyway():
    constraints = PairwiseConstraints(3, [(1, 1), (2, 1)], [(0, 0, 0.0), (2, 0, 1)])
    assert weighted(constraints) == [{(1, 2): 1}, {(0, 2): 1}]


@pytest.mark.parametrize("nothing", [None, [], (), np.empty((0, 2)), np.empty((0, 3)), [()][:0]])
def test_nothing_is_allowed(nothing):
    constraints = PairwiseConstraints(4, nothing, cannot_link=nothing)
    assert_in_form(constraints)
    assert constraints.n_pairs == 0
    assert PairwiseConstraints(0, nothing).shape == (0,)


@pytest.mark.parametrize("make", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [bool, np.int32, np.float32, np.float64])
def test_sparse_matrices_hold_weights(make, dtype):
    dense = np.zeros((5, 5), dtype=dtype)
    dense[1, 3], dense[3, 1], dense[2, 0], dense[4, 4] = 2, 3, 5, 7
    matrix = make(dense)
    before = matrix.copy()
    constraints = PairwiseConstraints(5, must_link=matrix)
    assert weighted(constraints)[0] == {(0, 2): float(dense[2, 0]), (1, 3): float(dense[3, 1])}
    assert_array_equal(matrix.toarray(), before.toarray())
    with pytest.raises(ValueError, match=r"cannot_link holds the pair \(4, 4\)"):
        PairwiseConstraints(5, cannot_link=matrix)


def test_stored_zeros_are_no_pairs_and_the_matrix_is_left_alone():
    matrix = sp.coo_array(([0.0, 1.0, 2.0], ([0, 1, 1], [1, 2, 2])), shape=(3, 3))
    constraints = PairwiseConstraints(3, matrix, matrix)
    assert weighted(constraints) == [{(1, 2): 3.0}] * 2  # entries of one place add up in SciPy
    assert matrix.nnz == 3


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


def test_contradictions_are_allowed_until_they_are_asked_for():
    constraints = PairwiseConstraints(2, [(0, 1)], [(0, 1)])
    assert constraints.n_pairs == 2


class Bad:
    def __repr__(self):
        return "<bad>"


M = "must_link"
BAD_PAIRS = {
    "an index past the end": ([(0, 1), (7, 2)], ValueError, "index 7.*n_samples=5.*Pairwise.*=$"),
    "an index at the end": ([(5, 0)], ValueError, "index 5, but n_samples=5"),
    "a huge index": (np.array([[2**64 - 1, 0]], dtype=np.uint64), ValueError, f"{2**64 - 1}"),
    "a huge Python index": ([(10**400, 0)], ValueError, "too large.*int"),
    "a negative index": ([(0, -1)], ValueError, "index -1.*at least 0"),
    "half an index": ([(0, 1.5)], ValueError, "whole numbers, got 1.5"),
    "no number for an index": ([(0, np.nan)], ValueError, "whole numbers, got nan"),
    "an infinite index": ([(0, np.inf)], ValueError, "whole numbers, got inf"),
    "a negative weight": ([(0, 1, -2)], ValueError, r"weights.*-2.0 .*\(0, 1\)"),
    "no number for a weight": ([(0, 1, np.nan)], ValueError, r"weights.*nan .*\(0, 1\)"),
    "an infinite weight": ([(2, 1, np.inf)], ValueError, r"weights.*inf .*\(2, 1\)"),
    "one pair, not in a list": ((0, 1), ValueError, r"\(n_pairs, 2\).*shape \(2,\)"),
    "one column": ([[0], [1]], ValueError, r"\(n_pairs, 2\).*shape \(2, 1\)"),
    "four columns": ([[0, 1, 2, 3]], ValueError, r"\(n_pairs, 3\).*shape \(1, 4\)"),
    "three dimensions": (np.zeros((2, 2, 2)), ValueError, r"shape \(2, 2, 2\)"),
    "a dense matrix": (np.eye(5), ValueError, r"shape \(5, 5\).*sparse"),
    "rows of several lengths": ([(0, 1), (1, 2, 3)], ValueError, r"several lengths, \[\(0, 1\)"),
    "a number": (3, TypeError, r"\(n_pairs, 2\).*got 3 \(int\)"),
    "a word": ("01", TypeError, r"got '01' \(str\)"),
    "a dictionary": ({0: 1}, TypeError, r"got \{0: 1\} \(dict\)"),
    "a set": ({(0, 1)}, TypeError, r"got \{\(0, 1\)\} \(set\)"),
    "an iterator": (zip([0], [1], strict=True), TypeError, r"\(zip\)"),
    "any object": (Bad(), TypeError, r"got <bad> \(Bad\)"),
    "words": ([("a", "b")], TypeError, "numbers.*dtype <U1"),
    "truths": ([(True, False)], TypeError, "numbers.*dtype bool"),
    "a truth among objects": (np.array([[0, True]], dtype=object), TypeError, "True .bool"),
    "nothing among numbers": ([(0, None)], TypeError, r"numbers, got None \(N"),
    "objects": ([(Bad(), 1)], TypeError, r"numbers, got <bad> \(Bad\)"),
    "complex numbers": ([(0, 1j)], TypeError, "numbers.*dtype complex128"),
    "dates": (np.array([[0, 1]], dtype="M8[s]"), TypeError, "numbers.*datetime64"),
    "constraints": (PairwiseConstraints(5), TypeError, "got PairwiseConstraints"),
    "a matrix of another size": (sp.eye_array(4), ValueError, r"\(5, 5\).*got \(4, 4\).*Pairw"),
    "a matrix that is not square": (sp.csr_array((5, 4)), ValueError, r"got \(5, 4\)"),
    "complex entries": (sp.eye_array(5, dtype=complex), TypeError, "real numbers.*complex128"),
    "a negative entry": (sp.csr_array(-np.eye(5)), ValueError, r"weights.*-1.0 .*\(0, 0\)"),
    "an entry that is none": (sp.csr_array(np.eye(5) * np.nan), ValueError, "weights.*nan"),
}


@pytest.mark.parametrize("kind", ["must_link", "cannot_link"])
@pytest.mark.parametrize(("given", "error", "says"), BAD_PAIRS.values(), ids=BAD_PAIRS)
def test_bad_pairs(kind, given, error, says):
    with pytest.raises(error, match=f"{kind}.*{says.removesuffix('=$')}") as caught:
        PairwiseConstraints(5, **{kind: given})
    assert not RAW.search(str(caught.value).replace("(NoneType)", ""))


def test_an_index_past_the_end_points_to_cross_validation():
    says = (
        "must_link holds the index 9, but n_samples=9. Inside cross-validation a plain list of "
        "pairs is not split with the samples: pass PairwiseConstraints, given as constraints=."
    )
    with pytest.raises(ValueError, match=re.escape(says)):
        PairwiseConstraints(9, [(0, 9)])


LABELS = [0, 1, 1, -1]
KNOWN = PairwiseConstraints(4, [(1, 2)], [(0, 1)])
BAD_CALLS = {
    "no number of samples": (lambda: PairwiseConstraints([(0, 1)]), TypeError, "n_samples.*list"),
    "half a sample": (lambda: PairwiseConstraints(2.0), TypeError, r"n_samples.*2.0 \(float\)"),
    "a truth of samples": (lambda: PairwiseConstraints(True), TypeError, "n_samples.*True"),
    "less than no samples": (lambda: PairwiseConstraints(-1), ValueError, "n_samples.*-1"),
    "linked with itself": (
        lambda: PairwiseConstraints(3, None, [(2, 2)]),
        ValueError,
        r"cannot_link.*\(2, 2\)",
    ),
    # labels
    "labels in a table": (
        lambda: PairwiseConstraints.from_labels([[0, 1]]),
        ValueError,
        r"labels.*\(n_samples,\).*\(1, 2\)",
    ),
    "ragged labels": (
        lambda: PairwiseConstraints.from_labels([[0], [1, 2]]),
        ValueError,
        r"labels.*\(n_samples,\).*\[\[0\], \[1, 2\]\]",
    ),
    "one label": (lambda: PairwiseConstraints.from_labels(3), ValueError, r"labels.*3 \(int\)"),
    "sparse labels": (
        lambda: PairwiseConstraints.from_labels(sp.csr_array([[0, 1]])),
        ValueError,
        "labels.*csr_array",
    ),
    "fractions": (lambda: KNOWN.satisfied([0, 1, 1.5, 0]), ValueError, r"labels.*1\.5"),
    "numbers and words": (
        lambda: PairwiseConstraints.from_labels(np.array([0, "a"], dtype=object)),
        TypeError,
        "labels.*int.*str",
    ),
    "too many pairs": (
        lambda: PairwiseConstraints.from_labels(LABELS, n_pairs=4),
        ValueError,
        "n_pairs must be at most 3.*3 samples.*got 4",
    ),
    "pairs of one sample": (
        lambda: PairwiseConstraints.from_labels([0, -1], n_pairs=1),
        ValueError,
        "n_pairs must be at most 0",
    ),
    "fewer than no pairs": (
        lambda: PairwiseConstraints.from_labels(LABELS, n_pairs=-1),
        ValueError,
        "n_pairs.*at least 0.*-1",
    ),
    "half a pair": (
        lambda: PairwiseConstraints.from_labels(LABELS, n_pairs=0.5),
        TypeError,
        r"n_pairs.*0\.5 \(float\)",
    ),
    "a word for a seed": (
        lambda: PairwiseConstraints.from_labels(LABELS, n_pairs=1, random_state="x"),
        ValueError,
        "x.*seed",
    ),
    "labels of others": (
        lambda: KNOWN.satisfied([0, 1, 2]),
        ValueError,
        "labels.*n_samples=4.*got 3",
    ),
    "labels of others still": (
        lambda: KNOWN.satisfaction([0] * 5),
        ValueError,
        "labels.*n_samples=4.*got 5",
    ),
    # ids
    "an id twice": (
        lambda: PairwiseConstraints.from_ids(["a", "b", "a"]),
        ValueError,
        "ids must differ.*0 and 2.*'a'",
    ),
    "ids that are tables": (
        lambda: PairwiseConstraints.from_ids([["a"], ["b"]]),
        TypeError,
        r"ids.*hashable.*\[\['a'\], \['b'\]\]",
    ),
    "an id for a sequence": (lambda: PairwiseConstraints.from_ids("ab"), TypeError, "ids.*'ab'"),
    "a number of ids": (lambda: PairwiseConstraints.from_ids(3), TypeError, r"ids.*3 \(int\)"),
    "an unknown id": (
        lambda: PairwiseConstraints.from_ids("a b".split(), [("a", "c")]),
        ValueError,
        "must_link.*1 .*not among the 2 ids: 'c'",
    ),
    "many unknown ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), None, [(c, "a") for c in "pqrstuv"]),
        ValueError,
        "cannot_link.*7 .*: 'p', 'q', 'r', 's', 't'.$",
    ),
    "an id linked with itself": (
        lambda: PairwiseConstraints.from_ids("a b".split(), None, [("b", "b")]),
        ValueError,
        r"cannot_link.*\('b', 'b'\)",
    ),
    "a word for a pair of ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), ["ab"]),
        ValueError,
        r"must_link.*\(a, b, weight\), got 'ab' \(str\)",
    ),
    "three ids and a weight": (
        lambda: PairwiseConstraints.from_ids("a b".split(), [("a", "b", "a", 1)]),
        ValueError,
        r"must_link.*got \('a', 'b', 'a', 1\)",
    ),
    "a word for a weight": (
        lambda: PairwiseConstraints.from_ids("a b".split(), [("a", "b", "a")]),
        TypeError,
        r"must_link.*numbers, got 'a' \(str\)",
    ),
    "a negative weight of ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), None, [("b", "a", -1)]),
        ValueError,
        r"cannot_link.*-1.0 .*\('b', 'a'\)",
    ),
    "lists for ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), [(["a"], "b")]),
        TypeError,
        r"must_link.*hashable ids, got \(\['a'\], 'b'\)",
    ),
    "a number for pairs of ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), 3),
        TypeError,
        r"must_link.*got 3 \(int\)",
    ),
    "a matrix for pairs of ids": (
        lambda: PairwiseConstraints.from_ids("a b".split(), sp.eye_array(2)),
        TypeError,
        "must_link.*got.*array",
    ),
    # samples
    "one sample": (lambda: KNOWN[2], TypeError, r"got 2 \(int\).*\[\[2\]\]"),
    "one numpy sample": (lambda: KNOWN[np.int32(2)], TypeError, "at once.*int32"),
    "one sample of the first axis": (lambda: KNOWN[2, ...], TypeError, r"\[\[2\]\]"),
    "two axes": (lambda: KNOWN[[0, 1], [0, 1]], TypeError, "at once"),
    "all of a second axis": (lambda: KNOWN[[0, 1], :], TypeError, "at once"),
    "a table of samples": (lambda: KNOWN[[[0, 1]]], TypeError, "at once"),
    "ragged samples": (lambda: KNOWN[[[0], [0, 1]]], TypeError, "at once"),
    "a word for samples": (lambda: KNOWN["must_link"], TypeError, "at once.*'must_link'"),
    "fractions of samples": (lambda: KNOWN[[0.5]], TypeError, r"at once.*0\.5"),
    "nothing for samples": (lambda: KNOWN[None], TypeError, "at once.*None"),
    "a sample past the end": (lambda: KNOWN[[0, 4]], ValueError, "sample 4 .*n_samples=4"),
    "a sample before the first": (lambda: KNOWN[[0, -5]], ValueError, "sample -5 .*n_samples=4"),
    "a short mask": (lambda: KNOWN[[True] * 3], ValueError, "n_samples=4 .*got 3"),
    "a slice of words": (lambda: KNOWN["a":], TypeError, "slice.*'a'"),
    "a slice without steps": (lambda: KNOWN[::0], ValueError, "slice.*0"),
    "samples of another axis": (lambda: KNOWN.take([0], axis=1), ValueError, "axis.*1"),
    "one sample taken": (lambda: KNOWN.take(3), TypeError, r"\[\[3\]\]"),
    "sample by sample": (lambda: list(KNOWN), TypeError, "must_link and cannot_link"),
    # the rest
    "no clusters": (lambda: KNOWN.check(0), ValueError, "n_clusters.*at least 1.*0"),
    "half a cluster": (lambda: KNOWN.check(2.5), TypeError, r"n_clusters.*2\.5 \(float\)"),
    "clusters in truth": (lambda: KNOWN.check(True), TypeError, "n_clusters.*True"),
    "whole numbers for weights": (lambda: KNOWN.as_matrices(int), TypeError, "dtype.*int"),
    "a word for a type": (lambda: KNOWN.as_matrices("x"), TypeError, "dtype.*'x'"),
}


@pytest.mark.parametrize(("call", "error", "says"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_bad_calls(call, error, says):
    with pytest.raises(error, match=says) as caught:
        call()
    assert not RAW.search(str(caught.value).replace("(NoneType)", ""))


# splitting


def split(constraints, samples):
    """Look up every pair of new samples, one at a time."""
    return [
        {
            (a, b): kind[tuple(sorted((samples[a], samples[b])))]
            for a, b in combinations(range(len(samples)), 2)
            if tuple(sorted((samples[a], samples[b]))) in kind
        }
        for kind in weighted(constraints)
    ]


@st.composite
def keyed(draw):
    """Draw constraints, a key to index them by, and the samples that it names."""
    constraints = draw(drawn_constraints())
    n = len(constraints)
    form = draw(st.sampled_from(["integers", "mask", "slice", "all"]))
    if form == "all":
        return constraints, draw(st.sampled_from([..., (...,), ()])), list(range(n))
    if form == "slice":
        key = draw(st.slices(n))
        return constraints, key, list(range(n))[key]
    if form == "mask":
        mask = draw(st.lists(st.booleans(), min_size=n, max_size=n))
        key = draw(st.sampled_from([mask, np.array(mask, dtype=bool)]))
        return constraints, key, [i for i in range(n) if mask[i]]
    listed = draw(st.lists(st.integers(-n, n - 1), max_size=12)) if n else []
    make = draw(st.sampled_from([list, np.array, lambda it: np.array(it, dtype=np.int8)]))
    return constraints, make(listed), [i % n for i in listed]


@settings(deadline=None, max_examples=400)
@given(keyed(), st.booleans())
def test_a_split_keeps_the_pairs_with_both_ends_inside(case, with_ellipsis):
    constraints, key, samples = case
    part = (
        constraints[key, ...]
        if with_ellipsis and not isinstance(key, tuple)
        else (constraints[key])
    )
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
    again = data.draw(st.lists(st.integers(0, len(samples) - 1), max_size=9)) if samples else []
    assert constraints[key][again] == constraints[[samples[i] for i in again]]


def test_a_sample_drawn_twice_has_its_pairs_twice():
    constraints = PairwiseConstraints(4, [(0, 1, 2)], [(1, 3, 5)])
    drawn = constraints[[1, 0, 1, 3, 3]]
    assert weighted(drawn) == [
        {(0, 1): 2, (1, 2): 2},
        {(0, 3): 5, (0, 4): 5, (2, 3): 5, (2, 4): 5},
    ]


def test_a_split_of_many_pairs_is_quick():
    rng = np.random.RandomState(0)
    n, pairs = 20_000, rng.randint(20_000, size=(100_000, 2))
    constraints = PairwiseConstraints(n, pairs, pairs[pairs[:, 0] != pairs[:, 1]])
    kept = rng.permutation(n)[: n // 2]
    started = time.process_time()
    part, drawn = constraints[kept], constraints[rng.randint(n, size=n)]
    assert time.process_time() - started < 2
    inside = np.isin(constraints.must_link, kept).all(axis=1)
    assert len(part.must_link) == inside.sum()
    assert_in_form(drawn)


# the object


def test_the_repr_counts_the_pairs():
    assert repr(PairwiseConstraints(150, [(0, 1)], [(2, 3), (5, 3)])) == (
        "PairwiseConstraints(n_samples=150, must_link: 1 pair, cannot_link: 2 pairs)"
    )


def test_equality_looks_at_everything():
    one = PairwiseConstraints(3, [(0, 1)], [(1, 2)])
    assert one == PairwiseConstraints(3, [(1, 0, 1.0)], sp.csr_array(one.as_matrices()[1]))
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
@pytest.mark.parametrize("n", [0, 3, 60])
def test_copies_are_equal_and_read_only(duplicate, n, tmp_path):
    constraints = some_constraints(n) if n == 60 else PairwiseConstraints(n)
    other = duplicate(constraints, tmp_path)
    assert other == constraints
    assert other is not constraints
    assert_in_form(other)
    assert other[:2] == constraints[:2]


def test_a_subclass_stays_one():
    class Mine(PairwiseConstraints):
        pass

    constraints = Mine.from_labels([0, 0, 1])
    for other in (constraints[[0, 1]], constraints.closure(), Mine.from_ids("ab"[:0].split())):
        assert type(other) is Mine
    assert repr(constraints).startswith("Mine(")


def test_numpy_does_not_take_it_apart():
    with pytest.raises(TypeError):
        np.asarray(KNOWN)


# labels


@pytest.mark.parametrize(
    "labels",
    [
        [1, -1, 0, 1, -7, 0],
        np.array([1.0, np.nan, 0.0, 1.0, -1.0, 0.0]),
        ["b", None, "a", "b", None, "a"],
        np.array(["b", None, "a", "b", np.nan, "a"], dtype=object),
        [1, None, 0, 1, None, 0],
        np.array([1, -1, 0, 1, -1, 0], dtype=np.int8),
    ],
)
def test_labels_tell_which_pairs_are_alike(labels):
    constraints = PairwiseConstraints.from_labels(labels)
    assert_in_form(constraints)
    assert len(constraints) == 6
    assert constraints.must_link.tolist() == [[0, 3], [2, 5]]
    assert constraints.cannot_link.tolist() == [[0, 2], [0, 5], [2, 3], [3, 5]]
    assert constraints.satisfaction(np.arange(6) % 3) == 1  # samples 0 and 3 are alike, 2 and 5 too


@pytest.mark.parametrize("labels", [[-1, -1], [None], [3], np.empty(0, dtype=int), []])
def test_labels_may_tell_nothing(labels):
    constraints = PairwiseConstraints.from_labels(labels)
    assert (len(constraints), constraints.n_pairs) == (len(labels), 0)
    assert PairwiseConstraints.from_labels(labels, n_pairs=0) == constraints


@pytest.mark.parametrize("n_pairs", [0, 1, 7, 30, 60, 190])
def test_drawn_pairs_are_some_of_all_pairs(n_pairs):
    labels = np.random.RandomState(0).randint(-1, 3, size=26)
    labels[:20] = np.abs(labels[:20])
    labels[20:] = -1
    everything = weighted(PairwiseConstraints.from_labels(labels))
    drawn = PairwiseConstraints.from_labels(labels, n_pairs=n_pairs, random_state=0)
    assert_in_form(drawn)
    assert drawn.n_pairs == n_pairs
    for some, every in zip(weighted(drawn), everything, strict=True):
        assert some.items() <= every.items()
    again = PairwiseConstraints.from_labels(
        labels, n_pairs=n_pairs, random_state=np.random.RandomState(0)
    )
    assert again == drawn


@pytest.mark.parametrize("n_pairs", [1, 3, 7, 14])
def test_all_pairs_have_the_same_chance(n_pairs):
    labels, rng, times = [0, -1, 1, 0, 2, 1, -1, 0], np.random.RandomState(0), 1500
    found = Counter()
    for _ in range(times):
        drawn = PairwiseConstraints.from_labels(labels, n_pairs=n_pairs, random_state=rng)
        found.update(map(tuple, np.concatenate([drawn.must_link, drawn.cannot_link]).tolist()))
    assert len(found) == 15
    share = n_pairs / 15
    assert np.ptp(list(found.values())) < 10 * np.sqrt(times * share * (1 - share))


def test_drawing_few_pairs_needs_no_list_of_all():
    labels = np.arange(200_000) % 5
    tracemalloc.start()
    drawn = PairwiseConstraints.from_labels(labels, n_pairs=2000, random_state=0)
    assert tracemalloc.get_traced_memory()[1] < 5e7  # all pairs: 2e10
    tracemalloc.stop()
    assert drawn.n_pairs == 2000
    assert drawn.satisfaction(labels) == 1


def test_numbers_of_pairs_are_decoded_to_the_last_digit():
    assert pair_numbered(np.arange(15)).tolist() == [[a, b] for b in range(6) for a in range(b)]
    for b in (3, 10**5, 94_906_266, 94_906_267, 2 * 10**9):
        first = b * (b - 1) // 2
        expected = [[b - 2, b - 1], [0, b], [b - 1, b], [0, b + 1]]
        numbers = np.array([first - 1, first, first + b - 1, first + b])
        assert pair_numbered(numbers).tolist() == expected


# ids


def test_ids_stand_for_samples():
    expected = PairwiseConstraints(4, [(0, 2, 1), (1, 3, 0.5)], [(0, 3, 2)])
    for ids in (list("wxyz"), tuple("wxyz"), np.array(list("wxyz")), dict.fromkeys("wxyz")):
        found = PairwiseConstraints.from_ids(
            ids, [("y", "w"), ["x", "z", 0.5], ("x", "x")], {("z", "w", 2)}
        )
        assert found == expected
    assert PairwiseConstraints.from_ids([7, "a", (1, 2)], [((1, 2), 7)]) == PairwiseConstraints(
        3, [(0, 2)]
    )
    numbers = np.array([30, 10, 20])
    found = PairwiseConstraints.from_ids(numbers, np.array([[20, 30]]), [[10, 20]])
    assert found == PairwiseConstraints(3, [(0, 2)], [(1, 2)])
    table = np.array([["w", "z", 2.5]], dtype=object)
    found = PairwiseConstraints.from_ids(["w", "z"], table)
    assert weighted(found)[0] == {(0, 1): 2.5}
    assert PairwiseConstraints.from_ids([]) == PairwiseConstraints(0)


def test_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0]}, index=["u", "v", "w"])
    expected = PairwiseConstraints(3, [(0, 2)], [(0, 1, 0.5)])
    apart = pd.DataFrame({"one": ["v"], "other": ["u"], "cost": [0.5]})
    for ids in (frame, frame.index, pd.Series(["u", "v", "w"], index=[9, 9, 9])):
        together = pd.DataFrame([["w", "u"]], columns=["same", "same"])
        assert PairwiseConstraints.from_ids(ids, together, apart) == expected
    dates = pd.date_range("2020-01-01", periods=3)
    pairs = pd.DataFrame({"one": [dates[2]], "other": [dates[0]]})
    assert PairwiseConstraints.from_ids(dates, pairs) == PairwiseConstraints(3, [(0, 2)])
    levels = pd.MultiIndex.from_product([["a", "b"], [1, 2]])
    found = PairwiseConstraints.from_ids(levels, [(("b", 2), ("a", 1))])
    assert found == PairwiseConstraints(4, [(0, 3)])
    by_position = pd.DataFrame({"i": [2], "j": [0]}, index=[77])
    weights = pd.DataFrame({"i": [1], "j": [0], "cost": [0.5]})
    assert PairwiseConstraints(3, by_position, weights) == expected
    assert PairwiseConstraints(3, by_position.astype("Int64"), weights) == expected
    with pytest.raises(ValueError, match=r"must_link.*'i'"):
        PairwiseConstraints.from_ids(frame, [("u", "i")])
    labels = PairwiseConstraints.from_labels([0, 1, -1])
    for series in (
        pd.Series(["b", "a", None]),
        pd.Series(["b", "a", None], dtype="category"),
        pd.Series([5, 3, None], dtype="Int64", index=[4, 4, 4]),
        pd.Series([5.0, 3.0, np.nan]),
    ):
        assert PairwiseConstraints.from_labels(series) == labels
        assert labels.satisfaction(series) == 1
    mask = pd.Series([True, False, True], index=[2, 1, 0])
    assert expected[mask] == expected[pd.Series([0, 2])] == PairwiseConstraints(2, [(0, 1)])


def test_polars():
    pl = pytest.importorskip("polars")
    expected = PairwiseConstraints(3, [(0, 2)], [(0, 1, 0.5)])
    apart = pl.DataFrame({"one": ["v"], "other": ["u"], "cost": [0.5]})
    found = PairwiseConstraints.from_ids(
        pl.Series(["u", "v", "w"]), pl.DataFrame({"one": ["w"], "other": ["u"]}), apart
    )
    assert found == expected
    by_position = pl.DataFrame({"i": [2], "j": [0]})
    assert PairwiseConstraints(3, by_position, [(0, 1, 0.5)]) == expected
    labels = PairwiseConstraints.from_labels([0, 1, -1])
    for series in (pl.Series(["b", "a", None]), pl.Series([5, 3, None])):
        assert PairwiseConstraints.from_labels(series) == labels
    assert expected[pl.Series([True, False, True])] == PairwiseConstraints(2, [(0, 1)])
    with pytest.raises(TypeError, match=r"ids.*DataFrame without an index"):
        PairwiseConstraints.from_ids(by_position)


# what follows from the pairs


def satisfying(constraints, n_clusters):
    """Try all labels; return whether some satisfy every pair."""
    must, cannot = weighted(constraints)
    return any(
        all(labels[i] == labels[j] for i, j in must)
        and all(labels[i] != labels[j] for i, j in cannot)
        for labels in product(range(n_clusters), repeat=len(constraints))
    )


def verdict_of(constraints, n_clusters):
    try:
        return constraints.check(n_clusters), ""
    except ValueError as error:
        return "impossible", str(error)


@MANY
@given(drawn_constraints(largest=6), st.integers(1, 4))
def test_what_is_raised_is_impossible_and_what_is_called_feasible_is_not(constraints, n_clusters):
    verdict, says = verdict_of(constraints, n_clusters)
    if satisfying(constraints, n_clusters):
        assert verdict in {"feasible", "undecided"}
    elif verdict == "impossible":
        assert re.search("samples [0-9].* can(not)? be linked", says)
    else:
        assert verdict == "undecided"
    assert n_clusters > 2 or verdict != "undecided"


@MANY
@given(drawn_constraints(largest=6))
def test_without_a_number_of_clusters_only_contradictions_count(constraints):
    if satisfying(constraints, len(constraints)) or not len(constraints):
        assert constraints.check() == constraints.check(max(1, len(constraints))) == "feasible"
    else:
        with pytest.raises(ValueError, match="but must-link pairs join them"):
            constraints.check()
        with pytest.raises(ValueError, match="but must-link pairs join them"):
            constraints.closure()


CHECKS = {
    "a chain": (
        PairwiseConstraints(10, [(3, 5), (5, 9), (0, 1)], [(9, 3), (0, 2)]),
        None,
        "samples 3 and 9 cannot be linked, but must-link pairs join them: 3-5-9.",
    ),
    "a pair of both kinds": (
        PairwiseConstraints(3, [(1, 2)], [(2, 1)]),
        3,
        "samples 1 and 2 cannot be linked, but must-link pairs join them: 1-2.",
    ),
    "a long chain": (
        PairwiseConstraints(99, [(i, i + 1) for i in range(98)], [(0, 98)]),
        None,
        "samples 0 and 98 cannot be linked, but must-link pairs join them: 0-1-2-3-4-5-6-7-8-9-... "
        "(79 more) ...-89-90-91-92-93-94-95-96-97-98.",
    ),
    "one cluster": (
        PairwiseConstraints(5, [(0, 3)], [(4, 3)]),
        1,
        "n_clusters=1 is too small: samples 0, 4 need a cluster each, as no two of them, or "
        "samples that must be with them, can be linked.",
    ),
    "an odd cycle": (
        PairwiseConstraints(9, [(0, 8)], [(8, 5), (5, 2), (0, 2)]),
        2,
        "n_clusters=2 is too small: samples 2, 0, 5 are a cycle of odd length, in which each, or a "
        "sample that must be with it, cannot be linked to the next.",
    ),
    "a clique": (
        PairwiseConstraints(9, [(4, 5)], [(0, 4), (5, 2), (2, 0), (7, 0), (7, 2), (7, 5)]),
        3,
        "n_clusters=3 is too small: samples 0, 2, 4, 7 need a cluster each, as no two of them, or "
        "samples that must be with them, can be linked.",
    ),
}


@pytest.mark.parametrize(("constraints", "n_clusters", "says"), CHECKS.values(), ids=CHECKS)
def test_what_cannot_be_is_named(constraints, n_clusters, says):
    with pytest.raises(ValueError, match="^" + re.escape(says) + "$") as caught:
        constraints.check(n_clusters)
    assert not RAW.search(str(caught.value))


def test_an_odd_wheel_is_left_undecided():
    around = [(i, (i + 1) % 5) for i in range(5)] + [(5, i) for i in range(5)]
    constraints = PairwiseConstraints(6, None, around)
    assert [constraints.check(k) for k in (3, 4)] == ["undecided", "feasible"]


@MANY
@given(drawn_constraints())
@example(PairwiseConstraints(4, [(0, 1, 2), (1, 2, 4)], [(2, 3, 3)]))
def test_the_closure_is_what_all_clusterings_that_satisfy_the_pairs_share(constraints):
    group = constraints.components().tolist()
    must, cannot = weighted(constraints)
    if any(group[i] == group[j] for i, j in cannot):
        return
    inside, between = Counter(), Counter()
    for (i, _), weight in must.items():
        inside[group[i]] += weight
    for (i, j), weight in cannot.items():
        between[frozenset((group[i], group[j]))] += weight
    size, expected = Counter(group), ({}, {})
    for i, j in combinations(range(len(group)), 2):
        one, other = group[i], group[j]
        if one == other:
            expected[0][i, j] = inside[one] / (size[one] * (size[one] - 1) / 2)
        elif frozenset((one, other)) in between:
            expected[1][i, j] = between[frozenset((one, other))] / (size[one] * size[other])
    closed = constraints.closure()
    assert_in_form(closed)
    for found, kind in zip(weighted(closed), expected, strict=True):
        assert found.keys() == kind.keys()
        assert_allclose([found[pair] for pair in kind], list(kind.values()), rtol=1e-12)
    assert_allclose(closed.must_link_weights.sum(), sum(must.values()))
    assert_allclose(closed.cannot_link_weights.sum(), sum(cannot.values()))
    assert_array_equal(closed.components(), group)
    assert_array_equal(closed.closure().must_link, closed.must_link)
    assert_array_equal(closed.closure().cannot_link, closed.cannot_link)


def test_the_closure_comes_before_the_split():
    constraints = PairwiseConstraints(4, [(0, 1), (1, 2)], [(2, 3)])
    kept = [0, 2, 3]
    assert constraints[kept].must_link.tolist() == []
    assert constraints.closure()[kept].must_link.tolist() == [[0, 1]]
    assert constraints.closure()[kept].cannot_link.tolist() == [[0, 2], [1, 2]]


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
    share = constraints.satisfaction(np.array(labels, dtype=float))
    assert type(share) is float
    if constraints.n_pairs:
        assert share == np.mean([*must, *cannot])
    else:
        assert np.isnan(share)


def test_labels_may_have_any_name():
    constraints = PairwiseConstraints(4, [(0, 1), (1, 2)], [(0, 3)])
    assert constraints.satisfaction(["x", "x", "y", "y"]) == pytest.approx(2 / 3)
    assert constraints.satisfaction(["x", "x", None, None]) == pytest.approx(1 / 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, "f4", float])
@pytest.mark.parametrize("n", [0, 1, 60])
def test_matrices_hold_the_weights(dtype, n):
    constraints = some_constraints() if n == 60 else PairwiseConstraints(n)
    for matrix, kind in zip(constraints.as_matrices(dtype), weighted(constraints), strict=True):
        dense = np.zeros((n, n))
        for (i, j), weight in kind.items():
            dense[i, j] = dense[j, i] = weight
        assert isinstance(matrix, sp.csr_array)
        assert matrix.dtype == dtype
        assert matrix.nnz == 2 * len(kind)
        assert matrix.has_sorted_indices
        assert matrix.indices.dtype == np.int32
        assert_array_equal(matrix.toarray(), dense.astype(dtype))
    assert PairwiseConstraints(n, *constraints.as_matrices(float)) == constraints


# scikit-learn

N = 60
CONSTRAINTS = some_constraints(N)
IDS = np.random.RandomState(1).permutation(1000)[:N]  # a sample is known by what is in its row
X = np.column_stack([IDS, np.random.RandomState(2).normal(size=(N, 2))])
BY_ID = [
    {frozenset((int(IDS[i]), int(IDS[j]))): weight for (i, j), weight in kind.items()}
    for kind in weighted(CONSTRAINTS)
]


def make_witness(by_id):
    """Return a clusterer that tells whether the pairs it is given are those of its samples.

    It is made in a function, so that other processes get the code and need not import it.
    """

    class Witness(ClusterMixin, BaseEstimator):
        __metadata_request__fit = {"constraints": True}

        def __init__(self, n_clusters=2):
            self.n_clusters = n_clusters

        def fit(self, X, y=None, constraints=None):
            constraints = y if constraints is None else constraints
            assert len(constraints) == len(X), (len(constraints), len(X))
            ids = X[:, 0].astype(int).tolist()
            kinds = (
                (constraints.must_link, constraints.must_link_weights),
                (constraints.cannot_link, constraints.cannot_link_weights),
            )
            for (pairs, weights), known in zip(kinds, by_id, strict=True):
                found = [
                    (frozenset((ids[i], ids[j])), weight)
                    for (i, j), weight in zip(pairs.tolist(), weights.tolist(), strict=True)
                ]
                inside = {pair: weight for pair, weight in known.items() if pair <= set(ids)}
                assert len(found) == len(inside)
                assert dict(found) == inside
            self.n_pairs_ = constraints.n_pairs
            self.labels_ = self.predict(X)
            return self

        def predict(self, X):
            return X[:, 0].astype(int) % self.n_clusters

    return Witness()


def score(estimator, X, y=None):
    if isinstance(y, PairwiseConstraints):  # of the samples that were held out
        assert len(y) == len(X)
    return float(len(X))


@pytest.fixture
def witness():
    return make_witness(BY_ID)


def in_pipeline(witness):
    steps = [("same", FunctionTransformer()), ("clf", witness)]
    return Pipeline(steps)


GRID = {"n_clusters": [2, 3]}
SEARCHES = {
    "grid": lambda estimator, grid, **options: GridSearchCV(estimator, grid, **options),
    "random": lambda estimator, grid, **options: RandomizedSearchCV(
        estimator, grid, n_iter=2, random_state=0, **options
    ),
    "halving": lambda estimator, grid, **options: HalvingGridSearchCV(
        estimator, grid, random_state=0, min_resources=20, factor=2, **options
    ),
}


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.filterwarnings("ignore:The number of unique")
def test_searches_split_the_constraints(search, routing, witness):
    cv = KFold(3, shuffle=True, random_state=0)
    options = {"cv": cv, "scoring": score, "error_score": "raise"}
    with config_context(enable_metadata_routing=routing):
        found = search(witness, GRID, **options).fit(X, constraints=CONSTRAINTS)
        assert found.best_estimator_.n_pairs_ == CONSTRAINTS.n_pairs
        name = "constraints" if routing else "clf__constraints"
        found = search(in_pipeline(witness), {"clf__n_clusters": [2, 3]}, **options)
        found.fit(X, **{name: CONSTRAINTS})
        assert found.best_estimator_["clf"].n_pairs_ == CONSTRAINTS.n_pairs
        found = search(witness, GRID, **options).fit(X, CONSTRAINTS)  # as y
        assert found.best_estimator_.n_pairs_ == CONSTRAINTS.n_pairs


@pytest.mark.parametrize("routing", [False, True])
def test_cross_validation_splits_the_constraints(routing, witness):
    options = {"cv": KFold(3), "params": {"constraints": CONSTRAINTS}}
    with config_context(enable_metadata_routing=routing):
        found = cross_validate(
            witness, X, scoring=score, return_estimator=True, error_score="raise", **options
        )
        expected = [CONSTRAINTS[train].n_pairs for train, _ in KFold(3).split(X)]
        assert [fitted.n_pairs_ for fitted in found["estimator"]] == expected
        assert min(expected) > 20
        scores = cross_val_score(witness, X, scoring=score, error_score="raise", **options)
        assert_array_equal(scores, [20, 20, 20])
        assert_array_equal(cross_val_predict(witness, X, **options), IDS % 2)
        pipeline = in_pipeline(witness)
        name = "constraints" if routing else "clf__constraints"
        options["params"] = {name: CONSTRAINTS}
        found = cross_validate(
            pipeline, X, scoring=score, return_estimator=True, error_score="raise", **options
        )
        assert [fitted["clf"].n_pairs_ for fitted in found["estimator"]] == expected


@pytest.mark.parametrize("routing", [False, True])
def test_pipelines_hand_the_constraints_on(routing, witness):
    pipeline, name = in_pipeline(witness), "constraints" if routing else "clf__constraints"
    with config_context(enable_metadata_routing=routing):
        pipeline.fit(X, **{name: CONSTRAINTS})
        assert pipeline["clf"].n_pairs_ == CONSTRAINTS.n_pairs
        labels = pipeline.fit_predict(X, **{name: CONSTRAINTS})
        assert_array_equal(labels, IDS % 2)
        pipeline.fit(X, CONSTRAINTS)
        assert pipeline["clf"].n_pairs_ == CONSTRAINTS.n_pairs


def test_constraints_as_y_reach_the_scorer(witness):
    scores = cross_val_score(witness, X, CONSTRAINTS, scoring=score, cv=4, error_score="raise")
    assert_array_equal(scores, [15, 15, 15, 15])


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_other_processes_and_threads_get_their_folds(backend, witness):
    search = GridSearchCV(witness, GRID, scoring=score, cv=3, n_jobs=2, error_score="raise")
    with joblib.parallel_config(backend):
        search.fit(X, constraints=CONSTRAINTS)
    assert search.best_estimator_.n_pairs_ == CONSTRAINTS.n_pairs


def test_the_witness_notices_what_is_wrong(witness):
    with pytest.raises(AssertionError):
        witness.fit(X, constraints=CONSTRAINTS[::-1])
    with pytest.raises(AssertionError):
        witness.fit(X[:-1], constraints=CONSTRAINTS)


@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"test_size": 7}])
def test_train_test_split(options, witness):
    options = options if "shuffle" in options else {**options, "random_state": 0}
    train, test, pairs, held_out = train_test_split(X, CONSTRAINTS, **options)
    for some, part in ((train, pairs), (test, held_out)):
        assert type(part) is PairwiseConstraints
        witness.fit(some, constraints=part)


def test_shuffle_and_resample(witness):
    for some, part in (
        shuffle(X, CONSTRAINTS, random_state=0),
        shuffle(X, CONSTRAINTS, random_state=0, n_samples=20),
        resample(X, CONSTRAINTS, random_state=0, replace=False, n_samples=30),
    ):
        witness.fit(some, constraints=part)
    drawn, part = resample(X, CONSTRAINTS, random_state=0)
    position = {sample: i for i, sample in enumerate(IDS.tolist())}
    samples = [position[sample] for sample in drawn[:, 0].astype(int).tolist()]
    assert len(set(samples)) < N
    assert part == CONSTRAINTS[samples]
    assert weighted(part) == split(CONSTRAINTS, samples)


def test_folds_of_components_keep_every_must_link_pair():
    constraints = PairwiseConstraints(N, CONSTRAINTS.must_link[::3])
    folds = GroupKFold(4).split(X, groups=constraints.components())
    kept = [(constraints[train].n_pairs, constraints[test].n_pairs) for train, test in folds]
    assert all(train + test == constraints.n_pairs for train, test in kept)
    assert sum(test for _, test in kept) == constraints.n_pairs


def test_a_parameter_is_cloned():
    class Holder(BaseEstimator):
        def __init__(self, constraints=None):
            self.constraints = constraints

    holder = Holder(CONSTRAINTS)
    assert clone(holder).constraints == CONSTRAINTS
    assert clone(holder).constraints is not CONSTRAINTS
    assert "60" in repr(holder)
