from itertools import combinations

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

import dupre
from dupre.report.page import page
from dupre.report.summary import answer
from dupre.result.group_sizes import by_size, harms_most_groups
from owners_and_games import LoggedGame, make_owners, shuffled_digits, smooth, value

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
    np.testing.assert_allclose(by_size(found)[:, :, 0], brute_force(game), atol=1e-12)
    np.testing.assert_allclose(by_size(found)[:, :, 0].mean(axis=1), found.mean)
    assert (found.contributions["low"] == found.contributions["high"]).all()
    part = value(FIVE, game, budget=18)
    inside = part.contributions["low"].to_numpy() <= brute_force(game).ravel()
    inside &= brute_force(game).ravel() <= part.contributions["high"].to_numpy()
    assert inside.mean() > 0.85
    again = dupre.Valuation.from_json(part.to_json())
    assert again.contributions.equals(part.contributions)


def test_equal_owners_add_the_same_and_rows_are_part_of_the_intervals():
    X, y = shuffled_digits()
    parts = {name: (X[i::40], y[i::40]) for i, name in enumerate("abc")}
    owners = dupre.Owners.from_mapping({**parts, "copy of c": parts["c"]})
    utility = dupre.ModelUtility(GaussianNB(), owners, validation=(X[3::10], y[3::10]))
    found = by_size(value(owners, utility, budget=11))
    np.testing.assert_allclose(found[2], found[3])
    assert (found[:, :, 2] > found[:, :, 1]).all()


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
    assert harms_most_groups(harms).tolist() == [True, False, False, False, False]
    assert not harms_most_groups(once).any()
    assert any("harm the model" in sentence for sentence in answer(harms))
    assert not any("harm the model" in sentence for sentence in answer(once))
    assert "not for most sizes of groups" in page([once])
    assert "wrong labels" not in page([harms])
    assert "to 4 others" in page([harms])


def test_a_single_training_that_decides_a_value_is_named():
    game = smooth(FIVE)
    plain = game.game
    outlier = np.array([False, True, True, False, False])
    game.game = lambda C: plain(C) - 14.5 * (outlier == C).all(axis=1)
    found = value(FIVE, game, budget=31)
    (caveat,) = found.caveats
    assert caveat.startswith("one training decides much: {owner01, owner02} scored -1")
    assert "that of owner01 by" in caveat
    assert not value(FIVE, smooth(FIVE), budget=31).caveats


@pytest.mark.parametrize("n", [13, 17])
def test_many_owners_have_no_contributions_by_size(n):
    valuer = dupre.Valuer(make_owners(n), empty=0.0)
    valuer.record(valuer.owners.names, 1.0)
    assert valuer.contributions().empty
