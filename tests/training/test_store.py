from __future__ import annotations

import ast
import functools
import math
import os
import random
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dupre.training.store
from dupre import ModelUtility, Owners
from dupre.errors import DupreError, StoreError
from dupre.training.evaluation import Evaluation, Training
from dupre.training.evaluation_rows import read_stored
from dupre.training.identity import Part, of_owners, of_utility, restate
from dupre.training.sqlite import APPLICATION_ID, VERSION
from dupre.training.store import Store

SETTING = {"model": Part("LogisticRegression()", "m1"), "seed": Part("0", "s1")}
OWNERS = {"a": "1", "b": "2", "c": "3"}
SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where waiting for the disk takes no time."""


def opened(path, owners=OWNERS, setting=SETTING):
    return Store(path, setting, owners)


def success(members="a", repeat=0, utility=0.5, **more):
    return Evaluation(Training(tuple(members), repeat), utility, **more)


def failure(members="a", repeat=0, attempt=1, **more):
    more = {"failure": "ValueError: no", "traceback": "Traceback ...\nValueError: no", **more}
    return Evaluation(Training(tuple(members), repeat, attempt), None, **more)


def sql(path, query, *values):
    """What any other SQLite client sees, or does."""
    with closing(sqlite3.connect(path, timeout=60)) as db:
        rows = db.execute(query, values).fetchall()
        db.commit()
    return rows


def everything(path, owners=OWNERS, run="run"):
    """All that a store tells its user."""
    with opened(path, owners) as store:
        return store.evaluations(), store.batch(run), store.rounds(run)


def beside(path):
    """What else is in the directory of a store, its lock file aside."""
    known = {path.name, f"{path.name}-claims"}
    return sorted(file.name for file in path.parent.iterdir() if file.name not in known)


def bits(number):
    return struct.pack("<d", number)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.sqlite"


@contextmanager
def fresh_path():
    """For hypothesis, which runs a test many times in one tmp_path."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as directory:
        yield Path(directory, "run.sqlite")


# --- what goes in comes out

numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=20)


@settings(max_examples=25, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=12))
@example([5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.0, 1.0, 0.0])
@example([2.0**53 + 2, -(2.0**63), 2.0**64, 0.1 + 0.2, 1e22, 1e23, 123456789.0])
def test_utilities_come_back_to_the_last_bit(utilities):
    utilities = [utility + 0.0 for utility in utilities]  # -0.0 has a test of its own
    with fresh_path() as path:
        with opened(path) as store:
            for repeat, utility in enumerate(utilities):
                store.save(success("ab", repeat, utility))
            told = [store.utilities(("a", "b"))[r].utility for r in range(len(utilities))]
        with opened(path) as store:
            found = [store.utilities(("a", "b"))[r].utility for r in range(len(utilities))]
    assert list(map(bits, found)) == list(map(bits, told)) == list(map(bits, utilities))
    assert all(type(utility) is float for utility in found)


def test_negative_zero_is_zero_from_the_start(path):
    """SQLite keeps no sign of zero; what a run sees must not depend on whether it was resumed."""
    with opened(path) as store:
        store.save(success(utility=-0.0))
        assert bits(store.utilities(("a",))[0].utility) == bits(0.0)
    assert bits(everything(path)[0][0].utility) == bits(0.0)


@settings(max_examples=25, deadline=None)
@given(
    st.builds(
        Evaluation,
        st.builds(Training, st.just(("a", "b")), st.integers(0, 2**31), st.integers(1, 2**31)),
        numbers.map(lambda number: number + 0.0),
        warnings=st.lists(texts, max_size=3).map(tuple),
        seconds=st.floats(0, 1e9).map(lambda number: number + 0.0),
        seed=st.none() | st.integers(0, 2**32 - 1),
        finished=texts,
        worker=texts,
    ),
    texts,
    texts,
)
def test_records_come_back_as_they_were(evaluation, reason, trace):
    failed = replace(
        evaluation,
        training=replace(evaluation.training, repeat=evaluation.training.repeat + 1),
        utility=None,
        failure=reason,
        traceback=trace,
    )
    with fresh_path() as path:
        with opened(path) as store:
            store.save(evaluation)
            store.save(failed)
        with opened(path) as store:
            assert store.evaluations() == [evaluation, failed]


def test_the_exception_itself_is_not_kept(path):
    with opened(path) as store:
        store.save(failure(cause=ValueError("no")))
        (found,) = store.evaluations()
    assert found.cause is None
    assert found.traceback.endswith("ValueError: no")


@pytest.mark.parametrize("members", ["abc", "acb", "bac", "bca", "cab", "cba"])
def test_the_order_of_members_does_not_matter(path, members):
    with opened(path) as store:
        store.save(success(members, utility=0.25))
    with opened(path) as store:
        for other in ("abc", "cba", "bca"):
            assert store.utilities(tuple(other))[0].utility == 0.25
        assert store.coalitions() == [("a", "b", "c")]
    assert sql(path, "SELECT coalition FROM evaluations") == [('["a", "b", "c"]',)]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(min_size=1, max_size=8), min_size=3, max_size=6, unique=True))
@example(["a", "b", "a,b", '"', "'", '["a"]', "a\x00b", "\n", " ", "\\", "😀", "ä", "a\u0308"])
@example(["x'); DROP TABLE evaluations; --", "%s", "{}", "?", ":a", "NULL", "\u202eabc", "\ufeff"])
def test_owners_may_have_any_name(names):
    coalitions = [tuple(names[:k]) for k in range(1, len(names) + 1)]
    coalitions += [(name,) for name in names[1:]]
    with fresh_path() as path:
        owners = {name: f"{position}" for position, name in enumerate(names)}
        with opened(path, owners) as store:
            for position, members in enumerate(coalitions):
                store.save(success(members, utility=float(position)))
        with opened(path, owners) as store:
            for position, members in enumerate(coalitions):
                (found,) = store.utilities(members[::-1]).values()
                assert found.utility == position
                assert found.training.members == tuple(sorted(members))
            assert len(store.evaluations()) == len(coalitions)


