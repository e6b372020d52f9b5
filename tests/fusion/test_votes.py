"""Which sources count: those that agree; and what is said where that is not known."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from fusion.shared import blobs
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import SimilarityFusionNMF, SimilarityStack
from nmfcluster.fusion.agreement_graph import (
    candidate_groups,
    check_connected,
    read_source_weights,
    vote_shares,
)
from nmfcluster.fusion.residuals import Agreement

NOBODY = "No two sources agree by more than chance"


def pairs_of(n, pairs):
    """Return a matrix that is true for pairs, and of every source with itself."""
    found = np.eye(n, dtype=bool)
    for i, j in pairs:
        found[i, j] = found[j, i] = True
    return found


def masks(n, *groups):
    return [[i in group for i in range(n)] for group in groups]


def test_copies_share_one_vote():
    same = pairs_of(5, [(0, 3), (3, 4)])
    assert_allclose(vote_shares(same), [1 / 3, 1, 1, 1 / 3, 1 / 3])


@pytest.mark.parametrize(
    ("n", "agree", "copies", "told", "options"),
    [
        (3, [(0, 1), (1, 2)], [], None, [{0, 1, 2}]),  # by a chain
        (4, [(1, 3)], [], None, [{1, 3}]),
        (5, [(0, 1), (1, 4), (2, 3)], [], None, [{0, 1, 4}]),  # the largest group
        (4, [(0, 2), (1, 3)], [], None, [{0, 2}, {1, 3}, {0, 1, 2, 3}]),
        (2, [], [], None, [{0}, {1}, {0, 1}]),  # nobody
        # a source and its copy are one
        (3, [], [(0, 2)], None, [{0, 2}, {1}, {0, 1, 2}]),
        (4, [(2, 3)], [(0, 1)], None, [{2, 3}]),
        # what says nothing is no candidate
        (3, [(0, 1)], [], {0, 2}, [{0}, {2}, {0, 2}]),
        (3, [], [], {1}, [{1}]),
        (1, [], [], None, [{0}]),
    ],
)
def test_who_can_count(n, agree, copies, told, options):
    told = np.isin(range(n), list(range(n) if told is None else told))
    scores = np.where(pairs_of(n, [*agree, *copies]), 8.0, 1.5)
    found = candidate_groups(Agreement(np.eye(n), scores), pairs_of(n, copies), told)
    assert_array_equal(found, masks(n, *options))


# --- in a fit ------------------------------------------------------------------------------------


def told_by(fit):
    """Return what a fit returns, and the warnings that it gave."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        fitted = fit()
    return fitted, [str(one.message) for one in told]


def noise(n, width, seed=9):
    return np.random.default_rng(seed).normal(size=(n, width))


def test_sources_that_agree_count_alike_and_others_not_at_all():
    (a, b), y = blobs([40, 30, 20], 2, sep=5)
    constant = 1 + 0.05 * np.random.default_rng(0).uniform(size=(90, 90))
    sources = [rbf_kernel(v, gamma=0.1) for v in (noise(90, 4), a, noise(90, 1, 8), b)]
    fitted, told = told_by(
        lambda: SimilarityFusionNMF(3).fit(
            similarities=[*sources, constant + constant.T]
        )
    )
    assert not told
    assert_array_equal(fitted.weights_, [0, 0.5, 0, 0.5, 0])
    assert_array_equal(fitted.counted_, [False, True, False, True, False])
    assert fitted.agreement_.scores[1, 3] > 10
    assert_array_equal(
        fitted.agreement_.scores > 5,
        np.outer(fitted.counted_, fitted.counted_) & ~np.eye(5, dtype=bool),
    )
    assert adjusted_rand_score(y, fitted.labels_) > 0.95
    assert (fitted.source_losses_[~fitted.counted_] > 0.95).all()
    alone = SimilarityFusionNMF(3).fit(similarities=[sources[1], sources[3]])
    assert_array_equal(fitted.membership_, alone.membership_)  # to the bit
    assert fitted.loss_ == alone.loss_


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sizes", [(300, 50, 20), (150, 20, 20)], ids=str)
@pytest.mark.parametrize("width", [1, 4])
def test_of_one_real_source_and_noise_the_real_one_is_taken_with_a_warning(
    sizes, width
):
    (a,), y = blobs(sizes, 1, sep=20, width=5)
    views = {"noise": noise(len(y), width), "a": a}
    fitted, told = told_by(lambda: SimilarityFusionNMF(3).fit(views))
    assert adjusted_rand_score(y, fitted.labels_) > 0.99
    assert_array_equal(fitted.weights_, [0, 1])
    assert len(told) == 1
    assert told[0].startswith(NOBODY)
    assert "['a']" in told[0]
    (a, b), y = blobs(sizes, 2, sep=20, width=5)
    fitted, told = told_by(
        lambda: SimilarityFusionNMF(3).fit({"a": a, "noise": views["noise"], "b": b})
    )
    assert not told
    assert adjusted_rand_score(y, fitted.labels_) > 0.99


