"""What tests of pairs that spread share."""

import pytest

from nmfcluster.similarity import spreading


@pytest.fixture
def few_points(monkeypatch):
    """Return what lets more samples than `each`, and always than `most`, share `points`."""

    def let(each, points, most=None):
        for name, value in (("MOST", most or each), ("_EACH", each), ("_POINTS", points)):
            monkeypatch.setattr(spreading, name, value)

    return let
