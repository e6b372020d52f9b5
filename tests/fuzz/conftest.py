"""How many examples an entry point is given: 150, or 2,000 new ones with `-m fuzz`."""

import hypothesis


def pytest_configure(config):
    thorough = config.getoption("markexpr") == "fuzz"
    hypothesis.settings.register_profile(
        "fuzz",
        max_examples=2000 if thorough else 150,
        derandomize=not thorough,
        deadline=None,
        # An example is small, and its repr makes it again; to shrink it would take minutes.
        phases=(
            hypothesis.Phase.explicit,
            hypothesis.Phase.reuse,
            hypothesis.Phase.generate,
        ),
        suppress_health_check=list(hypothesis.HealthCheck),
    )
