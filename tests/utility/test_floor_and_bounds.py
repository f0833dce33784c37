import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import GaussianNB

import dupre
from dupre.checks import check_empty_within, is_within
from dupre.metrics import find
from dupre.notes import Code, has, select
from dupre.report.page import page
from dupre.training.evaluation import Training, evaluate
from dupre.valuation.state_notes import outside_notes
from owners_and_games import make_owners, smooth, value
from reporting import change

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = X[:, 0] + 0.1 * RNG.normal(size=60)
WILD = dupre.Owners.from_arrays(X[:24], Y[:24], np.arange(24) % 6)
"""Groups of four rows with four columns: a line through them fails on others."""


def utility_of(**options):
    return dupre.ModelUtility(LinearRegression(), WILD, validation=(X[24:], Y[24:]), **options)


def test_names_tell_the_bounds_of_metrics_and_limits_that_cannot_be_are_refused():
    for metric in ("balanced_accuracy", "f1_macro", "roc_auc_ovr"):
        assert find(metric).bounds == (0, 1)
    assert find("matthews_corrcoef").bounds == (-1, 1)
    assert find("r2").bounds == (-np.inf, 1)
    assert find("neg_log_loss").bounds == (-np.inf, 0)
    assert find("mutual_info_score").bounds == (-np.inf, np.inf)
    for options, message in (
        ({"bounds": (1, 0)}, "must be less"),
        ({"bounds": ("0", 1)}, "a bound must be a finite number"),
        ({"bounds": 3}, "two numbers"),
        ({"floor": True}, "floor must be a number"),
        ({"floor": "low"}, "floor must be a finite number"),
    ):
        with pytest.raises(dupre.InputError, match=message):
            utility_of(**options)


def test_a_utility_outside_the_bounds_is_named():
    assert is_within(0.1 + 0.2, (0.0, 0.3))
    check_empty_within(0.5, (0.0, 1.0))
    check_empty_within(-7.0, find("r2").bounds)
    for empty, bounds in ((0.5, (0.9, 1.0)), (2.0, (0.0, 1.0)), (0.1, (-np.inf, 0.0))):
        message = f"no data is {empty:g}, but the bounds of utilities are {bounds[0]:g} and"
        with pytest.raises(dupre.InputError, match=message):
            check_empty_within(empty, bounds)
    assert outside_notes([0.5, 0.6], (0.0, 1.0)) == []
    (told,) = outside_notes([0.5, 0.76, 0.8], (0.0, 0.7))
    assert told.facts == {"outside": 2, "utilities": 3, "bounds": [0.0, 0.7], "first": 0.76}
    assert told.text.startswith("2 of 3 utilities lie outside the bounds 0 and 0.7, such as 0.76.")


def test_r2_is_not_below_that_of_no_data_unless_that_is_asked_for():
    default, plain, other = utility_of(), utility_of(floor=False), utility_of(floor=-0.5)
    low = [name for name in WILD.names if plain((name,)) < -1]
    assert low
    assert default.floor == default((low[0],)) == 0.0
    assert other((low[0],)) == -0.5
    assert min(other((low[0],)).resampled) >= -0.5
    kept = evaluate(default, Training((low[0],)))
    assert kept.utility == plain((low[0],))
    np.testing.assert_array_equal(kept.resampled, plain((low[0],)).resampled)
    assert utility_of(metric="neg_mean_squared_error").floor is None
    assert default.bounds == (0.0, 1.0)


def test_a_floor_is_applied_to_what_was_stored_without_it(tmp_path):
    store = tmp_path / "run.sqlite"
    wild = value(WILD, utility_of(floor=False), budget=16, store=store)
    calm = value(WILD, utility_of(), budget=16, store=store)
    assert calm.facts.floored > 0
    assert f"0, the score of no data, count as that: {calm.facts.floored} of 16" in calm.explain()
    assert wild.facts.floor is None
    assert calm.values.min() > wild.values.min()
    assert calm.facts.evidence.coalitions["utility"].min() == 0
    assert calm.facts.evidence.coalitions["predicted"].between(0, 1).all()
    again = dupre.Valuation.from_json(calm.to_json())
    assert (again.facts.floor, again.facts.floored) == (0.0, calm.facts.floored)
    note = f"Utilities below 0, the score of no data, count as that: {calm.facts.floored} of 16"
    assert page([calm]).count(note) == 1
    low = change(calm, floored=16)
    assert "no group scores above the floor" in low.explain()
    assert "all data together" not in calm.explain()
    for semivalue in ("shapley", "least-core"):
        valuer = dupre.Valuer(make_owners(3), empty=0.0, floor=0.0, semivalue=semivalue)
        valuer.record(valuer.owners.names, -7)
        assert (
            "all data together score -7, below the floor, and count as 0"
            in valuer.values().explain()
        )


def test_what_was_scored_below_a_floor_goes_out_and_comes_back_as_it_was(tmp_path):
    plain, floored = utility_of(floor=False), utility_of()
    every = [(name,) for name in WILD.names]
    scored = {names: (plain(names),) for names in every}
    assert 0 < sum(score < 0 for (score,) in scored.values()) < 6
    first = dupre.Valuer(WILD, empty=0.0, floor=0.0, by_content=True)
    second = dupre.Valuer(WILD, empty=0.0, floor=0.0, by_content=True)
    third = dupre.Valuer(WILD, empty=0.0, floor=0.0, by_content=True)
    for names in every:
        first.record(names, plain(names))
        third.record(names, floored(names))  # raised already
    assert first.trainings == third.trainings == scored
    for names, several in first.trainings.items():
        second.record(names, several)
        np.testing.assert_array_equal(several[0].resampled, plain(names).resampled)
    one, two, three = (valuer.values() for valuer in (first, second, third))
    assert (
        one.facts.floored
        == two.facts.floored
        == three.facts.floored
        == sum(s < 0 for (s,) in scored.values())
    )
    assert str(one) == str(two) == str(three)

    store = tmp_path / "run.sqlite"
    value(WILD, floored, budget=6, known=first.trainings, store=store)
    kept = dupre.read_evaluations(store).set_index("coalition")["utility"]
    assert kept.min() == min(score for (score,) in scored.values())
    raised = {names: floored(names) for names in every}
    again = value(WILD, floored, budget=6, known=raised, store=store)
    assert again.facts.floored == one.facts.floored


