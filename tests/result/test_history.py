import json
from dataclasses import replace

import numpy as np
import pandas as pd

import dupre
from dupre.result.history import MOST_RESULTS
from refusals import refused
from reporting import change, exact, least_core, three_results, valuation


def test_the_frame_has_every_owner_of_every_result_and_what_happened_to_it():
    results = three_results()
    frame = dupre.history(results).to_frame()
    assert list(frame) == [
        *("result", "finished", "owner", "value", "low", "high", "share", "event", "moved")
    ]
    for number, v in enumerate(results, start=1):
        own = frame[(frame["result"] == number) & (frame["event"] != "left")].set_index("owner")
        pd.testing.assert_series_equal(own["value"], v.values)
        pd.testing.assert_frame_equal(own[["low", "high"]], v.interval())
        pd.testing.assert_series_equal(own["share"], v.share)
    happened = frame[frame["event"] != ""].set_index(["result", "owner"])["event"].to_dict()
    assert happened == {
        (2, "new"): "joined",
        (3, "owner 0"): "left",
        (3, "owner 1"): "rows changed",
    }
    assert frame[frame["event"] == "left"]["value"].isna().all()
    moved = frame[frame["moved"]][["result", "owner"]]
    expected = [(3, name) for name in results[2].changes_since(results[1]).moved]
    assert list(moved.itertuples(index=False, name=None)) == expected == [(3, "owner 2")]


def test_what_is_said_of_a_result_is_its_own_and_what_changed_since_the_one_before():
    results = three_results()
    found = dupre.history(results).results()
    assert found["trained"].tolist() == [20, 26, 24]
    assert found["more"].tolist() == [0, 6, -2]
    assert found["sum"].tolist() == [v.values.sum() for v in results]
    assert found["verdict"].tolist() == [v.verdict.kind for v in results]
    assert found["finished"].tolist() == ["", "2026-02-01T10:00:00+00:00", ""]
    assert found["joined"].tolist() == [(), ("new",), ()]
    assert found["left"].tolist() == [(), (), ("owner 0",)]
    assert found["rows_changed"].tolist() == [(), (), ("owner 1",)]
    assert found["moved"].tolist() == [(), (), ("owner 2",)]


def test_printed_it_is_a_table_of_owners_by_results_and_a_line_for_each():
    results = three_results()
    head, table, lines = str(dupre.history(results)).split("\n\n")
    assert head == "Shapley values of 3 results"
    rows = {line.split("  ")[0]: line for line in table.splitlines()[1:]}
    present = results[2]
    assert list(rows) == [*(present.owners[i] for i in present.order), "owner 0"]
    assert rows["owner 0"].endswith("  left")
    assert rows["new"].split()[1:3] == ["–", "joined"]
    assert "  rows changed " in rows["owner 1"]
    low, high = present.interval().loc["owner 2"]
    assert rows["owner 2"].endswith(f"{present.values['owner 2']:.3f} ± {(high - low) / 2:.3f}")
    first, second, third = lines.splitlines()
    assert first.startswith("Result 1: 20 coalitions trained, sum 0.4")
    assert second.startswith("Result 2: 2026-02-01, 26 coalitions trained (+6), sum ")
    assert second.endswith(f", {results[1].verdict.kind}. Joined: new.")
    assert third.endswith(
        ". Left: owner 0. Other rows: owner 1. Moved by more than the intervals explain: owner 2."
    )


def test_of_many_results_the_last_are_shown_by_their_numbers_and_json_has_all():
    v = valuation(3)
    found = dupre.history([replace(v, mean=v.mean * (1 + i / 100)) for i in range(8)])
    text = str(found)
    assert text.startswith("Shapley values of 8 results, the last 5 of them\n\nowner ")
    assert [f"result {i}" in text for i in range(1, 9)] == [False] * 3 + [True] * 5
    assert found.last().numbers == range(4, 9)
    pd.testing.assert_frame_equal(
        found.last().to_frame(),
        found.to_frame().query("result > 3").reset_index(drop=True),
    )
    assert found.last(20).numbers == found.numbers == range(1, 9)
    assert len(found.last().valuations) == MOST_RESULTS
    told = json.loads(json.dumps(found.as_json()))
    assert [one["result"] for one in told["results"]] == list(range(1, 9))
    assert len(told["owners"]) == 24


def test_of_many_owners_the_first_and_the_last_are_printed():
    v = valuation(30)
    table = str(dupre.history([v, v])).split("\n\n")[1].splitlines()
    names = [v.owners[i] for i in v.order]
    assert table[11] == "… 10 more"
    shown = [line.split("  ")[0].strip() for line in (*table[1:11], *table[12:])]
    assert shown == [*names[:10], *names[-10:]]


def test_json_has_null_for_who_left_and_names_what_was_not_read():
    found = replace(dupre.history(three_results()), not_read=("history/2 (damaged)",))
    told = json.loads(json.dumps(found.as_json()))
    (gone,) = [one for one in told["owners"] if one["event"] == "left"]
    assert (gone["result"], gone["owner"], gone["value"], gone["share"]) == (
        *(3, "owner 0", None, None),
    )
    assert told["not_read"] == ["history/2 (damaged)"]
    assert str(found).endswith("\nNot read: history/2 (damaged).")


def test_who_comes_back_has_left_and_joined_and_names_are_harmless():
    v = valuation(names=("a", "b", "evil\n\x1b[2J"))
    without = replace(valuation(names=("a", "b")), mean=v.mean[:2])
    found = dupre.history([v, without, v])
    events = found.to_frame().query("owner == 'evil\\n\\x1b[2J'")["event"]
    assert events.tolist() == ["", "left", "joined"]
    assert "\x1b" not in str(found)
    assert "Joined: evil\\n\\x1b[2J." in str(found)


def test_exact_values_have_no_interval_and_one_result_is_a_history_too():
    v = exact(3)
    found = str(dupre.history([v]))
    assert found.startswith("Shapley values of 1 result\n")
    assert "±" not in found
    assert "payments of 2 results" in str(dupre.history([least_core()] * 2))


def test_results_of_another_question_are_no_history():
    v = valuation(4)
    refused("a history needs at least one valuation", dupre.history, [])
    other = change(v, semivalue="Banzhaf")
    refused("the semivalue was Shapley, now Banzhaf", dupre.history, [v, other, v])
    stranger = replace(v, owners=("p", "q", "r", "s"))
    refused("no owner is in both results", dupre.history, [v, stranger])


def test_equal_results_move_nobody():
    v = valuation(4)
    assert not dupre.history([v, v, v]).to_frame()["moved"].any()
    assert np.all(dupre.history([v, v]).results()["more"] == 0)
