"""Dask arrays in blocks of rows: files, what is asked of arrays, and what workers can hold."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
nd = pytest.importorskip("nmfcluster.dask")
tables = pytest.importorskip("nmfcluster.dask.tables")

MIB = 2**20


def array(n_rows=20, n_columns=3, dtype=float):
    return (np.arange(n_rows * n_columns) % 100).reshape(n_rows, n_columns).astype(dtype)


# --- files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "rows"), [("i1", 6), ("<i8", 20), (">i4", 6), ("f4", 1000)])
def test_a_file_is_read_by_blocks(tmp_path, dtype, rows):
    saved = array(dtype=dtype)
    np.save(tmp_path / "a.npy", saved)
    found = nd.read_npy(tmp_path / "a.npy", rows=rows)
    assert found.dtype == saved.dtype.newbyteorder("=")
    sizes = [min(rows, 20 - first) for first in range(0, 20, rows)]
    assert found.chunks == (tuple(sizes), (3,))
    assert_array_equal(found.compute(), saved)
    assert_array_equal(found[13:17, 1:].compute(), saved[13:17, 1:])
    assert_array_equal(nd.read_npy(str(tmp_path / "a.npy")).compute(), saved)


def test_a_file_is_not_read_before_it_is_asked_for(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", array())
    really, calls = np.fromfile, []
    monkeypatch.setattr(np, "fromfile", lambda *a, **o: [calls.append(a), really(*a, **o)][1])
    found = nd.read_npy(tmp_path / "a.npy", rows=6)
    assert not calls
    found[7:9].compute()
    assert len(calls) == 1


def test_a_file_that_was_written_anew_is_read_anew(tmp_path):
    np.save(tmp_path / "a.npy", array())
    before = nd.read_npy(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", array() + 1)
    after = nd.read_npy(tmp_path / "a.npy")
    assert not set(before.__dask_graph__()) & set(after.__dask_graph__())


def test_a_relative_name_is_that_of_where_it_was_given(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", array())
    monkeypatch.chdir(tmp_path)
    found = nd.read_npy("a.npy")
    monkeypatch.chdir("/")
    assert_array_equal(found.compute(), array())


def test_files_of_other_arrays_are_refused(tmp_path):
    for saved, says in (
        (np.asfortranarray(array()), r"two dimensions in C order.*\(20, 3\) in Fortran order"),
        (np.arange(5), r"two dimensions in C order.*shape \(5,\)"),
        (np.zeros((2, 2, 2)), r"two dimensions in C order.*shape \(2, 2, 2\)"),
        (np.zeros((0, 2)), r"not empty, got shape \(0, 2\)"),
        (np.array([["a", 1]], dtype=object), "path must name a .npy file with a table of numbers"),
    ):
        np.save(tmp_path / "a.npy", saved)
        with pytest.raises(ValueError, match=says):
            nd.read_npy(tmp_path / "a.npy")


def test_other_files_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("1 2 3")
    np.savez(tmp_path / "a.npz", a=array())
    for name in ("a.txt", "a.npz"):
        with pytest.raises(ValueError, match=f"path must name a .npy file .*{name}"):
            nd.read_npy(tmp_path / name)
    with pytest.raises(FileNotFoundError, match=r"b\.npy"):
        nd.read_npy(tmp_path / "b.npy")
    with pytest.raises(TypeError, match=r"path must be the name of a \.npy file, got 3"):
        nd.read_npy(3)


def test_rows_of_a_block_are_counted(tmp_path):
    np.save(tmp_path / "a.npy", array())
    for rows in (0, -1, 2.5, "6", True):
        with pytest.raises((ValueError, TypeError), match="rows must be"):
            nd.read_npy(tmp_path / "a.npy", rows=rows)


# --- arrays ---------------------------------------------------------------------------------------


def test_rows_are_whole():
    found = tables.read_rows(da.from_array(array(), chunks=(6, 2)))
    assert found.chunks == ((6, 6, 6, 2), (3,))
    assert_array_equal(found.compute(), array())


def test_blocks_without_rows_are_left_out():
    X = da.from_array(array(), chunks=(5, 3))
    X = X[X[:, 0] > 20].compute_chunk_sizes()
    assert X.chunks[0] == (0, 3, 5, 5)
    found = tables.read_rows(X)
    assert found.chunks[0] == (3, 5, 5)
    assert_array_equal(found.compute(), array()[7:])


class Frame:
    def to_dask_array(self):
        """Look like a data frame of Dask."""


def test_other_tables_are_refused():
    X = da.from_array(array())
    for other, says in (
        (array(), "V must be a Dask array in blocks of rows, got ndarray"),
        (None, "V must be a Dask array in blocks of rows, got NoneType"),
        (Frame(), r"got a data frame: give V.to_dask_array\(lengths=True\)"),
        (da.from_array(array().astype(str)), "V must hold numbers, got dtype <U"),
        (da.from_array(array(dtype=object), chunks=6), "V must hold numbers, got dtype object"),
        (da.from_array(array(dtype=complex)), "V must hold numbers, got dtype complex"),
    ):
        with pytest.raises(TypeError, match=says):
            tables.read_rows(other, "V")
    for other, says in (
        (X[:, 0], r"two dimensions.*got shape \(20,\)"),
        (X[:0], r"at least one row and one column.*\(0, 3\)"),
        (X[:, :0], r"at least one row and one column.*\(20, 0\)"),
        (X[da.arange(20) > 3], r"blocks of known sizes: call V.compute_chunk_sizes\(\) first"),
    ):
        with pytest.raises(ValueError, match=says):
            tables.read_rows(other, "V")


def test_blocks_that_are_sparse_are_refused():
    sp = pytest.importorskip("scipy.sparse")
    X = da.from_array(array()).map_blocks(sp.csr_array, meta=sp.csr_array((0, 0)))
    with pytest.raises(TypeError, match="X must have blocks that are numpy's, got csr_array"):
        tables.read_rows(X)


def test_rows_are_taken_by_their_numbers(counted):
    for rows in ([0], [3, 4, 11], [5, 19], list(range(20))):
        X, calls = counted(array(), 6)
        assert_array_equal(tables.rows_at(X, np.array(rows)), array()[rows])
        assert len(calls) == len({row // 6 for row in rows})  # of no other block


@pytest.mark.parametrize("n_blocks", [1, 8, 20])
def test_parts_are_put_together_a_few_at_a_time(n_blocks):
    X = da.from_array(array(140), chunks=(140 // n_blocks, -1))
    firsts, sizes = [], []

    def told(block, first, factor):
        firsts.append(first)
        return block.sum() * factor

    def merged(parts):
        sizes.append(len(parts))
        return sum(parts)

    assert tables.reduced(tables.of_blocks(X, told, 2, rows=True), merged) == 2 * array(140).sum()
    assert sorted(firsts) == [first for first, _ in tables.row_ranges(X)]
    assert max(sizes, default=0) <= 8


# --- workers --------------------------------------------------------------------------------------


class Client:
    """As much of a client as is asked what its workers can hold."""

    def __init__(self, **workers):
        self.workers = workers

    def scheduler_info(self, n_workers=5):
        assert n_workers == -1  # all of them
        named = ("memory_limit", "nthreads")
        told = {name: dict(zip(named, own[:2], strict=True)) for name, own in self.workers.items()}
        return {"workers": told}

    def run(self, function):
        share, held = function()  # in this process
        assert 0 < share <= 1
        assert held > 10 * MIB
        return {name: (0.8, own[2]) for name, own in self.workers.items()}

    def get(self):
        """Stand for what runs graphs."""


def with_workers(monkeypatch, **workers):
    monkeypatch.setattr(tables, "get_scheduler", lambda: Client(**workers).get)


def wide(rows):
    """Return an array whose rows take a KiB each, and whose blocks cannot be computed."""

    def fail(block):
        raise AssertionError("it was computed")

    X = da.zeros((100_000, 1024), dtype=np.int8, chunks=(rows, 1024))
    return X.map_blocks(fail, dtype=np.int8, meta=X._meta)


@pytest.mark.parametrize("read", [tables.read_rows, nd.base_partitions])
def test_blocks_that_a_worker_cannot_hold_are_refused_before_any_work(monkeypatch, read):
    with_workers(monkeypatch, one=(4000 * MIB, 1, 0), other=(500 * MIB, 2, 100 * MIB))
    with pytest.raises(ValueError, match="X has blocks of up to 60000 rows and 59 MiB") as error:
        read(wide(60_000))
    says = str(error.value)
    assert "a thread needs 176 MiB; a worker has 150 MiB for each of its 2 thread(s)" in says
    assert "of the 400 MiB at which it pauses 100 MiB are taken" in says
    assert says.endswith("Give X.rechunk((51200, -1)), or write it in such blocks.")


def test_blocks_that_workers_can_hold_pass(monkeypatch):
    with_workers(monkeypatch, one=(4000 * MIB, 1, 0), other=(500 * MIB, 2, 100 * MIB))
    X = wide(60_000).rechunk((51_200, -1))  # what the message says
    assert tables.read_rows(X).shape == (100_000, 1024)
    with pytest.raises(ValueError, match="51201 rows"):
        tables.read_rows(wide(51_201))
    with_workers(monkeypatch, one=(0, 1, 0))  # no limit
    tables.read_rows(wide(100_000))
    with_workers(monkeypatch)  # none yet
    tables.read_rows(wide(100_000))


def test_of_labels_more_is_made(monkeypatch):
    with_workers(monkeypatch, one=(300 * MIB, 1, 160 * MIB))
    labels = wide(100)[:, :50]
    assert tables.read_rows(labels, labels=True).shape == (100_000, 50)
    with_workers(monkeypatch, one=(300 * MIB, 1, 220 * MIB))
    assert tables.read_rows(labels).shape == (100_000, 50)
    with pytest.raises(ValueError, match=r"Give workers more memory, or fewer threads\."):
        nd.NMFConsensus(3).fit(labels)


def test_without_workers_nothing_is_asked():
    for scheduler in (None, "threads", "synchronous"):
        with dask.config.set(scheduler=scheduler):
            assert tables.read_rows(wide(100_000)).shape == (100_000, 1024)
