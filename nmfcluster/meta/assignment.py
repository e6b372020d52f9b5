"""Sparse assignment: explain each sample of counts by a few known components."""

from typing import Any, NamedTuple

import numpy as np

from nmfcluster._utils.sampling import count_non_integers, poisson_counts
from nmfcluster._utils.storage import (
    as_dense,
    as_float64,
    row_blocks,
    row_sums,
    rows_of,
)
from nmfcluster._utils.validation import (
    check_count,
    check_number,
    check_shape,
    column_names,
    make_rng,
    read_matrix,
)
from nmfcluster.meta.divergence import Divergence, PoissonRows, solve_poisson_rows
from nmfcluster.meta.objective import drop_unexplained, fit_rows, read_components

# Number of entries of the components of rows that are fitted together: 8 MiB.
_BLOCK_ENTRIES = 2**20
# Share of the counts of a row that is added to each usage at the start of a fit: none is 0.
_START_SHARE = 0.03


class Assignment(NamedTuple):
    """Result of `assign`.

    Attributes
    ----------
    usages : ndarray of shape (n_samples, n_components)
        Number of counts that every component contributes to every sample. It is 0 for components
        that the sample does not need. If rows of `components` sum to 1, ``usages @ components`` is
        the expected X.
    low, high : ndarray of shape (n_samples, n_components) or None
        Lower and upper ends of the 95 % bootstrap intervals of the usages; None without
        bootstraps.

    Examples
    --------
    >>> from nmfcluster.meta import assign
    >>> usages, low, high = assign([[90, 0], [0, 40]], [[1.0, 0], [0, 1]])
    >>> usages.round(), low
    (array([[90.,  0.],
           [ 0., 40.]]), None)
    """

    usages: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


def assign(
    X: Any,
    components: Any,
    *,
    min_gain: float = 8,
    n_bootstraps: int = 0,
    random_state: Any = None,
) -> Assignment:
    r"""Explain every sample of counts by a few known components, such as mutational signatures.

    For a set S of components, :math:`L_S(x) = \min_{w \ge 0} \sum_j (wH)_j - x_j \log (wH)_j` is
    the negative log-likelihood of Poisson counts, up to a constant. A sample keeps a set S of
    components that it needs. Leaving out any of them raises the loss by at least g, which is
    `min_gain`:

    .. math:: L_{S \setminus c}(x) - L_S(x) \ge g \quad \text{for all } c \in S.

    Backward elimination finds this set. It first leaves out the components that the best fit does
    not use. It then tries the others one at a time, in order of a lower bound on the rise of the
    loss. A component is left out if the exact rise is below `min_gain`.

    Read more in the :ref:`User Guide <sparse-assignment>`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Counts, such as the number of mutations of each kind, nonnegative and without NaN. A row of
        zeros gets usages of 0.
    components : array-like of shape (n_components, n_features)
        Nonnegative components, one in each row. Transpose a catalogue that has them in columns.
        Rows are scaled to sum to 1, so that shares, percentages and counts give the same result.
        If `X` and `components` are data frames, their columns are matched by name.
    min_gain : float, default=8
        A larger value keeps fewer components. It is the number of nats by which a component must
        raise the log-likelihood of a sample, and does not depend on the number of counts. The
        default was chosen on simulated counts with known signatures. Use a larger value if counts
        vary more than Poisson counts do. 0 keeps all components that the best fit uses.
    n_bootstraps : int, default=0
        A larger value gives more precise intervals of the usages, and takes longer in proportion.
        0 gives no intervals. Each bootstrap draws a matrix of Poisson counts with X as their
        means, and assigns its samples again.
    random_state : int, RandomState, Generator or None, default=None
        Determines the counts that are drawn.

    Returns
    -------
    Assignment
        A named tuple of `usages`, `low` and `high`, of shape (n_samples, n_components) each; the
        last two are None without bootstraps.

    Raises
    ------
    ValueError
        If an entry is negative, NaN or infinite, `X` holds shares instead of counts, all entries
        of a component are 0, or `X` and `components` have different features.
    TypeError
        If an argument is of the wrong type.

    See Also
    --------
    nmfcluster.NMFMetaCluster : Uses all `fixed_components`, and can find others.
    nmfcluster.datasets.make_signatures : Counts with known signatures.

    Notes
    -----
    Counts in columns where all components are 0 are left out, with a warning. If only one
    component is above 0 in a column, a single count in this column makes the component
    indispensable. To allow for stray counts, add a component with equal entries, or add a small
    number to all entries of the components.

    Examples
    --------
    >>> from nmfcluster.meta import assign
    >>> signatures = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.2, 0.3, 0.5]]
    >>> assign([[81, 11, 10], [52, 49, 11]], signatures).usages.round()
    array([[102.,   0.,   0.],
           [ 58.,  54.,   0.]])
    """
    check_number(min_gain, "min_gain")
    n_bootstraps = check_count(n_bootstraps, "n_bootstraps", 0)
    rng = np.random.default_rng(make_rng(random_state).randint(2**31))
    names = column_names(X)
    X = read_matrix(X, ensure_non_negative=True, order="C")
    H = read_components(components, "components", names, X.dtype)
    H = H / H.sum(axis=1, keepdims=True)
    check_shape(H, "components", X.shape[1])
    largest_sum = row_sums(X).max()
    if largest_sum <= 1 and count_non_integers(X):
        raise ValueError(
            f"X must hold counts, got rows that sum to at most {largest_sum:.3g}: "
            "multiply shares by the number of counts of their row."
        )
    objective = Divergence(X)
    if largest_sum:
        objective.check_range()
    X = drop_unexplained(objective, H, names).X
    usages = _assign(X, H, min_gain)
    if not n_bootstraps:
        return Assignment(usages)
    drawn = [_assign(poisson_counts(X, rng), H, min_gain) for _ in range(n_bootstraps)]
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0).astype(usages.dtype)
    return Assignment(usages, low, high)


