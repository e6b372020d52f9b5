from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import NMFConsensus, PairwiseConstraints, SSNMFClusterer
from nmfcluster.datasets import make_partitions
from nmfcluster.display import ConsensusMatrixDisplay, ConstraintDisplay, LossCurveDisplay
from nmfcluster.display.style import divide_into_cells, shorten, spread, to_name

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    partitions, _ = make_partitions((60, 25, 9, 2), n_partitions=15, noise=0.3, random_state=0)
    return NMFConsensus(n_clusters=4, affinity="partitions", n_init=4, random_state=0).fit(
        partitions
    )


@pytest.fixture(scope="module")
def constrained():
    X, y = make_blobs(90, centers=4, cluster_std=3.0, random_state=0)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=150, random_state=0)
    model = SSNMFClusterer(n_clusters=4, hard_must_link=False, random_state=0)
    return model.fit(X, constraints=pairs)


def cells_of(display):
    """Samples of each cell, in the order of the picture, as ranges."""
    edges = np.concatenate([[0], np.cumsum(display.cell_sizes)])
    return [np.arange(a, b) for a, b in pairwise(edges)]


def dense_mean(values, order, cells):
    """Mean over all pairs of two cells, with loops."""
    matrix = np.empty((len(cells), len(cells)))
    for a, rows in enumerate(cells):
        for b, columns in enumerate(cells):
            pairs = [values[order[i], order[j]] for i in rows for j in columns]
            matrix[a, b] = sum(pairs) / len(pairs)
    return matrix


@pytest.mark.parametrize("max_cells", [4, 11, 30, 96, 1000])
def test_cells_hold_the_mean_over_pairs(model, max_cells):
    display = ConsensusMatrixDisplay.from_estimator(model, max_cells=max_cells)
    cells = cells_of(display)
    assert len(cells) == min(max_cells, 96)
    np.testing.assert_allclose(
        display.matrix, dense_mean(model.consensus_matrix(), display.order, cells), atol=1e-12
    )


@pytest.mark.parametrize("max_cells", [3, 7, 22])
def test_cells_hold_the_mean_over_the_pairs_that_were_seen(max_cells):
    partitions, y = make_partitions(
        (12, 6, 4), n_partitions=4, noise=0.2, missing=0.6, random_state=3
    )
    weights = np.array([4, 3, 2, 1]) / 10
    display = ConsensusMatrixDisplay.from_partitions(
        partitions, y, weights=weights, max_cells=max_cells
    )
    cells = cells_of(display)
    together, both = np.zeros((max_cells, max_cells)), np.zeros((max_cells, max_cells))
    for labelling, weight in zip(partitions.T, weights, strict=True):
        for a, rows in enumerate(cells):
            for b, columns in enumerate(cells):
                for i in labelling[display.order[rows]]:
                    for j in labelling[display.order[columns]]:
                        both[a, b] += weight * (i >= 0 and j >= 0)
                        together[a, b] += weight * (i >= 0 and i == j)
    expected = np.divide(together, both, out=np.full_like(both, np.nan), where=both > 0)
    np.testing.assert_allclose(display.matrix, expected)


def test_a_pair_never_seen_is_nan_and_drawn_as_unknown():
    table = [[0, 0, -1, -1, 1], [-1, -1, 0, 0, 1]]
    display = ConsensusMatrixDisplay.from_partitions(table, [0, 0, 1, 1, 2])
    assert np.isnan(display.matrix).sum() == 8
    assert np.ma.getmaskarray(display.mesh_.get_array()).sum() == 8
    assert display.ax_.get_legend().get_texts()[0].get_text() == "never seen together"
    display.figure_.canvas.draw()


def test_no_legend_where_all_pairs_were_seen(model):
    assert ConsensusMatrixDisplay.from_estimator(model).ax_.get_legend() is None


