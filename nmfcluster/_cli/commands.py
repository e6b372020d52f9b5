"""Commands: read files, cluster them, and write the results."""

import csv
import os
import unicodedata
import warnings
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from nmfcluster._cli.files import (
    FileTable,
    imported,
    is_number,
    read_file,
    read_pairs,
    suggest_layers,
)
from nmfcluster._cli.main import COMMANDS, report
from nmfcluster._utils.storage import is_sparse
from nmfcluster._utils.validation import format_count, warn
from nmfcluster.anndata import check_programs, write_programs
from nmfcluster.consensus import NMFConsensus
from nmfcluster.display import (
    BiclusterDisplay,
    ConsensusMatrixDisplay,
    SourceWeightsDisplay,
)
from nmfcluster.fusion import SimilarityFusionNMF
from nmfcluster.meta import NMFMetaCluster
from nmfcluster.metrics import clustering_accuracy
from nmfcluster.model_selection import choose_n_clusters
from nmfcluster.ssnmf import SSNMFClusterer
from nmfcluster.stack import ViewStack

_PLOT = '"nmfcluster[plot]"'  # in quotes, for shells that read brackets
_DPI = 150  # resolution of pictures, sharp on a page
_N_TOP = 20  # number of features of a program that are listed and drawn


class Result(NamedTuple):
    """Result of a command, and how it is written."""

    model: Any
    chosen: Any  # the result of choose_n_clusters, or None
    # tables to write, by name: lists of pairs (title, values); titles may repeat
    tables: dict
    comment: str = ""  # added to the line of output
    # function that draws the model
    draw: Any = ConsensusMatrixDisplay.from_estimator
    annotate: Any = None  # function that writes the result to an h5ad file, or None


def run(options):
    """Run a command, and print what it found in one line."""
    command = options.command
    if command == "demo":
        return _demo(options.picture)
    reads_cells = (
        command == "programs"
        and not options.transpose
        and options.files[0].endswith(".h5ad")
    )
    if options.output.endswith(".h5ad") and not reads_cells:
        raise ValueError(
            "--output may end in .h5ad only for `programs` of an .h5ad file without "
            "--transpose: pass a folder or a prefix."
        )
    # These concern single base runs, also in workers; the result has its own warning.
    warnings.filterwarnings("ignore", category=ConvergenceWarning, module="sklearn")
    # `_read` has its own warning for repeated names.
    warnings.filterwarnings("ignore", "Variable names are not unique")
    paths = _output_paths(options)
    options.max_bytes = options.max_gib * 2**30
    result = _COMMANDS[command](options)

    # write the results
    paths["picture"].parent.mkdir(parents=True, exist_ok=True)
    save = {"annotated": result.annotate}
    for name, table in result.tables.items():
        save[name] = partial(_save_table, table)
    no_picture = ""
    if find_spec("matplotlib") is None:
        no_picture = f"; no picture without matplotlib: pip install {_PLOT}"
    else:
        save["picture"] = partial(_save_picture, result.draw(result.model))
    writers = {path: save[name] for name, path in paths.items() if name in save}
    _write_files(writers, options.force)
    written = f"{_join(writers)}{no_picture}"

    # print what was found, and where it is
    if command == "how-many":
        print(result.chosen.n_clusters_)
    labels = result.model.labels_
    sizes = np.bincount(labels[labels >= 0])
    choice = ""
    if result.chosen is not None:  # its text, without the name of the class
        choice = f" (choose_n_clusters: {str(result.chosen).partition('(')[2]}"
    print(
        f"{', '.join(options.files)}: {format_count(len(sizes), 'cluster')} of "
        f"{', '.join(map(str, sizes))} rows{choice}{result.comment}; wrote {written}"
    )


# --- output --------------------------------------------------------------------------


def _output_paths(options):
    """Return the paths that a command will write: tables, "picture", and perhaps "annotated".

    Raises before any work if one cannot be written, or exists and must not be overwritten.
    """
    base = Path(options.output)
    if options.output.endswith(("/", os.sep)) or base.is_dir():
        base /= f"{_stem(options.files[0])}-{options.command}"
    paths = {}
    if base.suffix == ".h5ad":
        paths["annotated"] = base
        base = base.with_suffix("")
    for name in COMMANDS[options.command][1]:
        paths[name] = base.with_name(f"{base.name}-{name}.csv")
    paths["picture"] = base.with_name(f"{base.name}.png")
    folder = next(path for path in base.parents if os.path.lexists(path))
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise PermissionError(
            f"--output must be in a writable folder, not in {folder}: pass another one."
        )
    existing = [path for path in paths.values() if os.path.lexists(path)]
    readonly = [
        path for path in existing if not (path.is_file() and os.access(path, os.W_OK))
    ]
    if readonly:
        raise FileExistsError(
            f"{_join(readonly)} cannot be written to: pass another --output."
        )
    if existing and not options.force:
        raise FileExistsError(
            f"{_join(existing)} would be overwritten: pass --force to allow it."
        )
    return paths


