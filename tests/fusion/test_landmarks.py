"""Similarities of all objects to a few of them: two factors, found on the graph of both."""

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.shared import assert_same_fit
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import SimilarityFusionNMF, SimilarityStack

RNG = np.random.RandomState(0)
Y = RNG.permutation(np.arange(150) % 3)
TABLES = {name: 4 * np.eye(3)[Y] + RNG.normal(size=(150, 3)) for name in ("one", "two")}
FEW = np.sort(RNG.permutation(150)[:40])
OBLONG = [rbf_kernel(table, table[FEW], gamma=0.1) for table in TABLES.values()]


def fusion(**parameters):
    return SimilarityFusionNMF(3, symmetric=False, **parameters)


def model_of(fitted, n):
    """Return the two factors of the model of the objects and the landmarks, W and V."""
    Z = fitted._fusion_.best.factors[0][0]
    return 2 * Z[:n], 2 * Z[n:]


def literal_step(P, W, V):
    """Return the factors after an EM step, by loops over the pairs."""
    q = V.sum(axis=0)
    new_W, new_V = np.zeros_like(W), np.zeros_like(V)
    for i in range(len(W)):
        for j in range(len(V)):
            joint = W[i] * V[j] / q
            share = P[i, j] * joint / joint.sum()
            new_W[i] += share
            new_V[j] += share
    return new_W, new_V


def divergence(P, M):
    return float((P * np.log(P / M)).sum())


@pytest.mark.usefixtures("as_given")
def test_the_model_has_two_factors():
    (S, _) = OBLONG
    fitted = fusion(criterion="kl", max_iter=120, tol=-1.0).fit([S])
    P = S / S.sum()
    W, V = model_of(fitted, 150)
    assert_allclose([W.sum(), V.sum()], 1)
    assert_allclose(W.sum(axis=0), V.sum(axis=0), rtol=1e-6)  # a probability of every cluster
    assert_allclose(fitted.source_losses_, divergence(P, W / W.sum(axis=0) @ V.T), rtol=1e-8)
    assert_allclose(np.diag(fitted.core_), np.sort(V.sum(axis=0))[::-1], atol=0.1)


@pytest.mark.usefixtures("as_given")
def test_a_step_is_the_one_of_both_factors():
    """From where the first of two fits ends, three literal steps lose no less than the next."""
    P = OBLONG[0] / OBLONG[0].sum()
    first = fusion(criterion="kl", max_iter=1, tol=-1.0).fit([OBLONG[0]])
    second = fusion(criterion="kl", max_iter=2, tol=-1.0).fit([OBLONG[0]])
    W, V = model_of(first, 150)
    for _ in range(2):
        W, V = literal_step(P, W, V)
    after = divergence(P, W / W.sum(axis=0) @ V.T)
    assert second.source_losses_[0] <= after + 1e-9
    assert after < first.source_losses_[0]


@pytest.mark.usefixtures("as_given")
def test_losses_are_relative_to_independence():
    fitted = fusion().fit(OBLONG)
    W, V = model_of(fitted, 150)
    M = W / W.sum(axis=0) @ V.T
    for S, loss in zip(OBLONG, fitted.source_losses_, strict=True):
        kept = np.where(np.sort(S, axis=1)[:, -6, None] <= S, S, 0)
        kept /= np.sqrt(np.outer(kept.sum(axis=1), kept.sum(axis=0)))
        P = kept / kept.sum()
        i, j = np.nonzero(P)
        r, c = P.sum(axis=1), P.sum(axis=0)
        missed = (P[i, j] * np.log(P[i, j] / M[i, j])).sum()
        there = (P[i, j] * np.log(P[i, j] / (r[i] * c[j]))).sum()
        assert_allclose(loss, missed / there, rtol=1e-4)
    assert fitted.n_nearest_ == (6, 6)  # the root of 40
    assert (np.diff(fitted.loss_curve_) <= 1e-7).all()


@pytest.mark.parametrize("criterion", ["relative", "kl", "cross_entropy"])
def test_clusters_and_new_objects(criterion):
    fitted = fusion(criterion=criterion, eta=np.inf).fit(OBLONG)
    assert adjusted_rand_score(Y, fitted.labels_) > 0.9
    assert adjusted_rand_score(fitted.predict(SimilarityStack(OBLONG)), fitted.labels_) > 0.9
    assert_allclose(fitted.membership_.sum(axis=1), 1)
    assert fitted.n_features_in_ == 40
    assert_array_equal(fitted.sample_indices_, np.arange(150))


@pytest.mark.usefixtures("as_given")
def test_columns_are_the_objects_that_are_drawn():
    square = [rbf_kernel(table, gamma=0.1) for table in TABLES.values()]
    fitted = fusion(max_samples=40, random_state=0).fit(SimilarityStack(square))
    chosen = fitted._reader_._chosen
    assert_same_fit(fitted, fusion().fit(SimilarityStack(square)[:, chosen]))
    assert adjusted_rand_score(Y, fitted.labels_) > 0.9
    assert_array_equal(fitted.sample_indices_, np.arange(150))


def test_features_and_views():
    for affinity in ("rbf", "precomputed"):
        fitted = fusion(affinity=affinity, max_samples=50, random_state=0).fit(TABLES)
        assert adjusted_rand_score(Y, fitted.labels_) > 0.9
        assert adjusted_rand_score(Y, fitted.predict(TABLES)) > 0.9
    one = fusion(affinity=["rbf", "linear"], max_samples=0.3, random_state=0)
    assert adjusted_rand_score(Y, one.fit(abs(TABLES["one"])).labels_) > 0.7


def test_noise_has_no_weight():
    noise = RNG.normal(size=(150, 5))
    fitted = fusion().fit([*OBLONG, rbf_kernel(noise, noise[FEW], gamma=0.1)])
    assert fitted.weights_[2] == 0
    assert adjusted_rand_score(Y, fitted.labels_) > 0.9


def test_dense_and_sparse_are_the_same():
    graphs = [np.where(S > 0.3, S, 0) for S in OBLONG]
    dense, sparse = fusion().fit(graphs), fusion().fit(list(map(sp.csr_array, graphs)))
    assert dense.n_nearest_ == sparse.n_nearest_
    assert_same_fit(dense, sparse)


def test_reports():
    fitted = fusion().fit(OBLONG)
    fused = fitted.fused_similarity()
    assert fused.shape == (150, 40)
    assert_allclose(fused.sum(), 150, rtol=1e-5)
    assert fitted.fused_similarity([0, 1], slice(5)).shape == (2, 5)
    assert_allclose(fitted.source_contributions().sum(axis=1), 1, rtol=1e-6)
    assert all(source.agreement > 0.7 for source in fitted.rank_sources())


def test_missing_objects_are_refused():
    holes = OBLONG[0].copy()
    holes[3] = np.nan
    with pytest.raises(ValueError, match="samples are missing from source 'source1' of X"):
        fusion().fit(SimilarityStack([OBLONG[1], holes]))


def test_a_symmetric_model_needs_all_columns():
    with pytest.raises(ValueError, match=r"in shape \(n, n, L\).*symmetric=False"):
        SimilarityFusionNMF(3).fit(OBLONG)