@pytest.mark.parametrize("max_cells", [1, 3, 5, 17, 50, 400, 2000])
@pytest.mark.parametrize("sizes", [(1000,), (900, 60, 40), (500, 499, 1), (1,) * 40, (3, 1, 2)])
def test_cells_respect_clusters(sizes, max_cells):
    rng = np.random.RandomState(0)
    labels = rng.permutation(np.repeat(np.arange(len(sizes)) * 2, sizes))  # numbers with gaps
    confidence = rng.uniform(size=len(labels))
    order, groups, cell_labels = divide_into_cells(labels, confidence, max_cells)
    n_cells = len(cell_labels)
    assert sorted(order) == list(range(len(labels)))
    assert n_cells == min(max(max_cells, len(sizes)), len(labels))
    assert np.array_equal(np.unique(groups), np.arange(n_cells))
    assert (np.diff(groups) >= 0).all()
    np.testing.assert_array_equal(labels[order], cell_labels[groups])  # none straddles two
    assert set(cell_labels) == set(labels)  # every cluster has one
    for cluster in np.unique(labels):
        own = confidence[order][labels[order] == cluster]
        assert (np.diff(own) <= 0).all()
        of_cluster = np.bincount(groups)[cell_labels == cluster]
        assert np.ptp(of_cluster) <= 1  # cells of one cluster are of one size


def test_cells_are_shared_out_by_size():
    labels = np.repeat([0, 1, 2], [6000, 3000, 1000])
    _, _, cell_labels = divide_into_cells(labels, np.zeros(10_000), 100)
    assert np.abs(np.bincount(cell_labels) - [60, 30, 10]).max() <= 1


def test_axes_count_samples_and_edges_are_exact(model):
    display = ConsensusMatrixDisplay.from_estimator(model, max_cells=10)
    assert display.ax_.get_xlim() == (0, 96)
    assert display.ax_.get_ylim() == (96, 0)
    edges = display.mesh_.get_coordinates()[0, :, 0]
    np.testing.assert_array_equal(edges, np.concatenate([[0], np.cumsum(display.cell_sizes)]))


def test_many_samples_take_few_cells():
    sizes = (60_000, 30_000, 9_000, 950, 50)
    partitions, y = make_partitions(sizes, n_partitions=10, noise=0.3, random_state=0)
    display = ConsensusMatrixDisplay.from_partitions(partitions, y, max_cells=200)
    assert display.matrix.shape == (200, 200)
    assert display.cell_sizes.sum() == 100_000
    assert np.isfinite(display.matrix).all()
    assert set(display.cell_labels) == set(range(5))
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == ["0", "1", "2", "3", "4"]
    places = display.ax_.get_yticks()
    assert np.diff(places).min() > 2_000  # names do not overlap


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("max_cells", [9, 400])
def test_a_precomputed_similarity_is_averaged(storage, max_cells):
    X, _ = make_blobs(40, centers=3, random_state=0)
    kernel = 5 * rbf_kernel(X)
    model = NMFConsensus(3, affinity="precomputed", random_state=0).fit(storage(kernel))
    display = ConsensusMatrixDisplay.from_estimator(model, max_cells=max_cells)
    cells = cells_of(display)
    assert len(cells) == min(max_cells, 40)
    np.testing.assert_allclose(display.matrix, dense_mean(kernel, display.order, cells), rtol=1e-10)
    assert display.colorbar_.ax.get_ylabel().endswith("similarity")
    off_diagonal = display.matrix[~np.eye(len(cells), dtype=bool)]
    assert display.mesh_.get_clim() == (0, pytest.approx(off_diagonal.max()))


def test_partitions_are_ordered_by_any_labels():
    partitions, y = make_partitions((5, 3), n_partitions=6, noise=0.1, random_state=0)
    names = np.array(["cat", "dog"])[y]
    display = ConsensusMatrixDisplay.from_partitions(
        [list(column) for column in partitions.T], names, weights=[1, 1, 1, 0, 0, 0]
    )
    assert display.names == ["cat", "dog"]
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["cat", "dog"]
    together = np.mean([c[:, None] == c for c in partitions.T[:3]], axis=0)
    np.testing.assert_allclose(display.matrix, together[np.ix_(display.order, display.order)])


def test_partitions_and_an_estimator_of_them_give_one_picture(model):
    one = ConsensusMatrixDisplay.from_estimator(model, max_cells=30)
    other = ConsensusMatrixDisplay.from_partitions(
        model.partitions_, model.labels_, weights=model.weights_, max_cells=30
    )
    np.testing.assert_allclose(one.matrix, other.matrix)


def test_wrong_partitions_are_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ConsensusMatrixDisplay.from_partitions([[0, 1, 1]], [0, 1])
    with pytest.raises(ValueError, match="max_cells must be at least 1, got 0"):
        ConsensusMatrixDisplay.from_partitions([[0, 1, 1]], [0, 1, 1], max_cells=0)


