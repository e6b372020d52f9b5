"""Whether clusters withstand noise, and what is in them does not."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

import nmfcluster.model_selection.checks as checks
from nmfcluster._arrays.arguments import check_count, shown
from nmfcluster._arrays.jobs import shared_out
from nmfcluster._arrays.threads import one_thread
from nmfcluster._compat import Interval, StrOptions
from nmfcluster.model_selection.copies import Samples, fitted_copy, labels_of_fit, numbered
from nmfcluster.model_selection.scorer import OF_COPIES, ClusterScorer

__all__ = ["StadionScorer"]


class _Part(NamedTuple):
    """Samples that are clustered on their own: all, or those of a cluster."""

    rows: np.ndarray
    n_clusters: int | None  # None: as many as the estimator has


class StadionScorer(ClusterScorer[Any]):
    r"""Score a clusterer by whether its clusters withstand noise, and what is in them does not.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. Clusters should
    stay as they are when noise is added to the data, and no cluster should fall into parts that do
    so: else there are more. At a level of noise :math:`\varepsilon` the score is the difference
    of two stabilities [1]_,

    .. math:: B(\varepsilon) - W(\varepsilon) = \overline{\mathrm{ARI}}(Y, Y_\varepsilon)
       - \sum_c \frac{n_c}{n} \frac{1}{|\Omega|} \sum_{k' \in \Omega}
       \overline{\mathrm{ARI}}(Y^{c, k'}, Y^{c, k'}_\varepsilon) ,

    where Y are the clusters of the data, :math:`Y^{c, k'}` are k' clusters of the samples in
    cluster c alone, and the mean adjusted Rand index is taken over several draws of the noise. Of
    the path over all levels the largest value is taken, or the mean.

    Parameters
    ----------
    n_levels : int, default=10
        Number of levels of noise, from 0 to `max_noise`, 2 at least.
    n_perturbations : int, default=10
        Number of draws of the noise at every level.
    max_noise : float or "auto", default="auto"
        The highest level: noise is uniform from minus to plus so many standard deviations of the
        column. "auto": the square root of the number of columns.
    omega : iterable of int, default=(2, 3, 4, 5)
        Numbers of clusters, 2 or more, that are tried within every cluster.
    aggregate : {"max", "mean"}, default="max"
        What of the path is the score.
    details : bool, default=False
        Whether to return a dict of "stadion", the score, "between" and "within", its two parts, and
        "noise", the level where it is largest; for "mean" all three are means over the levels.
    fit_params : dict, default=None
        What `fit` takes besides `X` and `y`: one entry for each sample, cut like the samples.
    error_score : "raise" or float, default=np.nan
        The score, and every detail, where a copy cannot be fitted; a warning says why. "raise":
        the error is raised.
    n_jobs : int, default=None
        Number of draws of the noise that are worked on at a time.
    random_state : int, default=0
        Determines the noise; an int, so that all candidates see the same.

    See Also
    --------
    StabilityScorer : Draws samples, not noise, and does not look into clusters.

    Notes
    -----
    For K clusters, this fits the estimator :math:`1 + K |\Omega|` times to every draw of the noise,
    mostly to single clusters: 10 x 10 x 41 fits for ten clusters and the defaults. Fewer levels and
    draws are often enough.

    The estimator has a parameter `n_clusters` or `n_components`, which is set within clusters. A
    cluster of no more samples than k' is not clustered; where this holds for all of `omega`, its
    part counts as stable. `X` has to be dense. Noise makes negative numbers of small ones:
    estimators of nonnegative tables refuse them.

    One cluster is not to be among the candidates. It withstands any noise, and nothing in it
    does, so its path ends at 1. The paper stops all paths at the level from which that of one
    cluster is the highest; a scorer sees one candidate at a time, and takes the whole path.

    References
    ----------
    .. [1] A. Mourer, F. Forest, M. Lebbah, H. Azzag, J. Lacaille. Selecting the number of clusters
       K with a stability trade-off: an internal validation criterion. PAKDD, 2023.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster.model_selection import FullSampleSplit, StadionScorer
    >>> X, _ = make_blobs(200, centers=4, random_state=3)
    >>> search = GridSearchCV(
    ...     KMeans(n_init=1, random_state=0),
    ...     {"n_clusters": [2, 3, 4, 5]},
    ...     scoring=StadionScorer(n_levels=5, n_perturbations=3, omega=(2, 3)),
    ...     cv=FullSampleSplit(),
    ... )
    >>> search.fit(X).best_params_
    {'n_clusters': 4}
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_levels": [Interval(Integral, 2, None, closed="left")],
        "n_perturbations": [Interval(Integral, 1, None, closed="left")],
        "max_noise": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "omega": [tuple, list, range],
        "aggregate": [StrOptions({"max", "mean"})],
        **OF_COPIES,
    }
    _names = ("stadion", "between", "within", "noise")
    _drawn = "noise"
    _must_predict = False

    def __init__(
        self,
        n_levels: int = 10,
        *,
        n_perturbations: int = 10,
        max_noise: str | float = "auto",
        omega: Iterable[int] = (2, 3, 4, 5),
        aggregate: str = "max",
        details: bool = False,
        fit_params: dict[str, Any] | None = None,
        error_score: str | float = np.nan,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.n_levels = n_levels
        self.n_perturbations = n_perturbations
        self.max_noise = max_noise
        self.omega = omega
        self.aggregate = aggregate
        self.details = details
        self.fit_params = fit_params
        self.error_score = error_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        numbers = list(self.omega)
        for number in numbers:
            check_count(number, "omega", 2)
        if not numbers or len(set(numbers)) < len(numbers):
            raise ValueError(
                "omega must hold numbers of clusters, each once, and one at least; got "
                f"{shown(self.omega)}."
            )

    def _read(self, estimator: Any, X: Any, pairwise: bool) -> Any:
        checks.name_of_number(estimator)
        table = checks.read_features(X, pairwise, type(self).__name__, "give it X.toarray()")
        return table.astype(np.float64, copy=False)

    def _scored(self, estimator: Any, samples: Samples, table: Any) -> dict[str, float]:
        seed = int(self.random_state)
        name = checks.name_of_number(estimator)
        whole = _Part(np.arange(len(table)), None)
        common = (estimator, name, samples._replace(X=table))
        [labels] = self._clusters(common, [whole], seed)
        members = [np.flatnonzero(labels == c) for c in np.unique(labels)]
        inside = [[_Part(rows, int(k)) for k in self.omega if k < len(rows)] for rows in members]
        parts = [whole, *(part for of_cluster in inside for part in of_cluster)]
        before = [labels, *self._clusters(common, parts[1:], seed)]
        highest = np.sqrt(table.shape[1]) if self.max_noise == "auto" else float(self.max_noise)
        levels = np.linspace(0, highest, self.n_levels)
        draws = list(product(range(self.n_levels), range(self.n_perturbations)))
        found = shared_out(
            _agreement_after_noise,
            (*common, parts, before),
            lambda: ((levels[i], np.random.default_rng((seed, i, d))) for i, d in draws),
            self.n_jobs,
        )
        self._require_success(found, "draw of the noise", " (n_levels, n_perturbations)")
        agreement = np.reshape(found, (self.n_levels, self.n_perturbations, -1)).mean(axis=1)
        sizes = [len(rows) for rows in members]
        within = within_stability(agreement[:, 1:], sizes, [len(own) for own in inside])
        return self._aggregated(agreement[:, 0], within, levels)

    def _clusters(self, common: tuple[Any, ...], parts: list[_Part], seed: int) -> list[Any]:
        """Return the clusters of parts of the data as they are."""
        found = shared_out(
            _labels_of_part,
            common,
            lambda: ((part, np.random.default_rng(seed)) for part in parts),
            self.n_jobs,
        )
        self._require_success(found, "part", " (omega)")
        return found

    def _aggregated(
        self, between: np.ndarray, within: np.ndarray, levels: np.ndarray
    ) -> dict[str, float]:
        path = between - within
        where = np.argmax(path) if self.aggregate == "max" else slice(None)
        found = (float(np.mean(part[where])) for part in (path, between, within, levels))
        return dict(zip(self._names, found, strict=True))


def _labels_of_part(
    estimator: Any, name: str, samples: Samples, part: _Part, rng: np.random.Generator
) -> np.ndarray | Exception:
    """Return the clusters of some samples on their own, or why there are none."""
    try:
        with one_thread():
            return _fitted_labels(estimator, name, samples, part, rng)
    except Exception as error:
        return error


def _agreement_after_noise(
    estimator: Any,
    name: str,
    samples: Samples,
    parts: list[_Part],
    before: list[np.ndarray],
    level: float,
    rng: np.random.Generator,
) -> np.ndarray | Exception:
    """Return the adjusted Rand index of the clusters of every part before noise, and after it."""
    noise = rng.uniform(-level, level, samples.X.shape) * samples.X.std(axis=0)
    noisy = samples._replace(X=samples.X + noise)
    try:
        with one_thread():
            after = [_fitted_labels(estimator, name, noisy, part, rng) for part in parts]
    except Exception as error:
        return error
    return np.array([adjusted_rand_score(a, b) for a, b in zip(before, after, strict=True)])


def _fitted_labels(
    estimator: Any, name: str, samples: Samples, part: _Part, rng: np.random.Generator
) -> np.ndarray:
    number = {} if part.n_clusters is None else {name: part.n_clusters}
    copy = clone(estimator).set_params(**number)
    model = fitted_copy(copy, samples.training(part.rows), rng)
    return numbered(labels_of_fit(model, samples.X[part.rows]), len(part.rows))


def within_stability(agreement: np.ndarray, sizes: list[int], n_tried: list[int]) -> np.ndarray:
    """Return the stability within clusters, at every level of noise.

    Parameters
    ----------
    agreement : ndarray of shape (n_levels, sum(n_tried))
        Of the parts of clusters, cluster after cluster.
    sizes : list of int
        Of the clusters.
    n_tried : list of int
        Numbers of clusters tried in every cluster; one with none is stable.

    Returns
    -------
    ndarray of shape (n_levels,)
    """
    ends = np.cumsum(n_tried)
    total = np.zeros(len(agreement))
    for size, n, end in zip(sizes, n_tried, ends, strict=True):
        total += size * (agreement[:, end - n : end].mean(axis=1) if n else 1.0)
    return total / sum(sizes)
