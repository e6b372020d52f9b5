r"""Summary, label rows and consensus of a label table that exists only in blocks of rows.

Each block is summarised, summaries merge in any order, and label rows are looked up among the
distinct ones. Nothing here depends on where the blocks are.

If there are too many distinct label rows for memory, passes over the blocks fit all rows. Given a
factor H of all samples, the new row h of a sample minimises :math:`\|a - Hh'\|^2`, where a is the
row of the sample in the similarity. This requires only two sums over samples: :math:`Z'H`, with
one row per base cluster, and :math:`H'H`. A pass fits the rows of every block to the sums of the
pass before, and adds up the sums for the next pass. Sums of integers are exact, so that results
depend neither on the blocks nor on their order. The caller passes one function that sums over all
blocks.
"""

from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np

from nmfcluster._base import membership
from nmfcluster._utils.labels import (
    LABEL_BLOCK_ROWS,
    NOT_SEEN,
    distinct_rows,
    hash_label_rows,
    label_positions,
    one_hot,
    set_noise_apart,
    to_smallest_int,
)
from nmfcluster._utils.linalg import coordinate_descent, nnls_rows
from nmfcluster._utils.progress import stage
from nmfcluster._utils.storage import as_float64, row_blocks, safe_ratio
from nmfcluster._utils.validation import format_value, normalize_weights
from nmfcluster.partitions.ensemble import (
    Ensemble,
    assignment_profiles,
    choose_profile,
    projector_weights,
)
from nmfcluster.partitions.inputs import LabelTable

# largest number of label tuples per group of partitions; all blocks have the same groups
_MAX_TUPLES = 5_000
# bits of a scale: sums of products of two scales are below 2^63 for 10^9 samples, and below
# 2^53 for the 16,384 rows that are added as floats
_SCALE_BITS = 16

# sweeps of coordinate descent for every row; 60 sweeps would lower no loss by more than 1e-6
_SWEEPS = 8
# bits of the remainder of a number that was rounded to an integer; entries of the factor are
# rounded to `_SCALE_BITS`
_REST_BITS = 32


_NO_ROW = 2**63 - 1  # marks that there is no such row


def clean_block(block, first=0):
    """Return the labels of a block as integers, with -1 for noise and -2 for not included.

    Parameters
    ----------
    block : array-like of shape (n_rows, n_partitions)
        Integers, booleans, or floats that are whole numbers. -1 is noise; other negative numbers
        and NaN mean that the sample is not included.
    first : int, default=0
        Number of the first row of the block in the whole table, for error messages.

    Raises
    ------
    TypeError
        If the block holds strings, or anything else that is not a number.
    ValueError
        If a number is not a valid label.
    """
    block = np.asarray(block)
    kind = block.dtype.kind
    if kind not in "biuf":
        raise TypeError(
            f"X must hold integers as labels, got dtype {block.dtype} in the block that starts at "
            f"row {first}: encode strings as numbers first, e.g. by pandas.factorize."
        )
    if kind == "f":
        block = as_float64(block)  # float16 cannot hold 2**53
        block = np.where(np.isnan(block), NOT_SEEN, block)
        wrong = (block != np.floor(block)) | (np.abs(block) > 2**53)
    else:
        wrong = block > 2**63 - 1
    if wrong.any():
        row, t = np.argwhere(wrong)[0].tolist()
        raise ValueError(
            "X must hold integer labels up to 2**63 - 1, or NaN for not included, got "
            f"{format_value(block[row, t].item())} in row {first + row}, partition {t}."
        )
    if kind in "if" and block.min(initial=0) < NOT_SEEN:
        block = np.maximum(block, NOT_SEEN)
    integers = {"bool": np.int8, "uint64": np.int64, "float64": np.int64}
    return block.astype(integers.get(block.dtype.name, block.dtype), copy=False)


class Counted(NamedTuple):
    """Distinct labels, or label rows, and the number of samples with each."""

    values: np.ndarray
    counts: np.ndarray


