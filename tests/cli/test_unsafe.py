"""Files that would harm: entries outside of a matrix, and little that unpacks to much."""

import gzip
import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from internals import main, read_file, read_pairs
from refusals import raises_naming
from scipy.io import mmwrite

pd = pytest.importorskip("pandas")

X = sp.csr_array(np.arange(24.0).reshape(8, 3) % 5)
SHAPE = "(8, 3)"


def parts(kind, part, value):
    """Return what is stored of a matrix, one of its numbers wrong."""
    A = X.asformat(kind)
    stored = {
        "data": A.data,
        "shape": np.array(A.shape),
        "format": np.array(kind.encode()),
    }
    if kind == "coo":
        stored |= {"row": A.coords[0].copy(), "col": A.coords[1].copy()}
    else:
        stored |= {"indices": A.indices.copy(), "indptr": A.indptr.copy()}
    stored[part][1] = value
    return stored


PLACES = [("csr", "indices"), ("csc", "indices"), ("bsr", "indices"), ("coo", "col")]


@pytest.mark.parametrize("value", [99, 10**8, -(10**6)])
@pytest.mark.parametrize(
    ("kind", "part"), [*PLACES, ("csr", "indptr"), ("csc", "indptr")]
)
def test_a_matrix_with_entries_outside_is_refused(kind, part, value, tmp_path):
    np.savez(tmp_path / "x.npz", **parts(kind, part, value))
    with raises_naming(ValueError, "x.npz"):
        read_file(tmp_path / "x.npz")


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("part", ["indices", "indptr"])
def test_annotated_data_with_entries_outside_are_refused(kind, part, tmp_path):
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    path = tmp_path / "x.h5ad"
    anndata.AnnData(getattr(sp, f"{kind}_matrix")(X)).write_h5ad(path)
    with h5py.File(path, "a") as held:
        held[f"X/{part}"][1] = 10**8
    with raises_naming(ValueError, "x.h5ad", SHAPE):
        read_file(path)


def test_a_matrix_market_file_with_entries_outside_is_refused(tmp_path):
    path = tmp_path / "x.mtx"
    path.write_text(
        "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 1 1\n9 1 1\n"
    )
    with raises_naming(ValueError, "x.mtx"):
        read_file(path)


# --- what unpacks to much ---------------------------------------------------------------------

LONG = b"1,2,3\n" * 40_000  # 240 kB of text


def save_lines(path):
    path.write_bytes(gzip.compress(LONG) if path.suffix == ".gz" else LONG)


def save_archive(path):
    np.savez_compressed(path, np.zeros(30_000))


def save_liar(path):
    """Write an archive whose list says that its array is short."""
    file = io.BytesIO()
    np.save(file, np.zeros((30_000, 1)))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as held:
        held.writestr("arr_0.npy", file.getvalue())
    size = len(file.getvalue()).to_bytes(4, "little")
    path.write_bytes(path.read_bytes().replace(size, (200).to_bytes(4, "little")))


def save_matrix(path):
    file = io.BytesIO()
    mmwrite(file, np.full((30_000, 1), 1 / 3))
    path.write_bytes(gzip.compress(file.getvalue()))


def save_tall(path):
    path.write_text("%%MatrixMarket matrix coordinate real general\n90000 3 1\n1 1 1\n")


def save_annotated(path):
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    anndata.AnnData(X.toarray()).write_h5ad(path)
    with h5py.File(path, "a") as held:  # nothing of it is stored
        held.create_dataset(
            "obsm/more", shape=(8, 10**12), dtype="f4", chunks=(8, 1000)
        )


MUCH = {
    "t.csv": save_lines,
    "t.csv.gz": save_lines,
    "t.npz": save_archive,
    "t.mtx.gz": save_matrix,
    "t.mtx": save_tall,
    "t.npy": lambda path: np.save(path, np.zeros((30_000, 1))),
    "t.h5ad": save_annotated,
}


@pytest.mark.parametrize("name", MUCH)
def test_what_holds_more_than_is_allowed_is_refused(name, tmp_path):
    path = tmp_path / name
    MUCH[name](path)
    with raises_naming(ValueError, "--max-gib"):
        read_file(path, max_bytes=100_000)


def test_no_more_of_an_archive_is_read_than_it_admits(tmp_path):
    save_liar(tmp_path / "t.npz")
    with raises_naming(ValueError, "t.npz"):
        read_file(tmp_path / "t.npz", max_bytes=100_000)


def test_pairs_are_bounded_too_and_what_is_allowed_is_read(tmp_path):
    path = tmp_path / "pairs.csv.gz"
    lines = b"".join(b"%d,40000,must\n" % i for i in range(40_000))
    path.write_bytes(gzip.compress(b"a,b,kind\n" + lines))
    ids = [str(i) for i in range(40_001)]
    with raises_naming(ValueError, "--max-gib"):
        read_pairs(str(path), 300_000, ids)
    assert read_pairs(str(path), 700_000, ids).n_pairs == 40_000


