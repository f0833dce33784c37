"""Numbers and dates as people write them: `12.5 %`, `$1,234`, `1'234`, `1,5`, `31.05.2024`.

A column of texts holds numbers or dates if every cell that is not empty fits one form. If it fits
two forms that read different numbers or dates (`1,234`, `03/04/2024`), a user must say which. If it
fits none it stays text. Texts of digits alone (`00123`) stay text too: they are often identifiers.

A number is kept as it is written: 12.5 for `12.5 %`. Models standardise their columns, and a page
then shows what the file shows. All functions look at different cells once, not at every row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dupre._types import Ints, Members
from dupre.errors import InputError, Remedy
from dupre.spec import Data
from dupre.tables.columns import as_tuple, first, kind, place, whole_as_text
from dupre.wording import did_you_mean, join_list, printable, quote, quote_names

TEXT = "text"
"""The form of a column that stays as it is written."""

_ALIKE = str.maketrans({"\u00a0": " ", "\u2009": " ", "\u202f": " ", "’": "'", "−": "-"})
"""Signs that look alike, as one of them."""

_CURRENCY = (
    r"(?:US|A|C)?\$|[€£¥₹₩₽₺₪₫฿]"
    r"|(?:USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|PLN|CZK|BRL)\b|Fr\."
)
_UNIT = rf"%|{_CURRENCY}|°[CF]|[^\W\d_][^\s\d=]{{0,9}}"
_CELL = re.compile(
    rf"(?P<sign>[-+]?) ?(?P<before>{_CURRENCY})? ?(?P<inner>[-+]?) ?"
    rf"(?P<body>\d(?:[\d.,' ]*\d)?|[.,]\d+)(?: *(?P<after>{_UNIT}))?"
)


def _grouped(sign: str) -> str:
    return rf"[1-9]\d{{0,2}}(?:{sign}\d{{3}})+"


_WHOLE = r"(?:0|[1-9]\d*)"  # no 007: that is a name
_NUMBERS = {
    "decimal-point": rf"(?:{_WHOLE}|{_grouped(chr(39))}|{_grouped(' ')})(?:\.\d+)?|\.\d+",
    "thousands-comma": rf"(?:{_WHOLE}|{_grouped(',')})(?:\.\d+)?|\.\d+",
    "decimal-comma": rf"(?:{_WHOLE}|{_grouped(chr(39))}|{_grouped(' ')})(?:,\d+)?|,\d+",
    "thousands-point": rf"(?:{_WHOLE}|{_grouped(chr(92) + '.')})(?:,\d+)?|,\d+",
}
"""Forms of numbers without sign and unit. Of those that read the same numbers, the first counts."""

_BY_POINT = ("decimal-point", "thousands-comma")
_PLAIN = {name: str.maketrans("", "", ",' ") for name in _BY_POINT}
_PLAIN |= {name: str.maketrans(",", ".", ".' ") for name in _NUMBERS if name not in _BY_POINT}

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_DAY, _YEAR = r"(?P<day>\d{1,2})", r"(?P<year>\d{4})"
_M, _SAME = r"(?P<m>\d{1,2})", r"(?P=sep)"
_SEP, _TIME = r"(?P<sep>[./-])", r"(?:[ T](?P<H>\d{1,2}):(?P<M>\d\d)(?::(?P<S>\d\d))?)?"
_DATES = {  # two-digit years are left alone: nobody can tell the century of a birthday
    "day-first": (rf"{_DAY}{_SEP}{_M}{_SAME}{_YEAR}", rf"{_DAY}\.?[ -]{_MONTH}[ -]{_YEAR}"),
    "month-first": (rf"{_M}{_SEP}{_DAY}{_SAME}{_YEAR}", rf"{_MONTH} {_DAY},? {_YEAR}"),
    "year-first": (rf"{_YEAR}(?P<sep>[./]){_M}{_SAME}{_DAY}",),  # with "-" it is ISO: `columns`
}
_DATE_PATTERNS = {
    name: [re.compile(f"{pattern}{_TIME}", re.IGNORECASE) for pattern in patterns]
    for name, patterns in _DATES.items()
}

FORMS = (*_NUMBERS, *_DATES, TEXT)
"""What a user may state of a column."""

_WORDS = {
    "decimal-point": "",
    "thousands-comma": "thousands by comma",
    "decimal-comma": "a decimal comma",
    "thousands-point": "thousands by point",
    "day-first": "dates, day first",
    "month-first": "dates, month first",
    "year-first": "dates, year first",
    TEXT: "text",
}
_BETWEEN = {"'": "thousands by apostrophe", " ": "thousands by blank"}


@dataclass(frozen=True)
class Form:
    """How every cell of a column is written.

    Attributes:
        name: one of `FORMS`.
        before: the currency before each number.
        after: the currency, unit or per cent sign after each number.
        between: the sign between thousands in some cell, if it is a blank or an apostrophe. Such
            signs are read in any case, so that it says nothing of other cells.
    """

    name: str
    before: str = ""
    after: str = ""
    between: str = field(default="", compare=False)

    def __str__(self) -> str:
        """As settings keep it: "$ thousands-comma", "decimal-point %"."""
        return " ".join(filter(None, (self.before, self.name, self.after)))

    @property
    def words(self) -> str:
        """For people: "$ amounts with thousands by comma"."""
        if self.name not in _NUMBERS:
            return _WORDS[self.name]
        unit = self.before or self.after
        what = f"numbers in {unit}" if unit else "numbers"
        if re.fullmatch(_CURRENCY, unit):
            what = f"{unit} amounts"
        elif unit == "%":
            what = "per cent (12.5 % is 12.5)"
        signs = filter(None, [_WORDS[self.name], _BETWEEN.get(self.between)])
        return f"{what} with {' and '.join(signs)}".removesuffix(" with ")


Forms = Mapping[str, Form]


def parse_forms(texts: str | Sequence[str]) -> dict[str, Form]:
    """The forms of columns in texts such as "price=thousands-comma".

    Raises:
        InputError: a text is no column with a form.
    """
    found = {}
    for text in as_tuple(texts):
        column, equal, form = text.rpartition("=")
        tokens = form.split()
        place = next((i for i, token in enumerate(tokens) if token in FORMS), None)
        if not column or not equal or place is None or len(tokens) > 3:
            raise InputError(
                f"expected COLUMN=FORM, such as price=thousands-comma, got {quote(text)}"
                f"{did_you_mean(form, FORMS)}; the forms are {', '.join(FORMS)}"
            )
        before, after = " ".join(tokens[:place]), " ".join(tokens[place + 1 :])
        found[column] = Form(tokens[place], before, after)
    return found


def write_forms(forms: Forms) -> tuple[str, ...]:
    """The same as texts, which `parse_forms` reads."""
    return tuple(f"{name}={form}" for name, form in forms.items())


def explain_forms(forms: Forms) -> str:
    """For people: "share as per cent, price as $ amounts with thousands by comma"."""
    names: dict[str, list[str]] = {}
    for name, form in forms.items():
        names.setdefault(form.words, []).append(printable(name))
    return ", ".join(f"{join_list(some)} as {words}" for words, some in names.items())


def read_forms(
    frame: pd.DataFrame, data: Data, known: Forms | None = None
) -> tuple[pd.DataFrame, dict[str, Form]]:
    """The table with columns of numbers and dates in their types, and the forms of these columns.

    Args:
        frame: the table as it was read.
        data: what a user says about it; the owner column and those to drop stay as they are.
        known: the forms of before, if they are decided; other columns than these are not read.

    Raises:
        InputError: a column fits two forms, or a cell not the form of its column.
    """
    stated = parse_forms(data.numbers)
    _check_columns(stated, frame, data)
    found: dict[str, Form] = {}
    unclear: dict[str, list[_Reading]] = {}
    result = {}
    for name in frame.columns:
        column = result[name] = frame[name]
        if name == data.owner or name in as_tuple(data.drop):
            continue
        form = (known or {}).get(name, stated.get(name))
        if form is not None:
            # Who states a form says what a cell without a sign is; otherwise 12 is not 12 %.
            result[name], found[name] = read_column(column, form, bare=name in stated)
        elif known is None:
            readings = find_readings(column, decimal=data.decimal)
            if len(readings) > 1:
                unclear[name] = readings
            elif readings:
                result[name], found[name] = readings[0].column, readings[0].form
    if unclear:
        raise _question(frame, unclear)
    return pd.DataFrame(result, index=frame.index), found


def kept_as_text(forms: Forms) -> set[str]:
    """Columns that a user wants as they are written."""
    return {name for name, form in forms.items() if form.name == TEXT}


def is_code(column: pd.Series) -> bool:
    """Whether a column holds digits alone, some after zeros: identifiers such as 00123."""
    cells = [cell for cell in _Cells(column).held if isinstance(cell, str)]
    return all(map(str.isdigit, cells)) and any(re.match(r"0\d\d", cell) for cell in cells)


class _Reading(NamedTuple):
    """A column in one form."""

    form: Form
    column: pd.Series


class _Cells:
    """The different cells of a column.

    Attributes:
        held: each different cell that is not empty; texts without blanks at their ends.
        codes: which of them each row holds, -1 for an empty cell, (N,).
    """

    held: list[Any]
    codes: Ints

    def __init__(self, column: pd.Series):
        self._column = column
        codes, found = pd.factorize(column)
        cells = [_tidy_cell(cell) if isinstance(cell, str) else cell for cell in found]
        self.held, self.codes = cells, np.asarray(codes)
        if "" in cells:  # blanks alone: an empty cell
            empty = np.array([isinstance(cell, str) and not cell for cell in cells])
            place = np.append(np.where(empty, -1, np.cumsum(~empty) - 1), -1)
            self.held = [cell for cell in cells if not isinstance(cell, str) or cell]
            self.codes = place[self.codes]

    def spread(self, values: NDArray[Any]) -> pd.Series:
        """The column with these values in place of its different cells."""
        gaps = self.codes < 0
        if gaps.any() and values.dtype.kind in "iu":
            values = values.astype(np.float64)
        none = np.datetime64("NaT") if values.dtype.kind == "M" else np.nan
        every = np.append(values, none) if gaps.any() else values
        return pd.Series(every[self.codes], index=self._column.index, name=self._column.name)


def _tidy_cell(text: str) -> str:
    return (text if text.isascii() else text.translate(_ALIKE)).strip()


def find_readings(column: pd.Series, *, decimal: str = ".") -> list[_Reading]:
    """The column in each form that all its cells fit, forms that read the same counted once.

    Args:
        column: of texts; none is found for other columns.
        decimal: "," if a user has said that it stands before decimals.
    """
    if kind(column) != "text" or isinstance(column.dtype, pd.CategoricalDtype):
        return []
    cells = _Cells(column)
    texts = [cell for cell in cells.held if isinstance(cell, str)]
    if not texts:
        return []
    found: list[tuple[Form, NDArray[Any]]] = []
    for form in (*_number_forms(texts, decimal), *_date_forms(texts)):
        values, wrong = _values(cells.held, form)
        if not len(wrong) and not any(_equal(values, other) for _, other in found):
            found.append((form, values))
    return [_Reading(_with_between(form, texts), cells.spread(values)) for form, values in found]


def read_column(column: pd.Series, form: Form, *, bare: bool = False) -> tuple[pd.Series, Form]:
    """A column in this form, and the form with its unit.

    Args:
        column: as it was read.
        form: of all its cells.
        bare: whether cells may lack the unit that others have.

    Raises:
        InputError: a cell does not fit; says which.
    """
    if form.name == TEXT:
        return (column if kind(column) == "text" else whole_as_text(column)), form
    if kind(column) in ("empty", "other") or (kind(column) == "date" and form.name in _DATES):
        return column, form
    cells = _Cells(column)
    if bare and form.name in _NUMBERS and not (form.before or form.after):
        form = _with_unit(form, cells.held)
    values, wrong = _values(cells.held, form, bare=bare)
    if len(wrong):
        row = first(np.isin(cells.codes, wrong))
        raise InputError(
            f"column {column.name!r} is read as {form.words}, but {quote(column.iloc[row])} in "
            f"{place(column, row)} does not fit; write it like the others, or leave it empty"
        )
    return cells.spread(values), _with_between(form, cells.held)


def _check_columns(stated: Forms, frame: pd.DataFrame, data: Data) -> None:
    """Raise InputError if a form is stated for a column that has none."""
    names = [str(name) for name in frame.columns if name != data.owner]
    for name in stated:
        if name not in names:
            raise InputError(
                f"a form is stated for {name!r}: no such column besides the owner"
                f"{did_you_mean(name, names)}; the columns are {quote_names(names)}"
            )


def _question(frame: pd.DataFrame, unclear: Mapping[str, Sequence[_Reading]]) -> InputError:
    """The error that asks how columns are written, with the option that decides."""
    name, readings = next(iter(unclear.items()))
    column = frame[name]
    # The cell that shows the difference: 1,234 and not the 12 before it.
    one, other = (reading.column for reading in readings[:2])
    row = first((one != other) & one.notna())
    told = [f"{reading.form.words} ({_show(reading.column.iloc[row])})" for reading in readings]
    others = [other for other in unclear if other != name]
    again = f"; the same for {quote_names(others)}" if others else ""
    options: list[str] = []
    for reading in readings:
        options += [", or " if options else "", Remedy.NUMBERS, repr(f"{name}={reading.form.name}")]
    comma = any(reading.form.name == "decimal-comma" for reading in readings)
    whole = (", or ", Remedy.DECIMAL, "',' for all columns of a CSV file") if comma else ()
    return InputError(
        f"column {name!r} fits two forms: {quote(column.iloc[row])} in {place(column, row)} is "
        f"read as {' or '.join(told)}; expected one: state ",
        *options,
        *whole,
        again,
    )


def _show(value: Any) -> str:
    return f"{value:%Y-%m-%d}" if isinstance(value, datetime) else f"{value:.15g}"


def _number_forms(texts: Sequence[str], decimal: str) -> list[Form]:
    """Forms of numbers that the texts may have: with the unit of the first."""
    if all(re.fullmatch(r"[-+]?\d+", text) for text in texts):
        return []  # nothing says that they are no codes; a file of plain numbers holds no texts
    unit = _unit_of(texts[0])
    names = [name for name in _NUMBERS if decimal == "." or name not in _BY_POINT]
    return [] if unit is None else [Form(name, *unit) for name in names]


def _unit_of(text: str) -> tuple[str, str] | None:
    """What stands before and after the number in a text; None if it is no number."""
    found = _CELL.fullmatch(text)
    return None if found is None else (found["before"] or "", found["after"] or "")


def _with_unit(form: Form, cells: Iterable[Any]) -> Form:
    """The form with the first unit that a cell has."""
    units = (_unit_of(cell) for cell in cells if isinstance(cell, str))
    before, after = next((unit for unit in units if unit and any(unit)), ("", ""))
    return replace(form, before=before, after=after)


def _with_between(form: Form, cells: Iterable[Any]) -> Form:
    """The form with the first blank or apostrophe that stands between digits."""
    if form.name not in _NUMBERS:
        return form
    found = (re.search(r"\d([' ])\d", cell) for cell in cells if isinstance(cell, str))
    return replace(form, between=next((one[1] for one in found if one), ""))


def _date_forms(texts: Sequence[str]) -> list[Form]:
    """Forms of dates that the texts may have."""
    fitting = [Form(name) for name in _DATES if _date_in(texts[0], name) is not None]
    day, month = Form("day-first"), Form("month-first")
    points = not any("/" in text or "-" in text for text in texts)
    # Nobody writes the month first with points, unless the column can only be read so.
    if day in fitting and points and all(_date_in(text, day.name) for text in texts):
        fitting = [form for form in fitting if form != month]
    return fitting


def _values(
    cells: Sequence[Any], form: Form, *, bare: bool = False
) -> tuple[NDArray[Any], Sequence[int]]:
    """What cells hold in a form, (k,), or the first of them that does not fit it.

    Nothing is read after that cell: most columns of texts are no numbers.
    """
    return _read_number(cells, form, bare) if form.name in _NUMBERS else _read_date(cells, form)


def _read_number(
    cells: Sequence[Any], form: Form, bare: bool
) -> tuple[NDArray[Any], Sequence[int]]:
    match, plain = _pattern(form, bare=bare).fullmatch, _PLAIN[form.name]
    numbers_fit = bare or not (form.before or form.after)
    texts: list[str] = []
    for i, cell in enumerate(cells):
        if isinstance(cell, str):
            found = match(cell)
            if found is None:
                return _nothing(i)
            texts.append("".join(found.groups("")))
        elif numbers_fit and isinstance(cell, Real) and not isinstance(cell, (bool, np.bool_)):
            texts.append(str(cell).replace(".", "," if form.name not in _BY_POINT else "."))
        else:
            return _nothing(i)
    texts = "\n".join(texts).translate(plain).split("\n")  # at once: a million cells take a second
    try:
        return np.array(list(map(int, texts)), dtype=np.int64), ()
    except (ValueError, OverflowError):
        return np.array(list(map(float, texts))), ()


def _pattern(form: Form, *, bare: bool) -> re.Pattern[str]:
    """What a cell of this form matches: groups of its signs and of the number."""
    before, after = (
        rf"(?:(?i:{re.escape(unit.rstrip('.'))})\.?){'?' * bare}" if unit else ""
        for unit in (form.before, form.after)
    )
    number = _NUMBERS[form.name]
    # Only one sign: the second may stand where there is no first.
    return re.compile(rf"(?:([-+]) ?{before}|{before} ?([-+]?)) ?({number}) *{after}")


def _fold(unit: str | None) -> str:
    return (unit or "").casefold().rstrip(".")


def _nothing(wrong: int) -> tuple[NDArray[Any], Sequence[int]]:
    return np.empty(0), (wrong,)


def _read_date(cells: Sequence[Any], form: Form) -> tuple[NDArray[Any], Sequence[int]]:
    dates: list[datetime] = []
    for i, cell in enumerate(cells):
        date = _date_in(cell, form.name) if isinstance(cell, str) else cell
        if not isinstance(date, datetime):
            return _nothing(i)
        dates.append(date)
    return pd.to_datetime(pd.Series(dates, dtype=object)).to_numpy(), ()


def _date_in(text: str, name: str) -> datetime | None:
    """The point in time in a text of this form; None if there is none."""
    for pattern in _DATE_PATTERNS[name]:
        if found := pattern.fullmatch(text):
            part = found.groupdict()
            month = part.get("m") or _MONTHS.index(part["month"][:3].lower()) + 1
            hour, minute, second = (int(part[key] or 0) for key in "HMS")
            day = int(part["year"]), int(month), int(part["day"])
            try:
                date = datetime(*day, hour, minute, second)
            except ValueError:
                return None
            return date if 1700 <= date.year < 2200 else None  # what pandas can count
    return None


def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype.kind == other.dtype.kind and bool(np.array_equal(one, other))


MOST_LOOKED_AT = 10_000
"""Rows by which it is said what texts look like."""

WITH_UNIT = "numbers with a currency or a unit"
TIMES = "times"
PLAIN = "plain numbers"

FEW_LEVELS = 10
"""Different cells up to which plain numbers beside other texts are levels: 0, 1, 2 and 3+."""

_DECIMALS = r"(?:[.,]\d+)?"
_LIKE_NUMBERS = {
    "percentages": re.compile(rf"[-+]?\d+{_DECIMALS} *%"),
    "numbers with signs between thousands": re.compile(
        rf"[-+]?\d{{1,3}}(?:[' ]\d{{3}})+{_DECIMALS}"
    ),
    "numbers with a comma": re.compile(r"[-+]?\d+(?:[.,]\d+)*,\d+(?:[.,]\d+)*"),
    "numbers with a decimal point": re.compile(r"[-+]?\d*\.\d+"),
    "numbers, some with a bound or in parentheses,": re.compile(
        r"[<>≤≥~≈]=? *[-+]?\d+(?:[.,' ]\d+)*|\(\d+(?:[.,' ]\d+)*\)"
    ),
    TIMES: re.compile(r"[-+]?\d{1,3}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[ap]m)?", re.IGNORECASE),
    "dates": re.compile(
        r"(?:\d{1,2}([./-])\d{1,2}\1\d{2,4}|\d{4}([./])\d{1,2}\2\d{1,2}"
        rf"|\d{{1,2}}\.?[ -]{_MONTH}[ -]\d{{2,4}}|{_MONTH.replace('month', 'first')} \d{{1,2}},? "
        r"\d{4})(?:[ T].*)?",
        re.IGNORECASE,
    ),
}


class Likeness(NamedTuple):
    """What most texts of a column are for people.

    Attributes:
        what: in words.
        example: one of them.
        other: the first that is not written like it; "" if no form is known by which to tell.
        wrong: how many cells are not, of those looked at.
        cells: how many were looked at.
    """

    what: str
    example: str
    other: str
    wrong: int
    cells: int

    def __str__(self) -> str:
        but = "no form that is read fits all"
        if self.other:
            but = f"not {quote(self.other)} ({self.wrong:,} of {self.cells:,} cells)"
        return f"most cells are {self.what} such as {quote(self.example)}, but {but}"


def looks_like(column: pd.Series) -> Likeness | None:
    """What most texts of a column are for people, if these are numbers or dates."""
    cells = _Cells(column[:: 1 + len(column) // MOST_LOOKED_AT])
    texts = [str(cell) for cell in cells.held]
    rows = np.bincount(cells.codes[cells.codes >= 0], minlength=len(texts))
    plain = np.array(
        [re.fullmatch(r"[-+]?(?:\d+\.?\d*|\.\d+)", text) is not None for text in texts]
    )
    written = {
        name: np.array([pattern.fullmatch(text) is not None for text in texts], dtype=bool)
        for name, pattern in _LIKE_NUMBERS.items()
    }
    levels = len(texts) <= FEW_LEVELS
    whole = {WITH_UNIT: _have_unit(texts), PLAIN: plain & (not levels and not plain.all())}
    for name, found in {**written, **whole}.items():
        either = found if name in ("dates", TIMES) else found | plain
        if found.any() and (either * rows).sum() > rows.sum() / 2:
            example = texts[first(found)]
            wrong = ~either if not either.all() else _written_otherwise(cells.held, example)
            other = texts[first(wrong)] if wrong.any() else ""
            return Likeness(name, example, other, int(rows[wrong].sum()), int(rows.sum()))
    return None


def _written_otherwise(cells: Sequence[Any], example: str) -> Members:
    """Which cells do not fit the form of an example that fits most; none if it has no form."""
    forms = [*_number_forms([example], "."), *_date_forms([example])]
    found = [np.array([len(_values([cell], form)[1]) > 0 for cell in cells]) for form in forms]
    return min(found, key=np.count_nonzero, default=np.zeros(len(cells), dtype=bool))


def how_to_read(column: pd.Series) -> tuple[str, ...]:
    """What to do about a column of texts that is numbers or dates for people; () if it is not."""
    if (like := looks_like(column)) is None:
        return ()
    readings = [_read_or_none(column, form) for form in map(Form, _NUMBERS)]
    known = [one for one in readings if one is not None]
    # If forms read different numbers, nobody knows which are meant.
    state: tuple[str, ...] = ()
    if known and all(one.column.equals(known[0].column) for one in known):
        state = (", or state ", Remedy.NUMBERS, repr(f"{column.name}={known[0].form.name}"))
    return f"Of {str(column.name)!r} {like}: write all alike, or leave cells empty", *state


def _read_or_none(column: pd.Series, form: Form) -> _Reading | None:
    try:
        found, form = read_column(column, form, bare=True)
    except InputError:
        return None
    return _Reading(form, found)


def _have_unit(texts: Sequence[str]) -> Members:
    """Which texts are numbers with a currency, or else with one and the same unit, (k,).

    What differs from cell to cell (`12a`, `12b`) is part of a name.
    """
    units = [_unit_of(text) or ("", "") for text in texts]
    is_money = re.compile(_CURRENCY).fullmatch
    money = [bool(before or is_money(after)) for before, after in units]
    after = [_fold(unit) for _, unit in units]
    # A per cent sign is no part of a name, so that another unit beside it is one, too.
    several = "%" in after or len(set(after) - {""}) == 1
    units_alone = several and not any(money)
    return np.array([bool(unit) for unit in after] if units_alone else money, dtype=bool)
