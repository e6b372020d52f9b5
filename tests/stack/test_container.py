"""The container of several similarities, the checks of what it holds, and kernels that fill it."""

import copy
import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import set_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import cosine_similarity, laplacian_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks, shuffle
from threadpoolctl import threadpool_limits

from nmfcluster import KernelStack, SimilarityStack
from nmfcluster.affinity import make_affinity
from nmfcluster.stack import cross_sources, square_sources

STORAGES = {"dense": np.asarray, "sparse": sp.csr_array}
NAN = np.nan


def matrices(n=7, m=None, n_sources=3, seed=0):
    """Draw nonnegative matrices with zeros; symmetric if m is not given."""
    rng = np.random.default_rng(seed)
    shape = (n_sources, n, n if m is None else m)
    drawn = rng.uniform(0.1, 1, size=shape) * (rng.uniform(size=shape) < 0.6)
    return list(drawn if m is not None else drawn + drawn.transpose(0, 2, 1) + np.eye(n))


def mixed(n=7, m=None, seed=0):
    """Return a stack of a dense, a sparse and a dense matrix, and the array that it stands for."""
    drawn = matrices(n, m, seed=seed)
    return SimilarityStack([drawn[0], sp.csr_array(drawn[1]), drawn[2]]), np.stack(drawn, axis=-1)


def without(S, *lost):
    """Return a similarity with NaN for the samples that were lost."""
    S = S.copy()
    for sample in lost:
        S[sample] = S[:, sample] = NAN
    return S


def marked(S, *lost):
    """Return a sparse similarity with one NaN, on the diagonal, for each sample that was lost."""
    S = np.nan_to_num(without(S, *lost))
    S[list(lost), list(lost)] = NAN
    return sp.csr_array(S)


def blobs(n=30, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.normal(size=(n, 4)) + 4 * y[:, None] * np.array([1, 0, 1, 0]), y


class NearestSample(ClassifierMixin, BaseEstimator):
    """A classifier by the label of the most similar sample, by a weighted sum of sources."""

    def __init__(self, first=1.0):
        self.first = first

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = True
        return tags

    def fit(self, X, y):
        sources, self.seen_ = square_sources(X)
        assert all(source.shape == (len(y), len(y)) for source in sources)
        self.classes_, self.labels_ = np.unique(y), np.asarray(y)
        self.sparse_ = [sp.issparse(source) for source in sources]
        return self

    def predict(self, X):
        sources, _ = cross_sources(X, len(self.labels_), self.seen_)
        assert [sp.issparse(source) for source in sources] == self.sparse_
        total = sum(source.toarray() if sp.issparse(source) else source for source in sources[1:])
        first = sources[0].toarray() if sp.issparse(sources[0]) else sources[0]
        return self.labels_[(self.first * first + total).argmax(axis=1)]


# --- what a stack holds --------------------------------------------------------------------------


def test_attributes():
    stack, whole = mixed(5, 4)
    assert stack.shape == whole.shape == (5, 4, 3)
    assert stack.ndim == 3
    assert len(stack) == 5
    assert stack.dtype == np.float64
    assert stack.names == ("source0", "source1", "source2")
    assert repr(stack).startswith("SimilarityStack(shape=(5, 4, 3), dtype=float64, names=(")
    assert_array_equal(stack.toarray(), whole)
    assert [type(source) for source in stack.sources] == [np.ndarray, sp.csr_array, np.ndarray]
    for source, expected in zip(stack.sources, whole.transpose(2, 0, 1), strict=True):
        assert_array_equal(source.toarray() if sp.issparse(source) else source, expected)


@pytest.mark.parametrize("form", [list, tuple, partial(np.stack, axis=-1)])
def test_forms_of_several_sources(form):
    drawn = matrices(6)
    stack = SimilarityStack(form(drawn), names=["a", "b", "c"])
    assert_array_equal(stack.toarray(), np.stack(drawn, axis=-1))
    assert stack.names == ("a", "b", "c")
    again = SimilarityStack(stack)
    assert again is not stack
    assert again.names == stack.names
    assert again.sources[0].base is stack.sources[0].base  # one matrix, two stacks
    assert SimilarityStack(stack, names=["u", "v", "w"]).names == ("u", "v", "w")


@pytest.mark.parametrize(
    "storage",
    [
        np.asarray,
        np.ndarray.tolist,
        pd.DataFrame,
        np.asfortranarray,
        sp.csr_array,
        sp.csr_matrix,
        sp.csc_array,
        sp.coo_matrix,
        sp.lil_array,
    ],
)
def test_forms_of_one_source(storage):
    S = matrices(5, 4, 1)[0]
    (source,) = SimilarityStack([storage(S)]).sources
    assert isinstance(source, sp.csr_array if sp.issparse(storage(S)) else np.ndarray)
    assert_array_equal(source.toarray() if sp.issparse(source) else source, S)
    if not sp.issparse(source):
        assert source.flags.c_contiguous


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        ((np.float32, np.float32), np.float32),
        ((np.float32, np.float64), np.float64),
        ((np.float16, np.float32), np.float64),
        ((np.int32, np.float32), np.float64),
        ((bool, np.uint8), np.float64),
        ((object, object), np.float64),
    ],
)
@pytest.mark.parametrize("storage", STORAGES.values())
def test_the_type_of_all_sources_is_one(dtypes, expected, storage):
    drawn = [np.rint(S) for S in matrices(4, 5, 2)]
    given = [S.astype(dtype) for S, dtype in zip(drawn, dtypes, strict=True)]
    stack = SimilarityStack([given[0], storage(given[1]) if object not in dtypes else given[1]])
    assert stack.dtype == expected
    assert all(source.dtype == expected for source in stack.sources)
    assert stack[[1]].dtype == stack.toarray().dtype == expected
    assert_array_equal(stack.toarray(), np.stack(given, axis=-1).astype(expected))