def _write_files(writers, may_replace):
    """Write all files completely, or none: to temporary files first, which are then renamed.

    Parameters
    ----------
    writers : dict of Path to callable
        Function that writes each file, to the path that it is called with.
    may_replace : bool
        Whether existing files are overwritten.

    Raises
    ------
    OSError
        If a file cannot be written. The message names it; temporary files are removed.
    """
    parts = {}
    try:
        for path, write in writers.items():
            parts[path] = path.with_name(f".{os.getpid()}-{path.name}")
            try:
                write(parts[path])
            except (OSError, RuntimeError) as error:  # h5py raises both
                reason = getattr(error, "strerror", None) or error
                raise OSError(f"{path} cannot be written: {reason}.") from error
        for path, part in parts.items():
            if os.path.lexists(path) and not may_replace:
                raise FileExistsError(f"{path} would be overwritten.")
            part.replace(path.resolve())
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def _save_table(columns, path):
    titled = [[title, *np.asarray(values).tolist()] for title, values in columns]
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = zip(*titled, strict=True)
        csv.writer(file).writerows(map(_as_text, row) for row in rows)


def _save_picture(display, path):
    display.figure_.savefig(path, format="png", dpi=_DPI, bbox_inches="tight")


def _stem(file):
    """Return the name of a file without its folder and ending."""
    return Path(file.removesuffix(".gz")).stem


def _join(paths):
    return ", ".join(map(str, paths))


def _as_text(entry):
    """Quote an entry that a spreadsheet would run as a formula; numbers are unchanged.

    Spreadsheets read full-width characters as usual ones, and ignore invisible ones.
    """
    if not isinstance(entry, str) or is_number(entry):
        return entry
    signs = unicodedata.normalize("NFKC", entry)
    seen = [sign for sign in signs if unicodedata.category(sign)[0] not in "CZ"]
    return f"'{entry}" if seen and seen[0] in "=+-@" else entry


def _row_columns(table, columns):
    """Return columns with a value for every row of a table, preceded by the row names."""
    names = table.rows or range(table.X.shape[0])
    title = table.title
    if title is None or title in dict(columns):
        title = "row"
    return [(title, names), *columns]


def _cluster_columns(F):
    """Return the columns of a matrix with one column per cluster, with titles."""
    return [(f"cluster{c}", column) for c, column in enumerate(F.T)]


def _tables(model, table):
    """Return the tables of labels, with confidence if the model has it, and memberships."""
    labels = [("label", model.labels_)]
    if hasattr(model, "confidence_"):
        labels.append(("confidence", model.confidence_))
    return {
        "labels": _row_columns(table, labels),
        "memberships": _row_columns(table, _cluster_columns(model.membership_)),
    }


# --- commands ------------------------------------------------------------------------


def _cluster(options):
    table = _read(options, options.files[0])
    fit_params = {}
    if options.constraints:
        # pairs refer to rows by name, or by position if there are no names
        ids = table.rows or [str(i) for i in range(table.X.shape[0])]
        pairs = read_pairs(options.constraints, options.max_bytes, ids)
        fit_params["constraints"] = pairs
    model, chosen = _fit(options, table.X, **fit_params)
    comment = ""
    if options.constraints:
        satisfied = np.concatenate(pairs.satisfied(model.labels_))
        n_pairs = format_count(len(satisfied), "pair")
        comment = f"; {int(satisfied.sum())} of {n_pairs} satisfied"
    return Result(model, chosen, _tables(model, table), comment)


def _fuse(options):
    names = [_stem(file) for file in options.files]
    if len(set(names)) < len(names):
        names = options.files
    if len(set(names)) < len(names):
        raise ValueError(f"the files must differ, got {', '.join(names)}.")
    read = [_read(options, file) for file in options.files]
    # Numbers that name the rows of several files must not be used as features.
    ids = [tuple(table.id_column()) for table in read]
    shared = set.intersection(*map(set, ids))
    if len(set(ids)) > 1 and 2 * len(shared) > min(map(len, ids)):
        raise ValueError(
            f"{', '.join(names)} have the same numbers in their first columns, but in "
            "different rows. If these are row names, pass --names TITLE; if not, put "
            "another column first."
        )
    tables = [table.by_names(options.max_bytes) for table in read]
    views = ViewStack(dict(zip(names, tables, strict=True)))
    model, chosen = _fit(options, views)
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
    return Result(model, chosen, tables, draw=SourceWeightsDisplay.from_estimator)


