"""Selection of the sources that agree, and the graph of the sum of their residuals."""

from math import fsum

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from nmfcluster._optim.initialization import leading_eigenpairs
from nmfcluster._utils.storage import bipartite_graph, with_nonzero_data
from nmfcluster._utils.validation import format_count, format_value, warn
from nmfcluster.fusion.kl_loss import unexplained_share
from nmfcluster.fusion.model import FEWEST, FittedSources, SpectralStarts
from nmfcluster.fusion.residuals import (
    AGREE,
    agrees_with_clusters,
    compute_residual,
    counted_sources,
    divide_by_degrees,
    find_duplicates,
    fused_graph,
    fused_rows,
    measure_agreement,
    n_neighbors_to_keep,
)
from nmfcluster.similarity import Explicit
from nmfcluster.stack.container import check_above_0

# largest number of objects for which every graph has a start, which takes an eigendecomposition
_MAX_STARTED = 50_000
# share of the median sum of similarities below which an object may be an outlier: in 18 simulated
# views the smallest share was 0.02; rows multiplied by four had at most 0.01
_FAR = 0.01
_EVALUATED = 500  # objects from whose pairs the loss of a dense source is computed


class AgreementGraph(FittedSources):
    """The sources that agree, and the graph of the sum of their residuals.

    Parameters
    ----------
    reader : StackReader
    objects : SimilarityStack or ViewStack
    sample : Sample

    Attributes
    ----------
    agreement : Agreement
    counted : ndarray of shape (L,), bool
    """

    relative = True
    max_rounds = 5

    def __init__(self, reader, objects, sample):
        super().__init__(reader, sample)
        is_square = objects.shape[0] == objects.shape[1]
        self.evaluated_rows = sample.compared if is_square else sample.fitted
        self._square = is_square
        self._distinct = sample.distinct
        # read one source after the other, because all sources together can be large
        with np.errstate(over="ignore"):  # sums that overflow raise an error below
            if is_square:
                residuals = reader.compare_fitted(
                    objects, sample.compared, compute_residual
                )
            else:  # the columns are not the objects
                stack = reader.compare_with_columns(
                    objects, sample.fitted, sample.compared
                )
                sources = stack.filled()
                for source, label in zip(sources, reader.labels, strict=True):
                    check_above_0(source, label)
                _clear_self_similarities(sources)
                residuals = [compute_residual(source, False) for source in sources]
            for R, label in zip(residuals, reader.labels, strict=True):
                if not np.isfinite(R.degrees.sum()):
                    raise ValueError(
                        f"{label} has a sum that overflows float64; scale it down."
                    )
        check_connected(np.column_stack([R.seen for R in residuals]), reader.names)
        self._residuals = residuals
        self._is_informative = np.array([R.size > 0 for R in residuals])
        self.agreement = measure_agreement(residuals)
        # the similarities of all objects to landmarks are read again, in blocks of objects
        has_landmarks = is_square and len(sample.fitted) > self.n_compared
        self._read_again = objects if has_landmarks else None

    def prepare(self, config, weights):
        self._n_clusters = config.n_clusters
        # informative sources have the user's weights, or equal ones if they agree
        prior = self._vote() if weights is None else weights
        prior = np.where(self._is_informative, prior, 0)
        if prior.any():
            prior = prior / fsum(prior)
        self.counted = prior > 0
        self.own = [self._graph_of_some([R], np.ones(1))[0] for R in self._residuals]
        # each single graph gives a start, too
        single = []
        counting = counted_sources(self._residuals, prior)
        has_few = len(self._residuals[0].rows) <= _MAX_STARTED
        are_graphs = all(self._residuals[i].is_graph for i in counting)
        if has_few and are_graphs and len(counting) > 1:
            single = [self.own[i] for i in counting]
            if self._read_again is not None:  # `own` holds only landmarks
                blocks = list(self._blocks())
                alone = np.eye(len(prior))[counting]
                single = [self.mix(weights, blocks).A for weights in alone]
        return prior, single

    def release(self):
        for R in self._residuals:
            R.stored = R.stored[:0].copy()  # a view would keep all of it in memory
        self._read_again = None

    def mix(self, weights, blocks=None):
        """Return the graph of the weighted sum of the sources.

        It holds the contribution of every source, unless `blocks` of residuals are passed.
        """
        is_kept = blocks is None
        if is_kept:
            blocks = self._blocks()
        distinct = self._distinct
        n_neighbors = n_neighbors_to_keep(
            self._residuals, weights, self._n_clusters, distinct
        )
        return fused_graph(blocks, weights, n_neighbors, distinct, is_kept)

    def losses_of(self, W):
        rows, H = self.row_column_factors(W)
        if self._square:
            rows = W[-self.n_compared :]
        losses = [
            unexplained_share(A, rows[: A.shape[0]], H[: A.shape[1]]) for A in self.own
        ]
        return np.array(losses)

    def mix_new(self, sources):
        new = self._residuals_of_new(sources)
        n_neighbors = self.mixed.n_neighbors
        graph = fused_rows(new, self.weights, n_neighbors, self._distinct)
        return divide_by_degrees(graph, self.mixed.degrees)

    def contributions(self):
        counting = counted_sources(self._residuals, self.weights)
        added = zip(counting, self.mixed.contributions, strict=True)
        return {i: with_nonzero_data(self.mixed.A, values) for i, values in added}

    def _vote(self):
        """Return the weights of the sources that agree, or else of those whose clusters stand out.

        The weight of a selected source is its share of a vote. The others have weight 0.
        """
        names = self.reader.names
        if not self._is_informative.any():
            warn(
                "No source is informative: the similarities in each are nearly equal, so there "
                "are no clusters. Pass sources with more contrast."
            )
            return np.zeros(len(names))
        # nearly equal sources share a vote
        duplicates = find_duplicates(self._residuals, self.agreement)
        votes = vote_shares(duplicates)
        pairs = np.argwhere(np.triu(duplicates, 1))
        if len(pairs):
            one, other = (names[i] for i in pairs[0])
            n_pairs = format_count(len(pairs), "pair")
            warn(
                f"{n_pairs} of sources are nearly equal, such as {one!r} and {other!r}, and share "
                "one vote, as copies are no further evidence. Pass weights= to count each in full."
            )
        options = candidate_groups(self.agreement, duplicates, self._is_informative)
        groups = self._groups_by_clusters(options, duplicates)
        sizes = np.round(groups @ votes)
        largest = np.unique(groups[sizes == sizes.max()], axis=0)
        if len(options) == 1 or (len(largest) == 1 and sizes.max() > 1):
            return largest[0] * votes
        # Choose the group of sources whose clusters are the most distinct. Clusters of a few
        # objects are outliers, which are distinct, too: groups that have some are skipped, and if
        # all have some, all sources are taken.
        k = self._n_clusters
        chosen = options[-1]
        widest = 0.0
        for option in options:
            # the gap after the k-th eigenvalue measures how far k clusters stand out
            graph = self.mix(option, [self._residuals]).A.astype(np.float64)
            if not self._square:
                graph = bipartite_graph(graph)
            n_values = min(k + 1, graph.shape[0])
            values, _ = leading_eigenpairs(Explicit(graph), n_values)
            gap = values[k - 1] - values[-1]
            if gap > widest:
                labels = SpectralStarts(graph, k).labels
                if np.bincount(labels, minlength=k).min() >= FEWEST:
                    chosen = option
                    widest = gap
        kept = [names[i] for i in np.flatnonzero(chosen)]
        if np.round(options[:-1] @ votes).max() > 1:
            why = (
                "The sources fall into groups that do not agree with each other, and none "
                "is the largest"
            )
        else:
            most = float(self.agreement.scores[~duplicates].max())
            why = (
                "No two sources agree by more than chance: the largest of agreement_.scores is "
                f"{most:.2f}, and must exceed {AGREE:.0f}"
            )
        reason = "whose clusters are the most distinct"
        if widest == 0:
            reason = "because every single source has a cluster of a few objects"
        warn(
            f"{why}. The result uses {kept}, {reason}. It may be noise, because so few "
            "sources cannot outvote each other. Pass weights= for the sources that you trust."
            f"{self._outliers()}"
        )
        return chosen * votes

    def _outliers(self):
        """Return a sentence that names objects far from all others; empty if there are none."""
        for R, name in zip(self._residuals, self.reader.names, strict=True):
            least = _FAR * np.median(R.degrees)
            far = self.evaluated_rows[
                np.flatnonzero((R.columns > 0) & (R.degrees < least))
            ]
            if self._square and not R.is_graph and len(far):
                number = format_count(len(far), "object")
                shown = np.sort(far)[:5].tolist()
                return (
                    f" In {name!r}, {number} may be outliers, as they are similar to hardly any "
                    f"other, such as {shown}. Leave them out, or clip features."
                )
        return ""

    def _groups_by_clusters(self, options, duplicates):
        """Return the groups, extended by sources that agree with their clusters, (n_groups, L).

        The groups are boolean masks. If no two sources agree, there is a single group: the sources
        that agree with the clusters of all others.
        """
        if len(options) == 1:
            groups = options
        elif np.round(options[0] @ vote_shares(duplicates)) > 1:
            groups = options[:-1]  # the last one is all of them
        else:
            others = self._is_informative & ~duplicates
            candidates = np.diag(self._is_informative)
            found = map(self._agreeing, others, candidates)
            return np.any(list(found), axis=0)[None]
        candidates = self._is_informative & ~groups
        return groups | np.array(list(map(self._agreeing, groups, candidates)))

    def _agreeing(self, group, candidates):
        """Return which candidates agree with the clusters of a group of sources, (L,), bool."""
        agree = np.zeros(len(candidates), dtype=bool)
        if not self._square or not candidates.any():
            return agree
        graph, residuals = self._graph_of_some(self._residuals, group)
        n_values = min(self._n_clusters, graph.shape[0])
        _, vectors = leading_eigenpairs(Explicit(graph.astype(np.float64)), n_values)
        for i in np.flatnonzero(candidates):
            # the first eigenvector holds the degrees, and separates no clusters
            agree[i] = agrees_with_clusters(residuals[i], vectors[:, 1:])
        return agree

    def _graph_of_some(self, residuals, weights):
        """Return the graph of sources, and their residuals; of some objects if one is dense.

        Only the first objects are used then. They are a random sample, because objects are in
        random order.
        """
        distinct = self._distinct
        are_graphs = all(R.is_graph for R in residuals)
        if not are_graphs and residuals[0].stored.shape[0] > _EVALUATED:
            residuals = [R.restrict_to(np.arange(_EVALUATED)) for R in residuals]
            if not isinstance(distinct, slice):
                distinct = distinct[distinct < _EVALUATED]
        n_neighbors = n_neighbors_to_keep(
            residuals, weights, self._n_clusters, distinct
        )
        graph = fused_graph([residuals], weights, n_neighbors, distinct, False)
        return graph.A, residuals

    def _blocks(self):
        """Yield the residuals of all fitted objects, in blocks if they are read again."""
        if self._read_again is None:
            yield self._residuals
        else:
            blocks = self.reader.compare_in_blocks(self._read_again, self.fitted)
            yield from map(self._residuals_of_new, blocks)

    def _residuals_of_new(self, sources):
        """Return the residuals of the similarities of new objects to the fitted ones."""
        pairs = zip(self._residuals, sources, strict=True)
        return [R.residual_of_new(S) for R, S in pairs]


