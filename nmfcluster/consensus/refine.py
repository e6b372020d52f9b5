"""Local search on the hard objective: single moves of label rows between clusters."""

from __future__ import annotations

import numpy as np

from nmfcluster._arrays.labels import one_hot
from nmfcluster.partitions.ensemble import Ensemble

_ROUNDING = 1e-9  # gains are sums of counts: a smaller one is not a gain


def refine_by_moves(
    ensemble: Ensemble, labels: np.ndarray, n_clusters: int, max_sweeps: int = 100
) -> tuple[np.ndarray, int]:
    r"""Move one label row at a time to the cluster where the hard objective is lowest.

    Moving the m samples of row i from cluster a to b changes eq. 12 of Li et al. by
    :math:`4m(s_a - s_b - m p_i / 2)` with
    :math:`s_c = \sum_t w_t (N_t[l_t(i), c] - n_{tc} / 2)`, where N_t counts the samples that
    share a cluster of partition t and a cluster of the consensus, n_tc those of cluster c that
    partition t saw, and p_i is the weight of the partitions that saw row i. No cluster is emptied.

    Parameters
    ----------
    ensemble : Ensemble
    labels : ndarray of shape (m,), int
        Consensus label of every distinct row.
    n_clusters : int
    max_sweeps : int, default=100

    Returns
    -------
    labels : ndarray of shape (m,), int
        No single move lowers the hard objective further.
    n_moves : int
        Number of moves made.
    """
    labels = labels.copy()
    counts, weights = ensemble.counts, ensemble.weights
    seen = ensemble.codes >= 0
    rows_of_N = ensemble.codes + ensemble.offsets
    E = one_hot(labels, n_clusters)
    N = ensemble.contingency(E)
    n = ensemble.seen_sizes(N)
    sizes = np.bincount(labels, minlength=n_clusters)  # distinct rows: none may lose its last
    n_moves = 0
    for _ in range(max_sweeps):
        score = ensemble.spread(ensemble.cluster_weights[:, None] * N)
        score -= seen @ (weights[:, None] * n) / 2
        own = (np.arange(len(labels)), labels)
        score[own] -= counts * ensemble.coverage / 2
        moved = 0
        for i in np.flatnonzero(score.max(axis=1) > score[own] + _ROUNDING):
            t = np.flatnonzero(seen[i])
            w = weights[t]
            s = w @ (N[rows_of_N[i, t]] - n[t] / 2)  # the tables have changed since `score`
            a = labels[i]
            s[a] -= counts[i] * ensemble.coverage[i] / 2
            b = int(np.argmax(s))
            if b == a or s[b] <= s[a] + _ROUNDING or sizes[a] == 1:
                continue
            N[rows_of_N[i, t], a] -= counts[i]
            N[rows_of_N[i, t], b] += counts[i]
            n[t, a] -= counts[i]
            n[t, b] += counts[i]
            sizes[a] -= 1
            sizes[b] += 1
            labels[i] = b
            moved += 1
        n_moves += moved
        if not moved:
            break
    return labels, n_moves
