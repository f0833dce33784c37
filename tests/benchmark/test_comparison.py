"""Budgets that are kept, differences and intervals by hand, and coverage of known errors."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from scipy.stats import t as student

import dupre
from dupre.benchmark import Comparison, CountedGame, Estimate, Game, by_dupre, by_estimator, compare
from dupre.benchmark.comparison import allowed_by, score
from dupre.game.coalitions import all_coalitions, to_names
from owners_and_games import additive, make_owners, smooth


def game_of(logged, name="toy"):
    return Game(name, logged.owners, logged.game, logged.empty)


TOY = game_of(additive(make_owners(4)))
OTHERS = [game_of(additive(make_owners(4), seed=seed), f"toy {seed}") for seed in (1, 2, 3)]


def test_a_budget_counts_different_coalitions_and_more_are_refused():
    game = CountedGame(TOY, dupre.shapley, 3)
    rows = all_coalitions(4)
    first = game(rows[[0, 1, 0]])
    assert first.tolist() == TOY.utilities_of(rows[[0, 1, 0]]).tolist()
    assert game.asked == 2
    assert game(np.zeros((2, 4))).tolist() == [TOY.empty] * 2  # no data are free
    assert game.utility(to_names(rows[1], TOY.owners.names)) == first[1]  # and so is asking again
    assert game.utility(()) == TOY.empty
    with pytest.raises(dupre.InputError, match=r"asked for 4 different .* with a budget of 3"):
        game(rows[2:4])
    assert game.asked == 2
    assert game(rows[5]).shape == (1,)
    assert game.asked == 3
    with pytest.raises(dupre.InputError, match=r"boolean rows of 4 owners, .* got shape \(5,\)"):
        game(np.ones(5))


def test_a_method_that_asks_for_too_much_stops_the_comparison():
    def greedy(game, budget, seed):
        return game(all_coalitions(game.n))[:4]

    with pytest.raises(dupre.InputError, match="asked for 15 different"):
        compare({"greedy": greedy}, [TOY], ["2n + 1"], 1)


@pytest.mark.parametrize(
    ("budget", "count"), [("n + 1", 8), ("4n", 28), (" 2 n+1 ", 15), ("n", 7), (30, 30)]
)
def test_budgets_are_numbers_or_follow_from_the_owners(budget, count):
    assert allowed_by(budget, 7) == count


@pytest.mark.parametrize("budget", ["4m", "n - 1", "", 0, 2.5, "n*n"])
def test_other_budgets_are_refused(budget):
    with pytest.raises(dupre.InputError):
        allowed_by(budget, 7)


def off_by(factor):
    """A method whose errors are this multiple of others that depend on the seed."""

    def method(game, budget, seed):
        worth = game(np.eye(game.n, dtype=bool)) - game.empty
        return worth + factor * np.random.default_rng(seed).normal(size=game.n)

    return method


def test_differences_of_a_factor_are_found_exactly():
    methods = {"one": off_by(1.0), "three": off_by(3.0)}
    found = compare(methods, [TOY, *OTHERS], ["n + 1", 6, 15], 3)
    assert set(found.runs["budget"]) == {"n + 1", "6"}  # with 15 all coalitions are known
    assert (found.runs["asked"] == 4).all()
    table = found.differences("one")
    assert table["method"].tolist() == ["three", "three"]
    assert table["games"].tolist() == [4, 4]
    for column in ("ratio", "low", "high"):
        assert table[column].to_numpy() == pytest.approx(9.0)
    assert (table["p"] < 1e-6).all()
    with pytest.raises(dupre.InputError, match="unknown method 'two'; expected one of one, three"):
        found.differences("two")


def comparison_of(logs):
    """A comparison with these log MSE: {method: (games, seeds)}."""
    nothing = dict.fromkeys(("pearson", "covered", "surprise"), np.nan)
    rows = [
        {"game": g, "budget": "4n", "method": method, "seed": s, "log_mse": log} | nothing
        for method, values in logs.items()
        for g, of_game in enumerate(values)
        for s, log in enumerate(of_game)
    ]
    return Comparison(pd.DataFrame(rows))


def test_paired_differences_intervals_and_holm_by_hand():
    a = [[0.0, 2.0], [1.0, 1.0], [4.0, 2.0]]  # means 1, 1, 3
    b = [[2.0, 2.0], [1.0, 2.0], [4.0, 4.0]]  # means 2, 1.5, 4: 1, 0.5, 1 more
    c = [[0.0, np.nan], [np.nan, np.nan], [2.0, 5.0]]  # by seeds that both have: 0 and 0.5 more
    found = comparison_of({"a": a, "b": b, "c": c}).differences("a")
    assert found["games"].tolist() == [3, 2]
    means = np.array([2.5 / 3, 0.25])
    errors = np.array([np.std([1, 0.5, 1], ddof=1) / np.sqrt(3), 0.25])
    wide = student.ppf(1 - 0.025 / 2, [2, 1])  # two comparisons
    assert np.log(found["ratio"]).to_numpy() == pytest.approx(means)
    assert np.log(found["low"]).to_numpy() == pytest.approx(means - wide * errors)
    assert np.log(found["high"]).to_numpy() == pytest.approx(means + wide * errors)
    plain = 2 * student.sf(means / errors, [2, 1])
    assert found["p"].tolist() == pytest.approx([2 * plain[0], max(2 * plain[0], plain[1])])


def test_one_game_says_nothing_of_others():
    found = comparison_of({"a": [[0.0, 1.0]], "b": [[5.0, 5.0]]}).differences("a")
    assert found.loc[0, "low"] == 0
    assert found.loc[0, "high"] == np.inf
    assert found.loc[0, "p"] == 1


def test_intervals_of_several_comparisons_hold_together():
    """All of ten true differences are inside in at least 95 % of tables, but for chance."""
    rng, inside = np.random.default_rng(0), 0
    for _ in range(200):
        shared = rng.normal(size=(8, 1))  # what all methods find hard in a game
        logs = {"a": rng.normal(size=(8, 2)) + shared}
        logs |= {f"b{k}": 1.0 + rng.normal(size=(8, 2)) + shared for k in range(10)}
        found = comparison_of(logs).differences("a")
        inside += bool(((found["low"] < np.e) & (np.e < found["high"])).all())
    assert inside >= 183  # 190 are expected; fewer than 183 of 200 have a chance of 2 %


def noisy(width):
    """Values with normal errors of standard deviation 0.1 that states `width` times as much."""

    def method(game, budget, seed):
        worth = game(np.eye(game.n, dtype=bool)) - game.empty
        rng = np.random.default_rng([seed, 1])
        return Estimate.normal(worth + 0.1 * rng.normal(size=game.n), np.full(game.n, 0.1 * width))

    return method


def test_coverage_and_surprise_of_known_errors():
    methods = {"right": noisy(1.0), "narrow": noisy(0.5), "none": off_by(0.1)}
    found = compare(methods, [TOY], ["n"], 500).summary().set_index("method")
    assert found.loc["right", "covered"] == pytest.approx(0.95, abs=0.015)
    assert found.loc["narrow", "covered"] == pytest.approx(2 * norm.cdf(0.98) - 1, abs=0.03)
    assert np.isnan(found.loc["none", "covered"])
    unit = np.log(0.1 / TOY.values(dupre.shapley).std())  # the entropy of a normal distribution
    assert found.loc["right", "surprise"] == pytest.approx(
        0.5 * np.log(2 * np.pi * np.e) + unit, abs=0.05
    )
    assert found.loc["narrow", "surprise"] > found.loc["right", "surprise"]


def test_a_distribution_of_any_shape_counts():
    truth, values = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.3, 2.0])
    stated = student(4, values, 0.1)
    found = score(Estimate(values, stated), truth)
    assert found["covered"] == pytest.approx(2 / 3)  # 0.3 is beyond 2.78 widths of 0.1
    spread = truth.std()  # exact values surprise nobody
    assert found["surprise"] == pytest.approx(-stated.logpdf(truth)[1] - np.log(spread))


def test_values_known_exactly_are_covered_and_a_wrong_certainty_is_impossible():
    truth = np.array([0.0, 1.0])
    exact = score(Estimate.normal(truth, np.zeros(2)), truth)
    assert exact["covered"] == 1
    assert np.isnan(exact["surprise"])
    assert exact["log_mse"] == pytest.approx(np.log(1e-12))
    wrong = score(Estimate.normal(truth + 0.1, np.zeros(2)), truth)
    assert wrong["covered"] == 0
    assert wrong["surprise"] == np.inf
    assert score(None, truth).keys() == wrong.keys()


def test_nothing_to_compare_is_refused():
    with pytest.raises(dupre.InputError, match="nothing to compare"):
        compare({"one": off_by(1.0)}, [TOY], [15], 1)


def test_what_is_no_estimate_is_refused():
    with pytest.raises(
        dupre.InputError, match=r"'short' must return 4 values, .* got shape \(3,\)"
    ):
        compare({"short": lambda game, budget, seed: np.zeros(3)}, [TOY], ["2n"], 1)


def test_dupre_and_estimators_play_by_the_budget():
    game = game_of(smooth(make_owners(5)))

    def permutation(game, budget, seed):
        return by_estimator(game, budget, seed, estimator=dupre.estimators.permutation)

    def needy(game, budget, seed):
        return by_estimator(game, budget, seed, estimator=dupre.estimators.stratified)

    methods = {"dupre": by_dupre, "permutation": permutation, "needy": needy}
    runs = compare(methods, [game], ["2n"], 2, semivalue=dupre.banzhaf).runs
    best = runs.groupby("method")
    assert (best["asked"].max() <= 10).all()
    assert best["asked"].max()["dupre"] == 10
    assert best["mse"].mean()["dupre"] < best["mse"].mean()["permutation"]
    assert runs.loc[runs["method"] == "needy", "mse"].isna().all()