def _assign(X, H, min_gain):
    """Return the usages, (n, k), in the dtype of X."""
    W = fit_rows(Divergence(X), H)
    most_used = max(1, (W > 0).sum(axis=1).max())
    size = max(1, _BLOCK_ENTRIES // (H.shape[1] * most_used))
    for block in row_blocks(len(W), size):
        x = as_float64(as_dense(rows_of(X, block)))
        W[block] = _eliminate(x, H, W[block], min_gain)
    return W


def _eliminate(x, H, W, min_gain):
    """Return the usages of rows, (n, k), after leaving out components that rows do not need."""
    fit = _fit_used(x, H, W)
    active = np.arange(len(x))
    while len(active):
        # the component of each row with the smallest bound on its cost
        cheapest = fit.bounds[active].argmin(axis=1)
        may_go = fit.bounds[active, cheapest] < min_gain
        active = active[may_go]
        cheapest = cheapest[may_go]
        # do not try it again until another component has been left out
        fit.bounds[active, cheapest] = np.inf
        without = fit.usages[active]
        without[np.arange(len(active)), cheapest] = 0
        refit = _fit_used(x[active], H, without)
        goes = refit.losses - fit.losses[active] < min_gain
        for values, new in zip(fit, refit, strict=True):
            values[active[goes]] = new[goes]
    return fit.usages


class _Fit(NamedTuple):
    usages: np.ndarray
    losses: np.ndarray
    bounds: np.ndarray  # lower bounds of the rise of the loss without a component


def _fit_used(x, H, W):
    """Return the best fits with the components in W, their losses, and bounds on their rises.

    A sum of ``-x log m`` with x >= r, divided by r, is self-concordant [1]_. Leaving a component
    out therefore costs at least ``r (t - log(1 + t))``, where ``r t^2 / 2`` is the rise of the
    quadratic approximation. The bound of an unused component is infinite.

    References
    ----------
    .. [1] Y. Nesterov. Introductory lectures on convex optimization. Springer, 2004. Section 4.1.
    """
    # fit the components that each row uses, moved to the front
    most_used = (W > 0).sum(axis=1).max(initial=1)
    order = np.argsort(W <= 0, axis=1, kind="stable")[:, :most_used]
    U = np.take_along_axis(W, order, axis=1)
    used = H[order] * (U > 0)[:, :, None]
    totals = x.sum(axis=1)
    rows = PoissonRows(x, used, np.ones(U.shape), totals)
    U = solve_poisson_rows(rows, U + _START_SHARE * totals[:, None])
    means = rows.means(U)
    # bound the rises by the curvature; a larger diagonal has an inverse for equal components, too
    G = rows.curvature(means)
    diagonal = np.einsum("nkk->nk", G)
    diagonal[...] = np.where(diagonal > 0, diagonal * (1 + 1e-12), 1)
    variances = np.abs(np.einsum("nkk->nk", np.linalg.inv(G)))
    r = x.min(axis=1, where=x > 0, initial=x.max(initial=1), keepdims=True)
    t = U / np.sqrt(r * variances)
    bounds = np.full(W.shape, np.inf)
    rises = np.where(U > 0, r * (t - np.log1p(t)), np.inf)
    np.put_along_axis(bounds, order, rises, axis=1)
    usages = np.zeros_like(W)
    np.put_along_axis(usages, order, U, axis=1)
    return _Fit(usages, rows.losses(U, means), bounds)
