from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

import dupre
from dupre import EvaluationError, InputError, Interrupted, games, valuer
from dupre.coalitions import all_coalitions, from_names, to_names
from dupre.estimators import exact


def make_owners(n, rows=8):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n * rows, 2)) + np.repeat(rng.normal(size=(n, 2)), rows, axis=0)
    names = np.repeat([f"owner{i:02d}" for i in range(n)], rows)
    return dupre.Owners.from_arrays(X, X @ [1.0, -1.0] + rng.normal(size=len(X)), names)


FIVE = make_owners(5)
SIX = make_owners(6)


class Logged:
    """A game as a utility that remembers which non-empty coalitions it was asked for."""

    def __init__(self, owners, table, empty=0.0):
        self.owners, self.empty, self.asked = owners, empty, []
        rows = all_coalitions(owners.n)
        self.table = {to_names(r, owners.names): float(u) for r, u in zip(rows, table, strict=True)}

    def __call__(self, members):
        if not members:
            return self.empty
        self.asked.append(members)
        return self.table[members]


def smooth(owners, seed=0):
    """Diminishing returns, 0.1 without data."""
    worth = np.random.default_rng(seed).uniform(0.1, 1.0, owners.n)
    table = 0.9 - 0.8 * np.exp(-(all_coalitions(owners.n) @ worth))
    return Logged(owners, table, empty=0.1)


def wild(owners, seed=0):
    """No structure at all, with heavy tails."""
    rng = np.random.default_rng(seed)
    return Logged(owners, rng.standard_t(2, size=2**owners.n - 1), empty=rng.normal())


def started(owners=FIVE, budget=13, **options):
    """A valuer past its first design of 2n + 1 coalitions, and its utility."""
    utility = smooth(owners)
    ours = dupre.Valuer(owners, empty=utility.empty, **options)
    ours.run(utility, budget=budget)
    return ours, utility


def assert_same(first, second):
    np.testing.assert_array_equal(first.mean, second.mean)
    np.testing.assert_array_equal(first.covariance, second.covariance)


@pytest.mark.parametrize(
    "semivalue", [dupre.shapley, dupre.banzhaf, dupre.beta_shapley(4, 1)], ids=lambda s: s.name
)
def test_additive_game_is_recovered_from_a_fifth_of_the_coalitions(semivalue):
    worth = np.array([0.5, -0.2, 1.0, 0.0, 0.3, 0.7])
    utility = Logged(SIX, games.additive(worth).utility(all_coalitions(6)))
    valuation = dupre.value(SIX, utility, budget=13, semivalue=semivalue)
    np.testing.assert_allclose(valuation.values, worth, atol=0.005 * np.ptp(worth))
    assert np.all(np.abs(valuation.values - worth) < 4 * valuation.std)


@pytest.mark.parametrize(
    "game", [games.airport([1.0, 4.0, 2.0, 4.0, 3.0]), games.glove(4)], ids=["airport", "glove"]
)
def test_all_coalitions_evaluated_give_the_exact_values(game):
    utility = Logged(FIVE, game.utility(all_coalitions(5)))
    valuation = dupre.value(FIVE, utility, budget=31)
    np.testing.assert_allclose(valuation.values, game.shapley, atol=1e-12)
    assert valuation.exact
    assert np.all(valuation.std == 0)


@pytest.mark.parametrize("n", [2, 6])
def test_leave_one_out_is_exact_after_n_plus_one_evaluations(n):
    utility = wild(make_owners(n))
    valuation = dupre.value(utility.owners, utility, budget=1000, semivalue=dupre.leave_one_out)
    everyone = utility.owners.names
    without = [tuple(x for x in everyone if x != name) for name in everyone]
    expected = [utility.table[everyone] - utility.table[rest] for rest in without]
    np.testing.assert_allclose(valuation.values, expected, atol=1e-12)
    assert valuation.exact
    assert len(utility.asked) == n + 1


