"""The rooms of `src/dupre`, who may import whom, how full they are, and the public names.

Every import counts: at the top of a module, within a function, and for types alone.
"""

import ast
import re
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
    "predictor": {"game", "data"},
    "utility": {"game", "data"},
    "training": {"game", "data", "utility"},
    "store": {"game", "data", "utility", "training"},
    "result": {"game", "predictor"},
    "baselines": {"game", "data", "utility"},
    "valuation": {"game", "data", "predictor", "utility", "training", "store", "result"},
    "benchmark": {"game", "data", "utility", "result", "baselines", "valuation"},
    "report": {"game", "predictor", "result"},
    "tables": {"data", "utility"},
    "runs": {
        *("game", "data", "predictor", "utility", "training", "store", "result", "valuation"),
        *("report", "tables"),
    },
    "cli": {"training", "store", "result", "valuation", "report", "tables", "runs"},
}
"""Which rooms a room may import besides itself and the root. Data flow downwards: no room imports
one below itself."""

EXCEPTIONS = {
    ("baselines.transport", "predictor.kernels"),  # OTDD is a kernel of the same predictor
    ("baselines.transport", "predictor.kernel_inputs"),
    ("result.valuation", "report.plots"),  # `valuation.plot()` and `.report()` are where users look
    ("result.valuation", "report.page"),
}
"""Imports that the table does not allow, each with its reason."""

MANY_PARAMETERS = {
    *("valuation.value.value", "valuation.valuer.__init__", "utility.model.__init__"),
    *("valuation.quote.quote", "cli.resume.resume"),
}
"""Entry points: what a user may state is a keyword or an option each."""

LINES = {
    "root": 1_146,
    "game": 1_418,
    "data": 1_250,
    "predictor": 1_971,
    "utility": 1_832,
    "training": 898,
    "store": 1_302,
    "result": 2_284,
    "baselines": 613,
    "valuation": 3_759,
    "benchmark": 617,
    "report": 2_052,
    "tables": 2_185,
    "runs": 2_328,
    "cli": 1_211,
}
"""Lines of code that a room may have, docstrings and comments apart. A ratchet: a change that needs
more raises its room's number and says why in the commit; one that needs less lowers it."""

DECIDING = re.compile(r"note|caveat|reason|message|sentence|failure|stopped|text|wording", re.I)


