import builtins
import io

import openpyxl
import pandas as pd
import pytest

from dupre import InputError
from dupre.errors import NotPayableError
from dupre.notes import Code, note
from dupre.report.excel import workbook
from reporting import VARIANTS, change, trainings, troubled, valuation

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "#N/A", "=cmd|' /C calc'!A0", "a\tb\x07")


def opened(content):
    return openpyxl.load_workbook(io.BytesIO(content))


def rows_of(book, sheet):
    return [list(row) for row in book[sheet].iter_rows(values_only=True)]


def test_each_sheet_has_what_it_is_called_after():
    v = valuation(4, notes=(note(Code.LEAK, "see /home/me/a.csv", column="age"),))
    paid = v.payments(1_000, currency="CHF")
    other = change(v, semivalue="Banzhaf")
    book = opened(workbook([v, other], paid))
    assert book.sheetnames == ["answer", "values", "payments", "notes", "trainings"]
    answer = {row[0]: row[1:] for row in rows_of(book, "answer")}
    answer = {name: cells[:2] for name, cells in answer.items()}
    assert answer["answer"] == ["Shapley", "Banzhaf"]
    assert answer["verdict"] == ["payable with reservations"] * 2
    assert answer["why"][0].startswith("A column nearly determines the target: age.")
    assert answer["gain"][0] == "utility 0.9 with everybody's data, 0.1 without"
    assert answer["next"][0] == "more trainings."
    assert answer["amount"][0] == 1_000
    head, *values = rows_of(book, "values")
    assert [row[:2] for row in values[:4]] == [["Shapley", v.owners[i]] for i in v.order]
    frame = pd.concat([v.to_frame().iloc[v.order], other.to_frame().iloc[v.order]])
    assert not any("_" in name for name in head)
    for name, called in (
        *(("rows", "rows"), ("value", "value"), ("share", "share"), ("low", "95 % from")),
        *(("best", "best rank (95 %)"), ("noise_std", "deviation by noise")),
    ):
        assert [row[head.index(called)] for row in values] == pytest.approx(list(frame[name]))
    head, *payments = rows_of(book, "payments")
    assert head == ["owner", "payment", "95 % interval, from", "95 % interval, to", "currency"]
    assert sum(row[1] for row in payments) == pytest.approx(1_000)
    assert book["payments"]["B2"].number_format == "#,##0.00"
    told = rows_of(book, "notes")
    assert ["Shapley", "beware", "leak", "see a.csv"] in told
    assert len(told) == 1 + len(v.notes) + len(other.notes)
    assert len(rows_of(book, "trainings")) == 1 + len(v.evaluations)


def test_the_answer_has_the_table_of_owners_and_numbers_are_shown_as_the_page_does():
    v = valuation(4)
    paid = v.payments(1_000, currency="CHF")
    for given, headings in (
        (paid, ["owner", "payment CHF", "95 % interval, from", "95 % interval, to", "value"]),
        (None, ["owner", "value", "95 % from", "95 % to"]),
    ):
        book = opened(workbook([v], given))
        rows = rows_of(book, "answer")
        (at,) = [i for i, row in enumerate(rows) if row[0] == "owner"]
        ends = ["share", "best rank (95 %)", "worst rank (95 %)", "rows"]
        assert [name for name in rows[at] if name] == [*headings, *ends]
        assert [row[0] for row in rows[at + 1 :]] == [v.owners[i] for i in v.order]
        assert book["answer"].cell(at + 1, 1).font.bold
        first = dict(zip(rows[at], book["answer"][at + 2], strict=True))
        assert first["value"].value == pytest.approx(v.mean[v.order[0]])
        assert first["value"].number_format == "#,##0.0000"
        assert first["share"].number_format == "0.0%"
        if given:
            assert first["payment CHF"].number_format == "#,##0.00"
            assert first["95 % interval, from"].value == pytest.approx(paid.frame["low"].iloc[0])
    values = book["values"]
    assert {cell.number_format for cell in values[2][3:] if isinstance(cell.value, float)} == {
        "#,##0.0000",
        "0.0%",
    }


def test_no_text_is_a_formula_or_an_error_and_numbers_are_numbers():
    v = valuation(names=FORMULAS, semivalue="=2", notes=(note(Code.LEAK, "=3"),))
    v = change(v, evaluations=trainings([FORMULAS[:1], FORMULAS[:2]], failed={FORMULAS[:2]}))
    book = opened(workbook([v], v.payments(7, currency="=4", anyway=True)))
    shown = set()
    for cell in (cell for sheet in book for row in sheet.iter_rows() for cell in row):
        assert cell.data_type in ("s", "n")
        if isinstance(cell.value, str):
            shown.add(cell.value)
            assert cell.quotePrefix == cell.value.startswith(("=", "+", "-", "@"))
    assert shown >= {*FORMULAS[:-1], "a\\tb\\x07", "=2", "=3", "=4"}
    failed = rows_of(book, "trainings")[2]
    assert failed[1] is None  # a utility that is not known
    assert "ValueError: no" in failed


@pytest.mark.parametrize("kind", VARIANTS)
def test_every_kind_of_valuation_has_a_workbook(kind):
    assert len(opened(workbook(VARIANTS[kind]())).sheetnames) == 4


def test_it_says_why_nobody_is_paid_and_which_extra_is_missing(monkeypatch):
    book = opened(workbook([troubled()], NotPayableError("not payable: no gain")))
    told = [row[:2] for row in rows_of(book, "answer")]
    assert ["payments", "none: not payable: no gain"] in told
    assert "payments" not in book.sheetnames
    found = builtins.__import__

    def without(name, *more):
        if name == "openpyxl":
            raise ImportError
        return found(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(
        InputError, match=r"needs the package openpyxl; pip install 'dupre\[excel\]"
    ):
        workbook([valuation(2)])