@pytest.mark.parametrize(
    "evaluation",
    [
        success(warnings=("UserWarning: file \udcff",)),
        failure(failure="OSError: file \udcff"),
        failure(traceback="in file \udcff"),
    ],
    ids=["warning", "failure", "traceback"],
)
def test_a_training_is_kept_though_its_text_is_no_valid_unicode(path, evaluation):
    with opened(path) as store:
        store.save(evaluation)
        (found,) = store.evaluations()
    assert found.utility == evaluation.utility


def test_owners_may_have_names_that_are_no_valid_unicode(path):
    owners = {"a\udcff": "1", "b": "2"}
    with opened(path, owners) as store:
        store.save(success(["b", "a\udcff"]))
    with opened(path, owners) as store:
        assert store.utilities(("a\udcff", "b"))[0].utility == 0.5


@pytest.mark.parametrize("seed", [2**63, 2**64 - 1, 2**128])
def test_a_training_is_kept_whatever_its_seed(path, seed):
    with opened(path) as store:
        store.save(success(seed=seed))
        (found,) = store.evaluations()
    assert (found.utility, found.seed) == (0.5, seed)


@pytest.mark.parametrize(
    "evaluation",
    [success(seconds=math.nan), success(utility=math.nan), success(worker=None)],
    ids=["seconds", "utility", "worker"],
)
def test_what_cannot_be_stored_is_never_dropped_in_silence(path, evaluation):
    with opened(path) as store:
        try:
            store.save(evaluation)
        except (DupreError, ValueError, TypeError):
            return
        assert store.evaluations() != []


def test_a_coalition_never_evaluated_has_nothing(path):
    with opened(path) as store:
        store.save(success("a"))
        assert store.utilities(("b",)) == {}
        assert store.failures(("b",)) == {}
        assert store.utilities(("a", "b")) == {}
        assert store.coalitions() == [("a",)]


def test_a_store_in_memory_keeps_everything_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with opened(None) as store:
        store.save(success())
        assert store.lock(Training(("a",)))
        store.unlock(Training(("a",)))
        assert store.begin_batch("run", 1, [("a",)])
        assert store.utilities(("a",))[0].utility == 0.5
    assert list(tmp_path.iterdir()) == []


# --- one utility per training, failures


def test_the_first_utility_of_a_training_stays(path):
    with opened(path) as store, opened(path) as other:
        store.save(success(utility=0.5))
        other.save(success(utility=0.75))
        store.save(success(utility=1.0))
        store.refresh()
        assert store.utilities(("a",))[0].utility == other.utilities(("a",))[0].utility == 0.5
    assert sql(path, "SELECT utility FROM evaluations") == [(0.5,)]


def test_the_file_itself_refuses_a_second_utility(path):
    with opened(path) as store:
        store.save(success())
    columns = "coalition, contents, repeat, attempt, utility, warnings, seconds, finished, worker"
    again = f"INSERT INTO evaluations ({columns}) SELECT {columns} FROM evaluations"
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        sql(path, again)


@pytest.mark.parametrize(("utility", "failed"), [(None, None), (0.5, "ValueError")])
def test_the_file_itself_refuses_a_row_with_both_or_neither(path, utility, failed):
    opened(path).close()
    with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
        sql(
            path,
            "INSERT INTO evaluations (coalition, contents, repeat, attempt, utility, failure, "
            "warnings, seconds, finished, worker) VALUES ('[]', '', 0, 1, ?, ?, '[]', 0, '', '')",
            utility,
            failed,
        )


def test_repeats_are_kept_apart(path):
    with opened(path) as store:
        for repeat in (2, 0, 1):
            store.save(success(repeat=repeat, utility=repeat / 4))
    with opened(path) as store:
        found = store.utilities(("a",))
        assert {repeat: f.utility for repeat, f in found.items()} == {0: 0.0, 1: 0.25, 2: 0.5}


def test_every_failed_attempt_is_kept_and_the_last_is_told(path):
    first = failure(attempt=1, failure="TimeoutError: 3 s", traceback="")
    second = failure(attempt=2, failure="ValueError: no", traceback="Traceback\nin f")
    with opened(path) as store:
        store.save(first)
        store.save(second)
    with opened(path) as store:
        assert store.failures(("a",)) == {0: second}
        assert store.utilities(("a",)) == {}
        assert store.coalitions() == [("a",)]
    told = sql(path, "SELECT attempt, failure, traceback FROM evaluations ORDER BY id")
    assert told == [(1, "TimeoutError: 3 s", None), (2, "ValueError: no", "Traceback\nin f")]


def test_a_success_wins_over_failures_before_and_after(path):
    with opened(path) as store:
        store.save(failure(attempt=1))
        store.save(success(utility=0.5))
        store.save(failure(attempt=3))
        store.save(failure(repeat=1))
    with opened(path) as store:
        assert store.utilities(("a",))[0].utility == 0.5
        assert list(store.failures(("a",))) == [1]
        assert [f.utility for f in store.evaluations()] == [0.5, None]
    assert sql(path, "SELECT count(*) FROM evaluations") == [(4,)]


# --- what a store was made for


def rows(seed=0, n=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(8 * n, 3))
    y = (X[:, 0] > 0).astype(int)
    y[::8], y[1::8] = 0, 1
    return X, y, np.repeat([f"owner{i}" for i in range(n)], 8)


