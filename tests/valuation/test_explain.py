from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import dupre
from dupre.game.coalitions import from_names, random_of_sizes, to_names
from dupre.game.semivalues import joining
from dupre.notes import Code, warnings
from dupre.report.page import page
from dupre.report.statements import statements
from dupre.report.summary import FEW, MOST, OPEN, answer, by_size, harm_by_size
from dupre.valuation import explain
from dupre.valuation.explain import MOST_PREDICTED
from dupre.valuation.strategies import Active
from owners_and_games import LoggedGame, make_owners, record, shuffled_digits, smooth, value
from reporting import change

FIVE = make_owners(5)


def brute_force(game):
    names = game.owners.names
    table = {frozenset(m): u for m, u in game.table.items()} | {frozenset(): game.empty}
    found = np.empty((len(names), len(names)))
    for i, name in enumerate(names):
        rest = [other for other in names if other != name]
        for s in range(len(names)):
            groups = [frozenset(group) for group in combinations(rest, s)]
            found[i, s] = np.mean([table[group | {name}] - table[group] for group in groups])
    return found


def test_contributions_by_size_average_all_groups_and_add_up_to_the_value():
    game = smooth(FIVE)
    found = value(FIVE, game, budget=31)
    others, numbers = by_size(found)
    assert others.tolist() == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(numbers[:, :, 0], brute_force(game), atol=1e-12)
    np.testing.assert_allclose(numbers[:, :, 0].mean(axis=1), found.mean)
    assert (found.facts.contributions["low"] == found.facts.contributions["high"]).all()
    part = value(FIVE, game, budget=18)
    inside = part.facts.contributions["low"].to_numpy() <= brute_force(game).ravel()
    inside &= brute_force(game).ravel() <= part.facts.contributions["high"].to_numpy()
    assert inside.mean() > 0.85
    again = dupre.Valuation.from_json(part.to_json())
    assert again.facts.contributions.equals(part.facts.contributions)


def test_sizes_below_all_that_was_evaluated_are_left_out_and_harm_no_one():
    game = smooth(FIVE)
    alone = value(FIVE, game, semivalue=dupre.leave_one_out, budget=31)
    others, numbers = by_size(alone)
    assert others.tolist() == [4]  # all owners and all but one are trained
    np.testing.assert_allclose(numbers[:, 0, 0], brute_force(game)[:, 4], atol=1e-12)
    assert harm_by_size(replace(alone, mean=-alone.mean)) == [""] * 5
    assert by_size(value(FIVE, game, budget=1)) is None
    everything, _ = by_size(value(FIVE, game, budget=2))  # all owners, and one alone
    assert everything.tolist() == [0, 1, 2, 3, 4]


def test_equal_owners_add_the_same_and_a_training_that_decides_a_value_is_named():
    X, y = shuffled_digits()
    parts = {name: (X[i::40], y[i::40]) for i, name in enumerate("abc")}
    owners = dupre.Owners.from_mapping({**parts, "copy of c": parts["c"]})
    utility = dupre.ModelUtility(GaussianNB(), owners, validation=(X[3::10], y[3::10]))
    _, found = by_size(value(owners, utility, budget=11))
    np.testing.assert_allclose(found[2], found[3])
    assert (found[:, :, 2] > found[:, :, 1]).all()

    game = smooth(FIVE)
    plain = game.game
    outlier = np.array([False, True, True, False, False])
    game.game = lambda C: plain(C) - 14.5 * (outlier == C).all(axis=1)
    found = value(FIVE, game, budget=31)
    (told,) = warnings(found.notes)
    assert told.text.startswith("one training decides much: {owner01, owner02} scored -1")
    assert "that of owner01 by" in told.text
    assert (told.code, told.facts["members"]) == (Code.DECISIVE_TRAINING, ["owner01", "owner02"])
    assert "owner01" in told.facts["changes"]
    assert not warnings(value(FIVE, smooth(FIVE), budget=31).notes)


