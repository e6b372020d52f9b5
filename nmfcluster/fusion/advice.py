"""What a fit says of weights that are not what one expects of several sources."""

from __future__ import annotations

from typing import Any

from nmfcluster._arrays.arguments import warn
from nmfcluster.stack.container import called

_ALONE = 0.95  # weight of a source beside which the others hardly count
_SHARP = 0.3  # eta, of relative losses: a smaller one asks for nearly all weight on one source


def warn_of_weights(model: Any, parameter: str) -> None:
    """Warn if no source is explained, or one has all of the weight without being asked to.

    Parameters
    ----------
    model : SimilarityFusionNMF
        With its weights and losses of the sources.
    parameter : str
        That holds the sources, as error messages call it.
    """
    least = model.source_losses_.min()
    if model.criterion == "relative" and model.n_clusters > 1 and least >= 1:
        warn(
            f"{model.n_clusters} clusters explain no source better than independent objects do: "
            f"the smallest of source_losses_ is {least:.3g}; in a source with clusters it is below "
            "1. The labels are those of the least bad model."
        )
    largest = int(model.weights_.argmax())
    least_eta = _SHARP if model.criterion == "relative" else 0
    asked_for = model.eta <= least_eta or model.perplexity is not None
    if model.weights_[largest] > _ALONE and len(model.weights_) > 1 and not asked_for:
        source = called(largest, model.source_names_[largest], parameter)
        warn(
            f"{source} has the weight {model.weights_[largest]:.3f}, so that the others hardly "
            "count. See source_losses_ for how well each is explained; a larger eta makes the "
            "weights of those that are more even."
        )
