"""The number of clusters by counts that were held out: a share of every count is not fitted."""

from typing import Any

import numpy as np
from sklearn.base import clone

from nmfcluster._utils.parallel import attempted, one_blas_thread, shared_out
from nmfcluster._utils.progress import say
from nmfcluster._utils.sampling import overdispersion, thinned
from nmfcluster._utils.storage import as_float64, row_sums
from nmfcluster.meta.parameters import objective_of_table
from nmfcluster.model_selection.results import tell_failures

_MIXED = 0.1  # share of the held-out means that knows no clusters
_PRIOR = 0.5  # counts that every column has more than were seen: unseen ones are not impossible
_FOLLOWED = (
    0.5  # share of the entries that a fit which tells of the others follows at most
)

#: parameters of the fits to parts: a single run, as nothing is asked about runs, and the way to
#: metacluster that sees soonest that its clusters are the metaclusters
SHORT = dict(n_estimators=1, n_init=1, base_n_clusters=None, resample=None, meta="nmf")


def held_out_losses(
    model: Any,
    table: Any,
    dispersion: str | float,
    numbers: np.ndarray,
    fits: list[Any],
    seeds: list[int],
    n_jobs: int | None,
) -> tuple[float, np.ndarray]:
    """Return the loss of every part by what the others lead to, for every number of clusters.

    Parameters
    ----------
    model : NMFMetaCluster
        Cloned, and set to a single run.
    table : ndarray or csr_array of shape (n, p)
        Counts, which are shared out, see `nmfcluster._utils.sampling.thinned`.
    dispersion : "auto" or float
        "auto": that of the largest number that could be fitted, and leaves half of the table: more
        would follow noise, and hide it.
    numbers : ndarray of shape (n_candidates,), int
        Numbers of clusters.
    fits : list of NMFMetaCluster or None
        Those of all the counts; None where one failed.
    seeds : list of int
        Of the dispersion, of the parts, and of the fits, one for each part: that of a larger number
        of clusters begins with the start of a smaller one, so that numbers differ by less than by
        chance.
    n_jobs : int or None

    Returns
    -------
    dispersion : float
    losses : ndarray of shape (n_candidates, n_parts)
        In the unit of the loss of the estimator; NaN where a fit failed.
    """
    fitted = np.array([fit is not None for fit in fits])
    if dispersion == "auto":
        usable = np.flatnonzero(fitted & leave_enough(numbers, table.shape))
        last = fits[usable[-1] if len(usable) else np.flatnonzero(fitted)[0]]
        rng = np.random.default_rng(seeds[0])
        with one_blas_thread():
            dispersion = overdispersion(table, last.factor_, last.components_, rng)
    rng, seeds = np.random.default_rng(seeds[1]), seeds[2:]
    parts, tried = thinned(table, len(seeds), rng, float(dispersion)), numbers[fitted]
    told = (
        f"fitting {len(tried)} numbers of clusters to {len(parts)} parts of the counts"
    )
    say(told, "sweep_n_clusters")
    calls = [(int(k), fold, seed) for k in tried for fold, seed in enumerate(seeds)]
    with (
        one_blas_thread()
    ):  # of all fits: looking the libraries up takes long beside a short one
        found = shared_out(
            attempted, (held_out_loss, model, table, parts), calls, n_jobs
        )
    of_numbers = [found[i : i + len(parts)] for i in range(0, len(found), len(parts))]
    errors = [
        next((r for r in own if isinstance(r, Exception)), None) for own in of_numbers
    ]
    tell_failures(tried, errors, "sweep_n_clusters")
    losses = np.full((len(numbers), len(parts)), np.nan)
    values = [np.nan if isinstance(r, Exception) else r for r in found]
    losses[fitted] = np.reshape(values, (-1, len(parts)))
    return float(dispersion), losses


def leave_enough(numbers: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return of which numbers of clusters factors follow half of a table's entries at most."""
    return numbers * (sum(shape) - numbers) <= _FOLLOWED * np.prod(shape)


def held_out_loss(
    estimator: Any, X: Any, parts: list[Any], n_clusters: int, fold: int, seed: int
) -> float:
    r"""Return the loss of one part by what the others lead to.

    The expected counts are :math:`((1 - \delta) WH + \delta rc) / (m - 1)`, for m parts, W and H
    being fitted to the sum of the other ones, r the sums of its rows, and c the shares of its
    columns: a single count where WH is 0 would otherwise decide.

    Parameters
    ----------
    estimator : NMFMetaCluster
    X : ndarray or csr_array of shape (n, p)
    parts : list of ndarray or csr_array of shape (n, p)
    n_clusters, fold, seed : int

    Returns
    -------
    float
    """
    model = clone(estimator).set_params(
        **SHORT, n_clusters=n_clusters, random_state=seed
    )
    seen = X - parts[fold]
    model.fit(seen)
    held, seen = as_float64(parts[fold]), as_float64(seen)
    shares = row_sums(seen.T) + _PRIOR
    rows, columns = as_float64(model.factor_), as_float64(model.components_)
    W = np.column_stack([(1 - _MIXED) * rows, _MIXED * row_sums(seen)]) / (
        len(parts) - 1
    )
    H = np.vstack([columns, shares / shares.sum()])
    return float(objective_of_table(model, held).error(W, H) ** 2 / 2)


def least_held_out(losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which numbers have a held-out loss within one standard error of the least.

    Losses of the same part are compared with each other: the error is that of their differences.

    Parameters
    ----------
    losses : ndarray of shape (n_candidates, n_parts)
        NaN where there is none.

    Returns
    -------
    as_good : ndarray of shape (n_candidates,), bool
    errors : ndarray of shape (n_candidates,)
        Those of the mean differences from the candidate of the least loss, 0 for itself.
    """
    means = losses.mean(axis=1)
    differences = losses - losses[np.nanargmin(means)]
    errors = differences.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
    return means - np.nanmin(means) <= errors, errors  # False for NaN
