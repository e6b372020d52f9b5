"""Simple multiple kernel k-means: k-means of a sum of kernels, whose weights are learned.

X. Liu, E. Zhu, J. Liu, T. Hospedales, Y. Wang, M. Wang, SimpleMKKM: Simple multiple kernel k-means,
arXiv:2005.04975; X. Liu, IEEE Transactions on Pattern Analysis and Machine Intelligence, 2022. It
minimises over weights gamma of the kernels, which sum to 1, the largest trace(K H H') of any H with
H'H = I, where K is the sum of gamma_l^2 K_l. Kernels are centred and have diagonal 1, and k-means
clusters the rows of H, of length 1 as in the authors' code.

The objective is convex in gamma, with the gradient 2 gamma_l trace(K_l H H'). Algorithm 1 descends
along the reduced gradient, with line search; here a step is scaled, to where the objective would be
least if H stayed. That ends at the same weights after a fraction of the eigenproblems.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh
from sklearn.cluster import KMeans
from sklearn.preprocessing import KernelCenterer, normalize

from benchmarks.methods import SIMILARITIES, Method, timed
from nmfcluster import SimilarityStack

STEEP = (
    1e-4  # share of the decrease that the gradient promises with which a step is taken
)
SMALL = 1e-4  # change of every weight at which the descent ends


def kernel(S: Any) -> np.ndarray:
    """Return a similarity as a centred kernel of diagonal 1.

    One with eigenvalues below 0, as that of a graph, gets them all raised by the least: that
    leaves the best partitions of a centred kernel as they are.
    """
    S = S.toarray() if hasattr(S, "toarray") else S
    K = KernelCenterer().fit_transform(S)
    ones, start = (
        np.eye(len(K)) - 1 / len(K),
        np.random.default_rng(0).normal(size=len(K)),
    )
    top = eigsh(K, 1, which="LA", v0=start, tol=1e-3, return_eigenvectors=False)[0]
    # The least eigenvalue as a largest one, which is found fast even where many are nearly 0.
    below = eigsh(2 * top * ones - K, 1, which="LA", v0=start, tol=1e-3)[0][0]
    K += max(0.0, below - 2 * top) * ones
    root = np.sqrt(np.maximum(K.diagonal(), 1e-12))
    return K / root / root[:, None]


def best_partition(kernels: Sequence[np.ndarray], gamma: np.ndarray, k: int) -> Any:
    """Return the H with the largest trace(K H H'), and that trace."""
    K = sum(g**2 * own for g, own in zip(gamma, kernels, strict=True))
    start = np.random.default_rng(0).normal(size=len(kernels[0]))
    values, H = eigsh(K, k, which="LA", v0=start)
    return H, values.sum()


def descend(
    kernels: Sequence[np.ndarray], k: int, max_iter: int = 100
) -> tuple[Any, ...]:
    """Return H, gamma, and the objective at first and after every step."""
    gamma = np.full(len(kernels), 1 / len(kernels))
    H, value = best_partition(kernels, gamma, k)
    values = [value]
    for _ in range(max_iter):
        fits = np.array([np.vdot(H, K @ H) for K in kernels])
        step = 1 / fits / (1 / fits).sum() - gamma  # to the best weights for this H
        slope = 2 * (gamma * fits) @ step  # the gradient, along the step
        length = 1.0
        while length * abs(step).max() > SMALL:
            found, value = best_partition(kernels, gamma + length * step, k)
            if value <= values[-1] + STEEP * length * slope:
                break
            length /= 2
        else:
            break
        gamma, H = gamma + length * step, found
        values.append(value)
    return H, gamma, values


def fit(stack: SimilarityStack, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return labels, and the weight gamma of every source."""
    H, gamma, _ = descend([kernel(S) for S in stack.filled()], k)
    return KMeans(k, n_init=10, random_state=seed).fit_predict(normalize(H)), gamma


def cluster(X: Any, stack: SimilarityStack, k: int, seed: int) -> np.ndarray:
    return fit(stack, k, seed)[0]


METHODS = [Method("SimpleMKKM", timed(cluster), wants=SIMILARITIES)]
