"""What does fusion do with objects that some views lack, and with objects it was not fitted to?

Rows of every view are removed at random. Half of the objects are held out, and predicted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score

from benchmarks import datasets, methods, report
from benchmarks.datasets import handwritten
from benchmarks.datasets.views import Views
from benchmarks.methods import fusion, mean_similarity
from benchmarks.methods.peer import NoClusteringError
from benchmarks.questions import fusion_noise
from benchmarks.questions._fusion_runs import LONG, SETS, Run, mean, scores
from benchmarks.runner import Progress
from nmfcluster import KernelStack, SimilarityFusionNMF, SimilarityStack

SHARES = (0.0, 0.2, 0.4)  # of the rows of every view that are removed
SEEDS = 5
OURS, IMPUTED, SNF = "fusion", "fusion, mean imputed", "SNF, mean imputed"
NEMO, SPECTRAL = "NEMO", "spectral, mean imputed"
METHODS = (OURS, IMPUTED, SNF, NEMO, SPECTRAL)
CLOSE = 0.03  # ARI that predicted labels may lose to those of a fit of all objects
HELD, HALF, WHOLE, SAME = "predicted", "fit of the other half", "fit of all", "prediction of all"

Holes = list[np.ndarray]  # a view each, with NaN in rows that were removed
Taker = Callable[[Holes, str, int, int], tuple[np.ndarray, float]]
Runs = dict[tuple[str, float, str], list[Run]]  # by set, share and method


def run(quick: bool, out: Path) -> list[Path]:
    sets, missing = ({"toy": _toy()}, {}) if quick else datasets.available(SETS)
    seeds = range(1 if quick else SEEDS)
    takers, skipped = _takers()
    with_views = [data for data in sets.values() if data.views]
    total = len(with_views) * len(SHARES) + len(sets) * len(fusion_noise.KINDS)
    progress = Progress("fusion_objects", total)
    runs: Runs = {}
    failed: dict[str, str] = {}
    for data in with_views:
        for share in SHARES:
            for name, own in _removed(data, share, takers, seeds, failed).items():
                runs[data.name, share, name] = own
            progress.step(f"{data.name}, {share:.0%} missing")
    held = {}
    for data in sets.values():
        for kind in fusion_noise.KINDS:
            held[data.name, kind] = [_held_out(data, kind, seed) for seed in seeds]
            progress.step(f"{data.name}, {kind}, held out")
    return _report(out, runs, held, len(seeds), skipped | missing | failed)


def _toy() -> Views:
    pictures, y = load_digits(n_class=3, return_X_y=True)
    return handwritten.halves("toy", pictures[:45], y[:45])


def without_rows(views: list[Any], share: float, seed: int) -> Holes:
    """Return dense views with NaN in a share of their rows; one view at least keeps an object."""
    rng = np.random.default_rng(seed)
    lost = rng.random((views[0].shape[0], len(views))) < share
    everywhere = np.flatnonzero(lost.all(axis=1))
    lost[everywhere, rng.integers(len(views), size=len(everywhere))] = False
    holes = []
    for view, gone in zip(views, lost.T, strict=True):
        table = view.toarray() if sp.issparse(view) else np.array(view, dtype=float)
        table[gone] = np.nan
        holes.append(table)
    return holes


def imputed(holes: Holes) -> Holes:
    """Return views with the mean of a feature in the place of NaN."""
    return [np.where(np.isnan(table), np.nanmean(table, axis=0), table) for table in holes]


def _takers() -> tuple[dict[str, Taker], dict[str, str]]:
    """Return the methods that can run here, and why others cannot."""
    takers: dict[str, Taker] = {OURS: _ours, IMPUTED: _ours_imputed, SPECTRAL: _spectral}
    peers, skipped = methods.available(("SNF", NEMO))
    if "SNF" in peers:
        takers[SNF] = partial(_snf, peers["SNF"])
    if NEMO in peers:
        takers[NEMO] = partial(_nemo, peers[NEMO])
    return takers, skipped


def _stack(views: Holes, kernel: str) -> SimilarityStack:
    """Return the similarities of every view, with NaN for what it lacks."""
    kernels = [KernelStack(kernel).fit_transform(view) for view in views]
    return SimilarityStack([stack.sources[0] for stack in kernels])


def _ours(holes: Holes, kernel: str, k: int, seed: int) -> tuple[np.ndarray, float]:
    began = perf_counter()
    model = SimilarityFusionNMF(k, affinity=kernel, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = model.fit(None, views=holes).labels_
    return labels, perf_counter() - began


def _ours_imputed(holes: Holes, kernel: str, k: int, seed: int) -> tuple[np.ndarray, float]:
    return _ours(imputed(holes), kernel, k, seed)


def _spectral(holes: Holes, kernel: str, k: int, seed: int) -> tuple[np.ndarray, float]:
    began = perf_counter()
    mixed = mean_similarity.mean(_stack(imputed(holes), kernel), scaled=False)
    return mean_similarity.spectral(mixed, k, seed), perf_counter() - began


def _snf(peer: methods.Method, holes: Holes, kernel: str, k: int, seed: int) -> Any:
    return peer.run(None, _stack(imputed(holes), kernel), k, seed)


def _nemo(peer: methods.Method, holes: Holes, kernel: str, k: int, seed: int) -> Any:
    return peer.run(None, holes, k, seed)


def _removed(
    data: Views, share: float, takers: dict[str, Taker], seeds: range, failed: dict[str, str]
) -> dict[str, list[Run]]:
    """Run all methods without some rows, until they fail or have taken `LONG` seconds."""
    kernel = next(name for name in ("cosine", "rbf") if name in data.kernels)
    runs: dict[str, list[Run]] = {name: [] for name in takers}
    left = list(takers)
    for seed in seeds:
        holes = without_rows(data.views, share, seed)
        for name in list(left):
            try:
                labels, seconds = takers[name](holes, kernel, data.n_clusters, seed)
            except (NoClusteringError, RuntimeError) as why:  # a peer has failed
                failed[f"{name} on {data.name}, {share:.0%}"] = str(why).strip().splitlines()[-1]
                left.remove(name)
                continue
            runs[name].append(scores(data.y, labels) | {"seconds": seconds})
            if sum(one["seconds"] for one in runs[name]) > LONG:
                left.remove(name)
    return runs


def _held_out(data: Views, kind: str, seed: int) -> Run:
    """Return the ARI of labels that were predicted, beside those of fits."""
    stack, k, n = fusion_noise.sources(data, kind), data.n_clusters, len(data.y)
    order = np.random.default_rng(seed).permutation(n)
    known, new = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
    half = fusion.fit(stack[np.ix_(known, known)], k, seed)
    whole = fusion.fit(stack, k, seed)
    predicted = half.predict(stack[np.ix_(new, known)])
    return {
        HELD: float(adjusted_rand_score(data.y[new], predicted)),
        HALF: float(adjusted_rand_score(data.y[known], half.labels_)),
        WHOLE: float(adjusted_rand_score(data.y, whole.labels_)),
        SAME: float(adjusted_rand_score(whole.labels_, whole.predict(stack))),
    }


def _report(out: Path, runs: Runs, held: Any, n_seeds: int, skipped: dict[str, str]) -> list[Path]:
    names = list(dict.fromkeys(name for name, _, _ in runs))
    taken = [method for method in METHODS if any(runs.get((name, 0.0, method)) for name in names)]
    tables: dict[str, Any] = {"Mean ARI over the sets": _by_method(runs, names, taken)}
    for share in SHARES:
        tables[f"ARI of every set, {share:.0%} of the rows missing"] = [
            {"data": name}
            | {m: f"{mean(runs[name, share, m], 'ari'):.3f}" for m in taken if runs[name, share, m]}
            for name in names
        ]
    tables["Half of the objects held out: ARI"] = [_held_row(key, own) for key, own in held.items()]
    caption = (
        f"Means over {n_seeds} seeds, which draw the rows; a method that had taken {LONG:g} s on a "
        "set was run with no more. Rows of every view are removed independently; an object that "
        "would be in none keeps one. Kernels are cosines of texts, else Gaussian of median squared "
        "distance. 'fusion' is SimilarityFusionNMF with its defaults, to which a removed row is "
        "NaN; 'mean imputed' has the mean of a feature in its place. NEMO (Rappoport and Shamir, "
        "2019) is that of imml, made for views that lack objects. Held out: a model of half of the "
        f"objects predicts the others; '{WHOLE}' is a fit of all objects, '{SAME}' the agreement "
        "of its predictions for all of them with its labels."
    )
    notes, draw = _verdicts(runs, held, names, taken), partial(_draw, runs, names, taken)
    return report.write(out, "fusion_objects", caption, tables, draw, notes, skipped)


def _over(runs: Runs, names: list[str], share: float, method: str) -> float:
    own = [mean(runs[name, share, method], "ari") for name in names if runs[name, share, method]]
    return float(np.mean(own)) if own else float("nan")


def _by_method(runs: Runs, names: list[str], taken: list[str]) -> list[report.Row]:
    return [
        {"method": method}
        | {f"{share:.0%} missing": f"{_over(runs, names, share, method):.3f}" for share in SHARES}
        for method in taken
    ]


def _held_row(key: tuple[str, str], own: list[Run]) -> report.Row:
    start: report.Row = {"data": key[0], "similarities": key[1]}
    return start | {column: f"{mean(own, column):.3f}" for column in own[0]}


def _verdicts(runs: Runs, held: Any, names: list[str], taken: list[str]) -> list[str]:
    told = []
    for share in SHARES[1:]:
        means = {method: _over(runs, names, share, method) for method in taken}
        best = max((m for m in taken if m != OURS), key=lambda method: means[method])
        met = "met" if round(means[OURS], 3) >= round(means[best], 3) else "missed"
        told.append(
            f"{share:.0%} missing: mean ARI {means[OURS]:.3f} against {means[best]:.3f} of {best}, "
            f"the best other (target: at or above): {met}."
        )
    for kind in fusion_noise.KINDS:
        pairs = [(mean(own, HELD), mean(own, WHOLE)) for key, own in held.items() if key[1] == kind]
        predicted, whole = np.mean(pairs, axis=0)
        met = "met" if whole - predicted <= CLOSE else "missed"
        told.append(
            f"Held out, {kind}: mean ARI {predicted:.3f} of predicted labels, {whole:.3f} of a fit "
            f"of all objects (target: at most {CLOSE:g} less): {met}."
        )
    return told


def _draw(runs: Runs, names: list[str], taken: list[str], figure: Any) -> None:
    ax = figure.subplots()
    for method in taken:
        values = [_over(runs, names, share, method) for share in SHARES]
        ax.plot(SHARES, values, "o-" if method == OURS else "s--", label=method)
    ax.set_xlabel("share of the rows of every view that are missing")
    ax.set_ylabel("mean ARI over the sets")
    ax.legend(fontsize="small")
