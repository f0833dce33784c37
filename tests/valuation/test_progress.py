import io
import os
import pty
import re
import select
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import dupre
from dupre import InputError
from dupre.valuation import progress
from dupre.valuation.progress import Clock, Lines, Progress, display
from owners_and_games import make_owners, smooth

DEADLINE = 120.0
FOUR = make_owners(4)

RUN = """
import sys
import numpy as np
import dupre

rng = np.random.default_rng(0)
X = rng.normal(size=(32, 2))
owners = dupre.Owners.from_arrays(X, X @ [1.0, -1.0], np.repeat(list("abcd"), 8))
worth = dict(zip("abcd", (0.1, 0.4, 0.2, 0.9)))


def utility(members):
    return 1 - np.exp(-sum(worth[name] for name in members))
"""


def at(**changes):
    known = {"evaluated": 3, "budget": 12, "failed": 0, "trainings": 3, "seconds": 61.0}
    return Progress(**(known | {"remaining": 3723.0, "widest": 0.0123} | changes))


def run_in_terminal(code):
    """Exit code and everything shown by a program whose stdin, stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "160", "LINES": "40"}
    command = [sys.executable, "-c", RUN + textwrap.dedent(code)]
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    shown, end = b"", time.monotonic() + DEADLINE
    try:
        while time.monotonic() < end:
            if not select.select([ours], [], [], 1.0)[0]:
                continue
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux's end of file once the other side is closed
                break
            if not piece:
                break
            shown += piece
        return child.wait(timeout=DEADLINE), shown.decode()
    finally:
        child.kill()
        child.wait()
        os.close(ours)


def test_progress_in_words():
    assert str(at()) == (
        "3 of 12 coalitions, 1:01 elapsed, about 1:02:03 left, widest interval ± 0.012"
    )
    assert str(at(failed=2)).endswith("2 failed")
    early = at(evaluated=0, seconds=0.2, remaining=None, widest=None)
    assert str(early) == "0 of 12 coalitions, 0:00 elapsed"
    assert early.outlook == ""
    times = {0: "0:00", 59.4: "0:59", 59.6: "1:00", 3599.7: "1:00:00", 86400 + 61: "24:01:01"}
    for seconds, shown in times.items():
        assert f", {shown} elapsed" in str(at(seconds=seconds))
        assert f"about {shown} left" in str(at(remaining=seconds))


def show(screen, counts=(1, 2, 3)):
    for evaluated in counts:
        screen.show(at(evaluated=evaluated))
    screen.close()


@pytest.mark.parametrize(
    ("first", "every", "shown"), [(5.0, 5.0, ()), (0.0, 5.0, (1, 3)), (0.0, 0.0, (1, 2, 3))]
)
def test_lines_say_where_the_run_stands_and_the_last_once(capsys, monkeypatch, first, every, shown):
    monkeypatch.setattr(progress, "FIRST_LINE", first)
    monkeypatch.setattr(progress, "LINE_EVERY", every)
    show(Lines())
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert errors.splitlines() == [f"dupre: {at(evaluated=n)}" for n in shown]
    Lines().close()  # without any progress
    assert capsys.readouterr() == ("", "")


def test_nobody_has_to_read_how_far_it_is(monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    closed = io.StringIO()
    closed.close()
    unread = SimpleNamespace(write=Mock(side_effect=BrokenPipeError), flush=lambda: None)
    for stream in (closed, unread):
        monkeypatch.setattr(sys, "stderr", stream)
        show(Lines())


def test_ways_of_showing(capsys, monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    assert isinstance(display(True), Lines)  # elsewhere than in a terminal
    show(display(False))
    seen = []
    show(display(seen.append))
    assert seen == [at(evaluated=n) for n in (1, 2, 3)]
    assert capsys.readouterr() == ("", "")
    mine = SimpleNamespace(show=seen.append, close=lambda: None)
    assert display(mine) is mine
    for wrong in ("yes", 1, None, 0):
        with pytest.raises(InputError, match="True, False or a callable"):
            display(wrong)


def test_a_run_elsewhere_prints_lines_with_evaluations_rest_and_interval(capsys, monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE", 0.0)
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    dupre.value(FOUR, smooth(FOUR), budget=12)
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert "\x1b" not in errors
    lines = errors.splitlines()
    done = [int(re.match(r"dupre: (\d+) of 12 coalitions, 0:\d\d elapsed", x)[1]) for x in lines]
    assert done == sorted(done)
    assert set(range(1, 13)) <= set(done)
    assert re.search(r"about \d+:\d\d left", lines[len(lines) // 2])
    assert re.search(r"widest interval ± \d", lines[-1])
    after = [line for line, count in zip(lines, done, strict=True) if count]
    assert len(after) == len(set(after))


def test_with_folds_trainings_are_counted_apart_from_coalitions_and_in_the_time_left():
    X, y, who = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60.0), list("abcd") * 15
    utility = dupre.ModelUtility(
        Ridge(), owners := dupre.Owners.from_arrays(X, y, who), validation=dupre.Folds(5)
    )
    seen = []
    dupre.value(owners, utility, budget=12, progress=seen.append)
    # 12 coalitions, and 9 of them under two further deals, by five folds.
    assert (seen[-1].evaluated, seen[-1].trainings, seen[-1].folds) == (12, 150, 5)
    assert str(seen[-1]).startswith("12 of 12 coalitions, 150 trainings, ")
    assert seen[-1].remaining == 0
    third = next(one for one in seen if one.trainings == 50)
    assert third.remaining > third.seconds  # two thirds are left
    dealt_once = next(one for one in seen if one.trainings == 60 + 9 * 5)
    assert dealt_once.remaining > dealt_once.seconds / 105 * 40  # of 45


@pytest.mark.parametrize(
    ("slow", "folds", "proposed"),
    [
        (None, 10, None),
        (31, 10, "5 folds would take 50 %"),
        (31, 5, "4 folds"),
        (121, 10, "3 folds"),
        (999, 4, "3 folds"),
        (999, 3, None),
    ],
)
def test_fewer_folds_are_proposed_once_where_a_training_of_all_owners_is_slow(
    slow, folds, proposed, capsys
):
    told = at(slow=slow, folds=folds)
    lines = progress.Lines()
    for _ in range(2):
        lines.show(told)
    printed = capsys.readouterr().err
    assert printed.count("a training of all owners takes") == (proposed is not None)
    assert proposed is None or proposed in printed


@pytest.mark.slow
def test_a_bar_shows_how_far_it_is_and_gives_the_terminal_back_with_its_cursor():
    code, shown = run_in_terminal(
        """
        def breaking(size, error):
            def asked(members):
                if len(members) == size:
                    raise error
                return utility(members)
            return asked

        dupre.value(owners, utility, budget=6, progress=False)
        print("<silent so far>")
        dupre.value(owners, utility, budget=10)
        print("<done>")
        for size, error in ((2, ValueError), (2, KeyboardInterrupt), (0, ValueError)):
            try:
                dupre.value(owners, breaking(size, error), budget=15)
            except BaseException as error:
                sys.stdout.write(f"<{type(error).__name__}>")
        """
    )
    assert code == 0, shown
    silent, bar, *broken = re.split(r"<([\w ]+)>", shown)[::2]
    assert silent == ""
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", bar)
    last = [line for line in re.split(r"[\r\n]+", plain) if line.strip()][-1]
    assert re.search(r"\b10/10\b", last)
    assert re.search(r"\b0:0\d:\d\d\b", last)
    assert re.search(r"about \d+:\d\d left", last)
    assert re.search(r"widest interval ± \d", last)
    how = ["silent so far", "done", "EvaluationError", "Interrupted", "EvaluationError"]
    assert re.findall(r"<([\w ]+)>", shown) == how
    for until in broken[:-1]:
        assert until.rfind("\x1b[?25h") >= until.rfind("\x1b[?25l")


def test_a_clock_tells_trainings_from_dupres_own_time(monkeypatch):
    now = iter([0.0, 2.0, 5.0, 8.0, 8.0, 8.0, 8.0, 8.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    clock = Clock()  # at 0, trainings from 2 to 5, then chosen until 8
    with clock.training():
        pass
    clock.choices = 2
    assert (clock.seconds, clock.own, clock.per_choice) == (8.0, 5.0, 2.5)
    assert clock.per_training(6) == 0.5
