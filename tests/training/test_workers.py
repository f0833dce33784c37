import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import types
import warnings
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import numpy as np
import pytest
import threadpoolctl
from sklearn.neural_network import MLPClassifier

import dupre
from dupre import InputError
from dupre.game.coalitions import all_coalitions, to_names
from dupre.training import worker_process
from dupre.training.dask import DaskCluster
from dupre.training.evaluation import Training
from dupre.training.packed_utility import pack
from dupre.training.worker_process import ProcessSettings
from dupre.training.workers import LocalProcesses, ThisProcess
from owners_and_games import make_owners
from stores import sql
from trainings import ONCE, A, B, C, end_badly, forest, holding, meeting
from workers import children_of, is_gone, kill_when_written, linux, meanwhile, read_pid, wait_for


@pytest.fixture(autouse=True)
def rows_here(tmp_path, monkeypatch):
    """Where this process puts the rows for its children: nothing may be left there."""
    folder = tmp_path / "rows"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


@pytest.fixture(autouse=True)
def no_child_is_left(request):
    if "dask" in request.node.name or "cluster" in request.fixturenames:
        request.getfixturevalue("cluster")  # whose processes stay
    before = children_of(os.getpid())
    yield
    assert children_of(os.getpid()) <= before  # not even a dead one to be asked about


def train(utility, trainings, settings=ONCE, jobs=1):
    """Evaluations of children in the order in which they finished."""
    with closing(LocalProcesses(utility, settings, jobs)) as workers:
        return list(workers.run(iter(trainings)))


# The same on this machine and on a cluster, two trainings at a time


def network():
    """Trainings that warn."""
    utility = forest()
    model = MLPClassifier((4,), max_iter=5)
    rows = utility.X_val, utility.y_val
    return dupre.ModelUtility(model, utility.owners, validation=rows, metric="neg_log_loss")


def all_trainings(utility):
    names = utility.owners.names
    several = [to_names(row, names) for row in all_coalitions(len(names))]
    return [Training(members, repeat) for members in several for repeat in (0, 1)]


def contents(evaluations):
    """What must be the same of evaluations wherever they were made."""
    return sorted(
        (e.training.members, e.training.repeat, e.utility, e.seed, e.warnings) for e in evaluations
    )


@pytest.fixture(params=["local", "dask"])
def start(request):
    """callable(utility) -> workers that train two coalitions at a time."""
    if request.param == "local":
        return lambda utility: LocalProcesses(utility, ONCE, 2)
    client, _ = request.getfixturevalue("cluster")
    return lambda utility: DaskCluster(utility, ONCE, client)


def test_trainings_elsewhere_give_what_this_process_gives(start):
    utility = network()  # with seeds and warnings
    here = list(ThisProcess(utility, ProcessSettings()).run(iter(all_trainings(utility))))
    assert len({found.utility for found in here}) > 5
    assert all(found.seed is not None for found in here)
    with closing(start(utility)) as workers:
        there = list(workers.run(reversed(all_trainings(utility))))
    assert contents(there) == contents(here)


def test_trainings_run_two_at_a_time_in_processes_that_stay(start, tmp_path):
    finished, most, meet = [], 0, meeting(tmp_path / "met")

    def utility(members):
        return meet(members) if members in (("a",), ("b",)) else float(os.getpid())

    def trainings():
        nonlocal most
        for number in range(1, 13):
            most = max(most, number - len(finished))
            yield Training((f"owner{number}",))

    with closing(start(utility)) as workers:
        assert list(workers.run(iter([]))) == []
        first, second = list(workers.run(iter([A, B])))  # they meet
        workers.on_finished = finished.append
        received = len(list(workers.run(trainings())))
        third, fourth = list(workers.run(iter([A, B])))
        assert {first.utility, second.utility} >= {third.utility, fourth.utility}  # they stay
        assert workers.finished_evaluations() == []
    assert not first.failure
    assert len({first.utility, second.utility} - {float(os.getpid())}) == 2
    assert received == 12
    assert most <= 2  # no more are taken than there are places


def test_a_slow_training_does_not_hold_up_a_fast_one(start, tmp_path):
    heard = tmp_path / "heard"

    def utility(members):
        wait_for(lambda: members != ("a",) or heard.exists())
        return 1.0

    order = []
    with closing(start(utility)) as workers:
        for found in workers.run(iter([A, B, C])):
            order.append(found.training)
            heard.touch()
            assert not found.failure
    assert order.index(A) > 0
    assert sorted(order, key=lambda training: training.members) == [A, B, C]


