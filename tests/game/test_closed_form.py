from itertools import permutations

import numpy as np
import pytest

from closed_form import additive, airport, glove, majority, unanimity, unanimity_sum

GAMES = {
    "additive": additive([3.0, -1.0, 0.0, 0.5]),
    "unanimity of two": unanimity(5, [1, 3]),
    "unanimity of one": unanimity(3, [2]),
    "unanimity of all": unanimity(4, range(4)),
    "airport, unsorted costs": airport([4.0, 1.0, 7.0, 2.5, 5.0]),
    "airport, equal costs": airport([2.0, 2.0, 0.0, 5.0]),
    "glove, one right": glove(1),
    "glove, four right": glove(4),
    "majority of an odd number": majority(5),
    "majority of an even number": majority(4),
    "sum of unanimities": unanimity_sum(5, 12, np.random.default_rng(0)),
    "sum of no unanimities": unanimity_sum(3, 0, np.random.default_rng(0)),
}


def shapley_by_permutations(game):
    """Mean marginal contribution over all n! orders of arrival."""
    gains = []
    for order in permutations(range(game.n)):
        coalitions = np.zeros((game.n + 1, game.n), dtype=bool)
        for step, player in enumerate(order):
            coalitions[step + 1 :, player] = True
        gains.append(np.diff(game.utility(coalitions))[np.argsort(order)])
    return np.mean(gains, axis=0)


@pytest.mark.parametrize("game", GAMES.values(), ids=GAMES.keys())
def test_closed_form_is_the_mean_over_all_orders_of_arrival(game):
    np.testing.assert_allclose(game.shapley, shapley_by_permutations(game), atol=1e-12)
    assert game.utility(np.zeros((1, game.n), dtype=bool)).tolist() == [0.0]
