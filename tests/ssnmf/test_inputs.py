"""Samples in any storage, type and unit, and samples that are hardly data."""

import warnings
from itertools import permutations, product

import numpy as np
import pytest
import scipy.sparse as sp
from comparing import same_partition
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from ssnmf.cases import (
    AFFINITIES,
    CONSTRAINED,
    KNOWN,
    PLACES,
    SOLVERS,
    X,
    Y,
    assert_same_fit,
    clusterer,
    every_affinity,
    every_solver,
    fitted,
    matrix,
    one_of_each,
    solver_by_affinity,
    unconverged,
    way_by_affinity,
)

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.affinity import make_affinity

pytestmark = unconverged


# --- storage -----------------------------------------------------------------------------------


@pytest.mark.sampled(4)
@way_by_affinity
def test_sparse_and_dense_features_are_the_same(affinity, way):
    dense = fitted(affinity=affinity, **CONSTRAINED[way])
    model = fitted(sp.coo_array(X), affinity=affinity, **CONSTRAINED[way])
    assert_same_fit(model, dense, rtol=1e-6)
    for new in (X, sp.csr_matrix(X)):
        assert_array_equal(model.predict(new), dense.predict(X))
        assert_array_equal(dense.predict(new), dense.predict(X))


@pytest.mark.sampled(4)
@way_by_affinity
def test_named_affinities_are_precomputed_ones(affinity, way):
    W = make_affinity(X, affinity, normalize="auto", n_clusters=3).similarity.toarray()
    named = fitted(affinity=affinity, propagation=None, **CONSTRAINED[way])
    for storage in (np.asarray, sp.csr_matrix):
        model = fitted(
            storage(W), affinity="precomputed", normalize=False, **CONSTRAINED[way]
        )
        assert model.weight_unit_ == pytest.approx(named.weight_unit_, rel=1e-9)
        assert_array_equal(model.labels_, named.labels_)
        assert model.loss_ == pytest.approx(named.loss_, rel=1e-5)


def test_a_callable_is_the_affinity_that_it_computes():
    def affinity(X, Y):
        return rbf_kernel(X, Y, gamma=0.3)

    model, named = fitted(affinity=affinity), fitted(affinity="rbf", gamma=0.3)
    assert_same_fit(model, named)
    assert_allclose(model.transform(X[:7]), named.transform(X[:7]), atol=1e-6)


@pytest.mark.sampled(4)
@solver_by_affinity
def test_float32_stays_float32(affinity, solver):
    # a larger one makes near ties
    options = {"affinity": affinity, "beta": 1.0, **SOLVERS[solver]}
    full = fitted(**options)
    storage = np.asarray if affinity in ("linear", "rbf") else sp.csr_array
    model = fitted(storage(X.astype(np.float32)), **options)
    assert_array_equal(model.labels_, full.labels_)
    assert model.membership_.dtype == np.float32
    assert model.transform(storage(X.astype(np.float32))).dtype == np.float32
    assert model.core_.dtype == np.float32
    assert model.loss_ == pytest.approx(full.loss_, rel=1e-2)


@pytest.mark.sampled(2)
@every_affinity
def test_the_unit_of_the_features_does_not_matter(affinity):
    one = fitted(affinity=affinity)
    for scale in (1e-12, 1e12):
        other = fitted(scale * X, affinity=affinity)
        assert_array_equal(one.labels_, other.labels_)
        assert_array_equal(one.predict(X), other.predict(scale * X))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("affinity", ["linear", "cosine"])
def test_a_normalized_kernel_is_the_same_however_it_is_given(affinity, storage):
    W = make_affinity(X, affinity).similarity.toarray()
    one = fitted(storage(X), affinity=affinity, normalize=True)
    two = fitted(W, affinity="precomputed", normalize=True)
    assert_same_fit(one, two, rtol=1e-6)


# --- odd inputs --------------------------------------------------------------------------------


@every_solver
def test_as_many_clusters_as_samples(solver):
    few = 3 * np.eye(5) + 0.1
    for affinity in ("linear", "cosine", "rbf"):
        model = clusterer(
            5, affinity=affinity, gamma=1, **SOLVERS[solver], max_iter=3000
        ).fit(few)
        assert sorted(model.labels_) == [0, 1, 2, 3, 4]


@one_of_each
def test_one_cluster(affinity, solver):
    model = clusterer(1, affinity=affinity, **SOLVERS[solver]).fit(
        X, must_link=KNOWN.must_link
    )
    assert_array_equal(model.labels_, np.zeros(60))
    assert_allclose(model.membership_, 1)
    assert_array_equal(model.predict(X), np.zeros(60))


