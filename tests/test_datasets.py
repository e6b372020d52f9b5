"""Made-up partitions, rings and biclusters."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.decomposition import NMF

from nmfcluster.datasets import make_biclusters, make_nested_rings, make_partitions
from nmfcluster.metrics import match_components


@pytest.mark.parametrize("sizes", [(5, 1, 9), [3, 3], np.array([4])])
def test_copies_without_noise_are_the_partition_renamed(sizes):
    partitions, y = make_partitions(sizes, n_partitions=30, noise=0, random_state=0)
    assert_array_equal(np.bincount(y), sizes)
    names = set()
    for column in partitions.T:
        assert len(set(zip(column, y, strict=True))) == len(sizes)
        names.add(tuple(dict.fromkeys(column)))
    assert len(names) == {1: 1, 2: 2, 3: 6}[len(sizes)]  # every renaming occurs


def test_a_number_of_samples_is_divided_evenly():
    partitions, y = make_partitions(11, n_clusters=3, n_partitions=2, random_state=0)
    assert_array_equal(np.bincount(y), [4, 4, 3])
    assert partitions.shape == (11, 2)


def test_noise_is_the_share_of_labels_drawn_at_random():
    partitions, y = make_partitions(6000, n_partitions=4, noise=0.6, random_state=0)
    for column in partitions.T:
        table = np.array([np.bincount(column[y == c], minlength=3) for c in range(3)])
        assert_allclose(np.sort(table.ravel())[-3:] / 2000, 0.4 + 0.6 / 3, atol=0.05)
        assert_allclose(np.sort(table.ravel())[:6] / 2000, 0.6 / 3, atol=0.05)


@pytest.mark.parametrize("missing", [0.3, 1.0])
def test_missing_labels_leave_every_sample_one(missing):
    partitions, _ = make_partitions(
        500, n_partitions=10, missing=missing, random_state=0
    )
    seen = partitions >= 0
    assert seen.any(axis=1).all()
    assert partitions.min() == -2
    assert_allclose(seen.mean(), 1 - 0.9 * missing, atol=0.03)
    # no partition keeps more
    assert_allclose(seen.mean(axis=0), 1 - 0.9 * missing, atol=0.08)


def test_the_seed_determines_the_result():
    one, two, other = (make_partitions(40, random_state=seed)[0] for seed in (1, 1, 2))
    assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    assert_array_equal(
        make_partitions(40, random_state=np.random.RandomState(1))[0], one
    )


# --- rings ---------------------------------------------------------------------------------------


def test_rings_without_noise_are_circles():
    X, y = make_nested_rings(101, radii=(1.0, 2.0, 0.5), noise=0, random_state=0)
    assert X.shape == (101, 2)
    assert_array_equal(np.bincount(y), [34, 34, 33])
    assert_allclose(np.hypot(*X.T), np.array([1.0, 2.0, 0.5])[y], rtol=1e-12)


def test_noise_of_rings_is_the_spread_of_the_distances():
    X, y = make_nested_rings(20_000, radii=(2.0, 5.0), noise=0.3, random_state=0)
    distances = np.hypot(*X.T) - np.array([2.0, 5.0])[y]
    assert_allclose(distances.mean(), 0, atol=0.01)
    for ring in (0, 1):
        assert_allclose(distances[y == ring].std(), 0.3, rtol=0.05)
    # normal
    assert_allclose(distances[np.abs(distances) > 0.3].size / 20_000, 0.317, atol=0.02)


def test_points_are_spread_evenly_over_a_ring():
    X, y = make_nested_rings(16_000, random_state=0)
    for ring in (0, 1):
        angles = np.arctan2(*X[y == ring].T)
        shares = np.histogram(angles, bins=8, range=(-np.pi, np.pi))[0] / 8_000
        assert_allclose(shares, 1 / 8, atol=0.015)


def test_the_seed_determines_the_rings():
    one, two, other = (make_nested_rings(random_state=seed)[0] for seed in (1, 1, 2))
    assert one.shape == (400, 2)
    assert_array_equal(one, two)
    assert not np.array_equal(one, other)
    assert_array_equal(make_nested_rings(random_state=np.random.RandomState(1))[0], one)


def test_radii_can_be_an_array():
    X, y = make_nested_rings(10, radii=np.array([1.0, 4.0]), noise=0, random_state=0)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1), np.where(y, 4.0, 1.0))


# --- biclusters ----------------------------------------------------------------------------------

SIZES = [
    {},
    {"twins": False},
    {"shape": (60, 200), "n_clusters": 10},
    {"shape": (200, 30), "n_clusters": 5, "overlap": 0.4},
    {"shape": (8, 12), "n_clusters": 3, "overlap": 0},
    {"shape": (30, 20), "n_clusters": 2},
    {"shape": (2, 3), "n_clusters": 2},
    {"shape": (5, 3), "n_clusters": 1, "twins": False},
]
each_size = pytest.mark.parametrize("options", SIZES, ids=str)


@each_size
def test_data_are_the_product_of_factors_with_samples_and_features_of_their_own(
    options,
):
    X, W, H = make_biclusters(**options, random_state=0)
    n_clusters = options.get("n_clusters", 4)
    assert X.shape == options.get("shape", (21, 35))
    assert W.shape == (len(X), n_clusters)
    assert H.shape == (n_clusters, X.shape[1])
    assert W.min() >= 0
    assert H.min() >= 0
    assert_allclose(X, W @ H, atol=1e-12)
    assert np.linalg.matrix_rank(X) == n_clusters
    for members in (W.T > 0, H > 0):
        for c in range(len(members)):
            assert (members[c] & ~np.delete(members, c, axis=0).any(axis=0)).any()
        assert members.any(
            axis=0
        ).all()  # every sample, every feature is in some bicluster


def test_factors_have_the_distributions_that_are_documented():
    _, W, _ = make_biclusters((40_000, 9), 3, twins=False, overlap=0, random_state=0)
    _, _, H = make_biclusters((9, 9_000), 3, twins=False, overlap=0, random_state=0)
    latent, coefficients = W[W > 0], H[H > 0]
    assert len(latent) == 40_000  # no overlap: each in one bicluster
    assert_allclose(latent.mean(), np.sqrt(2 / np.pi), atol=0.02)
    assert_allclose((latent**2).mean(), 1, atol=0.03)
    assert 0.5 <= coefficients.min() <= 0.501
    assert 0.999 <= coefficients.max() <= 1
    assert_allclose(coefficients.mean(), 0.75, atol=0.01)


@pytest.mark.parametrize("overlap", [0, 0.25, 0.4])
def test_overlap_is_the_share_that_neighbours_have_in_common(overlap):
    _, W, H = make_biclusters(
        (1000, 3000), 5, twins=False, overlap=overlap, random_state=0
    )
    for members in (W.T > 0, H > 0):
        sizes = members.sum(axis=1)
        assert np.ptp(sizes) <= 1
        for c, d in combinations(range(5), 2):
            expected = overlap * sizes[c] if d == c + 1 else 0
            assert abs((members[c] & members[d]).sum() - expected) <= 1


@pytest.mark.parametrize(
    ("shape", "n_clusters"), [((21, 35), 4), ((90, 800), 6), ((12, 9), 2)]
)
def test_twins_share_features_but_no_samples(shape, n_clusters):
    _, W, H = make_biclusters(shape, n_clusters, random_state=3)
    one, two = H[:2] > 0
    shared = one & two
    assert (
        (one & ~shared).sum()
        == (two & ~shared).sum()
        == max(1, round(0.1 * (one | two).sum()))
    )
    assert_allclose(H[0, shared], H[1, shared])
    assert not (W[:, 0] * W[:, 1]).any()
    for c, d in combinations(range(n_clusters), 2):  # no other two are as close
        if (c, d) != (0, 1):
            assert ((H[c] > 0) & (H[d] > 0)).sum() < 0.5 * (H[c] > 0).sum()


def test_the_second_twin_is_half_as_intense():
    _, W, _ = make_biclusters((60_000, 20), random_state=0)
    means = [column[column > 0].mean() for column in W.T]
    assert_allclose(means, np.sqrt(2 / np.pi) * np.array([1, 0.5, 1, 1]), rtol=0.03)
    _, W, _ = make_biclusters((60_000, 20), twins=False, random_state=0)
    means = [column[column > 0].mean() for column in W.T]
    assert_allclose(means, np.sqrt(2 / np.pi), rtol=0.03)


@pytest.mark.parametrize("noise", [0.1, 0.75])
def test_noise_is_a_multiple_of_the_spread_of_the_feature(noise):
    X, W, H = make_biclusters(
        (30_000, 12), 3, twins=False, overlap=0, noise=noise, random_state=0
    )
    clean = W @ H
    assert X.min() == 0
    for j in range(X.shape[1]):
        unit = clean[:, j].std()
        far = clean[:, j] > 3.5 * noise * unit  # never cut off at 0
        residual = (X - clean)[far, j] / unit
        assert len(residual) > 1000
        assert_allclose(residual.std(), noise, rtol=0.1)
        assert_allclose(residual.mean(), 0, atol=0.1 * noise)
        empty = clean[:, j] == 0  # half of these are cut off
        assert_allclose((X[empty, j] > 0).mean(), 0.5, atol=0.02)
        assert_allclose((X[empty, j] ** 2).mean() / unit**2, noise**2 / 2, rtol=0.05)


def test_the_seed_determines_the_biclusters():
    one, two, other = (
        make_biclusters(noise=0.1, random_state=seed) for seed in (1, 1, 2)
    )
    for a, b, c in zip(one, two, other, strict=True):
        assert_array_equal(a, b)
        assert not np.array_equal(a, c)
    again = make_biclusters(noise=0.1, random_state=np.random.RandomState(1))
    assert_array_equal(again[0], one[0])
    clean = make_biclusters(random_state=1)
    assert not np.array_equal(clean[0], one[0])
    for a, b in zip(clean[1:], one[1:], strict=True):
        assert_array_equal(a, b)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_runs_of_nmf_that_fit_find_the_biclusters_and_others_miss_a_twin():
    n_missed = 0
    for seed in range(2):
        X, W, H = make_biclusters(random_state=seed)
        errors, matches = [], []
        for start in range(12):
            model = NMF(4, init="random", max_iter=2000, tol=1e-6, random_state=start)
            W_found, H_found = model.fit_transform(X), model.components_
            pairs = (W.T, W_found.T), (H, H_found)
            errors.append(model.reconstruction_err_ / np.linalg.norm(X))
            matches.append(
                min(match_components(F, found)[1].min() for F, found in pairs)
            )
        errors, matches = np.array(errors), np.array(matches)
        assert errors.min() < 1e-4
        assert matches[errors < 1e-4].min() > 0.95
        n_missed += (matches < 0.95).sum()
    assert 0.15 <= n_missed / 24 <= 0.6
