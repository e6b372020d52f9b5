"""Objectives of all kinds, the loss of one in dense arrays, and runs of a solver."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from internals import SolverConfig, SymmetricObjective, iterate
from similarity.cases import coassociation

from nmfcluster.similarity import Explicit, Factored, inner

seeds = st.integers(0, 10**6)


def solved(steps, max_iter, tol, scale):
    return iterate(steps, SolverConfig(1, None, 1, max_iter, tol, None), scale)


def of(A):
    return SymmetricObjective(A, inner(A, A))


def signed(rng, n):
    A = rng.normal(size=(n, n))
    return A + A.T


def kinds(rng, n):
    """Return objectives of all kinds of A."""
    X = rng.normal(size=(n, 3))
    return {
        "signed": of(Explicit(signed(rng, n))),
        "signed sparse": of(
            Explicit(sp.csr_array(signed(rng, n) * (signed(rng, n) > 1)))
        ),
        "semidefinite": of(Factored(X)),
        "nonnegative": of(Explicit(abs(X @ X.T))),
        "constrained": of(
            Factored(abs(X)) - 2 * Explicit(sp.csr_array(np.eye(n, k=0)))
        ),
        "coassociation": of(coassociation(rng.integers(0, 3, size=(n, 5)))),
    }


def dense_pieces(objective, H):
    """Return J / 4 and its gradient at H, from dense arrays."""
    A = objective.A.toarray()
    J = objective.constant + ((H @ H.T) ** 2).sum() - 2 * (A * (H @ H.T)).sum()
    return J / 4, H @ H.T @ H - A @ H


KINDS = list(kinds(np.random.default_rng(0), 6))
