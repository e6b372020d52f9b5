"""What the questions of fusion share: the sets, what is kept of a run, and runs that are kept."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks import report
from benchmarks.datasets import handwritten
from benchmarks.datasets.views import Views
from nmfcluster.metrics import clustering_accuracy

SETS = (
    "mfeat",
    "3sources",
    "bbcsport",
    "protein213",
    "yeast_mips3",
    "msrc_v1",
    "ngs",
    "100leaves",
    "bbc4view",
)
LONG = 60.0  # seconds after which a method gets no further seed on a data set
BEFORE = "rule before"  # what SimilarityFusionNMF did until sources had to agree

Run = dict[str, float]
Runs = dict[Any, list[Run]]


def scores(y: np.ndarray, labels: np.ndarray) -> Run:
    """Return how well a clustering finds the classes."""
    return {
        "accuracy": clustering_accuracy(y, labels),
        "nmi": float(normalized_mutual_info_score(y, labels)),
        "ari": float(adjusted_rand_score(y, labels)),
    }


def mean(runs: list[Run], figure: str) -> float:
    """Return the mean of a figure over runs, NaN without any."""
    return float(np.mean([run[figure] for run in runs])) if runs else float("nan")


@dataclass
class Kept:
    """Runs of methods that cannot run here, in the results that are there.

    They are of the sources as they were at their commit.
    """

    # by data set, similarities and so on, and method
    runs: Runs = field(default_factory=dict)
    commits: dict[Any, str] = field(default_factory=dict)  # of which runs are
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def told(self) -> str:
        """For a caption: what is kept, if anything."""
        of = {method: commit for (*_, method), commit in self.commits.items()}
        if BEFORE not in of:
            return ""
        return (
            f" '{BEFORE}' is SimilarityFusionNMF of commit {of[BEFORE]}: it made a graph of every "
            "source, and weighed these by how much of them one model explained, with eta = 1. Its "
            f"runs are kept, and some of others, of {', '.join(sorted({*self.commits.values()}))}."
        )

    def in_details(
        self, columns: tuple[str, ...], runs: Runs
    ) -> dict[str, list[report.Row]]:
        """Return all runs as rows for the JSON file, those that are kept by their commit."""
        parts: dict[str, Runs] = {}
        for key, own in runs.items():
            commit = self.commits.get(key)
            parts.setdefault(f"runs of {commit}" if commit else "runs", {})[key] = own
        return {
            heading: report.by_run(columns, part) for heading, part in parts.items()
        }


def kept(file: Path, sets: dict[str, Views], methods: Collection[str]) -> Kept:
    """Return what a result has of these methods on these sets."""
    found, names = Kept(), {data.name for data in sets.values()}
    if not file.exists():
        return found
    content = json.loads(file.read_text("utf-8"))
    for what, why in content["skipped"].items():
        if what not in methods and what.partition(" on ")[0] in methods:
            found.failed[what] = why
    for heading, rows in content["details"].items():
        commit = heading.partition(" of ")[2] or content["environment"]["commit"]
        for row in rows:
            if row["data"] in names and row["method"] in methods:
                key = tuple(value for value in row.values() if isinstance(value, str))
                figures = {
                    name: own for name, own in row.items() if isinstance(own, list)
                }
                values = zip(*figures.values(), strict=True)
                found.runs[key] = [
                    dict(zip(figures, run, strict=True)) for run in values
                ]
                found.commits[key] = commit
    return found


def toy() -> Views:
    pictures, y = load_digits(n_class=3, return_X_y=True)
    return handwritten.halves("toy", pictures[:45], y[:45])
