import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import dupre
from dupre import InputError
from dupre.training.dask import WAIT_SECONDS, DaskCluster, _outcome, connect
from dupre.training.engines import Dask
from dupre.training.worker_process import ProcessSettings
from trainings import ONCE, A, B, C, forest, holding
from workers import children_of, is_gone, kill_when_written, linux, meanwhile, read_pid, wait_for

pytest.importorskip("distributed")


def train(client, utility, trainings, settings=ONCE):
    with closing(DaskCluster(utility, settings, client)) as workers:
        return list(workers.run(iter(trainings)))


def rows_left(client):
    """Files with rows that the workers of a cluster have left."""

    def rows():
        return [str(path) for path in Path(tempfile.gettempdir()).glob("dupre-*")]

    return [path for found in client.run(rows).values() for path in found]


def test_a_client_need_not_be_the_default_but_must_not_be_asynchronous(cluster):
    from distributed import Client

    (client, _), utility = cluster, holding(None)
    address = client.scheduler.address
    with Client(address, set_as_default=False) as other:
        (found,) = train(other, len, [A])
    assert found.utility == 1.0
    with connect(address) as ours:  # as the command does
        assert ours._timeout == WAIT_SECONDS  # so long it tries to connect again

    async def refused():
        async with Client(address, asynchronous=True) as other:
            with pytest.raises(InputError, match="not asynchronous"):
                Dask(other)

    client.sync(refused)
    with pytest.raises(InputError, match="not both"):
        dupre.value(forest().owners, utility, budget=7, n_jobs=2, engine=Dask(client))
    assert utility.asked == []


@pytest.mark.slow
def test_trainings_may_fail_time_out_and_die_on_dask(cluster, tmp_path):
    client, workers = cluster
    died = tmp_path / "died"

    def utility(members):
        if members == ("a",):
            raise ValueError("no")
        if members == ("b",):
            time.sleep(600)
        if not died.exists():
            died.write_text(f"{os.getpid()}\n")
            os.kill(os.getpid(), signal.SIGKILL)
        return float(os.getpid())

    settings = ProcessSettings(timeout=3)
    found = {e.training.members: e for e in train(client, utility, [A, B, C], settings)}
    assert found["a",].failure == "ValueError: no"
    assert found["b",].failure == "timeout: not finished after 3 seconds"
    assert found["c",].training.attempt == 2
    assert found["c",].utility not in {worker.pid for worker in workers}
    wait_for(lambda: is_gone(int(found["c",].utility)))
    assert not rows_left(client)


def test_nothing_goes_on_running_on_dask_when_a_run_is_broken_off(cluster, tmp_path):
    client, workers = cluster
    pid = tmp_path / "pid"

    def utility(members):
        if members == ("a",):
            pid.write_text(f"{os.getpid()}\n")
            time.sleep(600)
        wait_for(pid.exists)
        return 1.0

    with closing(DaskCluster(utility, ONCE, client)) as ours:
        assert next(ours.run(iter([A, B]))).training == B
    wait_for(lambda: is_gone(read_pid(pid)))
    wait_for(lambda: not any(client.processing().values()))
    assert not rows_left(client)
    wait_for(lambda: not any(children_of(worker.pid) for worker in workers))


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
        def known():
            return client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))

        wait_for(lambda: known() > 2 * len(at_work) + 1)  # theirs, ours, the rows, the run
        os.kill(os.getpid(), signal.SIGINT)

    at_work = [client.submit(others, workers=[at], pure=False) for at in client.nthreads()]
    wait_for(lambda: all(client.processing().values()))
    options = {"budget": 7, "empty": 1.0, "progress": False, "engine": Dask(client)}
    try:
        with meanwhile(interrupt), pytest.raises(dupre.Interrupted) as stopped:
            dupre.value(forest().owners, utility, **options)
    finally:  # or all tests on this cluster would wait for ever
        go.touch()
    client.gather(at_work)
    wait_for(lambda: not any(client.processing().values()))
    assert stopped.value.valuer.evaluated == 0
    assert not ran.exists()
    assert not rows_left(client)
    wait_for(lambda: not any(children_of(worker.pid) for worker in workers))


