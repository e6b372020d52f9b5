"""Candidates for the number of clusters, and the result of choosing one of them."""

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from sklearn.exceptions import FitFailedWarning

from nmfcluster._utils.validation import (
    check_count,
    format_value,
    last_step,
    require_instance,
    warn,
)
from nmfcluster.display import NumberDisplay

DEFAULT_CANDIDATES = range(1, 16)
#: default candidates for runs of NMF, as recurrence cannot judge 1
SEVERAL = range(2, 16)
# largest number of samples for computations whose time grows with its square
MAX_SAMPLES = 500


def n_clusters_parameter(estimator):
    """Return the name of the parameter that is the number of clusters."""
    require_instance(estimator)
    prefix, step = last_step(estimator)
    if hasattr(step, "fit") and hasattr(type(step), "get_params"):
        parameters = step.get_params(deep=False)
        for name in ("n_clusters", "n_components"):
            if name in parameters:
                return prefix + name
    raise TypeError(
        "estimator must have a parameter n_clusters or n_components, got "
        f"{format_value(estimator)}. To choose by values of another parameter, such as "
        "'eps', pass param_name to choose_n_clusters."
    )


def is_default(candidates):
    """Return whether candidates are the defaults of a function."""
    return isinstance(candidates, range) and candidates in (DEFAULT_CANDIDATES, SEVERAL)


def read_candidates(candidates, n_samples, n_fixed=0):
    """Return numbers of clusters in increasing order; a tuple of two is a range.

    Default candidates end at the number of samples plus that of fixed clusters.
    """
    most = n_samples + n_fixed
    if is_default(candidates):
        candidates = candidates[: max(most + 1 - candidates[0], 1)]
    if isinstance(candidates, str | bytes) or not hasattr(candidates, "__iter__"):
        raise TypeError(
            f"candidates must be several ints, got {format_value(candidates)}."
        )
    # an iterable may be endless; if it has more numbers than samples, one of them is too
    # large or occurs twice
    numbers = list(islice(candidates, most + MAX_SAMPLES))
    if not numbers:
        raise ValueError("candidates must hold a number of clusters, got none.")
    numbers = [check_count(number, "candidates") for number in numbers]
    if max(numbers) > most:
        fixed = f" plus {n_fixed} fixed ones" if n_fixed else ""
        raise ValueError(
            f"candidates must be at most n_samples={n_samples}{fixed}, got {max(numbers)}."
        )
    if isinstance(candidates, tuple) and len(numbers) == 2:
        numbers = list(range(numbers[0], numbers[1] + 1))
        if not numbers:
            raise ValueError(
                f"candidates must be (low, high) with low <= high, got {candidates}."
            )
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"candidates must be distinct, got {format_value(numbers)}.")
    return np.sort(np.array(numbers, dtype=np.int64))


def read_values(candidates, param_name, estimator):
    """Return the candidates as a list of values of a parameter of the estimator."""
    names = estimator.get_params()
    if param_name not in names:
        raise ValueError(
            f"param_name must be a parameter of {format_value(estimator)}, such as "
            f"{sorted(names)}, got {param_name!r}."
        )
    values = []
    if hasattr(candidates, "__iter__") and not isinstance(candidates, str | bytes):
        values = list(islice(candidates, MAX_SAMPLES))
    if len(values) < 2 or candidates is DEFAULT_CANDIDATES:
        raise ValueError(
            f"candidates must be several values of {param_name}, got "
            f"{format_value(candidates)}."
        )
    return values


def format_candidates(numbers):
    """Return candidates as text, such as "2, 5, 9", or "2 to 9" if they have no gaps."""
    if 0 < numbers[-1] - numbers[0] < len(numbers):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def drop_single_cluster(numbers, method):
    """Return candidates without 1, which a method cannot judge; raise if none is left."""
    if numbers[-1] == 1:
        raise ValueError(
            f"candidates must be at least 2 for method={method!r}, as 1 is always found."
        )
    return numbers[numbers > 1]


def warn_if_largest(numbers, chosen):
    """Warn if the largest of several candidates was chosen, as a larger one may be better."""
    if chosen == numbers[-1] and len(numbers) > 1:
        no_clusters = ""
        if numbers[0] > 1:
            no_clusters = (
                " Data without clusters also get several, as 1 is not a candidate."
            )
        warn(
            f"The largest of the candidates was chosen, {chosen}. A larger number may be "
            "better: pass larger candidates, too."
            f"{no_clusters}"
        )


def report_failures(numbers, outcomes, caller, name="n_clusters"):
    """Warn of candidates that failed; raise the first error if all of them failed."""
    failed = [
        (k, outcome)
        for k, outcome in zip(numbers, outcomes, strict=True)
        if isinstance(outcome, Exception)
    ]
    if len(failed) == len(numbers):
        error = failed[0][1]
        error.add_note(f"{caller}: all {len(numbers)} candidates failed.")
        raise error
    for k, error in failed:
        warn(
            f"{name}={k} failed and is not chosen. {type(error).__name__}: {error}",
            FitFailedWarning,
        )


