"""What the tests share: their settings, the public estimators in all modes, the data folder."""

import os

# Several processes test at the same time: one thread each. The libraries read this when loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

import builtins
import gc
import inspect
import sys
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

import hypothesis
import internals
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, is_clusterer
from sklearn.datasets import make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import nmfcluster
from nmfcluster.partitions import GraphSpectral, LandmarkSpectral

# type checkers read it; looking for doctests would run it
collect_ignore = ["typed_script.py"]

# The same examples in every run; no limit of time for one, since the machine may be busy.
hypothesis.settings.register_profile(
    "suite", max_examples=25, deadline=None, derandomize=True
)
hypothesis.settings.load_profile("suite")

# What most tests of estimators need: three clusters, few runs and updates.
QUICK = {"n_clusters": 3, "n_estimators": 3, "n_init": 1, "max_iter": 200}

# Every public estimator is tested in its default mode; these are the modes it has besides.
OTHER_MODES = {
    "KernelStack": [{"kernels": "rbf"}],
    "NMFConsensus": [{"affinity": "precomputed"}, {"affinity": "partitions"}],
    "NMFMetaCluster": [
        {
            "meta": "nmf",
            "base_n_clusters": (2, 4),
            "sparsity": 0.1,
            "penalty": "l1_columns",
        },
        {"loss": "kullback-leibler", "resample": 0.7, "tol": 1e-3},
    ],
    "SSNMFClusterer": [
        {"affinity": "precomputed"},
        {"affinity": "cosine"},
        {"affinity": "rbf", "factorization": "tri", "tol": 1e-3},
    ],
    "SimilarityFusionNMF": [
        {"affinity": "rbf"},
        {"affinity": ["nearest_neighbors", "rbf"], "symmetric": False, "eta": 0.3},
        {"criterion": "kl"},
    ],
}

# scikit-learn's checks of parameters, names and signatures: what these say of an estimator in its
# default mode they say of the others, in which the remaining checks alone are run.
NOT_OF_THE_MODE = {
    "check_array_api_input",
    "check_complex_data",
    "check_dict_unchanged",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_dont_overwrite_parameters",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_sparse_matrix",  # as the one of sparse arrays
    "check_estimator_tags_renamed",
    "check_estimators_empty_data_messages",
    "check_estimators_fit_returns_self",
    "check_estimators_overwrite_params",
    "check_estimators_partial_fit_n_features",
    "check_estimators_unfitted",
    "check_fit2d_predict1d",
    "check_fit_check_is_fitted",
    "check_fit_score_takes_y",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_n_features_in",  # as the one after fitting
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_sample_weights_list",
    "check_sample_weights_not_an_array",
    "check_sample_weights_not_overwritten",
    "check_sample_weights_pandas_series",
    "check_sample_weights_shape",
    "check_set_params",
    "check_transformer_n_iter",
    "check_valid_tag_types",
}

# These compare results as arrays; with "rbf", whose stack is dense, all of them pass.
SPARSE = (
    "a stack with sparse sources is made an array by toarray() alone, not in passing"
)

# Weights count as repeated samples do: tests/meta/test_weights.py, tests/consensus/test_weights.py.
STARTS = (
    "starts are drawn for every row, so that runs on fewer or repeated rows have others"
)

# (class, affinity or kernels): checks of scikit-learn that must fail, and why.
EXPECTED_FAILURES = {
    ("KernelStack", "nearest_neighbors"): {
        "check_estimators_pickle": SPARSE,
        "check_fit_idempotent": SPARSE,
        "check_methods_sample_order_invariance": SPARSE,
        "check_methods_subset_invariance": SPARSE,
        "check_pipeline_consistency": SPARSE,
        "check_transformer_data_not_an_array": SPARSE,
        "check_transformer_general": SPARSE,
    },
    ("SimilarityFusionNMF", "precomputed"): {
        "check_clustering": "fits standardised features, which are no similarity, whatever the "
        "tags say",
    },
    ("NMFMetaCluster", "None"): {
        "check_clustering": "fits standardised features, some of them negative, whatever the tags "
        "say",
        "check_sample_weight_equivalence_on_dense_data": STARTS,
        "check_sample_weight_equivalence_on_sparse_data": STARTS,
    },
    ("NMFConsensus", "precomputed"): {
        "check_clustering": "fits standardised features, which are no similarity, whatever the "
        "tags say",
    },
    ("NMFConsensus", "partitions"): {
        "check_clustering": "fits standardised features, whose fractions are no labels",
        "check_positive_only_tag_during_fit": "fits normally distributed numbers, whose fractions "
        "are no labels; there is no tag for that, and negative labels are allowed (not seen)",
        "check_sample_weight_equivalence_on_dense_data": "fits fractions, which are no labels",
    },
    ("SSNMFClusterer", "precomputed"): {
        "check_clustering": "fits standardised features, which are no similarity, whatever the "
        "tags say",
    },
}


