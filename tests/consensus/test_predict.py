"""New samples in `NMFConsensus`, and the samples of the fit as new ones."""

import numpy as np
import pytest
from consensus.cases import of_partitions
from refusals import warns_naming
from sklearn.cluster import DBSCAN, AgglomerativeClustering, SpectralClustering
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus

BASES = [
    None,
    AgglomerativeClustering(),
    DBSCAN(eps=2),
    SpectralClustering(affinity="nearest_neighbors", n_neighbors=8),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("base", "max_samples"), [(None, 1.0), *((base, 0.7) for base in BASES)], ids=str
)
@pytest.mark.filterwarnings("ignore:Graph is not fully connected")
def test_training_samples_are_predicted_as_they_were_clustered(base, max_samples):
    X, y = make_blobs(
        (60, 40, 20), centers=np.eye(3) * 5, cluster_std=0.5, random_state=0
    )
    model = NMFConsensus(
        3,
        estimator=base,
        n_estimators=8,
        base_n_clusters=3,
        max_samples=max_samples,
        random_state=0,
    ).fit(X)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert (model.predict(X) == model.labels_).mean() >= 0.98
    np.testing.assert_array_equal(model.predict(X + 1e-9), model.predict(X))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("affinity", ["partitions", "precomputed", "given"])
@pytest.mark.parametrize("name", ["noisy", "holey"])
def test_training_rows_are_predicted_as_they_were_clustered(affinity, name, request):
    table = request.getfixturevalue(name)
    X, partitions, parameters = table, None, {"affinity": affinity}
    if affinity == "precomputed":
        X = np.nan_to_num(of_partitions(3, table).consensus_matrix())
    if affinity == "given":
        X, partitions, parameters = np.arange(100.0)[:, None], table, {}
    model = NMFConsensus(3, random_state=0, **parameters).fit(X, partitions=partitions)
    assert (model.predict(X) == model.labels_).mean() >= 0.95


def test_given_partitions_label_a_new_sample_like_the_nearest_one():
    X = np.array([[0.0], [1.0], [10.0], [11.0], [12.0]])
    y = np.array([0, 0, 1, 1, 1])
    model = NMFConsensus(2).fit(X, partitions=[y, y])
    np.testing.assert_array_equal(
        model.predict([[30.0], [2.0], [9.0], [-5.0]]), [0, 1, 0, 1]
    )


def test_unknown_labels_are_as_good_as_none(holey):
    names = np.array(["a", "b", "c", None], dtype=object)
    model = of_partitions(3, names[holey])
    rows = names[holey[:20]]
    unknown = np.where(np.equal(rows, None), "never seen", rows)
    np.testing.assert_array_equal(model.transform(unknown), model.transform(rows))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("nothing", [-1, 99, np.nan, None])
def test_a_sample_of_which_nothing_is_known_belongs_nowhere(nothing, noisy):
    model = of_partitions(3, noisy)
    rows = np.array([noisy[0], np.full(12, nothing)])
    np.testing.assert_array_equal(model.predict(rows), [model.labels_[0], -1])
    np.testing.assert_allclose(model.transform(rows)[1], 1 / 3)


def test_a_sample_without_similarity_belongs_nowhere():
    model = NMFConsensus(2, affinity="precomputed").fit(
        np.kron(np.eye(2), np.ones((3, 3)))
    )
    new = np.array([[0.0] * 6, [0, 0, 0, 1, 1, 1]])
    assert model.predict(new)[0] == -1
    assert model.predict(new)[1] == model.labels_[5]
    np.testing.assert_allclose(model.transform(new)[0], 0.5)


def test_samples_without_any_similarity_to_others_are_warned_of():
    A = np.kron(np.eye(2), np.ones((4, 4)))
    A[3, :3] = A[:3, 3] = 0
    told = ("X", "similarity", "sample 3")
    with warns_naming(UserWarning, told) as caught:
        NMFConsensus(2, affinity="precomputed").fit(A)
    assert caught[0].filename == __file__


def test_one_known_label_is_enough():
    y = np.repeat([0, 1, 2], [50, 30, 20])
    model = of_partitions(3, np.column_stack([y] * 4))
    row = [[-2, -2, 1, -2]]
    np.testing.assert_array_equal(model.predict(row), [1])
    np.testing.assert_allclose(model.transform(row), [[0, 1, 0]], atol=0.02)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("affinity", ["coassociation", "partitions", "precomputed"])
def test_prediction_is_the_largest_column_of_the_transform(affinity, noisy):
    X = np.asarray(of_partitions(3, noisy).consensus_matrix())
    X = noisy if affinity == "partitions" else X
    model = NMFConsensus(3, affinity=affinity, n_estimators=10, random_state=0).fit(X)
    P = model.transform(X[:30])
    assert P.shape == (30, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X[:30]), P.argmax(axis=1))
