"""Signatures by `SigProfilerExtractor` 1.4.1: clustered means of runs on resampled counts.

Its defaults, but for ten replicates instead of 100, and without the match with known signatures at
the end. Of several numbers of signatures it suggests one. It takes 96 kinds of mutations, not
genes.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.methods import peer
from benchmarks.methods.programs import SIGNATURES, Finder

WORKER = Path(__file__).with_name("peer_sigprofiler_worker.py")
NAME = "SigProfilerExtractor"
RUNS = 10  # 100 are its default, and take ten times as long
AT_K, BY_CHOICE = 900, 3_600  # seconds until it is stopped
ROWS_AT_K, ROWS_BY_CHOICE = 200, 50  # beyond, a call takes tens of minutes
find = partial(peer.factors, WORKER, RUNS, NAME, peer.SIGPROFILER_PYTHON)
FINDERS = [
    Finder(
        NAME,
        partial(find, longest=AT_K),
        partial(find, longest=BY_CHOICE),
        partial(peer.reason, peer.SIGPROFILER_PYTHON),
        (SIGNATURES,),
        ROWS_AT_K,
        ROWS_BY_CHOICE,
        slow=True,
        package="SigProfilerExtractor",
    )
]
