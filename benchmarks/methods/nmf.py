"""NMF of the features, the best of three random starts.

A sample belongs to its largest weight, for parts of length 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.methods import FEATURES, Method, nmf_runs, timed


def cluster(X: Any, extra: Any, k: int, seed: int) -> np.ndarray:
    runs = [nmf_runs.run(X, k, 3 * seed + start, max_iter=500) for start in range(3)]
    return min(runs, key=lambda run: run.error).labels


METHODS = [Method("NMF", timed(cluster), wants=FEATURES)]
