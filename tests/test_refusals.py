"""Bad input of the public functions and containers: each error names the parameter.

The calls, and the names, are in refusals.txt. With the cases of `fit`, in the files
test_bad_input.py, it is the table of all bad inputs.
"""

import importlib
import re
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from refusals import assert_in_our_words, named, raises_naming
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans

import nmfcluster

try:
    import dask.array as da

    import nmfcluster.dask as nd
except ImportError:  # its cases are skipped
    da = nd = None

HERE = Path(__file__).parent
FOLDERS = (
    "affinity constraints datasets display metrics model_selection partitions similarity stack"
).split()

# what the calls are made of
X = np.arange(24.0).reshape(8, 3) % 7
S = np.exp(-abs(np.subtract.outer(np.arange(8.0), np.arange(8.0))))
LABELS = [0, 0, 0, 1, 1, 1, 2, 2]
PAIRS = nmfcluster.PairwiseConstraints.from_labels(LABELS)
NAMES = [f"s{i}" for i in range(8)]
FRAME = pd.DataFrame(X, index=NAMES, columns=list("abc"))
LINES = (HERE / "refusals.txt").read_text("utf-8").splitlines()
KINDS = {"ValueError": ValueError, "TypeError": TypeError}
CALLS = defaultdict(
    list
)  # calls, the kinds of their errors and their names, by entry point
for line in LINES:
    if not line.startswith("#"):
        call, _, told = line.partition("  =>  ")
        kind, _, names = told.rpartition(": ")
        errors = KINDS[kind] if kind else (ValueError, TypeError)
        entry_point = re.match(r"[\w.]+", call)[0]
        CALLS[entry_point].append((call, errors, tuple(names.split("; "))))


@pytest.fixture(scope="module")
def known():
    """Return what the calls may name."""
    consensus = nmfcluster.NMFConsensus(2, affinity="partitions")
    names = {
        "np": np,
        "pd": pd,
        "sp": sp,
        "X": X,
        "S": S,
        "LABELS": LABELS,
        "PAIRS": PAIRS,
        "NAMES": NAMES,
    }
    names |= {"FRAME": FRAME, "DBSCAN": DBSCAN, "KMeans": KMeans}
    names |= {
        "AgglomerativeClustering": AgglomerativeClustering,
        "model": consensus.fit(np.array(LABELS)[:, None]),
        "SS": nmfcluster.SSNMFClusterer(2, affinity="linear", random_state=0).fit(X),
        "fused": nmfcluster.SimilarityFusionNMF(2).fit([S]),
        "viewed": nmfcluster.SimilarityFusionNMF(2).fit({"a": FRAME, "b": FRAME}),
    }
    if nd is not None:
        features = da.from_array(X, chunks=(3, 2))
        labels = da.from_array(np.array([LABELS, LABELS[::-1]]).T, chunks=(3, 2))
        names |= {"da": da, "nd": nd, "D": features, "T": labels}
    folders = (importlib.import_module(f"nmfcluster.{name}") for name in FOLDERS)
    for module in (nmfcluster, *folders):
        names |= {name: getattr(module, name) for name in module.__all__}
    return names


@pytest.mark.parametrize("entry_point", CALLS)
def test_bad_input_is_refused_by_name(entry_point, known):
    for call, errors, names in CALLS[entry_point]:
        if nd is None and re.search(r"\b(nd|da)\.", call):
            pytest.skip("Dask is not installed")
        with named(call):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with raises_naming(errors, *names) as caught:
                    eval(call, dict(known))
            assert_in_our_words(caught)
