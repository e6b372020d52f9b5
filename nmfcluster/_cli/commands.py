"""The command line: `nmfcluster consensus table.csv`, and so on for all that takes files."""

import argparse
import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from nmfcluster import consensus, constraints, display, fusion, meta, ssnmf, stack
from nmfcluster._arrays.arguments import counted
from nmfcluster._cli import demo
from nmfcluster._cli.files import FileTable, imported, read_pairs, read_table
from nmfcluster._cli.output import Columns, Place, Result, of_clusters, of_rows, stem
from nmfcluster.anndata import keep_programs
from nmfcluster.model_selection import choose_n_clusters

_CANDIDATES = range(1, 16)  # the default of choose_n_clusters
_FAULTS = (ArithmeticError, ImportError, MemoryError, OSError, RuntimeError, TypeError, ValueError)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong, and leave."""
        self.exit(2, f"nmfcluster: error: {message.splitlines()[0]}\n")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; a fault of the user's is said in one line, with the exit status 2."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        return parser.print_help()
    shown, warnings.formatwarning = warnings.formatwarning, _in_one_line
    try:
        if options.command == "demo":
            demo.main(options.picture)
        else:
            _run(options)
    except _FAULTS as error:
        parser.error(_of_options(str(error).strip() or repr(error)))
    finally:
        warnings.formatwarning = shown


def _run(options: argparse.Namespace) -> None:
    find, _, tables = _COMMANDS[options.command]
    genes = options.command == "programs" and not options.transpose
    if options.output.endswith(".h5ad") and not (genes and options.files[0].endswith(".h5ad")):
        told = "the programs of another one, whose rows are cells"
        raise ValueError(f"--output can be an .h5ad file for {told}.")
    place = Place(options, tables)
    result = find(options)
    written = place.write(result)
    if options.command == "how-many":
        print(result.chosen.n_clusters_)
    print(f"{', '.join(options.files)}: {result}; wrote {written}")


def _in_one_line(message: Warning | str, *_: Any, **__: Any) -> str:
    return f"nmfcluster: warning: {_of_options(' '.join(str(message).split()))}\n"


def _of_options(message: str) -> str:
    """Return a message that names an option where it names a parameter."""
    return message.replace("contradictions='ignore'", "--contradictions ignore")


def _consensus(options: argparse.Namespace) -> Result:
    table = _read(options, text=options.partitions, whole=not options.partitions)
    model, chosen = _fitted(_of_runs(options), table.X, options)
    tables = _of_model(model, table, [("confidence", model.confidence_)])
    return Result(model, chosen, tables, display.ConsensusMatrixDisplay.from_estimator)


def _of_runs(options: argparse.Namespace) -> consensus.NMFConsensus:
    affinity = "partitions" if options.partitions else "coassociation"
    return consensus.NMFConsensus(2, affinity=affinity)


def _cluster(options: argparse.Namespace) -> Result:
    table = _read(options, whole=True)
    given = {"constraints": _pairs(options, table)} if options.constraints else {}
    estimator = ssnmf.SSNMFClusterer(2, contradictions=options.contradictions)
    model, chosen = _fitted(estimator, table.X, options, **given)
    kept = [ok for p in given.values() for some in p.satisfied(model.labels_) for ok in some]
    told = f"; {sum(kept)} of {counted(len(kept), 'pair')} satisfied" if given else ""
    draw = display.ConsensusMatrixDisplay.from_estimator
    return Result(model, chosen, _of_model(model, table), draw, told)


def _pairs(options: argparse.Namespace, table: FileTable) -> constraints.PairwiseConstraints:
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
    views = stack.ViewStack({name: t.by_names(most) for name, t in zip(names, read, strict=True)})
    model, chosen = _fitted(fusion.SimilarityFusionNMF(2), views, options)
    table = FileTable(views, None if views.index is None else list(views.index))
    weights = [("source", names), ("weight", model.weights_), ("loss", model.source_losses_)]
    tables = {**_of_model(model, table), "weights": weights}
    return Result(model, chosen, tables, display.SourceWeightsDisplay.from_estimator)


def _programs(options: argparse.Namespace) -> Result:
    table = _read(options)
    model, chosen = _fitted(_of_counts(), table.X, options)
    genes = range(table.X.shape[1]) if table.columns is None else table.columns
    numbers = ("cluster", range(model.n_clusters))
    tables = {
        **_of_model(model, table, [("confidence", model.confidence_)]),
        "usages": of_rows(table, of_clusters(model.factor_)),
        "components": [numbers, *zip(genes, model.components_.T, strict=True)],
        "recurrence": [numbers, ("recurrence", model.recurrence_)],
    }
    draw = display.BiclusterDisplay.from_estimator

    def annotate(path: Path) -> None:
        adata = imported("anndata").read_h5ad(options.files[0])
        keep_programs(adata, model, slice(None), "nmf", model.get_params())
        adata.write_h5ad(path)

    return Result(model, chosen, tables, lambda fitted: draw(fitted, table.X), "", annotate)


def _of_counts() -> meta.NMFMetaCluster:
    return meta.NMFMetaCluster(2, loss="kullback-leibler")


def _how_many(options: argparse.Namespace) -> Result:
    if isinstance(options.clusters, int):
        raise ValueError(f"--clusters must be a range such as 1-15, got {options.clusters}.")
    some = options.partitions or options.counts
    table = _read(options, text=options.partitions, whole=not some)
    estimator = _of_counts() if options.counts else _of_runs(options)
    model, chosen = _fitted(estimator, table.X, options)
    return Result(model, chosen, {"candidates": chosen.table.items()}, lambda _: chosen.plot())


def _of_model(model: Any, table: FileTable, more: Columns = ()) -> dict[str, Columns]:
    """Return the tables of labels, with more beside them, and of memberships."""
    return {
        "labels": of_rows(table, [("label", model.labels_), *more]),
        "memberships": of_rows(table, of_clusters(model.membership_)),
    }


def _read(
    options: argparse.Namespace, i: int = 0, text: bool = False, whole: bool = False
) -> FileTable:
    path, most = Path(options.files[i]), options.max_gib * 2**30
    table = read_table(path, options.names, text, not options.no_titles, most)
    if whole:
        table.require_all(options.files[i])
    return FileTable(table.X.T, table.columns, table.rows) if options.transpose else table


def _fitted(estimator: Any, X: Any, options: argparse.Namespace, **given: Any) -> tuple[Any, Any]:
    """Return the estimator, fitted with the number of clusters asked for, and how it was chosen."""
    shared = {"n_jobs": options.jobs, "random_state": options.random_state}
    estimator.set_params(**shared)
    if isinstance(options.clusters, int):
        return estimator.set_params(n_clusters=options.clusters).fit(X, **given), None
    chosen = choose_n_clusters(estimator, X, options.clusters, fit_params=given or None, **shared)
    return chosen.best_estimator_, chosen


def _numbers(text: str) -> int | range:
    """Return the number, or the range of numbers, that an argument stands for."""
    found = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be such as 5, or 2-20 to choose from, got {text!r}")
    least, most = found.groups()
    return int(least) if most is None else range(int(least), int(most) + 1)


_HOW_MANY = "number of clusters, or a range to choose from; by default 1-15"
_LABELS = ("labels", "memberships")
_OF_COUNTS = "programs that counts add up, also called signatures or topics"
_COMMANDS = {  # what finds clusters, what these are, and the tables that are written
    "consensus": (_consensus, "one partition out of many, of runs of k-means or given", _LABELS),
    "cluster": (_cluster, "clusters that respect pairs of rows, together or apart", _LABELS),
    "fuse": (_fuse, "clusters by several tables, and their weights", (*_LABELS, "weights")),
    "programs": (_programs, _OF_COUNTS, (*_LABELS, "usages", "components", "recurrence")),
    "how-many": (_how_many, "how many clusters there are", ("candidates",)),
}


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="nmfcluster", description="Cluster tables by matrix factorization.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (_, what, _) in _COMMANDS.items():
        own = commands.add_parser(name, help=what, description=f"Find {what}.")
        add = own.add_argument
        add("files", metavar="FILE", nargs="+" if name == "fuse" else 1)
        add("--clusters", metavar="K", type=_numbers, default=_CANDIDATES, help=_HOW_MANY)
        add("--output", metavar="PLACE", default=".", help="a folder, or how names of files begin")
        add("--force", action="store_true", help="overwrite files that are there")
        add("--names", metavar="TITLE", help="of the column that names the rows (csv, tsv)")
        add("--transpose", action="store_true", help="columns of the file are what is clustered")
        add("--random-state", metavar="N", type=int, default=0, help="seed; 0 by default")
        add("--jobs", metavar="N", type=int, help="how much is done at a time")
        add("--no-titles", action="store_true", help="the first line is a row (csv, tsv)")
        add("--max-gib", metavar="N", type=float, default=8, help="most of a file, unpacked; 8")
        kind = own.add_mutually_exclusive_group() if name == "how-many" else own
        if name in ("consensus", "how-many"):
            kind.add_argument("--partitions", action="store_true", help="columns are labellings")
        if name == "how-many":
            kind.add_argument("--counts", action="store_true", help="of programs, out of counts")
        if name == "cluster":
            add("--constraints", metavar="PAIRS", help="csv or tsv of a, b, kind")
            add("--contradictions", default="raise", help="of pairs: raise, warn or ignore")
    own = commands.add_parser("demo", help="a consensus of scikit-learn's digits, with a picture")
    own.add_argument("picture", nargs="?", default="consensus-digits.png")
    return parser
