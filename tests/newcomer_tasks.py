"""Twenty things that users do first, each a function that checks itself.

``python tests/newcomer_tasks.py`` does all of them; names after it: these alone. Every function
imports what its user would, and ends in assertions about what came out.
"""

import re
import sys
import time

# What a task may want that users need not have.
OPTIONAL = {"anndata", "matplotlib", "pandas"}


# --- what users of scikit-learn do with any estimator ---------------------------------------------


def scale_in_a_pipeline():
    """Bring features to one scale and cluster them, in one estimator."""
    from sklearn.datasets import load_wine
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from nmfcluster import SSNMFClusterer
    from nmfcluster.metrics import clustering_accuracy

    X, y = load_wine(return_X_y=True)
    model = Pipeline(
        [("scale", StandardScaler()), ("cluster", SSNMFClusterer(3, random_state=0))]
    )
    labels = model.fit_predict(X)
    assert labels.shape == (178,)
    assert clustering_accuracy(y, labels) > 0.9
    assert (
        clustering_accuracy(y, SSNMFClusterer(3, random_state=0).fit_predict(X)) < 0.8
    )


def cluster_a_pandas_frame():
    """Give a data frame, and get one back with its index."""
    import pandas as pd
    from sklearn.datasets import load_iris

    from nmfcluster import NMFConsensus

    frame = load_iris(as_frame=True).data.add_prefix("the ")
    frame.index = [f"flower {i}" for i in range(150)]
    model = NMFConsensus(3, n_estimators=10, random_state=0).set_output(
        transform="pandas"
    )
    shares = model.fit_transform(frame)
    assert isinstance(shares, pd.DataFrame)
    assert list(shares.index) == list(frame.index)
    assert list(shares.columns) == [f"nmfconsensus{c}" for c in range(3)]
    assert list(model.feature_names_in_) == list(frame.columns)
    assert pd.Series(model.labels_, index=frame.index).value_counts()[0] >= 50


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


def save_and_load():
    """Write fitted estimators to files, and predict with what is read."""
    import io
    import pickle

    import joblib
    from sklearn.datasets import load_iris

    from nmfcluster import NMFConsensus, NMFMetaCluster, SSNMFClusterer

    X = load_iris().data
    for model in (
        NMFConsensus(3, n_estimators=10),
        SSNMFClusterer(3),
        NMFMetaCluster(3),
    ):
        file = io.BytesIO()  # as a name of a file
        joblib.dump(model.set_params(random_state=0).fit(X), file)
        file.seek(0)
        for loaded in (joblib.load(file), pickle.loads(pickle.dumps(model))):
            assert (loaded.labels_ == model.labels_).all()
            assert (loaded.predict(X) == model.predict(X)).all()


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


# --- one clustering out of many -------------------------------------------------------------------


def agree_with_any_clusterer():
    """Make the consensus of a clusterer of scikit-learn that cannot predict."""
    from sklearn.cluster import AgglomerativeClustering, Birch
    from sklearn.datasets import load_wine
    from sklearn.preprocessing import scale

    from nmfcluster import NMFConsensus
    from nmfcluster.metrics import clustering_accuracy

    X, y = load_wine(return_X_y=True)
    bases = [AgglomerativeClustering(), Birch(threshold=0.1)]
    model = NMFConsensus(
        3, estimator=bases, n_estimators=20, max_samples=0.8, random_state=0
    )
    model.fit(scale(X))
    assert [type(base) for base in model.estimators_[:2]] == [
        type(base) for base in bases
    ]
    assert (model.partitions_ == -2).mean().round(1) == 0.2  # what was not drawn
    assert clustering_accuracy(y, model.labels_) > 0.9
    assert clustering_accuracy(y, model.predict(scale(X))) > 0.9


def cluster_a_table_of_labels():
    """Find the consensus of labels that many people gave, some of them missing."""
    import numpy as np

    from nmfcluster import NMFConsensus
    from nmfcluster.datasets import make_partitions
    from nmfcluster.metrics import clustering_accuracy

    codes, y = make_partitions(
        (90, 40, 20), n_partitions=30, missing=0.5, random_state=0
    )
    words = np.where(
        codes < 0, None, np.array(["ape", "bee", "cat"], dtype=object)[codes]
    )
    model = NMFConsensus(3, affinity="partitions", random_state=0).fit(words)
    labels = model.labels_
    assert clustering_accuracy(y, labels) > 0.97
    assert model.agreement_.shape == (30,)
    assert (labels == model.fit(codes).labels_).all()  # whatever labels are called


