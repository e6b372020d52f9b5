"""Signatures by `SigProfilerExtractor` 1.4.1: clustered means of runs on resampled counts.

Its defaults, but for ten replicates instead of 100, and without the match with known signatures at
the end. Of several numbers of signatures it suggests one. It takes 96 kinds of mutations, not
genes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.methods import peer
from benchmarks.methods.programs import SIGNATURES, Finder

WORKER = Path(__file__).with_name("peer_sigprofiler_worker.py")
NAME = "SigProfilerExtractor"
RUNS = 10  # 100 are its default, and take ten times as long
AT_K, BY_CHOICE = 900, 3_600  # seconds until it is stopped
ROWS_AT_K, ROWS_BY_CHOICE = 200, 50  # beyond, a call takes tens of minutes


def find(
    X: np.ndarray, ks: Sequence[int], seed: int, longest: float = AT_K
) -> tuple[np.ndarray, np.ndarray, float]:
    return peer.factors(WORKER, X, ks, RUNS, NAME, seed, peer.SIGPROFILER_PYTHON, longest)


FINDERS = [
    Finder(
        NAME,
        find,
        partial(find, longest=BY_CHOICE),
        partial(peer.reason, peer.SIGPROFILER_PYTHON),
        (SIGNATURES,),
        ROWS_AT_K,
        ROWS_BY_CHOICE,
        slow=True,
    )
]