@pytest.mark.sampled(2)
@every_affinity
def test_samples_that_are_all_the_same(affinity):
    for solver, n in [("bpg", 20), ("bpg", 400), ("tri", 20)]:
        same = np.ones((n, 3))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = clusterer(affinity=affinity, max_iter=60, **SOLVERS[solver])
            model.fit(same, must_link=[(0, 1)], cannot_link=[(2, 3)])
        assert np.isfinite(model.loss_curve_).all()
        assert model.loss_ >= -1e-9 * model.loss_curve_[0]
        assert_allclose(model.membership_.sum(axis=1), 1)


@every_affinity
def test_copies_of_few_samples_stay_together(affinity):
    copies = np.repeat(3 * np.eye(3) + 0.2, [30, 20, 10], axis=0)
    model = clusterer(affinity=affinity).fit(copies)
    assert same_partition(model.labels_, np.repeat([0, 1, 2], [30, 20, 10]))


@pytest.mark.sampled(2)
@every_affinity
def test_one_feature_integers_and_constant_features(affinity):
    centres = np.repeat([1, 40, 400], 12)
    rng = np.random.RandomState(0)
    one = (centres + rng.randint(0, 3, 36))[:, None]
    if affinity in ("nearest_neighbors", "rbf"):
        assert same_partition(
            clusterer(affinity=affinity, gamma=0.01).fit(one).labels_, centres
        )
    counts = rng.poisson(0.2 + 8 * np.eye(3)[np.arange(36) % 3])
    constant = np.column_stack([counts, np.full(36, 2)])
    model, of_floats = (
        clusterer(affinity=affinity).fit(Z) for Z in (constant, constant * 1.0)
    )
    assert_same_fit(model, of_floats)
    assert adjusted_rand_score(np.arange(36) % 3, model.labels_) > 0.8


