"""Containers of constraints and of similarities, and the transformer that makes these."""

import pickle

import numpy as np
import pandas as pd
import scipy.sparse as sp
from fuzz.parameters import KERNELS, parameters
from fuzz.strategies import (
    FEATURES,
    LABEL_TABLES,
    SIMILARITIES,
    SIZES,
    build,
    mostly,
    pairs_of,
    rows_like,
    usually,
)
from fuzz.verdict import REFUSED, fuzz, judged, names_of
from hypothesis import strategies as st

from nmfcluster import KernelStack, PairwiseConstraints, SimilarityStack

ODD_NUMBERS = (
    None,
    -1,
    0,
    True,
    2.5,
    np.nan,
    10**30,
    np.int8(9),
    np.float32(3),
    "5",
    [3],
    2**31,
)
KEYS = usually(
    st.sampled_from(
        [slice(None), slice(1, 9, 2), [0, 1], [-1, 0, 0], np.array([1]), [], ...]
    ),
    st.sampled_from(
        [
            0,
            None,
            [0.5],
            [True, False],
            ["a"],
            [[0, 1]],
            [99],
            [-99],
            slice(0, 3, 0),
            slice("a", "b"),
            (slice(None), slice(None)),
            ([0], [1]),
            (..., [0]),
            ([0], ...),
            np.ix_([0, 1], [1]),
            np.ix_([0], [99]),
            np.array([1], dtype=np.uint64),
            np.array([0, 2**63], dtype=np.uint64),
            np.array([1 + 0j]),
            np.array(1),
            {0: 1},
            {0},
            "abc",
            10**30,
            [10**30],
            [None],
            sp.eye_array(3),
        ]
    ),
    times=1,
)


def judge_constraints(made, keys):
    """Check pairs that were read, and what can be asked of them."""
    for pairs, weights in (
        (made.must_link, made.must_link_weights),
        (made.cannot_link, made.cannot_link_weights),
    ):
        assert pairs.shape == (len(weights), 2)
        assert (pairs[:, 0] < pairs[:, 1]).all()
        assert pairs.min(initial=0) >= 0
        assert pairs.max(initial=-1) < len(made)
        assert np.isfinite(weights).all()
        assert (weights > 0).all()
    assert pickle.loads(pickle.dumps(made)) == made
    assert repr(made)
    A, B = made.as_matrices()
    assert A.nnz == 2 * len(made.must_link)
    assert B.nnz == 2 * len(made.cannot_link)
    assert made.components().shape == (len(made),)
    assert made.satisfaction(made.components()) >= 0 or not made.n_pairs
    if judged(made.check, also=["samples", "n_clusters"]) is not REFUSED:
        judge_size(made.closure(), len(made))
    judged(made.check, 2, also=["samples"])
    for key in keys:
        part = judged(made.__getitem__, key, also=["samples", "sample"])
        if part is not REFUSED:
            judge_size(part, part.n_samples)


def judge_size(part, n):
    assert len(part) == n
    assert part.must_link.max(initial=-1) < n
    assert part.cannot_link.max(initial=-1) < n


@fuzz(
    SIZES,
    st.data(),
    usually(st.just(0), st.integers(-2, 2)),
    st.lists(KEYS, max_size=3),
)
def test_pairwise_constraints(n, data, off, keys):
    must, cannot = (data.draw(pairs_of(n + off)) for _ in range(2))
    n_samples = data.draw(mostly(n, np.int64(n), *ODD_NUMBERS, weight=8))
    made = judged(PairwiseConstraints, n_samples, build(must), build(cannot))
    if made is not REFUSED and made.n_samples <= 100:
        judge_constraints(made, keys)