def test_the_bound_is_an_option_and_holds_for_what_becomes_dense(
    tmp_path, monkeypatch, capsys
):
    anndata = pytest.importorskip("anndata")
    monkeypatch.chdir(tmp_path)
    wide = sp.csr_matrix((8, 100_000))
    anndata.AnnData(wide).write_h5ad("a.h5ad")
    anndata.AnnData(wide).write_h5ad("b.h5ad")
    for run in (
        ["fuse", "a.h5ad", "b.h5ad"],
        ["consensus", "a.h5ad", "--max-gib", "nan"],
    ):
        bound = [] if "nan" in run else ["--max-gib", "0.005"]
        with pytest.raises(SystemExit):
            main([*run, *bound, "--clusters", "2"])
        assert "GiB: raise --max-gib to read it." in capsys.readouterr().err
    assert not list(Path().glob("*.png"))


def claims_too_much():
    """Return the bytes of an array whose head claims 30 GiB."""
    held = io.BytesIO()
    head = {"descr": "<f8", "fortran_order": False, "shape": (2**20, 4_000)}
    np.lib.format.write_array_header_1_0(held, head)
    return held.getvalue() + bytes(80)


def test_memory_that_a_head_claims_is_bounded_before_it_is_asked_for(tmp_path):
    (tmp_path / "x.npy").write_bytes(claims_too_much())
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("x.npy", claims_too_much())
    for name in ("x.npy", "x.npz"):
        with raises_naming(ValueError, name, "--max-gib"):
            read_file(tmp_path / name, max_bytes=2**30)


@pytest.mark.parametrize("text", ["a,b\n1,2\0zzz\n3,4\n", "id,a\nx,1\n\0y,2\n"])
def test_a_nul_byte_in_a_text_is_refused_with_its_line(text, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    line = 1 + text[: text.index("\0")].count("\n")
    with raises_naming(ValueError, "x.csv", f"line {line}"):
        read_file(path)


# --- annotated data ---------------------------------------------------------------------------


def link_outside(file, other):
    h5py = pytest.importorskip("h5py")
    del file["X"]
    file["X"] = h5py.ExternalLink(other, "/X")


def link_beside(file, other):
    h5py = pytest.importorskip("h5py")
    file["uns/more"] = h5py.ExternalLink(other, "/X")


def store_outside(file, other):
    del file["X"]
    file.create_dataset("X", (8, 3), "f4", external=[(other, 0, 96)])


def read_through(file, other):
    h5py = pytest.importorskip("h5py")
    del file["X"]
    layout = h5py.VirtualLayout((8, 3), "f4")
    layout[:] = h5py.VirtualSource(other, "X", (8, 3))
    file.create_virtual_dataset("X", layout)


def hold_itself(file, other):
    file["uns/self"] = file["uns"]


def double(file, other):
    """Let forty groups hold the next one twice."""
    group = file["uns"]
    for _ in range(40):
        group["a"] = group["b"] = group.create_group("c")
        group = group["a"]


def repeat(file, other):
    """Let one matrix be a thousand, of which nothing is stored."""
    one = file.create_dataset("obsm/m", (8, 10_000), "f4", chunks=(8, 1000))
    for i in range(1000):
        file[f"obsm/m{i}"] = one


def claim_rows(file, other):
    del file["X"]
    group = file.create_group("X")
    group.attrs["shape"] = [2**40, 3]
    group["data"] = group["indices"] = group["indptr"] = np.zeros(1)


@pytest.mark.parametrize(
    ("harm", "place"),
    [
        (link_outside, "/X must not be in another file"),
        (link_beside, "/uns/more must not be in another file"),
        (store_outside, "/X must not be in another file"),
        (read_through, "/X must not be in another file"),
        (hold_itself, "/uns/self must not be in two places"),
        (double, "must not be in two places"),
        (repeat, "--max-gib"),
        (claim_rows, "--max-gib"),
    ],
)
def test_annotated_data_that_would_harm_are_refused(harm, place, tmp_path):
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    for name in ("x.h5ad", "secret.h5ad"):
        anndata.AnnData(X.toarray()).write_h5ad(tmp_path / name)
    with h5py.File(tmp_path / "x.h5ad", "a") as file:
        harm(file, str(tmp_path / "secret.h5ad"))
    with raises_naming(ValueError, "x.h5ad", place):
        read_file(tmp_path / "x.h5ad", max_bytes=2**24)


# --- a file that somebody writes to -------------------------------------------------------------

LINES = "a,b\n1,2\n3,4\n"


@pytest.mark.parametrize("later", [LINES + "5,6\n", "a,b\n1,7\n3,8\n", ""])
def test_a_text_that_changes_while_it_is_read_is_refused(later, tmp_path, monkeypatch):
    """Its values and the names of its rows would be of two versions."""
    path = tmp_path / "x.csv"
    path.write_text(LINES)
    os.utime(path, (0, 0))
    read_csv = pd.read_csv

    def read_late(*args, **options):
        path.write_text(later)
        return read_csv(*args, **options)

    monkeypatch.setattr(pd, "read_csv", read_late)
    with raises_naming(ValueError, "x.csv", "changed while it was read"):
        read_file(path)


def test_an_array_that_is_cut_while_it_is_read_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "x.npy"
    np.save(path, X.toarray())
    read_array = np.lib.format.read_array

    def read_late(file, **options):
        path.write_bytes(path.read_bytes()[:100])
        return read_array(file, **options)

    monkeypatch.setattr(np.lib.format, "read_array", read_late)
    with raises_naming(ValueError, "x.npy", "changed while it was read"):
        read_file(path)