def estimators(modes, with_defaults=True, **settings):
    """Return every public estimator, once a mode, with those of the settings that it has."""
    made = []
    for name in nmfcluster.__all__:
        public = getattr(nmfcluster, name)
        if inspect.isclass(public) and issubclass(public, BaseEstimator):
            own = inspect.signature(public).parameters
            shared = {name: value for name, value in settings.items() if name in own}
            made += [
                public(**shared | mode)
                for mode in [{}] * with_defaults + modes.get(name, [])
            ]
    assert all(any(hasattr(each, name) for each in made) for name in settings), (
        "a parameter's name"
    )
    return made


def expected_failures(estimator):
    given = estimator.get_params()
    mode = given.get("affinity", given.get("kernels"))
    return EXPECTED_FAILURES.get((type(estimator).__name__, str(mode)), {})


def asks_for(case, defaults):
    """Return whether a check of scikit-learn is run on an estimator: not twice for nothing."""
    estimator, check = getattr(case, "values", case)
    if any(estimator is one for one in defaults):
        return True
    return (
        check.func.__name__ not in NOT_OF_THE_MODE
        and "readonly_memmap" not in check.keywords
    )


def with_marks(case, defaults):
    """Return a check of scikit-learn, which is slow in other modes than the default one."""
    case = case if hasattr(case, "values") else pytest.param(*case)
    if any(case.values[0] is one for one in defaults):
        return case
    return pytest.param(*case.values, marks=[*case.marks, pytest.mark.slow], id=case.id)


def input_of(estimator, n_samples=60):
    """Return three well separated clusters in the form that the estimator's tags ask for."""
    X, y = make_blobs(
        n_samples, centers=np.eye(3) * 10, cluster_std=1.0, random_state=0
    )
    tags = get_tags(estimator).input_tags
    # a table of labels: the clusters, each time with a few mistakes
    if tags.categorical:
        rng = np.random.RandomState(0)
        wrong = rng.uniform(size=(n_samples, 9)) < 0.1
        return np.where(wrong, rng.randint(3, size=wrong.shape), y[:, None]), y
    if tags.pairwise:
        return rbf_kernel(X, gamma=0.05), y
    return (np.maximum(X, 0) if tags.positive_only else X), y


def pytest_generate_tests(metafunc):
    """Parametrize by argument names.

    `public_estimator` is every clusterer in each mode; together with `check`, it is every
    estimator and the base clusterers, with every check of scikit-learn. `default_clusterer` has
    all its defaults.
    """
    asked = set(metafunc.fixturenames)
    if {"public_estimator", "check"} <= asked:
        few = QUICK | {"max_iter": 5, "n_estimators": 2}  # no check asks for a good fit
        defaults = [*estimators({}, **few), LandmarkSpectral(3), GraphSpectral(3)]
        others = estimators(OTHER_MODES, with_defaults=False, **few)
        of_all = parametrize_with_checks(
            defaults + others, expected_failed_checks=expected_failures
        )
        cases = [
            with_marks(case, defaults)
            for case in of_all.args[1]
            if asks_for(case, defaults)
        ]
        metafunc.parametrize("public_estimator, check", cases, **of_all.kwargs)
    elif "public_estimator" in asked:
        clusterers = [
            each for each in estimators(OTHER_MODES, **QUICK) if is_clusterer(each)
        ]
        metafunc.parametrize("public_estimator", clusterers, ids=repr)
    elif "default_clusterer" in asked:
        defaults = [each for each in estimators({}, n_clusters=3) if is_clusterer(each)]
        metafunc.parametrize("default_clusterer", defaults, ids=repr)


