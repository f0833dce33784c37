import re
import subprocess
import sys

import pytest

import dupre
from command_tables import (
    FEW,
)
from commands import COMMAND, environment, refuse, run


@pytest.mark.slow
def test_no_reader_or_no_streams_are_no_errors(finished, data):
    how = {"shell": True, "capture_output": True, "text": True, "check": False}
    env = environment(PYTHONIOENCODING="ascii")
    piped = subprocess.run(f"{COMMAND} show dupre-wine | head -c 10", cwd=finished, env=env, **how)
    assert piped.stdout == "Payable.\nS"
    assert piped.stderr == "Page: dupre-wine/report.html\n"  # no error
    how = f"{COMMAND} value {' '.join(FEW)} --budget 4 --run run >&- 2>&-"
    subprocess.run(how, shell=True, cwd=data, env=environment(), check=True)
    assert "4 of 31 possible" in run("show", "run", cwd=data).stdout


def test_an_error_nobody_thought_of_is_two_lines_and_debug_shows_where_it_comes_from(data):
    (data / "broken.py").write_text(
        "from sklearn.linear_model import LogisticRegression\n"
        "class Own(LogisticRegression):\n"
        "    def __repr__(self): raise SystemError('a bug')\n"
    )
    how = ("value", *FEW, "--model", "broken:Own")
    message = refuse(*how, cwd=data)
    assert message == "SystemError: a bug\nAdd --debug to see where it comes from.\n"
    with pytest.raises(SystemError, match="a bug"):
        run(*how, "--debug", cwd=data)
    with pytest.raises(dupre.InputError, match="there is no directory 'nowhere'"):
        run("--debug", "show", "nowhere", cwd=data)


def test_every_verb_explains_itself_and_help_imports_nothing_heavy():
    overview = run("--help").stdout
    verbs = re.findall(r"^  (\w+)  ", overview, flags=re.MULTILINE)
    every = (
        "value resume demo show history report pay verify compare predict quote init suggest record"
    )
    assert " ".join(verbs) == every
    for verb in verbs:
        told = run(verb, "--help").stdout
        assert f"Usage: dupre {verb}" in told
        assert f"Example: dupre {verb}" in told
    heavy = {"numpy", "pandas", "scipy", "sklearn", "matplotlib", "sqlite3"}
    code = (
        "import sys, dupre.cli.app; sys.argv = ['dupre', '--help']\n"
        "try: dupre.cli.app.main()\n"
        f"except SystemExit: print(*{heavy} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == ""
    assert "Usage: dupre" in done.stdout

    assert run("--version").stdout == f"dupre {dupre.__version__}\n"
    words = {"_DUPRE_COMPLETE": "complete_bash", "COMP_WORDS": "dupre re", "COMP_CWORD": "1"}
    shell = environment(**words)
    done = subprocess.run([COMMAND], env=shell, capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == {"resume", "report", "record"}
