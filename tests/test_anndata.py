"""AnnData in and out: what is written, what is read, and what is refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from internals import main
from numpy.testing import assert_allclose, assert_array_equal
from refusals import raises_naming, warns_naming

from nmfcluster import NMFConsensus, NMFMetaCluster
from nmfcluster.anndata import consensus, programs
from nmfcluster.datasets import make_programs
from nmfcluster.metrics import match_components

anndata = pytest.importorskip("anndata")
COUNTS, _, PROGRAMS = make_programs(90, 50, 3, random_state=0)
few = {"n_estimators": 3, "random_state": 0}


@pytest.fixture
def adata():
    made = anndata.AnnData(sp.csr_matrix(COUNTS.astype(np.float32)))
    made.obs["patient"] = np.repeat([*"abc"], 30)
    made.var["highly_variable"] = np.arange(50) % 5 > 0
    made.layers["log"] = np.log1p(COUNTS)
    return made


def test_programs_are_those_of_the_estimator_and_come_back_from_a_file(adata, tmp_path):
    used = adata.var["highly_variable"].to_numpy()
    model = programs(adata, 3, batch_key="patient", **few)
    table = sp.csr_array(COUNTS[:, used].astype(np.float32))
    alone = NMFMetaCluster(3, loss="kullback-leibler", **few)
    alone.fit(table, groups=adata.obs["patient"].to_numpy())
    assert_array_equal(model.components_, alone.components_)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert_allclose(back.obsm["X_nmf"], alone.factor_)
    assert_allclose(back.varm["nmf"][used], alone.components_.T)
    # the other genes are fitted with the usages as they are
    others = alone.components_of(COUNTS[:, ~used].astype(np.float32))
    assert_allclose(back.varm["nmf"][~used], others.T, rtol=1e-5)
    assert match_components(PROGRAMS, back.varm["nmf"].T)[1].min() > 0.95
    programs(adata, 3, batch_key="patient", all_genes=False, **few)
    assert not adata.varm["nmf"][~used].any()
    assert_allclose(back.uns["nmf"]["presence"], alone.presence_)
    assert back.uns["nmf"]["groups"].tolist() == [*"abc"]
    assert back.uns["nmf"]["params"]["loss"] == "kullback-leibler"
    usages, components = model.to_frames()
    assert usages.index.equals(adata.obs_names)
    assert components.columns.equals(adata.var_names[used])
    assert set(model.top_features(3)[0].ravel()) <= set(adata.var_names[used])


def test_open_files_layers_views_and_masks_are_read(adata, tmp_path, monkeypatch):
    whole = programs(adata, 3, mask_var=None, **few).components_
    adata.write_h5ad(tmp_path / "cells.h5ad")
    monkeypatch.setattr("nmfcluster.anndata._ROWS", 7)
    monkeypatch.setattr("nmfcluster.anndata._ENTRIES", 90 * 11)
    for mode in ("r", "r+"):
        backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed=mode)
        assert_array_equal(programs(backed, 3, mask_var=None, **few).components_, whole)
        with raises_naming(TypeError, "X", "X.to_memory()"):
            NMFMetaCluster(3).fit(backed.X)
        half = programs(backed, 3, mask_var=np.arange(50) < 20, **few)
        assert half.components_.shape == (3, 20)
        others = half.components_of(adata.X[:, 20:])
        assert_allclose(backed.varm["nmf"][20:], others.T, rtol=1e-5)
        backed.file.close()
    logs = programs(adata, 3, layer="log", mask_var=None, key_added="logs", **few)
    assert logs.loss == "frobenius"
    assert_array_equal(
        logs.components_, NMFMetaCluster(3, **few).fit(np.log1p(COUNTS)).components_
    )
    assert adata.obsm["X_logs"].shape == (90, 3)
    view = adata[:40]
    with pytest.warns(anndata.ImplicitModificationWarning):
        assert programs(view, 2, **few).factor_.shape == (40, 2)


def test_consensus_of_columns_and_of_features_is_that_of_the_estimator(adata, tmp_path):
    rng = np.random.default_rng(0)
    adata.obs["one"] = np.where(rng.random(90) < 0.1, "x", adata.obs["patient"])
    adata.obs["two"] = adata.obs["patient"].astype("category").cat.codes
    keys = ["one", "two", "patient"]
    model = consensus(adata, keys, 3, random_state=0)
    alone = NMFConsensus(3, affinity="partitions", random_state=0).fit(adata.obs[keys])
    assert_array_equal(model.labels_, alone.labels_)
    assert not adata.obsp
    adata.obsm["X_pca"] = np.log1p(COUNTS)[:, :5]
    features = consensus(
        adata, "X_pca", 3, key_added="by_pca", n_estimators=5, random_state=0
    )
    adata.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert_array_equal(back.obs["consensus"].astype(int), alone.labels_)
    assert_allclose(back.obs["by_pca_confidence"], features.confidence_)
    assert_allclose(back.obsm["X_by_pca"], features.membership_)
    adata.obs["one"] = adata.obs["one"].where(np.arange(90) > 0)
    adata.obs["two"] = np.where(np.arange(90) > 0, adata.obs["two"], -1)
    with warns_naming(UserWarning, "1 sample"):
        consensus(adata, ["one", "two"], 3, random_state=0)
    assert_array_equal(adata.obs["consensus"].isna(), np.arange(90) == 0)


def test_a_file_becomes_a_file_with_its_programs(adata, tmp_path, capsys):
    one, other = tmp_path / "cells.h5ad", tmp_path / "out.h5ad"
    adata.write_h5ad(one)
    main(["programs", str(one), "--clusters", "3", "--output", str(other)])
    assert f"wrote {other}, " in capsys.readouterr().out
    back = anndata.read_h5ad(other)
    model = NMFMetaCluster(3, loss="kullback-leibler", random_state=0).fit(adata.X)
    assert_allclose(back.obsm["X_nmf"], model.factor_)
    assert_allclose(back.varm["nmf"], model.components_.T)
    assert back.layers["log"].shape == (90, 50)
    for command, more in (("consensus", []), ("programs", ["--transpose"])):
        with pytest.raises(SystemExit):
            main([command, str(one), *more, "--clusters", "3", "--output", str(other)])
        assert "--output may end in .h5ad only for" in capsys.readouterr().err


@pytest.mark.parametrize(("where", "key"), [("obsm", "X_nmf"), ("varm", "nmf")])
def test_a_file_keeps_what_somebody_else_stored_under_the_name(
    where, key, adata, tmp_path, capsys, monkeypatch
):
    one, other = tmp_path / "cells.h5ad", tmp_path / "out.h5ad"
    arguments = ["programs", str(one), "--clusters", "2", "--output", str(other)]
    n_rows = {"obsm": adata.n_obs, "varm": adata.n_vars}[where]
    getattr(adata, where)[key] = np.ones((n_rows, 2))
    adata.write_h5ad(one)
    monkeypatch.setattr("nmfcluster._cli.commands._fit", None)  # before any work
    with pytest.raises(SystemExit):
        main(arguments)
    told = capsys.readouterr().err
    assert f"--output would replace {where}['{key}'] of the file" in told
    assert "key_added" not in told
    assert not other.exists()


def test_programs_of_an_earlier_file_are_replaced(adata, tmp_path):
    one, other = tmp_path / "cells.h5ad", tmp_path / "out.h5ad"
    adata.write_h5ad(one)
    main(["programs", str(one), "--clusters", "3", "--output", str(other)])
    again = ["programs", str(other), "--clusters", "2", "--force"]
    main([*again, "--output", str(other)])
    assert anndata.read_h5ad(other).obsm["X_nmf"].shape == (90, 2)


@pytest.mark.parametrize("function", [programs, consensus])
def test_nothing_is_replaced_but_results_of_the_same_function(adata, function):
    adata.obsm["X_pca"] = np.log1p(COUNTS)[:, :5]
    start = (adata,) if function is programs else (adata, "X_pca")
    function(*start, 2, key_added="own", **few)
    again = function(*start, 3, key_added="own", **few)
    assert adata.obsm["X_own"].shape == (90, 3)
    assert_array_equal(
        adata.obsm["X_own"],
        again.factor_ if function is programs else again.membership_,
    )
    other = consensus if function is programs else programs
    others = (adata, "X_own") if other is consensus else (adata,)
    before = adata.copy()
    with raises_naming(ValueError, "key_added", "X_own"):
        other(*others, 2, key_added="own", **few)
    with raises_naming(ValueError, "key_added", "X_pca"):
        function(*start, 2, key_added="pca", **few)
    if function is consensus:
        for key in ("X_own", ["own", "patient"]):
            with raises_naming(ValueError, "key_added", "own"):
                consensus(adata, key, 2, key_added="own", **few)
    assert adata.obs.equals(before.obs)
    for part in ("obsm", "varm", "uns"):
        mine, kept = getattr(adata, part), getattr(before, part)
        assert sorted(mine) == sorted(kept)
    assert_array_equal(adata.obsm["X_pca"], before.obsm["X_pca"])


@pytest.mark.parametrize("place", ["layers", "raw"])
def test_the_place_of_counts_is_named_where_x_holds_none(adata, place):
    log = anndata.AnnData(np.log1p(COUNTS))
    scaled = anndata.AnnData(np.log1p(COUNTS) - 1)
    for made in (log, scaled):
        if place == "layers":
            made.layers["umi"] = sp.csr_matrix(COUNTS)
        else:
            made.raw = adata
    cure = "layer='umi'" if place == "layers" else "adata.raw.to_adata()"
    for loss in ({}, {"loss": "kullback-leibler"}):
        with warns_naming(UserWarning, cure):
            programs(log, 3, **loss, **few)
    programs(log, 3, loss="frobenius", **few)  # chosen: without a warning
    with raises_naming(ValueError, cure):
        programs(scaled, 3, **few)
    if place == "layers":
        assert programs(log, 3, layer="umi", **few).loss == "kullback-leibler"


def test_an_entry_that_is_not_whole_leaves_the_loss_of_counts(adata):
    adata.X[0, 1] += 0.5
    with warns_naming(UserWarning, "1", "loss='frobenius'"):
        assert programs(adata, 3, **few).loss == "kullback-leibler"
    assert programs(adata, 3, layer="log", **few).loss == "frobenius"


def _with_missing(adata):
    half = np.arange(90) < 45
    adata.obs["patient"] = adata.obs["patient"].where(half)
    adata.var["highly_variable"] = (
        adata.var["highly_variable"].astype("boolean").where(half[:50])
    )
    return adata


class _Multi:
    mod = ()


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (
            lambda _: programs(COUNTS, 3),
            TypeError,
            ("programs", "AnnData", "array"),
        ),
        (
            lambda _: programs(_Multi(), 3),
            TypeError,
            "mdata['rna']",
        ),
        (
            lambda a: programs(a, 3, layer="no"),
            KeyError,
            ("'no'", "adata.layers"),
        ),
        (
            lambda a: programs(a, 3, batch_key="no"),
            KeyError,
            ("'no'", "adata.obs"),
        ),
        (lambda a: programs(a, 3, mask_var="no"), KeyError, ("'no'", "adata.var")),
        (
            lambda a: programs(a, 3, mask_var=[True]),
            ValueError,
            ("mask_var", "50"),
        ),
        (
            lambda a: programs(anndata.AnnData(obs=a.obs), 3),
            ValueError,
            ("adata", "X"),
        ),
        *(
            (lambda a, key=key: programs(a, 3, key_added=key), error, "key_added")
            for key, error in [
                (None, TypeError),
                ({}, TypeError),
                (3, TypeError),
                ("", ValueError),
                ("a/b", ValueError),
                (".", ValueError),
            ]
        ),
        (lambda a: programs(a, 3, batch_key=["patient"]), TypeError, "batch_key"),
        (lambda a: programs(a, 3, layer=3), TypeError, "layer"),
        (
            lambda a: programs(_with_missing(a), 3),
            ValueError,
            ("mask_var", "highly_variable", "50"),
        ),
        (
            lambda a: programs(_with_missing(a), 3, mask_var=None, batch_key="patient"),
            ValueError,
            ("batch_key", "patient", "45"),
        ),
        (lambda a: programs(a, 3, mask_var=np.zeros(50, bool)), ValueError, "mask_var"),
        (lambda a: consensus(a, [], 3), TypeError, "key"),
        (lambda a: consensus(a, None, 3), TypeError, "key"),
        (lambda a: consensus(a, [3], 3), TypeError, "key"),
        (
            lambda a: consensus(a, ["patient"], 3, key_added="a/b"),
            ValueError,
            "key_added",
        ),
        (
            lambda a: consensus(a, ["patient"], 3, key_added="patient"),
            ValueError,
            "key_added",
        ),
        (lambda a: consensus(a, "X_no", 3), KeyError, ("'X_no'", "adata.obsm")),
        (lambda a: consensus(a, ["no"], 3), KeyError, ("'no'", "adata.obs")),
    ],
)
def test_what_is_not_there_is_refused_by_name(adata, call, error, told):
    with raises_naming(error, told):
        call(adata)
