"""Tables that runs see in the place of X: their moments, their rows, their seeds."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import SolverConfig, loss_of, run_starts
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, roc_auc_score

from nmfcluster import NMFMetaCluster
from nmfcluster._utils.sampling import count_non_integers, poisson_counts
from nmfcluster.datasets import make_programs
from nmfcluster.meta.divergence import Divergence
from nmfcluster.meta.runs import RandomStart, Resampled
from nmfcluster.meta.squares import MatrixObjective, from_standardised

stored = pytest.mark.parametrize(
    "kind", [np.asarray, sp.csr_array], ids=["dense", "sparse"]
)
COUNTS = np.random.default_rng(0).poisson(2.0, size=(12, 9)).astype(float)
COUNTS[3] = 0


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def start(resample, seed=0, table=0, size=3):
    return RandomStart(COUNTS.shape, 1.0, np.float64, size, seed, table, resample)


@pytest.mark.slow
@stored
def test_drawn_counts_are_poisson_numbers(kind):
    rng = np.random.default_rng(0)
    tables = np.array([dense(poisson_counts(kind(COUNTS), rng)) for _ in range(4000)])
    assert_allclose(tables.mean(axis=0), COUNTS, atol=0.15)
    assert_allclose(tables.var(axis=0), COUNTS, atol=0.6)


def test_a_sparse_draw_stores_no_zeros_and_keeps_its_dtype():
    made = poisson_counts(
        sp.csr_array(COUNTS.astype(np.float32)), np.random.default_rng(1)
    )
    assert made.dtype == np.float32
    assert made.data.all()


def test_whole_numbers_are_told_from_others():
    assert count_non_integers(COUNTS) == 0
    odd = sum(int(count) % 2 for count in COUNTS.ravel())
    assert (
        count_non_integers(COUNTS / 2)
        == count_non_integers(sp.csr_array(COUNTS / 2))
        == odd
        > 0
    )


@stored
def test_a_share_of_the_rows_is_seen_once_and_others_not(kind):
    half = start(0.5)
    assert len(np.unique(half.rows())) == 6
    seen = Resampled(MatrixObjective(kind(COUNTS))).seen_by([half])
    assert_array_equal(dense(seen.X), COUNTS[half.rows()])


def test_a_share_has_a_row_for_every_cluster():
    for size in (1, 3, 12):
        assert len(np.unique(start(0.01, size=size).rows())) == size


def test_a_bootstrap_draws_as_many_rows_with_replacement():
    rows = start("bootstrap").rows()
    assert len(rows) == 12 > len(np.unique(rows))


def test_tables_differ_by_their_seed_alone():
    objective = Resampled(Divergence(COUNTS))
    first, again, other = (
        objective.seen_by([start("poisson", seed, table)]).X
        for seed, table in ((0, 0), (1, 0), (0, 1))
    )
    assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("resample", [0.5, "bootstrap"])
def test_a_run_on_rows_is_that_of_a_table_of_them(resample):
    of_rows = start(resample)
    rows, whole = of_rows.rows(), start(None)()
    assert_array_equal(
        of_rows(), np.concatenate([whole[:, rows], whole[:, 12:]], axis=1)
    )
    W, H = np.random.default_rng(1).uniform(size=(len(rows), 3)), np.ones((3, 9))
    of_all, same = Resampled(MatrixObjective(COUNTS)).of_all(of_rows, (W, H))
    assert same is H
    assert not np.delete(of_all, rows, axis=0).any()
    for i in rows:
        assert of_all[i] in W[rows == i]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "resample"),
    [("frobenius", 0.7), ("frobenius", "bootstrap"), ("kullback-leibler", "poisson")],
)
def test_the_number_of_jobs_and_the_storage_change_nothing(loss, resample):
    X = make_programs(40, 50, 3, depth=200, random_state=0)[0].astype(float)
    parameters = {
        "loss": loss,
        "resample": resample,
        "n_estimators": 5,
        "random_state": 0,
    }
    one = NMFMetaCluster(3, **parameters).fit(X)
    two = NMFMetaCluster(3, **parameters, n_jobs=2).fit(X)
    assert_array_equal(one.components_, two.components_)
    assert_array_equal(one.run_losses_, two.run_losses_)
    assert one.run_losses_.std() > 0
    again = NMFMetaCluster(3, **parameters, tol=1e-6).fit(sp.csr_array(X))
    # equal sizes may change places
    assert adjusted_rand_score(one.labels_, again.labels_) == 1


@pytest.mark.slow
def test_what_is_planted_recurs_and_what_is_not_does_not():
    """With two clusters too many, they are pieces of others, in each run of other ones."""
    planted, spurious = [], []
    for seed in range(4):
        X, _, H = make_programs(300, 400, 5, depth=300, random_state=seed)
        model = NMFMetaCluster(
            7, loss="kullback-leibler", resample="bootstrap", random_state=seed
        ).fit(X)
        unit, found = (
            F / np.linalg.norm(F, axis=1, keepdims=True) for F in (H, model.components_)
        )
        cosine = found @ unit.T
        matched, own = linear_sum_assignment(-cosine)
        assert cosine[matched, own].min() > 0.9
        planted += list(model.recurrence_[matched])
        spurious += list(np.delete(model.recurrence_, matched))
    assert roc_auc_score([1] * 20 + [0] * 8, planted + spurious) > 0.9
    assert np.mean(planted) > np.mean(spurious) + 0.4


def test_rows_that_a_run_did_not_see_are_fitted():
    X = make_programs(40, 50, 3, depth=200, random_state=0)[0]
    model = NMFMetaCluster(3, resample=0.2, n_estimators=2, random_state=0).fit(X)
    assert (model.partitions_ >= 0).all()


@pytest.mark.sampled(8)
@pytest.mark.parametrize("loss", [MatrixObjective, Divergence])
@pytest.mark.parametrize(
    ("resample", "kind"),  # the last two take rows
    [
        ("poisson", np.asarray),
        ("poisson", sp.csr_array),
        ("bootstrap", np.asarray),
        (0.7, sp.csr_array),
    ],
)
def test_runs_side_by_side_are_those_of_each_alone_to_the_bit(loss, resample, kind):
    missing = sp.csr_array(
        np.random.default_rng(1).uniform(size=COUNTS.shape) < 0.1, dtype=float
    )
    known = kind(COUNTS * (1 - missing.toarray()))
    fixed = np.full((1, COUNTS.shape[1]), 1 / COUNTS.shape[1])
    for objective in (loss(known, missing), loss(kind(COUNTS), fixed=fixed)):
        several = Resampled(objective)
        starts = [start(resample, seed, table=seed) for seed in range(4)]
        config = SolverConfig(
            3,
            from_standardised,
            n_init=1,
            max_iter=40,
            tol=1e-3,
            n_jobs=1,
            relative_to_loss=True,
            min_iter=5,
            prune_from=None,
        )
        together = run_starts(several, starts, config, "runs")
        alone = [run_starts(several, [one], config, "run")[0] for one in starts]
        # some end before others
        assert len({solution.n_iter for solution in alone}) > 1
        alone.sort(key=loss_of)
        for one, same in zip(together, alone, strict=True):
            assert_array_equal(one.history, same.history)
            assert_array_equal(one.factors[0], same.factors[0])
            assert_array_equal(one.factors[1], same.factors[1])
