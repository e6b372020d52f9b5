"""Questions by name; `run(quick, out)` of each module writes its three files to a folder."""

from __future__ import annotations

NAMES = (
    "papers",
    "protocols",
    "peers",
    "literature",
    "regimes",
    "scale",
    "solvers",
    "documents",
    "constraints",
    "constraint_scale",
    "affinities",
    "choosing_by_pairs",
    "large",
    "fusion",
    "fusion_noise",
    "eta_by_stability",
    "fusion_objects",
    "fusion_scale",
    "distributed",
    "meta",
    "meta_scale",
    "programs",
    "counts_scale",
    "recurrence",
    "count_tables",
    "how_many_clusters",
    "how_many_programs",
    "number_of_programs",
)
