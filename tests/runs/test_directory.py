import csv
import io
import shutil
from dataclasses import replace

import numpy as np
import pytest

import dupre
from commands import RUN_FILES
from dupre.result.remarks import with_notes
from dupre.runs.directory import RunDirectory, spreadsheet
from dupre.runs.ledger import Ledger
from dupre.spec import spec_of
from dupre.valuation.training_notes import cost_notes
from owners_and_games import LoggedGame, make_owners

SPEC = spec_of(path="/d.csv", owner="owner", target="y")


@pytest.fixture(scope="module")
def valuation():
    owners = make_owners(4)
    game = LoggedGame(owners, lambda members: np.sqrt(members.sum(axis=1)))
    return dupre.value(owners, game, budget=9, progress=False)


@pytest.fixture
def directory(tmp_path):
    made = RunDirectory(tmp_path / "run")
    with made.lock():
        made.write_spec(SPEC)
    return made


def test_what_was_asked_for_and_all_results_are_kept(directory, tmp_path, valuation):
    assert RunDirectory(directory.path).spec() == SPEC
    assert RunDirectory(directory.path / "other").with_history(SPEC) == SPEC
    (tmp_path / "new").touch()
    assert (directory.path / "config.toml").stat().st_mode == (tmp_path / "new").stat().st_mode
    assert directory.write_results([valuation]) is None
    assert directory.write_results([valuation]) is None  # the same values
    assert list(map(str, directory.results())) == [str(valuation)]
    for number in (1, 2):
        before = (directory.path / "result.json").read_text()
        other = valuation.mean + number * np.array([1, -1, 0, 0])
        kept = directory.write_results([replace(valuation, mean=other)])
        assert kept == directory.path / "history" / str(number)
        assert (kept / "result.json").read_text() == before
        assert (kept / "values.csv").read_text() != (directory.path / "values.csv").read_text()
    assert directory.last_result.owners == valuation.owners
    both = [valuation, replace(valuation, semivalue="other")]
    directory.write_results(both)
    assert list(map(str, directory.results())) == list(map(str, both))


def test_payments_are_those_of_the_page_and_earlier_ones_are_kept(directory, valuation):
    directory.write_results([valuation])
    assert not directory.payments.exists()
    terms = SPEC.change(amount=1000, currency="EUR", anyway=True)
    assert directory.write_payments([valuation], terms, Ledger()) is None
    first = directory.payments.read_text()
    assert directory.write_payments([valuation], terms, Ledger()) is None
    assert directory.write_results([valuation]) is None

    other = replace(valuation, mean=valuation.mean * np.array([3, 1, 1, 1]))
    assert directory.has_other_payments(other)
    kept = directory.write_results([other])
    assert {file.name for file in kept.iterdir()} == {"result.json", "values.csv", "payments.csv"}
    assert (kept / "payments.csv").read_text() == first
    assert "Payment (EUR)" in directory.report.read_text()
    for row in csv.DictReader(io.StringIO(directory.payments.read_text())):
        assert f">{float(row['payment']):,.2f}</td>" in directory.report.read_text()
    assert not directory.has_other_payments(other)
    assert directory.write_report([other]) is None

    second = directory.payments.read_text()
    assert directory.write_report([valuation], final=False) is None  # a run that is not finished
    assert directory.payments.read_text() == second
    assert "Payment (EUR)" not in directory.report.read_text()
    kept = directory.write_report([valuation])
    assert [file.name for file in kept.iterdir()] == ["payments.csv"]
    assert directory.payments.read_text() == first
    kept = directory.write_results([replace(valuation, mean=-valuation.mean)])
    assert (kept / "payments.csv").read_text() == first
    assert not directory.payments.exists()
    assert "nothing to share the amount by" in directory.report.read_text()


def test_no_text_of_payments_is_a_formula_for_a_spreadsheet(directory, valuation):
    directory.write_results([valuation])
    terms = SPEC.change(amount=1000, currency="=1+1", anyway=True)
    directory.write_payments([valuation], terms, Ledger())
    rows = list(csv.DictReader(io.StringIO(directory.payments.read_text())))
    assert {row["currency"] for row in rows} == {"'=1+1"}


def test_files_saved_by_others_and_a_history_with_gaps_do_no_harm(directory, valuation):
    directory.write_results([valuation])
    terms = SPEC.change(amount=1000, currency="EUR", anyway=True)
    directory.write_payments([valuation], terms, Ledger())
    directory.payments.write_bytes(b"owner;payment\r\nAnn\xe4;3\r\n")  # as a spreadsheet saves it
    kept = directory.write_report([valuation])
    assert kept.name == "1"
    assert (kept / "payments.csv").read_bytes() == b"owner;payment\r\nAnn\xe4;3\r\n"
    for number in (2, 3):
        other = replace(valuation, mean=valuation.mean * number)
        assert directory.write_results([other]).name == str(number)
    shutil.rmtree(directory.path / "history" / "1")
    (directory.path / "history" / "notes").mkdir()
    assert directory.write_results([valuation]).name == "4"


