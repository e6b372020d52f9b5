"""Which files the command line reads, where it writes, and what it refuses."""

import gzip
import re
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from cli.cases import COUNTS, POINTS, assert_of_rows, back, frame, refused, says
from internals import main, read_file
from numpy.testing import assert_array_equal
from scipy.io import mmwrite

from nmfcluster import NMFConsensus, NMFMetaCluster, SimilarityFusionNMF

pd = pytest.importorskip("pandas")


# --- what is read -----------------------------------------------------------------------------


def save_pickled(path):
    np.save(path, np.array([[{}, 1]], dtype=object), allow_pickle=True)


SAVE = {
    "t.npy": lambda path: np.save(path, COUNTS),
    "t.npz": lambda path: np.savez_compressed(path, COUNTS),
    "sparse.npz": lambda path: sp.save_npz(path, sp.coo_matrix(COUNTS)),
    "t.mtx": lambda path: mmwrite(path, sp.csr_array(COUNTS)),
    "dense.mtx": lambda path: mmwrite(path, COUNTS),
    "t.csv": lambda path: pd.DataFrame(COUNTS).to_csv(path),
    "bare.csv": lambda path: np.savetxt(path, COUNTS, delimiter=","),
    "T.TSV": lambda path: pd.DataFrame(COUNTS).to_csv(path, sep="\t"),
    "packed.csv.gz": lambda path: pd.DataFrame(COUNTS).to_csv(path),
}


@pytest.mark.parametrize("name", SAVE)
def test_files_of_all_kinds_hold_the_same_table(name, tmp_path):
    SAVE[name](tmp_path / name)
    X = read_file(tmp_path / name).X
    assert sp.issparse(X) == (name in ("sparse.npz", "t.mtx"))
    assert_array_equal(X.toarray() if sp.issparse(X) else np.asarray(X), COUNTS)


def test_packed_matrices_are_read(tmp_path):
    mmwrite(tmp_path / "t.mtx", sp.csr_array(COUNTS))
    packed = tmp_path / "t.mtx.gz"
    packed.write_bytes(gzip.compress((tmp_path / "t.mtx").read_bytes()))
    assert_array_equal(read_file(packed).X.toarray(), COUNTS)


@pytest.mark.parametrize(
    ("text", "names", "rows", "columns"),
    [
        (",x,y\n07,1,2\nNA,3,4\n", None, ["07", "NA"], ["x", "y"]),  # a blank title
        ("gene,x,y\nTP53,1,2\nNA,3,4\n", None, ["TP53", "NA"], ["x", "y"]),  # text
        ("id,x,y\n07,1,2\n08,3,4\n", "id", ["07", "08"], ["x", "y"]),
        ("x,y,id\n1,2,a\n3,4,a\n", "id", ["a", "a"], ["x", "y"]),
        ("x,y\n1,2\n3,4\n", None, None, ["x", "y"]),
        ("x,y\n1,1,2\n2,3,4\n", None, ["1", "2"], ["x", "y"]),  # as R writes
        ("1,2\n3,4\n", None, None, None),  # numbers alone are no titles
        ("1,2,07\n3,4,08\n", "2", ["07", "08"], ["0", "1"]),
    ],
)
def test_names_of_rows_and_columns(text, names, rows, columns, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    table = read_file(tmp_path / "t.csv", names=names)
    assert_array_equal(table.X.to_numpy(), [[1, 2], [3, 4]])
    assert (table.rows, table.columns) == (rows, columns)


def test_a_column_of_numbers_is_no_name_unless_that_is_said(here):
    pd.DataFrame({"id": range(40, 0, -1), "x": POINTS[:, 0]}).to_csv(
        "t.csv", index=False
    )
    main(["consensus", "t.csv", "--clusters", "2", "--names", "id"])
    labels = NMFConsensus(2, random_state=0).fit_predict(POINTS[:, :1])
    written = back("t-consensus-labels.csv")
    assert list(written.index) == [str(i) for i in range(40, 0, -1)]
    assert_array_equal(written["label"], labels)


def test_transpose_clusters_the_columns(here):
    frame(POINTS).T.to_csv("wide.csv")
    main(
        ["consensus", "wide.csv", "--transpose", "--clusters", "3", "--output", "wide"]
    )
    main(["consensus", "points.csv", "--clusters", "3", "--output", "long"])
    for table in ("labels", "memberships"):
        assert (
            Path(f"wide-{table}.csv").read_text()
            == Path(f"long-{table}.csv").read_text()
        )


@pytest.mark.slow
@pytest.mark.parametrize("kind", [sp.csr_matrix, np.asarray])
def test_names_of_annotated_data(kind, here):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(
        kind(COUNTS),
        obs=pd.DataFrame(index=[f"cell{i}" for i in range(30)]),
        var=pd.DataFrame(index=[f"gene{j}" for j in range(40)]),
    )
    adata.write_h5ad("cells.h5ad")
    assert sp.issparse(read_file(Path("cells.h5ad")).X) == (kind is sp.csr_matrix)
    check_annotated("cells.h5ad", kind(COUNTS))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [sp.csr_matrix, np.asarray])
