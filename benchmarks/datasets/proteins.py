"""Proteins without features: six kinds of links between them, or distances of sequences."""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors

from benchmarks.datasets import read
from benchmarks.datasets.text import counts
from benchmarks.datasets.views import GRAPH, Views
from nmfcluster import SimilarityStack
from nmfcluster.affinity import make_affinity

NAMES = {
    "yeast_mips3": "a STAND-IN for the kernels of the paper: six kinds of links of STRING",
    "protein213": "distances of globins, at three widths and as a graph of neighbours",
}
WIDTHS = (0.1, 0.3, 1.0)  # times the median distance


def load(name: str) -> Views:
    data = read(name)
    stack = links(data) if name == "yeast_mips3" else by_width(data["X"])
    kernels = {
        "normalised": partial(normalised, stack),
        "as given": partial(SimilarityStack, stack),
    }
    if name == "protein213":
        kernels[GRAPH] = partial(near, stack)
    title = f"{name} (stand-in)" if name == "yeast_mips3" else name
    return Views(title, stack, data["y"], note=NAMES[name], kernels=kernels)


def links(data: dict[str, np.ndarray]) -> SimilarityStack:
    """Return a sparse source for each kind of link; a protein without links has a row of zeros."""
    names = data["view_names"]
    parts = [
        {part: data[f"V{i}_{part}"] for part in ("data", "indices", "indptr", "shape")}
        for i in range(len(names))
    ]
    return SimilarityStack(
        [counts(part) for part in parts], names=list(map(str, names))
    )


def by_width(D: np.ndarray) -> SimilarityStack:
    """Return ``exp(-d / width)`` for each width, and the self-tuned graph of neighbours."""
    median = np.median(D[np.triu_indices(len(D), 1)])
    sources = [np.exp(-D / (width * median)) for width in WIDTHS]
    names = [f"width {width:g}" for width in WIDTHS]
    return SimilarityStack([*sources, neighbours(D)], names=[*names, "neighbours"])


def neighbours(D: np.ndarray, n_neighbors: int = 10) -> sp.csr_array:
    """Return the graph that `make_affinity` makes from features, without a diagonal."""
    search = NearestNeighbors(n_neighbors=n_neighbors, metric="precomputed").fit(D)
    distances, nearest = search.kneighbors()
    scales = distances[:, -1]
    weights = np.exp(-(distances**2) / (scales[:, None] * scales[nearest]))
    rows = np.repeat(np.arange(len(D)), n_neighbors)
    graph = sp.csr_array((weights.ravel(), (rows, nearest.ravel())), shape=D.shape)
    return graph.maximum(graph.T)


def near(stack: SimilarityStack) -> SimilarityStack:
    """Return normalised graphs of neighbours, which the last source names, by every source."""
    sources = stack.filled()
    pairs = sources[-1] > 0
    graphs = [sp.csr_array(pairs.multiply(source)) for source in sources]
    return normalised(SimilarityStack(graphs, names=stack.names))


def normalised(stack: SimilarityStack) -> SimilarityStack:
    """Return ``D^-1/2 W D^-1/2`` with diagonal 0 of each source W, as normalised cut takes it."""
    made = [
        make_affinity(W, "precomputed", normalize=True).block() for W in stack.filled()
    ]
    return SimilarityStack(made, names=stack.names)