@dataclass(frozen=True)
class TableSummary:
    """Summary of blocks of a label table; the summaries of all blocks merge into one.

    Attributes
    ----------
    clusters : list of Counted
        The labels of every partition, in increasing order.
    distinct : Counted or None
        The distinct label rows; None if there are more than allowed.
    n_unlabelled : int
        Number of samples that no partition saw.
    first_unlabelled : int
        Number of the first such row, `_NO_ROW` if there is none.
    least : float
        The smallest total weight of the partitions that include a sample.
    """

    clusters: list[Counted]
    distinct: Counted | None
    n_unlabelled: int
    first_unlabelled: int
    least: float

    @classmethod
    def of_block(cls, block, first, weights, most):
        """Return the summary of a block.

        Parameters
        ----------
        block : array-like of shape (n_rows, n_partitions)
        first : int
            Number of its first row in the whole table.
        weights : ndarray of shape (n_partitions,)
            Weights of the partitions.
        most : int
            Largest number of distinct rows that are kept.
        """
        block = set_noise_apart(clean_block(block, first), weights)
        parts = []
        for rows in row_blocks(len(block), LABEL_BLOCK_ROWS):
            parts.append(cls._of_part(block[rows], first + rows.start, weights))
        return cls.merged(parts, most)

    @classmethod
    def _of_part(cls, part, first, weights):
        positions, _, counts = distinct_rows(part)
        rows = to_smallest_int(part[positions])
        clusters = []
        for column in rows.T:
            labels = _merge_labels([Counted(column, counts)])
            seen = labels.values >= 0
            values = labels.values[seen].astype(np.int64)
            clusters.append(Counted(values, labels.counts[seen]))
        coverage = np.where(rows >= 0, weights, 0.0).sum(axis=1)
        unlabelled = coverage <= 0
        return cls(
            clusters=clusters,
            distinct=Counted(rows, counts),
            n_unlabelled=int(counts[unlabelled].sum()),
            first_unlabelled=int(
                (first + positions).min(where=unlabelled, initial=_NO_ROW)
            ),
            least=float(coverage.min(where=~unlabelled, initial=np.inf)),
        )

    @classmethod
    def merged(cls, parts, most):
        """Merge several summaries into one."""
        partitions = zip(*[part.clusters for part in parts], strict=True)
        return cls(
            clusters=[_merge_labels(labels) for labels in partitions],
            distinct=_merge_rows([part.distinct for part in parts], most),
            n_unlabelled=sum(part.n_unlabelled for part in parts),
            first_unlabelled=min(part.first_unlabelled for part in parts),
            least=min(part.least for part in parts),
        )


def _merge_rows(parts, most):
    """Return the distinct rows of several parts; None if there are more than `most`."""
    if any(part is None or len(part.values) > most for part in parts):
        return None
    merged = parts[0]
    for part in parts[1:]:  # one by one, to stop as soon as there are too many rows
        rows = np.concatenate([merged.values, part.values])
        counts = np.concatenate([merged.counts, part.counts])
        positions, groups, _ = distinct_rows(rows)
        if len(positions) > most:
            return None
        merged = Counted(rows[positions], _count_groups(groups, counts, len(positions)))
    return merged


