"""SimilarityFusionNMF in scikit-learn: names, refits, warnings, cross-validation."""

from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from fusion.shared import (
    VIEW_1,
    VIEW_2,
    VIEWS,
    default_model,
    features,
    model,
    problem,
)
from numpy.testing import assert_array_equal
from refusals import raises_naming
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from nmfcluster import KernelStack, SimilarityFusionNMF, SimilarityStack
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer
from nmfcluster.stack import ViewStack


@pytest.mark.sampled(2)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_outputs_are_named_after_the_class(library):
    sources, _ = problem()
    fitted = model().fit(sources)
    names = [f"similarityfusionnmf{c}" for c in range(3)]
    assert list(fitted.get_feature_names_out()) == names
    framed = fitted.set_output(transform=library).transform(SimilarityStack(sources))
    assert list(framed.columns) == names
    assert isinstance(fitted.predict(sources), np.ndarray)


def test_tags_say_what_is_read():
    for affinity, criterion in product(
        ("precomputed", "rbf", ["rbf"]), ("agreement", "kl")
    ):
        made = SimilarityFusionNMF(2, affinity=affinity, criterion=criterion)
        tags = get_tags(made).input_tags
        assert tags.sparse
        assert tags.pairwise == (affinity == "precomputed")
        assert tags.positive_only == (tags.pairwise and criterion == "kl")


def test_names_and_index_of_a_data_frame_are_kept():
    sources, _ = problem()
    frame = pd.DataFrame(
        sources[0], columns=[f"c{i}" for i in range(43)], index=range(100, 143)
    )
    fitted = model().set_output(transform="pandas").fit(frame)
    assert_array_equal(fitted.feature_names_in_, frame.columns)
    assert list(fitted.transform(frame[:2]).index) == [100, 101]
    with raises_naming(ValueError, "feature names"):
        fitted.predict(frame.iloc[:, ::-1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["views", "container", "similarities", "arrays"])
def test_frames_of_several_sources_keep_the_names_of_objects(kind):
    sources, _ = problem()
    names = [f"object {i}" for i in range(43)]
    one, two = (
        pd.DataFrame(source, index=names, columns=names) for source in sources[:2]
    )
    given = {
        "views": {"one": one, "two": two.iloc[::-1]},  # rows are matched by name
        "container": ViewStack([one, two]),
        "similarities": SimilarityStack({"one": one, "two": two}),
        "arrays": {"one": sources[0], "two": sources[1]},
    }[kind]
    affinity = "precomputed" if kind == "similarities" else "rbf"
    fitted = model(affinity=affinity).set_output(transform="pandas")
    for framed in (fitted.fit_transform(given), fitted.transform(given)):
        assert list(framed.index) == (list(range(43)) if kind == "arrays" else names)
        assert list(framed.columns) == list(fitted.get_feature_names_out())
        assert_array_equal(framed.to_numpy().argmax(axis=1), fitted.predict(given))


def test_a_fit_that_fails_leaves_the_earlier_one():
    sources, _ = problem()
    fitted = model().fit(sources)
    before = {name: value for name, value in vars(fitted).items()}
    with raises_naming(ValueError, "negative"):
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


def test_the_log_says_what_is_done(caplog):
    model().fit(problem()[0])
    assert not caplog.messages
    caplog.set_level("INFO", "nmfcluster")
    model().fit(problem()[0])
    assert all(line.startswith("SimilarityFusionNMF: ") for line in caplog.messages)
    assert any("43 objects, 1 start" in line for line in caplog.messages)


def test_warnings_point_at_the_caller_of_fit():
    fitted = SimilarityFusionNMF(2, max_iter=1, tol=0)
    with pytest.warns(ConvergenceWarning) as caught:
        fitted.fit(None, similarities=[rbf_kernel(np.arange(9.0)[:, None])])
    assert {warning.filename for warning in caught} == {__file__}


def test_fit_transform_takes_similarities_too():
    sources = [rbf_kernel(np.arange(9.0)[:, None]), np.eye(9) + 0.1]
    fitted = SimilarityFusionNMF(2, random_state=0)
    memberships = fitted.fit_transform(None, similarities=sources)
    assert_array_equal(memberships, fitted.transform(sources))
    assert_array_equal(memberships, fitted.fit_transform(SimilarityStack(sources)))


def test_sources_need_nothing_beside_them():
    sources, _ = problem()
    labels = model().fit(sources).labels_
    assert_array_equal(model().fit(similarities=sources).labels_, labels)
    assert_array_equal(model().fit_predict(similarities=sources), labels)
    views = {"a": np.arange(18.0).reshape(9, 2) ** 2, "b": np.arange(9.0)[:, None]}
    expected = SimilarityFusionNMF(2).fit_predict(views)
    assert_array_equal(SimilarityFusionNMF(2).fit_predict(views=views), expected)


def test_similarities_are_given_in_one_place():
    sources, _ = problem()
    for X in (sources[0], np.zeros((43, 2)), SimilarityStack(sources)):
        with raises_naming(ValueError, "X", "similarities", "views"):
            model().fit(X, similarities=sources)


# --- cross-validation ----------------------------------------------------------------------------


def width(X):
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    return 1 / np.median(squares[np.triu_indices(len(X), 1)])


@pytest.mark.filterwarnings("ignore:No two sources agree")
def test_a_pipeline_is_split_as_by_hand():
    X, _ = features()
    pipeline = Pipeline([("kernels", KernelStack(VIEWS)), ("fusion", default_model())])
    cv = KFold(3, shuffle=True, random_state=0)
    predicted = cross_val_predict(pipeline, X, cv=cv)
    for train, test in cv.split(X):
        own = [
            rbf_kernel(X[train, s], gamma=width(X[train, s])) for s in (VIEW_1, VIEW_2)
        ]
        new = [
            rbf_kernel(X[test, s], X[train, s], width(X[train, s]))
            for s in (VIEW_1, VIEW_2)
        ]
        expected = default_model().fit(None, similarities=own).predict(new)
        assert_array_equal(predicted[test], expected)
        assert_array_equal(
            default_model(affinity=VIEWS).fit(X[train]).predict(X[test]), expected
        )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:No two sources agree")
def test_parameters_by_stability():
    X, y = features(45)
    noisy = np.hstack([X, np.random.RandomState(1).normal(size=(45, 2))])
    kernels = [*VIEWS, ("noise", partial(rbf_kernel, gamma=3), slice(6, 8))]
    grid = [
        {"eta": [0, 0.3, np.inf]},
        {"criterion": ["kl"], "eta": [1.0], "tol": [1e-2]},
        {"weights": [[1, 1, 0], {"noise": 1}]},
    ]
    search = GridSearchCV(
        default_model(),
        grid,
        scoring=StabilityScorer(6, subsample_size=0.7, random_state=0),
        cv=FullSampleSplit(),
        error_score="raise",
    ).fit(KernelStack(kernels).fit_transform(noisy))
    scores = search.cv_results_["mean_test_score"]
    # one view is not enough, and noise is nothing
    assert max(scores[[0, 5]]) < min(scores[1:5])
    assert adjusted_rand_score(y, search.best_estimator_.labels_) > 0.9
