"""Programs of few rows: every seed finds them, and they recur as others do."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score

from nmfcluster import NMFMetaCluster


def counts(sizes, seed, shared=0, log_sd=0.0):
    """Return counts of groups with 40 columns each, of which the last has some of the first."""
    rng, y = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    programs = np.full((len(sizes), 40 * len(sizes)), 0.02)
    for c, program in enumerate(programs):
        program[40 * c : 40 * (c + 1)] = 1
    programs[-1, :shared] = 1
    depth = rng.lognormal(0, log_sd, size=(len(y), 1))
    return rng.poisson(depth * programs[y]).astype(float), y


def as_they_are(X):
    return X


def sparse_with_empty_columns(X):
    return sp.hstack([sp.csr_array(X), sp.csr_array((len(X), 50))], format="csr")


KINDS = {
    "a thirtieth": {"sizes": (150, 46, 6)},
    "five": {"sizes": (60, 40, 30, 20, 7)},
    "columns of another": {"sizes": (150, 45, 12), "shared": 20},
    "depth varies": {"sizes": (150, 45, 12), "log_sd": 0.4},
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("loss", "kind"),
    [*(("frobenius", kind) for kind in KINDS), ("kullback-leibler", "five")],
)
def test_a_program_of_few_rows_is_found_and_recurs(loss, kind):
    """Of squares most random starts end where it is missed and a large one is split."""
    for seed, kept in enumerate((as_they_are, sparse_with_empty_columns)):
        X, y = counts(seed=seed, **KINDS[kind])
        k = len(set(y))
        fitted = NMFMetaCluster(k, loss=loss, n_estimators=5, random_state=seed).fit(
            kept(X)
        )
        assert adjusted_rand_score(y, fitted.labels_) > 0.97
        assert set(fitted.labels_[y == k - 1]) == {k - 1}  # the smallest is the last
        assert fitted.recurrence_[-1] > 0.9


def test_it_recurs_by_any_way_to_resample():
    X, y = counts((150, 46, 10), 1)
    for resample in (None, "poisson", "bootstrap", 0.5):
        fitted = NMFMetaCluster(
            3, resample=resample, n_estimators=4, random_state=0
        ).fit(X)
        assert_allclose(fitted.recurrence_, 1, atol=0.15)
        assert adjusted_rand_score(y, fitted.labels_) == 1
