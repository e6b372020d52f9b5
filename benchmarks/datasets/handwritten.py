"""Handwritten digits in several views: six sets of features, or two halves of a picture."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from benchmarks.datasets.views import Views, described, of_features

NAMES = ("mfeat", "digits, left and right")
KERNELS = ("rbf",)


def load(name: str) -> Views:
    if name != "mfeat":
        return halves(name, *load_digits(return_X_y=True))
    return described(name, "six sets of features, scaled to equal spread", KERNELS)


def halves(name: str, pictures: np.ndarray, y: np.ndarray) -> Views:
    """Return the left and the right half of pictures of 8 x 8 pixels as views."""
    pictures = pictures.reshape(-1, 8, 8)
    views = [
        half.reshape(len(y), -1) for half in (pictures[:, :, :4], pictures[:, :, 4:])
    ]
    note = "halves of pictures, scikit-learn's copy"
    return of_features(name, views, ("left", "right"), y, note, KERNELS)
