"""Tumours by gene expression: how well methods find their classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from benchmarks import datasets, methods, report
from benchmarks.datasets import Dataset, expression
from benchmarks.datasets.expression import PREPARATIONS
from benchmarks.methods import metacluster, nmf_runs, ssnmf
from benchmarks.questions._fusion_runs import Run, scores
from benchmarks.runner import Progress
from nmfcluster.metrics import clustering_accuracy, cophenetic_correlation

TAKERS = (
    *metacluster.VARIANTS,
    "cNMF-style",
    "KMeans(n_init=10)",
    "NMFC, of features",
    ssnmf.WITHOUT,
)
BEST, SINGLE = f"NMF, best of {nmf_runs.N_RUNS}", "NMF, a single run"

# by data and preparation, then by method
Results = dict[tuple[str, str], dict[str, list[Run]]]


def sets(quick: bool) -> tuple[dict[str, Dataset], dict[str, str]]:
    if not quick:
        return datasets.available(expression.PAPERS)
    X, y = load_digits(n_class=3, return_X_y=True)
    return {"toy": Dataset("toy", 1 + X[:30, ::2], y[:30])}, {}


def compare(
    sets_by_name: dict[str, Dataset],
    preparations: Iterable[str],
    seeds: Iterable[int],
    progress: Progress,
) -> Results:
    """Return the runs of all methods, on all sets in each preparation."""
    takers = {name: methods.load(name) for name in TAKERS}
    results: Results = {}
    for name, data in sets_by_name.items():
        for how in preparations:
            X, k = PREPARATIONS[how](data.X), data.n_clusters
            own: dict[str, list[Run]] = {}
            for seed in seeds:
                for method, taker in takers.items():
                    labels, seconds = taker.run(X, None, k, seed)
                    own.setdefault(method, []).append(
                        scores(data.y, labels) | {"seconds": seconds}
                    )
                singles = nmf_runs.run_many(
                    X, k, nmf_runs.N_RUNS, seed, **nmf_runs.PATIENT
                )
                told = [scores(data.y, one.labels) for one in singles]
                own.setdefault(BEST, []).append(told[0])
                own.setdefault(SINGLE, []).extend(told)
                progress.step(f"{name}, {how}")
            results[name, how] = own
    return results


def table(results: Results, figure: str) -> list[report.Row]:
    """Return a row for every method, with a column for every preparation of every data set."""
    rows = []
    for method in (*TAKERS, BEST, SINGLE):
        row: report.Row = {"method": method}
        for (name, how), own in results.items():
            values = [run[figure] for run in own[method]]
            row[f"{name}, {how}"] = f"{np.mean(values):.3f} ± {np.std(values):.3f}"
        rows.append(row)
    return rows


def by_k(
    sets_by_name: dict[str, Dataset],
    preparations: Iterable[str],
    ks: Iterable[int],
    seeds: Iterable[int],
    progress: Progress,
) -> list[report.Row]:
    """Return how clear and how accurate our clusters are, by their number."""
    rows = []
    for name, data in sets_by_name.items():
        if "," in name:
            continue  # the same table, with other classes
        for how in preparations:
            X = PREPARATIONS[how](data.X)
            for k in ks:
                told = [_of_k(X, data.y, k, seed) for seed in seeds]
                rows.append(
                    {"data": f"{name}, {how}", "k": k, "classes": data.n_clusters}
                    | {
                        key: float(np.mean([one[key] for one in told]))
                        for key in told[0]
                    }
                    | {"deviation": float(np.std([one["cophenetic"] for one in told]))}
                )
                progress.step(f"{name}, {how}, k = {k}")
    return rows


def _of_k(X: np.ndarray, y: np.ndarray, k: int, seed: int) -> dict[str, float]:
    model = metacluster.fit(X, k, seed, resample=None)
    return {
        "cophenetic": float(cophenetic_correlation(model.consensus_matrix())),
        "recurrence": float(model.recurrence_.min()),
        "accuracy": clustering_accuracy(y, model.labels_),
    }


def curves(rows: list[report.Row], figure: str) -> list[report.Row]:
    """Return a row for every data set, with a column for every k."""
    return [
        {"data": name}
        | {f"k = {r['k']}": f"{r[figure]:.3f}" for r in rows if r["data"] == name}
        for name in dict.fromkeys(row["data"] for row in rows)
    ]


def verdicts(results: Results) -> list[str]:
    """Say whether ours, with its defaults, is as accurate as the best of the others."""
    told = []
    ours, *others = (*TAKERS, BEST, SINGLE)
    others = [method for method in others if method not in metacluster.VARIANTS]
    for (name, how), own in results.items():
        means = {
            m: float(np.mean([run["accuracy"] for run in own[m]]))
            for m in (ours, *others)
        }
        best = max(others, key=means.__getitem__)
        met = "met" if round(means[ours], 3) >= round(means[best], 3) else "missed"
        told.append(
            f"{name}, {how}: accuracy {means[ours]:.3f} with defaults against {means[best]:.3f} "
            f"of {best}: {met}."
        )
    return told


def draw_accuracy(results: Results, ax: Any) -> None:
    rows = (SINGLE, BEST, *TAKERS[::-1])
    for colour, ((name, how), own) in enumerate(results.items()):
        means = [np.mean([run["accuracy"] for run in own[method]]) for method in rows]
        ax.plot(
            means,
            range(len(rows)),
            "o",
            color=f"C{colour}",
            alpha=0.7,
            label=f"{name}, {how}",
        )
    ax.set(yticks=range(len(rows)), yticklabels=rows, xlabel="accuracy")
    ax.legend(fontsize="x-small")


def draw_curves(rows: list[report.Row], ax: Any) -> None:
    for name in dict.fromkeys(row["data"] for row in rows):
        own = [row for row in rows if row["data"] == name]
        values = [row["cophenetic"] for row in own]
        spread = [row["deviation"] for row in own]
        ax.errorbar(
            [row["k"] for row in own], values, spread, fmt="o-", capsize=2, label=name
        )
    ax.set(xlabel="k", ylabel="cophenetic correlation")
    ax.legend(fontsize="x-small")
