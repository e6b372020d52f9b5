"""Every clusterer, in all of its modes, on tables, similarities, labels and constraints."""

import numpy as np
from fuzz import tables
from fuzz.parameters import parameters
from fuzz.strategies import (
    FEATURES,
    LABEL_TABLES,
    SIMILARITIES,
    SIZES,
    build,
    mostly,
    pairs_of,
    rows_like,
    stored,
    usually,
)
from fuzz.verdict import fuzz, judge_estimator, judged
from hypothesis import strategies as st
from sklearn.base import clone

from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SimilarityStack,
    SSNMFClusterer,
)
from nmfcluster.stack import ViewStack

QUICK = {"n_clusters": 2, "n_init": 1, "max_iter": 3, "random_state": 0}
CONSENSUS = QUICK | {"n_estimators": 2}
FEATURE_KINDS = ("linear", "cosine", "rbf", "nearest_neighbors")


def built(table, draw):
    """Return a table as it is handed in, its number of samples, and what to predict."""
    new = draw(rows_like(table))
    X = table.build()
    return X, tables.n_rows(X), [table.build(), new.build()]


def foreign(model):
    """Return whether something of somebody else works in a model, whose errors are not ours."""
    return getattr(model, "estimator", None) is not None or callable(model.affinity)


def weights(draw, n):
    """Draw how often each of n samples counts, as `fit` takes it; mostly not given."""
    kinds = ["ones", "some", "parts", "none", "words"]
    made = {
        None: None,
        "ones": np.ones(n),
        "some": np.arange(n) % 3,
        "parts": np.arange(n) / 7,
        "none": np.zeros(n),
        "words": ["a"] * n,
    }
    drawn = made[draw(usually(st.none(), st.sampled_from(kinds)))]
    return {} if drawn is None else {"sample_weight": drawn}


@fuzz(FEATURES, parameters(NMFConsensus, CONSENSUS, fixed=("affinity",)), st.data())
def test_consensus_of_features(table, given, data):
    X, n, new = built(table, data.draw)
    arguments = {}
    if data.draw(st.integers(0, 2)) == 0:
        partitions = data.draw(LABEL_TABLES).but(
            n=data.draw(mostly(n, n + 1, weight=8))
        )
        if data.draw(st.booleans()) and partitions.form in tables.ARRAYS:
            partitions = partitions.but(form=tables.VECTORS)
        arguments = {"partitions": partitions.build()}
    model = NMFConsensus(**given)
    descends = str(model.factorization) != "tri"
    arguments |= weights(data.draw, n)
    judge_estimator(
        model, X, n, arguments, new, descends=descends, foreign=foreign(model)
    )
    judge_storage(model, table, arguments)


@fuzz(
    LABEL_TABLES,
    parameters(
        NMFConsensus, CONSENSUS | {"affinity": "partitions"}, fixed=("affinity",)
    ),
    st.data(),
)
def test_consensus_of_label_tables(table, given, data):
    X, n, new = built(table, data.draw)
    model = NMFConsensus(**given)
    arguments, descends = weights(data.draw, n), str(model.factorization) != "tri"
    judge_estimator(model, X, n, arguments, new, descends=descends)
    judge_storage(model, table, arguments)


@fuzz(
    SIMILARITIES,
    parameters(
        NMFConsensus, CONSENSUS | {"affinity": "precomputed"}, fixed=("affinity",)
    ),
    st.data(),
)
def test_consensus_of_a_similarity(table, given, data):
    X, n, new = built(table, data.draw)
    model = NMFConsensus(**given)
    arguments = weights(data.draw, n) if n % 5 == 0 else {}
    judge_estimator(
        model, X, n, arguments, new, descends=str(model.factorization) != "tri"
    )
    judge_storage(model, table, arguments)


def judge_storage(model, table, arguments=()):
    """Check that it does not matter how a table is stored, where its numbers are the same."""
    same = ("strided", "reversed", "readonly", "memmap", "big-endian", "masked")
    clear = table.kind in ("blobs", "uniform", "rbf", "together") and table.flaw is None
    fitted = hasattr(model, "labels_") and isinstance(model.random_state, int)
    if fitted and clear and table.form in same and table.seed % 4 == 0:
        plain = judged(clone(model).fit, table.but(form="C").build(), **dict(arguments))
        np.testing.assert_allclose(plain.membership_, model.membership_, atol=1e-3)


