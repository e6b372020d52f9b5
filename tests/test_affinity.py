"""Every affinity against its definition, written out sample by sample."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import laplacian_kernel
from threadpoolctl import threadpool_limits

from nmfcluster.affinity import Affinity, make_affinity, path_kernel
from nmfcluster.datasets import make_nested_rings
from nmfcluster.similarity import Explicit, Factored
from nmfcluster.similarity import neighbors as module

NAMED = ["linear", "cosine", "rbf", "nearest_neighbors", "landmarks"]
AFFINITIES = [*NAMED, "precomputed", laplacian_kernel]
FORMS = {"dense": np.asarray, "sparse": sp.csr_array, "sparse matrix": sp.csr_matrix}


def samples(seed=0, n=25, width=4, negative=False):
    """Draw samples with zeros, most of them nonnegative, no two at one distance."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width)) if negative else rng.uniform(0.1, 1, size=(n, width))
    return X * (rng.uniform(size=(n, width)) < 0.8) + 1e-3 * rng.uniform(size=(n, width))


# --- the definitions ---------------------------------------------------------------------------


def square(x, y):
    return ((x - y) ** 2).sum()


def median_gamma(X):
    squares = [square(X[i], X[j]) for i in range(len(X)) for j in range(i)]
    return 1 / np.median([s for s in squares if s > 0])


def nearest(distances, k):
    return sorted(range(len(distances)), key=lambda j: distances[j])[:k]


def local_scales(X, k):
    """Return the distance from every sample to its k-th neighbour, at least a tenth of the mean."""
    n = len(X)
    k = min(k, n - 1)
    D = np.sqrt([[square(x, y) for y in X] for x in X])
    others = [[j for j in range(n) if j != i] for i in range(n)]
    far = np.array([sorted(D[i, others[i]])[k - 1] for i in range(n)])
    floor = 0.1 * far.mean() or 1.0
    neighbours = [[others[i][j] for j in nearest(D[i, others[i]], k)] for i in range(n)]
    return D, neighbours, np.maximum(far, floor), floor


def literal_graph(X, k):
    n = len(X)
    D, neighbours, s, _ = local_scales(X, k)
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j and (j in neighbours[i] or i in neighbours[j]):
                W[i, j] = np.exp(-(D[i, j] ** 2) / (s[i] * s[j]))
    return W


def literal_graph_of_new(X, new, k):
    _, _, s, floor = local_scales(X, k)
    W = np.zeros((len(new), len(X)))
    for i, x in enumerate(new):
        d = np.sqrt([square(x, y) for y in X])
        found = nearest(d, min(k, len(X) - 1))
        own = max(d[found[-1]], floor)
        for j in found:
            W[i, j] = np.exp(-(d[j] ** 2) / (own * s[j]))
    return W


def literal_landmarks(X, rows, k):
    """Return the similarities of rows to X where all of X are landmarks."""

    def weights(samples):
        B = np.zeros((len(samples), len(X)))
        for b, x in zip(B, samples, strict=True):
            d = np.sqrt([square(x, y) for y in X])
            found = nearest(d, min(k, len(X)))
            b[found] = np.exp(-((d[found] / d[found[-1]]) ** 2))
            b /= b.sum()
        return B

    B = weights(X)
    return weights(rows) @ np.diag(1 / B.sum(axis=0)) @ B.T


def cosine(x, y):
    return x @ y / np.sqrt((x @ x) * (y @ y)) if x.any() and y.any() else 0.0


def literal(affinity, X, new=None, k=10, gamma=None):
    """Return W of X, or the similarities of new samples to those of X."""
    rows = X if new is None else new
    if affinity == "nearest_neighbors":
        return literal_graph(X, k) if new is None else literal_graph_of_new(X, new, k)
    if affinity == "landmarks":
        return literal_landmarks(X, rows, 5)
    if affinity == "rbf":
        gamma = median_gamma(X) if gamma is None else gamma
    pair = {
        "linear": lambda x, y: x @ y,
        "cosine": cosine,
        "rbf": lambda x, y: np.exp(-gamma * square(x, y)),
        laplacian_kernel: lambda x, y: np.exp(-abs(x - y).sum() / len(x)),
    }[affinity]
    return np.array([[pair(x, y) for y in X] for x in rows])


