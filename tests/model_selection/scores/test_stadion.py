"""The stability trade-off of Mourer et al. (2023), against loops over its formula."""

from itertools import combinations

import numpy as np
import pytest
from model_selection.clusterers import X, kmeans
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import make_blobs
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster.model_selection import StadionScorer
from nmfcluster.model_selection.scores.stadion import within_stability

# a copy that fails must not pass for one without a score
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning")

SMALL = make_blobs([12, 9, 3], centers=5 * np.eye(3), random_state=0)[0]


def adjusted_rand(a, b):
    """Compute the adjusted Rand index with a loop over pairs of samples."""
    pairs = list(combinations(range(len(a)), 2))
    in_a, in_b = ([int(y[i] == y[j]) for i, j in pairs] for y in (a, b))
    both = sum(p * q for p, q in zip(in_a, in_b, strict=True))
    chance = sum(in_a) * sum(in_b) / len(pairs)
    most = (sum(in_a) + sum(in_b)) / 2
    return 1.0 if most == chance else (both - chance) / (most - chance)


def literal_paths(estimator, name, X, scorer):
    """Compute the two stabilities at every level of noise, a fit at a time."""

    def clusters(samples, **number):
        return clone(estimator).set_params(**number).fit_predict(samples)

    Y = clusters(X)
    highest = np.sqrt(X.shape[1]) if scorer.max_noise == "auto" else scorer.max_noise
    levels = np.linspace(0, highest, scorer.n_levels)
    between, within = np.zeros((2, len(levels)))
    for i, level in enumerate(levels):
        for d in range(scorer.n_perturbations):
            rng = np.random.default_rng((scorer.random_state, i, d))
            noisy = X + rng.uniform(-level, level, X.shape) * X.std(axis=0)
            between[i] += adjusted_rand(Y, clusters(noisy)) / scorer.n_perturbations
            for c in set(Y):
                rows = np.flatnonzero(Y == c)
                tried = [k for k in scorer.omega if k < len(rows)]
                values = [
                    adjusted_rand(
                        clusters(X[rows], **{name: k}), clusters(noisy[rows], **{name: k})
                    )
                    for k in tried
                ]
                share = len(rows) / len(X) / scorer.n_perturbations
                within[i] += share * (np.mean(values) if tried else 1)
    return between, within, levels


ESTIMATORS = {
    "k-means": (kmeans(3), "n_clusters", (2, 3)),
    "tree": (AgglomerativeClustering(2), "n_clusters", [4, 2]),
    "mixture": (GaussianMixture(2, random_state=0, reg_covar=0.1), "n_components", range(2, 3)),
    "pipeline": (make_pipeline(StandardScaler(), kmeans(2)), "kmeans__n_clusters", (3,)),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("max_noise", ["auto", 0.5])
def test_both_stabilities_are_those_of_loops(name, max_noise):
    estimator, number, omega = ESTIMATORS[name]
    scorer = StadionScorer(
        3, n_perturbations=2, max_noise=max_noise, omega=omega, details=True, random_state=4
    )
    between, within, levels = literal_paths(estimator, number, SMALL, scorer)
    found = scorer(estimator, SMALL)
    best = np.argmax(between - within)
    paths = {"stadion": between - within, "between": between, "within": within, "noise": levels}
    assert found == pytest.approx({key: path[best] for key, path in paths.items()})
    found = clone(scorer).set_params(aggregate="mean")(estimator, SMALL)
    assert found == pytest.approx({key: path.mean() for key, path in paths.items()})


def test_clusters_within_which_nothing_is_tried_are_stable():
    agreement = np.array([[0.5, 0.1, 0.3], [1.0, 0.0, 0.2]])
    found = within_stability(agreement, [2, 6, 4], [1, 0, 2])
    assert_allclose(found, [(2 * 0.5 + 6 + 4 * 0.2) / 12, (2 + 6 + 4 * 0.1) / 12])


def test_without_noise_nothing_changes():
    """All stabilities are 1 at level 0, where the path of every candidate begins."""
    found = StadionScorer(2, n_perturbations=1, max_noise=1e-12, details=True)(kmeans(3), SMALL)
    assert (found["between"], found["within"], found["stadion"]) == (1, 1, 0)


def test_the_path_of_one_cluster_ends_high():
    """One cluster withstands any noise, and nothing in it does: the scorer cannot speak for it."""
    scorer = StadionScorer(3, n_perturbations=3, max_noise=20, details=True)
    found = scorer(kmeans(1), X[:, :2])
    assert found["between"] == 1
    assert found["noise"] > 0
    assert found["stadion"] > 0.8


def test_clusters_that_hold_more_are_worse():
    """Two clusters of the three withstand noise, but one of them falls into parts that do, too."""
    scorer = StadionScorer(4, n_perturbations=3, omega=(2, 3), details=True)
    two, three = (scorer(kmeans(k), X) for k in (2, 3))
    assert three["stadion"] > two["stadion"] + 0.1
    assert two["within"] > three["within"]


@pytest.mark.parametrize("omega", [(), [], (2, 2), range(3, 3)])
def test_omega_holds_numbers_once(omega):
    with pytest.raises(ValueError, match="omega must hold numbers of clusters, each once"):
        StadionScorer(omega=omega)(kmeans(3), X)
