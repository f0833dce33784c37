"""A Dask scheduler and its workers, each a process that can be killed."""

import os
import subprocess
import sys
from contextlib import contextmanager

from workers import wait_for


class Cluster:
    """The processes of a cluster. Their logs and what they leave are in one folder."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.file, self.workers = folder, folder / "scheduler.json", []
        self.file.unlink(missing_ok=True)
        where = ["--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(self.file)]
        self.scheduler = self._start("scheduler", *where, "--idle-timeout", "600")
        wait_for(self.file.exists)

    def start_worker(self):
        where = ["--scheduler-file", str(self.file), "--host", "127.0.0.1", "--nthreads", "1"]
        ways = ["--no-nanny", "--local-directory", str(self.folder), "--death-timeout", "60"]
        self.workers.append(self._start("worker", *where, *ways))

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()

    def _start(self, kind, *options):
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options]
        command += ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
        environment = {**os.environ, "TMPDIR": str(self.folder)}
        with (self.folder / f"{kind}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment)


@contextmanager
def dask_cluster(folder):
    """The client and the two worker processes of a new cluster."""
    from distributed import Client

    cluster = Cluster(folder)
    try:
        for _ in range(2):
            cluster.start_worker()
        with Client(scheduler_file=str(cluster.file)) as client:
            client.wait_for_workers(2, timeout=60)
            yield client, cluster.workers
    finally:
        cluster.close()
