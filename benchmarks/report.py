"""A result as JSON, as Markdown tables and as a picture."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from threadpoolctl import threadpool_info

import nmfcluster

Row = dict[str, Any]

ROW_DEPTH = (
    3  # levels of nesting above a row: the file, "tables" or "details", and one table
)
# Okabe and Ito's, which colour-blind readers can tell apart, and four for many methods
COLOURS = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]
COLOURS += ["0.5", "0.15", "#7A4B2A", "#882255"]
ROOT = Path(__file__).parent.parent  # of the checkout
_STARTED = time.perf_counter()  # when the process that answers a question began


def environment() -> dict[str, Any]:
    """Return the versions and the machine that results may depend on, and the minutes so far."""
    blas = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "date": date.today().isoformat(),
        "nmfcluster": nmfcluster.__version__,
        "commit": commit(),
        "package": package_digest(),
        "minutes": round((time.perf_counter() - _STARTED) / 60, 1),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "cores": os.cpu_count(),
        "blas threads": max((pool["num_threads"] for pool in blas), default=1),
    }


def commit() -> str:
    """Return the last commit of the package in this checkout, with a plus if it was changed since.

    The benchmarks, their results and the pages that show them may come after that commit: they
    change no figure that an existing question measures.
    """
    package = ["--", "nmfcluster"]
    changed = _git("status", "--porcelain", *package)
    last = _git("log", "-1", "--format=%h", *package)
    if not last:  # no git, or no checkout
        return "unknown"
    return f"{last}+" if changed else last


def package_digest() -> str:
    """Return a digest of the package's files, which is the same in a copy without git's history."""
    digest = hashlib.sha256()
    folder = ROOT / "nmfcluster"
    for file in sorted(folder.rglob("*.py")):
        digest.update(file.relative_to(folder).as_posix().encode())
        digest.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return digest.hexdigest()[
        :12
    ]  # 48 bits: two versions of the package never share them


def is_stale(result: Path) -> bool:
    """Return whether a result is missing, or of a package other than the one in this checkout.

    A result of a package with changes that were not committed is stale, too: no commit has it.
    """
    if not result.exists():
        return True
    where = json.loads(result.read_text("utf-8"))["environment"]
    of_a_commit = not where["commit"].endswith("+")
    return not (of_a_commit and where.get("package") == package_digest())


def _git(*arguments: str) -> str:
    try:
        told = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return told.stdout.strip()


def write(
    out: Path,
    name: str,
    caption: str,
    tables: Mapping[str, Sequence[Row]],
    draw: Callable[[Any], None],
    notes: Sequence[str] = (),
    skipped: dict[str, str] | None = None,
    details: Mapping[str, Sequence[Row]] | None = None,
    packages: Mapping[str, str] | None = None,
) -> list[Path]:
    """Write NAME.json, NAME.md and NAME.png into `out` and print the Markdown.

    Parameters
    ----------
    out : Path
    name : str
    caption : str
        What was measured, in how many repeats.
    tables : dict of heading: rows
    draw : callable
        Draws on a matplotlib figure.
    notes : sequence of str, default=()
        Written below the tables.
    skipped : dict of name: reason, default=None
        Data and methods that are missing.
    details : dict of heading: rows, default=None
        Tables for the JSON file alone.
    packages : dict of method: str, default=None
        Names and versions of the other packages that methods come from, for the JSON file.
    """
    out.mkdir(parents=True, exist_ok=True)
    where, skipped = environment(), skipped or {}
    if packages:
        where["packages"] = dict(packages)
    text = [caption, _sentence(where)]
    for heading, rows in tables.items():
        text += [f"**{heading}**", markdown(rows)]
    text += notes
    if skipped:
        text.append(
            "Not run:\n\n" + "\n".join(f"- {k}: {v}" for k, v in skipped.items())
        )
    body = "\n\n".join(text) + "\n"
    content = {
        "caption": caption,
        "environment": where,
        "tables": tables,
        "details": details or {},
        "notes": list(notes),
        "skipped": skipped,
    }
    files = [out / f"{name}.{kind}" for kind in ("json", "md", "png")]
    files[0].write_text(as_json(content), encoding="utf-8")
    files[1].write_text(body, encoding="utf-8")
    _picture(files[2], draw)
    print(body)
    return files


def as_json(content: dict[str, Any]) -> str:
    """Return JSON text in which every row of a table is one line."""
    return _laid_out(json.loads(json.dumps(content, default=_plain))) + "\n"


def _laid_out(value: Any, depth: int = 0) -> str:
    """Return JSON text that has every item on a line of its own, down to the rows."""
    if depth == ROW_DEPTH or not value or not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        start, end = "{}"
        labels = [json.dumps(key, ensure_ascii=False) + ": " for key in value]
        items = list(value.values())
    else:
        start, end = "[]"
        labels, items = [""] * len(value), value
    margin = " " * depth
    lines = [
        f"{margin} {label}{_laid_out(item, depth + 1)}"
        for label, item in zip(labels, items, strict=True)
    ]
    return "\n".join((start, ",\n".join(lines), margin + end))


def by_run(keys: Sequence[str], runs: Mapping[Any, Sequence[Any]]) -> list[Row]:
    """Return rows for the JSON file: the names of a key, and of its runs every figure, or ARI.

    Raises ValueError if a column of `keys` is named like a figure, which would replace it.
    """

    def figures(own: Sequence[Any]) -> Row:
        if isinstance(own[0], dict):
            return {figure: [run[figure] for run in own] for figure in own[0]}
        return {"ARI": own}

    rows = []
    for key, own in runs.items():
        if own:
            names, measured = dict(zip(keys, key, strict=True)), figures(own)
            if both := names.keys() & measured.keys():
                raise ValueError(f"columns and figures share names: {sorted(both)}")
            rows.append(names | measured)
    return rows


def markdown(rows: Sequence[Row]) -> str:
    """Return rows as a table; where a row lacks a key, its cell is empty."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [columns, ["---"] * len(columns)]
    lines += [[cell(row.get(column, "")) for column in columns] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(value: Any) -> str:
    """Return a float with three digits, or all digits before the point; other values in full."""
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        if value != 0 and abs(value) < 1e-3:
            return f"{value:.1e}"
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int | np.integer) else str(value)


