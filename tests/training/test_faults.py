import os
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import numpy as np
import pytest

import dupre
from dupre import StoreError
from faults import BUDGET, assert_same, first_batch, log_of, start_runner, stored
from owners_and_games import LoggedGame, make_owners
from workers import is_gone, stat_of, wait_for

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    with start_runner(tmp_path_factory.mktemp("faults"), "one form") as runner:
        yield runner


@pytest.fixture(scope="module")
def undisturbed(runner):
    """What a run says that nothing happens to."""
    found = runner("undisturbed", store=None).result()
    assert found["evaluated"] == BUDGET
    assert len(found["rounds"]) > 2
    return found


# Killed


@pytest.mark.slow
@pytest.mark.parametrize(("n_jobs", "kills"), [(1, 6), (2, 4)])
def test_a_run_killed_at_random_moments_ends_as_if_it_had_not_been(
    runner, undisturbed, n_jobs, kills
):
    rng = random.Random(n_jobs)
    name = f"killed {n_jobs} "
    options = {"n_jobs": n_jobs}
    killed = 0
    while killed < kills:
        before = set(stored(runner.folder / f"{name}.sqlite"))
        run = runner(name, options=options)
        more = rng.choice([0, 1, 2, 2, 3, 5]) if n_jobs == 1 else rng.choice([1, 2, 4])
        wait_for(lambda run=run, more=more: run.ended or len(run.trained()) >= more)
        time.sleep(rng.uniform(0, 0.05))
        if not run.ended:
            run.kill()
            killed += not Path(run.plan["out"]).exists()
        assert_nothing_is_trained_twice(run, before)
        if Path(run.plan["out"]).exists():  # it was done before the kill: begin a new one
            assert_same(run.result(), undisturbed)
            name += "I"
    before = set(stored(runner.folder / f"{name}.sqlite"))
    last = runner(name, options=options)
    assert_same(last.result(), undisturbed)
    assert_nothing_is_trained_twice(last, before)
    found = stored(last.plan["store"])
    assert len(found) == len(set(found)) == BUDGET
    times = Counter(line.split()[2] for line in log_of(last.plan))
    assert set(times) == set(found)
    assert sum(times.values()) - len(times) <= n_jobs * kills


def assert_nothing_is_trained_twice(run, before):
    begun = run.coalitions()
    assert len(begun) == len(set(begun))
    assert before.isdisjoint(begun)


def test_what_is_in_flight_when_a_run_is_killed_is_all_that_is_lost(runner, undisturbed):
    plan = {"hanging": ["owner1"], "options": {"n_jobs": 2}}
    run = runner("in flight", **plan)
    # One worker hangs; the other one goes on until the batch is done but for one coalition.
    wait_for(lambda: "owner1" in run.coalitions())
    wait_for(lambda: len(stored(run.plan["store"])) == first_batch(run) - 1)
    children = {pid for pid, _ in run.trained()}
    run.kill()
    wait_for(lambda: all(map(is_gone, children)))
    before = stored(run.plan["store"])
    assert set(run.coalitions()) - set(before) == {"owner1"}
    again = runner("in flight", options={"n_jobs": 2})
    assert_same(again.result(), undisturbed)
    assert set(again.coalitions()).isdisjoint(before)
    assert len(again.coalitions()) == BUDGET - len(before)


def test_a_local_worker_killed_amid_a_run_changes_nothing(runner, undisturbed):
    run = runner("worker", hanging=["owner1", "owner3"], options={"n_jobs": 2})
    wait_for(lambda: {"owner1", "owner3"} <= set(run.coalitions()))
    workers = {coalition: pid for pid, coalition in run.trained()}
    Path(run.plan["go"]).touch()
    for coalition in ("owner1", "owner3"):
        assert stat_of(workers[coalition])[1] == run.pid
        os.kill(workers[coalition], signal.SIGKILL)
    found = run.result()
    assert_same(found, undisturbed)
    assert {text for text, n in found["attempts"].items() if n == 2} == {'["owner1"]', '["owner3"]'}
    assert Counter(run.coalitions()) == Counter(run.coalitions()) | Counter(
        {"owner1": 2, "owner3": 2}
    )
    assert len(run.coalitions()) == BUDGET + 2


