"""Programs by `cvanmf` 0.4.0: the best of 100 runs of scikit-learn with the loss of counts.

Of several numbers of programs it is given the elbow of the cosine similarity to what was left out,
by its bi-cross-validation in ninths, with fewer shuffles than its default of 100.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.methods import peer
from benchmarks.methods.programs import Finder

WORKER = Path(__file__).with_name("peer_cvanmf_worker.py")
NAME = "cvanmf"
RUNS = 100  # its default
AT_K, BY_CHOICE = 900, 1_800  # seconds until it is stopped
ROWS_AT_K = 400  # its runs take many minutes on larger tables
ROWS_BY_CHOICE = 50  # it validates every number of programs many times
find = partial(peer.factors, WORKER, RUNS, NAME, peer.CNMF_PYTHON)
FINDERS = [
    Finder(
        NAME,
        partial(find, longest=AT_K),
        partial(find, longest=BY_CHOICE),
        partial(peer.reason, peer.CNMF_PYTHON),
        rows_at_k=ROWS_AT_K,
        rows_by_choice=ROWS_BY_CHOICE,
        package="cvanmf",
    )
]
