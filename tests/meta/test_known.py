"""Components that are all known, or nearly: few samples, channels that none has, no warnings."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming
from scipy.optimize import nnls

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_signatures
from nmfcluster.meta.runs import RandomStart
from nmfcluster.metrics import match_components
from nmfcluster.model_selection import sweep_n_clusters

X, _, H = make_signatures(30, 6, 24, random_state=0)
losses = pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
kinds = pytest.mark.parametrize(
    "kind", [np.float64, np.float32, sp.csr_array], ids=["float64", "float32", "sparse"]
)


def known(k=6, components=H, loss="kullback-leibler", **parameters):
    return NMFMetaCluster(
        k,
        loss=loss,
        fixed_components=components,
        random_state=0,
        **{"n_estimators": 3} | parameters,
    )


def told(call):
    """Return what a call returns, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    return result, [str(one.message) for one in caught]


def divergence(x, means):
    return sum(m - (a * np.log(m) if a else 0) for a, m in zip(x, means, strict=True))


@pytest.mark.sampled(2)
@losses
@kinds
def test_each_sample_is_a_problem_of_its_own_where_all_components_are_known(loss, kind):
    table = X.astype(np.float32) if kind is np.float32 else kind(X * 1.0)
    model, said = told(lambda: known(loss=loss, n_estimators=20, max_iter=1).fit(table))
    assert said == []
    assert model.run_losses_.shape == (1,)
    assert model.partitions_.shape == (30, 1)
    assert_array_equal(model.transform(table), model.factor_)
    rows, components = model.factor_.astype(float), model.components_.astype(float)
    for i in (0, 7):  # as many samples as you like, one among them
        alone, said = told(lambda i=i: known(loss=loss).fit(table[[i]]))
        assert said == []
        assert_allclose(alone.factor_, rows[[i]], rtol=1e-4, atol=1e-3)
        if loss == "frobenius":
            assert_allclose(rows[i], nnls(components.T, X[i])[0], rtol=1e-3, atol=1e-2)
            continue
        least = divergence(X[i], rows[i] @ components)
        for step in np.random.default_rng(i).normal(size=(50, 6)):
            other = np.maximum(rows[i] + step, 0) @ components
            assert divergence(X[i], other) >= least - 1e-6 * abs(least)


@pytest.mark.slow
def test_components_that_are_known_do_not_count_against_samples():
    catalogue = np.random.default_rng(0).dirichlet(np.full(24, 0.3), 40)
    few = X[:3]
    model = known(42, catalogue).fit(few)
    assert model.factor_.shape == (3, 42)
    with raises_naming(ValueError, "n_clusters=44", "n_samples=3", "40"):
        known(44, catalogue).fit(few)
    with raises_naming(ValueError, "samples", "2"):
        known(41, catalogue).fit(few[:1])
    for k, least in ((41, 1), (42, 2)):
        weights = [1.0] * least + [0.0] * (3 - least)
        known(k, catalogue).fit(few, sample_weight=weights)
        weights[0] = 0
        with raises_naming(ValueError, str(least)):
            known(k, catalogue).fit(few, sample_weight=weights)
    # a share of few samples is a share of them, whatever is known
    see = RandomStart((21, 24), 1.0, float, 42, 0, 0, 0.8, 40).rows()
    assert len(see) == 17
    assert len(RandomStart((21, 24), 1.0, float, 42, 0, 0, 0.8, 22).rows()) == 20
    sweep = sweep_n_clusters(
        known(40, catalogue, n_estimators=1), few, [40, 41], n_folds=2
    )
    assert sweep.estimators[1].factor_.shape == (3, 41)
    with raises_naming(ValueError, "n_samples=3", "40", "44"):
        sweep_n_clusters(known(40, catalogue), few, [40, 44])


def test_known_components_that_no_sample_has_are_the_answer():
    absent = np.vstack([H, np.eye(24)[:2]])
    table = X.copy()
    table[:, :2] = 0
    _, said = told(lambda: known(8, absent).fit(table))
    assert said == []
    model, said = told(lambda: known(5, absent[[0, 1, 6, 7]]).fit(table))
    assert said == []
    assert_array_equal(model.factor_[:, 2:4], 0)


@pytest.mark.sampled(2)
@kinds
def test_counts_in_columns_that_no_component_has_are_left_out_and_told(kind):
    lacking, answers = H.copy(), []
    lacking[:, 0] = 0
    for counts in (0, 1, 500):
        table = X * 1.0
        table[:, 0], table[5, 0] = 0, counts
        table = table.astype(np.float32) if kind is np.float32 else kind(table)
        model, said = told(lambda table=table: known(components=lacking).fit(table))
        assert len(said) == (counts > 0)
        where = (
            r"in 1 column of X, [0]: "
            + f"{counts} of {int(table.sum())} counts are left out"
        )
        assert all(where in one for one in said)
        usages, again = told(lambda model=model, table=table: model.transform(table))
        assert again == said
        assert_array_equal(usages, model.factor_)
        answers.append((model.factor_, model.reconstruction_err_))
        _, said = told(
            lambda table=table: known(components=lacking, loss="frobenius").fit(table)
        )
        assert said == []  # squares count what is not explained
    for factor, error in answers[1:]:
        assert_array_equal(factor, answers[0][0])
        assert_allclose(error, answers[0][1], rtol=1e-6)


