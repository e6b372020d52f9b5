"""Base partitions: what is drawn, what is set, and that nothing depends on n_jobs."""

import numpy as np
import pytest
import scipy.sparse as sp
from comparing import same_partition
from joblib import parallel_config
from numpy.testing import assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.decomposition import PCA
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster import NMFConsensus
from nmfcluster.partitions import (
    GraphSpectral,
    LandmarkSpectral,
    base_partitions,
    graph_runs,
)
from nmfcluster.partitions.base_runs import nearest_samples, range_of_clusters

X, Y = make_blobs(60, n_features=4, centers=3, random_state=0)


class Recorder(ClusterMixin, BaseEstimator):
    """A clusterer that keeps the data it saw."""

    def __init__(self, n_clusters=2, random_state=None):
        self.n_clusters, self.random_state = n_clusters, random_state

    def fit_predict(self, X, y=None):
        self.seen_ = X
        return np.arange(len(X)) % self.n_clusters


class Wrong(Recorder):
    def fit_predict(self, X, y=None):
        return np.zeros((len(X), 1))


def test_clusterers_of_a_list_take_turns():
    bases = [
        KMeans(n_init=1),
        GaussianMixture(),
        AgglomerativeClustering(linkage="average"),
    ]
    options = {"n_estimators": 7, "n_clusters": (2, 5), "random_state": 0}
    for several in (bases, tuple(bases)):
        made = base_partitions(X, several, **options)
        assert [type(own) for own in made.estimators] == [
            type(bases[t % 3]) for t in range(7)
        ]
        assert len({own.random_state for own in made.estimators[:2]}) == 2
        assert not hasattr(bases[0], "labels_")
        assert made.predict(X, X).shape == (60, 7)
    kmeans = base_partitions(X, bases[0], **options).labels
    # seeds are those of the place
    assert_array_equal(made.labels[:, ::3], kmeans[:, ::3])


def test_a_consensus_of_several_clusterers():
    bases = [KMeans(n_init=1), GaussianMixture()]
    model = NMFConsensus(3, estimator=bases, n_estimators=6, random_state=0)
    assert same_partition(clone(model).fit(X).labels_, Y)
    assert_array_equal(model.fit(X).predict(X), model.labels_)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "estimator", [None, make_pipeline(StandardScaler(), KMeans(n_init=1))]
)
def test_the_result_is_the_same_for_any_number_of_jobs(estimator):
    options = {
        "n_estimators": 6,
        "n_clusters": (2, 5),
        "max_samples": 0.8,
        "max_features": 0.5,
    }
    with parallel_config("threading"):
        one, two = (
            base_partitions(X, estimator, **options, random_state=3, n_jobs=n)
            for n in (None, 2)
        )
    assert_array_equal(one.labels, two.labels)
    other = base_partitions(X, estimator, **options, random_state=4)
    assert not np.array_equal(one.labels, other.labels)
    rng = np.random.RandomState(3)
    assert_array_equal(
        base_partitions(X, estimator, **options, random_state=rng).labels, one.labels
    )


def test_a_partition_is_what_the_clusterer_finds_with_its_seed():
    bases = [KMeans(n_init=1), LandmarkSpectral(), GraphSpectral()]
    found = base_partitions(X, bases, n_estimators=6, n_clusters=3, random_state=0)
    assert found.labels.dtype == np.int64
    for labels, fitted in zip(found.labels.T, found.estimators, strict=True):
        assert_array_equal(labels, clone(fitted).fit_predict(X))
    assert len({fitted.random_state for fitted in found.estimators}) == 6
    kinds = [KMeans, LandmarkSpectral, GraphSpectral]
    assert [type(fitted) for fitted in found.estimators] == 2 * kinds


