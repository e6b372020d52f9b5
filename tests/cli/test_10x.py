"""Matrices with names beside them, as 10x Genomics' pipelines write: cells become rows."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from cli.cases import COUNTS
from internals import main, read_file
from numpy.testing import assert_array_equal
from refusals import raises_naming, warns_naming
from scipy.io import mmwrite

pd = pytest.importorskip("pandas")

CELLS = [f"CELL{i}-1" for i in range(30)]
IDS = [f"ENSG{j}" for j in range(40)]
SYMBOLS = ["NA", *(f"gene{j}" for j in range(1, 40))]
KINDS = ["Gene Expression"] * 40


def put(path, text):
    data = text.encode()
    Path(path).write_bytes(gzip.compress(data) if str(path).endswith(".gz") else data)


def lines(*columns, quote=""):
    rows = (
        "\t".join(f"{quote}{entry}{quote}" for entry in row)
        for row in zip(*columns, strict=True)
    )
    return "\n".join(rows) + "\n"


def matrix(X):
    mmwrite("x.mtx", sp.coo_array(X))
    text = Path("x.mtx").read_text()
    Path("x.mtx").unlink()
    return text


LAID_OUT = {  # the files of features and of cells, the columns of the former, and the matrix
    "version 2": ("genes.tsv", "barcodes.tsv", (IDS, SYMBOLS), "matrix.mtx"),
    "version 3": (
        "features.tsv.gz",
        "barcodes.tsv.gz",
        (IDS, SYMBOLS, KINDS),
        "matrix.mtx.gz",
    ),
    "one column": ("genes.tsv", "barcodes.tsv", (SYMBOLS,), "matrix.mtx"),
    "a name of its own": (
        "features.tsv",
        "barcodes.tsv.gz",
        (IDS, SYMBOLS),
        "UniqueAndMult.mtx",
    ),
    "a prefix": (
        "S1_features.tsv.gz",
        "S1_barcodes.tsv.gz",
        (IDS, SYMBOLS),
        "S1_matrix.mtx.gz",
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("quote", ["", '"'])
@pytest.mark.parametrize("titles", [False, True])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("name", LAID_OUT)
def test_names_beside_a_matrix_are_its_names(name, wide, titles, quote, here):
    features, barcodes, columns, file = LAID_OUT[name]
    title = [["title"]] * 3 if titles else [[]] * 3
    put(
        features,
        lines(*(t + c for t, c in zip(title, columns, strict=False)), quote=quote),
    )
    put(barcodes, lines(title[0] + CELLS, quote=quote))
    put(file, matrix(COUNTS.T if wide else COUNTS))
    table = read_file(Path(file))
    assert_array_equal(table.X.toarray(), COUNTS)
    assert (table.rows, table.columns) == (CELLS, SYMBOLS)
    assert (table.rows_from, table.columns_from) == (barcodes, features)


def test_names_of_one_sample_are_not_those_of_another(here):
    for sample, cells in (
        ("A_", CELLS),
        ("B_", CELLS[::-1]),
        ("", [f"other{i}" for i in range(30)]),
    ):
        put(f"{sample}barcodes.tsv", lines(cells))
        put(f"{sample}matrix.mtx", matrix(COUNTS.T))
    assert read_file(Path("A_matrix.mtx")).rows == CELLS
    assert read_file(Path("B_matrix.mtx")).rows == CELLS[::-1]
    assert read_file(Path("matrix.mtx")).rows[0] == "other0"


@pytest.mark.parametrize("X", [COUNTS, COUNTS[:30, :30]])
def test_cells_are_rows_of_a_square_matrix_too_and_by_features_alone(X, here):
    put("features.tsv", lines(SYMBOLS[: X.shape[1]]))
    put("matrix.mtx", matrix(X.T))
    table = read_file(Path("matrix.mtx"))
    assert_array_equal(table.X.toarray(), X)
    assert (table.rows, table.columns) == (None, SYMBOLS[: X.shape[1]])


@pytest.mark.parametrize("beside", ["barcodes.tsv", "genes.tsv.gz"])
def test_names_that_do_not_fit_are_told_and_not_used(beside, here):
    put(beside, lines(CELLS[:-2]))
    put("matrix.mtx", matrix(COUNTS.T))
    with warns_naming(UserWarning, "matrix.mtx", "(40, 30)", beside):
        table = read_file(Path("matrix.mtx"))
    assert_array_equal(table.X.toarray(), COUNTS.T)
    assert table.rows is None
    assert table.columns is None


def test_too_large_a_file_of_names_is_refused(here):
    put("barcodes.tsv.gz", "a\n" * 10**5)
    put("matrix.mtx", matrix(COUNTS.T))
    with raises_naming(ValueError, "--max-gib"):
        read_file(Path("matrix.mtx"), max_bytes=50_000)


@pytest.mark.slow
def test_programs_of_a_matrix_with_names(here, capsys):
    put("features.tsv", lines(IDS, SYMBOLS))
    put("barcodes.tsv", lines(CELLS))
    put("matrix.mtx", matrix(COUNTS.T))
    main(["programs", "matrix.mtx", "--clusters", "3"])
    assert (
        capsys.readouterr().err
        == "matrix.mtx: 30 rows, 40 columns, names from barcodes.tsv\n"
    )
    usages = pd.read_csv("matrix-programs-usages.csv")
    assert list(usages["row"]) == CELLS
    top = pd.read_csv("matrix-programs-top.csv", keep_default_na=False)
    assert set(np.unique(top.iloc[:, 1:])) <= {*SYMBOLS, ""}
    main(
        [
            "programs",
            "matrix.mtx",
            "--clusters",
            "3",
            "--transpose",
            "--output",
            "genes",
        ]
    )
    assert (
        list(pd.read_csv("genes-usages.csv", keep_default_na=False)["row"]) == SYMBOLS
    )
