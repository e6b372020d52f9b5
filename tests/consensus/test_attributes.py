"""What the attributes of `NMFConsensus` say, against their definitions."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from consensus.cases import factor_of, hard_loss, of_partitions, together_and_seen
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from internals import canonical_order
from partitions.cases import in_all_forms, in_both_forms
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFConsensus
from nmfcluster.datasets import make_partitions

tables = st.tuples(st.integers(1, 12), st.integers(1, 5)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.sampled_from([-2, 0, 1, 2, 3]))
)


@settings(max_examples=12)
@given(
    tables,
    st.integers(1, 4),
    st.sampled_from([{}, {"normalize": False}]),
)
def test_every_table_that_is_accepted_gives_a_sound_result(table, n_clusters, form):
    if form:  # which needs partitions that saw all samples but those that none saw
        table = np.where((table >= 0).any(axis=1, keepdims=True), abs(table), -1)
    seen = table >= 0
    usable, lost = (
        seen.any(axis=0).all() and n_clusters <= len(table),
        ~seen.any(axis=1),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "No partition labels|.*pass X.T")
        if not usable:
            with pytest.raises(ValueError, match=r"X|n_clusters"):
                of_partitions(n_clusters, table, **form)
            return
        model = of_partitions(n_clusters, table, **form)
    np.testing.assert_array_equal(model.labels_ < 0, lost)
    sizes = np.bincount(model.labels_[~lost])
    assert sizes.all()
    assert (np.diff(sizes) <= 0).all()
    assert np.isfinite(model.loss_)
    assert (model.membership_ >= 0).all()
    np.testing.assert_allclose(model.membership_.sum(axis=1), 1)
    # of two that tie, one
    own = model.membership_[np.arange(len(table)), model.labels_]
    np.testing.assert_array_equal(own, model.membership_.max(axis=1))
    assert ((model.confidence_ >= -1e-12) & (model.confidence_ <= 1 + 1e-12)).all()
    assert (model.agreement_ <= 1 + 1e-12).all()
    np.testing.assert_array_equal(model.predict(table) < 0, lost)
    assert (model.predict(table) < n_clusters).all()


@pytest.mark.parametrize("weights", [None, np.arange(1, 13)], ids=["equal", "unequal"])
def test_loss_is_the_sum_over_pairs(weights, noisy, kept):
    model = of_partitions(3, noisy, normalize=False, weights=weights)
    H = factor_of(model, kept)
    M = [noisy[:, t, None] == noisy[:, t] for t in range(12)]
    loss = sum(w * ((M[t] - H @ H.T) ** 2).sum() for t, w in enumerate(model.weights_))
    np.testing.assert_allclose(model.loss_, loss, rtol=1e-9)


@in_both_forms
def test_loss_of_a_similarity_is_the_squared_distance(kept, normalize):
    A = np.random.RandomState(0).uniform(size=(30, 30))
    A = A + A.T
    A = canonical_order(similarities=[A]).permute(A)  # in which the factor is
    model = NMFConsensus(
        4, affinity="precomputed", normalize=normalize, random_state=0
    ).fit(A)
    H = factor_of(model, kept)
    if normalize:
        A = A / np.sqrt(A.sum(axis=0)) / np.sqrt(A.sum(axis=1))[:, None]
    np.testing.assert_allclose(model.loss_, ((A - H @ H.T) ** 2).sum(), rtol=1e-9)


@pytest.mark.sampled(2)
@in_both_forms
@pytest.mark.parametrize("factorization", ["bi", "tri"])
def test_core_and_unit_columns_reproduce_the_factor(
    factorization, normalize, noisy, kept
):
    model = of_partitions(3, noisy, factorization=factorization, normalize=normalize)
    H = factor_of(model, kept)
    Q = H / np.linalg.norm(H, axis=0)
    if factorization == "bi":
        np.testing.assert_allclose(Q @ model.core_ @ Q.T, H @ H.T, atol=1e-9)
    np.testing.assert_array_equal(model.core_, np.diag(np.diag(model.core_)))
    assert np.diag(model.core_).min() > 0


@pytest.mark.sampled(2)
@in_all_forms
def test_loss_never_rises(name, normalize, request):
    table = request.getfixturevalue(name)
    model = of_partitions(3, table, normalize=normalize, n_init=5)
    assert len(model.loss_curves_) == 5
    assert len(model.loss_curve_) == model.n_iter_ + 1
    assert model.loss_ == model.loss_curve_.min()
    for curve in model.loss_curves_:
        assert np.diff(curve).max() <= 1e-10 * curve[0]


def test_more_starts_never_worsen_the_hard_loss():
    for seed in range(2):
        table, _ = make_partitions(
            (30, 20, 10), n_partitions=6, noise=0.5, random_state=seed
        )
        options = {"normalize": False, "random_state": seed}
        losses = [
            hard_loss(table, of_partitions(3, table, n_init=n, **options).labels_)
            for n in (1, 2, 6)
        ]
        assert (np.diff(losses) <= 1e-9).all()


@pytest.mark.filterwarnings("ignore:X has 1 samples without any similarity")
def test_confidence_of_a_sample_alone_is_1():
    y = np.array([0] * 5 + [1])
    assert of_partitions(2, np.column_stack([y, y])).confidence_[-1] == 1
    A = (y[:, None] == y) * 0.5
    assert NMFConsensus(2, affinity="precomputed").fit(A).confidence_[-1] == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["noisy", "holey"])
def test_agreement_is_the_rand_index_over_the_samples_that_were_seen(name, request):
    table = request.getfixturevalue(name)
    model = of_partitions(3, table)
    for column, agreement in zip(table.T, model.agreement_, strict=True):
        seen = column >= 0
        expected = adjusted_rand_score(column[seen], model.labels_[seen])
        np.testing.assert_allclose(agreement, expected, atol=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["noisy", "holey"])
@pytest.mark.parametrize("weights", [None, np.arange(1, 13)], ids=["equal", "unequal"])
def test_consensus_matrix_is_the_share_of_partitions(name, weights, request):
    table = request.getfixturevalue(name)
    model = of_partitions(3, table, weights=weights)
    together, seen = (
        pairs.sum(axis=0) for pairs in together_and_seen(table, model.weights_)
    )
    whole = together / np.where(seen > 0, seen, np.nan)
    np.testing.assert_allclose(model.consensus_matrix(), whole, atol=1e-12)
    for chosen in ([3, 1, 99, 50, 50], np.arange(0, 100, 7)):
        expected = whole[chosen][:, chosen]
        np.testing.assert_allclose(model.consensus_matrix(chosen), expected, atol=1e-12)


def test_consensus_matrix_is_nan_where_no_partition_saw_a_pair():
    table = np.array([[0, 0], [0, 1], [0, -1], [-1, 1]])
    M = of_partitions(2, table).consensus_matrix()
    np.testing.assert_array_equal(np.argwhere(np.isnan(M)), [[2, 3], [3, 2]])
    np.testing.assert_array_equal(M[0], [1, 0.5, 1, 0])


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_consensus_matrix_of_a_similarity_is_the_similarity(form):
    A = np.eye(6) + np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)
    model = NMFConsensus(2, affinity="precomputed").fit(form(A))
    np.testing.assert_array_equal(model.consensus_matrix(), A)
    np.testing.assert_array_equal(model.consensus_matrix([5, 4]), A[[5, 4]][:, [5, 4]])


def test_what_does_not_exist_for_a_similarity_is_none():
    model = NMFConsensus(2, affinity="precomputed").fit(np.eye(4) + 0.1)
    assert model.partitions_ is None
    assert model.weights_ is None
    assert model.agreement_ is None
