import json
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

import dupre
from dupre import InputError, StoreError
from dupre.checks import LARGEST
from dupre.game.coalitions import all_coalitions
from dupre.store.frames import as_frame
from dupre.training.evaluation import Evaluation, Training
from dupre.utility.adapters import as_trainings
from dupre.utility.score import Score
from owners_and_games import counted, make_owners, table_of, untouchable
from stores import open_store

FOUR = make_owners(4)
ODD_NAMES = ("b,c", 'say "hi"', "Zürich ⚡ 数", "NA", " 1", "two\nlines", "[]", "'; --")
SUFFIXES = ["csv", "parquet"]


def write(frame, path):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)
    return path


def bits(numbers):
    return np.asarray(numbers, dtype=np.float64).view(np.int64).tolist()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("interchange")


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(numbers=st.lists(st.floats(-LARGEST, LARGEST), min_size=1, max_size=8))
@settings(max_examples=30, deadline=None)
def test_utilities_go_to_a_file_and_back_to_the_last_bit(suffix, folder, numbers):
    done = [Evaluation(Training((f"owner{i}",)), number) for i, number in enumerate(numbers)]
    read = dupre.read_evaluations(write(as_frame(done), folder / f"floats.{suffix}"))
    assert bits(read["utility"]) == bits(numbers)
    assert as_trainings(read) == {(f"owner{i}",): (u,) for i, u in enumerate(numbers)}


@pytest.mark.parametrize("suffix", [*SUFFIXES, "sqlite", "json", "frame"])
def test_scores_on_resamples_go_out_and_come_back_to_the_last_bit(tmp_path, suffix):
    rng = np.random.default_rng(0)
    table = {members: Score(u, u + rng.normal(size=5)) for members, u in table_of(FOUR).items()}
    table[FOUR.names].resampled[3] = np.nan  # it could not be computed
    path = tmp_path / f"x.{suffix}"
    store = path if suffix == "sqlite" else None
    first = dupre.value(FOUR, table.__getitem__, budget=9, store=store)
    assert first.uncertainty.validation is not None
    known = first.evaluations
    if suffix == "json":
        known = dupre.Valuation.from_json(first.to_json()).evaluations
    elif suffix != "frame":
        known = dupre.read_evaluations(path if store else write(known, path))
    for members, (score,) in as_trainings(known).items():
        assert bits(score.resampled) == bits(table[members].resampled)
    again = dupre.value(FOUR, untouchable, budget=9, empty=table[()], known=known)
    np.testing.assert_array_equal(again.mean, first.mean)
    for part in ("total", "validation"):
        ours, theirs = (getattr(v.uncertainty, part) for v in (again, first))
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("suffix", [*SUFFIXES, "sqlite"])
def test_owners_of_any_name_survive(tmp_path, suffix):
    for names in (ODD_NAMES[:3], ODD_NAMES[3:]):
        owners = make_owners(len(names), names=names)
        table, path = table_of(owners), tmp_path / f"{len(names)}.{suffix}"
        store = path if suffix == "sqlite" else None
        valuation = dupre.value(owners, counted(table.__getitem__), budget=40, store=store)
        if store is None:
            write(valuation.evaluations, path)
        read = as_trainings(dupre.read_evaluations(path))
        assert read == {tuple(sorted(m)): (u,) for m, u in table.items() if m}
        known = dupre.value(owners, untouchable, budget=40, empty=0.25, known=read)
        np.testing.assert_array_equal(known.mean, valuation.mean)
        np.testing.assert_array_equal(known.uncertainty.total, valuation.uncertainty.total)


def test_repeats_and_seeds_are_read_and_failures_left_out(tmp_path):
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
    model = dupre.ModelUtility(LinearRegression(), FOUR, validation=(FOUR.X, FOUR.y))
    frame = dupre.value(FOUR, model, budget=3).evaluations
    for suffix in SUFFIXES:
        read = dupre.read_evaluations(write(frame, tmp_path / f"seeds.{suffix}"))
        for text, seed in zip(read["coalition"], read["seed"], strict=True):
            assert seed == model.training_seed(json.loads(text))
    path = tmp_path / "mine.csv"
    path.write_text('utility,coalition\n0.5,"[""b"",""a""]"\n1,"[""1""]"\n,"[""c""]"\n')
    assert as_trainings(dupre.read_evaluations(path)) == {("a", "b"): (0.5,), ("1",): (1.0,)}


