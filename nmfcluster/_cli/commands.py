"""What the commands do: read files, find clusters, and write what was found."""

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nmfcluster._cli import demo
from nmfcluster._cli.files import (
    FileTable,
    imported,
    read_file,
    read_pairs,
    suggest_layers,
)
from nmfcluster._cli.output import (
    Columns,
    Output,
    Result,
    cluster_columns,
    row_columns,
    stem,
)
from nmfcluster._cli.parser import COMMANDS
from nmfcluster._utils.storage import is_sparse
from nmfcluster._utils.validation import format_count, warn
from nmfcluster.anndata import write_programs
from nmfcluster.consensus import NMFConsensus
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.display import (
    BiclusterDisplay,
    ConsensusMatrixDisplay,
    SourceWeightsDisplay,
)
from nmfcluster.fusion import SimilarityFusionNMF
from nmfcluster.meta import NMFMetaCluster
from nmfcluster.model_selection import choose_n_clusters
from nmfcluster.ssnmf import SSNMFClusterer
from nmfcluster.stack import ViewStack

_N_TOP = 20  # number of features of a program that are listed and drawn


def run(options) -> None:
    """Run a command, and say in one line what it found."""
    if options.command == "demo":
        return demo.main(options.picture)
    of_cells = options.command == "programs" and not options.transpose
    reads_cells = of_cells and options.files[0].endswith(".h5ad")
    if options.output.endswith(".h5ad") and not reads_cells:
        raise ValueError(
            "--output can be an .h5ad file for the programs of another one, whose rows "
            "are cells."
        )
    # These are about single runs, also in workers. The result has a warning of its own.
    warnings.filterwarnings("ignore", category=ConvergenceWarning, module="sklearn")
    # `_read` warns of these names itself.
    warnings.filterwarnings("ignore", "Variable names are not unique")
    output = Output(options, COMMANDS[options.command][1])
    result = _COMMANDS[options.command](options)
    written = output.write(result)
    if options.command == "how-many":
        print(result.chosen.n_clusters_)
    print(f"{', '.join(options.files)}: {result}; wrote {written}")


def _consensus(options) -> Result:
    table = _read(options, options.files[0])
    model, chosen = _fit(_consensus_estimator(options), table.X, options)
    tables = _tables(model, table, [("confidence", model.confidence_)])
    return Result(model, chosen, tables, ConsensusMatrixDisplay.from_estimator)


def _consensus_estimator(options):
    return NMFConsensus(
        2,
        affinity="partitions" if options.partitions else "coassociation",
        max_samples=options.max_samples,
        predict_unseen=True,
    )


def _cluster(options) -> Result:
    table = _read(options, options.files[0])
    estimator = SSNMFClusterer(2, contradictions=options.contradictions)
    fit_params = {}
    if options.constraints:
        fit_params["constraints"] = _read_pairs(options, table)
    model, chosen = _fit(estimator, table.X, options, **fit_params)
    comment = ""
    for pairs in fit_params.values():
        satisfied = np.concatenate(pairs.satisfied(model.labels_))
        n_pairs = format_count(len(satisfied), "pair")
        comment = f"; {int(satisfied.sum())} of {n_pairs} satisfied"
    draw = ConsensusMatrixDisplay.from_estimator
    return Result(model, chosen, _tables(model, table), draw, comment)


def _read_pairs(options, table: FileTable) -> PairwiseConstraints:
    """Return the pairs of a file, by the names of rows, or by positions without names."""
    ids = table.rows or [str(i) for i in range(table.X.shape[0])]
    try:
        pairs = read_pairs(Path(options.constraints), options.max_gib * 2**30)
        return PairwiseConstraints.from_table(pairs, ids=ids)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{options.constraints}: {error}") from error


def _fuse(options) -> Result:
    names = [stem(file) for file in options.files]
    if len(set(names)) < len(names):
        names = options.files
    if len(set(names)) < len(names):
        raise ValueError(f"the files must differ, got {', '.join(names)}.")
    read = [_read(options, file) for file in options.files]
    # Numbers that name the rows of several files must not be taken for features.
    ids = [tuple(table.id_column()) for table in read]
    shared = set.intersection(*map(set, ids))
    if len(set(ids)) > 1 and 2 * len(shared) > min(map(len, ids)):
        raise ValueError(
            f"{', '.join(names)} have the same numbers in their first columns, in other "
            "rows. If they name the rows, --names TITLE says so; if not, put another "
            "column first."
        )
    max_bytes = options.max_gib * 2**30
    views = ViewStack(
        {
            name: table.by_names(max_bytes)
            for name, table in zip(names, read, strict=True)
        }
    )
    model, chosen = _fit(SimilarityFusionNMF(2), views, options)
    titles = {table.title for table in read}
    table = FileTable(
        views,
        rows=None if views.index is None else list(views.index),
        title=titles.pop() if len(titles) == 1 else None,
    )
    tables = _tables(model, table)
    tables["weights"] = [
        ("source", names),
        ("weight", model.weights_),
        ("loss", model.source_losses_),
    ]
    return Result(model, chosen, tables, SourceWeightsDisplay.from_estimator)


