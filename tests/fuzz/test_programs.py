"""What is asked of programs: those of groups, without or merged, metaclusters, and of AnnData."""

import os
import warnings
from functools import cache, partial

import numpy as np
import pytest
from fuzz.parameters import parameters
from fuzz.strategies import (
    DTYPES,
    FEATURES,
    FLAWED,
    FORMS,
    SEEDS,
    mostly,
    rows_like,
    stored,
    usually,
)
from fuzz.tables import Table
from fuzz.verdict import (
    REFUSED,
    fuzz,
    judge_fit,
    judged,
    names_of,
    snapshot,
)
from hypothesis import strategies as st
from sklearn import config_context

from nmfcluster import NMFConsensus, NMFMetaCluster
from nmfcluster.meta import metacluster
from nmfcluster.metrics import match_components

QUICK = {
    "n_clusters": 2,
    "n_estimators": 2,
    "n_init": 1,
    "max_iter": 3,
    "random_state": 0,
}
COUNTS = stored(("integers", "blobs", "uniform", "repeated"))
DENSE = usually(st.just("C"), FORMS, times=3)
FLAWLESS = usually(st.none(), FLAWED, times=9)
PROGRAMS = stored(
    ("uniform", "blobs"),
    n=st.integers(1, 4),
    forms=DENSE,
    dtypes=usually(st.just("float64"), DTYPES),
    flaws=FLAWLESS,
)
#: what AnnData raises where it cannot hold a table
ERRORS_OF_ANNDATA = (AttributeError, IndexError, TypeError, ValueError)
ODD = (None, 0, -1, 2.5, "x", True, [], [[0]], np.nan, 10**30, {0: 1}, object)


def labels(draw, n):
    """Draw labels of n groups, or tables, of which some are no labels, or too few."""
    seed = draw(SEEDS)
    numbers = np.random.default_rng(seed).integers(3, size=n)
    made = {
        "numbers": numbers,
        "words": np.array(["a", "b", "c"])[numbers],
        "list": numbers.tolist(),
        "objects": numbers.astype(str).astype(object),
        "one": np.zeros(n, dtype=int),
        "all differ": np.arange(n),
        "floats": numbers + 0.5,
        "nan": np.where(numbers == 0, np.nan, numbers),
        "none": [None] * n,
        "short": numbers[1:],
        "table": numbers[:, None],
        "dict": {0: numbers},
        "number": 3,
    }
    usual = st.sampled_from(["numbers", "words", "list", "objects", "one"])
    return made[draw(usually(usual, st.sampled_from(sorted(made)), times=4))]


@fuzz(
    COUNTS,
    st.data(),
    parameters(NMFMetaCluster, QUICK, at_most=1, fixed=("memory",)),
)
def test_programs_of_groups(table, data, given):
    table = table.but(n=table.n + 8)
    X = table.build()
    model = NMFMetaCluster(**given)
    groups = labels(data.draw, table.n)
    names = [*model.get_params(), "groups"]
    fitted = judged(model.fit, X, groups=groups, also=names)
    if fitted is REFUSED:
        assert not hasattr(model, "labels_")
        return
    judge_fit(model, table.n)
    assert model.presence_.shape == (len(model.groups_), model.n_clusters)
    assert np.isin(model.presence_, [0, 1]).all() or model.presence_.max() <= 1


