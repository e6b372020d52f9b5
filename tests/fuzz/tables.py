"""Tables of every kind: what they hold, how they are stored, and what is wrong with them.

A `Table` is a description whose `repr` makes it again: what an example prints is a script.
"""

import itertools
import tempfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse as sp

FEATURES = (
    "blobs",
    "uniform",
    "integers",
    "constant",
    "repeated",
    "outlier",
    "equal",
    "zeros",
)
SIMILARITIES = (
    "rbf",
    "together",
    "blocks",
    "identity",
    "linear",
    "distances",
    "asymmetric",
    "nil",
)
LABELS = ("labels", "many labels", "one label")

FLOATS = ("float64", "float32", "float16", "longdouble")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint64", "bool")
NO_NUMBERS = ("complex128", "str", "bytes", "datetime64[D]", "timedelta64[s]", "words")
DTYPES = (*FLOATS, *INTEGERS, "object", *NO_NUMBERS)

ARRAYS = (
    "C",
    "F",
    "strided",
    "reversed",
    "readonly",
    "memmap",
    "big-endian",
    "matrix",
    "masked",
)
SPARSE = tuple(
    f"{kind}_{form}"
    for form in ("csr", "csc", "coo", "lil", "dok", "bsr", "dia")
    for kind in ("array", "matrix")
)
INDEXES = ("range", "shuffled", "words", "duplicate", "dates")
FRAMES = (
    *(f"pandas {index}" for index in INDEXES),
    "pandas nullable",
    "pandas category",
)
FRAMES += ("pandas string", "pandas sparse", "pandas twice", "pandas mixed", "polars")
LISTS = ("list", "tuple")
VECTORS = "columns"  # a list of label vectors
FORMS = (*ARRAYS, *SPARSE, *FRAMES, *LISTS)
FLAWS = (
    "nan",
    "inf",
    "-inf",
    "negative",
    "none",
    "a row of nan",
    "a column of nan",
    "masked",
)
SHAPES = ("vector", "three axes", "no rows", "no columns", "one row", "number")


@dataclass(frozen=True)
class Table:
    """A table, which `build` makes: always the same one, newly."""

    kind: str = "blobs"
    n: int = 12
    p: int = 3
    seed: int = 0
    dtype: str = "float64"
    form: str = "C"
    power: int = 0  # it is multiplied by 10 ** power
    flaw: str | None = None
    rows: int | None = None  # the first ones only: a similarity to all others
    wide: bool = False  # sparse: indices of 64 bits
    messy: bool = False  # sparse: entries in parts and out of order, zeros stored
    readonly: bool = False  # sparse: its arrays

    def but(self, **changes: Any) -> "Table":
        return replace(self, **changes)

    def values(self) -> np.ndarray:
        """Return what the table holds, as floats: without flaws, scale and type."""
        rng = np.random.default_rng(self.seed)
        if self.kind in SIMILARITIES:
            return _similarity(self.kind, self.n, rng)[: self.rows]
        if self.kind in LABELS:
            high = {"labels": 3, "many labels": 30, "one label": 1}[self.kind]
            return rng.integers(high, size=(self.n, self.p)).astype(float)[: self.rows]
        X = rng.uniform(size=(self.n, self.p))
        if self.kind == "blobs":
            X = X + 5 * rng.integers(3, size=(self.n, 1))
        elif self.kind == "integers":
            X = np.floor(4 * X)
        elif self.kind == "constant":
            X[:, 0] = 1.0
        elif self.kind == "repeated":
            X = X[rng.integers(2, size=self.n) % self.n]
        elif self.kind == "outlier":
            X[0] = 1e6
        elif self.kind == "equal":
            X[:] = 0.7
        elif self.kind == "zeros":
            X[:] = 0.0
        return X[: self.rows]

    def array(self) -> np.ndarray:
        """Return the array that is stored: scaled, flawed and of its type."""
        X = self.values()
        with np.errstate(all="ignore"):
            if self.power:
                X = X * 10.0**self.power
            flawed = _flawed(X, self.flaw) if X.size else X
            return _typed(flawed, self.dtype)

    def build(self) -> Any:
        X = self.array()
        if self.flaw in SHAPES:
            X = {
                "vector": lambda: X[:, 0],
                "three axes": lambda: X[:, :, None],
                "no rows": lambda: X[:0],
                "no columns": lambda: X[:, :0],
                "one row": lambda: X[:1],
                "number": lambda: X[0, 0] if X.size else 0.0,
            }[self.flaw]()
        return self.stored(X)

    def stored(self, X: Any) -> Any:
        """Return an array in the form of this table."""
        if np.ndim(X) != 2:
            return X
        if self.form in ARRAYS:
            return _as_array(X, self.form)
        if self.form in SPARSE:
            return _as_sparse(X, self)
        if self.form in FRAMES:
            return _as_frame(X, self.form.split()[-1], self.seed)
        if self.form == VECTORS:
            return list(X.T.copy())
        return {"list": list, "tuple": tuple}[self.form](X.tolist())


