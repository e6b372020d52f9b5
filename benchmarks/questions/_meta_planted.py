"""Planted biclusters: the table of section 6 and the curve of section 4.1 of Badea (2005)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from nmfcluster._engine.run import Plan
from sklearn.cluster import KMeans

from benchmarks import report
from benchmarks.methods import fcm
from benchmarks.methods import metacluster as ours
from benchmarks.runner import Progress
from nmfcluster._arrays.labels import one_hot
from nmfcluster.datasets import make_biclusters
from nmfcluster.meta.metaclusters import METACLUSTERINGS, Metaclusters, refine
from nmfcluster.meta.runs import Runs, run_many
from nmfcluster.meta.solvers import hals, multiplicative, sparse_hals
from nmfcluster.meta.squares import MatrixObjective, fitted_rows, unit_rows
from nmfcluster.metrics import overlap_match

KMEANS, FCM, NMF, MU, PTF = "k-means", "fuzzy c-means", "NMF", "NMF by mu", "PTF"
METAS, BEST, SINGLE = (KMEANS, FCM, NMF, PTF), "best single run", "a single run"
SOLVERS = {NMF: hals, MU: multiplicative}
THRESHOLD = 0.2  # of `overlap_match`, as in the estimator
FIGURES = {
    "match": "Match of the clusters of columns with the planted ones",
    "match of biclusters": "Match of the biclusters",
    "error": "Relative error",
}

#: the table of section 6, by row and column: match, its deviation, relative error, its deviation
COLUMNS = (KMEANS, FCM, NMF)
PAPER = {
    "k-means": (
        (0.53, 0.021, 0.306, 0.032),
        (0.55, 0.058, 0.2, 0.018),
        (0.81, 0.123, 0.052, 0.033),
    ),
    "k-means + NMF": (
        (0.62, 0.056, 0.153, 0.059),
        (0.63, 0.181, 0.094, 0.046),
        (0.9, 0.148, 0.002, 0.001),
    ),
    "fuzzy c-means": (
        (0.51, 0.041, 0.315, 0.054),
        (0.53, 0.011, 0.202, 0.019),
        (0.92, 0.126, 0.014, 0.004),
    ),
    "fuzzy c-means + NMF": (
        (0.65, 0.178, 0.092, 0.044),
        (0.56, 0.024, 0.112, 0.008),
        (0.92, 0.126, 0.002, 0.0),
    ),
    "NMF": ((0.5, 0.032, 0.313, 0.042), (0.53, 0.009, 0.194, 0.018), (0.69, 0.008, 0.027, 0.043)),
    "NMF + NMF": (
        (0.59, 0.049, 0.132, 0.016),
        (0.55, 0.008, 0.119, 0.012),
        (0.74, 0.111, 0.012, 0.025),
    ),
    "PTF": ((0.49, 0.044, 0.287, 0.023), (0.53, 0.01, 0.212, 0.019), (0.98, 0.037, 0.023, 0.006)),
    "PTF + NMF": (
        (0.58, 0.04, 0.122, 0.015),
        (0.55, 0.011, 0.116, 0.014),
        (0.98, 0.043, 0.001, 0.0),
    ),
    BEST: ((0.49, 0.017, 0.307, 0.011), (0.53, 0.008, 0.208, 0.018), (0.76, 0.089, 0.001, 0.0)),
}
#: the table of section 4.1
LAMBDAS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.5, 0.75)
PAPER_NOISY = (0.2001, 0.2017, 0.2053, 0.2161, 0.2295, 0.2452, 0.2983, 0.3228)
PAPER_ORIGINAL = (0.1403, 0.1375, 0.1364, 0.1419, 0.1544, 0.1719, 0.2323, 0.2604)
PENALTIES, NOISE = ("l2", "l1_columns", "l1_rows"), 0.75

Results = dict[tuple[str, str], list[dict[str, float]]]  # by row and column of the table


@dataclass(frozen=True)
class Case:
    """A kind of planted data, and the methods whose runs are metaclustered there."""

    k: int = 4
    shape: tuple[int, int] = (21, 35)
    noise: float = 0.0
    objects: tuple[str, ...] = (KMEANS, FCM, NMF, MU)


THE_PAPERS = Case()
LARGER = Case(8, (42, 70), 0.25, (NMF, MU))


@dataclass(frozen=True)
class Planted:
    """Data with their planted biclusters."""

    X: np.ndarray
    W: np.ndarray
    H: np.ndarray

    def scores(self, W: np.ndarray, H: np.ndarray) -> dict[str, float]:
        """Return how well biclusters W (n, k) and H match the planted ones and X."""
        pairs = (W.T, H), (self.W.T, self.H)
        return {
            "match": overlap_match(H, self.H, threshold=THRESHOLD),
            "match of biclusters": overlap_match(*pairs, threshold=THRESHOLD),
            "error": float(np.linalg.norm(self.X - W @ H) / np.linalg.norm(self.X)),
        }


def compare(case: Case, n_data: int, n_runs: int, progress: Progress) -> Results:
    """Return the scores of every combination of runs and metaclustering on several data sets."""
    results: Results = {}
    for seed in range(n_data):
        made = make_biclusters(case.shape, case.k, noise=case.noise, random_state=seed)
        data = Planted(*made)
        for objects in case.objects:
            rng = np.random.RandomState(seed)
            runs = object_runs(objects, data.X, case.k, n_runs, rng)
            ends = _ends(data.X, case.k, runs, rng)
            scores = {row: data.scores(*factors) for row, factors in ends.items()}
            singles = [data.scores(*run) for run in _single(runs)]
            scores[BEST] = singles[0]
            scores[SINGLE] = {f: float(np.mean([one[f] for one in singles])) for f in FIGURES}
            for row, one in scores.items():
                results.setdefault((row, objects), []).append(one)
        progress.step(f"{case.k} planted biclusters, data set {seed}")
    return results


def _single(runs: Runs) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(runs.W[own].T, runs.H[own]) for own in runs.slices()]


def object_runs(name: str, X: np.ndarray, k: int, n_runs: int, rng: np.random.RandomState) -> Runs:
    """Cluster the columns of X several times.

    For k-means and fuzzy c-means, H holds the memberships of the columns, scaled to length 1 as the
    H of NMF is, and W is the nonnegative least squares fit to X.
    """
    objective = MatrixObjective(X)
    if name in SOLVERS:
        plan = ours.plan(k, SOLVERS[name])
        return run_many(objective, plan, np.full(n_runs, k), rng)
    results = []
    for _ in range(n_runs):
        if name == FCM:
            memberships = fcm.fuzzy_c_means(X.T, k, rng)[0]
        else:
            kmeans = KMeans(k, init="random", n_init=1, random_state=rng).fit(X.T)
            memberships = one_hot(kmeans.labels_, k)
        H, _ = unit_rows(memberships.T)
        W = fitted_rows(X, H)
        results.append((objective.error(W, H) ** 2 / 2, W.T, H))
    results.sort(key=lambda run: run[0])
    losses, rows, columns = zip(*results, strict=True)
    return Runs(
        np.concatenate(rows),
        np.concatenate(columns),
        np.full(n_runs, k),
        np.array(losses),
        np.ones(n_runs, dtype=bool),
    )


def _ends(
    X: np.ndarray, k: int, runs: Runs, rng: np.random.RandomState
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return W and H of every metaclustering, with and without the final NMF."""
    objective, plan = MatrixObjective(X), ours.plan(k)
    results = {}
    for meta in METAS:
        candidates = metaclusters(meta, runs, plan, rng)
        for final in (False, True):
            W, H = refine(objective, plan, candidates, final)[1].best.factors
            results[meta + " + NMF" * final] = W, H
    return results


