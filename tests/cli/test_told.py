"""What the command line says beside its answer: of files, options, progress and interruptions."""

import logging
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from cli.cases import COUNTS, POINTS, back, refused, says, told
from internals import main
from numpy.testing import assert_array_equal

from nmfcluster import NMFConsensus, __version__
from nmfcluster._cli.main import _of_options

pd = pytest.importorskip("pandas")

NAMES = [f"p{i}" for i in range(40)]


def frame(X):
    return pd.DataFrame(X, index=NAMES).add_prefix("x")


def warned(arguments):
    """Return the warnings of a command."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        main(arguments)
    return [str(one.message) for one in caught]


# --- of what was read -------------------------------------------------------------------------

READ = {
    "blank.csv": (
        frame(POINTS),
        {},
        [],
        "40 rows, 2 columns, names from the first column",
    ),
    "titled.csv": (
        frame(POINTS).rename_axis("patient id"),
        {},
        [],
        "40 rows, 2 columns, names from 'patient id'",
    ),
    "bare.csv": (
        frame(POINTS),
        {"index": False},
        [],
        "40 rows, 2 columns, rows without names",
    ),
    "asked.csv": (
        frame(POINTS).reset_index(names="id")[["x0", "id", "x1"]],
        {"index": False},
        ["--names", "id"],
        "40 rows, 2 columns, names from 'id'",
    ),
    "wide.tsv": (
        frame(POINTS).T.rename_axis("gene"),
        {"sep": "\t"},
        ["--transpose"],
        "40 rows, 2 columns, names from the first line",
    ),
    "one.csv": (
        frame(POINTS[:, :1]),
        {},
        [],
        "40 rows, 1 column, names from the first column",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", READ)
def test_what_was_read_is_said_and_the_title_of_names_kept(name, here, capsys):
    table, how, options, said = READ[name]
    table.to_csv(name, **how)
    main(["cluster", name, "--clusters", "3", "--output", "out", *options])
    printed = capsys.readouterr()
    assert printed.err == f"{name}: {said}\n"
    assert printed.out.startswith(f"{name}: 3 clusters of ")
    title = re.search("'(.*)'", said)
    for kind in ("labels", "memberships"):
        written = pd.read_csv(f"out-{kind}.csv", dtype=str)
        assert written.columns[0] == (title[1] if title else "row")
        assert list(written.iloc[:, 0]) == (
            NAMES if "names from" in said else [*map(str, range(40))]
        )


def test_a_title_that_is_written_anyway_is_not_written_twice(here):
    frame(POINTS).rename_axis("label").to_csv("t.csv")
    main(["cluster", "t.csv", "--clusters", "2", "--output", "out"])
    assert list(pd.read_csv("out-labels.csv")) == ["row", "label"]
    assert next(iter(pd.read_csv("out-memberships.csv"))) == "label"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("same", [True, False])
def test_fuse_keeps_a_title_that_all_tables_have(same, here):
    frame(POINTS).rename_axis("patient").to_csv("a.csv")
    frame(POINTS[:, ::-1] ** 2).rename_axis("patient" if same else "id").to_csv("b.csv")
    main(["fuse", "a.csv", "b.csv", "--clusters", "3", "--output", "out"])
    assert back("out-labels.csv").index.name == ("patient" if same else "row")


# --- of options -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("consensus t.csv --k 3", "--clusters"),
        ("consensus t.csv -k 3", "--clusters"),
        ("programs t.csv --n_components=3", "--clusters"),
        ("fuse a.csv b.csv --n-jobs 2", "--jobs"),
        ("cluster t.csv --seed 1", "--random-state"),
        ("cluster t.csv --pairs p.csv", "--constraints"),
        ("how-many t.csv --transposed", "--transpose"),
        ("fuse a.csv b.csv --partitions", "--clusters, --output"),
    ],
)
def test_an_option_that_there_is_not_leads_to_the_one_that_is_meant(
    command, option, capsys
):
    line = refused(command.split(), capsys)
    assert f"the command has {option}" in line
    assert ("," in line) == ("," in option)  # a list where none is meant


@pytest.mark.parametrize("command", ["--foo", "demo --foo"])
def test_an_option_of_no_command_is_named(command, capsys):
    assert "--foo" in refused(command.split(), capsys)


@pytest.mark.slow
def test_the_number_of_clusters_has_two_names(here, capsys):
    frame(POINTS).to_csv("t.csv")
    for name in ("--clusters", "--n-clusters"):
        main(["cluster", "t.csv", name, "3", "--output", name.strip("-")])
    assert_array_equal(
        back("clusters-labels.csv")["label"], back("n-clusters-labels.csv")["label"]
    )


OPTIONS = {
    "n_clusters": "--clusters",
    "candidates": "--clusters",
    "n_jobs": "--jobs",
    "random_state": "--random-state",
    "max_samples": "--max-samples",
    "contradictions": "--contradictions",
}


@pytest.mark.parametrize("parameter", OPTIONS)
def test_messages_speak_of_options_and_not_of_parameters(parameter):
    option = OPTIONS[parameter]
    for said, expected in (
        (
            f"The '{parameter}' parameter of Any must be 1 or None. Got 0.",
            "{} must be 1. Got 0.",
        ),
        (
            f"{parameter}=41 must be at most n_samples=40.",
            "{} 41 must be at most the 40 rows.",
        ),
        (f"fewer than {parameter}=3.", "fewer than {} 3."),
        (f"take {parameter}='ignore', or less", "take {} ignore, or less"),
        (f"{parameter} must differ", "{} must differ"),
        (
            f"There is no file a/{parameter}.csv",
            "There is no file a/" + parameter + ".csv",
        ),
        (f"x-{parameter}.csv is there", "x-" + parameter + ".csv is there"),
        (f"other_{parameter}_here", "other_" + parameter + "_here"),
    ):
        assert _of_options(said) == expected.format(option)


def test_the_version_is_printed(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert says(capsys) == f"nmfcluster {__version__}\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("share", ["0.5", "20"])
def test_runs_of_some_rows_label_all(share, here, capsys):
    main(["consensus", "points.csv", "--clusters", "3", "--max-samples", share])
    some = float(share) if "." in share else int(share)
    model = NMFConsensus(3, max_samples=some, predict_unseen=True, random_state=0).fit(
        POINTS
    )
    assert (model.partitions_ >= 0).all()
    assert_array_equal(back("points-consensus-memberships.csv"), model.membership_)
    says(capsys)


def test_how_many_takes_a_share_of_rows(here, capsys):
    main(["how-many", "points.csv", "--clusters", "2-4", "--max-samples", "20"])
    assert says(capsys).startswith("3\n")


# --- of long work -----------------------------------------------------------------------------


def test_progress_is_told_on_stderr_now_and_then(here, monkeypatch, capsys):
    log = logging.getLogger("nmfcluster")
    before = log.level, list(log.handlers)
    for pause, n in ((-1, 12), (10**9, 0)):
        monkeypatch.setattr("nmfcluster._cli.main._PAUSE", pause)
        main(["consensus", "points.csv", "--clusters", "3", "--force"])
        printed, lines = told(capsys)
        assert printed.count("\n") == 1
        assert (
            sum(
                bool(re.fullmatch(".* partitions.*: [0-9]+ of 12", line))
                for line in lines
            )
            == n
        )
        assert all(line.startswith("nmfcluster: NMFConsensus: ") for line in lines)
        assert (log.level, log.handlers) == before


def test_an_interruption_is_one_line(here, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("nmfcluster._cli.commands._fit", interrupted)
    with pytest.raises(SystemExit) as left:
        main(["consensus", "points.csv", "--clusters", "2"])
    assert left.value.code == 130
    assert told(capsys) == ("", ["nmfcluster: interrupted"])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_signal_ends_a_long_run(jobs, here):
    np.save("big.npy", np.random.default_rng(0).normal(size=(5000, 20)))
    run = [sys.executable, "-m", "nmfcluster", "consensus", "big.npy", "--jobs", jobs]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(run, **pipes) as process:
        assert process.stderr.readline().startswith("big.npy: 5000 rows")
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        printed, lines = process.communicate(timeout=60)
    assert process.returncode == 130
    assert printed == ""
    assert lines.splitlines()[-1] == "nmfcluster: interrupted"
    assert not [
        line for line in lines.splitlines() if not line.startswith("nmfcluster: ")
    ]
    assert not list(Path().glob("big-*"))


# before this scikit-learn workers did not have the filters of warnings
FILTERS = pytest.mark.skipif(
    sklearn.__version__ < "1.7", reason="workers warn by themselves"
)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", pytest.param("2", marks=FILTERS)])
def test_a_warning_of_every_run_comes_once(jobs, here):
    np.save("same.npy", np.repeat([[1.0, 2], [3, 4]], 20, axis=0))
    run = [
        sys.executable,
        "-m",
        "nmfcluster",
        "consensus",
        "same.npy",
        "--clusters",
        "3",
    ]
    done = subprocess.run([*run, "--jobs", jobs], capture_output=True, text=True)
    assert done.returncode == 0
    lines = [line for line in done.stderr.splitlines() if "NMFConsensus: " not in line]
    assert lines.pop(0) == "same.npy: 40 rows, 2 columns, rows without names"
    assert lines == [
        "nmfcluster: warning: NMFConsensus found 2 clusters, fewer than --clusters 3."
    ]


# --- of names and counts ----------------------------------------------------------------------

TWICE = ["SAME", "a", "SAME", "SAME.1", "SAME", "b", *(f"g{j}" for j in range(34))]
APART = ["SAME", "a", "SAME.1", "SAME.1.1", "SAME.2", "b", *TWICE[6:]]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wide", [True, False])
def test_names_of_features_that_are_there_twice_are_told_apart(wide, here):
    table = pd.DataFrame(COUNTS, columns=TWICE, index=[f"cell{i}" for i in range(30)])
    (table.T if wide else table).to_csv("t.csv")
    said = (
        "repeated column names were changed to SAME.1, SAME.1.1, SAME.2; rename them in "
        "the file if necessary."
    )
    assert warned(
        ["programs", "t.csv", "--clusters", "3", *["--transpose"] * wide]
    ) == [f"t.csv: {said}"]
    assert list(pd.read_csv("t-programs-components.csv"))[1:] == APART
    main(["programs", "counts.npy", "--clusters", "3"])
    same = [
        Path(f"{one}-programs-recurrence.csv").read_text() for one in ("t", "counts")
    ]
    assert same[0] == same[1]


def annotated(X, **layers):
    anndata = pytest.importorskip("anndata")
    anndata.AnnData(X.astype("f4"), layers=layers).write_h5ad("cells.h5ad")


@pytest.mark.slow
def test_a_layer_is_read_where_it_is_asked_for(here, capsys):
    annotated(np.log1p(COUNTS), counts=COUNTS)
    assert (
        warned(["programs", "cells.h5ad", "--layer", "counts", "--clusters", "3"]) == []
    )
    capsys.readouterr()
    main(["programs", "counts.npy", "--clusters", "3"])
    capsys.readouterr()
    for table in ("usages", "components", "top"):
        layer, array = (
            pd.read_csv(f"{one}-programs-{table}.csv") for one in ("cells", "counts")
        )
        assert_array_equal(layer.iloc[:, 1:].to_numpy(), array.iloc[:, 1:].to_numpy())
    line = refused(["programs", "cells.h5ad", "--layer", "raw", "--force"], capsys)
    assert "has no layer 'raw': pass --layer with one of its layers: counts" in line
    annotated(COUNTS)
    line = refused(["programs", "cells.h5ad", "--layer", "raw", "--force"], capsys)
    assert "has no layer 'raw': it has no layers" in line


def scaled(X):
    return (X - X.mean(axis=0)) / (X.std(axis=0) + 1e-9)


def by_depth(X):
    return X / X.sum(axis=1, keepdims=True) * 1e4


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    ["programs --clusters 2 --force", "how-many --counts --clusters 2-3 --force"],
)
@pytest.mark.parametrize("kind", ["csv", "npy", "h5ad"])
def test_what_is_no_table_of_counts_is_told(kind, command, here, capsys):
    few = COUNTS.astype(float)
    few[::7, ::5] += 0.5  # a few that were corrected
    for X, said in ((COUNTS, None), (few, None), (by_depth(COUNTS), "normalised")):
        for table in (X, np.log1p(X)) if said else (X,):
            write(table, kind)
            lines = warned([*command.split(), f"cells.{kind}"])
            chosen = (
                "largest of the candidates|recurrence decides"  # what the choice tells
            )
            lines = [line for line in lines if not re.search(chosen, line)]
            assert len(lines) == (said is not None)
            if said:
                assert re.search(
                    r"[\d,]+ of [\d,]+ positive entries are not whole numbers", lines[0]
                )
                assert f"(largest: {table.max():.3g}). It looks normalised" in lines[0]
                assert cure(kind) in lines[0]
    write(scaled(COUNTS), kind)
    capsys.readouterr()
    line = refused([*command.split(), f"cells.{kind}"], capsys)
    assert re.search(
        r"must hold counts, but \d+ of 1,200 entries are negative, down to -\d", line
    )
    assert cure(kind) in line


def cure(kind):
    if kind == "h5ad":
        return "pass --layer with one of its layers: counts, raw_counts."
    return "pass the original counts."


def write(X, kind):
    if kind == "h5ad":
        annotated(X, counts=COUNTS, raw_counts=COUNTS)
    elif kind == "csv":
        pd.DataFrame(X, index=[f"c{i}" for i in range(30)]).add_prefix("g").to_csv(
            "cells.csv"
        )
    else:
        np.save("cells.npy", X)


@pytest.mark.slow
def test_programs_of_a_table_that_lacks_values_have_markers(here):
    X = COUNTS.astype(float)
    X[3, 4] = np.nan
    np.save("lacks.npy", X)
    for name in ("lacks", "counts"):
        main(["programs", f"{name}.npy", "--clusters", "3"])
    lacking, whole = (
        pd.read_csv(f"{name}-programs-top.csv") for name in ("lacks", "counts")
    )
    for cluster in ("cluster0", "cluster1", "cluster2"):
        some, those = set(lacking[cluster].dropna()), set(whole[cluster].dropna())
        assert 5 * len(some & those) >= 4 * len(some | those)


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
def test_a_table_that_does_not_vary_has_programs_and_a_picture(k, here):
    np.save("same.npy", np.ones((10, 3)))
    assert len(warned(["programs", "same.npy", "--clusters", str(k)])) == k - 1
    assert Path("same-programs-top.csv").exists()
