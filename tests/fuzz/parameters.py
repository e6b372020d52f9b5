"""Parameters of a constructor, drawn from what its class says that they may be.

A new parameter is covered by itself; one of a kind that is not known here fails the suite.
"""

from numbers import Integral

import numpy as np
import scipy.sparse as sp
from fuzz.strategies import usually
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.gaussian_process.kernels import RBF
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster._compat import HasMethods, Interval, StrOptions
from nmfcluster.affinity import path_kernel

#: what takes longer the larger it is
COSTLY = {
    "n_estimators": 3,
    "n_init": 2,
    "max_iter": 5,
    "n_subsamples": 5,
    "n_splits": 5,
}
#: a run for each is what was asked for: large numbers take no end of time and memory
ENDLESS = {"n_subsamples", "n_estimators", "base_n_clusters", "n_splits"}
#: where numbers of threads or processes are started at once
JOBS = "n_jobs"


def nan_kernel(X, Y):
    return np.full((X.shape[0], Y.shape[0]), np.nan)


def negative_kernel(X, Y):
    return -np.ones((X.shape[0], Y.shape[0]))


def nil_kernel(X, Y):
    return np.zeros((X.shape[0], Y.shape[0]))


def sparse_kernel(X, Y):
    return sp.csr_array(rbf_kernel(X, Y))


def asymmetric_kernel(X, Y):
    return np.arange(1.0, X.shape[0] * Y.shape[0] + 1).reshape(X.shape[0], -1)


def transposed_kernel(X, Y):
    return rbf_kernel(X, Y)[:, :-1]


def listed_kernel(X, Y):
    return rbf_kernel(X, Y).tolist()


def integer_kernel(X, Y):
    return np.ones((X.shape[0], Y.shape[0]), dtype=np.int8)


def complex_kernel(X, Y):
    return rbf_kernel(X, Y) * 1j


CALLABLES = [
    rbf_kernel,
    linear_kernel,
    path_kernel,
    RBF(),
    sparse_kernel,
    integer_kernel,
]
CALLABLES += [
    nan_kernel,
    negative_kernel,
    nil_kernel,
    asymmetric_kernel,
    transposed_kernel,
]
CALLABLES += [listed_kernel, complex_kernel]
KERNELS = [
    ["rbf"],
    ["rbf", "nearest_neighbors"],
    ["linear", "cosine", rbf_kernel],
    [("one", "rbf", [0]), ("all", "linear", slice(None))],
    [("one", "rbf", "c0"), ("two", "cosine", ["c0", "c1"])],
    [("mask", "rbf", np.array([True, False])), "rbf"],
    [("far", "rbf", [9])],
    [("none", "rbf", [])],
    [("same", "rbf", [0]), ("same", "rbf", [0])],
    [("word", "rbf", 0.5)],
    [("two", "rbf")],
    ["no kernel"],
    [3],
    [],
]
#: what values of a kind are, that the kind itself does not say
VALUES = {
    ("affinity", "callable"): CALLABLES,
    ("kernels", "callable"): CALLABLES,
    ("affinity", "list"): KERNELS,
    ("kernels", "list"): KERNELS,
    ("base_n_clusters", "tuple"): [
        (1, 2),
        (2, 4),
        (2, 2),
        (3, 2),
        (0, 1),
        (2,),
        (1.5, 2),
        (),
    ],
    ("base_n_clusters", "list"): [
        [2, 3],
        [1, 1],
        [np.int8(2), np.int64(3)],
        ["a", "b"],
        [],
    ],
    ("weights", "array-like"): [
        [1.0, 1.0],
        np.array([0.5, 2.0]),
        np.float32([1e-30, 1.0]),
        [0, 1],
        [1e300, 1e300],
        [1e-320, 1e-320],
        [1.0],
        [0.0, 0.0],
        [-1.0, 2.0],
        [np.nan, 1.0],
        [[1.0, 1.0]],
        ["a", "b"],
    ],
    ("weights", "dict"): [
        {"source0": 2, "source1": np.float32(0.5)},
        {"v0": 1.0, "v1": 0},
        {"rbf": 1e308, "nearest_neighbors": 1e308},
        {"source0": -1.0},
        {"v0": "a"},
        {0: 1.0},
        {},
    ],
    ("fixed_components", "array-like"): [
        [[1.0, 0.0]],
        np.eye(2),
        np.ones((1, 3), dtype=np.float32),
        np.zeros((1, 2)),
        [[-1.0, 2.0]],
        [[np.nan, 1.0]],
        [[1e300, 1e-300]],
        [1.0, 2.0],
        [["a", "b"]],
    ],
    ("interval", "tuple"): [
        (0, 1),
        (0.1, 0.9),
        (0.5, 0.5),
        (0.9, 0.1),
        (np.nan, 1),
        ("a", 1),
        (),
    ],
    ("interval", "list"): [[0.2, 0.8], [True, 2], [0, 0.5, 1], [None, 1]],
    ("omega", "tuple"): [(2,), (3, 2), (2, 2), (1,), (2.5,), ("a",), (10**30,), ()],
    ("omega", "list"): [[2, 4], [np.int8(3)], [True], [[2]], []],
    ("omega", "range"): [range(2, 4), range(3), range(0)],
    ("metric", "callable"): [lambda a, b: abs(a - b).max(), lambda a, b: 0.0, len],
    ("fit_params", "dict"): [{}, {"no parameter": np.ones(3)}],
}