def test_columns_that_no_component_has_are_named():
    pd = pytest.importorskip("pandas")
    names = [f"A[C>{j}]T" for j in range(24)]
    lacking = H.copy()
    lacking[:, 3:5] = 0
    frame = pd.DataFrame(X, columns=names)
    _, said = told(
        lambda: known(components=pd.DataFrame(lacking, columns=names)).fit(frame)
    )
    assert len(said) == 1
    assert f"2 columns of X, {names[3:5]}: {X[:, 3:5].sum()} of" in said[0]
    # of others, in which a component is free, that one has them
    model, said = told(lambda: known(7, lacking).fit(frame))
    assert said == []
    assert (model.components_[6, 3:5] > 0).all()


@losses
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_negative_entries_are_counted_and_the_cure_fits_the_loss(kind, loss):
    table = X * 1.0
    table[2, 3], table[4, 5] = -0.02, -0.5
    wanted = ["2 of 720", "-0.5", *["shift"] * (loss == "frobenius"), "counts"]
    with raises_naming(ValueError, *wanted):
        NMFMetaCluster(3, loss=loss).fit(kind(table))
    with raises_naming(ValueError, *wanted):
        sweep_n_clusters(NMFMetaCluster(3, loss=loss), kind(table), [3, 4])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [np.array, sp.csr_array])
def test_a_rule_that_changes_for_want_of_whole_numbers_is_told(kind):
    options = {"n_estimators": 2, "random_state": 0, "tol": 1e-2, "max_iter": 30}
    half = X[:12] * 1.0
    half[0, half[0].argmax()] += 0.5
    logs = np.log1p(half)

    def rule(table, loss, **asked):
        model = NMFMetaCluster(2, loss=loss, **options)
        sweep, said = told(
            lambda: sweep_n_clusters(model, kind(table), [2, 3], **asked)
        )
        return sweep.method, [one for one in said if "whole" in one]

    for loss in ("frobenius", "kullback-leibler"):
        method, [said] = rule(half, loss)
        assert method == "recurrence"
        assert "X is not whole in 1 entry: recurrence decides" in said
        assert rule(half, loss, method="recurrence") == ("recurrence", [])
    # nobody takes these for counts
    assert rule(logs, "frobenius") == ("recurrence", [])
    assert len(rule(logs, "kullback-leibler")[1]) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("library", "other"), [("pandas", "polars"), ("polars", "pandas")]
)
def test_names_of_features_are_read_of_both_libraries(library, other):
    names = [f"c{j}" for j in range(24)]

    def frame(of, values):
        module = pytest.importorskip(of)
        given = {"columns": names} if of == "pandas" else {"schema": names}
        return module.DataFrame(values, **given)

    table, catalogue = frame(library, X), frame(other, H)
    turned = catalogue[names[::-1]]
    expected, said = told(lambda: known(components=catalogue).fit(table))
    assert said == []
    model, said = told(lambda: known(components=turned).fit(table))
    assert len(said) == 1
    assert "fixed_components has the columns" in said[0]
    assert_array_equal(model.factor_, expected.factor_)
    assert model.to_frames()[1].columns.tolist() == names
    (counterparts, cosines), said = told(
        lambda: match_components(turned, frame(library, H))
    )
    assert len(said) == 1
    assert_array_equal(counterparts, np.arange(6))
    assert_allclose(cosines, 1)
    _, said = told(
        lambda: sweep_n_clusters(known(components=turned), table, [6, 7], n_folds=2)
    )
    assert sum("fixed_components has the columns" in one for one in said) == 1
    for pair in ((table, X), (X, table)):
        _, [said] = told(lambda pair=pair: match_components(*pair))
        assert "has no names: features are taken by position" in said
    assert told(lambda: match_components(X, X))[1] == []


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_of_other_features_say_which_these_are(library):
    module = pytest.importorskip(library)
    names = [f"c{j}" for j in range(24)]
    title = "columns" if library == "pandas" else "schema"
    table, catalogue = (module.DataFrame(F, **{title: names}) for F in (X, H))
    fewer = catalogue[names[:20]]
    more = module.DataFrame(np.hstack([H, H[:, :1]]), **{title: [*names, "old"]})
    of_table = "X", "4", "['c20', 'c21', 'c22']", "20"
    with raises_naming(ValueError, "fixed_components", of_table):
        known(components=fewer).fit(table)
    with raises_naming(ValueError, "fixed_components", "['old']", "24"):
        known(components=more).fit(table)
    with raises_naming(ValueError, "components_b", "4", "20"):
        match_components(fewer, catalogue)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", ["frobenius", "kullback-leibler"])
def test_features_that_were_not_measured_are_left_out_of_usages(loss, dtype, storage):
    holey = X.astype(dtype)
    holey[:, 20:] = np.nan
    norm = np.linalg.norm if loss == "frobenius" else np.sum
    # of a row of the catalogue that is left
    share = norm(H[:, :20], axis=1) / norm(H, axis=1)
    found = known(loss=loss).fit(storage(holey)).factor_ * share
    left = known(loss=loss, components=H[:, :20]).fit(X[:, :20].astype(dtype)).factor_
    assert_allclose(found, left, atol=1e-5 * left.max())
    with raises_naming(ValueError, "column 20", "NaN"):
        known(loss=loss, components=H[:3]).fit(holey)
