"""Questions by name; `run(quick, out)` of each module writes its three files to a folder."""

from __future__ import annotations

NAMES = (
    "everyday",
    "features",
    "papers",
    "regimes",
    "scale",
    "documents",
    "pairs_everywhere",
    "wrong_pairs",
    "asked_pairs",
    "affinities",
    "fusion",
    "fusion_noise",
    "meta",
    "recurrence",
    "programs",
    "across",
    "counts_scale",
    "devices",
    "assignments",
    "how_many_programs",
    "how_many_clusters",
    "distributed",
)
