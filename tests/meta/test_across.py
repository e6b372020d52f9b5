"""Programs across groups and tables: which are the same, who has them, what is refused."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from sklearn.model_selection import cross_validate

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_programs
from nmfcluster.meta import metacluster
from nmfcluster.metrics import match_components
from nmfcluster.model_selection import choose_n_clusters, sweep_n_clusters

G, SHARED = 4, 3  # groups, each with a program of its own beside the shared ones
losses = pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])


def planted(seed, spread=0.5, p=240, sizes=(60, 90, 70, 80)):
    """Return counts of groups whose genes differ by factors, their groups, and the programs."""
    rng = np.random.default_rng(seed)
    H = make_programs(10, p, SHARED + G, random_state=seed)[2]
    tables = []
    for g, n in enumerate(sizes):
        own = H[[*range(SHARED), SHARED + g]] * np.exp(rng.normal(0, spread, p))
        tables.append(
            rng.poisson(rng.dirichlet(np.full(SHARED + 1, 0.3), n) * 500 @ own)
        )
    return np.concatenate(tables).astype(float), np.repeat([*"badc"], sizes), H


def fitted(X, groups, loss="kullback-leibler", **parameters):
    given = {
        "base_n_clusters": SHARED + 1,
        "n_estimators": 6,
        "random_state": 0,
    } | parameters
    return NMFMetaCluster(SHARED + G, loss=loss, **given).fit(X, groups=groups)


few = partial(fitted, n_estimators=3)


@pytest.mark.slow
@losses
@pytest.mark.parametrize("seed", range(3))
def test_shared_programs_are_named_and_own_ones_are_told_as_own(loss, seed):
    X, groups, H = planted(seed)
    model = fitted(X, groups, loss)
    place, cosines = match_components(H, model.components_)
    assert cosines[:SHARED].min() > 0.8
    assert_array_equal(np.flatnonzero(model.shared_), np.sort(place[:SHARED]))
    assert model.groups_.tolist() == [*"abcd"]
    own = model.presence_[:, place[SHARED:]]  # programs of b, a, d, c
    assert_array_equal(own.argmax(axis=0), [1, 0, 3, 2])
    assert_array_equal((own > 0).sum(axis=0), 1)
    assert_allclose(model.recurrence_, model.presence_.mean(axis=0))
    assert_array_equal(model.factor_, model.transform(X))
    assert model.correspondence_.shape == (G * 6 * (SHARED + 1), SHARED + G)
    assert_array_equal(np.bincount(model.base_runs_), np.full(G * 6, SHARED + 1))
    runs_of_a = model.partitions_[:, :6]
    assert_array_equal((runs_of_a >= 0).any(axis=1), groups == "a")


@pytest.mark.slow
def test_programs_do_not_depend_on_names_order_storage_or_jobs():
    X, groups, _ = planted(0, p=120, sizes=(24, 30, 28, 26))
    model = few(X, groups)
    order = np.random.default_rng(0).permutation(len(X))
    for other in (
        few(X[order], groups[order]),
        few(X, groups, n_jobs=2),
        few(X, list(groups)),
    ):
        assert_array_equal(other.components_, model.components_)
        assert_array_equal(other.presence_, model.presence_)
    assert_array_equal(few(X[order], groups[order]).labels_, model.labels_[order])
    assert_allclose(
        few(sp.csr_array(X), groups).components_, model.components_, rtol=0, atol=1e-4
    )
    renamed = few(X, np.select([groups == g for g in "abcd"], [3, 0, 1, 2]))
    # sizes can tie
    place, cosines = match_components(renamed.components_, model.components_)
    assert_allclose(cosines, 1)
    assert_array_equal(renamed.presence_, model.presence_[[1, 2, 3, 0]][:, place])


def test_one_group_has_the_programs_that_it_has_alone():
    X, groups, _ = planted(1)
    mine = X[groups == "a"]
    model = NMFMetaCluster(4, n_estimators=5, random_state=0).fit(
        mine, groups=["a"] * len(mine)
    )
    alone = NMFMetaCluster(4, n_estimators=5, random_state=0)
    assert (
        match_components(alone.fit(mine).components_, model.components_)[1].min()
        > 0.999
    )
    assert not model.shared_.any()  # no other group has them
    # more programs of a group than in all: those that recur most
    model.set_params(n_clusters=3, base_n_clusters=4).fit(
        mine, groups=["a"] * len(mine)
    )
    assert model.presence_.shape == (1, 3)


@pytest.mark.slow
def test_the_number_of_groups_that_share_is_a_share_or_a_number():
    X, groups, _ = planted(0, sizes=(40, 40, 40, 40))
    n_groups = (few(X, groups, "frobenius").presence_ >= 0.5).sum(axis=0)
    for least, wanted in (
        (1, 1),
        (2, 2),
        (4, 4),
        (0.5, 2),
        (0.1, 2),
        (1.0, 4),
        (0.6, 3),
    ):
        assert_array_equal(
            few(X, groups, "frobenius", min_groups=least).shared_, n_groups >= wanted
        )


@pytest.mark.parametrize(
    "base", [SHARED + 1, pytest.param((2, 6), marks=pytest.mark.slow)]
)
def test_the_total_keeps_apart_what_differs(base):
    X, groups, _ = planted(0, p=120, sizes=(40, 40, 40, 40))
    model = NMFMetaCluster(
        2, loss="kullback-leibler", n_estimators=6, random_state=0, base_n_clusters=base
    )
    chosen = choose_n_clusters(model, X, fit_params={"groups": groups})
    assert chosen.n_clusters_ == SHARED + G
    assert chosen.best_estimator_.shared_.sum() == SHARED
    is_right = chosen.candidates == SHARED + G
    assert_array_equal(chosen.table["chosen"], is_right)
    assert (chosen.similarity >= 0.55)[is_right.argmax() :].all()
    assert not (chosen.similarity >= 0.55)[: is_right.argmax()].any()


def test_a_group_that_is_too_small_has_no_program():
    X, groups, _ = planted(0, sizes=(40, 6, 12, 40))  # of b, a, d, c
    rng = np.random.default_rng(0)
    noise = rng.permuted(X[40:46], axis=1)
    X[40:46] = noise
    with pytest.warns(UserWarning, match=r"\['a'\] of \[6\] samples"):
        model = few(X, groups)
    assert model.presence_[0].max() < 0.5
    assert (model.presence_[1:] >= 0.5).any(axis=1).all()


@pytest.mark.sampled(3)
@losses
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_a_group_is_fitted_to_the_features_that_it_has(loss, storage):
    X, groups, H = planted(0, p=160, sizes=(40, 40, 40, 40))
    X[np.ix_(groups == "a", range(30))] = np.nan
    X[np.ix_(groups == "c", range(30, 60))] = np.nan
    model = few(storage(X), groups, loss)
    place, cosines = match_components(H, model.components_)
    assert cosines[:SHARED].min() > 0.8
    assert_array_equal(np.flatnonzero(model.shared_), np.sort(place[:SHARED]))
    assert np.isfinite(model.components_).all()
    X[:, 5] = np.nan
    with raises_naming(ValueError, ("X", "column 5")):
        few(storage(X), groups, loss)


def test_nothing_is_shared_where_programs_differ():
    rng = np.random.default_rng(0)
    H = make_programs(10, 200, 12, random_state=0)[2]
    usages = 400 * rng.dirichlet([0.3] * 3, size=(4, 40))
    X = rng.poisson(
        np.concatenate([u @ H[3 * g : 3 * g + 3] for g, u in enumerate(usages)])
    )
    groups = np.repeat(np.arange(4), 40)
    model = NMFMetaCluster(12, base_n_clusters=3, n_estimators=3, random_state=0)
    for total in (6, 12):
        model.set_params(n_clusters=total).fit(X, groups=groups)
        assert not model.shared_.any()
        assert (model.presence_ >= 0.5).sum(axis=0).max() == 1


@pytest.mark.slow
def test_fixed_components_are_those_of_every_group():
    X, groups, H = planted(0)
    model = few(X, groups, fixed_components=H[:1])
    assert_allclose(model.components_[0], H[0] / H[0].sum(), rtol=1e-6)
    assert model.presence_[:, 0].min() > 0.5
    every = fitted(X, groups, fixed_components=H, base_n_clusters=None)
    assert_allclose(every.components_, H / H.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.slow
def test_groups_are_cut_with_the_samples():
    X, groups, _ = planted(0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = NMFMetaCluster(5, base_n_clusters=3, n_estimators=3, random_state=0)
        model.set_fit_request(groups=True)
        found = cross_validate(
            model,
            X,
            params={"groups": groups},
            scoring=lambda fit, X, y=None: len(fit.groups_),
            cv=sklearn.model_selection.KFold(3, shuffle=True, random_state=0),
        )
    assert_array_equal(found["test_score"], [4, 4, 4])


def linked(tables, k):
    """Literal average linkage of 1 - cosine of the roots less most of their table's mean."""
    rows = []
    for own in tables:
        roots = np.sqrt(own / own.sum(axis=1, keepdims=True))
        rows += list(roots - (1 - 0.5 / len(own)) * roots.mean(axis=0))
    table = [t for t, own in enumerate(tables) for _ in own]
    lengths = np.linalg.norm(rows, axis=1)
    far = 1 - np.dot(rows, np.transpose(rows)) / np.outer(lengths, lengths)
    clusters = [[i] for i in range(len(rows))]
    while len(clusters) > k:
        pairs = [(a, b) for a in range(len(clusters)) for b in range(a)]

        def cost(pair):
            both = [(i, j) for i in clusters[pair[0]] for j in clusters[pair[1]]]
            clash = sum(table[i] == table[j] for i, j in both) / len(both)
            apart = [far[i, j] for i, j in both if table[i] != table[j]]
            return clash > 0, clash, sum(apart) / len(both)

        a, b = min(pairs, key=cost)
        clusters[b] += clusters.pop(a)
    return {frozenset(its) for its in clusters}


