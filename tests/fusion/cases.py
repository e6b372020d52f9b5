"""Problems of several kinds, and the formulas of the fusion model written out in loops."""

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

from nmfcluster.fusion.mixture import make_mixture
from nmfcluster.fusion.model import fusion_nmf
from nmfcluster.fusion.objective import FusionObjective

seeds = st.integers(0, 10**6)


both_forms = pytest.mark.parametrize("n_factors", [1, 2], ids=["symmetric", "two factors"])


def literal_model(W, H):
    return sum(np.outer(W[:, c], H[:, c]) for c in range(W.shape[1]))


def literal_losses(arrays, seen, offsets, W, H):
    """Return ``b_l - sum p_ij log(m_ij / M_l)``, M_l the model's mass on what source l saw."""
    model, losses = literal_model(W, H), []
    for A, here, offset in zip(arrays, seen.T, offsets, strict=True):
        P, mass, loss = A / A.sum(), model[here][:, here].sum(), offset
        for i, j in np.argwhere(P > 0):
            loss -= P[i, j] * np.log(model[i, j] / mass)
        losses.append(loss)
    return np.array(losses)


def literal_step(arrays, seen, weights, W, H):
    """Return W and V = H diag(q) of eqs. 3 and 5; what was not seen is imputed from the model."""
    (n, k), model = W.shape, literal_model(W, H)
    new_w, new_v = np.zeros((n, k)), np.zeros((n, k))
    masses = [model[here][:, here].sum() for here in seen.T]
    for i in range(n):
        for j in range(n):
            tau = W[i] * H[j] / sum(W[i] * H[j])
            for source, A in enumerate(arrays):
                known = seen[i, source] and seen[j, source]
                p = A[i, j] / A.sum() if known else model[i, j] / masses[source]
                new_w[i] += weights[source] * p * tau
                new_v[j] += weights[source] * p * tau
    return new_w / new_w.sum(), new_v / new_v.sum()


def literal_weights(losses, eta):
    shares = np.exp(-(losses - losses.min()) / eta)
    return shares / shares.sum()


def literal_objective(losses, eta):
    """Return ``-eta log mean exp(-c / eta)``, and its limits: sums without the entropy."""
    if eta in (0, np.inf):
        return losses.min() if eta == 0 else losses.mean()
    return losses.min() - eta * np.log(np.exp(-(losses - losses.min()) / eta).mean())


def kernel(rng, n, gamma):
    X = rng.normal(size=(n, 2)) + 3 * rng.integers(0, 3, size=(n, 1))
    return np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))


def graph(rng, n, density=0.2):
    A = np.triu(rng.uniform(size=(n, n)) * (rng.uniform(size=(n, n)) < density), 1)
    A[0, 1] = 0.5
    return A + A.T


def bipartite(rng, n):
    A = np.zeros((n, n))
    A[: n // 3, n // 3 :] = rng.uniform(size=(n // 3, n - n // 3))
    return A + A.T


def planted(rng, n):
    labels = rng.permutation(np.arange(n) % 3)
    return (labels[:, None] == labels).astype(float)


def partial(rng, n, arrays):
    """Return the arrays with 0 where an object was not seen, and what was: one object by none."""
    seen = rng.uniform(size=(n, len(arrays))) < 0.75
    seen[:3], seen[3] = True, False
    seen[:, 0] |= np.arange(n) != 3
    return [np.where(np.outer(s, s), A, 0) for A, s in zip(arrays, seen.T, strict=True)], seen


def problem(kind, rng, n):
    """Return sources as they are stored, as arrays, and what they saw."""
    arrays = {
        "kernels": lambda: [kernel(rng, n, gamma) for gamma in (0.02, 0.3, 3.0)],
        "graphs": lambda: [graph(rng, n) for _ in range(3)],
        "bipartite": lambda: [bipartite(rng, n), graph(rng, n)],
        "blocks": lambda: [planted(rng, n), planted(rng, n) + 0.1],
        "hollow": lambda: [kernel(rng, n, 0.1) * (1 - np.eye(n)), np.ones((n, n)) - np.eye(n)],
        "mixed": lambda: [kernel(rng, n, 0.2), graph(rng, n), planted(rng, n)],
        "missing": lambda: [kernel(rng, n, gamma) for gamma in (0.02, 0.2, 1.0)],
        "missing graphs": lambda: [graph(rng, n, 0.5) for _ in range(2)],
    }[kind]()
    seen = np.ones((n, len(arrays)), dtype=bool)
    if kind.startswith("missing"):
        arrays, seen = partial(rng, n, arrays)
    sparse = {"graphs": (0, 1, 2), "mixed": (1, 2), "missing graphs": (0, 1)}.get(kind, ())
    stored = [sp.csr_array(A) if i in sparse else A for i, A in enumerate(arrays)]
    return make_mixture(stored, seen), arrays, seen


KINDS = [
    *["kernels", "graphs", "bipartite", "blocks", "hollow", "mixed"],
    *["missing", "missing graphs"],
]


each_kind = pytest.mark.parametrize("kind", KINDS)


def starts_of(rng, n_starts, n_factors, n, k):
    Z = rng.uniform(0.05, 1, size=(n_starts, n_factors, n, k))
    return Z / Z.sum(axis=(2, 3), keepdims=True)


def split(Z):
    """Return W and H of the factors W and V = H diag(q)."""
    return Z[0], Z[-1] / Z[-1].sum(axis=0)


def objective_of(mixture, eta):
    return FusionObjective(mixture, -mixture.entropies(), eta)


def run(objective, Z, n_updates):
    """Return what is yielded after every update."""
    return list(islice(fusion_nmf(objective, Z), n_updates + 1))
