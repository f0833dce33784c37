"""The result: what a user holds in the end."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dupre.result.as_text import explain_valuation, format_valuation
from dupre.result.changes import Changes, changes
from dupre.result.json import dumps, loads
from dupre.result.payments import Payments, share_amount
from dupre.result.sharing import Negative
from dupre.result.values import Values
from dupre.result.verdict import Verdict, verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Valuation(Values):
    """Values of n owners with their uncertainty. `print` it.

    Attributes:
        owners: names, (n,).
        rows: rows of each owner, (n,).
        semivalue: name of the semivalue.
        mean: expected values, (n,).
        uncertainty: covariances of the values by their sources, and together.
        facts: what was evaluated, and how well the rest is predicted.
        notes: everything a person must know of the values, the gravest first.
        evaluations: everything evaluated, one row per training; empty for ask / tell.
    """

    @property
    def verdict(self) -> Verdict:
        """Whether owners can be paid by these values, and what decides it."""
        return verdict(self)

    def explain(self) -> str:
        """The long form of `print`: all owners, and everything there is to know of the values."""
        return explain_valuation(self)

    def to_json(self) -> str:
        """Everything as JSON, every digit kept; the form is described in docs/result.md."""
        return dumps([self])

    @classmethod
    def from_json(cls, text: str) -> Valuation:
        """The valuation in a JSON document; the first if it holds those of several semivalues.

        Raises:
            InputError: it is no such document, is damaged, contradicts itself, or is of a version
                not known here.
        """
        return loads(text, cls)[0]

    def changes_since(self, before: Values) -> Changes:
        """How the values moved since an earlier result, and whether intervals explain it.

        Raises:
            InputError: the semivalue, the metric or the target is another, or nobody is in both.
        """
        return changes(before, self)

    def payments(
        self,
        amount: float,
        *,
        currency: str = "",
        negative: Negative = "zero",
        minimum: float = 0.0,
        for_these_rows: bool = False,
        anyway: bool = False,
    ) -> Payments:
        """Share an amount of money by the values; the payments add up to it, to the cent.

        Args:
            amount: to share.
            currency: such as "CHF"; it decides how many decimals a payment has.
            negative: "zero", and who is at or below zero gets nothing; or "owe", and it pays.
            minimum: what everybody gets at least.
            for_these_rows: whether intervals are for these validation rows alone, as they are if
                the rows are agreed by contract; by default for the population they come from.
            anyway: whether to pay although the verdict is "not payable".

        Raises:
            NotPayableError: the verdict is "not payable".
            InputError: the terms contradict each other, or no value is above zero.
        """
        return share_amount(
            self,
            amount,
            currency=currency,
            negative=negative,
            minimum=minimum,
            for_these_rows=for_these_rows,
            anyway=anyway,
        )

    def report(self, path: str | Path) -> None:
        """Write one self-contained HTML page: can owners be paid, values, how sure they are."""
        from dupre.report.page import write

        write([self], Path(path))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the values with their intervals; `dupre.plots` has the other figures."""
        from dupre.report.plots import values

        return values(self, ax)

    def __str__(self) -> str:
        return format_valuation(self)

    def _repr_html_(self) -> str:
        from dupre.report.page import notebook_table

        return notebook_table(self)

    __repr__ = __str__
