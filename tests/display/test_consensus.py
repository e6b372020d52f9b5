"""Pictures of a consensus: what is drawn, and where."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import raises_naming
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import NMFConsensus, NMFMetaCluster
from nmfcluster.datasets import make_biclusters, make_partitions
from nmfcluster.display import ConsensusMatrixDisplay


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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("max_cells", [4, 11, 1000])
def test_cells_hold_the_mean_over_pairs(consensus, max_cells):
    display = ConsensusMatrixDisplay.from_estimator(consensus, max_cells=max_cells)
    cells = cells_of(display)
    assert len(cells) < max_cells + 4
    np.testing.assert_allclose(
        display.matrix,
        dense_mean(consensus.consensus_matrix(), display.order, cells),
        atol=1e-12,
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("max_cells", [3, 22])
def test_cells_hold_the_mean_over_the_pairs_that_were_seen(max_cells):
    partitions, y = make_partitions(
        (12, 6, 4), n_partitions=4, noise=0.2, missing=0.6, random_state=3
    )
    weights = np.array([4, 3, 2, 1]) / 10
    display = ConsensusMatrixDisplay.from_partitions(
        partitions, y, weights=weights, max_cells=max_cells
    )
    cells = cells_of(display)
    together, both = np.zeros((2, len(cells), len(cells)))
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


def test_axes_count_samples_and_edges_are_exact(consensus):
    display = ConsensusMatrixDisplay.from_estimator(consensus, max_cells=10)
    assert display.ax_.get_legend() is None  # all pairs were seen
    assert display.ax_.get_xlim() == (0, 96)
    assert display.ax_.get_ylim() == (96, 0)
    edges = display.mesh_.get_coordinates()[0, :, 0]
    np.testing.assert_array_equal(
        edges, np.concatenate([[0], np.cumsum(display.cell_sizes)])
    )


def test_many_samples_take_few_cells():
    sizes = (6_000, 3_000, 900, 95, 5)
    partitions, y = make_partitions(sizes, n_partitions=10, noise=0.3, random_state=0)
    display = ConsensusMatrixDisplay.from_partitions(partitions, y, max_cells=200)
    assert 195 < len(display.matrix) <= 200
    assert display.cell_sizes.sum() == 10_000
    assert np.isfinite(display.matrix).all()
    assert set(display.cell_labels) == set(range(5))
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == ["0", "1", "2", "3"]  # there is no room for the fifth
    places = display.ax_.get_yticks()
    assert np.diff(places).min() > 200  # names do not overlap


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("storage", "max_cells"), [(np.asarray, 400), (sp.csr_matrix, 9)]
)
def test_a_precomputed_similarity_is_averaged(storage, max_cells):
    X, _ = make_blobs(40, centers=3, random_state=0)
    kernel = 5 * rbf_kernel(X)
    model = NMFConsensus(3, affinity="precomputed", random_state=0).fit(storage(kernel))
    display = ConsensusMatrixDisplay.from_estimator(model, max_cells=max_cells)
    cells = cells_of(display)
    assert len(cells) <= max_cells
    np.testing.assert_allclose(
        display.matrix, dense_mean(kernel, display.order, cells), rtol=1e-10
    )
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
    np.testing.assert_allclose(
        display.matrix, together[np.ix_(display.order, display.order)]
    )


def test_samples_in_no_cluster_come_last_by_any_labels():
    table = [[0, 0, 1, 1, 1], [1, 1, 0, 0, 1]]
    for labels in ([3, -1, 5, 5, 3], ["a", None, "b", "b", "a"]):
        display = ConsensusMatrixDisplay.from_partitions(table, labels)
        assert display.order[-1] == 1
        assert display.names == [*map(str, sorted({labels[0], labels[2]})), "none"]
        assert display.ax_.get_yticklabels()[-1].get_text() == "none"


def test_partitions_and_an_estimator_of_them_give_one_picture(consensus):
    one = ConsensusMatrixDisplay.from_estimator(consensus, max_cells=30)
    other = ConsensusMatrixDisplay.from_partitions(
        consensus.partitions_,
        consensus.labels_,
        weights=consensus.weights_,
        max_cells=30,
    )
    np.testing.assert_allclose(one.matrix, other.matrix)


def test_the_consensus_of_the_runs_is_shown(outside, biclusters):
    display = ConsensusMatrixDisplay.from_estimator(biclusters)
    C = biclusters.consensus_matrix()[display.order][:, display.order]
    np.testing.assert_allclose(display.matrix, C, equal_nan=True)
    assert display.value_name == "co-association"
    labels = biclusters.labels_[display.order]
    assert (
        labels[-outside:] == -1
    ).all()  # samples in no cluster come last, and are named
    assert (labels[:-outside] >= 0).all()
    assert [text.get_text() for text in display.ax_.get_yticklabels()][-1] == "none"
    # rows of zeros are never seen with others
    assert display.ax_.get_legend() is not None


def test_without_a_sample_in_no_cluster_none_is_named():
    X, _, _ = make_biclusters(random_state=0)
    model = NMFMetaCluster(4, n_estimators=4, random_state=0).fit(X)
    display = ConsensusMatrixDisplay.from_estimator(model, max_cells=10)
    assert set(display.cell_labels) == {0, 1, 2, 3}


def test_wrong_partitions_are_refused():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        ConsensusMatrixDisplay.from_partitions([[0, 1, 1]], [0, 1])
    with raises_naming(ValueError, "max_cells", "0"):
        ConsensusMatrixDisplay.from_partitions([[0, 1, 1]], [0, 1, 1], max_cells=0)


def test_other_estimators_show_the_chance_of_being_together(constrained):
    display = ConsensusMatrixDisplay.from_estimator(constrained, max_cells=7)
    P = constrained.membership_
    expected = dense_mean(P @ P.T, display.order, cells_of(display))
    np.testing.assert_allclose(display.matrix, expected, rtol=1e-6)
    assert display.value_name == "co-membership"
