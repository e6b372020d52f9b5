"""Groups of samples that belong together: read, checked, and made into pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._arrays.arguments import check_count, counted, shown
from nmfcluster.constraints.links import Links, closed_links, distinct_pairs, pair_numbered
from nmfcluster.constraints.reading import positions_of

_FORM = "groups must be a sequence of groups, each a sequence of samples"


def read_groups(groups: Any, n_samples: int | None, ids: Any, apart: Any) -> np.ndarray:
    """Return the number of the group of every sample, from 0; -1: in none.

    Parameters
    ----------
    groups : sequence of sequences, or mapping to them
    n_samples : int or None
    ids : sequence of hashable, pandas Index, pandas DataFrame or None
    apart : bool
        Checked only.

    Returns
    -------
    ndarray of shape (n_samples,), int
    """
    if (n_samples is None) == (ids is None):
        given = "none" if ids is None else "both"
        raise TypeError(f"either n_samples or ids must be given, got {given} of them.")
    if not isinstance(apart, bool | np.bool_):
        raise TypeError(f"apart must be a bool, got {shown(apart)}.")
    located: Callable[[Any], np.ndarray]
    named: Callable[[int], Any]
    if ids is None:
        check_count(n_samples, "n_samples", 0)
        n_samples = int(n_samples)  # type: ignore[arg-type]  # it is counted
        located, named = _by_index(n_samples), int
    else:
        position = positions_of(ids)
        n_samples, located = len(position), _by_id(position)
        named = list(position).__getitem__
    codes = np.full(n_samples, -1, dtype=np.intp)
    for number, members in enumerate(_members(groups)):
        samples = located(members)
        taken = samples[codes[samples] >= 0]
        if len(taken):
            raise ValueError(
                f"groups must not share samples, but {named(int(taken[0]))!r} is in groups "
                f"{codes[taken[0]]} and {number}: make one group of them."
            )
        codes[samples] = number
    return codes


def _members(groups: Any) -> Iterator[Any]:
    """Yield the groups; raise unless each is a sequence."""
    if isinstance(groups, str | bytes) or not hasattr(groups, "__iter__"):
        raise TypeError(f"{_FORM}; got {shown(groups)}.")
    for members in groups.values() if isinstance(groups, Mapping) else groups:
        single = isinstance(members, str | bytes | Mapping) or not hasattr(members, "__len__")
        if single or getattr(members, "shape", None) == () or sp.issparse(members):
            raise TypeError(f"{_FORM}; got the group {shown(members)}.")
        yield list(members) if isinstance(members, Set) else members


def _by_index(n_samples: int) -> Callable[[Any], np.ndarray]:
    def located(members: Any) -> np.ndarray:
        if not len(members):
            return np.empty(0, dtype=np.intp)
        try:
            table = np.asarray(members)
        except ValueError:  # lists of different lengths
            table = np.empty((0, 0))
        if table.ndim != 1 or table.dtype.kind not in "iu":
            raise TypeError(
                f"groups must hold indices of samples, integers, got the group {shown(members)}; "
                "names are read with ids=X.index instead of n_samples."
            )
        bad = (table < 0) | (table >= n_samples)
        if bad.any():
            raise ValueError(
                f"groups must hold indices from 0 to {n_samples - 1}, below n_samples, got "
                f"{table[bad][0]}."
            )
        return table.astype(np.intp)

    return located


def _by_id(position: dict[Any, int]) -> Callable[[Any], np.ndarray]:
    def located(members: Any) -> np.ndarray:
        try:
            unknown = [name for name in members if name not in position]
        except TypeError:
            raise TypeError(f"groups must hold hashable ids, got {shown(members)}.") from None
        if unknown:
            raise ValueError(
                f"groups must hold ids of samples, but {unknown[0]!r} is not among the "
                f"{counted(len(position), 'id')}."
            )
        return np.array([position[name] for name in members], dtype=np.intp)

    return located


def links_of_groups(codes: np.ndarray, apart: bool) -> tuple[Links, Links]:
    """Return all pairs within groups, and where they are `apart` all pairs between them.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,), int
        Number of the group of every sample, from 0; -1: in none.
    apart : bool

    Returns
    -------
    must, cannot : Links
        All pairs of weight 1.
    """
    order = np.argsort(codes, kind="stable")
    order = order[codes[order] >= 0]
    new = np.diff(codes[order], prepend=-1) > 0
    chained = np.column_stack([order[:-1], order[1:]])[~new[1:]]
    first = order[new]
    n_apart = len(first) * (len(first) - 1) // 2 if apart else 0
    between = first[pair_numbered(np.arange(n_apart))]
    alone = codes.max(initial=-1) + 1 + np.arange(len(codes))
    own = np.where(codes < 0, alone, codes)
    own = np.unique(own, return_inverse=True)[1]
    must, cannot = (distinct_pairs(pairs, np.ones(len(pairs))) for pairs in (chained, between))
    closed = closed_links(must, cannot, own)
    must, cannot = (Links(links.pairs, np.ones(len(links.pairs))) for links in closed)
    return must, cannot
