"""One start whose rows several threads share: the same bits for any number of them."""

from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from internals import (
    SolverConfig,
    SymmetricObjective,
    bregman_nmf,
    run_starts,
    share_blocks,
)
from numpy.testing import assert_array_equal

import nmfcluster._optim.multiplicative as mu
from nmfcluster import SSNMFClusterer
from nmfcluster._utils import linalg
from nmfcluster.datasets import make_nested_rings
from nmfcluster.similarity import Explicit, Factored

SOLVERS = {
    "bregman": bregman_nmf,
    "tri": mu.multiplicative_trinmf,
    "gsg": mu.multiplicative_gsg,
}


def ends(solver, make, rows, monkeypatch):
    """Return where one batch ends for 1, 2 and 3 jobs, and the first without any blocks."""
    A = make()
    constant = A.squared_norm()

    def start(seed):
        return (
            np.random.default_rng(seed)
            .uniform(0.1, 1, size=(A.shape[0], 3))
            .astype(A.dtype)
        )

    starts = [partial(start, seed) for seed in range(2 if A.wide else 1)]
    found = []
    for size, n_jobs in ((10**6, 1), (rows, 1), (rows, 2), (rows, 3)):
        monkeypatch.setattr(linalg, "BLOCK_ROWS", size)
        config = SolverConfig(3, solver, len(starts), 25, -1.0, n_jobs)
        with share_blocks(n_jobs):  # a fresh matrix: its blocks are cut once
            objective = SymmetricObjective(make(), constant)
            found.append(run_starts(objective, starts, config, "toys"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("storage", ["dense", "sparse", "factored", "sum"])
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
def test_jobs_change_no_bit_of_a_start(solver, storage, dtype, monkeypatch):
    rng = np.random.default_rng(0)
    X = (rng.uniform(size=(83, 6)) * (rng.uniform(size=(83, 6)) < 0.5)).astype(dtype)
    make = {
        "dense": lambda: Explicit(X @ X.T),
        "sparse": lambda: Explicit(sp.csr_array(X @ X.T)),
        "factored": lambda: Factored(sp.csr_array(X)),
        "sum": lambda: Factored(X) + 0.1 * Explicit(sp.csr_array(X @ X.T)),
    }[storage]
    whole, alone, two, three = ends(solver, make, 20, monkeypatch)
    for one, *others in zip(alone, two, three, strict=True):
        for other in others:
            assert_array_equal(one.history, other.history)
            for a, b in zip(one.factors, other.factors, strict=True):
                assert a.dtype == dtype
                assert_array_equal(a, b)
    rtol = {np.float64: 1e-9, np.float32: 1e-3}[dtype]
    np.testing.assert_allclose(alone[0].history[:5], whole[0].history[:5], rtol=rtol)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("affinity", ["landmarks", "nearest_neighbors", "linear"])
def test_jobs_change_no_bit_of_a_fit(affinity, monkeypatch):
    X, _ = make_nested_rings(120, random_state=0)
    monkeypatch.setattr(linalg, "BLOCK_ROWS", 37)
    fits = [
        SSNMFClusterer(3, affinity=affinity, random_state=0, n_jobs=n_jobs).fit(
            X, must_link=[(0, 5), (1, 9)], cannot_link=[(0, 1)]
        )
        for n_jobs in (1, 3)
    ]
    for other in fits[1:]:
        assert_array_equal(fits[0].membership_, other.membership_)
        for a, b in zip(fits[0].loss_curves_, other.loss_curves_, strict=True):
            assert_array_equal(a, b)
