import ast
import math
import os
import random
import select
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

import dupre.store.store
import stores
from dupre.errors import StoreError
from dupre.store.sqlite import APPLICATION_ID, VERSION, Connection, read_stored
from stores import beside, everything, failure, open_store, other_process, sql, success, utilities

PAGE = 4096


def fill(path, count=60):
    """Make a store with something in every table; its bytes and its contents."""
    with open_store(path) as store:
        store.begin("run", [("a", "b"), ("c",)])
        store.save_round("run", 3, {"widest": 0.25})
        evaluations = [
            success("ab", repeat, math.sin(repeat), seed=10**6, finished="then", worker="here")
            for repeat in range(count)
        ]
        store.record(evaluations)
    assert not path.with_name(path.name + "-wal").exists(), "all is in the one file"
    return path.read_bytes(), everything(path)


# --- the file


def test_any_sqlite_client_can_read_what_was_saved_at_once_and_blocks_nothing(path):
    with open_store(path) as store:
        store.save(success("ba", 1, 0.25, warnings=("W: x",), seed=3, seconds=1.5, worker="w:1"))
        (row,) = sql(
            path,
            "SELECT coalition, repeat, attempt, utility, failure, traceback, warnings, seconds, "
            "seed, worker FROM evaluations",
        )
        assert row == ('["a", "b"]', 1, 1, 0.25, None, None, '["W: x"]', 1.5, 3, "w:1")
        assert sql(path, "SELECT name, fingerprint FROM owners") == list(stores.OWNERS.items())
        told = [(name, part.description, part.digest) for name, part in stores.SETTING.items()]
        assert sql(path, "SELECT part, description, fingerprint FROM setting") == told
        ((moment,),) = sql(path, "SELECT DISTINCT first_seen FROM owners")
        assert datetime.fromisoformat(moment) <= datetime.now(UTC)
    open_store(path).close()
    assert sql(path, "PRAGMA journal_mode") == [("wal",)]
    assert sql(path, "PRAGMA application_id") == [(APPLICATION_ID,)]
    assert sql(path, "PRAGMA user_version") == [(VERSION,)]
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]
    assert struct.pack(">i", APPLICATION_ID) == b"DUPR"

    count = "SELECT count(*) FROM evaluations"
    with open_store(path) as store, closing(sqlite3.connect(path)) as reader:
        store.save(success("a"))
        reader.execute("BEGIN")
        assert reader.execute(count).fetchone() == (2,)
        store.save(success("b"))
        assert reader.execute(count).fetchone() == (2,)
        reader.execute("COMMIT")
        assert reader.execute(count).fetchone() == (3,)


def assert_refused_and_left_alone(path, match):
    before = path.read_bytes()
    for use in (open_store, read_stored):
        with pytest.raises(StoreError, match=match) as caught:
            use(path)
        assert str(path) in str(caught.value)
    assert path.read_bytes() == before
    assert beside(path) == []


@pytest.mark.parametrize("version", [0, VERSION + 1, 2**31 - 1])
def test_another_version_of_the_tables_is_refused_and_left_alone(path, version):
    with open_store(path) as store:
        store.save(success())
    sql(path, f"PRAGMA user_version = {version}")
    assert_refused_and_left_alone(path, f"has version {version} .* knows version {VERSION}")


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("table", ["notes", "evaluations"])
def test_a_foreign_database_is_refused_and_left_alone(path, mode, table):
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {mode}")
        db.execute(f"CREATE TABLE {table} (text)")
        db.execute(f"INSERT INTO {table} VALUES ('precious')")
        db.commit()
    assert_refused_and_left_alone(path, "is no store of dupre; take another file for store=")


def test_a_database_without_tables_and_a_text_file_of_any_size_are_refused_and_left_alone(path):
    sql(path, "PRAGMA application_id = 77")
    sql(path, "PRAGMA user_version = 5")
    assert path.stat().st_size > 0
    assert_refused_and_left_alone(path, "is no store of dupre")
    for size in (1, 2, 15, 16, 17, 99, 100, 101, 511, 512, 513, 4095, 4096, 4097, 100_000):
        path.write_bytes((b"owner,rows,price\nBern,12,30.5\n" * 4000)[:size])
        assert_refused_and_left_alone(path, "is no SQLite file; take another file for store=")