@pytest.mark.sampled(2)
@pytest.mark.parametrize("max_samples", [1.0, 40])
@pytest.mark.parametrize("most", [10_000, 50])
def test_default_runs_label_samples_as_they_predict_them(
    monkeypatch, most, max_samples
):
    """Also where only some samples are in the graphs."""
    monkeypatch.setattr(graph_runs, "_MAX_SAMPLES", most)
    options = {"n_estimators": 7, "n_clusters": (3, 5), "random_state": 0}
    found = base_partitions(X, max_samples=max_samples, predict_unseen=True, **options)
    assert_array_equal(found.predict(X), found.labels)
    assert found.labels.min() == 0
    single = [one.predict(X) for one in found.estimators]
    assert_array_equal(np.column_stack(single), found.labels)
    if max_samples != 1:
        seen = base_partitions(X, max_samples=max_samples, **options).labels
        assert_array_equal(np.where(seen >= 0, found.labels, -2), seen)
        assert_array_equal((seen >= 0).sum(axis=0), max_samples)


def test_default_runs_find_planted_clusters_in_any_order_of_rows():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), [300, 50, 20])
    centres = np.array([[0, 0], [8, 0], [0, 8]])
    samples = centres[y] + 0.5 * rng.normal(size=(len(y), 2))
    found = base_partitions(samples, n_estimators=5, n_clusters=3, random_state=0)
    assert min(adjusted_rand_score(y, column) for column in found.labels.T) > 0.9
    order = rng.permutation(len(y))
    again = base_partitions(
        samples[order], n_estimators=5, n_clusters=3, random_state=0
    )
    assert_array_equal(again.labels, found.labels[order])
    copied = base_partitions(
        np.repeat(samples, 3, axis=0), n_estimators=5, n_clusters=3, random_state=0
    )
    assert_array_equal(copied.labels[::3], found.labels)


def test_a_part_of_a_graph_that_a_run_misses_is_a_cluster():
    """Here one sample lies apart from all others, and some runs do not draw it."""
    samples = np.concatenate(
        [np.random.default_rng(0).normal(size=(60, 2)), [[99, 99]]]
    )
    found = base_partitions(samples, n_estimators=9, n_clusters=2, random_state=0)
    sizes = [(column == column[-1]).sum() for column in found.labels.T]
    assert np.median(sizes) == 1
    assert sizes.count(1) >= 7


def test_numbers_of_clusters_are_drawn_from_the_whole_range():
    found = base_partitions(
        X, Recorder(), n_estimators=80, n_clusters=(2, 5), random_state=0
    )
    drawn = [estimator.n_clusters for estimator in found.estimators]
    assert sorted(set(drawn)) == [2, 3, 4, 5]
    assert min(drawn.count(k) for k in (2, 3, 4, 5)) > 8
    assert_array_equal(found.labels.max(axis=0) + 1, drawn)


def test_no_more_clusters_than_drawn_samples():
    found = base_partitions(X, Recorder(), n_estimators=3, n_clusters=30, max_samples=7)
    assert [estimator.n_clusters for estimator in found.estimators] == [7, 7, 7]


def test_samples_that_were_not_drawn_are_marked_and_no_others():
    options = {"n_estimators": 12, "n_clusters": 2, "random_state": 0}
    for share, size in ((0.5, 30), (17, 17), (1e-6, 2), (1, 2), (0.99, 59)):
        found = base_partitions(X, Recorder(), max_samples=share, **options)
        for labels, drawn, estimator in zip(
            found.labels.T, found.samples, found.estimators, strict=True
        ):
            assert len(set(drawn)) == size
            assert_array_equal(np.flatnonzero(labels >= 0), drawn)
            assert_array_equal(estimator.seen_, X[drawn])
            assert_array_equal(labels[drawn], np.arange(size) % 2)
        assert len({tuple(drawn) for drawn in found.samples}) > 1


def test_features_that_were_drawn_are_those_the_clusterer_saw():
    options = {"n_estimators": 9, "n_clusters": 2, "random_state": 0}
    for share, size in ((0.5, 2), (3, 3), (0.01, 1)):
        found = base_partitions(X, Recorder(), max_features=share, **options)
        for columns, estimator in zip(found.features, found.estimators, strict=True):
            assert len(set(columns)) == size
            assert_array_equal(estimator.seen_, X[:, columns])
        assert len({tuple(columns) for columns in found.features}) > 1


def test_all_samples_and_features_by_default():
    for everything in (1.0, 60):
        found = base_partitions(
            X, Recorder(), n_estimators=2, n_clusters=2, max_samples=everything
        )
        assert found.samples == found.features == [None, None]
        assert_array_equal(found.estimators[0].seen_, X)


