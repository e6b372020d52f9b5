"""Find gene programs or consensus clusters of cells, and store them in an AnnData."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from nmfcluster._utils.sampling import count_non_integers
from nmfcluster._utils.storage import row_blocks, stored_values, vstack
from nmfcluster._utils.validation import format_value, warn
from nmfcluster.consensus import NMFConsensus
from nmfcluster.meta import NMFMetaCluster

__all__ = ["consensus", "programs"]

# Number of rows of an open file that are read at a time.
_ROWS = 4096
# Number of entries of genes outside of the fit that are read at a time: 256 MiB in float32.
_ENTRIES = 2**26


def programs(
    adata: Any,
    n_clusters: int,
    *,
    layer: str | None = None,
    batch_key: str | None = None,
    mask_var: Any = "auto",
    key_added: str = "nmf",
    all_genes: bool = True,
    **parameters: Any,
) -> NMFMetaCluster:
    """Find gene programs with `NMFMetaCluster`, and store them in an AnnData.

    Parameters
    ----------
    adata : AnnData of shape (n_obs, n_vars)
        Data with one row per cell. It can be a view or a backed file, whose ``X`` is read in
        blocks of rows.
    n_clusters : int
        Number of programs. A larger number gives finer programs;
        `nmfcluster.model_selection.sweep_n_clusters` helps to choose it.
    layer : str, default=None
        The layer to fit, such as "counts"; ``X`` by default. If ``X`` does not hold counts but a
        layer does, a warning names this layer. There is no warning if `loss` is "frobenius".
    batch_key : str, default=None
        The column of ``obs`` with the sample or batch of each cell. It becomes the `groups` of
        `NMFMetaCluster.fit`: each sample or batch is fitted separately, and the programs of all
        are then combined. By default, all cells are fitted together.
    mask_var : str, array-like of bool or None, default="auto"
        The genes to fit, as booleans or as the name of a column of ``var``; None fits all. By
        default, the column "highly_variable" is used if ``var`` has it, and all genes otherwise.
    key_added : str, default="nmf"
        Name under which the programs are stored. Programs of an earlier call are replaced. If the
        name is in use for anything else, an error is raised.
    all_genes : bool, default=True
        Whether to extend the programs to the genes that were not fitted, by
        `NMFMetaCluster.components_of`. If False, which saves time, programs are 0 in these genes.
    **parameters : dict
        Further parameters of `NMFMetaCluster`. The default `loss` is "kullback-leibler" if at
        least half of the entries above 0 are integers, and "frobenius" otherwise.

    Returns
    -------
    NMFMetaCluster
        The fitted model. The function also adds to `adata`, under the default `key_added`:

        - ``obsm["X_nmf"]``: `factor_`, the strength of every program in every cell, of shape
          (n_obs, n_clusters);
        - ``varm["nmf"]``: the programs, `components_` transposed, over all genes, of shape
          (n_vars, n_clusters);
        - ``uns["nmf"]``: `recurrence_`, and the parameters under "params". If `batch_key` is
          given, also `groups_`, `presence_` and `shared_`.

    Raises
    ------
    TypeError
        If `adata` is not an AnnData, or `key_added` or a key of a layer or column is not a str.
    KeyError
        If a layer or a column does not exist.
    ValueError
        If `NMFMetaCluster` rejects the data matrix or a parameter, or if `key_added` is in use for
        something else. All names are checked before the fit.

    Examples
    --------
    >>> import anndata
    >>> from nmfcluster.anndata import programs
    >>> from nmfcluster.datasets import make_programs
    >>> adata = anndata.AnnData(make_programs(60, 40, 2, random_state=0)[0].astype("float32"))
    >>> model = programs(adata, 2, random_state=0)
    >>> adata.obsm["X_nmf"].shape, adata.varm["nmf"].shape
    ((60, 2), (40, 2))
    """
    _check_annotated(adata, "programs")
    check_programs(adata, key_added)
    used = _read_mask(adata, mask_var)
    groups = None
    if batch_key is not None:
        column = _get(adata, "obs", batch_key, "batch_key")
        if column.isna().any():
            raise ValueError(
                f"batch_key={batch_key!r} has no value for {int(column.isna().sum())} cells, and "
                f"each needs one: drop them, adata[adata.obs[{batch_key!r}].notna()]."
            )
        groups = column.to_numpy()
    X = _read_matrix(adata, layer, np.flatnonzero(used))
    loss = _choose_loss(adata, X, layer, parameters.get("loss"))
    model = NMFMetaCluster(n_clusters, **{**parameters, "loss": loss})
    model.fit(X, groups=groups)
    model._row_names_ = adata.obs_names
    model._column_names_ = adata.var_names[used]
    settings = {"layer": layer, "batch_key": batch_key, **model.get_params()}
    loadings = np.zeros((adata.n_vars, n_clusters), dtype=model.components_.dtype)
    loadings[used] = model.components_.T
    others = np.flatnonzero(~used) if all_genes else used[:0]
    for block in row_blocks(len(others), max(1, _ENTRIES // adata.n_obs)):
        genes = others[block]
        loadings[genes] = model.components_of(_read_matrix(adata, layer, genes)).T
    write_programs(adata, model, loadings, key_added, settings)
    return model


def check_programs(adata, key_added):
    """Raise an error unless `programs` can write its results under this key."""
    _check_targets(adata, key_added, _of_programs(key_added), "programs")


def write_programs(adata, model, loadings, key_added: str, settings) -> None:
    """Store a model and its programs, (n_vars, k), in an AnnData, as `programs` does."""
    entry = {"params": _storable(settings, "programs")}
    for name in ("recurrence_", "groups_", "presence_", "shared_"):
        if hasattr(model, name):
            value = getattr(model, name)
            entry[name[:-1]] = value.astype(str) if value.dtype == object else value
    for where, key in _of_programs(key_added):
        value = {"obsm": model.factor_, "varm": loadings, "uns": entry}[where]
        getattr(adata, where)[key] = value


def _of_programs(key_added):
    """Return the places to which programs are written: a part of the AnnData and a key each."""
    return [("obsm", f"X_{key_added}"), ("varm", key_added), ("uns", key_added)]


def consensus(
    adata: Any,
    key: Any,
    n_clusters: int,
    *,
    key_added: str = "consensus",
    **parameters: Any,
) -> NMFConsensus:
    """Find clusters of cells with `NMFConsensus`, and store them in an AnnData.

    Parameters
    ----------
    adata : AnnData of shape (n_obs, n_vars)
        Data with one row per cell.
    key : str or list of str
        A str is the key of features in ``obsm``, such as "X_pca". They are clustered many times,
        and the clusterings combined. A list contains columns of ``obs`` with existing clusterings,
        such as those of ``scanpy.tl.leiden`` at several resolutions.
    n_clusters : int
        Number of clusters of the consensus.
    key_added : str, default="consensus"
        Name under which the clusters are stored. Clusters of an earlier call are replaced. If the
        name is in use for anything else, such as the input, an error is raised.
    **parameters : dict
        Further parameters of `NMFConsensus`.

    Returns
    -------
    NMFConsensus
        The fitted model. The function also adds to `adata`, under the default `key_added`:

        - ``obs["consensus"]``: `labels_` as categories; a cell in no cluster has a missing value;
        - ``obs["consensus_confidence"]``: `confidence_`, how clearly a cell belongs to its
          cluster;
        - ``obsm["X_consensus"]``: `membership_`, of shape (n_obs, n_clusters);
        - ``uns["consensus"]``: the parameters under "params".

    Raises
    ------
    TypeError
        If `adata` is not an AnnData, or a key is not a str.
    KeyError
        If a key does not exist.
    ValueError
        If `NMFConsensus` rejects a parameter, or if `key_added` is in use for the input or
        something else. All names are checked before the fit.

    Examples
    --------
    >>> import anndata, numpy as np
    >>> from nmfcluster.anndata import consensus
    >>> adata = anndata.AnnData(np.ones((6, 1)), obs={"a": [*"xxxxyy"], "b": [*"ppppqq"]})
    >>> model = consensus(adata, ["a", "b"], 2, random_state=0)
    >>> adata.obs["consensus"].tolist()
    ['0', '0', '0', '0', '1', '1']
    """
    _check_annotated(adata, "consensus")
    targets = [
        ("obs", key_added),
        ("obs", f"{key_added}_confidence"),
        ("obsm", f"X_{key_added}"),
        ("uns", key_added),
    ]
    if isinstance(key, str):
        sources = [("obsm", key)]
        X = _get(adata, "obsm", key, "key")
    else:
        if np.ndim(key) != 1 or not len(key):
            raise TypeError(
                "key must be a key of obsm, such as 'X_pca', or a list of columns of obs, "
                f"got {format_value(key)}."
            )
        sources = [("obs", name) for name in key]
        columns = [_get(adata, "obs", name, "key").to_numpy() for name in key]
        X = np.array(columns, dtype=object).T
        parameters = {"affinity": "partitions", **parameters}
    _check_targets(adata, key_added, targets, "consensus", sources)
    model = NMFConsensus(n_clusters, **parameters).fit(X)
    names = np.array([*map(str, range(n_clusters)), None], dtype=object)
    adata.obs[key_added] = names[model.labels_]
    adata.obs[key_added] = adata.obs[key_added].astype("category")
    adata.obs[f"{key_added}_confidence"] = model.confidence_
    adata.obsm[f"X_{key_added}"] = model.membership_
    settings = _storable({"key": key, **model.get_params()}, "consensus")
    adata.uns[key_added] = {"params": settings}
    return model


def _check_annotated(adata, name):
    """Raise a TypeError unless `adata` is an AnnData."""
    if not all(hasattr(adata, part) for part in ("X", "obsm", "varm", "uns")):
        is_mudata = hasattr(adata, "mod")
        cure = "one of its modalities, mdata['rna']" if is_mudata else "an AnnData"
        raise TypeError(
            f"{name} needs an AnnData, got {format_value(adata)}: pass {cure}."
        )


def _check_targets(adata, key_added, targets, function, sources=()):
    """Raise an error if writing results would replace anything but earlier results.

    `targets` and `sources` are pairs of a part of the AnnData and a key in it.
    """
    if not isinstance(key_added, str):
        raise TypeError(f"key_added must be a str, got {format_value(key_added)}.")
    if key_added in ("", ".") or "/" in key_added or "\0" in key_added:
        raise ValueError(
            f"key_added={key_added!r} cannot be a key in a file: choose a name without '/'."
        )
    earlier = adata.uns.get(key_added)
    settings = earlier.get("params") if isinstance(earlier, Mapping) else None
    is_own = isinstance(settings, Mapping) and settings.get("function") == function
    for where, key in targets:
        if (where, key) in sources or (key in getattr(adata, where) and not is_own):
            raise ValueError(
                f"key_added={key_added!r} would replace adata.{where}[{key!r}]: give "
                "another name, or delete this entry first."
            )


def _get(adata, where, key, name):
    """Return the entry of `adata.where` under a key, which the parameter `name` gave."""
    if not isinstance(key, str):
        raise TypeError(
            f"{name} must be a str, a key of adata.{where}, got {format_value(key)}."
        )
    mapping = getattr(adata, where)
    if key not in mapping:
        there = ", ".join(map(str, mapping.keys())) or "nothing"
        raise KeyError(f"{key!r} is not in adata.{where}, which has {there}.")
    return mapping[key]


def _read_mask(adata, mask_var):
    """Return which genes are used, (n_vars,)."""
    if isinstance(mask_var, str) and mask_var == "auto":
        mask_var = "highly_variable" if "highly_variable" in adata.var else None
    if mask_var is None:
        return np.ones(adata.n_vars, dtype=bool)
    name = "mask_var"
    if isinstance(mask_var, str):
        name = f"mask_var, adata.var[{mask_var!r}],"
        mask_var = _get(adata, "var", mask_var, "mask_var")
    used = np.asarray(mask_var)
    if used.dtype != bool or used.shape != (adata.n_vars,) or not used.any():
        raise ValueError(
            f"{name} must hold True or False for each of {adata.n_vars} genes, and True for at "
            "least one: replace missing values by False."
        )
    return used


def _read_matrix(adata, layer, genes):
    """Return the columns of some genes; an open file is read in blocks of rows to save memory."""
    source = adata.X if layer is None else _get(adata, "layers", layer, "layer")
    if source is None:
        raise ValueError("adata has no X: pass the name of a layer.")
    blocks = row_blocks(adata.n_obs, _ROWS) if adata.isbacked else [slice(None)]
    is_whole = len(genes) == adata.n_vars
    parts = [source[rows] if is_whole else source[rows][:, genes] for rows in blocks]
    return vstack(parts)


def _choose_loss(adata, X, layer, loss):
    """Return the loss to fit X with, and warn if the values of X do not suit this loss."""
    name = "adata.X" if layer is None else f"adata.layers[{layer!r}]"
    values = stored_values(X)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, got dtype {values.dtype}.")
    n_negative = np.count_nonzero(values < 0)
    positive = values[values > 0]
    n_positive = len(positive)
    n_fractions = count_non_integers(positive)
    found = (
        f"{n_fractions:,} of {n_positive:,} entries above 0 in {name} are not integers"
    )
    cures = [f"layer={key!r}" for key in adata.layers if _are_counts(adata.layers[key])]
    if adata.raw is not None and _are_counts(adata.raw.X):
        cures.append("adata.raw.to_adata()")
    if n_negative:
        cure = " or ".join(cures) or "counts, or values from before they were scaled"
        raise ValueError(
            f"{name} must be nonnegative, and has {n_negative:,} entries below 0, as after "
            f"scaling: pass {cure}."
        )
    if 2 * n_fractions <= n_positive:
        if n_fractions and loss is None:
            warn(
                f"{found}, but the loss is 'kullback-leibler', which is for counts. Round them, "
                "or pass loss='frobenius'."
            )
        return loss or "kullback-leibler"
    if layer is None and cures and loss != "frobenius":
        warn(
            f"{found}: it looks normalised, which blurs programs. Pass {' or '.join(cures)}, "
            "which holds counts, or loss='frobenius' to fit X as it is."
        )
    return loss or "frobenius"


def _are_counts(matrix):
    """Return whether the first rows of a matrix hold nonnegative integers only."""
    values = stored_values(matrix[:_ROWS])
    return not count_non_integers(values) and bool(np.all(values >= 0))


def _storable(settings, function):
    """Return settings as numbers and strings, which a file can store, without those of None."""
    simple = bool | int | float | str | np.bool_ | np.number
    stored = {
        name: value if isinstance(value, simple) else str(value)
        for name, value in settings.items()
        if value is not None
    }
    return {**stored, "function": function}
