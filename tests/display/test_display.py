"""What all pictures do: where they are drawn, and what they refuse."""

import inspect

import numpy as np
import pytest
from refusals import raises_naming
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from nmfcluster import NMFConsensus, SimilarityFusionNMF, SSNMFClusterer, display
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

matplotlib = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")

CLASSES = [getattr(display, name) for name in display.__all__]
METHODS = [
    getattr(owner, name)
    for owner in CLASSES
    for name in dir(owner)
    if name.startswith("from_")
]

of_estimators = pytest.mark.parametrize(
    "owner",
    [owner for owner in CLASSES if hasattr(owner, "from_estimator")],
    ids=lambda owner: owner.__name__,
)
each_method = pytest.mark.parametrize(
    "method", METHODS, ids=lambda method: method.__qualname__
)


@pytest.fixture(scope="module")
def data(consensus, biclusters, sweep, table):
    """Return the data that every method draws, by the name of the method."""
    X = np.eye(12)[:, :3] + np.arange(12)[:, None] % 3
    models = [
        SimilarityFusionNMF(
            3, eta=eta, affinity=["rbf", "cosine"], n_init=1, random_state=0
        ).fit(X)
        for eta in (0.1, 1.0)
    ]
    search = GridSearchCV(
        KMeans(n_init=1, random_state=0),
        {"n_clusters": [2, 3]},
        scoring=StabilityScorer(3, subsample_size=0.5),
        cv=FullSampleSplit(),
    ).fit(X)
    return {
        "BiclusterDisplay.from_biclusters": (
            table,
            biclusters.rows_,
            biclusters.columns_,
        ),
        "BiclusterDisplay.from_estimator": (biclusters, table),
        "ConsensusMatrixDisplay.from_estimator": (consensus,),
        "ConsensusMatrixDisplay.from_partitions": (
            consensus.partitions_,
            consensus.labels_,
        ),
        "NumberDisplay.from_estimator": (sweep,),
        "SourceWeightsDisplay.from_estimator": (models[0],),
        "SourceWeightsDisplay.from_estimators": (models,),
        "StabilityDisplay.from_estimator": (search,),
    }


@pytest.mark.sampled(4)
@each_method
def test_a_picture_is_drawn_where_it_is_told(method, data):
    ax = matplotlib.figure.Figure().subplots()  # which pyplot does not know
    drawn = method(*data[method.__qualname__], ax=ax)
    assert isinstance(drawn, method.__self__)
    assert drawn.ax_ is ax
    assert drawn.figure_ is ax.figure
    assert plt.get_fignums() == []
    drawn.figure_.draw_without_rendering()
    assert drawn.plot() is drawn  # a figure of its own
    assert drawn.ax_ is not ax
    assert drawn.figure_ is drawn.ax_.figure
    assert len(plt.get_fignums()) == 1


@each_method
@pytest.mark.usefixtures("without_matplotlib")
def test_missing_matplotlib_is_named(method, data):
    with raises_naming(ImportError, 'pip install "nmfcluster[plot]"'):
        method(*data[method.__qualname__])


@of_estimators
def test_an_unfitted_estimator_is_refused(owner, data):
    _, *others = data[f"{owner.__name__}.from_estimator"]
    estimators = [NMFConsensus(2), SSNMFClusterer(2), SimilarityFusionNMF(2)]
    if owner is display.StabilityDisplay:
        estimators = [GridSearchCV(KMeans(), {})]
    if owner is display.NumberDisplay:
        return  # what it shows is not fitted
    for estimator in estimators:
        with pytest.raises(NotFittedError):
            owner.from_estimator(estimator, *others)


@of_estimators
def test_other_objects_are_refused(owner, data):
    _, *others = data[f"{owner.__name__}.from_estimator"]
    models = KMeans(2).fit([[0], [1]]), PCA().fit([[0], [1]])
    for wrong in (*models, PCA, np.eye(3), "model"):
        kind = "PCA" if wrong is PCA else type(wrong).__name__
        with raises_naming(TypeError, "estimator", kind):
            owner.from_estimator(wrong, *others)


@pytest.mark.sampled(2)
@each_method
def test_what_is_no_axes_is_refused_by_name(method, data):
    _, several = plt.subplots(2)
    for wrong in (3, "ax", several, several[0].figure, True):
        with raises_naming(TypeError, "ax"):
            method(*data[method.__qualname__], ax=wrong)
    assert len(plt.get_fignums()) == 1


def test_constructors_name_what_they_cannot_draw():
    places = {"param_name": "k", "values": [2, 3]}
    for kind, given, says in (
        (
            display.StabilityDisplay,
            places | {"scores": None},
            ("scores", "None"),
        ),
        (
            display.StabilityDisplay,
            places | {"scores": [0.5]},
            "scores",
        ),
    ):
        with raises_naming((TypeError, ValueError), says):
            kind(**given).plot()
    assert plt.get_fignums() == []


@each_method
def test_words_are_the_same_in_all_pictures(method, data):
    """What is shown comes first, then its options, and `ax`."""
    first = "estimator" if method.__name__ == "from_estimator" else None
    parameters = list(inspect.signature(method).parameters.values())
    names = [parameter.name for parameter in parameters]
    assert first in (None, names[0])
    assert list(inspect.signature(method.__self__.plot).parameters) == ["self", "ax"]
    assert names[-1] == "ax"
    ax = parameters[-1]
    assert (ax.kind, ax.default) == (ax.KEYWORD_ONLY, None)
    assert "labels" not in names[0]
    with raises_naming(TypeError, "colour"):
        method(*data[method.__qualname__], colour="red")
    assert plt.get_fignums() == []


def test_estimators_draw_themselves(consensus, biclusters, data):
    (fusion,) = data["SourceWeightsDisplay.from_estimator"]
    _, ax = plt.subplots()
    for model, owner in (
        (consensus, display.ConsensusMatrixDisplay),
        (biclusters, display.ConsensusMatrixDisplay),
        (fusion, display.SourceWeightsDisplay),
    ):
        drawn = model.plot(ax=ax)
        assert type(drawn) is owner
        assert drawn.ax_ is ax
        fields = vars(owner.from_estimator(model))
        for name in inspect.signature(owner).parameters:
            np.testing.assert_equal(getattr(drawn, name), fields[name])
    plt.close("all")


def test_estimators_that_are_not_fitted_draw_nothing():
    for model in (NMFConsensus(2), SSNMFClusterer(2), SimilarityFusionNMF(2)):
        with pytest.raises(NotFittedError):
            model.plot()


@pytest.mark.usefixtures("without_matplotlib")
def test_estimators_name_missing_matplotlib(consensus):
    with raises_naming(ImportError, 'pip install "nmfcluster[plot]"'):
        consensus.plot()
