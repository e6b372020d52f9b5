"""Forty things that users of scikit-learn do with a clusterer, each a function that checks itself.

``python tests/newcomer_tasks.py`` does all of them; names after it: these alone. Every function
imports what its user would, and ends in assertions about what came out.
"""

import re
import sys
import time

# What a task may want that users need not have: sklearn.callback is of scikit-learn 1.9, and rich
# draws its bar.
OPTIONAL = {"anndata", "matplotlib", "pandas", "polars", "rich", "sklearn.callback"}


# --- scikit-learn's ways -------------------------------------------------------------------------


def scale_in_a_pipeline():
    """Bring features to one scale and cluster them, in one estimator."""
    from sklearn.datasets import load_wine
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from nmfcluster import SSNMFClusterer
    from nmfcluster.metrics import clustering_accuracy

    X, y = load_wine(return_X_y=True)
    model = Pipeline([("scale", StandardScaler()), ("cluster", SSNMFClusterer(3, random_state=0))])
    labels = model.fit_predict(X)
    assert labels.shape == (178,)
    assert clustering_accuracy(y, labels) > 0.9
    assert clustering_accuracy(y, SSNMFClusterer(3, random_state=0).fit_predict(X)) < 0.8


def clone_and_change_parameters():
    """Copy an estimator without its fit, and change what it was made with."""
    from sklearn.base import clone
    from sklearn.datasets import load_iris

    from nmfcluster import NMFConsensus

    X = load_iris().data
    model = NMFConsensus(n_clusters=3, n_estimators=10, random_state=0).fit(X)
    copy = clone(model).set_params(n_clusters=2)
    assert not hasattr(copy, "labels_")
    assert copy.get_params() == model.get_params() | {"n_clusters": 2}
    assert copy.fit(X).membership_.shape == (150, 2)
    assert model.membership_.shape == (150, 3)  # the first one has not changed


def save_and_load():
    """Write fitted estimators to files, and predict with what is read."""
    import io
    import pickle

    import joblib
    from sklearn.datasets import load_iris

    from nmfcluster import NMFConsensus, NMFMetaCluster, SSNMFClusterer

    X = load_iris().data
    for model in (NMFConsensus(3, n_estimators=10), SSNMFClusterer(3), NMFMetaCluster(3)):
        file = io.BytesIO()  # as a name of a file
        joblib.dump(model.set_params(random_state=0).fit(X), file)
        file.seek(0)
        for loaded in (joblib.load(file), pickle.loads(pickle.dumps(model))):
            assert (loaded.labels_ == model.labels_).all()
            assert (loaded.predict(X) == model.predict(X)).all()


def run_in_parallel():
    """Use two jobs, and get the same numbers."""
    import joblib
    from sklearn.datasets import load_digits

    from nmfcluster import NMFConsensus, NMFMetaCluster, SSNMFClusterer

    X = load_digits().data[:500]
    runs = NMFMetaCluster(5, n_estimators=4)
    for model in (NMFConsensus(10, n_estimators=10), SSNMFClusterer(10), runs):
        one = model.set_params(random_state=0, n_jobs=1).fit(X).membership_
        with joblib.parallel_config("threading"):  # so little is not worth starting processes
            two = model.set_params(n_jobs=2).fit(X).membership_
        assert one.shape == (500, model.n_clusters)
        assert (one == two).all()  # to the last bit


def repeat_with_a_seed():
    """Get the same clusters again by `random_state`, an int, a RandomState or a Generator."""
    import numpy as np
    from sklearn.datasets import load_wine

    from nmfcluster import NMFConsensus

    X = load_wine().data
    draws = np.random.default_rng(7)  # every fit draws from it
    first, again, other, one, two = (
        NMFConsensus(3, n_estimators=10, random_state=seed).fit(X)
        for seed in (7, np.random.RandomState(7), 8, draws, draws)
    )
    assert (first.labels_ == again.labels_).all()
    assert (first.partitions_ == again.partitions_).all()
    assert (first.partitions_ != other.partitions_).any()
    assert (one.partitions_ != two.partitions_).any()


