"""Consensus clustering: one partition out of many (Li, Ding and Jordan, 2007)."""

from nmfcluster.consensus.estimator import NMFConsensus

__all__ = ["NMFConsensus"]