def test_duplicates_and_zeros_of_a_sparse_source_are_cleaned_up_in_a_copy():
    data, columns, starts = np.array([1.0, 2.0, 0.0]), np.array([1, 1, 1]), np.array([0, 2, 3])
    given = sp.csr_array((data, columns, starts), shape=(2, 2))
    (source,) = SimilarityStack([given]).sources
    assert source.nnz == 1
    assert_array_equal(source.toarray(), [[0, 3], [0, 0]])
    assert given.nnz == 3


def test_nothing_is_copied_or_written_to():
    S = matrices(5, 4, 1)[0]
    T = sp.csr_array(S)
    stack = SimilarityStack([S, T])
    dense, sparse = stack.sources
    assert np.shares_memory(dense, S)
    assert np.shares_memory(sparse.data, T.data)
    for values in (dense, sparse.data, *(part[0] for part in stack.filled()[:1])):
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1
    assert S.flags.writeable
    assert T.data.flags.writeable


def test_only_dense_stacks_become_arrays_by_themselves():
    drawn = matrices(4)
    stack = SimilarityStack(drawn)
    assert_array_equal(np.asarray(stack), np.stack(drawn, axis=-1))
    assert np.asarray(stack, dtype=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="without a copy"):
        np.array(stack, copy=False)
    with pytest.raises(TypeError, match=r"'source1'.*toarray\(\)"):
        np.asarray(mixed()[0])


def test_samples_are_not_walked_through():
    with pytest.raises(TypeError, match=r"stack\.sources"):
        iter(mixed()[0])


def test_a_stack_is_equal_to_itself_alone():
    stack, _ = mixed()
    assert stack == stack
    assert stack != copy.copy(stack)
    assert len({stack, stack[:]}) == 2


@pytest.mark.parametrize("again", [copy.deepcopy, lambda stack: pickle.loads(pickle.dumps(stack))])
def test_copies_are_the_same_and_read_only(again):
    S = matrices(5)[0]
    stack = SimilarityStack([without(S, 2), marked(S, 3)], names=["a", "b"])
    found = again(stack)
    assert_array_equal(found.toarray(), stack.toarray())
    assert_array_equal(found.seen(), stack.seen())
    assert found.names == stack.names
    assert not found.filled()[0].flags.writeable


# --- slices --------------------------------------------------------------------------------------


