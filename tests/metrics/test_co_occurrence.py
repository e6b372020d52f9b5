"""How often samples are with the members of clusters, against the matrix of all pairs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.datasets import make_partitions
from nmfcluster.metrics import cluster_consensus, item_consensus


def literal(table, labels, weights):
    """Return the item consensus by a loop over all pairs."""
    clusters = np.unique(labels[labels >= 0])
    together, seen = np.zeros((2, len(table), len(table)))
    for column, w in zip(table.T, weights, strict=True):
        both = np.outer(column >= 0, column >= 0)
        seen += w * both
        together += w * (both & (column[:, None] == column))
    np.fill_diagonal(seen, 0)
    np.fill_diagonal(together, 0)
    item = np.full((len(table), len(clusters)), np.nan)
    for c, name in enumerate(clusters):
        inside = labels == name
        for i in range(len(table)):
            if seen[i, inside].sum() > 0:
                item[i, c] = together[i, inside].sum() / seen[i, inside].sum()
    return item


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.5]), st.booleans())
def test_figures_are_means_over_pairs(seed, missing, weighted):
    rng = np.random.default_rng(seed)
    table, _ = make_partitions(
        (6, 5), n_partitions=3, missing=missing, random_state=seed
    )
    weights = rng.uniform(0.1, 1, size=3) if weighted else np.ones(3)
    labels = rng.integers(-1, 3, size=11)
    labels[0] = 1
    item = literal(table, labels, weights)
    assert_allclose(item_consensus(table, labels, weights=weights), item, atol=1e-12)


def test_a_sample_alone_has_no_others():
    table = [[0, 0, 1], [0, 0, 1]]
    assert_array_equal(item_consensus(table, [0, 0, 1])[2], [0, np.nan])


def test_names_of_clusters_are_sorted():
    table, y = make_partitions((9, 6, 5), noise=0.3, random_state=0)
    names = np.array(["pear", "apple", "quince"])[y]
    columns = [1, 0, 2]  # apple, pear, quince
    assert_array_equal(
        item_consensus(table, names), item_consensus(table, y)[:, columns]
    )
    assert_array_equal(
        cluster_consensus(table, names), cluster_consensus(table, y)[columns]
    )


def test_duplicated_partitions_change_nothing():
    table, y = make_partitions((20, 10), noise=0.2, random_state=0)
    assert_allclose(
        item_consensus(np.hstack([table, table]), y), item_consensus(table, y)
    )
