"""The container of several similarities: what it holds, its slices, what it refuses."""

import copy
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from refusals import raises_naming
from sklearn.model_selection import train_test_split
from sklearn.utils import shuffle
from stack.shared import NAN, SQUARE, STORAGES, marked, matrices, mixed, without

from nmfcluster import SimilarityStack


def test_attributes():
    stack, whole = mixed(5, 4)
    assert stack.shape == whole.shape == (5, 4, 3)
    assert len(stack) == 5
    assert stack.dtype == np.float64
    assert stack.names == ("source0", "source1", "source2")
    assert repr(stack).startswith(
        "SimilarityStack(shape=(5, 4, 3), dtype=float64, names=("
    )
    assert_array_equal(stack.toarray(), whole)
    assert [type(source) for source in stack.sources] == [
        np.ndarray,
        sp.csr_array,
        np.ndarray,
    ]
    for source, expected in zip(stack.sources, whole.transpose(2, 0, 1), strict=True):
        assert_array_equal(
            source.toarray() if sp.issparse(source) else source, expected
        )


@pytest.mark.parametrize("form", [list, partial(np.stack, axis=-1)])
def test_forms_of_several_sources(form):
    drawn = matrices(6)
    stack = SimilarityStack(form(drawn), names=["a", "b", "c"])
    assert_array_equal(stack.toarray(), np.stack(drawn, axis=-1))
    assert stack.names == ("a", "b", "c")
    again = SimilarityStack(stack)
    assert again is not stack
    assert again.names == stack.names
    assert again.sources[0] is stack.sources[0]  # one matrix, two stacks
    assert SimilarityStack(stack, names=["u", "v", "w"]).names == ("u", "v", "w")
    assert SimilarityStack(dict(zip("uvw", drawn, strict=True))).names == (
        "u",
        "v",
        "w",
    )


def test_forms_of_one_source():
    S = matrices(5, 4, 1)[0]
    for form in (np.asarray, np.ndarray.tolist, pd.DataFrame, np.asfortranarray):
        (source,) = SimilarityStack([form(S)]).sources
        assert_array_equal(source, S)
        assert source.flags.c_contiguous
    for form in (
        sp.csr_array,
        sp.csr_matrix,
        sp.csc_array,
        sp.coo_matrix,
        sp.lil_array,
    ):
        (source,) = SimilarityStack([form(S)]).sources
        assert isinstance(source, sp.csr_array)
        assert_array_equal(source.toarray(), S)


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ((np.float32, np.float32), np.float32),
        ((np.float32, np.float64), np.float64),
        ((np.int32, np.float32), np.float64),
        ((bool, np.uint8), np.float64),
        ((object, object), np.float64),
    ],
)
def test_the_type_of_all_sources_is_one(dtypes, expected):
    drawn = [np.rint(S) for S in matrices(4, 5, 2)]
    first, second = (S.astype(dtype) for S, dtype in zip(drawn, dtypes, strict=True))
    for storage in STORAGES.values():
        stack = SimilarityStack(
            [first, storage(second) if object not in dtypes else second]
        )
        assert stack.dtype == expected
        assert all(source.dtype == expected for source in stack.sources)
        assert stack[[1]].dtype == stack.toarray().dtype == expected
        assert_array_equal(
            stack.toarray(), np.stack([first, second], axis=-1).astype(expected)
        )


def test_duplicates_and_zeros_of_a_sparse_source_are_cleaned_up_in_a_copy():
    data, columns, starts = (
        np.array([1.0, 2.0, 0.0]),
        np.array([1, 1, 1]),
        np.array([0, 2, 3]),
    )
    handed_in = sp.csr_array((data, columns, starts), shape=(2, 2))
    (source,) = SimilarityStack([handed_in]).sources
    assert source.nnz == 1
    assert_array_equal(source.toarray(), [[0, 3], [0, 0]])
    assert handed_in.nnz == 3


