"""Quotes: what an owner would be worth who has not joined, and what that costs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import LogisticRegression

import dupre
from dupre import EvaluationError, InputError
from dupre.game.coalitions import all_coalitions, from_names, to_names
from dupre.valuation.sameness import learn_alikeness, likeness
from owners_and_games import additive, counted, make_owners, shuffled_digits, smooth

SIX = make_owners(6)
NEW = SIX.names[2]
REST = SIX.without(NEW)
X_NEW, Y_NEW = SIX.data_of(from_names((NEW,), SIX.names))
QUIET = {"progress": False}


def known_of(game, count=None):
    """The utilities of the coalitions without the newcomer, or of some, the first design among."""
    rows = all_coalitions(REST.n)
    names = [to_names(row, REST.names) for row in rows]
    if count is not None:
        return dupre.value(REST, game.of, budget=count, empty=game.empty, **QUIET).evaluations
    return {one: game.of(one) for one in names}


def asked_of(game):
    """The game as a utility that remembers what it was asked, and knows the newcomer."""
    return counted(lambda members: game.of(members) if members else game.empty)


def quote(game, spend, count=None, **options):
    return dupre.quote(
        REST,
        options.pop("utility", asked_of(game)),
        NEW,
        X_NEW,
        Y_NEW,
        spend=spend,
        known=known_of(game, count),
        empty=game.empty,
        **QUIET,
        **options,
    )


@pytest.mark.parametrize("semivalue", [dupre.shapley, dupre.banzhaf])
@pytest.mark.parametrize("make", [additive, smooth])
def test_with_every_coalition_trained_a_quote_is_exact(make, semivalue):
    game = make(SIX)
    found = quote(game, 2**6, semivalue=semivalue)
    exact = dict(zip(SIX.names, game.values(semivalue), strict=True))
    assert found.value == pytest.approx(exact[NEW], abs=1e-12)
    assert found.interval() == pytest.approx((exact[NEW], exact[NEW]), abs=1e-9)
    for name, row in found.changes.iterrows():
        assert row["after"] == pytest.approx(exact[name], abs=1e-12)
        assert row["change"] == pytest.approx(row["after"] - row["before"], abs=1e-12)
        assert row["low"] == pytest.approx(row["high"], abs=1e-9)
    assert len(found.spent) == 2**5
    frame = found.to_frame()
    assert frame.index[-1] == NEW
    gain = found.utility[1] - found.utility[0]
    if semivalue is dupre.shapley:  # what all gain together is what everybody's value changes by
        assert frame["change"].sum() == pytest.approx(gain, abs=1e-12)


def test_who_would_join_last_is_quoted_what_it_adds():
    game, order = smooth(SIX), dupre.precedence([REST.names[:2], REST.names[2:]])
    found = quote(game, 2**6, semivalue=order)
    assert found.value == pytest.approx(game.of(SIX.names) - game.of(REST.names))
    assert_allclose(found.changes["change"], 0.0, atol=1e-12)  # who came first loses nothing


def test_an_additive_newcomer_changes_nothing_for_the_others():
    changes = quote(additive(SIX), 2**6).changes
    assert_allclose(changes["change"], 0.0, atol=1e-12)


@pytest.mark.parametrize("spend", [0, 1, 3])
def test_a_quote_trains_as_many_coalitions_as_it_may_and_the_newcomer_is_in_each(spend):
    game = smooth(SIX)
    utility = asked_of(game)
    found = quote(game, spend, count=12, utility=utility)
    assert len(utility.asked) == len(found.spent) == spend
    assert {tuple(sorted(one)) for one in utility.asked} == set(found.spent)
    assert all(NEW in members for members in utility.asked)
    assert len(set(utility.asked)) == spend


def test_trainings_of_a_quote_narrow_it():
    game = smooth(SIX)
    widths = [quote(game, spend, count=16).std for spend in (0, 2, 6)]
    assert widths[0] > widths[1] > widths[2]


def test_the_true_value_is_in_most_quotes():
    inside = []
    for seed in range(6):
        game = smooth(SIX, seed)
        true = dict(zip(SIX.names, game.values(), strict=True))[NEW]
        for spend in (0, 3):
            low, high = quote(game, spend, count=16, seed=seed).interval()
            inside.append(low <= true <= high)
    assert np.mean(inside) >= 0.8


def test_a_quote_of_a_valuer_is_that_of_no_training():
    game = smooth(SIX)
    valuer = dupre.Valuer(REST, empty=game.empty)
    for members in valuer.suggest(11):
        valuer.record(members, game.of(members))
    found = valuer.quote(NEW, X_NEW, Y_NEW)
    again = dupre.quote(
        *(REST, asked_of(game), NEW, X_NEW, Y_NEW),
        spend=0,
        known=valuer.evaluations,
        empty=game.empty,
        **QUIET,
    )
    assert_array_equal(found.to_frame(), again.to_frame())
    assert_array_equal(found.before.mean, valuer.values().mean)
    assert "before any training" in str(found)
    assert valuer.owners is REST
    assert valuer.evaluated == 11


X, Y = shuffled_digits()
FOLDS = dupre.Folds(2)


def hospitals(names="ABCD", rows=25):
    parts = {name: (X[i::4][:rows], Y[i::4][:rows] % 2) for i, name in enumerate("ABCD")}
    return dupre.Owners.from_mapping({name: parts[name] for name in names}), parts


def model(owners):
    return dupre.ModelUtility(LogisticRegression(max_iter=200), owners, validation=FOLDS)


def test_a_quote_leaves_the_run_alone_costs_nothing_again_and_counts_when_the_owner_joins(tmp_path):
    owners, parts = hospitals("ABC")
    store, how = tmp_path / "run.sqlite", {"budget": 7, "repeats": 1, **QUIET}
    utility = model(owners)
    before = dupre.value(owners, utility, store=store, **how)
    ask = (owners, utility, "D", *parts["D"])
    found = dupre.quote(*ask, store=store, spend=3, **QUIET)
    assert len(found.spent) == 3
    again = dupre.quote(*ask, store=store, spend=3, **QUIET)
    assert_array_equal(again.to_frame(), found.to_frame())
    assert dupre.quote(*ask, store=store, spend=0, **QUIET).spent == found.spent
    after = dupre.value(owners, utility, store=store, **how)
    assert_array_equal(after.mean, before.mean)
    assert_array_equal(found.before.mean, before.mean)
    joined = owners.with_owner("D", *parts["D"])
    value = dupre.value(joined, utility.with_owners(joined), store=store, **how | {"budget": 10})
    assert value.facts.found == 10
    low, high = found.interval()
    assert low <= value.values["D"] <= high


def test_an_exact_copy_is_known_to_be_worth_what_its_original_then_is():
    owners, parts = hospitals("ABC")
    utility = model(owners)
    known = dupre.value(owners, utility, budget=7, repeats=1, **QUIET).evaluations
    found = dupre.quote(owners, utility, "copy", *parts["A"], spend=0, known=known, **QUIET)
    assert found.value == found.after.values["A"]


ROWS = np.full(4, 30)


def test_a_newcomer_is_like_those_whose_rows_are_like_its():
    apart = np.array([[0, 2, 2, 0], [2, 0, 2, 2], [2, 2, 0, 2], [0, 2, 2, 0.0]])
    found = likeness(apart, ROWS, 3, 1.0)
    assert_array_equal(found[:3], np.eye(4)[:3])
    assert_allclose(found[3], [1, 0, 0, 0], atol=1e-7)  # a copy of the first
    apart[3, :3] = apart[:3, 3] = 50.0
    assert_allclose(likeness(apart, ROWS, 3, 1.0)[3], [0, 0, 0, 1], atol=1e-9)  # like nobody
    apart[3, :3] = apart[:3, 3] = 2.0
    weights = likeness(apart, ROWS, 3, 1.0)[3]
    assert_allclose(weights[:3], weights[0])  # equally like all
    near = np.exp(-0.5) * weights[:3].sum()
    assert weights[3] == pytest.approx(np.sqrt(1 - near))
    few = likeness(apart, np.array([10, 30, 30, 10]), 3, 1.0)[3]
    assert few[0] > few[1] == pytest.approx(few[2])  # the first has as few rows


def test_how_far_values_follow_data_is_learned_from_the_values():
    rng = np.random.default_rng(0)
    place = rng.normal(size=40)
    apart, rows = np.abs(place[:, None] - place), np.full(40, 30)
    assert learn_alikeness(np.sin(place), apart, rows) > 0.85
    assert learn_alikeness(rng.normal(size=40), apart, rows) < 0.35
    assert learn_alikeness(np.zeros(40), apart, rows) > 0  # equal values: nothing is undefined
    apart[3, :3] = apart[:3, 3] = 0.0
    alone = likeness(apart[:4, :4], rows[:4], 3, 0.0)
    assert_array_equal(alone, np.eye(4))  # nothing follows: like nobody


def test_what_is_paid_of_an_amount_now_and_then():
    found = quote(smooth(SIX), 2**6)
    paid = found.payments(1000, currency="EUR")
    assert paid["now"].sum() == pytest.approx(1000)
    assert paid["then"].sum() == pytest.approx(1000)
    assert paid.loc[NEW, "now"] == 0
    assert_allclose(paid["change"], paid["then"] - paid["now"])
    shares = found.after.values / found.after.values.sum()
    assert_allclose(paid["then"], 1000 * shares[paid.index], atol=0.011)


def test_a_failed_training_of_a_quote_is_told_and_the_others_are_kept(tmp_path):
    game = smooth(SIX)

    def fails(members):
        if NEW in members and len(members) > 1:
            raise ZeroDivisionError("no luck")
        return game.of(members) if members else game.empty

    fails.fingerprint = "fails"
    store = tmp_path / "run.sqlite"
    dupre.value(REST, fails, budget=11, store=store, **QUIET)
    with pytest.raises(EvaluationError, match="no luck"):
        dupre.quote(REST, fails, NEW, X_NEW, Y_NEW, spend=2, store=store, **QUIET)
    assert dupre.value(REST, fails, budget=11, store=store, **QUIET).facts.found == 11


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": REST.names[0]}, "there is an owner"),
        ({"spend": -1}, "spend"),
        ({"X": X_NEW[:, :1]}, "column"),
        ({"y": Y_NEW[:-1]}, "3"),
        ({"semivalue": dupre.LeastCore()}, "sums of utilities"),
        ({"known": None}, "no utility to learn from"),
    ],
)
def test_bad_input_is_refused_before_anything_is_trained(change, message):
    game = smooth(SIX)
    asked = {"name": NEW, "X": X_NEW, "y": Y_NEW, "spend": 0, "known": known_of(game, 11)} | change
    utility = asked_of(game)
    with pytest.raises(InputError, match=message):
        dupre.quote(REST, utility, empty=game.empty, **QUIET, **asked)
    assert utility.asked == []
