"""Public functions: base partitions, affinities, scores, made data."""

import numpy as np
from fuzz import tables
from fuzz.parameters import CALLABLES, bad_values, values_of
from fuzz.strategies import (
    FEATURES,
    LABEL_TABLES,
    SEEDS,
    SIMILARITIES,
    mostly,
    rows_like,
    stored,
    usually,
)
from fuzz.verdict import REFUSED, fuzz, judged
from hypothesis import strategies as st

from nmfcluster.affinity import AFFINITY_PARAMETERS, make_affinity, path_kernel
from nmfcluster.constraints import labels_of_sizes
from nmfcluster.datasets import make_biclusters, make_nested_rings, make_partitions
from nmfcluster.meta import assign
from nmfcluster.metrics import clustering_accuracy, cophenetic_correlation
from nmfcluster.partitions import base_partitions
from nmfcluster.partitions.base_runs import BASE_PARAMETERS as PARTITIONS

NUMBERS = (
    0,
    -1,
    1e-300,
    1e300,
    np.nan,
    np.inf,
    None,
    True,
    "x",
    1j,
    10**30,
    [1],
    np.float32(0.5),
)


def drawn(draw, name, kinds, times=6):
    """Draw a value of one of the kinds that a parameter may be of, or a bad one."""
    valid = st.one_of([values_of(name, kind) for kind in kinds])
    return draw(usually(valid, bad_values(name), times=times))


@fuzz(
    FEATURES,
    st.lists(st.sampled_from(sorted(PARTITIONS)), unique=True, max_size=3),
    st.data(),
)
def test_base_partitions(table, changed, data):
    given = {"n_estimators": 2, "n_clusters": 2, "random_state": 0}
    for name in changed:
        called = "n_clusters" if name == "base_n_clusters" else name
        kinds = [
            kind
            for kind in PARTITIONS[name]
            if name != "base_n_clusters" or kind is not None
        ]
        given[called] = drawn(data.draw, name, kinds)
    foreign = given.get("estimator") is not None
    X = table.build()
    found = judged(base_partitions, X, foreign=foreign, **given)
    if found is not REFUSED:
        labels = found.labels
        assert labels.shape == (tables.n_rows(X), len(found.estimators))
        assert labels.dtype.kind == "i"
        assert labels.min() >= -2
        assert (labels.max(axis=0) >= 0).all()


@fuzz(
    usually(FEATURES, SIMILARITIES),
    mostly(
        "rbf",
        "linear",
        "cosine",
        "nearest_neighbors",
        "precomputed",
        "no",
        3,
        *CALLABLES,
    ),
    st.lists(
        st.sampled_from([*sorted(AFFINITY_PARAMETERS), "n_jobs"]),
        unique=True,
        max_size=2,
    ),
    st.data(),
)
def test_make_affinity(table, affinity, changed, data):
    kinds = {**AFFINITY_PARAMETERS, "n_jobs": [None]}
    given = {name: drawn(data.draw, name, kinds[name]) for name in changed}
    X = table.build()
    made = judged(make_affinity, X, affinity, foreign="RBF" in repr(affinity), **given)
    if made is REFUSED:
        return
    W = made.similarity
    n = tables.n_rows(X)
    assert W.shape == (n, n)
    block = made.block()
    assert block.shape == (n, n)
    table = table.but(flaw=None)
    new = table.but(rows=data.draw(st.integers(1, n)))
    new = new.but(seed=data.draw(SEEDS)) if new.kind in tables.FEATURES else new
    new = new.build()
    foreign = "RBF" in repr(affinity)
    between = judged(made.between, new, also=["affinity", "X"], foreign=foreign)
    identity = np.eye(n, dtype=W.dtype)
    product = judged(made.cross, new, identity, also=["affinity", "X"], foreign=foreign)
    if between is not REFUSED and product is not REFUSED:
        assert between.shape == product.shape == (tables.n_rows(new), n)


@fuzz(FEATURES, st.data(), mostly(None, 1.0, *NUMBERS, weight=8))
def test_path_kernel(table, data, scale):
    other = data.draw(st.one_of(st.none(), rows_like(table)))
    Y = None if other is None else other.build()
    X = table.build()
    K = judged(path_kernel, X, Y, scale=scale)
    if K is not REFUSED:
        assert np.isfinite(K).all()
        assert K.min() >= 0
        assert K.max() <= 1
        assert len(K) == tables.n_rows(X)
        assert other is not None or np.array_equal(K, K.T)


def one_column(table, column):
    """Return the labels of one column, as a vector if that is asked for."""
    if not column:
        return table.build()
    labels = table.but(
        form="C", flaw="vector" if table.flaw is None else table.flaw
    ).build()
    return labels.tolist() if table.form in tables.LISTS and np.ndim(labels) else labels


