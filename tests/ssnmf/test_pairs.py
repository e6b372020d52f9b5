"""What a fit makes of its pairs: satisfied, weighted, in any form, contradictory; `y` is none."""

import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from ssnmf.cases import (
    CONSTRAINED,
    KNOWN,
    SOLVERS,
    X,
    Y,
    assert_same_fit,
    clusterer,
    fitted,
    matrix,
    one_of_each,
    solver_by_affinity,
    unconverged,
)

from nmfcluster import PairwiseConstraints
from nmfcluster.constraints.graph import find_confirmed_must_links
from nmfcluster.metrics import clustering_accuracy

pytestmark = unconverged


# --- integers in an index ----------------------------------------------------------------------


def test_integers_in_an_index_that_are_no_positions_are_told_beside_pairs():
    frame = pd.DataFrame(X)
    shuffled, kept = frame.sample(frac=1, random_state=0), frame[frame.index % 2 == 0]
    model = clusterer()
    for other in (shuffled, kept, frame.set_axis(np.arange(len(X)) + 1)):
        with warns_naming(UserWarning, "integers", "from_ids(X.index"):
            model.fit(other, must_link=[(0, 5)])
        assert_array_equal(model.constraints_.must_link, [[0, 5]])  # rows, as it says
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "must_link and cannot_link count")
        model.fit(frame, must_link=[(0, 5)])
        model.fit(frame.set_axis([f"s{i}" for i in range(len(X))]), must_link=[(0, 5)])
        model.fit(shuffled)
        ids = PairwiseConstraints.from_ids(shuffled.index, [(0, 5)])
        model.fit(shuffled, constraints=ids)
    one, other = model.constraints_.must_link[0]
    assert set(shuffled.index[[one, other]]) == {0, 5}


