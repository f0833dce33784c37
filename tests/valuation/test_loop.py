from __future__ import annotations

import json
import os
import pickle
import re
import warnings
import zlib
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.tree import ExtraTreeRegressor

import closed_form
import dupre
from dupre import EvaluationError, InputError, Interrupted, StoreError
from dupre.game.coalitions import all_coalitions, from_names, to_names
from dupre.game.estimators import exact
from dupre.predictor.training_noise import widening
from dupre.result.valuation import half_widths
from dupre.training.engines import Local
from dupre.training.evaluation import evaluate
from dupre.valuation.strategies import Active

pytestmark = pytest.mark.filterwarnings("ignore:on check coalitions:UserWarning")


def make_owners(n, rows=8):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n * rows, 2)) + np.repeat(rng.normal(size=(n, 2)), rows, axis=0)
    names = np.repeat([f"owner{i:02d}" for i in range(n)], rows)
    return dupre.Owners.from_arrays(X, X @ [1.0, -1.0] + rng.normal(size=len(X)), names)


def changed(owners, name):
    """The same owners, one of them with other rows."""
    X = np.array(owners.X)
    X[owners.owner == owners.names.index(name)] += 1.0
    return dupre.Owners.from_arrays(X, owners.y, np.array(owners.names)[owners.owner])


def only(owners, names):
    """Some of the owners."""
    of = np.array(owners.names)[owners.owner]
    kept = np.isin(of, names)
    return dupre.Owners.from_arrays(owners.X[kept], owners.y[kept], of[kept])


THREE, FOUR, FIVE, SIX = (make_owners(n) for n in (3, 4, 5, 6))


class Logged:
    """A table as a utility that remembers what it was asked for and knows it is always the same."""

    fingerprint = "a table"

    def __init__(self, owners, table, empty=0.0):
        rows = all_coalitions(owners.n)
        self.table = {to_names(r, owners.names): float(u) for r, u in zip(rows, table, strict=True)}
        self.empty, self.asked = empty, []

    def __call__(self, members):
        if not members:
            return self.empty
        self.asked.append(members)
        return self.table[members]


def smooth(owners, seed=0):
    """Diminishing returns, 0.1 without data."""
    worth = np.random.default_rng(seed).uniform(0.1, 1.0, owners.n)
    return Logged(owners, 0.9 - 0.8 * np.exp(-(all_coalitions(owners.n) @ worth)), empty=0.1)


def additive(owners, seed=0):
    worth = np.random.default_rng(seed).normal(size=owners.n)
    return Logged(owners, all_coalitions(owners.n) @ worth)


def white(owners, seed=0):
    """No structure at all."""
    return Logged(owners, np.random.default_rng(seed).normal(size=2**owners.n - 1))


class Noisy:
    """An additive game whose trainings are noisy: the noise follows from members and repeat."""

    def __init__(self, owners, sigma, seed=0, noise_seed=0):
        self.worth = dict(
            zip(owners.names, np.random.default_rng(seed).normal(size=owners.n), strict=True)
        )
        self.sigma, self.noise_seed, self.asked = sigma, noise_seed, []

    def training_seed(self, members, repeat=0):
        return zlib.crc32(repr((self.noise_seed, sorted(members), repeat)).encode())

    def __call__(self, members, *, repeat=0):
        if not members:
            return 0.0
        self.asked.append((members, repeat))
        error = np.random.default_rng(self.training_seed(members, repeat)).normal(0, self.sigma)
        return sum(self.worth[name] for name in members) + error


def untouchable(members):
    pytest.fail(f"{members} was evaluated")


untouchable.fingerprint = "a table"


def failing(utility, at, how):
    """The utility, but `how()` in place of its answer number `at`; only the first time."""
    broken = []

    def asked(members):
        if members and len(utility.asked) == at and not broken:
            broken.append(members)
            return how()
        return utility(members)

    asked.fingerprint = utility.fingerprint
    return asked


def raise_(error):
    raise error


def quietly(owners, utility, **options):
    return dupre.value(owners, utility, **({"progress": False} | options))


def assert_same(first, second, *, but=()):
    """The same result to the last digit."""
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.covariance, second.covariance)
    np.testing.assert_array_equal(first.noise, second.noise)
    pd.testing.assert_frame_equal(first.forecast, second.forecast, check_exact=True)
    assert (first.evaluated, first.failures) == (second.evaluated, second.failures)
    if "rounds" not in but:
        pd.testing.assert_frame_equal(first.rounds, second.rounds, check_exact=True)
    if "text" not in but:
        assert str(first) == str(second)


# Arguments.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": None}, "budget=.*or a stop= rule"),
        ({"budget": 0}, "budget must be a whole number of at least 1"),
        ({"budget": -3}, "budget must be a whole number"),
        ({"budget": 1.5}, "budget must be a whole number"),
        ({"budget": "9"}, "budget must be a whole number"),
        ({"budget": True}, "budget must be a whole number"),
        ({"stop": "soon"}, "rule of dupre.stopping such as within"),
        ({"stop": lambda state: True}, "rule of dupre.stopping such as within"),
        ({"stop": dupre.stopping.settled("owner00", "nobody")}, "'nobody'; the owners are owner00"),
        (
            {
                "stop": dupre.stopping.evaluated(3)
                | (dupre.stopping.settled("nobody", "owner00") & dupre.stopping.within(1))
            },
            "'nobody'; the owners are owner00",
        ),
        ({"semivalue": "shaply"}, "did you mean 'shapley'"),
        ({"strategy": Active(focus="nobody")}, "focus names 'nobody'"),
        ({"empty": float("nan")}, "empty must be a finite number"),
        ({"empty": "0"}, "empty must be a finite number"),
        ({"known": [("owner00", 0.5)]}, "known must be a mapping"),
        ({"known": {("nobody",): 0.5}}, "unknown owner 'nobody'"),
        ({"known": {"owner00": 0.5}}, "tuple of owner names"),
        ({"known": {("owner00", "owner00"): 0.5}}, "twice"),
        ({"known": {("owner00",): float("inf")}}, "finite number"),
        ({"known": {("owner00",): []}}, r"utility of \{owner00\}"),
        ({"known": {("owner00",): "0.5"}}, "finite number"),
        (
            {"known": {("owner00", "owner01"): 0.5, ("owner01", "owner00"): 0.6}},
            r"\{owner00, owner01\} has two entries",
        ),
        ({"known": pd.DataFrame({"coalition": ['["owner00"]']})}, "utility is missing"),
        ({"n_jobs": 0}, "n_jobs must be a number of processes"),
        ({"n_jobs": 1.5}, "n_jobs must be a number of processes"),
        ({"n_jobs": None}, "n_jobs must be a number of processes"),
        ({"n_jobs": 2, "engine": Local()}, "not both"),
        ({"engine": "local"}, "engine must be Local"),
        ({"repeats": 0}, "repeats must be a whole number"),
        ({"repeats": 2.0}, "repeats must be a whole number"),
        (
            {"budget": 20, "strategy": Active(check=3)},
            "check must be 0 or a number from 4",
        ),
        (
            {"budget": 11, "strategy": Active(check=6)},
            "at most half of the budget of 11",
        ),
        (
            {"budget": 31, "strategy": Active(check=11)},
            "half of the 20 coalitions outside the first design",
        ),
        ({"progress": "yes"}, "True, False or a callable"),
        ({"progress": 1}, "True, False or a callable"),
        ({"seed": None}, "seed must be a whole number"),
        ({"seed": -1}, "seed must be a whole number"),
    ],
    ids=lambda x: re.sub(r" at 0x\w+", "", str(x))[:60],
)
def test_every_argument_is_checked_before_the_utility_is_called(options, message):
    with pytest.raises(InputError, match=message):
        dupre.value(FIVE, untouchable, **({"budget": 12, "progress": False} | options))


@pytest.mark.parametrize("utility", [None, 0.5, "accuracy"])
def test_what_is_no_utility_is_refused(utility):
    with pytest.raises(InputError, match="callable"):
        dupre.value(FIVE, utility, budget=5)