@pytest.mark.parametrize("display", [ConsensusMatrixDisplay, ConstraintDisplay, LossCurveDisplay])
class TestEveryDisplay:
    @pytest.fixture
    def shows(self, display, model, constrained):
        """Return a fitted estimator of which there is such a picture."""
        return constrained if display is ConstraintDisplay else model

    def test_given_axes_are_used(self, display, shows):
        figure, axes = plt.subplots(1, 2)
        shown = display.from_estimator(shows, ax=axes[1])
        assert isinstance(shown, display)
        assert shown.ax_ is axes[1]
        assert shown.figure_ is figure
        assert plt.get_fignums() == [figure.number]
        assert not axes[0].has_data()
        figure.canvas.draw()

    def test_a_figure_is_made(self, display, shows):
        shown = display.from_estimator(shows)
        assert shown.figure_ is shown.ax_.figure
        again = shown.plot()
        assert again is shown
        assert len(plt.get_fignums()) == 2

    def test_a_figure_without_pyplot_will_do(self, display, shows):
        ax = matplotlib.figure.Figure().subplots()
        display.from_estimator(shows, ax=ax)
        assert plt.get_fignums() == []

    def test_an_unfitted_estimator_is_refused(self, display):
        with pytest.raises(NotFittedError):
            display.from_estimator(NMFConsensus(2))
        with pytest.raises(NotFittedError):
            display.from_estimator(SSNMFClusterer(2))

    @pytest.mark.parametrize("wrong", [KMeans(2).fit([[0], [1]]), np.eye(3), "model"])
    def test_other_objects_are_refused(self, display, wrong):
        with pytest.raises(TypeError, match=rf"estimator must be .*, got {type(wrong).__name__}"):
            display.from_estimator(wrong)

    @pytest.mark.usefixtures("without_matplotlib")
    def test_missing_matplotlib_is_named(self, display, shows):
        with pytest.raises(ImportError, match=r'pip install "nmfcluster\[plot\]"'):
            display.from_estimator(shows)


def test_options_of_the_consensus_matrix(model):
    display = ConsensusMatrixDisplay.from_estimator(
        model, cmap="viridis", colorbar=False, strip=False
    )
    assert display.colorbar_ is None
    assert display.mesh_.get_cmap().name == "viridis"
    assert display.ax_.get_ylabel() == "samples"


def test_names_keep_their_order_and_distance():
    sizes = np.array([60_000, 25_000, 8_000, 4_000, 1_800, 700, 300, 120, 50, 30])
    centres = np.cumsum(sizes) - sizes / 2
    places = spread(centres, sizes, 3_000.0, 100_000)
    assert np.diff(places).min() >= 3_000 - 1e-6
    assert places[0] == pytest.approx(centres[0])
    assert 1_499 < places[-1] <= 98_500 + 1e-6


def test_names_without_room_are_left_out():
    sizes = np.array([100, 100, 1, 1, 1, 1, 100])
    assert to_name(sizes, 10.0, 304).tolist() == list(range(7))
    assert to_name(sizes, 50.0, 304).tolist() == [0, 1, 6]
    assert len(to_name(np.ones(1000, dtype=int), 50.0, 1000)) == 20


def test_loss_curves_are_relative_to_the_lowest():
    curves = [np.array([8.0, 5.0, 4.4]), np.array([9.0, 4.0]), np.array([6.0, 6.0])]
    display = LossCurveDisplay(curves=curves).plot()
    kept, lowest, flat = (line.get_ydata() for line in display.lines_)
    np.testing.assert_allclose(kept, [1.0, 0.25, 0.1])
    np.testing.assert_allclose(lowest, [1.25, np.nan])  # 0 has no logarithm
    np.testing.assert_allclose(flat, [0.5, 0.5])
    assert display.ax_.get_yscale() == "log"
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["kept", "2 other starts"]


@pytest.mark.parametrize(
    "curves",
    [
        [np.array([5.0, 1e-9])],
        [np.array([5.0, 0.0]), np.array([3.0, 2.0])],
        [np.array([0.0, 0.0])],
        [np.array([2.0, 2.0])],
        [np.array([2.0])],
    ],
)
def test_losses_of_a_perfect_fit_can_be_drawn(curves):
    display = LossCurveDisplay(curves=curves).plot()
    assert len(display.lines_) == len(curves)
    display.figure_.canvas.draw()


def test_the_kept_start_is_on_top(model):
    display = LossCurveDisplay.from_estimator(model)
    assert len(display.lines_) == len(model.loss_curves_) == 4
    assert display.ax_.lines[-1] is display.lines_[0]
    assert len(display.lines_[0].get_ydata()) == model.n_iter_ + 1


