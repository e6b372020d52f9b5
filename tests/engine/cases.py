"""Objectives of all kinds, the loss of one in dense arrays, and runs of a solver."""

from functools import partial

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from similarity.cases import coassociation

from nmfcluster._engine.loop import StopRule, iterate
from nmfcluster._engine.multiplicative import multiplicative_gsg
from nmfcluster._engine.symmetric import SymmetricObjective
from nmfcluster.partitions.problem import SeenPairsObjective
from nmfcluster.similarity import Explicit, Factored, inner

full_gsg = partial(multiplicative_gsg, full=True)
seeds = st.integers(0, 10**6)


def solved(steps, max_iter, tol, scale):
    return iterate(steps, StopRule(max_iter, tol), scale)


def of(A):
    return SymmetricObjective(A, inner(A, A))


def signed(rng, n):
    A = rng.normal(size=(n, n))
    return A + A.T


def incomplete_table(rng, n, T):
    """Draw labels of which some are missing; all rows are taken as distinct, with counts."""
    codes = rng.integers(0, 3, size=(n, T))
    codes[rng.uniform(size=(n, T)) < 0.4] = -1
    codes[np.arange(n), rng.integers(T, size=n)] = 0
    codes[0], codes[1] = 0, -1  # every partition has a sample; one sample is in none
    weights = rng.uniform(0.2, 1, size=T)
    return codes, weights / weights.sum()


def objective_of_table(codes, weights):
    seen = sp.csr_array((codes >= 0).astype(float))
    sizes = [(codes[:, t] == c).sum() for t in range(codes.shape[1]) for c in range(3)]
    constant = float((np.repeat(weights, 3) * np.square(sizes)).sum())
    return SeenPairsObjective(coassociation(codes, weights), constant, seen, weights)


def kinds(rng, n):
    """Return objectives of all kinds with A, for missing labels with A's nonnegative part."""
    X = rng.normal(size=(n, 3))
    codes, weights = incomplete_table(rng, n, 4)
    return {
        "signed": of(Explicit(signed(rng, n))),
        "signed sparse": of(Explicit(sp.csr_array(signed(rng, n) * (signed(rng, n) > 1)))),
        "semidefinite": of(Factored(X)),
        "nonnegative": of(Explicit(abs(X @ X.T))),
        "constrained": of(Factored(abs(X)) - 2 * Explicit(sp.csr_array(np.eye(n, k=0)))),
        "coassociation": of(coassociation(rng.integers(0, 3, size=(n, 5)))),
        "missing": objective_of_table(codes, weights),
    }


def dense_pieces(objective, H):
    """Return J / 4 and its gradient at H, from dense arrays."""
    A = objective.A.toarray()
    N = np.ones(A.shape)
    if isinstance(objective, SeenPairsObjective):
        seen = objective.observed.toarray()
        N = (seen * objective.weights) @ seen.T
    J = objective.constant + (N * (H @ H.T) ** 2).sum() - 2 * (A * (H @ H.T)).sum()
    return J / 4, (N * (H @ H.T)) @ H - A @ H


KINDS = list(kinds(np.random.default_rng(0), 6))
