"""Which way of making base partitions is best over all data sets of Table 1?

A protocol uses no labels and is the same for all data sets; the mean accuracy of NMFC over the sets
decides.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import datasets, methods, report
from benchmarks.questions.papers import TABLE_1, Protocol
from benchmarks.runner import Progress
from nmfcluster.metrics import clustering_accuracy

PROTOCOLS = {
    "k, random": Protocol(),
    "k, k-means++": Protocol(init="k-means++"),
    "k to 2k+4, random": Protocol("k to 2k+4"),
    "k to 2k+4, k-means++": Protocol("k to 2k+4", init="k-means++"),
    "2 to 2k, random": Protocol("2 to 2k"),
    "2k, random": Protocol("2k"),
    "k, random, 80 % of the samples": Protocol(max_samples=0.8),
    "k, random, half of the features": Protocol(max_features=0.5),
    "k, random, 100 partitions": Protocol(n_partitions=100),
    "k, random, word counts": Protocol(words="counts"),
    "k to 2k+4, random, word counts": Protocol("k to 2k+4", words="counts"),
}


def run(quick: bool, out: Path) -> list[Path]:
    names, trials = (("iris",), 1) if quick else (TABLE_1, 5)
    sets, skipped = datasets.available(names)
    protocols = {
        title: _toy(protocol) if quick else protocol for title, protocol in PROTOCOLS.items()
    }
    progress = Progress("protocols", len(sets) * len(protocols))
    rows: dict[str, report.Row] = {title: {"protocol": title} for title in protocols}
    spreads: dict[str, report.Row] = {title: {"protocol": title} for title in protocols}
    for name, data in sets.items():
        for title, protocol in protocols.items():
            scores = [_accuracy(data, protocol, trial) for trial in range(trials)]
            rows[title][name] = round(float(np.mean(scores)), 3)
            spreads[title][name] = float(np.std(scores))
            progress.step(f"{name}: {title}")
    for row in rows.values():
        row["mean"] = round(float(np.mean([row[name] for name in names if name in row])), 3)
    paper = {name: TABLE_1[name][2] for name in names}
    printed = {
        "protocol": "the paper",
        **paper,
        "mean": round(float(np.mean([*paper.values()])), 3),
    }
    table = [*rows.values(), printed]
    caption = (
        "Mean clustering accuracy of NMFConsensus by the way in which its base partitions are "
        "made: clusters of a base partition (k: number of classes) and starts of k-means; "
        f"50 partitions of all samples and features unless said; means over {trials} trials. "
        "Documents are tf-idf rows of unit length on the 1,000 commonest words unless said."
    )
    draw = partial(_draw, list(rows.values()))
    heading = {"NMFC by protocol": table}
    details = {"standard deviations": list(spreads.values())}
    return report.write(out, "protocols", caption, heading, draw, (), skipped, details)


def _toy(protocol: Protocol) -> Protocol:
    return replace(protocol, n_partitions=protocol.n_partitions // 5)


def _accuracy(data: datasets.Dataset, protocol: Protocol, trial: int) -> float:
    X, y = data.draw(trial)
    table = protocol.table(protocol.features(data.name, X), data.n_clusters, trial)
    labels, _ = methods.load("NMFC").run(X, table, data.n_clusters, trial)
    return clustering_accuracy(y, labels)


def _draw(rows: list[report.Row], figure: Any) -> None:
    ax = figure.subplots()
    ordered = sorted(rows, key=lambda row: row["mean"])
    ax.barh([row["protocol"] for row in ordered], [row["mean"] for row in ordered])
    ax.set(xlabel="mean accuracy over the sets")
    ax.set_xlim(left=min(row["mean"] for row in rows) * 0.9)
