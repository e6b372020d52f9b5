"""How an error message says why no clustering satisfies all pairs."""

from __future__ import annotations

_N_SHOWN = 20  # samples that a message names before it leaves some out


def joined_apart(chain: list[int]) -> str:
    """Return the message for must-link pairs that join two samples that cannot be linked.

    Parameters
    ----------
    chain : list of int
        The samples along the must-link pairs, from the one to the other.
    """
    return (
        f"samples {chain[0]} and {chain[-1]} cannot be linked, but must-link pairs join "
        f"them: {_enumerated(chain, '-')}."
    )


def too_few_clusters(n_clusters: int, samples: list[int]) -> str:
    """Return the message for cannot-link pairs that need more clusters.

    Parameters
    ----------
    n_clusters : int
    samples : list of int
        For two clusters the samples of an odd cycle in its order, otherwise those of a clique.
    """
    named = _enumerated(samples, ", ")
    if n_clusters == 2:
        return (
            f"n_clusters=2 is too small: samples {named} are a cycle of odd length, in which each, "
            "or a sample that must be with it, cannot be linked to the next."
        )
    return (
        f"n_clusters={n_clusters} is too small: samples {named} need a cluster each, as no two of "
        "them, or samples that must be with them, can be linked."
    )


def _enumerated(samples: list[int], between: str) -> str:
    names = [str(sample) for sample in samples]
    if len(names) > _N_SHOWN:
        half = _N_SHOWN // 2
        names = [*names[:half], f"... ({len(names) - 2 * half} more) ...", *names[-half:]]
    return between.join(names)
