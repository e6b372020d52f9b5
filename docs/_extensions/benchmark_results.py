"""A note on each benchmark's page whose result does not come from the package as it is now.

While a version is in development, the note tells readers from which commit the figures come. In a
release a stale result is a warning of the build, which fails on warnings.
"""

import json
import sys
from pathlib import Path

from sphinx.util import logging

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # benchmarks are not installed

from benchmarks import report

NOTE = """\
```{{note}}
These figures come from commit {commit} of the package, which has changed since.
```

"""


def note_on(name):
    """Return the note on the result of a question, or nothing if it is up to date."""
    result = ROOT / "benchmarks" / "results" / f"{name}.json"
    if not report.is_stale(result):
        return ""
    where = json.loads(result.read_text("utf-8"))["environment"]
    return NOTE.format(commit=where["commit"])


def mark_stale_results(app, docname, source):
    """Put the note between the title of a benchmark's page and its text."""
    folder, _, name = docname.rpartition("/")
    if folder != "benchmarks":
        return
    note = note_on(name)
    if note and "dev" not in app.config.release:
        logging.getLogger(__name__).warning(
            "benchmarks/results/%s.json does not come from this package: run `python -m "
            "benchmarks %s`",
            name,
            name,
            location=docname,
        )
    title, _, text = source[0].partition("\n")
    source[0] = f"{title}\n\n{note}{text}"


def setup(app):
    app.connect("source-read", mark_stale_results)
    return {"parallel_read_safe": True}
