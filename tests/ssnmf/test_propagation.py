"""Pairs that spread, beside the formula written out, and where they help or do no harm."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from sklearn.datasets import load_digits, load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.affinity import make_affinity
from nmfcluster.similarity import propagation as module
from nmfcluster.similarity.propagation import (
    draw_entries,
    propagate_constraints,
    run_walks,
)

X, y = load_iris(return_X_y=True)
PAIRS = PairwiseConstraints.from_labels(y, n_pairs=30, random_state=0)
# over one in three samples
MANY = PairwiseConstraints.from_labels(y, n_pairs=60, random_state=0)
AFFINITIES = ["nearest_neighbors", "landmarks", "rbf"]


def literal(V, B, Z, a, bound):
    """Follow the docstrings in dense arrays, with every entry of m."""
    M = np.zeros_like(V)
    for _ in range(3):
        D = np.diag((V + M).sum(axis=1) ** -0.5)
        K = (1 - a) * np.linalg.inv(np.eye(len(V)) - a * D @ (V + M) @ D) @ B.T
        F = K @ Z @ K.T
        np.fill_diagonal(F, 0)
        M = np.minimum(1, 3 * np.maximum(F, 0) / F.max())
        pairs = zip(V.sum(axis=1), M.sum(axis=1), strict=True)
        r = [min(1, bound * v / m) if m else 0 for v, m in pairs]
        M = np.diag(np.sqrt(r)) @ M @ np.diag(np.sqrt(r))
    return M


def exact(K, Z, kept, rng):
    """Return all entries of m, in the place of those that are drawn."""
    F = (K @ Z @ K.T).astype(float)
    np.fill_diagonal(F, 0)
    return sp.csr_array(np.clip(3 * F / F.max(), 0, 1))


def links_of(pairs):
    must, cannot = pairs.as_matrices()
    return must - cannot


def similarity(affinity, **options):
    return make_affinity(X, affinity, **options).similarity


def fixed():
    return np.random.RandomState(0)


@pytest.fixture
def to_the_last_digit(monkeypatch):
    """Leave nothing to chance, and follow walks as far as float32 does."""
    monkeypatch.setattr(module, "draw_entries", exact)
    monkeypatch.setattr(module, "_WALK_TOL", 1e-7)


@pytest.mark.parametrize("storage_of", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("width", [0.1, 0.7, 0.99])
def test_walks_end_where_the_inverse_says(width, storage_of):
    W = similarity("nearest_neighbors").toarray()
    np.fill_diagonal(W, 0)
    starts = np.random.default_rng(0).random((150, 4)).astype(np.float32)
    D = np.diag(W.sum(axis=1) ** -0.5)
    expected = (1 - width) * np.linalg.inv(np.eye(150) - width * D @ W @ D) @ starts
    found = run_walks(storage_of(W), starts, width)
    assert found.dtype == np.float32
    assert np.linalg.norm(found - expected) < 2 * 0.05 * np.linalg.norm(expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("affinity", "width", "most", "all_up_to"),
    [
        ("nearest_neighbors", 0.3, 100, 0),
        ("nearest_neighbors", 0.5, 150, 150),
        ("landmarks", 0.9, 100, 150),
        ("landmarks", 0.9, 150, 0),
        ("landmarks", 0.9, 150, 150),
        ("rbf", 0.7, 150, 0),
    ],
)
def test_links_spread_as_the_formula_says(
    affinity, width, most, all_up_to, to_the_last_digit, monkeypatch
):
    monkeypatch.setattr(module, "MAX_DENSE_SAMPLES", most)
    monkeypatch.setattr(module, "_MAX_EXACT_SAMPLES", min(all_up_to, most))
    made = similarity(affinity, n_landmarks=60)
    by_landmarks = affinity == "landmarks"
    W, B = made.toarray(), np.eye(150)
    V, a, largest = W, width, (W - np.diag(np.diag(W))).max()
    if by_landmarks and most < 150:
        B = made.factors[0].toarray()
        V, a, largest = B.T @ B, width**0.5, np.diag(W).max()
    V = V - np.diag(np.diag(V))
    V /= V.max()
    weighted = PairwiseConstraints(
        150, [(*p, 2.0) for p in PAIRS.must_link], PAIRS.cannot_link
    )
    for pairs in (PAIRS, MANY, weighted):
        M = literal(V, B, links_of(pairs).toarray(), a, min(2, 6 * pairs.n_pairs / 150))
        found = propagate_constraints(
            made, links_of(pairs), width, fixed(), by_landmarks
        ).toarray()
        assert_allclose(found, W / largest + B @ M @ B.T, atol=1e-4)
        # and without the diagonal, as what is normalised is
        if by_landmarks and most < 150:
            alone = made.without_diagonal()
            found = propagate_constraints(
                alone, links_of(pairs), width, fixed(), by_landmarks
            ).toarray()
            assert_allclose(found, alone.toarray() / largest + B @ M @ B.T, atol=1e-4)


def test_what_is_drawn_stands_for_all_entries():
    """Each entry is m over its chance, and the mean of many draws is m."""
    W, Z = similarity("nearest_neighbors").toarray(), links_of(MANY).astype(np.float32)
    np.fill_diagonal(W, 0)
    K = run_walks(W, np.eye(150, dtype=np.float32), 0.5)
    F, plus = K @ Z @ K.T, K @ Z.maximum(0) @ K.T
    np.fill_diagonal(F, 0)
    weight = sum(Z[i, j] * K[:, i].sum() * K[:, j].sum() for i, j in MANY.must_link)
    chance = 1 - np.exp(-150 * 25 / 2 * plus / weight)
    assert chance.flat[F.argmax()] > 0.999  # so that all draws have one scale
    m = np.clip(3 * F / F.max(), 0, 1)
    draws = [draw_entries(K, Z, 25, np.random.RandomState(seed)) for seed in range(100)]
    for S in draws[:5]:
        array = S.toarray()
        assert 0 < S.nnz <= 150 * 25 < np.count_nonzero(m)
        assert_array_equal(array, array.T)
        assert_allclose(array[array > 0], (m / chance)[array > 0], rtol=1e-3)
    error = np.sqrt((m[m > 0] ** 2 / chance[m > 0]).max() / 100)
    assert abs(sum(draws) / 100 - m).max() < 6 * error


def test_links_spread_from_some_of_many_samples(monkeypatch):
    """Of the links that are drawn up to half are must-links, though there are few."""
    asked = []

    def spy(K, Z, kept, rng):
        asked.append(Z)
        return draw_entries(K, Z, kept, rng)

    monkeypatch.setattr(module, "draw_entries", spy)
    monkeypatch.setattr(module, "_MAX_EXACT_SAMPLES", 0)
    monkeypatch.setattr(module, "_MAX_STARTS", 20)
    few = PairwiseConstraints(150, PAIRS.must_link[:4], MANY.cannot_link)
    propagate_constraints(similarity("nearest_neighbors"), links_of(few), 0.7, fixed())
    assert 10 <= asked[0].shape[0] <= 20
    assert (asked[0] > 0).nnz == 2 * 4


def test_cannot_links_alone_raise_nothing():
    cannot = PairwiseConstraints(150, cannot_link=PAIRS.cannot_link)
    models = [
        SSNMFClusterer(3, propagation=width, random_state=0).fit(X, constraints=cannot)
        for width in (None, 0.65)
    ]
    assert_array_equal(models[0].membership_, models[1].membership_)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("affinity", "dtype"),
    [(name, dtype) for name in AFFINITIES for dtype in (np.float64, np.float32)],
)
def test_a_fit_with_propagation(affinity, dtype):
    options = {
        "propagation": 0.65,
        "affinity": affinity,
        "random_state": 0,
        "n_init": 2,
    }
    model = SSNMFClusterer(3, **options).fit(X.astype(dtype), constraints=PAIRS)
    assert model.membership_.dtype == dtype
    must, _ = PAIRS.satisfied(model.labels_)
    assert must.all()
    again = SSNMFClusterer(3, n_jobs=2, **options).fit(
        X.astype(dtype), constraints=PAIRS
    )
    assert_array_equal(again.membership_, model.membership_)
    assert (model.predict(X.astype(dtype)) == model.labels_).mean() > 0.9


def test_pairs_spread_to_samples_in_none_of_them():
    """Moons touch: a graph is cut somewhere, and pairs say where."""
    moons, classes = make_moons(400, noise=0.2, random_state=0)
    draws = [
        PairwiseConstraints.from_labels(classes, 50, random_state=seed)
        for seed in range(2)
    ]

    def score(width):
        model = SSNMFClusterer(2, propagation=width, random_state=0)
        fits = [model.fit(moons, constraints=pairs).labels_ for pairs in draws]
        return np.mean([adjusted_rand_score(classes, labels) for labels in fits])

    assert score(0.65) > score(None) + 0.02


@pytest.mark.slow
def test_few_pairs_of_many_samples_do_no_harm():
    """Pairs that are right and spread are hardly worse than none, of any draw."""
    images, digits = load_digits(return_X_y=True)

    def score(pairs, seed):
        model = SSNMFClusterer(10, propagation=0.7, random_state=seed)
        return adjusted_rand_score(digits, model.fit(images, constraints=pairs).labels_)

    for seed in range(2):
        pairs = PairwiseConstraints.from_labels(digits, 50, random_state=seed)
        assert score(pairs, seed) > score(None, seed) - 0.03


def propagation(pairs, X=X, **options):
    """Return how far pairs of a fit spread."""
    model = SSNMFClusterer(3, n_init=1, max_iter=2, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, constraints=pairs).propagation_


def test_auto_spreads_where_there_is_a_must_link_a_cluster():
    enough, few = (
        PairwiseConstraints(150, PAIRS.must_link[:n], [(0, 149)]) for n in (3, 2)
    )
    assert [propagation(pairs) for pairs in (few, enough)] == [None, 0.7]
    assert [propagation(pairs, propagation=0.3) for pairs in (few, enough)] == [
        0.3,
        0.3,
    ]
    cannot = PairwiseConstraints(150, cannot_link=PAIRS.cannot_link)
    assert propagation(cannot) is None
    assert propagation(cannot, propagation=0.3) is None
    assert propagation(PAIRS, propagation=None) is None


def blobs(n_classes, size, seed):
    """Draw Gaussian clusters in as many dimensions, 3 standard deviations apart or so."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(n_classes, size=size)
    centers = 3 * rng.normal(size=(n_classes, n_classes))
    return centers[classes] + rng.normal(size=(size, n_classes)), classes