def test_an_empty_file_is_a_new_store_but_paths_that_can_be_none_are_refused(path, tmp_path):
    path.touch()
    with pytest.raises(StoreError, match="is no store of dupre"):
        read_stored(path)
    assert path.read_bytes() == b""
    with open_store(path) as store:
        store.save(success())
    assert len(everything(path)[0]) == 1

    for place, message in [
        (tmp_path, "is a directory; expected a file such as"),
        (tmp_path / "results" / "run.sqlite", r"there is no directory .*results"),
        (tmp_path / ("x" * 300), "cannot be opened"),
    ]:
        with pytest.raises(StoreError, match=message):
            open_store(place)
    with pytest.raises(StoreError, match="there is no store"):
        read_stored(tmp_path / "run.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_of_changed_rows_a_store_tells_the_last_ones(path):
    with open_store(path) as store:
        store.record([failure("ab"), success("ab"), success("a", utility=0.25), success("b")])
    with open_store(path, {"a": "changed", "b": "2"}) as store:
        store.save(success("a", utility=0.75))
        store.save(success("a", 1, utility=0.875))
        assert store.stale == 3
    told = [("".join(found.training.members), found.utility) for found, _ in read_stored(path)]
    assert told == [("ab", None), ("ab", 0.5), ("b", 0.5), ("a", 0.75), ("a", 0.875)]


def test_a_truncated_store_or_one_with_a_page_of_noise_is_refused(path):
    whole, contents = fill(path)
    sizes = {*range(2, 130, 7), *range(130, len(whole) - PAGE, 997), *range(PAGE, len(whole), PAGE)}
    for size in sorted(sizes):
        path.write_bytes(whole[:size])
        with pytest.raises(StoreError, match=r"damaged|no SQLite file"):
            everything(path)
        assert path.read_bytes() == whole[:size]
    for lost in (0, 1, 7, 14, 28, 50, 70, 90, 300, 1000, 4000):  # of its last bytes
        path.write_bytes(whole[: len(whole) - lost])
        with suppress(StoreError):  # refused: as good
            assert everything(path) == contents

    rng = random.Random(0)
    for page in [*range(len(whole) // PAGE)] * 2:
        noise = rng.randbytes(PAGE)
        path.write_bytes(whole[: page * PAGE] + noise + whole[(page + 1) * PAGE :])
        with pytest.raises(StoreError):
            everything(path)


# --- contents that are not ours


JSON_COLUMNS = ("evaluations.coalition", "evaluations.warnings", "batches.coalition")


@pytest.mark.parametrize("where", [*JSON_COLUMNS, "rounds.found"])
def test_junk_in_a_column_of_json_is_refused(path, where):
    table, column = where.split(".")
    fill(path, count=3)
    for junk in ("junk", "", "5", "null", "[" * 100_000, b"\x80\x04K\x01."):
        sql(path, f"UPDATE {table} SET {column} = ?", junk)
        with pytest.raises(StoreError):
            everything(path)


DAMAGES = [
    *(f"SET {name} = 'junk'" for name in ("utility", "seconds", "repeat", "attempt", "seed")),
    "SET coalition = CAST(x'ff' AS TEXT)",
]


@pytest.mark.parametrize("damage", [*DAMAGES, "DROP TABLE evaluations"])
def test_what_is_no_evaluation_is_refused(path, damage):
    fill(path, count=1)
    drops = damage.startswith("DROP")
    sql(path, damage if drops else f"UPDATE evaluations {damage}")
    with pytest.raises(StoreError, match="no such table" if drops else "cannot be read"):
        everything(path)


def test_nothing_in_a_store_is_ever_executed(path, tmp_path):
    """A pickle that would touch a file, in every column that takes one."""
    touched = tmp_path / "touched"
    bomb = b"cposix\nsystem\n(S'touch " + bytes(touched) + b"'\ntR."
    fill(path, count=3)
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


@pytest.mark.parametrize("module", ["origin", "sqlite", "store"])
def test_the_store_knows_nothing_that_could_execute_what_it_reads(module):
    folder = Path(dupre.store.store.__file__).parent
    nodes = list(ast.walk(ast.parse((folder / f"{module}.py").read_text())))
    imported = {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
    imported |= {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    dangerous = {"pickle", "cPickle", "_pickle", "cloudpickle", "joblib", "dill", "marshal"}
    dangerous |= {"shelve", "yaml", "importlib", "runpy"}
    imported.discard("importlib.metadata")  # versions of packages
    assert not {name.partition(".")[0] for name in imported} & dangerous
    called = {getattr(n.func, "id", "") for n in nodes if isinstance(n, ast.Call)}
    assert not called & {"eval", "exec", "compile", "__import__"}
    assert "enable_load_extension" not in {n.attr for n in nodes if isinstance(n, ast.Attribute)}


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


@pytest.mark.parametrize("mode", [0o444, 0o000])
def test_a_file_that_may_not_be_written_or_read_is_refused(place, mode):
    fill(place / "run.sqlite", count=3)
    (place / "run.sqlite").chmod(mode)
    place.chmod(0o777)
    with without_rights(), pytest.raises(StoreError, match="may this user read and write"):
        open_store(place / "run.sqlite")
    (place / "run.sqlite").chmod(0o644)
    assert len(everything(place / "run.sqlite")[0]) == 3


@pytest.mark.parametrize("exists", [False, True])
def test_a_directory_that_may_not_be_written_is_refused(place, exists):
    if exists:
        fill(place / "run.sqlite", count=3)
        (place / "run.sqlite").chmod(0o666)
    place.chmod(0o555)
    with without_rights(), pytest.raises(StoreError, match="may this user read and write"):
        open_store(place / "run.sqlite")
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
    with open_store(path) as store:
        saved, message = fill_up(store)
        assert saved > 3
        assert str(path) in message
        assert "make room on the disk, then call again" in message
        assert "everything stored before is kept" in message
        assert list(store.utilities(("a",))) == list(range(saved))
        with pytest.raises(StoreError, match="make room"):
            store.begin("run", [("a", "b")] * 2000)
        ballast.unlink()
        store.save(success("b", utility=0.75))
        store.begin("run", [("c",)])
    assert utilities(path, "a") == {r: r / 7 for r in range(saved)}
    assert utilities(path, "b") == {0: 0.75}
    assert everything(path)[1] == [("c",)]
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.slow
def test_a_process_killed_on_a_full_disk_loses_nothing(small_disk):
    path, ballast = small_disk / "run.sqlite", small_disk / "ballast"
    ballast.write_bytes(bytes(150_000))
    with other_process(path) as other:
        saved = other.ask("fill_up(store)")
        other.kill()
    assert saved > 3
    ballast.unlink()
    assert list(utilities(path, "a")) == list(range(saved))


def test_no_store_is_made_on_a_full_disk(small_disk):
    ballast = small_disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    assert shutil.disk_usage(small_disk).free == 0
    with pytest.raises(StoreError, match="make room"):
        open_store(small_disk / "run.sqlite")
    ballast.unlink()
    with open_store(small_disk / "run.sqlite") as store:
        store.save(success())


@pytest.mark.slow
def test_a_limit_on_the_size_of_files_loses_nothing(path):
    with other_process(path) as other:
        other.ask("limit(150_000)")
        saved = other.ask("fill_up(store)")
        assert saved > 3
        assert other.ask("len(store.utilities(('a',)))") == saved
        assert "make room" in other.ask("save('b', 0, 0.75)")
        other.ask("limit(-1)")
        assert other.ask("save('b', 0, 0.75)") is None
        assert other.ask("save('a', 5000, 0.25)") is None
        other.ask("store.close()")
    assert utilities(path, "a") == {**{r: r / 7 for r in range(saved)}, 5000: 0.25}
    assert utilities(path, "b") == {0: 0.75}


# --- other processes


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_process_killed_while_it_saves_leaves_all_that_it_had_saved(path, seed):
    with other_process(path) as other:
        other.tell("save_on('ab')")
        count = random.Random(seed).randrange(1, 120)
        lines = [other.process.stdout.readline() for _ in range(count)]
        other.kill()
        lines += other.process.stdout.read().splitlines()
    acknowledged = len(lines)
    assert [int(line) for line in lines] == list(range(acknowledged))
    found = utilities(path, "ab")
    assert acknowledged <= len(found) <= acknowledged + 1
    assert found == {repeat: repeat / 7 for repeat in range(len(found))}, "a prefix, in order"
    with open_store(path) as store:
        store.save(success("c"))
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]


def test_opening_waits_for_another_program_that_reads(path):
    fill(path, count=1)
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

    class Late(Connection):
        def execute(self, query, *values):
            if query == "PRAGMA journal_mode = WAL" and done.ident is None:
                other.execute("BEGIN IMMEDIATE")  # SQLite itself does not wait for this one
                done.start()
            return super().execute(query, *values)

    monkeypatch.setattr("dupre.store.sqlite.Connection", Late)
    try:
        assert everything(path) == ([], [], {})
    finally:
        done.join()
        other.close()


def test_looking_into_a_store_does_not_endanger_what_the_same_process_saves(path):
    with other_process(path) as other:
        for count, use in enumerate(["read_stored(Path(path))", "open_store(path).close()"]):
            assert other.ask(f"save('a', {count}, 0.5)") is None
            assert other.ask(f"{use} and None") is None
            open_store(path).close()  # without locks of the other's, it takes itself for the last
            assert other.ask(f"save('b', {count}, 0.5)") is None
            assert other.ask("len(store.evaluations())") == 2 * count + 2
        other.kill()
    assert len(everything(path)[0]) == 4


def test_a_store_that_another_process_closes_is_not_taken_for_damaged(path):
    with other_process(path) as other:
        other.ask("store.close()")
        other.tell("grow(60)")
        while not select.select([other.process.stdout], [], [], 0)[0]:
            open_store(path).close()
        assert other.answer() is None
