"""The rooms of `src/dupre`, who may import whom, and what the package shows of itself."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dupre

SOURCE = Path(dupre.__file__).parent

ROOT = {"_types", "checks", "errors", "files", "metrics", "notes", "spec", "wording"}

MAY_IMPORT = {
    "game": set(),
    "data": {"game"},
    "predictor": {"game"},
    "result": {"game", "predictor"},
    "utility": {"game", "data"},
    "baselines": {"game", "data", "utility"},
    "training": {"game", "data", "utility"},
    "store": {"game", "data", "utility", "training"},
    "valuation": {"game", "result", "data", "predictor", "utility", "training", "store"},
    "report": {"game", "predictor", "result"},
    "tables": {"data", "utility"},
    "runs": {
        "game",
        "result",
        "data",
        "predictor",
        "utility",
        "training",
        "store",
        "valuation",
        "report",
        "tables",
    },
    "cli": {"result", "training", "store", "valuation", "tables", "runs"},
}
"""Which packages a package may import besides itself and the modules of the root.

Data flow downwards: no package imports one below itself.
"""

EXCEPTIONS = {
    ("baselines.transport", "predictor.kernels"),  # OTDD is a kernel of the same predictor
    ("baselines.transport", "predictor.features"),
    ("result.valuation", "report.plots"),  # `valuation.plot()` and `.report()` are where users look
    ("result.valuation", "report.page"),
}
"""Imports that the table does not allow, each with its reason."""


def modules() -> dict[str, Path]:
    """Every module by its name within dupre; packages by that of their `__init__`."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    del found[""]
    return found


def walk(node: ast.AST):
    """All nodes, those inside functions too, but for imports that only type checkers see."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield from walk(child)


def imports(path: Path) -> set[str]:
    """The modules of dupre that a module imports, at its top or within a function."""
    found = set()
    for node in walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dupre":
            base = node.module.removeprefix("dupre").removeprefix(".")
            for alias in node.names:
                inner = ".".join(part for part in (base, alias.name) if part)
                found.add(inner if inner in MODULES else base)
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
            found |= {name.removeprefix("dupre.") for name in names if name.startswith("dupre.")}
    return found - {""}


MODULES = modules()


def test_the_source_has_these_rooms_and_the_command_does_no_arithmetic():
    packages = {name.partition(".")[0] for name in MODULES} - ROOT
    assert packages == set(MAY_IMPORT)
    for name, path in MODULES.items():
        if name.partition(".")[0] == "cli":
            nodes = ast.walk(ast.parse(path.read_text()))
            found = (node for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)))
            names = {alias.name for node in found for alias in node.names}
            assert not names & {"numpy", "pandas", "scipy", "sklearn"}, name


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_a_package_imports_what_the_table_allows(package):
    allowed = MAY_IMPORT[package] | ROOT | {package}
    wrong = {
        (name, other)
        for name, path in MODULES.items()
        if name.partition(".")[0] == package
        for other in imports(path)
        if other.partition(".")[0] not in allowed
    }
    assert wrong - EXCEPTIONS == set()


def test_every_exception_is_needed_and_the_table_goes_downwards_only():
    found = {(name, other) for name, path in MODULES.items() for other in imports(path)}
    assert found >= EXCEPTIONS
    order = list(MAY_IMPORT)
    for package, others in MAY_IMPORT.items():
        assert all(order.index(other) < order.index(package) for other in others)
    for module in ROOT:
        assert imports(MODULES[module]) <= ROOT, module


def code_lines(function: ast.FunctionDef) -> int:
    """Lines of a function without its docstring."""
    documented = ast.get_docstring(function) is not None
    docstring = function.body[0] if documented else None
    lines = function.end_lineno - function.lineno + 1
    return lines - (docstring.end_lineno - docstring.lineno + 1 if docstring else 0)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_modules_and_functions_can_be_read_in_one_sitting(name):
    text = MODULES[name].read_text()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    assert {f.name: code_lines(f) for f in functions if code_lines(f) > 60} == {}


def test_the_public_names_are_these_and_importing_them_imports_nothing_heavy():
    assert dupre.__all__ == [
        *("DataVolume", "DupreError", "EngineError", "EvaluationError", "InformationGain"),
        *("InputError", "Interrupted", "LeastCore", "ModelUtility", "Owners", "Score"),
        *("Semivalue", "StoreError", "Stored", "Valuation", "Valuer", "banzhaf", "baselines"),
        *("beta_shapley", "engines", "estimators", "from_game", "from_table", "kernels"),
        *("leave_one_out", "metrics", "notes", "plots", "read_evaluations", "shapley", "stopping"),
        *("strategies", "tables", "to_game", "value"),
    ]
    assert all(getattr(dupre, name).__doc__ for name in dupre.__all__)
    assert set(dupre.__all__) <= set(dir(dupre))
    with pytest.raises(AttributeError, match="no attribute 'shaply'"):
        dupre.shaply  # noqa: B018  # looking it up is the test
    heavy = {"numpy", "pandas", "rich", "scipy", "sklearn", "sqlite3"}
    assert imported_by("import dupre", heavy) == ""
    assert imported_by("import dupre.valuation.progress", {"rich"}) == ""
    every = "import dupre; [getattr(dupre, name) for name in dupre.__all__]"
    assert imported_by(every, {"dask", "distributed", "ot", "shapiq", "matplotlib", "typer"}) == ""


def imported_by(code: str, heavy: set[str]) -> str:
    """Which of some packages a fresh interpreter has imported after this code."""
    code = f"{code}; import sys; print(*sorted({heavy!r} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()
