"""Components matched one to one, and overlapping clusters against a literal match, of sets."""

from itertools import permutations, product

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster.metrics import match_components, overlap_match
from nmfcluster.metrics.matching import _cells, _Clusters, members


@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4))
def test_no_other_pairs_have_a_larger_sum_of_cosines(seed, n_a, n_b):
    rng = np.random.default_rng(seed)
    a, b = (rng.gamma(0.5, size=(n, 5)) + 1e-6 for n in (n_a, n_b))
    found, cosines = match_components(a * rng.uniform(1, 1e5, (n_a, 1)), b)
    of_pairs = [[x @ y / np.sqrt((x @ x) * (y @ y)) for y in b] for x in a]
    best = max(
        sum(of_pairs[i][j] if j < n_b else 0 for i, j in enumerate(order[:n_a]))
        for order in permutations(range(max(n_a, n_b)))
    )
    assert_allclose(cosines.sum(), best)
    assert (found == -1).sum() == max(n_a - n_b, 0)
    for i, j in enumerate(found):
        assert_allclose(cosines[i], of_pairs[i][j] if j >= 0 else 0)


def test_components_without_a_common_feature_have_no_counterpart():
    found, cosines = match_components(np.eye(3)[:2] * 1e-300, np.eye(3)[1:])
    assert_array_equal(found, [-1, 0])
    assert_array_equal(cosines, [0, 1])


def test_columns_of_data_frames_are_matched_by_name():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    a = pd.DataFrame(rng.uniform(size=(3, 4)), columns=list("pqrs"))
    with pytest.warns(UserWarning, match="columns of components_b"):
        found, cosines = match_components(a, a.iloc[[2, 0, 1], ::-1])
    assert_array_equal(found, [1, 2, 0])
    assert_allclose(cosines, 1)


# --- clusters that may overlap -------------------------------------------------------------------


def match_by_the_paper(a, b, size, meet, join):
    """Section 6 of Badea (2005), with a set of anything that has a size, a meet and a join."""

    def best_including(cluster, others):
        common = [size(meet(cluster, other)) for other in others]
        if not size(cluster) or max(common) < 1e-9:
            return None
        ties = [d for d in range(len(others)) if common[d] > max(common) - 1e-9]
        smallest = min(size(others[d]) for d in ties)
        return next(d for d in ties if size(others[d]) < smallest + 1e-9)

    def matches(clusters, others):
        choice = [best_including(other, clusters) for other in others]
        for c, cluster in enumerate(clusters):
            included = [other for other, chosen in zip(others, choice, strict=True) if chosen == c]
            union = included[0] if included else None
            for other in included[1:]:
                union = join(union, other)
            yield size(meet(cluster, union)) / size(join(cluster, union)) if included else 0.0

    return np.mean([*matches(a, b), *matches(b, a)])


def match_of_sets(a, b):
    return match_by_the_paper(a, b, len, frozenset.intersection, frozenset.union)


def match_of_fuzzy_sets(a, b):
    """Of lists of lists of memberships, their largest 1."""

    def meet(x, y):
        return [min(u, v) for u, v in zip(x, y, strict=True)]

    def join(x, y):
        return [max(u, v) for u, v in zip(x, y, strict=True)]

    return match_by_the_paper(a, b, sum, meet, join)


def sets_of(memberships, threshold):
    """The objects whose membership is at least that share of the largest one."""
    return [
        frozenset(j for j, m in enumerate(row) if m > 0 and m >= threshold * max(row))
        for row in memberships.tolist()
    ]


def cell_sets_of(rows, columns, threshold):
    pairs = zip(sets_of(rows, threshold), sets_of(columns, threshold), strict=True)
    return [frozenset(product(*pair)) for pair in pairs]


def as_fuzzy(memberships):
    return [[m / max(row) if max(row) else 0.0 for m in row] for row in memberships.tolist()]


def cells_as_fuzzy(rows, columns):
    pairs = zip(as_fuzzy(rows), as_fuzzy(columns), strict=True)
    return [[u * v for u in one for v in other] for one, other in pairs]


def clusters_at_random(rng, n_clusters, n_objects):
    """Memberships, many of them 0, some of them equal, and now and then a cluster without any."""
    M = rng.uniform(size=(n_clusters, n_objects))
    M *= rng.uniform(size=M.shape) < 0.6
    if rng.uniform() < 0.5:
        M = np.round(4 * M)
    if rng.uniform() < 0.2:
        M[rng.integers(n_clusters)] = 0
    return M


