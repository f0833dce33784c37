from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager

import pytest

from workers import wait_for


@contextmanager
def dask_cluster(folder):
    """A scheduler and two workers, each a process; the client and the workers."""
    from distributed import Client

    def start(kind, *options):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
        command += ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
        environment = {**os.environ, "TMPDIR": str(folder)}
        with (folder / f"{kind}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scheduler.json"
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file)]
    worker = ["worker", "--scheduler-file", str(file), "--host", "127.0.0.1", "--nthreads", "1"]
    worker += ["--no-nanny", "--local-directory", str(folder), "--death-timeout", "60"]
    processes = [start(*scheduler, "--idle-timeout", "600")]
    try:
        processes += [start(*worker, "--name", str(i)) for i in range(2)]
        wait_for(file.exists)
        with Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(2, timeout=60)
            yield client, processes[1:]
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    """The client and the worker processes of a Dask cluster; no test may kill them."""
    pytest.importorskip("distributed")
    with dask_cluster(tmp_path_factory.mktemp("dask")) as (client, workers):
        yield client, workers


@pytest.fixture
def cluster_to_kill(tmp_path):
    pytest.importorskip("distributed")
    with dask_cluster(tmp_path / "cluster") as (client, workers):
        yield client, workers