def test_outliers_that_stand_out_do_not_make_a_source_count():
    (a,), y = blobs([150, 150], 1, sep=4, width=8)
    views = [a, noise(300, 8), noise(300, 8, 7)]
    for i, view in enumerate(views):
        view[i::20] *= 8
    fitted, told = told_by(lambda: SimilarityFusionNMF(2).fit(views=views))
    assert_allclose(fitted.weights_, 1 / 3)
    assert adjusted_rand_score(y, fitted.labels_) > 0.6
    assert "may be outliers" in told[0]


def test_one_cluster_has_no_vectors_to_agree_with(recwarn):
    fitted = SimilarityFusionNMF(1).fit(views=[noise(30, 2, seed) for seed in range(3)])
    assert not fitted.labels_.any()
    assert not [told for told in recwarn if told.category is RuntimeWarning]


def test_two_independent_views_whose_product_are_the_clusters():
    y = np.random.default_rng(0).permutation(np.arange(200) % 4)
    rng = np.random.default_rng(1)
    views = {
        name: 6 * part[:, None] + rng.normal(size=(200, 3))
        for name, part in (("rows", y // 2), ("columns", y % 2))
    }
    fitted, told = told_by(lambda: SimilarityFusionNMF(4, affinity="rbf").fit(views))
    assert adjusted_rand_score(y, fitted.labels_) > 0.95
    assert_allclose(fitted.weights_, 0.5)
    assert told[0].startswith(NOBODY)
    assert "['rows', 'columns']" in told[0]


def test_a_lone_source_is_outvoted_unless_the_user_trusts_it():
    (a, b), y = blobs([50, 50], 2, sep=3)
    (lone,), other = blobs([30, 70], 1, sep=20, seed=5)
    views = {"a": a, "lone": lone, "b": b}
    fitted, told = told_by(lambda: SimilarityFusionNMF(2).fit(views))
    assert not told
    assert_array_equal(fitted.weights_, [0.5, 0, 0.5])
    assert adjusted_rand_score(y, fitted.labels_) > 0.8
    trusted = SimilarityFusionNMF(2, weights={"lone": 3}).fit(views)
    assert_array_equal(trusted.weights_, [0, 1, 0])
    assert adjusted_rand_score(other, trusted.labels_) == 1


def test_groups_that_do_not_agree():
    (a, b, c), y = blobs([50, 50], 3, sep=2)
    (d, e), other = blobs([60, 40], 2, sep=20, seed=5)
    made = SimilarityFusionNMF(2, affinity="rbf")
    fitted, told = told_by(lambda: made.fit({"d": d, "a": a, "b": b, "e": e, "c": c}))
    assert not told
    assert_array_equal(fitted.counted_, [False, True, True, False, True])
    assert adjusted_rand_score(y, fitted.labels_) > 0.8
    fitted, told = told_by(lambda: made.fit({"a": a, "d": d, "b": b, "e": e}))
    assert len(told) == 1
    assert (
        "fall into groups that do not agree with each other, and none is the largest"
        in told[0]
    )
    assert "['d', 'e']" in told[0]  # whose clusters are more distinct
    assert adjusted_rand_score(other, fitted.labels_) == 1


def test_near_copies_have_one_vote_together_and_are_named():
    (a, b), y = blobs([50, 50], 2, sep=4)
    views = {
        "noise": noise(100, 2),
        "a": a,
        "b": b,
        "again": noise(100, 2) + 1e-3 * noise(100, 2, 7),
    }
    fitted, told = told_by(lambda: SimilarityFusionNMF(2, affinity="rbf").fit(views))
    assert len(told) == 1
    assert (
        "1 pair of sources are nearly equal, such as 'noise' and 'again', and share one"
        in told[0]
    )
    assert_array_equal(fitted.weights_, [0, 0.5, 0.5, 0])
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    views = {"a": a, "again": a * 2, "b": b}
    fitted, told = told_by(lambda: SimilarityFusionNMF(2, affinity="rbf").fit(views))
    assert "'a' and 'again'" in told[0]
    assert_allclose(fitted.weights_, [0.25, 0.25, 0.5])
    fitted, told = told_by(
        lambda: SimilarityFusionNMF(2, affinity="rbf").fit({"a": a, "again": a})
    )
    assert_allclose(fitted.weights_, 0.5)
    assert len(told) == 1  # nobody else could agree


@pytest.mark.sampled(2)
@pytest.mark.parametrize("affinity", ["rbf", "cosine", "nearest_neighbors"])
@pytest.mark.parametrize("sizes", [(50, 50), (40, 40, 30)], ids=str)
def test_views_of_the_same_clear_clusters_are_no_copies(affinity, sizes):
    """Inside of clusters they differ, however little there is."""
    (a, b), y = blobs(sizes, 2, sep=40)
    views = {"a": a, "noise": noise(len(y), 2), "b": b}
    fitted, told = told_by(
        lambda: SimilarityFusionNMF(len(sizes), affinity=affinity).fit(views)
    )
    assert not told
    assert_array_equal(fitted.weights_, [0.5, 0, 0.5])
    assert adjusted_rand_score(y, fitted.labels_) == 1


def test_a_source_that_says_nothing_is_no_candidate():
    (a,), y = blobs([50, 50], 1, sep=4)
    K = rbf_kernel(a)
    fitted, told = told_by(lambda: SimilarityFusionNMF(2).fit([np.ones((100, 100)), K]))
    assert not told
    assert_array_equal(fitted.weights_, [0, 1])
    assert adjusted_rand_score(y, fitted.labels_) > 0.9


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:SimilarityFusionNMF found 1 cluster")
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize(
    "S", [np.ones((20, 20)), np.eye(20)], ids=["constant", "identity"]
)
def test_where_no_source_says_anything_there_is_one_cluster(S, symmetric):
    fitted, told = told_by(
        lambda: SimilarityFusionNMF(2, symmetric=symmetric).fit([S, 3 * S])
    )
    assert told[0].startswith("No source is informative")
    assert_array_equal(fitted.labels_, 0)
    assert_allclose(fitted.membership_, 0.5)
    assert not fitted.counted_.any()
    assert_array_equal(fitted.weights_, 0.5)  # they sum to 1, whatever is said
    assert_array_equal(fitted.source_losses_, 1)
    assert_array_equal(fitted.source_contributions(), 0.5)
    assert_array_equal(fitted.predict(SimilarityStack([S, S])), -1)
    fitted, told = told_by(lambda: fitted.set_params(weights=[1, 0]).fit([S, S]))
    assert_array_equal(fitted.weights_, [1, 0])


# --- the user's own weights ----------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("eta", [np.inf, 0.3, 0])
@pytest.mark.parametrize("criterion", ["agreement", "kl"])
def test_weights_of_the_user(criterion, eta):
    (a, b), y = blobs([40, 30], 2, sep=5)
    sources = {
        "a": rbf_kernel(a),
        "noise": rbf_kernel(noise(70, 2)),
        "b": rbf_kernel(b),
    }
    made = SimilarityFusionNMF(2, criterion=criterion, eta=eta)
    fits = [
        made.set_params(weights=weights).fit(similarities=sources)
        and (made.weights_, made.labels_, made.source_losses_)
        for weights in (
            [3, 0, 1],
            {"b": 0.25, "a": 0.75},
            np.array([0.75, 0, 0.25], np.float32),
        )
    ]
    assert_allclose(
        read_source_weights([1e308, 0, 1e308], ("a", "noise", "b")), [0.5, 0, 0.5]
    )
    weights, labels, losses = fits[0]
    for other in fits[1:]:
        for one, same in zip(fits[0], other, strict=True):
            assert_array_equal(one, same)
    assert weights[1] == 0
    if eta == np.inf:
        assert_allclose(weights, [0.75, 0, 0.25])
    elif eta == 0:
        assert_array_equal(np.sort(weights), [0, 0, 1])
    else:  # they are factors of the best
        shares = np.array([0.75, 0, 0.25]) * np.exp(-losses / eta)
        assert_allclose(weights, shares / shares.sum(), atol=1e-3)
    if eta > 0:
        assert adjusted_rand_score(y, labels) > 0.9


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"c": 1}, ("weights", "'c'", "['a', 'b']")),
        (
            [1, 2, 3],
            ("weights", "['a', 'b']", "[1, 2, 3]"),
        ),
        ([[1, 2]], ("weights", "['a', 'b']")),
        (["x", "y"], ("weights", "['a', 'b']")),
        ([1, -1], ("weights", "[1, -1]")),
        ([1, np.nan], ("weights", "finite")),
        ([0, 0], ("weights", "0")),
        ({}, "weights"),
    ],
)
def test_weights_that_are_none(given, says):
    with raises_naming(ValueError, says):
        read_source_weights(given, ("a", "b"))
    (a, b), _ = blobs([20, 20], 2, sep=5)
    with raises_naming(ValueError, says):
        SimilarityFusionNMF(2, weights=given).fit({"a": a, "b": b})


