"""Counts that programs, or mutational signatures, add up to."""

import numpy as np

from nmfcluster._utils.validation import Seed, check_count, check_number, make_rng

_RAISED = 0.1  # share of the genes that a program raises, and of those that all have
_FLAT = 2.0  # concentration over channels of signatures as flat as those of ageing
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
        Median number of counts of a cell; its log varies by .3.
    housekeeping : float, default=0.3
        Share of the counts of every program that is in genes common to all, in [0, 1).
    dispersion : float, default=0.1
        :math:`\phi`, by which counts vary more than Poisson numbers; 0: not at all.
    doublets : float, default=0.0
        Share of the cells that are two.
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
    check_number(
        housekeeping, "housekeeping", 0, 1
    )  # with 1 all programs would be equal
    check_number(dispersion, "dispersion", 0)
    check_number(doublets, "doublets", 0, 1, closed="both")
    # means of genes, of the shape that Zappia et al. (2017) found; common ones, and raised ones
    base = rng.gamma(0.6, size=n_features)
    common = rng.uniform(size=n_features) < _RAISED
    common[rng.randint(n_features)] = True
    raised = rng.uniform(size=(n_programs, n_features)) < _RAISED
    raised[np.arange(n_programs), rng.randint(n_features, size=n_programs)] = True
    fold = np.exp(rng.normal(1.0, 0.6, size=raised.shape))
    H = _shares(base * np.where(raised, fold, 0.05))  # a program has little of the rest
    H = (1 - housekeeping) * H + housekeeping * _shares((base * common)[None])
    # usages: with this concentration most cells use two or three programs
    W = rng.dirichlet(np.full(n_programs, 0.3), size=n_samples)
    other = rng.permutation(n_samples)
    double = rng.uniform(size=n_samples) < doublets
    W = np.where(double[:, None], W + W[other], W)
    W *= depth * np.exp(rng.normal(0, 0.3, size=(n_samples, 1)))
    return _counts(W, H, dispersion, rng), W, H


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
        have between four and five of them; the log of that number varies by .8.
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
    # signatures from as peaked as those of a single cause to flat ones; flat ones are like each
    # other: they have .3 of one profile
    concentrations = np.geomspace(0.03, _FLAT, n_signatures)
    H = np.array([_dirichlet(c, n_channels, rng) for c in concentrations])
    common = _dirichlet(_FLAT, n_channels, rng)
    H += 0.3 * (concentrations / _FLAT)[:, None] * (common - H)
    # a few signatures a sample, in amounts whose log varies
    active = rng.uniform(size=(n_samples, n_signatures)) < min(
        1, _ACTIVE / n_signatures
    )
    active[np.arange(n_samples), rng.randint(n_signatures, size=n_samples)] = True
    W = np.where(
        active, np.exp(rng.normal(np.log(burden / _ACTIVE), 0.8, size=active.shape)), 0
    )
    X = _counts(W, H, 0, rng)
    if noise:
        X = np.maximum(np.rint(X * (1 + noise * rng.normal(size=X.shape))), 0).astype(
            X.dtype
        )
    return X, W, H


def _dirichlet(
    concentration: float, size: int, rng: np.random.RandomState
) -> np.ndarray:
    """Draw shares; of gamma numbers, which may all be 0 where they are drawn as they are."""
    shares = rng.gamma(concentration, size=size)
    shares[rng.randint(size)] += np.finfo(float).tiny
    return shares / shares.sum()


def _shares(H: np.ndarray) -> np.ndarray:
    return H / H.sum(axis=1, keepdims=True)


def _counts(
    W: np.ndarray, H: np.ndarray, dispersion: float, rng: np.random.RandomState
) -> np.ndarray:
    means = W @ H
    if dispersion:
        means *= rng.gamma(1 / dispersion, dispersion, size=means.shape)
    return rng.poisson(means)
