"""Objects that come later, and objects that nothing is known of."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.literal import (
    dense,
    literal_factor,
    literal_largest,
    literal_residual,
    literal_scaled,
)
from fusion.shared import blobs, default_model, fitted_model, model, problem
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import SimilarityFusionNMF, SimilarityStack


def literal_memberships(fitted, rows):
    """Return memberships of new objects by the formula of the Notes, from rows of the graph."""
    z, q = fitted.membership_[fitted.sample_indices_], np.diagonal(fitted.core_)
    profile = z / q
    if fitted._sources_.fusion.partition is not None:  # clusters of eigenvectors
        positions = np.argsort(fitted._sources_.fitted)
        profile = fitted._sources_.fusion.partition[positions][:, fitted._order_]
    told = np.zeros((len(rows), len(q)))
    for o, row in enumerate(rows):
        for nu in range(len(q)):
            told[o, nu] = sum(row[i] * profile[i, nu] for i in range(len(row)))
    sums = told.sum(axis=1, keepdims=True)
    return np.where(sums > 0, told / np.where(sums > 0, sums, 1), 1 / len(q))


def literal_rows(fitted, sources, new, K):
    """Return rows of the fused graph: of new objects by the sums and margins of the old ones."""
    told, used = 0.0, np.flatnonzero(fitted.weights_)
    for i in used:
        w, S = fitted.weights_[i], sources[i] * (1 - np.eye(len(sources[i])))
        u = literal_factor(literal_scaled(S, True).sum(axis=1))
        own = new[i].sum(axis=1, keepdims=True)
        degrees = S.sum(axis=0)
        mean = degrees[degrees > 0].mean()
        rows = new[i] / np.sqrt((own + mean) * (degrees + mean))
        told = (
            told
            + w
            * (rows - np.outer(rows.sum(axis=1) / u.sum(), u))
            / literal_residual(S)[2]
        )
    kept = literal_largest(told, K)
    sums = kept.sum(axis=1, keepdims=True)
    # o would have been a neighbour
    degrees = np.maximum(fitted._sources_.mixed.degrees, kept)
    return kept / np.sqrt(np.where(sums > 0, sums, 1) * degrees)


def new_objects(n=6):
    new = np.random.RandomState(2).uniform(size=(n, 43, 3)) ** 4
    new[4] = 0  # similar to none
    new[5, :, 1:] = 0  # not seen by the others
    return new


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("as_given")
@pytest.mark.parametrize("options", [{}, {"eta": 0.3}, {"weights": [1, 0, 3]}])
def test_new_objects_are_placed_by_their_rows_of_the_fused_graph(options):
    sources, new = problem()[0], new_objects()
    fitted = default_model(**options).fit(sources)
    rows = literal_rows(fitted, sources, np.moveaxis(new, 2, 0), 6)
    expected = literal_memberships(fitted, rows)
    assert_allclose(fitted.transform(new), expected, atol=1e-4)
    assert_array_equal(expected[4], np.full(3, 1 / 3))
    assert fitted.predict(new)[4] == -1
    stored = [sp.csr_array(new[:, :, s]) for s in range(3)]
    assert_allclose(fitted.transform(stored), expected, atol=1e-4)  # of a fit to arrays


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("as_given")
@pytest.mark.parametrize(
    ("max_samples", "options"),
    [
        (None, {"criterion": "kl"}),
        (25, {"criterion": "cross_entropy"}),
        (None, {"symmetric": False}),
    ],
)
def test_new_objects_are_placed_by_the_mixture_of_the_printed_criteria(
    max_samples, options
):
    sources, new = problem()[0], new_objects()
    fitted = model(max_samples=max_samples, **options).fit(sources)
    chosen = fitted.sample_indices_
    totals = [source[np.ix_(chosen, chosen)].sum() for source in sources]
    rows = sum(fitted.weights_[s] * new[:, chosen, s] / totals[s] for s in range(3))
    expected = literal_memberships(fitted, rows)
    assert_allclose(fitted.transform(new), expected, rtol=1e-9)
    labels = fitted.predict(new)
    assert labels[4] == -1
    assert_array_equal(
        np.delete(labels, 4), np.delete(expected, 4, axis=0).argmax(axis=1)
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "options"),
    [("kernels", {"symmetric": False, "max_samples": 80}), ("graphs", {})],
)
def test_held_out_objects_are_clustered_as_the_fitted_ones_are(kind, options):
    """Within .03 of the fit, on clusters of unequal size that overlap; mean of three draws."""
    affinity = "rbf" if kind == "kernels" else "nearest_neighbors"
    scores = []
    for seed in range(3):
        views, y = blobs([120, 70, 50], 3, sep=3, seed=seed)
        views.append(np.random.default_rng(seed).normal(size=(240, 3)))
        first, rest = [
            [view[rows] for view in views] for rows in (slice(140), slice(140, None))
        ]
        fitted = default_model(affinity=affinity, **options).fit(views=first)
        clusters = fitted.labels_, fitted.predict(first), fitted.predict(rest)
        truth = y[:140], y[:140], y[140:]
        scores.append(
            [adjusted_rand_score(*pair) for pair in zip(truth, clusters, strict=True)]
        )
    of_fit, again, held_out = np.mean(scores, axis=0)
    assert of_fit > 0.95
    assert min(again, held_out) > of_fit - 0.03


@pytest.mark.sampled(2)
@pytest.mark.parametrize("fit_as", [np.asarray, sp.csr_array])
def test_new_rows_of_another_storage_than_that_of_the_fit(fit_as):
    views, y = blobs([40, 30, 20], 3, sep=4)
    kernels = [rbf_kernel(view, gamma=0.2) for view in views]
    graphs = [np.where(K > 0.55, K, 0) for K in kernels]
    fitted = default_model().fit([fit_as(G[:70, :70]) for G in graphs])
    new = [G[70:, :70] for G in graphs]
    expected = fitted.transform(new)
    assert_allclose(fitted.transform(list(map(sp.csr_array, new))), expected, atol=1e-5)
    assert adjusted_rand_score(y[70:], fitted.predict(new)) > 0.8
    whole = [K[70:, :70] for K in kernels]  # with more pairs than the graphs of the fit
    assert adjusted_rand_score(y[70:], fitted.predict(whole)) > 0.8


@pytest.mark.sampled(2)
@pytest.mark.parametrize("made", [model, default_model])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_new_objects_that_a_source_has_not_seen(storage, made):
    sources, _ = problem()
    fitted = made().fit(sources)
    whole = np.stack(sources, axis=-1)[:4]
    lost, zero = whole.copy(), whole.copy()
    lost[1, :, 0], zero[1, :, 0] = np.nan, 0
    lost[2], zero[2] = np.nan, 0
    new = [storage(lost[:, :, s]) for s in range(3)]
    assert_allclose(fitted.transform(new), fitted.transform(zero), rtol=1e-6)
    assert fitted.predict(new)[2] == -1
    assert_allclose(
        fitted.transform(new)[[0, 3]], fitted.transform(whole)[[0, 3]], rtol=1e-6
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("made", [model, default_model])
def test_rows_are_placed_on_their_own(made):
    sources, _ = problem()
    fitted = made().fit(sources)
    whole = fitted.transform(sources)
    alone = [
        fitted.transform([source[[o]] for source in sources])[0] for o in range(43)
    ]
    assert_allclose(alone, whole, rtol=1e-6)
    assert np.mean(fitted.predict(sources) == fitted.labels_) > 0.9


def test_sources_of_new_objects_have_the_names_and_order_of_fit():
    sources, _ = problem()
    fitted = model().fit(SimilarityStack(sources, names=["a", "b", "c"]))
    whole = fitted.transform(SimilarityStack(sources, names=["a", "b", "c"]))
    # without names they go by their order
    assert_array_equal(fitted.transform(sources), whole)
    with raises_naming(ValueError, "X", "sources", "'c'"):
        fitted.predict(SimilarityStack(sources[::-1], names=["c", "b", "a"]))


def test_similarities_whose_sums_overflow_are_refused():
    fitted = fitted_model()
    huge = [np.full((2, 43), 1.7e308) for _ in range(3)]
    sizes = [S.sum() for S in problem()[0]]
    tiny = model().fit(
        [S / 1e3 / size for S, size in zip(problem()[0], sizes, strict=True)]
    )
    with raises_naming(ValueError, "X", "large"):
        tiny.predict(huge)
    assert (fitted.predict([row / 1e10 for row in huge]) >= 0).all()


# --- objects that nothing is known of ------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("symmetric", [True, False])
def test_objects_similar_to_none_are_in_no_cluster_and_change_nothing(
    storage, symmetric
):
    sources, _ = problem()
    alone, others = [3, 17], np.delete(np.arange(43), [3, 17])
    for source in sources:
        source[alone] = source[:, alone] = 0
    fitted, without = (
        default_model(symmetric=symmetric),
        default_model(symmetric=symmetric),
    )
    with warns_naming(UserWarning, "2 objects") as caught:
        fitted.fit(None, similarities=[storage(source) for source in sources])
    assert caught[0].filename == __file__
    assert_array_equal(fitted.labels_[alone], -1)
    assert_allclose(fitted.membership_[alone], np.full((2, 3), 1 / 3))
    assert_array_equal(fitted.predict(sources)[alone], -1)
    without.fit([storage(source[np.ix_(others, others)]) for source in sources])
    assert_allclose(fitted.agreement_.scores, without.agreement_.scores, rtol=1e-4)
    assert_array_equal(fitted.weights_, without.weights_)
    assert_allclose(fitted.loss_, without.loss_, rtol=1e-4)
    assert_array_equal(fitted.labels_[others], without.labels_)


@pytest.mark.parametrize("made", [model, default_model])
def test_an_object_similar_to_none_says_nothing_of_new_ones(made):
    sources, _ = problem()
    sources[0][3] = sources[0][:, 3] = 0
    with warns_naming(UserWarning, "1 object"):
        fitted = made().fit(sources[0])
    new = np.zeros((1, 43))
    new[0, 3] = 1
    assert_array_equal(fitted.predict(new), [-1])
    assert_array_equal(fitted.transform(new), np.full((1, 3), 1 / 3))


def test_objects_that_only_sources_without_weight_saw_are_in_no_cluster():
    (sharp, other), y = blobs([20, 20, 20], 2, sep=8)
    noise = np.random.RandomState(0).uniform(size=(60, 60)) ** 8
    sources = [rbf_kernel(sharp), rbf_kernel(other), noise + noise.T]
    for source in sources[:2]:
        source[:5] = source[:, :5] = np.nan
    fitted = SimilarityFusionNMF(3)
    with warns_naming(UserWarning, "5 objects"):
        fitted.fit(None, similarities=sources)
    assert_array_equal(fitted.weights_, [0.5, 0.5, 0])
    assert_array_equal(fitted.labels_[:5], -1)
    assert_allclose(fitted.membership_[:5], 1 / 3)
    assert_array_equal(fitted.predict(sources)[:5], -1)
    assert adjusted_rand_score(y[5:], fitted.labels_[5:]) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("symmetric", [True, False])
def test_other_sources_tell_what_one_has_not_seen(storage, symmetric):
    """A fit to what was seen is nearly as good as one to all; and nobody is left out."""
    views, y = blobs([60, 40, 30], 3, sep=4)
    sources = [rbf_kernel(view, gamma=0.1) for view in views]
    rng = np.random.default_rng(0)
    for source, lost in zip(
        sources, np.split(rng.permutation(130)[:120], 3), strict=True
    ):
        source[lost] = source[:, lost] = np.nan
    fitted = default_model(symmetric=symmetric)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted.fit([storage(source) for source in sources])
    assert_allclose(fitted.weights_, 1 / 3)
    assert (fitted.labels_ >= 0).all()
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    assert (
        adjusted_rand_score(y, fitted.predict([storage(source) for source in sources]))
        > 0.9
    )
    assert_allclose(dense(fitted.fused_similarity()).sum(), 130, rtol=1e-5)


@pytest.mark.parametrize("n_new", [1, 2])
def test_new_objects_without_links_in_a_sparse_network_are_in_no_cluster(n_new):
    links = sp.csr_array(np.kron(np.eye(2), np.ones((4, 4))) - np.eye(8))
    fitted = SimilarityFusionNMF(2, random_state=0).fit([links, links])
    new = [sp.csr_array((n_new, 8))] * 2
    assert_array_equal(fitted.predict(new), np.full(n_new, -1))
    assert_array_equal(fitted.transform(new), np.full((n_new, 2), 0.5))