def real_store(path, *, C=1.0, metric="accuracy", validation=1, seed=0, data=0):
    """The store of a ModelUtility."""
    owners = Owners.from_arrays(*rows(data))
    model = make_pipeline(StandardScaler(), LogisticRegression(C=C))
    X, y, _ = rows(validation)
    utility = ModelUtility(model, owners, validation=(X, y), metric=metric, seed=seed)
    return Store(path, of_utility(utility), of_owners(owners))


def test_the_same_things_open_a_store_again(path):
    with real_store(path) as store:
        store.save(success(("owner0", "owner2"), utility=0.75))
    for _ in range(3):
        with real_store(path) as store:
            assert store.utilities(("owner2", "owner0"))[0].utility == 0.75
    parts = sql(path, "SELECT part FROM setting ORDER BY rowid")
    assert parts == [
        ("utility",),
        ("model",),
        ("metric",),
        ("validation data",),
        ("task",),
        ("seed",),
    ]


@pytest.mark.parametrize(
    ("other", "named", "shown"),
    [
        ({"C": 2.0}, "model", "C=2.0"),
        ({"metric": "balanced_accuracy"}, "metric", "balanced_accuracy"),
        ({"validation": 2}, "validation data", "32 rows"),
        ({"seed": 7}, "seed", "7"),
        ({"data": 3}, "data", "owner0"),
    ],
)
def test_other_things_are_refused_and_named(path, other, named, shown):
    with real_store(path) as store:
        store.save(success(("owner0",)))
    before = sql(path, "SELECT * FROM setting"), sql(path, "SELECT * FROM owners")
    with pytest.raises(StoreError) as caught:
        real_store(path, **other)
    message = str(caught.value)
    assert str(path) in message
    assert shown in message
    assert "store=" in message
    if named == "data":
        assert "other data" in message
        assert "no owner's rows" in message
    else:
        parts = ["model", "metric", "validation data", "seed", "other data"]
        assert [part for part in parts if f"the {part} " in message] == [named]
    assert (sql(path, "SELECT * FROM setting"), sql(path, "SELECT * FROM owners")) == before
    with real_store(path) as store:
        assert store.utilities(("owner0",))[0].utility == 0.5


def test_all_that_differs_is_named_at_once(path):
    real_store(path).close()
    with pytest.raises(StoreError) as caught:
        real_store(path, C=2.0, seed=7)
    assert "the model" in str(caught.value)
    assert "the seed" in str(caught.value)
    assert "the metric" not in str(caught.value)


def test_parts_that_came_or_went_are_named(path):
    opened(path).close()
    fewer = {"model": SETTING["model"]}
    more = {**SETTING, "optimiser": Part("adam", "o1")}
    with pytest.raises(StoreError, match=r"a seed \(0\), which is not given now"):
        opened(path, setting=fewer)
    with pytest.raises(StoreError, match="no optimiser, which is now adam"):
        opened(path, setting=more)


def test_changed_contents_of_the_same_description_are_told_as_such(path):
    opened(path).close()
    with pytest.raises(StoreError, match=r"the model LogisticRegression\(\), with other contents"):
        opened(path, setting={**SETTING, "model": Part("LogisticRegression()", "m2")})


def test_a_refused_store_is_left_as_it_was(path):
    with opened(path) as store:
        store.save(success())
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(StoreError):
            opened(path, owners={"a": "other"})
        with pytest.raises(StoreError):
            opened(path, setting={})
    assert path.read_bytes() == before
    assert beside(path) == []


# --- owners come, go and change


def test_one_owners_change_leaves_the_others_valid():
    X, y, owner = rows()
    before = of_owners(Owners.from_arrays(X, y, owner))
    X[3, 0] += 1.0  # a row of owner0
    changed = of_owners(Owners.from_arrays(X, y, owner))
    left = of_owners(Owners.from_arrays(X[:24], y[:24], owner[:24]))
    more = rows(n=5)
    more[0][:32], more[1][:32] = X, y
    joined = of_owners(Owners.from_arrays(*more))
    names = ["owner0", "owner1", "owner2", "owner3"]
    with fresh_path() as path:
        with opened(path, before) as store:
            for members in (names, names[1:], names[:2], names[1:3], names[2:3], names[:1]):
                store.save(success(members))
        with opened(path, changed) as store:
            assert store.coalitions() == [tuple(names[1:]), tuple(names[1:3]), (names[2],)]
            store.save(success(names[:1], utility=0.75))
        with opened(path, before) as store:
            assert len(store.coalitions()) == 6
            assert store.utilities(("owner0",))[0].utility == 0.5
        with opened(path, left) as store:
            assert store.coalitions() == [("owner1", "owner2"), ("owner2",), ("owner0",)]
            assert store.utilities(("owner0",))[0].utility == 0.75
        with opened(path, joined) as store:
            assert len(store.coalitions()) == 4
            store.save(success(["owner4", "owner1"]))
        with opened(path, changed) as store:
            assert len(store.coalitions()) == 4


versions = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("123"), min_size=1)


@settings(max_examples=25, deadline=None)
@given(st.data(), versions, st.lists(versions, min_size=1, max_size=3))
def test_an_evaluation_is_valid_where_all_its_members_are_as_they_were(data, first, others):
    """Any history of owners; the rule of validity in one line is the oracle."""
    made = []
    with fresh_path() as path:
        for owners in [first, *({"anchor": "0", **other} for other in others)]:
            owners = {"anchor": "0", **owners}
            with opened(path, owners) as store:
                valid = {
                    members: utility
                    for then, members, utility in reversed(made)  # the first one counts
                    if all(owners.get(name) == then[name] for name in members)
                }
                found = {m: store.utilities(m)[0].utility for m in store.coalitions()}
                assert found == valid
                members = data.draw(st.sets(st.sampled_from(sorted(owners)), min_size=1))
                names = tuple(sorted(members))
                store.save(success(names, utility=float(len(made))))
                made.append((owners, names, float(len(made))))


