"""Strategies: tables, similarities, labels and pairs; mostly what is asked for, some of it not."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from fuzz import tables
from fuzz.tables import Table
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**16)
SIZES = st.integers(2, 24)


def mostly(usual, *others, weight=3):
    """Return a strategy that draws the usual value, and now and then another one."""
    values = [usual] * weight * max(1, len(others) // 8) + list(others)
    return st.sampled_from(values)


def usually(usual, other, times=5):
    """Return a strategy that draws from the usual one, but for one time in so many."""
    return st.integers(0, times).flatmap(lambda i: other if i == times else usual)


FORMS = usually(
    st.sampled_from(tables.ARRAYS),
    usually(
        st.sampled_from(tables.SPARSE),
        st.sampled_from(tables.FRAMES + tables.LISTS),
        times=1,
    ),
    times=1,
)
DTYPES = usually(
    usually(
        st.just("float64"), st.sampled_from(tables.FLOATS + tables.INTEGERS), times=1
    ),
    st.sampled_from(("object", *tables.NO_NUMBERS)),
    times=12,
)
POWERS = usually(
    st.just(0), usually(st.integers(-12, 12), st.integers(-300, 300), times=1), times=3
)
FLAWED = usually(st.none(), st.sampled_from(tables.FLAWS + tables.SHAPES), times=9)
_NOT_IN_SPARSE = {
    "float16": "float32",
    "object": "float64",
    "str": "float64",
    "bytes": "int8",
}
_NOT_IN_SPARSE |= {
    "words": "float64",
    "datetime64[D]": "float64",
    "timedelta64[s]": "float64",
}


@st.composite
def stored(
    draw,
    kinds,
    n=SIZES,
    p=None,
    forms=FORMS,
    dtypes=DTYPES,
    flaws=FLAWED,
    powers=POWERS,
):
    """Draw a `Table` of some kinds, in any form and of any type."""
    p = st.integers(1, 5) if p is None else p
    form, dtype, flaw = draw(forms), draw(dtypes), draw(flaws)
    options = {}
    if form in tables.SPARSE:
        dtype = _NOT_IN_SPARSE.get(dtype, dtype)
        flaw = (
            None
            if flaw in ("none", "masked", "vector", "number", "three axes")
            else flaw
        )
        names = ("wide", "messy", "readonly")
        options = {name: draw(st.booleans()) for name in names}
    return Table(
        kind=draw(st.sampled_from(kinds)),
        n=draw(n),
        p=draw(p),
        seed=draw(SEEDS),
        dtype=dtype,
        form=form,
        power=draw(powers),
        flaw=flaw,
        **options,
    )


FEATURES = stored(("blobs", *tables.FEATURES))
SIMILARITIES = usually(
    stored(("rbf", "together", "blocks", "linear")),
    stored(tables.SIMILARITIES),
    times=3,
)
LABEL_TABLES = stored(
    tables.LABELS,
    dtypes=usually(
        st.sampled_from(("int64", "int8", "float64", "str", "object", "words", "bool")),
        st.sampled_from(tables.DTYPES),
    ),
    forms=usually(
        st.sampled_from(
            ("C", "readonly", "pandas range", "pandas nullable", "list", "tuple")
        ),
        FORMS,
    ),
    powers=usually(st.just(0), POWERS, times=9),
)


@st.composite
def rows_like(draw, table):
    """Draw new rows for a model of a table: of its kind mostly, of any other now and then."""
    if draw(st.integers(0, 5)) == 0:
        return draw(FEATURES)
    table = table.but(flaw=None)
    if table.kind in tables.SIMILARITIES:
        return table.but(rows=draw(st.integers(1, 3)))
    form = draw(FORMS)
    dtype = (
        _NOT_IN_SPARSE.get(table.dtype, table.dtype)
        if form in tables.SPARSE
        else table.dtype
    )
    return table.but(
        n=draw(st.integers(1, 4)), seed=draw(SEEDS), form=form, dtype=dtype
    )


@dataclass(frozen=True)
class Pairs:
    """Pairs of samples, which `build` makes in one of the forms that constraints take."""

    n: int
    m: int = 3
    seed: int = 0
    form: str = "list"
    weights: str | None = None
    flaw: str | None = None

    def build(self) -> Any:
        rng = np.random.default_rng(self.seed)
        pairs = rng.integers(max(self.n, 1), size=(self.m, 2))
        if self.flaw != "loops":
            pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        weights = {
            "ones": np.ones(len(pairs)),
            "random": rng.uniform(size=len(pairs)),
            "large": np.full(len(pairs), 1e300),
            "small": np.full(len(pairs), 1e-300),
            "zero": np.zeros(len(pairs)),
            "negative": np.full(len(pairs), -1.0),
            "nan": np.full(len(pairs), np.nan),
        }.get(self.weights)
        if self.flaw == "outside":
            pairs = pairs + self.n
        elif self.flaw == "negative":
            pairs = pairs - self.n
        elif self.flaw == "fractions":
            pairs = pairs + 0.5
        elif self.flaw == "huge":
            pairs = pairs * 1e30
        elif self.flaw == "four columns":
            pairs = np.column_stack([pairs, pairs])
        if self.form.startswith(("coo", "csr", "dok")):
            n = max(self.n, 1)
            shape = (n, n + (self.flaw == "outside"))
            values = np.ones(len(pairs)) if weights is None else weights
            i, j = (np.clip(column, 0, n - 1).astype(int) for column in pairs.T[:2])
            return getattr(sp, self.form)(sp.coo_array((values, (i, j)), shape=shape))
        table = pairs if weights is None else np.column_stack([pairs, weights])
        if self.form == "frame":
            return pd.DataFrame(table)
        if self.form == "list":
            return [tuple(row) for row in table.tolist()]
        return table.astype(
            {"words": str, "complex": complex}.get(self.form, table.dtype)
        )


def pairs_of(n):
    """Draw pairs of n samples, or none."""
    return usually(
        st.none(),
        st.builds(
            Pairs,
            n=st.just(n),
            m=st.integers(0, 6),
            seed=SEEDS,
            form=mostly(
                "list",
                "array",
                "frame",
                "csr_array",
                "coo_matrix",
                "dok_array",
                "words",
            ),
            weights=mostly(
                None, "ones", "random", "large", "small", "zero", "negative", "nan"
            ),
            flaw=mostly(
                None,
                "outside",
                "negative",
                "fractions",
                "huge",
                "loops",
                "four columns",
            ),
        ),
        times=1,
    )


def build(value: Any) -> Any:
    """Return what a description stands for; anything else is returned as it is."""
    if isinstance(value, list | tuple):
        return type(value)(build(part) for part in value)
    if isinstance(value, dict):
        return {key: build(part) for key, part in value.items()}
    return value.build() if hasattr(value, "build") else value
