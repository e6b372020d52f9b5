"""How much better a score is than on tables without clusters."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import NotFittedError

import nmfcluster.model_selection.checks as checks
from nmfcluster._arrays.arguments import shown
from nmfcluster._arrays.jobs import shared_out
from nmfcluster._arrays.threads import one_thread
from nmfcluster._compat import Interval, StrOptions
from nmfcluster.model_selection.copies import Samples, fitted_copy
from nmfcluster.model_selection.scorer import (
    OF_COPIES,
    ClusterScorer,
    CopyFailedError,
    MisusedError,
)
from nmfcluster.model_selection.scores.references import Reference, reference_of

__all__ = ["NullScorer"]

_DENSE = "give it X.toarray(), or null='permuted', which keeps X sparse"


class NullScorer(ClusterScorer[Any]):
    r"""Score a clusterer by how much better another score is than on tables without clusters.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. Copies of the
    estimator are fitted to tables that are drawn without clusters, and are scored on them. The
    score is

    .. math:: s(X) - \frac{1}{B} \sum_b s(X^*_b) ,

    and the p-value is the share of the tables, X among them, that score no less than X [1]_,

    .. math:: p = \frac{1 + \#\{b : s(X^*_b) \geq s(X)\}}{1 + B} .

    Where no candidate has a small p-value, nothing speaks against a single cluster.

    Parameters
    ----------
    scorer : callable
        The other score: called as ``scorer(estimator, X)``, with `y` as a third argument where it
        is given, it returns a number, larger for better.
    null : {"gaussian", "permuted"}, default="gaussian"
        How tables are drawn. "gaussian": normal numbers along the principal axes, with the
        variances of the data. "permuted": every column is permuted on its own, which leaves what
        it holds, and nothing that columns have in common.
    n_references : int, default=20
        B, the number of tables that are drawn, 2 at least. The p-value is 1 / (1 + B) or larger.
    details : bool, default=False
        Whether to return a dict of "excess", the score, "score", that of X, "null", the mean of
        those of the tables, "null_sd", their standard deviation, and "p_value".
    fit_params : dict, default=None
        What `fit` takes besides `X` and `y`: one entry for each sample.
    error_score : "raise" or float, default=np.nan
        The score, and every detail, where a copy cannot be fitted or scored; a warning says why.
        "raise": the error is raised.
    n_jobs : int, default=None
        Number of copies that are fitted at a time.
    random_state : int, default=0
        Determines the tables; an int, so that all candidates are compared with the same.

    See Also
    --------
    GapScorer : Compares how tight clusters are with those of uniform tables.
    choose_n_clusters : A vote, among whose answers is that there are no clusters.

    Notes
    -----
    The estimator has to be fitted to `X`, as that of a search is, unless the other scorer takes one
    that is not.

    The p-value of one candidate is not that of a search, which looks at several: with m candidates,
    one of them is at p or below with a probability of up to m p. With the default B = 20, p is .048
    at least.

    Gaussian tables have the covariances of the data, so long clusters alone do not pass for
    clusters. Estimators of nonnegative tables cannot be fitted to them; permuted ones stay
    nonnegative, whole and sparse where X is.

    References
    ----------
    .. [1] C. R. John, D. Watson, D. Russ, K. Goldmann, M. Ehrenstein, C. Pitzalis, M. Lewis,
       M. Barnes. M3C: Monte Carlo reference-based consensus clustering. Scientific Reports 10,
       1816, 2020.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from nmfcluster.model_selection import NullScorer, SilhouetteScorer
    >>> scorer = NullScorer(SilhouetteScorer(), details=True)
    >>> X, _ = make_blobs(200, centers=4, random_state=3)
    >>> round(scorer(KMeans(4, random_state=0).fit(X), X)["p_value"], 3)
    0.048
    >>> X, _ = make_blobs(200, centers=1, random_state=3)
    >>> scorer(KMeans(2, random_state=0).fit(X), X)["p_value"] > 0.05
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scorer": [callable],
        "null": [StrOptions({"gaussian", "permuted"})],
        "n_references": [Interval(Integral, 2, None, closed="left")],
        **OF_COPIES,
    }
    _names = ("excess", "score", "null", "null_sd", "p_value")
    _drawn = "references"
    _must_predict = False

    def __init__(
        self,
        scorer: Callable[..., Any],
        *,
        null: str = "gaussian",
        n_references: int = 20,
        details: bool = False,
        fit_params: dict[str, Any] | None = None,
        error_score: str | float = np.nan,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.scorer = scorer
        self.null = null
        self.n_references = n_references
        self.details = details
        self.fit_params = fit_params
        self.error_score = error_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _read(self, estimator: Any, X: Any, pairwise: bool) -> Any:
        cure = "" if self.null == "permuted" else _DENSE
        table = checks.read_features(X, pairwise, type(self).__name__, cure)
        return table if self.null == "permuted" else table.astype(np.float64, copy=False)

    def _scored(self, estimator: Any, samples: Samples, table: Any) -> dict[str, float]:
        seed = int(self.random_state)
        own = self._own(estimator, samples)
        found = shared_out(
            _score_of_reference,
            (estimator, self.scorer, samples, reference_of(table, self.null)),
            lambda: ((np.random.default_rng((seed, b)),) for b in range(self.n_references)),
            self.n_jobs,
        )
        self._require_success(found, "reference", " (n_references)")
        return dict(zip(self._names, against_null(own, np.array(found)), strict=True))

    def _own(self, estimator: Any, samples: Samples) -> float:
        """Return the score of X."""
        try:
            with one_thread():
                return _number(self.scorer, estimator, samples)
        except (TypeError, NotFittedError) as error:  # of any candidate
            raise MisusedError(error) from error
        except ValueError as error:
            raise CopyFailedError(error, "the score of X") from error


def _score_of_reference(
    estimator: Any, scorer: Any, samples: Samples, reference: Reference, rng: np.random.Generator
) -> float | Exception:
    try:
        with one_thread():
            table = reference.drawn(rng)
            drawn = samples._replace(X=table)
            model = fitted_copy(estimator, drawn.training(np.arange(table.shape[0])), rng)
            return _number(scorer, model, drawn)
    except Exception as error:
        return error


def _number(scorer: Any, estimator: Any, samples: Samples) -> float:
    """Return what another scorer says; raise unless it is a number."""
    score = scorer(estimator, samples.X, *(() if samples.y is None else (samples.y,)))
    if not isinstance(score, Real):
        raise TypeError(
            f"scorer must return a number, got {shown(score)}: one of its own has details=False."
        )
    return float(score)


def against_null(own: float, references: np.ndarray) -> tuple[float, ...]:
    """Return the excess, the score, mean and deviation of the references, and the p-value."""
    mean, spread = float(references.mean()), float(references.std(ddof=1))
    p_value = float((1 + np.sum(references >= own)) / (1 + len(references)))
    unknown = np.isnan(own) or np.isnan(mean)
    return own - mean, own, mean, spread, np.nan if unknown else p_value
