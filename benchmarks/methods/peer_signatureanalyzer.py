"""Programs by `signatureanalyzer` 0.0.9, which finds their number itself.

Automatic relevance determination starts with many programs and lets go of those that are not
needed: 96 of signatures, its default, and of cells 50. Of ten runs with a Poisson likelihood it
takes, as its command does, the best of those that end with the most frequent number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.methods import peer
from benchmarks.methods.programs import Finder

WORKER = Path(__file__).with_name("peer_signatureanalyzer_worker.py")
NAME = "signatureanalyzer"
RUNS = 10  # the default of its command
LONGEST = 1_800  # seconds until it is stopped
ROWS = 600  # of cells: it takes ten minutes and more beyond


def find(X: np.ndarray, ks: Sequence[int], seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    return peer.factors(WORKER, X, ks, RUNS, NAME, seed, peer.SIGNATUREANALYZER_PYTHON, LONGEST)


FINDERS = [
    Finder(
        NAME,
        None,
        find,
        partial(peer.reason, peer.SIGNATUREANALYZER_PYTHON),
        rows_by_choice=ROWS,
    )
]
