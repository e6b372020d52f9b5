"""A column that names or numbers the rows is no feature: the fit warns of it."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    SimilarityFusionNMF,
    SSNMFClusterer,
)

pd = pytest.importorskip("pandas")

POINTS, _ = make_blobs(40, centers=2, n_features=3, random_state=1)
FRAME = pd.DataFrame(POINTS - POINTS.min(), columns=list("abc"))
FITS = {
    "consensus": NMFConsensus(2, n_estimators=5),
    "consensus of k-means": NMFConsensus(2, estimator=KMeans(n_init=1), n_estimators=5),
    "pairs": SSNMFClusterer(2),
    "programs": NMFMetaCluster(2, n_estimators=3),
}


def warned(fit, X):
    """Return the columns that warnings name as ids."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fit(X)
    texts = [str(one.message) for one in told if "whole numbers" in str(one.message)]
    return [column for column in X.columns if any(repr(column) in t for t in texts)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FITS)
def test_a_fit_warns_of_ids(name):
    numbered = FRAME.assign(id=np.arange(1000, 1040))
    model = FITS[name]
    assert warned(model.fit, numbered) == ["id"]
    assert warned(model.predict, numbered) == []  # once is enough


def test_views_warn_of_ids():
    views = {"one": FRAME.assign(id=np.arange(1000, 1040)), "other": FRAME}
    with pytest.warns(UserWarning, match="'id'"):
        SimilarityFusionNMF(2, affinity="rbf").fit(views)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("column", "values", "is_id"),
    [
        ("sample_id", np.random.default_rng(0).permutation(40), True),
        ("Unnamed: 0", np.arange(40), True),
        ("number", np.arange(40), True),
        ("row", np.arange(1, 41), True),
        ("year", np.arange(1980, 2020), False),
        ("id", np.repeat([1, 2], 20), False),
        ("id", np.arange(40) / 7, False),
        ("id", pd.array([None, *range(38), None], dtype="Int64"), False),
        ("row", pd.array([*range(39), None], dtype="Int64"), False),
        ("identity", np.random.default_rng(0).permutation(40), False),
    ],
)
def test_what_is_taken_for_ids(column, values, is_id):
    X = FRAME.assign(**{column: values})
    fit = NMFConsensus(2, affinity="partitions").fit
    assert warned(fit, X.round()) == ([column] if is_id else [])
