"""Programs by `cnmf` 1.7.1: 100 runs, outlying spectra left out, k-means and medians of the rest.

It takes its defaults, but uses all genes instead of the 2,000 most variable ones. Of several
numbers of programs it is given that with the most stable spectra, by the silhouette of its plot.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from benchmarks.methods import peer
from benchmarks.methods.programs import Finder

WORKER = Path(__file__).with_name("peer_cnmf_worker.py")
NAME = "cNMF"
RUNS = 100  # its default
AT_K, BY_CHOICE = 900, 600  # seconds until it is stopped
find = partial(peer.factors, WORKER, RUNS, NAME, peer.CNMF_PYTHON)
find_with_costs = partial(
    peer.factors_and_costs, WORKER, RUNS, NAME, peer.CNMF_PYTHON, longest=AT_K
)
FINDERS = [
    Finder(
        NAME,
        partial(find, longest=AT_K),
        partial(find, longest=BY_CHOICE),
        partial(peer.reason, peer.CNMF_PYTHON),
        package="cnmf",
    )
]
