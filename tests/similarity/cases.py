"""Operators of every kind, each beside its dense definition."""

from itertools import product

import numpy as np
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from nmfcluster.similarity import Explicit, Factored, WeightedSum

exactly = {"rtol": 1e-10, "atol": 1e-10}

EXPLICIT = ["dense", "sparse", "dense >= 0"]
FACTORED = [
    f"{U} U, {C} C{scale}"
    for U, C, scale in product(
        ["dense", "sparse"], ["no", "diagonal", "dense", "sparse"], ["", ", scaled"]
    )
]
NESTED = [
    "core dense",
    "core dense U, diagonal C, scaled",
    "core sparse U, no C",
    "core sum",
]
KINDS = [*EXPLICIT, *FACTORED, *NESTED, "sum", "sum of factored", "sum of sums"]


def symmetric(rng, n, share=1.0):
    A = rng.normal(size=(n, n)) * (rng.uniform(size=(n, n)) < share)
    return A + A.T


def make(kind, n, rng, dtype=np.float64):
    """Return an operator and, in float64, the matrix it stands for."""
    if kind in EXPLICIT:
        A = symmetric(rng, n, 1.0 if kind == "dense" else 0.4).astype(dtype)
        if kind == "dense >= 0":
            A = abs(A)
        return Explicit(sp.csr_array(A) if kind == "sparse" else A), A.astype(
            np.float64
        )
    if kind in FACTORED:
        return make_factored(kind, n, rng, dtype)
    if kind in NESTED:
        C, core = make(kind.removeprefix("core "), 3, rng, dtype)
        U = (rng.normal(size=(n, 3)) * (rng.uniform(size=(n, 3)) < 0.7)).astype(dtype)
        scale = rng.uniform(0.5, 2, size=n).astype(dtype)
        dense = U.astype(np.float64) * scale[:, None]
        return Factored(sp.csr_array(U), C, scale), dense @ core @ dense.T
    parts = {
        "sum": ["dense", "sparse", "dense U, diagonal C"],
        "sum of factored": ["sparse U, dense C, scaled", "dense U, no C"],
        "sum of sums": ["sum", "sparse U, sparse C"],
    }[kind]
    weights = rng.normal(size=len(parts))
    terms, arrays = zip(*[make(part, n, rng, dtype) for part in parts], strict=True)
    dense = sum(w * array for w, array in zip(weights, arrays, strict=True))
    return WeightedSum(terms, weights), dense


def make_factored(kind, n, rng, dtype):
    r = int(rng.integers(1, 5))
    U = rng.normal(size=(n, r)) * (rng.uniform(size=(n, r)) < 0.7)
    U, scale = U.astype(dtype), None
    dense = U.astype(np.float64)
    if "scaled" in kind:
        scale = rng.uniform(0.5, 2, size=n).astype(dtype)
        dense = dense * scale[:, None].astype(np.float64)
    core = C = None
    if "diagonal" in kind:
        C = rng.normal(size=r)
        core = np.diag(C)
    elif "no C" not in kind:
        C = core = symmetric(rng, r, 0.6)
        C = sp.csr_array(C) if "sparse C" in kind else C
    core = np.eye(r) if core is None else core.astype(dtype).astype(np.float64)
    U = sp.csr_array(U) if kind.startswith("sparse") else U
    return Factored(U, C, scale), dense @ core @ dense.T


def coassociation(codes, weights=None, dtype=np.float64):
    """Return the weighted co-association of partitions; labels below 0 are missing."""
    codes = np.asarray(codes)
    n_clusters = codes.max(axis=0) + 1
    Z = [codes[:, [t]] == np.arange(k) for t, k in enumerate(n_clusters)]
    weights = np.full(len(Z), 1 / len(Z)) if weights is None else weights
    return Factored(
        sp.csr_array(np.hstack(Z).astype(dtype)), np.repeat(weights, n_clusters)
    )


def factors(rng, n, width=5, share=0.5):
    return rng.normal(size=(n, width)) * (rng.uniform(size=(n, width)) < share)


def stored_in_all_ways(U):
    """Return one matrix as operators of every kind, and as an array."""
    dense = U @ U.T
    return dense, {
        "dense": Explicit(dense),
        "sparse": Explicit(sp.csr_array(dense)),
        "factored": Factored(U),
        "factored, sparse": Factored(sp.csr_array(U)),
        "scaled": Factored(U / 2, scale=np.full(len(U), 2.0)),
        "sum": 0.5 * Factored(U) + Explicit(dense / 2),
    }


anything = given(st.sampled_from(KINDS), st.integers(0, 10**6), st.integers(1, 11))