@pytest.mark.parametrize("game", [smooth, wild])
@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("budget", ["1", "2", "n", "n + 1", "2**n - 1", "2**n + 9"])
def test_no_more_than_the_budget_and_nothing_twice(game, n, budget):
    number = {"1": 1, "2": 2, "n": n, "n + 1": n + 1, "2**n - 1": 2**n - 1, "2**n + 9": 2**n + 9}
    utility = game(make_owners(n))
    valuation = dupre.value(utility.owners, utility, budget=number[budget])
    expected = min(number[budget], 2**n - 1)
    assert len(utility.asked) == len(set(utility.asked)) == valuation.evaluated == expected
    assert np.all(np.isfinite(valuation.mean))
    assert np.all(np.isfinite(valuation.covariance))
    assert valuation.exact == (expected == 2**n - 1)
    assert np.all(valuation.std > 0) or valuation.exact
    assert str(valuation)


@pytest.mark.parametrize("budget", [1, 5, 11, 17, 24])
@pytest.mark.parametrize("game", [smooth, wild])
def test_shapley_values_add_up_whatever_is_predicted(game, budget):
    utility = game(FIVE)
    valuation = dupre.value(FIVE, utility, budget=budget)
    assert utility.asked[0] == FIVE.names
    added = utility.table[FIVE.names] - utility.empty
    assert valuation.mean.sum() == pytest.approx(added, abs=1e-8)
    assert valuation.efficiency_gap == pytest.approx(0, abs=1e-8)


def test_observed_utilities_enter_as_they_are():
    ours, utility = started(budget=17)
    assert ours.evaluations == {members: utility.table[members] for members in utility.asked}
    assert ours.values().grand == utility.table[FIVE.names]


@pytest.mark.parametrize("singles", [2, 3], ids=["predicted", "exact"])
def test_the_grand_coalition_is_predicted_even_where_it_has_no_weight(singles):
    owners = make_owners(3)
    alone = dupre.Semivalue("alone", lambda c, n: np.where(c == 0, 0.0, -np.inf))
    ours = dupre.Valuer(owners, semivalue=alone)
    for name in owners.names[:singles]:
        ours.record((name,), 0.2)
    ours.record(owners.names[:2], 0.8)
    ours.record(owners.names[1:], 0.8)
    assert ours.values().grand > 0.5


@pytest.mark.parametrize("n", [5, 6])
def test_owners_of_exactly_equal_worth_share_their_ranks(n):
    owners = make_owners(n)
    utility = Logged(owners, games.majority(n).utility(all_coalitions(n)))
    ranks = dupre.value(owners, utility, budget=2**n).rank_range()
    assert np.all(ranks["best"] == 1)
    assert np.all(ranks["worst"] == n)


# The loop.


@pytest.mark.parametrize("budget", [3, 11, 14, 20])
def test_asking_again_without_recording_gives_the_same_answer(budget):
    ours, _ = started(budget=budget)
    first = ours.suggest(4)
    assert len(set(first)) == 4
    assert not set(first) & set(ours.evaluations)
    ours.values()
    assert ours.suggest(4) == first
    assert ours.suggest(2) == first[:2]


def test_looking_at_values_does_not_change_what_follows():
    looked, utility = started()
    unlooked, _ = started()
    for _ in range(3):
        looked.values()
        for ours in (looked, unlooked):
            for members in ours.suggest(3):
                ours.record(members, utility.table[members])
    assert looked.evaluations == unlooked.evaluations
    assert_same(looked.values(), unlooked.values())


def test_the_order_in_which_a_batch_is_recorded_does_not_matter():
    forward, utility = started()
    backward, _ = started()
    for _ in range(2):
        for ours, step in ((forward, 1), (backward, -1)):
            for members in ours.suggest(4)[::step]:
                ours.record(members[::step], utility.table[members])
    assert forward.suggest(5) == backward.suggest(5)
    assert_same(forward.values(), backward.values())


def test_values_depend_on_what_was_recorded_and_not_on_what_was_asked_on_the_way():
    for game_seed in range(4):
        utility = smooth(FIVE, game_seed)
        asked, told = (dupre.Valuer(FIVE, empty=utility.empty) for _ in range(2))
        asked.run(utility, budget=17)
        for members, number in asked.evaluations.items():
            told.record(members, number)
        step = np.abs(asked.values().mean - told.values().mean)
        assert np.all(step < 1e-3 * told.values().std)


