"""Tables of the same samples in another order: matched by their index, or refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from refusals import raises_naming, warns_naming
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import (
    NMFConsensus,
    PairwiseConstraints,
    SimilarityFusionNMF,
    SimilarityStack,
    SSNMFClusterer,
)
from nmfcluster._utils.validation import row_order
from nmfcluster.datasets import make_partitions

X, Y = make_blobs(40, centers=3, cluster_std=3, random_state=0)
NAMES = [f"sample {i}" for i in range(40)]
ORDER = np.random.default_rng(0).permutation(40)
FRAME = pd.DataFrame(X, index=NAMES)
KERNELS = [
    pd.DataFrame(rbf_kernel(X, gamma=g), index=NAMES, columns=NAMES) for g in (0.1, 1)
]
TABLE = pd.DataFrame(
    make_partitions((20, 12, 8), n_partitions=9, noise=0.2, random_state=0)[0],
    index=NAMES,
)
CLASSES = pd.Series(Y, index=NAMES)


def shuffled(table):
    both = hasattr(table, "columns") and list(table.columns) == NAMES
    return table.iloc[ORDER, ORDER] if both else table.iloc[ORDER]


def consensus(X, arrange):
    return NMFConsensus(3, random_state=0).fit(X, partitions=arrange(TABLE))


def consensus_of_vectors(X, arrange):
    vectors = [arrange(TABLE[column]) for column in TABLE]
    return NMFConsensus(3, random_state=0).fit(X, partitions=vectors)


def constrained_by_labels(X, arrange):
    # of all pairs: no draw depends on the order
    known = PairwiseConstraints.from_labels(CLASSES)
    known = known[ORDER] if arrange is shuffled else known
    return SSNMFClusterer(3, random_state=0).fit(X, constraints=known)


def constrained_by_names(X, arrange):
    must = [(NAMES[i], NAMES[i + 20]) for i in range(9) if Y[i] == Y[i + 20]]
    known = PairwiseConstraints.from_ids(arrange(FRAME), must).closure()
    return SSNMFClusterer(3, random_state=0).fit(X, constraints=known)


def fused(X, arrange):
    first, names = KERNELS[0].to_numpy(), getattr(X, "index", None)
    first = first if names is None else pd.DataFrame(first, names, names)
    return SimilarityFusionNMF(3, n_init=2, random_state=0).fit(
        [first, arrange(KERNELS[1])]
    )


FITS = [
    consensus,
    consensus_of_vectors,
    constrained_by_labels,
    constrained_by_names,
    fused,
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fit", FITS)
def test_another_order_of_rows_is_undone_and_said(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = fit(FRAME, lambda table: table)
    with warns_naming(UserWarning, "order", "index"):
        found = fit(FRAME, shuffled)
    assert_array_equal(found.labels_, expected.labels_)


@pytest.mark.parametrize("fit", FITS)
def test_other_names_are_refused(fit):
    other = FRAME.set_axis([f"other {i}" for i in range(40)])
    with raises_naming(ValueError, "names"):
        fit(other, lambda table: table)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("fit", FITS)
def test_without_an_index_rows_are_taken_by_position(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = fit(FRAME, lambda table: table)
        # a source without names beside one that has some is warned of
        warnings.filterwarnings("default" if fit is fused else "error", ".*by position")
        for bare in (X, pd.DataFrame(X)):
            assert_array_equal(fit(bare, lambda table: table).labels_, expected.labels_)


def test_columns_are_put_into_the_order_of_rows():
    plain = SimilarityStack(KERNELS)
    with warns_naming(UserWarning, "'source1'"):
        found = SimilarityStack([KERNELS[0], KERNELS[1].iloc[:, ORDER]])
    assert_array_equal(found.toarray(), plain.toarray())


def test_names_that_occur_twice_tell_nothing():
    one, other = pd.Index(["a", "a", "b"]), pd.Index(["a", "b", "a"])
    assert row_order(one, one, "table") is None
    with raises_naming(ValueError, "twice"):
        row_order(one, other, "table")


SIMILAR = [
    NMFConsensus(3, affinity="precomputed", random_state=0),
    SSNMFClusterer(3, affinity="precomputed", random_state=0),
    SimilarityFusionNMF(3, n_init=2, random_state=0),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("model", SIMILAR, ids=lambda model: type(model).__name__)
def test_columns_of_a_similarity_are_put_into_the_order_of_its_samples(model):
    numbers = range(100, 140)
    K = KERNELS[0].set_axis(numbers).set_axis(numbers, axis=1)
    expected = model.fit(K).labels_
    predicted = model.predict(K)
    for moved in (K.iloc[:, ORDER], K.iloc[:9, ORDER]):
        with warns_naming(UserWarning, "X", "columns", "order"):
            assert_array_equal(model.predict(moved), predicted[: len(moved)])
    with warns_naming(UserWarning, "X", "columns", "order"):
        assert_array_equal(model.fit(K.iloc[:, ORDER]).labels_, expected)


@pytest.mark.parametrize("model", SIMILAR, ids=lambda model: type(model).__name__)
def test_columns_with_names_must_keep_their_order_as_everywhere_in_scikit_learn(model):
    with raises_naming(ValueError, "order"):
        model.fit(KERNELS[0]).predict(KERNELS[0].iloc[:9, ORDER])


def test_the_columns_of_several_similarities_are_matched_in_predict():
    model = SimilarityFusionNMF(3, n_init=2, random_state=0).fit(
        None, similarities=KERNELS
    )
    expected = model.predict(KERNELS)
    with warns_naming(UserWarning, "X", "columns", "order"):
        found = model.predict([K.iloc[:9, ORDER] for K in KERNELS])
    assert_array_equal(found, expected[:9])
    with warns_naming(UserWarning, "order"):
        found = model.predict([K.iloc[:, ORDER] for K in KERNELS])
    assert_array_equal(found, expected)


def test_a_stack_keeps_the_names_of_its_samples():
    stack = SimilarityStack([np.eye(40), *KERNELS])
    assert list(stack.index) == NAMES
    part = SimilarityStack(stack)[np.ix_(ORDER[:9], ORDER[3:])]
    assert list(part.index) == [NAMES[i] for i in ORDER[:9]]
    assert SimilarityStack([np.eye(3)]).index is None


# --- similarities of some of the samples each -----------------------------------------------------


def some_of(K, chosen):
    return K.iloc[chosen, chosen]


@pytest.mark.parametrize("ids", ["words", "numbers", "numbers, and text in columns"])
def test_frames_of_some_samples_are_those_that_pandas_fills_up(ids):
    rng = np.random.default_rng(1)
    names = NAMES if ids == "words" else [*range(100, 140)]
    whole = [pd.DataFrame(K.to_numpy(np.float32), names, names) for K in KERNELS]
    # in the frame, but not seen
    whole[1].iloc[17], whole[1].iloc[:, 17] = (np.nan, np.nan)
    chosen = [np.arange(30), rng.permutation(np.arange(10, 38))]
    frames = [some_of(K, some) for K, some in zip(whole, chosen, strict=True)]
    union = [
        *frames[0].index,
        *(name for name in frames[1].index if name not in frames[0].index),
    ]
    expected = [K.reindex(index=union, columns=union).to_numpy() for K in frames]
    if ids.endswith("columns"):  # as they are read from a file
        frames = [K.set_axis(K.columns.astype(str), axis=1) for K in frames]
    kept = [K.copy() for K in frames]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stack = SimilarityStack(dict(zip("ab", frames, strict=True)))
    assert stack.names == ("a", "b")
    assert list(stack.index) == union
    assert stack.dtype == np.float32
    assert_array_equal(stack.toarray(), np.stack(expected, axis=-1))
    assert_array_equal(stack.seen(), ~np.isnan(stack.toarray()).all(axis=1))
    assert all(K.equals(as_before) for K, as_before in zip(frames, kept, strict=True))


def test_the_columns_of_some_samples_are_put_into_the_order_of_rows():
    frames = [some_of(KERNELS[0], range(30)), some_of(KERNELS[1], range(10, 40))]
    plain = SimilarityStack(frames)
    with warns_naming(UserWarning, "'source1'", "columns"):
        found = SimilarityStack([frames[0], frames[1].iloc[:, ::-1]])
    assert_array_equal(found.toarray(), plain.toarray())


def test_frames_with_names_are_matched_whatever_comes_before():
    bare = pd.DataFrame(KERNELS[0].to_numpy())
    with warns_naming(UserWarning, "'source2'", "order"):
        stack = SimilarityStack([bare, KERNELS[0], some_of(KERNELS[1], ORDER)])
    assert_array_equal(
        stack.toarray(), SimilarityStack([*KERNELS[:1] * 2, KERNELS[1]]).toarray()
    )
    assert list(stack.index) == NAMES
    numbered = KERNELS[0].set_axis(range(1, 41)).set_axis(range(1, 41), axis=1)
    with warns_naming(UserWarning, "'source1'", "position"):
        stack = SimilarityStack([numbered, bare])
    assert_array_equal(stack.toarray(), SimilarityStack(KERNELS[:1] * 2).toarray())


def test_a_fit_to_some_samples_of_each_source_names_them():
    nets = {
        "a": some_of(KERNELS[0], range(30)),
        "b": some_of(KERNELS[0], range(39, 4, -1)),
    }
    model = SimilarityFusionNMF(3, random_state=0).fit(similarities=nets)
    assert list(model.sample_names_) == NAMES[:30] + NAMES[:29:-1]
    whole = [K.reindex(index=NAMES, columns=NAMES) for K in nets.values()]
    expected = SimilarityFusionNMF(3, random_state=0).fit(similarities=whole)
    labels = pd.Series(model.labels_, model.sample_names_)
    assert_array_equal(labels[NAMES], expected.labels_)
    assert_array_equal(model.predict(nets), model.predict(SimilarityStack(nets)))
    new = {
        name: K.iloc[:4].reindex(columns=model.sample_names_)
        for name, K in nets.items()
    }
    new["b"] = new["b"].set_axis(new["a"].index)
    assert model.predict(new).shape == (4,)
    assert list(SimilarityFusionNMF(3).fit(KERNELS[0]).sample_names_) == NAMES
    assert not hasattr(
        SimilarityFusionNMF(3).fit(KERNELS[0].to_numpy()), "sample_names_"
    )
    assert not hasattr(
        SimilarityFusionNMF(3).fit(pd.DataFrame(KERNELS[0].to_numpy())), "sample_names_"
    )
