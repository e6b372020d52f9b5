"""Laws of `SSNMFClusterer`: what it must return, whatever the mode and the solver."""

import pickle
import warnings
from itertools import permutations, product

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from sklearn.datasets import load_iris, make_blobs, make_circles
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.affinity import make_affinity
from nmfcluster.metrics import clustering_accuracy
from nmfcluster.ssnmf import estimator

# many of these fits are stopped before they have converged
pytestmark = pytest.mark.filterwarnings(
    "ignore:.* did not converge:sklearn.exceptions.ConvergenceWarning"
)

X, Y = make_blobs(60, centers=3 * np.eye(3), cluster_std=1.0, random_state=0)
X = X - X.min() + 0.1  # nonnegative, so that every solver can be run on every affinity
KNOWN = PairwiseConstraints.from_labels(Y, n_pairs=30, random_state=0)

SOLVERS = {
    "bpg": {},
    "mu": {"solver": "mu"},
    "tri bpg": {"factorization": "tri"},
    "tri mu": {"factorization": "tri", "solver": "mu"},
    "tri full": {"factorization": "tri_full"},
}
AFFINITIES = ["nearest_neighbors", "linear", "cosine", "rbf"]
CONSTRAINED = {
    "hard": {},
    "soft": {"hard_must_link": False},
    "replace": {"hard_must_link": False, "constraint_mode": "replace"},
    "hard, replace": {"constraint_mode": "replace"},
}
every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_affinity = pytest.mark.parametrize("affinity", AFFINITIES)
every_way = pytest.mark.parametrize("way", CONSTRAINED)


def clusterer(n_clusters=3, **parameters):
    return SSNMFClusterer(
        **{"n_clusters": n_clusters, "random_state": 0, "n_init": 1, "max_iter": 100} | parameters
    )


def fitted(X=X, *, n_clusters=3, constraints=KNOWN, **parameters):
    return clusterer(n_clusters, **parameters).fit(X, constraints=constraints)


def same_partition(a, b):
    """Tell whether two label vectors differ in the names of the clusters alone."""
    return len({*zip(a, b, strict=True)}) == len({*a}) == len({*b})


def assert_same_fit(one, other, rtol=1e-7):
    assert_array_equal(one.labels_, other.labels_)
    assert_allclose(one.loss_, other.loss_, rtol=rtol, atol=1e-9 * one.loss_curve_[0])
    assert_allclose(one.membership_, other.membership_, atol=1e-4)


@pytest.fixture
def kept(monkeypatch):
    """Return a list that every fit appends the factorization that it found to."""
    found, original = [], estimator.factorize

    def spy(*args, **options):
        found.append(original(*args, **options))
        return found[-1]

    monkeypatch.setattr(estimator, "factorize", spy)
    return found


def constrained(W, known, model):
    """Return the matrix that is factorized, for all samples, as the class describes it."""
    W = W.copy()
    groups = known.components()
    for kind, pairs, weights in [
        ("must", known.must_link, known.must_link_weights),
        ("cannot", known.cannot_link, known.cannot_link_weights),
    ]:
        value = W.max() if kind == "must" else W.min()
        for (i, j), w in zip(pairs, weights, strict=True):
            if model.hard_must_link and (kind == "must" or groups[i] == groups[j]):
                continue
            if model.constraint_mode == "replace":
                entry = value
            elif kind == "must":
                entry = W[i, j] + model.alpha * model.weight_unit_ * w
            else:
                entry = W[i, j] - model.beta * model.weight_unit_ * w
            W[i, j] = W[j, i] = entry
    return W


def factors_of_samples(model, found):
    """Return G and S of all samples; H = G S^1/2 where S is diagonal."""
    groups = model.must_link_groups_ if model.hard_must_link else np.arange(len(model.labels_))
    rows = found.best.factors[0] / np.sqrt(np.bincount(groups))[:, None]
    if len(found.best.factors) == 1:
        return rows[groups], np.eye(rows.shape[1])
    return rows[groups], found.best.factors[1]


# --- the objective -----------------------------------------------------------------------------