def test_nothing_is_copied():
    S = matrices(5, 4, 1)[0]
    T = sp.csr_array(S)
    stack = SimilarityStack([S, T])
    dense, sparse = stack.sources
    assert np.shares_memory(dense, S)
    assert np.shares_memory(sparse.data, T.data)


def test_a_stack_is_an_array_if_it_is_dense_and_is_not_walked_through():
    dense, (sparse, _) = SimilarityStack(matrices(4)), mixed()
    assert_array_equal(np.asarray(dense), dense.toarray())
    with raises_naming(TypeError, "stack.sources", "toarray()"):
        np.asarray(sparse)
    for stack in (dense, sparse):
        with raises_naming(TypeError, "SimilarityStack"):
            list(stack)


def test_a_stack_is_equal_to_itself_alone():
    stack, _ = mixed()
    assert stack == stack
    assert stack != copy.copy(stack)
    assert len({stack, stack[:]}) == 2


# --- slices --------------------------------------------------------------------------------------


@st.composite
def keys(draw, n):
    index = st.integers(-n, n - 1) if n else st.nothing()
    return draw(
        st.one_of(
            st.lists(index, max_size=2 * n),
            st.lists(index, max_size=2 * n).map(
                lambda key: np.array(key, dtype=np.int32)
            ),
            st.lists(st.booleans(), min_size=n, max_size=n).map(np.array),
            st.slices(n),
        )
    )


@st.composite
def cuts(draw):
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    return n, m, draw(keys(n)), draw(keys(m)), draw(st.integers(0, 9))


def as_positions(key, n):
    return np.arange(n)[np.array(key, dtype=int) if isinstance(key, list) else key]


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda stack: pickle.loads(pickle.dumps(stack))]
)
def test_copies_are_the_same(again):
    S = matrices(5)[0]
    stack = SimilarityStack([without(S, 2), marked(S, 3)], names=["a", "b"])
    other = again(stack)
    assert_array_equal(other.toarray(), stack.toarray())
    assert_array_equal(other.seen(), stack.seen())
    assert other.names == stack.names


@settings(max_examples=40)
@given(cuts())
def test_slices_are_those_of_the_array(cut):
    n, m, rows, columns, seed = cut
    rng, parts = np.random.default_rng(seed), matrices(n, m, seed=seed)
    for part in parts:
        part[rng.uniform(size=n) < 0.3] = NAN
    parts[0][:, rng.uniform(size=m) < 0.3] = NAN
    stack = SimilarityStack([parts[0], sp.csr_array(parts[1]), parts[2]])
    seen = np.column_stack([~np.isnan(part).all(axis=1) for part in parts])
    whole = np.stack(parts, axis=-1)
    i, j = as_positions(rows, n), as_positions(columns, m)
    for key in (rows, (rows, Ellipsis)):
        assert_array_equal(stack[key].toarray(), whole[i])
        assert_array_equal(stack[key].seen(), seen[i])
    both = [stack[np.ix_(i, j)], stack[i][:, columns]]
    if isinstance(rows, slice):
        both.append(stack[rows, columns])
    for part in both:
        assert part.shape == (len(i), len(j), 3)
        assert_array_equal(part.toarray(), whole[np.ix_(i, j)])
        assert_array_equal(part.seen(), seen[i])
        assert [sp.issparse(source) for source in part.sources] == [False, True, False]
        assert part.filled()[1].has_sorted_indices


def test_a_slice_stores_what_is_in_it_and_no_more():
    rng = np.random.default_rng(0)
    places = rng.integers(2000, size=(2, 8000))
    S = sp.csr_array(
        (rng.uniform(0.1, 1, size=8000), tuple(places)), shape=(2000, 2000)
    )
    stack = SimilarityStack([S])
    rows, columns = rng.permutation(2000)[:300], rng.permutation(2000)[:500]
    (part,) = stack[np.ix_(rows, columns)].sources
    expected = S.toarray()[np.ix_(rows, columns)]
    assert part.nnz == np.count_nonzero(expected)
    assert_array_equal(part.toarray(), expected)


