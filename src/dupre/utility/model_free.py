"""Utilities without a model: the volume or the information of a coalition's rows.

Pass one to `dupre.value` instead of a ModelUtility. They use X alone, in the numeric view of
`owners.points`: numbers standardised over all owners, categories one-hot. So the utility of a
coalition depends on all owners through the scales, and different sets of owners cannot share a
store.

Notation: N rows in total, r their rank. Rows are first turned into r coordinates in the space that
all of them span, which keeps every inner product. Otherwise columns that are constant or sums of
others, such as the levels of a category, would make every volume zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from copy import copy
from typing import Any, Self, cast

import numpy as np
import pandas as pd
from scipy import sparse

from dupre._types import Floats, Ints, Members
from dupre.checks import positive
from dupre.data.encoding import Points
from dupre.data.owners import Owners
from dupre.errors import InputError
from dupre.game.coalitions import from_names


class _RowUtility(ABC):
    """A utility computed from the coordinates of a coalition's rows; 0 without rows.

    Attributes:
        uses_validation: no: there are no validation rows whose choice would matter.
    """

    uses_validation = False
    _arguments: tuple[str, ...]

    def __init__(self, owners: Owners):
        self.owners = owners
        self._names = owners.names

    @property
    def fingerprint(self) -> dict[str, Any]:
        """All that a utility depends on besides the members' own rows."""
        values = self.owners.points.values
        settings = {name: getattr(self, name) for name in self._arguments}
        return {"encoded rows": (values, np.zeros(values.shape[0])), **settings}

    def to_send(self) -> Self:
        """A copy for other processes, without the rows as the user gave them."""
        slim = copy(self)
        slim.owners = cast("Owners", None)
        return slim

    def __call__(self, members: Collection[str], /) -> float:
        """The utility of the coalition of these owners."""
        return self._utility(from_names(members, self._names)) if members else 0.0

    @abstractmethod
    def _utility(self, row: Members) -> float:
        """The utility of a non-empty coalition, a boolean (n,)."""


class DataVolume(_RowUtility):
    """The volume that a coalition's rows span (Xu et al. 2021, validation-free data valuation).

    The volume of rows X is sqrt(det(X^T X)). Copies of rows increase it. The default is the robust
    volume: the space is divided into cells of one width, the rows of a cell are replaced by their
    mean, and the volume of these means is multiplied by

        prod over the c cells with rows of  sum_{p=0}^{rows in it} alpha^p,   alpha = 1 / (10 c)

    So copies add less and less: any number of them multiplies it by less than (1 - alpha^2)^-c,
    about 1 + 1 / (100 c). Cells start at the mean of each column (at 0 if X is sparse), for all
    coalitions alike; the authors start at the minimum of a coalition.

    The utility is log(1 + volume) by default: volumes grow like rows^(r / 2) and soon exceed the
    largest float. It is 0 without rows, and for rows that do not span all r directions, such as
    fewer than r rows. If there are many columns, reduce them first with `embed=` of Owners.

    Args:
        owners: whose rows.
        width: of the cells, in standard deviations; None for the plain volume.
        log: whether the utility is log(1 + volume), or the volume itself.
    """

    _arguments = ("width", "log")

    def __init__(self, owners: Owners, *, width: float | None = 0.1, log: bool = True):
        super().__init__(owners)
        self.width = None if width is None else positive(width, "width")
        self.log = bool(log)
        rows = _coordinates(owners.points)
        if not rows.shape[1]:
            raise InputError("all columns of X are constant, so the volume is zero for all rows")
        cell = np.arange(len(rows)) if self.width is None else _cells(owners.points, self.width)
        order = np.argsort(cell, kind="stable")  # the rows of a cell are then adjacent
        self._rows, self._cell, self._holder = rows[order], cell[order], owners.owner[order]

    def _utility(self, row: Members) -> float:
        log_volume = self._log_volume(row)
        if self.log:
            return float(np.logaddexp(0.0, log_volume))
        if log_volume > np.log(np.finfo(np.float64).max):
            raise InputError(f"the volume is exp({log_volume:.6g}), too large; use log=True")
        return float(np.exp(log_volume))

    def _log_volume(self, row: Members) -> float:
        """Logarithm of the (robust) volume, -inf if it is zero."""
        chosen = row[self._holder]
        rows, cell = self._rows[chosen], self._cell[chosen]
        starts = np.flatnonzero(np.diff(cell, prepend=-1))
        counts = np.diff(starts, append=len(cell))
        means = np.add.reduceat(rows, starts, axis=0) / counts[:, None]
        if len(means) < means.shape[1]:
            return -np.inf
        spread = np.linalg.svd(means, compute_uv=False)
        if spread[-1] <= spread[0] * len(means) * np.finfo(np.float64).eps:
            return -np.inf
        volume = float(np.sum(np.log(spread)))
        return volume if self.width is None else volume + _log_of_copies(counts)


