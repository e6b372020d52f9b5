"""AnnData in and out: programs of cells, and consensus clusters, written into the object itself."""

from typing import Any

import numpy as np

from nmfcluster._utils.sampling import count_non_integers
from nmfcluster._utils.storage import row_blocks, vstack
from nmfcluster._utils.validation import format_value
from nmfcluster.consensus import NMFConsensus
from nmfcluster.meta import NMFMetaCluster

__all__ = ["consensus", "programs"]

# Rows of a file that are read at a time.
_ROWS = 4096


def programs(
    adata: Any,
    n_clusters: int,
    *,
    layer: str | None = None,
    batch_key: str | None = None,
    mask_var: Any = "auto",
    key_added: str = "nmf",
    **parameters: Any,
) -> NMFMetaCluster:
    """Find the programs of cells by `NMFMetaCluster`, and write them into an AnnData.

    Parameters
    ----------
    adata : AnnData of shape (n_obs, n_vars)
        Also a view of one, or one whose file is open: ``X`` of that is read by blocks of rows.
    n_clusters : int
        Number of programs.
    layer : str, default=None
        The layer that holds the table, such as one of counts; ``X`` by default.
    batch_key : str, default=None
        The column of ``obs`` with the sample or batch of a cell: each has runs of its own, see
        `NMFMetaCluster.fit`, whose `groups` it is.
    mask_var : str, array-like of bool or None, default="auto"
        The genes that are used, or the column of ``var`` that says so; None: all. By default those
        that are "highly_variable", if ``var`` says which are.
    key_added : str, default="nmf"
        Under which name the programs are written.
    **parameters : dict
        Further parameters of `NMFMetaCluster`. Without a `loss` it is that of counts if all
        entries are whole numbers, and squares otherwise.

    Returns
    -------
    NMFMetaCluster
        The fitted model. This is written into `adata`:

        - ``obsm["X_nmf"]``: `factor_`, (n_obs, n_clusters);
        - ``varm["nmf"]``: `components_` transposed, (n_vars, n_clusters), 0 for genes that were not
          used;
        - ``uns["nmf"]``: `recurrence_`, and with a `batch_key` `groups_`, `presence_` and
          `shared_`; under "params" how it was made.

    Raises
    ------
    TypeError
        If `adata` is no AnnData.
    KeyError
        If there is no such layer or column.
    ValueError
        If the table or a parameter is not as `NMFMetaCluster` wants it.

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
    if isinstance(mask_var, str) and mask_var == "auto":
        mask_var = "highly_variable" if "highly_variable" in adata.var else None
    if mask_var is None:
        mask_var = np.ones(adata.n_vars, dtype=bool)
    elif isinstance(mask_var, str):
        mask_var = _get(adata, "var", mask_var)
    used = np.asarray(mask_var)
    if used.dtype != bool or used.shape != (adata.n_vars,):
        raise ValueError(
            f"mask_var must tell of {adata.n_vars} genes, by bool, which are used."
        )
    X = _read_matrix(adata, layer, used)
    groups = None
    if batch_key is not None:
        groups = _get(adata, "obs", batch_key).to_numpy()
    if "loss" not in parameters:
        parameters["loss"] = (
            "frobenius" if count_non_integers(X) else "kullback-leibler"
        )
    model = NMFMetaCluster(n_clusters, **parameters).fit(X, groups=groups)
    model._row_names_ = adata.obs_names
    model._column_names_ = adata.var_names[used]
    settings = {"layer": layer, "batch_key": batch_key, **model.get_params()}
    write_programs(adata, model, used, key_added, settings)
    return model


def write_programs(adata, model, used, key_added: str, settings) -> None:
    """Write the programs of a model of some genes into an AnnData, as `programs` describes."""
    components = model.components_
    loadings = np.zeros((adata.n_vars, len(components)), dtype=components.dtype)
    loadings[used] = components.T
    adata.obsm[f"X_{key_added}"] = model.factor_
    adata.varm[key_added] = loadings
    entry = {"params": _storable(settings)}
    for name in ("recurrence_", "groups_", "presence_", "shared_"):
        if hasattr(model, name):
            entry[name[:-1]] = getattr(model, name)
    adata.uns[key_added] = entry


def consensus(
    adata: Any,
    key: Any,
    n_clusters: int,
    *,
    key_added: str = "consensus",
    **parameters: Any,
) -> NMFConsensus:
    """Find clusters of cells by `NMFConsensus`, and write them into an AnnData.

    Parameters
    ----------
    adata : AnnData of shape (n_obs, n_vars)
    key : str or list of str
        Features in ``obsm``, such as "X_pca", which base clusterers label; or columns of ``obs``
        that label the cells, such as those of ``scanpy.tl.leiden`` at several resolutions.
    n_clusters : int
        Number of clusters.
    key_added : str, default="consensus"
        Under which name the clusters are written.
    **parameters : dict
        Further parameters of `NMFConsensus`.

    Returns
    -------
    NMFConsensus
        The fitted model. This is written into `adata`:

        - ``obs["consensus"]``: `labels_`, categories of text, missing for a cell in no cluster;
        - ``obs["consensus_confidence"]``: `confidence_`;
        - ``obsm["X_consensus"]``: `membership_`;
        - ``uns["consensus"]``: under "params" how it was made.

    Raises
    ------
    TypeError
        If `adata` is no AnnData.
    KeyError
        If there is no such key.
    ValueError
        If a parameter is not as `NMFConsensus` wants it.

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
    if isinstance(key, str):
        X = _get(adata, "obsm", key)
    else:
        columns = [_get(adata, "obs", name).to_numpy() for name in key]
        X = np.array(columns, dtype=object).T
        parameters = {"affinity": "partitions", **parameters}
    model = NMFConsensus(n_clusters, **parameters).fit(X)
    names = np.array([*map(str, range(n_clusters)), None], dtype=object)
    adata.obs[key_added] = names[model.labels_]
    adata.obs[key_added] = adata.obs[key_added].astype("category")
    adata.obs[f"{key_added}_confidence"] = model.confidence_
    adata.obsm[f"X_{key_added}"] = model.membership_
    adata.uns[key_added] = {"params": _storable({"key": key, **model.get_params()})}
    return model


def _check_annotated(adata, name):
    """Raise a TypeError unless `adata` is an AnnData."""
    if not all(hasattr(adata, part) for part in ("X", "obsm", "varm", "uns")):
        is_mudata = hasattr(adata, "mod")
        cure = "one of its modalities, mdata['rna']" if is_mudata else "an AnnData"
        raise TypeError(
            f"{name} needs an AnnData, got {format_value(adata)}: give {cure}."
        )


def _get(adata, where, key):
    """Return the value of a key of `adata.where`."""
    mapping = getattr(adata, where)
    if key not in mapping:
        there = ", ".join(map(str, mapping.keys())) or "nothing"
        raise KeyError(f"{key!r} is not in adata.{where}, which has {there}.")
    return mapping[key]


def _read_matrix(adata, layer, used):
    """Return the matrix of some genes; of an open file by blocks of rows, to save memory."""
    source = adata.X if layer is None else _get(adata, "layers", layer)
    if source is None:
        raise ValueError("adata has no X: name a layer.")
    blocks = row_blocks(adata.n_obs, _ROWS) if adata.isbacked else [slice(None)]
    parts = [source[rows] if used.all() else source[rows][:, used] for rows in blocks]
    return vstack(parts)


def _storable(settings):
    """Return settings as a file holds them: numbers and texts, None left out."""
    return {
        name: value if isinstance(value, bool | int | float | str) else str(value)
        for name, value in settings.items()
        if value is not None
    }