def test_annotated_data_as_its_library_hands_them_over(kind, here, monkeypatch):
    table = pd.DataFrame(COUNTS).rename(index="cell{}".format, columns="gene{}".format)
    adata = SimpleNamespace(
        X=kind(COUNTS), obs_names=table.index, var_names=table.columns, layers={}
    )
    adata.to_df = lambda layer: table
    monkeypatch.setitem(
        sys.modules, "anndata", SimpleNamespace(read_h5ad=lambda path: adata)
    )
    held = nullcontext({})
    monkeypatch.setitem(sys.modules, "h5py", SimpleNamespace(File=lambda path: held))
    Path("cells.h5ad").touch()
    check_annotated("cells.h5ad", kind(COUNTS))


def check_annotated(name, X):
    main(["programs", name, "--clusters", "3", "--output", "out/"])
    model = NMFMetaCluster(3, loss="kullback-leibler", random_state=0).fit(X)
    components, usages = (
        back(f"out/cells-programs-{table}.csv") for table in ("components", "usages")
    )
    assert list(components) == [f"gene{j}" for j in range(40)]
    assert list(usages.index) == [f"cell{i}" for i in range(30)]
    assert_array_equal(usages, model.factor_)
    cells = pd.DataFrame(COUNTS, index=usages.index)
    cells[::-1].to_csv("other.csv")
    main(["fuse", name, "other.csv", "--clusters", "3", "--output", "out/"])
    labels = SimilarityFusionNMF(3, random_state=0).fit_predict(
        {"a": cells, "b": cells[::-1]}
    )
    rows = list(usages.index)
    assert_of_rows("out/cells-fuse-labels.csv", ["label"], labels[:, None], rows)


# --- where it is written ----------------------------------------------------------------------


@pytest.mark.slow
def test_nothing_is_overwritten_without_being_asked(here, capsys):
    run = ["consensus", "points.csv", "--clusters", "2", "--output", "new/folder/"]
    main(run)
    labels = here / "new" / "folder" / "points-consensus-labels.csv"
    before = labels.read_text()
    capsys.readouterr()
    assert "would be overwritten: pass --force to allow it." in refused(
        [*run, "--clusters", "3"], capsys
    )
    assert labels.read_text() == before
    main([*run, "--clusters", "3", "--force"])
    assert labels.read_text() != before
    assert set(back(labels)["label"]) == {0, 1, 2}


def test_what_is_refused_leaves_no_folder(here, capsys):
    refused(["consensus", "points.csv", "--clusters", "99", "--output", "new/"], capsys)
    assert not (here / "new").exists()


def test_without_matplotlib_the_tables_are_written(here, monkeypatch, capsys):
    monkeypatch.setattr("nmfcluster._cli.commands.find_spec", lambda name: None)
    main(["consensus", "points.csv", "--clusters", "2"])
    line = says(capsys)
    assert line.endswith(
        'no picture without matplotlib: pip install "nmfcluster[plot]"\n'
    )
    assert (here / "points-consensus-labels.csv").exists()
    assert not (here / "points-consensus.png").exists()


def test_what_is_no_file_is_found_before_the_work(here, monkeypatch, capsys):
    # the first thing of a run
    monkeypatch.setattr("nmfcluster._cli.commands.read_file", None)
    Path("nowhere").symlink_to("missing/folder")
    Path("a.png").symlink_to("missing/picture.png")
    Path("b.png").mkdir()
    Path("c-labels.csv").mkdir()
    Path("d-memberships.csv").symlink_to("d-memberships.csv")  # round and round
    for name, place in (("a.png", "a"), ("b.png", "b"), ("c-l", "c"), ("d-m", "d")):
        run = ["cluster", "points.csv", "--clusters", "2", "--output", place, "--force"]
        assert re.search(
            f"{name}.* cannot be written to: pass another", refused(run, capsys)
        )
    run = ["cluster", "points.csv", "--clusters", "2", "--output", "nowhere/out"]
    assert "folder, not in nowhere" in refused(run, capsys)