def find_modules() -> dict[str, Path]:
    """Every module by its name within dupre; packages by that of their `__init__`."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    del found[""]
    return found


MODULES = find_modules()
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def imported_from(node: ast.AST) -> set[str]:
    """The modules of dupre that an import statement names."""
    if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dupre":
        base = node.module.removeprefix("dupre").removeprefix(".")
        inner = {".".join(filter(None, (base, alias.name))) for alias in node.names}
        return {name if name in MODULES else base for name in inner} - {""}
    if isinstance(node, ast.Import):
        names = {alias.name for alias in node.names if alias.name.startswith("dupre.")}
        return {name.removeprefix("dupre.") for name in names}
    return set()


IMPORTS = {
    name: set().union(*map(imported_from, ast.walk(tree))) - {name} for name, tree in TREES.items()
}


def room(module: str) -> str:
    """The room of a module, "root" for those beside the rooms."""
    return "root" if module in ROOT else module.partition(".")[0]


def functions(module: str) -> list[ast.FunctionDef]:
    return [node for node in ast.walk(TREES[module]) if isinstance(node, ast.FunctionDef)]


def test_the_source_has_these_rooms_and_the_command_does_no_arithmetic():
    assert {room(name) for name in MODULES} == {"root", *MAY_IMPORT}
    for name in MODULES:
        if room(name) == "cli":
            found = (node for node in ast.walk(TREES[name]) if isinstance(node, ast.Import))
            names = {alias.name for node in found for alias in node.names}
            assert not names & {"numpy", "pandas", "scipy", "sklearn"}, name


def test_a_room_imports_what_the_table_allows_and_the_table_goes_downwards():
    wrong = {
        (name, other)
        for name, others in IMPORTS.items()
        for other in others
        if room(other) not in {"root", room(name), *MAY_IMPORT.get(room(name), set())}
    }
    assert wrong == EXCEPTIONS
    order = list(MAY_IMPORT)
    for package, others in MAY_IMPORT.items():
        assert all(order.index(other) < order.index(package) for other in others)


def test_no_module_imports_itself_through_others():
    allowed = {
        name: others - {b for a, b in EXCEPTIONS if a == name} for name, others in IMPORTS.items()
    }
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            for other in sorted(allowed[name]):
                visit(other, (*path, name))
            done.add(name)

    for name in MODULES:
        visit(name, ())


def test_a_module_knows_few_others_and_functions_and_classes_are_of_a_size_to_read():
    assert {name: len(others) for name, others in IMPORTS.items() if len(others) > 15} == {}
    many, long = set(), {}
    for name in MODULES:
        for function in functions(name):
            arguments = function.args
            count = sum(map(len, (arguments.posonlyargs, arguments.args, arguments.kwonlyargs)))
            own = {"self", "cls"} & {argument.arg for argument in arguments.args}
            if count - len(own) > 8:
                many.add(f"{name}.{function.name}")
            if (lines := code_lines(function)) > 60:
                long[f"{name}.{function.name}"] = lines
        for node in ast.walk(TREES[name]):
            if isinstance(node, ast.ClassDef):
                assert len(public_members(node)) <= 30, f"{name}.{node.name}"
    assert many <= MANY_PARAMETERS
    assert long == {}


def code_lines(function: ast.FunctionDef) -> int:
    """Lines of a function without its docstring."""
    documented = ast.get_docstring(function) is not None
    docstring = function.body[0] if documented else None
    lines = function.end_lineno - function.lineno + 1
    return lines - (docstring.end_lineno - docstring.lineno + 1 if docstring else 0)


def public_members(node: ast.ClassDef) -> set[str]:
    methods = {f.name for f in node.body if isinstance(f, ast.FunctionDef)}
    fields = {f.target.id for f in node.body if isinstance(f, ast.AnnAssign)}
    return {name for name in methods | fields if not name.startswith("_")}


def test_no_sentence_decides():
    """Texts are for people: code asks for the code of a `Note`, or for a field."""
    found = []
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
                left, among = node.left, ast.unparse(node.comparators[0])
                words = isinstance(left, ast.Constant) and " " in str(left.value)
                constant = isinstance(left, ast.Name) and left.id.isupper()
                if (words or constant) and DECIDING.search(among):
                    found.append(f"{name}:{node.lineno} {ast.unparse(node)}")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                looks = node.func.attr in ("startswith", "endswith", "find")
                if looks and DECIDING.search(ast.unparse(node.func.value)) and is_word(node.args):
                    found.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    assert found == []


def is_word(arguments: list[ast.expr]) -> bool:
    """Whether a text is looked for that has words in it, not only signs of a format."""
    first = arguments[0] if arguments else None
    return isinstance(first, ast.Constant) and sum(c.isalpha() for c in str(first.value)) >= 3


def test_rooms_are_not_fuller_than_agreed():
    found = dict.fromkeys(LINES, 0)
    for name, path in MODULES.items():
        found[room(name)] += count_code(path.read_text(), TREES[name])
    assert {name: lines for name, lines in found.items() if lines > LINES[name]} == {}


def count_code(text: str, tree: ast.Module) -> int:
    """Lines of a module that are neither blank nor comments nor texts that stand alone."""
    texts: set[int] = set()
    for node in ast.walk(tree):
        alone = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if alone and isinstance(node.value.value, str):
            texts.update(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in texts
        for number, line in lines
    )


def test_the_public_names_are_these_and_importing_them_imports_nothing_heavy():
    assert dupre.__all__ == [
        *("DataVolume", "DupreError", "EngineError", "EvaluationError", "Folds", "Holdout"),
        *("InformationGain",),
        *("InputError", "Interrupted", "LeastCore", "ModelUtility", "NotPayableError", "Owners"),
        *(
            "Precedence",
            "Quote",
            "Score",
            "Semivalue",
            "StoreError",
            "Stored",
            "Valuation",
            "Valuer",
            "banzhaf",
            "baselines",
            "benchmark",
        ),
        *("beta_shapley", "engines", "estimators", "from_game", "from_table", "history", "kernels"),
        *("leave_one_out", "metrics", "notes", "plots", "precedence", "quote"),
        *("read_evaluations", "shapley", "stopping", "strategies", "tables", "to_game", "value"),
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
