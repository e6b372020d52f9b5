"""The pictures of the README and the home page: ``python docs/home_pictures.py [FOLDER]``.

They show what the code beside them computes. The rows and columns of the biclusters are shuffled
first. The picture of the digits is not made here: the first command of the README makes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits, make_blobs, make_moons
from sklearn.metrics import adjusted_rand_score

from nmfcluster import (
    NMFConsensus,
    NMFMetaCluster,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SSNMFClusterer,
)
from nmfcluster.datasets import make_biclusters
from nmfcluster.display import BiclusterDisplay, SourceWeightsDisplay
from nmfcluster.display.style import COLOURS
from nmfcluster.metrics import match_labels
from nmfcluster.model_selection import choose_n_clusters

WIDTH, HEIGHT = 7.2, 2.7  # inches


def seeds() -> plt.Figure:
    """Stretched groups: two seeds of k-means, and the consensus of 50 runs."""
    X, y = make_blobs(500, centers=5, cluster_std=1.2, random_state=20)
    X = X @ [[0.6, -0.6], [-0.4, 0.8]]
    figure, axes = plt.subplots(1, 3, figsize=(9.6, 1.9), layout="constrained")
    clusterers = {
        "k-means, seed 0": KMeans(5, n_init=1, random_state=0),
        "k-means, seed 1": KMeans(5, n_init=1, random_state=1),
        "NMFConsensus of 50 runs": NMFConsensus(5, random_state=0),
    }
    for ax, (name, clusterer) in zip(axes, clusterers.items(), strict=True):
        labels = clusterer.fit_predict(X)
        _points(ax, X, match_labels(labels, y))
        score = adjusted_rand_score(y, labels)
        ax.set_title(f"{name}: ARI {score:.2f}", fontsize="medium")
    return figure


def pairs() -> plt.Figure:
    """Two moons that touch, without pairs and with 50."""
    X, y = make_moons(400, noise=0.2, random_state=1)
    known = PairwiseConstraints.from_labels(y, n_pairs=50, random_state=0)
    figure, axes = _axes()
    for ax, constraints in zip(axes, (None, known), strict=True):
        model = SSNMFClusterer(2, random_state=0).fit(X, constraints=constraints)
        _points(ax, X, match_labels(model.labels_, y))
        score = adjusted_rand_score(y, model.labels_)
        name = "no pairs" if constraints is None else "50 pairs"
        ax.set_title(f"{name}: adjusted Rand index {score:.2f}", fontsize="medium")
    for links, style, label in (
        (known.must_link, "-", "belong together"),
        (known.cannot_link, ":", "belong apart"),
    ):
        # below the points, which lines would hide
        lines = LineCollection(
            X[links], linestyles=style, colors="0.4", linewidths=0.8, zorder=0
        )
        lines.set_label(label)
        axes[1].add_collection(lines)
    figure.legend(loc="outside lower right", ncols=2, fontsize="small", frameon=False)
    return figure


def views() -> plt.Figure:
    """Halves of the digits, and noise: their agreement and their weights."""
    X, _ = load_digits(return_X_y=True)
    noise = np.random.default_rng(0).random((len(X), 20))
    model = SimilarityFusionNMF(10, random_state=0)
    model.fit({"top": X[:, :32], "bottom": X[:, 32:], "noise": noise})
    figure = SourceWeightsDisplay.from_estimator(model).figure_
    figure.set_size_inches(WIDTH, HEIGHT)
    return figure


def biclusters() -> plt.Figure:
    """A data matrix as it is given, and sorted by the biclusters that recur."""
    X, _, _ = make_biclusters(random_state=0)
    rng = np.random.default_rng(0)
    X = X[rng.permutation(len(X))][:, rng.permutation(X.shape[1])]
    model = NMFMetaCluster(4, n_estimators=20, random_state=0).fit(X)
    figure, axes = _axes()
    axes[0].imshow(X, aspect="auto", cmap="Greys", interpolation="none")
    axes[0].set(xticks=[], yticks=[])
    axes[0].set_title("the data matrix", fontsize="medium")
    BiclusterDisplay.from_estimator(model, X, ax=axes[1])
    axes[1].set_title("its four biclusters, from 20 runs", fontsize="medium")
    return figure


def number() -> plt.Figure:
    """Points, and the number of clusters that each of four criteria votes for."""
    X, _ = make_blobs(300, centers=4, random_state=8)
    chosen = choose_n_clusters(KMeans(n_init=3), X, random_state=0)
    figure, axes = _axes()
    _points(axes[0], X, chosen.best_estimator_.labels_)
    chosen.plot(ax=axes[1])
    axes[1].set_title(f"{chosen.n_clusters_} clusters", fontsize="medium")
    return figure


def _axes() -> tuple[plt.Figure, np.ndarray]:
    return plt.subplots(1, 2, figsize=(WIDTH, HEIGHT), layout="constrained")


def _points(ax: plt.Axes, X: np.ndarray, labels: np.ndarray) -> None:
    ax.scatter(*X.T, s=9, c=np.array(COLOURS)[labels], edgecolors="none")
    ax.set(xticks=[], yticks=[])


def main(folder: str = str(Path(__file__).parent / "images")) -> None:
    for picture in (seeds, pairs, views, biclusters, number):
        figure = picture()
        figure.savefig(
            Path(folder) / f"home-{picture.__name__}.png", dpi=110, facecolor="white"
        )
        plt.close(figure)


if __name__ == "__main__":
    main(*sys.argv[1:])
