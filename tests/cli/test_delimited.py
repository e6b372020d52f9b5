"""Tables as text, clean or not: they are read as they are meant, or refused by file and column."""

import csv
import gzip
import re
import warnings

import numpy as np
import pytest
from internals import read_file
from numpy.testing import assert_array_equal
from refusals import assert_in_our_words, raises_naming, warns_naming

pd = pytest.importorskip("pandas")

XY, AB = ["x", "y"], ["a", "b"]
READ = {
    "separators at all ends": ("x,y,\n1,2,\n3,4,\n", None, XY),
    "but for the titles": ("x,y\n1,2,\n3,4,\n", None, XY),
    "after names": ("gene,x,y,\na,1,2,\nb,3,4,\n", AB, XY),
    "after names, but for titles": ("gene,x,y\na,1,2,\nb,3,4,\n", AB, XY),
    "after names without a title": (",x,y,\na,1,2,\nb,3,4,\n", AB, XY),
    "at some ends": ("x,y\n1,2,\n3,4\n", None, XY),
    "after numbers alone": ("1,2,\n3,4,\n", None, None),
    "two of them": ("x,y\n1,2,,\n3,4,,\n", None, XY),
    "as R writes": ("x,y\na,1,2\nb,3,4\n", AB, XY),
    "as R writes, and separators": ("x,y,\na,1,2,\nb,3,4,\n", AB, XY),
    "a mark of the byte order": ("\ufeffx,y\n1,2\n3,4\n", None, XY),
    "a mark before names": ("\ufeffgene,x,y\na,1,2\nb,3,4\n", AB, XY),
    "a mark before numbers": ("\ufeff1,2\n3,4\n", None, None),
    "quotes": ('"gene","x","y"\n"a, ""b""","1","2"\nc,3,4\n', ['a, "b"', "c"], XY),
    "a name of two lines": ('gene,x,y\n"a\nb",1,2\nc,3,4\n', ["a\nb", "c"], XY),
    "blank lines": ("\nx,y\n\n1,2\n  \n3,4\n\n", None, XY),
    "lines of Windows": ("x,y\r\n1,2\r\n3,4\r\n", None, XY),
    "lines of old Macs": ("x,y\r1,2\r3,4\r", None, XY),
    "titles that are years": (",2019,2020\na,1,2\nb,3,4\n", AB, ["2019", "2020"]),
    "a title twice": ("x,x\n1,2\n3,4\n", None, ["x", "x"]),
    "a title that is NA": ("NA,y\n1,2\n3,4\n", None, ["NA", "y"]),
    "a title that is blank": (",,y\na,1,2\nb,3,4\n", AB, ["Unnamed: 1", "y"]),
    "numbers with exponents": ("x,y\n1e0,.2E1\n+3,4.\n", None, XY),
    "names with commas": ('gene,x,y\n"1,2-a",1,2\nb,3,4\n', ["1,2-a", "b"], XY),
    "names with underscores": ("gene,x,y\n1_1,1,2\n1_2,3,4\n", ["1_1", "1_2"], XY),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", READ)
def test_tables_are_read_as_they_are_meant(name, tmp_path):
    text, rows, columns = READ[name]
    tabs = re.sub(",(?! |2-)", "\t", text)
    for ending, written in (
        (".csv", text),
        (".tsv.gz", tabs),
        (".txt", tabs),
        (".txt.gz", text),
    ):
        path = tmp_path / f"t{ending}"
        packed = ending.endswith("gz")
        path.write_bytes(
            gzip.compress(written.encode()) if packed else written.encode()
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            table = read_file(path)
        assert_array_equal(np.asarray(table.X, dtype=float), [[1, 2], [3, 4]])
        assert (table.rows, table.columns) == (rows, columns)


SEPARATED = {  # by what, and how this is written beside titles of columns alone
    "tabs": ("\t", {}),
    "semicolons": (";", {}),
    "commas": (",", {}),
    "spaces": (" ", {}),
    "quotes": (" ", {"quoting": csv.QUOTE_ALL}),
    "quotes of text": ("\t", {"quoting": csv.QUOTE_NONNUMERIC}),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("named", ["blank", "titled", "as R writes", "not"])
@pytest.mark.parametrize("ending", [".txt", ".csv", ".tsv", ".txt.gz", ".TXT"])
@pytest.mark.parametrize("how", SEPARATED)
def test_what_separates_entries_is_found(how, ending, named, tmp_path):
    separator, more = SEPARATED[how]
    names = ["a 'b' c", "d e", "07-x"]
    frame = pd.DataFrame([[1.5, 2.5], [3, -4e-3], [5, 6]], columns=["p q", "r"])
    if named != "not":
        frame = frame.set_axis(names).rename_axis(
            "gene id" if named == "titled" else None
        )
    text = frame.to_csv(sep=separator, index=named != "not", **more)
    if named == "as R writes":
        text = text.removeprefix('""').removeprefix(separator)
    path = tmp_path / f"t{ending}"
    path.write_bytes(
        gzip.compress(text.encode()) if ending.endswith("gz") else text.encode()
    )
    table = read_file(path)
    assert_array_equal(table.X.to_numpy(), frame.to_numpy())
    assert table.columns == ["p q", "r"]
    assert table.rows == (None if named == "not" else names)
    assert table.title == ("gene id" if named == "titled" else None)


def test_numbers_aligned_by_spaces_are_read(tmp_path):
    path = tmp_path / "t.txt"
    np.savetxt(path, [[1.5, 20.5], [300, 4]], fmt="%8.1f")
    assert_array_equal(read_file(path).X, [[1.5, 20.5], [300, 4]])


def test_entries_that_are_missing_are_so(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y,z\n1,NA,\n2,,\n3\n")
    X = read_file(path).X
    assert_array_equal(X, [[k, np.nan, np.nan] for k in (1, 2, 3)])


REFUSED = {
    "semicolons and decimal commas": (
        "x;y\n1,5;2,5\n3,5;4,5\n",
        "'x' has '1,5': write decimal points",
    ),
    "these without titles": ("1,5;2,5\n3,5;4,5\n", "column '5;2' has '5;4': write"),
    "tabs and decimal commas": (
        "x\ty\n1,5\t2,5\n",
        "'x' has '1,5': write decimal points",
    ),
    "spaces and decimal commas": (
        "x y\n1,5 2,5\n3 4\n",
        "'x' has '1,5': write decimal points",
    ),
    "what Excel says of separators": ("sep=;\nx;y\n1;2\n", "column 'sep=' has 'x'"),
    "decimal commas": (
        'x,y\n"1,5",2\n"3,5",4\n',
        "column 'x' has '1,5': write decimal points",
    ),
    "text among numbers": ("x,y\n1,2\n?,4\n", "its column 'x' has '?': write"),
    "text by spaces": ("kind of cell\nT cell\nB cell\n", "must hold a table"),
    "a line of units": ("x,y\n1,kg\n3,4\n", "its column 'y' has 'kg'"),
    "text in the middle": (
        "id,kind,x\na,red,1\nb,blue,2\n",
        "its column 'kind' has 'red'",
    ),
    "a name twice": ("gene,x\na,1\na,2\n", "its column 'gene' has 'a'"),
    "titles twice": ("x,y\n1,2\nx,y\n", "its column 'x' has 'x'"),
    "a line that is long": ("x,y\n1,2\n3,4,5\n", "Expected 2 fields in line 3, saw 3"),
    "two titles too few": (
        "x,y\na,q,1,2\nb,q,3,4\n",
        "first line, the titles, must",
    ),
    "a comment": ("# by me\nx,y\n1,2\n", "first line, the titles, must"),
    "nothing": ("\n\n", "it is empty"),
    "another encoding": ("\xe9,x\n1,2\n".encode("latin-1"), "it must be text in UTF-8"),
    "yet another": ("x,y\n1,2\n".encode("utf-16"), "it must be text in UTF-8"),
}


def test_what_cannot_be_read_for_sure_is_refused(tmp_path):
    path = tmp_path / "t.csv"
    for text, says in REFUSED.values():
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        with raises_naming(ValueError, "t.csv", says) as caught:
            read_file(path)
        assert_in_our_words(caught)


TITLES = {  # what may be the first row, and what the warning names
    "names and numbers": ("a,1,2\nb,3,4\nc,3,5\n", "(1, 2)"),
    "nothing but what is missing": ("NA,NA,NA\n1,2,3\n4,5,6\n", "(NA, NA, NA)"),
    "a value that is missing": ("NA,.5,1\n1,2,3\n4,2,3\n", "(NA, .5, 1)"),
    "a value below what is seen": ("<1,2,3\n1,2,3\n1,5,6\n", "(<1, 2, 3)"),
    "labels": ("a,x,u\nb,x,v\nc,y,v\n", "(x, u)"),
}


@pytest.mark.parametrize("name", TITLES)
def test_doubtful_titles_are_told_and_can_be_rows(name, tmp_path):
    text, told = TITLES[name]
    path = tmp_path / "t.csv"
    path.write_text(text)
    with warns_naming(UserWarning, told, "--no-titles"):
        table = read_file(path, may_hold_text=True)
    assert len(table.X) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_file(path, may_hold_text=True, has_titles=False)
    assert len(table.X) == 3
    assert table.rows == (["a", "b", "c"] if text[0] == "a" else None)
    last = text.partition("\n")[0].rpartition(",")[2]
    assert str(table.X.iloc[0, -1]) in (last, f"{last}.0", last.replace("NA", "nan"))


IDS = {  # and what the first column is called
    "a title": ("id,x\n7,.5\n3,.5\n", "'id'"),
    "a title of two words": ("my id,x\n7,.5\n3,.5\n", "'my id'"),
    "no titles": ("70,.5\n30,.5\n", "'0'"),
    "floats": ("id,x\n7.0,.5\n3.0,.5\n", "'id'"),
    "beside text": ("id,x\n7,u\n3,u\n", "'id'"),
    "none: twice": ("x,y\n7,.5\n7,.25\n", None),
    "none: fractions": ("x,y\n7.5,.5\n7,.25\n", None),
    "none: negative": ("x,y\n-7,.5\n7,.25\n", None),
    "none: a name before": ("g,x,y\na,1,.5\nb,2,.25\n", None),
    "none: a table of such": ("x,y\n1,2\n3,4\n", None),
    "none: one is missing": ("x,y\n1,.5\n,.25\n", None),
}


@pytest.mark.parametrize("name", IDS)
def test_numbers_that_look_like_names_are_told(name, tmp_path):
    text, title = IDS[name]
    path = tmp_path / "t.csv"
    path.write_text(text)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read_file(path, may_hold_text=True)
    told = [str(one.message) for one in caught]
    assert len(told) == (title is not None)
    if title is not None:
        assert f"the first column, {title}, has distinct whole" in told[0]
        assert f"pass --names {title}." in told[0]
        assert read_file(path, names=title.strip("'"), may_hold_text=True).rows[0] in (
            "7",
            "70",
            "7.0",
        )


@pytest.mark.parametrize("rows", [True, False])
def test_distances_are_told(rows, tmp_path):
    D = abs(np.subtract.outer(np.arange(5), np.arange(5))) / 4
    pd.DataFrame(D, index=list("abcde"), columns=list("abcde")).to_csv(
        tmp_path / "d.csv"
    )
    np.save(tmp_path / "d.npy", D)
    path = tmp_path / ("d.csv" if rows else "d.npy")
    with warns_naming(UserWarning, path.name, "distances"):
        read_file(path)


def test_names_are_not_looked_for_where_the_first_column_has_them(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\na,1,2\nb,3,4\n")
    with raises_naming(ValueError, "--names"):
        read_file(path, names="x")
