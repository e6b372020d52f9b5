"""What goes to a scorer and to `fit` besides the samples, by hand or by metadata routing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest, MetadataRouter, MethodMapping

from nmfcluster._arrays.arguments import last_step, warn
from nmfcluster.constraints import PairwiseConstraints
from nmfcluster.model_selection.checks import is_scalar, require_entries

_PAIRS = ("must_link", "cannot_link")  # parameters of a fit that name samples
_PAIRWISE = " Pairs are a PairwiseConstraints(n_samples, must_link, cannot_link)."


def score_request(owner: str, aliases: Mapping[str, bool | str | None]) -> MetadataRequest:
    """Return what a scorer asks of scikit-learn's metadata routing."""
    request = MetadataRequest(owner=owner)
    for name, alias in aliases.items():
        request.score.add_request(param=name, alias=alias)
    return request


def arguments_of_fit(
    estimator: Any,
    handed: dict[str, Any],
    own: dict[str, Any],
    n_samples: int,
    scorer: str = "StabilityScorer",
) -> dict[str, Any]:
    """Return what `fit` takes besides X and y, with entries for all samples.

    Parameters
    ----------
    estimator : estimator
        With metadata routing enabled, its request decides what `fit` is given.
    handed : dict
        What a search handed to the scorer; None: not handed over.
    own : dict
        `fit_params` of the scorer.
    n_samples : int
    scorer : str
        Its name.
    """
    handed = {name: value for name, value in handed.items() if value is not None}
    if get_config()["enable_metadata_routing"]:
        router = MetadataRouter(owner=scorer).add(
            estimator=estimator, method_mapping=MethodMapping().add(caller="fit", callee="fit")
        )
        handed = router.route_params(caller="fit", params=handed)["estimator"]["fit"]
    twice = sorted(handed.keys() & own)
    if twice:
        raise TypeError(f"{twice[0]!r} is given both in fit_params and to the scorer.")
    arguments = {**handed, **own}
    for name, value in arguments.items():
        prefix, _, last = name.rpartition("__")
        if last in _PAIRS and value is not None:
            place = f"{prefix}__constraints" if prefix else "constraints"
            raise ValueError(
                f"{name} in fit_params names samples by their positions, and is not cut like "
                f"them: give fit_params={{{place!r}: PairwiseConstraints({n_samples}, must_link, "
                "cannot_link)}."
            )
        if not is_scalar(value):
            cure = _PAIRWISE if last == "constraints" else ""
            require_entries(value, n_samples, f"{name} in fit_params", cure)
    return arguments


def warn_of_lost_constraints(estimator: Any, arguments: dict[str, Any], scorer: str) -> None:
    """Warn where the estimator was fitted under constraints that its copies are not given."""
    pairs = getattr(last_step(estimator)[1], "constraints_", None)
    if "constraints" in arguments or not isinstance(pairs, PairwiseConstraints):
        return
    if len(pairs.must_link) or len(pairs.cannot_link):
        warn(
            f"{scorer} scores copies without the constraints that the estimator was fitted under: "
            "give them as fit_params={'constraints': pairs}, or enable metadata routing."
        )