def _estimators():
    """Draw clusterers, new ones each time."""
    makers = (
        lambda: KMeans(n_init=1),
        AgglomerativeClustering,
        GaussianMixture,
        DBSCAN,
        lambda: make_pipeline(StandardScaler(with_mean=False), KMeans(n_init=1)),
    )
    return st.sampled_from(makers).map(lambda make: make())


def bad_values(name):
    """Draw what no parameter should be, or hardly any."""
    odd = [
        None,
        True,
        "x",
        "",
        b"rbf",
        -1,
        0,
        -0.5,
        np.nan,
        np.inf,
        -np.inf,
        1j,
        [],
        {},
        (),
        object,
    ]
    odd += [
        np.int64(3),
        np.float32(0.5),
        np.timedelta64(1, "s"),
        np.array(2),
        np.array([1, 2]),
    ]
    odd += [np.array("rbf"), np.array(["rbf"], dtype=object), np.str_("rbf"), 0.0, 2.0]
    odd += [np.bool_(True), np.datetime64("nat"), set(), range(3), len, sp.eye_array(2)]
    if name != JOBS and name not in ENDLESS:  # so many processes would be started
        odd += [2**31, 2**63, 10**30, 10**400]
    return st.sampled_from(odd)


def values_of(name, kind):
    """Return the strategy for the values that a constraint of scikit-learn allows."""
    if kind is None:
        return st.none()
    if name == "random_state":
        seeds = st.sampled_from([0, 1, 2**32 - 1, np.int64(5), np.uint8(7)])
        makers = st.sampled_from([np.random.RandomState, np.random.default_rng])
        return usually(
            seeds, st.builds(lambda make, seed: make(seed), makers, st.integers(0, 9))
        )
    if name == JOBS:
        return st.sampled_from([1, 1, 1, 1, np.int64(1), 0, 1, 1, -(10**6)])
    if isinstance(kind, Interval):
        return _numbers(name, kind)
    if isinstance(kind, StrOptions):
        return st.sampled_from(sorted(kind.options))
    if isinstance(kind, HasMethods):
        return _estimators()
    if name == "estimator" and kind in (list, tuple):
        return st.lists(_estimators(), max_size=3).map(kind)
    if kind == "boolean":
        return st.sampled_from([True, False, np.bool_(True), np.False_])
    called = kind if isinstance(kind, str) else kind.__name__
    return st.sampled_from(VALUES[name, called])


def _numbers(name, kind):
    ends = [end for end in (kind.left, kind.right) if end is not None]
    if kind.type is Integral:
        low = kind.left if kind.left is not None else -2
        most = COSTLY.get(name, 50)
        numbers = [
            low,
            low + 1,
            low + 2,
            3,
            5,
            8,
            np.int64(2),
            np.uint8(3),
            np.int8(4),
            50,
        ]
        numbers += [] if name in {*COSTLY, *ENDLESS} else [2**31 - 1]
        allowed = [number for number in numbers if number <= most or name not in COSTLY]
    else:
        allowed = [
            0.5,
            1.0,
            1e-3,
            1e-12,
            1e-300,
            1e12,
            1e300,
            0.999,
            -1.0,
            np.inf,
            np.float32(0.25),
        ]
        allowed += [
            *ends,
            *(np.nextafter(end, 0.5) for end in ends),
            1,
            2,
            np.float64(2.5),
        ]
    return st.sampled_from([number for number in allowed if number in kind])


@st.composite
def parameters(draw, cls, quick, at_most=3, fixed=()):
    """Draw parameters of a class: quick ones, of which a few are changed, and rarely to bad ones.

    Those in `fixed` stay as they are.
    """
    constraints = cls._parameter_constraints
    names = sorted(constraints.keys() - set(fixed))
    assert names, cls
    changed = draw(st.lists(st.sampled_from(names), unique=True, max_size=at_most))
    given = dict(quick)
    for name in changed:
        valid = st.one_of([values_of(name, kind) for kind in constraints[name]])
        given[name] = draw(usually(valid, bad_values(name), times=8))
    return given
