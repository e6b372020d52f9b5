"""Which programs of several tables are the same, and the programs of the groups of one table."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics.cluster import contingency_matrix

from nmfcluster._utils.alignment import union_of_names
from nmfcluster._utils.labels import NOT_SEEN, as_label_vector, clean_labels, one_hot
from nmfcluster._utils.sparse_products import split_missing
from nmfcluster._utils.storage import as_dense, safe_ratio
from nmfcluster._utils.validation import (
    check_count,
    column_names,
    format_count,
    format_value,
    read_matrix,
    sample_names,
    warn,
)
from nmfcluster.meta.squares import unit_rows
from nmfcluster.partitions.base_runs import range_of_clusters

# Presence from which a group has a program: it comes back in half of its runs.
_PRESENT = 0.5
# Similarity from which programs count as alike. On planted tables of seven kinds with 300 genes,
# whose factors had deviations of 0.7 and 1.0, average linkage put the same programs together at
# 0.58 or more, and different ones at 0.54 or less.
ALIKE = 0.55


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
    is_alike : list of ndarray of shape (n_programs_i,), bool
        False for programs that differ from most of their metacluster, and are in it only because
        `n_clusters` is too small: presence does not count them.
    similarities : ndarray of shape (n_programs - 1,)
        The similarity at which programs are put together, one merge after the other, in
        decreasing order; -1 for those of one table. Programs count as alike from 0.55 on.
    sources : ndarray of shape (n_sources,)
        Names of the sources, sorted.
    feature_names : ndarray of shape (n_features,) or None
        Names of the features, where the tables had some.
    """

    components: np.ndarray
    labels: list[np.ndarray]
    presence: np.ndarray
    is_alike: list[np.ndarray]
    similarities: np.ndarray
    sources: np.ndarray
    feature_names: np.ndarray | None


