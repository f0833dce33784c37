import numpy as np
import pandas as pd
import pytest

import dupre.data.owners
from commands import SMALL, refuse, run, write_small
from dupre.cli.show import UNFINISHED
from dupre.notes import Code, has
from dupre.result.json import loads


def test_caveats_about_recorded_trainings_stay_with_the_values(tmp_path):
    write_small(tmp_path, ("Bern", "bern", "Ulm"))
    run("init", *SMALL, "--empty", 0, cwd=tmp_path)
    utilities = {"Bern": 0.5, "bern": 0.5, "Ulm": 0.6, "Bern,bern,Ulm": 0.8}
    done = pd.DataFrame({"coalition": utilities.keys(), "utility": utilities.values()})
    done.to_csv(tmp_path / "done.csv", index=False)
    printed = run("record", "dupre-data", "done.csv", "--verbose", cwd=tmp_path).stdout
    assert "Bern and bern look like one owner, and are taken for 2" in printed


@pytest.mark.slow
def test_bounds_that_utilities_contradict_are_refused_or_named(tmp_path):
    write_small(tmp_path)
    how = ("value", *SMALL, "--budget", 3)
    for limits in (("--bounds", "0.9,1"), ("--empty", 2)):
        message = refuse(*how, *limits, cwd=tmp_path)
        assert "the utility of no data is " in message
        assert message.endswith("state another number by --empty\n")
        assert list(tmp_path.iterdir()) == [tmp_path / "data.csv"]
    asked = ("init", *SMALL, "--empty", 0, "--bounds", "0.5,1")
    assert "the utility of no data is 0, but" in refuse(*asked, cwd=tmp_path)
    run(*how, "--empty", 0.01, "--floor", 0.02, "--bounds", "0.02,0.03", cwd=tmp_path)
    for verb in (("show",), ("resume", "--budget", "+1")):
        printed = run(verb[0], "dupre-data", *verb[1:], "--verbose", cwd=tmp_path).stdout
        assert "utilities lie outside the bounds 0.02 and 0.03, such as 0." in printed


def test_a_resumed_run_digests_its_rows_once_to_prepare_and_once_for_the_values(
    tmp_path, monkeypatch
):
    write_small(tmp_path)
    run("value", *SMALL, "--budget", 3, cwd=tmp_path)
    digested, real = [], dupre.data.owners.digests_of_rows
    monkeypatch.setattr(
        dupre.data.owners, "digests_of_rows", lambda X, y: digested.append(len(y)) or real(X, y)
    )
    run("resume", "dupre-data", "--budget", "+2", cwd=tmp_path)
    assert digested == [60, 60]


def test_a_result_says_which_rows_are_held_out_if_they_are_no_file_of_their_own(tmp_path):
    table = write_small(tmp_path)
    table.assign(x=table["x"] + 0.5).to_csv(tmp_path / "rows.csv", index=False)
    asked = ["value", *SMALL, "--budget", 3]
    run(*asked, "--run", "held", cwd=tmp_path)
    run(*asked, "--validation", "rows.csv", "--run", "file", cwd=tmp_path)
    held, file = (
        dupre.Valuation.from_json((tmp_path / name / "result.json").read_text())
        for name in ("held", "file")
    )
    told = held.facts.provenance["utility"]["validation"]
    assert told == "10 folds (seed 0), every row validates once"
    assert "validation" not in file.facts.provenance["utility"]
    assert [has(v.notes, Code.DEAL) for v in (held, file)] == [True, False]
    assert [v.facts.folds for v in (held, file)] == [10, 1]
    assert sum(held.facts.validating.values()) == pytest.approx(1)
    assert not file.facts.validating


def test_rows_that_count_nothing_are_not_said_to_validate(tmp_path):
    write_small(tmp_path, y=[1] + 59 * [0])
    asked = ("value", *SMALL, "--budget", 3, "--metric", "roc_auc", "--seed", 1)
    plan = run(*asked, cwd=tmp_path).stderr
    v = dupre.Valuation.from_json((tmp_path / "dupre-data/result.json").read_text())
    assert v.facts.validation_rows < 20
    told = f"{v.facts.validation_rows} of 60 rows count once"
    assert f"  validation  60 rows: 10 folds (seed 1), {told}\n" in plan
    assert v.facts.provenance["utility"]["validation"].endswith(told)


def test_values_from_the_store_say_the_same_of_their_trainings_as_the_run(tmp_path):
    (tmp_path / "own.py").write_text(
        "import warnings\n"
        "from sklearn.linear_model import SGDClassifier\n"
        "class Own(SGDClassifier):\n"
        "    def fit(self, X, y):\n"
        "        warnings.warn(f'{len(y)} odd rows')\n"
        "        return super().fit(X, y)\n"
    )
    rng = np.random.default_rng(0)
    frame = write_small(tmp_path, x=rng.normal(size=60), y=rng.permutation([0, 1] * 30))
    frame.assign(x=frame["x"] + 0.5).to_csv(tmp_path / "rows.csv", index=False)
    run("value", *SMALL, "--model", "own.py:Own", "--validation", "rows.csv", cwd=tmp_path)
    result = tmp_path / "dupre-data" / "result.json"
    (by_run,) = loads(result.read_text(), dupre.Valuation)
    result.unlink()
    printed = run("show", "dupre-data", "--json", cwd=tmp_path).stdout
    (from_store,) = loads(printed, dupre.Valuation)
    assert len(by_run.facts.warnings) == 3
    assert by_run.facts.training_noise.seeded
    assert repr(from_store.values) == repr(by_run.values)
    for name in ("warnings", "training_noise", "validation_rows", "provenance"):
        assert getattr(from_store.facts, name) == getattr(by_run.facts, name), name
    assert list(from_store.notes) == [UNFINISHED, *by_run.notes]