@cache
def fitted(n_clusters, loss):
    """Return a model and the table that it was fitted to."""
    table = Table(kind="integers", n=14, p=4, seed=3)
    model = NMFMetaCluster(n_clusters, loss=loss, n_estimators=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(table.build()), table


NUMBERS = usually(
    st.lists(st.integers(0, 2), max_size=2, unique=True),
    st.sampled_from(
        [*ODD, [9], [-1], [0, 0], slice(1), np.array([1]), [True, False, False], ["a"]]
    ),
)
GROUPS = usually(
    st.sampled_from([[[0, 1]], [(1, 2)], [[0], [1, 2]], [np.array([0, 2])], []]),
    st.sampled_from([*ODD, [0, 1], [[0, 1], [1, 2]], [[9]], [["a"]], [[0.5]], "ab"]),
)
ARGUMENTS = {"without": NUMBERS, "merged": GROUPS}
TABLES = ("components_of", "feature_scores", "feature_profiles", "inverse_transform")


@fuzz(
    mostly("without", "merged", *TABLES, weight=2),
    st.data(),
    mostly(3, 1, 2),
    st.sampled_from(["frobenius", "kullback-leibler"]),
    FORMS,
)
def test_what_is_asked_of_a_fitted_model(name, data, n_clusters, loss, form):
    model, table = fitted(n_clusters, loss)
    before = model.components_.copy()
    width = n_clusters if name == "inverse_transform" else table.p
    usual = table.but(form=form, p=width)
    X = data.draw(usually(st.just(usual), rows_like(table))).build()
    given = [data.draw(ARGUMENTS[name])] if name in ARGUMENTS else []
    method = getattr(model, name)
    found = judged(method, *given, X, also=["clusters", "groups", "cluster"])
    assert np.array_equal(model.components_, before)
    if found is REFUSED:
        return
    if name in ARGUMENTS:
        assert found is not model
        assert len(found.components_) == found.n_clusters <= n_clusters
        judge_fit(found, table.n)
    else:
        assert np.isfinite(found).all()


@fuzz(
    st.integers(1, 3),
    mostly(10, 1, 2, *ODD, weight=40),
    usually(st.none(), PROGRAMS, times=2),
    mostly(None, list("abcd"), list("ab"), np.arange(4), *ODD, weight=40),
)
def test_top_features(n_clusters, n_features, values, names):
    model, _ = fitted(n_clusters, "frobenius")
    if values is not None:
        values = values.but(n=n_clusters, p=4).build()
    found = judged(model.top_features, n_features, values, names)
    if found is not REFUSED:
        assert found[0].shape == found[1].shape
        assert len(found[0]) == n_clusters


@fuzz(
    st.lists(PROGRAMS, min_size=2, max_size=4),
    st.data(),
    mostly(0, 1, -9, "x", None, 2.5, np.int8(1), True, weight=16),
)
def test_metaclusters(tables, data, more):
    p = tables[0].p
    is_same = data.draw(mostly(True, False, weight=12))
    tables = [table.but(p=p) if is_same else table for table in tables]
    n_clusters = more
    if isinstance(more, int | np.integer) and not isinstance(more, bool):
        n_clusters = max(table.n for table in tables) + more
    sources = None
    if data.draw(st.integers(0, 2)) == 0:
        sources = labels(data.draw, len(tables))
    components = [table.build() for table in tables]
    found = judged(
        metacluster, components, n_clusters, sources=sources, also=["programs"]
    )
    if found is not REFUSED:
        assert len(found.components) == n_clusters
        assert np.isfinite(found.components).all()
        for own, programs in zip(found.labels, components, strict=True):
            assert own.shape == np.shape(programs)[:1]
            assert own.max(initial=0) < n_clusters
        assert found.presence.min() >= 0
        assert found.presence.max() <= 1


@fuzz(PROGRAMS, PROGRAMS, mostly(True, False, weight=12))
def test_matches_of_components(one, other, is_same):
    other = other.but(p=one.p) if is_same else other
    judged(match_components, one.build(), other.build(), also=["components"])


# --- of other libraries ------------------------------------------------------------------------


@fuzz(
    stored(("integers", "blobs"), forms=st.just("C")),
    parameters(NMFMetaCluster, QUICK, at_most=1, fixed=("memory",)),
)
def test_arrays_of_another_library(table, given):
    """Without dispatch they are read as NumPy's; with it, all is computed by their library."""
    strict = pytest.importorskip("array_api_strict")
    try:
        X = strict.asarray(table.build())
    except (TypeError, ValueError, NotImplementedError):
        return  # of what it cannot hold
    model = NMFMetaCluster(**given)
    dispatches = os.environ.get("SCIPY_ARRAY_API") == "1"
    with config_context(array_api_dispatch=dispatches):
        found = judged(model.fit, X, also=model.get_params())
        if found is REFUSED:
            assert not hasattr(model, "labels_")
            return
        labels = judged(model.predict, X, also=model.get_params())
    assert labels is not REFUSED
    assert labels.shape == (table.n,)


def judged_of(adata, function, *args, **kwargs):
    """Return what a call returns that writes into annotated data, and changes no X of them.

    REFUSED also where a key is not there.
    """
    before = snapshot(adata.X)
    try:
        found = judged(partial(function, adata), *args, **kwargs)
        assert snapshot(adata.X) == before
        return found
    except KeyError as error:
        if "is not in adata" in str(error):
            return REFUSED
        raise


@fuzz(
    COUNTS,
    st.data(),
    mostly("nmf", "other", "", "a/b", "x\0", None, 3, weight=12),
    mostly("auto", None, "used", "counts", 3, [True], weight=8),
    mostly(None, "log", "no", 3, weight=8),
    mostly(None, "batch", "no", "scores", 3, weight=8),
)
def test_programs_of_annotated_data(table, data, key, mask, layer, batch):
    anndata = pytest.importorskip("anndata")
    from nmfcluster.anndata import programs

    table = table.but(n=table.n + 8, form=table.form if "csr" in table.form else "C")
    try:
        adata = anndata.AnnData(table.build())
        adata.obs["batch"] = labels(data.draw, adata.n_obs)
    except ERRORS_OF_ANNDATA:
        return  # of what it cannot hold
    adata.var["used"] = np.arange(adata.n_vars) % 2 == 0
    adata.var["counts"] = np.arange(adata.n_vars)
    adata.obs["scores"] = np.linspace(0, 1, adata.n_obs)
    adata.layers["log"] = adata.X
    given = data.draw(parameters(NMFMetaCluster, QUICK, at_most=1, fixed=("memory",)))
    options = {"layer": layer, "batch_key": batch, "mask_var": mask, "key_added": key}
    names = [*names_of(NMFMetaCluster), *options, "adata", "groups"]
    model = judged_of(adata, programs, **given, **options, also=names)
    if model is not REFUSED:
        assert adata.obsm[f"X_{key}"].shape == (adata.n_obs, model.n_clusters)
        assert np.isfinite(adata.varm[key]).all()


@fuzz(
    FEATURES,
    st.data(),
    mostly("X_pca", ["one", "two"], "no", [], 3, ["one"], [0], None, weight=8),
)
def test_consensus_of_annotated_data(table, data, key):
    anndata = pytest.importorskip("anndata")
    from nmfcluster.anndata import consensus

    adata = anndata.AnnData(np.ones((table.n, 1)))
    try:
        adata.obsm["X_pca"] = table.build()
        for name in ("one", "two"):
            adata.obs[name] = labels(data.draw, adata.n_obs)
    except ERRORS_OF_ANNDATA:
        return  # of what it cannot hold
    given = data.draw(parameters(NMFConsensus, QUICK, at_most=1, fixed=("affinity",)))
    names = [*names_of(NMFConsensus), "adata", "key"]
    model = judged_of(adata, consensus, key, **given, also=names, foreign=True)
    if model is not REFUSED:
        assert adata.obsm["X_consensus"].shape == (adata.n_obs, model.n_clusters)
