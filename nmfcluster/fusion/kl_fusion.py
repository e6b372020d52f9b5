"""Sources as they are given: the model of Lange and Buhmann (2005), whose losses are in nats."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nmfcluster._optim.run import SolverConfig
from nmfcluster._utils.storage import as_dense, total
from nmfcluster.fusion.kl_loss import cross_entropy, entropy_of
from nmfcluster.fusion.sources import FittedSources, Sample

_ROOM = 1e3  # times the sum of a source, or over it, must not overflow: sums grow in the products


class AsGiven(FittedSources):
    """Sources as they are given, each scaled to sum to 1: ``P_l = S_l / 1'S_l1``.

    Parameters
    ----------
    sample : Sample
    estimator : SimilarityFusionNMF
        Whose `criterion` is "kl" or "cross_entropy".
    """

    relative, n_rounds = False, 100

    def __init__(self, sample: Sample, estimator: Any) -> None:
        reader, self.symmetric = sample.reader, sample.symmetric
        if sample.symmetric:
            sources, seen = reader.fitted(
                sample.objects, sample.compared, lambda source: source
            )
        else:
            sources, seen = reader.to_chosen(
                sample.objects, sample.fitted, sample.compared
            )
        if not seen.all():
            missing = f"samples are missing from {reader.labels[int(seen.all(axis=0).argmin())]}"
            raise ValueError(
                f'{missing}: only criterion="agreement" can leave any out.'
            )
        self.dtype = np.result_type(*(source.dtype for source in sources))
        self.own = [source.astype(self.dtype, copy=False) for source in sources]
        with np.errstate(over="ignore"):  # a sum that is too large is refused
            self._sizes = np.array(list(map(total, self.own)))
        most = float(np.finfo(self.dtype).max) / _ROOM
        for size, label in zip(self._sizes, reader.labels, strict=True):
            if not 1 / most < size < most:
                told = (
                    f"{label} must have a sum that {self.dtype} can hold with some room"
                )
                raise ValueError(f"{told}, got {size:.3g}; scale it.")
        values = (source.data if sp.issparse(source) else source for source in self.own)
        self._entropies = np.array(list(map(entropy_of, values, self._sizes)))
        # in an order of their own: sums round alike in any order of the sources
        self._order = np.lexsort((self._sizes, self._entropies))
        self.n_compared, self._divergence = (
            len(sample.compared),
            estimator.criterion == "kl",
        )
        self.judged = sample.fitted

    def fit_to(
        self, config: SolverConfig, eta: float, given: np.ndarray | None
    ) -> None:
        L = len(self.own)
        self.fit(config, eta, np.full(L, 1 / L) if given is None else given)

    def mix(self, weights: np.ndarray) -> SimpleNamespace:
        return SimpleNamespace(A=self._sum(self.own, weights))

    def losses_of(self, W: np.ndarray) -> np.ndarray:
        W, H = self.halves(W)
        mass = np.log(float(W.sum(axis=0) @ H.sum(axis=0)))
        losses = np.array([cross_entropy(source, W, H) + mass for source in self.own])
        return losses - self._entropies if self._divergence else losses

    def joined(self, sources: list[Any]) -> Any:
        return self._sum(sources, self.weights)

    def parts(self) -> list[Any]:
        scales = self.weights / self._sizes
        return [w * sp.csr_array(S) for w, S in zip(scales, self.own, strict=True)]

    def _sum(self, sources: list[Any], weights: np.ndarray) -> Any:
        """Return the mixture of sources: sparse if all of those with a weight are."""
        scales = (weights / self._sizes).astype(self.dtype)
        used = [(scales[i], sources[i]) for i in self._order if scales[i] > 0]
        used.sort(key=lambda pair: sp.issparse(pair[1]))  # arrays come first
        if all(sp.issparse(S) for _, S in used):
            return sp.csr_array(sum(s * S for s, S in used))
        mixed = used[0][0] * used[0][1]
        for s, S in used[1:]:
            mixed += s * as_dense(S)
        return mixed