def test_ask_and_tell_equals_the_one_call():
    utility = smooth(FIVE)
    at_once = dupre.value(FIVE, utility, budget=24, seed=3, semivalue=dupre.banzhaf)
    ours = dupre.Valuer(FIVE, empty=utility(()), seed=3, semivalue=dupre.banzhaf)
    while left := 24 - len(ours.evaluations):
        for members in ours.suggest(min(5, left)):
            ours.record(members, utility(members))
    assert_same(ours.values(), at_once)


def test_the_same_seed_gives_the_same_result():
    first, second = (dupre.value(FIVE, wild(FIVE), budget=16, seed=7) for _ in range(2))
    assert_same(first, second)
    assert str(first) == str(second)


def test_evaluations_made_elsewhere_count_and_are_not_repeated():
    utility = smooth(FIVE)
    ours = dupre.Valuer(FIVE, empty=utility.empty)
    known = [FIVE.names[:2], FIVE.names[1:4], FIVE.names]
    for members in known:
        ours.record(members, utility.table[members])
    assert ours.run(utility, budget=9).evaluated == 9
    assert len(utility.asked) == 6
    assert not set(utility.asked) & set(known)
    assert ours.run(utility, budget=4).evaluated == 9


def test_nothing_is_suggested_when_nothing_is_left():
    ours, _ = started(make_owners(3), budget=7)
    assert ours.suggest(4) == []


# Focus.


@pytest.mark.parametrize(
    ("focus", "combination"),
    [
        (None, np.eye(5)),
        ("owner03", [[0, 0, 0, 1, 0]]),
        (("owner03",), [[0, 0, 0, 1, 0]]),
        (("owner01", "owner04"), [[0, 1, 0, 0, -1]]),
    ],
    ids=["all", "one", "tuple of one", "pair"],
)
def test_active_batches_reduce_the_variance_of_what_is_in_focus(monkeypatch, focus, combination):
    ours, _ = started(budget=11, focus=focus)
    served = []

    def spy(posterior, candidates, count):
        served.append(posterior)
        return original(posterior, candidates, count)

    original = valuer.design.active_batch
    monkeypatch.setattr(valuer.design, "active_batch", spy)
    pick = from_names(ours.suggest(1)[0], FIVE.names)

    weights, (posterior,) = exact(dupre.shapley, 5), served
    is_open = [to_names(row, FIVE.names) not in ours.evaluations for row in weights.members]
    np.testing.assert_allclose(posterior.W, np.asarray(combination) @ weights.W[:, is_open])
    cross = posterior.cross(np.arange(len(posterior.inputs)))
    reduction = np.sum(cross**2, axis=1) / (posterior.variance + posterior.gp.noise)
    np.testing.assert_array_equal(pick, posterior.inputs.members[np.argmax(reduction)])


def test_focus_serves_its_owner_or_pair_better_than_no_focus():
    i, j = 3, 4

    def variances(focus):
        """Of owner i and of the difference of i and j, summed over two games."""
        covariance = 0
        for game_seed in range(2):
            utility = smooth(FIVE, game_seed)
            ours = dupre.Valuer(FIVE, empty=utility.empty, focus=focus)
            covariance = covariance + ours.run(utility, budget=18).covariance
        pair = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
        return covariance[i, i], pair

    alone, pair = variances(None)
    assert variances(FIVE.names[i])[0] < alone
    assert variances((FIVE.names[i], FIVE.names[j]))[1] < pair


@pytest.mark.parametrize(
    "focus",
    [
        "nobody",
        (),
        ("owner00", "owner00"),
        ("owner00", "owner01", "owner02"),
        ("owner00", "nobody"),
        ("owner00", 3),
        3,
    ],
)
def test_focus_on_anything_but_one_or_two_owners_is_refused(focus):
    with pytest.raises(InputError, match="focus must be one owner or a pair"):
        dupre.Valuer(FIVE, focus=focus)


# Arguments.


