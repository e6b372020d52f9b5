"""What NMFMetaCluster refuses, and what it says: the parameter, its value, what is allowed."""

import re
import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from refusals import (
    Case,
    assert_in_our_words,
    assert_refused,
    changed,
    parametrize,
    raises_naming,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from nmfcluster import NMFMetaCluster

rng = np.random.RandomState(0)
X = rng.uniform(size=(20, 6))


def model(**parameters):
    small = {
        "n_clusters": 2,
        "n_estimators": 3,
        "n_init": 1,
        "max_iter": 30,
        "tol": 1e-2,
    }
    return NMFMetaCluster(**small | {"random_state": 0} | parameters)


FLOAT32 = X.astype(np.float32)
INFINITE = ("X", "infinity")
NEGATIVE = ("Negative", "X")

# name, what the message must hold, X
TABLES = [
    ("NaN in all of a row", ("X", "row 3", "NaN"), changed(X, 3, np.nan)),
    ("NaN in all of a column", ("X", "column 2", "NaN"),
     changed(X, (slice(None), 2), np.nan)),
    ("NaN beside zeros", ("X", "0"), changed(0 * X, (3, 2), np.nan)),
    ("negative beside NaN, sparse", NEGATIVE,
     sp.csr_array(changed(changed(X, (3, 2), -1), (4, 2), np.nan))),
    ("entries that sum to a negative one", NEGATIVE,
     sp.coo_array(([1.0, -2.0, 3.0], ([0, 0, 1], [0, 0, 1])), shape=(3, 3))),
    ("all 0", ("X", "0"), 0 * X),
    ("one sample", "n_samples=1", X[:1]),
    ("no sample", "0 sample", X[:0]),
    ("a vector", ("2D", "1D"), X[0]),
    ("nothing", ("X", "None"), None),
    ("words in a data frame", ("'a'", "'x'"), pd.DataFrame({"a": list("xy"), "b": [1, 2]})),
    ("complex", "Complex data", X + 1j),
    ("too large to be squared in passing", ("X", "float64", "squares"), X * 1e153),
    ("too small", ("X", "float64", "squares", "9.88e-171"), X * 1e-170),
    ("too small for float32, sparse", ("X", "float32", "squares"),
     sp.csr_array(FLOAT32 * np.float32(1e-25))),
]  # fmt: skip

# the message must hold the name, the value and what is allowed
PARAMETERS = [
    ({"n_clusters": 0}, ("'n_clusters'", "int", "0")),
    ({"n_clusters": 21}, ("n_clusters=21", "n_samples=20")),
    ({"base_n_clusters": 2**31 - 1}, ("base_n_clusters=2147483647", "n_samples")),
    ({"base_n_clusters": (1, 2**63)}, ("base_n_clusters", "2147483647")),
    ({"base_n_clusters": (5, 3)}, ("base_n_clusters", "(5, 3)")),
    ({"base_n_clusters": (2.0, 3.0)}, ("base_n_clusters", "(2.0, 3.0)")),
    ({"n_clusters": 10, "n_estimators": 2, "base_n_clusters": 3},
     ("n_estimators=2", "base_n_clusters=3", "6", "clusters", "n_clusters=10")),
    ({"n_clusters": 10, "n_estimators": 1, "base_n_clusters": (2, 9)},
     ("n_estimators=1", "base_n_clusters=(2, 9)", "clusters", "n_clusters=10")),
    ({"meta": "x"}, ("'meta'", "'ptf'", "'x'")),
    ({"sparsity": -1}, ("'sparsity'", "-1")),
    ({"sparsity": 0.1, "loss": "kullback-leibler"},
     ("sparsity=0.1", "loss='frobenius'", "'kullback-leibler'")),
    ({"resample": 1.0}, ("'resample'", "1")),
    ({"fixed_components": [[1.0, 2.0]]}, ("fixed_components", "6", "(1, 2)")),
    ({"fixed_components": X[:3]}, ("fixed_components", "n_clusters=2", "(3, 6)")),
    ({"fixed_components": -X[:1]}, ("Negative", "fixed_components")),
    ({"fixed_components": 0 * X[:1]}, ("fixed_components", "0")),
    ({"fixed_components": X[:1], "sparsity": 0.1}, ("fixed_components", "sparsity=0", "0.1")),
    ({"fixed_components": X[:2], "base_n_clusters": 1},
     ("base_n_clusters=1", "3", "clusters", "2")),
    ({"fixed_components": X[:1], "n_clusters": 9, "n_estimators": 2, "base_n_clusters": 4},
     ("n_estimators=2", "base_n_clusters=4", "8", "clusters")),
    ({"memory": 3}, ("'memory'", "3")),
    ({"threshold": 0}, ("'threshold'", "0")),
]  # fmt: skip


def named(parameters):
    """Return a name for settings that is the same in every process."""
    shown = [f"{name}={value!r}" for name, value in parameters.items()]
    return re.sub(" at 0x[0-9A-F]+", "", ", ".join(shown))


EITHER = (ValueError, TypeError)
CASES = [Case(*case, error=EITHER) for case in TABLES]
CASES += [
    Case(named(chosen), says, X, {}, chosen, EITHER) for chosen, says in PARAMETERS
]
CASES += [
    Case(f"nothing left, {sparsity} {penalty}", "sparsity", X, {},
         {"penalty": penalty, "sparsity": sparsity})
    for penalty, sparsity in (("l1", 1e308), ("l2", 1e200), ("l1_columns", 1e200))
]  # fmt: skip
CASES += [
    Case(f"in the unit of X, {sparsity}", f"sparsity={sparsity}", X, {},
         {"penalty": "l1", "sparsity": sparsity})
    for sparsity in (3.0,)
]  # fmt: skip
HOLES = changed(X, (3, 2), np.nan)
CASES += [
    Case("NaN and a penalty", ("X", "NaN", "sparsity=0.1"), HOLES, {},
         {"sparsity": 0.1}),
]  # fmt: skip
WEIGHTS = [
    ("too few", np.ones(19), ("sample_weight", "20", "shape (19,)")),
    ("one for all", 2.0, ("sample_weight", "20", "shape ()")),
    ("negative", -np.ones(20), ("sample_weight", "at least 0")),
    ("one above 0", np.eye(20)[0], ("2", "1")),
]
CASES += [
    Case(f"sample_weight, {name}", says, X, {"sample_weight": weights}, {}, EITHER)
    for name, weights, says in WEIGHTS
]


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X)


