from __future__ import annotations

import importlib
import itertools
import json
import subprocess
import sys
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

import closed_form
import dupre
from dupre import InputError, StoreError
from dupre.game.coalitions import all_coalitions, to_names
from dupre.training.engines import Local
from dupre.training.evaluation import Evaluation, Training
from dupre.training.frames import as_frame
from dupre.training.store import Store
from dupre.utility.adapters import as_trainings

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its games warn that not all of them can be used
    shapiq = pytest.importorskip("shapiq")
    shapiq_games = importlib.import_module("shapiq_games.synthetic")

ODD_NAMES = ("b,c", 'say "hi"', "Zürich ⚡ 数", "NA", " 1", "two\nlines", "[]", "'; --")
SUFFIXES = ["csv", "parquet", "pq"]


def make_owners(n=4, names=None, rows=8):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, rows, 2)) + rng.normal(size=(n, 1, 2))
    names = [f"owner{i:02d}" for i in range(n)] if names is None else names
    return dupre.Owners.from_mapping(
        {name: (x, x @ [1.0, -1.0]) for name, x in zip(names, X, strict=True)}
    )


FOUR = make_owners()


def table_of(owners, seed=0):
    """A random utility of every coalition, and 0.25 of none."""
    numbers = np.random.default_rng(seed).normal(size=2**owners.n - 1)
    rows = all_coalitions(owners.n)
    named = {to_names(r, owners.names): float(u) for r, u in zip(rows, numbers, strict=True)}
    return {(): 0.25} | named


def game_of(owners, table):
    """The same as a function of boolean rows."""
    return lambda rows: np.array([table[to_names(row, owners.names)] for row in rows])


def counted(function):
    """A utility that remembers what it was asked."""

    def utility(members):
        utility.asked.append(members)
        return function(members)

    utility.asked = []
    utility.fingerprint = "counted"
    return utility


def untouchable(members):
    pytest.fail(f"{members} was trained again")


untouchable.fingerprint = "counted"


def write(frame, path):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


def bits(numbers):
    return np.asarray(numbers, dtype=np.float64).view(np.int64).tolist()


# Files.


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("interchange")


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
@settings(max_examples=30, deadline=None)
def test_utilities_go_to_a_file_and_back_to_the_last_bit(suffix, folder, numbers):
    done = [Evaluation(Training((f"owner{i}",)), number) for i, number in enumerate(numbers)]
    read = dupre.read_evaluations(write(as_frame(done), folder / f"floats.{suffix}"))
    assert bits(read["utility"]) == bits(numbers)
    assert as_trainings(read) == {(f"owner{i}",): (u,) for i, u in enumerate(numbers)}


