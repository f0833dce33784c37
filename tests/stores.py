"""Stores, what to put into them, and other processes that use them too."""

import ast
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

from dupre.store.origin import Origin
from dupre.store.sqlite import COLUMNS, checksum
from dupre.store.store import Store, Stored
from dupre.training.evaluation import Evaluation, Training
from dupre.utility.describe import Part

SETTING = {"model": Part("LogisticRegression()", "m1"), "seed": Part("0", "s1")}
OWNERS = {"a": "1", "b": "2", "c": "3"}
SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where waiting for the disk takes no time."""


def open_store(path, owners=OWNERS, setting=SETTING, *, by_content=False, **options):
    origin = Origin(setting, owners, by_content=by_content)
    return Store(origin, path and Stored(path, **options))


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


def edit(path, change, *values):
    """Change evaluations as if they had been stored so: with the right checksums."""
    sql(path, f"UPDATE evaluations SET {change}", *values)
    for key, *row, _ in sql(path, f"SELECT id, {COLUMNS} FROM evaluations"):
        sql(path, "UPDATE evaluations SET checksum = ? WHERE id = ?", checksum(row), key)


def everything(path, owners=OWNERS, run="run"):
    """All that a store tells its user."""
    with open_store(path, owners) as store:
        return store.evaluations(), store.batch(run), store.rounds(run)


def utilities(path, members):
    """The utilities of a coalition by repeat, as they are on the disk."""
    with open_store(path) as store:
        return {repeat: e.utility for repeat, e in store.utilities(tuple(members)).items()}


def beside(path):
    """What else is in the directory of a store, its lock file aside."""
    known = {path.name, f"{path.name}-lock"}
    return sorted(file.name for file in path.parent.iterdir() if file.name not in known)


@contextmanager
def fresh_path():
    """For hypothesis, which runs a test many times in one tmp_path."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as directory:
        yield Path(directory, "run.sqlite")


OTHER = """
import resource, sys
from pathlib import Path
from types import SimpleNamespace
from dupre.errors import StoreError
from dupre.training.evaluation import Evaluation, Training
from dupre.store.sqlite import read_stored
from dupre.store.store import Store

def open_store(path):
    setting = dict(
        model=SimpleNamespace(description="LogisticRegression()", digest="m1"),
        seed=SimpleNamespace(description="0", digest="s1"),
    )
    owners = dict(a="1", b="2", c="3")
    origin = SimpleNamespace(
        setting=setting, owners=owners, by_content=False, validation=None, rows={}
    )
    return Store(origin, SimpleNamespace(path=path, accept_model=False, revalidate=False))

def use(new):
    global path, store
    path, store = new, open_store(new)

def save(members, repeat, utility):
    try:
        store.save(Evaluation(Training(tuple(members), repeat), utility))
    except StoreError as error:
        return str(error)

def refusal():
    try:
        store.hold()
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
        with open_store(path) as growing:
            growing.save(Evaluation(Training(("c",), number), 0.5, warnings=("x" * 9000,)))

def save_on(members):
    for repeat in range(10**6):
        save(members, repeat, repeat / 7)
        print(repeat, flush=True)

print("'ready'", flush=True)
for line in sys.stdin:
    try:
        print(repr(eval(line)), flush=True)
    except Exception as error:
        print(repr(repr(error)), flush=True)
"""


class Other:
    """Another process that opens stores and does what it is asked."""

    def __init__(self):
        self.process = subprocess.Popen(
            [sys.executable, "-c", OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ready = False

    def tell(self, what):
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()

    def answer(self):
        if not self.ready:
            self.ready = ast.literal_eval(self.process.stdout.readline()) == "ready"
        return ast.literal_eval(self.process.stdout.readline())

    def ask(self, what):
        self.tell(what)
        return self.answer()

    def use(self, path):
        assert self.ask(f"use({str(path)!r})") is None

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.kill()
        self.process.stdin.close()
        self.process.stdout.close()


@contextmanager
def other_process(path):
    """Another process, which may be killed, with this store open."""
    with closing(Other()) as other:
        other.use(path)
        yield other
