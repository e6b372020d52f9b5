"""How clearly subsamples say which samples belong together."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from nmfcluster._arrays.arguments import shown
from nmfcluster._arrays.draws import some_positions
from nmfcluster._arrays.jobs import shared_out
from nmfcluster._compat import Interval, StrOptions
from nmfcluster.metrics import cophenetic_correlation
from nmfcluster.model_selection.checks import n_entries
from nmfcluster.model_selection.copies import Samples, labels_of_subsample
from nmfcluster.model_selection.scorer import OF_COPIES, SUBSAMPLE_SIZE, ClusterScorer, count_of

__all__ = ["ConsensusScorer"]

_UNSEEN = -2  # in place of the label of a sample that is not in a subsample


class ConsensusScorer(ClusterScorer[Any]):
    r"""Score a clusterer by how clearly subsamples say which samples belong together.

    For ``scoring=`` of scikit-learn's searches, with ``cv=FullSampleSplit()``. Copies of the
    estimator are fitted to random subsamples. Two samples have the consensus

    .. math:: C_{ij} = \frac{\sum_b I\{i, j \in S_b\}\, I\{y^b_i = y^b_j\}}
       {\sum_b I\{i, j \in S_b\}} ,

    the share of the subsamples with both that hold them in one cluster [1]_. It is near 0 or 1
    where clusters are clear. Two figures say so: the proportion of ambiguously clustered pairs
    [2]_, and the correlation of 1 - C with the tree that average linkage makes of it [3]_.

    Parameters
    ----------
    criterion : {"pac", "cophenetic"}, default="pac"
        The score. "pac": 1 - PAC, where PAC = F(upper) - F(lower), the growth of the distribution
        function F of all :math:`C_{ij}` in `interval`. "cophenetic": the cophenetic correlation.
    n_subsamples : int, default=20
        Number of subsamples, 2 at least.
    subsample_size : float or int, default=0.8
        Samples in a subsample: a share of all between 0 and 1, or a number.
    interval : tuple (lower, upper), default=(0.1, 0.9)
        Where a pair is ambiguous.
    max_samples : int, default=1000
        Number of samples, 3 at least, that are compared with each other: so many are drawn where
        there are more. All samples are clustered.
    details : bool, default=False
        Whether to return a dict of "consensus", the score, "pac" and "cophenetic". The last is NaN
        where no subsample holds two of the samples.
    fit_params : dict, default=None
        What `fit` takes besides `X` and `y`: one entry for each sample, cut like the samples.
    error_score : "raise" or float, default=np.nan
        The score, and every detail, where a copy cannot be fitted; a warning says why. "raise":
        the error is raised.
    n_jobs : int, default=None
        Number of copies that are fitted at a time.
    random_state : int, default=0
        Determines the subsamples; an int, so that all candidates see the same.

    See Also
    --------
    nmfcluster.metrics.cophenetic_correlation : Of a given consensus matrix.
    NullScorer : Compares the score with that of tables without clusters, as in [4]_.

    Notes
    -----
    Copies need not predict: only the labels of their own samples count. A sample in no cluster is
    together with none.

    Neither figure can speak for one cluster, whose pairs are never ambiguous, and both prefer
    many clusters, of which most pairs are apart: without clusters, too, PAC falls as their number
    grows [4]_.

    Memory and time grow with the square of `max_samples`.

    References
    ----------
    .. [1] S. Monti, P. Tamayo, J. Mesirov, T. Golub. Consensus clustering: a resampling-based
       method for class discovery and visualization of gene expression microarray data. Machine
       Learning 52, 2003.
    .. [2] Y. Senbabaoglu, G. Michailidis, J. Z. Li. Critical limitations of consensus clustering
       in class discovery. Scientific Reports 4, 6207, 2014.
    .. [3] J.-P. Brunet, P. Tamayo, T. R. Golub, J. P. Mesirov. Metagenes and molecular pattern
       discovery using matrix factorization. PNAS 101, 2004.
    .. [4] C. R. John, D. Watson, D. Russ, K. Goldmann, M. Ehrenstein, C. Pitzalis, M. Lewis,
       M. Barnes. M3C: Monte Carlo reference-based consensus clustering. Scientific Reports 10,
       1816, 2020.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from sklearn.model_selection import GridSearchCV
    >>> from nmfcluster.model_selection import ConsensusScorer, FullSampleSplit
    >>> X, _ = make_blobs(200, centers=4, random_state=3)
    >>> search = GridSearchCV(
    ...     KMeans(n_init=3, random_state=0),
    ...     {"n_clusters": [6, 5, 4, 3, 2]},
    ...     scoring=ConsensusScorer(),
    ...     cv=FullSampleSplit(),
    ... )
    >>> search.fit(X).best_params_
    {'n_clusters': 4}
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions({"pac", "cophenetic"})],
        "n_subsamples": [Interval(Integral, 2, None, closed="left")],
        "subsample_size": SUBSAMPLE_SIZE,
        "interval": [tuple, list],
        "max_samples": [Interval(Integral, 3, None, closed="left")],
        **OF_COPIES,
    }
    _names = ("consensus", "pac", "cophenetic")
    _drawn = "subsamples"
    _must_predict = False

    def __init__(
        self,
        criterion: str = "pac",
        *,
        n_subsamples: int = 20,
        subsample_size: float | int = 0.8,
        interval: tuple[float, float] = (0.1, 0.9),
        max_samples: int = 1000,
        details: bool = False,
        fit_params: dict[str, Any] | None = None,
        error_score: str | float = np.nan,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.criterion = criterion
        self.n_subsamples = n_subsamples
        self.subsample_size = subsample_size
        self.interval = interval
        self.max_samples = max_samples
        self.details = details
        self.fit_params = fit_params
        self.error_score = error_score
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self) -> None:
        bounds = list(self.interval)
        for bound in bounds:
            if not isinstance(bound, Real) or isinstance(bound, bool):
                raise TypeError(f"interval must be a number, got {shown(bound)}.")
        if len(bounds) != 2 or not 0 <= bounds[0] < bounds[1] <= 1:
            raise ValueError(
                "interval must be two numbers (lower, upper) with 0 <= lower < upper <= 1, got "
                f"{shown(self.interval)}."
            )

    def _check_number(self, n_samples: int) -> None:
        count_of(self.subsample_size, n_samples)

    def _scored(self, estimator: Any, samples: Samples, table: Any) -> dict[str, float]:
        n_samples, seed = n_entries(samples.X), int(self.random_state)
        size = count_of(self.subsample_size, n_samples)
        found = shared_out(
            labels_of_subsample,
            (estimator, samples, size),
            lambda: ((np.random.default_rng((seed, b)),) for b in range(self.n_subsamples)),
            self.n_jobs,
        )
        rest = f", with {size} of {n_samples} samples (subsample_size)"
        self._require_success(found, "subsample", rest)
        labels = np.full((self.n_subsamples, n_samples), _UNSEEN)
        for row, (members, codes) in zip(labels, found, strict=True):
            row[members] = codes
        rng = np.random.default_rng(seed)
        # in their order, on which the tree of equal distances depends
        paired = some_positions(n_samples, self.max_samples, rng)
        consensus = consensus_of_subsamples(labels[:, paired])
        pac, cophenetic = self._figures(consensus)
        score = 1 - pac if self.criterion == "pac" else cophenetic
        return dict(zip(self._names, (score, pac, cophenetic), strict=True))

    def _figures(self, consensus: np.ndarray) -> tuple[float, float]:
        """Return the proportion of ambiguous pairs, and the cophenetic correlation."""
        values = consensus[np.triu_indices(len(consensus), 1)]
        known = ~np.isnan(values)
        enough = known.all() if self.criterion == "cophenetic" else known.any()
        if not enough:
            raise ValueError(
                f"n_subsamples={self.n_subsamples} of subsample_size={self.subsample_size} hold "
                f"{known.sum()} of {len(values)} pairs of samples together: give more or larger "
                "ones."
            )
        low, high = np.array(self.interval) + 1e-9  # which rounding may miss
        pac = float(np.mean((values[known] > low) & (values[known] <= high)))
        return pac, cophenetic_correlation(consensus) if known.all() else np.nan


def consensus_of_subsamples(labels: np.ndarray) -> np.ndarray:
    """Return the share of the subsamples with two samples that hold them in one cluster.

    Parameters
    ----------
    labels : ndarray of shape (n_subsamples, n), int
        Clusters from 0; -1: in none; -2: not in the subsample.

    Returns
    -------
    ndarray of shape (n, n)
        NaN where no subsample holds both; 1 on the diagonal.
    """
    n = labels.shape[1]
    together, both = np.zeros((2, n, n), dtype=np.int32)
    for row in labels:
        seen, placed = row != _UNSEEN, row >= 0
        both += seen[:, None] & seen
        together += (row[:, None] == row) & placed
    consensus = np.full((n, n), np.nan)
    np.divide(together, both, out=consensus, where=both > 0)
    np.fill_diagonal(consensus, 1.0)
    return consensus