@pytest.mark.parametrize("seed", range(4))
def test_metaclusters_are_those_of_average_linkage(seed):
    rng = np.random.default_rng(seed)
    tables = [rng.gamma(0.5, size=(k, 6)) for k in (3, 2, 4)]
    for k in (4, 5, 7):
        found = metacluster(tables, k, sources=["x", "y", "x"])
        labels = np.concatenate(found.labels)
        groups = {frozenset(np.flatnonzero(labels == c)) for c in range(k)}
        assert groups == linked(tables, k)
        shares = np.concatenate([t / t.sum(axis=1, keepdims=True) for t in tables])
        for c in range(k):
            mean = np.sqrt(shares[labels == c]).mean(axis=0) ** 2
            assert_allclose(found.components[c], mean / mean.sum())
            has = [
                int((is_alike & (its == c)).any())
                for its, is_alike in zip(found.labels, found.is_alike, strict=True)
            ]
            assert_allclose(found.presence[:, c], [(has[0] + has[2]) / 2, has[1]])
        assert found.sources.tolist() == ["x", "y"]
        assert (np.diff(np.bincount(labels)) <= 0).all()


def test_features_are_matched_by_name_and_may_be_missing():
    H = make_programs(10, 60, 4, random_state=0)[2]
    names = np.array([f"g{i}" for i in range(60)])
    whole = pd.DataFrame(H, columns=names)
    part = whole.iloc[[2, 0, 3], 12:].sample(frac=1, axis=1, random_state=0)
    found = metacluster([whole, part], 4)
    first, second = found.labels
    assert_array_equal(second, first[[2, 0, 3]])
    assert_array_equal(found.feature_names, names)
    gaps = H[[2, 0, 3]].copy()
    gaps[:, :12] = np.nan
    assert_array_equal(metacluster([H, gaps], 4).labels[1], second)


