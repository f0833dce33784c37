"""Faults are made for real in the files of a run, and each must be named, and nothing else."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from command_tables import ROLES, good, written
from commands import refuse, run
from dupre.cli.output import ExitCode
from dupre.notes import Code
from dupre.result import json as results
from dupre.result.remarks import with_notes
from dupre.runs.directory import RunDirectory
from dupre.runs.ledger import Entry, Ledger, read_ledger
from dupre.store.sqlite import COLUMNS, checksum

PAY = ("pay", "run", "--anyway", "--book", "--currency", "CHF", "--amount")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run of two semivalues, paid twice, with more trainings in between."""
    here = tmp_path_factory.mktemp("made")
    four = [f"owner {i % 4}" for i in range(60)]
    good().assign(who=four).to_csv(here / "good.csv", index=False)
    good(20).to_csv(here / "checks.csv", index=False)
    how = ("--validation", "checks.csv", "--semivalue", "shapley", "--semivalue", "banzhaf")
    run("value", "good.csv", *ROLES, *how, "--budget", 10, "--run", "run", cwd=here)
    run(*PAY, 100, cwd=here)
    run("resume", "run", "--budget", 12, cwd=here)
    run(*PAY, 250, "--pay-back", cwd=here)
    return here


@pytest.fixture
def place(made, tmp_path, monkeypatch):
    """A copy of it to make faults in; its data are where they were."""
    shutil.copytree(made / "run", tmp_path / "run")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def verify(*options, code=ExitCode.DIFFERENCES):
    """What differs, as (file, what), and checks that could not be done, by name."""
    checks = json.loads(run("verify", "run", *options, "--json", code=code).stdout)
    found = {(d["where"], d["what"]): d for check in checks for d in check["differences"]}
    left = {check["name"]: check["found"] for check in checks if not check["done"]}
    assert (code == ExitCode.DIFFERENCES) == bool(found)
    return found, left


def snapshot(directory):
    every = sorted(path for path in directory.rglob("*") if path.is_file())
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in every}


def rewrite(valuations):
    """Replace result.json, and values.csv by what follows from it."""
    directory = RunDirectory(Path("run"))
    directory.result.write_text(results.dumps(valuations, resamples=False))
    return directory


def test_a_run_as_it_was_left_has_no_difference_and_is_not_touched(place):
    before = snapshot(place)
    assert verify(code=0) == ({}, {})
    lines = run("verify", "run").stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        *("result.json", "store", "data", "values", "values.csv"),
        *("ledger", "booking 1", "booking 2", "payments.csv"),
    ]
    assert all(" same " in line for line in lines)
    assert snapshot(place) == before
    assert {path.name for path in place.iterdir()} == {"run"}


def test_a_changed_cell_of_a_table_is_named(place):
    for name, old, what in (
        ("values.csv", "Banzhaf,owner 2,", "rows of owner 2 of Banzhaf"),
        ("payments.csv", "owner 1,", "value of owner 1"),
    ):
        file = place / "run" / name
        before = file.read_text()
        start = before.index(old) + len(old)
        end = before.index(",", start)
        file.write_text(f"{before[:start]}99.5{before[end:]}")
        found, left = verify()
        assert list(found) == [(name, what)]
        assert left == {}
        assert found[name, what]["kept"] == "99.5"
        assert found[name, what]["recomputed"] == before[start:end]
        line = f"{name}: {what}: kept '99.5', recomputed '{before[start:end]}'"
        assert run("verify", "run", code=5).stdout.splitlines()[-1] == line
        file.write_text(before)


def test_a_payment_is_compared_to_the_cent(place):
    file = place / "run/payments.csv"
    rows = [line.split(",") for line in file.read_text().splitlines()]
    at = rows[0].index("payment")
    rows[1][at] = str(round(float(rows[1][at]) + 0.01, 2))
    file.write_text("".join(f"{','.join(row)}\n" for row in rows))
    assert list(verify()[0]) == [("payments.csv", f"payment of {rows[1][0]}")]
    file.unlink()
    assert list(verify()[0]) == [("payments.csv", "the table")]


