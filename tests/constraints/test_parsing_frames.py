"""Pairs, ids, labels and masks from the data frames of pandas and polars."""

import numpy as np
import pytest
from refusals import raises_naming

from nmfcluster.constraints import PairwiseConstraints


def test_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"size": [1.0, 2.0, 3.0]}, index=["u", "v", "w"])
    expected = PairwiseConstraints(3, [(0, 2)], [(0, 1, 0.5)])
    apart = pd.DataFrame({"one": ["v"], "other": ["u"], "cost": [0.5]})
    for ids in (frame, frame.index, pd.Series(["u", "v", "w"], index=[9, 9, 9])):
        together = pd.DataFrame([["w", "u"]], columns=["same", "same"])
        assert PairwiseConstraints.from_ids(ids, together, apart) == expected
    dates = pd.date_range("2020-01-01", periods=3)
    pairs = pd.DataFrame({"one": [dates[2]], "other": [dates[0]]})
    assert PairwiseConstraints.from_ids(dates, pairs) == PairwiseConstraints(
        3, [(0, 2)]
    )
    levels = pd.MultiIndex.from_product([["a", "b"], [1, 2]])
    constraints = PairwiseConstraints.from_ids(levels, [(("b", 2), ("a", 1))])
    assert constraints == PairwiseConstraints(4, [(0, 3)])
    by_position = pd.DataFrame({"i": [2], "j": [0]}, index=[77])
    weights = pd.DataFrame({"i": [1], "j": [0], "cost": [0.5]})
    assert PairwiseConstraints(3, by_position, weights) == expected
    assert PairwiseConstraints(3, by_position.astype("Int64"), weights) == expected
    for listed in (pd.Series([(2, 0)]), pd.MultiIndex.from_frame(by_position)):
        assert PairwiseConstraints(3, listed, weights) == expected
    with raises_naming(ValueError, "must_link", "'i'"):
        PairwiseConstraints.from_ids(frame, [("u", "i")])
    labels = PairwiseConstraints.from_labels([0, 1, -1])
    for series in (
        pd.Series(["b", "a", None]),
        pd.Series(["b", "a", None], dtype="category"),
        pd.Series([5, 3, None], dtype="Int64", index=[4, 4, 4]),
        pd.Series([5.0, 3.0, np.nan]),
    ):
        assert PairwiseConstraints.from_labels(series) == labels
        assert labels.satisfaction(series) == 1
    mask = pd.Series([True, False, True], index=[2, 1, 0])
    assert (
        expected[mask]
        == expected[pd.Series([0, 2])]
        == PairwiseConstraints(2, [(0, 1)])
    )


def test_polars():
    pl = pytest.importorskip("polars")
    expected = PairwiseConstraints(3, [(0, 2)], [(0, 1, 0.5)])
    apart = pl.DataFrame({"one": ["v"], "other": ["u"], "cost": [0.5]})
    constraints = PairwiseConstraints.from_ids(
        pl.Series(["u", "v", "w"]), pl.DataFrame({"one": ["w"], "other": ["u"]}), apart
    )
    assert constraints == expected
    by_position = pl.DataFrame({"i": [2], "j": [0]})
    assert PairwiseConstraints(3, by_position, [(0, 1, 0.5)]) == expected
    labels = PairwiseConstraints.from_labels([0, 1, -1])
    for series in (pl.Series(["b", "a", None]), pl.Series([5, 3, None])):
        assert PairwiseConstraints.from_labels(series) == labels
    assert expected[pl.Series([True, False, True])] == PairwiseConstraints(2, [(0, 1)])
    with raises_naming(TypeError, "ids"):
        PairwiseConstraints.from_ids(by_position)