def test_no_spreadsheet_runs_what_is_written(here):
    names = ["=1+1", "+a", "-b", "@c", "\t=d", " +e", "-5", "+1e3", "a=b", "b"]
    table = pd.DataFrame(COUNTS[:, :10], columns=names).set_axis(
        [*names, *"cdefghijklmnopqrstuv"]
    )
    table.to_csv("=x.csv")
    main(["programs", "=x.csv", "--clusters", "2", "--output", "out"])
    safe = [*(f"'{name}" for name in names[:6]), *names[6:]]
    assert list(pd.read_csv("out-labels.csv", dtype=str)["row"][:10]) == safe
    assert list(pd.read_csv("out-components.csv"))[1:] == safe


# --- what is refused --------------------------------------------------------------------------


BAD = {
    "text.csv": "x,y\n1,\n2,3\n2,a\n",
    "nan.csv": "x,y\n1,\n2,3\n",
    "names.csv": "id,x,y\na,1,2\nb,3,NA\n",
    "ragged.csv": "x,y\n1,2\n3,4,5\n",
    "empty.csv": "",
    "titles.csv": "x,y\n",
    "negative.csv": "x,y\n-1,2\n3,4\n",
    "twice.csv": "id,x\na,1\na,2\n",
    "few.csv": "x,y\n1,2\n3,4\n5,6\n",
    "junk.npy": "junk junk junk",
    "junk.npz": "junk",
    "junk.mtx": "junk",
    "table.xlsx": "junk",
    "stranger.csv": "a,b,kind\n00,99,must\n",
    "kind.csv": "a,b,kind\n00,01,maybe\n",
    "columns.csv": "a,b\n00,01\n",
    "semicolons.csv": "a;b;kinds\n00;01;must\n",
    "weights.csv": "a,b,kind,weight\n00,01,must,\n",
    "against.csv": "a,b,kind\n00,01,must\n00,01,cannot\n",
}


