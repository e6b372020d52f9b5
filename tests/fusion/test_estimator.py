"""SimilarityFusionNMF as its users meet it, against formulas written out."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

import nmfcluster.fusion
from nmfcluster import SimilarityFusionNMF, SimilarityStack

ETAS = [0, 0.05, 1.0, np.inf]
CRITERIA = ["kl", "cross_entropy"]
CONVERGED = {"tol": -1.0, "max_iter": 600}  # as far as floating point lets it


def problem(seed=0, cut=0.0):
    """Draw three kernels, which tell three clusters of unequal size well, in part and not at all.

    Entries below `cut` are 0.
    """
    rng = np.random.RandomState(seed)
    y = rng.permutation(np.repeat([2, 0, 1], [20, 14, 9]))
    clear = 4 * np.eye(3)[y] + rng.normal(size=(43, 3))
    dim = 3 * (y == 0)[:, None] + rng.normal(size=(43, 2))
    noise = rng.normal(size=(43, 2))
    widths = {0.03: clear, 0.1: dim, 0.3: noise}
    kernels = [rbf_kernel(view, gamma=gamma) for gamma, view in widths.items()]
    return [np.where(kernel < cut, 0, kernel) for kernel in kernels], y


def model(**parameters):
    return SimilarityFusionNMF(
        **{"n_clusters": 3, "eta": 0.1, "n_init": 2, "tol": 1e-6, "random_state": 0} | parameters
    )


def scaled(sources):
    return [source / source.sum() for source in sources]


def literal_losses(sources, M, criterion):
    """Return the losses of sources under a model M of the pairs, (n, n): term by term."""
    found = []
    for P in scaled(sources):
        loss = 0.0
        for i, j in zip(*np.nonzero(P), strict=True):
            loss += P[i, j] * (np.log(P[i, j]) * (criterion == "kl") - np.log(M[i, j]))
        found.append(loss)
    return found


def joint_of(fitted, sources):
    """Return the model's h_i q, from memberships and the row sums that EM keeps."""
    mean = sum(w * P for w, P in zip(fitted.weights_, scaled(sources), strict=True))
    return fitted.membership_ * mean.sum(axis=1)[:, None]


@pytest.fixture
def found(monkeypatch):
    """Return the list of what the private solver returned."""
    kept = []

    def spy(*given, inner=nmfcluster.fusion.fuse):
        kept.append(inner(*given))
        return kept[-1]

    monkeypatch.setattr(nmfcluster.fusion, "fuse", spy)
    return kept


# --- what a fit returns --------------------------------------------------------------------------


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("eta", ETAS)
def test_weights_and_loss_are_those_of_the_source_losses(eta, criterion, symmetric):
    sources, _ = problem()
    fitted = model(eta=eta, criterion=criterion, symmetric=symmetric).fit(
        None, similarities=sources
    )
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
    assert fitted.eta_ == eta
    assert fitted.source_names_ == ("source0", "source1", "source2")
    for curve in fitted.loss_curves_:
        assert (np.diff(curve) <= 0).all()
        assert curve[-1] >= fitted.loss_
    assert len(fitted.loss_curves_) == 2