def _merge_labels(parts):
    """Return the labels of a partition in several parts, in increasing order."""
    values = np.concatenate([part.values for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    labels, groups = np.unique(values, return_inverse=True)
    return Counted(labels, _count_groups(groups, counts, len(labels)))


def _count_groups(groups, counts, n_groups):
    """Return the number of samples of every group; as a sum of floats, exact below 2^53."""
    return np.bincount(groups, counts, n_groups).astype(np.int64)


class BlockedTable:
    """Labels, weights and cluster sizes of a label table that exists only in blocks.

    Parameters
    ----------
    clusters : list of Counted
        The labels of every partition, in increasing order. A code is the position of a label in
        this order.
    weights : ndarray of shape (n_partitions,)
        Weights of the partitions, which sum to 1.
    n_samples : int
    least : float
        The smallest total weight of the partitions that include a sample.

    Attributes
    ----------
    known : tuple of ndarray
        The labels of every partition, in increasing order.
    n_clusters : ndarray of shape (n_partitions,), int
        Number of clusters of every partition.
    is_complete : bool
        Whether every partition includes all samples.
    sizes : ndarray of shape (C,), int
        Number of samples of every cluster of every partition.
    cluster_weights : ndarray of shape (C,)
        Weight of the partition of every cluster.
    shares : ndarray of shape (C,)
        Inverse size of every cluster.
    votes : ndarray of shape (C,)
        Weight that each cluster adds to every pair of its samples.
    scale_unit : float
        Unit of the scales of samples, a power of two.
    """

    def __init__(self, clusters, weights, n_samples, least):
        self.weights = weights
        self.n_samples = n_samples
        self.known, sizes = zip(*clusters, strict=True)
        self.n_clusters = np.array([len(labels) for labels in self.known])
        self.is_complete = all(counts.sum() == n_samples for counts in sizes)
        self.sizes = np.concatenate(sizes)
        self.cluster_weights = np.repeat(weights, self.n_clusters)
        self.shares = 1 / np.maximum(self.sizes, 1)
        self.votes = self.cluster_weights * self.shares
        highest = 1.0 if self.is_complete else 1 / np.sqrt(least)
        self.scale_unit = float(np.exp2(np.ceil(np.log2(highest)) - _SCALE_BITS))

    def scale(self, rows):
        """Return the factors that scale the rows of the similarity, (m,)."""
        if self.is_complete:
            return np.ones(len(rows))
        return 1 / np.sqrt(np.where(rows.coverage > 0, rows.coverage, 1))

    def codes(self, block):
        """Return the labels of a block as positions among those of their partitions.

        -1 is noise, -2 not included.

        Raises
        ------
        RuntimeError
            If a label is new, because the table has changed since it was read before.
        """
        block = set_noise_apart(clean_block(block), self.weights)
        if all(labels.max(initial=-1) == len(labels) - 1 for labels in self.known):
            # labels are 0, 1, 2, ... in every partition
            codes = block.astype(np.int32)
            new = block >= self.n_clusters
        else:
            columns = list(map(label_positions, block.T, self.known))
            positions = np.stack(columns, axis=1).astype(np.int32)
            new = (positions < 0) & (block >= 0)
            codes = np.where(block < 0, block, positions).astype(np.int32)
        if new.any():
            raise changed("a label is new")
        return codes

    def distinct(self, block):
        """Yield the distinct rows of parts of a block, their counts, and which each row equals."""
        block = np.asarray(block)
        for rows in row_blocks(len(block), LABEL_BLOCK_ROWS):
            codes = self.codes(block[rows])
            positions, groups, counts = distinct_rows(codes)
            yield codes[positions], counts, groups

    def ensemble(self, codes, counts):
        """Return distinct rows as an ensemble, in which no row depends on the others."""
        return Ensemble(
            codes, counts, self.weights, self.n_clusters, max_tuples=_MAX_TUPLES
        )

    def map_rows(self, block, function, **options):
        """Call a function with the distinct rows of a block; return a result for every row."""
        parts = []
        for codes, _, groups in self.distinct(block):
            parts.append(function(codes, **options)[groups])
        return np.concatenate(parts)


def changed(reason):
    """Return the error for a table that changed between two readings."""
    return RuntimeError(
        f"X must hold the same labels every time it is read, but {reason}: a step that computes "
        "it is random. Write it to a file, or persist it, and fit the result."
    )


class KnownRows:
    """Results of all distinct label rows, looked up for any rows.

    Parameters
    ----------
    codes : ndarray of shape (n_distinct, n_partitions), int
        The distinct rows; only their keys are kept.
    values : dict of ndarray of shape (n_distinct, ...)
        The results by their names.
    """

    def __init__(self, codes, values):
        for seed in count():  # until all keys differ; the first seed is usually enough
            keys, order = np.unique(hash_label_rows(codes, seed), return_index=True)
            if len(keys) == len(codes):
                break
        self._values = values
        self._seed = seed
        self._keys = keys
        self._order = order.astype(np.int32)

    def of_rows(self, codes, name):
        """Return the values of label rows.

        Raises
        ------
        RuntimeError
            If a row is new, because the table has changed since it was read before.
        """
        places = label_positions(hash_label_rows(codes, self._seed), self._keys)
        if (places < 0).any():
            raise changed("a label row is new")
        return self._values[name][self._order[places]]


class CountedRows(LabelTable):
    """Distinct rows of a label table in blocks, and how many samples each stands for.

    Parameters
    ----------
    codes : ndarray of shape (n_rows, n_partitions), int
        Codes of the labels in `table`; rows may repeat.
    counts : ndarray of shape (n_rows,), int
        How many samples a row stands for.
    table : BlockedTable
        The whole table.
    """

    def __init__(self, codes, counts, table):
        first, groups, _ = distinct_rows(codes)
        self.codes = codes[first]
        self.counts = _count_groups(groups, counts, len(first))
        self.categories = table.known
        self.n_clusters = table.n_clusters
        self.name = "X"

    def __len__(self):
        return int(self.counts.sum())

    def problem(self, weights, normalize):
        """Return the factorization problem of the rows with a label, and which rows these are."""
        weights = normalize_weights(weights, len(self.n_clusters))
        ensemble = Ensemble(self.codes, self.counts, weights, self.n_clusters)
        return self._problem_of(ensemble, np.arange(len(ensemble)), normalize)


# --- passes over the blocks ------------------------------------------------------------


def zero_loss(problem, sums):
    """Return the loss of the zero factor."""
    inverse = sums["inverse"] + sums["rest"] * 2.0**-_REST_BITS
    inverse = inverse * problem.scale_unit**2
    return float(problem.cluster_weights @ (inverse * problem.shares) ** 2)


@dataclass(frozen=True)
class Target:
    """Sums over the factor of all samples, to which rows are fitted.

    Attributes
    ----------
    links : ndarray of shape (C, k)
        N: for every base cluster, the sum of the rows of its members, scaled like the similarity.
    gram : ndarray of shape (k, k)
        G: the inner products of the columns of the factor.
    """

    links: np.ndarray
    gram: np.ndarray

    def grid(self, problem):
        """Return the unit of the entries of every column, a power of two, (k,)."""
        links = self.links * problem.shares[:, None]
        lengths = np.diagonal(self.gram)
        # an entry is at most the largest ratio of a link and a length
        counted = problem.cluster_weights[:, None] > 0
        ratios = safe_ratio(links * counted, lengths)
        highest = np.maximum(ratios.max(axis=0), np.finfo(float).tiny)
        return np.exp2(np.ceil(np.log2(highest)) - _SCALE_BITS)

    def rows(self, rows, problem):
        """Return the rows of the factor that fit best, (m, k)."""
        B = rows.row_sums(problem.votes[:, None] * self.links)
        B = B * problem.scale(rows)[:, None]
        return np.ascontiguousarray(_solve_columns(B.T, self.gram).T)


def _solve_columns(N, G):
    """Return the columns f >= 0 that minimise ``f'Gf - 2 n'f``, each solved independently."""
    is_single = N.shape[1] == 1
    if is_single:  # numpy sums a single column in another order
        N = np.repeat(N, 2, axis=1)
    diagonal = np.diagonal(G)[:, None]
    F = safe_ratio(np.maximum(N, 0), diagonal) / len(N)
    coordinate_descent(F[None], N[None], G[None], _SWEEPS, column_by_column=True)
    return F[:, :1] if is_single else F


def first_target(rows, H, problem):
    """Return the target of the first pass, from the factor of a sample of the rows.

    Parameters
    ----------
    rows : Ensemble
        The distinct rows of the sample.
    H : ndarray of shape (m, k)
        Their factor. Each row is multiplied by the square root of its number of samples.
    problem : BlockedTable
    """
    ratio = problem.n_samples / rows.counts.sum()
    # votes are 1 / size, so rows of the factor get shorter with more samples
    H = H / np.sqrt(rows.counts)[:, None] / np.sqrt(ratio)
    weights = problem.scale(rows) * rows.counts
    links = rows.cluster_sums(H * weights[:, None]) * ratio
    return Target(links, H.T @ (H * rows.counts[:, None]) * ratio)


# --- sums over blocks -----------------------------------------------------------------------------


def sums_of_block(block, problem, target, grid):
    """Fit the rows of a block, and return their sums.

    Parameters
    ----------
    block : array-like of shape (n_rows, n_partitions)
    problem : BlockedTable
    target : Target
    grid : ndarray of shape (k,)
        Units of the entries, see `Target.grid`.

    Returns
    -------
    dict
        Sums as int64:

        - links, gram: those of `Target`, in units of the grid; links also in
          `BlockedTable.scale_unit`
        - contingency (C, k), members (k,): numbers of samples; each sample is in the cluster of
          its largest entry
        - sizes (C,): numbers of samples
        - inverse (C,), rest (C,): sums of squared scales, and of the remainders of these squares;
          the unit of the squares is that of `BlockedTable.scale_unit`, squared, and the unit of
          remainders is 2^-32 of it
    """
    parts = []
    for codes, counts, _ in problem.distinct(block):
        rows = problem.ensemble(codes, counts)
        H = target.rows(rows, problem)
        # round entries and scales to whole numbers of their units
        steps = np.minimum(np.rint(H / grid), 2.0**_SCALE_BITS)
        scale = problem.scale(rows) / problem.scale_unit
        E = one_hot(H.argmax(axis=1), H.shape[1])
        inverse = scale**2
        rest = (inverse - np.rint(inverse)) * 2.0**_REST_BITS
        # sum each over all samples, or over those of every base cluster
        sums = {
            "links": rows.contingency(np.rint(steps * scale[:, None])),
            "gram": steps.T @ (steps * counts[:, None]),
            "contingency": rows.contingency(E),
            "members": (counts * (rows.coverage > 0)) @ E,
            "sizes": rows.sizes,
            "inverse": rows.cluster_sums(counts * np.rint(inverse)),
            "rest": rows.cluster_sums(counts * np.rint(rest)),
        }
        parts.append(sums)
    return add_sums(parts)


def counts_of_block(block, problem, profiles):
    """Count the samples of a block in the clusters that each profile gives.

    Returns the counts in base clusters, (n_profiles, C, k), and the sizes, (n_profiles, k).
    """
    parts = []
    for codes, counts, _ in problem.distinct(block):
        rows = problem.ensemble(codes, counts)
        labelled = counts * (rows.coverage > 0)
        indicators = []
        for profile in profiles:
            labels = rows.row_sums(profile).argmax(axis=1)
            indicators.append(one_hot(labels, profile.shape[1]))
        parts.append(
            {
                "labels": np.stack([rows.contingency(E) for E in indicators]),
                "members": np.stack([labelled @ E for E in indicators]),
            }
        )
    return add_sums(parts)


def add_sums(parts):
    """Return the sums over all parts, which are whole numbers."""
    total = {}
    for name in parts[0]:
        total[name] = np.sum([sums[name].astype(np.int64) for sums in parts], axis=0)
    return total


# --- passes ---------------------------------------------------------------------------------------


def next_target(sums, problem, grid):
    """Return the target of the next pass, and the loss of this one with optimally scaled columns.

    Raises
    ------
    RuntimeError
        If the blocks have changed.
    """
    if not np.array_equal(sums["sizes"], problem.sizes):
        raise changed("labels are more, or fewer, than before")
    # the loss is quadratic in d, the squares of the factors of the columns
    links = sums["links"] * (grid * problem.scale_unit)
    gram = sums["gram"] * np.outer(grid, grid)
    gain = problem.votes @ links**2
    squares = gram**2
    d = nnls_rows(gain[None], squares)[0]
    loss = zero_loss(problem, sums) - 2 * float(gain @ d) + float(d @ squares @ d)
    root = np.sqrt(d)
    return Target(links * root, gram * np.outer(root, root)), loss


@dataclass(frozen=True)
class BlockedConsensus:
    """Clusters of a fit, to which any label rows can be assigned.

    Attributes
    ----------
    table : BlockedTable
    order : ndarray of shape (k,), int
        Clusters by decreasing size. Columns of `contingency` and `profile` have this order.
    contingency : ndarray of shape (C, k)
        Number of samples that every base cluster shares with each cluster.
    profile : ndarray of shape (C, k)
        Gives labels and memberships of samples, see `assignment_profiles`.
    """

    table: BlockedTable
    order: np.ndarray
    contingency: np.ndarray
    profile: np.ndarray

    def of_rows(self, codes, name):
        """Return the "labels", "membership" or "confidence" of label rows."""
        rows = self.table.ensemble(codes, np.ones(len(codes)))
        P = membership(rows.row_sums(self.profile))
        if name == "membership":
            return P
        seen = rows.coverage > 0
        labels = P.argmax(axis=1)
        if name == "labels":
            return np.where(seen, labels, -1)
        return rows.confidence(self.contingency, np.where(seen, labels, -1))


def improve(
    sum_blocks,
    problem,
    target,
    n_passes,
):
    """Make passes over the blocks, and return the consensus of the best one and all losses.

    Parameters
    ----------
    sum_blocks : callable
        ``sum_blocks(function)`` returns the sum of ``function(block)`` over all blocks.
    problem : BlockedTable
    target : Target
        Target of the first pass, see `first_target`.
    n_passes : int
    """
    passes = []
    losses = np.empty(n_passes)
    for number in range(n_passes):
        with stage(f"pass {number + 1} over {problem.n_samples} rows") as progress:
            grid = target.grid(problem)
            sum_rows = partial(sums_of_block, problem=problem, target=target, grid=grid)
            passes.append(sum_blocks(sum_rows))
            target, losses[number] = next_target(passes[-1], problem, grid)
            progress.outcome = f"loss {losses[number]:.6g}"
    # keep the best pass; losses were never seen to rise
    best = passes[int(np.argmin(losses))]
    profiles = assignment_profiles(
        problem.cluster_weights,
        problem.votes,
        best["contingency"],
        best["members"],
    )
    sums = sum_blocks(partial(counts_of_block, problem=problem, profiles=profiles))
    contingencies = sums["labels"].astype(np.float64)
    chosen = choose_profile(
        [
            projector_weights(problem.votes, N, problem.cluster_weights @ N)
            for N in contingencies
        ]
    )
    order = np.argsort(-sums["members"][chosen], kind="stable")
    found = BlockedConsensus(
        problem,
        order,
        contingency=contingencies[chosen][:, order],
        profile=profiles[chosen][:, order],
    )
    return found, losses
