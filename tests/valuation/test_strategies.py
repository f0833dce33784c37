from itertools import product

import numpy as np
import pytest

import dupre
from dupre import InputError, Valuer, kernels
from dupre.game.coalitions import all_coalitions, to_names
from dupre.valuation.strategies import Active, Corrected, Drawn, Uniform, check_strategy
from owners_and_games import make_owners, smooth


def test_counts_are_whole_numbers_and_focus_is_one_owner_or_two():
    for kind in (Active, Drawn, Uniform, Corrected):
        for name, count in product(["batch", "first"], [0, -1, 2.5, "3", True]):
            with pytest.raises(InputError, match=f"{name} must be a whole number of at least 1"):
                kind(**{name: count})
    for kind, count in product([Active, Drawn, Uniform], [-1, 4.0, None, "4"]):
        with pytest.raises(InputError, match="check must be a whole number of at least 0"):
            kind(check=count)
    with pytest.raises(TypeError, match="check"):
        Corrected(check=4)  # they exclude each other
    with pytest.raises(InputError, match=r"Active\(\), Drawn\(\), Uniform\(\) or Corrected\(\)"):
        check_strategy("active")
    for focus in ((), ("a", "a"), ("a", "b", "c"), 3, {"a"}):
        with pytest.raises(InputError, match="one owner or a pair of different owners"):
            Active(focus=focus)
    assert Active(focus=["a", 1]) == Active(focus=("a", "1"))


def order_of(owners, seed):
    return Valuer(owners, empty=0.0, strategy=Uniform(first=31), seed=seed).suggest(30)


def test_uniform_draws_are_distinct_and_any_coalition_is_as_likely():
    owners = make_owners(5)
    orders = [order_of(owners, seed) for seed in range(80)]
    assert all(len(set(order)) == 30 for order in orders)
    first = {to_names(row, owners.names): 0 for row in all_coalitions(5)}
    for order in orders:
        for members in order[:12]:
            first[members] += 1
    counts = np.array(list(first.values()))  # 80 times 12 of 31: 31 of each, give or take 4.4
    assert 31 - 4 * 4.4 < counts.min() <= counts.max() < 31 + 4 * 4.4

    game, other = smooth(owners), smooth(owners)
    for budget, of in ((9, game), (20, other)):
        dupre.value(owners, of, budget=budget, strategy=Uniform(batch=4), seed=3, progress=False)
    assert game.asked == other.asked[:9]
    assert other.asked == order_of(owners, 3)[:20]


@pytest.mark.parametrize("focus", [None, "owner02"])
def test_half_active_is_half_uniform_then_one_batch_of_algorithm_2(focus):
    owners, kernel = make_owners(5), kernels.paper()
    game, strategy = smooth(owners), Active(uniform=True, focus=focus)
    dupre.value(owners, game, budget=17, strategy=strategy, kernel=kernel, seed=3, progress=False)
    drawn = order_of(owners, 3)[:9]
    assert game.asked[:9] == drawn
    valuer = Valuer(owners, empty=game.empty, strategy=strategy, kernel=kernel, seed=3)
    for members in drawn:
        valuer.record(members, game.of(members))
    assert set(game.asked[9:]) == set(literal_picks(valuer, game, drawn, focus, 8))


def literal_picks(valuer, game, evaluated, focus, count):
    """DUPRE Alg. 2 as printed, with the hyper-parameters that were learned."""
    gp, names = valuer._knowledge.predictor().gp, valuer.owners.names
    members = all_coalitions(len(names))
    every = [to_names(row, names) for row in members]
    K = gp.kernel(*[valuer._knowledge.features_of(members)] * 2)
    A = [every.index(one) for one in evaluated]
    B = [i for i in range(len(every)) if i not in A]
    weights = dupre.estimators.exact(dupre.shapley, len(names)).W
    w = weights if focus is None else weights[[names.index(focus)]]
    picks = []
    for _ in range(count):
        reduction = {}
        for g in set(B) - set(picks):
            C = [*A, *picks, g]
            inverse = np.linalg.inv(K[np.ix_(C, C)] + gp.noise * np.eye(len(C)))
            WK = w[:, B] @ K[np.ix_(B, C)]
            reduction[g] = np.trace(WK @ inverse @ WK.T)
        picks.append(max(reduction, key=reduction.get))
    return [every[g] for g in picks]


def test_half_of_a_budget_is_half_of_what_is_not_for_the_check():
    owners = make_owners(5)
    game = smooth(owners)
    strategy = Active(uniform=True, check=4, batch=3)
    valuation = dupre.value(owners, game, budget=21, strategy=strategy, progress=False)
    assert game.asked[:9] == order_of(owners, 0)[:9]
    assert valuation.check is not None
    first = Active(uniform=True, first=6)
    dupre.value(owners, game := smooth(owners), budget=8, strategy=first, progress=False)
    assert game.asked[:6] == order_of(owners, 0)[:6]
    without = dupre.stopping.evaluated(12)  # no budget: no half of it
    dupre.value(owners, game := smooth(owners), stop=without, strategy=Active(uniform=True),
                progress=False)  # fmt: skip
    assert game.asked[:11] == order_of(owners, 0)[:11]
