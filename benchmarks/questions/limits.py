"""How near the machine's limits are the loops that fits spend their time in?

Each is held beside plain numpy that moves or multiplies the same numbers: what the loop of a fit
does besides is what it loses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import kneighbors_graph

from benchmarks import report
from benchmarks.runner import Progress
from nmfcluster._engine.symmetric import SymmetricObjective, bregman_nmf
from nmfcluster.affinity import make_affinity
from nmfcluster.fusion.mixture import make_mixture
from nmfcluster.meta.divergence import Divergence
from nmfcluster.meta.solvers import hals
from nmfcluster.meta.squares import MatrixObjective
from nmfcluster.similarity import Explicit

REPEATS = 7
TARGET = 0.5  # of the rate of plain numpy
K = 10  # clusters
COPY, GEMM = "copy", "GEMM"
RATES = {COPY: "GB/s", GEMM: "GFLOP/s"}


class Loop(NamedTuple):
    """A loop of a fit, and plain numpy on the same numbers."""

    name: str
    shape: str
    ours: Callable[[], Any]
    plain: Callable[[], Any]
    what: str  # of plain numpy
    kind: str  # what bounds it
    work: float  # of the plain loop: bytes that are moved, or multiplications and additions


def run(quick: bool, out: Path) -> list[Path]:
    size = 10 if quick else 1
    loops = list(_loops(np.random.default_rng(0), size))
    progress = Progress("limits", len(loops))
    rows = [_row(loop, 1 if quick else REPEATS, progress) for loop in loops]
    below = [str(row["loop"]) for row in rows if row["share"] < TARGET]
    verdict = f"Below: {', '.join(below)}." if below else "All reach it."
    caption = (
        "The loops that fits spend their time in, in float64, beside plain numpy that moves or "
        f"multiplies the same numbers: medians of {REPEATS} interleaved repeats. 'share' is the "
        f"time of plain numpy by ours, that is, of the rate that it reaches on the machine; from "
        f"{TARGET:g} on the loop is taken to be near the limit. A rate counts what plain numpy "
        "reads and writes, or its multiplications and additions."
    )
    return report.write(out, "limits", caption, {"Loops": rows}, partial(_draw, rows), [verdict])


def _loops(rng: np.random.Generator, size: int) -> Iterator[Loop]:
    yield from _of_similarities(rng, size)
    yield from _of_tables(rng, size)
    yield _of_fusion(rng, size)


def _of_similarities(rng: np.random.Generator, size: int) -> Iterator[Loop]:
    n, near = 100_000 // size, 10
    X = rng.normal(size=(n, 3))
    graph = kneighbors_graph(X, near)
    graph = graph.maximum(graph.T).tocsr()
    H, taken, W = rng.random((n, K)), np.empty((graph.nnz, K)), Explicit(graph)
    moved = 2 * taken.nbytes
    take = partial(np.take, H, graph.indices, axis=0, out=taken, mode="clip")
    told = "rows of the factor taken"
    yield Loop("graph by factor", f"{n:,}", lambda: W @ H, take, told, COPY, moved)

    B = make_affinity(X, "landmarks", n_landmarks=1_000, random_state=0).similarity
    weights = B.factors[0]
    rows = np.empty((weights.nnz, K))
    take = partial(np.take, H[:1_000], weights.indices, axis=0, out=rows, mode="clip")

    def twice() -> None:
        take()
        take()

    moved = 4 * rows.nbytes
    yield Loop("landmarks by factor", f"{n:,}", lambda: B @ H, twice, f"{told}, twice", COPY, moved)

    m = 3_000 // size
    A = rng.random((m, m))
    A += A.T
    G = rng.random((1, m, K))
    steps = bregman_nmf(SymmetricObjective(Explicit(A), float((A**2).sum())), G)
    for _ in range(5):
        next(steps)

    def products() -> None:
        A @ G[0]
        G[0] @ (G[0].T @ G[0])

    done = 2.0 * m * m * K + 4 * m * K**2
    yield Loop(
        "update of A by HH'", f"{m:,}", lambda: next(steps), products, "AH and HH'H", GEMM, done
    )


def _of_tables(rng: np.random.Generator, size: int) -> Iterator[Loop]:
    n, p, k = 2_000 // size, 1_000 // size, 2 * K
    X = rng.poisson(2, (n, p)).astype(float)
    W, H = rng.random((k, n)) + 0.1, rng.random((k, p)) + 0.1
    steps = hals(MatrixObjective(X), np.concatenate([W, H], axis=1)[None])
    for _ in range(5):
        next(steps)

    def products() -> None:
        W @ X
        X @ H.T

    shape, done = f"{n:,} x {p:,}, k = {k}", 4.0 * n * p * k
    yield Loop("update of X by WH", shape, lambda: next(steps), products, "W'X, XH'", GEMM, done)

    counts = Divergence(X)

    def literal() -> None:
        Q = X / (W.T @ H)
        W * (H @ Q.T)
        H * (W @ Q)

    ours = partial(counts.expected, W[None], H[None], of_loss=False)
    yield Loop("EM step of counts", shape, ours, literal, "the same, in full", GEMM, 1.5 * done)


def _of_fusion(rng: np.random.Generator, size: int) -> Loop:
    n = 2_000 // size
    P = rng.random((n, n))
    P = (P + P.T) / (P + P.T).sum()
    mixture = make_mixture([P, P], np.ones((n, 2), dtype=bool))
    mixed = mixture.mixed(mixture.equal)
    H = rng.random((n, K)) + 0.1

    def literal() -> None:
        (P / (H @ H.T)) @ H

    ours = partial(mixture.ratio_product, mixed, H, H)
    return Loop(
        "EM step of fusion", f"{n:,}", ours, literal, "the same, in full", GEMM, 4.0 * n * n * K
    )


def _row(loop: Loop, repeats: int, progress: Progress) -> report.Row:
    seconds: dict[Callable[[], Any], list[float]] = {loop.ours: [], loop.plain: []}
    for call in seconds:  # the first call pages memory in
        call()
    for _ in range(repeats):
        for call, told in seconds.items():
            began = perf_counter()
            call()
            told.append(perf_counter() - began)
    progress.step(loop.name)
    ours, plain = (median(told) for told in seconds.values())
    return {
        "loop": loop.name,
        "shape": loop.shape,
        "beside": loop.what,
        "ms": round(1e3 * ours, 3),
        "ms, plain": round(1e3 * plain, 3),
        "rate, plain": f"{loop.work / plain / 1e9:.3g} {RATES[loop.kind]}",
        "share": round(plain / ours, 3),
    }


def _draw(rows: list[report.Row], figure: Any) -> None:
    ax = figure.subplots()
    ax.barh([str(row["loop"]) for row in rows], [row["share"] for row in rows])
    ax.axvline(TARGET, color="0.4", linestyle="--")
    ax.set_xlabel("rate, by that of plain numpy")
    ax.invert_yaxis()