@pytest.mark.parametrize("owners", [{"a": [1]}, None, FIVE.X])
def test_what_is_no_owners_is_refused(owners):
    with pytest.raises(InputError, match=r"dupre\.Owners"):
        dupre.value(owners, untouchable, budget=5)


def test_a_store_that_cannot_be_made_is_refused_before_the_utility_is_called(tmp_path):
    for store in (tmp_path, tmp_path / "nowhere" / "run.sqlite", ""):
        with pytest.raises(StoreError, match="directory"):
            dupre.value(FIVE, untouchable, budget=5, store=store)


def test_a_store_that_is_no_path_is_refused():
    with pytest.raises((InputError, StoreError), match="store"):
        dupre.value(FIVE, untouchable, budget=5, store=3)


def test_a_model_utility_of_other_owners_is_refused():
    fewer = only(FIVE, FIVE.names[:4])
    utility = dupre.ModelUtility(LinearRegression(), fewer, validation=(FIVE.X, FIVE.y))
    with pytest.raises(InputError, match="built on other owners"):
        dupre.value(FIVE, utility, budget=5)


def test_a_model_utility_of_the_same_owners_with_other_rows_is_refused():
    before = dupre.ModelUtility(LinearRegression(), FIVE, validation=(FIVE.X, FIVE.y))
    with pytest.raises(InputError, match="built on other owners"):
        dupre.value(changed(FIVE, "owner00"), before, budget=5)


def test_a_utility_may_have_an_attribute_called_owners():
    utility = smooth(FIVE)
    utility.owners = list(FIVE.names)
    assert quietly(FIVE, utility, budget=5).evaluated == 5


def test_the_utility_is_given_names_in_the_order_of_the_owners(tmp_path):
    X = np.random.default_rng(0).normal(size=(3, 8, 2))
    names = ("z", "a", "m")
    owners = dupre.Owners.from_mapping(
        {name: (x, x @ [1.0, -1.0]) for name, x in zip(names, X, strict=True)}
    )
    for store in (None, tmp_path / "run.sqlite"):
        utility = smooth(owners)
        quietly(owners, utility, budget=7, store=store)
        assert set(utility.asked) == set(utility.table)
        assert all(type(members) is tuple for members in utility.asked)


# The budget and what counts in it.


@pytest.mark.parametrize("budget", [1, 2, 5, 11, 17, 31, 40])
def test_no_more_than_the_budget_and_nothing_twice(budget):
    utility = smooth(FIVE)
    valuation = quietly(FIVE, utility, budget=budget)
    assert len(utility.asked) == len(set(utility.asked)) == valuation.evaluated == min(budget, 31)
    assert len(valuation.evaluations) == valuation.evaluated
    assert valuation.exact == (budget >= 31)


def test_all_coalitions_give_the_exact_values():
    game = closed_form.airport([1.0, 4.0, 2.0, 4.0, 3.0])
    utility = Logged(FIVE, game.utility(all_coalitions(5)))
    valuation = quietly(FIVE, utility, budget=31)
    np.testing.assert_allclose(valuation.values, game.shapley, atol=1e-12)
    assert np.all(valuation.std == 0)


def frame_of(table):
    return pd.DataFrame(
        {"coalition": [json.dumps(members) for members in table], "utility": list(table.values())}
    )


@pytest.mark.parametrize(
    "kind",
    [dict, lambda t: {m[::-1]: [u] for m, u in t.items()}, frame_of],
    ids=["mapping", "lists", "frame"],
)
def test_what_is_known_counts_and_is_not_evaluated_again(kind):
    utility = smooth(FIVE)
    table = {m: utility.table[m] for m in list(utility.table)[3:20:2]}
    valuation = quietly(FIVE, utility, budget=16, known=kind(table))
    assert not set(utility.asked) & set(table)
    assert len(utility.asked) == 16 - len(table)
    assert valuation.evaluated == 16
    assert_same(valuation, quietly(FIVE, smooth(FIVE), budget=16, known=table))


def test_known_may_hold_repeats_whose_mean_and_spread_count():
    table = {m: [u - 0.1, u + 0.1] for m, u in smooth(THREE).table.items()}
    valuation = quietly(THREE, untouchable, budget=7, empty=0.1, known=table)
    W = exact(dupre.shapley, 3).W
    np.testing.assert_allclose(valuation.noise, widening(7) * 0.01 * W @ W.T)
    plain = quietly(THREE, smooth(THREE), budget=7)
    np.testing.assert_allclose(valuation.mean, plain.mean, atol=1e-12)


def test_known_is_kept_in_the_store(tmp_path):
    table = smooth(FIVE).table
    known = {members: table[members] for members in list(table)[:6]}
    first = quietly(FIVE, smooth(FIVE), budget=12, known=known, store=tmp_path / "run.sqlite")
    utility = smooth(FIVE)
    again = quietly(FIVE, utility, budget=12, store=tmp_path / "run.sqlite")
    assert utility.asked == []
    assert_same(first, again)


def test_known_may_name_owners_by_their_labels():
    owners = dupre.Owners.from_arrays(np.eye(6), [0, 1] * 3, [10, 10, 20, 20, 30, 30])
    valuation = quietly(
        owners, lambda members: float(len(members)), budget=7, known={(20, 10): 2.0}
    )
    np.testing.assert_allclose(valuation.values, 1.0)


def test_known_that_contradicts_the_store_is_refused(tmp_path):
    quietly(FIVE, smooth(FIVE), budget=12, store=tmp_path / "run.sqlite")
    with pytest.raises(InputError, match=r"7\.0 is given for .*owner04\}, but the store has 0\."):
        quietly(
            FIVE, smooth(FIVE), budget=12, store=tmp_path / "run.sqlite", known={FIVE.names: 7.0}
        )


def test_known_that_contradicts_the_store_is_refused_before_anything_happens(tmp_path):
    path = tmp_path / "run.sqlite"
    utility = smooth(FIVE)
    quietly(FIVE, utility, budget=5, store=path)
    fresh = next(members for members in utility.table if members not in utility.asked)
    with pytest.raises(InputError, match=r"7\.0 is given for"):
        quietly(FIVE, untouchable, budget=12, store=path, known={fresh: 0.3, FIVE.names: 7.0})
    assert len(dupre.read_evaluations(path)) == 5


def test_known_that_agrees_with_the_store_is_welcome(tmp_path):
    utility = smooth(FIVE)
    first = quietly(FIVE, utility, budget=12, store=tmp_path / "run.sqlite")
    known = {members: utility.table[members] for members in utility.asked}
    again = quietly(
        FIVE, untouchable, budget=12, empty=0.1, store=tmp_path / "run.sqlite", known=known
    )
    assert_same(first, again)


# The store.


def test_the_same_call_again_evaluates_nothing_and_gives_the_same_result(tmp_path):
    store = tmp_path / "run.sqlite"
    first = quietly(FIVE, smooth(FIVE), budget=17, store=store)
    again = quietly(FIVE, untouchable, budget=17, empty=0.1, store=store)
    assert_same(first, again)
    assert_same(first, quietly(FIVE, smooth(FIVE), budget=17))


@pytest.mark.parametrize("budgets", [(3, 9, 31), (12, 20), (23, 26)])
def test_a_larger_budget_evaluates_only_what_is_missing(tmp_path, budgets):
    asked = []
    for budget in budgets:
        utility = smooth(FIVE)
        valuation = quietly(FIVE, utility, budget=budget, store=tmp_path / "run.sqlite")
        assert valuation.evaluated == budget
        asked += utility.asked
        assert len(asked) == len(set(asked)) == budget


def test_a_smaller_budget_uses_all_there_is(tmp_path):
    first = quietly(FIVE, smooth(FIVE), budget=17, store=tmp_path / "run.sqlite")
    fewer = quietly(FIVE, untouchable, budget=4, empty=0.1, store=tmp_path / "run.sqlite")
    assert fewer.evaluated == 17
    np.testing.assert_array_equal(first.mean, fewer.mean)


