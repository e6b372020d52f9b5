"""Fusion of the sources as they are: the model of Lange and Buhmann (2005), with losses in nats."""

import numpy as np
import scipy.sparse as sp

from nmfcluster._optim.run import SolverConfig
from nmfcluster._utils.storage import as_dense, total
from nmfcluster.fusion.kl_loss import cross_entropy, entropy_of
from nmfcluster.fusion.model import FittedSources, Sample
from nmfcluster.fusion.residuals import FusedGraph
from nmfcluster.stack.readers import StackReader

# factor by which the sum of a source must be away from overflow: sums grow in products
_ROOM = 1e3


class KLFusion(FittedSources):
    """Sources as they are, each scaled to sum to 1: ``P_l = S_l / 1'S_l1``.

    The loss of a source is its divergence from the model.

    Parameters
    ----------
    reader : StackReader
    objects : SimilarityStack or ViewStack
    sample : Sample
    """

    relative = False
    max_rounds = 100
    subtracts_entropy = True

    def __init__(self, reader: StackReader, objects, sample: Sample) -> None:
        super().__init__(reader, sample)
        self.evaluated_rows = sample.fitted
        if sample.symmetric:
            sources = reader.compare_fitted(objects, sample.compared)
            seen = reader.seen
        else:
            stack = reader.compare_with_columns(objects, sample.fitted, sample.compared)
            sources = stack.filled()
            seen = stack.seen()
        if not seen.all():
            label = reader.labels[int(seen.all(axis=0).argmin())]
            raise ValueError(
                f"samples are missing from {label}: only "
                'criterion="agreement" can leave any out.'
            )
        self.own = [source.astype(reader.dtype, copy=False) for source in sources]
        # the sums of the sources, which must not overflow, and their entropies
        sizes = []
        entropies = []
        most = float(np.finfo(reader.dtype).max) / _ROOM
        for source, label in zip(self.own, reader.labels, strict=True):
            with np.errstate(over="ignore"):
                size = total(source)
            if not 1 / most < size < most:
                raise ValueError(
                    f"{label} must have a sum that {reader.dtype} can hold with some room, got "
                    f"{size:.3g}; scale it."
                )
            values = source.data if sp.issparse(source) else source
            sizes.append(size)
            entropies.append(entropy_of(values, size))
        self._sizes = np.array(sizes)
        self._entropies = np.array(entropies)
        # sources are summed in an order of their own: so that rounding does not depend on theirs
        self._order = np.lexsort((self._sizes, self._entropies))

    def prepare(self, config: SolverConfig, weights):
        equal_weights = np.full(len(self.own), 1 / len(self.own))
        return equal_weights if weights is None else weights, []

    def mix(self, weights) -> FusedGraph:
        return FusedGraph(self._weighted_sum(self.own, weights))

    def losses_of(self, W):
        rows, columns = self.row_column_factors(W)
        mass = np.log(float(rows.sum(axis=0) @ columns.sum(axis=0)))
        losses = np.array([cross_entropy(S, rows, columns) + mass for S in self.own])
        return losses - self._entropies if self.subtracts_entropy else losses

    def mix_new(self, sources):
        return self._weighted_sum(sources, self.weights)

    def contributions(self):
        scales = self.weights / self._sizes
        return {i: scales[i] * sp.csr_array(S) for i, S in enumerate(self.own)}

    def _weighted_sum(self, sources, weights):
        """Return the mixture of sources: sparse if all of those with a weight are."""
        scales = (weights / self._sizes).astype(self.reader.dtype)
        terms = [(scales[i], sources[i]) for i in self._order if scales[i] > 0]
        terms.sort(key=lambda term: sp.issparse(term[1]))  # arrays come first
        if all(sp.issparse(S) for _, S in terms):
            return sp.csr_array(sum(scale * S for scale, S in terms))
        first_scale, first = terms[0]
        mixed = first_scale * first
        for scale, S in terms[1:]:
            mixed += scale * as_dense(S)
        return mixed


class CrossEntropyFusion(KLFusion):
    """The same with the cross-entropy as loss, which is larger by the entropy of the source."""

    subtracts_entropy = False
