"""Similarity network fusion of `snfpy` 0.2.2, then spectral clustering.

It fuses the similarities that other methods get, or those of its own `make_affinity`.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.methods import SIMILARITIES, VIEWS, Method, peer
from nmfcluster import SimilarityStack

WORKER = Path(__file__).with_name("peer_snf_worker.py")


def fused(
    X: Any, stack: SimilarityStack, k: int, seed: int
) -> tuple[np.ndarray, float]:
    return peer.ask(WORKER, peer.numbered(stack.filled()), k, "similarities", seed)


def from_views(
    X: Any, views: list[Any], k: int, seed: int, normalize: bool = True
) -> tuple[np.ndarray, float]:
    name = "standardised" if normalize else "features"
    return peer.ask(WORKER, peer.numbered(views), k, name, seed)


PACKAGE = "snfpy"
METHODS = [
    Method("SNF", fused, peer.reason, SIMILARITIES, PACKAGE),
    Method("SNF, its kernel", from_views, peer.reason, VIEWS, PACKAGE),
    Method(
        "SNF, its kernel, raw",
        partial(from_views, normalize=False),
        peer.reason,
        VIEWS,
        PACKAGE,
    ),
]