@dataclass(frozen=True, eq=False, repr=False)
class _Choice:
    """A number of clusters that was chosen among candidates."""

    candidates: np.ndarray
    n_clusters_: int
    as_good: np.ndarray
    method: str
    votes: dict[str, int] = field(default_factory=dict, kw_only=True)
    agreed: bool = field(default=True, kw_only=True)

    def __repr__(self):
        by = self.method
        if self.votes:
            n_votes = list(self.votes.values()).count(self.n_clusters_)
            by = f"{n_votes} of {len(self.votes)} votes"
            if not self.agreed:
                by += ": no agreement"
        elif self.method not in ("held-out", "similarity"):
            by += ", which cannot choose 1"
        among = format_candidates(self.candidates)
        return f"{type(self).__name__}({self.n_clusters_} of {among}, by {by})"

    def _make_table(self, **computed):
        """Return columns for all candidates: computed ones, and all vectors among attributes."""
        columns = {
            name: values
            for name, values in (computed | vars(self)).items()
            if isinstance(values, np.ndarray) and values.ndim == 1
        }
        candidates = columns.pop("candidates")
        as_good = columns.pop("as_good")
        return {
            "n_clusters": candidates,
            **columns,
            "as_good": as_good,
            "chosen": candidates == self.n_clusters_,
        }

    def plot(self, ax=None):
        """Plot the scores of all candidates.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. By default, a new figure is made.

        Returns
        -------
        NumberDisplay
            The display, which holds the axes and the figure.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        return NumberDisplay.from_estimator(self, ax=ax)


@dataclass(frozen=True, eq=False, repr=False)
class NumberOfClusters(_Choice):
    """The chosen number of clusters, the scores of all candidates, and the final estimator.

    `choose_n_clusters` returns this object, and `sweep_n_clusters` returns it if `groups` is
    passed. Arrays have one entry for each of the `candidates`.

    Attributes
    ----------
    candidates : ndarray of shape (n_candidates,), int
        Numbers of clusters that were compared, in increasing order.
    n_clusters_ : int
        The chosen number. Stability and eigenvalues never choose 1, and so choose a larger number
        even for data without clusters. A vote for features can choose 1.
    as_good : ndarray of shape (n_candidates,), bool
        Whether a candidate is about as good as the chosen one. This holds for the chosen one
        itself, and for these candidates:

        - By a vote, candidates with at most one vote fewer. If too few criteria agree, these are
          all numbers between their votes.
        - By stability, candidates whose fits agree about as well as the fits of the most stable
          one.
        - By eigenvalues, candidates whose gap is at least 0.8 of the largest, or whose `repeated`
          is at least 0.1.
        - By similarity, candidates that would be chosen if the limit of 0.55 were up to 0.1 higher
          or lower.
    method : {"vote", "stability", "eigengap", "similarity"}
        The rule that decided.
    agreed : bool
        False if there was a vote and too few criteria agree on the number.
    votes : dict of str to int
        Number of clusters that each criterion votes for. A criterion that finds no number is left
        out. Empty if there was no vote.
    stability : ndarray of shape (n_candidates,) or None
        Mean adjusted Rand index of two fits to parts of the samples; a higher value means more
        stable clusters. It is NaN if a fit failed, or if most fits, or the fit to all samples,
        found fewer clusters. None for other methods.
    stability_se : ndarray of shape (n_candidates,) or None
        Standard error of `stability`. It is set to 0.1 if there are only two fits, whose single
        agreement has no standard error.
    n_fits : ndarray of shape (n_candidates,), int, or None
        Number of fits that were compared. It is 2 for numbers that two fits rule out, 6 for the
        chosen number and the most stable one, and usually 4 for others. It is 0 for numbers that
        were not tried because smaller ones were too large.
    n_found : ndarray of shape (n_candidates,), int, or None
        Median number of clusters that these fits found; 0 if a fit failed, or if no fit was made.
    eigengap : ndarray of shape (n_candidates,) or None
        How far the eigenvalues of the mean projection matrix of the partitions fall after each
        number, from 0 to 1. A large gap supports the number. It is NaN if the fit failed or found
        fewer clusters. None for other methods.
    repeated : ndarray of shape (n_candidates,) or None
        Largest share of the partitions that have this number of clusters and are nearly the same,
        with an adjusted Rand index of at least 0.95. It is 0 for fewer than four partitions, and
        for memberships. If any share is 0.25 or more, the largest number with a share of at least
        0.15 is chosen. None for other methods.
    similarity : ndarray of shape (n_candidates,) or None
        With groups, the lowest similarity of programs that are merged to reach this total. Only
        programs with a similarity of 0.55 or more should be merged. It is 1 if no programs are
        merged, and -1 if programs of the same group are merged. None for other methods.
    values : dict of int to list
        With `param_name`, the values that lead to each number of clusters for all samples. Numbers
        above 1 are the candidates. `n_fits` is then the number of fits to halves that found a
        number, with any value, and `n_found` is None. Empty without `param_name`.
    best_estimator_ : estimator
        The estimator with the chosen number, fitted to all samples.

    See Also
    --------
    nmfcluster.model_selection.choose_n_clusters : Choose the number of clusters.
    nmfcluster.display.NumberDisplay : Plot the scores of all candidates.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import make_blobs
    >>> from nmfcluster.model_selection import choose_n_clusters
    >>> X, _ = make_blobs(300, centers=4, random_state=8)
    >>> chosen = choose_n_clusters(
    ...     KMeans(n_init=3), X, range(2, 6), method="stability", random_state=0
    ... )
    >>> chosen
    NumberOfClusters(4 of 2 to 5, by stability, which cannot choose 1)
    >>> list(chosen.table)  # pandas.DataFrame(chosen.table) shows it
    ['n_clusters', 'stability', 'stability_se', 'n_fits', 'n_found', 'as_good', 'chosen']
    """

    eigengap: np.ndarray | None = None
    repeated: np.ndarray | None = None
    similarity: np.ndarray | None = None
    stability: np.ndarray | None = None
    stability_se: np.ndarray | None = None
    n_fits: np.ndarray | None = None
    n_found: np.ndarray | None = None
    values: dict[int, list[Any]] = field(default_factory=dict)
    best_estimator_: Any = None

    @property
    def table(self) -> dict[str, np.ndarray]:
        """Dict of columns with one entry per candidate, for `pandas.DataFrame`."""
        if not self.votes:
            return self._make_table()
        votes = list(self.votes.values())
        n_votes = np.array([votes.count(k) for k in self.candidates])
        return self._make_table(n_votes=n_votes)


@dataclass(frozen=True, eq=False, repr=False)
class ClusterSweep(_Choice):
    """Fits with several numbers of clusters, and the chosen number.

    `sweep_n_clusters` returns it. Arrays have one entry for each of the `candidates`, which is NaN
    if the fit failed.

    Attributes
    ----------
    candidates : ndarray of shape (n_candidates,), int
        Numbers of clusters that were tried, in increasing order.
    n_clusters_ : int
        The chosen number.
    as_good : ndarray of shape (n_candidates,), bool
        Whether a candidate is about as good as the best one. This holds if its held-out loss is
        within one standard error of the smallest loss, or if its recurrence is near the largest
        one.
    method : {"held-out", "exact", "recurrence"}
        The rule that decided. "exact" means that the smallest number with an exact factorization
        was chosen.
    votes : dict of str to int
        Empty, as there is no vote.
    agreed : bool
        True.
    held_out_losses : ndarray of shape (n_candidates, n_folds) or None
        Loss of every held-out part; None if counts were not held out.
    held_out_se : ndarray of shape (n_candidates,) or None
        Standard error of the mean difference from the smallest held-out loss.
    dispersion : float or None
        Dispersion of counts beyond a Poisson distribution; None if counts were not held out.
    recurrence : ndarray of shape (n_candidates,)
        Mean of `recurrence_`, which is high if clusters recur in all runs.
    smallest_recurrence : ndarray of shape (n_candidates,)
        Recurrence of the cluster that recurs least.
    reconstruction_err : ndarray of shape (n_candidates,)
        `reconstruction_err_` of the fits.
    cophenetic : ndarray of shape (n_candidates,)
        Cophenetic correlation of the consensus matrix of the runs, for at most 500 samples.
    estimators : tuple
        The fitted estimators, with None for each fit that failed. Only the chosen one always has as
        many runs as the estimator that was passed.

    See Also
    --------
    nmfcluster.model_selection.sweep_n_clusters : Choose the number of clusters of NMFMetaCluster.
    nmfcluster.display.NumberDisplay : Plot the scores of all candidates.

    Examples
    --------
    >>> from nmfcluster import NMFMetaCluster
    >>> from nmfcluster.datasets import make_signatures
    >>> from nmfcluster.model_selection import sweep_n_clusters
    >>> X, _, _ = make_signatures(n_signatures=4, random_state=0)
    >>> model = NMFMetaCluster(4, loss="kullback-leibler", n_estimators=5, random_state=0)
    >>> sweep = sweep_n_clusters(model, X, range(3, 6), n_folds=3, random_state=0)
    >>> sweep.n_clusters_, sweep.best_estimator_.components_.shape
    (4, (4, 96))
    >>> list(sweep.table)[:3]  # pandas.DataFrame(sweep.table) shows all of it
    ['n_clusters', 'held_out_loss', 'held_out_se']
    """

    recurrence: np.ndarray
    smallest_recurrence: np.ndarray
    reconstruction_err: np.ndarray
    cophenetic: np.ndarray
    estimators: tuple[Any, ...]
    held_out_losses: np.ndarray | None = None
    held_out_se: np.ndarray | None = None
    dispersion: float | None = None

    @property
    def best_estimator_(self):
        """The fitted estimator with the chosen number of clusters."""
        return self.estimators[self.candidates.tolist().index(self.n_clusters_)]

    @property
    def table(self):
        """Dict of columns with one entry per candidate, for `pandas.DataFrame`."""
        if self.held_out_losses is None:
            return self._make_table()
        losses = self.held_out_losses.mean(axis=1)
        return self._make_table(held_out_loss=losses, held_out_se=self.held_out_se)