@pytest.mark.parametrize("line", [0, -1])
def test_no_rows_are_left_when_a_run_is_killed_while_it_ends(runner, line):
    run = runner(f"ending {line}", killed_in_close=line, options={"timeout": 60, "budget": 2})
    wait_for(lambda: run.ended)
    assert not Path(run.plan["out"]).exists()
    assert len(run.coalitions()) == len(stored(run.plan["store"])) == 2
    wait_for(lambda: not list(Path(run.plan["rows"]).iterdir()))


def test_a_second_run_on_a_store_is_refused_and_the_first_goes_on(runner, undisturbed):
    first = runner("shared", hanging=["owner2"])
    wait_for(lambda: "owner2" in first.coalitions())
    refused = runner("shared").result()
    assert refused["error"] == "StoreError"
    assert f"in use by another run (process {first.pid}, since 20" in refused["message"]
    first.kill()
    again = runner("shared")
    assert_same(again.result(), undisturbed)
    done = first.coalitions() + again.coalitions()
    assert Counter(done) == Counter([*stored(first.plan["store"]), "owner2"])


# Ctrl-C


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_keeps_what_is_finished_and_says_how_to_go_on(runner, undisturbed, n_jobs):
    name = f"stop {n_jobs}"
    options = {"n_jobs": n_jobs}
    run = runner(name, hanging=["owner3"], options=options)
    wait_for(lambda: "owner3" in run.coalitions())
    if n_jobs == 2:  # everything else of the batch goes on
        wait_for(lambda: len(stored(run.plan["store"])) == first_batch(run) - 1)
    workers = {pid for pid, _ in run.trained()} - {run.pid}
    run.signal(signal.SIGINT)
    found = run.result()
    assert found["error"] == "Interrupted"
    kept = stored(run.plan["store"])
    assert f"{len(kept)} evaluations so far are kept in {run.plan['store']!r}" in found["message"]
    assert "make the same call again" in found["message"]
    assert set(kept) == set(run.coalitions()) - {"owner3"} == set(found["known"])
    assert len(workers) == (2 if n_jobs == 2 else 0)
    assert all(map(is_gone, workers))
    again = runner(name, options=options)
    assert_same(again.result(), undisturbed)
    assert set(again.coalitions()).isdisjoint(kept)


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_at_any_moment_loses_nothing(runner, undisturbed, n_jobs):
    rng = random.Random(n_jobs)
    name = f"stops {n_jobs}"
    for more in (1, 4):
        before = set(stored(runner.folder / f"{name}.sqlite"))
        run = runner(name, options={"n_jobs": n_jobs})
        wait_for(lambda run=run, more=more: len(run.trained()) >= more)
        time.sleep(rng.uniform(0, 0.03))
        run.signal(signal.SIGINT)
        found = run.result()
        assert found["error"] == "Interrupted", found["message"]
        kept = set(stored(run.plan["store"]))
        assert set(found["known"]) <= kept
        assert_nothing_is_trained_twice(run, before)
        assert len(set(run.coalitions()) - kept) <= n_jobs
    assert_same(runner(name, options={"n_jobs": n_jobs}).result(), undisturbed)


@pytest.mark.slow
def test_ctrl_c_on_any_line_of_keeping_an_evaluation_does_not_lose_it():
    for at in count(2):  # before the first line the training has only just come back
        utility = sizes()
        with interrupted_while_keeping(at) as interruption:
            try:
                dupre.value(utility.owners, utility, budget=7, progress=False)
            except dupre.Interrupted as stopped:
                kept = stopped.valuer.evaluations
            else:
                kept = None
        if kept is None:
            break
        assert kept == {members: len(members) for members in utility.asked}, interruption
    assert at > 20