def constraints(draw, n):
    """Draw constraints of n samples, in one of the ways in which `fit` takes them."""
    must, cannot = (draw(pairs_of(n)) for _ in range(2))
    if draw(st.integers(0, 3)):
        return {"must_link": build(must), "cannot_link": build(cannot)}
    labels = draw(
        stored(("labels",), n=st.just(n), p=st.just(1), forms=st.just("C"))
    ).values()
    known = PairwiseConstraints.from_labels(labels[:, 0].astype(int))
    return {"constraints": known} | ({"must_link": build(must)} if n % 5 == 0 else {})


@fuzz(FEATURES, parameters(SSNMFClusterer, QUICK), st.data())
def test_constrained_clustering_of_features(table, given, data):
    X, n, new = built(table, data.draw)
    model = SSNMFClusterer(
        **{"affinity": data.draw(st.sampled_from(FEATURE_KINDS))} | given
    )
    arguments = constraints(data.draw, n) if data.draw(st.booleans()) else {}
    judge_estimator(model, X, n, arguments, new, foreign=foreign(model))
    judge_storage(model, table, arguments)


@fuzz(
    SIMILARITIES,
    parameters(
        SSNMFClusterer, QUICK | {"affinity": "precomputed"}, fixed=("affinity",)
    ),
    st.data(),
)
def test_constrained_clustering_of_a_similarity(table, given, data):
    X, n, new = built(table, data.draw)
    model = SSNMFClusterer(**given)
    arguments = constraints(data.draw, n) if data.draw(st.booleans()) else {}
    judge_estimator(model, X, n, arguments, new, foreign=foreign(model))
    judge_storage(model, table, arguments)


@fuzz(FEATURES, parameters(SimilarityFusionNMF, QUICK), st.data())
def test_fusion_of_features(table, given, data):
    X, n, new = built(table, data.draw)
    model = SimilarityFusionNMF(
        **{"affinity": data.draw(st.sampled_from(FEATURE_KINDS))} | given
    )
    judge_estimator(model, X, n, {}, new, foreign=foreign(model))
    judge_storage(model, table)


@fuzz(
    st.lists(SIMILARITIES, min_size=1, max_size=3),
    SIZES,
    parameters(SimilarityFusionNMF, QUICK, fixed=("affinity",)),
    st.sampled_from(["X", "stack", "array", "list", "stack beside"]),
)
def test_fusion_of_similarities(sources, n, given, form):
    sources = [
        table if i and n % 8 == 0 else table.but(n=n) for i, table in enumerate(sources)
    ]
    model = SimilarityFusionNMF(**given)
    if form == "X":
        X, new = (sources[0].build() for _ in range(2))
        judge_estimator(model, X, n, {}, [new])
        return
    if form == "array":
        arrays = [table.but(form="C").array() for table in sources]
        if len({array.shape for array in arrays}) > 1 or not all(map(numeric, arrays)):
            return
        X = np.stack(arrays, axis=-1)
        judge_estimator(model, X, n, {}, [X])
        return
    try:
        stack = SimilarityStack(build(sources))
    except (TypeError, ValueError):
        stack = None
    if form == "list" or stack is None:
        arguments, new = (
            {"similarities": build(sources)},
            [] if stack is None else [stack],
        )
        judge_estimator(model, None, n, arguments, new)
    elif form == "stack":
        judge_estimator(model, stack, n, {}, [stack])
    else:
        judge_estimator(model, None, n, {"similarities": stack}, [stack])


@fuzz(
    st.lists(FEATURES, min_size=1, max_size=3),
    SIZES,
    parameters(SimilarityFusionNMF, QUICK),
    st.sampled_from(["dict", "beside", "stack"]),
)
def test_fusion_of_views(tables, n, given, form):
    tables = [
        table if i and n % 8 == 0 else table.but(n=n) for i, table in enumerate(tables)
    ]
    model, views = (
        SimilarityFusionNMF(**given),
        {f"v{i}": V for i, V in enumerate(build(tables))},
    )
    options = {"foreign": foreign(model)}
    try:
        stack = ViewStack(views)
    except (TypeError, ValueError):
        stack = views
    else:
        n = len(stack)  # of frames with names: all that one of them has
    if form == "beside":
        judge_estimator(model, None, n, {"views": views}, [views], **options)
        return
    X = stack if form == "stack" else views
    judge_estimator(model, X, n, {}, [X], **options)


def numeric(array):
    return array.dtype.kind in "fiub"


@fuzz(
    usually(FEATURES, stored(("integers", "blobs", "constant"))),
    # which would make folders
    parameters(NMFMetaCluster, CONSENSUS, fixed=("memory",)),
    st.data(),
)
def test_metaclustering(table, given, data):
    X, n, new = built(table, data.draw)
    model = NMFMetaCluster(**given)
    arguments = weights(data.draw, n)
    judge_estimator(model, X, n, arguments, new, sums=False)
    judge_storage(model, table, arguments)
