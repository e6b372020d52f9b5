"""What all pictures do: where they are drawn, and what they refuse."""

import inspect

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from nmfcluster import NMFConsensus, SimilarityFusionNMF, SSNMFClusterer, display
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer, choose_n_clusters

matplotlib = pytest.importorskip("matplotlib")
plt = pytest.importorskip("matplotlib.pyplot")

CLASSES = [getattr(display, name) for name in display.__all__]
METHODS = [
    getattr(owner, name) for owner in CLASSES for name in dir(owner) if name.startswith("from_")
]

each_class = pytest.mark.parametrize("owner", CLASSES, ids=lambda owner: owner.__name__)
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__qualname__)


@pytest.fixture(scope="module")
def data(consensus, constrained, biclusters, sweep, table, results_of):
    """Return the data that every method draws, by the name of the method."""
    X = np.eye(12)[:, :3] + np.arange(12)[:, None] % 3
    models = [
        SimilarityFusionNMF(3, eta=eta, affinity=["rbf", "cosine"], n_init=1, random_state=0).fit(X)
        for eta in (0.1, 1.0)
    ]
    search = GridSearchCV(
        KMeans(n_init=1, random_state=0),
        {"n_clusters": [2, 3]},
        scoring=StabilityScorer(3, subsample_size=0.5),
        cv=FullSampleSplit(),
    ).fit(X)
    chosen = choose_n_clusters(KMeans(n_init=1), X, range(1, 5), random_state=0)
    return {
        "BiclusterDisplay.from_biclusters": (table, biclusters.rows_, biclusters.columns_),
        "BiclusterDisplay.from_estimator": (biclusters, table),
        "ClusterSweepDisplay.from_estimator": (sweep,),
        "ClusterSweepDisplay.from_estimators": ([biclusters],),
        "ClusterTrackingDisplay.from_estimator": (consensus,),
        "ClusterTrackingDisplay.from_estimators": ([consensus],),
        "ClusterTrackingDisplay.from_predictions": ({"all": consensus.labels_},),
        "ConsensusCDFDisplay.from_estimator": (consensus,),
        "ConsensusCDFDisplay.from_estimators": ([consensus],),
        "ConsensusCDFDisplay.from_partitions": ({"all": consensus.partitions_},),
        "ConsensusMatrixDisplay.from_estimator": (consensus,),
        "ConsensusMatrixDisplay.from_matrix": (consensus.consensus_matrix(), consensus.labels_),
        "ConsensusMatrixDisplay.from_partitions": (consensus.partitions_, consensus.labels_),
        "ConstraintDisplay.from_estimator": (constrained,),
        "ConstraintDisplay.from_predictions": (constrained.labels_, constrained.constraints_),
        "LossCurveDisplay.from_estimator": (consensus,),
        "MembershipDisplay.from_estimator": (consensus,),
        "MembershipDisplay.from_matrix": (consensus.membership_,),
        "NumberDisplay.from_estimator": (chosen,),
        "SourceWeightsDisplay.from_estimator": (models[0],),
        "SourceWeightsDisplay.from_estimators": (models,),
        "StabilityDisplay.from_cv_results": (results_of({"eta": [1, 2]}),),
        "StabilityDisplay.from_estimator": (search,),
    }


@each_class
def test_given_axes_are_used(owner, data):
    figure, axes = plt.subplots(1, 2)
    drawn = owner.from_estimator(*data[f"{owner.__name__}.from_estimator"], ax=axes[1])
    assert isinstance(drawn, owner)
    assert drawn.ax_ is axes[1]
    assert drawn.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert not axes[0].has_data()
    figure.canvas.draw()


@each_method
def test_a_figure_is_made(method, data):
    drawn = method(*data[method.__qualname__])
    first = drawn.ax_
    assert drawn.figure_ is first.figure
    again = drawn.plot()
    assert again is drawn
    assert drawn.ax_ is not first
    assert len(plt.get_fignums()) == 2


@each_method
def test_a_figure_without_pyplot_will_do(method, data):
    ax = matplotlib.figure.Figure().subplots()
    drawn = method(*data[method.__qualname__], ax=ax)
    assert isinstance(drawn, method.__self__)
    assert drawn.ax_ is ax
    assert drawn.figure_ is ax.figure
    assert plt.get_fignums() == []


@each_method
def test_unknown_keywords_are_refused(method, data):
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        method(*data[method.__qualname__], colour="red")
    assert plt.get_fignums() == []


@each_method
@pytest.mark.usefixtures("without_matplotlib")
def test_missing_matplotlib_is_named(method, data):
    with pytest.raises(ImportError, match=r'pip install "nmfcluster\[plot\]"'):
        method(*data[method.__qualname__])


@each_class
def test_an_unfitted_estimator_is_refused(owner, data):
    _, *others = data[f"{owner.__name__}.from_estimator"]
    searched = owner is display.StabilityDisplay
    estimators = [NMFConsensus(2), SSNMFClusterer(2), SimilarityFusionNMF(2)]
    for estimator in [GridSearchCV(KMeans(), {})] if searched else estimators:
        with pytest.raises(NotFittedError):
            owner.from_estimator(estimator, *others)


@each_class
@pytest.mark.parametrize(
    "wrong",
    [KMeans(2).fit([[0], [1]]), PCA().fit([[0], [1]]), PCA, np.eye(3), "model"],
    ids=["KMeans", "PCA", "class", "array", "str"],
)
def test_other_objects_are_refused(owner, wrong, data):
    _, *others = data[f"{owner.__name__}.from_estimator"]
    if owner is display.ClusterTrackingDisplay and isinstance(wrong, KMeans):
        assert list(owner.from_estimator(wrong).labels) == ["2 clusters"]  # of any clusterer
        return
    with pytest.raises(TypeError, match=rf"estimator must be .*, got {type(wrong).__name__}: \w"):
        owner.from_estimator(wrong, *others)


@each_method
def test_words_are_the_same_in_all_pictures(method):
    """What is shown comes first, then its options, `ax`, and the style, as `plot` has it."""
    first = "estimator" if method.__name__ == "from_estimator" else None
    parameters = list(inspect.signature(method).parameters.values())
    names = [parameter.name for parameter in parameters]
    assert first in (None, names[0])
    style = inspect.signature(method.__self__.plot).parameters
    assert next(iter(style.values())).name == "self"
    assert list(style)[1] == "ax"
    assert ("style" in names) == (len(style) > 2)
    assert names[-2 if "style" in names else -1] == "ax"
    ax = parameters[names.index("ax")]
    assert (ax.kind, ax.default) == (ax.KEYWORD_ONLY, None)
    assert "predictions" in method.__name__ or "labels" not in names[0]
