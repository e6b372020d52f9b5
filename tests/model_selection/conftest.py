"""What the tests of scorers share."""

import pytest
import sklearn
from model_selection.choices import chosen


@pytest.fixture(params=[False, True], ids=["no routing", "routing"])
def routing(request):
    """Run a test without metadata routing, and with it."""
    with sklearn.config_context(enable_metadata_routing=request.param):
        yield request.param


@pytest.fixture(scope="session")
def stability():
    return chosen(method="stability")
