"""Sparse matrices whose parts contradict their shape: refused before they are converted."""

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import assert_in_our_words, raises_naming

from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SSNMFClusterer,
)
from nmfcluster._utils.validation import check_sparse_indices
from nmfcluster.model_selection import choose_n_clusters
from nmfcluster.partitions import base_partitions
from nmfcluster.stack import ViewStack

S = np.exp(-((np.arange(12)[:, None] - np.arange(12)) ** 2) / 8) * 1.0
FAR = 10**8


def broken(kind, part, value):
    """Return a matrix with one wrong number in a part, which SciPy does not see when it is made."""
    X = sp.csr_array(S).asformat(kind)
    if kind == "coo":
        X.coords[0 if part == "indptr" else 1][5] = value
    elif kind == "lil":
        X.rows[3][2] = value
    else:
        getattr(X, part)[1] = value
    return X


BROKEN = [
    (kind, part, value)
    for kind in ("csr", "csc", "bsr", "coo", "lil")
    for part in ("indices", "indptr")
    for value in (len(S), FAR, -FAR)[part == "indptr" :]
]


@pytest.mark.parametrize(("kind", "part", "value"), BROKEN)
def test_every_kind_is_checked(kind, part, value):
    with raises_naming(ValueError, "X", "(12, 12)"):
        check_sparse_indices(broken(kind, part, value), "X")


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
def test_what_is_right_passes_and_is_not_written_to(kind):
    X = sp.csr_array(S).asformat(kind)
    if kind in ("csr", "csc", "bsr"):
        X.data, X.indices = np.append(X.data, X.data[:1], 0), np.append(X.indices, FAR)
        parts = X.data, X.indices, X.indptr
    check_sparse_indices(X, "X")
    if kind in ("csr", "csc", "bsr"):  # what no entry uses is still there
        assert all(
            a is b for a, b in zip(parts, (X.data, X.indices, X.indptr), strict=True)
        )


FITTED = NMFConsensus(2, n_estimators=3, random_state=0).fit(S)
PROGRAMS = NMFMetaCluster(2, n_init=2, random_state=0).fit(S)
READS = {
    "consensus": NMFConsensus(2).fit,
    "consensus of similarities": NMFConsensus(2, affinity="precomputed").fit,
    "consensus of labels": NMFConsensus(2, affinity="partitions").fit,
    "predict": FITTED.predict,
    "transform": FITTED.transform,
    "pairs": SSNMFClusterer(2).fit,
    "must_link": lambda X: PairwiseConstraints(12, must_link=X),
    "meta": NMFMetaCluster(2).fit,
    "back from memberships": PROGRAMS.inverse_transform,
    "fusion of views": lambda X: SimilarityFusionNMF(2).fit(views=[S[:, :5], X]),
    "fusion of similarities": lambda X: SimilarityFusionNMF(2).fit(similarities=[S, X]),
    "a stack of views": lambda X: ViewStack({"a": X}),
    "base partitions": lambda X: base_partitions(X, n_clusters=2),
    "choose_n_clusters": lambda X: choose_n_clusters(NMFConsensus(2), X),
}


@pytest.mark.parametrize("name", READS)
def test_all_that_reads_sparse_matrices_refuses_those(name):
    for kind in ("csc", "csr"):
        for part, value in (("indices", FAR), ("indptr", FAR)):
            with pytest.raises((TypeError, ValueError)) as caught:
                READS[name](broken(kind, part, value))
            assert_in_our_words(caught)
            if name != "consensus of labels":  # which are in no sparse table
                assert "entries in its shape (12, 12)" in str(caught.value)
