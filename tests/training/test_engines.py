import os
import sys
from contextlib import closing
from dataclasses import FrozenInstanceError, dataclass, field, replace
from functools import partial

import joblib
import pytest

from dupre.errors import InputError
from dupre.training import engines
from dupre.training.engines import Dask, Engine, Evaluation, Local, Training, evaluate
from workers import children_of, linux, wait_for

TRAININGS = [Training(tuple(members)) for members in ("a", "b", "ab", "")]


def score(members):
    if members == ("b",):
        raise ValueError("no rows of class 3")
    return len(members) / 3


def run(engine, utility, trainings=TRAININGS):
    """The evaluations of an engine by their trainings."""
    with closing(engine.start(utility)) as workers:
        found = list(workers.run(iter(trainings)))
        assert workers.finished_evaluations() == []
    return {evaluation.training: (evaluation.utility, evaluation.failure) for evaluation in found}


@dataclass
class Logged:
    """An engine as a user would write one: here, with a log of what it has cost."""

    log: list[float] = field(default_factory=list)
    on_error: str = "skip"

    def start(self, utility):
        return LoggedWorkers(utility, self.log)


class LoggedWorkers:
    def __init__(self, utility, log):
        self.utility = utility
        self.log = log
        self.finished: list[Evaluation] = []

    def run(self, trainings):
        for training in trainings:
            self.finished = [evaluate(self.utility, training)]
            self.log.append(self.finished[0].seconds)
            yield self.finished[0]
            self.finished = []

    def finished_evaluations(self):
        return self.finished

    def close(self):
        self.log.append(0.0)


def test_an_engine_of_ones_own_gives_what_dupres_gives():
    names = ["Dask", "Engine", "Evaluation", "Local", "Training", "Workers", "evaluate"]

    assert engines.__all__ == names
    assert all(getattr(engines, name).__doc__ for name in engines.__all__)
    expected = {
        TRAININGS[0]: (1 / 3, ""),
        TRAININGS[1]: (None, "ValueError: no rows of class 3"),
        TRAININGS[2]: (2 / 3, ""),
        TRAININGS[3]: (0.0, ""),
    }
    ours = Logged()
    for engine in (Local(), Local(jobs=2), ours):
        assert isinstance(engine, Engine)
        assert run(engine, score) == expected
    assert len(ours.log) == len(TRAININGS) + 1


@pytest.mark.parametrize(
    ("engine", "here"), [(Local(), True), (Local(timeout=60), False), (Local(jobs=2), False)]
)
def test_one_job_runs_here_unless_trainings_have_a_time_limit(engine, here):
    found = run(engine, lambda members: float(os.getpid()), TRAININGS[:1])
    assert (found[TRAININGS[0]][0] == os.getpid()) is here


@linux
def test_minus_one_is_one_process_per_core():
    before = children_of(os.getpid())
    with closing(Local(jobs=-1, timeout=60).start(score)):
        wait_for(lambda: len(children_of(os.getpid()) - before) >= joblib.cpu_count())
        assert len(children_of(os.getpid()) - before) == joblib.cpu_count()


OPTIONS = [
    ({"jobs": 0}, r"jobs \(or -1 for one per core\) must be a whole number of at least 1"),
    ({"jobs": -2}, "whole number of at least 1, got -2"),
    ({"threads": 0}, "threads must be a whole number of at least 1"),
    ({"timeout": 0}, "timeout must be positive"),
    ({"retries": -1}, "retries must be a whole number of at least 0"),
    ({"on_error": "ignore"}, "on_error must be 'raise' or 'skip', got 'ignore'"),
]


def test_an_engine_is_a_value_that_checks_itself():
    assert Local(jobs=2) == Local(2) != Local(3)
    with pytest.raises(FrozenInstanceError):
        Local().jobs = 2
    for options, message in OPTIONS:
        for make in (Local, partial(replace, Local())):
            with pytest.raises(InputError, match=message):
                make(**options)


def test_dask_checks_its_client_its_settings_and_wants_workers(monkeypatch):
    distributed = pytest.importorskip("distributed")
    for wrong in ("tcp://127.0.0.1:8786", object(), None):
        with pytest.raises(InputError, match=r"must be a dask\.distributed\.Client.*Client\(addr"):
            Dask(wrong)
    with distributed.Client(processes=False, n_workers=0, dashboard_address=None) as client:
        with pytest.raises(InputError, match="retries must be a whole number"):
            Dask(client, retries=-1)
        with pytest.raises(InputError, match="has no workers"):
            Dask(client).start(score)
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'dupre\[dask\]'"):
        Dask(object())


def test_workers_of_a_closed_client_can_be_closed():
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "n_workers": 1, "threads_per_worker": 1}
    with distributed.Client(**options, dashboard_address=None) as client:
        workers = Dask(client).start(score)
    workers.close()