@pytest.mark.parametrize(
    "cut", [lambda S, i: S[np.ix_(i, [1])], lambda S, i: S[i][:, [1]]]
)
def test_a_mark_survives_the_loss_of_its_column(cut):
    S = matrices(5, n_sources=1)[0]
    stack = SimilarityStack([marked(S, 3), without(S, 3)])
    test = cut(stack, [2, 3])
    assert_array_equal(test.seen(), [[True, True], [False, False]])
    assert np.isnan(test.toarray()[1]).all()
    again = SimilarityStack(list(test.sources))  # what is handed out says the same
    assert_array_equal(again.seen(), test.seen())


@pytest.mark.parametrize(
    ("key", "error", "message"),
    [
        (2, TypeError, ("SimilarityStack", "[2]")),
        ([0.5, 1.0], TypeError, "integers"),
        ([0, 7], ValueError, ("row 7", "SimilarityStack", "7 rows")),
        (
            [True, False],
            ValueError,
            ("mask", "SimilarityStack", "7"),
        ),
        (np.ix_([0], [7]), ValueError, "column 7"),
        (([0, 1], [0, 1]), ValueError, "stack[np.ix_(rows, columns)]"),
        ((slice(None), 1), TypeError, "[1]"),
        ((slice(None), slice(None), 1), ValueError, "rows"),
    ],
)
def test_keys_that_name_no_samples(key, error, message):
    with raises_naming(error, message):
        mixed()[0][key]


def test_scikit_learn_splits_and_shuffles_rows():
    stack, whole = mixed(20, 5)
    numbers = np.arange(20)
    parts = train_test_split(stack, numbers, random_state=0)
    for part, kept in (
        parts[::2],
        parts[1::2],
        shuffle(stack, numbers, random_state=0),
    ):
        assert_array_equal(part.toarray(), whole[kept])


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sources", "names", "error", "message"),
    [
        ([], None, TypeError, ("sources", "similarity matrix")),
        (np.ones((3, 3, 0)), None, TypeError, ("sources", "similarity matrix")),
        (
            SQUARE,
            None,
            TypeError,
            ("shape", "(3, 3)", "[S]"),
        ),
        (
            np.ones((3, 3, 2, 1)),
            None,
            TypeError,
            ("sources", "shape", "(3, 3, 2, 1)"),
        ),
        ({0: SQUARE}, None, ValueError, ("names", "1")),
        ([[[1, 2], [3]]], None, ValueError, "'source0'"),
        (
            [SQUARE, SQUARE.astype(str)],
            None,
            TypeError,
            ("'source1'", "sources"),
        ),
        (
            [SQUARE * 1j],
            None,
            TypeError,
            ("'source0'", "sources", "complex128"),
        ),
        (
            [SQUARE, np.ones((3, 4))],
            None,
            ValueError,
            ("'source1'", "(3, 4)", "(3, 3)"),
        ),
        ([SQUARE], "a", ValueError, ("names", "1")),
        (
            [SQUARE],
            ["a", "b"],
            ValueError,
            ("names", "1", "['a', 'b']"),
        ),
        (
            [SQUARE, SQUARE],
            ["a", "a"],
            ValueError,
            ("names", "['a', 'a']"),
        ),
        (mixed()[0], ["a"], ValueError, ("names", "3")),
    ],
)
def test_what_is_no_stack(sources, names, error, message):
    with raises_naming(error, message):
        SimilarityStack(sources, names=names)


def test_missing_values_of_pandas_are_samples_that_a_source_has_not_seen():
    S = np.eye(4)
    frame = pd.DataFrame(S).astype("Float64")
    frame.iloc[3, :] = pd.NA
    frame.iloc[:, 3] = pd.NA
    stack = SimilarityStack([S, frame])
    assert_array_equal(stack.seen(), np.array([[1, 1], [1, 1], [1, 1], [1, 0]], bool))
    frame.iloc[0, 1] = pd.NA
    with raises_naming(ValueError, "source1", "row 0, column 1"):
        SimilarityStack([S, frame])