seeds = st.integers(0, 10**6)

cluster_counts = st.integers(1, 5)

thresholds = st.sampled_from([0.1, 0.2, 0.5, 1.0])

thresholds_or_none = st.one_of(st.none(), thresholds)


@given(seeds, cluster_counts, cluster_counts, st.integers(1, 9), thresholds)
def test_match_is_that_of_the_paper(seed, n_a, n_b, n_objects, threshold):
    rng = np.random.default_rng(seed)
    a, b = (clusters_at_random(rng, n, n_objects) for n in (n_a, n_b))
    expected = match_of_sets(sets_of(a, threshold), sets_of(b, threshold))
    assert_allclose(overlap_match(a, b, threshold=threshold), expected, rtol=1e-12)
    assert_allclose(
        overlap_match(a, b, threshold=None),
        match_of_fuzzy_sets(as_fuzzy(a), as_fuzzy(b)),
        rtol=1e-9,
    )


@given(seeds, cluster_counts, cluster_counts, st.integers(1, 5), st.integers(1, 6), thresholds)
def test_match_of_biclusters_is_that_of_their_cells(seed, n_a, n_b, n_rows, n_columns, threshold):
    rng = np.random.default_rng(seed)
    a, b = (
        (clusters_at_random(rng, n, n_rows), clusters_at_random(rng, n, n_columns))
        for n in (n_a, n_b)
    )
    expected = match_of_sets(cell_sets_of(*a, threshold), cell_sets_of(*b, threshold))
    assert_allclose(overlap_match(a, b, threshold=threshold), expected, rtol=1e-12)
    assert_allclose(
        overlap_match(a, b, threshold=None),
        match_of_fuzzy_sets(cells_as_fuzzy(*a), cells_as_fuzzy(*b)),
        rtol=1e-9,
    )


@pytest.mark.parametrize("threshold", [0.3, None])
def test_cells_are_looked_at_in_parts_with_the_same_result(monkeypatch, threshold):
    rng = np.random.default_rng(0)
    a, b = ((clusters_at_random(rng, n, 23), clusters_at_random(rng, n, 11)) for n in (3, 4))
    whole = overlap_match(a, b, threshold=threshold)
    for cells in (1, 200, 1000):
        monkeypatch.setattr("nmfcluster.metrics.matching._CELLS", cells)
        assert_allclose(overlap_match(a, b, threshold=threshold), whole, rtol=1e-12)


def test_no_more_cells_are_held_at_a_time_than_allowed(monkeypatch):
    monkeypatch.setattr("nmfcluster.metrics.matching._CELLS", 300)
    a, b = (_Clusters(np.ones((n, 23)), np.ones((n, 11))) for n in (3, 4))
    blocks = [X.size + Y.size for X, Y in _cells(a, b)]
    assert sum(blocks) == 7 * 23 * 11
    assert blocks[0] == 3 * 7 * 11  # the rows that fit


@given(seeds, cluster_counts, cluster_counts, st.integers(1, 9), thresholds_or_none)
def test_match_is_symmetric_and_a_share(seed, n_a, n_b, n_objects, threshold):
    rng = np.random.default_rng(seed)
    a, b = (clusters_at_random(rng, n, n_objects) for n in (n_a, n_b))
    match = overlap_match(a, b, threshold=threshold)
    assert 0 <= match <= 1
    assert_allclose(overlap_match(b, a, threshold=threshold), match, rtol=1e-12)


@given(seeds, cluster_counts, st.integers(2, 8), thresholds_or_none)
def test_match_with_the_same_clusters_in_another_order_is_1(seed, n, n_objects, threshold):
    rng = np.random.default_rng(seed)
    a = clusters_at_random(rng, n, n_objects)
    distinct = (
        {tuple(row) for row in as_fuzzy(a)} if threshold is None else set(sets_of(a, threshold))
    )
    assume(len(distinct) == n and a.any(axis=1).all())
    assert_allclose(overlap_match(a, a[rng.permutation(n)], threshold=threshold), 1, rtol=1e-12)


