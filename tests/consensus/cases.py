"""Fits of label tables, and what they are compared with, written out pair by pair."""

import numpy as np

from nmfcluster import NMFConsensus


def of_partitions(n_clusters, table, **parameters):
    parameters = {"random_state": 0} | parameters
    return NMFConsensus(n_clusters, affinity="partitions", **parameters).fit(table)


def together_and_seen(table, weights=None):
    """Return the weights of the partitions that hold a pair together, and that saw it.

    Shapes (T, n, n): the literal definition, with -1 for "not seen".
    """
    n, n_partitions = table.shape
    weights = np.full(n_partitions, 1 / n_partitions) if weights is None else weights
    together, seen = np.zeros((2, n_partitions, n, n))
    for t in range(n_partitions):
        for i in range(n):
            if table[i, t] >= 0:
                seen[t, i] = weights[t] * (table[:, t] >= 0)
                together[t, i] = weights[t] * (table[:, t] == table[i, t])
    return together, seen


def hard_loss(table, labels, weights=None):
    """Return eq. 12 of Li et al. up to a constant: pairs on which partitions disagree."""
    together, seen = together_and_seen(table, weights)
    same = labels[:, None] == labels
    return (seen * same - 2 * together * same + together).sum()


def factor_of(model, kept):
    """Return H of the last fit, samples and clusters in the order of `membership_`."""
    H, A = kept[-1][1], model.consensus_matrix()
    if isinstance(H, dict):
        H = np.array([H[tuple(row)] for row in model.partitions_])
        A = together_and_seen(model.partitions_, model.weights_)[0].sum(axis=0)
    shares = H / H.sum(axis=1, keepdims=True)
    if model.normalize:
        shares = A @ (shares / shares.sum(axis=0))
        shares /= shares.sum(axis=1, keepdims=True)
    distances = abs(shares[:, None, :] - model.membership_[:, :, None]).sum(axis=0)
    order = distances.argmin(axis=1)
    assert sorted(order) == list(range(H.shape[1]))
    if not model.normalize:  # else that is one of three readings
        assert distances.min(axis=1).max() < 1e-6 * len(H)
    return H[:, order]
