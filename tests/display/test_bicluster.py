"""Pictures of biclusters and of NMFMetaCluster: what is drawn, and where."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans, SpectralCoclustering
from sklearn.datasets import make_biclusters as make_constant_biclusters
from sklearn.exceptions import NotFittedError

from nmfcluster import NMFConsensus, NMFMetaCluster
from nmfcluster.datasets import make_biclusters
from nmfcluster.display import BiclusterDisplay, ConsensusMatrixDisplay, LossCurveDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

NO_CLUSTER = 4  # rows and columns of zeros that the table of the model ends with


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def table():
    """A table of overlapping biclusters in any order, with rows and columns that are in none."""
    X, _, _ = make_biclusters((30, 45), 4, random_state=1)
    rng = np.random.RandomState(0)
    X = np.pad(X, ((0, NO_CLUSTER), (0, NO_CLUSTER)))
    return X[rng.permutation(len(X))][:, rng.permutation(X.shape[1])]


@pytest.fixture(scope="module")
def model(table):
    return NMFMetaCluster(4, n_runs=6, random_state=0).fit(table)


def planted(n_clusters=5, shape=(50, 80), overlap=0.3, seed=3):
    """Return a chain of overlapping biclusters, shuffled, and where each cluster was."""
    X, W, H = make_biclusters(shape, n_clusters, overlap=overlap, twins=False, random_state=seed)
    rng = np.random.RandomState(seed)
    rows, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    chain = rng.permutation(n_clusters)
    return X[rows][:, columns], W.T[chain][:, rows] > 0, H[chain][:, columns] > 0, chain


def cells_of(order, sizes):
    ends = np.cumsum(sizes)
    return [order[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def marks_of(strip, axis):
    """Return the colour and the range of the marks of a strip, but for its background."""
    found = []
    paths, colours = strip.get_paths(), strip.get_facecolors()
    for path, colour in list(zip(paths, colours, strict=True))[1:]:
        places = path.vertices[:, axis]
        if colour[3] > 0:
            found.append((colour, places.min(), places.max()))
    return found


# --- what is shown -------------------------------------------------------------------------------


def test_a_small_table_is_shown_entry_by_entry(model, table):
    display = BiclusterDisplay.from_estimator(model, table)
    assert_array_equal(np.sort(display.row_order), np.arange(len(table)))
    assert_array_equal(np.sort(display.column_order), np.arange(table.shape[1]))
    assert_array_equal(display.matrix, table[display.row_order][:, display.column_order])
    assert_array_equal(display.row_shares, model.rows_[:, display.row_order])
    assert_array_equal(display.column_shares, model.columns_[:, display.column_order])
    assert_array_equal(display.mesh_.get_array().reshape(display.matrix.shape), display.matrix)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csc_matrix, np.float32])
@pytest.mark.parametrize("max_cells", [5, 7, 16, 40])
def test_cells_hold_means(model, table, form, max_cells):
    display = BiclusterDisplay.from_estimator(model, form(table), max_cells=max_cells)
    down = cells_of(display.row_order, display.row_sizes)
    along = cells_of(display.column_order, display.column_sizes)
    assert len(down) == min(max_cells, len(table))
    assert len(along) == min(max_cells, table.shape[1])
    expected = [[np.mean([table[i, j] for i in a for j in b]) for b in along] for a in down]
    assert_allclose(display.matrix, expected, rtol=1e-5, atol=1e-6)
    for members, shares, cells in (
        (model.rows_, display.row_shares, down),
        (model.columns_, display.column_shares, along),
    ):
        assert_allclose(shares, [[own[cell].mean() for cell in cells] for own in members])


def test_a_sparse_table_is_not_made_dense():
    n, p = 200_000, 150_000  # 240 GB as an array
    rows, columns = np.zeros((2, n), dtype=bool), np.zeros((2, p), dtype=bool)
    rows[0, ::2], rows[1, 1::2] = True, True
    columns[0, : p // 3], columns[1, p // 3 :] = True, True
    places = np.arange(0, n, 50)
    X = sp.csr_array((np.ones(len(places)), (places, places % p)), shape=(n, p))
    display = BiclusterDisplay.from_biclusters(X, rows, columns, max_cells=20)
    assert display.matrix.shape == (20, 20)
    mass = display.matrix * np.outer(display.row_sizes, display.column_sizes)
    assert mass.sum() == pytest.approx(len(places))


# --- the order -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_chain_of_overlapping_biclusters_becomes_blocks(seed):
    X, rows, columns, chain = planted(seed=seed)
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    places = chain[display.clusters]
    assert places.tolist() in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0])
    for shares in (display.row_shares, display.column_shares):
        for share in shares:  # every cluster in one piece, those on its border included
            assert np.count_nonzero(np.diff(np.pad(share, 1))) == 2
    assert len(display.outlines_) == 5


def test_the_frames_hold_their_biclusters():
    X, rows, columns, _ = planted()
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    for cluster, frame in zip(display.clusters, display.outlines_, strict=True):
        (left, top), width, height = frame.get_xy(), frame.get_width(), frame.get_height()
        inside_rows = display.row_order[top : top + height]
        inside_columns = display.column_order[left : left + width]
        assert_array_equal(np.sort(inside_rows), np.flatnonzero(rows[cluster]))
        assert_array_equal(np.sort(inside_columns), np.flatnonzero(columns[cluster]))


def test_what_is_in_no_cluster_comes_last(model, table):
    display = BiclusterDisplay.from_estimator(model, table)
    for members, order, shares in (
        (model.rows_, display.row_order, display.row_shares),
        (model.columns_, display.column_order, display.column_shares),
    ):
        none = np.flatnonzero(~members.any(axis=0))
        assert len(none) >= NO_CLUSTER
        assert_array_equal(np.sort(order[-len(none) :]), none)
        assert not shares[:, -len(none) :].any()


def test_rows_go_to_the_cluster_that_adds_most(model, table):
    display = BiclusterDisplay.from_estimator(model, table)
    place = np.argsort(display.clusters)
    own = [
        place[max(np.flatnonzero(model.rows_[:, i]), key=lambda c: model.factor_[i, c])]
        for i in display.row_order
        if model.rows_[:, i].any()
    ]
    assert (np.diff(own) >= 0).all()


def test_the_order_does_not_depend_on_that_of_the_table(model, table):
    rng = np.random.RandomState(1)
    rows, columns = rng.permutation(len(table)), rng.permutation(table.shape[1])
    one = BiclusterDisplay.from_biclusters(table, model.rows_, model.columns_)
    other = BiclusterDisplay.from_biclusters(
        table[rows][:, columns], model.rows_[:, rows], model.columns_[:, columns]
    )
    assert_array_equal(one.clusters, other.clusters)
    assert_array_equal(one.row_shares, other.row_shares)
    assert_array_equal(one.column_shares, other.column_shares)


# --- strips, frames, colours ---------------------------------------------------------------------


def test_a_row_of_several_clusters_has_several_marks():
    X, rows, columns, _ = planted()
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    seen = {}
    for cluster, strips in zip(display.clusters, display.strips_, strict=True):
        for side, (strip, members, order) in enumerate(
            zip(strips, (rows, columns), (display.row_order, display.column_order), strict=True)
        ):
            marked = np.zeros(len(order), dtype=int)
            for colour, low, high in marks_of(strip, 1 - side):
                marked[order[int(low) : int(high)]] += 1
                seen.setdefault(cluster, set()).add(tuple(colour))
            assert_array_equal(marked, members[cluster])
    assert (rows.sum(axis=0) > 1).any()
    assert all(len(colours) == 1 for colours in seen.values())  # the same at both sides
    assert len(set.union(*seen.values())) == 5


def test_strips_and_frames_have_the_colours_of_the_cluster(model, table):
    display = BiclusterDisplay.from_biclusters(table, model.rows_, model.columns_)
    by_frames = {tuple(frame.get_edgecolor()) for frame in display.outlines_}
    by_strips = {tuple(marks_of(strip, 1)[0][0]) for strip, _ in display.strips_}
    assert by_frames == by_strips


def test_marks_of_cells_are_as_strong_as_the_share():
    rows = np.array([[1, 1, 1, 0], [0, 0, 0, 1]], dtype=bool)
    rows[1, 2] = True
    display = BiclusterDisplay.from_biclusters(np.eye(4), rows, rows, max_cells=2)
    shares = display.row_shares
    assert_allclose(shares, [[1, 0], [1 / 3, 1]])
    alphas = [colour[3] for colour, *_ in marks_of(display.strips_[1][0], 1)]
    assert_allclose(alphas, [1 / 3, 1])


def test_clusters_are_named_where_there_is_room():
    X, rows, columns, chain = planted()
    display = BiclusterDisplay.from_biclusters(X, rows, columns)
    assert [text.get_text() for text in display.ax_.texts] == [str(c) for c in display.clusters]
    names = [f"kind {place}" for place in chain]
    display = BiclusterDisplay.from_biclusters(X, rows, columns, names=names)
    assert [text.get_text() for text in display.ax_.texts] == [names[c] for c in display.clusters]
    many = np.eye(30, dtype=bool)
    display = BiclusterDisplay.from_biclusters(np.eye(30), many, many)
    assert 5 <= len(display.ax_.texts) <= 10
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.texts]
    assert all(not one.overlaps(other) for i, one in enumerate(boxes) for other in boxes[i + 1 :])
    assert display.outlines_ == []  # they would hide the table


@pytest.mark.parametrize(
    ("pieces", "frames"),
    [
        ([10], 1),
        ([5, 1], 4),  # two of rows, two of columns
        ([9, 1, 1, 1, 1], 1),  # the long one alone
        ([6, 1, 1, 5], 4),
        ([1, 1, 1, 1, 1], 0),  # none of them tells more than the strips do
    ],
)
def test_clusters_in_pieces_have_few_frames(pieces, frames):
    share = np.concatenate([[0.0, *[1.0] * size] for size in pieces] + [[0.4]])
    ones = np.ones(len(share), dtype=int)
    display = BiclusterDisplay(
        matrix=np.outer(share, share),
        row_sizes=ones,
        column_sizes=ones,
        row_shares=share[None],
        column_shares=share[None],
    ).plot()
    assert len(display.outlines_) == frames
    framed = {frame.get_width() for frame in display.outlines_}
    assert not frames or max(framed) == max(pieces)
    assert len(marks_of(display.strips_[0][0], 1)) == len(pieces) + 1  # that of a share of 0.4


def test_few_large_entries_do_not_hide_the_others():
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


def test_negative_entries_have_a_colour_of_their_own():
    X, rows, columns, _ = planted()
    display = BiclusterDisplay.from_biclusters(X - X.mean(), rows, columns)
    low, high = display.mesh_.get_clim()
    assert low == -high < 0
    white = display.mesh_.get_cmap()(display.mesh_.norm(0.0))
    assert min(white) > 0.95
    zeros = BiclusterDisplay.from_biclusters(0 * X, rows, columns)
    zeros.figure_.canvas.draw()
    assert zeros.mesh_.get_clim() == (0, 1)


# --- options -------------------------------------------------------------------------------------


def test_biclusters_of_scikit_learn_are_shown():
    X, rows, columns = make_constant_biclusters((30, 40), 3, noise=1, random_state=0)
    found = SpectralCoclustering(3, random_state=0).fit(X - X.min())
    display = BiclusterDisplay.from_biclusters(X, found.rows_, found.columns_)
    assert len(display.outlines_) == 3
    as_numbers = BiclusterDisplay.from_biclusters(X, rows.astype(int).tolist(), columns * 1)
    assert_array_equal(as_numbers.row_shares.sum(axis=1), rows.sum(axis=1))


@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_few_clusters_will_do(n_clusters):
    rows = np.eye(n_clusters, 5, dtype=bool)
    display = BiclusterDisplay.from_biclusters(np.eye(5), rows, rows)
    assert_array_equal(display.clusters, np.arange(n_clusters))
    assert len(display.strips_) == n_clusters


def test_an_empty_cluster_has_no_mark():
    rows = np.array([[True, True, False], [False] * 3, [False, False, True]])
    display = BiclusterDisplay.from_biclusters(np.eye(3), rows, rows)
    shown = dict(zip(display.clusters.tolist(), display.strips_, strict=True))
    assert marks_of(shown[1][0], 1) == marks_of(shown[1][1], 0) == []
    assert len(display.outlines_) == 2


def test_parts_can_be_left_out(model, table):
    display = BiclusterDisplay.from_estimator(
        model, table, strip=False, outline=False, colorbar=False, cmap="viridis"
    )
    assert display.strips_ == display.outlines_ == list(display.ax_.texts) == []
    assert display.colorbar_ is None
    assert display.mesh_.get_cmap().name == "viridis"
    display.plot(strip=True)
    assert len(display.strips_) == 4


def test_given_axes_are_used(model, table):
    figure, axes = plt.subplots(1, 2)
    display = BiclusterDisplay.from_estimator(model, table, ax=axes[1])
    assert (display.ax_, display.figure_) == (axes[1], figure)
    assert plt.get_fignums() == [figure.number]
    assert not axes[0].has_data()
    assert display.ax_.get_xlim() == (0, table.shape[1])
    assert display.ax_.get_ylim() == (len(table), 0)  # the first row on top
    figure.canvas.draw()


def test_a_figure_without_pyplot_will_do(model, table):
    ax = matplotlib.figure.Figure().subplots()
    BiclusterDisplay.from_estimator(model, table, ax=ax)
    assert plt.get_fignums() == []


@pytest.mark.usefixtures("without_matplotlib")
def test_missing_matplotlib_is_named(model, table):
    with pytest.raises(ImportError, match=r'pip install "nmfcluster\[plot\]"'):
        BiclusterDisplay.from_estimator(model, table)


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [KMeans(2).fit([[0], [1]]), np.eye(3), "model"])
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
        ({"X": np.full((4, 5), np.nan)}, ValueError, "X must be a table of finite .* NaN"),
        ({"X": np.ones(4)}, ValueError, "X must be a table of finite numbers: Expected 2D"),
        ({"X": [["a"] * 5] * 4}, ValueError, "X must be a table of finite numbers: could not"),
        ({"rows": np.ones(4, dtype=bool)}, ValueError, r"rows must have shape .* got \(4,\)"),
        ({"rows": np.ones((0, 4))}, ValueError, r"rows must have shape .* got \(0, 4\)"),
        ({"rows": [[1, 0], [1]]}, ValueError, "rows must have one row a cluster, of equal length"),
        ({"rows": np.full((2, 4), 0.5)}, TypeError, "rows must hold booleans, got"),
        ({"rows": np.full((2, 4), 2)}, TypeError, "rows must hold booleans, got"),
        ({"columns": [["x"] * 5] * 2}, TypeError, "columns must hold booleans, got"),
        ({"columns": np.ones((3, 5), bool)}, ValueError, "same clusters, got 2 and 3 of them"),
        ({"names": ["one"]}, ValueError, "names must name 2 clusters, got 1 names"),
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


def test_a_table_of_other_size_than_the_fit_is_refused(model, table):
    with pytest.raises(ValueError, match=r"X must have the 34 rows and 49 columns .* \(34, 48\)"):
        BiclusterDisplay.from_estimator(model, table[:, 1:])


# --- the other displays --------------------------------------------------------------------------


def test_the_consensus_of_the_runs_is_shown(model, table):
    display = ConsensusMatrixDisplay.from_estimator(model)
    C = model.consensus_matrix()[display.order][:, display.order]
    assert_allclose(display.matrix, C, equal_nan=True)
    assert display.value_name == "co-association"
    labels = model.labels_[display.order]
    assert (labels[-NO_CLUSTER:] == -1).all()  # samples in no cluster come last, and are named
    assert (labels[:-NO_CLUSTER] >= 0).all()
    assert [text.get_text() for text in display.ax_.get_yticklabels()][-1] == "none"
    assert display.ax_.get_legend() is not None  # rows of zeros are never seen with others


def test_without_a_sample_in_no_cluster_none_is_named():
    X, _, _ = make_biclusters(random_state=0)
    model = NMFMetaCluster(4, n_runs=4, random_state=0).fit(X)
    display = ConsensusMatrixDisplay.from_estimator(model, max_cells=10)
    assert display.names is None
    assert set(display.cell_labels) == {0, 1, 2, 3}


@pytest.mark.parametrize("final", [True, False])
def test_the_loss_of_the_last_factorization_is_shown(table, final):
    model = NMFMetaCluster(4, n_runs=3, final=final, random_state=0).fit(table)
    display = LossCurveDisplay.from_estimator(model)
    (line,) = display.lines_
    assert len(line.get_ydata()) == model.n_iter_ + 1
    display.figure_.canvas.draw()


def test_a_loss_that_never_fell_is_shown_all_the_same():
    display = LossCurveDisplay(curves=[np.array([3.0, 3.0, 3.0])]).plot()
    assert_array_equal(display.lines_[0].get_ydata(), [3, 3, 3])
    assert display.ax_.get_yscale() == "linear"
    assert display.ax_.get_ylim()[0] == 0
    assert display.ax_.get_ylabel() == "loss"
