"""What the commands do: read files, find clusters, and write what was found."""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from nmfcluster import consensus, constraints, display, fusion, meta, ssnmf, stack
from nmfcluster._cli import demo
from nmfcluster._cli.files import FileTable, imported, of_layers, read_pairs, read_table
from nmfcluster._cli.main import COMMANDS
from nmfcluster._cli.output import Columns, Place, Result, of_clusters, of_rows, stem
from nmfcluster._utils.storage import is_sparse
from nmfcluster._utils.validation import counted, warn
from nmfcluster.anndata import keep_programs
from nmfcluster.model_selection import choose_n_clusters

_N_TOP = 20  # features of a program that are listed and drawn


def run(options: argparse.Namespace) -> None:
    """Run a command, and say in one line what it found."""
    if options.command == "demo":
        return demo.main(options.picture)
    genes = options.command == "programs" and not options.transpose
    if options.output.endswith(".h5ad") and not (
        genes and options.files[0].endswith(".h5ad")
    ):
        told = "the programs of another one, whose rows are cells"
        raise ValueError(f"--output can be an .h5ad file for {told}.")
    # of single runs, also in workers: what comes out of them all is told once
    warnings.filterwarnings("ignore", category=ConvergenceWarning, module="sklearn")
    warnings.filterwarnings(
        "ignore", "Variable names are not unique"
    )  # `_read` tells it
    place = Place(options, COMMANDS[options.command][1])
    result = _FINDERS[options.command](options)
    written = place.write(result)
    if options.command == "how-many":
        print(result.chosen.n_clusters_)
    print(f"{', '.join(options.files)}: {result}; wrote {written}")


def _consensus(options: argparse.Namespace) -> Result:
    table = _read(options)
    model, chosen = _fitted(_of_runs(options), table.X, options)
    tables = _of_model(model, table, [("confidence", model.confidence_)])
    return Result(model, chosen, tables, display.ConsensusMatrixDisplay.from_estimator)


def _of_runs(options: argparse.Namespace) -> consensus.NMFConsensus:
    affinity = "partitions" if options.partitions else "coassociation"
    some = {"max_samples": options.max_samples, "predict_unseen": True}
    return consensus.NMFConsensus(2, affinity=affinity, **some)


def _cluster(options: argparse.Namespace) -> Result:
    table = _read(options)
    given = {"constraints": _pairs(options, table)} if options.constraints else {}
    estimator = ssnmf.SSNMFClusterer(2, contradictions=options.contradictions)
    model, chosen = _fitted(estimator, table.X, options, **given)
    kept = [
        ok for p in given.values() for some in p.satisfied(model.labels_) for ok in some
    ]
    told = f"; {sum(kept)} of {counted(len(kept), 'pair')} satisfied" if given else ""
    draw = display.ConsensusMatrixDisplay.from_estimator
    return Result(model, chosen, _of_model(model, table), draw, told)


def _pairs(
    options: argparse.Namespace, table: FileTable
) -> constraints.PairwiseConstraints:
    """Return the pairs of a file: by the names of rows, or by positions where they have none."""
    ids = table.rows or [str(i) for i in range(table.X.shape[0])]
    try:
        pairs = read_pairs(Path(options.constraints), options.max_gib * 2**30)
        return constraints.PairwiseConstraints.from_table(pairs, ids=ids)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{options.constraints}: {error}") from error


def _fuse(options: argparse.Namespace) -> Result:
    stems = [stem(file) for file in options.files]
    names = stems if len(set(stems)) == len(stems) else options.files
    if len(set(names)) < len(names):
        raise ValueError(f"the files must differ, got {', '.join(names)}.")
    read = [_read(options, i) for i in range(len(names))]
    ids = [tuple(table.numbers()) for table in read]
    shared = set.intersection(*map(set, ids))
    if len(set(ids)) > 1 and 2 * len(shared) > min(map(len, ids)):
        told = f"{', '.join(names)} have the same numbers in their first columns, in other rows"
        cure = "If they name the rows, --names TITLE says so; if not, put another column first"
        raise ValueError(f"{told}. {cure}.")
    most = options.max_gib * 2**30
    views = stack.ViewStack(
        {name: t.by_names(most) for name, t in zip(names, read, strict=True)}
    )
    model, chosen = _fitted(fusion.SimilarityFusionNMF(2), views, options)
    title = read[0].title if len({one.title for one in read}) == 1 else None
    table = FileTable(
        views, None if views.index is None else list(views.index), title=title
    )
    weights = [
        ("source", names),
        ("weight", model.weights_),
        ("loss", model.source_losses_),
    ]
    tables = {**_of_model(model, table), "weights": weights}
    return Result(model, chosen, tables, display.SourceWeightsDisplay.from_estimator)