def watch_progress():
    """See how far a fit is: lines of a log, or a bar of scikit-learn."""
    import io
    import logging

    from sklearn.callback import ProgressBar
    from sklearn.datasets import load_iris

    from nmfcluster import NMFMetaCluster

    X, written = load_iris().data, io.StringIO()
    logging.basicConfig(level=logging.INFO, stream=written, force=True)
    model = NMFMetaCluster(3, n_estimators=10, random_state=0)
    labels = model.fit(X).labels_
    logging.basicConfig(level=logging.WARNING, force=True)
    assert written.getvalue().count("NMFMetaCluster: ") >= 3
    assert (model.set_callbacks(ProgressBar()).fit(X).labels_ == labels).all()


def predict_new_samples():
    """Label samples that were not there when the model was fitted."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    from nmfcluster import NMFConsensus
    from nmfcluster.metrics import clustering_accuracy

    X, new, _, truth = train_test_split(*load_digits(return_X_y=True), random_state=0)
    model = NMFConsensus(10, random_state=0).fit(X)
    assert clustering_accuracy(truth, model.predict(new)) > 0.75
    assert abs(model.transform(new).sum(axis=1) - 1).max() < 1e-9
    assert (model.transform(new).argmax(axis=1) == model.predict(new)).all()


def predict_many_samples():
    """Fit to 2,000 samples and label 50,000."""
    from sklearn.datasets import make_blobs

    from nmfcluster import NMFConsensus, SSNMFClusterer
    from nmfcluster.metrics import clustering_accuracy

    X, y = make_blobs(52_000, centers=5, n_features=8, random_state=0)
    for model in (NMFConsensus(5, n_estimators=20), SSNMFClusterer(5, affinity="landmarks")):
        labels = model.set_params(random_state=0).fit(X[:2000]).predict(X[2000:])
        assert labels.shape == (50_000,)
        assert clustering_accuracy(y[2000:], labels) > 0.99


def make_features_of_a_classifier():
    """Give memberships to a classifier, fitted and scored in one pipeline."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_score
    from sklearn.pipeline import make_pipeline

    from nmfcluster import NMFConsensus

    X, y = load_digits(return_X_y=True)
    clusters = NMFConsensus(20, n_estimators=10, random_state=0)
    scores = cross_val_score(make_pipeline(clusters, LogisticRegression(C=100)), X, y, cv=3)
    assert scores.shape == (3,)
    assert scores.min() > 0.8  # by 20 numbers for a digit, in the place of 64


def score_against_the_truth():
    """Compare clusters with known classes, whatever both are called."""
    from sklearn.datasets import load_iris
    from sklearn.metrics import adjusted_rand_score

    from nmfcluster import NMFConsensus
    from nmfcluster.metrics import clustering_accuracy

    iris = load_iris()
    names = iris.target_names[iris.target]
    labels = NMFConsensus(3, random_state=0).fit_predict(iris.data)
    assert clustering_accuracy(names, labels) > 0.85
    assert clustering_accuracy(names, labels) == clustering_accuracy(iris.target, 2 - labels)
    assert adjusted_rand_score(names, labels) > 0.7


# --- tables of every kind ------------------------------------------------------------------------


def cluster_a_pandas_frame():
    """Give a data frame, and get one back with its index."""
    import pandas as pd
    from sklearn.datasets import load_iris

    from nmfcluster import NMFConsensus

    frame = load_iris(as_frame=True).data.add_prefix("the ")
    frame.index = [f"flower {i}" for i in range(150)]
    model = NMFConsensus(3, n_estimators=10, random_state=0).set_output(transform="pandas")
    shares = model.fit_transform(frame)
    assert isinstance(shares, pd.DataFrame)
    assert list(shares.index) == list(frame.index)
    assert list(shares.columns) == [f"nmfconsensus{c}" for c in range(3)]
    assert list(model.feature_names_in_) == list(frame.columns)
    assert pd.Series(model.labels_, index=frame.index).value_counts()[0] >= 50