def test_a_line_that_is_removed_or_moved_is_named(place):
    file = place / "run/values.csv"
    head, first, second, *others = file.read_text().splitlines(keepends=True)
    file.write_text("".join([head, second, first, *others]))
    assert list(verify()[0]) == [("values.csv", "its lines are in another order or form")]
    file.write_text("".join([head, first, *others]))
    columns = head.strip().split(",")[2:]
    name = second.split(",")[1]
    assert set(verify()[0]) == {("values.csv", f"{c} of {name} of Shapley") for c in columns}


def test_a_number_of_the_result_that_contradicts_the_others_is_named(place):
    file = place / "run/result.json"
    document = json.loads(file.read_text())
    document["valuations"][0]["owners"][1]["value"] += 0.01
    file.write_text(json.dumps(document))
    found, left = verify()
    (message,) = (what for where, what in found if where == "result.json")
    assert "is damaged: valuations[0]." in message
    assert set(left) == {"data", "values.csv", "booking 2", "payments.csv"}
    # The table is then compared with what follows from the store.
    table = place / "run/values.csv"
    table.write_text(table.read_text().replace("Shapley,owner 3,15,", "Shapley,owner 3,16,"))
    assert ("values.csv", "rows of owner 3 of Shapley") in verify()[0]


def test_a_careful_forgery_of_values_or_their_doubt_is_found(place):
    first, second = RunDirectory(Path("run")).results()
    moved = np.zeros(4)
    moved[:2] = [0.004, -0.004]
    found, left = verify_forged([replace(first, mean=first.mean + moved), second])
    values = {("result.json", f"value of owner {i} (Shapley)") for i in (0, 1)}
    assert values <= set(found)
    assert found[min(values)]["kept"] == first.mean[0] + 0.004
    assert found[min(values)]["recomputed"] == pytest.approx(first.mean[0], abs=1e-9)
    assert ("values.csv", "value of owner 0 of Shapley") in found
    assert left == {"booking 2": "its result is not kept in this directory"}

    sure = replace(first.uncertainty, prediction=first.uncertainty.prediction / 4)
    found, _ = verify_forged([with_notes(replace(first, uncertainty=sure)), second])
    assert ("result.json", "standard deviation of owner 0 (Shapley)") in found

    silent = tuple(one for one in first.notes if one.code is not Code.NO_BETTER_THAN_CONSTANT)
    assert len(silent) < len(first.notes)
    found, _ = verify_forged([replace(first, notes=silent), second])
    assert list(found) == [("result.json", "note no_better_than_constant (Shapley)")]

    worse = first.evaluations.copy()
    worse.loc[0, "utility"] += 0.5
    found, _ = verify_forged([replace(one, evaluations=worse) for one in (first, second)])
    ((file, what),) = found
    assert (file, what) == ("result.json", f"utility of {worse.loc[0, 'coalition']}")


def verify_forged(valuations):
    rewrite(valuations)
    return verify()


def test_changed_rows_are_named_and_values_are_not_computed_from_others(place, made):
    frame = good().assign(who=[f"owner {i % 4}" for i in range(60)])
    frame.loc[1, "x"] += 1
    found, left = verify("--data", written(frame, "moved.csv"))
    assert list(found) == [("result.json", "digest of rows of owner 1")]
    assert left == {"values": "they follow from data, which differ"}
    frame.loc[frame["who"] == "owner 2", "who"] = "owner 9"
    found, _ = verify("--data", written(frame, "moved.csv"))
    assert found["result.json", "digest of rows of owner 2"]["recomputed"] is None
    assert found["result.json", "digest of rows of owner 9"]["kept"] is None
    shutil.copy(made / "checks.csv", "checks.csv")
    assert verify("--validation", str(place / "checks.csv"), code=0) == ({}, {})
    good(21).to_csv("checks.csv", index=False)
    found, _ = verify("--validation", str(place / "checks.csv"))
    assert list(found) == [("result.json", "digest of validation data")]