# --- groups of objects that no source joins ------------------------------------------------------


def test_groups_of_objects_that_no_source_joins():
    seen = np.zeros((9, 3), dtype=bool)
    seen[:4, 0] = seen[3:6, 2] = seen[6:8, 1] = True  # the last one by none
    says = ("6 objects", "['a', 'c']", "2 objects", "['b']")
    with raises_naming(ValueError, says):
        check_connected(seen, ("a", "b", "c"))
    seen[5, 1] = True
    check_connected(seen, ("a", "b", "c"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", [60, 3], ids=["halves", "a tiny group"])
@pytest.mark.parametrize(
    "form", ["arrays", "similarities", "sparse", "frames", "landmarks"]
)
def test_no_form_of_the_data_lets_such_groups_pass(form, first):
    (a, b, c, d), _ = blobs([50, 40, 30], 4, sep=5)
    early, late = np.arange(120) < first, np.arange(120) >= first
    rows = {"a": early, "b": early, "c": late, "d": late}
    views = dict(zip(rows, (a, b, c, d), strict=True))
    names = np.array([f"p{i}" for i in range(120)])
    options = {}
    if form == "frames":
        given = {
            name: pd.DataFrame(view[rows[name]], index=names[rows[name]])
            for name, view in views.items()
        }
        options["affinity"] = "rbf"
    elif form == "arrays":
        given = {
            name: np.where(rows[name][:, None], view, np.nan)
            for name, view in views.items()
        }
        options["affinity"] = "rbf"
    else:
        kernels = {name: rbf_kernel(view, gamma=0.1) for name, view in views.items()}
        lost = np.nan if form == "similarities" else 0.0
        given = {
            name: np.where(np.outer(rows[name], rows[name]), K, lost)
            for name, K in kernels.items()
        }
        if form == "sparse":
            given = {name: sp.csr_array(K) for name, K in given.items()}
        if form == "landmarks":
            options["symmetric"] = False
        given = list(given.values())
    says = "groups", f"{first} objects"
    with raises_naming(ValueError, says):
        SimilarityFusionNMF(3, **options).fit(given)