def test_sparse_features():
    options = {
        "n_estimators": 5,
        "n_clusters": 3,
        "max_samples": 0.7,
        "max_features": 0.5,
    }
    sparse = base_partitions(sp.csr_array(X), **options, random_state=0)
    dense = base_partitions(X, **options, random_state=0)
    for one, other in zip(sparse.labels.T, dense.labels.T, strict=True):
        assert_array_equal(one < 0, other < 0)
    assert sparse.labels.max() == 2
    assert_array_equal(sparse.predict(sp.csr_array(X)), sparse.predict(X))


def test_a_pipeline_is_seeded_inside():
    pipeline = make_pipeline(StandardScaler(), KMeans(n_init=1))
    found = base_partitions(
        X, pipeline, n_estimators=3, n_clusters=(3, 3), random_state=0
    )
    assert [fitted[-1].n_clusters for fitted in found.estimators] == [3, 3, 3]
    assert len({fitted[-1].random_state for fitted in found.estimators}) == 3
    assert pipeline[-1].n_clusters == 8  # the caller's is not touched
    assert all(same_partition(labels, Y) for labels in found.labels.T)


def test_noise_of_a_clusterer_counts_as_not_seen():
    outlier = np.vstack([X, [[1e3] * 4]])
    clusterer = DBSCAN(eps=4)
    found = base_partitions(outlier, clusterer, n_estimators=2, random_state=0)
    assert_array_equal(found.labels[:, 0], clusterer.fit_predict(outlier))
    assert (found.labels[-1] == -1).all()
    assert (found.labels[:-1] >= 0).all()


def test_new_samples_are_predicted_with_the_features_of_each_clusterer():
    found = base_partitions(
        X, n_estimators=5, n_clusters=3, max_features=2, random_state=0
    )
    assert not found.needs_training_data
    new = X[:9] + 0.1
    expected = [
        fitted.predict(new[:, columns])
        for fitted, columns in zip(found.estimators, found.features, strict=True)
    ]
    assert_array_equal(found.predict(new).T, expected)


@pytest.mark.parametrize(
    ("base", "max_features"), [(KMeans(n_init=1), 2), (AgglomerativeClustering(), 1.0)]
)
def test_samples_that_were_not_drawn_are_labelled_where_that_is_asked_for(
    base, max_features
):
    options = {
        "n_estimators": 4,
        "n_clusters": 3,
        "max_samples": 0.3,
        "random_state": 0,
    }
    options["max_features"] = max_features
    some = base_partitions(X, base, **options)
    all_rows = base_partitions(X, base, **options, predict_unseen=True)
    assert all_rows.labels.min() >= 0
    drawn = some.labels >= 0
    assert drawn.sum() == 4 * int(0.3 * len(X))
    assert_array_equal(all_rows.labels[drawn], some.labels[drawn])
    assert_array_equal(all_rows.labels[~drawn], some.predict(X, X)[~drawn])


def test_noise_of_a_run_stays_noise_and_may_be_the_nearest_sample():
    noisy = [DBSCAN(eps=1.6, min_samples=4)]
    options = {"n_estimators": 2, "max_samples": 0.5, "random_state": 0}
    some = base_partitions(X, noisy, **options).labels
    found = base_partitions(X, noisy, **options, predict_unseen=True)
    for t, rows in enumerate(found.samples):
        assert_array_equal(found.labels[rows, t], some[rows, t])
        unseen = np.setdiff1d(np.arange(len(X)), rows)
        assert (some[unseen, t] == -2).all()
        assert set(found.labels[unseen, t]) == {*some[rows, t]}


def test_clusterers_that_cannot_predict_take_the_nearest_sample_they_saw():
    options = {
        "n_clusters": (3, 6),
        "max_samples": 0.4,
        "max_features": 2,
        "random_state": 0,
    }
    found = base_partitions(X, AgglomerativeClustering(), n_estimators=4, **options)
    assert found.needs_training_data
    new = np.random.default_rng(0).normal(X.mean(axis=0), 4, size=(15, 4))
    labels = found.predict(new, X)
    for i, t in np.ndindex(labels.shape):
        columns, seen = found.features[t], found.samples[t]
        distances = ((X[seen][:, columns] - new[i, columns]) ** 2).sum(axis=1)
        assert labels[i, t] == found.labels[seen[np.argmin(distances)], t]
    assert_array_equal(
        found.predict(X, X)[found.labels >= 0], found.labels[found.labels >= 0]
    )