@pytest.mark.parametrize(
    ("members", "utility", "message"),
    [
        (("nobody",), 0.5, "unknown owner 'nobody'"),
        (("owner00", "owner00"), 0.5, "twice"),
        ((), 0.5, "empty"),
        ("owner00", 0.5, "tuple of owner names"),
        (("owner00",), float("nan"), "finite number"),
        (("owner00",), float("-inf"), "finite number"),
        (("owner00",), None, "finite number"),
        (("owner00",), "high", "finite number"),
        (("owner00",), [0.5], "finite number"),
        (("owner00",), "0.7", "finite number"),
        (("owner00",), 10**400, "finite number"),
    ],
    ids=lambda x: repr(x)[:20],
)
def test_what_cannot_be_recorded_is_refused_and_changes_nothing(members, utility, message):
    ours = dupre.Valuer(FIVE)
    ours.record(FIVE.names, 0.9)
    with pytest.raises(InputError, match=message):
        ours.record(members, utility)
    assert ours.evaluations == {FIVE.names: 0.9}


def test_a_coalition_has_one_utility():
    ours = dupre.Valuer(FIVE)
    ours.record(("owner01", "owner00"), 0.5)
    ours.record(("owner00", "owner01"), np.float64(0.5))
    with pytest.raises(InputError, match=r"already has the utility .*0\.5.*0\.6"):
        ours.record(("owner00", "owner01"), 0.6)
    assert ours.evaluations == {("owner00", "owner01"): 0.5}


def test_a_second_utility_is_refused_with_the_first_as_a_plain_number():
    ours = dupre.Valuer(FIVE)
    ours.record(("owner00",), 0.5)
    with pytest.raises(InputError) as caught:
        ours.record(("owner00",), 0.6)
    assert "already has the utility 0.5, got 0.6" in str(caught.value)


def test_the_first_design_is_as_long_as_asked(monkeypatch):
    monkeypatch.setattr(valuer.design, "active_batch", lambda *_: pytest.fail("too early"))
    for first, length in ((3, 3), (7, 7), (None, 11)):
        ours = dupre.Valuer(FIVE, first=first)
        for k in range(length):
            (members,) = ours.suggest(1)
            ours.record(members, float(k))
        with pytest.raises(pytest.fail.Exception, match="too early"):
            ours.suggest(1)


@pytest.mark.parametrize("first", [0, -1, 2.5])
def test_a_first_design_that_is_no_positive_whole_number_is_refused(first):
    with pytest.raises(InputError, match="first"):
        dupre.Valuer(FIVE, first=first).suggest(1)


def test_values_need_at_least_one_utility():
    with pytest.raises(InputError, match="suggest"):
        dupre.Valuer(FIVE).values()


@pytest.mark.parametrize("k", [0, -1])
def test_suggest_refuses_to_suggest_nothing(k):
    with pytest.raises(InputError, match="at least 1"):
        dupre.Valuer(FIVE).suggest(k)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 0}, "budget must be a whole number"),
        ({"budget": -3}, "budget must be a whole number"),
        ({"budget": 1.5}, "budget must be a whole number"),
        ({"budget": "9"}, "budget must be a whole number"),
        ({"budget": None}, "budget must be a whole number"),
        ({"semivalue": "shapley"}, "unknown semivalue 'shapley'"),
        ({"semivalue": dupre.beta_shapley}, "unknown semivalue"),
        ({"semivalue": dupre.Semivalue("mine", lambda c, n: 0 * c)}, "'mine'.*sum to"),
        ({"focus": "nobody"}, "focus must be one owner"),
        ({"seed": None}, "seed"),
    ],
    ids=str,
)
def test_bad_arguments_are_refused_before_anything_is_evaluated(options, message):
    utility = smooth(FIVE)
    with pytest.raises(InputError, match=message):
        dupre.value(FIVE, utility, **({"budget": 5} | options))
    assert utility.asked == []


@pytest.mark.parametrize(
    "entry",
    [
        dupre.Valuer,
        lambda owners: dupre.value(owners, len, budget=3),
    ],
    ids=["Valuer", "value"],
)
def test_what_is_no_owners_is_refused(entry):
    with pytest.raises(InputError, match=r"dupre\.Owners"):
        entry({"a": [1]})


def test_what_is_no_utility_is_refused():
    with pytest.raises(InputError, match="callable"):
        dupre.value(FIVE, 0.5, budget=3)
    with pytest.raises(InputError, match="empty coalition must be a finite number"):
        dupre.Valuer(FIVE, empty=float("nan"))