def test_everything_is_written_inside_and_no_link_is_followed(directory, valuation, tmp_path):
    directory.write_results([valuation])
    directory.write_report([valuation])
    inside = {file.name for file in directory.path.iterdir()}
    assert inside == {*RUN_FILES, ".lock"} - {"store.sqlite"}
    assert list(tmp_path.iterdir()) == [directory.path]

    precious = tmp_path / "precious"
    precious.write_text("mine")
    directory.report.unlink()
    directory.report.symlink_to(precious)
    directory.write_results([valuation])
    assert precious.read_text() == "mine"
    assert not directory.report.is_symlink()


@pytest.mark.parametrize("name", ["config.toml", "store.sqlite-wal"])
def test_a_link_that_leads_out_is_refused(directory, tmp_path, name):
    (directory.path / name).unlink(missing_ok=True)
    (directory.path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(dupre.InputError, match=f"{name} in .* is a link"):
        RunDirectory(directory.path)


def test_another_run_or_other_files_are_named_and_the_same_run_goes_on(directory, tmp_path):
    more = SPEC.change(budget=99)
    assert directory.with_history(more) == more
    with directory.lock():
        directory.write_spec(SPEC.after("dupre value", ()))
    assert directory.with_history(more).history.commands == ("dupre value",)
    other = SPEC.change(target="z")
    with pytest.raises(dupre.InputError, match="holds another run \\(target 'y', not 'z'\\)"):
        directory.with_history(other)
    killed = RunDirectory(tmp_path / "killed")
    with killed.lock():  # what a killed set-up left is no obstacle
        pass
    killed.with_history(SPEC)
    (tmp_path / "killed/thesis.tex").touch()
    with pytest.raises(dupre.InputError, match="holds other files and no run"):
        RunDirectory(tmp_path / "killed").with_history(SPEC)


def test_a_directory_or_result_that_is_not_there_or_damaged_says_so(tmp_path, directory, valuation):
    with pytest.raises(dupre.InputError, match="there is no directory"):
        RunDirectory(tmp_path / "nowhere").spec()
    with pytest.raises(dupre.InputError, match="no run is kept in"):
        RunDirectory(tmp_path).spec()
    (tmp_path / "file").touch()
    with (
        pytest.raises(dupre.InputError, match="cannot be made"),
        RunDirectory(tmp_path / "file").lock(),
    ):
        pass

    with pytest.raises(dupre.InputError, match="has no result yet"):
        directory.results()
    directory.write_results([valuation])
    file = directory.path / "result.json"
    for damaged in (file.read_bytes()[:100], b"\xff\xfe", b""):
        file.write_bytes(damaged)
        with pytest.raises(dupre.InputError, match=r"`dupre resume .*` makes it again"):
            directory.results()


def test_a_directory_is_used_by_one_run_at_a_time(directory):
    again = RunDirectory(directory.path)
    with (
        directory.lock(),
        pytest.raises(dupre.InputError, match="is in use by another run"),
        again.lock(),
    ):
        pass
    with again.lock():
        pass


def test_a_spreadsheet_has_every_digit_and_formulas_are_only_names(valuation):
    other = replace(valuation, semivalue="other")
    rows = list(csv.DictReader(io.StringIO(spreadsheet([valuation, other]))))
    assert [row["semivalue"] for row in rows] == ["Shapley"] * 4 + ["other"] * 4
    assert [float(row["value"]) for row in rows[:4]] == valuation.values.tolist()
    names = ("=HYPERLINK(1)", "+1", "-1", "@x")
    rows = list(csv.DictReader(io.StringIO(spreadsheet([replace(valuation, owners=names)]))))
    assert [row["owner"] for row in rows] == [f"'{name}" for name in names]
    tabs = replace(valuation, owners=("\tx", "\r=1", "\n=1", "plain = 1"))
    rows = list(csv.DictReader(io.StringIO(spreadsheet([tabs]), newline="")))
    assert [row["owner"] for row in rows] == ["\\tx", "\\r=1", "\\n=1", "plain = 1"]


def test_the_way_on_says_what_it_takes_and_costs_if_that_is_a_minute_or_more(directory, valuation):
    more = f"dupre resume {directory} --budget +4"
    assert directory.way_on(valuation) == more
    slow = with_notes(valuation, cost_notes(90.0))
    assert directory.way_on(with_notes(valuation, cost_notes(7.0))) == more
    assert directory.way_on(slow) == f"{more} (about 6 minutes)"
    directory.write_spec(SPEC.change(price="CHF 2.40/h"))
    assert directory.way_on(slow) == f"{more} (about 6 minutes, CHF 0.24)"
