"""The consensus of subsamples, and its two figures, against loops over pairs."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_selection.clusterers import W, X, Y, kmeans
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster.hierarchy import average, cophenet
from scipy.spatial.distance import squareform
from sklearn.base import clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, SpectralClustering
from sklearn.mixture import GaussianMixture

from nmfcluster import SSNMFClusterer
from nmfcluster.model_selection import ConsensusScorer
from nmfcluster.model_selection.scores.consensus import consensus_of_subsamples

# a copy that fails must not pass for one without a score
pytestmark = pytest.mark.filterwarnings("error::sklearn.exceptions.FitFailedWarning")


def literal_consensus(subsamples, samples):
    """Compute eq. 2 of Monti et al. (2003) with a loop over pairs: NaN where none holds both."""
    C = np.eye(len(samples))
    for (i, a), (j, b) in combinations(enumerate(samples), 2):
        both = [labels for labels in subsamples if a in labels and b in labels]
        together = sum(labels[a] == labels[b] and labels[a] >= 0 for labels in both)
        C[i, j] = C[j, i] = together / len(both) if both else np.nan
    return C


def literal_subsamples(estimator, X, scorer, pairwise=False):
    """Fit copies to the subsamples that the scorer documents, and yield a dict of labels each."""
    size = round(scorer.subsample_size * len(X))
    for b in range(scorer.n_subsamples):
        rng = np.random.default_rng((scorer.random_state, b))
        rows = np.sort(rng.choice(len(X), size, replace=False, shuffle=False))
        labels = clone(estimator).fit_predict(X[np.ix_(rows, rows)] if pairwise else X[rows])
        yield dict(zip(rows, labels, strict=True))


def literal_pac(C, lower, upper):
    values = C[np.triu_indices(len(C), 1)]
    values = values[~np.isnan(values)]
    return np.mean(values <= upper) - np.mean(values <= lower)


def literal_cophenetic(C):
    distances = squareform(1 - C, checks=False)
    return cophenet(average(distances), distances)[0]


ESTIMATORS = {
    "k-means": (kmeans(4), X[:60], False),
    "tree": (AgglomerativeClustering(5), X[:60], False),
    "mixture": (GaussianMixture(4, random_state=0), X[:60], False),
    "noise": (DBSCAN(eps=1.5, min_samples=3), X[:60], False),
    "similarity": (
        SSNMFClusterer(4, affinity="precomputed", n_init=1, random_state=0),
        W[:60, :60],
        True,
    ),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("interval", [(0.1, 0.9), [0, 0.5]])
def test_both_figures_are_those_of_loops(name, interval):
    estimator, samples, pairwise = ESTIMATORS[name]
    scorer = ConsensusScorer(
        n_subsamples=20, subsample_size=0.8, interval=interval, details=True, random_state=2
    )
    C = literal_consensus(
        list(literal_subsamples(estimator, samples, scorer, pairwise)), range(len(samples))
    )
    pac, cophenetic = literal_pac(C, *interval), literal_cophenetic(C)
    assert pac > 0
    expected = {"consensus": 1 - pac, "pac": pac, "cophenetic": cophenetic}
    assert scorer(estimator, samples) == pytest.approx(expected)
    other = clone(scorer).set_params(criterion="cophenetic", details=False)
    assert other(estimator, samples) == pytest.approx(cophenetic)


def test_of_many_samples_some_are_compared():
    scorer = ConsensusScorer(n_subsamples=12, max_samples=30, details=True, random_state=1)
    drawn = np.sort(np.random.default_rng(1).permutation(120)[:30])
    C = literal_consensus(list(literal_subsamples(kmeans(5), X, scorer)), drawn)
    found = scorer(kmeans(5), X)
    assert found["pac"] == pytest.approx(literal_pac(C, 0.1, 0.9))
    assert found["cophenetic"] == pytest.approx(literal_cophenetic(C))


def test_pairs_that_no_subsample_holds_are_left_out():
    few = ConsensusScorer(n_subsamples=2, subsample_size=0.4, interval=(0, 0.5), details=True)
    C = literal_consensus(list(literal_subsamples(kmeans(5), X, few)), range(120))
    found = few(kmeans(5), X)
    assert np.isnan(found["cophenetic"])
    assert found["pac"] == pytest.approx(literal_pac(C, 0, 0.5))
    with pytest.raises(ValueError, match=r"n_subsamples=2 of subsample_size=0.4 hold \d+ of 7140"):
        few.set_params(criterion="cophenetic")(kmeans(5), X)
    none = ConsensusScorer(n_subsamples=2, subsample_size=2, max_samples=3)
    with pytest.raises(ValueError, match="hold 0 of 3 pairs of samples together"):
        none(kmeans(1), X)


def test_similarities_need_an_estimator_that_predicts():
    with pytest.raises(TypeError, match="SpectralClustering has none"):
        ConsensusScorer()(SpectralClustering(3, affinity="precomputed"), W)


def test_clear_clusters_have_the_best_score():
    for criterion in ("pac", "cophenetic"):
        scorer = ConsensusScorer(criterion, n_subsamples=8, subsample_size=0.9)
        assert scorer(kmeans(3), X + 20 * np.eye(3)[Y]) == pytest.approx(1)
        assert scorer(kmeans(1), X) == 1
        assert scorer(kmeans(7, n_init=1), X) < 1


# --- the consensus itself ----------------------------------------------------------------------

TABLES = st.integers(1, 5).flatmap(
    lambda n: st.lists(
        st.lists(st.integers(-2, 2), min_size=n, max_size=n), min_size=1, max_size=6
    ).map(np.array)
)


@given(TABLES)
def test_the_consensus_is_a_share_of_subsamples(labels):
    subsamples = [{i: row[i] for i in np.flatnonzero(row > -2)} for row in labels]
    C = consensus_of_subsamples(labels)
    assert_allclose(C, literal_consensus(subsamples, range(labels.shape[1])))
    assert_array_equal(C, C.T)
    known = C[~np.isnan(C)]
    assert known.min() >= 0
    assert known.max() <= 1


@given(TABLES, st.permutations(range(3)))
def test_names_of_clusters_do_not_matter(labels, order):
    renamed = np.array([*order, -2, -1])[labels]  # the last two stand at -2 and -1
    assert_array_equal(consensus_of_subsamples(renamed), consensus_of_subsamples(labels))
