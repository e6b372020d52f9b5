"""Points on rings, and copies of a partition."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from nmfcluster._arrays.arguments import check_count, generator_of, shown
from nmfcluster.datasets.checks import check_noise, check_share


def make_nested_rings(
    n_samples: int = 400,
    *,
    radii: tuple[float, ...] = (2.0, 3.5),
    noise: float = 0.1,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Make points on rings around one centre, the toy data of Lange and Buhmann [1]_.

    A method that compares points by their distance alone finds halves of both rings. The paper does
    not print its radii and noise.

    Parameters
    ----------
    n_samples : int, default=400
        Number of points; those of two rings differ by one at most.
    radii : tuple of float, default=(2.0, 3.5)
        Radii of the rings.
    noise : float, default=0.1
        Standard deviation of a point's distance from its ring.
    random_state : int, RandomState instance or None, default=None
        Determines the result.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of shape (n_samples,), int
        Ring of every point.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If there are fewer points than rings, a radius is not above 0 or the noise is below 0.

    References
    ----------
    .. [1] T. Lange, J. M. Buhmann. Fusion of similarity data in clustering. NIPS 2005, Figure 1.

    Examples
    --------
    >>> from nmfcluster.datasets import make_nested_rings
    >>> X, y = make_nested_rings(100, noise=0, random_state=0)
    >>> (X[y == 1] ** 2).sum(axis=1).round(6).max()
    np.float64(12.25)
    """
    rng = generator_of(random_state)
    try:
        distances = np.asarray(radii, dtype=float)
    except (TypeError, ValueError) as error:
        raise TypeError(f"radii must be numbers, got {shown(radii)}.") from error
    if distances.ndim != 1 or not len(distances) or not (0 < distances).all():
        raise ValueError(f"radii must be above 0, at least one of them; got {radii!r}.")
    if not np.isfinite(distances).all():
        raise ValueError(f"radii must be finite, got {radii!r}.")
    check_noise(noise)
    if _several(n_samples):
        raise ValueError(f"n_samples must be one number, got {n_samples!r}.")
    sizes = _sizes(n_samples, len(distances))
    y = np.repeat(np.arange(len(sizes)), sizes)
    angles = rng.uniform(0, 2 * np.pi, len(y))
    reached = distances[y] + noise * rng.normal(size=len(y))
    return reached[:, None] * np.column_stack([np.cos(angles), np.sin(angles)]), y


def make_partitions(
    n_samples: int | tuple[int, ...] = 300,
    *,
    n_clusters: int = 3,
    n_partitions: int = 20,
    noise: float = 0.2,
    missing: float = 0.0,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Make noisy copies of one partition, with clusters renamed at random.

    Parameters
    ----------
    n_samples : int or tuple of int, default=300
        Number of samples, in clusters of equal size, or the sizes of the clusters.
    n_clusters : int, default=3
        Number of clusters; ignored if `n_samples` gives their sizes.
    n_partitions : int, default=20
        Number of copies.
    noise : float, default=0.2
        Share of the labels of each copy that are replaced by a cluster drawn at random.
    missing : float, default=0.0
        Share of the labels that are then replaced by -1, "not seen". Every sample keeps one label.
    random_state : int, RandomState instance or None, default=None
        Determines the result.

    Returns
    -------
    partitions : ndarray of shape (n_samples, n_partitions), int
    y : ndarray of shape (n_samples,), int
        The partition that was copied.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a share is not in [0, 1], or a number is below 1.

    Examples
    --------
    >>> from nmfcluster.datasets import make_partitions
    >>> partitions, y = make_partitions((90, 8, 2), n_partitions=5, noise=0, random_state=0)
    >>> partitions.shape, int(y.sum())
    ((100, 5), 12)
    """
    rng = generator_of(random_state)
    check_share(noise, "noise")
    check_share(missing, "missing")
    sizes = _sizes(n_samples, n_clusters)
    check_count(n_partitions, "n_partitions", 1)
    y = np.repeat(np.arange(len(sizes)), sizes)
    partitions = np.empty((len(y), n_partitions), dtype=np.int64)
    for t in range(n_partitions):
        labels = np.where(rng.uniform(size=len(y)) < noise, rng.randint(len(sizes), size=len(y)), y)
        partitions[:, t] = rng.permutation(len(sizes))[labels]
    lost = rng.uniform(size=partitions.shape) < missing
    lost[np.arange(len(y)), rng.randint(n_partitions, size=len(y))] = False
    partitions[lost] = -1
    return partitions, y


def _sizes(n_samples: Any, n_clusters: int) -> np.ndarray:
    """Return the sizes of clusters: those that are named, or equal ones."""
    if _several(n_samples):
        sizes = np.asarray(n_samples)
        if not all(isinstance(size, Integral) for size in sizes.ravel()):
            raise TypeError(f"n_samples must be whole numbers, got {shown(n_samples)}.")
        check_count(sizes.sum(dtype=object), "the sum of n_samples")
    else:
        check_count(n_clusters, "n_clusters", 1)
        check_count(n_samples, "n_samples")
        n_samples, n_clusters = int(n_samples), int(n_clusters)  # int8 could not hold more
        sizes = np.full(n_clusters, n_samples // n_clusters)
        sizes[: n_samples % n_clusters] += 1
    if sizes.ndim != 1 or len(sizes) == 0 or sizes.min() < 1:
        raise ValueError(f"n_samples must give every cluster a sample, got {n_samples!r}.")
    return sizes


def _several(n_samples: Any) -> bool:
    """Return whether it is a sequence of numbers."""
    try:
        return np.ndim(n_samples) > 0
    except ValueError as error:  # lists of different lengths
        raise TypeError(f"n_samples must be whole numbers, got {shown(n_samples)}.") from error
