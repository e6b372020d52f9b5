"""Made tables that are hard on a graph of neighbours: ties, copies, few rows, far outliers.

`MADE` draws each with a random generator: rows and their classes, -1 for rows that are not scored.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

Rng = np.random.Generator
Table = tuple[np.ndarray, np.ndarray]

RINGS = (100, 200, 300)  # rows of a ring
UNEQUAL = (500, 50, 20)  # rows of a cluster
FAR = (1e3, 2e3, 3e3)  # of outliers, in standard deviations


def _answers(n_questions: int, rng: Rng) -> Table:
    """Return one-hot answers: four of five are that of the class, the others any of three."""
    y = rng.integers(3, size=500)
    own = rng.random((500, n_questions)) < 0.8
    answers = np.where(own, y[:, None], rng.integers(3, size=own.shape))
    return np.eye(3)[answers].reshape(500, -1), y


def _rounded(rng: Rng) -> Table:
    y = rng.integers(3, size=500)
    return np.round(
        rng.normal(size=(500, 2)) + np.array([[0, 0], [5, 0], [0, 5]])[y]
    ), y


def _binary(rng: Rng) -> Table:
    y, yes = rng.integers(3, size=500), rng.choice([0.15, 0.85], size=(3, 15))
    return (rng.random((500, 15)) < yes[y]).astype(float), y


def _likert(rng: Rng) -> Table:
    y, means = rng.integers(3, size=500), rng.uniform(1.5, 4.5, size=(3, 8))
    return np.clip(np.round(means[y] + rng.normal(scale=0.8, size=(500, 8))), 1, 5), y


def _oversampled(rng: Rng) -> Table:
    """Return rows of small classes in so many copies that all have about as many."""
    y = np.repeat([0, 1, 2], [200, 60, 20])
    copies = np.array([1, 3, 10])[y]
    return np.repeat(
        rng.normal(size=(280, 4)) + 4 * np.eye(4)[y], copies, axis=0
    ), y.repeat(copies)


def _cells(rng: Rng) -> Table:
    """Return whole numbers from 1 to 10 as of Wisconsin breast cancer: one class is near 1."""
    y = (rng.random(699) < 0.345).astype(int)
    wide = rng.choice([0.3, 1, 2.2], size=(699, 1), p=[0.4, 0.4, 0.2])
    near = 1 + 0.9 * wide * rng.exponential(size=(699, 9))
    far = rng.normal(6, 2.5, size=(699, 9)) + rng.normal(size=(699, 1))
    return np.clip(np.round(np.where(y[:, None] == 1, far, near)), 1, 10), y


def _rings(times: int, rng: Rng) -> Table:
    y, angles = np.repeat([0, 1, 2], RINGS), 2 * np.pi * rng.random(sum(RINGS))
    radii = np.array([1, 4, 7])[y] + rng.normal(0, 0.1, len(y))
    X = np.column_stack([radii * np.cos(angles), radii * np.sin(angles)])
    return X.repeat(times, axis=0), y.repeat(times)


def _blobs(
    sizes: tuple[int, ...], times: int, far: tuple[float, ...], rng: Rng
) -> Table:
    y = np.arange(len(sizes)).repeat(sizes)
    X = (20 * np.eye(5)[y] + rng.normal(size=(len(y), 5))).repeat(times, axis=0)
    outliers = np.outer(far, np.eye(5)[0])
    return np.vstack([X, outliers]), np.r_[y.repeat(times), np.full(len(far), -1)]


def _six(rng: Rng) -> Table:
    return np.array([[1, 2], [1, 4], [1, 0], [4, 2], [4, 4], [4, 0]], float), np.repeat(
        [0, 1], 3
    )


def _clumps(rng: Rng) -> Table:
    y = np.arange(4).repeat(4)
    return 14 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])[y] + rng.normal(
        size=(16, 2)
    ), y


def _records(rng: Rng) -> Table:
    """Return two lists of 30 records of 40 entities, 20 of them in both."""
    y = np.r_[:30, 10:40]
    return rng.normal(size=(40, 8))[y] + 0.05 * rng.normal(size=(60, 8)), y


MADE: dict[str, Callable[[Rng], Table]] = {
    "8 questions, one-hot": partial(_answers, 8),
    "4 questions, one-hot": partial(_answers, 4),
    "rounded": _rounded,
    "0/1 answers": _binary,
    "Likert items": _likert,
    "oversampled": _oversampled,
    "whole numbers, 1 to 10": _cells,
    "rings": partial(_rings, 1),
    **{f"rings, every row {times} times": partial(_rings, times) for times in (2, 3)},
    "blobs, every row 10 times": partial(_blobs, (300, 50, 20), 10, ()),
    "six rows": _six,
    "four clumps of four": _clumps,
    "records of 40 entities": _records,
    "unequal sizes": partial(_blobs, UNEQUAL, 1, ()),
    "three far outliers": partial(_blobs, UNEQUAL, 1, FAR),
}
