"""NMFMetaCluster: planted biclusters, every attribute by its definition, what must not matter."""

import pickle
import warnings
from functools import partial
from itertools import pairwise, product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from internals import canonical_order
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score, consensus_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler

from nmfcluster import NMFConsensus, NMFMetaCluster
from nmfcluster.datasets import make_biclusters
from nmfcluster.meta import estimator
from nmfcluster.metrics import (
    cluster_consensus,
    cophenetic_correlation,
    match_components,
)
from nmfcluster.model_selection import FullSampleSplit, StabilityScorer

NOISY = make_biclusters(noise=0.3, random_state=0)[0]
NOISY[[4, 9]] = 0  # samples that no cluster explains any of
NOISY = NOISY[canonical_order(NOISY).samples]  # in which runs are
EASY, STRENGTH, _ = make_biclusters(
    (40, 30), 3, twins=False, overlap=0.1, random_state=1
)


def model(n_clusters=4, **parameters):
    return NMFMetaCluster(
        n_clusters, **{"n_estimators": 8, "random_state": 0} | parameters
    )


def share(F, threshold):
    return F >= threshold * F.max(axis=1, keepdims=True)


def found(fitted, H):
    """Cosines of planted components with those that were found, the least one."""
    return match_components(H, fitted.components_)[1].min()


def sets(mask):
    return sorted(tuple(np.flatnonzero(row)) for row in mask)


# --- planted biclusters --------------------------------------------------------------------------


def test_planted_biclusters_are_found_where_single_runs_fail():
    X, W, H = make_biclusters((42, 70), 8, random_state=3)
    with warnings.catch_warnings():
        # fewer clusters than asked for
        warnings.simplefilter("ignore", ConvergenceWarning)
        single = [model(8, n_estimators=1, random_state=s).fit(X) for s in range(3)]
    assert max(found(fitted, H) for fitted in single) < 0.9
    fitted = model(8, n_estimators=20).fit(X)
    assert found(fitted, H) >= 0.999
    assert consensus_score(fitted.biclusters_, (share(W.T, 0.2), share(H, 0.2))) == 1
    assert sets(fitted.rows_) == sets(share(W.T, 0.2))
    assert sets(fitted.columns_) == sets(share(H, 0.2))
    assert fitted.reconstruction_err_ < 2e-3 * np.linalg.norm(X)


def test_planted_biclusters_are_found_in_noise():
    X, _, H = make_biclusters(noise=0.1, random_state=0)
    assert found(model(n_estimators=20).fit(X), H) >= 0.99


# --- attributes by their definitions -------------------------------------------------------------


@pytest.fixture(
    scope="module",
    params=[
        {},
        {"meta": "nmf", "base_n_clusters": (2, 6), "threshold": 0.5, "resample": None},
        {"sparsity": 0.05, "penalty": "l1_columns", "n_clusters": 3},
    ],
    ids=["ptf", "nmf", "sparse"],
)
def noisy(request):
    """Return a model of the noisy table, and its runs and metaclusters."""
    returned = {}

    def keeping(name, original, *arguments):
        returned[name] = original(*arguments)
        return returned[name]

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore", ConvergenceWarning)
        for name in ("run_many", "refine"):
            patch.setattr(
                estimator, name, partial(keeping, name, getattr(estimator, name))
            )
        fit = model(**request.param).fit(NOISY)
    return fit, returned["run_many"], returned["refine"][0]


