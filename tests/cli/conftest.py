import shutil

import pytest

from command_tables import BOTH, FEW, good, wine
from commands import run


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The current directory, with a good table."""
    monkeypatch.chdir(tmp_path)
    good().to_csv("good.csv", index=False)
    return tmp_path


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A directory with the data and a finished run of two semivalues."""
    here = tmp_path_factory.mktemp("finished")
    wine().to_csv(here / "wine.csv", index=False)
    done = run("value", *FEW, *BOTH, "--budget", 14, cwd=here)
    (here / "out.txt").write_text(done.stdout)
    (here / "err.txt").write_text(done.stderr)
    return here


@pytest.fixture
def data(tmp_path):
    """A directory with the data."""
    wine().to_csv(tmp_path / "wine.csv", index=False)
    return tmp_path


@pytest.fixture
def copy(finished, tmp_path):
    """A directory with the data and the finished run, to go on with."""
    return shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
