"""Consensus of soft partitions: memberships of samples in clusters, one table a partition."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture

from nmfcluster import NMFConsensus
from nmfcluster.model_selection import choose_n_clusters


def shares(n=30, widths=(2, 4, 3), seed=0):
    rng = np.random.RandomState(seed)
    return [rng.dirichlet(np.full(width, 0.3), size=n) for width in widths]


def consensus(n_clusters=3, **parameters):
    return NMFConsensus(n_clusters, affinity="partitions", random_state=0, **parameters)


@pytest.fixture(scope="module")
def mixtures():
    X, y = make_blobs([80, 60, 40, 20], random_state=3)
    numbers = (3, 4, 4, 5, 6)
    runs = [GaussianMixture(k, random_state=s).fit(X) for s, k in enumerate(numbers)]
    return X, y, [run.predict_proba(X) for run in runs]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("normalize", [True, False])
def test_the_loss_is_that_of_the_formula(normalize):
    blocks, w = shares(), np.array([0.5, 0.2, 0.3])
    model = consensus(normalize=normalize, weights=w, tol=1e-10, max_iter=2000).fit(
        blocks
    )
    A = sum(
        weight * (Z / Z.sum(axis=0) if normalize else Z) @ Z.T
        for weight, Z in zip(w, blocks, strict=True)
    )
    assert (np.diff(model.loss_curve_) <= 1e-12).all()
    eigenvalues = np.linalg.eigvalsh(A)
    # no factor of three columns is nearer to A than its three leading eigenvectors
    assert (eigenvalues[:-3] ** 2).sum() <= model.loss_ * (1 + 1e-9) < (A**2).sum()
    together = sum(weight * Z @ Z.T for weight, Z in zip(w, blocks, strict=True))
    assert_allclose(model.consensus_matrix(), together, atol=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("normalize", [True, False])
def test_memberships_of_0_and_1_are_labels(normalize):
    rng = np.random.RandomState(1)
    truth = np.repeat(np.arange(3), [20, 15, 10])
    table = np.where(
        rng.rand(45, 5) < 0.2, rng.randint(3, size=(45, 5)), truth[:, None]
    )
    blocks = [np.eye(3)[column] for column in table.T]
    hard, soft = (
        consensus(normalize=normalize).fit(given) for given in (table, blocks)
    )
    assert_array_equal(soft.labels_, hard.labels_)
    assert_allclose(soft.consensus_matrix(), hard.consensus_matrix(), atol=1e-12)
    assert_allclose(soft.confidence_, hard.confidence_, atol=1e-12)


def test_mixtures_are_recovered_and_new_samples_follow(mixtures):
    X, y, blocks = mixtures
    model = consensus(4).fit(blocks)
    assert adjusted_rand_score(y, model.labels_) > 0.95
    assert_array_equal(
        model.predict([block[:50] for block in blocks]), model.labels_[:50]
    )
    beside = NMFConsensus(4, random_state=0).fit(X, partitions=blocks)
    assert_array_equal(beside.labels_, model.labels_)
    assert_array_equal(beside.predict(X + 1e-9), model.labels_)
    assert model.partitions_ is None
    assert model.agreement_ is None


def test_their_number_of_clusters_is_chosen_by_eigenvalues(mixtures):
    _, y, blocks = mixtures
    chosen = choose_n_clusters(consensus(2), blocks, range(2, 9), random_state=0)
    assert chosen.method == "eigengap"
    assert chosen.n_clusters_ == 4
    assert adjusted_rand_score(y, chosen.best_estimator_.labels_) > 0.95


def test_memberships_cannot_be_cut_into_parts(mixtures):
    _, _, blocks = mixtures
    with raises_naming(ValueError, "memberships"):
        choose_n_clusters(consensus(2), blocks, range(2, 4), method="stability")
    # of features
    with raises_naming(TypeError, "X", "one table"):
        choose_n_clusters(NMFConsensus(2), blocks, range(2, 4))


def test_the_order_of_samples_containers_and_labels_beside_them_change_nothing(
    mixtures,
):
    _, _, blocks = mixtures
    given = [*blocks, np.array(list("abcdef"))[blocks[-1].argmax(axis=1)]]
    model, order = (
        consensus(4).fit(given),
        np.random.RandomState(0).permutation(len(given[0])),
    )
    moved = consensus(4).fit([partition[order] for partition in given])
    assert_array_equal(moved.labels_, model.labels_[order])
    frames = [pd.DataFrame(block) for block in blocks]
    assert_array_equal(
        consensus(4).fit([*frames, given[-1]]).membership_, model.membership_
    )
    assert_array_equal(model.predict(given), model.labels_)


def test_samples_that_a_partition_did_not_see_count_in_the_others(mixtures):
    _, _, blocks = mixtures
    cut = [block.copy() for block in blocks]
    cut[0][::2] = np.nan
    for block in cut:
        block[7] = 0
    with warns_naming(UserWarning, "1 sample", "7"):
        model = consensus(4).fit(cut)
    assert model.labels_[7] == -1
    whole = consensus(4).fit(blocks).labels_
    assert adjusted_rand_score(np.delete(whole, 7), np.delete(model.labels_, 7)) > 0.97
    for form in ({"factorization": "tri"}, {"normalize": False}):
        with raises_naming(ValueError, "all samples"):
            consensus(4, **form).fit(cut)
        with warns_naming(UserWarning, "1 sample"):  # which saw all others
            consensus(4, **form).fit([cut[1]] * 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: [b[0], -b[1]], ("X[1]", "0")),
        (lambda b: [b[0], b[1][:-1]], ("X[1]", "30 rows", "29")),
        (
            lambda b: [b[0], np.where(b[1] > 0.5, np.nan, b[1])],
            ("NaN", "rows"),
        ),
    ],
)
def test_what_are_no_memberships_is_refused(change, message):
    with raises_naming(ValueError, message):
        consensus().fit(change(shares()))


def test_new_samples_need_the_tables_of_the_fit():
    blocks = shares()
    model = consensus().fit(blocks)
    with raises_naming(ValueError, "list", "3"):
        model.predict(blocks[:2])
    with raises_naming(ValueError, "columns"):
        model.predict([blocks[1], blocks[0], blocks[2]])
    with raises_naming(ValueError, "X", "30", "4"):
        NMFConsensus(2).fit(np.eye(4), partitions=blocks)
