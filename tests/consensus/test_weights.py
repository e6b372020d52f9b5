"""Samples that count more than others, as fractions of one, or not at all."""

from dataclasses import replace

import numpy as np
import pytest
from consensus.cases import of_partitions
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus
from nmfcluster.datasets import make_partitions
from nmfcluster.partitions.ensemble import Ensemble

OF_SAMPLES = ("labels_", "membership_", "confidence_")
OF_ALL = ("agreement_", "core_", "loss_", "loss_curve_")


@pytest.fixture(params=["noisy", "holey", "noisy, pairs"])
def case(request):
    table, _, pairs = request.param.partition(", ")
    return request.getfixturevalue(table), {"normalize": not pairs}


@pytest.fixture
def fit(case):
    """Return what fits the table of a case with weights, or rows of it."""

    def fitted(weights=None, rows=slice(None)):
        model = NMFConsensus(3, affinity="partitions", random_state=0, **case[1])
        return model.fit(case[0][rows], sample_weight=weights)

    return fitted


def assert_equal_models(found, expected, rows=slice(None)):
    for name in OF_SAMPLES:
        assert_array_equal(
            getattr(found, name)[rows], getattr(expected, name), err_msg=name
        )
    for name in OF_ALL:
        assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


@pytest.mark.sampled(2)
def test_weights_of_one_are_none(case, fit):
    assert_equal_models(fit(np.ones(len(case[0]))), fit())


@pytest.mark.sampled(2)
def test_weights_count_as_copies_and_none_as_no_sample(case, fit):
    """To the last bit: the same distinct rows, as often."""
    weights = np.random.default_rng(0).integers(0, 4, len(case[0]))
    rows = np.repeat(np.arange(len(weights)), weights)
    found = fit(weights)
    assert_equal_models(found, fit(rows=rows), rows)
    alone = np.flatnonzero(weights == 0)
    alone = alone[~(case[0][alone][:, None] == case[0][rows]).all(axis=2).any(axis=1)]
    assert len(alone) > 10
    assert_array_equal(found.labels_[alone], found.predict(case[0][alone]))
    assert_allclose(
        found.membership_[alone], found.transform(case[0][alone]), rtol=1e-12
    )


def of_weights(table, weights, **parameters):
    model = NMFConsensus(3, affinity="partitions", random_state=0, **parameters)
    return model.fit(table, sample_weight=weights)


def test_what_does_not_count_changes_nothing(noisy):
    weights = np.arange(len(noisy)) % 4
    other = np.where(weights[:, None] == 0, noisy[::-1], noisy)
    found, expected = of_weights(noisy, weights), of_weights(other, weights)
    own = weights > 0
    assert_array_equal(found.labels_[own], expected.labels_[own])
    assert_allclose(found.membership_[own], expected.membership_[own], rtol=1e-9)
    assert_allclose(found.agreement_, expected.agreement_, rtol=1e-9)


def test_a_sample_without_labels_and_weight_is_in_no_cluster(noisy):
    table, weights = (
        np.vstack([noisy, -np.ones((2, noisy.shape[1]), dtype=int)]),
        np.ones(102),
    )
    # a cluster of its own, of samples that do not count
    table[100, 0] = table.max() + 1
    weights[100:] = 0
    with warns_naming(UserWarning, "2 samples"):
        model = of_weights(table, weights)
    assert_array_equal(model.labels_[100:], -1)
    assert_allclose(model.membership_[100:], 1 / 3)
    assert_array_equal(model.confidence_[100:], 0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("scale", [1e-300, 1e-4, 1e300])
def test_weights_have_no_unit(case, fit, scale):
    """But for the pairs that a sample makes with copies of itself."""
    weights = np.random.default_rng(1).uniform(0.5, 2, len(case[0]))
    found, expected = fit(weights * scale), fit(weights)
    assert_array_equal(found.labels_, expected.labels_)
    assert_allclose(found.membership_, expected.membership_, atol=1e-6)
    for name in ("agreement_", "confidence_"):
        assert_allclose(getattr(found, name), getattr(expected, name), atol=0.03)


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.floats(0.01, 1))
def test_figures_of_equal_fractions_are_those_of_samples(seed, weight):
    """Half of every sample: the same agreement, as no pair is one with itself, and confidence."""
    codes = np.random.default_rng(seed).integers(-1, 3, (9, 4))
    codes[:, 0] = np.arange(9)  # so that rows differ
    whole, _ = Ensemble.from_table(codes, np.full(4, 0.25))
    part = replace(whole, counts=whole.counts * weight, self_weight=weight)
    labels = np.arange(9) % 2
    hot = np.eye(2)[labels]
    found, expected = part.contingency(hot), whole.contingency(hot)
    assert_allclose(part.agreement(found), whole.agreement(expected), atol=1e-9)
    sure = part.confidence(found, labels)
    assert_allclose(sure, whole.confidence(expected, labels), atol=1e-9)


