"""Handwritten digits in several views: six sets of features, or two halves of a picture."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import scale

from benchmarks.datasets import read
from benchmarks.datasets.views import Views, of_features

NAMES = ("mfeat", "digits, left and right")
KERNELS = ("rbf",)


def load(name: str) -> Views:
    if name != "mfeat":
        return halves(name, *load_digits(return_X_y=True))
    data = read(name)
    names = data["view_names"]
    views = [scale(data[f"V{i}"].astype(float)) for i in range(len(names))]
    note = "six sets of features, scaled to equal spread"
    return of_features(name, views, names, data["y"], note, KERNELS)


def halves(name: str, pictures: np.ndarray, y: np.ndarray) -> Views:
    """Return the left and the right half of pictures of 8 x 8 pixels as views."""
    pictures = pictures.reshape(-1, 8, 8)
    views = [half.reshape(len(y), -1) for half in (pictures[:, :, :4], pictures[:, :, 4:])]
    note = "halves of pictures, scikit-learn's copy"
    return of_features(name, views, ("left", "right"), y, note, KERNELS)
