"""SimilarityFusionNMF on a part of the objects, and on sources that have not seen all of them."""

import numpy as np
import pytest
from fusion.shared import (
    VIEW_1,
    VIEWS,
    assert_same_fit,
    default_model,
    features,
    without,
)
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

import nmfcluster.stack.readers
from nmfcluster import KernelStack


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("max_samples", "size", "affinity"),
    [
        (40, 40, VIEWS),
        (0.5, 30, "precomputed"),
        (1.0, 60, VIEWS),
        (60, 60, "precomputed"),
    ],
)
def test_a_part_of_the_objects_tells_the_others(max_samples, size, affinity):
    X, y = features()
    objects = KernelStack(VIEWS).fit_transform(X) if affinity == "precomputed" else X
    full = default_model(affinity=affinity).fit(objects)
    part = default_model(affinity=affinity, max_samples=max_samples).fit(objects)
    chosen = part.sample_indices_
    assert_array_equal(np.unique(chosen), chosen)
    assert len(chosen) == size
    assert chosen[-1] < 60
    assert part.labels_.shape == (60,)
    assert part.membership_.shape == (60, 3)
    assert adjusted_rand_score(full.labels_, part.labels_) > 0.85
    assert adjusted_rand_score(y, part.labels_) > 0.85
    others = np.setdiff1d(np.arange(60), chosen)
    if size < 60:
        assert_allclose(
            part.membership_[others], part.transform(objects)[others], rtol=1e-12
        )
        assert_array_equal(part.labels_[others], part.predict(objects)[others])
        options = {"affinity": affinity, "max_samples": max_samples, "tol": 1e9}
        seeds = [default_model(random_state=seed, **options) for seed in (1, 2)]
        assert len({tuple(other.fit(objects).sample_indices_) for other in seeds}) == 2
    else:
        assert_same_fit(part, full)


def test_the_part_is_fitted_as_if_it_were_alone():
    X, _ = features()
    stack = KernelStack(VIEWS).fit_transform(X)
    part = default_model(max_samples=40, n_init=1).fit(stack)
    chosen = part.sample_indices_
    alone = default_model(n_init=1).fit(stack[np.ix_(chosen, chosen)])
    assert_allclose(part.agreement_.scores, alone.agreement_.scores, rtol=1e-5)
    assert_allclose(part.loss_curve_, alone.loss_curve_, rtol=1e-5)
    assert adjusted_rand_score(part.labels_[chosen], alone.labels_) == 1


@pytest.mark.usefixtures("as_given")
def test_only_similarities_to_the_part_are_looked_at():
    X, _ = features()
    whole = KernelStack(VIEWS).fit_transform(X).toarray()
    expected = default_model(max_samples=25).fit(whole)
    others = np.setdiff1d(np.arange(60), expected.sample_indices_)
    spoilt = whole.copy()
    spoilt[np.ix_(others, others)] = np.random.RandomState(0).uniform(
        100, size=(35, 35, 2)
    )
    spoilt[np.ix_(expected.sample_indices_, others)] = (
        77  # nor the other half of the block
    )
    assert_same_fit(default_model(max_samples=25).fit(spoilt), expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("criterion", ["agreement", "kl"])
def test_kernels_of_all_pairs_are_never_made(monkeypatch, criterion):
    monkeypatch.setattr(nmfcluster.stack.readers, "_BLOCK", 16)
    X, _ = features(100)
    asked = []

    def kernel(A, B):
        asked.append((len(A), len(B)))
        return rbf_kernel(A, B, gamma=0.1)

    options = {"affinity": kernel, "max_samples": 20, "criterion": criterion}
    fitted = default_model(**options).fit(X)
    assert asked == [(20, 20)] + [(16, 20)] * 5
    fitted.predict(X[:40])
    assert asked[6:] == [(16, 20)] * 2 + [(8, 20)]
    monkeypatch.setattr(nmfcluster.stack.readers, "_BLOCK", 1000)
    again = default_model(**options).fit(X)
    assert_allclose(again.membership_, fitted.membership_, atol=1e-12)


@pytest.mark.usefixtures("as_given")
def test_samples_without_features_in_a_view():
    X, y = features()
    X[:6, VIEW_1] = np.nan
    stack = KernelStack(VIEWS).fit_transform(X)
    fitted = default_model(affinity=VIEWS).fit(X)
    assert_same_fit(fitted, default_model().fit(stack))
    seen = np.arange(6, 60)
    assert adjusted_rand_score(y[seen], fitted.labels_[seen]) > 0.9
    assert set(fitted.labels_[:6]) <= {0, 1, 2}
    new = features(4, seed=3)[0]
    new[0, 3:], new[1] = np.nan, np.nan
    labels = fitted.predict(new)
    assert labels[1] == -1
    assert (np.delete(labels, 1) >= 0).all()


@pytest.mark.filterwarnings("ignore:1 pair of sources are nearly equal")
@pytest.mark.parametrize("max_samples", [None, 40])
def test_objects_that_no_source_has_seen(max_samples):
    X, _ = features()
    S = without(rbf_kernel(X, gamma=0.05), [2, 50])
    with warns_naming(UserWarning, "2 objects"):
        fitted = default_model(max_samples=max_samples).fit([S, S.copy()])
    assert_array_equal(np.flatnonzero(fitted.labels_ == -1), [2, 50])
    assert_allclose(fitted.membership_[[2, 50]], np.full((2, 3), 1 / 3))
