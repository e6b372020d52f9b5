"""Samples so far from all others that base runs, and the consensus, spend clusters on them."""

from typing import Any

import numpy as np

from nmfcluster._arrays.arguments import counted, warn
from nmfcluster.partitions.problem import EnsembleProblem

NO_LABEL = "No partition labels {}, whose labels_ are -1"
_SHOWN = 5  # samples that a warning names
_SIZE = 10  # samples a cluster in the mean, from which on none was ever alone among drawn Gaussians


def lone_samples(problem: EnsembleProblem, labels: np.ndarray, n_clusters: int) -> np.ndarray:
    """Return the samples that are clusters, and are so in most partitions that saw them.

    None where clusters are small in the mean.

    Parameters
    ----------
    problem : EnsembleProblem
    labels : ndarray of shape (m,), int
        Clusters of its distinct rows.
    n_clusters : int

    Returns
    -------
    ndarray of int
    """
    ensemble, sizes = problem.ensemble, np.bincount(labels, weights=problem.counts)
    lone = sizes[labels] == 1
    if not lone.any() or problem.counts.sum() < _SIZE * n_clusters:
        return np.empty(0, dtype=int)
    alone = ensemble.cluster_weights * (ensemble.sizes == 1)
    lone &= ensemble.spread(alone[:, None])[:, 0] / ensemble.coverage > 0.5
    groups = np.asarray(problem.groups)
    return np.flatnonzero(lone[groups] & (groups >= 0))  # -1: in no partition


def warn_of_lone(problem: Any, labels: np.ndarray, n_clusters: int, names: Any) -> None:
    """Warn of samples that a consensus and most of its partitions spend clusters on.

    `names` is the index of the samples, or None; a similarity that was handed in has no partitions.
    """
    of_partitions = isinstance(problem, EnsembleProblem)
    if not of_partitions or not len(samples := lone_samples(problem, labels, n_clusters)):
        return
    warn(
        f"{counted(len(samples), 'cluster')} of one sample, alone in most base partitions, too: "
        f"{listed(samples, names)}. If they are outliers, they take clusters that others "
        "need: leave them out, or clip features, as by numpy.clip(RobustScaler().fit_transform(X), "
        "-5, 5), or give estimator=LandmarkSpectral() with base_n_clusters=n_clusters."
    )


def warn_of_lost(samples: np.ndarray, names: Any) -> None:
    """Warn of samples that no partition labels; `names` is their index, or None."""
    warn(f"{NO_LABEL.format(counted(len(samples), 'sample'))}: {listed(samples, names)}.")


def listed(samples: np.ndarray, names: Any) -> str:
    """Return the names of the first of some samples, or their numbers, and how many more are."""
    shown = samples[:_SHOWN] if names is None else names[samples[:_SHOWN]]
    more = f" and {len(samples) - _SHOWN} more" if len(samples) > _SHOWN else ""
    return f"{', '.join(map(str, shown))}{more}"
