"""How often is the planted number of programs found, in counts and elsewhere, and by which rule?

`sweep_n_clusters` is held beside the rules that users of NMF runs know, on the same fits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.metrics.pairwise import cosine_similarity

from benchmarks import report
from benchmarks.methods.programs import N_JOBS
from benchmarks.questions import _how_many_shares as without_counts
from benchmarks.runner import Progress
from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_programs, make_signatures
from nmfcluster.model_selection import sweep_n_clusters
from nmfcluster.model_selection.results import ClusterSweep

N_OTHERS = 10  # tables of each kind that hold no counts
FEW = 5  # tables of each kind, unless all are asked for
# tables of each kind; candidates from the truth
N_TABLES, N_RUNS, N_FOLDS, AROUND = (15, 10, 5, 3)
SEED = 17  # of the settings, and of the tables: others than those that the rule was chosen on
SIMILAR = 0.9  # cosine from which a planted program counts as found
KINDS = {"programs": make_programs, "signatures": make_signatures}
OURS = "held-out loss, within one error of the least (sweep_n_clusters)"
#: what differs between tables, drawn for each
SETTINGS: dict[str, dict[str, tuple[Any, ...]]] = {
    "programs": {
        "n_samples": (100, 200, 400),
        "n_features": (300, 500, 1000),
        "depth": (200, 500, 1000, 2000),
        "housekeeping": (0.3, 0.6),
        "dispersion": (0, 0.1),
    },
    "signatures": {
        "n_samples": (100, 200, 400),
        "burden": (200, 500, 1000, 2000),
        "noise": (0, 0.05, 0.1),
    },
}


@dataclass(frozen=True)
class Planted:
    """A table with a known number of programs.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    k : int
    settings : dict
        Of the function that makes it.
    seed : int
    """

    kind: str
    k: int
    settings: dict[str, Any]
    seed: int

    def make(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the counts and the programs."""
        number = {"programs": "n_programs", "signatures": "n_signatures"}[self.kind]
        made = KINDS[self.kind](
            **{number: self.k}, random_state=self.seed, **self.settings
        )
        return made[0], made[2]


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    tables = _toys() if quick else planted(N_TABLES if all_seeds else FEW)
    n_runs = 3 if quick else N_RUNS
    n_others = 1 if quick else N_OTHERS if all_seeds else FEW
    n_steps = len(tables) + n_others * len(without_counts.KINDS)
    progress = Progress("how_many_programs", n_steps)
    answers, rows = [], []
    for table in tables:
        given, row = _answer(table, n_runs)
        answers.append(given)
        rows.append(row)
        progress.step(f"{table.kind}, {table.k}")
    summary = [_summary(rule, answers, rows) for rule in answers[0]]
    caption = _caption(len(tables) // 2, n_runs)
    others, of_others = without_counts.measure(n_others, n_runs, progress)
    headings = {
        "Right answers for counts": summary,
        "Right answers for tables without counts": others,
        "Every table of counts": rows,
    }
    details = {"Every table without counts": of_others}
    notes = [_verdict(summary[0])]
    draw = partial(_draw, summary)
    return report.write(
        out, "how_many_programs", caption, headings, draw, notes, details=details
    )


def _caption(n_tables: int, n_runs: int) -> str:
    return (
        f"Planted numbers are 5 to 15, in {n_tables} matrices of `make_programs` and as many of "
        "`make_signatures`. Samples, features, depth or burden, the share of housekeeping genes, "
        "and dispersion or noise are drawn for each matrix. Candidates are all numbers within "
        f"{AROUND} of the truth. There are {n_runs} runs for each candidate, with "
        "loss='kullback-leibler' and otherwise with their defaults; 'resampled' runs have "
        f"resample='poisson'. Held-out losses use {N_FOLDS} parts of the counts, each with a "
        "single run on the others. 'As Poisson numbers' splits the counts as if they were "
        "Poisson numbers (dispersion=0). SigProfiler requires a mean stability of 0.8 and a "
        "smallest one of 0.2 over all clusters, and chooses the largest such number. It measures "
        "stability by the silhouette of the runs' clusters; here it is the recurrence. 'off by' "
        "is the mean difference of the chosen number and the truth. 'found at the truth' is the "
        f"number of planted programs that have a cosine of {SIMILAR:g} or more with one of the "
        "resampled fit at the true number. If some have not, the matrix may not contain enough "
        f"information about them. {without_counts.CAPTION}"
    )


def planted(n_tables: int) -> list[Planted]:
    """Return tables of both kinds, whose settings are drawn."""
    rng = np.random.default_rng(SEED)
    found = []
    for kind, choices in SETTINGS.items():
        for i in range(n_tables):
            settings = {
                name: rng.choice(values).item() for name, values in choices.items()
            }
            found.append(Planted(kind, 5 + 7 * i % 11, settings, 1000 * SEED + i))
    return found


def _toys() -> list[Planted]:
    return [
        Planted("programs", 3, {"n_samples": 30, "n_features": 40, "depth": 200}, 0),
        Planted("signatures", 2, {"n_samples": 20, "n_channels": 12}, 0),
    ]


def _answer(table: Planted, n_runs: int) -> tuple[dict[str, int], report.Row]:
    """Return the number that every rule chooses, and what there is to say of the table."""
    X, H = table.make()
    candidates = range(max(2, table.k - AROUND), table.k + AROUND + 1)
    model = NMFMetaCluster(
        table.k, loss="kullback-leibler", n_estimators=n_runs, random_state=table.seed
    )
    began = perf_counter()
    options: dict[str, Any] = {
        "n_folds": N_FOLDS,
        "random_state": table.seed,
        "n_jobs": N_JOBS,
    }
    sweep = sweep_n_clusters(model, X, candidates, **options)
    seconds = perf_counter() - began
    single = clone(model).set_params(n_estimators=1)
    poisson = sweep_n_clusters(single, X, candidates, dispersion=0, **options)
    model.set_params(resample="poisson")
    resampled = sweep_n_clusters(
        model, X, candidates, method="recurrence", n_jobs=N_JOBS
    )
    squares = NMFMetaCluster(table.k, n_estimators=1, random_state=table.seed)
    answers = {
        OURS: sweep.n_clusters_,
        **_by_losses(sweep, poisson),
        "held-out squares, within one error (loss='frobenius')": sweep_n_clusters(
            squares, X, candidates, **options
        ).n_clusters_,
        **_by_runs(sweep, ""),
        **_by_runs(resampled, ", resampled"),
    }
    at_truth = resampled.estimators[
        int(np.flatnonzero(resampled.candidates == table.k)[0])
    ]
    row: report.Row = {"kind": table.kind, "k": table.k, **table.settings}
    row |= {
        "found at the truth": found(at_truth.components_, H),
        "chosen": sweep.n_clusters_,
    }
    row |= {"as good": ", ".join(map(str, sweep.candidates[sweep.as_good]))}
    row |= {"dispersion found": sweep.dispersion, "s": seconds}
    return answers, row


def found(components: np.ndarray, H: np.ndarray) -> int:
    """Return how many planted programs a component is similar to, one component for each."""
    cosine = cosine_similarity(components, H)
    return int((cosine[linear_sum_assignment(-cosine)] >= SIMILAR).sum())


def _by_losses(sweep: ClusterSweep, poisson: ClusterSweep) -> dict[str, int]:
    """Return what other rules choose by held-out losses."""
    assert sweep.held_out_losses is not None
    assert poisson.held_out_losses is not None
    positions = {
        "held-out loss, least": sweep.held_out_losses.mean(axis=1).argmin(),
        "held-out loss of one part, least": sweep.held_out_losses[:, 0].argmin(),
        "held-out loss as Poisson numbers of one part, least": (
            poisson.held_out_losses[:, 0].argmin()
        ),
    }
    told = {rule: int(sweep.candidates[place]) for rule, place in positions.items()}
    return told | {
        "held-out loss as Poisson numbers, within one error": poisson.n_clusters_
    }


def _by_runs(sweep: ClusterSweep, of: str) -> dict[str, int]:
    """Return what rules choose by how far runs agree."""
    mean, least = sweep.recurrence, sweep.smallest_recurrence
    falls = np.flatnonzero(np.diff(sweep.cophenetic) < 0)
    rules: dict[str, Callable[[], int]] = {
        "smallest recurrence, largest number within .15 of the best": lambda: _last(
            least >= least.max() - 0.15
        ),
        "smallest recurrence, largest number from .6": lambda: _last(least >= 0.6),
        "smallest recurrence, best": lambda: int(least.argmax()),
        "mean recurrence, best": lambda: int(mean.argmax()),
        "SigProfiler's thresholds": lambda: _last((mean >= 0.8) & (least >= 0.2)),
        "cophenetic correlation, best": lambda: int(sweep.cophenetic.argmax()),
        "cophenetic correlation, before its first fall": lambda: (
            int(falls[0]) if len(falls) else len(least) - 1
        ),
    }
    return {
        f"{rule}{of}": int(sweep.candidates[choose()]) for rule, choose in rules.items()
    }


def _last(passed: np.ndarray) -> int:
    """Return the last position that passed; the first of all if none did."""
    return int(np.flatnonzero(passed)[-1]) if passed.any() else 0


def _summary(
    rule: str, answers: list[dict[str, int]], rows: list[report.Row]
) -> report.Row:
    off = np.array(
        [given[rule] - row["k"] for given, row in zip(answers, rows, strict=True)]
    )
    kinds = np.array([row["kind"] for row in rows])
    row: report.Row = {"rule": rule, "exact": f"{(off == 0).sum()} of {len(off)}"}
    row |= {"within one": f"{(abs(off) <= 1).sum()} of {len(off)}"}
    for kind in KINDS:
        own = off[kinds == kind]
        row[kind] = f"{(own == 0).sum()} of {len(own)}"
    return row | {"off by": float(off.mean()), "exact, share": float((off == 0).mean())}


def _verdict(own: report.Row) -> str:
    return (
        f"The rule of `sweep_n_clusters` is exact on {own['exact']} tables and within one on "
        f"{own['within one']}; the targets were three quarters, and 95 %."
    )


def _draw(summary: list[report.Row], figure: Any) -> None:
    figure.set_size_inches(9, 8)
    ax = figure.subplots()
    rules = summary[::-1]
    ax.barh([row["rule"] for row in rules], [row["exact, share"] for row in rules])
    ax.tick_params(axis="y", labelsize="small")
    ax.set(xlabel="share of exact numbers", xlim=(0, 1))
