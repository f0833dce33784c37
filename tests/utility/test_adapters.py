import importlib
import itertools
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import closed_form
import dupre
from dupre import InputError, StoreError
from dupre.game.coalitions import all_coalitions, to_names
from dupre.store.frames import as_frame
from dupre.training.evaluation import Evaluation, Training
from dupre.utility.adapters import as_trainings
from owners_and_games import counted, make_owners, table_of, untouchable

FOUR = make_owners(4)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its games warn that not all of them can be used
    shapiq = pytest.importorskip("shapiq")
    shapiq_games = importlib.import_module("shapiq_games.synthetic")


def game_of(owners, table):
    """A table as a function of boolean rows."""
    return lambda rows: np.array([table[to_names(row, owners.names)] for row in rows])


def test_known_utilities_are_mappings_or_frames_and_their_repeats_count_once():
    frame = pd.DataFrame({"coalition": ['["a"]', '["b"]', '["a"]'], "utility": [0.5, 0.1, 0.5]})
    assert as_trainings(frame) == {("a",): (0.5, 0.5), ("b",): (0.1,)}
    frame = as_frame([Evaluation(Training(("a",)), 0.5), Evaluation(Training(("b",)), 0.25)])
    assert as_trainings(pd.concat([frame, frame])) == as_trainings(frame)
    frame = as_frame([Evaluation(Training(names), 0.5) for names in (("a", "b"), ("b", "a"))])
    frame["utility"] = [0.5, 0.25]
    with pytest.raises(InputError, match=r"\{a, b\}.* 0\.5 and 0\.25"):
        as_trainings(frame)
    assert as_trainings(None) == {}
    assert as_trainings({("a",): 1}) == {("a",): (1.0,)}
    several = as_trainings({("a",): [1, np.float32(0.5)], ("b",): np.array([2.0])})
    assert several == {("a",): (1.0, 0.5), ("b",): (2.0,)}
    for wrong in ([(("a",), 0.5)], "run.csv", 3, pd.Series([0.5])):
        with pytest.raises(InputError, match="mapping"):
            as_trainings(wrong)
    for number in (float("nan"), [0.5, float("inf")], "0.5", None, ["x"]):
        with pytest.raises(InputError, match=r"utility of \{a, b\} must be a finite number"):
            as_trainings({("a", "b"): number})


@pytest.mark.parametrize("approximator", ["KernelSHAP", "SVARM", "PermutationSamplingSV"])
def test_an_approximator_of_shapiq_finds_the_values_of_our_utility(approximator):
    owners = make_owners(5)
    game = closed_form.airport([1.0, 4.0, 2.0, 4.0, 3.0])
    rows = all_coalitions(5)
    names = [to_names(row, owners.names) for row in rows]
    table = dict(zip(names, map(float, game.utility(rows)), strict=True))
    utility = counted(lambda members: table.get(members, 0.0))
    budget = {"KernelSHAP": 2**5, "SVARM": 4000, "PermutationSamplingSV": 4000}[approximator]
    approximate = getattr(shapiq, approximator)(n=5, random_state=0).approximate
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shapiq's own
        found = approximate(budget=budget, game=dupre.to_game(utility, owners))
    values = [found[(i,)] for i in range(5)]
    exact = approximator == "KernelSHAP"
    np.testing.assert_allclose(values, game.shapley, atol=1e-6 if exact else 0.15)
    assert len(utility.asked) == len(set(utility.asked)) <= 2**5


def test_a_model_utility_is_a_game_and_an_exact_computer_of_shapiq_agrees_with_us():
    model = dupre.ModelUtility(LinearRegression(), FOUR, validation=(FOUR.X, FOUR.y))
    game = dupre.to_game(model, FOUR)
    rows = np.vstack([np.zeros((1, 4), dtype=bool), all_coalitions(4)])
    expected = [model(to_names(row, FOUR.names)) for row in rows]
    np.testing.assert_array_equal(game(rows), expected)
    np.testing.assert_array_equal(game(rows[3]), expected[3:4])
    np.testing.assert_array_equal(game(rows.astype(int)), expected)
    assert game(rows[:0]).shape == (0,)
    table = table_of(FOUR)
    computer = shapiq.ExactComputer(dupre.to_game(table.__getitem__, FOUR), n_players=4)
    found = computer("SV")
    ours = dupre.value(FOUR, dupre.from_table(table), budget=15)
    np.testing.assert_allclose([found[(i,)] for i in range(4)], ours.mean, atol=1e-10)


def test_a_game_for_other_owners_or_that_is_none_or_gives_no_number_is_refused():
    game = dupre.to_game(untouchable, FOUR)
    for n in (3, 5):
        with pytest.raises(InputError, match=f"4 owners expected, got {n}"):
            game(np.ones((2, n), dtype=bool))
    game = dupre.to_game(lambda members: float("nan"), FOUR)
    with pytest.raises(InputError, match=r"utility of \{owner00, owner02\} .* nan"):
        game(np.array([[True, False, True, False]]))

    with pytest.raises(InputError, match="5 players, but there are 4 owners"):
        dupre.from_game(shapiq_games.DummyGame(5), FOUR)
    for make in (dupre.from_game, dupre.to_game):
        with pytest.raises(InputError, match="callable"):
            make(3, FOUR)


