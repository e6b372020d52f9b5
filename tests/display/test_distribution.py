"""Pictures of the distribution of the co-association."""

import numpy as np
import pytest

from nmfcluster import NMFConsensus, NMFMetaCluster
from nmfcluster.datasets import make_partitions
from nmfcluster.display import ConsensusCDFDisplay
from nmfcluster.metrics import pac_score, pair_consensus

TABLES = {k: make_partitions(60, n_clusters=k, noise=0.2, random_state=0)[0] for k in (2, 3, 4)}


def test_curves_are_the_shares_of_pairs():
    display = ConsensusCDFDisplay.from_partitions(TABLES)
    assert len(display.lines_) == 3
    for line, table in zip(display.lines_, TABLES.values(), strict=True):
        values = pair_consensus(table)
        x, heights = line.get_data()
        assert x[0] == 0
        assert x[-1] == 1
        for at, height in zip(x[1:], heights[1:], strict=True):
            assert height == pytest.approx(np.mean(values <= at))


def test_figures_are_those_of_the_distributions():
    display = ConsensusCDFDisplay.from_partitions(TABLES)
    areas = [1 - pair_consensus(table).mean() for table in TABLES.values()]
    assert list(display.areas_.values()) == pytest.approx(areas)
    growth = [areas[0], areas[1] / areas[0] - 1, areas[2] / areas[1] - 1]
    assert list(display.deltas_.values()) == pytest.approx(growth)
    for k, table in TABLES.items():
        assert display.pac_[k] == pytest.approx(pac_score(table))
        x, heights = display.lines_[list(TABLES).index(k)].get_data()
        area = np.sum(np.diff(x) * heights[:-1])  # below steps
        assert display.areas_[k] == pytest.approx(area)
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == [f"{k}, PAC {display.pac_[k]:.2f}" for k in TABLES]


def test_estimators_are_named_by_their_numbers_of_clusters():
    table = TABLES[3]
    weights = np.arange(1.0, table.shape[1] + 1)
    models = [
        NMFConsensus(k, affinity="partitions", weights=weights, random_state=0).fit(table)
        for k in (2, 3)
    ]
    display = ConsensusCDFDisplay.from_estimators(iter(models), n_pairs=500)
    assert list(display.distributions) == ["2 clusters", "3 clusters"]
    expected = pair_consensus(table, weights=weights, n_pairs=500)
    np.testing.assert_allclose(display.distributions["3 clusters"], expected)


def test_runs_of_nmf_have_a_distribution_too():
    X = np.random.default_rng(0).uniform(size=(30, 8))
    model = NMFMetaCluster(2, n_estimators=4, random_state=0).fit(X)
    assert len(ConsensusCDFDisplay.from_estimators([model]).lines_) == 1


def test_it_is_drawn_where_it_is_asked_to_be():
    from matplotlib.figure import Figure

    ax = Figure().subplots()
    assert ConsensusCDFDisplay.from_partitions(TABLES, ax=ax).ax_ is ax


def test_partitions_of_one_cluster_have_no_area_to_grow():
    tables = {name: np.zeros((6, 2), dtype=int) for name in ("a", "b")}
    display = ConsensusCDFDisplay.from_partitions(tables)
    assert display.areas_ == {"a": 0, "b": 0}
    assert display.deltas_ == {"a": 0, "b": 0}
    display.figure_.canvas.draw()