# --- batches and rounds


def test_batches_are_kept_in_order(path):
    with opened(path) as store:
        assert store.batch("run") == (0, [])
        assert store.begin_batch("run", 1, [("b", "a"), ("c",)])
        assert store.begin_batch("run", 2, [("c", "b", "a"), ("a",), ("b",)])
        assert store.begin_batch("other", 1, [("b",)])
    with opened(path) as store:
        assert store.batch("run") == (2, [("a", "b", "c"), ("a",), ("b",)])
        assert store.batch("other") == (1, [("b",)])
        assert store.batch("none") == (0, [])


def test_a_batch_is_begun_once(path):
    with opened(path) as store, opened(path) as other:
        assert store.begin_batch("run", 1, [("a",)])
        assert not other.begin_batch("run", 1, [("b",)])
        assert not other.begin_batch("run", 1, [("a",)])
        assert store.batch("run") == other.batch("run") == (1, [("a",)])


def test_a_batch_is_begun_by_the_first_process_that_gets_there(path):
    with opened(path) as store, opened(path) as other:
        store.save(success("a"))  # of another run, say: no reason to think again
        assert other.begin_batch("run", 1, [("b",)])
        assert not store.begin_batch("run", 1, [("c",)])
        assert store.batch("run") == (1, [("b",)])
        assert store.begin_batch("another run", 1, [("c",)])


def test_evaluations_on_other_data_are_no_news_for_a_batch(path):
    with opened(path) as store, opened(path, {**OWNERS, "a": "changed"}) as other:
        other.save(success("a"))
        assert not store.refresh()
        other.save(success("a", repeat=1))
        assert store.begin_batch("run", 1, [("b",)])


def test_refresh_tells_whether_there_was_anything(path):
    with opened(path) as store, opened(path) as other:
        assert not store.refresh()
        other.save(success("a"))
        assert store.refresh()
        assert not store.refresh()
        other.save(failure("b"))
        assert store.refresh()


@settings(max_examples=15, deadline=None)
@given(st.dictionaries(st.integers(1, 500), st.floats(), max_size=5))
def test_rounds_come_back_as_they_were(widths):
    with fresh_path() as path:
        with opened(path) as store:
            for evaluated, width in widths.items():
                store.save_round("run", evaluated, {"widest": width, "r2": -width})
                store.save_round("run", evaluated, {"widest": 0.125})  # the first one stays
        with opened(path) as store:
            found = store.rounds("run")
            assert store.rounds("other") == {}
    assert list(found) == sorted(widths)
    for evaluated, width in widths.items():
        np.testing.assert_equal(found[evaluated], {"widest": width, "r2": -width})


# --- the file


def test_any_sqlite_client_can_read_what_was_saved_at_once(path):
    with opened(path) as store:
        store.save(success("ba", 1, 0.25, warnings=("W: x",), seed=3, seconds=1.5, worker="w:1"))
        (row,) = sql(
            path,
            "SELECT coalition, repeat, attempt, utility, failure, traceback, warnings, seconds, "
            "seed, worker FROM evaluations",
        )
        assert row == ('["a", "b"]', 1, 1, 0.25, None, None, '["W: x"]', 1.5, 3, "w:1")
        assert sql(path, "SELECT name, fingerprint FROM owners") == list(OWNERS.items())
        told = [(name, part.description, part.digest) for name, part in SETTING.items()]
        assert sql(path, "SELECT part, description, fingerprint FROM setting") == told
        ((moment,),) = sql(path, "SELECT DISTINCT first_seen FROM owners")
        assert datetime.fromisoformat(moment) <= datetime.now(UTC)


def test_the_file_is_in_wal_mode_and_says_what_it_is(path):
    opened(path).close()
    assert sql(path, "PRAGMA journal_mode") == [("wal",)]
    assert sql(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert sql(path, "PRAGMA user_version") == [(VERSION,)]
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]
    assert struct.pack(">i", APPLICATION_ID) == b"DUPR"


def test_a_reader_in_another_program_does_not_block_saving(path):
    with opened(path) as store, closing(sqlite3.connect(path)) as reader:
        store.save(success("a"))
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM evaluations").fetchone() == (1,)
        store.save(success("b"))
        assert reader.execute("SELECT count(*) FROM evaluations").fetchone() == (1,)
        reader.execute("COMMIT")
        assert reader.execute("SELECT count(*) FROM evaluations").fetchone() == (2,)


@pytest.mark.parametrize("version", [0, VERSION + 1, 2**31 - 1])
def test_another_version_of_the_tables_is_refused_and_left_alone(path, version):
    with opened(path) as store:
        store.save(success())
    sql(path, f"PRAGMA user_version = {version}")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"has version {version} .* knows version {VERSION}"):
        opened(path)
    with pytest.raises(StoreError, match=f"has version {version}"):
        read_stored(path)
    assert path.read_bytes() == before
    assert beside(path) == []


def refused_and_left_alone(path, match):
    before = path.read_bytes()
    for use in (opened, read_stored):
        with pytest.raises(StoreError, match=match) as caught:
            use(path)
        assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert beside(path) == []


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("table", ["notes", "evaluations"])
def test_a_foreign_database_is_refused_and_left_alone(path, mode, table):
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute(f"CREATE TABLE {table} (text)")
        db.execute(f"INSERT INTO {table} VALUES ('precious')")
        db.commit()
    refused_and_left_alone(path, "is no store of dupre; take another file for store=")


def test_a_foreign_database_without_tables_is_refused_and_left_alone(path):
    sql(path, "PRAGMA application_id = 77")
    sql(path, "PRAGMA user_version = 5")
    assert path.stat().st_size > 0
    refused_and_left_alone(path, "is no store of dupre")


