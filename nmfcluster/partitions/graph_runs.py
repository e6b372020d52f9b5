"""The default base partitions: factorizations of a few graphs of the samples.

K-means, on features or on eigenvectors, often splits the largest cluster before it finds a small
one. A factorization of a graph of neighbours does so less often. A few graphs, with few to many
neighbours, are made once, together with their leading eigenvectors. Every run factorizes one of the
graphs, with its own samples and number of clusters. This takes a few dozen sparse products.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nmfcluster._optim.initialization import leading_eigenpairs, rotate_to_axes
from nmfcluster._optim.symmetric import Problem, updated_factor
from nmfcluster._utils.labels import one_hot, to_smallest_int
from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.parallel import one_thread, run_calls
from nmfcluster._utils.storage import row_blocks
from nmfcluster._utils.validation import make_rng
from nmfcluster.affinity import normalize_similarity
from nmfcluster.similarity import Explicit
from nmfcluster.similarity.neighbors import (
    Landmarks,
    NeighborGraph,
    NeighborSearch,
    default_n_neighbors,
    suits_neighbor_graph,
)

# neighbours in each graph, as multiples of the default for a single graph
_NEIGHBOR_FACTORS = (0.6, 1.0, 1.5, 2.2, 4.0)
# number of landmarks in each graph, if there are so many samples that landmarks are needed: on six
# data sets of 5,000 to 10,000 samples, this is better than three graphs of 2,000 landmarks
_N_LANDMARKS = (500, 1_000, 2_000)
_NEAREST_LANDMARKS = 5  # landmarks that a sample is joined to
# largest number of samples in the graphs: of more, some are drawn at random, and the others are
# labelled like new ones
_MAX_SAMPLES = 10_000
# share of these samples in a run, so that runs differ, and largest number of samples in a run
_SHARE = 0.6
_MAX_RUN_SAMPLES = 3_000
# smallest number of samples per cluster in a run, if there are enough samples
_MIN_PER_CLUSTER = 2
# updates in a run: it starts near its solution, and more updates split large clusters
_N_UPDATES = 10
# largest number of votes for new samples that are held at a time: 64 MiB of float64
_MAX_VOTES = 2**23


class Neighbors(NamedTuple):
    """The neighbours of new samples in a graph: samples of the graph, or landmarks.

    Attributes
    ----------
    rows : callable
        Returns the weights of the neighbours of new samples.
    project : callable
        Takes a matrix with a row for every sample of the graph, and returns the matrix that these
        weights are multiplied by.
    search : NeighborSearch or None
        The search of neighbours that all graphs share.
    features : ndarray of int or None
        The features of the distances; None stands for all.
    n_features : int
        Number of these features.
    """

    rows: Any
    project: Any
    search: Any
    features: Any
    n_features: int


class Graph(NamedTuple):
    """A graph of distinct samples with its leading eigenpairs.

    Attributes
    ----------
    similarity : Similarity of shape (n_rows, n_rows)
    values : ndarray of shape (n_pairs,)
    vectors : ndarray of shape (n_rows, n_pairs)
    neighbors : Neighbors
    """

    similarity: Any
    values: Any
    vectors: Any
    neighbors: Neighbors


class GraphFactorization:
    """A base partition: the clusters of a factorized graph.

    Every new sample takes the cluster to whose members, among its neighbours in the graph, it has
    the largest total similarity.

    Attributes
    ----------
    n_clusters : int
    row_labels : ndarray of shape (n_rows,), int
        Clusters of the samples of the graph.
    n_features_in_ : int
        Number of features of the run.
    """

    def __init__(self, neighbors, n_clusters, row_labels):
        self.n_features_in_ = neighbors.n_features
        self.neighbors = neighbors
        self.n_clusters = n_clusters
        self.row_labels = row_labels

    def __repr__(self):
        return f"GraphFactorization(n_clusters={self.n_clusters})"

    def predict(self, X):
        """Return the clusters of validated new samples with the features of the run."""
        return predict_runs([self], X, has_all=False)[:, 0]


def run_graphs(X, runs, n_jobs, after_each=None):
    """Return the factorization of every run, and the labels of all samples by every run.

    Parameters
    ----------
    X : {ndarray, csr_array} of shape (n_samples, n_features)
        Finite values whose squares can be summed.
    runs : list of BaseRun
        All draw the same number of samples, and of features.
    n_jobs : int or None
        Number of threads. Processes are not used, because the shared graphs are too large to be
        sent to them.
    after_each : callable, default=None
        Called after every run.
    """
    rng = make_rng(runs[0].seed)
    # copies of a sample are one row of the graphs; of very many rows, some are drawn
    order = canonical_order(X)
    rows = order.distinct
    if len(rows) > _MAX_SAMPLES:
        rows = rows[np.sort(rng.permutation(len(rows))[:_MAX_SAMPLES])]
    points = X[rows]
    # runs on drawn features need graphs of their own; other runs share a few graphs
    n_kinds = len(_NEIGHBOR_FACTORS)
    if not suits_neighbor_graph(points):
        n_kinds = len(_N_LANDMARKS)
    n_graphs = min(n_kinds if runs[0].features is None else len(runs), len(runs))
    kinds = []
    for number in range(n_graphs):
        most = max(run.n_clusters for run in runs[number::n_graphs])
        seed = int(rng.randint(np.iinfo(np.int32).max))
        kinds.append((number % n_kinds, runs[number].features, most, seed))
    fewest = min(run.n_clusters for run in runs)
    with one_thread():  # the number of threads would decide ties and last bits
        search = None
        if runs[0].features is None and suits_neighbor_graph(points):
            n_nearest = _n_neighbors(len(rows), fewest, -1) + 1
            search = NeighborSearch(points, n_nearest)
            if len(rows) > 1:  # find them once, before several threads need them
                search.nearest_of_own(n_nearest)
        graphs = run_calls(
            _make_graph, (points, search, fewest), kinds, n_jobs, require="sharedmem"
        )
        calls = []
        for t, run in enumerate(runs):
            drawn = None
            if run.samples is not None:
                drawn = np.isin(
                    rows, order.distinct[order.distinct_inverse[run.samples]]
                )
            calls.append((graphs[t % n_graphs], run, drawn))
        found = run_calls(_run, (), calls, n_jobs, after_each, require="sharedmem")
        # label all samples like new ones, so that `predict` returns the same labels
        labels = predict_runs(found, X[order.distinct])
    return found, labels[order.distinct_inverse]


def _n_neighbors(n_rows, n_clusters, kind):
    """Return the number of neighbours in a graph; the last kind has the most."""
    usual = default_n_neighbors(n_rows, n_clusters)
    return max(round(usual * _NEIGHBOR_FACTORS[kind]), 1)


def _make_graph(points, search, n_clusters, kind, features, n_pairs, seed):
    """Return a graph of samples, with its leading eigenpairs.

    Parameters
    ----------
    points : {ndarray, csr_array} of shape (n_rows, n_features)
        The distinct samples.
    search : NeighborSearch or None
    n_clusters : int
        The smallest number of clusters of a run.
    kind : int
        Index of the number of neighbours, or of landmarks.
    features : ndarray of int or None
    n_pairs : int
        Number of eigenpairs.
    seed : int
    """
    if features is not None:
        points = points[:, features]
    n_rows = points.shape[0]
    if suits_neighbor_graph(points):
        n_neighbors = _n_neighbors(n_rows, n_clusters, kind)
        graph = NeighborGraph(points, n_neighbors, max_parts=n_clusters, search=search)
        A, scale = normalize_similarity(Explicit(graph.array), keeps_diagonal=True)
        rows = graph.between
        project: Any = partial(np.multiply, scale[:, None])
    else:
        n_landmarks = _N_LANDMARKS[kind]
        landmarks = Landmarks(points, n_landmarks, _NEAREST_LANDMARKS, seed, n_clusters)
        A = landmarks.similarity
        rows = landmarks.rows
        project = landmarks.project
    neighbors = Neighbors(rows, project, search, features, points.shape[1])
    values, vectors = leading_eigenpairs(A, min(n_pairs, n_rows))
    return Graph(A, values, vectors, neighbors)


def _run(graph, run, drawn):
    """Factorize a graph on some of its samples, and label the others by their similarity to these.

    `drawn` marks the samples that the run may use; None stands for all.
    """
    rng = make_rng(run.seed)
    n_rows = len(graph.vectors)
    seen = np.arange(n_rows) if drawn is None else np.flatnonzero(drawn)
    k = min(run.n_clusters, len(graph.values), len(seen))
    # draw samples
    size = max(int(_SHARE * len(seen)), _MIN_PER_CLUSTER * k)
    size = min(size, _MAX_RUN_SAMPLES, len(seen))
    sample = np.sort(rng.permutation(seen)[:size])
    # factorize their similarities, starting from eigenvectors of the whole graph
    A = graph.similarity
    problem = Problem(A.take(sample))
    H = rotate_to_axes(graph.values[:k], graph.vectors[sample, :k], k).astype(A.dtype)
    of_sample = updated_factor(problem.objective, H, _N_UPDATES).argmax(axis=1)
    # other samples take the cluster that they are most similar to; a part of the graph without
    # a drawn sample becomes a cluster of its own
    votes = np.zeros((n_rows, k), dtype=A.dtype)
    votes[sample] = one_hot(of_sample, k)
    is_labelled = votes.any(axis=1)
    while True:
        spread = A @ votes
        reached = ~is_labelled & spread.any(axis=1)
        if not reached.any():
            break
        votes[reached] = one_hot(spread[reached].argmax(axis=1), k)
        is_labelled |= reached
    labels = votes.argmax(axis=1)
    if A.parts is not None and not is_labelled.all():
        labels[~is_labelled] = k + A.parts[~is_labelled]
    labels = np.unique(labels, return_inverse=True)[1]
    return GraphFactorization(
        graph.neighbors, int(labels.max()) + 1, to_smallest_int(labels)
    )


def predict_runs(runs, X, has_all=True):
    """Return the clusters of new samples by every run, (n_new, n_runs).

    X is validated. It has all features or, if `has_all` is False, those of the runs.
    """
    labels = np.empty((X.shape[0], len(runs)), dtype=np.int64)
    # runs of a graph share its votes, and graphs share the search of neighbours
    of_graph: dict = {}
    for t, run in enumerate(runs):
        of_graph.setdefault(id(run.neighbors), []).append(t)
    # compute the votes of neighbours for the clusters of all runs of each graph
    votes = []
    for members in of_graph.values():
        own = [
            one_hot(runs[t].row_labels, runs[t].n_clusters, X.dtype) for t in members
        ]
        votes.append(runs[members[0]].neighbors.project(np.hstack(own)))
    n_most = max(of_members.shape[1] for of_members in votes)
    search = runs[0].neighbors.search
    for block in row_blocks(len(labels), max(_MAX_VOTES // n_most, 1)):
        options = {} if search is None else {"nearest": search.kneighbors(X[block])}
        for members, of_members in zip(of_graph.values(), votes, strict=True):
            neighbors = runs[members[0]].neighbors
            new = X[block]
            if has_all and neighbors.features is not None:
                new = new[:, neighbors.features]
            shares = neighbors.rows(new, **options) @ of_members
            start = 0
            for t in members:
                stop = start + runs[t].n_clusters
                labels[block, t] = shares[:, start:stop].argmax(axis=1)
                start = stop
    return labels
