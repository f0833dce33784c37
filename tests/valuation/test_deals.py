"""What another deal of the folds would change: measured, part of every statement, and enough."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import KFold

import dupre
from dupre.game.estimators import exact
from dupre.notes import Code, has, select
from dupre.report.page import page
from dupre.report.statements import statements
from dupre.report.summary import answer
from dupre.utility.describe import describe
from dupre.utility.score import before_floor
from dupre.valuation.deals import FURTHER
from dupre.valuation.validation_rows import SHOWN
from owners_and_games import make_owners


def polls(rows=60, seed=0):
    """Shares in election polls by institute: few rows, and one split of them decides."""
    rng = np.random.default_rng(seed)
    who = rng.choice(["Forsa", "Gallup", "Insa", "Nielsen", "Sonoma"], rows)
    day, size, house = rng.random(rows), rng.random(rows), np.array([ord(w[0]) for w in who]) / 50
    y = 38 + 3 * day - 2 * size + house + rng.normal(size=rows)
    return dupre.Owners.from_arrays(np.column_stack([day, size, day * size]), y, who)


def value(owners, split, *, seed=0, budget=None, **how):
    utility = dupre.ModelUtility(Ridge(0.1), owners, validation=split, seed=seed)
    budget = 2**owners.n - 1 if budget is None else budget
    return dupre.value(owners, utility, budget=budget, seed=seed, progress=False, **how)


@pytest.fixture(scope="module")
def by_seed():
    owners = polls()
    return [value(owners, dupre.Folds(10), seed=seed) for seed in range(5)]


@pytest.mark.slow
def test_the_seed_does_not_decide_the_money(by_seed):
    moved, opposite = [], 0
    for one, other in combinations(by_seed, 2):
        found = other.changes_since(one)  # seeds share the rows, so the choice of these is left out
        assert found.same_rows
        assert found.changed == ("the seed",)
        moved += found.frame["moved"].tolist()
        P, Q = (v.probability_greater().to_numpy() for v in (one, other))
        opposite += ((P >= 0.95) & (Q <= 0.05)).sum()
    assert np.mean(moved) <= 0.07
    assert opposite == 0
    assert len({v.verdict.kind for v in by_seed}) == 1


@pytest.mark.slow
def test_folds_leave_less_to_the_seed_than_one_split(by_seed):
    owners = by_seed[0].owners
    single = [value(polls(), dupre.Holdout(0.25), seed=seed) for seed in range(5)]
    spread = [np.std([v.mean for v in found], axis=0).mean() for found in (by_seed, single)]
    assert spread[0] < spread[1] / 2
    wide = [np.mean([v.uncertainty.widest for v in found]) for found in (by_seed, single)]
    assert wide[0] < wide[1]
    assert all(has(v.notes, Code.DEAL) for v in (*by_seed, *single))
    assert len(owners) == 5


def test_the_part_is_the_covariance_of_the_values_of_each_deal():
    owners, split = polls(40), dupre.Folds(4)
    utility = dupre.ModelUtility(Ridge(0.1), owners, validation=split)
    found = dupre.value(owners, utility, budget=11, progress=False)
    chosen = select(found.notes, [Code.DEAL])[0].facts["coalitions"]
    assert chosen == 11  # the first design
    valuer = dupre.Valuer(owners, empty=utility.score_of_no_data(), floor=0.0, bounds=(None, 1.0))
    for members in valuer.suggest(11):
        scores = [before_floor(utility(members, repeat=r)) for r in range(1 + FURTHER)]
        valuer.record(members, scores[0])
        valuer.record_deals(members, scores)
    told = valuer.values()
    np.testing.assert_allclose(told.uncertainty.deal, found.uncertainty.deal, rtol=1e-6)
    np.testing.assert_allclose(told.mean, found.mean, rtol=1e-9)


def test_from_all_coalitions_it_follows_by_hand():
    owners, rng = make_owners(4), np.random.default_rng(0)
    weights = exact(dupre.shapley, 4)
    utilities = rng.random((3, 15))
    valuer = dupre.Valuer(owners, empty=0.0)
    for row, several in zip(weights.members, utilities.T, strict=True):
        members = [name for name, there in zip(owners.names, row, strict=True) if there]
        valuer.record(members, several[0])
        valuer.record_deals(members, several.tolist())
    values = utilities @ weights.W.T
    covariance = np.cov(values.T)
    # As if the mean variance had been seen by two more degrees, in what owners have apart.
    apart = np.trace(covariance) / 4 * (np.eye(4) * 4 - 1) / 3
    np.testing.assert_allclose(
        valuer.values().uncertainty.deal, (2 * apart + 2 * covariance) / 4 / SHOWN, atol=1e-12
    )
    averaged = dupre.Valuer(owners, empty=0.0)
    for row, several in zip(weights.members, utilities.T, strict=True):
        members = [name for name, there in zip(owners.names, row, strict=True) if there]
        averaged.record(members, several.mean())
        averaged.record_deals(members, several.tolist(), averaged=True)
    mean = averaged.values()
    np.testing.assert_allclose(3 * mean.uncertainty.deal, valuer.values().uncertainty.deal)
    np.testing.assert_allclose(mean.mean, values.mean(axis=0))


@pytest.mark.slow
def test_repeats_average_over_deals_and_leave_a_third_of_it():
    owners = polls()
    once, thrice = (value(owners, dupre.Folds(5), repeats=r) for r in (None, 3))
    # Both compare the same three deals, the second one of all coalitions.
    parts = [np.trace(v.uncertainty.deal) for v in (once, thrice)]
    assert 0.15 < parts[1] / parts[0] < 0.7
    assert not has(thrice.notes, Code.ONE_SPLIT)
    single = value(owners, dupre.Folds(5), repeats=1)
    assert single.uncertainty.deal is None
    assert has(single.notes, Code.ONE_SPLIT)
    assert single.verdict.kind != "payable"


def test_what_one_split_shows_beyond_other_validation_rows_is_part_of_the_intervals():
    # Many validation rows, few to train on: which these are decides.
    found = value(polls(200), dupre.Holdout(0.8))
    parts = found.uncertainty
    assert parts.std("deal").max() > 0.3 * parts.std("validation").max()
    (told,) = select(found.notes, [Code.DEAL])
    assert told.text.startswith("Another split of the rows would change values by up to ±")
    assert describe(dupre.ModelUtility(Ridge(), polls(), validation=dupre.Holdout(0.2))).deals_rows


def test_a_split_in_time_is_no_chance_so_nothing_is_missing_from_its_intervals():
    rng = np.random.default_rng(0)
    X = rng.random((120, 3))
    y, who = X.sum(axis=1) + rng.normal(size=120) / 5, np.array(["A", "B", "C"])[np.arange(120) % 3]
    found = value(dupre.Owners.from_arrays(X, y, who), dupre.Folds(5, in_time=np.arange(120)))
    assert not has(found.notes, Code.ONE_SPLIT, Code.DEAL)
    assert found.verdict.kind == "payable"
    assert "Values are within" in str(found)


def test_nothing_is_sure_nor_exact_of_a_split_that_was_not_compared_with_another():
    rng = np.random.default_rng(0)
    X = rng.random((300, 3))
    y, who = X.sum(axis=1) + rng.normal(size=300) / 5, np.array(["A", "B", "C"])[np.arange(300) % 3]
    found = value(dupre.Owners.from_arrays(X, y, who), KFold(5, shuffle=True, random_state=0))
    assert has(found.notes, Code.ONE_SPLIT)
    words = " ".join(answer(found))
    assert "all Shapley values are apparently above zero" in words
    assert ", apart from how the rows were split for validation." in words
    assert "the values are exact for this deal of the folds." in words
    assert found.verdict.kind == "payable with reservations"


@pytest.mark.parametrize(
    ("split", "told"),
    [
        (dupre.Holdout(0.8), "is the split of the rows, which folds reduce"),
        (dupre.Folds(5), "is the deal of the folds, which repeats reduce"),
    ],
)
def test_what_reduces_the_doubt_of_a_split_is_what_comes_next(split, told):
    (parts,) = select(value(polls(), split).notes, [Code.VARIANCE])
    assert told in parts.text


def test_a_row_that_stands_several_times_is_counted_once_and_all_its_numbers_are_told():
    rng = np.random.default_rng(0)
    X = np.append(rng.random((60, 2)), np.tile(rng.random((20, 2)), (6, 1)), axis=0)
    y, who = X.sum(axis=1), np.array(["Copies"]).repeat(180)
    who[:60:2] = "Other"
    v = value(dupre.Owners.from_arrays(X, y, who), dupre.Holdout(0.3))
    (own,) = [s for s in statements(v, []) if v.owners[s.owner] == "Copies"]
    told = dict(own.checks)["Rows of yours that validated"]
    numbers = [int(one) for one in told.partition("your rows: ")[2].partition(", …")[0].split(", ")]
    different = round(v.facts.validating["Copies"] * v.facts.validation_rows)
    assert told.startswith(f"{different} different ones and their copies, of 150, numbered from 1")
    rows = X[who == "Copies"]
    listed = len(np.unique(rows[np.array(numbers) - 1], axis=0))
    assert listed < len(numbers)
    assert listed <= different


def test_the_page_says_what_the_rows_of_each_owner_weigh_if_all_weigh_alike():
    rng = np.random.default_rng(0)
    X, who = rng.random((100, 2)), np.array(["Big"] * 65 + ["Mid"] * 20 + ["Small"] * 15)
    owners = dupre.Owners.from_arrays(X, X.sum(axis=1) + rng.normal(size=100), who)
    for equal in (True, False):
        shown = page([value(owners, dupre.Folds(3, equal_owners=equal))])
        table = shown.partition("Whose rows models are scored on")[2].partition("</table>")[0]
        assert table.count("65.0\u00a0%") == 1
        assert ("Weight in a score" in table) == equal
        assert table.count("33.3\u00a0%") == 3 * equal
