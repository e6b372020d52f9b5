"""Clustering by nonnegative matrix factorization, in scikit-learn's style."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmfcluster._compat import show_versions as show_versions
    from nmfcluster.consensus import NMFConsensus as NMFConsensus
    from nmfcluster.constraints import PairwiseConstraints as PairwiseConstraints
    from nmfcluster.fusion import SimilarityFusionNMF as SimilarityFusionNMF
    from nmfcluster.meta import NMFMetaCluster as NMFMetaCluster
    from nmfcluster.model_selection import choose_n_clusters as choose_n_clusters
    from nmfcluster.ssnmf import SSNMFClusterer as SSNMFClusterer
    from nmfcluster.stack import KernelStack as KernelStack
    from nmfcluster.stack import SimilarityStack as SimilarityStack

__version__ = "0.3.0"
_HOMES = {  # the module that defines each public name
    "KernelStack": "stack",
    "NMFConsensus": "consensus",
    "NMFMetaCluster": "meta",
    "PairwiseConstraints": "constraints",
    "SSNMFClusterer": "ssnmf",
    "SimilarityFusionNMF": "fusion",
    "SimilarityStack": "stack",
    "choose_n_clusters": "model_selection",
    "show_versions": "_compat",
}
__all__ = [*_HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    """Import a public name or a module on first access, as imports take long."""
    unknown = AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name.startswith("_"):
        raise unknown
    home = f"{__name__}.{_HOMES.get(name, name)}"
    try:
        module = import_module(home)
    except ModuleNotFoundError as error:
        if error.name != home:
            raise
        raise unknown from None
    value = getattr(module, name) if name in _HOMES else module
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