def ledger_lines(place):
    return (place / "run/ledger.jsonl").read_text().splitlines(keepends=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda lines: lines[:2] + lines[3:], "entry 4 does not follow entry 2"),
        (lambda lines: lines[1:], "entry 2 does not follow the beginning"),
        (lambda lines: lines[:-1], "entries after number 7 are missing"),
        (lambda lines: [], "entries after number 0 are missing"),
        (
            lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]],
            "entry 5 does not follow entry 3",
        ),
        (
            lambda lines: [*lines[:2], lines[2].replace('"paid":', '"paid":1'), *lines[3:]],
            "entry 3 was changed after it was booked",
        ),
        (lambda lines: [*lines[:2], "{}\n", *lines[3:]], "line 3 is no entry"),
    ],
)
def test_a_ledger_that_is_cut_moved_or_changed_is_named(place, fault, words):
    (place / "run/ledger.jsonl").write_text("".join(fault(ledger_lines(place))))
    found, _ = verify()
    assert ("ledger.jsonl", words) in found
    message = refuse("pay", "run", "--amount", "300", "--anyway")
    assert "ledger.jsonl was changed: " in message
    assert "`dupre verify` names every difference" in message


def sealed(entries):
    """A chain of these entries with digests that fit."""
    found = []
    for entry in entries:
        before = found[-1].digest if found else ""
        found.append(msgspec.structs.replace(entry, before=before).sealed())
    return found


def test_a_ledger_that_is_forged_with_its_digests_does_not_follow_from_the_result(place):
    config = place / "run/config.toml"
    first, *others = read_ledger(place / "run/ledger.jsonl").entries
    assert isinstance(first, Entry)
    forged = sealed([msgspec.structs.replace(first, paid=first.paid + 0.01), *others])
    (place / "run/ledger.jsonl").write_text(Ledger(tuple(forged)).dumps())
    found, _ = verify()
    head = found["ledger.jsonl", "entries after number 8 are missing"]
    assert head["kept"] is None
    # Also if config.toml is made to fit.
    config.write_text(config.read_text().replace(others[-1].digest, forged[-1].digest))
    found, _ = verify()
    wrong = found["ledger.jsonl", f"paid of {first.owner} in booking 1"]
    assert wrong["kept"] == pytest.approx(first.paid + 0.01)
    assert wrong["recomputed"] == pytest.approx(first.paid)
    assert ("ledger.jsonl", f"paid of {first.owner} in booking 2") in found  # what was left to pay
    assert ("payments.csv", f"already_paid of {first.owner}") in found

    more = sealed([first, *others, msgspec.structs.replace(first, number=9, booking=3)])
    config.write_text(config.read_text().replace(forged[-1].digest, others[-1].digest))
    (place / "run/ledger.jsonl").write_text(Ledger(tuple(more)).dumps())
    assert ("config.toml", "digest of the last booking") in verify()[0]


def test_a_flipped_utility_is_found_by_its_checksum_or_by_the_values(place):
    store = place / "run/store.sqlite"
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE evaluations SET utility = utility + 0.125 WHERE id = 2")
    found, left = verify()
    ((file, what),) = found
    assert file == "store.sqlite"
    assert what.startswith('checksum of row 2 of evaluations (["')
    assert left == {"values": "they follow from store, which differ"}

    with closing(sqlite3.connect(store)) as db, db:  # with a checksum that fits
        row = db.execute(f"SELECT {COLUMNS} FROM evaluations WHERE id = 2").fetchone()
        db.execute("UPDATE evaluations SET checksum = ? WHERE id = 2", (checksum(row[:-1]),))
    found, left = verify()
    what, flipped = f"utility of {row[0]}", row[COLUMNS.split(", ").index("utility")]
    assert found["result.json", what]["recomputed"] == flipped
    assert found["result.json", what]["kept"] == flipped - 0.125
    assert any(name.startswith("value of ") for _, name in found)
    assert left == {}


