"""The one call: what it refuses, what counts in its budget, what it is told and asks for."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import closed_form
import dupre
import owners_and_games
from dupre import InputError, estimators
from dupre.game.coalitions import all_coalitions, to_names
from dupre.game.estimators import Sample, permutation, regression
from dupre.training.engines import Local
from dupre.valuation.stopping import evaluated, settled, within
from dupre.valuation.strategies import Active, Corrected, Drawn
from owners_and_games import LoggedGame, assert_same, make_owners, smooth, untouchable, value, white

THREE, FOUR, FIVE, SIX = map(make_owners, (3, 4, 5, 6))


# Arguments.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": None}, "state budget=, .* or a stop= rule"),
        ({"budget": 0}, "budget must be a whole number of at least 1"),
        ({"stop": "soon"}, "rule of dupre.stopping such as within"),
        ({"stop": settled("owner00", "nobody")}, "'nobody' in the stop rule; the owners"),
        ({"stop": evaluated(3) | (settled("nobody", "owner00") & within(1))}, "owner 'nobody' in"),
        ({"semivalue": "shaply"}, "did you mean 'shapley'"),
        ({"semivalue": dupre.beta_shapley}, "unknown semivalue"),
        ({"semivalue": dupre.Semivalue("mine", lambda c, n: 0 * c)}, "'mine'.*sum to"),
        ({"semivalue": dupre.LeastCore}, r"unknown semivalue .* or dupre\.LeastCore\(\)"),
        ({"semivalue": dupre.LeastCore(guide=dupre.leave_one_out)}, "leave-one-out leaves some"),
        ({"semivalue": "least-core", "strategy": Corrected()}, "the least core is no sum to corre"),
        ({"strategy": "active"}, "strategy must be Active"),
        ({"strategy": Active(focus="nobody")}, "unknown owner 'nobody' as focus of the strategy"),
        ({"strategy": Active(check=3)}, "check must be 0, or a number from 4"),
        ({"strategy": Active(check=7)}, "check is 7: at most half of the budget of 12"),
        ({"budget": 31, "strategy": Active(check=11)}, "half of the 20 coalitions outside the fir"),
        ({"strategy": Drawn()}, "give estimator="),
        ({"estimator": estimators.exact, "strategy": Drawn()}, "give estimator="),
        ({"estimator": "permutation"}, "estimator must be a function"),
        ({"estimator": Sample(regression, 25)}, "regression needs .* for 5 owners, got 25"),
        ({"estimator": Sample(permutation, 9)}, "permutation needs at least 10 samples"),
        ({"estimator": estimators.group_testing, "semivalue": "banzhaf"}, "for Shapley only"),
        ({"estimator": estimators.maximum_sample_reuse}, "join independently"),
        ({"kernel": "linear"}, "kernel must be a Kernel or a Prior of dupre.kernels"),
        ({"empty": float("nan")}, "empty must be a finite number"),
        ({"known": [("owner00", 0.5)]}, "known must be a mapping"),
        ({"known": {("nobody",): 0.5}}, "unknown owner 'nobody'"),
        ({"known": {"owner00": 0.5}}, "tuple of owner names"),
        ({"known": {("owner00",): []}}, r"utility of \{owner00\}"),
        ({"known": {("owner00", "owner01"): 1, ("owner01", "owner00"): 2}}, "has two entries"),
        ({"known": pd.DataFrame({"coalition": ['["owner00"]']})}, "utility is missing"),
        ({"n_jobs": 0}, "jobs .* must be a whole number"),
        ({"n_jobs": 2, "engine": Local()}, "not both"),
        ({"engine": "local"}, "engine must be Local"),
        ({"repeats": 0}, "repeats must be a whole number"),
        ({"progress": "yes"}, "True, False or a callable"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"store": 3}, "store must be the path of a file"),
    ],
    ids=lambda x: re.sub(r" at 0x\w+", "", str(x))[:60],
)
def test_every_argument_is_checked_before_the_utility_is_called(options, message):
    with pytest.raises(InputError, match=message):
        value(FIVE, untouchable, **{"budget": 12} | options)


def test_a_utility_of_other_owners_or_what_is_none_is_refused():
    for owners in ({"a": [1]}, None, FIVE.X):
        with pytest.raises(InputError, match=r"dupre\.Owners"):
            dupre.value(owners, untouchable, budget=5)
    for utility in (None, 0.5, "accuracy"):
        with pytest.raises(InputError, match="callable"):
            dupre.value(FIVE, utility, budget=5)
    with pytest.raises(InputError, match="131,071 coalitions, for at most 16 owners"):
        dupre.value(make_owners(17), untouchable, budget=70, estimator=estimators.exact)
    with pytest.raises(dupre.StoreError, match="there is no directory"):
        dupre.value(FIVE, untouchable, budget=5, store="nowhere/run.sqlite")

    other = dupre.Owners.from_arrays(FIVE.X + 1.0, FIVE.y, np.array(FIVE.names)[FIVE.owner])
    for owners in (only(FIVE, FIVE.names[:4]), other):
        utility = dupre.ModelUtility(LinearRegression(), owners, validation=(FIVE.X, FIVE.y))
        with pytest.raises(InputError, match="built on other owners"):
            dupre.value(FIVE, utility, budget=5)


def only(owners, names):
    """Some of the owners."""
    of = np.array(owners.names)[owners.owner]
    kept = np.isin(of, names)
    return dupre.Owners.from_arrays(owners.X[kept], owners.y[kept], of[kept])


def test_the_utility_is_given_names_in_the_order_of_the_owners(tmp_path):
    X = np.random.default_rng(0).normal(size=(3, 8, 2))
    data = {name: (x, x @ [1.0, -1.0]) for name, x in zip("zam", X, strict=True)}
    owners = dupre.Owners.from_mapping(data)
    for store in (None, tmp_path / "run.sqlite"):
        utility = smooth(owners)
        value(owners, utility, budget=7, store=store)
        assert set(utility.asked) == set(utility.table)
        assert all(type(members) is tuple for members in utility.asked)
    utility = smooth(owners)  # which may have an attribute called owners
    utility.owners, utility.of = list(owners.names), len
    assert value(owners, utility, budget=5).facts.evaluated == 5


# The budget and what counts in it.


@pytest.mark.parametrize("game", [smooth, white])
@pytest.mark.parametrize(("n", "budget"), [(2, 1), (2, 12), (3, 4), (5, 1), (5, 11), (5, 17)])
def test_no_more_than_the_budget_and_nothing_twice(game, n, budget):
    utility = game(make_owners(n))
    valuation = value(utility.owners, utility, budget=budget)
    expected = min(budget, 2**n - 1)
    assert len(utility.asked) == len(set(utility.asked)) == valuation.facts.evaluated == expected
    assert len(valuation.evaluations) == expected
    assert valuation.exact or utility.asked[0] == utility.owners.names
    assert np.all(np.isfinite(valuation.uncertainty.total))
    assert valuation.exact == (expected == 2**n - 1)
    assert np.all(valuation.std > 0) or valuation.exact
    # Shapley values add up whatever is predicted.
    added = utility.of(utility.owners.names) - utility.empty
    assert valuation.mean.sum() == pytest.approx(added, abs=1e-8)
    assert valuation.efficiency_gap == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("game", [closed_form.airport([1, 4, 2, 4, 3]), closed_form.glove(4)])
def test_all_coalitions_give_the_exact_values(game):
    valuation = value(FIVE, LoggedGame(FIVE, game.utility), budget=31)
    np.testing.assert_allclose(valuation.values, game.shapley, atol=1e-12)
    assert valuation.exact
    assert np.all(valuation.std == 0)


@pytest.mark.parametrize("n", [2, 5])
def test_leave_one_out_is_exact_after_n_plus_one_evaluations(n):
    utility = white(make_owners(n))
    valuation = value(utility.owners, utility, budget=1000, semivalue=dupre.leave_one_out)
    np.testing.assert_allclose(valuation.mean, utility.values(dupre.leave_one_out), atol=1e-12)
    assert valuation.exact
    assert len(utility.asked) == valuation.facts.evaluated == n + 1
    assert valuation.facts.stopped == "nothing is left to evaluate"


# The first 13 for Beta(4, 1) are all owners, each alone and some pairs: what larger coalitions are
# like is told by the active picks after them.
BUDGETS = [(dupre.shapley, 13), (dupre.banzhaf, 13), (dupre.beta_shapley(4, 1), 16)]


@pytest.mark.usefixtures("all_forms")
@pytest.mark.parametrize(("semivalue", "budget"), BUDGETS, ids=str)
def test_additive_game_is_recovered_from_a_quarter_of_the_coalitions(semivalue, budget):
    game = closed_form.additive([0.5, -0.2, 1.0, 0.0, 0.3, 0.7])
    valuation = value(SIX, LoggedGame(SIX, game.utility), budget=budget, semivalue=semivalue)
    error = np.abs(valuation.mean - game.shapley)
    assert np.all(error < 0.005 * np.ptp(game.shapley))
    assert np.all(error < 4 * valuation.std)


def test_equal_owners_share_their_ranks_and_intervals_of_a_flat_game_shrink():
    for n in (5, 6):
        owners = make_owners(n)
        utility = LoggedGame(owners, closed_form.majority(n).utility)
        ranks = value(owners, utility, budget=2**n).rank_range()
        assert np.all(ranks["best"] == 1)
        assert np.all(ranks["worst"] == n)

    half = [value(SIX, lambda members: 0.5, budget=budget).std.max() for budget in (7, 20, 40)]
    assert half[0] > half[1] > half[2]
    assert half[2] < 0.01 * 0.5


# What is known.


def frame_of(table):
    return pd.DataFrame({"coalition": map(json.dumps, table), "utility": list(table.values())})


KINDS = {"mapping": dict, "lists": lambda t: {m[::-1]: [u] for m, u in t.items()}}


@pytest.mark.parametrize("kind", [*KINDS.values(), frame_of], ids=[*KINDS, "frame"])
def test_what_is_known_counts_and_is_not_evaluated_again(kind):
    utility = smooth(FIVE)
    table = dict(list(utility.table.items())[3:20:2])
    valuation = value(FIVE, utility, budget=16, known=kind(table))
    assert not set(utility.asked) & set(table)
    assert len(utility.asked) == 16 - len(table)
    assert valuation.facts.evaluated == 16
    ours = dupre.Valuer(FIVE, empty=0.1)
    for members, number in table.items():
        ours.record(members, number)
    assert_same(valuation, owners_and_games.evaluate(ours, utility, 16))


def test_known_may_hold_repeats_whose_mean_and_spread_count():
    table = {m: [u - 0.1, u + 0.1] for m, u in smooth(THREE).table.items()}
    valuation = value(THREE, untouchable, budget=7, empty=0.1, known=table)
    W = estimators.exact(dupre.shapley, 3).W
    ratio = valuation.uncertainty.noise / (W @ W.T)
    np.testing.assert_allclose(ratio, ratio[0, 0])
    assert ratio[0, 0] > 0.01
    np.testing.assert_allclose(valuation.mean, smooth(THREE).values(), atol=1e-12)


def test_known_is_kept_in_the_store_and_refused_if_it_contradicts_it(tmp_path):
    utility, path = smooth(FIVE), tmp_path / "run.sqlite"
    value(FIVE, utility, budget=5, store=path)
    fresh = next(members for members in utility.table if members not in utility.asked)
    with pytest.raises(InputError, match=r"7\.0 is given for .*owner04\}, but the store has 0\."):
        value(FIVE, utility, budget=12, store=path, known={fresh: 0.3, FIVE.names: 7.0})
    assert len(dupre.read_evaluations(path)) == len(utility.asked) == 5
    known = {members: utility.of(members) for members in utility.asked}
    assert value(FIVE, utility, budget=5, store=path, known=known).facts.evaluated == 5
    assert len(utility.asked) == 5
    known = dict(list(utility.table.items())[:6])
    first = value(FIVE, smooth(FIVE), budget=12, known=known, store=tmp_path / "kept.sqlite")
    again = value(FIVE, untouched := smooth(FIVE), budget=12, store=tmp_path / "kept.sqlite")
    assert untouched.asked == []
    assert_same(first, again)


def test_evaluations_of_rows_that_changed_are_not_taken_for_known(tmp_path):
    rng = np.random.default_rng(0)
    X, owner = rng.normal(size=(40, 2)), np.arange(40) % 4
    y = X @ [1.0, -1.0]
    before = dupre.Owners.from_arrays(X, y, owner)
    after = dupre.Owners.from_arrays(X, np.where(owner == 0, -y, y), owner)
    ours = dupre.ModelUtility(LinearRegression(), before, validation=(X, y))
    value(before, ours, budget=15, store=tmp_path / "run.sqlite")
    theirs = dupre.ModelUtility(LinearRegression(), after, validation=(X, y))
    known = dupre.read_evaluations(tmp_path / "run.sqlite")
    again = value(after, theirs, budget=15, known=known)
    assert again.facts.found == 7  # the coalitions without the owner whose rows changed
    np.testing.assert_allclose(again.mean, value(after, theirs, budget=15).mean, rtol=1e-12)


def test_the_utility_of_no_data_is_asked_once_kept_and_not_counted(tmp_path):
    asked, rng = [], np.random.default_rng(0)

    def utility(members):
        asked.append(members)
        return len(members) + (0.0 if members else rng.normal())

    utility.fingerprint = "noisy without data"
    path = tmp_path / "run.sqlite"
    first, second = (value(FIVE, utility, budget=8, store=path) for _ in range(2))
    assert asked.count(()) == 1
    assert len(asked) == 9
    assert first.facts.evaluated == 8
    assert first.facts.empty == second.facts.empty != 0
    assert_same(first, second)
    assert "[]" not in set(first.evaluations["coalition"])
    stated = value(FIVE, utility, budget=31, empty=-5.0)
    assert asked.count(()) == 1
    np.testing.assert_allclose(stated.values, 2.0)


# A real game, with the predictor as it is.


@pytest.fixture(scope="module")
def digits():
    """Every coalition of five owners of digits trained once; d's labels are wrong."""
    X, y = owners_and_games.shuffled_digits()
    owner = np.array(list("abcdeee"))[np.minimum(np.arange(200) // 30, 6)]
    target = y[:200].copy()
    target[owner == "d"] = 9 - target[owner == "d"]
    owners = dupre.Owners.from_arrays(X[:200] / 16, target, owner)
    model = GaussianNB(var_smoothing=0.02)
    utility = dupre.ModelUtility(model, owners, validation=(X[200:700] / 16, y[200:700]))
    table = [utility(to_names(row, owners.names)) for row in all_coalitions(5)]
    return LoggedGame(owners, table, empty=utility(()))


@pytest.mark.usefixtures("all_forms")
def test_half_the_trainings_of_a_real_game_are_close_to_all_of_them(digits):
    covered = []
    for semivalue in (dupre.shapley, dupre.banzhaf):
        truth = digits.values(semivalue)
        for seed in range(2):
            ours = value(digits.owners, digits, budget=15, semivalue=semivalue, seed=seed)
            assert np.abs(ours.mean - truth).max() < 0.15 * np.ptp(truth)
            covered.append(owners_and_games.holds(ours, truth))
            if semivalue is dupre.shapley:  # the wrongly labelled owner comes last
                assert ours.rank_range().loc["d"].tolist() == [5, 5]
    assert np.mean(covered) >= 0.75


def shops():
    """Six shops with numbers, texts, categories and truth, and validation rows."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"a": rng.normal(size=150), "k": rng.integers(0, 50, 150)})
    frame["t"] = rng.choice(list("xyz"), 150)
    frame["c"] = pd.Categorical(rng.choice(list("uvw"), 150))
    frame["flag"] = rng.random(150) < 0.5
    frame["y"] = frame["a"] + 0.02 * frame["k"] + (frame["t"] == "x") + rng.normal(size=150)
    return frame[:100].assign(shop=np.array(list("ABCDEF"))[np.arange(100) % 6]), frame[100:]


def as_mapping(frame, order):
    parts = {name: frame[frame["shop"] == name].drop(columns="shop") for name in order}
    return dupre.Owners.from_mapping(parts, target="y")


def in_one_frame(frame):
    return dupre.Owners.from_frame(frame, owner="shop", target="y")


def mix(frame):
    """In another order, with another index."""
    return frame.sample(frac=1, random_state=0).set_axis(np.arange(len(frame)) * 3 + 7)


OLDER = {"t": object, "c": pd.CategoricalDtype(list("wqvu"))}
SAME_ROWS = {
    "another order of owners": lambda f, v: (as_mapping(f, "FBDACE"), v),
    "another order of rows": lambda f, v: (in_one_frame(mix(f)), mix(v)),
    "pandas types": lambda f, v: (in_one_frame(f.convert_dtypes()), v.convert_dtypes()),
    "pandas 2, more levels": lambda f, v: (in_one_frame(f.astype(OLDER)), v),
}


@pytest.mark.slow
def test_the_same_rows_have_the_same_picks_and_digits():
    """Whatever the order of owners and rows, the index and what pandas calls their types."""
    levels = (OneHotEncoder(handle_unknown="ignore"), ["t", "c"])
    columns = make_column_transformer(levels, (StandardScaler(), ["a", "k", "flag"]))

    def answer(owners, validation):
        model = make_pipeline(columns, ExtraTreesRegressor(3))  # it has seeds: some train twice
        utility = dupre.ModelUtility(model, owners, validation=validation)
        found = value(owners, utility, budget=17, strategy=Active(batch=4))
        table = found.to_frame().sort_index().select_dtypes("number")
        return {frozenset(json.loads(c)) for c in found.evaluations["coalition"]}, table

    picks, table = answer(as_mapping(shops()[0], "ABCDEF"), shops()[1])
    assert len(picks) == 17
    for name, change in SAME_ROWS.items():
        found = answer(*change(*shops()))
        assert found[0] == picks, name
        pd.testing.assert_frame_equal(found[1], table, rtol=1e-9, atol=1e-12, obj=name)
