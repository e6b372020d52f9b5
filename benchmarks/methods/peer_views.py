"""Multi-view clustering by `imml` 0.6.0, `mvlearn` 0.5.0 and `polyview` 0.1.0.

EEIMVC and LFIMVC take kernels and get the similarities that other methods get. The others get the
features of the views.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.methods import SIMILARITIES, VIEWS, Method, peer
from nmfcluster import SimilarityStack

WORKER = Path(__file__).with_name("peer_views_worker.py")
LONGEST = 120  # seconds until a run is stopped: DAIMC takes long for large vocabularies
FROM_VIEWS = {  # and the packages that have them
    "DAIMC": "imml",
    "NEMO": "imml",
    "CoReg": "mvlearn",
    "MultiViewKMeans": "polyview",
    "MultiViewNMF": "polyview",
}
FROM_SIMILARITIES = {"EEIMVC": "imml", "LFIMVC": "imml"}


def from_views(
    X: Any, views: list[Any], k: int, seed: int, name: str = "DAIMC"
) -> tuple[np.ndarray, float]:
    return peer.ask(
        WORKER, peer.numbered(views), k, name, seed, peer.VIEWS_PYTHON, LONGEST
    )


def from_similarities(
    X: Any, stack: SimilarityStack, k: int, seed: int, name: str = "EEIMVC"
) -> tuple[np.ndarray, float]:
    return peer.ask(
        WORKER, peer.numbered(stack.filled()), k, name, seed, peer.VIEWS_PYTHON, LONGEST
    )


reason = partial(peer.reason, peer.VIEWS_PYTHON)
METHODS = [
    Method(name, partial(run, name=name), reason, wants, package)
    for names, run, wants in (
        (FROM_VIEWS, from_views, VIEWS),
        (FROM_SIMILARITIES, from_similarities, SIMILARITIES),
    )
    for name, package in names.items()
]
