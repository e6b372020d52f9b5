"""Pairs in one form: drawn from labels, followed to copies of samples, closed."""

import time
import tracemalloc
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from constraints.shared import (
    MANY,
    assert_in_form,
    assert_plain,
    drawn_constraints,
    weighted,
)
from hypothesis import example, given
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming

from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.constraints.graph import decode_pairs

# drawn from labels


@pytest.mark.parametrize("n_pairs", [0, 7, 190])
def test_drawn_pairs_are_some_of_all_pairs(n_pairs):
    labels = np.random.RandomState(0).randint(-1, 3, size=26)
    labels[:20] = np.abs(labels[:20])
    labels[20:] = -1
    everything = weighted(PairwiseConstraints.from_labels(labels))
    drawn = PairwiseConstraints.from_labels(labels, n_pairs=n_pairs, random_state=0)
    assert_in_form(drawn)
    assert drawn.n_pairs == n_pairs
    for some, every in zip(weighted(drawn), everything, strict=True):
        assert some.items() <= every.items()
    again = PairwiseConstraints.from_labels(
        labels, n_pairs=n_pairs, random_state=np.random.RandomState(0)
    )
    assert again == drawn


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_pairs", [3, 14])
def test_all_pairs_have_the_same_chance(n_pairs):
    labels, rng, n_draws = [0, -1, 1, 0, 2, 1, -1, 0], np.random.RandomState(0), 1500
    times = Counter()
    for _ in range(n_draws):
        drawn = PairwiseConstraints.from_labels(
            labels, n_pairs=n_pairs, random_state=rng
        )
        times.update(
            map(tuple, np.concatenate([drawn.must_link, drawn.cannot_link]).tolist())
        )
    assert len(times) == 15
    share = n_pairs / 15
    assert np.ptp(list(times.values())) < 10 * np.sqrt(n_draws * share * (1 - share))


def test_drawing_few_pairs_needs_no_list_of_all():
    labels = np.arange(200_000) % 5
    tracemalloc.start()
    drawn = PairwiseConstraints.from_labels(labels, n_pairs=2000, random_state=0)
    assert tracemalloc.get_traced_memory()[1] < 5e7  # all pairs: 2e10
    tracemalloc.stop()
    assert drawn.n_pairs == 2000
    assert drawn.satisfaction(labels) == 1


def test_numbers_of_pairs_are_decoded_to_the_last_digit():
    assert decode_pairs(np.arange(15)).tolist() == [
        [a, b] for b in range(6) for a in range(b)
    ]
    for b in (3, 10**5, 94_906_266, 94_906_267, 2 * 10**9):
        first = b * (b - 1) // 2
        expected = [[b - 2, b - 1], [0, b], [b - 1, b], [0, b + 1]]
        numbers = np.array([first - 1, first, first + b - 1, first + b])
        assert decode_pairs(numbers).tolist() == expected


LABELS = [0, 1, 1, -1]


BAD_DRAWS = {
    "too many pairs": (
        lambda: PairwiseConstraints.from_labels(LABELS, n_pairs=4),
        ValueError,
        ("n_pairs", "3", "4"),
    ),
    "pairs of one sample": (
        lambda: PairwiseConstraints.from_labels([0, -1], n_pairs=1),
        ValueError,
        ("n_pairs", "0"),
    ),
    "a word for a seed": (
        lambda: PairwiseConstraints.from_labels(LABELS, n_pairs=1, random_state="x"),
        ValueError,
        ("random_state", "'x'"),
    ),
}


@pytest.mark.parametrize(("call", "error", "says"), BAD_DRAWS.values(), ids=BAD_DRAWS)
def test_bad_draws(call, error, says):
    with raises_naming(error, says) as caught:
        call()
    assert_plain(caught)


# copies


def test_a_sample_drawn_twice_has_its_pairs_twice():
    constraints = PairwiseConstraints(4, [(0, 1, 2)], [(1, 3, 5)])
    drawn = constraints[[1, 0, 1, 3, 3]]
    assert weighted(drawn) == [
        {(0, 1): 2, (1, 2): 2},
        {(0, 3): 5, (0, 4): 5, (2, 3): 5, (2, 4): 5},
    ]


@pytest.mark.slow
def test_a_split_of_many_pairs_is_quick():
    rng = np.random.RandomState(0)
    n, pairs = 20_000, rng.randint(20_000, size=(100_000, 2))
    constraints = PairwiseConstraints(n, pairs, pairs[pairs[:, 0] != pairs[:, 1]])
    kept = rng.permutation(n)[: n // 2]
    started = time.process_time()
    part, drawn = constraints[kept], constraints[rng.randint(n, size=n)]
    assert time.process_time() - started < 2
    inside = np.isin(constraints.must_link, kept).all(axis=1)
    assert len(part.must_link) == inside.sum()
    assert_in_form(drawn)


# closure


@MANY
@given(drawn_constraints())
@example(PairwiseConstraints(4, [(0, 1, 2), (1, 2, 4)], [(2, 3, 3)]))
@example(
    PairwiseConstraints(5, [(0, 1), (2, 3), (1, 2, 0.5), (0, 3, 0.25)], [(0, 1, 0.5)])
)
def test_the_closure_is_what_all_clusterings_that_satisfy_the_pairs_share(constraints):
    group = constraints.components().tolist()
    must, cannot = weighted(constraints)
    if any(group[i] == group[j] and weight >= 1 for (i, j), weight in cannot.items()):
        return
    within = {
        pair: cannot.pop(pair)
        for pair in list(cannot)
        if len({group[i] for i in pair}) == 1
    }
    # soft ones, which cannot be had
    assert all(weight < 1 for weight in within.values())
    size, expected, hard = Counter(group), ({}, {}), (set(), set())
    for kind, links, kept in zip((must, cannot), expected, hard, strict=True):
        total, known = Counter(), set()
        for (i, j), weight in kind.items():
            total[frozenset((group[i], group[j]))] += weight
            known |= {frozenset((group[i], group[j]))} if weight >= 1 else set()
        for i, j in combinations(range(len(group)), 2):
            one, other = group[i], group[j]
            ends, product = frozenset((one, other)), size[one] * size[other]
            if ends in total:
                n_pairs = size[one] * (size[one] - 1) / 2 if one == other else product
                links[i, j] = total[ends] / n_pairs
                kept |= {(i, j)} if ends in known else set()
    closed = constraints.closure()
    flags = (
        (closed.must_link, closed.must_link_hard),
        (closed.cannot_link, closed.cannot_link_hard),
    )
    assert [set(map(tuple, pairs[its].tolist())) for pairs, its in flags] == list(hard)
    assert_in_form(closed)
    for links, kind in zip(weighted(closed), expected, strict=True):
        assert links.keys() == kind.keys()
        assert_allclose([links[pair] for pair in kind], list(kind.values()), rtol=1e-12)
    assert_allclose(closed.must_link_weights.sum(), sum(must.values()))
    assert_allclose(closed.cannot_link_weights.sum(), sum(cannot.values()))
    assert_array_equal(closed.components(), group)
    assert_array_equal(closed.closure().must_link, closed.must_link)
    assert_array_equal(closed.closure().cannot_link, closed.cannot_link)


def test_the_closure_comes_before_the_split():
    constraints = PairwiseConstraints(4, [(0, 1), (1, 2)], [(2, 3)])
    kept = [0, 2, 3]
    assert constraints[kept].must_link.tolist() == []
    assert constraints.closure()[kept].must_link.tolist() == [[0, 1]]
    assert constraints.closure()[kept].cannot_link.tolist() == [[0, 2], [1, 2]]