@pytest.mark.parametrize(
    "size", [1, 2, 15, 16, 17, 99, 100, 101, 511, 512, 513, 4095, 4096, 4097, 100_000]
)
def test_a_text_file_is_refused_and_left_alone(path, size):
    path.write_bytes((b"owner,rows,price\nBern,12,30.5\n" * 4000)[:size])
    refused_and_left_alone(path, "is no SQLite file; take another file for store=")


def test_an_empty_file_is_a_new_store(path):
    path.touch()
    with opened(path) as store:
        store.save(success())
    assert len(everything(path)[0]) == 1


def test_a_directory_is_refused(tmp_path):
    with pytest.raises(StoreError, match="is a directory; expected a file such as"):
        opened(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_is_refused_and_not_made(tmp_path):
    with pytest.raises(StoreError, match=r"there is no directory .*results"):
        opened(tmp_path / "results" / "run.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_evaluations_are_not_read_from_an_empty_file_nor_is_it_made_a_store(path):
    path.touch()
    with pytest.raises(StoreError, match="is no store of dupre"):
        read_stored(path)
    assert path.read_bytes() == b""


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    with pytest.raises(StoreError):
        opened(tmp_path / ("x" * 300))


def test_rows_of_a_store_that_does_not_exist_are_refused(path):
    with pytest.raises(StoreError, match="there is no store"):
        read_stored(path)
    assert not path.exists()


def test_of_changed_rows_a_store_tells_the_last_ones(path):
    with opened(path) as store:
        store.save(failure("ab"))
        store.save(success("ab"))
        store.save(success("a", utility=0.25))
        store.save(success("b"))
    with opened(path, {"a": "changed", "b": "2"}) as store:
        store.save(success("a", utility=0.75))
        store.save(success("a", 1, utility=0.875))
        assert store.stale == 3
    told = [(found.training.members, found.utility) for found, _ in read_stored(path)]
    assert told == [
        (("a", "b"), None),
        (("a", "b"), 0.5),
        (("b",), 0.5),
        (("a",), 0.75),
        (("a",), 0.875),
    ]


def filled(path, count=60):
    """A store of several pages with something in every table; its bytes and its contents."""
    with opened(path) as store:
        store.begin_batch("run", 1, [("a", "b"), ("c",)])
        store.save_round("run", 3, {"widest": 0.25})
        for repeat in range(count):
            store.save(
                success("ab", repeat, math.sin(repeat), seed=10**6, finished="then", worker="here")
            )
    assert not path.with_name(path.name + "-wal").exists(), "all is in the one file"
    return path.read_bytes(), everything(path)


PAGE = 4096


def test_a_truncated_store_is_refused(path):
    whole, _ = filled(path)
    sizes = {*range(2, 130, 7), *range(130, len(whole) - PAGE, 997), *range(PAGE, len(whole), PAGE)}
    for size in sorted(sizes):
        path.write_bytes(whole[:size])
        with pytest.raises(StoreError, match=r"damaged|no SQLite file"):
            everything(path)
        assert path.read_bytes() == whole[:size]


@pytest.mark.parametrize("lost", [0, 1, 7, 14, 28, 50, 70, 90, 300, 1000, 4000])
def test_a_store_without_its_last_bytes_is_refused_or_right(path, lost):
    whole, contents = filled(path)
    path.write_bytes(whole[: len(whole) - lost])
    try:
        found = everything(path)
    except StoreError:
        found = contents  # refused: as good
    assert found == contents


@pytest.mark.parametrize("seed", range(3))
def test_a_store_with_a_page_of_noise_is_refused(path, seed):
    whole, _ = filled(path)
    rng = random.Random(seed)
    for page in range(len(whole) // PAGE):
        noise = rng.randbytes(PAGE)
        path.write_bytes(whole[: page * PAGE] + noise + whole[(page + 1) * PAGE :])
        with pytest.raises(StoreError):
            everything(path)


# --- contents that are not ours


JUNK = ["junk", "", "5", "null", "[" * 100_000, b"\x80\x04K\x01."]


@pytest.mark.parametrize("junk", JUNK, ids=lambda junk: repr(junk[:6]))
@pytest.mark.parametrize(
    "column",
    ["evaluations.coalition", "evaluations.warnings", "batches.coalition", "rounds.found"],
)
def test_junk_in_a_column_of_json_is_refused(path, column, junk):
    filled(path, count=3)
    table, name = column.split(".")
    sql(path, f"UPDATE {table} SET {name} = ?", junk)
    with pytest.raises(StoreError):
        everything(path)


@pytest.mark.parametrize("column", ["utility", "seconds", "repeat", "attempt", "seed"])
def test_text_where_a_number_belongs_is_refused(path, column):
    filled(path, count=1)
    sql(path, f"UPDATE evaluations SET {column} = 'junk'")
    with pytest.raises(StoreError):
        everything(path)


def test_bytes_that_are_no_text_are_refused(path):
    filled(path, count=1)
    sql(path, "UPDATE evaluations SET coalition = CAST(x'ff' AS TEXT)")
    with pytest.raises(StoreError, match="cannot be read"):
        everything(path)


def test_a_store_that_lost_a_table_is_refused(path):
    filled(path, count=1)
    sql(path, "DROP TABLE evaluations")
    with pytest.raises(StoreError, match="no such table"):
        everything(path)


def test_nothing_in_a_store_is_ever_executed(path, tmp_path):
    """A pickle that would touch a file, in every column that takes one."""
    touched = tmp_path / "touched"
    bomb = b"cposix\nsystem\n(S'touch " + bytes(touched) + b"'\ntR."
    filled(path, count=3)
    for table in ("evaluations", "batches", "rounds", "setting", "owners"):
        for _, name, *_ in sql(path, f"PRAGMA table_info({table})"):
            shutil.copy(path, copy := tmp_path / "copy.sqlite")
            try:
                sql(copy, f"UPDATE {table} SET {name} = ?", bomb)
            except sqlite3.IntegrityError:
                continue
            with suppress(StoreError, ValueError, TypeError):
                everything(copy)
            assert not touched.exists()
    subprocess.run([sys.executable, "-c", f"import pickle; pickle.loads({bomb!r})"], check=True)
    assert touched.exists(), "the bomb is real"


@pytest.mark.parametrize("module", ["evaluation_rows", "identity", "sqlite", "store"])
def test_the_store_knows_nothing_that_could_execute_what_it_reads(module):
    folder = Path(dupre.training.store.__file__).parent
    tree = ast.parse((folder / f"{module}.py").read_text())
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    imported = {name.partition(".")[0] for name in imported - {"importlib.metadata"}}
    dangerous = {"pickle", "cPickle", "_pickle", "cloudpickle", "joblib", "dill", "marshal"}
    assert not imported & (dangerous | {"shelve", "yaml", "importlib", "runpy"})
    called = {
        node.func.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"eval", "exec", "compile", "__import__"}
    read = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    assert "enable_load_extension" not in read


# --- rights


@contextmanager
def without_rights():
    """As a user who is not root, whom permissions bind."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def place():
    """A directory that every user can reach."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory, "place")
        place.mkdir()
        Path(directory).chmod(0o755)
        yield place
        place.chmod(0o755)


def test_a_file_that_may_not_be_written_is_refused(place):
    filled(place / "run.sqlite", count=3)
    (place / "run.sqlite-claims").unlink()
    (place / "run.sqlite").chmod(0o444)
    place.chmod(0o777)
    with without_rights(), pytest.raises(StoreError, match="may this user read and write"):
        opened(place / "run.sqlite")
    assert len(everything(place / "run.sqlite")[0]) == 3


def test_a_file_that_may_not_be_read_is_refused(place):
    filled(place / "run.sqlite", count=3)
    (place / "run.sqlite").chmod(0o000)
    place.chmod(0o777)
    with without_rights(), pytest.raises(StoreError, match="may this user read and write"):
        opened(place / "run.sqlite")


@pytest.mark.parametrize("exists", [False, True])
def test_a_directory_that_may_not_be_written_is_refused(place, exists):
    if exists:
        filled(place / "run.sqlite", count=3)
        (place / "run.sqlite").chmod(0o666)
    place.chmod(0o555)
    with without_rights(), pytest.raises(StoreError, match="may this user read and write"):
        opened(place / "run.sqlite")
    assert beside(place / "run.sqlite") == []
    assert (place / "run.sqlite").exists() == exists


# --- a full disk


@pytest.fixture
def small_disk(tmp_path):
    """A real file system with room for 400 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small disk takes root")
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this machine does not let root mount a tmpfs")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def fill_up(store):
    """Save until the disk is full: how many were saved, and what was said."""
    for repeat in range(2000):
        try:
            store.save(success("a", repeat, repeat / 7))
        except StoreError as error:
            return repeat, str(error)
    raise AssertionError("the disk never was full")


def test_a_full_disk_loses_nothing_and_the_store_goes_on_when_there_is_room(small_disk):
    path, ballast = small_disk / "run.sqlite", small_disk / "ballast"
    ballast.write_bytes(bytes(150_000))
    with opened(path) as store:
        saved, message = fill_up(store)
        assert saved > 3
        assert str(path) in message
        assert "make room on the disk, then call again" in message
        assert "everything stored before is kept" in message
        assert list(store.utilities(("a",))) == list(range(saved))
        with pytest.raises(StoreError, match="make room"):
            store.begin_batch("run", 1, [("a", "b")] * 2000)
        ballast.unlink()
        store.save(success("b", utility=0.75))
        assert store.begin_batch("run", 1, [("c",)])
    with opened(path) as store:
        found = store.utilities(("a",))
        assert {r: f.utility for r, f in found.items()} == {r: r / 7 for r in range(saved)}
        assert store.utilities(("b",))[0].utility == 0.75
        assert store.batch("run") == (1, [("c",)])
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_process_killed_on_a_full_disk_loses_nothing(small_disk):
    path, ballast = small_disk / "run.sqlite", small_disk / "ballast"
    ballast.write_bytes(bytes(150_000))
    with Other(path) as other:
        saved = other.ask("fill_up(store)")
        other.kill()
    assert saved > 3
    ballast.unlink()
    with opened(path) as store:
        assert list(store.utilities(("a",))) == list(range(saved))


def test_no_store_is_made_on_a_full_disk(small_disk):
    ballast = small_disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    assert shutil.disk_usage(small_disk).free == 0
    with pytest.raises(StoreError, match="make room"):
        opened(small_disk / "run.sqlite")
    ballast.unlink()
    with opened(small_disk / "run.sqlite") as store:
        store.save(success())


@pytest.mark.parametrize("limit", [150_000, 300_000])
def test_a_limit_on_the_size_of_files_loses_nothing(path, limit):
    with Other(path) as other:
        other.ask(f"limit({limit})")
        saved = other.ask("fill_up(store)")
        assert saved > 3
        assert other.ask("len(store.utilities(('a',)))") == saved
        assert "make room" in other.ask("save('b', 0, 0.75)")
        other.ask("limit(-1)")
        assert other.ask("save('b', 0, 0.75)") is None
        assert other.ask("save('a', 5000, 0.25)") is None
        other.ask("store.close()")
    with opened(path) as store:
        assert list(store.utilities(("a",))) == [*range(saved), 5000]
        assert [store.utilities(("a",))[r].utility for r in range(saved)] == [
            r / 7 for r in range(saved)
        ]
        assert store.utilities(("b",))[0].utility == 0.75


# --- several processes

OTHER = """
import resource, sys
from pathlib import Path
from types import SimpleNamespace
from dupre.errors import StoreError
from dupre.training.evaluation import Evaluation, Training
from dupre.training.evaluation_rows import read_stored
from dupre.training.store import Store

def opened(path):
    setting = dict(
        model=SimpleNamespace(description="LogisticRegression()", digest="m1"),
        seed=SimpleNamespace(description="0", digest="s1"),
    )
    return Store(path, setting, dict(a="1", b="2", c="3"))

def save(members, repeat, utility):
    try:
        store.save(Evaluation(Training(tuple(members), repeat), utility))
    except StoreError as error:
        return str(error)

def fill_up(store, most=2000):
    for repeat in range(most):
        if save("a", repeat, repeat / 7):
            return repeat

def limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

def grow(times):
    for number in range(times):
        with opened(path) as growing:
            growing.save(Evaluation(Training(("c",), number), 0.5, warnings=("x" * 9000,)))

def save_on(members):
    for repeat in range(10**6):
        save(members, repeat, repeat / 7)
        print(repeat, flush=True)

if sys.argv[1]:
    path = Path(sys.argv[1])
    store = opened(path)
print("'ready'", flush=True)
for line in sys.stdin:
    try:
        print(repr(eval(line)), flush=True)
    except Exception as error:
        print(repr(repr(error)), flush=True)
"""


class Other:
    """Another process with the same store open, which does what it is told."""

    def __init__(self, path=""):
        self.process = subprocess.Popen(
            [sys.executable, "-c", OTHER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.answer() == "ready"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self.process.stdin.close()
        self.process.stdout.close()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def tell(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

    def answer(self):
        return ast.literal_eval(self.process.stdout.readline())

    def ask(self, what):
        self.tell(what)
        return self.answer()

    def lock(self, members, repeat=0):
        return self.ask(f"store.lock(Training({tuple(members)!r}, {repeat}))")


def test_what_one_process_locks_no_other_can(path):
    with opened(path) as store, Other(path) as other:
        assert store.lock(Training(("a", "b")))
        assert store.lock(Training(("a", "b"))), "it has it already"
        assert not other.lock("ab")
        assert not other.lock("ba"), "the order of members does not matter"
        assert other.lock("ab", repeat=1)
        assert other.lock("a")
        assert not store.lock(Training(("a",)))
        assert not store.lock(Training(("b", "a"), 1))
        store.unlock(Training(("b", "a")))
        assert other.lock("ab")
        assert not store.lock(Training(("a", "b")))


def test_locks_on_changed_data_are_other_locks(path):
    with opened(path, {**OWNERS, "a": "changed"}) as store, Other(path) as other:
        assert store.lock(Training(("a", "b")))
        assert store.lock(Training(("b", "c")))
        assert other.lock("ab")
        assert not other.lock("bc")


def test_locks_end_with_the_store_and_with_the_process_however_it_ends(path):
    with opened(path) as store:
        with Other(path) as other:
            assert other.lock("a")
            assert not store.lock(Training(("a",)))
            other.ask("store.close()")
            assert store.lock(Training(("a",)))
        with Other(path) as other:
            assert other.lock("b")
            assert other.lock("abc")
            assert not other.lock("a")
            assert not store.lock(Training(("b",)))
            other.kill()
            assert store.lock(Training(("b",)))
            assert store.lock(Training(("c", "b", "a")))


def test_a_failed_lock_takes_nothing(path):
    with opened(path) as store, Other(path) as first, Other(path) as second:
        assert first.lock("a")
        assert not second.lock("a")
        first.ask("store.unlock(Training(('a',)))")
        assert store.lock(Training(("a",)))


def test_two_stores_of_one_process_lock_against_each_other_too(path):
    with opened(path) as first, opened(path) as second:
        assert first.lock(Training(("a",)))
        assert not second.lock(Training(("a",)))
        second.unlock(Training(("a",)))
        assert not second.lock(Training(("a",))), "what is another's cannot be given back"
        first.unlock(Training(("a",)))
        assert second.lock(Training(("a",)))


def test_a_lock_that_cannot_be_had_at_all_is_an_error_and_no_lock_of_another(path):
    with opened(path) as store:
        (descriptor,) = (
            int(entry.name)
            for entry in Path("/proc/self/fd").iterdir()
            if os.path.realpath(entry) == f"{path}-claims"
        )
        readonly = os.open(f"{path}-claims", os.O_RDONLY)
        os.dup2(readonly, descriptor)  # what the system refuses to lock
        os.close(readonly)
        with pytest.raises(StoreError):
            store.lock(Training(("a",)))


def test_closing_one_store_of_a_process_keeps_the_locks_of_another(path):
    with opened(path) as store, Other(path) as other:
        assert store.lock(Training(("a",)))
        with opened(path) as second:
            second.lock(Training(("b",)))
        assert not other.lock("a")


def test_a_lock_holds_however_the_store_is_named(path):
    opened(path).close()
    link = path.with_name("link.sqlite")
    link.symlink_to(path)
    with opened(link) as store, Other(path) as other:
        assert store.lock(Training(("a",)))
        assert not other.lock("a")


def test_a_lock_file_that_cannot_be_written_is_a_store_error(path):
    path.with_name(path.name + "-claims").mkdir()
    with pytest.raises(StoreError, match=r"lock file of the store cannot be opened.*may this user"):
        opened(path)


def test_processes_that_save_at_the_same_time_lose_nothing(path):
    job = "[save('{0}', r, r / 7) for r in range(200)] and [save('c', r, {1}) for r in range(20)]"
    with Other(path) as first, Other(path) as second, opened(path) as store:
        first.tell(job.format("a", 1.0))
        second.tell(job.format("b", 2.0))
        assert first.answer() == second.answer() == [None] * 20
        store.refresh()
        read = "sorted((*vars(e.training).values(), e.utility) for e in store.evaluations())"
        for other in (first, second):
            other.ask("store.refresh()")
        assert first.ask(read) == second.ask(read) == eval(read, {"store": store})
        for members in ("a", "b"):
            found = store.utilities((members,))
            assert {r: f.utility for r, f in found.items()} == {r: r / 7 for r in range(200)}
        contested = [f.utility for f in store.utilities(("c",)).values()]
        assert len(contested) == 20
        assert set(contested) <= {1.0, 2.0}
    assert sql(path, "SELECT count(*) FROM evaluations") == [(420,)]


@pytest.mark.parametrize("seed", range(5))
def test_a_process_killed_while_it_saves_leaves_all_that_it_had_saved(path, seed):
    with Other(path) as other:
        other.tell("save_on('ab')")
        count = random.Random(seed).randrange(1, 120)
        lines = [other.process.stdout.readline() for _ in range(count)]
        other.kill()
        lines += other.process.stdout.read().splitlines()
        acknowledged = len(lines)
        assert [int(line) for line in lines] == list(range(acknowledged))
    with opened(path) as store:
        found = store.utilities(("a", "b"))
        assert list(found) == list(range(len(found))), "a prefix of what was saved"
        assert acknowledged <= len(found) <= acknowledged + 1
        assert all(found[repeat].utility == repeat / 7 for repeat in found)
        store.save(success("c"))
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]


def test_opening_waits_for_another_program_that_reads(path):
    filled(path, count=1)
    sql(path, "PRAGMA journal_mode = DELETE")
    with closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM evaluations").fetchone()
        done = threading.Timer(0.2, reader.execute, ["COMMIT"])
        done.start()
        assert len(everything(path)[0]) == 1
        done.join()


def test_making_a_store_waits_for_another_process_that_makes_it(path, monkeypatch):
    """The moment that another process begins is fixed; its lock is real."""
    other = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    done = threading.Timer(0.2, other.execute, ["COMMIT"])

    class Late(sqlite3.Connection):
        def execute(self, query, *values):
            if query == "PRAGMA journal_mode = WAL" and done.ident is None:
                other.execute("BEGIN IMMEDIATE")  # SQLite itself does not wait for this one
                done.start()
            return super().execute(query, *values)

    monkeypatch.setattr(sqlite3, "connect", functools.partial(sqlite3.connect, factory=Late))
    try:
        assert everything(path) == ([], (0, []), {})
    finally:
        done.join()
        other.close()


@pytest.mark.parametrize("use", ["read_stored(path)", "opened(path).close()"])
def test_looking_into_a_store_does_not_endanger_what_the_same_process_saves(path, use):
    with Other(path) as other:
        other.ask("save('a', 0, 0.5)")
        other.ask(f"{use} and None")
        opened(path).close()  # without locks of the other's, this one takes itself for the last
        assert other.ask("save('b', 0, 0.5)") is None
        assert other.ask("len(store.evaluations())") == 2
        other.kill()
    assert len(everything(path)[0]) == 2


def test_a_store_that_another_process_closes_is_not_taken_for_damaged():
    with fresh_path() as path, Other(path) as other:
        other.ask("store.close()")
        other.tell("grow(500)")
        while not select.select([other.process.stdout], [], [], 0)[0]:
            opened(path).close()
        assert other.answer() is None


def test_processes_may_make_the_same_store_at_the_same_time(tmp_path):
    others = [Other() for _ in range(4)]
    try:
        for number in range(25):
            for other in others:
                other.tell(f"opened({str(tmp_path / f'{number}.sqlite')!r}).close()")
            assert [other.answer() for other in others] == [None] * 4
    finally:
        for other in others:
            other.__exit__()


def test_several_are_recorded_all_or_none(tmp_path):
    path = tmp_path / "run.sqlite"
    with opened(path) as store:
        store.record([success("a", utility=0.1), success("ab", utility=0.2)])
        before = store.evaluations()
        broken = failure("c", seconds=None)
        with pytest.raises(StoreError, match="no evaluation"):
            store.record([success("a", utility=0.9), broken], replacing=True)
        assert store.evaluations() == before
    assert everything(path)[0] == before


def test_what_is_replaced_is_gone_and_the_rest_stays(tmp_path):
    path = tmp_path / "run.sqlite"
    with opened(path) as store:
        first = [success("a", r, 0.1 + r) for r in range(2)]
        store.record([*first, success("ab", utility=0.2), failure("b")])
        store.record([success("a", utility=0.9), success("b", utility=0.8)], replacing=True)
        found = {(e.training.members, e.training.repeat): e.utility for e in store.evaluations()}
    expected = {(("a",), 0): 0.9, (("b",), 0): 0.8, (("a", "b"), 0): 0.2}
    assert found == expected
    again = {(e.training.members, e.training.repeat): e.utility for e in everything(path)[0]}
    assert again == expected


def test_a_changed_part_can_be_declared_harmless_but_no_other(tmp_path):
    path = tmp_path / "run.sqlite"
    with opened(path) as store:
        store.save(success())
    mended = {**SETTING, "model": Part("mended", "m2")}
    with pytest.raises(StoreError, match="was made for the model"):
        opened(path, setting=mended)
    reseeded = {**mended, "seed": Part("1", "s2")}
    with pytest.raises(StoreError, match=r"the seed is not the same .* cannot be mixed"):
        restate(path, reseeded, ["model"])
    restate(path, mended, ["model"])
    with opened(path, setting=mended) as store:
        assert store.utilities(("a",))[0].utility == 0.5
