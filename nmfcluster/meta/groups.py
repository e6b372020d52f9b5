"""Which programs of several tables are the same, and the programs of the groups of one table."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering

from nmfcluster._utils.alignment import union_of
from nmfcluster._utils.labels import as_vector, clean_labels, one_hot
from nmfcluster._utils.storage import as_dense
from nmfcluster._utils.validation import (
    check_count,
    column_names,
    counted,
    read_table,
    require_size,
    sample_names,
    shown,
)
from nmfcluster.meta.squares import unit_rows

_PRESENT = (
    0.5  # presence from which a group has a program: it comes back in half of its runs
)
_TINY = np.finfo(
    float
).tiny  # put in the place of sums of 0, by which nothing is divided


@dataclass(frozen=True)
class SharedPrograms:
    """What `metacluster` returns: metaclusters of the programs of several tables.

    Attributes
    ----------
    components : ndarray of shape (n_clusters, n_features)
        What the programs of every metacluster have in common: the squared mean of their roots,
        scaled to sum to 1; those of most programs come first.
    labels : list of ndarray of shape (n_programs_i,), int
        The metacluster of every program of a table.
    presence : ndarray of shape (n_sources, n_clusters)
        In what share of the tables of a source a metacluster has a program.
    sources : ndarray of shape (n_sources,)
        Names of the sources, sorted.
    feature_names : ndarray of shape (n_features,) or None
        Names of the features, where the tables had some.
    """

    components: np.ndarray
    labels: list[np.ndarray]
    presence: np.ndarray
    sources: np.ndarray
    feature_names: np.ndarray | None


def metacluster(
    components: Sequence[Any], n_clusters: int, *, sources: Any = None
) -> SharedPrograms:
    r"""Find which programs of several tables are the same: of other runs, samples, or tools.

    Programs are clustered by average linkage of the affinity of what they are distributed like,
    :math:`\sum_g \sqrt{p_g q_g}`, p and q having a sum of 1 [1]_: roots halve, on a logarithmic
    scale, the factors of genes by which one sample differs from the next. Programs of one table
    are put together only where no others are left.

    Parameters
    ----------
    components : sequence of array-like of shape (n_programs_i, n_features_i)
        Nonnegative programs, one a row. Columns of data frames are matched by their names; a
        feature that a table does not have, or NaN, is left out where its programs are compared.
    n_clusters : int
        Number of metaclusters: at least as many as the largest table has programs.
    sources : array-like of shape (n_tables,), default=None
        Where the tables are from, such as the sample that a run saw; each from its own by default.

    Returns
    -------
    SharedPrograms

    Raises
    ------
    ValueError
        If a table or parameter is not as described.
    TypeError
        If `components` are not a sequence of tables, or sources are of several kinds.

    See Also
    --------
    nmfcluster.NMFMetaCluster : Finds programs, with `groups` those of every group.
    nmfcluster.metrics.match_components : Pairs the components of two fits.

    References
    ----------
    .. [1] A. Bhattacharyya. On a measure of divergence between two statistical populations defined
       by their probability distributions. Bulletin of the Calcutta Mathematical Society 35, 1943.

    Examples
    --------
    >>> from nmfcluster.meta import metacluster
    >>> one, other = [[9, 1, 0], [0, 1, 9]], [[0, 2, 8], [1, 8, 1]]
    >>> found = metacluster([one, other], 3)
    >>> [labels.tolist() for labels in found.labels]
    [[2, 0], [0, 1]]
    >>> found.presence.tolist()
    [[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """
    check_count(n_clusters, "n_clusters", 1)
    tables, names = _read_programs(components)
    sizes = [len(table) for table in tables]
    if not max(sizes) <= n_clusters <= sum(sizes):
        allowed = f"from {max(sizes)}, the most of one table, to {sum(sizes)}, the programs of all"
        raise ValueError(f"n_clusters must be {allowed}; got {n_clusters}.")
    tables_of = np.arange(len(tables)) if sources is None else as_vector(sources)
    known, source = read_groups(tables_of, "sources", len(tables), "table")
    # how alike programs are, over the features that both have; those of one table are not
    H, of_table = np.concatenate(tables), np.repeat(np.arange(len(tables)), sizes)
    seen, roots = ~np.isnan(H), unit_rows(np.sqrt(np.nan_to_num(H)))[0]
    scale = np.sqrt((roots**2 @ seen.T) * (seen @ (roots**2).T))
    far = 1 - np.divide(
        roots @ roots.T, scale, out=np.zeros_like(scale), where=scale > 0
    )
    far[of_table[:, None] == of_table] = (
        len(H) ** 2
    )  # one such pair is more than all others
    tree = AgglomerativeClustering(
        int(n_clusters), metric="precomputed", linkage="average"
    )
    labels = tree.fit_predict(far)
    labels = np.argsort(np.argsort(-np.bincount(labels), kind="stable"))[labels]
    # what they have in common, feature by feature, and where they occur
    E = one_hot(labels, int(n_clusters))
    means = (E.T @ roots / np.maximum(E.T @ seen, 1)) ** 2
    means /= np.maximum(means.sum(axis=1, keepdims=True), _TINY)
    held, of_source = (
        one_hot(of_table, len(tables)).T @ E > 0,
        one_hot(source, len(known)),
    )
    presence = of_source.T @ held / of_source.sum(axis=0)[:, None]
    return SharedPrograms(
        means, np.split(labels, np.cumsum(sizes)[:-1]), presence, known, names
    )


def _read_programs(components: Any) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Return tables of programs with columns for all features, and the names of these."""
    if isinstance(components, str) or not isinstance(components, Sequence | np.ndarray):
        raise TypeError(
            f"components must be a list of tables, got {shown(components)}."
        )
    if not len(components):
        raise ValueError("components must hold a table at least, it is empty.")
    names = [f"components[{i}]" for i in range(len(components))]
    own = [sample_names(column_names(table)) for table in components]
    wanted = {
        "ensure_all_finite": "allow-nan",
        "ensure_non_negative": True,
        "dtype": np.float64,
    }
    pairs = zip(components, names, strict=True)
    tables = [as_dense(read_table(table, name, **wanted)) for table, name in pairs]
    if all(index is None for index in own):
        for table, name in zip(tables, names, strict=True):
            require_size(table, name, tables[0].shape[1])
        return tables, None
    if unnamed := [
        name for name, index in zip(names, own, strict=True) if index is None
    ]:
        cure = "give all as data frames, or all as arrays"
        raise ValueError(f"{unnamed[0]} has no names of features, others have: {cure}.")
    features = union_of(own, names, "feature")
    for i, (table, index) in enumerate(zip(tables, own, strict=True)):
        tables[i] = np.full((len(table), len(features)), np.nan)
        tables[i][:, features.get_indexer(index)] = table
    return tables, np.asarray(features)


def read_groups(
    given: Any, name: str, n: int, noun: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the names of groups, sorted, and the number of the group of every one of `n` things.

    `noun` is what a message calls one of them.
    """
    given = as_vector(given)
    if given.shape != (n,):
        raise ValueError(f"{name} must be of shape ({n},), got {given.shape}.")
    values, seen = clean_labels(given, name)
    if lost := int(np.count_nonzero(~seen)):
        none = f"{counted(lost, noun)} has None, NaN or a negative number"
        raise ValueError(f"{name} must name a group for each {noun}; {none}.")
    return np.unique(values, return_inverse=True)


@dataclass(frozen=True)
class GroupFits:
    """The programs of all groups of a table, and which of them are the same.

    Attributes
    ----------
    models : list of NMFMetaCluster
        Fitted to one group each, in the order of their names.
    rows : list of ndarray
        The samples of every group.
    names : ndarray of shape (n_groups,)
    columns : ndarray of shape (n_clusters, n_features)
        The metaclusters, fixed components first, each as long as they are.
    labels : list of ndarray
        The metacluster of every program of a group.
    """

    models: list[Any]
    rows: list[np.ndarray]
    names: np.ndarray
    columns: np.ndarray
    labels: list[np.ndarray]

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        groups: Any,
        weights: Any,
        fixed: np.ndarray | None,
        seed: int,
    ) -> Self:
        """Fit a model like `model` to the rows of every group, and metacluster their programs."""
        names, group = read_groups(groups, "groups", X.shape[0], "sample")
        if model.sparsity:  # usages alone are fitted at the end
            raise ValueError(f"groups need sparsity=0, got sparsity={model.sparsity}.")
        k, m, own = (
            model.n_clusters,
            0 if fixed is None else len(fixed),
            model.base_n_clusters,
        )
        check_count(
            own := k if own is None else own, "base_n_clusters, with groups,", max(m, 1)
        )
        each = {"n_clusters": own, "base_n_clusters": None, "fixed_components": fixed}
        models, rows = [], [np.flatnonzero(group == g) for g in range(len(names))]
        for name, its in zip(names, rows, strict=True):
            # the same seed for all: a group has the same programs whatever others there are
            alone = clone(model).set_params(**each, random_state=seed)
            try:
                models.append(
                    alone.fit(X[its], None, None if weights is None else weights[its])
                )
            except ValueError as error:
                raise ValueError(
                    f"Group {name!r} of {len(its)} samples: {error}"
                ) from error
        # those that are fixed are the same everywhere, the others are metaclustered
        columns, labels = np.zeros((0, X.shape[1])), [np.arange(m) for _ in models]
        if k > m:
            found = metacluster([one.components_[m:] for one in models], k - m)
            columns, others = unit_rows(found.components)[0], found.labels
            labels = [
                np.append(first, m + its)
                for first, its in zip(labels, others, strict=True)
            ]
        columns = columns if fixed is None else np.concatenate([fixed, columns])
        return cls(models, rows, names, columns.astype(X.dtype), labels)

    def keep(self, model: Any, order: np.ndarray) -> np.ndarray:
        """Say of runs and groups what a fit says, metaclusters in this order.

        Returns the strongest cluster of every sample in every run, (n, n_runs).
        """
        n, n_groups = sum(map(len, self.rows)), len(self.models)
        n_runs = [len(one.run_losses_) for one in self.models]
        ends, least = np.cumsum(n_runs), model.min_groups
        if not isinstance(least, Integral):
            least = max(
                2, np.ceil(least * n_groups)
            )  # what one group alone has is not shared
        E = [one_hot(np.argsort(order)[labels], len(order)) for labels in self.labels]
        fits = list(zip(self.models, E, strict=True))
        model.groups_ = self.names
        model.presence_ = np.array([one.recurrence_ @ its for one, its in fits])
        model.shared_ = (model.presence_ >= _PRESENT).sum(axis=0) >= least
        model.recurrence_ = model.presence_.mean(axis=0)
        model.run_losses_ = np.concatenate([one.run_losses_ for one in self.models])
        model.correspondence_ = np.concatenate(
            [one.correspondence_ @ its for one, its in fits]
        )
        firsts = zip(self.models, ends - n_runs, strict=True)
        model.base_runs_ = np.concatenate(
            [one.base_runs_ + first for one, first in firsts]
        )
        partitions = np.full((n, ends[-1]), -1)
        for one, its, end in zip(self.models, self.rows, ends, strict=True):
            partitions[its, end - one.partitions_.shape[1] : end] = one.partitions_
        return partitions