def test_a_frame_says_all_that_was_kept(tmp_path):
    def utility(members):
        if members == FOUR.names[:1]:
            raise ValueError("bad luck")
        warnings.warn("slow", UserWarning, stacklevel=1)
        return float(len(members))

    engine = dupre.engines.Local(on_error="skip")
    frame = dupre.value(FOUR, utility, budget=15, engine=engine).evaluations
    assert len(frame) == 15
    sizes = sorted(map(len, map(json.loads, frame["coalition"])))
    assert sizes == sorted(all_coalitions(4).sum(axis=1))
    failed = frame[frame["utility"].isna()]
    assert failed["failure"].tolist() == ["ValueError: bad luck"]
    assert json.loads(failed["coalition"].iloc[0]) == list(FOUR.names[:1])
    assert np.all(frame["seconds"] >= 0)
    assert [json.loads(text) for text in frame["warnings"]].count(["UserWarning: slow"]) == 14
    assert frame["finished"].str.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d").all()
    assert frame["seed"].isna().all()


def test_missing_columns_and_coalitions_that_are_no_lists_are_named(tmp_path):
    for columns, missing in (
        (["coalition"], "utility"),
        (["utility", "members"], "coalition"),
        (["a", "b"], "coalition, utility"),
    ):
        path = write(pd.DataFrame([[1.0] * len(columns)], columns=columns), tmp_path / "x.csv")
        with pytest.raises(InputError, match=rf"{missing} is missing among {', '.join(columns)}"):
            dupre.read_evaluations(path)
    path = tmp_path / "x.csv"
    texts = ["owner00", "[", "", "3", '["a"', "null", "a,b"]
    no_list = r'JSON list of owner names such as \["A", "B"\]'
    for text in [*texts, '"ab"', '{"a": 0.5}', '[["a"]]', "[null]", '["a", "a"]']:
        write(pd.DataFrame({"coalition": [text], "utility": [0.5]}), path)
        with pytest.raises(InputError, match="names 'a' twice" if 'a", ' in text else no_list):
            dupre.read_evaluations(path)


@pytest.mark.parametrize("text", ["inf", "-1e999", "high", "0;5", "0,5", "True"])
def test_a_utility_that_is_no_number_is_refused_with_what_was_found(tmp_path, text):
    finite = r"utility of \{a, b\} must be a finite number"
    message = finite if text in ("inf", "-1e999") else f"number.* got '{text}'"
    frame = pd.DataFrame({"coalition": ['["a", "b"]'], "utility": [text]})
    with pytest.raises(InputError, match=message):
        dupre.read_evaluations(write(frame, tmp_path / "x.csv"))


@pytest.mark.parametrize("suffix", [*SUFFIXES, "sqlite", "db"])
def test_a_damaged_file_is_refused_and_one_that_is_not_there_named(suffix, tmp_path):
    path = tmp_path / f"nowhere.{suffix}"
    with pytest.raises(StoreError, match=r"there is no .*nowhere"):
        dupre.read_evaluations(path)
    assert not path.exists()
    path.write_text('"')
    message = "is no table of evaluations" if suffix in SUFFIXES else "is no SQLite file"
    with pytest.raises(dupre.DupreError, match=f"nowhere.{suffix}' {message}"):
        dupre.read_evaluations(path)


def test_files_are_known_by_their_suffix_and_a_store_by_any(tmp_path):
    frame = as_frame([Evaluation(Training(("a",)), 0.5)])
    frame.to_csv(tmp_path / "EXPORT.CSV", index=False)
    frame.to_parquet(tmp_path / "export.pq")
    for name in ("EXPORT.CSV", "export.pq"):
        assert as_trainings(dupre.read_evaluations(tmp_path / name)) == {("a",): (0.5,)}
    path = tmp_path / "notes.txt"
    path.write_text("coalition,utility\n" * 100)
    with pytest.raises(StoreError, match=r"notes\.txt"):
        dupre.read_evaluations(path)

    path = tmp_path / "run.anything"
    dupre.value(FOUR, counted(table_of(FOUR).__getitem__), budget=5, store=path)
    before = path.read_bytes()
    assert len(dupre.read_evaluations(str(path))) == 5
    assert path.read_bytes() == before
    with open_store(tmp_path / "run.sqlite"):
        pass
    assert as_trainings(dupre.read_evaluations(tmp_path / "run.sqlite")) == {}


@pytest.mark.slow
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