@st.composite
def keys(draw, n):
    index = st.integers(-n, n - 1) if n else st.nothing()
    return draw(
        st.one_of(
            st.lists(index, max_size=2 * n),
            st.lists(index, max_size=2 * n).map(lambda found: np.array(found, dtype=np.int32)),
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


@given(cuts())
@settings(deadline=None, max_examples=150)
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
    for found in both:
        assert found.shape == (len(i), len(j), 3)
        assert_array_equal(found.toarray(), whole[np.ix_(i, j)])
        assert_array_equal(found.seen(), seen[i])
        assert [sp.issparse(source) for source in found.sources] == [False, True, False]
        assert found.filled()[1].has_sorted_indices


def test_a_slice_stores_what_is_in_it_and_no_more():
    rng = np.random.default_rng(0)
    places = rng.integers(2000, size=(2, 8000))
    S = sp.csr_array((rng.uniform(0.1, 1, size=8000), tuple(places)), shape=(2000, 2000))
    stack = SimilarityStack([S])
    rows, columns = rng.permutation(2000)[:300], rng.permutation(2000)[:500]
    (found,) = stack[np.ix_(rows, columns)].sources
    expected = S.toarray()[np.ix_(rows, columns)]
    assert found.nnz == np.count_nonzero(expected)
    assert_array_equal(found.toarray(), expected)


@pytest.mark.parametrize("cut", [lambda S, i: S[np.ix_(i, [1])], lambda S, i: S[i][:, [1]]])
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
        (2, TypeError, r"rows of a SimilarityStack .* For one row say \[2\]"),
        (np.int64(2), TypeError, r"For one row say \[2\]"),
        ("a", TypeError, "rows of a SimilarityStack must be named by a list"),
        (None, TypeError, "rows of a SimilarityStack"),
        ([0.5, 1.0], TypeError, "list or an array of integers"),
        ([[0, 1], [2]], TypeError, "list or an array of integers"),
        ([[0, 1], [2, 3]], TypeError, "list or an array of integers"),
        (["a", "b"], TypeError, "list or an array of integers"),
        ([0, 7], IndexError, "row 7 is not there: a SimilarityStack has 7 rows"),
        ([-8], IndexError, "row -8 is not there"),
        ([True, False], IndexError, "mask of the rows of a SimilarityStack must have 7 entries"),
        (np.ix_([0], [7]), IndexError, "column 7 is not there"),
        (slice("a", "b"), TypeError, "slice of the rows .* integers"),
        (slice(None, None, 0), ValueError, "slice of the rows .* step not 0"),
        (([0, 1], [0, 1]), IndexError, r"np\.ix_\(rows, columns\)"),
        ((0, 1), IndexError, r"np\.ix_"),
        ((slice(None), 1), TypeError, r"For one column say \[1\]"),
        ((slice(None), slice(None), 1), IndexError, r"stack\.sources"),
        ((Ellipsis, 1), IndexError, r"stack\.sources"),
        ((), IndexError, r"stack\[rows\]"),
        (Ellipsis, TypeError, "rows of a SimilarityStack"),
    ],
)
def test_keys_that_name_no_samples(key, error, message):
    with pytest.raises(error, match=message):
        mixed()[0][key]


def test_scikit_learn_splits_and_shuffles_rows():
    stack, whole = mixed(20, 5)
    numbers = np.arange(20)
    parts = train_test_split(stack, numbers, random_state=0)
    for found, kept in (parts[::2], parts[1::2], shuffle(stack, numbers, random_state=0)):
        assert_array_equal(found.toarray(), whole[kept])


# --- bad input -----------------------------------------------------------------------------------

SQUARE = np.ones((3, 3))


@pytest.mark.parametrize(
    ("sources", "names", "error", "message"),
    [
        ([], None, ValueError, "sources must hold at least one similarity matrix"),
        (np.ones((3, 3, 0)), None, ValueError, "at least one .* last axis is the sources"),
        (SQUARE, None, TypeError, r"shape \(3, 3\); a single matrix S is given as \[S\]"),
        (sp.csr_array(SQUARE), None, TypeError, r"a single matrix S is given as \[S\]"),
        (pd.DataFrame(SQUARE), None, TypeError, r"a single matrix S is given as \[S\]"),
        (np.ones((3, 3, 2, 1)), None, TypeError, r"sources .* got shape \(3, 3, 2, 1\)"),
        (None, None, TypeError, "sources must be a list .*None"),
        ("rbf", None, TypeError, "sources must be a list .*'rbf'"),
        ({"a": SQUARE}, None, TypeError, "sources must be a list"),
        ([SQUARE, np.ones(3)], None, ValueError, r"source 1 \('source1'\).* shape \(3,\)"),
        ([SQUARE, np.ones((3, 3, 1))], None, ValueError, r"source 1 .* shape \(3, 3, 1\)"),
        ([SQUARE, 1.0], None, ValueError, r"source 1 .* shape \(\)"),
        ([SQUARE, None], None, ValueError, "source 1 .* matrix of numbers"),
        ([[[1, 2], [3]]], None, ValueError, "source 0 .* matrix of numbers"),
        ([SQUARE, SQUARE.astype(str)], None, TypeError, "source 1 .* not numbers"),
        ([[["a", None], [1, 2]]], None, ValueError, "source 0 .* matrix of numbers"),
        ([SQUARE * 1j], None, TypeError, "source 0 .* complex128, not numbers"),
        ([sp.csr_array(SQUARE * 1j)], None, TypeError, "source 0 .* complex128"),
        ([SQUARE, np.ones((3, 4))], None, ValueError, r"one shape: source 1 .*\(3, 4\).*\(3, 3\)"),
        ([SQUARE, sp.eye_array(4)], ["a", "b"], ValueError, r"one shape: source 1 \('b'\)"),
        ([SQUARE], "a", TypeError, "names must be a list of str"),
        ([SQUARE], 3, TypeError, "names must be a list of str"),
        ([SQUARE], [3], TypeError, "names must all be str"),
        ([SQUARE], ["a", "b"], ValueError, "names must name 1 sources, got 2"),
        ([SQUARE, SQUARE], ["a", "a"], ValueError, "names must differ .*'a' 2 times"),
        (mixed()[0], ["a"], ValueError, "names must name 3 sources, got 1"),
    ],
)
def test_what_is_no_stack(sources, names, error, message):
    with pytest.raises(error, match=message):
        SimilarityStack(sources, names=names)


