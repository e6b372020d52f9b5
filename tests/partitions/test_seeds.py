"""The warning that another seed probably gives other clusters."""

import re
import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus

BLOBS = make_blobs([60, 40, 20], centers=12 * np.eye(3), random_state=0)[0]
NOISE = np.random.default_rng(0).normal(size=(80, 8))


def fits(X, n_clusters, n_estimators=20, seeds=(0, 1), **parameters):
    """Return the labels of fits with some seeds, and the warnings of seeds that these gave."""
    labels = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed in seeds:
            model = NMFConsensus(
                n_clusters,
                n_estimators=n_estimators,
                random_state=seed,
                **parameters,
            )
            labels.append(model.fit(X).labels_)
    messages = [str(one.message) for one in caught]
    return labels, [text for text in messages if "random_state" in text]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("base", [None, KMeans(n_init=1)])
def test_the_warning_comes_where_seeds_differ(base):
    labels, messages = fits(NOISE, 3, estimator=base)
    assert adjusted_rand_score(*labels) < 0.8
    assert len(messages) == 2
    labels, messages = fits(BLOBS, 3, estimator=base)
    assert adjusted_rand_score(*labels) == 1
    assert not messages


@pytest.mark.slow
def test_the_warning_is_the_same_for_threads_orders_and_copies():
    expected = fits(NOISE, 3, seeds=[0])[1]
    assert expected
    order = np.random.default_rng(1).permutation(len(NOISE))
    assert fits(NOISE, 3, seeds=[0], n_jobs=2)[1] == expected
    assert fits(NOISE[order], 3, seeds=[0])[1] == expected
    # the index of samples that are there twice is nearly that of single ones
    copied = fits(np.repeat(NOISE, 2, axis=0), 3, seeds=[0])[1]
    figure = r"\d\.\d\d"
    [[first, *text], [second, *text_of_copied]] = [
        [*re.findall(figure, message), re.sub(figure, "", message)]
        for [message] in (expected, copied)
    ]
    assert text_of_copied == text
    hundredths = [round(100 * float(figure)) for figure in (first, second)]
    assert abs(hundredths[1] - hundredths[0]) <= 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("parameters", [{"n_estimators": 8}, {"n_clusters": 1}])
def test_few_runs_and_one_cluster_are_not_compared(parameters):
    assert not fits(NOISE, **{"n_clusters": 3, **parameters})[1]


def test_parts_of_runs_that_saw_few_samples_are_compared():
    base = KMeans(n_init=1)
    labels, messages = fits(BLOBS, 3, estimator=base, max_samples=0.4)
    assert adjusted_rand_score(*labels) == 1
    assert not messages