@pytest.mark.parametrize(
    "other",
    [
        {"semivalue": dupre.banzhaf},
        {"strategy": Active(focus="owner02")},
        {"seed": 5},
        {"strategy": Active(check=5)},
    ],
    ids=lambda value: str(value).partition(" at 0x")[0],
)
def test_the_store_of_another_run_is_knowledge(tmp_path, other):
    first, second = smooth(FIVE), smooth(FIVE)
    quietly(FIVE, first, budget=13, store=tmp_path / "run.sqlite")
    valuation = quietly(FIVE, second, budget=22, store=tmp_path / "run.sqlite", **other)
    assert not set(first.asked) & set(second.asked)
    assert len(second.asked) == 9
    assert valuation.evaluated == 22
    # and the same as if it had been known
    table = {members: first.table[members] for members in first.asked}
    told = quietly(FIVE, smooth(FIVE), budget=22, known=table, **other)
    assert_same(valuation, told)


def test_two_runs_in_turn_on_one_store_do_not_disturb_each_other(tmp_path):
    results = []
    for budget in (12, 18, 24):
        for seed in (0, 1):
            utility = smooth(FIVE)
            found = quietly(FIVE, utility, budget=budget, seed=seed, store=tmp_path / "run.sqlite")
            results.append((found.evaluated, len(utility.asked)))
    assert results == [(12, 12), (12, 0), (18, 6), (18, 0), (24, 6), (24, 0)]


def test_when_an_owner_changes_only_its_coalitions_are_evaluated_again(tmp_path):
    store = tmp_path / "run.sqlite"
    old, new = white(FOUR, 0), white(FOUR, 1)
    later = changed(FOUR, "owner02")
    before = quietly(FOUR, old, budget=15, store=store)
    after = quietly(later, new, budget=15, store=store)
    assert sorted(new.asked) == sorted(m for m in new.table if "owner02" in m)
    mixed = [new.table[m] if "owner02" in m else old.table[m] for m in old.table]
    np.testing.assert_allclose(after.mean, exact(dupre.shapley, 4).W @ mixed, atol=1e-12)
    # Both are still there.
    back = quietly(FOUR, untouchable, budget=15, empty=0.0, store=store)
    assert_same(before, back, but=["text"])
    assert_same(after, quietly(later, untouchable, budget=15, empty=0.0, store=store))


def test_when_an_owner_joins_or_leaves_what_does_not_hold_it_stays(tmp_path):
    store = tmp_path / "run.sqlite"
    fewer = only(FIVE, FIVE.names[:4])
    table = white(FIVE).table
    first, second, third = white(fewer), white(FIVE), white(make_owners(3))
    first.table = second.table = third.table = table
    quietly(fewer, first, budget=15, store=store)
    quietly(FIVE, second, budget=31, store=store)
    assert sorted(second.asked) == sorted(m for m in table if "owner04" in m)
    left = only(FIVE, ["owner00", "owner03", "owner04"])
    valuation = quietly(left, third, budget=7, store=store)
    assert third.asked == []
    numbers = [table[to_names(row, left.names)] for row in all_coalitions(3)]
    np.testing.assert_allclose(valuation.mean, exact(dupre.shapley, 3).W @ numbers, atol=1e-12)


def test_a_store_of_other_owners_is_refused(tmp_path):
    quietly(FOUR, smooth(FOUR), budget=3, store=tmp_path / "run.sqlite")
    with pytest.raises(StoreError, match="no owner's rows are the same"):
        quietly(make_owners(3, rows=9), smooth(THREE), budget=3, store=tmp_path / "run.sqlite")


def made(worth, power=2):
    """A utility without a fingerprint of its own."""

    def utility(members):
        return sum(worth[name] for name in members) ** power

    return utility


def made_otherwise(worth):
    def utility(members):
        return sum(worth[name] for name in members) ** 2 + 0.0

    utility.__qualname__ = made(worth).__qualname__
    return utility


WORTH = dict(zip(FOUR.names, (0.1, 0.4, 0.2, 0.3), strict=True))


@pytest.mark.parametrize(
    "other",
    [made(WORTH | {"owner01": 0.5}), made(WORTH, power=3), made_otherwise(WORTH)],
    ids=["data", "number", "code"],
)
def test_a_function_whose_code_or_data_changed_is_refused_by_the_store(tmp_path, other):
    first = quietly(FOUR, made(WORTH), budget=5, store=tmp_path / "run.sqlite")
    again = quietly(FOUR, made(dict(WORTH)), budget=5, store=tmp_path / "run.sqlite")
    assert_same(first, again)
    with pytest.raises(StoreError, match=r"run\.sqlite' was made for the utility"):
        quietly(FOUR, other, budget=5, store=tmp_path / "run.sqlite")


def test_a_fingerprint_of_ones_own_decides(tmp_path):
    one, same, other = made(WORTH), made(WORTH, power=3), made(WORTH)
    one.fingerprint = same.fingerprint = "version 1"
    other.fingerprint = "version 2"
    first = quietly(FOUR, one, budget=5, store=tmp_path / "run.sqlite")
    assert_same(first, quietly(FOUR, same, budget=5, store=tmp_path / "run.sqlite"))
    with pytest.raises(StoreError, match="version 1, now version 2"):
        quietly(FOUR, other, budget=5, store=tmp_path / "run.sqlite")


def test_a_function_whose_sameness_cannot_be_told_is_refused_with_the_way_out(tmp_path):
    with (tmp_path / "log.txt").open("w") as log:

        def utility(members):
            log.write(str(members))
            return float(len(members))

        with pytest.raises(InputError, match="fingerprint"):
            quietly(FOUR, utility, budget=5, store=tmp_path / "run.sqlite")
        assert quietly(FOUR, utility, budget=5).evaluated == 5
        utility.fingerprint = "counts members"
        assert quietly(FOUR, utility, budget=5, store=tmp_path / "run.sqlite").evaluated == 5


# Repeated trainings.


@pytest.mark.parametrize("repeats", [1, 3])
def test_every_coalition_is_trained_as_often_as_asked_each_time_with_another_seed(repeats):
    utility = Noisy(FOUR, sigma=0.1)
    valuation = quietly(FOUR, utility, budget=9, repeats=repeats)
    assert len(utility.asked) == len(set(utility.asked)) == 9 * repeats
    assert valuation.evaluated == 9
    frame = valuation.evaluations
    assert frame.groupby("coalition")["repeat"].apply(sorted).tolist() == [list(range(repeats))] * 9
    assert frame["seed"].nunique() == 9 * repeats
    for row in frame.itertuples():
        assert row.seed == utility.training_seed(json.loads(row.coalition), row.repeat)


def test_a_model_is_trained_with_its_seed_of_each_repeat():
    model = dupre.ModelUtility(
        ExtraTreeRegressor(max_depth=2), THREE, validation=(THREE.X, THREE.y)
    )
    valuation = quietly(THREE, model, budget=7, repeats=2)
    for row in valuation.evaluations.itertuples():
        assert row.utility == model(json.loads(row.coalition), repeat=row.repeat)
    assert valuation.noise.any()


def test_a_utility_without_seeds_is_called_again():
    utility = smooth(FOUR)
    valuation = quietly(FOUR, utility, budget=6, repeats=3)
    assert set(Counter(utility.asked).values()) == {3}
    np.testing.assert_allclose(valuation.noise, 0, atol=1e-30)


def test_the_mean_of_repeats_counts_and_their_spread_is_the_noise():
    valuation = quietly(FOUR, Noisy(FOUR, sigma=0.3), budget=15, repeats=4)
    means = np.empty(15)
    for text, group in valuation.evaluations.groupby("coalition"):
        row = from_names(json.loads(text), FOUR.names)
        means[np.all(all_coalitions(4) == row, axis=1)] = group["utility"].mean()
    np.testing.assert_allclose(valuation.mean, exact(dupre.shapley, 4).W @ means, atol=1e-12)
    np.testing.assert_array_equal(valuation.covariance, valuation.noise)
    assert re.search(
        r"100 % is noise of trainings.* 0 % is coalitions not evaluated", str(valuation)
    )