@fuzz(LABEL_TABLES, LABEL_TABLES, mostly(True, False, weight=6), st.booleans())
def test_scores_of_labels(one, other, column, same):
    other = other.but(n=one.n) if same else other
    a, b = one_column(one, column), one_column(other, column)
    value = judged(clustering_accuracy, a, b)
    assert value is REFUSED or 0 <= value <= 1
    if value is not REFUSED:
        assert abs(clustering_accuracy(b, a) - value) < 1e-12


@fuzz(usually(stored(("together", "blocks", "rbf", "identity")), SIMILARITIES))
def test_scores_of_a_consensus(table):
    value = judged(cophenetic_correlation, table.build())
    assert value is REFUSED or -1 - 1e-9 <= value <= 1 + 1e-9, value


@fuzz(
    FEATURES,
    mostly(0, 1, 2, *NUMBERS, weight=6),
    mostly(None, 3, 5, 9, *NUMBERS, weight=6),
)
def test_labels_of_sizes(table, least, most):
    call = lambda: labels_of_sizes(table.build(), least, most)  # noqa: E731
    labels = judged(call, also=["membership", "min_size", "max_size"])
    if labels is not REFUSED:
        sizes = np.bincount(labels, minlength=table.p)
        assert len(labels) == sizes.sum() == len(table.build())
        assert sizes.min() >= least
        assert most is None or sizes.max() <= most


@fuzz(
    usually(stored(("integers", "uniform", "blobs", "repeated")), FEATURES),
    usually(stored(("uniform",), forms=st.just("C"), flaws=st.none()), FEATURES),
    mostly(8, 0, 1e6, *NUMBERS, weight=24),
    mostly(0, 2, *NUMBERS, weight=24),
)
def test_assign(table, catalogue, min_gain, n_bootstraps):
    catalogue = catalogue.but(n=catalogue.n % 6 + 1, p=table.p)
    X, H = table.build(), catalogue.build()
    found = judged(assign, X, H, min_gain=min_gain, n_bootstraps=n_bootstraps)
    if found is not REFUSED:
        for values in found[: 3 if n_bootstraps else 1]:
            assert values.shape == (np.shape(X)[0], np.shape(H)[0])
            assert np.isfinite(values).all()
            assert values.min() >= 0


SIZES = (
    10,
    1,
    0,
    -1,
    2.5,
    None,
    True,
    "x",
    np.int8(100),
    np.uint8(7),
    [3, 4],
    (5, 0),
    (5, "a"),
)
SIZES += ((5, 5, 5), np.array([3, 4]), [], [[1, 2], [3]], {3, 4}, 10**30, (10**30, 3))
SHARES = (0.2, 0.0, 1.0, 0.49, 0.5, -0.1, *NUMBERS)
GENERATOR = np.random.default_rng(0)
ODD_SEEDS = mostly(
    0,
    None,
    np.int64(1),
    np.random.default_rng(0),
    "x",
    -1,
    0.5,
    np.timedelta64(1, "s"),
    2**40,
    True,
    weight=8,
)


@fuzz(st.sampled_from([make_biclusters, make_nested_rings, make_partitions]), st.data())
def test_made_data(make, data):
    counts = mostly(4, *SIZES, 2, 3, weight=12)
    shares = mostly(0.2, *SHARES, weight=12)
    options = {
        make_biclusters: {
            "shape": mostly((21, 35), (8, 9), [9, 8], (3, 3), *SIZES, weight=12),
            "n_clusters": counts,
            "overlap": shares,
            "twins": mostly(True, False, None, "x", 1),
            "noise": shares,
        },
        make_nested_rings: {
            "n_samples": mostly(20, *SIZES, weight=12),
            "radii": mostly(
                (2.0, 3.5), (1,), [], (0,), (-1, 2), ("a",), 3, (1e300, 1), (np.nan,)
            ),
            "noise": shares,
        },
        make_partitions: {
            "n_samples": mostly(20, *SIZES, weight=12),
            "n_clusters": counts,
            "n_partitions": counts,
            "noise": shares,
            "missing": shares,
        },
    }[make]
    chosen = data.draw(
        st.lists(st.sampled_from(sorted(options)), unique=True, max_size=3)
    )
    given = {name: data.draw(options[name]) for name in chosen}
    made = judged(make, random_state=data.draw(ODD_SEEDS), **given)
    if made is not REFUSED:
        assert all(np.isfinite(part).all() for part in made)
        assert len(made[0]) == len(made[1])
