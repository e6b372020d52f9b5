"""Pictures, given any table, any labels and any axes."""

import functools

import numpy as np
import pytest
from fuzz import tables
from fuzz.parameters import bad_values
from fuzz.strategies import FEATURES, LABEL_TABLES, SEEDS, mostly, usually
from fuzz.test_functions import one_column
from fuzz.verdict import REFUSED, fuzz, judged
from hypothesis import strategies as st
from matplotlib.figure import Figure
from sklearn.cluster import KMeans

from nmfcluster import NMFConsensus, NMFMetaCluster, SSNMFClusterer
from nmfcluster import display as pictures

NO_AXES = ("ax", 3, True, np.eye(2), Figure())


@functools.cache
def models():
    """Return fitted estimators, and what is none."""
    X = np.random.default_rng(0).uniform(size=(12, 3)) + np.arange(12)[:, None] % 3
    known = SSNMFClusterer(3, random_state=0).fit(
        X, must_link=[(0, 3)], cannot_link=[(0, 1)]
    )
    runs = NMFMetaCluster(3, n_estimators=3, random_state=0).fit(X)
    consensus = NMFConsensus(3, n_estimators=3, random_state=0).fit(X)
    others = (
        KMeans(2, n_init=1, random_state=0).fit(X),
        KMeans(),
        KMeans,
        None,
        "model",
        3,
        X,
    )
    return (consensus, runs, known), others


@pytest.fixture(scope="module", autouse=True)
def _no_windows():
    pytest.importorskip("matplotlib").use("Agg")


def drawn(draw, method, *given, **options):
    """Judge a picture in axes, or in what is none, with any number of cells."""
    defaults = getattr(method, "__kwdefaults__", None) or {}
    if "max_cells" in defaults and draw(st.booleans()):
        options["max_cells"] = draw(
            usually(st.integers(1, 30), bad_values("max_cells"), times=3)
        )
    axes = (
        Figure().subplots()
        if draw(st.integers(0, 9))
        else draw(st.sampled_from(NO_AXES))
    )
    found = judged(
        functools.partial(method, ax=axes), *given, also=[*NAMES, "ax"], **options
    )
    # which takes most of the time
    if found is not REFUSED and draw(st.integers(0, 9)) == 0:
        found.figure_.draw_without_rendering()
    return found


NAMES = (
    *(
        "estimator",
        "estimators",
        "labels",
        "partitions",
        "weights",
        "max_cells",
        "rows",
        "columns",
    ),
    *("curves", "scores", "values"),
)
KINDS = [getattr(pictures, name) for name in sorted(pictures.__all__)]
METHODS = [kind.from_estimator for kind in KINDS if hasattr(kind, "from_estimator")]
METHODS += [kind.from_estimators for kind in KINDS if hasattr(kind, "from_estimators")]


@fuzz(st.sampled_from(METHODS), st.data(), FEATURES)
def test_pictures_of_estimators(method, data, table):
    fitted, others = models()
    model = data.draw(mostly(*fitted, *others))
    if "from_estimators" in method.__qualname__:
        model = data.draw(mostly([model], model, [], [model] * 2, weight=1))
    given = (table.build(),) if "Bicluster" in method.__qualname__ else ()
    drawn(data.draw, method, model, *given)


@fuzz(
    LABEL_TABLES, LABEL_TABLES, st.data(), st.booleans(), mostly(None, [1], "x", np.nan)
)
def test_pictures_of_partitions(table, labels, data, same, weights):
    labels = labels.but(n=table.n) if same else labels
    partitions, labels = table.build(), one_column(labels, column=True)
    method = pictures.ConsensusMatrixDisplay.from_partitions
    found = drawn(data.draw, method, partitions, labels, weights=weights)
    if found is not REFUSED:
        assert sorted(found.order) == list(range(len(found.order)))
        assert found.cell_sizes.sum() == len(found.order)


@fuzz(FEATURES, st.data(), SEEDS, mostly("bool", "int8", "float64", "U1"))
def test_pictures_of_biclusters(table, data, seed, dtype):
    rng = np.random.default_rng(seed)
    k, n, p = (
        data.draw(st.integers(0, 4)),
        table.n,
        table.p + data.draw(mostly(0, 1, weight=9)),
    )
    rows, columns = (rng.integers(2, size=(k, size)).astype(dtype) for size in (n, p))
    X = table.build()
    found = drawn(
        data.draw, pictures.BiclusterDisplay.from_biclusters, X, rows, columns
    )
    if found is not REFUSED:
        assert found.row_sizes.sum() == n
        assert found.column_sizes.sum() == p


@fuzz(FEATURES, st.data())
def test_pictures_of_scores(table, data):
    given = one_column(table, column=True)
    scores = data.draw(mostly(given, [], None, 3, "scores", [[1]], [0.5, np.nan]))
    values = list(range(tables.n_rows(scores))) if data.draw(st.integers(0, 5)) else 3
    options = {"param_name": "k", "values": values, "scores": scores}
    drawn(data.draw, functools.partial(_plotted, pictures.StabilityDisplay), **options)


def _plotted(kind, *, ax, **given):
    return kind(**given).plot(ax)
