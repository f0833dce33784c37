"""Trainings for single folds: each is kept, whatever happens to the others."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import dupre
from dupre.errors import EvaluationError, StoreError
from stores import sql

FOLDS, BUDGET, EVERY = 4, 7, 4 * (7 + 2 * 7)
"""All coalitions of three owners, all of them under two further deals."""

RUN = """
import sys
sys.path.insert(0, {tests!r})
from valuation import test_kept_folds as t
print(t.value(sys.argv[1], sys.argv[2], killed_at={killed_at}).to_json())
"""


class Logged(Ridge):
    """Writes a line for each fit, and may fail or kill its process at one of them."""

    def __init__(self, log="", fails_at=0, killed_at=0):
        super().__init__()
        self.log, self.fails_at, self.killed_at = log, fails_at, killed_at

    def fit(self, X, y):
        with Path(self.log).open("a") as log:
            log.write("fit\n")
        count = fits(self.log)
        if count == self.killed_at:
            os.kill(os.getpid(), 9)
        if count == self.fails_at:
            raise ValueError("no luck")
        return super().fit(X, y)


def fits(log):
    return Path(log).read_text().count("fit")


def value(log, store, *, engine=None, **how):
    rng = np.random.default_rng(0)
    X, who = rng.normal(size=(60, 2)), list("abc") * 20
    owners = dupre.Owners.from_arrays(X, X[:, 0] + 0.3 * rng.normal(size=60), who)
    # The parameters of the log are not part of what the store knows the model by.
    utility = dupre.ModelUtility(Logged(str(log), **how), owners, validation=dupre.Folds(FOLDS))
    stored = None if store is None else dupre.Stored(store, accept_model=True, check=False)
    with np.errstate(all="ignore"):
        return dupre.value(
            owners, utility, budget=BUDGET, store=stored, engine=engine, progress=False
        )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    log = tmp_path_factory.mktemp("undisturbed") / "log"
    found = value(log, None)
    assert fits(log) == EVERY
    return found


def assert_same(found, undisturbed):
    assert found.mean.tolist() == undisturbed.mean.tolist()
    assert found.uncertainty.total.tolist() == undisturbed.uncertainty.total.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_fold_that_fails_is_a_failed_coalition_and_the_other_folds_are_kept(
    jobs, tmp_path, undisturbed
):
    log, store = tmp_path / "log", tmp_path / "run.sqlite"
    engine = dupre.engines.Local(jobs=jobs, timeout=60 if jobs > 1 else None)
    with pytest.raises(EvaluationError, match="no luck") as caught:
        value(log, store, engine=engine, fails_at=7)
    first = fits(log)
    kept = sql(store, "SELECT count(*) FROM folds")[0][0]
    assert kept == first - 1
    assert f"; {kept} trainings so far are kept in " in str(caught.value)
    assert_same(value(log, store, engine=engine), undisturbed)
    assert fits(log) == EVERY + 1


def test_skipping_a_failed_fold_predicts_its_coalition_and_trains_no_other_fold_of_it(tmp_path):
    log = tmp_path / "log"
    engine = dupre.engines.Local(on_error="skip")
    found = value(log, tmp_path / "run.sqlite", engine=engine, fails_at=7)
    (failed,) = found.facts.failures
    assert found.facts.evaluated == BUDGET
    # Two folds of that coalition were not tried, nor was it under further deals.
    assert fits(log) == EVERY - 1 - 2 * FOLDS
    assert len(failed) in (1, 2)


@pytest.mark.slow
def test_folds_before_a_kill_are_not_trained_again(tmp_path, undisturbed):
    log, store = tmp_path / "log", tmp_path / "run.sqlite"
    log.touch()
    tests = str(Path(__file__).parents[1])
    for killed_at in (6, 11, 0):
        code = RUN.format(tests=tests, killed_at=killed_at)
        done = subprocess.run(
            [sys.executable, "-c", code, str(log), str(store)], capture_output=True, text=True
        )
        assert done.returncode == (-9 if killed_at else 0), done.stderr
    assert_same(dupre.Valuation.from_json(done.stdout), undisturbed)
    assert fits(log) == EVERY + 2


def test_a_kill_between_the_last_fold_and_the_utility_of_all_loses_nothing(tmp_path, undisturbed):
    log, store = tmp_path / "log", tmp_path / "run.sqlite"
    value(log, store)
    sql(store, "DELETE FROM evaluations WHERE id % 3 = 0")
    Path(f"{store}-lock").unlink()  # which says how many evaluations there were
    assert_same(value(log, store), undisturbed)
    assert fits(log) == EVERY


def test_a_fold_that_was_changed_on_the_disk_is_noticed(tmp_path):
    log, store = tmp_path / "log", tmp_path / "run.sqlite"
    value(log, store)
    sql(store, "DELETE FROM evaluations")
    sql(store, "UPDATE folds SET seconds = 99 WHERE id = 3")
    Path(f"{store}-lock").unlink()
    with pytest.raises(StoreError, match="fold 3 is not readable: its checksum is another"):
        value(log, store)


def test_folds_that_lead_to_no_utility_are_a_failure_that_says_why(tmp_path):
    class Wild(Ridge):
        def predict(self, X):
            return np.full(len(X), np.inf)

    owners = dupre.Owners.from_arrays(np.eye(60), np.arange(60.0), list("abc") * 20)
    utility = dupre.ModelUtility(Wild(), owners, validation=dupre.Folds(4), floor=False)
    for _ in range(2):  # the second time all folds are there already
        with pytest.raises(EvaluationError, match=r"evaluating .* failed: .*nfinity"):
            dupre.value(owners, utility, budget=7, store=tmp_path / "s.sqlite", progress=False)
