"""Samples with several views: each view is a set of features, or a similarity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.preprocessing import scale

from benchmarks.datasets import Dataset, read
from nmfcluster import SimilarityStack
from nmfcluster.affinity import make_affinity

GRAPH = "neighbours"  # the similarity that all methods get where there are features


@dataclass(frozen=True)
class Views(Dataset):
    """Samples with several sources of similarity.

    X holds the features of all views side by side, and `columns` the slice of X of each view.
    Without features, X is a `SimilarityStack` and `columns` is empty. Each entry of `kernels`
    makes the sources in another way; all methods are compared on the first.
    """

    columns: tuple[slice, ...] = ()
    kernels: dict[str, Callable[[], SimilarityStack]] = field(default_factory=dict)

    @property
    def views(self) -> list[Any]:
        """The features of every view; empty without features."""
        return [self.X[:, columns] for columns in self.columns]


def of_features(
    name: str,
    views: Sequence[Any],
    names: Sequence[str],
    y: np.ndarray,
    note: str,
    kernels: Sequence[str],
) -> Views:
    """Return a data set with a neighbour graph and kernels; views are all dense or all sparse."""
    ends = np.cumsum([0, *(view.shape[1] for view in views)])
    columns = tuple(slice(int(a), int(b)) for a, b in pairwise(ends))
    X = sp.csr_array(sp.hstack(views)) if sp.issparse(views[0]) else np.hstack(views)
    parts = list(zip(map(str, names), columns, strict=True))
    made = {GRAPH: partial(kernels_of, X, parts, "nearest_neighbors", normalize=True)}
    made |= {kernel: partial(kernels_of, X, parts, kernel) for kernel in kernels}
    return Views(name, X, y, note=note, columns=columns, kernels=made)


def described(name: str, note: str, kernels: Sequence[str]) -> Views:
    """Return stored views of dense features, each scaled to equal spread."""
    data = read(name)
    names = data["view_names"]
    views = [scale(data[f"V{i}"].astype(float)) for i in range(len(names))]
    return of_features(name, views, names, data["y"], note, kernels)


def kernels_of(
    X: Any, parts: Sequence[tuple[str, slice]], kernel: str, normalize: bool = False
) -> SimilarityStack:
    """Return the stack of one kernel of every view."""
    made = [
        make_affinity(X[:, own], kernel, normalize=normalize).block()
        for _, own in parts
    ]
    return SimilarityStack(made, names=[name for name, _ in parts])