def _clear_self_similarities(sources):
    """Set similarities of objects to themselves to 0, because all sources agree in these.

    A self-similarity is the largest entry of its row and of its column in every source.
    """
    if len(sources) == 1:
        return
    nearest = np.array([np.ravel(S.argmax(axis=1)) for S in sources])
    owners = np.array([np.ravel(S.argmax(axis=0)) for S in sources])
    j = nearest[0]
    is_owner = owners[:, j] == np.arange(len(j))
    i = np.flatnonzero(((nearest == j) & is_owner).all(axis=0))
    for S in sources:
        S[i, j[i]] = 0


# --- the selection of sources ---------------------------------------------------------------------


def vote_shares(duplicates):
    """Return the vote of every source, (L,): 1, or an equal share of 1 among copies.

    Parameters
    ----------
    duplicates : ndarray of shape (L, L), bool
        Which sources are nearly equal.
    """
    group = connected_components(duplicates, directed=False)[1]
    return 1 / np.bincount(group)[group]


def candidate_groups(found, duplicates, is_informative):
    """Return masks of the groups of sources that may be used, (n_groups, L).

    Two sources are in one group if they agree directly or through a chain of sources. The largest
    group is returned alone. If several groups are equally large, each of them is returned, followed
    by their union. If no two sources agree, every source is a group.

    Parameters
    ----------
    found : Agreement
    duplicates : ndarray of shape (L, L), bool
        Which sources are nearly equal.
    is_informative : ndarray of shape (L,), bool
        Which sources have a residual that is not 0.

    Returns
    -------
    ndarray of shape (n_groups, L), bool
        A single row if one group is the largest.
    """
    votes = vote_shares(duplicates)
    group = connected_components((found.scores > AGREE) | duplicates, directed=False)[1]
    numbers = np.unique(group[is_informative])
    groups = (group == numbers[:, None]) & is_informative
    sizes = np.round(groups @ votes)
    largest = groups[sizes == sizes.max()]
    if len(largest) == 1:
        return largest
    return np.vstack([largest, largest.any(axis=0)])