def test_a_utility_that_cannot_be_sent_or_loaded_elsewhere_is_refused(start, monkeypatch):
    module = types.ModuleType("only_in_this_process")
    exec("class Model:\n    def __call__(self, members):\n        return 1.0", vars(module))
    monkeypatch.setitem(sys.modules, "only_in_this_process", module)
    model = module.Model()
    with (
        pytest.raises(InputError, match="cannot be loaded in a worker process") as refused,
        closing(start(lambda members: model(members))) as workers,
    ):
        list(workers.run(iter([A, B])))
    assert "No module named 'only_in_this_process'" in str(refused.value)
    assert "n_jobs=1" in str(refused.value)
    with Path(os.devnull).open("w") as file:
        for thing in (threading.Lock(), file, (x for x in ())):
            with pytest.raises(InputError, match="cannot be sent to worker processes") as refused:
                start(holding(thing))
            assert "inside the call" in str(refused.value)
            assert "n_jobs=1 without timeout" in str(refused.value)


@pytest.mark.parametrize("options", [{"n_jobs": 2}, {"engine": dupre.engines.Local(timeout=60)}])
def test_nothing_is_trained_here_if_a_utility_cannot_be_sent(options):
    utility = holding(threading.Lock())
    with pytest.raises(InputError, match="cannot be sent"):
        dupre.value(forest().owners, utility, budget=7, progress=False, **options)
    assert utility.asked == []


# Children of this process


def test_warnings_and_failures_come_back_from_another_process():
    def utility(members):
        warnings.warn("did not converge", stacklevel=1)
        if members == ("a",):
            raise ValueError("no rows of class 3\nand more")
        return np.float32(0.5) if members == ("b",) else float("nan")

    here = list(ThisProcess(utility, ONCE).run(iter([A, B, C])))
    there = train(utility, [A, B, C])
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


def test_blas_has_as_many_threads_everywhere():
    def utility(members):
        import sklearn.neighbors  # noqa: F401  brings OpenMP

        found = {pool["num_threads"] for pool in threadpoolctl.threadpool_info()}
        return float(max(found) if len(found) == 1 else -1)

    settings = ProcessSettings(threads=2, retries=0)
    (child,) = train(utility, [A], settings)
    (here,) = ThisProcess(utility, settings).run(iter([A]))
    assert child.utility == here.utility == 2


def test_what_is_finished_when_a_run_is_broken_off_is_not_lost(tmp_path):
    go, begun = tmp_path / "go", tmp_path / "begun"

    def utility(members):
        if members == ("b",):
            begun.touch()
        wait_for((begun if members == ("a",) else go).exists)
        return 1.0

    with closing(LocalProcesses(utility, ONCE, 2)) as workers:
        for found in workers.run(iter([A, B])):
            assert found.training == A
            break
        assert [one.training for one in workers.finished_evaluations()] == [A]  # perhaps not kept
        go.touch()
        wait_for(lambda: len(workers.finished_evaluations()) == 2)
        assert {one.training for one in workers.finished_evaluations()} == {A, B}


@linux
def test_a_training_costs_few_bytes_and_children_hold_no_copy_of_the_rows(tmp_path):
    rows = np.ones(2**23)  # 64 MB
    meet = meeting(tmp_path / "met")

    def utility(members):
        if members[0] in "ab":
            meet(members)
        found = Path("/proc/self/smaps_rollup").read_text().split("Anonymous:")[1]
        before = float(found.split()[0]) / 1024
        assert rows.sum() == len(rows)  # touches every page
        found = Path("/proc/self/smaps_rollup").read_text().split("Anonymous:")[1]
        return float(found.split()[0]) / 1024 - before

    def written():
        return int(Path("/proc/self/io").read_text().split("wchar:")[1].split()[0])

    names = tuple(f"hospital number {i}" for i in range(16))
    with closing(LocalProcesses(utility, ONCE, 2)) as workers:
        assert all(found.utility < 20 for found in workers.run(iter([A, B])))
        before = written()
        (found,) = workers.run(iter([Training(names)]))
        assert found.failure == ""
        assert len("".join(names)) < written() - before < 10_000


def test_children_can_write_to_arrays_without_others_seeing_it(tmp_path):
    rows = np.zeros((300, 400))
    meet = meeting(tmp_path / "met")

    def utility(members):
        if members == ("c",):
            os.kill(os.getpid(), signal.SIGKILL)
        seen = rows.sum()
        rows[:] = 1.0
        if members in (("a",), ("b",)):
            meet(members)
        return float(seen)

    with closing(LocalProcesses(utility, ONCE, 2)) as workers:
        assert [found.utility for found in workers.run(iter([A, B]))] == [0.0, 0.0]
        assert all(found.failure for found in workers.run(iter([C, C])))
        (other,) = workers.run(iter([Training(("d",))]))
        assert other.utility == 0.0  # another child, the same file
    assert rows.sum() == 0


