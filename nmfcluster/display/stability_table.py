"""Curves of a search, read from its table of results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmfcluster.display.stability_axis import is_number, name_of

_EXCESS = "excess"
_METRICS = ("stability", "disagreement", _EXCESS)
_SCORERS = {_EXCESS: "NullScorer(..., details=True)"}  # others: StabilityScorer(details=True)
_NUMBERS = ("n_clusters", "n_components")  # parameters whose value can be 1
_UNLIKELY = 0.05  # p-value up to which tables without clusters do not reach a score
_MOST_LINES = 10  # more cannot be told apart


def read_search(
    cv_results: Mapping[str, Any], param: str | None, metric: str, best_index: int | None
) -> dict[str, Any]:
    """Return the contents of a `StabilityDisplay`, whose `from_cv_results` has these parameters."""
    scores, errors = _scores(cv_results, metric)
    candidates = list(cv_results["params"])
    searched = _searched(candidates)
    param = _axis_parameter(searched, param)
    others = {name for name, (_, varied) in searched.items() if varied and name != param}
    kept = [i for i, candidate in enumerate(candidates) if param in candidate]
    values, places = _distinct([candidates[i][param] for i in kept])
    settings = [{n: v for n, v in candidates[i].items() if n in others} for i in kept]
    groups, lines = _distinct(settings)
    if len(groups) > _MOST_LINES:
        raise ValueError(
            f"the parameters besides {param!r} have {len(groups)} combinations of values; at "
            f"most {_MOST_LINES} lines can be told apart."
        )

    def table(column: np.ndarray) -> np.ndarray:
        cells = np.full((len(groups), len(values)), np.nan)
        cells[lines, places] = column[kept]
        return cells

    title, names = _name_lines(groups)
    chosen = dict(zip(kept, zip(lines, places, strict=True), strict=True))
    found = {
        "param_name": param,
        "values": values,
        "curves": table(scores),
        "errors": None if errors is None else table(errors),
        "names": names,
        "title": title,
        "chosen": None if best_index is None else chosen.get(best_index),
        "metric": metric,
    }
    if metric == _EXCESS:
        found["null_sd"] = table(_column(cv_results, "null_sd", metric))
        found |= _with_one(found, table(_column(cv_results, "p_value", metric)))
    return found


def _with_one(found: dict[str, Any], p_values: np.ndarray) -> dict[str, Any]:
    """Return what changes where 1 is put before numbers of clusters: it exceeds a null by nothing.

    It is what was chosen where tables without clusters reach the scores of all candidates.
    """
    values = found["values"]
    is_number_of = found["param_name"].split("__")[-1] in _NUMBERS
    if not is_number_of or not all(map(is_number, values)) or min(values) <= 1:
        return {}
    chosen, none = found["chosen"], not (p_values <= _UNLIKELY).any()
    if chosen is not None:
        chosen = (chosen[0], 0 if none else chosen[1] + 1)
    first = np.zeros((len(p_values), 1))
    wider = {name: np.hstack([first, found[name]]) for name in ("curves", "null_sd")}
    return {"values": [1, *values], "chosen": chosen, **wider}


def _column(cv_results: Mapping[str, Any], name: str, metric: str) -> np.ndarray:
    """Return a column of the table of results; raise if there is none."""
    if f"mean_test_{name}" not in cv_results:
        raise ValueError(
            f"cv_results must hold 'mean_test_{name}' for metric={metric!r}: it is that of a "
            f"search with scoring={_SCORERS[metric]}."
        )
    return np.asarray(cv_results[f"mean_test_{name}"], dtype=float)


def _scores(cv_results: Mapping[str, Any], metric: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the scores of all candidates, and their standard errors if the search kept them."""
    if metric not in _METRICS:
        raise ValueError(f"metric must be one of {_METRICS}, got {metric!r}.")
    names = [f"mean_test_{metric}"] + ["mean_test_score"] * (metric == "stability")
    name = next((name for name in names if name in cv_results), None)
    scorer = _SCORERS.get(metric, "StabilityScorer(details=True)")
    if name is None or "params" not in cv_results:
        raise ValueError(
            f"cv_results must hold 'params' and {' or '.join(map(repr, names))}: it is "
            f"`cv_results_` of a search with scoring={scorer}."
        )
    scores = np.asarray(cv_results[name], dtype=float)
    if not np.isfinite(scores).any():
        raise ValueError(f"cv_results[{name!r}] must hold a finite number; there is none to show.")
    error = f"{names[0]}_se"
    return scores, np.asarray(cv_results[error], dtype=float) if error in cv_results else None


def _searched(candidates: list[dict[str, Any]]) -> dict[str, tuple[list[Any], bool]]:
    """Return the distinct values of all parameters, and whether these tell candidates apart."""
    searched = {}
    for name in dict.fromkeys(name for candidate in candidates for name in candidate):
        given = [candidate[name] for candidate in candidates if name in candidate]
        values, _ = _distinct(given)
        searched[name] = values, len(values) > 1 or len(given) < len(candidates)
    return searched


def _axis_parameter(searched: dict[str, tuple[list[Any], bool]], param: str | None) -> str:
    """Return the parameter along the axis."""
    if param is not None and param not in searched:
        raise ValueError(
            f"param must be a parameter that was searched, {list(searched)}, got {param!r}."
        )
    if not searched:
        raise ValueError("cv_results must hold a parameter; the search had none.")

    def suits(name: str) -> tuple[bool, int]:
        values, _ = searched[name]
        return len(values) > 1 and all(map(is_number, values)), len(values)

    return max(searched, key=suits) if param is None else param


def _distinct(values: Sequence[Any]) -> tuple[list[Any], list[int]]:
    """Return distinct values, numbers in increasing order, and which of them each value is."""
    distinct: list[Any] = []
    for value in values:
        if not any(_same(value, other) for other in distinct):
            distinct.append(value)
    if all(is_number(value) for value in distinct):
        distinct.sort()
    return distinct, [next(i for i, d in enumerate(distinct) if _same(v, d)) for v in values]


def _same(a: Any, b: Any) -> bool:
    """Compare values of a parameter, which can be estimators, arrays or dicts of them."""
    if a is b:
        return True
    if type(a) is type(b) and isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[name], b[name]) for name in a)
    try:
        return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)
    except ValueError:
        return bool(np.array_equal(a, b))


def _name_lines(groups: list[dict[str, Any]]) -> tuple[str | None, list[str] | None]:
    """Return the parameter whose values name the lines, and the names; None if they need none."""
    if len(groups) == 1:
        return None, None
    parameters = list(dict.fromkeys(name for group in groups for name in group))
    if len(parameters) == 1:
        return parameters[0], [name_of(group.get(parameters[0], "default")) for group in groups]
    return None, [", ".join(f"{n} = {name_of(v)}" for n, v in g.items()) for g in groups]