@pytest.mark.filterwarnings("ignore:.*did not converge")
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("eta", ETAS)
def test_source_losses_are_those_of_the_memberships(eta, criterion):
    sources, _ = problem()
    fitted = model(eta=eta, criterion=criterion, **CONVERGED).fit(np.stack(sources, axis=-1))
    joint = joint_of(fitted, sources)
    q = joint.sum(axis=0)
    assert_allclose(fitted.core_, np.diag(q), atol=1e-6)
    assert_allclose(fitted.core_.sum(), 1, rtol=1e-12)
    expected = literal_losses(sources, joint / q @ joint.T, criterion)
    assert_allclose(fitted.source_losses_, expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_one_update_with_equal_weights_keeps_the_row_sums_exactly(found, criterion, symmetric):
    """Then memberships, core and losses follow from the factors without any convergence."""
    sources, _ = problem(cut=0.2)
    fitted = model(eta=np.inf, criterion=criterion, symmetric=symmetric, max_iter=1)
    with pytest.warns(UserWarning, match="did not converge"):
        fitted.fit(None, similarities=sources)
    W, V = found[0].best.factors[0][0], found[0].best.factors[0][-1]
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
    kl, paper = (model(eta=np.inf, criterion=one).fit(sources) for one in CRITERIA)
    entropies = [-(P * np.log(P)).sum() for P in scaled(sources)]
    assert_allclose(paper.source_losses_ - kl.source_losses_, entropies, rtol=1e-10)
    assert_allclose(paper.membership_, kl.membership_, rtol=1e-6)


@pytest.mark.parametrize("perplexity", [1, 1.01, 1.5, 2.5, 2.999, 3])
def test_perplexity_is_that_of_the_weights(perplexity):
    fitted = model(perplexity=perplexity, eta=7.0).fit(problem()[0])
    weights, c = fitted.weights_, fitted.source_losses_
    positive = weights[weights > 0]
    assert_allclose(np.exp(-positive @ np.log(positive)), perplexity, rtol=1e-6)
    assert_allclose(fitted.loss_, weights @ c, rtol=1e-12)
    assert (np.diff(fitted.loss_curve_) <= 0).all()
    if perplexity == 3:
        assert fitted.eta_ == np.inf
    elif perplexity > 1:
        assert_allclose(weights, np.exp(-c / fitted.eta_ - logsumexp(-c / fitted.eta_)), rtol=1e-9)
    else:
        assert_array_equal(weights, np.eye(3)[c.argmin()])


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
    given = model(symmetric=symmetric).fit(sources)
    turned = model(symmetric=symmetric).fit([sources[i] for i in (2, 0, 1)])
    assert_allclose(turned.weights_, given.weights_[[2, 0, 1]], rtol=1e-4)
    assert_allclose(turned.source_losses_, given.source_losses_[[2, 0, 1]], rtol=1e-4)
    assert_array_equal(turned.labels_, given.labels_)


@pytest.mark.parametrize(("factor", "rtol"), [(2.0**10, 0), (2.0**-600, 0), (1e3, 1e-3)])
def test_scale_of_a_source_does_not_matter(factor, rtol):
    sources, _ = problem()
    given = model().fit(sources)
    other = model().fit([sources[0] * factor, *sources[1:]])
    assert_allclose(other.weights_, given.weights_, rtol=rtol)
    assert_allclose(other.source_losses_, given.source_losses_, rtol=rtol)
    assert_allclose(other.membership_, given.membership_, atol=10 * rtol)
    new = np.stack([sources[0] * factor, *sources[1:]], axis=-1)[:5]
    assert_allclose(other.transform(new), given.transform(np.stack(sources, axis=-1)[:5]),
                    atol=10 * rtol)  # fmt: skip


def test_order_of_the_objects_does_not_matter():
    sources, _ = problem()
    order = np.random.RandomState(1).permutation(43)
    given = model(n_init=1).fit(sources)
    turned = model(n_init=1).fit([source[np.ix_(order, order)] for source in sources])
    assert_array_equal(turned.labels_, given.labels_[order])
    assert_allclose(turned.weights_, given.weights_, rtol=1e-4)


@pytest.mark.parametrize("eta", [0.1, 1.0])
def test_copies_of_a_source_share_its_weight(eta):
    sources, _ = problem()
    fitted = model(eta=eta).fit([*sources, sources[0]])
    assert fitted.weights_[0] == fitted.weights_[3] > 0
    assert fitted.source_losses_[0] == fitted.source_losses_[3]


FORMS = {
    "list as X": lambda S: (S, None),
    "tuple as X": lambda S: (tuple(S), None),
    "array": lambda S: (np.stack(S, axis=-1), None),
    "nested lists": lambda S: (np.stack(S, axis=-1).tolist(), None),
    "stack": lambda S: (SimilarityStack(S), None),
    "sparse stack": lambda S: (SimilarityStack([sp.csr_array(s) for s in S]), None),
    "similarities": lambda S: (None, S),
    "similarities, X for its length": lambda S: (np.zeros((43, 2)), S),
    "similarities, lists": lambda S: (None, [s.tolist() for s in S]),
    "similarities, stack": lambda S: (None, SimilarityStack(S)),
    "similarities, array": lambda S: (None, np.stack(S, axis=-1)),
    "sparse": lambda S: (None, [sp.csr_array(s) for s in S]),
    "other sparse": lambda S: (None, [sp.csc_matrix(S[0]), sp.coo_array(S[1]), sp.lil_array(S[2])]),
    "mixed": lambda S: ([S[0], sp.csr_matrix(S[1]), S[2]], None),
    "data frames": lambda S: ([pd.DataFrame(S[0]), pl.DataFrame(S[1]), S[2]], None),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_sources_has_the_same_answer(form):
    sources, _ = problem(cut=0.2)
    expected = model().fit(None, similarities=sources)
    X, similarities = FORMS[form](sources)
    fitted = model().fit(X, similarities=similarities)
    assert_array_equal(fitted.labels_, expected.labels_)
    assert_allclose(fitted.weights_, expected.weights_, rtol=1e-6)
    assert_allclose(fitted.membership_, expected.membership_, atol=1e-5)
    assert fitted.n_features_in_ == 43
    if "lists" not in form:  # of lists nobody can tell where the sources are
        predicted = fitted.transform(X if similarities is None else similarities)
        assert_allclose(predicted, expected.transform(sources), atol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame, np.ndarray.tolist])
def test_every_form_of_one_source_has_the_same_answer(form):
    (source, *_), _ = problem(cut=0.2)
    expected, fitted = model().fit([source]), model().fit(form(source))
    assert_allclose(fitted.membership_, expected.membership_, atol=1e-6)
    assert_allclose(fitted.transform(form(source)), expected.transform([source]), atol=1e-6)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_float32_stays_float32(storage):
    sources, _ = problem(cut=0.2)
    full = model().fit([storage(source) for source in sources])
    half = [storage(source.astype(np.float32)) for source in sources]
    fitted = model().fit(half)
    assert fitted.membership_.dtype == fitted.transform(half).dtype == np.float32
    assert full.membership_.dtype == full.transform(sources).dtype == np.float64
    assert fitted.weights_.dtype == fitted.source_losses_.dtype == np.float64
    assert_array_equal(fitted.labels_, full.labels_)
    assert_allclose(fitted.weights_, full.weights_, rtol=3e-2)
    assert_allclose(fitted.source_losses_, full.source_losses_, rtol=1e-2)


@pytest.mark.parametrize("max_samples", [None, 30])
@pytest.mark.parametrize("symmetric", [True, False])
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


# --- new objects ---------------------------------------------------------------------------------


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


@pytest.mark.parametrize("max_samples", [None, 25])
@pytest.mark.parametrize("options", [{}, {"symmetric": False}, {"criterion": "cross_entropy"}])
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
    fitted = model().fit(sources)
    assert np.mean(fitted.predict(sources) == fitted.labels_) > 0.9


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_new_objects_that_a_source_has_not_seen(storage):
    sources, _ = problem()
    fitted = model().fit(sources)
    whole = np.stack(sources, axis=-1)[:4]
    lost, zero = whole.copy(), whole.copy()
    lost[1, :, 0], zero[1, :, 0] = np.nan, 0
    lost[2], zero[2] = np.nan, 0
    given = [storage(lost[:, :, s]) for s in range(3)]
    assert_allclose(fitted.transform(given), fitted.transform(zero), rtol=1e-12)
    assert fitted.predict(given)[2] == -1
    assert_allclose(fitted.transform(given)[[0, 3]], fitted.transform(whole)[[0, 3]], rtol=1e-12)


def test_rows_are_placed_on_their_own():
    sources, _ = problem()
    fitted = model().fit(sources)
    whole = fitted.transform(sources)
    alone = [fitted.transform([source[[o]] for source in sources])[0] for o in range(43)]
    assert_allclose(alone, whole, rtol=1e-12)


# --- objects that nothing is known of ------------------------------------------------------------


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("options", [{}, {"symmetric": False}, {"eta": 0}])
def test_objects_similar_to_none_are_in_no_cluster(storage, options):
    sources, _ = problem()
    alone, others = [3, 17], np.delete(np.arange(43), [3, 17])
    for source in sources:
        source[alone] = source[:, alone] = 0
    with pytest.warns(UserWarning, match="Nothing tells the cluster of 2 objects") as caught:
        fitted = model(**options).fit(None, similarities=[storage(source) for source in sources])
    assert re.match(r".*test_fusion\.py$", caught[0].filename)
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
    with pytest.warns(UserWarning, match="Nothing tells the cluster of 1 objects"):
        fitted = model().fit(sources[0])
    new = np.zeros((1, 43))
    new[0, 3] = 1
    assert_array_equal(fitted.predict(new), [-1])
    assert_array_equal(fitted.transform(new), np.full((1, 3), 1 / 3))


# --- scikit-learn --------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_outputs_are_named_after_the_class(library):
    sources, _ = problem()
    fitted = model().fit(sources)
    names = [f"similarityfusionnmf{c}" for c in range(3)]
    assert list(fitted.get_feature_names_out()) == names
    framed = fitted.set_output(transform=library).transform(SimilarityStack(sources))
    assert list(framed.columns) == names
    assert isinstance(fitted.predict(sources), np.ndarray)


def test_names_and_index_of_a_data_frame_are_kept():
    sources, _ = problem()
    frame = pd.DataFrame(sources[0], columns=[f"c{i}" for i in range(43)], index=range(100, 143))
    fitted = model().set_output(transform="pandas").fit(frame)
    assert_array_equal(fitted.feature_names_in_, frame.columns)
    assert list(fitted.transform(frame[:2]).index) == [100, 101]
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(frame.iloc[:, ::-1])


def test_a_fit_that_fails_leaves_the_earlier_one():
    sources, _ = problem()
    fitted = model().fit(sources)
    before = {name: value for name, value in vars(fitted).items()}
    with pytest.raises(ValueError, match="negative"):
        fitted.fit([-sources[0], sources[1]])
    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[name] is value for name, value in before.items())


