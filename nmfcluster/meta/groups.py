"""Metaclusters of programs from several fits, and programs of groups of samples."""

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

# Smallest presence that counts: the program recurs in half of the runs of the group.
_PRESENT = 0.5
# Smallest similarity of programs that count as alike. On planted tables of seven kinds with 300
# genes, whose factors had deviations of 0.7 and 1.0, average linkage merged equal programs at 0.58
# or more, and different ones at 0.54 or less.
ALIKE = 0.55


@dataclass(frozen=True)
class SharedPrograms:
    """Result of `metacluster`: metaclusters of the programs of several tables.

    Attributes
    ----------
    components : ndarray of shape (n_clusters, n_features)
        Mean program of every metacluster: the square roots of its programs are averaged, squared,
        and scaled to sum to 1. Metaclusters with the most programs come first.
    labels : list of ndarray of shape (n_programs_i,), int
        The metacluster of every program of a table.
    presence : ndarray of shape (n_sources, n_clusters)
        Share of the tables of a source that have a program in the metacluster.
    is_alike : list of ndarray of shape (n_programs_i,), bool
        False for programs that differ from most of their metacluster. They are in it only because
        `n_clusters` is too small. They do not count for `presence`.
    similarities : ndarray of shape (n_programs - 1,)
        Similarities at which programs are merged, in decreasing order; -1 for a merge of programs
        of the same table. Programs count as alike at 0.55 or more.
    sources : ndarray of shape (n_sources,)
        Names of the sources, sorted.
    feature_names : ndarray of shape (n_features,) or None
        Names of the features, if the tables have names.
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
    r"""Find programs that several tables share, such as tables from different runs or samples.

    A table holds the programs of one fit, such as `NMFMetaCluster.components_`. Programs are
    clustered by average linkage, with these similarities:

    1. Every program is scaled to sum to 1, and replaced by its square roots. Two programs p and q
       with the same distribution over features then have the affinity :math:`\sum_g \sqrt{p_g q_g}
       = 1` [1]_. Samples can differ by a factor for every gene; square roots halve its logarithm.
    2. Most of the mean of the programs of a table is subtracted from each of them. The mean holds
       what these programs have in common, such as genes that are high everywhere and the factors
       above. Without this step, different programs of two tables would be similar, too.
    3. The similarity of two programs is the cosine of the differences. By chance, it is about 0.

    Programs of the same table are merged only after all others.

    Parameters
    ----------
    components : sequence of array-like of shape (n_programs_i, n_features_i)
        Nonnegative programs, one in each row. Columns of data frames are matched by their names.
        If a feature is NaN or absent in a table, it is ignored when programs of this table are
        compared with others.
    n_clusters : int
        A larger number merges fewer programs. It is the number of metaclusters, at least the
        number of programs of the largest table.
    sources : array-like of shape (n_tables,), default=None
        Source of each table, such as the sample that a run was fitted to. By default, each table is
        a source of its own.

    Returns
    -------
    SharedPrograms

    Raises
    ------
    ValueError
        If a table or parameter is not as described.
    TypeError
        If `components` are not a sequence of tables, or `sources` mix types.

    See Also
    --------
    nmfcluster.NMFMetaCluster : Finds programs, also those of groups of samples.
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
        allowed = f"from {largest}, the most in one table, to {sum(sizes)}, those in all tables"
        cure = "; programs are rows: if yours are columns, pass table.T of each"
        if largest <= tables[0].shape[1]:
            cure = ""
        raise ValueError(f"n_clusters must be {allowed}; got {n_clusters}{cure}.")
    if sources is None:
        sources = np.arange(n_tables)
    known, source = read_groups(sources, "sources", n_tables, "table")
    roots, seen, distances = _compare(tables)
    table_of = np.repeat(np.arange(n_tables), sizes)
    # a distance between programs of one table is so large that it outweighs all others
    distances[table_of[:, None] == table_of] = len(roots) ** 2
    tree = AgglomerativeClustering(
        n_clusters, metric="precomputed", linkage="average", compute_distances=True
    )
    labels = tree.fit_predict(distances)
    similarities = np.maximum(1 - np.sort(tree.distances_), -1)
    tree.set_params(n_clusters=None, distance_threshold=1 - ALIKE)
    # programs of a cluster are alike if they are in its largest part
    parts = tree.fit_predict(distances)
    is_alike = parts == contingency_matrix(labels, parts).argmax(axis=1)[labels]
    labels = np.argsort(np.argsort(-np.bincount(labels), kind="stable"))[labels]
    # mean programs: each feature over the programs that have it
    E = one_hot(labels, n_clusters)
    means = (E.T @ roots / np.maximum(E.T @ seen, 1)) ** 2
    means /= np.maximum(means.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    # share of the tables of a source that have a program that is alike
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
    """Return roots of programs (J, p), which entries they have, and all distances (J, J).

    A distance is 1 minus the cosine over the features that both programs have.
    """
    H = np.concatenate(tables)
    seen = ~np.isnan(H)
    roots = unit_rows(np.sqrt(np.nan_to_num(H)))[0]
    # subtract what the programs of a table have in common; with one or two programs the whole
    # mean would leave zeros, or opposite programs
    centred = []
    for own in np.split(roots, np.cumsum([len(table) for table in tables])[:-1]):
        centred.append(own - (1 - 0.5 / len(own)) * own.mean(axis=0))
    deviations = np.concatenate(centred) * seen
    scale = np.sqrt((deviations**2 @ seen.T) * (seen @ (deviations**2).T))
    return roots, seen, 1 - safe_ratio(deviations @ deviations.T, scale)


def n_alike(similarities):
    """Return the number of sets of programs that are alike."""
    return len(similarities) + 1 - int((similarities >= ALIKE).sum())


def _read_programs(components):
    """Return tables of programs with columns for all features, and the names of these."""
    if isinstance(components, str) or not isinstance(components, Sequence | np.ndarray):
        raise TypeError(
            f"components must be a list of tables, got {format_value(components)}."
        )
    if not len(components):
        raise ValueError("components must hold at least one table, got none.")
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
                f"{names[i]} must be nonnegative, and z-scores are not: pass programs in the "
                "unit of the data, such as `components_`, or clip negative scores to 0."
            )
        if not (read > 0).any(axis=1).all():
            raise ValueError(
                f"{names[i]} must hold an entry above 0 in each row: drop programs of zeros."
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
            f"{unnamed[0]} has no names of features, but others have: pass only data "
            "frames, or only arrays."
        )
    features = union_of_names(features_of, names, "feature")
    aligned = []
    for table, own in zip(tables, features_of, strict=True):
        wide = np.full((len(table), len(features)), np.nan)
        wide[:, features.get_indexer(own)] = table
        aligned.append(wide)
    return aligned, np.asarray(features)