@pytest.mark.parametrize("storage", STORAGES.values())
@pytest.mark.parametrize("lost", [[(0, 1)], [(2, 2)], [(0, 0), (0, 1)], [(0, 1), (1, 1), (2, 2)]])
def test_nan_beside_numbers(storage, lost):
    S = np.ones((3, 3))
    S[tuple(np.transpose(lost))] = NAN
    with pytest.raises(ValueError, match=r"source 1 \('b'\) .* NaN in row \d, column \d"):
        SimilarityStack([SQUARE, storage(S)], names=["a", "b"])


# --- what was not seen ---------------------------------------------------------------------------


def whole_nan(S, *lost):
    return sp.csr_array(without(S, *lost))


@pytest.mark.parametrize("missing", [without, marked, whole_nan])
@pytest.mark.parametrize("lost", [[1], [0, 4], [0, 1, 2, 3]])
def test_missing_samples_of_a_square_source(missing, lost):
    S, other = matrices(5, n_sources=2)
    stack = SimilarityStack([other, missing(S, *lost)])
    expected = np.ones((5, 2), dtype=bool)
    expected[lost, 1] = False
    (first, second), seen = square_sources(stack)
    assert_array_equal(seen, expected)
    assert_array_equal(stack.seen(), expected)
    assert_array_equal(first, other)
    assert sp.issparse(second) == (missing is not without)
    dense = second.toarray() if sp.issparse(second) else second
    assert_array_equal(dense, np.nan_to_num(without(S, *lost)))
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
    new, new_seen = cross_sources(stack[np.ix_(test, train)], 5, seen)
    assert_array_equal(new_seen, [[True, True], [False, True], [True, True]])
    values = np.nan_to_num(without(S, *lost))
    for source, rows in ((sources[0], train), (new[0], test)):
        found = source.toarray() if sp.issparse(source) else source
        assert_array_equal(found, values[np.ix_(rows, train)])


def test_a_sparse_row_that_stores_nothing_was_seen():
    S = np.diag([1.0, 0.0, 2.0])
    assert SimilarityStack([sp.csr_array(S)]).seen().all()
    assert_array_equal(SimilarityStack([marked(S, 2)]).seen()[:, 0], [True, True, False])


def nan_in(S, *positions):
    S = S.copy()
    for position in positions:
        S[position] = NAN
    return S


@pytest.mark.parametrize(
    ("S", "message"),
    [
        (np.ones((3, 4)), r"X must hold .* shape \(n, n, L\).* got shape \(3, 4, 2\)"),
        (np.ones((0, 0)), r"got shape \(0, 0, 2\)"),
        (-SQUARE, r"source 1 \('b'\) of X must not be negative; its smallest entry is -1"),
        (sp.csr_array(-SQUARE), r"source 1 \('b'\) of X must not be negative"),
        (np.array([[1.0, np.inf], [np.inf, 1]]), r"source 1 \('b'\) of X must be finite"),
        (np.array([[1.0, 0.5], [0.4, 1]]), r"source 1 \('b'\) of X must be symmetric"),
        (sp.csr_array([[1.0, 0.5], [0, 1]]), r"source 1 \('b'\) of X must be symmetric"),
        (np.zeros((3, 3)), r"source 1 \('b'\) of X must hold a similarity above 0"),
        (sp.csr_array((3, 3)), r"source 1 \('b'\) of X must hold a similarity above 0"),
        (SQUARE * NAN, r"source 1 \('b'\) of X must have seen a sample"),
        (sp.csr_array(SQUARE * NAN), r"source 1 \('b'\) of X must have seen a sample"),
        (nan_in(SQUARE, 1), r"source 1 \('b'\) of X .* sample 1 is NaN in its row"),
        (nan_in(SQUARE, (slice(None), 2)), r"source 1 .* sample 2 is NaN in its column"),
        (sp.csr_array(nan_in(SQUARE, 1)), r"source 1 .* sample 1 is NaN in its row"),
        (without(np.zeros((3, 3)), 1), "source 1 .* must hold a similarity above 0"),
    ],
)
def test_what_cannot_be_fitted(S, message):
    first = np.ones(S.shape)
    with pytest.raises(ValueError, match=message):
        square_sources(SimilarityStack([first, S], names=["a", "b"]))
    with pytest.raises(
        ValueError, match=message.replace(" X ", " similarities ").replace("X", "s")
    ):
        square_sources(SimilarityStack([first, S], names=["a", "b"]), "similarities")


