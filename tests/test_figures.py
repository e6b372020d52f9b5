"""Every figure in the README and the guide was measured, or the package or a paper has it.

A figure is a number with a point, or a percentage, in prose or in a table. Where it stands in a
paragraph or a table after a comment such as ``<!-- measured: scale, regimes -->``, the results of
these benchmarks have it, perhaps with more digits. After ``<!-- printed: KEY -->`` it is that of a
work in the list of references. Everywhere else it is a constant of the package, or stands in code
on the same page, which other tests run and compare.
"""

import json
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS, RESULTS = ROOT / "docs", ROOT / "benchmarks" / "results"
NUMBER = r"(?<![\w.,-])-?\d*\.\d+(?!\w|\.\d|,\d)"
SHARE = r"(?<![\w.,])\d+(?:\.\d+)?(?= ?%)"
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
MATHS = re.compile(r"\$\$.*?\$\$|\$[^$]+\$", re.DOTALL)
MARK = re.compile(r"<!-- (measured|printed): ([\w,\s]+) -->")
NOT_FIGURES = re.compile(
    r"\]\([^)]*\)|`[^`]+`|(?:Python|section|eqs?\.|Figure) [\d.]+\w*"
)
SKIPPED = "changelog", "references", "adding_an_estimator", "equations"

pytestmark = pytest.mark.skipif(
    not RESULTS.exists(), reason="no results are here: an installed package"
)


def pages():
    # or include what was measured
    made = {"_build", "auto_examples", "generated", "benchmarks"}
    paths = [path for path in sorted(DOCS.rglob("*.md")) if not made & set(path.parts)]
    return [
        "README.md",
        *(str(p.relative_to(ROOT)) for p in paths if p.stem not in SKIPPED),
    ]


def figures(block):
    """Return the figures of a paragraph or a table, as they are written."""
    prose = NOT_FIGURES.sub(" ", MATHS.sub(" ", block))
    shares = {f"{n} %" for n in re.findall(SHARE, prose)}
    return shares | {n for n in re.findall(NUMBER, prose) if f"{n} %" not in shares}


def numbers_of(value):
    """Yield all numbers in a result."""
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from numbers_of(one)
    elif isinstance(value, int | float):
        yield float(value)
    elif isinstance(value, str):
        yield from (
            float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", value.replace(",", ""))
        )


@cache
def measured(name):
    content = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return frozenset(
        numbers_of([content[part] for part in ("caption", "tables", "notes")])
    )


@cache
def constants():
    code = " ".join(
        path.read_text("utf-8") for path in (ROOT / "nmfcluster").rglob("*.py")
    )
    return frozenset(float(n) for n in re.findall(r"\d*\.?\d+(?:e-?\d+)?", code))


def is_among(figure, numbers):
    """Return whether a number rounds to the figure; a percentage may be a share there."""
    written = figure.removesuffix(" %")
    places = len(written.partition(".")[2])
    ways = [(float(written), places)]
    if figure.endswith("%"):
        ways.append((float(written) / 100, places + 2))
    return any(
        abs(abs(number) - abs(value)) < 0.501 * 10.0**-digits
        for value, digits in ways
        for number in numbers
    )


def unfounded(text):
    """Return the figures of a page that nothing stands behind, with the blocks that have them."""
    code = frozenset(numbers_of(" ".join(FENCE.findall(text))))
    lost, above = [], None  # a mark may stand in its block, or alone above it
    for block in re.split(r"\n\s*\n", FENCE.sub("", text)):
        mark = MARK.search(block) or above
        above = MARK.fullmatch(block.strip())
        if mark and mark[1] == "printed":
            assert f"({mark[2]})=" in (DOCS / "references.md").read_text("utf-8"), mark[
                2
            ]
            continue
        known = constants() | code
        if mark:
            known = known.union(*map(measured, re.split(r",\s+", mark[2])))
        lost += [
            (f, block.strip()[:80])
            for f in sorted(figures(block))
            if not is_among(f, known)
        ]
    return lost


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", pages())
def test_figures_are_measured_printed_or_constants(page):
    assert unfounded((ROOT / page).read_text("utf-8")) == []


def test_a_figure_that_nothing_stands_behind_is_found():
    page = (
        "Right in 0.8123 of all.\n\n<!-- measured: scale -->\nTime: 0.89, and 0.8123."
    )
    assert [figure for figure, _ in unfounded(page)] == ["0.8123", "0.8123"]
