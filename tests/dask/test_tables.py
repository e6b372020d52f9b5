"""Dask arrays in blocks of rows: what is asked of them, and work on every block."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from refusals import raises_naming

da = pytest.importorskip("dask.array")
tables = pytest.importorskip("nmfcluster.dask.tables")


def array(n_rows=20, n_columns=3, dtype=float):
    return (
        (np.arange(n_rows * n_columns) % 100).reshape(n_rows, n_columns).astype(dtype)
    )


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
        (array(), ("X", "Dask", "ndarray")),
        (None, ("X", "Dask", "NoneType")),
        (Frame(), ("Frame", "to_dask_array(lengths=True)")),
        (
            da.from_array(array().astype(str)),
            ("X", "numbers", "<U32"),
        ),
        (
            da.from_array(array(dtype=object), chunks=6),
            ("X", "numbers", "object"),
        ),
        (da.from_array(array(dtype=complex)), ("X", "numbers", "complex128")),
    ):
        with raises_naming(TypeError, says):
            tables.read_rows(other)
    for other, says in (
        (X[:, 0], ("X", "(20,)")),
        (X[:0], ("X", "(0, 3)")),
        (X[:, :0], ("X", "(20, 0)")),
        (
            X[da.arange(20) > 3],
            "X.compute_chunk_sizes()",
        ),
    ):
        with raises_naming(ValueError, says):
            tables.read_rows(other)


def test_blocks_that_are_sparse_are_refused():
    sp = pytest.importorskip("scipy.sparse")
    X = da.from_array(array()).map_blocks(sp.csr_array, meta=sp.csr_array((0, 0)))
    with raises_naming(TypeError, "X", "csr_array"):
        tables.read_rows(X)


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

    assert (
        tables.reduced(
            tables.of_blocks(X, partial(told, factor=2), with_first=True), merged
        )
        == 2 * array(140).sum()
    )
    assert sorted(firsts) == list(range(0, 140, 140 // n_blocks))
    assert max(sizes, default=0) <= 2
