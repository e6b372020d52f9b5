"""Similarities of all objects to a few of them: two factors, found on the graph of both."""

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.literal import (
    literal_divergence,
    literal_graph,
    literal_left,
    literal_step,
)
from fusion.shared import assert_same_fit, blobs, default_model
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import SimilarityFusionNMF, SimilarityStack
from nmfcluster.stack import ViewStack

VIEWS, Y = blobs([60, 50, 40], 2, sep=4)
FEW = np.sort(np.random.RandomState(0).permutation(150)[:40])
SQUARE = [rbf_kernel(view, gamma=0.1) for view in VIEWS]
OBLONG = [S[:, FEW] for S in SQUARE]


def fusion(**parameters):
    return SimilarityFusionNMF(3, symmetric=False, random_state=0, **parameters)


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("as_given")
@pytest.mark.parametrize("criterion", ["agreement", "kl"])
def test_the_model_is_that_of_two_factors(criterion):
    """Both halves of the one factor have the same probability, and a step is that of both."""
    S = OBLONG[0] * np.linspace(1, 2, 150)[:, None]
    fitted = fusion(criterion=criterion, max_iter=60, tol=-1.0).fit([S])
    P = fitted.fused_similarity()
    P = (P.toarray() if sp.issparse(P) else P) / P.sum()
    Z = fitted._sources_.fusion.best.factors[0]
    W, V = 2 * Z[:150], 2 * Z[150:]
    assert_allclose([W.sum(), V.sum()], 1, rtol=1e-6)
    assert_allclose(W.sum(axis=0), V.sum(axis=0), rtol=1e-6)
    M = W / W.sum(axis=0) @ V.T
    there = literal_divergence(P, np.outer(P.sum(axis=1), P.sum(axis=0)))
    left = literal_divergence(P, M)
    assert_allclose(
        fitted.loss_, left if criterion == "kl" else left / there, rtol=1e-4
    )
    both = np.block([[np.zeros((150, 150)), P], [P.T, np.zeros((40, 40))]]) / 2
    after = literal_step(both, Z)
    assert_allclose(after[:150].sum(axis=0), after[150:].sum(axis=0), rtol=1e-9)
    assert_allclose(after, Z, atol=1e-3 * Z.max())