@every_solver
@every_way
@every_affinity
def test_the_loss_is_that_of_all_samples(affinity, way, solver, kept):
    """||A~ - GSG'||^2 of the matrix written out entry by entry."""
    known = PairwiseConstraints(
        60,
        [(*pair, 1 + pair[0] % 3) for pair in KNOWN.must_link],
        [(*pair, 1 + pair[1] % 2) for pair in KNOWN.cannot_link],
    )
    model = fitted(
        constraints=known, affinity=affinity, max_iter=25, tol=-1, alpha=1.5, beta=0.7,
        propagation=None, **CONSTRAINED[way], **SOLVERS[solver],
    )  # fmt: skip
    normalize = affinity == "nearest_neighbors"
    W = make_affinity(X, affinity, normalize=normalize).similarity.toarray()
    off = W[np.triu_indices(60, 1)]
    expected = 1.0 if "replace" in way else np.quantile(off[off != 0], 0.999)
    assert model.weight_unit_ == pytest.approx(expected, rel=1e-9)
    A = constrained(W, known, model)
    G, S = factors_of_samples(model, kept[-1])
    assert_allclose(model.loss_, ((A - G @ S @ G.T) ** 2).sum(), rtol=1e-9, atol=1e-9)
    assert model.loss_ == model.loss_curve_.min()


@every_solver
@every_way
@every_affinity
def test_the_loss_never_rises(affinity, way, solver):
    options = {"affinity": affinity, "n_init": 2, "tol": -1, "max_iter": 30}
    model = fitted(**options, **CONSTRAINED[way], **SOLVERS[solver])
    assert len(model.loss_curves_) == 2
    for curve in model.loss_curves_:
        assert len(curve) == 31
        assert np.diff(curve).max() <= 1e-11 * curve[0]


@every_affinity
def test_a_diagonal_core_changes_nothing(affinity):
    bi = fitted(affinity=affinity)
    tri = fitted(affinity=affinity, factorization="tri")
    assert_array_equal(tri.membership_, bi.membership_)
    assert_array_equal(tri.core_, bi.core_)
    slow = fitted(affinity=affinity, factorization="tri", solver="mu", max_iter=3000, tol=1e-9)
    assert slow.loss_ == pytest.approx(bi.loss_, rel=0.02)


@every_solver
def test_the_core_belongs_to_unit_columns(solver, kept):
    """With a diagonal S the memberships are the rows of G S^1/2; S alone scales the columns."""
    model = fitted(affinity="rbf", constraints=None, **SOLVERS[solver])
    G, S = factors_of_samples(model, kept[-1])
    lengths = np.linalg.norm(G, axis=0)
    unit, S = G / lengths, S * np.outer(lengths, lengths)
    H = unit * np.sqrt(np.diag(S))
    shares = H / H.sum(axis=1, keepdims=True)
    order = [abs(shares - column[:, None]).sum(axis=0).argmin() for column in model.membership_.T]
    assert sorted(order) == [0, 1, 2]
    assert_allclose(model.membership_, shares[:, order], atol=1e-9)
    assert_allclose(model.core_, S[np.ix_(order, order)], rtol=1e-9, atol=1e-12)
    assert_allclose(model.core_, model.core_.T, rtol=1e-6)
    if solver == "tri full":
        assert model.core_[0, 1] > 0
    else:
        assert_array_equal(model.core_, np.diag(np.diag(model.core_)))


def test_a_full_core_holds_similarity_between_clusters():
    """Two clusters that are alike only to each other: GSG' with a full S, but not HH'."""
    S = np.array([[0.0, 2.0], [2.0, 0.0]])
    G = np.kron(np.eye(2), np.ones((8, 1)) / np.sqrt(8))
    noise = 0.01 * np.random.default_rng(0).uniform(size=(16, 16))
    W = G @ S @ G.T + noise + noise.T
    full = clusterer(2, affinity="precomputed", factorization="tri_full", n_init=10).fit(W)
    assert same_partition(full.labels_, np.repeat([0, 1], 8))
    assert_allclose(full.core_, [[full.core_[0, 0], 2], [2, full.core_[1, 1]]], atol=0.3)
    assert full.loss_ < 0.3 * clusterer(2, affinity="precomputed").fit(W).loss_


@pytest.mark.parametrize("factorization", ["tri", "tri_full"])
def test_the_printed_rules_can_be_asked_for(factorization):
    model = fitted(
        affinity="rbf", factorization=factorization, solver="printed", constraint_mode="replace"
    )
    assert adjusted_rand_score(Y, model.labels_) > 0.8
    assert np.isfinite(model.loss_curve_).all()


@pytest.mark.parametrize("affinity", ["linear", "cosine"])
def test_the_printed_rules_take_replaced_entries_of_any_storage(affinity):
    """Nothing is negative after a replacement, however the similarity is stored."""
    model = fitted(
        affinity=affinity, factorization="tri", solver="printed", constraint_mode="replace"
    )
    assert model.satisfaction_ > 0.5


