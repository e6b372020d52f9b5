"""Constraints as scikit-learn splits them: searches, cross-validation, pipelines, resampling."""

import joblib
import numpy as np
import pytest
from constraints.shared import some_constraints, split, weighted
from numpy.testing import assert_array_equal
from sklearn import clone, config_context
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import resample, shuffle

from nmfcluster.constraints import PairwiseConstraints

N = 60
CONSTRAINTS = some_constraints(N)
IDS = np.random.RandomState(1).permutation(1000)[:N]  # a row holds the id of its sample
X = np.column_stack([IDS, np.random.RandomState(2).normal(size=(N, 2))])
BY_ID = [
    {frozenset((int(IDS[i]), int(IDS[j]))): weight for (i, j), weight in kind.items()}
    for kind in weighted(CONSTRAINTS)
]


def make_witness(by_id):
    """Return a clusterer that tells whether the pairs it gets are those of its samples.

    It is made in a function, so that other processes get the code and need not import it.
    """

    class Witness(ClusterMixin, BaseEstimator):
        __metadata_request__fit = {"constraints": True}

        def __init__(self, n_clusters=2):
            self.n_clusters = n_clusters

        def fit(self, X, y=None, constraints=None):
            constraints = y if constraints is None else constraints
            assert len(constraints) == len(X), (len(constraints), len(X))
            ids = X[:, 0].astype(int).tolist()
            kinds = (
                (constraints.must_link, constraints.must_link_weights),
                (constraints.cannot_link, constraints.cannot_link_weights),
            )
            for (pairs, weights), known in zip(kinds, by_id, strict=True):
                own = [
                    (frozenset((ids[i], ids[j])), weight)
                    for (i, j), weight in zip(
                        pairs.tolist(), weights.tolist(), strict=True
                    )
                ]
                inside = {
                    pair: weight for pair, weight in known.items() if pair <= set(ids)
                }
                assert len(own) == len(inside)
                assert dict(own) == inside
            self.n_pairs_ = constraints.n_pairs
            self.labels_ = self.predict(X)
            return self

        def predict(self, X):
            return X[:, 0].astype(int) % self.n_clusters

    return Witness()


def make_score():
    """Return a scorer, made in a function for the same reason."""

    def score(estimator, X, y=None):
        if isinstance(y, PairwiseConstraints):  # of the samples that were held out
            assert len(y) == len(X)
        return float(len(X))

    return score


score = make_score()


@pytest.fixture
def witness():
    return make_witness(BY_ID)


def in_pipeline(witness):
    steps = [("same", FunctionTransformer()), ("clf", witness)]
    return Pipeline(steps)


GRID = {"n_clusters": [2, 3]}