def literal_normalized(W, cross=None):
    """Return D^-1/2 W D^-1/2, or new similarities divided by the roots of both degrees."""
    W = W - np.diag(np.diag(W))
    d = W.sum(axis=1)
    root = np.array([1 / np.sqrt(x) if x > 0 else 0 for x in d])
    if cross is None:
        return root[:, None] * W * root
    own = np.array([1 / np.sqrt(x) if x > 0 else 0 for x in cross.sum(axis=1)])
    return own[:, None] * cross * root


def given(affinity, X, new=None):
    """Return what is handed to `make_affinity` and to `cross`, and the definitions' W and cross."""
    new = samples(9, 6, X.shape[1]) if new is None else new
    if affinity == "precomputed":
        S = literal("rbf", X, gamma=1.0)
        C = literal("rbf", X, new, gamma=1.0)
        return S, C, S, C
    return X, new, literal(affinity, X), literal(affinity, X, new)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("affinity", AFFINITIES)
def test_similarity_and_cross_are_their_definitions(affinity, normalize, form):
    handed, new, W, C = given(affinity, samples())
    if normalize:
        C = literal_normalized(W, C)
        W = literal_normalized(W)
    found = make_affinity(FORMS[form](handed), affinity, normalize=normalize)
    assert_allclose(found.similarity.toarray(), W, rtol=1e-9, atol=1e-12)
    P = np.random.default_rng(1).normal(size=(25, 3))
    for shape in FORMS.values():
        product = found.cross(shape(new), P)
        assert type(product) is np.ndarray
        assert_allclose(product, C @ P, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("affinity", ["linear", "cosine"])
def test_signed_features(affinity):
    X, new = samples(negative=True), samples(3, 5, negative=True)
    found = make_affinity(X, affinity)
    assert_allclose(found.similarity.toarray(), literal(affinity, X), atol=1e-12)
    assert_allclose(found.cross(new, np.eye(25)), literal(affinity, X, new), atol=1e-12)


def test_which_affinities_are_stored_and_how():
    X, S = samples(), literal("rbf", samples())
    for affinity in ("linear", "cosine"):
        assert isinstance(make_affinity(abs(X), affinity).similarity, Factored)
        W = make_affinity(abs(X), affinity, normalize=True).similarity
        thin, diagonal = (term for term, _ in W.terms)
        assert isinstance(thin, Factored)
        assert len(diagonal.stored_off_diagonal()) == 0
    graph = make_affinity(X, "nearest_neighbors", n_neighbors=3).similarity
    stored = graph.stored_off_diagonal()
    assert 25 * 3 / 2 <= len(stored) <= 25 * 3
    for W in (make_affinity(X, "rbf").similarity, make_affinity(S, "precomputed").similarity):
        assert isinstance(W, Explicit)
        assert W.stored_off_diagonal() is None
    W = make_affinity(sp.csr_array(S), "precomputed").similarity
    assert len(W.stored_off_diagonal()) == 25 * 24 / 2


# --- cosine ------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalize", [False, True])
def test_a_row_of_zeros_is_like_nothing(form, normalize):
    X = samples(n=8)
    X[[2, 5]] = 0
    found = make_affinity(FORMS[form](X), "cosine", normalize=normalize)
    W = literal("cosine", X)
    expected = literal_normalized(W) if normalize else W
    assert_allclose(found.similarity.toarray(), expected, atol=1e-12)
    assert not found.similarity.toarray()[2].any()
    new = np.vstack([np.zeros(4), X[1]])
    product = found.cross(FORMS[form](new), np.eye(8))
    assert_array_equal(product[0], np.zeros(8))
    whole = literal_normalized(W, W) if normalize else W
    assert_allclose(product[1], whole[1], atol=1e-12)


@pytest.mark.parametrize("scale", [1e-12, 1e-6, 1e6, 1e12])
def test_the_cosine_does_not_see_the_lengths(scale):
    X = samples()
    lengths = scale * np.random.default_rng(0).uniform(1, 100, size=(25, 1))
    for pair in [(X, X * lengths), (sp.csr_array(X), sp.csr_array(X * lengths))]:
        one, other = (make_affinity(part, "cosine").similarity.toarray() for part in pair)
        assert_allclose(one, other, rtol=1e-9)


# --- rbf ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [0.01, 3.0])
def test_gamma_may_be_given(gamma):
    X = samples()
    found = make_affinity(X, "rbf", gamma=gamma).similarity.toarray()
    assert_allclose(found, literal("rbf", X, gamma=gamma), rtol=1e-9)


def test_samples_that_coincide_do_not_count_for_the_width():
    X = np.repeat([[0.0, 0], [1, 0], [0, 3]], [30, 2, 2], axis=0)
    expected = np.exp(-median_gamma(X) * np.array([[0, 1, 9], [1, 0, 10], [9, 10, 0]]))
    found = make_affinity(X, "rbf").similarity.toarray()
    assert_allclose(found[np.ix_([0, 30, 32], [0, 30, 32])], expected, rtol=1e-9)


def test_one_point_has_a_width_all_the_same():
    assert_allclose(make_affinity(np.ones((5, 2)), "rbf").similarity.toarray(), np.ones((5, 5)))


def test_the_width_of_many_samples_is_estimated_and_repeatable():
    X = np.random.default_rng(2).normal(size=(700, 3)) ** 3
    first = make_affinity(X, "rbf").similarity.toarray()
    assert_array_equal(make_affinity(X, "rbf").similarity.toarray(), first)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    used = -np.log(first[0, 1]) / squares[0, 1]
    assert used == pytest.approx(1 / np.median(squares[np.triu_indices(700, 1)]), rel=0.15)


def test_new_samples_come_in_blocks():
    X, new = samples(n=12), samples(4, n=1100)
    found = make_affinity(X, "rbf").cross(new, np.eye(12))
    assert_allclose(found, literal("rbf", X, new), rtol=1e-9)


# --- nearest neighbours ------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 5, 24, 25, 400])
def test_the_number_of_neighbours(k):
    X, new = samples(5), samples(6, 7)
    found = make_affinity(X, "nearest_neighbors", n_neighbors=k)
    assert_allclose(found.similarity.toarray(), literal_graph(X, k), rtol=1e-9)
    expected = literal_graph_of_new(X, new, k)
    assert_allclose(found.cross(new, np.eye(25)), expected, rtol=1e-9)


def test_samples_that_coincide_are_most_similar_and_have_a_width():
    """Four copies of each of six points: three neighbours at distance 0, the next far away."""
    rng = np.random.default_rng(3)
    X = np.repeat(rng.uniform(size=(6, 2)), 4, axis=0)
    same = np.repeat(np.arange(6), 4)
    same = (same[:, None] == same) & ~np.eye(24, dtype=bool)
    # with three neighbours nobody has another one
    found = make_affinity(X, "nearest_neighbors", n_neighbors=3).similarity.toarray()
    assert_array_equal(found, same)
    X[:4] += [[0], [1e-9], [2e-9], [3e-9]]  # near, but not the same
    found = make_affinity(X, "nearest_neighbors", n_neighbors=7).similarity.toarray()
    assert_allclose(found[same], 1, rtol=1e-6)
    assert found[~same].max() < 1


def test_ties_inside_the_neighbourhood_do_not_matter():
    """On a grid many distances are equal; with 4 or 8 inner neighbours no tie is cut."""
    X = np.array([[i, j] for i in range(5) for j in range(5)], dtype=float)
    found = make_affinity(X, "nearest_neighbors", n_neighbors=8).similarity.toarray()
    D, _, s, _ = local_scales(X, 8)
    middle = 12  # its 8 nearest are the squares around it
    around = (D[middle] > 0) & (D[middle] < 1.5)
    assert_allclose(found[middle, around], np.exp(-(D[middle] ** 2) / (s[middle] * s))[around])
    assert (found > 0).sum(axis=1).min() >= 8


def test_one_point_taken_many_times():
    W = make_affinity(np.ones((30, 2)), "nearest_neighbors", n_neighbors=4)
    found = W.similarity.toarray()
    assert set(np.unique(found)) == {0.0, 1.0}
    assert not found.diagonal().any()
    assert_array_equal(found, found.T)
    assert_allclose(W.cross(np.ones((2, 2)), np.ones((30, 1))), 4)


def test_the_graph_is_symmetric_without_a_diagonal_and_the_same_for_any_number_of_jobs():
    X = samples(7, n=120)
    graph = make_affinity(X).similarity.toarray()
    assert_array_equal(graph, graph.T)
    assert not graph.diagonal().any()
    assert 0 < graph[graph > 0].min() <= graph.max() <= 1
    assert_array_equal(make_affinity(X, n_jobs=2).similarity.toarray(), graph)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("affinity", ["rbf", "nearest_neighbors"])
def test_the_unit_of_the_features_does_not_matter(affinity, scale):
    X, new = samples(8), samples(1, 5)
    one, other = make_affinity(X, affinity), make_affinity(scale * X, affinity)
    assert_allclose(other.similarity.toarray(), one.similarity.toarray(), rtol=1e-6)
    found = other.cross(scale * new, np.eye(25))
    assert_allclose(found, one.cross(new, np.eye(25)), rtol=1e-6)


# --- normalised --------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_a_sample_without_similarity_stays_without(storage):
    S = np.array([[1.0, 0.5, 0, 0], [0.5, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    found = make_affinity(storage(S), "precomputed", normalize=True)
    expected = np.zeros((4, 4))
    expected[0, 1] = expected[1, 0] = 1  # 0.5 / 0.5
    assert_allclose(found.similarity.toarray(), expected)
    new = storage(np.array([[0.0, 0, 0, 0], [2.0, 2, 0, 0]]))
    assert_allclose(found.cross(new, np.eye(4)), [[0, 0, 0, 0], np.sqrt([2, 2, 0, 0])])


@pytest.mark.parametrize(
    ("affinity", "shown"), [("linear", "2 .* -12"), ("precomputed", "2 .* -12")]
)
def test_rows_that_sum_to_less_than_zero_are_refused(affinity, shown):
    X = np.array([[1.0], [2.0], [-4.0]])
    X = X @ X.T if affinity == "precomputed" else X  # whose diagonal does not count
    with pytest.raises(ValueError, match=f"normalize=True .* row {shown}"):
        make_affinity(X, affinity, normalize=True)


@pytest.mark.parametrize(("plus", "minus"), [(0.1 + 0.2, 0.3), (0.3, 0.1 + 0.2)])
def test_rounding_of_a_row_sum_is_no_sign(plus, minus):
    """Four samples whose similarities add up to 0, but for rounding, count as similar to none."""
    W = np.zeros((7, 7))
    for i in range(4):
        W[i, (i + 1) % 4] = W[(i + 1) % 4, i] = plus if i % 2 else -minus
    W[4:, 4:] = 1 - np.eye(3)
    assert 0 < abs(W[0].sum()) < 1e-15
    expected = np.zeros((7, 7))
    expected[4:, 4:] = W[4:, 4:] / 2
    found = make_affinity(W, "precomputed", normalize=True).similarity
    assert_allclose(found.toarray(), expected)
    with pytest.raises(ValueError, match="not all to 0 as those of centred features"):
        make_affinity(W[:4, :4], "precomputed", normalize=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_outlier_keeps_its_neighbours(dtype):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(20, 2)), [[500.0, 500.0]]]).astype(dtype)
    W = make_affinity(X, n_neighbors=5).similarity.toarray()
    assert W.dtype == dtype
    assert (W[20] > 0).sum() == 5
    assert_allclose(W[20].max(), np.exp(-60), rtol=1e-5)


# --- chosen by type and size -------------------------------------------------------------------


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_the_default_is_a_graph_of_few_samples_and_landmarks_of_many(storage, monkeypatch):
    X = storage(samples())
    limit = "_DENSE" if storage is np.asarray else "_SPARSE"
    for most, name in ((25, "nearest_neighbors"), (24, "landmarks")):
        monkeypatch.setattr(module, limit, most)
        found, same = make_affinity(X), make_affinity(X, name)
        assert found.name == same.name == name
        assert_array_equal(found.similarity.toarray(), same.similarity.toarray())
    assert make_affinity(X, "linear").name == "linear"
    assert make_affinity(samples(), laplacian_kernel).name == "callable"


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_ties_between_neighbours_do_not_depend_on_threads(storage):
    X = np.random.default_rng(0).integers(3, size=(400, 20)).astype(float)
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads):
            affinity = make_affinity(storage(X))
            found.append((affinity.similarity.toarray(), affinity.cross(X[:50], np.eye(400))))
    for one, two in zip(*found, strict=True):
        assert_array_equal(one, two)


def test_normalized_is_a_method_too_and_changes_nothing():
    X = samples()
    plain = make_affinity(X, "rbf")
    before = plain.similarity.toarray()
    again = plain.normalized()
    assert isinstance(again, Affinity)
    expected = make_affinity(X, "rbf", normalize=True).similarity.toarray()
    assert_array_equal(again.similarity.toarray(), expected)
    assert_array_equal(plain.similarity.toarray(), before)


# --- types and what is refused -----------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("affinity", NAMED)
def test_float32_stays_float32(affinity, normalize, form):
    X, new = samples().astype(np.float32), samples(9, 6).astype(np.float32)
    found = make_affinity(FORMS[form](X), affinity, normalize=normalize)
    full = make_affinity(X.astype(np.float64), affinity, normalize=normalize)
    assert found.similarity.dtype == np.float32
    product = found.cross(FORMS[form](new), np.eye(25, dtype=np.float32))
    assert product.dtype == np.float32
    assert_allclose(product, full.cross(new.astype(np.float64), np.eye(25)), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("affinity", ["linear", "cosine", "nearest_neighbors", "precomputed"])
def test_what_was_handed_in_is_not_written_to(affinity, storage):
    handed, new, _, _ = given(affinity, samples())
    copies = handed.copy(), new.copy()
    frozen = [storage(handed), storage(new)]
    for array in frozen:
        for part in [array.data, array.indices, array.indptr] if sp.issparse(array) else [array]:
            part.flags.writeable = False
    found = make_affinity(frozen[0], affinity, normalize=True)
    found.cross(frozen[1], np.eye(25))
    assert_array_equal(handed, copies[0])
    assert_array_equal(new, copies[1])


@pytest.mark.parametrize("affinity", ["euclidean", "knn", None, 3, int])
def test_unknown_affinities_are_refused(affinity):
    with pytest.raises(ValueError, match=r"affinity must be one of .*nearest_neighbors.*callable"):
        make_affinity(samples(), affinity)


@pytest.mark.parametrize(
    ("returned", "shown"),
    [
        (np.ones((25, 24)), r"got \(25, 24\)"),
        (np.ones(25), r"got \(25,\)"),
        ([[1.0] * 25] * 25, "got list"),
        (None, "got NoneType"),
    ],
)
def test_a_callable_must_return_a_square(returned, shown):
    with pytest.raises(ValueError, match=rf"affinity must return .*\(25, 25\).*{shown}"):
        make_affinity(samples(), lambda X, Y: returned)


# --- similarities as blocks ----------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("affinity", AFFINITIES)
def test_blocks_are_what_products_are_made_of(affinity, normalize, form):
    handed, new, W, C = given(affinity, samples())
    if normalize:
        C = literal_normalized(W, C)
        W = literal_normalized(W)
    found = make_affinity(FORMS[form](handed), affinity, normalize=normalize)
    stored_sparse = affinity == "nearest_neighbors"
    for shape in FORMS.values():
        block = found.between(shape(new))
        if affinity == "precomputed":  # as it was given
            assert sp.issparse(block) == sp.issparse(shape(new))
        else:
            assert isinstance(block, sp.csr_array if stored_sparse else np.ndarray)
        block = block.toarray() if sp.issparse(block) else block
        assert_allclose(block, C, rtol=1e-9, atol=1e-12)
        product = found.cross(shape(new), np.eye(25))
        assert_allclose(block, product, rtol=1e-12, atol=1e-15)
    block = found.block()
    stored_sparse |= affinity == "precomputed" and form != "dense"
    assert isinstance(block, sp.csr_array if stored_sparse else np.ndarray)
    block = block.toarray() if sp.issparse(block) else block
    assert_allclose(block, W, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("affinity", NAMED)
def test_blocks_of_float32(affinity, normalize):
    X, new = samples().astype(np.float32), samples(9, 6).astype(np.float32)
    found = make_affinity(X, affinity, normalize=normalize)
    assert found.block().dtype == found.between(new).dtype == np.float32


def test_a_block_is_a_copy():
    S = literal("rbf", samples(), gamma=1.0)
    for storage in (np.asarray, sp.csr_array):
        block = make_affinity(storage(S), "precomputed").block()
        (block.data if sp.issparse(block) else block)[...] = 0
    assert S.min() > 0


# --- paths ---------------------------------------------------------------------------------------


def literal_steps(X):
    """Return the longest step of the best path between all pairs, after Floyd and Warshall."""
    n = len(X)
    e = [[0.0 if i == j else square(X[i], X[j]) ** 0.5 for j in range(n)] for i in range(n)]
    for over in range(n):
        for i in range(n):
            for j in range(n):
                e[i][j] = min(e[i][j], max(e[i][over], e[over][j]))
    return np.array(e)


@pytest.mark.parametrize("scale", [None, 0.3, 20.0])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_paths_have_the_shortest_longest_step(width, scale):
    X = samples(width=width)
    steps = literal_steps(X)
    size = np.median(steps[np.triu_indices(25, 1)]) if scale is None else scale
    for Y in (None, X, X.copy(), X.tolist()):
        assert_allclose(path_kernel(X, Y, scale=scale), np.exp(-steps / size), rtol=1e-10)
    assert_array_equal(path_kernel(X), path_kernel(X).T)


def test_paths_of_new_samples_lead_through_the_others_alone():
    X, new = samples(), samples(9, 6)
    size = np.median(literal_steps(X)[np.triu_indices(25, 1)])
    found = path_kernel(new, X)
    for sample, row in zip(new, found, strict=True):
        steps = literal_steps(np.vstack([X, sample]))[-1, :-1]
        assert_allclose(row, np.exp(-steps / size), rtol=1e-10)
    assert_allclose(path_kernel(new[:1], X), found[:1], rtol=1e-12)  # one at a time
    own = path_kernel(X)
    assert_allclose(path_kernel(X[3:8], X), own[3:8], rtol=1e-10)


def test_paths_connect_rings_and_not_two_of_them():
    X, y = make_nested_rings(200, noise=0, radii=(1.0, 2.0), random_state=0)
    steps = -np.log(path_kernel(X, scale=1.0))
    same = y[:, None] == y
    assert steps[same].max() < steps[~same].min()
    assert steps[~same].max() == pytest.approx(1.0, abs=0.1)


def test_paths_between_samples_that_coincide():
    X = np.array([[1.0, 2.0]] * 3 + [[1.0, 5.0]])
    steps = np.array([[0, 0, 0, 3.0], [0, 0, 0, 3], [0, 0, 0, 3], [3, 3, 3, 0]])
    assert_allclose(path_kernel(X, scale=3.0), np.exp(-steps / 3), rtol=1e-12)
    assert_array_equal(path_kernel(X[:3]), np.ones((3, 3)))  # a median of 0 is no scale


def test_paths_as_an_affinity():
    X, new = samples(), samples(9, 6)
    found = make_affinity(X, path_kernel)
    assert_allclose(found.similarity.toarray(), path_kernel(X), rtol=1e-12)
    assert_allclose(found.between(new), path_kernel(new, X), rtol=1e-12)


@pytest.mark.parametrize(
    ("X", "Y", "scale", "message"),
    [
        ([[1.0]], None, None, r"Y must hold at least 2 samples.*\(1, 1\)"),
        ([[1.0], [2.0]], [[1.0]], None, r"Y must hold at least 2 samples.*\(1, 1\)"),
        ([[1.0]], [[1.0, 2.0], [3.0, 4.0]], None, r"as many features as X.*\(2, 2\).*\(1, 1\)"),
        ([[1.0], [2.0]], None, 0, "scale must be above 0, got 0"),
        ([[1.0], [2.0]], None, -1.5, "scale must be above 0, got -1.5"),
        ([[1.0], [np.nan]], None, None, "contains NaN"),
        ([[1.0], [2.0]], [[1.0], [np.inf]], None, "Y contains infinity"),
        ([1.0, 2.0], None, None, "Expected 2D array"),
    ],
)
def test_paths_that_there_are_not(X, Y, scale, message):
    with pytest.raises(ValueError, match=message):
        path_kernel(X, Y, scale=scale)


@pytest.mark.parametrize("scale", [0, np.nan, np.inf, "a"])
def test_scales_of_paths_that_there_are_not(scale):
    with pytest.raises(ValueError, match=r"scale must be above 0, got"):
        path_kernel(np.arange(6.0)[:, None], scale=scale)


def test_paths_keep_float32():
    X = np.arange(6, dtype=np.float32)[:, None]
    assert path_kernel(X).dtype == path_kernel(X[:2], X).dtype == np.float32


@pytest.mark.parametrize("seed", range(20))
def test_samples_of_the_fit_are_treated_like_copies_of_them(seed):
    X = np.random.default_rng(seed).normal(size=(60, 3)) * 10
    affinity, P = make_affinity(X, "rbf", gamma=0.01), np.eye(60)[:, :5]
    assert_array_equal(affinity.between(X), affinity.between(X.copy()))
    assert_array_equal(affinity.cross(X, P), affinity.cross(X.copy(), P))