@pytest.mark.parametrize("semivalue", ["shapley", "least-core"])
def test_predictions_stay_within_the_bounds(semivalue):
    owners = make_owners(5)
    steep = smooth(owners)
    steep.game = lambda C: np.minimum(C.sum(axis=1) / 2, 1.0)
    free = dupre.Valuer(owners, empty=0.0, semivalue=semivalue)
    bound = dupre.Valuer(owners, empty=0.0, semivalue=semivalue, bounds=(0, 1))
    for names, utility in list(steep.table.items())[:12]:
        free.record(names, utility)
        bound.record(names, utility)
    every = list(steep.table)
    assert free.predict(every)["utility"].max() > 1
    found = bound.predict(every)
    assert found[["utility", "low", "high"]].to_numpy().max() <= 1
    assert bound.values().facts.grand <= 1
    bound.record(owners.names, 1.5)  # what is recorded is possible
    assert bound.predict([owners.names])["utility"].item() == 1.5


def test_a_utility_of_ones_own_states_its_limits_and_the_score_of_no_data_is_never_raised():
    owners = make_owners(4)
    game = smooth(owners)
    game.floor, game.bounds = 0.5, (None, 1)
    found = value(owners, game, budget=15)
    assert found.facts.grand == game.of(owners.names)
    assert found.facts.floored > 0
    assert found.facts.empty == 0.5
    classes = dupre.Owners.from_arrays(X, Y > 0, np.arange(60) % 3)
    utility = dupre.ModelUtility(GaussianNB(), classes, validation=(X, Y > 0))
    assert utility.bounds == (0.0, 1.0)

    utility = utility_of()
    assert utility.floor == 0
    with pytest.raises(dupre.InputError, match=r"stated to score -5, but the floor .* is 0"):
        value(WILD, utility, budget=10, empty=-5)
    lower = value(WILD, utility_of(empty=-5), budget=10)
    assert (lower.facts.empty, lower.facts.floor) == (-5, -5)
    assert value(WILD, utility_of(floor=False), budget=10, empty=-5).facts.empty == -5


def test_bounds_that_utilities_contradict_are_refused_or_named(tmp_path):
    owners = make_owners(4)
    game = smooth(owners)  # from 0.1 without data
    classes = dupre.Owners.from_arrays(X, Y > 0, np.arange(60) % 3)
    high, low = (
        dupre.ModelUtility(GaussianNB(), classes, validation=(X, Y > 0), bounds=bounds)
        for bounds in ((0.9, 1), (0, 0.56))
    )
    game.bounds = (0.5, 1)
    for empty in (None, 0.2):
        with pytest.raises(
            dupre.InputError, match=r"no data is 0\.[12], but the bounds .*0\.5 and"
        ):
            value(owners, game, budget=9, empty=empty)
    assert not game.asked
    asked = []
    with pytest.raises(dupre.InputError, match=r"no data is 0\.\d+, but the bounds .*0\.9 and 1"):
        value(classes, high, budget=5, progress=lambda at: asked.append(at.evaluated))
    assert not any(asked)
    (told,) = select(value(classes, low, budget=5).notes, [Code.OUTSIDE_BOUNDS])
    assert told.text.startswith("5 of 5 utilities lie outside the bounds 0 and 0.56, such as ")

    store = tmp_path / "run.sqlite"
    game.bounds = (0, 0.3)
    for semivalue in ("shapley", "least-core"):
        found = value(owners, game, budget=9, store=store, semivalue=semivalue)
        (told,) = select(found.notes, [Code.OUTSIDE_BOUNDS])
        assert told.facts["bounds"] == [0.0, 0.3]
    game.bounds = (0.2, 1)  # a run that has begun goes on
    assert value(owners, game, budget=10, store=store).facts.evaluated == 10
    game.bounds = (0, 1)
    assert not has(value(owners, game, budget=9).notes, Code.OUTSIDE_BOUNDS)


def test_another_utility_of_no_data_among_what_is_known_is_refused_before_a_training():
    classes = dupre.Owners.from_arrays(X, Y > 0, np.arange(60) % 3)
    utility = dupre.ModelUtility(GaussianNB(), classes, validation=(X, Y > 0), empty=0.25)
    asked = []
    with pytest.raises(dupre.InputError, match=r"0\.3 for no data, \(\), but it is 0\.25 .*empty="):
        value(classes, utility, budget=7, known={(): 0.3}, progress=asked.append)
    assert not asked
    assert value(classes, utility, budget=7, known={(): 0.25}).facts.empty == 0.25
    owners = make_owners(3)
    game = smooth(owners)
    assert value(owners, game, budget=7, known={(): 0.3}).facts.empty == 0.3
    with pytest.raises(dupre.InputError, match=r"0\.3 for no data, \(\), but it is 0\.1 "):
        value(owners, game, budget=7, known={(): 0.3}, empty=0.1)
