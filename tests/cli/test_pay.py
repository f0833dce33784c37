import csv
import json
import re
import subprocess
from pathlib import Path
from unittest.mock import Mock, patch

import numpy as np
import pandas as pd
import pytest

import dupre
from command_tables import FEW, good, value
from commands import COMMAND, environment, refuse, run
from dupre.cli.output import ExitCode
from dupre.runs import directory

ASKED = ("pay", "paid", "--anyway", "--currency", "CHF", "--amount")
NAMES = ("owner 0", "owner 1", "owner 2")


@pytest.fixture
def paid(copy):
    """A directory with a finished run of its own, called paid."""
    (copy / "dupre-wine").rename(copy / "paid")
    return copy


def contents(directory):
    """Every file below a directory, but for locks, which are touched by whoever looks."""
    every = (path for path in directory.rglob("*") if path.is_file())
    return {path: path.read_bytes() for path in every if not path.name.endswith("lock")}


def table(directory):
    with (directory / "payments.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_values_that_are_not_payable_are_refused_with_a_code_of_its_own(data):
    run("value", *FEW, "--budget", "7", "--run", "paid", cwd=data)
    refused = run("pay", "paid", "--amount", "99.95", cwd=data, code=ExitCode.NOT_PAYABLE)
    assert refused.stdout == ""
    assert refused.stderr.startswith("Error: not payable. Missing trainings")
    assert refused.stderr.endswith(" To pay all the same, state --anyway\n")
    assert not (data / "paid/payments.csv").exists()
    printed = run(*ASKED, "99.95", cwd=data).stdout
    assert printed.startswith("Not payable, and paid anyway.\n")
    assert "Paid although not payable" in (data / "paid/report.html").read_text()
    told = json.loads(run(*ASKED, "99.95", "--json", cwd=data).stdout)
    assert (told["verdict"], told["anyway"]) == ("not payable", True)
    assert sum(round(100 * one["payment"]) for one in told["payments"]) == 9995
    shown = run("show", "paid", "--verbose", cwd=data).stdout.splitlines()
    lines = [f"Beware: {one['text']}" for one in told["notes"] if one["severity"] != "info"]
    assert lines == [line for line in shown if line.startswith("Beware")] != []

    before = (data / "paid/payments.csv").read_text()
    resumed = run("resume", "paid", "--budget", "+1", cwd=data).stderr
    assert "The table of payments has changed: payments.csv and the page have the new" in resumed
    (kept,) = re.findall(r"Payments before: (\S+)", resumed)
    assert (data / kept).read_text() == before != (data / "paid/payments.csv").read_text()


def lung(rows=90, seed=1):
    """By hospital, and mostly one outcome: a model of noise does worse than guessing."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(rows, 12))).add_prefix("x")
    hospital = [f"hospital {i % 4}" for i in range(rows)]
    return frame.assign(who=hospital, y=np.where(rng.random(rows) < 0.72, "dead", "alive"))


def cereals(rows=60, seed=0):
    """By maker, and few are hot: by a weak column all are called cold, which guessing does too."""
    rng = np.random.default_rng(seed)
    maker, hot = [f"maker {i % 3}" for i in range(rows)], np.arange(rows) % 7 == 0
    return pd.DataFrame({"x": rng.normal(size=rows) + hot / 4, "who": maker, "y": hot.astype(int)})


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (lung(), r"all data together score worse \(0\.\d+\) than none \(0\.6889\)\."),
        (cereals(), r"no gain: all data together score 0\.85, the same as none\."),
    ],
    ids=["lung", "cereals"],
)
def test_who_gains_nothing_by_pooling_is_told_so_and_nobody_is_paid(place, frame, why):
    frame.to_csv(place / "data.csv", index=False)
    done = value("--folds", "3", "--quiet", data="data.csv", budget=15)
    assert re.match(f"Not payable: {why}\n", done.stdout)
    assert "Next: " in done.stdout
    refused = run("pay", "run", "--amount", "1000", code=ExitCode.NOT_PAYABLE)
    assert refused.stdout == ""
    assert re.search(f"(?i)not payable. {why}", refused.stderr)
    assert not Path("run/payments.csv").exists()


def test_both_intervals_of_a_payment_are_kept_each_with_its_name(paid):
    printed = run(*ASKED, "1000", "--for", "rows", cwd=paid).stdout
    assert re.search("95 % for these rows +95 % for the population", printed)
    first, *_ = table(paid / "paid")
    names = ["low", "high", "low_for_population", "high_for_population"]
    assert [name for name in first if name.startswith(("low", "high"))] == names
    told = json.loads(run(*ASKED, "1000", "--for", "rows", "--json", cwd=paid).stdout)
    assert told["for_these_rows"]
    assert {name: str(told["payments"][0][name]) for name in names} == {n: first[n] for n in names}
    assert "95\u00a0% for these rows" in (paid / "paid/report.html").read_text()
    run("report", "paid", "--statements", "st", "--only", first["owner"], cwd=paid)
    (sheet,) = (paid / "st").iterdir()
    assert "Payment, 95\u00a0% for these rows" in sheet.read_text()
    other = json.loads(run(*ASKED, "1000", "--json", cwd=paid).stdout)
    pairs = zip(told["payments"], other["payments"], strict=True)
    assert all(one["low_for_population"] == two["low"] for one, two in pairs)


def test_payments_are_printed_kept_and_part_of_every_later_page(paid):
    printed = run(*ASKED, "10", cwd=paid).stdout
    assert re.search(r"^sum +10.00$", printed, flags=re.MULTILINE)
    assert sum(round(100 * float(row["payment"])) for row in table(paid / "paid")) == 1000
    assert {row["currency"] for row in table(paid / "paid")} == {"CHF"}
    page = (paid / "paid/report.html").read_text()
    assert "Payment (CHF)" in page
    assert "who is at or below zero gets nothing" in page
    report = ("report", "paid", "--statements", "st", "--only", "Alba")
    (written,) = run(*report, cwd=paid).stdout.split()
    assert "CHF" in (paid / written).read_text()
    assert "--statements" in refuse("report", "paid", "--only", "Alba", cwd=paid)


@pytest.mark.parametrize("amount", ["0", "-5", "nan"])
def test_an_amount_that_cannot_be_shared_is_refused(paid, amount):
    message = refuse(*ASKED, amount, cwd=paid)
    assert message == f"--amount must be above zero, got {amount}\n"


def test_a_dry_run_prints_the_same_and_changes_nothing(paid):
    before = contents(paid)
    told = run(*ASKED, "10", "--dry-run", "--book", cwd=paid)
    assert told.stderr == "Nothing was written: --dry-run.\n"
    assert contents(paid) == before
    assert run(*ASKED, "10", cwd=paid).stdout == told.stdout


def test_what_is_booked_is_paid_once_and_the_next_quarter_pays_the_difference(paid):
    told = run(*ASKED, "10", "--book", cwd=paid).stderr
    assert told.startswith("Booked as entries 1 to 5; the ledger is paid/ledger.jsonl, its last ")
    ledger = (paid / "paid/ledger.jsonl").read_text()
    entries = [json.loads(line) for line in ledger.splitlines()]
    assert {e["owner"]: e["paid"] for e in entries} == {
        row["owner"]: float(row["payment"]) for row in table(paid / "paid")
    }
    assert f'ledger = "{entries[-1]["digest"]}"' in (paid / "paid/config.toml").read_text()
    again = run(*ASKED, "10", "--book", cwd=paid)
    assert "Nothing to book" in again.stderr
    assert "already paid  difference" in again.stdout
    assert (paid / "paid/ledger.jsonl").read_text() == ledger

    run("resume", "paid", "--budget", "+17", cwd=paid)
    told = json.loads(run(*ASKED, "25", "--json", cwd=paid).stdout)["payments"]
    booked = {entry["owner"]: entry["paid"] for entry in entries}
    for one in told:
        assert one["already_paid"] == booked[one["owner"]]
        assert one["difference"] == pytest.approx(one["payment"] - one["already_paid"], abs=1e-9)
    assert sum(round(100 * one["difference"]) for one in told) == 1500
    refused = refuse(*ASKED, "5", "--book", cwd=paid)
    assert "somebody would have to pay back: " in refused
    assert "add --pay-back" in refused
    run(*ASKED, "5", "--book", "--pay-back", cwd=paid)
    ledger = (paid / "paid/ledger.jsonl").read_text()
    assert round(sum(json.loads(line)["paid"] for line in ledger.splitlines()), 2) == 5.0


@pytest.mark.slow
def test_a_ledger_goes_on_in_the_run_of_the_next_quarter(paid):
    run(*ASKED, "10", "--book", cwd=paid)
    run("value", *FEW, "--budget", "7", "--run", "next", cwd=paid)
    asked = ("pay", "next", "--anyway", "--currency", "CHF", "--amount", "30", "--after", "paid")
    before = contents(paid)
    told = run(*asked, "--json", cwd=paid)
    assert "with --after only what is booked is kept (--book)" in told.stderr
    assert contents(paid) == before
    told = json.loads(told.stdout)["payments"]
    assert sum(round(100 * one["already_paid"]) for one in told) == 1000
    first = (paid / "paid/ledger.jsonl").read_text()
    told = run(*asked, "--book", "--pay-back", cwd=paid)
    assert "The ledger of paid is closed: its payments go on in next.\n" in told.stderr
    closed, both = ((paid / name / "ledger.jsonl").read_text() for name in ("paid", "next"))
    assert closed.startswith(first)
    assert both.startswith(first)
    assert len(both.splitlines()) == 2 * len(first.splitlines()) == 2 * len(closed.splitlines()) - 2

    refused = refuse(*ASKED, "11", "--book", cwd=paid)
    assert f"the payments of 'paid' go on in {str(paid / 'next')!r}; book them there" in refused
    assert "what is paid there is not counted here" in run(*ASKED, "11", cwd=paid).stdout
    assert "what is paid there is not counted here" in (paid / "paid/report.html").read_text()
    third = ("pay", "third", *asked[2:], "--book")
    run("value", *FEW, "--budget", "7", "--run", "third", cwd=paid)
    assert "the payments of 'paid' already go on in " in refuse(*third, cwd=paid)
    assert not (paid / "third/ledger.jsonl").exists()
    assert "Nothing to book" in run(*asked, "--book", "--pay-back", cwd=paid).stderr
    assert "goes on in itself" in refuse(*ASKED, "11", "--after", "paid", cwd=paid)
    assert "there is no directory" in refuse(*ASKED, "11", "--after", "gone", "--book", cwd=paid)
    assert not (paid / "gone").exists()


@pytest.mark.slow
def test_between_two_ledgers_nothing_is_paid_twice_or_lost(paid):
    run(*ASKED, "10", "--book", cwd=paid)
    run("value", *FEW, "--budget", "7", "--run", "next", cwd=paid)
    first, asked = contents(paid), ("pay", "next", *ASKED[2:], "30", "--after", "paid")
    asked = (*asked, "--book", "--pay-back")
    write = directory.replace_texts

    def fail_at(name):
        def replace_or_fail(texts):
            if any(file.parent.name == name for file in texts):
                raise dupre.InputError(f"{name} cannot be written")
            write(texts)

        return patch("dupre.runs.directory.replace_texts", replace_or_fail)

    with fail_at("paid"):
        refused = refuse(*asked, cwd=paid)
    assert "nothing is booked: 'paid' cannot keep that its payments go on in 'next'" in refused
    assert contents(paid).items() >= first.items()
    assert not (paid / "next/ledger.jsonl").exists()
    with fail_at("next"):  # as a kill between the two
        assert refuse(*asked, cwd=paid) == "next cannot be written\n"
    assert not (paid / "next/ledger.jsonl").exists()
    assert "go on in " in refuse(*ASKED, "30", "--book", cwd=paid)
    run(*asked, cwd=paid)
    ledger = [json.loads(line) for line in (paid / "next/ledger.jsonl").read_text().splitlines()]
    assert round(sum(entry["paid"] for entry in ledger), 2) == 30.0


def test_who_comes_again_under_an_old_name_is_another_partner(place):
    good(20).to_csv("validation.csv", index=False)
    value("--validation", "validation.csv", budget=7)
    asked = ("pay", "run", "--anyway", "--book", "--pay-back", "--amount")
    run(*asked, 10)
    for frame in (good()[good()["who"] != "owner 1"], good()):
        frame.to_csv("good.csv", index=False)
        run("resume", "run", "--accept-rows", "--budget", 7)
        told = run(*asked, 100).stdout
    entries = [json.loads(line) for line in Path("run/ledger.jsonl").read_text().splitlines()]
    joined = {name: [e["joined"] for e in entries if e["owner"] == name] for name in NAMES}
    assert joined["owner 0"] == 3 * joined["owner 0"][:1]
    before, after = joined["owner 1"]
    assert before < after
    again = r"\n- owner 1 joined again, as new; \d+\.\d\d paid before not counted\.\n"
    assert re.search(again, told)
    paid = f"{sum(entry['paid'] for entry in entries):.2f}"
    assert f"\n- With these payments {paid} is paid in all.\n" in told


@pytest.mark.slow
def test_files_are_as_before_if_they_cannot_be_written_and_written_if_nobody_reads(paid):
    run(*ASKED, "10", cwd=paid)
    before = contents(paid)
    full = Mock(side_effect=dupre.InputError("'payments.csv' cannot be written"))
    with patch("dupre.runs.directory.replace_texts", full):
        told = run(*ASKED, "20", cwd=paid, code=ExitCode.WRONG)
    assert (told.stdout, told.stderr) == ("", "Error: 'payments.csv' cannot be written\n")
    assert (
        contents(paid / "paid").items()
        >= {file: text for file, text in before.items() if file.parent.name == "paid"}.items()
    )
    text = f"{COMMAND} {' '.join(ASKED)} 20 | (exec 0<&-); echo ${{PIPESTATUS[0]}}"
    how = {"capture_output": True, "text": True, "check": True, "env": environment()}
    done = subprocess.run(["bash", "-c", text], cwd=paid, **how)
    assert done.stdout == "0\n"
    assert sum(round(100 * float(row["payment"])) for row in table(paid / "paid")) == 2000