def _programs(options):
    table = _read(options, options.files[0])
    if options.output.endswith(".h5ad"):
        check_programs(table.adata, "nmf")
    model, chosen = _fit(options, table.X)
    genes = np.array(table.columns or range(table.X.shape[1]))
    # The genes that rise most with each program.
    scores = _feature_scores(model, table.X)
    top = np.argsort(-scores, axis=1, kind="stable")[:, :_N_TOP]
    rises = np.take_along_axis(scores, top, axis=1) > 0
    top_genes = np.where(rises, genes[top], "")
    ranks = ("rank", range(1, top.shape[1] + 1))
    numbers = ("cluster", range(model.n_clusters))
    tables = {
        **_tables(model, table),
        "usages": _row_columns(table, _cluster_columns(model.factor_)),
        "components": [numbers, *zip(genes, model.components_.T, strict=True)],
        "top": [ranks, *_cluster_columns(top_genes.T)],
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
        loadings = model.components_.T
        write_programs(table.adata, model, loadings, "nmf", model.get_params())
        table.adata.write_h5ad(path)

    return Result(model, chosen, tables, draw=draw, annotate=annotate)


def _feature_scores(model, X):
    """Return how much each column rises with the usage of each program."""
    if model.n_clusters == 1:  # all rows have the same share of it
        return model.components_
    is_missing = False if is_sparse(X) else np.isnan(np.asarray(X))
    if np.any(is_missing):
        frame = imported("pandas").DataFrame(X)
        X = frame.mask(is_missing, model.inverse_transform(model.factor_))
    return model.feature_scores(X)


def _how_many(options):
    if isinstance(options.clusters, int):
        raise ValueError(
            f"--clusters must be a range such as 1-15, got {options.clusters}."
        )
    table = _read(options, options.files[0])
    model, chosen = _fit(options, table.X)
    tables = {"candidates": chosen.table.items()}
    return Result(model, chosen, tables, draw=lambda _: chosen.plot())


# --- reading and fitting -------------------------------------------------------------


def _read(options, file):
    """Read a file, check its table for the command, and print how it was read.

    Raises if counts are negative, and warns if most positive ones are not whole numbers.
    """
    table = read_file(
        Path(file),
        max_bytes=options.max_bytes,
        may_hold_text=options.partitions,
        layer=options.layer,
        names=options.names,
        has_titles=not options.no_titles,
    )
    if options.counts:
        X = table.X.data if is_sparse(table.X) else np.asarray(table.X)
        cure = suggest_layers(table.layers) or "pass the original counts"
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
                f"{file} should hold counts, but {n_fractions:,} of {len(positive):,} "
                f"positive entries are not whole numbers (largest: "
                f"{positive.max():.3g}). It looks normalised; {cure}."
            )
    elif options.command != "fuse" and not options.partitions:
        table.require_complete(file)
    if options.transpose:
        table = table._replace(
            X=table.X.T,
            rows=table.columns,
            columns=table.rows,
            rows_from=table.columns_from,
            columns_from=table.rows_from,
            title=None,
        )
    table = table.with_distinct_columns(file)
    report(f"{file}: {table}")
    return table


def _fit(options, X, **fit_params):
    """Return the fitted estimator of a command, and the result of choose_n_clusters or None."""
    if options.counts:
        estimator = NMFMetaCluster(2, loss="kullback-leibler")
    elif options.command == "cluster":
        estimator = SSNMFClusterer(2, contradictions=options.contradictions)
    elif options.command == "fuse":
        estimator = SimilarityFusionNMF(2)
    else:
        estimator = NMFConsensus(
            2,
            affinity="partitions" if options.partitions else "coassociation",
            max_samples=options.max_samples,
            predict_unseen=True,
        )
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
    "consensus": _cluster,
    "cluster": _cluster,
    "fuse": _fuse,
    "programs": _programs,
    "how-many": _how_many,
}


# --- demo ----------------------------------------------------------------------------


def _demo(picture):
    """Cluster handwritten digits, compare with k-means, and save a picture if the file is new."""
    X, y = load_digits(return_X_y=True)
    print(f"{len(X)} handwritten digits, {X.shape[1]} pixels, 10 classes")
    model = NMFConsensus(10, random_state=0)
    rows = {
        "k-means, mean of 20 single runs": [
            KMeans(10, n_init=1, random_state=seed) for seed in range(20)
        ],
        "k-means, best of 10 starts": [KMeans(10, n_init=10, random_state=0)],
        "NMFConsensus of 50 runs": [model],
    }
    print(f"\n{'':38}{'accuracy':>10}{'adjusted Rand':>15}")
    for name, models in rows.items():
        began = perf_counter()
        runs = [one.fit_predict(X) for one in models]
        seconds = perf_counter() - began  # the last value is that of the consensus
        accuracy = np.mean([clustering_accuracy(y, run) for run in runs])
        rand = np.mean([adjusted_rand_score(y, run) for run in runs])
        print(f"{name:38}{accuracy:10.3f}{rand:15.3f}")
    # A digit is misclustered if its class is not the most common one of its cluster.
    commonest = contingency_matrix(y, model.labels_).argmax(axis=0)
    is_wrong = commonest[model.labels_] != y
    is_unsure = model.confidence_ < np.quantile(model.confidence_, 0.1)
    print(
        f"\nclustered in {seconds:.1f} s; "
        f"{is_wrong[is_unsure].mean():.0%} of the least confident 10% of the digits are "
        f"misclustered, and {is_wrong[~is_unsure].mean():.0%} of the rest"
    )
    try:
        display = ConsensusMatrixDisplay.from_estimator(model)
        display.ax_.set_title("Consensus of 50 runs on the digits")
        _write_files({Path(picture): partial(_save_picture, display)}, False)
        print(f"saved {Path(picture).resolve()}")
    except (ImportError, OSError) as error:
        print(f"no picture: {error}")
