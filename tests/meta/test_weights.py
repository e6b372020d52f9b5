"""Samples that count more than others, and components that are known."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import canonical_order
from meta.cases import begin, ends
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_programs
from nmfcluster.meta.divergence import Divergence
from nmfcluster.meta.squares import MatrixObjective, from_standardised, hals
from nmfcluster.metrics import match_components

losses = pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
objectives = pytest.mark.parametrize(
    ("objective", "solver"),
    [(MatrixObjective, hals), (Divergence, from_standardised)],
    ids=["squares", "counts"],
)
seeds = st.integers(0, 10**6)


def small(k=3, **parameters):
    return NMFMetaCluster(k, n_estimators=3, random_state=0, **parameters)


@pytest.fixture(scope="module")
def programs():
    return make_programs(70, 90, 3, random_state=0)


@pytest.mark.sampled(2)
@objectives
@settings(max_examples=6)
@given(seeds)
def test_weights_count_as_equal_rows_do(objective, solver, seed):
    rng = np.random.default_rng(seed)
    X, counts = rng.poisson(3, (7, 6)) + 1.0, rng.integers(1, 4, 7)
    W, H = rng.uniform(size=(7, 2)), rng.uniform(size=(2, 6))
    weights = counts.astype(float)
    weighted = objective(X).weighted(weights)
    rows = weighted.weighted_rows(W, weights)
    repeated = objective(np.repeat(X, counts, axis=0))
    assert_allclose(
        weighted.error(rows, H), repeated.error(np.repeat(W, counts, axis=0), H)
    )
    F = np.concatenate([rows.T, H], axis=1)[None]
    (_, ended), loss = ends(solver(weighted, F), 5)
    (_, expected), loss_of_repeated = ends(
        solver(
            repeated, np.concatenate([np.repeat(W, counts, axis=0).T, H], axis=1)[None]
        ),
        5,
    )
    assert loss[0] <= weighted.error(rows, H) ** 2 / 2 + 1e-9
    # the lift of counts' starts is by means, which differ
    if objective is MatrixObjective:
        assert_allclose(ended, expected, rtol=1e-5, atol=1e-7)
        assert_allclose(loss, loss_of_repeated, rtol=1e-6, atol=1e-9)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("loss", "resample", "kind"),
    [
        ("frobenius", None, sp.csr_array),
        ("frobenius", "poisson", np.asarray),
        ("frobenius", "bootstrap", np.asarray),
        ("kullback-leibler", None, np.asarray),
        ("kullback-leibler", 0.8, sp.csr_array),
    ],
)
def test_a_sample_that_does_not_count_changes_nothing(programs, loss, resample, kind):
    X, _, H = programs
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    other = np.where(weights[:, None] == 0, X[::-1], X)
    models = [
        small(loss=loss, resample=resample).fit(kind(table), sample_weight=weights)
        for table in (X, other)
    ]
    # where fewer counts above 0 are drawn, others are drawn after
    if resample != "poisson":
        assert_allclose(
            models[0].components_, models[1].components_, rtol=1e-5, atol=1e-8
        )
    assert match_components(H, models[0].components_)[1].min() > 0.9
    assert_array_equal(models[0].transform(kind(X)), models[0].factor_)
    if resample is None:
        assert_array_equal((models[0].partitions_ == -1).all(axis=1), weights == 0)
    found = np.sqrt(weights)[:, None] * (X - models[0].factor_ @ models[0].components_)
    if loss == "frobenius":
        assert_allclose(models[0].reconstruction_err_, np.linalg.norm(found))


@pytest.mark.sampled(2)
@losses
def test_weights_of_one_are_none(programs, loss):
    X = programs[0]
    plain, ones = (
        small(loss=loss).fit(X),
        small(loss=loss).fit(X, sample_weight=np.ones(len(X))),
    )
    assert_array_equal(plain.components_, ones.components_)
    assert_array_equal(plain.factor_, ones.factor_)


@objectives
@settings(max_examples=6)
@given(seeds)
def test_fixed_rows_stay_and_the_loss_never_rises(objective, solver, seed):
    rng = np.random.default_rng(seed)
    X, fixed = rng.poisson(3, (8, 7)) + 0.5, rng.uniform(size=(2, 7))
    held = objective(X, fixed=objective(X).scale_components(fixed))
    before = np.inf
    for step, ((_, H), loss) in enumerate(solver(held, begin(rng, 2, 4, 8, 7))):
        assert_array_equal(H[:, :2], np.stack([held.fixed] * 2))
        assert (loss <= before * (1 + 1e-9)).all()
        before = loss
        if step == 6:
            break


@pytest.mark.sampled(2)
@losses
@pytest.mark.parametrize(("meta", "resample"), [("ptf", "bootstrap"), ("nmf", None)])
def test_known_programs_are_kept_and_others_found(programs, loss, meta, resample):
    X, _, H = programs
    known = H[[2, 0]]
    model = small(loss=loss, meta=meta, resample=resample, fixed_components=known).fit(
        X
    )
    norm = np.linalg.norm if loss == "frobenius" else np.sum
    expected = known / np.array([[norm(row)] for row in known])
    assert_allclose(model.components_[:2], expected, rtol=1e-12)
    assert match_components(H[[1]], model.components_[2:])[1].min() > 0.9
    alpha = model.correspondence_.reshape(3, 3, 3)  # runs, their clusters, metaclusters
    assert_array_equal(alpha[:, :2, :2], np.stack([np.eye(2)] * 3))
    assert_array_equal(alpha[:, 2, :2], 0)
    assert_array_equal(model.transform(X), model.factor_)


@losses
def test_usages_alone_are_refitted_where_all_programs_are_known(programs, loss):
    X, W, H = programs
    order = canonical_order(X).samples  # sums of rows in another order round otherwise
    X, W = X[order], W[order]
    model = small(loss=loss, fixed_components=H).fit(X)
    found = np.corrcoef(model.factor_.T, W.T)[:3, 3:]
    assert (np.diagonal(found) > 0.8).all()
    assert_allclose(model.recurrence_, 1, rtol=1e-3)
    expected = (MatrixObjective if loss == "frobenius" else Divergence)(
        X.astype(float)
    ).fit_rows(model.components_)
    assert_array_equal(model.factor_, expected)


def test_weights_of_a_series_are_matched_by_name(programs):
    pd = pytest.importorskip("pandas")
    cells = [f"c{i}" for i in range(len(programs[0]))]
    frame = pd.DataFrame(programs[0], index=cells)
    weights = pd.Series(np.arange(len(cells)) % 3, index=cells)
    with warns_naming(UserWarning, "sample_weight"):
        model = small().fit(frame, sample_weight=weights[::-1])
    expected = small().fit(frame, sample_weight=weights.to_numpy())
    assert_array_equal(model.components_, expected.components_)
    assert_array_equal(model.to_frames()[0].index, cells)


def test_known_programs_of_a_data_frame_are_matched_by_name(programs):
    pd = pytest.importorskip("pandas")
    X, _, H = programs
    genes = [f"g{j}" for j in range(X.shape[1])]
    frame, known = pd.DataFrame(X, columns=genes), pd.DataFrame(H[:1], columns=genes)
    with warns_naming(UserWarning, "fixed_components", "columns"):
        model = small(fixed_components=known.iloc[:, ::-1]).fit(frame)
    assert_array_equal(
        model.components_, small(fixed_components=H[:1]).fit(frame).components_
    )
