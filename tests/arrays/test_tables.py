"""What is handed in as a table of numbers and is none, or is one in an unusual form."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from nmfcluster import (
    KernelStack,
    NMFConsensus,
    NMFMetaCluster,
    SimilarityFusionNMF,
    SSNMFClusterer,
)
from nmfcluster._arrays.tables import canonical

X, _ = make_blobs(30, n_features=5, centers=3, random_state=0)
X = X - X.min()

ESTIMATORS = {
    "NMFConsensus": NMFConsensus(3, n_estimators=5, random_state=0),
    "SSNMFClusterer": SSNMFClusterer(3, random_state=0),
    "SimilarityFusionNMF": SimilarityFusionNMF(3, affinity="rbf", n_init=2, random_state=0),
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
    "masked": (np.ma.masked_array(X, X > 3), ValueError, "masked entries.*SimpleImputer"),
    "dates": (X.astype("datetime64[s]"), ValueError, r"datetime64\[s\]"),
    "times": (X.astype("timedelta64[s]"), ValueError, r"timedelta64\[s\]"),
    "bytes": (X.astype("S4"), ValueError, "S4"),
    "text": (X.astype(str), ValueError, "of dtype <U.*encode it"),
    "a column of words": (with_column(["x"] * 30), ValueError, "column 'b' .* 'x'"),
    "a word in a column": (with_column([1] * 29 + ["x"]), ValueError, "column 'b' .* 'x'"),
    "a column of dates": (
        with_column(pd.date_range("2020", periods=30)),
        ValueError,
        "column 'b' .*datetime64",
    ),
    "two tables": ([X, X[:, :1]], TypeError, "list of 2 tables.*hstack.*SimilarityFusionNMF"),
    "tables by name": ({"a": X}, TypeError, "dict of 1"),
    "AnnData": (AnnData(), TypeError, r"adata\.X.*to_df\(\)"),
    "a lazy frame": (LazyFrame(), TypeError, "give an array or a data frame"),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_what_is_no_table_of_numbers_is_refused_with_the_cure(name):
    for table, kind, says in REFUSED.values():
        if isinstance(table, dict) and name == "SimilarityFusionNMF":
            assert ESTIMATORS[name].fit(table).source_names_ == ("a",)  # views
            continue
        with pytest.raises(kind, match=says):
            ESTIMATORS[name].fit(table)


@pytest.mark.parametrize("form", ["masked", "tables by name", "AnnData", "a lazy frame"])
def test_tables_of_labels_are_opened_too(form):
    table, kind, says = REFUSED[form]
    with pytest.raises(kind, match=says.replace("X", ".*")):
        NMFConsensus(3).fit(X, partitions=table)


def in_parts(dense):
    """Return CSR with every entry stored in two halves, and wide indices."""
    n, m = dense.shape
    columns = np.tile(np.repeat(np.arange(m), 2), n)
    parts = (np.repeat(dense.ravel() / 2, 2), columns, 2 * m * np.arange(n + 1))
    matrix = sp.csr_array(parts, shape=dense.shape)
    matrix.indices, matrix.indptr = (a.astype(np.int64) for a in (matrix.indices, matrix.indptr))
    return matrix


def test_entries_are_stored_once_and_what_was_handed_in_stays():
    matrix = in_parts(X)
    found = canonical(matrix)
    assert found.nnz == X.size
    assert matrix.nnz == 2 * X.size
    assert found.indices.dtype == found.indptr.dtype == np.int32
    assert_array_equal(found.toarray(), X)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if name != "KernelStack"])
def test_entries_in_parts_and_wide_indices_change_nothing(name):
    whole, parts = (ESTIMATORS[name].fit_predict(form) for form in (sp.csr_array(X), in_parts(X)))
    assert adjusted_rand_score(parts, whole) == 1


def test_sparse_dictionaries_are_tables():
    assert_array_equal(
        ESTIMATORS["SSNMFClusterer"].fit_predict(sp.dok_array(X)),
        ESTIMATORS["SSNMFClusterer"].fit_predict(X),
    )