@pytest.mark.sampled(2)
@parametrize(CASES)
def test_bad_input_is_named_and_changes_nothing(case, fitted):
    assert_refused(case, fitted)


def test_runs_without_any_cluster_do_not_spoil_the_others():
    """Where one entry outweighs all, the penalty leaves nothing of some runs."""
    table = changed(X, (0, 0), 1e40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = model(sparsity=0.1, max_iter=100).fit(table)
    assert found.partitions_.shape == (20, 3)
    assert np.isfinite(found.confidence_).all()
    assert np.isfinite(found.components_).all()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("penalty", "dtype", "scale"),
    [
        ("l1_columns", np.float32, 1e-14),
        ("l1_columns", np.float32, 1e12),
        ("l1_columns", float, 1e-100),
        ("l2", float, 1e100),
    ],
)
def test_what_is_not_refused_has_room(penalty, dtype, scale):
    """Squares of squares would overflow here, and be 0 for small numbers."""
    options = {"sparsity": 0.1, "penalty": penalty, "max_iter": 300, "tol": 1e-5}
    expected = model(**options).fit(X.astype(dtype))
    found = model(**options).fit((X * scale).astype(dtype))
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    np.testing.assert_allclose(found.components_, expected.components_, atol=2e-3)


# --- new samples ---------------------------------------------------------------------------------


def test_new_samples_must_be_like_those_of_fit(fitted):
    refused = [
        (sp.csr_array(X[:, :3]), ("X", "3", "features", "NMFMetaCluster", "6")),
        (changed(X, (3, 2), np.inf), INFINITE),
        (-X, NEGATIVE),
        (X[0], ("2D", "1D")),
        (X[:0], "0 sample"),
        (np.array([["a"] * 6]), ("X", "dtype", "<U1")),
        (None, ("X", "None")),
    ]
    for (new, says), ask in product(refused, (fitted.predict, fitted.transform)):
        with raises_naming(ValueError, says):
            ask(new)


def test_strengths_must_be_as_transform_returns_them(fitted):
    refused = [
        (sp.csr_array(X), ("X", "2", "columns", "6")),
        (changed(X[:, :2], (3, 1), np.nan), ("X", "NaN")),
        (X[0, :2], ("2D", "1D")),
        ([["a", "b"]], ("X", "numbers")),
    ]
    for strengths, says in refused:
        with raises_naming(ValueError, says):
            fitted.inverse_transform(strengths)


def test_samples_that_are_asked_for_must_be_named_and_exist(fitted):
    for indices in ([20], [-21], np.ones(19, dtype=bool)):
        with raises_naming(ValueError, "20") as caught:
            fitted.consensus_matrix(indices)
        assert_in_our_words(caught)
    for indices in ([0, 0.5], [np.nan], "a", ["a"], [None], [[0, 1]], 3, {1}, X > 2):
        with raises_naming(TypeError, "integers") as caught:
            fitted.consensus_matrix(indices)
        assert_in_our_words(caught)


def test_nothing_can_be_asked_before_fit():
    asked = {
        "predict": [X],
        "transform": [X],
        "inverse_transform": [X],
        "consensus_matrix": [],
        "get_feature_names_out": [],
    }
    for method, arguments in asked.items():
        with raises_naming(NotFittedError, "NMFMetaCluster"):
            getattr(model(), method)(*arguments)
