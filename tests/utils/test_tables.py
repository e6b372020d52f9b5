"""What is handed in as a table of numbers and is none, or is one in an unusual form."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from refusals import assert_in_our_words, changed, named, raises_naming
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import (
    KernelStack,
    NMFConsensus,
    NMFMetaCluster,
    SimilarityFusionNMF,
    SSNMFClusterer,
)
from nmfcluster._utils.validation import canonical_csr
from nmfcluster.affinity import make_affinity, path_kernel
from nmfcluster.display import BiclusterDisplay
from nmfcluster.model_selection import choose_n_clusters
from nmfcluster.partitions import base_partitions

X, _ = make_blobs(30, n_features=5, centers=3, random_state=0)
X = X - X.min()

ESTIMATORS = {
    "NMFConsensus": NMFConsensus(3, n_estimators=5, random_state=0),
    "SSNMFClusterer": SSNMFClusterer(3, random_state=0),
    "SimilarityFusionNMF": SimilarityFusionNMF(
        3, affinity="rbf", n_init=2, random_state=0
    ),
    "NMFMetaCluster": NMFMetaCluster(3, n_estimators=5, random_state=0),
    "KernelStack": KernelStack(),
}


class AnnData:
    """As much of the class as the message needs."""

    obs, X = None, X

    def to_df(self):
        return pd.DataFrame(X)


class LazyFrame:
    """A table that is not there yet."""


def with_column(values):
    return pd.DataFrame({"a": X[:, 0], "b": values})


REFUSED = {
    "masked": (
        np.ma.masked_array(X, X > 3),
        ValueError,
        ("masked", "SimpleImputer"),
    ),
    "dates": (X.astype("datetime64[s]"), ValueError, "datetime64[s]"),
    "times": (X.astype("timedelta64[s]"), ValueError, "timedelta64[s]"),
    "bytes": (X.astype("S4"), ValueError, ("X", "|S4")),
    "text": (X.astype(str), ValueError, ("X", "<U32")),
    "a column of words": (with_column(["x"] * 30), ValueError, ("'b'", "'x'")),
    "a word in a column": (
        with_column([1] * 29 + ["x"]),
        ValueError,
        ("'b'", "'x'"),
    ),
    "a column of dates": (
        with_column(pd.date_range("2020", periods=30)),
        ValueError,
        ("'b'", "datetime64"),
    ),
    "two tables": (
        [X, X[:, :1]],
        TypeError,
        ("list", "2", "SimilarityFusionNMF"),
    ),
    "tables by name": ({"a": X}, TypeError, ("dict", "1")),
    "AnnData": (AnnData(), TypeError, "to_df()"),
    "a lazy frame": (LazyFrame(), TypeError, "LazyFrame"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_is_no_table_of_numbers_is_refused_with_the_cure(name):
    for table, kind, says in REFUSED.values():
        if isinstance(table, dict | list) and name == "SimilarityFusionNMF":
            assert len(ESTIMATORS[name].fit(table).source_names_) == len(table)  # views
            continue
        with raises_naming(kind, says):
            ESTIMATORS[name].fit(table)


@pytest.mark.parametrize(
    "form", ["masked", "tables by name", "AnnData", "a lazy frame"]
)
def test_tables_of_labels_are_opened_too(form):
    table, kind, says = REFUSED[form]
    names = [
        name for name in ([says] if isinstance(says, str) else says) if name != "X"
    ]
    with raises_naming(kind, *names):
        NMFConsensus(3).fit(X, partitions=table)


KNOWN = base_partitions(
    X, [KMeans(3), AgglomerativeClustering(3)], n_estimators=2, random_state=0
)
NEAR = make_affinity(X, "rbf")
MEMBERS = np.ones((2, 30), dtype=bool), np.ones((2, 5), dtype=bool)

#: functions of a table that are no fit, and what they call it; all read what estimators read
READERS = {
    **{
        f"make_affinity {name}": (
            "X",
            lambda T, name=name: make_affinity(T, name).block(),
        )
        for name in ("nearest_neighbors", "landmarks", "linear", "cosine", "rbf")
    },
    "new samples": ("X", NEAR.between),
    "products": ("X", lambda T: NEAR.cross(T, np.eye(30))),
    "a callable": ("X", lambda T: make_affinity(T, rbf_kernel).block()),
    "path_kernel": ("X", path_kernel),
    "path_kernel's Y": ("Y", lambda T: path_kernel(X, T)),
    "base_partitions": (
        "X",
        lambda T: base_partitions(T, n_estimators=3, random_state=0).labels,
    ),
    "predict": ("X", lambda T: KNOWN.predict(T, X)),
    "predict's X_train": ("X_train", lambda T: KNOWN.predict(X, T)),
    "choose_n_clusters": (
        "X",
        lambda T: choose_n_clusters(KMeans(n_init=1), T, [2], random_state=0).votes,
    ),
    "biclusters": (
        "X",
        lambda T: draw(BiclusterDisplay.from_biclusters, T, *MEMBERS).matrix,
    ),
}
DENSE_ALONE = ("path_kernel", "predict")  # of a clusterer that takes no others
FORMS = {
    "list": X.tolist(),
    "frame": pd.DataFrame(X, columns=list("abcde")),
    "polars": pl.DataFrame(
        {name: column for name, column in zip("abcde", X.T, strict=True)}
    ),
    "read-only": np.broadcast_to(X, X.shape),
    "longdouble": X.astype(np.longdouble),
    **{kind: getattr(sp, f"{kind}_array")(X) for kind in ("csr", "coo", "dia")},
}


def draw(method, *given):
    return method(*given, ax=Figure().subplots())


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", READERS)
def test_all_that_reads_a_table_reads_it_in_every_form(name):
    _, read = READERS[name]
    expected = read(X)
    for form, table in FORMS.items():
        if sp.issparse(table) and name.startswith(DENSE_ALONE):
            continue
        with named(form):
            found = read(table)
            if isinstance(found, dict):
                assert found == expected
            else:
                dense = (
                    array.toarray() if sp.issparse(array) else array
                    for array in (found, expected)
                )
                assert_allclose(*dense, atol=1e-6)


@pytest.mark.parametrize("name", READERS)
def test_all_that_reads_a_table_refuses_by_name_what_is_none(name):
    called, read = READERS[name]
    holes, beyond = (changed(X, (1, 2), bad) for bad in (np.nan, np.inf))
    in_cells = np.empty(len(X), dtype=object)
    in_cells[:] = X.tolist()
    wrong = {
        "nothing": (None, (called, "None")),
        "text": ("some text", (called, "'some text'")),
        "a class": (np.ndarray, (called, "numpy.ndarray")),
        "ragged": ([*X.tolist()[:-1], [1.0]], (called, "rows", "distance matrix")),
        "series in cells": (in_cells, (called, "list", "distance matrix")),
        "series of three axes": (X[:, :, None], ("dim 3", "distance matrix")),
        "a list of series": (
            list(X[:, :, None]),
            (called, "tables", "distance matrix"),
        ),
        "one axis, sparse": (
            sp.coo_array(X[:, 0]),
            (called, "rows", "columns"),
        ),
        "NaN": (holes, (called, "NaN", "SimpleImputer")),
        "infinity": (beyond, (called, "infinity")),
        "no sample": (X[:0], "0"),
        "times": (X.astype("m8[s]"), (called, "numbers")),
        "a number": (3, "3"),
        "a set": (
            set(range(30)),
            called,
        ),
    }
    for form, (table, says) in wrong.items():
        if (form, name) in (("NaN", "biclusters"), ("nothing", "path_kernel's Y")):
            continue  # means leave it out; and it is the default
        if name == "choose_n_clusters" and form.startswith("series"):
            continue  # the estimator, which may take them, refuses them
        if form == "NaN" and name.startswith("predict"):
            continue  # clusterers that were given may take it
        with named(form), raises_naming((TypeError, ValueError), says) as caught:
            read(table)
        assert_in_our_words(caught)


def test_other_numbers_of_rows_or_columns_are_refused():
    for call, says in (
        (lambda: NEAR.between(X[:, :2]), ("X", "5", "columns", "2")),
        (lambda: KNOWN.predict(X[:, :2], X), ("X", "5", "columns", "2")),
        (lambda: KNOWN.predict(X, X[:, :2]), ("X_train", "5", "columns", "2")),
        (lambda: KNOWN.predict(X, X[:7]), ("X_train", "30", "rows", "7")),
        (lambda: KNOWN.predict(X), ("X_train", "None")),
        (
            lambda: make_affinity(X[:5] @ X[:5].T + np.tri(5), "precomputed"),
            "symmetric",
        ),
    ):
        with raises_naming(ValueError, says):
            call()


def test_a_table_that_is_no_array_but_can_be_one_is_read():
    class Interface:
        __array_interface__ = X.__array_interface__

    fixed = NMFMetaCluster(
        3, n_estimators=5, random_state=0, fixed_components=np.ones((1, 5))
    )
    assert_array_equal(fixed.fit_predict(Interface()), fixed.fit_predict(X))
    assert_array_equal(NEAR.between(Interface()), NEAR.between(X))


def in_parts(dense):
    """Return CSR with every entry stored in two halves, and wide indices."""
    n, m = dense.shape
    columns = np.tile(np.repeat(np.arange(m), 2), n)
    parts = (np.repeat(dense.ravel() / 2, 2), columns, 2 * m * np.arange(n + 1))
    matrix = sp.csr_array(parts, shape=dense.shape)
    matrix.indices, matrix.indptr = (
        a.astype(np.int64) for a in (matrix.indices, matrix.indptr)
    )
    return matrix


def test_entries_are_stored_once_and_what_was_handed_in_stays():
    matrix = in_parts(X)
    found = canonical_csr(matrix)
    assert found.nnz == X.size
    assert matrix.nnz == 2 * X.size
    assert found.indices.dtype == found.indptr.dtype == np.int32
    assert_array_equal(found.toarray(), X)


def test_entries_in_parts_are_read_and_not_changed():
    for matrix in (in_parts(X), in_parts(X).tocoo(), in_parts(X).tocsc()):
        for name in ("nearest_neighbors", "linear", "rbf"):
            found = make_affinity(matrix, name).similarity.toarray()
            assert_allclose(
                found, make_affinity(X, name).similarity.toarray(), atol=1e-6
            )
        assert matrix.nnz == 2 * X.size


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "KernelStack"])
def test_entries_in_parts_and_wide_indices_change_nothing(name):
    whole, parts = (
        ESTIMATORS[name].fit_predict(form) for form in (sp.csr_array(X), in_parts(X))
    )
    assert adjusted_rand_score(parts, whole) == 1


def test_sparse_dictionaries_are_tables():
    assert_array_equal(
        ESTIMATORS["SSNMFClusterer"].fit_predict(sp.dok_array(X)),
        ESTIMATORS["SSNMFClusterer"].fit_predict(X),
    )
