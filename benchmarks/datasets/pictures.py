"""Pictures of things and of leaves, described in several ways."""

from __future__ import annotations

from benchmarks.datasets.views import Views, described

NAMES = {
    "100leaves": "shape, margin and texture of leaves, scaled to equal spread",
    "msrc_v1": "five sets of features of pictures, scaled to equal spread",
}


def load(name: str) -> Views:
    return described(name, NAMES[name], ("rbf",))
