"""Every affinity against its definition: similarities, products with them, and blocks."""

import numpy as np
import pytest
import scipy.sparse as sp
from affinities import (
    AFFINITIES,
    FORMS,
    NAMED,
    given,
    literal,
    literal_normalized,
    median_gamma,
    samples,
)
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming

from nmfcluster.affinity import make_affinity
from nmfcluster.similarity import Explicit, Factored


@pytest.mark.sampled(4)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("affinity", AFFINITIES)
def test_similarities_products_and_blocks_are_their_definitions(affinity, form):
    handed, new, W, C = given(affinity, samples())
    P = np.random.default_rng(1).normal(size=(25, 3))
    for normalize in (False, True):
        if normalize:
            C = literal_normalized(W, C)
            W = literal_normalized(W)
        found = make_affinity(FORMS[form](handed), affinity, normalize=normalize)
        assert_allclose(found.similarity.toarray(), W, rtol=1e-9, atol=1e-12)
        for shape in FORMS.values():
            product = found.cross(shape(new), P)
            assert type(product) is np.ndarray
            assert_allclose(product, C @ P, rtol=1e-9, atol=1e-12)
            block = found.between(shape(new))
            if affinity == "precomputed":  # as it was given
                assert sp.issparse(block) == sp.issparse(shape(new))
            else:
                graph = affinity == "nearest_neighbors"
                assert isinstance(block, sp.csr_array if graph else np.ndarray)
            block = block.toarray() if sp.issparse(block) else block
            assert_allclose(block, C, rtol=1e-9, atol=1e-12)
            product = found.cross(shape(new), np.eye(25))
            assert_allclose(block, product, rtol=1e-12, atol=1e-15)
        block, as_given = found.block(), affinity == "precomputed" and form != "dense"
        stored_sparse = affinity == "nearest_neighbors" or as_given
        assert isinstance(block, sp.csr_array if stored_sparse else np.ndarray)
        block = block.toarray() if sp.issparse(block) else block
        assert_allclose(block, W, rtol=1e-9, atol=1e-12)


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
    for W in (
        make_affinity(X, "rbf").similarity,
        make_affinity(S, "precomputed").similarity,
    ):
        assert isinstance(W, Explicit)
        assert W.stored_off_diagonal() is None
    W = make_affinity(sp.csr_array(S), "precomputed").similarity
    assert len(W.stored_off_diagonal()) == 25 * 24 / 2


# --- cosine ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "normalize"), [("dense", False), ("sparse", True)])
def test_a_row_of_zeros_is_similar_to_no_other(form, normalize):
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


@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_the_cosine_ignores_lengths(scale):
    X = samples()
    lengths = scale * np.random.default_rng(0).uniform(1, 100, size=(25, 1))
    for pair in [(X, X * lengths), (sp.csr_array(X), sp.csr_array(X * lengths))]:
        one, other = (
            make_affinity(part, "cosine").similarity.toarray() for part in pair
        )
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
    assert_allclose(
        make_affinity(np.ones((5, 2)), "rbf").similarity.toarray(), np.ones((5, 5))
    )


def test_the_width_of_many_samples_is_estimated_and_repeatable():
    X = np.random.default_rng(2).normal(size=(700, 3)) ** 3
    first = make_affinity(X, "rbf").similarity.toarray()
    assert_array_equal(make_affinity(X, "rbf").similarity.toarray(), first)
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    used = -np.log(first[0, 1]) / squares[0, 1]
    assert used == pytest.approx(
        1 / np.median(squares[np.triu_indices(700, 1)]), rel=0.15
    )


def test_new_samples_come_in_blocks():
    X, new = samples(n=12), samples(4, n=1100)
    found = make_affinity(X, "rbf").cross(new, np.eye(12))
    assert_allclose(found, literal("rbf", X, new), rtol=1e-9)


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
    ("affinity", "shown"), [("linear", "-12"), ("precomputed", "-12")]
)
def test_rows_that_sum_to_less_than_zero_are_refused(affinity, shown):
    X = np.array([[1.0], [2.0], [-4.0]])
    X = X @ X.T if affinity == "precomputed" else X  # whose diagonal does not count
    with raises_naming(ValueError, "normalize=True", "row 2", shown):
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
    with raises_naming(ValueError, "centred"):
        make_affinity(W[:4, :4], "precomputed", normalize=True)


# --- types and what is refused -----------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("affinity", NAMED)
def test_float32_stays_float32(affinity, form):
    X, new = samples().astype(np.float32), samples(9, 6).astype(np.float32)
    for normalize in (False, True):
        found = make_affinity(FORMS[form](X), affinity, normalize=normalize)
        full = make_affinity(X.astype(np.float64), affinity, normalize=normalize)
        product = found.cross(FORMS[form](new), np.eye(25, dtype=np.float32))
        expected = full.cross(new.astype(np.float64), np.eye(25))
        assert_allclose(product, expected, rtol=2e-3, atol=1e-4)
        for part in (
            found.similarity,
            product,
            found.block(),
            found.between(FORMS[form](new)),
        ):
            assert part.dtype == np.float32


@pytest.mark.parametrize(
    ("affinity", "storage"),
    [
        ("linear", np.asarray),
        ("cosine", sp.csr_array),
        ("nearest_neighbors", np.asarray),
        ("precomputed", np.asarray),
        ("precomputed", sp.csr_array),
    ],
)
def test_inputs_are_not_written_to(affinity, storage):
    handed, new, _, _ = given(affinity, samples())
    copies = handed.copy(), new.copy()
    frozen = [storage(handed), storage(new)]
    for array in frozen:
        for part in (
            [array.data, array.indices, array.indptr] if sp.issparse(array) else [array]
        ):
            part.flags.writeable = False
    found = make_affinity(frozen[0], affinity, normalize=True)
    found.cross(frozen[1], np.eye(25))
    assert_array_equal(handed, copies[0])
    assert_array_equal(new, copies[1])


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
    with raises_naming(ValueError, "affinity", "(25, 25)"):
        make_affinity(samples(), lambda X, Y: returned)


# --- similarities as blocks ----------------------------------------------------------------------


def test_a_block_is_a_copy():
    S = literal("rbf", samples(), gamma=1.0)
    for storage in (np.asarray, sp.csr_array):
        block = make_affinity(storage(S), "precomputed").block()
        (block.data if sp.issparse(block) else block)[...] = 0
    assert S.min() > 0


def test_samples_of_the_fit_are_treated_like_copies_of_them():
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(60, 3)) * 10
        affinity, P = make_affinity(X, "rbf", gamma=0.01), np.eye(60)[:, :5]
        assert_array_equal(affinity.between(X), affinity.between(X.copy()))
        assert_array_equal(affinity.cross(X, P), affinity.cross(X.copy(), P))