def test_too_many_owners_are_refused_with_the_limit_and_a_way_out():
    with pytest.raises(InputError, match=r"17 owners .* at most 16 .* merge"):
        dupre.Valuer(make_owners(17, rows=2))


# Failures of the utility.


def failing(utility, at, how):
    """The utility, but `how()` in place of its answer number `at`."""

    def asked(members):
        if members and len(utility.asked) == at:
            return how()
        return utility(members)

    return asked


def raise_(error):
    raise error


FAILURES = {
    "raises": (lambda: raise_(KeyError("missing column")), KeyError, "missing column"),
    "nan": (lambda: float("nan"), InputError, "nan"),
    "None": (lambda: None, InputError, "None"),
    "inf": (lambda: float("inf"), InputError, "inf"),
    "text": (lambda: "good", InputError, "good"),
}


@pytest.mark.parametrize("at", [0, 7, 13], ids=["first", "design", "active"])
@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_evaluation_is_named_and_all_earlier_ones_are_kept(name, at):
    how, cause, shown = FAILURES[name]
    utility = smooth(FIVE)
    with pytest.raises(EvaluationError, match=shown) as caught:
        dupre.value(FIVE, failing(utility, at, how), budget=16)
    error = caught.value
    assert isinstance(error.__cause__, cause)
    assert "{" + ", ".join(error.members) + "}" in str(error)
    assert error.members not in utility.asked
    assert error.valuer.evaluations == {m: utility.table[m] for m in utility.asked}
    assert len(utility.asked) == at

    valuation = error.valuer.run(utility, budget=16)
    assert valuation.evaluated == 16
    assert len(utility.asked) == len(set(utility.asked)) == 16


def test_ctrl_c_keeps_everything_evaluated():
    utility = smooth(FIVE)
    with pytest.raises(Interrupted) as caught:
        dupre.value(FIVE, failing(utility, 8, lambda: raise_(KeyboardInterrupt)), budget=16)
    assert isinstance(caught.value, KeyboardInterrupt)
    assert set(caught.value.valuer.evaluations) == set(utility.asked)
    assert len(utility.asked) == 8
    assert caught.value.valuer.run(utility, budget=16).evaluated == 16
    assert len(utility.asked) == len(set(utility.asked))


