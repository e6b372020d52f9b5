"""Sparse assignment to known components, against every subset and the literal loss."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from refusals import raises_naming, warns_naming
from scipy.optimize import minimize

from nmfcluster.datasets import make_signatures
from nmfcluster.meta import assign
from nmfcluster.meta.assignment import _fit_used


@pytest.fixture(scope="module")
def planted():
    """Return counts of 12 samples, their usages and ten signatures with ten others."""
    X, W, H = make_signatures(12, random_state=0)
    others = make_signatures(1, random_state=1)[2]
    return X, np.hstack([W, np.zeros_like(W)]), np.vstack([H, others])


def loss_of(x, H):
    """Return the smallest Poisson loss of a row, by a method that knows nothing of it."""

    def loss(roots):
        means = roots**2 @ H
        return means.sum() - sum(
            np.log(m) * c for c, m in zip(x, means, strict=True) if c
        )

    if not len(H):
        return np.inf if x.any() else 0.0
    starts = np.random.default_rng(0).uniform(1, 4, size=(2, len(H)))
    return min(minimize(loss, start, options={"gtol": 1e-7}).fun for start in starts)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(2))
def test_no_component_can_go_and_none_is_missed(seed):
    rng = np.random.default_rng(seed)
    H = rng.dirichlet(np.full(8, 0.7), size=4) + 0.01
    H /= H.sum(axis=1, keepdims=True)
    x = rng.poisson(rng.choice([0, 60], size=4) @ H + 1)
    losses = {
        chosen: loss_of(x, H[list(chosen)])
        for size in range(5)
        for chosen in combinations(range(4), size)
    }
    for min_gain in (0.5, 2, 8):
        usages = assign(x[None], H, min_gain=min_gain).usages[0]
        kept = tuple(np.flatnonzero(usages))
        means = usages @ H
        assert means.sum() - x @ np.log(means) == pytest.approx(losses[kept], abs=1e-6)
        rises = [losses[tuple(set(kept) - {c})] - losses[kept] for c in kept]
        assert min(rises) >= min_gain
        # every smaller set costs more, were it the best of all: none is better by this criterion
        paid = {
            chosen: loss + min_gain * len(chosen) for chosen, loss in losses.items()
        }
        assert paid[kept] == pytest.approx(min(paid.values()), abs=1e-6)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("burden", [20, 1000])
def test_no_rise_is_below_its_bound(burden):
    X, _, H = make_signatures(12, 20, burden=burden, random_state=0)
    x = X / 3  # counts below 1, too
    W, losses, bounds = _fit_used(x, H, np.ones((12, 20)))
    for c in range(20):
        used = np.flatnonzero(W[:, c])
        without = W[used]
        without[:, c] = 0
        rises = _fit_used(x[used], H, without)[1] - losses[used]
        assert (bounds[used, c] > 0).all()
        assert (bounds[used, c] <= rises + 1e-9 * np.abs(losses[used])).all()
        unused = np.setdiff1d(np.arange(12), used)
        assert np.isinf(bounds[unused, c]).all()


def test_planted_components_are_found(planted):
    X, W, H = planted
    found = assign(X, H).usages > 0
    full = assign(X, H, min_gain=0).usages > 0
    assert (found <= full).all()
    assert full[W == 0].mean() > 0.25
    assert found[W == 0].mean() < 0.01
    assert found[W > 0].mean() > 0.95


def test_laws(planted):
    X, _, H = planted
    expected = assign(X, H).usages
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(assign(X[order], H).usages, expected[order], rtol=1e-7)
    np.testing.assert_allclose(assign(X[:1], H).usages, expected[:1], rtol=1e-7)
    np.testing.assert_allclose(assign(sp.csr_array(X), H).usages, expected, rtol=1e-7)
    scale = np.linspace(0.1, 30, len(H))
    np.testing.assert_allclose(
        assign(X, H * scale[:, None]).usages, expected, rtol=1e-6
    )
    # rows in any unit leave the totals of the samples
    np.testing.assert_allclose(assign(X, 100 * H).usages.sum(axis=1), X.sum(axis=1))
    single = assign(X.astype(np.float32), H.astype(np.float32)).usages
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, expected, rtol=1e-3)
    # of two equal components one is enough
    twice = assign(X, np.vstack([H, H])).usages
    assert not ((twice[:, : len(H)] > 0) & (twice[:, len(H) :] > 0)).any()
    np.testing.assert_allclose(
        twice[:, : len(H)] + twice[:, len(H) :], expected, rtol=1e-6
    )


def test_more_gain_keeps_fewer(planted):
    X, _, H = planted
    sizes = [
        np.count_nonzero(assign(X, H, min_gain=gain).usages)
        for gain in (0, 2, 8, 100, 1e7)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == len(X)  # the last one cannot go where there are counts


def test_row_without_counts_is_zero(planted):
    X, _, H = planted
    empty = np.vstack([np.zeros((1, 96)), X[:2]])
    usages = assign(empty, H, n_bootstraps=2, random_state=0)
    for values in usages:
        assert not values[0].any()
    np.testing.assert_allclose(usages.usages[1:], assign(X[:2], H).usages, rtol=1e-7)
    assert not assign(np.zeros((2, 96)), H).usages.any()


@pytest.mark.slow
def test_intervals_hold_the_truth(planted):
    X, W, H = planted
    X, W = X[:4], W[:4]
    usages, low, high = assign(X, H, n_bootstraps=12, random_state=0)
    strong = W > 100
    assert (low <= high).all()
    for value in (usages, W):
        assert ((low <= value) & (value <= high))[strong].mean() > 0.7
    # counts vary as Poisson numbers do
    assert 2 < ((high - low)[strong] / np.sqrt(W[strong])).mean() < 8
    again = [
        assign(X[:2], H, n_bootstraps=2, random_state=seed).low for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(again[0], again[1])
    assert (again[0] != again[2]).any()
    assert (
        assign(sp.csr_array(X), H, n_bootstraps=1, random_state=0).low.shape == W.shape
    )
    assert assign(X, H).low is None


def test_names_of_features(planted):
    pd = pytest.importorskip("pandas")
    X, _, H = planted
    channels = [f"c{j}" for j in range(96)]
    table, catalogue = (
        pd.DataFrame(X, columns=channels),
        pd.DataFrame(H, columns=channels),
    )
    with warns_naming(UserWarning, "components", "X", "order"):
        usages = assign(table, catalogue[channels[::-1]]).usages
    np.testing.assert_array_equal(usages, assign(X, H).usages)
    with raises_naming(ValueError, "components"):
        assign(table, catalogue.rename(columns={"c0": "other"}))
    lost = catalogue.assign(c5=0.0)
    with warns_naming(UserWarning, "X", "['c5']"):
        usages = assign(table, lost).usages
    np.testing.assert_allclose(
        usages, assign(table.assign(c5=0), lost).usages, rtol=1e-7
    )


@pytest.mark.parametrize(
    ("changed", "error", "names"),
    [
        ({"X": [[1, -1]]}, ValueError, ("Negative", "X")),
        ({"X": [[1, np.nan]]}, ValueError, ("X", "NaN")),
        (
            {"X": [[0.2, 0.8], [0.5, 0.5]]},
            ValueError,
            ("X", "counts"),
        ),
        ({"X": [[1e300, 1.0]]}, ValueError, "scale"),
        ({"components": [[1, -1]]}, ValueError, "components"),
        (
            {"components": [[1, 0], [0, 0]]},
            ValueError,
            "components",
        ),
        (
            {"components": [[1, 0, 1]]},
            ValueError,
            ("components", "2", "columns", "3"),
        ),
        ({"components": "SBS1"}, TypeError, "components"),
        ({"min_gain": -1}, ValueError, "min_gain"),
        ({"min_gain": None}, TypeError, "min_gain"),
        ({"n_bootstraps": -1}, ValueError, "n_bootstraps"),
        ({"n_bootstraps": 2.0}, TypeError, "n_bootstraps"),
        ({"random_state": "x"}, ValueError, "random_state"),
    ],
)
def test_refusals(changed, error, names):
    given = {"X": [[3, 4], [0, 5]], "components": [[1.0, 0], [0, 1]], **changed}
    with raises_naming(error, names):
        assign(given.pop("X"), given.pop("components"), **given)