@pytest.mark.sampled(2)
def test_factor_is_the_least_squares_fit_to_components_of_length_1(noisy):
    fitted, *_ = noisy
    H = fitted.components_
    assert_allclose(np.linalg.norm(H, axis=1), 1, rtol=1e-12)
    assert H.min() >= 0
    expected = np.array([nnls(H.T, row)[0] for row in NOISY])
    assert_allclose(fitted.factor_, expected, atol=1e-9)
    error = np.linalg.norm(NOISY - expected @ H)
    assert_allclose(fitted.reconstruction_err_, error, rtol=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_what_clusters_add_to_a_composition_are_its_shares(loss):
    rng = np.random.default_rng(0)
    # end members that are spread over few features and over many
    H = np.array([rng.dirichlet(np.full(25, spread)) for spread in (0.2, 0.2, 3)])
    shares = rng.dirichlet(np.ones(3), 60)
    X = shares @ H
    model = NMFMetaCluster(3, loss=loss, fixed_components=H, random_state=0).fit(X)
    assert_allclose(model.factor_ * model.components_.sum(axis=1), shares, atol=1e-4)
    free = NMFMetaCluster(3, loss=loss, n_estimators=5, random_state=0).fit(X)
    found, _ = match_components(H, free.components_)
    added = free.factor_ * free.components_.sum(axis=1)
    assert np.abs(added[:, found] - shares).mean() < 0.05


def test_labels_and_memberships_are_those_of_the_factor(noisy):
    fitted, *_ = noisy
    k = fitted.n_clusters
    for row, label, membership in zip(
        fitted.factor_, fitted.labels_, fitted.membership_, strict=True
    ):
        if row.sum() == 0:
            assert label == -1
            assert_array_equal(membership, np.full(k, 1 / k))
        else:
            assert label == row.argmax()
            assert_allclose(membership, row / row.sum(), rtol=1e-12)
    assert_array_equal(fitted.labels_ == -1, ~NOISY.any(axis=1))
    sizes = np.bincount(fitted.labels_[fitted.labels_ >= 0], minlength=k)
    assert all(a >= b for a, b in pairwise(sizes))


def test_biclusters_are_what_reaches_the_threshold(noisy):
    fitted, *_ = noisy
    W, H, t = fitted.factor_, fitted.components_, fitted.threshold
    for c in range(fitted.n_clusters):
        rows = [s for s in range(len(W)) if W[s, c] >= t * W[:, c].max()]
        columns = [g for g in range(H.shape[1]) if H[c, g] >= t * H[c].max()]
        assert_array_equal(np.flatnonzero(fitted.rows_[c]), rows)
        assert_array_equal(np.flatnonzero(fitted.columns_[c]), columns)
        assert_array_equal(fitted.get_indices(c)[0], rows)
        assert_array_equal(fitted.get_indices(c)[1], columns)
        assert fitted.get_shape(c) == (len(rows), len(columns))
        assert_array_equal(fitted.get_submatrix(c, NOISY), NOISY[rows][:, columns])
    assert fitted.biclusters_[0] is fitted.rows_
    assert fitted.biclusters_[1] is fitted.columns_
    assert fitted.rows_.dtype == fitted.columns_.dtype == bool


def test_correspondence_is_that_of_the_metaclusters(noisy):
    fitted, runs, metaclusters = noisy
    assert_allclose(fitted.correspondence_.sum(axis=0), fitted.n_estimators, rtol=1e-12)
    columns = metaclusters.correspondence.T.tolist()
    order = [columns.index(column) for column in fitted.correspondence_.T.tolist()]
    assert sorted(order) == list(range(fitted.n_clusters))  # the same, in another order
    assert_array_equal(
        (fitted.components_ @ metaclusters.columns.T).argmax(axis=1), order
    )
    sizes = np.bincount(fitted.base_runs_, minlength=fitted.n_estimators)
    low, high = (
        (fitted.n_clusters,) * 2
        if fitted.base_n_clusters is None
        else fitted.base_n_clusters
    )
    assert ((sizes >= low) & (sizes <= high)).all()
    assert_array_equal(sizes, [len(runs.H[own]) for own in runs.slices()])
    assert (np.diff(fitted.base_runs_) >= 0).all()
    assert len(fitted.base_runs_) == len(fitted.correspondence_)


def test_of_several_metaclusterings_that_with_the_smallest_loss_is_kept():
    X, _, _ = make_biclusters((42, 70), 8, noise=0.25, random_state=0)
    fitted = model(n_clusters=8, n_estimators=10, n_init=10).fit(X)
    ends = [curve.min() for curve in fitted.loss_curves_]
    assert len(ends) > 1
    assert fitted.loss_ == min(ends) < max(ends)


def test_runs_come_in_the_order_of_their_losses(noisy):
    fitted, runs, _ = noisy
    assert (np.diff(fitted.run_losses_) >= 0).all()
    for run in range(fitted.n_estimators):
        own = fitted.base_runs_ == run
        W, H = runs.W[own].T, runs.H[own]
        if fitted.resample is None:
            loss = np.linalg.norm(NOISY - W @ H) ** 2 / 2
            assert_allclose(fitted.run_losses_[run], loss, rtol=1e-9)
        expected = [row.argmax() if row.sum() else -1 for row in W]
        assert_array_equal(fitted.partitions_[:, run], expected)


def test_recurrence_is_the_mean_cosine_of_mutual_neighbours(noisy):
    fitted, runs, _ = noisy
    own = [
        np.outer(w, h)
        for w, h in zip(fitted.factor_.T, fitted.components_, strict=True)
    ]
    theirs = [np.outer(w, h) for w, h in zip(runs.W, runs.H, strict=True)]

    def cosine(a, b):
        return (a * b).sum() / (np.linalg.norm(a) * np.linalg.norm(b))

    for c in range(fitted.n_clusters):
        cosines = []
        for run in range(fitted.n_estimators):
            members = np.flatnonzero(fitted.base_runs_ == run)
            best = max(members, key=lambda j: cosine(theirs[j], own[c]))
            back = max(range(len(own)), key=lambda d: cosine(theirs[best], own[d]))
            if back == c:
                cosines.append(cosine(theirs[best], own[c]))
        assert_allclose(
            fitted.recurrence_[c], sum(cosines) / fitted.n_estimators, rtol=1e-9
        )


def test_confidence_is_that_of_partitions(noisy):
    fitted, *_ = noisy
    found = cluster_consensus(fitted.partitions_, fitted.labels_)
    placed = fitted.labels_ >= 0
    sizes = np.bincount(fitted.labels_[placed])
    sums = np.bincount(fitted.labels_[placed], fitted.confidence_[placed])
    assert_allclose(found, sums[sizes > 0] / sizes[sizes > 0])
    assert not fitted.confidence_[~placed].any()


def test_losses_are_those_of_the_last_factorization(noisy):
    fitted, *_ = noisy
    assert len(fitted.loss_curve_) == fitted.n_iter_ + 1
    assert len(fitted.loss_curves_) == 1
    assert_array_equal(fitted.loss_curves_[0], fitted.loss_curve_)
    assert fitted.loss_ == fitted.loss_curve_.min()
    assert (np.diff(fitted.loss_curve_) <= 1e-12 * fitted.loss_curve_[0]).all()
    if not fitted.sparsity:  # the rows are still improved after it
        assert fitted.reconstruction_err_**2 / 2 <= fitted.loss_ * (1 + 1e-9)


def test_clusters_of_the_runs_are_those_of_the_metaclusters_on_easy_data():
    """Alpha is 1 for the cluster of a run that is the metacluster, 0 for others."""
    fitted = model(3).fit(EASY)
    assert_allclose(fitted.run_losses_ / np.square(EASY).sum(), 0, atol=1e-4)
    assert_allclose(np.sort(fitted.correspondence_, axis=1)[:, -1], 1, atol=0.05)
    assert_allclose(fitted.correspondence_.sum(axis=1), 1, atol=0.1)
    assert_allclose(fitted.recurrence_, 1, atol=1e-3)
    assert_allclose(fitted.confidence_, 1)


# --- scikit-learn --------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_new_samples_are_treated_like_those_of_fit(noisy):
    fitted, *_ = noisy
    assert_array_equal(fitted.transform(NOISY), fitted.factor_)
    assert_array_equal(fitted.predict(NOISY), fitted.labels_)
    # fewer rows: the last bit of a product may be another one
    assert_allclose(
        fitted.transform(NOISY[3:5]), fitted.factor_[3:5], rtol=1e-12, atol=1e-12
    )
    assert_array_equal(fitted.predict(sp.csr_array(NOISY)), fitted.labels_)
    for copy in (pickle.loads(pickle.dumps(fitted)), clone(fitted).fit(NOISY)):
        assert_array_equal(copy.transform(NOISY), fitted.factor_)
        assert_array_equal(copy.confidence_, fitted.confidence_)


def test_strengths_stand_for_the_table():
    table = EASY
    fitted = model(3, tol=1e-12, max_iter=2000, n_estimators=3).fit(table)
    W = fitted.transform(table)
    assert_allclose(fitted.inverse_transform(W), table, atol=1e-4 * table.max())
    assert_array_equal(fitted.inverse_transform(W), W @ fitted.components_)
    assert_allclose(
        fitted.inverse_transform(sp.csr_array(W)), W @ fitted.components_, atol=1e-15
    )
    assert_array_equal(clone(fitted).fit_transform(table), W)


def test_names_go_in_and_out():
    frame = pd.DataFrame(EASY, columns=[f"gene {i}" for i in range(EASY.shape[1])])
    fitted = model(3).set_output(transform="pandas").fit(frame)
    assert_array_equal(fitted.feature_names_in_, frame.columns)
    names = ["nmfmetacluster0", "nmfmetacluster1", "nmfmetacluster2"]
    assert_array_equal(fitted.get_feature_names_out(), names)
    out = fitted.transform(frame)
    assert_array_equal(out.columns, names)
    assert_array_equal(out.to_numpy(), fitted.factor_)
    assert_array_equal(fitted.labels_, model(3).fit(EASY).labels_)


def test_in_a_pipeline():
    pipeline = make_pipeline(MaxAbsScaler(), model(3)).fit(EASY)
    scaled = MaxAbsScaler().fit_transform(EASY)
    assert_array_equal(pipeline.predict(EASY), model(3).fit(scaled).labels_)
    head = make_pipeline(model(3), KMeans(3, n_init=1, random_state=0)).fit(EASY)
    W = model(3).fit(EASY).factor_
    assert_array_equal(
        head.predict(EASY), KMeans(3, n_init=1, random_state=0).fit(W).labels_
    )


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:NMFMetaCluster found:sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.parametrize(
    ("k", "resample", "n_subsamples"), [(3, None, 4), (4, 0.8, 10)]
)
def test_a_search_finds_how_many_there_are(k, resample, n_subsamples):
    X, *_ = make_biclusters(
        (80, 40), k, twins=False, overlap=0.0, noise=0.2, random_state=3
    )
    search = GridSearchCV(
        model(n_estimators=4, resample=resample),
        {"n_clusters": [2, 3, 4, 5]},
        scoring=StabilityScorer(n_subsamples=n_subsamples, subsample_size=0.5),
        cv=FullSampleSplit(),
        error_score="raise",
    )
    assert search.fit(X).best_params_ == {"n_clusters": k}


def test_consensus_matrix_counts_runs():
    fitted = model(5).fit(NOISY)
    P, C = fitted.partitions_, fitted.consensus_matrix()
    assert 0 < np.nanmin(C[C > 0]) < 1  # there is something to count
    for i, j in product(range(0, 21, 4), range(21)):
        both = (P[i] >= 0) & (P[j] >= 0)
        expected = np.mean(P[i][both] == P[j][both]) if both.any() else np.nan
        assert_allclose(C[i, j], expected)
    assert_array_equal(
        fitted.consensus_matrix([7, 2, -1]), C[np.ix_([7, 2, -1], [7, 2, -1])]
    )


def test_stable_runs_have_a_cophenetic_correlation_of_1():
    noise = np.random.RandomState(0).uniform(size=EASY.shape) ** 4
    stable, unstable = (
        cophenetic_correlation(model(k, n_estimators=12).fit(table).consensus_matrix())
        for k, table in ((3, EASY), (4, noise))
    )
    assert_allclose(stable, 1, atol=1e-12)
    assert unstable < 0.97


def test_partitions_can_be_given_to_a_consensus():
    fitted = model(3).fit(EASY)
    assert adjusted_rand_score(fitted.labels_, STRENGTH.argmax(axis=1)) > 0.8
    consensus = NMFConsensus(3, affinity="partitions", random_state=0).fit(
        fitted.partitions_
    )
    assert adjusted_rand_score(consensus.labels_, fitted.labels_) == 1
    assert_allclose(consensus.confidence_, fitted.confidence_)


def test_only_biclusters_tell_twins_apart():
    """Twins have nearly the same columns, in other samples."""
    X, _, H = make_biclusters(noise=0.2, random_state=1)
    fitted, by_columns = (
        model(meta=meta, n_estimators=20).fit(X) for meta in ("ptf", "nmf")
    )
    assert by_columns.loss_ > 1.05 * fitted.loss_
    assert found(by_columns, H) < 0.75
    assert found(fitted, H) >= 0.98


def test_samples_are_transformed_alike_alone_and_together():
    """Raw measurements: one column outweighs all others, and components are much alike."""
    X = load_wine().data.astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model(5, n_estimators=3, max_iter=50).fit(X)
    together = fitted.transform(X)
    H = fitted.components_.astype(float)
    exact = [nnls(H.T, x.astype(float))[0] for x in X]
    assert_allclose(together, exact, rtol=1e-3, atol=1e-4 * together.max())
    for i in range(0, len(X), 20):
        assert_allclose(fitted.transform(X[[i]])[0], together[i], rtol=1e-5, atol=1e-6)
