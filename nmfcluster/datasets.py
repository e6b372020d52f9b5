"""Synthetic data with known clusters: rings, partitions, biclusters, and counts."""

import numpy as np

from nmfcluster._utils.labels import NOT_SEEN
from nmfcluster._utils.validation import (
    Seed,
    check_count,
    check_number,
    format_value,
    make_rng,
)

__all__ = [
    "make_biclusters",
    "make_nested_rings",
    "make_partitions",
    "make_programs",
    "make_signatures",
]

# share of the genes that a program raises, and also that all programs have in common
_RAISED = 0.1
# Dirichlet concentration over channels of the flattest signature, as flat as that of ageing
_FLAT = 2.0
_ACTIVE = 4.0  # mean number of signatures in a sample


def make_nested_rings(
    n_samples: int = 400,
    *,
    radii: tuple[float, ...] = (2.0, 3.5),
    noise: float = 0.1,
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Make points on concentric rings, like the toy data of Lange and Buhmann.

    Methods that only compare the distances of points, such as k-means, cut both rings in half. The
    paper [1]_ does not state its radii and noise, so these defaults are our choice.

    Parameters
    ----------
    n_samples : int, default=400
        Number of points. The numbers of points on any two rings differ by at most one.
    radii : tuple of float, default=(2.0, 3.5)
        Radius of each ring. Rings are harder to separate if their radii are close.
    noise : float, default=0.1
        Standard deviation of the distance of a point from its ring. Larger values blur the rings.
    random_state : int, RandomState, Generator or None, default=None
        Determines random number generation. Pass an int for reproducible data.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.
    y : ndarray of shape (n_samples,), int
        Index of the ring of every point.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If there are fewer points than rings, if a radius is not above 0, or if `noise` is negative.

    References
    ----------
    .. [1] T. Lange, J. M. Buhmann. Fusion of similarity data in clustering. NIPS 2005, Figure 1.

    Examples
    --------
    >>> from nmfcluster.datasets import make_nested_rings
    >>> X, y = make_nested_rings(100, noise=0, random_state=0)
    >>> (X[y == 1] ** 2).sum(axis=1).round(6).max()
    np.float64(12.25)
    """
    rng = make_rng(random_state)
    if not isinstance(radii, tuple | list | np.ndarray) or not len(radii):
        raise ValueError(
            f"radii must be a tuple of at least one number, got {format_value(radii)}."
        )
    for radius in radii:
        check_number(radius, "radii", closed="neither")
    check_number(noise, "noise")
    n_samples = check_count(n_samples, "n_samples", len(radii))
    y = _equal_labels(n_samples, len(radii))
    angles = rng.uniform(0, 2 * np.pi, len(y))
    distances = np.asarray(radii, dtype=float)[y] + noise * rng.normal(size=len(y))
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    return distances[:, None] * directions, y


def make_partitions(
    n_samples: int | tuple[int, ...] = 300,
    *,
    n_clusters: int = 3,
    n_partitions: int = 20,
    noise: float = 0.2,
    missing: float = 0.0,
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Make noisy copies of one partition, and renumber the clusters of each copy at random.

    Parameters
    ----------
    n_samples : int or tuple of int, default=300
        Number of samples, which are divided into clusters of equal size, or a tuple with the size
        of each cluster.
    n_clusters : int, default=3
        Number of clusters; ignored if `n_samples` is a tuple.
    n_partitions : int, default=20
        Number of partitions, which are all copies of `y`.
    noise : float, default=0.2
        Share of the labels of each copy that are replaced by a random cluster. The larger it is,
        the less the copies agree.
    missing : float, default=0.0
        Share of the labels that are then replaced by -2, which marks a sample that the partition
        does not contain. Every sample keeps at least one label.
    random_state : int, RandomState, Generator or None, default=None
        Determines random number generation. Pass an int for reproducible data.

    Returns
    -------
    partitions : ndarray of shape (n_samples, n_partitions), int
        The copies, one in each column.
    y : ndarray of shape (n_samples,), int
        The partition that was copied.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a share is not in [0, 1], or a number is below 1.

    Examples
    --------
    >>> from nmfcluster.datasets import make_partitions
    >>> partitions, y = make_partitions((90, 8, 2), n_partitions=5, noise=0, random_state=0)
    >>> partitions.shape, int(y.sum())
    ((100, 5), 12)
    """
    rng = make_rng(random_state)
    check_number(noise, "noise", 1, closed="both")
    check_number(missing, "missing", 1, closed="both")
    if isinstance(n_samples, tuple | list | np.ndarray):
        sizes = [check_count(size, "n_samples") for size in n_samples]
        check_count(sum(sizes), "the sum of n_samples")
        n_clusters = len(sizes)
        y = np.repeat(np.arange(n_clusters), sizes)
    else:
        n_clusters = check_count(n_clusters, "n_clusters")
        n_samples = check_count(n_samples, "n_samples", n_clusters)
        y = _equal_labels(n_samples, n_clusters)
    n_partitions = check_count(n_partitions, "n_partitions")
    partitions = np.empty((len(y), n_partitions), dtype=np.int64)
    for t in range(n_partitions):
        is_replaced = rng.uniform(size=len(y)) < noise
        labels = np.where(is_replaced, rng.randint(n_clusters, size=len(y)), y)
        partitions[:, t] = rng.permutation(n_clusters)[labels]
    # remove labels, but keep at least one of every sample
    is_missing = rng.uniform(size=partitions.shape) < missing
    is_missing[np.arange(len(y)), rng.randint(n_partitions, size=len(y))] = False
    partitions[is_missing] = NOT_SEEN
    return partitions, y


def make_biclusters(
    shape: tuple[int, int] = (21, 35),
    n_clusters: int = 4,
    *,
    overlap: float = 0.25,
    twins: bool = True,
    noise: float = 0.0,
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Make nonnegative data with overlapping biclusters, after section 6 of Badea.

    A bicluster is a set of samples and a set of features. Where biclusters overlap, they add up:

    .. math:: X = W H + E, \quad W, H \ge 0 .

    Each bicluster has a column of W and a row of H, which are 0 outside of it.

    Parameters
    ----------
    shape : tuple of int, default=(21, 35)
        Number of samples and of features. The defaults are those of Figure 2 in the paper.
    n_clusters : int, default=4
        Number of biclusters.
    overlap : float, default=0.25
        Share of the samples, and of the features, of a bicluster that also belong to the next one,
        in [0, 0.5). Biclusters with a larger overlap are harder to separate. The share is rounded
        to whole samples and features.
    twins : bool, default=True
        Whether the first two biclusters have almost the same features. They then share nine tenths
        of their features, or all but one, with the same coefficients. They share no samples, and
        the second bicluster is half as intense. A method that only uses features confuses them.
    noise : float, default=0.0
        Standard deviation of the normal noise that is added to a feature, as a multiple of the
        standard deviation of the feature without noise. Entries below 0 are then set to 0.
    random_state : int, RandomState, Generator or None, default=None
        Determines random number generation. Pass an int for reproducible data. W and H do not
        depend on `noise`.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The nonnegative data.
    W : ndarray of shape (n_samples, n_clusters)
        Intensity of each bicluster in each sample. It is the absolute value of a standard normal
        number, halved for the second twin, for samples of the bicluster, and 0 for others.
    H : ndarray of shape (n_clusters, n_features)
        Coefficient of each feature in each bicluster. It is uniform in [0.5, 1] for features of the
        bicluster, and 0 for others.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If `shape` is too small for all biclusters to have samples and features of their own;
        if `n_clusters` is below 1, or below 2 with `twins`; if `overlap` is not in [0, 0.5); if
        `noise` is negative or not finite.

    See Also
    --------
    sklearn.metrics.consensus_score : Compare the biclusters that a method found with the true ones.
    sklearn.datasets.make_biclusters : Make constant blocks that do not overlap.

    Notes
    -----
    Every bicluster has a sample and a feature that no other bicluster has. Without noise, the
    submatrix of X of these samples and features is therefore diagonal, and each nonnegative factor
    can explain only one of its entries. W H is then the only factorization of X with `n_clusters`
    nonnegative factors, up to their scale and order. A single run of NMF often misses it, most of
    all with `twins`.

    Samples and features are in the order of the biclusters, so that biclusters are blocks in a
    heatmap of X. The second twin is an exception: it has the last samples. The paper [1]_ does not
    state sizes, overlaps and coefficients, so those here are our choice.

    References
    ----------
    .. [1] L. Badea. Clustering and metaclustering with nonnegative matrix decompositions.
       ECML 2005.

    Examples
    --------
    >>> from nmfcluster.datasets import make_biclusters
    >>> X, W, H = make_biclusters(random_state=0)
    >>> X.shape, W.shape, H.shape
    ((21, 35), (21, 4), (4, 35))
    >>> (H > 0).sum(axis=1), (H[0] * H[1] > 0).sum()
    (array([13, 13, 14, 14]), np.int64(12))
    """
    rng = make_rng(random_state)
    n_clusters = check_count(n_clusters, "n_clusters")
    if twins and n_clusters < 2:
        raise ValueError(
            f"n_clusters must be at least 2 with twins=True, got {n_clusters}."
        )
    check_number(overlap, "overlap", 0.5)
    check_number(noise, "noise")
    rows, columns = _make_blocks(shape, n_clusters, float(overlap), bool(twins))
    W = np.abs(rng.normal(size=rows.shape)).T * rows.T
    coefficients = rng.uniform(0.5, 1, size=columns.shape)
    if twins:
        coefficients[1] = coefficients[0]
        W[:, 1] *= 0.5  # the paper does not print how much less intense it is
    H = coefficients * columns
    X = W @ H
    if noise:
        X = np.maximum(X + noise * X.std(axis=0) * rng.normal(size=X.shape), 0)
    return X, W, H


def _equal_labels(n_samples, n_clusters):
    """Return sorted labels of clusters with sizes that differ by at most 1, larger ones first."""
    return np.sort(np.arange(n_samples) % n_clusters)


def _make_blocks(shape, n_clusters, overlap, twins):
    """Return booleans of samples and of features in biclusters, (n_clusters, n) each."""
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise TypeError(
            f"shape must be (n_samples, n_features), got {format_value(shape)}."
        )
    n_samples = check_count(shape[0], "shape[0]")
    n_features = check_count(shape[1], "shape[1]")
    # twins share no sample; if there are only two biclusters, they would be neighbours and overlap
    row_overlap = 0.0 if twins and n_clusters == 2 else overlap
    rows = _make_intervals(n_samples, n_clusters, row_overlap)
    columns = _make_intervals(n_features, n_clusters - twins, overlap)
    twins_share_features = True
    if twins:
        # the second twin has the last samples, which are far from those of the first
        rows = rows[[0, n_clusters - 1, *range(1, n_clusters - 1)]]
        # each twin has the features of the first block, without some that no other block has;
        # the paper does not print how many are left out
        alone = np.flatnonzero(columns[0] & ~columns[1:].any(axis=0))
        n_apart = max(1, round(0.1 * int(columns[0].sum())))
        columns = np.concatenate([columns[:1], columns])
        columns[0, alone[-n_apart:]] = False
        columns[1, alone[:n_apart]] = False
        twins_share_features = (columns[0] & columns[1]).any()
    for members, is_shared, things in (
        (rows, True, "samples"),
        (columns, twins_share_features, "features"),
    ):
        own = members & (members.sum(axis=0) == 1)
        if not (is_shared and own.any(axis=1).all()):
            raise ValueError(
                f"shape must have enough {things} for n_clusters={n_clusters} biclusters with some "
                f"of their own, with overlap={overlap} and twins={twins}, got "
                f"{(n_samples, n_features)}."
            )
    return rows, columns


def _make_intervals(n, n_intervals, overlap):
    """Cover 0 to n - 1 by intervals of one length, as rows of booleans.

    Neighbouring intervals overlap by a share of their length.
    """
    length = n / (n_intervals - (n_intervals - 1) * overlap)
    starts = length * (1 - overlap) * np.arange(n_intervals)
    position = np.arange(n)
    first = np.rint(starts)[:, None]
    end = np.rint(starts + length)[:, None]
    return (first <= position) & (position < end)


def make_programs(
    n_samples: int = 400,
    n_features: int = 1000,
    n_programs: int = 8,
    *,
    depth: float = 350.0,
    housekeeping: float = 0.3,
    dispersion: float = 0.1,
    doublets: float = 0.0,
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    r"""Make counts of genes in cells that are mixtures of gene expression programs.

    The expected counts are the product of two factors W and H, and counts vary around them as in
    data of single cells,

    .. math:: x_{ij} \sim \mathrm{Poisson}(\gamma_{ij} (WH)_{ij}) , \qquad
              \gamma_{ij} \sim \mathrm{Gamma}(1 / \phi, \phi) ,

    as in Splatter [1]_. A cell is a weighted sum of programs, as in the simulations of cNMF [2]_.
    The mean of each gene is drawn from a gamma distribution. A program raises a random tenth of the
    genes, by a factor around 2.7, and has low means for other genes. Housekeeping genes, which
    every cell needs to live, are common to all programs.

    Parameters
    ----------
    n_samples : int, default=400
        Number of cells.
    n_features : int, default=1000
        Number of genes.
    n_programs : int, default=8
        Number of programs.
    depth : float, default=350.0
        Median total count of a cell. A larger depth makes counts less noisy. The logarithm of the
        total has a standard deviation of 0.3.
    housekeeping : float, default=0.3
        Share of the counts of every program that falls on genes common to all programs, in [0, 1).
        A larger share makes programs more similar.
    dispersion : float, default=0.1
        The dispersion :math:`\phi`. A larger dispersion makes counts noisier. The variance of a
        count with mean m is :math:`m + \phi m^2`. With 0, counts have a Poisson distribution.
    doublets : float, default=0.0
        Share of the cells that are doublets, that is, two cells that are counted as one.
    random_state : int, RandomState, Generator or None, default=None
        Determines random number generation. Pass an int for reproducible data.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), int
        The counts.
    W : ndarray of shape (n_samples, n_programs)
        Expected counts of every program in a cell.
    H : ndarray of shape (n_programs, n_features)
        The programs, whose rows sum to 1.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a number is out of its range.

    See Also
    --------
    make_signatures : Make counts of mutations.

    References
    ----------
    .. [1] L. Zappia, B. Phipson, A. Oshlack. Splatter: simulation of single-cell RNA sequencing
       data. Genome Biology 18, 2017.
    .. [2] D. Kotliar et al. Identifying gene expression programs of cell-type identity and
       cellular activity with single-cell RNA-Seq. eLife 8, 2019.

    Examples
    --------
    >>> from nmfcluster.datasets import make_programs
    >>> X, W, H = make_programs(random_state=0)
    >>> X.shape, W.shape, H.shape
    ((400, 1000), (400, 8), (8, 1000))
    """
    rng = make_rng(random_state)
    n_samples = check_count(n_samples, "n_samples")
    n_features = check_count(n_features, "n_features")
    n_programs = check_count(n_programs, "n_programs")
    check_number(depth, "depth", closed="neither")
    # with 1, all programs would be equal
    check_number(housekeeping, "housekeeping", 1)
    check_number(dispersion, "dispersion")
    check_number(doublets, "doublets", 1, closed="both")
    # means of genes, from the gamma distribution that Zappia et al. (2017) found
    base = rng.gamma(0.6, size=n_features)
    # genes common to all programs, and those that each program raises: at least one
    common = rng.uniform(size=n_features) < _RAISED
    common[rng.randint(n_features)] = True
    raised = rng.uniform(size=(n_programs, n_features)) < _RAISED
    raised[np.arange(n_programs), rng.randint(n_features, size=n_programs)] = True
    fold = np.exp(rng.normal(1.0, 0.6, size=raised.shape))
    own = base * np.where(raised, fold, 0.05)  # a program has little of other genes
    own /= own.sum(axis=1, keepdims=True)
    shared = base * common
    H = (1 - housekeeping) * own + housekeeping * (shared / shared.sum())
    # usages: with this concentration, most cells use two or three programs
    W = rng.dirichlet(np.full(n_programs, 0.3), size=n_samples)
    # doublets add the usages of another cell
    other = rng.permutation(n_samples)
    is_doublet = rng.uniform(size=n_samples) < doublets
    W = np.where(is_doublet[:, None], W + W[other], W)
    W *= depth * np.exp(rng.normal(0, 0.3, size=(n_samples, 1)))
    return _draw_counts(W, H, dispersion, rng), W, H


def make_signatures(
    n_samples: int = 100,
    n_signatures: int = 10,
    n_channels: int = 96,
    *,
    burden: float = 2000.0,
    noise: float = 0.0,
    random_state: Seed = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make counts of mutations in genomes that are mixtures of mutational signatures.

    A signature is the distribution of the mutations of one cause over channels, which are the kinds
    of mutations. As in real data [1]_, signatures are hard to find. Some have most of their
    mutations in a few channels, and others are flat and similar to each other. Each sample has only
    a few signatures, in very different amounts.

    Parameters
    ----------
    n_samples : int, default=100
        Number of genomes.
    n_signatures : int, default=10
        Number of signatures.
    n_channels : int, default=96
        Number of kinds of mutations. The default, 96, is the number of single-base substitutions if
        the bases on both sides are distinguished.
    burden : float, default=2000.0
        Scale of the number of mutations in a sample. A larger burden makes counts less noisy. A
        signature has a median of `burden` / 4 mutations in a sample that has it, and the standard
        deviation of their logarithm is 0.8. A sample has four to five signatures on average.
    noise : float, default=0.0
        Standard deviation of the normal noise that is added to every count, as a share of the
        count. Counts are then rounded, and set to 0 if they are negative.
    random_state : int, RandomState, Generator or None, default=None
        Determines random number generation. Pass an int for reproducible data. W and H do not
        depend on `noise`.

    Returns
    -------
    X : ndarray of shape (n_samples, n_channels), int
        The counts.
    W : ndarray of shape (n_samples, n_signatures)
        Expected number of mutations of every signature in a sample; 0 for most.
    H : ndarray of shape (n_signatures, n_channels)
        The signatures, whose rows sum to 1, with the most peaked one first.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a number is out of its range.

    See Also
    --------
    make_programs : Make counts of genes in cells.

    References
    ----------
    .. [1] S. M. A. Islam et al. Uncovering novel mutational signatures by de novo extraction with
       SigProfilerExtractor. Cell Genomics 2, 2022.

    Examples
    --------
    >>> from nmfcluster.datasets import make_signatures
    >>> X, W, H = make_signatures(n_signatures=5, random_state=0)
    >>> X.shape, W.shape, H.shape
    ((100, 96), (100, 5), (5, 96))
    """
    rng = make_rng(random_state)
    n_samples = check_count(n_samples, "n_samples")
    n_channels = check_count(n_channels, "n_channels")
    n_signatures = check_count(n_signatures, "n_signatures")
    check_number(burden, "burden", closed="neither")
    check_number(noise, "noise")
    # draw signatures from peaked to flat; the flattest one takes a share of 0.3 of a common
    # profile, and others take less, so that flat ones are similar
    concentrations = np.geomspace(0.03, _FLAT, n_signatures)
    H = np.array([_draw_dirichlet(c, n_channels, rng) for c in concentrations])
    common = _draw_dirichlet(_FLAT, n_channels, rng)
    H += 0.3 * (concentrations / _FLAT)[:, None] * (common - H)
    # each sample has at least one signature, in amounts with a log-normal distribution
    share = min(1, _ACTIVE / n_signatures)
    active = rng.uniform(size=(n_samples, n_signatures)) < share
    active[np.arange(n_samples), rng.randint(n_signatures, size=n_samples)] = True
    amounts = np.exp(rng.normal(np.log(burden / _ACTIVE), 0.8, size=active.shape))
    W = np.where(active, amounts, 0)
    X = _draw_counts(W, H, dispersion=0, rng=rng)
    if noise:
        noisy = X * (1 + noise * rng.normal(size=X.shape))
        X = np.maximum(np.rint(noisy), 0).astype(X.dtype)
    return X, W, H


def _draw_dirichlet(concentration, size, rng):
    """Draw shares from a symmetric Dirichlet distribution.

    With a small concentration, all gamma numbers may underflow to 0. The smallest positive normal
    number is therefore added to one of them.
    """
    shares = rng.gamma(concentration, size=size)
    shares[rng.randint(size)] += np.finfo(float).tiny
    return shares / shares.sum()


def _draw_counts(W, H, dispersion, rng):
    """Draw Poisson counts with means W H, or negative binomial ones if dispersed."""
    means = W @ H
    if dispersion:
        means *= rng.gamma(1 / dispersion, dispersion, size=means.shape)
    return rng.poisson(means)
