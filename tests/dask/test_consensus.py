"""Consensus of a label table in blocks: that in memory, or as good."""

import pickle
import signal

import numpy as np
import pytest
from faults.shared import heeding_interrupts
from numpy.testing import assert_allclose, assert_array_equal
from partitions.cases import complete_or_not
from refusals import raises_naming, warns_naming
from sklearn.base import clone, is_clusterer
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.utils import estimator_checks, get_tags

import nmfcluster
from nmfcluster.datasets import make_partitions
from nmfcluster.model_selection import choose_n_clusters

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
nd = pytest.importorskip("nmfcluster.dask")

QUICK = {"random_state": 0, "n_init": 1}
OF_SAMPLES = ("labels_", "membership_", "confidence_")
OF_FIT = ("loss_", "loss_curve_", "n_iter_", "agreement_", "core_", "weights_")

# Checks of scikit-learn that ask for no fit. The others fit arrays in memory, data frames,
# or lists, and this estimator takes Dask arrays alone: it refuses the rest and names the class to
# use.
WITHOUT_FIT = [
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_param_validation",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]


def planted(missing=0.0, sizes=(90, 60, 50), n_partitions=7, noise=0.3, seed=0):
    return make_partitions(
        sizes,
        n_partitions=n_partitions,
        noise=noise,
        missing=missing,
        random_state=seed,
    )[0]


def in_blocks(table, rows=80, columns=4):
    return da.from_array(table, chunks=(rows, columns))


def in_memory(**parameters):
    return nmfcluster.NMFConsensus(affinity="partitions", **QUICK | parameters)


def by_blocks(**parameters):
    return nd.NMFConsensus(**QUICK | parameters)


def assert_the_same(model, local):
    """Compare two fits to the last bit."""
    for name in OF_SAMPLES:
        found, wanted = getattr(model, name), getattr(local, name)
        assert isinstance(found, da.Array)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        computed = found.compute()
        assert computed.dtype == wanted.dtype
        assert_array_equal(computed, wanted, err_msg=name)
    for name in OF_FIT:
        assert_array_equal(getattr(model, name), getattr(local, name), err_msg=name)


def as_floats(table):
    return np.where(table < 0, np.nan, table.astype(float))


KINDS = {
    "complete": (lambda table: np.maximum(table, 0), {}),
    "weights": (lambda table: table, {"weights": [1, 2, 0.5, 3, 1, 1, 2]}),
    "weight_of_0": (
        lambda table: np.maximum(table, 0),
        {"weights": [1, 0, 1, 1, 2, 0, 1]},
    ),
    "gaps": (lambda table: np.where(table < 0, -3, table * 7 + 2), {}),
    "huge": (lambda table: np.where(table < 0, -2, table * 2**60 + 5), {}),
    "uint64": (lambda table: np.maximum(table, 0).astype(np.uint64), {}),
    "bool": (lambda table: table > 0, {"n_clusters": 2}),
    "float": (as_floats, {}),
    "starts": (
        lambda table: table,
        {"n_init": 5, "n_jobs": 2, "tol": 1e-3, "max_iter": 300},
    ),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_is_that_in_memory_to_the_last_bit(kind):
    change, parameters = KINDS[kind]
    table = change(planted(missing=0.25))
    parameters = {"n_clusters": 3} | parameters
    local = in_memory(**parameters).fit(table)
    model = by_blocks(**parameters).fit(in_blocks(table))
    assert model.is_exact_
    assert_the_same(model, local)
    seen = np.where(table >= 0, table, -1)  # NaN is not
    assert model.n_distinct_ == len(np.unique(seen, axis=0))
    assert (model.n_samples_, model.n_features_in_) == table.shape
    assert model.labels_.chunks[0] == in_blocks(table).chunks[0]


def test_blocks_without_rows_are_passed_over():
    table = planted()
    kept = table[:, 0] > 0
    X = in_blocks(np.sort(table, axis=0), 30)
    X = X[X[:, 0] > 0].compute_chunk_sizes()
    assert 0 in X.chunks[0]
    local = in_memory(n_clusters=2).fit(np.sort(table, axis=0)[np.sort(kept)])
    assert_the_same(by_blocks(n_clusters=2).fit(X), local)


def test_a_random_state_is_drawn_from_as_in_memory():
    table = planted()
    local = (
        in_memory(n_clusters=3)
        .set_params(random_state=np.random.RandomState(5))
        .fit(table)
    )
    model = by_blocks(n_clusters=3).set_params(random_state=np.random.RandomState(5))
    assert_the_same(model.fit(in_blocks(table)), local)


# --- more distinct rows than are held -------------------------------------------------------------


@pytest.mark.slow
@complete_or_not
def test_drawn_rows_lead_to_nearly_the_same(missing):
    table = planted(missing, sizes=(500, 300, 200), n_partitions=10)
    parameters = {"n_clusters": 3}
    local = in_memory(**parameters).fit(table)
    held = {"max_distinct": 300, "n_passes": 3}
    model = by_blocks(**parameters, **held).fit(in_blocks(table, 320, 4))
    assert not model.is_exact_
    assert 100 < model.n_distinct_ <= 300
    assert model.n_iter_ == len(model.loss_curve_) == 3
    assert model.loss_ == model.loss_curve_.min() <= 1.001 * local.loss_
    labels = model.labels_.compute()
    assert (labels == local.labels_).mean() >= 0.999
    assert_allclose(model.agreement_, local.agreement_, atol=0.01)
    assert np.abs(model.membership_.compute() - local.membership_).mean() < 0.01
    assert np.abs(model.confidence_.compute() - local.confidence_).mean() < 0.01
    assert_array_equal(labels, model.membership_.compute().argmax(axis=1))
    other = by_blocks(**parameters, **held).fit(in_blocks(table, 401))
    assert_the_same(other, Computed(model))


class Computed:
    """A fit whose Dask arrays are in memory."""

    def __init__(self, model):
        for name in OF_SAMPLES:
            setattr(self, name, getattr(model, name).compute())
        for name in OF_FIT:
            setattr(self, name, getattr(model, name))


def test_drawn_rows_with_a_weight_of_0():
    table = planted(0.3, sizes=(500, 400), n_partitions=6)
    lost = (table[:, 1:] < 0).all(axis=1)
    table[lost, 1] = 0
    parameters = {"n_clusters": 2, "weights": [0, 1, 1, 2, 1, 1]}
    model = by_blocks(**parameters, max_distinct=100).fit(in_blocks(table, 200))
    local = in_memory(**parameters).fit(table)
    assert (model.labels_.compute() == local.labels_).mean() > 0.99
    assert model.loss_ <= 1.01 * local.loss_


def test_more_rows_may_not_be_fewer_than_clusters():
    with raises_naming(ValueError, "max_distinct=2", "n_clusters=3"):
        by_blocks(n_clusters=3, max_distinct=2).fit(in_blocks(planted()))


# --- new samples ----------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("most", [10**5, 100])
def test_new_samples_are_read_as_by_the_estimator_in_memory(most):
    table, new = planted(0.2), planted(0.2, seed=1)
    new[3] = 17  # labels that nobody knows
    model = by_blocks(n_clusters=3, max_distinct=most).fit(in_blocks(table))
    local = model.to_local()
    assert isinstance(local, nmfcluster.NMFConsensus)
    if most > len(table):
        fitted = in_memory(n_clusters=3).fit(table)
        assert_array_equal(local.transform(new), fitted.transform(new))
        assert_array_equal(local.predict(new), fitted.predict(new))
    for rows in (40, 70):
        labels, shares = (
            model.predict(in_blocks(new, rows)),
            model.transform(in_blocks(new, rows)),
        )
        assert isinstance(labels, da.Array)
        assert (labels.shape, shares.shape) == ((200,), (200, 3))
        assert_array_equal(labels.compute(), local.predict(new))
        assert_array_equal(shares.compute(), local.transform(new))
    assert_array_equal(model.predict(new), local.predict(new))
    assert_array_equal(model.transform(new), local.transform(new))


def test_the_estimator_in_memory_is_a_copy():
    model = by_blocks(n_clusters=3).fit(in_blocks(planted()))
    labels = model.labels_.compute()
    assert len(model.to_local().labels_) == model.n_distinct_
    model.to_local().set_params(n_clusters=2).fit(planted(seed=1))
    assert model.to_local().n_clusters == 3
    assert_array_equal(model.labels_.compute(), labels)


def test_fit_predict_is_lazy_too():
    X = in_blocks(planted())
    found = by_blocks(n_clusters=3).fit_predict(X)
    assert isinstance(found, da.Array)
    assert_array_equal(
        found.compute(), by_blocks(n_clusters=3).fit(X).labels_.compute()
    )


# --- what is read, and how often ------------------------------------------------------------------


def test_blocks_are_read_once_in_a_fit_and_once_for_labels(counted):
    X, calls = counted(planted(), 50)
    model = by_blocks(n_clusters=3).fit(X)
    assert len(calls) == 4
    labels, shares = model.labels_, model.membership_
    new, asked = counted(planted(seed=1), 50)
    predicted = model.predict(new)
    assert (len(calls), len(asked)) == (4, 0)
    labels.compute()
    assert len(calls) == 8
    dask.compute(labels, shares)  # together, in one reading
    assert len(calls) == 12
    predicted[:50].compute()
    assert asked == [50]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n_passes", [3, 2])
def test_blocks_are_read_once_a_pass(counted, n_passes):
    X, calls = counted(planted(sizes=(150, 150, 150)), 90)
    by_blocks(n_clusters=3, max_distinct=100, n_passes=n_passes).fit(X)
    # the summary, the rows that are drawn, passes, and the labels by all readings
    assert len(calls) == 5 * (3 + n_passes)


@pytest.mark.parametrize("most", [10**5, 50])
def test_a_table_that_changes_is_noticed(most):
    table, turns = np.maximum(planted(), 0), []

    def turning(block):
        turns.append(0)
        return block + (len(turns) > 4) * 9  # the second reading

    X = in_blocks(table, 50, 7).map_blocks(
        turning, dtype=table.dtype, meta=np.empty((0, 0), int)
    )
    with raises_naming(RuntimeError, "X"):
        by_blocks(n_clusters=3, max_distinct=most).fit(X).labels_.compute()


def test_rows_that_change_are_noticed():
    table, turns = np.maximum(planted(), 0), []

    def turning(block):
        turns.append(0)
        return (
            block
            if len(turns) <= 4
            else np.random.default_rng(0).permuted(block, axis=0)
        )

    X = in_blocks(table, 50, 7).map_blocks(
        turning, dtype=table.dtype, meta=np.empty((0, 0), int)
    )
    model = by_blocks(n_clusters=3).fit(X)
    with raises_naming(RuntimeError, "label row"):
        model.labels_.compute()


def test_a_line_is_said_of_every_stage(caplog):
    caplog.set_level("INFO", "nmfcluster")
    X = in_blocks(planted(0.3, sizes=(150, 150, 150)), 90)
    by_blocks(n_clusters=3, max_distinct=100).fit(X)
    said = caplog.text
    assert "pass 1 over 450 rows: loss" in said
    assert "pass 2 over 450 rows: loss" in said
    assert "distinct label rows of 100 samples" in said


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
@pytest.mark.parametrize("weights", [None, [0, 1, 1, 1, 1, 1, 1]])
def test_samples_in_no_partition_are_in_no_cluster(weights):
    table = planted(0.2)
    table[[150, 177]] = -1
    if weights:
        table[[150, 177], 0] = 1
    lost = np.flatnonzero((table[:, bool(weights) :] < 0).all(axis=1))
    options = {"n_clusters": 3, "weights": weights}
    said = f"{len(lost)} samples"
    with warns_naming(UserWarning, said, str(lost[0])):
        local = in_memory(**options).fit(table)
    with warns_naming(UserWarning, said, f"row {lost[0]}") as told:
        model = by_blocks(**options).fit(in_blocks(table, 40))
    assert len(told) == 1
    assert_the_same(model, local)
    assert_array_equal(np.flatnonzero(model.labels_.compute() < 0), lost)
    with warns_naming(UserWarning, said):
        drawn = by_blocks(max_distinct=80, **options).fit(in_blocks(table, 40))
    labels = drawn.labels_.compute()
    assert not drawn.is_exact_
    assert_array_equal(np.flatnonzero(labels < 0), lost)
    assert adjusted_rand_score(local.labels_, labels) > 0.9
    assert_allclose(drawn.membership_.compute()[lost], 1 / 3)
    assert_array_equal(drawn.confidence_.compute()[lost], 0)
    assert_array_equal(
        np.bincount(labels[labels >= 0]), np.sort(np.bincount(labels + 1)[1:])[::-1]
    )


def test_an_empty_partition_is_named():
    table = planted()
    table[:, 4] = -1
    with raises_naming(ValueError, "partition 4"):
        by_blocks(n_clusters=3).fit(in_blocks(table, 40))
    weights = [1, 1, 1, 1, 0, 1, 1]  # of no weight, it may be: as in memory
    local = in_memory(n_clusters=3, weights=weights).fit(table)
    assert_the_same(
        by_blocks(n_clusters=3, weights=weights).fit(in_blocks(table, 40)), local
    )


def test_a_fit_that_fails_leaves_the_one_before():
    X = in_blocks(planted())
    model = by_blocks(n_clusters=3).fit(X)
    before = dict(vars(model))
    lost = planted()
    lost[:, 5] = -1
    for bad in (in_blocks(lost), planted(), X[:, 0], X / 2):
        with pytest.raises((ValueError, TypeError)):
            model.fit(bad)
        assert vars(model).keys() == before.keys()
        assert all(vars(model)[name] is value for name, value in before.items())
    with raises_naming(ValueError, "weights", "7"):
        clone(model).set_params(weights=[1]).fit(X)


def test_an_interrupt_reaches_the_caller_and_leaves_no_model():
    table, _ = make_partitions(120, n_partitions=4, random_state=0)
    sizes = []

    def interrupt(block):
        sizes.append(len(block))
        if len(sizes) == 3:
            signal.raise_signal(signal.SIGINT)  # the main thread handles it
        return block

    X = da.from_array(table, chunks=(10, 4))
    interrupting = X.map_blocks(interrupt, dtype=X.dtype, meta=X._meta)
    model = nd.NMFConsensus(3, random_state=0)
    with dask.config.set(scheduler="threads", num_workers=2), heeding_interrupts():
        with pytest.raises(KeyboardInterrupt):
            model.fit(interrupting)
        assert len(sizes) < 12  # blocks that waited were never read
        assert not hasattr(model, "labels_")
        again = model.fit(interrupting).labels_.compute()
    assert_array_equal(again, clone(model).fit(X).labels_.compute())


def test_a_model_has_to_be_fitted():
    model, X = by_blocks(n_clusters=3), in_blocks(planted())
    for ask in (lambda: model.predict(X), lambda: model.transform(X), model.to_local):
        with pytest.raises(NotFittedError):
            ask()


def test_fewer_clusters_than_asked_for_are_said():
    table = np.repeat([[0, 0], [1, 1]], 40, axis=0)
    with warns_naming(ConvergenceWarning, "2 clusters"):
        by_blocks(n_clusters=3).fit(in_blocks(table))


# --- as an estimator of scikit-learn --------------------------------------------------------------


def test_checks_of_scikit_learn_that_ask_for_no_fit():
    for name in WITHOUT_FIT:
        getattr(estimator_checks, name)("NMFConsensus", by_blocks(n_clusters=3))


def test_it_is_a_clusterer_with_the_parameters_of_the_one_in_memory():
    model = by_blocks(n_clusters=3)
    assert is_clusterer(model)
    assert get_tags(model).estimator_type == "clusterer"
    own, other = model.get_params(), in_memory(n_clusters=3).get_params()
    assert set(own) - set(other) == {"max_distinct", "n_passes"}  # of blocks
    shared = own.keys() & other.keys()
    assert {name: own[name] for name in shared} == {
        name: other[name] for name in shared
    }
    for name in own:
        assert f"{name} : " in type(model).__doc__


def test_a_clone_is_unfitted_and_fits_to_the_same():
    X = in_blocks(planted())
    first = by_blocks(n_clusters=3, tol=1e-4).fit(X)
    second = clone(first)
    assert second.get_params() == first.get_params()
    assert not hasattr(second, "labels_")
    assert_the_same(second.fit(X), Computed(first))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("most", [10**5, 50])
def test_stored_models_predict_and_tell_labels_as_before(most):
    X = in_blocks(planted())
    model = by_blocks(n_clusters=3, max_distinct=most).fit(X)
    again = pickle.loads(pickle.dumps(model))
    assert_the_same(again, Computed(model))
    assert_array_equal(again.predict(X).compute(), model.predict(X).compute())


def test_labels_are_no_features_to_choose_from():
    labels = np.repeat(planted(noise=0, n_partitions=3), 2, axis=1)
    found = choose_n_clusters(
        by_blocks(n_clusters=2), in_blocks(labels), [2, 3, 4], random_state=0
    )
    assert (found.method, found.n_clusters_) == ("eigengap", 3)
