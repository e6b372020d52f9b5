"""How do time and accuracy compare with packages that users install for consensus clustering?"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from benchmarks import methods, report
from benchmarks.datasets.gaussians import ensemble, gaussians
from benchmarks.datasets.tables import unanimous
from benchmarks.runner import Progress, interleaved

SHARES = {"balanced": [0.2] * 5, "unbalanced": [0.6, 0.2, 0.1, 0.06, 0.04]}
OURS = "NMFC"
DENSE = ("average linkage", "spectral", "ensembleclustering nmf", "ensembleclustering cspa")
THIN = tuple(f"ensembleclustering {solver}" for solver in ("hbgf", "mcla", "hgpa"))
TARGETS = {("ensembleclustering nmf", 5_000): 100.0, ("ensembleclustering hbgf", 100_000): 5.0}


@dataclass(frozen=True)
class Case:
    """A label table, the true classes, and the methods that it is clustered by."""

    name: str
    table: np.ndarray
    y: np.ndarray
    peers: tuple[str, ...]


def run(quick: bool, out: Path) -> list[Path]:
    repeats = 1 if quick else 3
    known, skipped = methods.available((OURS, *DENSE, *THIN))
    cases = _toy_cases() if quick else _cases()
    takers = [[name for name in case.peers if name in known] for case in cases]
    progress = Progress("peers", repeats * sum(1 + len(names) for names in takers))
    rows: list[report.Row] = []
    for case, names in zip(cases, takers, strict=True):
        tasks = {name: partial(_cluster, known[name], case) for name in (OURS, *names)}
        rows += _rows(case, interleaved(tasks, repeats, progress))
    caption = (
        "NMFConsensus with its defaults, from 50 partitions, against ensembleclustering 1.0.2 and "
        "two methods of scikit-learn on the dense co-association. 'times slower' is the time of a "
        "method over ours; Gaussian clusters in 10 features, k-means base partitions of 5 to 14 "
        "clusters; unbalanced means shares of 60, 20, 10, 6 and 4 %; unanimous means that all "
        "partitions agree, on clusters of 900, 60 and 40. Medians of "
        f"{repeats} interleaved repeats with different seeds."
    )
    draw = partial(_draw, rows)
    tables = {"Consensus of given partitions": rows}
    return report.write(out, "peers", caption, tables, draw, _verdicts(rows), skipped)


def _cases() -> list[Case]:
    everyone = DENSE + THIN
    cases = [Case("unanimous", *unanimous((900, 60, 40)), everyone)]
    for kind in ("separated", "overlapping"):
        cases += [_gaussian(1_000, kind, balance, everyone) for balance in SHARES]
    for n, peers in ((5_000, everyone), (100_000, THIN[:1])):
        cases.append(_gaussian(n, "overlapping", "balanced", peers))
        cases.append(_gaussian(n, "separated", "unbalanced", peers))
    return cases


def _toy_cases() -> list[Case]:
    peers = DENSE[:3]
    unbalanced = _gaussian(100, "overlapping", "unbalanced", peers)
    return [Case("unanimous", *unanimous((90, 6, 4)), peers), unbalanced]


def _gaussian(n: int, kind: str, balance: str, peers: tuple[str, ...]) -> Case:
    data = gaussians(n, kind, SHARES[balance])
    return Case(f"{kind}, {balance}", ensemble(data.X, 50, (5, 14)), data.y, peers)


def _cluster(method: methods.Method, case: Case, seed: int) -> tuple[float, float]:
    k = len(np.unique(case.y))
    labels, seconds = method.run(None, case.table, k, seed)
    return seconds, float(adjusted_rand_score(case.y, labels))


def _rows(case: Case, runs: dict[str, list[tuple[float, float]]]) -> list[report.Row]:
    ours, _ = np.median(runs[OURS], axis=0)
    rows = []
    for name, figures in runs.items():
        seconds, ari = np.median(figures, axis=0)
        row = {"clusters": case.name, "samples": len(case.y), "method": name}
        rows.append(row | {"times slower": seconds / ours, "ARI": ari, "s": seconds})
    return rows


def _verdicts(rows: list[report.Row]) -> list[str]:
    ours = {(r["clusters"], r["samples"]): r["ARI"] for r in rows if r["method"] == OURS}
    told = []
    for row in rows:
        target = TARGETS.get((row["method"], row["samples"]))
        if target is None:
            continue
        ari = ours[row["clusters"], row["samples"]]
        # an ARI that is lower by up to 0.005 counts as equal
        met = row["times slower"] >= target and ari >= row["ARI"] - 0.005
        told.append(
            f"{row['method']}, {row['samples']:,} samples, {row['clusters']}: "
            f"{row['times slower']:,.0f} times slower (target: {target:g}), ARI {row['ARI']:.3f} "
            f"against our {ari:.3f}: {'met' if met else 'missed'}."
        )
    return told


def _draw(rows: list[report.Row], figure: Any) -> None:
    time, score = figure.subplots(1, 2, sharey=True)
    names = list(dict.fromkeys(row["method"] for row in rows))
    for size, marker in zip(sorted({row["samples"] for row in rows}), "os^v", strict=False):
        own = [row for row in rows if row["samples"] == size]
        where = [names.index(row["method"]) for row in own]
        time.semilogx([row["times slower"] for row in own], where, marker, label=f"n = {size:,}")
        score.plot([row["ARI"] for row in own], where, marker, alpha=0.6)
    time.set(xlabel="time / ours", yticks=range(len(names)), yticklabels=names)
    score.set(xlabel="ARI with the truth")
    time.legend()
