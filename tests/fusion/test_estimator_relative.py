"""The defaults of SimilarityFusionNMF: sources on one footing, as their users meet them."""

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.shared import assert_same_fit, problem
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import SimilarityFusionNMF, SimilarityStack


def noise_and_constant(n, seed=0):
    rng = np.random.default_rng(seed)
    constant = 1 + 0.05 * rng.uniform(size=(n, n))
    return [rbf_kernel(rng.normal(size=(n, 4))), constant + constant.T]


def groups(n=120, seed=0):
    """Draw two views of three groups, each dim: kernels of their features."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 3)
    views = [3 * np.eye(3)[y] + rng.normal(size=(n, 3)) for _ in range(2)]
    return [rbf_kernel(view, gamma=0.1) for view in views], y


def test_noise_and_a_constant_cost_nothing():
    sources, y = groups()
    alone = SimilarityFusionNMF(3).fit(None, similarities=sources)
    beside = SimilarityFusionNMF(3).fit(None, similarities=[*sources, *noise_and_constant(120)])
    assert adjusted_rand_score(y, alone.labels_) > 0.9
    assert adjusted_rand_score(y, beside.labels_) > 0.9
    assert_array_equal(beside.weights_[2:], 0)
    assert (beside.source_losses_[2:] > 1).all()
    assert (beside.weights_[:2] > 0.4).all()
    assert beside.n_nearest_ == (10,) * 4


def test_clusters_that_sources_share_before_those_of_one():
    """Each of two sources tells two pairs of groups apart: four clusters of one have less loss."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 4
    views = [1.6 * part[:, None] + rng.normal(size=(200, 20)) for part in (y // 2, y % 2)]
    sources = [rbf_kernel(view, gamma=0.02) for view in views]
    fitted = SimilarityFusionNMF(4).fit(None, similarities=sources)
    assert (fitted.source_losses_ < 1).all()
    assert adjusted_rand_score(y, fitted.labels_) > 0.5
    assert min(curve.min() for curve in fitted.loss_curves_) < fitted.loss_ - 0.01


def test_small_clusters_have_fewer_neighbours():
    rng = np.random.default_rng(0)
    y = np.arange(160) % 20
    views = [8 * np.eye(20)[y] + rng.normal(size=(160, 20)) for _ in range(2)]
    sources = [rbf_kernel(view, gamma=0.01) for view in views]
    fitted = SimilarityFusionNMF(20).fit(None, similarities=sources)
    assert fitted.n_nearest_ == (6, 6)  # three quarters of 8
    assert adjusted_rand_score(y, fitted.labels_) > 0.95


def test_losses_are_the_shares_that_are_not_explained():
    """Of the graphs, from memberships: EM keeps the degrees of the mixture where weights rest."""
    (S, _), y = groups()
    fitted = SimilarityFusionNMF(3, tol=-1.0, max_iter=200).fit(None, similarities=[S])
    assert fitted.n_nearest_ == (10,)  # the root of 120
    P = S.copy()
    np.fill_diagonal(P, 0)
    least = np.sort(P, axis=1)[:, -10, None]
    P = np.where((P >= least) | (P >= least).T, P, 0)
    roots = np.sqrt(P.sum(axis=1))
    P /= np.outer(roots, roots)
    P /= P.sum()
    r = P.sum(axis=1)
    joint = fitted.membership_ * r[:, None]
    model = joint / joint.sum(axis=0) @ joint.T
    i, j = np.nonzero(P)
    missed = (P[i, j] * np.log(P[i, j] / model[i, j])).sum()
    there = (P[i, j] * np.log(P[i, j] / (r[i] * r[j]))).sum()
    assert_allclose(fitted.source_losses_, [missed / there], rtol=1e-3)
    assert_allclose(fitted.loss_, missed / there, rtol=1e-3)
    assert adjusted_rand_score(y, fitted.labels_) > 0.8


def test_a_result_does_not_depend_on_how_sources_are_stored():
    storage = sp.csc_matrix
    sources, _ = problem(cut=0.05)
    dense = SimilarityFusionNMF(3).fit(None, similarities=sources)
    sparse = SimilarityFusionNMF(3).fit(None, similarities=[storage(S) for S in sources])
    assert_same_fit(dense, sparse)
    assert_array_equal(dense.predict(sources), sparse.predict([storage(S) for S in sources]))


def test_nothing_in_a_fit_is_random():
    sources, _ = groups()
    first, *others = (
        SimilarityFusionNMF(3, random_state=seed).fit(None, similarities=sources)
        for seed in (None, 1)
    )
    for other in others:
        assert_same_fit(first, other)
    assert len(first.loss_curves_) == 4


def test_predict_agrees_with_the_fit():
    sources, y = groups()
    fitted = SimilarityFusionNMF(3).fit(None, similarities=sources)
    assert np.mean(fitted.predict(SimilarityStack(sources)) == fitted.labels_) > 0.95
    half = np.arange(120) < 60
    stack = SimilarityStack(sources)
    of_half = SimilarityFusionNMF(3).fit(stack[np.ix_(half, half)])
    predicted = of_half.predict(stack[np.ix_(~half, half)])
    assert adjusted_rand_score(y[~half], predicted) > 0.85


@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_what_is_kept_follows_the_criterion():
    sources, _ = problem()
    kept = {"relative": (6,) * 3, "kl": (None,) * 3, "cross_entropy": (None,) * 3}
    for criterion, expected in kept.items():
        fitted = SimilarityFusionNMF(3, eta=0.1, criterion=criterion, max_iter=1, tol=1e9)
        assert fitted.fit(sources).n_nearest_ == expected


@pytest.mark.filterwarnings("ignore:SimilarityFusionNMF found 1 cluster")
def test_a_fit_says_when_no_source_is_explained():
    """A constant holds nothing that clusters could explain."""
    fitted = SimilarityFusionNMF(2, n_init=1)
    with pytest.warns(UserWarning, match="2 clusters explain no source better than independent"):
        fitted.fit(None, similarities=[np.ones((20, 20)), 3 * np.ones((20, 20))])
    assert fitted.loss_ >= 1
    assert (fitted.source_losses_ >= 1).all()


def test_a_fit_says_when_one_source_has_nearly_all_weight():
    sources, _ = groups()
    noise, constant = noise_and_constant(120)
    with pytest.warns(UserWarning, match=r"source 'source1' of X has the weight 1"):
        SimilarityFusionNMF(3).fit(None, similarities=[noise, sources[0], constant])
    with pytest.warns(UserWarning, match="has the weight"):  # the flattest, by the printed losses
        SimilarityFusionNMF(3, criterion="kl", eta=0.01).fit(
            None, similarities=[sources[0], constant]
        )


def test_memberships_have_the_dtype_of_the_sources():
    sources, _ = problem()
    for dtype in (np.float32, np.float64):
        fitted = SimilarityFusionNMF(3).fit([S.astype(dtype) for S in sources])
        assert fitted.membership_.dtype == fitted.core_.dtype == dtype
        assert_allclose(fitted.membership_.sum(axis=1), 1, rtol=1e-6)