def cluster_a_polars_frame():
    """Give a frame of polars, and get one back."""
    import polars as pl
    from sklearn.datasets import load_iris

    from nmfcluster import NMFMetaCluster

    iris = load_iris()
    frame = pl.DataFrame(iris.data, schema=iris.feature_names)
    model = NMFMetaCluster(3, n_estimators=5, random_state=0).set_output(transform="polars")
    usages = model.fit_transform(frame)
    assert isinstance(usages, pl.DataFrame)
    assert usages.columns == [f"nmfmetacluster{c}" for c in range(3)]
    labels = model.labels_
    assert (labels == model.fit(iris.data).labels_).all()  # as those of an array


def cluster_text():
    """Cluster sparse rows of words."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    from nmfcluster import SSNMFClusterer
    from nmfcluster.metrics import clustering_accuracy

    rng = np.random.default_rng(0)
    topics = ["goal match team win coach", "vote party law win debate", "star planet orbit law sky"]
    y = rng.integers(3, size=300)
    texts = [" ".join(rng.choice([*topics[c].split(), "the", "a", "of"], 12)) for c in y]
    cosine = SSNMFClusterer(3, affinity="cosine", normalize=True, random_state=0)
    model = make_pipeline(TfidfVectorizer(), cosine).fit(texts)
    assert clustering_accuracy(y, model[-1].labels_) > 0.95
    assert len(set(model.predict(["the coach of a team", "a star in the sky", "the vote"]))) == 3


def cluster_by_a_similarity():
    """Give a matrix of similarities in the place of features."""
    from sklearn.datasets import make_moons
    from sklearn.metrics.pairwise import rbf_kernel

    from nmfcluster import SSNMFClusterer
    from nmfcluster.metrics import clustering_accuracy

    X, y = make_moons(300, noise=0.05, random_state=0)
    S = rbf_kernel(X[:200], gamma=50)
    model = SSNMFClusterer(2, affinity="precomputed", normalize=True, random_state=0).fit(S)
    assert clustering_accuracy(y[:200], model.labels_) > 0.95
    new = rbf_kernel(X[200:], X[:200], gamma=50)  # rows: new samples
    assert clustering_accuracy(y[200:], model.predict(new)) > 0.95


def cluster_a_table_of_labels():
    """Find the consensus of labels that many people gave, some of them missing."""
    import numpy as np

    from nmfcluster import NMFConsensus
    from nmfcluster.datasets import make_partitions
    from nmfcluster.metrics import clustering_accuracy

    codes, y = make_partitions((90, 40, 20), n_partitions=30, missing=0.5, random_state=0)
    words = np.where(codes < 0, None, np.array(["ape", "bee", "cat"], dtype=object)[codes])
    model = NMFConsensus(3, affinity="partitions", random_state=0).fit(words)
    labels = model.labels_
    assert clustering_accuracy(y, labels) > 0.97
    assert model.agreement_.shape == (30,)
    assert (labels == model.fit(codes).labels_).all()  # whatever labels are called


def agree_with_any_clusterer():
    """Make the consensus of a clusterer of scikit-learn that cannot predict."""
    from sklearn.cluster import AgglomerativeClustering, Birch
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import scale

    from nmfcluster import NMFConsensus
    from nmfcluster.metrics import clustering_accuracy

    X, y = load_wine(return_X_y=True)
    bases = [AgglomerativeClustering(), Birch(threshold=0.1)]
    model = NMFConsensus(3, estimator=bases, n_estimators=20, max_samples=0.8, random_state=0)
    model.fit(scale(X))
    assert [type(base) for base in model.estimators_[:2]] == [type(base) for base in bases]
    assert (model.partitions_ == -1).mean().round(1) == 0.2  # what was not drawn
    assert clustering_accuracy(y, model.labels_) > 0.9
    assert clustering_accuracy(y, model.predict(scale(X))) > 0.9


def fit_to_a_part_of_many_samples():
    """Keep memory small: partitions of a few samples each, similarities of a few objects."""
    from sklearn.datasets import make_blobs

    from nmfcluster import NMFConsensus, SimilarityFusionNMF
    from nmfcluster.metrics import clustering_accuracy

    X, y = make_blobs(20_000, centers=4, n_features=6, random_state=3)
    consensus = NMFConsensus(4, n_estimators=20, max_samples=500, predict_unseen=True)
    fusion = SimilarityFusionNMF(4, max_samples=500)
    assert clustering_accuracy(y, consensus.set_params(random_state=0).fit(X).labels_) > 0.98
    fusion.set_params(random_state=0).fit({"left": X[:, :3], "right": X[:, 3:]})
    assert fusion.sample_indices_.shape == (500,)
    assert clustering_accuracy(y, fusion.labels_) > 0.98


# --- pairs ---------------------------------------------------------------------------------------


def know_some_labels():
    """Give the classes of a few samples, -1 for the others."""
    import numpy as np
    from sklearn.datasets import load_digits

    from nmfcluster import PairwiseConstraints, SSNMFClusterer
    from nmfcluster.metrics import clustering_accuracy

    X, y = load_digits(return_X_y=True)
    known = np.where(np.arange(len(y)) % 18 == 0, y, -1)
    pairs = PairwiseConstraints.from_labels(known)
    assert pairs.n_pairs == 100 * 99 / 2
    model = SSNMFClusterer(10, random_state=0).fit(X, constraints=pairs)
    assert model.satisfaction_ > 0.98
    assert clustering_accuracy(y[known < 0], model.labels_[known < 0]) > 0.9


def name_pairs_by_rows():
    """Say which rows of a frame belong together by their names."""
    from sklearn.datasets import load_iris

    from nmfcluster import PairwiseConstraints, SSNMFClusterer

    frame = load_iris(as_frame=True).data
    frame.index = [f"flower {i}" for i in range(150)]
    together, apart = [("flower 70", "flower 133")], [("flower 0", "flower 50")]
    pairs = PairwiseConstraints.from_ids(frame, must_link=together, cannot_link=apart)
    model = SSNMFClusterer(3, random_state=0).fit(frame, constraints=pairs)
    assert pairs.must_link.tolist() == [[70, 133]]
    assert model.labels_[70] == model.labels_[133]
    assert model.labels_[0] != model.labels_[50]


def know_groups():
    """Say which samples are of one group, as visits of one patient are."""
    import numpy as np
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import scale

    from nmfcluster import PairwiseConstraints, SSNMFClusterer
    from nmfcluster.metrics import clustering_accuracy

    X, y = load_wine(return_X_y=True)
    groups = [np.flatnonzero(y == c)[start : start + 5] for c in range(3) for start in (0, 20)]
    pairs = PairwiseConstraints.from_groups(groups, n_samples=len(X))
    model = SSNMFClusterer(3, random_state=0).fit(scale(X), constraints=pairs)
    assert pairs.n_pairs == 6 * 10
    assert all(len(set(model.labels_[group])) == 1 for group in groups)
    assert clustering_accuracy(y, model.labels_) > 0.95


def see_which_pairs_contradict():
    """Be told by name which pairs cannot all be right."""
    from sklearn.datasets import load_iris

    from nmfcluster import SSNMFClusterer

    together, apart = [(3, 14), (14, 15), (60, 70)], [(15, 3), (60, 120)]
    try:
        SSNMFClusterer(3).fit(load_iris().data, must_link=together, cannot_link=apart)
    except ValueError as error:
        message = str(error)
    assert all(str(sample) in message for sample in (3, 14, 15))
    assert "60" not in message
    assert "contradictions" in message  # what to do about it


def let_pairs_be_wrong():
    """Give pairs of which a tenth is wrong, and see which ones are suspicious."""
    import numpy as np
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import scale

    from nmfcluster import PairwiseConstraints, SSNMFClusterer
    from nmfcluster.metrics import clustering_accuracy

    X, y = load_wine(return_X_y=True)
    i, j = np.random.default_rng(0).permuted(np.tile(np.arange(178), (2, 2)), axis=1)
    together = (y[i] == y[j]) ^ (np.arange(356) % 10 == 0)
    pairs = PairwiseConstraints(178, np.c_[i, j][together], np.c_[i, j][~together])
    model = SSNMFClusterer(3, contradictions="ignore", random_state=0)
    suspicious = model.fit(scale(X), constraints=pairs).violated_must_link_
    wrong = pairs.must_link[y[pairs.must_link[:, 0]] != y[pairs.must_link[:, 1]]]
    found = {*map(tuple, wrong.tolist())} & {*map(tuple, suspicious.tolist())}
    assert len(found) > 0.8 * max(len(wrong), len(suspicious))
    assert clustering_accuracy(y, model.labels_) > 0.95


def ask_for_pairs():
    """Let the model say which pairs to ask about, and answer ten times five."""
    import numpy as np
    from sklearn.datasets import load_iris

    from nmfcluster import PairwiseConstraints, SSNMFClusterer
    from nmfcluster.constraints import next_pairs
    from nmfcluster.metrics import clustering_accuracy

    X, y = load_iris(return_X_y=True)
    model, answered = SSNMFClusterer(3, random_state=0).fit(X), np.empty((0, 2), int)
    before = clustering_accuracy(y, model.labels_)
    for _ in range(10):
        answered = np.vstack([answered, next_pairs(model, X, 5)])
        same = y[answered[:, 0]] == y[answered[:, 1]]
        pairs = PairwiseConstraints(150, answered[same], answered[~same])
        model.fit(X, constraints=pairs)
    assert pairs.n_pairs == 50
    assert clustering_accuracy(y, model.labels_) > max(before, 0.95)


# --- parameters ----------------------------------------------------------------------------------


def search_alpha():
    """Choose the weight of soft must-links by pairs that are held out."""
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV

    from nmfcluster import PairwiseConstraints, SSNMFClusterer
    from nmfcluster.metrics import clustering_accuracy
    from nmfcluster.model_selection import FullSampleSplit, HeldOutPairsScorer

    X, y = load_iris(return_X_y=True)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=100, random_state=0)
    model = SSNMFClusterer(3, hard_must_link=False, random_state=0)
    held_out, all_samples = HeldOutPairsScorer(), FullSampleSplit()
    search = GridSearchCV(model, {"alpha": [0.25, 1, 50]}, scoring=held_out, cv=all_samples)
    search.fit(X, pairs, constraints=pairs)
    assert search.best_params_["alpha"] < 50
    assert clustering_accuracy(y, search.best_estimator_.labels_) > 0.9


def search_beta():
    """Choose the weight of cannot-links by the pairs among samples that are held out."""
    from sklearn.datasets import load_iris
    from sklearn.model_selection import GridSearchCV, ShuffleSplit

    from nmfcluster import PairwiseConstraints, SSNMFClusterer
    from nmfcluster.model_selection import ConstraintScorer

    X, y = load_iris(return_X_y=True)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=300, random_state=0)
    halves = ShuffleSplit(3, test_size=0.5, random_state=0)
    model, scorer = SSNMFClusterer(3, random_state=0), ConstraintScorer()
    search = GridSearchCV(model, {"beta": [0.5, 3]}, scoring=scorer, cv=halves)
    search.fit(X, pairs, constraints=pairs)
    assert search.best_score_ > 0.85
    assert search.best_estimator_.satisfaction_ > 0.95


def search_eta():
    """Choose how even the weights of several similarities are, without labels."""
    import numpy as np
    from sklearn.datasets import load_wine
    from sklearn.model_selection import GridSearchCV
    from sklearn.preprocessing import scale

    from nmfcluster import KernelStack, SimilarityFusionNMF
    from nmfcluster.metrics import clustering_accuracy
    from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

    X, y = load_wine(return_X_y=True)
    parts = [(name, "rbf", slice(*at)) for name, at in {"must": (0, 5), "rest": (5, 13)}.items()]
    stack = KernelStack(parts).fit_transform(scale(X))
    stable, grid = StabilityScorer(4, subsample_size=0.8), {"eta": [np.inf, 1, 0.1]}
    search = GridSearchCV(SimilarityFusionNMF(3), grid, scoring=stable, cv=FullSampleSplit())
    search.fit(stack)
    assert search.best_score_ > 0.5
    assert clustering_accuracy(y, search.best_estimator_.labels_) > 0.9


def search_the_number_of_clusters():
    """Choose the number of clusters of clusterers by stability, the simplest of equal ones."""
    from sklearn.cluster import KMeans
    from sklearn.datasets import make_blobs
    from sklearn.model_selection import GridSearchCV

    from nmfcluster import NMFConsensus
    from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

    X, _ = make_blobs(200, centers=4, random_state=1)
    for model in (KMeans(n_init=3), NMFConsensus(2, n_estimators=5)):
        model.set_params(random_state=0)
        stable, grid = StabilityScorer(6, subsample_size=0.5), {"n_clusters": [2, 3, 4, 5]}
        search = GridSearchCV(model, grid, scoring=stable, cv=FullSampleSplit()).fit(X)
        assert search.best_params_ == {"n_clusters": 4}


def route_metadata():
    """Give constraints once to a search over a pipeline: the routing hands them on."""
    import sklearn
    from sklearn.datasets import load_wine
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from nmfcluster import PairwiseConstraints, SSNMFClusterer
    from nmfcluster.model_selection import FullSampleSplit, HeldOutPairsScorer

    X, y = load_wine(return_X_y=True)
    pairs, cv = PairwiseConstraints.from_labels(y, 60, random_state=0), FullSampleSplit()
    model = make_pipeline(StandardScaler(), SSNMFClusterer(3, random_state=0))
    grid, scorer = {"ssnmfclusterer__n_neighbors": [10, 40]}, HeldOutPairsScorer(3)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(model, grid, scoring=scorer, cv=cv).fit(X, constraints=pairs)
    assert search.best_estimator_[-1].constraints_ == pairs
    assert search.best_score_ > 0.9


def choose_the_number_by_features():
    """Ask how many clusters there are in features, if any."""
    import numpy as np
    from sklearn.datasets import make_blobs

    from nmfcluster import NMFConsensus
    from nmfcluster.model_selection import choose_n_clusters

    X, _ = make_blobs(300, centers=4, random_state=8)
    model = NMFConsensus(2, n_estimators=10, random_state=0)
    chosen = choose_n_clusters(model, X, range(1, 8), random_state=0)
    assert chosen.n_clusters_ == 4
    assert chosen.best_estimator_.membership_.shape == (300, 4)
    none = np.random.default_rng(0).normal(size=(300, 2))
    assert choose_n_clusters(model, none, range(1, 8), random_state=0).n_clusters_ == 1


def choose_the_number_by_similarities():
    """Ask how many clusters several similarities show."""
    from sklearn.datasets import make_blobs
    from sklearn.metrics.pairwise import rbf_kernel

    from nmfcluster import SimilarityFusionNMF, SimilarityStack
    from nmfcluster.model_selection import choose_n_clusters

    X, _ = make_blobs(200, centers=3, n_features=4, random_state=0)
    stack = SimilarityStack([rbf_kernel(X[:, :2]), rbf_kernel(X[:, 2:])])
    chosen = choose_n_clusters(SimilarityFusionNMF(2), stack, range(2, 6), random_state=0)
    assert chosen.n_clusters_ == 3
    assert chosen.method == "stability"
    assert chosen.table["as_good"].shape == (4,)


def choose_the_number_under_constraints():
    """Ask how many clusters there are, where some pairs are known."""
    from sklearn.datasets import load_iris

    from nmfcluster import PairwiseConstraints, SSNMFClusterer
    from nmfcluster.model_selection import choose_n_clusters

    X, y = load_iris(return_X_y=True)
    pairs = PairwiseConstraints.from_labels(y, n_pairs=300, random_state=0)
    # two clusters contradict them; they are right all the same
    model = SSNMFClusterer(2, contradictions="ignore", hard_must_link=True, random_state=0)
    known = {"constraints": pairs}
    chosen = choose_n_clusters(model, X, range(2, 6), fit_params=known, random_state=0)
    assert chosen.n_clusters_ == 3
    assert chosen.best_estimator_.constraints_ == pairs


# --- counts --------------------------------------------------------------------------------------


def find_programs_in_counts():
    """Take counts apart into programs, with the names of rows and columns."""
    import pandas as pd

    from nmfcluster import NMFMetaCluster
    from nmfcluster.datasets import make_signatures
    from nmfcluster.metrics import match_components

    X, _, H = make_signatures(n_signatures=4, random_state=0)
    counts = pd.DataFrame(X).add_prefix("kind ").rename(index="tumour {}".format)
    model = NMFMetaCluster(4, loss="kullback-leibler", n_estimators=10, random_state=0).fit(counts)
    usages, programs = model.to_frames()
    assert list(usages.index) == list(counts.index)
    assert list(programs.columns) == list(counts.columns)
    assert match_components(H, programs.to_numpy())[1].min() > 0.9
    assert model.recurrence_.min() > 0.8


def find_programs_in_anndata():
    """Ask which programs of single cells two patients share, and keep them with the cells."""
    import numpy as np
    import scipy.sparse as sp
    from anndata import AnnData

    from nmfcluster.anndata import programs
    from nmfcluster.datasets import make_programs
    from nmfcluster.metrics import match_components

    X, _, H = make_programs(200, 100, 4, depth=700, random_state=0)
    adata = AnnData(sp.csr_matrix(X.astype(np.float32)))
    adata.obs["patient"] = ["Ann", "Bob"] * 100
    model = programs(adata, 4, batch_key="patient", n_estimators=5, random_state=0)
    assert model.shared_.all()
    assert adata.obsm["X_nmf"].shape == (200, 4)
    assert match_components(H, adata.varm["nmf"].T)[1].min() > 0.8


def sweep_the_number_of_programs():
    """Ask by held-out counts how many programs there are."""
    from nmfcluster import NMFMetaCluster
    from nmfcluster.datasets import make_signatures
    from nmfcluster.model_selection import sweep_n_clusters

    X, _, _ = make_signatures(n_signatures=4, random_state=0)
    model = NMFMetaCluster(4, loss="kullback-leibler", n_estimators=5, random_state=0)
    sweep = sweep_n_clusters(model, X, range(3, 6), n_folds=3, random_state=0)
    assert sweep.n_clusters_ == 4
    assert sweep.best_estimator_.components_.shape == (4, 96)
    assert sweep.table["recurrence"].shape == (3,)


def weigh_samples():
    """Let samples count less, or not at all."""
    import numpy as np

    from nmfcluster import NMFMetaCluster
    from nmfcluster.datasets import make_biclusters
    from nmfcluster.metrics import match_components

    X, _, H = make_biclusters((60, 35), random_state=0)
    wild = 20 * np.random.default_rng(0).uniform(size=(10, 35))  # rows that are broken
    table, weights = np.vstack([X, wild]), np.repeat([1.0, 0.0], [60, 10])
    model = NMFMetaCluster(4, n_estimators=10, random_state=0)
    assert match_components(H, model.fit(table).components_)[1].min() < 0.9
    weighted = model.fit(table, sample_weight=weights)
    assert match_components(H, weighted.components_)[1].min() > 0.95


def keep_known_programs():
    """Find what is there besides programs that are known."""
    import numpy as np

    from nmfcluster import NMFMetaCluster
    from nmfcluster.datasets import make_signatures
    from nmfcluster.metrics import match_components

    X, _, H = make_signatures(n_signatures=4, random_state=0)
    model = NMFMetaCluster(4, loss="kullback-leibler", n_estimators=10, random_state=0)
    model.set_params(fixed_components=H[:2]).fit(X)
    _, cosines = match_components(H, model.components_)
    assert np.allclose(cosines[:2], 1)
    assert cosines.min() > 0.9


# --- several sources -----------------------------------------------------------------------------


def fuse_views():
    """Cluster by several tables of the same objects, some missing from some of them."""
    import pandas as pd
    from sklearn.datasets import load_wine

    from nmfcluster import SimilarityFusionNMF
    from nmfcluster.metrics import clustering_accuracy

    frame, y = load_wine(return_X_y=True, as_frame=True)
    frame = ((frame - frame.mean()) / frame.std()).rename(index="wine {}".format)
    truth = y.rename(index="wine {}".format)
    must, phenols, hue = frame.iloc[40:, :5], frame.iloc[::-1, 5:9], frame.iloc[:150, 9:]
    views = {"must": must, "phenols": phenols, "hue": hue}
    model = SimilarityFusionNMF(3).fit(views)
    found = pd.Series(model.labels_, index=model.sample_names_)
    assert set(found.index) == set(frame.index)
    assert clustering_accuracy(truth[found.index], found) > 0.9
    new = {name: view.loc[["wine 50", "wine 99"]] for name, view in views.items()}
    assert model.predict(new).tolist() == found[["wine 50", "wine 99"]].tolist()


def cross_validate_stacks():
    """Split similarities, or views, in a cross-validation."""
    from sklearn.datasets import load_wine
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.model_selection import KFold, cross_val_predict
    from sklearn.preprocessing import scale

    from nmfcluster import SimilarityFusionNMF, SimilarityStack
    from nmfcluster.metrics import clustering_accuracy
    from nmfcluster.stack import ViewStack

    X, y = load_wine(return_X_y=True)
    views = ViewStack({"left": scale(X)[:, :6], "right": scale(X)[:, 6:]})
    stack = SimilarityStack([rbf_kernel(view) for view in views.views])
    folds = KFold(3, shuffle=True, random_state=0)  # the wines are in the order of their classes
    for data in (views, stack):
        labels = cross_val_predict(SimilarityFusionNMF(3), data, y, cv=folds)
        assert all(clustering_accuracy(y[p], labels[p]) > 0.8 for _, p in folds.split(y))


# --- pictures ------------------------------------------------------------------------------------


def draw_fits():
    """Draw what fitted estimators found."""
    from sklearn.datasets import load_iris

    import nmfcluster as nc
    from nmfcluster import display

    X = load_iris().data
    consensus = nc.NMFConsensus(3, n_estimators=10, random_state=0).fit(X)
    fusion = nc.SimilarityFusionNMF(3).fit({"sepal": X[:, :2], "petal": X[:, 2:]})
    programs = nc.NMFMetaCluster(3, n_estimators=5, random_state=0).fit(X)
    picture = display.ConsensusMatrixDisplay.from_estimator(consensus)
    assert picture.ax_.get_figure() is picture.figure_
    assert display.SourceWeightsDisplay.from_estimator(fusion).ax_.has_data()
    assert display.BiclusterDisplay.from_estimator(programs, X).ax_.has_data()


def draw_choices():
    """Draw what speaks for a number of clusters."""
    from sklearn.cluster import KMeans
    from sklearn.datasets import make_blobs
    from sklearn.model_selection import GridSearchCV

    from nmfcluster import NMFMetaCluster, display
    from nmfcluster import model_selection as ms

    X, _ = make_blobs(200, centers=3, center_box=(5, 20), random_state=0)
    clusterer, grid = KMeans(n_init=3, random_state=0), {"n_clusters": [2, 3, 4]}
    search = GridSearchCV(clusterer, grid, scoring=ms.StabilityScorer(5), cv=ms.FullSampleSplit())
    chosen = ms.choose_n_clusters(clusterer, X, [1, 2, 3, 4], random_state=0)
    runs = NMFMetaCluster(2, n_estimators=4, random_state=0)
    sweep = ms.sweep_n_clusters(runs, X, [2, 3], method="recurrence", random_state=0)
    assert display.StabilityDisplay.from_estimator(search.fit(X)).values == [2, 3, 4]
    assert display.NumberDisplay.from_estimator(chosen).ax_.has_data()
    assert list(display.NumberDisplay.from_estimator(sweep).table["n_clusters"]) == [2, 3]


TASKS = {
    name: task
    for name, task in list(globals().items())
    if callable(task) and getattr(task, "__module__", None) == __name__
}


def lacking(error):
    """Return what an ImportError asks for, if users need not have it; else None."""
    named = {error.name, *re.findall(r"[\w.]*\w", str(error))}
    return min(named & OPTIONAL, default=None)


def main(names):
    """Do tasks, all by default, and say how each went; return the number that failed."""
    unknown = [name for name in names if name not in TASKS]
    if unknown:
        raise SystemExit(f"there is no task {unknown[0]!r}; the tasks are: {', '.join(TASKS)}")
    failed = 0
    for name in names or TASKS:
        start = time.perf_counter()
        try:
            TASKS[name]()
            said = "done"
        except Exception as error:
            wanted = lacking(error) if isinstance(error, ImportError) else None
            said = f"left out: {wanted} is not installed"
            if wanted is None:
                failed, said = failed + 1, f"FAILED: {type(error).__name__}: {error}"
        print(f"{name:36} {time.perf_counter() - start:5.1f} s  {said}", flush=True)
    return failed


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, whose dask would be taken for the library
    sys.exit(main(sys.argv[1:]) > 0)
