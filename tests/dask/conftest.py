"""Dask runs in this process, one task after the other, unless a test says otherwise."""

import pytest


@pytest.fixture(autouse=True)
def _synchronous():
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture
def counted():
    """Return a function that makes a Dask array whose blocks note that they are computed."""
    da = pytest.importorskip("dask.array")

    def make(array, rows):
        calls = []

        def noting(block):
            calls.append(len(block))
            return block

        X = da.from_array(array, chunks=(rows, -1))
        return X.map_blocks(noting, dtype=array.dtype, meta=X._meta), calls

    return make
