"""Numbers and indices that a user hands in, and the line that a warning points at."""

import inspect
import warnings

import numpy as np
import pytest
from internals import format_count, pairwise_input
from numpy.testing import assert_array_equal
from refusals import raises_naming
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.decomposition import KernelPCA
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from nmfcluster import NMFConsensus
from nmfcluster._utils.validation import (
    axis_positions,
    check_count,
    check_number,
    format_value,
)

DISTANCES = pairwise_distances(np.random.default_rng(0).normal(size=(8, 3)))
ON_PAIRS = SpectralClustering(affinity="precomputed")


@pytest.mark.parametrize(
    ("estimator", "X", "kind"),
    [
        (KMeans(), DISTANCES, None),
        (
            AgglomerativeClustering(metric="precomputed", linkage="average"),
            None,
            "distances",
        ),
        (DBSCAN(metric="precomputed"), DISTANCES < 1, "distances"),
        (ON_PAIRS, None, "similarities"),
        (
            SpectralClustering(affinity="precomputed_nearest_neighbors"),
            None,
            "distances",
        ),
        (NMFConsensus(2, affinity="precomputed"), DISTANCES, "similarities"),
        (make_pipeline("passthrough", ON_PAIRS), DISTANCES, "similarities"),
        (
            make_pipeline(KernelPCA(kernel="precomputed"), KMeans()),
            None,
            "similarities",
        ),
        # pairs that earlier steps make of features, and of other pairs
        (make_pipeline(KNeighborsTransformer(), ON_PAIRS), DISTANCES[:, :3], None),
        (make_pipeline(KNeighborsTransformer(), ON_PAIRS), None, None),
        (make_pipeline(FunctionTransformer(), ON_PAIRS), DISTANCES, "distances"),
        (
            make_pipeline(FunctionTransformer(), ON_PAIRS),
            np.exp(-DISTANCES),
            "similarities",
        ),
        (make_pipeline(FunctionTransformer(), ON_PAIRS), np.triu(DISTANCES), None),
        (make_pipeline(FunctionTransformer(), ON_PAIRS), np.full((4, 4), "a"), None),
    ],
)
def test_estimators_of_pairs_are_known(estimator, X, kind):
    assert pairwise_input(estimator, X) == kind


def test_one_thing_is_not_several():
    assert [format_count(n, "sample") for n in (0, 1, 2)] == [
        "0 samples",
        "1 sample",
        "2 samples",
    ]
    assert [format_count(n, "entry") for n in (1, 3)] == ["1 entry", "3 entries"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (None, [0, 1, 2, 3]),
        ([3, 0, 3], [3, 0, 3]),
        ((-4, -1), [0, 3]),
        (np.array([2], dtype=np.uint8), [2]),
        ([], []),
        (np.array([], dtype=int), []),
        (slice(None, None, -2), [3, 1]),
        (slice(9, 12), []),
        ([True, False, False, True], [0, 3]),
    ],
    ids=str,
)
def test_positions_are_those_that_indexing_takes(key, expected):
    chosen = axis_positions(key, 4, "row", "a table")
    assert chosen.dtype.kind == "i"
    assert_array_equal(chosen, expected)
    if key is not None and len(expected):
        index = key if isinstance(key, slice) else np.asarray(key)
        assert_array_equal(np.arange(4)[index], expected)


BY_A_LIST = ("rows", "list")


@pytest.mark.parametrize(
    ("key", "error", "says"),
    [
        ([4], ValueError, ("row 4", "4 rows")),
        ([0, -5], ValueError, "row -5"),
        (
            [True, False],
            ValueError,
            ("mask", "4", "[True, False]"),
        ),
        (slice(0, 4, 0), ValueError, ("slice", "0")),
        (slice(0.5), ValueError, "slice"),
        ([0.0], TypeError, (*BY_A_LIST, "[0.0]")),
        ([[0]], TypeError, (*BY_A_LIST, "[[0]]")),
        ([[0], [1, 2]], TypeError, BY_A_LIST),
        (2, TypeError, (*BY_A_LIST, "2", "[2]")),
        ("0", TypeError, (*BY_A_LIST, "'0'")),
        (["0"], TypeError, BY_A_LIST),
        ([None], TypeError, BY_A_LIST),
        ({1}, TypeError, (*BY_A_LIST, "{1}")),
    ],
    ids=str,
)
def test_positions_that_are_not_there_are_named(key, error, says):
    with raises_naming(error, says):
        axis_positions(key, 4, "row", "a table")


@pytest.mark.parametrize(
    "value", [1.0, "1", None, True, np.array([1])], ids=format_value
)
def test_a_count_is_an_int(value):
    with raises_naming(TypeError, "n", "int") as caught:
        check_count(value, "n")
    assert format_value(value) in str(caught.value)


def test_a_count_is_large_enough():
    check_count(np.int8(3), "n", 3)
    check_count(0, "n", 0)
    with raises_naming(ValueError, "n", "1", "0"):
        check_count(0, "n")
    with raises_naming(ValueError, "n", "3", "2"):
        check_count(2, "n", 3)


def test_a_number_is_one_of_its_range():
    check_number(0, "x")
    check_number(np.float32(0.5), "x", 1)
    for value in ("1", None, True, 1j):
        with raises_naming(TypeError, "x", "float"):
            check_number(value, "x")
    for value, closed in ((-1, "left"), (np.nan, "left"), (0, "neither"), (1, "left")):
        with raises_naming(ValueError, "x", "float"):
            check_number(value, "x", 1, closed=closed)


def test_long_values_are_shown_in_part():
    assert len(format_value(list(range(10**4)))) < 60


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
@pytest.mark.parametrize("wrapped", [False, True], ids=["alone", "in a pipeline"])
def test_a_warning_points_at_the_line_of_the_user(method, wrapped):
    X = np.repeat(np.eye(3), 4, axis=0)
    model = NMFConsensus(3, n_estimators=5, base_n_clusters=3, max_iter=1, n_init=1)
    model.set_params(random_state=0)
    fit = getattr(make_pipeline(model) if wrapped else model, method)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        line = inspect.currentframe().f_lineno + 1
        fit(X)
    assert {(warning.filename, warning.lineno) for warning in caught} == {
        (__file__, line)
    }