@given(numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=8))
@settings(max_examples=15, deadline=None)
def test_utilities_come_from_a_store_to_the_last_bit(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("store") / "run.sqlite"
    names = [f"owner{i}" for i in range(len(numbers))]
    with Store(path, {}, dict.fromkeys(names, "")) as store:
        for name, number in zip(names, numbers, strict=True):
            store.save(Evaluation(Training((name,)), number))
    read = dupre.read_evaluations(path)
    assert bits(read["utility"]) == bits(np.add(numbers, 0.0))  # SQLite knows no -0.0
    assert as_trainings(read) == {(n,): (u,) for n, u in zip(names, numbers, strict=True)}


@pytest.mark.parametrize("suffix", [*SUFFIXES, "sqlite"])
def test_a_run_is_read_back_and_valued_again_without_training(tmp_path, suffix):
    table = table_of(FOUR)
    utility = counted(table.__getitem__)
    path = tmp_path / f"run.{suffix}"
    store = path if suffix == "sqlite" else None
    first = dupre.value(FOUR, utility, budget=11, store=store)
    if store is None:
        write(first.evaluations, path)
    known = dupre.read_evaluations(path)
    assert as_trainings(known) == {
        tuple(sorted(members)): (table[members],) for members in utility.asked if members
    }
    again = dupre.value(FOUR, untouchable, budget=11, empty=0.25, known=known)
    np.testing.assert_array_equal(again.mean, first.mean)
    np.testing.assert_array_equal(again.covariance, first.covariance)
    assert again.evaluated == 11


@pytest.mark.parametrize("suffix", [*SUFFIXES, "sqlite"])
def test_owners_of_any_name_survive(tmp_path, suffix):
    owners = make_owners(3, names=ODD_NAMES[:3]), make_owners(5, names=ODD_NAMES[3:])
    for index, (ours, n) in enumerate(zip(owners, (3, 5), strict=True)):
        table = table_of(ours)
        path = tmp_path / f"odd{index}.{suffix}"
        valuation = dupre.value(
            ours,
            counted(table.__getitem__),
            budget=2**n,
            store=path if suffix == "sqlite" else None,
        )
        if suffix != "sqlite":
            write(valuation.evaluations, path)
        read = as_trainings(dupre.read_evaluations(path))
        assert read == {tuple(sorted(m)): (u,) for m, u in table.items() if m}
        known = dupre.value(ours, untouchable, budget=2**n, empty=0.25, known=read)
        np.testing.assert_array_equal(known.mean, valuation.mean)


def test_repeats_are_read_in_their_order_and_failures_are_left_out(tmp_path):
    done = [
        Evaluation(Training(("a",), 1), 0.2),
        Evaluation(Training(("b",), 0), None, failure="ValueError: no"),
        Evaluation(Training(("a",), 0), 0.1),
        Evaluation(Training(("b", "a"), 0), 0.7),
    ]
    for suffix in SUFFIXES:
        read = dupre.read_evaluations(write(as_frame(done), tmp_path / f"repeats.{suffix}"))
        assert as_trainings(read) == {("a",): (0.1, 0.2), ("a", "b"): (0.7,)}
        assert len(read) == 4


def test_a_frame_says_all_that_was_kept(tmp_path):
    def utility(members):
        if members == FOUR.names[:1]:
            raise ValueError("bad luck")
        warnings.warn("slow", UserWarning, stacklevel=1)
        return float(len(members))

    frame = dupre.value(FOUR, utility, budget=15, engine=Local(on_error="skip")).evaluations
    assert len(frame) == 15
    assert sorted(map(len, map(json.loads, frame["coalition"]))) == sorted(
        all_coalitions(4).sum(axis=1)
    )
    failed = frame[frame["utility"].isna()]
    assert failed["failure"].tolist() == ["ValueError: bad luck"]
    assert json.loads(failed["coalition"].iloc[0]) == list(FOUR.names[:1])
    assert np.all(frame["seconds"] >= 0)
    assert [json.loads(text) for text in frame["warnings"]].count(["UserWarning: slow"]) == 14
    assert frame["finished"].str.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d").all()
    assert frame["seed"].isna().all()


def test_training_seeds_are_kept(tmp_path):
    model = dupre.ModelUtility(LinearRegression(), FOUR, validation=(FOUR.X, FOUR.y))
    frame = dupre.value(FOUR, model, budget=3).evaluations
    for suffix in SUFFIXES:
        read = dupre.read_evaluations(write(frame, tmp_path / f"seeds.{suffix}"))
        for text, seed in zip(read["coalition"], read["seed"], strict=True):
            assert seed == model.training_seed(json.loads(text))


def test_only_coalition_and_utility_are_needed(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text('utility,coalition\n0.5,"[""b"",""a""]"\n1,"[""1""]"\n,"[""c""]"\n')
    assert as_trainings(dupre.read_evaluations(path)) == {("a", "b"): (0.5,), ("1",): (1.0,)}


@pytest.mark.parametrize(
    ("columns", "missing"),
    [
        (["coalition"], "utility"),
        (["utility", "members"], "coalition"),
        (["a", "b"], "coalition, utility"),
    ],
)
def test_missing_columns_are_named_with_those_there_are(tmp_path, columns, missing):
    path = write(pd.DataFrame([[1.0] * len(columns)], columns=columns), tmp_path / "x.csv")
    with pytest.raises(InputError, match=rf"{missing} is missing among {', '.join(columns)}"):
        dupre.read_evaluations(path)


@pytest.mark.parametrize("text", ["owner00", "[", "", "3", '["a"', "null", "a,b"])
def test_a_coalition_that_is_no_list_is_refused_with_an_example(tmp_path, text):
    path = write(pd.DataFrame({"coalition": [text], "utility": [0.5]}), tmp_path / "x.csv")
    with pytest.raises(InputError, match=r'JSON list of owner names such as \["A", "B"\]'):
        dupre.read_evaluations(path)


@pytest.mark.parametrize("text", ['"ab"', '{"a": 0.5}', '[["a"]]', "[null]", '["a", "a"]'])
def test_json_that_is_no_list_of_names_is_refused(text):
    with pytest.raises(InputError, match="JSON list of owner names"):
        as_trainings(pd.DataFrame({"coalition": [text], "utility": [0.5]}))


@pytest.mark.parametrize("number", ["inf", "-1e999"])
def test_a_utility_that_is_not_finite_is_refused_with_its_coalition(tmp_path, number):
    path = tmp_path / "x.csv"
    path.write_text(f'coalition,utility\n"[""a"", ""b""]",{number}\n')
    with pytest.raises(InputError, match=r"utility of \{a, b\} must be a finite number"):
        dupre.read_evaluations(path)


@pytest.mark.parametrize("text", ["high", "0;5", "0,5", "True"])
def test_a_utility_that_is_no_number_is_refused_with_what_was_found(tmp_path, text):
    path = write(pd.DataFrame({"coalition": ['["a"]'], "utility": [text]}), tmp_path / "x.csv")
    with pytest.raises(InputError, match=f"number.* got {text!r}"):
        dupre.read_evaluations(path)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "sqlite", "db"])