H2 = np.ones((2, 3))
X0, groups0, _ = planted(0, sizes=(12, 12, 12, 12))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda: metacluster(H2[0], 2), ValueError, "2D array"),
        (
            lambda: metacluster("ab", 2),
            TypeError,
            ("components", "list"),
        ),
        (lambda: metacluster([], 2), ValueError, ("components", "table")),
        (
            lambda: metacluster([H2, H2], 1),
            ValueError,
            ("n_clusters", "2"),
        ),
        (
            lambda: metacluster([H2, -H2], 2),
            ValueError,
            ("z-scores", "components[1]"),
        ),
        (lambda: metacluster([H2, 0 * H2], 2), ValueError, ("zeros", "components[1]")),
        (lambda: metacluster([H2.T, H2.T], 2), ValueError, ("n_clusters", "T")),
        (lambda: metacluster([H2.T, H2[:1].T], 3), ValueError, ("components[1]", "T")),
        (
            lambda: fitted(X0, [7, *[8] * 47], base_n_clusters=(2, 3)),
            ValueError,
            ("Group 7", "base_n_clusters=3"),
        ),
        (
            lambda: metacluster([H2, H2[:, :2]], 2),
            ValueError,
            ("components[1]", "3"),
        ),
        (
            lambda: metacluster([H2, pd.DataFrame(H2, columns=[*"abc"])], 2),
            ValueError,
            "names",
        ),
        (
            lambda: metacluster([H2, H2], 2, sources=[0]),
            ValueError,
            "sources",
        ),
        (
            lambda: fitted(X0, groups0[1:]),
            ValueError,
            ("groups", "shape", "(48,)"),
        ),
        (lambda: fitted(X0, [None, *groups0[1:]]), ValueError, "None"),
        (lambda: fitted(X0, ["z", *groups0[1:]]), ValueError, "'z'"),
        (
            lambda: fitted(X0, groups0, base_n_clusters=(3, 2)),
            ValueError,
            "base_n_clusters",
        ),
        (
            lambda: sweep_n_clusters(NMFMetaCluster(2), X0, groups=groups0[1:]),
            ValueError,
            ("groups", "shape", "(48,)"),
        ),
        (
            lambda: sweep_n_clusters(
                NMFMetaCluster(2, base_n_clusters=2), X0, [9, 10], groups=groups0
            ),
            ValueError,
            ("candidates", "between 1 and 8"),
        ),
        (
            lambda: fitted(X0, groups0, base_n_clusters=1),
            ValueError,
            ("n_clusters=7", "at most 4", "base_n_clusters=1"),
        ),
        (
            lambda: fitted(X0, groups0, "frobenius", sparsity=1),
            ValueError,
            ("groups", "sparsity=0"),
        ),
        (
            lambda: fitted(X0, groups0, min_groups=1.5),
            ValueError,
            "'min_groups'",
        ),
    ],
)
def test_what_is_no_group_or_table_is_refused_by_name(call, error, told):
    with raises_naming(error, told):
        call()


@pytest.mark.slow
def test_the_number_of_one_group_is_chosen_where_none_is_given():
    X, groups, _ = planted(1, p=100, sizes=(40, 40, 40, 40))
    X[np.ix_(groups == "a", range(10))] = np.nan
    model = NMFMetaCluster(2, loss="kullback-leibler", n_estimators=4, random_state=0)
    chosen = sweep_n_clusters(model, X, groups=groups, n_folds=3, random_state=0)
    assert chosen.best_estimator_.base_n_clusters == SHARED + 1
    assert chosen.n_clusters_ == SHARED + G


def test_a_group_that_has_fewer_programs_has_no_others():
    """Bootstraps of few samples, most of them of zeros, may have none."""
    X = np.array([[3.0, 0], [2, 0], [3, 1], [0, 2], [0, 3], [1, 3], [0, 1], [0, 0]])
    groups = [0, 0, 0, 0, 0, 0, 1, 1]
    model = NMFMetaCluster(2, n_estimators=2, resample="bootstrap")
    n_present = []
    for seed in range(6):
        model.set_params(random_state=seed).fit(X, groups=groups)
        assert np.isfinite(model.components_).all()
        n_present.append((model.presence_[1] > 0).sum())
    assert min(n_present) == 0