@pytest.mark.parametrize(
    ("S", "message"),
    [
        (np.ones((2, 3)), r"X .* to the 4 samples of fit, by 2 sources, .* got shape \(2, 3, 2\)"),
        (np.full((2, 4), -1e-3), r"source 1 \('b'\) of X must not be negative"),
        (np.full((2, 4), np.inf), r"source 1 \('b'\) of X must be finite"),
        (nan_in(np.ones((2, 4)), (slice(None), 2)), r"source 1 \('b'\) of X .* NaN in column 2"),
    ],
)
def test_what_cannot_be_predicted(S, message):
    known = np.ones((4, 2), dtype=bool)
    with pytest.raises(ValueError, match=message):
        cross_sources(SimilarityStack([np.ones(S.shape), S], names=["a", "b"]), 4, known)


def test_the_number_of_sources_is_that_of_fit():
    with pytest.raises(ValueError, match=r"by 1 sources, .* got shape \(2, 4, 2\)"):
        cross_sources(SimilarityStack(np.ones((2, 4, 2))), 4, np.ones((4, 1), dtype=bool))


@pytest.mark.parametrize("storage", STORAGES.values())
def test_new_samples_and_samples_that_were_missing_in_fit(storage):
    known = np.array([[True], [False], [True]])
    new = np.array([[0.5, NAN, 0.2], [NAN, NAN, NAN], [0.0, NAN, 1.0]])
    (found,), seen = cross_sources(SimilarityStack([storage(new)]), 3, known)
    assert_array_equal(seen[:, 0], [True, False, True])
    found = found.toarray() if sp.issparse(found) else found
    assert_array_equal(found, np.nan_to_num(new))
    nobody = SimilarityStack([storage(new)])[[]]
    assert cross_sources(nobody, 3, known)[1].shape == (0, 1)


# --- in scikit-learn -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_cross_validation_cuts_both_axes(n_jobs):
    X, y = blobs(40)
    S = rbf_kernel(X)
    graph = make_affinity(X, n_neighbors=5).similarity.toarray()
    stack = SimilarityStack([S, marked(graph, 3, 11), without(rbf_kernel(X[:, 2:]), 0)])
    search = GridSearchCV(NearestSample(), {"first": [0.5, 1.0]}, cv=4, n_jobs=n_jobs)
    search.fit(stack, y)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_score_ > 0.8
    assert search.best_estimator_.sparse_ == [False, True, False]
    found = cross_val_predict(NearestSample(), stack, y, cv=4)
    assert (found == y).mean() > 0.8


def test_a_pipeline_splits_features():
    X, y = blobs(40)
    X[3, 2:] = NAN
    views = KernelStack([("all", "rbf", [0, 1]), ("part", "nearest_neighbors", [2, 3])])
    pipeline = make_pipeline(StandardScaler(), views, NearestSample())
    found = cross_val_predict(pipeline, X, y, cv=4)
    assert (found == y).mean() > 0.8
    model = clone(pipeline).fit(X[:30], y[:30])
    assert model[-1].sparse_ == [False, True]
    assert_array_equal(np.flatnonzero(~model[-1].seen_[:, 1]), [3])


# --- from features -------------------------------------------------------------------------------


def features(n=20, width=4, seed=0):
    return np.random.default_rng(seed).uniform(0.1, 1, size=(n, width))


def dense(stack):
    return np.moveaxis(stack.toarray(), 2, 0)


KERNELS = ["linear", "cosine", "rbf", "nearest_neighbors", laplacian_kernel, RBF(0.5)]


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("form", STORAGES.values())
def test_a_source_is_the_affinity_of_its_view(form, normalize):
    X, new = features(), features(6, seed=1)
    columns = [None, [0, 2], slice(1, 3), np.array([True, False, False, True])]
    kernels = KERNELS[:4] if form is not np.asarray else KERNELS
    given = [
        (f"{i}", kernel, c) for i, kernel in enumerate(kernels) for c in columns[i % 4 : i % 4 + 1]
    ]
    options = {"gamma": 0.7, "n_neighbors": 3, "normalize": normalize}
    views = KernelStack(given, **options)
    train = views.fit_transform(form(X))
    cross = views.transform(form(new))
    assert train.names == cross.names == views.names_ == tuple(name for name, _, _ in given)
    assert train.shape == (20, 20, len(given))
    assert cross.shape == (6, 20, len(given))
    for i, (_, kernel, chosen) in enumerate(given):
        taken = slice(None) if chosen is None else chosen
        affinity = make_affinity(X[:, taken], kernel, **options)
        assert_allclose(dense(train)[i], affinity.similarity.toarray(), rtol=1e-9, atol=1e-12)
        expected = affinity.cross(new[:, taken], np.eye(20))
        assert_allclose(dense(cross)[i], expected, rtol=1e-9, atol=1e-12)
        assert sp.issparse(train.sources[i]) == sp.issparse(cross.sources[i])
        assert sp.issparse(train.sources[i]) == (kernel == "nearest_neighbors")
    square_sources(train)
    cross_sources(cross, 20, train.seen())
    assert_array_equal(dense(views.fit(form(X)).transform(form(new))), dense(cross))


