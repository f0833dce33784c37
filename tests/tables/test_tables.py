from __future__ import annotations

import subprocess
import sys

import pytest

from dupre import tables


def test_the_public_names_are_found_and_explained():
    assert set(tables.__all__) == set(dir(tables))
    assert all(getattr(tables, name).__doc__ for name in tables.__all__)
    with pytest.raises(AttributeError, match=r"'dupre\.tables' has no attribute 'red_table'"):
        tables.red_table  # noqa: B018  # looking it up is the test


def test_importing_it_imports_nothing_heavy():
    code = "import sys, dupre.tables; print({'pandas', 'sklearn'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"