FAULTS = [
    ("consensus none.csv", "There is no file none.csv"),
    ("consensus .", "There is no file ."),
    (
        "consensus table.xlsx",
        "must end in one of .csv, .tsv, .txt, .npy, .npz, .mtx, .h5ad",
    ),
    ("consensus text.csv", "its column 'y' has 'a'"),
    (
        "consensus nan.csv --clusters 2",
        "nan.csv must not have missing values.* column 'y' has one in row 0",
    ),
    ("cluster names.csv", "column 'y' has one in row 'b': drop the row or the column"),
    (
        "how-many nan.npy",
        "nan.npy must not have missing values, but column 1 has one in row 2",
    ),
    ("consensus ragged.csv", "ragged.csv cannot be read: Expected 2 fields in line 3"),
    ("consensus empty.csv", "empty.csv cannot be read: "),
    ("consensus titles.csv", "must hold a table of rows and columns"),
    ("consensus junk.npy", "junk.npy cannot be read: the magic string"),
    ("consensus junk.npz", "junk.npz cannot be read: File is not a zip file"),
    ("consensus junk.mtx", "junk.mtx cannot be read: "),
    ("consensus two.npz", "two.npz cannot be read: it must hold one array, got a, b"),
    ("consensus vector.npy", "must hold a table of rows and columns"),
    ("consensus pickled.npy", "Object arrays cannot be loaded"),
    (
        "consensus points.csv --names z",
        "--names must be one of Unnamed: 0, x0, x1; got 'z'",
    ),
    (
        "consensus points.csv --clusters 41",
        "error: --clusters 41 must be at most the 40 rows",
    ),
    (
        "consensus points.csv --clusters 0",
        "error: --clusters must be an int .* Got 0 instead",
    ),
    (
        "how-many points.csv --clusters 1-99",
        "error: --clusters must be at most the 40 rows, got 99",
    ),
    (
        "cluster points.csv --clusters 2 --jobs 0",
        r"error: --jobs must be .*, -1\]. Got 0 instead",
    ),
    (
        "fuse points.csv short.csv --clusters 2 --random-state -1",
        r"error: --random-state must be an int in the range \[0, 4294967295\]. Got -1 instead",
    ),
    (
        "consensus points.csv --clusters 2 --max-samples 41",
        "--max-samples must be at most 40",
    ),
    (
        "consensus points.csv --clusters 2 --max-samples 1.5",
        r"--max-samples must .*\(0.0, 1.0\]",
    ),
    (
        "consensus points.csv --max-samples half",
        "argument --max-samples: must be .*'half'",
    ),
    ("how-many points.csv --max-samples 9 --partitions", "not allowed with argument"),
    (
        "programs points.csv --layer counts",
        "--layer is only for .h5ad files, not for points.csv",
    ),
    ("consensus candidates.csv", "There is no file candidates.csv"),
    ("consensus points.csv --clusters two", "--clusters.*: must be a number such as 5"),
    (
        "consensus points.csv --clusters 5-2",
        "--clusters must hold a number of clusters",
    ),
    ("consensus points.csv few.csv", "unrecognized arguments: few.csv"),
    ("consensus few.csv", "a minimum of 6 is required by the vote"),
    ("consensus points.csv --clusters 2 --output few.csv/out", "not in few.csv"),
    (
        "cluster points.csv --constraints none.csv --clusters 2",
        "No such file.*none.csv",
    ),
    (
        "cluster points.csv --constraints stranger.csv --clusters 2",
        "stranger.csv: .*'99'",
    ),
    (
        "cluster points.csv --constraints kind.csv",
        "must be must or cannot, .* got 'maybe'",
    ),
    ("cluster points.csv --constraints columns.csv", "columns must be a, b and kind"),
    (
        "cluster points.csv --constraints semicolons.csv",
        "a, b and kind, got a, b, kinds",
    ),
    (
        "cluster points.csv --constraints weights.csv --clusters 2",
        "weights.csv: .*got ''",
    ),
    (
        "cluster points.csv --constraints against.csv --clusters 2",
        "samples 00 and 01 cannot be .* them: 00 - 01. .* pass --contradictions ignore",
    ),
    (
        "cluster points.csv --contradictions fix --clusters 2",
        "error: --contradictions must be a str among",
    ),
    (
        "fuse ids.csv shuffled.csv --clusters 2",
        "same numbers in their first .* --names TITLE",
    ),
    (
        "fuse ids.csv part.csv --clusters 2",
        "same numbers in their first .* --names TITLE",
    ),
    ("fuse points.csv few.csv --clusters 2", "view 'few' of views has 3 rows"),
    ("fuse points.csv twice.csv --names id", "--names must be one of"),
    (
        "programs negative.csv --clusters 2",
        "but 1 of 4 entries are negative, down to -1; pass",
    ),
    (
        "how-many points.csv --clusters 3",
        "--clusters must be a range such as 1-15, got 3",
    ),
    ("how-many points.csv --counts --partitions", "not allowed with argument --counts"),
    ("count points.csv", "invalid choice: 'count'"),
]


def test_faults_of_users_are_one_line(here, capsys):
    for name, text in BAD.items():
        Path(name).write_text(text)
    np.savez("two.npz", a=POINTS, b=POINTS)
    np.save("vector.npy", POINTS[:, 0])
    save_pickled("pickled.npy")
    frame(POINTS)[:20].to_csv("short.csv")
    ids = pd.DataFrame({"id": range(140, 100, -1), "x": POINTS[:, 0]})
    ids.to_csv("ids.csv", index=False)
    ids[::-1].to_csv("shuffled.csv", index=False)
    ids[1:].to_csv("part.csv", index=False)
    np.save("nan.npy", np.where(np.arange(6.0).reshape(3, 2) == 5, np.nan, 1))
    before = set(here.iterdir())
    for command, message in FAULTS:
        assert re.search(message, refused(command.split(), capsys)), command
        assert set(here.iterdir()) == before


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 1. TiB"),
        RuntimeError("cannot schedule"),
        OverflowError("too large"),
        ZeroDivisionError("by zero"),
        RecursionError("too deep\nby far"),
        ValueError("\n"),
    ],
)
def test_faults_in_the_work_are_one_line(error, here, monkeypatch, capsys):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("nmfcluster._cli.commands._fit", fail)
    line = refused(["consensus", "points.csv", "--clusters", "2"], capsys)
    told = str(error).strip() or type(error).__name__
    assert told.splitlines()[0] in line


@pytest.mark.parametrize(
    ("module", "name", "cure"),
    [
        ("pandas", "points.csv", '"nmfcluster[cli]"'),
        ("anndata", "cells.h5ad", "anndata"),
    ],
)
def test_a_missing_library_is_named(module, name, cure, here, monkeypatch, capsys):
    Path("cells.h5ad").touch()
    monkeypatch.setitem(sys.modules, module, None)
    line = refused(["consensus", name, "--clusters", "2"], capsys)
    assert line.endswith(f"needs {module}: pip install {cure}.")
