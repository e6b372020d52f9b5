"""What base clusterers are handed: floats, pairs of samples, or what only they can read.

A clusterer that was given is asked itself what it makes of NaN, of text, and of columns by name.
"""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline
from sklearn.utils import check_array

from nmfcluster._arrays import storage, tables
from nmfcluster._arrays.arguments import last_step, pairwise_input
from nmfcluster._arrays.order import canonical_order
from nmfcluster._compat import take_samples
from nmfcluster.partitions.spectral import GraphSpectral, LandmarkSpectral

Chosen = np.ndarray | None  # positions that were drawn; None: all

_ENTRIES = 2**20  # of pairs that are searched at a time: 8 MiB


def is_known(base: Any) -> bool:
    """Return whether a clusterer takes finite floats alone, and leaves them as they are."""
    plain = type(base) in (KMeans, MiniBatchKMeans, GraphSpectral, LandmarkSpectral)
    return plain and getattr(base, "copy_x", True)


def pairs_of(bases: list[Any], X: Any) -> str | None:
    """Return whether X holds "distances" or "similarities" of all pairs for clusterers, or neither.

    Raises
    ------
    ValueError
        If it is not the same for all of them, or X is not square.
    """
    kinds = {pairwise_input(base, X): base for base in bases}
    if len(kinds) > 1:
        got = " and ".join(sorted(kind or "features" for kind in kinds))
        raise ValueError(f"estimator must hold clusterers of one kind of X, got some of {got}.")
    [(kind, base)] = kinds.items()
    shape = np.shape(X)
    if kind is not None and (len(shape) != 2 or shape[0] != shape[1]):
        wanted = f"be square, of the {kind} of all samples, for estimator {base!r}"
        raise ValueError(f"X must {wanted}, got shape {shape}.")
    return kind


def checks_for(bases: list[Any], X: Any) -> tuple[dict[str, Any] | None, Any, str | None]:
    """Return how X is checked, see `checks_of`, X, and of what pairs it is, see `pairs_of`.

    A data frame of pairs gets its columns in the order of its rows.
    """
    known = all(map(is_known, bases))
    pairs = None if known else pairs_of(bases, X)
    X = tables.in_own_order(X, "X") if pairs else X
    handed_on = not known and pairs is None and _is_handed_on(X)
    return checks_of(bases, pairs, handed_on), X, pairs


def checks_of(bases: list[Any], pairs: str | None, handed_on: bool) -> dict[str, Any] | None:
    """Return options of scikit-learn's checks of X as floats; None: it is handed on as it is."""
    strict = pairs is not None or all(map(is_known, bases))
    return None if handed_on else {"ensure_all_finite": True if strict else "allow-nan"}


def _is_handed_on(X: Any) -> bool:
    """Return whether X is what only a clusterer can read: a data frame, or text."""
    if hasattr(X, "columns") or hasattr(X, "__dask_graph__"):
        return not hasattr(X, "__dask_graph__")
    try:
        array = np.asarray(X)
    except ValueError:  # rows of several lengths, which is said elsewhere
        return False
    text = array.dtype == object and any(isinstance(entry, str | dict) for entry in array.flat)
    return text or array.dtype.kind in "UST"


def as_it_is(X: Any, wanted: str = "one table", name: str = "X", **options: Any) -> Any:
    """Return a data frame, or an array of anything; `options` are further ones of `check_array`."""
    tables.check_opened(X, name, wanted)
    if hasattr(X, "columns"):
        tables.check_columns_differ(X, name)
        return X
    return check_array(X, dtype=None, ensure_all_finite=False, input_name=name, **options)


def float_type(X: Any) -> np.dtype | None:
    """Return the type of a table of floats; None for anything that is handed on as it is."""
    dtype = getattr(X, "dtype", None)
    return dtype if dtype in storage.FLOATS else None


