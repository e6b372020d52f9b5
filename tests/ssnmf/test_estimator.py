"""Laws of `SSNMFClusterer`: what it must return, whatever the mode and the solver."""

from itertools import product

import numpy as np
import pytest
from comparing import same_partition
from numpy.testing import assert_allclose, assert_array_equal
from refusals import warns_naming
from sklearn.datasets import load_iris, make_blobs, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from ssnmf.cases import (
    CONSTRAINED,
    KNOWN,
    SOLVERS,
    X,
    all_of_all,
    clusterer,
    every_solver,
    factors_of_samples,
    fitted,
    unconverged,
    way_by_affinity,
)

from nmfcluster import PairwiseConstraints
from nmfcluster.affinity import make_affinity
from nmfcluster.metrics import clustering_accuracy
from nmfcluster.ssnmf import estimator

pytestmark = unconverged


def constrained(W, known, model):
    """Return the matrix that is factorized, for all samples, as the class describes it."""
    W = W.copy()
    groups = known.components()
    for kind, pairs, weights in [
        ("must", known.must_link, known.must_link_weights),
        ("cannot", known.cannot_link, known.cannot_link_weights),
    ]:
        for (i, j), w in zip(pairs, weights, strict=True):
            if model.hard_must_link and (kind == "must" or groups[i] == groups[j]):
                continue
            change = model.alpha if kind == "must" else -model.beta
            W[i, j] = W[j, i] = W[i, j] + change * model.weight_unit_ * w
    return W


# --- the objective -----------------------------------------------------------------------------


@pytest.mark.sampled(2)
@all_of_all
def test_the_loss_is_that_of_all_samples_and_never_rises(affinity, way, solver, kept):
    """||A~ - GSG'||^2 of the matrix written out entry by entry."""
    known = PairwiseConstraints(
        60,
        [(*pair, 1 + pair[0] % 3) for pair in KNOWN.must_link],
        [(*pair, 1 + pair[1] % 2) for pair in KNOWN.cannot_link],
    )
    model = fitted(
        constraints=known, affinity=affinity, n_init=2, max_iter=30, tol=-1, alpha=1.5, beta=0.7,
        propagation=None, **CONSTRAINED[way], **SOLVERS[solver],
    )  # fmt: skip
    W = make_affinity(X, affinity, normalize="auto", n_clusters=3).similarity.toarray()
    off = W[np.triu_indices(60, 1)]
    assert model.weight_unit_ == pytest.approx(
        np.quantile(off[off != 0], 0.999), rel=1e-9
    )
    A = constrained(W, known, model)
    G, S = factors_of_samples(model, kept[-1])
    assert_allclose(model.loss_, ((A - G @ S @ G.T) ** 2).sum(), rtol=1e-9, atol=1e-9)
    assert model.loss_ == model.loss_curve_.min()
    assert len(model.loss_curves_) == 2
    for curve in model.loss_curves_:
        assert len(curve) == 31
        assert np.diff(curve).max() <= 1e-11 * curve[0]


@every_solver
def test_the_core_belongs_to_unit_columns(solver, kept):
    """Memberships are the rows of G diag(S)^1/2, scaled; S alone scales the columns of G."""
    model = fitted(affinity="rbf", hard_must_link=False, beta=0.1, **SOLVERS[solver])
    G, S = factors_of_samples(model, kept[-1])
    lengths = np.linalg.norm(G, axis=0)
    unit, S = G / lengths, S * np.outer(lengths, lengths)
    H = unit * np.sqrt(np.diag(S))
    shares = H / H.sum(axis=1, keepdims=True)
    order = [
        abs(shares - column[:, None]).sum(axis=0).argmin()
        for column in model.membership_.T
    ]
    assert sorted(order) == [0, 1, 2]
    assert_allclose(model.membership_, shares[:, order], atol=1e-9)
    assert_allclose(model.core_, S[np.ix_(order, order)], rtol=1e-9, atol=1e-12)
    assert_allclose(model.core_, model.core_.T, rtol=1e-6)
    if solver == "tri":
        assert model.core_[0, 1] > 0
    else:
        assert_array_equal(model.core_, np.diag(np.diag(model.core_)))


def test_a_full_core_holds_similarity_between_clusters():
    """Two clusters that are alike only to each other: GSG' with a full S, but not HH'."""
    S = np.array([[0.0, 2.0], [2.0, 0.0]])
    G = np.kron(np.eye(2), np.ones((8, 1)) / np.sqrt(8))
    noise = 0.01 * np.random.default_rng(0).uniform(size=(16, 16))
    W = G @ S @ G.T + noise + noise.T
    options = {"affinity": "precomputed", "normalize": False}
    full = clusterer(2, factorization="tri", n_init=10, **options).fit(W)
    assert same_partition(full.labels_, np.repeat([0, 1], 8))
    assert_allclose(
        full.core_, [[full.core_[0, 0], 2], [2, full.core_[1, 1]]], atol=0.3
    )
    assert full.loss_ < 0.3 * clusterer(2, **options).fit(W).loss_


# --- symmetries and right answers --------------------------------------------------------------