def test_nearest():
    assert_array_equal(
        nearest_samples(np.array([[0.0], [5.0], [9.0]]), np.array([[6.0], [-3.0]])),
        [1, 0],
    )


def test_what_cannot_be_drawn_is_refused():
    for options, message in (
        ({"max_samples": 61}, ("max_samples", "60", "61")),
        ({"max_features": 5}, ("max_features", "4", "5")),
        (
            {"estimator": Wrong()},
            ("shape", "(60, 1)", "60"),
        ),
        ({"n_clusters": (4, 2)}, "1"),
    ):
        with raises_naming(ValueError, message):
            base_partitions(X, **{"n_estimators": 1} | options)


def test_features_may_be_any_array_like():
    pd = pytest.importorskip("pandas")
    options = {
        "n_estimators": 2,
        "n_clusters": 3,
        "max_samples": 0.5,
        "random_state": 0,
    }
    expected = base_partitions(X, **options).labels
    assert_array_equal(base_partitions(X.tolist(), **options).labels, expected)
    assert_array_equal(base_partitions(pd.DataFrame(X), **options).labels, expected)


def test_range_of_clusters():
    for value, expected in (
        *((5, (5, 5)), ((2, 4), (2, 4)), ([3, 3], (3, 3)), (np.int64(4), (4, 4))),
    ):
        assert range_of_clusters(value, "n") == expected


def test_ranges_that_are_none_are_refused():
    for value in (
        0,
        (0, 3),
        (3, 2),
        (1, 2, 3),
        (2.0, 3.0),
        (2,),
        None,
        2.5,
        np.timedelta64(3, "s"),
    ):
        with raises_naming(ValueError, "base_n_clusters"):
            range_of_clusters(value, "base_n_clusters")
        with raises_naming(ValueError, "n_clusters"):
            base_partitions(X, n_clusters=value)


# --- clusterers that find something else than they should ------------------------------------


