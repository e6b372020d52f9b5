"""Counts that programs, or mutational signatures, add up to."""

import numpy as np

from nmfcluster._utils.validation import Seed, check_count, check_number, make_rng

# share of the genes that a program raises, and share of those common to all programs
_RAISED = 0.1
# Dirichlet concentration over channels of a signature as flat as that of ageing
_FLAT = 2.0
_ACTIVE = 4.0  # mean number of signatures of a sample


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
    r"""Make counts of cells by genes that are mixtures of gene expression programs.

    The means are those of a factorization, and counts vary around them as in single cells,

    .. math:: x_{ij} \sim \mathrm{Poisson}(\gamma_{ij} (WH)_{ij}) , \qquad
              \gamma_{ij} \sim \mathrm{Gamma}(1 / \phi, \phi) ,

    after Splatter [1]_, with programs that add up, as cNMF was tried on [2]_. The mean of a gene is
    drawn from a gamma distribution; a program multiplies a tenth of the genes, its own, by a factor
    around 2.7 and has little of the rest. Some genes belong to all programs, as those that keep
    every cell alive.

    Parameters
    ----------
    n_samples : int, default=400
        Number of cells.
    n_features : int, default=1000
        Number of genes.
    n_programs : int, default=8
    depth : float, default=350.0
        Median number of counts of a cell; the standard deviation of its log is 0.3.
    housekeeping : float, default=0.3
        Share of the counts of every program that is in genes common to all, in [0, 1).
    dispersion : float, default=0.1
        :math:`\phi`: the variance of a count with mean m is :math:`m + \phi m^2`. With 0, counts
        are Poisson numbers.
    doublets : float, default=0.0
        Share of the cells that are doublets: two cells counted as one.
    random_state : int, RandomState, Generator or None, default=None
        Determines the result.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), int
        The counts.
    W : ndarray of shape (n_samples, n_programs)
        Expected counts of every program in a cell.
    H : ndarray of shape (n_programs, n_features)
        The programs; rows sum to 1.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a number is out of its range.

    See Also
    --------
    make_signatures : Counts of mutations by their kinds.

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
    check_count(n_samples, "n_samples", 1)
    check_count(n_features, "n_features", 1)
    check_count(n_programs, "n_programs", 1)
    check_number(depth, "depth", 0, closed="neither")
    # with 1, all programs would be equal
    check_number(housekeeping, "housekeeping", 0, 1)
    check_number(dispersion, "dispersion", 0)
    check_number(doublets, "doublets", 0, 1, closed="both")
    # means of genes, from the gamma distribution that Zappia et al. (2017) found
    base = rng.gamma(0.6, size=n_features)
    # genes common to all programs, and those that each program raises: at least one
    common = rng.uniform(size=n_features) < _RAISED
    common[rng.randint(n_features)] = True
    raised = rng.uniform(size=(n_programs, n_features)) < _RAISED
    raised[np.arange(n_programs), rng.randint(n_features, size=n_programs)] = True
    fold = np.exp(rng.normal(1.0, 0.6, size=raised.shape))
    own = base * np.where(raised, fold, 0.05)  # a program has little of the rest
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
    """Make counts of mutations by their kinds that signatures of their causes add up to.

    They have what makes real ones hard to find [1]_: signatures from a few channels, as of a single
    cause, to flat ones, which are like each other; samples with few of them each, in very
    different amounts.

    Parameters
    ----------
    n_samples : int, default=100
        Number of genomes.
    n_signatures : int, default=10
    n_channels : int, default=96
        Number of kinds of mutations: substitutions with the bases on both sides.
    burden : float, default=2000.0
        Four times the median number of mutations of a signature in a sample that has it, as samples
        have between four and five of them; the standard deviation of its log is 0.8.
    noise : float, default=0.0
        Standard deviation of a normal number added to every count, as a share of it; counts are
        rounded and at least 0.
    random_state : int, RandomState, Generator or None, default=None
        Determines the result. The same one gives the same W and H for every `noise`.

    Returns
    -------
    X : ndarray of shape (n_samples, n_channels), int
        The counts.
    W : ndarray of shape (n_samples, n_signatures)
        Expected mutations of every signature in a sample, 0 for most.
    H : ndarray of shape (n_signatures, n_channels)
        The signatures, the most peaked first; rows sum to 1.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If a number is out of its range.

    See Also
    --------
    make_programs : Counts of cells by genes.

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
    check_count(n_samples, "n_samples", 1)
    check_count(n_channels, "n_channels", 1)
    check_count(n_signatures, "n_signatures", 1)
    check_number(burden, "burden", 0, closed="neither")
    check_number(noise, "noise", 0)
    # signatures from peaked ones, as of a single cause, to flat ones; the flattest take
    # 0.3 of one profile, so that flat ones are similar
    concentrations = np.geomspace(0.03, _FLAT, n_signatures)
    H = np.array([_draw_dirichlet(c, n_channels, rng) for c in concentrations])
    common = _draw_dirichlet(_FLAT, n_channels, rng)
    H += 0.3 * (concentrations / _FLAT)[:, None] * (common - H)
    # a few signatures in each sample, at least one, in amounts whose log varies
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


def _draw_dirichlet(
    concentration: float, size: int, rng: np.random.RandomState
) -> np.ndarray:
    """Draw shares from a symmetric Dirichlet distribution.

    With a small concentration all gamma numbers may be 0, so one of them gets the smallest
    normal number added.
    """
    shares = rng.gamma(concentration, size=size)
    shares[rng.randint(size)] += np.finfo(float).tiny
    return shares / shares.sum()


def _draw_counts(
    W: np.ndarray, H: np.ndarray, dispersion: float, rng: np.random.RandomState
) -> np.ndarray:
    """Draw Poisson counts around W H; with a dispersion, from a negative binomial."""
    means = W @ H
    if dispersion:
        means *= rng.gamma(1 / dispersion, dispersion, size=means.shape)
    return rng.poisson(means)