def test_noise_and_what_is_not_evaluated_are_told_apart():
    valuation = quietly(FIVE, Noisy(FIVE, sigma=0.2), budget=14, repeats=3)
    rest = valuation.covariance - valuation.noise
    assert np.linalg.eigvalsh(rest).min() > -1e-10
    assert np.all(np.diag(valuation.noise) > 0)
    part = 100 * np.trace(valuation.noise) / np.trace(valuation.covariance)
    assert f"{part:.0f} % is noise of trainings" in str(valuation)


@pytest.mark.parametrize("repeats", [2, 4])
def test_the_noise_of_exact_values_is_that_of_means_and_covers(repeats):
    sigma, W = 0.5, exact(dupre.shapley, 3).W
    noises, inside = [], []
    for noise_seed in range(24):
        utility = Noisy(THREE, sigma=sigma, noise_seed=noise_seed)
        valuation = quietly(THREE, utility, budget=7, repeats=repeats)
        noises.append(valuation.noise)
        bounds = valuation.interval(0.95)
        truth = np.array(list(utility.worth.values()))
        inside.append((bounds["low"] < truth) & (truth < bounds["high"]))
    expected = widening(7 * (repeats - 1)) * sigma**2 / repeats * W @ W.T
    np.testing.assert_allclose(
        np.mean(noises, axis=0), expected, rtol=0, atol=0.25 * expected.max()
    )
    assert np.mean(inside) > 0.85  # of 72


def test_intervals_of_noisy_and_partly_evaluated_games_hold_the_truth():
    inside = []
    for seed in range(8):
        utility = Noisy(FIVE, sigma=0.3, seed=seed, noise_seed=seed)
        bounds = quietly(FIVE, utility, budget=15, repeats=2).interval(0.95)
        truth = np.array(list(utility.worth.values()))
        inside.append((bounds["low"] < truth) & (truth < bounds["high"]))
    assert np.mean(inside) >= 0.85


def test_raised_repeats_reuse_the_trainings_there_are(tmp_path):
    store = tmp_path / "run.sqlite"
    utility = Noisy(FOUR, sigma=0.3)
    utility.fingerprint = "noisy"
    asked = utility.asked
    quietly(FOUR, utility, budget=15, repeats=1, store=store)
    raised = quietly(FOUR, utility, budget=15, repeats=3, store=store)
    assert len(asked) == len(set(asked)) == 45
    fresh = quietly(FOUR, Noisy(FOUR, sigma=0.3), budget=15, repeats=3)
    np.testing.assert_array_equal(raised.mean, fresh.mean)
    np.testing.assert_array_equal(raised.covariance, fresh.covariance)
    lowered = quietly(FOUR, utility, budget=15, repeats=2, store=store)
    assert len(asked) == 45
    fewer = quietly(FOUR, Noisy(FOUR, sigma=0.3), budget=15, repeats=2)
    np.testing.assert_array_equal(lowered.mean, fewer.mean)


def test_raised_repeats_never_train_twice(tmp_path):
    utility = Noisy(FIVE, sigma=0.3)
    utility.fingerprint = "noisy"
    for repeats in (1, 2, 4):
        found = quietly(FIVE, utility, budget=14, repeats=repeats, store=tmp_path / "run.sqlite")
        assert found.evaluated == 14
    assert len(utility.asked) == len(set(utility.asked))


def test_rounds_of_another_number_of_repeats_are_not_shown(tmp_path):
    store = tmp_path / "run.sqlite"
    utility = Noisy(FIVE, sigma=0.3)
    utility.fingerprint = "noisy"
    quietly(FIVE, utility, budget=14, store=store)
    raised = quietly(FIVE, utility, budget=14, repeats=4, store=store)
    assert raised.rounds["widest"].iloc[-1] == half_widths(raised.covariance).max()


# Failures.


FAILURES = {
    "raises": (lambda: raise_(KeyError("missing column")), KeyError, "missing column"),
    "nan": (lambda: float("nan"), InputError, "nan"),
    "None": (lambda: None, InputError, "None"),
    "text": (lambda: "0.5", InputError, "'0.5'"),
}


@pytest.mark.parametrize("at", [0, 13])
@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_evaluation_is_named_and_the_others_are_kept(name, at):
    how, cause, shown = FAILURES[name]
    utility = smooth(FIVE)
    with pytest.raises(EvaluationError, match=shown) as caught:
        quietly(FIVE, failing(utility, at, how), budget=16)
    error = caught.value
    assert isinstance(error.__cause__, cause)
    assert f"evaluating {{{', '.join(error.members)}}} failed" in str(error)
    assert "known=error.valuer.trainings" in str(error)
    assert error.members not in utility.asked
    assert len(utility.asked) == at
    assert error.valuer.evaluations == {m: utility.table[m] for m in utility.asked}
    mended = quietly(FIVE, utility, budget=16, known=error.valuer.trainings)
    assert mended.evaluated == 16
    assert len(utility.asked) == len(set(utility.asked)) == 16


def test_a_failed_evaluation_is_tried_again_by_the_same_call_on_a_store(tmp_path):
    store = tmp_path / "run.sqlite"
    utility = smooth(FIVE)
    broken = failing(utility, 9, lambda: raise_(OSError("disk")))
    with pytest.raises(EvaluationError, match=r"9 evaluations so far are kept in .*run\.sqlite"):
        quietly(FIVE, broken, budget=16, store=store)
    valuation = quietly(FIVE, broken, budget=16, store=store)
    assert len(utility.asked) == len(set(utility.asked)) == 16
    assert_same(valuation, quietly(FIVE, smooth(FIVE), budget=16))
    assert Counter(valuation.evaluations["attempt"]) == {1: 15, 2: 1}
    kept = dupre.read_evaluations(store)
    assert kept.loc[kept["utility"].isna(), "failure"].tolist() == ["OSError: disk"]


def test_a_skipped_coalition_is_predicted_counted_and_shown(tmp_path):
    utility = smooth(FIVE)
    broken = FIVE.names[:1], FIVE.names[1:3]

    def asked(members):
        return raise_(ValueError("bad luck")) if members in broken else utility(members)

    asked.fingerprint = "skipped"
    store = tmp_path / "run.sqlite"
    valuation = quietly(FIVE, asked, budget=30, store=store, engine=Local(on_error="skip"))
    assert valuation.evaluated == 30
    assert len(utility.asked) == 28
    assert set(valuation.failures) == set(broken)
    assert set(valuation.failures.values()) == {"ValueError: bad luck"}
    assert "Failed: 2 of 30 evaluations, predicted instead: {owner00}" in str(valuation)
    assert not valuation.exact
    # The failures are remembered, until they are asked for again.
    assert_same(
        valuation,
        quietly(FIVE, asked, budget=30, store=store, engine=Local(on_error="skip")),
    )
    assert len(utility.asked) == 28
    with pytest.raises(EvaluationError, match="bad luck"):
        quietly(FIVE, asked, budget=30, store=store)


def test_with_everything_else_known_a_skipped_coalition_ends_the_run():
    utility = smooth(FOUR)
    broken = FOUR.names[:2]

    def asked(members):
        return float("nan") if members == broken else utility(members)

    valuation = quietly(FOUR, asked, budget=100, engine=Local(on_error="skip"))
    assert valuation.stopped == "nothing is left to evaluate"
    assert (valuation.evaluated, list(valuation.failures)) == (15, [broken])
    assert np.all(valuation.std > 0)
    truth = quietly(FOUR, smooth(FOUR), budget=15)
    assert np.all(np.abs(valuation.mean - truth.mean) < 3 * valuation.std)


