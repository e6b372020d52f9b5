"""Questions by name; each module has `run(quick, out)`, which writes its three files."""

from __future__ import annotations

NAMES = (
    "papers",
    "protocols",
    "peers",
    "scale",
    "solvers",
    "documents",
    "constraints",
    "constraint_scale",
    "fusion",
    "fusion_scale",
    "meta",
    "meta_scale",
)
