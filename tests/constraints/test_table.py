"""One table of must-links and cannot-links: its forms, and which of its pairs are hard."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from constraints.shared import assert_in_form, weighted
from numpy.testing import assert_array_equal
from refusals import raises_naming
from sklearn.datasets import load_iris

from nmfcluster import PairwiseConstraints, SSNMFClusterer
from nmfcluster.constraints.graph import split_pairs

from_table = PairwiseConstraints.from_table
IDS = ["ann", "bob", "eve", "kim"]
ROWS = [(0, 2, 0.5), (3, 0, -2.0), (2, 1, 1.0), (1, 3, -0.25)]
NAMED = [(IDS[a], IDS[b], weight) for a, b, weight in ROWS]
MUST, CANNOT = {(0, 2): 0.5, (1, 2): 1.0}, {(0, 3): 2.0, (1, 3): 0.25}


def hard_pairs(known):
    kinds = (
        (known.must_link, known.must_link_hard),
        (known.cannot_link, known.cannot_link_hard),
    )
    return [list(map(tuple, pairs[hard].tolist())) for pairs, hard in kinds]


def signed_matrix():
    a, b, weights = np.transpose(ROWS)
    half = sp.coo_array((weights, (a.astype(int), b.astype(int))), shape=(4, 4))
    return sp.csr_array(half + half.T)


def test_ids_may_be_called_names():
    frame = pd.DataFrame(np.eye(4), index=IDS)
    for names in (IDS, frame, frame.index):
        known = from_table(NAMED, names=names)
        assert known == from_table(NAMED, ids=names)
        assert weighted(known) == [MUST, CANNOT]
        groups = [["ann", "kim"], ["bob"]]
        known = PairwiseConstraints.from_groups(groups, names=names, apart=True)
        assert known == PairwiseConstraints.from_groups(groups, ids=names, apart=True)


def test_tables_come_in_many_forms():
    by_number = [
        ROWS,
        set(ROWS),
        iter(ROWS),
        np.array(ROWS),
        np.array(ROWS, dtype=object),
        pd.DataFrame(ROWS, columns=["i", "j", "confidence"], index=[9] * 4),
        [(a, b, "ML" if w > 0 else " Cannot_Link", abs(w)) for a, b, w in ROWS],
        [(a, b, np.sign(w), abs(w)) for a, b, w in ROWS],
        [(a, b, str(w)) for a, b, w in ROWS],
        [*[row for row in ROWS if row[2] != 1], (1, 2, "must")],
        pd.DataFrame([(a, b, "1.0" if w > 0 else "-1", abs(w)) for a, b, w in ROWS]),
        signed_matrix(),
    ]
    for table in by_number:
        known = from_table(table, n_samples=4)
        assert_in_form(known)
        assert weighted(known) == [MUST, CANNOT]
        assert hard_pairs(known) == [[(1, 2)], [(0, 3)]]
        assert known.index is None
    assert from_table(signed_matrix()) == from_table(ROWS, n_samples=4)
    frame = pd.DataFrame(index=IDS)
    for table in (
        NAMED,
        pd.DataFrame(NAMED),
        np.array(NAMED, dtype=object),
        signed_matrix(),
    ):
        for ids in (IDS, frame, frame.index):
            named = from_table(table, ids=ids)
            assert named == from_table(ROWS, n_samples=4)
            assert list(named.index) == IDS
    nothing = from_table([], n_samples=4)
    assert_in_form(nothing)
    assert nothing == PairwiseConstraints(4) == from_table(sp.csr_array((4, 4)))


def test_tables_of_polars():
    pl = pytest.importorskip("polars")
    table = pl.DataFrame(NAMED, schema=["a", "b", "sign"], orient="row")
    assert from_table(table, ids=pl.Series(IDS)) == from_table(ROWS, n_samples=4)


@pytest.mark.parametrize(
    ("rows", "hard", "expected"),
    [
        ([(0, 1, 1), (2, 3, -1)], None, [[(0, 1)], [(2, 3)]]),
        ([(0, 1, 0.9), (2, 3, -0.3)], None, [[], []]),
        ([(0, 1, 0.9), (2, 3, 1)], None, [[(2, 3)], []]),
        ([(0, 1, np.inf), (2, 3, 1), (0, 3, -5)], None, [[(0, 1)], []]),
        ([(0, 1, -np.inf), (2, 3, 1)], None, [[], [(0, 1)]]),
        ([(0, 1, "ML", np.inf), (2, 3, "CL", 1)], None, [[(0, 1)], []]),
        ([(0, 1, 0.2), (2, 3, -1)], True, [[(0, 1)], [(2, 3)]]),
        ([(0, 1, 3), (2, 3, -1), (0, 2, np.inf)], False, [[(0, 2)], []]),
        (
            [(0, 1, 0.2), (2, 3, -1), (0, 3, 4)],
            [True, True, False],
            [[(0, 1)], [(2, 3)]],
        ),
        (
            [(0, 1, 1, True), (2, 3, 1, False), (0, 2, -0.1, True)],
            None,
            [[(0, 1)], [(0, 2)]],
        ),
        ([(0, 1, 5), (1, 0, np.inf)], None, [[(0, 1)], []]),
    ],
)
def test_which_pairs_are_hard(rows, hard, expected):
    for table in (rows, rows[::-1] if hard is None else rows):
        known = from_table(table, n_samples=4, hard=hard)
        assert hard_pairs(known) == expected
        assert_in_form(known)


def test_lists_of_pairs_follow_the_same_rule():
    known = PairwiseConstraints(
        5, [(0, 1), (1, 2, 0.1), (3, 4, 7)], [(0, 4, np.inf), (1, 4)]
    )
    assert hard_pairs(known) == [[(0, 1), (3, 4)], [(0, 4)]]
    assert weighted(known) == [
        {(0, 1): 1, (1, 2): 0.1, (3, 4): 7},
        {(0, 4): 3, (1, 4): 1},
    ]
    assert hard_pairs(PairwiseConstraints.from_labels([0, 0, 1])) == [
        [(0, 1)],
        [(0, 2), (1, 2)],
    ]


def test_what_is_hard_stays_so():
    known = from_table(
        [(0, 1, np.inf), (1, 2, 1), (2, 3, -1), (0, 3, -np.inf)], n_samples=4
    )
    for same in (
        copy.copy(known),
        pickle.loads(pickle.dumps(known)),
        known[[0, 1, 2, 3]],
    ):
        assert same == known
        assert hard_pairs(same) == [[(0, 1)], [(0, 3)]]
    assert hard_pairs(known[[3, 2, 1]]) == [[], []]  # though no other pair is left
    assert hard_pairs(known[[0, 0, 1]]) == [[(0, 2), (1, 2)], []]
    # 0 and 1 are one: what is said of 2 and of 3 holds for both
    assert hard_pairs(known.closure()) == [[(0, 1)], [(0, 3), (1, 3)]]
    assert known.closure().must_link.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert_array_equal(known.components(), [0, 0, 1, 2])
    assert known != from_table(
        [(0, 1, 1), (1, 2, 1), (2, 3, -1), (0, 3, -3)], n_samples=4
    )
    for part, _ in split_pairs(known, 2, np.random.default_rng(0)):
        for kept, all_hard in zip(hard_pairs(part), hard_pairs(known), strict=True):
            assert set(kept) <= set(all_hard)
    assert all(np.isfinite(matrix.data).all() for matrix in known.as_matrices())


def test_contradictions_among_hard_pairs_are_told_by_names():
    hard = [("ann", "bob", np.inf), ("bob", "eve", np.inf)]
    with raises_naming(ValueError, "ann - bob - eve"):
        from_table([*hard, ("eve", "ann", -np.inf)], ids=IDS).check()
    # what is believed may contradict what is known
    assert from_table([*hard, ("eve", "ann", -1)], ids=IDS).check(1) == "feasible"
    apart = [(a, b, -np.inf) for i, a in enumerate(IDS) for b in IDS[:i]]
    with raises_naming(ValueError, "ann, bob, eve, kim"):
        from_table(apart, ids=IDS).check(3)


def fit(pairs, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SSNMFClusterer(3, random_state=0, n_init=1, **options)
        return model.fit(load_iris().data, constraints=pairs)


@pytest.mark.slow
def test_hard_pairs_are_kept_and_soft_ones_weighed():
    """A setosa and a versicolor; a pair of the same row of the factor has the same membership."""
    for weight in (1e-9, 0.5, 0.99):
        for rows in (
            [(0, 60, weight), (1, 2, 1.0)],
            [(0, 60, weight)],
            [(0, 60, weight)] * 2,
        ):
            labels = fit(from_table(rows, n_samples=150)).labels_
            assert labels[0] != labels[60]
    soft = fit(from_table([(0, 60, 1), (1, 2, np.inf)], n_samples=150))
    assert soft.labels_[0] != soft.labels_[60]
    # without a warning: it may be wrong
    assert soft.violated_must_link_.tolist() == [[0, 60]]
    P = soft.membership_
    assert_array_equal(P[1], P[2])
    for rows in ([(0, 60, 1)], [(0, 60, np.inf), (1, 70, 1)], [(0, 60, 0.1, True)]):
        P = fit(from_table(rows, n_samples=150)).membership_
        assert_array_equal(P[0], P[60])
    known = from_table([(0, 60, 0.1)], n_samples=150)
    assert_array_equal(*fit(known, hard_must_link=True).membership_[[0, 60]])
    apart = from_table([(0, 1, -np.inf)], n_samples=150)  # two setosa
    labels = fit(apart).labels_
    assert labels[0] != labels[1]


def test_weights_of_soft_must_links_count():
    rows = [(i, i + 50) for i in range(0, 50, 2)]  # each joins two species
    shares = []
    for weight in (1e-3, 1.0):
        table = [(a, b, weight) for a, b in rows]
        known = from_table(table, n_samples=150, hard=False)
        shares.append(fit(known, alpha=2.0, propagation=None).satisfaction_)
    assert shares[0] < shares[1]


def test_kinds_are_read_beside_pairs():
    pairs = [(0, 3), (2, 0), (1, 3)]
    expected = PairwiseConstraints.from_table(
        [(*pair, kind) for pair, kind in zip(pairs, [1, -1, 0.5], strict=True)],
        n_samples=4,
    )
    for table in (pairs, np.array(pairs), pd.DataFrame(pairs)):
        found = PairwiseConstraints.from_table(table, [1, -1, 0.5], n_samples=4)
        assert found == expected
    ids = ["ann", "bob", "eve"]
    found = PairwiseConstraints.from_table([("ann", "eve")], ["CL"], ids=ids)
    assert found.cannot_link.tolist() == [[0, 2]]
