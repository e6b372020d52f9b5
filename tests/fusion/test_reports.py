"""What a fusion tells beside its clusters, against the formulas written out."""

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.literal import (
    literal_divergence,
    literal_graph,
    literal_told,
    literal_told_of_clusters,
)
from fusion.shared import default_model, model, problem
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from nmfcluster import SimilarityFusionNMF
from nmfcluster.fusion.kl_loss import explained_by_clusters

SOURCES, Y = problem()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("criterion", ["kl", "cross_entropy"])
def test_fused_similarity_is_the_mixture(criterion):
    fitted = model(criterion=criterion).fit(None, similarities=SOURCES)
    weighted = [w * S / S.sum() for w, S in zip(fitted.weights_, SOURCES, strict=True)]
    assert_allclose(fitted.fused_similarity(), 43 * sum(weighted))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("weights", [None, [1, 0, 3]])
def test_fused_similarity_is_the_graph_of_the_summed_residuals(weights):
    fitted = default_model(weights=weights).fit(None, similarities=SOURCES)
    fused = fitted.fused_similarity()
    assert sp.issparse(fused)
    A, _ = literal_graph(SOURCES, fitted.weights_, 6)
    assert_allclose(fused.toarray(), 43 * A / A.sum(), rtol=1e-4, atol=1e-6)
    rows, columns = [3, -1], slice(0, 20, 2)
    part = fitted.fused_similarity(rows, columns)
    assert_array_equal(part.toarray(), fused.toarray()[rows][:, columns])


def shares(told):
    """Return the share of every source in what is told of every cluster, of (L, k)."""
    told = np.maximum(np.transpose(told), 0)
    return told / told.sum(axis=1, keepdims=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("storage", "symmetric"), [(np.asarray, True), (sp.csr_array, False)]
)
@pytest.mark.usefixtures("as_given")
def test_contributions_to_a_mixture(storage, symmetric):
    sources = problem(cut=0.1)[0]
    fitted = model(symmetric=symmetric, n_clusters=2, eta=1.0)
    fitted.fit(None, similarities=list(map(storage, sources)))
    W, H = fitted._sources_.row_column_factors()
    told = [
        literal_told_of_clusters(w * S / S.sum(), W, H)
        for w, S in zip(fitted.weights_, sources, strict=True)
    ]
    expected = shares(told)[fitted._order_]
    assert_allclose(fitted.source_contributions(), expected, rtol=1e-9)


@pytest.mark.usefixtures("as_given")
def test_contributions_to_the_fused_graph():
    """Every source has its part of every entry, which can be negative: they add up to the graph."""
    fitted = default_model(n_clusters=2, weights=[1, 0, 3]).fit(
        None, similarities=SOURCES
    )
    W, H = fitted._sources_.row_column_factors()
    R, parts = literal_told(SOURCES, fitted.weights_)
    A, _ = literal_graph(SOURCES, fitted.weights_, 6)
    told = [
        literal_told_of_clusters(
            np.where(A > 0, part / np.where(A > 0, R, 1), 0) * A, W, H
        )
        for part in parts
    ]
    assert_allclose(
        fitted.source_contributions(), shares(told)[fitted._order_], atol=1e-3
    )


@pytest.mark.usefixtures("as_given")
def test_what_all_clusters_are_told_is_what_is_explained():
    """Of one source, whose margins the model keeps: what there is, less what is left."""
    fitted = model(tol=-1.0, max_iter=100).fit(None, similarities=SOURCES[:1])
    P = SOURCES[0] / SOURCES[0].sum()
    told = explained_by_clusters(P, *fitted._sources_.row_column_factors())
    r = P.sum(axis=1)
    there = literal_divergence(P, np.outer(r, r))
    assert_allclose(told.sum(), there - fitted.source_losses_[0], rtol=1e-3)


def three_groups(n=90):
    """Draw two views of three groups; in the second, one of these is spread over all."""
    rng = np.random.RandomState(0)
    y = np.arange(n) % 3
    one, two = (6 * np.eye(3)[y] + rng.normal(size=(n, 3)) for _ in range(2))
    two[y == 0] = 2 + 3 * rng.normal(size=((y == 0).sum(), 3))
    return one, two, y


def test_clusters_are_told_by_the_views_that_show_them():
    one, two, y = three_groups()
    fitted = SimilarityFusionNMF(3, affinity="nearest_neighbors").fit(
        {"one": one, "two": two}
    )
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    shares = fitted.source_contributions()
    assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    spread = fitted.labels_[y == 0][0]
    others = np.arange(3) != spread
    assert shares[spread, 0] > shares[others, 0].max()


@pytest.mark.filterwarnings("ignore:No two sources agree")
def test_unexplained_sources_contribute_nothing():
    one, _, _ = three_groups()
    noise = np.random.RandomState(1).normal(size=(90, 5))
    fitted = SimilarityFusionNMF(3).fit({"one": one, "noise": noise})
    assert fitted.weights_[1] == 0
    assert_allclose(fitted.source_contributions(), [[1, 0]] * 3)


def test_ranked_sources():
    one, two, _ = three_groups()
    views = {
        "noise": np.random.RandomState(1).normal(size=(90, 5)),
        "part": two,
        "all": one,
    }
    fitted = SimilarityFusionNMF(3).fit(views)
    ranked = fitted.rank_sources()
    assert [source.name for source in ranked] == ["all", "part", "noise"]
    assert [source.weight for source in ranked] == fitted.weights_[::-1].tolist()
    assert [source.loss for source in ranked] == fitted.source_losses_[::-1].tolist()
    alone = SimilarityFusionNMF(3).fit({"all": one})
    agreement = normalized_mutual_info_score(alone.labels_, fitted.labels_)
    assert ranked[0].agreement == pytest.approx(agreement)
    assert ranked[0].agreement > 0.9
    assert ranked[2].agreement < 0.3


@pytest.mark.filterwarnings("ignore:1 pair of sources are nearly equal")
def test_ranked_sources_count_the_objects_that_they_saw():
    partial = SOURCES[0].copy()
    partial[:10] = partial[:, :10] = np.nan
    fitted = SimilarityFusionNMF(3).fit(None, similarities=[SOURCES[0], partial])
    assert min(source.agreement for source in fitted.rank_sources()) > 0.8


def test_reports_of_a_part_are_of_the_objects_that_were_fitted():
    fitted = SimilarityFusionNMF(3, max_samples=30, random_state=0)
    fitted.fit(None, similarities=SOURCES)
    assert fitted.fused_similarity().shape == (30, 30)
    assert len(fitted.rank_sources()) == 3
