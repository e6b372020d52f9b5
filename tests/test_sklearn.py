"""The estimators as scikit-learn sees them: its own checks, model selection, pipelines."""

import pickle
from itertools import product

import joblib
import numpy as np
import pytest
import sklearn
from refusals import assert_in_our_words, named, raises_naming
from sklearn.base import (
    BaseEstimator,
    BiclusterMixin,
    ClusterMixin,
    TransformerMixin,
    clone,
)
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import estimator_checks, get_tags

from nmfcluster import NMFConsensus
from nmfcluster.datasets import make_partitions

# estimator_checks has them, check_estimator does not run them
OTHER_CHECKS = [
    "check_dataframe_column_names_consistency",
    "check_get_feature_names_out_error",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_inplace_ensure_writeable",
    "check_param_validation",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
]


FEW = {"max_iter": 5, "n_init": 1, "n_estimators": 2}  # no check asks for a good fit


def rand_index(estimator, X, y):
    return adjusted_rand_score(y, estimator.predict(X))


def smallest_confidence(pipeline, X, y=None):
    """Score without predicting: a scorer may be any callable."""
    return pipeline[-1].confidence_.min()


@pytest.fixture(params=[False, True], ids=["no routing", "routing"])
def routing(request):
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield request.param


# --- laws of every estimator -------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings(
    "ignore:The graph of similarities and must-links falls into"
)
@pytest.mark.filterwarnings("ignore:.*(similar|no similarity) to (no|any) other")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_checks(public_estimator, check, request):
    try:
        check(public_estimator)
    except Exception as error:
        # from 1.7 on, scikit-learn skips what the installed SciPy cannot dispatch
        if isinstance(error, ImportError) and "array API specification" in str(error):
            pytest.skip(str(error))
        # to format what nobody reads takes longer
        if request.node.get_closest_marker("xfail"):
            raise error.with_traceback(None) from None
        raise


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings(
    "ignore:X (has|does not have valid) feature names:UserWarning"
)
def test_checks_that_scikit_learn_keeps_for_itself(default_clusterer):
    settings = {
        name: value for name, value in FEW.items() if hasattr(default_clusterer, name)
    }
    for name in OTHER_CHECKS:
        with named(name):
            estimator = clone(default_clusterer).set_params(**settings)
            getattr(estimator_checks, name)(type(estimator).__name__, estimator)


def test_is_a_clusterer_with_a_documented_page(default_clusterer):
    assert isinstance(default_clusterer, ClusterMixin)
    assert get_tags(default_clusterer).estimator_type == "clusterer"
    for name in default_clusterer.get_params():
        assert f"{name} : " in type(default_clusterer).__doc__


