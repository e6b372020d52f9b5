"""Objects that come later, and objects that nothing is known of."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.shared import PRINTED, fitted_model, model, problem
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import SimilarityFusionNMF, SimilarityStack


def literal_memberships(fitted, new, totals, known=None):
    """Return memberships of new objects by the formula of the Notes, with loops."""
    chosen = fitted.sample_indices_
    z, q = fitted.membership_[chosen], np.diagonal(fitted.core_)
    rows = []
    for o in range(new.shape[0]):
        row = np.zeros(len(q))
        for nu in range(len(q)):
            for number, i in enumerate(chosen):
                p = sum(fitted.weights_[s] * new[o, i, s] / totals[s] for s in range(new.shape[2]))
                row[nu] += p * z[number, nu] / q[nu]
        rows.append(row / row.sum() if row.sum() else np.full(len(q), 1 / len(q)))
    return np.array(rows)


@pytest.mark.parametrize(
    ("max_samples", "options"),
    [
        *((size, {"criterion": criterion}) for size in (None, 25) for criterion in PRINTED),
        (None, {"symmetric": False}),
    ],
)
def test_new_objects_are_placed_by_the_formula(max_samples, options):
    sources, _ = problem()
    fitted = model(max_samples=max_samples, **options).fit(sources)
    new = np.random.RandomState(2).uniform(size=(6, 43, 3)) ** 4
    new[4] = 0  # similar to none
    new[5, :, 1:] = 0
    chosen = fitted.sample_indices_
    totals = [source[np.ix_(chosen, chosen)].sum() for source in sources]
    expected = literal_memberships(fitted, new, totals)
    assert_allclose(fitted.transform(new), expected, rtol=1e-9)
    assert_array_equal(fitted.transform(new)[4], np.full(3, 1 / 3))
    labels = fitted.predict(new)
    assert labels[4] == -1
    assert_array_equal(np.delete(labels, 4), np.delete(expected, 4, axis=0).argmax(axis=1))


def test_training_objects_are_mostly_placed_where_they_were():
    sources, _ = problem()
    fitted = fitted_model()
    assert np.mean(fitted.predict(sources) == fitted.labels_) > 0.9


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_new_objects_that_a_source_has_not_seen(storage):
    sources, _ = problem()
    fitted = fitted_model()
    whole = np.stack(sources, axis=-1)[:4]
    lost, zero = whole.copy(), whole.copy()
    lost[1, :, 0], zero[1, :, 0] = np.nan, 0
    lost[2], zero[2] = np.nan, 0
    new = [storage(lost[:, :, s]) for s in range(3)]
    assert_allclose(fitted.transform(new), fitted.transform(zero), rtol=1e-12)
    assert fitted.predict(new)[2] == -1
    assert_allclose(fitted.transform(new)[[0, 3]], fitted.transform(whole)[[0, 3]], rtol=1e-12)


def test_rows_are_placed_on_their_own():
    sources, _ = problem()
    fitted = fitted_model()
    whole = fitted.transform(sources)
    alone = [fitted.transform([source[[o]] for source in sources])[0] for o in range(43)]
    assert_allclose(alone, whole, rtol=1e-12)


def test_sources_of_new_objects_have_the_names_and_order_of_fit():
    sources, _ = problem()
    fitted = model().fit(SimilarityStack(sources, names=["a", "b", "c"]))
    whole = fitted.transform(SimilarityStack(sources, names=["a", "b", "c"]))
    assert_array_equal(fitted.transform(sources), whole)  # without names they go by their order
    with pytest.raises(ValueError, match=r"X must have the sources of fit, in their order, .*'c'"):
        fitted.predict(SimilarityStack(sources[::-1], names=["c", "b", "a"]))


def test_similarities_whose_sums_overflow_are_refused():
    sources, _ = problem()
    fitted = fitted_model()
    huge = [np.full((2, len(source)), 1e308) for source in sources]
    with pytest.raises(ValueError, match="X must not hold similarities whose sums are too large"):
        fitted.predict(huge)


# --- objects that nothing is known of ------------------------------------------------------------


@pytest.mark.parametrize(
    ("storage", "options"),
    [(np.asarray, {}), (sp.csr_array, {"symmetric": False}), (sp.csr_array, {"eta": 0})],
)
def test_objects_similar_to_none_are_in_no_cluster(storage, options):
    sources, _ = problem()
    alone, others = [3, 17], np.delete(np.arange(43), [3, 17])
    for source in sources:
        source[alone] = source[:, alone] = 0
    with pytest.warns(UserWarning, match="Nothing tells the cluster of 2 objects") as caught:
        fitted = model(**options).fit(None, similarities=[storage(source) for source in sources])
    assert caught[0].filename == __file__
    assert_array_equal(fitted.labels_[alone], -1)
    assert_allclose(fitted.membership_[alone], np.full((2, 3), 1 / 3))
    assert_array_equal(fitted.predict(sources)[alone], -1)
    without = model(**options).fit([source[np.ix_(others, others)] for source in sources])
    assert_allclose(fitted.weights_, without.weights_, rtol=1e-3, atol=1e-9)
    assert_allclose(fitted.loss_, without.loss_, rtol=1e-4, atol=1e-4)
    assert adjusted_rand_score(fitted.labels_[others], without.labels_) > 0.9


def test_an_object_similar_to_none_says_nothing_of_new_ones():
    sources, _ = problem()
    sources[0][3] = sources[0][:, 3] = 0
    with pytest.warns(UserWarning, match="Nothing tells the cluster of 1 object"):
        fitted = model().fit(sources[0])
    new = np.zeros((1, 43))
    new[0, 3] = 1
    assert_array_equal(fitted.predict(new), [-1])
    assert_array_equal(fitted.transform(new), np.full((1, 3), 1 / 3))


def test_objects_that_are_similar_to_themselves_alone():
    n = 30
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how many clusters are found is left to chance
        fitted = model(n_clusters=2).fit(None, similarities=[np.eye(n)])
    assert np.isfinite(fitted.membership_).all()
    assert (fitted.labels_ >= 0).all()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted = SimilarityFusionNMF(2).fit(None, similarities=[np.eye(n)])
    assert any(f"Nothing tells the cluster of {n} object" in str(one.message) for one in told)
    assert_array_equal(fitted.labels_, -1)
    assert_allclose(fitted.membership_, 0.5)


def test_objects_that_only_sources_without_weight_saw_are_in_no_cluster():
    rng = np.random.RandomState(0)
    X = np.repeat([0.0, 5.0, 10.0], 20)[:, None] + 0.1 * rng.normal(size=(60, 1))
    sharp, noise = rbf_kernel(X), rng.uniform(size=(60, 60)) ** 8
    noise = (noise + noise.T) / 2
    sharp[:5] = sharp[:, :5] = np.nan
    fitted = SimilarityFusionNMF(3, eta=0, random_state=0)
    with pytest.warns(UserWarning, match="Nothing tells the cluster of 5 objects"):
        fitted.fit(None, similarities=[sharp, noise])
    assert_array_equal(fitted.weights_, [1, 0])
    assert_array_equal(fitted.labels_[:5], -1)
    assert_allclose(fitted.membership_[:5], 1 / 3)
    assert_array_equal(fitted.predict([sharp, noise])[:5], -1)
