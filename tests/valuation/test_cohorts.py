"""Values by order of joining, through `dupre.value` and `Valuer`."""

import json

import numpy as np
import pytest

import dupre
from dupre.errors import InputError
from dupre.notes import Code, has, select
from owners_and_games import (
    LoggedGame,
    assert_same,
    holds,
    least_share,
    make_owners,
    record,
    smooth,
    untouchable,
    value,
)

ORDER = [["B", "E"], ["A"], ["C", "D"]]
BY_JOINING = dupre.precedence(ORDER)


def five():
    return make_owners(5, names=list("ABCDE"))


def truth(game, cohorts):
    """From all utilities, by the definition over the orders of each cohort: its Shapley values."""
    found, before = dict.fromkeys(game.owners.names, 0.0), ()
    for cohort in cohorts:

        def gain(C, before=before, cohort=cohort):
            names = [(*before, *(n for n, i in zip(cohort, row, strict=True) if i)) for row in C]
            return np.array([game.of(own) for own in names])

        base = game.of(before) if before else game.empty
        if len(cohort) == 1:
            found[cohort[0]] = game.of((*before, *cohort)) - base
        else:
            own = LoggedGame(make_owners(len(cohort), names=list(cohort)), gain, base).values()
            found |= dict(zip(cohort, own, strict=True))
        before = (*before, *cohort)
    return np.array(list(found.values()))


def test_only_coalitions_with_all_who_joined_before_are_trained_and_the_values_are_exact():
    owners = five()
    game = smooth(owners)
    valuation = value(owners, game, budget=31, semivalue=BY_JOINING)
    np.testing.assert_allclose(valuation.mean, truth(game, ORDER), atol=1e-12)
    assert valuation.exact
    assert len(game.asked) == valuation.facts.counting == 7
    assert valuation.mean.sum() == pytest.approx(valuation.facts.grand - valuation.facts.empty)
    assert valuation.facts.joining.cohorts == (("B", "E"), ("A",), ("C", "D"))
    assert valuation.facts.contributions.empty
    assert valuation.payments(100).frame["payment"].sum() == 100


def test_one_cohort_is_shapley_to_the_last_digit():
    owners = five()
    for budget in (11, 31):
        by_joining = value(
            owners, smooth(owners), budget=budget, semivalue=dupre.precedence([list("CABED")])
        )
        assert_same(by_joining, value(owners, smooth(owners), budget=budget))


def test_the_first_design_has_all_owners_then_the_earlier_cohorts_then_the_heaviest():
    owners = make_owners(9, names=list("ABCDEFGHI"))
    order = [list("ABCDE"), list("FG"), list("HI")]
    valuer = dupre.Valuer(owners, empty=0.0, semivalue=dupre.precedence(order))
    first = [set(names) for names in valuer.suggest(19)]
    assert first[:3] == [set("ABCDEFGHI"), set("ABCDEFG"), set("ABCDE")]
    assert first[3:7] == [set("ABCDE") | set(more) for more in ("F", "G", "FGH", "FGI")]
    five = [set(one) for one in "ABCDE"]
    assert all(one in first for one in (*five, *(set("ABCDE") - one for one in five)))
    assert len(first) == 3 + 4 + 10 + 2
    assert all(len(one) in (2, 3) for one in first[17:])


def test_cohorts_of_one_are_trained_once_each():
    owners = five()
    game = smooth(owners)
    order = [[one] for one in "DBACE"]
    valuation = value(owners, game, budget=31, semivalue=dupre.precedence(order))
    assert set(map(frozenset, game.asked)) == {frozenset("DBACE"[: k + 1]) for k in range(5)}
    np.testing.assert_allclose(valuation.mean, truth(game, order), atol=1e-12)


def coverage_game(owners, seed, holders):
    """How much of what any owner covers a coalition covers; `holders` hold the same."""
    covered = np.random.default_rng(seed).random((owners.n, 20)) < 0.4
    covered[list(holders[1:])] = covered[holders[0]]
    return LoggedGame(owners, lambda C: np.array([covered[row].any(axis=0).mean() for row in C]))