@pytest.mark.sampled(4)
def test_stored_estimators_predict_as_before(public_estimator, make_input, tmp_path):
    X, _ = make_input(public_estimator)
    model = clone(public_estimator).fit(X)
    joblib.dump(model, tmp_path / "model")
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(again.transform(X), model.transform(X))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.sampled(2)
def test_defaults_find_well_separated_clusters(default_clusterer, make_input):
    X, y = make_input(default_clusterer)
    model = default_clusterer.set_params(random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert adjusted_rand_score(y, model.predict(X)) == 1


@pytest.mark.sampled(3)
def test_finds_well_separated_clusters_by_attributes_that_agree(
    public_estimator, make_input
):
    X, y = make_input(public_estimator)
    model = clone(public_estimator).set_params(random_state=0).fit(X)
    assert adjusted_rand_score(y, model.labels_) == 1
    assert adjusted_rand_score(y, model.predict(X)) == 1
    sizes = np.bincount(model.labels_)
    assert sizes.all()
    assert (np.diff(sizes) <= 0).all()
    np.testing.assert_array_equal(model.labels_, model.membership_.argmax(axis=1))
    np.testing.assert_allclose(model.membership_.sum(axis=1), 1)
    if not isinstance(model, BiclusterMixin):
        assert model.core_.shape == (3, 3)
    assert len(model.loss_curve_) == model.n_iter_ + 1
    assert model.loss_ == model.loss_curve_.min()
    np.testing.assert_array_equal(model.loss_curves_[0], model.loss_curve_)


@pytest.mark.sampled(5)
def test_a_clone_is_unfitted_and_fits_to_the_same_by_any_method(
    public_estimator, make_input
):
    X, _ = make_input(public_estimator)
    model = clone(public_estimator).set_params(random_state=0).fit(X)
    again = clone(model)
    assert not hasattr(again, "labels_")
    np.testing.assert_array_equal(again.fit_predict(X), model.labels_)
    np.testing.assert_array_equal(again.membership_, model.membership_)
    np.testing.assert_array_equal(clone(model).fit_transform(X), model.transform(X))


def test_without_samples_an_estimator_says_what_it_wants(public_estimator):
    for method, given in product(("fit", "fit_predict"), ((), (None,))):
        with raises_naming(ValueError, "X") as caught:
            getattr(clone(public_estimator), method)(*given)
        assert_in_our_words(caught)


@pytest.mark.sampled(10)
@pytest.mark.filterwarnings(
    "ignore:The graph of similarities and must-links falls into 3 parts"
)
def test_grid_search_over_the_number_of_clusters(public_estimator, make_input):
    X, y = make_input(public_estimator)
    search = GridSearchCV(
        clone(public_estimator).set_params(random_state=0),
        {"n_clusters": [2, 3]},
        scoring=rand_index,
        cv=KFold(2, shuffle=True, random_state=0),
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_ == {"n_clusters": 3}
    assert search.best_score_ == 1
    assert adjusted_rand_score(y, search.best_estimator_.labels_) == 1


@pytest.mark.sampled(5)
def test_cross_validation_cuts_both_axes_of_a_pairwise_input_and_one_of_others(
    public_estimator, make_input
):
    X, y = make_input(public_estimator)
    pairwise = get_tags(public_estimator).input_tags.pairwise
    found = cross_validate(
        clone(public_estimator).set_params(random_state=0),
        X,
        y,
        cv=KFold(3, shuffle=True, random_state=0),
        scoring=rand_index,
        return_estimator=True,
        error_score="raise",
    )
    for fitted in found["estimator"]:
        assert fitted.labels_.shape == (40,)
        assert fitted.n_features_in_ == (40 if pairwise else X.shape[1])
    np.testing.assert_allclose(found["test_score"], 1)


# --- what a mode of NMFConsensus adds ----------------------------------------------------------


class Recorder(NMFConsensus):
    """Keeps what `fit` was given."""

    def fit(self, X, y=None, *, partitions=None):
        super().fit(X, partitions=partitions)
        self.given_ = X, partitions
        return self


@pytest.fixture
def blobs_and_table():
    X, y = make_blobs(60, centers=np.eye(3) * 10, random_state=0)
    # the first column names the sample, so that a test sees which rows arrived
    partitions, _ = make_partitions(
        (20, 20, 20), n_partitions=6, noise=0.1, random_state=0
    )
    order = np.argsort(y, kind="stable")
    partitions[order] = partitions.copy()
    return X, y, np.column_stack([np.arange(60), partitions])


@pytest.mark.sampled(2)
def test_partitions_are_cut_by_cross_validation_one_row_a_sample(
    blobs_and_table, routing
):
    X, y, table = blobs_and_table
    model = Recorder(3, random_state=0)
    if routing:
        model.set_fit_request(partitions=True)
    found = cross_validate(
        model,
        np.column_stack([X, np.arange(60)]),
        y,
        params={"partitions": table},
        cv=KFold(3, shuffle=True, random_state=0),
        scoring=rand_index,
        return_estimator=True,
        error_score="raise",
    )
    for fitted in found["estimator"]:
        rows, partitions = fitted.given_
        np.testing.assert_array_equal(partitions[:, 0], rows[:, -1])


@pytest.mark.sampled(2)
def test_partitions_reach_the_last_step_of_a_pipeline(blobs_and_table, routing):
    X, _, table = blobs_and_table
    last = Recorder(3, random_state=0)
    if routing:
        model = make_pipeline(StandardScaler(), last.set_fit_request(partitions=True))
        model.fit(X, partitions=table)
    else:
        model = make_pipeline(StandardScaler(), last)
        model.fit(X, recorder__partitions=table)
    np.testing.assert_array_equal(last.given_[1], table)
    direct = NMFConsensus(3, random_state=0).fit(
        StandardScaler().fit_transform(X), partitions=table
    )
    np.testing.assert_array_equal(
        model.predict(X), direct.predict(StandardScaler().fit_transform(X))
    )


@pytest.mark.sampled(2)
def test_partitions_through_a_pipeline_in_a_grid_search(blobs_and_table, routing):
    X, y, table = blobs_and_table
    last = NMFConsensus(3, random_state=0)
    if routing:
        last.set_fit_request(partitions=True)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), last),
        {"nmfconsensus__n_clusters": [2, 3]},
        scoring=rand_index,
        cv=KFold(3, shuffle=True, random_state=0),
        error_score="raise",
    )
    search.fit(
        X, y, **{"partitions" if routing else "nmfconsensus__partitions": table[:, 1:]}
    )
    assert search.best_params_ == {"nmfconsensus__n_clusters": 3}