class Noisy(ClusterMixin, BaseEstimator):
    """Calls everything noise where its seed is even."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y=None):
        found = np.arange(len(X)) % 3
        self.labels_ = found if self.random_state % 2 else np.full(len(X), -1)
        return self


def test_mixtures_have_as_many_components_as_there_are_clusters():
    X, _ = make_blobs(60, centers=3, random_state=0)
    plain, piped = (
        base_partitions(X, estimator, n_clusters=3, n_estimators=4, random_state=0)
        for estimator in (GaussianMixture(), make_pipeline(PCA(1), GaussianMixture()))
    )
    assert plain.labels.max() == piped.labels.max() == 2
    assert plain.estimators[0].n_components == 3
    assert [step.n_components for step in piped.estimators[0]] == [1, 3]


def test_a_run_that_finds_only_noise_is_left_out():
    X = np.random.default_rng(0).normal(size=(12, 2))
    with warns_naming(UserWarning, "8", "noise") as caught:
        made = base_partitions(X, Noisy(), n_estimators=8, random_state=0)
    n_empty = int(str(caught[0].message)[0])
    assert made.labels.shape == (12, 8 - n_empty)
    assert (
        len(made.estimators) == len(made.samples) == len(made.features) == 8 - n_empty
    )
    assert made.labels.min() == 0


class Failing(Recorder):
    """Raises where its seed is a multiple."""

    def __init__(self, every=3, n_clusters=2, random_state=None):
        super().__init__(n_clusters, random_state)
        self.every = every

    def fit_predict(self, X, y=None):
        if self.random_state % self.every == 0:
            raise np.linalg.LinAlgError(f"no SVD of seed {self.random_state}")
        return super().fit_predict(X)


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_runs_that_fail_are_left_out_and_told_of_once(n_jobs):
    options = {"n_estimators": 20, "n_clusters": 3, "random_state": 0}
    bases = [KMeans(n_init=1), Failing(), Wrong()]
    with parallel_config("threading"), pytest.warns(FitFailedWarning) as told:
        made = base_partitions(X, bases, n_jobs=n_jobs, **options)
    plain = base_partitions(X, [KMeans(n_init=1), Recorder(), Recorder()], **options)
    failed = [
        t % 3 == 2 or (t % 3 == 1 and own.random_state % 3 == 0)
        for t, own in enumerate(plain.estimators)
    ]
    first = next(plain.estimators[t] for t in range(1, 20, 3) if failed[t])
    assert_array_equal(made.kept, ~np.array(failed))
    assert_array_equal(made.labels, plain.labels[:, made.kept])
    assert len(made.estimators) == len(made.samples) == made.kept.sum()
    [message] = [str(one.message) for one in told]
    assert message.startswith(f"{sum(failed)} of 20 base runs failed")
    assert (
        f"Failing(): LinAlgError: no SVD of seed {first.random_state}; Wrong("
        in message
    )


def test_the_first_error_is_raised_where_all_runs_fail():
    with raises_naming(np.linalg.LinAlgError, "no SVD of seed") as caught:
        base_partitions(X, Failing(every=1), n_estimators=4, random_state=0)
    assert caught.value.__notes__ == [
        "4 of 4 base runs failed, each with 60 of 60 samples; this was the first."
    ]
    with pytest.raises(np.linalg.LinAlgError) as caught:
        base_partitions(X, [Failing(every=1), DBSCAN(eps=1e-6)], n_estimators=4)
    assert caught.value.__notes__ == [
        "2 of 4 base runs failed, each with 60 of 60 samples; this was the first."
    ]


def test_runs_that_all_say_nothing_are_refused():
    X = np.random.default_rng(0).normal(size=(12, 2))
    with raises_naming(ValueError, "DBSCAN", "noise", "3"):
        base_partitions(X, DBSCAN(eps=1e-6), n_estimators=3)
    with raises_naming(ValueError, "DBSCAN", "single cluster"):
        base_partitions(X, DBSCAN(eps=1e6), n_estimators=3)


def test_parameters_are_checked_as_those_of_estimators():
    for name, value in (
        ("n_estimators", 0),
        ("n_estimators", 2.5),
        ("n_estimators", True),
        ("max_samples", None),
        ("max_samples", -1),
        ("max_samples", 1.5),
        ("max_features", float("nan")),
        ("max_features", "all"),
        ("estimator", object()),
        ("random_state", np.timedelta64(1, "s")),
        ("n_jobs", 0),
    ):
        with raises_naming(ValueError, f"'{name}'", "base_partitions"):
            base_partitions(np.eye(4), **{name: value})


def test_sparse_samples_find_their_nearest_among_dense_ones():
    X, labels = np.arange(12.0).reshape(6, 2), np.repeat([0, 1], 3)
    model = NMFConsensus(2, random_state=0).fit(X, partitions=labels[:, None])
    assert_array_equal(model.predict(sp.csr_array(X)), model.predict(X))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("storage", "dtypes"),
    [(np.asarray, (np.float64, np.float32)), (sp.csr_array, (np.float32, np.float64))],
)
def test_new_samples_may_be_of_another_type_and_read_only(storage, dtypes):
    fitted, new = (storage(np.round(X).astype(dtype)) for dtype in dtypes)
    model = NMFConsensus(3, n_estimators=3, random_state=0).fit(fitted)
    for part in [new.data, new.indices, new.indptr] if sp.issparse(new) else [new]:
        part.flags.writeable = False
    assert_array_equal(model.predict(new), model.predict(fitted))


def test_new_samples_are_checked_before_they_are_compared():
    made = base_partitions(
        make_blobs(300, n_features=6, random_state=0)[0],
        n_estimators=3,
        max_features=0.5,
        random_state=0,
    )
    for width in (5, 7):
        with raises_naming(ValueError, "X", "6", str(width)):
            made.predict(np.zeros((2, width)))
    with raises_naming(ValueError, "X", "NaN"):
        made.predict(np.full((2, 6), np.nan))
