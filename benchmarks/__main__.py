"""Answer one question: `python -m benchmarks QUESTION`, for example `python -m benchmarks papers`.

papers, protocols, peers, scale and solvers are about consensus clustering; documents, constraints
and constraint_scale about clustering under constraints; fusion and fusion_scale about clustering by
several similarities; meta and meta_scale about the clusters that recur in many runs of NMF.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks import questions

RESULTS = Path(__file__).with_name("results")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("question", choices=questions.NAMES)
    parser.add_argument("--quick", action="store_true", help="toy sizes, in seconds")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    chosen = parser.parse_args(arguments)
    module = importlib.import_module(f"benchmarks.questions.{chosen.question}")
    module.run(chosen.quick, chosen.out)


if __name__ == "__main__":
    main()
