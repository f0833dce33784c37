import os
import subprocess
import sys
from unittest.mock import Mock

import pytest

import dupre
from dupre.files import replace_text, replace_texts

FILL = """
import resource, signal, sys
from pathlib import Path
from dupre.errors import InputError
from dupre.files import replace_texts

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    page = Path(sys.argv[1])
    replace_texts({page.with_name("payments.csv"): "new", page: "x" * 100_000})
except InputError as error:
    print(error)
"""


def test_when_the_disk_is_full_all_old_files_stay(tmp_path):
    file, table = tmp_path / "report.html", tmp_path / "payments.csv"
    replace_text(file, "old")
    replace_text(table, "old")
    script = [sys.executable, "-c", FILL, str(file)]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    assert "cannot be written" in done.stdout
    assert file.read_text() == table.read_text() == "old"
    assert set(tmp_path.iterdir()) == {file, table}


@pytest.mark.parametrize("links", [True, False])
def test_when_a_file_cannot_take_its_place_the_others_are_put_back(tmp_path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", Mock(side_effect=OSError("no links here")))
    first, new, last = (tmp_path / name for name in ("values.csv", "payments.csv", "report.html"))
    replace_text(first, "old")
    last.mkdir()  # no file can take the place of a directory
    for _ in range(2):
        with pytest.raises(dupre.InputError, match=r"report\.html' cannot be written"):
            replace_texts(dict.fromkeys((first, new, last), "new"))
        assert first.read_text() == "old"
        assert set(tmp_path.iterdir()) == {first, last}
    last.rmdir()
    replace_texts(dict.fromkeys((first, new, last), "new"))
    assert {file.read_text() for file in tmp_path.iterdir()} == {"new"}
    assert set(tmp_path.iterdir()) == {first, new, last}
