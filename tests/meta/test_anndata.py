"""The recipe of the guide for AnnData objects."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from nmfcluster import NMFMetaCluster
from nmfcluster.datasets import make_programs
from nmfcluster.metrics import match_components

anndata = pytest.importorskip("anndata")


@pytest.fixture
def add_programs(monkeypatch, request):
    monkeypatch.syspath_prepend(request.config.rootpath / "docs" / "snippets")
    monkeypatch.delitem(sys.modules, "anndata_programs", raising=False)
    from anndata_programs import add_programs

    return add_programs


@pytest.mark.parametrize("kind", [np.asarray, sp.csc_matrix])
def test_programs_are_found_and_written_with_the_object(kind, add_programs, tmp_path):
    X, _, H = make_programs(60, 80, 3, random_state=0)
    adata = anndata.AnnData(kind(X.astype(np.float32)), layers={"counts": kind(X.astype(float))})
    adata.var_names = [f"gene{j}" for j in range(80)]
    adata.obs_names = [f"cell{i}" for i in range(60)]
    model = add_programs(adata, 3, layer="counts", n_estimators=3, random_state=0)
    assert match_components(H, model.components_)[1].min() > 0.9
    adata.write_h5ad(tmp_path / "cells.h5ad")
    back = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert_array_equal(back.obsm["X_programs"], model.membership_)
    assert_array_equal(back.varm["programs"].T, model.components_)
    assert_array_equal(back.obs["program"].astype(int), model.labels_)
    assert set(back.uns["programs"]["markers"].ravel()) <= set(adata.var_names)


def test_views_and_frames_of_an_object_are_tables():
    X = make_programs(60, 80, 3, random_state=0)[0].astype(float)
    adata = anndata.AnnData(sp.csr_matrix(X))
    adata.obs_names = [f"cell{i}" for i in range(60)]
    part = adata[:40, ::2]
    model = NMFMetaCluster(3, n_estimators=3, loss="kullback-leibler", random_state=0)
    expected = model.fit(sp.csr_array(X[:40, ::2])).components_
    assert_allclose(model.fit(part.X).components_, expected, rtol=1e-10)
    usages, programs = model.fit(part.to_df()).to_frames()
    assert list(usages.index) == list(part.obs_names)
    assert list(programs.columns) == list(part.var_names)


def test_an_object_itself_is_no_table():
    adata = anndata.AnnData(np.ones((4, 3)))
    with pytest.raises((TypeError, ValueError), match="X"):
        NMFMetaCluster(2).fit(adata)
