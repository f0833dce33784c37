import json
import re
import subprocess
from pathlib import Path

import pytest

from command_tables import BOTH, ROLES, WINE, good, value
from commands import COMMAND, environment, refuse, run, write_model
from dupre.cli.output import ExitCode
from dupre.runs.directory import RunDirectory
from dupre.spec import SECTIONS
from reporting import words_outside

DOCS = Path(__file__).parents[2] / "docs/cli.md"


def test_the_long_form_is_behind_verbose(finished):
    short = run("show", "dupre-wine", cwd=finished).stdout
    long = run("show", "dupre-wine", "--verbose", cwd=finished).stdout
    assert long == "\n\n".join(v.explain() for v in results(finished / "dupre-wine")) + "\n"
    for words in ("Predictor, each", "What made coalitions alike", "Stopped: the budget of 14"):
        assert words in long
        assert words not in short


def results(path):
    return RunDirectory(path).results()


def test_what_the_command_prints_has_at_most_60_words_outside_tables_and_notes(copy):
    printed = (copy / "out.txt").read_text()
    assert printed.count("\nowner ") == 2  # of two semivalues
    paid = [run("pay", "dupre-wine", "--amount", 99, "--anyway", cwd=copy).stdout]
    run("pay", "dupre-wine", "--amount", 99, "--anyway", "--book", cwd=copy)
    rows = ("--for", "rows", "--minimum", 1, "--currency", "CHF")
    paid += [run("pay", "dupre-wine", "--amount", 999, "--anyway", *rows, cwd=copy).stdout]
    for text in (printed, *paid):
        assert 10 < words_outside(text) <= 60, text


def test_of_further_semivalues_the_table_alone_is_printed(finished):
    printed = (finished / "out.txt").read_text()
    first, title, table = printed.rsplit("\n\n", maxsplit=2)
    shapley, banzhaf = results(finished / "dupre-wine")
    assert first.startswith(f"{shapley.verdict.kind.capitalize()}.\n")
    assert title == f"Banzhaf: {banzhaf.verdict.kind}."
    assert f"\n\n{table}\n" in str(banzhaf)


@pytest.mark.slow
def test_quiet_prints_the_answer_and_errors_alone(place):
    write_model(place / "noisy_model.py", "print('fitting'); print('more', file=sys.stderr)")
    done = value("--model", "noisy_model:Own", "--folds", 2, "--quiet")
    assert done.stderr == ""
    assert done.stdout == run("show", "run").stdout
    env, how = environment(), {"capture_output": True, "text": True, "check": True}
    asked = [COMMAND, "resume", "run", "--budget", "+1", "--jobs", "2", "--quiet"]
    again = subprocess.run(asked, env=env, **how)  # also what other processes print
    assert (again.stderr, again.stdout) == ("", run("show", "run").stdout)
    assert refuse("resume", "run", "--until", "soon", "--quiet")


def test_the_file_of_settings_on_the_page_names_all_of_them_and_is_one(place):
    text = next(re.finditer(r"```toml\n(.*?)```", DOCS.read_text(), flags=re.DOTALL))[1]
    told = {}
    for section in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        keys = re.findall(r"^(\w+) =", section, flags=re.MULTILINE)
        others = re.findall(r"\w+", " ".join(re.findall("#.*", section)))
        told[section.partition("]")[0]] = {*keys, *others} - {"also", "and"}
    assert told == {name: set(SECTIONS[name].__struct_fields__) for name in told}
    assert {*told, "page", "payment", "history"} == set(SECTIONS)

    (place / "study").mkdir()
    (place / "study/settings.toml").write_text(text)
    named = good().rename(columns={"who": "hospital", "y": "digit"})
    named.to_csv(place / "study/hospitals.csv", index=False)
    run("value", "--config", "study/settings.toml")  # relative paths begin at the file
    spec = RunDirectory(place / "dupre-hospitals").spec()
    assert spec.data.path == str(place / "study/hospitals.csv")
    assert (spec.utility.folds, spec.values.seed) == (5, 1)


@pytest.mark.slow
def test_strict_ends_with_another_code_if_something_warns_after_all_is_written(place, finished):
    how = ("value", "good.csv", *ROLES, "--budget", 3, "--run", "run")  # a first guess
    done = run(*how, "--strict", code=ExitCode.WARNED)
    assert done.stdout == run("show", "run").stdout
    assert "Page: run/report.html" in done.stderr
    assert (place / "run/report.html").is_file()
    run("resume", "run", "--strict", code=ExitCode.WARNED)
    shown = run("show", "run", "--strict", "--json", code=ExitCode.WARNED).stdout
    assert json.loads(shown)["valuations"][0]["verdict"]["kind"] == "not payable"
    run("show", "dupre-wine", "--semivalue", "shapley", "--strict", cwd=finished)


def test_a_file_of_settings_says_all_and_what_is_stated_counts_instead(place):
    first = value("--semivalue", "banzhaf", "--holdout", 0.2, "--seed", 7, budget=5)
    config = place / "run/config.toml"
    asked = ("value", "--config", config)
    assert run(*asked, "--run", "again").stdout == first.stdout.replace(" run ", " again ")
    again = RunDirectory(place / "again").spec()
    assert again.conflict(RunDirectory(place / "run").spec()) == ""
    assert len(again.history.commands) == 1
    good().to_csv("checks.csv", index=False)
    others = ("--validation", "checks.csv", "--seed", 3, "--budget", 4, "--run", "other")
    run(*asked, *others)
    spec = RunDirectory(place / "other").spec()
    assert (spec.utility.holdout, spec.values.seed, spec.limits.budget) == (None, 3, 4)
    assert spec.utility.validation == str(place / "checks.csv")
    run(*asked, "--budget", 3)  # named after the data
    assert (place / "dupre-good/result.json").is_file()
    assert "cannot be read" in refuse("value", "--config", "nowhere.toml")
    assert "state DATA and --target, or settings of" in refuse("value", *ROLES[:2])


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["show", "value"])
def test_a_reader_that_goes_away_is_no_error_and_files_are_written_before(data, finished, verb):
    asked = {
        "show": (finished, f"{COMMAND} show dupre-wine --verbose"),
        "value": (data, f"{COMMAND} value {' '.join(WINE)} --budget 4 --holdout 0.2 --run run"),
    }
    cwd, command = asked[verb]
    # It is read when all is printed: to write to a pipe whose reader is gone is what is tested.
    text = f"{command} | (sleep 0.1; exec 0<&-); echo ${{PIPESTATUS[0]}}"
    how = {"capture_output": True, "text": True, "check": True, "env": environment()}
    done = subprocess.run(["bash", "-c", text], cwd=cwd, **how)
    assert done.stdout == "0\n"
    assert "Error" not in done.stderr
    assert "Traceback" not in done.stderr
    if verb == "value":
        assert (data / "run/result.json").is_file()
        assert "4 of 31" in run("show", "run", cwd=data).stdout


def test_every_exit_code_is_documented():
    table = dict(re.findall(r"^\| (\d+) \| (.+) \|$", DOCS.read_text(), flags=re.MULTILINE))
    assert {int(code) for code in table} >= {*ExitCode, 129, 130, 143}


@pytest.mark.slow
def test_the_default_budget_does_not_stop_just_short_of_everything(data):
    plan = run("value", *WINE, *BOTH, "--holdout", 0.2, "--run", "run", cwd=data)
    assert "all 31, so that nothing is predicted" in plan.stderr
