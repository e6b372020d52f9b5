"""Clustering under pairwise constraints (Li, Ding and Jordan, 2007; Chen et al., 2007)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np

import nmfcluster.ssnmf.constrained as constrained
import nmfcluster.ssnmf.rows as fitted
from nmfcluster._base import (
    NMFClusterer,
    fitting,
    number_by_size,
    read_features,
    read_samples,
)
from nmfcluster._compat import SHARE, Interval, StrOptions, fit_context
from nmfcluster._optim.multiplicative import multiplicative_gsg
from nmfcluster._optim.symmetric import Factorization, bregman_nmf, factorize
from nmfcluster._utils.linalg import exact_rows
from nmfcluster._utils.progress import stage
from nmfcluster._utils.validation import counted, row_names
from nmfcluster.affinity import MAKING, NAMES
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.ssnmf.assignment import settled

#: samples up to which all starts are run on all of them, where the similarity is no sparse graph
_COARSE = 3_000


class SSNMFClusterer(NMFClusterer):
    r"""Clustering under must-link and cannot-link constraints by symmetric NMF.

    A similarity W of the samples is raised where a pair must be together and lowered where it
    must not,

    .. math:: \tilde A = W + \alpha u A - \beta u B ,

    with the pairs in A and B, and factorized: :math:`\min_{H \ge 0} \|\tilde A - HH'\|_F^2`, eq. 27
    of [1]_, or :math:`\min_{G, S \ge 0} \|\tilde A - GSG'\|_F^2`, eq. 3 of [2]_ with the signs
    of a similarity. By default must-links of weight 1 or more are *hard*: samples that they join
    share one row of the factor (eq. 34 of [1]_), so that they cannot be violated. Those of less,
    and all cannot-links, are weighed.

    Read more in the :ref:`User Guide <ssnmf>`.

    Parameters
    ----------
    n_clusters : int
        Number of clusters.
    alpha : float, default=0.25
        Weight of must-link pairs that are soft; hard ones have none. It counts in u, the
        0.999-quantile of the nonzero entries of W off its diagonal (of 100,000 drawn entries where
        W is not sparse and has more).
    beta : float, default=3.0
        Weight of cannot-link pairs, in u.
    hard_must_link : bool or "auto", default="auto"
        Whether samples joined by must-links, directly or by a chain, are fitted as one. "auto": by
        those that are hard, see `PairwiseConstraints`: of weight 1 and more, unless others are
        infinite; but by none if `contradictions` is "warn" or "ignore": pairs may then be wrong,
        and those that the fit violates are suspicious. True: by all; False: by none.
    propagation : "auto", float or None, default="auto"
        How far pairs spread to samples near theirs, in (0, 1); None: not at all. W is raised where
        samples are near pairs that must be together, and not near pairs that cannot, by the
        exhaustive constraint propagation of [3]_, and normalised unless `normalize` is False.
        "auto": 0.7 for the "nearest_neighbors" and "landmarks" affinities where there are at least
        as many must-links as clusters, and None otherwise.
        W has to be nowhere negative; of more than 3,000 samples, a sparse graph or by way of
        landmarks. Cannot-links alone never spread: without must-links this changes nothing.
    contradictions : {"raise", "warn", "ignore"}, default="raise"
        What to do where constraints cannot all be satisfied: a cannot-link between samples that
        must-links join, or cannot-links that need more clusters. "warn" and "ignore" allow for
        pairs that are wrong, see `hard_must_link`; with True, must-links win.
    affinity : str or callable, default="auto"
        How W is made of `X`: "nearest_neighbors", a sparse graph; "landmarks", by way of up to
        2,000 points, never formed, in O(n); "auto": the former for up to 3,000 dense or 10,000
        sparse rows that differ, the latter for more; "linear" and "cosine", never formed; "rbf", a
        dense array; "precomputed": `X` is W, symmetric, dense or sparse, of any sign; or a function
        of two sets of samples, in whatever order. See `nmfcluster.affinity.make_affinity`.
    gamma : float, default=None
        Of the "rbf" affinity; 1 over the median squared distance of two samples by default.
    n_neighbors : int, default=None
        Of the "nearest_neighbors" affinity, 10 by default, and of fewer than 14 different rows a
        cluster three quarters of their number, but at least 3; of "landmarks", 5.
    normalize : bool or "auto", default="auto"
        Whether W is replaced by :math:`D^{-1/2} W D^{-1/2}`, D its row sums: the objective of
        normalised cut instead of that of kernel k-means, which splits large clusters and merges
        small ones. "auto": for "nearest_neighbors", and where W is nowhere negative and clusters
        have 14 rows or more, on average; rows of "landmarks" sum to 1 as they are.
    factorization : {"bi", "tri"}, default="bi"
        "bi" is HH', by Bregman proximal gradient steps; "tri" is GSG' with any S >= 0, by the rules
        of [2]_, corrected, in more time. Neither raises the loss. A diagonal S would have the
        solutions of "bi".
    n_init : int, default=5
        Number of starts; the solution with the smallest loss is kept. The first is computed from
        leading eigenvectors, the others are random, and given up where they will hardly get below
        the best so far. Of more than 3,000 samples the first is run alone for "landmarks", and for
        other affinities that are no sparse graph all are run on a random 3,000, up to half of them
        from constrained samples: the best is extended to all samples and improved on all, until
        ten updates lower its loss by less than 1e-5 of that of H = 0.
    max_iter : int, default=500
        Largest number of updates of a start.
    tol : float, default=1e-6
        A start has converged when ten updates lower its loss by less than `tol` times the loss of
        H = 0. A negative value runs all updates.
    random_state : int, RandomState, Generator or None, default=None
        Determines the random starts. The result depends on it alone, not on `n_jobs`, the number of
        threads or the order of the samples.
    n_jobs : int, default=None
        Number of jobs that look for neighbours, of starts run at a time, and of threads that share
        the rows of a start that runs alone on more than 32,768 of them.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,), int
        Cluster of every sample. Clusters are numbered by decreasing size.
    membership_ : ndarray of shape (n_samples, n_clusters), float
        Rows of H, or of :math:`G \,\mathrm{diag}(S)^{1/2}`, scaled to sum to 1. A sample whose
        penalties outweigh its similarities has a row of zeros there, and gets shares of
        :math:`\tilde A H` instead: it goes where the penalties are smallest. If it violates pairs
        there it goes where it violates the fewest, if need be to a cluster of its own, with a
        column of zeros; the others are then fitted without it.
    core_ : ndarray of shape (n_clusters, n_clusters)
        S, where G has unit columns: weights of the clusters on its diagonal, and with
        ``factorization="tri"`` how similar they are to each other off it.
    constraints_ : PairwiseConstraints
        The constraints, as they were understood.
    satisfaction_ : float
        Share of the constraints that `labels_` satisfy; NaN without constraints.
    violated_must_link_ : ndarray of shape (n_violated, 2), int
        Must-link pairs that are not together.
    violated_cannot_link_ : ndarray of shape (n_violated, 2), int
        Cannot-link pairs that are together.
    must_link_groups_ : ndarray of shape (n_samples,), int
        Group of every sample: samples that hard must-links join, directly or by a chain.
    affinity_ : str
        What W was made by; "callable" where `affinity` is one.
    propagation_ : float or None
        How far pairs spread; None where they did not.
    weight_unit_ : float
        The unit u of `alpha` and `beta`.
    loss_ : float
        :math:`\|\tilde A - HH'\|^2`, or :math:`\|\tilde A - GSG'\|^2`, of the kept factors. Its
        constant :math:`\|\tilde A\|^2` is estimated, to a few per cent, for "linear" and "cosine"
        with more than 2,000 samples and features.
    loss_curve_ : ndarray of shape (n_iter_ + 1,)
        Loss before the first and after every update of the kept run.
    loss_curves_ : list of ndarray
        Loss curves of all starts, the kept one first; those of starts that were given up are
        short, those of starts on a subset of the samples are scaled to all of them.
    n_iter_ : int
        Number of updates of the kept run.
    n_features_in_ : int
        Number of columns of `X`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns of `X`, if they are all strings.

    See Also
    --------
    nmfcluster.constraints.PairwiseConstraints : Constraints that cross-validation can split.
    nmfcluster.model_selection.ConstraintScorer : Scores models by constraints held out.

    Notes
    -----
    `transform` and `predict` fit a row h >= 0 to the similarities w of a sample to the training
    samples, :math:`\min_h \|w - Hh\|`, with GS for H in a tri-factorization: the other factor is
    kept. No constraint holds for new
    samples, and training samples are extended like new ones.

    An update costs O(nnz k + n k^2), with nnz the entries of `X` for the "linear" and "cosine"
    affinities, and those of W otherwise.

    References
    ----------
    .. [1] T. Li, C. Ding, M. I. Jordan. Solving consensus and semi-supervised clustering
       problems using nonnegative matrix factorization. ICDM 2007.
    .. [2] Y. Chen, M. Rege, M. Dong, J. Hua. Incorporating user provided constraints into
       document clustering. ICDM 2007.
    .. [3] Z. Lu, H. H. S. Ip. Constrained spectral clustering via exhaustive and efficient
       constraint propagation. ECCV 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from nmfcluster import PairwiseConstraints, SSNMFClusterer
    >>> X, y = load_iris(return_X_y=True)
    >>> pairs = PairwiseConstraints.from_labels(y, n_pairs=100, random_state=0)
    >>> model = SSNMFClusterer(n_clusters=3, random_state=0).fit(X, constraints=pairs)
    >>> model.satisfaction_, model.violated_cannot_link_.tolist()
    (1.0, [])

    Two pairs of samples, by hand:

    >>> model.fit(X, must_link=[(70, 133)], cannot_link=[(0, 50)]).labels_[[70, 133]]
    array([0, 0])
    """

    # constraints are split with the samples, and wanted wherever a search hands them out
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"constraints": True}

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NMFClusterer._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "hard_must_link": ["boolean", StrOptions({"auto"})],
        "propagation": [StrOptions({"auto"}), SHARE, None],
        "contradictions": [StrOptions({"raise", "warn", "ignore"})],
        "affinity": [StrOptions(set(NAMES)), callable],
        **{name: MAKING[name] for name in ("gamma", "n_neighbors", "normalize")},
        "factorization": [StrOptions({"bi", "tri"})],
    }

    constraints_: PairwiseConstraints
    must_link_groups_: np.ndarray
    satisfaction_: float
    violated_must_link_: np.ndarray
    violated_cannot_link_: np.ndarray

    def __init__(
        self,
        n_clusters: int,
        *,
        alpha: float = 0.25,
        beta: float = 3.0,
        hard_must_link: bool | str = "auto",
        propagation: str | float | None = "auto",
        contradictions: str = "raise",
        affinity: str | Callable[[Any, Any], Any] = "auto",
        gamma: float | None = None,
        n_neighbors: int | None = None,
        normalize: bool | str = "auto",
        factorization: str = "bi",
        n_init: int = 5,
        max_iter: int = 500,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        super().__init__(n_clusters, n_init, max_iter, tol, random_state, n_jobs)
        self.alpha = alpha
        self.beta = beta
        self.hard_must_link = hard_must_link
        self.propagation = propagation
        self.contradictions = contradictions
        self.affinity = affinity
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.normalize = normalize
        self.factorization = factorization

    @fit_context(prefer_skip_nested_validation=False)
    def fit(
        self,
        X: Any = None,
        y: Any = None,
        *,
        constraints: PairwiseConstraints | None = None,
        must_link: Any = None,
        cannot_link: Any = None,
    ) -> SSNMFClusterer:
        """Cluster the samples under constraints.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Features, or the similarity with ``affinity="precomputed"``.
        y : None
            Ignored, whatever it is, so that true classes cannot leak into the fit.
        constraints : PairwiseConstraints, default=None
            The constraints, in the container that cross-validation splits with the samples.
        must_link : array-like of shape (n_pairs, 2) or (n_pairs, 3), iterable of pairs, or sparse \
                matrix of shape (n_samples, n_samples), default=None
            Pairs of samples that belong together, instead of `constraints`; a third column, or
            the entries of the matrix, are weights: the cost of violating the pair, below 1 for
            those that are believed and not known.
        cannot_link : as must_link, default=None
            Pairs of samples that do not belong together.

        Returns
        -------
        SSNMFClusterer
            The fitted estimator.

        Raises
        ------
        ValueError
            If `X`, the constraints or a parameter is not as described, or if constraints
            contradict each other and `contradictions` is "raise".
        TypeError
            If `constraints` is no `PairwiseConstraints`.
        """
        with fitting(self) as rng:
            X, names = read_samples(self, X, signed=True), row_names(X)
            self._check_n_clusters(X.shape[0])
            pairs = fitted.read_constraints(
                names, X, y, constraints, must_link, cannot_link
            )
            feasible = fitted.check_constraints(
                pairs, self.n_clusters, self.contradictions
            )
            rows = fitted.rows_to_fit(self, X, pairs)
            constrained.warn_of_alpha(self, pairs)
            affinity = fitted.affinity_of(self, X, rows, rng)
            self.propagation_ = constrained.width_of(self, affinity, rows.pairs)
            spread = constrained.spread(self, affinity, rows.pairs, rng)
            with stage(f"similarities under {counted(pairs.n_pairs, 'constraint')}"):
                problem = constrained.constrain(self, spread, rows.pairs)
            constrained.warn_of_parts(problem, self.n_clusters)
            tri, coarse = self.factorization == "tri", max(_COARSE, self.n_clusters)
            config = self._solver_config(multiplicative_gsg if tri else bregman_nmf)

            def of(some: constrained.ConstrainedProblem, k: int) -> Factorization:
                return factorize(some, replace(config, n_clusters=k), rng, coarse)

            part = partial(constrained.part_of, self, spread, rows.pairs)
            best, P = settled(problem, rows.pairs, config.n_clusters, of, part)
            F, M = best.parts
            P = P[rows.row]
            P, labels, order = number_by_size(P, P.argmax(axis=1))
            self.affinity_, self.weight_unit_ = affinity.name, problem.unit
            FM = problem.expand(F)[:, order] @ M[np.ix_(order, order)]
            summed = FM if affinity.counts is None else FM * affinity.counts[:, None]
            self._products_, self._gram_ = affinity.onto(summed), FM.T @ summed
            # of similarities that are handed in, those to the samples, in the order of the fit
            self._columns_ = (
                rows.samples if affinity.name == "precomputed" else slice(None)
            )
            self._roots_ = np.sqrt(np.diagonal(M)[order])
            self.core_ = best.core[np.ix_(order, order)]
            cure = fitted.CURES.get(affinity.name, "")
            self.labels_ = labels
            self.membership_ = P
            self.loss_ = best.loss
            self.loss_curves_ = best.loss_curves
            self.loss_curve_ = self.loss_curves_[0]
            self.n_iter_ = best.best.n_iter
            self._warn_unless_converged(best, int(labels.max()) + 1, cure)
            fitted.keep_pairs(self, pairs, feasible)
            fitted.warn_of_sizes(self, affinity, rows)
        return self

    def _extend(self, X: Any) -> np.ndarray:
        X = read_features(self, X, reset=False)[:, self._columns_]
        return exact_rows(self._products_(X), self._gram_) * self._roots_

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, which depend on `affinity`."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse, tags.input_tags.pairwise = (
            True,
            self.affinity == "precomputed",
        )
        return tags