@pytest.mark.slow
@linux
def test_a_killed_client_leaves_nothing_on_the_workers(cluster, tmp_path):
    """Neither processes, idle or not, nor their files, nor the rows in memory."""
    client, workers = cluster

    def in_memory():
        return client.run(lambda dask_worker: sorted(dask_worker.data))

    script = f"""
import os, time
from pathlib import Path
import numpy as np
from distributed import Client
from dupre.training.dask import DaskCluster
from dupre.training.evaluation import Training
from dupre.training.worker_process import ProcessSettings

rows = np.ones(100_000)

def utility(members):
    (Path({str(tmp_path)!r}) / members[0]).write_text(f"{{os.getpid()}}\\n")
    time.sleep(600 if members[0] == "busy" else 0)
    return float(rows[0])

client = Client({client.scheduler.address!r})
list(DaskCluster(utility, ProcessSettings(), client).run(map(Training, [("busy",), ("idle",)])))
"""
    before = in_memory()
    killed = subprocess.Popen([sys.executable, "-c", script])
    try:
        pids = [read_pid(tmp_path / name) for name in ("busy", "idle")]
        assert len(rows_left(client)) == 4  # each of two workers sees both files
    finally:
        killed.kill()
        killed.wait()
    wait_for(lambda: all(is_gone(pid) for pid in pids))
    wait_for(lambda: not rows_left(client))
    wait_for(lambda: in_memory() == before)
    wait_for(lambda: not any(children_of(worker.pid) for worker in workers))


@pytest.mark.slow
@linux
def test_a_dask_worker_killed_amid_a_run_changes_nothing(cluster_to_kill, tmp_path, monkeypatch):
    """And a scheduler that is killed ends the run with an error that says what is kept."""
    client, workers = cluster_to_kill
    utility, note = forest(), tmp_path / "parent"

    class Slower:
        """The forest; its second training says where it runs, and waits for the worst."""

        owners = utility.owners

        def __call__(self, members):
            if len(members) == 2 and not note.exists():
                note.with_name("part").write_text(f"{os.getppid()}\n")
                note.with_name("part").rename(note)
                time.sleep(600)
            return utility(members)

    ours = dupre.value(utility.owners, utility, budget=6, repeats=1, progress=False)
    with meanwhile(lambda: kill_when_written(note)):
        options = {"budget": 6, "progress": False, "engine": Dask(client)}
        theirs = dupre.value(utility.owners, Slower(), **options)
    assert int(note.read_text()) in {worker.pid for worker in workers}
    wait_for(lambda: len(client.nthreads()) == 1)
    wait_for(lambda: not rows_left(client))  # those of the dead one are in the same place
    np.testing.assert_array_equal(theirs.mean, ours.mean)
    np.testing.assert_array_equal(theirs.uncertainty.total, ours.uncertainty.total)
    assert theirs.facts.evaluated == ours.facts.evaluated
    assert not theirs.facts.failures
    scheduler = client.run_on_scheduler(os.getpid)
    monkeypatch.setattr(dupre.training.dask, "CONNECT_SECONDS", 1)

    def kill(progress):
        if progress.evaluated == 1:
            os.kill(scheduler, signal.SIGKILL)

    options = {"budget": 6, "engine": Dask(client, wait=1), "progress": kill}
    with pytest.raises(dupre.EngineError, match=r"scheduler has not answered.* kept in") as lost:
        dupre.value(utility.owners, utility, **options)
    assert lost.value.valuer.evaluated >= 1
    assert isinstance(lost.value, RuntimeError)


def test_a_worker_that_dies_while_the_rows_are_sent_does_not_end_a_run(cluster, monkeypatch):
    client, _ = cluster
    scatter, problems = client.scatter, [OSError("the worker is gone")]

    def send(*data, **options):
        if problems:
            raise problems.pop()
        return scatter(*data, **options)

    monkeypatch.setattr(client, "scatter", send)
    (found,) = train(client, len, [A])
    assert found.utility == 1.0


def test_workers_that_do_not_come_back_end_a_run():
    from distributed import Client, LocalCluster

    options = {"processes": False, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(n_workers=1, **options) as cluster, Client(cluster) as client:

        def trainings():
            yield A
            cluster.scale(0)
            wait_for(lambda: not client.nthreads())
            yield B

        with closing(DaskCluster(len, ONCE, client, wait=0.5)) as ours:
            found = ours.run(trainings())
            assert next(found).training == A
            with pytest.raises(dupre.EngineError, match="has had no workers"):
                list(found)
        with pytest.raises(InputError, match="has no workers"):
            DaskCluster(len, ONCE, client)


def test_a_result_that_dies_with_its_worker_is_lost_not_an_error():
    from distributed import CancelledError

    class Forgotten:
        """Finished, but the worker that holds the result is gone when it is fetched."""

        status = "finished"

        def exception(self):
            return None

        def result(self):
            raise CancelledError("already forgotten")

    assert _outcome(Forgotten(), A) is None