def _programs(options: argparse.Namespace) -> Result:
    table = _read(options)
    model, chosen = _fitted(_of_counts(), table.X, options)
    genes = (
        np.arange(table.X.shape[1])
        if table.columns is None
        else np.array(table.columns)
    )
    scores = _scores(model, table.X)
    top = np.argsort(-scores, axis=1, kind="stable")[:, :_N_TOP]
    rises = np.take_along_axis(scores, top, axis=1) > 0
    numbers = ("cluster", range(model.n_clusters))
    tables = {
        **_of_model(model, table, [("confidence", model.confidence_)]),
        "usages": of_rows(table, of_clusters(model.factor_)),
        "components": [numbers, *zip(genes, model.components_.T, strict=True)],
        "top": [
            ("rank", range(1, top.shape[1] + 1)),
            *of_clusters(np.where(rises, genes[top], "").T),
        ],
        "recurrence": [numbers, ("recurrence", model.recurrence_)],
    }

    def draw(model: Any) -> Any:
        X = table.X if is_sparse(table.X) else np.asarray(table.X)
        shown = np.unique(top[rises] if rises.any() else top)
        rows = model.labels_ == np.arange(model.n_clusters)[:, None]
        columns = [np.isin(shown, its[up]) for its, up in zip(top, rises, strict=True)]
        drawn = display.BiclusterDisplay.from_biclusters(
            np.log1p(X[:, shown]), rows, columns
        )
        drawn.colorbar_.set_label("log(1 + count)")
        return drawn

    def annotate(path: Path) -> None:
        adata = imported("anndata").read_h5ad(options.files[0])
        keep_programs(adata, model, slice(None), "nmf", model.get_params())
        adata.write_h5ad(path)

    return Result(model, chosen, tables, draw, "", annotate)


def _scores(model: Any, X: Any) -> np.ndarray:
    """Return how much each column rises with the usage of each program."""
    lacks = False if is_sparse(X) else np.isnan(np.asarray(X))
    if np.any(lacks):
        X = (
            imported("pandas")
            .DataFrame(X)
            .mask(lacks, model.inverse_transform(model.factor_))
        )
    # of one program all usages are the same share
    return model.feature_scores(X) if model.n_clusters > 1 else model.components_


def _of_counts() -> meta.NMFMetaCluster:
    return meta.NMFMetaCluster(2, loss="kullback-leibler")


def _how_many(options: argparse.Namespace) -> Result:
    if isinstance(options.clusters, int):
        raise ValueError(
            f"--clusters must be a range such as 1-15, got {options.clusters}."
        )
    table = _read(options)
    estimator = _of_counts() if options.counts else _of_runs(options)
    model, chosen = _fitted(estimator, table.X, options)
    return Result(
        model, chosen, {"candidates": chosen.table.items()}, lambda _: chosen.plot()
    )


def _of_model(model: Any, table: FileTable, more: Columns = ()) -> dict[str, Columns]:
    """Return the tables of labels, with more beside them, and of memberships."""
    return {
        "labels": of_rows(table, [("label", model.labels_), *more]),
        "memberships": of_rows(table, of_clusters(model.membership_)),
    }


def _read(options: argparse.Namespace, i: int = 0) -> FileTable:
    """Return the table of a file, checked for what the command needs; say how it was read."""
    file, how = (
        options.files[i],
        {"names": options.names, "titles": not options.no_titles},
    )
    most, text = options.max_gib * 2**30, options.partitions
    table = read_table(Path(file), text, most, options.layer, **how)
    if options.counts:
        _check_counts(table, file)
    elif options.command != "fuse" and not text:
        table.require_all(file)
    table = (table.transposed() if options.transpose else table).apart(file)
    print(f"{file}: {table}", file=sys.stderr)
    return table


def _check_counts(table: FileTable, file: str) -> None:
    """Raise if entries are negative; warn if most of those above 0 are no whole numbers."""
    X = table.X.data if is_sparse(table.X) else np.asarray(table.X)
    cure = of_layers(table.layers) or "give the counts that it was made of"
    if n_low := np.count_nonzero(X < 0):
        told = (
            f"{n_low:,} of {X.size:,} entries are negative, down to {np.nanmin(X):.3g}"
        )
        raise ValueError(f"{file} must hold counts, but {told}; {cure}.")
    above = X[X > 0]
    if 2 * (n_parts := np.count_nonzero(above % 1)) > len(above):
        told = f"{n_parts:,} of {len(above):,} entries above 0 are no whole numbers"
        look = f"{told}, the largest is {above.max():.3g}: it looks normalised"
        warn(f"{file} should hold counts, but {look}; {cure}.")


def _fitted(
    estimator: Any, X: Any, options: argparse.Namespace, **given: Any
) -> tuple[Any, Any]:
    """Return the estimator, fitted with the number of clusters asked for, and how it was chosen."""
    shared = {"n_jobs": options.jobs, "random_state": options.random_state}
    estimator.set_params(**shared)
    if isinstance(options.clusters, int):
        return estimator.set_params(n_clusters=options.clusters).fit(X, **given), None
    chosen = choose_n_clusters(
        estimator, X, options.clusters, fit_params=given or None, **shared
    )
    return chosen.best_estimator_, chosen


_FINDERS = {
    "consensus": _consensus,
    "cluster": _cluster,
    "fuse": _fuse,
    "programs": _programs,
    "how-many": _how_many,
}
