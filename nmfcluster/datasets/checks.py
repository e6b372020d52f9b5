"""Numbers that made-up data are drawn with, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from nmfcluster._arrays.arguments import check_number


def check_noise(noise: Any, name: str = "noise") -> None:
    """Raise unless it is a number, at least 0 and finite."""
    check_number(noise, name)
    if not 0 <= noise < np.inf:
        raise ValueError(f"{name} must be at least 0, got {noise}, and finite.")


def check_share(value: Any, name: str) -> None:
    """Raise unless it is a number from 0 to 1."""
    check_number(value, name)
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {value}.")


def check_above(value: Any, name: str) -> None:
    """Raise unless it is a number above 0 and finite."""
    check_number(value, name)
    if not 0 < value < np.inf:
        raise ValueError(f"{name} must be above 0 and finite, got {value}.")
