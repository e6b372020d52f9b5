"""Which programs do samples share, where genes are caught differently in every sample?

Planted counts say which programs are in all samples and which in one alone. Fits with `groups`
stand beside fits of all samples as one table, and beside NMF of all samples that starts from them.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks import report
from benchmarks.runner import Progress
from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_programs
from nmfcluster.metrics import match_components

LOSSES = {"KL": "kullback-leibler", "Frobenius": "frobenius"}
SPREADS = 0.5, 1.0  # standard deviations of the logarithms of the factors of genes
FOUND = 0.8  # cosine from which a planted program is found
PRESENT = 0.5  # presence from which a sample has a program, as in the package
HELD = (
    0.05  # share of the counts of a sample from which it has a program of a pooled fit
)
N_UPDATES = 200  # of scikit-learn's NMF
GROUPS, ONE, ALL = "groups", "pooled, programs of a sample", "pooled, all programs"
AFTER = "groups, then NMF of all"
METHODS = (GROUPS, AFTER, ONE, ALL)
FIGURES = ("found", "cosine", "marked", "wrongly marked", "own found", "seconds")

Run = dict[str, float]
# by setting, loss, spread and method
Runs = dict[tuple[str, str, float, str], list[Run]]


@dataclass(frozen=True)
class Setting:
    """How many samples there are, and what they have."""

    n_samples: int
    n_cells: int | tuple[int, int]  # of a sample, or from which to below which
    own: int  # programs of a sample alone
    n_seeds: int  # with all seeds
    n_others: int  # seeds of the other methods, which take longer than groups
    shared: int = 5
    n_genes: int = 1_000
    n_runs: int = 20

    def of_sample(self, sample: int) -> np.ndarray:
        """Return which programs a sample has: those of all, and its own."""
        first = self.shared + self.own * sample
        return np.r_[: self.shared, first : first + self.own]

    @property
    def of_each(self) -> int:
        return self.shared + self.own

    @property
    def n_programs(self) -> int:
        return self.shared + self.own * self.n_samples

    def draw(
        self, spread: float, seed: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return counts, the samples of cells, and the programs, before factors of genes."""
        rng = np.random.RandomState(seed)
        H = make_programs(10, self.n_genes, self.n_programs, random_state=seed)[2]
        sizes = [self.n_cells] * self.n_samples
        if isinstance(self.n_cells, tuple):
            sizes = list(
                np.random.RandomState(seed).randint(*self.n_cells, self.n_samples)
            )
        parts = []
        for sample, n in enumerate(sizes):
            its = self.of_sample(sample)
            usages = rng.dirichlet(np.full(len(its), 0.3), size=n)
            usages *= 350 * np.exp(rng.normal(0, 0.3, (n, 1)))
            means = usages @ (H[its] * np.exp(rng.normal(0, spread, self.n_genes)))
            means *= usages.sum() / means.sum()
            parts.append(rng.poisson(means * rng.gamma(10, 0.1, means.shape)))
        return (
            np.concatenate(parts).astype(float),
            np.repeat(np.arange(len(sizes)), sizes),
            H,
        )


SETTINGS = {
    "6 samples": Setting(6, 200, 2, 20, 3),
    "24 samples": Setting(24, (60, 300), 1, 3, 0),
}
TOY = {"toy": Setting(3, 30, 1, 1, 1, shared=2, n_genes=60, n_runs=3)}


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    settings = TOY if quick else SETTINGS
    seeds = {
        name: (s.n_seeds if all_seeds else 1, s.n_others)
        for name, s in settings.items()
    }
    progress = Progress(
        "across", len(LOSSES) * len(SPREADS) * sum(n for n, _ in seeds.values())
    )
    runs: Runs = {}
    for name, setting in settings.items():
        n_seeds, n_others = seeds[name]
        for seed in range(n_seeds):
            for loss in LOSSES:
                for spread in SPREADS:
                    for method, told in measure(
                        setting, loss, spread, seed, seed < n_others
                    ):
                        runs.setdefault((name, loss, spread, method), []).append(told)
                    progress.step(f"{name}, {loss}, {spread:g}")
    tables = {
        _heading(name, settings[name], seeds[name]): _rows(runs, name)
        for name in settings
    }
    details = {"runs": report.by_run(("setting", "loss", "spread", "method"), runs)}
    draw = partial(_draw, runs, next(iter(settings)))
    return report.write(out, "across", _caption(), tables, draw, [], {}, details)


def _caption() -> str:
    return (
        "The data are counts of several samples. Some programs are in all samples, and others in "
        "one sample only. In every sample, each gene is captured with its own factor; 'spread' "
        "is the standard deviation of the logarithm of this factor. 'groups' is NMFMetaCluster "
        "with groups, with as many clusters as there are programs and base_n_clusters programs "
        "per sample. 'pooled' fits all samples as one matrix, with as many clusters as a sample "
        f"has programs, or as there are programs. '{AFTER}' starts scikit-learn's NMF of all "
        f"samples, with {N_UPDATES} updates, from the fit with groups. All other parameters have "
        "their defaults, and fits use one thread. The columns are: 'found', the number of shared "
        f"programs with a cosine of at least {FOUND:g}, matched one to one; 'cosine', their mean "
        "cosine; 'marked', the clusters of shared programs that are in shared_; 'wrongly marked', "
        "the other clusters in shared_; 'own found', the share of the programs of one sample that "
        f"have a presence of at least {PRESENT:g} in that sample only. In a pooled fit, a sample "
        f"has the clusters that make at least {HELD:.0%} of its counts, and the clusters that "
        "half of the samples have count as marked."
    )


