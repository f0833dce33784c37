import os
import re
import signal
import time

import pytest

from dupre.errors import StoreError
from dupre.store.locks import FileLock
from stores import open_store, other_process, success, utilities
from workers import wait_for

HOLDER = r"in use by another run \(process {}, since 20\d\d-\d\d-\d\dT[\d:.]+\+00:00"


def test_one_store_at_a_time_is_written_and_a_second_one_is_told_by_whom_and_since_when(path):
    with open_store(path) as store, other_process(path) as other:
        store.hold()
        assert re.search(HOLDER.format(os.getpid()), other.ask("refusal()"))
        store.save(success("a", utility=0.25))
        with open_store(path) as second:  # of the same process; reading is possible meanwhile
            with pytest.raises(StoreError, match=HOLDER.format(os.getpid())):
                second.hold()
            assert second.utilities(("a",))[0].utility == 0.25
        store.close()
        assert other.ask("refusal()") is None
        assert other.ask("store.utilities(('a',))[0].utility") == 0.25, "it has read on"
    link = path.with_name("link.sqlite")
    link.symlink_to(path)
    with open_store(link) as store, open_store(path) as second:
        store.hold()
        with pytest.raises(StoreError, match="in use"):
            second.hold()


def test_a_lock_ends_with_its_process_and_a_stopped_one_is_named(path):
    with open_store(path) as store, other_process(path) as victim:
        assert victim.ask("refusal()") is None
        pid = victim.process.pid
        with pytest.raises(StoreError, match=HOLDER.format(pid)):
            store.hold()
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: "stopped" in FileLock(path.with_name(f"{path.name}-lock")).holder)
        with pytest.raises(StoreError, match=f"which is stopped: `kill -CONT {pid}` lets it go on"):
            store.hold()
        victim.kill()
        store.hold()
        store.save(success("b"))
    assert utilities(path, "b") == {0: 0.5}


def test_what_a_training_has_forked_does_not_keep_the_lock(tmp_path):
    lock = FileLock(tmp_path / "lock")
    assert lock.acquire()
    if not (child := os.fork()):
        time.sleep(60)
        os._exit(0)
    try:
        lock.close()
        wait_for(lock.acquire, seconds=5)  # the child has to get as far as closing its copy
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        lock.close()


def test_a_lock_file_that_cannot_be_written_or_locked_is_a_store_error(path, monkeypatch):
    path.with_name(path.name + "-lock").mkdir()
    with open_store(path) as store:
        with pytest.raises(StoreError, match=r"lock file cannot be opened.*may this user"):
            store.hold()
        path.with_name(path.name + "-lock").rmdir()
        with monkeypatch.context() as patch:
            patch.setattr("dupre.store.locks.fcntl.flock", refuse)
            with pytest.raises(StoreError, match=r"cannot be locked: .*a disk of this machine"):
                store.hold()
        store.hold()


def refuse(*_):
    raise OSError("no locks here")