# --- constraints -------------------------------------------------------------------------------


@every_solver
@every_affinity
def test_hard_must_links_are_always_satisfied(affinity, solver):
    rng = np.random.RandomState(1)
    for size in (1, 20, 200):
        must = [pair for pair in rng.randint(60, size=(size, 2)) if pair[0] != pair[1]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = clusterer(affinity=affinity, max_iter=30, **SOLVERS[solver])
            model.fit(X, must_link=must)  # of any clusters: nothing to do with the data
        assert len(model.violated_must_link_) == 0
        assert model.satisfaction_ == 1
        i, j = np.transpose(must)
        assert_array_equal(model.membership_[i], model.membership_[j])


@pytest.mark.parametrize("affinity", ["nearest_neighbors", "rbf"])
@pytest.mark.parametrize("way", ["hard", "soft"])
def test_when_all_pairs_are_known_all_samples_are_right(affinity, way):
    noisy, y = make_blobs(90, centers=2 * np.eye(3), cluster_std=1.0, random_state=1)
    before = clusterer(affinity=affinity).fit(noisy)
    model = fitted(
        noisy, constraints=PairwiseConstraints.from_labels(y), affinity=affinity, **CONSTRAINED[way]
    )
    assert clustering_accuracy(y, before.labels_) < 0.95
    assert clustering_accuracy(y, model.labels_) == 1
    assert model.satisfaction_ == 1


def test_more_weight_satisfies_more():
    noisy, y = make_blobs(90, centers=2 * np.eye(3), cluster_std=1.2, random_state=1)
    known = PairwiseConstraints.from_labels(y, n_pairs=150, random_state=0)
    shares = [
        fitted(noisy, constraints=known, hard_must_link=False, alpha=w, beta=w).satisfaction_
        for w in (0.0, 0.5, 2.0)
    ]
    assert shares[0] < shares[1] < shares[2]


def test_what_is_reported_of_the_constraints():
    noisy, y = make_blobs(60, centers=np.eye(3), cluster_std=1.0, random_state=1)
    known = PairwiseConstraints.from_labels(y, n_pairs=80, random_state=0)
    model = fitted(noisy, constraints=known, hard_must_link=False, alpha=0.1, beta=0.1)
    labels = model.labels_
    apart = [pair for pair in known.must_link.tolist() if labels[pair[0]] != labels[pair[1]]]
    joined = [pair for pair in known.cannot_link.tolist() if labels[pair[0]] == labels[pair[1]]]
    assert apart
    assert joined
    assert model.violated_must_link_.tolist() == apart
    assert model.violated_cannot_link_.tolist() == joined
    assert model.satisfaction_ == pytest.approx(1 - (len(apart) + len(joined)) / 80)
    assert model.constraints_ == known
    assert_array_equal(model.must_link_groups_, known.components())


def test_nothing_is_violated_where_nothing_is_known():
    for known in (None, PairwiseConstraints(60), PairwiseConstraints(60, must_link=[(3, 3)])):
        model = fitted(constraints=known)
        assert np.isnan(model.satisfaction_)
        assert model.violated_must_link_.shape == model.violated_cannot_link_.shape == (0, 2)
        assert_array_equal(model.must_link_groups_, np.arange(60))
        assert_same_fit(model, clusterer().fit(X))


FORMS = {
    "the container": lambda must, cannot: {"constraints": PairwiseConstraints(60, must, cannot)},
    "the other order": lambda must, cannot: {
        "must_link": must[::-1, ::-1],
        "cannot_link": cannot[::-1, ::-1],
    },
    "several times": lambda must, cannot: {
        "must_link": np.vstack([must, must[:, ::-1], must]),
        "cannot_link": np.vstack([cannot, cannot[:3]]),
    },
    "lists": lambda must, cannot: {"must_link": must.tolist(), "cannot_link": cannot.tolist()},
    "weights of 1": lambda must, cannot: {
        "must_link": np.column_stack([must, np.ones(len(must))]),
        "cannot_link": np.column_stack([cannot, np.ones(len(cannot))]),
    },
    "sparse, one half": lambda must, cannot: {
        "must_link": matrix(must),
        "cannot_link": matrix(cannot),
    },
    "sparse, symmetric": lambda must, cannot: {
        "must_link": sp.csc_matrix(matrix(must) + matrix(must).T),
        "cannot_link": matrix(cannot) + matrix(cannot).T,
    },
}


def matrix(pairs):
    return sp.coo_array((np.ones(len(pairs)), pairs.T), shape=(60, 60))


@pytest.mark.parametrize("way", ["hard", "soft"])
@pytest.mark.parametrize("form", FORMS)
def test_constraints_are_the_same_in_any_form(form, way):
    plain = clusterer(**CONSTRAINED[way])
    plain.fit(X, must_link=KNOWN.must_link, cannot_link=KNOWN.cannot_link)
    given = FORMS[form](KNOWN.must_link, KNOWN.cannot_link)
    model = clusterer(**CONSTRAINED[way]).fit(X, **given)
    assert model.constraints_ == KNOWN
    assert_same_fit(model, plain)


@every_affinity
@every_solver
def test_weights_of_pairs_and_alpha_and_beta_are_one_thing(affinity, solver):
    heavy = PairwiseConstraints(
        60, [(*p, 3.0) for p in KNOWN.must_link], [(*p, 0.5) for p in KNOWN.cannot_link]
    )
    options = {"affinity": affinity, "hard_must_link": False, **SOLVERS[solver], "max_iter": 50}
    options["propagation"] = None  # pairs spread by their weights alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = fitted(constraints=heavy, alpha=0.4, beta=1.0, **options)
        other = fitted(alpha=1.2, beta=0.5, **options)
    assert_same_fit(one, other)


def test_raw_units_are_units_of_the_similarity():
    one = fitted(affinity="rbf", hard_must_link=False)
    other = fitted(
        affinity="rbf",
        hard_must_link=False,
        weight_unit="raw",
        alpha=one.weight_unit_ / 4,
        beta=3 * one.weight_unit_,
    )
    assert other.weight_unit_ == 1
    assert_same_fit(one, other)


@every_affinity
@every_solver
def test_weights_of_zero_are_no_constraints(affinity, solver):
    options = {"affinity": affinity, **SOLVERS[solver]}
    free = clusterer(**options).fit(X)
    soft = fitted(hard_must_link=False, alpha=0, beta=0, **options)
    assert_same_fit(soft, free)
    cannot = PairwiseConstraints(60, cannot_link=KNOWN.cannot_link)
    assert_same_fit(fitted(constraints=cannot, beta=0, **options), free)


# --- storage -----------------------------------------------------------------------------------


@every_way
@every_affinity
def test_sparse_and_dense_features_are_the_same(affinity, way):
    dense = fitted(affinity=affinity, **CONSTRAINED[way])
    for storage in (sp.csr_array, sp.coo_array):
        model = fitted(storage(X), affinity=affinity, **CONSTRAINED[way])
        assert_same_fit(model, dense, rtol=1e-6)
        for new in (X, sp.csr_matrix(X)):
            assert_array_equal(model.predict(new), dense.predict(X))
            assert_array_equal(dense.predict(new), dense.predict(X))


@every_way
@every_affinity
def test_named_affinities_are_precomputed_ones(affinity, way):
    normalize = affinity == "nearest_neighbors"
    W = make_affinity(X, affinity, normalize=normalize).similarity.toarray()
    named = fitted(affinity=affinity, propagation=None, **CONSTRAINED[way])
    for storage in (np.asarray, sp.csr_array, sp.csr_matrix):
        model = fitted(storage(W), affinity="precomputed", **CONSTRAINED[way])
        assert model.weight_unit_ == pytest.approx(named.weight_unit_, rel=1e-9)
        assert_array_equal(model.labels_, named.labels_)
        assert model.loss_ == pytest.approx(named.loss_, rel=1e-5)


def test_a_callable_is_the_affinity_that_it_computes():
    def affinity(X, Y):
        return rbf_kernel(X, Y, gamma=0.3)

    model, named = fitted(affinity=affinity), fitted(affinity="rbf", gamma=0.3)
    assert_same_fit(model, named)
    assert_allclose(model.transform(X[:7]), named.transform(X[:7]), atol=1e-6)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@every_solver
@every_affinity
def test_float32_stays_float32(affinity, solver, storage):
    options = {"affinity": affinity, "beta": 1.0, **SOLVERS[solver]}  # a larger one makes near ties
    full = fitted(**options)
    model = fitted(storage(X.astype(np.float32)), **options)
    assert_array_equal(model.labels_, full.labels_)
    assert model.membership_.dtype == np.float32
    assert model.transform(storage(X.astype(np.float32))).dtype == np.float32
    assert model.core_.dtype == np.float32
    assert model.loss_ == pytest.approx(full.loss_, rel=1e-2)


@every_affinity
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_unit_of_the_features_does_not_matter(affinity, scale):
    for solver in ("bpg", "tri full"):
        one = fitted(affinity=affinity, **SOLVERS[solver])
        other = fitted(scale * X, affinity=affinity, **SOLVERS[solver])
        assert_array_equal(one.labels_, other.labels_)
        assert_array_equal(one.predict(X), other.predict(scale * X))


# --- symmetries and right answers --------------------------------------------------------------


@every_way
@every_affinity
def test_the_order_of_the_samples_does_not_matter(affinity, way):
    clean, y = make_blobs(60, centers=8 * np.eye(3), random_state=0)
    clean -= clean.min()
    known = PairwiseConstraints.from_labels(y, n_pairs=20, random_state=0)
    model = fitted(clean, constraints=known, affinity=affinity, **CONSTRAINED[way])
    order = np.random.RandomState(0).permutation(60)
    shuffled = fitted(clean[order], constraints=known[order], affinity=affinity, **CONSTRAINED[way])
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
    return rbf_kernel(np.vstack([near, near * 0.9 + 3]), gamma=0.3), np.repeat([0, 1], 4)


@pytest.mark.parametrize("seed", range(8))
def test_tiny_problems_have_the_best_allowed_answer(seed):
    W, y = corners()
    known = PairwiseConstraints.from_labels(y, n_pairs=3, random_state=seed)
    model = clusterer(2, affinity="precomputed").fit(W, constraints=known)
    assert same_partition(model.labels_, best_clustering(W, 2, known))


@pytest.mark.parametrize("must", [[(0, 4), (1, 5), (2, 6)], [(0, 7)], [(0, 7), (0, 6), (7, 5)]])
def test_tiny_problems_whose_must_links_cut_across_the_clusters(must):
    W, y = corners()
    known = PairwiseConstraints(8, must)
    assert not same_partition(y, best_clustering(W, 2, known))
    model = clusterer(2, affinity="precomputed", n_init=10).fit(W, constraints=known)
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
    with pytest.warns(ConvergenceWarning, match="found 2 clusters, fewer than n_clusters=3"):
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


# --- contradictions and ignored arguments ------------------------------------------------------

CONTRADICTIONS = {
    "a chain": ({"must_link": [(3, 5), (5, 9)], "cannot_link": [(9, 3)]}, "3-5-9", 3),
    "too few clusters": ({"cannot_link": list(permutations(range(4), 2))}, "n_clusters=3", 3),
    "an odd cycle": ({"cannot_link": [(0, 1), (1, 2), (2, 0)]}, "samples ., ., . are a cycle", 2),
}


@pytest.mark.parametrize("way", ["hard", "soft"])
@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions_are_found_and_named(case, way):
    pairs, says, k = CONTRADICTIONS[case]
    model = clusterer(k, **CONSTRAINED[way])
    with pytest.raises(ValueError, match=f"{says}.*contradictions='ignore'"):
        model.fit(X, **pairs)
    with pytest.warns(UserWarning, match=f"Not all constraints can be satisfied: .*{says}"):
        model.set_params(contradictions="warn").fit(X, **pairs)
    labels, share = model.labels_, model.satisfaction_
    assert share < 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(contradictions="ignore").fit(X, **pairs)
    assert_array_equal(model.labels_, labels)
    model.set_params(hard_must_link=way == "hard").fit(X, **pairs)
    if way == "hard" and "must_link" in pairs:  # hard must-links win
        assert len(model.violated_must_link_) == 0


def test_pairs_that_can_be_satisfied_are_no_contradiction():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(constraints=PairwiseConstraints.from_labels(Y))


@pytest.mark.parametrize("y", [Y, Y.astype(str), ["a"] * 3, object(), np.nan, KNOWN])
def test_y_is_ignored(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also not when it holds the constraints that are given
        model = clusterer().fit(X, y, constraints=KNOWN)
    assert_same_fit(model, fitted())


def test_constraints_that_are_given_as_y_are_ignored_and_said_to_be():
    with pytest.warns(UserWarning, match=r"fit ignores y; .* fit\(X, constraints=\.\.\.\)"):
        model = clusterer().fit(X, KNOWN)
    assert np.isnan(model.satisfaction_)
    assert_same_fit(model, clusterer().fit(X))


# --- new samples -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["hard", "soft"])
@every_affinity
def test_new_samples_are_least_squares_fits_to_the_factor(affinity, way, kept):
    model = fitted(affinity=affinity, **CONSTRAINED[way])
    new, _ = make_blobs(40, centers=3 * np.eye(3), random_state=7)
    new = new - new.min()
    normalize = affinity == "nearest_neighbors"
    S = make_affinity(X, affinity, normalize=normalize).cross(new, np.eye(60))
    H, _ = factors_of_samples(model, kept[-1])
    order = [
        abs(H / H.sum(axis=1, keepdims=True) - column[:, None]).sum(axis=0).argmin()
        for column in model.membership_.T
    ]
    expected = np.array([nnls(H[:, order], row)[0] for row in S])
    memberships = expected / expected.sum(axis=1, keepdims=True)
    assert_allclose(model.transform(new), memberships, atol=1e-3)
    clear = np.sort(memberships, axis=1)[:, -1] - np.sort(memberships, axis=1)[:, -2] > 0.01
    assert clear.sum() > 30
    assert_array_equal(model.predict(new)[clear], expected.argmax(axis=1)[clear])


@every_solver
@every_affinity
def test_the_training_samples_are_predicted_where_they_were(affinity, solver):
    model = fitted(affinity=affinity, constraints=None, **SOLVERS[solver])
    assert (model.predict(X) == model.labels_).mean() > 0.9
    memberships = model.transform(X)
    assert memberships.shape == (60, 3)
    assert memberships.min() >= 0
    assert_allclose(memberships.sum(axis=1), 1)


def test_a_document_without_known_words_is_in_no_cluster():
    model = fitted(affinity="cosine")
    assert_array_equal(model.predict(np.zeros((2, 3))), [-1, -1])
    assert_allclose(model.transform(np.zeros((2, 3))), np.full((2, 3), 1 / 3))


TEXTS = {
    "sport": "match goal team coach season player league score",
    "money": "bank market share profit price growth trade tax",
    "health": "patient doctor hospital drug disease trial nurse care",
}


def corpus(n=20, seed=0):
    rng = np.random.RandomState(seed)
    words = [text.split() for text in TEXTS.values()]
    y = np.arange(3 * n) % 3
    shared = ["year", "people", "new", "report"]
    texts = [" ".join([*rng.choice(words[c], 4), *rng.choice(shared, 3)]) for c in y]
    return texts, y


def test_documents_in_a_pipeline():
    texts, y = corpus()
    known = PairwiseConstraints.from_labels(y, n_pairs=40, random_state=0)
    model = make_pipeline(TfidfVectorizer(), clusterer(affinity="cosine"))
    model.fit(texts, ssnmfclusterer__constraints=known)
    assert clustering_accuracy(y, model[-1].labels_) > 0.95
    assert model[-1].satisfaction_ > 0.95
    unseen = model.predict([*TEXTS.values(), "unknown words"])
    assert sorted(unseen[:3]) == [0, 1, 2]
    assert unseen[3] == -1


# --- odd inputs --------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["bpg", "mu", "tri full"])
def test_as_many_clusters_as_samples(solver):
    few = 3 * np.eye(5) + 0.1
    for affinity in ("linear", "cosine", "rbf"):
        model = clusterer(5, affinity=affinity, gamma=1, **SOLVERS[solver], max_iter=3000).fit(few)
        assert sorted(model.labels_) == [0, 1, 2, 3, 4]


@every_solver
@every_affinity
def test_one_cluster(affinity, solver):
    model = clusterer(1, affinity=affinity, **SOLVERS[solver]).fit(X, must_link=KNOWN.must_link)
    assert_array_equal(model.labels_, np.zeros(60))
    assert_allclose(model.membership_, 1)
    assert_array_equal(model.predict(X), np.zeros(60))


@pytest.mark.parametrize("n", [20, 400])
@pytest.mark.parametrize("solver", ["bpg", "mu", "tri full"])
@every_affinity
def test_samples_that_are_all_the_same(affinity, solver, n):
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


@every_affinity
def test_one_feature_integers_and_constant_features(affinity):
    centres = np.repeat([1, 40, 400], 12)
    rng = np.random.RandomState(0)
    one = (centres + rng.randint(0, 3, 36))[:, None]
    if affinity in ("nearest_neighbors", "rbf"):
        assert same_partition(clusterer(affinity=affinity, gamma=0.01).fit(one).labels_, centres)
    counts = rng.poisson(0.2 + 8 * np.eye(3)[np.arange(36) % 3])
    constant = np.column_stack([counts, np.full(36, 2)])
    model, of_floats = (clusterer(affinity=affinity).fit(Z) for Z in (constant, constant * 1.0))
    assert_same_fit(model, of_floats)
    assert adjusted_rand_score(np.arange(36) % 3, model.labels_) > 0.8


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("normalize", [False, True])
def test_an_isolated_sample_is_said_to_be_one(storage, normalize):
    W = rbf_kernel(X, gamma=0.3)
    W[7] = W[:, 7] = 0
    model = clusterer(affinity="precomputed", normalize=normalize)
    with pytest.warns(UserWarning, match="Nothing tells the cluster of 1 sample"):
        model.fit(storage(W))
    assert_allclose(model.membership_[7], 1 / 3)
    assert model.predict(storage(W))[7] == -1
    rest = np.delete(np.arange(60), 7)
    alone = clusterer(affinity="precomputed", normalize=normalize).fit(storage(W[rest][:, rest]))
    model.fit(storage(W), must_link=[(7, 8)])  # now it has company
    assert model.labels_[7] == model.labels_[8]
    assert same_partition(model.labels_[rest], alone.labels_)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_more_components_than_clusters_are_joined_by_must_links(storage):
    W = np.kron(np.eye(6), np.ones((5, 5)))
    model = clusterer(affinity="precomputed", normalize=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(storage(W), must_link=[(0, 5), (10, 15), (20, 25)])
    assert same_partition(model.labels_, np.repeat([0, 1, 2], 10))


@pytest.mark.parametrize("solver", ["bpg", "mu"])
def test_a_signed_similarity(solver):
    W = (Y[:, None] == Y) - 0.5 + 0.1 * np.random.RandomState(0).normal(size=(60, 60))
    for storage in (np.asarray, sp.csr_array):
        model = clusterer(affinity="precomputed", n_init=6, **SOLVERS[solver])
        model.fit(storage(W + W.T), constraints=KNOWN)
        assert adjusted_rand_score(Y, model.labels_) == 1


def test_everything_must_be_together():
    chain = [(i, i + 1) for i in range(59)]
    with pytest.warns(ConvergenceWarning, match="found 1 cluster, fewer than n_clusters=3"):
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
    with pytest.warns(ConvergenceWarning, match="did not converge within max_iter=2 updates"):
        model = fitted(clean, constraints=known, max_iter=2)
    assert model.n_iter_ == 2
    assert len(model.loss_curve_) == 3
    assert adjusted_rand_score(y, model.labels_) == 1
    assert model.satisfaction_ == 1
    assert_array_equal(model.predict(clean), model.labels_)


def test_a_stage_is_a_line(capsys):
    fitted(verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("[SSNMFClusterer] ") for line in lines)


def test_what_was_handed_in_is_not_changed():
    for affinity, storage in product([*AFFINITIES, "precomputed"], [np.array, sp.csr_array]):
        data = storage(rbf_kernel(X) if affinity == "precomputed" else X)
        must, cannot = KNOWN.must_link.copy(), matrix(KNOWN.cannot_link).tocsr()
        parts = [must, cannot.data, cannot.indices, cannot.indptr]
        parts += [data.data, data.indices, data.indptr] if sp.issparse(data) else [data]
        before = [part.copy() for part in parts]
        for part in parts:
            part.flags.writeable = False
        model = clusterer(affinity=affinity, normalize=True, max_iter=5, hard_must_link=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(data, must_link=must, cannot_link=cannot)
        model.predict(data)
        for part, copy in zip(parts, before, strict=True):
            assert_array_equal(part, copy)


# --- more samples than coarse_size ---------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("affinity", ["cosine", "rbf"])
def test_coarse_starts_find_the_same_clusters_and_keep_the_constraints(affinity, solver):
    X, y = make_blobs(400, centers=4 * np.eye(4), random_state=1)
    X = np.maximum(X, 0)
    known = PairwiseConstraints.from_labels(y, n_pairs=300, random_state=0)
    options = {"n_clusters": 4, "affinity": affinity, **SOLVERS[solver]}
    whole = clusterer(**options).fit(X, constraints=known)
    coarse = clusterer(coarse_size=100, **options).fit(X, constraints=known)
    assert not len(coarse.violated_must_link_)
    assert adjusted_rand_score(coarse.labels_, whole.labels_) > 0.95
    assert coarse.loss_ <= whole.loss_ + 0.02 * whole.loss_curve_[0]
    again = clusterer(coarse_size=100, n_jobs=2, **options).fit(X, constraints=known)
    assert_array_equal(again.membership_, coarse.membership_)


def test_a_coarse_size_below_the_clusters_is_refused():
    with pytest.raises(ValueError, match="coarse_size=2 must be at least n_clusters=3"):
        clusterer(coarse_size=2).fit(X)


# --- what a review found -------------------------------------------------------------------------


def test_new_samples_of_clusters_that_are_linked_to_each_other():
    """Two clusters, similar to each other and not within: all of A is off the diagonal of S."""
    W = np.kron([[0.1, 1], [1, 0.1]], np.ones((10, 10)))
    model = clusterer(2, affinity="precomputed", factorization="tri_full", n_init=3).fit(W)
    assert same_partition(model.labels_, np.repeat([0, 1], 10))
    assert_array_equal(model.predict(W), model.labels_)
    GS = model._products_(np.eye(20))
    fitted_rows = np.array([nnls(GS, w)[0] for w in W]) * model._roots_
    expected = fitted_rows / fitted_rows.sum(axis=1, keepdims=True)
    assert_allclose(model.transform(W), expected, atol=1e-4)


@pytest.mark.parametrize("hard", [True, False])
def test_parts_that_must_links_leave_apart_are_warned_of(hard):
    """A similarity that was given is not changed."""
    X, y = make_blobs(60, centers=[[0, 0], [50, 0], [0, 50]], random_state=0)
    W = make_affinity(X, n_neighbors=5).block()
    model = clusterer(2, affinity="precomputed", hard_must_link=hard)
    a, b, c = (int(np.flatnonzero(y == k)[0]) for k in range(3))
    within = int(np.flatnonzero(y == 0)[-1])
    with pytest.warns(UserWarning, match="3 parts that nothing connects, more than n_clusters=2"):
        model.fit(W, must_link=[(a, within)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(W, must_link=[(b, c)])
    assert not any("parts that nothing connects" in str(warning.message) for warning in caught)


@pytest.mark.parametrize("affinity", ["nearest_neighbors", "landmarks"])
def test_parts_of_a_graph_of_features_are_linked(affinity):
    X, y = make_blobs(60, centers=[[0, 0], [50, 0], [80, 0]], random_state=0)
    model = clusterer(2, affinity=affinity, n_neighbors=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model.fit(X)
    assert adjusted_rand_score(y > 0, model.labels_) == 1


@pytest.mark.parametrize("affinity", ["linear", "cosine", "landmarks"])
def test_a_fitted_model_keeps_what_new_samples_need(affinity):
    """Memberships and labels of the samples of the fit, and nothing else that grows with them."""
    sizes = []
    for n in (400, 800):
        X, _ = make_blobs(n, centers=3, n_features=40, random_state=0)
        model = clusterer(affinity=affinity, n_landmarks=50).fit(X)
        sizes.append(len(pickle.dumps(model)))
    assert sizes[1] - sizes[0] < 400 * 8 * (3 + 3)  # labels, groups, memberships; X has 40 columns


def test_a_fitted_model_does_not_keep_the_similarity():
    X, _ = make_blobs(400, centers=3, random_state=0)
    model = clusterer(affinity="rbf").fit(X)
    assert len(pickle.dumps(model)) < 400 * 400 * 8 / 4


@pytest.mark.parametrize("affinity", AFFINITIES)
def test_what_overflows_is_said(affinity):
    X = np.random.default_rng(0).uniform(size=(40, 3))
    model = clusterer(affinity=affinity).fit(X)
    with pytest.raises(ValueError, match="X must not hold values as large as"):
        model.predict(X * 1e200)
    with pytest.raises(ValueError, match="weights of the constraints"):
        clusterer(beta=1e200).fit(X, cannot_link=[(0, 1)])


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("affinity", ["linear", "cosine"])
def test_a_normalized_kernel_is_the_same_however_it_is_given(affinity, storage):
    W = make_affinity(X, affinity).similarity.toarray()
    one = fitted(storage(X), affinity=affinity, normalize=True)
    two = fitted(W, affinity="precomputed", normalize=True)
    assert_same_fit(one, two, rtol=1e-6)
