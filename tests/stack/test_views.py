"""Several tables of the same samples: what the container holds, how rows are matched, its cuts."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.model_selection import train_test_split

from nmfcluster.stack import ViewStack

RNG = np.random.RandomState(0)
NARROW, WIDE = RNG.normal(size=(6, 2)), RNG.normal(size=(6, 5))
SAMPLES = list("uvwxyz")


def frame(table, index=SAMPLES):
    columns = [f"f{i}" for i in range(table.shape[1])]
    return pd.DataFrame(table, index=index, columns=columns)


def test_attributes():
    views = ViewStack({"narrow": NARROW, "wide": sp.coo_array(WIDE)})
    assert views.names == ("narrow", "wide")
    assert views.n_features == {"narrow": 2, "wide": 5}
    assert views.shape == (6, 6, 2)
    assert len(views) == 6
    assert views.index is None
    assert_array_equal(views.views[0], NARROW)
    assert_array_equal(views.views[1].toarray(), WIDE)
    assert repr(views) == "ViewStack(6 samples, narrow: 2 features, wide: 5 features)"


def test_names():
    assert ViewStack((NARROW, WIDE)).names == ("view0", "view1")
    named = ViewStack({"a": NARROW, "b": WIDE})
    assert named.names == ViewStack(named).names == ("a", "b")


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, frame, pd.DataFrame])
def test_rows(form):
    for key in ([0, 2, 5], np.array([-1, 0]), np.arange(6) > 2, slice(1, 5, 2), []):
        cut = ViewStack([form(NARROW), WIDE])[key]
        table = cut.views[0]
        table = table.toarray() if sp.issparse(table) else np.asarray(table)
        assert_array_equal(table, NARROW[key])
        assert_array_equal(cut.views[1], WIDE[key])
        if form is frame:
            assert list(cut.index) == list(np.array(SAMPLES)[key])


def test_rows_and_columns_are_rows():
    """As scikit-learn cuts what goes to an estimator of similarities."""
    views = ViewStack([NARROW, WIDE])
    rows, columns = np.array([4, 1]), np.array([0, 2, 3])
    assert_array_equal(views[np.ix_(rows, columns)].views[1], WIDE[rows])
    train, test = train_test_split(views, test_size=2, random_state=0)
    assert (len(train), len(test)) == (4, 2)


def test_samples_are_those_of_all_frames():
    views = ViewStack(
        [frame(NARROW[:4], SAMPLES[:4]), frame(WIDE[[5, 3, 1]], ["z", "x", "v"])]
    )
    assert list(views.index) == ["u", "v", "w", "x", "z"]
    narrow, wide = (view.to_numpy() for view in views.views)
    assert_array_equal(narrow, np.vstack([NARROW[:4], np.full((1, 2), np.nan)]))
    missing = np.full(5, np.nan)
    assert_array_equal(wide, [missing, WIDE[1], missing, WIDE[3], WIDE[5]])


def test_arrays_beside_frames_are_taken_by_position():
    views = ViewStack([NARROW, frame(WIDE), pd.DataFrame(NARROW)])
    assert list(views.index) == SAMPLES
    assert_array_equal(views.views[2], NARROW)


def test_copies():
    views = ViewStack({"a": NARROW, "b": frame(WIDE)})
    for other in (
        copy.deepcopy(views),
        pickle.loads(pickle.dumps(views)),
        ViewStack(views),
    ):
        assert other.names == views.names
        assert_array_equal(other.views[0], NARROW)
        assert list(other.index) == SAMPLES


def test_tables_are_not_written_to():
    kept = NARROW.copy()
    ViewStack([NARROW, frame(WIDE, SAMPLES[::-1])])
    assert_array_equal(NARROW, kept)