def test_a_training_that_is_lost_is_named(place):
    with closing(sqlite3.connect(place / "run/store.sqlite")) as db, db:
        db.execute("DELETE FROM evaluations WHERE id = (SELECT max(id) FROM evaluations)")
    found, _ = verify()
    assert ("store.sqlite", "number of the last evaluation written") in found
    (place / "run/store.sqlite").write_bytes(b"x" * 4096)
    found, _ = verify()
    assert any(what.startswith("it cannot be read: ") for _, what in found)


def test_trainings_for_folds_that_are_lost_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    four = [f"owner {i % 3}" for i in range(60)]
    good().assign(who=four).to_csv("good.csv", index=False)
    run("value", "good.csv", *ROLES, "--folds", 3, "--budget", 3, "--repeats", 1, "--run", "run")
    assert verify(code=0) == ({}, {})
    store = tmp_path / "run/store.sqlite"
    for keys, what in (
        ((9,), '1 of 3 folds of ["owner 2"], repeat 0'),
        ((2,), "row 2 of folds"),
        ((3, 4), "rows 2 to 4 of folds"),
    ):
        with closing(sqlite3.connect(store)) as db, db:
            [(names,)] = db.execute("SELECT coalition FROM folds ORDER BY id DESC LIMIT 1")
            for key in keys:
                db.execute("DELETE FROM folds WHERE id = ?", (key,))
        found, _ = verify()
        assert list(found) == [("store.sqlite", what.replace('["owner 2"]', names))]


def test_what_cannot_be_checked_is_said_with_the_reason_and_is_no_difference(place):
    gone = run("verify", "run", "--data", "nowhere.csv")
    assert "\ndata          not checked  the data of 'run' are no longer in " in gone.stdout
    assert "\nvalues        not checked  the data of 'run' are no longer in " in gone.stdout
    shutil.rmtree(place / "run/history")
    _, left = verify(code=0)
    assert left == {"booking 1": "its result is not kept in this directory"}
    (place / "run/store.sqlite").unlink()
    _, left = verify(code=0)
    assert left["values"] == left["store"] == "store.sqlite is not there"


def test_a_result_that_is_gone_is_named_as_long_as_something_of_it_is_left(place):
    (place / "run/result.json").unlink()
    for left, words in (
        ("values.csv", "ledger.jsonl, values.csv and payments.csv"),
        ("payments.csv", "ledger.jsonl and payments.csv"),
        ("ledger.jsonl", "ledger.jsonl"),
    ):
        assert next(iter(verify()[0])) == ("result.json", f"it is gone, but {words} came of it")
        (place / "run" / left).unlink()
    config = place / "run/config.toml"
    config.write_text(re.sub("(?m)^ledger = .*$", 'ledger = ""', config.read_text()))
    assert verify(code=0)[1]["result.json"] == "there is no result yet"


def test_trainings_after_the_result_are_left_out_and_counted(place):
    before = (place / "run/result.json").read_text(), (place / "run/values.csv").read_text()
    paid = (place / "run/payments.csv").read_text()
    run("resume", "run", "--budget", 14)
    for name, text in zip(("result.json", "values.csv"), before, strict=True):
        (place / "run" / name).write_text(text)
    (place / "run/payments.csv").write_text(paid)
    assert verify(code=0) == ({}, {})
    assert ". 2 trainings came after the result\n" in run("verify", "run").stdout


def test_a_directory_from_elsewhere_is_checked_only_if_it_is_trusted(place):
    config = place / "run/config.toml"
    config.write_text(config.read_text().replace("[utility]", '[utility]\nmodel = "evil:M"'))
    assert "'run' was not made here" in refuse("verify", "run")
    assert "there is no directory" in refuse("verify", "nowhere")
