from itertools import combinations

import pytest

import dupre
from dupre.notes import Code
from dupre.report.page import page
from dupre.valuation.stopping import evaluated, within
from dupre.valuation.strategies import Active, Corrected
from owners_and_games import make_owners, value

FIVE, SEVEN = make_owners(5), make_owners(7)
NOTHING_SHOWS = "nothing shows how far those of other coalitions may lie"


def flat(members):
    return 0.5 if members else 0.1


def late(members):
    """Flat but for three coalitions that are not in the first design."""
    return {FIVE.names[:2]: 0.9, FIVE.names[1:3]: 0.8, FIVE.names[2:4]: 0.9}.get(
        members, flat(members)
    )


def majority(members):
    return float(len(members) > 3.5)


@pytest.mark.parametrize("semivalue", ["shapley", "banzhaf", "least-core"])
@pytest.mark.parametrize("utility", [flat, lambda _: 0.0])
def test_equal_utilities_are_told_with_what_the_intervals_do_not_hold(semivalue, utility):
    found = value(FIVE, utility, budget=12, semivalue=semivalue)
    told = f"all 12 utilities to predict from are equal ({utility(FIVE.names):g}): {NOTHING_SHOWS}"
    assert f"Beware: {told}" in found.explain()
    assert NOTHING_SHOWS in page([found])
    complete = value(FIVE, utility, budget=31, semivalue=semivalue)
    assert NOTHING_SHOWS not in complete.explain()


def test_they_are_told_where_values_come_from_draws_and_not_where_one_differs():
    corrected = value(SEVEN, flat, budget=50, strategy=Corrected())
    assert corrected.facts.corrected
    assert NOTHING_SHOWS in corrected.explain()
    valuer = dupre.Valuer(FIVE, empty=0.0)
    for members, told in zip(valuer.suggest(11), [False, *[True] * 9, False], strict=True):
        valuer.record(members, 0.5 if len(valuer.evaluations) < 10 else 0.6)
        assert (NOTHING_SHOWS in valuer.values().explain()) == told


@pytest.mark.parametrize("check", [0, 4])
@pytest.mark.parametrize("budget", [60, 200])
def test_intervals_from_equal_utilities_are_no_reason_to_stop(check, budget):
    found = value(SEVEN, flat, budget=budget, stop=within(0.01), strategy=Active(check=check))
    assert found.facts.evaluated == min(budget, 127)
    assert ("the budget of 60" in found.facts.stopped) == (budget == 60)


def test_a_run_goes_on_until_a_utility_differs_and_other_rules_still_count():
    found = value(FIVE, late, budget=31, stop=within(1.0))
    utilities = found.evaluations["utility"]
    assert 11 < found.facts.evaluated < 31
    assert set(utilities) == {0.5, 0.8, 0.9}
    assert value(FIVE, flat, budget=31, stop=within(1.0) | evaluated(13)).facts.evaluated < 31


def test_a_flat_game_without_a_budget_ends_and_says_why_that_is_a_guess():
    found = value(SEVEN, flat, stop=within(0.01))
    assert 100 <= found.facts.evaluated < 127
    assert found.facts.stopped == "every value is within ± 0.01 with 95 %"
    assert NOTHING_SHOWS in found.explain()


def test_two_numbers_alone_are_told_and_nothing_is_called_sure():
    found = value(SEVEN, majority, budget=28)
    told = "the 28 utilities to predict from are only two numbers, 0 and 1: nothing shows which"
    assert f"Beware: {told}" in found.explain()
    assert "apparently above zero" in page([found])
    assert "surely" not in page([found])
    assert "only two numbers" not in value(SEVEN, majority, budget=127).explain()
    three = value(SEVEN, lambda members: majority(members) + 0.5 * (len(members) == 7), budget=28)
    assert "nothing shows" not in three.explain()


@pytest.mark.parametrize(("levels", "told"), [(3, True), (9, True), (10, False)])
def test_a_few_numbers_that_came_often_are_told(levels, told):
    valuer = dupre.Valuer(SEVEN, empty=0.0)
    for i, chosen in enumerate(list(combinations(SEVEN.names, 2)) + [(n,) for n in SEVEN.names]):
        valuer.record(chosen, i % levels / 40)  # 28 of them
    codes = [one.code for one in valuer.values().notes]
    assert (Code.FEW_UTILITIES in codes) == told


def test_a_rule_waits_where_utilities_are_two_numbers():
    assert value(SEVEN, majority, budget=60, stop=within(0.5)).facts.evaluated == 60
    assert (
        value(SEVEN, lambda m: majority(m) + 0.01 * len(m), stop=within(0.5)).facts.evaluated < 60
    )


def smooth(members):
    return 1 - 0.6 ** len(members) + 0.01 * int(members[-1][-1]) if members else 0.0


@pytest.mark.parametrize(("owners", "between"), [(SEVEN, "2 to 5"), (make_owners(4), "2")])
def test_it_is_told_that_no_group_between_is_evaluated(owners, between):
    first = 2 * owners.n + 1
    found = value(owners, smooth, budget=first)
    told = f"Beware: no group of {between} owners is evaluated: nothing shows how"
    assert told in found.explain()
    assert "apparently" in page([found])
    assert "first guess" not in found.explain()
    fewer = value(owners, smooth, budget=first - 2)
    assert "first guess" in fewer.explain()
    assert "nothing shows" not in fewer.explain()
    assert "nothing shows" not in value(owners, smooth, budget=first + 1).explain()
    assert "nothing shows" not in value(owners, smooth, budget=first, semivalue="banzhaf").explain()
