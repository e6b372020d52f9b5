"""Where the values of a parameter stand on an axis, and their names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from nmfcluster.display.style import cut, ticker

_SPAN = 30.0  # largest over smallest value from which an axis is logarithmic
_MOST_TICKS, _MOST_LETTERS = 12, 60  # of values that are ticks themselves: more would overlap
_CLOSEST = 0.045  # share of the axis: nearer ticks would overlap
_MOST_LEVEL = 52  # letters of all categories; with more their names are turned
_LONGEST = 22  # letters of a category
_GAP = 0.12  # share of the axis, to the places of 0 and of infinity
_MARGIN = 0.04  # share of the axis, at both ends
_INFINITY = "\N{INFINITY}"


@dataclass(frozen=True)
class AxisLayout:
    """Where the values of a parameter stand.

    Attributes
    ----------
    scale : {"linear", "log", "category"}
    places : ndarray of shape (n_values,)
    joined : ndarray of shape (n_values,), bool
        Whether a value is joined to its neighbours.
    breaks : list of (ndarray, ndarray)
        Masks of values to the left and to the right of a break in the axis.
    ticks : list of float
    labels : list of str
    limits : (float, float)
    crowded : bool
        Whether the labels need to be turned.
    """

    scale: str
    places: np.ndarray
    joined: np.ndarray
    breaks: list[tuple[np.ndarray, np.ndarray]]
    ticks: list[float]
    labels: list[str]
    limits: tuple[float, float]
    crowded: bool = False


def lay_out(values: Sequence[Any]) -> AxisLayout:
    """Choose the scale of the axis, and the places of the values on it."""
    names = [name_of(value) for value in values]
    if not all(is_number(value) for value in values):
        return _side_by_side(names)
    numbers = np.array([float(value) for value in values])
    log = _spans_decades(numbers)
    low, high = numbers == (0 if log else -np.inf), numbers == np.inf
    joined = ~low & ~high
    places = np.log10(numbers, where=joined, out=np.zeros_like(numbers)) if log else numbers.copy()
    inside = places[joined] if joined.any() else np.zeros(1)
    span = np.ptp(inside) or 1.0
    places[low], places[high] = inside.min() - _GAP * span, inside.max() + _GAP * span
    ticks, labels = places.tolist(), names
    if not _has_room(places, names):
        ticks, labels = _powers_of_ten(inside) if log else _round_numbers(inside)
        ends = np.flatnonzero(~joined)
        ticks += places[ends].tolist()
        labels += [names[i] for i in ends]
    limits = places.min() - _MARGIN * span, places.max() + _MARGIN * span
    breaks = [pair for pair in ((low, joined), (joined, high)) if pair[0].any() and pair[1].any()]
    if log:
        places, ticks = 10**places, (10.0 ** np.array(ticks)).tolist()
        limits = float(10 ** limits[0]), float(10 ** limits[1])
    return AxisLayout("log" if log else "linear", places, joined, breaks, ticks, labels, limits)


def _side_by_side(names: list[str]) -> AxisLayout:
    """Lay out values that are not numbers."""
    n = len(names)
    places = np.arange(n, dtype=float)
    joined, limits = np.zeros(n, dtype=bool), (-0.5, n - 0.5)
    crowded = n * max(map(len, names)) > _MOST_LEVEL
    return AxisLayout("category", places, joined, [], places.tolist(), names, limits, crowded)


def _spans_decades(numbers: np.ndarray) -> bool:
    """Return whether numbers, none negative, are so far apart that an axis is logarithmic."""
    inner = numbers[np.isfinite(numbers) & (numbers > 0)]
    spans = len(inner) > 1 and inner.max() >= _SPAN * inner.min()
    return bool(spans and (numbers >= 0).all())


def _has_room(places: np.ndarray, names: list[str]) -> bool:
    """Return whether every value can be a tick."""
    apart = (np.diff(places) > _CLOSEST * np.ptp(places)).all()
    few = len(names) <= _MOST_TICKS and sum(map(len, names)) <= _MOST_LETTERS
    return bool(apart and few)


def _powers_of_ten(exponents: np.ndarray) -> tuple[list[float], list[str]]:
    """Return the exponents of ticks between some exponents, and their names."""
    low, high = math.ceil(exponents.min() - 1e-9), math.floor(exponents.max() + 1e-9)  # rounding
    powers = np.arange(low, high + 1, max(1, (high - low) // 7))
    return powers.astype(float).tolist(), [f"$10^{{{power}}}$" for power in powers]


def _round_numbers(numbers: np.ndarray) -> tuple[list[float], list[str]]:
    """Return about eight round numbers between some numbers, and their names."""
    low, high = numbers.min(), numbers.max()
    ticks = [t for t in ticker().MaxNLocator(8).tick_values(low, high).tolist() if low <= t <= high]
    return ticks, [f"{t:g}" for t in ticks]


def is_number(value: Any) -> bool:
    """Return whether a value of a parameter is a number; NaN and booleans are not."""
    return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and value == value


def name_of(value: Any) -> str:
    """Return the name of a value of a parameter."""
    if is_number(value):
        if math.isinf(value):
            return _INFINITY if value > 0 else f"\N{MINUS SIGN}{_INFINITY}"
        return f"{value:.4g}" if abs(value) < 1e5 or value != int(value) else f"{value:g}"
    return cut(" ".join(str(value).split()), _LONGEST)