def test_graphs_alone_are_normalized_by_auto():
    X, kernels = features(), ["rbf", "nearest_neighbors", RBF(0.5)]
    plain, every, auto = (
        KernelStack(kernels, normalize=normalize).fit(X) for normalize in (False, True, "auto")
    )
    for i, expected in enumerate((plain, every, plain)):
        found, other = (views.fit_transform(X) for views in (auto, expected))
        assert_array_equal(dense(found)[i], dense(other)[i])
        assert_array_equal(dense(auto.transform(X))[i], dense(expected.transform(X))[i])
    assert (dense(plain.transform(X))[1] != dense(every.transform(X))[1]).any()


def test_kernels_by_their_formulas():
    X, new = features(), features(6, seed=1)
    views = KernelStack([partial(rbf_kernel, gamma=2), cosine_similarity, RBF(0.5), "rbf"])
    train, cross = dense(views.fit_transform(X)), dense(views.transform(new))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    away = ((new[:, None] - X) ** 2).sum(axis=2)
    lengths = np.linalg.norm(X, axis=1)
    width = 1 / np.median(squares[np.triu_indices(20, 1)])
    for i, gamma in ((0, 2), (2, 2), (3, width)):
        assert_allclose(train[i], np.exp(-gamma * squares), rtol=1e-9)
        assert_allclose(cross[i], np.exp(-gamma * away), rtol=1e-9)
    assert_allclose(train[1], X @ X.T / np.outer(lengths, lengths), rtol=1e-9)
    assert views.names_ == ("rbf_kernel", "cosine_similarity", "RBF", "rbf")


def test_names_of_kernels_that_occur_several_times():
    kernels = ["rbf", ("rbf-1", "linear", [0]), "rbf", "linear", lambda X, Y: np.ones((len(X), 20))]
    views = KernelStack(kernels).fit(features())
    assert views.names_ == ("rbf-2", "rbf-1", "rbf-3", "linear", "<lambda>")


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_views_are_columns_of_a_data_frame(library, require_names):
    X, new = features(), features(6, seed=1)
    names = ["a", "b", "c", "d"]

    def frame(X):
        return library(dict(zip(names, X.T, strict=True)))

    require_names(frame(X))
    by_name = KernelStack([("one", "rbf", ["d", "a"]), ("two", "rbf", "b"), ("all", "rbf", None)])
    by_place = KernelStack([("one", "rbf", [3, 0]), ("two", "rbf", [1]), ("all", "rbf", None)])
    assert_array_equal(dense(by_name.fit_transform(frame(X))), dense(by_place.fit_transform(X)))
    assert_array_equal(dense(by_name.transform(frame(new))), dense(by_place.transform(new)))
    assert by_name.feature_names_in_.tolist() == names
    index = pd.Index(["d", "a"])
    found = KernelStack([("one", "rbf", index)]).fit_transform(frame(X))
    assert_array_equal(found.sources[0], by_place.fit_transform(X).sources[0])
    with pytest.raises(ValueError, match="feature names"):
        by_name.transform(frame(new)[names[::-1]])


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("form", STORAGES.values())
def test_samples_that_are_missing_from_a_view(form, normalize):
    X, new = features(), features(6, seed=1)
    lost, gone = [2, 7, 19], [0, 4]
    X[np.ix_(lost, [1, 3])] = NAN
    new[np.ix_(gone, [1, 3])] = NAN
    given = [("rest", "rbf", [0, 2])]
    given += [(kernel, kernel, [1, 3]) for kernel in ("nearest_neighbors", "rbf", "linear")]
    options = {"gamma": 2.0, "n_neighbors": 3, "normalize": normalize}
    views = KernelStack(given, **options)
    train = views.fit_transform(form(X))
    cross = views.transform(form(new))
    kept, known = np.delete(np.arange(20), lost), np.delete(np.arange(6), gone)
    sources, seen = square_sources(train)
    new_sources, new_seen = cross_sources(cross, 20, seen)
    assert seen[:, 0].all()
    assert new_seen[:, 0].all()
    assert [sp.issparse(source) for source in train.sources] == [False, True, False, False]
    for i, (_, kernel, columns) in enumerate(given[1:], start=1):
        assert_array_equal(np.flatnonzero(seen[:, i]), kept)
        assert_array_equal(np.flatnonzero(new_seen[:, i]), known)
        affinity = make_affinity(X[np.ix_(kept, columns)], kernel, **options)
        expected = np.full((20, 20), NAN)
        expected[np.ix_(kept, kept)] = affinity.similarity.toarray()
        assert_allclose(dense(train)[i], expected, rtol=1e-9, atol=1e-12)
        expected = np.full((6, 20), NAN)
        expected[np.ix_(known, kept)] = affinity.cross(new[np.ix_(known, columns)], np.eye(17))
        assert_allclose(dense(cross)[i], expected, rtol=1e-9, atol=1e-12)
    assert sources[1].nnz == np.count_nonzero(sources[1].toarray())
    assert np.isnan(train.sources[1].diagonal()[lost]).all()
    assert sp.issparse(new_sources[1])
    nobody = views.transform(form(new[gone]))
    assert_array_equal(nobody.seen(), [[True, False, False, False]] * 2)
    assert [sp.issparse(source) for source in nobody.sources] == [False, True, False, False]