def test_a_sample_is_drawn_by_its_weight():
    table = np.arange(40)[:, None] % 20
    ensemble, _ = Ensemble.from_table(table, np.ones(1))
    weights = np.repeat([0.25, 2.25], 10)
    weighted = replace(ensemble, counts=weights)
    rng = np.random.RandomState(0)
    drawn = np.zeros(20)
    for _ in range(300):
        part = weighted.sample(10, rng)
        assert part.counts.sum() == 10
        drawn[part.codes[:, 0]] += part.counts
    order = ensemble.codes[:, 0]
    expected = 3000 * weights / weights.sum()
    assert (abs(drawn[order] - expected) < 5 * np.sqrt(expected)).all()


def test_weights_decide_where_samples_do_not():
    """Two ways to make two clusters of three groups: the heavy ones are kept apart."""
    groups = np.repeat([0, 1, 2], 10)
    table = np.column_stack(
        [np.array(cut)[groups] for cut in ([0, 0, 1], [0, 1, 1], [0, 1, 0])]
    )
    for heavy in ([0, 1], [1, 2], [0, 2]):
        weights = np.where(np.isin(groups, heavy), 5.0, 0.5)
        labels = NMFConsensus(2, affinity="partitions", random_state=0).fit_predict(
            table, sample_weight=weights
        )
        assert labels[10 * heavy[0]] != labels[10 * heavy[1]]


# --- base partitions that are made -------------------------------------------------------------

X, y = make_blobs(90, centers=3, cluster_std=1.5, random_state=1)
WEIGHTS = np.random.default_rng(0).integers(0, 3, 90).astype(float)


def made(weights, rows=X, **parameters):
    model = NMFConsensus(3, **{"n_estimators": 6, "random_state": 0} | parameters)
    return model.fit(rows, sample_weight=weights)


class Seen(KMeans):
    """Keeps the weights that it is given."""

    def fit_predict(self, X, y=None, sample_weight=None):
        self.given_ = X, sample_weight
        return super().fit_predict(X, sample_weight=sample_weight)


