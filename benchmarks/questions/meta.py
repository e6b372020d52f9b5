"""Are the clusters that recur in many runs of NMF better than those of the best run?

The data are planted biclusters, beside the tables of Badea (2005), and the gene expression of
tumours.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks import report
from benchmarks.methods import nmf_runs, ssnmf
from benchmarks.questions import _meta_planted as planted
from benchmarks.questions import _meta_tumours as tumours
from benchmarks.runner import Progress


def run(quick: bool, out: Path, all_seeds: bool = False) -> list[Path]:
    n_data, n_runs, n_starts = (1, 3, 1) if quick else (10, 10, 10)
    seeds = range(5 if all_seeds else 1)
    lambdas = planted.LAMBDAS[:3:2] if quick else planted.LAMBDAS
    ks = range(3, 4) if quick else range(2, 9)
    sets, skipped = tumours.sets(quick)
    steps = 2 * n_data + len(planted.PENALTIES) * len(lambdas)
    preparations = ("scaled",) if quick else tuple(tumours.PREPARATIONS)
    steps += len(preparations) * len(seeds) * len(sets)
    steps += len(preparations) * len(ks) * sum("," not in name for name in sets)
    progress = Progress("meta", steps)
    with threadpool_limits(limits=1, user_api="blas"):  # as in a fit of the estimator
        match = planted.compare(planted.THE_PAPERS, n_data, n_runs, progress)
        harder = planted.compare(planted.LARGER, n_data, n_runs, progress)
        sparse = planted.sparser(n_data, n_starts, lambdas, progress)
    tumour_results = tumours.compare(sets, preparations, seeds, progress)
    clear = tumours.by_k(sets, preparations, ks, seeds, progress)
    tables = {
        title: planted.comparison(match, f) for f, title in planted.FIGURES.items()
    }
    tables["More biclusters, and noise"] = planted.larger(harder)
    tables["Sparser factorizations of noisy data"] = planted.beside_paper(sparse)
    if tumour_results:
        tables["Tumours: accuracy"] = tumours.table(tumour_results, "accuracy")
        tables["Tumours: adjusted Rand index"] = tumours.table(tumour_results, "ari")
        by_k = {
            "Tumours: cophenetic correlation of the runs": "cophenetic",
            "Tumours: recurrence of the least stable cluster": "recurrence",
            "Tumours: accuracy by number of clusters": "accuracy",
        }
        tables |= {
            title: tumours.curves(clear, figure) for title, figure in by_k.items()
        }
    notes = [
        planted.verdict(match),
        planted.minima(sparse),
        *tumours.verdicts(tumour_results),
    ]
    details = {
        "planted": report.by_run(("metaclusters by", "runs"), match),
        "sparser": sparse,
        "tumours": report.by_run(
            ("data", "preparation", "method"),
            {
                (*at, name): runs
                for at, own in tumour_results.items()
                for name, runs in own.items()
            },
        ),
        "numbers of clusters": clear,
    }
    draw = partial(_draw, match, sparse, tumour_results, clear)
    caption = _caption(n_data, n_runs, n_starts, len(seeds))
    return report.write(out, "meta", caption, tables, draw, notes, skipped, details)


def _caption(n_data: int, n_runs: int, n_starts: int, n_seeds: int) -> str:
    return (
        "Clusters that recur in many runs, compared with the tables of L. Badea, Clustering and "
        "metaclustering with nonnegative matrix decompositions, ECML 2005, sections 6 and 4.1 "
        f"('paper'). Planted biclusters: means and standard deviations over {n_data} data sets of "
        f"`make_biclusters` with its defaults, with {n_runs} runs each. The paper does not print "
        "its generator, so its figures are for other data of the same kind. k-means and fuzzy "
        "c-means cluster the columns: H are their memberships, with rows scaled to length 1, and "
        "W is the nonnegative least squares fit to X, as for the prototypes of every "
        "metaclustering without a final NMF ('+ NMF'). The best single run is the one with the "
        "smallest error; 'a single run' is the mean of all. 'NMF by mu' are scikit-learn's runs, "
        "by the rules of the paper. 'NMF' are the estimator's runs, and NMF and PTF of these "
        "with a final NMF are the estimator's, too. Other metaclusterings are by scikit-learn "
        f"or, for PTF, by eq. 15. More biclusters: {planted.LARGER.k} biclusters in matrices of "
        f"{planted.LARGER.shape[0]} x {planted.LARGER.shape[1]} with noise "
        f"{planted.LARGER.noise:g}. 'match' is the score of section 6 with threshold "
        f"{planted.THRESHOLD:g} (`benchmarks/overlap.py`); the paper does not define the members "
        f"of a soft cluster. Sparser factorizations: noise {planted.NOISE:g}, means over {n_data} "
        f"data sets, each fitted with {n_starts} runs. Tumours: means and standard deviations "
        f"over {n_seeds} seeds. 'meta' is NMFMetaCluster, and with 'ptf' it has its defaults, "
        "except that runs use all data, as in the paper. NMF is scikit-learn's, the run with the "
        f"smallest loss of {nmf_runs.N_RUNS} runs of up to {nmf_runs.PATIENT['max_iter']:,} "
        "updates. 'cNMF-style' clusters the components of such runs by k-means without outliers, "
        "as cNMF (Kotliar et al., 2019) does. NMFC is NMFConsensus on the features, and "
        f"'{ssnmf.WITHOUT}' is SSNMFClusterer with its defaults. 'log2' are "
        "logarithms relative to the smallest intensity. 'scaled' are intensities divided by the "
        "mean of their gene, with samples then scaled to length 1. The cophenetic correlation is "
        "that of the consensus of the 20 runs, as in Brunet et al. (2004)."
    )


def _draw(
    match: planted.Results,
    sparse: list[report.Row],
    tumour_results: tumours.Results,
    clear: list[report.Row],
    figure: Any,
) -> None:
    figure.set_size_inches(11, 11)
    (top, right), (left, bottom) = figure.subplots(2, 2)
    planted.draw_match(match, top)
    planted.draw_errors(sparse, right)
    if tumour_results:
        tumours.draw_accuracy(tumour_results, left)
        tumours.draw_curves(clear, bottom)