# --- constraints --------------------------------------------------------------------------------


def signed_cells(cells, n):
    """Return the number in every cell of a triangle, by (row, column), as drawn."""
    corners = [path.vertices[:4].min(axis=0) for path in cells.get_paths()]
    values = cells.get_array()
    assert len(corners) == len(values) == n * (n + 1) // 2
    left = min(x for x, _ in corners)
    return {
        (round(row), round(x - left)): int(value)
        for (x, row), value in zip(corners, values, strict=True)
    }


def counted_by_hand(labels, pairs, must):
    """Count the pairs of a triangle one by one, with a minus if violated; -1 is no cluster."""
    clusters = sorted({label for label in labels if label >= 0})
    n = len(clusters) + any(label < 0 for label in labels)
    counts = {
        (row, column): 0
        for row in range(n)
        for column in range(n)
        if (column <= row if must else row <= column)
    }
    for i, j in pairs:
        ends = [clusters.index(x) if x >= 0 else n - 1 for x in (labels[i], labels[j])]
        known = labels[i] >= 0 and labels[j] >= 0
        together = known and labels[i] == labels[j]
        good = together if must else known and not together
        cell = (max(ends), min(ends)) if must else (min(ends), max(ends))
        counts[cell] += 1 if good else -1
    return counts


@pytest.mark.parametrize("missing", [0, 0.2])
@pytest.mark.parametrize(("k", "n_pairs"), [(1, 30), (2, 10), (5, 400), (30, 4_000)])
def test_cells_count_pairs(k, n_pairs, missing):
    rng = np.random.RandomState(k)
    y = rng.randint(max(k, 2), size=200)
    labels = np.where(rng.uniform(size=200) < 0.3, rng.randint(k, size=200), y % k) * 3
    labels[rng.uniform(size=200) < missing] = -1
    pairs = PairwiseConstraints.from_labels(y, n_pairs=n_pairs, random_state=0)
    display = ConstraintDisplay.from_labels(labels, pairs)
    n = len(display.must_link)
    assert n == k + bool(missing)
    must = counted_by_hand(labels, pairs.must_link, must=True)
    cannot = counted_by_hand(labels, pairs.cannot_link, must=False)
    assert signed_cells(display.must_link_cells_, n) == must
    assert signed_cells(display.cannot_link_cells_, n) == cannot
    must_ok, cannot_ok = pairs.satisfied(labels)
    for ok, axis_label in ((must_ok, display.ax_.get_xlabel()), (cannot_ok, top_label(display))):
        assert axis_label.endswith(f": {ok.sum():,} of {len(ok):,} satisfied")
    display.figure_.canvas.draw()


def top_label(display):
    return display.ax_.child_axes[0].get_xlabel()


def test_a_picture_of_constraints_in_full():
    labels = ["b", "a", "a", "a", "b", "b", None]
    pairs = PairwiseConstraints(
        7,
        must_link=[(1, 2), (2, 3), (0, 1), (0, 6)],  # two within a, one to b, one to nothing
        cannot_link=[(0, 2), (4, 5)],  # one between a and b, one within b
    )
    display = ConstraintDisplay.from_labels(labels, pairs)
    assert display.names == ["a", "b", "none"]
    assert display.must_link.tolist() == [[2, 1, 0], [1, 0, 1], [0, 1, 0]]
    assert display.cannot_link.tolist() == [[0, 1, 0], [1, 1, 0], [0, 0, 0]]
    assert display.must_link_cells_.get_array().tolist() == [2, -1, 0, 0, -1, 0]
    assert display.cannot_link_cells_.get_array().tolist() == [0, 1, 0, -1, 0, 0]
    assert display.ax_.get_xlabel() == "must-links: 2 of 4 satisfied"
    assert top_label(display) == "cannot-links: 1 of 2 satisfied"
    shown = [(text.get_text(), text.get_fontweight()) for text in display.texts_]
    must, cannot = [("2", "normal"), ("1", "bold"), ("1", "bold")], [("1", "normal"), ("1", "bold")]
    assert shown == must + cannot
    ticks = [display.ax_.get_yticklabels(), display.ax_.get_xticklabels()]
    for labels in [*ticks, display.ax_.child_axes[0].get_xticklabels()]:
        assert [label.get_text() for label in labels] == ["a", "b", "none"]