@fuzz(
    LABEL_TABLES,
    mostly(None, 0, 1, 3, 10, *ODD_NUMBERS, weight=20),
    mostly(
        0,
        None,
        np.random.RandomState(0),
        "x",
        -1,
        0.5,
        2**40,
        np.timedelta64(1, "s"),
        True,
        weight=20,
    ),
    mostly(True, False, weight=6),
    st.lists(KEYS, max_size=2),
)
def test_constraints_from_labels(table, n_pairs, seed, column, keys):
    if column and table.form.startswith("pandas"):
        labels = table.build()
        labels = (
            labels.iloc[:, 0] if hasattr(labels, "iloc") and labels.shape[1] else labels
        )
    elif column and table.form in ("list", "tuple", "C"):
        labels = table.but(
            form="C", flaw="vector" if table.flaw is None else table.flaw
        ).build()
        labels = labels.tolist() if table.form == "list" else labels
    else:
        labels = table.build()
    made = judged(PairwiseConstraints.from_labels, labels, n_pairs, seed)
    if made is not REFUSED:
        judge_constraints(made, keys)
        judged(made.satisfied, labels)


@fuzz(
    SIZES,
    st.data(),
    st.sampled_from(
        ["words", "numbers", "dates", "mixed", "twice", "a word", "none", "frame"]
    ),
)
def test_constraints_from_ids(n, data, kind):
    names = {
        "words": [f"s{i}" for i in range(n)],
        "numbers": np.arange(n) * 3,
        "dates": np.arange(n).astype("datetime64[D]"),
        "mixed": [None, 1.5, *range(5, n + 3)],
        "twice": ["s"] * n,
        "a word": "abcdefgh",
        "none": None,
        "frame": np.arange(n),
    }[kind]
    pairs = [data.draw(pairs_of(n)) for _ in range(2)]
    must, cannot = (None if each is None else build(each) for each in pairs)
    if kind == "words" and isinstance(must, list):
        must = [(f"s{int(i)}", f"s{int(j)}", *rest) for i, j, *rest in must if i == i]
    made = judged(PairwiseConstraints.from_ids, names, must, cannot)
    if made is not REFUSED:
        judge_constraints(made, [])


@fuzz(
    SIZES,
    st.lists(
        usually(
            st.lists(st.integers(-1, 8), max_size=4),
            st.sampled_from(
                [3, "ab", None, ["a"], [0.5], [[0]], {1, 2}, {0: 1}, np.arange(2)]
            ),
            times=1,
        ),
        max_size=3,
    ),
    st.sampled_from(["list", "dict", "array", "tuple"]),
    mostly("n_samples", "ids", "both", "none", weight=6),
    mostly(False, True, *ODD_NUMBERS, weight=8),
)
def test_constraints_from_groups(n, groups, form, given, apart):
    groups = {"list": list, "dict": lambda g: dict(enumerate(g)), "tuple": tuple}.get(
        form, lambda g: np.array([*g, None], dtype=object)[:-1]
    )(groups)
    options = {"n_samples": n, "ids": range(n)}
    options = {
        name: value for name, value in options.items() if given in (name, "both")
    }
    call = lambda: PairwiseConstraints.from_groups(groups, apart=apart, **options)  # noqa: E731
    made = judged(call, also=["groups", "group", "n_samples", "ids", "apart"])
    if made is not REFUSED:
        judge_constraints(made, [])


@fuzz(
    SIZES,
    st.lists(
        st.tuples(
            mostly(0, 1, 2, 2.0, "s1", -1, 99, 0.5, None, True, weight=4),
            mostly(1, 2, 3, "s0", "s2", 10**400, [1], weight=4),
            mostly(
                1,
                -1,
                0.3,
                -0.3,
                np.inf,
                -np.inf,
                "ML",
                "cannot",
                "0.5",
                0,
                np.nan,
                "x",
                None,
            ),
            mostly(1, 0.5, np.inf, True, False, 0, -1, "y", None, weight=4),
        ),
        max_size=5,
    ),
    st.sampled_from(
        ["list", "array", "objects", "frame", "set", "iterator", "dict", "matrix"]
    ),
    st.booleans(),
    mostly("n_samples", "ids", "both", "none", weight=6),
    mostly(None, True, False, [True], [True, False], 1, "x", weight=4),
)
def test_constraints_from_a_table(n, rows, form, narrow, given, hard):
    rows = [row[:3] for row in rows] if narrow else rows
    numbers = [[v if isinstance(v, float) else 1.0 for v in row] for row in rows]
    table = {
        "array": lambda: np.array(numbers),
        "objects": lambda: np.array([*rows, None], dtype=object)[:-1],
        "frame": lambda: pd.DataFrame(rows, dtype=object),
        "set": lambda: {row for row in rows if row[1] != [1]},
        "iterator": lambda: iter(rows),
        "dict": lambda: dict(enumerate(rows)),
        "matrix": lambda: sp.csr_array(
            np.triu(np.resize([0.5, -2, 0, np.inf, -1], (n, n)), 1)
        ),
    }.get(form, lambda: rows)()
    options = {"n_samples": n, "ids": [f"s{i}" for i in range(n)]}
    options = {
        name: value for name, value in options.items() if given in (name, "both")
    }
    call = lambda: PairwiseConstraints.from_table(table, hard=hard, **options)  # noqa: E731
    made = judged(call, also=["pairs", "n_samples", "ids", "hard", "cannot_link"])
    if made is not REFUSED:
        judge_constraints(made, [])