def test_ctrl_c_between_evaluations_keeps_everything_evaluated(monkeypatch):
    utility = smooth(FIVE)
    monkeypatch.setattr(valuer.predictor, "learn", lambda *_, **__: raise_(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt) as caught:
        dupre.value(FIVE, utility, budget=16)
    assert isinstance(caught.value, Interrupted)
    assert set(caught.value.valuer.evaluations) == set(utility.asked) != set()


@pytest.mark.parametrize("name", FAILURES)
def test_failing_without_data_is_named_before_anything_is_evaluated(name):
    how, cause, shown = FAILURES[name]
    utility = smooth(FIVE)
    with pytest.raises(EvaluationError, match=rf"utility\(\(\)\).*{shown}") as caught:
        dupre.value(FIVE, lambda members: utility(members) if members else how(), budget=3)
    assert isinstance(caught.value.__cause__, cause)
    assert caught.value.members == ()
    assert utility.asked == []


def test_warnings_are_counted_once_per_evaluation_and_none_escapes():
    utility = smooth(FIVE)

    def noisy(members):
        for _ in range(3):
            warnings.warn("did not converge\nsee the manual", RuntimeWarning, stacklevel=1)
        if len(members) == 1:
            warnings.warn("too few rows", UserWarning, stacklevel=1)
        return utility(members)

    with warnings.catch_warnings(record=True) as escaped:
        warnings.simplefilter("always")
        valuation = dupre.value(FIVE, noisy, budget=12)
    assert escaped == []
    single = sum(len(members) == 1 for members in utility.asked)
    assert valuation.warnings == {
        "RuntimeWarning: did not converge": 12,
        "UserWarning: too few rows": single,
    }
    assert "Warning in 12 of 12 evaluations: RuntimeWarning: did not converge" in str(valuation)


# A real game.


@pytest.fixture(scope="module")
def digits():
    """Every coalition of five owners of digits trained once; d's labels are wrong."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    train, validation = order[:200], order[200:700]
    owner = np.array(list("abcdeee"))[np.minimum(np.arange(200) // 30, 6)]
    target = y[train].copy()
    target[owner == "d"] = 9 - target[owner == "d"]
    owners = dupre.Owners.from_arrays(X[train] / 16, target, owner)
    model = GaussianNB(var_smoothing=0.02)
    utility = dupre.ModelUtility(model, owners, validation=(X[validation] / 16, y[validation]))
    table = [utility(to_names(row, owners.names)) for row in all_coalitions(5)]
    return Logged(owners, table, empty=utility(()))


def test_half_the_trainings_of_a_real_game_are_close_to_all_of_them(digits):
    covered = []
    for semivalue in (dupre.shapley, dupre.banzhaf):
        truth = dupre.value(digits.owners, digits, budget=31, semivalue=semivalue)
        assert truth.exact
        for seed in range(3):
            ours = dupre.value(digits.owners, digits, budget=15, semivalue=semivalue, seed=seed)
            assert np.abs(ours.mean - truth.mean).max() < 0.15 * np.ptp(truth.mean)
            bounds = ours.interval(0.95)
            covered += list((bounds["low"] <= truth.mean) & (truth.mean <= bounds["high"]))
    assert np.mean(covered) >= 0.75


def test_the_wrongly_labelled_owner_of_a_real_game_comes_last(digits):
    valuation = dupre.value(digits.owners, digits, budget=15)
    assert valuation.values.idxmin() == "d"
    assert valuation.rank_range().loc["d"].tolist() == [5, 5]


def test_a_valuer_and_its_errors_survive_pickling():
    asking = dupre.Valuer(FIVE)
    asking.run(smooth(FIVE), budget=14)
    again = pickle.loads(pickle.dumps(asking))
    np.testing.assert_array_equal(again.values().mean, asking.values().mean)
    error = pickle.loads(pickle.dumps(EvaluationError("why", ("a",), asking)))
    assert (str(error), error.members) == ("why", ("a",))
    assert error.valuer.evaluations == asking.evaluations


def test_ctrl_c_is_not_swallowed_by_except_exception():
    assert not issubclass(Interrupted, Exception)


def test_recording_what_another_valuer_knows_gives_the_same_values():
    first = dupre.Valuer(FIVE, empty=0.25)
    expected = first.run(smooth(FIVE), budget=16)
    replay = dupre.Valuer(FIVE, empty=0.25)
    for members, utility in reversed(first.evaluations.items()):
        replay.record(members, utility)
    np.testing.assert_array_equal(replay.values().mean, expected.mean)
    np.testing.assert_array_equal(replay.values().covariance, expected.covariance)


def test_integer_owner_labels_may_be_used_where_names_are():
    owners = dupre.Owners.from_arrays(np.eye(6), [0, 1] * 3, [10, 10, 20, 20, 30, 30])
    asking = dupre.Valuer(owners, focus=(10, 20))
    asking.record((20, 10), 0.5)
    assert asking.evaluations == {("10", "20"): 0.5}


def test_a_utility_built_on_other_owners_is_refused_before_anything_is_trained():
    X, y = load_digits(return_X_y=True)
    owners, fewer = (
        dupre.Owners.from_arrays(X[:rows], y[:rows], np.arange(rows) % 3) for rows in (300, 200)
    )
    utility = dupre.ModelUtility(LogisticRegression(), fewer, validation=(X[400:], y[400:]))
    with pytest.raises(InputError, match="built on other owners"):
        dupre.value(owners, utility, budget=3)


def test_data_that_hurt_are_pointed_out():
    shown = str(dupre.value(FIVE, lambda members: -float(len(members)), budget=31))
    assert "score worse than none" in shown


def test_intervals_of_a_flat_game_shrink_to_a_fraction_of_its_level():
    half = [
        dupre.value(SIX, lambda members: 0.5, budget=budget).std.max() for budget in (7, 20, 40)
    ]
    assert half[0] > half[1] > half[2]
    assert half[2] < 0.01 * 0.5
