"""Label vectors of every kind, and what is made of them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from internals import encode_labels
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming

from nmfcluster._utils import labels as labels_module
from nmfcluster._utils.labels import (
    NOISE,
    NOT_SEEN,
    cluster_counts,
    distinct_rows,
    indicator,
    one_hot,
    partition_columns,
    tuple_indicator,
)
from nmfcluster._utils.storage import group_indicator

tables = st.tuples(st.integers(1, 8), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(-3, 4))
)


def code_of(label, known):
    """Return the place of a label among the known ones: -1 stays noise, others are not seen."""
    if label in known:
        return known.index(label)
    return -1 if label == -1 else -2


def encoded(table):
    """Number the labels of every column in sorted order; negative ones are in no cluster."""
    codes, categories = [], []
    for column in zip(*table, strict=True):
        known = sorted({label for label in column if label >= 0})
        codes.append([code_of(label, known) for label in column])
        categories.append(known)
    return np.array(codes).T, categories


def assert_encoded(found, codes, categories):
    assert found[0].dtype == np.int32
    assert_array_equal(found[0], codes)
    assert [list(known) for known in found[1]] == [list(known) for known in categories]


# --- encode ------------------------------------------------------------------------------------


def test_noise_is_what_dbscan_returns_and_not_seen_another_number():
    assert (NOISE, NOT_SEEN) == (-1, -2)


@given(tables)
def test_integers_are_numbered_in_order_and_negative_ones_are_in_no_cluster(table):
    before = table.copy()
    assert_encoded(encode_labels(table, "P"), *encoded(table.tolist()))
    # one column at a time
    assert_encoded(encode_labels(list(table.T), "P"), *encoded(table.tolist()))
    assert_array_equal(table, before)


@pytest.mark.parametrize(
    "labels", [(0, 1, 2), (0, 3, 7), (5, 1000, 10**9), (2**33, 2**40, 2**60)]
)
def test_tables_longer_than_a_block(labels):
    rng = np.random.default_rng(0)
    table = rng.choice([-7, -1, *labels], size=(2 * 16_384 + 5, 2))
    table[:16_384, 1] = labels[0]
    table.flags.writeable = False
    codes = np.searchsorted(labels, table)
    codes[table == -1] = -1
    codes[table == -7] = -2
    assert_encoded(encode_labels(table, "P"), codes, [labels, labels])


def test_every_width_of_integers():
    for dtype in (np.int8, np.int16, np.int32, np.int64):
        table = np.array([[-128, 3], [2, 127], [5, -1]], dtype=dtype)
        assert_encoded(
            encode_labels(table, "P"), [[-2, 0], [0, 1], [1, -1]], [[2, 5], [3, 127]]
        )
    for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
        table = np.array([[0, 3], [2, 200], [5, 3]], dtype=dtype)
        assert_encoded(
            encode_labels(table, "P"), [[0, 0], [1, 1], [2, 0]], [[0, 2, 5], [3, 200]]
        )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_the_largest_number_of_a_type_is_a_label(dtype):
    most = np.iinfo(dtype).max
    table = np.array([[most], [3], [most]], dtype=dtype)
    assert_encoded(encode_labels(table, "P"), [[1], [0], [1]], [[3, most]])


# a label of every sample, the second of which is not seen; the categories; the last code
COLUMNS = {
    "floats with nan": (np.array([2.0, np.nan, 7.0, 2.0, -1.0]), [2, 7], NOISE),
    "float32": (np.array([2, np.nan, 7, 2, -1], dtype=np.float32), [2, 7], NOISE),
    "objects": (
        np.array([2, None, 7.0, np.int64(2), np.nan], dtype=object),
        [2, 7],
        NOT_SEEN,
    ),
    "list": ([2, None, 7, 2, -1], [2, 7], NOISE),
    "strings": (
        np.array(["b", None, "c", "b", np.nan], dtype=object),
        ["b", "c"],
        NOT_SEEN,
    ),
    "bytes": (
        np.array([b"b", None, np.bytes_(b"c"), b"b", np.nan], dtype=object),
        ["b", "c"],
        NOT_SEEN,
    ),
    "numpy strings": (
        np.array([np.str_("b"), None, "c", "b", None], dtype=object),
        ["b", "c"],
        NOT_SEEN,
    ),
    "pandas Int64": (pd.array([2, None, 7, 2, -3], dtype="Int64"), [2, 7], NOT_SEEN),
    "pandas Float64": (pd.array([2, None, 7, 2, -1], dtype="Float64"), [2, 7], NOISE),
    "pandas string": (
        pd.array(["b", None, "c", "b", None], dtype="string"),
        ["b", "c"],
        NOT_SEEN,
    ),
    "pandas str": (
        pd.Series(["b", None, "c", "b", None], dtype="str"),
        ["b", "c"],
        NOT_SEEN,
    ),
    "pandas object": (
        pd.Series(["b", None, "c", "b", pd.NA], dtype=object),
        ["b", "c"],
        NOT_SEEN,
    ),
    "category": (
        pd.Categorical(["b", None, "c", "b", None], categories=list("cab")),
        ["b", "c"],
        NOT_SEEN,
    ),
    "category of ints": (pd.Categorical([2, None, 7, 2, None]), [2, 7], NOT_SEEN),
    "polars ints": (pl.Series([2, None, 7, 2, -1]), [2, 7], NOISE),
    "polars strings": (pl.Series(["b", None, "c", "b", None]), ["b", "c"], NOT_SEEN),
    "polars category": (
        pl.Series(["b", None, "c", "b", None], dtype=pl.Categorical),
        ["b", "c"],
        NOT_SEEN,
    ),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_every_kind_of_column_with_missing_labels(kind):
    column, categories, last = COLUMNS[kind]
    assert_encoded(
        encode_labels([column], "P"), [[0], [-2], [1], [0], [last]], [categories]
    )


def test_noise_and_missing_labels_stay_apart_in_every_kind_of_column():
    for column in (
        np.array([-1, -2, -9, 4, -1], dtype=np.int8),
        np.array([-1, np.nan, -9, 4, -1]),
        np.array([-1, None, np.nan, 4, -1.0], dtype=object),
        [-1, None, float("nan"), 4, -1],
        pd.array([-1, None, -2, 4, -1], dtype="Int64"),
        pd.Series([-1, pd.NA, None, 4, np.int64(-1)], dtype=object),
        pd.Categorical([-1, None, -2, 4, -1]),
        pl.Series([-1, None, -2, 4, -1]),
    ):
        codes = [[-1], [-2], [-2], [0], [-1]]
        assert_encoded(encode_labels([column], "P"), codes, [[4]])
        known = encode_labels([column], "P", [np.array([3, 4])])[0]
        assert_array_equal(known, [[-1], [-2], [-2], [1], [-1]])


def test_a_string_of_minus_one_is_a_label():
    assert_encoded(
        encode_labels([["-1", "a", None]], "P"), [[0], [1], [-2]], [["-1", "a"]]
    )


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_every_kind_of_frame(library):
    of_library = ("pandas", "category") if library is pd else ("polars",)
    for kind, (column, categories, last) in COLUMNS.items():
        if kind.startswith(of_library):
            frame = library.DataFrame({"one": column, "two": [1, 1, 0, 0, 1]})
            codes = [[0, 1], [-2, 1], [1, 0], [0, 0], [last, 1]]
            assert_encoded(encode_labels(frame, "P"), codes, [categories, [0, 1]])


def test_booleans():
    for table in (
        np.array([[True], [False], [True]]),
        np.array([[True], [False], [True]], dtype=object),
        [[True, False, True]],
        pd.DataFrame({"t": pd.array([True, False, True], dtype="boolean")}),
    ):
        assert_encoded(encode_labels(table, "P"), [[1], [0], [1]], [[0, 1]])


def test_strings_of_fixed_width_of_any_width_and_of_bytes():
    table = np.array([["b", "x"], ["a", "x"]])
    for kind in ("U", "S", "T")[: 3 if hasattr(np.dtypes, "StringDType") else 2]:
        typed = table.astype(np.dtypes.StringDType() if kind == "T" else kind)
        for form in (typed, list(typed.T), typed.astype(object)):
            assert_encoded(
                encode_labels(form, "P"), [[1, 0], [0, 0]], [["a", "b"], ["x"]]
            )
    assert_encoded(encode_labels([[b"b", b"\xff"]], "P"), [[1], [0]], [["\\xff", "b"]])


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="needs NumPy 2")
def test_missing_strings_of_any_width():
    kind = np.dtypes.StringDType(na_object=np.nan)
    column = np.array(["b", np.nan, "a"], dtype=kind)
    assert_encoded(encode_labels([column], "P"), [[1], [-2], [0]], [["a", "b"]])


def test_a_list_holds_partitions_and_an_array_columns():
    vectors = [[0, 1, 1], ["x", "x", "y"]]
    codes = [[0, 0], [1, 0], [1, 1]]
    assert_encoded(encode_labels(vectors, "P"), codes, [[0, 1], ["x", "y"]])
    assert_encoded(encode_labels(tuple(vectors), "P"), codes, [[0, 1], ["x", "y"]])
    assert_encoded(
        encode_labels(np.array(vectors[:1]).T, "P"), [[0], [1], [1]], [[0, 1]]
    )


def test_a_column_without_any_label():
    for missing in (np.array([[-2], [-5]]), [[None, None]], [[np.nan, np.nan]]):
        assert_encoded(encode_labels(missing, "P"), [[-2], [-2]], [[]])
    for noise in (np.array([[-1], [-5]]), [[-1, None]], [[-1, np.nan]]):
        assert_encoded(encode_labels(noise, "P"), [[-1], [-2]], [[]])


def test_labels_of_mixed_or_other_kinds_are_refused():
    for column in (
        np.array(["a", 1], dtype=object),
        np.array([b"a", "a"], dtype=object),
        np.array([(1,), (2,), None], dtype=object),
        np.array([np.zeros(2), np.ones(3), None], dtype=object),
        np.array([1 + 0j, 2]),
        np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]"),
        pd.Series([1, "a"], dtype=object),
    ):
        with raises_naming(TypeError, "P[:, 1]"):
            encode_labels([np.zeros(len(column), dtype=int), column], "P")


def test_floats_that_are_not_whole_are_refused():
    for column, number in (
        ([0.0, 1.5], "1.5"),
        ([0.0, np.inf], "inf"),
        ([-0.5, 1.0], "-0.5"),
    ):
        with raises_naming(ValueError, "P[:, 0]", str(number)):
            encode_labels([np.array(column)], "P")


def test_nan_among_the_strings_of_a_list_is_missing():
    assert_encoded(
        encode_labels([["a", float("nan"), "b"]], "P"), [[0], [-2], [1]], [["a", "b"]]
    )


def test_strings_and_numbers_in_a_list_are_refused():
    with raises_naming(TypeError, "kind"):
        encode_labels([["a", 1, "b"]], "P")


def test_two_columns_of_a_frame_may_share_their_name():
    frame = pd.DataFrame([[0, 1], [1, 1]], columns=["t", "t"])
    assert_encoded(encode_labels(frame, "P"), [[0, 0], [1, 0]], [[0, 1], [1]])


def test_what_is_no_table_is_refused():
    for table, message in (
        (np.zeros(3), ("P", "(n_samples, n_partitions)", "(3,)")),
        (np.zeros((3, 0)), ("P", "0 partitions")),
        ([], ("P", "0 partitions")),
        (np.zeros((0, 2)), ("P", "[0]")),
        ([[], []], ("P", "[0]")),
        ([[0, 1], [0]], ("P", "lengths")),
        ([0, 1, 1], ("P", "()")),
        ([[0, 1], [[0], [1]]], ("P", "(2, 1)")),
        ("abc", ("P", "labels", "'abc'")),
        (np.ndarray, ("P", "numpy.ndarray")),
    ):
        with raises_naming((TypeError, ValueError), message):
            partition_columns(table, "P")
    with raises_naming(TypeError, "sparse"):
        partition_columns(indicator(np.zeros((2, 1), int), np.array([1])), "P")


@given(tables, tables)
def test_known_categories_number_new_labels_as_before(table, new):
    new = new[:, np.arange(table.shape[1]) % new.shape[1]]
    _, categories = encode_labels(table, "P")
    expected = [
        [code_of(label, list(known)) for label in column]
        for column, known in zip(new.T, categories, strict=True)
    ]
    codes, found = encode_labels(new, "P", categories)
    assert_array_equal(codes.T, expected)
    assert_array_equal(encode_labels(new.astype(float), "P", categories)[0], codes)
    assert all(one is other for one, other in zip(found, categories, strict=True))


def test_known_categories_of_strings():
    _, categories = encode_labels([["b", "d"]], "P")
    assert_array_equal(
        encode_labels([["a", "b", "c", "d", "e"]], "P", categories)[0].T,
        [[-2, 0, -2, 1, -2]],
    )


def test_known_categories_that_do_not_fit_are_refused():
    _, categories = encode_labels(np.array([[0], [1]]), "P")
    with raises_naming(ValueError, "P", "2", "1"):
        encode_labels(np.zeros((1, 2), dtype=int), "P", categories)
    with raises_naming(TypeError, "kind", "fit"):
        encode_labels([["a"]], "P", categories)


# --- indicators --------------------------------------------------------------------------------


@given(tables)
def test_indicator_has_a_one_for_every_label(table):
    codes, categories = encode_labels(table, "P")
    sizes = np.array([len(known) for known in categories])
    assert_array_equal(cluster_counts(codes), sizes)
    # with an empty last cluster in every partition
    expected = [
        [
            float(codes[i, t] == c)
            for t in range(len(sizes))
            for c in range(sizes[t] + 1)
        ]
        for i in range(len(codes))
    ]
    assert_array_equal(indicator(codes, sizes + 1).toarray(), expected)


@given(st.integers(1, 9), st.integers(1, 12), st.integers(0, 10**6), st.booleans())
def test_tuple_indicator_factors_the_indicator(n, T, seed, complete):
    # so many tuples that they are taken in several groups
    rng = np.random.default_rng(seed)
    codes = rng.integers(0 if complete else -2, rng.integers(1, 5, size=T), size=(n, T))
    sizes = cluster_counts(codes) + rng.integers(0, 2, size=T)
    J, A = tuple_indicator(codes, sizes, None)
    assert_array_equal((J @ A).toarray(), indicator(codes, sizes).toarray())
    assert set(J.data) == {1}
    assert len(set(np.diff(J.indptr))) == 1
    assert (J.sum(axis=0) > 0).all()  # tuples that occur


def test_tuple_indicator_of_more_rows_than_a_block_and_large_partitions():
    rng = np.random.default_rng(0)
    codes = rng.integers(-2, [3, 2000, 300, 2], size=(2 * 16_384 + 3, 4))
    sizes = np.array([4, 2000, 300, 2])
    J, A = tuple_indicator(codes, sizes, None)
    assert abs(J @ A - indicator(codes, sizes)).sum() == 0


@given(st.lists(st.integers(1, 40), min_size=1, max_size=9))
def test_partitions_are_taken_together_up_to_a_limit(sizes):
    codes = np.zeros((1, len(sizes)), dtype=np.int32)
    J, _ = tuple_indicator(codes, np.array(sizes), 100)
    n_groups, product = 1, 1
    for t, size in enumerate(sizes):
        product *= size + 1  # "not seen" is a symbol, too
        if product > 100 and t:
            n_groups, product = n_groups + 1, size + 1
    assert J.nnz == n_groups  # an entry a row and group


def test_one_hot():
    E = one_hot(np.array([2, 0, 2]), 4, np.float32)
    assert E.dtype == np.float32
    assert_array_equal(E, [[0, 0, 1, 0], [1, 0, 0, 0], [0, 0, 1, 0]])


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9))
def test_group_indicator_is_orthonormal_and_marks_the_groups(labels):
    groups = np.unique(labels, return_inverse=True)[1]
    E = group_indicator(groups).toarray()
    assert_allclose(E.T @ E, np.eye(max(groups) + 1), atol=1e-12)
    assert_array_equal(E > 0, groups[:, None] == np.arange(max(groups) + 1))


def test_group_indicator_keeps_float32():
    assert group_indicator(np.array([0, 1, 1]), np.float32).dtype == np.float32


# --- distinct rows -----------------------------------------------------------------------------


def assert_distinct(codes, first, groups, counts):
    rows = [tuple(row) for row in codes]
    assert_array_equal(codes[first][groups], codes)
    assert len({rows[i] for i in first}) == len(first) == len(set(rows))
    assert_array_equal(counts, [rows.count(rows[i]) for i in first])
    assert groups.shape == (len(codes),)


@given(tables)
def test_distinct_rows(codes):
    assert_distinct(codes, *distinct_rows(codes))


def test_distinct_rows_whose_keys_collide(monkeypatch):
    codes = np.random.default_rng(0).integers(-2, 3, size=(60, 3))
    for modulus in (1, 2):
        keys = codes.sum(axis=1) % modulus
        monkeypatch.setattr(
            labels_module, "hash_label_rows", lambda codes, keys=keys: keys
        )
        assert_distinct(codes, *distinct_rows(codes))


def test_one_late_collision_is_noticed(monkeypatch):
    codes = np.zeros((20_000, 2), dtype=np.int32)
    codes[-1] = 1  # in another block than the first of its group
    monkeypatch.setattr(
        labels_module,
        "hash_label_rows",
        lambda codes: np.zeros(len(codes), dtype=np.uint64),
    )
    first, groups, counts = distinct_rows(codes)
    assert_array_equal(codes[first][groups], codes)
    assert sorted(counts) == [1, 19_999]


@given(tables, st.randoms(use_true_random=False))
def test_the_order_of_distinct_rows_does_not_depend_on_that_of_the_rows(codes, random):
    shuffled = codes[random.sample(range(len(codes)), len(codes))]
    assert_array_equal(
        codes[distinct_rows(codes)[0]], shuffled[distinct_rows(shuffled)[0]]
    )


def test_keys_of_rows_differ():
    codes = np.stack(np.meshgrid(*[np.arange(-2, 8)] * 4), axis=-1).reshape(-1, 4)
    assert len(set(labels_module.hash_label_rows(codes).tolist())) == len(codes)


def test_intervals_of_pandas_are_labels():
    values = np.array([0.1, 0.2, 0.9, np.nan, 0.8])
    intervals = pd.cut(pd.Series(values), [0, 0.5, 1])
    table = pd.DataFrame({"interval": intervals, "text": list("aabba")})
    codes, categories = encode_labels(table, "X")
    assert codes[:, 0].tolist() == [0, 0, 1, NOT_SEEN, 1]
    assert categories[0].tolist() == ["(0.0, 0.5]", "(0.5, 1.0]"]
    again, _ = encode_labels(table.iloc[::-1], "X", categories)
    assert_array_equal(again[::-1], codes)
