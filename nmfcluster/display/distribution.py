"""Picture of how often partitions hold two samples together, by number of clusters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import nmfcluster.display.style as look
from nmfcluster.metrics.pairs import pair_consensus, share_between

_WANTED = look.Wanted(
    "partitions_",
    "an NMFConsensus or an NMFMetaCluster",
    "from_partitions takes several clusterings of others",
)
_AMBIGUOUS = (0.1, 0.9)  # shares of partitions between which a pair is ambiguous


@dataclass(kw_only=True, repr=False, eq=False)
class ConsensusCDFDisplay:
    """Picture of the distribution of the co-association, for several consensus clusterings.

    A curve tells for every share of partitions how many pairs of samples are together in no more
    of them. Partitions that agree hold a pair always or never: their curve is flat between 0 and 1
    [1]_. The legend has the proportion of ambiguous pairs, PAC: by how much a curve rises between
    .1 and .9, which the picture shades [2]_. By how much the area below a curve grows with the
    number of clusters, `deltas_`, tells when more clusters gain no more agreement.

    `from_estimator`, `from_estimators` and `from_partitions` compute the distributions and draw
    them; the constructor takes them.

    Parameters
    ----------
    distributions : mapping of name to ndarray of shape (n_pairs,)
        Co-associations of pairs of samples, in increasing order, see
        `nmfcluster.metrics.pair_consensus`. The order of the names is that of `deltas_`.

    Attributes
    ----------
    distributions : dict of ndarray
        As given.
    pac_ : dict of float
        Proportion of ambiguous pairs of every clustering.
    areas_ : dict of float
        Area below every curve: 1 less the mean co-association.
    deltas_ : dict of float
        Relative growth of the area from one clustering to the next; the area of the first.
    ax_ : matplotlib Axes
        Where it was drawn.
    figure_ : matplotlib Figure
        The figure of `ax_`.
    lines_ : list of matplotlib Line2D
        One a clustering.

    See Also
    --------
    nmfcluster.metrics.pac_score : The proportion of ambiguous pairs alone.
    ConsensusMatrixDisplay : Shows the co-association of one clustering.

    References
    ----------
    .. [1] S. Monti, P. Tamayo, J. Mesirov, T. Golub. Consensus clustering: a resampling-based
       method for class discovery and visualization of gene expression microarray data. Machine
       Learning 52, 2003.
    .. [2] Y. Senbabaoglu, G. Michailidis, J. Z. Li. Critical limitations of consensus clustering
       in class discovery. Scientific Reports 4, 6207, 2014.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from nmfcluster import NMFConsensus
    >>> from nmfcluster.display import ConsensusCDFDisplay
    >>> X, _ = make_blobs(120, centers=[(0, 0), (6, 0), (0, 6)], random_state=0)
    >>> options = {"max_samples": 0.8, "random_state": 0}
    >>> models = [NMFConsensus(k, base_n_clusters=k, **options).fit(X) for k in (2, 3, 4)]
    >>> display = ConsensusCDFDisplay.from_estimators(models)
    >>> min(display.pac_, key=display.pac_.get)
    '3 clusters'
    >>> display.figure_.savefig("distribution.png")  # doctest: +SKIP
    """

    distributions: Mapping[Any, np.ndarray]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, n_pairs: int = 100_000, ax: Any = None
    ) -> ConsensusCDFDisplay:
        """Show the distribution of one fitted estimator.

        Parameters
        ----------
        estimator : NMFConsensus or NMFMetaCluster
            A fitted one.
        n_pairs : int, default=100_000
            Largest number of pairs of samples, see `nmfcluster.metrics.pair_consensus`.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ConsensusCDFDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `estimator` is neither of them.
        ValueError
            If it was fitted to a similarity, and has no partitions.
        NotFittedError
            If `estimator` is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        return cls.from_estimators([estimator], n_pairs=n_pairs, ax=ax)

    @classmethod
    def from_estimators(
        cls, estimators: Iterable[Any], *, n_pairs: int = 100_000, ax: Any = None
    ) -> ConsensusCDFDisplay:
        """Show the distributions of fitted estimators.

        Parameters
        ----------
        estimators : iterable of NMFConsensus or NMFMetaCluster
            Fitted ones, with different numbers of clusters.
        n_pairs : int, default=100_000
            Largest number of pairs of samples, see `nmfcluster.metrics.pair_consensus`.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ConsensusCDFDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If an estimator is neither of them.
        ValueError
            If there is none, two have one number of clusters, or one was fitted to a similarity
            and has no partitions.
        NotFittedError
            If an estimator is not fitted.
        ImportError
            If matplotlib is not installed.
        """
        found = {}
        models = look.by_n_clusters(estimators, _WANTED)
        for name, model in models.items():
            if model.partitions_ is None:
                raise ValueError("estimators must have partitions, got one of a similarity.")
            weights = getattr(model, "weights_", None)  # an NMFMetaCluster has none
            found[name] = pair_consensus(model.partitions_, weights=weights, n_pairs=n_pairs)
        return cls(distributions=found).plot(ax)

    @classmethod
    def from_partitions(
        cls, partitions: Mapping[Any, Any], *, n_pairs: int = 100_000, ax: Any = None
    ) -> ConsensusCDFDisplay:
        """Show the distributions of several sets of partitions.

        Parameters
        ----------
        partitions : mapping of name to array-like of shape (n_samples, n_partitions)
            Label tables, or lists of label vectors, as `NMFConsensus.fit` takes them.
        n_pairs : int, default=100_000
            Largest number of pairs of samples, see `nmfcluster.metrics.pair_consensus`.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ConsensusCDFDisplay
            The picture, drawn.

        Raises
        ------
        TypeError
            If `partitions` is no mapping, or labels are neither integers nor strings.
        ValueError
            If there is none, or a table is not as described.
        ImportError
            If matplotlib is not installed.

        Examples
        --------
        >>> from nmfcluster.datasets import make_partitions
        >>> from nmfcluster.display import ConsensusCDFDisplay
        >>> tables = {noise: make_partitions(90, noise=noise)[0] for noise in (0.0, 0.5)}
        >>> ConsensusCDFDisplay.from_partitions(tables).pac_[0.0]
        0.0
        """
        if not isinstance(partitions, Mapping):
            raise TypeError(
                "partitions must be a mapping of names to label tables, got "
                f"{type(partitions).__name__}."
            )
        found = {name: pair_consensus(table, n_pairs=n_pairs) for name, table in partitions.items()}
        if not found:
            raise ValueError("partitions must hold at least one, got none.")
        return cls(distributions=found).plot(ax)

    def plot(self, ax: Any = None) -> ConsensusCDFDisplay:
        """Draw the picture.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure by default.

        Returns
        -------
        ConsensusCDFDisplay
            Itself.

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self.figure_, self.ax_ = look.axes_for(ax, figsize=(6.4, 4.2))
        found = self.distributions
        self.pac_ = {name: share_between(v, *_AMBIGUOUS) for name, v in found.items()}
        self.areas_ = {name: 1 - float(v.mean()) for name, v in found.items()}
        self.deltas_ = _growth(self.areas_)
        self.ax_.axvspan(*_AMBIGUOUS, color="0.95", linewidth=0)
        self.lines_ = []
        for i, (name, values) in enumerate(found.items()):
            x, steps = np.unique(values, return_index=True)
            heights = np.append(steps[1:], len(values)) / len(values)
            x, heights = np.concatenate([[0], x, [1]]), np.concatenate([[0], heights, [1]])
            style = {"color": look.colour_of(i), "linestyle": ("-", "--", ":")[i // 7 % 3]}
            label = f"{name}, PAC {self.pac_[name]:.2f}"
            self.lines_ += self.ax_.step(x, heights, where="post", label=label, **style)
        self.ax_.set(
            xlabel="share of partitions that hold a pair together", ylabel="share of pairs"
        )
        self.ax_.set(xlim=(-0.01, 1.01), ylim=(0, 1.02))
        self.ax_.spines[["top", "right"]].set_visible(False)
        self.ax_.legend(**look.LEGEND, **look.BESIDE)
        return self


def _growth(areas: Mapping[Any, float]) -> dict[Any, float]:
    """Return the relative growth of every area over the one before; the first as it is."""
    names, values = list(areas), np.array(list(areas.values()))
    before = np.where(values[:-1] > 0, values[:-1], 1)  # all pairs together: no growth to tell
    growth = np.where(values[:-1] > 0, np.diff(values) / before, 0)
    return dict(zip(names, [float(values[0]), *growth.tolist()], strict=True))
