"""How many examples an entry point is given: 150, or 2,000 new ones with `-m fuzz`.

The summary has how many calls returned: about half should, as refusals end where inputs are read.
"""

import hypothesis
from fuzz.verdict import OUTCOMES


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


def pytest_terminal_summary(terminalreporter):
    for name, counts in sorted(OUTCOMES.items()):
        n = counts.total()
        terminalreporter.write_line(f"{name}: {counts[True] / n:.0%} of {n} returned")
    counts = sum(OUTCOMES.values(), start=type(next(iter(OUTCOMES.values()), {}))())
    if counts:
        share = counts[True] / sum(counts.values())
        terminalreporter.write_line(f"all calls: {share:.0%} returned")
