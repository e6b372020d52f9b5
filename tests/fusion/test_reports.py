"""What a fusion tells beside its clusters, against the formulas written out."""

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.shared import model, problem
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from nmfcluster import SimilarityFusionNMF

SOURCES, Y = problem()


def as_array(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


@pytest.mark.parametrize("criterion", ["kl", "cross_entropy"])
def test_fused_similarity_is_the_mixture(criterion):
    fitted = model(criterion=criterion).fit(None, similarities=SOURCES)
    weighted = [w * S / S.sum() for w, S in zip(fitted.weights_, SOURCES, strict=True)]
    assert_allclose(fitted.fused_similarity(), 43 * sum(weighted))


def test_fused_similarity_of_graphs_is_sparse():
    fitted = SimilarityFusionNMF(3).fit(None, similarities=SOURCES)
    fused = fitted.fused_similarity()
    assert sp.issparse(fused)
    assert_allclose(fused.sum(), 43, rtol=1e-5)
    assert_allclose(fused.toarray(), fused.T.toarray())
    rows, columns = [3, -1], slice(0, 20, 2)
    part = fitted.fused_similarity(rows, columns)
    assert_array_equal(part.toarray(), fused.toarray()[rows][:, columns])
    within = Y[:, None] == Y
    assert as_array(fused)[within].sum() > 3 * as_array(fused)[~within].sum()


def told_by_loops(sources, shares, W, H):
    """Return e of every cluster and source, from the definition."""
    M = W @ H.T
    told = np.zeros((W.shape[1], len(sources)))
    for source, (S, share) in enumerate(zip(sources, shares, strict=True)):
        P = S / S.sum()
        for i, j in zip(*np.nonzero(P), strict=True):
            gain = np.log(M[i, j] / (M[i].sum() * M[:, j].sum()))
            told[:, source] += share * P[i, j] * W[i] * H[j] / M[i, j] * gain
    return told


@pytest.mark.parametrize(("storage", "symmetric"), [(np.asarray, True), (sp.csr_array, False)])
@pytest.mark.usefixtures("as_given")
def test_contributions(storage, symmetric):
    sources = problem(cut=0.1)[0]
    fitted = model(symmetric=symmetric, n_clusters=2, eta=1.0)
    fitted.fit(None, similarities=list(map(storage, sources)))
    Z = fitted._fusion_.best.factors[0]
    W, H = Z[0], Z[-1] / Z[-1].sum(axis=0)
    told = told_by_loops(sources, fitted.weights_, W, H)[fitted._order_]
    told = np.maximum(told, 0)
    expected = told / told.sum(axis=1, keepdims=True)
    assert_allclose(fitted.source_contributions(), expected, rtol=1e-9)


def test_what_all_clusters_are_told_is_what_is_explained():
    """Of one source of full rank, whose margins the model keeps: d - c of the objective."""
    fitted = model(tol=-1.0, max_iter=100).fit(None, similarities=SOURCES[:1])
    objective = fitted._fusion_.objective
    Z = fitted._fusion_.best.factors[0]
    told = objective.mixture.told(Z[0], Z[-1] / Z[-1].sum(axis=0))
    P = SOURCES[0] / SOURCES[0].sum()
    r = P.sum(axis=1)
    there = (P * np.log(P / np.outer(r, r))).sum()
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
    fitted = SimilarityFusionNMF(3).fit({"one": one, "two": two})
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    shares = fitted.source_contributions()
    assert_allclose(shares.sum(axis=1), 1, rtol=1e-6)
    spread = fitted.labels_[y == 0][0]
    others = np.arange(3) != spread
    assert shares[spread, 0] > shares[others, 0].max()


def test_unexplained_sources_contribute_nothing():
    one, _, _ = three_groups()
    noise = np.random.RandomState(1).normal(size=(90, 5))
    fitted = SimilarityFusionNMF(3).fit({"one": one, "noise": noise})
    assert fitted.weights_[1] == 0
    assert_allclose(fitted.source_contributions(), [[1, 0]] * 3)


def test_ranked_sources():
    one, two, _ = three_groups()
    views = {"noise": np.random.RandomState(1).normal(size=(90, 5)), "part": two, "all": one}
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
