"""What several tests take from private modules: named once, so that a move changes one line.

They compare it with formulas, or start from it; all else is tested through what is public.
"""

from nmfcluster._cli.files import read_file, read_pairs
from nmfcluster._cli.main import main
from nmfcluster._optim.initialization import leading_eigenpairs, spectral_start
from nmfcluster._optim.multiplicative import multiplicative_gsg, multiplicative_trinmf
from nmfcluster._optim.run import Solution, SolverConfig, iterate, loss_of, run_starts
from nmfcluster._optim.symmetric import (
    QUARTIC_BOUND,
    SymmetricObjective,
    bregman_nmf,
    factorize,
)
from nmfcluster._utils import parallel
from nmfcluster._utils.labels import encode_labels
from nmfcluster._utils.linalg import share_blocks
from nmfcluster._utils.order import canonical_order
from nmfcluster._utils.parallel import one_blas_thread, run_calls
from nmfcluster._utils.sampling import thin_counts
from nmfcluster._utils.validation import format_count, pairwise_input

__all__ = [
    "QUARTIC_BOUND",
    "Solution",
    "SolverConfig",
    "SymmetricObjective",
    "bregman_nmf",
    "canonical_order",
    "encode_labels",
    "factorize",
    "format_count",
    "iterate",
    "leading_eigenpairs",
    "loss_of",
    "main",
    "multiplicative_gsg",
    "multiplicative_trinmf",
    "one_blas_thread",
    "pairwise_input",
    "parallel",
    "read_file",
    "read_pairs",
    "run_calls",
    "run_starts",
    "share_blocks",
    "spectral_start",
    "thin_counts",
]