@given(seeds, cluster_counts, cluster_counts, st.integers(2, 9), thresholds_or_none)
def test_match_knows_neither_scales_nor_the_order_of_objects(seed, n_a, n_b, n, threshold):
    rng = np.random.default_rng(seed)
    a, b = (clusters_at_random(rng, clusters, n) for clusters in (n_a, n_b))
    match = overlap_match(a, b, threshold=threshold)
    scaled = a * rng.lognormal(sigma=9, size=(n_a, 1))
    assert_allclose(overlap_match(scaled, b, threshold=threshold), match, rtol=1e-9)
    order = rng.permutation(n)
    assert_allclose(overlap_match(a[:, order], b[:, order], threshold=threshold), match, rtol=1e-9)


@given(seeds, cluster_counts, cluster_counts, st.integers(1, 9), thresholds_or_none)
def test_of_booleans_the_threshold_is_not_asked(seed, n_a, n_b, n_objects, threshold):
    rng = np.random.default_rng(seed)
    a, b = (rng.uniform(size=(n, n_objects)) < 0.5 for n in (n_a, n_b))
    expected = match_of_sets(sets_of(a, 1), sets_of(b, 1))
    assert_allclose(overlap_match(a, b, threshold=threshold), expected, rtol=1e-12)


def test_match_by_hand():
    a = [[1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]]
    # the halves of a[0] are both best included in it, and it in the first of them
    b = [[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1]]
    assert_allclose(overlap_match(a, b), (1 + 1 + 2 / 4 + 0 + 1) / 5)
    # moved by one: 3 of 5 are common, and 1 of 3
    c = [[0, 1, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1]]
    assert_allclose(overlap_match(a, c), (3 / 5 + 1 / 2 + 3 / 5 + 1 / 2) / 4)
    fuzzy = [[2.0, 1.0, 0.0], [0.0, 0.0, 5.0]]
    other = [[1.0, 1.0, 0.0], [0.0, 0.5, 1.0]]
    assert overlap_match(fuzzy, other, threshold=None) == (1.5 / 2 + 1 / 1.5) / 2
    assert overlap_match(fuzzy, other, threshold=0.5) == (1 + 1 / 2) / 2
    assert overlap_match(fuzzy, other, threshold=0.51) == (1 / 2 + 1) / 2


def test_match_of_biclusters_by_hand():
    one = ([[1, 1, 0, 0]], [[1, 1, 1, 0]])  # 6 cells
    two = ([[0, 1, 1, 0]], [[0, 1, 1, 1]])  # 6 cells, 2 in common
    assert overlap_match(one, two) == 2 / 10
    assert overlap_match(one[0], two[0]) == 1 / 3
    assert overlap_match(one, tuple(np.array(part) > 0 for part in one)) == 1


def test_an_object_at_the_threshold_is_in_the_cluster():
    at, below = [[1, 0.2, 0]], [[1, 0.2 - 1e-9, 0]]
    assert overlap_match(at, [[1, 1, 0]]) == 1
    assert overlap_match(below, [[1, 1, 0]]) == 1 / 2
    assert overlap_match([[3, 3 * 0.2, 0]], [[1, 1, 0]]) == 1
    assert overlap_match([[0.7, 0.7 * 0.2, 0]], [[1, 1, 0]]) == 1


def test_a_cluster_within_another_one_includes_itself_best():
    small, large = [0, 1, 1, 0], [1, 1, 1, 1]
    for threshold in (0.2, None):
        assert overlap_match([large, small], [small, large], threshold=threshold) == 1


def test_rounding_does_not_decide_between_equals():
    low = np.array([1, 0.1, 0.2, 0.6, 0.3, 0.7])
    high = low[::-1]  # its sum is 2.9, too, but for the last digit
    assert low.sum() < high.sum()
    # all objects are best included in the first cluster, though the second one has the larger sum
    match = overlap_match([np.ones(6), low], [low, high], threshold=None)
    assert_allclose(match, (2.9 / 6 + 1 + 2.9 / 6 + 0) / 4)
    # and so is the last object, though the second cluster has the smaller sum
    high, low = np.append(high, 1), np.append(low, 1)
    assert low.sum() < high.sum()
    match = overlap_match([np.eye(7)[6], high], [high, low], threshold=None)
    assert_allclose(match, (0 + 3.9 / np.maximum(low, high).sum() + 1 + 0) / 4)


