"""What the pictures share: colours, and lengths of names."""

import numpy as np
import pytest

from nmfcluster.display.curves import shorten
from nmfcluster.display.style import COLOURS, cluster_colour


def test_long_names_are_cut():
    assert shorten(30 * "a") == 30 * "a"
    assert shorten(31 * "a") == 29 * "a" + "…"


def test_colours_do_not_repeat_below_twenty_clusters():
    colours = [cluster_colour(i) for i in range(22)]
    assert tuple(colours[:7]) == COLOURS[:7]
    assert len(set(colours)) == 21
    assert colours[21] == colours[0]


# Machado, Oliveira, Fernandes (2009), severity 1: what an eye without one kind of cones sees of
# linear red, green and blue
EYES = {
    "all cones": np.eye(3),
    "no long": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "no middle": [
        [0.367, 0.861, -0.228],
        [0.280, 0.673, 0.047],
        [-0.012, 0.043, 0.969],
    ],
    "no short": [
        [1.256, -0.077, -0.179],
        [-0.078, 0.931, 0.148],
        [0.005, 0.691, 0.304],
    ],
}
XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)


@pytest.mark.parametrize("eye", EYES)
def test_colour_blind_readers_tell_seven_clusters_apart(eye):
    colours = [cluster_colour(i) for i in range(7)]
    rgb = np.array(
        [[int(c[at : at + 2], 16) / 255 for at in (1, 3, 5)] for c in colours]
    )
    seen = np.clip(((rgb + 0.055) / 1.055) ** 2.4 @ np.array(EYES[eye]).T, 0, 1)
    x, y, z = np.cbrt(seen @ XYZ.T / XYZ.sum(axis=1)).T
    lab = np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)
    apart = np.linalg.norm(lab[:, None] - lab, axis=2)[np.triu_indices(7, 1)]
    assert apart.min() > 14  # about 2.3 are just seen
