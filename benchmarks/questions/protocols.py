"""Which way of making base partitions is best over all data sets of Table 1?

A protocol uses no labels and is the same for all data sets; the mean accuracy of NMFC over the sets
decides. The default and the printed form of the paper are shown.
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

TAKERS = ("NMFC", "NMFC, printed")
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
    keys = [(taker, title) for taker in TAKERS for title in protocols]
    rows: dict[tuple[str, str], report.Row] = {key: {"protocol": key[1]} for key in keys}
    spreads: dict[tuple[str, str], report.Row] = {
        key: {"method": key[0], "protocol": key[1]} for key in keys
    }
    for name, data in sets.items():
        for title, protocol in protocols.items():
            scores = [_accuracies(data, protocol, trial) for trial in range(trials)]
            for taker in TAKERS:
                own = [score[taker] for score in scores]
                rows[taker, title][name] = round(float(np.mean(own)), 3)
                spreads[taker, title][name] = float(np.std(own))
            progress.step(f"{name}: {title}")
    for row in rows.values():
        row["mean"] = round(float(np.mean([row[name] for name in names if name in row])), 3)
    paper = {name: TABLE_1[name][2] for name in names}
    printed = {
        "protocol": "the paper",
        **paper,
        "mean": round(float(np.mean([*paper.values()])), 3),
    }
    tables = {taker: [rows[taker, title] for title in protocols] for taker in TAKERS}
    caption = (
        "Mean clustering accuracy of NMFConsensus by the way in which its base partitions are "
        "made: clusters of a base partition (k: number of classes) and starts of k-means; "
        f"50 partitions of all samples and features unless said; means over {trials} trials. "
        "Documents are tf-idf rows of unit length on the 1,000 commonest words unless said. NMFC "
        "has the defaults; 'printed' is the paper's form, normalize=False."
    )
    draw = partial(_draw, tables)
    heading = {f"{taker}, by protocol": [*own, printed] for taker, own in tables.items()}
    details = {"standard deviations": list(spreads.values())}
    return report.write(out, "protocols", caption, heading, draw, (), skipped, details)


def _toy(protocol: Protocol) -> Protocol:
    return replace(protocol, n_partitions=protocol.n_partitions // 5)


def _accuracies(data: datasets.Dataset, protocol: Protocol, trial: int) -> dict[str, float]:
    X, y = data.draw(trial)
    table = protocol.table(protocol.features(data.name, X), data.n_clusters, trial)
    scores = {}
    for taker in TAKERS:
        labels, _ = methods.load(taker).run(X, table, data.n_clusters, trial)
        scores[taker] = clustering_accuracy(y, labels)
    return scores


def _draw(tables: dict[str, list[report.Row]], figure: Any) -> None:
    ax = figure.subplots()
    ordered = sorted(tables[TAKERS[0]], key=lambda row: row["mean"])
    at = np.arange(len(ordered))
    for marker, (taker, rows) in zip("os", tables.items(), strict=True):
        means = {row["protocol"]: row["mean"] for row in rows}
        ax.plot([means[row["protocol"]] for row in ordered], at, marker, label=taker)
    ax.set_yticks(at, [row["protocol"] for row in ordered])
    ax.set(xlabel="mean accuracy over the sets")
    ax.grid(axis="y", alpha=0.3)
    ax.legend(fontsize="small")
