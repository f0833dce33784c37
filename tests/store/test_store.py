import math
import queue
import shutil
import sqlite3
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dupre.errors import DupreError, StoreError
from dupre.training.evaluation import Evaluation, Training
from stores import everything, failure, fresh_path, open_store, sql, success, utilities


def bits(number):
    return struct.pack("<d", number)


# --- what goes in comes out

numbers = st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=20)


@settings(max_examples=25, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=12))
@example([5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, -1.0, 1.0, 0.0])
@example([2.0**53 + 2, -(2.0**63), 2.0**64, 0.1 + 0.2, 1e22, 1e23, 123456789.0])
def test_utilities_come_back_to_the_last_bit(wanted):
    wanted = [utility + 0.0 for utility in wanted]  # -0.0 has a test of its own
    with fresh_path() as path:
        with open_store(path) as store:
            for repeat, utility in enumerate(wanted):
                store.save(success("ab", repeat, utility))
            told = [store.utilities(("a", "b"))[r].utility for r in range(len(wanted))]
        found = utilities(path, "ab").values()
    assert list(map(bits, found)) == list(map(bits, told)) == list(map(bits, wanted))
    assert all(type(utility) is float for utility in found)


@settings(max_examples=25, deadline=None)
@given(
    st.builds(
        Evaluation,
        st.builds(Training, st.just(("a", "b")), st.integers(0, 2**31), st.integers(1, 2**31)),
        numbers.map(lambda number: number + 0.0),
        warnings=st.lists(texts, max_size=3).map(tuple),
        seconds=st.floats(0, 1e9).map(lambda number: number + 0.0),
        seed=st.none() | st.integers(0, 2**130),
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
        with open_store(path) as store:
            store.save(evaluation)
            store.save(failed)
        assert everything(path)[0] == [evaluation, failed]


def test_the_exception_itself_is_not_kept_nor_the_order_of_members(path):
    with open_store(None) as store:
        store.save(failure(cause=ValueError("no")))
        (found,) = store.evaluations()
    assert found.cause is None
    assert found.traceback.endswith("ValueError: no")
    with open_store(path) as store:
        store.save(success("bca", utility=0.25))
    with open_store(path) as store:
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
        with open_store(path, owners) as store:
            for position, members in enumerate(coalitions):
                store.save(success(members, utility=float(position)))
        with open_store(path, owners) as store:
            for position, members in enumerate(coalitions):
                (found,) = store.utilities(members[::-1]).values()
                assert found.utility == position
                assert found.training.members == tuple(sorted(members))
            assert len(store.evaluations()) == len(coalitions)


def test_a_training_is_kept_though_its_text_is_no_valid_unicode(path):
    owners = {"a\udcff": "1", "b": "2"}
    kept = [
        success(["b", "a\udcff"], warnings=("UserWarning: file \udcff",)),
        failure("b", failure="OSError: file \udcff"),
        failure("b", repeat=1, traceback="in file \udcff"),
    ]
    with open_store(path, owners) as store:
        for evaluation in kept:
            store.save(evaluation)
    with open_store(path, owners) as store:
        assert store.utilities(("a\udcff", "b"))[0].utility == 0.5
        assert len(store.evaluations()) == 3


@pytest.mark.parametrize("damage", [{"seconds": math.nan}, {"utility": math.nan}, {"worker": None}])
def test_what_cannot_be_stored_is_never_dropped_in_silence(path, damage):
    with open_store(path) as store:
        try:
            store.save(success(**damage))
        except (DupreError, ValueError, TypeError):
            return
        assert store.evaluations() != []


def test_a_store_in_memory_keeps_everything_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_store(None) as store:
        store.save(success())
        store.hold()
        store.begin("run", [("a",)])
        assert store.utilities(("a",))[0].utility == 0.5
    assert list(tmp_path.iterdir()) == []


# --- one utility per training, failures


def test_the_first_utility_of_a_training_stays_and_zero_has_no_sign(path):
    """SQLite keeps no sign of zero; what a run sees must not depend on whether it was resumed."""
    with open_store(path) as store, open_store(path) as other:
        store.save(success(utility=-0.0))
        assert bits(store.utilities(("a",))[0].utility) == bits(0.0)
        other.save(success(utility=0.75))
        store.save(success(utility=1.0))
        store.refresh()
        assert store.utilities(("a",))[0].utility == other.utilities(("a",))[0].utility == 0.0
    assert bits(utilities(path, "a")[0]) == bits(0.0)
    assert sql(path, "SELECT utility FROM evaluations") == [(0.0,)]


def test_the_file_itself_refuses_a_second_utility_or_both_or_neither(path):
    with open_store(path) as store:
        store.save(success())
    columns = (
        "coalition, contents, validation, repeat, attempt, warnings, seconds, finished, worker, "
        "checksum"
    )
    for utility, failed, reason in [
        ("utility", "NULL", "UNIQUE"),
        ("NULL", "NULL", "CHECK"),
        ("0.5", "'ValueError'", "CHECK"),
    ]:
        insert = f"INSERT INTO evaluations ({columns}, utility, failure) SELECT {columns}, "
        with pytest.raises(sqlite3.IntegrityError, match=reason):
            sql(path, f"{insert} {utility}, {failed} FROM evaluations")


def test_every_failed_attempt_is_kept_the_last_is_told_and_a_success_wins_over_all(path):
    first = failure(attempt=1, failure="TimeoutError: 3 s", traceback="")
    second = failure(attempt=2, failure="ValueError: no", traceback="Traceback\nin f")
    with open_store(path) as store:
        store.save(first)
        store.save(second)
    with open_store(path) as store:
        assert store.failures(("a",)) == {0: second}
        assert store.utilities(("a",)) == {}
        assert store.coalitions() == [("a",)]
        told = sql(path, "SELECT attempt, failure, traceback FROM evaluations ORDER BY id")
        assert told == [(1, "TimeoutError: 3 s", None), (2, "ValueError: no", "Traceback\nin f")]
        for further in (success(utility=0.5), failure(attempt=3), failure(repeat=1)):
            store.save(further)
    with open_store(path) as store:
        assert store.utilities(("a",))[0].utility == 0.5
        assert list(store.failures(("a",))) == [1]
        assert [f.utility for f in store.evaluations()] == [0.5, None]
    assert sql(path, "SELECT count(*) FROM evaluations") == [(5,)]


def test_several_are_recorded_all_or_none_and_what_is_replaced_is_gone(path):
    with open_store(path) as store:
        store.record([success("a", utility=0.1), success("ab", utility=0.2)])
        before = store.evaluations()
        broken = failure("c", seconds=None)
        with pytest.raises(StoreError, match="no evaluation"):
            store.record([success("a", utility=0.9), broken], replacing=True)
        assert store.evaluations() == before
    assert everything(path)[0] == before
    with open_store(path) as store:
        first = [success("a", r, 0.1 + r) for r in range(2)]
        store.record([*first, success("ab", utility=0.2), failure("b")])
        store.record([success("a", utility=0.9), success("b", utility=0.8)], replacing=True)
        found = store.evaluations()
    assert found == everything(path)[0]
    assert {(*e.training.members, e.training.repeat): e.utility for e in found} == {
        ("a", 0): 0.9,
        ("b", 0): 0.8,
        ("a", "b", 0): 0.2,
    }


versions = st.dictionaries(st.sampled_from("abcd"), st.sampled_from("123"), min_size=1)


@settings(max_examples=25, deadline=None)
@given(st.data(), versions, st.lists(versions, min_size=1, max_size=3), st.booleans())
def test_an_evaluation_is_valid_where_all_its_members_are_as_they_were(data, first, others, rows):
    """Any history of owners; the rule of validity in one line is the oracle.

    By other names only the same rows are found, if `rows` alone count.
    """
    made = []
    with fresh_path() as path:
        for owners in [first, *others]:
            owners = {"anchor": "0", **owners}
            with open_store(path, owners, by_content=rows) as store:
                valid = {
                    members: utility
                    for then, members, utility in reversed(made)  # the first one counts
                    if all(owners.get(name) == then[name] for name in members)
                }
                found = {m: store.utilities(m)[0].utility for m in store.coalitions()}
                if rows:
                    assert found.keys() >= valid.keys()
                    for names, utility in found.items():
                        then, members, _ = made[int(utility)]
                        assert sorted(map(owners.get, names)) == sorted(map(then.get, members))
                else:
                    assert found == valid
                members = data.draw(st.sets(st.sampled_from(sorted(owners)), min_size=1))
                names = tuple(sorted(members))
                store.save(success(names, utility=float(len(made))))
                made.append((owners, names, float(len(made))))


# --- batches and rounds


def test_of_each_run_the_latest_batch_is_told(path):
    with open_store(path) as store:
        assert store.batch("run") == []
        store.begin("run", [("b", "a"), ("c",)])
        store.begin("run", [("c", "b", "a"), ("a",), ("b",)])
        store.begin("other", [("b",)])
    with open_store(path) as store:
        assert store.batch("run") == [("a", "b", "c"), ("a",), ("b",)]
        assert store.batch("other") == [("b",)]
        assert store.batch("none") == []


@settings(max_examples=15, deadline=None)
@given(st.dictionaries(st.integers(1, 500), st.floats(), max_size=5))
def test_rounds_come_back_as_they_were(widths):
    with fresh_path() as path:
        with open_store(path) as store:
            for evaluated, width in widths.items():
                store.save_round("run", evaluated, {"widest": width, "r2": -width})
                store.save_round("run", evaluated, {"widest": 0.125})  # the first one stays
        with open_store(path) as store:
            found = store.rounds("run")
            assert store.rounds("other") == {}
    assert list(found) == sorted(widths)
    for evaluated, width in widths.items():
        np.testing.assert_equal(found[evaluated], {"widest": width, "r2": -width})


def test_resampled_utilities_are_kept(path):
    numbers = np.array([0.1, np.nan, 1 / 3])
    with open_store(path) as store:
        store.save(success("a", resampled=numbers))
    with open_store(path) as store:
        np.testing.assert_array_equal(store.utilities("a")[0].resampled, numbers)
        assert store.utilities("a")[0].score.resampled[0] == 0.1


# --- what is finished is stored, wherever


def only_main_file(path):
    """A copy of a store's main file and its lock file, as after a lost log."""
    copy = path.with_name("copy.sqlite")
    for end in ("", "-lock"):
        shutil.copy(f"{path}{end}", f"{copy}{end}")
    return copy


def test_the_main_file_holds_all_that_is_saved_and_replacing_is_no_loss(path):
    with open_store(path) as store:
        for repeat in range(30):
            store.save(success("ab", repeat))
            store.write_at_once(success("b", repeat))
            store.save(success("b", repeat))
        copy = only_main_file(path)
        backup = path.with_name("backup.sqlite")
        sql(path, "VACUUM INTO ?", str(backup))  # as docs/running.md says
    for file in (copy, backup):
        assert len(utilities(file, "ab")) == len(utilities(file, "b")) == 30

    with open_store(path) as store:
        store.record([success("a", repeat) for repeat in range(5)])
        store.record([success("a")], replacing=True)
    assert utilities(path, "a") == {0: 0.5}
    path.unlink()
    with open_store(path) as store:
        assert store.evaluations() == []


def test_what_threads_have_written_is_stored_once_and_not_kept_in_memory(path):
    done = [success("a", repeat, resampled=np.full(200, repeat)) for repeat in range(20)]
    done += [failure("b", repeat) for repeat in range(20)]
    finished = queue.Queue()

    def write(evaluations):
        for evaluation in evaluations:
            store.write_at_once(evaluation)
            finished.put(evaluation)

    with open_store(path) as store, ThreadPoolExecutor(4) as threads:
        writing = [threads.submit(write, done[i::4]) for i in range(4)]
        for _ in done:
            store.save(finished.get(timeout=60))
        for each in writing:
            each.result()
        assert not store._writer._written
        assert len(store.evaluations()) == 40
    assert sql(path, "SELECT count(*) FROM evaluations") == [(40,)]


@pytest.mark.parametrize("change", ["vanished", "changed"])
def test_a_log_that_vanished_or_changed_is_noticed(path, change):
    with open_store(path) as store:
        store.save(success("a"))
        store._db.execute("PRAGMA wal_autocheckpoint = 0")
        store.save(success("b"))
        copy = only_main_file(path)
        log = bytearray(Path(f"{path}-wal").read_bytes())
    if change == "changed":
        log[100] ^= 1  # in its first page
        Path(f"{copy}-wal").write_bytes(log)
    with pytest.raises(StoreError, match=r"ends at number 1, but 2 were written\. Its log 'copy"):
        open_store(copy)
    Path(f"{copy}-lock").unlink()
    assert utilities(copy, "a")
    assert not utilities(copy, "b")


CHANGES = ("coalition = '[\"b\"]'", "contents = 'x' || substr(contents, 2)", "utility = 146540.0")
CHANGES += ("repeat = 4", "seed = 2", "resampled = zeroblob(16)", "finished = '2020-01-01'")


@pytest.mark.parametrize("change", CHANGES)
def test_a_row_that_has_changed_is_noticed(path, change):
    with open_store(path) as store:
        store.save(success("a", seed=1, resampled=np.array([0.25, 0.75])))
        store.save(success("b", utility=-0.0, seconds=1))
    sql(path, f"UPDATE evaluations SET {change} WHERE id = 1")
    with pytest.raises(StoreError, match=r"DELETE FROM evaluations WHERE id = 1"):
        open_store(path)
    sql(path, "DELETE FROM evaluations WHERE id = 1")
    assert utilities(path, "b") == {0: 0.0}


@settings(max_examples=40)
@given(st.floats(0, 1, exclude_max=True), st.integers(0, 7))
def test_a_flipped_bit_changes_no_utility(where, bit):
    with fresh_path() as path:
        with open_store(path) as store:
            for repeat in range(8):
                store.save(success("ab", repeat, utility=repeat / 7, warnings=("w" * 99,)))
        raw = bytearray(path.read_bytes())
        raw[int(where * len(raw))] ^= 1 << bit
        path.write_bytes(raw)
        with suppress(StoreError):
            found = utilities(path, "ab")
            assert found == {repeat: repeat / 7 for repeat in range(8)}