@contextmanager
def interrupted_while_keeping(at):
    """Ctrl-C before the given line, counted from the moment the second evaluation is kept."""
    folder = Path(dupre.__file__).parent
    names = ("valuation/loop.py", "valuation/trainings.py", "store/store.py")
    names += ("valuation/valuer.py", "valuation/tell.py")
    ours = {str(folder / name) for name in names}
    keeping, lines, interruption = 0, 0, []

    def called(frame, event, arg):
        nonlocal keeping
        name = frame.f_code.co_name
        keeping += name == "_keep" and frame.f_code.co_filename.endswith("trainings.py")
        keeping += name == "_show" and keeping == 2
        return line if keeping == 2 and frame.f_code.co_filename in ours else None

    def line(frame, event, arg):
        nonlocal lines
        lines += event == "line"
        if event == "line" and lines == at:
            interruption.append(f"{frame.f_code.co_filename}:{frame.f_lineno}")
            sys.settrace(None)
            raise KeyboardInterrupt
        return line

    before = sys.gettrace()
    sys.settrace(called)
    try:
        yield interruption
    finally:
        sys.settrace(before)


def test_ctrl_c_without_a_store_hands_the_evaluations_over(runner, undisturbed):
    run = runner("no store", store=None, seconds=0.02, go_on_with_known=True)
    wait_for(lambda: len(run.trained()) >= 4)
    run.signal(signal.SIGINT)
    found = run.result()
    assert found["error"] == "Interrupted"
    assert "known=error.valuer.trainings" in found["message"]
    assert len(found["known"]) >= 3
    assert found["then"]["evaluations"] == undisturbed["evaluations"]
    assert found["then"]["mean"] == undisturbed["mean"]
    assert len(run.coalitions()) - BUDGET <= 1  # the one that was broken off


# A full disk


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_full_disk_is_said_and_nothing_is_lost(runner, undisturbed, n_jobs):
    name = f"full {n_jobs}"
    run = runner(name, full_at=6, go_on_with_known=True, options={"n_jobs": n_jobs})
    found = run.result()
    assert found["error"] == "StoreError", found["message"]
    assert "make room on the disk, then call again" in found["message"]
    assert run.plan["store"] in found["message"]
    assert len(found["known"]) >= 7  # the one there was no room for is here
    assert_same(found["then"], undisturbed)
    begun = run.coalitions()
    assert len(begun) - len(set(begun)) <= n_jobs * (n_jobs > 1)  # what workers were at
    assert set(begun) == set(stored(run.plan["store"]))


@pytest.mark.slow
def test_a_run_goes_on_once_there_is_room_on_the_disk(runner, undisturbed):
    run = runner("room", full_at=6)
    found = run.result()
    assert found["error"] == "StoreError"
    before = stored(run.plan["store"])
    assert len(before) == 6
    again = runner("room")
    assert_same(again.result(), undisturbed)
    assert set(again.coalitions()).isdisjoint(before)


def sizes():
    """A utility of three owners that remembers what it was asked."""
    return LoggedGame(make_owners(3), lambda C: C.sum(axis=1))


def refused(path):
    utility = sizes()
    before = Path(path).read_bytes()
    with pytest.raises(StoreError) as error:
        dupre.value(utility.owners, utility, budget=7, store=path, progress=False)
    assert utility.asked == []
    assert str(path) in str(error.value)
    assert Path(path).read_bytes() == before  # somebody else's file is left as it is
    return str(error.value)


def finished_store(path):
    dupre.value(make_owners(3), sizes(), budget=7, store=path, progress=False)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    return path.read_bytes()


def test_a_file_that_is_no_store_is_refused_before_anything_is_trained(tmp_path):
    whole, page = finished_store(tmp_path / "run.sqlite"), 4096
    assert len(whole) % page == 0
    damaged = whole[:page] + b"\xff" * (len(whole) - 2 * page) + whole[-page:]
    for contents, message in [
        (b"coalition,utility\n", "take another file for store="),
        (b"x" * 5_000, "take another file for store="),
        (b"SQLite format 3\0" + b"x" * 99, "take another file for store="),
        (damaged, "damaged"),
        *((whole[: int(share * len(whole))], "damaged") for share in (0.3, 0.5, 0.9)),
    ]:
        path = tmp_path / "other.sqlite"
        path.write_bytes(contents)
        assert message in refused(path)


