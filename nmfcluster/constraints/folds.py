"""Pairs in folds, each held out together with the pairs that imply it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import minimum_spanning_tree

from nmfcluster._arrays.storage import index_dtype
from nmfcluster.constraints.container import PairwiseConstraints
from nmfcluster.constraints.graph import components
from nmfcluster.constraints.links import Links


class Fold(NamedTuple):
    """A part of the pairs that is kept, and what is asked about."""

    kept: PairwiseConstraints
    asked: tuple[np.ndarray, np.ndarray]  # bool, of all must-links and of all cannot-links


def folds_of_pairs(
    pairs: PairwiseConstraints, n_splits: int, rng: np.random.Generator
) -> Iterator[Fold]:
    """Yield the folds of pairs in which any are asked.

    Must-links that join what others join too are held out with them: the links of a random
    spanning forest are dealt out, and a fold cuts its own. Samples that are then still joined are
    a piece; must-links between two pieces are asked. Cannot-links between the same two pieces are
    kept or held out together. Without chains of pairs each pair is asked in one fold; of a group
    of many must-links a fold keeps fewer than its share, as all links between pieces go.

    Parameters
    ----------
    pairs : PairwiseConstraints
    n_splits : int
        Number of folds, 2 at least.
    rng : Generator

    Yields
    ------
    Fold
    """
    n_samples, must, cannot = len(pairs), pairs.must_link, pairs.cannot_link
    forest = _spanning_forest(n_samples, must, rng)
    cut_in, asked_in = (_dealt(len(links), n_splits, rng) for links in (forest, cannot))
    for fold in range(n_splits):
        piece = components(n_samples, forest[cut_in != fold])
        open_must = piece[must[:, 0]] != piece[must[:, 1]]
        open_cannot = (asked_in == fold)[_first_alike(piece, cannot)]
        kept = pairs._of_links(
            n_samples,
            Links(must[~open_must], pairs.must_link_weights[~open_must]),
            Links(cannot[~open_cannot], pairs.cannot_link_weights[~open_cannot]),
            pairs.index,  # or fit could not put them into the order of its samples
        )
        # a cannot-link within a piece is contradicted by pairs that are kept
        open_cannot &= piece[cannot[:, 0]] != piece[cannot[:, 1]]
        if open_must.any() or open_cannot.any():
            yield Fold(kept, (open_must, open_cannot))


def _spanning_forest(n_samples: int, links: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return some of the links that join what all of them join, with no cycle among them."""
    if not len(links):
        return links
    order = rng.permutation(len(links)) + 1.0
    ends = links.T.astype(index_dtype(n_samples))  # SciPy 1.13 makes trees of no others
    forest = minimum_spanning_tree(sp.csr_array((order, tuple(ends)), shape=(n_samples, n_samples)))
    return np.column_stack(sp.coo_array(forest).coords)


def _dealt(n_links: int, n_splits: int, rng: np.random.Generator) -> np.ndarray:
    """Return the fold of every link, of which each gets as many as any other, or one more."""
    return rng.permutation(n_links) % n_splits


def _first_alike(piece: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Return for every link the first one that is between the same two pieces."""
    low, high = np.sort(piece[links], axis=1).T
    code = low * len(piece) + high  # one number for two pieces, which are sorted sooner than rows
    _, first, number = np.unique(code, return_index=True, return_inverse=True)
    return first[number]
