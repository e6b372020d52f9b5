"""What the tests of the estimator share: similarities and features with an answer, a model."""

from functools import cache

import numpy as np
from numpy.testing import assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

from nmfcluster import SimilarityFusionNMF

PRINTED = ["kl", "cross_entropy"]
CRITERIA = ["agreement", *PRINTED]
VIEW_1, VIEW_2 = slice(0, 3), slice(3, 6)
VIEWS = [("one", "rbf", VIEW_1), ("two", "rbf", VIEW_2)]


def problem(seed=0, cut=0.0):
    """Draw three kernels, which tell three clusters of unequal size well, in part and not at all.

    Entries below `cut` are 0.
    """
    rng = np.random.RandomState(seed)
    y = rng.permutation(np.repeat([2, 0, 1], [20, 14, 9]))
    clear = 4 * np.eye(3)[y] + rng.normal(size=(43, 3))
    dim = 3 * (y == 0)[:, None] + rng.normal(size=(43, 2))
    noise = rng.normal(size=(43, 2))
    widths = {0.03: clear, 0.1: dim, 0.3: noise}
    kernels = [rbf_kernel(view, gamma=gamma) for gamma, view in widths.items()]
    return [np.where(kernel < cut, 0, kernel) for kernel in kernels], y


def default_model(**parameters):
    """Return a model of what sources agree in."""
    return SimilarityFusionNMF(**{"n_clusters": 3, "random_state": 0} | parameters)


def model(**parameters):
    """Return a model of the sources as they are given, as in the paper."""
    options = {"n_clusters": 3, "eta": 0.1, "n_init": 2, "tol": 1e-4, "random_state": 0}
    return SimilarityFusionNMF(**options | {"criterion": "kl"} | parameters)


@cache
def fitted_model(cut=0.0):
    """Return a model of the problem, fitted once for all tests: it is not to be changed."""
    return model().fit(None, similarities=problem(cut=cut)[0])


def scaled(sources):
    return [source / source.sum() for source in sources]


def features(n=60, seed=0):
    """Draw two views of three clusters: each tells one of them from the other two."""
    rng = np.random.RandomState(seed)
    y = rng.permutation(np.arange(n) % 3)
    centres = np.zeros((3, 6))
    centres[0, :3] = centres[1, 3:] = 5
    return centres[y] + rng.normal(size=(n, 6)), y


def blobs(sizes, n_views, *, sep, width=3, seed=0):
    """Draw views of clusters of some sizes, so many standard deviations apart, in random order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = sep * np.eye(len(sizes), width)
    return [centres[y] + rng.normal(size=(len(y), width)) for _ in range(n_views)], y


def assert_same_fit(one, other):
    for name in (
        "labels_",
        "membership_",
        "weights_",
        "source_losses_",
        "core_",
        "loss_curve_",
    ):
        assert_array_equal(getattr(one, name), getattr(other, name))


def without(S, lost, storage=np.asarray):
    """Return a similarity with NaN for the objects that were lost."""
    S = S.copy()
    S[lost] = S[:, lost] = np.nan
    return storage(S)