SEARCHES = {
    "grid": lambda estimator, grid, **options: GridSearchCV(estimator, grid, **options),
    "random": lambda estimator, grid, **options: RandomizedSearchCV(
        estimator, grid, n_iter=2, random_state=0, **options
    ),
    "halving": lambda estimator, grid, **options: HalvingGridSearchCV(
        estimator, grid, random_state=0, min_resources=20, factor=2, **options
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.filterwarnings("ignore:The number of unique")
def test_searches_split_the_constraints(search, routing, witness):
    cv = KFold(3, shuffle=True, random_state=0)
    options = {"cv": cv, "scoring": score, "error_score": "raise"}
    with config_context(enable_metadata_routing=routing):
        fitted = search(witness, GRID, **options).fit(X, constraints=CONSTRAINTS)
        assert fitted.best_estimator_.n_pairs_ == CONSTRAINTS.n_pairs
        name = "constraints" if routing else "clf__constraints"
        fitted = search(in_pipeline(witness), {"clf__n_clusters": [2, 3]}, **options)
        fitted.fit(X, **{name: CONSTRAINTS})
        assert fitted.best_estimator_["clf"].n_pairs_ == CONSTRAINTS.n_pairs
        fitted = search(witness, GRID, **options).fit(X, CONSTRAINTS)  # as y
        assert fitted.best_estimator_.n_pairs_ == CONSTRAINTS.n_pairs


@pytest.mark.parametrize("routing", [False, True])
def test_cross_validation_splits_the_constraints(routing, witness):
    options = {"cv": KFold(3), "params": {"constraints": CONSTRAINTS}}
    with config_context(enable_metadata_routing=routing):
        results = cross_validate(
            witness,
            X,
            scoring=score,
            return_estimator=True,
            error_score="raise",
            **options,
        )
        expected = [CONSTRAINTS[train].n_pairs for train, _ in KFold(3).split(X)]
        assert [fitted.n_pairs_ for fitted in results["estimator"]] == expected
        assert min(expected) > 20
        scores = cross_val_score(
            witness, X, scoring=score, error_score="raise", **options
        )
        assert_array_equal(scores, [20, 20, 20])
        assert_array_equal(cross_val_predict(witness, X, **options), IDS % 2)
        pipeline = in_pipeline(witness)
        name = "constraints" if routing else "clf__constraints"
        options["params"] = {name: CONSTRAINTS}
        results = cross_validate(
            pipeline,
            X,
            scoring=score,
            return_estimator=True,
            error_score="raise",
            **options,
        )
        assert [fitted["clf"].n_pairs_ for fitted in results["estimator"]] == expected


@pytest.mark.parametrize("routing", [False, True])
def test_pipelines_hand_the_constraints_on(routing, witness):
    pipeline, name = (
        in_pipeline(witness),
        "constraints" if routing else "clf__constraints",
    )
    with config_context(enable_metadata_routing=routing):
        pipeline.fit(X, **{name: CONSTRAINTS})
        assert pipeline["clf"].n_pairs_ == CONSTRAINTS.n_pairs
        labels = pipeline.fit_predict(X, **{name: CONSTRAINTS})
        assert_array_equal(labels, IDS % 2)
        pipeline.fit(X, CONSTRAINTS)
        assert pipeline["clf"].n_pairs_ == CONSTRAINTS.n_pairs


def test_constraints_as_y_reach_the_scorer(witness):
    scores = cross_val_score(
        witness, X, CONSTRAINTS, scoring=score, cv=4, error_score="raise"
    )
    assert_array_equal(scores, [15, 15, 15, 15])


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_other_processes_and_threads_get_their_folds(backend, witness):
    search = GridSearchCV(
        witness, GRID, scoring=score, cv=3, n_jobs=2, error_score="raise"
    )
    with joblib.parallel_config(backend):
        search.fit(X, constraints=CONSTRAINTS)
    assert search.best_estimator_.n_pairs_ == CONSTRAINTS.n_pairs


def test_the_witness_notices_what_is_wrong(witness):
    with pytest.raises(AssertionError):
        witness.fit(X, constraints=CONSTRAINTS[::-1])
    with pytest.raises(AssertionError):
        witness.fit(X[:-1], constraints=CONSTRAINTS)


@pytest.mark.parametrize("options", [{}, {"shuffle": False}, {"test_size": 7}])
def test_train_test_split(options, witness):
    options = options if "shuffle" in options else {**options, "random_state": 0}
    train, test, pairs, held_out = train_test_split(X, CONSTRAINTS, **options)
    for some, part in ((train, pairs), (test, held_out)):
        assert type(part) is PairwiseConstraints
        witness.fit(some, constraints=part)


def test_shuffle_and_resample(witness):
    for some, part in (
        shuffle(X, CONSTRAINTS, random_state=0),
        shuffle(X, CONSTRAINTS, random_state=0, n_samples=20),
        resample(X, CONSTRAINTS, random_state=0, replace=False, n_samples=30),
    ):
        witness.fit(some, constraints=part)
    drawn, part = resample(X, CONSTRAINTS, random_state=0)
    position = {sample: i for i, sample in enumerate(IDS.tolist())}
    samples = [position[sample] for sample in drawn[:, 0].astype(int).tolist()]
    assert len(set(samples)) < N
    assert part == CONSTRAINTS[samples]
    assert weighted(part) == split(CONSTRAINTS, samples)


def test_folds_of_components_keep_every_must_link_pair():
    constraints = PairwiseConstraints(N, CONSTRAINTS.must_link[::3])
    folds = GroupKFold(4).split(X, groups=constraints.components())
    kept = [
        (constraints[train].n_pairs, constraints[test].n_pairs) for train, test in folds
    ]
    assert all(train + test == constraints.n_pairs for train, test in kept)
    assert sum(test for _, test in kept) == constraints.n_pairs


def test_a_parameter_is_cloned():
    class Holder(BaseEstimator):
        def __init__(self, constraints=None):
            self.constraints = constraints

    holder = Holder(CONSTRAINTS)
    assert clone(holder).constraints == CONSTRAINTS
    assert clone(holder).constraints is not CONSTRAINTS
    assert "60" in repr(holder)