def test_what_trainings_print_goes_to_stderr_and_stdin_is_empty(capfd, monkeypatch):
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)

    def utility(members):
        print("by print")
        os.write(1, b"by the system\n")
        subprocess.run(["echo", "by a child"], check=True)
        print("much " * 30_000)
        print("by print, last")
        ours, theirs = sys.stdin.read(), subprocess.run(["cat"], capture_output=True, check=True)
        return float(len(ours) + len(theirs.stdout))

    found = train(utility, [A, B, C], ProcessSettings(timeout=60, retries=0))
    assert [one.utility for one in found] == [0.0, 0.0, 0.0]
    out, err = capfd.readouterr()
    assert out == ""
    for text in ("by print\n", "by the system\n", "by a child\n", "by print, last\n"):
        assert err.count(text) == 3


# Trainings that end badly


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "retries", "attempts", "failure"),
    [
        ("exits", 2, 1, "SystemExit: 7"),
        ("ends", 2, 3, "died (exit code 7) in attempt 6"),
        ("killed", 2, 3, "died (signal 9) in attempt 6"),
        ("killed", 0, 1, "died (signal 9) in attempt 4"),
        ("killed once", 2, 2, ""),
    ],
)
def test_a_training_whose_process_dies_is_tried_again(tmp_path, name, retries, attempts, failure):
    tried = tmp_path / "tried"
    trainings = [Training((name,), attempt=4), B]
    settings = ProcessSettings(retries=retries)
    found, after = train(partial(end_badly, tried), trainings, settings)
    assert failure in found.failure
    assert (found.utility is None) == bool(failure)
    assert found.training.attempt == 3 + attempts
    assert (after.utility, after.training) == (1.0, B)
    assert len(tried.read_text()) == attempts + 1


@linux
@pytest.mark.parametrize(
    ("name", "attempts", "failure"),
    [
        ("exhausts memory", 1, "out of memory: MemoryError: Unable to allocate"),
        ("keeps all memory", 1, "out of memory: the worker process had none left to answer"),
        ("killed", 1, "out of memory: the system killed the worker process"),
        ("interrupts", 2, "the worker process died (signal 2) in attempt 2"),
        ("closes", 2, "the worker process died (it closed the pipe for its answers) in attempt 2"),
    ],
)
def test_only_what_exhausts_memory_is_called_so_and_not_tried_again(
    tmp_path, monkeypatch, name, attempts, failure
):
    kills = itertools.count()  # the system counts one between any two looks
    monkeypatch.setattr(worker_process, "_kills_for_memory", lambda: next(kills))
    tried = tmp_path / "tried"
    found = train(partial(end_badly, tried), [Training((name,))], ProcessSettings(retries=1))
    assert found[0].failure.startswith(failure)
    assert len(tried.read_text()) == attempts


def test_loading_ends_with_the_timeout_and_exit_ends_a_training_alone(monkeypatch, tmp_path):
    class Hanging:
        def __reduce__(self):
            return time.sleep, (600,)

    monkeypatch.setattr(worker_process, "LOAD_SECONDS", 0.2)
    with pytest.raises(InputError, match=r"not loaded after 0\.3 seconds"):
        train(Hanging(), [A], ProcessSettings(timeout=0.3))
    here = ThisProcess(partial(end_badly, tmp_path / "tried"), ONCE)
    failed, after = here.run(iter([Training(("exits",)), B]))
    assert failed.failure == "SystemExit: 7"
    assert after.utility == 1.0


@linux
def test_a_training_that_takes_too_long_is_killed_with_all_it_has_started(tmp_path):
    pids = [tmp_path / "child", tmp_path / "grandchild"]

    def utility(members):
        if members == ("a",):
            which = os.fork() == 0
            pids[which].write_text(f"{os.getpid()}\n")
            time.sleep(600)
        return 1.0

    slow, fast = train(utility, [A, B], ProcessSettings(timeout=2))
    assert slow.training == A  # not tried again: it would take as long
    assert slow.failure == "timeout: not finished after 2 seconds"
    assert slow.timed_out
    assert slow.seconds >= 2
    assert fast.utility == 1.0
    wait_for(lambda: all(is_gone(read_pid(path)) for path in pids))


@linux
def test_a_process_that_dies_is_noticed_though_others_it_has_started_live(tmp_path):
    pid = tmp_path / "pid"

    def utility(members):
        if members == ("a",):
            if os.fork() == 0:
                time.sleep(600)
            os.kill(os.getpid(), signal.SIGKILL)
        pid.write_text(f"{os.getpid()}\n")
        return 1.0

    failed, after = train(utility, [A, B])
    assert "signal 9" in failed.failure
    assert after.utility == 1.0