def metacluster(
    components: Sequence[Any], n_clusters: int, *, sources: Any = None
) -> SharedPrograms:
    r"""Find which programs of several tables are the same: of other runs, samples, or tools.

    Programs are clustered by average linkage. Those that have the same distribution over features
    have the affinity :math:`\sum_g \sqrt{p_g q_g} = 1`, p and q having a sum of 1 [1]_: roots
    halve, on a logarithmic scale, the factors of genes by which one sample differs from the next.
    What all programs of a table have in common, such as these factors and genes that are high
    everywhere, makes different programs of other tables similar, too. Their mean is therefore
    subtracted from the roots, and the similarity of two programs is the cosine of what is left:
    about 0 by chance. Programs of one table are put together only where no others are left.

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
    n_clusters = check_count(n_clusters, "n_clusters", 1)
    tables, names = _read_programs(components)
    n_tables = len(tables)
    sizes = [len(table) for table in tables]
    largest = max(sizes)
    if not largest <= n_clusters <= sum(sizes):
        allowed = f"from {largest}, the most of one table, to {sum(sizes)}, the programs of all"
        cure = "; programs are rows: if yours are columns, pass table.T of each"
        if largest <= tables[0].shape[1]:
            cure = ""
        raise ValueError(f"n_clusters must be {allowed}; got {n_clusters}{cure}.")
    if sources is None:
        sources = np.arange(n_tables)
    known, source = read_groups(sources, "sources", n_tables, "table")
    roots, seen, distances = _compare(tables)
    table_of = np.repeat(np.arange(n_tables), sizes)
    # those of one table are far from each other: one such pair is more than all others
    distances[table_of[:, None] == table_of] = len(roots) ** 2
    tree = AgglomerativeClustering(
        n_clusters, metric="precomputed", linkage="average", compute_distances=True
    )
    labels = tree.fit_predict(distances)
    similarities = np.maximum(1 - np.sort(tree.distances_), -1)
    tree.set_params(n_clusters=None, distance_threshold=1 - ALIKE)
    # only those of its largest part are alike in a cluster
    parts = tree.fit_predict(distances)
    is_alike = parts == contingency_matrix(labels, parts).argmax(axis=1)[labels]
    labels = np.argsort(np.argsort(-np.bincount(labels), kind="stable"))[labels]
    # what they have in common, feature by feature
    E = one_hot(labels, n_clusters)
    means = (E.T @ roots / np.maximum(E.T @ seen, 1)) ** 2
    means /= np.maximum(means.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    # the share of the tables of a source that have one that is alike
    is_present = one_hot(table_of, n_tables).T @ (E * is_alike[:, None]) > 0
    of_source = one_hot(source, len(known))
    presence = of_source.T @ is_present / of_source.sum(axis=0)[:, None]
    ends = np.cumsum(sizes)[:-1]
    return SharedPrograms(
        means,
        np.split(labels, ends),
        presence,
        np.split(is_alike, ends),
        similarities,
        known,
        names,
    )


def _compare(tables):
    """Return roots of programs (J, p), which entries were seen, and distances of all pairs (J, J).

    The distance is 1 - the cosine, over the features that both programs have.
    """
    H = np.concatenate(tables)
    seen = ~np.isnan(H)
    roots = unit_rows(np.sqrt(np.nan_to_num(H)))[0]
    # programs without what those of their table have in common; with one or two programs the
    # whole mean would leave nothing, or opposites
    centred = []
    for own in np.split(roots, np.cumsum([len(table) for table in tables])[:-1]):
        centred.append(own - (1 - 0.5 / len(own)) * own.mean(axis=0))
    deviations = np.concatenate(centred) * seen
    scale = np.sqrt((deviations**2 @ seen.T) * (seen @ (deviations**2).T))
    return roots, seen, 1 - safe_ratio(deviations @ deviations.T, scale)


def n_alike(similarities):
    """Return how many sets of programs there are that are alike."""
    return len(similarities) + 1 - int((similarities >= ALIKE).sum())


def _read_programs(components):
    """Return tables of programs with columns for all features, and the names of these."""
    if isinstance(components, str) or not isinstance(components, Sequence | np.ndarray):
        raise TypeError(
            f"components must be a list of tables, got {format_value(components)}."
        )
    if not len(components):
        raise ValueError("components must hold a table at least, it is empty.")
    names = []
    features_of = []
    tables = []
    for i, table in enumerate(components):
        names.append(f"components[{i}]")
        features_of.append(sample_names(column_names(table)))
        read = read_matrix(
            table, names[i], ensure_all_finite="allow-nan", dtype=np.float64
        )
        read = as_dense(read)
        if (read < 0).any():
            raise ValueError(
                f"{names[i]} must be nonnegative, and z-scores are not: give programs in the "
                "unit of the data, such as `components_`, or clip negative scores to 0."
            )
        if not (read > 0).any(axis=1).all():
            raise ValueError(
                f"{names[i]} must each hold an entry above 0: leave out programs of zeros."
            )
        tables.append(read)
    unnamed = [names[i] for i, own in enumerate(features_of) if own is None]
    if len(unnamed) == len(names):
        for table, name in zip(tables, names, strict=True):
            n_features = tables[0].shape[1]
            if table.shape[1] != n_features:
                raise ValueError(
                    f"{name} must have {format_count(n_features, 'column')}, as components[0] has, "
                    f"got {table.shape[1]}: rows are programs, so pass table.T if genes are in "
                    "rows, or data frames with the names of genes."
                )
        return tables, None
    if unnamed:
        raise ValueError(
            f"{unnamed[0]} has no names of features, others have: give all as data "
            "frames, or all as arrays."
        )
    features = union_of_names(features_of, names, "feature")
    aligned = []
    for table, own in zip(tables, features_of, strict=True):
        wide = np.full((len(table), len(features)), np.nan)
        wide[:, features.get_indexer(own)] = table
        aligned.append(wide)
    return aligned, np.asarray(features)


def read_groups(groups, name, n, noun):
    """Return the names of groups, sorted, and the number of the group of every one of `n` things.

    `noun` is what a message calls one of them.
    """
    groups = as_label_vector(groups)
    if groups.shape != (n,):
        raise ValueError(f"{name} must be of shape ({n},), got {groups.shape}.")
    values, marks = clean_labels(groups, name)
    n_unknown = int(np.count_nonzero(marks < 0))
    if n_unknown:
        raise ValueError(
            f"{name} must name a group for each {noun}; {format_count(n_unknown, noun)} has "
            "None, NaN or a negative number."
        )
    return np.unique(values, return_inverse=True)


@dataclass(frozen=True)
class GroupFits:
    """The programs of all groups of samples, and which of them are the same.

    Attributes
    ----------
    names : ndarray of shape (n_groups,)
    components : ndarray of shape (n_clusters, n_features)
        The metaclusters, fixed components first, each as long as they are.
    presence : ndarray of shape (n_groups, n_clusters)
        How surely they come back in the runs of every group.
    similarities : ndarray of shape (n_programs - 1,)
        At which similarity the programs of the groups are put together, see `SharedPrograms`.
    correspondence : ndarray of shape (J, n_clusters)
        How much of them is in every cluster of the runs of all groups.
    base_runs : ndarray of shape (J,), int
        The run of every one of these clusters.
    losses : ndarray of shape (n_runs,)
    partitions : ndarray of shape (n_samples, n_runs), int
    """

    names: np.ndarray
    components: np.ndarray
    presence: np.ndarray
    similarities: np.ndarray
    correspondence: np.ndarray
    base_runs: np.ndarray
    losses: np.ndarray
    partitions: np.ndarray


def fit_groups(model, X, groups, weights, fixed, seed):
    """Fit a model like `model` to the rows of every group, and metacluster their programs."""
    names, group = read_groups(groups, "groups", X.shape[0], "sample")
    if model.sparsity:  # usages alone are fitted at the end
        raise ValueError(f"groups need sparsity=0, got sparsity={model.sparsity}.")
    k = model.n_clusters
    n_fixed = len(fixed)
    n_programs = k if model.base_n_clusters is None else model.base_n_clusters
    low, high = range_of_clusters(n_programs, "base_n_clusters")
    check_count(low, "base_n_clusters, with groups,", max(n_fixed, 1))
    # the same seed for all: a group has the same programs whatever others there are
    own_model = clone(model).set_params(
        n_clusters=high,
        base_n_clusters=None if low == high else (low, high),
        random_state=seed,
    )
    models, components_of = _fit_each(own_model, X, names, group, weights, fixed)
    # a range of numbers, or more than the total, leaves the programs that come back
    most = k - n_fixed if low < high or high > k else None
    kept = _programs_of_each(models, components_of, n_fixed, most)
    _check_total(model, n_fixed + sum(map(len, kept)))
    # fixed components are the same everywhere, the others are metaclustered
    components = fixed
    labels = np.full((len(models), high), -1)
    labels[:, :n_fixed] = np.arange(n_fixed)
    similarities = np.zeros(0)
    if k > n_fixed:
        some = [g for g, own in enumerate(kept) if len(own)]
        tables = [components_of[g][kept[g]] for g in some]
        found = metacluster(tables, k - n_fixed)
        _warn_of_total(k, n_fixed + n_alike(found.similarities))
        components = np.concatenate([components, unit_rows(found.components)[0]])
        similarities = found.similarities
        for g, is_alike, own in zip(some, found.is_alike, found.labels, strict=True):
            labels[g, kept[g]] = np.where(is_alike, n_fixed + own, -1)
    components = components.astype(X.dtype)
    n_free = np.array([len(own) for own in kept])
    limits = _limit_presence(names, np.bincount(group), X.shape[1], n_free)
    return _summary(models, names, group, components, labels, similarities, limits)


def is_measured(X):
    """Return which columns hold an entry that was observed."""
    missing = split_missing(X)[1]
    if missing is None:
        return np.full(X.shape[1], True)
    return missing.sum(axis=0) < X.shape[0]


def _fit_each(own_model, X, names, group, weights, fixed):
    """Return the model of every group, and its components of all features.

    A group is fitted to the features that it has, and components are NaN where it has none.
    """
    models = []
    components_of = []
    for g, name in enumerate(names.tolist()):
        own = group == g
        own_weights = None if weights is None else weights[own]
        rows = X[own]
        has = is_measured(rows)
        model = clone(own_model)
        if len(fixed):
            model.set_params(fixed_components=fixed[:, has])
        try:
            if own.sum() < model.n_clusters - len(fixed):
                raise ValueError(
                    f"base_n_clusters={model.n_clusters} must be at most its number of samples: "
                    "lower it, or leave the group out."
                )
            model.fit(rows[:, has], None, own_weights)
        except ValueError as error:
            raise ValueError(
                f"Group {name!r} of {own.sum()} samples: {error}"
            ) from error
        components = np.full((len(model.components_), len(has)), np.nan)
        components[:, has] = model.components_
        models.append(model)
        components_of.append(components)
    return models, components_of


def _limit_presence(names, n, p, k):
    """Return the largest presence in groups of n samples by p features, with k programs.

    It is the share of the entries that is left beside the free parameters of a factorization, if
    that is below one half: runs of such groups agree on whatever they see, as on six samples of
    noise with six programs. A warning names them.
    """
    left = 1 - k * (n + p - k) / (n * p)
    is_small = left < _PRESENT
    if is_small.any():
        warn(
            f"Too few samples for their programs: groups {names[is_small].tolist()} of "
            f"{n[is_small].tolist()} samples. Noise recurs in their runs, too, so that their "
            "presence is below 0.5: leave them out, or lower base_n_clusters."
        )
    return np.where(is_small, np.maximum(left, 0), 1)


def _recurrent(recurrence, most):
    """Return which programs come back in half of the runs, at least one and `most` at most."""
    order = np.argsort(-recurrence, kind="stable")
    n_recurrent = int((recurrence >= _PRESENT).sum())
    return np.sort(order[: min(max(n_recurrent, 1), most)])


def _programs_of_each(models, components_of, n_fixed, most):
    """Return the numbers of the programs of every group that are not fixed.

    If there is a largest number of them, they are those that recur. A group that has fewer programs
    than its fit has others of zeros, which are none.
    """
    kept = []
    for model, H in zip(models, components_of, strict=True):
        own = np.arange(n_fixed, len(H))
        if most is not None:
            own = _recurrent(model.recurrence_[n_fixed:], most) + n_fixed
        kept.append(own[(H[own] > 0).any(axis=1)])
    return kept


def _check_total(model, n_programs):
    """Raise a ValueError if all groups together have fewer programs than there are clusters."""
    if model.n_clusters > n_programs:
        raise ValueError(
            f"n_clusters={model.n_clusters} must be at most {n_programs}, the programs that the "
            f"groups have with base_n_clusters={model.base_n_clusters}: lower n_clusters, or "
            "raise base_n_clusters."
        )


def _warn_of_total(n_clusters, n_sets):
    """Warn if programs that differ were put together, or some that are alike were not."""
    if n_clusters != n_sets:
        what = "programs that are alike are apart"
        if n_clusters < n_sets:
            what = "programs that differ are in one cluster, and not all of them count"
        warn(
            f"n_clusters={n_clusters}: {what}. By their similarity, the groups have "
            f"{format_count(n_sets, 'program')} in all: see sweep_n_clusters with groups."
        )


def _summary(models, names, group, components, labels, similarities, limits):
    """Return what the runs of all groups found.

    `labels` are the clusters of the programs of all groups, -1 for those of none, and `limits` the
    largest presence in every group.
    """
    n_runs = len(models[0].run_losses_)
    partitions = np.full((len(group), len(models) * n_runs), NOT_SEEN)
    presence = []
    correspondence = []
    base_runs = []
    for g, model in enumerate(models):
        E = one_hot(labels[g], len(components) + 1)[:, :-1]  # -1 is the last column
        presence.append(np.minimum(model.recurrence_, limits[g]) @ E)
        correspondence.append(model.correspondence_ @ E)
        first = g * n_runs
        base_runs.append(model.base_runs_ + first)
        partitions[group == g, first : first + n_runs] = model.partitions_
    return GroupFits(
        names,
        components,
        np.array(presence),
        similarities,
        np.concatenate(correspondence),
        np.concatenate(base_runs),
        np.concatenate([model.run_losses_ for model in models]),
        partitions,
    )


def is_shared(presence, min_groups):
    """Return which clusters are present in as many groups, or in such a share of them."""
    if not isinstance(min_groups, Integral):
        # what one group alone has is not shared
        min_groups = max(2, np.ceil(min_groups * len(presence)))
    return (presence >= _PRESENT).sum(axis=0) >= min_groups
