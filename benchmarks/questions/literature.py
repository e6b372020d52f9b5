"""How do consensus methods compare on the large sets of Huang et al. (2020), beside their figures?

20 base clusterings of 20 to 60 clusters, as in the paper: by k-means, whose consensus it prints for
others' methods, and by spectral clustering on landmarks, whose consensus is U-SENC.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import normalized_mutual_info_score

from benchmarks import datasets, methods, report
from benchmarks.datasets.gaussians import gaussians
from benchmarks.datasets.large import NAMES
from benchmarks.runner import Progress
from nmfcluster.metrics import clustering_accuracy
from nmfcluster.partitions import LandmarkSpectral, base_partitions

RUNS = "NMFCLUSTER_LITERATURE_RUNS"  # names the number of runs
OURS, OTHERS = "NMFC", ("NMFC, printed", "LWGP", "transfer cut", "HBGF", "MCLA")
PAIRWISE = ("average linkage", "LWEA")  # hold all pairs: on the first seeds only
PAIRWISE_RUNS = 3
DENSE, DENSE_ROWS = ("spectral",), 3_000  # eigenvectors of all pairs: on few rows only
RIVALS = ("transfer cut", "HBGF")  # whose time is the measure of ours
MOST_TIME = 2  # times the faster of them
EQUAL = 0.005  # NMI that is lower by no more counts as equal

KMEANS, LANDMARKS = "k-means", "landmarks"
BASES = {KMEANS: KMeans(n_init=1), LANDMARKS: LandmarkSpectral()}
#: NMI that Huang et al. (2020) print: of EAC and LWGP on k-means, of U-SENC on its own bases
PRINTED = {
    ("usenc_pendigits", KMEANS): {"average linkage": 0.763, "LWGP": 0.775},
    ("usenc_usps", KMEANS): {"average linkage": 0.590, "LWGP": 0.576},
    ("usenc_letters", KMEANS): {"average linkage": 0.372, "LWGP": 0.371},
    ("usenc_pendigits", LANDMARKS): {"transfer cut": 0.853},
    ("usenc_usps", LANDMARKS): {"transfer cut": 0.739},
    ("usenc_letters", LANDMARKS): {"transfer cut": 0.459},
}
TARGETS = {
    ("usenc_pendigits", KMEANS): 0.775,
    ("usenc_usps", KMEANS): 0.60,
    ("usenc_letters", KMEANS): 0.38,
    ("usenc_pendigits", LANDMARKS): 0.853,
    ("usenc_usps", LANDMARKS): 0.739,
    ("usenc_letters", LANDMARKS): 0.459,
}

Run = dict[str, float]
Case = tuple[str, str]  # the set and the base clusterer


@dataclass(frozen=True)
class Setting:
    """How many runs are made, and of which base clusterings."""

    n_runs: int = 20
    n_bases: int = 20
    n_clusters: tuple[int, int] = (20, 60)

    def takes(self, method: str, n_samples: int, seed: int) -> bool:
        return not (
            (method in PAIRWISE and seed >= PAIRWISE_RUNS)
            or (method in DENSE and n_samples > DENSE_ROWS)
        )


def run(quick: bool, out: Path) -> list[Path]:
    toy = gaussians(150, "separated", 3)
    sets, missing = ({toy.name: toy}, {}) if quick else datasets.available(NAMES)
    if not sets:
        raise datasets.UnavailableError("; ".join(missing.values()))
    setting = Setting(1, 5, (4, 8)) if quick else Setting(int(os.environ.get(RUNS, "20")))
    takers = [methods.load(name) for name in (OURS, *OTHERS, *PAIRWISE, *DENSE)]
    progress = Progress("literature", len(sets) * len(BASES) * setting.n_runs)
    bases: dict[Case, list[float]] = {}
    results: dict[Case, dict[str, list[Run]]] = {}
    for data in sets.values():
        for base in BASES:
            bases[data.name, base], results[data.name, base] = [], {}
            for seed in range(setting.n_runs):
                table, seconds = _base_clusterings(data, base, setting, seed)
                bases[data.name, base].append(seconds)
                _measure(results[data.name, base], takers, data, table, setting, seed)
                progress.step(f"{data.name}, {base}, seed {seed}")
    rows = [row for case, runs in results.items() for row in _rows(case, runs)]
    times = [_base_row(sets[case[0]], case[1], seconds) for case, seconds in bases.items()]
    tables = {"Consensus": rows, "Base clusterings": times}
    notes = _verdicts(results)
    details = {"runs": _details(results)}
    draw = partial(_draw, results)
    caption = _caption(setting)
    return report.write(out, "literature", caption, tables, draw, notes, missing, details)


def _caption(setting: Setting) -> str:
    low, high = setting.n_clusters
    return (
        f"Consensus of {setting.n_bases} base clusterings of {low} to {high} clusters, made by "
        "KMeans(n_init=1), or by LandmarkSpectral with its defaults, on features as they are "
        "given. All methods get the same base clusterings. NMI: normalised mutual information, "
        "with the geometric mean of the entropies; accuracy: of the best matching of clusters to "
        f"classes; means over {setting.n_runs} runs ± standard deviation, of those that hold all "
        f"pairs of samples ({', '.join(PAIRWISE)}) over the first {PAIRWISE_RUNS} runs only. s: "
        "median seconds of the consensus alone, the methods in turn. 'spectral' is run on at most "
        f"{DENSE_ROWS:,} samples. 'NMFC, printed' is NMFConsensus(normalize=False). 'printed' is "
        "the NMI in Huang et al. (2020), who made their own base clusterings: of evidence "
        "accumulation (here average linkage) and LWGP on k-means, and of U-SENC, the transfer cut "
        "of spectral clusterings on landmarks."
    )


def _base_clusterings(
    data: datasets.Dataset, base: str, setting: Setting, seed: int
) -> tuple[np.ndarray, float]:
    began = perf_counter()
    found = base_partitions(
        data.X,
        BASES[base],
        n_estimators=setting.n_bases,
        n_clusters=setting.n_clusters,
        random_state=seed,
    )
    return found.labels, perf_counter() - began


def _measure(
    runs: dict[str, list[Run]],
    takers: list[methods.Method],
    data: datasets.Dataset,
    table: np.ndarray,
    setting: Setting,
    seed: int,
) -> None:
    """Add the run of every method that takes this many samples, in turn."""
    for method in takers:
        if not setting.takes(method.name, len(table), seed):
            continue
        labels, seconds = method.run(data.X, table, data.n_clusters, seed)
        nmi = normalized_mutual_info_score(data.y, labels, average_method="geometric")
        told = {"NMI": float(nmi), "accuracy": clustering_accuracy(data.y, labels), "s": seconds}
        runs.setdefault(method.name, []).append(told)


def _mean(runs: list[Run], score: str) -> float:
    return float(np.mean([run[score] for run in runs]))


def _seconds(runs: list[Run]) -> float:
    return float(np.median([run["s"] for run in runs]))


def _rows(case: Case, runs: dict[str, list[Run]]) -> list[report.Row]:
    printed = PRINTED.get(case, {})
    rows = []
    for method, own in runs.items():
        row: report.Row = {"data": case[0], "bases": case[1], "method": method, "runs": len(own)}
        for score in ("NMI", "accuracy"):
            row[score] = f"{_mean(own, score):.3f} ± {np.std([run[score] for run in own]):.3f}"
        row["printed"] = f"{printed[method]:.3f}" if method in printed else ""
        row |= {"time / ours": _seconds(own) / _seconds(runs[OURS]), "s": _seconds(own)}
        rows.append(row)
    return rows


def _base_row(data: datasets.Dataset, base: str, seconds: list[float]) -> report.Row:
    n, m = data.X.shape
    row: report.Row = {"data": data.name, "samples": n, "features": m}
    row |= {"classes": data.n_clusters, "bases": base}
    return row | {"s of all": float(np.median(seconds))}


def _verdicts(results: dict[Case, dict[str, list[Run]]]) -> list[str]:
    """Say whether ours is as good as what is printed, and not much slower than the fastest."""
    told = []
    for case, runs in results.items():
        name, ours = ", ".join(case), round(_mean(runs[OURS], "NMI"), 3)
        others = {m: round(_mean(own, "NMI"), 3) for m, own in runs.items() if m != OURS}
        best = max(others, key=others.__getitem__)
        line = f"{name}: NMI {ours:.3f}"
        if case in TARGETS:
            met = "met" if ours >= TARGETS[case] else "missed"
            line += f" (target: {TARGETS[case]:.3f}): {met}"
        told.append(f"{line}; the best of the others is {best} with {others[best]:.3f}.")
        fastest = min(RIVALS, key=lambda method: _seconds(runs[method]))
        times = _seconds(runs[OURS]) / _seconds(runs[fastest])
        met = "met" if times <= MOST_TIME and ours >= others[fastest] - EQUAL else "missed"
        told.append(
            f"{name}: our consensus takes {times:.2f} times as long as {fastest}, the faster of "
            f"{' and '.join(RIVALS)} (target: at most {MOST_TIME}), at NMI {ours:.3f} against "
            f"{others[fastest]:.3f} (target: not lower by more than {EQUAL:g}): {met}."
        )
    return told


def _details(results: dict[Case, dict[str, list[Run]]]) -> list[report.Row]:
    return [
        {"data": case[0], "bases": case[1], "method": method}
        | {key: [run[key] for run in own] for key in own[0]}
        for case, runs in results.items()
        for method, own in runs.items()
    ]


def _draw(results: dict[Case, dict[str, list[Run]]], figure: Any) -> None:
    axes, beside = report.panels(figure, [f"{name},\n{base}" for name, base in results])
    for ax, (case, runs) in zip(axes, results.items(), strict=True):
        for i, (method, own) in enumerate(runs.items()):
            style = {"color": f"C{i}", "label": method}
            marker, size = ("*", 11) if method == OURS else ("o", 6)
            ax.plot(_seconds(own), _mean(own, "NMI"), marker, ms=size, **style)
        for nmi in PRINTED.get(case, {}).values():
            ax.axhline(nmi, ls=":", color="k", lw=0.8)
        ax.set(xscale="log")
    beside.legend(*axes[0].get_legend_handles_labels(), loc="center", fontsize="small")
    figure.supxlabel("seconds of the consensus; lines: printed figures", fontsize="small")
    figure.supylabel("normalised mutual information", fontsize="small")
