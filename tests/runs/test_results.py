import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

import dupre
from dupre.runs.directory import RunDirectory
from dupre.runs.results import read_history
from dupre.spec import spec_of
from owners_and_games import LoggedGame, make_owners


@pytest.fixture(scope="module")
def valuations():
    """Six results: they differ by what was trained."""
    owners = make_owners(4)
    game = LoggedGame(owners, lambda members: np.sqrt(members.sum(axis=1)))
    return [dupre.value(owners, game, budget=budget, progress=False) for budget in range(9, 15)]


@pytest.fixture
def directory(tmp_path):
    made = RunDirectory(tmp_path / "run")
    with made.lock():
        made.write_spec(spec_of(path="/d.csv", owner="owner", target="y"))
    return made


def read(directory, **how):
    present = directory.results()
    return read_history(directory.earlier_results(present), present[0], **how)


def trained(history):
    return [v.facts.evaluated for v in history.valuations]


def section(directory):
    return 'id="history"' in directory.report.read_text()


def test_the_history_has_all_results_in_the_order_of_time_and_the_page_shows_it(
    directory, valuations
):
    for number, valuation in enumerate(valuations[:3], start=1):
        directory.write_results([valuation])
        assert trained(read(directory)) == [*range(9, 9 + number)]
        assert section(directory) == (number > 1)
    assert "12 coalitions trained" not in directory.report.read_text()
    directory.write_results([valuations[2]])  # the same again is no other result
    assert trained(read(directory)) == [9, 10, 11]
    # The page of values so far comes after the last result, which it does not replace.
    directory.write_report([valuations[3]], final=False)
    assert "Result 4: " in directory.report.read_text()
    assert trained(read(directory)) == [9, 10, 11]
    directory.write_report([valuations[2]])
    assert "Result 4: " not in directory.report.read_text()


def test_numbers_are_in_the_order_of_time_and_payments_alone_are_no_result(directory, valuations):
    for number in (10, 9, 2):  # not the order of texts
        (directory.path / "history" / str(number)).mkdir(parents=True)
        (directory.path / "history" / str(number) / "payments.csv").touch()
    directory.write_results([valuations[0]])
    directory.write_results([valuations[1]])
    moved = directory.path / "history"
    (moved / "11/result.json").rename(moved / "9/result.json")
    directory.write_results([valuations[2]])
    assert list(directory.earlier_results()) == [
        *("history/9/result.json", "history/12/result.json")
    ]
    assert trained(read(directory)) == [9, 10, 11]


def test_what_cannot_be_read_is_named_and_left_out(directory, valuations):
    for valuation in valuations:
        directory.write_results([valuation])
    history = directory.path / "history"
    (history / "2/result.json").write_text("{")
    text = (history / "3/result.json").read_text()
    old = json.loads(text) | {"version": 1}
    (history / "3/result.json").write_text(json.dumps(old))
    other = replace(valuations[3], semivalue="Banzhaf")
    (history / "4/result.json").write_text(other.to_json())
    (history / "5/result.json").write_bytes(b"\xff")
    found = read(directory)
    assert trained(found) == [9, 14]
    assert [one.split(" ", 1)[0] for one in found.not_read] == [
        f"history/{number}/result.json" for number in (2, 3, 4, 5)
    ]
    damaged, version, question, bytes_ = found.not_read
    assert "this is no JSON" in damaged
    assert "version 1 of the format" in version
    assert "the semivalue was Banzhaf, now Shapley" in question
    assert "decode" in bytes_
    directory.write_report([valuations[-1]])
    assert "Not read: history/2/result.json (this is no JSON" in directory.report.read_text()
    shutil.rmtree(history / "1")
    directory.write_report([valuations[-1]])  # one result is no history
    assert not section(directory)


def test_of_several_semivalues_the_same_one_is_followed(directory, valuations):
    other = replace(valuations[0], semivalue="Banzhaf")
    directory.write_results([other, valuations[0]])
    directory.write_results([valuations[1]])
    assert [v.semivalue for v in read(directory).valuations] == ["Shapley", "Shapley"]


def test_only_the_last_ones_are_read_if_asked_and_those_before_are_counted(directory, valuations):
    for valuation in valuations:
        directory.write_results([valuation])
    (directory.path / "history/1/result.json").write_text("{")
    found = read(directory, most=3)
    assert (trained(found), found.earlier, found.numbers) == ([12, 13, 14], 3, range(4, 7))
    assert found.not_read == ()
    assert found.changes[0] is None
    assert read(directory, most=None).not_read != ()