def test_float32_stays_float32():
    X = features().astype(np.float32)
    views = KernelStack(["rbf", "nearest_neighbors", "linear"])
    assert views.fit_transform(X).dtype == np.float32
    assert views.transform(X[:3]).dtype == np.float32
    assert KernelStack(["rbf", RBF(0.5)]).fit_transform(X).dtype == np.float64


@pytest.mark.parametrize("kernel", ["linear", "cosine"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rounding_of_a_diagonal_is_no_negative_similarity(kernel, dtype):
    """``normalize=True`` takes the diagonal away, which leaves +-1e-17 of it."""
    X = features(60, 30).astype(dtype)
    block = make_affinity(X, kernel, normalize=True).block()
    assert -1e-6 < block.min() < 0
    (found,), _ = square_sources(KernelStack(kernel, normalize=True).fit_transform(X))
    assert_array_equal(found, block.clip(0))


@pytest.mark.parametrize("kernel", ["rbf", "nearest_neighbors"])
def test_neither_threads_nor_jobs_change_a_similarity(kernel):
    X = np.random.default_rng(0).normal(size=(300, 20))
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            views = KernelStack(kernel, n_jobs=threads)
            found.append((dense(views.fit_transform(X)), dense(views.transform(X[:50]))))
    for one, two in zip(*found, strict=True):
        assert_array_equal(one, two)


def test_fitted_kernels_can_be_stored():
    X, new = features(), features(5, seed=1)
    views = KernelStack(["nearest_neighbors", RBF(0.3), partial(rbf_kernel, gamma=3)]).fit(X)
    again = pickle.loads(pickle.dumps(views))
    assert_array_equal(dense(again.transform(new)), dense(views.transform(new)))
    assert_array_equal(dense(clone(views).fit(X).transform(new)), dense(views.transform(new)))


def test_a_parameter_of_the_kernels_can_be_searched_for():
    X, y = blobs(40)
    pipeline = Pipeline([("views", KernelStack(["rbf", "linear"])), ("model", NearestSample())])
    grid = {"views__gamma": [0.1, None], "views__kernels": ["rbf", ["rbf", RBF(2.0)]]}
    search = GridSearchCV(pipeline, grid, cv=4).fit(abs(X), y)
    assert not np.isnan(search.cv_results_["mean_test_score"]).any()
    assert search.best_score_ > 0.8


def test_a_stack_is_no_table_whatever_the_output_is_set_to():
    views = KernelStack("rbf")
    assert not hasattr(views, "set_output")
    assert not hasattr(views, "get_feature_names_out")
    set_config(transform_output="pandas")
    try:
        assert isinstance(views.fit_transform(features()), SimilarityStack)
    finally:
        set_config(transform_output="default")


def test_a_fit_that_fails_leaves_the_earlier_one():
    X, new = features(), features(5, seed=1)
    views = KernelStack([("a", "rbf", [0, 3])]).fit(X)
    before = views.transform(new).toarray()
    with pytest.raises(ValueError, match="is not there"):
        views.fit(X[:, :2])
    assert_array_equal(views.transform(new).toarray(), before)


@pytest.mark.parametrize(
    "name",
    [
        "check_dataframe_column_names_consistency",
        "check_inplace_ensure_writeable",
        "check_param_validation",
    ],
)
def test_checks_that_scikit_learn_keeps_for_itself(name):
    getattr(estimator_checks, name)("KernelStack", KernelStack("rbf"))


def signed(X, Y):
    return X @ Y.T - 1.0


@pytest.mark.parametrize(
    ("kernels", "error", "message"),
    [
        ("precomputed", ValueError, "The 'kernels' parameter .*'nearest_neighbors'"),
        ("gaussian", ValueError, "The 'kernels' parameter"),
        (None, ValueError, "The 'kernels' parameter"),
        (("a", "rbf", [0]), ValueError, "The 'kernels' parameter"),
        ([], ValueError, "kernels must hold at least one kernel"),
        (["gaussian"], ValueError, "kernels must be of .*'rbf'.* callables, got 'gaussian'"),
        (["precomputed"], ValueError, "kernels must be of .* got 'precomputed'"),
        ([3], TypeError, "kernels must be of .* got 3"),
        ([["a", "rbf", [0]]], TypeError, "kernels must be of"),
        ([("a", "rbf")], TypeError, r"triples .* got \('a', 'rbf'\)"),
        ([(1, "rbf", [0])], TypeError, "triples"),
        ([("", "rbf", [0])], TypeError, "triples"),
        ([("a", None, [0])], TypeError, "kernels must be of"),
        ([("a", "rbf", [0]), ("a", "rbf", [1])], ValueError, "names that differ, got 'a' twice"),
        ([("a", "rbf", [0, 4])], ValueError, r"column 4 is not there: source 0 \('a'\) .* 4 col"),
        (["rbf", ("a", "rbf", [-5])], ValueError, r"column -5 .* source 1 \('a'\) of kernels"),
        ([("a", "rbf", [])], ValueError, "source 0 .* at least one column"),
        ([("a", "rbf", slice(4, None))], ValueError, "source 0 .* at least one column"),
        ([("a", "rbf", [False] * 4)], ValueError, "source 0 .* at least one column"),
        ([("a", "rbf", [True])], ValueError, "mask of the columns of source 0 .* 4 entries"),
        ([("a", "rbf", 2)], TypeError, r"columns of source 0 .* For one column say \[2\]"),
        ([("a", "rbf", [0.5])], TypeError, "columns of source 0 .* array of integers"),
        ([("a", "rbf", len)], TypeError, "columns of source 0 .* array of integers"),
        ([("a", "rbf", "b")], ValueError, "takes the column 'b', but .* have no names"),
        ([("a", "rbf", ["b", "c"])], ValueError, "takes the column 'b', but .* have no names"),
        ([("a", "rbf", ["b", 1])], ValueError, "takes the column 'b', but .* have no names"),
        ([("a", signed, None)], ValueError, r"source 0 \('a'\) of kernels must not be negative"),
        ([lambda X, Y: np.ones(3)], ValueError, r"source 0 .*: affinity must return .*\(3,\)"),
        ([lambda X, Y: NAN * X @ Y.T], ValueError, "source 0 .* NaN"),
        ([lambda X, Y: X[:, :1] + 0 * Y[:, 0]], ValueError, "source 0 .* symmetric"),
    ],
)
def test_kernels_that_are_none(kernels, error, message):
    with pytest.raises(error, match=message):
        KernelStack(kernels).fit(features())


def test_columns_that_a_data_frame_does_not_have():
    X = pd.DataFrame(features(), columns=list("abcd"))
    with pytest.raises(ValueError, match=r"source 0 \('v'\) .* 'e', of which X has 0; .*'a', 'b'"):
        KernelStack([("v", "rbf", ["a", "e"])]).fit(X)
    X.columns = list("abca")
    with pytest.raises(ValueError, match=r"'a', of which X has 2|unique column names"):
        KernelStack([("v", "rbf", "a")]).fit(X)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("gamma", 0.0),
        ("gamma", "scale"),
        ("n_neighbors", 0),
        ("n_neighbors", 2.5),
        ("normalize", "all"),
        ("n_jobs", 1.5),
    ],
)
def test_parameters_out_of_range(parameter, value):
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter"):
        KernelStack("rbf", **{parameter: value}).fit(features())


