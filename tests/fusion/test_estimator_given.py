"""SimilarityFusionNMF of sources as they are given, as in the paper, against formulas in loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from fusion.literal import dense, literal_divergence
from fusion.shared import PRINTED, model, problem, scaled
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import SimilarityFusionNMF, SimilarityStack

ETAS = [0, 0.05, 1.0, np.inf]
MODES = [
    *(("kl", True, eta) for eta in ETAS),
    *[("kl", False, 0.05), ("kl", False, np.inf), ("cross_entropy", True, 0.05)],
]


def literal_losses(sources, M, criterion):
    """Return the losses of sources under a model M of the pairs, (n, n): term by term."""
    losses = []
    for P in scaled(sources):
        entropy = -(P[P > 0] * np.log(P[P > 0])).sum()
        losses.append(
            literal_divergence(P, M) + (criterion == "cross_entropy") * entropy
        )
    return np.array(losses)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("criterion", "symmetric", "eta"), MODES)
@pytest.mark.usefixtures("as_given")
def test_a_fit_is_what_the_formulas_make_of_its_factor(
    eta, criterion, symmetric, fusions
):
    sources, _ = problem(cut=0.05)
    fitted = model(eta=eta, criterion=criterion, symmetric=symmetric).fit(sources)
    W, H = fitted._sources_.row_column_factors()
    W, H = W / W.sum(), H / H.sum(axis=0)
    q, M = W.sum(axis=0), W @ H.T
    losses, weights = literal_losses(sources, M, criterion), fitted.weights_
    assert_allclose(fitted.source_losses_, losses, rtol=1e-9)
    mean = sum(w * P for w, P in zip(weights, scaled(sources), strict=True))
    assert_allclose(fitted.loss_, literal_divergence(mean, M), rtol=1e-9)
    if eta == 0:
        assert_array_equal(weights, np.eye(3)[losses.argmin()])
    elif eta == np.inf:
        assert_allclose(weights, 1 / 3)
    else:
        shares = np.exp(-(losses - losses.min()) / eta)
        assert_allclose(weights, shares / shares.sum(), atol=1e-3)
    order = np.argsort(-np.bincount(W.argmax(axis=1), minlength=3), kind="stable")
    memberships = W[:, order] / W.sum(axis=1)[:, None]
    assert_allclose(fitted.membership_, memberships, rtol=1e-9)
    assert_array_equal(fitted.labels_, memberships.argmax(axis=1))
    assert_allclose(fitted.core_, np.diag(q[order]), atol=1e-6)
    assert fitted.source_names_ == ("source0", "source1", "source2")
    assert any(fitted._sources_.fusion is fusion for fusion in fusions)
    # weights and models are found in turn
    assert (len(fusions) == 1) == (eta == np.inf)
    for curve in fitted.loss_curves_:
        assert (np.diff(curve) <= 0).all()
        assert curve[-1] >= fitted.loss_
    assert not hasattr(fitted, "agreement_")


def test_criteria_differ_by_the_entropy_of_the_sources():
    sources, _ = problem()
    kl, paper = (model(eta=np.inf, criterion=one).fit(sources) for one in PRINTED)
    entropies = [-(P * np.log(P)).sum() for P in scaled(sources)]
    assert_allclose(paper.source_losses_ - kl.source_losses_, entropies, rtol=1e-10)
    assert_array_equal(paper.membership_, kl.membership_)


def test_one_cluster_is_a_model_of_independent_objects():
    sources, _ = problem()
    fitted = model(n_clusters=1).fit(sources)
    r = sum(
        w * P.sum(axis=1) for w, P in zip(fitted.weights_, scaled(sources), strict=True)
    )
    assert_array_equal(fitted.labels_, 0)
    assert_allclose(fitted.membership_, np.ones((43, 1)))
    assert_allclose(fitted.core_, [[1.0]])
    expected = literal_losses(sources, np.outer(r, r), "kl")
    assert_allclose(fitted.source_losses_, expected, rtol=1e-5)


def test_one_source_has_all_weight():
    (source, *_), y = problem()
    fitted = [model(eta=eta).fit(source) for eta in ETAS]
    for one in fitted:
        assert_array_equal(one.weights_, [1.0])
        assert_array_equal(one.membership_, fitted[0].membership_)
        assert_allclose([one.loss_, one.source_losses_[0]], fitted[0].loss_, rtol=1e-9)
    assert adjusted_rand_score(y, fitted[0].labels_) > 0.9


@pytest.mark.sampled(2)
@pytest.mark.usefixtures("as_given")
@pytest.mark.parametrize("factor", [2.0**10, 2.0**-600])
def test_scale_of_a_source_does_not_matter(factor):
    sources, _ = problem()
    made = model(tol=1e-2)
    one, other = (
        clone(made).fit([size * sources[0], *sources[1:]]) for size in (1, factor)
    )
    for name in ("weights_", "source_losses_", "membership_"):
        assert_array_equal(getattr(one, name), getattr(other, name))
    new = [source[:5] for source in sources]
    scaled_up = [new[0] * factor, *new[1:]]
    assert_allclose(other.transform(scaled_up), one.transform(new), rtol=1e-12)


@pytest.mark.parametrize("eta", [0.1, 1.0])
def test_copies_of_a_source_share_its_weight(eta):
    sources, _ = problem()
    fitted = model(eta=eta).fit([*sources, sources[0]])
    assert fitted.weights_[0] == fitted.weights_[3] > 0
    assert fitted.source_losses_[0] == fitted.source_losses_[3]


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_float32_stays_float32(storage):
    """It makes of the same numbers what float64 does, after as many updates."""
    half = [storage(source.astype(np.float32)) for source in problem(cut=0.2)[0]]
    full = [source.astype(np.float64) for source in half]
    options = {"tol": -1.0, "max_iter": 12, "n_init": 1, "eta": np.inf}
    of_half, of_full = model(**options).fit(half), model(**options).fit(full)
    assert of_half.membership_.dtype == of_half.transform(half).dtype == np.float32
    assert of_full.membership_.dtype == of_full.transform(full).dtype == np.float64
    assert of_half.weights_.dtype == of_half.source_losses_.dtype == np.float64
    assert_array_equal(of_half.labels_, of_full.labels_)
    assert_allclose(of_half.membership_, of_full.membership_, atol=1e-4)
    assert_allclose(of_half.source_losses_, of_full.source_losses_, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:SimilarityFusionNMF found 2 clusters")
def test_what_the_criteria_make_of_a_flat_source():
    """A model of nothing explains it at no cost in "kl"; in cross-entropy it costs the most."""
    rng = np.random.RandomState(0)
    y = rng.permutation(np.arange(60) % 3)
    X = 5 * np.eye(3)[y] + rng.normal(size=(60, 3))
    telling, flat = rbf_kernel(X, gamma=0.03), rbf_kernel(X, gamma=1e-5)
    kl, paper = (
        SimilarityFusionNMF(3, eta=0.01, criterion=criterion).fit([telling, flat])
        for criterion in PRINTED
    )
    assert kl.weights_[1] > 0.5
    assert kl.source_losses_[1] < 1e-4
    assert paper.weights_[0] > 0.99
    assert adjusted_rand_score(y, paper.labels_) == 1


@pytest.mark.parametrize("criterion", PRINTED)
def test_objects_that_are_missing_are_refused(criterion):
    sources, _ = problem()
    sources[1][3] = sources[1][:, 3] = np.nan
    landmarks = [source[:, 5:25] for source in sources]
    says = ("'source1'", "X", 'criterion="agreement"')
    for symmetric, given in ((True, sources), (False, landmarks)):
        with raises_naming(ValueError, says):
            model(criterion=criterion, symmetric=symmetric).fit(SimilarityStack(given))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("storage", "options"),
    [(np.asarray, {"eta": np.inf}), (sp.csr_array, {"eta": 0, "symmetric": False})],
)
def test_objects_similar_to_none_are_in_no_cluster(storage, options):
    sources, _ = problem()
    alone, others = [3, 17], np.delete(np.arange(43), [3, 17])
    for source in sources:
        source[alone] = source[:, alone] = 0
    with warns_naming(UserWarning, "2 objects") as caught:
        fitted = model(**options).fit(
            None, similarities=[storage(source) for source in sources]
        )
    assert caught[0].filename == __file__
    assert_array_equal(fitted.labels_[alone], -1)
    assert_allclose(fitted.membership_[alone], np.full((2, 3), 1 / 3))
    assert_array_equal(fitted.predict(sources)[alone], -1)
    without = model(**options).fit(
        [source[np.ix_(others, others)] for source in sources]
    )
    assert_allclose(fitted.loss_, without.loss_, rtol=1e-3, atol=1e-4)
    assert adjusted_rand_score(fitted.labels_[others], without.labels_) > 0.9


def test_a_mixture_is_sparse_if_all_sources_with_a_weight_are():
    sources, _ = problem(cut=0.2)
    stored = [sp.csr_array(sources[0]), sources[1], sp.csr_array(sources[2])]
    for weights, sparse in (([1, 1, 1], False), ([1, 0, 1], True)):
        fused = (
            model(eta=np.inf, weights=weights, tol=1e-2).fit(stored).fused_similarity()
        )
        assert sp.issparse(fused) == sparse
        P = sum(w * S for w, S in zip(weights, scaled(sources), strict=True))
        assert_allclose(dense(fused), 43 * P / P.sum(), rtol=1e-12)