@pytest.mark.sampled(8)
@pytest.mark.parametrize("n_known", [1, 3, 5, 6])
@pytest.mark.parametrize("n_pairs", [None, 60])
def test_pairs_of_some_classes_leave_the_others_alone(n_known, n_pairs):
    """Labels of 20 samples of each known class, or pairs that are drawn from all of its samples."""
    points, classes = blobs(6, 400, seed=n_known)
    labels = np.full(400, -1)
    for known in range(n_known):
        members = np.flatnonzero(classes == known)
        labels[members if n_pairs else members[:20]] = known
    pairs = PairwiseConstraints.from_labels(labels, n_pairs, random_state=0)
    model = SSNMFClusterer(6, random_state=0)
    without = adjusted_rand_score(classes, model.fit(points).labels_)
    model.fit(points, constraints=pairs)
    assert adjusted_rand_score(classes, model.labels_) > max(without, 0.97) - 0.02
    if n_known < 5:  # of six, as many as random pairs may be in
        assert model.propagation_ is None
    assert model.satisfaction_ == 1


def test_one_group_of_samples_leaves_the_other_clusters_alone():
    rng = np.random.default_rng(0)
    classes = np.repeat(range(4), [180, 60, 30, 30])
    points = 4 * rng.normal(size=(4, 5))[classes] + rng.normal(size=(300, 5))
    for size in (20, 120):
        pairs = PairwiseConstraints.from_groups([range(size)], n_samples=300)
        model = SSNMFClusterer(4, random_state=0).fit(points, constraints=pairs)
        assert adjusted_rand_score(classes, model.labels_) > 0.98