def judge_stack(stack, keys):
    """Check a stack of similarities, and parts of it."""
    n, _, length = stack.shape
    assert len(stack) == n
    assert len(stack.names) == len(stack.sources) == length
    assert stack.toarray().shape == stack.shape
    assert stack.toarray().dtype == stack.dtype in (np.float32, np.float64)
    assert stack.seen().shape == (n, length)
    assert all(
        not np.isnan(part.sum()) or not np.isfinite(part).all() for part in dense(stack)
    )
    assert repr(stack)
    again = pickle.loads(pickle.dumps(stack))
    np.testing.assert_array_equal(again.toarray(), stack.toarray())
    judged(np.asarray, stack, also=["SimilarityStack"])
    for key in keys:
        part = judged(
            stack.__getitem__, key, also=["row", "rows", "column", "SimilarityStack"]
        )
        if part is not REFUSED:
            assert part.shape[2] == length


def dense(stack):
    return [part.toarray() if sp.issparse(part) else part for part in stack.filled()]


NAMES = mostly(
    None, ["a", "b"], ("a",), "ab", [1], ["a", "a"], [], 3, np.array(["a", "b"]), {"a"}
)


@fuzz(
    st.lists(SIMILARITIES, max_size=3),
    SIZES,
    NAMES,
    st.data(),
    st.lists(KEYS, max_size=3),
)
def test_similarity_stack(sources, n, names, data, keys):
    same = data.draw(mostly(True, False))
    sources = [table.but(n=n, rows=None) if same else table for table in sources]
    form = data.draw(mostly("list", "tuple", "array", "one", "dict", weight=6))
    given = build(sources)
    if form == "tuple":
        given = tuple(given)
    elif form == "array":
        arrays = [table.but(form="C", dtype="float64").array() for table in sources]
        given = np.stack(arrays, axis=2) if arrays and same else np.zeros((2, 2, 0))
    elif form == "one":
        given = given[0] if given else None
    elif form == "dict":
        given = dict(enumerate(given))
    stack = judged(SimilarityStack, given, names=names)
    if stack is not REFUSED:
        judge_stack(stack, keys)


@fuzz(
    FEATURES,
    parameters(KernelStack, {}, fixed=("kernels",)),
    usually(
        st.sampled_from(["linear", "cosine", "rbf", "nearest_neighbors"]),
        st.sampled_from(KERNELS),
    ),
    st.data(),
)
def test_kernel_stack(table, given, kernels, data):
    model = KernelStack(**{"kernels": kernels} | given)
    new = data.draw(rows_like(table))
    names = names_of(KernelStack)
    foreign = "RBF" in repr(model.kernels)
    X = table.build()
    stack = judged(model.fit_transform, X, also=names, foreign=foreign)
    if stack is REFUSED:
        assert not hasattr(model, "names_")
        return
    judge_stack(stack, [])
    assert stack.shape[0] == stack.shape[1]
    array = stack.toarray()
    np.testing.assert_allclose(array, array.transpose(1, 0, 2), rtol=1e-6)
    again = judged(model.transform, X, also=names)
    assert again is not REFUSED, "the training samples are refused"
    assert again.shape == stack.shape
    others = judged(model.transform, new.build(), also=names, foreign=foreign)
    if others is not REFUSED:
        judge_stack(others, [])
        np.testing.assert_array_equal(
            pickle.loads(pickle.dumps(model)).transform(new.build()).toarray(),
            others.toarray(),
        )