def test_harm_is_said_only_of_who_harms_most_sizes():
    def game(always):
        def utilities(C):
            rest = C[:, 1:].sum(axis=1)
            harm = 0.1 if always else np.where(rest == 0, 3.0, -0.1)
            return 0.2 * rest - C[:, 0] * harm

        return LoggedGame(FIVE, utilities)

    harms, once = (value(FIVE, game(always), budget=31) for always in (True, False))
    assert harms.values.iloc[0] < 0
    assert once.values.iloc[0] < 0
    assert harm_by_size(harms) == [MOST, FEW, FEW, FEW, FEW]
    assert harm_by_size(once) == [FEW] * 5
    assert any("harm the model" in sentence for sentence in answer(harms))
    assert not any("harm the model" in sentence for sentence in answer(once))
    assert "though not in groups of most sizes" in page([once])
    doubt = harms.facts.contributions.assign(high=1.0)
    doubted = change(harms, contributions=doubt)
    assert harm_by_size(doubted)[0] == OPEN
    assert not any("harm the model" in sentence for sentence in answer(doubted))
    assert f"on average, {OPEN}" in page([doubted])
    assert harm_by_size(change(harms, contributions=doubt[:0])) == [""] * 5
    assert "wrong labels" not in page([harms])
    (first, *_) = statements(harms, [])
    assert first.sizes[-1][0] == "to 4 others"


def many_owners_game(n):
    """Utilities with a known contribution to each size: a worth of owners, and interactions."""
    owners = make_owners(n)
    worth = np.linspace(-0.5, 1.5, n)

    def utilities(C):
        size = C.sum(axis=1)
        return np.sqrt(size) + C @ worth * (1 - 0.8 * size / n)

    k = np.arange(1, n + 1)  # members of the group with the owner
    rest = worth.sum() - worth
    grown = worth[:, None] + rest[:, None] * (k - 1) / (n - 1)
    before = rest[:, None] * (k - 1) / (n - 1)
    truth = np.sqrt(k) - np.sqrt(k - 1)
    truth = truth + grown * (1 - 0.8 * k / n) - before * (1 - 0.8 * (k - 1) / n)
    return LoggedGame(owners, utilities), truth


@pytest.mark.slow
def test_intervals_of_many_owners_hold_where_contributions_depend_on_the_size_of_a_group(all_forms):
    """Without groups of 2 to 11 owners in the first design a quarter of them held."""
    game, truth = many_owners_game(13)
    found = dupre.value(game.owners, game, budget=52, progress=False)
    error = np.abs(found.values.to_numpy() - truth.mean(axis=1))
    assert np.mean(error <= 1.96 * found.std.to_numpy()) > 0.9


@pytest.mark.slow
def test_contributions_of_many_owners_are_known_for_twelve_sizes():
    n = 17
    game, truth = many_owners_game(n)
    valuer = dupre.Valuer(game.owners, empty=0.0)
    one, rng = np.eye(n, dtype=bool), np.random.default_rng(0)
    middle = random_of_sizes(n, rng.integers(2, n - 1, 3 * n), rng)
    for row in np.concatenate([one[:1] | True, one, ~one, middle]):
        valuer.record(to_names(row, game.owners.names), game.game(row[None])[0])
    found = valuer.values()
    others, numbers = by_size(found)
    assert (len(others), others[0], others[-1]) == (12, 0, n - 1)
    error, half = numbers[:, :, 0] - truth[:, others], numbers[:, :, 2] - numbers[:, :, 0]
    assert np.mean(np.abs(error) <= 2 * half + 1e-9) > 0.9  # a hard game for the predictor
    assert np.abs(error[:, [0, -1]]).max() < 1e-9  # all of these were evaluated
    assert np.corrcoef(numbers[:, 6, 0], truth[:, others[6]])[0, 1] > 0.99
    again = dupre.Valuation.from_json(found.to_json())
    assert again.facts.contributions.equals(found.facts.contributions)


def test_contributions_are_exact_if_all_is_evaluated_or_have_intervals_for_the_choice_of_groups():
    """Every group that is looked at was evaluated, but only some of all groups are."""
    owners = make_owners(14)
    pairs = np.random.default_rng(0).normal(size=(14, 14))
    both = np.triu(pairs, 1) + np.triu(pairs, 1).T
    valuer = dupre.Valuer(owners, empty=0.0)
    weights = explain._weights(valuer.state, joining(6), 512, 11, 6)
    for row in weights.members:
        valuer.record(to_names(row, owners.names), float(row @ both @ row) / 2)
    mean, half = explain._values(valuer.state, weights, None)
    assert (half > 0).all()
    error = np.abs(mean - both.sum(axis=1) * 6 / 13)
    assert (error > 1e-6).any()
    assert (error < half).mean() > 0.8

    game, truth = many_owners_game(13)
    valuer = dupre.Valuer(game.owners, empty=0.0)
    for names, utility in game.table.items():
        valuer.record(names, utility)
    found = valuer.contributions()
    np.testing.assert_allclose(found["low"], found["high"])
    others = found["others"].to_numpy()[:12]
    np.testing.assert_allclose(found["value"].to_numpy().reshape(13, 12), truth[:, others])