@pytest.mark.sampled(3)
@way_by_affinity
def test_the_order_of_the_samples_does_not_matter(affinity, way):
    clean, y = make_blobs(60, centers=8 * np.eye(3), random_state=0)
    clean -= clean.min()
    known = PairwiseConstraints.from_labels(y, n_pairs=20, random_state=0)
    model = fitted(clean, constraints=known, affinity=affinity, **CONSTRAINED[way])
    order = np.random.RandomState(0).permutation(60)
    shuffled = fitted(
        clean[order], constraints=known[order], affinity=affinity, **CONSTRAINED[way]
    )
    assert same_partition(model.labels_[order], shuffled.labels_)
    assert shuffled.satisfaction_ == model.satisfaction_
    assert adjusted_rand_score(y, model.labels_) == 1


def best_clustering(W, n_clusters, known):
    """Return the assignment with the largest mean similarity within, of all that are allowed."""
    best, best_labels = -np.inf, None
    for labels in product(range(n_clusters), repeat=len(W)):
        labels = np.array(labels)
        sizes = np.bincount(labels, minlength=n_clusters)
        if not sizes.all() or known.satisfaction(labels) < 1:
            continue
        same = labels[:, None] == labels
        score = (W * same / sizes[labels]).sum()  # kernel k-means
        if score > best + 1e-12:
            best, best_labels = score, labels
    return best_labels


def corners():
    """Four samples at one place, four at another: the similarity of all, and who is where."""
    near = np.array([[0, 0], [0, 0.5], [0.5, 0], [0.5, 0.5]])
    return rbf_kernel(np.vstack([near, near * 0.9 + 3]), gamma=0.3), np.repeat(
        [0, 1], 4
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_tiny_problems_have_the_best_allowed_answer(seed):
    W, y = corners()
    known = PairwiseConstraints.from_labels(y, n_pairs=3, random_state=seed)
    model = clusterer(2, affinity="precomputed").fit(W, constraints=known)
    assert same_partition(model.labels_, best_clustering(W, 2, known))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "must", [[(0, 4), (1, 5), (2, 6)], [(0, 7)], [(0, 7), (0, 6), (7, 5)]]
)
def test_tiny_problems_whose_must_links_cut_across_the_clusters(must):
    W, y = corners()
    known = PairwiseConstraints(8, must)
    assert not same_partition(y, best_clustering(W, 2, known))
    model = clusterer(2, affinity="precomputed", normalize=False, n_init=10)
    model.fit(W, constraints=known)
    assert model.satisfaction_ == 1
    assert same_partition(model.labels_, best_clustering(W, 2, known))


def test_rings_need_constraints_with_a_kernel_that_does_not_see_them():
    rings, y = make_circles(120, factor=0.5, noise=0.05, random_state=0)
    known = PairwiseConstraints.from_labels(y, n_pairs=700, random_state=0)
    free = clusterer(2, affinity="rbf").fit(rings)
    assert clustering_accuracy(y, free.labels_) < 0.7
    assert clustering_accuracy(y, fitted(rings, n_clusters=2, affinity="rbf", constraints=known)
                               .labels_) > 0.9  # fmt: skip


def test_a_graph_of_neighbours_sees_rings_without():
    rings, y = make_circles(200, factor=0.4, noise=0.04, random_state=0)
    assert clustering_accuracy(y, clusterer(2).fit(rings).labels_) == 1


def test_clusters_may_be_fewer_than_the_groups_allow():
    """Three clusters are asked for, and must-links leave two groups."""
    y = np.repeat([0, 1], 10)
    must = [(i, i + 1) for i in range(19) if i != 9]
    with warns_naming(ConvergenceWarning, "2 clusters", "n_clusters=3"):
        model = clusterer(affinity="rbf").fit(y[:, None] * 1.0, must_link=must)
    assert same_partition(model.labels_, y)
    assert model.membership_.shape == (20, 3)


def test_iris_with_two_hundred_pairs():
    iris, y = load_iris(return_X_y=True)
    known = PairwiseConstraints.from_labels(y, n_pairs=200, random_state=0)
    assert clustering_accuracy(y, fitted(iris, constraints=known).labels_) > 0.95


@pytest.mark.slow
def test_digits_with_two_hundred_pairs(load_data):
    digits, y = load_data("digits389")
    known = PairwiseConstraints.from_labels(y, n_pairs=200, random_state=0)
    accuracy = clustering_accuracy(y, fitted(digits, constraints=known).labels_)
    assert accuracy > 0.95
    assert accuracy > clustering_accuracy(y, clusterer().fit(digits).labels_)


# --- many samples --------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("affinity", "solver"), [("cosine", "bpg"), ("rbf", "bpg"), ("cosine", "tri")]
)
def test_starts_on_a_part_find_the_same_clusters_and_keep_the_constraints(
    affinity, solver, monkeypatch
):
    X, y = make_blobs(400, centers=4 * np.eye(4), random_state=1)
    X = np.maximum(X, 0)
    known = PairwiseConstraints.from_labels(y, n_pairs=300, random_state=0)
    options = {"n_clusters": 4, "affinity": affinity, **SOLVERS[solver]}
    whole = clusterer(**options).fit(X, constraints=known)
    monkeypatch.setattr(estimator, "_COARSE", 100)
    coarse = clusterer(**options).fit(X, constraints=known)
    assert not len(coarse.violated_must_link_)
    assert adjusted_rand_score(coarse.labels_, whole.labels_) > 0.95
    assert coarse.loss_ <= whole.loss_ + 0.02 * whole.loss_curve_[0]
    again = clusterer(n_jobs=2, **options).fit(X, constraints=known)
    assert_array_equal(again.membership_, coarse.membership_)
