"""Blocks of rows: nothing depends on who works on them."""

import threading

import numpy as np
import pytest
import scipy.sparse as sp
from internals import share_blocks
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming

from nmfcluster._utils import linalg
from nmfcluster._utils.linalg import RowBlocks, gram, map_blocks, map_rows, sum_blocks
from nmfcluster._utils.storage import rows_of


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(linalg, "BLOCK_ROWS", 7)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, 3])
@pytest.mark.parametrize("n_rows", [1, 7, 8, 40])
def test_blocks_come_in_their_order(n_jobs, n_rows):
    with share_blocks(n_jobs):
        found = list(map_blocks(lambda block: (block.start, block.stop), n_rows))
    assert found == [(a, min(a + 7, n_rows)) for a in range(0, n_rows, 7)]


def test_threads_work_on_blocks_only_where_they_are_shared():
    def names():
        return {*map_blocks(lambda block: threading.current_thread().name, 70)}

    here = {threading.current_thread().name}
    assert names() == here
    before = threading.active_count()
    with share_blocks(1):
        assert names() == here
    with share_blocks(2):
        assert threading.active_count() == before  # none is started before it is needed
        assert not names() & here
        others = []
        thread = threading.Thread(target=lambda: others.append(names()))
        thread.start()
        thread.join()
        assert others == [{thread.name}]  # who runs beside others works alone
    assert names() == here
    assert threading.active_count() == before


def test_an_error_in_a_block_reaches_the_caller_and_no_thread_stays():
    def work(block):
        if block.start == 14:
            raise MemoryError("of a block")

    before = threading.active_count()
    with raises_naming(MemoryError, "block"), share_blocks(2):
        list(map_blocks(work, 70))
    assert threading.active_count() == before


def test_numpy_handles_errors_in_blocks_as_in_the_caller():
    X = np.zeros((1, 70, 2))
    with share_blocks(2):
        with np.errstate(divide="ignore"):
            assert np.isinf(map_rows(lambda x: 1 / x, X)).all()
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            map_rows(lambda x: 1 / x, X)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_sums_and_products_are_the_literal_ones_and_the_same_for_any_number_of_jobs(
    dtype,
):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(2, 3, 40, 4)).astype(dtype)
    dense = rng.normal(size=(40, 5)).astype(dtype)
    wide = (rng.normal(size=(40, 60)) * (rng.uniform(size=(40, 60)) < 0.2)).astype(
        dtype
    )
    found = []
    for n_jobs in (1, 2, 3):
        with share_blocks(n_jobs):
            results = [
                gram(X, Y),
                map_rows(np.subtract, X, Y),
                sum_blocks(lambda b: X[:, b].sum(1), 40),
            ]
            for array in (dense, wide, sp.csr_array(dense), sp.csr_array(wide)):
                of_rows = RowBlocks(array)
                H = (
                    np.random.default_rng(1)
                    .normal(size=(array.shape[1], 4))
                    .astype(dtype)
                )
                results.append(of_rows.product(H))
                results.append(of_rows.transposed_product(X[0]))
            found.append(results)
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            assert a.dtype == b.dtype == dtype
            assert_array_equal(a, b)
    tol = {"rtol": 1e-4, "atol": 1e-5}
    assert_allclose(found[0][0], [x.T @ y for x, y in zip(X, Y, strict=True)], **tol)
    assert_array_equal(found[0][1], X - Y)
    assert_allclose(found[0][2], X.sum(axis=1), **tol)
    H = {m: np.random.default_rng(1).normal(size=(m, 4)).astype(dtype) for m in (5, 60)}
    for number, array in enumerate((dense, wide, dense, wide)):
        assert_allclose(found[0][3 + 2 * number], array @ H[array.shape[1]], **tol)
        assert_allclose(found[0][4 + 2 * number], array.T @ X[0], **tol)


def test_rows_of_a_sparse_matrix_share_its_memory():
    rng = np.random.default_rng(0)
    A = sp.csr_array(rng.normal(size=(40, 9)) * (rng.uniform(size=(40, 9)) < 0.3))
    part = rows_of(A, slice(7, 20))
    assert np.shares_memory(part.data, A.data)
    assert np.shares_memory(part.indices, A.indices)
    assert_array_equal(part.toarray(), A.toarray()[7:20])


def test_the_product_of_sparse_matrices_of_many_rows_is_sparse():
    rng = np.random.default_rng(0)
    A, B = (
        sp.csr_array(rng.random((40, 40)) * (rng.random((40, 40)) < 0.1))
        for _ in range(2)
    )
    product = RowBlocks(A).product(B)
    assert sp.issparse(product)
    assert_allclose(product.toarray(), A.toarray() @ B.toarray())
