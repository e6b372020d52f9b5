"""Fits of counts: the attributes by their definitions, beside scikit-learn's best run."""

import numpy as np
import pytest
import scipy.sparse as sp
from meta.cases import kullback_leibler
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import NMF

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_programs, make_signatures
from nmfcluster.metrics import match_components

X, W, H = make_programs(60, 80, 4, depth=400, random_state=0)
X[7] = 0  # a cell without a count, and a gene
X[:, 11] = 0


def model(**parameters):
    options = {"loss": "kullback-leibler", "n_estimators": 6, "random_state": 0}
    return NMFMetaCluster(4, **options | parameters)


@pytest.fixture(scope="module", params=[{}, {"resample": None, "meta": "nmf"}], ids=str)
def fitted(request):
    return model(**request.param).fit(X)


def test_components_are_shares_and_factors_are_counts(fitted):
    assert_allclose(fitted.components_.sum(axis=1), 1)
    assert_allclose(fitted.factor_.sum(axis=1), X.sum(axis=1), rtol=1e-6)
    assert_allclose(
        fitted.inverse_transform(fitted.factor_), fitted.factor_ @ fitted.components_
    )


def test_losses_are_the_divergence(fitted):
    loss = kullback_leibler(X, fitted.factor_ @ fitted.components_)
    assert_allclose(fitted.reconstruction_err_**2 / 2, loss, rtol=1e-9)
    assert loss <= fitted.loss_ * (1 + 1e-9)
    assert (np.diff(fitted.loss_curve_) <= 1e-9 * fitted.loss_curve_[0]).all()


def test_factor_meets_the_conditions_of_a_minimum(fitted):
    own = np.delete(np.arange(60), 7)
    factor, table = fitted.factor_[own], X[own]
    Y = factor @ fitted.components_
    slope = (
        1
        - np.divide(table, Y, out=np.zeros_like(Y), where=Y > 0) @ fitted.components_.T
    )
    shares = factor / table.sum(axis=1, keepdims=True)
    assert abs(np.minimum(shares, slope)).max() < 1e-6


def test_an_empty_row_is_in_no_cluster(fitted):
    assert fitted.labels_[7] == -1
    assert_array_equal(np.flatnonzero(fitted.labels_ < 0), [7])
    assert_allclose(fitted.membership_[7], 0.25)
    assert not fitted.components_[:, 11].any() or fitted.components_[:, 11].max() < 1e-3


def test_new_samples_are_treated_like_those_of_fit(fitted):
    assert_array_equal(fitted.transform(X), fitted.factor_)
    assert_array_equal(fitted.predict(X), fitted.labels_)
    assert_allclose(
        fitted.transform(sp.csr_array(X[:5])), fitted.factor_[:5], rtol=1e-5, atol=1e-6
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_planted_programs_are_found(kind):
    fit = model().fit(kind(X))
    own, true = (
        F / np.linalg.norm(F, axis=1, keepdims=True) for F in (fit.components_, H)
    )
    assert (own @ true.T).max(axis=0).min() > 0.95
    truth = W.argmax(axis=1)
    names = (own @ true.T).argmax(axis=1)
    clear = np.sort(W, axis=1)[:, -1] > 0.6 * W.sum(axis=1)
    clear[7] = False
    assert (names[fit.labels_[clear]] == truth[clear]).mean() > 0.95


def test_it_fits_no_worse_than_the_best_of_many_runs():
    table = make_signatures(60, 5, random_state=1)[0]
    ours = NMFMetaCluster(
        5, loss="kullback-leibler", n_estimators=10, random_state=0
    ).fit(table)
    runs = [
        NMF(5, init="random", solver="mu", beta_loss="kullback-leibler", max_iter=2000, tol=1e-6,
            random_state=seed).fit(table)
        for seed in range(2)
    ]  # fmt: skip
    assert (
        ours.reconstruction_err_ <= min(run.reconstruction_err_ for run in runs) * 1.001
    )


def test_single_precision_is_kept():
    fit = model().fit(X.astype(np.float32))
    made = fit.components_, fit.factor_, fit.transform(X[:2].astype(np.float32))
    assert [array.dtype for array in made] == [np.float32] * 3
    assert_allclose(
        fit.reconstruction_err_, model().fit(X).reconstruction_err_, rtol=1e-3
    )


def test_scales_of_the_table_do_not_matter():
    fit, small = model().fit(X), model().fit(X / 2**20)
    assert_allclose(small.components_, fit.components_, atol=1e-3)
    assert_allclose(small.loss_ * 2**20, fit.loss_, rtol=1e-4)


def test_memberships_are_the_shares_of_a_composition():
    rng = np.random.default_rng(0)
    profiles = rng.dirichlet(np.full(20, 0.3), 3)
    shares = rng.dirichlet(np.full(3, 0.5), 100)
    found = NMFMetaCluster(
        3, loss="kullback-leibler", n_estimators=3, random_state=0
    ).fit(shares @ profiles)
    counterparts, _ = match_components(profiles, found.components_)
    assert_allclose(found.membership_[:, counterparts], shares, atol=0.03)
    assert_array_equal(found.labels_, found.membership_.argmax(axis=1))