def n_rows(X: Any) -> int:
    """Return the number of rows of what `build` has made; 0 for what is no table."""
    shape = X.shape if hasattr(X, "shape") else np.shape(X)[:1]
    return shape[0] if shape else 0


def _similarity(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    X = rng.uniform(size=(n, 2)) + 2 * rng.integers(3, size=(n, 1))
    squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    labels = rng.integers(3, size=(n, 4))
    together = (labels[:, None] == labels[None]).mean(axis=2)
    if kind == "asymmetric":
        squares[0, -1] += 1.0
    return {
        "together": together,
        "blocks": (labels[:, None, 0] == labels[None, :, 0]).astype(float),
        "identity": np.eye(n),
        "linear": X @ X.T,
        "distances": np.sqrt(squares),
        "nil": np.zeros((n, n)),
    }.get(kind, np.exp(-squares))


def _flawed(X: np.ndarray, flaw: str | None) -> np.ndarray:
    X = X.astype(object) if flaw == "none" else X.copy()
    where = (len(X) // 2, X.shape[1] // 2)
    if flaw in ("nan", "inf", "-inf"):
        X[where] = float(flaw)
    elif flaw == "none":
        X[where] = None
    elif flaw == "negative":
        X[where] = -1.0
    elif flaw == "a row of nan":
        X[where[0]] = np.nan
        if X.shape[0] == X.shape[1]:  # a similarity: a sample that was not seen
            X[:, where[0]] = np.nan
    elif flaw == "a column of nan":
        X[:, where[1]] = np.nan
    elif flaw == "masked":
        return np.ma.MaskedArray(X, mask=X == X[where])
    return X


def _typed(X: np.ndarray, dtype: str) -> np.ndarray:
    if X.dtype == object:
        return X
    if dtype == "words":
        return np.char.add("w", np.round(X).astype(str))
    if dtype in INTEGERS and dtype != "bool":
        limits = np.iinfo(dtype)
        low, high = max(limits.min, -(2**62)), min(limits.max, 2**62)
        return np.clip(np.nan_to_num(np.round(X)), low, high).astype(dtype)
    if np.dtype(dtype).kind in "Mm":
        return np.clip(np.nan_to_num(X), 0, 1e6).astype("int64").astype(dtype)
    return X.astype(dtype)


@cache
def _folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(
        prefix="nmfcluster-fuzz-", ignore_cleanup_errors=True
    )


_NUMBERS = itertools.count()


def _as_array(X: np.ndarray, form: str) -> np.ndarray:
    if form == "F":
        return np.asfortranarray(X)
    if form == "strided":
        padded = np.empty((2 * X.shape[0], 3 * X.shape[1]), dtype=X.dtype)
        padded[::2, ::3] = X
        return padded[::2, ::3]
    if form == "reversed":
        return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]
    if form == "readonly":
        X = X.copy()
        X.flags.writeable = False
    elif form == "memmap" and X.size and not X.dtype.hasobject and not np.ma.isMA(X):
        path = Path(_folder().name) / f"{next(_NUMBERS) % 100}.npy"
        path.unlink(missing_ok=True)
        np.save(path, X)
        return np.load(path, mmap_mode="r")
    elif form == "big-endian" and not X.dtype.hasobject:
        return X.astype(X.dtype.newbyteorder(">"))
    elif form == "matrix":
        return np.asmatrix(X)
    elif form == "masked":
        return np.ma.MaskedArray(X)
    return X


def _as_sparse(X: np.ndarray, table: Table) -> Any:
    kind, form = table.form.split("_")
    rng = np.random.default_rng(table.seed)
    X = np.asarray(X)
    if table.kind in FEATURES:
        X = np.where(rng.uniform(size=X.shape) < 0.3, np.zeros((), X.dtype), X)
    if form in ("csr", "csc", "coo"):
        X = _entries(X, table, form, rng)
    made = getattr(sp, f"{form}_{kind}")(X)
    for name in ("data", "indices", "indptr", "row", "col", "offsets"):
        array = getattr(made, name, None)
        if isinstance(array, np.ndarray) and (name != "row" or form == "coo"):
            if name != "data" and table.wide and form != "coo":
                setattr(made, name, array.astype(np.int64))
            if table.readonly and form not in ("lil", "coo"):
                getattr(made, name).flags.writeable = False
    return made


def _entries(X: np.ndarray, table: Table, form: str, rng: np.random.Generator) -> Any:
    """Return a matrix by its entries; if it is messy some are in parts, out of order, or 0."""
    at = np.argwhere(X != 0)
    values = X[tuple(at.T)]
    if table.messy and len(at) and X.dtype.kind == "f":
        with np.errstate(all="ignore"):
            parts = values[::3] / 2
        values = np.concatenate([values, parts, [0, 0]]).astype(X.dtype)
        values[: len(at)][::3] = parts
        at = np.concatenate([at, at[::3], at[:1], np.argwhere(X == X)[:1]])
        order = rng.permutation(len(at))
        at, values = at[order], values[order]
    if form == "coo":
        indices = at.T.astype(np.int64 if table.wide else np.int32)
        return sp.coo_array((values, tuple(indices)), shape=X.shape)
    axis = 0 if form == "csr" else 1
    order = np.argsort(at[:, axis], kind="stable")
    indptr = np.concatenate(
        [[0], np.cumsum(np.bincount(at[:, axis], minlength=X.shape[axis]))]
    )
    made = sp.csr_array if form == "csr" else sp.csc_array
    return made((values[order], at[order, 1 - axis], indptr), shape=X.shape)


def _as_frame(X: np.ndarray, kind: str, seed: int) -> Any:
    names = [f"c{i}" for i in range(X.shape[1])]
    X = np.asarray(X)
    is_complex = X.dtype.kind == "c"
    if X.dtype in (np.longdouble, np.float16) or X.dtype.kind in "cSm":
        X = X.astype(np.float64 if X.dtype.kind == "f" else object)
    if kind == "polars":
        return pl.DataFrame(
            {name: column.tolist() for name, column in zip(names, X.T, strict=True)}
        )
    n = len(X)
    index = {
        "shuffled": np.random.default_rng(seed).permutation(n),
        "words": [f"s{i}" for i in range(n)],
        "duplicate": np.arange(n) // 2,
        "dates": pd.date_range("2020-01-01", periods=n),
    }.get(kind)
    if X.dtype.kind in "MU":
        X = X.astype(object)
    frame = pd.DataFrame(X, columns=names, index=index)
    if kind == "nullable" and not is_complex:  # of which pandas has no nullable type
        return frame.convert_dtypes()
    if kind in ("category", "string"):
        return frame.astype(kind)
    if kind == "sparse" and X.dtype.kind in "fi":
        return frame.astype(pd.SparseDtype(X.dtype, 0))
    if kind == "twice":
        frame.columns = ["c"] * len(names)
    if kind == "mixed":
        frame.columns = [0, *names[1:]][: len(names)]
        frame = (
            frame.assign(when=pd.Timestamp("2020-01-01")) if seed % 3 == 0 else frame
        )
    return frame
