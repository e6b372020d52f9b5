"""What the question of metaclustering computes beside the runs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import normalize

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.importorskip("benchmarks.datasets", reason="benchmarks are not installed")

from benchmarks.methods import cnmf, nmf_runs
from benchmarks.questions import _meta_planted
from nmfcluster.datasets import make_biclusters

pytestmark = pytest.mark.slow  # together


def test_consensus_of_parts_leaves_outliers_out():
    rng = np.random.default_rng(0)
    parts = np.array([[1.0, 1, 0, 0], [0, 0, 3, 4]])
    W = rng.uniform(size=(6, 2))
    runs = [
        nmf_runs.NMFRun(W, parts[rng.permutation(2)] * (1 + i), 0.0) for i in range(9)
    ]
    # The parts of this run are unlike all others: they have no neighbours.
    runs.append(nmf_runs.NMFRun(W, np.array([[0.0, 1, 1, 0], [1.0, 0, 0, 0]]), 1.0))
    actual, H = cnmf.consensus(W @ parts, runs, 2, 0)
    order = H[:, 0].argsort()[::-1]
    lengths = np.linalg.norm(parts, axis=1)
    np.testing.assert_allclose(H[order], parts / lengths[:, None], atol=1e-12)
    np.testing.assert_allclose(actual[:, order], W * lengths, atol=1e-9)


def test_clusters_of_columns_as_factors():
    X, W, H = make_biclusters(random_state=0)
    runs = _meta_planted.object_runs("k-means", X, 4, 3, 0)
    errors = [np.linalg.norm(X - own @ columns) for own, columns in runs]
    assert errors == sorted(errors)
    for own, columns in runs:
        np.testing.assert_allclose(np.linalg.norm(columns, axis=1), 1)
        # each column is fitted by the mean of its cluster
        labels = columns.argmax(axis=0)
        means = np.stack([X[:, labels == c].mean(axis=1) for c in range(4)], axis=1)
        np.testing.assert_allclose(own @ columns, means[:, labels], atol=1e-9)
    told = _meta_planted.Planted(X, W, H).scores(W[:, ::-1], H[::-1])
    assert told == pytest.approx({"match": 1, "match of biclusters": 1, "error": 0})


def test_tensor_factorization_is_that_of_the_dense_tensor():
    """The factors after each was updated in turn by eq. 15 of Badea (2005), written out."""
    rng = np.random.default_rng(0)
    W, H = rng.uniform(size=(6, 5)), rng.uniform(size=(6, 7))
    T = np.einsum("js,jg->jsg", W, H)
    b, c = (F[2:4].T + 1e-3 * F.mean() for F in (W, H))
    a = (W @ b) * (H @ c) / ((b**2).sum(axis=0) * (c**2).sum(axis=0))
    for _ in range(_meta_planted.N_UPDATES):
        a *= np.einsum("jsg,sk,gk->jk", T, b, c) / (a @ ((b.T @ b) * (c.T @ c)))
        b *= np.einsum("jsg,jk,gk->sk", T, a, c) / (b @ ((a.T @ a) * (c.T @ c)))
        c *= np.einsum("jsg,jk,sk->gk", T, a, b) / (c @ ((a.T @ a) * (b.T @ b)))
    loss, columns = _meta_planted.by_tensor(W, H, 2, 2)
    np.testing.assert_allclose(columns, c.T, rtol=1e-8)
    rest = T - np.einsum("jk,sk,gk->jsg", a, b, c)
    assert loss == pytest.approx((rest**2).sum() / 2)


@pytest.mark.parametrize("meta", _meta_planted.METAS)
def test_clusters_that_are_in_every_run_are_its_metaclusters(meta):
    _, W, H = make_biclusters(random_state=0)
    runs = [
        (W[:, order] * scale, H[order] / scale)
        for order, scale in (([0, 1, 2, 3], 2), ([3, 1, 0, 2], 1))
    ]
    found = normalize(_meta_planted.metaclusters(meta, runs, 4, 0))
    assert ((found @ normalize(H).T).max(axis=0) > 0.98).all()