def test_base_clusterers_that_take_weights_are_given_them():
    model = made(WEIGHTS, estimator=Seen(n_init=1), max_samples=0.7, n_estimators=20)
    weight_of = dict(zip(map(tuple, X), WEIGHTS, strict=True))
    for estimator in model.estimators_:
        rows, weights = estimator.given_
        assert_array_equal(weights, [weight_of[tuple(row)] for row in rows])
        assert weights.min() > 0
    assert made(None, estimator=Seen(n_init=1)).estimators_[0].given_[1] is None


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"estimator": KMeans(n_init=1), "max_samples": 0.6, "predict_unseen": True},
        {"estimator": AgglomerativeClustering()},
        {"estimator": AgglomerativeClustering(metric="precomputed", linkage="average")},
    ],
    ids=["default", "k-means", "linkage", "distances"],
)
def test_weights_where_base_partitions_are_made(parameters):
    pairs = "metric" in repr(parameters)
    rows = np.linalg.norm(X[:, None] - X, axis=2) if pairs else X
    ones, none = made(np.ones(90), rows, **parameters), made(None, rows, **parameters)
    assert_equal_models(ones, none)
    found, alone = made(WEIGHTS, rows, **parameters), WEIGHTS == 0
    assert adjusted_rand_score(found.labels_, y) > 0.75
    assert_array_equal(found.labels_[alone], found.predict(rows[alone]))
    # without those that do not count it is the same fit
    left = rows[~alone][:, ~alone] if pairs else rows[~alone]
    expected = made(WEIGHTS[~alone], left, **parameters)
    assert_array_equal(found.labels_[~alone], expected.labels_)
    assert_allclose(found.membership_[~alone], expected.membership_, rtol=1e-9)
    # and in another order, too, which equal samples with other weights do not change
    order = np.random.default_rng(0).permutation(90)
    shuffled = made(
        WEIGHTS[order], rows[order][:, order] if pairs else rows[order], **parameters
    )
    assert_array_equal(shuffled.labels_, found.labels_[order])


def test_equal_samples_share_their_weights():
    rows, weights = (
        np.vstack([X, X]),
        np.exp(np.random.default_rng(2).normal(0, 2, 180)),
    )
    options = {"max_samples": 0.5, "predict_unseen": True}
    found, swapped = (
        made(some, rows, **options) for some in (weights, np.roll(weights, 90))
    )
    assert_array_equal(found.partitions_[:90], found.partitions_[90:])
    assert_array_equal(swapped.partitions_, found.partitions_)
    assert_array_equal(swapped.labels_, found.labels_)


def test_noise_is_told_from_samples_that_no_run_drew():
    rows, weights = np.vstack([X, [[50, 50]]]), np.append(WEIGHTS, 1)
    options = {"estimator": DBSCAN(eps=2), "max_samples": 0.9}
    with warns_naming(UserWarning, "90"):
        assert made(weights, rows, **options).labels_[90] == -1
    with raises_naming(ValueError, "drew"):
        made(weights, rows, estimator=KMeans(n_init=1), max_samples=0.1)


def test_weights_of_a_series_are_matched_by_name():
    pd = pytest.importorskip("pandas")
    table, _ = make_partitions((30, 20, 10), n_partitions=8, noise=0.3, random_state=0)
    names = [f"s{i}" for i in range(60)]
    weights = pd.Series(np.arange(60) % 3, index=names)
    frames = {
        "partitions": (pd.DataFrame(table, index=names), {}),
        "coassociation": (pd.DataFrame(X[:60], index=names), {"partitions": table}),
    }
    for affinity, (frame, beside) in frames.items():
        model = NMFConsensus(3, affinity=affinity, random_state=0)
        expected = model.fit_predict(frame, sample_weight=weights.to_numpy(), **beside)
        with warns_naming(UserWarning, "sample_weight", "order"):
            found = model.fit_predict(frame, sample_weight=weights[::-1], **beside)
        assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        (np.ones(99), ("sample_weight", "100", "shape (99,)")),
        (-np.ones(100), ("sample_weight", "at least 0", "-1.")),
        (
            np.zeros(100),
            ("sample_weight", "3", "0"),
        ),
        (np.full(100, np.nan), ("sample_weight", "finite", "nan")),
    ],
)
def test_bad_weights_are_refused(noisy, weights, says):
    with raises_naming(ValueError, says):
        of_weights(noisy, weights)


def test_weights_of_what_is_no_table_are_refused():
    soft = [np.eye(3)[y], np.eye(3)[y]]
    for affinity, rows, beside in (
        ("precomputed", np.eye(90), {}),
        ("partitions", soft, {}),
        ("coassociation", X, {"partitions": soft}),
    ):
        with raises_naming(ValueError, "sample_weight"):
            NMFConsensus(3, affinity=affinity).fit(
                rows, sample_weight=WEIGHTS, **beside
            )
    assert of_partitions(3, soft).labels_.max() == 2
