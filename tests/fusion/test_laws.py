"""What must not matter to a fusion: orders, storage, jobs; and what weights follow."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from fusion.shared import assert_same_fit, blobs, default_model, model, problem
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import SimilarityFusionNMF, SimilarityStack

STORAGES = {
    "dense": list,
    "sparse": lambda sources: list(map(sp.csr_array, sources)),
    "mixed": lambda sources: [
        sp.csr_array(S) if i % 2 else S for i, S in enumerate(sources)
    ],
    "float32": lambda sources: [S.astype(np.float32) for S in sources],
}


def four_sources(cut=0.05):
    """Return two kernels that agree, one of noise, and one of another width; and the clusters."""
    sources, y = problem(cut=cut)
    other = np.random.default_rng(1).normal(size=(43, 3)) + 3 * np.eye(3)[y]
    return [*sources, rbf_kernel(other, gamma=0.05)], y


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("criterion", "storage"), [("agreement", "float32"), ("kl", "mixed")]
)
def test_the_order_of_sources_does_not_matter_to_the_bit(criterion, storage):
    sources, order = STORAGES[storage](four_sources()[0]), [2, 0, 3, 1]
    for options in ({}, {"eta": 0.3, "symmetric": False}, {"max_samples": 30}):
        made = SimilarityFusionNMF(3, criterion=criterion, random_state=0, **options)
        fitted = made.fit(sources)
        turned = clone(made).fit([sources[i] for i in order])
        assert_array_equal(turned.weights_, fitted.weights_[order])
        assert_array_equal(turned.source_losses_, fitted.source_losses_[order])
        for name in ("labels_", "membership_", "core_", "loss_curve_"):
            assert_array_equal(getattr(turned, name), getattr(fitted, name))
        if criterion == "agreement":
            assert_array_equal(turned.counted_, fitted.counted_[order])
            scores = fitted.agreement_.scores[np.ix_(order, order)]
            assert_array_equal(turned.agreement_.scores, scores)
            shares = fitted.source_contributions()
            assert_array_equal(turned.source_contributions(), shares[:, order])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", [{}, {"symmetric": False}, {"criterion": "kl"}])
def test_the_number_of_jobs_does_not_matter(options):
    views = blobs([40, 40, 40], 3, sep=3)[0]
    # of graphs there are most starts
    options = {"affinity": "nearest_neighbors", **options}
    one, two = (
        default_model(n_jobs=jobs, **options).fit(views=views) for jobs in (1, 2)
    )
    assert_same_fit(one, two)
    assert len(one.loss_curves_) == (2 if "criterion" in options else 5)
    for mine, theirs in zip(one.loss_curves_, two.loss_curves_, strict=True):
        assert_array_equal(mine, theirs)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("symmetric", [True, False])
def test_storage_does_not_matter(symmetric):
    sources, y = four_sources()
    expected = default_model(symmetric=symmetric).fit(sources)
    assert adjusted_rand_score(y, expected.labels_) > 0.9
    for storage in STORAGES.values():
        fitted = default_model(symmetric=symmetric).fit(storage(sources))
        assert_array_equal(fitted.labels_, expected.labels_)
        assert_array_equal(fitted.weights_, expected.weights_)
        assert_allclose(fitted.source_losses_, expected.source_losses_, atol=1e-3)
        assert_allclose(
            fitted.agreement_.scores, expected.agreement_.scores, rtol=1e-4, atol=1e-3
        )
        new = storage([S[:9] for S in sources])
        assert_allclose(
            fitted.transform(new),
            expected.transform([S[:9] for S in sources]),
            atol=0.02,
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("factor", [2.0**10, 2.0**-600, 7e3])
def test_the_scale_of_a_source_does_not_matter(factor):
    sources, _ = four_sources()
    expected = default_model().fit(sources)
    fitted = default_model().fit([factor * sources[0], *sources[1:]])
    assert_allclose(fitted.weights_, expected.weights_)
    assert_allclose(fitted.source_losses_, expected.source_losses_, atol=1e-4)
    assert_array_equal(fitted.labels_, expected.labels_)
    new = [S[:9] for S in sources]
    scaled = [factor * new[0], *new[1:]]
    assert_allclose(fitted.transform(scaled), expected.transform(new), atol=1e-3)


def test_equal_objects_are_in_one_cluster():
    sources, _ = four_sources()
    twice = np.repeat(np.arange(43), 2)
    fitted = default_model().fit([S[np.ix_(twice, twice)] for S in sources])
    assert_array_equal(fitted.membership_[::2], fitted.membership_[1::2])
    assert_array_equal(fitted.labels_[::2], fitted.labels_[1::2])


def test_nothing_in_a_fit_is_random():
    sources, _ = four_sources()
    first = default_model(random_state=None).fit(sources)
    assert_same_fit(first, default_model(random_state=7).fit(sources))
    labels = default_model().fit_predict(SimilarityStack(sources))
    assert_array_equal(labels, first.labels_)
    copy = pickle.loads(pickle.dumps(first))
    assert_same_fit(copy, first)
    assert_array_equal(copy.transform(sources), first.transform(sources))


FORMS = {
    "tuple as X": lambda S: (tuple(S), None),
    "array": lambda S: (np.stack(S, axis=-1), None),
    "nested lists": lambda S: (np.stack(S, axis=-1).tolist(), None),
    "stack": lambda S: (SimilarityStack(S), None),
    "similarities": lambda S: (None, S),
    "similarities, lists": lambda S: (None, [s.tolist() for s in S]),
    "similarities, array": lambda S: (None, np.stack(S, axis=-1)),
    "data frames": lambda S: ([pd.DataFrame(S[0]), pl.DataFrame(S[1]), *S[2:]], None),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_sources_has_the_same_answer(form):
    sources, _ = four_sources()
    expected = default_model().fit(sources)
    X, similarities = FORMS[form](sources)
    fitted = default_model().fit(X, similarities=similarities)
    assert_same_fit(fitted, expected)
    assert fitted.n_features_in_ == 43
    if "lists" not in form:  # of lists nobody can tell where the sources are
        predicted = fitted.transform(X if similarities is None else similarities)
        assert_array_equal(predicted, expected.transform(sources))


def test_every_form_of_one_source_has_the_same_answer():
    (source, *_), _ = problem(cut=0.2)
    expected = default_model().fit([source])
    for form in (
        np.asarray,
        sp.csc_matrix,
        sp.lil_array,
        pd.DataFrame,
        np.ndarray.tolist,
    ):
        fitted = default_model().fit(form(source))
        assert_allclose(fitted.membership_, expected.membership_, atol=1e-5)
        assert_allclose(
            fitted.transform(form(source)), expected.transform([source]), atol=1e-5
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("max_samples", "symmetric", "criterion"),
    [(None, True, "agreement"), (30, False, "agreement"), (30, False, "kl")],
)
def test_what_was_handed_in_is_not_written_to(max_samples, symmetric, criterion):
    sources, _ = problem(cut=0.2)
    handed = [
        sources[0].copy(),
        sp.csr_array(sources[1]),
        np.asfortranarray(sources[2]),
    ]
    for array in [
        handed[0],
        handed[2],
        handed[1].data,
        handed[1].indices,
        handed[1].indptr,
    ]:
        array.flags.writeable = False
    options = {
        "max_samples": max_samples,
        "symmetric": symmetric,
        "criterion": criterion,
    }
    options["eta"] = np.inf
    fitted = model(**options).fit(None, similarities=handed)
    fitted.predict(handed)
    block = np.stack(sources, axis=-1)
    block.flags.writeable = False
    assert_array_equal(model(**options).fit(block).labels_, fitted.labels_)
    assert_array_equal(handed[0], sources[0])
    assert_array_equal(handed[1].toarray(), sources[1])
    assert_array_equal(block, np.stack(sources, axis=-1))


# --- eta -----------------------------------------------------------------------------------------


def two_of_three(symmetric):
    """Return three kernels that agree, of which each tells less than the one before."""
    (a, b, c), y = blobs([50, 40, 30], 3, sep=5)
    views = (a, b + 0.8 * np.roll(b, 1, axis=0), c + 1.2 * np.roll(c, 7, axis=0))
    sources = [rbf_kernel(v, gamma=0.1) for v in views]
    return (sources if symmetric else [S[:, ::2] for S in sources]), y


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("eta", "symmetric"),
    [
        (0.03, True),
        (0.03, False),
        (0.1, True),
        (0.3, False),
        (1.0, True),
        (30.0, False),
    ],
)
def test_weights_follow_the_losses_at_every_eta(eta, symmetric):
    sources, y = two_of_three(symmetric)
    fitted = default_model(eta=eta, symmetric=symmetric).fit(SimilarityStack(sources))
    losses, weights = fitted.source_losses_, fitted.weights_
    assert fitted.counted_.all()
    assert losses[0] < losses[1] < losses[2]
    # not one value of eta is without effect
    assert weights[0] > weights[1] > weights[2]
    shares = np.exp(-(losses - losses.min()) / eta)
    assert_allclose(weights, shares / shares.sum(), atol=1e-3)
    assert adjusted_rand_score(y, fitted.labels_) > 0.9


def test_weights_at_the_ends_of_eta():
    sources, _ = two_of_three(True)
    assert_array_equal(default_model(eta=0).fit(sources).weights_, [1, 0, 0])
    even = default_model(eta=np.inf).fit(sources)
    assert_allclose(even.weights_, 1 / 3)
    assert_same_fit(even, default_model().fit(sources))
