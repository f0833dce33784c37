import numpy as np
import pytest
from sklearn.ensemble import StackingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import ExtraTreeRegressor

import dupre
from dupre import InputError
from dupre.baselines import utility_learning
from dupre.game.coalitions import all_coalitions, to_names
from owners_and_games import LoggedGame, additive, make_owners, smooth

OWNERS = make_owners(5)


def test_a_regression_learns_an_additive_game_and_the_network_more_than_the_mean():
    game = additive(OWNERS)
    stacked = StackingRegressor([("line", LinearRegression())], cv=3)  # predicts once it is fitted
    assert np.isfinite(utility_learning(game, OWNERS, evaluated=12, model=stacked).values).all()
    found = utility_learning(game, OWNERS, evaluated=12, model=LinearRegression())
    np.testing.assert_allclose(found.values, game.values(), atol=1e-9)
    np.testing.assert_allclose(found.predictions.utility, list(game.table.values()), atol=1e-9)
    assert found.trained == len(set(game.asked)) == found.predictions.evaluated.sum() == 12
    assert found.std.isna().all()
    game = smooth(OWNERS)
    found, again = (utility_learning(game, OWNERS, evaluated=20, seed=4) for _ in range(2))
    np.testing.assert_array_equal(found.predictions.utility, again.predictions.utility)
    truth = np.array(list(game.table.values()))
    assert np.mean((found.predictions.utility - truth) ** 2) < 0.1 * truth.var()


@pytest.mark.parametrize("semivalue", [dupre.shapley, "banzhaf"])
def test_values_are_those_of_observed_and_predicted_utilities(semivalue):
    as_semivalue = dupre.banzhaf if semivalue == "banzhaf" else semivalue
    game = smooth(OWNERS)
    table = {(): game.empty} | dict(list(game.table.items())[::3])
    model = KNeighborsRegressor(3)
    found = utility_learning(table, OWNERS, model=model, semivalue=semivalue)
    members = all_coalitions(5)
    model.fit(members[::3].astype(float), game.game(members[::3]))
    u = model.predict(members.astype(float))
    u[::3] = game.game(members[::3])
    np.testing.assert_allclose(found.predictions.utility, u)
    np.testing.assert_allclose(found.values, LoggedGame(OWNERS, u, game.empty).values(as_semivalue))
    assert list(found.predictions.members) == [to_names(row, OWNERS.names) for row in members]
    sample = dupre.estimators.Sample(dupre.estimators.permutation, 20)
    drawn = utility_learning(table, OWNERS, model=model, semivalue=semivalue, estimator=sample)
    assert set(drawn.predictions.members) < set(found.predictions.members)


def test_predictions_are_averaged_over_seeds():
    game, which = smooth(OWNERS), [("owner00",), ("owner01", "owner02"), OWNERS.names]
    fits = []

    class Kept(ExtraTreeRegressor):
        def predict(self, X):
            fits.append(super().predict(X))
            return fits[-1]

    found = utility_learning(game, OWNERS, evaluated=which, model=Kept(), seeds=3)
    u = np.array([game.of(members) for members in which])
    guess = u.mean() + u.std() * np.mean(fits, axis=0)
    predicted = ~found.predictions.evaluated
    np.testing.assert_allclose(found.predictions.utility[predicted], guess[predicted])
    assert np.ptp(fits, axis=0).any()
    assert found.trained == 3


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "evaluated="),
        ({"evaluated": 1}, "evaluated"),
        ({"evaluated": 32}, "there are 31 coalitions"),
        ({"evaluated": [("owner00",)]}, "at least 2"),
        ({"evaluated": [("owner00",), ("nobody",)]}, "unknown owner"),
        ({"evaluated": 4, "seeds": 0}, "seeds"),
        ({"evaluated": 4, "model": "a network"}, "scikit-learn regressor"),
        ({"evaluated": 4, "model": LinearRegression}, "scikit-learn regressor"),
        ({"evaluated": 4, "model": LogisticRegression()}, "scikit-learn regressor"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_asked(options, match):
    game = smooth(OWNERS)
    with pytest.raises(InputError, match=match):
        utility_learning(game, OWNERS, **options)
    assert not game.asked
