"""Entries that were not observed: losses, steps and rows against their formulas."""

from itertools import islice

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from meta.cases import begin, kullback_leibler
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming

from nmfcluster import NMFMetaCluster
from nmfcluster._utils import sparse_products
from nmfcluster.datasets import make_programs
from nmfcluster.meta.divergence import Divergence
from nmfcluster.meta.squares import MatrixObjective, from_standardised, hals
from nmfcluster.metrics import match_components

stored = pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"]
)
losses = pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
seeds = st.integers(0, 10**6)


def holes(rng, n=11, p=9, k=3, share=0.2):
    """Draw counts of which some are NaN, in no row and no column all of them."""
    X = rng.poisson(
        5 * rng.gamma(0.5, size=(n, k)) @ rng.gamma(0.5, size=(k, p))
    ).astype(float)
    X[0, 0] += 1
    unseen = rng.uniform(size=X.shape) < share
    unseen[np.arange(n), np.arange(n) % p] = unseen[0, 0] = False
    X[unseen] = np.nan
    return X


def half_of_squares(X, Y):
    return np.nansum((X - Y) ** 2) / 2


@pytest.mark.sampled(2)
@stored
@pytest.mark.parametrize(
    ("objective", "solver", "formula"),
    [
        (MatrixObjective, hals, half_of_squares),
        (Divergence, from_standardised, kullback_leibler),
    ],
    ids=["squares", "divergence"],
)
@settings(max_examples=4)
@given(seed=seeds, blas=st.booleans())
def test_the_loss_is_of_what_is_observed_and_never_rises(
    kind, objective, solver, formula, seed, blas
):
    rng = np.random.default_rng(seed)
    X, before = holes(rng), np.inf
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse_products, "_BLAS_FROM", 0.0 if blas else 2.0)
        patch.setattr(sparse_products, "_GATHERED_ENTRIES", 7)
        given_objective = objective(*sparse_products.split_missing(kind(X)))
        assert_allclose(given_objective.X[~np.isnan(X)], X[~np.isnan(X)])
        for (W, H), found in islice(
            solver(given_objective, begin(rng, 2, 3, 11, 9)), 6
        ):
            expected = [formula(X, w @ h) for w, h in zip(W, H, strict=True)]
            assert_allclose(found, expected, rtol=1e-8, atol=1e-7)
            assert (found <= before + 1e-7).all()
            before = found
        assert_allclose(given_objective.error(W[0], H[0]) ** 2 / 2, found[0], atol=1e-7)


@stored
@settings(max_examples=8)
@given(seeds)
def test_a_step_expects_what_the_factors_have_where_nothing_is_observed(kind, seed):
    rng = np.random.default_rng(seed)
    X, F = holes(rng), begin(rng, 1, 3, 11, 9)
    holding_nothing = Divergence(*sparse_products.split_missing(kind(X)))
    W, H = holding_nothing.row_column_factors(F)
    filled = np.where(np.isnan(X), W[0].T @ H[0], X)
    whole = Divergence(filled)
    for found, expected in zip(
        holding_nothing.expected_counts(W, H)[:2],
        whole.expected_counts(W, H)[:2],
        strict=True,
    ):
        assert_allclose(found, expected)


@pytest.mark.sampled(2)
@stored
@settings(max_examples=8)
@given(seeds)
def test_rows_meet_the_conditions_of_a_minimum_over_what_is_observed(kind, seed):
    rng = np.random.default_rng(seed)
    X, H = holes(rng, share=0.4), rng.gamma(0.7, size=(3, 9)) + 1e-3
    seen, filled = ~np.isnan(X), np.nan_to_num(X)

    W = MatrixObjective(*sparse_products.split_missing(kind(X))).fit_rows(H)
    slope = np.where(seen, W @ H - filled, 0) @ H.T
    assert (W >= 0).all()
    assert_allclose(
        np.minimum(W, slope), 0, atol=1e-9 * (1 + filled.max() * H.max() ** 2)
    )

    W = Divergence(*sparse_products.split_missing(kind(X))).fit_rows(H)
    Y = W @ H
    quotients = np.divide(filled, Y, out=np.zeros_like(Y), where=seen & (Y > 0))
    slope = seen @ H.T - quotients @ H.T
    scale = np.maximum(filled.sum(axis=1, keepdims=True), 1) / H.sum(axis=1)
    assert_allclose(np.minimum(W / scale, slope / (seen @ H.T)), 0, atol=1e-6)


@pytest.mark.sampled(3)
@stored
@losses
def test_a_fit_does_not_depend_on_what_is_not_observed(kind, loss):
    """Programs are found as if all were observed, dense or sparse."""
    X, _, H = make_programs(80, 100, 3, random_state=0)
    rng = np.random.default_rng(0)
    unseen = rng.uniform(size=X.shape) < 0.2
    table = np.where(unseen, np.nan, X)
    model = NMFMetaCluster(3, loss=loss, n_estimators=4, random_state=0).fit(
        kind(table)
    )
    assert match_components(H, model.components_)[1].min() > 0.9
    assert_array_equal(model.transform(kind(table)), model.factor_)
    assert_array_equal(np.isnan(kind(table).sum()), True)  # it is not written to
    formula = half_of_squares if loss == "frobenius" else kullback_leibler
    found = formula(table, model.factor_ @ model.components_)
    assert_allclose(model.reconstruction_err_**2 / 2, found, rtol=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("loss", "resample"), [("frobenius", "bootstrap"), ("kullback-leibler", "poisson")]
)
def test_runs_that_see_drawn_tables_miss_the_same_entries(loss, resample):
    X, _, H = make_programs(80, 100, 3, random_state=0)
    table = np.where(np.random.default_rng(0).uniform(size=X.shape) < 0.1, np.nan, X)
    model = NMFMetaCluster(
        3, loss=loss, resample=resample, n_estimators=4, random_state=0
    )
    model.fit(sp.csr_array(table))
    assert match_components(H, model.components_)[1].min() > 0.9
    assert model.recurrence_.min() > 0.8


def test_new_samples_of_which_nothing_is_observed_are_in_no_cluster():
    X = np.kron(np.eye(2), np.ones((5, 3))) + 0.1
    model = NMFMetaCluster(2, n_estimators=3, random_state=0).fit(X)
    new = np.array([[np.nan] * 6, [np.nan] * 5 + [2.0]])
    assert_array_equal(model.predict(new) >= 0, [False, True])
    for loss in (model, model.set_params(loss="kullback-leibler")):
        assert_array_equal(loss.transform(new)[0], 0)


def test_what_needs_all_entries_says_so():
    X = np.kron(np.eye(2), np.ones((5, 3)))
    model = NMFMetaCluster(2, n_estimators=3, random_state=0).fit(X)
    X[0, 0] = np.nan
    for ask in (model.feature_profiles, model.feature_scores):
        with raises_naming(ValueError, "X", "NaN"):
            ask(X)