@pytest.mark.parametrize("form", STORAGES.values())
def test_features_that_are_nan_in_part(form):
    X, whole = features(), features(5, seed=1)
    views = KernelStack([("a", "rbf", [0]), ("b", "rbf", [1, 2])]).fit(form(whole))
    X[4, 1:3] = NAN
    X[7, 2] = NAN
    message = r"source 1 \('b'\) of kernels has NaN in some features of sample 7 and numbers"
    for method in (views.transform, clone(views).fit):
        with pytest.raises(ValueError, match=message):
            method(form(X))
    with pytest.raises(ValueError, match="infinity"):
        views.transform(form(np.where(np.isnan(X), np.inf, X)))


def test_too_few_samples():
    X = features(3)
    X[:2, 1] = NAN
    with pytest.raises(ValueError, match=r"source 1 \('b'\) .* at least 2 samples"):
        KernelStack([("a", "rbf", [0]), ("b", "rbf", [1])]).fit(X)
    with pytest.raises(ValueError, match=r"1 sample.* minimum of 2"):
        KernelStack().fit(X[:1])
    with pytest.raises(NotFittedError):
        KernelStack().transform(X)


def test_new_samples_with_negative_similarities():
    X = features()
    views = KernelStack(["rbf", "linear"]).fit(X)
    with pytest.raises(ValueError, match=r"source 1 \('linear'\) of kernels must not be negative"):
        views.transform(-X[:3])