def test_one_failed_repeat_fails_its_coalition():
    utility = Noisy(FOUR, sigma=0.1)

    class Broken(Noisy):
        def __call__(self, members, *, repeat=0):
            if members == FOUR.names[:2] and repeat == 1:
                raise ValueError("diverged")
            return utility(members, repeat=repeat)

    valuation = quietly(
        FOUR, Broken(FOUR, 0.1), budget=15, repeats=3, engine=Local(on_error="skip")
    )
    assert valuation.failures == {FOUR.names[:2]: "ValueError: diverged"}
    assert valuation.evaluated == 15
    with pytest.raises(EvaluationError, match=r"\{owner00, owner01\} failed: .*diverged") as caught:
        quietly(FOUR, Broken(FOUR, 0.1), budget=15, repeats=3)
    assert FOUR.names[:2] not in caught.value.valuer.evaluations


def test_when_everything_fails_there_is_an_error_even_if_failures_are_skipped(tmp_path):
    def hopeless(members):
        return raise_(ValueError("no model")) if members else 0.0

    with pytest.raises(EvaluationError, match=r"no model; all \d+ evaluations so far failed"):
        quietly(FIVE, hopeless, budget=16, engine=Local(on_error="skip"))


def test_when_everything_has_failed_the_same_call_again_says_so_again(tmp_path):
    def hopeless(members):
        return raise_(ValueError("no model")) if members else 0.0

    for _ in range(4):
        with pytest.raises(EvaluationError, match="no model"):
            quietly(
                THREE,
                hopeless,
                budget=5,
                store=tmp_path / "run.sqlite",
                engine=Local(on_error="skip"),
            )


@pytest.mark.parametrize("name", FAILURES)
def test_failing_without_data_is_named_before_anything_is_evaluated(name):
    how, cause, shown = FAILURES[name]
    utility = smooth(FIVE)
    with pytest.raises(EvaluationError, match=rf"utility\(\(\)\).*{shown}.*empty=") as caught:
        quietly(FIVE, lambda members: utility(members) if members else how(), budget=3)
    assert isinstance(caught.value.__cause__, cause)
    assert caught.value.members == ()
    assert utility.asked == []


def test_with_empty_stated_the_utility_is_never_asked_without_data():
    def utility(members):
        assert members
        return float(len(members))

    valuation = quietly(FIVE, utility, budget=31, empty=-5.0)
    assert valuation.empty == -5.0
    np.testing.assert_allclose(valuation.values, 2.0)


def test_utility_without_data_is_asked_once_and_not_counted():
    asked = []

    def utility(members):
        asked.append(members)
        return float(len(members)) + 1

    valuation = quietly(FIVE, utility, budget=12)
    assert asked.count(()) == 1
    assert len(asked) == 13
    assert (valuation.evaluated, valuation.empty) == (12, 1.0)


# Interruptions.


def boundaries(valuation):
    """Evaluations after which a batch was complete."""
    return [0, *valuation.rounds["evaluated"].tolist()[:-1]]


def test_interrupted_between_batches_the_values_are_the_same_in_the_end():
    expected = quietly(FIVE, smooth(FIVE), budget=22)
    assert len(boundaries(expected)) >= 3
    for at in boundaries(expected):
        utility = smooth(FIVE)
        with pytest.raises(Interrupted, match=r"known=error\.valuer\.trainings") as caught:
            quietly(FIVE, failing(utility, at, lambda: raise_(KeyboardInterrupt)), budget=22)
        assert f"{at} evaluations so far" in str(caught.value)
        assert set(caught.value.valuer.evaluations) == set(utility.asked)
        again = quietly(FIVE, utility, budget=22, known=caught.value.valuer.trainings)
        assert len(utility.asked) == len(set(utility.asked)) == 22
        assert_same(expected, again, but=["rounds"])


@pytest.mark.parametrize("at", [1, 4, 13, 19])
def test_interrupted_anywhere_with_a_store_the_result_is_the_same_in_the_end(tmp_path, at):
    utility = smooth(FIVE)
    broken = failing(utility, at, lambda: raise_(KeyboardInterrupt))
    with pytest.raises(Interrupted, match=r"run\.sqlite': make the same call again"):
        quietly(FIVE, broken, budget=22, store=tmp_path / "run.sqlite")
    assert len(dupre.read_evaluations(tmp_path / "run.sqlite")) == at
    again = quietly(FIVE, broken, budget=22, store=tmp_path / "run.sqlite")
    assert len(utility.asked) == len(set(utility.asked)) == 22
    assert_same(again, quietly(FIVE, smooth(FIVE), budget=22))


def test_an_interrupt_is_not_swallowed_by_except_exception():
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert not issubclass(Interrupted, Exception)


def test_a_callback_that_breaks_loses_nothing_that_is_stored(tmp_path):
    utility = smooth(FIVE)

    def breaking(progress):
        if progress.evaluated == 7:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dupre.value(FIVE, utility, budget=16, store=tmp_path / "run.sqlite", progress=breaking)
    assert len(utility.asked) == 7
    again = quietly(FIVE, utility, budget=16, store=tmp_path / "run.sqlite")
    assert len(utility.asked) == len(set(utility.asked)) == 16
    assert_same(again, quietly(FIVE, smooth(FIVE), budget=16))


def test_a_callback_may_interrupt():
    def enough(progress):
        if progress.evaluated == 6:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        dupre.value(FIVE, smooth(FIVE), budget=16, progress=enough)
    assert len(caught.value.valuer.evaluations) == 6


