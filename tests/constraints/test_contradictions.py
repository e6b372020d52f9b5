"""Which pairs no clustering can satisfy, and how the error says so."""

import re
from itertools import product

import pytest
from constraints.shared import MANY, assert_plain, drawn_constraints, weighted
from hypothesis import given
from hypothesis import strategies as st

from nmfcluster.constraints import PairwiseConstraints


def satisfying(constraints, n_clusters):
    """Try all labels; return whether some satisfy every pair."""
    must, cannot = weighted(constraints)
    return any(
        all(labels[i] == labels[j] for i, j in must)
        and all(labels[i] != labels[j] for i, j in cannot)
        for labels in product(range(n_clusters), repeat=len(constraints))
    )


def verdict_of(constraints, n_clusters):
    try:
        return constraints.check(n_clusters), ""
    except ValueError as error:
        return "impossible", str(error)


@MANY
@given(drawn_constraints(largest=6), st.integers(1, 4))
def test_what_is_raised_is_impossible_and_what_is_called_feasible_is_not(constraints, n_clusters):
    verdict, says = verdict_of(constraints, n_clusters)
    if satisfying(constraints, n_clusters):
        assert verdict in {"feasible", "undecided"}
    elif verdict == "impossible":
        assert re.search("samples [0-9].* can(not)? be linked", says)
    else:
        assert verdict == "undecided"
    assert n_clusters > 2 or verdict != "undecided"


@MANY
@given(drawn_constraints(largest=6))
def test_without_a_number_of_clusters_only_contradictions_count(constraints):
    if satisfying(constraints, len(constraints)) or not len(constraints):
        assert constraints.check() == constraints.check(max(1, len(constraints))) == "feasible"
    else:
        with pytest.raises(ValueError, match="but must-link pairs join them"):
            constraints.check()
        with pytest.raises(ValueError, match="but must-link pairs join them"):
            constraints.closure()


CHECKS = {
    "a chain": (
        PairwiseConstraints(10, [(3, 5), (5, 9), (0, 1)], [(9, 3), (0, 2)]),
        None,
        "samples 3 and 9 cannot be linked, but must-link pairs join them: 3-5-9.",
    ),
    "a pair of both kinds": (
        PairwiseConstraints(3, [(1, 2)], [(2, 1)]),
        3,
        "samples 1 and 2 cannot be linked, but must-link pairs join them: 1-2.",
    ),
    "a chain that fits": (
        PairwiseConstraints(20, [(i, i + 1) for i in range(19)], [(0, 19)]),
        None,
        "samples 0 and 19 cannot be linked, but must-link pairs join them: "
        "0-1-2-3-4-5-6-7-8-9-10-11-12-13-14-15-16-17-18-19.",
    ),
    "a long chain": (
        PairwiseConstraints(99, [(i, i + 1) for i in range(98)], [(0, 98)]),
        None,
        "samples 0 and 98 cannot be linked, but must-link pairs join them: 0-1-2-3-4-5-6-7-8-9-... "
        "(79 more) ...-89-90-91-92-93-94-95-96-97-98.",
    ),
    "one cluster": (
        PairwiseConstraints(5, [(0, 3)], [(4, 3)]),
        1,
        "n_clusters=1 is too small: samples 0, 4 need a cluster each, as no two of them, or "
        "samples that must be with them, can be linked.",
    ),
    "an odd cycle": (
        PairwiseConstraints(9, [(0, 8)], [(8, 5), (5, 2), (0, 2)]),
        2,
        "n_clusters=2 is too small: samples 2, 0, 5 are a cycle of odd length, in which each, or a "
        "sample that must be with it, cannot be linked to the next.",
    ),
    "a clique": (
        PairwiseConstraints(9, [(4, 5)], [(0, 4), (5, 2), (2, 0), (7, 0), (7, 2), (7, 5)]),
        3,
        "n_clusters=3 is too small: samples 0, 2, 4, 7 need a cluster each, as no two of them, or "
        "samples that must be with them, can be linked.",
    ),
}


@pytest.mark.parametrize(("constraints", "n_clusters", "says"), CHECKS.values(), ids=CHECKS)
def test_what_cannot_be_is_named(constraints, n_clusters, says):
    with pytest.raises(ValueError, match="^" + re.escape(says) + "$") as caught:
        constraints.check(n_clusters)
    assert_plain(caught)


def test_an_odd_wheel_is_left_undecided():
    around = [(i, (i + 1) % 5) for i in range(5)] + [(5, i) for i in range(5)]
    constraints = PairwiseConstraints(6, None, around)
    assert [constraints.check(k) for k in (3, 4, 6)] == ["undecided", "undecided", "feasible"]


def test_contradictions_are_allowed_until_they_are_asked_for():
    constraints = PairwiseConstraints(2, [(0, 1)], [(0, 1)])
    assert constraints.n_pairs == 2
