"""What the tests of constraints share: examples, and their pairs as dictionaries."""

import re
from itertools import combinations

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from refusals import assert_in_our_words

from nmfcluster.constraints import PairwiseConstraints

MANY = settings(max_examples=25)

# What numpy and Python say about indices when nobody has looked before them.
_RAW = re.compile("not understood|boolean index|slice indices|setting an array")


def assert_plain(caught):
    """Check the message of an error that `pytest.raises` caught."""
    assert_in_our_words(caught)
    assert not _RAW.search(str(caught.value))


def weighted(constraints):
    """Return the pairs of both kinds as dictionaries from (i, j) to the weight."""
    kinds = (
        (constraints.must_link, constraints.must_link_weights),
        (constraints.cannot_link, constraints.cannot_link_weights),
    )
    return [
        dict(zip(map(tuple, pairs.tolist()), weights.tolist(), strict=True))
        for pairs, weights in kinds
    ]


def assert_in_form(constraints):
    assert constraints.shape == (len(constraints),) == (constraints.n_samples,)
    assert type(constraints.n_samples) is int
    kinds = (
        (constraints.must_link, constraints.must_link_weights),
        (constraints.cannot_link, constraints.cannot_link_weights),
    )
    for pairs, weights in kinds:
        assert pairs.shape == (len(weights), 2)
        assert (pairs.dtype, weights.dtype) == (np.intp, np.float64)
        assert not pairs.flags.writeable
        assert not weights.flags.writeable
        assert ((pairs >= 0) & (pairs < len(constraints))).all()
        assert (pairs[:, 0] < pairs[:, 1]).all()
        assert (weights > 0).all()
        listed = list(map(tuple, pairs.tolist()))
        assert listed == sorted(set(listed))


@st.composite
def drawn_constraints(draw, largest=8):
    """Draw constraints with weights, contradictions allowed."""
    n = draw(st.integers(0, largest))
    everything = list(combinations(range(n), 2))
    kinds = []
    for _ in range(2):
        chosen = (
            draw(st.lists(st.sampled_from(everything), max_size=9))
            if everything
            else []
        )
        kinds.append(
            [(*pair, draw(st.sampled_from([0.5, 1, 2, 3]))) for pair in chosen]
        )
    return PairwiseConstraints(n, *kinds)


def some_constraints(n=60, seed=0):
    rng = np.random.RandomState(seed)
    kinds = [
        np.column_stack([rng.randint(n, size=(90, 2)), rng.rand(90) + 0.1])
        for _ in range(2)
    ]
    return PairwiseConstraints(n, *(kind[kind[:, 0] != kind[:, 1]] for kind in kinds))


def split(constraints, samples):
    """Look up every pair of new samples, one at a time."""
    return [
        {
            (a, b): kind[tuple(sorted((samples[a], samples[b])))]
            for a, b in combinations(range(len(samples)), 2)
            if tuple(sorted((samples[a], samples[b]))) in kind
        }
        for kind in weighted(constraints)
    ]
