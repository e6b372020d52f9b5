"""Cells of samples: how many a cluster has, and what is in them."""

import numpy as np
import pytest
from refusals import raises_naming

from nmfcluster.display.matrices import divide_into_cells


@pytest.mark.parametrize(
    "sizes", [(1000,), (900, 60, 40), (500, 499, 1), (1,) * 40, (3, 1, 2)]
)
def test_cells_respect_clusters(sizes):
    rng = np.random.RandomState(0)
    # numbers with gaps
    labels = rng.permutation(np.repeat(np.arange(len(sizes)) * 2, sizes))
    confidence = rng.uniform(size=len(labels))
    for max_cells in (1, 3, 5, 17, 50, 400, 2000):
        cells, kept = divide_into_cells(labels, confidence, max_cells)
        order, cell_labels = kept["order"], kept["cell_labels"]
        n_cells = len(cell_labels)
        assert sorted(order) == list(range(len(labels)))
        assert len(sizes) <= n_cells <= min(max_cells + len(sizes) - 1, len(labels))
        assert n_cells >= min(max_cells, len(labels)) - len(sizes) + 1
        assert np.array_equal(np.bincount(cells), kept["cell_sizes"])
        assert kept["cell_sizes"].min() > 0
        assert (np.diff(cells[order]) >= 0).all()
        np.testing.assert_array_equal(labels, cell_labels[cells])  # none straddles two
        assert set(cell_labels) == set(labels)  # every cluster has one
        for cluster in np.unique(labels):
            inside = confidence[order][labels[order] == cluster]
            assert (np.diff(inside) <= 0).all()
            of_cluster = np.bincount(cells)[cell_labels == cluster]
            assert np.ptp(of_cluster) <= 1  # cells of one cluster are of one size


def test_max_cells_is_a_positive_int():
    for max_cells, error in ((0, ValueError), (2.5, TypeError), (True, TypeError)):
        with raises_naming(error, "max_cells", str(max_cells)):
            divide_into_cells(np.zeros(3, dtype=int), np.zeros(3), max_cells)


def test_cells_are_shared_out_by_size():
    labels = np.repeat([0, 1, 2], [6000, 3000, 1000])
    _, kept = divide_into_cells(labels, np.zeros(10_000), 100)
    assert np.abs(np.bincount(kept["cell_labels"]) - [60, 30, 10]).max() <= 1
