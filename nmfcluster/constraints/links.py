"""Pairs of samples with weights, in one form: copied, closed, made of labels and of groups."""

from typing import Any, NamedTuple

import numpy as np

from nmfcluster._utils.validation import Seed, check_count, generator_of


class Links(NamedTuple):
    """Pairs of samples of one kind, and what it costs to violate each."""

    pairs: np.ndarray  # (n_pairs, 2) int, i < j, sorted, distinct
    weights: np.ndarray  # (n_pairs,) float64, positive, finite
    hard: np.ndarray  # (n_pairs,) bool: not to be violated, as opposed to soft

    def where(self, mask: np.ndarray) -> "Links":
        """Return some of the pairs, by a mask."""
        return Links(*(part[mask] for part in self))


Both = tuple[Links, Links]  # must-links, cannot-links

NO_LINKS = Links(np.empty((0, 2), dtype=np.intp), np.empty(0), np.empty(0, dtype=bool))


def distinct_pairs(pairs: np.ndarray, weights: Any = 1.0, hard: Any = True) -> Links:
    """Return every pair once, as (i, j) with i <= j and sorted; of equal ones a hard one counts.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2), int
    weights : ndarray of shape (n_pairs,), float64, or float
        Of equal pairs that are both hard, or both soft, the largest counts.
    hard : ndarray of shape (n_pairs,), bool, or bool

    Returns
    -------
    Links
    """
    pairs = np.sort(pairs, axis=1)
    weights, hard = (np.broadcast_to(part, len(pairs)) for part in (weights, hard))
    order = np.lexsort((weights, hard, pairs[:, 1], pairs[:, 0]))
    last = np.ones(len(pairs), dtype=bool)  # among equal pairs
    last[:-1] = (pairs[order][1:] != pairs[order][:-1]).any(axis=1)
    return Links(pairs, weights, hard).where(order[last])


