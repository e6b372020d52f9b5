"""Pictures of stability: what is drawn, and where."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV

from nmfcluster.display import StabilityDisplay
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

AS_GOOD = "as good: 1 standard error below the best"
ETA = [10.0, 0.1, 0, 1.0, np.inf, 0.01]


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(80, centers=6 * np.eye(3), random_state=0)[0]


def search_for(X, grid, details=True, **options):
    return GridSearchCV(
        KMeans(n_init=1, random_state=0),
        grid,
        scoring=StabilityScorer(4, subsample_size=0.4, details=details),
        cv=FullSampleSplit(),
        refit="stability" if details else True,
        **options,
    ).fit(X)


def legend_of(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_the_curve_is_that_of_the_table(ticks_of, blobs):
    search = search_for(blobs, {"n_clusters": [4, 2, 3]})
    display = StabilityDisplay.from_estimator(search)
    order = [1, 2, 0]
    table = search.cv_results_
    assert display.values == [2, 3, 4]
    np.testing.assert_array_equal(display.curves, [table["mean_test_stability"][order]])
    np.testing.assert_array_equal(display.errors, [table["mean_test_stability_se"][order]])
    assert display.chosen == (0, order.index(search.best_index_))
    (line,) = display.lines_
    np.testing.assert_array_equal(line.get_xydata()[:, 0], [2, 3, 4])
    np.testing.assert_array_equal(line.get_xydata()[:, 1], display.curves[0])
    (band,) = display.bands_
    corners = band.get_paths()[0].vertices
    expected = (display.curves - display.errors).min(), (display.curves + display.errors).max()
    np.testing.assert_allclose([corners[:, 1].min(), corners[:, 1].max()], expected)
    best = search.best_params_["n_clusters"]
    np.testing.assert_allclose(display.chosen_.get_xydata(), [[best, search.best_score_]])
    expected = [f"chosen: n_clusters = {best}", "± 1 standard error", AS_GOOD]
    assert legend_of(display) == expected
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("n_clusters", "stability")
    assert ticks_of(display) == {"2": 2, "3": 3, "4": 4}


def test_what_is_as_good_lies_in_a_strip(results_of):
    results = results_of({"eta": [1, 2, 3]})
    results["mean_test_stability"] = np.array([0.5, 0.9, 0.8])
    results["mean_test_stability_se"] = np.array([0.3, 0.15, 0.01])
    display = StabilityDisplay.from_cv_results(results)
    _, bottom, _, height = display.interval_.get_bbox().bounds
    np.testing.assert_allclose([bottom, height], [0.75, 0.15])
    assert StabilityDisplay.from_cv_results(results, metric="disagreement").interval_ is None


def null_results(p_values):
    return {
        "params": [{"kmeans__n_clusters": k} for k in (2, 3, 4)],
        "mean_test_excess": np.array([0.3, 0.6, 0.2]),
        "mean_test_null_sd": np.array([0.1, 0.2, 0.3]),
        "mean_test_p_value": np.array(p_values),
    }


def test_one_cluster_exceeds_tables_without_clusters_by_nothing():
    options = {"metric": "excess", "best_index": 1}
    display = StabilityDisplay.from_cv_results(null_results([0.2, 0.05, 0.3]), **options)
    assert display.values == [1, 2, 3, 4]
    np.testing.assert_array_equal(display.curves, [[0, 0.3, 0.6, 0.2]])
    (band,) = display.null_
    corners = band.get_paths()[0].vertices
    np.testing.assert_allclose(sorted(set(corners[:, 1])), [-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3])
    np.testing.assert_allclose(display.chosen_.get_xydata(), [[3, 0.6]])
    assert legend_of(display)[-1] == "no clusters, ± 1 standard deviation"
    none = StabilityDisplay.from_cv_results(null_results([0.2, 0.06, 0.3]), **options)
    np.testing.assert_allclose(none.chosen_.get_xydata(), [[1, 0]])
    assert legend_of(none)[0] == "chosen: kmeans__n_clusters = 1"


def test_only_numbers_of_clusters_have_one():
    results = null_results([0.5, 0.5, 0.5])
    results["params"] = [{"eta": eta} for eta in (2, 3, 4)]
    display = StabilityDisplay.from_cv_results(results, metric="excess", best_index=1)
    assert display.values == [2, 3, 4]
    assert display.chosen == (0, 1)
    del results["mean_test_p_value"]
    with pytest.raises(ValueError, match=r"mean_test_p_value.*NullScorer\(\.\.\., details=True\)"):
        StabilityDisplay.from_cv_results(results, metric="excess")


def test_without_details_there_is_no_spread(blobs):
    search = search_for(blobs, {"n_clusters": [2, 3]}, details=False)
    display = StabilityDisplay.from_estimator(search)
    np.testing.assert_array_equal(display.curves, [search.cv_results_["mean_test_score"]])
    assert display.errors is None
    assert display.bands_ == []
    assert len(legend_of(display)) == 1


def test_the_disagreement_can_be_shown(blobs):
    search = search_for(blobs, {"n_clusters": [2, 3]})
    display = StabilityDisplay.from_estimator(search, metric="disagreement")
    np.testing.assert_array_equal(display.curves, [search.cv_results_["mean_test_disagreement"]])
    assert display.errors is not None
    assert display.ax_.get_ylabel() == "disagreement"


def test_without_a_refit_nothing_is_chosen(blobs):
    search = GridSearchCV(
        KMeans(n_init=1), {"n_clusters": [2, 3]}, refit=False,
        scoring=StabilityScorer(4, details=True), cv=FullSampleSplit(),
    ).fit(blobs)  # fmt: skip
    display = StabilityDisplay.from_estimator(search)
    assert display.chosen is None
    assert display.chosen_ is None
    assert legend_of(display) == ["± 1 standard error", AS_GOOD]


def test_a_random_search_is_drawn_in_order(blobs):
    search = RandomizedSearchCV(
        KMeans(n_init=1, random_state=0), {"tol": [1e-1, 1e-5, 1e-3, 1e-4]}, n_iter=4,
        scoring=StabilityScorer(4, details=True), cv=FullSampleSplit(), refit="stability",
        random_state=0,
    ).fit(blobs)  # fmt: skip
    display = StabilityDisplay.from_estimator(search)
    assert display.values == [1e-5, 1e-4, 1e-3, 1e-1]
    assert display.ax_.get_xscale() == "log"


def test_a_second_parameter_gives_lines(results_of):
    results = results_of({"eta": ETA, "n_clusters": [2, 3]})
    display = StabilityDisplay.from_cv_results(results, best_index=3)
    assert display.param_name == "eta"
    assert display.names == ["2", "3"]
    for i, k in enumerate([2, 3]):
        for j, eta in enumerate(sorted(ETA)):
            row = results["params"].index({"eta": eta, "n_clusters": k})
            assert display.curves[i, j] == results["mean_test_stability"][row]
            assert display.errors[i, j] == results["mean_test_stability_se"][row]
    assert len({line.get_color() for line in display.lines_}) == 2
    assert legend_of(display)[:2] == ["2", "3"]
    assert display.ax_.get_legend().get_title().get_text() == "n_clusters"
    assert display.chosen == (1, 2)
    assert display.chosen_.get_markeredgecolor() == display.lines_[1].get_color()


def test_categories_are_not_joined(results_of):
    grid = {"affinity": ["rbf", "cosine"], "criterion": ["kl", "ce", "kl2"]}
    display = StabilityDisplay.from_cv_results(results_of(grid), param="affinity", best_index=0)
    assert all(line.get_linestyle() == "None" for line in display.lines_)
    assert display.bands_ == []
    x = np.array([line.get_xdata() for line in display.lines_])
    assert (np.diff(x, axis=0) > 0).all()  # beside each other
    np.testing.assert_allclose(x.mean(axis=0), [0, 1])


def test_candidates_without_a_score_are_left_out(results_of):
    results = results_of({"eta": [1, 2, 3]})
    results["mean_test_stability"][1] = np.nan
    display = StabilityDisplay.from_cv_results(results, best_index=1)
    assert display.lines_[0].get_xdata().tolist() == [1, 3]
    assert display.chosen_ is None


def test_what_is_no_fitted_search_is_refused():
    with pytest.raises(TypeError, match=r"search, such as GridSearchCV, got KMeans"):
        StabilityDisplay.from_estimator(KMeans())
    with pytest.raises(NotFittedError):
        StabilityDisplay.from_estimator(GridSearchCV(KMeans(), {}))


def test_other_scores_are_not_called_stability(blobs):
    search = GridSearchCV(KMeans(n_init=1, random_state=0), {"n_clusters": [2, 3]}, cv=2)
    display = StabilityDisplay.from_estimator(search.fit(blobs))
    assert display.metric == display.ax_.get_ylabel() == "score"
    np.testing.assert_allclose(display.curves[0], search.cv_results_["mean_test_score"])
