"""What a source holds: rows and columns of NaN, and what cannot be fitted, nor predicted."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from refusals import raises_naming
from stack.shared import (
    NAN,
    SQUARE,
    STORAGES,
    cross_sources,
    marked,
    matrices,
    nan_in,
    square_sources,
    whole_nan,
    without,
)

from nmfcluster import SimilarityStack
from nmfcluster._utils.storage import submatrix
from nmfcluster.stack.container import (
    check_cross,
    check_square,
    embed,
    find_seen,
    with_nan,
)


@pytest.mark.parametrize("storage", STORAGES.values())
def test_nan_beside_numbers(storage):
    for lost in ([(0, 1)], [(2, 2)], [(0, 0), (0, 1)], [(0, 1), (1, 1), (2, 2)]):
        S = np.ones((3, 3))
        S[tuple(np.transpose(lost))] = NAN
        with raises_naming(ValueError, "'b'", "NaN"):
            SimilarityStack([SQUARE, storage(S)], names=["a", "b"])


@pytest.mark.parametrize("missing", [without, marked, whole_nan])
def test_missing_samples_of_a_square_source(missing):
    lost = [0, 1, 4]
    S, other = matrices(5, n_sources=2)
    stack = SimilarityStack([other, missing(S, *lost)])
    expected = np.ones((5, 2), dtype=bool)
    expected[lost, 1] = False
    (first, second), seen = square_sources(stack)
    assert_array_equal(seen, expected)
    assert_array_equal(stack.seen(), expected)
    assert_array_equal(first, other)
    assert sp.issparse(second) == (missing is not without)
    array = second.toarray() if sp.issparse(second) else second
    assert_array_equal(array, np.nan_to_num(without(S, *lost)))
    if sp.issparse(second):
        assert (second.data > 0).all()
    assert np.isnan(stack.toarray()[lost, :, 1]).all()
    assert np.isnan(SimilarityStack(list(stack.sources)).toarray()[lost, :, 1]).all()


@pytest.mark.parametrize("missing", [without, marked, whole_nan])
def test_cuts_of_a_stack_keep_what_was_not_seen(missing):
    S, other = matrices(8, n_sources=2)
    lost = [1, 5, 6]
    stack = SimilarityStack([missing(S, *lost), other])
    train, test = np.array([0, 1, 3, 4, 6]), np.array([2, 5, 7])
    sources, seen = square_sources(stack[np.ix_(train, train)])
    assert_array_equal(seen[:, 0], [True, False, True, True, False])
    new, new_seen = cross_sources(stack[np.ix_(test, train)], seen)
    assert_array_equal(new_seen, [[True, True], [False, True], [True, True]])
    values = np.nan_to_num(without(S, *lost))
    for source, rows in ((sources[0], train), (new[0], test)):
        array = source.toarray() if sp.issparse(source) else source
        assert_array_equal(array, values[np.ix_(rows, train)])


def test_a_sparse_row_that_stores_nothing_was_seen():
    S = np.diag([1.0, 0.0, 2.0])
    assert SimilarityStack([sp.csr_array(S)]).seen().all()
    assert_array_equal(
        SimilarityStack([marked(S, 2)]).seen()[:, 0], [True, True, False]
    )


# --- the parts, against loops ---------------------------------------------------------------------


@st.composite
def with_gaps(draw):
    """Draw a matrix, of which entries, rows and columns are NaN."""
    n, m = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    S = rng.uniform(0.1, 1, size=(n, m))
    for row in draw(st.sets(st.integers(0, n - 1), max_size=2)):
        S[row] = NAN
    for column in draw(st.sets(st.integers(0, m - 1), max_size=2)):
        S[:, column] = NAN
    for i, j in draw(
        st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, m - 1)), max_size=2)
    ):
        S[i, j] = NAN
    return S


@given(with_gaps())
def test_rows_come_before_columns(S):
    """A row that is NaN throughout was not seen; nor was a column that is so in the other rows."""
    n, m = S.shape
    rows = [not all(np.isnan(S[i, j]) for j in range(m)) for i in range(n)]
    left = [i for i in range(n) if rows[i]]
    columns = [not left or not all(np.isnan(S[i, j]) for i in left) for j in range(m)]
    stray = [(i, j) for i in left for j in range(m) if columns[j] and np.isnan(S[i, j])]
    for array in (S, sp.csr_array(S)):  # the sparse one stores every entry
        if not np.isnan(S).any():
            continue
        found = find_seen(array)
        assert_array_equal(found[0], rows)
        assert_array_equal(found[1], columns)
        if stray:
            at = "row {}, column {}".format(*stray[0])
            with raises_naming(ValueError, "NaN", at):
                SimilarityStack([array])
            continue
        (part,) = SimilarityStack([array])._held
        values = part.values.toarray() if sp.issparse(part.values) else part.values
        assert_array_equal(values, np.nan_to_num(S))
        assert_array_equal(with_nan(part), S)


@pytest.mark.parametrize("storage", STORAGES.values())
def test_a_matrix_in_the_rows_and_columns_that_were_seen(storage):
    rows, columns = np.array([True, False, True]), np.array([False, True, False, True])
    whole = embed(storage(np.array([[1.0, 2.0], [3.0, 0.0]])), rows, columns)
    assert sp.issparse(whole) == (storage is not np.asarray)
    whole = whole.toarray() if sp.issparse(whole) else whole
    assert_array_equal(whole, [[0, 1, 0, 2], [0, 0, 0, 0], [0, 3, 0, 0]])


@pytest.mark.parametrize("storage", STORAGES.values())
def test_a_cut_keeps_the_order_that_was_asked_for(storage):
    S = np.arange(12.0).reshape(3, 4)
    for columns in (None, np.array([3, 0])):
        part = submatrix(storage(S), np.array([2, 0, 2]), columns)
        assert sp.issparse(part) == (storage is not np.asarray)
        expected = S[[2, 0, 2]] if columns is None else S[[2, 0, 2]][:, columns]
        assert_array_equal(part.toarray() if sp.issparse(part) else part, expected)


# --- what cannot be fitted, nor predicted ---------------------------------------------------------


@pytest.mark.parametrize(
    ("S", "message"),
    [
        (
            sp.csr_array(-SQUARE),
            ("source 1", "negative", "-1", "distances"),
        ),
        (
            SQUARE - np.eye(3) * 3,
            ("source 1", "negative", "-2", "numpy.maximum(S, 0)"),
        ),
        (np.array([[1.0, np.inf], [np.inf, 1]]), ("source 1", "finite")),
        (np.array([[1.0, 0.5], [0.4, 1]]), ("source 1", "symmetric")),
        (sp.csr_array([[1.0, 0.5], [0, 1]]), ("source 1", "symmetric")),
        (np.zeros((3, 3)), ("source 1", "above 0")),
        (SQUARE * NAN, ("source 1", "NaN")),
        (nan_in(SQUARE, 1), ("source 1", "sample 1", "NaN")),
        (
            nan_in(SQUARE, (slice(None), 2)),
            ("source 1", "2", "NaN", "row", "column"),
        ),
        (sp.csr_array(nan_in(SQUARE, 1)), ("source 1", "sample 1", "NaN")),
        (without(np.zeros((3, 3)), 1), ("source 1", "above 0")),
    ],
)
def test_what_cannot_be_fitted(S, message):
    with raises_naming(ValueError, message):
        square_sources(SimilarityStack([np.ones(S.shape), S]))


@pytest.mark.parametrize("storage", STORAGES.values())
def test_negative_similarities_where_they_are_allowed(storage):
    S = np.array([[1.0, 0.5, -0.5], [0.5, 0.0, -0.5], [-0.5, -0.5, 0.0]])
    stack = SimilarityStack(
        [storage(without(np.pad(S, (0, 1)), 3)), storage(np.eye(4) - 1)]
    )
    known, distances = stack._held
    check_square(known, "S", np.arange(4), signed=True)
    # similar to no one
    check_cross(distances, np.ones(4, dtype=bool), "S", np.arange(4), signed=True)
    with raises_naming(ValueError, "-1", "exp(-D /"):
        check_square(distances, "S", np.arange(4), signed=True)
    (half,) = SimilarityStack([storage(nan_in(S, 2))])._held
    with raises_naming(ValueError, "sample 2", "NaN"):
        check_square(half, "S", np.arange(3), signed=True)
    with raises_naming(ValueError, "source 0", "-0.5", "criterion="):
        square_sources(stack)


def test_what_cannot_be_predicted():
    for S, message in [
        (np.full((2, 4), -1e-3), ("source 1", "negative")),
        (np.full((2, 4), np.inf), ("source 1", "finite")),
        (nan_in(np.ones((2, 4)), (slice(None), 2)), ("source 1", "NaN", "column 2")),
    ]:
        with raises_naming(ValueError, message):
            cross_sources(
                SimilarityStack([np.ones(S.shape), S]), np.ones((4, 2), dtype=bool)
            )


@pytest.mark.parametrize("storage", STORAGES.values())
def test_new_samples_and_samples_that_were_missing_in_fit(storage):
    known = np.array([[True], [False], [True]])
    new = np.array([[0.5, NAN, 0.2], [NAN, NAN, NAN], [0.0, NAN, 1.0]])
    (source,), seen = cross_sources(SimilarityStack([storage(new)]), known)
    assert_array_equal(seen[:, 0], [True, False, True])
    source = source.toarray() if sp.issparse(source) else source
    assert_array_equal(source, np.nan_to_num(new))
    nobody = SimilarityStack([storage(new)])[[]]
    assert cross_sources(nobody, known)[1].shape == (0, 1)