def test_a_file_that_is_not_there_is_named(tmp_path, suffix):
    path = tmp_path / f"nowhere.{suffix}"
    with pytest.raises(OSError, match=r"nowhere"):
        dupre.read_evaluations(path)
    assert not path.exists()


def test_a_file_of_an_unknown_kind_is_refused(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("coalition,utility\n" * 100)
    with pytest.raises(StoreError, match=r"notes\.txt"):
        dupre.read_evaluations(path)


def test_a_suffix_in_capitals_is_a_suffix(tmp_path):
    path = tmp_path / "EXPORT.CSV"
    path.write_text('coalition,utility\n"[""a""]",0.5\n')
    assert as_trainings(dupre.read_evaluations(path)) == {("a",): (0.5,)}


def test_reading_an_empty_file_does_not_write_to_it(tmp_path):
    path = tmp_path / "empty.sqlite"
    path.touch()
    with suppress(StoreError):
        dupre.read_evaluations(path)
    assert path.read_bytes() == b""


def test_a_store_is_read_by_any_suffix_and_left_as_it_is(tmp_path):
    path = tmp_path / "run.anything"
    dupre.value(FOUR, counted(table_of(FOUR).__getitem__), budget=5, store=path)
    before = path.read_bytes()
    assert len(dupre.read_evaluations(str(path))) == 5
    assert path.read_bytes() == before


def test_a_store_without_evaluations_is_read_as_none(tmp_path):
    with Store(tmp_path / "run.sqlite", {}, {"a": ""}):
        pass
    assert as_trainings(dupre.read_evaluations(tmp_path / "run.sqlite")) == {}


def test_a_training_with_two_utilities_is_refused():
    frame = as_frame(
        [Evaluation(Training(("a", "b")), 0.5), Evaluation(Training(("b", "a")), 0.25)]
    )
    with pytest.raises(InputError, match=r"\{a, b\}.* 0\.5 and 0\.25"):
        as_trainings(frame)


def test_rows_without_numbers_of_repeats_are_repeats():
    frame = pd.DataFrame({"coalition": ['["a"]', '["b"]', '["a"]'], "utility": [0.5, 0.1, 0.5]})
    assert as_trainings(frame) == {("a",): (0.5, 0.5), ("b",): (0.1,)}


def changed(owners, name):
    """The same owners, one of them with other rows."""
    X = np.array(owners.X)
    X[owners.owner == owners.names.index(name)] += 1
    return dupre.Owners.from_arrays(X, owners.y, np.array(owners.names)[owners.owner])


def test_a_store_with_an_owner_whose_rows_changed_does_not_mix_old_and_new(tmp_path):
    path = tmp_path / "run.sqlite"
    old, new = table_of(FOUR, 0), table_of(FOUR, 1)
    dupre.value(FOUR, counted(old.__getitem__), budget=15, store=path)
    later = changed(FOUR, "owner00")
    # What does not hold owner00 stays as it was.
    now = {m: new[m] if "owner00" in m else old[m] for m in old}
    expected = dupre.value(later, counted(now.__getitem__), budget=15, store=path)
    known = dupre.read_evaluations(path)
    again = dupre.value(later, untouchable, budget=15, empty=0.25, known=known)
    np.testing.assert_array_equal(again.mean, expected.mean)


def test_two_exports_put_together_count_every_training_once():
    frame = as_frame([Evaluation(Training(("a",)), 0.5), Evaluation(Training(("b",)), 0.25)])
    assert as_trainings(pd.concat([frame, frame])) == as_trainings(frame)


def test_without_pyarrow_parquet_names_the_extra_and_csv_is_read(tmp_path):
    frame = as_frame([Evaluation(Training(("a",)), 0.5)])
    parquet, csv = (str(write(frame, tmp_path / name)) for name in ("x.parquet", "x.csv"))
    code = f"""
import sys
sys.modules["pyarrow"] = None
import dupre
print(dupre.read_evaluations({csv!r})["utility"].tolist())
try:
    dupre.read_evaluations({parquet!r})
except dupre.InputError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    utilities, error = done.stdout.splitlines()
    assert utilities == "[0.5]"
    assert "dupre[parquet]" in error


# What is known already.


def test_known_utilities_are_mappings_or_frames():
    assert as_trainings(None) == {}
    assert as_trainings({("a",): 1}) == {("a",): (1.0,)}
    assert as_trainings({("a",): [1, np.float32(0.5)], ("b",): np.array([2.0])}) == {
        ("a",): (1.0, 0.5),
        ("b",): (2.0,),
    }
    for wrong in ([(("a",), 0.5)], "run.csv", 3, pd.Series([0.5])):
        with pytest.raises(InputError, match="mapping"):
            as_trainings(wrong)


@pytest.mark.parametrize("number", [float("nan"), [0.5, float("inf")], "0.5", None, ["x"]])
def test_a_known_utility_that_is_no_number_is_refused_with_its_coalition(number):
    with pytest.raises(InputError, match=r"utility of \{a, b\} must be a finite number"):
        as_trainings({("a", "b"): number})


# shapiq: our utilities as its games.


@pytest.mark.parametrize("approximator", ["KernelSHAP", "SVARM", "PermutationSamplingSV"])
def test_an_approximator_of_shapiq_finds_the_values_of_our_utility(approximator):
    owners = make_owners(5)
    game = closed_form.airport([1.0, 4.0, 2.0, 4.0, 3.0])
    rows = all_coalitions(5)
    table = {
        to_names(r, owners.names): float(u) for r, u in zip(rows, game.utility(rows), strict=True)
    }
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


def test_a_model_utility_is_a_game():
    model = dupre.ModelUtility(LinearRegression(), FOUR, validation=(FOUR.X, FOUR.y))
    game = dupre.to_game(model, FOUR)
    rows = np.vstack([np.zeros((1, 4), dtype=bool), all_coalitions(4)])
    expected = [model(to_names(row, FOUR.names)) for row in rows]
    np.testing.assert_array_equal(game(rows), expected)
    np.testing.assert_array_equal(game(rows[3]), expected[3:4])
    np.testing.assert_array_equal(game(rows.astype(int)), expected)
    assert game(rows[:0]).shape == (0,)


def test_an_exact_computer_of_shapiq_agrees_with_us():
    table = table_of(FOUR)
    computer = shapiq.ExactComputer(dupre.to_game(table.__getitem__, FOUR), n_players=4)
    found = computer("SV")
    ours = dupre.value(FOUR, dupre.from_table(table), budget=15)
    np.testing.assert_allclose([found[(i,)] for i in range(4)], ours.mean, atol=1e-10)


@pytest.mark.parametrize("n", [3, 5])
def test_a_game_asked_for_another_number_of_owners_says_so(n):
    game = dupre.to_game(untouchable, FOUR)
    with pytest.raises(InputError, match=f"4 owners expected, got {n}"):
        game(np.ones((2, n), dtype=bool))


def test_a_game_whose_utility_is_no_number_names_the_coalition():
    game = dupre.to_game(lambda members: float("nan"), FOUR)
    with pytest.raises(InputError, match=r"utility of \{owner00, owner02\} .* nan"):
        game(np.array([[True, False, True, False]]))


# shapiq: its games as our utilities.


def test_a_game_of_shapiq_is_valued_exactly():
    game = shapiq_games.DummyGame(4, interaction=(1, 2))
    valuation = dupre.value(FOUR, dupre.from_game(game, FOUR), budget=15)
    np.testing.assert_allclose(valuation.values, [0.25, 0.75, 0.75, 0.25], atol=1e-12)
    assert valuation.exact


class Squares(shapiq.Game):
    """A coalition's numbers added and squared; players hold 1, 2, 3, ...: normalised to 0."""

    def __init__(self, n):
        super().__init__(n, normalize=True, normalization_value=5.0)

    def value_function(self, coalitions):
        return 5.0 + (coalitions @ np.arange(1.0, coalitions.shape[1] + 1)) ** 2


def test_a_game_of_ones_own_is_valued_exactly():
    valuation = dupre.value(FOUR, dupre.from_game(Squares(4), FOUR), budget=15)
    worth = np.arange(1.0, 5.0)
    np.testing.assert_allclose(valuation.values, worth * worth.sum(), atol=1e-10)
    assert valuation.empty == 0


def test_players_are_the_owners_in_their_order():
    owners = make_owners(3, names=["z", "a", "m"])
    valuation = dupre.value(owners, dupre.from_game(Squares(3), owners), budget=7)
    assert valuation.values["m"] > valuation.values["a"] > valuation.values["z"]


def test_any_function_of_boolean_rows_is_a_game():
    utility = dupre.from_game(game_of(FOUR, table_of(FOUR)), FOUR)
    for members, number in table_of(FOUR).items():
        assert utility(members) == number
        assert utility(members[::-1]) == number


def test_there_and_back_again():
    table = table_of(FOUR)
    there = dupre.to_game(dupre.from_table(table), FOUR)
    back = dupre.from_game(there, FOUR)
    assert all(back(members) == number for members, number in table.items())


@pytest.mark.parametrize("players", [3, 5])
def test_a_game_of_another_number_of_players_is_refused(players):
    with pytest.raises(InputError, match=f"{players} players, but there are 4 owners"):
        dupre.from_game(shapiq_games.DummyGame(players), FOUR)


@pytest.mark.parametrize("make", [dupre.from_game, dupre.to_game])
def test_what_cannot_be_called_is_refused(make):
    with pytest.raises(InputError, match="callable"):
        make(3, FOUR)


# Tables.


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


def test_a_table_of_a_run_gives_the_same_values_again():
    table = table_of(FOUR)
    first = dupre.value(FOUR, table.__getitem__, budget=15)
    again = dupre.value(FOUR, dupre.from_table(first.evaluations), budget=15, empty=0.25)
    np.testing.assert_array_equal(again.mean, first.mean)


def test_a_coalition_that_is_not_in_the_table_is_named():
    utility = dupre.from_table({("a",): 0.5})
    with pytest.raises(InputError, match=r"no utility of \{a, b\}"):
        utility(("a", "b"))


def test_a_missing_coalition_in_a_run_is_a_failed_evaluation():
    table = table_of(FOUR)
    missing = FOUR.names[:1]
    del table[missing]
    with pytest.raises(dupre.EvaluationError, match=r"no utility of \{owner00\}"):
        dupre.value(FOUR, dupre.from_table(table), budget=15)
    valuation = dupre.value(FOUR, dupre.from_table(table), budget=15, engine=Local(on_error="skip"))
    assert list(valuation.failures) == [missing]


def test_a_table_that_contradicts_itself_is_refused():
    with pytest.raises(InputError, match=r"\{a, b\}"):
        dupre.from_table({("a", "b"): 0.5, ("b", "a"): 0.7})


def test_a_table_by_bare_names_is_refused():
    with pytest.raises(InputError, match="tuple"):
        dupre.from_table({"ab": 0.5})


@pytest.mark.parametrize(
    "make",
    [
        dupre.from_table,
        lambda table: dupre.from_game(game_of(FOUR, table), FOUR),
        lambda table: dupre.to_game(dupre.from_table(table), FOUR),
    ],
    ids=["table", "game", "utility"],
)
def test_a_store_tells_one_table_or_game_from_another(tmp_path, make):
    first, second = (make(table_of(FOUR, seed)) for seed in (0, 1))
    if make(table_of(FOUR)).__qualname__.startswith("to_game"):
        first, second = (dupre.from_game(game, FOUR) for game in (first, second))
    dupre.value(FOUR, first, budget=15, store=tmp_path / "run.sqlite")
    with pytest.raises(StoreError, match="utility"):
        dupre.value(FOUR, second, budget=15, store=tmp_path / "run.sqlite")


def test_a_store_knows_the_same_table_again(tmp_path):
    for _ in range(2):
        valuation = dupre.value(
            FOUR, dupre.from_table(table_of(FOUR)), budget=15, store=tmp_path / "run.sqlite"
        )
    assert valuation.exact
    assert len(dupre.read_evaluations(tmp_path / "run.sqlite")) == 15