def fit_to_a_part_of_many_samples():
    """Keep memory small: partitions of a few samples each, similarities of a few objects."""
    from sklearn.datasets import make_blobs

    from nmfcluster import NMFConsensus, SimilarityFusionNMF
    from nmfcluster.metrics import clustering_accuracy

    X, y = make_blobs(20_000, centers=4, n_features=6, random_state=3)
    consensus = NMFConsensus(4, n_estimators=20, max_samples=500, predict_unseen=True)
    fusion = SimilarityFusionNMF(4, max_samples=500)
    assert (
        clustering_accuracy(y, consensus.set_params(random_state=0).fit(X).labels_)
        > 0.98
    )
    fusion.set_params(random_state=0).fit({"left": X[:, :3], "right": X[:, 3:]})
    assert fusion.sample_indices_.shape == (500,)
    assert clustering_accuracy(y, fusion.labels_) > 0.98


# --- pairs ----------------------------------------------------------------------------------------


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


def cluster_text():
    """Cluster sparse rows of words."""
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_pipeline

    from nmfcluster import SSNMFClusterer
    from nmfcluster.metrics import clustering_accuracy

    rng = np.random.default_rng(0)
    topics = [
        "goal match team win coach",
        "vote party law win debate",
        "star planet orbit law sky",
    ]
    y = rng.integers(3, size=300)
    texts = [
        " ".join(rng.choice([*topics[c].split(), "the", "a", "of"], 12)) for c in y
    ]
    cosine = SSNMFClusterer(3, affinity="cosine", normalize=True, random_state=0)
    model = make_pipeline(TfidfVectorizer(), cosine).fit(texts)
    assert clustering_accuracy(y, model[-1].labels_) > 0.95
    assert (
        len(
            set(model.predict(["the coach of a team", "a star in the sky", "the vote"]))
        )
        == 3
    )


def cluster_by_a_similarity():
    """Give a matrix of similarities in the place of features."""
    from sklearn.datasets import make_moons
    from sklearn.metrics.pairwise import rbf_kernel

    from nmfcluster import SSNMFClusterer
    from nmfcluster.metrics import clustering_accuracy

    X, y = make_moons(300, noise=0.05, random_state=0)
    S = rbf_kernel(X[:200], gamma=50)
    model = SSNMFClusterer(
        2, affinity="precomputed", normalize=True, random_state=0
    ).fit(S)
    assert clustering_accuracy(y[:200], model.labels_) > 0.95
    new = rbf_kernel(X[200:], X[:200], gamma=50)  # rows: new samples
    assert clustering_accuracy(y[200:], model.predict(new)) > 0.95


# --- several views --------------------------------------------------------------------------------


def fuse_views():
    """Cluster by several tables of the same objects, some missing from some of them."""
    import pandas as pd
    from sklearn.datasets import load_wine

    from nmfcluster import SimilarityFusionNMF
    from nmfcluster.metrics import clustering_accuracy

    frame, y = load_wine(return_X_y=True, as_frame=True)
    frame = ((frame - frame.mean()) / frame.std()).rename(index="wine {}".format)
    truth = y.rename(index="wine {}".format)
    must, phenols, hue = (
        frame.iloc[40:, :5],
        frame.iloc[::-1, 5:9],
        frame.iloc[:150, 9:],
    )
    views = {"must": must, "phenols": phenols, "hue": hue}
    model = SimilarityFusionNMF(3).fit(views)
    found = pd.Series(model.labels_, index=model.sample_names_)
    assert set(found.index) == set(frame.index)
    assert clustering_accuracy(truth[found.index], found) > 0.9
    new = {name: view.loc[["wine 50", "wine 99"]] for name, view in views.items()}
    assert model.predict(new).tolist() == found[["wine 50", "wine 99"]].tolist()


# --- runs of NMF ----------------------------------------------------------------------------------


def find_programs_in_counts():
    """Take counts apart into programs, with the names of rows and columns."""
    import pandas as pd

    from nmfcluster import NMFMetaCluster
    from nmfcluster.datasets import make_signatures
    from nmfcluster.metrics import match_components

    X, _, H = make_signatures(n_signatures=4, random_state=0)
    counts = pd.DataFrame(X).add_prefix("kind ").rename(index="tumour {}".format)
    model = NMFMetaCluster(
        4, loss="kullback-leibler", n_estimators=10, random_state=0
    ).fit(counts)
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


# --- how many -------------------------------------------------------------------------------------


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
        raise SystemExit(
            f"there is no task {unknown[0]!r}; the tasks are: {', '.join(TASKS)}"
        )
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