def test_a_killed_child_is_replaced_and_costs_an_attempt_only_amid_a_training(tmp_path):
    pid = tmp_path / "pid"

    def utility(members):
        if members == ("a",) and not pid.exists():
            pid.write_text(f"{os.getpid()}\n")
            time.sleep(600)
        return 1.0

    with meanwhile(lambda: kill_when_written(pid)):
        found, after = train(utility, [A, B], ProcessSettings())
    assert (found.utility, found.training.attempt) == (1.0, 2)
    assert (after.utility, after.training.attempt) == (1.0, 1)

    with closing(LocalProcesses(lambda members: float(os.getpid()), ONCE, 1)) as workers:
        (first,) = workers.run(iter([A]))
        os.kill(int(first.utility), signal.SIGKILL)
        os.waitid(os.P_PID, int(first.utility), os.WEXITED | os.WNOWAIT)
        (second,) = workers.run(iter([B]))
    assert second.failure == ""
    assert second.training == B
    assert second.utility != first.utility


# The end


@linux
def test_close_leaves_no_process_and_no_file_behind(rows_here, tmp_path):
    before = children_of(os.getpid())
    meet = meeting(tmp_path / "met", size=3)

    def utility(members):
        found = meet(members)
        if members == ("c",):
            time.sleep(600)
        return found

    workers = LocalProcesses(utility, ONCE, 3)
    busy = workers.run(iter([A, B, C]))  # c goes on sleeping
    pids = {int(next(busy).utility), int(next(busy).utility)}
    ours = children_of(os.getpid()) - before
    assert pids <= ours
    assert len(ours) == 3
    assert len(list(rows_here.iterdir())) == 1
    workers.close()
    LocalProcesses(lambda members: 1.0, ONCE, 2).close()  # before anything runs
    assert not list(rows_here.iterdir())
    assert children_of(os.getpid()) == before


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
list(workers.run(Training((name,)) for name in ("a", "b", "idle")))
"""
    environment = {**os.environ, "TMPDIR": str(folder)}
    parent = subprocess.Popen([sys.executable, "-c", script], env=environment)
    try:
        pids = [read_pid(tmp_path / name) for name in ("a", "b", "idle")]
        assert len(list(folder.glob("dupre-*"))) == 1
    finally:
        parent.kill()
        parent.wait()
    wait_for(lambda: all(is_gone(pid) for pid in pids))
    wait_for(lambda: not list(folder.glob("dupre-*")))


def test_what_is_finished_is_stored_while_the_main_process_is_busy(tmp_path):
    """It does nothing after the first training until the second is in the store."""
    path, owners, before = tmp_path / "run.sqlite", make_owners(3), sys.getswitchinterval()

    def stored():
        return sql(path, "SELECT count(*) FROM evaluations")[0][0]

    def busy(progress):
        assert sys.getswitchinterval() < before / 10  # or the main thread could hold it up
        if progress.evaluated == 1:
            wait_for(lambda: stored() >= 2)

    def utility(members):  # both children are at work before one has finished
        (tmp_path / f"{len(members)} {members[0]}").touch()
        wait_for(lambda: len(list(tmp_path.glob("? owner*"))) >= 2)
        return float(len(members))

    options = {"empty": 0.0, "store": path, "n_jobs": 2, "progress": busy}
    assert dupre.value(owners, utility, budget=4, **options).facts.evaluated == stored() == 4
    assert sys.getswitchinterval() == before


def test_a_child_whose_answer_nobody_can_read_deletes_the_rows_before_it_ends(rows_here):
    rows = pack(lambda members: 1.0).to_file()
    child = worker_process.ChildProcess(rows.path, ONCE)
    child.warm_up()
    process = child._child
    process.stdout.close()  # as if the parent was killed, but the pipe of trainings is still open
    worker_process._send(process.stdin, A)
    process.wait(60)
    assert not list(rows_here.iterdir())
    child.close()
    rows.delete()


def test_a_child_whose_training_closes_all_files_does_not_take_its_parent_for_gone(monkeypatch):
    ended = []
    monkeypatch.setattr(worker_process, "_end", ended.append)
    for close, told in ((lambda stdin: os.close(stdin.fileno()), []), (lambda _: None, ["rows"])):
        reader, writer = os.pipe()
        os.close(writer)
        stdin = os.fdopen(reader, "rb")
        close(stdin)
        worker_process._listen(stdin, SimpleQueue(), "rows")
        assert ended == told
        with suppress(OSError):
            stdin.close()