@pytest.mark.sampled(2)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("normalize", [False, True])
def test_an_isolated_sample_is_said_to_be_one(storage, normalize):
    W, one, other = rbf_kernel(X, gamma=0.3), PLACES[7], PLACES[8]
    W[one] = W[:, one] = 0
    model = clusterer(affinity="precomputed", normalize=normalize)
    with warns_naming(UserWarning, "1 sample"):
        model.fit(storage(W))
    assert_allclose(model.membership_[one], 1 / 3)
    assert model.predict(storage(W))[one] == -1
    rest = np.delete(np.arange(60), one)
    alone = clusterer(affinity="precomputed", normalize=normalize).fit(
        storage(W[rest][:, rest])
    )
    model.fit(storage(W), must_link=[(one, other)])  # now it has company
    assert model.labels_[one] == model.labels_[other]
    assert same_partition(model.labels_[rest], alone.labels_)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_more_components_than_clusters_are_joined_by_must_links(storage):
    W = np.kron(np.eye(6), np.ones((5, 5)))
    model = clusterer(affinity="precomputed", normalize=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(storage(W), must_link=[(0, 5), (10, 15), (20, 25)])
    assert same_partition(model.labels_, np.repeat([0, 1, 2], 10))


def test_a_signed_similarity():
    W = (Y[:, None] == Y) - 0.5 + 0.1 * np.random.RandomState(0).normal(size=(60, 60))
    for storage in (np.asarray, sp.csr_array):
        model = clusterer(affinity="precomputed", n_init=6)
        model.fit(storage(W + W.T), constraints=KNOWN)
        assert adjusted_rand_score(Y, model.labels_) == 1


def test_everything_must_be_together():
    chain = [(i, i + 1) for i in range(59)]
    with warns_naming(ConvergenceWarning, "1 cluster", "n_clusters=3"):
        model = clusterer().fit(X, must_link=chain)
    assert_array_equal(model.labels_, np.zeros(60))
    assert model.satisfaction_ == 1


@pytest.mark.parametrize("affinity", ["cosine", "rbf"])
def test_everything_must_be_apart(affinity):
    apart = list(permutations(range(6), 2))
    model = clusterer(6, affinity=affinity, n_init=5).fit(X[:6], cannot_link=apart)
    assert sorted(model.labels_) == list(range(6))
    assert model.satisfaction_ == 1


def test_few_updates_give_a_usable_answer():
    """Chen et al., section 4.2: it can be interrupted at any time."""
    clean, y = make_blobs(60, centers=8 * np.eye(3), random_state=0)
    known = PairwiseConstraints.from_labels(y, n_pairs=20, random_state=0)
    with warns_naming(ConvergenceWarning, "max_iter=2"):
        model = fitted(clean, constraints=known, max_iter=2)
    assert model.n_iter_ == 2
    assert len(model.loss_curve_) == 3
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.satisfaction_ == 1
    assert_array_equal(model.predict(clean), model.labels_)


def test_what_was_handed_in_is_not_changed():
    for affinity, storage in product(
        [*AFFINITIES, "precomputed"], [np.array, sp.csr_array]
    ):
        data = storage(rbf_kernel(X) if affinity == "precomputed" else X)
        must, cannot = KNOWN.must_link.copy(), matrix(KNOWN.cannot_link).tocsr()
        parts = [must, cannot.data, cannot.indices, cannot.indptr]
        parts += [data.data, data.indices, data.indptr] if sp.issparse(data) else [data]
        before = [part.copy() for part in parts]
        for part in parts:
            part.flags.writeable = False
        model = clusterer(
            affinity=affinity, normalize=True, max_iter=5, hard_must_link=False
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(data, must_link=must, cannot_link=cannot)
        model.predict(data)
        for part, copy in zip(parts, before, strict=True):
            assert_array_equal(part, copy)


@pytest.mark.parametrize("hard", [True, False])
def test_parts_that_must_links_leave_apart_are_warned_of(hard):
    """A similarity that was given is not changed."""
    X, y = make_blobs(60, centers=[[0, 0], [50, 0], [0, 50]], random_state=0)
    W = make_affinity(X, n_neighbors=5).block()
    model = clusterer(2, affinity="precomputed", hard_must_link=hard)
    a, b, c = (int(np.flatnonzero(y == k)[0]) for k in range(3))
    within = int(np.flatnonzero(y == 0)[-1])
    with warns_naming(UserWarning, "3 parts", "n_clusters=2"):
        model.fit(W, must_link=[(a, within)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(W, must_link=[(b, c)])
    assert not any(
        "parts that nothing connects" in str(warning.message) for warning in caught
    )


def test_a_weight_of_soft_must_links_is_warned_of_where_none_is_soft():
    """A search over it would try the same fit again and again."""
    soft = PairwiseConstraints(len(X), [(*pair, 0.5) for pair in KNOWN.must_link])
    for pairs, hard, n_warnings in [
        (KNOWN, "auto", 1),
        (soft, True, 1),
        (soft, "auto", 0),
        (KNOWN, False, 0),
        (PairwiseConstraints(len(X), None, KNOWN.cannot_link), "auto", 0),
    ]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            clusterer(hard_must_link=hard).fit(X, constraints=pairs)
            clusterer(hard_must_link=hard, alpha=1).fit(X, constraints=pairs)
        told = [str(one.message) for one in caught if "alpha" in str(one.message)]
        assert len(told) == n_warnings
        assert all("alpha=1" in one for one in told)


@pytest.mark.parametrize("affinity", ["nearest_neighbors", "landmarks"])
def test_parts_of_a_graph_of_features_are_linked(affinity):
    X, y = make_blobs([26, 18, 16], centers=[[0, 0], [50, 0], [80, 0]], random_state=0)
    model = clusterer(2, affinity=affinity, n_neighbors=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.fit(X)
    assert adjusted_rand_score(y > 0, model.labels_) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("affinity", AFFINITIES)
def test_what_overflows_is_said(affinity):
    X = np.random.default_rng(0).uniform(size=(40, 3))
    model = clusterer(affinity=affinity).fit(X)
    with raises_naming(ValueError, "X", "large"):
        model.predict(X * 1e200)
    with raises_naming(ValueError, "constraints"):
        clusterer(beta=1e200).fit(X, cannot_link=[(0, 1)])
    for beta in (1e30, 1e300):
        with raises_naming(ValueError, "constraints"):
            clusterer(beta=beta).fit(X.astype(np.float32), cannot_link=[(0, 1)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.uint16])
def test_counts_are_integers_of_any_kind(kind):
    """14 rows for each of 20 clusters are more than a small integer holds."""
    points, _ = make_blobs(300, centers=20, n_features=5, random_state=0)
    counts = {"n_clusters": 20, "n_neighbors": 9, "n_init": 2, "max_iter": 100}
    small = {name: kind(count) for name, count in counts.items()}
    model = SSNMFClusterer(random_state=0, **small).fit(points)
    expected = SSNMFClusterer(random_state=0, **counts).fit(points)
    assert_array_equal(model.membership_, expected.membership_)
    assert all(type(value) is kind for value in map(model.get_params().get, counts))
    labels = np.arange(40) % 4
    pairs = PairwiseConstraints.from_labels(labels, n_pairs=kind(100), random_state=0)
    assert pairs.n_pairs == 100
    assert PairwiseConstraints.from_labels(np.empty(0, dtype=object)).n_samples == 0


def test_a_factorization_does_not_depend_on_the_scale_of_a_similarity():
    X, y = make_blobs(60, centers=[[9, 1, 1], [1, 9, 1], [1, 1, 9]], random_state=0)
    X = abs(X)
    model = clusterer(3, affinity="linear", normalize=False, random_state=0)
    curve = model.fit(X).loss_curve_
    tiny = model.fit(X * 2.0**-190)  # cubes of the entries of the factor underflow
    assert adjusted_rand_score(y, tiny.labels_) == 1
    assert_allclose(tiny.loss_curve_ * 2.0**760, curve, rtol=1e-6)