def panels(figure: Any, titles: Sequence[str]) -> tuple[list[Any], Any]:
    """Return axes with these titles, and further axes for the legend."""
    parts = len(titles) + 1
    columns = 2 if parts in (2, 4) else 3
    rows = -(-parts // columns)
    figure.set_size_inches(3 * columns, 2.7 * rows + 0.3)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, title in zip(axes, titles, strict=False):
        ax.set_title(title, fontsize="small")
    for ax in axes[len(titles) :]:
        ax.axis("off")
    return list(axes[: len(titles)]), axes[len(titles)]


def _sentence(where: Row) -> str:
    told = ("nmfcluster", "commit", "python", "numpy", "scipy", "scikit-learn")
    versions = ", ".join(f"{package} {where[package]}" for package in told)
    threads = where["blas threads"]
    return (
        f"{where['date']}; {where['minutes']:g} minutes on {where['cores']} cores, {threads} BLAS "
        f"threads; {versions}."
    )


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _picture(path: Path, draw: Callable[[Any], None]) -> None:
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    drawn = BytesIO()
    with rc_context(_style()):
        figure = Figure(figsize=(9, 4.5), layout="constrained")
        FigureCanvasAgg(figure)
        draw(figure)
        _legends_above(figure)
        _label_logarithms(figure)
        figure.savefig(drawn, dpi=120)
    # a third of the size
    Image.open(drawn).convert("RGB").quantize(256).save(path, optimize=True)


def _legends_above(figure: Any) -> None:
    """Put the legend of each plot above it, where it hides nothing, in as many columns as fit."""
    figure.draw_without_rendering()  # after which widths are known
    for ax in figure.axes:
        old = ax.get_legend()
        if old is None or not ax.axison:
            continue
        named, style = (
            ax.get_legend_handles_labels(),
            {"title": old.get_title().get_text() or None},
        )
        style |= {"fontsize": old.get_texts()[0].get_fontsize(), "frameon": False}
        old.remove()
        widest = ax.get_tightbbox().width
        for columns in range(len(named[1]), 0, -1):
            above = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": columns}
            if ax.legend(*named, **style, **above).get_window_extent().width <= widest:
                break


def _label_logarithms(figure: Any) -> None:
    """Name 1, 2 and 5 on short logarithmic axes and powers of ten on others; names overlap else."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    for ax in figure.axes:
        for axis in (ax.xaxis, ax.yaxis):
            if axis.get_scale() != "log":
                continue
            axis.set_minor_formatter(NullFormatter())
            low, high = sorted(axis.get_view_interval())
            if high < 50 * low:
                axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
                axis.set_major_formatter(StrMethodFormatter("{x:g}"))


def _style() -> dict[str, Any]:
    """Return how pictures look: the colours of the package, and letters for narrow screens."""
    from cycler import cycler

    return {
        "axes.prop_cycle": cycler(color=COLOURS),
        "font.size": 13.0,
        "legend.framealpha": 0.6,
        "lines.linewidth": 2.0,
        "lines.markersize": 7.0,
    }
