"""Objects of the user's own code by name: "my_model:pipeline", "my_model.py:build".

Modules are also found in the current directory, or in that of the file; this directory is on the
import path during the import only. Modules from there are sent to worker processes by value: these
may run on another machine.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import cloudpickle

from dupre.errors import InputError
from dupre.wording import did_you_mean

_LIBRARIES = {"site-packages", "dist-packages"}


def is_dotted(name: str) -> bool:
    """Whether a name is of the form module:object."""
    return ":" in name


def load(dotted: str) -> Any:
    """The object that "module:object" or "file.py:object" names; InputError if there is none."""
    place, _, name = dotted.rpartition(":")
    if not place or not name:
        raise InputError(
            "expected module:object, such as my_model:pipeline or my_model.py:build, "
            f"got {dotted!r}"
        )
    if place.endswith(".py") or "/" in place or "\\" in place:
        module = _from_file(Path(place).expanduser())
    else:
        module = _from_path(place)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            known = [other for other in dir(found) if not other.startswith("_")]
            raise InputError(
                f"{place} has no {part!r}{did_you_mean(part, known)}; give a name it defines"
            )
        found = getattr(found, part)
    return found


def _from_path(name: str) -> ModuleType:
    """A module by its name, installed or in the current directory."""
    here = Path.cwd()
    try:
        with _importable(here):
            return importlib.import_module(name)
    except ModuleNotFoundError as cause:
        if cause.name is None or not (name == cause.name or name.startswith(f"{cause.name}.")):
            raise _import_error(name, cause) from cause
        files = [path.stem for path in here.glob("*.py")]
        raise InputError(
            f"there is no module {name!r}, neither installed nor in the current directory"
            f"{did_you_mean(name, files)}; write module:object or path/to/file.py:object"
        ) from cause
    except (Exception, SystemExit) as cause:  # the user's code may raise anything
        raise _import_error(name, cause) from cause


def _from_file(file: Path) -> ModuleType:
    """A module by the path of its file."""
    if not file.is_file():
        near = did_you_mean(file.name, [path.name for path in file.parent.glob("*.py")])
        raise InputError(f"there is no file {file}{near}; expected path/to/file.py:object")
    name, file = file.stem, file.resolve()
    loaded = sys.modules.get(name)
    if loaded is not None:
        if Path(getattr(loaded, "__file__", None) or "").resolve() == file:
            return loaded
        raise InputError(f"{file.name} has the name of another module in use; rename it")
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"cannot import {file}; expected a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        with _importable(file.parent):
            sys.modules[name] = module  # as `import` does: classes find their module by its name
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as cause:  # the user's code may raise anything
        sys.modules.pop(name, None)
        raise _import_error(file.name, cause) from cause
    return module


@contextmanager
def _importable(directory: Path) -> Iterator[None]:
    """Allow imports from a directory; modules of it are pickled by value from then on."""
    entry, before = str(directory), set(sys.modules)
    importlib.invalidate_caches()  # a file may have been written since the last import
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        if entry in sys.path:  # the imported code may have changed the path itself
            sys.path.remove(entry)
    for name in set(sys.modules) - before:
        if _is_own(sys.modules[name], name, directory):
            cloudpickle.register_pickle_by_value(sys.modules[name])


def _is_own(module: Any, name: str, directory: Path) -> bool:
    """Whether a module is the user's, not part of Python or of an installed package."""
    file = getattr(module, "__file__", None)
    if not isinstance(module, ModuleType) or not isinstance(file, str):
        return False
    # The current directory may hold a virtual environment, or dupre itself.
    if name.partition(".")[0] in {*sys.stdlib_module_names, "dupre"}:
        return False
    path = Path(file).resolve()
    return path.is_relative_to(directory.resolve()) and not _LIBRARIES & set(path.parts)


def _import_error(name: str, cause: BaseException) -> InputError:
    """The error for a module that cannot be imported, with the line of the user's code."""
    if isinstance(cause, SyntaxError):
        where = f"{Path(cause.filename or name).name}, line {cause.lineno}"
    else:
        frames = traceback.extract_tb(cause.__traceback__)
        own = [f for f in frames if "importlib" not in f.filename and f.filename != __file__]
        where = f"{Path(own[-1].filename).name}, line {own[-1].lineno}" if own else name
    text = " ".join(str(getattr(cause, "msg", cause)).split()) or "no message"
    return InputError(
        f"importing {name} failed ({where}): {type(cause).__name__}: {text[:200]}; correct it, or "
        "install what it needs"
    )