@pytest.mark.usefixtures("as_given")
def test_what_is_fitted_is_the_graph_of_the_residuals():
    others = [
        rbf_kernel(view, np.random.default_rng(0).normal(size=(40, 3)))
        for view in VIEWS
    ]
    fitted = fusion().fit(others)  # to what are no objects
    A, _ = literal_graph(others, fitted.weights_, 6, square=False)
    fused = fitted.fused_similarity().toarray()
    assert_allclose(fused / fused.sum(), A / A.sum(), atol=1e-6)
    W, H = fitted._sources_.row_column_factors()
    for S, loss in zip(others, fitted.source_losses_, strict=True):
        own, _ = literal_graph([S], [1], 6, square=False)
        assert_allclose(loss, literal_left(own, W, H), atol=1e-3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("criterion", ["agreement", "kl", "cross_entropy"])
def test_clusters_and_new_objects(criterion):
    fitted = fusion(criterion=criterion).fit(OBLONG)
    assert adjusted_rand_score(Y, fitted.labels_) > 0.95
    assert (
        adjusted_rand_score(fitted.predict(SimilarityStack(OBLONG)), fitted.labels_)
        > 0.95
    )
    assert_allclose(fitted.membership_.sum(axis=1), 1, rtol=1e-6)
    assert fitted.n_features_in_ == 40
    assert_array_equal(fitted.sample_indices_, np.arange(150))
    assert fitted.fused_similarity().shape == (150, 40)
    assert_allclose(fitted.fused_similarity().sum(), 150, rtol=1e-5)
    assert fitted.fused_similarity([0, 1], slice(5)).shape == (2, 5)
    assert_allclose(fitted.source_contributions().sum(axis=1), 1, rtol=1e-6)
    assert all(source.agreement > 0.7 for source in fitted.rank_sources())


@pytest.mark.usefixtures("as_given")
def test_columns_are_the_objects_that_are_drawn():
    fitted = fusion(max_samples=40, criterion="kl").fit(SimilarityStack(SQUARE))
    chosen = fitted._sources_.reader._chosen
    alone = fusion(criterion="kl").fit(SimilarityStack(SQUARE)[:, chosen])
    assert_same_fit(fitted, alone)
    assert_array_equal(fitted.sample_indices_, np.arange(150))


def test_landmarks_are_judged_by_how_they_compare_with_each_other():
    fitted = fusion(max_samples=40).fit(SimilarityStack(SQUARE))
    chosen = fitted._sources_.reader._chosen
    among = default_model().fit([S[np.ix_(chosen, chosen)] for S in SQUARE])
    assert_allclose(fitted.agreement_.scores, among.agreement_.scores, rtol=1e-5)
    assert adjusted_rand_score(Y, fitted.labels_) > 0.95


def noise_kernels(n, number, columns):
    """Return kernels of noise to some of the objects, in which these are the most alike."""
    rng = np.random.default_rng(0)
    for width in range(1, number + 1):
        X = rng.normal(size=(n, width))
        yield rbf_kernel(X, X[columns])


def test_that_objects_are_like_themselves_is_no_agreement():
    """Columns are some of the objects, in an order that nobody knows: all sources have them."""
    columns = np.random.default_rng(1).permutation(150)[:30]
    noise = list(noise_kernels(150, 4, columns))
    with warns_naming(UserWarning, "sources"):
        fitted = fusion().fit(noise)
    assert fitted.agreement_.scores.max() < 5
    real = [S[:, columns] for S in SQUARE]
    fitted = fusion().fit([noise[0], real[0], noise[1], real[1]])
    assert_array_equal(fitted.weights_, [0, 0.5, 0, 0.5])
    assert adjusted_rand_score(Y, fitted.labels_) > 0.95


@pytest.mark.sampled(2)
@pytest.mark.parametrize("affinity", ["rbf", "precomputed", ["linear", "rbf"]], ids=str)
def test_features_and_views(affinity):
    views = ViewStack({"one": VIEWS[0], "two": VIEWS[1]})
    fitted = fusion(affinity=affinity, max_samples=50).fit(views)
    assert adjusted_rand_score(Y, fitted.labels_) > 0.9
    assert adjusted_rand_score(Y, fitted.predict(views)) > 0.9
    assert_array_equal(fusion(affinity=affinity, max_samples=1.0).fit(views).sample_indices_,
                       np.arange(150))  # fmt: skip


def test_noise_has_no_weight():
    noise = np.random.default_rng(0).normal(size=(150, 5))
    fitted = fusion().fit(
        [OBLONG[0], rbf_kernel(noise, noise[FEW], gamma=0.1), OBLONG[1]]
    )
    assert_array_equal(fitted.weights_, [0.5, 0, 0.5])
    assert adjusted_rand_score(Y, fitted.labels_) > 0.95


@pytest.mark.sampled(2)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_missing_objects_are_told_by_the_other_sources(storage):
    lost = [[3, 8, 30], [50, 90]]
    holes = [S.copy() for S in OBLONG]
    for S, gone in zip(holes, lost, strict=True):
        S[gone] = np.nan
    fitted = fusion().fit(SimilarityStack(list(map(storage, holes))))
    assert (fitted.labels_ >= 0).all()
    assert adjusted_rand_score(Y, fitted.labels_) > 0.9
    holes[1][lost[0]] = np.nan
    with warns_naming(UserWarning, "3 objects"):
        fitted = fusion().fit(SimilarityStack(list(map(storage, holes))))
    assert_array_equal(np.flatnonzero(fitted.labels_ < 0), lost[0])
    square = [S.copy() for S in SQUARE]
    for S, gone in zip(square, lost, strict=True):
        S[gone] = S[:, gone] = np.nan
    for max_samples in (None, 60):
        fitted = fusion(max_samples=max_samples).fit(list(map(storage, square)))
        assert (fitted.labels_ >= 0).all()
        assert adjusted_rand_score(Y, fitted.labels_) > 0.9


def test_a_symmetric_model_needs_all_columns():
    with raises_naming(ValueError, "(n, n, L)", "symmetric=False"):
        SimilarityFusionNMF(3).fit(OBLONG)
