import pickle
import subprocess
import sys
import types
from itertools import count

import cloudpickle
import numpy as np
import pytest

from dupre.tables.user_code import is_dotted, load
from refusals import refused

NUMBERS = count()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Source text in, name of a module of the current directory out."""
    monkeypatch.chdir(tmp_path)
    written, before = [], list(sys.path)

    def write(source, name=None):
        name = name or f"theirs{next(NUMBERS)}"
        (tmp_path / f"{name}.py").write_text(source)
        written.append(name)
        return name

    yield write
    assert sys.path == before
    for name in written:
        loaded = sys.modules.pop(name, None)
        if loaded is not None and name in cloudpickle.list_registry_pickle_by_value():
            cloudpickle.unregister_pickle_by_value(loaded)


@pytest.mark.parametrize("form", ["{}:thing", "{}.py:thing", "./{}.py:thing"])
def test_objects_of_the_current_directory_are_found(module, form):
    assert load(form.format(module("thing = 42"))) == 42


def test_a_file_elsewhere_finds_its_neighbours(module, tmp_path, monkeypatch):
    beside = module("def answer(): return 42")
    name = module(f"from {beside} import answer")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert load(f"{tmp_path}/{name}.py:answer")() == 42
    assert load(f"{tmp_path}/{name}.py:answer") is load(f"../{name}.py:answer")


@pytest.mark.parametrize("form", ["{}:answer", "{}.py:answer"])
def test_other_processes_get_the_code_itself(module, form):
    beside = module("def deep(): return 42")
    name = module(f"import {beside}\ndef answer(): return {beside}.deep()")
    sent = cloudpickle.dumps(load(form.format(name)))
    code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read())())"
    run = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, cwd="/")
    assert run.stdout.strip() == b"42", run.stderr


def test_installed_objects_are_found_and_sent_by_name(module):
    assert load("numpy:linalg.norm") is np.linalg.norm
    module("")
    sent = cloudpickle.dumps(load("numpy:mean"))
    assert sent == pickle.dumps(np.mean, cloudpickle.DEFAULT_PROTOCOL)
    load("dupre.errors:InputError")
    assert not any(name.startswith("dupre") for name in cloudpickle.list_registry_pickle_by_value())


def test_missing_modules_and_objects_are_named_with_their_neighbours(module):
    module("class Pipeline:\n    steps = 1", "my_models")
    for dotted, match in (
        *[(dotted, "expected module:object") for dotted in (":thing", "module:", ":")],
        ("my_models2:thing", "no module .*did you mean 'my_models'"),
        ("my_models2.py:thing", "no file .*did you mean 'my_models.py'"),
        ("sklearn.nothing:thing", "no module 'sklearn.nothing'"),
        ("a:b:c", "no module 'a:b'"),
        ("my_models:pipelin", r"has no 'pipelin' \(did you mean 'Pipeline'\?\)"),
        ("my_models:Pipeline.step", r"has no 'step' \(did you mean 'steps'\?\)"),
    ):
        refused(match, load, dotted)


@pytest.mark.parametrize("form", ["{}:x", "{}.py:x"])
@pytest.mark.parametrize(
    ("source", "match"),
    [
        ("\nimport no_package", r"py, line 2\): ModuleNotFoundError: No module .*no_package"),
        ("x = = 1", r"py, line 1\): SyntaxError"),
        ("def f():\n    raise KeyError('q')\nf()", r"py, line 2\): KeyError: 'q'"),
        ("import sys\nsys.exit(3)", r"py, line 2\): SystemExit: 3"),
    ],
)
def test_a_module_that_fails_says_where(module, form, source, match):
    name = module(source)
    refused(rf"importing {name}.* failed \({name}\.{match}", load, form.format(name))
    assert name not in sys.modules


def test_a_module_that_failed_can_be_mended_but_replaces_none_in_use(module, monkeypatch):
    name = module("x = = 1")
    refused("SyntaxError", load, f"{name}.py:x")
    module("x = 12345", name)
    assert load(f"{name}.py:x") == 12345
    monkeypatch.setitem(sys.modules, "in_use", types.ModuleType("in_use"))
    module("x = 1", "in_use")
    refused("in_use.py has the name of another module", load, "in_use.py:x")
    assert is_dotted("a:b")
    assert not is_dotted("logistic")