def numbers_of(X: Any) -> Any:
    """Return a table of numbers that differ where samples do: by them these are put in order."""
    if float_type(X) is not None:
        return X
    array = np.asarray(X)
    if array.dtype.kind in "biuf":
        return array.astype(float)
    rows = [str(np.ravel(row).tolist()) for row in array.astype(object)]
    return np.unique(rows, return_inverse=True)[1].reshape(-1, 1).astype(float)


def seeded(estimator: Any, n_clusters: int, seed: int) -> dict[str, int]:
    """Return the parameters of a clusterer, or a pipeline, that differ between runs."""
    values = {"n_clusters": n_clusters, "random_state": seed}
    names = list(estimator.get_params(deep=True))
    own = {name: values[last] for name in names if (last := name.rpartition("__")[2]) in values}
    if not any(name.endswith("n_clusters") for name in own):
        prefix, clusterer = last_step(estimator)  # a step before may have components of its own
        if "n_components" in clusterer.get_params(deep=False):
            own[f"{prefix}n_components"] = n_clusters
    return own


def part_of(X: Any, samples: Chosen, features: Chosen, pairs: str | None, for_whom: Any) -> Any:
    """Return some samples and features of X, of pairs these of the samples; None: all.

    A clusterer that may write to it gets a copy.
    """
    if samples is None and features is None and not is_known(for_whom):
        samples = np.arange(X.shape[0])
    X = X if samples is None else take_samples(X, samples)
    features = samples if pairs else features
    return X if features is None else take_samples(X, features, axis=1)


def labels_of(
    estimator: Any, X: Any, X_train: Any, pairs: str | None, features: Chosen, labels: np.ndarray
) -> np.ndarray:
    """Return the labels of new samples: as predicted, or of the nearest that the run saw."""
    if pairs is not None:
        return labels_of_pairs(X, pairs, labels)
    part = part_of(X, None, features, None, estimator)
    if hasattr(estimator, "predict"):
        return np.asarray(estimator.predict(part))
    seen = np.flatnonzero(labels >= 0)
    train = part_of(X_train, seen, features, None, estimator)
    if isinstance(estimator, Pipeline) and not (is_finite(part) and is_finite(train)):
        train, part = map(estimator[:-1].transform, (train, part))  # into numbers
    train, part = (tables.read_table(T, ensure_all_finite="allow-nan") for T in (train, part))
    return labels[seen[nearest_samples(train, part)]]


def labels_of_pairs(X: Any, pairs: str, labels: np.ndarray) -> np.ndarray:
    """Return the labels of new samples by their pairs with all that were partitioned, X.

    Each has that of the nearest, or most similar, sample that the run saw; of several such the
    largest. It is -1 where a sparse X stores no pair of it.
    """
    seen, sign = np.flatnonzero(labels >= 0), -1.0 if pairs == "distances" else 1.0
    found = np.empty(X.shape[0], dtype=np.int64)
    for rows in storage.row_blocks(len(found), max(1, _ENTRIES // max(len(seen), 1))):
        part = storage.rows_of(X, rows)[:, seen]
        near = sign * storage.dense_with(part, -sign * np.inf)
        best = near.max(axis=1, keepdims=True)
        found[rows] = np.where((near == best) & (best > -np.inf), labels[seen], -1).max(axis=1)
    return found


def nearest_samples(X_train: Any, X: Any) -> np.ndarray:
    """Return the index of the nearest row of `X_train` for every row of `X`."""
    exponent, samples = storage.exponent_beyond(X_train, 2), canonical_order(X_train).samples
    metric = "minkowski" if is_finite(X_train) and is_finite(X) else "nan_euclidean"
    search = NearestNeighbors(n_neighbors=1, metric=metric)
    search.fit(storage.divided(X_train[samples], exponent))
    X = storage.stored_like(storage.divided(X, exponent), X_train)  # its trees want dense arrays
    return samples[search.kneighbors(X, return_distance=False)[:, 0]]  # the same one of ties


def is_finite(X: Any) -> bool:
    """Return whether X is a table of floats without NaN."""
    return float_type(X) is not None and not np.isnan(float(X.max()))
