"""An order of samples by what they hold: the same for any order, storage and type of their rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import canonical_order
from numpy.testing import assert_array_equal

from nmfcluster import PairwiseConstraints
from nmfcluster._utils.order import hash_rows

RNG = np.random.default_rng(0)
#: whole numbers in float32, many of them 0, and many rows more than once
TABLE = RNG.integers(-2, 3, size=(300, 4)).astype(np.float32)


def shuffled_entries(X):
    """Return a CSR matrix whose rows store their entries from the last column to the first."""
    backwards = sp.csr_array(X[:, ::-1])
    return sp.csr_array(
        (backwards.data, X.shape[1] - 1 - backwards.indices, backwards.indptr)
    )


def with_stored_zeros(X):
    columns = np.tile(np.arange(X.shape[1]), len(X))
    return sp.csr_array(
        (X.ravel(), columns, np.arange(len(X) + 1) * X.shape[1]), X.shape
    )


@pytest.mark.parametrize(
    "form",
    [
        np.float64,
        np.asfortranarray,
        lambda X: np.where(X == 0, -0.0, X),
        sp.csr_array,
        shuffled_entries,
        with_stored_zeros,
    ],
)
def test_keys_are_those_of_the_numbers(form, monkeypatch):
    expected = hash_rows(TABLE)
    monkeypatch.setattr("nmfcluster._utils.order._HASHED_ENTRIES", 20)  # several blocks
    assert_array_equal(hash_rows(form(TABLE)), expected)


def test_rows_have_one_key_where_they_are_equal_alone():
    n_distinct = len(np.unique(TABLE, axis=0))
    assert len(np.unique(hash_rows(TABLE))) == n_distinct < len(TABLE)
    holey = TABLE.copy()
    holey[::2, 0] = np.nan
    holey[::4, 0] = -np.array(np.nan)  # of another sign
    equal = {tuple(row) for row in np.where(np.isnan(holey), 99, holey).tolist()}
    assert len(np.unique(hash_rows(holey))) == len(equal)
    assert len(np.unique(hash_rows(np.eye(50)))) == 50
    assert hash_rows(np.zeros((0, 3))).shape == (0,)
    assert len(np.unique(hash_rows(np.zeros((3, 0))))) == 1


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_shuffled_tables_are_put_into_one_order(form):
    other, moved = RNG.normal(size=(300, 2)).round(), RNG.permutation(300)
    order, again = (
        canonical_order(form(TABLE[rows]), other[rows])
        for rows in (np.arange(300), moved)
    )
    assert_array_equal(TABLE[moved][again.samples], TABLE[order.samples])
    assert_array_equal(other[moved][again.samples], other[order.samples])
    assert_array_equal(np.arange(300)[order.samples][order.ranks], np.arange(300))
    both = np.column_stack([TABLE, other])[order.samples]
    assert_array_equal(again.first, order.first)
    for place, first in enumerate(order.first):  # the first equal one
        assert_array_equal(both[first], both[place])
        assert first == order.first[first] <= place
    assert len(np.unique(order.first)) == len(np.unique(both, axis=0))


def test_pairs_tell_equal_rows_apart_whatever_their_order():
    X = np.repeat([[0.0], [1.0]], 10, axis=0)
    known = PairwiseConstraints(
        20, [(0, 1), (2, 11)], [(3, 12, 0.5), (4, 13, 1), (14, 13, 1)]
    )
    order = canonical_order(X, links=known.as_matrices())
    groups = [[i] for i in (0, 1, 2, 3, 4, 11, 12, 13, 14)]  # no copies of each other
    groups += [[5, 6, 7, 8, 9], [10, 15, 16, 17, 18, 19]]
    found = [order.samples[order.first == first] for first in np.unique(order.first)]
    assert sorted(sorted(group.tolist()) for group in found) == sorted(groups)
    moved = RNG.permutation(20)
    again = canonical_order(X[moved], links=known[moved].as_matrices())
    assert known[moved][again.samples] == known[order.samples]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_shuffled_similarities_are_put_into_one_order(form):
    S = sp.csr_array((np.random.default_rng(1).random((40, 40)) < 0.1).astype(float))
    S = (S + S.T).toarray() + np.diag(np.arange(40) % 2)  # few values: rows have ties
    S = S[np.ix_(*[[*range(40), 3, 3]] * 2)]  # and two copies
    moved = RNG.permutation(42)
    order, again = (
        canonical_order(similarities=[form(T)]) for T in (S, S[np.ix_(moved, moved)])
    )
    expected, found = (
        order.permute(form(S)),
        again.permute(form(S[np.ix_(moved, moved)])),
    )
    if form is sp.csr_array:
        for part in ("indptr", "indices", "data"):
            assert_array_equal(getattr(found, part), getattr(expected, part))
    else:
        assert_array_equal(found, expected)
    assert_array_equal(again.first, order.first)
    same = order.samples[order.first != np.arange(42)]
    assert len(same) == 2
    assert set(same) < {3, 40, 41}
    # the copies apart, entries in any order have ties that those of neighbours resolve
    assert len(np.unique(np.sort(S, axis=1), axis=0)) < len(np.unique(order.first))


def test_equal_similarities_to_others_alone_make_no_copies():
    blocks = np.kron(np.eye(2), np.ones((3, 3)))
    order = canonical_order(similarities=[blocks])
    groups = {
        tuple(sorted(order.samples[order.first == first])) for first in order.first
    }
    assert groups == {(0, 1, 2), (3, 4, 5)}


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_rows_that_differ_stand_for_their_copies(form):
    order = canonical_order(form(TABLE))
    rows = TABLE[order.distinct]
    assert len(rows) == len(np.unique(TABLE, axis=0)) < len(TABLE)
    assert_array_equal(rows[order.distinct_inverse], TABLE)
    assert_array_equal(order.counts, np.bincount(order.distinct_inverse))
    twice = canonical_order(form(np.repeat(TABLE, 2, axis=0)))  # in the same order
    assert_array_equal(TABLE[twice.distinct // 2], rows)
    assert_array_equal(twice.counts, 2 * order.counts)