class Squares(shapiq.Game):
    """A coalition's numbers added and squared; players hold 1, 2, 3, ...: normalised to 0."""

    def __init__(self, n):
        super().__init__(n, normalize=True, normalization_value=5.0)

    def value_function(self, coalitions):
        return 5.0 + (coalitions @ np.arange(1.0, coalitions.shape[1] + 1)) ** 2


def test_games_and_functions_of_boolean_rows_are_valued_exactly():
    game = shapiq_games.DummyGame(4, interaction=(1, 2))
    valuation = dupre.value(FOUR, dupre.from_game(game, FOUR), budget=15)
    np.testing.assert_allclose(valuation.values, [0.25, 0.75, 0.75, 0.25], atol=1e-12)
    assert valuation.exact
    valuation = dupre.value(FOUR, dupre.from_game(Squares(4), FOUR), budget=15)
    worth = np.arange(1.0, 5.0)
    np.testing.assert_allclose(valuation.values, worth * worth.sum(), atol=1e-10)
    assert valuation.facts.empty == 0
    owners = make_owners(3, names=["z", "a", "m"])
    valuation = dupre.value(owners, dupre.from_game(Squares(3), owners), budget=7)
    assert owners.names == ("a", "m", "z")
    assert valuation.values["z"] > valuation.values["m"] > valuation.values["a"]

    utility = dupre.from_game(game_of(FOUR, table_of(FOUR)), FOUR)
    for members, number in table_of(FOUR).items():
        assert utility(members) == number
        assert utility(members[::-1]) == number
    back = dupre.from_game(dupre.to_game(dupre.from_table(table_of(FOUR)), FOUR), FOUR)
    assert all(back(members) == number for members, number in table_of(FOUR).items())


@pytest.mark.parametrize("kind", ["mapping", "repeats", "frame"])
def test_a_table_is_a_utility(kind):
    table = table_of(FOUR)
    known = {
        "mapping": {members[::-1]: number for members, number in table.items()},
        "repeats": {members: [number - 1, number + 1] for members, number in table.items()},
        "frame": pd.DataFrame(
            {"coalition": [json.dumps(members) for members in table], "utility": table.values()}
        ),
    }
    utility = dupre.from_table(known[kind])
    for members in table:
        for order in itertools.islice(itertools.permutations(members), 3):
            assert utility(order) == pytest.approx(table[members], abs=1e-12)


def test_a_table_may_hold_scores_on_resamples():
    cells = ["[0.4, null]", [0.2, 0.4], np.array([0.6, 0.8]), None, np.nan, " "]
    names = ['["a"]', '["b"]', '["b"]', '["c"]', '["d"]', '["e"]']
    columns = {"coalition": names, "utility": 0.5, "repeat": [0, 0, 1, 0, 0, 0]}
    frame = pd.DataFrame(columns).assign(resampled=cells)
    utility = dupre.from_table(frame)
    np.testing.assert_array_equal(utility(("a",)).resampled, [0.4, np.nan])
    np.testing.assert_allclose(utility(("b",)).resampled, [0.4, 0.6])
    assert all(utility((name,)).resampled is None for name in "cde")
    for wrong in ("0.4 0.6", "[0.4]", '["x", 1]', 0.4, [[0.4, 0.6]]):
        frame = pd.DataFrame({"coalition": ['["a"]'], "utility": 0.5, "resampled": [wrong]})
        with pytest.raises(InputError, match=r"resampled of \{a\} must be a JSON list"):
            dupre.from_table(frame)


def test_a_missing_coalition_is_named_and_in_a_run_a_failed_evaluation():
    utility = dupre.from_table({("a",): 0.5})
    with pytest.raises(InputError, match=r"no utility of \{a, b\}"):
        utility(("a", "b"))
    table = table_of(FOUR)
    missing = FOUR.names[:1]
    del table[missing]
    with pytest.raises(dupre.EvaluationError, match=r"no utility of \{owner00\}"):
        dupre.value(FOUR, dupre.from_table(table), budget=15)
    engine = dupre.engines.Local(on_error="skip")
    valuation = dupre.value(FOUR, dupre.from_table(table), budget=15, engine=engine)
    assert list(valuation.facts.failures) == [missing]
    with pytest.raises(InputError, match=r"\{a, b\}"):
        dupre.from_table({("a", "b"): 0.5, ("b", "a"): 0.7})
    with pytest.raises(InputError, match="tuple"):
        dupre.from_table({"ab": 0.5})


MAKERS = {
    "table": dupre.from_table,
    "game": lambda table: dupre.from_game(game_of(FOUR, table), FOUR),
    "utility": lambda table: dupre.from_game(dupre.to_game(dupre.from_table(table), FOUR), FOUR),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_store_tells_one_table_or_game_from_another(tmp_path, make):
    first, second = (make(table_of(FOUR, seed)) for seed in (0, 1))
    for _ in range(2):  # the same is known again
        assert dupre.value(FOUR, first, budget=15, store=tmp_path / "run.sqlite").exact
    assert len(dupre.read_evaluations(tmp_path / "run.sqlite")) == 15
    with pytest.raises(StoreError, match="utility"):
        dupre.value(FOUR, second, budget=15, store=tmp_path / "run.sqlite")
