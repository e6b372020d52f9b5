"""Handwritten digits and letters in numbers from 10,000, as the authors of U-SENC give them.

Huang et al. (2020), "Ultra-scalable spectral clustering and ensemble clustering", print normalised
mutual information on them, with the geometric mean of the entropies.
"""

from __future__ import annotations

from benchmarks.datasets import Dataset, read

NAMES = {
    "usenc_letters": "letters in 16 measures, all of UCI's",
    "usenc_pendigits": "digits by 8 points of the pen, all of UCI's",
    "usenc_usps": "digits of letters' addresses, 16 x 16 pixels",
}


def load(name: str) -> Dataset:
    data = read(name)
    return Dataset(name, data["X"].astype(float), data["y"], note=NAMES[name])
