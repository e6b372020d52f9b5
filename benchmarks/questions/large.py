"""How do clusters, and the time to find them, compare on 10,000 to 20,000 handwritten characters?

Nothing but the features is given, and the number of classes to the methods that take it.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from benchmarks import datasets, methods, report
from benchmarks.datasets.gaussians import gaussians
from benchmarks.datasets.large import NAMES
from benchmarks.methods.peer import NoClusteringError
from benchmarks.runner import Progress, interleaved

OURS, OLD = "SSNMF", "SSNMF, neighbours"
OTHERS = (
    "SpectralClustering, neighbours",
    "KMeans(n_init=10)",
    "MiniBatchKMeans",
    "Birch",
    "HDBSCAN",
    "genieclust",
)
#: normalised mutual information of U-SENC, a consensus, and of U-SPEC in Huang et al. (2020)
PRINTED = {
    "usenc_pendigits": {"U-SENC": 0.853, "U-SPEC": 0.803},
    "usenc_usps": {"U-SENC": 0.739},
    "usenc_letters": {"U-SENC": 0.459},
}
TITLES = {OURS: "SSNMF, defaults", OLD: "SSNMF, nearest_neighbors"}

Run = dict[str, float]


def run(quick: bool, out: Path) -> list[Path]:
    n_seeds, toy = 1 if quick else 5, gaussians(150, "overlapping", 3)
    sets, missing = ({toy.name: toy}, {}) if quick else datasets.available(NAMES)
    if not sets:
        raise datasets.UnavailableError("; ".join(missing.values()))
    takers, skipped = methods.available((OURS, OLD, *OTHERS))
    progress = Progress("large", len(sets) * len(takers) * n_seeds)
    results = {}
    for name, data in sets.items():
        tasks = {m: partial(_trial, method, data) for m, method in takers.items()}
        results[name] = interleaved(tasks, n_seeds, progress)
    rows = [row for name, runs in results.items() for row in _rows(sets[name], runs)]
    caption = (
        "Clustering of features as they are given, without constraints. NMI: normalised mutual "
        "information, with the geometric mean of the entropies as in Huang et al. (2020), and ARI: "
        f"adjusted Rand index, means over {n_seeds} seeds ± standard deviation; s: median seconds "
        "of these runs, interleaved. 'time / ours' is the time of a method over that of "
        "SSNMFClusterer with its defaults; 'SSNMF, nearest_neighbors' is SSNMFClusterer with that "
        "affinity. The other methods have their defaults too, where the name does not say "
        "otherwise, and threads as they take them; ours runs one job. HDBSCAN is not told the "
        "number of clusters, and its noise counts as one. Birch, HDBSCAN and genieclust draw "
        "nothing: their seeds only repeat the time."
    )
    notes = [*_verdicts(results), *_failures(results), *_printed(sets)]
    details = {"runs": _details(results)}
    draw = partial(_draw, results)
    heading = {"Handwritten characters": rows}
    return report.write(out, "large", caption, heading, draw, notes, skipped | missing, details)


def _trial(method: methods.Method, data: datasets.Dataset, seed: int) -> Run:
    """Return scores and seconds of one run; NaN if a peer finds no clustering."""
    try:
        labels, seconds = method.run(data.X, None, data.n_clusters, seed)
    except NoClusteringError:
        return dict.fromkeys(("NMI", "ARI", "clusters", "s"), np.nan)
    nmi = normalized_mutual_info_score(data.y, labels, average_method="geometric")
    ari = adjusted_rand_score(data.y, labels)
    clusters = len(np.unique(labels[labels >= 0]))
    return {"NMI": float(nmi), "ARI": float(ari), "clusters": clusters, "s": seconds}


def _rows(data: datasets.Dataset, runs: dict[str, list[Run]]) -> list[report.Row]:
    n, m = data.X.shape
    ours = _median(runs[OURS], "s")
    rows = []
    for name, own in runs.items():
        row: report.Row = {"data": data.name, "samples": n, "features": m}
        row |= {"classes": data.n_clusters, "method": TITLES.get(name, name)}
        for score in ("NMI", "ARI"):
            row[score] = f"{_mean(own, score):.3f} ± {np.std([run[score] for run in own]):.3f}"
        row["clusters"] = _median(own, "clusters")
        row |= {"time / ours": _median(own, "s") / ours, "s": _median(own, "s")}
        rows.append(row)
    return rows


def _mean(runs: list[Run], score: str) -> float:
    return float(np.mean([run[score] for run in runs]))


def _median(runs: list[Run], score: str) -> float:
    return float(np.median([run[score] for run in runs]))


def _verdicts(results: dict[str, dict[str, list[Run]]]) -> list[str]:
    """Say how the defaults do beside the neighbour graph, and beside the best of the others."""
    told = []
    for name, runs in results.items():
        for score in ("ARI", "NMI"):
            means = {method: round(_mean(own, score), 3) for method, own in runs.items()}
            known = {m: mean for m, mean in means.items() if m in OTHERS and not np.isnan(mean)}
            best = max(known, key=known.__getitem__)
            line = f"{name}: {score} {means[OURS]:.3f} with defaults against {means[OLD]:.3f} on "
            line += "the neighbour graph"
            if score == "ARI":
                met = "met" if means[OURS] >= means[OLD] else "missed"
                line += f" (target: not below it): {met}"
            told.append(f"{line}; the best of the others is {best} with {known[best]:.3f}.")
    return told


def _failures(results: dict[str, dict[str, list[Run]]]) -> list[str]:
    failed = [
        f"{method} on {name}"
        for name, runs in results.items()
        for method, own in runs.items()
        if np.isnan(_mean(own, "ARI"))
    ]
    return [f"Found no clustering in the time given: {', '.join(failed)}."] if failed else []


def _printed(sets: dict[str, datasets.Dataset]) -> list[str]:
    """Say what NMI Huang et al. (2020) print for the sets that are here."""
    told = [
        f"{name}, " + " and ".join(f"{nmi:.3f} of {method}" for method, nmi in own.items())
        for name, own in PRINTED.items()
        if name in sets
    ]
    if not told:
        return []
    about = "NMI that Huang et al. (2020) print, U-SENC being a consensus of 20 clusterings"
    return [f"{about}: {'; '.join(told)}."]


def _details(results: dict[str, dict[str, list[Run]]]) -> list[report.Row]:
    return [
        {"data": name, "method": method} | {key: [run[key] for run in own] for key in own[0]}
        for name, runs in results.items()
        for method, own in runs.items()
    ]


def _draw(results: dict[str, dict[str, list[Run]]], figure: Any) -> None:
    axes, beside = report.panels(figure, list(results))
    for ax, (name, runs) in zip(axes, results.items(), strict=True):
        for i, (method, own) in enumerate(runs.items()):
            at = (_median(own, "s"), _mean(own, "NMI"))
            style = {"color": f"C{i}", "label": TITLES.get(method, method)}
            ax.plot(*at, "*" if method == OURS else "o", ms=11 if method == OURS else 6, **style)
        for method, nmi in PRINTED.get(name, {}).items():
            ax.axhline(nmi, ls=":" if method == "U-SENC" else "--", color="k", lw=0.8)
        ax.set(xscale="log", ylim=(0, 1))
    beside.legend(*axes[0].get_legend_handles_labels(), loc="center", fontsize="small")
    figure.supxlabel(
        "seconds; lines: U-SENC (dotted) and U-SPEC (dashed) as printed", fontsize="small"
    )
    figure.supylabel("normalised mutual information", fontsize="small")
