"""Similarities of new samples to those of a fit, times a matrix, without all that a fit had."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from nmfcluster._arrays import places, storage
from nmfcluster._arrays.tables import read_table, require_size

Products = Callable[[Any], np.ndarray]  # of new samples: their similarities, times a matrix


@dataclass(frozen=True)
class NewSamples:
    """How similar new samples are to those of a fit; it can be pickled without their similarity.

    Attributes
    ----------
    block_of : callable
        Returns their similarities, where they are divided as those of the fit.
    product_of : callable or None
        ``product_of(P)`` is a function that returns them times P; None: they are made for that.
    scale : ndarray of shape (n_samples,) or None
        Roots of the inverse row sums of the fit; None: nothing is normalised.
    counts : ndarray of shape (n_samples,), int, or None
        How many samples each row of the fit stands for; None: one.
    rows : int or None
        New samples of which similarities are made at a time for a product; None: all.
    read : callable
        Returns new samples like those of the fit, see `like_fit`.
    """

    block_of: Callable[[Any], Any]
    product_of: Callable[[np.ndarray], Products] | None
    scale: np.ndarray | None
    counts: np.ndarray | None
    rows: int | None
    read: Callable[[Any], Any]

    def between(self, X: Any) -> Any:
        """Return the similarities of new samples."""
        block = self.block_of(self.read(X))
        if self.scale is None:
            return block
        sums = storage.row_sums(block) if self.counts is None else block @ self.counts
        return places.scaled(block, inverse_root(sums.astype(block.dtype)), self.scale)

    def onto(self, P: np.ndarray) -> Products:
        """Return a function of new samples: their similarities times P."""
        if self.scale is not None:  # a column more becomes their row sums
            ones = np.ones(len(P)) if self.counts is None else self.counts
            P = np.column_stack([P * self.scale[:, None], ones.astype(P.dtype)])
        product_of = self.product_of or partial(partial, _block_product, self.block_of, self.rows)
        return partial(_product, product_of(P), self.read, self.scale is not None)


def _product(product: Products, read: Any, is_normalized: bool, X: Any) -> np.ndarray:
    made = product(read(X))
    return made[:, :-1] * inverse_root(made[:, -1])[:, None] if is_normalized else made


def like_fit(exponent: int | None, width: int, X: Any) -> Any:
    """Return new samples, divided by the power of 2 that those of the fit were.

    None: they are no features of a known kind. There must be as many columns, the `width`.
    """
    X = read_table(X)
    require_size(X, "X", width)
    if exponent is None:
        return X
    divided = storage.divided(X, exponent)
    if storage.exponent_beyond(divided, 2) > 0:
        why = "so far from those of fit that distances to them cannot be held"
        raise ValueError(f"X must not hold values as large as {storage.largest(X):.3g}, {why}.")
    return divided


def _block_product(
    block_of: Callable[[Any], Any], rows: int | None, P: np.ndarray, X: Any
) -> np.ndarray:
    if rows is None:
        return block_of(X) @ P
    blocks = storage.row_blocks(X.shape[0], rows)
    return np.concatenate([block_of(X[block]) @ P for block in blocks])


def inverse_root(values: np.ndarray) -> np.ndarray:
    """Return 1 / sqrt(values), and 0 where a value is not above 0."""
    return storage.inverse(np.sqrt(values.clip(0)))