# --- constraints -------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@solver_by_affinity
def test_hard_must_links_are_always_satisfied(affinity, solver):
    rng = np.random.RandomState(1)
    for size in (1, 200):
        must = [pair for pair in rng.randint(60, size=(size, 2)) if pair[0] != pair[1]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = clusterer(affinity=affinity, max_iter=30, **SOLVERS[solver])
            model.fit(X, must_link=must)  # of any clusters: nothing to do with the data
        assert len(model.violated_must_link_) == 0
        assert model.satisfaction_ == 1
        i, j = np.transpose(must)
        assert_array_equal(model.membership_[i], model.membership_[j])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("affinity", ["nearest_neighbors", "rbf"])
@pytest.mark.parametrize("way", ["hard", "soft"])
def test_when_all_pairs_are_known_all_samples_are_right(affinity, way):
    noisy, y = make_blobs(90, centers=2 * np.eye(3), cluster_std=1.0, random_state=1)
    before = clusterer(affinity=affinity).fit(noisy)
    model = fitted(
        noisy,
        constraints=PairwiseConstraints.from_labels(y),
        affinity=affinity,
        **CONSTRAINED[way],
    )
    assert clustering_accuracy(y, before.labels_) < 0.95
    assert clustering_accuracy(y, model.labels_) == 1
    assert model.satisfaction_ == 1


def test_more_weight_satisfies_more():
    noisy, y = make_blobs(90, centers=2 * np.eye(3), cluster_std=1.2, random_state=1)
    known = PairwiseConstraints.from_labels(y, n_pairs=150, random_state=0)
    shares = [
        fitted(
            noisy, constraints=known, hard_must_link=False, alpha=w, beta=w
        ).satisfaction_
        for w in (0.0, 0.5, 2.0)
    ]
    assert shares[0] < shares[1] < shares[2]


def test_what_is_reported_of_the_constraints():
    noisy, y = make_blobs(60, centers=np.eye(3), cluster_std=1.0, random_state=1)
    known = PairwiseConstraints.from_labels(y, n_pairs=80, random_state=0)
    model = fitted(noisy, constraints=known, hard_must_link=False, alpha=0.1, beta=0.1)
    labels = model.labels_
    apart = [
        pair for pair in known.must_link.tolist() if labels[pair[0]] != labels[pair[1]]
    ]
    joined = [
        pair
        for pair in known.cannot_link.tolist()
        if labels[pair[0]] == labels[pair[1]]
    ]
    assert apart
    assert joined
    assert model.violated_must_link_.tolist() == apart
    assert model.violated_cannot_link_.tolist() == joined
    assert model.satisfaction_ == pytest.approx(1 - (len(apart) + len(joined)) / 80)
    assert model.constraints_ == known
    assert_array_equal(model.must_link_groups_, known.components())


def test_nothing_is_violated_where_nothing_is_known():
    for known in (
        None,
        PairwiseConstraints(60),
        PairwiseConstraints(60, must_link=[(3, 3)]),
    ):
        model = fitted(constraints=known)
        assert np.isnan(model.satisfaction_)
        assert (
            model.violated_must_link_.shape
            == model.violated_cannot_link_.shape
            == (0, 2)
        )
        assert_array_equal(model.must_link_groups_, np.arange(60))
        assert_same_fit(model, clusterer().fit(X))


FORMS = {
    "the container": lambda must, cannot: {
        "constraints": PairwiseConstraints(60, must, cannot)
    },
    "the other order": lambda must, cannot: {
        "must_link": must[::-1, ::-1],
        "cannot_link": cannot[::-1, ::-1],
    },
    "several times": lambda must, cannot: {
        "must_link": np.vstack([must, must[:, ::-1], must]),
        "cannot_link": np.vstack([cannot, cannot[:3]]),
    },
    "lists": lambda must, cannot: {
        "must_link": must.tolist(),
        "cannot_link": cannot.tolist(),
    },
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ["hard", "soft"])
def test_constraints_are_the_same_in_any_form(way):
    plain = clusterer(**CONSTRAINED[way])
    plain.fit(X, must_link=KNOWN.must_link, cannot_link=KNOWN.cannot_link)
    for form in FORMS.values():
        given = form(KNOWN.must_link, KNOWN.cannot_link)
        model = clusterer(**CONSTRAINED[way]).fit(X, **given)
        assert model.constraints_ == KNOWN
        assert_same_fit(model, plain)


@pytest.mark.sampled(2)
@solver_by_affinity
def test_weights_of_pairs_and_alpha_and_beta_are_one_thing(affinity, solver):
    heavy = PairwiseConstraints(
        60, [(*p, 3.0) for p in KNOWN.must_link], [(*p, 0.5) for p in KNOWN.cannot_link]
    )
    options = {
        "affinity": affinity,
        "hard_must_link": False,
        **SOLVERS[solver],
        "max_iter": 50,
    }
    options["propagation"] = None  # pairs spread by their weights alone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        one = fitted(constraints=heavy, alpha=0.4, beta=1.0, **options)
        other = fitted(alpha=1.2, beta=0.5, **options)
    assert_same_fit(one, other)


@pytest.mark.sampled(2)
@one_of_each
def test_weights_of_zero_are_no_constraints(affinity, solver):
    options = {"affinity": affinity, **SOLVERS[solver]}
    free = clusterer(**options).fit(X)
    soft = fitted(hard_must_link=False, alpha=0, beta=0, **options)
    assert_same_fit(soft, free)
    cannot = PairwiseConstraints(60, cannot_link=KNOWN.cannot_link)
    assert_same_fit(fitted(constraints=cannot, beta=0, **options), free)


# --- contradictions and ignored arguments ------------------------------------------------------

CONTRADICTIONS = {
    "a chain": ({"must_link": [(3, 5), (5, 9)], "cannot_link": [(9, 3)]}, "3-5-9", 3),
    "too few clusters": (
        {"cannot_link": list(permutations(range(4), 2))},
        "n_clusters=3",
        3,
    ),
    "an odd cycle": (
        {"cannot_link": [(0, 1), (1, 2), (2, 0)]},
        ("n_clusters=2", "cycle"),
        2,
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", ["hard", "soft"])
@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictions_are_found_and_named(case, way):
    pairs, says, k = CONTRADICTIONS[case]
    model = clusterer(k, **CONSTRAINED[way])
    with raises_naming(ValueError, says, "contradictions='ignore'"):
        model.fit(X, **pairs)
    with warns_naming(UserWarning, "constraints", says):
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(2))
def test_pairs_that_may_be_wrong_are_soft(seed):
    drawn = PairwiseConstraints.from_labels(Y, n_pairs=200, random_state=seed)
    wrong = np.random.default_rng(seed).random(200) < 0.1
    links, n_must = (
        np.concatenate([drawn.must_link, drawn.cannot_link]),
        len(drawn.must_link),
    )
    must = (np.arange(200) < n_must) ^ wrong
    pairs = {"constraints": PairwiseConstraints(len(X), links[must], links[~must])}
    told = [
        fitted(**pairs, contradictions="ignore", hard_must_link=way)
        for way in ("auto", False)
    ]
    soft, same = told
    assert_array_equal(soft.membership_, same.membership_)
    alone = fitted(constraints=None)
    assert (
        adjusted_rand_score(Y, soft.labels_)
        > adjusted_rand_score(Y, alone.labels_) - 0.01
    )
    told = np.concatenate([soft.violated_must_link_, soft.violated_cannot_link_])
    suspicious = {*map(tuple, told.tolist())}
    found = suspicious & {*map(tuple, links[wrong].tolist())}
    assert len(found) > 0.7 * max(len(suspicious), wrong.sum())


def test_must_links_that_others_confirm_are_hard_where_pairs_may_be_wrong():
    right = PairwiseConstraints.from_labels(Y, n_pairs=200, random_state=0)
    expected = fitted(constraints=right)
    found = fitted(constraints=right, contradictions="ignore")
    assert_array_equal(found.membership_, expected.membership_)
    # a few pairs of samples that are in no other may be wrong
    few = PairwiseConstraints.from_labels(Y, n_pairs=20, random_state=0)
    assert not find_confirmed_must_links(few).any()
    # one contradiction makes soft what joins its samples, and nothing else
    groups = [range(4), range(4, 8), range(8, 11)]
    pairs = PairwiseConstraints.from_groups(groups, n_samples=60, apart=True)
    assert find_confirmed_must_links(pairs).all()
    both = PairwiseConstraints(60, pairs.must_link, [*pairs.cannot_link, (9, 10)])
    assert_array_equal(
        find_confirmed_must_links(both), (both.must_link < 8).any(axis=1)
    )


def test_pairs_that_can_be_satisfied_are_no_contradiction():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(constraints=PairwiseConstraints.from_labels(Y))


def test_y_is_ignored():
    model = fitted()
    for y in (Y, Y.astype(str), ["a"] * 3, object(), np.nan, KNOWN):
        with warnings.catch_warnings():
            # also not when it holds the constraints that are given
            warnings.simplefilter("error")
            assert_same_fit(clusterer().fit(X, y, constraints=KNOWN), model)


def test_constraints_that_are_given_as_y_are_ignored_and_said_to_be():
    with warns_naming(UserWarning, "y", "fit(X, constraints=...)"):
        model = clusterer().fit(X, KNOWN)
    assert np.isnan(model.satisfaction_)
    assert_same_fit(model, clusterer().fit(X))