def test_clusters_without_members_and_without_common_objects_match_nothing():
    empty, one, other = [0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1]
    for threshold in (0.2, None):
        assert overlap_match([empty], [empty], threshold=threshold) == 0
        assert overlap_match([empty, one], [one], threshold=threshold) == 2 / 3
        assert overlap_match([one], [other], threshold=threshold) == 0
        assert overlap_match([one, other], [one], threshold=threshold) == 2 / 3
        assert overlap_match([other, one], [one], threshold=threshold) == 2 / 3
    assert overlap_match(([[0, 0]], [[1, 1]]), ([[0, 0]], [[1, 1]])) == 0


CLUSTERS = np.eye(3)


def test_match_refuses_bad_clusters():
    for a, b, error, message in (
        (CLUSTERS, np.eye(4), ValueError, r"the same objects, got .* \(1, 3\) and \(1, 4\)"),
        (CLUSTERS, (CLUSTERS, CLUSTERS), ValueError, r"got .* \(1, 3\) and \(3, 3\)"),
        ((CLUSTERS, CLUSTERS), (CLUSTERS, np.eye(3, 5)), ValueError, r"\(3, 3\) and \(3, 5\)"),
        ((CLUSTERS, CLUSTERS[:2]), CLUSTERS, ValueError, "clusters_a .*got 3 and 2"),
        (-CLUSTERS, CLUSTERS, ValueError, "clusters_a must have no membership below 0, got -1"),
        (CLUSTERS, (CLUSTERS, -CLUSTERS), ValueError, r"clusters_b\[1\] must .* 0, got -1"),
        (CLUSTERS, np.full((3, 3), np.nan), ValueError, "clusters_b .*NaN"),
        (CLUSTERS, np.full((3, 3), np.inf), ValueError, "clusters_b .*infinity"),
        (CLUSTERS, [0, 1, 2], ValueError, "clusters_b must hold memberships, of .*got 1D array"),
        (CLUSTERS, 3, ValueError, "clusters_b must hold memberships.*got scalar"),
        (np.ones((2, 3, 3)), CLUSTERS, ValueError, "clusters_a must hold memberships.*dim 3"),
        (np.ones((0, 3)), CLUSTERS, ValueError, r"clusters_a must hold memberships.*\(0, 3\)"),
        (CLUSTERS, np.ones((3, 0)), ValueError, r"clusters_b must hold memberships.*\(3, 0\)"),
        (CLUSTERS, [[1, 2, 3], [1, 2]], ValueError, "clusters_b must .*of one length"),
        (CLUSTERS, (CLUSTERS, [1, 2]), ValueError, "clusters_b must .*of one length"),
        (CLUSTERS, [["a", "b", "c"]], ValueError, "clusters_b must hold real numbers"),
        (CLUSTERS, None, ValueError, "clusters_b must be one table of numbers, got None"),
        (CLUSTERS, CLUSTERS * 1j, ValueError, "clusters_b must hold real numbers"),
        (CLUSTERS, sp.csr_array(CLUSTERS), ValueError, "clusters_b must hold .*parse"),
    ):
        with pytest.raises(error, match=message):
            overlap_match(a, b)


def test_match_refuses_bad_thresholds():
    for threshold, error, message in (
        (0, ValueError, r"threshold must be a float in the range \(0.0, 1.0\], got 0"),
        (1.1, ValueError, "got 1.1"),
        (np.nan, ValueError, "got nan"),
        ("0.2", TypeError, "threshold must be a number, got '0.2'"),
        (True, TypeError, "threshold must be a number, got True"),
        ([0.2], TypeError, "threshold must be a number"),
    ):
        with pytest.raises(error, match=message):
            overlap_match(CLUSTERS, CLUSTERS, threshold=threshold)


def test_members_reach_a_share_of_the_largest_entry():
    F = np.array([[5.0, 1.0, 0.99, 0.0], [0.0, 0.0, 0.0, 0.0], [2.0, 4.0, 8.0, 1.0]])
    expected = [[True, True, False, False], [False] * 4, [True, True, True, False]]
    assert_array_equal(members(F, 0.2), expected)


def test_members_of_a_model_are_those_that_the_match_sees():
    F = np.array([[10.0, 2.0, 1.0], [0.1, 1.0, 0.2], [1.0, 0.1, 0.2]])  # 0.2 exactly, in 0.1s
    for scale in (1, 0.1, 3):
        for dtype in (np.float64, np.float32):
            found = members((scale * F).astype(dtype), 0.2)
            assert overlap_match((scale * F).astype(dtype), found) == 1