def test_a_second_fit_forgets_the_first():
    sources, _ = problem()
    X = np.random.RandomState(0).normal(size=(30, 4))
    again = model(affinity="rbf").fit(X).set_params(affinity="precomputed").fit(sources)
    fresh = model().fit(sources)
    assert_array_equal(again.predict(sources), fresh.predict(sources))
    assert vars(again).keys() == vars(fresh).keys()


def test_verbose_says_what_is_done(capsys):
    model(verbose=1).fit(problem()[0])
    said = capsys.readouterr().out
    assert "[SimilarityFusionNMF]" in said
    assert "43 objects, 3 source(s)" in said
    model().fit(problem()[0])
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("n", [30, 400])
def test_objects_that_are_similar_to_themselves_alone(n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how many clusters are found is left to chance
        fitted = SimilarityFusionNMF(2, random_state=0).fit(None, similarities=[np.eye(n)])
    assert np.isfinite(fitted.membership_).all()
    assert (fitted.labels_ >= 0).all()


def test_warnings_point_at_the_caller_of_fit():
    fitted = SimilarityFusionNMF(2, max_iter=1, tol=0)
    with pytest.warns(ConvergenceWarning) as caught:
        fitted.fit(None, similarities=[rbf_kernel(np.arange(9.0)[:, None])])
    assert {warning.filename for warning in caught} == {__file__}


def test_fit_transform_takes_similarities_too():
    sources = [rbf_kernel(np.arange(9.0)[:, None]), np.eye(9) + 0.1]
    fitted = SimilarityFusionNMF(2, random_state=0)
    found = fitted.fit_transform(None, similarities=sources)
    assert_array_equal(found, fitted.transform(sources))
    assert_array_equal(found, fitted.fit_transform(SimilarityStack(sources)))


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


def test_sources_of_new_objects_have_the_names_and_order_of_fit():
    sources, _ = problem()
    fitted = model().fit(SimilarityStack(sources, names=["a", "b", "c"]))
    whole = fitted.transform(SimilarityStack(sources, names=["a", "b", "c"]))
    assert_array_equal(fitted.transform(sources), whole)  # without names they go by their order
    with pytest.raises(ValueError, match=r"X must have the sources of fit, in their order, .*'c'"):
        fitted.predict(SimilarityStack(sources[::-1], names=["c", "b", "a"]))


def test_all_samples_are_the_full_fit():
    sources, _ = problem()
    full = model().fit(sources)
    for size in (len(sources[0]), 1.0):
        fitted = model(max_samples=size).fit(sources)
        assert_array_equal(fitted.membership_, full.membership_)


@pytest.mark.parametrize("given", [lambda S: S[0], np.dstack, SimilarityStack])
def test_similarities_are_given_in_one_place(given):
    sources, _ = problem()
    with pytest.raises(ValueError, match="X must be None, or hold features, got similarities"):
        model().fit(given(sources), similarities=sources)


def test_similarities_whose_sums_overflow_are_refused():
    sources, _ = problem()
    fitted = model().fit(sources)
    huge = [np.full((2, len(source)), 1e308) for source in sources]
    with pytest.raises(ValueError, match="X must not hold similarities whose sums are too large"):
        fitted.predict(huge)
