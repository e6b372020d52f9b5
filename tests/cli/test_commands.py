"""The command line, from files to files: what each command finds."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cli.cases import CLASSES, COUNTS, NAMES, POINTS, assert_of_rows, back, frame, says
from internals import main, read_pairs
from numpy.testing import assert_array_equal

from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SSNMFClusterer,
)
from nmfcluster._cli.main import COMMANDS
from nmfcluster.model_selection import choose_n_clusters

pd = pytest.importorskip("pandas")

PAGE = Path(__file__).parents[2] / "docs" / "user_guide" / "command_line.md"
PNG = b"\x89PNG\r\n\x1a\n"


def clusters(k):
    return [f"cluster{c}" for c in range(k)]


def assert_picture(path):
    pytest.importorskip("matplotlib")
    assert path.read_bytes().startswith(PNG)


# --- what each command finds ------------------------------------------------------------------


def test_consensus_of_features(here, capsys):
    main(["consensus", "points.csv", "--clusters", "3"])
    model = NMFConsensus(3, random_state=0).fit(POINTS)
    found = np.column_stack([model.labels_, model.confidence_])
    assert_of_rows("points-consensus-labels.csv", ["label", "confidence"], found)
    assert_of_rows("points-consensus-memberships.csv", clusters(3), model.membership_)
    assert_picture(here / "points-consensus.png")
    sizes = ", ".join(map(str, np.bincount(model.labels_)))
    assert says(capsys).startswith(
        f"points.csv: 3 clusters of {sizes} rows; wrote points-consensus-labels.csv, "
    )


@pytest.mark.slow
def test_the_number_of_clusters_is_chosen_where_it_is_not_given(here, capsys):
    main(["consensus", "points.csv"])
    chosen = choose_n_clusters(NMFConsensus(2, random_state=0), POINTS, random_state=0)
    assert_array_equal(
        back("points-consensus-labels.csv")["label"], chosen.best_estimator_.labels_
    )
    told = str(chosen).removeprefix("NumberOfClusters")
    assert f"{chosen.n_clusters_} clusters of" in (line := says(capsys))
    assert f"(choose_n_clusters: {told[1:]}" in line
    assert line.count("\n") == 1


def test_consensus_of_partitions_that_are_given(here):
    table = [["a", "x", 0], ["a", "y", 0], ["a", None, 0], ["b", "y", 1], ["b", "y", 1]]
    table = pd.DataFrame(table, columns=["one", "two", "three"])
    table.to_csv("labels.csv", index=False)
    main(
        [
            "consensus",
            "labels.csv",
            "--partitions",
            "--clusters",
            "2",
            "--output",
            "out",
        ]
    )
    model = NMFConsensus(2, affinity="partitions", random_state=0).fit(table)
    found = np.column_stack([model.labels_, model.confidence_])
    assert_of_rows("out-labels.csv", ["label", "confidence"], found, list("01234"))
    assert_array_equal(back("out-memberships.csv"), model.membership_)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("named", [True, False])
def test_cluster_under_constraints(here, named):
    known = PairwiseConstraints.from_labels(CLASSES, n_pairs=30, random_state=0)
    ids = NAMES if named else list(range(40))
    frame(POINTS).to_csv("points.csv", index=named)
    pairs = [(ids[a], ids[b], "must", 1) for a, b in known.must_link]
    pairs += [(ids[a], ids[b], "cannot", 2) for a, b in known.cannot_link]
    pd.DataFrame(pairs, columns=["a", "b", "kind", "weight"]).to_csv(
        "pairs.csv", index=False
    )
    main(["cluster", "points.csv", "--constraints", "pairs.csv", "--clusters", "3"])
    weighed = np.column_stack([known.cannot_link, np.full(len(known.cannot_link), 2)])
    model = SSNMFClusterer(3, random_state=0)
    model.fit(POINTS, must_link=known.must_link, cannot_link=weighed)
    rows = NAMES if named else [str(i) for i in ids]
    assert_of_rows("points-cluster-labels.csv", ["label"], model.labels_[:, None], rows)
    assert_of_rows(
        "points-cluster-memberships.csv", clusters(3), model.membership_, rows
    )
    assert_picture(here / "points-cluster.png")


def test_cluster_without_constraints(here):
    main(
        [
            "cluster",
            "points.csv",
            "--clusters",
            "2",
            "--random-state",
            "3",
            "--jobs",
            "2",
        ]
    )
    labels = SSNMFClusterer(2, random_state=3).fit(POINTS).labels_
    assert_array_equal(back("points-cluster-labels.csv")["label"], labels)
    assert_picture(here / "points-cluster.png")


@pytest.mark.slow
def test_constraints_count_where_the_number_is_chosen(here, capsys):
    pairs = PairwiseConstraints.from_labels(CLASSES, n_pairs=60, random_state=0)
    linked = [(NAMES[a], NAMES[b], "must") for a, b in pairs.must_link]
    pd.DataFrame(linked, columns=["a", "b", "kind"]).to_csv("pairs.csv", index=False)
    options = ["--clusters", "2-4", "--random-state", "1"]
    main(["cluster", "points.csv", "--constraints", "pairs.csv", *options])
    assert (
        "(choose_n_clusters: 3 of 2 to 4, by stability, which cannot choose 1)"
        in says(capsys)
    )
    assert back("points-cluster-labels.csv")["label"].nunique() == 3


@pytest.mark.slow
def test_what_pairs_are_called_and_how_many_are_satisfied(here, capsys):
    must, cannot = (
        ("must", "1", "ML", "must-link", " Must_Link"),
        ("cannot", "-1", "cl", "-1.0"),
    )
    own, others = np.flatnonzero(CLASSES == 0), np.flatnonzero(CLASSES == 1)
    lines = [
        (NAMES[own[0]], NAMES[b], kind) for b, kind in zip(own[1:], must, strict=False)
    ]
    lines += [
        (NAMES[own[0]], NAMES[b], kind) for b, kind in zip(others, cannot, strict=False)
    ]
    wrong = (NAMES[own[5]], NAMES[own[1]], "cannot")
    for ending, separator in (("csv", ","), ("tsv", "\t"), ("TSV.gz", "\t")):
        pairs = pd.DataFrame([*lines, wrong], columns=["a", "b", "kind"])
        how = {"compression": "gzip" if ending.endswith("gz") else None}
        pairs.to_csv(f"pairs.{ending}", sep=separator, index=False, **how)
        run = [
            "cluster",
            "points.csv",
            "--clusters",
            "3",
            "--constraints",
            f"pairs.{ending}",
        ]
        main([*run, "--contradictions", "ignore", "--output", ending])
        assert "rows; 9 of 10 pairs satisfied; wrote" in says(capsys)


def test_pairs_are_read_from_lines_that_names_begin(here):
    Path("pairs.csv").write_text("a,b,kind\n1,00,01,must\n")
    pairs = read_pairs("pairs.csv", 2**30, NAMES)
    assert_array_equal(pairs.must_link, [[0, 1]])


def test_fuse_matches_rows_by_names(here):
    left, right = (
        frame(POINTS).iloc[:35],
        frame(POINTS[:, ::-1] ** 2).iloc[::-1].iloc[:36],
    )
    left.to_csv("left.csv")
    right.to_csv("right.tsv.gz", sep="\t")
    main(["fuse", "left.csv", "right.tsv.gz", "--clusters", "3"])
    model = SimilarityFusionNMF(3, random_state=0).fit({"left": left, "right": right})
    rows = list(model.sample_names_)
    assert sorted(rows) == sorted(NAMES)
    assert_of_rows("left-fuse-labels.csv", ["label"], model.labels_[:, None], rows)
    assert_of_rows("left-fuse-memberships.csv", clusters(3), model.membership_, rows)
    weights = np.column_stack([model.weights_, model.source_losses_])
    assert_of_rows(
        "left-fuse-weights.csv", ["weight", "loss"], weights, ["left", "right"]
    )
    assert_picture(here / "left-fuse.png")


def test_fuse_tells_files_of_one_name_apart(here):
    for folder in ("a", "b"):
        Path(folder).mkdir()
        np.save(f"{folder}/view.npy", POINTS)
    main(["fuse", "a/view.npy", "b/view.npy", "--clusters", "3"])
    assert list(back("view-fuse-weights.csv").index) == ["a/view.npy", "b/view.npy"]


def test_programs(here):
    main(["programs", "counts.npy", "--clusters", "3"])
    model = NMFMetaCluster(3, loss="kullback-leibler", random_state=0).fit(COUNTS)
    rows, numbers = [str(i) for i in range(30)], ["0", "1", "2"]
    found = np.column_stack([model.labels_, model.confidence_])
    assert_of_rows("counts-programs-labels.csv", ["label", "confidence"], found, rows)
    assert_of_rows(
        "counts-programs-memberships.csv", clusters(3), model.membership_, rows
    )
    assert_of_rows("counts-programs-usages.csv", clusters(3), model.factor_, rows)
    titles = [str(j) for j in range(40)]
    assert_of_rows("counts-programs-components.csv", titles, model.components_, numbers)
    best, scores = model.top_features(20, model.feature_scores(COUNTS))
    best = np.where(scores > 0, best, np.nan)  # what rises with a program, and no more
    assert np.isnan(best).any()
    assert_of_rows(
        "counts-programs-top.csv", clusters(3), best.T, [str(i + 1) for i in range(20)]
    )
    recurrence = model.recurrence_[:, None]
    assert_of_rows(
        "counts-programs-recurrence.csv", ["recurrence"], recurrence, numbers
    )
    assert_picture(here / "counts-programs.png")


def assert_chosen(here, capsys, stem, chosen):
    table = pd.read_csv(f"{stem}-how-many-candidates.csv")
    pd.testing.assert_frame_equal(table, pd.DataFrame(chosen.table))
    assert says(capsys).splitlines()[0] == str(chosen.n_clusters_)
    assert_picture(here / f"{stem}-how-many.png")


@pytest.mark.slow
def test_how_many(here, capsys):
    main(["how-many", "points.csv", "--clusters", "1-8"])
    model = NMFConsensus(2, random_state=0)
    chosen = choose_n_clusters(model, POINTS, range(1, 9), random_state=0)
    assert_chosen(here, capsys, "points", chosen)


@pytest.mark.slow
def test_how_many_programs(here, capsys):
    main(["how-many", "counts.npy", "--counts", "--clusters", "2-4"])
    model = NMFMetaCluster(2, loss="kullback-leibler", random_state=0)
    chosen = choose_n_clusters(model, COUNTS, range(2, 5), random_state=0)
    assert_chosen(here, capsys, "counts", chosen)


# --- as a command -----------------------------------------------------------------------------


@pytest.mark.slow
def test_as_a_module(here):
    np.save("labels.npy", np.repeat([[0, 1], [2, 0]], 8, axis=0))
    run = [sys.executable, "-m", "nmfcluster", "consensus", "labels.npy"]
    options = ["--partitions", "--clusters", "3", "--output", "out"]
    done = subprocess.run([*run, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "labels.npy: 2 clusters of 8, 8 rows; wrote out-labels.csv, "
    )
    # a warning is one line, and names no file of the library
    lines = [
        line for line in done.stderr.splitlines() if ": NMFConsensus: " not in line
    ]
    assert lines == [
        "labels.npy: 16 rows, 2 columns, rows without names",
        "nmfcluster: warning: NMFConsensus found 2 clusters, fewer than --clusters 3.",
    ]
    assert_array_equal(back("out-labels.csv")["label"], np.repeat([0, 1], 8))


@pytest.mark.parametrize("command", [*COMMANDS, "demo", None])
def test_help_of_every_command(command, capsys):
    with pytest.raises(SystemExit) as left:
        main(["--help"] if command is None else [command, "--help"])
    assert left.value.code == 0
    printed = says(capsys)
    assert printed.startswith(
        f"usage: nmfcluster {command or '[-h] [--version] COMMAND'}"
    )
    assert command in (None, "demo") or "--no-titles" in printed


def test_without_a_command_help_is_printed(capsys):
    main([])
    printed = says(capsys)
    assert all(
        name in printed for name in ("consensus", "cluster", "fuse", "programs", "demo")
    )


@pytest.mark.slow
@pytest.mark.skipif(not PAGE.exists(), reason="the documentation is not here")
def test_commands_on_the_page_do_what_it_says(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text("utf-8")
    (pairs,) = re.findall(
        r"^```text\n(a,b,kind\n.*?)^```$", page, re.MULTILINE | re.DOTALL
    )
    Path("pairs.csv").write_text(pairs)
    blocks = r"^```bash\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?"
    found = re.findall(blocks, page, re.MULTILINE | re.DOTALL)
    assert len(found) >= 5
    for commands, shown in found:
        for line in commands.replace("\\\n", "").splitlines():
            program, *arguments = shlex.split(line)
            assert program in ("python", "nmfcluster")
            exec(arguments[1], {}) if program == "python" else main(arguments)
        printed = capsys.readouterr().out
        if shown:
            assert printed.split() == shown.split()
