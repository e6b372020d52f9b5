"""Parameters chosen by pairs that were held out."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from model_selection.recorders import CLOSE as X
from model_selection.recorders import CLOSE_LABELS as Y
from refusals import raises_naming, warns_naming
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.constraints.graph import split_pairs
from nmfcluster.model_selection import FullSampleSplit, HeldOutPairsScorer

PAIRS = PairwiseConstraints.from_labels(Y, n_pairs=80, random_state=0)
ALL = FullSampleSplit()


def quick(**parameters):
    return SSNMFClusterer(3, **{"n_init": 1, "random_state": 0} | parameters)


class Fixed(BaseEstimator):
    """Has the labels that it was told, and keeps what it was fitted with."""

    given = []

    def __init__(self, labels):
        self.labels = labels

    def fit(self, X, y=None, constraints=None):
        Fixed.given.append((len(X), y, constraints))
        self.labels_ = np.asarray(self.labels)
        return self


def literal_details(pairs, labels_of, n_splits):
    """Compute the score with loops: each pair counts by the share of times it is satisfied."""
    rng = np.random.default_rng(0)
    told = [{}, {}]
    for kept, asked in split_pairs(pairs, n_splits, rng):
        labels = labels_of(kept)
        for kind, links in enumerate((pairs.must_link, pairs.cannot_link)):
            for number, (i, j) in enumerate(links):
                if asked[kind][number]:
                    right = (labels[i] == labels[j]) == (kind == 0)
                    told[kind].setdefault(number, []).append(right)
    shares, errors, n_pairs = [], [], 0
    for kind, own in enumerate((pairs.must_link_weights, pairs.cannot_link_weights)):
        total = sum(own[number] for number in told[kind])
        share = (
            sum(own[number] * np.mean(told[kind][number]) for number in told[kind])
            / total
        )
        squares = (
            own[n] ** 2 * (np.mean(told[kind][n]) - share) ** 2 for n in told[kind]
        )
        shares.append(share)
        errors.append(sum(squares) / total**2)
        n_pairs += len(told[kind])
    score, error = np.mean(shares), np.sqrt(sum(errors)) / 2
    names = ("satisfaction", "satisfaction_se", "must_link", "cannot_link", "n_pairs")
    return dict(zip(names, (score, error, *shares, n_pairs), strict=True))


def weighted_pairs():
    rng = np.random.default_rng(1)
    links = (PAIRS.must_link, PAIRS.cannot_link)
    return PairwiseConstraints(
        90, *(np.column_stack([p, 1 + rng.random(len(p))]) for p in links)
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_splits", [2, 3])
def test_the_score_is_the_share_of_satisfied_pairs(n_splits):
    pairs, model = weighted_pairs(), quick()
    scorer = HeldOutPairsScorer(n_splits, details=True)
    expected = literal_details(
        pairs, lambda kept: quick().fit(X, constraints=kept).labels_, n_splits
    )
    assert scorer(model, X, pairs) == pytest.approx(expected)
    score = scorer.set_params(details=False)(model, X, pairs)
    assert score == pytest.approx(expected["satisfaction"])
    assert 0 < score < 1


def test_pairs_of_one_kind_and_samples_in_no_cluster():
    must = PairwiseConstraints(4, [(0, 1), (2, 3)])
    found = HeldOutPairsScorer(2, details=True)(Fixed([0, 0, -1, -1]), X[:4], must)
    assert (found["satisfaction"], found["must_link"], found["n_pairs"]) == (
        0.5,
        0.5,
        2,
    )
    assert np.isnan(found["cannot_link"])
    cannot = PairwiseConstraints(4, None, [(0, 1)])
    assert HeldOutPairsScorer()(Fixed([0, 0, 1, 1]), X[:4], cannot) == 0


def test_copies_get_all_samples_and_most_pairs_and_none_as_y():
    Fixed.given = []
    pairs = PairwiseConstraints(20, None, [(i, i + 1) for i in range(0, 20, 2)])
    HeldOutPairsScorer(5)(Fixed(np.arange(20)), X[:20], pairs)
    assert [(n, y, kept.n_pairs) for n, y, kept in Fixed.given] == [(20, None, 8)] * 5


@pytest.mark.slow
def test_pairs_of_named_samples_are_put_into_the_order_of_the_samples():
    frame = pd.DataFrame(X, index=[f"s{i}" for i in range(90)])
    named = PairwiseConstraints.from_labels(
        pd.Series(Y, index=frame.index), n_pairs=80, random_state=0
    )
    order = np.random.default_rng(0).permutation(90)
    moved, scorer = frame.iloc[order], HeldOutPairsScorer(details=True)
    with warns_naming(UserWarning, "constraints", "order"):
        found = scorer(quick(), moved, named)
    assert found == scorer(quick(), moved, named[order])
    assert found["satisfaction"] > 0.7  # by numbers alone it is that of chance
    with raises_naming(ValueError, "constraints", "X", "names"):
        scorer(quick(), frame.rename(index={"s0": "t0"}), named)


@pytest.mark.slow
def test_it_does_not_depend_on_n_jobs_but_on_random_state():
    model = quick(random_state=None)
    alone = HeldOutPairsScorer(details=True)(model, X, PAIRS)
    assert HeldOutPairsScorer(details=True, n_jobs=2)(model, X, PAIRS) == alone
    assert HeldOutPairsScorer(details=True, random_state=1)(model, X, PAIRS) != alone
    again = pickle.loads(pickle.dumps(clone(HeldOutPairsScorer(details=True))))
    assert again(model, X, PAIRS) == alone


def test_constraints_are_given_in_four_ways():
    model, scorer = quick(), HeldOutPairsScorer(2)
    expected = scorer(model, X, PAIRS)
    assert scorer(model, X, constraints=PAIRS) == expected
    assert scorer(model, X, PAIRS, constraints=PAIRS) == expected
    with raises_naming(ValueError, "y", "constraints", "same"):
        scorer(model, X, PairwiseConstraints(90, [(0, 1)]), constraints=PAIRS)
    given = HeldOutPairsScorer(2, fit_params={"constraints": PAIRS})
    assert given(model, X) == given(model, X, Y) == expected


GRID = {"affinity": ["nearest_neighbors", "landmarks"]}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("search", "options", "routing"),
    [
        (GridSearchCV, {}, False),
        (RandomizedSearchCV, {"n_iter": 2, "random_state": 0}, True),
    ],
    indirect=["routing"],
)
def test_searches(search, routing, options):
    found = search(
        quick(),
        GRID,
        scoring=HeldOutPairsScorer(2),
        cv=ALL,
        error_score="raise",
        **options,
    )
    found.fit(X, None if routing else PAIRS, constraints=PAIRS)
    for params, score in zip(
        found.cv_results_["params"], found.cv_results_["mean_test_score"], strict=True
    ):
        model = quick(**params)
        assert score == HeldOutPairsScorer(2, fit_params={"constraints": PAIRS})(
            model, X
        )
    assert found.best_estimator_.constraints_ == PAIRS


@pytest.mark.sampled(2)
def test_a_pipeline_is_searched(routing):
    model = make_pipeline(StandardScaler(), quick())
    search = GridSearchCV(
        model, {"ssnmfclusterer__beta": [1, 4]}, scoring=HeldOutPairsScorer(2, details=True),
        refit="satisfaction", cv=ALL, error_score="raise",
    )  # fmt: skip
    name = "constraints" if routing else "ssnmfclusterer__constraints"
    search.fit(X, None if routing else PAIRS, **{name: PAIRS})
    scaled = StandardScaler().fit_transform(X)
    for beta, score in zip(
        (1, 4), search.cv_results_["mean_test_satisfaction"], strict=True
    ):
        assert score == HeldOutPairsScorer(2)(quick(beta=beta), scaled, PAIRS)
    if not routing:
        given = HeldOutPairsScorer(2, fit_params={name: PAIRS})
        assert given(model, X) == search.cv_results_["mean_test_satisfaction"][0]
        assert HeldOutPairsScorer(2)(model, X, constraints=PAIRS) == given(model, X)


def test_similarities_are_given_whole():
    W = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 4)
    search = GridSearchCV(
        quick(affinity="precomputed"), {"beta": [1, 4]}, scoring=HeldOutPairsScorer(), cv=ALL,
        error_score="raise",
    ).fit(W, PAIRS, constraints=PAIRS)  # fmt: skip
    assert search.best_score_ > 0.7


def test_groups_can_be_held_out():
    known = np.where(np.arange(90) % 6 == 0, Y, -1)
    pairs = PairwiseConstraints.from_labels(known)
    found = HeldOutPairsScorer(details=True)(quick(), X, pairs)
    assert found["must_link"] > 0.5
    assert found["n_pairs"] > len(pairs.must_link)


# --- misuse ------------------------------------------------------------------------------------


@pytest.mark.parametrize("handed", [{}, {"fit_params": {"constraints": PAIRS}}])
def test_what_takes_no_constraints_is_refused(handed):
    with raises_naming(TypeError, "constraints", "KMeans"):
        HeldOutPairsScorer(**handed)(KMeans(3), X, None if handed else PAIRS)


def test_without_constraints_it_says_how_to_give_them(routing):
    search = GridSearchCV(
        quick(), GRID, scoring=HeldOutPairsScorer(), cv=ALL, error_score="raise"
    )
    with raises_naming(TypeError, "search.fit(X, pairs, constraints=pairs)"):
        search.fit(X, Y)


def test_constraints_by_two_names_are_refused():
    given = {"constraints": PAIRS, "step__constraints": PAIRS}
    with raises_naming(TypeError, "constraints", "step__constraints"):
        HeldOutPairsScorer(fit_params=given)(quick(), X)


def test_folds_of_samples_are_refused():
    with raises_naming(ValueError, "HeldOutPairsScorer", "FullSampleSplit"):
        cross_validate(
            quick(), X, PAIRS, params={"constraints": PAIRS}, scoring=HeldOutPairsScorer(),
            cv=KFold(3), error_score="raise",
        )  # fmt: skip


def test_a_copy_that_fails_has_no_score():
    bad = Fixed([0, 1])
    with warns_naming(FitFailedWarning, "HeldOutPairsScorer", "fold 0", "90"):
        assert np.isnan(HeldOutPairsScorer()(bad, X, PAIRS))


def test_what_routing_does_not_hand_over_is_missing():
    model = KMeans(3, random_state=0)
    with (
        sklearn.config_context(enable_metadata_routing=True),
        raises_naming(TypeError, "constraints"),
    ):
        HeldOutPairsScorer()(model.fit(X), X, constraints=PAIRS)