def pytest_addoption(parser):
    about = "of the cases of a test run every N-th, in other tests from another one on"
    parser.addoption("--every", type=int, default=1, metavar="N", help=about)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for garbage rarely, and not among what stays: modules, tests, what imports made."""
    gc.disable()
    # objects; a fit makes a few thousand, and most of them are no garbage
    gc.set_threshold(20_000)
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item):
    """Mark most cases as slow of a test with the mark `sampled(n)`: one in n stays.

    Of two parameters with at least n values each, every value stays with some of the other.
    """
    mark = item.get_closest_marker("sampled")
    if mark is None:
        return
    joined = set()  # names whose values go with those of another
    for parametrized in item.iter_markers("parametrize"):
        names = parametrized.args[0]
        if isinstance(names, str):
            names = [name.strip() for name in names.split(",")]
        joined.update(names[1:])
    numbers = [n for name, n in item.callspec.indices.items() if name not in joined]
    if sum(numbers) % mark.args[0]:
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)  # of the cases that -m and -k leave
def pytest_collection_modifyitems(config, items):
    every, tests = config.getoption("every"), defaultdict(list)
    for item in items:
        if (
            item.nodeid.startswith("nmfcluster/anndata.py")
            and find_spec("anndata") is None
        ):
            item.add_marker(pytest.mark.skip(reason="anndata is not installed"))
        tests[item.nodeid.partition("[")[0]].append(item)
    chosen = set()
    for name, cases in tests.items():
        chosen.update(cases[crc32(name.encode()) % min(every, len(cases)) :: every])
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def pytest_configure(config):
    # Not in pyproject.toml: pytest would load scikit-learn before the threads above are set.
    warning = "error::sklearn.exceptions.ConvergenceWarning"
    config.addinivalue_line("filterwarnings", warning)


def pytest_runtest_setup(item):
    # What is skipped in one place is one line of the summary; a fixture skips at its test.
    if "data_folder" in item.fixturenames and not os.environ.get("NMFCLUSTER_DATA"):
        pytest.skip("NMFCLUSTER_DATA does not name a folder with the data sets")


@pytest.fixture(autouse=True)
def _processes(monkeypatch):
    """Start processes for short work, too: laws about n_jobs would hold without any."""
    monkeypatch.setattr(internals.parallel, "_WORTH_PROCESSES", 0.0)


@pytest.fixture(autouse=True)
def _no_figures():
    """Close the figures that a doctest before, or the test itself, has left open."""

    def close():
        if "matplotlib.pyplot" in sys.modules:
            sys.modules["matplotlib.pyplot"].close("all")

    close()
    yield
    close()


@pytest.fixture
def make_input():
    return input_of


@pytest.fixture
def without_matplotlib(monkeypatch):
    """Make every import of matplotlib fail."""
    really_import = builtins.__import__

    def importing(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return really_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importing)


@pytest.fixture
def require_names():
    """Return a function that skips the test where scikit-learn sees no names in a data frame."""

    def require(frame):
        if not hasattr(StandardScaler().fit(frame), "feature_names_in_"):
            pytest.skip(
                "this scikit-learn does not see the names of columns of this polars"
            )

    return require


@pytest.fixture
def data_folder():
    """Return the folder with the data sets; without one, the test is skipped."""
    return Path(os.environ["NMFCLUSTER_DATA"])


@pytest.fixture
def load_data(data_folder):
    """Return a function from the name of a data set to X and y."""

    def load(name):
        with np.load(data_folder / f"{name}.npz", allow_pickle=False) as data:
            if "indptr" not in data:
                return data["X"].astype(float), data["y"]
            parts = data["data"].astype(float), data["indices"], data["indptr"]
            return sp.csr_array(parts, shape=tuple(data["shape"])), data["y"]

    return load