def metaclusters(
    meta: str, runs: Runs, plan: Plan, rng: np.random.RandomState
) -> list[Metaclusters]:
    """Return the metaclusters of runs, once for every optimum."""
    if meta != FCM:
        return METACLUSTERINGS[{KMEANS: "kmeans", NMF: "nmf", PTF: "ptf"}[meta]](runs, plan, rng)
    memberships, centres = fcm.best_of(runs.H, plan.n_clusters, rng, plan.n_init)
    return [Metaclusters(memberships, unit_rows(centres)[0])]


def comparison(results: Results, figure: str) -> list[report.Row]:
    """Return a row for every metaclustering: mean and deviation beside those of the paper."""
    rows = []
    objects = dict.fromkeys(column for _, column in results)
    for row in dict.fromkeys(name for name, _ in results):
        cells: report.Row = {"metaclusters by": row}
        for column in objects:
            cells[f"{column} runs"] = _spread(results[row, column], figure)
            if column in COLUMNS and figure != "match of biclusters":
                start = 0 if figure == "match" else 2
                printed = PAPER[row][COLUMNS.index(column)] if row in PAPER else ()
                cells[f"{column}, paper"] = " ± ".join(f"{n:g}" for n in printed[start : start + 2])
        rows.append(cells)
    return rows


def larger(results: Results) -> list[report.Row]:
    """Return a row for every metaclustering of a case that the paper does not have."""
    return [
        {"runs": objects, "metaclusters by": row}
        | {figure: _spread(told, figure) for figure in FIGURES}
        for objects in dict.fromkeys(column for _, column in results)
        for (row, column), told in results.items()
        if column == objects
    ]


def _spread(told: list[dict[str, float]], figure: str) -> str:
    mean, std = (float(f([one[figure] for one in told])) for f in (np.mean, np.std))
    if figure == "error":
        return f"{report.cell(mean)} ± {report.cell(std)}"
    return f"{mean:.3f} ± {std:.3f}"