def draw_ring(seed):
    """Draw five clusters on a ring, which overlap."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(5, size=600)
    angles = 2 * np.pi * classes / 5
    centers = 2.4 * np.c_[np.cos(angles), np.sin(angles)]
    return centers + rng.normal(size=(600, 2)), classes


def test_pairs_that_spread_are_kept_only_if_they_satisfy_about_as_many_pairs():
    """The fit without spreading satisfies what one with it does not."""
    points, classes = draw_ring(seed=10)
    pairs = PairwiseConstraints.from_labels(classes, 200, random_state=2)
    violated = {}
    for width in (None, "auto", 0.7):
        model = SSNMFClusterer(5, propagation=width, n_init=1, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(points, constraints=pairs)
        violated[width] = 1 - model.satisfaction_
    most = violated[None] + 0.02
    assert violated["auto"] <= most < violated[0.7]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("seed", "n_pairs", "draw"), [(11, 20, 2), (10, 50, 2)])
def test_pairs_that_change_less_than_they_contradict_do_not_spread(seed, n_pairs, draw):
    """Right pairs that spread make clusters that overlap worse."""
    points, classes = draw_ring(seed)
    pairs = PairwiseConstraints.from_labels(classes, n_pairs, random_state=draw)
    score = {}
    for width in (None, "auto", 0.7):
        model = SSNMFClusterer(5, propagation=width, random_state=0)
        model.fit(points, constraints=pairs)
        score[width] = adjusted_rand_score(classes, model.labels_)
    assert score[None] == score["auto"] > score[0.7] + 0.03


def test_auto_spreads_along_similarities_made_of_nearness():
    for affinity in ("nearest_neighbors", "landmarks", "rbf", "linear", "cosine"):
        expected = 0.7 if affinity in ("nearest_neighbors", "landmarks") else None
        assert propagation(MANY, affinity=affinity) == expected


def test_auto_leaves_similarities_alone():
    assert propagation(PAIRS, X @ X.T, affinity="precomputed") is None


@pytest.mark.sampled(2)
@pytest.mark.parametrize("width", ["auto", 0.5])
def test_pairs_of_weight_zero_do_not_spread(width):
    options = {"hard_must_link": False, "alpha": 0, "beta": 0, "random_state": 0}
    # copies share their rows
    distinct = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)
    model = SSNMFClusterer(3, propagation=width, **options).fit(
        distinct, constraints=PAIRS
    )
    without = SSNMFClusterer(3, random_state=0).fit(distinct)
    assert_array_equal(model.membership_, without.membership_)


def test_negative_similarities_are_refused():
    W = X @ X.T - 60
    with raises_naming(ValueError, "propagation", "below"):
        SSNMFClusterer(3, affinity="precomputed", propagation=0.5).fit(
            W, constraints=PAIRS
        )


def test_large_similarities_that_no_graph_is_are_refused(monkeypatch):
    monkeypatch.setattr(module, "MAX_DENSE_SAMPLES", 100)
    with raises_naming(ValueError, "propagation", "landmarks"):
        SSNMFClusterer(3, affinity="cosine", propagation=0.5).fit(X, constraints=PAIRS)


def test_a_width_next_to_1_ends():
    X, _ = make_blobs(30, centers=2, random_state=0)
    model = SSNMFClusterer(2, propagation=1 - 1e-16, random_state=0)
    longest = model.fit(X, must_link=[(0, 1)]).labels_
    model.set_params(propagation=1 - 1e-5)
    assert_array_equal(model.fit(X, must_link=[(0, 1)]).labels_, longest)
