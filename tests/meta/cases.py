"""Tables, starts and runs that the tests of metaclustering share."""

from itertools import islice

import numpy as np
from internals import Solution, SolverConfig, iterate
from scipy.special import kl_div

from nmfcluster.meta.runs import Runs
from nmfcluster.meta.squares import hals


def table(rng, n, p, k=3, noise=0.1):
    """Draw the product of two factors of which 40 % are 0, with noise."""
    W, H = (
        rng.gamma(1.0, size=s) * (rng.uniform(size=s) < 0.6) for s in ((n, k), (k, p))
    )
    return np.maximum(W @ H + noise * rng.normal(size=(n, p)), 0) + 1e-3


def planted(rng, k, n, p):
    """Draw W and H of which a row and a column of WH are a cluster's own: no others give WH."""
    W, H = (
        rng.uniform(0.2, 1, s) * (rng.uniform(size=s) < 0.5) for s in ((n, k), (k, p))
    )
    W[:k], H[:, :k] = np.eye(k), np.eye(k)
    return W, H


def begin(rng, n_starts, k, n, p):
    return rng.uniform(0.1, 1, size=(n_starts, k, n + p))


def kullback_leibler(X, Y):
    """Return the sum of x log (x / y) - x + y over the entries of X that are observed."""
    return kl_div(X, Y)[~np.isnan(X)].sum()


def ends(steps, n_updates):
    """Return the factors and losses of the starts after this many updates."""
    return next(islice(steps, n_updates, None))


def solved(steps, n_updates, tol=-1):
    """Return where the starts of a solver end."""
    return iterate(steps, SolverConfig(1, None, 1, n_updates, tol, None), scale=1)


def multiplicative(X, F):
    """Yield W, H and the loss of one start under the rules of Lee and Seung, as Badea has them."""
    W, H = F[:, : len(X)].T, F[:, len(X) :]
    tiny = np.finfo(float).tiny
    while True:
        yield W, H, ((X - W @ H) ** 2).sum() / 2
        H = H * (W.T @ X) / np.maximum(W.T @ W @ H, tiny)
        W = W * (X @ H.T) / np.maximum(W @ (H @ H.T), tiny)


def runs_of(X):
    """Return W (J, n) and H (J, p) of seven clusters that are like rows and columns of X."""
    rows, columns = np.arange(7) % X.shape[0], (np.arange(7) * 2) % X.shape[1]
    W, H = (
        X[:, columns].T ** 1.5,
        X[rows] / np.linalg.norm(X[rows], axis=1, keepdims=True),
    )
    return np.ascontiguousarray(W), np.ascontiguousarray(H)


def plan_of(k, solver=hals, n_init=5, max_iter=500, tol=1e-9, n_jobs=None):
    return SolverConfig(k, solver, n_init, max_iter, tol, n_jobs)


def solution(W, H, loss=1.0, converged=True):
    return Solution((W, H), loss, np.array([loss]), converged)


def random_runs(rng, sizes, n=7, p=9, zeros=0.4):
    solutions = []
    for size in sizes:
        W, H = rng.uniform(size=(n, size)), rng.uniform(size=(size, p))
        W *= rng.uniform(size=W.shape) > zeros
        H *= rng.uniform(size=H.shape) > zeros
        solutions.append(solution(W, H, rng.uniform(), rng.uniform() < 0.5))
    return Runs.of(solutions)


def equal_runs(rng, W, H, n_runs):
    """Return runs that found W and H, each in an order and at a scale of its own, and the orders.

    Row j of the runs is cluster ``orders[j]``.
    """
    solutions, orders = [], []
    for _ in range(n_runs):
        order, scale = rng.permutation(len(H)), rng.uniform(0.1, 10, size=len(H))
        solutions.append(solution(W[:, order] / scale, H[order] * scale[:, None]))
        orders.append(order)
    return Runs.of(solutions), np.concatenate(orders)
