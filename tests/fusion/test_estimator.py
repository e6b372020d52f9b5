"""SimilarityFusionNMF as its users meet it, against formulas written out."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from fusion.shared import PRINTED, fitted_model, model, problem, record_fusions, scaled
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.metrics import adjusted_rand_score

from nmfcluster import SimilarityStack

ETAS = [0, 0.05, 1.0, np.inf]
CONVERGED = {"tol": -1.0, "max_iter": 400, "n_init": 1}  # as far as floating point lets it


def literal_losses(sources, M, criterion):
    """Return the losses of sources under a model M of the pairs, (n, n): term by term."""
    losses = []
    for P in scaled(sources):
        loss = 0.0
        for i, j in zip(*np.nonzero(P), strict=True):
            loss += P[i, j] * (np.log(P[i, j]) * (criterion == "kl") - np.log(M[i, j]))
        losses.append(loss)
    return losses


def joint_of(fitted, sources):
    """Return the model's h_i q, from memberships and the row sums that EM keeps."""
    mean = sum(w * P for w, P in zip(fitted.weights_, scaled(sources), strict=True))
    return fitted.membership_ * mean.sum(axis=1)[:, None]


# --- what a fit returns --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("criterion", "symmetric"), [("kl", True), ("kl", False), ("cross_entropy", True)]
)
@pytest.mark.parametrize("eta", ETAS)
def test_weights_and_loss_are_those_of_the_source_losses(eta, criterion, symmetric):
    fitted = model(eta=eta, criterion=criterion, symmetric=symmetric).fit(problem()[0])
    c, weights = fitted.source_losses_, fitted.weights_
    if eta == 0:
        expected, loss = np.eye(3)[c.argmin()], c.min()
    elif eta == np.inf:
        expected, loss = np.full(3, 1 / 3), c.mean()
    else:
        expected = np.exp(-c / eta - logsumexp(-c / eta))
        loss = -eta * (logsumexp(-c / eta) - np.log(3))
    assert_allclose(weights, expected, rtol=1e-10, atol=1e-300)
    assert_allclose(fitted.loss_, loss, rtol=1e-12, atol=1e-12)
    assert fitted.source_names_ == ("source0", "source1", "source2")
    for curve in fitted.loss_curves_:
        assert (np.diff(curve) <= 0).all()
        assert curve[-1] >= fitted.loss_
    assert len(fitted.loss_curves_) == 2


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize(
    ("criterion", "eta"), [("kl", 0), ("kl", 0.05), ("cross_entropy", 1.0), ("kl", np.inf)]
)
def test_source_losses_are_those_of_the_memberships(criterion, eta):
    sources, _ = problem()
    fitted = model(eta=eta, criterion=criterion, **CONVERGED).fit(np.stack(sources, axis=-1))
    joint = joint_of(fitted, sources)
    q = joint.sum(axis=0)
    assert_allclose(fitted.core_, np.diag(q), atol=1e-6)
    assert_allclose(fitted.core_.sum(), 1, rtol=1e-12)
    expected = literal_losses(sources, joint / q @ joint.T, criterion)
    assert_allclose(fitted.source_losses_, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(("criterion", "symmetric"), [("kl", True), ("cross_entropy", False)])
@pytest.mark.usefixtures("as_given")
def test_one_update_with_equal_weights_keeps_the_row_sums_exactly(
    monkeypatch, criterion, symmetric
):
    """Then memberships, core and losses follow from the factors without any convergence."""
    sources, _ = problem(cut=0.2)
    kept = record_fusions(monkeypatch)
    fitted = model(eta=np.inf, criterion=criterion, symmetric=symmetric, max_iter=1)
    with pytest.warns(UserWarning, match="did not converge"):
        fitted.fit(None, similarities=sources)
    W, V = kept[0].best.factors[0][0], kept[0].best.factors[0][-1]
    q = V.sum(axis=0)
    order = np.argsort(-np.bincount(V.argmax(axis=1), minlength=3), kind="stable")
    h_times_q = V[:, order]
    assert_allclose(joint_of(fitted, sources), h_times_q, rtol=1e-9)
    assert_allclose(fitted.membership_, h_times_q / h_times_q.sum(axis=1)[:, None], rtol=1e-12)
    assert_allclose(np.diagonal(fitted.core_), q[order], rtol=1e-12)
    expected = literal_losses(sources, W @ (V / q).T, criterion)
    assert_allclose(fitted.source_losses_, expected, rtol=1e-10)
    assert (abs(W - V).max() < 1e-15) == symmetric


def test_criteria_differ_by_the_entropy_of_the_sources():
    sources, _ = problem()
    kl, paper = (model(eta=np.inf, criterion=one).fit(sources) for one in PRINTED)
    entropies = [-(P * np.log(P)).sum() for P in scaled(sources)]
    assert_allclose(paper.source_losses_ - kl.source_losses_, entropies, rtol=1e-10)
    assert_allclose(paper.membership_, kl.membership_, rtol=1e-6)


def test_one_cluster_is_a_model_of_independent_objects():
    sources, _ = problem()
    fitted = model(n_clusters=1).fit(sources)
    r = joint_of(fitted, sources)
    assert_array_equal(fitted.labels_, 0)
    assert_allclose(fitted.membership_, np.ones((43, 1)))
    assert_allclose(fitted.core_, [[1.0]])
    assert_allclose(fitted.source_losses_, literal_losses(sources, r @ r.T, "kl"), rtol=1e-5)


def test_one_source_has_all_weight():
    sources, y = problem()
    fitted = [model(eta=eta).fit(sources[0]) for eta in ETAS]
    for one in fitted:
        assert_array_equal(one.weights_, [1.0])
        assert_array_equal(one.membership_, fitted[0].membership_)
        assert one.loss_ == one.source_losses_[0] == fitted[0].loss_
    assert adjusted_rand_score(y, fitted[0].labels_) > 0.9


# --- what must not matter ------------------------------------------------------------------------


@pytest.mark.parametrize("symmetric", [True, False])
def test_order_of_the_sources_does_not_matter(symmetric):
    sources, _ = problem()
    fitted = model(symmetric=symmetric).fit(sources)
    turned = model(symmetric=symmetric).fit([sources[i] for i in (2, 0, 1)])
    assert_allclose(turned.weights_, fitted.weights_[[2, 0, 1]], rtol=1e-3)
    assert_allclose(turned.source_losses_, fitted.source_losses_[[2, 0, 1]], rtol=1e-3)
    assert_array_equal(turned.labels_, fitted.labels_)


@pytest.mark.parametrize(("factor", "rtol"), [(2.0**10, 0), (2.0**-600, 0), (1e3, 1e-3)])
def test_scale_of_a_source_does_not_matter(factor, rtol):
    sources, _ = problem()
    fitted = fitted_model()
    other = model().fit([sources[0] * factor, *sources[1:]])
    assert_allclose(other.weights_, fitted.weights_, rtol=rtol)
    assert_allclose(other.source_losses_, fitted.source_losses_, rtol=rtol)
    assert_allclose(other.membership_, fitted.membership_, atol=10 * rtol)
    new = np.stack([sources[0] * factor, *sources[1:]], axis=-1)[:5]
    assert_allclose(other.transform(new), fitted.transform(np.stack(sources, axis=-1)[:5]),
                    atol=10 * rtol)  # fmt: skip


def test_order_of_the_objects_does_not_matter():
    sources, _ = problem()
    order = np.random.RandomState(1).permutation(43)
    fitted = model(n_init=1).fit(sources)
    turned = model(n_init=1).fit([source[np.ix_(order, order)] for source in sources])
    assert_array_equal(turned.labels_, fitted.labels_[order])
    assert_allclose(turned.weights_, fitted.weights_, rtol=1e-4)


@pytest.mark.parametrize("eta", [0.1, 1.0])
def test_copies_of_a_source_share_its_weight(eta):
    sources, _ = problem()
    fitted = model(eta=eta).fit([*sources, sources[0]])
    assert fitted.weights_[0] == fitted.weights_[3] > 0
    assert fitted.source_losses_[0] == fitted.source_losses_[3]


FORMS = {
    "tuple as X": lambda S: (tuple(S), None),
    "array": lambda S: (np.stack(S, axis=-1), None),
    "nested lists": lambda S: (np.stack(S, axis=-1).tolist(), None),
    "stack": lambda S: (SimilarityStack(S), None),
    "sparse stack": lambda S: (SimilarityStack([sp.csr_array(s) for s in S]), None),
    "similarities": lambda S: (None, S),
    "similarities, lists": lambda S: (None, [s.tolist() for s in S]),
    "similarities, array": lambda S: (None, np.stack(S, axis=-1)),
    "other sparse": lambda S: (None, [sp.csc_matrix(S[0]), sp.coo_array(S[1]), sp.lil_array(S[2])]),
    "mixed": lambda S: ([S[0], sp.csr_matrix(S[1]), S[2]], None),
    "data frames": lambda S: ([pd.DataFrame(S[0]), pl.DataFrame(S[1]), S[2]], None),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_sources_has_the_same_answer(form):
    sources, _ = problem(cut=0.2)
    expected = fitted_model(cut=0.2)
    X, similarities = FORMS[form](sources)
    fitted = model().fit(X, similarities=similarities)
    assert_array_equal(fitted.labels_, expected.labels_)
    assert_allclose(fitted.weights_, expected.weights_, rtol=1e-6)
    assert_allclose(fitted.membership_, expected.membership_, atol=1e-5)
    assert fitted.n_features_in_ == 43
    if "lists" not in form:  # of lists nobody can tell where the sources are
        predicted = fitted.transform(X if similarities is None else similarities)
        assert_allclose(predicted, expected.transform(sources), atol=1e-5)


def test_every_form_of_one_source_has_the_same_answer():
    (source, *_), _ = problem(cut=0.2)
    expected = model().fit([source])
    for form in (np.asarray, sp.csr_array, pd.DataFrame, np.ndarray.tolist):
        fitted = model().fit(form(source))
        assert_allclose(fitted.membership_, expected.membership_, atol=1e-6)
        assert_allclose(fitted.transform(form(source)), expected.transform([source]), atol=1e-6)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_float32_stays_float32(storage):
    """It makes of the same numbers what float64 does, after as many updates."""
    half = [storage(source.astype(np.float32)) for source in problem(cut=0.2)[0]]
    full = [source.astype(np.float64) for source in half]
    options = {"tol": -1.0, "max_iter": 12, "n_init": 1}
    of_half, of_full = model(**options).fit(half), model(**options).fit(full)
    assert of_half.membership_.dtype == of_half.transform(half).dtype == np.float32
    assert of_full.membership_.dtype == of_full.transform(full).dtype == np.float64
    assert of_half.weights_.dtype == of_half.source_losses_.dtype == np.float64
    assert_array_equal(of_half.labels_, of_full.labels_)
    assert_allclose(of_half.membership_, of_full.membership_, atol=1e-5)
    assert_allclose(of_half.weights_, of_full.weights_, rtol=1e-5)
    assert_allclose(of_half.source_losses_, of_full.source_losses_, rtol=1e-5)


@pytest.mark.parametrize(("max_samples", "symmetric"), [(None, True), (30, False)])
def test_what_was_handed_in_is_not_written_to(max_samples, symmetric):
    sources, _ = problem(cut=0.2)
    handed = [sources[0].copy(), sp.csr_array(sources[1]), np.asfortranarray(sources[2])]
    for array in [handed[0], handed[2], handed[1].data, handed[1].indices, handed[1].indptr]:
        array.flags.writeable = False
    fitted = model(max_samples=max_samples, symmetric=symmetric).fit(None, similarities=handed)
    fitted.predict(handed)
    block = np.stack(sources, axis=-1)
    block.flags.writeable = False
    assert_array_equal(
        model(max_samples=max_samples, symmetric=symmetric).fit(block).labels_, fitted.labels_
    )
    assert_array_equal(handed[0], sources[0])
    assert_array_equal(handed[1].toarray(), sources[1])
    assert_array_equal(block, np.stack(sources, axis=-1))