# Trainings that fail


def test_a_failed_training_is_raised_once_the_others_have_finished(runner, undisturbed):
    plan = {"options": {"n_jobs": 2}, "seconds": 0.05}
    run = runner("failing", failing=["owner2"], **plan)
    found = run.result()
    assert found["error"] == "EvaluationError"
    assert found["members"] == ["owner2"]
    assert "evaluating {owner2} failed: ValueError: no luck with owner2" in found["message"]
    assert "make the same call again" in found["message"]
    (note,) = found["notes"]
    assert "raise ValueError" in note
    kept = stored(run.plan["store"])
    assert set(kept) == set(run.coalitions()) - {"owner2"} == set(found["known"])
    assert stored(run.plan["store"], "failure IS NOT NULL") == ["owner2"]
    again = runner("failing", **plan)
    after = again.result()
    assert_same(after, undisturbed)
    assert after["attempts"]['["owner2"]'] == 2
    assert set(after["attempts"].values()) == {1, 2}
    assert set(again.coalitions()).isdisjoint(kept)
    assert again.coalitions().count("owner2") == 1

    for attempts in (["owner2"], ["owner2"] * 2):
        assert runner("stubborn", failing=["owner2"]).result()["error"] == "EvaluationError"
        assert stored(runner.folder / "stubborn.sqlite", "failure IS NOT NULL") == attempts
    assert stored(runner.folder / "stubborn.sqlite", "attempt = 2") == ["owner2"]


@pytest.mark.slow
def test_a_skipped_failure_is_predicted_counted_shown_and_tried_again_when_asked_to(
    runner, undisturbed
):
    bad = ["owner2", "owner0+owner1+owner2+owner3"]
    results = []
    for jobs in (1, 2):
        options = {"on_error": "skip", "n_jobs": jobs}
        run = runner(f"skip {jobs}", failing=bad, options=options)
        found = run.result()
        assert "error" not in found, found["message"]
        assert found["evaluated"] == BUDGET == len(run.coalitions())
        assert set(found["failures"]) == set(bad)
        assert "no luck with owner2" in found["failures"]["owner2"]
        assert f"2 of {BUDGET} evaluations failed" in found["shown"]
        assert "{owner2}" in found["shown"]
        assert len(stored(run.plan["store"])) == BUDGET - 2
        assert np.all(np.isfinite(found["mean"]))
        # The grand coalition is known, so values still add up; the failed ones make them less sure.
        assert abs(sum(found["mean"]) - sum(undisturbed["mean"])) < 1e-9
        results.append(found)
    assert_same(*results)
    again = runner("skip 1", options={"on_error": "skip"})
    assert_same(again.result(), results[0])
    assert again.coalitions() == []  # not tried again, though it would work now
    found = runner("skip 2", options={"budget": 31}).result()
    assert (found["failures"], found["evaluated"]) == ({}, 31)
    assert found["attempts"]['["owner2"]'] == 2


@pytest.mark.slow
def test_a_training_that_takes_too_long_is_skipped(runner, undisturbed):
    options = {"on_error": "skip", "timeout": 2, "n_jobs": 2}
    run = runner("slow", hanging=["owner2"], options=options)
    found = run.result()
    assert found["failures"] == {"owner2": "timeout: not finished after 2 seconds"}
    assert found["evaluated"] == BUDGET
    assert run.coalitions().count("owner2") == 1


def test_everything_failing_stops_the_run_until_the_cause_is_repaired(runner, undisturbed):
    run = runner("hopeless", all_failing=True, options={"on_error": "skip"})
    found = run.result()
    assert found["error"] == "EvaluationError"
    assert "no luck" in found["message"]
    first = len(run.coalitions())
    assert first < BUDGET
    again = runner("hopeless", all_failing=True, options={"on_error": "skip"})
    found = again.result()
    assert found["error"] == "EvaluationError", found
    assert len(again.coalitions()) == 0  # what failed is not asked for again, nor is more spent
    assert_same(runner("hopeless").result(), undisturbed)
