from __future__ import annotations

import functools
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import warnings
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
import threadpoolctl
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

import dupre
from dupre import InputError
from dupre.training.dask import DaskCluster, _outcome
from dupre.training.engines import Dask, Local
from dupre.training.evaluation import Training
from dupre.training.worker_process import ProcessSettings, pack
from dupre.training.workers import LocalProcesses, ThisProcess

linux = pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads /proc")
ONCE = ProcessSettings(retries=0)
A, B, C = Training(("a",)), Training(("b",)), Training(("c",))


@pytest.fixture(autouse=True)
def rows_here(tmp_path, monkeypatch):
    """Where this process puts the rows for its children: nothing may be left there."""
    folder = tmp_path / "rows"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


@pytest.fixture(autouse=True)
def no_child_is_left():
    before = children_of(os.getpid())
    yield
    assert children_of(os.getpid()) <= before  # not even a dead one to be asked about


@functools.cache
def forest():
    """A model with a seed of its own on a few digits of three owners."""
    X, y = load_digits(return_X_y=True)
    few = y < 3
    X, y = X[few][:160], y[few][:160]
    owners = dupre.Owners.from_arrays(X[:60], y[:60], np.repeat(["a", "b", "c"], 20))
    return dupre.ModelUtility(
        RandomForestClassifier(5, max_depth=2), owners, validation=(X[60:], y[60:])
    )


@functools.cache
def network():
    """Trainings that warn."""
    utility = forest()
    model = MLPClassifier((4,), max_iter=5)
    rows = utility.X_val, utility.y_val
    return dupre.ModelUtility(model, utility.owners, validation=rows, metric="neg_log_loss")


def evaluated(utility, trainings, settings=ONCE, jobs=1):
    """Evaluations in the order in which they finished."""
    with closing(LocalProcesses(utility, settings, jobs)) as workers:
        return list(workers.run(iter(trainings)))


def until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise TimeoutError("what was waited for did not happen")
        time.sleep(0.01)
    return found


def meeting(folder, size=2):
    """A utility whose trainings wait for each other: they end only if they run at once."""

    def utility(members):
        (folder / members[0]).touch()
        end = time.monotonic() + 60
        while len(list(folder.iterdir())) < size:
            if time.monotonic() > end:
                raise TimeoutError("nobody else came")
            time.sleep(0.01)
        return float(os.getpid())

    folder.mkdir()
    return utility


def stat_of(pid):
    """State, parent and group of a process; state blank if there is none."""
    try:
        state, parent, group = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:3]
    except OSError:
        return " ", 0, 0
    return state, int(parent), int(group)


def state_of(pid):
    return stat_of(pid)[0]


def gone(pid):
    return state_of(pid) in "Z "


def children_of(pid):
    """Every child of a process, also a dead one nobody has asked about."""
    everyone = (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit())
    return {one for one in everyone if stat_of(one)[1] == pid}


@contextmanager
def meanwhile(action):
    """Do something in a thread; what goes wrong in it goes wrong here."""
    problems = []

    def act():
        try:
            action()
        except Exception as problem:
            problems.append(problem)

    thread = threading.Thread(target=act, daemon=True)
    thread.start()
    yield
    thread.join()
    assert not problems, problems


def killed_when_written(path):
    """Kill the process whose number is written to a file."""
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    os.kill(int(path.read_text()), signal.SIGKILL)


# The same evaluations everywhere


def same(found, expected):
    def key(evaluation):
        return (
            evaluation.training.members,
            evaluation.training.repeat,
            evaluation.utility,
            evaluation.seed,
            evaluation.warnings,
        )

    return sorted(map(key, found)) == sorted(map(key, expected))


def all_trainings(utility):
    names = utility.owners.names
    rows = dupre.game.coalitions.all_coalitions(len(names))
    several = [dupre.game.coalitions.to_names(row, names) for row in rows]
    return [Training(members, repeat) for members in several for repeat in (0, 1)]


@pytest.mark.parametrize("make", [forest, network])
def test_local_processes_give_what_this_process_gives(make):
    utility = make()
    here = list(ThisProcess(utility, ProcessSettings()).run(iter(all_trainings(utility))))
    assert len({found.utility for found in here}) > 5
    assert all(found.seed is not None for found in here)
    assert same(evaluated(utility, all_trainings(utility), jobs=1), here)
    assert same(evaluated(utility, reversed(all_trainings(utility)), jobs=2), here)