# What was evaluated, and what is predicted of it and of others.


def saturating(members):
    """The more the better, ever less."""
    return np.sqrt(np.asarray(members, dtype=float) @ np.arange(1, members.shape[1] + 1))


def value_saturating(n=6, budget=20, **how):
    owners = make_owners(n)
    game = LoggedGame(owners, saturating)
    return owners, game, value(owners, game, budget=budget, **how)


@pytest.fixture(scope="module")
def six():
    """Owners, their game, and its valuation."""
    return value_saturating()


def test_every_evaluated_coalition_is_there_with_what_was_predicted_of_it(six):
    owners, game, v = six
    observed = v.facts.evidence.coalitions.dropna(subset="utility")
    assert sorted(observed["members"]) == sorted(set(game.asked))
    assert observed["utility"].tolist() == [game.of(members) for members in observed["members"]]
    errors = observed["utility"] - observed["predicted"]  # those the diagnostics speak of
    assert np.sqrt(np.mean(errors**2)) == pytest.approx(v.facts.diagnostics.error, rel=1e-9)
    found = v.facts.evidence.coalitions
    rows = np.array([from_names(members, owners.names) for members in found.members])
    assert (found["size"] == rows.sum(axis=1)).all()
    assert (found["rows"] == rows @ owners.rows).all()

    _, _, v = value_saturating(budget=30, strategy=Active(check=6))
    observed = v.facts.evidence.coalitions.dropna(subset="utility")
    squares = (observed["utility"] - observed["predicted"]) ** 2
    shown = len(observed) - v.facts.check.held_out
    expected = shown * v.facts.diagnostics.error**2 + 6 * v.facts.check.error**2
    assert (len(observed), v.facts.check.held_out) == (30, 6)
    assert squares.sum() == pytest.approx(expected, rel=1e-9)


def test_of_many_coalitions_some_of_every_size_are_shown_and_of_an_exact_valuation_none():
    _, _, v = value_saturating(n=3, budget=7)
    assert len(v.facts.evidence.coalitions) == 7
    assert v.facts.evidence.coalitions[["predicted", "std"]].isna().all(axis=None)
    _, _, v = value_saturating(n=11, budget=30)
    others = v.facts.evidence.coalitions[v.facts.evidence.coalitions["utility"].isna()]
    assert len(others) == MOST_PREDICTED
    assert not others["members"].duplicated().any()
    sizes = others["size"].value_counts()
    assert set(range(2, 10)) <= set(sizes.index)
    assert sizes[5] <= 2 * sizes[4]


def test_predict_tells_what_was_observed_and_covers_what_is_expected(six):
    owners, game, _ = six
    valuer = dupre.Valuer(owners, empty=0.0)
    with pytest.raises(dupre.InputError, match="no utility to learn from"):
        valuer.predict([("owner00",)])
    record(valuer, {members: game.of(members) for members in valuer.suggest(13)})
    known, new = owners.names[:1], owners.names[1:4]
    found = valuer.predict([known, new[::-1]])
    assert found["members"].tolist() == [known, new]
    assert found["evaluated"].tolist() == [True, False]
    assert found["utility"][0] == found["low"][0] == found["high"][0] == game.of(known)
    assert found["low"][1] < game.of(new) < found["high"][1]
    with pytest.raises(dupre.InputError, match="unknown owner 'nobody'"):
        valuer.predict([("nobody",)])

    owners = make_owners(7)
    game, valuer = LoggedGame(owners, saturating), dupre.Valuer(owners, empty=0.0)
    record(valuer, {members: game.of(members) for members in valuer.suggest(15)})
    found, truth = valuer.predict(game.table), np.array(list(game.table.values()))
    assert np.mean((found["low"] <= truth) & (truth <= found["high"])) >= 0.9
