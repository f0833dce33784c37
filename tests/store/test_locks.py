import os
import signal
from pathlib import Path

import pytest

from dupre.errors import StoreError
from dupre.store.locks import Holder, find_holder
from dupre.training.evaluation import Training
from stores import OWNERS, Other, open_store, other_process
from workers import wait_for


def training(members, repeat=0):
    return Training(tuple(members), repeat)


@pytest.fixture(scope="module")
def neighbour():
    """Another process, which any test of this module may ask; it is never killed."""
    started = Other()
    yield started
    started.close()


@pytest.fixture
def other(neighbour, path):
    """Another process with the same store open."""
    neighbour.use(path)
    yield neighbour
    neighbour.ask("store.close()")


def test_what_one_process_locks_no_other_can_unless_the_data_changed(path, other):
    with open_store(path) as store:
        assert store.lock(training("ab"))
        assert store.lock(training("ab")), "it has it already"
        assert not other.lock("ab")
        assert not other.lock("ba"), "the order of members does not matter"
        assert other.lock("ab", repeat=1)
        assert other.lock("a")
        assert not store.lock(training("a"))
        assert not store.lock(training("ba", 1))
        store.unlock(training("ba"))
        assert other.lock("ab")
        assert not store.lock(training("ab"))
        other.ask("store.unlock(Training(('a',)))")
        assert store.lock(training("a")), "an attempt that failed has left nothing behind"
    with open_store(path, {**OWNERS, "a": "changed"}) as store:
        assert store.lock(training("ab"))
        assert store.lock(training("bc"))
        assert other.lock("ab")
        assert not other.lock("bc")


def test_locks_end_with_the_store_and_with_the_process_however_it_ends(path, other):
    with open_store(path) as store:
        assert other.lock("a")
        assert not store.lock(training("a"))
        other.ask("store.close()")
        assert store.lock(training("a"))
        with other_process(path) as victim:
            assert victim.lock("b")
            assert victim.lock("abc")
            assert not victim.lock("a")
            assert not store.lock(training("b"))
            victim.kill()
            assert store.lock(training("b"))
            assert store.lock(training("cba"))


def test_who_holds_a_lock_is_known_and_whether_it_is_stopped(path):
    with open_store(path) as store, other_process(path) as victim:
        assert find_holder(path) is None
        assert store.lock(training("b")), "one's own locks do not count"
        assert victim.lock("a")
        pid = victim.process.pid
        assert find_holder(path) == Holder(pid, stopped=False)
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: find_holder(path).stopped)
        assert f"process {pid}, which is stopped: `kill -CONT {pid}`" in str(find_holder(path))
        victim.kill()
        assert find_holder(path) is None


def test_two_stores_of_one_process_lock_against_each_other_and_a_failing_lock_is_an_error(path):
    with open_store(path) as first, open_store(path) as second:
        assert first.lock(training("a"))
        assert not second.lock(training("a"))
        second.unlock(training("a"))
        assert not second.lock(training("a")), "the lock of another cannot be released"
        first.unlock(training("a"))
        assert second.lock(training("a"))
    with open_store(path) as store:
        (descriptor,) = (
            int(entry.name)
            for entry in Path("/proc/self/fd").iterdir()
            if os.path.realpath(entry) == f"{path}-claims"
        )
        readonly = os.open(f"{path}-claims", os.O_RDONLY)
        os.dup2(readonly, descriptor)  # what the system refuses to lock
        os.close(readonly)
        with pytest.raises(StoreError, match="cannot be locked"):
            store.lock(training("a"))


def test_a_lock_holds_however_the_store_is_named_and_another_store_is_closed(path, other):
    with open_store(path) as store:
        assert store.lock(training("a"))
        with open_store(path) as second:
            second.lock(training("b"))
        assert not other.lock("a")
    link = path.with_name("link.sqlite")
    link.symlink_to(path)
    with open_store(link) as store:
        assert store.lock(training("a"))
        assert not other.lock("a")


def test_a_lock_file_that_cannot_be_written_is_a_store_error(path):
    path.with_name(path.name + "-claims").mkdir()
    with pytest.raises(StoreError, match=r"lock file of the store cannot be opened.*may this user"):
        open_store(path)
