"""Tables of labels, and of features, of any number of rows: written to files block by block."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

N_CLUSTERS = 10
CELLS = 3  # of a cluster: a base partition puts them together, or not
BLOCK = 250_000  # rows that are drawn, and written, at a time
# what one entry of a table can be but the label of its sample's cell, and how often
MISTAKES = {"separated": 1e-5, "overlapping": 0.3, "redrawn": 0.2, "missing": 0.1}
HARD = (
    0.1  # share of the samples that can be taken for another cluster, in "overlapping"
)
UNSEEN = 0.3  # share of the entries in "missing"
SPREAD = 2.5  # of the centres of features, in standard deviations


class Files(NamedTuple):
    """A table and the clusters of its rows, as .npy files."""

    table: Path
    classes: Path


def write_labels(
    folder: Path, kind: str, n: int, n_partitions: int, seed: int = 0
) -> Files:
    """Write base partitions of 10 to 30 clusters: int8, -1 where not seen."""
    rng = np.random.default_rng(seed)
    cells = np.repeat(np.arange(N_CLUSTERS), CELLS)
    together = rng.integers(CELLS, size=(n_partitions, len(cells)))
    names = [np.unique(cells * CELLS + own, return_inverse=True)[1] for own in together]
    maps = np.array(names, dtype=np.int8)
    files = _created(folder, kind, (n, n_partitions), np.dtype(np.int8))
    for number, rows in enumerate(_blocks(n)):
        _write(
            files, rows, *_labels(kind, maps, rows.stop - rows.start, [seed, number])
        )
    return files


def _labels(
    kind: str, maps: np.ndarray, n: int, seed: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return a block of labels, and the clusters of its rows."""
    rng = np.random.default_rng(seed)
    n_partitions, n_cells = maps.shape
    cell = rng.integers(n_cells, size=n)
    other = rng.integers(n_cells, size=n)  # what a hard sample can be taken for
    mistaken = rng.random((n, n_partitions), dtype=np.float32) < MISTAKES[kind]
    if kind == "overlapping":
        mistaken &= (rng.random(n) < HARD)[:, None]
    taken = np.where(mistaken, other[:, None], cell[:, None])
    if kind in ("redrawn", "missing"):
        anything = rng.integers(n_cells, size=(n, n_partitions), dtype=np.int8)
        taken = np.where(mistaken, anything, taken)
    table = maps[np.arange(n_partitions), taken]
    if kind == "missing":
        table[rng.random((n, n_partitions), dtype=np.float32) < UNSEEN] = -1
    return table, (cell // CELLS).astype(np.int8)


def write_features(folder: Path, n: int, n_features: int, seed: int = 0) -> Files:
    """Write spherical Gaussian clusters, float32."""
    centres = np.random.default_rng(seed).normal(
        scale=SPREAD, size=(N_CLUSTERS, n_features)
    )
    files = _created(folder, "features", (n, n_features), np.dtype(np.float32))
    for number, rows in enumerate(_blocks(n)):
        rng = np.random.default_rng([seed, number])
        y = rng.integers(N_CLUSTERS, size=rows.stop - rows.start)
        noise = rng.standard_normal((len(y), n_features), dtype=np.float32)
        _write(files, rows, (centres[y] + noise).astype(np.float32), y.astype(np.int8))
    return files


def _blocks(n: int) -> list[slice]:
    return [slice(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK)]


def _created(folder: Path, name: str, shape: tuple[int, int], dtype: np.dtype) -> Files:
    files = Files(folder / f"{name}.npy", folder / f"{name}-classes.npy")
    np.lib.format.open_memmap(files.table, mode="w+", dtype=dtype, shape=shape)
    np.lib.format.open_memmap(
        files.classes, mode="w+", dtype=np.int8, shape=(shape[0], 1)
    )
    return files


def _write(files: Files, rows: slice, table: np.ndarray, classes: np.ndarray) -> None:
    for file, block in zip(files, (table, classes[:, None]), strict=True):
        np.load(file, mmap_mode="r+")[rows] = block