def _programs(options) -> Result:
    table = _read(options, options.files[0])
    model, chosen = _fit(_programs_estimator(), table.X, options)
    genes = np.array(table.columns or range(table.X.shape[1]))
    # The genes that rise most with each program.
    scores = _feature_scores(model, table.X)
    top = np.argsort(-scores, axis=1, kind="stable")[:, :_N_TOP]
    rises = np.take_along_axis(scores, top, axis=1) > 0
    top_genes = np.where(rises, genes[top], "")
    ranks = ("rank", range(1, top.shape[1] + 1))
    numbers = ("cluster", range(model.n_clusters))
    tables = {
        **_tables(model, table, [("confidence", model.confidence_)]),
        "usages": row_columns(table, cluster_columns(model.factor_)),
        "components": [numbers, *zip(genes, model.components_.T, strict=True)],
        "top": [ranks, *cluster_columns(top_genes.T)],
        "recurrence": [numbers, ("recurrence", model.recurrence_)],
    }

    def draw(model):
        X = table.X if is_sparse(table.X) else np.asarray(table.X)
        shown = np.unique(top[rises] if rises.any() else top)
        rows = model.labels_ == np.arange(model.n_clusters)[:, None]
        columns = [np.isin(shown, own[up]) for own, up in zip(top, rises, strict=True)]
        drawn = BiclusterDisplay.from_biclusters(np.log1p(X[:, shown]), rows, columns)
        drawn.colorbar_.set_label("log(1 + count)")
        return drawn

    def annotate(path):
        adata = imported("anndata").read_h5ad(options.files[0])
        write_programs(adata, model, slice(None), "nmf", model.get_params())
        adata.write_h5ad(path)

    return Result(model, chosen, tables, draw, annotate=annotate)


def _feature_scores(model, X):
    """Return how much each column rises with the usage of each program."""
    if model.n_clusters == 1:  # all usages are the same share
        return model.components_
    is_missing = False if is_sparse(X) else np.isnan(np.asarray(X))
    if np.any(is_missing):
        frame = imported("pandas").DataFrame(X)
        X = frame.mask(is_missing, model.inverse_transform(model.factor_))
    return model.feature_scores(X)


def _programs_estimator():
    return NMFMetaCluster(2, loss="kullback-leibler")


def _how_many(options) -> Result:
    if isinstance(options.clusters, int):
        raise ValueError(
            f"--clusters must be a range such as 1-15, got {options.clusters}."
        )
    table = _read(options, options.files[0])
    estimator = (
        _programs_estimator() if options.counts else _consensus_estimator(options)
    )
    model, chosen = _fit(estimator, table.X, options)
    tables = {"candidates": chosen.table.items()}
    return Result(model, chosen, tables, lambda _: chosen.plot())


def _tables(model, table: FileTable, more: Columns = ()) -> dict[str, Columns]:
    """Return the tables of labels, with more beside them, and of memberships."""
    return {
        "labels": row_columns(table, [("label", model.labels_), *more]),
        "memberships": row_columns(table, cluster_columns(model.membership_)),
    }


def _read(options, file: str) -> FileTable:
    """Return the table of a file, checked for what the command needs; say how it was read."""
    table = read_file(
        Path(file),
        max_bytes=options.max_gib * 2**30,
        may_hold_text=options.partitions,
        layer=options.layer,
        names=options.names,
        has_titles=not options.no_titles,
    )
    if options.counts:
        _check_counts(table, file)
    elif options.command != "fuse" and not options.partitions:
        table.require_complete(file)
    if options.transpose:
        table = table.transposed()
    table = table.with_distinct_columns(file)
    print(f"{file}: {table}", file=sys.stderr)
    return table


def _check_counts(table: FileTable, file: str):
    """Raise if entries are negative; warn if most of those above 0 are no whole numbers."""
    X = table.X.data if is_sparse(table.X) else np.asarray(table.X)
    cure = suggest_layers(table.layers) or "give the counts that it was made of"
    n_negative = np.count_nonzero(X < 0)
    if n_negative:
        raise ValueError(
            f"{file} must hold counts, but {n_negative:,} of {X.size:,} entries are "
            f"negative, down to {np.nanmin(X):.3g}; {cure}."
        )
    positive = X[X > 0]
    n_fractions = np.count_nonzero(positive % 1)
    if 2 * n_fractions > len(positive):
        warn(
            f"{file} should hold counts, but {n_fractions:,} of {len(positive):,} entries "
            f"above 0 are no whole numbers, the largest is {positive.max():.3g}: it looks "
            f"normalised; {cure}."
        )


def _fit(estimator, X, options, **fit_params):
    """Return the estimator, fitted with the wanted number of clusters, and how it was chosen."""
    shared = {"n_jobs": options.jobs, "random_state": options.random_state}
    estimator.set_params(**shared)
    if isinstance(options.clusters, int):
        estimator.set_params(n_clusters=options.clusters)
        return estimator.fit(X, **fit_params), None
    chosen = choose_n_clusters(
        estimator, X, options.clusters, fit_params=fit_params, **shared
    )
    return chosen.best_estimator_, chosen


_COMMANDS = {
    "consensus": _consensus,
    "cluster": _cluster,
    "fuse": _fuse,
    "programs": _programs,
    "how-many": _how_many,
}
