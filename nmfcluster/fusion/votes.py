"""Which sources count: those that agree with others."""

from math import fsum
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nmfcluster._arrays.arguments import counted, shown, warn
from nmfcluster.fusion.residuals import AGREE, Agreement


def shares_of_votes(same: np.ndarray) -> np.ndarray:
    """Return how much of a vote every source has, (L,): 1, or with others that are next to equal.

    Parameters
    ----------
    same : ndarray of shape (L, L), bool
        Which sources are next to equal.
    """
    part = _parts(same)
    return np.asarray(1 / np.bincount(part)[part])


def candidates(found: Agreement, same: np.ndarray, told: np.ndarray) -> list[np.ndarray]:
    """Return which sources can be those that count: masks of shape (L,).

    They are those of the largest group that agree, directly or by a chain. Where several groups
    are as large, it can be any of them, or all; and where no two sources agree, one alone, or all.

    Parameters
    ----------
    found : Agreement
    same : ndarray of shape (L, L), bool
        Which sources are next to equal.
    told : ndarray of shape (L,), bool
        Which sources say something.

    Returns
    -------
    list of ndarray
        The only one where there is no doubt.
    """
    votes = shares_of_votes(same)
    group = _parts((found.scores > AGREE) | same)
    groups = [(group == g) & told for g in np.unique(group[told])]
    sizes = np.round([votes[members].sum() for members in groups])
    largest = [members for members, size in zip(groups, sizes, strict=True) if size == max(sizes)]
    return largest if len(largest) == 1 else [*largest, np.any(largest, axis=0)]


def _parts(joined: np.ndarray) -> np.ndarray:
    return np.asarray(connected_components(sp.csr_array(joined), directed=False)[1])


def warn_of_votes(
    found: Agreement,
    same: np.ndarray,
    options: list[np.ndarray],
    chosen: np.ndarray,
    names: tuple[str, ...],
) -> None:
    """Warn of sources that are next to equal, and where it was in doubt which count."""
    pairs = np.argwhere(np.triu(same, 1))
    if len(pairs):
        one, other = (names[i] for i in pairs[0])
        warn(
            f"{counted(len(pairs), 'pair')} of sources are next to equal, such as {one!r} and "
            f"{other!r}, and share one vote: what is said twice is no evidence. weights= lets "
            "each of them count."
        )
    if len(options) == 1:
        return
    kept = [name for name, counts in zip(names, chosen, strict=True) if counts]
    if max(np.round(shares_of_votes(same)[mask].sum()) for mask in options[:-1]) > 1:
        why = "The sources fall into groups that do not agree with each other, and none is larger"
    else:
        most = float(found.scores[~same].max())
        why = (
            "No two sources agree in more than what chance would make of independent ones: the "
            f"largest of agreement_.scores is {most:.2f}, {AGREE:.0f} is asked"
        )
    warn(
        f"{why}. The clusters are those of {kept}, which stand out most, and may be noise: so few "
        "sources cannot outvote each other. weights= says which to trust."
    )


def weights_of(given: Any, names: tuple[str, ...]) -> np.ndarray | None:
    """Return the user's weights of sources, which sum to 1; None: there are none.

    Parameters
    ----------
    given : array-like of shape (L,), dict or None
        One for each source, or by its name; those that are not named have none.
    names : tuple of str
    """
    if given is None:
        return None
    if isinstance(given, dict):
        if unknown := [name for name in given if name not in names]:
            raise ValueError(f"weights name the source {unknown[0]!r}; there are {list(names)}.")
        given = [given.get(name, 0) for name in names]
    weights = np.asarray(given)
    if weights.shape != (len(names),) or weights.dtype.kind not in "biuf":
        raise ValueError(
            f"weights must be one number for each of the sources {list(names)}, or a dict of these "
            f"names, got {shown(given)}."
        )
    weights = weights.astype(np.float64)
    if not np.isfinite(weights).all() or weights.min() < 0 or not weights.any():
        raise ValueError(f"weights must be finite, at least 0, and not all 0, got {shown(given)}.")
    weights = weights / weights.max()  # whose sum is no overflow
    return np.asarray(weights / fsum(weights))


def check_joined(seen: np.ndarray, names: tuple[str, ...]) -> None:
    """Raise where objects fall into groups that no source has in common.

    Parameters
    ----------
    seen : ndarray of shape (n, L), bool
        Which objects every source saw.
    names : tuple of str
        Of the sources.
    """
    n = len(seen)
    pairs: Any = sp.block_array([[None, sp.csr_array(seen)], [sp.csr_array(seen.T), None]])
    part = connected_components(pairs, directed=False)[1]
    of_sources, sizes = part[n:], np.bincount(part[:n], minlength=part.max() + 1)
    groups = [group for group in np.unique(of_sources) if sizes[group]]
    if len(groups) > 1:
        told = " and ".join(
            f"{counted(int(sizes[group]), 'object')} in "
            f"{[names[i] for i in np.flatnonzero(of_sources == group)]}"
            for group in groups
        )
        raise ValueError(
            f"no source saw objects of more than one of these groups: {told}. The clusters of one "
            "cannot be matched with those of another: fit each group alone, or add a source that "
            "saw objects of both."
        )
