"""Pictures of biclusters: what is drawn, and where."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans, SpectralCoclustering
from sklearn.datasets import make_biclusters as make_constant_biclusters
from sklearn.exceptions import NotFittedError

from nmfcluster import NMFConsensus, NMFMetaCluster
from nmfcluster.display import BiclusterDisplay

plt = pytest.importorskip("matplotlib.pyplot")


def test_a_small_table_is_shown_entry_by_entry(biclusters, table):
    display = BiclusterDisplay.from_estimator(biclusters, table)
    assert_array_equal(np.sort(display.row_order), np.arange(len(table)))
    assert_array_equal(np.sort(display.column_order), np.arange(table.shape[1]))
    assert_array_equal(display.matrix, table[display.row_order][:, display.column_order])
    assert_array_equal(display.row_shares, biclusters.rows_[:, display.row_order])
    assert_array_equal(display.column_shares, biclusters.columns_[:, display.column_order])
    assert_array_equal(display.mesh_.get_array().reshape(display.matrix.shape), display.matrix)


def test_biclusters_of_scikit_learn_are_shown():
    X, rows, columns = make_constant_biclusters((30, 40), 3, noise=1, random_state=0)
    model = SpectralCoclustering(3, random_state=0).fit(X - X.min())
    display = BiclusterDisplay.from_biclusters(X, model.rows_, model.columns_)
    assert len(display.outlines_) == 3
    as_numbers = BiclusterDisplay.from_biclusters(X, rows.astype(int).tolist(), columns * 1)
    assert_array_equal(as_numbers.row_shares.sum(axis=1), rows.sum(axis=1))


def test_few_large_entries_do_not_hide_the_others(planted):
    X, rows, columns, _ = planted()
    X[0, 0] = 1000 * X.max()
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    low, high = display.mesh_.get_clim()
    assert low == 0
    assert high < X.max() / 100
    assert display.colorbar_.extend == "max"
    even = BiclusterDisplay.from_biclusters((X > 0) * 1.0, rows, columns)
    assert even.mesh_.get_clim() == (0, 1)
    assert even.colorbar_.extend == "neither"


def test_negative_entries_have_a_colour_of_their_own(planted):
    X, rows, columns, _ = planted()
    display = BiclusterDisplay.from_biclusters(X - X.mean(), rows, columns)
    low, high = display.mesh_.get_clim()
    assert low == -high < 0
    white = display.mesh_.get_cmap()(display.mesh_.norm(0.0))
    assert min(white) > 0.95
    zeros = BiclusterDisplay.from_biclusters(0 * X, rows, columns)
    zeros.figure_.canvas.draw()
    assert zeros.mesh_.get_clim() == (0, 1)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_cells_are_means_of_what_was_observed(kind):
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 2, size=(40, 30))
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    X[:4, :3] = np.nan  # a cell of which nothing was observed
    rows, columns = (np.arange(n) < n // 2 for n in X.shape)
    display = BiclusterDisplay.from_biclusters(
        kind(X), [rows, ~rows], [columns, ~columns], max_cells=10
    )
    sizes = display.row_sizes, display.column_sizes
    row_ends, column_ends = (np.cumsum(s) for s in sizes)
    ordered = X[np.ix_(display.row_order, display.column_order)]
    for i, (stop, n) in enumerate(zip(row_ends, sizes[0], strict=True)):
        for j, (end, p) in enumerate(zip(column_ends, sizes[1], strict=True)):
            cell = ordered[stop - n : stop, end - p : end]
            seen = cell[~np.isnan(cell)]
            expected = seen.mean() if seen.size else np.nan
            assert_allclose(display.matrix[i, j], expected)
    assert display.mesh_.norm.vmax <= 2
    assert np.isnan(display.matrix).sum() == display.mesh_.get_array().mask.sum()


def test_parts_can_be_left_out(biclusters, table):
    display = BiclusterDisplay.from_estimator(
        biclusters, table, strip=False, outline=False, colorbar=False, cmap="viridis"
    )
    assert display.strips_ == display.outlines_ == list(display.ax_.texts) == []
    assert display.colorbar_ is None
    assert display.mesh_.get_cmap().name == "viridis"
    display.plot(strip=True)
    assert len(display.strips_) == 4


def test_the_first_row_is_on_top(biclusters, table):
    display = BiclusterDisplay.from_estimator(biclusters, table)
    assert display.ax_.get_xlim() == (0, table.shape[1])
    assert display.ax_.get_ylim() == (len(table), 0)


@pytest.mark.parametrize("wrong", [KMeans(2).fit([[0], [1]]), np.eye(3), "biclusters"])
def test_other_estimators_are_refused(wrong, table):
    with pytest.raises(TypeError, match=rf"estimator must be an NMFM.*got {type(wrong).__name__}"):
        BiclusterDisplay.from_estimator(wrong, table)


def test_estimators_without_biclusters_are_refused(table):
    with pytest.raises(NotFittedError):
        BiclusterDisplay.from_estimator(NMFMetaCluster(3), table)
    consensus = NMFConsensus(2, n_estimators=3, random_state=0).fit(table)
    with pytest.raises(TypeError, match=r"from_biclusters takes .* got NMFConsensus"):
        BiclusterDisplay.from_estimator(consensus, table)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": np.ones((3, 4))}, ValueError, r"X must have the 4 rows and 5 col.* shape \(3, 4\)"),
        ({"X": np.ones((5, 4))}, ValueError, r"X must have the 4 rows .* got shape \(5, 4\)"),
        ({"X": np.full((4, 5), np.inf)}, ValueError, "X must be a table of finite .* infinity"),
        ({"X": np.ones(4)}, ValueError, "finite numbers, or NaN: Expected 2D"),
        ({"X": [["a"] * 5] * 4}, ValueError, "finite numbers, or NaN: could not"),
        ({"rows": np.ones(4, dtype=bool)}, ValueError, r"rows must have shape .* got \(4,\)"),
        ({"rows": np.ones((0, 4))}, ValueError, r"rows must have shape .* got \(0, 4\)"),
        ({"rows": [[1, 0], [1]]}, ValueError, "rows must have one row a cluster, of equal length"),
        ({"rows": np.full((2, 4), 0.5)}, TypeError, "rows must hold booleans, got"),
        ({"rows": np.full((2, 4), 2)}, TypeError, "rows must hold booleans, got"),
        ({"columns": [["x"] * 5] * 2}, TypeError, "columns must hold booleans, got"),
        ({"columns": np.ones((3, 5), bool)}, ValueError, "same clusters, got 2 and 3 of them"),
        ({"names": ["one"]}, ValueError, "names must name 2 clusters, got 1"),
        ({"max_cells": 0}, ValueError, "max_cells must be at least 1, got 0"),
        ({"max_cells": 2.5}, TypeError, "max_cells must be an int, got 2.5"),
        ({"max_cells": "all"}, TypeError, "max_cells must be an int, got 'all'"),
    ],
)
def test_bad_input_is_named(change, error, message):
    given = {
        "X": np.ones((4, 5)),
        "rows": np.ones((2, 4), dtype=bool),
        "columns": np.ones((2, 5), dtype=bool),
    }
    with pytest.raises(error, match=message):
        BiclusterDisplay.from_biclusters(**given | change)
    assert plt.get_fignums() == []


def test_a_table_of_other_size_than_the_fit_is_refused(biclusters, table):
    with pytest.raises(ValueError, match=r"X must have the 34 rows and 49 columns .* \(34, 48\)"):
        BiclusterDisplay.from_estimator(biclusters, table[:, 1:])
