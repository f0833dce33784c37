"""Texts that are numbers or dates for people, but categories for a model: `12 %`, `€ 3.25`."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dupre._types import Members

FEW = 0.05
"""Share of cells below which cells of another kind than the rest are errors in the data."""

_DECIMALS = r"(?:[.,]\d+)?"
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?"
WRITTEN_NUMBERS = {
    "percentages": rf"\s*[-+]?\d+{_DECIMALS}\s*%\s*",
    "numbers with signs between thousands": (
        rf"\s*[-+]?\d{{1,3}}(?:['’\u00a0\u202f ]\d{{3}})+{_DECIMALS}\s*"
    ),
    "numbers with a decimal point": r"\s*[-+]?\d*\.\d+\s*",
    "dates": (
        r"(?i)\s*(?:\d{1,2}\.\d{1,2}\.\d{2,4}|\d{1,2}/\d{1,2}/\d{2,4}|\d{1,2}-\d{1,2}-\d{2,4}"
        rf"|\d{{4}}[./]\d{{1,2}}[./]\d{{1,2}}|\d{{1,2}}\.?[ -]{_MONTH}[ -]\d{{2,4}}"
        rf"|{_MONTH} \d{{1,2}},? \d{{4}})(?:[ T].*)?\s*"
    ),
}
"""How texts look that are numbers or dates for people, but categories for a model."""

WITH_UNIT = "numbers with a currency or a unit"

_CURRENCY = r"[$€£¥₹₩₽₺₪₫฿]|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|BRL)\b|Fr\."
_NUMBER = r"\d+(?:[.,'’\u00a0\u202f ]\d+)*"
_AROUND_NUMBER = (  # of a stripped text; blanks that can be matched in two ways take time
    rf"[-+]?\s*(?:(?P<before>{_CURRENCY})\s*[-+]?)?{_NUMBER}"
    rf"(?:\s*(?P<after>{_CURRENCY}|[^\W\d_][^\s\d]{{0,9}}|°[CF]))?"
)


def looks_like(column: pd.Series) -> str:
    """What the texts of a column are for people, in words; "" if they are texts."""
    text = column[column.notna().to_numpy()].astype(str)
    number = pd.to_numeric(text, errors="coerce").notna()
    for name, pattern in WRITTEN_NUMBERS.items():
        found = text.str.fullmatch(pattern)
        if found.any() and (found if name == "dates" else found | number).mean() > 1 - FEW:
            return name
    return WITH_UNIT if _has_unit(text, number.to_numpy(dtype=bool)) else ""


def _has_unit(text: pd.Series, number: Members) -> bool:
    """Whether most texts are numbers, and others numbers with a currency or one and the same unit.

    What differs from cell to cell (`12a`, `12b`) is part of a name.
    """
    found = text.str.strip().str.extract(f"^{_AROUND_NUMBER}$").fillna("")
    after = found["after"].str.casefold().str.rstrip(".")
    money = (found["before"] != "") | found["after"].str.fullmatch(_CURRENCY)
    units = after[(after != "") & ~money]
    one = units.nunique() == 1 and not money.any()
    has = np.asarray(after != "" if one else money, dtype=bool)
    return bool(has.any() and (has | number).mean() > 1 - FEW)