class LabelTable(TransformerMixin, BaseEstimator):
    """A transformer from features to a table of labels."""

    def __init__(self, n_partitions=5):
        self.n_partitions = n_partitions

    def fit(self, X, y=None):
        self.clusterers_ = [
            KMeans(3 + seed % 3, n_init=3, random_state=seed).fit(X)
            for seed in range(self.n_partitions)
        ]
        return self

    def transform(self, X):
        return np.column_stack([clusterer.predict(X) for clusterer in self.clusterers_])


@pytest.mark.slow
def test_a_label_table_made_inside_a_pipeline(blobs_and_table):
    X, y, _ = blobs_and_table
    model = make_pipeline(
        LabelTable(), NMFConsensus(3, affinity="partitions", random_state=0)
    )
    assert adjusted_rand_score(y, model.fit_predict(X)) == 1
    assert adjusted_rand_score(y, model.predict(X)) == 1
    grid = {"nmfconsensus__n_clusters": [3, 4]}
    search = GridSearchCV(
        model, grid, scoring=smallest_confidence, cv=3, error_score="raise"
    )
    assert search.fit(X).best_params_ == {"nmfconsensus__n_clusters": 3}


def test_a_similarity_made_inside_a_pipeline(blobs_and_table):
    X, y, _ = blobs_and_table
    kernel = FunctionTransformer(lambda X: rbf_kernel(X, X_fit, gamma=0.05))
    X_fit = X
    model = make_pipeline(kernel, NMFConsensus(3, affinity="precomputed")).fit(X)
    assert adjusted_rand_score(y, model.predict(X[::-1])[::-1]) == 1


def test_a_pipeline_can_be_the_base_clusterer(blobs_and_table):
    X, y, _ = blobs_and_table
    base = make_pipeline(StandardScaler(), KMeans(n_init=1))
    model = NMFConsensus(
        3, estimator=base, n_estimators=8, base_n_clusters=4, random_state=0
    )
    model.fit(X)
    assert {len(np.unique(column)) for column in model.partitions_.T} == {4}
    assert adjusted_rand_score(y, model.predict(X)) == 1


def test_parameters_of_the_base_clusterer_can_be_searched(blobs_and_table):
    X, y, _ = blobs_and_table
    model = NMFConsensus(3, estimator=KMeans(n_init=1), n_estimators=5, random_state=0)
    search = GridSearchCV(
        model, {"estimator__max_iter": [1, 50]}, scoring=rand_index, cv=3
    )
    assert set(search.fit(X, y).best_params_) == {"estimator__max_iter"}


@pytest.mark.slow
def test_cross_validation_in_parallel(blobs_and_table):
    for n_jobs in [1, 2]:
        X, y, _ = blobs_and_table
        model = NMFConsensus(3, n_estimators=5, random_state=0)
        cv = KFold(3, shuffle=True, random_state=0)
        scores = cross_val_score(
            model, X, y, cv=cv, scoring="adjusted_rand_score", n_jobs=n_jobs
        )
        np.testing.assert_array_equal(scores, [1, 1, 1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_the_output_are_named_after_the_class(blobs_and_table, library):
    pytest.importorskip(library)
    X, _, _ = blobs_and_table
    model = NMFConsensus(3, n_estimators=5, random_state=0).set_output(
        transform=library
    )
    assert list(model.fit_transform(X).columns) == [
        f"nmfconsensus{c}" for c in range(3)
    ]
    assert isinstance(model.predict(X), np.ndarray)


def test_has_no_score(default_clusterer):
    """Losses of different parameters are no measure of quality: a scorer has to be named."""
    assert not hasattr(default_clusterer, "score")
    with pytest.raises(TypeError, match="scor"):
        GridSearchCV(default_clusterer, {"n_clusters": [2, 3]}).fit(np.eye(6))
