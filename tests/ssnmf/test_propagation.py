"""Pairs that spread, beside the formula written out, and where samples share points."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster._arrays import storage
from nmfcluster.affinity import make_affinity
from nmfcluster.similarity import spreading
from nmfcluster.similarity.spreading import raised, spread_links

X, y = load_iris(return_X_y=True)
PAIRS = PairwiseConstraints.from_labels(y, n_pairs=30, random_state=0)
MANY = PairwiseConstraints.from_labels(y, n_pairs=60, random_state=0)  # over one in three samples
A_SAMPLE = PAIRS.n_pairs / 150  # pairs
AFFINITIES = ["nearest_neighbors", "landmarks", "rbf"]


def literal(W, Z, a, most, rounds=3):
    """Follow the docstrings in dense arrays."""
    n, M = len(W), np.zeros_like(W)
    W = W / W.max()
    for _ in range(rounds):
        V = W + M
        D = np.diag(V.sum(axis=1) ** -0.5)
        K = (1 - a) * np.linalg.inv(np.eye(n) - a * D @ V @ D)
        F = K @ Z @ K
        M = np.minimum(1, 3 * np.maximum(F, 0) / abs(F).max())
        np.fill_diagonal(M, 0)
        sums = M.sum(axis=1)
        r = [min(1, most * w / m) if m else 0 for w, m in zip(W.sum(axis=1), sums, strict=True)]
        M = np.diag(np.sqrt(r)) @ M @ np.diag(np.sqrt(r))
    return M


def links_of(pairs):
    must, cannot = pairs.as_matrices()
    return must - cannot


def similarity(affinity, **options):
    return make_affinity(X, affinity, **options).similarity


def fixed():
    return np.random.RandomState(0)


@pytest.mark.parametrize(
    ("affinity", "width"), list(zip(AFFINITIES, (0.3, 0.65, 0.95), strict=True))
)
def test_links_spread_as_the_formula_says(affinity, width):
    W = similarity(affinity).toarray()
    np.fill_diagonal(W, 0)
    weighted = PairwiseConstraints(150, [(*p, 2.0) for p in PAIRS.must_link], PAIRS.cannot_link)
    for pairs in (PAIRS, weighted):
        most = min(2, 6 * A_SAMPLE)
        expected = W / W.max() + literal(W, links_of(pairs).toarray(), width, most)
        found = raised(similarity(affinity), links_of(pairs), width, fixed()).toarray()
        assert_allclose(found, expected, atol=1e-9)


def test_samples_have_no_order():
    order = np.random.default_rng(0).permutation(150)
    W = similarity("nearest_neighbors").toarray()
    M = spread_links(W, links_of(PAIRS), 0.65, 2)
    permuted = spread_links(W[np.ix_(order, order)], links_of(PAIRS[order]), 0.65, 2)
    assert_allclose(permuted, M[np.ix_(order, order)], atol=1e-9)
    assert 0.5 < M.max() <= 1


def test_few_links_make_no_islands():
    """What samples gain is bounded by what they have."""
    W = similarity("nearest_neighbors").toarray()
    bounded, free = (spread_links(W, links_of(PAIRS), 0.95, most) for most in (2, 1e6))
    assert bounded.sum() < free.sum()
    assert bounded.sum(axis=1).max() < free.sum(axis=1).max()


def test_cannot_links_alone_raise_nothing():
    cannot = PairwiseConstraints(150, cannot_link=PAIRS.cannot_link)
    models = [
        SSNMFClusterer(3, propagation=width, random_state=0).fit(X, constraints=cannot)
        for width in (None, 0.65)
    ]
    assert_array_equal(models[0].membership_, models[1].membership_)


@pytest.mark.parametrize("affinity", ["nearest_neighbors", "rbf"])
def test_samples_of_a_graph_share_points_sooner(affinity, few_points):
    few_points(100, 60, most=150)
    for fine in (False, True):
        V, B = spreading.points_of(similarity(affinity), links_of(PAIRS), fixed(), False, fine)
        each = fine or affinity == "rbf"
        assert B.shape == (150, len(V)) == (150, 150 if each else 60)


def test_samples_that_are_all_drawn_are_points_each(few_points):
    few_points(10, 150)
    W = similarity("nearest_neighbors")
    V, B = spreading.points_of(W, links_of(PAIRS), fixed(), False)
    assert_allclose(B @ V @ B.T, W.toarray(), atol=1e-12)


@pytest.mark.parametrize("affinity", ["nearest_neighbors", "landmarks"])
def test_samples_share_points(affinity, few_points):
    few_points(100, 60)
    made = similarity(affinity, n_landmarks=60)
    W, by_landmarks = made.toarray(), affinity == "landmarks"
    if by_landmarks:
        B = made.factors[0]
    else:
        B = spreading._near_drawn(make_affinity(X).block(), links_of(PAIRS), fixed())
    sums = B.sum(axis=1)
    assert_allclose(sums[sums > 0], 1)
    assert (sums > 0).mean() > 0.9
    B, Z = B.toarray(), links_of(PAIRS).toarray()
    most = (0.5 if by_landmarks else 2) * 3 * A_SAMPLE
    M = literal(B.T @ W @ B, B.T @ Z @ B, 0.65, most)
    found = raised(made, links_of(PAIRS), 0.65, fixed(), by_landmarks).toarray()
    assert_allclose(found, W / W.max() + B @ M @ B.T, atol=1e-9)


@pytest.mark.parametrize("affinity", AFFINITIES)
def test_many_points_spread_links_once(affinity, few_points, monkeypatch):
    made, by_landmarks = similarity(affinity, n_landmarks=60), affinity == "landmarks"
    few_points(50, 30, most=60 if by_landmarks else 150)
    monkeypatch.setattr(spreading, "_KEPT", 1e9)  # none is left out
    W, Z, B = made.toarray(), links_of(MANY).toarray(), np.eye(150)
    if by_landmarks:
        B = made.factors[0].toarray()
    else:
        np.fill_diagonal(W, 0)
    M = literal(B.T @ W @ B, B.T @ Z @ B, 0.65, 0.5 if by_landmarks else 2, rounds=1)
    found = raised(made, links_of(MANY), 0.65, fixed(), by_landmarks)
    assert_allclose(found.toarray(), W / W.max() + B @ M @ B.T, atol=1e-9)
    assert isinstance(found.stored_off_diagonal(), np.ndarray) == (affinity == "nearest_neighbors")


def test_entries_are_sampled_without_a_bias(monkeypatch):
    monkeypatch.setattr(spreading, "_KEPT", 10)
    monkeypatch.setattr(storage.row_blocks, "__defaults__", (7,))
    W, rng = similarity("nearest_neighbors").toarray(), fixed()
    M = spread_links(W, links_of(MANY), 0.9, 2)
    draws = [spreading._sampled(M, rng) for _ in range(100)]
    shares = M.sum(axis=1) / 10
    least = np.minimum(shares[:, None], shares)
    for S in draws[:5]:
        assert 0 < S.nnz <= 2 * 10 * 150 < np.count_nonzero(M) / 2
        array = S.toarray()
        assert_array_equal(array, array.T)
        assert_allclose(array[array > 0], np.maximum(M, least)[array > 0], rtol=1e-12)
        assert (array[least * 1.001 < M] > 0).all()
    assert abs(sum(draws) / 100 - M).max() < 6 * least.max() / 100**0.5  # of six standard errors
    assert_array_equal(spreading._sampled(np.zeros((9, 9)), rng).toarray(), np.zeros((9, 9)))


def test_landmarks_share_points(few_points):
    """Of many landmarks some are drawn, and samples are as near to them as theirs lead there."""
    few_points(50, 30)
    W = similarity("landmarks", n_landmarks=60)
    U, C = (storage.as_dense(factor) for factor in W.factors)
    V, B = spreading.points_of(W, links_of(PAIRS), fixed(), True)
    between = sp.csr_array(U.T @ U), sp.csr_array(U.T @ links_of(PAIRS) @ U)
    expected = U @ spreading._near_drawn(*between, fixed()).toarray()
    assert expected.shape == (150, 30)
    expected[expected < np.sort(expected, axis=1)[:, [-spreading._NEAREST]]] = 0
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(B.toarray(), expected, atol=1e-12)
    assert_allclose(V, expected.T @ U @ C @ U.T @ expected, atol=1e-9)


def test_half_of_the_points_have_links(monkeypatch):
    monkeypatch.setattr(spreading, "_POINTS", 20)
    links = links_of(PAIRS)
    B = spreading._near_drawn(make_affinity(X).block(), links, fixed())
    own = np.flatnonzero((np.diff(B.indptr) == 1) & (B.max(axis=1).toarray().ravel() == 1))
    assert (np.diff(links.indptr)[own] > 0).sum() >= 10
    assert np.diff(B.indptr).max() <= spreading._NEAREST


@pytest.mark.parametrize(
    ("affinity", "most", "dtype"),
    [
        *((name, 2_000, np.float64) for name in AFFINITIES),
        *((name, 50, np.float32) for name in AFFINITIES[:2]),
    ],
)
def test_a_fit_with_propagation(affinity, most, dtype, few_points):
    few_points(most, 100)
    options = {"propagation": 0.65, "affinity": affinity, "random_state": 0, "n_init": 2}
    model = SSNMFClusterer(3, **options).fit(X.astype(dtype), constraints=PAIRS)
    assert model.membership_.dtype == dtype
    must, _ = PAIRS.satisfied(model.labels_)
    assert must.all()
    again = SSNMFClusterer(3, n_jobs=2, **options).fit(X.astype(dtype), constraints=PAIRS)
    assert_array_equal(again.membership_, model.membership_)
    assert (model.predict(X.astype(dtype)) == model.labels_).mean() > 0.9


def test_pairs_spread_to_samples_in_none_of_them():
    """Moons touch: a graph is cut somewhere, and pairs say where."""
    moons, classes = make_moons(400, noise=0.2, random_state=0)
    draws = [PairwiseConstraints.from_labels(classes, 50, random_state=seed) for seed in range(3)]

    def score(width):
        model = SSNMFClusterer(2, propagation=width, random_state=0)
        fits = [model.fit(moons, constraints=pairs).labels_ for pairs in draws]
        return np.mean([adjusted_rand_score(classes, labels) for labels in fits])

    assert score(0.65) > score(None) + 0.02


def propagation(pairs, X=X, **options):
    """Return how far pairs of a fit spread."""
    model = SSNMFClusterer(3, n_init=1, max_iter=2, random_state=0, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, constraints=pairs).propagation_


def test_auto_spreads_where_one_sample_in_fifty_is_in_a_pair():
    few = [PairwiseConstraints(150, must_link=[(0, 1)]), PairwiseConstraints(150, [(0, 1), (0, 2)])]
    assert [propagation(pairs) for pairs in few] == [None, 0.7]
    assert [propagation(pairs, propagation=0.3) for pairs in few] == [0.3, 0.3]
    cannot = PairwiseConstraints(150, cannot_link=PAIRS.cannot_link)
    assert propagation(cannot) is None
    assert propagation(PAIRS, propagation=None) is None


def test_auto_spreads_along_similarities_made_of_nearness():
    for affinity in ("nearest_neighbors", "landmarks", "rbf", "linear", "cosine"):
        expected = 0.7 if affinity in ("nearest_neighbors", "landmarks") else None
        assert propagation(PAIRS, affinity=affinity) == expected


def test_auto_leaves_similarities_and_printed_forms_alone():
    assert propagation(PAIRS, X @ X.T, affinity="precomputed") is None
    assert propagation(PAIRS, constraint_mode="replace", hard_must_link=False) is None


@pytest.mark.parametrize("width", ["auto", 0.5])
def test_pairs_of_weight_zero_do_not_spread(width):
    options = {"hard_must_link": False, "alpha": 0, "beta": 0, "random_state": 0}
    distinct = X + 1e-3 * np.random.default_rng(0).normal(size=X.shape)  # copies share their rows
    model = SSNMFClusterer(3, propagation=width, **options).fit(distinct, constraints=PAIRS)
    without = SSNMFClusterer(3, random_state=0).fit(distinct)
    assert_array_equal(model.membership_, without.membership_)


def test_negative_similarities_are_refused():
    W = X @ X.T - 60
    with pytest.raises(ValueError, match=r"propagation must be None where similarities are below"):
        SSNMFClusterer(3, affinity="precomputed", propagation=0.5).fit(W, constraints=PAIRS)


def test_large_similarities_that_no_graph_is_are_refused(monkeypatch):
    monkeypatch.setattr(spreading, "MOST", 100)
    with pytest.raises(ValueError, match=r"propagation must be None for more than .*landmarks"):
        SSNMFClusterer(3, affinity="cosine", propagation=0.5).fit(X, constraints=PAIRS)