def test_a_copy_that_joins_later_is_worth_nothing_where_it_adds_nothing():
    owners = five()
    game = coverage_game(owners, 0, [1, 3])  # B and D
    valuation = value(owners, game, budget=31, semivalue=dupre.precedence(ORDER))
    assert valuation.values["D"] == pytest.approx(0.0, abs=1e-15)
    assert valuation.std["D"] == 0.0
    assert valuation.values["B"] > 0
    together = value(owners, coverage_game(owners, 0, [1, 3]), budget=31)
    assert together.values["B"] == pytest.approx(together.values["D"])


def with_copies():
    """A copy of the first in the same cohort, and one that joins later."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    parts = [(X[i * 15 : (i + 1) * 15], y[i * 15 : (i + 1) * 15]) for i in range(3)]
    data = {"a late copy": parts[0], "first": parts[0], "twin": parts[0]}
    owners = dupre.Owners.from_mapping(data | {"other": parts[1], "last": parts[2]})
    order = dupre.precedence([["first", "twin", "other"], ["a late copy", "last"]])
    return owners, order


def rows_game(owners):
    """A game of rows: what the distinct rows of a coalition are worth, copies or not."""
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 3))
    return dupre.ModelUtility(Ridge(), owners, validation=(X, X @ [1.0, 2.0, 0.5]))


@pytest.mark.parametrize("budget", [9, 31])
def test_equal_owners_of_a_cohort_are_worth_the_same_and_later_copies_what_they_add(budget):
    owners, order = with_copies()
    utility = rows_game(owners)
    valuation = value(owners, utility, budget=budget, semivalue=order, repeats=1)
    values = valuation.values
    assert values["first"] == values["twin"]
    assert valuation.compare("first", "twin").low == valuation.compare("first", "twin").high == 0
    assert values["a late copy"] != values["first"]
    duplicates = valuation.facts.duplicates
    assert duplicates.owners == (("a late copy", "first", "twin"),)
    (same,) = select(valuation.notes, [Code.SAME_OWNERS])
    assert same.facts["owners"] == [["first", "twin"]]
    (later,) = select(valuation.notes, [Code.LATER_COPIES])
    assert later.facts["owners"] == [["a late copy", "first", "twin"]]
    if budget == 31:
        names = utility.owners.names
        game = LoggedGame(owners, lambda C: np.array([_of(utility, names, row) for row in C]))
        game.empty = utility.empty
        expected = truth(game, order.cohorts)
        np.testing.assert_allclose(values, expected, atol=1e-9)
        symmetric = valuation.facts.joining.symmetric.set_index("owner")["value"]
        assert symmetric["first"] == symmetric["a late copy"] == symmetric["twin"]


def _of(utility, names, row):
    return float(utility(tuple(name for name, inside in zip(names, row, strict=True) if inside)))


def best_of_each(owners, seed):
    """How much is found of 12 things, each as good as the best that an owner has."""
    best = np.random.default_rng(seed).exponential(size=(owners.n, 12))
    return LoggedGame(owners, lambda C: np.array([best[row].max(axis=0).mean() for row in C]))


def test_intervals_after_few_trainings_hold_the_values_and_those_without_an_order():
    inside, symmetric = [], []
    for seed in range(12):
        owners = make_owners(8)
        game = best_of_each(owners, seed)
        places = np.random.default_rng(seed).permutation(8)
        names = np.array(owners.names)
        order = [names[places[:5]].tolist(), names[places[5:]].tolist()]
        valuation = value(owners, game, budget=17, semivalue=dupre.precedence(order), seed=seed)
        assert valuation.facts.diagnostics is not None, "something is predicted"
        unsure = valuation.std.to_numpy() > 1e-9  # what is exact may differ by rounding
        inside += holds(valuation, truth(game, order))[unsure].tolist()
        found = valuation.facts.joining.symmetric
        shapley = game.values()
        symmetric += ((found["low"] <= shapley) & (shapley <= found["high"])).tolist()
    assert np.mean(inside) >= least_share(len(inside))
    assert np.mean(symmetric) >= least_share(len(symmetric))


def test_symmetric_values_are_those_of_shapley_once_all_is_known():
    owners = five()
    game = smooth(owners)
    valuer = record(dupre.Valuer(owners, empty=game.empty, semivalue=BY_JOINING), game.table)
    found = valuer.values().facts.joining.symmetric
    for column in ("value", "low", "high"):
        np.testing.assert_allclose(found[column], game.values(), atol=1e-9)
    assert dupre.Valuer(owners, empty=0.1).question.precedence is None


def test_a_cohort_of_more_than_16_is_drawn_and_its_error_is_in_the_intervals():
    owners = make_owners(22)
    first, later = owners.names[:3], owners.names[3:]
    game = smooth(owners)
    valuation = value(owners, game, budget=45, semivalue=dupre.precedence([first, later]))
    sampling = valuation.uncertainty.std("sampling")
    assert not sampling[:3].any()
    assert sampling[3:].all()
    assert has(valuation.notes, Code.SAMPLED_COALITIONS)
    after = value(
        make_owners(19, names=later),
        lambda members: game.of((*first, *members)),
        budget=39,
        empty=game.of(first),
    )
    width = valuation.uncertainty.widest + after.uncertainty.widest
    assert np.abs(valuation.mean[3:] - after.mean).max() <= width


def test_an_estimator_draws_the_coalitions_of_each_cohort():
    owners = five()
    asked = {"semivalue": BY_JOINING, "estimator": dupre.estimators.permutation, "budget": 7}
    valuation = value(owners, smooth(owners), **asked)
    np.testing.assert_allclose(valuation.mean, truth(smooth(owners), ORDER), atol=0.05)
    assert valuation.uncertainty.sampling is not None


def test_the_rule_is_told_and_kept():
    owners = five()
    valuation = value(owners, smooth(owners), budget=6, semivalue=BY_JOINING)
    first = str(valuation).splitlines()
    assert "Asymmetric Shapley, by order of joining (B and E; then A; then C and D): " in first[1]
    assert "Shapley value" not in str(valuation)
    told = valuation.explain()
    assert "If nobody had come first: Shapley values" in told
    (rule,) = select(valuation.notes, [Code.PRECEDENCE])
    assert rule.facts == {"cohorts": ORDER}
    assert rule.text in told
    again = dupre.Valuation.from_json(valuation.to_json())
    assert again.explain() == told
    assert again.facts.joining.symmetric.equals(valuation.facts.joining.symmetric)


def test_a_result_whose_cohorts_lack_an_owner_is_damaged():
    owners = five()
    whole = json.loads(value(owners, smooth(owners), budget=7, semivalue=BY_JOINING).to_json())
    whole["valuations"][0]["facts"]["joining"]["cohorts"][2] = ["C"]
    with pytest.raises(InputError, match="cohorts must be every owner in one of the cohorts"):
        dupre.Valuation.from_json(json.dumps(whole))


def test_results_are_compared_if_those_in_both_joined_in_the_same_order():
    owners, more = five(), make_owners(6, names=list("ABCDEF"))
    before = value(owners, smooth(owners), budget=7, semivalue=BY_JOINING)
    joined = dupre.precedence([*ORDER, ["F"]])
    after = value(more, smooth(more), budget=8, semivalue=joined)
    assert set(after.changes_since(before).joined) == {"F"}
    other = value(owners, smooth(owners), budget=7, semivalue=dupre.precedence(ORDER[::-1]))
    with pytest.raises(InputError, match=r"joined in the order B and E; then A; .*, now C and D;"):
        other.changes_since(before)
    with pytest.raises(InputError, match="semivalue was Shapley, now Asymmetric Shapley"):
        before.changes_since(value(owners, smooth(owners), budget=31))


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ([["A", "B", "C", "D", "e"]], r"unknown owner 'e' in the order of joining"),
        ([["A", "B"], ["C", "D"]], "does not name 'E'"),
    ],
)
def test_an_order_that_does_not_fit_the_owners_is_refused_before_anything_is_trained(order, words):
    with pytest.raises(InputError, match=words):
        value(five(), untouchable, budget=9, semivalue=dupre.precedence(order))


def test_a_run_is_resumed_by_the_same_order_alone(tmp_path):
    owners = five()
    store = tmp_path / "run.sqlite"
    asked = {"semivalue": BY_JOINING, "budget": 7}
    game = smooth(owners)
    value(owners, game, store=store, **(asked | {"budget": 4}))
    resumed = value(owners, game, store=store, **asked)
    assert_same(resumed, value(owners, smooth(owners), **asked))
    assert len(game.asked) == 7