def copied_pairs(
    pairs: np.ndarray, origin: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of copies: all (a, b) with ``(origin[a], origin[b])`` a pair.

    Parameters
    ----------
    pairs : ndarray of shape (n_pairs, 2), int
    origin : ndarray of shape (n_copies,), int
        The sample that every copy is of; a sample may have no copy, one or many.

    Returns
    -------
    copies : ndarray of shape (n_copied_pairs, 2), int
    source : ndarray of shape (n_copied_pairs,), int
        ``pairs[source]`` are the pairs that they are copies of.
    """
    highest = max(pairs.max(initial=-1), origin.max(initial=-1))
    counts = np.bincount(origin, minlength=highest + 1)
    starts, by_origin = np.cumsum(counts) - counts, np.argsort(origin, kind="stable")
    one, other = pairs.T
    numbers = counts[one] * counts[other]
    source = np.repeat(np.arange(len(pairs)), numbers)
    position = np.arange(len(source)) - np.repeat(np.cumsum(numbers) - numbers, numbers)
    row, column = np.divmod(position, counts[other[source]])
    copies = [
        by_origin[starts[one[source]] + row],
        by_origin[starts[other[source]] + column],
    ]
    return np.column_stack(copies), source


def links_among(samples: np.ndarray, links: Links) -> Links:
    """Return the pairs with both ends among some samples, by the positions of these.

    Parameters
    ----------
    samples : ndarray of shape (n_taken,), int
        A sample that occurs several times has its pairs at every position.
    links : Links

    Returns
    -------
    Links
    """
    pairs, source = copied_pairs(links.pairs, samples)
    return distinct_pairs(pairs, links.weights[source], links.hard[source])


def closed_links(must: Links, cannot: Links, group: np.ndarray) -> Both:
    """Return all pairs that follow from pairs, hard ones of which do not contradict each other.

    Parameters
    ----------
    must : Links
    cannot : Links
    group : ndarray of shape (n_samples,), int
        Numbers from 0 of the groups of samples that hard must-link pairs join.

    Returns
    -------
    must : Links
        All pairs within a group, which are hard, and all between two groups that a soft must-link
        pair connects. They share the weights of the given pairs there evenly.
    cannot : Links
        All pairs between two groups that a cannot-link pair connects, with its weight so shared.
    """
    one, other = group[cannot.pairs].T
    apart = cannot.where(one != other)  # a soft one inside a group cannot be had
    return _between(must, group), _between(apart, group)


def _between(links: Links, group: np.ndarray) -> Links:
    """Return all pairs of samples in groups that links connect, which share their weights."""
    sizes = np.bincount(group)
    ends = np.sort(group[links.pairs], axis=1)
    ends, number = np.unique(ends, axis=0, return_inverse=True)
    number, (one, other) = number.ravel(), ends.T
    n_pairs = np.where(
        one == other, sizes[one] * (sizes[one] - 1) / 2, sizes[one] * sizes[other]
    )
    shares = np.bincount(number, links.weights, minlength=len(ends)) / n_pairs
    hard = np.bincount(number, links.hard, minlength=len(ends)) > 0
    pairs, source = copied_pairs(ends, group)
    once = (pairs[:, 0] < pairs[:, 1]) | (one != other)[source]
    return distinct_pairs(pairs[once], shares[source[once]], hard[source[once]])


def links_of_labels(codes: np.ndarray, n_pairs: int | None, random_state: Seed) -> Both:
    """Return pairs of samples whose class is known, of weight 1: of equal classes, of others.

    Parameters
    ----------
    codes : ndarray of shape (n_samples,), int
        Numbers of the classes from 0; -1: not known.
    n_pairs : int or None
        Number of pairs to draw, all sets of pairs with the same chance; None: all pairs.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    must : Links
    cannot : Links
    """
    known = np.flatnonzero(codes >= 0)
    total = len(known) * (len(known) - 1) // 2
    if n_pairs is None:
        numbers = np.arange(total)
    else:
        rng = generator_of(random_state)
        check_count(n_pairs, "n_pairs", 0)
        if n_pairs > total:
            pairs_of = (
                f"the number of pairs of the {len(known)} samples whose label is known"
            )
            raise ValueError(
                f"n_pairs must be at most {total}, {pairs_of}, got {n_pairs}."
            )
        numbers = _distinct_numbers(rng, total, n_pairs)
    pairs = known[pair_numbered(numbers)]
    same = codes[pairs[:, 0]] == codes[pairs[:, 1]]
    return distinct_pairs(pairs[same]), distinct_pairs(pairs[~same])


def links_of_groups(codes: np.ndarray, apart: bool) -> Both:
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
    if apart:
        return links_of_labels(codes, None, None)
    members = np.flatnonzero(codes >= 0)
    numbers = np.unique(codes[members])
    pairs, _ = copied_pairs(np.column_stack([numbers, numbers]), codes[members])
    return distinct_pairs(members[pairs[pairs[:, 0] < pairs[:, 1]]]), NO_LINKS


def _distinct_numbers(
    rng: np.random.RandomState, total: int, n_drawn: int
) -> np.ndarray:
    """Draw distinct numbers below `total`, all sets of them with the same chance."""
    if (
        3 * n_drawn > total
    ):  # a list of all is then short, and draws would often repeat others
        return rng.permutation(total)[:n_drawn]
    drawn = np.empty(0, dtype=np.int64)
    while len(drawn) < n_drawn:
        more = rng.randint(total, size=2 * (n_drawn - len(drawn)), dtype=np.int64)
        drawn = np.concatenate([drawn, more])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:n_drawn]


def pair_numbered(numbers: np.ndarray) -> np.ndarray:
    """Return the pairs (a, b), a < b, that are counted (0, 1), (0, 2), (1, 2), (0, 3) ..."""
    b = ((1 + np.sqrt(1 + 8.0 * numbers)) / 2).astype(np.int64)
    b -= (
        b * (b - 1) // 2 > numbers
    )  # rounding may lift the root over a whole number, never below
    return np.column_stack([numbers - b * (b - 1) // 2, b])