def test_numbers_stand_in_their_cells():
    rng = np.random.RandomState(0)
    pairs = PairwiseConstraints.from_labels(rng.randint(12, size=300), n_pairs=900, random_state=0)
    display = ConstraintDisplay.from_labels(rng.randint(12, size=300), pairs)
    display.figure_.canvas.draw()
    boxes, numbers = [], []
    for cells in (display.must_link_cells_, display.cannot_link_cells_):
        used = cells.get_array() != 0
        numbers += [str(abs(int(value))) for value in cells.get_array()[used]]
        for path, here in zip(cells.get_paths(), used, strict=True):
            if here:
                boxes.append(display.ax_.transData.transform(path.vertices[:4]))
    assert [text.get_text() for text in display.texts_] == numbers
    for text, box in zip(display.texts_, boxes, strict=True):
        extent = text.get_window_extent()
        assert extent.x0 > box[:, 0].min()
        assert extent.x1 < box[:, 0].max()
        assert extent.y0 > box[:, 1].min()
        assert extent.y1 < box[:, 1].max()


def test_satisfied_and_violated_have_colours_of_their_own():
    pairs = PairwiseConstraints(
        40, must_link=[(0, i) for i in range(1, 40)], cannot_link=[(20, 39), (20, 38)]
    )
    display = ConstraintDisplay.from_labels([0] * 39 + [1], pairs)
    many, few = (display.must_link_cells_.to_rgba(value) for value in (38, 1))
    violated = display.must_link_cells_.to_rgba(-1)
    nothing = display.must_link_cells_.to_rgba(0)
    assert many[2] > many[0] + 0.2  # blue
    assert few[2] > few[0]
    assert sum(many[:3]) < sum(few[:3])  # the more, the darker
    assert violated[0] > violated[2] + 0.2  # orange
    assert np.ptp(nothing[:3]) < 0.01  # grey
    assert display.cannot_link_cells_.to_rgba(-1) == violated  # one scale for both triangles
    patches = display.ax_.get_legend().get_patches()
    assert [patch.get_facecolor() for patch in patches] == [many, violated]


def test_an_estimator_and_its_labels_give_one_picture_of_constraints(constrained):
    one = ConstraintDisplay.from_estimator(constrained)
    other = ConstraintDisplay.from_labels(constrained.labels_, constrained.constraints_)
    np.testing.assert_array_equal(one.must_link, other.must_link)
    np.testing.assert_array_equal(one.cannot_link, other.cannot_link)
    n_violated = len(constrained.violated_must_link_), len(constrained.violated_cannot_link_)
    assert (np.tril(one.must_link, -1).sum(), one.cannot_link.trace()) == n_violated
    assert min(n_violated) > 0


def test_constraints_can_be_missing():
    display = ConstraintDisplay.from_labels([0, 0, 1], PairwiseConstraints(3, must_link=[(0, 1)]))
    assert display.ax_.get_xlabel() == "must-links: 1 of 1 satisfied"
    assert top_label(display) == "cannot-links: none"
    display.figure_.canvas.draw()


def test_where_there_is_no_room_for_numbers_the_legend_has_the_largest():
    y = np.arange(600) % 150
    pairs = PairwiseConstraints(600, [(0, 150), (0, 300), (1, 2)], [(5, 6), (155, 156), (5, 156)])
    display = ConstraintDisplay.from_labels(y, pairs)
    assert display.texts_ == []
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["satisfied, up to 3 a cell", "violated, up to 1 a cell"]
    places = display.ax_.get_yticks()
    assert 1 < len(places) < 75  # names that would overlap are left out
    small = ConstraintDisplay.from_labels(y % 3, pairs, include_values=False)
    assert small.texts_ == []


def test_wrong_constraints_are_refused():
    pairs = PairwiseConstraints(3, must_link=[(0, 1)])
    with pytest.raises(TypeError, match="constraints must be a PairwiseConstraints, got list"):
        ConstraintDisplay.from_labels([0, 0, 1], [(0, 1)])
    with pytest.raises(ValueError, match="n_samples=3, got 2"):
        ConstraintDisplay.from_labels([0, 0], pairs)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (999, "999"),
        (1000, "1.0k"),
        (1234, "1.2k"),
        (9949, "9.9k"),
        (9951, "10k"),
        (99_900, "100k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (123_456_789, "123M"),
        (2_000_000_000, "2.0G"),
    ],
)
def test_numbers_are_shortened(number, text):
    assert shorten(number) == text