def test_errors_survive_pickling():
    with pytest.raises(EvaluationError) as caught:
        quietly(FIVE, failing(smooth(FIVE), 9, lambda: float("nan")), budget=16)
    failed = caught.value
    with pytest.raises(Interrupted) as interrupted:
        quietly(FIVE, failing(smooth(FIVE), 9, lambda: raise_(KeyboardInterrupt)), budget=16)
    stored = StoreError("full", valuer=failed.valuer)
    for error in (failed, interrupted.value, stored, StoreError("full"), InputError("no")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert getattr(again, "members", None) == getattr(error, "members", None)
        if valuer := getattr(error, "valuer", None):
            assert again.valuer.trainings == valuer.trainings
            np.testing.assert_array_equal(again.valuer.values().mean, valuer.values().mean)


# Any order of completion.


class Shuffled:
    """Workers that finish a batch in an order of their own."""

    def __init__(self, utility, rng):
        self.utility, self.rng = utility, rng

    def run(self, tasks):
        tasks = list(tasks)
        for index in self.rng.permutation(len(tasks)):
            yield evaluate(self.utility, tasks[index], threads=1)

    def finished_evaluations(self):
        return []

    def close(self):
        pass


def shuffle(monkeypatch, seed):
    monkeypatch.setattr(
        "dupre.valuation.value.hire",
        lambda utility, *_, **__: Shuffled(utility, np.random.default_rng(seed)),
    )


@given(data=st.data())
@settings(max_examples=10, deadline=None)
def test_the_order_in_which_trainings_finish_does_not_matter(data):
    owners = data.draw(st.sampled_from([THREE, FOUR]), label="owners")
    table = data.draw(
        st.lists(
            st.floats(-1, 1, allow_subnormal=False), min_size=2**owners.n, max_size=2**owners.n
        ),
        label="utilities",
    )
    table = [float(f"{number:.6g}") for number in table]
    budget = data.draw(st.integers(1, 2**owners.n), label="budget")
    repeats = data.draw(st.integers(1, 2), label="repeats")
    order = data.draw(st.integers(0, 99), label="order")
    in_order = quietly(owners, Logged(owners, table[1:], table[0]), budget=budget, repeats=repeats)
    with pytest.MonkeyPatch.context() as patch:
        shuffle(patch, order)
        utility = Logged(owners, table[1:], table[0])
        found = quietly(owners, utility, budget=budget, repeats=repeats)
    assert_same(in_order, found)


def test_failures_finish_in_any_order_too(monkeypatch):
    def utility(members):
        return float("nan") if len(members) == 2 else len(members) ** 0.5

    in_order = quietly(FOUR, utility, budget=13, engine=Local(on_error="skip"))
    for seed in range(3):
        shuffle(monkeypatch, seed)
        assert_same(in_order, quietly(FOUR, utility, budget=13, engine=Local(on_error="skip")))


def test_what_is_reported_of_trainings_does_not_depend_on_their_order(monkeypatch):
    def utility(members):
        warnings.warn("one" if len(members) % 2 else "another", UserWarning, stacklevel=1)
        return len(members) ** 0.5

    in_order = quietly(FOUR, utility, budget=13)
    for seed in range(3):
        shuffle(monkeypatch, seed)
        found = quietly(FOUR, utility, budget=13)
        assert found.warnings == in_order.warnings
        assert str(found) == str(in_order)
        assert found.evaluations["coalition"].tolist() == in_order.evaluations["coalition"].tolist()


def test_trainings_that_finish_while_a_run_is_interrupted_are_kept(monkeypatch, tmp_path):
    class Interrupting(Shuffled):
        def run(self, tasks):
            tasks = [task for _, task in zip(range(4), tasks, strict=False)]
            self.done = [evaluate(self.utility, task, threads=1) for task in tasks]
            yield self.done.pop()
            raise KeyboardInterrupt

        def finished_evaluations(self):
            return self.done

    monkeypatch.setattr(
        "dupre.valuation.value.hire", lambda utility, *_, **__: Interrupting(utility, None)
    )
    utility = smooth(FIVE)
    with pytest.raises(Interrupted, match="4 evaluations so far") as caught:
        quietly(FIVE, utility, budget=16, empty=0.1, store=tmp_path / "run.sqlite")
    assert caught.value.valuer.evaluations == {m: utility.table[m] for m in utility.asked}
    assert len(dupre.read_evaluations(tmp_path / "run.sqlite")) == 4


# Warnings.


def warning_of(utility):
    def noisy(members):
        for _ in range(3):
            warnings.warn("did not converge\nsee the manual", RuntimeWarning, stacklevel=1)
        if len(members) == 1:
            warnings.warn("too few rows", UserWarning, stacklevel=1)
        return utility(members)

    noisy.fingerprint = "warns"
    return noisy


def test_warnings_are_summarised_with_their_coalitions_and_none_escapes(tmp_path):
    utility = smooth(FIVE)
    with warnings.catch_warnings(record=True) as escaped:
        warnings.simplefilter("always")
        first = quietly(FIVE, warning_of(utility), budget=12, store=tmp_path / "run.sqlite")
        again = quietly(FIVE, warning_of(utility), budget=12, store=tmp_path / "run.sqlite")
    assert escaped == []
    assert len(utility.asked) == 12
    for valuation in (first, again):
        assert list(valuation.warnings) == [
            "RuntimeWarning: did not converge",
            "UserWarning: too few rows",
        ]
        every, few = map(sorted, map(list, valuation.warnings.values()))
        named = {tuple(sorted(members)) for members in utility.asked}
        assert every == sorted(named)
        assert few == sorted(members for members in named if len(members) == 1)
        assert re.search(
            r"Warning in 12 of 12 evaluations \(.* and 9 more\): RuntimeW", str(valuation)
        )
    assert first.warnings == again.warnings


def test_warnings_of_failed_trainings_count():
    def utility(members):
        warnings.warn("overflow", RuntimeWarning, stacklevel=1)
        return float("nan") if len(members) == 1 else float(len(members))

    valuation = quietly(FOUR, utility, budget=15, engine=Local(on_error="skip"))
    assert len(valuation.failures) == 4
    assert len(valuation.warnings["RuntimeWarning: overflow"]) == 15


def test_without_warnings_none_are_reported():
    valuation = quietly(FIVE, smooth(FIVE), budget=12)
    assert valuation.warnings == {}
    assert "Warning" not in str(valuation)


def test_no_more_warnings_are_reported_than_there_are_evaluations(tmp_path):
    store = tmp_path / "run.sqlite"
    quietly(FIVE, warning_of(smooth(FIVE)), budget=20, store=store)
    valuation = quietly(FIVE, warning_of(smooth(FIVE)), budget=4, repeats=2, store=store)
    assert max(map(len, valuation.warnings.values())) <= valuation.evaluated


# Stop rules.


def test_without_a_rule_the_budget_is_the_reason():
    assert quietly(FIVE, smooth(FIVE), budget=12).stopped == (
        "the budget of 12 evaluations is spent"
    )
    assert quietly(FIVE, smooth(FIVE), budget=31).stopped.startswith("the budget of 31")
    assert quietly(FIVE, smooth(FIVE), budget=50).stopped == "nothing is left to evaluate"


RULES = {
    "within": (dupre.stopping.within(0.08), lambda v: np.all(half_widths(v.covariance) <= 0.08)),
    "loosely within": (dupre.stopping.within(0.1, level=0.6), lambda v: True),
    "settled": (
        dupre.stopping.settled("owner00", "owner04"),
        lambda v: abs(v.probability_greater().loc["owner00", "owner04"] - 0.5) >= 0.45,
    ),
    "ranking": (dupre.stopping.ranking_settled(level=0.6), lambda v: True),
    "evaluated": (dupre.stopping.evaluated(13), lambda v: v.evaluated >= 13),
}


@pytest.mark.parametrize("name", RULES)
def test_a_rule_stops_the_run_and_the_result_says_which(name):
    rule, holds = RULES[name]
    utility = smooth(FIVE)
    valuation = quietly(FIVE, utility, budget=30, stop=rule)
    assert valuation.stopped == rule.text
    assert f"Stopped: {rule.text}." in str(valuation)
    assert holds(valuation)
    assert 11 <= valuation.evaluated == len(utility.asked) < 30


def test_rules_about_values_wait_for_the_first_design():
    valuation = quietly(FIVE, smooth(FIVE), budget=30, stop=dupre.stopping.within(1e6))
    assert valuation.evaluated == 11
    holding = quietly(
        FIVE,
        smooth(FIVE),
        budget=30,
        stop=dupre.stopping.within(1e6),
        strategy=Active(check=5),
    )
    assert holding.evaluated == 16


def test_a_rule_that_never_holds_leaves_it_to_the_budget():
    never = dupre.stopping.within(1e-12) | dupre.stopping.wall_time(1e6)
    assert quietly(FIVE, smooth(FIVE), budget=14, stop=never).stopped.startswith("the budget of 14")


def test_rules_are_combined():
    loose, never = dupre.stopping.within(10), dupre.stopping.within(1e-12)
    many = dupre.stopping.evaluated(18)
    assert quietly(FIVE, smooth(FIVE), budget=30, stop=never | loose).stopped == loose.text
    both = quietly(FIVE, smooth(FIVE), budget=30, stop=loose & many)
    assert both.stopped == f"{loose.text} and {many.text}"
    assert both.evaluated >= 18
    assert quietly(FIVE, smooth(FIVE), budget=20, stop=never & many).stopped.startswith(
        "the budget"
    )


def test_a_rule_that_holds_for_what_is_stored_stops_at_once(tmp_path):
    store = tmp_path / "run.sqlite"
    quietly(FIVE, smooth(FIVE), budget=16, store=store)
    for rule in (
        dupre.stopping.wall_time(1e-9),
        dupre.stopping.evaluated(16),
        dupre.stopping.within(10),
    ):
        valuation = quietly(FIVE, untouchable, empty=0.1, budget=30, stop=rule, store=store)
        assert (valuation.stopped, valuation.evaluated) == (rule.text, 16)


@pytest.mark.parametrize("budget", [None, 31, 40])
@pytest.mark.parametrize(
    "rule", [dupre.stopping.evaluated(12), dupre.stopping.within(10.0)], ids=repr
)
def test_a_rule_stops_early_however_large_the_budget(rule, budget):
    valuation = quietly(FIVE, smooth(FIVE), budget=budget, stop=rule)
    assert valuation.stopped == rule.text
    assert valuation.evaluated < 20


def test_no_time_at_all_is_enough_for_the_first_batch():
    valuation = quietly(FIVE, smooth(FIVE), budget=30, stop=dupre.stopping.wall_time(1e-9))
    assert valuation.stopped == "1e-09 seconds have passed"
    assert 1 <= valuation.evaluated <= 11


# Rounds and forecast.


def test_rounds_say_what_was_known_after_each_batch():
    valuation = quietly(FIVE, smooth(FIVE), budget=24)
    rounds = valuation.rounds
    assert list(rounds.columns) == ["evaluated", "widest"]
    assert rounds["evaluated"].is_monotonic_increasing
    assert rounds["evaluated"].is_unique
    assert rounds["evaluated"].iloc[0] == 11
    assert rounds["evaluated"].iloc[-1] == 24
    assert np.all(rounds["widest"] > 0)
    assert rounds["widest"].iloc[-1] == half_widths(valuation.covariance).max()
    for count, widest in rounds[1:-1].itertuples(index=False):
        stopped = quietly(FIVE, smooth(FIVE), budget=24, stop=dupre.stopping.evaluated(count))
        assert half_widths(stopped.covariance).max() == widest


def test_rounds_with_coalitions_held_out_say_how_well_they_were_predicted(tmp_path):
    store = tmp_path / "run.sqlite"
    valuation = quietly(FIVE, smooth(FIVE), budget=26, store=store, strategy=Active(check=5))
    assert list(valuation.rounds.columns) == [
        "evaluated",
        "widest",
        "error",
        "by_size",
        "coverage",
    ]
    last, check = valuation.rounds.iloc[-1], valuation.check
    known = (check.error, check.by_size, check.coverage)
    assert (last["error"], last["by_size"], last["coverage"]) == known
    assert check.held_out == 5
    assert valuation.rounds["coverage"].between(0, 1).all()
    again = quietly(
        FIVE,
        untouchable,
        empty=0.1,
        budget=26,
        store=store,
        strategy=Active(check=5),
    )
    pd.testing.assert_frame_equal(valuation.rounds, again.rounds, check_exact=True)


def test_rounds_have_their_columns_even_if_there_are_none(tmp_path):
    store = tmp_path / "run.sqlite"
    assert "widest" in quietly(FIVE, smooth(FIVE), budget=1, store=store).rounds.columns


def test_the_result_looks_ahead():
    valuation = quietly(FIVE, smooth(FIVE), budget=16)
    forecast = valuation.forecast
    assert list(forecast.columns) == ["widest", *FIVE.names]
    assert forecast.index.tolist() == list(range(16, 27))
    np.testing.assert_allclose(
        forecast.loc[16, list(FIVE.names)], half_widths(valuation.covariance), rtol=1e-9
    )
    np.testing.assert_array_equal(forecast["widest"], forecast[list(FIVE.names)].max(axis=1))
    assert np.all(np.diff(forecast[list(FIVE.names)], axis=0) <= 1e-9)
    end = f"± {forecast['widest'].iloc[-1]:.2g}"
    (note,) = [line for line in str(valuation).splitlines() if "10 more" in line]
    assert end in note


def test_the_forecast_of_everything_is_certainty():
    forecast = quietly(FIVE, smooth(FIVE), budget=26).forecast
    assert forecast.index.tolist() == list(range(26, 32))
    np.testing.assert_allclose(forecast.loc[31], 0, atol=1e-6)


def test_there_is_nothing_to_forecast_once_everything_is_evaluated():
    assert len(quietly(FIVE, smooth(FIVE), budget=31).forecast) == 0


@pytest.mark.parametrize("game", [additive, smooth])
def test_the_forecast_is_about_what_then_happens(game):
    ratios = []
    for seed in range(2):
        forecast = quietly(FIVE, game(FIVE, seed), budget=18).forecast["widest"]
        then = quietly(FIVE, game(FIVE, seed), budget=21)
        ratios.append(half_widths(then.covariance).max() / forecast.loc[21])
    assert 1 / 3 < np.median(ratios) < 3


# Holding out.


def test_a_predictable_game_passes_its_validation():
    for seed in range(2):
        valuation = quietly(SIX, additive(SIX, seed), budget=36, strategy=Active(check=8))
        assert valuation.check.held_out == 8
        assert valuation.check.r2 > 0.9
        assert not valuation.check.failed
        assert not valuation.sampled
        assert "Predictor on 8 check coalitions" in str(valuation)
        assert "Beware" not in str(valuation) or "score worse" in str(valuation)


@pytest.fixture(scope="module")
def unpredictable():
    """Results of games without structure, and their exact values."""
    found = []
    for seed in range(6):
        utility = white(SIX, seed)
        truth = exact(dupre.shapley, 6).W @ list(utility.table.values())
        found.append(
            (
                quietly(SIX, utility, budget=33, seed=seed, strategy=Active(check=12)),
                truth,
            )
        )
    return found


def test_an_unpredictable_game_is_valued_without_the_predictor(unpredictable):
    failed = [valuation for valuation, _ in unpredictable if valuation.check.failed]
    assert len(failed) >= 3
    for valuation, _ in unpredictable:
        assert valuation.sampled == valuation.check.failed
        beware = "Beware: on check coalitions the predictor is" in str(valuation)
        assert beware == valuation.sampled


def test_values_without_the_predictor_add_up_and_hold_the_truth(unpredictable):
    inside = []
    for valuation, truth in unpredictable:
        assert valuation.efficiency_gap == pytest.approx(0, abs=1e-9)
        if valuation.sampled:
            bounds = valuation.interval(0.95)
            inside.append((bounds["low"] < truth) & (truth < bounds["high"]))
    assert np.mean(inside) >= 0.85


def test_what_is_held_out_is_evaluated_counts_and_stays_within_the_budget():
    utility = smooth(FIVE)
    valuation = quietly(FIVE, utility, budget=20, strategy=Active(check=6))
    assert len(utility.asked) == valuation.evaluated == 20
    whole = smooth(FIVE)
    everything = quietly(FIVE, whole, budget=31, strategy=Active(check=6))
    np.testing.assert_array_equal(everything.mean, quietly(FIVE, smooth(FIVE), budget=31).mean)
    assert everything.exact


def some_sampled(budget, **options):
    """The first result of a game without structure that does not rely on the predictor."""
    for seed in range(20):
        valuation = quietly(
            SIX,
            white(SIX, seed),
            budget=budget,
            seed=seed,
            strategy=Active(check=12),
            **options,
        )
        if valuation.sampled:
            return valuation
    return pytest.fail("the predictor never failed on white noise")


def test_the_forecast_without_the_predictor_ends_where_everything_is_evaluated():
    forecast = some_sampled(58).forecast
    assert forecast.index.max() <= 63


def test_without_the_predictor_noise_of_trainings_is_a_part_of_the_covariance():
    for seed in range(20):
        utility = Noisy(SIX, sigma=30.0, noise_seed=seed)
        valuation = quietly(
            SIX,
            utility,
            budget=40,
            repeats=2,
            seed=seed,
            strategy=Active(check=12),
        )
        if valuation.sampled:
            rest = valuation.covariance - valuation.noise
            assert np.linalg.eigvalsh(rest).min() > -1e-6 * np.trace(valuation.covariance)
            return
    pytest.fail("the predictor never failed on noise")


# Focus.


def test_the_run_ends_where_nothing_is_left_to_gain_for_the_focus():
    pair = "owner01", "owner03"
    utility = white(FIVE)
    valuation = quietly(FIVE, utility, budget=30, strategy=Active(focus=pair))
    assert valuation.stopped == "nothing is left to gain"
    skipped = set(utility.table) - set(utility.asked)
    assert skipped
    assert all(len(set(pair) & set(members)) != 1 for members in skipped)
    i, j = map(FIVE.names.index, pair)
    C = valuation.covariance
    assert C[i, i] + C[j, j] - 2 * C[i, j] == pytest.approx(0, abs=1e-9)
    truth = exact(dupre.shapley, 5).W @ list(utility.table.values())
    difference = valuation.mean[i] - valuation.mean[j]
    assert difference == pytest.approx(truth[i] - truth[j], abs=1e-9)


@pytest.mark.parametrize("n", [2, 5])
def test_leave_one_out_ends_after_n_plus_one_evaluations(n):
    owners = make_owners(n)
    utility = white(owners)
    valuation = quietly(owners, utility, budget=1000, semivalue=dupre.leave_one_out)
    assert len(utility.asked) == valuation.evaluated == n + 1
    assert valuation.exact
    assert valuation.stopped == "nothing is left to evaluate"


# Progress.


def watched(owners, utility, **options):
    seen = []
    return dupre.value(owners, utility, progress=seen.append, **options), seen


def test_a_callback_sees_every_evaluation():
    valuation, seen = watched(FIVE, smooth(FIVE), budget=18)
    done = [progress.evaluated for progress in seen]
    assert done == sorted(done)
    assert set(range(1, 19)) <= set(done)
    assert {progress.budget for progress in seen} == {18}
    assert {progress.failed for progress in seen} == {0}
    seconds = [progress.seconds for progress in seen]
    assert seconds == sorted(seconds)
    for progress in seen:
        assert (progress.remaining is None) == (progress.evaluated == 0)
        # The first design is 2n + 1; nothing is predicted before.
        assert progress.widest is None or progress.evaluated >= 11
        assert progress.widest is not None or progress.evaluated <= 11
    assert seen[-1].evaluated == 18
    assert seen[-1].remaining == 0
    assert seen[-1].widest == half_widths(valuation.covariance).max()


def test_a_callback_is_told_of_what_was_stored_and_of_failures(tmp_path):
    def utility(members):
        return float("nan") if len(members) == 1 else float(len(members))

    store = tmp_path / "run.sqlite"
    _, seen = watched(FIVE, utility, budget=12, store=store, engine=Local(on_error="skip"))
    assert [p.failed for p in seen] == sorted(p.failed for p in seen)
    assert seen[-1].failed == 5
    _, again = watched(FIVE, utility, budget=15, store=store, engine=Local(on_error="skip"))
    assert again[0].evaluated == 12
    assert again[0].remaining is None
    assert again[-1].evaluated == 15


def test_repeats_show_as_time_left_not_as_evaluations():
    _, seen = watched(FOUR, smooth(FOUR), budget=9, repeats=3)
    assert seen[-1].evaluated == 9
    assert {progress.budget for progress in seen} == {9}
    assert sum(progress.remaining is not None for progress in seen) >= 27


@pytest.mark.parametrize(
    "options", [{"budget": 1000}, {"budget": 12, "semivalue": dupre.leave_one_out}], ids=str
)
def test_at_the_end_nothing_is_left_to_do_however_large_the_budget(options):
    _, seen = watched(FOUR, smooth(FOUR), **options)
    assert seen[-1].remaining == 0
    assert seen[-1].evaluated == seen[-1].budget


@pytest.mark.parametrize("progress", [True, lambda progress: None])
def test_watching_does_not_change_the_result(progress, capsys):
    assert_same(
        quietly(FIVE, smooth(FIVE), budget=18),
        dupre.value(FIVE, smooth(FIVE), budget=18, progress=progress),
    )
    assert capsys.readouterr() == ("", "")


# What counts as the same.


def test_evaluations_of_rows_that_changed_are_not_taken_for_known(tmp_path):
    rng = np.random.default_rng(0)
    X, owner = rng.normal(size=(40, 2)), np.arange(40) % 4
    y = X @ [1.0, -1.0]
    before = dupre.Owners.from_arrays(X, y, owner)
    changed = y.copy()
    changed[owner == 0] *= -1
    after = dupre.Owners.from_arrays(X, changed, owner)
    ours = dupre.ModelUtility(LinearRegression(), before, validation=(X, y))
    quietly(before, ours, budget=15, store=tmp_path / "run.sqlite")
    theirs = dupre.ModelUtility(LinearRegression(), after, validation=(X, y))
    known = dupre.read_evaluations(tmp_path / "run.sqlite")
    again = quietly(after, theirs, budget=15, known=known)
    assert again.found == 7  # the coalitions without the owner whose rows changed
    np.testing.assert_allclose(again.mean, quietly(after, theirs, budget=15).mean, rtol=1e-12)


def test_a_subclass_of_a_model_utility_has_a_store_of_its_own(tmp_path):
    class Hundredfold(dupre.ModelUtility):
        def __call__(self, members, *, repeat=0):
            return 100 * super().__call__(members, repeat=repeat)

    validation = (FIVE.X, FIVE.y)
    plain = dupre.ModelUtility(LinearRegression(), FIVE, validation=validation)
    quietly(FIVE, plain, budget=5, store=tmp_path / "run.sqlite")
    other = Hundredfold(LinearRegression(), FIVE, validation=validation)
    with pytest.raises(StoreError, match=r"utility ModelUtility, now .*Hundredfold"):
        quietly(FIVE, other, budget=5, store=tmp_path / "run.sqlite")


def test_a_utility_that_looks_at_its_owners_is_the_same_afterwards(tmp_path):
    def utility(members):
        return float(len(FIVE.data_of(np.isin(FIVE.names, members))[1])) ** 0.5

    first = quietly(FIVE, utility, budget=8, store=tmp_path / "run.sqlite")
    assert_same(first, quietly(FIVE, utility, budget=8, store=tmp_path / "run.sqlite"))


def test_the_utility_of_no_data_is_asked_once_and_kept(tmp_path):
    asked = []
    rng = np.random.default_rng(0)

    def utility(members):
        asked.append(members)
        return len(members) + (0.0 if members else rng.normal())

    utility.fingerprint = "noisy without data"
    store = tmp_path / "run.sqlite"
    first = quietly(FIVE, utility, budget=8, store=store)
    second = quietly(FIVE, utility, budget=8, store=store)
    assert asked.count(()) == 1
    assert first.empty == second.empty
    assert_same(first, second)
    assert "[]" not in set(first.evaluations["coalition"])


@pytest.mark.skipif(os.name != "posix", reason="open files cannot be deleted there")
def test_a_store_that_is_deleted_during_a_run_is_noticed(tmp_path):
    store = tmp_path / "run.sqlite"
    utility = smooth(FIVE)

    def deleting(members):
        if len(utility.asked) == 4:
            store.unlink()
        return utility(members)

    deleting.fingerprint = "deleting"
    with pytest.raises(StoreError, match="moved or deleted") as caught:
        quietly(FIVE, deleting, budget=12, store=store)
    assert len(caught.value.valuer.trainings) == 5


def test_a_larger_batch_keeps_more_workers_busy(monkeypatch):
    sizes = []

    class Counting(Shuffled):
        def run(self, tasks):
            found = list(super().run(tasks))
            sizes.append(len(found))
            yield from found

    monkeypatch.setattr(
        "dupre.valuation.value.hire",
        lambda utility, *_, **__: Counting(utility, np.random.default_rng(0)),
    )
    quietly(FIVE, smooth(FIVE), budget=27, strategy=Active(batch=8))
    assert sizes == [1, 11, 8, 8]


def test_a_guess_says_that_it_is_one():
    few = quietly(FIVE, smooth(FIVE), budget=6)
    assert 5 <= few.first_left <= 10
    line = f"{few.first_left} of the 11 most important coalitions are not evaluated"
    assert line in str(few)
    enough = quietly(FIVE, smooth(FIVE), budget=24)
    assert enough.first_left == 0
    assert "first guess" not in str(enough)


def test_a_predicted_utility_of_all_owners_is_marked():
    utility = smooth(FIVE)

    def failing(members):
        return raise_(ValueError("too large")) if len(members) == 5 else utility(members)

    valuation = quietly(FIVE, failing, budget=20, engine=Local(on_error="skip"))
    assert valuation.grand_predicted
    assert valuation.mean.sum() == pytest.approx(valuation.grand - valuation.empty, abs=1e-9)
    assert "u(all owners) ≈" in str(valuation)
    assert not quietly(FIVE, utility, budget=20).grand_predicted


def test_failing_validation_is_a_warning():
    rng = np.random.default_rng(0)
    table = {names: rng.normal() for names in smooth(FIVE).table}
    utility = dupre.from_table({**table, (): 0.0})
    for seed in range(6):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            valuation = quietly(FIVE, utility, budget=24, seed=seed, strategy=Active(check=6))
        assert bool(caught) == valuation.sampled