def read_source_weights(weights, names):
    """Return the user's weights of sources, scaled to sum to 1; None if there are none.

    Parameters
    ----------
    weights : array-like of shape (L,), dict or None
        One weight for each source, or a dict from names to weights. Sources that are missing in the
        dict have weight 0.
    names : tuple of str
    """
    if weights is None:
        return None
    if isinstance(weights, dict):
        unknown = [name for name in weights if name not in names]
        if unknown:
            raise ValueError(
                f"weights name {unknown[0]!r}, which is no source; the sources are {list(names)}."
            )
        weights = [weights.get(name, 0) for name in names]
    read = np.asarray(weights)
    is_valid = read.shape == (len(names),) and read.dtype.kind in "biuf"
    if not is_valid or not 0 <= read.min() <= read.max() < np.inf or not read.any():
        raise ValueError(
            f"weights must be one number for each of the sources {list(names)}, or a dict from "
            "these names to numbers. The numbers must be finite, at least 0, and not all 0, got "
            f"{format_value(weights)}."
        )
    read = read / read.max()  # so that the sum does not overflow
    return read / fsum(read)


def check_connected(seen, names):
    """Raise an error if objects fall into groups that no source connects.

    Parameters
    ----------
    seen : ndarray of shape (n, L), bool
        Which objects each source covers.
    names : tuple of str
        Names of the sources.
    """
    n = len(seen)
    component = connected_components(
        bipartite_graph(sp.csr_array(seen)), directed=False
    )[1]
    sizes = np.bincount(component[:n], minlength=component.max() + 1)
    source_groups = component[n:]
    groups = np.unique(source_groups[sizes[source_groups] > 0])
    if len(groups) > 1:
        found = []
        for group in groups:
            sources = [names[i] for i in np.flatnonzero(source_groups == group)]
            found.append(f"{format_count(int(sizes[group]), 'object')} in {sources}")
        raise ValueError(
            "the sources must overlap, but none covers objects of more than one of these groups: "
            f"{' and '.join(found)}. Clusters of different groups cannot be matched. Fit each "
            "group alone, or add a source that covers objects of both."
        )
