"""How the question of assignments scores, and chooses a gain."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
pytest.importorskip("benchmarks.datasets", reason="benchmarks are not installed")

from benchmarks.questions import assignments as question

pytestmark = pytest.mark.slow  # together


def test_scores_of_usages():
    scores = question.scored(
        np.array([[3.0, 1, 0], [0, 0, 2]]), np.array([[4.0, 0, 0], [0, 1, 1]])
    )
    assert scores == {"precision": 2 / 3, "recall": 2 / 3, "F1": 2 / 3, "error": 4 / 6}


def test_planted_signatures_come_first():
    X, W, H = question.Setting(500, 12, 0.0).draw(0, 20)
    assert (X.shape, W.shape, H.shape) == ((20, 96), (20, 12), (12, 96))
    assert not W[:, 10:].any()
    assert abs(X.sum() / (W @ H).sum() - 1) < 0.05


def test_the_smaller_error_decides_between_equals():
    gains = {2: (0.5, 0.1), 4: (0.8, 0.2), 6: (0.801, 0.3), 8: (0.7, 0.1)}
    runs = {
        (setting, f"gain {gain}"): [
            dict(zip(("F1", "error"), gains.get(gain, (0.1, 0.1)), strict=True))
        ]
        for setting in "ab"
        for gain in question.GAINS
    }
    runs["b", "gain 6"][0]["F1"] = 0.9
    assert question.chosen(runs) == "gain 6"
    assert question.chosen(runs, without="b") == "gain 4"
    assert [row["chosen"] for row in question.left_out(runs)] == [
        "gain 6",
        "gain 6",
        "gain 4",
    ]