def verdict(results: Results) -> str:
    own = results["PTF + NMF", NMF]
    match, error = (float(np.mean([told[f] for told in own])) for f in ("match", "error"))
    best, single = (
        float(np.mean([told["match"] for told in results[row, NMF]])) for row in (BEST, SINGLE)
    )
    met = "met" if round(match, 3) >= 0.98 and error < 5e-3 else "missed"
    return (
        f"PTF of NMF runs and a final NMF: match {match:.3f}, relative error {report.cell(error)} "
        f"(target: 0.98 or better, of the order of 1e-3): {met}. The best single run has a match "
        f"of {best:.3f}, a single run one of {single:.3f}."
    )


def sparser(
    n_data: int, n_starts: int, lambdas: Iterable[float], progress: Progress
) -> list[report.Row]:
    """Return the errors of `sparse_hals` to noisy and original data, by penalty and lambda.

    Of several starts, the one with the smallest objective is scored.
    """
    lambdas, rows = tuple(lambdas), []
    data = []
    for seed in range(n_data):
        noisy, original = (
            make_biclusters(noise=noise, random_state=seed)[0] for noise in (NOISE, 0)
        )
        data.append((noisy, original))
    for penalty in PENALTIES:
        for weight in lambdas:
            told = [
                _errors(noisy, original, penalty, weight, n_starts, seed)
                for seed, (noisy, original) in enumerate(data)
            ]
            means = {key: float(np.mean([one[key] for one in told])) for key in told[0]}
            rows.append({"penalty": penalty, "lambda": weight} | means)
            progress.step(f"{penalty}, lambda {weight:g}")
    return rows


def _errors(
    noisy: np.ndarray, original: np.ndarray, penalty: str, weight: float, n_starts: int, seed: int
) -> dict[str, float]:
    k, rng = THE_PAPERS.k, np.random.RandomState(seed)
    plan, objective = (
        ours.plan(k, sparse_hals),
        MatrixObjective(noisy, sparsity=weight, penalty=penalty),
    )
    W, H = _single(run_many(objective, plan, np.full(n_starts, k), rng))[0]
    return {
        "eps_noisy": float(np.linalg.norm(noisy - W @ H) / np.linalg.norm(noisy)),
        "eps_orig": float(np.linalg.norm(original - W @ H) / np.linalg.norm(original)),
        "zeros of H": float((H == 0).mean()),
    }


def beside_paper(rows: list[report.Row]) -> list[report.Row]:
    """Return a row for every lambda, with the errors of the paper last."""
    table = []
    by_penalty = {p: {r["lambda"]: r for r in rows if r["penalty"] == p} for p in PENALTIES}
    printed = dict(zip(LAMBDAS, zip(PAPER_NOISY, PAPER_ORIGINAL, strict=True), strict=True))
    for weight in by_penalty[PENALTIES[0]]:
        cells: report.Row = {"lambda": weight}
        for penalty, own in by_penalty.items():
            for key in ("eps_noisy", "eps_orig", "zeros of H"):
                cells[f"{key}, {penalty}"] = f"{own[weight][key]:.3f}"
        cells |= dict(zip(("eps_noisy, paper", "eps_orig, paper"), printed[weight], strict=True))
        table.append({k: f"{v:.4f}" if k.endswith("paper") else v for k, v in cells.items()})
    return table


def minima(rows: list[report.Row]) -> str:
    """Say at which lambda the error to the original data is smallest."""
    told = []
    for penalty in PENALTIES:
        own = [row for row in rows if row["penalty"] == penalty]
        best = min(own, key=lambda row: row["eps_orig"])
        told.append(
            f"{penalty} at {best['lambda']:g} ({best['eps_orig']:.3f}; without: "
            f"{own[0]['eps_orig']:.3f})"
        )
    return f"eps_orig is smallest for {', '.join(told)}; in the paper, l2, at 0.05."


def draw_match(results: Results, ax: Any) -> None:
    rows = list(PAPER)[::-1]
    for column, objects in enumerate(COLUMNS):
        means = [np.mean([told["match"] for told in results[row, objects]]) for row in rows]
        places = np.arange(len(rows)) + 0.25 * (1 - column)
        ax.barh(places, means, height=0.25, label=f"{objects} runs", color=f"C{column}")
        printed = [PAPER[row][column][0] for row in rows]
        ax.plot(printed, places, "k|", label="paper" if not column else None)
    ax.set(yticks=range(len(rows)), yticklabels=rows, xlabel="match with planted clusters")
    ax.legend(fontsize="x-small")


def draw_errors(rows: list[report.Row], ax: Any) -> None:
    for colour, penalty in enumerate(PENALTIES):
        own = [row for row in rows if row["penalty"] == penalty]
        weights = [row["lambda"] for row in own]
        for key, style in (("eps_orig", "o-"), ("eps_noisy", ".:")):
            values = [row[key] for row in own]
            ax.plot(weights, values, style, color=f"C{colour}", label=f"{key}, {penalty}")
    ax.plot(LAMBDAS, PAPER_ORIGINAL, "k-", lw=0.8, label="eps_orig, paper")
    ax.plot(LAMBDAS, PAPER_NOISY, "k:", lw=0.8, label="eps_noisy, paper")
    ax.set(xlabel="lambda", ylabel="relative error")
    ax.legend(fontsize="x-small")
