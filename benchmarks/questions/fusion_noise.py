"""Does fusion keep its clusters when sources are added that say nothing?

All methods get the same sources: dense kernels or graphs, as they are, or with noise and with
nearly constant similarities beside them. No parameter is tuned to a data set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks import datasets, kept, methods, report
from benchmarks.datasets.proteins import neighbours
from benchmarks.datasets.views import GRAPH, Views
from benchmarks.kept import Kept, Run, Runs
from benchmarks.methods import fusion, simple_mkkm
from benchmarks.methods.peer import NoClusteringError
from benchmarks.questions._fusion_runs import LONG, SETS, scores, toy
from benchmarks.questions._fusion_runs import mean as mean_of
from benchmarks.runner import Progress
from nmfcluster import SimilarityStack
from nmfcluster.affinity import make_affinity

DENSE, GRAPHS = "dense", "graphs"
# the first there is
KINDS = {DENSE: ("cosine", "rbf", "as given"), GRAPHS: (GRAPH, "normalised")}
CLEAN = "clean"
REGIMES = {  # how many sources of noise and nearly constant ones are added
    CLEAN: (0, 0),
    "1 noise, 1 constant": (1, 1),
    "4 noise, 2 constant": (4, 2),
}
OURS, SNF, SPECTRAL, ORACLE = "fusion", "SNF", "spectral, mean", "best single source"
KL = (
    "fusion, kl"  # its run time is that of all others together: run with all seeds only
)
VARIANTS = {name: own for name, own in fusion.VARIANTS.items() if "entropy" not in name}
MKKM = "SimpleMKKM"
METHODS = (*VARIANTS, SNF, SPECTRAL, MKKM)
FIGURES = {
    "ari": "ARI",
    "nmi": "NMI",
    "accuracy": "Accuracy",
    "seconds": "Seconds a run",
}
# of all added sources together; of a source of the set
WEIGHT, LEAST = ("weight", "least")
SEEDS = 5
BEHIND = 0.03  # ARI by which the better of SNF and spectral clustering of the mean may be ahead
FEATURES, SPREAD, NEIGHBOURS = 5, 0.05, 10  # of the sources that are added

Case = tuple[str, str]  # dense or graphs, and the regime
# by case and method: the mean of every set
Means = dict[tuple[Case, str], dict[str, float]]
Taker = Callable[
    [SimilarityStack, int, int], tuple[np.ndarray, np.ndarray | None, float]
]

COLUMNS = ("data", "similarities", "added", "method")
CASES = [(kind, regime) for kind in KINDS for regime in REGIMES]


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    sets, missing = ({"toy": toy()}, {}) if quick else datasets.available(SETS)
    seeds = range(SEEDS if all_seeds else 1)
    takers, skipped = _takers()
    if not (quick or all_seeds):
        del takers[KL]
    others = kept.read(
        out / "fusion_noise.json",
        methods.packages(skipped),
        COLUMNS,
        {"data": [data.name for data in sets.values()]},
        len(seeds),
    )
    runs, failed = dict(others.runs), dict(others.failed)
    progress = Progress("fusion_noise", len(sets) * len(CASES))
    for data in sets.values():
        for kind in KINDS:
            stack = sources(data, kind)
            alone = _alone(data, stack, seeds)
            for regime in REGIMES:
                key = (data.name, kind, regime)
                for name, own in _measure(
                    data, stack, key[1:], takers, seeds, failed
                ).items():
                    runs[*key, name] = own
                runs[*key, ORACLE] = alone
                progress.step(", ".join(key))
    ran = [name for name in takers if name not in (*VARIANTS, MKKM)]
    versions = others.versions(methods.packages(ran))
    skipped = others.missing(skipped) | missing | failed
    names = [data.name for data in sets.values()]
    return _report(out, names, runs, others, len(seeds), skipped, versions)


def sources(data: Views, kind: str) -> SimilarityStack:
    """Return the similarities of a set, as dense kernels or as graphs."""
    return data.kernels[next(name for name in KINDS[kind] if name in data.kernels)]()


def with_noise(stack: SimilarityStack, case: Case, seed: int) -> SimilarityStack:
    """Return the sources, and behind them those that the case adds."""
    kind, regime = case
    n, rng = stack.shape[0], np.random.default_rng(seed)
    n_noise, n_constant = REGIMES[regime]
    made = {f"noise {i}": noise(n, rng) for i in range(n_noise)}
    made |= {f"constant {i}": nearly_constant(n, rng) for i in range(n_constant)}
    if not made:
        return stack
    added = [graph(S) if kind == GRAPHS else S for S in made.values()]
    return SimilarityStack([*stack.sources, *added], names=[*stack.names, *made])


def noise(n: int, rng: np.random.Generator) -> np.ndarray:
    """Return a Gaussian kernel of median width of features that say nothing."""
    return make_affinity(rng.normal(size=(n, FEATURES)), "rbf").similarity.toarray()


def nearly_constant(n: int, rng: np.random.Generator) -> np.ndarray:
    upper = np.triu(rng.uniform(size=(n, n)))
    return 1 + SPREAD * (upper + np.triu(upper, 1).T)


def graph(S: np.ndarray) -> Any:
    """Return the graph of neighbours that those of sets are, by distances that S stands for.

    A Gaussian kernel gives the graph of the features that it was made of.
    """
    D = np.sqrt(np.log(S.max() / S))
    np.fill_diagonal(D, 0)
    return make_affinity(
        neighbours(D, NEIGHBOURS), "precomputed", normalize=True
    ).block()


def _takers() -> tuple[dict[str, Taker], dict[str, str]]:
    """Return the methods that can run here, and why others cannot."""
    takers: dict[str, Taker] = {
        name: partial(_timed, partial(_ours, **options))
        for name, options in VARIANTS.items()
    }
    others, skipped = methods.available((SNF, SPECTRAL))
    takers |= {name: partial(_other, method) for name, method in others.items()}
    takers[MKKM] = partial(_timed, simple_mkkm.fit)
    return takers, skipped


def _ours(stack: SimilarityStack, k: int, seed: int, **options: Any) -> tuple[Any, Any]:
    model = fusion.fit(stack, k, seed, **options)
    return model.labels_, model.weights_


def _timed(
    fit: Callable[..., tuple[Any, Any]], stack: SimilarityStack, k: int, seed: int
) -> Any:
    began = perf_counter()
    labels, weights = fit(stack, k, seed)
    return labels, weights, perf_counter() - began


def _other(method: methods.Method, stack: SimilarityStack, k: int, seed: int) -> Any:
    labels, seconds = method.run(None, stack, k, seed)
    return labels, None, seconds


def _measure(
    data: Views,
    stack: SimilarityStack,
    case: Case,
    takers: dict[str, Taker],
    seeds: Iterable[int],
    failed: dict[str, str],
) -> dict[str, list[Run]]:
    """Run all methods on one case, until they fail or have taken `LONG` seconds."""
    runs: dict[str, list[Run]] = {name: [] for name in takers}
    left = set(takers)
    for seed in seeds:
        mixed = with_noise(stack, case, seed)
        for name in [name for name in takers if name in left]:
            try:
                labels, weights, seconds = takers[name](mixed, data.n_clusters, seed)
            except (NoClusteringError, RuntimeError) as why:  # a peer has failed
                where = f"{name} on {data.name}, {', '.join(case)}"
                failed[where] = str(why).strip().splitlines()[-1]
                left.discard(name)
                continue
            told = scores(data.y, labels) | {"seconds": seconds}
            if weights is not None:
                told[WEIGHT] = float(weights[stack.shape[2] :].sum())
                told[LEAST] = float(weights[: stack.shape[2]].min())
            runs[name].append(told)
            if sum(one["seconds"] for one in runs[name]) > LONG:
                left.discard(name)
    return runs


def _alone(data: Views, stack: SimilarityStack, seeds: Iterable[int]) -> list[Run]:
    """Return the runs of spectral clustering on the source with the largest mean ARI."""
    taker: dict[str, Taker] = {ORACLE: partial(_other, methods.load(SPECTRAL))}
    case = (DENSE, CLEAN)  # nothing is added
    results = [
        _measure(data, SimilarityStack([source]), case, taker, seeds, {})[ORACLE]
        for source in stack.sources
    ]
    return max(results, key=lambda own: mean_of(own, "ari"))


def _report(
    out: Path,
    names: list[str],
    runs: Runs,
    others: Kept,
    n_seeds: int,
    skipped: dict[str, str],
    versions: dict[str, str],
) -> list[Path]:
    means = {figure: mean_figures(runs, figure) for figure in FIGURES}
    tables: dict[str, Any] = {
        f"{title}, mean over the sets": by_method(means[figure])
        for figure, title in FIGURES.items()
    }
    for case in CASES:
        rows = [_set_row(name, case, means["ari"]) for name in names]
        tables[f"ARI of every set, {', '.join(case)}"] = rows
    tables["Weight of the added sources together, mean and largest over the sets"] = (
        weights(runs)
    )
    tables[f"Sets where the default is more than {BEHIND:g} ARI behind"] = [
        behind(case, means["ari"]) for case in CASES
    ]
    notes, draw = (
        [*verdicts(means["ari"]), told_weights(runs), *others.notes()],
        partial(_draw, means["ari"]),
    )
    caption, details = _caption(n_seeds), others.in_details(COLUMNS, runs)
    return report.write(
        out, "fusion_noise", caption, tables, draw, notes, skipped, details, versions
    )


def _caption(n_seeds: int) -> str:
    return (
        f"Fusion with uninformative sources. Values are means over {n_seeds} seeds, which also "
        f"draw the added sources; a method that took {LONG:g} s on a set was not run with further "
        "seeds. 'Dense' uses cosines for texts, and otherwise Gaussian kernels whose width is "
        "the median squared distance. 'Graphs' uses ten neighbours, self-tuned and normalised. "
        "protein213 has distances instead of features: they become kernels of three widths and a "
        "graph, all restricted to ten neighbours for graphs. The links of yeast_mips3 are "
        "sparse, and used as given or normalised. Noise is the Gaussian kernel of normal "
        f"features in {FEATURES} dimensions. The nearly constant source is 1 + {SPREAD:g} u with "
        "u uniform in [0, 1]. Both are made into graphs if the other sources are graphs. "
        f"'fusion' is SimilarityFusionNMF with its defaults or a finite eta. '{KL}' has "
        "criterion='kl' with eta = 1; it takes long and is run with --all-seeds only. SNF is "
        "snfpy and spectral clustering; 'spectral, mean' clusters the mean of the sources. "
        "SimpleMKKM (Liu et al., 2022) is implemented for this page; the squares of its weights "
        "weight the kernels. 'best single source' is spectral clustering of the "
        "source that the true classes choose, which is unknown in practice; it does not use the "
        "added sources. Means are over the sets that a method could cluster."
    )


def mean_figures(runs: Runs, figure: str) -> Means:
    """Return the means over the seeds, of the sets that a method clustered."""
    means: Means = {}
    for (name, *case, method), own in runs.items():
        of_sets = means.setdefault((tuple(case), method), {})
        if own:
            of_sets[name] = mean_of(own, figure)
    return means


def over_sets(means: Means, case: Case, method: str) -> float:
    own = list(means.get((case, method), {}).values())
    return float(np.mean(own)) if own else float("nan")


def by_method(means: Means) -> list[report.Row]:
    """Return a row for every method, with a column for every case."""
    rows = []
    for method in (*METHODS, ORACLE):
        cells = {
            f"{kind}, {regime}": f"{over_sets(means, (kind, regime), method):.3f}"
            for kind, regime in CASES
            if means.get(((kind, regime), method))
        }
        if cells:
            rows.append({"method": method} | cells)
    return rows


def _set_row(name: str, case: Case, means: Means) -> report.Row:
    cells = {
        method: means.get((case, method), {}).get(name) for method in (*METHODS, ORACLE)
    }
    told = {method: f"{ari:.3f}" for method, ari in cells.items() if ari is not None}
    return {"data": name} | told


def weights(runs: Runs) -> list[report.Row]:
    rows = []
    for method in (*VARIANTS, MKKM):
        row: report.Row = {"method": method}
        for case in CASES:
            if case[1] == CLEAN:
                continue
            own = [
                mean_of(told, WEIGHT)
                for (_, *where, name), told in runs.items()
                if (*where, name) == (*case, method) and told
            ]
            if own:
                row[", ".join(case)] = f"{np.mean(own):.3f}, {max(own):.3f}"
        if len(row) > 1:  # it was run
            rows.append(row)
    return rows


def behind(case: Case, means: Means) -> report.Row:
    """Return the sets where the better of SNF and spectral clustering of the mean is ahead."""
    rivals = [means.get((case, method), {}) for method in (SNF, SPECTRAL)]
    gaps = {
        name: max(rival[name] for rival in rivals if name in rival) - ari
        for name, ari in means.get((case, OURS), {}).items()
        if any(name in rival for rival in rivals)
    }
    far = {name: gap for name, gap in gaps.items() if gap > BEHIND}
    told = ", ".join(f"{name} by {gap:.3f}" for name, gap in far.items()) or "none"
    start: report.Row = {"similarities": case[0], "added": case[1], "sets": len(gaps)}
    return start | {"behind": len(far), "which": told}


def told_weights(runs: Runs) -> str:
    """Say how often the default weighs what is added, and leaves out a source of the set."""
    own = [run for (*_, method), fits in runs.items() if method == OURS for run in fits]
    added, left_out = (
        sum(run[WEIGHT] > 0 for run in own),
        sum(run[LEAST] == 0 for run in own),
    )
    return (
        f"The default gives an added source a weight in {added} of {len(own)} fits, and none to a "
        f"source of the set in {left_out} (target: 0 and 0): "
        f"{'missed' if added or left_out else 'met'}."
    )


def verdicts(means: Means) -> list[str]:
    """Say in every case whether the default is best, and how much the added sources cost it."""
    told = []
    for case in CASES:
        rivals = [m for m in (SNF, SPECTRAL, MKKM) if means.get((case, m))]
        best = max(rivals, key=lambda method: over_sets(means, case, method))
        ours, other = over_sets(means, case, OURS), over_sets(means, case, best)
        cost = over_sets(means, (case[0], CLEAN), OURS) - ours
        told.append(
            f"{case[0].capitalize()}, {case[1]}: mean ARI {ours:.3f} of the default against "
            f"{other:.3f} of {best}, the best other method (target: at or above): "
            f"{'met' if round(ours, 3) >= round(other, 3) else 'missed'}"
            + (
                "."
                if case[1] == CLEAN
                else f"; what is added costs the default {cost:.3f}."
            )
        )
    rows = [behind(case, means) for case in CASES]
    n_far, total = (sum(row[column] for row in rows) for column in ("behind", "sets"))
    told.append(
        f"The default is more than {BEHIND:g} ARI under the better of {SNF} and '{SPECTRAL}' in "
        f"{n_far} of {total} cases of a set (target: none): {'missed' if n_far else 'met'}."
    )
    return told


def _draw(means: Means, figure: Any) -> None:
    figure.set_size_inches(10, 4)
    axes = figure.subplots(1, len(KINDS), sharey=True)
    at = np.arange(len(REGIMES))
    for ax, kind in zip(axes, KINDS, strict=True):
        for method in (*METHODS, ORACLE):
            if means.get(((kind, CLEAN), method)):
                values = [
                    over_sets(means, (kind, regime), method) for regime in REGIMES
                ]
                style = (
                    "o-" if method in VARIANTS else "k:" if method == ORACLE else "s--"
                )
                ax.plot(at, values, style, label=method, alpha=0.7)
        ax.set_xticks(at, [regime.replace(", ", ",\n") for regime in REGIMES])
        ax.set_xlabel(kind)
    axes[0].set_ylabel("mean ARI over the sets")
    axes[-1].legend(fontsize="x-small")
