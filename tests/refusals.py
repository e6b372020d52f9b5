"""What every estimator does with bad input: it says what is wrong, and stays as it was.

Each estimator has its cases in a `test_bad_input.py`; what is asserted of all of them is here.
"""

import re
import warnings
from collections.abc import Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple

import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

# What numpy, SciPy and Python say when nobody has looked before them. "got NoneType" and
# "None (NoneType)" are ours: they name what was handed in.
_RAW = re.compile(
    "broadcast|ufunc|truth value|out of bounds|out-of-bounds|zero-size|operands|invalid literal|"
    "ambiguous|inhomogeneous|not subscriptable|unhashable|has no attribute|not iterable|"
    "unexpected keyword|mismatch in its core dimension|cannot reshape|'<' not supported|"
    r"(?<!got )(?<!\()NoneType|Traceback|at least one array|integer scalar array|the loss is|"
    r"an integer is required|sequence of integers|ARPACK|array must not contain|kd_tree|updates\.|"
    "is out of range: a SimilarityStack"
)


class Case(NamedTuple):
    """One bad input of `fit`."""

    name: str
    names: str | tuple[str, ...]  # what the message must name, see `naming`
    X: Any
    arguments: Mapping = {}  # of fit, besides X
    parameters: Mapping = {}  # of the estimator
    error: Any = ValueError


def naming(*names):
    """Return a regular expression of messages that hold all names as words, in any order.

    A name is what must be in any wording: a parameter, a method, a file, a value. Several names
    may be given as one tuple.
    """
    each = [
        word for name in names for word in ((name,) if isinstance(name, str) else name)
    ]
    assert each
    assert all(each)
    return "(?s)" + "".join(rf"(?=.*(?<!\w){re.escape(word)}(?!\w))" for word in each)


def raises_naming(error, *names):
    """Expect an error that names these, as `pytest.raises` does."""
    return pytest.raises(error, match=naming(*names))


def warns_naming(category, *names):
    """Expect a warning that names these, as `pytest.warns` does."""
    return pytest.warns(category, match=naming(*names))


def parametrize(cases):
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    return pytest.mark.parametrize("case", cases, ids=names)


def changed(array, where, value):
    """Return a copy of an array with another value somewhere."""
    array = array.copy()
    array[where] = value
    return array


def assert_in_our_words(caught):
    """Check the message of an error that `pytest.raises` caught."""
    message = str(caught.value)
    assert not _RAW.search(message), message


def assert_refused(case, fitted):
    """`fit` refuses the case, without a warning: a fit before stays, where none was there is none.

    Settings of the case are added to those of the fitted estimator.
    """
    for estimator in (copy(fitted), clone(fitted)):
        estimator.set_params(**case.parameters)
        before = dict(vars(estimator))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with raises_naming(case.error, case.names) as caught:
                estimator.fit(case.X, **case.arguments)
        assert_in_our_words(caught)
        assert vars(estimator).keys() == before.keys()
        assert all(vars(estimator)[name] is value for name, value in before.items())
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)  # the clone


@contextmanager
def named(name):
    """Let what fails in one round of a loop say in which."""
    try:
        yield
    except BaseException as failure:
        failure.add_note(f"in the case: {name}")
        raise


def assert_all_refused(cases, fitted):
    """`fit` refuses every case, as in `assert_refused`; the one that fails is named."""
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    for case in cases:
        with named(case.name):
            assert_refused(case, fitted)
