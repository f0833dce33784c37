"""The result: values of owners as a normal distribution, and what follows from it.

Notation: n owners; mean (n,), covariance (n, n).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import ndtri

from dupre._types import Floats, Ints
from dupre.errors import InputError
from dupre.game.coalitions import find_owner
from dupre.game.ties import descending_order
from dupre.notes import Note
from dupre.result import covariances, records

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dupre.result.payments import Negative, Payments


@dataclass(frozen=True, repr=False, eq=False)
class Valuation(records.ReadOnlyArrays):
    """Values of n owners with their uncertainty. `print` it.

    Attributes:
        owners: names, (n,).
        rows: rows of each owner, (n,).
        semivalue: name of the semivalue.
        mean: expected values, (n,).
        covariance: of the values, (n, n); zero when everything is known exactly.
        prediction: the part of it, (n, n), due to utilities not evaluated and to noise; None if
            that is all of it.
        validation: the part of it, (n, n), due to the choice of the validation rows; None if it
            is not known, and then in no interval.
        validation_rows: how many; 0 if that is not known.
        sampling: the covariance, (n, n), due to which coalitions enter the values; None if all do.
        noise: the part of the covariance, (n, n), due to the noise of trainings, as repeated ones
            showed it; the rest is due to coalitions not evaluated.
        floor: lowest utility that counts; None if there is none.
        floored: how many evaluated coalitions have a lower one.
        grand: utility of all owners together.
        grand_predicted: whether that was predicted, not evaluated.
        empty: utility of no owner.
        evaluated: number of coalitions evaluated, those that failed included.
        counting: number of coalitions that enter the values; those that hold the same rows count
            once if one evaluation serves all of them.
        duplicates: what that saved; None if no coalitions hold the same rows, or utilities depend
            on names.
        found: how many evaluations were known before the call; not printed, so that a resumed run
            prints the same as one that was never interrupted.
        checked: how many stored evaluations were done again, to see that they are still the same;
            extra to the budget, without that of no data, and not printed either.
        first_left: how many of the 2n + 1 heaviest coalitions are not evaluated; the values are
            a first guess until all are.
        failures: coalitions whose training failed, with the reason; they are predicted.
        diagnostics: of the predictor; None when nothing had to be predicted.
        check: of the predictor on check coalitions; None when there are none.
        sampled: whether the values come from random coalitions alone, because the predictor
            failed on the check coalitions.
        corrected: whether the error of the predictor was estimated and corrected.
        uncorrected: whether a correction was asked for, but has too few random coalitions.
        subsidy: of the least core; None for semivalues.
        training_noise: what repeated trainings say about chance in utilities; None if not known.
        warnings: messages of warnings raised by trainings, with the coalitions that raised each.
        stale: evaluations in the store that were not used, because rows have changed since.
        stopped: why no more was evaluated.
        notes: everything a person must know of the values, the gravest first.
        rounds: what was known after each batch: number evaluated, widest half interval (unless
            very many coalitions count) and, on check coalitions, the predictor's error, that of
            the mean of their size (by_size) and the coverage.
        contributions: what each `owner` adds to groups of so many `others` on average: `value`,
            `low` and `high`; of more than 12 owners for 12 sizes. Empty if the predictor failed.
        forecast: expected half widths of the 95 % intervals against further evaluations.
        evaluations: everything evaluated, one row per training; empty for ask / tell.
        evidence: utilities observed and predicted, and how the owners' data relate.
        provenance: how to reproduce the values, in sections such as "versions" and "settings",
            each a mapping of names to texts.
    """

    owners: tuple[str, ...]
    rows: Ints
    semivalue: str
    mean: Floats
    covariance: Floats
    noise: Floats
    grand: float
    empty: float
    evaluated: int
    prediction: Floats | None = None
    sampling: Floats | None = None
    validation: Floats | None = None
    validation_rows: int = 0
    floor: float | None = None
    floored: int = 0
    counting: int = 0
    duplicates: records.Duplicates | None = None
    grand_predicted: bool = False
    found: int = 0
    checked: int = 0
    first_left: int = 0
    failures: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    diagnostics: records.Diagnostics | None = None
    check: records.PredictorCheck | None = None
    sampled: bool = False
    corrected: bool = False
    uncorrected: bool = False
    subsidy: records.Subsidy | None = None
    training_noise: records.TrainingNoise | None = None
    warnings: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    stale: int = 0
    stopped: str = ""
    notes: tuple[Note, ...] = ()
    rounds: pd.DataFrame = field(default_factory=pd.DataFrame)
    contributions: pd.DataFrame = field(default_factory=pd.DataFrame)
    forecast: pd.DataFrame = field(default_factory=pd.DataFrame)
    evaluations: pd.DataFrame = field(default_factory=pd.DataFrame)
    evidence: records.Evidence | None = None
    provenance: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def values(self) -> pd.Series:
        """Expected value of each owner."""
        return self._series(self.mean, "value")

    @property
    def words(self) -> records.Words:
        """What the values are called in sentences: payments, if they are those of a least core."""
        return records.VALUES if self.subsidy is None else records.PAYMENTS

    @property
    def order(self) -> Ints:
        """Indices of the owners from the greatest value to the smallest, (n,).

        Owners of equal value, to a millionth of the largest, come in the order of `owners`.
        """
        return descending_order(self.mean)

    @property
    def std(self) -> pd.Series:
        """Standard deviation of each owner's value."""
        return self._root(self.covariance, "std")

    @property
    def prediction_std(self) -> pd.Series:
        """The part of `std` due to utilities not evaluated and to noise: sigma_GP (Remark 1)."""
        part = self.covariance if self.prediction is None else self.prediction
        return self._root(part, "prediction_std")

    @property
    def noise_std(self) -> pd.Series:
        """The part of `prediction_std` due to the noise of trainings; 0 if it was not measured."""
        return self._root(self.noise, "noise_std")

    @property
    def sampling_std(self) -> pd.Series:
        """The part of `std` due to the choice of coalitions: sigma_MC (DUPRE Remark 1)."""
        part = np.zeros_like(self.covariance) if self.sampling is None else self.sampling
        return self._root(part, "sampling_std")

    @property
    def validation_std(self) -> pd.Series:
        """The part of `std` due to the choice of the validation rows; NaN if it is not known."""
        unknown = np.full_like(self.covariance, np.nan)
        return self._root(unknown if self.validation is None else self.validation, "validation_std")

    @property
    def covariance_for_these_rows(self) -> Floats:
        """Covariance of the values for these validation rows, (n, n), not for their population."""
        return self.covariance if self.validation is None else self.covariance - self.validation

    def validation_rows_for(self, distance: float, level: float = 0.95) -> int | None:
        """Validation rows of the same population with which every value is within ± distance.

        None if that alone is not enough, or if nothing is known of the choice of the rows.
        """
        from dupre.result.uncertainty import count_rows_for

        return count_rows_for(self, distance, level)

    @property
    def share(self) -> pd.Series:
        """Each value as a part of u(all) - u(empty); NaN unless that is above zero."""
        gain = self.grand - self.empty
        unknown = np.full(len(self.mean), np.nan)  # of a loss the worst would have the most
        return self._series(self.mean / gain if gain > 0 else unknown, "share")

    @property
    def efficiency_gap(self) -> float:
        """u(all) - u(empty) minus the sum of the values: zero for Shapley by definition."""
        return float(self.grand - self.empty - self.mean.sum())

    @property
    def exact(self) -> bool:
        """Whether the values follow from the utilities without any uncertainty.

        They do so for these validation rows, and for these seeds if trainings involve chance.
        """
        return self.complete and not self.noise.any()

    @property
    def complete(self) -> bool:
        """Whether every coalition with a weight was evaluated, so that nothing is predicted."""
        return self.diagnostics is None and self.sampling is None

    def interval(self, level: float = 0.95, *, for_these_rows: bool = False) -> pd.DataFrame:
        """Bounds between which each value lies with probability `level`.

        For the population that the validation rows come from, or for these rows alone.
        """
        covariances.check_level(level)
        chosen = self.covariance_for_these_rows if for_these_rows else self.covariance
        half = covariances.half_widths(chosen, level)
        return pd.DataFrame({"low": self.mean - half, "high": self.mean + half}, self._index())

    def probability_greater(self) -> pd.DataFrame:
        """P(row owner is worth more than column owner); 1/2 on a tie."""
        difference = self.mean[:, None] - self.mean
        rounding = 1e-9 * max(np.abs(self.mean).max(), abs(self.grand), abs(self.empty))
        difference[np.abs(difference) <= rounding] = 0.0
        probability = covariances.probability_above_zero(difference, self.spread_of_differences())
        return pd.DataFrame(probability, index=self._index(), columns=list(self.owners))

    def compare(self, one: str, other: str) -> records.Comparison:
        """Is one owner worth more than another, by how much, with what probability?

        Raises:
            InputError: a name is unknown, or both are the same.
        """
        names = find_owner(str(one), self.owners), find_owner(str(other), self.owners)
        if names[0] == names[1]:
            raise InputError(f"two different owners can be compared, got {names[0]!r} twice")
        i, j = map(self.owners.index, names)
        difference = float(self.mean[i] - self.mean[j])
        half = float(ndtri(0.975) * self.spread_of_differences()[i, j])
        probability = float(self.probability_greater().to_numpy()[i, j])
        bounds = difference - half, difference + half
        return records.Comparison(*names, probability, difference, *bounds)

    def rank_range(self, level: float = 0.95) -> pd.DataFrame:
        """Best and worst rank of each owner: who is above and below it with P >= `level`."""
        covariances.check_level(level)
        probability = self.probability_greater().to_numpy()
        above = (probability >= level) & (probability > 0.5)
        best, worst = 1 + above.sum(axis=0), len(self.owners) - above.sum(axis=1)
        return pd.DataFrame({"best": best, "worst": worst}, index=self._index())

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Everything per owner: rows, value, std and its parts, low, high, share, best, worst."""
        first = pd.DataFrame({"rows": self.rows}, index=self._index())
        parts = [self.prediction_std, self.noise_std, self.sampling_std, self.validation_std]
        columns = [first, self.values, self.std, *parts, self.interval(level), self.share]
        return pd.concat([*columns, self.rank_range(level)], axis=1)

    def to_json(self) -> str:
        """Everything as JSON, every digit kept; the form is described in docs/result.md."""
        from dupre.result.json import dumps

        return dumps([self])

    @classmethod
    def from_json(cls, text: str) -> Valuation:
        """The valuation in a JSON document; the first if it holds those of several semivalues.

        Raises:
            InputError: it is no such document, is damaged, contradicts itself, or is of a version
                not known here.
        """
        from dupre.result.json import loads

        return loads(text)[0]

    def payments(
        self,
        amount: float,
        *,
        currency: str = "",
        negative: Negative = "zero",
        minimum: float = 0.0,
    ) -> Payments:
        """Share an amount of money by the values; the payments add up to it, to the cent.

        Args:
            amount: to share.
            currency: such as "CHF"; it decides how many decimals a payment has.
            negative: "zero", and who is at or below zero gets nothing; or "owe", and it pays.
            minimum: what everybody gets at least.

        Raises:
            InputError: the terms contradict each other, or no value is above zero.
        """
        from dupre.result.payments import share_amount

        return share_amount(self, amount, currency=currency, negative=negative, minimum=minimum)

    def report(self, path: str | Path) -> None:
        """Write one self-contained HTML page: values, how far to trust them, statements."""
        from dupre.report.page import write

        write([self], Path(path))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the values with their intervals; `dupre.plots` has the other figures."""
        from dupre.report.plots import values

        return values(self, ax)

    def __str__(self) -> str:
        from dupre.result.as_text import format_valuation  # the text is about this class

        return format_valuation(self)

    def _repr_html_(self) -> str:
        from dupre.report.page import notebook_table

        return notebook_table(self)

    __repr__ = __str__

    def spread_of_differences(self) -> Floats:
        """Standard deviation of any difference, (n, n); its errors may add up (DUPRE Remark 1)."""
        own = self.covariance_for_these_rows if self.prediction is None else self.prediction
        spread = covariances.spreads(own) + (
            0.0 if self.sampling is None else covariances.spreads(self.sampling)
        )
        return np.hypot(
            spread, 0.0 if self.validation is None else covariances.spreads(self.validation)
        )

    def _index(self) -> pd.Index:
        return pd.Index(self.owners, name="owner")

    def _root(self, covariance: Floats, name: str) -> pd.Series:
        return self._series(covariances.roots(np.diag(covariance)), name)

    def _series(self, numbers: Floats, name: str) -> pd.Series:
        return pd.Series(numbers, index=self._index(), name=name, copy=True)