def read_groups(groups, name, n, noun):
    """Return the sorted names of groups, and the number of the group of each of `n` things.

    `noun` is the name of one thing in messages.
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
    """Programs of all groups of samples, and their metaclusters.

    Attributes
    ----------
    names : ndarray of shape (n_groups,)
    components : ndarray of shape (n_clusters, n_features)
        The metaclusters, after the fixed components.
    presence : ndarray of shape (n_groups, n_clusters)
        How reliably each cluster recurs in the runs of every group.
    similarities : ndarray of shape (n_programs - 1,)
        Similarities at which programs of the groups are merged, see `SharedPrograms`.
    correspondence : ndarray of shape (J, n_clusters)
        Weight of every metacluster in every cluster of the runs of all groups.
    base_runs : ndarray of shape (J,), int
        The run of every cluster of the runs.
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
    if model.sparsity:  # the last step fits usages only, without a penalty
        raise ValueError(f"groups need sparsity=0, got sparsity={model.sparsity}.")
    k = model.n_clusters
    n_fixed = len(fixed)
    n_programs = k if model.base_n_clusters is None else model.base_n_clusters
    low, high = range_of_clusters(n_programs, "base_n_clusters")
    check_count(low, "base_n_clusters, with groups,", max(n_fixed, 1))
    # all groups have the same seed, so that their programs do not depend on other groups
    own_model = clone(model).set_params(
        n_clusters=high,
        base_n_clusters=None if low == high else (low, high),
        random_state=seed,
    )
    models, components_of = _fit_each(own_model, X, names, group, weights, fixed)
    # with a range, or more programs than the total, groups keep those that recur
    most = k - n_fixed if low < high or high > k else None
    kept = _programs_of_each(models, components_of, n_fixed, most)
    _check_total(model, n_fixed + sum(map(len, kept)))
    # fixed components are the same in all groups; others are metaclustered
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
    """Return which columns hold an observed entry."""
    missing = split_missing(X)[1]
    if missing is None:
        return np.full(X.shape[1], True)
    return missing.sum(axis=0) < X.shape[0]


def _fit_each(own_model, X, names, group, weights, fixed):
    """Return the model of every group, and its components over all features.

    A model is fitted to the observed features of its group; other components are NaN.
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
                f"Group {name!r} of {format_count(own.sum(), 'sample')}: {error}"
            ) from error
        components = np.full((len(model.components_), len(has)), np.nan)
        components[:, has] = model.components_
        models.append(model)
        components_of.append(components)
    return models, components_of


def _limit_presence(names, n, p, k):
    """Return the limit of the presence in groups of n samples by p features, with k programs.

    It is 1 minus the number of free parameters of a factorization over the number of entries, if
    that is below one half, and 1 otherwise. Runs of such small groups agree even on noise, as on
    six samples with six programs. A warning names these groups.
    """
    left = 1 - k * (n + p - k) / (n * p)
    is_small = left < _PRESENT
    if is_small.any():
        warn(
            f"Groups {names[is_small].tolist()} of {n[is_small].tolist()} samples are too "
            "small for their programs. Noise recurs in their runs, too, so their presence_ is "
            "set below 0.5. Leave these groups out, or lower base_n_clusters."
        )
    return np.where(is_small, np.maximum(left, 0), 1)


def _recurrent(recurrence, most):
    """Return which programs recur in half of the runs, from one to `most` of them."""
    order = np.argsort(-recurrence, kind="stable")
    n_recurrent = int((recurrence >= _PRESENT).sum())
    return np.sort(order[: min(max(n_recurrent, 1), most)])


def _programs_of_each(models, components_of, n_fixed, most):
    """Return the numbers of the programs of every group that are not fixed.

    If `most` is not None, only programs that recur are returned, at most this number. Programs of
    zeros, in fits with more components than the group has programs, do not count.
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
    """Warn if different programs were merged, or programs that are alike were not."""
    if n_clusters != n_sets:
        what = "programs that are alike are in different clusters"
        if n_clusters < n_sets:
            what = "different programs are in one cluster, and not all of them count"
        warn(
            f"With n_clusters={n_clusters}, {what}. By their similarity, the groups have "
            f"{format_count(n_sets, 'program')} in all. Choose n_clusters by sweep_n_clusters, and "
            "pass it the groups."
        )


def _summary(models, names, group, components, labels, similarities, limits):
    """Return the results of the runs of all groups.

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
    """Return which clusters are present in `min_groups` groups, or in this share of them."""
    if not isinstance(min_groups, Integral):
        # a cluster of a single group is not shared
        min_groups = max(2, np.ceil(min_groups * len(presence)))
    return (presence >= _PRESENT).sum(axis=0) >= min_groups
