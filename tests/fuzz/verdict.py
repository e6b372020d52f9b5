"""The verdict on a call: it returns what holds, or refuses in our words, and changes nothing."""

import functools
import inspect
import pickle
import re
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from internals import one_blas_thread
from refusals import assert_in_our_words
from sklearn.base import clone

import nmfcluster

REFUSED = object()
#: how often calls returned, and how often they refused, by the functions that were called
OUTCOMES = defaultdict(Counter)
MARKS = [pytest.mark.fuzz, pytest.mark.slow]

_PACKAGE = str(Path(nmfcluster.__file__).parent)
# scikit-learn's own checks of what it is handed; below them stand only numpy's and pandas' C.
_CHECKS = re.compile(
    r"nmfcluster\b|sklearn\.(base|utils\.validation|utils\._param_validation|utils\._array_api|"
    r"utils\._chunking|utils\._indexing)$"
)
# What scikit-learn says of X without its name, in words that everybody knows.
_STANDARD = re.compile(
    r"Expected 2D array|Expected a 2-dimensional|Found array with|Found an array with|contains NaN|"
    r"contains infinity|Complex data not supported|inconsistent numbers of samples|feature names|"
    r"n_features|Sparse data was passed|dtype='numeric' is not compatible|n_samples=|"
    r"np\.matrix is not supported"
)


def fuzz(*strategies, **named):
    """Return the decorator of an entry point: as many examples as the run is for."""

    def decorate(test):
        @functools.wraps(test)
        def in_one_thread(*args, **kwargs):
            # once: to look for the libraries takes longer than a fit
            with one_blas_thread():
                test(*args, **kwargs)

        made = given(*strategies, **named)(in_one_thread)
        for mark in MARKS:
            made = mark(made)
        return settings(settings.get_profile("fuzz"))(made)

    return decorate