def test_warnings_and_failures_come_back_from_another_process():
    def utility(members):
        warnings.warn("did not converge", stacklevel=1)
        if members == ("a",):
            raise ValueError("no rows of class 3\nand more")
        return np.float32(0.5) if members == ("b",) else float("nan")

    here = list(ThisProcess(utility, ONCE).run(iter([A, B, C])))
    there = evaluated(utility, [A, B, C])
    for ours, theirs in zip(here, there, strict=True):
        assert ours.warnings == theirs.warnings == ("UserWarning: did not converge",)
        assert ours.failure == theirs.failure
        assert ours.utility == theirs.utility
    assert there[0].failure == "ValueError: no rows of class 3"
    assert "and more" in there[0].traceback
    assert isinstance(here[0].cause, ValueError)
    assert there[0].cause is None
    assert there[1].utility == 0.5
    assert "finite" in there[2].failure
    assert here[0].worker != there[0].worker


@pytest.mark.parametrize("threads", [1, 2])
def test_blas_has_as_many_threads_everywhere(threads):
    def utility(members):
        import sklearn.neighbors  # noqa: F401  brings OpenMP

        found = {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
        return float(max(found) if len(found) == 1 else -1)

    settings = ProcessSettings(threads=threads, retries=0)
    (child,) = evaluated(utility, [A], settings)
    (here,) = ThisProcess(utility, settings).run(iter([A]))
    assert child.utility == here.utility == threads


# Tasks in, evaluations out


def test_a_slow_training_does_not_hold_up_a_fast_one(tmp_path):
    heard = tmp_path / "heard"

    def utility(members):
        end = time.monotonic() + 60
        while members == ("a",) and not heard.exists():
            if time.monotonic() > end:
                raise TimeoutError("the fast one was not given back")
            time.sleep(0.01)
        return 1.0

    order = []
    with closing(LocalProcesses(utility, ONCE, 2)) as workers:
        for found in workers.run(iter([A, B, C])):
            order.append(found.training)
            heard.touch()
            assert not found.failure
    assert order.index(A) > 0
    assert sorted(order, key=lambda training: training.members) == [A, B, C]


def test_trainings_run_at_the_same_time(tmp_path):
    found = evaluated(meeting(tmp_path / "met"), [A, B], jobs=2)
    assert not any(one.failure for one in found)
    assert len({one.utility for one in found}) == 2  # two processes


def test_no_more_trainings_are_taken_than_there_are_places():
    received, most = 0, 0

    def trainings():
        nonlocal most
        for number in range(1, 13):
            most = max(most, number - received)
            yield Training((f"owner{number}",))

    with closing(LocalProcesses(lambda members: 1.0, ONCE, 2)) as workers:
        for _ in workers.run(trainings()):
            received += 1
    assert received == 12
    assert most <= 2


def test_workers_can_be_run_again_and_without_any_training():
    with closing(LocalProcesses(lambda members: float(os.getpid()), ONCE, 1)) as workers:
        assert list(workers.run(iter([]))) == []
        (first,) = workers.run(iter([A]))
        assert list(workers.run(iter([]))) == []
        (second,) = workers.run(iter([B]))
        assert first.utility == second.utility  # the child has stayed
        assert workers.finished_evaluations() == []


def test_what_is_finished_when_a_run_is_broken_off_is_not_lost(tmp_path):
    go, begun = tmp_path / "go", tmp_path / "begun"

    def utility(members):
        if members == ("b",):
            begun.touch()
        end = time.monotonic() + 60
        while not (begun if members == ("a",) else go).exists() and time.monotonic() < end:
            time.sleep(0.01)
        return 1.0

    with closing(LocalProcesses(utility, ONCE, 2)) as workers:
        for found in workers.run(iter([A, B])):
            assert found.training == A
            break
        assert [one.training for one in workers.finished_evaluations()] == [
            A
        ]  # in case it was not kept
        go.touch()
        until(lambda: len(workers.finished_evaluations()) == 2)
        assert {one.training for one in workers.finished_evaluations()} == {A, B}


# What travels


def test_lambdas_closures_and_classes_of_a_test_travel():
    base = np.arange(4.0)

    class Local:
        def __call__(self, members):
            return float(base.sum() + len(members))

    assert [found.utility for found in evaluated(Local(), [A, B])] == [7.0, 7.0]
    assert evaluated(lambda members: base[2], [A])[0].utility == 2.0
    assert evaluated(functools.partial(lambda base, members: base.max(), base), [A])[0].utility == 3


def holding(thing):
    class Holder:
        def __init__(self):
            self.thing = thing
            self.asked = []

        def __call__(self, members):
            self.asked.append(members)
            return 0.5

    return Holder()


@pytest.mark.parametrize("kind", ["lock", "file", "generator"])
def test_a_utility_that_cannot_travel_is_refused_with_a_way_out(kind):
    owners = forest().owners
    with Path(os.devnull).open("w") as file:
        things = {"lock": threading.Lock(), "file": file, "generator": (x for x in ())}
        utility = holding(things[kind])
        for ways in ({"n_jobs": 2}, {"engine": Local(timeout=60)}):
            with pytest.raises(InputError, match="cannot be sent to worker") as refused:
                dupre.value(owners, utility, budget=7, progress=False, **ways)
            assert "inside the call" in str(refused.value)
            assert "n_jobs=1 without timeout" in str(refused.value)
            assert utility.asked == []
        assert dupre.value(owners, utility, budget=7, progress=False).exact


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_utility_that_cannot_be_loaded_in_a_child_is_refused(jobs, monkeypatch, tmp_path):
    module = types.ModuleType("only_in_this_process")
    exec("class Model:\n    def __call__(self, members):\n        return 1.0", vars(module))
    monkeypatch.setitem(sys.modules, "only_in_this_process", module)
    model = module.Model()
    asked = tmp_path / "asked"

    def utility(members):
        if members:
            asked.touch()
        return model(members)

    with pytest.raises(InputError, match="cannot be loaded in a worker process") as refused:
        evaluated(utility, [A, B], ProcessSettings(), jobs)
    assert "No module named 'only_in_this_process'" in str(refused.value)
    assert "n_jobs=1" in str(refused.value)
    with pytest.raises(InputError, match="cannot be loaded"):
        dupre.value(forest().owners, utility, budget=7, n_jobs=2, progress=False)
    assert not asked.exists()


@linux
def test_a_training_costs_few_bytes_however_many_rows_there_are():
    rows = np.ones(1_000_000)

    def written():
        return int(Path("/proc/self/io").read_text().split("wchar:")[1].split()[0])

    names = tuple(f"hospital number {i}" for i in range(16))
    with closing(LocalProcesses(lambda members: rows.sum(), ONCE, 1)) as workers:
        shipped = [written()]
        for repeat in range(5):
            (found,) = workers.run(iter([Training(names, repeat)]))
            assert found.utility == 1_000_000
            shipped.append(written())
    costs = np.diff(shipped)
    assert costs.min() > len(pickle.dumps(names))  # it does measure what is sent
    assert costs.max() < 10_000


@linux
def test_children_hold_no_copy_of_the_rows(tmp_path):
    def own_megabytes(rows, folder):
        meet = meeting(folder)

        def utility(members):
            assert rows.sum() == len(rows)  # touches every page
            meet(members)
            found = Path("/proc/self/smaps_rollup").read_text().split("Anonymous:")[1]
            return float(found.split()[0]) / 1024

        several = evaluated(utility, [A, B], jobs=2)
        assert not any(found.failure for found in several)
        return max(found.utility for found in several)

    few = own_megabytes(np.ones(10), tmp_path / "few")
    many = own_megabytes(np.ones(2**23), tmp_path / "many")  # 64 MB
    assert many - few < 20


def test_children_can_write_to_arrays_without_others_seeing_it(tmp_path):
    rows = np.zeros((300, 400))
    frozen = np.zeros(50_000)
    frozen.flags.writeable = False
    meet = meeting(tmp_path / "met")

    def utility(members):
        if members == ("c",):
            os.kill(os.getpid(), signal.SIGKILL)
        seen = rows.sum()
        rows[:] = 1.0
        if members in (("a",), ("b",)):
            meet(members)
        return float(seen)

    trainings = [A, B, C, Training(("d",))]
    with closing(LocalProcesses(utility, ONCE, 2)) as workers:
        first = list(workers.run(iter(trainings[:2])))
        assert [found.utility for found in first] == [0.0, 0.0]  # two children at once
        dead = list(workers.run(iter([C, C])))
        assert all(found.failure for found in dead)
        (fresh,) = workers.run(iter(trainings[3:]))
        assert fresh.utility == 0.0  # another child, the same file
    assert rows.sum() == 0


def test_arrays_of_every_kind_arrive_as_they_were():
    rng = np.random.default_rng(0)
    several = [
        rng.normal(size=(7, 3)),
        np.asfortranarray(rng.normal(size=(5, 4))),
        rng.normal(size=(8, 6))[::2, 1::3],
        np.zeros((0, 3)),
        np.array(["x", None, 3], dtype=object),
        np.array(["für", "wen"]),
        np.arange(5, dtype=np.int8),
        rng.normal(size=3).astype(np.float16),
    ]
    expected = [array.tolist() for array in several]

    def utility(members):
        assert [array.tolist() for array in several] == expected
        return 1.0

    assert [found.failure for found in evaluated(utility, [A])] == [""]


@linux
def test_no_room_for_the_rows_says_where_to_put_them(rows_here):
    script = f"""
import resource, numpy as np
from dupre import InputError
from dupre.training.worker_process import pack
import tempfile
tempfile.tempdir = {str(rows_here)!r}
rows = np.ones(100_000)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    pack(lambda members: rows.sum()).to_file()
except InputError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "do not fit" in found.stdout
    assert "TMPDIR" in found.stdout


def test_the_pickle_of_a_utility_leaves_its_rows_out():
    rows = np.ones(1_000_000)
    ours = pack(lambda members: rows.sum())
    assert len(ours.pickled) < 10_000
    assert sum(map(len, ours.buffers)) == rows.nbytes
    assert np.shares_memory(ours.buffers[0], rows)


# What trainings print and read


def test_what_trainings_print_goes_to_stderr(capfd, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)

    def utility(members):
        print("by print")
        os.write(1, b"by the system\n")
        subprocess.run(["echo", "by a child"], check=True)
        print("much " * 30_000)
        print("by print, last")
        return 1.0

    found = evaluated(utility, [A, B, C])
    assert [one.utility for one in found] == [1.0, 1.0, 1.0]
    out, err = capfd.readouterr()
    assert out == ""
    for text in ("by print\n", "by the system\n", "by a child\n", "by print, last\n"):
        assert err.count(text) == 3


@pytest.mark.parametrize("how", ["sys.stdin", "a child"])
def test_a_training_that_reads_stdin_finds_nothing_there(how):
    def utility(members):
        if how == "sys.stdin":
            return float(len(sys.stdin.read()))
        return float(len(subprocess.run(["cat"], capture_output=True, check=True).stdout))

    (found,) = evaluated(utility, [A], ProcessSettings(timeout=3, retries=0))
    assert (found.utility, found.failure) == (0.0, "")


# Trainings that end badly


def test_a_training_that_takes_too_long_is_killed_and_the_next_one_runs(tmp_path):
    pid = tmp_path / "pid"

    def utility(members):
        if members == ("a",):
            pid.write_text(f"{os.getpid()}\n")
            time.sleep(600)
        return 1.0

    slow, fast = evaluated(utility, [A, B], ProcessSettings(timeout=2))
    assert slow.training == A  # not tried again: it would take as long
    assert slow.failure == "timeout: not finished after 2 seconds"
    assert slow.seconds >= 2
    assert fast.utility == 1.0
    assert gone(int(pid.read_text()))


@linux
def test_what_a_training_has_started_is_killed_with_it(tmp_path):
    note = tmp_path / "note"

    def utility(members):
        if os.fork() == 0:
            note.with_name("pid").write_text(f"{os.getpid()}\n")
            time.sleep(8)
            note.write_text("still there")
            os._exit(0)
        time.sleep(600)

    (found,) = evaluated(utility, [A], ProcessSettings(timeout=2, retries=0))
    assert "timeout" in found.failure
    until(lambda: gone(int((tmp_path / "pid").read_text())))
    assert not note.exists()


def dying(times, folder, how=lambda: os.kill(os.getpid(), signal.SIGKILL)):
    """A utility whose process dies the first few times, and the file that counts them."""
    count = folder / "count"
    count.write_text("")

    def utility(members):
        with count.open("a") as file:
            file.write("x")
        if len(count.read_text()) <= times:
            how()
        return 1.0

    return utility, count


@linux
def test_a_process_that_dies_is_noticed_though_others_it_has_started_live(tmp_path):
    note = tmp_path / "note"

    def utility(members):
        if members == ("a",):
            if os.fork() == 0:
                time.sleep(4)
                note.write_text("still there")
                os._exit(0)
            os.kill(os.getpid(), signal.SIGKILL)
        return 1.0

    failed, after = evaluated(utility, [A, B], ONCE)
    assert "signal 9" in failed.failure
    assert after.utility == 1.0
    assert not note.exists()


def test_a_training_whose_process_dies_is_tried_again(tmp_path):
    utility, _ = dying(1, tmp_path)
    found, after = evaluated(utility, [A, B], ProcessSettings())
    assert (found.utility, found.training) == (1.0, Training(("a",), attempt=2))
    assert (after.utility, after.training) == (1.0, B)


@pytest.mark.parametrize("retries", [0, 2])
def test_a_training_that_always_dies_fails_with_the_reason(tmp_path, retries):
    utility, count = dying(99, tmp_path)
    (found,) = evaluated(utility, [Training(("a",), attempt=4)], ProcessSettings(retries=retries))
    assert found.utility is None
    assert f"died (signal 9) in attempt {4 + retries}" in found.failure
    assert found.training.attempt == 4 + retries
    assert len(count.read_text()) == 1 + retries


def test_a_training_that_ends_its_process_fails_with_the_exit_code(tmp_path):
    utility, _ = dying(1, tmp_path, how=lambda: os._exit(7))
    failed, after = evaluated(utility, [A, B], ONCE)
    assert "died (exit code 7)" in failed.failure
    assert after.utility == 1.0


def test_a_training_that_calls_exit_fails_with_the_exit_code(tmp_path):
    utility, _ = dying(1, tmp_path, how=lambda: sys.exit(7))
    failed, after = evaluated(utility, [A, B], ONCE)
    assert failed.utility is None
    assert "7" in failed.failure
    assert "signal" not in failed.failure
    assert after.utility == 1.0


def test_a_training_that_calls_exit_does_not_end_this_process(tmp_path):
    utility, _ = dying(1, tmp_path, how=lambda: sys.exit(7))
    try:
        failed, after = ThisProcess(utility, ONCE).run(iter([A, B]))
    except SystemExit:
        pytest.fail("the whole run was ended by one training")
    assert "7" in failed.failure
    assert after.utility == 1.0


def test_a_child_killed_from_outside_amid_a_training_is_replaced(tmp_path):
    pid = tmp_path / "pid"

    def utility(members):
        if members == ("a",) and not pid.exists():
            pid.write_text(f"{os.getpid()}\n")
            time.sleep(600)
        return 1.0

    with meanwhile(lambda: killed_when_written(pid)):
        found, after = evaluated(utility, [A, B], ProcessSettings())
    assert (found.utility, found.training.attempt) == (1.0, 2)
    assert (after.utility, after.training.attempt) == (1.0, 1)


def test_a_child_killed_while_idle_costs_no_attempt():
    with closing(LocalProcesses(lambda members: float(os.getpid()), ONCE, 1)) as workers:
        (first,) = workers.run(iter([A]))
        os.kill(int(first.utility), signal.SIGKILL)
        until(lambda: workers._children[0]._child.poll() is not None)
        (second,) = workers.run(iter([B]))
    assert second.failure == ""
    assert second.training == B
    assert second.utility != first.utility


def test_a_child_killed_while_idle_is_replaced():
    with closing(
        LocalProcesses(lambda members: float(os.getpid()), ProcessSettings(), 1)
    ) as workers:
        (first,) = workers.run(iter([A]))
        os.kill(int(first.utility), signal.SIGKILL)
        until(lambda: gone(int(first.utility)))
        (second,) = workers.run(iter([B]))
    assert second.failure == ""
    assert second.utility != first.utility


# The end


@linux
def test_close_leaves_no_process_and_no_file_behind(rows_here, tmp_path):
    before = children_of(os.getpid())
    meet = meeting(tmp_path / "met")

    def utility(members):
        if members in (("a",), ("b",)):
            return meet(members)
        meet(members)
        time.sleep(600)
        return 1.0

    workers = LocalProcesses(utility, ONCE, 3)
    busy = workers.run(iter([A, B, C]))  # c goes on sleeping
    pids = {int(next(busy).utility), int(next(busy).utility)}
    ours = children_of(os.getpid()) - before
    assert pids <= ours
    assert len(ours) == 3
    assert len(list(rows_here.iterdir())) == 1
    workers.close()
    assert not list(rows_here.iterdir())
    assert children_of(os.getpid()) == before


def test_workers_can_be_closed_before_anything_runs(rows_here):
    LocalProcesses(lambda members: 1.0, ONCE, 2).close()
    assert not list(rows_here.iterdir())


@linux
def test_children_and_rows_go_when_the_parent_is_killed(tmp_path):
    folder = tmp_path / "temp"
    folder.mkdir()
    script = f"""
import os, time
from pathlib import Path
from dupre.training.evaluation import Training
from dupre.training.worker_process import ProcessSettings
from dupre.training.workers import LocalProcesses

class Busy:
    def __call__(self, members):
        Path({str(tmp_path)!r}, members[0]).write_text(f"{{os.getpid()}}\\n")
        if members[0] != "idle":
            time.sleep(600)

workers = LocalProcesses(Busy(), ProcessSettings(), 3)
for found in workers.run(Training((name,)) for name in ("a", "b", "idle")):
    if found.training.members == ("idle",):
        continue
"""
    environment = {**os.environ, "TMPDIR": str(folder)}
    parent = subprocess.Popen([sys.executable, "-c", script], env=environment)
    try:
        notes = [tmp_path / name for name in ("a", "b", "idle")]
        until(lambda: all(note.exists() and note.read_text() for note in notes))
        pids = [int(note.read_text()) for note in notes]
        assert len(list(folder.glob("dupre-*.rows"))) == 1
    finally:
        parent.kill()
        parent.wait()
    until(lambda: all(gone(pid) for pid in pids))
    until(lambda: not list(folder.glob("dupre-*")))


# Dask


@contextmanager
def dask_cluster(folder):
    """A scheduler and two workers, each a process; the client and the workers."""
    from distributed import Client

    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scheduler.json"
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
    worker = ["worker", "--scheduler-file", str(file), "--host", "127.0.0.1", "--nthreads", "1"]
    worker += ["--no-nanny", "--local-directory", str(folder), "--death-timeout", "60"]
    processes = [started_dask(folder, *scheduler, "--idle-timeout", "600")]
    try:
        until(file.exists)
        processes += [started_dask(folder, *worker, "--name", str(i)) for i in range(2)]
        with Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(2, timeout=60)
            yield client, processes[1:]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def started_dask(folder, kind, *options):
    """One process of a cluster, its log in a file."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
    command += ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    environment = {**os.environ, "TMPDIR": str(folder)}
    with (folder / f"{kind}.log").open("ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    pytest.importorskip("distributed")
    with dask_cluster(tmp_path_factory.mktemp("dask")) as (client, workers):
        yield client, workers


def on_dask(client, utility, trainings, settings=ONCE):
    with closing(DaskCluster(utility, settings, client)) as workers:
        return list(workers.run(iter(trainings)))


def test_dask_gives_what_this_process_gives(cluster):
    client, _ = cluster
    utility = network()
    here = list(ThisProcess(utility, ProcessSettings()).run(iter(all_trainings(utility))))
    assert same(on_dask(client, utility, all_trainings(utility)), here)


def test_values_are_the_same_to_the_last_digit_wherever_trainings_run(cluster):
    client, _ = cluster
    utility = forest()
    runs = [
        dupre.value(utility.owners, utility, budget=6, repeats=2, progress=False, **ways)
        for ways in (
            {},
            {"n_jobs": 2},
            {"engine": Dask(client)},
            {"engine": Local(timeout=600)},
        )
    ]
    for other in runs[1:]:
        np.testing.assert_array_equal(other.mean, runs[0].mean)
        np.testing.assert_array_equal(other.covariance, runs[0].covariance)
        np.testing.assert_array_equal(other.rounds, runs[0].rounds)
        for column in ("coalition", "repeat", "utility", "seed"):
            ours, theirs = (
                run.evaluations.sort_values(["coalition", "repeat"])[column].tolist()
                for run in (runs[0], other)
            )
            assert ours == theirs


def test_a_client_need_not_be_the_default_one(cluster):
    client, _ = cluster
    script = f"""
from contextlib import closing
from distributed import Client
from dupre.training.evaluation import Training
from dupre.training.dask import DaskCluster
from dupre.training.worker_process import ProcessSettings
with Client({client.scheduler.address!r}, set_as_default=False) as client:
    with closing(DaskCluster(len, ProcessSettings(), client)) as workers:
        print([found.utility for found in workers.run(iter([Training(("a", "b"))]))])
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout == "[2.0]\n", found.stderr


def test_dask_runs_trainings_at_the_same_time_in_children_of_both_workers(cluster, tmp_path):
    client, workers = cluster
    found = on_dask(client, meeting(tmp_path / "met"), [A, B])
    assert not any(one.failure for one in found)
    assert len({one.utility for one in found}) == 2
    assert not {one.utility for one in found} & {float(worker.pid) for worker in workers}


def test_dask_takes_no_more_trainings_than_it_has_threads(cluster):
    client, _ = cluster
    received, most = 0, 0

    def trainings():
        nonlocal most
        for number in range(1, 13):
            most = max(most, number - received)
            yield Training((f"owner{number}",))

    with closing(DaskCluster(lambda members: 1.0, ONCE, client)) as workers:
        for _ in workers.run(trainings()):
            received += 1
    assert received == 12
    assert most <= 2


def test_dask_streams_what_is_finished(cluster, tmp_path):
    client, _ = cluster
    heard = tmp_path / "heard"

    def utility(members):
        end = time.monotonic() + 60
        while members == ("a",) and not heard.exists():
            if time.monotonic() > end:
                raise TimeoutError("the fast one was not given back")
            time.sleep(0.01)
        return 1.0

    with closing(DaskCluster(utility, ONCE, client)) as workers:
        order = []
        for found in workers.run(iter([A, B])):
            order.append((found.training, found.failure))
            heard.touch()
    assert order == [(B, ""), (A, "")]


def test_trainings_may_fail_time_out_and_die_on_dask(cluster, tmp_path):
    client, _ = cluster
    utility, _ = dying(1, tmp_path)

    def any_of(members):
        if members == ("a",):
            raise ValueError("no")
        if members == ("b",):
            time.sleep(600)
        return utility(members)

    found = {
        one.training.members: one
        for one in on_dask(client, any_of, [A, B, C], ProcessSettings(timeout=3))
    }
    assert found["a",].failure == "ValueError: no"
    assert found["b",].failure == "timeout: not finished after 3 seconds"
    assert (found["c",].utility, found["c",].training.attempt) == (1.0, 2)


def test_dask_workers_keep_no_process_and_no_rows(cluster):
    client, _ = cluster
    pids = {int(found.utility) for found in on_dask(client, lambda members: os.getpid(), [A, B, C])}
    assert pids
    until(lambda: all(gone(pid) for pid in pids))
    assert not list_of_rows(client)


def list_of_rows(client):
    """Files with rows that the workers of a cluster have left."""

    def rows():
        return [str(path) for path in Path(tempfile.gettempdir()).glob("dupre-*")]

    return [path for found in client.run(rows).values() for path in found]


def test_nothing_goes_on_running_on_dask_when_a_run_is_broken_off(cluster, tmp_path):
    client, workers = cluster
    pid = tmp_path / "pid"

    def utility(members):
        if members == ("a",):
            pid.write_text(f"{os.getpid()}\n")
            time.sleep(600)
        end = time.monotonic() + 60
        while not pid.exists() and time.monotonic() < end:
            time.sleep(0.01)
        return 1.0

    with closing(DaskCluster(utility, ONCE, client)) as ours:
        assert next(ours.run(iter([A, B]))).training == B
    until(lambda: gone(int(pid.read_text())))
    until(lambda: not any(client.processing().values()))
    assert not list_of_rows(client)
    for worker in workers:
        assert not children_of(worker.pid)


def test_ctrl_c_takes_back_what_has_not_begun_on_dask(cluster, tmp_path):
    client, workers = cluster
    go, ran = tmp_path / "go", tmp_path / "ran"

    def others():
        while not go.exists():
            time.sleep(0.01)

    def utility(members):
        if members:
            ran.touch()
        return 1.0

    def interrupt():
        until(lambda: client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) > 4)
        os.kill(os.getpid(), signal.SIGINT)

    at_work = [client.submit(others, workers=[at], pure=False) for at in client.nthreads()]
    until(lambda: all(client.processing().values()))
    with meanwhile(interrupt), pytest.raises(dupre.Interrupted) as stopped:
        dupre.value(
            forest().owners,
            utility,
            budget=7,
            empty=1.0,
            progress=False,
            engine=Dask(client),
        )
    go.touch()
    client.gather(at_work)
    until(lambda: not any(client.processing().values()))
    assert stopped.value.valuer.evaluated == 0
    assert not ran.exists()
    assert not list_of_rows(client)
    assert not any(children_of(worker.pid) for worker in workers)


def test_a_utility_that_cannot_be_loaded_on_dask_is_refused(cluster, monkeypatch):
    client, _ = cluster
    module = types.ModuleType("only_in_this_process")
    exec("def model(members):\n    return 1.0", vars(module))
    monkeypatch.setitem(sys.modules, "only_in_this_process", module)
    model = module.model
    with pytest.raises(InputError, match="cannot be loaded in a worker process"):
        on_dask(client, lambda members: model(members), [A])
    with pytest.raises(InputError, match="cannot be sent to worker processes"):
        on_dask(client, holding(threading.Lock()), [A])


def test_an_asynchronous_client_is_refused(cluster):
    from distributed import Client

    client, _ = cluster
    utility = holding(None)

    async def refused():
        async with Client(client.scheduler.address, asynchronous=True) as other:
            with pytest.raises(InputError, match="not asynchronous"):
                Dask(other)

    client.sync(refused)
    with pytest.raises(InputError, match="not both"):
        dupre.value(forest().owners, utility, budget=7, n_jobs=2, engine=Dask(client))
    assert utility.asked == []


@linux
def test_a_dask_worker_killed_amid_a_run_changes_nothing(tmp_path):
    pytest.importorskip("distributed")
    utility = forest()
    folder = tmp_path / "cluster"

    class Slower:
        """The forest; its second training says where it runs, and waits for the worst."""

        owners = utility.owners

        def __call__(self, members):
            note = tmp_path / "parent"
            if len(members) == 2 and not note.exists():
                note.with_name("part").write_text(f"{os.getppid()}\n")
                note.with_name("part").rename(note)
                time.sleep(600)
            return utility(members)

    ours = dupre.value(utility.owners, utility, budget=6, repeats=1, progress=False)
    with dask_cluster(folder) as (client, workers):
        note = tmp_path / "parent"
        with meanwhile(lambda: killed_when_written(note)):
            theirs = dupre.value(
                utility.owners,
                Slower(),
                budget=6,
                progress=False,
                engine=Dask(client),
            )
        assert int(note.read_text()) in {worker.pid for worker in workers}
        until(lambda: len(client.nthreads()) == 1)
        until(lambda: not list_of_rows(client))  # those of the dead one are in the same place
    np.testing.assert_array_equal(theirs.mean, ours.mean)
    np.testing.assert_array_equal(theirs.covariance, ours.covariance)
    assert theirs.evaluated == ours.evaluated
    assert not theirs.failures


def test_settings_of_scikit_learn_reach_the_workers():
    import sklearn

    def utility(members):
        return float(sklearn.get_config()["transform_output"] == "pandas")

    with (
        sklearn.config_context(transform_output="pandas"),
        closing(LocalProcesses(utility, ONCE, 1)) as workers,
    ):
        (found,) = workers.run(iter([A]))
    assert found.utility == 1.0


def test_rows_are_not_sent_twice():
    owners = dupre.Owners.from_arrays(
        np.random.default_rng(0).normal(size=(2_000, 50)), [0, 1] * 1_000, [0, 1] * 1_000
    )
    utility = dupre.ModelUtility(
        RandomForestClassifier(), owners, validation=(owners.X[:9], owners.y[:9])
    )
    sent = pack(utility)
    assert len(sent.pickled) + sum(map(len, sent.buffers)) < 1.1 * (
        owners.X.nbytes + 3 * owners.y.nbytes
    )


def test_a_result_that_dies_with_its_worker_is_lost_not_an_error():
    distributed = pytest.importorskip("distributed")

    class Forgotten:
        """Finished, but the worker that holds the result is gone when it is fetched."""

        status = "finished"

        def exception(self):
            return None

        def result(self):
            raise distributed.CancelledError("already forgotten")

    assert _outcome(Forgotten(), Training(("a",))) is None
