"""Figures of an ensemble against loops over all pairs of samples."""

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from nmfcluster.metrics import consensus_matrix
from nmfcluster.partitions.ensemble import Ensemble

exactly = {"rtol": 1e-10, "atol": 1e-10}


@st.composite
def label_tables(draw, missing=None):
    """Draw (codes, weights): every partition sees a sample, every sample is seen."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, T = draw(st.integers(2, 12)), draw(st.integers(1, 4))
    share = draw(st.sampled_from([0, 0.2, 0.5])) if missing is None else missing
    codes = rng.integers(0, rng.integers(1, 4, size=T), size=(n, T))
    lost = rng.uniform(size=(n, T)) < share
    lost[np.arange(n), rng.integers(T, size=n)] = False
    lost[rng.integers(n, size=T), np.arange(T)] = False
    codes[lost] = -1
    for t in range(T):  # numbered from 0, none left out
        seen = codes[:, t] >= 0
        codes[seen, t] = np.unique(codes[seen, t], return_inverse=True)[1]
    weights = rng.uniform(0.1, 1, size=T)
    return codes, weights / weights.sum(), rng


def disagreement(codes, weights, labels):
    """Count the ordered pairs on which labels and every partition that saw both disagree."""
    n, T = codes.shape
    total = 0.0
    for t, i, j in product(range(T), range(n), range(n)):
        if codes[i, t] >= 0 and codes[j, t] >= 0:
            together = labels[i] == labels[j] and labels[i] >= 0
            total += weights[t] * (together != (codes[i, t] == codes[j, t]))
    return total


def coassociation(codes, weights):
    n, T = codes.shape
    M = np.zeros((n, n))
    for t, i, j in product(range(T), range(n), range(n)):
        M[i, j] += weights[t] * (codes[i, t] == codes[j, t] >= 0)
    return M


def cooccurrence(codes, weights):
    n, T = codes.shape
    N = np.zeros((n, n))
    for t, i, j in product(range(T), range(n), range(n)):
        N[i, j] += weights[t] * (codes[i, t] >= 0 and codes[j, t] >= 0)
    return N


def hot(labels, k):
    """Return the indicator of labels; a row of zeros for -1."""
    return np.array([[float(label == c) for c in range(k)] for label in labels])


def row_labels(ensemble, rng, k=3):
    return rng.integers(0, k, size=len(ensemble))


@settings(max_examples=15)
@given(label_tables())
def test_an_ensemble_is_the_distinct_rows_of_its_table(table):
    codes, weights, _ = table
    ensemble, groups = Ensemble.from_table(codes, weights)
    assert_array_equal(ensemble.codes[groups], codes)
    assert_array_equal(
        ensemble.counts, [(groups == g).sum() for g in range(len(ensemble))]
    )
    assert len(ensemble) == len({tuple(row) for row in codes})
    assert ensemble.counts.sum() == len(codes)
    assert_array_equal(
        ensemble.n_clusters, [len(set(column) - {-1}) for column in codes.T]
    )


@settings(max_examples=15)
@given(label_tables())
def test_what_partitions_saw(table):
    codes, weights, _ = table
    ensemble, groups = Ensemble.from_table(codes, weights)
    seen = codes >= 0
    assert_allclose(ensemble.coverage[groups], [weights[row].sum() for row in seen])
    assert ensemble.is_complete == seen.all()


@settings(max_examples=15)
@given(label_tables())
def test_similarity_is_the_collapsed_coassociation(table):
    codes, weights, _ = table
    ensemble, _ = Ensemble.from_table(codes, weights)
    roots = np.sqrt(ensemble.counts)
    expected = coassociation(ensemble.codes, weights) * roots[:, None] * roots
    plain = ensemble.cluster_weights, np.ones(len(ensemble))
    assert_allclose(
        ensemble.similarity(np.float64, *plain).toarray(), expected, **exactly
    )
    rough = ensemble.similarity(np.float32, *plain)
    assert rough.dtype == np.float32
    assert_allclose(rough.toarray(), expected, rtol=1e-5, atol=1e-5)


@settings(max_examples=15)
@given(label_tables())
def test_sizes_are_the_numbers_of_samples_of_the_clusters(table):
    codes, weights, _ = table
    ensemble, _ = Ensemble.from_table(codes, weights)
    expected = [
        np.sum(column == c)
        for column, k in zip(codes.T, ensemble.n_clusters, strict=True)
        for c in range(k)
    ]
    assert_allclose(ensemble.sizes, expected)


@settings(max_examples=15)
@given(label_tables())
def test_votes_of_clusters_and_scales_of_samples_make_a_similarity(table):
    codes, weights, rng = table
    ensemble, _ = Ensemble.from_table(codes, weights)
    scale = rng.uniform(0.1, 1, size=len(ensemble))
    votes = rng.uniform(0.1, 1, size=int(ensemble.n_clusters.sum()))
    both = np.sqrt(ensemble.counts) * scale
    rows = ensemble.codes
    expected = np.zeros((len(rows), len(rows)))
    for t, first in enumerate(ensemble.offsets):
        together = (rows[:, None, t] == rows[:, t]) & (rows[:, t] >= 0)
        expected += together * votes[first + np.maximum(rows[:, t], 0)]
    expected *= both[:, None] * both
    assert_allclose(
        ensemble.similarity(np.float64, votes, scale).toarray(), expected, **exactly
    )
    assert ensemble.similarity(np.float32, votes, scale).dtype == np.float32


@settings(max_examples=15)
@given(label_tables())
def test_constant_is_the_loss_of_the_zero_factor(table):
    codes, weights, _ = table
    ensemble, _ = Ensemble.from_table(codes, weights)
    nothing = np.zeros((len(ensemble), 1))
    assert_allclose(
        ensemble.hard_loss(nothing), disagreement(codes, weights, [-1] * len(codes))
    )


@settings(max_examples=15)
@given(label_tables(missing=0))
def test_hard_loss_is_the_number_of_pairs_in_disagreement(table):
    codes, weights, rng = table
    ensemble, groups = Ensemble.from_table(codes, weights)
    labels = row_labels(ensemble, rng)
    found = ensemble.hard_loss(hot(labels, 3))
    assert_allclose(found, disagreement(codes, weights, labels[groups]), **exactly)


@settings(max_examples=15)
@given(label_tables(missing=0))
def test_hard_loss_is_equation_12_up_to_a_constant(table):
    codes, weights, rng = table
    ensemble, groups = Ensemble.from_table(codes, weights)
    M = coassociation(codes, weights)
    differences = []
    for _ in range(3):
        labels = row_labels(ensemble, rng)
        H = hot(labels[groups], 3)
        differences.append(
            ((M - H @ H.T) ** 2).sum() - ensemble.hard_loss(hot(labels, 3))
        )
    assert_allclose(differences, ((M**2) - M).sum(), **exactly)


@settings(max_examples=15)
@given(label_tables())
def test_contingency_is_the_sum_of_the_members_of_every_cluster(table):
    codes, weights, rng = table
    ensemble, groups = Ensemble.from_table(codes, weights)
    P = rng.uniform(size=(len(ensemble), 2))
    tables = [
        [P[groups[codes[:, t] == c]].sum(axis=0) for c in range(ensemble.n_clusters[t])]
        for t in range(codes.shape[1])
    ]
    N = ensemble.contingency(P)
    assert_allclose(N, np.concatenate(tables), **exactly)


@settings(max_examples=15)
@given(label_tables())
def test_profile_gives_the_mean_similarity_to_the_members_of_a_cluster(table):
    codes, weights, rng = table
    ensemble, groups = Ensemble.from_table(codes, weights)
    P = rng.dirichlet([1, 1], size=len(ensemble))
    members = P[groups]
    expected = coassociation(codes, weights) @ members / members.sum(axis=0)
    profile = ensemble.cluster_profile(P)
    starts = np.cumsum(ensemble.n_clusters) - ensemble.n_clusters
    for i, row in enumerate(codes):
        says = [profile[starts[t] + c] for t, c in enumerate(row) if c >= 0]
        assert_allclose(np.sum(says, axis=0), expected[i], **exactly)


def test_profile_of_a_cluster_without_members_is_zero():
    ensemble, _ = Ensemble.from_table(np.array([[0], [1]]), np.ones(1))
    assert_allclose(
        ensemble.cluster_profile(np.array([[1, 0], [1, 0]])), [[0.5, 0], [0.5, 0]]
    )


@settings(max_examples=15)
@given(label_tables())
def test_a_sample_of_all_is_all_and_a_smaller_one_a_part(table):
    codes, weights, rng = table
    ensemble, _ = Ensemble.from_table(codes, weights)
    whole = ensemble.sample(len(codes), np.random.RandomState(0))
    assert_array_equal(whole.codes, ensemble.codes)
    assert_array_equal(whole.counts, ensemble.counts)
    size = int(rng.integers(1, len(codes) + 1))
    part = ensemble.sample(size, np.random.RandomState(1))
    assert part.counts.sum() == size
    assert part.counts.min() >= 1
    assert_array_equal(part.n_clusters, ensemble.n_clusters)
    assert_array_equal(part.weights, weights)
    available = dict(zip(map(tuple, ensemble.codes), ensemble.counts, strict=True))
    for row, count in zip(part.codes, part.counts, strict=True):
        assert count <= available[tuple(row)]


def test_samples_are_drawn_by_count():
    ensemble, _ = Ensemble.from_table(
        np.repeat([0, 1], [900, 100])[:, None], np.ones(1)
    )
    rng = np.random.RandomState(0)
    drawn = [ensemble.sample(200, rng).counts[1] for _ in range(20)]
    assert 15 < np.mean(drawn) < 25
    assert len(set(drawn)) > 1


@settings(max_examples=15)
@given(label_tables())
def test_agreement_is_the_adjusted_rand_index_over_what_was_seen(table):
    codes, weights, rng = table
    ensemble, groups = Ensemble.from_table(codes, weights)
    labels = row_labels(ensemble, rng)
    expected = [
        adjusted_rand_score(column[column >= 0], labels[groups][column >= 0])
        for column in codes.T
    ]
    found = ensemble.agreement(ensemble.contingency(hot(labels, 3)))
    assert_allclose(found, expected, **exactly)


def test_agreement_of_equal_partitions_is_1_also_for_a_single_cluster_or_sample():
    for codes in ([[0, 0], [0, 1], [0, 2]], [[0, -1], [-1, 0]]):
        ensemble, groups = Ensemble.from_table(np.array(codes), np.full(2, 0.5))
        for labels in (np.zeros(len(codes), dtype=int), np.arange(len(codes))):
            found = ensemble.agreement(ensemble.contingency(hot(labels, 3)))
            expected = [
                adjusted_rand_score(c[c >= 0], labels[groups][c >= 0])
                for c in np.array(codes).T
            ]
            assert_allclose(found, expected)


@settings(max_examples=15)
@given(label_tables())
def test_consensus_matrix_is_together_over_seen(table):
    codes, weights, _ = table
    M, N = coassociation(codes, weights), cooccurrence(codes, weights)
    expected = np.full(M.shape, np.nan)
    expected[N > 0] = M[N > 0] / N[N > 0]
    assert_allclose(consensus_matrix(codes, weights), expected, **exactly)


@settings(max_examples=15)
@given(label_tables())
def test_consensus_matrix_of_groups_is_the_mean_over_their_pairs(table):
    codes, weights, rng = table
    groups = np.unique(rng.integers(0, 3, size=len(codes)), return_inverse=True)[1]
    M, N = coassociation(codes, weights), cooccurrence(codes, weights)
    found = consensus_matrix(codes, weights, groups)
    for a, b in product(range(max(groups) + 1), repeat=2):
        block = np.ix_(groups == a, groups == b)
        seen = N[block].sum()
        assert_allclose(
            found[a, b], M[block].sum() / seen if seen > 0 else np.nan, **exactly
        )


def test_an_ensemble_does_not_write_to_its_table():
    codes, weights = np.array([[0, 1], [0, 0], [-1, 1], [0, 1]]), np.array([0.3, 0.7])
    before = codes.copy()
    codes.flags.writeable = weights.flags.writeable = False
    ensemble, _ = Ensemble.from_table(codes, weights)
    ensemble.hard_loss(hot(np.zeros(3), 2))
    ensemble.sample(2, np.random.RandomState(0))
    assert_array_equal(codes, before)