def snapshot(value):
    """Return all that a value holds, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        held = (
            repr(value.tolist())
            if value.dtype.hasobject
            else np.ma.getdata(value).tobytes()
        )
        return type(value), value.dtype.str, value.shape, held
    if sp.issparse(value):
        names = ("data", "indices", "indptr", "row", "col", "offsets", "rows", "coords")
        if value.format == "dok":
            return type(value), value.shape, dict(value.items())
        if value.format != "coo":
            names = [name for name in names if name not in ("row", "col", "coords")]
        return (
            type(value),
            value.shape,
            [snapshot(getattr(value, name, None)) for name in names],
        )
    if isinstance(value, pd.DataFrame | pd.Series):
        axes = [repr(axis.tolist()) for axis in value.axes]
        return (
            type(value),
            axes,
            repr(getattr(value, "dtypes", None)),
            repr(value.values.tolist()),
        )
    if isinstance(value, list | tuple):
        return type(value), [snapshot(part) for part in value]
    if isinstance(value, dict):
        return {key: snapshot(part) for key, part in value.items()}
    if isinstance(value, nmfcluster.SimilarityStack):
        return value.names, snapshot(list(value.sources))
    return repr(value)


def names_of(*functions):
    """Return the names of the arguments of functions, and of the parameters of classes."""
    names = {"X", "y"}
    for function in functions:
        names |= inspect.signature(function).parameters.keys()
    return names - {"self", "args", "kwargs"}


def judged(function, *args, also=(), foreign=False, **kwargs):
    """Call a function; return what it returns, or REFUSED if it refuses as it should.

    Parameters
    ----------
    function : callable
    *args, **kwargs
        Of the call; they must not be changed by it.
    also : iterable of str
        Words one of which an error message must hold, besides the names of the arguments.
    foreign : bool
        Whether an estimator of somebody else works in it, whose errors are not ours.
    """
    before = snapshot([args, kwargs])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = function(*args, **kwargs)
        except (ValueError, TypeError) as error:
            judge_refusal(error, names_of(function) | set(also), foreign)
            result = REFUSED
    called = getattr(function, "__qualname__", type(function).__name__)
    OUTCOMES[called][result is not REFUSED] += 1
    judge_warnings(said)
    same = snapshot([args, kwargs]) == before
    assert same, (
        f"the call has changed what it was given: {getattr(function, '__name__', function)}"
    )
    return result


def judge_refusal(error, names, foreign=False):
    """Check that an error is one of ours, and names what is wrong."""
    modules = _modules(error)
    if foreign and any(name.startswith("sklearn.") for name in modules):
        return
    message = str(error)
    assert _CHECKS.match(modules[-1]), f"raised in {modules[-1]}: {message}"
    named = any(
        re.search(rf"(?<!\w){re.escape(name)}(?!\w)", message) for name in names
    )
    assert named or _STANDARD.search(message), f"no parameter is named: {message}"
    if not modules[-1].startswith("sklearn."):
        # to name a SimilarityStack is right where it is what was asked
        message = message.replace("is out of range: a SimilarityStack", "")
        assert_in_our_words(SimpleNamespace(value=message))


def _modules(error):
    trace, found = error.__traceback__, []
    while trace is not None:
        found.append(trace.tb_frame.f_globals.get("__name__", "?"))
        trace = trace.tb_next
    return found


def judge_warnings(said):
    """Check that no warning says that the package computes nonsense, or does what will not last."""
    for one in said:
        ours = one.filename.startswith(_PACKAGE)
        bad = issubclass(one.category, RuntimeWarning | DeprecationWarning) and ours
        assert not bad, f"{one.filename}:{one.lineno}: {one.message!r}"
        assert not issubclass(one.category, FutureWarning), (
            f"{one.filename}: {one.message!r}"
        )


def judge_labels(labels, n, n_clusters):
    labels = np.asarray(labels)
    assert labels.shape == (n,)
    assert labels.dtype.kind == "i"
    assert labels.min(initial=0) >= -1
    assert labels.max(initial=0) < n_clusters


def judge_memberships(P, n, n_clusters, sums=True):
    assert P.shape == (n, n_clusters)
    assert P.dtype in (np.float64, np.float32)
    assert np.isfinite(P).all()
    assert P.min(initial=0) >= 0
    if sums:
        np.testing.assert_allclose(P.sum(axis=1), 1, rtol=0, atol=1e-4)


def judge_fit(model, n, descends=True, weights=None):
    """Check what every fitted clusterer says of its samples."""
    k = model.n_clusters
    judge_labels(model.labels_, n, k)
    # these come first, whatever their size
    fixed = getattr(model, "fixed_components", None)
    own = model.labels_ >= 0
    counts = None if weights is None else np.asarray(weights)[own]
    sizes = np.bincount(model.labels_[own], counts, minlength=k)
    sizes = sizes[0 if fixed is None else len(fixed) :]
    assert (np.diff(sizes) <= 0).all(), (
        f"clusters are not numbered by their size: {sizes}"
    )
    P = model.membership_
    judge_memberships(P, n, k)
    curve = model.loss_curve_
    assert np.isfinite(curve).all(), curve
    assert len(curve) == model.n_iter_ + 1 <= model.max_iter + 1
    scale = np.abs(curve).max()
    # the loss is a difference of numbers as large as these
    for name in ("core_", "factor_"):
        scale += np.abs(getattr(model, name, np.zeros(1))).sum(dtype=float) ** 2
    rounding = 1e3 * float(np.finfo(P.dtype).eps) * max(scale, np.finfo(float).tiny)
    assert np.isfinite(model.loss_)
    exact = "rounding" if model.loss_ >= -rounding else f"{model.loss_}"
    assert model.loss_ >= 0, f"loss_ is negative by {exact}"
    if descends:
        rise = np.diff(curve).max(initial=0)
        assert rise <= rounding, (
            f"the loss rises by {rise} of {scale}: {curve.tolist()}"
        )
    weights = getattr(model, "weights_", None)
    if weights is not None:
        np.testing.assert_allclose(weights.sum(), 1, rtol=1e-6)
        assert (weights >= 0).all()
    own = np.flatnonzero(model.labels_ >= 0)
    strongest = P[own, model.labels_[own]]
    strong = strongest >= P[own].max(axis=1, initial=0) - 1e-4
    assert strong.all(), "labels_ are not the clusters with the largest membership_"


def judge_estimator(
    model, X, n, arguments=(), new=(), sums=True, descends=True, foreign=False
):
    """Check fit, predict, transform, clone, repr and pickle of a clusterer on one table.

    Parameters
    ----------
    model : clusterer
    X : object
    n : int
        Number of samples of X, if it is read at all.
    arguments : dict
        Further arguments of fit.
    new : list of object
        What to predict; the first is like X, and must not be refused.
    sums, descends : bool
        Whether memberships sum to 1, and the loss descends.
    foreign : bool
        Whether the model works with an estimator that is not ours.
    """
    names = [*model.get_params(deep=False), "sources", "must-link"]
    repr(model)
    before = clone(model)
    given = snapshot(model.get_params(deep=False))
    fitted = judged(model.fit, X, also=names, foreign=foreign, **dict(arguments))
    assert snapshot(model.get_params(deep=False)) == given, (
        "fit has changed a parameter"
    )
    assert vars(before).keys() == vars(clone(model)).keys()
    if fitted is REFUSED:
        assert not hasattr(model, "labels_")
        return
    assert fitted is model
    judge_fit(model, n, descends, dict(arguments).get("sample_weight"))
    k = model.n_clusters
    for number, rows in enumerate(new):
        labels = judged(model.predict, rows, also=names, foreign=foreign)
        P = judged(model.transform, rows, also=names, foreign=foreign)
        assert (labels is REFUSED) == (P is REFUSED)
        assert number > 0 or labels is not REFUSED, "the training samples are refused"
        if labels is not REFUSED:
            judge_labels(labels, n if number == 0 else len(labels), k)
            judge_memberships(P, len(labels), k, sums)
        if number == 0:
            again = pickle.loads(pickle.dumps(model)).predict(rows)
            assert np.array_equal(again, labels), (
                "a pickled model predicts other labels"
            )
