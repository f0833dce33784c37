import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import dupre
from dupre import InputError
from dupre.notes import Code, note
from dupre.result.remarks import with_notes
from owners_and_games import LoggedGame, make_owners
from refusals import refused
from reporting import change, valuation

MARKS = {"validation data": "v", "folds": "f", "seed": "s", "rows of owner 0": "r"}
SETTINGS = {"metric": "accuracy"}


def result(n=4, *, marks=MARKS, settings=SETTINGS, target="y", **others):
    """A result with errors of every source."""
    parts = {
        "covariance": 5e-4 * np.eye(n),
        "validation": 3e-4 * np.eye(n),
        "deal": np.eye(n) / 1e4,
    }
    provenance = {"fingerprints": marks, "settings": settings, "data": {"target": target}}
    return change(valuation(n), **{**parts, "provenance": provenance, **others})


def half(found):
    return ((found.frame["high"] - found.frame["low"]) / 2).to_numpy()


def expected(*variances):
    return pytest.approx(1.959964 * np.sqrt(sum(variances)))


def test_errors_in_both_alike_are_left_out_and_the_others_are_independent():
    before = result()
    prediction = np.diag(before.uncertainty.prediction)[0]
    validation, deal = 3e-4, 1e-4
    for marks, parts in (
        (MARKS, ()),
        ({**MARKS, "seed": "t"}, (deal, deal)),  # other folds, and the same rows
        ({**MARKS, "validation data": "w"}, (validation, validation, deal, deal)),
        ({}, (validation, validation, deal, deal)),  # nothing is known
    ):
        found = result(marks=marks).changes_since(before)
        assert half(found)[0] == expected(prediction, prediction, *parts)
    for marks, same in ((MARKS, True), ({**MARKS, "validation data": "w"}, False), ({}, None)):
        assert result(marks=marks).changes_since(before).same_rows == same
    same = before.changes_since(before)
    assert "on the same validation rows: the intervals are for these." in str(same)
    other = result(marks={**MARKS, "validation data": "w"}).changes_since(before)
    assert "on other validation rows: the intervals allow for both choices." in str(other)


def test_of_two_results_by_chance_alone_about_one_in_twenty_owners_moves():
    rng, moved = np.random.default_rng(0), []
    marks = {**MARKS, "validation data": "w"}
    before, after = result(50), result(50, marks=marks)
    for _ in range(20):
        both = [
            replace(v, mean=0.3 + rng.multivariate_normal(np.zeros(50), v.uncertainty.total))
            for v in (before, after)
        ]
        moved.append(len(both[1].changes_since(both[0]).moved))
    assert 0.03 < sum(moved) / 1000 < 0.07


def test_who_moved_by_more_than_the_intervals_explain_is_named():
    before, n = result(), 4
    after = replace(before, mean=before.mean + np.array([0.2, 0.0, -0.2, 0.01]))
    found = after.changes_since(before)
    assert found.moved == ("owner 0", "owner 2")
    assert found.frame.loc["owner 0", "change"] == pytest.approx(0.2)
    assert found.frame.loc["owner 2", "share_before"] == before.share["owner 2"]
    lines = str(found).split("\n")
    assert lines[-1] == (
        "2 of 4 owners moved by more than the intervals explain: owner 0 and owner 2."
    )
    row = next(line.split() for line in lines if line.startswith("owner 0"))
    assert row[4] == "+0.200"
    assert row[8] == "yes"
    still = before.changes_since(before)
    assert str(still).endswith("\nNone of 4 owners moved by more than the intervals explain.")
    exact = change(before, covariance=np.zeros((n, n)), validation=np.zeros((n, n)), deal=None)
    rounding = replace(exact, mean=exact.mean * (1 + 1e-14))
    assert rounding.changes_since(exact).moved == ()
    assert replace(exact, mean=exact.mean * (1 + 1e-6)).changes_since(exact).moved != ()


def test_who_joined_who_left_and_what_else_has_changed_is_said():
    names = ("owner 0", "owner 1", "owner 3", "Zoe\n")
    marks = {**MARKS, "rows of owner 0": "other", "model": "m"}
    before = result(marks={**MARKS, "model": "n"})
    found = replace(result(marks=marks), owners=names).changes_since(before)
    assert (set(found.joined), set(found.left)) == ({"Zoe\n"}, {"owner 2"})
    assert found.left["owner 2"] == before.values["owner 2"]
    assert set(found.frame.index) == {"owner 0", "owner 1", "owner 3"}
    text = str(found)
    assert "\nJoined: Zoe\\n (" in text
    assert "\nLeft: owner 2 (" in text
    assert "\nOther rows than before: owner 0.\n" in text
    assert "\nChanged too: the model.\n" in text


def test_what_either_result_beware_of_is_said_with_the_changes():
    leak = note(Code.LEAK, "a column tells.", column="z")
    v = result()
    assert v.changes_since(with_notes(v, [leak])).notes == (leak,)
    found = with_notes(v, [leak]).changes_since(v)
    assert "\n- A column nearly determines the target: z.\n" in str(found)
    told = json.loads(json.dumps(found.as_json()))
    assert [one["code"] for one in told["notes"]] == ["leak"]
    assert [one["owner"] for one in told["owners"]] == list(found.frame.index)
    loss = change(v, grand=0.0)  # of a loss nobody has a share
    assert loss.changes_since(loss).as_json()["owners"][0]["share_after"] is None
    assert "– → –" in str(loss.changes_since(loss))


def test_numbers_that_do_not_mean_the_same_are_not_compared():
    before = result()
    for other, words in (
        (result(semivalue="Banzhaf"), "the semivalue was Shapley, now Banzhaf; compare results of"),
        (result(settings={"metric": "r2"}), "the metric was accuracy, now r2"),
        (result(target="z"), "the target was y, now z"),
        (replace(before, owners=("a", "b", "c", "d")), "no owner is in both results"),
    ):
        refused(words, other.changes_since, before)


def test_more_trainings_of_the_same_game_move_nobody_by_more_than_explained():
    owners = make_owners(5)
    game = LoggedGame(owners, lambda members: np.sqrt(members.sum(axis=1)))
    found = [dupre.value(owners, game, budget=k, progress=False) for k in (12, 20, 31)]
    for before, after in ((found[0], found[1]), (found[1], found[2])):
        assert after.changes_since(before).moved == ()
    with pytest.raises(InputError, match="the semivalue was"):
        dupre.value(owners, game, budget=12, semivalue=dupre.banzhaf, progress=False).changes_since(
            found[0]
        )


def test_a_result_without_a_store_knows_its_validation_rows_and_otherwise_that_is_said():
    """In Python as by the command: what moved for the rows of both is told from their choice."""
    owners = make_owners(3)
    found = []
    for seed in (0, 1):
        utility = dupre.ModelUtility(Ridge(), owners, validation=dupre.Folds(3))
        found.append(dupre.value(owners, utility, budget=7, seed=seed, progress=False))
    changes = found[1].changes_since(found[0])
    assert changes.same_rows
    assert "\nBoth are scored on the same validation rows" in str(changes)
    before, after = (v.with_facts(provenance={}) for v in found)
    assert "Whether both are scored on the same validation rows is not known" in str(
        after.changes_since(before)
    )
    numbers = change(result(marks={}), validation=None)
    assert "scored" not in str(numbers.changes_since(change(numbers, validation=None)))