def _heading(name: str, setting: Setting, seeds: tuple[int, int]) -> str:
    cells = setting.n_cells
    of_cells = cells if isinstance(cells, int) else f"{cells[0]} to {cells[1]}"
    return (
        f"{name} of {of_cells} cells by {setting.n_genes:,} genes, {setting.shared} programs of "
        f"all and {setting.own} of each sample; {seeds[0]} seed(s) with groups, "
        f"{min(seeds)} of the others"
    )


def measure(
    setting: Setting, loss: str, spread: float, seed: int, others: bool
) -> list[tuple[str, Run]]:
    """Return the figures of the fit with groups, and of the others where they are asked for."""
    X, sample, H = setting.draw(spread, seed)
    options = {
        "loss": LOSSES[loss],
        "n_estimators": setting.n_runs,
        "random_state": seed,
    }
    own = NMFMetaCluster(setting.n_programs, base_n_clusters=setting.of_each, **options)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        seconds, model = _timed(partial(own.fit, X, groups=sample))
        known = model.presence_ >= PRESENT, model.shared_
        told = [(GROUPS, scored(setting, H, model.components_, *known) | seconds)]
        if not others:
            return told
        refined, H_after = _timed(partial(nmf_from, model, X))
        both = {"seconds": seconds["seconds"] + refined["seconds"]}
        told.append((AFTER, scored(setting, H, H_after, *known) | both))
        for method, k in ((ONE, setting.of_each), (ALL, setting.n_programs)):
            seconds, pooled = _timed(partial(NMFMetaCluster(k, **options).fit, X))
            has = held(pooled, sample)
            figures = scored(
                setting, H, pooled.components_, has, has.mean(axis=0) >= PRESENT
            )
            told.append((method, figures | seconds))
    return told


def _timed(fit: Any) -> tuple[Run, Any]:
    began = perf_counter()
    result = fit()
    return {"seconds": perf_counter() - began}, result


def nmf_from(model: NMFMetaCluster, X: np.ndarray) -> np.ndarray:
    """Return the components of scikit-learn's NMF that starts from a fit, without zeros in it."""
    W, H = (np.maximum(F, 1e-3 * F.mean()) for F in (model.factor_, model.components_))
    how = {} if model.loss == "frobenius" else {"solver": "mu", "beta_loss": model.loss}
    nmf = NMF(len(H), init="custom", max_iter=N_UPDATES, **how)
    nmf.fit_transform(X, W=W, H=H)
    return nmf.components_


def held(model: NMFMetaCluster, sample: np.ndarray) -> np.ndarray:
    """Return which clusters of a pooled fit make a share of the counts of which samples."""
    counts = model.factor_ * model.components_.sum(axis=1)
    of_samples = np.array([counts[sample == s].sum(axis=0) for s in np.unique(sample)])
    return of_samples / of_samples.sum(axis=1, keepdims=True) >= HELD


def scored(
    setting: Setting,
    H: np.ndarray,
    found: np.ndarray,
    has: np.ndarray,
    shared: np.ndarray,
) -> Run:
    """Return the figures of a fit whose clusters these samples have, and which are named."""
    clusters, cosines = match_components(H, found)
    of_all, n = clusters[: setting.shared], setting.n_samples
    rightly = int(shared[of_all[of_all >= 0]].sum())
    of_one = [
        c >= 0 and np.array_equal(has[:, c], np.arange(n) == i // setting.own)
        for i, c in enumerate(clusters[setting.shared :])
    ]
    return {
        "found": float((cosines[: setting.shared] >= FOUND).sum()),
        "cosine": float(cosines[: setting.shared].mean()),
        "marked": float(rightly),
        "wrongly marked": float(shared.sum() - rightly),
        "own found": float(np.mean(of_one)),
    }


def _rows(runs: Runs, setting: str) -> list[report.Row]:
    rows = []
    for (name, loss, spread, method), own in runs.items():
        if name == setting:
            row: report.Row = {
                "loss": loss,
                "spread": f"{spread:.1f}",
                "method": method,
            }
            means = {
                figure: float(np.mean([told[figure] for told in own]))
                for figure in FIGURES
            }
            rows.append(row | {figure: f"{mean:.2f}" for figure, mean in means.items()})
    return sorted(
        rows, key=lambda r: (r["loss"] != "KL", r["spread"], METHODS.index(r["method"]))
    )


def _draw(runs: Runs, setting: str, figure: Any) -> None:
    titles = [f"{loss}, spread {spread:g}" for loss in LOSSES for spread in SPREADS]
    axes, legend = report.panels(figure, titles)
    shown = ("found", "marked", "wrongly marked")
    keys = [(loss, spread) for loss in LOSSES for spread in SPREADS]
    for ax, (loss, spread) in zip(axes, keys, strict=True):
        for i, method in enumerate(METHODS):
            own = runs[setting, loss, spread, method]
            means = [np.mean([told[name] for told in own]) for name in shown]
            ax.bar(
                np.arange(len(shown)) + 0.2 * i - 0.3,
                means,
                0.2,
                color=f"C{i}",
                label=method,
            )
        ax.set_xticks(range(len(shown)), shown, fontsize="small")
    axes[0].set_ylabel("programs", fontsize="small")
    legend.legend(*axes[0].get_legend_handles_labels(), loc="center", fontsize="small")