class InformationGain(_RowUtility):
    """The information of a coalition's rows on a Bayesian linear model (Sim et al. 2020, nats).

    The information gain on the weights is

        1/2 log det(I + prior / noise  X^T X)

    It is never negative, an owner never lowers it, and an owner adds less if there are more others.
    Targets are not used. There is no intercept: columns are centred (unless X is sparse). Copies of
    rows count as further observations.

    Args:
        owners: whose rows.
        noise: variance of the targets around the linear model.
        prior: prior variance of each weight, for standardised columns. Only its ratio to the
            noise matters.
    """

    _arguments = ("noise", "prior")

    def __init__(self, owners: Owners, *, noise: float = 1.0, prior: float = 1.0):
        super().__init__(owners)
        self.noise = positive(noise, "noise")
        self.prior = positive(prior, "prior")
        scale = np.sqrt(self.prior) / np.sqrt(self.noise)
        rows = _coordinates(owners.points) * scale
        held = [rows[owners.owner == i] for i in range(owners.n)]
        # Keep what is smaller: all rows, or one Gram matrix per owner.
        small = owners.n * rows.shape[1] <= len(rows)
        self._grams = np.array([part.T @ part for part in held]) if small else None
        self._rows = [] if small else held

    def _utility(self, row: Members) -> float:
        if self._grams is not None:
            gram = self._grams[row].sum(axis=0)
        else:
            rows = np.concatenate([self._rows[i] for i in np.flatnonzero(row)])
            gram = rows.T @ rows if len(rows) > rows.shape[1] else rows @ rows.T
        factor = np.linalg.cholesky(np.eye(len(gram)) + gram)
        return max(0.0, float(np.sum(np.log(np.diag(factor)))))


def _coordinates(points: Points) -> Floats:
    """All rows, (N, r), on orthonormal axes of the space they span.

    Computed from the smaller of the two Gram matrices.
    """
    X: Any = points.values
    tall = X.shape[0] >= X.shape[1]
    gram = X.T @ X if tall else X @ X.T
    power, axes = np.linalg.eigh(gram.toarray() if sparse.issparse(gram) else gram)
    kept = power > power[-1] * max(X.shape) * np.finfo(np.float64).eps
    distinct = X @ axes[:, kept] if tall else axes[:, kept] * np.sqrt(power[kept])
    return np.asarray(distinct)[points.index]


def _cells(points: Points, width: float) -> Ints:
    """The index of the cell of each row, (N,)."""
    cells = sparse.csr_array(points.values / width).floor()
    cells.eliminate_zeros()
    cells.sort_indices()
    bounds = zip(cells.indptr[:-1], cells.indptr[1:], strict=True)
    names = [cells.indices[a:b].tobytes() + cells.data[a:b].tobytes() for a, b in bounds]
    code, _ = pd.factorize(np.array(names, dtype=object))
    return np.asarray(code, dtype=np.int64)[points.index]


def _log_of_copies(counts: Ints) -> float:
    """Logarithm of the factor for rows that share their cell."""
    alpha = 1 / (10 * len(counts))
    return float(np.sum(np.log1p(-(alpha ** (counts + 1.0))) - np.log1p(-alpha)))
