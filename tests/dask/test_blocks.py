"""What blocks of a label table tell of it: merged, it is what the whole table says."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from internals import encode_labels
from numpy.testing import assert_array_equal
from refusals import raises_naming

pytest.importorskip("nmfcluster.dask")

from nmfcluster.dask import blocks
from nmfcluster.dask.blocks import BlockedTable, KnownRows, TableSummary, clean_block

TYPES = [
    np.int8,
    np.int16,
    np.int32,
    np.int64,
    np.uint8,
    np.uint16,
    np.uint32,
    np.uint64,
]
FLOATS = [np.float32, np.float64]
# label numbers: as they come, with gaps, more than are counted, the largest
PLAIN, GAPS, MANY, HUGE = (
    [0, 1, 2],
    [0, 5, 90],
    [3, 2**21, 2**31 - 1],
    [1, 2**40 + 1, 2**62],
)


@st.composite
def tables(draw):
    """Return a label table in a type that holds its labels."""
    pool = draw(st.sampled_from([PLAIN, GAPS, MANY, HUGE]))
    kind = draw(st.sampled_from(TYPES + FLOATS + [bool]))
    unsigned = np.dtype(kind).kind in "ub"
    if np.dtype(kind).kind in "iu":
        pool = [label for label in pool if label <= np.iinfo(kind).max]
    elif kind is bool:
        pool = [0, 1]
    elif pool is not PLAIN:
        pool = GAPS  # floats leave out numbers
    missing = [] if unsigned else [-2, -7] + ([np.nan] if kind in FLOATS else [])
    width = draw(st.integers(1, 3))
    row = st.lists(st.sampled_from([*pool, *missing]), min_size=width, max_size=width)
    rows = draw(st.lists(row, min_size=1, max_size=14))
    return np.array(rows, dtype=kind)


def literal(table):
    """Return the labels, the sizes, and the distinct rows with their counts, of a whole table."""
    whole = np.array(
        [[-2 if v != v or v < 0 else int(v) for v in row] for row in table.tolist()]
    )
    known = [np.unique(column[column >= 0]) for column in whole.T]
    sizes = [
        np.array([(column == label).sum() for label in labels], dtype=int)
        for column, labels in zip(whole.T, known, strict=True)
    ]
    rows, counts = np.unique(whole, axis=0, return_counts=True)
    return whole, known, sizes, rows, counts


def cut(table, ends):
    """Return blocks of a table and the numbers of their first rows."""
    ends = sorted({0, len(table), *(end % len(table) for end in ends)})
    return [(table[a:b], a) for a, b in pairwise(ends)]


def summary(table, counted=None, most=100):
    counted = np.ones(table.shape[1], dtype=bool) if counted is None else counted
    return TableSummary.of_block(table, 0, counted, most)


def blocked(table, weights=None):
    n_partitions = table.shape[1]
    weights = np.full(n_partitions, 1 / n_partitions) if weights is None else weights
    whole = summary(table, weights)
    return BlockedTable(whole.clusters, weights, len(table), whole.least)


def assert_same_rows(distinct, rows, counts):
    order = np.lexsort(distinct.values.T[::-1].astype(np.int64))
    assert_array_equal(distinct.values[order].astype(np.int64), rows)
    assert_array_equal(distinct.counts[order], counts)


# --- the summary ----------------------------------------------------------------------------------


@settings(max_examples=20)
@given(
    tables(),
    st.lists(st.integers(0, 50), max_size=4),
    st.randoms(use_true_random=False),
)
def test_summaries_of_blocks_merge_into_that_of_the_table(table, ends, random):
    counted = np.array([random.random() < 0.7 for _ in range(table.shape[1])])
    parts = [
        TableSummary.of_block(block, first, counted, 100)
        for block, first in cut(table, ends)
    ]
    random.shuffle(parts)
    while len(parts) > 1:  # any of them, in any order
        together = [parts.pop() for _ in range(random.randint(2, len(parts)))]
        parts.insert(random.randint(0, len(parts)), TableSummary.merged(together, 100))
    (found,) = parts
    whole, known, sizes, rows, counts = literal(table)
    for t in range(table.shape[1]):
        assert_array_equal(found.clusters[t].values, known[t])
        assert_array_equal(found.clusters[t].counts, sizes[t])
    assert_same_rows(found.distinct, rows, counts)
    lost = np.flatnonzero((whole[:, counted] < 0).all(axis=1))
    assert found.n_unlabelled == len(lost)
    assert found.first_unlabelled == (lost[0] if len(lost) else 2**63 - 1)


@settings(max_examples=20)
@given(tables(), st.lists(st.integers(0, 50), max_size=4), st.integers(1, 6))
def test_too_many_distinct_rows_are_not_kept_but_sizes_are(table, ends, most):
    counted = np.ones(table.shape[1], dtype=bool)
    parts = [
        TableSummary.of_block(block, first, counted, most)
        for block, first in cut(table, ends)
    ]
    found = TableSummary.merged(parts, most)
    _, known, sizes, rows, counts = literal(table)
    for t in range(table.shape[1]):
        assert_array_equal(found.clusters[t].values, known[t])
        assert_array_equal(found.clusters[t].counts, sizes[t])
    if len(rows) > most:
        assert found.distinct is None
    else:
        assert_same_rows(found.distinct, rows, counts)


def test_the_order_of_distinct_rows_does_not_depend_on_the_cutting():
    table = np.random.default_rng(0).choice([-2, 0, 1, 2, 3], size=(300, 5))
    whole = summary(table, most=1000)
    counted = np.ones(5, dtype=bool)
    for size in (1, 7, 299):
        parts = [
            TableSummary.of_block(table[i : i + size], i, counted, 1000)
            for i in range(0, 300, size)
        ]
        found = TableSummary.merged(parts[::-1], 1000)
        assert_array_equal(found.distinct.values, whole.distinct.values)
        assert_array_equal(found.distinct.counts, whole.distinct.counts)


def test_a_block_is_read_some_rows_at_a_time(monkeypatch):
    table = np.random.default_rng(0).choice([-2, 0, 1, 2], size=(50, 3))
    whole = summary(table)
    monkeypatch.setattr(blocks, "LABEL_BLOCK_ROWS", 7)
    found = summary(table)
    assert_array_equal(found.distinct.values, whole.distinct.values)
    assert_array_equal(found.distinct.counts, whole.distinct.counts)
    assert found.first_unlabelled == whole.first_unlabelled
    parts = list(blocked(table).distinct(table))
    assert len(parts) == 8
    rows = np.concatenate([codes[groups] for codes, _, groups in parts])
    assert_array_equal(rows, table)


def test_lost_rows_are_named_by_their_place_in_the_table():
    block = np.array([[0, 1], [-1, 4], [-1, -1], [-1, -1]])
    found = TableSummary.of_block(block, 1000, np.array([True, True]), 10)
    assert (found.n_unlabelled, found.first_unlabelled) == (2, 1002)
    found = TableSummary.of_block(block, 1000, np.array([True, False]), 10)
    assert (found.n_unlabelled, found.first_unlabelled) == (3, 1001)


# --- labels of a block ----------------------------------------------------------------------------


def test_integers_are_clean():
    for kind in TYPES:
        block = np.array([[0, 1], [2, 100]], dtype=kind)
        assert_array_equal(clean_block(block), block)


def test_what_stands_for_not_seen():
    assert_array_equal(
        clean_block(np.array([[-5, -1, 2]], dtype=np.int8)), [[-2, -1, 2]]
    )
    assert_array_equal(clean_block(np.array([[np.nan, -1.0, 3.0]])), [[-2, -1, 3]])
    found = clean_block(np.array([[True, False]]))
    assert found.dtype == np.int8
    assert_array_equal(found, [[1, 0]])


@pytest.mark.parametrize(
    ("bad", "kind", "says"),
    [
        (
            1.5,
            np.float64,
            ("1.5", "row 41", "partition 1"),
        ),
        (-np.inf, np.float64, ("-inf", "row 41", "partition 1")),
        (1e300, np.float64, ("1e+300", "row 41", "partition 1")),
        (
            2**63,
            np.uint64,
            ("9223372036854775808", "row 41"),
        ),
    ],
)
def test_what_is_no_label_is_named_by_its_place_in_the_table(bad, kind, says):
    block = np.zeros((3, 2), dtype=kind)
    block[1, 1] = bad
    with raises_naming(ValueError, says):
        clean_block(block, 40)


def test_strings_are_no_labels():
    with raises_naming(TypeError, "<U1", "row 40"):
        clean_block(np.array([["a"], ["b"]]), 40)
    with raises_naming(TypeError, "object", "row 0"):
        clean_block(np.array([[1], [None]], dtype=object))


# --- codes ----------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(tables(), st.lists(st.integers(0, 50), max_size=4))
def test_codes_of_blocks_are_those_of_the_table(table, ends):
    whole, *_ = literal(table)
    assume((whole >= 0).any())
    codes, categories = encode_labels(whole, "X")
    known = blocked(table)
    found = np.concatenate([known.codes(block) for block, _ in cut(table, ends)])
    assert found.dtype == np.int32
    assert_array_equal(found, codes)
    for own, other in zip(known.known, categories, strict=True):
        assert_array_equal(own, other)
    assert known.is_complete == (whole >= 0).all()
    assert_array_equal(known.n_clusters, [len(labels) for labels in categories])


@pytest.mark.parametrize("pool", [PLAIN, GAPS, MANY, HUGE])
def test_a_label_that_is_new_is_said(pool):
    table = np.array([[0, label, -1] for label in pool])  # the last partition is empty
    known = blocked(table)
    assert_array_equal(known.codes(table), [[0, 0, -1], [0, 1, -1], [0, 2, -1]])
    for new in {1, 4, pool[-1] + 1, pool[-1] - 1, 2**63 - 1} - set(pool):
        for column in (1, 2):
            changed = table.copy()
            changed[1, column] = new
            with raises_naming(RuntimeError, "label"):
                known.codes(changed)


# --- look-up --------------------------------------------------------------------------------------


def test_rows_are_found_among_the_distinct_ones():
    rows = np.unique(
        np.random.default_rng(0).choice([-2, 0, 1, 2, 3, 4], size=(200, 4)), axis=0
    )
    wanted = np.random.default_rng(1).integers(len(rows), size=500)
    known = KnownRows(rows.astype(np.int32), {"place": np.arange(len(rows))})
    assert_array_equal(known.of_rows(rows[wanted], "place"), wanted)


def test_rows_of_one_key_are_told_apart(monkeypatch):
    asked = []

    def colliding(codes, seed=0):
        asked.append(seed)
        keys = codes.astype(np.int64) @ (10 ** np.arange(codes.shape[1]))
        return (keys if seed == 2 else keys // 2).astype(np.uint64)

    monkeypatch.setattr(blocks, "hash_label_rows", colliding)
    rows = np.array([[3, 1], [2, 1], [0, 4]])
    index = KnownRows(rows, {"place": np.arange(3)})
    assert_array_equal(index.of_rows(rows[[2, 0, 1, 1]], "place"), [2, 0, 1, 1])
    assert asked == [0, 1, 2, 2]


def test_a_row_that_is_new_is_said():
    rows = np.array([[0, 1], [1, 1], [2, 0]])
    for known in (rows, rows[:1]):
        with raises_naming(RuntimeError, "label row"):
            KnownRows(known, {}).of_rows(np.array([[0, 1], [0, 0]]), "place")


def test_known_values_are_told_of_any_block(monkeypatch):
    table = np.random.default_rng(0).choice([-2, 4, 9], size=(60, 3)).astype(np.int16)
    known = blocked(table)
    codes, groups = np.unique(known.codes(table), axis=0, return_inverse=True)
    draws = np.random.default_rng(0).normal(size=(len(codes), 3)).astype(np.float32)
    values = {"labels": np.arange(len(codes)), "membership": draws}
    monkeypatch.setattr(blocks, "LABEL_BLOCK_ROWS", 8)
    rows = KnownRows(codes, values)
    for name, wanted in values.items():
        found = known.map_rows(table[11:50], rows.of_rows, name=name)
        assert found.dtype == wanted.dtype
        assert_array_equal(found, wanted[groups.ravel()[11:50]])
